/* SPDX-License-Identifier: BSD-2-Clause */
/* Clones of volumes, and operations on a volume and its clones together. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "afs/volname.h"
#include "volume/store/maint/keeper.h"
#include "volume/store/op/adminop.h"

#define CHANGES 256 /* read at a time */

static const char *choose_name_suffix(enum store_type type)
{
	return type == STORE_RO ? ".readonly" : type == STORE_BACKUP ? ".backup" : "";
}

static void compose_volume_name(char name[STORE_VOLNAME_MAX + 16], const char *base,
				enum store_type type)
{
	snprintf(name, STORE_VOLNAME_MAX + 16, "%.*s%s", STORE_VOLNAME_MAX, base,
		 choose_name_suffix(type));
}

/* The record of the clone, as it will be. `old`: of the one that it replaces, or NULL. */
static void fill_clone_record(struct volrec *clone, const struct volrec *rw, enum store_type type,
			      const struct volrec *old, uint32_t now)
{
	assert(type != STORE_RW && rw->type == STORE_RW);
	*clone = *rw;
	clone->id = rw->clone_id[type == STORE_BACKUP];
	clone->type = (uint8_t)type;
	/* An administrator may have had a reason, such as broken data, which only he can take back. */
	clone->offline = old ? old->offline : 0;
	memset(clone->message, 0, sizeof(clone->message));
	if (old)
		memcpy(clone->message, old->message, sizeof(clone->message));
	for (int i = 0; i < 2; i++)
		clone->clone_id[i] = clone->clone_epoch[i] = 0;
	compose_volume_name(clone->name, rw->name, type);
	/* Clients take another date for another content. */
	clone->created = old && old->created >= now ? old->created + 1 : now;
	clone->copied = old ? old->copied : now;
	clone->cloned = now;
}

static int put_clone_record(struct work *work, struct db *db, struct workvol *rw,
			    enum store_type type)
{
	int which = type == STORE_BACKUP;
	struct db_prune prune = {.group = rw->rec.group, .epoch = rw->rec.clone_epoch[which]};
	struct workvol *old;
	struct volrec clone;
	int result;

	assert(rw->rec.type == STORE_RW);
	if (!rw->rec.clone_epoch[which]) {
		fill_clone_record(&clone, &rw->rec, type, NULL, work->now);
		return work_volume_add(work, &clone);
	}
	result = work_any_volume(work, rw->rec.clone_id[which], &old);
	if (!result)
		result = db_prune_put(db, &prune);
	if (result)
		return result;
	fill_clone_record(&clone, &rw->rec, type, &old->rec, work->now);
	old->rec = clone;
	old->changed = true;
	return 0;
}

static int apply_clone(struct txn_op *txn, struct work *work)
{
	struct admin_op *op = (struct admin_op *)txn;
	int which = op->type == STORE_BACKUP;
	struct workvol *rw;
	struct db *db;
	int result = admin_find(work, op->id, STORE_RW, &rw);

	if (!result)
		result = work_db(work, &db);
	if (!result && rw->rec.epoch >= UINT32_MAX - 1)
		result = -EFBIG;
	/* Earlier versions made longer names. Its clone could not be named by clients. */
	if (!result && !afs_volume_name_has_room(rw->rec.name))
		result = -ENAMETOOLONG;
	if (!result)
		result = put_clone_record(work, db, rw, op->type);
	if (result)
		return result;
	rw->rec.clone_epoch[which] = rw->rec.epoch++;
	rw->rec.cloned = which ? work->now : rw->rec.cloned;
	rw->changed = true;
	op->id = rw->rec.clone_id[which];
	return 0;
}

int store_volume_clone(struct store *store, uint32_t id, enum store_type type, uint32_t *clone)
{
	struct admin_op op = {.id = id, .type = type};
	int result = type == STORE_RW ? -EINVAL : admin_run(store, &op, apply_clone);

	if (result)
		return result;
	*clone = op.id;
	keeper_wake(core_of(store)->keeper);
	return 0;
}

/* -- names -- */

static int apply_volume_rename(struct txn_op *txn, struct work *work)
{
	const struct admin_op *op = (const struct admin_op *)txn;
	char name[STORE_VOLNAME_MAX + 16];
	struct workvol *rw, *clone;
	int result = admin_find(work, op->id, STORE_RW, &rw);

	if (!result)
		result = work_volume_rename(work, rw, op->name);
	for (int i = 0; i < 2 && !result; i++) {
		if (!rw->rec.clone_epoch[i])
			continue;
		compose_volume_name(name, op->name, i ? STORE_BACKUP : STORE_RO);
		result = work_any_volume(work, rw->rec.clone_id[i], &clone);
		if (!result)
			result = work_volume_rename(work, clone, name);
		work->broken = result != 0;
	}
	return result;
}

int store_volume_rename(struct store *store, uint32_t id, const char *name)
{
	struct admin_op op = {.id = id, .name = name};

	return afs_volume_name_has_room(name) ? admin_run(store, &op, apply_volume_rename)
					      : -EINVAL;
}

/* -- changes -- */

/* Rows of vnodes that have changed again since are passed over. */
static int report_change(struct db *db, uint32_t group, const struct db_change *change,
			 int (*each)(void *arg, uint32_t vnode, bool gone), void *arg)
{
	struct vnode_key key = {.group = group, .vnode = change->vnode, .epoch = UINT32_MAX};
	struct version *version;
	int result = db_vnode_get(db, &key, &version);
	bool gone, newest;

	if (result == -ENOENT)
		return 0;
	if (result)
		return result;
	newest = version->epoch == change->epoch;
	gone = !version->v.kind;
	version_unref(version);
	return newest ? each(arg, change->vnode, gone) : 0;
}

static int report_changes(struct db *db, const struct volrec *clone,
			  int (*each)(void *arg, uint32_t vnode, bool gone), void *arg)
{
	struct db_change change[CHANGES];
	struct db_change after = {.epoch = clone->epoch, .vnode = UINT32_MAX};
	unsigned count;
	int result;

	do {
		result = db_changes(db, clone->group, &after, UINT32_MAX, change, CHANGES, &count);
		for (unsigned i = 0; i < count && !result; i++)
			result = report_change(db, clone->group, &change[i], each, arg);
		if (count)
			after = change[count - 1];
	} while (!result && count == CHANGES);
	return result;
}

int store_volume_changes(struct store *store, uint32_t id,
			 int (*each)(void *arg, uint32_t vnode, bool gone), void *arg)
{
	struct core *core = core_of(store);
	struct volrec clone;
	struct db *db;
	int result = volumes_get(&core->volumes, id, &clone);

	if (!result && clone.type == STORE_RW)
		result = -EINVAL;
	if (!result)
		result = readers_get(core->readers, &db);
	if (result)
		return result;
	result = report_changes(db, &clone, each, arg);
	readers_put(core->readers, db);
	return result;
}
