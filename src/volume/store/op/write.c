/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * StoreData: the bytes that a caller sends, and one transaction for them, which applies to the version that it finds. If that
 * version needs something else first, for example another rest of a block, it is prepared in the thread of the caller, and
 * the transaction is tried again.
 */
#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "volume/store/maint/maint.h"
#include "volume/store/op/gather.h"
#include "volume/store/op/op.h"
#include "volume/store/txn/change.h"
#include "volume/store/txn/lookup.h"
#include "volume/store/txn/space.h"

/* KiB that are promised to a writer ahead of its bytes: as many as have come, within these limits. */
#define AHEAD_LEAST 64
#define AHEAD_MOST  (16u << 10)

#define TRIES	    100 /* against endless races, which only a fault could cause */

/* Results of the transaction. */
#define COMMIT_RUN    1001 /* the bytes must be in an object */
#define COMMIT_PREFIX 1002 /* so must be those of the small file */
#define COMMIT_MOVE \
	1003 /* so must the bytes, in another one: what the run has copied is outdated, or its object is dead */
#define COMMIT_CUT 1004 /* too many slots go for one transaction: some must go before */

/* A run of bytes that waits for its commit. */
struct piece {
	struct store_run *run; /* NULL: there is none */
	struct store_patch patch; /* belongs to the run */
};

/* One thread at a time. */
struct store_writer {
	struct core *core;
	struct store_caller caller; /* a copy, with `ids` of its own */
	struct store_fid fid;
	struct store_owner owner;
	uint32_t created; /* the date of the volume's contents, which others do not have */
	struct store_set set;
	uint64_t offset, length, file_length;
	uint64_t
		taken; /* bytes; of contents that come in ranges, those of the ranges that have begun */
	struct {
		uint64_t growth, disk;
	} need;		   /* KiB of the volume and of the disk that the whole store takes */
	uint64_t promised; /* KiB by which the volume may grow; of need.growth */
	uint64_t promise;  /* as volumes_take_back() wants it */
	uint64_t reserved; /* KiB of the disk that were promised so far; of need.disk */
	uint64_t room;	   /* of these, KiB that were not written yet */
	uint8_t *buffer;   /* of `length` bytes, if they may become a small file; else NULL */
	struct piece main;
	bool finished; /* main.patch is complete */
	struct gather
		*gather; /* of contents that come in ranges, or of one of the ranges: a reference */
	int refused;	 /* why no range begins any more; the gather's lock covers it */
	/* The bytes of a small file that becomes a large one, for the version with `prefix_of`. */
	struct piece prefix;
	uint64_t prefix_of;
	bool prefix_used; /* by the transaction */
	unsigned moves;
};

/* -- what a run replaces -- */

struct current {
	struct found found;
	struct blob *blob; /* of a small file, if it is needed */
	struct store_base base;
};

static uint64_t take_smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static struct store_base describe_base(const struct store_writer *writer,
				       const struct version *version,
				       const struct store_content *content)
{
	return (struct store_base){.content = content,
				   .small = version->v.small,
				   .kept = take_smaller(version->v.length, writer->file_length)};
}

static void leave_current(struct current *current)
{
	blob_unref(current->blob);
	lookup_end(&current->found);
}

/* The version of now, with its bytes if it is small, and all slots. */
static int find_current(struct store_writer *writer, struct current *current)
{
	const struct store_content *content = NULL;
	int result = -EAGAIN;

	for (unsigned i = 0; i < TRIES && result == -EAGAIN; i++) {
		*current = (struct current){0};
		result = lookup(writer->core, &writer->caller, &writer->fid, &current->found);
		if (result)
			return result;
		if (current->found.version->v.small)
			result = lookup_blob(writer->core, &current->found, &current->blob);
		if (!result)
			result = lookup_content(writer->core, &current->found, &content);
		current->base = describe_base(writer, current->found.version, content);
		if (result)
			leave_current(current);
	}
	if (!result && current->blob)
		current->base.bytes = current->blob->bytes;
	return result == -EAGAIN ? -EIO : result;
}

