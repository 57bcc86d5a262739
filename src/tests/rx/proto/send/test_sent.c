/* SPDX-License-Identifier: BSD-2-Clause */
/* Transmissions and states of packets: random operations, compared with one record for each packet. */
#include <string.h>

#include "base/hash.h"
#include "tests/rx/proto/bench.h"

#define MOST 3000u

static struct bench b;
static struct rxw_sent s;
static uint64_t random_state = 5;
static uint32_t una, nxt, order, serial;
static struct {
	uint32_t order, serial;
	uint8_t state;
	bool once, doubted;
} model[RXW_BITMAP_MOST];

static uint32_t draw(uint32_t below)
{
	return (uint32_t)(rxw_prng(&random_state) % below);
}

static void put(uint32_t first, uint32_t count)
{
	ck_assert(rxw_sent_reserve(&s, b.pool, una, nxt, first == nxt ? count : 0));
	rxw_sent_add(&s, first, count, order, serial)->sent_at = order;
	for (uint32_t i = 0; i < count; i++) {
		if (first + i == nxt)
			nxt++;
		model[first + i].order = order++;
		model[first + i].serial = serial++;
		model[first + i].state = RXW_TX_FLIGHT;
	}
}

static void change(uint32_t first, uint32_t count, bool acked, bool doubted)
{
	if (acked)
		rxw_sent_acked(&s, first, count);
	else
		rxw_sent_lost(&s, first, count, doubted);
	for (uint32_t i = 0; i < count; i++) {
		model[first + i].state = acked ? RXW_TX_ACKED : RXW_TX_LOST;
		model[first + i].doubted = !acked && doubted;
		model[first + i].once |= acked;
	}
}

/* The lowest order in flight, and the first packet before a bound: found by looking at all. */
static void check_oldest(void)
{
	uint32_t oldest = UINT32_MAX, got;

	for (uint32_t i = una; i < nxt; i++)
		if (model[i].state == RXW_TX_FLIGHT && model[i].order < oldest)
			oldest = model[i].order;
	ck_assert(rxw_sent_oldest(&s, &got) == (oldest != UINT32_MAX));
	if (oldest != UINT32_MAX)
		ck_assert_uint_eq(got, oldest);
}

static void check_before(uint32_t bound)
{
	uint32_t from, to, found;

	from = una + draw(nxt - una + 1);
	to = from + draw(nxt - from + 1);
	for (found = from; found < to; found++)
		if (model[found].state == RXW_TX_FLIGHT &&
		    (int32_t)(model[found].order - bound) < 0)
			break;
	ck_assert_uint_eq(rxw_sent_before(&s, from, to, bound), found);
}

/* Each search makes limits exact that the other one uses. */
static void check_orders(void)
{
	bool first = draw(2);

	if (first)
		check_oldest();
	check_before(order - draw(draw(2) ? 64 : order / 2 + 1));
	if (!first)
		check_oldest();
}

static void check_parts(void)
{
	for (uint32_t seq = una; seq < nxt;) {
		struct rxw_txpart part = rxw_sent_part(&s, seq, nxt);
		const struct rxw_txseg *t = rxw_sent_find_serial(&s, model[seq].serial);

		ck_assert_ptr_eq(t, part.seg);
		ck_assert_uint_eq(t->sent_at, t->order);
		for (uint32_t i = 0; i < part.count; i++) {
			ck_assert_uint_eq(part.order + i, model[seq + i].order);
			ck_assert_uint_eq(part.state, model[seq + i].state);
			ck_assert_uint_eq(part.once, model[seq + i].once);
			ck_assert_uint_eq(part.doubted, model[seq + i].doubted);
		}
		seq += part.count;
	}
}

static void step(void)
{
	uint32_t first = nxt > una ? una + draw(nxt - una) : nxt, n = 1 + draw(40);

	n = n < nxt - first ? n : nxt - first;
	switch (draw(6)) {
	case 0:
	case 1:
		if (nxt - una < MOST - 45)
			put(nxt, 1 + draw(45));
		break;
	case 2:
		if (n > 0)
			put(first, n);
		break;
	case 3:
		if (n > 0)
			change(first, n, draw(3) > 0, false);
		break;
	case 4:
		if (n > 0)
			change(first, n, false, true);
		break;
	default:
		if (draw(4) == 0) {
			rxw_sent_forget(&s, una, first);
			una = first;
		}
	}
}

