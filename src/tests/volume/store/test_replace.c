/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Restores in place of what a volume has: what is the same stays, and the tree is right afterwards.
 *
 * $STORE_DUMPS: how many changed dumps are tried; 100 if it is not set.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/main.h"
#include "tests/volume/store/diskstore.h"
#include "tests/volume/store/state.h"
#include "tests/volume/store/transfer_fixture.h"
#include "volume/store/db/record.h"

/* Whether a directory of a volume was written after a clone of it. */
static bool is_directory_new(struct store *store, uint32_t id, uint32_t clone)
{
	struct store_snapshot *snapshot;
	struct store_vnode vnode = {0};
	bool new = false;
	int rc;

	ck_assert_int_eq(store_snapshot_take(store, id, clone, &snapshot), 0);
	while (!(rc = store_snapshot_next(snapshot, true, vnode.vnode, &vnode)))
		new |= vnode.changed;
	ck_assert_int_eq(rc, -ENOENT);
	ck_assert_int_eq(store_snapshot_end(snapshot), 0);
	return new;
}

/* A complete dump has all directories: those that are the same are not written. */
START_TEST(same_directories)
{
	struct crashdisk *disk = make_disk();
	struct store_layer *layer;
	struct store *store = open_disk(disk, &layer);
	struct memory again = {0};
	uint32_t clone;

	ck_assert_int_eq(store_volume_clone(store, w, STORE_RO, &clone), 0);
	ck_assert_int_eq(restore_memory(store, &dumps[0], NULL, w), 0);
	ck_assert(!is_directory_new(store, w, clone));
	ck_assert_int_eq(dump_volume(store, w, 0, &again), 0);
	expect_same_vnodes(&dumps[0], &again);
	/* One of them has another access list. */
	ck_assert_int_eq(state_acl(store, w, "k", STORE_AUTHUSER, STORE_READ), 0);
	ck_assert_int_eq(restore_memory(store, &dumps[0], NULL, w), 0);
	again.length = 0;
	ck_assert_int_eq(dump_volume(store, w, 0, &again), 0);
	expect_same_vnodes(&dumps[0], &again);
	ck_assert_int_eq(diskstore_faults(store, "restored again"), 0);
	free(again.bytes);
	diskstore_close(store, layer);
	crashdisk_free(disk);
	free_dumps();
}
END_TEST

/* From a vnode up to another one. */
static void cut_out(struct memory *dump, size_t from, size_t to)
{
	memmove(dump->bytes + from, dump->bytes + to, dump->length - to);
	dump->length -= to - from;
}

static void try_onto(struct store *store, struct memory *dump, const char *why)
{
	struct memory before = {0}, after = {0};

	ck_assert_int_eq(dump_volume(store, w, 0, &before), 0);
	ck_assert_msg(restore_memory(store, dump, NULL, w) == -EBADMSG, "not refused: %s", why);
	ck_assert_msg(strstr(message, why) != NULL, "%s", message);
	ck_assert_int_eq(dump_volume(store, w, 0, &after), 0);
	expect_same_vnodes(&before, &after);
	free(before.bytes);
	free(after.bytes);
}

/* Directories that stay as they are have names of files that do not. */
START_TEST(hostile_onto)
{
	static const struct {
		uint8_t vnode;
		const char *member; /* with its first bytes; NULL: the vnode does not come */
		uint32_t value;
		const char *why;
	} tries[] = {
		{4, NULL, 0, "leads to vnode 4, which did not come"},
		{8, NULL, 0, "leads to vnode 8, which did not come"},
		{8, "p", 1, "which is in directory 1"},
		{5, "p", 1, "leads to vnode 5"},
		{4, "", 77, "which has the uniquifier 77"},
		{3, NULL, 0, "which did not come"},
	};
	struct crashdisk *disk = make_disk();
	struct store_layer *layer;
	struct store *store = open_disk(disk, &layer);

	for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
		struct memory copy = {0};
		size_t at, next;

		write_memory(&copy, dumps[0].bytes, dumps[0].length);
		at = find_vnode(&copy, tries[i].vnode);
		next = find_vnode(&copy, (uint8_t)(tries[i].vnode + 2));
		if (!tries[i].member)
			cut_out(&copy, at, next);
		else if (!*tries[i].member)
			put_word(&copy, at + 5, tries[i].value);
		else
			put_word(&copy, find_bytes(&copy, at, tries[i].member, 1) + 1,
				 tries[i].value);
		try_onto(store, &copy, tries[i].why);
		free(copy.bytes);
	}
	ck_assert_int_eq(diskstore_faults(store, "after all"), 0);
	diskstore_close(store, layer);
	crashdisk_free(disk);
	free_dumps();
}
END_TEST

