/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whole volumes: dumps, restores and the way back to a clone. A dump that is restored has the same vnodes. Damaged dumps are refused,
 * and leave nothing. A process or machine that stops at any call leaves the state before or after.
 *
 * $STORE_DUMPS: how many damaged dumps are tried; 400 if it is not set.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/main.h"
#include "tests/volume/store/diskstore.h"
#include "tests/volume/store/state.h"
#include "tests/volume/store/transfer_fixture.h"
#include "volume/store/txn/core.h"
#include "volume/store/txn/txn.h"
#include "volume/store/txn/work.h"
#include "volume/store/upkeep.h"

/* -- restores have all that dumps have -- */

START_TEST(same_vnodes)
{
	struct crashdisk *disk = make_disk();
	struct store_layer *layer;
	struct store *store = open_disk(disk, &layer);
	struct memory again = {0};

	ck_assert_int_eq(dump_volume(store, w, 0, &again), 0);
	expect_same_vnodes(&dumps[0], &again);
	again.length = 0;
	ck_assert_int_eq(restore_memory(store, &dumps[1], NULL, w), 0);
	ck_assert_int_eq(dump_volume(store, w, 0, &again), 0);
	expect_same_vnodes(&dumps[2], &again);
	again.length = 0;
	/* A complete dump in place of other contents. */
	ck_assert_int_eq(restore_memory(store, &dumps[0], NULL, w), 0);
	ck_assert_int_eq(dump_volume(store, w, 0, &again), 0);
	expect_same_vnodes(&dumps[0], &again);
	ck_assert_int_eq(diskstore_faults(store, "restored"), 0);
	free(again.bytes);
	diskstore_close(store, layer);
	crashdisk_free(disk);
	free_dumps();
}
END_TEST

static void refuse_order(struct store *store, struct memory *dump, const char *why)
{
	struct memory before = {0}, after = {0};

	ck_assert_int_eq(dump_volume(store, w, 0, &before), 0);
	ck_assert_int_eq(restore_memory(store, dump, NULL, w), -EBADMSG);
	ck_assert_msg(strstr(message, why) != NULL, "%s", message);
	ck_assert_int_eq(dump_volume(store, w, 0, &after), 0);
	expect_same_vnodes(&before, &after);
	free(before.bytes);
	free(after.bytes);
}

/* Incremental dumps are restored in their order only, whatever their dates are. */
START_TEST(wrong_order)
{
	static const char *const other = "another state than the one in which the dump begins";
	struct crashdisk *disk = make_disk();
	struct memory first = {0}, second = {0}, both = {0}, last = {0}, again = {0};
	struct store_layer *layer;
	struct store *store = open_disk(disk, &layer);

	ck_assert_int_eq(restore_memory(store, &dumps[2], NULL, w), 0);
	ck_assert_int_eq(store_volume_clone(store, v, STORE_RO, &readonly), 0);
	ck_assert_int_eq(state_write(store, v, "small", 0, 50, 50, 7), 0);
	ck_assert_int_eq(dump_volume(store, v, readonly, &first), 0);
	ck_assert_int_eq(store_volume_clone(store, v, STORE_BACKUP, &backup), 0);
	ck_assert_int_eq(state_write(store, v, "a", 0, LARGE, LARGE, 8), 0);
	ck_assert_int_eq(dump_volume(store, v, backup, &second), 0);
	ck_assert_int_eq(dump_volume(store, v, readonly, &both), 0);
	ck_assert_int_eq(dump_volume(store, v, 0, &last), 0);

	refuse_order(store, &second, other);
	ck_assert_int_eq(restore_memory(store, &first, NULL, w), 0);
	/* One that begins earlier has all that is missing. */
	ck_assert_int_eq(restore_memory(store, &both, NULL, w), 0);
	ck_assert_int_eq(dump_volume(store, w, 0, &again), 0);
	expect_same_vnodes(&last, &again);
	refuse_order(store, &first, other);
	ck_assert_int_eq(restore_memory(store, &second, NULL, w), 0);
	/* A later change of what the dump has in full. */
	ck_assert_int_eq(state_write(store, w, "a", 0, 10, LARGE, 9), 0);
	refuse_order(store, &both, "is newer in the volume");
	/* A later change of a record alone. */
	ck_assert_int_eq(restore_memory(store, &dumps[2], NULL, w), 0);
	ck_assert_int_eq(state_chmod(store, w, "a", 0600), 0);
	refuse_order(store, &first, other);
	free(first.bytes), free(second.bytes), free(both.bytes), free(last.bytes),
		free(again.bytes);
	diskstore_close(store, layer);
	crashdisk_free(disk);
	free_dumps();
}
END_TEST

