/* SPDX-License-Identifier: BSD-2-Clause */
/* Stores on a disk in memory. */
#include "tests/volume/store/diskstore.h"

#include <stdio.h>

#include "tests/asserts.h"
#include "tests/volume/store/state.h"
#include "volume/store/upkeep.h"

char diskstore_message[STORE_MESSAGE_MAX];
bool diskstore_reserve, diskstore_copy;
unsigned diskstore_lines;

static void count_line(void *arg, int level, const char *line)
{
	(void)arg, (void)level, (void)line;
	diskstore_lines++;
}

struct store *diskstore_open(struct crashdisk *disk, enum store_durability durability,
			     struct store_layer **layer)
{
	struct store_options options = {.path = "disk",
					.durability = durability,
					.no_reserve = !diskstore_reserve,
					.log = count_line};
	struct store *store = NULL;

	diskstore_lines = 0;
	options.layer = *layer = crashdisk_layer(disk);
	options.copy_layer = diskstore_copy ? *layer : NULL;
	return store_open(&options, &store, diskstore_message) == 0 ? store : NULL;
}

void diskstore_close(struct store *store, struct store_layer *layer)
{
	if (store)
		store->ops->close(store);
	layer->ops->destroy(layer);
}

struct store *diskstore_make(struct crashdisk *disk, struct store_layer **layer, uint32_t *volume)
{
	struct store_options options = {.path = "disk", .layer = crashdisk_layer(disk)};
	const struct store_new_volume new = {.name = "v"};
	struct store *store;

	ck_assert_msg(store_make(&options, diskstore_message) == 0, "%s", diskstore_message);
	options.layer->ops->destroy(options.layer);
	store = diskstore_open(disk, STORE_LAZY, layer);
	ck_assert_msg(store != NULL, "%s", diskstore_message);
	ck_assert_int_eq(store_volume_create(store, &new, volume), 0);
	return store;
}

static void print_fault(void *arg, const char *line)
{
	fprintf(stderr, "%s: %s\n", (const char *)arg, line);
}

int diskstore_faults(struct store *store, const char *what)
{
	return store_check(store, &(struct store_checker){.each = print_fault,
							  .arg = (void *)(uintptr_t)what});
}

char *diskstore_dump(struct store *store, const char *what)
{
	char *text = state_dump(store, diskstore_message);

	ck_assert_msg(text != NULL, "%s: %s", what, diskstore_message);
	return text;
}
