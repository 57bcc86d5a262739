/* SPDX-License-Identifier: BSD-2-Clause */
/* Volumes of a cell: their ids, types and states are the caller's. */
#include "volume/store/cellvol.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "volume/store/maint/maint.h"
#include "volume/store/op/op.h"
#include "volume/store/op/whole.h"
#include "volume/store/txn/core.h"

struct cell_op {
	struct txn_op txn;
	struct core *core;
	uint32_t id;
	const struct cellvol *volume;
	unsigned members;
	bool root;
	struct admin_used_id used;
	bool (*permits)(void *arg, const struct store_acl *root);
	void *arg;
	const void *entry;
	size_t length;
	unsigned count;
	uint32_t into, epoch, date;
};

static int run_cell_op(struct store *store, struct cell_op *op,
		       int (*apply)(struct txn_op *txn, struct work *work))
{
	op->core = core_of(store);
	op->txn.apply = apply;
	op->txn.alone = true;
	return txn_run(op->core->txn, &op->txn);
}

/* A volume that is there for the volume service. */
static int find_cell_volume(struct work *work, uint32_t id, struct workvol **volume)
{
	int result = work_any_volume(work, id, volume);

	return !result && (*volume)->rec.offline & VOLUME_HIDDEN ? STORE_VNOVOL : result;
}

/* -- asking -- */

int cellvol_get(struct store *store, uint32_t id, struct cellvol *volume)
{
	struct core *core = core_of(store);
	struct store_volume shown;
	struct volrec rec;
	int result = volumes_get(&core->volumes, id, &rec);

	if (!result && rec.offline & VOLUME_HIDDEN)
		return STORE_VNOVOL;
	if (!result)
		result = admin_volume(store, id, &shown);
	if (result)
		return result;
	*volume = (struct cellvol){.id = id,
				   .parent = shown.rw,
				   .clone = shown.ro,
				   .backup = shown.backup,
				   .restored = rec.restored,
				   .type = shown.type,
				   .temporary = rec.cell & VOLUME_TEMPORARY,
				   .out = rec.offline & VOLUME_OFFLINE,
				   .busy = rec.offline & VOLUME_BUSY,
				   .independent = rec.type == STORE_RW,
				   .creation = rec.creation ? rec.creation : rec.created,
				   .copied = rec.copied,
				   .updated = rec.updated,
				   .backed_up = rec.cloned,
				   .quota_kib = rec.quota_kib,
				   .used_kib = rec.used_kib,
				   .files = rec.files,
				   .minimum = rec.minimum,
				   .owner = rec.owner,
				   .next_unique = rec.next_unique};
	snprintf(volume->name, sizeof(volume->name), "%s", shown.name);
	snprintf(volume->message, sizeof(volume->message), "%s", rec.message);
	return 0;
}

/* -- making -- */

/* What the volume service makes is not served until it says so. */
static void begin_cell_record(struct volrec *rec, const struct cellvol *volume)
{
	rec->offline = VOLUME_OFFLINE;
	rec->cell = VOLUME_CELL | VOLUME_TEMPORARY;
	rec->message[0] = '\0';
	snprintf(rec->name, sizeof(rec->name), "%s", volume->name);
}

static void fill_made_record(struct volrec *rec, const struct cellvol *volume, uint32_t now)
{
	begin_cell_record(rec, volume);
	rec->as = volume->type == STORE_RW ? 0 : (uint8_t)(volume->type + 1);
	rec->parent = volume->parent == volume->id ? 0 : volume->parent;
	rec->quota_kib = volume->quota_kib;
	rec->minimum = 0;
	rec->creation = rec->copied = rec->updated = now;
	/* Clients take another date for another content. A copy gets the date of what it is a copy of. */
	if (!rec->as)
		rec->created = rec->created >= now ? rec->created + 1 : now;
}

