/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of afs/types.c and afs/status.c: recorded words, both ways, and bad input. */
#include "tests/tools/testing.h"

#include "afs/status.h"
#include "afs/types.h"

static const uint32_t uuid_words[11] = {
	0x00093a3a, 0x0000fc49, 0x00001b00, 0xffffffbb, 0xffffffda, 0x00000001,
	0x00000000, 0x0000004d, 0x0000000a, 0xffffffaa, 0x00000077,
};

/* The status of a volume's root, as a server of another make sent it. */
static const uint32_t root_words[21] = {
	1, 2, 3,	  0x800,      6, 0x7ffe, 0, 0x7f, 0x7f, 0x1ed, 1,
	1, 1, 0x6b0102c7, 0x6b0102c7, 0, 0,	 0, 0,	  0,	0,
};

static size_t to_bytes(const uint32_t *words, size_t count, uint8_t *bytes)
{
	for (size_t i = 0; i < count; i++) {
		bytes[4 * i] = (uint8_t)(words[i] >> 24);
		bytes[4 * i + 1] = (uint8_t)(words[i] >> 16);
		bytes[4 * i + 2] = (uint8_t)(words[i] >> 8);
		bytes[4 * i + 3] = (uint8_t)words[i];
	}
	return count * 4;
}

START_TEST(uuid_both_ways)
{
	uint8_t want[AFS_UUID_BYTES], got[AFS_UUID_BYTES];
	struct afs_uuid uuid, again;
	struct rxw_xdr x;
	char text[AFS_UUID_TEXT];

	to_bytes(uuid_words, 11, want);
	rxw_xdr_reader(&x, want, sizeof(want));
	ck_assert(afs_uuid_get(&x, &uuid));
	ck_assert_uint_eq(rxw_xdr_left(&x), 0);
	ck_assert_uint_eq(uuid.clock_seq_hi, 0xbb);
	ck_assert_uint_eq(uuid.node[4], 0xaa);
	rxw_xdr_writer(&x, got, sizeof(got));
	ck_assert(afs_uuid_put(&x, &uuid));
	ck_assert_mem_eq(got, want, sizeof(want));
	afs_uuid_format(&uuid, text);
	ck_assert_str_eq(text, "00093a3a-fc49-1b00-bbda-01004d0aaa77");
	ck_assert(afs_uuid_parse(&again, text));
	ck_assert(afs_uuid_equal(&uuid, &again));
	again.node[5]++;
	ck_assert(!afs_uuid_equal(&uuid, &again));
}
END_TEST

START_TEST(uuid_text_refused)
{
	static const char *const bad[] = {
		"",
		"00093a3a",
		"00093a3a-fc49-1b00-bbda-01004d0aaa7",
		"00093a3a-fc49-1b00-bbda-01004d0aaa777",
		"00093a3a-fc49-1b00-bbda-01004d0aaa7g",
		"00093a3a+fc49-1b00-bbda-01004d0aaa77",
	};
	struct afs_uuid uuid;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(!afs_uuid_parse(&uuid, bad[i]), "took \"%s\"", bad[i]);
}
END_TEST

START_TEST(status_both_ways)
{
	uint8_t want[AFS_STATUS_BYTES], got[AFS_STATUS_BYTES];
	struct afs_status s;
	struct rxw_xdr x;

	to_bytes(root_words, 21, want);
	rxw_xdr_reader(&x, want, sizeof(want));
	ck_assert(afs_status_get(&x, &s));
	ck_assert(afs_status_valid(&s));
	ck_assert_uint_eq(s.type, AFS_TYPE_DIR);
	ck_assert_uint_eq(s.links, 3);
	ck_assert_uint_eq(s.length, 2048);
	ck_assert_uint_eq(s.data_version, 6);
	ck_assert_uint_eq(s.mode, 0755);
	ck_assert_uint_eq(s.client_mtime, 0x6b0102c7);
	rxw_xdr_writer(&x, got, sizeof(got));
	ck_assert(afs_status_put(&x, &s));
	ck_assert_mem_eq(got, want, sizeof(want));
}
END_TEST

START_TEST(status_long_numbers)
{
	struct afs_status s = {.interface_version = 1,
			       .type = 1,
			       .length = 0x123456789aull,
			       .data_version = 0xfedcba9876543210ull,
			       .lock_count = -1},
			  t;
	uint8_t bytes[AFS_STATUS_BYTES];
	struct rxw_xdr x;

	rxw_xdr_writer(&x, bytes, sizeof(bytes));
	ck_assert(afs_status_put(&x, &s));
	/* high words are 17 (version) and 19 (length) */
	ck_assert_uint_eq(bytes[17 * 4], 0xfe);
	ck_assert_uint_eq(bytes[19 * 4 + 3], 0x12);
	rxw_xdr_reader(&x, bytes, sizeof(bytes));
	ck_assert(afs_status_get(&x, &t));
	ck_assert_uint_eq(t.length, s.length);
	ck_assert_uint_eq(t.data_version, s.data_version);
	ck_assert_int_eq(t.lock_count, -1);
}
END_TEST

