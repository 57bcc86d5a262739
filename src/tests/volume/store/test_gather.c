/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Contents that come in ranges: nothing shows before the commit, which shows all; a range that comes late, twice or from a session
 * that has ended changes nothing, and leaves no space behind; after a crash the old or the new contents are there.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/main.h"
#include "tests/volume/store/diskstore.h"
#include "tests/volume/store/state.h"
#include "volume/ranges.h"
#include "volume/store/disk/layer.h"
#include "volume/store/transfer.h"

#define BLOCK  1024u /* as the library of this test has it */
#define LENGTH (40 * BLOCK + 100)

static const struct store_set nothing;
static uint8_t old[LENGTH], new[LENGTH], got[LENGTH];
static struct crashdisk *disk;
static struct store_layer *layer;
static struct store *store;
static uint32_t volume;
static struct store_fid fid;

static void begin_test(uint64_t length)
{
	disk = crashdisk_new();
	store = diskstore_make(disk, &layer, &volume);
	ck_assert_int_eq(state_create(store, volume, "f", STORE_FILE, NULL), 0);
	if (length)
		ck_assert_int_eq(state_write(store, volume, "f", 0, length, length, 1), 0);
	ck_assert_int_eq(state_walk(store, volume, "f", &fid), 0);
	state_bytes(old, 0, LENGTH, 1);
	state_bytes(new, 0, LENGTH, 2);
}

static uint64_t read_version(const uint8_t *bytes, uint64_t length)
{
	struct iovec iov = {got, LENGTH};
	struct store_reader *reader;
	struct store_status status;

	ck_assert_int_eq(store->ops->read_begin(store, &state_admin, &fid, &reader, &status), 0);
	ck_assert_uint_eq(status.length, length);
	ck_assert_int_eq(store->ops->read(reader, &iov, 1, 0, 0), (ssize_t)length);
	ck_assert_int_eq(store->ops->read_end(reader), 0);
	ck_assert_mem_eq(got, bytes, length);
	return status.version;
}

static int count_object(void *arg, const char *name, bool directory)
{
	(void)name;
	(void)directory;
	++*(unsigned *)arg;
	return 0;
}

/* Those that have no name of a version yet. */
static unsigned count_objects(void)
{
	unsigned count = 0;

	ck_assert_int_eq(layer->ops->list(layer, "files/new", count_object, &count), 0);
	return count;
}

/* Sound, also after it was closed and opened; only objects of versions are left. */
static void end_test(const uint8_t *bytes, uint64_t length)
{
	read_version(bytes, length);
	ck_assert_int_eq(store_flush(store), 0);
	ck_assert_int_eq(diskstore_faults(store, "gather"), 0);
	diskstore_close(store, layer);
	store = diskstore_open(disk, STORE_LAZY, &layer);
	ck_assert_msg(store != NULL, "%s", diskstore_message);
	read_version(bytes, length);
	ck_assert_int_eq(diskstore_faults(store, "gather"), 0);
	diskstore_close(store, layer);
	crashdisk_free(disk);
}

static struct store_writer *gather(uint64_t length)
{
	struct store_writer *writer;

	ck_assert_int_eq(
		store->ops->ranges->begin(store, &state_admin, &fid, &nothing, length, &writer), 0);
	return writer;
}

static struct store_writer *begin_range(struct store_writer *of, uint64_t offset, uint64_t length)
{
	struct store_writer *range;

	ck_assert_int_eq(store->ops->ranges->range(of, &state_admin, offset, length, &range), 0);
	return range;
}

/* The next bytes, from `at` on. */
static void give_range(struct store_writer *range, uint64_t at, uint64_t length)
{
	struct iovec iov = {new + at, length};

	ck_assert_int_eq(store->ops->write(range, &iov, 1), 0);
}

static uint64_t end_range(struct store_writer *range)
{
	uint64_t taken = 1;

	ck_assert_int_eq(store->ops->ranges->end_range(range, &taken), 0);
	return taken;
}

