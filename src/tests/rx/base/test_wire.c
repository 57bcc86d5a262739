/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of base/wire.c: headers, acknowledgements, jumbograms, aborts, stateless answers. */

#include "testing.h"

#include <rxwire/error.h>

#include "base/wire.h"

/* A copy of exactly `size` bytes on the heap, so that a sanitizer detects reads beyond it. */
static uint8_t *exact(const void *data, size_t size)
{
	uint8_t *p = malloc(size ? size : 1);

	ck_assert_ptr_nonnull(p);
	if (size)
		memcpy(p, data, size);
	return p;
}

static void header_random(uint64_t *state, struct rxw_header *h)
{
	memset(h, 0, sizeof(*h));
	h->epoch = (uint32_t)rxw_prng(state);
	h->cid = (uint32_t)rxw_prng(state);
	h->call = (uint32_t)rxw_prng(state);
	h->seq = (uint32_t)rxw_prng(state);
	h->serial = (uint32_t)rxw_prng(state);
	h->type = (uint8_t)rxw_prng(state);
	h->flags = (uint8_t)rxw_prng(state);
	h->user_status = (uint8_t)rxw_prng(state);
	h->security = (uint8_t)rxw_prng(state);
	h->spare = (uint16_t)rxw_prng(state);
	h->service = (uint16_t)rxw_prng(state);
}

static void header_equal(const struct rxw_header *a, const struct rxw_header *b)
{
	ck_assert_uint_eq(a->epoch, b->epoch);
	ck_assert_uint_eq(a->cid, b->cid);
	ck_assert_uint_eq(a->call, b->call);
	ck_assert_uint_eq(a->seq, b->seq);
	ck_assert_uint_eq(a->serial, b->serial);
	ck_assert_uint_eq(a->type, b->type);
	ck_assert_uint_eq(a->flags, b->flags);
	ck_assert_uint_eq(a->user_status, b->user_status);
	ck_assert_uint_eq(a->security, b->security);
	ck_assert_uint_eq(a->spare, b->spare);
	ck_assert_uint_eq(a->service, b->service);
}

/* The example of rx-protocol 1.2. */
START_TEST(header_example)
{
	static const uint8_t bytes[RXW_HEADER_SIZE] = {
		0x80, 0x88, 0x8f, 0xe3, 0xbc, 0x65, 0x74, 0x3c, 0, 0, 0, 1, 0, 0,
		0,    1,    0,    0,    0,    1,    0x01, 0x05, 0, 0, 0, 0, 0, 0x49,
	};
	uint8_t out[RXW_HEADER_SIZE];
	struct rxw_header h;

	ck_assert(rxw_header_get(bytes, sizeof(bytes), &h));
	ck_assert_uint_eq(h.epoch, 0x80888fe3);
	ck_assert_uint_eq(h.cid, 0xbc65743c);
	ck_assert_uint_eq(h.call, 1);
	ck_assert_uint_eq(h.seq, 1);
	ck_assert_uint_eq(h.serial, 1);
	ck_assert_uint_eq(h.type, RXW_DATA);
	ck_assert_uint_eq(h.flags, RXW_CLIENT_INITIATED | RXW_LAST_PACKET);
	ck_assert_uint_eq(h.service, 73);
	rxw_header_put(out, &h);
	ck_assert_mem_eq(out, bytes, sizeof(bytes));
}
END_TEST

START_TEST(header_short)
{
	static const uint8_t zero[RXW_HEADER_SIZE];
	struct rxw_header h;

	for (size_t size = 0; size < RXW_HEADER_SIZE; size++) {
		uint8_t *p = exact(zero, size);

		ck_assert(!rxw_header_get(p, size, &h));
		free(p);
	}
}
END_TEST

START_TEST(header_round_trip)
{
	uint64_t state = test_seed();

	for (int i = 0; i < 10000; i++) {
		uint8_t bytes[RXW_HEADER_SIZE + 3];
		size_t shift = i % 4; /* at every alignment */
		struct rxw_header h, back;

		header_random(&state, &h);
		rxw_header_put(bytes + shift, &h);
		ck_assert(rxw_header_get(bytes + shift, RXW_HEADER_SIZE, &back));
		header_equal(&h, &back);
	}
}
END_TEST

