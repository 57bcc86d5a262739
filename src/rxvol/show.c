/* SPDX-License-Identifier: BSD-2-Clause */
/* Results, as text or JSON. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "program/message.h"
#include "program/number.h"
#include "program/report.h"
#include "rxvol/volumes.h"

static const char *format_kib(char buffer[32], uint64_t value)
{
	return tools_format_size(buffer, 32, value * 1024);
}

static const char *format_quota(char buffer[32], const json_t *volume)
{
	unsigned long long quota = tools_count_of(volume, "quota_kib");

	return quota ? format_kib(buffer, quota) : "no limit";
}

static const char *format_time(char buffer[32], const json_t *volume, const char *name)
{
	time_t seconds = (time_t)tools_count_of(volume, name);
	struct tm tm;

	if (!seconds || !localtime_r(&seconds, &tm) ||
	    !strftime(buffer, 32, "%Y-%m-%d %H:%M:%S", &tm))
		snprintf(buffer, 32, "never");
	return buffer;
}

static const char *state_of_volume(const json_t *volume)
{
	return json_is_true(json_object_get(volume, "online")) ? "online" : "offline";
}

static const json_t *volume_of_result(const struct rxvol *rxvol)
{
	return json_object_get(rxvol->result, "volume");
}

/* -- commands -- */

static void show_nothing(const struct rxvol *rxvol)
{
	(void)rxvol;
}

static void show_create(const struct rxvol *rxvol)
{
	const json_t *volume = volume_of_result(rxvol);

	if (rxvol->made)
		printf("made the store %s\n", rxvol->store);
	printf("volume %s has the id %llu\n", tools_text_of(volume, "name"),
	       tools_count_of(volume, "id"));
}

static void show_list(const struct rxvol *rxvol)
{
	const json_t *list = json_object_get(rxvol->result, "volumes"), *volume;
	char used[32], quota[32];
	size_t i;

	json_array_foreach((json_t *)list, i, volume)
	{
		printf("%10llu  %-6s  %-7s  %10s of %-10s  %9llu  %s\n",
		       tools_count_of(volume, "id"), tools_text_of(volume, "type"),
		       state_of_volume(volume),
		       format_kib(used, tools_count_of(volume, "used_kib")),
		       format_quota(quota, volume), tools_count_of(volume, "files"),
		       tools_text_of(volume, "name"));
	}
}

static void show_id(const json_t *volume, const char *name, const char *label)
{
	if (tools_count_of(volume, name))
		printf("  %-9s %llu\n", label, tools_count_of(volume, name));
}

static void show_examine(const struct rxvol *rxvol)
{
	const json_t *volume = volume_of_result(rxvol);
	char buffer[32];

	printf("volume %s\n", tools_text_of(volume, "name"));
	printf("  %-9s %llu\n", "id", tools_count_of(volume, "id"));
	printf("  %-9s %s\n", "type", tools_text_of(volume, "type"));
	printf("  %-9s %s%s%s\n", "state", state_of_volume(volume),
	       *tools_text_of(volume, "offline_message") ? ": " : "",
	       tools_text_of(volume, "offline_message"));
	show_id(volume, "rw", "rw id");
	show_id(volume, "ro", "ro id");
	show_id(volume, "backup", "backup id");
	printf("  %-9s %s\n", "quota", format_quota(buffer, volume));
	printf("  %-9s %s\n", "used", format_kib(buffer, tools_count_of(volume, "used_kib")));
	printf("  %-9s %llu\n", "files", tools_count_of(volume, "files"));
	printf("  %-9s %s\n", "created", format_time(buffer, volume, "created"));
	printf("  %-9s %s\n", "copied", format_time(buffer, volume, "copied"));
	printf("  %-9s %s\n", "updated", format_time(buffer, volume, "updated"));
	printf("  %-9s %s\n", "cloned", format_time(buffer, volume, "cloned"));
}

static void show_clone(const struct rxvol *rxvol)
{
	const json_t *volume = volume_of_result(rxvol);

	printf("volume %s has the id %llu\n", tools_text_of(volume, "name"),
	       tools_count_of(volume, "id"));
}

static void show_quota(const struct rxvol *rxvol)
{
	const json_t *volume = volume_of_result(rxvol);
	char used[32], quota[32];

	printf("%s: %s used, quota %s\n", tools_text_of(volume, "name"),
	       format_kib(used, tools_count_of(volume, "used_kib")), format_quota(quota, volume));
}

/* A change is silent, unless it stops all writers, or takes the limit away: 0 may have been meant as "nothing". */
static void show_new_quota(const struct rxvol *rxvol)
{
	const json_t *volume = volume_of_result(rxvol);
	unsigned long long quota = tools_count_of(volume, "quota_kib");
	char used[32], text[32];

	if (!quota)
		tools_error("%s: it has no limit now", tools_text_of(volume, "name"));
	else if (quota < tools_count_of(volume, "used_kib"))
		tools_error(
			"%s: %s are used, more than the new quota of %s: nothing can be stored until "
			"files are removed",
			tools_text_of(volume, "name"),
			format_kib(used, tools_count_of(volume, "used_kib")),
			format_quota(text, volume));
}

