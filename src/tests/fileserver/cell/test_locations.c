/* SPDX-License-Identifier: BSD-2-Clause */
/* The database of locations: names and ids are unique, locks exclude, and all of it is there after a restart. */
#include "tests/fileserver/cell/cell_store.h"

#include <string.h>

#include "afs/numbers.h"

static const struct fsd_cell_options plain;
static struct fsd_location entry;

static struct fsd_location make_entry(const char *name, uint32_t rw, uint32_t ro, uint32_t backup)
{
	struct fsd_location made = {
		.id = {rw, ro, backup}, .flags = 0x1000, .count = 1, .site[0] = {FSD_HERE, 0, 4}};

	snprintf(made.name, sizeof(made.name), "%s", name);
	return made;
}

static int32_t put(uint32_t old, const char *name, uint32_t rw, uint32_t ro, uint32_t backup)
{
	struct fsd_location made = make_entry(name, rw, ro, backup);

	return fsd_location_put(cell, old, &made);
}

START_TEST(unique)
{
	make_cell(&plain);
	ck_assert_int_eq(put(0, "a", 10, 11, 12), 0);
	ck_assert_int_eq(put(0, "b", 20, 0, 0), 0);
	ck_assert_int_eq(put(0, "a", 30, 0, 0), AFS_VL_NAMEEXIST);
	ck_assert_int_eq(put(0, "c", 12, 0, 0), AFS_VL_IDEXIST);
	ck_assert_int_eq(put(0, "c", 30, 0, 10), AFS_VL_IDEXIST);
	ck_assert_int_eq(put(0, "no name", 30, 0, 0), AFS_VL_BADNAME);
	ck_assert_int_eq(put(0, "x.readonly", 30, 0, 0), AFS_VL_BADNAME);
	ck_assert_int_eq(put(0, "none", 0, 0, 0), AFS_VL_BADENTRY);
	ck_assert_int_eq(put(0, "high", 0xffffff00u, 0, 0), AFS_VL_BADENTRY);
	ck_assert_int_eq(put(99, "c", 99, 0, 0), AFS_VL_NOENT);
	ck_assert_int_eq(put(10, "b", 10, 11, 12), AFS_VL_NAMEEXIST);
	ck_assert_int_eq(put(10, "a", 10, 20, 12), AFS_VL_IDEXIST);
	/* An id only of a read-only volume. */
	ck_assert_int_eq(put(0, "ro", 0, 5, 0), 0);
	ck_assert(fsd_location_by_id(cell, 5, &entry));
	ck_assert_uint_eq(fsd_location_count(cell), 3);
	/* vos restore -readonly gives the id of a new volume twice. */
	ck_assert_int_eq(put(0, "twice", 40, 40, 0), 0);
	ck_assert_int_eq(put(0, "c", 0, 0, 40), AFS_VL_IDEXIST);
	ck_assert_int_eq(put(40, "twice", 41, 40, 0), 0);
	ck_assert(fsd_location_by_id(cell, 40, &entry));
	ck_assert_uint_eq(entry.id[0], 41);
	ck_assert_int_eq(fsd_location_delete(cell, 40), 0);
	ck_assert(!fsd_location_by_id(cell, 41, &entry));
	remove_cell();
}
END_TEST

START_TEST(changes)
{
	make_cell(&plain);
	ck_assert_int_eq(put(0, "a", 10, 11, 12), 0);
	ck_assert_int_eq(put(0, "b", 20, 21, 0), 0);
	ck_assert_int_eq(put(12, "other", 10, 13, 12), 0);
	ck_assert(!fsd_location_by_name(cell, "a", &entry));
	ck_assert(!fsd_location_by_id(cell, 11, &entry));
	ck_assert(fsd_location_by_id(cell, 13, &entry));
	ck_assert_str_eq(entry.name, "other");
	/* Its key changes. */
	ck_assert_int_eq(put(20, "b", 0, 21, 0), 0);
	ck_assert_int_eq(put(21, "b", 5, 21, 0), 0);
	for (int restarted = 0; restarted < 2; restarted++) {
		ck_assert_uint_eq(fsd_location_count(cell), 2);
		ck_assert(fsd_location_at(cell, 0, &entry));
		ck_assert_str_eq(entry.name, "b");
		ck_assert(fsd_location_at(cell, 1, &entry));
		ck_assert_str_eq(entry.name, "other");
		ck_assert_uint_eq(entry.site[0].flags, 4);
		ck_assert(!fsd_location_at(cell, 2, &entry));
		ck_assert(!fsd_location_by_id(cell, 20, &entry));
		close_cell();
		open_cell(&plain);
	}
	ck_assert_int_eq(fsd_location_delete(cell, 13), 0);
	ck_assert_int_eq(fsd_location_delete(cell, 13), AFS_VL_NOENT);
	close_cell();
	open_cell(&plain);
	ck_assert_uint_eq(fsd_location_count(cell), 1);
	remove_cell();
}
END_TEST