/* Packets 0 to all - 1 in runs of received and missing ones; the last was received. */
static uint32_t any_pattern(uint64_t *state, uint8_t *got, uint32_t all)
{
	uint32_t gap = 0; /* end of the last one */

	for (uint32_t i = 0; i < all;) {
		uint32_t run = 1 + (uint32_t)(rxw_prng(state) >> (54 + test_below(state, 9)));
		bool received = rxw_prng(state) & 1;

		for (; run > 0 && i < all; run--)
			got[i++] = received;
	}
	got[all - 1] = 1;
	for (uint32_t i = 0; i < all; i++)
		if (!got[i])
			gap = i + 1;
	return gap;
}

static void mark_all(uint8_t *tables, const uint8_t *got, uint32_t from, uint32_t to)
{
	static uint64_t bits[RXW_ACK_WORDS];

	memset(bits, 0, sizeof(bits));
	for (uint32_t i = from; i < to; i++)
		bits[(i - from) / 64] |= (uint64_t)(got[i] != 0) << (i - from) % 64;
	rxw_ack_spread(tables, bits, to - from);
}

static void same_runs(const struct rxw_ack *ack, const uint8_t *got, uint32_t from, uint32_t to)
{
	static uint64_t bits[RXW_ACK_WORDS];
	bool whole = to - from > RXW_MAX_ACKS; /* complete tables */

	if (whole) {
		memset(bits, 0xa5, sizeof(bits));
		rxw_ack_gather(ack, from, to - from, bits);
		for (uint32_t i = to - from; i % 64 != 0; i++)
			ck_assert_uint_eq(bits[i / 64] >> i % 64 & 1, 0);
	}
	for (uint32_t i = from; i < to; i++) {
		ck_assert_uint_eq(rxw_ack_has(ack, i), got[i]);
		if (whole)
			ck_assert_uint_eq(bits[(i - from) / 64] >> (i - from) % 64 & 1, got[i]);
	}
}

/* Extended ACKs: what follows from tables, tail and part is what was put into them. */
START_TEST(wide_round_trip)
{
	static uint8_t got[RXW_WINDOW_MAX], tables[5 * RXW_ACK_TABLE];
	uint64_t state = test_seed();

	for (int i = 0; i < 400; i++) {
		uint32_t all = RXW_MAX_ACKS + 1 +
			       (uint32_t)test_below(&state, i % 2 ? 2000
								  : RXW_WINDOW_MAX - RXW_MAX_ACKS);
		uint32_t gap = any_pattern(&state, got, all), begin;
		uint8_t out[RXW_ACK_MAX_SIZE - RXW_HEADER_SIZE], *p;
		struct rxw_ack in = {.first = 1 + (uint32_t)test_below(&state, 1u << 30),
				     .serial = 7,
				     .reason = RXW_ACK_IDLE,
				     .extended = true,
				     .base = 1,
				     .rwind = 1 + (uint32_t)test_below(&state, RXW_WINDOW_MAX),
				     .acks = tables,
				     .more = tables + RXW_ACK_TABLE};
		struct rxw_ack back;
		size_t size;

		memset(tables, 0, sizeof(tables));
		in.previous = in.first + all - 1;
		if (gap <= 5 * RXW_TABLE_PACKETS) {
			in.tables = (uint8_t)(gap ? (gap - 1) / RXW_TABLE_PACKETS : 0);
			in.count = gap < RXW_MAX_ACKS ? gap : (in.tables + 1u) * RXW_TABLE_PACKETS;
			in.count = in.count < all ? in.count : all;
			in.tail = all - in.count;
			mark_all(tables, got, 0, in.count);
		} else {
			in.tables = 4;
			in.base = (uint8_t)(1 + test_below(&state, all / RXW_TABLE_PACKETS));
			begin = in.base * RXW_TABLE_PACKETS;
			in.count = RXW_TABLE_PACKETS;
			in.part = all - begin < 4 * RXW_TABLE_PACKETS ? all - begin
								      : 4 * RXW_TABLE_PACKETS;
			if (in.part == 0)
				continue;
			mark_all(tables, got, 0, in.count);
			mark_all(tables + RXW_ACK_TABLE, got, begin, begin + in.part);
		}
		size = rxw_ack_put(out, &in);
		p = exact(out, size);
		ck_assert(rxw_ack_get(p, size, RXW_EXTENDED_ACK, &back));
		ck_assert_uint_eq(back.first, in.first);
		ck_assert_uint_eq(back.previous, in.previous);
		ck_assert_uint_eq(back.count, in.count);
		ck_assert_uint_eq(back.tail, in.tail);
		ck_assert_uint_eq(back.part, in.part);
		ck_assert_uint_eq(back.base, in.base);
		ck_assert_uint_eq(back.rwind, in.rwind);
		same_runs(&back, got, 0, in.count);
		if (in.part > 0)
			same_runs(&back, got, in.base * RXW_TABLE_PACKETS,
				  in.base * RXW_TABLE_PACKETS + in.part);
		/* Tables that are cut off say nothing; firstPacket and the window still count. */
		if (in.tables > 0) {
			uint8_t *cut = exact(out, size - 1);

			ck_assert(rxw_ack_get(cut, size - 1, RXW_EXTENDED_ACK, &back));
			ck_assert_uint_eq(back.count + back.tail + back.part + back.tables, 0);
			ck_assert_uint_eq(back.first, in.first);
			free(cut);
		}
		/* Without the flag it is a plain ACK, with a plain window. */
		ck_assert(rxw_ack_get(p, size, 0, &back));
		ck_assert_uint_eq(back.count, in.count < RXW_MAX_ACKS ? in.count : RXW_MAX_ACKS);
		ck_assert_uint_eq(back.tail + back.part, 0);
		ck_assert_uint_le(back.rwind, RXW_MAX_ACKS);
		free(p);
	}
}
END_TEST

