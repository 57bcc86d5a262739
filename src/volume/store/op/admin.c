/* SPDX-License-Identifier: BSD-2-Clause */
/* Volumes: look-up, creation, removal, names, state, clones; and the last ids of users and groups. */
#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "afs/volname.h"
#include "volume/store/maint/maint.h"
#include "volume/store/op/op.h"
#include "volume/store/txn/core.h"
#include "volume/store/txn/space.h"

#define FIRST_ID      536870912u
#define FIRST_UNIQUE  2
#define FIRST_VERSION 1
#define PAST_UNKNOWN  (1ull << 40) /* more than a root has had */

/* -- asking -- */

static void fill_volume_info(struct core *core, const struct volrec *rec, bool damaged,
			     struct store_volume *volume)
{
	struct volrec rw = *rec;

	*volume = (struct store_volume){.id = rec->id,
					.rw = rec->parent ? rec->parent : rec->group,
					.type = volrec_shown_type(rec),
					.cell = rec->cell & VOLUME_CELL,
					.online = !rec->offline && !damaged,
					.quota_kib = rec->quota_kib,
					.minimum = rec->minimum,
					.used_kib = rec->used_kib,
					.files = rec->files,
					.created = rec->creation ? rec->creation : rec->created,
					.copied = rec->copied,
					.updated = rec->updated,
					.cloned = rec->cloned,
					.sync = rec->created};
	snprintf(volume->name, sizeof(volume->name), "%s", rec->name);
	snprintf(volume->offline_message, sizeof(volume->offline_message), "%s",
		 damaged		      ? "the record of the volume is damaged"
		 : rec->offline & VOLUME_BUSY ? "its contents are being replaced"
					      : rec->message);
	if (damaged)
		return;
	if (rec->type != STORE_RW && volumes_get(&core->volumes, rec->group, &rw))
		return;
	volume->ro = rw.clone_epoch[0] ? rw.clone_id[0] : rec->shown_clone;
	volume->backup = rw.clone_epoch[1] ? rw.clone_id[1] : rec->shown_backup;
}

int admin_volume(struct store *store, uint32_t id, struct store_volume *volume)
{
	struct volrec rec;
	int result = volumes_get(&core_of(store)->volumes, id, &rec);

	if (!result && rec.offline & VOLUME_HIDDEN)
		return STORE_VNOVOL;
	if (!result)
		fill_volume_info(core_of(store), &rec, false, volume);
	return result;
}

int admin_by_name(struct store *store, const char *name, struct store_volume *volume)
{
	struct volrec rec;
	int result = volumes_by_name(&core_of(store)->volumes, name, &rec);

	if (!result && rec.offline & VOLUME_HIDDEN)
		return STORE_VNOVOL;
	if (!result)
		fill_volume_info(core_of(store), &rec, false, volume);
	return result;
}

int admin_next(struct store *store, uint32_t id, struct store_volume *volume)
{
	struct volrec rec;
	int result = volumes_next(&core_of(store)->volumes, id, &rec);

	if (result == STORE_VNOVOL)
		return result;
	fill_volume_info(core_of(store), &rec, result != 0, volume);
	return 0;
}

int admin_at(struct store *store, uint32_t at, struct store_volume *volume)
{
	struct volrec rec;
	int result = volumes_at(&core_of(store)->volumes, at, &rec);

	if (result == STORE_VNOVOL)
		return result;
	fill_volume_info(core_of(store), &rec, result != 0, volume);
	return 0;
}

void admin_totals(struct store *store, struct store_totals *totals)
{
	volumes_totals(&core_of(store)->volumes, totals);
}

int admin_space(struct store *store, struct store_space *space)
{
	return space_disk(core_of(store), space);
}

/* -- changing -- */

struct admin_op {
	struct txn_op txn;
	struct core *core;
	uint32_t id;
	enum store_type type;
	const struct store_new_volume *new;
	const struct store_volume *values;
	const char *name;
	unsigned mask;
	struct admin_used_id used;
	bool (*permits)(void *arg, const struct store_acl *root);
	void *arg;
};

