/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writers, clones and flushes beside the thread that merges extents, and beside calls that merge, on
 * a disk that may fail. Each file has one writer, which knows its bytes: a read has these or fails,
 * and it does not fail while the disk works, unless a flush of the file has failed: its bytes count as
 * lost, and the checker says so. A clone stays as it was.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/main.h"
#include "tests/volume/store/diskstore.h"
#include "tests/volume/store/state.h"

#define LENGTH	(192u << 10)
#define FILES	3
#define CHANGES 500

static struct file {
	pthread_t thread;
	char path[8], spare[8];
	uint64_t random, length;
	uint8_t want[LENGTH], got[LENGTH + 1];
} file[FILES];

static struct store *store;
static struct store_layer *layer;
static struct crashdisk *disk;
static uint32_t volume;
static bool failing; /* the disk may */
static bool lost;    /* flushes may have failed */
static atomic_bool ended;

static uint64_t draw(uint64_t *random, uint64_t below)
{
	return crashdisk_random(random) % below;
}

/* The length, or a result that is not 0. */
static int read_file(uint32_t of, const char *path, uint8_t got[LENGTH + 1], uint64_t *length)
{
	struct iovec iov = {got, LENGTH + 1};
	struct store_reader *reader;
	struct store_status status;
	struct store_fid fid;
	ssize_t n;
	int result = state_walk(store, of, path, &fid);

	if (!result)
		result = store->ops->read_begin(store, &state_admin, &fid, &reader, &status);
	if (result)
		return result;
	n = store->ops->read(reader, &iov, 1, 0, 0);
	result = store->ops->read_end(reader);
	if (n < 0 || result)
		return n < 0 ? (int)n : result;
	ck_assert_uint_eq((uint64_t)n, status.length);
	*length = status.length;
	return 0;
}

static void compare(struct file *f)
{
	uint64_t length;
	int result = read_file(volume, f->path, f->got, &length);

	ck_assert_msg(!result || failing || (lost && result == -EIO), "%s: result %d", f->path,
		      result);
	if (result)
		return;
	ck_assert_uint_eq(length, f->length);
	for (uint64_t i = 0; i < length; i++)
		ck_assert_msg(f->want[i] == f->got[i], "%s: byte %llu of %llu", f->path,
			      (unsigned long long)i, (unsigned long long)length);
}

static bool is_done(int result)
{
	ck_assert_msg(!result || failing, "result %d", result);
	return !result;
}

static void cut_to(struct file *f, uint64_t length)
{
	if (length < f->length) {
		memset(f->want + length, 0, LENGTH - length);
		f->length = length;
	}
}

static void write_some(struct file *f, uint32_t seed)
{
	uint64_t offset = draw(&f->random, LENGTH - 4000);
	uint64_t length = 1 + draw(&f->random, draw(&f->random, 4) ? 300 : 4000);
	uint64_t kept = draw(&f->random, 40) ? LENGTH : draw(&f->random, LENGTH);
	int result = state_write(store, volume, f->path, offset, length, kept, seed);

	if (!is_done(result))
		return;
	cut_to(f, kept);
	state_bytes(f->want + offset, offset, length, seed);
	f->length = f->length > offset + length ? f->length : offset + length;
}

static void cut(struct file *f)
{
	uint64_t length = draw(&f->random, f->length + 1);

	if (is_done(state_write(store, volume, f->path, length, 0, length, 0)))
		cut_to(f, length);
}

/* Another file gets the name. */
static void replace(struct file *f, uint32_t seed)
{
	uint64_t length = 1 + draw(&f->random, LENGTH);
	int result = state_create(store, volume, f->spare, STORE_FILE, NULL);

	/* An earlier attempt may have left one. */
	if (result != -EEXIST && !is_done(result))
		return;
	if (!is_done(state_write(store, volume, f->spare, 0, length, length, seed)) ||
	    !is_done(state_rename(store, volume, f->spare, f->path)))
		return;
	memset(f->want, 0, LENGTH);
	state_bytes(f->want, 0, length, seed);
	f->length = length;
}

static void *change(void *arg)
{
	struct file *f = arg;

	for (uint32_t i = 1; i <= CHANGES; i++) {
		uint64_t which = draw(&f->random, 100);

		if (which < 90)
			write_some(f, i);
		else if (which < 92)
			cut(f);
		else if (which < 93)
			replace(f, i);
		else
			compare(f);
	}
	compare(f);
	return NULL;
}

