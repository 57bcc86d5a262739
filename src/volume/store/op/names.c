/* SPDX-License-Identifier: BSD-2-Clause */
/* Names: create, link, remove and rename, each in one transaction. */
#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "volume/store/op/op.h"
#include "volume/store/transfer.h"
#include "volume/store/txn/change.h"
#include "volume/store/txn/lookup.h"
#include "volume/store/txn/space.h"

/* -- steps that the operations share, in a transaction -- */

/* A name in a directory. -ENOENT. */
static int find_entry(struct work *work, struct node *dir, const char *name, uint32_t *vnode,
		      uint32_t *unique)
{
	struct store_pages *pages;
	int result = work_pages(work, dir, &pages);

	return result ? result : store_pages_find(pages, name, vnode, unique);
}

/* 0 if the caller has all these rights on the directory, else -EACCES. */
static int check_entry_rights(const struct change_op *op, const struct node *dir, uint32_t rights)
{
	return (rights_on(dir->now->acl, op->caller) & rights) == rights ? 0 : -EACCES;
}

/* The entries of a directory have changed: length, version, dates, author, charge. */
static void touch_directory(const struct change_op *op, struct work *work, struct node *dir,
			    const struct store_pages *pages)
{
	struct version *now = dir->now;
	uint64_t before = space_blocks(&now->v);

	assert(dir->now != dir->base && dir->now->v.kind == STORE_DIR);
	now->v.length = (uint64_t)store_pages_count(pages) * STORE_PAGE;
	dir->vol->rec.used_kib += space_blocks(&now->v) - before;
	work_new_version(work, now);
	now->v.client_mtime = work->now;
	now->v.server_mtime = work_stamp(work, dir->vol);
	now->v.author = op->caller->id;
	work_volume_changed(work, dir->vol);
}

/* Get ready for unlink_node(). 0 or -ENOMEM. */
static int prepare_unlink(struct work *work, struct node *node)
{
	return node->now->v.kind != STORE_DIR && node->now->v.links > 1 ? work_edit(work, node) : 0;
}

/* An object has lost a name. If it has others, it is ready to be changed. Noted in *changes. */
static void unlink_node(struct work *work, struct node *node, struct store_changes *changes)
{
	struct volrec *volume = &node->vol->rec;
	uint64_t blocks = space_blocks(&node->now->v);

	if (node->now->v.kind != STORE_DIR && node->now->v.links > 1) {
		assert(node->now != node->base);
		node->now->v.links--;
		node->now->v.server_mtime = work_stamp(work, node->vol);
		change_note(changes, node, true, false);
		return;
	}
	change_note(changes, node, false, true);
	volume->used_kib -= blocks < volume->used_kib ? blocks : volume->used_kib;
	volume->files -= volume->files > 0;
	work_remove(work, node);
}

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
		result = check_entry_rights(&op->base, dir, STORE_INSERT);
	if (!result)
		result = change_name(op->name, -EEXIST);
	if (!result && is_mount_point(op) && !op->base.caller->administrator)
		result = check_entry_rights(&op->base, dir, STORE_ADMIN);
	if (!result && op->kind == STORE_SYMLINK && (!length || length > STORE_TEXT_MAX))
		result = -EINVAL;
	if (result)
		return result;
	result = find_entry(work, dir, op->name, &vnode, &unique);
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
	v->server_mtime = work_stamp(work, dir->vol);
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
	touch_directory(&op->base, work, dir, pages);
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
	int result = check_entry_rights(&op->base, dir, STORE_INSERT);

	if (!result)
		result = change_name(op->name, -EEXIST);
	if (result)
		return result;
	if (node->now->v.kind != STORE_FILE)
		return -EISDIR;
	if (node->now->v.parent != dir->vnode || node->now->v.parent_unique != dir->now->v.unique)
		return -EXDEV;
	result = find_entry(work, dir, op->name, &vnode, &unique);
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
	node->now->v.server_mtime = work_stamp(work, node->vol);
	touch_directory(&op->base, work, dir, pages);
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
	const struct store_fid *known; /* what the name must lead to; or NULL */
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
	int result = check_entry_rights(&op->base, dir, STORE_DELETE);

	if (!result)
		result = change_old_name(op->name);
	if (!result)
		result = find_entry(work, dir, op->name, &vnode, &unique);
	if (!result && op->known && (op->known->vnode != vnode || op->known->unique != unique))
		result = -ESTALE;
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
		result = prepare_unlink(work, node);
	if (!result)
		result = store_pages_remove(pages, op->name);
	if (result)
		return result;
	dir->now->v.links -= op->kind == STORE_DIR;
	touch_directory(&op->base, work, dir, pages);
	op->base.changes->count = 0;
	change_note(op->base.changes, dir, false, false);
	unlink_node(work, node, op->base.changes);
	change_status(&op->base, dir, dir, op->dir_status);
	return 0;
}

