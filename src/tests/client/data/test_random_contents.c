/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random walks: reads, writes, truncations, flushes, changes by others, failures of calls, with little memory. Contents are compared
 * with a twin, and the server's file after each flush. Usage: test_random_contents [SEEDS [FIRST]].
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/data/data.h"
#include "fake_server.h"
#include "tests/asserts.h"
#include "tests/main.h"

#define SIZE  (1024u * 1024)
#define STEPS 300u

static struct fake fake;
static struct cl_data *data;
static struct cl_data_file *file;
static struct cl_data_handle *handles[2];
static unsigned char twin[SIZE], scratch[SIZE];
static size_t twin_length;
static bool dirty;
static uint64_t state;
static unsigned seeds = 60, first_seed = 1;
static char folder[64]; /* of the disk cache, for each second seed */

static uint32_t pick(uint32_t below)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)((state >> 33) % below);
}

/* Often small, sometimes at a border of pages or blocks. */
static size_t pick_offset(size_t below)
{
	size_t at = pick(below ? (uint32_t)below : 1);

	return pick(3) ? at : at & ~(size_t)4095;
}

static void fill(unsigned char *bytes, size_t length)
{
	unsigned char byte = (unsigned char)pick(256);

	for (size_t i = 0; i < length; i++)
		bytes[i] = (unsigned char)(byte + i * 7);
}

static void walk_write(struct cl_data_handle *handle)
{
	size_t length = 1 + pick(pick(4) ? 5000 : 100000), offset = pick_offset(SIZE - length);
	bool append = !pick(4) && twin_length + length <= SIZE;
	uint64_t at;

	fill(scratch, length);
	if (append) {
		offset = twin_length;
		ck_assert_int_eq(cl_data_append(handle, NULL, scratch, length, &at),
				 (ssize_t)length);
		ck_assert_uint_eq(at, offset);
	} else {
		ck_assert_int_eq(cl_data_write(handle, NULL, offset, scratch, length),
				 (ssize_t)length);
	}
	if (offset > twin_length)
		memset(twin + twin_length, 0, offset - twin_length);
	memcpy(twin + offset, scratch, length);
	if (offset + length > twin_length)
		twin_length = offset + length;
	dirty = true;
}

static void walk_read(struct cl_data_handle *handle)
{
	size_t offset = pick_offset(twin_length + 100), length = pick(pick(3) ? 10000 : 300000);
	size_t expected = offset >= twin_length ? 0 : twin_length - offset;
	struct iovec iov[8];
	unsigned count = 8;
	struct cl_data_loan *loan;
	ssize_t got;

	if (expected > length)
		expected = length;
	if (pick(3)) {
		ck_assert_int_eq(cl_data_read(handle, NULL, offset, scratch, length),
				 (ssize_t)expected);
		ck_assert_int_eq(memcmp(scratch, twin + offset, expected), 0);
		return;
	}
	got = cl_data_lend(handle, NULL, offset, length, iov, &count, &loan);
	if (got == -E2BIG) {
		ck_assert_ptr_null(loan);
		return;
	}
	ck_assert_int_eq(got, (ssize_t)expected);
	/* What is lent stays as it is. */
	if (expected && !pick(3)) {
		memcpy(scratch, twin, twin_length);
		ck_assert_int_eq(cl_data_write(handle, NULL, offset, "changed", 7), 7);
		for (unsigned i = 0; i < count; offset += iov[i++].iov_len)
			ck_assert_int_eq(memcmp(iov[i].iov_base, twin + offset, iov[i].iov_len), 0);
		offset -= (size_t)got;
		memcpy(twin + offset, "changed", 7);
		if (offset + 7 > twin_length)
			twin_length = offset + 7;
		dirty = true;
	} else {
		for (unsigned i = 0; i < count; offset += iov[i++].iov_len)
			ck_assert_int_eq(memcmp(iov[i].iov_base, twin + offset, iov[i].iov_len), 0);
	}
	cl_data_give_back(loan);
}

static void walk_truncate(struct cl_data_handle *handle)
{
	size_t length = pick(4) ? pick_offset(SIZE) : 0;

	ck_assert_int_eq(cl_data_truncate(handle, NULL, length), 0);
	if (length > twin_length)
		memset(twin + twin_length, 0, length - twin_length);
	dirty |= length != twin_length;
	twin_length = length;
}

/* Store errors until one try succeeds. */
static void walk_flush(struct cl_data_handle *handle)
{
	struct cl_data_version version;
	int error;

	pthread_mutex_lock(&fake.lock);
	if (!pick(4)) {
		fake.store_error = pick(2) ? -ETIMEDOUT : -ENOSPC;
		fake.error_calls = 1 + pick(3);
		fake.applied = fake.store_error == -ETIMEDOUT && pick(2);
	}
	pthread_mutex_unlock(&fake.lock);
	while ((error = cl_data_flush(handle, NULL, pick(2))) != 0)
		if (error != -ETIMEDOUT && error != -ENOSPC)
			ck_abort_msg("flush: %d", error);
	pthread_mutex_lock(&fake.lock);
	fake.store_error = 0;
	ck_assert_uint_eq(fake.length, twin_length);
	ck_assert_int_eq(memcmp(fake.bytes, twin, twin_length), 0);
	pthread_mutex_unlock(&fake.lock);
	version = fake_status(&fake);
	cl_data_update(file, &version);
	dirty = false;
}

