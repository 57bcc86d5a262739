/* SPDX-License-Identifier: BSD-2-Clause */
/* What the tests of dumps and restores begin with. */
#include "tests/volume/store/transfer_fixture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/asserts.h"
#include "tests/volume/store/diskstore.h"
#include "tests/volume/store/state.h"

/* -- dumps in memory -- */

struct memory dumps[3];

int write_memory(void *arg, const void *bytes, size_t length)
{
	struct memory *memory = arg;

	while (memory->room < memory->length + length) {
		memory->room = memory->room ? 2 * memory->room : 65536;
		memory->bytes = realloc(memory->bytes, memory->room);
		ck_assert_ptr_nonnull(memory->bytes);
	}
	memcpy(memory->bytes + memory->length, bytes, length);
	memory->length += length;
	return 0;
}

/* In pieces of changing length. */
static ssize_t read_memory(void *arg, void *bytes, size_t length)
{
	struct memory *memory = arg;
	size_t part = memory->length - memory->at, most = 1 + memory->at * 7 % 5000;

	part = part < length ? part : length;
	part = part < most ? part : most;
	memcpy(bytes, memory->bytes + memory->at, part);
	memory->at += part;
	return (ssize_t)part;
}

int dump_volume(struct store *store, uint32_t id, uint32_t since, struct memory *to)
{
	const struct dump_output output = {.write = write_memory, .arg = to};
	struct dump_base base = {0};
	struct store_snapshot *snapshot;
	struct dump_counts counts;
	struct store_volume clone;
	bool local;
	int rc = store_snapshot_take(store, id, since, &snapshot), end;

	if (rc)
		return rc;
	if (since) {
		ck_assert_int_eq(store->ops->volume(store, since, &clone), 0);
		base = (struct dump_base){.date = clone.cloned, .updated = clone.updated};
	}
	rc = dump_write(store, snapshot, &base, &output, &counts, &local);
	end = store_snapshot_end(snapshot);
	return rc ? rc : end;
}

char message[STORE_MESSAGE_MAX];
uint64_t nameless;

int restore_memory(struct store *store, struct memory *from, const char *name, uint32_t id)
{
	const struct dump_input input = {.read = read_memory, .fits = true, .arg = from};
	struct store_restore *restore;
	struct dump_reader *reader;
	struct dump_counts counts;
	struct dump_info info;
	int rc, end;

	from->at = 0;
	rc = dump_read_begin(store, &input, &reader, &info, message);
	if (rc)
		return rc;
	rc = name ? store_restore_begin(store, name, id, &restore)
		  : store_restore_onto(store, id, &restore);
	if (!rc) {
		rc = dump_read_vnodes(reader, restore, &info, &counts);
		if (!rc)
			rc = store_restore_finish(restore, &info.header, &nameless, message);
		end = store_restore_end(restore);
		rc = rc ? rc : end;
	}
	dump_read_end(reader);
	return rc;
}

void free_dumps(void)
{
	for (size_t i = 0; i < sizeof(dumps) / sizeof(dumps[0]); i++)
		free(dumps[i].bytes);
	memset(dumps, 0, sizeof(dumps));
}

/* -- the disk that the tests begin with: "v" with its clones, "w" with what "v" had when the read-only one was made -- */

uint32_t v, w, readonly, backup;

static void fill_volume(struct store *store)
{
	struct store_fid fid;

	ck_assert_int_eq(state_create(store, v, "a", STORE_FILE, NULL), 0);
	ck_assert_int_eq(state_write(store, v, "a", 0, LARGE, LARGE, 1), 0);
	ck_assert_int_eq(state_create(store, v, "small", STORE_FILE, NULL), 0);
	ck_assert_int_eq(state_write(store, v, "small", 0, 50, 50, 2), 0);
	ck_assert_int_eq(state_create(store, v, "empty", STORE_FILE, NULL), 0);
	ck_assert_int_eq(state_create(store, v, "d", STORE_DIR, NULL), 0);
	ck_assert_int_eq(state_create(store, v, "d/e", STORE_DIR, NULL), 0);
	ck_assert_int_eq(state_create(store, v, "d/e/f", STORE_FILE, NULL), 0);
	ck_assert_int_eq(state_link(store, v, "l", "a"), 0);
	ck_assert_int_eq(state_create(store, v, "s", STORE_SYMLINK, "some/where"), 0);
	ck_assert_int_eq(state_create(store, v, "k", STORE_DIR, NULL), 0);
	ck_assert_int_eq(state_acl(store, v, "k", STORE_ANYUSER, STORE_READ), 0);
	ck_assert_int_eq(state_chmod(store, v, "a", 0640), 0);
	ck_assert_int_eq(state_walk(store, v, "d/e/f", &fid), 0);
}

