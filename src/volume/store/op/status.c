/* SPDX-License-Identifier: BSD-2-Clause */
/* Statuses and access lists. */
#include "volume/store/op/op.h"

#include <assert.h>
#include <errno.h>

#include "volume/store/maint/maint.h"
#include "volume/store/txn/change.h"
#include "volume/store/txn/lookup.h"

int status_get(struct store *store, const struct store_caller *caller, const struct store_fid *fid,
	       struct store_status *status)
{
	struct found found;
	struct subject subject;
	int result = lookup(core_of(store), caller, fid, &found);

	if (result)
		return result;
	subject = lookup_subject(&found, caller);
	result = rights_status(&subject);
	if (!result)
		rights_fill_status(&subject, fid, status);
	lookup_end(&found);
	return result;
}

/*
 * An object in the directory of one that was found, `found` with `first`, without another look at
 * volume, directory and rights. False: it is not there, or not found.
 */
static bool get_neighbour_status(struct core *core, const struct found *found,
				 const struct subject *first, const struct store_fid *fid,
				 struct store_status *status, int *result)
{
	const struct vnode *v = &found->version->v, *w;
	struct subject subject = *first;
	struct version *version = NULL;
	bool beside;

	assert(found->directory);
	if (fid->volume != found->fid.volume || !fid->vnode ||
	    lookup_version(core, &found->view, fid->vnode, &version))
		return false;
	w = &version->v;
	beside = w->unique == fid->unique && w->kind != STORE_DIR && w->parent == v->parent &&
		 w->parent_unique == v->parent_unique;
	if (beside) {
		subject.version = version;
		*result = rights_status(&subject);
		if (!*result)
			rights_fill_status(&subject, fid, status);
	}
	version_unref(version);
	return beside;
}

static bool is_directory_current(struct core *core, const struct found *found)
{
	struct version *now = NULL;
	bool current = !lookup_version(core, &found->view, found->version->v.parent, &now) &&
		       now == found->directory;

	version_unref(now);
	return current;
}

/*
 * The first object, and those behind it that are in the same directory. If the directory has changed
 * meanwhile, each of them is looked up alone: an object may have been moved there after its rights
 * were taken away. Returns how many.
 */
static size_t get_adjacent_statuses(struct store *store, const struct store_caller *caller,
				    const struct store_fid *fids, size_t count,
				    struct store_status *statuses, int *results)
{
	struct core *core = core_of(store);
	struct found found;
	struct subject subject;
	struct granted granted;
	size_t n = 1;

	results[0] = lookup(core, caller, &fids[0], &found);
	if (results[0])
		return 1;
	subject = lookup_subject(&found, caller);
	granted = rights_granted(subject.acl, caller);
	subject.granted = &granted;
	results[0] = rights_status(&subject);
	if (!results[0])
		rights_fill_status(&subject, &fids[0], &statuses[0]);
	if (found.directory && found.view.epoch == CACHE_HEAD) {
		while (n < count && get_neighbour_status(core, &found, &subject, &fids[n],
							 &statuses[n], &results[n]))
			n++;
		if (n > 1 && !is_directory_current(core, &found))
			for (size_t i = 1; i < n; i++)
				results[i] = status_get(store, caller, &fids[i], &statuses[i]);
	}
	lookup_end(&found);
	return n;
}

void status_get_all(struct store *store, const struct store_caller *caller,
		    const struct store_fid *fids, size_t count, struct store_status *statuses,
		    int *results)
{
	for (size_t i = 0; i < count;)
		i += get_adjacent_statuses(store, caller, &fids[i], count - i, &statuses[i],
					   &results[i]);
}

int status_acl(struct store *store, const struct store_caller *caller, const struct store_fid *fid,
	       struct store_acl *acl, struct store_status *status)
{
	struct found found;
	struct subject subject;
	int result = lookup(core_of(store), caller, fid, &found);

	if (result)
		return result;
	subject = lookup_subject(&found, caller);
	result = rights_acl(&subject);
	if (!result) {
		*acl = *subject.acl;
		rights_fill_status(&subject, fid, status);
	}
	lookup_end(&found);
	return result;
}

/* -- set -- */

