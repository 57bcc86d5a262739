/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pruning. When a clone is gone, a row is of no use if the clone was the only one to show it: if the
 * row is newer than the next older clone, and the next row of its vnode is not newer than the next
 * newer clone. The list of changes by epoch has the candidates.
 */
#include "volume/store/maint/maint.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "common/grow.h"

#define STEP 200 /* rows in a transaction */
#define COST_STEP \
	1024 /* rows that are looked at, references to objects, and pages of directories, after which no further row is begun */

struct prune_op {
	struct txn_op txn;
	struct core *core;
	uint32_t group; /* whose clones are to be pruned; 0: what comes first */
	bool more;
	uint32_t gone; /* the group that has no row any more; 0: none */
	uint64_t cost; /* so far */
};

/* The rows that the removal of a row may touch, beside that row. */
/* Objects in the first slot, of which some may be counted twice. */
static uint64_t count_first_places(const struct version *version)
{
	const struct store_slot *slot = version->content.first;
	uint64_t places = 0;

	for (uint32_t i = 0; slot && i < slot->count; i++)
		places += slot->block[i].object &&
			  (!i || slot->block[i].object != slot->block[i - 1].object);
	return places;
}

static uint64_t estimate_row_cost(const struct version *version)
{
	uint64_t pages = version->v.kind == STORE_DIR ? version->v.length / STORE_PAGE : 0;

	return 1 + count_first_places(version) + pages;
}

static bool is_step_full(const struct prune_op *op, const struct work *work)
{
	return op->cost + work->ref_count >= COST_STEP;
}

/* -- a clone -- */

/* Epochs of the clones around the one that is gone. */
struct around {
	uint32_t older; /* 0: there is none */
	uint32_t newer; /* that of the read-write volume, if there is none */
};

static int find_clones_around(struct work *work, const struct db_prune *prune,
			      struct around *around)
{
	struct workvol *volume;
	int result = work_any_volume(work, prune->group, &volume);

	*around = (struct around){.newer = UINT32_MAX};
	if (result)
		return result;
	for (int i = 0; i <= VOLREC_CLONES; i++) {
		uint32_t epoch =
			i < VOLREC_CLONES ? volume->rec.clone_epoch[i] : volume->rec.snapshot;

		if (epoch && epoch < prune->epoch && epoch > around->older)
			around->older = epoch;
		if (epoch > prune->epoch && epoch < around->newer)
			around->newer = epoch;
	}
	return 0;
}

/* The rows of a vnode up to an epoch, the newest first. */
struct rows {
	uint32_t until;
	struct version **version;
	unsigned count;
	size_t room;
};

static int add_older_row(void *arg, const struct vnode_key *key, const struct version *version)
{
	struct rows *rows = arg;

	if (key->epoch > rows->until)
		return 0;
	if (!grow_array(&rows->version, &rows->room, rows->count, sizeof(struct version *)))
		return -ENOMEM;
	rows->version[rows->count] = version_copy(version);
	if (!rows->version[rows->count])
		return -ENOMEM;
	rows->count++;
	return 0;
}

static void free_older_rows(struct rows *rows)
{
	while (rows->count)
		version_unref(rows->version[--rows->count]);
	free(rows->version);
}

/*
 * Removes the row with number `at`. The first one hides it from newer views. Pages above the old row are not its own: they
 * may be those of another object that had the vnode since. `older`: the epoch of the clone before. The slots of a map
 * are those of the row that are newer than the row before, which needs all of its own.
 */
