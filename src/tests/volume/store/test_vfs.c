/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests of SQLite on a store_layer: a process that is killed loses no commit; a machine that restarts
 * loses at most the last ones, never something between, and never what a row refers to.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sqlite3.h>

#include "tests/main.h"
#include "tests/volume/store/crashdisk.h"
#include "tests/volume/store/spy.h"
#include "volume/store/disk/wal.h"

#define ROWS 60
#define LONG 900000 /* bytes of a log; it then has room for so many rows */

/* A program that commits rows 1, 2, ...; row N refers to the file "f/N". */
struct run {
	struct crashdisk *disk;
	struct store_layer *layer;
	struct store_vfs *vfs;
	sqlite3 *db;
	bool strict;
	int unflushed; /* files from this one on are not flushed */
	int next;      /* the next row */
	int committed; /* the last row whose commit was acknowledged */
	int flushed;   /* the last row known to be on stable storage */
};

static int sync_file(struct run *run, int number)
{
	struct store_file *file;
	char path[32];
	int rc;

	snprintf(path, sizeof(path), "f/%d", number);
	rc = run->layer->ops->open(run->layer, path, STORE_OPEN_WRITE, &file);
	if (rc)
		return rc;
	rc = run->layer->ops->sync(file);
	run->layer->ops->close(file);
	return rc;
}

static int sync_files(void *arg)
{
	struct run *run = arg;
	int rc = 0;

	for (; !rc && run->unflushed < run->next; run->unflushed++)
		rc = sync_file(run, run->unflushed);
	return rc ? rc : run->layer->ops->sync_dir(run->layer, "f");
}

static int execute(struct run *run, const char *sql)
{
	return sqlite3_exec(run->db, sql, NULL, NULL, NULL);
}

static int row_of(void *arg, int columns, char **value, char **name)
{
	(void)columns, (void)name;
	*(int *)arg = value[0] ? atoi(value[0]) : 0;
	return 0;
}

static int number(struct run *run, const char *sql)
{
	int value = -1;

	ck_assert_msg(sqlite3_exec(run->db, sql, row_of, &value, NULL) == SQLITE_OK, "%s: %s", sql,
		      sqlite3_errmsg(run->db));
	return value;
}