/* A volume that was removed before its clones comes back: what it had is replaced. *revived: it is one. */
static int revive_ghost(const struct cell_op *op, struct work *work, bool *revived)
{
	struct workvol *volume;
	int result = work_any_volume(work, op->volume->id, &volume);

	*revived = !result && volume->rec.cell & VOLUME_GHOST;
	if (!*revived)
		return result == STORE_VNOVOL ? 0 : result;
	if (op->root)
		return STORE_VVOLEXISTS;
	fill_made_record(&volume->rec, op->volume, work->now);
	if (volumes_has_name(&op->core->volumes, volume->rec.name))
		volume->rec.cell |= VOLUME_NAMELESS;
	volume->changed = volume->named = true;
	return 0;
}

static int apply_cell_creation(struct txn_op *txn, struct work *work)
{
	struct cell_op *op = (struct cell_op *)txn;
	const struct store_new_volume root = {.mode = 0777};
	struct volrec rec = {.id = op->volume->id};
	struct workvol *volume;
	uint64_t version;
	bool revived;
	int result = revive_ghost(op, work, &revived);

	if (result || revived)
		return result;
	fill_made_record(&rec, op->volume, work->now);
	rec.files = op->root;
	rec.used_kib = op->root ? 2 : 0;
	if (volumes_has_name(&op->core->volumes, rec.name))
		rec.cell |= VOLUME_NAMELESS;
	result = admin_add_volume(work, op->core, &rec, &op->used, &version);
	if (!result)
		result = work_any_volume(work, rec.id, &volume);
	if (!result && op->root)
		result = admin_make_root(&root, work, volume, version);
	work->broken |= result != 0;
	return result;
}

int cellvol_create(struct store *store, const struct cellvol *volume, bool root)
{
	struct cell_op op = {.volume = volume, .root = root};
	int result = prune_removed(core_of(store), volume->id);

	assert(volume->id && volume->type < STORE_TYPES);
	if (result)
		return result;
	while ((result = run_cell_op(store, &op, apply_cell_creation)) == ADMIN_USED_ID)
		cache_drop(core_of(store)->cache, op.used.group);
	return result;
}

static int apply_cell_removal(struct txn_op *txn, struct work *work)
{
	return admin_apply_removal(work, ((const struct cell_op *)txn)->id, false, true);
}

int cellvol_delete(struct store *store, uint32_t id)
{
	struct cell_op op = {.id = id};
	int result = run_cell_op(store, &op, apply_cell_removal);

	if (!result)
		keeper_wake(core_of(store)->keeper);
	return result;
}

/* -- clones -- */

/* The place of a new clone in the record of its read-write volume, or VOLREC_CLONES. */
static int choose_clone_place(const struct volrec *rw, const struct cellvol *clone)
{
	char name[STORE_VOLNAME_MAX + 16];
	int which = clone->type == STORE_BACKUP, place = 2;

	admin_compose_name(name, rw->name, clone->type);
	if (!rw->clone_epoch[which] && (!rw->clone_id[which] || rw->clone_id[which] == clone->id) &&
	    !strcmp(name, clone->name))
		return which;
	while (place < VOLREC_CLONES && rw->clone_epoch[place])
		place++;
	return place;
}

/* The volume whose clone it becomes, and the record with the contents. */
static int find_clone_source(struct work *work, uint32_t id, struct workvol **source,
			     struct workvol **rw)
{
	int result = find_cell_volume(work, id, source);

	if (!result)
		result = work_any_volume(work, (*source)->rec.group, rw);
	if (!result && ((*source)->rec.offline | (*rw)->rec.offline) & VOLUME_BUSY)
		result = STORE_VBUSY;
	if (!result && (*rw)->rec.epoch >= UINT32_MAX - 1)
		result = -EFBIG;
	return result;
}

/* The epoch that shows what the source has now. */
static uint32_t take_clone_epoch(struct workvol *source, struct workvol *rw)
{
	uint32_t epoch = source == rw ? rw->rec.epoch++ : source->rec.epoch;

	rw->changed = true;
	return epoch;
}

