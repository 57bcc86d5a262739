/* SPDX-License-Identifier: BSD-2-Clause */
/* Taking the bytes of a StoreData. */
#include "volume/store/op/write.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "volume/store/maint/keeper.h"
#include "volume/store/maint/lost.h"
#include "volume/store/txn/space.h"
#include "volume/store/txn/writer.h"

/* KiB that are promised to a writer ahead of its bytes: as many as have come, within these limits. */
#define AHEAD_LEAST 64
#define AHEAD_MOST  (16u << 10)

/* -- begin -- */

static int copy_caller(struct store_caller *to, const struct store_caller *from)
{
	int32_t *ids = malloc(from->id_count * sizeof(*ids) + 1);

	if (!ids)
		return -ENOMEM;
	memcpy(ids, from->ids, from->id_count * sizeof(*ids));
	*to = *from;
	to->ids = ids;
	return 0;
}

static void free_writer(struct store_writer *writer)
{
	volumes_take_back(&writer->core->volumes, writer->fid.volume, writer->promise,
			  writer->promised);
	space_give_back(writer->core, writer->room);
	free(writer->buffer);
	free((void *)(uintptr_t)writer->caller.ids);
	free(writer);
}

static int check_write_rights(const struct found *found, const struct store_writer *writer)
{
	struct subject subject = lookup_subject(found, &writer->caller);
	int result;

	if (found->version->v.kind != STORE_FILE)
		return -EISDIR;
	if (found->view.type != STORE_RW)
		return -EROFS;
	if (writer->offset > STORE_FILE_MAX || writer->length > STORE_FILE_MAX - writer->offset)
		return -EFBIG;
	result = rights_write(&subject);
	return result ? result : rights_set(&subject, &writer->set);
}

static uint64_t take_smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* KiB of the store that may be promised when so many bytes have come. */
static uint64_t compute_reach(const struct store_writer *writer, uint64_t came)
{
	uint64_t kib = came / 1024, ahead = kib;

	if (came == writer->length)
		return UINT64_MAX;
	if (ahead < AHEAD_LEAST)
		ahead = AHEAD_LEAST;
	return kib + take_smaller(ahead, AHEAD_MOST);
}

/* Promise what is needed up to the reach, beyond what was. */
static int promise_space_up_to(struct store_writer *writer, uint64_t reach)
{
	uint64_t growth = take_smaller(reach, writer->need.growth) - writer->promised;
	uint64_t disk = take_smaller(reach, writer->need.disk) - writer->reserved;
	int result = volumes_promise(&writer->core->volumes, writer->fid.volume, growth,
				     writer->promised, SPACE_SPARE, &writer->promise);

	assert(growth <= writer->need.growth && disk <= writer->need.disk);
	if (result == STORE_VOVERQUOTA) {
		writer->promised = 0;
		return result;
	}
	/* Of a volume that is gone, nothing was promised; the commit says what is wrong with it. */
	if (!result)
		writer->promised += growth;
	result = space_promise(writer->core, disk, writer->room);
	if (result == STORE_VDISKFULL)
		writer->room = 0;
	if (result)
		return result;
	writer->reserved += disk;
	writer->room += disk;
	return 0;
}

/*
 * Before bytes are taken, `came` with these: they are promised, and a step ahead of them. A client that announces much
 * and sends little keeps little from others.
 */
static int promise_space_ahead(struct store_writer *writer, uint64_t came)
{
	uint64_t reach = compute_reach(writer, came), kib = came / 1024;

	/* Steps of half of what is ahead: the disk is asked now and then only. */
	if (came < writer->length && writer->reserved > kib &&
	    writer->reserved - kib > (reach - kib) / 2)
		return 0;
	return promise_space_up_to(writer, reach > writer->reserved ? reach : writer->reserved);
}

/*
 * The file needs quota for its growth, and disk space for all new bytes: the bytes that they replace stay until the
 * commit. Holes need none. All of it must be free now; the promise grows with the bytes that come.
 */
static int reserve_space(struct store_writer *writer, const struct found *found,
			 uint64_t new_length)
{
	uint64_t before = space_blocks(&found->version->v), after = space_blocks_of(new_length);
	struct space_need need = {.growth = after > before ? after - before : 0,
				  .spare = SPACE_SPARE,
				  .disk = writer->length ? space_blocks_of(writer->length) : 0};
	struct volrec volume;
	int result = volumes_get(&writer->core->volumes, found->fid.volume, &volume);

	if (!result)
		result = space_check(writer->core, &volume, &need);
	if (result)
		return result;
	writer->need.growth = need.growth;
	writer->need.disk = need.disk;
	return promise_space_up_to(writer, compute_reach(writer, 0));
}

