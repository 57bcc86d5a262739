/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads and writes of one file, with a server that counts the calls. */
#include "client/data/filestate.h"
#include "one_file.h"
#include "tests/main.h"

/* A file is read by few calls, then by none; ends of files and holes behind them. */
START_TEST(reading)
{
	size_t length = 16 * MIB;
	unsigned char *bytes = make_bytes(length, 1), *got = malloc(length);

	set_up(length, NULL);
	for (size_t at = 0; at < length; at += 128 * KIB)
		check_read(at, bytes + at, 128 * KIB);
	fake_await_idle(&fake);
	ck_assert_uint_le(fake.fetches, 66);
	ck_assert_uint_eq(fake.fetched, length);
	fake.fetches = 0;
	check_read(0, bytes, length);
	check_read(12345, bytes + 12345, 777777);
	ck_assert_uint_eq(fake.fetches, 0);
	ck_assert_int_eq(cl_data_read(handle, NULL, length, got, 10), 0);
	ck_assert_int_eq(cl_data_read(handle, NULL, length - 5, got, 10), 5);
	ck_assert_uint_eq(cl_data_length(file), length);
	free(bytes);
	free(got);
	tear_down();
}
END_TEST

/* 500 small writes are one call; what was written is read without a call. */
START_TEST(writing)
{
	size_t length = 500 * 4 * KIB;
	unsigned char *bytes = make_bytes(length, 2);

	set_up(0, NULL);
	for (size_t at = 0; at < length; at += 4 * KIB)
		write_bytes(at, bytes + at, 4 * KIB);
	ck_assert_uint_eq(cl_data_length(file), length);
	check_read(0, bytes, length);
	ck_assert_int_eq(cl_data_flush(handle, NULL, false), 0);
	ck_assert_uint_eq(fake.stores, 1);
	check_server(bytes, length);
	check_read(0, bytes, length);
	ck_assert_uint_eq(fake.fetches, 0);
	/* Nothing is left to do. */
	ck_assert_int_eq(cl_data_flush(handle, NULL, false), 0);
	ck_assert_uint_eq(fake.stores, 1);
	free(bytes);
	tear_down();
}
END_TEST

/* Bytes within a file that was not read are stored alone. */
START_TEST(patching)
{
	size_t length = 3 * MIB;
	unsigned char *bytes = make_bytes(length, 1);

	set_up(length, NULL);
	memcpy(bytes + 1000, "hello", 5);
	memcpy(bytes + MIB - 2, "over a border", 13);
	write_bytes(1000, "hello", 5);
	write_bytes(MIB - 2, "over a border", 13);
	ck_assert_int_eq(cl_data_flush(handle, NULL, false), 0);
	ck_assert_uint_eq(fake.stores, 2);
	ck_assert_uint_eq(fake.stored, 18);
	ck_assert_uint_eq(fake.fetches, 0);
	check_server(bytes, length);
	check_read(0, bytes, length);
	free(bytes);
	tear_down();
}
END_TEST

/* The kinds of truncation, and how many calls they need (K-074, K-075). */
/* A long write takes no new memory for each of its parts. */
START_TEST(long_writes_use_memory_again)
{
	const size_t part = STORE_CHUNK, parts = 8;
	const struct cl_data_options options = {.memory_most = 2 * parts * part};
	unsigned char *bytes = make_bytes(parts * part, 3);

	set_up(0, &options);
	for (size_t i = 0; i < parts; i++) {
		write_bytes(i * part, bytes + i * part, part);
		ck_assert_int_eq(cl_data_flush(handle, NULL, false), 0);
	}
	ck_assert_uint_le(atomic_load(&data->memory), 2 * part);
	check_server(bytes, parts * part);
	check_read(0, bytes, parts * part);
	tear_down();
	free(bytes);
}
END_TEST

START_TEST(truncating)
{
	unsigned char *bytes = make_bytes(600 * KIB, 1), zeros[1000] = {0};

	set_up(600 * KIB, NULL);
	check_read(0, bytes, 600 * KIB);
	/* open(O_TRUNC), write, close. */
	ck_assert_int_eq(cl_data_truncate(handle, NULL, 0), 0);
	ck_assert_uint_eq(cl_data_length(file), 0);
	write_bytes(0, "new", 3);
	ck_assert_int_eq(cl_data_flush(handle, NULL, false), 0);
	ck_assert_uint_eq(fake.stores, 1);
	check_server("new", 3);
	/* Longer. */
	ck_assert_int_eq(cl_data_truncate(handle, NULL, 1000), 0);
	ck_assert_uint_eq(cl_data_length(file), 1000);
	check_read(3, zeros, 997);
	ck_assert_int_eq(cl_data_flush(handle, NULL, false), 0);
	ck_assert_uint_eq(fake.stores, 2);
	ck_assert_uint_eq(fake.length, 1000);
	/* Shorter, and behind it a write: two calls. */
	ck_assert_int_eq(cl_data_truncate(handle, NULL, 2), 0);
	write_bytes(500, "x", 1);
	check_read(2, zeros, 498);
	ck_assert_int_eq(cl_data_flush(handle, NULL, false), 0);
	ck_assert_uint_eq(fake.stores, 4);
	ck_assert_uint_eq(fake.length, 501);
	memset(bytes, 0, 501);
	memcpy(bytes, "ne", 2);
	bytes[500] = 'x';
	check_server(bytes, 501);
	check_read(0, bytes, 501);
	free(bytes);
	tear_down();
}
END_TEST

TEST_MAIN_WITHIN(30, "contents", reading, writing, patching,
		 long_writes_use_memory_again, truncating)