static void note_clone_in_source(struct workvol *source, const struct volrec *clone, uint32_t now)
{
	if (clone->type == STORE_BACKUP) {
		source->rec.shown_backup = clone->id;
		source->rec.cloned = now;
	} else {
		source->rec.shown_clone = clone->id;
	}
	source->changed = true;
}

/* What a clone has of its source beside the contents, and never of its own. */
static void fill_clone_contents(struct volrec *clone, const struct volrec *source, uint32_t epoch,
				uint32_t now)
{
	clone->group = source->group;
	clone->epoch = epoch;
	clone->quota_kib = source->quota_kib;
	clone->used_kib = source->used_kib;
	clone->files = source->files;
	clone->minimum = source->minimum;
	clone->updated = source->updated;
	clone->owner = source->owner;
	clone->next_unique = source->next_unique;
	clone->incarnation = source->incarnation;
	clone->created = clone->created >= now ? clone->created + 1 : now;
	clone->creation = clone->created;
	clone->cloned = clone->type == STORE_BACKUP ? now : source->cloned;
}

static int apply_cell_clone(struct txn_op *txn, struct work *work)
{
	struct cell_op *op = (struct cell_op *)txn;
	struct volrec clone = {.id = op->volume->id, .type = (uint8_t)op->volume->type};
	struct workvol *source, *rw;
	int result = find_clone_source(work, op->id, &source, &rw), place;

	assert(op->volume->type != STORE_RW);
	if (result)
		return result;
	place = choose_clone_place(&rw->rec, op->volume);
	if (volumes_keeps(&op->core->volumes, clone.id) && rw->rec.clone_id[0] != clone.id &&
	    rw->rec.clone_id[1] != clone.id)
		return STORE_VVOLEXISTS;
	if (place == VOLREC_CLONES)
		return -ENOSPC;
	begin_cell_record(&clone, op->volume);
	if (volumes_has_name(&op->core->volumes, clone.name))
		clone.cell |= VOLUME_NAMELESS;
	clone.copied = work->now;
	clone.parent = source->rec.parent;
	fill_clone_contents(&clone, &source->rec, take_clone_epoch(source, rw), work->now);
	result = work_volume_add(work, &clone);
	work->broken |= result != 0;
	rw->rec.clone_id[place] = clone.id;
	rw->rec.clone_epoch[place] = clone.epoch;
	note_clone_in_source(source, &clone, work->now);
	return result;
}

int cellvol_clone(struct store *store, uint32_t source, const struct cellvol *clone)
{
	struct cell_op op = {.id = source, .volume = clone};
	struct volrec rec;
	int result = volumes_get(&core_of(store)->volumes, source, &rec);

	if (!result)
		result = prune_until_few(core_of(store), rec.group);
	return result ? result : run_cell_op(store, &op, apply_cell_clone);
}

/* A copy of the volume that another server has sent becomes a clone of it: its own rows go. */
static int adopt_replica(struct db *db, const struct workvol *rw, struct workvol *replica,
			 int *place)
{
	struct volrec *rec = &replica->rec;
	struct cellvol as = {.id = rec->id, .type = volrec_shown_type(rec)};
	int result;

	if (rec->parent != rw->rec.id || as.type == STORE_RW || rec->snapshot ||
	    rec->offline & VOLUME_BUSY || rec->clone_epoch[0] || rec->clone_epoch[1] ||
	    volrec_shared(rec))
		return -EXDEV;
	snprintf(as.name, sizeof(as.name), "%s", rec->name);
	*place = choose_clone_place(&rw->rec, &as);
	if (*place == VOLREC_CLONES)
		return -ENOSPC;
	result = admin_leave_group(db, rec);
	rec->type = (uint8_t)as.type;
	rec->as = 0;
	rec->parent = rw->rec.parent;
	memset(rec->clone_id, 0, sizeof(rec->clone_id));
	return result;
}