/* Nobody sees a volume before it is whole; its number and name are taken. */
START_TEST(hidden_and_busy)
{
	struct crashdisk *disk = make_disk();
	struct store_layer *layer;
	struct store *store = open_disk(disk, &layer);
	const struct store_new_volume other = {.name = "x"};
	struct store_restore *restore, *second;
	struct store_snapshot *snapshot;
	struct store_volume volume;
	struct store_totals before, after;
	struct store_fid fid = {.volume = w, .vnode = 1, .unique = 1};
	struct store_caller caller = state_admin;
	struct store_status status;
	uint32_t id;

	store->ops->totals(store, &before);
	ck_assert_int_eq(store_restore_begin(store, "x", 0, &restore), 0);
	id = store_restore_id(restore);
	store->ops->totals(store, &after);
	ck_assert_mem_eq(&before, &after, sizeof(before));
	ck_assert_int_eq(store->ops->volume_by_name(store, "x", &volume), STORE_VNOVOL);
	ck_assert_int_eq(store->ops->volume(store, id, &volume), STORE_VNOVOL);
	ck_assert_int_eq(store->ops->volume_next(store, id - 1, &volume), STORE_VNOVOL);
	ck_assert_int_eq(store_volume_create(store, &other, &id), -EEXIST);
	ck_assert_int_eq(store_volume_remove(store, store_restore_id(restore)), STORE_VBUSY);
	ck_assert_int_eq(store_restore_end(restore), 0);
	ck_assert_int_eq(store_volume_create(store, &other, &id), 0);
	ck_assert_int_eq(store_volume_remove(store, id), 0);

	caller.unrestricted = false;
	ck_assert_int_eq(store->ops->status(store, &caller, &fid, &status), 0);
	ck_assert_int_eq(store_restore_onto(store, w, &restore), 0);
	ck_assert_int_eq(store->ops->status(store, &caller, &fid, &status), STORE_VBUSY);
	ck_assert_int_eq(store_restore_onto(store, w, &second), STORE_VBUSY);
	ck_assert_int_eq(store_snapshot_take(store, w, 0, &snapshot), STORE_VBUSY);
	ck_assert_int_eq(store_volume_clone(store, w, STORE_RO, &id), STORE_VBUSY);
	ck_assert_int_eq(store_volume_remove(store, w), STORE_VBUSY);
	ck_assert_int_eq(store_restore_end(restore), 0);
	ck_assert_int_eq(store->ops->status(store, &caller, &fid, &status), 0);
	ck_assert_int_eq(diskstore_faults(store, "given up"), 0);
	diskstore_close(store, layer);
	crashdisk_free(disk);
	free_dumps();
}
END_TEST

/* A dump shows one moment, whatever changes meanwhile, and the rows that it kept go. */
START_TEST(one_moment)
{
	struct crashdisk *disk = make_disk();
	struct store_layer *layer;
	struct store *store = open_disk(disk, &layer);
	struct store_snapshot *snapshot;
	const struct dump_output output = {.write = write_memory, .arg = &dumps[1]};
	const struct dump_base base = {0};
	struct dump_counts counts;
	bool local;

	ck_assert_int_eq(store_snapshot_take(store, v, 0, &snapshot), 0);
	ck_assert_int_eq(state_write(store, v, "a", 0, 100, 100, 8), 0);
	ck_assert_int_eq(state_write(store, v, "small", 0, 60, 60, 8), 0);
	ck_assert_int_eq(state_remove(store, v, "g/new", STORE_FILE), 0);
	ck_assert_int_eq(state_remove(store, v, "g", STORE_DIR), 0);
	ck_assert_int_eq(state_create(store, v, "h", STORE_DIR, NULL), 0);
	ck_assert_int_eq(state_create(store, v, "h/i", STORE_FILE, NULL), 0);
	dumps[1].length = 0;
	ck_assert_int_eq(dump_write(store, snapshot, &base, &output, &counts, &local), 0);
	ck_assert_int_eq(store_snapshot_end(snapshot), 0);
	expect_same_vnodes(&dumps[2], &dumps[1]);
	ck_assert_int_eq(diskstore_faults(store, "after the dump"), 0);
	diskstore_close(store, layer);
	crashdisk_free(disk);
	free_dumps();
}
END_TEST