/* Run the operation in a transaction of its own. */
static int run_admin_op(struct store *store, struct admin_op *op,
			int (*apply)(struct txn_op *op, struct work *work))
{
	op->core = core_of(store);
	op->txn.apply = apply;
	op->txn.alone = true;
	return txn_run(op->core->txn, &op->txn);
}

static int apply_volume_values(struct txn_op *txn, struct work *work)
{
	const struct admin_op *op = (const struct admin_op *)txn;
	struct workvol *volume;
	int result = work_any_volume(work, op->id, &volume);

	if (!result && volrec_shown_type(&volume->rec) != STORE_RW)
		result = -EROFS;
	if (result)
		return result;
	if (op->mask & 1)
		volume->rec.quota_kib = op->values->quota_kib;
	if (op->mask & 2)
		snprintf(volume->rec.message, sizeof(volume->rec.message), "%s",
			 op->values->offline_message);
	if (op->mask & 4)
		volume->rec.minimum = op->values->minimum;
	volume->changed = true;
	return 0;
}

int admin_set(struct store *store, const struct store_caller *caller, uint32_t id, unsigned mask,
	      const struct store_volume *volume)
{
	struct admin_op op = {.id = id, .mask = mask, .values = volume};
	struct volrec rec;
	int result = volumes_get(&core_of(store)->volumes, id, &rec);

	if (result)
		return result;
	if (volrec_shown_type(&rec) != STORE_RW)
		return -EROFS;
	return caller->administrator ? run_admin_op(store, &op, apply_volume_values) : -EACCES;
}

static int apply_offline(struct txn_op *txn, struct work *work)
{
	const struct admin_op *op = (const struct admin_op *)txn;
	struct workvol *volume;
	int result = work_any_volume(work, op->id, &volume);

	if (result)
		return result;
	volume->rec.offline |= VOLUME_OFFLINE;
	snprintf(volume->rec.message, sizeof(volume->rec.message), "%s", op->name);
	volume->changed = true;
	return 0;
}

int store_volume_offline(struct store *store, uint32_t id, const char *message)
{
	struct admin_op op = {.id = id, .name = message};

	return run_admin_op(store, &op, apply_offline);
}

int admin_check_root(struct work *work, struct workvol *volume,
		     bool (*permits)(void *arg, const struct store_acl *root), void *arg)
{
	struct node *root;
	int result;

	if (!permits || volume->rec.type != STORE_RW)
		return 0;
	result = work_live(work, volume, STORE_ROOT_VNODE, STORE_ROOT_UNIQUE, &root);
	if (result)
		return result == -EIO || result == STORE_VNOVNODE ? 0 : result;
	return permits(arg, root->now->acl) ? 0 : -EACCES;
}

static int apply_online(struct txn_op *txn, struct work *work)
{
	const struct admin_op *op = (const struct admin_op *)txn;
	struct workvol *volume;
	int result = work_any_volume(work, op->id, &volume);

	if (!result)
		result = admin_check_root(work, volume, op->permits, op->arg);
	if (result)
		return result;
	volume->rec.offline &= (uint8_t)~VOLUME_OFFLINE;
	volume->rec.message[0] = '\0';
	volume->changed = true;
	return 0;
}

int store_volume_online(struct store *store, uint32_t id,
			bool (*permits)(void *arg, const struct store_acl *root), void *arg)
{
	struct admin_op op = {.id = id, .permits = permits, .arg = arg};

	return run_admin_op(store, &op, apply_online);
}

/* -- create -- */

int admin_allocate_ids(struct core *core, struct db *db, unsigned count, uint32_t *id)
{
	uint64_t next;
	unsigned run = 0;
	int result = db_number_get(db, "volume", &next);

	assert(count > 0);
	if (result == -ENOENT) {
		next = FIRST_ID;
		result = 0;
	}
	for (; !result && run < count; next++)
		run = volumes_keeps(&core->volumes, (uint32_t)next) ? 0 : run + 1;
	if (!result && next > UINT32_MAX)
		result = -ENOSPC;
	*id = (uint32_t)next - count;
	return result ? result : db_number_put(db, "volume", next);
}

