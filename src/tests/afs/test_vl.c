/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of afs/vl.c: places of the words in each form of an entry. */
#include "tests/tools/testing.h"

#include "afs/vlentry.h"

static uint32_t word(const uint8_t *bytes, unsigned i)
{
	bytes += 4 * i;
	return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 |
	       bytes[3];
}

static const struct afs_vl_entry entry = {
	.name = "root.cell",
	.sites = 1,
	.site = {{.uuid = {0x00093a3a, 0xfc49, 0x1b00, 0xbb, 0xda, {1, 0, 0x4d, 10, 0xaa, 0x77}},
		  .unique = 1,
		  .address = 0x0a4d0001,
		  .flags = AFS_VL_SITE_RW}},
	.id = {0x20000001},
	.flags = AFS_VL_RW_EXISTS,
};

/* Words that are not zero, by place; everything else must be. */
static void check_words(const uint8_t *bytes, unsigned words, const unsigned (*list)[2],
			size_t count)
{
	size_t next = 0;

	for (unsigned i = 0; i < words; i++) {
		uint32_t want = i < 9 ? (uint32_t) "root.cell"[i] : 0;

		if (next < count && list[next][0] == i)
			want = list[next++][1];
		ck_assert_msg(word(bytes, i) == want, "word %u is %08x, not %08x", i,
			      word(bytes, i), want);
	}
	ck_assert_uint_eq(next, count);
}

START_TEST(u_form)
{
	static const unsigned list[][2] = {
		{65, 1},	  {66, 0x00093a3a},  {67, 0xfc49},  {68, 0x1b00},
		{69, 0xffffffbb}, {70, 0xffffffda},  {71, 1},	    {73, 0x4d},
		{74, 10},	  {75, 0xffffffaa},  {76, 0x77},    {209, 1},
		{235, 0x14},	  {248, 0x20000001}, {252, 0x1000},
	};
	uint8_t bytes[AFS_VL_ENTRY_U_BYTES];
	struct afs_vl_entry again;
	struct rxw_xdr x;

	rxw_xdr_writer(&x, bytes, sizeof(bytes));
	ck_assert(afs_vl_entry_u_put(&x, &entry));
	ck_assert_uint_eq(rxw_xdr_used(&x), 262 * 4);
	check_words(bytes, 262, list, sizeof(list) / sizeof(list[0]));
	rxw_xdr_reader(&x, bytes, sizeof(bytes));
	ck_assert(afs_vl_entry_u_get(&x, &again));
	ck_assert_uint_eq(rxw_xdr_left(&x), 0);
	ck_assert_str_eq(again.name, "root.cell");
	ck_assert(afs_uuid_equal(&again.site[0].uuid, &entry.site[0].uuid));
	ck_assert_uint_eq(again.id[AFS_VL_RW], 0x20000001);
}
END_TEST

START_TEST(n_form)
{
	static const unsigned list[][2] = {
		{65, 1}, {66, 0x0a4d0001}, {92, 4}, {105, 0x20000001}, {109, 0x1000}};
	uint8_t bytes[AFS_VL_ENTRY_N_BYTES];
	struct afs_vl_entry again;
	struct rxw_xdr x;

	rxw_xdr_writer(&x, bytes, sizeof(bytes));
	ck_assert(afs_vl_entry_n_put(&x, &entry));
	ck_assert_uint_eq(rxw_xdr_used(&x), 119 * 4);
	check_words(bytes, 119, list, 5);
	rxw_xdr_reader(&x, bytes, sizeof(bytes));
	ck_assert(afs_vl_entry_n_get(&x, &again));
	ck_assert_uint_eq(again.site[0].address, 0x0a4d0001);
}
END_TEST

START_TEST(o_form)
{
	static const unsigned list[][2] = {
		{66, 1}, {67, 0x0a4d0001}, {83, 4}, {91, 0x20000001}, {95, 0x1000}};
	uint8_t bytes[AFS_VL_ENTRY_O_BYTES];
	struct afs_vl_entry again;
	struct rxw_xdr x;

	rxw_xdr_writer(&x, bytes, sizeof(bytes));
	ck_assert(afs_vl_entry_o_put(&x, &entry));
	ck_assert_uint_eq(rxw_xdr_used(&x), 96 * 4);
	check_words(bytes, 96, list, 5);
	rxw_xdr_reader(&x, bytes, sizeof(bytes));
	ck_assert(afs_vl_entry_o_get(&x, &again));
	ck_assert_uint_eq(again.flags, 0x1000);
}
END_TEST