/* All objects that differ have new data versions. */
START_TEST(new_versions)
{
	struct crashdisk *disk = make_disk();
	struct store_layer *layer;
	struct store *store = open_disk(disk, &layer);
	struct store_fid fid;
	struct store_status before, after;
	struct memory again = {0};

	ck_assert_int_eq(state_walk(store, v, "a", &fid), 0);
	ck_assert_int_eq(store->ops->status(store, &state_admin, &fid, &before), 0);
	ck_assert_int_eq(store_volume_revert(store, readonly), 0);
	ck_assert_int_eq(store->ops->status(store, &state_admin, &fid, &after), 0);
	ck_assert_uint_gt(after.version, before.version);
	ck_assert_int_eq(state_walk(store, v, "empty", &fid), 0);
	ck_assert_int_eq(store->ops->status(store, &state_admin, &fid, &after), 0);
	ck_assert_uint_gt(after.version, 1000);
	ck_assert_int_eq(state_walk(store, v, "g/new", &fid), -ENOENT);
	ck_assert_int_eq(diskstore_faults(store, "reverted"), 0);
	/* The clone that came later, too. */
	ck_assert_int_eq(store_volume_revert(store, backup), 0);
	ck_assert_int_eq(state_walk(store, v, "g/new", &fid), 0);
	ck_assert_int_eq(diskstore_faults(store, "reverted again"), 0);
	ck_assert_int_eq(store_volume_revert(store, v), -EINVAL);
	free(again.bytes);
	diskstore_close(store, layer);
	crashdisk_free(disk);
	free_dumps();
}
END_TEST

/* -- two at the same time -- */

/* One that asks while the volume becomes busy. */
struct second {
	struct txn_op op;
	struct store *store;
	pthread_t thread;
	_Atomic pid_t id; /* of the thread */
	int result;
};

static void *run_second(void *arg)
{
	struct second *second = arg;

	second->id = gettid();
	second->result = store_volume_revert(second->store, readonly);
	return NULL;
}

/* Until the thread waits for its turn. */
static void await_sleep(pid_t id)
{
	char path[64], state = 0;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)id);
	while (state != 'S') {
		FILE *file = fopen(path, "r");

		ck_assert_ptr_nonnull(file);
		ck_assert_int_eq(fscanf(file, "%*d (%*[^)]) %c", &state), 1);
		fclose(file);
		usleep(100);
	}
}

static int apply_busy(struct txn_op *op, struct work *work)
{
	struct second *second = (struct second *)op;
	struct workvol *volume;
	int rc = work_any_volume(work, v, &volume);

	if (rc)
		return rc;
	if (!second->id) {
		ck_assert_int_eq(pthread_create(&second->thread, NULL, run_second, second), 0);
		while (!second->id)
			usleep(100);
		await_sleep(second->id);
	}
	volume->rec.offline ^= VOLUME_BUSY;
	volume->changed = true;
	return 0;
}

/* A volume that has become busy between the request and its turn is refused. */
START_TEST(second_revert)
{
	struct crashdisk *disk = make_disk();
	struct store_layer *layer;
	struct second second = {.op = {.apply = apply_busy, .alone = true}};

	second.store = open_disk(disk, &layer);
	ck_assert_int_eq(txn_run(core_of(second.store)->txn, &second.op), 0);
	ck_assert_int_eq(pthread_join(second.thread, NULL), 0);
	ck_assert_int_eq(second.result, STORE_VBUSY);
	ck_assert_int_eq(store_volume_revert(second.store, readonly), STORE_VBUSY);
	second.op = (struct txn_op){.apply = apply_busy, .alone = true};
	ck_assert_int_eq(txn_run(core_of(second.store)->txn, &second.op), 0);
	ck_assert_int_eq(store_volume_revert(second.store, readonly), 0);
	ck_assert_int_eq(diskstore_faults(second.store, "reverted"), 0);
	diskstore_close(second.store, layer);
	crashdisk_free(disk);
	free_dumps();
}
END_TEST

/* -- files of several slots -- */

#define MIB (1ull << 20)

/* Their lengths: around a block, a slot, and several slots. */
static const uint64_t large_lengths[] = {
	0, 8192, 65536, 8 * MIB - 1, 8 * MIB, 8 * MIB + 1, 30000000, 30000000,
};
#define LARGE_FILES (sizeof(large_lengths) / sizeof(large_lengths[0]))

static const char *name_large(size_t i)
{
	static char name[16];

	snprintf(name, sizeof(name), "large%zu", i);
	return name;
}

static void fill_large_files(struct store *store)
{
	for (size_t i = 0; i < LARGE_FILES; i++) {
		uint64_t length = large_lengths[i];

		ck_assert_int_eq(state_create(store, v, name_large(i), STORE_FILE, NULL), 0);
		if (i + 1 < LARGE_FILES)
			ck_assert_int_eq(state_write(store, v, name_large(i), 0, length, length,
						     (uint32_t)i),
					 0);
	}
	/* The last one has holes: within slots, and a whole one. */
	ck_assert_int_eq(state_write(store, v, "large7", 100000, 300000, 30000000, 8), 0);
	ck_assert_int_eq(state_write(store, v, "large7", 17 * MIB, 2 * MIB, 30000000, 9), 0);
}