static uint64_t put_range(struct store_writer *of, uint64_t offset, uint64_t length)
{
	struct store_writer *range = begin_range(of, offset, length);

	give_range(range, offset, length);
	return end_range(range);
}

static int commit(struct store_writer *of, uint64_t bytes)
{
	struct store_changes changes = {0};
	struct store_status status;

	return store->ops->ranges->commit(of, &state_admin, bytes, &status, &changes);
}

START_TEST(one_version_of_all)
{
	struct store_writer *of, *first, *second;
	uint64_t version;

	begin_test(LENGTH);
	version = read_version(old, LENGTH);
	of = gather(LENGTH);
	/* two at the same time, the later bytes first */
	first = begin_range(of, 0, 16 * BLOCK);
	second = begin_range(of, 32 * BLOCK, LENGTH - 32 * BLOCK);
	give_range(first, 0, 1000);
	give_range(second, 32 * BLOCK, LENGTH - 32 * BLOCK);
	ck_assert_uint_eq(end_range(second), LENGTH - 32 * BLOCK);
	give_range(first, 1000, 16 * BLOCK - 1000);
	ck_assert_uint_eq(end_range(first), 16 * BLOCK);
	ck_assert_uint_eq(put_range(of, 20 * BLOCK, 12 * BLOCK), 12 * BLOCK);
	ck_assert_uint_eq(put_range(of, 16 * BLOCK, 4 * BLOCK), 4 * BLOCK);
	ck_assert_uint_eq(read_version(old, LENGTH), version);
	ck_assert_int_eq(commit(of, LENGTH), 0);
	ck_assert_uint_eq(read_version(new, LENGTH), version + 1);
	end_test(new, LENGTH);
}
END_TEST

/* Which is shorter or longer than what was there; of one block; of a small file. */
START_TEST(other_lengths)
{
	const uint64_t lengths[] = {LENGTH, 3 * BLOCK, 100, 8 * BLOCK};

	for (unsigned i = 0; i < 4; i++) {
		struct store_writer *of;

		begin_test(i % 2 ? LENGTH : 50);
		of = gather(lengths[i]);
		ck_assert_uint_eq(put_range(of, 0, lengths[i]), lengths[i]);
		ck_assert_int_eq(commit(of, lengths[i]), 0);
		end_test(new, lengths[i]);
	}
}
END_TEST

START_TEST(holes_are_zeros)
{
	struct store_writer *of;

	begin_test(LENGTH);
	of = gather(LENGTH);
	ck_assert_uint_eq(put_range(of, 12 * BLOCK, 4 * BLOCK), 4 * BLOCK);
	ck_assert_int_eq(commit(of, 4 * BLOCK), 0);
	memset(new, 0, 12 * BLOCK);
	memset(new + 16 * BLOCK, 0, LENGTH - 16 * BLOCK);
	end_test(new, LENGTH);
}
END_TEST

/* What has not come is not taken for zeros. */
START_TEST(missing_bytes)
{
	struct store_writer *of;

	begin_test(LENGTH);
	of = gather(LENGTH);
	ck_assert_uint_eq(put_range(of, 12 * BLOCK, 4 * BLOCK), 4 * BLOCK);
	ck_assert_int_eq(commit(of, LENGTH), -EINVAL);
	end_test(old, LENGTH);
}
END_TEST

START_TEST(range_that_ends_early)
{
	struct store_writer *of, *range;

	begin_test(LENGTH);
	of = gather(LENGTH);
	range = begin_range(of, 0, 16 * BLOCK);
	give_range(range, 0, 5 * BLOCK + 17);
	ck_assert_uint_eq(end_range(range), 5 * BLOCK);
	range = begin_range(of, 5 * BLOCK, BLOCK);
	give_range(range, 5 * BLOCK, 17);
	ck_assert_uint_eq(end_range(range), 0);
	ck_assert_uint_eq(put_range(of, 5 * BLOCK, LENGTH - 5 * BLOCK), LENGTH - 5 * BLOCK);
	ck_assert_int_eq(commit(of, LENGTH), 0);
	end_test(new, LENGTH);
}
END_TEST