/* Connect; true, or false if the disk stopped meanwhile. */
static bool start_on(struct run *run, enum store_past *past)
{
	int spare = STORE_DB_SPARE;

	run->db = NULL;
	ck_assert_int_eq(store_vfs_create(run->layer, sync_files, run, &run->vfs), 0);
	if (store_vfs_recover(run->vfs, past) ||
	    sqlite3_open_v2("meta/db", &run->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
			    store_vfs_name(run->vfs)) ||
	    sqlite3_file_control(run->db, "main", SQLITE_FCNTL_RESERVE_BYTES, &spare) ||
	    execute(run, run->strict ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL") ||
	    execute(run, "PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0; "
			 "PRAGMA cache_size=-16; PRAGMA temp_store=MEMORY"))
		return false;
	return store_vfs_begin(run->vfs, run->strict) == 0;
}

static bool start(struct run *run, enum store_past *past)
{
	run->layer = crashdisk_layer(run->disk);
	return start_on(run, past);
}

static void end(struct run *run)
{
	sqlite3_close(run->db);
	store_vfs_destroy(run->vfs);
	run->layer->ops->destroy(run->layer);
}

static int write_file(struct run *run, int number)
{
	char path[32], text[64];
	const struct iovec iov = {text, sizeof(text)};
	struct store_file *file;
	ssize_t n;
	int rc;

	snprintf(path, sizeof(path), "f/%d", number);
	memset(text, 0, sizeof(text));
	snprintf(text, sizeof(text), "contents of %d", number);
	rc = run->layer->ops->open(run->layer, path, STORE_OPEN_WRITE | STORE_OPEN_CREATE, &file);
	if (rc)
		return rc;
	n = run->layer->ops->pwritev(file, &iov, 1, 0);
	run->layer->ops->close(file);
	return n < 0 ? (int)n : 0;
}

static bool file_is_whole(struct run *run, int number)
{
	char path[32], text[64] = "", want[64];
	const struct iovec iov = {text, sizeof(text)};
	struct store_file *file;

	snprintf(path, sizeof(path), "f/%d", number);
	if (run->layer->ops->open(run->layer, path, 0, &file))
		return false;
	run->layer->ops->preadv(file, &iov, 1, 0, false);
	run->layer->ops->close(file);
	memset(want, 0, sizeof(want));
	snprintf(want, sizeof(want), "contents of %d", number);
	return memcmp(text, want, sizeof(text)) == 0;
}

/* One row of some size in one commit, after its file. */
static bool add_row(struct run *run, uint64_t *random)
{
	char sql[160];

	run->next++;
	if (write_file(run, run->next - 1) || (run->strict && sync_files(run)))
		return false;
	snprintf(sql, sizeof(sql),
		 "BEGIN IMMEDIATE; INSERT INTO t VALUES(%d, zeroblob(%d)); "
		 "UPDATE n SET last=%d; COMMIT",
		 run->next - 1, (int)(crashdisk_random(random) % 9000), run->next - 1);
	if (execute(run, sql))
		return false;
	run->committed = run->next - 1;
	if (run->strict)
		run->flushed = run->committed;
	return true;
}

/* The log starts again at the next commit. Until then a copy of the log may have all of it. */
static bool empty_log(struct run *run)
{
	struct store_place place;
	int frames, moved;

	if (sqlite3_wal_checkpoint_v2(run->db, NULL, SQLITE_CHECKPOINT_PASSIVE, &frames, &moved))
		return false;
	run->flushed = run->committed;
	ck_assert_int_eq(frames, moved);
	if (store_vfs_emptied(run->vfs))
		return false;
	store_wal_marked(store_vfs_wal(run->vfs), &place);
	ck_assert_uint_eq(place.flushed_end, place.end);
	return true;
}

/* Flush, or check the log into the database, now and then. */
static bool tend(struct run *run, uint64_t *random)
{
	switch (crashdisk_random(random) % 8) {
	case 0:
		if (store_vfs_mark(run->vfs))
			return false;
		run->flushed = run->committed;
		return true;
	case 1:
		if (sqlite3_wal_checkpoint_v2(run->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL))
			return false;
		run->flushed = run->committed;
		return true;
	case 2:
		return sqlite3_wal_checkpoint_v2(run->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL,
						 NULL) == SQLITE_OK;
	case 3:
		return empty_log(run);
	default:
		return true;
	}
}

static void make(struct run *run)
{
	enum store_past past;

	run->disk = crashdisk_new();
	run->layer = crashdisk_layer(run->disk);
	ck_assert_int_eq(run->layer->ops->mkdir(run->layer, "meta"), 0);
	ck_assert_int_eq(run->layer->ops->mkdir(run->layer, "f"), 0);
	ck_assert_int_eq(run->layer->ops->sync_all(run->layer), 0);
	run->layer->ops->destroy(run->layer);
	run->next = run->unflushed = 1;
	ck_assert(start(run, &past));
	ck_assert_int_eq(past, STORE_PAST_CLOSED);
	ck_assert_int_eq(execute(run, "CREATE TABLE t(n INTEGER PRIMARY KEY, data BLOB); "
				      "CREATE TABLE n(last INTEGER); INSERT INTO n VALUES(0)"),
			 SQLITE_OK);
	ck_assert_int_eq(store_vfs_mark(run->vfs), 0);
}

static void work(struct run *run, uint64_t *random)
{
	while (run->next <= ROWS && add_row(run, random) && tend(run, random))
		;
}

/* The rows are a prefix that reaches `least`, and their files are whole. */
static void verify(struct run *run, int least, const char *what, uint64_t call)
{
	int last = number(run, "SELECT last FROM n");
	int rows = number(run, "SELECT COUNT(*) FROM t");

	ck_assert_int_eq(number(run, "SELECT COUNT(*) FROM pragma_integrity_check "
				     "WHERE integrity_check<>'ok'"),
			 0);
	ck_assert_int_eq(rows, last);
	ck_assert_msg(last >= least, "%s at call %llu: %d rows, of which %d were safe", what,
		      (unsigned long long)call, last, least);
	for (int i = 1; i <= last; i++)
		ck_assert_msg(file_is_whole(run, i), "%s at call %llu: file of row %d", what,
			      (unsigned long long)call, i);
}

/* Stop at a call, kill or crash, and look. Then go on, once more. */
static void one(bool strict, bool crash, uint64_t seed)
{
	struct run run = {.strict = strict};
	uint64_t random = seed, call;
	enum store_past past;

	make(&run);
	for (int life = 0; life < 3; life++) {
		call = crashdisk_calls(run.disk) + crashdisk_random(&random) % 300;
		crashdisk_stop_at(run.disk, call, crashdisk_random(&random));
		work(&run, &random);
		end(&run);
		if (crash)
			crashdisk_crashed(run.disk, crashdisk_random_keep(&random),
					  crashdisk_random(&random) % 2, crashdisk_random(&random));
		else
			crashdisk_killed(run.disk);
		ck_assert(start(&run, &past));
		verify(&run, crash ? run.flushed : run.committed, crash ? "crash" : "kill", call);
		/* Files of a killed process are flushed before the mark moves again. */
		ck_assert_int_eq(run.layer->ops->sync_all(run.layer), 0);
		run.committed = number(&run, "SELECT last FROM n");
		run.next = run.unflushed = run.committed + 1;
		if (crash)
			run.flushed = run.committed;
	}
	end(&run);
	crashdisk_free(run.disk);
}

static void many(bool strict, bool crash)
{
	for (uint64_t seed = 1; seed <= 500; seed++)
		one(strict, crash, seed);
}

START_TEST(lazy_killed)
{
	many(false, false);
}
END_TEST

START_TEST(lazy_crashed)
{
	many(false, true);
}
END_TEST

START_TEST(strict_killed)
{
	many(true, false);
}
END_TEST

START_TEST(strict_crashed)
{
	many(true, true);
	one(true, true, 2666); /* the cut of the log was lost, and its beginning overwritten */
}
END_TEST

/* After a close, another boot changes nothing. */
START_TEST(closed)
{
	struct run run = {.strict = false};
	uint64_t random = 7;
	enum store_past past;

	make(&run);
	work(&run, &random);
	ck_assert_int_eq(store_vfs_mark(run.vfs), 0);
	ck_assert_int_eq(store_vfs_end(run.vfs), 0);
	end(&run);
	crashdisk_crashed(run.disk, 0, false, 1);
	ck_assert(start(&run, &past));
	ck_assert_int_eq(past, STORE_PAST_CLOSED);
	verify(&run, ROWS, "close", 0);
	end(&run);
	crashdisk_free(run.disk);
}
END_TEST

/* Changes acknowledged in strict mode are safe even if the next process is in lazy mode and idle. */
START_TEST(strict_then_lazy)
{
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct run run = {.strict = true};
		uint64_t random = seed;
		enum store_past past;

		make(&run);
		crashdisk_stop_at(run.disk, crashdisk_calls(run.disk) + 100 + 10 * seed, seed);
		work(&run, &random);
		end(&run);
		crashdisk_killed(run.disk);
		run.strict = false;
		ck_assert(start(&run, &past));
		ck_assert_int_eq(past, STORE_PAST_KILLED);
		crashdisk_stop_at(run.disk, 0, 0);
		end(&run);
		crashdisk_crashed(run.disk, crashdisk_random_keep(&random), seed % 2, seed);
		ck_assert(start(&run, &past));
		verify(&run, run.flushed, "strict, then lazy", seed);
		end(&run);
		crashdisk_free(run.disk);
	}
}
END_TEST

