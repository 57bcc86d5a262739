/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of vol_service.c, with client stubs and hand-encoded calls. */
#include "tests/fileserver/fixture.h"

#include <time.h>

#include "afs/afsvol.h"
#include "afs/numbers.h"
#include "volume/export/object.h"
#include "fileserver/service/services.h"
#include "tests/fileserver/cell/cell_store.h"

static struct world world;
static struct wire wire;
static rxw_connection *connection;
static uint32_t id;

static void setup(void)
{
	world_open(&world, tree_make(), false, 0);
	id = world.export->id;
	ck_assert(wire_open(&wire, AFS_SERVICE_VOL, fsd_vol_serve, world.service, "127.0.0.1"));
	connection = wire_client(&wire, 1);
}

static void teardown(void)
{
	wire_close(&wire);
	world_close(&world);
}

/* A call encoded by hand: the opcode and words; the reply is in wire.reply. */
static int32_t ask(uint32_t opcode, const uint32_t *words, size_t n)
{
	uint8_t request[64];

	rxw_xdr_store32(request, opcode);
	for (size_t i = 0; i < n; i++)
		rxw_xdr_store32(request + 4 + 4 * i, words[i]);
	return wire_call(&wire, 1, request, 4 + 4 * n);
}

static uint32_t word(size_t i)
{
	ck_assert_uint_lt(4 * i, wire.reply_length);
	return rxw_xdr_load32(wire.reply + 4 * i);
}

START_TEST(partitions)
{
	partEntries ids = {0};
	pIDs all = {0};

	setup();
	ck_assert_int_eq(AFSVolXListPartitions(connection, &ids), 0);
	ck_assert_uint_eq(ids.len, 1);
	ck_assert_int_eq(ids.val[0], 0);
	xdrfree_partEntries(&ids);
	ck_assert_int_eq(AFSVolListPartitions(connection, &all), 0);
	ck_assert_int_eq(all.partIds[0], 0);
	for (int i = 1; i < 26; i++)
		ck_assert_int_eq(all.partIds[i], -1);
	ck_assert_int_eq(ask(115, NULL, 0), 0);
	ck_assert_uint_eq(wire.reply_length, 26 * 4);
	teardown();
}
END_TEST

START_TEST(partition_space)
{
	static const char *const wrong[] = {"/vicepb", "/vicepaa", "vicepa", "a", ""};
	diskPartition64 wide = {0};
	diskPartition narrow = {0};
	struct store_space space;

	setup();
	ck_assert_int_eq(world.layer->ops->space(world.layer, &space), 0);
	ck_assert_int_eq(AFSVolPartitionInfo64(connection, "/vicepa", &wide), 0);
	ck_assert_str_eq(wide.name, "/vicepa");
	ck_assert_int_eq(wide.lock_fd, -1);
	ck_assert_int_eq(wide.totalUsable, 0);
	ck_assert_int_eq(wide.minFree, (int64_t)space.total_kib);
	ck_assert(wide.free > 0 && wide.free <= wide.minFree);
	ck_assert_ptr_null(strstr(wide.devName, world.root));
	ck_assert_int_eq(AFSVolPartitionInfo(connection, "/vicepa", &narrow), 0);
	ck_assert_str_eq(narrow.name, "/vicepa");
	ck_assert_int_eq(narrow.lock_fd, -1);
	ck_assert_int_eq(narrow.minFree,
			 wide.minFree > INT32_MAX ? INT32_MAX : (int32_t)wide.minFree);
	ck_assert_int_gt(narrow.free, 0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		ck_assert_int_eq(AFSVolPartitionInfo64(connection, wrong[i], &wide), 1492325125);
		ck_assert_int_eq(AFSVolPartitionInfo(connection, wrong[i], &narrow), 1492325125);
	}
	/* "/vicepa": 7 bytes and one of padding */
	ck_assert_int_eq(ask(65539, (const uint32_t[]){7, 0x2f766963, 0x65706100}, 3), 0);
	ck_assert_uint_eq(wire.reply_length, 519 * 4);
	ck_assert_uint_eq(word(0), '/');
	ck_assert_uint_eq(word(6), 'a');
	ck_assert_uint_eq(word(7), 0);
	ck_assert_uint_eq(word(512), UINT32_MAX);
	ck_assert_int_eq(ask(119, (const uint32_t[]){7, 0x2f766963, 0x65706100}, 3), 0);
	ck_assert_uint_eq(wire.reply_length, 68 * 4);
	teardown();
}
END_TEST