static int remove_hidden_row(struct work *work, struct db *db, const struct vnode_key *key,
			     const struct rows *rows, unsigned at, uint32_t older)
{
	const struct version *old = rows->version[at], *next = rows->version[0];
	bool same = next->v.kind == old->v.kind && next->v.unique == old->v.unique;
	struct db_hidden hidden = {.from = older, .to = old->epoch, .next = same ? next->epoch : 0};
	struct db_drop drop = {
		.map = old->v.map,
		.hidden = {.from = at + 1 < rows->count ? rows->version[at + 1]->epoch : 0,
			   .to = old->epoch,
			   .next = next->v.map == old->v.map ? next->epoch : 0}};
	int result = work_release(work, key, old, true);

	if (!result && drop.map)
		result = work_drop(work, &drop);
	if (!result && old->v.kind == STORE_DIR)
		result = db_pages_prune(db, key->group, key->vnode, &hidden);
	return result ? result : db_vnode_delete(db, key);
}

/* *left: some rows were left to the next step. */
static int prune_vnode(struct prune_op *op, struct work *work, struct db *db,
		       const struct db_prune *prune, const struct db_change *change,
		       const struct around *around, bool *left)
{
	struct vnode_key key = {.group = prune->group, .vnode = change->vnode};
	struct rows rows = {.until = change->epoch};
	unsigned damaged, i = 1;
	int result = db_vnode_rows(db, key.group, key.vnode, &damaged, add_older_row, &rows);

	op->cost += rows.count;
	for (; !result && i < rows.count && rows.version[i]->epoch > around->older; i++) {
		*left = i > 1 && is_step_full(op, work);
		if (*left)
			break;
		key.epoch = rows.version[i]->epoch;
		result = remove_hidden_row(work, db, &key, &rows, i, around->older);
		op->cost += rows.count + estimate_row_cost(rows.version[i]);
	}
	/* A tombstone that hides nothing. */
	if (!result && !damaged && i == rows.count && rows.count && !rows.version[0]->v.kind) {
		key.epoch = rows.version[0]->epoch;
		result = db_vnode_delete(db, &key);
	}
	free_older_rows(&rows);
	return result;
}

static int prune_clone(struct prune_op *op, struct work *work, struct db *db,
		       struct db_prune *prune)
{
	struct db_change change[STEP];
	struct around around;
	unsigned count, done = 0;
	bool left = false;
	int result = find_clones_around(work, prune, &around);

	/* The group is removed as a whole, or must not be touched. */
	if (result == STORE_VNOVOL || result == STORE_VSALVAGE) {
		op->more = true;
		return db_prune_delete(db, prune->id);
	}
	if (prune->done.epoch < prune->epoch)
		prune->done = (struct db_change){.epoch = prune->epoch, .vnode = UINT32_MAX};
	if (!result)
		result = db_changes(db, prune->group, &prune->done, around.newer, change, STEP,
				    &count);
	while (!result && done < count && !is_step_full(op, work)) {
		result = prune_vnode(op, work, db, prune, &change[done], &around, &left);
		done += !left;
	}
	if (result)
		return result;
	op->more = true;
	if (done == count && count < STEP)
		return db_prune_delete(db, prune->id);
	/* A vnode that is left has lost at least one row. */
	assert(done > 0 || left);
	if (!done)
		return 0;
	prune->done = change[done - 1];
	return db_prune_put(db, prune);
}

/* -- a group -- */

struct removal {
	struct work *work;
	struct db *db;
	struct vnode_key key[STEP];
	unsigned count;
	uint64_t cost;
	bool full; /* the rest is for the next step */
};

/* The pages of a directory go before its row, as many as one step may remove. */
static int delete_some_pages(struct removal *removal, const struct vnode_key *key)
{
	struct vnode_key all = {.group = key->group, .vnode = key->vnode};
	unsigned count;
	int result = db_pages_delete_some(removal->db, &all, (unsigned)(COST_STEP - removal->cost),
					  &count);

	assert(removal->cost < COST_STEP);
	removal->cost += count;
	removal->full = removal->cost >= COST_STEP;
	return result;
}