/* Those of rec->id, or of a free one if that is 0. */
static int choose_volume_ids(struct core *core, struct db *db, struct volrec *rec)
{
	uint32_t first;
	int result;

	if (rec->id && volumes_keeps(&core->volumes, rec->id))
		return STORE_VVOLEXISTS;
	rec->group = rec->id;
	/* The cell has the ids of clones. */
	if (rec->cell)
		return 0;
	result = admin_allocate_ids(core, db, rec->id ? 2 : 3, &first);
	if (result)
		return result;
	/* The counter may have arrived at the id that was asked for. */
	if (rec->id && (first == rec->id || first + 1 == rec->id))
		result = admin_allocate_ids(core, db, 2, &first);
	if (!rec->id)
		rec->id = first++;
	rec->clone_id[0] = first;
	rec->clone_id[1] = first + 1;
	assert(result || (rec->clone_id[0] != rec->id && rec->clone_id[1] != rec->id));
	rec->group = rec->id;
	return result;
}

/* -- a volume that takes the id of a removed one -- */

/*
 * Clients may remember objects of the removed volume. A FID with a data version means one content for ever, so
 * uniquifiers and the versions of the root go on.
 */
struct past {
	uint64_t unique, version; /* the next ones */
};
#define PAST_UNIQUE  "unique of %u"
#define PAST_VERSION "version of %u"

static int read_past_numbers(struct db *db, uint32_t id, struct past *past)
{
	char name[40];
	int result;

	*past = (struct past){.unique = FIRST_UNIQUE, .version = FIRST_VERSION};
	snprintf(name, sizeof(name), PAST_UNIQUE, id);
	result = db_number_get(db, name, &past->unique);
	if (!result) {
		snprintf(name, sizeof(name), PAST_VERSION, id);
		result = db_number_get(db, name, &past->version);
	}
	return result == -ENOENT ? 0 : result;
}

static int write_past_numbers(struct db *db, uint32_t id, const struct past *past)
{
	char name[40];
	int result;

	snprintf(name, sizeof(name), PAST_UNIQUE, id);
	result = db_number_put(db, name, past->unique);
	if (result)
		return result;
	snprintf(name, sizeof(name), PAST_VERSION, id);
	return db_number_put(db, name, past->version);
}

static int save_past_numbers(struct work *work, struct db *db, struct workvol *volume)
{
	struct past past = {.unique = volume->rec.next_unique, .version = PAST_UNKNOWN};
	struct node *root;

	assert(volume->rec.type == STORE_RW);
	if (!work_live(work, volume, STORE_ROOT_VNODE, STORE_ROOT_UNIQUE, &root))
		past.version = root->now->v.version + 1;
	return write_past_numbers(db, volume->rec.id, &past);
}

int admin_leave_group(struct db *db, const struct volrec *rec)
{
	const struct past past = {.unique = rec->next_unique, .version = PAST_UNKNOWN};
	struct db_prune prune = {.group = rec->group};
	int result = write_past_numbers(db, rec->group, &past);

	assert(rec->type == STORE_RW && rec->id == rec->group);
	return result ? result : db_prune_put(db, &prune);
}

/*
 * The remains of a removed volume with this id would become part of the new one. Also without rows its removal may wait, which
 * would remove the rows of the new one.
 */
static int check_group_unused(struct db *db, uint32_t group)
{
	struct db_change first = {0}, change;
	unsigned count;
	bool waits;
	int result = db_prune_has(db, group, &waits);

	if (result || waits)
		return result ? result : STORE_VBUSY;
	result = db_changes(db, group, &first, UINT32_MAX, &change, 1, &count);
	return !result && count ? STORE_VBUSY : result;
}

