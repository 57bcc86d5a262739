/* SPDX-License-Identifier: BSD-2-Clause */
/* Strict mode: a commit never refers to an object whose bytes or name could not be flushed. */
#include <errno.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The order of the operations in a transaction is to be told, so the parts of write_commit() are called. */
#include "volume/store/op/write.c"
#include "tests/main.h"
#include "tests/volume/store/diskstore.h"
#include "tests/volume/store/spy.h"
#include "tests/volume/store/state.h"
#include "tests/volume/store/store_fixture.h"
#include "volume/store/disk/wal.h"
#include "volume/store/maint/maint.h"
#include "volume/store/upkeep.h"

#define LENGTH 20000 /* of a file that is no small one */

static struct spy *spy;

/* An operation that is submitted, so that the order of the queue is that of the calls. */
struct step {
	struct txn_op txn;
	struct store_later later;
	sem_t begun, go, ended;
};

static bool may_leave(struct store_later *later)
{
	(void)later;
	return true;
}

static void post_ended(struct store_later *list)
{
	for (struct store_later *next; list; list = next) {
		struct step *step = (struct step *)((char *)list - offsetof(struct step, later));

		next = list->next;
		sem_post(&step->ended);
	}
}

static void end_step(struct txn_op *op)
{
	op->later->result = op->result;
}

static void init_step(struct step *step, int (*apply)(struct txn_op *op, struct work *work))
{
	memset(step, 0, sizeof(*step));
	step->txn.apply = apply;
	step->txn.later = &step->later;
	step->txn.end = end_step;
	step->later.leave = may_leave;
	step->later.done = post_ended;
	sem_init(&step->begun, 0, 0);
	sem_init(&step->go, 0, 0);
	sem_init(&step->ended, 0, 0);
}

/* Keeps the thread that commits busy, while operations of the next transaction are submitted. */
static int apply_wait(struct txn_op *op, struct work *work)
{
	struct step *step = (struct step *)op;

	(void)work;
	sem_post(&step->begun);
	sem_wait(&step->go);
	return 0;
}

/* A flush for somebody else fails, after the operations in front have looked at their runs. Once. */
static int apply_failing_flush(struct txn_op *op, struct work *work)
{
	struct step *step = (struct step *)op;

	(void)work;
	if (!sem_trywait(&step->begun))
		return 0;
	sem_post(&step->begun);
	spy->fail_sync_dir = -EIO;
	ck_assert_int_eq(store_data_sync(core_of(store)->data), -EIO);
	spy->fail_sync_dir = 0;
	return 0;
}

static struct store_writer *begin_writer(const struct store_fid *fid, struct step *step)
{
	static const uint8_t bytes[LENGTH];
	struct iovec iov = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = LENGTH};
	struct store_caller caller = admin;
	struct store_writer *writer;

	caller.later = &step->later;
	ck_assert_int_eq(
		store->ops->write_begin(store, &caller, fid, &nothing, 0, LENGTH, LENGTH, &writer),
		0);
	ck_assert_int_eq(store->ops->write(writer, &iov, 1), 0);
	/* The bytes are flushed here, the name by the commit. */
	ck_assert_int_eq(finish_piece(writer, &writer->main, &no_base), 0);
	writer->finished = true;
	return writer;
}

/* The flush of the commit itself finds nothing to do: another one took the object, and failed. */
START_TEST(name_lost_before_commit)
{
	struct step wait, write, flush;
	struct store_writer *writer;
	struct store_fid fid;
	struct txn *txn;

	fixture_open(STORE_STRICT);
	fixture_close();
	spy = spy_on(fixture_path());
	fixture_layer(&spy->layer);
	fixture_open_again();
	txn = core_of(store)->txn;
	fid = make(&root, "f", STORE_FILE);
	init_step(&wait, apply_wait);
	wait.txn.alone = true;
	init_step(&write, NULL);
	init_step(&flush, apply_failing_flush);
	writer = begin_writer(&fid, &write);
	ck_assert(txn_may_submit(txn));
	txn_submit(txn, &wait.txn);
	sem_wait(&wait.begun);
	ck_assert_int_eq(submit_writer(writer, &status, &changes), STORE_LATER);
	txn_submit(txn, &flush.txn);
	sem_post(&wait.go);
	sem_wait(&write.ended);
	sem_wait(&flush.ended);
	/* A power failure would have lost the file otherwise. */
	ck_assert_int_eq(write.later.result, -EIO);
	/* Others go on, and a new attempt has a new object. */
	ck_assert_int_eq(try_write(&admin, &fid, 0, "text", 4, LENGTH), 0);
	ck_assert_int_eq(fixture_check(), 0);
	fixture_close();
	spy_free(spy);
	fixture_layer(NULL);
	fixture_open_again();
	ck_assert_int_eq(byte_at(&fid, 0), 't');
}
END_TEST

