/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests of a store on a disk that loses what a flush was to write: the error is told once, and the bytes count as written
 * (so does Linux). Flushes of each file of the store are lost, once or for a while, also when the bytes leave the memory; the
 * process is killed or closes the store, and then the machine stops. What was acknowledged as durable is there, and nothing
 * false is read.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/main.h"
#include "tests/volume/store/diskstore.h"
#include "tests/volume/store/state.h"

#define FILES 12
#define SMALL 300
#define LARGE 20000

static uint32_t volume;

/* What is to hold, for the file with that number. */
struct promise {
	uint32_t seed,
		durable; /* the last contents that may be there, and the last that must be: 0 for empty */
};

struct run {
	struct crashdisk *disk;
	struct store_layer *layer;
	struct store *store;
	enum store_durability durability;
	struct promise file[FILES];
	uint32_t seed;
	unsigned acknowledged;
	char what[160];
};

static void path_of(unsigned file, char path[16])
{
	snprintf(path, 16, "f%u", file);
}

static uint64_t size_of(unsigned file)
{
	return file % 3 == 0 ? SMALL : LARGE;
}

static struct crashdisk *make_disk(void)
{
	struct crashdisk *disk = crashdisk_new();
	struct store_layer *layer;
	struct store *store = diskstore_make(disk, &layer, &volume);
	char path[16];

	for (unsigned i = 0; i < FILES; i++) {
		path_of(i, path);
		ck_assert_int_eq(state_create(store, volume, path, STORE_FILE, NULL), 0);
	}
	diskstore_close(store, layer);
	return disk;
}

static void start(struct run *run)
{
	run->store = diskstore_open(run->disk, run->durability, &run->layer);
	if (run->store)
		return;
	/* The disk may not take the first flush. */
	run->layer->ops->destroy(run->layer);
	crashdisk_lose(run->disk, "", 0, false);
	run->store = diskstore_open(run->disk, run->durability, &run->layer);
	ck_assert_msg(run->store != NULL, "%s: %s", run->what, diskstore_message);
}

/* Write a file from its beginning to its end, durably. */
static int write_durably(struct store *store, unsigned file, uint32_t seed)
{
	const struct store_set set = {.mask = STORE_SET_SYNC};
	static uint8_t bytes[LARGE];
	struct iovec iov = {bytes, size_of(file)};
	struct store_changes changes;
	struct store_writer *writer;
	struct store_status status;
	struct store_fid fid;
	char path[16];
	int rc;

	path_of(file, path);
	rc = state_walk(store, volume, path, &fid);
	if (!rc)
		rc = store->ops->write_begin(store, &state_admin, &fid, &set, 0, iov.iov_len,
					     iov.iov_len, &writer);
	if (rc)
		return rc;
	state_bytes(bytes, 0, iov.iov_len, seed);
	rc = store->ops->write(writer, &iov, 1);
	if (!rc)
		return store->ops->write_commit(writer, &status, &changes);
	store->ops->write_abort(writer);
	return rc;
}

/* Some writes, each of which is acknowledged as durable or fails. */
static void write_some(struct run *run, unsigned from, unsigned count)
{
	for (unsigned i = from; i < from + count; i++) {
		struct promise *file = &run->file[i % FILES];

		file->seed = ++run->seed;
		if (write_durably(run->store, i % FILES, file->seed))
			continue;
		file->durable = file->seed;
		run->acknowledged++;
	}
}

