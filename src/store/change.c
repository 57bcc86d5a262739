/* SPDX-License-Identifier: BSD-2-Clause */
/* The common part of all operations that change something. */
#include "store/change.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/lookup.h"

int change_check(struct core *core, const struct store_caller *caller, const struct store_fid *fid,
		 bool directory)
{
	struct view view;
	struct found found;
	int result;

	if (!fid->volume || !fid->vnode)
		return -EINVAL;
	result = lookup_view(core, caller, fid->volume, &view);
	if (result || view.type == STORE_RW)
		return result;
	result = lookup(core, caller, fid, &found);
	if (!result && directory && found.version->v.kind != STORE_DIR)
		result = -ENOTDIR;
	lookup_end(&found);
	return result ? result : -EROFS;
}

static void announce(struct txn_op *txn)
{
	const struct change_op *op = (const struct change_op *)txn;

	op->caller->changed(op->caller->changed_arg, op->changes);
}

static void prepare(struct core *core, const struct store_caller *caller, struct change_op *op,
		    int (*apply)(struct txn_op *op, struct work *work))
{
	op->core = core;
	op->caller = caller;
	op->txn.apply = apply;
	op->txn.announce = caller->changed ? announce : NULL;
}

int change_run(struct core *core, const struct store_caller *caller, struct change_op *op,
	       int (*apply)(struct txn_op *op, struct work *work))
{
	prepare(core, caller, op, apply);
	return txn_run(core->txn, &op->txn);
}

static void end_copy(struct txn_op *op)
{
	op->later->result = op->result;
	free(op);
}

int change_run_later(struct core *core, const struct store_caller *caller, struct change_op *op,
		     size_t size, int (*apply)(struct txn_op *op, struct work *work),
		     void (*end)(struct txn_op *op))
{
	struct store_later *later = caller->later;
	struct change_op *copy = later && txn_may_submit(core->txn) ? malloc(size) : NULL;

	if (!copy || !later->leave(later)) {
		free(copy);
		return change_run(core, caller, op, apply);
	}
	memcpy(copy, op, size);
	prepare(core, caller, copy, apply);
	copy->txn.later = later;
	copy->txn.end = end ? end : end_copy;
	txn_submit(core->txn, &copy->txn);
	return STORE_LATER;
}

int change_find(struct work *work, const struct store_caller *caller, const struct store_fid *fid,
		struct node **node)
{
	struct workvol *volume;
	int result = caller && caller->unrestricted ? work_any_volume(work, fid->volume, &volume)
						    : work_volume(work, fid->volume, &volume);

	if (!result && volume->rec.type != STORE_RW)
		result = -EROFS;
	return result ? result : work_live(work, volume, fid->vnode, fid->unique, node);
}

int change_find_dir(struct work *work, const struct store_caller *caller,
		    const struct store_fid *fid, struct node **node)
{
	int result = change_find(work, caller, fid, node);

	return !result && (*node)->now->v.kind != STORE_DIR ? -ENOTDIR : result;
}

int change_named(struct work *work, const struct node *dir, uint32_t vnode, uint32_t unique,
		 struct node **node)
{
	int result = work_live(work, dir->vol, vnode, unique, node);

	if (result != STORE_VNOVNODE)
		return result;
	report_damage(work->base.report,
		      "directory %u of volume %u names vnode %u, which is missing: restore it",
		      dir->vnode, dir->vol->rec.id, vnode);
	return -EIO;
}

struct subject change_subject(const struct change_op *op, const struct node *node,
			      const struct node *dir)
{
	return (struct subject){.caller = op->caller,
				.acl = dir->now->acl,
				.version = node->now,
				.volume_owner = node->vol->rec.owner};
}

int change_dir_of(struct work *work, struct node *node, struct node **dir)
{
	int result;

	*dir = node;
	if (node->now->v.kind == STORE_DIR)
		return 0;
	result = work_live(work, node->vol, node->now->v.parent, node->now->v.parent_unique, dir);
	if (!result && (*dir)->now->v.kind == STORE_DIR)
		return 0;
	if (result && result != STORE_VNOVNODE)
		return result;
	report_damage(work->base.report,
		      "the directory of vnode %u of volume %u is missing: restore it", node->vnode,
		      node->vol->rec.id);
	return -EIO;
}

void change_status(const struct change_op *op, const struct node *node, const struct node *dir,
		   struct store_status *status)
{
	struct subject subject = change_subject(op, node, dir);
	struct store_fid fid = {node->vol->rec.id, node->vnode, node->now->v.unique};

	rights_fill_status(&subject, &fid, status);
}

int change_spelling(const char *name)
{
	size_t length = strlen(name);

	if (strchr(name, '/') || (length >= 4 && !strcmp(name + length - 4, "@sys")))
		return -EINVAL;
	return length > STORE_NAME_MAX ? -ENAMETOOLONG : 0;
}

int change_name(const char *name, int dots)
{
	if (!*name)
		return -EINVAL;
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return dots;
	return change_spelling(name);
}

int change_old_name(const char *name)
{
	return strcmp(name, ".") && strcmp(name, "..") ? 0 : -EINVAL;
}

void change_note(struct store_changes *changes, const struct node *node, bool for_all, bool gone)
{
	struct store_fid fid = {node->vol->rec.id, node->vnode, node->now->v.unique};

	changes->change[changes->count++] =
		(struct store_change){.fid = fid, .for_all = for_all, .gone = gone};
}