static int run_removal(struct store *store, const struct store_caller *caller, struct remove_op *op)
{
	int result = change_check(core_of(store), caller, op->dir, true);

	return result ? result
		      : change_run_later(core_of(store), caller, &op->base, sizeof(*op),
					 apply_name_removal, NULL);
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

	return run_removal(store, caller, &op);
}

int store_remove_known(struct store *store, const struct store_caller *caller,
		       const struct store_fid *dir, const char *name, const struct store_fid *known,
		       enum store_kind kind, struct store_status *dir_status,
		       struct store_changes *changes)
{
	struct remove_op op = {.dir = dir,
			       .name = name,
			       .known = known,
			       .kind = kind,
			       .dir_status = dir_status,
			       .base.changes = changes};

	return run_removal(store, caller, &op);
}

/* -- rename -- */

#define NEAR  64 /* directories above a directory that the transaction looks at */
#define TRIES 8	 /* after directories of the volume were moved meanwhile */
#define LOOK_FAR \
	1102 /* a result of the transaction: there are more; look_up_to_root(), and try again */

struct rename_op {
	struct change_op base;
	const struct store_fid *old_dir, *new_dir;
	const char *old_name, *new_name;
	struct store_status *old_status, *new_status;
	/* Set by look_up_to_root(): in this tree `moved` is not above the new directory. */
	struct {
		bool done;
		uint64_t moves;
		uint32_t vnode, unique; /* of `moved` */
	} looked;
};

/* The objects of a rename, found in the transaction. */
struct rename {
	struct node *from, *to; /* directories, may be the same */
	struct node *moved;
	struct node *target; /* the object that had the new name, or NULL */
	bool directory, across;
};

static int find_both_directories(const struct rename_op *op, struct work *work,
				 struct rename *rename)
{
	const struct store_fid *first = op->old_dir, *second = op->new_dir;
	struct node **one = &rename->from, **two = &rename->to;
	int result;

	/* The lower vnode first. */
	if (second->vnode < first->vnode) {
		first = op->new_dir;
		second = op->old_dir;
		one = &rename->to;
		two = &rename->from;
	}
	result = change_find_dir(work, op->base.caller, first, one);
	if (!result)
		result = change_find_dir(work, op->base.caller, second, two);
	if (!result)
		result = check_entry_rights(&op->base, rename->from, STORE_DELETE);
	if (!result)
		result = check_entry_rights(&op->base, rename->to, STORE_INSERT);
	rename->across = !result && rename->from != rename->to;
	return result;
}

static int find_moved_node(const struct rename_op *op, struct work *work, struct rename *rename)
{
	uint32_t vnode, unique;
	int result = find_entry(work, rename->from, op->old_name, &vnode, &unique);

	if (result)
		return result;
	if (vnode == rename->from->vnode || vnode == rename->to->vnode)
		return -EINVAL;
	result = change_named(work, rename->from, vnode, unique, &rename->moved);
	if (result)
		return result;
	rename->directory = rename->moved->now->v.kind == STORE_DIR;
	if (!rename->directory && rename->across && rename->moved->now->v.links > 1)
		return -EXDEV;
	return 0;
}

/* The kinds must agree, and a directory must be empty. */
static int check_replaced_node(struct work *work, const struct rename *rename)
{
	bool directory = rename->target->now->v.kind == STORE_DIR;
	struct store_pages *pages;
	int result;

	if (directory != rename->directory)
		return directory ? -EISDIR : -ENOTDIR;
	if (!directory)
		return 0;
	result = work_pages(work, rename->target, &pages);
	return !result && store_pages_entries(pages) > 2 ? -EEXIST : result;
}