/* -- pieces -- */

static const struct store_content no_content;
static const struct store_base no_base = {.content = &no_content};

/* Damage is named where it is read. */
static int translate_base_error(struct store_writer *writer, int result)
{
	if (result != -EBADMSG)
		return result;
	damage_report(writer->core, &writer->fid, writer->offset);
	return -EIO;
}

/* -ENOENT: the base is outdated. */
static int begin_piece(struct store_writer *writer, struct piece *piece,
		       const struct store_base *base, uint64_t offset)
{
	assert(!piece->run);
	return translate_base_error(writer, store_run_begin(writer->core->data, &writer->owner,
							    base, offset, core_next_number,
							    writer->core, &piece->run));
}

/* All bytes of the piece are written; strict: on stable storage. */
static int finish_piece(struct store_writer *writer, struct piece *piece,
			const struct store_base *base)
{
	int result = store_run_finish(piece->run, base, &piece->patch);

	assert(piece->run);
	writer->core->bytes_copied += store_run_copied(piece->run);
	/* Here, beside other writers, rather than in the transaction, for which all wait. */
	if (!result && writer->core->durability == STORE_STRICT)
		result = store_run_sync(piece->run);
	return translate_base_error(writer, result);
}

/* The bytes of the main piece are complete: what follows them in their block is that of the version of now. */
static int finish_main_piece(struct store_writer *writer)
{
	struct current current;
	int result = find_current(writer, &current);

	if (result)
		return result;
	result = finish_piece(writer, &writer->main, &current.base);
	leave_current(&current);
	return result;
}

/* `kept`: the commit refers to it. */
static void end_piece(struct piece *piece, bool kept)
{
	store_run_end(piece->run, kept);
	*piece = (struct piece){0};
}

/* -- the end of a writer -- */

static void free_writer(struct store_writer *writer)
{
	volumes_take_back(&writer->core->volumes, writer->fid.volume, writer->promise,
			  writer->promised);
	space_give_back(writer->core, writer->room);
	free(writer->buffer);
	free((void *)(uintptr_t)writer->caller.ids);
	free(writer);
}

static void end_writer(struct store_writer *writer, bool kept)
{
	end_piece(&writer->main, kept);
	end_piece(&writer->prefix, kept && writer->prefix_used);
	gather_unref(writer->gather);
	free_writer(writer);
}

/* -- the contents of the new version -- */

struct write_op {
	struct change_op base;
	struct store_writer *writer;
	struct store_status *status;
	/* Lengths, for the version that was found. */
	uint64_t kept, end, new_length;
	const struct store_content *content; /* of that version: all slots */
	/* A cut of some slots, before the write; `cut_done`: nothing is left to cut. */
	bool cut, cut_done;
};

struct outcome {
	uint64_t small;
	struct blob *blob;
	struct store_content content;
};

static void drop_outcome(struct outcome *outcome)
{
	blob_unref(outcome->blob);
	store_content_free(&outcome->content);
}

/* -- a small file -- */

static bool covers_old_content(const struct write_op *op)
{
	return !op->writer->offset && op->end >= op->kept;
}

static int compose_small_content(const struct write_op *op, struct work *work,
				 const struct node *node, struct outcome *outcome)
{
	const struct store_writer *writer = op->writer;
	struct blob *old = NULL;
	int result;

	if (!op->new_length)
		return 0;
	outcome->blob = blob_new(op->new_length);
	if (!outcome->blob)
		return -ENOMEM;
	memset(outcome->blob->bytes, 0, op->new_length);
	if (node->now->v.small && !covers_old_content(op)) {
		result = work_blob(work, node, &old);
		if (result)
			return result;
		memcpy(outcome->blob->bytes, old->bytes,
		       old->length < op->kept ? old->length : op->kept);
		blob_unref(old);
	}
	assert(writer->offset + writer->length <= op->new_length);
	memcpy(outcome->blob->bytes + writer->offset, writer->buffer, writer->length);
	outcome->small = work_number(work);
	return 0;
}