/*
 * The caller drops what the cache has of the removed volume, not the commit, since the cache may be large. No row of the group
 * is left, so nothing comes back to the cache afterwards.
 */
static int check_cache_dropped(struct admin_used_id *used, uint32_t group, const struct past *past)
{
	assert(group);
	if (past->version == FIRST_VERSION ||
	    (used->group == group && used->unique == past->unique &&
	     used->version == past->version))
		return 0;
	*used = (struct admin_used_id){group, past->unique, past->version};
	return ADMIN_USED_ID;
}

int admin_make_root(const struct store_new_volume *new, struct work *work, struct workvol *volume,
		    uint64_t version)
{
	struct version *root = version_new();
	struct store_pages *pages = store_pages_new(1, 1, 1, 1);
	struct node *node;
	int result = work_node(work, volume, STORE_ROOT_VNODE, &node);

	if (root) {
		root->acl = calloc(1, sizeof(*root->acl));
		atomic_init(&root->pages, pages);
	}
	if (!result && (!root || !root->acl || !pages))
		result = -ENOMEM;
	if (result) {
		if (!root && pages)
			store_pages_unref(pages);
		version_unref(root);
		return result;
	}
	if (new->acl)
		*root->acl = *new->acl;
	else
		store_acl_add(root->acl, false, STORE_ADMINISTRATORS, STORE_ALL);
	root->v = (struct vnode){.kind = STORE_DIR,
				 .mode = (uint16_t)(new->mode ? new->mode & 07777 : 0755),
				 .links = 2,
				 .unique = STORE_ROOT_UNIQUE,
				 .length = STORE_PAGE,
				 .version = version,
				 .author = new->owner,
				 .owner = new->owner,
				 .parent = 1,
				 .parent_unique = 1,
				 .client_mtime = work->now,
				 .server_mtime = work->now,
				 .incarnation = work->base.incarnation};
	work_create(work, node, root);
	return 0;
}

int admin_add_volume(struct work *work, struct core *core, struct volrec *rec,
		     struct admin_used_id *used, uint64_t *root_version)
{
	struct past past = {0};
	struct db *db;
	int result = work_db(work, &db);

	if (!result && !(rec->cell & VOLUME_NAMELESS) &&
	    volumes_has_name(&core->volumes, rec->name))
		result = -EEXIST;
	if (!result)
		result = choose_volume_ids(core, db, rec);
	if (!result)
		result = check_group_unused(db, rec->group);
	if (!result)
		result = read_past_numbers(db, rec->id, &past);
	if (!result)
		result = check_cache_dropped(used, rec->group, &past);
	rec->type = STORE_RW;
	rec->epoch = 1;
	rec->incarnation = work->base.incarnation;
	rec->next_unique = (uint32_t)past.unique;
	*root_version = past.version;
	if (!result)
		result = work_volume_add(work, rec);
	work->broken |= result != 0;
	return result;
}

static int apply_volume_creation(struct txn_op *txn, struct work *work)
{
	struct admin_op *op = (struct admin_op *)txn;
	struct volrec rec = {.id = op->new->id,
			     .quota_kib = op->new->quota_kib,
			     .used_kib = 2,
			     .files = 1,
			     .created = work->now,
			     .copied = work->now,
			     .updated = work->now,
			     .owner = op->new->owner};
	struct workvol *volume;
	uint64_t version;
	int result;

	snprintf(rec.name, sizeof(rec.name), "%s", op->new->name);
	result = admin_add_volume(work, op->core, &rec, &op->used, &version);
	if (!result)
		result = work_any_volume(work, rec.id, &volume);
	if (!result)
		result = admin_make_root(op->new, work, volume, version);
	if (result)
		work->broken = true;
	op->id = rec.id;
	return result;
}