static void change_volume(struct store *store)
{
	ck_assert_int_eq(state_write(store, v, "a", 5000, 3000, LARGE, 3), 0);
	ck_assert_int_eq(state_remove(store, v, "empty", STORE_FILE), 0);
	ck_assert_int_eq(state_rename(store, v, "d/e/f", "f"), 0);
	ck_assert_int_eq(state_remove(store, v, "d/e", STORE_DIR), 0);
	ck_assert_int_eq(state_create(store, v, "g", STORE_DIR, NULL), 0);
	ck_assert_int_eq(state_create(store, v, "g/new", STORE_FILE, NULL), 0);
	ck_assert_int_eq(state_write(store, v, "g/new", 0, 70000, 70000, 4), 0);
	ck_assert_int_eq(state_write(store, v, "small", 10, 10, 50, 5), 0);
	ck_assert_int_eq(state_acl(store, v, "k", STORE_AUTHUSER, STORE_READ), 0);
	ck_assert_int_eq(state_link(store, v, "m", "f"), 0);
}

struct crashdisk *make_disk(void)
{
	struct crashdisk *disk = crashdisk_new();
	struct store_layer *layer;
	struct store *store = diskstore_make(disk, &layer, &v);

	fill_volume(store);
	ck_assert_int_eq(store_volume_clone(store, v, STORE_RO, &readonly), 0);
	ck_assert_int_eq(dump_volume(store, readonly, 0, &dumps[0]), 0);
	ck_assert_int_eq(restore_memory(store, &dumps[0], "w", 0), 0);
	change_volume(store);
	ck_assert_int_eq(store_volume_clone(store, v, STORE_BACKUP, &backup), 0);
	ck_assert_int_eq(state_write(store, v, "g/new", 0, 10, 10, 6), 0);
	ck_assert_int_eq(dump_volume(store, v, readonly, &dumps[1]), 0);
	ck_assert_int_eq(dump_volume(store, v, 0, &dumps[2]), 0);
	struct store_volume volume;

	ck_assert_int_eq(store->ops->volume_by_name(store, "w", &volume), 0);
	w = volume.id;
	diskstore_close(store, layer);
	return disk;
}

size_t find_vnodes(const struct memory *dump)
{
	static const uint8_t root[] = {3, 0, 0, 0, 1, 0, 0, 0, 1};

	for (size_t at = 0; at + sizeof(root) <= dump->length; at++)
		if (!memcmp(dump->bytes + at, root, sizeof(root)))
			return at;
	return dump->length;
}

void expect_same_vnodes(const struct memory *a, const struct memory *b)
{
	size_t from = find_vnodes(a), other = find_vnodes(b);

	ck_assert_uint_lt(from, a->length);
	ck_assert_uint_eq(a->length - from, b->length - other);
	ck_assert_mem_eq(a->bytes + from, b->bytes + other, a->length - from);
}

struct store *open_disk(struct crashdisk *disk, struct store_layer **layer)
{
	struct store *store = diskstore_open(disk, STORE_LAZY, layer);

	ck_assert_msg(store != NULL, "%s", diskstore_message);
	return store;
}

size_t find_bytes(const struct memory *dump, size_t at, const void *bytes, size_t length)
{
	while (at + length <= dump->length && memcmp(dump->bytes + at, bytes, length))
		at++;
	ck_assert_uint_le(at + length, dump->length);
	return at;
}

size_t find_vnode(const struct memory *dump, uint8_t vnode)
{
	const uint8_t key[] = {3, 0, 0, 0, vnode, 0};

	return find_bytes(dump, find_vnodes(dump), key, sizeof(key));
}

void put_word(struct memory *dump, size_t at, uint32_t value)
{
	for (size_t i = 0; i < 4; i++)
		dump->bytes[at + i] = (uint8_t)(value >> 8 * (3 - i));
}
