/* SPDX-License-Identifier: BSD-2-Clause */
/* dump, restore and restore-from: whole volumes as streams of bytes, and back from a clone. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "admin/locate.h"
#include "volume/dump/dump.h"

#define PATIENCE_MS 200	 /* between questions whether the requester has gone */
#define PIPE_BYTES  4096 /* that a pipe takes without waiting once it is ready */
#define NAMES_MOST  3000 /* bytes of names in one message */

/* One dump or restore. One thread. */
struct transfer {
	struct admin_run *run;
	int fd;
	bool pipe;	/* it may have to be waited for */
	uint64_t total; /* bytes of the stream; 0: not known */
	const char *name;
	bool forbidden; /* an access list that a served volume must not have was reported */
};

static void prepare_transfer(struct transfer *transfer, struct admin_run *run)
{
	struct stat st;

	*transfer = (struct transfer){.run = run, .fd = run->output->directory};
	if (fstat(transfer->fd, &st) || !S_ISREG(st.st_mode)) {
		transfer->pipe = true;
		return;
	}
	transfer->total = (uint64_t)st.st_size;
}

/* Wait until the pipe is ready. 0 or -errno. */
static int wait_for_stream(const struct transfer *transfer, short events)
{
	struct pollfd wait = {.fd = transfer->fd, .events = events};
	int n = 0;

	while (transfer->pipe && n <= 0) {
		n = poll(&wait, 1, PATIENCE_MS);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n <= 0 && admin_stopped(transfer->run))
			return -EINTR;
	}
	return 0;
}

static int write_dump_bytes(void *arg, const void *bytes, size_t length)
{
	const struct transfer *transfer = arg;

	while (length) {
		size_t part = transfer->pipe && length > PIPE_BYTES ? PIPE_BYTES : length;
		int rc = wait_for_stream(transfer, POLLOUT);
		ssize_t n = rc ? 0 : write(transfer->fd, bytes, part);

		if (n < 0 && errno == EAGAIN)
			continue;
		if (rc || n < 0)
			return rc ? rc : -errno;
		bytes = (const char *)bytes + n;
		length -= (size_t)n;
	}
	return 0;
}

static ssize_t read_dump_bytes(void *arg, void *bytes, size_t length)
{
	const struct transfer *transfer = arg;
	ssize_t n;

	do {
		int rc = wait_for_stream(transfer, POLLIN);

		if (rc)
			return rc;
		n = read(transfer->fd, bytes, length);
	} while (n < 0 && (errno == EAGAIN || errno == EINTR));
	return n < 0 ? -errno : n;
}

static bool show_transfer(void *arg, uint64_t bytes, uint64_t objects)
{
	struct transfer *transfer = arg;

	admin_progress(transfer->run, transfer->name, bytes, transfer->total, objects);
	return admin_stopped(transfer->run);
}

static const char *format_date(char text[32], uint32_t date)
{
	time_t seconds = date;
	struct tm tm;

	if (!gmtime_r(&seconds, &tm) || !strftime(text, 32, "%Y-%m-%d %H:%M:%S UTC", &tm))
		snprintf(text, 32, "%" PRIu32, date);
	return text;
}

/* ---- dump ---- */

int admin_fail_snapshot(struct admin_run *run, int rc, const char *name)
{
	assert(rc);
	if (rc == STORE_VBUSY)
		return admin_fail(
			run, 1,
			"%s: another dump, export or restore of it runs; try again when that "
			"has ended",
			name);
	if (rc == STORE_VNOVOL)
		return admin_fail(
			run, 1,
			"%s: the clone was removed or made anew meanwhile, so that what was "
			"read is of several states; begin again",
			name);
	return admin_fail_code(run, rc, "%s", name);
}

/* Member "since": a clone of the volume. 0, or 1 after an error. */
static int find_base(struct admin_run *run, const struct store_volume *volume, uint32_t *since,
		     struct dump_base *base)
{
	const char *name = admin_get_text(run, "since");
	struct store_volume clone;
	int rc;

	*since = 0;
	*base = (struct dump_base){0};
	if (!name)
		return 0;
	rc = admin_find_named(run, name, &clone);
	if (rc)
		return rc;
	if (clone.type == STORE_RW || clone.rw != volume->rw || clone.id == volume->id)
		return admin_fail(run, 1,
				  "%s: is no clone of %s; give its .readonly or .backup volume",
				  clone.name, volume->name);
	*since = clone.id;
	*base = (struct dump_base){.date = clone.cloned ? clone.cloned : 1,
				   .updated = clone.updated};
	return 0;
}

