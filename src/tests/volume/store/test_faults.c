/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests of a store whose disk fails: each call that changes the disk fails once, or from then on for a
 * while, with each kind of error. An operation that reports success is done, one that reports a failure
 * is not, the store goes on, and the checker finds no fault. And a database with inverted bits: what is
 * returned is right, or is an error.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/main.h"
#include "tests/volume/store/diskstore.h"
#include "tests/volume/store/state.h"
#include "volume/store/disk/vfs.h"
#include "volume/store/txn/space.h"
#include "volume/store/upkeep.h"

#define LARGE 20000
#define FULL  (24u << 20) /* bytes of a disk that is to become full */

static uint32_t volume;
static bool scattered; /* the blocks of "a" lie in several objects */

static struct crashdisk *make_disk(void)
{
	struct crashdisk *disk = crashdisk_new();
	struct store_layer *layer;
	struct store *store = diskstore_make(disk, &layer, &volume);

	ck_assert_int_eq(state_create(store, volume, "a", STORE_FILE, NULL), 0);
	ck_assert_int_eq(state_write(store, volume, "a", 0, LARGE, LARGE, 9), 0);
	for (uint64_t i = 0; scattered && i < 7; i++)
		ck_assert_int_eq(state_write(store, volume, "a", 2500 * (i * 3 % 7) + 700, 300,
					     LARGE, (uint32_t)i),
				 0);
	ck_assert_int_eq(state_create(store, volume, "d", STORE_DIR, NULL), 0);
	for (unsigned i = 0; i < 40; i++) {
		char path[32];

		snprintf(path, sizeof(path), "d/file-%u", i);
		ck_assert_int_eq(state_create(store, volume, path, STORE_FILE, NULL), 0);
		ck_assert_int_eq(state_write(store, volume, path, 0, i * 100, i * 100, i), 0);
	}
	diskstore_close(store, layer);
	return disk;
}

/* -- operations -- */

static int op_create(struct store *s)
{
	return state_create(s, volume, "b", STORE_FILE, NULL);
}

static int op_small(struct store *s)
{
	return state_write(s, volume, "d/file-1", 50, 100, 150, 1);
}

static int op_large(struct store *s)
{
	return state_write(s, volume, "d/file-2", 0, LARGE, LARGE, 2);
}

static int op_middle(struct store *s)
{
	return state_write(s, volume, "a", 5000, 3000, LARGE, 3);
}

static int op_append(struct store *s)
{
	return state_write(s, volume, "a", LARGE, 300000, LARGE + 300000, 4);
}

static int op_replace(struct store *s)
{
	return state_rename(s, volume, "d/file-3", "a");
}

static int op_remove(struct store *s)
{
	return state_remove(s, volume, "a", STORE_FILE);
}

static int op_mkdir(struct store *s)
{
	return state_create(s, volume, "d/e", STORE_DIR, NULL);
}

static int op_clone(struct store *s)
{
	uint32_t clone;

	return store_volume_clone(s, volume, STORE_RO, &clone);
}

static int (*const ops[])(struct store *) = {op_create, op_small,   op_large,  op_middle, op_append,
					     op_replace, op_remove, op_mkdir, op_clone};
#define OPS (sizeof(ops) / sizeof(ops[0]))

/* Whether an operation may report `rc` if the disk reported `err`. */
static bool fits(int rc, int err)
{
	if (rc == -EIO || rc == -err)
		return true;
	return rc == STORE_VDISKFULL && err == ENOSPC;
}

/*
 * Fail call number `call` of an operation and `more` following ones. Returns false if it has fewer
 * calls.
 */
