/* SPDX-License-Identifier: BSD-2-Clause */
/* The thread that keeps the copy of the metadata, and repairs from the copy before a store is opened. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/clock.h"
#include "volume/store/db/carve.h"
#include "volume/store/maint/maint.h"
#include "volume/store/txn/space.h"

#define SETTLE_NS (3 * (uint64_t)NS_PER_S)  /* between two flushes of the copy */
#define IDLE_NS	  (30 * (uint64_t)NS_PER_S) /* more than that, when nothing changes */
#define OPEN_BYTES (1u << 20)		     /* that an opening may need */
#define LONG_BYTES (64u << 20)		     /* of a database whose copy takes more than a moment */
#define RENEW_NS  (30 * (uint64_t)NS_PER_S) /* after an attempt to make it that failed */

struct copier {
	struct core *core;
	struct db *db; /* of the thread, for a view that does not change while the copy is made */
	pthread_t thread;
	bool started;
	pthread_mutex_t lock; /* covers the rest */
	pthread_cond_t work;
	bool stop, full; /* full: a complete log waits */
	bool shipped;	 /* something was, since the last flush */
};

static bool is_noted(struct core *core)
{
	return store_layer_has(core->layer, "meta/" STORE_DAMAGED);
}

/* -- the thread -- */

/* A change without room does not wait for a new copy, which takes room as well. */
static bool is_copier_stopped(void *arg)
{
	struct copier *copier = arg;
	bool stop = copier->core->copy_yields;

	if (stop)
		return true;

	pthread_mutex_lock(&copier->lock);
	stop = copier->stop;
	pthread_mutex_unlock(&copier->lock);
	return stop;
}

/* Bytes of the database; UINT64_MAX: they are not known. */
static uint64_t get_database_length(struct core *core)
{
	struct store_file *file;
	uint64_t length;

	if (core->layer->ops->open(core->layer, "meta/db", 0, &file))
		return UINT64_MAX;
	if (core->layer->ops->size(file, &length))
		length = UINT64_MAX;
	core->layer->ops->close(file);
	return length;
}

/* On the disk of the store a new copy leaves room for changes. */
static bool may_renew(struct core *core)
{
	struct store_replica_view view;
	struct store_space space;

	store_replica_look(core->replica, &view);
	return view.missing &&
	       (!core->copy_shares || (!space_disk(core, &space) &&
				       space.available_kib > get_database_length(core) / 1024));
}

void copying_give_room(struct core *core)
{
	if (!core->replica || !core->copy_shares || is_noted(core))
		return;
	core->copy_yields = true;
	if (store_replica_drop(core->replica))
		report_line(
			&core->report, REPORT_WARNING,
			"%s: the disk is full: the copy of the metadata was removed, and is made again when "
			"there is room",
			core->name);
	core->copy_yields = false;
}

/* What is left of a copy for which there was no room. */
static void drop_full_copy(struct core *core)
{
	struct store_replica_view view;

	store_replica_look(core->replica, &view);
	if (view.full)
		copying_give_room(core);
}

void copying_begin(struct core *core)
{
	if (!core->layer->ops->unlink(core->layer, STORE_CLOSED))
		core->layer->ops->sync_dir(core->layer, ".");
}

void copying_end(struct core *core)
{
	if (may_renew(core) && get_database_length(core) <= LONG_BYTES)
		store_replica_renew(core->replica, NULL, NULL);
	store_replica_end(core->replica);
}

/* A view that does not change keeps the log from beginning anew, or the database from being written. */
static int renew_in_view(struct copier *copier)
{
	uint32_t group = 0;
	int result = db_begin_read(copier->db);

	if (result)
		return result;
	result = db_group_next(copier->db, &group);
	if (!result || result == -ENOENT || result == -EIO)
		store_replica_renew(copier->core->replica, is_copier_stopped, copier);
	db_end_read(copier->db);
	return 0;
}