static int fail_dump(const struct transfer *transfer, int rc, bool local)
{
	struct admin_run *run = transfer->run;

	assert(rc);
	if (rc == -EINTR)
		return admin_fail(run, 1, "interrupted");
	if (local)
		return admin_fail(run, 1, "%s: the dump cannot be written: %s", transfer->name,
				  strerror(-rc));
	return admin_fail_code(run, rc, "%s", transfer->name);
}

/* Member "damaged": whether what cannot be dumped is left out. 0, or 2 after an error. */
static int find_wish(struct admin_run *run, bool *skip)
{
	const char *text = admin_get_text(run, "damaged");

	*skip = text && !strcmp(text, "skip");
	return !text || *skip || !strcmp(text, "fail")
		       ? 0
		       : admin_fail(run, 2, "damaged \"%.40s\": give skip or fail", text);
}

/* "VOLUME:/a/b", or the number of an object that has no path; to be freed. */
static char *name_object(struct admin_run *run, const struct store_volume *volume, uint32_t vnode)
{
	struct locate_directory dir = {.image = NULL};
	const struct locate_name *name = NULL;
	struct store_object object;
	char *text = NULL;

	if (vnode == STORE_ROOT_VNODE)
		return locate_join(volume, NULL, "");
	if (!store_object(run->store, volume->id, vnode, &object) &&
	    !locate_directory(run->store, &object.parent, &dir))
		name = locate_find(&dir, vnode);
	if (name)
		text = locate_join(volume, &dir, name->name);
	else if (asprintf(&text, "%s: vnode %u", volume->name, vnode) < 0)
		text = NULL;
	locate_forget(&dir);
	return text;
}

/* The dump was not made: name the reasons, as far as they have room. Returns 1. */
static int fail_damaged(struct admin_run *run, const struct store_volume *volume,
			const struct dump_damage *damage)
{
	char names[NAMES_MOST] = "";
	size_t used = 0, told = 0, all = 0;

	for (size_t i = 0; i < damage->count; i++) {
		char *name = damage->item[i].below
				     ? NULL
				     : name_object(run, volume, damage->item[i].vnode);
		size_t length = name ? strlen(name) + 2 : 0;

		all += !damage->item[i].below;
		if (name && used + length < sizeof(names)) {
			snprintf(names + used, sizeof(names) - used, "%s%s", told ? ", " : "",
				 name);
			used += strlen(names + used);
			told++;
		}
		free(name);
	}
	return admin_fail(
		run, 1,
		"%s: cannot be dumped, since %zu object%s damaged: %s%s; restore or remove "
		"what is damaged, or leave it out with --damaged skip",
		volume->name, all, all == 1 ? " is" : "s are", names,
		told < all ? " and others" : "");
}

static void report_left_out(struct admin_run *run, const struct store_volume *volume,
			    const struct dump_damage *damage)
{
	for (size_t i = 0; i < damage->count; i++) {
		char *name = name_object(run, volume, damage->item[i].vnode);

		if (name)
			admin_skipped(run, name,
				      damage->item[i].below ? "is in a damaged directory"
							    : "is damaged");
		free(name);
	}
}

/* One dump. One thread. */
struct dumping {
	struct transfer transfer;
	struct store_volume volume;
	struct store_snapshot *snapshot;
	struct dump_base base;
	struct dump_counts counts;
	struct dump_damage damage;
};

/* 0, or the status after an error. */
static int run_dump(struct dumping *dumping, bool skip)
{
	const struct dump_output output = {
		.write = write_dump_bytes, .progress = show_transfer, .arg = &dumping->transfer};
	struct admin_run *run = dumping->transfer.run;
	struct dump_damage *damage = &dumping->damage;
	bool local = false;
	int rc = skip ? dump_find_damage(run->store, dumping->snapshot, &output, damage) : 0;

	if (!rc && dump_is_damaged(damage, STORE_ROOT_VNODE))
		return fail_damaged(run, &dumping->volume, damage);
	if (!rc)
		rc = dump_write(run->store, dumping->snapshot, &dumping->base, &output,
				&dumping->counts, &local);
	if (!rc)
		return 0;
	if ((rc == -EIO || rc == -EACCES) && !local && !skip &&
	    !dump_find_damage(run->store, dumping->snapshot, &output, damage) && damage->count)
		return fail_damaged(run, &dumping->volume, damage);
	return fail_dump(&dumping->transfer, rc, local);
}

