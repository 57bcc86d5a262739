/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers to a request. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "admin/private.h"
#include "common/clock.h"

#define PROGRESS_NS 200000000u

static const int32_t caller_ids[] = {STORE_ADMINISTRATORS, STORE_AUTHUSER, STORE_ANYUSER};
const struct store_caller admin_caller = {
	.id = 0,
	.ids = caller_ids,
	.id_count = sizeof(caller_ids) / sizeof(caller_ids[0]),
	.administrator = true,
	.unrestricted = true,
};

/* Takes the reference. */
static void give_answer(struct admin_run *run, json_t *object)
{
	/* Without memory there is no answer; the one who waits learns of the end anyway. */
	if (object)
		run->output->answer(run->output->arg, object);
	json_decref(object);
}

static int fail_text(struct admin_run *run, int status, const char *text)
{
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
