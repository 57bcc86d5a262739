/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A volume gets the contents that it had at an epoch: the vnodes that changed since get the version of that epoch, in steps while
 * the volume is busy. The database notes what is under way, so that it goes on after a crash. Files share the bytes with that version.
 */
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "volume/store/maint/maint.h"
#include "volume/store/op/op.h"
#include "volume/store/op/whole.h"
#include "volume/store/txn/space.h"

#define STEP	   100		   /* rows of a transaction */
#define STEP_PAGES 512		   /* of directories in it, after which no further row is begun */
#define STEP_SLOTS (2 * WORK_ROWS) /* rows of slots that are written in a step, at most */
#define NUMBER	   "revert of %u"  /* in the database, with the group: the epoch */

/* A file of many slots, which gets the old ones in several transactions: its maps are read before them. */
struct revert_file {
	uint32_t vnode;	     /* 0: there is none */
	struct version *old; /* as it was at the epoch, with all slots */
	/* The newest one, with all slots, if it keeps some of them; or NULL. */
	struct version *base;
	/* The slots below `at` are the old ones, and this is the change for which that was done. */
	bool begun;
	uint32_t at;
	struct db_change change;
};

/* Changes after `epoch` and up to `until` are looked at; the step begins behind `after`. */
struct revert_op {
	struct txn_op txn;
	struct core *core;
	uint32_t id, group, epoch, until;
	bool snapshot;
	struct revert_op *next;		 /* that runs */
	struct db_change after, reached; /* reached: by the step, which may be tried again */
	uint32_t missing;		 /* after WORK_MISSING: the vnode */
	struct revert_file file;
	/* By the step: the file as it is then; NULL: it is done, or was not begun. */
	struct version *staged;
	struct db_change staged_change;
	uint32_t staged_at;
	unsigned pages, slots;
	uint64_t kib; /* that the rows of the step may take */
	bool done;
};

/* Whether the rows of the epoch stay. */
static bool is_epoch_kept(const struct revert_op *op, const struct volrec *rec)
{
	bool kept = false;

	if (op->snapshot)
		return rec->snapshot == op->epoch;
	for (int i = 0; i < VOLREC_CLONES; i++)
		kept |= rec->clone_epoch[i] == op->epoch;
	return kept;
}

/* STORE_VNOVOL: the clone is gone, so that some vnodes would be taken for removed ones. */
static int find_volume(const struct revert_op *op, struct work *work, struct workvol **volume,
		       struct db **db)
{
	int result = work_any_volume(work, op->id, volume);

	assert(op->epoch);
	if (!result && !is_epoch_kept(op, &(*volume)->rec))
		result = STORE_VNOVOL;
	return result ? result : work_db(work, db);
}

static void name_number(char name[40], const struct volrec *rec)
{
	snprintf(name, 40, NUMBER, rec->group);
}

/* -- the begin -- */

/* The volume is free, or an earlier try to go back to the same clone has ended before its end. */
static int check_revert_allowed(struct db *db, const struct volrec *rec, uint32_t epoch)
{
	uint64_t begun = 0;
	char name[40];
	int result;

	if (rec->snapshot || volrec_is_unfinished(rec))
		return STORE_VBUSY;
	if (!(rec->offline & VOLUME_BUSY))
		return 0;
	name_number(name, rec);
	result = db_number_get(db, name, &begun);
	if (result && result != -ENOENT)
		return result;
	return begun == epoch ? 0 : STORE_VBUSY;
}

static int apply_revert_begin(struct txn_op *txn, struct work *work)
{
	struct revert_op *op = (struct revert_op *)txn;
	struct workvol *volume;
	struct db *db;
	char name[40];
	int result = find_volume(op, work, &volume, &db);

	if (!result && !op->snapshot)
		result = check_revert_allowed(db, &volume->rec, op->epoch);
	if (!result && volume->rec.epoch >= UINT32_MAX - 1)
		result = -EFBIG;
	if (result)
		return result;
	name_number(name, &volume->rec);
	result = op->snapshot ? 0 : db_number_put(db, name, op->epoch);
	if (result)
		return result;
	volume->rec.offline |= VOLUME_BUSY;
	/* New rows have an epoch of their own, which is not looked at. */
	op->until = volume->rec.epoch++;
	volume->changed = true;
	return 0;
}