/* -- the copy of the metadata -- */

#define FILES 20

static enum store_durability durability;
static bool without_copy;
static char told[2000];

static void take_log_line(void *arg, int level, const char *line)
{
	(void)arg, (void)level;
	snprintf(told + strlen(told), sizeof(told) - strlen(told), "%s\n", line);
}

static struct store *open_with_copy(struct crashdisk *disk, struct store_layer **layer)
{
	struct store_options options = {.path = "disk",
					.durability = durability,
					.no_reserve = true,
					.scrub_kib = STORE_SCRUB_NEVER,
					.log = take_log_line};
	struct store *opened = NULL;

	told[0] = '\0';
	options.layer = *layer = crashdisk_layer(disk);
	options.copy_layer = without_copy ? NULL : *layer;
	ck_assert_msg(store_open(&options, &opened, message) == 0, "%s", message);
	do {
		usleep(1000);
		store_stats(opened, &stats);
	} while (!without_copy && stats.copy_age_ms == UINT64_MAX);
	return opened;
}

static void write_file(struct store *opened, unsigned i, uint32_t seed, int want)
{
	char name[16];

	snprintf(name, sizeof(name), "f%u", i);
	ck_assert_int_eq(state_write(opened, volume, name, 0, 3000 + 100 * i, 0, seed), want);
}

static void write_named_file(struct store *opened, unsigned i)
{
	char name[16];

	snprintf(name, sizeof(name), "f%u", i);
	ck_assert_int_eq(state_create(opened, volume, name, STORE_FILE, NULL), 0);
	write_file(opened, i, 1, 0);
}

/* The first bytes of a file. */
static uint8_t *read_first_bytes(struct store_layer *layer, const char *name, uint64_t length)
{
	uint8_t *bytes = calloc(1, length + 1);
	const struct iovec iov = {bytes, length};
	struct store_file *file;

	ck_assert_int_eq(layer->ops->open(layer, name, 0, &file), 0);
	ck_assert_int_eq(layer->ops->preadv(file, &iov, 1, 0, false), (ssize_t)length);
	layer->ops->close(file);
	return bytes;
}

/* The transactions of a log that is read as that of a store without a mark. */
static struct store_place find_place(struct store_layer *layer, const char *log)
{
	struct store_place place;
	struct store_wal *wal;
	enum store_past past;

	ck_assert_int_eq(store_wal_create(layer, "meta/none", log, NULL, NULL, &wal), 0);
	ck_assert_int_eq(store_wal_recover(wal, &past), 0);
	store_wal_place(wal, &place);
	store_wal_destroy(wal);
	return place;
}

/* Wait until both logs have the same transactions. */
static void await_same_logs(struct store_layer *layer)
{
	struct store_place main = find_place(layer, "meta/db-wal"), copy;
	uint8_t *a, *b;

	do {
		usleep(1000);
		copy = find_place(layer, "copy/db-wal");
	} while (copy.salt != main.salt || copy.end != main.end);
	a = read_first_bytes(layer, "meta/db-wal", main.end);
	b = read_first_bytes(layer, "copy/db-wal", main.end);
	ck_assert_mem_eq(a, b, main.end);
	free(a);
	free(b);
}

