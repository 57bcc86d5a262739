/* SPDX-License-Identifier: BSD-2-Clause */
/* Files of many blocks and slots, which are small in this build of the store: random changes, clones, removals, damage. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/asserts.h"
#include "tests/volume/store/crashdisk.h"
#include "tests/volume/store/store_fixture.h"
#include "volume/store/data/data.h"
#include "volume/store/transfer.h"
#include "volume/store/txn/work.h"

/* -- random changes against a model -- */

#define MODEL_MAX 60000

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

	ck_assert_int_eq(store_volume_clone(store, volume, which ? STORE_BACKUP : STORE_RO, &id),
			 0);
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

/* The file is again as the clone shows it. */
static void revert(int which)
{
	if (!past[which].fid.volume)
		return;
	ck_assert_int_eq(store_volume_revert(store, past[which].fid.volume), 0);
	memcpy(now.bytes, past[which].bytes, MODEL_MAX);
	now.length = past[which].length;
	now.fid = past[which].fid;
	now.fid.volume = volume;
	fixture_same(&now.fid, now.bytes, now.length);
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

	if (what < 920)
		write_some();
	else if (what < 930)
		revert((int)draw(2));
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
	else
		compare_all();
}

/* Nothing is left of a file whose last version is gone. */
static void expect_nothing(void)
{
	fixture_pruned();
	ck_assert_int_eq(store_flush(store), 0);
	ck_assert_int_eq(fixture_rows("SELECT count(*) FROM slot"), 0);
	ck_assert_int_eq(fixture_rows("SELECT count(*) FROM object WHERE refs>0"), 0);
}