static int find_replaced_node(const struct rename_op *op, struct work *work, struct rename *rename)
{
	uint32_t vnode, unique;
	int result = find_entry(work, rename->to, op->new_name, &vnode, &unique);

	if (result)
		return result == -ENOENT ? 0 : result;
	result = check_entry_rights(&op->base, rename->to, STORE_DELETE);
	if (result)
		return result;
	if (vnode == rename->from->vnode || vnode == rename->to->vnode ||
	    vnode == rename->moved->vnode)
		return -EINVAL;
	result = change_named(work, rename->to, vnode, unique, &rename->target);
	return result ? result : check_replaced_node(work, rename);
}

/*
 * A directory must not go below itself. The tree may be as deep as users like, and all writers wait for the transaction: it
 * looks at the next directories only, and relies for the others on a look before it, if no directory was moved since.
 */
static int check_directory_loop(struct rename_op *op, struct work *work,
				const struct rename *rename)
{
	const struct node *moved = rename->moved;
	struct node *at = rename->to;

	assert(rename->from && rename->to && moved);
	if (!rename->directory || !rename->across)
		return 0;
	for (unsigned depth = 0; depth < NEAR; depth++) {
		int result;

		if (at == moved)
			return -EINVAL;
		if (at->vnode == STORE_ROOT_VNODE)
			return 0;
		result = change_named(work, at, at->now->v.parent, at->now->v.parent_unique, &at);
		if (result)
			return result;
	}
	if (op->looked.done && !moved->vol->moves && op->looked.vnode == moved->vnode &&
	    op->looked.unique == moved->now->v.unique &&
	    op->looked.moves == volumes_moves(work->base.volumes, op->new_dir->volume))
		return 0;
	op->looked.vnode = moved->vnode;
	op->looked.unique = moved->now->v.unique;
	return LOOK_FAR;
}

/* Look up to the root, in the thread of the caller. 0, -EINVAL: below itself, or another error. */
static int look_up_to_root(struct core *core, const struct store_caller *caller,
			   struct rename_op *op)
{
	uint32_t vnode = op->new_dir->vnode;
	struct version *version;
	struct volrec volume;
	struct view view;
	int result;

	/* Before the look: a directory that is moved meanwhile counts. */
	op->looked.moves = volumes_moves(&core->volumes, op->new_dir->volume);
	op->looked.done = true;
	result = lookup_view(core, caller, op->new_dir->volume, &view);
	if (!result)
		result = volumes_get(&core->volumes, op->new_dir->volume, &volume);
	/* There are not more directories than files; beyond that it is a loop, by damage. */
	for (uint64_t depth = 0; !result && vnode != STORE_ROOT_VNODE; depth++) {
		if (vnode == op->looked.vnode)
			return -EINVAL;
		if (depth > volume.files + NEAR)
			return -EIO;
		result = lookup_version(core, &view, vnode, &version);
		if (result)
			break;
		vnode = version->v.parent;
		version_unref(version);
	}
	/* The tree has changed meanwhile: the transaction will see that. */
	return result == STORE_VNOVNODE ? 0 : result;
}

/* Everything becomes ready to be changed. */
static int prepare_rename(struct work *work, const struct rename *rename, struct store_pages **from,
			  struct store_pages **to)
{
	struct store_pages *own;
	int result = work_edit_pages(work, rename->from, from);

	if (!result)
		result = work_edit_pages(work, rename->to, to);
	if (!result && rename->across)
		result = rename->directory ? work_edit_pages(work, rename->moved, &own)
					   : work_edit(work, rename->moved);
	if (!result && rename->target)
		result = prepare_unlink(work, rename->target);
	return result;
}

/* The new name gets the slots of the old one. A failure after the first step leaves the transaction broken. */
static int reuse_name_slots(const struct rename_op *op, struct work *work, const struct node *moved,
			    struct store_pages *pages)
{
	int result = store_pages_remove(pages, op->old_name);

	if (result)
		return result;
	result = store_pages_add(pages, op->new_name, moved->vnode, moved->now->v.unique);
	work->broken |= result != 0;
	return result;
}

/*
 * The names. The new one comes first, as with OpenAFS, unless the directory is full. A failure after the
 * first step leaves the transaction broken.
 */
static int change_entry_names(const struct rename_op *op, struct work *work,
			      const struct rename *rename, struct store_pages *from,
			      struct store_pages *to)
{
	const struct node *moved = rename->moved;
	bool begun = false;
	int result = 0;