/* Wait until there is something to do. False: stop. */
static bool wait_for_copying(struct copier *copier, uint64_t due)
{
	bool go;

	pthread_mutex_lock(&copier->lock);
	while (!copier->stop && !copier->full &&
	       monotonic_ns() < (copier->shipped ? due : due + IDLE_NS))
		monotonic_wait(&copier->work, &copier->lock,
			       copier->shipped ? due : due + IDLE_NS);
	go = !copier->stop;
	copier->full = copier->shipped = false;
	pthread_mutex_unlock(&copier->lock);
	return go;
}

static void *run_copier(void *arg)
{
	struct copier *copier = arg;
	struct store_replica *replica = copier->core->replica;
	uint64_t renew_ns = 0, due = 0;

	do {
		if (monotonic_ns() >= renew_ns && may_renew(copier->core)) {
			renew_in_view(copier);
			renew_ns = monotonic_ns() + RENEW_NS;
		}
		store_replica_settle(replica);
		drop_full_copy(copier->core);
		store_replica_verify(replica, false);
		due = monotonic_ns() + SETTLE_NS;
	} while (wait_for_copying(copier, due));
	return NULL;
}

void copying_ship(struct core *core)
{
	struct copier *copier = core->copier;
	struct store_replica_view view;

	if (!copier)
		return;
	store_replica_ship(core->replica);
	store_replica_look(core->replica, &view);
	pthread_mutex_lock(&copier->lock);
	copier->shipped = true;
	copier->full |= view.busy;
	pthread_cond_signal(&copier->work);
	pthread_mutex_unlock(&copier->lock);
}

bool copying_is_behind(struct core *core, uint64_t *rest)
{
	struct store_replica_view view = {0};

	if (core->copier)
		store_replica_look(core->replica, &view);
	*rest = view.rest;
	return view.busy;
}

int copying_start(struct core *core)
{
	struct db_options options = {.path = "meta/db",
				     .vfs = store_vfs_name(core->vfs),
				     .read_only = true,
				     .cache_kib = 64,
				     .vfs_errno = store_vfs_errno,
				     .report = &core->report};
	struct copier *copier;
	int result;

	if (!core->replica)
		return 0;
	copier = calloc(1, sizeof(*copier));
	if (!copier)
		return -ENOMEM;
	copier->core = core;
	pthread_mutex_init(&copier->lock, NULL);
	monotonic_cond_init(&copier->work);
	core->copier = copier;
	result = db_open(&options, &copier->db);
	if (!result)
		result = -pthread_create(&copier->thread, NULL, run_copier, copier);
	copier->started = !result;
	return result;
}

void copying_stop(struct core *core)
{
	struct copier *copier = core->copier;

	if (!copier)
		return;
	if (copier->started) {
		pthread_mutex_lock(&copier->lock);
		copier->stop = true;
		pthread_cond_signal(&copier->work);
		pthread_mutex_unlock(&copier->lock);
		pthread_join(copier->thread, NULL);
	}
	db_close(copier->db);
	pthread_mutex_destroy(&copier->lock);
	pthread_cond_destroy(&copier->work);
	free(copier);
	core->copier = NULL;
}

uint64_t copying_age_ms(struct core *core)
{
	struct store_replica_view view = {0};

	if (core->replica)
		store_replica_look(core->replica, &view);
	return view.ns ? (monotonic_ns() - view.ns) / NS_PER_MS : UINT64_MAX;
}

/* -- repairs before the store is opened -- */

/* The first page says how long the database is. */
static bool is_database_short(struct core *core)
{
	uint8_t page[STORE_DB_PAGE];
	struct store_pageset *set;
	bool bad;

	if (store_pageset_open(core->layer, "meta", &set))
		return true;
	bad = store_pageset_read(set, 1, page) || !store_pageset_is_whole(set) ||
	      store_pageset_pages(set) < store_pageset_length(page);
	store_pageset_close(set);
	return bad;
}