/* Whether the file may be a small one afterwards. */
static bool may_become_small(const struct store_writer *writer, const struct version *version,
			     uint64_t new_length)
{
	uint64_t kept = take_smaller(version->v.length, writer->file_length);

	return new_length <= writer->core->small_max &&
	       (!version->content.count ||
		(!writer->offset && writer->offset + writer->length >= kept));
}

static int prepare_writer(struct store_writer *writer, const struct found *found)
{
	const struct version *version = found->version;
	uint64_t kept = take_smaller(version->v.length, writer->file_length);
	uint64_t end = writer->offset + writer->length;
	uint64_t new_length = kept > end ? kept : end;
	int result = check_write_rights(found, writer);

	if (!result)
		result = reserve_space(writer, found, new_length);
	if (result)
		return result;
	if (may_become_small(writer, version, new_length)) {
		writer->buffer = malloc(writer->length + 1);
		return writer->buffer ? 0 : -ENOMEM;
	}
	return writer->length ? writer_run(writer, &writer->main, &version->content, writer->offset)
			      : 0;
}

int write_begin(struct store *store, const struct store_caller *caller, const struct store_fid *fid,
		const struct store_set *set, uint64_t offset, uint64_t length, uint64_t file_length,
		struct store_writer **out)
{
	struct store_writer *writer;
	struct found found;
	int result = lookup(core_of(store), caller, fid, &found);

	if (result)
		return result;
	writer = calloc(1, sizeof(*writer));
	if (!writer || copy_caller(&writer->caller, caller)) {
		free(writer);
		lookup_end(&found);
		return -ENOMEM;
	}
	writer->core = core_of(store);
	writer->fid = *fid;
	writer->owner = (struct store_owner){found.view.group, fid->vnode, fid->unique};
	writer->set = *set;
	writer->offset = offset;
	writer->length = length;
	writer->file_length = file_length;
	result = prepare_writer(writer, &found);
	lookup_end(&found);
	if (result)
		write_abort(writer);
	else
		*out = writer;
	return result;
}

/* -- bytes -- */

static size_t sum_input_lengths(const struct iovec *iov, int count)
{
	size_t total = 0;

	for (int i = 0; i < count; i++)
		total += iov[i].iov_len;
	return total;
}

/* The free space of the disk is without these bytes by now. */
static void note_written_bytes(struct store_writer *writer, uint64_t bytes)
{
	uint64_t kib = (writer->taken + bytes) / 1024 - writer->taken / 1024;

	assert(writer->taken + bytes <= writer->length);
	writer->taken += bytes;
	if (kib > writer->room)
		kib = writer->room;
	writer->room -= kib;
	space_give_back(writer->core, kib);
}

int write_bytes(struct store_writer *writer, const struct iovec *iov, int count)
{
	size_t total = sum_input_lengths(iov, count);
	int result = 0;

	if (total > writer->length - writer->taken)
		return -EINVAL;
	result = promise_space_ahead(writer, writer->taken + total);
	if (result)
		return result;
	if (writer->buffer) {
		for (int i = 0; i < count; i++) {
			memcpy(writer->buffer + writer->taken, iov[i].iov_base, iov[i].iov_len);
			writer->taken += iov[i].iov_len;
		}
	} else if (total) {
		result = store_run_write(writer->main.run, iov, count);
		note_written_bytes(writer, total);
	}
	writer->core->bytes_written += total;
	return result == -ENOSPC || result == -EDQUOT ? STORE_VDISKFULL : result;
}

/* -- commit -- */

/* Bytes that were taken for a small file go to an object. */
static int move_buffer_to_run(struct store_writer *writer)
{
	static const struct store_content empty;
	int result = writer->length ? writer_run(writer, &writer->main, &empty, writer->offset) : 0;

	if (!result && writer->length)
		result = writer_put(writer->main.run, writer->buffer, writer->length);
	free(writer->buffer);
	writer->buffer = NULL;
	return result;
}

static int write_prefix_run(struct store_writer *writer, const struct blob *blob)
{
	static const struct store_content empty;
	int result = writer_run(writer, &writer->prefix, &empty, 0);

	if (!result)
		result = writer_put(writer->prefix.run, blob->bytes, blob->length);
	return result ? result : writer_finish(writer, &writer->prefix);
}