static void expect_same_databases(struct crashdisk *disk)
{
	struct store_layer *layer = crashdisk_layer(disk);
	uint64_t length = crashdisk_length(disk, "meta/db");
	uint8_t *a, *b;

	ck_assert_uint_eq(crashdisk_length(disk, "copy/db"), length);
	a = read_first_bytes(layer, "meta/db", length);
	b = read_first_bytes(layer, "copy/db", length);
	ck_assert_mem_eq(a, b, length);
	free(a);
	free(b);
	layer->ops->destroy(layer);
}

/*
 * The flush of a commit fails, so SQLite overwrites it in the log, or leaves it behind the end: the copy does not have it. With
 * a flush of the log that succeeds before that, and without another commit.
 */
START_TEST(copy_without_failed_commit)
{
	struct crashdisk *disk = crashdisk_new();
	struct store_options options = {.path = "disk", .layer = crashdisk_layer(disk)};
	const struct store_new_volume new = {.name = "v"};
	struct store_layer *layer;
	struct store *opened;

	ck_assert_int_eq(store_make(&options, message), 0);
	options.layer->ops->destroy(options.layer);
	opened = open_with_copy(disk, &layer);
	ck_assert_int_eq(store_volume_create(opened, &new, &volume), 0);
	for (unsigned i = 0; i < FILES; i++)
		write_named_file(opened, i);
	await_same_logs(layer);
	crashdisk_lose(disk, "meta/db-wal", 1, false);
	write_file(opened, 5, 2, -EIO);
	ck_assert_uint_eq(crashdisk_lost(disk), 1);
	if (_i == 1)
		ck_assert_int_eq(store_flush(opened), 0);
	copying_ship(core_of(opened));
	for (unsigned i = 0; i < FILES && _i < 2; i++)
		write_file(opened, i, 3, 0);
	if (_i < 2)
		await_same_logs(layer);
	/* The log is moved to both databases. */
	diskstore_close(opened, layer);
	opened = open_with_copy(disk, &layer);
	ck_assert_int_eq(diskstore_faults(opened, "failed commit"), 0);
	diskstore_close(opened, layer);
	crashdisk_killed(disk);
	expect_same_databases(disk);
	crashdisk_free(disk);
}
END_TEST

/* A file system or a disk loses the end of the log. The copy has it. */
START_TEST(shortened_log)
{
	struct crashdisk *disk = crashdisk_new();
	struct store_options options = {.path = "disk", .layer = crashdisk_layer(disk)};
	const struct store_new_volume new = {.name = "v"};
	struct store_layer *layer;
	struct store_file *log;
	struct store_fid fid;
	struct store *opened;
	uint64_t end;

	ck_assert_int_eq(store_make(&options, message), 0);
	options.layer->ops->destroy(options.layer);
	opened = open_with_copy(disk, &layer);
	ck_assert_int_eq(store_volume_create(opened, &new, &volume), 0);
	ck_assert_int_eq(state_create(opened, volume, "f0", STORE_FILE, NULL), 0);
	end = find_place(layer, "meta/db-wal").end;
	ck_assert_int_eq(state_create(opened, volume, "f1", STORE_FILE, NULL), 0);
	await_same_logs(layer);
	crashdisk_stop_at(disk, 0, 0);
	diskstore_close(opened, layer);
	crashdisk_killed(disk);
	layer = crashdisk_layer(disk);
	ck_assert_int_eq(layer->ops->open(layer, "meta/db-wal", STORE_OPEN_WRITE, &log), 0);
	ck_assert_int_eq(layer->ops->truncate(log, end + (unsigned)_i * 100), 0);
	layer->ops->close(log);
	layer->ops->destroy(layer);
	opened = open_with_copy(disk, &layer);
	ck_assert_int_eq(state_walk(opened, volume, "f1", &fid), 0);
	ck_assert_int_eq(diskstore_faults(opened, "shortened log"), 0);
	diskstore_close(opened, layer);
	crashdisk_free(disk);
}
END_TEST

/* -- a log that was damaged after the process was killed -- */

enum loss {
	LOSS_REMOVED,
	LOSS_EMPTIED,
	LOSS_NO_HEADER,
	LOSS_ONLY_HEADER,
	LOSS_LAST_FRAME,
	LOSSES
};