/* -- blocks -- */

/* Whether the run has copied the bytes of the small file that stay. */
static bool is_small_copied(const struct write_op *op)
{
	const struct store_patch *patch = &op->writer->main.patch;

	return patch->count && !patch->first && (uint64_t)patch->count * STORE_BLOCK >= op->kept;
}

/* Copy the old contents up to op->kept. */
static int take_old_content(const struct write_op *op, const struct node *node,
			    struct outcome *outcome)
{
	struct store_writer *writer = op->writer;
	const struct version *now = node->now;

	if (covers_old_content(op))
		return 0;
	if (!now->v.small) {
		store_content_copy(op->content, &outcome->content);
		return 0;
	}
	if (is_small_copied(op))
		return 0;
	if (writer->prefix_of != now->v.small)
		return COMMIT_PREFIX;
	writer->prefix_used = true;
	return store_content_apply(&outcome->content, 0, &writer->prefix.patch);
}

/* Whether a block of the slots around the first new one has the object. */
static bool is_object_near(const struct write_op *op, uint64_t object)
{
	uint64_t at = op->writer->main.patch.first / STORE_SLOT_BLOCKS;

	return store_slot_has(store_content_slot(op->content, at), object) ||
	       (at && store_slot_has(store_content_slot(op->content, at - 1), object));
}

/* An object that the run goes on in may have died since: then it is about to be removed. */
static int check_run_object(const struct write_op *op, struct work *work)
{
	const struct store_run *run = op->writer->main.run;
	struct db_object object;
	struct db *db;
	int result;

	if (!run || store_run_made(run) || is_object_near(op, store_run_object(run)))
		return 0;
	result = work_db(work, &db);
	if (!result)
		result = db_object_get(db, store_run_object(run), &object);
	if (!result)
		return object.refs ? 0 : COMMIT_MOVE;
	return result == -ENOENT ? COMMIT_MOVE : result;
}

/*
 * Whether more rows of slots go than one transaction may change. A content of few slots, or without any old bytes, gets a new
 * map, and the old rows go in the background.
 */
static bool is_cut_long(const struct write_op *op)
{
	const struct store_patch *patch = &op->writer->main.patch;
	uint64_t first = op->kept / STORE_SLOT;
	uint64_t end = (patch->first + patch->count + STORE_SLOT_BLOCKS - 1) / STORE_SLOT_BLOCKS;

	return !covers_old_content(op) && (first >= WORK_ROWS || end > WORK_ROWS) &&
	       store_content_from_end(op->content, WORK_ROWS + 1) > first;
}

static int compose_blocks(struct write_op *op, struct work *work, struct node *node,
			  struct outcome *outcome)
{
	struct store_writer *writer = op->writer;
	struct store_base base;
	int result = work_content(work, node, &op->content);

	if (!result && is_cut_long(op))
		result = COMMIT_CUT;
	if (result)
		return result;
	base = describe_base(writer, node->now, op->content);
	if (writer->main.run && !store_run_fits(writer->main.run, &base))
		result = COMMIT_MOVE;
	if (!result)
		result = check_run_object(op, work);
	if (!result)
		result = take_old_content(op, node, outcome);
	if (!result && writer->main.run)
		result = store_run_check(writer->main.run);
	if (!result && writer->prefix_used)
		result = store_run_check(writer->prefix.run);
	if (!result)
		result = store_content_apply(&outcome->content, op->kept, &writer->main.patch);
	return result;
}

/* The last slots of the version go. */
static int compose_cut(struct write_op *op, struct work *work, struct node *node,
		       struct outcome *outcome)
{
	static const struct store_patch nothing;
	int result = work_content(work, node, &op->content);

