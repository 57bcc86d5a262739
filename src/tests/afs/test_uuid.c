/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of afs/values.c: octets and text, both ways, and malformed text. */
#include "tests/tools/testing.h"

#include "afs/uuid.h"

START_TEST(text_both_ways)
{
	static const uint8_t octets[16] = {0x00, 0x09, 0x3a, 0x3a, 0xfc, 0x49, 0x1b, 0x00,
					   0xbb, 0xda, 0x01, 0x00, 0x4d, 0x0a, 0xaa, 0x77};
	struct rxw_uuid uuid, again;
	char text[AFS_UUID_TEXT];

	afs_uuid_from_octets(&uuid, octets);
	ck_assert_uint_eq(uuid.time_low, 0x00093a3a);
	ck_assert_uint_eq(uuid.time_mid, 0xfc49);
	ck_assert_uint_eq(uuid.time_hi_and_version, 0x1b00);
	ck_assert_int_eq(uuid.clock_seq_hi_and_reserved, -69);
	ck_assert_int_eq(uuid.node[4], -86);
	afs_uuid_to_text(&uuid, text);
	ck_assert_str_eq(text, "00093a3a-fc49-1b00-bbda-01004d0aaa77");
	ck_assert(afs_uuid_from_text(&again, text));
	ck_assert(afs_uuid_same(&uuid, &again));
	ck_assert(afs_uuid_from_text(&again, "00093A3A-FC49-1B00-BBDA-01004D0AAA77"));
	ck_assert(afs_uuid_same(&uuid, &again));
	again.node[5]++;
	ck_assert(!afs_uuid_same(&uuid, &again));
}
END_TEST

START_TEST(bad_text)
{
	static const char *const bad[] = {
		"",
		"00093a3a",
		"00093a3a-fc49-1b00-bbda-01004d0aaa7",
		"00093a3a-fc49-1b00-bbda-01004d0aaa777",
		"00093a3a-fc49-1b00-bbda-01004d0aaa7g",
		"00093a3a+fc49-1b00-bbda-01004d0aaa77",
	};
	struct rxw_uuid uuid = {.time_low = 7};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(!afs_uuid_from_text(&uuid, bad[i]), "took \"%s\"", bad[i]);
	ck_assert_uint_eq(uuid.time_low, 7);
}
END_TEST

TEST_MAIN("uuid", text_both_ways, bad_text)