static uint64_t log_length(struct spy *spy)
{
	struct store_file *file;
	uint64_t length;

	ck_assert_int_eq(spy->layer.ops->open(&spy->layer, "meta/db-wal", 0, &file), 0);
	ck_assert_int_eq(spy->layer.ops->size(file, &length), 0);
	spy->layer.ops->close(file);
	return length;
}

/* A mark that could not be written is written by the next attempt, even if there was no commit meanwhile. */
START_TEST(failed_mark)
{
	bool failed = true;

	for (uint64_t call = 0; failed; call++) {
		struct run run = {.strict = false};
		uint64_t random = 1;
		enum store_past past;

		make(&run);
		ck_assert(add_row(&run, &random));
		crashdisk_fail_at(run.disk, crashdisk_calls(run.disk) + call, 0, EIO);
		failed = store_vfs_mark(run.vfs) != 0;
		crashdisk_fail_at(run.disk, UINT64_MAX, 0, EIO);
		run.unflushed = 1;
		ck_assert_int_eq(store_vfs_mark(run.vfs), 0);
		crashdisk_stop_at(run.disk, 0, 0);
		end(&run);
		crashdisk_crashed(run.disk, 0, false, 1);
		ck_assert(start(&run, &past));
		verify(&run, 1, "failed mark", call);
		end(&run);
		crashdisk_free(run.disk);
	}
}
END_TEST