/* -1: an error; else the seed of the contents, or 0 for an empty file; UINT32_MAX: it has other contents. */
static int64_t read_seed(struct store *store, unsigned file, const struct promise *promise)
{
	static uint8_t got[LARGE], want[LARGE];
	struct iovec iov = {got, sizeof(got)};
	struct store_reader *reader;
	struct store_status status;
	struct store_fid fid;
	char path[16];
	ssize_t n;

	path_of(file, path);
	if (state_walk(store, volume, path, &fid) ||
	    store->ops->read_begin(store, &state_admin, &fid, &reader, &status))
		return -1;
	n = store->ops->read(reader, &iov, 1, 0, false);
	store->ops->read_end(reader);
	if (n <= 0)
		return n;
	for (uint32_t seed = promise->seed; seed; seed--) {
		state_bytes(want, 0, size_of(file), seed);
		if ((uint64_t)n == size_of(file) && memcmp(got, want, (size_t)n) == 0)
			return seed;
	}
	return UINT32_MAX;
}

/* `whole`: all files can be read, because no data file was lost. */
static void verify(struct run *run, bool whole)
{
	for (unsigned i = 0; i < FILES; i++) {
		const struct promise *file = &run->file[i];
		int64_t seed = read_seed(run->store, i, file);

		ck_assert_msg(seed != UINT32_MAX, "%s: file %u has false contents", run->what, i);
		/* A later write, which failed, may have taken its place, and its bytes may be lost. */
		if (seed < 0 && !whole && file->seed > file->durable)
			continue;
		ck_assert_msg(seed >= (int64_t)file->durable,
			      "%s: file %u has contents %lld, not %u", run->what, i,
			      (long long)seed, file->durable);
	}
}

static uint32_t mode_of(struct store *store, const char *path)
{
	struct store_status status;
	struct store_fid fid;

	ck_assert_int_eq(state_walk(store, volume, path, &fid), 0);
	ck_assert_int_eq(store->ops->status(store, &state_admin, &fid, &status), 0);
	return status.mode;
}

static void kill_process(struct run *run)
{
	crashdisk_stop_at(run->disk, crashdisk_calls(run->disk), run->seed);
	diskstore_close(run->store, run->layer);
}

enum ending {
	END_CRASH, /* the machine stops */
	END_KILL,  /* the process is killed and starts again, then the machine stops */
	END_CLOSE, /* the same for a store that is closed */
	ENDINGS
};

static void end_process(struct run *run, enum ending ending)
{
	if (ending == END_CLOSE) {
		diskstore_close(run->store, run->layer);
	} else {
		kill_process(run);
		crashdisk_killed(run->disk);
	}
}

/* Returns how many flushes were lost. */
static unsigned lose_flushes(const struct crashdisk *base, const char *path, unsigned times,
			     bool memory, enum store_durability durability, enum ending ending)
{
	struct run run = {.disk = crashdisk_copy(base), .durability = durability};
	bool whole = strncmp(path, "files", 5) != 0 && *path;
	unsigned lost;

	snprintf(run.what, sizeof(run.what), "%s, %u times%s, mode %d, ending %d", path, times,
		 memory ? ", and the memory" : "", durability, ending);
	start(&run);
	write_some(&run, 0, 5);
	crashdisk_lose(run.disk, path, times, memory);
	write_some(&run, 4, 6);
	if (ending != END_CRASH) {
		end_process(&run, ending);
		start(&run);
		verify(&run, whole);
		write_some(&run, 9, 4);
	}
	kill_process(&run);
	lost = crashdisk_lost(run.disk);
	crashdisk_lose(run.disk, "", 0, false);
	crashdisk_crashed(run.disk, run.seed % 2 ? 0 : UINT64_MAX, false, 1);
	start(&run);
	verify(&run, whole);
	run.acknowledged = 0;
	write_some(&run, 0, FILES);
	ck_assert_msg(run.acknowledged == FILES, "%s: %u writes afterwards", run.what,
		      run.acknowledged);
	verify(&run, true);
	diskstore_close(run.store, run.layer);
	crashdisk_free(run.disk);
	return lost;
}

