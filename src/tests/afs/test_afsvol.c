/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of afs/afsvol.xg with bytes recorded from servers of another make (afs-location 10). */
#include "tests/afs/known.h"

#include "afs/afsvol.h"

START_TEST(lists_one)
{
	volEntries es;

	/* 55 words: 0 name, 32 id, 34 backup, 35 parent, 37 status, 38 copied, 39 in use, ... */
	known_answer("00000001 00000065 00000078 00000000*30 20000012 00000000 200000b1 20000012 "
		     "00000000 00000002 6b0102c7 00000001 00000000*2 6b0102c7 6b0102c8 6b0102c9 "
		     "6b0102ca 00000010 00000006 00000000 00000008 00000000*5");
	ck_assert_int_eq(AFSVolListOneVolume(known_peer(), 0, 0x20000012, &es), 0);
	known_request("00000079 00000000 20000012");
	ck_assert_uint_eq(es.len, 1);
	ck_assert_str_eq(es.val[0].name, "ex");
	ck_assert_uint_eq(es.val[0].volid, 0x20000012);
	ck_assert_uint_eq(es.val[0].backupID, 0x200000b1);
	ck_assert_int_eq(es.val[0].status, 2);
	ck_assert_uint_eq(es.val[0].inUse, 1);
	ck_assert_int_eq(es.val[0].creationDate, 0x6b0102c7);
	ck_assert_int_eq(es.val[0].backupDate, 0x6b0102ca);
	ck_assert_int_eq(es.val[0].dayUse, 16);
	ck_assert_int_eq(es.val[0].filecount, 6);
	ck_assert_int_eq(es.val[0].size, 8);
	xdrfree_volEntries(&es);
}
END_TEST

START_TEST(asks_partition)
{
	diskPartition64 info;

	/* 519 words: 256 of a name, 256 of a device, a descriptor, three long numbers */
	known_answer("0000002f 00000076 00000069 00000063 00000065 00000070 00000061 00000000*249 "
		     "0000002f 00000000*255 ffffffff 00000000*2 00000000 047a637c "
		     "00000000 05b13bd0");
	ck_assert_int_eq(AFSVolPartitionInfo64(known_peer(), "/vicepa", &info), 0);
	known_request("00010003 00000007 '/vicepa' 00");
	ck_assert_str_eq(info.name, "/vicepa");
	ck_assert_str_eq(info.devName, "/");
	ck_assert_int_eq(info.lock_fd, -1);
	ck_assert_int_eq(info.free, 0x047a637c);
	ck_assert_int_eq(info.minFree, 0x05b13bd0);
}
END_TEST

KNOWN_MAIN("afsvol", lists_one, asks_partition)