int store_volume_create(struct store *store, const struct store_new_volume *new, uint32_t *id)
{
	struct admin_op op = {.new = new};
	int result;

	if (!afs_volume_name_has_room(new->name))
		return -EINVAL;
	result = prune_removed(core_of(store), new->id);
	if (result)
		return result;
	for (;;) {
		result = run_admin_op(store, &op, apply_volume_creation);
		if (result != ADMIN_USED_ID)
			break;
		cache_drop(core_of(store)->cache, op.used.group);
	}
	if (!result)
		*id = op.id;
	return result;
}

/* -- remove -- */

int admin_prune_clone(struct db *db, const struct volrec *rw, uint32_t epoch)
{
	struct db_prune prune = {.group = rw->group, .epoch = epoch};

	for (int i = 0; i < VOLREC_CLONES; i++)
		if (rw->clone_epoch[i] == epoch)
			return 0;
	return rw->snapshot == epoch ? 0 : db_prune_put(db, &prune);
}

/* All rows of the group go in the background. */
static int remove_group(struct work *work, struct db *db, struct workvol *rw)
{
	struct db_prune prune = {.group = rw->rec.group};
	int result = save_past_numbers(work, db, rw);

	if (!result)
		result = db_prune_put(db, &prune);
	if (result)
		work->broken = true;
	else
		work_volume_remove(work, rw);
	return result;
}

int admin_clone_place(const struct volrec *rw, uint32_t clone)
{
	int i = 0;

	while (i < VOLREC_CLONES && !(rw->clone_id[i] == clone && rw->clone_epoch[i]))
		i++;
	return i;
}

/* The ids of the read-only clone and the backup stay reserved for the next ones. */
static int remove_clone(struct work *work, struct db *db, struct workvol *clone)
{
	struct workvol *rw;
	int result = work_any_volume(work, clone->rec.group, &rw), place;

	assert(clone->rec.type != STORE_RW);
	/* The volume may be going back to it. */
	if (!result && rw->rec.offline & VOLUME_BUSY)
		result = STORE_VBUSY;
	if (result)
		return result;
	place = admin_clone_place(&rw->rec, clone->rec.id);
	assert(place < VOLREC_CLONES);
	rw->rec.clone_epoch[place] = 0;
	if (place > 1 || rw->rec.cell)
		rw->rec.clone_id[place] = 0;
	rw->changed = true;
	result = admin_prune_clone(db, &rw->rec, clone->rec.epoch);
	work->broken |= result != 0;
	if (result)
		return result;
	work_volume_remove(work, clone);
	return rw->rec.cell & VOLUME_GHOST && !volrec_has_clones(&rw->rec)
		       ? remove_group(work, db, rw)
		       : 0;
}

/* A volume that could not go back to a clone cannot be removed after it, since the clone stays meanwhile: both go together. */
static int remove_clones_of_busy(struct work *work, struct workvol *volume)
{
	struct workvol *clone;

	for (unsigned i = 0; i < VOLREC_CLONES; i++) {
		int result;

		if (!volume->rec.clone_epoch[i])
			continue;
		assert(volume->rec.offline & VOLUME_BUSY);
		result = work_any_volume(work, volume->rec.clone_id[i], &clone);
		if (result)
			return result;
		work_volume_remove(work, clone);
	}
	return 0;
}

/* The clones of a volume that is removed in a cell stay: the record that has their epochs goes after the last one. */
static void leave_ghost(struct workvol *rw)
{
	struct volrec *rec = &rw->rec;

	rec->offline = VOLUME_HIDDEN | VOLUME_OFFLINE;
	rec->cell = VOLUME_CELL | VOLUME_GHOST | VOLUME_NAMELESS;
	rw->changed = rw->named = true;
}

/* `cell`: its clones stay. */
static int remove_rw(struct work *work, struct db *db, struct workvol *volume, bool cell)
{
	int result;

	assert(volume->rec.type == STORE_RW);
	if (volume->rec.snapshot)
		return STORE_VBUSY;
	if (volrec_has_clones(&volume->rec) && !(volume->rec.offline & VOLUME_BUSY)) {
		if (!cell)
			return -ENOTEMPTY;
		leave_ghost(volume);
		return 0;
	}
	result = remove_clones_of_busy(work, volume);
	return result ? result : remove_group(work, db, volume);
}