	if (result)
		return result;
	op->cut_done = !is_cut_long(op);
	if (!op->cut_done)
		op->kept = (uint64_t)store_content_from_end(op->content, WORK_ROWS) * STORE_SLOT;
	else
		op->kept = node->now->v.length;
	op->new_length = op->kept;
	store_content_copy(op->content, &outcome->content);
	return store_content_apply(&outcome->content, op->kept, &nothing);
}

static int compose_content(struct write_op *op, struct work *work, struct node *node,
			   struct outcome *outcome)
{
	if (op->cut)
		return compose_cut(op, work, node, outcome);
	if (op->writer->gather) {
		gather_content(op->writer->gather, &outcome->content);
		return 0;
	}
	if (!op->writer->buffer)
		return compose_blocks(op, work, node, outcome);
	if (op->new_length > op->writer->core->small_max ||
	    (node->now->v.slots && !covers_old_content(op)))
		return COMMIT_RUN;
	return compose_small_content(op, work, node, outcome);
}

/* -- the transaction -- */

/* An object that the new version is the first to mention. */
static void note_made_object(const struct store_writer *writer, struct work *work,
			     const struct piece *piece)
{
	struct db_object object = {.id = piece->run ? store_run_made(piece->run) : 0,
				   .owner = writer->owner};

	if (object.id)
		work_object_made(work, &object);
}

static void install_content(const struct write_op *op, struct work *work, struct node *node,
			    struct outcome *outcome)
{
	struct version *now = node->now;
	struct volrec *volume = &node->vol->rec;
	uint64_t before = space_blocks(&now->v);
	struct subject subject;

	assert(node->now != node->base);
	store_content_free(&now->content);
	now->content = outcome->content;
	now->v.slots = now->content.count;
	now->partial = false;
	now->v.small = outcome->small;
	if (!op->cut && covers_old_content(op))
		now->v.map = 0;
	blob_unref(atomic_exchange(&now->blob, outcome->blob));
	now->v.length = op->new_length;
	volume->used_kib += space_blocks(&now->v) - before;
	work_new_version(work, now);
	now->v.author = op->base.caller->id;
	now->v.server_mtime = work_stamp(work, node->vol);
	now->v.client_mtime =
		op->writer->set.mask & STORE_SET_MTIME ? op->writer->set.mtime : work->now;
	if (!op->base.caller->administrator)
		now->v.mode &= (uint16_t)~06000u;
	subject = change_subject(&op->base, node, node);
	rights_apply(&subject, &op->writer->set, &now->v);
	if (!op->cut)
		note_made_object(op->writer, work, &op->writer->main);
	if (op->writer->prefix_used)
		note_made_object(op->writer, work, &op->writer->prefix);
	if (op->writer->gather)
		gather_note_objects(op->writer->gather, work);
	work->refers |= now->content.count > 0;
	work_volume_changed(work, node->vol);
}

/* The quota, if the file was cut meanwhile. Its bytes have their space, and holes need none. */
static int check_growth_quota(const struct write_op *op, const struct node *node)
{
	uint64_t before = space_blocks(&node->now->v), after = space_blocks_of(op->new_length);
	struct space_need need = {.spare = SPACE_SPARE, .promised = op->writer->promised};

	if (after <= before)
		return 0;
	need.growth = after - before;
	return space_check(op->base.core, &node->vol->rec, &need);
}

/* Whether the volume has the contents of the beginning. Otherwise the objects may be those of other files. */
static bool has_same_contents(const struct store_writer *writer, const struct volrec *rec)
{
	return rec->group == writer->owner.group && rec->created == writer->created;
}

/* Bytes of older contents do not get into those of a restore. */
static int check_writer(const struct store_writer *writer, const struct node *node,
			const struct subject *subject)
{
	if (!has_same_contents(writer, &node->vol->rec))
		return -ESTALE;
	/* Ranges may come for long: the rights of the beginning need not be those of now. */
	return writer->gather ? rights_write(subject) : 0;
}