/* -- a vnode -- */

/* What only the old version has: contents in the database, and pages, which are written again. */
static int take_old_parts(struct revert_op *op, struct work *work, struct db *db,
			  const struct vnode_key *key, struct version *version)
{
	struct db_small small = {version->v.small, key->group, key->vnode};
	struct store_pages *pages;
	struct blob *blob;
	int result;

	assert(version->v.kind);
	if (version->v.small) {
		result = db_small_get(db, &small, &blob);
		if (!result)
			atomic_store(&version->blob, blob);
		version->v.small = work_number(work);
		return result == -ENOENT ? -EIO : result;
	}
	if (version->v.kind != STORE_DIR)
		return 0;
	result = db_directory_get(db, key, version->v.length, &pages);
	if (result)
		return result == -EBADMSG ? -EIO : result;
	store_pages_mark(pages);
	atomic_store(&version->pages, pages);
	op->pages += store_pages_count(pages);
	return 0;
}

/* The version of the epoch, to be changed, without its map; NULL: there was none. */
static int copy_old_version(struct revert_op *op, struct work *work, struct db *db,
			    const struct vnode_key *key, struct version **copy)
{
	struct version *old;
	int result = db_vnode_get(db, key, &old);

	*copy = NULL;
	if (result)
		return result == -ENOENT ? 0 : result;
	if (old->v.kind) {
		*copy = version_copy(old);
		result = *copy ? take_old_parts(op, work, db, key, *copy) : -ENOMEM;
	}
	version_unref(old);
	if (result) {
		version_unref(*copy);
		*copy = NULL;
	}
	return result;
}

/* Clients may have seen any later version, but not of a volume that only its clones use, which gets other contents next. */
static void choose_version(const struct revert_op *op, struct work *work, const struct node *node,
			   struct version *version)
{
	if (op->snapshot || node->vol->rec.cell & VOLUME_GHOST)
		return;
	if (node->now && node->now->v.unique == version->v.unique) {
		if (version->v.version < node->now->v.version)
			version->v.version = node->now->v.version;
		version->v.incarnation = node->now->v.incarnation;
	} else {
		version->v.incarnation = work->base.incarnation - 1;
	}
	work_new_version(work, version);
}

/* -- maps of files -- */

static void drop_revert_file(struct revert_file *file)
{
	version_unref(file->old);
	version_unref(file->base);
	*file = (struct revert_file){0};
}

/* Whether the old slots get a map of their own. Else only rows that differ are written. */
static bool needs_new_map(const struct version *base, const struct version *old)
{
	return base->v.map != old->v.map || (old->v.rows <= WORK_ROWS && base->v.rows > STEP_SLOTS);
}

static int load_revert_file(struct revert_op *op, struct db *db, uint32_t group, uint32_t vnode)
{
	struct revert_file *file = &op->file;
	struct vnode_key key = {group, vnode, op->epoch}, newest = {group, vnode, UINT32_MAX};
	struct version *base = NULL;
	int result;

	drop_revert_file(file);
	result = db_vnode_get_whole(db, &key, &file->old);
	if (!result)
		result = db_vnode_get(db, &newest, &base);
	if (!result && !needs_new_map(base, file->old))
		result = db_vnode_get_whole(db, &newest, &file->base);
	version_unref(base);
	file->vnode = vnode;
	if (result)
		drop_revert_file(file);
	return result == -ENOENT ? -EIO : result;
}

/* Whether the maps of a vnode are known: as they are in the transaction. */
static bool is_file_loaded(const struct revert_file *file, const struct node *node)
{
	const struct version *base = node->base;

	if (file->vnode != node->vnode)
		return false;
	if (!file->base)
		return needs_new_map(base, file->old);
	return file->base->epoch == base->epoch && file->base->v.map == base->v.map &&
	       file->base->v.version == base->v.version && file->base->v.rows == base->v.rows;
}