/* -- beside the writers -- */

static void *merge(void *arg)
{
	(void)arg;
	while (!ended) {
		int result = store_merge(store);

		/* A writer was always faster. */
		is_done(result == -EAGAIN ? 0 : result);
		is_done(store_flush(store));
	}
	return NULL;
}

static void *clone_all(void *arg)
{
	static uint8_t first[LENGTH + 1], again[LENGTH + 1];
	uint64_t random = 77, length, length_again;

	(void)arg;
	while (!ended) {
		const char *path = file[draw(&random, FILES)].path;
		uint32_t id;

		if (!is_done(store_volume_clone(store, volume, STORE_RO, &id)) ||
		    !is_done(read_file(id, path, first, &length)))
			continue;
		for (int i = 0; i < 5 && !ended; i++) {
			is_done(store_flush(store));
			if (!is_done(read_file(id, path, again, &length_again)))
				continue;
			ck_assert_uint_eq(length, length_again);
			ck_assert(memcmp(first, again, length) == 0);
		}
	}
	return NULL;
}

static void *disturb(void *arg)
{
	uint64_t random = 5;

	(void)arg;
	while (!ended) {
		uint64_t at = crashdisk_calls(disk) + draw(&random, 60), more = draw(&random, 6);

		crashdisk_fail_at(disk, at, more, draw(&random, 2) ? EIO : ENOSPC);
		if (draw(&random, 4) == 0)
			crashdisk_fail_read(disk, draw(&random, 30));
		while (!ended && crashdisk_calls(disk) < at + more + 60)
			usleep(1000);
	}
	crashdisk_fail_at(disk, UINT64_MAX, 0, 0);
	crashdisk_fail_read(disk, UINT64_MAX);
	return NULL;
}

static void count_fault(void *arg, const char *line)
{
	if (lost && strstr(line, "did not take"))
		return;
	fprintf(stderr, "%s\n", line);
	++*(unsigned *)arg;
}

static unsigned faults(void)
{
	unsigned count = 0;

	ck_assert_int_ge(
		store_check(store, &(struct store_checker){.each = count_fault, .arg = &count}), 0);
	return count;
}

static void run(void)
{
	void *(*const beside[])(void *) = {merge, clone_all, disturb};
	unsigned count = failing ? 3 : 2;
	struct store_stats stats;
	pthread_t thread[3];

	disk = crashdisk_new();
	diskstore_extents = 12;
	diskstore_merge_ms = 1;
	store = diskstore_make(disk, &layer, &volume);
	for (unsigned i = 0; i < FILES; i++) {
		file[i].random = 10 + i;
		snprintf(file[i].path, sizeof(file[i].path), "f%u", i);
		snprintf(file[i].spare, sizeof(file[i].spare), "n%u", i);
		ck_assert_int_eq(state_create(store, volume, file[i].path, STORE_FILE, NULL), 0);
	}
	for (unsigned i = 0; i < FILES; i++)
		ck_assert_int_eq(pthread_create(&file[i].thread, NULL, change, &file[i]), 0);
	for (unsigned i = 0; i < count; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, beside[i], NULL), 0);
	for (unsigned i = 0; i < FILES; i++)
		ck_assert_int_eq(pthread_join(file[i].thread, NULL), 0);
	ended = true;
	store_stats(store, &stats);
	ck_assert_uint_gt(stats.merged_extents, FILES);
	for (unsigned i = 0; i < count; i++)
		ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
	ck_assert_uint_eq(faults(), 0);
	/* Perhaps in the middle of a step. */
	diskstore_close(store, layer);
	store = diskstore_open(disk, STORE_LAZY, &layer);
	ck_assert_msg(store != NULL, "%s", diskstore_message);
	failing = false;
	for (unsigned i = 0; i < FILES; i++)
		compare(&file[i]);
	ck_assert_uint_eq(faults(), 0);
	diskstore_close(store, layer);
	crashdisk_free(disk);
}

START_TEST(beside)
{
	failing = false;
	run();
}
END_TEST

START_TEST(beside_faults)
{
	failing = lost = true;
	run();
}
END_TEST

TEST_MAIN_WITHIN(300, "merging", beside, beside_faults)