/* Disk sizes beyond 32 bits are clipped, not wrapped. */
static int huge_space(struct export_layer *layer, struct store_space *space)
{
	(void)layer;
	*space = (struct store_space){1ull << 40, 1ull << 39};
	return 0;
}

START_TEST(large_partition)
{
	struct export_layer_ops ops;
	diskPartition64 wide = {0};
	diskPartition narrow = {0};
	volEntries list = {0};

	setup();
	ops = *world.layer->ops;
	ops.space = huge_space;
	world.layer->ops = &ops;
	ck_assert_int_eq(AFSVolPartitionInfo64(connection, "/vicepa", &wide), 0);
	ck_assert(wide.minFree == 1ll << 40 && wide.free == 1ll << 39);
	ck_assert_int_eq(AFSVolPartitionInfo(connection, "/vicepa", &narrow), 0);
	ck_assert_int_eq(narrow.minFree, INT32_MAX);
	ck_assert_int_eq(narrow.free, INT32_MAX);
	/* The volume's size is independent of the disk's. */
	ck_assert_int_eq(AFSVolListOneVolume(connection, 0, id, &list), 0);
	ck_assert_int_lt(list.val[0].size, 100);
	xdrfree_volEntries(&list);
	teardown();
}
END_TEST

static void check_volume(const volintInfo *info)
{
	int64_t now = time(NULL);

	ck_assert_str_eq(info->name, "data.readonly");
	ck_assert_uint_eq(info->volid, id);
	ck_assert_int_eq(info->type, 1);
	ck_assert_uint_eq(info->parentID, id - 1);
	ck_assert_uint_eq(info->cloneID, id);
	ck_assert_uint_eq(info->backupID, 0);
	ck_assert_int_eq(info->status, 2);
	ck_assert_int_eq(info->inUse, 1);
	ck_assert_int_eq(info->needsSalvaged, 0);
	ck_assert_int_eq(info->destroyMe, 0);
	ck_assert(info->creationDate > 1700000000 && info->creationDate <= now);
	ck_assert(info->updateDate > 1700000000 && info->updateDate <= now + 1);
	ck_assert_int_eq(info->backupDate, 0);
	ck_assert_int_ge(info->size, 0);
}

START_TEST(volumes)
{
	volEntries list = {0};

	setup();
	ck_assert_int_eq(AFSVolListVolumes(connection, 0, 1, &list), 0);
	ck_assert_uint_eq(list.len, 1);
	check_volume(&list.val[0]);
	xdrfree_volEntries(&list);
	ck_assert_int_eq(AFSVolListVolumes(connection, 0, 0, &list), 0);
	ck_assert_uint_eq(list.len, 1);
	ck_assert_uint_eq(list.val[0].volid, id);
	ck_assert_str_eq(list.val[0].name, "");
	ck_assert_int_eq(list.val[0].status, 0);
	xdrfree_volEntries(&list);
	ck_assert_int_eq(AFSVolListOneVolume(connection, 0, id, &list), 0);
	ck_assert_uint_eq(list.len, 1);
	check_volume(&list.val[0]);
	xdrfree_volEntries(&list);
	ck_assert_int_eq(AFSVolListOneVolume(connection, 0, id + 1, &list), 19);
	ck_assert_int_eq(AFSVolListOneVolume(connection, 1, id, &list), 1492325125);
	ck_assert_int_eq(AFSVolListVolumes(connection, 1, 1, &list), 1492325125);
	ck_assert_int_eq(AFSVolListVolumes(connection, -1, 1, &list), 1492325125);
	teardown();
}
END_TEST

