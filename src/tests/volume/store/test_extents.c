/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests of large files with many extents: lists in rows, clones, readers, what a write copies, and
 * merging in the background.
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

/* -- random changes against a model -- */

#define MODEL_MAX 300000

struct model {
	struct store_fid fid; /* volume 0: it is not there */
	uint8_t *bytes;
	uint64_t length;
};

/* The file, and as its two clones show it. */
static struct model now, past[2];
static uint64_t random_state;

static uint64_t draw(uint64_t below)
{
	return crashdisk_random(&random_state) % below;
}

static void write_some(void)
{
	static uint8_t data[MODEL_MAX];
	bool large = draw(60) == 0;
	uint64_t offset = draw(MODEL_MAX - 300);
	uint64_t length = 1 + draw(large ? MODEL_MAX - offset : 300);
	uint64_t end = offset + length, file_length = now.length;

	if (draw(150) == 0)
		file_length = draw(MODEL_MAX);
	for (uint64_t i = 0; i < length; i++)
		data[i] = (uint8_t)draw(256);
	ck_assert_int_eq(try_write(&admin, &now.fid, offset, data, length, file_length), 0);
	if (file_length < now.length)
		memset(now.bytes + file_length, 0, MODEL_MAX - file_length);
	memcpy(now.bytes + offset, data, length);
	now.length = file_length < now.length ? file_length : now.length;
	now.length = now.length > end ? now.length : end;
	ck_assert_uint_eq(status.length, now.length);
}

static void cut(void)
{
	uint64_t length = draw(4) ? draw(MODEL_MAX) : draw(20);

	if (length > now.length)
		return;
	ck_assert_int_eq(try_write(&admin, &now.fid, length, "", 0, length), 0);
	memset(now.bytes + length, 0, MODEL_MAX - length);
	now.length = length;
}

static void make_clone(int which)
{
	uint32_t id;

	ck_assert_int_eq(
		store_volume_clone(store, volume, which ? STORE_BACKUP : STORE_RO, &id), 0);
	memcpy(past[which].bytes, now.bytes, MODEL_MAX);
	past[which].length = now.length;
	past[which].fid = now.fid;
	past[which].fid.volume = id;
}

static void drop_clone(int which)
{
	if (!past[which].fid.volume)
		return;
	ck_assert_int_eq(store_volume_remove(store, past[which].fid.volume), 0);
	past[which].fid.volume = 0;
}

/* Another file under the name, and perhaps the number, of the old one. */
static void replace(void)
{
	ck_assert_int_eq(try_remove(&admin, &root, "f", STORE_FILE), 0);
	now.fid = make(&root, "f", STORE_FILE);
	memset(now.bytes, 0, MODEL_MAX);
	now.length = 0;
}

static void compare_all(void)
{
	fixture_same(&now.fid, now.bytes, now.length);
	for (int i = 0; i < 2; i++)
		if (past[i].fid.volume)
			fixture_same(&past[i].fid, past[i].bytes, past[i].length);
}

static void change_once(void)
{
	uint64_t what = draw(1000);


	if (what < 930)
		write_some();
	else if (what < 945)
		cut();
	else if (what < 965)
		make_clone((int)draw(2));
	else if (what < 972)
		drop_clone((int)draw(2));
	else if (what < 980)
		replace();
	else if (what < 985)
		fixture_reopen();
	else if (what < 992)
		ck_assert_int_eq(store_merge(store), 0);
	else
		compare_all();
}

/* Nothing is left of a file whose last version is gone. */
static void expect_nothing(void)
{
	fixture_pruned();
	ck_assert_int_eq(store_flush(store), 0);
	ck_assert_int_eq(fixture_rows("SELECT count(*) FROM page WHERE vnode%2=0"), 0);
	ck_assert_int_eq(fixture_rows("SELECT count(*) FROM object WHERE NOT dead"), 0);
}

START_TEST(random_changes)
{
	static const unsigned most[] = {6, 12, 60, 0};

	fixture_extents(most[_i % 4]);
	/* Beside the writer, or between its writes only. */
	fixture_merge(_i < 4 ? 1 : STORE_MERGE_NEVER);
	fixture_open(STORE_LAZY);
	random_state = (uint64_t)_i + 5;
	now = (struct model){.fid = make(&root, "f", STORE_FILE), .bytes = calloc(1, MODEL_MAX)};
	for (int i = 0; i < 2; i++)
		past[i] = (struct model){.bytes = calloc(1, MODEL_MAX)};
	for (int i = 0; i < (_i < 4 ? 3000 : 6000); i++) {
		change_once();
		if (i % 300 == 0)
			fixture_pruned();
	}
	compare_all();
	fixture_reopen();
	compare_all();
	ck_assert_int_eq(lines, 0);
	ck_assert_int_eq(try_remove(&admin, &root, "f", STORE_FILE), 0);
	fixture_pruned();
	drop_clone(0);
	drop_clone(1);
	expect_nothing();
	free(now.bytes);
	free(past[0].bytes);
	free(past[1].bytes);
}
END_TEST