static int apply_write(struct txn_op *txn, struct work *work)
{
	struct write_op *op = (struct write_op *)txn;
	struct store_writer *writer = op->writer;
	struct outcome outcome = {0};
	struct subject subject;
	struct node *node, *dir;
	int result = change_find(work, op->base.caller, &writer->fid, &node);

	writer->prefix_used = false;
	if (!result && node->now->v.kind != STORE_FILE)
		result = -EISDIR;
	if (!result)
		result = change_dir_of(work, node, &dir);
	if (result)
		return result;
	subject = change_subject(&op->base, node, dir);
	result = check_writer(writer, node, &subject);
	if (!result)
		result = rights_set(&subject, &writer->set);
	op->kept = node->now->v.length < writer->file_length ? node->now->v.length
							     : writer->file_length;
	op->end = writer->offset + writer->length;
	op->new_length = op->kept > op->end ? op->kept : op->end;
	if (!result)
		result = check_growth_quota(op, node);
	if (!result)
		result = compose_content(op, work, node, &outcome);
	if (!result && !op->cut_done)
		result = work_edit(work, node);
	if (result || op->cut_done) {
		drop_outcome(&outcome);
		return result;
	}
	install_content(op, work, node, &outcome);
	/* Until then it has the changes of earlier cuts, which stay if the write fails. */
	op->base.changes->count = 0;
	change_note(op->base.changes, node, false, false);
	change_status(&op->base, node, dir, op->status);
	return 0;
}

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

static int check_write_rights(const struct found *found, const struct store_writer *writer,
			      const struct store_caller *caller)
{
	struct subject subject = lookup_subject(found, caller);
	int result;

	if (found->version->v.kind != STORE_FILE)
		return -EISDIR;
	if (!lookup_may_change(caller, &found->view))
		return -EROFS;
	if (writer->offset > STORE_FILE_MAX || writer->length > STORE_FILE_MAX - writer->offset)
		return -EFBIG;
	result = rights_write(&subject);
	return result ? result : rights_set(&subject, &writer->set);
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
	/* A volume that is gone has promised nothing; the commit says what is wrong with it. */
	if (!result)
		writer->promised += growth;
	result = space_promise(writer->core, disk, writer->room);
	if (result == STORE_VDISKFULL)
		writer->room = 0;
	if (result)
		return result;
	writer->reserved += disk;
	writer->room += disk;
	if (!writer->main.run || !disk ||
	    !store_run_allocate(writer->main.run, writer->offset + writer->reserved * 1024))
		return 0;
	/* The free space of the disk is without them from now on. */
	space_give_back(writer->core, writer->room);
	writer->room = 0;
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
 * commit. Holes need none. Contents that come in ranges, of which there may be many for one file, need quota for all bytes. All of it must be free now; the promise grows with the bytes that come.
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

	if (writer->gather)
		need.growth = after;
	if (!result)
		result = space_check(writer->core, &volume, &need);
	if (result)
		return result;
	writer->need.growth = need.growth;
	/* Each range has the promise of its own bytes. */
	writer->need.disk = writer->gather ? 0 : need.disk;
	return promise_space_up_to(writer, compute_reach(writer, 0));
}

/* Whether the file may be a small one afterwards. */
static bool may_become_small(const struct store_writer *writer, const struct version *version,
			     uint64_t new_length)
{
	uint64_t kept = take_smaller(version->v.length, writer->file_length);

	return new_length <= writer->core->small_max &&
	       (!version->v.slots || (!writer->offset && writer->offset + writer->length >= kept));
}

static int prepare_writer(struct store_writer *writer, const struct found *found)
{
	const struct version *version = found->version;
	uint64_t kept = take_smaller(version->v.length, writer->file_length);
	uint64_t end = writer->offset + writer->length;
	uint64_t new_length = kept > end ? kept : end;
	int result = check_write_rights(found, writer, &writer->caller);

	if (!result)
		result = reserve_space(writer, found, new_length);
	if (result)
		return result;
	if (!writer->gather && may_become_small(writer, version, new_length)) {
		writer->buffer = malloc(writer->length + 1);
		return writer->buffer ? 0 : -ENOMEM;
	}
	return 0;
}