START_TEST(locks)
{
	make_cell(&plain);
	ck_assert_int_eq(put(0, "a", 10, 11, 12), 0);
	ck_assert_int_eq(fsd_location_lock(cell, 11, 0x20), 0);
	ck_assert_int_eq(fsd_location_lock(cell, 10, 0x40), AFS_VL_ENTRYLOCKED);
	ck_assert_int_eq(fsd_location_lock(cell, 9, 0x40), AFS_VL_NOENT);
	close_cell();
	open_cell(&plain);
	ck_assert(fsd_location_by_id(cell, 12, &entry));
	ck_assert_uint_eq(entry.flags, 0x1020);
	ck_assert_int_eq(fsd_location_lock(cell, 12, 0), 0);
	ck_assert_int_eq(fsd_location_lock(cell, 10, 0x40), 0);
	remove_cell();
}
END_TEST

/* A row that another one contradicts, as after a crash between two writes, or one that is damaged, is passed over. */
START_TEST(contradictions)
{
	static const uint8_t garbage[] = {1, 200, 'x'};

	make_cell(&plain);
	ck_assert_int_eq(put(0, "a", 10, 11, 12), 0);
	ck_assert_int_eq(cellvol_put_location(cell_store, 9, garbage, sizeof(garbage)), 0);
	ck_assert_int_eq(cellvol_put_location(cell_store, 0xffffff07u, garbage, sizeof(garbage)),
			 0);
	close_cell();
	open_cell(&plain);
	ck_assert_uint_eq(fsd_location_count(cell), 1);
	ck_assert_int_eq(put(0, "nine", 9, 0, 0), 0);
	remove_cell();
}
END_TEST

static struct fsd_cell_server make_server(uint32_t uuid, uint32_t first, uint32_t count)
{
	struct fsd_cell_server server = {
		.uuid = {.time_low = uuid, .clock_seq_low = -1, .node = {-1, 1}}, .count = count};

	for (uint32_t i = 0; i < count && i < FSD_SERVER_ADDRESSES; i++)
		server.address[i] = first + i;
	return server;
}

START_TEST(servers)
{
	struct fsd_cell_server a = make_server(1, 1100, 2), b = make_server(2, 1200, 1), found;
	struct fsd_cell_server both = make_server(3, 1100, 101), none = make_server(4, 0, 0);

	make_cell(&plain);
	ck_assert_int_eq(fsd_cell_register(cell, &none), AFS_VL_INDEXERANGE);
	ck_assert_int_eq(fsd_cell_register(cell, &both), AFS_VL_INDEXERANGE);
	ck_assert_int_eq(fsd_cell_register(cell, &a), 0);
	ck_assert_int_eq(fsd_cell_register(cell, &a), 0);
	ck_assert_int_eq(fsd_cell_register(cell, &b), 0);
	ck_assert(fsd_cell_server_of(cell, 1101, &found));
	ck_assert_uint_eq(found.uuid.time_low, 1);
	ck_assert_uint_eq(found.unique, 1);
	/* Other addresses of a known server; a new one with the address of another, whose place it takes. */
	a.count = 1;
	ck_assert_int_eq(fsd_cell_register(cell, &a), 0);
	ck_assert(!fsd_cell_server_of(cell, 1101, &found));
	a.uuid.time_low = 5;
	ck_assert_int_eq(fsd_cell_register(cell, &a), 0);
	close_cell();
	open_cell(&plain);
	ck_assert(fsd_cell_server_of(cell, 1100, &found));
	ck_assert_uint_eq(found.uuid.time_low, 5);
	ck_assert_int_eq(found.uuid.clock_seq_low, -1);
	ck_assert_uint_eq(found.unique, 3);
	ck_assert(!fsd_cell_server_at(cell, 2, &found));
	a.address[0] = 1200;
	ck_assert_int_eq(fsd_cell_register(cell, &a), AFS_VL_MULTIPADDR);
	remove_cell();
}
END_TEST

static uint32_t site_of(uint32_t id)
{
	ck_assert(fsd_location_by_id(cell, id, &entry));
	ck_assert_uint_eq(entry.count, 1);
	return entry.site[0].address;
}