START_TEST(marks)
{
	uint8_t tables[2 * RXW_ACK_TABLE] = {0}, out[RXW_ACK_MAX_SIZE] = {0};
	struct rxw_ack in = {.first = 1,
			     .previous = 40000,
			     .reason = RXW_ACK_IDLE,
			     .extended = true,
			     .ecn = true,
			     .marks = {.ce = 0x1234, .ect0 = 0xfedc},
			     .base = 1,
			     .acks = tables,
			     .rwind = 1000,
			     .more = tables + RXW_ACK_TABLE};
	struct rxw_ack back;
	size_t size, plain;

	/* Without a table, with further ones, and with a part of the window: five and six words. */
	for (unsigned kind = 0; kind < 3; kind++) {
		in.count = kind == 0 ? 0 : kind == 1 ? 4000 : 2048;
		in.previous = kind == 0 ? 0 : kind == 1 ? 4000 : 40000;
		in.tables = kind > 0;
		in.base = kind == 2 ? 3 : 1;
		in.part = kind == 2 ? 2048 : 0;
		size = rxw_ack_put(out, &in);
		ck_assert(rxw_ack_get(out, size, RXW_EXTENDED_ACK, &back));
		ck_assert(back.ecn && back.marks.ce == 0x1234 && back.marks.ect0 == 0xfedc);
		ck_assert(back.count == in.count && back.part == in.part && back.base == in.base);
		ck_assert_uint_eq(back.trailer_words, 4);
		/* Cut off, or without the flag. */
		if (kind == 0) {
			ck_assert(rxw_ack_get(out, size - 1, RXW_EXTENDED_ACK, &back));
			ck_assert(back.extended && !back.ecn && back.marks.ce == 0);
			ck_assert_uint_eq(rxw_get32(out + size - 4), 0x1234fedc);
		}
		ck_assert(rxw_ack_get(out, size, 0, &back));
		ck_assert(!back.ecn && back.trailer_words == 4);
		in.ecn = false;
		plain = rxw_ack_put(out, &in);
		ck_assert_uint_eq(plain, kind == 2 ? size : size - 4);
		ck_assert(rxw_ack_get(out, plain, RXW_EXTENDED_ACK, &back));
		ck_assert(back.ecn == (kind == 2) && back.marks.ce == 0 && back.marks.ect0 == 0);
		in.ecn = true;
	}
}
END_TEST