/* The object, and what lies in front of the first byte in its block. */
static int begin_main_piece(struct store_writer *writer)
{
	int result = -ENOENT;

	for (unsigned i = 0; i < TRIES && result == -ENOENT; i++) {
		struct current current;

		result = find_current(writer, &current);
		if (result)
			return result;
		result = begin_piece(writer, &writer->main, &current.base, writer->offset);
		leave_current(&current);
	}
	return result == -ENOENT ? -EIO : result;
}

/* A writer, and *found, to be ended. */
static int make_writer(struct store *store, const struct store_caller *caller,
		       const struct store_fid *fid, struct found *found, struct store_writer **out)
{
	struct store_writer *writer;
	struct volrec volume;
	/* Before the look-up: contents that come in between are refused. */
	int result = volumes_get(&core_of(store)->volumes, fid->volume, &volume);

	if (!result)
		result = lookup(core_of(store), caller, fid, found);
	if (result)
		return result;
	writer = calloc(1, sizeof(*writer));
	if (!writer || copy_caller(&writer->caller, caller)) {
		free(writer);
		lookup_end(found);
		return -ENOMEM;
	}
	writer->core = core_of(store);
	writer->fid = *fid;
	writer->owner = (struct store_owner){found->view.group, fid->vnode, fid->unique};
	writer->created = volume.created;
	*out = writer;
	return 0;
}

int write_begin(struct store *store, const struct store_caller *caller, const struct store_fid *fid,
		const struct store_set *set, uint64_t offset, uint64_t length, uint64_t file_length,
		struct store_writer **out)
{
	struct store_writer *writer;
	struct found found;
	int result = make_writer(store, caller, fid, &found, &writer);

	if (result)
		return result;
	writer->set = *set;
	writer->offset = offset;
	writer->length = length;
	writer->file_length = file_length;
	result = prepare_writer(writer, &found);
	lookup_end(&found);
	if (!result && !writer->buffer && writer->length)
		result = begin_main_piece(writer);
	if (result)
		write_abort(writer);
	else
		*out = writer;
	return result;
}

/* -- contents that come in ranges: a writer of all of them, which has no bytes, and one of each range -- */

int write_gather(struct store *store, const struct store_caller *caller,
		 const struct store_fid *fid, const struct store_set *set, uint64_t length,
		 struct store_writer **out)
{
	struct store_writer *writer;
	struct found found;
	int result;

	if (!length || length > GATHER_MOST)
		return length ? -EFBIG : -EINVAL;
	result = make_writer(store, caller, fid, &found, &writer);
	if (result)
		return result;
	writer->set = *set;
	writer->length = writer->file_length = length;
	writer->gather = gather_new(writer->core, &writer->owner, length);
	result = writer->gather ? prepare_writer(writer, &found) : -ENOMEM;
	lookup_end(&found);
	if (result)
		write_abort(writer);
	else
		*out = writer;
	return result;
}

/* Until the commit, which looks again. */
static int check_range_rights(const struct store_writer *of, const struct store_caller *caller)
{
	struct found found;
	struct volrec volume;
	int result = lookup(of->core, caller, &of->fid, &found);

	if (result)
		return result;
	result = volumes_get(&of->core->volumes, of->fid.volume, &volume);
	if (!result)
		result = has_same_contents(of, &volume) ? check_write_rights(&found, of, caller)
							: -ESTALE;
	lookup_end(&found);
	return result;
}