static int finish_dump(struct dumping *dumping)
{
	const struct transfer *transfer = &dumping->transfer;
	const struct dump_counts *counts = &dumping->counts;
	struct admin_run *run = transfer->run;
	size_t skipped = dumping->damage.count;

	if (!transfer->pipe && fsync(transfer->fd))
		return fail_dump(transfer, -errno, true);
	report_left_out(run, &dumping->volume, &dumping->damage);
	return admin_done(run,
			  json_pack("{s:s, s:I, s:I, s:I, s:I}", "name", dumping->volume.name,
				    "objects", (json_int_t)counts->objects, "unchanged",
				    (json_int_t)counts->unchanged, "skipped", (json_int_t)skipped,
				    "bytes", (json_int_t)counts->bytes),
			  false, skipped ? 1 : 0);
}

int admin_dump(struct admin_run *run)
{
	struct dumping dumping = {.damage = {0}};
	struct store_volume *volume = &dumping.volume;
	uint32_t since;
	bool skip;
	int rc, end;

	if (find_wish(run, &skip))
		return 2;
	if (admin_find_volume(run, volume) || find_base(run, volume, &since, &dumping.base))
		return 1;
	prepare_transfer(&dumping.transfer, run);
	dumping.transfer.name = volume->name;
	dumping.transfer.total = since ? 0 : volume->used_kib * 1024;
	dumping.base.without = skip ? &dumping.damage : NULL;
	rc = store_snapshot_take(run->store, volume->id, since, &dumping.snapshot);
	if (rc)
		return admin_fail_snapshot(run, rc, volume->name);
	rc = run_dump(&dumping, skip);
	end = store_snapshot_end(dumping.snapshot);
	if (!rc)
		rc = end ? admin_fail_snapshot(run, end, volume->name) : finish_dump(&dumping);
	dump_forget_damage(&dumping.damage);
	return rc;
}

/* ---- restore ---- */

static int permit_acl(void *arg, const struct store_acl *acl, uint32_t vnode)
{
	struct transfer *transfer = arg;
	char what[STORE_VOLNAME_MAX + 64];

	snprintf(what, sizeof(what), "%s: directory %u", transfer->name, vnode);
	transfer->forbidden = admin_acl_permit(transfer->run, acl, what) != 0;
	return transfer->forbidden ? -EACCES : 0;
}

/* Whether the dump may become what the volume has. 0, or 1 after an error. */
static int check_onto(struct admin_run *run, const struct store_volume *volume,
		      const struct dump_info *info)
{
	char there[32], other[32];

	if (volume->type != STORE_RW)
		return admin_fail(run, 1, "%s: is a clone; restore the read-write volume",
				  volume->name);
	if (admin_get_flag(run, "replace"))
		return 0;
	if (!info->from)
		return admin_fail(
			run, 1,
			"%s: a volume with this name exists already, and the dump is a "
			"complete one; choose another name, or have it replace the volume "
			"with --replace",
			volume->name);
	if (info->base && volume->updated < info->base)
		return admin_fail(
			run, 1,
			"%s: was changed last at %s, but the dump begins with its state of "
			"%s; restore the dump before this one first",
			volume->name, format_date(there, volume->updated),
			format_date(other, info->base));
	if (volume->updated > info->header.volume.updated)
		return admin_fail(
			run, 1,
			"%s: was changed at %s, after %s, the last change in the dump; restore "
			"into another volume, or drop those changes with --replace",
			volume->name, format_date(there, volume->updated),
			format_date(other, info->header.volume.updated));
	return 0;
}

/* A new volume. Without a wish it has the number that it had, if that is free, so that what refers to it leads to it again. */
static int begin_new(struct admin_run *run, const char *name, uint32_t id,
		     const struct dump_info *info, struct store_restore **restore)
{
	uint32_t old = info->header.volume.rw;
	int rc;

	assert(!info->from);
	if (id || !old || old > INT32_MAX)
		return store_restore_begin(run->store, name, id, restore);
	rc = store_restore_begin(run->store, name, old, restore);
	return rc == STORE_VVOLEXISTS ? store_restore_begin(run->store, name, 0, restore) : rc;
}

