/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests of large files: maps in rows, clones, readers, what a write copies.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/asserts.h"
#include "tests/volume/store/crashdisk.h"
#include "tests/volume/store/spy.h"
#include "tests/volume/store/store_fixture.h"
#include "volume/store/data/data.h"

#define PAGE 4096

static uint64_t random_state;

static uint64_t draw(uint64_t below)
{
	return crashdisk_random(&random_state) % below;
}

/* Nothing is left of a file whose last version is gone. */
static void expect_nothing(void)
{
	fixture_pruned();
	ck_assert_int_eq(store_flush(store), 0);
	ck_assert_int_eq(fixture_rows("SELECT count(*) FROM slot"), 0);
	ck_assert_int_eq(fixture_rows("SELECT count(*) FROM object WHERE refs>0"), 0);
}

/* -- what a write copies -- */

#define LARGE  ((uint64_t)64 << 20)
#define WRITES 3000
/* The block of a page, which is read as a whole for its checksum, and its end once more. */
#define READ (2 * STORE_BLOCK)

static struct spy *spy;
static uint32_t page_seed[LARGE / PAGE], clone_seed[LARGE / PAGE];

static void fill(uint8_t page[PAGE], uint64_t number, uint32_t seed)
{
	for (uint32_t i = 0; i < PAGE; i += 4)
		memcpy(page + i, &(uint32_t){(uint32_t)number * 4096 + i / 4 + seed * 77777777}, 4);
}

static void write_page(const struct store_fid *fid, uint64_t number, uint32_t seed)
{
	uint8_t page[PAGE];

	fill(page, number, seed);
	ck_assert_int_eq(try_write(&admin, fid, number * PAGE, page, PAGE, LARGE), 0);
	page_seed[number] = seed;
}

static void expect_pages(const struct store_fid *fid, const uint32_t *seed)
{
	static uint8_t got[256 * PAGE], want[PAGE];
	struct iovec iov = {.iov_base = got, .iov_len = sizeof(got)};
	struct store_reader *reader;

	ck_assert_int_eq(store->ops->read_begin(store, &admin, fid, &reader, &status), 0);
	for (uint64_t at = 0; at < LARGE; at += sizeof(got)) {
		ck_assert_int_eq(store->ops->read(reader, &iov, 1, at, 0), sizeof(got));
		for (uint64_t i = 0; i < sizeof(got) / PAGE; i++) {
			fill(want, at / PAGE + i, seed[at / PAGE + i]);
			ck_assert_msg(!memcmp(want, got + i * PAGE, PAGE), "page %llu",
				      (unsigned long long)(at / PAGE + i));
		}
	}
	ck_assert_int_eq(store->ops->read_end(reader), 0);
}

static struct store_fid make_large(void)
{
	static uint8_t bytes[1 << 20];
	struct store_fid fid = make(&root, "large", STORE_FILE);
	struct iovec iov = {.iov_base = bytes, .iov_len = sizeof(bytes)};
	struct store_writer *writer;

	memset(page_seed, 0, sizeof(page_seed));
	ck_assert_int_eq(try_begin(&admin, &fid, 0, LARGE, LARGE, &writer), 0);
	for (uint64_t at = 0; at < LARGE; at += sizeof(bytes)) {
		for (uint64_t i = 0; i < sizeof(bytes) / PAGE; i++)
			fill(bytes + i * PAGE, at / PAGE + i, 0);
		ck_assert_int_eq(store->ops->write(writer, &iov, 1), 0);
	}
	ck_assert_int_eq(store->ops->write_commit(writer, &status, &changes), 0);
	return fid;
}

/* A page costs its block, in a file of 64 MiB that a clone shares. */
START_TEST(bytes_of_a_write)
{
	struct store_fid large, shared;
	uint32_t id;

	fixture_open(STORE_LAZY);
	fixture_close();
	spy = spy_on(fixture_path());
	fixture_layer(&spy->layer);
	fixture_open_again();
	random_state = 9;
	large = make_large();
	for (uint32_t i = 1; i <= WRITES; i++) {
		if (i == 1 || i == WRITES / 2) {
			ck_assert_int_eq(store_volume_clone(store, volume, STORE_RO, &id), 0);
			memcpy(clone_seed, page_seed, sizeof(page_seed));
		}
		spy_reset(spy);
		write_page(&large, draw(LARGE / PAGE), i);
		ck_assert_uint_le(spy->data_read, READ);
		ck_assert_uint_le(spy->data_written, STORE_BLOCK);
	}
	expect_pages(&large, page_seed);
	shared = large;
	shared.volume = id;
	expect_pages(&shared, clone_seed);
	ck_assert_int_eq(fixture_check(), 0);
	fixture_close();
	spy_free(spy);
	fixture_layer(NULL);
	fixture_open_again();
	expect_pages(&large, page_seed);
	expect_pages(&shared, clone_seed);
	ck_assert_int_eq(store_volume_remove(store, id), 0);
	fixture_pruned();
	expect_pages(&large, page_seed);
}
END_TEST

/* Blocks in any order share objects. */
START_TEST(few_objects)
{
	struct store_fid large;

	fixture_open(STORE_LAZY);
	random_state = 4;
	large = make_large();
	for (uint32_t i = 1; i <= 400; i++)
		write_page(&large, draw(LARGE / PAGE), i);
	ck_assert_int_le(fixture_rows("SELECT count(*) FROM object WHERE refs>0"), 80);
	expect_pages(&large, page_seed);
	/* Of each slot beyond the first one a row, which is replaced. */
	ck_assert_int_eq(fixture_rows("SELECT count(*) FROM slot"), LARGE / STORE_SLOT - 1);
}
END_TEST

/* A reader keeps its version, though it opens files only when it reads. */
START_TEST(old_version)
{
	static uint8_t got[PAGE], want[PAGE];
	struct iovec iov = {.iov_base = got, .iov_len = PAGE};
	struct store_reader *reader;
	struct store_fid large;

	fixture_open(STORE_LAZY);
	random_state = 6;
	large = make_large();
	for (uint32_t i = 1; i <= 200; i++)
		write_page(&large, draw(LARGE / PAGE), i);
	memcpy(clone_seed, page_seed, sizeof(page_seed));
	ck_assert_int_eq(store->ops->read_begin(store, &admin, &large, &reader, &status), 0);
	ck_assert_int_eq(try_write(&admin, &large, 0, "x", 1, 1), 0);
	/* Objects of the version that was read are removed after a flush. */
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(store_flush(store), 0);
	store->ops->read_ahead(reader, 0, LARGE);
	for (uint64_t i = 0; i < LARGE / PAGE; i++) {
		fill(want, i, clone_seed[i]);
		ck_assert_int_eq(store->ops->read(reader, &iov, 1, i * PAGE, 0), PAGE);
		ck_assert_mem_eq(got, want, PAGE);
	}
	ck_assert_int_eq(store->ops->read_end(reader), 0);
	ck_assert_int_eq(fixture_check(), 0);
	ck_assert_int_eq(try_remove(&admin, &root, "large", STORE_FILE), 0);
	expect_nothing();
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {bytes_of_a_write, few_objects, old_version};
	Suite *suite = suite_create("blocks");
	TCase *tcase = tcase_create("blocks");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 300);
	tcase_add_checked_fixture(tcase, fixture_start, fixture_end);
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		tcase_add_test(tcase, tests[i]);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
