/* SPDX-License-Identifier: BSD-2-Clause */
/* Create, link and remove names. */
#include "volume/store/op/names.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "volume/store/op/entry.h"
#include "volume/store/txn/space.h"

/* -- create -- */

struct create_op {
	struct change_op base;
	const struct store_fid *dir;
	const char *name;
	enum store_kind kind;
	const char *text;
	const struct store_set *set;
	struct store_status *status, *dir_status;
};

static bool is_mount_point(const struct create_op *op)
{
	return op->kind == STORE_SYMLINK && op->set->mask & STORE_SET_MODE &&
	       !(op->set->mode & 0111);
}

static int check_creation(const struct create_op *op, struct work *work, struct node *dir)
{
	uint64_t length = op->kind == STORE_DIR ? STORE_PAGE : op->text ? strlen(op->text) : 0;
	uint64_t blocks = space_blocks_of(length);
	uint32_t vnode, unique;
	int result = change_spelling(op->name);

	if (!result)
		result = entry_rights(&op->base, dir, STORE_INSERT);
	if (!result)
		result = change_name(op->name, -EEXIST);
	if (!result && is_mount_point(op) && !op->base.caller->administrator)
		result = entry_rights(&op->base, dir, STORE_ADMIN);
	if (!result && op->kind == STORE_SYMLINK && (!length || length > STORE_TEXT_MAX))
		result = -EINVAL;
	if (result)
		return result;
	result = entry_find(work, dir, op->name, &vnode, &unique);
	if (result != -ENOENT)
		return result ? result : -EEXIST;
	return space_check(op->base.core, &dir->vol->rec,
			   &(struct space_need){.growth = blocks, .disk = blocks});
}

static void fill_new_record(const struct create_op *op, const struct work *work,
			    const struct node *dir, struct vnode *v)
{
	v->kind = (uint8_t)op->kind;
	v->mode = (uint16_t)(op->set->mask & STORE_SET_MODE ? op->set->mode & 0777 : 0777);
	v->links = op->kind == STORE_DIR ? 2 : 1;
	v->author = v->owner = op->base.caller->id;
	v->group = dir->now->v.group;
	v->parent = dir->vnode;
	v->parent_unique = dir->now->v.unique;
	v->server_mtime = work->now;
	v->client_mtime = op->set->mask & STORE_SET_MTIME ? op->set->mtime : work->now;
	v->incarnation = work->base.incarnation;
}

/* The parts of a new object beside its record. 0 or -ENOMEM. */
static int fill_new_parts(const struct create_op *op, const struct node *node,
			  const struct node *dir, struct version *version)
{
	struct store_pages *pages;

	if (op->kind == STORE_SYMLINK) {
		version->text = strdup(op->text);
		version->v.length = strlen(op->text);
		return version->text ? 0 : -ENOMEM;
	}
	if (op->kind != STORE_DIR)
		return 0;
	version->v.length = STORE_PAGE;
	version->acl = malloc(sizeof(*version->acl));
	pages = store_pages_new(node->vnode, version->v.unique, dir->vnode, dir->now->v.unique);
	atomic_store(&version->pages, pages);
	if (!version->acl || !pages)
		return -ENOMEM;
	*version->acl = *dir->now->acl;
	return 0;
}

static int make_new_version(const struct create_op *op, struct work *work, const struct node *dir,
			    struct node *node, struct version **version)
{
	int result;

	*version = version_new();
	if (!*version)
		return -ENOMEM;
	fill_new_record(op, work, dir, &(*version)->v);
	(*version)->v.unique = work_unique(work, dir->vol);
	result = fill_new_parts(op, node, dir, *version);
	if (result)
		version_unref(*version);
	return result;
}

static int apply_name_creation(struct txn_op *txn, struct work *work)
{
	struct create_op *op = (struct create_op *)txn;
	struct version *version;
	struct store_pages *pages;
	struct node *dir, *node;
	int result = change_find_dir(work, op->base.caller, op->dir, &dir);

	if (!result)
		result = check_creation(op, work, dir);
	if (!result)
		result = work_edit_pages(work, dir, &pages);
	if (!result)
		result = work_free(work, dir->vol, op->kind == STORE_DIR, &node);
	if (!result)
		result = make_new_version(op, work, dir, node, &version);
	if (result)
		return result;
	result = store_pages_add(pages, op->name, node->vnode, version->v.unique);
	if (result) {
		version_unref(version);
		return result;
	}
	work_create(work, node, version);
	dir->vol->rec.files++;
	dir->vol->rec.used_kib += space_blocks(&version->v);
	dir->now->v.links += op->kind == STORE_DIR;
	entry_touch(&op->base, work, dir, pages);
	op->base.changes->count = 0;
	change_note(op->base.changes, dir, false, false);
	change_status(&op->base, node, op->kind == STORE_DIR ? node : dir, op->status);
	change_status(&op->base, dir, dir, op->dir_status);
	return 0;
}

int names_create(struct store *store, const struct store_caller *caller,
		 const struct store_fid *dir, const char *name, enum store_kind kind,
		 const char *text, const struct store_set *set, struct store_status *status,
		 struct store_status *dir_status, struct store_changes *changes)
{
	struct create_op op = {.dir = dir,
			       .name = name,
			       .kind = kind,
			       .text = kind == STORE_SYMLINK ? text : NULL,
			       .set = set,
			       .status = status,
			       .dir_status = dir_status,
			       .base.changes = changes};
	int result = change_check(core_of(store), caller, dir, true);