static bool fail_in(const struct crashdisk *base, enum store_durability durability, unsigned op,
		    uint64_t call, uint64_t more, int err)
{
	struct crashdisk *disk = crashdisk_copy(base);
	struct store_layer *layer;
	struct store *store = diskstore_open(disk, durability, &layer);
	char what[120], *before, *after;
	uint64_t begin;
	int rc;

	snprintf(what, sizeof(what), "operation %u, call %llu and %llu more: %s", op,
		 (unsigned long long)call, (unsigned long long)more, strerror(err));
	ck_assert_msg(store != NULL, "%s", diskstore_message);
	before = diskstore_dump(store, what);
	begin = crashdisk_calls(disk);
	crashdisk_fail_at(disk, begin + call, more, err);
	rc = ops[op](store);
	crashdisk_fail_at(disk, UINT64_MAX, 0, 0);
	ck_assert_msg(rc == 0 || fits(rc, err), "%s: result %d", what, rc);
	after = diskstore_dump(store, what);
	if (rc)
		ck_assert_msg(strcmp(before, after) == 0, "%s: failed (%d), but\n%s\nbecame\n%s",
			      what, rc, before, after);
	else
		ck_assert_msg(strcmp(before, after) != 0, "%s: succeeded, but did nothing", what);
	/* The disk works again, and so does the store. */
	ck_assert_msg(rc == 0 || ops[op](store) == 0, "%s: not afterwards", what);
	ck_assert_msg(diskstore_faults(store, what) == 0, "%s", what);
	free(before);
	free(after);
	before = diskstore_dump(store, what);
	diskstore_close(store, layer);
	store = diskstore_open(disk, durability, &layer);
	ck_assert_msg(store != NULL, "%s: %s", what, diskstore_message);
	after = diskstore_dump(store, what);
	ck_assert_msg(strcmp(before, after) == 0, "%s: after closing,\n%s\nbecame\n%s", what,
		      before, after);
	free(before);
	free(after);
	begin = crashdisk_calls(disk) - begin;
	diskstore_close(store, layer);
	crashdisk_free(disk);
	return call < begin && call < 60;
}

static void fail_all(enum store_durability durability, uint64_t more)
{
	static const int errs[] = {EIO, ENOSPC, EROFS, EMFILE, ENOMEM};
	struct crashdisk *base = make_disk();

	for (unsigned op = 0; op < OPS; op++)
		for (uint64_t call = 0; fail_in(base, durability, op, call, more, EIO); call++)
			fail_in(base, durability, op, call, more, errs[(op + call) % 5]);
	crashdisk_free(base);
}

START_TEST(once_lazy)
{
	fail_all(STORE_LAZY, 0);
}
END_TEST

START_TEST(once_scattered)
{
	scattered = true;
	fail_all(STORE_LAZY, 0);
}
END_TEST

START_TEST(once_strict)
{
	fail_all(STORE_STRICT, 0);
}
END_TEST

START_TEST(for_a_while)
{
	fail_all(STORE_LAZY, UINT32_MAX);
}
END_TEST

/*
 * A read fails within the transaction. SQLite then undoes what the transaction has written so far, and
 * the rest must not be committed without it.
 */
static bool fail_read(const struct crashdisk *base, unsigned op, uint64_t reads)
{
	struct crashdisk *disk = crashdisk_copy(base);
	struct store_layer *layer;
	struct store *store = diskstore_open(disk, STORE_LAZY, &layer);
	char what[80], *before, *after;
	bool waits;
	int rc;

	snprintf(what, sizeof(what), "operation %u, read %llu", op, (unsigned long long)reads);
	ck_assert_msg(store != NULL, "%s", diskstore_message);
	crashdisk_fail_read(disk, reads);
	rc = ops[op](store);
	waits = crashdisk_fail_read(disk, UINT64_MAX);
	ck_assert_msg(rc == 0 || (!waits && rc == -EIO), "%s: result %d", what, rc);
	diskstore_close(store, layer);
	store = diskstore_open(disk, STORE_LAZY, &layer);
	ck_assert_msg(store != NULL, "%s: %s", what, diskstore_message);
	after = diskstore_dump(store, what);
	ck_assert_msg(diskstore_faults(store, what) == 0, "%s", what);
	diskstore_close(store, layer);
	crashdisk_free(disk);
	disk = crashdisk_copy(base);
	store = diskstore_open(disk, STORE_LAZY, &layer);
	before = diskstore_dump(store, what);
	ck_assert_msg((strcmp(before, after) == 0) == (rc != 0), "%s: result %d, but it is%s done",
		      what, rc, rc ? "" : " not");
	diskstore_close(store, layer);
	crashdisk_free(disk);
	free(before);
	free(after);
	return !waits;
}

static void fail_reads(void)
{
	struct crashdisk *base = make_disk();
	unsigned points = 0;

	for (unsigned op = 0; op < OPS; op++)
		for (uint64_t n = 0; fail_read(base, op, n); n++)
			points++;
	ck_assert_uint_gt(points, 50);
	crashdisk_free(base);
}

START_TEST(reads)
{
	fail_reads();
	scattered = true;
	fail_reads();
}
END_TEST

