/* SPDX-License-Identifier: BSD-2-Clause */
/* The transaction of a StoreData: it applies to the version that it finds. */
#include "volume/store/txn/writer.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "volume/store/maint/merge.h"
#include "volume/store/txn/space.h"

struct write_op {
	struct change_op base;
	struct store_writer *writer;
	struct store_status *status;
	/* Lengths, for the version that was found. */
	uint64_t kept, end, new_length;
	uint32_t limit; /* extents that the new version may have */
	int (*ended)(struct store_writer *writer, int result);
};

/* The contents of the new version. */
struct outcome {
	uint64_t small;
	struct blob *blob;
	struct store_content content;
	uint64_t made[3]; /* objects that it is the first to mention */
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

/* -- extents -- */

/*
 * A run may add to an object that its writer found in an older version. If the newest version no
 * longer refers to it, the object is about to be removed, unless a clone refers to it.
 */
static bool may_extend_object(const struct piece *piece, const struct store_content *now)
{
	uint64_t id = piece->patch.count ? piece->patch.extent[0].object : 0;

	return piece->made || !id || now->tail_object == id || store_content_has(now, id);
}

/* Copy the old contents up to op->kept. */
static int take_old_content(const struct write_op *op, const struct node *node,
			    struct outcome *outcome)
{
	static const struct store_content nothing;
	struct store_writer *writer = op->writer;
	const struct version *now = node->now;
	int result;

	if (covers_old_content(op))
		return 0;
	if (now->v.small) {
		if (writer->prefix_of != now->v.small)
			return COMMIT_PREFIX;
		writer->prefix_used = true;
		outcome->made[1] = writer->prefix.made;
		result = store_content_copy(&writer->prefix.patch, &outcome->content);
	} else {
		result = store_content_copy(&now->content, &outcome->content);
		if (!result && store_content_shows(&now->content, &writer->window) &&
		    may_extend_object(&writer->compact, &now->content)) {
			writer->compact_used = true;
			outcome->made[2] = writer->compact.made;
			result = store_content_merge(&outcome->content, &writer->compact.patch);
		}
	}
	if (!result && op->kept < now->v.length)
		result = store_content_apply(&outcome->content, &nothing, op->kept, op->kept,
					     op->kept, op->limit);
	return result;
}

static int check_run_object(const struct write_op *op, struct work *work, const struct node *node)
{
	const struct piece *main = &op->writer->main;
	struct db_object object;
	struct db *db;
	int result;

	if (!main->run || main->made || !main->patch.count)
		return 0;
	if (!may_extend_object(main, &node->now->content))
		return COMMIT_MOVE;
	result = work_db(work, &db);
	if (!result)
		result = db_object_get(db, main->patch.extent[0].object, &object);
	if (!result)
		return object.dead ? COMMIT_MOVE : 0;
	return result == -ENOENT ? COMMIT_MOVE : result;
}

static int compose_extents(const struct write_op *op, struct work *work, const struct node *node,
			   struct outcome *outcome)
{
	struct store_writer *writer = op->writer;
	int result = check_run_object(op, work, node);

	if (!result)
		result = take_old_content(op, node, outcome);
	if (!result && writer->main.run)
		result = store_run_check(writer->main.run);
	if (!result && writer->prefix_used)
		result = store_run_check(writer->prefix.run);
	if (!result && writer->compact_used)
		result = store_run_check(writer->compact.run);
	if (!result)
		result = store_content_apply(&outcome->content, &writer->main.patch, writer->offset,
					     op->end, op->new_length, op->limit);
	outcome->made[0] = writer->main.made;
	return result == -E2BIG ? COMMIT_COMPACT : result;
}

static int compose_content(const struct write_op *op, struct work *work, const struct node *node,
			   struct outcome *outcome)
{
	if (!op->writer->buffer)
		return compose_extents(op, work, node, outcome);
	if (op->new_length > op->writer->core->small_max ||
	    (node->now->content.count && !covers_old_content(op)))
		return COMMIT_RUN;
	return compose_small_content(op, work, node, outcome);
}

/* -- the transaction -- */

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
	now->v.small = outcome->small;
	blob_unref(atomic_exchange(&now->blob, outcome->blob));
	now->v.length = op->new_length;
	volume->used_kib += space_blocks(&now->v) - before;
	work_new_version(work, now);
	now->v.author = op->base.caller->id;
	now->v.server_mtime = work->now;
	now->v.client_mtime =
		op->writer->set.mask & STORE_SET_MTIME ? op->writer->set.mtime : work->now;
	if (!op->base.caller->administrator)
		now->v.mode &= (uint16_t)~06000u;
	subject = change_subject(&op->base, node, node);
	rights_apply(&subject, &op->writer->set, &now->v);
	for (int i = 0; i < 3; i++) {
		struct db_object object = {.id = outcome->made[i], .owner = op->writer->owner};

		if (object.id)
			work_object_made(work, &object);
	}
	work->refers |= now->content.count > 0;
	merge_note(op->base.core->merger, &op->writer->fid, &now->content, op->new_length, true);
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

/* A list that is too long, because the file was cut, need not become shorter. */
static uint32_t compute_extent_limit(const struct write_op *op, const struct node *node)
{
	uint32_t now = node->now->content.count, limit = store_extents_limit(op->new_length);

	return now > limit ? now : limit;
}

static int apply_write(struct txn_op *txn, struct work *work)
{
	struct write_op *op = (struct write_op *)txn;
	struct store_writer *writer = op->writer;
	struct outcome outcome = {0};
	struct subject subject;
	struct node *node, *dir;
	int result = change_find(work, op->base.caller, &writer->fid, &node);

	writer->prefix_used = writer->compact_used = false;
	if (!result && node->now->v.kind != STORE_FILE)
		result = -EISDIR;
	if (!result)
		result = change_dir_of(work, node, &dir);
	if (result)
		return result;
	subject = change_subject(&op->base, node, dir);
	result = rights_set(&subject, &writer->set);
	op->kept = node->now->v.length < writer->file_length ? node->now->v.length
							     : writer->file_length;
	op->end = writer->offset + writer->length;
	op->new_length = op->kept > op->end ? op->kept : op->end;
	op->limit = compute_extent_limit(op, node);
	if (!result)
		result = check_growth_quota(op, node);
	if (!result)
		result = compose_content(op, work, node, &outcome);
	if (!result)
		result = work_edit(work, node);
	if (result) {
		drop_outcome(&outcome);
		return result;
	}
	install_content(op, work, node, &outcome);
	op->base.changes->count = 0;
	change_note(op->base.changes, node, false, false);
	change_status(&op->base, node, dir, op->status);
	return 0;
}

int commit_run(struct store_writer *writer, struct store_status *status,
	       struct store_changes *changes)
{
	struct write_op op = {.writer = writer, .status = status, .base.changes = changes};

	return change_run(writer->core, &writer->caller, &op.base, apply_write);
}

static void end_submitted_write(struct txn_op *txn)
{
	struct write_op *op = (struct write_op *)txn;

	txn->later->result = op->ended(op->writer, txn->result);
	free(op);
}

int commit_later(struct store_writer *writer, struct store_status *status,
		 struct store_changes *changes, int (*end)(struct store_writer *writer, int result))
{
	struct write_op op = {
		.writer = writer, .status = status, .base.changes = changes, .ended = end};

	return change_run_later(writer->core, &writer->caller, &op.base, sizeof(op), apply_write,
				end_submitted_write);
}