/* All ranges together are promised the quota of the file, as far as they have begun. A refusal takes back all promises. */
static int promise_range_growth(struct store_writer *of, uint64_t length)
{
	uint64_t reach;
	int result;

	gather_lock(of->gather);
	result = of->refused;
	if (!result) {
		of->taken = take_smaller(of->taken + length, of->length);
		reach = compute_reach(of, of->taken);
		result = promise_space_up_to(of, reach > of->promised ? reach : of->promised);
		of->refused = result;
	}
	gather_unlock(of->gather);
	return result;
}

static int begin_range_piece(struct store_writer *writer)
{
	struct store_content content = {0};
	struct store_base base = {.content = &content, .kept = writer->file_length};
	int result;

	gather_base(writer->gather, &content);
	result = begin_piece(writer, &writer->main, &base, writer->offset);
	store_content_free(&content);
	return result;
}

int write_range(struct store_writer *of, const struct store_caller *caller, uint64_t offset,
		uint64_t length, struct store_writer **out)
{
	struct store_writer *writer;
	int result = gather_check(of->gather, offset, length);

	if (!result)
		result = check_range_rights(of, caller);
	if (!result)
		result = promise_range_growth(of, length);
	if (result)
		return result;
	writer = calloc(1, sizeof(*writer));
	if (!writer)
		return -ENOMEM;
	writer->core = of->core;
	writer->fid = of->fid;
	writer->owner = of->owner;
	writer->gather = gather_ref(of->gather);
	writer->offset = offset;
	writer->length = length;
	writer->file_length = of->file_length;
	writer->need.disk = space_blocks_of(length);
	result = promise_space_up_to(writer, compute_reach(writer, 0));
	if (!result)
		result = begin_range_piece(writer);
	if (result)
		write_abort(writer);
	else
		*out = writer;
	return result;
}

/* -- bytes -- */

static int translate_space_error(int result)
{
	return result == -ENOSPC || result == -EDQUOT ? STORE_VDISKFULL : result;
}

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

	assert(!writer->gather || writer->main.run);
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
	return translate_space_error(result);
}

/* -- commit -- */

/* Bytes that were taken for a small file go to an object. */
static int move_buffer_to_run(struct store_writer *writer)
{
	int result = writer->length ? begin_main_piece(writer) : 0;

	if (!result && writer->length)
		result = store_run_put(writer->main.run, writer->buffer, writer->length);
	free(writer->buffer);
	writer->buffer = NULL;
	return result;
}

static int write_prefix_run(struct store_writer *writer, const struct blob *blob)
{
	int result = begin_piece(writer, &writer->prefix, &no_base, 0);

	if (!result)
		result = store_run_put(writer->prefix.run, blob->bytes, blob->length);
	return result ? result : finish_piece(writer, &writer->prefix, &no_base);
}