static void change_large_files(struct store *store)
{
	/* One that ends in another slot, and one that grows into the next. */
	ck_assert_int_eq(state_write(store, v, "large6", 50, 10, 12000000, 10), 0);
	ck_assert_int_eq(state_write(store, v, "large6", 12000000, 7000000, 19000000, 11), 0);
	ck_assert_int_eq(state_write(store, v, "large4", 8 * MIB, 9 * MIB, 17 * MIB, 12), 0);
	ck_assert_int_eq(state_write(store, v, "large5", 0, 100, 100, 13), 0);
	ck_assert_int_eq(state_write(store, v, "large7", 9 * MIB, MIB, 40000000, 14), 0);
}

/* The bytes of a file in two volumes. */
static void expect_same_file(struct store *store, uint32_t one, uint32_t other, const char *path)
{
	struct store_reader *reader[2];
	struct store_status status[2];
	static uint8_t bytes[2][MIB];
	struct store_fid fid;

	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(state_walk(store, i ? other : one, path, &fid), 0);
		ck_assert_int_eq(
			store->ops->read_begin(store, &state_admin, &fid, &reader[i], &status[i]),
			0);
	}
	ck_assert_uint_eq(status[0].length, status[1].length);
	for (uint64_t at = 0; at < status[0].length;) {
		ssize_t length[2];

		for (int i = 0; i < 2; i++) {
			struct iovec iov = {bytes[i], MIB};

			length[i] = store->ops->read(reader[i], &iov, 1, at, 0);
		}
		ck_assert_msg(length[0] > 0 && length[0] == length[1], "%s at %llu: %zd, %zd", path,
			      (unsigned long long)at, length[0], length[1]);
		ck_assert_mem_eq(bytes[0], bytes[1], (size_t)length[0]);
		at += (uint64_t)length[0];
	}
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(store->ops->read_end(reader[i]), 0);
}

/* All files are the same, also when what is not shown any more is gone. */
static void expect_same_files(struct store *store, uint32_t one, uint32_t other)
{
	struct store_stats stats;

	do {
		ck_assert_int_eq(store_flush(store), 0);
		store_stats(store, &stats);
	} while (stats.pruning);
	ck_assert_int_eq(store_flush(store), 0);
	for (size_t i = 0; i < LARGE_FILES; i++)
		expect_same_file(store, one, other, name_large(i));
	ck_assert_int_eq(store_check(store, &(struct store_checker){.data = true}), 0);
}

/* In a folder: the disk in memory gives no space of blocks back. */
static struct store *open_folder(const char *path, bool make)
{
	const struct store_options options = {.path = path, .no_reserve = true};
	struct store *store;

	ck_assert_msg(!make || store_make(&options, message) == 0, "%s", message);
	ck_assert_msg(store_open(&options, &store, message) == 0, "%s", message);
	return store;
}

/* The volume "w" has what "v" had in turn: complete and incremental dumps, one that is given up, the way back to the clone. */
START_TEST(large_files)
{
	const struct store_new_volume new = {.name = "v"};
	struct memory part, again = {0};
	char path[200], command[240];
	const char *tmp = getenv("TMPDIR");
	struct store *store;
	struct store_volume volume;

	snprintf(path, sizeof(path), "%.150s/rxwire-transfer-XXXXXX", tmp ? tmp : "/tmp");
	ck_assert(mkdtemp(path) != NULL);
	store = open_folder(path, true);
	ck_assert_int_eq(store_volume_create(store, &new, &v), 0);
	fill_large_files(store);
	ck_assert_int_eq(store_volume_clone(store, v, STORE_RO, &readonly), 0);
	ck_assert_int_eq(dump_volume(store, readonly, 0, &dumps[0]), 0);
	ck_assert_int_eq(restore_memory(store, &dumps[0], "w", 0), 0);
	ck_assert_int_eq(store->ops->volume_by_name(store, "w", &volume), 0);
	w = volume.id;
	expect_same_files(store, readonly, w);
	change_large_files(store);
	ck_assert_int_eq(dump_volume(store, v, readonly, &dumps[1]), 0);
	/* What is given up leaves nothing. */
	part = dumps[1];
	part.length -= 5;
	ck_assert_int_eq(restore_memory(store, &part, NULL, w), -EBADMSG);
	expect_same_files(store, readonly, w);
	ck_assert_int_eq(restore_memory(store, &dumps[1], NULL, w), 0);
	expect_same_files(store, v, w);
	ck_assert_int_eq(dump_volume(store, v, 0, &dumps[2]), 0);
	ck_assert_int_eq(dump_volume(store, w, 0, &again), 0);
	expect_same_vnodes(&dumps[2], &again);
	/* In place of other contents, and back to those of the clone. */
	ck_assert_int_eq(restore_memory(store, &dumps[0], NULL, w), 0);
	expect_same_files(store, readonly, w);
	ck_assert_int_eq(store_volume_revert(store, readonly), 0);
	expect_same_files(store, v, w);
	store->ops->close(store);
	store = open_folder(path, false);
	expect_same_files(store, v, w);
	expect_same_files(store, readonly, w);
	free(again.bytes);
	store->ops->close(store);
	snprintf(command, sizeof(command), "rm -r '%s'", path);
	ck_assert_int_eq(system(command), 0);
	free_dumps();
}
END_TEST