int admin_apply_removal(struct work *work, uint32_t id, bool hidden, bool cell)
{
	struct workvol *volume;
	struct db *db;
	int result = work_any_volume(work, id, &volume);

	if (!result && volume->rec.cell & VOLUME_GHOST)
		result = STORE_VNOVOL;
	if (!result)
		result = work_db(work, &db);
	if (result)
		return result;
	if (volume->rec.type != STORE_RW)
		return remove_clone(work, db, volume);
	/* A volume that is being restored is removed by the restore. */
	if (volume->rec.offline & VOLUME_HIDDEN && !hidden)
		return STORE_VBUSY;
	return remove_rw(work, db, volume, cell);
}

static int apply_volume_removal(struct txn_op *txn, struct work *work)
{
	const struct admin_op *op = (const struct admin_op *)txn;

	return admin_apply_removal(work, op->id, op->mask, false);
}

static int remove_volume(struct store *store, uint32_t id, bool hidden)
{
	struct admin_op op = {.id = id, .mask = hidden};
	int result = run_admin_op(store, &op, apply_volume_removal);

	if (!result)
		keeper_wake(core_of(store)->keeper);
	return result;
}

int store_volume_remove(struct store *store, uint32_t id)
{
	return remove_volume(store, id, false);
}

int admin_remove_hidden(struct store *store, uint32_t id)
{
	return remove_volume(store, id, true);
}

/* -- clones -- */

int admin_find_rw(struct work *work, uint32_t id, struct workvol **volume)
{
	int result = work_any_volume(work, id, volume);

	if (!result && (*volume)->rec.type != STORE_RW)
		return -EINVAL;
	if (!result &&
	    ((*volume)->rec.offline & VOLUME_BUSY || volrec_is_unfinished(&(*volume)->rec)))
		return STORE_VBUSY;
	return result;
}

static const char *choose_name_suffix(enum store_type type)
{
	return type == STORE_RO ? ".readonly" : type == STORE_BACKUP ? ".backup" : "";
}

void admin_compose_name(char name[STORE_VOLNAME_MAX + 16], const char *base, enum store_type type)
{
	assert(type != STORE_RW);
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
	memset(clone->clone_id, 0, sizeof(clone->clone_id));
	memset(clone->clone_epoch, 0, sizeof(clone->clone_epoch));
	clone->cell = old ? old->cell : 0;
	clone->creation = 0;
	admin_compose_name(clone->name, rw->name, type);
	/* Clients take another date for another content. */
	clone->created = old && old->created >= now ? old->created + 1 : now;
	clone->copied = old ? old->copied : now;
	clone->cloned = now;
}

static int put_clone_record(struct work *work, struct db *db, struct workvol *rw,
			    enum store_type type)
{
	int which = type == STORE_BACKUP;
	uint32_t epoch = rw->rec.clone_epoch[which];
	struct workvol *old;
	struct volrec clone;
	int result;

	assert(rw->rec.type == STORE_RW);
	if (!rw->rec.clone_epoch[which]) {
		fill_clone_record(&clone, &rw->rec, type, NULL, work->now);
		return work_volume_add(work, &clone);
	}
	result = work_any_volume(work, rw->rec.clone_id[which], &old);
	if (result)
		return result;
	rw->rec.clone_epoch[which] = 0;
	result = admin_prune_clone(db, &rw->rec, epoch);
	work->broken |= result != 0;
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
	int result = admin_find_rw(work, op->id, &rw);

	assert(op->type != STORE_RW);
	if (!result)
		result = work_db(work, &db);
	if (!result && rw->rec.epoch >= UINT32_MAX - 1)
		result = -EFBIG;
	/* Earlier versions made longer names. Its clone could not be named by clients. */
	if (!result && !afs_volume_name_has_room(rw->rec.name))
		result = -ENAMETOOLONG;
	/* The volume of a cell keeps none. */
	if (!result && !rw->rec.clone_id[which])
		result = admin_allocate_ids(op->core, db, 1, &rw->rec.clone_id[which]);
	if (!result)
		result = put_clone_record(work, db, rw, op->type);
	work->broken |= result != 0;
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
	int result = type == STORE_RW ? -EINVAL : prune_until_few(core_of(store), id);

