/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many small writes to a large file that a clone shares: contents stay right while extents are merged.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/main.h"
#include "tests/store/crashdisk.h"
#include "tests/store/state.h"

#define LENGTH (256u << 10)
#define SMALL  100u
#define WRITES 800

static char message[STORE_MESSAGE_MAX];
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

static void fault(void *arg, const char *line)
{
	(void)arg;
	fprintf(stderr, "%s\n", line);
}

START_TEST(contents)
{
	static uint8_t old[LENGTH];
	struct crashdisk *disk = crashdisk_new();
	struct store_layer *layer = crashdisk_layer(disk);
	struct store_options options = {.path = "disk", .layer = layer};
	const struct store_new_volume new = {.name = "v"};
	uint64_t random = 3;
	uint32_t volume, clone;
	struct store *store;

	ck_assert_msg(store_make(&options, message) == 0, "%s", message);
	layer->ops->destroy(layer);
	options.layer = layer = crashdisk_layer(disk);
	ck_assert_msg(store_open(&options, &store, message) == 0, "%s", message);
	ck_assert_int_eq(store_volume_create(store, &new, &volume), 0);
	ck_assert_int_eq(state_create(store, volume, "f", STORE_FILE, NULL), 0);
	ck_assert_int_eq(state_write(store, volume, "f", 0, LENGTH, LENGTH, 0), 0);
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
	ck_assert_int_eq(store_check(store, false, fault, NULL), 0);
	store->ops->close(store);
	layer->ops->destroy(layer);
	crashdisk_free(disk);
}
END_TEST

TEST_MAIN_WITHIN(300, "small_writes", contents)