/* -- damaged dumps -- */

static unsigned count_damaged(void)
{
	const char *text = getenv("STORE_DUMPS");

	return text ? (unsigned)strtoul(text, NULL, 10) : 400;
}

static void try_damaged(struct store *store, struct memory *dump, const char *before)
{
	struct store_volume volume;
	char *after;
	int rc = restore_memory(store, dump, "x", 0);

	if (!rc) {
		ck_assert_int_eq(store->ops->volume_by_name(store, "x", &volume), 0);
		ck_assert_int_eq(diskstore_faults(store, "a damaged dump that can be restored"), 0);
		ck_assert_int_eq(store_volume_remove(store, volume.id), 0);
		return;
	}
	ck_assert_msg(rc != -EBADMSG || message[0], "no message");
	ck_assert_msg(rc == -EBADMSG, "result %d", rc);
	after = diskstore_dump(store, "after a damaged dump");
	ck_assert_str_eq(before, after);
	free(after);
}

START_TEST(damaged)
{
	struct crashdisk *disk = make_disk();
	struct store_layer *layer;
	struct store *store = open_disk(disk, &layer);
	char *before = diskstore_dump(store, "at first");
	unsigned most = count_damaged();
	uint64_t random = 1;

	for (unsigned i = 0; i < most; i++) {
		struct memory copy = {0};
		/* Most of the bytes are contents, which any value fits. */
		size_t limit = i % 4 ? 9000 : dumps[0].length, at;

		write_memory(&copy, dumps[0].bytes, dumps[0].length);
		at = crashdisk_random(&random) % limit;
		if (i % 3 == 0)
			copy.length = at;
		else if (i % 3 == 1)
			copy.bytes[at] ^= (uint8_t)(1u << crashdisk_random(&random) % 8);
		else
			copy.bytes[at] = (uint8_t)crashdisk_random(&random);
		try_damaged(store, &copy, before);
		free(copy.bytes);
	}
	ck_assert_int_eq(diskstore_faults(store, "after all"), 0);
	free(before);
	diskstore_close(store, layer);
	crashdisk_free(disk);
	free_dumps();
}
END_TEST

START_TEST(hostile)
{
	/* Vnodes of the dump: directories 1, 3 ("d"), 5 ("d/e") and 7; files 2 ("a"), 4, 6, 8; link 10. */
	static const struct {
		uint8_t vnode;
		size_t offset; /* from its mark: 1, the number; 5, the uniquifier */
		uint32_t value;
		const char *message;
	} tries[] = {
		{5, 1, 3, "vnode 3 comes a second time"},
		{5, 1, 9, "is in directory 5, which did not come"},
		{4, 1, 2, "vnode 2 comes a second time"},
		{4, 1, 7, "needs an even number"},
		{4, 1, 0, "must be 1 to"},
		{4, 1, 0x7ffffffe, "must be 1 to"},
		{4, 5, 0, "has the uniquifier 0"},
		{4, 5, 77, "which has the uniquifier 77"},
		{1, 5, 2, "the root directory has the uniquifier 2"},
		{1, 1, 9, "is in directory 1, which did not come"},
	};
	struct crashdisk *disk = make_disk();
	struct store_layer *layer;
	struct store *store = open_disk(disk, &layer);

	for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
		struct memory copy = {0};

		write_memory(&copy, dumps[0].bytes, dumps[0].length);
		put_word(&copy, find_vnode(&copy, tries[i].vnode) + tries[i].offset,
			 tries[i].value);
		ck_assert_int_eq(restore_memory(store, &copy, "x", 0), -EBADMSG);
		ck_assert_msg(strstr(message, tries[i].message) != NULL, "%zu: %s", i, message);
		free(copy.bytes);
	}
	diskstore_close(store, layer);
	crashdisk_free(disk);
	free_dumps();
}
END_TEST