static int apply_cell_reclone(struct txn_op *txn, struct work *work)
{
	struct cell_op *op = (struct cell_op *)txn;
	struct workvol *source, *rw, *clone;
	struct db *db;
	uint32_t old;
	int result = find_clone_source(work, op->id, &source, &rw), place;

	if (!result)
		result = find_cell_volume(work, op->volume->id, &clone);
	if (!result)
		result = work_db(work, &db);
	if (result)
		return result;
	place = clone == rw ? VOLREC_CLONES : admin_clone_place(&rw->rec, clone->rec.id);
	old = clone->rec.group == rw->rec.group ? clone->rec.epoch : 0;
	if (clone != rw && !old)
		result = adopt_replica(db, rw, clone, &place);
	work->broken |= result != 0;
	if (result)
		return result;
	if (place == VOLREC_CLONES)
		return -EXDEV;
	fill_clone_contents(&clone->rec, &source->rec, take_clone_epoch(source, rw), work->now);
	rw->rec.clone_id[place] = clone->rec.id;
	rw->rec.clone_epoch[place] = clone->rec.epoch;
	clone->changed = true;
	note_clone_in_source(source, &clone->rec, work->now);
	result = !old || old == clone->rec.epoch ? 0 : admin_prune_clone(db, &rw->rec, old);
	work->broken |= result != 0;
	return result;
}

int cellvol_reclone(struct store *store, uint32_t source, uint32_t clone)
{
	const struct cellvol volume = {.id = clone};
	struct cell_op op = {.id = source, .volume = &volume};
	struct volrec rec;
	int result = volumes_get(&core_of(store)->volumes, source, &rec);

	if (!result)
		result = prune_until_few(core_of(store), rec.group);
	if (!result)
		result = run_cell_op(store, &op, apply_cell_reclone);
	if (!result)
		keeper_wake(core_of(store)->keeper);
	return result;
}

/* -- restoring -- */

/* The record of the volume that has the epochs of a clone, if it was removed before. */
static int find_ghost_of(struct core *core, uint32_t id, struct volrec *clone, struct volrec *ghost)
{
	int result = volumes_get(&core->volumes, id, clone);

	if (!result)
		result = volumes_get(&core->volumes, clone->group, ghost);
	if (!result && clone->type == STORE_RW)
		*ghost = *clone;
	else if (!result && !(ghost->cell & VOLUME_GHOST))
		result = -EINVAL;
	return result;
}

int cellvol_restore_onto(struct store *store, uint32_t id, struct store_restore **restore)
{
	struct core *core = core_of(store);
	struct volrec clone, ghost;
	int result = find_ghost_of(core, id, &clone, &ghost);

	/* What the stream does not repeat is what the clone shows. */
	if (!result && clone.type != STORE_RW)
		result = revert_volume(core, ghost.id, clone.epoch, false);
	return result ? result : store_restore_onto(store, ghost.id, restore);
}

static int apply_restored_clone(struct txn_op *txn, struct work *work)
{
	const struct cell_op *op = (const struct cell_op *)txn;
	struct workvol *ghost, *clone;
	struct db *db;
	uint32_t old, known;
	int result = find_cell_volume(work, op->id, &clone), place;

	if (!result)
		result = work_any_volume(work, clone->rec.group, &ghost);
	if (!result)
		result = work_db(work, &db);
	if (result)
		return result;
	place = admin_clone_place(&ghost->rec, clone->rec.id);
	if (place == VOLREC_CLONES || !(ghost->rec.cell & VOLUME_GHOST))
		return -EINVAL;
	old = clone->rec.epoch;
	known = clone->rec.created;
	fill_clone_contents(&clone->rec, &ghost->rec, take_clone_epoch(ghost, ghost), work->now);
	if (op->date >= known)
		clone->rec.created = op->date;
	ghost->rec.clone_epoch[place] = clone->rec.epoch;
	clone->changed = true;
	result = admin_prune_clone(db, &ghost->rec, old);
	work->broken |= result != 0;
	return result;
}

