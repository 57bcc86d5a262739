/* SPDX-License-Identifier: BSD-2-Clause */
/* Work in the background: flushes, bytes that they lost, checkpoints, removals. */
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/held.h"
#include "volume/store/data/data_lost.h"
#include "volume/store/maint/maint.h"
#include "volume/store/txn/lookup.h"
#include "volume/store/txn/space.h"

#define FLUSH_NS    (400 * (uint64_t)NS_PER_MS)	 /* between a commit and its flush, at most */
#define TIGHT_NS \
	(2000 * (uint64_t)NS_PER_MS) /* between two looks at the log of a store that may be idle */
#define RETRY_NS    (1000 * (uint64_t)NS_PER_MS) /* after a flush that failed */
#define LOG_LONG    (64u << 20)	  /* commits become slower: they wait for the log, but not long */
#define LOG_LATER   (256u << 20)  /* so they do also while nothing makes it shorter yet */
#define LOG_MOST    (1024u << 20) /* commits wait until it is shorter */
#define PACE_NS	    (20 * (uint64_t)NS_PER_MS) /* that a commit waits at most, before that */
#define LOG_BYTES   (8u << 20)	 /* of the write-ahead log, before it goes to the database */
#define LOG_TIGHT   (256u << 10) /* the same while the disk is full */
#define LOG_BEHIND  (32u << 20) /* later on a full disk, while the copy of the metadata is behind */
#define COPY_MOST   (4u << 20) /* that the copy lacks when the log starts again: for these all wait */
#define SHIPS	    8	       /* tries to reach that */
#define ROOM_KIB    1024       /* that are free when it is no longer */
#define SWITCHES    4	       /* tries to let the log start again, one behind the other */
#define SWITCH_NS   (20 * (uint64_t)NS_PER_MS) /* a flush before that takes less */
#define SWITCH_MOST 1024 /* pages of the log that move while commits wait, about */
#define PRUNE_BURST 20	 /* steps between two looks at other work */

struct keeper {
	struct core *core;
	struct db *db; /* of the thread: reads and checkpoints */
	pthread_t thread;
	bool started;

	pthread_mutex_t lock; /* covers the rest */
	pthread_cond_t work, flushed, shorter;
	bool stop, dirty, pruning;
	uint64_t prune_ns;     /* not before this, after a step that failed */
	uint64_t shorten_ns;   /* the next look at the log, in case that the disk is full */
	unsigned woken;	       /* how often there was something new to prune */
	bool checkpointing;    /* the log will be shorter soon */
	uint64_t dirty_ns;     /* when the oldest commit that is not flushed was */
	uint64_t wanted, done; /* flushes: each caller wants one more than had begun */
	int result;	       /* of the last flush */
	uint64_t failed_done;  /* `done` of the last flush that failed, */
	int failed_result; /* and its result: a later one does not make up for lost bytes of objects */
	bool failed;	   /* the last one did, which has been logged */
	struct object_list made, dead;

	/* One thread at a time moves the log to the database; taken after the gate of the commits. */
	pthread_mutex_t moving;

	_Atomic uint64_t flushes;
};

static _Thread_local bool is_keeper_thread;

/* -- bytes that a flush lost -- */

#define PREFIX \
	"lost-" /* of the numbers in the database, each with an object and the bytes that are safe */

struct record_op {
	struct txn_op txn;
	struct core *core;
	struct store_lost lost;
	bool known; /* the database has the object */
};

static void format_lost_name(uint64_t object, char name[32])
{
	snprintf(name, 32, PREFIX "%016llx", (unsigned long long)object);
}

/* A writer whose bytes were lost before its commit has left none. */
static int put_lost_record(struct db *db, struct record_op *op)
{
	struct db_object object;
	char name[32];
	int result = db_object_get(db, op->lost.object, &object);

	op->known = !result;
	if (result)
		return result == -ENOENT ? 0 : result;
	op->lost.owner = object.owner;
	format_lost_name(op->lost.object, name);
	return db_number_put(db, name, op->lost.safe);
}