struct set_op {
	struct change_op base;
	const struct store_fid *fid;
	const struct store_set *set;
	const struct store_acl *acl, *old; /* old: NULL if it does not matter */
	struct store_status *status;
};

static void finish_status_change(const struct set_op *op, struct work *work, struct node *node,
				 const struct node *dir)
{
	assert(node->now != node->base);
	node->now->v.server_mtime = work_stamp(work, node->vol);
	work_volume_changed(work, node->vol);
	op->base.changes->count = 0;
	change_note(op->base.changes, node, false, false);
	change_status(&op->base, node, dir, op->status);
}

static int apply_status_set(struct txn_op *txn, struct work *work)
{
	struct set_op *op = (struct set_op *)txn;
	struct subject subject;
	struct node *node, *dir;
	int result = change_find(work, op->base.caller, op->fid, &node);

	if (!result)
		result = change_dir_of(work, node, &dir);
	if (result)
		return result;
	subject = change_subject(&op->base, node, dir);
	result = rights_set_status(&subject);
	if (!result)
		result = rights_set(&subject, op->set);
	if (!result)
		result = work_edit(work, node);
	if (result)
		return result;
	subject.version = node->now;
	rights_apply(&subject, op->set, &node->now->v);
	if (op->set->mask & STORE_SET_MTIME)
		node->now->v.client_mtime = op->set->mtime;
	if (op->set->mask & STORE_SET_OWNER && node->vnode == STORE_ROOT_VNODE)
		node->vol->rec.owner = op->set->owner;
	finish_status_change(op, work, node, dir);
	return 0;
}

int status_set(struct store *store, const struct store_caller *caller, const struct store_fid *fid,
	       const struct store_set *set, struct store_status *status,
	       struct store_changes *changes)
{
	struct core *core = core_of(store);
	struct set_op op = {.fid = fid, .set = set, .status = status, .base.changes = changes};
	int result = change_check(core, caller, fid, false);

	if (!result)
		result = change_run(core, caller, &op.base, apply_status_set);
	if (!result && set->mask & STORE_SET_SYNC && core->durability == STORE_LAZY)
		result = keeper_flush(core->keeper);
	if (!result && set->mask & STORE_SET_SYNC)
		result = lost_check(core, fid);
	return result;
}

static int check_acl_size(const struct store_acl *acl)
{
	return acl->positive + acl->negative > STORE_ACL_MAX ? -EINVAL : 0;
}

static bool is_same_acl(const struct store_acl *a, const struct store_acl *b)
{
	bool same = a->positive == b->positive && a->negative == b->negative;

	for (unsigned i = 0; same && i < (unsigned)a->positive + a->negative; i++)
		same = a->entry[i].id == b->entry[i].id && a->entry[i].rights == b->entry[i].rights;
	return same;
}

static int apply_acl_change(struct txn_op *txn, struct work *work)
{
	struct set_op *op = (struct set_op *)txn;
	struct subject subject;
	struct node *node;
	int result = change_find_dir(work, op->base.caller, op->fid, &node);

	if (result)
		return result;
	subject = change_subject(&op->base, node, node);
	result = rights_set_acl(&subject);
	if (!result)
		result = check_acl_size(op->acl);
	if (!result && op->old && !is_same_acl(op->old, node->now->acl))
		result = -EAGAIN;
	if (!result)
		result = work_edit(work, node);
	if (result)
		return result;
	*node->now->acl = *op->acl;
	finish_status_change(op, work, node, node);
	return 0;
}

int status_set_acl(struct store *store, const struct store_caller *caller,
		   const struct store_fid *dir, const struct store_acl *acl,
		   struct store_status *status, struct store_changes *changes)
{
	return status_change_acl(store, caller, dir, NULL, acl, status, changes);
}

int status_change_acl(struct store *store, const struct store_caller *caller,
		      const struct store_fid *dir, const struct store_acl *old,
		      const struct store_acl *acl, struct store_status *status,
		      struct store_changes *changes)
{
	struct set_op op = {
		.fid = dir, .acl = acl, .old = old, .status = status, .base.changes = changes};
	int result = change_check(core_of(store), caller, dir, true);

	return result ? result : change_run(core_of(store), caller, &op.base, apply_acl_change);
}