START_TEST(ranges_twice)
{
	struct store_writer *of, *late;
	unsigned objects;

	begin_test(LENGTH);
	of = gather(LENGTH);
	late = begin_range(of, 0, 16 * BLOCK);
	give_range(late, 0, 8 * BLOCK);
	ck_assert_uint_eq(put_range(of, 0, 4 * BLOCK), 4 * BLOCK);
	ck_assert_uint_eq(put_range(of, 0, 4 * BLOCK), 4 * BLOCK);
	objects = count_objects();
	for (unsigned i = 0; i < 1000; i++)
		ck_assert_uint_eq(put_range(of, 0, 4 * BLOCK), 4 * BLOCK);
	/* partly there: what is missing counts */
	ck_assert_uint_eq(put_range(of, 0, 6 * BLOCK), 6 * BLOCK);
	ck_assert_uint_eq(put_range(of, 4 * BLOCK, LENGTH - 4 * BLOCK), LENGTH - 4 * BLOCK);
	give_range(late, 8 * BLOCK, 8 * BLOCK);
	ck_assert_uint_eq(end_range(late), 16 * BLOCK);
	ck_assert_uint_le(count_objects(), objects);
	ck_assert_int_eq(commit(of, LENGTH), 0);
	end_test(new, LENGTH);
}
END_TEST

/* Ranges that are in progress when the session ends, and then come to their end. */
START_TEST(late_ranges)
{
	struct store_writer *of, *late;

	begin_test(LENGTH);
	of = gather(LENGTH);
	late = begin_range(of, 0, 16 * BLOCK);
	give_range(late, 0, 8 * BLOCK);
	ck_assert_uint_eq(put_range(of, 0, LENGTH), LENGTH);
	ck_assert_int_eq(commit(of, LENGTH), 0);
	/* a newer version */
	ck_assert_int_eq(state_write(store, volume, "f", 0, LENGTH, LENGTH, 1), 0);
	give_range(late, 8 * BLOCK, 8 * BLOCK);
	ck_assert_uint_eq(end_range(late), 0);
	read_version(old, LENGTH);

	of = gather(LENGTH);
	ck_assert_uint_eq(put_range(of, 0, 8 * BLOCK), 8 * BLOCK);
	late = begin_range(of, 16 * BLOCK, 16 * BLOCK);
	store->ops->write_abort(of);
	give_range(late, 16 * BLOCK, 16 * BLOCK);
	end_range(late);
	end_test(old, LENGTH);
}
END_TEST

/* A slow older store ends behind a newer one that came in between: the last one that ends is the one that is there, as a whole. */
START_TEST(two_sessions)
{
	struct store_writer *slow, *fast;

	begin_test(LENGTH);
	slow = gather(LENGTH);
	ck_assert_uint_eq(put_range(slow, 0, 8 * BLOCK), 8 * BLOCK);
	fast = gather(8 * BLOCK);
	ck_assert_uint_eq(put_range(fast, 0, 8 * BLOCK), 8 * BLOCK);
	ck_assert_int_eq(commit(fast, 8 * BLOCK), 0);
	read_version(new, 8 * BLOCK);
	ck_assert_uint_eq(put_range(slow, 8 * BLOCK, LENGTH - 8 * BLOCK), LENGTH - 8 * BLOCK);
	read_version(new, 8 * BLOCK);
	ck_assert_int_eq(commit(slow, LENGTH), 0);
	end_test(new, LENGTH);
}
END_TEST

