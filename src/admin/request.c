/* SPDX-License-Identifier: BSD-2-Clause */
/* A request: its members, its answer, and bytes of names as text. */
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/private.h"
#include "common/clock.h"
#include "common/failure.h"
#include "common/utf8.h"

/* ---- bytes of names as UTF-8 text, and back ---- */

/* \xNN in place of what has no text; with `reversible` also of backslashes. */
static char *escape_text(const char *bytes, bool reversible)
{
	const unsigned char *at = (const unsigned char *)bytes;
	char *text = malloc(strlen(bytes) * 4 + 1), *to = text;

	while (text && *at) {
		size_t length = utf8_character_bytes(at);

		if (!length || *at < ' ' || *at == 0x7f || (*at == 0xc2 && at[1] < 0xa0) ||
		    (reversible && *at == '\\')) {
			to += sprintf(to, "\\x%02x", *at++);
			continue;
		}
		memcpy(to, at, length);
		to += length;
		at += length;
	}
	if (text)
		*to = 0;
	return text;
}

char *admin_text(const char *bytes)
{
	return escape_text(bytes, true);
}

json_t *admin_show(const char *bytes)
{
	char *text = escape_text(bytes, false);
	json_t *json = text ? json_string_nocheck(text) : NULL;

	free(text);
	return json;
}

static int digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

char *admin_bytes(const char *text)
{
	char *bytes = malloc(strlen(text) + 1), *to = bytes;

	while (bytes && *text) {
		if (*text != '\\') {
			*to++ = *text++;
			continue;
		}
		int high = text[1] == 'x' ? digit(text[2]) : -1;
		int low = high >= 0 ? digit(text[3]) : -1;

		if (low < 0 || (high == 0 && low == 0)) {
			free(bytes);
			return NULL;
		}
		*to++ = (char)(high << 4 | low);
		text += 4;
	}
	if (bytes)
		*to = 0;
	return bytes;
}

/* ---- members of a request ---- */

#define TEXT_MAX   4095
#define LIST_MAX   64
#define NUMBER_MAX ((json_int_t)1 << 53)

/* The type that is required of a member; NULL: it has that type. */
static const char *wrong_kind(const json_t *value, enum admin_kind kind)
{
	switch (kind) {
	case ADMIN_TEXT:
	case ADMIN_ANY_TEXT:
		if (!json_is_string(value) || json_string_length(value) > TEXT_MAX ||
		    strlen(json_string_value(value)) != json_string_length(value))
			return "a text of at most 4095 bytes";
		return kind == ADMIN_TEXT && !json_string_length(value) ? "a text that is not empty"
									: NULL;
	case ADMIN_NUMBER:
		return json_is_integer(value) && json_integer_value(value) >= 0 &&
				       json_integer_value(value) <= NUMBER_MAX
			       ? NULL
			       : "a whole number from 0 to 2^53";
	case ADMIN_FLAG:
		return json_is_boolean(value) ? NULL : "true or false";
	case ADMIN_LIST:
		return json_is_array(value) && json_array_size(value) <= LIST_MAX
			       ? NULL
			       : "a list of at most 64 objects";
	}
	return "something else";
}

static const struct admin_member *find_member(const char *name, const struct admin_member *members,
					      size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(members[i].name, name))
			return &members[i];
	return NULL;
}

int admin_members_check(const json_t *object, const struct admin_member *members, size_t count,
			char message[STORE_MESSAGE_MAX])
{
	const char *name, *wrong;
	json_t *value;

	json_object_foreach((json_t *)object, name, value)
	{
		const struct admin_member *member = find_member(name, members, count);

		if (!member)
			return fail_with(-1, message, STORE_MESSAGE_MAX,
					 "request: unknown member \"%.40s\"", name);
		wrong = wrong_kind(value, member->kind);
		if (wrong)
			return fail_with(-1, message, STORE_MESSAGE_MAX,
					 "request: member \"%s\" must be %s", name, wrong);
	}
	for (size_t i = 0; i < count; i++)
		if (members[i].required && !json_object_get(object, members[i].name))
			return fail_with(-1, message, STORE_MESSAGE_MAX,
					 "request: member \"%s\" is missing", members[i].name);
	return 0;
}

const char *admin_get_text(const struct admin_run *run, const char *name)
{
	const json_t *value = json_object_get(run->request, name);

	assert(!value || json_is_string(value));
	return json_string_value(value);
}

bool admin_get_flag(const struct admin_run *run, const char *name)
{
	const json_t *value = json_object_get(run->request, name);

	assert(!value || json_is_boolean(value));
	return json_is_true(value);
}

uint64_t admin_get_number(const struct admin_run *run, const char *name, uint64_t missing)
{
	const json_t *value = json_object_get(run->request, name);

	assert(!value || json_is_integer(value));
	return value ? (uint64_t)json_integer_value(value) : missing;
}

/* ---- its answer ---- */