static void lose_all(const char *path)
{
	struct crashdisk *base = make_disk();
	unsigned lost = 0;

	for (unsigned times = 1; times <= 3; times++)
		for (int memory = 0; memory < 2; memory++)
			for (int ending = 0; ending < ENDINGS; ending++) {
				lost += lose_flushes(base, path, times, memory, STORE_LAZY, ending);
				lost += lose_flushes(base, path, times, memory, STORE_STRICT,
						     ending);
			}
	ck_assert_uint_gt(lost, 8);
	crashdisk_free(base);
}

START_TEST(log_file)
{
	lose_all("meta/db-wal");
}
END_TEST

START_TEST(mark)
{
	lose_all("meta/mark");
}
END_TEST

START_TEST(database)
{
	lose_all("meta/db");
}
END_TEST

START_TEST(objects)
{
	lose_all("files/");
}
END_TEST

START_TEST(everything)
{
	lose_all("");
}
END_TEST

#define MANY 40 /* files, which are flushed together */

static unsigned count_unreadable(struct store *store)
{
	unsigned count = 0;
	char path[16], byte;

	for (unsigned i = 0; i < MANY; i++) {
		struct iovec iov = {&byte, 1};
		struct store_reader *reader;
		struct store_status status;
		struct store_fid fid;

		snprintf(path, sizeof(path), "m%u", i);
		ck_assert_int_eq(state_walk(store, volume, path, &fid), 0);
		ck_assert_int_eq(
			store->ops->read_begin(store, &state_admin, &fid, &reader, &status), 0);
		count += store->ops->read(reader, &iov, 1, 0, false) == -EIO;
		store->ops->read_end(reader);
	}
	return count;
}

/* The disk does not take one file of many: the others can be read, and that one cannot, also after a restart. */
START_TEST(one_of_many)
{
	for (int ending = 0; ending < ENDINGS; ending++) {
		struct run run = {.disk = make_disk(), .what = "one of many"};
		char path[16];

		start(&run);
		crashdisk_lose(run.disk, "files/", 1, false);
		for (unsigned i = 0; i < MANY; i++) {
			snprintf(path, sizeof(path), "m%u", i);
			ck_assert_int_eq(state_create(run.store, volume, path, STORE_FILE, NULL),
					 0);
			ck_assert_int_eq(
				state_write(run.store, volume, path, 0, LARGE, LARGE, i + 1), 0);
		}
		while (store_flush(run.store) || !crashdisk_lost(run.disk))
			usleep(1000);
		ck_assert_uint_eq(count_unreadable(run.store), 1);
		ck_assert_int_eq(diskstore_faults(run.store, "lost"), 1);
		if (ending == END_CRASH) {
			kill_process(&run);
			crashdisk_crashed(run.disk, 0, false, 1);
		} else {
			end_process(&run, ending);
		}
		start(&run);
		ck_assert_uint_eq(count_unreadable(run.store), 1);
		diskstore_close(run.store, run.layer);
		crashdisk_free(run.disk);
	}
}
END_TEST

/* A flush in the background that fails is tried again, although no other change comes. */
START_TEST(tried_again)
{
	struct run run = {.disk = make_disk(), .what = "tried again"};

	start(&run);
	write_some(&run, 0, 1);
	crashdisk_lose(run.disk, "meta/db-wal", 1, false);
	ck_assert_int_eq(state_chmod(run.store, volume, "f0", 0600), 0);
	/* Lost pages count as written: nothing may be pending before the second flush. */
	while (!crashdisk_regained(run.disk) || crashdisk_pending(run.disk))
		usleep(1000);
	crashdisk_stop_at(run.disk, crashdisk_calls(run.disk), 1);
	diskstore_close(run.store, run.layer);
	crashdisk_crashed(run.disk, 0, false, 1);
	start(&run);
	verify(&run, true);
	ck_assert_uint_eq(mode_of(run.store, "f0"), 0600);
	diskstore_close(run.store, run.layer);
	crashdisk_free(run.disk);
}
END_TEST

TEST_MAIN_WITHIN(600, "flush", log_file, mark, database, objects, everything, one_of_many,
		 tried_again)