/* Ranges that overlap waste a part of the disk at most. */
START_TEST(wasteful_ranges)
{
	struct store_writer *of;

	begin_test(LENGTH);
	of = gather(LENGTH);
	ck_assert_uint_eq(put_range(of, 0, 8 * BLOCK), 8 * BLOCK);
	ck_assert_uint_eq(put_range(of, 0, 9 * BLOCK), 9 * BLOCK);
	/* the rest of it is to come without what is there */
	ck_assert_uint_eq(put_range(of, 0, 10 * BLOCK), 9 * BLOCK);
	ck_assert_uint_eq(put_range(of, 9 * BLOCK, BLOCK), BLOCK);
	ck_assert_uint_eq(put_range(of, 10 * BLOCK, LENGTH - 10 * BLOCK), LENGTH - 10 * BLOCK);
	ck_assert_int_eq(commit(of, LENGTH), 0);
	end_test(new, LENGTH);
}
END_TEST

START_TEST(refused_ranges)
{
	struct store_writer *of, *range;
	const struct {
		uint64_t offset, length;
		int result;
	} bad[] = {{0, 0, -EINVAL},
		   {0, 100, -EINVAL},
		   {100, BLOCK, -EINVAL},
		   {0, LENGTH + 1, -EINVAL},
		   {40 * BLOCK, BLOCK, -EINVAL},
		   {48 * BLOCK, BLOCK, -EINVAL},
		   {BLOCK, UINT64_MAX - 10, -EINVAL},
		   {UINT64_MAX / BLOCK * BLOCK, BLOCK, -EINVAL}};

	begin_test(LENGTH);
	ck_assert_int_eq(store->ops->ranges->begin(store, &state_admin, &fid, &nothing, 0, &of),
			 -EINVAL);
	ck_assert_int_eq(
		store->ops->ranges->begin(store, &state_admin, &fid, &nothing, UINT64_MAX, &of),
		-EFBIG);
	of = gather(LENGTH);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_int_eq(store->ops->ranges->range(of, &state_admin, bad[i].offset,
							   bad[i].length, &range),
				 bad[i].result);
	store->ops->write_abort(of);
	end_test(old, LENGTH);
}
END_TEST

/* Very many ranges are refused, since the commit has a row for each object. */
START_TEST(many_ranges)
{
	const uint64_t length = 1100 * (uint64_t)BLOCK;
	struct store_writer *of, *range;
	int result = 0;
	unsigned i = 0;

	begin_test(LENGTH);
	of = gather(length);
	/* from the end to the beginning, so that none goes on in the object of another */
	for (; i < 1100 && !result; i++) {
		uint64_t taken;

		result = store->ops->ranges->range(of, &state_admin, (1099 - i) * BLOCK, BLOCK,
						   &range);
		if (result)
			break;
		give_range(range, 0, BLOCK);
		taken = end_range(range);
		ck_assert_uint_eq(taken, BLOCK);
	}
	ck_assert_int_eq(result, -EFBIG);
	ck_assert_uint_eq(i, 1024);
	store->ops->write_abort(of);
	end_test(old, LENGTH);
}
END_TEST

/* The file is removed meanwhile; so is its volume. */
START_TEST(removed_files)
{
	struct store_writer *of;

	begin_test(LENGTH);
	of = gather(LENGTH);
	ck_assert_uint_eq(put_range(of, 0, LENGTH), LENGTH);
	ck_assert_int_eq(state_remove(store, volume, "f", STORE_FILE), 0);
	ck_assert_int_eq(commit(of, LENGTH), STORE_VNOVNODE);
	ck_assert_int_eq(state_create(store, volume, "f", STORE_FILE, NULL), 0);
	ck_assert_int_eq(state_walk(store, volume, "f", &fid), 0);
	of = gather(LENGTH);
	ck_assert_uint_eq(put_range(of, 0, LENGTH), LENGTH);
	ck_assert_int_eq(store_volume_remove(store, volume), 0);
	ck_assert_int_eq(commit(of, LENGTH), STORE_VNOVOL);
	ck_assert_int_eq(diskstore_faults(store, "gather"), 0);
	diskstore_close(store, layer);
	crashdisk_free(disk);
}
END_TEST

static const int32_t user_ids[] = {STORE_AUTHUSER, STORE_ANYUSER, 5};
static const struct store_caller user = {.id = 5, .ids = user_ids, .id_count = 3};

