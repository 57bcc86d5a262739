/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of rxperf/wire.c: requests of all commands, refusals, lists, the pattern. */

#include "tests/tools/testing.h"

#include "rxperf/wire.h"

/* Words as bytes. */
static size_t put(uint8_t *out, const uint32_t *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		for (int b = 0; b < 4; b++)
			out[4 * i + (size_t)b] = (uint8_t)(words[i] >> (24 - 8 * b));
	return 4 * count;
}

/* The recorded SEND of 300000 bytes: 3, 0, 524288, 524288, 300000. */
START_TEST(known_send)
{
	static const uint32_t words[] = { 3, 0, 524288, 524288, 300000 };
	const rxperf_command c = {.what = RXPERF_SEND, .u.send = {{524288, 524288}, 300000}};
	uint8_t want[20], got[PERF_REQUEST_MAX];

	put(want, words, 5);
	ck_assert_uint_eq(perf_encode(&c, got), sizeof(want));
	ck_assert_mem_eq(got, want, sizeof(want));
}
END_TEST

static void round_trip(const rxperf_command *c, size_t size)
{
	uint8_t raw[PERF_REQUEST_MAX];
	struct rxw_xdr x;
	rxperf_command d;
	uint64_t a[2], b[2];

	ck_assert(perf_is_sane(c));
	ck_assert_uint_eq(perf_encode(c, raw), size);
	rxw_xdr_reader(&x, raw + 4, size - 4);
	ck_assert(xdr_get_rxperf_command(&x, &d));
	ck_assert_uint_eq(rxw_xdr_left(&x), 0);
	ck_assert_int_eq(d.what, c->what);
	ck_assert(perf_is_sane(&d));
	ck_assert_uint_eq(perf_sizes(&d)->read_size, 2);
	ck_assert_uint_eq(perf_sizes(&d)->write_size, 524288);
	perf_totals(c, &a[0], &a[1]);
	perf_totals(&d, &b[0], &b[1]);
	ck_assert_uint_eq(a[0], b[0]);
	ck_assert_uint_eq(a[1], b[1]);
	xdrfree_rxperf_command(&d);
}

#define SIZES             \
	{                 \
		2, 524288 \
	}

START_TEST(round_trips)
{
	static uint32_t words[RXPERF_LIST_MAX] = {1, 2, 0, 3};
	rxperf_command c = {.what = RXPERF_SEND, .u.send = {SIZES, PERF_MAX_BYTES}};

	round_trip(&c, 20);
	c = (rxperf_command){.what = RXPERF_RECV, .u.recv = {SIZES, 0}};
	round_trip(&c, 20);
	c = (rxperf_command){.what = RXPERF_RPC, .u.rpc = {SIZES, 5, 7}};
	round_trip(&c, 24);
	c = (rxperf_command){.what = RXPERF_FILE, .u.file = {SIZES, {4, words}}};
	round_trip(&c, 36);
	c.u.file.words.len = RXPERF_LIST_MAX;
	round_trip(&c, PERF_REQUEST_MAX);
	c.u.file.words.len++;
	{
		uint8_t raw[PERF_REQUEST_MAX + 4];

		ck_assert_uint_eq(perf_encode(&c, raw), 0);
	}
}
END_TEST

START_TEST(refusals)
{
	/* Fields after the version. */
	static const uint32_t none[][4] = {
		{2, 1, 1, 0},
		{5, 1, 1, 0},
		{0xffffffff, 1, 1, 0},
		{RXPERF_FILE, 1, 1, RXPERF_LIST_MAX + 1},
		{RXPERF_FILE, 1, 1, 0xffffffff},
	};
	static const uint32_t bad[][5] = {
		{RXPERF_SEND, 0, 1, 1, 0},
		{RXPERF_SEND, 1, 0, 1, 0},
		{RXPERF_RECV, RXPERF_IO_MAX + 1, 1, 1, 0},
		{RXPERF_RPC, 1, RXPERF_IO_MAX + 1, 1, 1},
		{RXPERF_SEND, 1, 1, 0x80000000u, 0},
		{RXPERF_RECV, 1, 1, 0x80000000u, 0},
		{RXPERF_RPC, 1, 1, 0x80000000u, 0},
		{RXPERF_RPC, 1, 1, 0, 0xffffffffu},
		{RXPERF_FILE, 0, 1, 0, 0},
	};
	rxperf_command c;
	struct rxw_xdr x;
	uint8_t raw[20];

	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		rxw_xdr_reader(&x, raw, put(raw, none[i], 4));
		ck_assert_msg(!xdr_get_rxperf_command(&x, &c), "case %zu", i);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		rxw_xdr_reader(&x, raw, put(raw, bad[i], 5));
		ck_assert_msg(xdr_get_rxperf_command(&x, &c), "case %zu", i);
		ck_assert_msg(!perf_is_sane(&c), "case %zu", i);
	}
	rxw_xdr_reader(&x, raw, put(raw, bad[0], 3));
	ck_assert(!xdr_get_rxperf_command(&x, &c));
}
END_TEST