/* A directory that is below itself. */
START_TEST(loop)
{
	struct crashdisk *disk = make_disk();
	struct store_layer *layer;
	struct store *store = open_disk(disk, &layer);
	size_t at = find_bytes(&dumps[0], find_vnode(&dumps[0], 3), "p\0\0\0\1", 5);

	put_word(&dumps[0], at + 1, 5);
	ck_assert_int_eq(restore_memory(store, &dumps[0], "x", 0), -EBADMSG);
	ck_assert_msg(strstr(message, "leads to vnode 3, which is in directory 5") != NULL, "%s",
		      message);
	diskstore_close(store, layer);
	crashdisk_free(disk);
	free_dumps();
}
END_TEST

/* -- stops at each call -- */

static int op_dump(struct store *store)
{
	struct memory memory = {0};
	int rc = dump_volume(store, v, 0, &memory);

	free(memory.bytes);
	return rc;
}

static int op_restore(struct store *store)
{
	return restore_memory(store, &dumps[0], "x", 0);
}

static int op_onto(struct store *store)
{
	return restore_memory(store, &dumps[1], NULL, w);
}

/* What the volume has already. */
static int op_again(struct store *store)
{
	return restore_memory(store, &dumps[0], NULL, w);
}

/* What has begun is taken back. */
static int op_cut_off(struct store *store)
{
	struct memory part = dumps[1];

	part.length -= 5;
	return restore_memory(store, &part, NULL, w) == -EBADMSG ? 0 : -EPROTO;
}

static int op_revert(struct store *store)
{
	return store_volume_revert(store, readonly);
}

static int (*const ops[])(struct store *) = {op_dump,  op_restore, op_onto,
					     op_again, op_cut_off, op_revert};

/* Data versions after the way back depend on how often it was begun. */
static void drop_versions(char *text)
{
	for (char *at = text; (at = strstr(at, " version "));) {
		char *end = at + strlen(" version ");

		while (*end >= '0' && *end <= '9')
			end++;
		memmove(at, end, strlen(end) + 1);
	}
}

static char *dump_state(struct store *store, int op, const char *what)
{
	char *text = diskstore_dump(store, what);

	if (ops[op] == op_revert)
		drop_versions(text);
	return text;
}

struct states {
	int op;
	char *before, *after;
	uint64_t points;
};

static void rehearse(const struct crashdisk *base, struct states *states)
{
	struct crashdisk *disk = crashdisk_copy(base);
	struct store_layer *layer;
	struct store *store = open_disk(disk, &layer);

	states->before = dump_state(store, states->op, "before");
	ck_assert_int_eq(ops[states->op](store), 0);
	states->after = dump_state(store, states->op, "after");
	ck_assert_int_eq(diskstore_faults(store, "after"), 0);
	diskstore_close(store, layer);
	crashdisk_free(disk);
}

static void verify(struct states *states, struct crashdisk *disk, bool done, const char *what)
{
	struct store_layer *layer;
	struct store *store = open_disk(disk, &layer);
	char *now = dump_state(store, states->op, what);

	ck_assert_msg(!strcmp(now, states->after) || (!done && !strcmp(now, states->before)),
		      "%s: \n%s\nneither\n%s\nnor\n%s", what, now, states->before, states->after);
	ck_assert_msg(diskstore_faults(store, what) == 0, "%s", what);
	ck_assert_int_eq(state_create(store, v, "afterwards", STORE_FILE, NULL), 0);
	free(now);
	diskstore_close(store, layer);
	states->points++;
}

/* False: the operation has fewer calls. */
static bool stop(const struct crashdisk *base, struct states *states, uint64_t call, bool machine,
		 uint64_t *random)
{
	struct crashdisk *disk = crashdisk_copy(base);
	struct store_layer *layer;
	struct store *store = diskstore_open(disk, machine ? STORE_STRICT : STORE_LAZY, &layer);
	bool done, stopped;
	char what[100];

	ck_assert_ptr_nonnull(store);
	crashdisk_stop_at(disk, crashdisk_calls(disk) + call, crashdisk_random(random));
	done = ops[states->op](store) == 0;
	stopped = crashdisk_stopped(disk);
	crashdisk_stop_at(disk, 0, 0);
	diskstore_close(store, layer);
	if (machine)
		crashdisk_crashed(disk, crashdisk_random_keep(random), *random & 1,
				  crashdisk_random(random));
	else
		crashdisk_killed(disk);
	snprintf(what, sizeof(what), "operation %d, %s at call %llu", states->op,
		 machine ? "crash" : "kill", (unsigned long long)call);
	verify(states, disk, done, what);
	crashdisk_free(disk);
	return stopped;
}