static int apply_lost_record(struct txn_op *txn, struct work *work)
{
	struct db *db;
	int result = work_db(work, &db);

	return result ? result : put_lost_record(db, (struct record_op *)txn);
}

static void conclude_lost_record(const struct record_op *op)
{
	struct core *core = op->core;

	store_data_lost_recorded(core->data, &op->lost);
	if (op->known)
		report_damage(
			&core->report,
			"%s: the disk did not take bytes of vnode %u of volume %u, which are lost: restore the file",
			core->name, op->lost.owner.vnode, op->lost.owner.group);
}

/* As lost_record_first(), while there is a thread that commits. */
static int record_lost_bytes(struct core *core)
{
	struct record_op op = {.txn = {.apply = apply_lost_record, .alone = true}, .core = core};
	int result = 0;

	/* A commit may have to flush the log first. */
	core->recording = true;
	while (!result && store_data_lost_next(core->data, &op.lost)) {
		result = txn_run(core->txn, &op.txn);
		if (!result)
			conclude_lost_record(&op);
	}
	core->recording = false;
	return result;
}

int lost_record_first(struct core *core, struct db *db)
{
	struct record_op op = {.core = core};
	int result = 0;

	while (!result && store_data_lost_next(core->data, &op.lost)) {
		result = db_begin(db);
		if (!result)
			result = put_lost_record(db, &op);
		if (!result)
			result = db_commit(db);
		if (result)
			db_rollback(db);
		else
			conclude_lost_record(&op);
	}
	return result;
}

static int load_lost_record(void *arg, const char *name, uint64_t safe)
{
	struct core *core = arg;
	struct store_lost lost = {.object = strtoull(name + strlen(PREFIX), NULL, 16),
				  .safe = safe};
	struct db_object object;
	int result = db_object_get(core->writer, lost.object, &object);

	assert(!strncmp(name, PREFIX, strlen(PREFIX)));
	if (result)
		return result == -ENOENT ? 0 : result;
	lost.owner = object.owner;
	return store_data_set_lost(core->data, &lost);
}

int lost_load(struct core *core, struct db *db)
{
	return db_numbers(db, PREFIX, load_lost_record, core);
}

/* Delete the record of an object, in the transaction that deletes its row. */
static int delete_lost_record(struct core *core, struct db *db, uint64_t object)
{
	char name[32];

	if (!store_data_any_lost(core->data))
		return 0;
	format_lost_name(object, name);
	return db_number_delete(db, name);
}

int lost_check(struct core *core, const struct store_fid *fid)
{
	const struct store_content *content;
	struct found found;
	int result;

	if (!store_data_any_lost(core->data) || lookup(core, NULL, fid, &found))
		return 0;
	/* -EAGAIN: it was replaced since. */
	result = lookup_content(core, &found, &content);
	if (!result)
		result = store_data_is_lost(core->data, content) ? -EIO : 0;
	else if (result == -EAGAIN)
		result = 0;
	lookup_end(&found);
	return result;
}

/* -- lists -- */

static bool append_objects(struct object_list *to, const struct db_object *item, size_t count)
{
	if (to->count + count > to->room) {
		size_t room = 2 * (to->count + count);
		struct db_object *more = realloc(to->item, room * sizeof(*more));

		if (!more)
			return false;
		to->item = more;
		to->room = room;
	}
	for (size_t i = 0; i < count; i++)
		to->item[to->count++] = item[i];
	return true;
}

void keeper_committed(void *arg, const struct object_list *made, const struct object_list *dead)
{
	struct keeper *keeper = arg;
	bool kept;

	pthread_mutex_lock(&keeper->lock);
	/* Without memory they are found when the store is opened. */
	kept = append_objects(&keeper->made, made->item, made->count);
	kept = append_objects(&keeper->dead, dead->item, dead->count) && kept;
	keeper->pruning |= dead->more;
	keeper->woken += dead->more;
	if (!keeper->dirty) {
		keeper->dirty = true;
		keeper->dirty_ns = monotonic_ns();
		pthread_cond_signal(&keeper->work);
	}
	pthread_mutex_unlock(&keeper->lock);
	if (!kept)
		report_line(&keeper->core->report, REPORT_WARNING,
			    "%s: no memory: files are tidied up at the next start",
			    keeper->core->name);
}