static void make_full(struct store *store, size_t size, unsigned *made)
{
	char path[32];
	int rc = 0;

	for (*made = 0; rc == 0 && *made < 10000; ++*made) {
		snprintf(path, sizeof(path), "d/more-%u", *made);
		rc = state_create(store, volume, path, STORE_FILE, NULL);
		if (!rc)
			rc = state_write(store, volume, path, 0, size, size, *made);
	}
	ck_assert_int_eq(rc, STORE_VDISKFULL);
	ck_assert_uint_gt(*made, 5);
}

/*
 * Fill the disk with files of a size: writers are refused, readers and removals go on, so that there is room
 * again.
 */
static void fill_and_remove(const struct crashdisk *base, enum store_durability durability,
			    size_t size)
{
	struct crashdisk *disk = crashdisk_copy(base);
	struct store_layer *layer;
	struct store *store = diskstore_open(disk, durability, &layer);
	unsigned made;
	char path[32];
	int rc;

	ck_assert_ptr_nonnull(store);
	crashdisk_limit(disk, FULL);
	make_full(store, size, &made);
	free(diskstore_dump(store, "full disk"));
	for (unsigned i = 0; i + 1 < made; i++) {
		snprintf(path, sizeof(path), "d/more-%u", i);
		ck_assert_msg(state_remove(store, volume, path, STORE_FILE) == 0,
			      "%zu bytes: file %u of %u", size, i, made);
	}
	/* The files themselves are removed in the background. */
	while ((rc = op_large(store)) == STORE_VDISKFULL)
		usleep(1000);
	ck_assert_int_eq(rc, 0);
	ck_assert_int_eq(diskstore_faults(store, "full disk"), 0);
	diskstore_close(store, layer);
	crashdisk_free(disk);
}

/* -- a full disk while the keeper moves the log to the database, which is held up -- */

static struct {
	const struct store_layer_ops *own;
	pthread_t test;
	sem_t began;	   /* the keeper has */
	sem_t no_room;	   /* a write of the test failed for want of space */
	_Atomic bool held; /* once */
} moving;

/* The keeper goes on once the test has had its failure, or two of them: then it has not waited for the keeper. */
static void hold_keeper(void)
{
	struct timespec until;

	moving.held = true;
	sem_post(&moving.began);
	while (sem_wait(&moving.no_room) && errno == EINTR)
		;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec++;
	while (sem_timedwait(&moving.no_room, &until) && errno == EINTR)
		;
}

static ssize_t write_and_hold(struct store_file *file, const struct iovec *iov, int count,
			      uint64_t offset)
{
	ssize_t n;

	/* A page of the database is written together with its checksum. */
	if (!pthread_equal(pthread_self(), moving.test) && !moving.held && count == 2 &&
	    offset % STORE_DB_PAGE == 0)
		hold_keeper();
	n = moving.own->pwritev(file, iov, count, offset);
	if (n == -ENOSPC && pthread_equal(pthread_self(), moving.test))
		sem_post(&moving.no_room);
	return n;
}

static void remove_without_room(struct crashdisk *disk, struct store *store)
{
	char path[32];
	int rc;

	crashdisk_limit(disk, crashdisk_used(disk) + (256u << 10));
	for (unsigned i = 0; i < 40; i++) {
		snprintf(path, sizeof(path), "d/file-%u", i);
		rc = state_remove(store, volume, path, STORE_FILE);
		ck_assert_msg(rc == 0, "file %u: result %d", i, rc);
	}
}

START_TEST(full_beside_checkpoint)
{
	struct crashdisk *disk = make_disk();
	struct store_layer *layer;
	struct store *store = diskstore_open(disk, STORE_LAZY, &layer);
	struct store_layer_ops holding;

	ck_assert_ptr_nonnull(store);
	moving.own = layer->ops;
	moving.test = pthread_self();
	sem_init(&moving.began, 0, 0);
	sem_init(&moving.no_room, 0, 0);
	holding = *layer->ops;
	holding.pwritev = write_and_hold;
	layer->ops = &holding;
	while (sem_trywait(&moving.began))
		ck_assert_int_eq(op_small(store), 0);
	remove_without_room(disk, store);
	crashdisk_limit(disk, UINT64_MAX);
	ck_assert_int_eq(diskstore_faults(store, "full beside the keeper"), 0);
	diskstore_close(store, layer);
	crashdisk_free(disk);
	sem_destroy(&moving.began);
	sem_destroy(&moving.no_room);
}
END_TEST