START_TEST(status_failed_entry)
{
	uint8_t bytes[AFS_STATUS_BYTES];
	struct afs_status s;
	struct rxw_xdr x;

	afs_status_failed(&s, 102);
	ck_assert(!afs_status_valid(&s));
	rxw_xdr_writer(&x, bytes, sizeof(bytes));
	afs_status_put(&x, &s);
	ck_assert_uint_eq(bytes[3], 1);
	for (int i = 4; i < AFS_STATUS_BYTES - 1; i++)
		ck_assert_uint_eq(bytes[i], 0);
	ck_assert_uint_eq(bytes[AFS_STATUS_BYTES - 1], 102);
}
END_TEST

START_TEST(truncated_input_fails)
{
	uint8_t bytes[AFS_INTERFACES_BYTES] = {0};
	struct afs_status s;
	struct afs_uuid u;
	struct afs_interfaces i;
	struct afs_fid f;
	struct rxw_xdr x;

	for (size_t n = 0; n < AFS_STATUS_BYTES; n += 4) {
		rxw_xdr_reader(&x, bytes, n);
		ck_assert(!afs_status_get(&x, &s));
	}
	rxw_xdr_reader(&x, bytes, AFS_UUID_BYTES - 1);
	ck_assert(!afs_uuid_get(&x, &u));
	rxw_xdr_reader(&x, bytes, AFS_INTERFACES_BYTES - 1);
	ck_assert(!afs_interfaces_get(&x, &i));
	rxw_xdr_reader(&x, bytes, 11);
	ck_assert(!afs_fid_get(&x, &f));
}
END_TEST

START_TEST(counts_are_bounded)
{
	uint8_t bytes[4 + 51 * AFS_FID_BYTES] = {0, 0, 0, 51};
	struct afs_fid fids[AFS_BULK_MAX];
	struct afs_callback cbs[AFS_BULK_MAX];
	struct afs_interfaces i;
	uint32_t count, word;
	struct rxw_xdr x;

	rxw_xdr_reader(&x, bytes, sizeof(bytes));
	ck_assert(!afs_fids_get(&x, fids, &count));
	rxw_xdr_reader(&x, bytes, sizeof(bytes));
	ck_assert(!afs_callbacks_get(&x, cbs, &count));
	bytes[3] = 50;
	rxw_xdr_reader(&x, bytes, sizeof(bytes));
	ck_assert(afs_fids_get(&x, fids, &count));
	ck_assert_uint_eq(count, 50);
	/* fifty announced, one byte too few */
	rxw_xdr_reader(&x, bytes, 4 + 50 * AFS_FID_BYTES - 1);
	ck_assert(!afs_fids_get(&x, fids, &count));
	bytes[3] = 33;
	rxw_xdr_reader(&x, bytes, sizeof(bytes));
	ck_assert(!afs_interfaces_get(&x, &i));
	bytes[3] = 197;
	rxw_xdr_reader(&x, bytes, sizeof(bytes));
	ck_assert(!afs_caps_get(&x, &word));
}
END_TEST

START_TEST(capabilities_keep_the_first_word)
{
	static const uint8_t none[4] = {0}, two[12] = {0, 0, 0, 2, 0, 0, 0, 7, 0, 0, 0, 9};
	uint32_t word = 5;
	struct rxw_xdr x;

	rxw_xdr_reader(&x, none, sizeof(none));
	ck_assert(afs_caps_get(&x, &word));
	ck_assert_uint_eq(word, 0);
	rxw_xdr_reader(&x, two, sizeof(two));
	ck_assert(afs_caps_get(&x, &word));
	ck_assert_uint_eq(word, 7);
	ck_assert_uint_eq(rxw_xdr_left(&x), 0);
}
END_TEST

START_TEST(volume_status_both_ways)
{
	/* as recorded: 12 words, "root.cell", two empty strings */
	static const uint32_t head[12] = {0x20000001, 0x20000001, 1,	      1,	 1, 0, 1, 0,
					  0,	      0x1d5d,	  0x0465a5ab, 0x05b13bd0};
	uint8_t want[72] = {0}, got[AFS_VOLUME_STATUS_MAX];
	struct afs_volume_status s;
	struct rxw_xdr x;

	to_bytes(head, 12, want);
	want[51] = 9;
	memcpy(want + 52, "root.cell", 9);
	rxw_xdr_reader(&x, want, sizeof(want));
	ck_assert(afs_volume_status_get(&x, &s));
	ck_assert_str_eq(s.name, "root.cell");
	ck_assert_int_eq(s.blocks_available, 0x0465a5ab);
	rxw_xdr_writer(&x, got, sizeof(got));
	ck_assert(afs_volume_status_put(&x, &s));
	ck_assert_uint_eq(rxw_xdr_used(&x), sizeof(want));
	ck_assert_mem_eq(got, want, sizeof(want));
}
END_TEST

TEST_MAIN("afs types", uuid_both_ways, uuid_text_refused, status_both_ways, status_long_numbers,
	  status_failed_entry, truncated_input_fails, counts_are_bounded,
	  capabilities_keep_the_first_word, volume_status_both_ways)