/* Keep the objects for the next flush. */
static void put_back_objects(struct keeper *keeper, const struct db_object *made, size_t made_count,
			     const struct db_object *dead, size_t dead_count)
{
	if (!made_count && !dead_count)
		return;
	pthread_mutex_lock(&keeper->lock);
	append_objects(&keeper->made, made, made_count);
	append_objects(&keeper->dead, dead, dead_count);
	keeper->dirty = true;
	keeper->dirty_ns = monotonic_ns();
	pthread_mutex_unlock(&keeper->lock);
}

/* -- removing the rows of dead objects -- */

#define FORGET_STEP 256 /* rows in a transaction */

struct forget_op {
	struct txn_op txn;
	struct core *core;
	const struct db_object *item;
	size_t count;
};

static int delete_object_row(struct core *core, struct db *db, uint64_t id)
{
	int result = db_object_delete(db, id);

	return result ? result : delete_lost_record(core, db, id);
}

static int apply_row_deletion(struct txn_op *txn, struct work *work)
{
	const struct forget_op *op = (const struct forget_op *)txn;
	struct db *db;
	int result = work_db(work, &db);

	for (size_t i = 0; i < op->count && !result; i++)
		if (op->item[i].id)
			result = delete_object_row(op->core, db, op->item[i].id);
	return result;
}

/* Delete the rows of objects, in steps, because writers wait meanwhile. */
static void delete_dead_rows(struct core *core, const struct object_list *gone)
{
	for (size_t i = 0; i < gone->count; i += FORGET_STEP) {
		struct forget_op op = {.txn = {.apply = apply_row_deletion, .alone = true},
				       .core = core,
				       .item = gone->item + i,
				       .count = gone->count - i};

		if (op.count > FORGET_STEP)
			op.count = FORGET_STEP;
		txn_run(core->txn, &op.txn);
	}
}

/* The objects wait for the next flush. */
static void put_back_dead_objects(struct keeper *keeper, const struct object_list *gone)
{
	for (size_t i = 0; i < gone->count; i++)
		if (gone->item[i].id)
			put_back_objects(keeper, NULL, 0, &gone->item[i], 1);
}

/* An object, or some blocks of it. -EBUSY: a reader or a run needs it. */
static int remove_dead_object(struct core *core, const struct db_object *object)
{
	if (store_data_shown(core->data, &object->owner, object->id, object->first, object->count))
		return -EBUSY;
	if (!object->count)
		return store_data_remove(core->data, &object->owner, object->id);
	return store_data_punch(core->data, &object->owner, object->id, object->first,
				object->count);
}

/*
 * The files of dead objects go, then their rows: a file that came back when the machine stops would belong to
 * nothing. Those left at `until`, and those of a run or of a reader, wait for the next time: once dead, an
 * object stays so. While the copy cannot follow, its state needs them all, unless the disk is full.
 */
static void remove_dead_objects(struct keeper *keeper, const struct object_list *dead,
				uint64_t until)
{
	struct core *core = keeper->core;
	struct object_list gone = {.item = dead->item};
	uint64_t rest;
	bool any = false, needed = !core->tight && copying_is_behind(core, &rest);

	while (!needed && gone.count < dead->count && monotonic_ns() < until) {
		struct db_object *object = &gone.item[gone.count++];
		int result = remove_dead_object(core, object);

		if (result == -EBUSY)
			put_back_objects(keeper, NULL, 0, object, 1);
		/* Only what has a row to be deleted keeps its number. */
		if (result || object->count)
			object->id = 0;
		any = any || object->id;
	}
	if (any && store_data_sync_removed(core->data))
		put_back_dead_objects(keeper, &gone);
	else if (any)
		delete_dead_rows(core, &gone);
	put_back_objects(keeper, NULL, 0, dead->item + gone.count, dead->count - gone.count);
}