/* `copied`: the copy has the last file as well. */
static struct crashdisk *make_killed_store(bool copied)
{
	struct crashdisk *disk = crashdisk_new();
	struct store_options options = {.path = "disk", .layer = crashdisk_layer(disk)};
	const struct store_new_volume new = {.name = "v"};
	struct store_layer *layer;
	struct store *opened;

	ck_assert_int_eq(store_make(&options, message), 0);
	options.layer->ops->destroy(options.layer);
	opened = open_with_copy(disk, &layer);
	ck_assert_int_eq(store_volume_create(opened, &new, &volume), 0);
	ck_assert_int_eq(state_create(opened, volume, "f0", STORE_FILE, NULL), 0);
	ck_assert_int_eq(store_flush(opened), 0);
	if (!without_copy)
		await_same_logs(layer);
	ck_assert_int_eq(state_create(opened, volume, "f1", STORE_FILE, NULL), 0);
	if (copied) {
		ck_assert_int_eq(store_flush(opened), 0);
		await_same_logs(layer);
	}
	crashdisk_stop_at(disk, 0, 0);
	diskstore_close(opened, layer);
	crashdisk_killed(disk);
	crashdisk_stop_at(disk, UINT64_MAX, 0);
	return disk;
}

static void lose_end_of_log(struct crashdisk *disk, enum loss loss)
{
	struct store_layer *layer = crashdisk_layer(disk);
	const uint64_t length[LOSSES] = {0, 0, 20, 100,
					 find_place(layer, "meta/db-wal").end - STORE_DB_PAGE};
	struct store_file *log;

	if (loss == LOSS_REMOVED) {
		ck_assert_int_eq(layer->ops->unlink(layer, "meta/db-wal"), 0);
	} else {
		ck_assert_int_eq(layer->ops->open(layer, "meta/db-wal", STORE_OPEN_WRITE, &log), 0);
		ck_assert_int_eq(layer->ops->truncate(log, length[loss]), 0);
		layer->ops->close(log);
	}
	layer->ops->destroy(layer);
}

static bool has_name(struct store *opened, const char *name)
{
	struct store_fid fid;

	return !state_walk(opened, volume, name, &fid);
}

static void choose_durability(int i)
{
	durability = i < LOSSES ? STORE_STRICT : STORE_LAZY;
}

/* The copy has the rest: nothing is lost, and the line does not say so. */
START_TEST(rest_of_log_in_copy)
{
	struct store_layer *layer;
	struct crashdisk *disk;
	struct store *opened;

	choose_durability(_i);
	disk = make_killed_store(true);
	lose_end_of_log(disk, _i % LOSSES);
	opened = open_with_copy(disk, &layer);
	ck_assert(has_name(opened, "f0") && has_name(opened, "f1"));
	ck_assert_msg(strstr(told, "was repaired from the copy") != NULL, "%s", told);
	ck_assert_int_eq(diskstore_faults(opened, "rest in copy"), 0);
	diskstore_close(opened, layer);
	crashdisk_free(disk);
}
END_TEST

/* The copy lacks the last change, or there is none: never without a line. */
START_TEST(rest_of_log_lost)
{
	for (int copy = 0; copy < 2; copy++) {
		struct store_layer *layer;
		struct crashdisk *disk;
		struct store *opened;

		choose_durability(_i);
		without_copy = !copy;
		disk = make_killed_store(false);
		lose_end_of_log(disk, _i % LOSSES);
		opened = open_with_copy(disk, &layer);
		ck_assert(!has_name(opened, "f1"));
		ck_assert(!copy || has_name(opened, "f0"));
		ck_assert_msg(strstr(told, "may be lost") || strstr(told, "are lost"), "%s", told);
		diskstore_close(opened, layer);
		/* Once. */
		opened = open_with_copy(disk, &layer);
		ck_assert_msg(!strstr(told, "lost"), "%s", told);
		diskstore_close(opened, layer);
		crashdisk_free(disk);
	}
}
END_TEST