/* A volume that is removed as a whole takes the lists of its files along. */
START_TEST(removed_volume)
{
	struct store_fid file[30];
	char name[20];
	uint32_t id;

	fixture_extents(6);
	fixture_open(STORE_LAZY);
	for (unsigned i = 0; i < 30; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		file[i] = make(&root, name, STORE_FILE);
		ck_assert_int_eq(try_write(&admin, &file[i], 0, name, 5, 200000), 0);
	}
	/* More rows than a step of the removal has. */
	for (unsigned round = 0; round < 12; round++) {
		for (unsigned i = 0; i < 30; i++)
			for (uint64_t k = 0; k < 5; k++)
				ck_assert_int_eq(try_write(&admin, &file[i],
							   10000 * (k + 1) + 300 * round, name, 5,
							   200000),
						 0);
		ck_assert_int_eq(store_volume_clone(store, volume, STORE_RO, &id), 0);
	}
	ck_assert_int_eq(store_volume_remove(store, id), 0);
	ck_assert_int_eq(store_volume_remove(store, volume), 0);
	expect_nothing();
	ck_assert_int_eq(lines, 0);
}
END_TEST

/* -- what a write copies -- */

#define LARGE  ((uint64_t)64 << 20)
#define WRITES 3000
/* Three neighbours of a list with as many extents as it may have, and the page itself. */
#define COPIED (3 * (LARGE / (store_extents_limit(LARGE) - 2)) + PAGE)

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

/*
 * A page costs a few of its size, in a file of 64 MiB whose list is full and which a clone shares.
 */
START_TEST(bytes_of_a_write)
{
	struct store_fid large, shared;
	uint64_t copies = 0;
	uint32_t id;

	fixture_merge(STORE_MERGE_NEVER);
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
		ck_assert_uint_le(spy->data_read, COPIED);
		ck_assert_uint_le(spy->data_written, COPIED);
		copies += spy->data_written > PAGE;
	}
	/* The list was full, and the file has few objects nevertheless. */
	ck_assert_uint_gt(copies, 300);
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

/* -- merging -- */

static int rows_of_lists(void)
{
	return fixture_rows("SELECT count(*) FROM page WHERE vnode%2=0");
}

static int objects(void)
{
	return fixture_rows("SELECT count(*) FROM object WHERE NOT dead");
}

/* A file that was rewritten in many places has few objects again, and its clone the old bytes. */
START_TEST(merged)
{
	struct store_fid large, shared;
	struct store_status before;
	uint32_t id;

	fixture_merge(STORE_MERGE_NEVER);
	fixture_open(STORE_LAZY);
	random_state = 11;
	large = make_large();
	ck_assert_int_eq(store_volume_clone(store, volume, STORE_RO, &id), 0);
	memcpy(clone_seed, page_seed, sizeof(page_seed));
	for (uint32_t i = 1; i <= WRITES; i++)
		write_page(&large, draw(LARGE / PAGE), i);
	before = status;
	ck_assert_int_eq(store_merge(store), 0);
	store_stats(store, &stats);
	ck_assert_uint_eq(stats.merging, 0);
	ck_assert_uint_gt(stats.merged_extents, 900);
	/* Nobody is told of it. */
	ck_assert_int_eq(try_status(&admin, &large), 0);
	ck_assert_uint_lt(status.pieces, before.pieces / 50);
	before.pieces = status.pieces;
	ck_assert_mem_eq(&status, &before, sizeof(before));
	expect_pages(&large, page_seed);
	shared = large;
	shared.volume = id;
	expect_pages(&shared, clone_seed);
	ck_assert_int_eq(fixture_check(), 0);
	ck_assert_int_eq(rows_of_lists(), 0);
	ck_assert_int_le(objects(), 10);
	expect_pages(&large, page_seed);
	expect_pages(&shared, clone_seed);
	ck_assert_int_eq(store_volume_remove(store, id), 0);
	fixture_pruned();
	expect_pages(&large, page_seed);
}
END_TEST

/* A file of which a clone shows most keeps sharing it. */
START_TEST(shared_stay)
{
	struct store_fid large;
	uint32_t id;

	fixture_merge(STORE_MERGE_NEVER);
	fixture_open(STORE_LAZY);
	large = make_large();
	ck_assert_int_eq(store_volume_clone(store, volume, STORE_RO, &id), 0);
	for (uint32_t i = 1; i <= 100; i++)
		write_page(&large, i * 50, i);
	ck_assert_int_eq(store_merge(store), 0);
	store_stats(store, &stats);
	ck_assert_uint_eq(stats.merged_bytes, 0);
	/* Without the clone it pays to have half as many. */
	ck_assert_int_eq(store_volume_remove(store, id), 0);
	fixture_pruned();
	for (uint32_t i = 1; i <= 100; i++)
		write_page(&large, i * 50 + 25, i);
	ck_assert_int_eq(store_merge(store), 0);
	store_stats(store, &stats);
	ck_assert_uint_gt(stats.merged_extents, 100);
	expect_pages(&large, page_seed);
}
END_TEST

