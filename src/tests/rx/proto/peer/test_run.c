/* SPDX-License-Identifier: BSD-2-Clause */
/* Cutting bursts into runs: equal packets stay together, jumbograms are split. */
#include <string.h>

#include "base/hash.h"
#include "tests/rx/proto/bench.h"

static struct bench b;
static struct rxw_buf *buf;
static uint32_t length;

static void setup(void)
{
	bench_init(&b, false);
	buf = rxw_buf_get(b.pool);
	length = 0;
}

static void teardown(void)
{
	rxw_buf_unref(buf);
	bench_free(&b);
}

static void put(uint32_t seq, unsigned flags, uint32_t payload)
{
	length += bench_data(&b, buf->data + length, 1, seq, flags, payload);
}

/* Cuts all runs. Their counts are compared with the list, which 0 ends. */
static void expect(uint32_t segment, const unsigned *counts)
{
	struct rxw_path path = {0};
	struct rxw_jumbo jumbo = {0};
	struct rxw_rxrun run;
	uint32_t at = 0;

	while (rxw_run_next(buf, &path, length, segment, &at, &jumbo, &run, &b.stats) == 1) {
		ck_assert_uint_ne(*counts, 0);
		ck_assert_uint_eq(run.count, *counts++);
	}
	ck_assert_uint_eq(*counts, 0);
	ck_assert_uint_eq(at, length);
}

START_TEST(one_run)
{
	struct rxw_path path = {0};
	struct rxw_jumbo jumbo = {0};
	struct rxw_rxrun run;
	uint32_t at = 0;

	setup();
	for (unsigned i = 1; i <= 9; i++)
		put(i, i == 5 ? RXW_REQUEST_ACK : RXW_MORE_PACKETS, 100);
	put(10, RXW_LAST_PACKET, 7);
	ck_assert_int_eq(rxw_run_next(buf, &path, length, 128, &at, &jumbo, &run, &b.stats), 1);
	ck_assert_uint_eq(run.count, 10);
	ck_assert_uint_eq(run.stride, 128);
	ck_assert_uint_eq(run.last_size, 35);
	ck_assert_uint_eq(run.size, length);
	ck_assert_uint_eq(run.head.seq, 1);
	ck_assert_uint_eq(run.head.serial, 1);
	ck_assert(run.or_flags & RXW_REQUEST_ACK);
	ck_assert(run.last_flags & RXW_LAST_PACKET);
	ck_assert(!(run.last_flags & RXW_MORE_PACKETS));
	ck_assert(!run.jumbo && !run.verified);
	ck_assert_int_eq(rxw_run_next(buf, &path, length, 128, &at, &jumbo, &run, &b.stats), 0);
	teardown();
}
END_TEST

START_TEST(cut_where_something_differs)
{
	setup();
	put(1, 0, 100);
	put(2, 0, 100);
	put(4, 0, 100); /* a hole in seq */
	put(5, 0, 100);
	b.serial++; /* a hole in serial */
	put(6, 0, 100);
	put(7, 0, 100);
	length += bench_data(&b, buf->data + length, 2, 8, 0, 100);
	put(9, 0, 100);
	expect(128, (const unsigned[]){2, 2, 2, 1, 1, 0});
	teardown();
}
END_TEST

START_TEST(other_fields_cut)
{
	static const unsigned offsets[] = {0, 4, 20, 22, 23, 26};

	for (unsigned i = 0; i < 6; i++) {
		setup();
		put(1, 0, 100);
		put(2, 0, 100);
		buf->data[128 + offsets[i]] ^= 1;
		expect(128, (const unsigned[]){1, 1, 0});
		teardown();
	}
	/* The spare word may differ between packets. */
	setup();
	put(1, 0, 100);
	put(2, 0, 100);
	buf->data[128 + 24] ^= 1;
	expect(128, (const unsigned[]){2, 0});
	teardown();
}
END_TEST

START_TEST(last_packet_ends_a_run)
{
	setup();
	put(1, 0, 100);
	put(2, RXW_LAST_PACKET, 100);
	put(3, 0, 100);
	put(4, 0, 100);
	expect(128, (const unsigned[]){2, 2, 0});
	teardown();
}
END_TEST

START_TEST(short_datagrams)
{
	setup();
	memset(buf->data, 0, 27);
	length = 27;
	expect(27, (const unsigned[]){0});
	ck_assert_uint_eq(b.stats.drops[RXW_DROP_SHORT], 1);
	length = 0;
	put(1, 0, 100);
	put(2, 0, 100);
	length += 5; /* a tail shorter than a header */
	expect(128, (const unsigned[]){2, 0});
	ck_assert_uint_eq(b.stats.drops[RXW_DROP_SHORT], 2);
	length = 0;
	expect(0, (const unsigned[]){0});
	teardown();
}
END_TEST