/* The sizes that vos examine shows: of the tree, with directories and links. */
START_TEST(sizes)
{
	struct export_used used;
	volEntries list = {0};
	char bytes[3000] = "";

	setup();
	tree_file(world.root, "a", bytes, 3000, 0644);
	tree_file(world.root, "b", bytes, 0, 0644);
	tree_dir(world.root, "sub", 0755);
	tree_file(world.root, "sub/c", bytes, 1024, 0644);
	tree_link(world.root, "sub/link", "c");
	/* The count goes on after a call that has waited long enough. */
	do
		export_usage_get(world.export->usage, 1000, &used);
	while (used.objects < 6);
	ck_assert_int_eq(AFSVolListOneVolume(connection, 0, id, &list), 0);
	ck_assert_int_eq(list.val[0].filecount, 6);
	ck_assert_int_eq(list.val[0].size, 2 + 3 + 1 + 2 + 1 + 1);
	xdrfree_volEntries(&list);
	export_usage_get(NULL, 1000, &used);
	ck_assert_uint_eq(used.objects, 0);
	teardown();
}
END_TEST

START_TEST(both_volumes)
{
	volEntries list = {0};
	volXEntries extended = {0};

	setup();
	world.service->rootafs = fsd_rootafs_create("test.cell", false, 1700000000);
	ck_assert_ptr_nonnull(world.service->rootafs);
	ck_assert_int_eq(AFSVolListVolumes(connection, 0, 1, &list), 0);
	ck_assert_uint_eq(list.len, 2);
	ck_assert_str_eq(list.val[1].name, "root.afs.readonly");
	ck_assert_uint_eq(list.val[1].volid, FSD_ROOTAFS_ID);
	ck_assert_int_eq(list.val[1].filecount, 3);
	xdrfree_volEntries(&list);
	ck_assert_int_eq(AFSVolListOneVolume(connection, 0, FSD_ROOTAFS_ID, &list), 0);
	ck_assert_uint_eq(list.len, 1);
	ck_assert_uint_eq(list.val[0].volid, FSD_ROOTAFS_ID);
	xdrfree_volEntries(&list);
	ck_assert_int_eq(AFSVolXListVolumes(connection, 0, 0, &extended), 0);
	ck_assert_uint_eq(extended.len, 2);
	xdrfree_volXEntries(&extended);
	teardown();
}
END_TEST

/* The words of section 10 of the specification: a count, then 55 of them. */
START_TEST(volume_words)
{
	setup();
	ck_assert_int_eq(ask(121, (const uint32_t[]){0, id}, 2), 0);
	ck_assert_uint_eq(wire.reply_length, 56 * 4);
	ck_assert_uint_eq(word(0), 1);
	ck_assert_uint_eq(word(1), 'd');
	ck_assert_uint_eq(word(4), 'a');
	ck_assert_uint_eq(word(13), 'y');
	for (int i = 14; i < 33; i++)
		ck_assert_uint_eq(word((size_t)i), 0);
	ck_assert_uint_eq(word(1 + 32), id);
	ck_assert_uint_eq(word(1 + 33), 1);
	ck_assert_uint_eq(word(1 + 35), id - 1);
	ck_assert_uint_eq(word(1 + 37), 2);
	ck_assert_uint_eq(word(1 + 39), 1);
	ck_assert_int_eq(ask(125, (const uint32_t[]){0, id}, 2), 0);
	ck_assert_uint_eq(wire.reply_length, 81 * 4);
	ck_assert_uint_eq(word(1 + 32), id);
	teardown();
}
END_TEST

START_TEST(extended)
{
	volXEntries list = {0};

	setup();
	atomic_store(&world.service->counters.statuses, 40);
	atomic_store(&world.service->counters.fetches, 2);
	world.service->start_time = (uint32_t)time(NULL) - 100;
	ck_assert_int_eq(AFSVolXListVolumes(connection, 0, 1, &list), 0);
	ck_assert_uint_eq(list.len, 1);
	ck_assert_str_eq(list.val[0].name, "data.readonly");
	ck_assert_uint_eq(list.val[0].volid, id);
	ck_assert_int_eq(list.val[0].status, 2);
	ck_assert_int_eq(list.val[0].inUse, 1);
	ck_assert_int_eq(list.val[0].dayUse, 42);
	xdrfree_volXEntries(&list);
	world.service->start_time = (uint32_t)time(NULL) - 10 * 86400;
	ck_assert_int_eq(AFSVolXListOneVolume(connection, 0, id, &list), 0);
	ck_assert_int_eq(list.val[0].dayUse, 4); /* of the average day */
	xdrfree_volXEntries(&list);
	ck_assert_int_eq(AFSVolXListVolumes(connection, 0, 0, &list), 0);
	ck_assert_uint_eq(list.val[0].volid, id);
	ck_assert_str_eq(list.val[0].name, "");
	xdrfree_volXEntries(&list);
	ck_assert_int_eq(AFSVolXListOneVolume(connection, 0, 1, &list), 19);
	ck_assert_int_eq(AFSVolXListOneVolume(connection, 9, id, &list), 1492325125);
	ck_assert_int_eq(AFSVolXListVolumes(connection, 9, 1, &list), 1492325125);
	teardown();
}
END_TEST

