/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of the collections of fs_stats.c: the contents of each collection, word by word. */
#include "tests/fileserver/fixture.h"

#include "fileserver/service/services.h"

static struct world world;
static AFS_CollData data;

static void setup(bool calls)
{
	const struct rxw_rpcstats_options options = {.size = sizeof(options), .process = true};

	world_open(&world, tree_make(), false, 0);
	world.service->start_time = 1234567890;
	if (calls)
		ck_assert_int_eq(rxw_rpcstats_create(&options, &world.service->xstats.calls), 0);
	data = (AFS_CollData){0};
}

static void teardown(void)
{
	xdrfree_AFS_CollData(&data);
	rxw_rpcstats_destroy(world.service->xstats.calls);
	world_close(&world);
}

static void collect(int32_t collection, uint32_t words)
{
	xdrfree_AFS_CollData(&data);
	data = (AFS_CollData){0};
	ck_assert_int_eq(fsd_xstats(world.service, collection, &data), 0);
	ck_assert_uint_eq(data.len, words);
}

static void called(unsigned function, uint64_t run_ns, uint64_t sent, int32_t code)
{
	struct rxw_rpc_report report = {.size = sizeof(report),
					.interface = &RXAFS_interface,
					.function = function,
					.code = code,
					.bytes_sent = sent,
					.run_ns = run_ns};

	fsd_xstats_report(&world.service->xstats, &report);
}

START_TEST(collections)
{
	setup(true);
	collect(0, 0);
	ck_assert_ptr_null(data.val);
	collect(1, 98);
	ck_assert_int_eq(data.val[0], 1);
	collect(2, 666);
	ck_assert_int_eq(data.val[0], 2);
	collect(3, 16);
	xdrfree_AFS_CollData(&data);
	data = (AFS_CollData){0};
	ck_assert_int_eq(fsd_xstats(world.service, 4, &data), 1);
	ck_assert_int_eq(fsd_xstats(world.service, -1, &data), 1);
	ck_assert_int_eq(fsd_xstats(world.service, INT32_MIN, &data), 1);
	ck_assert_ptr_null(data.val);
	teardown();
}
END_TEST

/* Times are pairs of 64-bit numbers in little-endian order. */
static void want_time(int at, int32_t seconds, int32_t microseconds)
{
	ck_assert_int_eq(data.val[at], seconds);
	ck_assert_int_eq(data.val[at + 1], 0);
	ck_assert_int_eq(data.val[at + 2], microseconds);
	ck_assert_int_eq(data.val[at + 3], 0);
}

#define CALLS(i)     (102 + 18 * (i))
#define TRANSFERS(i) (606 + 30 * (i))

START_TEST(procedures)
{
	setup(true);
	called(RXAFS_FN_FetchStatus, 2000000000, 148, 0);
	called(RXAFS_FN_FetchStatus, 1500000, 148, 102);
	called(RXAFS_FN_BulkStatus, 7000, 10, 0);
	called(RXAFS_FN_InlineBulkStatus, 9000, 10, 0);
	called(RXAFS_FN_GetXStats, 3000, 10, 0);
	called(RXAFS_FN_GetCapabilities, 3000, 8, 0);
	collect(2, 666);
	ck_assert_int_eq(data.val[69], 1); /* GetCapabilities */
	want_time(98, 1234567890, 0);
	ck_assert_int_eq(data.val[CALLS(2)], 2);
	ck_assert_int_eq(data.val[CALLS(2) + 1], 1);
	want_time(CALLS(2) + 2, 2, 1500);
	want_time(CALLS(2) + 6, 4, 2);
	want_time(CALLS(2) + 10, 0, 1500);
	want_time(CALLS(2) + 14, 2, 0);
	/* One that never ran. */
	ck_assert_int_eq(data.val[CALLS(3)], 0);
	want_time(CALLS(3) + 2, 0, 0);
	want_time(CALLS(3) + 10, 999999, 0);
	want_time(CALLS(3) + 14, 0, 0);
	/* Both variants of a procedure are counted as one. */
	ck_assert_int_eq(data.val[CALLS(25)], 2);
	ck_assert_int_eq(data.val[CALLS(25) + 1], 2);
	want_time(CALLS(25) + 2, 0, 16);
	want_time(CALLS(25) + 10, 0, 7);
	want_time(CALLS(25) + 14, 0, 9);
	ck_assert_int_eq(data.val[CALLS(27)], 1);
	teardown();
}
END_TEST