int cellvol_restored(struct store *store, uint32_t id, uint32_t date)
{
	struct cell_op op = {.id = id, .date = date};
	struct volrec rec;
	int result = volumes_get(&core_of(store)->volumes, id, &rec);

	if (result || rec.type == STORE_RW)
		return result;
	result = run_cell_op(store, &op, apply_restored_clone);
	if (!result)
		keeper_wake(core_of(store)->keeper);
	return result;
}

/* -- changing -- */

/* A name that another volume has is kept nevertheless. */
static int set_cell_name(struct work *work, struct workvol *volume, const char *name)
{
	int result;

	if (!strcmp(volume->rec.name, name) && !(volume->rec.cell & VOLUME_NAMELESS))
		return 0;
	result = work_volume_rename(work, volume, name);
	volume->rec.cell &= (uint8_t)~VOLUME_NAMELESS;
	if (result != -EEXIST)
		return result;
	volume->rec.cell |= VOLUME_NAMELESS;
	snprintf(volume->rec.name, sizeof(volume->rec.name), "%s", name);
	volume->named = true;
	return 0;
}

static int set_cell_type(struct volrec *rec, enum store_type type)
{
	assert(type < STORE_TYPES);
	if (rec->type != STORE_RW && type == STORE_RW)
		return -EINVAL;
	if (rec->type == STORE_RW)
		rec->as = type == STORE_RW ? 0 : (uint8_t)(type + 1);
	else
		rec->type = (uint8_t)type;
	return 0;
}

/* What was made without a root directory gets one with its contents. */
static int check_root_made(struct work *work, struct workvol *volume)
{
	struct node *root;
	int result;

	if (!(volume->rec.cell & VOLUME_TEMPORARY) || volume->rec.type != STORE_RW)
		return 0;
	result = work_live(work, volume, STORE_ROOT_VNODE, STORE_ROOT_UNIQUE, &root);
	return result == STORE_VNOVNODE ? -EINVAL : 0;
}

static int set_cell_state(const struct cell_op *op, struct work *work, struct workvol *volume)
{
	bool off = op->volume->temporary || op->volume->out;
	int result = off ? 0 : admin_check_root(work, volume, op->permits, op->arg);

	if (!result && !op->volume->temporary)
		result = check_root_made(work, volume);
	if (result)
		return result;
	volume->rec.cell &= (uint8_t)~VOLUME_TEMPORARY;
	volume->rec.cell |= op->volume->temporary ? VOLUME_TEMPORARY : 0;
	volume->rec.offline &= (uint8_t)~VOLUME_OFFLINE;
	volume->rec.offline |= off ? VOLUME_OFFLINE : 0;
	return 0;
}

static void set_cell_numbers(struct volrec *rec, const struct cellvol *from, unsigned members)
{
	if (members & CELLVOL_IDS) {
		rec->parent = from->parent == rec->group ? 0 : from->parent;
		rec->shown_clone = from->clone;
		rec->shown_backup = from->backup;
	}
	if (members & CELLVOL_OWNED)
		rec->cell |= VOLUME_CELL;
	if (members & CELLVOL_CREATION)
		rec->creation = from->creation;
	if (members & CELLVOL_UPDATED)
		rec->updated = from->updated;
	if (members & CELLVOL_QUOTA)
		rec->quota_kib = from->quota_kib;
	if (members & CELLVOL_RESTORED) {
		rec->restored = from->restored;
		rec->cloned = from->backed_up;
	}
}