/* A database that is empty or missing beside a log gets its first page from there. *headless: that has none either. */
static int put_first_page(struct core *core, bool *headless)
{
	uint8_t page[STORE_DB_PAGE];
	const struct iovec iov = {page, sizeof(page)};
	const struct store_layer_ops *ops = core->layer->ops;
	struct store_pageset *set;
	struct store_file *file = NULL;
	int result = store_pageset_open(core->layer, "meta", &set);
	ssize_t n;

	*headless = !result && store_pageset_is_headless(set);
	if (*headless)
		result = store_pageset_read(set, 1, page);
	store_pageset_close(set);
	if (result || !*headless)
		return result == -ENOMEM ? result : 0;
	put32(page + STORE_DB_PAGE - STORE_DB_SPARE, store_page_sum(1, page));
	result = ops->open(core->layer, "meta/db", STORE_OPEN_WRITE | STORE_OPEN_CREATE, &file);
	if (result)
		return result;
	n = ops->pwritev(file, &iov, 1, 0);
	result = n < 0 ? (int)n : ops->sync(file);
	ops->close(file);
	*headless = result != 0;
	return result ? result : ops->sync_dir(core->layer, "meta");
}

int copying_repair(struct core *core)
{
	enum store_relation relation;
	uint32_t repaired, left;
	int result = store_replica_compare(core->copy_layer, core->layer, &relation);

	if (!result && relation != STORE_COPY_SAME)
		result = relation == STORE_COPY_OLDER ? -ESTALE : -ENOENT;
	if (result == -ESTALE && store_replica_is_all(core->copy_layer, core->layer, core->uuid)) {
		result = core->layer->ops->mkdir(core->layer, "meta");
		result = result == -EEXIST ? 0 : result;
	}
	if (result)
		return result;
	result = store_replica_repair(core->copy_layer, core->layer, &repaired, &left);
	if (result)
		return result;
	if (repaired)
		report_line(
			&core->report, REPORT_WARNING,
			"%s: pages of the metadata were damaged or missing, and were repaired from the copy: %u; look "
			"at the disk",
			core->name, (unsigned)repaired);
	core->unrepaired = left;
	if (!left)
		core->layer->ops->unlink(core->layer, "meta/" STORE_DAMAGED);
	return 0;
}

/* What the copy has is what the database has, although files that prove it are lost. *bad: damaged pages. */
static bool is_copy_like(struct core *core, uint32_t *bad)
{
	struct store_pageset *set = NULL, *copy = NULL;
	bool like = !store_pageset_open(core->layer, "meta", &set) &&
		    !store_pageset_open(core->copy_layer, STORE_COPY, &copy) &&
		    store_pageset_is_like(set, copy, bad);

	store_pageset_close(set);
	store_pageset_close(copy);
	return like;
}

static bool has_copy_database(struct store_layer *layer)
{
	return store_layer_has(layer, STORE_COPY "/db");
}

/* Without any, the copy of this store may be in a directory that the caller has not named. */
static bool has_copy_traces(struct store_layer *layer)
{
	return store_layer_has(layer, STORE_COPY "/FORMAT") ||
	       store_layer_has(layer, STORE_COPY "/state");
}

/* The files are lost that tell how the copy is related to the database. Without FORMAT, this start does not follow it. */
static bool is_proof_lost(struct core *core)
{
	if (core->unformatted)
		return true;
	return has_copy_database(core->copy_layer) &&
	       (!store_layer_has(core->copy_layer, STORE_COPY "/state") ||
		!store_layer_has(core->layer, "meta/mark"));
}

bool copying_may_remake(struct core *core, struct store_layer **copy)
{
	struct store_log_state log;
	enum store_relation relation;
	uint32_t bad;

	*copy = core->copy_layer;
	/* The disk of the copy may come back. */
	if (core->copy_absent || (!core->copy_layer && has_copy_database(core->layer)))
		return false;
	if (!core->copy_layer)
		return true;
	if (!has_copy_database(core->copy_layer)) {
		*copy = NULL;
		return core->copy_layer == core->layer && has_copy_traces(core->layer);
	}
	return (!store_replica_compare(core->copy_layer, core->layer, &relation) &&
		relation == STORE_COPY_SAME) ||
	       (!store_replica_judge_log(core->copy_layer, core->layer, &log) && log.based) ||
	       is_copy_like(core, &bad);
}

