/* SPDX-License-Identifier: BSD-2-Clause */
/* Rename. */
#include <assert.h>
#include <errno.h>
#include <stdatomic.h>

#include "volume/store/op/entry.h"
#include "volume/store/op/names.h"
#include "volume/store/txn/lookup.h"

#define NEAR	 64   /* directories above a directory that the transaction looks at */
#define TRIES	 8    /* after directories of the volume were moved meanwhile */
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
		result = entry_rights(&op->base, rename->from, STORE_DELETE);
	if (!result)
		result = entry_rights(&op->base, rename->to, STORE_INSERT);
	rename->across = !result && rename->from != rename->to;
	return result;
}

static int find_moved_node(const struct rename_op *op, struct work *work, struct rename *rename)
{
	uint32_t vnode, unique;
	int result = entry_find(work, rename->from, op->old_name, &vnode, &unique);

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
	int result = entry_find(work, rename->to, op->new_name, &vnode, &unique);

	if (result)
		return result == -ENOENT ? 0 : result;
	result = entry_rights(&op->base, rename->to, STORE_DELETE);
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
		result = entry_prepare_unlink(work, rename->target);
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
		entry_touch(&op->base, work, rename->from, from);
	}
	if (rename->across && rename->directory) {
		moved->vol->moves++;
		work_new_version(work, moved->now);
		moved->now->v.server_mtime = work->now;
	}
	entry_touch(&op->base, work, rename->to, to);
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
		entry_unlink(work, rename->target, op->base.changes);
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