static int apply_cell_values(struct txn_op *txn, struct work *work)
{
	const struct cell_op *op = (const struct cell_op *)txn;
	struct workvol *volume;
	int result = find_cell_volume(work, op->volume->id, &volume);

	if (!result && op->members & CELLVOL_STATE)
		result = set_cell_state(op, work, volume);
	if (!result && op->members & CELLVOL_TYPE)
		result = set_cell_type(&volume->rec, op->volume->type);
	if (!result && op->members & CELLVOL_NAMED)
		result = set_cell_name(work, volume, op->volume->name);
	work->broken |= result != 0;
	if (result)
		return result;
	set_cell_numbers(&volume->rec, op->volume, op->members);
	volume->changed = true;
	return 0;
}

int cellvol_set(struct store *store, const struct cellvol *volume, unsigned members,
		bool (*permits)(void *arg, const struct store_acl *root), void *arg)
{
	struct cell_op op = {.volume = volume, .members = members, .permits = permits, .arg = arg};

	return run_cell_op(store, &op, apply_cell_values);
}

/* -- a read-only volume takes the place of its read-write one -- */

#define RO_SUFFIX ".readonly"
/* Uniquifiers that the read-write volume may have given since the read-only one was made of it. */
#define GIVEN_UNIQUES 5000

/* What the record with the contents gets beside its name and its date for clients. */
static void fill_converted_record(struct volrec *rw, const struct volrec *ro)
{
	rw->as = 0;
	rw->parent = 0;
	rw->offline = ro->offline & VOLUME_OFFLINE;
	snprintf(rw->message, sizeof(rw->message), "%s", ro->message);
	rw->cell = VOLUME_CELL | (rw->cell & VOLUME_NAMELESS);
	rw->restored = rw->shown_clone = ro->id;
	rw->shown_backup = 0;
	rw->quota_kib = ro->quota_kib;
	rw->updated = ro->updated;
	rw->creation = rw->copied = ro->creation < ro->copied ? ro->creation : ro->copied;
	if (rw->next_unique < ro->next_unique)
		rw->next_unique = ro->next_unique;
	rw->next_unique += GIVEN_UNIQUES;
}

static void cut_ro_suffix(char name[STORE_VOLNAME_MAX + 16], const char *from)
{
	size_t length = strlen(from), suffix = strlen(RO_SUFFIX);

	if (length > suffix && !strcmp(from + length - suffix, RO_SUFFIX))
		length -= suffix;
	snprintf(name, STORE_VOLNAME_MAX + 16, "%.*s", (int)length, from);
}

/* op->id: the read-only volume, which goes; op->into: the record; op->epoch: when that has the contents, or 0. */
static int apply_conversion(struct txn_op *txn, struct work *work)
{
	const struct cell_op *op = (const struct cell_op *)txn;
	char name[STORE_VOLNAME_MAX + 16];
	struct workvol *ro, *rw;
	int result = find_cell_volume(work, op->id, &ro);

	if (!result)
		result = work_any_volume(work, op->into, &rw);
	if (!result && !(rw->rec.cell & (VOLUME_GHOST | VOLUME_TEMPORARY)))
		result = -EXDEV;
	if (!result && (rw->rec.offline & VOLUME_BUSY || (op->epoch && rw->rec.epoch != op->epoch)))
		result = STORE_VBUSY;
	if (result)
		return result;
	assert(rw->rec.type == STORE_RW && rw != ro);
	cut_ro_suffix(name, ro->rec.name);
	fill_converted_record(&rw->rec, &ro->rec);
	/* Clients take another date for another content. */
	rw->rec.created = rw->rec.created >= work->now ? rw->rec.created + 1 : work->now;
	rw->changed = rw->named = true;
	rw->moves++;
	result = admin_apply_removal(work, op->id, false, true);
	if (!result)
		result = set_cell_name(work, rw, name);
	work->broken |= result != 0;
	return result;
}