static void stop_everywhere(bool machine)
{
	struct crashdisk *base = make_disk();
	uint64_t random = 1, points = 0;

	for (int op = 0; op < (int)(sizeof(ops) / sizeof(ops[0])); op++) {
		struct states states = {.op = op};

		rehearse(base, &states);
		for (uint64_t call = 0; stop(base, &states, call, machine, &random); call++)
			ck_assert_uint_lt(call, 2000);
		free(states.before);
		free(states.after);
		points += states.points;
	}
	printf("%llu stops\n", (unsigned long long)points);
	crashdisk_free(base);
	free_dumps();
}

/* The disk is full from that call on, then no longer: what was begun goes on, and its clone stays. False: the operation has fewer. */
static bool fill_disk_at(const struct crashdisk *base, struct states *states, uint64_t call)
{
	struct crashdisk *disk = crashdisk_copy(base);
	struct store_layer *layer;
	struct store *store = open_disk(disk, &layer);
	struct store_volume volume;
	char *now;
	uint32_t id;
	bool failed;

	crashdisk_fail_at(disk, crashdisk_calls(disk) + call, UINT32_MAX, ENOSPC);
	failed = store_volume_revert(store, readonly) != 0;
	crashdisk_fail_at(disk, UINT64_MAX, 0, 0);
	ck_assert_int_eq(store->ops->volume(store, v, &volume), 0);
	ck_assert(failed || volume.online);
	if (!volume.online) {
		states->points++;
		ck_assert_int_eq(store_volume_remove(store, readonly), STORE_VBUSY);
		ck_assert_int_eq(store_volume_clone(store, v, STORE_RO, &id), STORE_VBUSY);
		ck_assert_int_eq(store_volume_revert(store, backup), STORE_VBUSY);
	}
	if (failed)
		ck_assert_int_eq(store_volume_revert(store, readonly), 0);
	now = dump_state(store, states->op, "tried again");
	ck_assert_str_eq(now, states->after);
	ck_assert_int_eq(diskstore_faults(store, "tried again"), 0);
	ck_assert_int_eq(store_volume_remove(store, readonly), 0);
	free(now);
	diskstore_close(store, layer);
	crashdisk_free(disk);
	return failed;
}

START_TEST(full_disk)
{
	struct crashdisk *base = make_disk();
	struct states states = {.op = sizeof(ops) / sizeof(ops[0]) - 1};

	rehearse(base, &states);
	for (uint64_t call = 0; fill_disk_at(base, &states, call); call++)
		ck_assert_uint_lt(call, 2000);
	ck_assert_uint_gt(states.points, 0);
	free(states.before);
	free(states.after);
	crashdisk_free(base);
	free_dumps();
}
END_TEST

/*
 * The disk is full from that call of a restore that is given up on, then no longer: the volume comes back without a new start. False:
 * the operation has fewer calls.
 */
static bool give_up_at(const struct crashdisk *base, struct states *states, uint64_t call)
{
	struct crashdisk *disk = crashdisk_copy(base);
	struct store_layer *layer;
	struct store *store = open_disk(disk, &layer);
	uint64_t last = crashdisk_calls(disk) + call;
	struct store_volume volume;
	bool reached;
	char *now;

	crashdisk_fail_at(disk, last, UINT32_MAX, ENOSPC);
	ops[states->op](store);
	reached = crashdisk_calls(disk) > last;
	crashdisk_fail_at(disk, UINT64_MAX, 0, 0);
	ck_assert_int_eq(store->ops->volume(store, w, &volume), 0);
	states->points += !volume.online;
	ck_assert(store_restores_retry(store));
	ck_assert_int_eq(store->ops->volume(store, w, &volume), 0);
	ck_assert(volume.online);
	now = dump_state(store, states->op, "given up");
	ck_assert_str_eq(now, states->before);
	ck_assert_int_eq(diskstore_faults(store, "given up"), 0);
	free(now);
	diskstore_close(store, layer);
	crashdisk_free(disk);
	return reached;
}

START_TEST(full_disk_given_up)
{
	struct crashdisk *base = make_disk();
	struct states states = {.op = sizeof(ops) / sizeof(ops[0]) - 2};

	ck_assert(ops[states.op] == op_cut_off);
	rehearse(base, &states);
	for (uint64_t call = 0; give_up_at(base, &states, call); call++)
		ck_assert_uint_lt(call, 2000);
	ck_assert_uint_gt(states.points, 0);
	free(states.before);
	free(states.after);
	crashdisk_free(base);
	free_dumps();
}
END_TEST