	return result ? result
		      : change_run_later(core_of(store), caller, &op.base, sizeof(op),
					 apply_name_creation, NULL);
}

/* -- link -- */

struct link_op {
	struct change_op base;
	const struct store_fid *dir, *existing;
	const char *name;
	struct store_status *status, *dir_status;
};

static int check_new_link(const struct link_op *op, struct work *work, struct node *dir,
			  const struct node *node)
{
	uint32_t vnode, unique;
	int result = entry_rights(&op->base, dir, STORE_INSERT);

	if (!result)
		result = change_name(op->name, -EEXIST);
	if (result)
		return result;
	if (node->now->v.kind != STORE_FILE)
		return -EISDIR;
	if (node->now->v.parent != dir->vnode || node->now->v.parent_unique != dir->now->v.unique)
		return -EXDEV;
	result = entry_find(work, dir, op->name, &vnode, &unique);
	if (result == -ENOENT)
		return node->now->v.links == UINT32_MAX ? -EMLINK : 0;
	return result ? result : -EEXIST;
}

static int apply_name_link(struct txn_op *txn, struct work *work)
{
	struct link_op *op = (struct link_op *)txn;
	struct store_pages *pages;
	struct node *dir, *node;
	int result = change_find_dir(work, op->base.caller, op->dir, &dir);

	if (!result)
		result = change_find(work, op->base.caller, op->existing, &node);
	if (!result)
		result = check_new_link(op, work, dir, node);
	if (!result)
		result = work_edit_pages(work, dir, &pages);
	if (!result)
		result = work_edit(work, node);
	if (!result)
		result = store_pages_add(pages, op->name, node->vnode, node->now->v.unique);
	if (result)
		return result;
	node->now->v.links++;
	node->now->v.author = op->base.caller->id;
	node->now->v.server_mtime = work->now;
	entry_touch(&op->base, work, dir, pages);
	op->base.changes->count = 0;
	change_note(op->base.changes, dir, false, false);
	change_note(op->base.changes, node, false, false);
	change_status(&op->base, node, dir, op->status);
	change_status(&op->base, dir, dir, op->dir_status);
	return 0;
}

int names_link(struct store *store, const struct store_caller *caller, const struct store_fid *dir,
	       const char *name, const struct store_fid *existing, struct store_status *status,
	       struct store_status *dir_status, struct store_changes *changes)
{
	struct link_op op = {.dir = dir,
			     .existing = existing,
			     .name = name,
			     .status = status,
			     .dir_status = dir_status,
			     .base.changes = changes};
	int result = 0;

	if (!dir->volume || !dir->vnode || !existing->volume || !existing->vnode)
		return -EINVAL;
	if (dir->volume != existing->volume)
		return -EXDEV;
	result = change_spelling(name);
	if (!result)
		result = change_check(core_of(store), caller, dir, true);
	return result ? result : change_run(core_of(store), caller, &op.base, apply_name_link);
}

/* -- remove -- */

struct remove_op {
	struct change_op base;
	const struct store_fid *dir;
	const char *name;
	enum store_kind kind;
	struct store_status *dir_status;
};

static int check_removed_kind(const struct remove_op *op, struct work *work, struct node *node)
{
	struct store_pages *pages;
	int result;

	if (op->kind != STORE_DIR)
		return node->now->v.kind == STORE_DIR ? -EISDIR : 0;
	if (node->now->v.kind != STORE_DIR)
		return -ENOTDIR;
	result = work_pages(work, node, &pages);
	return !result && store_pages_entries(pages) > 2 ? -EEXIST : result;
}

static int find_removed_node(const struct remove_op *op, struct work *work, struct node *dir,
			     struct node **node)
{
	uint32_t vnode, unique;
	int result = entry_rights(&op->base, dir, STORE_DELETE);

	if (!result)
		result = change_old_name(op->name);
	if (!result)
		result = entry_find(work, dir, op->name, &vnode, &unique);
	return result ? result : change_named(work, dir, vnode, unique, node);
}

static int apply_name_removal(struct txn_op *txn, struct work *work)
{
	struct remove_op *op = (struct remove_op *)txn;
	struct store_pages *pages;
	struct node *dir, *node;
	int result = change_find_dir(work, op->base.caller, op->dir, &dir);

	if (!result)
		result = find_removed_node(op, work, dir, &node);
	if (!result)
		result = check_removed_kind(op, work, node);
	if (!result)
		result = work_edit_pages(work, dir, &pages);
	if (!result)
		result = entry_prepare_unlink(work, node);
	if (!result)
		result = store_pages_remove(pages, op->name);
	if (result)
		return result;
	dir->now->v.links -= op->kind == STORE_DIR;
	entry_touch(&op->base, work, dir, pages);
	op->base.changes->count = 0;
	change_note(op->base.changes, dir, false, false);
	entry_unlink(work, node, op->base.changes);
	change_status(&op->base, dir, dir, op->dir_status);
	return 0;
}

int names_remove(struct store *store, const struct store_caller *caller,
		 const struct store_fid *dir, const char *name, enum store_kind kind,
		 struct store_status *dir_status, struct store_changes *changes)
{
	struct remove_op op = {.dir = dir,
			       .name = name,
			       .kind = kind,
			       .dir_status = dir_status,
			       .base.changes = changes};
	int result = change_check(core_of(store), caller, dir, true);

	return result ? result
		      : change_run_later(core_of(store), caller, &op.base, sizeof(op),
					 apply_name_removal, NULL);
}