int cellvol_convert(struct store *store, uint32_t ro, uint32_t rw)
{
	struct core *core = core_of(store);
	struct cell_op op = {.id = ro, .into = rw};
	struct volrec clone, ghost;
	int result = find_ghost_of(core, ro, &clone, &ghost);

	if (result)
		return result == -EINVAL ? -EXDEV : result;
	if (volrec_shown_type(&clone) != STORE_RO)
		return -EINVAL;
	/* The record of the volume, which was removed before its clone, gets what that shows. */
	if (clone.type != STORE_RW) {
		if (ghost.id != rw)
			return -EXDEV;
		op.epoch = ghost.epoch + 1;
		result = revert_volume(core, ghost.id, clone.epoch, false);
	}
	if (!result)
		result = run_cell_op(store, &op, apply_conversion);
	if (!result)
		keeper_wake(core->keeper);
	return result;
}

static int apply_nothing(struct txn_op *txn, struct work *work)
{
	(void)txn, (void)work;
	return 0;
}

int cellvol_hold(struct store *store, uint32_t id, int for_readers, int for_writers)
{
	struct cell_op op = {.id = id};

	if (!volumes_hold(&core_of(store)->volumes, id, for_readers, for_writers))
		return STORE_VNOVOL;
	/* Those that came before it are done. */
	return for_writers ? run_cell_op(store, &op, apply_nothing) : 0;
}

/* -- ids and locations -- */

static int apply_cell_ids(struct txn_op *txn, struct work *work)
{
	struct cell_op *op = (struct cell_op *)txn;
	struct db *db;
	int result = work_db(work, &db);

	if (!result)
		result = admin_allocate_ids(op->core, db, op->count, &op->id);
	work->broken |= result != 0;
	return result;
}

static int read_last_id(struct core *core, uint32_t *last)
{
	struct store_totals totals;
	uint64_t next = 0;
	struct db *db;
	int result = readers_get(core->readers, &db);

	if (result)
		return result;
	result = db_number_get(db, "volume", &next);
	readers_put(core->readers, db);
	volumes_totals(&core->volumes, &totals);
	*last = next > totals.last ? (uint32_t)next - 1 : totals.last;
	return result == -ENOENT ? 0 : result;
}

int cellvol_ids(struct store *store, unsigned count, uint32_t *first)
{
	struct cell_op op = {.count = count};
	int result;

	if (!count)
		return read_last_id(core_of(store), first);
	result = run_cell_op(store, &op, apply_cell_ids);
	*first = op.id;
	return result;
}

static int apply_location(struct txn_op *txn, struct work *work)
{
	const struct cell_op *op = (const struct cell_op *)txn;
	struct db *db;
	int result = work_db(work, &db);

	if (!result)
		result = db_location_put(db, op->id, op->entry, op->length);
	work->broken |= result != 0;
	return result;
}

int cellvol_put_location(struct store *store, uint32_t id, const void *entry, size_t length)
{
	struct cell_op op = {.id = id, .entry = entry, .length = length};

	return run_cell_op(store, &op, apply_location);
}

static int apply_complete(struct txn_op *txn, struct work *work)
{
	struct db *db;
	int result = work_db(work, &db);

	(void)txn;
	return result ? result : db_number_delete(db, DB_LOCATIONS_LOST);
}

int cellvol_locations_complete(struct store *store)
{
	struct cell_op op = {0};

	return run_cell_op(store, &op, apply_complete);
}

int cellvol_locations_lost(struct store *store, bool *lost)
{
	uint64_t value = 0;
	struct db *db;
	int result = readers_get(core_of(store)->readers, &db);

	if (result)
		return result;
	result = db_number_get(db, DB_LOCATIONS_LOST, &value);
	readers_put(core_of(store)->readers, db);
	*lost = value != 0;
	return result == -ENOENT ? 0 : result;
}

int cellvol_locations(struct store *store,
		      int (*each)(void *arg, uint32_t id, const void *entry, size_t length),
		      void *arg)
{
	struct db *db;
	int result = readers_get(core_of(store)->readers, &db);

	if (result)
		return result;
	result = db_locations(db, each, arg);
	readers_put(core_of(store)->readers, db);
	return result;
}