/* A process was killed before the copy had anything of its log. The copy still is what the database was when it began. */
START_TEST(copy_of_first_log)
{
	struct crashdisk *disk = crashdisk_new();
	struct store_options options = {.path = "disk", .layer = crashdisk_layer(disk)};
	const struct store_new_volume new = {.name = "v"};
	struct store_layer *layer;
	struct store_file *database;
	struct store *opened;

	durability = _i ? STORE_LAZY : STORE_STRICT;
	ck_assert_int_eq(store_make(&options, message), 0);
	options.layer->ops->destroy(options.layer);
	opened = open_with_copy(disk, &layer);
	ck_assert_int_eq(store_volume_create(opened, &new, &volume), 0);
	for (unsigned i = 0; i < FILES; i++)
		write_named_file(opened, i);
	diskstore_close(opened, layer);
	opened = open_with_copy(disk, &layer);
	ck_assert_int_eq(state_create(opened, volume, "last", STORE_FILE, NULL), 0);
	crashdisk_stop_at(disk, 0, 0);
	diskstore_close(opened, layer);
	crashdisk_killed(disk);
	crashdisk_stop_at(disk, UINT64_MAX, 0);
	layer = crashdisk_layer(disk);
	ck_assert_int_eq(layer->ops->open(layer, "meta/db", STORE_OPEN_WRITE, &database), 0);
	ck_assert_int_eq(layer->ops->truncate(database, 0), 0);
	layer->ops->close(database);
	layer->ops->destroy(layer);
	opened = open_with_copy(disk, &layer);
	ck_assert(has_name(opened, "last") && has_name(opened, "f0"));
	ck_assert_msg(strstr(told, "repaired from the copy") != NULL, "%s", told);
	ck_assert_int_eq(diskstore_faults(opened, "first log"), 0);
	diskstore_close(opened, layer);
	crashdisk_free(disk);
}
END_TEST

/* Between two commits. The keeper may be doing the same, or the copy still reads. */
static void move_log(struct core *core)
{
	unsigned left;
	int result;

	txn_pause(core->txn);
	do {
		result = db_checkpoint(core->writer, &left);
		ck_assert_msg(!result || result == -EBUSY, "%d", result);
	} while (result || left);
	txn_resume(core->txn);
}

static void move_whole_log(struct core *core)
{
	move_log(core);
	ck_assert_int_eq(store_vfs_emptied(core->vfs), 0);
}

/* All of the log is in the database. A part of it would hide newer pages. */
START_TEST(part_of_moved_log)
{
	struct crashdisk *disk = crashdisk_new();
	struct store_options options = {.path = "disk", .layer = crashdisk_layer(disk)};
	const struct store_new_volume new = {.name = "v"};
	struct store_layer *layer;
	struct store_file *log;
	struct store *opened;
	uint64_t end = 0;

	choose_durability(_i ? LOSSES : 0);
	without_copy = true;
	ck_assert_int_eq(store_make(&options, message), 0);
	options.layer->ops->destroy(options.layer);
	opened = open_with_copy(disk, &layer);
	ck_assert_int_eq(store_volume_create(opened, &new, &volume), 0);
	for (unsigned i = 0; i < FILES; i++) {
		write_named_file(opened, i);
		end = i == 1 ? find_place(layer, "meta/db-wal").end : end;
	}
	ck_assert_int_eq(store_flush(opened), 0);
	move_whole_log(core_of(opened));
	crashdisk_stop_at(disk, 0, 0);
	diskstore_close(opened, layer);
	crashdisk_killed(disk);
	crashdisk_stop_at(disk, UINT64_MAX, 0);
	layer = crashdisk_layer(disk);
	ck_assert_int_eq(layer->ops->open(layer, "meta/db-wal", STORE_OPEN_WRITE, &log), 0);
	ck_assert_int_eq(layer->ops->truncate(log, end), 0);
	layer->ops->close(log);
	layer->ops->destroy(layer);
	opened = open_with_copy(disk, &layer);
	ck_assert(has_name(opened, "f0") && has_name(opened, "f19"));
	ck_assert_msg(!strstr(told, "lost"), "%s", told);
	ck_assert_int_eq(diskstore_faults(opened, "moved log"), 0);
	diskstore_close(opened, layer);
	crashdisk_free(disk);
}
END_TEST