static void give_rights(uint32_t rights)
{
	ck_assert_int_eq(state_acl(store, volume, "", STORE_ANYUSER, rights), 0);
}

/* The rights of the beginning do not last: neither for a range nor for the end. */
START_TEST(rights_that_are_taken_back)
{
	struct store_changes changes = {0};
	struct store_writer *of, *range;
	struct store_status status;

	begin_test(LENGTH);
	give_rights(STORE_READ | STORE_LOOKUP | STORE_WRITE);
	for (unsigned all = 0; all < 2; all++) {
		ck_assert_int_eq(
			store->ops->ranges->begin(store, &user, &fid, &nothing, LENGTH, &of), 0);
		ck_assert_int_eq(store->ops->ranges->range(of, &user, 0, LENGTH, &range), 0);
		give_range(range, 0, LENGTH);
		ck_assert_uint_eq(end_range(range), LENGTH);
		give_rights(STORE_READ | STORE_LOOKUP);
		ck_assert_int_eq(store->ops->ranges->range(of, &user, 0, BLOCK, &range), -EACCES);
		if (all)
			give_rights(STORE_READ | STORE_LOOKUP | STORE_WRITE);
		ck_assert_int_eq(store->ops->ranges->commit(of, &user, LENGTH, &status, &changes),
				 all ? 0 : -EACCES);
		read_version(all ? new : old, LENGTH);
		give_rights(STORE_READ | STORE_LOOKUP | STORE_WRITE);
	}
	end_test(new, LENGTH);
}
END_TEST

static void set_quota(uint64_t kib)
{
	const struct store_volume set = {.quota_kib = kib};

	ck_assert_int_eq(store->ops->volume_set(store, &state_admin, volume, 1, &set), 0);
}

#define MANY 100

/* What sessions hold counts against the quota, although the file does not grow. */
START_TEST(quota_of_all_sessions)
{
	struct store_writer *of[MANY], *range;
	const uint64_t kib = LENGTH / 1024 + 1;
	unsigned count = 0, objects;
	int result = 0;

	begin_test(LENGTH);
	set_quota(100);
	while (count < MANY && !(result = store->ops->ranges->begin(store, &state_admin, &fid,
								    &nothing, LENGTH, &of[count])))
		ck_assert_uint_eq(put_range(of[count++], 0, LENGTH), LENGTH);
	ck_assert_int_eq(result, STORE_VOVERQUOTA);
	/* a store may exceed the quota by 1,024 KiB */
	ck_assert_uint_le((count + 1) * kib, 100 + 1024 + kib);
	ck_assert_uint_ge(count, 2);
	objects = count_objects();
	ck_assert_int_eq(commit(of[--count], LENGTH), 0);
	read_version(new, LENGTH);
	while (count)
		store->ops->write_abort(of[--count]);
	ck_assert_uint_lt(count_objects(), objects);
	ck_assert_int_eq(
		store->ops->ranges->begin(store, &state_admin, &fid, &nothing, LENGTH, &of[0]), 0);
	store->ops->write_abort(of[0]);
	ck_assert_int_eq(
		store->ops->ranges->begin(store, &state_admin, &fid, &nothing, 1300 * 1024, &range),
		STORE_VOVERQUOTA);
	end_test(new, LENGTH);
}
END_TEST