START_TEST(wide_malformed)
{
	uint8_t tables[2 * RXW_ACK_TABLE] = {0}, out[RXW_ACK_MAX_SIZE] = {0};
	struct rxw_ack in = {.first = 1,
			     .previous = 4000,
			     .reason = RXW_ACK_IDLE,
			     .extended = true,
			     .base = 1,
			     .tables = 1,
			     .count = 4000,
			     .rwind = 1000,
			     .acks = tables,
			     .more = tables + RXW_ACK_TABLE};
	struct rxw_ack back;
	size_t size = rxw_ack_put(out, &in), octet = 18 + RXW_MAX_ACKS + 1;

	ck_assert(rxw_ack_get(out, size, RXW_EXTENDED_ACK, &back));
	ck_assert_uint_eq(back.count, 4000);
	/* More tables than can be. */
	out[octet + 1] = RXW_ACK_TABLES_MOST + 1;
	ck_assert(rxw_ack_get(out, sizeof(out), RXW_EXTENDED_ACK, &back));
	ck_assert_uint_eq(back.count + back.tail + back.tables, 0);
	out[octet + 1] = 1;
	/* A trailer beyond the packet. */
	out[octet] = 255;
	ck_assert(rxw_ack_get(out, size, RXW_EXTENDED_ACK, &back));
	ck_assert_uint_eq(back.count + back.tail + back.tables, 0);
	/* A trailer of three words: not an extended ACK. */
	out[octet] = 3;
	ck_assert(rxw_ack_get(out, size, RXW_EXTENDED_ACK, &back));
	ck_assert(!back.extended);
	ck_assert_uint_eq(back.rwind, RXW_MAX_ACKS);
	out[octet] = 4;
	/* previousPacket below firstPacket, or too far above. */
	rxw_put32(out + 8, 0);
	ck_assert(rxw_ack_get(out, size, RXW_EXTENDED_ACK, &back));
	ck_assert_uint_eq(back.count, RXW_MAX_ACKS);
	ck_assert_uint_eq(back.tail, 0);
	rxw_put32(out + 8, RXW_WINDOW_MAX + 1);
	ck_assert(rxw_ack_get(out, size, RXW_EXTENDED_ACK, &back));
	ck_assert_uint_eq(back.count + back.tail, 0);
}
END_TEST

START_TEST(ack_round_trip)
{
	uint64_t state = test_seed();

	for (int i = 0; i < 5000; i++) {
		uint8_t table[RXW_MAX_ACKS];
		uint8_t out[RXW_ACK_MAX_SIZE - RXW_HEADER_SIZE];
		struct rxw_ack in = { 0 }, back;
		uint8_t *p;
		size_t size;

		in.first = 1 + (uint32_t)(rxw_prng(&state) >> 33);
		in.previous = (uint32_t)rxw_prng(&state);
		in.serial = (uint32_t)rxw_prng(&state);
		in.reason = (uint8_t)(1 + test_below(&state, 9));
		in.count = (uint8_t)(i < 256 ? (uint64_t)i : test_below(&state, 256));
		in.acks = table;
		in.max_mtu = RXW_MTU_MIN + (uint32_t)test_below(&state, 5000);
		in.if_mtu = RXW_MTU_MIN + (uint32_t)test_below(&state, 5000);
		in.rwind = 1 + (uint32_t)test_below(&state, RXW_MAX_ACKS);
		in.jumbo_max = 1 + (uint32_t)test_below(&state, RXW_JUMBO_MAX);
		for (unsigned k = 0; k < in.count; k++)
			table[k] = (uint8_t)(rxw_prng(&state) & 1);
		memset(out, 0xaa, sizeof(out));
		size = rxw_ack_put(out, &in);
		ck_assert_uint_eq(size, 18u + in.count + 3 + 16);
		ck_assert_uint_eq(rxw_get32(out), 0);
		ck_assert_uint_eq(out[18 + in.count] | out[19 + in.count] | out[20 + in.count], 0);
		p = exact(out, size);
		ck_assert(rxw_ack_get(p, size, 0, &back));
		ck_assert_uint_eq(back.first, in.first);
		ck_assert_uint_eq(back.previous, in.previous);
		ck_assert_uint_eq(back.serial, in.serial);
		ck_assert_uint_eq(back.reason, in.reason);
		ck_assert_uint_eq(back.count, in.count);
		ck_assert_mem_eq(back.acks, table, in.count);
		ck_assert_uint_eq(back.trailer_words, 4);
		ck_assert_uint_eq(back.max_mtu, in.max_mtu);
		ck_assert_uint_eq(back.if_mtu, in.if_mtu);
		ck_assert_uint_eq(back.rwind, in.rwind);
		ck_assert_uint_eq(back.jumbo_max, in.jumbo_max);
		free(p);
	}
}
END_TEST