/* The bytes of the small file go to an object. */
static int move_small_to_run(struct store_writer *writer)
{
	struct found found;
	struct blob *blob;
	int result = lookup(writer->core, &writer->caller, &writer->fid, &found);

	if (result)
		return result;
	end_piece(&writer->prefix, false);
	writer->prefix_of = found.version->v.small;
	if (writer->prefix_of) {
		result = lookup_blob(writer->core, &found, &blob);
		if (!result) {
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

/* The bytes of the run go to another one, which fits the version of now. The old one stays until then. */
static int move_run(struct store_writer *writer)
{
	struct piece old = writer->main;
	int result;

	if (++writer->moves > TRIES)
		return -EIO;
	writer->main = (struct piece){0};
	writer->finished = false;
	result = begin_main_piece(writer);
	if (!result)
		result = translate_base_error(writer, store_run_copy(old.run, writer->main.run));
	end_piece(&old, false);
	return result;
}

/* The slots behind the new end go in steps, each a shorter version of the file, so that others do not wait for all of them. */
static int cut_in_steps(struct store_writer *writer, struct store_changes *changes)
{
	int result = 0;

	for (bool done = false; !done && !result;) {
		struct store_status status;
		struct write_op op = {
			.writer = writer, .status = &status, .base.changes = changes, .cut = true};

		result = change_run(writer->core, &writer->caller, &op.base, apply_write);
		done = op.cut_done;
	}
	return result;
}

static int commit_writer_once(struct store_writer *writer, struct store_status *status,
			      struct store_changes *changes)
{
	struct write_op op = {.writer = writer, .status = status, .base.changes = changes};
	int result = 0;

	if (!writer->buffer && !writer->finished) {
		if (writer->main.run)
			result = finish_main_piece(writer);
		writer->finished = true;
		if (result == -ENOENT)
			return COMMIT_MOVE;
	}
	return result ? result : change_run(writer->core, &writer->caller, &op.base, apply_write);
}

static int commit_until_done(struct store_writer *writer, int result, struct store_status *status,
			     struct store_changes *changes)
{
	for (;; result = commit_writer_once(writer, status, changes)) {
		if (result == COMMIT_RUN)
			result = move_buffer_to_run(writer);
		else if (result == COMMIT_PREFIX)
			result = move_small_to_run(writer);
		else if (result == COMMIT_MOVE)
			result = move_run(writer);
		else if (result == COMMIT_CUT)
			result = cut_in_steps(writer, changes);
		else
			return result;
		if (result)
			return result;
	}
}

static bool is_commit_unfinished(int result)
{
	return result == WORK_MISSING || (result >= COMMIT_RUN && result <= COMMIT_CUT);
}

/* An unfinished commit goes on, on a thread that may wait. */
static void end_submitted_write(struct txn_op *txn)
{
	struct store_writer *writer = ((struct write_op *)txn)->writer;

	if (is_commit_unfinished(txn->result)) {
		writer->caller.later = NULL;
		txn->later->result = STORE_AGAIN;
	} else {
		end_writer(writer, !txn->result);
		txn->later->result = translate_space_error(txn->result);
	}
	free(txn);
}

/* The result of the transaction, or STORE_LATER: then another thread ends the writer. */
static int submit_writer(struct store_writer *writer, struct store_status *status,
			 struct store_changes *changes)
{
	struct write_op op = {.writer = writer, .status = status, .base.changes = changes};

	return change_run_later(writer->core, &writer->caller, &op.base, sizeof(op), apply_write,
				end_submitted_write);
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
			result = submit_writer(writer, status, changes);
		else
			result = commit_writer_once(writer, status, changes);
		if (result == STORE_LATER)
			return result;
		result = commit_until_done(writer, result, status, changes);
	}
	if (!result && writer->gather)
		gather_keep(writer->gather);
	end_writer(writer, !result);
	if (!result && sync)
		result = keeper_flush(core->keeper);
	if (!result && sync)
		result = lost_check(core, &fid);
	return translate_space_error(result);
}

int write_range_end(struct store_writer *writer, uint64_t *taken)
{
	bool used = false;
	int result = finish_piece(writer, &writer->main, &no_base);

	assert(writer->gather && writer->taken <= writer->length);
	*taken = 0;
	if (!result)
		result = gather_add(writer->gather, writer->main.run, &writer->main.patch,
				    writer->taken, taken, &used);
	end_writer(writer, used);
	return translate_space_error(result);
}

int write_gathered(struct store_writer *writer, const struct store_caller *caller, uint64_t bytes,
		   struct store_status *status, struct store_changes *changes)
{
	int result = writer->refused ?: gather_close(writer->gather, bytes);

	assert(!writer->buffer && !writer->main.run);
	free((void *)(uintptr_t)writer->caller.ids);
	writer->caller.ids = NULL;
	if (!result)
		result = copy_caller(&writer->caller, caller);
	if (result) {
		end_writer(writer, false);
		return result;
	}
	writer->taken = writer->length;
	result = write_commit(writer, status, changes);
	assert(result != STORE_LATER);
	return result;
}

void write_abort(struct store_writer *writer)
{
	if (writer)
		end_writer(writer, false);
}