/* Others take the quota meanwhile. The session is over: nothing of it counts as promised any more. */
START_TEST(quota_in_the_middle)
{
	const uint64_t length = 1100 * 1024;
	struct store_writer *of, *range;
	unsigned i = 0, objects;
	int result = 0;

	begin_test(LENGTH);
	set_quota(300);
	of = gather(length);
	ck_assert_uint_eq(put_range(of, 0, 16 * BLOCK), 16 * BLOCK);
	ck_assert_int_eq(state_create(store, volume, "g", STORE_FILE, NULL), 0);
	ck_assert_int_eq(state_write(store, volume, "g", 0, 500 * 1024, 500 * 1024, 1), 0);
	for (i = 1; i < 60 && !result; i++) {
		result = store->ops->ranges->range(of, &state_admin, i * 16 * BLOCK, 16 * BLOCK,
						   &range);
		if (result)
			break;
		give_range(range, 0, 16 * BLOCK);
		ck_assert_uint_eq(end_range(range), 16 * BLOCK);
	}
	ck_assert_int_eq(result, STORE_VOVERQUOTA);
	ck_assert_int_eq(state_remove(store, volume, "g", STORE_FILE), 0);
	ck_assert_int_eq(store->ops->ranges->range(of, &state_admin, 0, 16 * BLOCK, &range),
			 STORE_VOVERQUOTA);
	objects = count_objects();
	ck_assert_int_eq(commit(of, i * 16 * BLOCK), STORE_VOVERQUOTA);
	ck_assert_uint_lt(count_objects(), objects);
	end_test(old, LENGTH);
}
END_TEST

/* A range that finds no room leaves none taken, and the session goes on once there is some. */
START_TEST(full_disk_in_the_middle)
{
	struct iovec iov = {new + 16 * BLOCK, LENGTH - 16 * BLOCK};
	struct store_writer *of, *range;
	uint64_t used;
	int result;

	begin_test(LENGTH);
	of = gather(LENGTH);
	ck_assert_uint_eq(put_range(of, 0, 16 * BLOCK), 16 * BLOCK);
	ck_assert_int_eq(store_flush(store), 0);
	used = crashdisk_used(disk);
	crashdisk_limit(disk, used);
	result = store->ops->ranges->range(of, &state_admin, 16 * BLOCK, LENGTH - 16 * BLOCK,
					   &range);
	if (!result) {
		result = store->ops->write(range, &iov, 1);
		if (result) {
			store->ops->write_abort(range);
		} else {
			uint64_t taken;

			result = store->ops->ranges->end_range(range, &taken);
		}
	}
	ck_assert_int_eq(result, STORE_VDISKFULL);
	read_version(old, LENGTH);
	crashdisk_limit(disk, UINT64_MAX);
	ck_assert_uint_eq(put_range(of, 16 * BLOCK, LENGTH - 16 * BLOCK), LENGTH - 16 * BLOCK);
	ck_assert_int_eq(commit(of, LENGTH), 0);
	end_test(new, LENGTH);
}
END_TEST

/* A clone shows the contents of its time, whatever comes later. */
START_TEST(clone_in_between)
{
	struct store_fid of_rw;
	struct store_writer *of;
	uint32_t clone;

	begin_test(LENGTH);
	of_rw = fid;
	of = gather(LENGTH);
	ck_assert_uint_eq(put_range(of, 0, 16 * BLOCK), 16 * BLOCK);
	ck_assert_int_eq(store_volume_clone(store, volume, STORE_RO, &clone), 0);
	ck_assert_uint_eq(put_range(of, 16 * BLOCK, LENGTH - 16 * BLOCK), LENGTH - 16 * BLOCK);
	ck_assert_int_eq(commit(of, LENGTH), 0);
	fid.volume = clone;
	read_version(old, LENGTH);
	ck_assert_int_eq(
		store->ops->ranges->begin(store, &state_admin, &fid, &nothing, LENGTH, &of),
		-EROFS);
	fid = of_rw;
	end_test(new, LENGTH);
}
END_TEST

/* An ordinary store that began before and ends behind: as a whole, over what the ranges made. */
START_TEST(older_store_beside)
{
	struct store_changes changes = {0};
	struct iovec first = {old, 10 * BLOCK}, rest = {old + 10 * BLOCK, LENGTH - 10 * BLOCK};
	struct store_writer *of, *slow;
	struct store_status status;

	begin_test(50);
	ck_assert_int_eq(store->ops->write_begin(store, &state_admin, &fid, &nothing, 0, LENGTH,
						 LENGTH, &slow),
			 0);
	ck_assert_int_eq(store->ops->write(slow, &first, 1), 0);
	of = gather(LENGTH);
	ck_assert_uint_eq(put_range(of, 0, LENGTH), LENGTH);
	ck_assert_int_eq(commit(of, LENGTH), 0);
	read_version(new, LENGTH);
	ck_assert_int_eq(store->ops->write(slow, &rest, 1), 0);
	ck_assert_int_eq(store->ops->write_commit(slow, &status, &changes), 0);
	end_test(old, LENGTH);
}
END_TEST