/* Bytes that a writer has written are no longer promised to it: they do not count twice. */
START_TEST(room_of_writers)
{
	static uint8_t bytes[12u << 20];
	const struct store_set set = {0};
	struct iovec iov = {bytes, sizeof(bytes) / 2};
	struct crashdisk *disk = make_disk();
	struct store_layer *layer;
	struct store *store = diskstore_open(disk, STORE_LAZY, &layer);
	struct store_writer *large, *other;
	struct store_fid a, b;

	ck_assert_ptr_nonnull(store);
	crashdisk_limit(disk, FULL);
	ck_assert_int_eq(state_walk(store, volume, "a", &a), 0);
	ck_assert_int_eq(state_walk(store, volume, "d/file-1", &b), 0);
	ck_assert_int_eq(store->ops->write_begin(store, &state_admin, &a, &set, 0, sizeof(bytes),
						 sizeof(bytes), &large),
			 0);
	/* Half of its bytes has come, and the rest is promised. */
	ck_assert_int_eq(store->ops->write(large, &iov, 1), 0);
	ck_assert_int_eq(store->ops->write_begin(store, &state_admin, &b, &set, 0, sizeof(bytes),
						 sizeof(bytes), &other),
			 STORE_VDISKFULL);
	ck_assert_int_eq(store->ops->write(large, &iov, 1), 0);
	ck_assert_int_eq(
		store->ops->write_begin(store, &state_admin, &b, &set, 0, 6 << 20, 6 << 20, &other),
		0);
	store->ops->write_abort(other);
	store->ops->write_abort(large);
	diskstore_close(store, layer);
	crashdisk_free(disk);
}
END_TEST

START_TEST(full_disk)
{
	struct crashdisk *base = make_disk();

	fill_and_remove(base, STORE_LAZY, 50000);
	fill_and_remove(base, STORE_STRICT, 50000);
	fill_and_remove(base, STORE_LAZY, 3000);
	crashdisk_free(base);
}
END_TEST

/* Another program takes all that is left of the disk: the store is opened, and files can be read and removed. */
static void fill_from_outside(enum store_durability durability)
{
	struct crashdisk *disk = crashdisk_new();
	struct store_layer *layer;
	struct store *store;
	char path[32];
	int rc = 0;

	diskstore_reserve = true;
	store = diskstore_make(disk, &layer, &volume);
	for (unsigned i = 0; i < 20; i++) {
		snprintf(path, sizeof(path), "f%u", i);
		ck_assert_int_eq(state_create(store, volume, path, STORE_FILE, NULL), 0);
		ck_assert_int_eq(state_write(store, volume, path, 0, LARGE, LARGE, i), 0);
	}
	diskstore_close(store, layer);
	for (unsigned i = 0; i < 3; i++) {
		crashdisk_limit(disk, crashdisk_used(disk));
		store = diskstore_open(disk, durability, &layer);
		ck_assert_msg(store != NULL, "%s", diskstore_message);
		free(diskstore_dump(store, "full from outside"));
		for (unsigned k = 6 * i; k < 6 * i + 6; k++) {
			snprintf(path, sizeof(path), "f%u", k);
			rc = state_remove(store, volume, path, STORE_FILE);
			ck_assert_msg(rc == 0, "opening %u, file %u: result %d", i, k, rc);
		}
		ck_assert_int_eq(diskstore_faults(store, "full from outside"), 0);
		diskstore_close(store, layer);
	}
	crashdisk_free(disk);
	diskstore_reserve = false;
}

START_TEST(full_from_outside)
{
	fill_from_outside(STORE_LAZY);
	fill_from_outside(STORE_STRICT);
}
END_TEST

/* -- a full disk that has the copy of the metadata as well -- */

static bool has_copy(struct store *store)
{
	struct store_stats stats;

	store_stats(store, &stats);
	return stats.copy_age_ms != UINT64_MAX;
}

static void await_copy(struct store *store, bool wanted)
{
	while (has_copy(store) != wanted)
		usleep(1000);
}

static unsigned make_files(struct store *store, unsigned count)
{
	char path[32];

	for (unsigned i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "d/c-%u", i);
		ck_assert_int_eq(state_create(store, volume, path, STORE_FILE, NULL), 0);
		ck_assert_int_eq(state_write(store, volume, path, 0, 3000, 3000, i), 0);
	}
	return count;
}