/* Another client changes the file, and a status tells. */
static void walk_change(void)
{
	size_t length = 1 + pick(3000), offset = pick_offset(SIZE - length);
	struct cl_data_version version;

	if (dirty)
		return;
	if (pick(3)) {
		fill(scratch, length);
		fake_change(&fake, offset, scratch, length);
		if (offset > twin_length)
			memset(twin + twin_length, 0, offset - twin_length);
		memcpy(twin + offset, scratch, length);
		if (offset + length > twin_length)
			twin_length = offset + length;
	} else {
		twin_length = twin_length ? pick((uint32_t)twin_length) : 0;
		fake_cut(&fake, twin_length);
	}
	version = fake_status(&fake);
	cl_data_update(file, &version);
}

static void walk_fetch_error(struct cl_data_handle *handle)
{
	ssize_t got;

	pthread_mutex_lock(&fake.lock);
	fake.fetch_error = -ETIMEDOUT;
	fake.error_calls = 1;
	pthread_mutex_unlock(&fake.lock);
	got = cl_data_read(handle, NULL, 0, scratch, twin_length);
	pthread_mutex_lock(&fake.lock);
	fake.fetch_error = 0;
	pthread_mutex_unlock(&fake.lock);
	ck_assert(got == -ETIMEDOUT || (got >= 0 && (size_t)got <= twin_length));
	if (got > 0)
		ck_assert_int_eq(memcmp(scratch, twin, (size_t)got), 0);
}

static void start_walk(unsigned seed)
{
	static const struct rxafs_fid fid = {1, 2, 4, 5};
	struct cl_data_options options = {.memory_most = 256 * 1024,
					  .dirty_file_most = 300 * 1024,
					  .dirty_most = 400 * 1024,
					  .ahead_most = 128 * 1024,
					  .block = 16 * 1024,
					  .folder = seed % 2 ? folder : NULL,
					  .disk_most = 512 * 1024};
	struct cl_data_version version;
	char message[200];

	state = seed;
	twin_length = pick(SIZE);
	fill(twin, twin_length);
	fake_start(&fake, twin, twin_length);
	fake.piece = 1 + pick(20000);
	fake.again = !pick(4);
	if (cl_data_create(&options, &fake_ops, &data, message, sizeof(message)))
		ck_abort_msg("%s", message);
	ck_assert_int_eq(cl_data_file_create(data, &fid, "example.org", &fake, &file), 0);
	for (unsigned i = 0; i < 2; i++)
		ck_assert_int_eq(cl_data_open(file, (void *)1, &handles[i]), 0);
	version = fake_status(&fake);
	cl_data_update(file, &version);
	dirty = false;
}

static void end_walk(void)
{
	walk_flush(handles[0]);
	for (unsigned i = 0; i < 2; i++)
		cl_data_close(handles[i]);
	fake_await_unheld(&fake);
	cl_data_file_free(file);
	cl_data_free(data);
	fake_stop(&fake);
}

static void remove_folder(void)
{
	static const char *const names[] = {"lock", "index", "index.new", "blocks"};
	char path[100];

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		unlink(path);
	}
	rmdir(folder);
}

START_TEST(random_walk)
{
	strcpy(folder, "/tmp/test-walk.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	for (unsigned seed = first_seed; seed < first_seed + seeds; seed++) {
		start_walk(seed);
		for (unsigned step = 0; step < STEPS; step++) {
			struct cl_data_handle *handle = handles[pick(2)];
			uint32_t what = pick(20);

			if (getenv("TRACE"))
				fprintf(stderr, "seed %u step %u what %u length %zu\n", seed, step,
					(unsigned)what, twin_length);
			if (what < 7)
				walk_write(handle);
			else if (what < 14)
				walk_read(handle);
			else if (what < 16)
				walk_truncate(handle);
			else if (what < 18)
				walk_flush(handle);
			else if (what < 19)
				walk_change();
			else
				walk_fetch_error(handle);
			ck_assert_uint_eq(cl_data_length(file), twin_length);
		}
		end_walk();
	}
	remove_folder();
}
END_TEST

int main(int argc, char **argv)
{
	const TTest *const tests[] = {random_walk};

	if (argc > 1)
		seeds = (unsigned)atoi(argv[1]);
	if (argc > 2)
		first_seed = (unsigned)atoi(argv[2]);
	return test_main("random contents", 120, tests, 1);
}