static int compare_object_ids(const void *a, const void *b)
{
	const struct db_object *x = a, *y = b;

	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	return (x->count != 0) - (y->count != 0);
}

/* `dead` is sorted: an object stands in front of its blocks. */
static bool is_object_dead(const struct object_list *dead, uint64_t id)
{
	size_t low = 0, high = dead->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (dead->item[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low < dead->count && dead->item[low].id == id && !dead->item[low].count;
}

/* New objects get their names, unless they are dead already. */
static void name_new_objects(struct keeper *keeper, const struct object_list *made,
			     const struct object_list *dead, uint64_t until)
{
	struct core *core = keeper->core;
	size_t done = 0;

	for (; done < made->count && monotonic_ns() < until; done++) {
		const struct db_object *object = &made->item[done];
		int result;

		if (!object->refs || is_object_dead(dead, object->id))
			continue;
		result = store_data_settle(core->data, &object->owner, object->id);
		/* It may have been removed since. */
		if (result && result != -ENOENT)
			report_line(
				&core->report, REPORT_WARNING,
				"%s: a new file of volume %u keeps its name in files/new: error %d",
				core->name, object->owner.group, -result);
	}
	put_back_objects(keeper, made->item + done, made->count - done, NULL, 0);
}

/* -- flush -- */

static void report_flush_failure(struct keeper *keeper, int result)
{
	const char *name = keeper->core->name;
	struct report *report = &keeper->core->report;

	if (result == -ENOTRECOVERABLE)
		report_line(
			report, REPORT_ERROR,
			"%s: the disk lost changes of the last second, which were not acknowledged as durable; "
			"no changes are taken any more: look at the disk, and start the server again",
			name);
	else if (result == -EMFILE || result == -ENFILE)
		report_line(
			report, REPORT_ERROR,
			"%s: data are not flushed, because too many files are open; raise the limit of open files "
			"(LimitNOFILE, ulimit -n)",
			name);
	else
		report_line(
			report, REPORT_ERROR,
			"%s: data cannot be flushed: %s; look at the disk, and at the log of the kernel",
			name, strerror(-result));
}

/* A failed flush is tried again, also if no other change comes. */
static void note_flush_result(struct keeper *keeper, uint64_t target, int result)
{
	bool tell;

	pthread_mutex_lock(&keeper->lock);
	tell = result && !keeper->failed;
	keeper->failed = result != 0;
	keeper->result = result;
	assert(target >= keeper->done);
	keeper->done = target;
	if (result) {
		keeper->failed_done = target;
		keeper->failed_result = result;
		keeper->dirty = true;
		keeper->dirty_ns = monotonic_ns();
	}
	pthread_cond_broadcast(&keeper->flushed);
	pthread_mutex_unlock(&keeper->lock);
	if (tell)
		report_flush_failure(keeper, result);
}

static void set_checkpointing(struct keeper *keeper, bool on)
{
	pthread_mutex_lock(&keeper->lock);
	keeper->checkpointing = on;
	pthread_cond_broadcast(&keeper->shorter);
	pthread_mutex_unlock(&keeper->lock);
}

/*
 * While no commit can come: all of the log goes to the database. On a full disk its file becomes empty. The keeper may be moving
 * it beside the commits, and SQLite would then leave it: a commit that has no room otherwise would fail.
 */
static void move_log_to_database(struct keeper *keeper, struct db *db)
{
	struct core *core = keeper->core;
	unsigned left;

	pthread_mutex_lock(&keeper->moving);
	if (!db_checkpoint(db, &left) && !left) {
		store_vfs_emptied(core->vfs);
		if (core->tight)
			db_log_cut(db);
	}
	pthread_mutex_unlock(&keeper->moving);
}

/*
 * SQLite flushes the database only if no commit came meanwhile, so that all would be left to the end, for which commits wait. A
 * failure is told again by the file that SQLite has open.
 */
static void flush_database_file(struct core *core)
{
	const struct store_layer_ops *ops = core->layer->ops;
	struct store_file *file;

	if (ops->open(core->layer, "meta/db", STORE_OPEN_WRITE, &file))
		return;
	ops->sync(file);
	ops->close(file);
}

/* Whether the log must start again, although commits may wait long. */
static bool must_switch_log(struct core *core)
{
	return core->tight || store_vfs_log_size(core->vfs) >= LOG_LATER;
}

/* The commit with which the log starts again copies what the copy lacks, while all wait. */
static bool is_copy_near(struct core *core)
{
	uint64_t rest;

	return core->tight || copying_is_behind(core, &rest) || rest <= COPY_MOST;
}

/*
 * Beside the commits, before anything goes to the database: when all of the log is there, the next commit starts it again. Each
 * try is shorter, because the copy is faster than the commits.
 */
static void ship_most_of_log(struct core *core)
{
	for (unsigned i = 0; i < SHIPS && !is_copy_near(core); i++) {
		if (core->durability == STORE_LAZY && store_vfs_mark(core->vfs))
			return;
		copying_ship(core);
	}
}

/* One that has started again is short. If all of it were moved before the copy has the one before, the copy would be lost. */
static bool is_log_due(struct core *core)
{
	uint64_t size = store_vfs_log_size(core->vfs), rest;

	if (size < (core->tight ? LOG_TIGHT : LOG_BYTES))
		return false;
	return !copying_is_behind(core, &rest) || size >= (core->tight ? LOG_BEHIND : LOG_LATER);
}

/*
 * Between two commits. The bytes of objects that commits since `referring` refer to would be flushed meanwhile: they may be very
 * many, so it is for another time.
 */
static bool switch_log(struct keeper *keeper, uint64_t referring)
{
	struct core *core = keeper->core;
	bool now;

	txn_pause(core->txn);
	now = is_log_due(core) && is_copy_near(core) &&
	      (core->durability == STORE_STRICT || txn_referring(core->txn) == referring ||
	       must_switch_log(core));
	if (now)
		move_log_to_database(keeper, keeper->db);
	txn_resume(core->txn);
	return now;
}

/*
 * The copy gets what was flushed for it: otherwise the commit with which the log starts again would copy all of that. True if
 * it failed, or if it is enough.
 */
static bool move_log_beside_commits(struct keeper *keeper, unsigned *left)
{
	int result;

	if (!is_log_due(keeper->core))
		return true;
	pthread_mutex_lock(&keeper->moving);
	result = db_checkpoint(keeper->db, left);
	pthread_mutex_unlock(&keeper->moving);
	if (!result)
		copying_ship(keeper->core);
	return result != 0;
}

static void checkpoint_long_log(struct keeper *keeper)
{
	struct core *core = keeper->core;
	uint64_t referring, begun;
	unsigned left;
	bool done;

	if (!is_log_due(core))
		return;
	/*
	 * Most of it beside the commits, the rest between two of them: the log can start again. The second
	 * time is short, so that few commits remain to be flushed while others wait. A view of a reader may keep the rest in
	 * the log, and may end any time.
	 */
	set_checkpointing(keeper, true);
	ship_most_of_log(core);
	done = move_log_beside_commits(keeper, &left);
	flush_database_file(core);
	done = done || move_log_beside_commits(keeper, &left);
	for (unsigned i = 0; i < SWITCHES && !done; i++) {
		begun = monotonic_ns();
		flush_database_file(core);
		referring = txn_referring(core->txn);
		done = move_log_beside_commits(keeper, &left) || left > SWITCH_MOST;
		/* While the disk is busy, so would be the next flush, for which all wait. */
		if (!done && (monotonic_ns() - begun < SWITCH_NS || must_switch_log(core)))
			done = switch_log(keeper, referring);
	}
	set_checkpointing(keeper, false);
}

void keeper_full(void *arg)
{
	struct keeper *keeper = arg;
	struct core *core = keeper->core;

	core->tight = true;
	reserve_release(core);
	/* First, since the log may need room in the database. */
	copying_give_room(core);
	move_log_to_database(keeper, core->writer);
}

/* Whether the disk is full, and the file of the log longer than it needs to be. The database takes less room. */
static bool is_log_in_way(struct core *core)
{
	struct store_space space;
	struct store_file *file;
	uint64_t length = 0;

	if (!space_disk(core, &space) && space.available_kib > ROOM_KIB) {
		core->tight = false;
		return false;
	}
	if (core->layer->ops->open(core->layer, "meta/db-wal", 0, &file))
		return false;
	core->layer->ops->size(file, &length);
	core->layer->ops->close(file);
	return length >= LOG_TIGHT;
}

/* By the thread that commits. */
static void shorten_log(struct keeper *keeper)
{
	if (!is_log_in_way(keeper->core))
		return;
	reserve_release(keeper->core);
	move_log_to_database(keeper, keeper->core->writer);
}

/* By the keeper: also in a store that refuses all changes. */
static void shorten_idle_log(struct keeper *keeper)
{
	struct core *core = keeper->core;

	if (!core->tight || !is_log_in_way(core))
		return;
	/* The database becomes longer before the log becomes shorter. */
	txn_pause(core->txn);
	reserve_release(core);
	move_log_to_database(keeper, keeper->db);
	txn_resume(core->txn);
	reserve_make(core);
}

static bool must_pace_commit(struct keeper *keeper)
{
	uint64_t bytes = store_vfs_log_size(keeper->core->vfs);

	assert(mutex_is_held(&keeper->lock));
	return bytes >= (keeper->checkpointing ? LOG_LONG : LOG_LATER);
}

/*
 * The keeper may be about to flush bytes of objects, or a check may keep the log from starting again: without a pace it would
 * be so long by then that all wait for seconds. The keeper itself does not wait: it makes the log shorter.
 */
static void pace_commit(struct keeper *keeper, uint64_t bytes)
{
	uint64_t until = monotonic_ns() + PACE_NS * (bytes / LOG_LONG) / (LOG_MOST / LOG_LONG);

	if (is_keeper_thread)
		return;
	pthread_mutex_lock(&keeper->lock);
	while (must_pace_commit(keeper) && monotonic_ns() < until)
		monotonic_wait(&keeper->shorter, &keeper->lock, until);
	pthread_mutex_unlock(&keeper->lock);
}

static void wait_for_checkpoint(struct keeper *keeper)
{
	pthread_mutex_lock(&keeper->lock);
	while (keeper->checkpointing)
		pthread_cond_wait(&keeper->shorter, &keeper->lock);
	pthread_mutex_unlock(&keeper->lock);
}

void keeper_admit(void *arg)
{
	struct keeper *keeper = arg;
	bool tight = keeper->core->tight;
	uint64_t bytes = store_vfs_log_size(keeper->core->vfs);

	if (!tight && bytes < LOG_LONG)
		return;
	if (!tight && bytes < LOG_MOST)
		pace_commit(keeper, bytes);
	else
		wait_for_checkpoint(keeper);
	/* Not beside the thread, which would keep it from that. */
	if (tight)
		shorten_log(keeper);
}

/* Half of the time until the next flush, at most. */
static void tidy_objects(struct keeper *keeper, const struct object_list *made,
			 struct object_list *dead)
{
	uint64_t begun = monotonic_ns();

	if (dead->count)
		qsort(dead->item, dead->count, sizeof(*dead->item), compare_object_ids);
	name_new_objects(keeper, made, dead, begun + FLUSH_NS / 4);
	remove_dead_objects(keeper, dead, begun + FLUSH_NS / 2);
}

static int flush_commits(struct keeper *keeper)
{
	struct core *core = keeper->core;
	struct object_list made, dead;
	uint64_t target;
	int result = 0;

	pthread_mutex_lock(&keeper->lock);
	target = keeper->wanted;
	keeper->dirty = false;
	made = keeper->made;
	dead = keeper->dead;
	keeper->made = keeper->dead = (struct object_list){0};
	pthread_mutex_unlock(&keeper->lock);
	if (core->durability == STORE_LAZY)
		result = store_vfs_mark(core->vfs);
	keeper->flushes++;
	/* Before objects are removed that it may refer to. */
	if (!result)
		copying_ship(core);
	note_flush_result(keeper, target, result);
	if (!core->tight && !core->reserved)
		reserve_make(core);
	if (!result)
		tidy_objects(keeper, &made, &dead);
	else
		put_back_objects(keeper, made.item, made.count, dead.item, dead.count);
	if (result && core->durability == STORE_LAZY)
		record_lost_bytes(core);
	free(made.item);
	free(dead.item);
	return result;
}

int keeper_flush(struct keeper *keeper)
{
	uint64_t wanted;
	int result;

	if (keeper->core->durability == STORE_STRICT)
		return 0;
	pthread_mutex_lock(&keeper->lock);
	wanted = ++keeper->wanted;
	pthread_cond_signal(&keeper->work);
	while (keeper->done < wanted)
		pthread_cond_wait(&keeper->flushed, &keeper->lock);
	result = keeper->failed_done >= wanted ? keeper->failed_result : 0;
	pthread_mutex_unlock(&keeper->lock);
	return result;
}

void keeper_wake(struct keeper *keeper)
{
	pthread_mutex_lock(&keeper->lock);
	keeper->pruning = true;
	keeper->woken++;
	pthread_cond_signal(&keeper->work);
	pthread_mutex_unlock(&keeper->lock);
}

/* A step that fails, because the disk is full or broken, is tried again. */
static void run_prune_burst(struct keeper *keeper)
{
	bool more = true;
	unsigned woken;
	int result = 0;

	pthread_mutex_lock(&keeper->lock);
	woken = keeper->woken;
	pthread_mutex_unlock(&keeper->lock);
	for (unsigned i = 0; i < PRUNE_BURST && more && !result; i++)
		result = prune_step(keeper->core, 0, &more);
	if (more && !result)
		return;
	pthread_mutex_lock(&keeper->lock);
	/* The last step has not seen work that was announced after it. */
	keeper->pruning = result != 0 || keeper->woken != woken;
	keeper->prune_ns = result ? monotonic_ns() + RETRY_NS : 0;
	pthread_mutex_unlock(&keeper->lock);
}

/* -- the thread -- */

enum task {
	TASK_FLUSH,
	TASK_PRUNE,
	TASK_SHORTEN,
	TASK_STOP
};

/* Wait until there may be something to do. */
static void wait_for_task(struct keeper *keeper, uint64_t flush_ns)
{
	uint64_t until = keeper->dirty ? flush_ns : UINT64_MAX;

	assert(mutex_is_held(&keeper->lock));
	if (keeper->pruning && keeper->prune_ns < until)
		until = keeper->prune_ns;
	if (keeper->shorten_ns < until)
		until = keeper->shorten_ns;
	monotonic_wait(&keeper->work, &keeper->lock, until);
}

static enum task choose_next_task(struct keeper *keeper)
{
	enum task task;

	pthread_mutex_lock(&keeper->lock);
	for (;;) {
		uint64_t due = keeper->dirty_ns + (keeper->failed ? RETRY_NS : FLUSH_NS);
		uint64_t now = monotonic_ns();

		task = TASK_FLUSH;
		if (keeper->wanted > keeper->done || (keeper->dirty && now >= due))
			break;
		task = TASK_STOP;
		if (keeper->stop)
			break;
		task = TASK_PRUNE;
		if (keeper->pruning && now >= keeper->prune_ns)
			break;
		task = TASK_SHORTEN;
		if (now >= keeper->shorten_ns) {
			keeper->shorten_ns = now + TIGHT_NS;
			break;
		}
		wait_for_task(keeper, due);
	}
	pthread_mutex_unlock(&keeper->lock);
	return task;
}

static void *run_keeper(void *arg)
{
	struct keeper *keeper = arg;

	is_keeper_thread = true;
	for (;;) {
		switch (choose_next_task(keeper)) {
		case TASK_FLUSH:
			if (!flush_commits(keeper))
				checkpoint_long_log(keeper);
			break;
		case TASK_PRUNE:
			run_prune_burst(keeper);
			break;
		case TASK_SHORTEN:
			shorten_idle_log(keeper);
			break;
		case TASK_STOP:
			return NULL;
		}
	}
}

/* -- leftovers of an earlier process -- */

static int adopt_new_object(void *arg, uint64_t id)
{
	struct keeper *keeper = arg;
	struct db_object object;
	int result;

	result = db_object_get(keeper->db, id, &object);
	if (result == -ENOENT)
		store_data_remove_new(keeper->core->data, id);
	else if (!result && object.refs)
		append_objects(&keeper->made, &object, 1);
	return 0;
}

static int adopt_dead_object(void *arg, const struct db_object *object)
{
	struct keeper *keeper = arg;

	append_objects(&keeper->dead, object, 1);
	return 0;
}

static int find_leftovers(struct keeper *keeper)
{
	int result = store_data_list_new(keeper->core->data, adopt_new_object, keeper);

	if (!result)
		result = db_objects(keeper->db, true, adopt_dead_object, keeper);
	/* The last commits of a killed process are not flushed yet. */
	if (keeper->made.count || keeper->dead.count || keeper->core->sync_all) {
		keeper->dirty = true;
		keeper->dirty_ns = monotonic_ns();
	}
	keeper->pruning = true;
	return result;
}

int keeper_create(struct core *core, struct keeper **out)
{
	struct db_options options = {.path = "meta/db",
				     .vfs = store_vfs_name(core->vfs),
				     .full = core->durability == STORE_STRICT,
				     .cache_kib = 512,
				     .vfs_errno = store_vfs_errno,
				     .report = &core->report};
	struct keeper *keeper = calloc(1, sizeof(*keeper));
	int result;

	if (!keeper)
		return -ENOMEM;
	keeper->core = core;
	pthread_mutex_init(&keeper->lock, NULL);
	pthread_mutex_init(&keeper->moving, NULL);
	monotonic_cond_init(&keeper->work);
	pthread_cond_init(&keeper->flushed, NULL);
	monotonic_cond_init(&keeper->shorter);
	result = db_open(&options, &keeper->db);
	if (result) {
		keeper_destroy(keeper);
		return result;
	}
	*out = keeper;
	return 0;
}

int keeper_start(struct keeper *keeper)
{
	int result = find_leftovers(keeper);

	if (!result)
		result = -pthread_create(&keeper->thread, NULL, run_keeper, keeper);
	keeper->started = !result;
	return result;
}

int keeper_stop(struct keeper *keeper)
{
	int result = 0;

	if (!keeper || !keeper->started)
		return 0;
	pthread_mutex_lock(&keeper->lock);
	keeper->wanted++;
	keeper->stop = true;
	pthread_cond_signal(&keeper->work);
	pthread_mutex_unlock(&keeper->lock);
	pthread_join(keeper->thread, NULL);
	keeper->started = false;
	/* The rows of dead objects were removed after the last flush. */
	if (keeper->core->durability == STORE_LAZY)
		result = store_vfs_mark(keeper->core->vfs);
	return result ? result : keeper->result;
}

void keeper_destroy(struct keeper *keeper)
{
	if (!keeper)
		return;
	assert(!keeper->started);
	db_close(keeper->db);
	free(keeper->made.item);
	free(keeper->dead.item);
	pthread_mutex_destroy(&keeper->lock);
	pthread_mutex_destroy(&keeper->moving);
	pthread_cond_destroy(&keeper->work);
	pthread_cond_destroy(&keeper->flushed);
	pthread_cond_destroy(&keeper->shorter);
	free(keeper);
}

void keeper_counts(struct keeper *keeper, uint64_t *flushes, uint64_t *pruning)
{
	*flushes = keeper->flushes;
	pthread_mutex_lock(&keeper->lock);
	*pruning = keeper->pruning;
	pthread_mutex_unlock(&keeper->lock);
}