/* Restores that fill the disk leave room for removals, and for the next start. */
START_TEST(too_large)
{
	struct crashdisk *disk = make_disk();
	struct store_layer *layer;
	struct store *store = open_disk(disk, &layer);
	struct memory many = {0};
	unsigned made = 0;
	uint64_t limit;
	char name[16];
	int rc = 0;

	for (int i = 0; i < 3000; i++) {
		snprintf(name, sizeof(name), "d/n%d", i);
		ck_assert_int_eq(state_create(store, v, name, STORE_FILE, NULL), 0);
	}
	ck_assert_int_eq(dump_volume(store, v, 0, &many), 0);
	diskstore_close(store, layer);
	store = open_disk(disk, &layer);
	limit = crashdisk_used(disk) + (12u << 20);
	crashdisk_limit(disk, limit);
	while (!rc && made < 100) {
		snprintf(name, sizeof(name), "copy%u", made++);
		rc = restore_memory(store, &many, name, 0);
	}
	ck_assert_int_eq(rc, STORE_VDISKFULL);
	ck_assert_uint_lt(crashdisk_used(disk), limit - (1u << 20));
	ck_assert_int_eq(state_remove(store, v, "d/n0", STORE_FILE), 0);
	diskstore_close(store, layer);
	store = open_disk(disk, &layer);
	ck_assert_int_eq(state_remove(store, v, "d/n1", STORE_FILE), 0);
	ck_assert_int_eq(diskstore_faults(store, "full"), 0);
	diskstore_close(store, layer);
	free(many.bytes);
	crashdisk_free(disk);
	free_dumps();
}
END_TEST

#define MANY 1500

static void make_many(struct store *store)
{
	uint32_t id;
	char name[16];

	for (int i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "d/n%d", i);
		ck_assert_int_eq(state_create(store, v, name, STORE_FILE, NULL), 0);
		ck_assert_int_eq(state_write(store, v, name, 0, 4000, 4000, i), 0);
	}
	ck_assert_int_eq(store_volume_clone(store, v, STORE_BACKUP, &id), 0);
	ck_assert_uint_eq(id, backup);
	for (int i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "d/n%d", i);
		ck_assert_int_eq(state_remove(store, v, name, STORE_FILE), 0);
	}
}

/* The way back to a clone leaves room for removals, and for the next start. It ends when there is room. */
START_TEST(revert_too_large)
{
	struct crashdisk *disk = make_disk();
	struct store_layer *layer;
	struct store *store = open_disk(disk, &layer);
	struct store_fid fid;
	uint64_t limit;

	make_many(store);
	diskstore_close(store, layer);
	store = open_disk(disk, &layer);
	limit = crashdisk_used(disk) + (8u << 20);
	crashdisk_limit(disk, limit);
	ck_assert_int_eq(store_volume_revert(store, backup), STORE_VDISKFULL);
	ck_assert_uint_lt(crashdisk_used(disk), limit - (1u << 20));
	ck_assert_int_eq(state_remove(store, w, "small", STORE_FILE), 0);
	diskstore_close(store, layer);
	store = open_disk(disk, &layer);
	ck_assert_int_eq(state_remove(store, w, "l", STORE_FILE), 0);
	crashdisk_limit(disk, UINT64_MAX);
	ck_assert_int_eq(store_volume_revert(store, backup), 0);
	ck_assert_int_eq(state_walk(store, v, "d/n7", &fid), 0);
	ck_assert_int_eq(diskstore_faults(store, "reverted"), 0);
	diskstore_close(store, layer);
	crashdisk_free(disk);
	free_dumps();
}
END_TEST

/* A full disk gets the room of the copy, so that the store can be opened. */
START_TEST(full_start)
{
	struct crashdisk *disk = make_disk();
	struct store_options options = {.path = "disk", .no_reserve = true};
	struct store *store;

	for (int i = 0; i < 2; i++) {
		options.layer = options.copy_layer = crashdisk_layer(disk);
		ck_assert_msg(store_open(&options, &store, message) == 0, "%s", message);
		if (i)
			ck_assert_int_eq(state_remove(store, v, "f", STORE_FILE), 0);
		store->ops->close(store);
		options.layer->ops->destroy(options.layer);
		if (i)
			break;
		ck_assert_uint_lt(crashdisk_length(disk, "copy/db"), UINT64_MAX);
		crashdisk_limit(disk, crashdisk_used(disk));
	}
	crashdisk_free(disk);
	free_dumps();
}
END_TEST

START_TEST(killed)
{
	stop_everywhere(false);
}
END_TEST

START_TEST(crashed)
{
	stop_everywhere(true);
}
END_TEST

TEST_MAIN_WITHIN(300, "transfer", same_vnodes, wrong_order, hidden_and_busy, one_moment,
		 new_versions, second_revert, large_files, damaged, hostile, loop, full_disk,
		 full_disk_given_up, full_start, too_large, revert_too_large, killed, crashed)