/* A file has fewer names than its record says. */
START_TEST(links_onto)
{
	struct crashdisk *disk = make_disk();
	struct store_layer *layer;
	struct store *store = open_disk(disk, &layer);
	size_t at = find_bytes(&dumps[0], find_vnode(&dumps[0], 2), "l", 1);

	ck_assert_uint_eq(dumps[0].bytes[at + 2], 2);
	dumps[0].bytes[at + 2] = 9;
	ck_assert_int_eq(restore_memory(store, &dumps[0], NULL, w), 0);
	ck_assert_int_eq(diskstore_faults(store, "restored"), 0);
	diskstore_close(store, layer);
	crashdisk_free(disk);
	free_dumps();
}
END_TEST

/* As a volume service dumps. */
static int dump_dated(struct store *store, uint32_t id, uint32_t date, struct memory *to)
{
	const struct dump_output output = {.write = write_memory, .arg = to};
	const struct dump_base base = {.date = date, .dated = true, .sparse = true};
	struct store_snapshot *snapshot;
	struct dump_counts counts;
	bool local;
	int rc;

	ck_assert_int_eq(store_snapshot_take(store, id, 0, &snapshot), 0);
	rc = dump_write(store, snapshot, &base, &output, &counts, &local);
	ck_assert_int_eq(store_snapshot_end(snapshot), 0);
	return rc;
}

/* Vnodes that are only named may come in any order; one that is not named is removed. */
START_TEST(any_order)
{
	struct crashdisk *disk = make_disk();
	struct store_layer *layer;
	struct store *store = open_disk(disk, &layer);
	struct memory named = {0}, again = {0};
	uint8_t record[9];
	size_t from, to;

	ck_assert_int_eq(dump_dated(store, v, UINT32_MAX, &named), 0);
	ck_assert_int_eq(restore_memory(store, &dumps[2], NULL, w), 0);
	from = find_vnodes(&named);
	for (to = from; named.bytes[to] == 3;)
		to += sizeof(record);
	ck_assert_uint_ge(to - from, 5 * sizeof(record));
	for (size_t last = to - sizeof(record); from < last; last -= sizeof(record)) {
		memcpy(record, named.bytes + from, sizeof(record));
		memcpy(named.bytes + from, named.bytes + last, sizeof(record));
		memcpy(named.bytes + last, record, sizeof(record));
		from += sizeof(record);
	}
	ck_assert_int_eq(restore_memory(store, &named, NULL, w), 0);
	ck_assert_int_eq(dump_volume(store, w, 0, &again), 0);
	expect_same_vnodes(&dumps[2], &again);
	/* Twice the same one. */
	memcpy(named.bytes + to - sizeof(record), named.bytes + to - 2 * sizeof(record),
	       sizeof(record));
	try_onto(store, &named, "comes a second time");
	free(named.bytes);
	free(again.bytes);
	diskstore_close(store, layer);
	crashdisk_free(disk);
	free_dumps();
}
END_TEST

/* -- random changes -- */

/* Where the record of a vnode begins; that of 11 is the end mark. An earlier change may have taken it away. */
static size_t find_mark(const struct memory *dump, uint8_t vnode)
{
	const uint8_t key[] = {3, 0, 0, 0, vnode, 0};
	size_t end = dump->length > 5 ? dump->length - 5 : 0, at = find_vnodes(dump);

	while (at < end && (at + sizeof(key) > end || memcmp(dump->bytes + at, key, sizeof(key))))
		at++;
	return at < end ? at : end;
}

static size_t find_next_mark(const struct memory *dump, uint8_t vnode)
{
	size_t from = find_mark(dump, vnode), nearest = find_mark(dump, 11);

	for (uint8_t i = 1; i <= 10; i++) {
		size_t at = find_mark(dump, i);

		if (at > from && at < nearest)
			nearest = at;
	}
	return nearest;
}