/* Not a byte is left, and no reserve: the copy gives its room, and comes back when there is some. */
static void fill_beside_copy(enum store_durability durability)
{
	struct crashdisk *disk = make_disk();
	struct store_layer *layer;
	struct store *store;
	unsigned count;
	char path[32];
	int rc;

	diskstore_copy = true;
	store = diskstore_open(disk, durability, &layer);
	ck_assert_ptr_nonnull(store);
	count = make_files(store, 40);
	await_copy(store, true);
	ck_assert_int_eq(store_flush(store), 0);
	crashdisk_limit(disk, crashdisk_used(disk));
	for (unsigned i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "d/c-%u", i);
		rc = state_remove(store, volume, path, STORE_FILE);
		ck_assert_msg(rc == 0, "file %u: result %d", i, rc);
	}
	ck_assert_uint_eq(crashdisk_length(disk, "copy/db"), UINT64_MAX);
	ck_assert_uint_eq(crashdisk_length(disk, "copy/state"), UINT64_MAX);
	crashdisk_limit(disk, UINT64_MAX);
	ck_assert_int_eq(diskstore_faults(store, "a copy that yields"), 0);
	diskstore_close(store, layer);
	/* A short store gets it at the latest when it is closed. */
	ck_assert_uint_ne(crashdisk_length(disk, "copy/db"), UINT64_MAX);
	crashdisk_free(disk);
	diskstore_copy = false;
}

START_TEST(copy_yields)
{
	fill_beside_copy(STORE_LAZY);
	fill_beside_copy(STORE_STRICT);
}
END_TEST

/* Stores fill the disk, with the copy on it. */
START_TEST(full_disk_with_copy)
{
	struct crashdisk *base = make_disk();

	diskstore_copy = diskstore_reserve = true;
	fill_and_remove(base, STORE_LAZY, 50000);
	fill_and_remove(base, STORE_STRICT, 50000);
	fill_and_remove(base, STORE_LAZY, 3000);
	diskstore_copy = diskstore_reserve = false;
	crashdisk_free(base);
}
END_TEST

/* A store that refuses everything has no commits, in front of which the log would be made shorter. */
START_TEST(log_of_refusing_store)
{
	struct crashdisk *disk = make_disk();
	struct store_layer *layer;
	struct store *store;

	diskstore_reserve = true;
	store = diskstore_open(disk, STORE_LAZY, &layer);
	ck_assert_ptr_nonnull(store);
	make_files(store, 100);
	ck_assert_uint_gt(crashdisk_length(disk, "meta/db-wal"), 512u << 10);
	/* What follows these commits is over, and there is the reserve. */
	for (unsigned i = 0; i < 2; i++)
		ck_assert_int_eq(store_flush(store), 0);
	ck_assert_uint_eq(crashdisk_length(disk, "reserve"), 1u << 20);
	crashdisk_limit(disk, crashdisk_used(disk) + (64u << 10));
	ck_assert_int_eq(op_large(store), STORE_VDISKFULL);
	while (crashdisk_length(disk, "meta/db-wal") >= 256u << 10)
		usleep(1000);
	diskstore_close(store, layer);
	crashdisk_free(disk);
	diskstore_reserve = false;
}
END_TEST

static struct core reserving;
static int (*sync_file)(struct store_file *file);

static int sync_and_release(struct store_file *file)
{
	int rc = sync_file(file);

	reserve_release(&reserving);
	return rc;
}

/* A commit needs the room while it is being taken: the store does not believe that it has it. */
START_TEST(reserve_given_up_meanwhile)
{
	struct crashdisk *disk = crashdisk_new();
	struct store_layer *layer = crashdisk_layer(disk);
	struct store_layer_ops releasing = *layer->ops;
	const struct store_layer_ops *own = layer->ops;

	sync_file = releasing.sync;
	releasing.sync = sync_and_release;
	layer->ops = &releasing;
	reserving.layer = layer;
	reserve_make(&reserving);
	ck_assert(!reserving.reserved);
	ck_assert_uint_eq(crashdisk_length(disk, "reserve"), 0);
	layer->ops = own;
	reserve_make(&reserving);
	ck_assert(reserving.reserved);
	ck_assert_uint_eq(crashdisk_length(disk, "reserve"), 1u << 20);
	layer->ops->destroy(layer);
	crashdisk_free(disk);
}
END_TEST