#define PROGRESS_NS 200000000u

static const int32_t caller_ids[] = {STORE_ADMINISTRATORS, STORE_AUTHUSER, STORE_ANYUSER};
const struct store_caller admin_caller = {
	.id = 0,
	.ids = caller_ids,
	.id_count = sizeof(caller_ids) / sizeof(caller_ids[0]),
	.administrator = true,
	.unrestricted = true,
};

/* The function takes the reference. */
static void give_answer(struct admin_run *run, json_t *object)
{
	/* There is no answer without memory; the requester learns of the end anyway. */
	if (object)
		run->output->answer(run->output->arg, object);
	json_decref(object);
}

static int fail_text(struct admin_run *run, int status, const char *text)
{
	assert(status);
	give_answer(run, json_pack("{s:o, s:i}", "error", admin_show(text), "status", status));
	return status;
}

int admin_fail(struct admin_run *run, int status, const char *format, ...)
{
	char text[ADMIN_PATH_MAX + STORE_MESSAGE_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return fail_text(run, status, text);
}

const char *admin_code_text(int code)
{
	switch (code) {
	case STORE_VSALVAGE:
		return "the volume's own record is damaged; see \"rxvol check\", and restore it from a "
		       "backup";
	case STORE_VNOVNODE:
		return "the object was removed meanwhile";
	case STORE_VNOVOL:
		return "no such volume; \"rxvol list\" shows those of the store";
	case STORE_VVOLEXISTS:
		return "a volume with this number exists already; choose another one with --id";
	case STORE_VDISKFULL:
		return "the disk is full; free space or move the store to a larger disk";
	case STORE_VOVERQUOTA:
		return "the volume's quota is used up; \"rxvol quota\" changes it";
	case STORE_VBUSY:
		return "the volume is busy; try again";
	case -EROFS:
		return "a clone cannot be changed; change the read-write volume and clone it again";
	case -EIO:
		return "the store is damaged there; see \"rxvol check\"";
	default:
		return code < 0 ? strerror(-code) : "an unknown result of the store";
	}
}

int admin_fail_code(struct admin_run *run, int code, const char *format, ...)
{
	char text[ADMIN_PATH_MAX + STORE_MESSAGE_MAX], what[ADMIN_PATH_MAX + 128];
	va_list args;

	assert(code);
	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	snprintf(text, sizeof(text), "%s: %s", what, admin_code_text(code));
	return fail_text(run, 1, text);
}

int admin_done(struct admin_run *run, json_t *result, bool changed, int status)
{
	int rc = changed ? store_flush(run->store) : 0;

	if (rc || !result) {
		json_decref(result);
		return rc ? admin_fail_code(run, rc,
					    "the change was made, but is not yet on the disk")
			  : admin_fail(run, 1, "no memory for the result");
	}
	give_answer(run, json_pack("{s:o, s:i}", "result", result, "status", status));
	return status;
}

void admin_skipped(struct admin_run *run, const char *path, const char *reason)
{
	give_answer(run, json_pack("{s:o, s:o}", "skipped", admin_show(path), "reason",
				   admin_show(reason)));
}

void admin_fault(struct admin_run *run, const char *line)
{
	give_answer(run, json_pack("{s:o}", "fault", admin_show(line)));
}

void admin_part(struct admin_run *run, const char *name, json_t *part)
{
	give_answer(run, json_pack("{s:o}", name, part));
}

static bool wants_progress(struct admin_run *run)
{
	uint64_t now = monotonic_ns();

	if (!admin_get_flag(run, "progress") || now - run->shown_ns < PROGRESS_NS)
		return false;
	run->shown_ns = now;
	return true;
}

void admin_count(struct admin_run *run, uint64_t done, uint64_t total)
{
	if (wants_progress(run))
		give_answer(run, json_pack("{s:{s:I, s:I}}", "progress", "done", (json_int_t)done,
					   "all", (json_int_t)total));
}

void admin_progress(struct admin_run *run, const char *path, uint64_t bytes, uint64_t total,
		    uint64_t files)
{
	if (!wants_progress(run))
		return;
	give_answer(run, json_pack("{s:{s:o, s:I, s:I, s:I}}", "progress", "path", admin_show(path),
				   "bytes", (json_int_t)bytes, "total", (json_int_t)total, "files",
				   (json_int_t)files));
}

bool admin_stopped(const struct admin_run *run)
{
	return run->output->stopped && run->output->stopped(run->output->arg);
}

void admin_changed(const struct admin_run *run, const struct store_changes *changes)
{
	if (run->options->changed && changes->count)
		run->options->changed(run->options->arg, changes);
}

void admin_changed_volume(const struct admin_run *run, uint32_t id)
{
	struct store_changes changes = {.count = 1};

	changes.change[0] = (struct store_change){.fid = {.volume = id}, .for_all = true};
	admin_changed(run, &changes);
}