START_TEST(random_changes)
{
	fixture_open(STORE_LAZY);
	random_state = (uint64_t)_i + 5;
	now = (struct model){.fid = make(&root, "f", STORE_FILE), .bytes = calloc(1, MODEL_MAX)};
	for (int i = 0; i < 2; i++)
		past[i] = (struct model){.bytes = calloc(1, MODEL_MAX)};
	for (int i = 0; i < 3000; i++) {
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

	fixture_open(STORE_LAZY);
	for (unsigned i = 0; i < 30; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		file[i] = make(&root, name, STORE_FILE);
		ck_assert_int_eq(try_write(&admin, &file[i], 0, name, 5, 40000), 0);
	}
	/* More rows than a step of the removal has. */
	for (unsigned round = 0; round < 12; round++) {
		for (unsigned i = 0; i < 30; i++)
			for (uint64_t k = 0; k < 5; k++)
				ck_assert_int_eq(try_write(&admin, &file[i],
							   5000 * (k + 1) + 300 * round, name, 5,
							   40000),
						 0);
		ck_assert_int_eq(store_volume_clone(store, volume, STORE_RO, &id), 0);
	}
	ck_assert_int_eq(store_volume_remove(store, id), 0);
	ck_assert_int_eq(store_volume_remove(store, volume), 0);
	expect_nothing();
	ck_assert_int_eq(lines, 0);
}
END_TEST

/* -- a file that goes on in another map -- */

#define KEPT (3 * STORE_SLOT)
#define FAR  (80ull * STORE_SLOT)

static uint8_t kept_bytes[KEPT];

/* So many slots that a truncated one gets another map; its first bytes stay. */
static struct store_fid make_far(void)
{
	struct store_fid fid = make(&root, "far", STORE_FILE);

	for (size_t i = 0; i < KEPT; i++)
		kept_bytes[i] = (uint8_t)(i * 7 + i / 251 + 1);
	ck_assert_int_eq(try_write(&admin, &fid, 0, kept_bytes, KEPT, 0), 0);
	ck_assert_int_eq(try_write(&admin, &fid, FAR, kept_bytes, 1000, UINT64_MAX), 0);
	ck_assert_int_eq(store_flush(store), 0);
	return fid;
}

static void cut_to_kept(const struct store_fid *fid)
{
	ck_assert_int_eq(try_write(&admin, fid, 0, "", 0, KEPT), 0);
}

/* All that is dead is given back, and all that a version shows is there. */
static void expect_kept(const struct store_fid *fid)
{
	fixture_pruned();
	ck_assert_int_eq(store_flush(store), 0);
	fixture_pruned();
	ck_assert_int_eq(store_flush(store), 0);
	fixture_same(fid, kept_bytes, KEPT);
	fixture_reopen();
	fixture_same(fid, kept_bytes, KEPT);
	ck_assert_int_eq(lines, 0);
}

START_TEST(another_map)
{
	struct store_fid file;

	fixture_open(STORE_LAZY);
	file = make_far();
	cut_to_kept(&file);
	expect_kept(&file);
	ck_assert_int_eq(fixture_rows("SELECT count(DISTINCT map) FROM slot"), 1);
	ck_assert_int_eq(try_remove(&admin, &root, "far", STORE_FILE), 0);
	expect_nothing();
}
END_TEST

/* The rows that only a clone shows go with it, those of the old map as well. */
START_TEST(another_map_beside_clone)
{
	struct store_fid file;
	uint32_t id;

	fixture_open(STORE_LAZY);
	file = make_far();
	ck_assert_int_eq(store_volume_clone(store, volume, STORE_RO, &id), 0);
	cut_to_kept(&file);
	expect_kept(&file);
	ck_assert_int_eq(store_volume_remove(store, id), 0);
	expect_kept(&file);
	ck_assert_int_eq(try_remove(&admin, &root, "far", STORE_FILE), 0);
	expect_nothing();
}
END_TEST

/* What the file drops in its new map, the clone shows in the old one. */
START_TEST(clone_keeps_old_map)
{
	struct store_fid file, shown;
	struct store_reader *reader;
	uint8_t got[KEPT];
	struct iovec iov = {got, KEPT};
	uint32_t id;

	fixture_open(STORE_LAZY);
	file = make_far();
	ck_assert_int_eq(store_volume_clone(store, volume, STORE_RO, &id), 0);
	shown = file;
	shown.volume = id;
	cut_to_kept(&file);
	ck_assert_int_eq(try_write(&admin, &file, 0, "", 0, STORE_SLOT + STORE_BLOCK), 0);
	fixture_pruned();
	ck_assert_int_eq(store_flush(store), 0);
	fixture_reopen();
	ck_assert_int_eq(store->ops->read_begin(store, &admin, &shown, &reader, &status), 0);
	ck_assert_int_eq(store->ops->read(reader, &iov, 1, 0, 0), KEPT);
	ck_assert_int_eq(store->ops->read_end(reader), 0);
	ck_assert(!memcmp(got, kept_bytes, KEPT));
}
END_TEST

/* The volume goes back to the clone, whose map is the old one. */
START_TEST(reverted_to_old_map)
{
	struct store_fid file;
	uint32_t id;

	fixture_open(STORE_LAZY);
	file = make_far();
	ck_assert_int_eq(store_volume_clone(store, volume, STORE_RO, &id), 0);
	cut_to_kept(&file);
	expect_kept(&file);
	ck_assert_int_eq(store_volume_revert(store, id), 0);
	fixture_pruned();
	ck_assert_int_eq(store_flush(store), 0);
	cut_to_kept(&file);
	expect_kept(&file);
	ck_assert_int_eq(store_volume_remove(store, id), 0);
	expect_kept(&file);
}
END_TEST

#define LEFT_SLOTS 1500u

static void write_each_slot(const struct store_fid *fid, const char *byte)
{
	for (uint64_t i = 0; i < LEFT_SLOTS; i++)
		ck_assert_int_eq(
			try_write(&admin, fid, i * STORE_SLOT, byte, 1, LEFT_SLOTS * STORE_SLOT),
			0);
}

/* Rows of a map that the file has left go in the background, also after the volume has gone back to a version with that map. */
START_TEST(reverted_while_rows_go)
{
	const uint64_t last = (LEFT_SLOTS - 1) * (uint64_t)STORE_SLOT;
	struct store_fid file;
	uint32_t id;

	fixture_open(STORE_LAZY);
	file = make(&root, "left", STORE_FILE);
	ck_assert_int_eq(try_write(&admin, &file, last, "a", 1, UINT64_MAX), 0);
	ck_assert_int_eq(store_volume_clone(store, volume, STORE_RO, &id), 0);
	write_each_slot(&file, "b");
	ck_assert_int_eq(try_write(&admin, &file, 0, "", 0, STORE_SLOT + 1), 0);
	ck_assert_int_eq(store_volume_revert(store, id), 0);
	ck_assert_int_eq(try_write(&admin, &file, last, "c", 1, UINT64_MAX), 0);
	fixture_reopen();
	ck_assert_int_eq(byte_at(&file, 0), 0);
	ck_assert_int_eq(byte_at(&file, last - STORE_SLOT), 0);
	ck_assert_int_eq(byte_at(&file, last), 'c');
	fixture_pruned();
	ck_assert_int_eq(byte_at(&file, last - STORE_SLOT), 0);
	ck_assert_int_eq(byte_at(&file, last), 'c');
	ck_assert_int_eq(store_volume_remove(store, id), 0);
	ck_assert_int_eq(try_remove(&admin, &root, "left", STORE_FILE), 0);
	expect_nothing();
}
END_TEST

/* -- what a commit does to a file of many slots -- */

#define SLOTS  8192u
#define LENGTH ((uint64_t)SLOTS * STORE_SLOT)
/* Rows of the file, its directory, the volume, the slot and its objects, which are read and written. */
#define ROWS 24
/* Nodes of one way from the root of a map to a slot. */
#define NODES 5
/* Rows of slots that one step of the background removes. */
#define DROPPED 64

static void expect_costs(const char *what, uint32_t rows)
{
	struct store_commit_costs costs;

	store_commit_costs(store, &costs);
	ck_assert_msg(costs.rows <= rows, "%s: %u rows", what, costs.rows);
}

static void write_byte(const char *what, const struct store_fid *fid, uint64_t offset)
{
	uint64_t nodes = store_content_nodes();

	ck_assert_int_eq(try_write(&admin, fid, offset, "x", 1, LENGTH), 0);
	expect_costs(what, ROWS);
	nodes = store_content_nodes() - nodes;
	ck_assert_msg(nodes <= NODES, "%s: %u nodes", what, (unsigned)nodes);
}

/* Without the nodes, which are made when a map is loaded. */
static void write_byte_cold(const char *what, const struct store_fid *fid, uint64_t offset)
{
	fixture_close();
	fixture_open_again();
	expect_costs("opening", UINT32_MAX);
	ck_assert_int_eq(try_write(&admin, fid, offset, "x", 1, LENGTH), 0);
	expect_costs(what, ROWS);
}

/* However many slots a file has, each commit reads and writes the rows of a few. */
START_TEST(many_slots)
{
	struct store_fid fid;
	uint32_t id;

	fixture_open(STORE_LAZY);
	fid = make(&root, "long", STORE_FILE);
	expect_costs("creation", UINT32_MAX);
	write_byte("the last byte", &fid, LENGTH - 1);
	for (uint32_t i = 0; i < SLOTS; i++)
		write_byte("a new slot", &fid, (uint64_t)(i * 5 % SLOTS) * STORE_SLOT + 7);
	ck_assert_int_eq(fixture_rows("SELECT count(*) FROM slot"), SLOTS - 1);
	write_byte_cold("cold", &fid, LENGTH / 2 + 9);
	write_byte("an old slot", &fid, LENGTH / 2 + 10);
	ck_assert_int_eq(store_volume_clone(store, volume, STORE_RO, &id), 0);
	expect_costs("clone", ROWS);
	write_byte("after a clone", &fid, LENGTH / 2 + 11);
	write_byte("append", &fid, LENGTH + 1);
	write_byte_cold("cold, after a clone", &fid, 12);
	ck_assert_int_eq(fixture_check(), 0);
	expect_costs("check", ROWS);

	/* The clone keeps all of it: an empty row for each slot that goes. */
	ck_assert_int_eq(try_write(&admin, &fid, 0, "", 0, LENGTH / 2), 0);
	ck_assert_uint_eq(status.length, LENGTH / 2);
	expect_costs("half of it goes", ROWS * (WORK_ROWS + 1));
	ck_assert_int_eq(store_volume_remove(store, id), 0);
	fixture_pruned();
	expect_costs("pruning", ROWS * DROPPED);
	ck_assert_int_eq(fixture_check(), 0);
	ck_assert_int_eq(fixture_rows("SELECT count(*) FROM slot WHERE length(data)>6"),
			 SLOTS / 2 - 1);
	ck_assert_int_eq(try_write(&admin, &fid, 0, "", 0, LENGTH / 4), 0);
	expect_costs("a quarter of it goes", ROWS * (WORK_ROWS + 1));
	ck_assert_int_eq(try_remove(&admin, &root, "long", STORE_FILE), 0);
	expect_costs("removal", ROWS * DROPPED);
	fixture_pruned();
	expect_costs("removal of rows", ROWS * DROPPED);
	expect_nothing();
}
END_TEST

#define REVERTED	600u
#define REVERTED_LENGTH ((REVERTED - 1) * STORE_SLOT + 4)
/* Rows of slots that a step of a revert writes, and of other files that it reads. */
#define REVERT_ROWS (ROWS * (4 * WORK_ROWS + 1))

static void write_slots(const struct store_fid *fid, uint32_t step, const char *byte)
{
	for (uint32_t i = 0; i < REVERTED; i += step)
		ck_assert_int_eq(
			try_write(&admin, fid, (uint64_t)i * STORE_SLOT + 3, byte, 1, UINT64_MAX),
			0);
}

/* `dropped`: rows of the map that the file had, of which the step or the background removes so many in a transaction. */
static void revert_slots(const char *what, const struct store_fid *fid, uint32_t clone,
			 uint32_t dropped)
{
	static uint8_t want[REVERTED_LENGTH];

	for (uint32_t i = 0; i < REVERTED; i++)
		want[i * STORE_SLOT + 3] = 'x';
	fixture_pruned();
	expect_costs("before", UINT32_MAX);
	ck_assert_int_eq(store_volume_revert(store, clone), 0);
	expect_costs(what, REVERT_ROWS + ROWS * dropped);
	fixture_same(fid, want, sizeof(want));
	fixture_reopen();
	fixture_same(fid, want, sizeof(want));
	ck_assert_int_eq(lines, 0);
}

/* A revert reads long maps before its transactions, each of which has a few rows. */
START_TEST(reverted_slots)
{
	struct store_fid fid;
	uint32_t id, other;

	fixture_open(STORE_LAZY);
	fid = make(&root, "long", STORE_FILE);
	write_slots(&fid, 1, "x");
	ck_assert_int_eq(store_volume_clone(store, volume, STORE_RO, &id), 0);
	write_slots(&fid, 1, "y");
	revert_slots("all slots", &fid, id, 0);
	write_slots(&fid, 50, "z");
	ck_assert_int_eq(store_volume_clone(store, volume, STORE_BACKUP, &other), 0);
	revert_slots("some slots, which another clone shows", &fid, id, 0);
	ck_assert_int_eq(try_write(&admin, &fid, 0, "", 0, 0), 0);
	revert_slots("a cut file", &fid, id, DROPPED);
	ck_assert_int_eq(try_write(&admin, &fid, REVERTED * 2ull * STORE_SLOT, "w", 1, UINT64_MAX),
			 0);
	revert_slots("a longer file", &fid, id, DROPPED);
	ck_assert_int_eq(try_remove(&admin, &root, "long", STORE_FILE), 0);
	revert_slots("a removed file", &fid, id, DROPPED);
	ck_assert_int_eq(store_volume_remove(store, id), 0);
	ck_assert_int_eq(store_volume_remove(store, other), 0);
	ck_assert_int_eq(try_remove(&admin, &root, "long", STORE_FILE), 0);
	expect_nothing();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("tiny");
	TCase *tcase = tcase_create("tiny");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 300);
	tcase_add_checked_fixture(tcase, fixture_start, fixture_end);
	tcase_add_test(tcase, removed_volume);
	tcase_add_test(tcase, another_map);
	tcase_add_test(tcase, another_map_beside_clone);
	tcase_add_test(tcase, clone_keeps_old_map);
	tcase_add_test(tcase, reverted_to_old_map);
	tcase_add_test(tcase, reverted_while_rows_go);
	tcase_add_test(tcase, many_slots);
	tcase_add_test(tcase, reverted_slots);
	tcase_add_loop_test(tcase, random_changes, 0, 8);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