static int note_removed_row(void *arg, const struct vnode_key *key, const struct version *version)
{
	struct removal *removal = arg;

	struct db_drop drop = {.map = version ? version->v.map : 0, .hidden.to = UINT32_MAX};
	int result = 0;

	assert(removal->count <= STEP);
	removal->full = removal->count == STEP || removal->cost >= COST_STEP;
	if (!removal->full && key->vnode & 1)
		result = delete_some_pages(removal, key);
	if (result || removal->full)
		return result ? result : 1;
	removal->cost += 1 + (version ? estimate_row_cost(version) : 0);
	removal->key[removal->count++] = *key;
	result = version ? work_release(removal->work, key, version, false) : 0;
	/* Other rows of the vnode may have the same one: then nothing is left of it. */
	if (!result && drop.map) {
		removal->work->dead.more = true;
		result = db_drop_put(removal->db, &drop);
	}
	return result;
}

static int prune_group(struct prune_op *op, struct work *work, struct db *db,
		       const struct db_prune *prune)
{
	struct removal *removal = calloc(1, sizeof(*removal));
	struct vnode_key from = {.group = prune->group};
	int result;

	if (!removal)
		return -ENOMEM;
	removal->work = work;
	removal->db = db;
	result = db_group_rows(db, &from, note_removed_row, removal);
	if (result == 1)
		result = 0;
	for (unsigned i = 0; i < removal->count && !result; i++)
		result = db_vnode_delete(db, &removal->key[i]);
	op->more = true;
	if (!result && !removal->full) {
		result = db_prune_delete(db, prune->id);
		op->gone = prune->group;
	}
	free(removal);
	return result;
}

/* -- rows of slots -- */

static int prune_slots(struct prune_op *op, struct work *work, struct db *db)
{
	struct db_drop drop;
	int result = db_drop_first(db, &drop);

	if (!result)
		result = work_drop(work, &drop);
	op->more = !result;
	return result;
}

static int apply_prune(struct txn_op *txn, struct work *work)
{
	struct prune_op *op = (struct prune_op *)txn;
	struct db_prune prune;
	struct db *db;
	int result = work_db(work, &db);

	op->more = false;
	op->gone = 0;
	op->cost = 0;
	if (!result)
		result = op->group ? -ENOENT : prune_slots(op, work, db);
	if (!result)
		return 0;
	if (result == -ENOENT)
		result = db_prune_first(db, op->group, &prune);
	if (result) {
		work->broken |= result != -ENOENT;
		return result == -ENOENT ? 0 : result;
	}
	result =
		prune.epoch ? prune_clone(op, work, db, &prune) : prune_group(op, work, db, &prune);
	/* Some rows may have been removed: all or nothing. */
	if (result)
		work->broken = true;
	return result;
}

int prune_step(struct core *core, uint32_t group, bool *more)
{
	struct prune_op op = {
		.txn = {.apply = apply_prune, .alone = true}, .core = core, .group = group};
	int result = txn_run(core->txn, &op.txn);

	*more = !result && op.more;
	/* Not in the commit: the cache may be large. */
	if (!result && op.gone)
		cache_drop(core->cache, op.gone);
	return result;
}

int prune_until_few(struct core *core, uint32_t group)
{
	uint64_t count = PRUNE_MOST;
	bool more = true;
	struct db *db;
	int result = 0;

	while (!result && more && count >= PRUNE_MOST) {
		result = readers_get(core->readers, &db);
		if (result)
			return result;
		result = db_prune_count(db, group, &count);
		readers_put(core->readers, db);
		if (!result && count >= PRUNE_MOST)
			result = prune_step(core, group, &more);
	}
	return result;
}

int prune_removed(struct core *core, uint32_t group)
{
	bool waits = true, more = true;
	struct db *db;
	int result = 0;

	/* New ids were never used. */
	while (group && !result && more) {
		result = readers_get(core->readers, &db);
		if (result)
			return result;
		result = db_prune_has(db, group, &waits);
		readers_put(core->readers, db);
		if (result || !waits)
			return result;
		result = prune_step(core, group, &more);
	}
	return result;
}