static uint32_t begin_test_with_clone(void)
{
	uint32_t clone;

	begin_test(LENGTH);
	ck_assert_int_eq(store_volume_clone(store, volume, STORE_RO, &clone), 0);
	ck_assert_int_eq(state_write(store, volume, "f", 0, 10, 10, 2), 0);
	return clone;
}

/* The volume goes back to its clone: what began before is no part of the contents that it has then. */
START_TEST(session_of_replaced_contents)
{
	uint32_t clone = begin_test_with_clone();
	struct store_writer *of = gather(LENGTH), *range;

	ck_assert_uint_eq(put_range(of, 0, LENGTH), LENGTH);
	ck_assert_int_eq(store_volume_revert(store, clone), 0);
	ck_assert_int_eq(store->ops->ranges->range(of, &state_admin, 0, LENGTH, &range), -ESTALE);
	ck_assert_int_eq(commit(of, LENGTH), -ESTALE);
	end_test(old, LENGTH);
}
END_TEST

/* The same of an ordinary store, whether the file is small then or not. */
START_TEST(store_to_replaced_contents)
{
	const uint64_t lengths[] = {60, LENGTH};
	uint32_t clone = begin_test_with_clone();

	for (unsigned i = 0; i < 2; i++) {
		struct iovec half = {new, 50}, rest = {new + 50, lengths[i] - 50};
		struct store_changes changes = {0};
		struct store_writer *of;
		struct store_status status;

		ck_assert_int_eq(store->ops->write_begin(store, &state_admin, &fid, &nothing, 0,
							 lengths[i], lengths[i], &of),
				 0);
		ck_assert_int_eq(store->ops->write(of, &half, 1), 0);
		ck_assert_int_eq(store_volume_revert(store, clone), 0);
		ck_assert_int_eq(store->ops->write(of, &rest, 1), 0);
		ck_assert_int_eq(store->ops->write_commit(of, &status, &changes), -ESTALE);
		read_version(old, LENGTH);
	}
	end_test(old, LENGTH);
}
END_TEST

/* The process is killed: what came is gone when the store is opened again. */
START_TEST(killed_in_the_middle)
{
	struct store_writer *of;
	unsigned objects;

	begin_test(LENGTH);
	ck_assert_int_eq(store_flush(store), 0);
	of = gather(LENGTH);
	ck_assert_uint_eq(put_range(of, 0, 16 * BLOCK), 16 * BLOCK);
	/* that of the old contents may be among them */
	objects = count_objects();
	crashdisk_stop_at(disk, 0, 0);
	store->ops->write_abort(of);
	diskstore_close(store, layer);
	crashdisk_killed(disk);
	store = diskstore_open(disk, STORE_LAZY, &layer);
	ck_assert_msg(store != NULL, "%s", diskstore_message);
	ck_assert_uint_lt(count_objects(), objects);
	end_test(old, LENGTH);
}
END_TEST

TEST_MAIN_WITHIN(300, "gather", one_version_of_all, other_lengths, holes_are_zeros, missing_bytes,
		 range_that_ends_early, ranges_twice, late_ranges, two_sessions, wasteful_ranges,
		 refused_ranges, many_ranges, removed_files, rights_that_are_taken_back,
		 quota_of_all_sessions, quota_in_the_middle, full_disk_in_the_middle,
		 clone_in_between, older_store_beside, session_of_replaced_contents,
		 store_to_replaced_contents, killed_in_the_middle)
