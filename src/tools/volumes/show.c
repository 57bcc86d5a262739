/* SPDX-License-Identifier: BSD-2-Clause */
/* Results, as text or JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tools/common/message.h"
#include "tools/common/number.h"
#include "tools/common/report.h"
#include "tools/volumes/volumes.h"

static const char *text(const json_t *object, const char *name)
{
	const char *value = json_string_value(json_object_get(object, name));

	return value ? value : "";
}

static uint64_t number(const json_t *object, const char *name)
{
	return (uint64_t)json_integer_value(json_object_get(object, name));
}

static const char *kib(char buffer[32], uint64_t value)
{
	return tools_format_size(buffer, 32, value * 1024);
}

static const char *quota_text(char buffer[32], const json_t *volume)
{
	uint64_t quota = number(volume, "quota_kib");

	return quota ? kib(buffer, quota) : "no limit";
}

static const char *when(char buffer[32], const json_t *volume, const char *name)
{
	time_t seconds = (time_t)number(volume, name);
	struct tm tm;

	if (!seconds || !localtime_r(&seconds, &tm) ||
	    !strftime(buffer, 32, "%Y-%m-%d %H:%M:%S", &tm))
		snprintf(buffer, 32, "never");
	return buffer;
}

static const char *state(const json_t *volume)
{
	return json_is_true(json_object_get(volume, "online")) ? "online" : "offline";
}

static const json_t *volume_of(const struct rxvol *rxvol)
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
	const json_t *volume = volume_of(rxvol);

	if (rxvol->made)
		printf("made the store %s\n", rxvol->store);
	printf("volume %s has the id %" PRIu64 "\n", text(volume, "name"), number(volume, "id"));
}

static void show_list(const struct rxvol *rxvol)
{
	const json_t *list = json_object_get(rxvol->result, "volumes"), *volume;
	char used[32], quota[32];
	size_t i;

	json_array_foreach((json_t *)list, i, volume)
	{
		printf("%10" PRIu64 "  %-6s  %-7s  %10s of %-10s  %9" PRIu64 "  %s\n",
		       number(volume, "id"), text(volume, "type"), state(volume),
		       kib(used, number(volume, "used_kib")), quota_text(quota, volume),
		       number(volume, "files"), text(volume, "name"));
	}
}

static void show_id(const json_t *volume, const char *name, const char *label)
{
	if (number(volume, name))
		printf("  %-9s %" PRIu64 "\n", label, number(volume, name));
}

static void show_examine(const struct rxvol *rxvol)
{
	const json_t *volume = volume_of(rxvol);
	char buffer[32];

	printf("volume %s\n", text(volume, "name"));
	printf("  %-9s %" PRIu64 "\n", "id", number(volume, "id"));
	printf("  %-9s %s\n", "type", text(volume, "type"));
	printf("  %-9s %s%s%s\n", "state", state(volume),
	       *text(volume, "offline_message") ? ": " : "", text(volume, "offline_message"));
	show_id(volume, "rw", "rw id");
	show_id(volume, "ro", "ro id");
	show_id(volume, "backup", "backup id");
	printf("  %-9s %s\n", "quota", quota_text(buffer, volume));
	printf("  %-9s %s\n", "used", kib(buffer, number(volume, "used_kib")));
	printf("  %-9s %" PRIu64 "\n", "files", number(volume, "files"));
	printf("  %-9s %s\n", "created", when(buffer, volume, "created"));
	printf("  %-9s %s\n", "copied", when(buffer, volume, "copied"));
	printf("  %-9s %s\n", "updated", when(buffer, volume, "updated"));
	printf("  %-9s %s\n", "cloned", when(buffer, volume, "cloned"));
}

static void show_clone(const struct rxvol *rxvol)
{
	const json_t *volume = volume_of(rxvol);

	printf("volume %s has the id %" PRIu64 "\n", text(volume, "name"), number(volume, "id"));
}

static void show_quota(const struct rxvol *rxvol)
{
	const json_t *volume = volume_of(rxvol);
	char used[32], quota[32];

	printf("%s: %s used, quota %s\n", text(volume, "name"),
	       kib(used, number(volume, "used_kib")), quota_text(quota, volume));
}

static void show_entries(const json_t *list, const char *label)
{
	const json_t *entry;
	size_t i;

	json_array_foreach((json_t *)list, i, entry)
		printf("  %s%s %s\n", label, text(entry, "name"), text(entry, "rights"));
}

static void show_acl(const struct rxvol *rxvol)
{
	const json_t *acl = json_object_get(rxvol->result, "acl");

	/* A change is silent. */
	if (json_object_get(rxvol->request, "acl"))
		return;
	printf("%s\n", text(rxvol->result, "path"));
	show_entries(json_object_get(acl, "positive"), "");
	show_entries(json_object_get(acl, "negative"), "not ");
}

static void show_copy(const struct rxvol *rxvol)
{
	char bytes[32];

	printf("%s: %" PRIu64 " files, directories and links, %s", rxvol->command,
	       number(rxvol->result, "objects"),
	       tools_format_size(bytes, sizeof(bytes), number(rxvol->result, "bytes")));
	if (number(rxvol->result, "unchanged"))
		printf("; %" PRIu64 " there already", number(rxvol->result, "unchanged"));
	if (number(rxvol->result, "cleared"))
		printf("; %" PRIu64 " without their set-id bits", number(rxvol->result, "cleared"));
	if (number(rxvol->result, "skipped"))
		printf("; %" PRIu64 " skipped", number(rxvol->result, "skipped"));
	printf("\n");
}

static void show_check(const struct rxvol *rxvol)
{
	uint64_t faults = number(rxvol->result, "faults");

	if (faults)
		printf("%" PRIu64 " fault%s\n", faults, faults == 1 ? "" : "s");
	else
		printf("the store is sound\n");
}

static void show_text(const struct rxvol *rxvol)
{
	static const struct {
		const char *command;
		void (*show)(const struct rxvol *rxvol);
	} commands[] = {
		{"create", show_create}, {"list", show_list},	{"examine", show_examine},
		{"clone", show_clone},	 {"acl", show_acl},	{"import", show_copy},
		{"export", show_copy},	 {"check", show_check},
	};
	void (*show)(const struct rxvol *rxvol) = show_nothing;

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (!strcmp(commands[i].command, rxvol->command))
			show = commands[i].show;
	if (!strcmp(rxvol->command, "quota") && !json_object_get(rxvol->request, "quota"))
		show = show_quota;
	show(rxvol);
}

int rxvol_show(struct rxvol *rxvol)
{
	if (!rxvol->json) {
		show_text(rxvol);
		return rxvol->status;
	}
	if (!strcmp(rxvol->command, "create"))
		json_object_set_new(rxvol->result, "made_store", json_boolean(rxvol->made));
	if (!strcmp(rxvol->command, "check"))
		json_object_set(rxvol->result, "lines", rxvol->faults);
	if (tools_json_print(json_incref(rxvol->result)))
		return TOOLS_EXIT_FAILURE;
	return rxvol->status;
}