/* A bit, a byte, an end, a vnode that does not come, or that is only named. */
static void change_dump(struct memory *dump, uint64_t *random)
{
	uint8_t vnode = (uint8_t)(1 + crashdisk_random(random) % 10);
	size_t mark = find_mark(dump, vnode), next = find_next_mark(dump, vnode);
	size_t at = crashdisk_random(random) % (dump->length < 9000 ? dump->length : 9000);
	size_t member = mark + 9 + crashdisk_random(random) % 60;

	switch (crashdisk_random(random) % 8) {
	case 0:
		dump->length = at + 1;
		break;
	case 1:
	case 2:
		cut_out(dump, mark, next);
		break;
	case 3:
	case 4:
		if (mark + 9 < next)
			cut_out(dump, mark + 9, next);
		break;
	case 5:
		if (member < dump->length)
			dump->bytes[member] = (uint8_t)crashdisk_random(random);
		break;
	default:
		dump->bytes[at] ^= (uint8_t)(1u << crashdisk_random(random) % 8);
	}
}

static unsigned count_changes(void)
{
	const char *text = getenv("STORE_DUMPS");

	return text ? (unsigned)strtoul(text, NULL, 10) : 100;
}

static void expect_contents(struct store *store, const struct memory *dump)
{
	struct memory now = {0};

	ck_assert_int_eq(dump_volume(store, w, 0, &now), 0);
	expect_same_vnodes(dump, &now);
	free(now.bytes);
}

/* Whatever is taken makes a sound tree; what is refused changes nothing. */
START_TEST(changed_onto)
{
	struct crashdisk *disk = make_disk();
	struct store_layer *layer;
	struct store *store = open_disk(disk, &layer);
	unsigned most = count_changes(), taken = 0;
	uint64_t random = 1;

	for (unsigned i = 0; i < most; i++) {
		struct memory copy = {0};
		int rc;

		write_memory(&copy, dumps[0].bytes, dumps[0].length);
		change_dump(&copy, &random);
		if (crashdisk_random(&random) % 2)
			change_dump(&copy, &random);
		rc = restore_memory(store, &copy, NULL, w);
		ck_assert_msg(!rc || rc == -EBADMSG, "result %d", rc);
		if (!rc) {
			taken++;
			ck_assert_int_eq(diskstore_faults(store, "a changed dump"), 0);
			ck_assert_int_eq(restore_memory(store, &dumps[0], NULL, w), 0);
		}
		expect_contents(store, &dumps[0]);
		free(copy.bytes);
	}
	ck_assert_uint_gt(taken, most / 10);
	ck_assert_uint_lt(taken, most);
	ck_assert_int_eq(diskstore_faults(store, "after all"), 0);
	diskstore_close(store, layer);
	crashdisk_free(disk);
	free_dumps();
}
END_TEST

/* An outline has what the whole record has. */
START_TEST(outlines)
{
	const struct vnode_key key = {1, 2, 3};
	uint8_t record[RECORD_MAX];
	struct version *version = version_new();
	struct outline outline;
	size_t length;

	version->v = (struct vnode){.kind = STORE_FILE,
				    .links = 0x01020304,
				    .unique = 0x05060708,
				    .parent = 0x090a0b0c,
				    .parent_unique = 0x0d0e0f10,
				    .server_mtime = 0xf1f2f3f4};
	length = version_encode(version, &key, record);
	version_outline(record, length, &key, &outline);
	ck_assert(!outline.damaged);
	ck_assert_uint_eq(outline.vnode, key.vnode);
	ck_assert_uint_eq(outline.epoch, key.epoch);
	ck_assert_uint_eq(outline.kind, version->v.kind);
	ck_assert_uint_eq(outline.links, version->v.links);
	ck_assert_uint_eq(outline.unique, version->v.unique);
	ck_assert_uint_eq(outline.parent, version->v.parent);
	ck_assert_uint_eq(outline.parent_unique, version->v.parent_unique);
	ck_assert_uint_eq(outline.server_mtime, version->v.server_mtime);
	for (size_t i = 0; i < length; i++) {
		record[i] ^= 1;
		version_outline(record, length, &key, &outline);
		ck_assert(outline.damaged);
		record[i] ^= 1;
		version_outline(record, i, &key, &outline);
		ck_assert(outline.damaged);
	}
	version->v.kind = 0;
	length = version_encode(version, &key, record);
	version_outline(record, length, &key, &outline);
	ck_assert(!outline.damaged && !outline.kind);
	version_unref(version);
}
END_TEST

TEST_MAIN_WITHIN(300, "replace", outlines, same_directories, hostile_onto, links_onto, any_order,
		 changed_onto)