/* The bytes of the small file go to an object. */
static int move_small_to_run(struct store_writer *writer)
{
	struct found found;
	struct blob *blob;
	int result = lookup(writer->core, &writer->caller, &writer->fid, &found);

	if (result)
		return result;
	piece_end(&writer->prefix, false);
	writer->prefix_of = found.version->v.small;
	if (writer->prefix_of) {
		result = lookup_blob(writer->core, &found, &blob);
		if (!result) {
			writer->prefix_length = blob->length;
			result = write_prefix_run(writer, blob);
			blob_unref(blob);
		} else if (result == -EAGAIN) {
			writer->prefix_of = 0;
			result = 0;
		}
	}
	lookup_end(&found);
	return result;
}

/* Bytes that the run added to an object go to a new one. The old one stays until its run ends. */
static int move_run_to_new(struct store_writer *writer)
{
	static const struct store_content empty;
	struct piece old = writer->main;
	struct store_view *view;
	int result = store_view_open(writer->core->data, &writer->owner, &old.patch,
				     old.patch.extent[0].end, &view);

	writer->main = (struct piece){0};
	writer->finished = false;
	if (!result) {
		result = writer_run(writer, &writer->main, &empty, writer->offset);
		if (!result)
			result = writer_copy(view, &old.patch.extent[0], writer->main.run);
		store_view_close(view);
	}
	piece_end(&old, false);
	return result == -ENOENT ? -EIO : result;
}

static int commit_writer_once(struct store_writer *writer, struct store_status *status,
			      struct store_changes *changes)
{
	int result = 0;

	if (!writer->buffer && !writer->finished) {
		if (writer->main.run)
			result = writer_finish(writer, &writer->main);
		writer->finished = true;
	}
	return result ? result : commit_run(writer, status, changes);
}

static int commit_until_done(struct store_writer *writer, int result, struct store_status *status,
			     struct store_changes *changes)
{
	for (;; result = commit_writer_once(writer, status, changes)) {
		if (result == COMMIT_RUN)
			result = move_buffer_to_run(writer);
		else if (result == COMMIT_PREFIX)
			result = move_small_to_run(writer);
		else if (result == COMMIT_COMPACT)
			result = compact_content(writer);
		else if (result == COMMIT_MOVE)
			result = move_run_to_new(writer);
		else
			return result;
		if (result)
			return result;
	}
}

static void end_writer(struct store_writer *writer, bool kept)
{
	piece_end(&writer->main, kept);
	piece_end(&writer->prefix, kept && writer->prefix_used);
	piece_end(&writer->compact, kept && writer->compact_used);
	store_content_free(&writer->window);
	free_writer(writer);
}

static int translate_space_error(int result)
{
	return result == -ENOSPC || result == -EDQUOT ? STORE_VDISKFULL : result;
}

static bool is_commit_unfinished(int result)
{
	return result == COMMIT_RUN || result == COMMIT_PREFIX || result == COMMIT_COMPACT ||
	       result == COMMIT_MOVE;
}

/* An unfinished commit goes on, on a thread that may wait. */
static int end_submitted_commit(struct store_writer *writer, int result)
{
	if (is_commit_unfinished(result)) {
		writer->caller.later = NULL;
		return STORE_AGAIN;
	}
	end_writer(writer, !result);
	return translate_space_error(result);
}

int write_commit(struct store_writer *writer, struct store_status *status,
		 struct store_changes *changes)
{
	struct core *core = writer->core;
	struct store_fid fid = writer->fid;
	bool sync = writer->set.mask & STORE_SET_SYNC && core->durability == STORE_LAZY;
	int result = -EINVAL;

	if (writer->taken == writer->length) {
		if (writer->buffer && !sync)
			result = commit_later(writer, status, changes, end_submitted_commit);
		else
			result = commit_writer_once(writer, status, changes);
		if (result == STORE_LATER)
			return result;
		result = commit_until_done(writer, result, status, changes);
	}
	end_writer(writer, !result);
	if (!result && sync)
		result = keeper_flush(core->keeper);
	if (!result && sync)
		result = lost_check(core, &fid);
	return translate_space_error(result);
}

void write_abort(struct store_writer *writer)
{
	if (writer)
		end_writer(writer, false);
}