START_TEST(transfers)
{
	/* Upper end of each size class, and the value after it. */
	static const uint32_t sizes[] = {0,	 128,	 129,	 1024,	  1025,	  8192,
					 8193,	 16384,	 16385,	 32768,	  32769,  131072,
					 131073, 524288, 524289, 1048576, 1048577};
	static const int32_t want[9] = {2, 2, 2, 2, 2, 2, 2, 2, 1};
	uint64_t sum = 0;

	setup(true);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		called(i % 2 ? RXAFS_FN_FetchData : RXAFS_FN_FetchData64, 1000 * (i + 1),
		       sizes[i] + (i % 2 ? 124 : 128), 0);
		sum += sizes[i];
	}
	called(RXAFS_FN_FetchData64, 5, 0, 102);
	collect(2, 666);
	ck_assert_int_eq(data.val[CALLS(0)], 18);
	ck_assert_int_eq(data.val[CALLS(0) + 1], 17);
	ck_assert_int_eq(data.val[TRANSFERS(0)], 18);
	ck_assert_int_eq(data.val[TRANSFERS(0) + 1], 17);
	want_time(TRANSFERS(0) + 2, 0, 153);
	want_time(TRANSFERS(0) + 10, 0, 1);
	want_time(TRANSFERS(0) + 14, 0, 17);
	ck_assert_int_eq(data.val[TRANSFERS(0) + 18], (int32_t)(sum / 1024));
	ck_assert_int_eq(data.val[TRANSFERS(0) + 19], 0);
	ck_assert_int_eq(data.val[TRANSFERS(0) + 20], 1048577);
	for (int i = 0; i < 9; i++)
		ck_assert_int_eq(data.val[TRANSFERS(0) + 21 + i], want[i]);
	/* Stores: always none. */
	ck_assert_int_eq(data.val[TRANSFERS(1)], 0);
	want_time(TRANSFERS(1) + 10, 999999, 0);
	ck_assert_int_eq(data.val[TRANSFERS(1) + 19], 999999999);
	ck_assert_int_eq(data.val[TRANSFERS(1) + 20], 0);
	teardown();
}
END_TEST

/* Without a collector all words are present, but no times. */
/* Those of stores in ranges; an empty one asks for the session. */
START_TEST(ranges)
{
	struct rxw_rpc_report report = {.size = sizeof(report),
					.interface = &RXAFS_interface,
					.function = RXAFS_FN_StoreRange,
					.bytes_received = 36 + 5000,
					.run_ns = 1000};
	const struct fsd_transfers *stored;

	setup(true);
	stored = &world.service->xstats.stored;
	fsd_xstats_report(&world.service->xstats, &report);
	report.bytes_received = 36;
	fsd_xstats_report(&world.service->xstats, &report);
	ck_assert_uint_eq(stored->count, 1);
	ck_assert_uint_eq(stored->good, 1);
	ck_assert_uint_eq(stored->bytes, 5000);
	teardown();
}
END_TEST

START_TEST(nothing_counted)
{
	setup(false);
	called(RXAFS_FN_FetchData64, 1000, 128 + 5, 0);
	collect(2, 666);
	ck_assert_int_eq(data.val[CALLS(0)], 0);
	want_time(CALLS(0) + 10, 999999, 0);
	ck_assert_int_eq(data.val[TRANSFERS(0)], 1);
	ck_assert_int_eq(data.val[TRANSFERS(0) + 19], 5);
	teardown();
}
END_TEST

TEST_MAIN("xstats", collections, procedures, transfers, ranges, nothing_counted)