/*
 * An ACK body with `count` entries and `after` bytes after them (padding, trailer, probe padding).
 */
static uint8_t *ack_body(uint8_t count, size_t after, size_t *size)
{
	uint8_t *p;

	*size = 18u + count + after;
	p = calloc(1, *size);
	ck_assert_ptr_nonnull(p);
	rxw_put32(p + 4, 7);
	p[16] = RXW_ACK_IDLE;
	p[17] = count;
	for (size_t i = 0; i + 4 <= after - (after < 3 ? after : 3); i += 4)
		rxw_put32(p + 18 + count + 3 + i, 1000 + (uint32_t)i / 4);
	return p;
}

START_TEST(ack_trailer_forms)
{
	static const uint8_t words[] = { 0, 0, 2, 3, 4 };

	for (unsigned count = 0; count <= 255; count += 51) {
		for (size_t after = 0; after <= 40; after++) {
			struct rxw_ack ack;
			size_t size, n = after < 3 ? 0 : (after - 3) / 4;
			uint8_t *p = ack_body((uint8_t)count, after, &size);

			ck_assert(rxw_ack_get(p, size, 0, &ack));
			ck_assert_uint_eq(ack.trailer_words, words[n > 4 ? 4 : n]);
			ck_assert_uint_eq(ack.max_mtu, n >= 2 ? 1000 : 0);
			ck_assert_uint_eq(ack.if_mtu, n >= 2 ? 1001 : 0);
			ck_assert_uint_eq(ack.rwind, n >= 3 ? 255 : 0);
			ck_assert_uint_eq(ack.jumbo_max, n >= 4 ? RXW_JUMBO_MAX : 0);
			free(p);
		}
	}
}
END_TEST