/* The rows of a removed volume go, although the disk fails when that begins. */
START_TEST(pruning_goes_on)
{
	struct crashdisk *disk = make_disk();
	const struct store_new_volume new = {.name = "again", .id = volume};
	struct store_layer *layer;
	struct store *store = diskstore_open(disk, STORE_LAZY, &layer);
	uint64_t at = 0;
	uint32_t id;
	int rc = -1;

	ck_assert_ptr_nonnull(store);
	for (unsigned calls = 0; rc; calls++) {
		ck_assert_uint_lt(calls, 100);
		at = crashdisk_calls(disk) + calls;
		crashdisk_fail_at(disk, at, UINT32_MAX, EIO);
		rc = store_volume_remove(store, volume);
		if (rc)
			crashdisk_fail_at(disk, UINT64_MAX, 0, 0);
	}
	while (crashdisk_calls(disk) <= at)
		usleep(1000);
	crashdisk_fail_at(disk, UINT64_MAX, 0, 0);
	while ((rc = store_volume_create(store, &new, &id)) == STORE_VBUSY)
		usleep(1000);
	ck_assert_int_eq(rc, 0);
	ck_assert_int_eq(diskstore_faults(store, "pruned"), 0);
	diskstore_close(store, layer);
	crashdisk_free(disk);
}
END_TEST

/* -- damage -- */

struct file {
	char path[160];
	uint64_t length;
};

static void find_database(void *arg, const char *path, uint64_t length)
{
	struct file *file = arg;

	if (strcmp(path, "meta/db") == 0) {
		snprintf(file->path, sizeof(file->path), "%s", path);
		file->length = length;
	}
}

#define WRITTEN 5 /* the file that is written afterwards, which mends it if its bytes are damaged */

/* Read the files of "d": right, or an error. Returns how many could not be read, but for the one that is written. */
static unsigned read_files(struct store *store, uint64_t bit)
{
	static uint8_t want[4000], got[4000];
	unsigned failed = 0;

	for (unsigned i = 0; i < 40; i++) {
		struct iovec iov = {got, sizeof(got)};
		struct store_reader *reader;
		struct store_status status;
		struct store_fid fid;
		char path[32];
		ssize_t n;

		snprintf(path, sizeof(path), "d/file-%u", i);
		if (state_walk(store, volume, path, &fid) ||
		    store->ops->read_begin(store, &state_admin, &fid, &reader, &status)) {
			failed += i != WRITTEN;
			continue;
		}
		n = store->ops->read(reader, &iov, 1, 0, 0);
		store->ops->read_end(reader);
		state_bytes(want, 0, i * 100, i);
		if (n < 0)
			failed += i != WRITTEN;
		else
			ck_assert_msg(n == (ssize_t)(i * 100) && memcmp(want, got, (size_t)n) == 0,
				      "bit %llu: wrong data of %s", (unsigned long long)bit, path);
	}
	return failed;
}

static void ignore(void *arg, const char *line)
{
	(void)arg, (void)line;
}

START_TEST(inverted_bits)
{
	struct crashdisk *base = make_disk();
	struct file file = {.length = 0};
	unsigned noticed = 0, refused = 0;
	uint64_t random = 5;

	crashdisk_list(base, find_database, &file);
	ck_assert_uint_gt(file.length, 0);
	for (unsigned i = 0; i < 300; i++) {
		struct crashdisk *disk = crashdisk_copy(base);
		uint64_t bit = crashdisk_random(&random) % (file.length * 8);
		struct store_layer *layer;
		struct store *store;
		unsigned failed;
		int faults;

		ck_assert(crashdisk_flip(disk, file.path, bit));
		store = diskstore_open(disk, STORE_LAZY, &layer);
		if (!store) {
			ck_assert_msg(strchr(diskstore_message, '\n') == NULL && *diskstore_message, "%s", diskstore_message);
			refused++;
		} else {
			failed = read_files(store, bit);
			state_create(store, volume, "x", STORE_FILE, NULL);
			state_write(store, volume, "d/file-5", 0, 100, 100, 1);
			faults = store_check(store, &(struct store_checker){.each = ignore});
			ck_assert_msg(!failed || faults != 0, "bit %llu: the checker sees nothing",
				      (unsigned long long)bit);
			/* One line for each place, not for each call. */
			ck_assert_uint_lt(diskstore_lines, 20);
			noticed += faults != 0;
		}
		diskstore_close(store, layer);
		crashdisk_free(disk);
	}
	printf("300 inverted bits: %u noticed, %u not opened\n", noticed, refused);
	crashdisk_free(base);
}
END_TEST

TEST_MAIN_WITHIN(600, "faults", once_lazy, once_scattered, once_strict, for_a_while, reads,
		 full_disk, full_beside_checkpoint, room_of_writers, full_from_outside, copy_yields,
		 full_disk_with_copy, log_of_refusing_store, reserve_given_up_meanwhile,
		 pruning_goes_on, inverted_bits)
