/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writers of one file: many small writes, and a writer that adds to a file
 * which others replace meanwhile.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/main.h"
#include "tests/volume/store/diskstore.h"
#include "tests/volume/store/state.h"

#define LENGTH (256u << 10)
#define SMALL  100u
#define WRITES 800

static uint8_t want[LENGTH], got[LENGTH];

static void same(struct store *store, uint32_t volume, const uint8_t *bytes)
{
	struct iovec iov = {got, LENGTH};
	struct store_reader *reader;
	struct store_status status;
	struct store_fid fid;

	ck_assert_int_eq(state_walk(store, volume, "f", &fid), 0);
	ck_assert_int_eq(store->ops->read_begin(store, &state_admin, &fid, &reader, &status), 0);
	ck_assert_uint_eq(status.length, LENGTH);
	ck_assert_int_eq(store->ops->read(reader, &iov, 1, 0, 0), LENGTH);
	ck_assert_int_eq(store->ops->read_end(reader), 0);
	ck_assert(memcmp(bytes, got, LENGTH) == 0);
}

static struct store_layer *layer;

/* A store on a disk in memory, with a volume that has the file "f" of `length` bytes. */
static struct store *make_store(struct crashdisk *disk, uint64_t length, uint32_t *volume)
{
	struct store *store = diskstore_make(disk, &layer, volume);

	ck_assert_int_eq(state_create(store, *volume, "f", STORE_FILE, NULL), 0);
	ck_assert_int_eq(state_write(store, *volume, "f", 0, length, length, 0), 0);
	return store;
}

/* Contents of a clone and of the file. */
START_TEST(small_writes)
{
	static uint8_t old[LENGTH];
	struct crashdisk *disk = crashdisk_new();
	uint32_t volume, clone;
	struct store *store = make_store(disk, LENGTH, &volume);
	uint64_t random = 3;

	state_bytes(want, 0, LENGTH, 0);
	memcpy(old, want, LENGTH);
	ck_assert_int_eq(store_volume_clone(store, volume, STORE_BACKUP, &clone), 0);
	for (uint32_t i = 1; i <= WRITES; i++) {
		uint64_t offset = crashdisk_random(&random) % (LENGTH - SMALL);

		ck_assert_int_eq(state_write(store, volume, "f", offset, SMALL, LENGTH, i), 0);
		state_bytes(want + offset, offset, SMALL, i);
		if (i % 100 == 0)
			same(store, volume, want);
	}
	same(store, volume, want);
	same(store, clone, old);
	ck_assert_int_eq(diskstore_faults(store, "writers"), 0);
	diskstore_close(store, layer);
	crashdisk_free(disk);
}
END_TEST

/*
 * A writer adds to the object of the version that it found. Another one replaces that version before
 * the first commits, so that nothing refers to the object any more.
 */
START_TEST(add_while_replaced)
{
	const struct store_set set = {0};
	const uint64_t half = LENGTH / 2;
	struct crashdisk *disk = crashdisk_new();
	uint32_t volume;
	struct store *store = make_store(disk, half, &volume);
	struct iovec iov = {want + half, half};
	struct store_changes changes;
	struct store_writer *writer;
	struct store_status status;
	struct store_fid fid;

	state_bytes(want, 0, LENGTH, 7);
	ck_assert_int_eq(state_walk(store, volume, "f", &fid), 0);
	ck_assert_int_eq(store->ops->write_begin(store, &state_admin, &fid, &set, half, half, LENGTH,
						 &writer),
			 0);
	ck_assert_int_eq(store->ops->write(writer, &iov, 1), 0);
	ck_assert_int_eq(state_write(store, volume, "f", 0, half, half, 7), 0);
	ck_assert_int_eq(store_flush(store), 0);
	ck_assert_int_eq(store->ops->write_commit(writer, &status, &changes), 0);
	same(store, volume, want);
	ck_assert_int_eq(diskstore_faults(store, "writers"), 0);
	/* Objects of no use are removed at the latest when the store is opened. */
	diskstore_close(store, layer);
	store = diskstore_open(disk, STORE_LAZY, &layer);
	ck_assert_msg(store != NULL, "%s", diskstore_message);
	same(store, volume, want);
	ck_assert_int_eq(diskstore_faults(store, "writers"), 0);
	diskstore_close(store, layer);
	crashdisk_free(disk);
}
END_TEST

TEST_MAIN_WITHIN(300, "writers", small_writes, add_while_replaced)