/* WORK_MISSING: the maps are long, and have to be read before the transaction. */
static int find_revert_file(struct revert_op *op, struct db *db, const struct node *node,
			    const struct version *old)
{
	const struct version *base = node->base;
	bool fresh = needs_new_map(base, old);

	if (is_file_loaded(&op->file, node))
		return 0;
	assert(!op->file.begun);
	if (old->v.rows > WORK_ROWS || (!fresh && base->v.rows > WORK_ROWS)) {
		op->missing = node->vnode;
		return WORK_MISSING;
	}
	op->slots += old->v.rows + (fresh ? 0 : base->v.rows);
	return load_revert_file(op, db, node->vol->rec.group, node->vnode);
}

/* Slots from *at on that are not the old ones. *at: 0 when there is none left. 0 or -ENOMEM. */
static int take_old_slots(struct revert_op *op, const struct node *node,
			  struct store_content *content, uint32_t *at)
{
	const struct store_content *old = version_content(op->file.old);
	bool same = node->base->v.map == op->file.old->v.map;
	unsigned taken = 0;
	int result = 0;

	for (; !result && store_content_differ(content, old, at); ++*at) {
		const struct store_slot *now = store_content_slot(content, *at);
		struct store_slot *slot = store_content_slot(old, *at);

		/* One row, read twice. */
		if (same && now && slot && now->epoch == slot->epoch)
			continue;
		if (taken == STEP_SLOTS)
			break;
		result = store_content_set(content, *at, store_slot_ref(slot));
		taken++;
	}
	if (result || !store_content_differ(content, old, at))
		*at = 0;
	op->slots += taken;
	op->kib += taken * STORE_SLOT_MAX / 1024;
	return result;
}

/*
 * The slots of the old version, or some of them: then the file is as long as both versions, since slots of the newest one may
 * be in it, and goes on in the next transaction.
 */
static int take_old_map(struct revert_op *op, struct node *node, struct version *version)
{
	struct revert_file *file = &op->file;
	struct store_content content = {0};
	uint32_t at = file->begun ? file->at : 1;
	int result;

	if (file->base && !version_content(node->base) &&
	    !version_attach_content(node->base, version_content(file->base)))
		return -ENOMEM;
	if (file->base)
		store_content_copy(version_content(node->base), &content);
	result = store_content_set(&content, 0, store_slot_ref(version->content.first));
	if (!result)
		result = take_old_slots(op, node, &content, &at);
	if (result) {
		store_content_free(&content);
		return result;
	}
	store_content_free(&version->content);
	version->content = content;
	version->partial = false;
	version->v.slots = content.count;
	version->v.map = file->base ? node->base->v.map : 0;
	if (at && node->now && version->v.length < node->now->v.length)
		version->v.length = node->now->v.length;
	op->staged_at = at;
	if (at)
		op->staged = version_ref(version);
	return 0;
}

/* Between two transactions. */
static void keep_staged_file(struct revert_op *op, int result)
{
	struct version *old = op->staged && !result ? version_ref(op->file.old) : NULL;
	uint32_t vnode = op->file.vnode;

	drop_revert_file(&op->file);
	if (old)
		op->file = (struct revert_file){.vnode = vnode,
						.old = old,
						.base = op->staged,
						.begun = true,
						.at = op->staged_at,
						.change = op->staged_change};
	else
		version_unref(op->staged);
	op->staged = NULL;
}

/* In the thread of the caller. The volume is busy: nothing changes meanwhile. */
static int load_missing_file(struct core *core, struct revert_op *op)
{
	struct db *db;
	int result = readers_get(core->readers, &db);

	if (result)
		return result;
	result = load_revert_file(op, db, op->group, op->missing);
	readers_put(core->readers, db);
	return result;
}

/* -- steps -- */

static void count_blocks(struct volrec *rec, const struct version *version, bool on)
{
	uint64_t blocks = space_blocks(&version->v);

	rec->files += on ? 1 : (uint64_t)-1;
	rec->used_kib += on ? blocks : -blocks;
}

/* KiB of the rows of a version, without those of further slots. */
static uint64_t count_row_kib(const struct version *version)
{
	uint64_t bytes = version->v.slots ? STORE_SLOT_MAX : 0;

	if (version->v.small || version->v.kind != STORE_FILE)
		bytes += version->v.length;
	return bytes / 1024 + 1;
}