/* Without the log and its mark nothing tells whether the database or the copy has more: the copy stays, for the administrator. */
START_TEST(log_and_mark_lost)
{
	struct store_options options = {.path = "disk", .durability = STORE_STRICT};
	struct crashdisk *disk;
	struct store_layer *layer;
	struct store *opened;

	durability = _i ? STORE_LAZY : STORE_STRICT;
	disk = make_killed_store(true);
	options.layer = options.copy_layer = crashdisk_layer(disk);
	ck_assert_int_eq(options.layer->ops->unlink(options.layer, "meta/mark"), 0);
	ck_assert_int_eq(options.layer->ops->unlink(options.layer, "meta/db-wal"), 0);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(store_open(&options, &opened, message), -EBADMSG);
		ck_assert_msg(strstr(message, "use-copy") != NULL, "%s", message);
	}
	ck_assert_msg(store_use_copy(&options, message) == 0, "%s", message);
	options.layer->ops->destroy(options.layer);
	opened = open_with_copy(disk, &layer);
	ck_assert(has_name(opened, "f0") && has_name(opened, "f1"));
	ck_assert_int_eq(diskstore_faults(opened, "log and mark"), 0);
	diskstore_close(opened, layer);
	crashdisk_free(disk);
}
END_TEST

/* Without a copy as well, the first start says that changes may be lost. */
START_TEST(log_mark_and_copy_lost)
{
	struct crashdisk *disk;
	struct store_layer *layer;
	struct store *opened;

	durability = _i ? STORE_LAZY : STORE_STRICT;
	without_copy = true;
	disk = make_killed_store(false);
	layer = crashdisk_layer(disk);
	ck_assert_int_eq(layer->ops->unlink(layer, "meta/mark"), 0);
	ck_assert_int_eq(layer->ops->unlink(layer, "meta/db-wal"), 0);
	layer->ops->destroy(layer);
	opened = open_with_copy(disk, &layer);
	ck_assert_msg(strstr(told, "the log of the metadata and its mark are missing") != NULL,
		      "%s", told);
	diskstore_close(opened, layer);
	opened = open_with_copy(disk, &layer);
	ck_assert_str_eq(told, "");
	diskstore_close(opened, layer);
	crashdisk_free(disk);
}
END_TEST

/* The log of the copy, which a start has noted: it is whole, removed, shorter, or damaged. Nothing is left of the database. */
static struct crashdisk *make_copy_alone(int loss)
{
	static const char *const names[] = {"meta/db-wal", "meta/mark", "meta/db"};
	struct crashdisk *disk = make_killed_store(true);
	struct store_layer *layer;
	struct store *opened = open_with_copy(disk, &layer);
	uint64_t half = crashdisk_length(disk, "copy/db-wal") / 2;
	struct store_file *log;

	crashdisk_stop_at(disk, 0, 0);
	diskstore_close(opened, layer);
	crashdisk_killed(disk);
	crashdisk_stop_at(disk, UINT64_MAX, 0);
	layer = crashdisk_layer(disk);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		ck_assert_int_eq(layer->ops->unlink(layer, names[i]), 0);
	ck_assert_int_eq(layer->ops->rmdir(layer, "meta"), 0);
	ck_assert_int_eq(layer->ops->open(layer, "copy/db-wal", STORE_OPEN_WRITE, &log), 0);
	if (loss == 1)
		ck_assert_int_eq(layer->ops->unlink(layer, "copy/db-wal"), 0);
	else if (loss == 2)
		ck_assert_int_eq(layer->ops->truncate(log, half), 0);
	layer->ops->close(log);
	layer->ops->destroy(layer);
	if (loss == 3)
		ck_assert(crashdisk_flip(disk, "copy/db-wal", 8 * half));
	return disk;
}