	if (!result)
		result = run_admin_op(store, &op, apply_clone);
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
	int result = admin_find_rw(work, op->id, &rw);

	if (!result)
		result = work_volume_rename(work, rw, op->name);
	for (int i = 0; i < 2 && !result; i++) {
		if (!rw->rec.clone_epoch[i])
			continue;
		admin_compose_name(name, op->name, i ? STORE_BACKUP : STORE_RO);
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

	return afs_volume_name_has_room(name) ? run_admin_op(store, &op, apply_volume_rename)
					      : -EINVAL;
}

/* -- changes -- */

#define CHANGES 256 /* read at a time */

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

/* -- the last ids of users and groups, for the case that their database is lost -- */

#define USER  "user" /* numbers in the database */
#define GROUP "group"

struct note_op {
	struct txn_op txn;
	int32_t user, group;
};

static int raise_stored_number(struct db *db, const char *name, uint64_t value)
{
	uint64_t now = 0;
	int result = db_number_get(db, name, &now);

	if (result && result != -ENOENT)
		return result;
	return value > now ? db_number_put(db, name, value) : 0;
}

static int apply_id_note(struct txn_op *txn, struct work *work)
{
	const struct note_op *op = (const struct note_op *)txn;
	struct db *db;
	int result = work_db(work, &db);

	if (!result)
		result = raise_stored_number(db, USER, (uint64_t)op->user);
	if (!result)
		result = raise_stored_number(db, GROUP, (uint64_t) - (int64_t)op->group);
	return result;
}

int store_note_ids(struct store *store, int32_t user, int32_t group)
{
	struct note_op op = {
		.txn = {.apply = apply_id_note, .alone = true}, .user = user, .group = group};

	return txn_run(core_of(store)->txn, &op.txn);
}

int store_noted_ids(struct store *store, int32_t *user, int32_t *group)
{
	struct core *core = core_of(store);
	uint64_t last_user = 0, last_group = 0;
	struct db *db;
	int result = readers_get(core->readers, &db);

	if (result)
		return result;
	result = db_number_get(db, USER, &last_user);
	if (!result || result == -ENOENT)
		result = db_number_get(db, GROUP, &last_group);
	readers_put(core->readers, db);
	if (result && result != -ENOENT)
		return result;
	if (last_user > INT32_MAX || last_group > INT32_MAX)
		return -EIO;
	*user = (int32_t)last_user;
	*group = -(int32_t)last_group;
	return 0;
}

/* -- that the volumes are those of a cell -- */

#define MEMBER "member" /* a number in the database, if they are */

struct member_op {
	struct txn_op txn;
	bool member;
};

static int apply_membership(struct txn_op *txn, struct work *work)
{
	const struct member_op *op = (const struct member_op *)txn;
	struct db *db;
	int result = work_db(work, &db);

	if (result)
		return result;
	return op->member ? db_number_put(db, MEMBER, 1) : db_number_delete(db, MEMBER);
}

int store_set_member(struct store *store, bool member)
{
	struct member_op op = {.txn = {.apply = apply_membership, .alone = true}, .member = member};
	int result = txn_run(core_of(store)->txn, &op.txn);

	return result ? result : keeper_flush(core_of(store)->keeper);
}

int store_is_member(struct store *store, bool *member)
{
	struct core *core = core_of(store);
	uint64_t value = 0;
	struct db *db;
	int result = readers_get(core->readers, &db);

	if (result)
		return result;
	result = db_number_get(db, MEMBER, &value);
	readers_put(core->readers, db);
	*member = value != 0;
	return result == -ENOENT ? 0 : result;
}