START_TEST(lists)
{
	rxperf_command c = {.what = RXPERF_FILE};
	rxperf_list *r = &c.u.file;
	char message[160];
	uint64_t to_server, to_client;
	char *many;

	ck_assert_int_eq(perf_parse_list("64K,4,0,1M,8", r, message, sizeof(message)), 0);
	ck_assert_uint_eq(r->words.len, 5);
	ck_assert_uint_eq(r->words.val[0], 16384);
	perf_totals(&c, &to_server, &to_client);
	ck_assert_uint_eq(to_server, 65540);
	ck_assert_uint_eq(to_client, (1 << 20) + 8);
	xdrfree_rxperf_list(r);
	/* Turning twice moves nothing; turning back after data was received fails. */
	ck_assert_int_eq(perf_parse_list("0,0,4", r, message, sizeof(message)), 0);
	xdrfree_rxperf_list(r);
	ck_assert_int_eq(perf_parse_list("4,0,4,0,4", r, message, sizeof(message)), -1);
	ck_assert_int_eq(perf_parse_list("", r, message, sizeof(message)), -1);
	ck_assert_int_eq(perf_parse_list("3", r, message, sizeof(message)), -1);
	ck_assert_int_eq(perf_parse_list("4,", r, message, sizeof(message)), -1);
	ck_assert_int_eq(perf_parse_list("4,,8", r, message, sizeof(message)), -1);
	ck_assert_int_eq(perf_parse_list("4 8", r, message, sizeof(message)), -1);
	ck_assert_int_eq(perf_parse_list("16T", r, message, sizeof(message)), -1);
	ck_assert_ptr_null(r->words.val);
	many = malloc(2 * RXPERF_LIST_MAX + 8);
	for (size_t i = 0; i <= RXPERF_LIST_MAX; i++)
		memcpy(many + 2 * i, "4,", 2);
	strcpy(many + 2 * RXPERF_LIST_MAX, "4");
	ck_assert_int_eq(perf_parse_list(many, r, message, sizeof(message)), -1);
	many[2 * RXPERF_LIST_MAX - 1] = 0;
	ck_assert_int_eq(perf_parse_list(many, r, message, sizeof(message)), 0);
	ck_assert_uint_eq(r->words.len, RXPERF_LIST_MAX);
	xdrfree_rxperf_list(r);
	free(many);
}
END_TEST

START_TEST(pattern)
{
	uint8_t buffer[3000];
	uint64_t at = 0;

	perf_pattern_init();
	/* Pieces of any size are consistent. */
	for (uint64_t offset = 65000; offset < 66100; offset += 7) {
		for (size_t done = 0; done < sizeof(buffer);) {
			size_t n, want = 1 + (done * 31 + offset) % 997;
			const uint8_t *p = perf_pattern(offset + done, want, &n);

			ck_assert_uint_gt(n, 0);
			ck_assert_uint_le(n, want);
			n = n < sizeof(buffer) - done ? n : sizeof(buffer) - done;
			memcpy(buffer + done, p, n);
			done += n;
		}
		ck_assert(perf_pattern_matches(offset, buffer, sizeof(buffer)));
		buffer[offset % sizeof(buffer)] ^= 1;
		ck_assert(!perf_pattern_matches(offset, buffer, sizeof(buffer)));
	}
	/* A packet in the wrong place is detected, whatever its size. */
	for (size_t size = 1000; size < 9000; size += 4) {
		size_t n;
		const uint8_t *p = perf_pattern(at, size, &n);

		ck_assert_uint_eq(n, size);
		ck_assert(!perf_pattern_matches(at + size, p, size));
		at += size;
	}
}
END_TEST

TEST_MAIN("wire", known_send, round_trips, refusals, lists, pattern)