/* No transaction exists, and none can be started. */
START_TEST(transactions)
{
	/* Calls of superusers: refused by the opcode, whatever the arguments. */
	static const uint32_t refused[] = {100, 101, 102, 103,	 104,	105,   106,
					   108, 109, 111, 114,	 117,	120,   122,
					   123, 126, 128, 65536, 65537, 65538, 65547};
	static const uint32_t unknown[] = {0, 99, 129, 65540, 0x7fffffff};
	transDebugEntries list = {0};
	volser_status status = {0};
	char *name = NULL;
	int32_t value = 0, part = 0;
	uint32_t volume = 0;

	setup();
	ck_assert_int_eq(AFSVolMonitor(connection, &list), 0);
	ck_assert_uint_eq(list.len, 0);
	ck_assert_int_eq(AFSVolGetFlags(connection, 5, &value), 2);
	ck_assert_int_eq(AFSVolGetName(connection, 5, &name), 2);
	ck_assert_ptr_null(name);
	ck_assert_int_eq(AFSVolGetStatus(connection, 5, &status), 2);
	ck_assert_int_eq(AFSVolGetNthVolume(connection, 0, &volume, &part), 1492325121);
	ck_assert_int_eq(AFSVolTransCreate(connection, id, 0, 1, &value), 1492325127);
	ck_assert_int_eq(value, 0);
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		ck_assert_msg(ask(refused[i], NULL, 0) == 1492325127, "operation %u", refused[i]);
		ck_assert_uint_eq(wire.reply_length, 0);
	}
	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
		ck_assert_int_eq(ask(unknown[i], NULL, 0), -455);
	ck_assert_int_eq(ask(121, NULL, 0), -453);
	teardown();
}
END_TEST

/* What all may ask neither needs the transaction for itself nor counts as its use. */
START_TEST(anonymous_looks)
{
	const struct fsd_cell_options plain = {0};
	const struct store_new_volume new = {.name = "v"};
	struct fsd_transaction before, now;
	struct store *served;
	volser_status status = {0};
	char *name = NULL;
	int32_t tid, flags;
	uint32_t made;

	setup();
	make_cell(&plain);
	ck_assert_int_eq(store_volume_create(cell_store, &new, &made), 0);
	ck_assert_int_eq(fsd_transaction_begin(cell, made, FSD_OFFLINE, &tid), 0);
	ck_assert_int_eq(fsd_transaction_enter(cell, tid, "Restore", &before), 0);
	served = world.service->store;
	world.service->store = cell_store;
	world.service->cell = cell;
	ck_assert_int_eq(AFSVolGetFlags(connection, tid, &flags), 0);
	ck_assert_int_eq(AFSVolGetName(connection, tid, &name), 0);
	ck_assert_str_eq(name, "v");
	free(name);
	ck_assert_int_eq(AFSVolGetStatus(connection, tid, &status), 0);
	ck_assert_uint_eq(status.volID, made);
	ck_assert_int_eq(AFSVolGetFlags(connection, tid + 1, &flags), 2);
	before.deleted = true;
	fsd_transaction_leave(cell, &before);
	ck_assert(fsd_transaction_of(cell, made, &before));
	ck_assert_int_eq(AFSVolGetFlags(connection, tid, &flags), 2);
	ck_assert(fsd_transaction_of(cell, made, &now));
	ck_assert_uint_eq(now.touched, before.touched);
	ck_assert_str_eq(now.name, "Restore");
	world.service->store = served;
	world.service->cell = NULL;
	remove_cell();
	teardown();
}
END_TEST

TEST_MAIN("vol_service", partitions, partition_space, large_partition, volumes, sizes, both_volumes,
	  volume_words, extended, transactions, anonymous_looks)
