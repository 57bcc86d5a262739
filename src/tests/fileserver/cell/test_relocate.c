/* SPDX-License-Identifier: BSD-2-Clause */
/* Pages of the database that have entries of locations are damaged: after a rescue each volume that is here has an entry again. */
#include "tests/fileserver/cell/cell_store.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "afs/numbers.h"
#include "volume/store/upkeep.h"

#define VOLUMES 60
#define ELSEWHERE 200 /* entries of volumes of other servers, which fill pages, too */
#define PAGE 4096

static const struct fsd_cell_options plain;

static void make_listed_volume(uint32_t id, uint32_t parent, enum store_type type, const char *name)
{
	struct cellvol volume = {.id = id, .parent = parent, .type = type};
	struct fsd_transaction t;
	int32_t tid;

	snprintf(volume.name, sizeof(volume.name), "%s", name);
	ck_assert_int_eq(fsd_transaction_create(cell, &volume, true, &tid), 0);
	ck_assert_int_eq(cellvol_set(cell_store, &volume, CELLVOL_STATE, NULL, NULL), 0);
	ck_assert_int_eq(fsd_transaction_enter(cell, tid, "EndTrans", &t), 0);
	fsd_transaction_end(cell, &t);
}

/* No volume has the name of an entry. */
static void list_volume(uint32_t id, uint32_t address)
{
	struct fsd_location entry = {.id = {id, id + 1}, .flags = 0x1000, .count = 1};

	entry.site[0] = (struct fsd_site){.address = address, .flags = 4};
	snprintf(entry.name, sizeof(entry.name), "entry-mark-%u", id);
	ck_assert_int_eq(fsd_location_put(cell, 0, &entry), 0);
}

static void make_listed_store(void)
{
	char name[32];

	make_cell(&plain);
	for (uint32_t i = 0; i < VOLUMES; i++) {
		uint32_t id = 7000 + 10 * i;

		snprintf(name, sizeof(name), "volume%u", i);
		make_listed_volume(id, id, STORE_RW, name);
		snprintf(name, sizeof(name), "volume%u.readonly", i);
		make_listed_volume(id + 1, id, STORE_RO, name);
		list_volume(id, FSD_HERE);
	}
	/* A copy whose volume is elsewhere. */
	make_listed_volume(9001, 9000, STORE_RO, "copy.readonly");
	for (uint32_t i = 0; i < ELSEWHERE; i++)
		list_volume(7005 + 10 * i, 0x0a000001);
	close_cell();
}

/* All pages with an entry of this name. Returns how many. */
static unsigned damage_pages_with(const char *mark)
{
	static const char *const files[] = {"meta/db", "meta/db-wal"};
	uint8_t page[PAGE];
	unsigned damaged = 0;
	char path[160];

	for (int i = 0; i < 2; i++) {
		int fd;

		snprintf(path, sizeof(path), "%s/%s", cell_folder, files[i]);
		fd = open(path, O_RDWR);
		if (fd < 0)
			continue;
		for (off_t at = 0; pread(fd, page, PAGE, at) == PAGE; at += PAGE)
			if (memmem(page, PAGE, mark, strlen(mark))) {
				memset(page, 0x55, PAGE / 2);
				ck_assert_int_eq(pwrite(fd, page, PAGE, at), PAGE);
				damaged++;
			}
		close(fd);
	}
	return damaged;
}

static void rescue_cell(void)
{
	char message[FSD_MESSAGE_MAX], rescued[80];
	struct store_rescue rescue = {.source = cell_folder, .target = rescued};

	snprintf(rescued, sizeof(rescued), "%s-rescued", cell_folder);
	ck_assert_msg(store_rescue(&rescue, message) == 0, "%s", message);
	ck_assert_uint_gt(rescue.damaged_pages, 0);
	nftw(cell_folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	ck_assert_int_eq(rename(rescued, cell_folder), 0);
}

/* Each volume has an entry: the one that it had, or one that shows what is here. Returns how many are new. */
static unsigned check_entries(void)
{
	struct fsd_location entry;
	unsigned made = 0;
	char name[32];

	for (uint32_t i = 0; i < VOLUMES; i++) {
		uint32_t id = 7000 + 10 * i;

		ck_assert_msg(fsd_location_by_id(cell, id, &entry), "volume %u has no entry", id);
		snprintf(name, sizeof(name), "volume%u", i);
		if (strcmp(entry.name, name) != 0) {
			ck_assert_uint_eq(entry.count, 1);
			continue;
		}
		made++;
		ck_assert_uint_eq(entry.id[0], id);
		ck_assert_uint_eq(entry.id[1], id + 1);
		ck_assert_uint_eq(entry.flags, 0x3000);
		ck_assert_uint_eq(entry.count, 2);
		ck_assert_uint_eq(entry.site[0].address, FSD_HERE);
		ck_assert_uint_eq(entry.site[0].flags, 4);
		ck_assert_uint_eq(entry.site[1].flags, 2);
	}
	ck_assert(fsd_location_by_id(cell, 9001, &entry));
	ck_assert_str_eq(entry.name, "copy");
	ck_assert_uint_eq(entry.id[0], 9000);
	ck_assert_uint_eq(entry.flags, 0x2000);
	ck_assert_uint_eq(entry.count, 1);
	return made;
}

START_TEST(damaged_entries)
{
	unsigned made;
	uint32_t count;

	make_listed_store();
	/* One page of several, so that some entries are still there. */
	ck_assert_uint_gt(damage_pages_with("entry-mark-7100"), 0);
	rescue_cell();
	open_cell(&plain);
	made = check_entries();
	count = fsd_location_count(cell);
	ck_assert_uint_gt(made, 0);
	ck_assert_uint_lt(made, VOLUMES);
	ck_assert_uint_gt(count, VOLUMES + 1);
	/* An entry that is removed from now on does not come back. */
	ck_assert_int_eq(fsd_location_delete(cell, 7000), 0);
	close_cell();
	open_cell(&plain);
	ck_assert_uint_eq(fsd_location_count(cell), count - 1);
	remove_cell();
}
END_TEST

START_TEST(all_entries)
{
	make_listed_store();
	ck_assert_uint_gt(damage_pages_with("entry-mark-"), 3);
	rescue_cell();
	open_cell(&plain);
	ck_assert_uint_eq(check_entries(), VOLUMES);
	ck_assert_uint_eq(fsd_location_count(cell), VOLUMES + 1);
	remove_cell();
}
END_TEST

/* The entries of a server whose own row is lost are not those of the next server that registers. */
START_TEST(lost_server)
{
	struct fsd_cell_server server = {.uuid.time_low = 0x12345678, .count = 1, .address = {0x0a000001}};
	struct fsd_location entry;

	make_cell(&plain);
	ck_assert_int_eq(fsd_cell_register(cell, &server), 0);
	list_volume(10000, 0x0a000001);
	/* As if its row had been on a damaged page. */
	ck_assert_int_eq(cellvol_put_location(cell_store, 0xffffff00u, NULL, 0), 0);
	close_cell();
	open_cell(&plain);
	server.uuid.time_low++;
	server.address[0]++;
	ck_assert_int_eq(fsd_cell_register(cell, &server), 0);
	ck_assert(fsd_location_by_id(cell, 10000, &entry));
	ck_assert_uint_ne(entry.site[0].address, server.address[0]);
	remove_cell();
}
END_TEST

TEST_MAIN("relocate", damaged_entries, all_entries, lost_server)