/* The background merges what is left alone, and what has a long list at once. */
START_TEST(merged_alone)
{
	struct store_fid large;

	fixture_merge(1);
	fixture_open(STORE_LAZY);
	random_state = 12;
	large = make_large();
	for (uint32_t i = 1; i <= 1000; i++)
		write_page(&large, draw(LARGE / PAGE), i);
	fixture_merged();
	ck_assert_uint_gt(stats.merged_extents, 500);
	ck_assert_int_le(objects(), 80);
	expect_pages(&large, page_seed);
	ck_assert_int_eq(fixture_check(), 0);
	/* A file that is only read is merged after a restart. */
	fixture_close();
	fixture_merge(3600000);
	fixture_open_again();
	for (uint32_t i = 1; i <= 200; i++)
		write_page(&large, draw(LARGE / PAGE), i);
	store_stats(store, &stats);
	ck_assert_uint_eq(stats.merging, 1);
	ck_assert_uint_eq(stats.merged_extents, 0);
	fixture_close();
	fixture_merge(1);
	fixture_open_again();
	expect_pages(&large, page_seed);
	fixture_merged();
	ck_assert_uint_gt(stats.merged_extents, 100);
	expect_pages(&large, page_seed);
	/* A store that is closed meanwhile is sound. */
	for (uint32_t i = 1; i <= 600; i++)
		write_page(&large, draw(LARGE / PAGE), i);
	fixture_reopen();
	expect_pages(&large, page_seed);
}
END_TEST

/* Pages in any order share objects: about twice the root of their number. */
START_TEST(few_objects)
{
	struct store_fid large;

	fixture_merge(STORE_MERGE_NEVER);
	fixture_open(STORE_LAZY);
	random_state = 4;
	large = make_large();
	for (uint32_t i = 1; i <= 400; i++)
		write_page(&large, draw(LARGE / PAGE), i);
	ck_assert_int_le(fixture_rows("SELECT count(*) FROM object WHERE NOT dead"), 80);
	expect_pages(&large, page_seed);
	/* A list of several rows: each write changes at most two of them. */
	ck_assert_int_gt(fixture_rows("SELECT count(*) FROM page WHERE vnode%2=0"), 6);
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

/* -- damage -- */

static struct store_fid make_fragments(const char *name)
{
	struct store_fid file = make(&root, name, STORE_FILE);

	for (uint64_t i = 0; i < 40; i++)
		ck_assert_int_eq(
			try_write(&admin, &file, 1000 * (i * 7 % 40), "text", 4, 40000), 0);
	return file;
}

static void expect_damage(const struct store_fid *bad, const struct store_fid *good)
{
	lines = 0;
	ck_assert_int_eq(try_read(&admin, bad), -EIO);
	ck_assert_int_eq(try_write(&admin, bad, 0, "x", 1, 40000), -EIO);
	ck_assert_int_eq(try_status(&admin, bad), -EIO);
	ck_assert_int_eq(lines, 1);
	ck_assert_int_eq(byte_at(good, 39000), 't');
	ck_assert_int_eq(try_write(&admin, good, 0, "x", 1, 40000), 0);
	ck_assert_int_gt(fixture_check(), 0);
}

START_TEST(damaged_rows)
{
	struct store_fid first, second, third, good;

	fixture_extents(12);
	fixture_open(STORE_LAZY);
	first = make_fragments("a");
	second = make_fragments("b");
	third = make_fragments("c");
	good = make_fragments("d");
	faults_expected = true;
	fixture_sql("UPDATE page SET data=CAST(substr(data,1,20)||'x'||substr(data,22) AS BLOB)"
		    " WHERE vnode=2 AND page=1");
	expect_damage(&first, &good);
	fixture_sql("DELETE FROM page WHERE vnode=4 AND page=2");
	expect_damage(&second, &good);
	/* The row of another part of the same list. */
	fixture_sql("UPDATE page SET data=(SELECT data FROM page WHERE vnode=6 AND page=3)"
		    " WHERE vnode=6 AND page=2");
	expect_damage(&third, &good);
	fixture_reopen();
	ck_assert_int_eq(byte_at(&good, 0), 'x');
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {removed_volume, bytes_of_a_write, few_objects, old_version,
				      damaged_rows,   merged,		shared_stay, merged_alone};
	Suite *suite = suite_create("extents");
	TCase *tcase = tcase_create("extents");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 300);
	tcase_add_checked_fixture(tcase, fixture_start, fixture_end);
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		tcase_add_test(tcase, tests[i]);
	tcase_add_loop_test(tcase, random_changes, 0, 8);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
