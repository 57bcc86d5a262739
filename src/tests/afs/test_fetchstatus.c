/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of afs/values.c: numbers in two halves, usable entries, refused entries. */
#include "tests/tools/testing.h"

#include "afs/fetchstatus.h"

START_TEST(long_numbers)
{
	AFSFetchStatus s = {0};
	uint8_t bytes[84];
	struct rxw_xdr x;

	afs_status_set_length(&s, 0x123456789aull);
	afs_status_set_version(&s, 0xfedcba9876543210ull);
	ck_assert_uint_eq(s.Length, 0x3456789a);
	ck_assert_uint_eq(s.Length_hi, 0x12);
	ck_assert_uint_eq(s.DataVersion, 0x76543210);
	ck_assert_uint_eq(s.dataVersionHigh, 0xfedcba98);
	ck_assert_uint_eq(afs_status_length(&s), 0x123456789aull);
	ck_assert_uint_eq(afs_status_version(&s), 0xfedcba9876543210ull);
	/* On the wire the high words are 17 (version) and 19 (length). */
	rxw_xdr_writer(&x, bytes, sizeof(bytes));
	ck_assert(xdr_put_AFSFetchStatus(&x, &s));
	ck_assert_uint_eq(bytes[17 * 4], 0xfe);
	ck_assert_uint_eq(bytes[19 * 4 + 3], 0x12);
}
END_TEST

START_TEST(usable)
{
	for (uint32_t type = 0; type < 5; type++) {
		AFSFetchStatus s = {.InterfaceVersion = 1, .FileType = type};

		ck_assert_int_eq(afs_status_usable(&s), type >= 1 && type <= 3);
		s.errorCode = 102;
		ck_assert(!afs_status_usable(&s));
		s.errorCode = 0;
		s.InterfaceVersion = 2;
		ck_assert(!afs_status_usable(&s));
	}
}
END_TEST

START_TEST(refused)
{
	uint8_t bytes[84];
	AFSFetchStatus s;
	struct rxw_xdr x;

	memset(&s, 0xff, sizeof(s));
	afs_status_refuse(&s, 102);
	ck_assert(!afs_status_usable(&s));
	rxw_xdr_writer(&x, bytes, sizeof(bytes));
	ck_assert(xdr_put_AFSFetchStatus(&x, &s));
	ck_assert_uint_eq(bytes[3], 1);
	for (size_t i = 4; i < sizeof(bytes) - 1; i++)
		ck_assert_uint_eq(bytes[i], 0);
	ck_assert_uint_eq(bytes[sizeof(bytes) - 1], 102);
	afs_status_refuse(&s, -1);
	ck_assert_uint_eq(s.errorCode, 0xffffffffu);
}
END_TEST

TEST_MAIN("fetchstatus", long_numbers, usable, refused)