START_TEST(ack_clamps)
{
	static const struct {
		uint32_t in, mtu, window, jumbo;
	} cases[] = {
		{ 0, 520, 1, 1 },
		{ 1, 520, 1, 1 },
		{ 46, 520, 46, 46 },
		{ 47, 520, 47, 46 },
		{ 255, 520, 255, 46 },
		{ 256, 520, 255, 46 },
		{ 519, 520, 255, 46 },
		{ 520, 520, 255, 46 },
		{ 16384, 16384, 255, 46 },
		{ 16385, 16384, 255, 46 },
		{ 0x80000000u, 16384, 255, 46 },
		{ 0xffffffffu, 16384, 255, 46 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rxw_ack ack;
		size_t size;
		uint8_t *p = ack_body(0, 19, &size);

		for (unsigned w = 0; w < 4; w++)
			rxw_put32(p + 21 + 4 * w, cases[i].in);
		ck_assert(rxw_ack_get(p, size, 0, &ack));
		ck_assert_uint_eq(ack.max_mtu, cases[i].mtu);
		ck_assert_uint_eq(ack.if_mtu, cases[i].mtu);
		ck_assert_uint_eq(ack.rwind, cases[i].window);
		ck_assert_uint_eq(ack.jumbo_max, cases[i].jumbo);
		free(p);
	}
}
END_TEST

START_TEST(ack_malformed)
{
	struct rxw_ack ack;
	uint8_t body[18 + 255] = { 0 };

	rxw_put32(body + 4, 1);
	body[16] = RXW_ACK_DELAY;
	for (size_t size = 0; size < 18; size++) {
		uint8_t *p = exact(body, size);

		ck_assert(!rxw_ack_get(p, size, 0, &ack));
		free(p);
	}
	/* nAcks beyond the bytes, by one to all */
	for (size_t there = 0; there < 255; there++) {
		uint8_t *p;

		body[17] = (uint8_t)(there + 1);
		p = exact(body, 18 + there);
		ck_assert(!rxw_ack_get(p, 18 + there, 0, &ack));
		p[17] = (uint8_t)there;
		ck_assert(rxw_ack_get(p, 18 + there, 0, &ack));
		p[17] = 255;
		ck_assert(!rxw_ack_get(p, 18 + there, 0, &ack));
		free(p);
	}
	body[17] = 0;
	rxw_put32(body + 4, 0);
	ck_assert(!rxw_ack_get(body, 18, 0, &ack));
	rxw_put32(body + 4, 0xffffffffu);
	ck_assert(rxw_ack_get(body, 18, 0, &ack));
}
END_TEST

START_TEST(ack_reasons)
{
	for (unsigned reason = 0; reason < 256; reason++) {
		struct rxw_ack ack;
		size_t size;
		uint8_t *p = ack_body(0, 0, &size);

		p[16] = (uint8_t)reason;
		ck_assert(rxw_ack_get(p, size, 0, &ack));
		ck_assert_uint_eq(ack.reason, reason >= 1 && reason <= 9 ? reason : RXW_ACK_DELAY);
		free(p);
	}
}
END_TEST

START_TEST(abort_codes)
{
	uint8_t body[8] = { 0xff, 0xff, 0xfe, 0x39, 1, 2, 3, 4 };
	int32_t code = 0;

	for (size_t size = 0; size < 4; size++) {
		uint8_t *p = exact(body, size);

		ck_assert(!rxw_abort_get(p, size, &code));
		free(p);
	}
	ck_assert(rxw_abort_get(body, 4, &code));
	ck_assert_int_eq(code, -455);
	ck_assert(rxw_abort_get(body, 8, &code));
	ck_assert_int_eq(code, -455);
	rxw_put32(body, 0);
	ck_assert(rxw_abort_get(body, 4, &code));
	ck_assert_int_eq(code, RXW_PROTOCOL_ERROR);
	rxw_put32(body, 0x80000000u);
	ck_assert(rxw_abort_get(body, 4, &code));
	ck_assert_int_eq(code, INT32_MIN);
}
END_TEST

/*
 * A jumbogram of `members` whose last one has `last` bytes; each payload byte is derived from its
 * offset.
 */
static uint8_t *jumbogram(unsigned members, size_t last, size_t *size)
{
	struct rxw_header h = {
		.epoch = 0x80000001u,
		.cid = 0x1234,
		.call = 5,
		.seq = 10,
		.serial = 100,
		.type = RXW_DATA,
		.flags = RXW_CLIENT_INITIATED,
		.user_status = 9,
		.security = 2,
		.spare = 0x1111,
		.service = 3,
	};
	uint8_t *p;

	*size = RXW_HEADER_SIZE + (members - 1) * (RXW_JUMBO_PAYLOAD + RXW_JUMBO_HEADER) + last;
	p = malloc(*size);
	ck_assert_ptr_nonnull(p);
	for (size_t i = 0; i < *size; i++)
		p[i] = (uint8_t)(i * 7 >> 3);
	if (members > 1)
		h.flags |= RXW_JUMBO_PACKET;
	rxw_header_put(p, &h);
	for (unsigned k = 1; k < members; k++) {
		uint8_t *j = p + RXW_HEADER_SIZE +
			     (k - 1) * (RXW_JUMBO_PAYLOAD + RXW_JUMBO_HEADER) + RXW_JUMBO_PAYLOAD;

		j[0] = k + 1 < members ? RXW_CLIENT_INITIATED | RXW_JUMBO_PACKET
				       : RXW_CLIENT_INITIATED | RXW_LAST_PACKET;
		j[1] = 0xee;
		rxw_put16(j + 2, (uint16_t)(0x2000 + k));
	}
	return p;
}

START_TEST(jumbo_members)
{
	static const size_t lasts[] = { 0, 1, 1411, 1412, 1413, 4000 };

	for (unsigned members = 1; members <= RXW_JUMBO_MAX; members++) {
		for (size_t l = 0; l < sizeof(lasts) / sizeof(lasts[0]); l++) {
			size_t size, length;
			uint8_t *p = jumbogram(members, lasts[l], &size);
			const uint8_t *payload;
			struct rxw_jumbo j;
			struct rxw_header h;

			ck_assert(rxw_jumbo_init(&j, p, size));
			for (unsigned k = 0; k < members; k++) {
				bool last = k + 1 == members;

				ck_assert_int_eq(rxw_jumbo_next(&j, &h, &payload, &length), 1);
				ck_assert_ptr_eq(payload, p + RXW_HEADER_SIZE + k * 1416);
				ck_assert_uint_eq(length, last ? lasts[l] : RXW_JUMBO_PAYLOAD);
				ck_assert_uint_eq(h.seq, 10 + k);
				ck_assert_uint_eq(h.serial, 100 + k);
				ck_assert_uint_eq(h.spare, k ? 0x2000 + k : 0x1111);
				ck_assert_uint_eq(h.call, 5);
				ck_assert_uint_eq(h.user_status, 9);
				ck_assert_uint_eq(!!(h.flags & RXW_JUMBO_PACKET), !last);
				ck_assert_uint_eq(!!(h.flags & RXW_LAST_PACKET),
						  last && members > 1);
			}
			ck_assert_int_eq(rxw_jumbo_next(&j, &h, &payload, &length), 0);
			ck_assert_int_eq(rxw_jumbo_next(&j, &h, &payload, &length), 0);
			free(p);
		}
	}
}
END_TEST

/*
 * A jumbogram truncated at every length: complete members are returned, then one truncation, or the
 * rest is a shorter last member.
 */
START_TEST(jumbo_truncated)
{
	size_t size, length;
	uint8_t *whole = jumbogram(4, 100, &size);

	for (size_t cut = RXW_HEADER_SIZE; cut <= size; cut++) {
		uint8_t *p = exact(whole, cut);
		const uint8_t *payload;
		struct rxw_jumbo j;
		struct rxw_header h;
		unsigned good = 0, want = (unsigned)((cut - RXW_HEADER_SIZE) / 1416);
		size_t sum = 0;
		int rc;

		ck_assert(rxw_jumbo_init(&j, p, cut));
		while ((rc = rxw_jumbo_next(&j, &h, &payload, &length)) == 1) {
			good++;
			ck_assert(payload >= p + RXW_HEADER_SIZE && payload + length <= p + cut);
			for (size_t i = 0; i < length; i++)
				sum += payload[i];
		}
		ck_assert_uint_ne(sum, 1); /* reads the bytes, for the sanitizer */
		if (want >= 3) {
			ck_assert_int_eq(rc, 0);
			ck_assert_uint_eq(good, 4);
		} else {
			ck_assert_int_eq(rc, -1);
			ck_assert_uint_eq(good, want);
			ck_assert_int_eq(rxw_jumbo_next(&j, &h, &payload, &length), 0);
		}
		free(p);
	}
	free(whole);
}
END_TEST

START_TEST(jumbo_keeps_direction)
{
	size_t size, length;
	uint8_t *p = jumbogram(2, 10, &size);
	const uint8_t *payload;
	struct rxw_jumbo j;
	struct rxw_header h;

	p[RXW_HEADER_SIZE + RXW_JUMBO_PAYLOAD] = RXW_LAST_PACKET; /* marked as from a server */
	ck_assert(rxw_jumbo_init(&j, p, size));
	ck_assert_int_eq(rxw_jumbo_next(&j, &h, &payload, &length), 1);
	ck_assert_int_eq(rxw_jumbo_next(&j, &h, &payload, &length), 1);
	ck_assert_uint_eq(h.flags, RXW_LAST_PACKET | RXW_CLIENT_INITIATED);
	free(p);
}
END_TEST

/* In an ACK the bit means SLOW_START_OK: it is not split. */
START_TEST(jumbo_only_data)
{
	uint8_t p[2000] = { 0 };
	struct rxw_header h = { .type = RXW_ACK, .flags = RXW_SLOW_START_OK };
	const uint8_t *payload;
	struct rxw_jumbo j;
	size_t length;

	rxw_header_put(p, &h);
	ck_assert(rxw_jumbo_init(&j, p, sizeof(p)));
	ck_assert_int_eq(rxw_jumbo_next(&j, &h, &payload, &length), 1);
	ck_assert_uint_eq(length, sizeof(p) - RXW_HEADER_SIZE);
	ck_assert_int_eq(rxw_jumbo_next(&j, &h, &payload, &length), 0);
	ck_assert(!rxw_jumbo_init(&j, p, RXW_HEADER_SIZE - 1));
}
END_TEST

START_TEST(stateless_abort)
{
	uint64_t state = test_seed();

	for (int i = 0; i < 1000; i++) {
		uint8_t out[32];
		struct rxw_header request, h;
		int32_t code = i % 3 ? (int32_t)rxw_prng(&state) : 0, back;

		header_random(&state, &request);
		ck_assert_uint_eq(rxw_stateless_abort_put(out, &request, code), 32);
		ck_assert(rxw_header_get(out, sizeof(out), &h));
		ck_assert_uint_eq(h.epoch, request.epoch);
		ck_assert_uint_eq(h.cid, request.cid);
		ck_assert_uint_eq(h.call, request.call);
		ck_assert_uint_eq(h.seq | h.serial | h.user_status | h.spare, 0);
		ck_assert_uint_eq(h.type, RXW_ABORT);
		ck_assert_uint_eq(h.flags, ~request.flags & RXW_CLIENT_INITIATED);
		ck_assert_uint_eq(h.security, request.security);
		ck_assert_uint_eq(h.service, request.service);
		ck_assert(rxw_abort_get(out + 28, 4, &back));
		ck_assert_int_eq(back, code ? code : RXW_PROTOCOL_ERROR);
	}
}
END_TEST

START_TEST(version_answer)
{
	struct rxw_header request = { .epoch = 999,
				      .call = 101,
				      .type = RXW_VERSION,
				      .flags = 0x05 },
			  h;
	char text[100];

	for (size_t length = 0; length < sizeof(text); length++) {
		uint8_t out[93 + 1];
		size_t kept = length < 64 ? length : 64;

		memset(text, 'x', length);
		text[length] = 0;
		memset(out, 0xaa, sizeof(out));
		ck_assert_uint_eq(rxw_version_put(out, &request, text), 93);
		ck_assert(rxw_header_get(out, 93, &h));
		ck_assert_uint_eq(h.flags, 0x04);
		ck_assert_uint_eq(h.call, 101);
		ck_assert_uint_eq(h.epoch, 999);
		ck_assert_mem_eq(out + 28, text, kept);
		for (size_t i = 28 + kept; i < 93; i++)
			ck_assert_uint_eq(out[i], 0);
		ck_assert_uint_eq(out[93], 0xaa);
	}
}
END_TEST

START_TEST(names)
{
	ck_assert_str_eq(rxw_packet_type_name(1), "DATA");
	ck_assert_str_eq(rxw_packet_type_name(13), "VERSION");
	ck_assert_str_eq(rxw_packet_type_name(12), "unknown");
	ck_assert_str_eq(rxw_packet_type_name(0), "unknown");
	ck_assert_str_eq(rxw_packet_type_name(4000000000u), "unknown");
	ck_assert_str_eq(rxw_ack_reason_name(1), "REQUESTED");
	ck_assert_str_eq(rxw_ack_reason_name(9), "IDLE");
	ck_assert_str_eq(rxw_ack_reason_name(10), "unknown");
}
END_TEST

TEST_MAIN("wire", header_example, header_short, header_round_trip, ack_round_trip, wide_round_trip,
	  marks, wide_malformed, ack_trailer_forms, ack_clamps, ack_malformed, ack_reasons,
	  abort_codes, jumbo_members, jumbo_truncated, jumbo_keeps_direction, jumbo_only_data,
	  stateless_abort, version_answer, names)