START_TEST(bad_entries)
{
	struct afs_vl_entry many = entry, out;
	uint8_t bytes[AFS_VL_ENTRY_U_BYTES];
	struct rxw_xdr x;

	many.sites = 14;
	rxw_xdr_writer(&x, bytes, sizeof(bytes));
	ck_assert(!afs_vl_entry_u_put(&x, &many));
	many.sites = 9;
	rxw_xdr_writer(&x, bytes, sizeof(bytes));
	ck_assert(!afs_vl_entry_o_put(&x, &many));

	rxw_xdr_writer(&x, bytes, sizeof(bytes));
	ck_assert(afs_vl_entry_u_put(&x, &entry));
	bytes[65 * 4 + 3] = 14; /* sites */
	rxw_xdr_reader(&x, bytes, sizeof(bytes));
	ck_assert(!afs_vl_entry_u_get(&x, &out));
	bytes[65 * 4 + 3] = 1;
	for (int i = 0; i < 65; i++) /* a name without an end */
		bytes[4 * i + 3] = 'x';
	rxw_xdr_reader(&x, bytes, sizeof(bytes));
	ck_assert(!afs_vl_entry_u_get(&x, &out));
	rxw_xdr_reader(&x, bytes, sizeof(bytes) - 4);
	ck_assert(!afs_vl_entry_u_get(&x, &out));
}
END_TEST

START_TEST(addresses)
{
	struct afs_vl_addrs addrs = {.unique = 1,
				     .count = 3,
				     .address = {0x0a4d0001, 0x0a4d0002, 0x0a4d0003}},
			    again;
	struct afs_vl_addr_query query = {.mask = AFS_VL_BY_UUID, .index = 9}, query2;
	uint8_t bytes[4 * 600] = {0};
	struct rxw_xdr x;

	rxw_xdr_writer(&x, bytes, sizeof(bytes));
	ck_assert(afs_vl_addrs_put(&x, &addrs));
	ck_assert_uint_eq(rxw_xdr_used(&x), (11 + 3 + 3) * 4);
	ck_assert_uint_eq(word(bytes, 12), 3);
	ck_assert_uint_eq(word(bytes, 13), 3);
	ck_assert_uint_eq(word(bytes, 16), 0x0a4d0003);
	rxw_xdr_reader(&x, bytes, rxw_xdr_used(&x));
	ck_assert(afs_vl_addrs_get(&x, &again));
	ck_assert_uint_eq(again.count, 3);
	/* a server that lists more than we keep; and more than any may */
	bytes[13 * 4 + 3] = 100;
	rxw_xdr_reader(&x, bytes, sizeof(bytes));
	ck_assert(afs_vl_addrs_get(&x, &again));
	ck_assert_uint_eq(again.count, 15);
	bytes[13 * 4 + 2] = 2;
	rxw_xdr_reader(&x, bytes, sizeof(bytes));
	ck_assert(!afs_vl_addrs_get(&x, &again));

	rxw_xdr_writer(&x, bytes, sizeof(bytes));
	ck_assert(afs_vl_addr_query_put(&x, &query));
	ck_assert_uint_eq(rxw_xdr_used(&x), 15 * 4);
	rxw_xdr_reader(&x, bytes, 15 * 4);
	ck_assert(afs_vl_addr_query_get(&x, &query2));
	ck_assert_uint_eq(query2.index, 9);
}
END_TEST

START_TEST(names)
{
	char longest[66];

	ck_assert(afs_vl_name_valid("root.cell"));
	ck_assert(afs_vl_name_valid("a"));
	ck_assert(afs_vl_name_valid("1a-_."));
	ck_assert(!afs_vl_name_valid(""));
	ck_assert(!afs_vl_name_valid("12345"));
	ck_assert(!afs_vl_name_valid("a b"));
	ck_assert(!afs_vl_name_valid("../x"));
	ck_assert(!afs_vl_name_valid("data.readonly"));
	ck_assert(!afs_vl_name_valid("data.backup"));
	memset(longest, 'v', 65);
	longest[65] = 0;
	ck_assert(!afs_vl_name_valid(longest));
	longest[64] = 0;
	ck_assert(afs_vl_name_valid(longest));
}
END_TEST

TEST_MAIN("afs locations", u_form, n_form, o_form, bad_entries, addresses, names)
