/* SPDX-License-Identifier: BSD-2-Clause */
/* The common part of all operations that change something. */
#include "volume/store/txn/change.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "volume/store/txn/lookup.h"

#define TRIES 16 /* each after others have changed what was not in memory */

int change_check(struct core *core, const struct store_caller *caller, const struct store_fid *fid,
		 bool directory)
{
	struct view view;
	struct found found;
	int result;

	if (!fid->volume || !fid->vnode)
		return -EINVAL;
	result = lookup_view(core, caller, fid->volume, &view);
	if (result || lookup_may_change(caller, &view))
		return result;
	result = lookup(core, caller, fid, &found);
	if (!result && directory && found.version->v.kind != STORE_DIR)
		result = -ENOTDIR;
	lookup_end(&found);
	return result ? result : -EROFS;
}

static void announce_changes(struct txn_op *txn)
{
	const struct change_op *op = (const struct change_op *)txn;

	assert(op->caller->changed);
	op->caller->changed(op->caller->changed_arg, op->changes);
}

static int apply_with_loaded(struct txn_op *txn, struct work *work)
{
	struct change_op *op = (struct change_op *)txn;
	int result;

	assert(!work->loaded);
	work->loaded = &op->loaded;
	result = op->apply(txn, work);
	work->loaded = NULL;
	return result;
}

static void prepare_change(struct core *core, const struct store_caller *caller,
			   struct change_op *op, int (*apply)(struct txn_op *op, struct work *work))
{
	op->core = core;
	op->caller = caller;
	op->apply = apply;
	op->txn.apply = apply_with_loaded;
	op->txn.announce = caller->changed ? announce_changes : NULL;
}

/* A place for the entries of a directory: the one that it had before, or the oldest. */
static struct work_entries *choose_loaded_place(struct work_loaded *loaded, uint32_t group,
						uint32_t vnode)
{
	for (unsigned i = 0; i < WORK_LOADED; i++)
		if (loaded->entries[i].group == group && loaded->entries[i].vnode == vnode)
			return &loaded->entries[i];
	return &loaded->entries[loaded->next++ % WORK_LOADED];
}

static int load_found_parts(struct core *core, const struct found *found)
{
	const struct store_content *content;
	struct store_pages *pages;
	int result;

	if (found->version->v.kind != STORE_DIR)
		return lookup_content(core, found, &content);
	result = lookup_pages(core, found, &pages);
	if (!result)
		store_pages_unref(pages);
	return result;
}

/* Load a directory, or the map of a file, in the thread of the caller. It may be gone by now. */
static int load_missing_parts(struct core *core, const struct store_caller *caller,
			      struct work_loaded *loaded)
{
	struct work_entries *place;
	struct found found;
	int result = lookup(core, caller, &loaded->missing, &found);

	if (result)
		return result == STORE_VNOVNODE ? 0 : result;
	result = load_found_parts(core, &found);
	if (!result) {
		place = choose_loaded_place(loaded, found.view.group, found.fid.vnode);
		version_unref(place->version);
		*place = (struct work_entries){found.view.group, found.fid.vnode,
					       version_ref(found.version)};
	}
	lookup_end(&found);
	return result == -EAGAIN ? 0 : result;
}

static void drop_loaded_parts(struct work_loaded *loaded)
{
	for (unsigned i = 0; i < WORK_LOADED; i++)
		version_unref(loaded->entries[i].version);
	*loaded = (struct work_loaded){0};
}

int change_run(struct core *core, const struct store_caller *caller, struct change_op *op,
	       int (*apply)(struct txn_op *op, struct work *work))
{
	int result = WORK_MISSING;

	prepare_change(core, caller, op, apply);
	for (unsigned i = 0; i < TRIES && result == WORK_MISSING; i++) {
		result = txn_run(core->txn, &op->txn);
		if (result == WORK_MISSING) {
			result = load_missing_parts(core, caller, &op->loaded);
			result = result ? result : WORK_MISSING;
		}
	}
	drop_loaded_parts(&op->loaded);
	return result == WORK_MISSING ? STORE_VBUSY : result;
}

static void end_submitted_copy(struct txn_op *op)
{
	op->later->result = op->result == WORK_MISSING ? STORE_AGAIN : op->result;
	free(op);
}

int change_run_later(struct core *core, const struct store_caller *caller, struct change_op *op,
		     size_t size, int (*apply)(struct txn_op *op, struct work *work),
		     void (*end)(struct txn_op *op))
{
	struct store_later *later = caller->later;
	struct change_op *copy = later && txn_may_submit(core->txn) ? malloc(size) : NULL;

	assert(size >= sizeof(*op));
	if (!copy || !later->leave(later)) {
		free(copy);
		return change_run(core, caller, op, apply);
	}
	memcpy(copy, op, size);
	prepare_change(core, caller, copy, apply);
	copy->txn.later = later;
	copy->txn.end = end ? end : end_submitted_copy;
	txn_submit(core->txn, &copy->txn);
	return STORE_LATER;
}

int change_find(struct work *work, const struct store_caller *caller, const struct store_fid *fid,
		struct node **node)
{
	struct workvol *volume;
	int result = caller && caller->unrestricted ? work_any_volume(work, fid->volume, &volume)
						    : work_volume(work, fid->volume, &volume);

	/* A copy of another server's volume changes only while its contents are replaced. */
	if (!result && (volume->rec.type != STORE_RW ||
			(volume->rec.as && !(volume->rec.offline & VOLUME_BUSY))))
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

	assert(changes->count < sizeof(changes->change) / sizeof(changes->change[0]));
	changes->change[changes->count++] =
		(struct store_change){.fid = fid, .for_all = for_all, .gone = gone};
}