/* *version: what the vnode becomes; NULL: it goes. */
static int make_reverted_version(struct revert_op *op, struct work *work, struct db *db,
				 struct node *node, struct version **version)
{
	struct vnode_key key = {node->vol->rec.group, node->vnode, op->epoch};
	int result = copy_old_version(op, work, db, &key, version);

	if (!result && *version && (*version)->partial) {
		result = find_revert_file(op, db, node, *version);
		if (!result)
			result = take_old_map(op, node, *version);
	} else if (!result && *version &&
		   (node->base->v.rows || node->base->v.map != (*version)->v.map)) {
		(*version)->v.map = 0;
	}
	if (!result && *version)
		choose_version(op, work, node, *version);
	if (result) {
		version_unref(*version);
		*version = NULL;
	}
	return result;
}

static int revert_vnode(struct revert_op *op, struct work *work, struct db *db,
			struct workvol *volume, const struct db_change *change)
{
	struct version *version;
	struct node *node;
	int result = work_node(work, volume, change->vnode, &node);

	if (result || !node->base)
		return result;
	/* Each vnode once: at its newest row, which may be new if a part of its slots is the old one. */
	if (node->base->epoch != change->epoch && !op->file.begun)
		return 0;
	result = make_reverted_version(op, work, db, node, &version);
	if (result)
		return result;
	if (node->now) {
		count_blocks(&volume->rec, node->now, false);
		work_remove(work, node);
	}
	op->kib++;
	if (!version)
		return 0;
	work->refers |= version->v.slots > 0;
	op->kib += count_row_kib(version);
	work_create(work, node, version);
	count_blocks(&volume->rec, version, true);
	return 0;
}

/* No further vnode is begun: a file of many slots is not done, or the transaction is long. */
static bool is_revert_step_full(const struct revert_op *op)
{
	return op->staged || op->pages >= STEP_PAGES || op->slots >= STEP_SLOTS;
}

static void begin_revert_step(struct revert_op *op)
{
	version_unref(op->staged);
	op->staged = NULL;
	op->pages = op->slots = 0;
	op->kib = 1;
}

/* The next changes: that of a file of which a part is done comes alone. */
static int list_next_changes(const struct revert_op *op, struct db *db, uint32_t group,
			     struct db_change change[STEP], unsigned *count)
{
	*count = 1;
	change[0] = op->file.change;
	return op->file.begun ? 0
			      : db_changes(db, group, &op->after, op->until, change, STEP, count);
}

static int apply_revert_step(struct txn_op *txn, struct work *work)
{
	struct revert_op *op = (struct revert_op *)txn;
	struct db_change change[STEP];
	struct workvol *volume;
	struct db *db;
	unsigned count, done = 0;
	int result = find_volume(op, work, &volume, &db);

	begin_revert_step(op);
	if (!result)
		result = list_next_changes(op, db, volume->rec.group, change, &count);
	while (!result && done < count && !is_revert_step_full(op)) {
		result = revert_vnode(op, work, db, volume, &change[done]);
		op->staged_change = change[done];
		done += !result && !op->staged;
	}
	if (result == WORK_MISSING) {
		op->group = volume->rec.group;
		if (!done)
			return result;
		result = 0;
	}
	/* A restore that failed is taken back even then: it has left room. */
	if (!result && !op->snapshot)
		result = space_check_rows(op->core, op->kib);
	if (result) {
		work->broken = true;
		return result;
	}
	volume->changed = true;
	op->reached = done ? change[done - 1] : op->after;
	op->done = done == count && count < STEP && !op->file.begun;
	assert(done || !count || op->staged);
	return 0;
}

/* -- the end -- */