/* *restore of a new volume, or onto the one of that name. 0, or the status after an error. */
static int begin_restore(struct admin_run *run, const struct dump_info *info,
			 struct store_restore **restore)
{
	const char *name = admin_get_text(run, "volume");
	uint64_t id = admin_get_number(run, "id", 0);
	struct store_volume volume;
	char date[32];
	int rc = admin_seek_volume(run, name, &volume);

	if (!rc) {
		rc = check_onto(run, &volume, info);
		if (rc)
			return rc;
		rc = store_restore_onto(run->store, volume.id, restore);
		return rc ? admin_fail_code(run, rc, "%s", volume.name) : 0;
	}
	if (info->from)
		return admin_fail(
			run, 1,
			"%s: no such volume, and the dump has only what changed since %s; "
			"restore the dump before it first, then this one onto that volume",
			name, format_date(date, info->from));
	if (id > INT32_MAX)
		return admin_fail(run, 2, "id %" PRIu64 ": at most %d", id, INT32_MAX);
	rc = admin_check_name(run, name);
	if (rc)
		return rc;
	rc = begin_new(run, name, (uint32_t)id, info, restore);
	if (rc == -EEXIST)
		return admin_fail(run, 1, "%s: a volume with this name is being restored", name);
	return rc ? admin_fail_code(run, rc, "%s", name) : 0;
}

static int fail_restore(const struct transfer *transfer, int rc, const char *message)
{
	struct admin_run *run = transfer->run;

	assert(rc);
	if (transfer->forbidden)
		return 1;
	if (rc == -EBADMSG && *message)
		return admin_fail(run, 1, "%s: the dump cannot be restored: %s", transfer->name,
				  message);
	if (rc == -EINTR)
		return admin_fail(run, 1, "interrupted");
	return admin_fail_code(run, rc, "%s", transfer->name);
}

static int run_restore(struct transfer *transfer, struct dump_reader *reader,
		       struct dump_info *info, struct store_restore *restore, char *message)
{
	struct admin_run *run = transfer->run;
	uint32_t id = store_restore_id(restore);
	struct dump_counts counts;
	uint64_t lost = 0;
	int rc = dump_read_vnodes(reader, restore, info, &counts), end;

	if (!rc)
		rc = store_restore_finish(restore, &info->header, &lost, message);
	end = store_restore_end(restore);
	admin_changed_volume(run, id);
	if (rc || end)
		return fail_restore(transfer, rc ? rc : end, message);
	return admin_done(run,
			  json_pack("{s:s, s:I, s:I, s:I, s:I, s:I}", "name", transfer->name, "id",
				    (json_int_t)id, "objects", (json_int_t)counts.objects,
				    "unchanged", (json_int_t)counts.unchanged, "nameless",
				    (json_int_t)lost, "bytes", (json_int_t)counts.bytes),
			  true, 0);
}

int admin_restore(struct admin_run *run)
{
	struct transfer transfer;
	const struct dump_input input = {.read = read_dump_bytes,
					 .progress = show_transfer,
					 .fits = !admin_get_flag(run, "replace"),
					 .permit = run->options->forbids ? permit_acl : NULL,
					 .arg = &transfer};
	char message[STORE_MESSAGE_MAX];
	struct store_restore *restore;
	struct dump_reader *reader;
	struct dump_info info;
	int rc;

	prepare_transfer(&transfer, run);
	transfer.name = admin_get_text(run, "volume");
	rc = dump_read_begin(run->store, &input, &reader, &info, message);
	if (rc)
		return fail_restore(&transfer, rc, message);
	rc = begin_restore(run, &info, &restore);
	if (!rc)
		rc = run_restore(&transfer, reader, &info, restore, message);
	dump_read_end(reader);
	return rc;
}

/* ---- restore-from ---- */

int admin_restore_from(struct admin_run *run)
{
	struct store_volume clone, volume;
	int rc;

	if (admin_find_volume(run, &clone))
		return 1;
	if (clone.type == STORE_RW)
		return admin_fail(run, 1,
				  "%s: is no clone; give its .readonly or .backup volume, whose "
				  "contents it is to have again",
				  clone.name);
	rc = store_volume_revert(run->store, clone.id);
	admin_changed_volume(run, clone.rw);
	if (!rc)
		rc = run->store->ops->volume(run->store, clone.rw, &volume);
	if (rc)
		return admin_fail_code(run, rc, "%s", clone.name);
	return admin_done(run,
			  json_pack("{s:s, s:s, s:I}", "name", volume.name, "clone", clone.name,
				    "id", (json_int_t)volume.id),
			  true, 0);
}