START_TEST(random_steps)
{
	bench_init(&b, true);
	for (unsigned round = 0; round < 8; round++) {
		memset(model, 0, sizeof(model));
		rxw_sent_init(&s);
		una = nxt = 1;
		order = serial = round % 2 ? 1 : 1u << 31;
		for (unsigned i = 0; i < 3000 && nxt < RXW_BITMAP_MOST - 64; i++) {
			step();
			check_orders();
			if (i % 32 == 0)
				check_parts();
		}
		rxw_sent_fini(&s);
	}
	bench_free(&b);
}
END_TEST

/* Nothing was in flight, and a burst has packets in two words: each is found. */
START_TEST(burst_in_two_words)
{
	bench_init(&b, true);
	memset(model, 0, sizeof(model));
	rxw_sent_init(&s);
	una = nxt = 1;
	order = serial = 1;
	for (unsigned i = 0; i < 300; i++) {
		put(nxt, 45);
		ck_assert_uint_eq(rxw_sent_before(&s, una, nxt, order - 44), nxt - 45);
		change(nxt - 45, 45, true, false);
		if (i % 3 > 0) {
			rxw_sent_forget(&s, una, nxt);
			una = nxt;
		}
	}
	rxw_sent_fini(&s);
	bench_free(&b);
}
END_TEST

/* A packet at the head is sent again and again: the log does not grow for ever. */
START_TEST(log_is_bounded)
{
	bench_init(&b, true);
	memset(model, 0, sizeof(model));
	rxw_sent_init(&s);
	una = nxt = 1;
	order = serial = 1;
	put(1, 45);
	for (unsigned i = 0; i < 10000; i++) {
		put(7, 3);
		ck_assert_uint_eq(rxw_sent_find(&s, order - 1)->first, 7);
		ck_assert_uint_eq(rxw_sent_part(&s, 1, nxt).count, 6);
	}
	ck_assert_uint_le(s.log_room, 16);
	rxw_sent_forget(&s, 1, 46);
	ck_assert_uint_eq(s.log_count, 0);
	rxw_sent_fini(&s);
	bench_free(&b);
}
END_TEST

/* What is left of a wide window keeps no more than a KiB for each packet, whose data are charged. */
START_TEST(some_are_left)
{
	const uint32_t most = 30000;

	for (uint32_t left = most; left > 100; left -= left / 4) {
		size_t bytes;

		bench_init(&b, true);
		memset(model, 0, sizeof(model));
		rxw_sent_init(&s);
		una = nxt = 1;
		order = serial = 1;
		while (nxt < most)
			put(nxt, 1);
		/* All are sent again, the peer has all but the last ones, and the first of those is lost. */
		for (uint32_t seq = una; seq < nxt; seq++)
			put(seq, 1);
		rxw_sent_forget(&s, una, nxt - left / 2);
		una = nxt - left / 2;
		for (unsigned i = 0; i < 4; i++)
			put(una, 1);
		bytes = s.buf->cap + s.log_buf->cap;
		ck_assert_msg(bytes < 600000 || bytes <= left / 2 * 1024, "%zu bytes for %u packets",
			      bytes, left / 2);
		check_orders();
		rxw_sent_fini(&s);
		bench_free(&b);
	}
}
END_TEST

/* A window of single transmissions, of which all but a few were acknowledged: they keep little memory. */
START_TEST(few_are_left)
{
	bench_init(&b, true);
	memset(model, 0, sizeof(model));
	rxw_sent_init(&s);
	una = nxt = 1;
	order = serial = 1;
	while (nxt < 10000)
		put(nxt, 1);
	ck_assert_uint_ge(s.log_room, 8192);
	ck_assert_uint_ge(s.room, 8192);
	rxw_sent_forget(&s, una, nxt - 5);
	una = nxt - 5;
	change(una, 1, false, true);
	change(una + 1, 2, true, false);
	put(una, 1);
	ck_assert_uint_le(s.log_room, 1024);
	ck_assert_uint_le(s.room, 1024);
	check_orders();
	check_parts();
	/* And there is space again for as many. */
	while (nxt < 20000)
		put(nxt, 45);
	check_orders();
	check_parts();
	rxw_sent_fini(&s);
	bench_free(&b);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sent");
	TCase *tcase = tcase_create("sent");

	suite_add_tcase(suite, tcase);
	tcase_set_timeout(tcase, 0);
	tcase_add_test(tcase, random_steps);
	tcase_add_test(tcase, burst_in_two_words);
	tcase_add_test(tcase, log_is_bounded);
	tcase_add_test(tcase, few_are_left);
	tcase_add_test(tcase, some_are_left);
	return bench_main(suite);
}