/* `members` full ones and a short last one. */
static void put_jumbo(uint32_t seq, unsigned members, uint32_t tail)
{
	uint8_t *d = buf->data + length;

	bench_data(&b, d, 1, seq, RXW_JUMBO_PACKET, RXW_JUMBO_PAYLOAD);
	b.serial += members;
	d += 28 + RXW_JUMBO_PAYLOAD;
	for (unsigned i = 1; i <= members; i++) {
		memset(d, 0, 4);
		d[0] = i < members ? RXW_JUMBO_PACKET : RXW_LAST_PACKET | RXW_REQUEST_ACK;
		memset(d + 4, (int)i, i < members ? RXW_JUMBO_PAYLOAD : tail);
		d += 4 + (i < members ? RXW_JUMBO_PAYLOAD : tail);
	}
	length = (uint32_t)(d - buf->data);
}

START_TEST(jumbograms)
{
	struct rxw_path path = {0};
	struct rxw_jumbo jumbo = {0};
	struct rxw_rxrun run;
	uint32_t at = 0;

	setup();
	put_jumbo(5, 3, 10);
	for (unsigned i = 0; i <= 3; i++) {
		ck_assert_int_eq(
			rxw_run_next(buf, &path, length, length, &at, &jumbo, &run, &b.stats), 1);
		ck_assert(run.jumbo);
		ck_assert_uint_eq(run.count, 1);
		ck_assert_uint_eq(run.head.seq, 5 + i);
		ck_assert_uint_eq(run.head.serial, 1 + i);
		ck_assert_uint_eq(run.last_size, 28 + (i < 3 ? RXW_JUMBO_PAYLOAD : 10u));
		ck_assert_ptr_eq(run.data + 28, buf->data + 28 + i * 1416);
		ck_assert_int_eq(!!(run.last_flags & RXW_LAST_PACKET), i == 3);
	}
	ck_assert_int_eq(rxw_run_next(buf, &path, length, length, &at, &jumbo, &run, &b.stats), 0);
	teardown();
}
END_TEST

START_TEST(truncated_jumbogram)
{
	setup();
	put_jumbo(1, 2, 10);
	length = 28 + 1416 + 1000; /* inside the second member, which announces a third */
	expect(length, (const unsigned[]){1, 0});
	ck_assert_uint_eq(b.stats.drops[RXW_DROP_JUMBO], 1);
	teardown();
}
END_TEST

/* Arbitrary bytes cause neither a read out of bounds nor an endless loop. */
START_TEST(random_bytes)
{
	uint64_t state = 99;

	setup();
	for (unsigned round = 0; round < 20000; round++) {
		struct rxw_path path = {0};
		struct rxw_jumbo jumbo = {0};
		struct rxw_rxrun run;
		uint32_t at = 0, segment = (uint32_t)(rxw_prng(&state) % 3000);
		unsigned n = 0;

		length = (uint32_t)(rxw_prng(&state) % 6000);
		for (unsigned i = 0; i < 40; i++)
			buf->data[rxw_prng(&state) % 6000] = (uint8_t)rxw_prng(&state);
		buf->data[20] = RXW_DATA;
		while (rxw_run_next(buf, &path, length, segment, &at, &jumbo, &run, &b.stats) ==
		       1) {
			ck_assert_uint_lt(++n, 6000);
			ck_assert(run.data + 28 >= buf->data + 28);
			ck_assert(run.data + (size_t)(run.count - 1) * run.stride + run.last_size <=
				  buf->data + length);
		}
	}
	teardown();
}
END_TEST

/* Whatever its lengths say, an ACK is decoded within its bytes, or is malformed. */
START_TEST(acks_are_decoded_once)
{
	struct rxw_path path = {0};
	uint32_t size;

	setup();
	size = bench_ack(&b, buf->data, 1, 5, 7, RXW_ACK_PING_RESPONSE, 0, "101", 16);
	for (uint32_t cut = RXW_HEADER_SIZE; cut <= size; cut++) {
		struct rxw_jumbo jumbo = {0};
		struct rxw_rxrun run;
		const struct rxw_ack *ack;
		uint32_t at = 0;

		ck_assert_int_eq(rxw_run_next(buf, &path, cut, cut, &at, &jumbo, &run, &b.stats),
				 1);
		ack = rxw_run_ack(&run);
		ck_assert((ack != NULL) == (cut >= RXW_HEADER_SIZE + 18 + 3));
		if (ack == NULL)
			continue;
		ck_assert_uint_eq(ack->first, 5);
		ck_assert_uint_eq(ack->serial, 7);
		ck_assert_uint_eq(ack->reason, RXW_ACK_PING_RESPONSE);
		ck_assert_uint_eq(ack->count, 3);
		ck_assert_ptr_eq(ack->acks, buf->data + RXW_HEADER_SIZE + 18);
		ck_assert_uint_eq(ack->rwind, cut == size ? 16 : ack->rwind);
	}
	teardown();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("run");
	TCase *tcase = tcase_create("run");

	suite_add_tcase(suite, tcase);
	tcase_set_timeout(tcase, 0);
	tcase_add_test(tcase, one_run);
	tcase_add_test(tcase, cut_where_something_differs);
	tcase_add_test(tcase, other_fields_cut);
	tcase_add_test(tcase, last_packet_ends_a_run);
	tcase_add_test(tcase, short_datagrams);
	tcase_add_test(tcase, jumbograms);
	tcase_add_test(tcase, truncated_jumbogram);
	tcase_add_test(tcase, random_bytes);
	tcase_add_test(tcase, acks_are_decoded_once);
	return bench_main(suite);
}