static int apply_revert_end(struct txn_op *txn, struct work *work)
{
	const struct revert_op *op = (const struct revert_op *)txn;
	struct workvol *volume;
	struct volrec *rec;
	struct db *db;
	char name[40];
	int result = find_volume(op, work, &volume, &db);

	assert(op->done);
	if (result)
		return result;
	rec = &volume->rec;
	name_number(name, rec);
	if (op->snapshot) {
		struct db_prune prune = {.group = rec->group, .epoch = op->epoch};

		result = db_prune_put(db, &prune);
		rec->snapshot = 0;
	} else {
		result = db_number_delete(db, name);
		work_volume_changed(work, volume);
		/* Clients take another date for another content. */
		rec->created = rec->created >= work->now ? rec->created + 1 : work->now;
	}
	work->broken |= result != 0;
	rec->offline &= (uint8_t)~VOLUME_BUSY;
	volume->changed = true;
	volume->moves++;
	return result;
}

/* -- one of a volume at a time: the record of the volume does not tell one that runs from one that failed -- */

static pthread_mutex_t running = PTHREAD_MUTEX_INITIALIZER; /* covers `reverts` of all stores */

static bool begin_running(struct core *core, struct revert_op *op)
{
	struct revert_op *other;

	assert(!op->next);
	pthread_mutex_lock(&running);
	for (other = core->reverts; other && other->id != op->id;)
		other = other->next;
	if (!other) {
		op->next = core->reverts;
		core->reverts = op;
	}
	pthread_mutex_unlock(&running);
	return !other;
}

static void end_running(struct core *core, struct revert_op *op)
{
	struct revert_op **at = &core->reverts;

	pthread_mutex_lock(&running);
	while (*at != op)
		at = &(*at)->next;
	*at = op->next;
	pthread_mutex_unlock(&running);
}

/* -- the run -- */

static int run_revert_op(struct core *core, struct revert_op *op,
			 int (*apply)(struct txn_op *txn, struct work *work))
{
	op->core = core;
	op->txn = (struct txn_op){.apply = apply, .alone = true};
	return txn_run(core->txn, &op->txn);
}

/* One transaction, or what it needs. *again: it failed for want of space, and is tried again. */
static int run_revert_step(struct core *core, struct revert_op *op, bool *again)
{
	int result = run_revert_op(core, op, apply_revert_step);

	if (result == WORK_MISSING)
		return load_missing_file(core, op);
	/* The log was counted, and becomes short before the next transaction. */
	*again = result == STORE_VDISKFULL && !*again;
	if (*again)
		return 0;
	keep_staged_file(op, result);
	op->after = op->reached;
	return result;
}

static int run_revert_steps(struct core *core, struct revert_op *op)
{
	int result = run_revert_op(core, op, apply_revert_begin);
	bool again = false;

	while (!result && (!op->done || again))
		result = run_revert_step(core, op, &again);
	version_unref(op->staged);
	drop_revert_file(&op->file);
	return result ? result : run_revert_op(core, op, apply_revert_end);
}

int revert_volume(struct core *core, uint32_t id, uint32_t epoch, bool snapshot)
{
	struct revert_op op = {
		.id = id,
		.epoch = epoch,
		.snapshot = snapshot,
		.after = {.epoch = epoch, .vnode = UINT32_MAX},
	};
	int result = STORE_VBUSY;

	if (begin_running(core, &op)) {
		result = run_revert_steps(core, &op);
		end_running(core, &op);
	}
	if (snapshot)
		keeper_wake(core->keeper);
	return result;
}

int store_volume_revert(struct store *store, uint32_t clone)
{
	struct core *core = core_of(store);
	struct volrec rec;
	int result = volumes_get(&core->volumes, clone, &rec);

	if (!result && rec.type == STORE_RW)
		result = -EINVAL;
	return result ? result : revert_volume(core, rec.group, rec.epoch, false);
}

int revert_begun(struct core *core, const struct volrec *rec)
{
	uint64_t epoch = 0;
	char name[40];
	struct db *db;
	int result = readers_get(core->readers, &db);

	if (result)
		return result;
	name_number(name, rec);
	result = db_number_get(db, name, &epoch);
	readers_put(core->readers, db);
	if (!result)
		result = revert_volume(core, rec->id, (uint32_t)epoch, false);
	if (result != STORE_VNOVOL)
		return result;
	/* It cannot be finished, and part of it is done: the volume stays off-line. */
	report_line(&core->report, REPORT_ERROR,
		    "volume %u was going back to a clone that is gone: restore it from a dump",
		    (unsigned)rec->id);
	return 0;
}