static int32_t put_at(uint32_t id, const char *name, uint32_t address)
{
	struct fsd_location made = make_entry(name, id, 0, 0);

	made.site[0].address = address;
	return fsd_location_put(cell, fsd_location_by_id(cell, id, &entry) ? id : 0, &made);
}

/* Entries stay with a server whose addresses change, whether they or the server were known first. */
START_TEST(followers)
{
	struct fsd_cell_server a = make_server(1, 1100, 2), b = make_server(2, 1200, 1);

	make_cell(&plain);
	ck_assert_int_eq(put_at(10, "before", 1200), 0);
	ck_assert_int_eq(fsd_cell_register(cell, &a), 0);
	ck_assert_int_eq(fsd_cell_register(cell, &b), 0);
	ck_assert_int_eq(put_at(20, "second", 1101), 0);
	ck_assert_int_eq(put_at(30, "stranger", 1900), 0);
	ck_assert_int_eq(put_at(40, "place", 2), AFS_VL_BADSERVER);
	ck_assert_uint_eq(site_of(10), 1200);
	ck_assert_uint_eq(site_of(20), 1100);
	a.address[0] = 1300, a.address[1] = 1301;
	b.address[0] = 1400;
	ck_assert_int_eq(fsd_cell_register(cell, &a), 0);
	ck_assert_int_eq(fsd_cell_register(cell, &b), 0);
	for (int restarted = 0; restarted < 2; restarted++) {
		ck_assert_uint_eq(site_of(10), 1400);
		ck_assert_uint_eq(site_of(20), 1300);
		ck_assert_uint_eq(site_of(30), 1900);
		close_cell();
		open_cell(&plain);
	}
	/* It takes one of several addresses of another, not all. */
	b.address[1] = 1301, b.count = 2;
	ck_assert_int_eq(fsd_cell_register(cell, &b), 0);
	ck_assert_uint_eq(site_of(20), 1300);
	b.address[1] = 1300;
	ck_assert_int_eq(fsd_cell_register(cell, &b), AFS_VL_MULTIPADDR);
	/* An address that nobody has registered. */
	ck_assert_int_eq(fsd_cell_move_address(cell, 1900, 1400), AFS_VL_MULTIPADDR);
	ck_assert_int_eq(fsd_cell_move_address(cell, 1901, 1902), AFS_VL_NOENT);
	ck_assert_int_eq(fsd_cell_move_address(cell, 1900, 1902), 0);
	ck_assert_uint_eq(site_of(30), 1902);
	remove_cell();
}
END_TEST

/* A server that entries name stays. The place of a removed one is used again, and no other one moves to it. */
START_TEST(removal)
{
	struct fsd_cell_server a = make_server(1, 1100, 1), b = make_server(2, 1200, 1), found;

	make_cell(&plain);
	ck_assert_int_eq(fsd_cell_register(cell, &a), 0);
	ck_assert_int_eq(fsd_cell_register(cell, &b), 0);
	ck_assert_int_eq(put_at(10, "one", 1200), 0);
	ck_assert_int_eq(put_at(20, "two", 1100), 0);
	ck_assert_int_eq(fsd_cell_remove_server(cell, 1100), AFS_VL_IDEXIST);
	ck_assert_int_eq(fsd_cell_remove_server(cell, 1300), AFS_VL_NOENT);
	ck_assert_int_eq(fsd_location_delete(cell, 20), 0);
	ck_assert_int_eq(fsd_cell_remove_server(cell, 1100), 0);
	ck_assert_int_eq(fsd_cell_remove_server(cell, 1100), AFS_VL_NOENT);
	close_cell();
	open_cell(&plain);
	ck_assert_uint_eq(site_of(10), 1200);
	ck_assert(fsd_cell_server_at(cell, 0, &found));
	ck_assert_uint_eq(found.count, 0);
	ck_assert_int_eq(put_at(30, "three", 1300), 0);
	a.uuid.time_low = 9;
	a.address[0] = 1300;
	ck_assert_int_eq(fsd_cell_register(cell, &a), 0);
	ck_assert(fsd_cell_server_at(cell, 0, &found));
	ck_assert_uint_eq(found.uuid.time_low, 9);
	ck_assert_uint_eq(site_of(30), 1300);
	ck_assert_uint_eq(site_of(10), 1200);
	remove_cell();
}
END_TEST

TEST_MAIN("locations", unique, changes, locks, contradictions, servers, followers, removal)