static void show_entries(const json_t *list, const char *label)
{
	const json_t *entry;
	size_t i;

	json_array_foreach((json_t *)list, i, entry) printf(
		"  %s%s %s\n", label, tools_text_of(entry, "name"), tools_text_of(entry, "rights"));
}

static void show_acl(const struct rxvol *rxvol)
{
	const json_t *acl = json_object_get(rxvol->result, "acl");

	/* A change is silent. */
	if (json_object_get(rxvol->request, "acl"))
		return;
	printf("%s\n", tools_text_of(rxvol->result, "path"));
	show_entries(json_object_get(acl, "positive"), "");
	show_entries(json_object_get(acl, "negative"), "not ");
}

/* The amount of what was copied or compared. */
static void print_amount(const struct rxvol *rxvol)
{
	char bytes[32];

	printf("%llu files, directories and links, %s", tools_count_of(rxvol->result, "objects"),
	       tools_format_size(bytes, sizeof(bytes), tools_count_of(rxvol->result, "bytes")));
}

/* "; 5 skipped", unless the number is 0. */
static void print_number(const struct rxvol *rxvol, const char *member, const char *text)
{
	if (tools_count_of(rxvol->result, member))
		printf("; %llu %s", tools_count_of(rxvol->result, member), text);
}

static void show_copy(const struct rxvol *rxvol)
{
	printf("%s: ", rxvol->command);
	print_amount(rxvol);
	print_number(rxvol, "unchanged", "there already");
	print_number(rxvol, "removed", "removed");
	print_number(rxvol, "cleared", "without their set-id bits");
	print_number(rxvol, "skipped", "skipped");
	printf("\n");
}

/* The standard output may be the dump. */
static void show_dump(const struct rxvol *rxvol)
{
	if (!rxvol->file)
		return;
	printf("%s: ", rxvol->command);
	print_amount(rxvol);
	print_number(rxvol, "unchanged", "unchanged");
	print_number(rxvol, "skipped", "damaged ones left out");
	printf("\n");
}

static void show_restore(const struct rxvol *rxvol)
{
	printf("volume %s has the id %llu: ", tools_text_of(rxvol->result, "name"),
	       tools_count_of(rxvol->result, "id"));
	print_amount(rxvol);
	print_number(rxvol, "unchanged", "unchanged");
	print_number(rxvol, "nameless", "files without a name left out");
	printf("\n");
}

static void show_restore_from(const struct rxvol *rxvol)
{
	printf("volume %s has the contents of %s again\n", tools_text_of(rxvol->result, "name"),
	       tools_text_of(rxvol->result, "clone"));
}

static void show_compare(const struct rxvol *rxvol)
{
	unsigned long long differences = tools_count_of(rxvol->result, "differences");

	printf("compared ");
	print_amount(rxvol);
	printf(": ");
	if (differences)
		printf("%llu difference%s\n", differences, differences == 1 ? "" : "s");
	else
		printf("the same\n");
}

static void show_check(const struct rxvol *rxvol)
{
	unsigned long long faults = tools_count_of(rxvol->result, "faults");

	if (faults)
		printf("%llu fault%s; \"rxvol which VOLUME VNODE\" shows the path of a vnode\n",
		       faults, faults == 1 ? "" : "s");
	else
		printf("the store is sound\n");
}

static void show_text(const struct rxvol *rxvol)
{
	static const struct {
		const char *command;
		void (*show)(const struct rxvol *rxvol);
	} commands[] = {
		{"compare", show_compare}, {"dump", show_dump},
		{"restore", show_restore}, {"restore-from", show_restore_from},
		{"create", show_create},   {"list", show_list},
		{"examine", show_examine}, {"clone", show_clone},
		{"acl", show_acl},	   {"import", show_copy},
		{"export", show_copy},	   {"check", show_check}, {"which", rxvol_show_which},
	};
	void (*show)(const struct rxvol *rxvol) = show_nothing;

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (!strcmp(commands[i].command, rxvol->command))
			show = commands[i].show;
	if (!strcmp(rxvol->command, "quota"))
		show = json_object_get(rxvol->request, "quota") ? show_new_quota : show_quota;
	show(rxvol);
}

int rxvol_show(struct rxvol *rxvol)
{
	/* The standard output is the dump. */
	if (rxvol->json && rxvol->stream && !rxvol->file && !strcmp(rxvol->command, "dump"))
		return rxvol->status;
	if (!rxvol->json) {
		show_text(rxvol);
		return rxvol->status;
	}
	if (!strcmp(rxvol->command, "create"))
		json_object_set_new(rxvol->result, "made_store", json_boolean(rxvol->made));
	if (!strcmp(rxvol->command, "check") || !strcmp(rxvol->command, "compare"))
		json_object_set(rxvol->result, "lines", rxvol->faults);
	if (!strcmp(rxvol->command, "mounts"))
		json_object_set(rxvol->result, "mounts", rxvol->faults);
	if (tools_json_print(json_incref(rxvol->result)))
		return TOOLS_EXIT_FAILURE;
	return rxvol->status;
}