	if (rename->target) {
		result = store_pages_remove(to, op->new_name);
		begun = !result;
	}
	if (!result)
		result = store_pages_add(to, op->new_name, moved->vnode, moved->now->v.unique);
	if (result == -EFBIG && !rename->across &&
	    store_pages_fits_after(from, op->old_name, op->new_name))
		return reuse_name_slots(op, work, moved, from);
	if (!result) {
		begun = true;
		result = store_pages_remove(from, op->old_name);
	}
	if (!result && rename->across && rename->directory)
		result = store_pages_set(atomic_load(&moved->now->pages), "..", rename->to->vnode,
					 rename->to->now->v.unique);
	if (result && begun)
		work->broken = true;
	return result;
}

static void change_moved_records(const struct rename_op *op, struct work *work,
				 const struct rename *rename, struct store_pages *from,
				 struct store_pages *to)
{
	struct node *moved = rename->moved;

	if (rename->directory) {
		rename->from->now->v.links--;
		rename->to->now->v.links += 1 - (rename->target != NULL);
	}
	if (rename->across) {
		moved->now->v.parent = rename->to->vnode;
		moved->now->v.parent_unique = rename->to->now->v.unique;
		touch_directory(&op->base, work, rename->from, from);
	}
	if (rename->across && rename->directory) {
		moved->vol->moves++;
		work_new_version(work, moved->now);
		moved->now->v.server_mtime = work_stamp(work, moved->vol);
	}
	touch_directory(&op->base, work, rename->to, to);
}

static void note_rename_changes(const struct rename_op *op, struct work *work,
				const struct rename *rename)
{
	op->base.changes->count = 0;
	change_note(op->base.changes, rename->from, false, false);
	if (rename->across)
		change_note(op->base.changes, rename->to, false, false);
	if (rename->across && rename->directory)
		change_note(op->base.changes, rename->moved, true, false);
	if (rename->target)
		unlink_node(work, rename->target, op->base.changes);
}

static int apply_entry_rename(struct txn_op *txn, struct work *work)
{
	struct rename_op *op = (struct rename_op *)txn;
	struct rename rename = {0};
	struct store_pages *from, *to;
	int result = find_both_directories(op, work, &rename);

	if (!result)
		result = find_moved_node(op, work, &rename);
	if (!result)
		result = find_replaced_node(op, work, &rename);
	if (!result)
		result = check_directory_loop(op, work, &rename);
	if (!result)
		result = prepare_rename(work, &rename, &from, &to);
	if (!result)
		result = change_entry_names(op, work, &rename, from, to);
	if (result)
		return result;
	change_moved_records(op, work, &rename, from, to);
	note_rename_changes(op, work, &rename);
	change_status(&op->base, rename.from, rename.from, op->old_status);
	change_status(&op->base, rename.to, rename.to, op->new_status);
	return 0;
}

int names_rename(struct store *store, const struct store_caller *caller,
		 const struct store_fid *old_dir, const char *old_name,
		 const struct store_fid *new_dir, const char *new_name,
		 struct store_status *old_status, struct store_status *new_status,
		 struct store_changes *changes)
{
	struct rename_op op = {.old_dir = old_dir,
			       .new_dir = new_dir,
			       .old_name = old_name,
			       .new_name = new_name,
			       .old_status = old_status,
			       .new_status = new_status,
			       .base.changes = changes};
	int result;

	result = change_spelling(new_name);
	if (!result && old_dir->volume != new_dir->volume)
		result = -EXDEV;
	if (!result && (!old_dir->volume || !old_dir->vnode || !new_dir->vnode))
		result = -EINVAL;
	if (!result)
		result = change_name(new_name, -EINVAL);
	if (!result)
		result = *old_name ? change_old_name(old_name) : -EINVAL;
	if (!result)
		result = change_check(core_of(store), caller, old_dir, true);
	if (result)
		return result;
	result = LOOK_FAR;
	for (unsigned i = 0; i < TRIES && result == LOOK_FAR; i++) {
		result = change_run(core_of(store), caller, &op.base, apply_entry_rename);
		if (result == LOOK_FAR) {
			result = look_up_to_root(core_of(store), caller, &op);
			result = result ? result : LOOK_FAR;
		}
	}
	return result == LOOK_FAR ? STORE_VBUSY : result;
}