/* Whether the database cannot be repaired page by page, but a new one has more. */
static bool is_better_remade(struct core *core, int repaired)
{
	struct store_pageset *set;
	uint32_t bad;
	bool hides = false;

	if (repaired)
		return has_copy_database(core->copy_layer) && is_copy_like(core, &bad) && bad;
	if (store_pageset_open(core->layer, "meta", &set))
		return false;
	if (db_carve_hides(set, &hides))
		hides = false;
	store_pageset_close(set);
	return hides;
}

static void report_log_state(struct core *core, const struct store_log_state *log)
{
	const char *taken = log->better ? ", and what the copy has of it was taken from there" : "";
	char time[32];

	report_time(time, log->until);
	if (!log->lost)
		report_line(
			&core->report, REPORT_WARNING,
			"%s: the log of the metadata was damaged, and was repaired from the copy: look at "
			"the disk",
			core->name);
	else if (log->blank)
		report_line(
			&core->report, REPORT_ERROR,
			"%s: the log of the metadata and its mark are missing: if the server did not end regularly, changes "
			"of its last seconds or minutes are lost; run rxvol check, and look at the disk",
			core->name);
	else if (log->until)
		report_line(
			&core->report, REPORT_ERROR,
			"%s: the log of the metadata or its mark is damaged or missing%s: changes before the last stop, "
			"after %s, may be lost",
			core->name, taken, time);
	else
		report_line(
			&core->report, REPORT_ERROR,
			"%s: the log of the metadata or its mark is damaged or missing%s: the last changes before the "
			"last stop are lost; run rxvol check",
			core->name, taken);
}

/* What the copy has is taken, so a copy that is away must come back first. */
static int mend_log(struct core *core, struct store_log_state *log)
{
	int result = store_replica_mend_log(core->copy_layer, core->layer, log);

	if (result == -ENOMEM || !log->damaged)
		return result == -ENOMEM ? result : 0;
	if (core->copy_absent && log->lost) {
		core->unreadable = true;
		return -EIO;
	}
	return 0;
}

int copying_check(struct core *core, struct store_log_state *log)
{
	bool headless;
	uint32_t bad;
	int result = mend_log(core, log);

	if (!result)
		result = put_first_page(core, &headless);
	if (result)
		return result;
	/* Nothing tells how the copy is related to the database. If this start went on, the copy would be made anew. */
	if (log->bare && has_copy_database(core->copy_layer) && !is_copy_like(core, &bad)) {
		core->unreadable = true;
		core->repaired = -ESTALE;
		return -EIO;
	}
	if (log->damaged && !headless)
		report_log_state(core, log);
	if (!core->copy_layer)
		return headless ? -EUCLEAN : 0;
	if (log->based)
		return -EUCLEAN;
	if (!is_noted(core) && !is_database_short(core) && !is_proof_lost(core))
		return 0;
	result = copying_repair(core);
	if (result == -ESTALE && !headless && is_noted(core))
		report_line(
			&core->report, REPORT_ERROR,
			"%s: damaged pages of the metadata stay as they are, because the copy may lack "
			"changes: restore the files that cannot be read, or make a new store with rxvol rescue",
			core->name);
	if (result && headless)
		core->repaired = result;
	return (result && headless) || is_better_remade(core, result) ? -EUCLEAN : 0;
}

void copying_make_room(struct core *core)
{
	/* Without its state a copy is not used. */
	static const char *const names[] = {"/state", "/db-wal", "/db.new", "/db"};
	const struct store_layer_ops *ops = core->layer->ops;
	uint64_t available, total;
	char path[32];

	if (!core->copy_shares || is_noted(core) || ops->space(core->layer, &available, &total) ||
	    available >= OPEN_BYTES)
		return;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), STORE_COPY "%s", names[i]);
		core->copy_layer->ops->unlink(core->copy_layer, path);
	}
	report_line(
		&core->report, REPORT_WARNING,
		"%s: the disk is full: the copy of the metadata was removed, and is made again when there is room",
		core->name);
}