/* The metadata are lost, and so is the log of the copy, or its end: nothing says that the copy has all that it had. */
START_TEST(log_of_copy_lost)
{
	struct store_options options = {.path = "disk"};
	struct crashdisk *disk;
	struct store_layer *layer;
	struct store *opened;

	disk = make_copy_alone(_i);
	options.layer = options.copy_layer = crashdisk_layer(disk);
	ck_assert_int_eq(store_open(&options, &opened, message), -EBADMSG);
	ck_assert_msg(strstr(message, "use-copy") != NULL, "%s", message);
	ck_assert_msg(store_use_copy(&options, message) == 0, "%s", message);
	ck_assert_msg(strstr(message, "had all changes until 20") != NULL, "%s", message);
	ck_assert_msg(!strstr(message, "may be missing") == !_i, "%s", message);
	options.layer->ops->destroy(options.layer);
	opened = open_with_copy(disk, &layer);
	ck_assert_str_eq(told, "");
	ck_assert(_i || has_name(opened, "f1"));
	ck_assert_int_eq(diskstore_faults(opened, "log of the copy"), 0);
	diskstore_close(opened, layer);
	crashdisk_free(disk);
}
END_TEST

/* A copy that may have the rest is to be brought back first. */
START_TEST(rest_of_log_away)
{
	struct store_options options = {
		.path = "disk", .durability = STORE_STRICT, .copy = "/nonexistent/copy"};
	struct crashdisk *disk = make_killed_store(false);
	struct store *opened;

	lose_end_of_log(disk, _i);
	options.layer = crashdisk_layer(disk);
	ck_assert_int_eq(store_open(&options, &opened, message), -EBADMSG);
	ck_assert_msg(strstr(message, "bring back /nonexistent/copy") != NULL, "%s", message);
	options.layer->ops->destroy(options.layer);
	crashdisk_free(disk);
}
END_TEST

/* Before pages of the log go to the database, the mark is behind them. */
START_TEST(mark_before_checkpoint)
{
	struct crashdisk *disk = crashdisk_new();
	struct store_options options = {.path = "disk", .layer = crashdisk_layer(disk)};
	const struct store_new_volume new = {.name = "v"};
	struct store_place place;
	struct store_layer *layer;
	struct store *opened;
	struct store_wal *wal;
	uint64_t end;

	ck_assert_int_eq(store_make(&options, message), 0);
	options.layer->ops->destroy(options.layer);
	opened = open_with_copy(disk, &layer);
	ck_assert_int_eq(store_volume_create(opened, &new, &volume), 0);
	end = find_place(layer, "meta/db-wal").end;
	move_log(core_of(opened));
	ck_assert_int_eq(store_wal_create(layer, "meta/mark", "meta/db-wal", NULL, NULL, &wal), 0);
	ck_assert_int_eq(store_wal_inspect(wal, &place), 0);
	ck_assert_uint_ge(place.marked_end, end);
	store_wal_destroy(wal);
	diskstore_close(opened, layer);
	crashdisk_free(disk);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("strict");
	TCase *tcase = tcase_create("strict");
	SRunner *runner;
	int failed;

	durability = STORE_STRICT;
	tcase_set_timeout(tcase, 60);
	tcase_add_checked_fixture(tcase, fixture_start, fixture_end);
	tcase_add_test(tcase, name_lost_before_commit);
	tcase_add_loop_test(tcase, copy_without_failed_commit, 0, 3);
	tcase_add_loop_test(tcase, shortened_log, 0, 2);
	tcase_add_loop_test(tcase, rest_of_log_in_copy, 0, 2 * LOSSES);
	tcase_add_loop_test(tcase, rest_of_log_lost, 0, 2 * LOSSES);
	tcase_add_loop_test(tcase, log_and_mark_lost, 0, 2);
	tcase_add_loop_test(tcase, log_mark_and_copy_lost, 0, 2);
	tcase_add_loop_test(tcase, log_of_copy_lost, 0, 4);
	tcase_add_loop_test(tcase, rest_of_log_away, 0, LOSSES);
	tcase_add_loop_test(tcase, copy_of_first_log, 0, 2);
	tcase_add_loop_test(tcase, part_of_moved_log, 0, 2);
	tcase_add_test(tcase, mark_before_checkpoint);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