/* A lazy commit flushes nothing, not even one that begins the log again. */
START_TEST(lazy_cost)
{
	struct spy *spy = spy_new();
	struct run run = {.layer = &spy->layer};

	ck_assert_int_eq(run.layer->ops->mkdir(run.layer, "meta"), 0);
	ck_assert_int_eq(run.layer->ops->mkdir(run.layer, "f"), 0);
	ck_assert(start_on(&run, &(enum store_past){0}));
	ck_assert_int_eq(execute(&run, "CREATE TABLE t (n INTEGER PRIMARY KEY)"), SQLITE_OK);
	for (int i = 0; i < ROWS; i++) {
		uint64_t length = log_length(spy);

		ck_assert(empty_log(&run));
		spy_reset(spy);
		ck_assert_int_eq(execute(&run, "INSERT INTO t DEFAULT VALUES"), SQLITE_OK);
		ck_assert_uint_eq(spy->syncs + spy->dir_syncs, 0);
		/* It has begun again. */
		ck_assert_uint_eq(log_length(spy), length);
		/* The log and the mark, once. */
		ck_assert_int_eq(store_vfs_mark(run.vfs), 0);
		ck_assert_uint_eq(spy->syncs, 2);
		ck_assert_int_eq(store_vfs_mark(run.vfs), 0);
		ck_assert_uint_eq(spy->syncs, 2);
	}
	ck_assert_int_eq(sqlite3_close(run.db), SQLITE_OK);
	store_vfs_destroy(run.vfs);
	spy_free(spy);
}
END_TEST

/* A strict commit is one flush of a log whose length stays. */
START_TEST(strict_cost)
{
	struct spy *spy = spy_new();
	struct run run = {.strict = true, .layer = &spy->layer};
	uint64_t length;

	ck_assert_int_eq(run.layer->ops->mkdir(run.layer, "meta"), 0);
	ck_assert_int_eq(run.layer->ops->mkdir(run.layer, "f"), 0);
	ck_assert(start_on(&run, &(enum store_past){0}));
	ck_assert_int_eq(execute(&run, "CREATE TABLE t (n INTEGER PRIMARY KEY)"), SQLITE_OK);
	do /* a short log is often made longer */
		ck_assert_int_eq(execute(&run, "INSERT INTO t DEFAULT VALUES"), SQLITE_OK);
	while ((length = log_length(spy)) < LONG);
	spy_reset(spy);
	for (int i = 0; i < ROWS; i++)
		ck_assert_int_eq(execute(&run, "INSERT INTO t DEFAULT VALUES"), SQLITE_OK);
	ck_assert_uint_eq(spy->syncs, ROWS);
	for (unsigned i = 0; i < spy->dir_syncs; i++) /* sync_files() flushes "f" */
		ck_assert_str_ne(spy->synced_dir[i], "meta");
	ck_assert_uint_eq(log_length(spy), length);
	ck_assert_int_eq(sqlite3_close(run.db), SQLITE_OK);
	store_vfs_destroy(run.vfs);
	spy_free(spy);
}
END_TEST

TEST_MAIN_WITHIN(60, "vfs", lazy_killed, lazy_crashed, strict_killed, strict_crashed, strict_cost,
		 strict_then_lazy, failed_mark, lazy_cost, closed)
