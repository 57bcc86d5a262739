/* SPDX-License-Identifier: BSD-2-Clause */
/* The receive queue: order, overlaps, small copies, memory limits, slices for the reader. */
#include <string.h>

#include "base/hash.h"
#include "tests/rx/proto/bench.h"

static struct bench b;
static struct bench_conn *c;

static void setup(void)
{
	bench_init(&b, false);
	c = bench_conn(&b, BENCH_EPOCH, BENCH_CID, 7001);
	rxw_peer_set_validated(c->p.peer, b.out.now);
}

static struct bench_call *call(void)
{
	return (struct bench_call *)bench_channel(c, 0);
}

static void burst(uint32_t seq, unsigned count, uint32_t payload)
{
	static uint8_t bytes[65536];
	uint32_t length = 0;

	for (unsigned i = 0; i < count; i++)
		length += bench_data(&b, bytes + length, 1, seq + i, 0, payload);
	bench_input(&b, c, bytes, length, 28 + payload);
	b.count = b.next = 0;
}

/*
 * With duplicated, late or truncated input the reader gets every packet once, in order and intact.
 */
START_TEST(random_order)
{
	uint64_t state = 3;

	for (unsigned round = 0; round < 100; round++) {
		uint32_t next = 1;

		setup();
		while (next <= 200) {
			uint32_t from = next + (uint32_t)(rxw_prng(&state) % 30);
			uint32_t back = (uint32_t)(rxw_prng(&state) % 20);
			struct rxw_rxpiece p[4];
			unsigned n;

			from = from > back ? from - back : 1;
			burst(from, 1 + (unsigned)(rxw_prng(&state) % 12), 40);
			if (call() == NULL || call()->p.state != RXW_CS_ACTIVE)
				continue;
			while ((n = rxw_pcall_take(&call()->p, p,
						   1 + (unsigned)(rxw_prng(&state) % 4))) > 0) {
				uint32_t packets = 0;

				for (unsigned i = 0; i < n; i++) {
					ck_assert_uint_eq(p[i].first_seq, next);
					for (unsigned k = 0; k < p[i].count; k++, next++)
						for (unsigned m = 0; m < 40; m++)
							ck_assert_uint_eq(
								p[i].data[k * p[i].stride + m],
								(uint8_t)(next + m));
					packets += p[i].count;
					rxw_buf_unref(p[i].buf);
				}
				rxw_pcall_consumed(&call()->p, packets, &b.out);
			}
		}
		ck_assert_int_eq(call()->p.error, 0);
		bench_free(&b);
	}
}
END_TEST

/* Packets behind gaps, and their ACKs as the sender reads them: nothing wrong, and what is new. */
static void wide_pattern(uint64_t seed, uint32_t most)
{
	static uint8_t tables[(1 + RXW_ACK_TABLES) * RXW_ACK_TABLE], got[RXW_WINDOW_MAX + 2],
		told[RXW_WINDOW_MAX + 2];
	uint64_t state = seed;
	struct rxw_recvq *q;
	uint32_t seq = 2;

	setup();
	b.params.window = RXW_WINDOW_MAX;
	b.params.call_memory = b.params.conn_memory = 64 << 20;
	rxw_budget_init(&c->p.rx.memory, 64 << 20);
	rxw_budget_init(&c->p.peer->memory, 64 << 20);
	memset(got, 0, sizeof(got));
	memset(told, 0, sizeof(told));
	burst(1, 1, 1);
	call()->p.rx.edge = RXW_WINDOW_MAX + 1; /* as if it had been advertised */
	got[1] = 1;
	while (seq < most) {
		uint32_t n = 1 + (uint32_t)(rxw_prng(&state) % 60);

		seq += 1 + (uint32_t)(rxw_prng(&state) % (seq % 3 ? 3 : 700));
		if (seq + n > most)
			break;
		burst(seq, n, 1);
		memset(got + seq, 1, n);
		seq += n;
	}
	q = &call()->p.rx;
	ck_assert_uint_eq(q->next, 2);
	for (unsigned n = 1; n <= 3 * 32; n++) {
		/* Each is caused by the last packet of a burst of 45. */
		struct rxw_ack ack = {.first = 1, .serial = 45 * n, .base = 1, .extended = true};
		uint8_t out[RXW_ACK_MAX_SIZE];
		struct rxw_ack back;
		size_t size;

		ck_assert(rxw_recvq_wide(q, &ack, tables, 1 + RXW_ACK_TABLES));
		size = rxw_ack_put(out, &ack);
		ck_assert_uint_le(RXW_HEADER_SIZE + size, RXW_MTU_DEFAULT);
		ck_assert(rxw_ack_get(out, size, RXW_EXTENDED_ACK, &back));
		ck_assert_uint_eq(back.previous, q->highest);
		for (uint32_t i = 0; i <= q->highest - 1; i++) {
			uint32_t begin = back.base * RXW_TABLE_PACKETS;
			bool described = i < back.count ||
					 (i >= begin && i - begin < back.part);

			if (described) {
				ck_assert_uint_eq(rxw_ack_has(&back, i), got[1 + i]);
				told[1 + i] = 1;
			} else if (i - back.count < back.tail) {
				ck_assert_uint_eq(got[1 + i], 1);
				told[1 + i] = 1;
			}
		}
	}
	/* All of the window within so many ACKs. */
	for (uint32_t i = 1; i <= q->highest; i++)
		ck_assert_uint_eq(told[i], 1);
	bench_free(&b);
}

START_TEST(wide_tables)
{
	static const uint32_t windows[] = {400, 2000, 2100, 5000, 10200, 10300, 12300, 30000, 65000};

	for (unsigned i = 0; i < sizeof(windows) / sizeof(windows[0]); i++)
		wide_pattern(11 + i, windows[i]);
}
END_TEST

/* Thousands of packets behind gaps, in random order, and then those of the gaps, some of them twice. */
START_TEST(shuffled)
{
	static uint32_t order[8000];
	uint32_t most = sizeof(order) / sizeof(order[0]), n, packets = 0;
	uint64_t state = 9;
	struct rxw_rxpiece piece[16];

	setup();
	b.params.window = RXW_WINDOW_MAX;
	b.params.call_memory = b.params.conn_memory = 64 << 20;
	rxw_budget_init(&c->p.rx.memory, 64 << 20);
	rxw_budget_init(&c->p.peer->memory, 64 << 20);
	burst(1, 1, 1);
	call()->p.rx.edge = RXW_WINDOW_MAX + 1;
	for (uint32_t i = 0; i < most; i++)
		order[i] = 2 + (i < most / 2 ? 2 * i + 1 : 2 * (i - most / 2));
	for (unsigned half = 0; half < 2; half++) {
		for (uint32_t i = most / 2; i > 1; i--) {
			uint32_t *a = &order[half * most / 2], j = (uint32_t)(rxw_prng(&state) % i);
			uint32_t x = a[i - 1];

			a[i - 1] = a[j];
			a[j] = x;
		}
		for (uint32_t i = 0; i < most / 2; i++) {
			burst(order[half * most / 2 + i], 1 + i % 7 / 6, 1);
			b.count = b.next = 0;
		}
		ck_assert(half == 1 || call()->p.rx.next == 2);
	}
	ck_assert_uint_eq(call()->p.rx.later.count, 0);
	ck_assert_uint_ge(call()->p.rx.next, 2 + most);
	while ((n = rxw_pcall_take(&call()->p, piece, 16)) > 0)
		for (uint32_t i = 0; i < n; i++) {
			ck_assert_uint_eq(piece[i].first_seq, 1 + packets);
			packets += piece[i].count;
			rxw_buf_unref(piece[i].buf);
		}
	ck_assert_uint_eq(packets, call()->p.rx.next - 1);
	bench_free(&b);
}
END_TEST

START_TEST(small_ones_are_copied)
{
	setup();
	burst(1, 1, 100);
	burst(2, 1, 0);
	/* Two packets pin two small buffers, not two of 64 KiB. */
	ck_assert_uint_le(rxw_pool_live(b.pool), 512);
	ck_assert_int_eq(call()->p.rx.pinned, 128 + 64);
	ck_assert_int_eq(atomic_load(&c->p.rx.memory.used), 192);
	ck_assert_int_eq(atomic_load(&c->p.peer->memory.used), 192);
	burst(3, 40, 1416);
	ck_assert_int_eq(call()->p.rx.pinned, 192 + 65536);
	ck_assert_uint_eq(bench_read(call()), 42);
	ck_assert_int_eq(call()->p.rx.pinned, 0);
	ck_assert_int_eq(atomic_load(&c->p.rx.memory.used), 0);
	bench_free(&b);
}
END_TEST

START_TEST(charges_last_until_consumed)
{
	struct rxw_rxpiece p[4];

	setup();
	burst(1, 2, 100);
	burst(3, 1, 100);
	ck_assert_uint_eq(rxw_pcall_take(&call()->p, p, 4), 2);
	ck_assert_int_eq(call()->p.rx.pinned, 256 + 128);
	rxw_pcall_consumed(&call()->p, 1, &b.out);
	ck_assert_int_eq(call()->p.rx.pinned, 256 + 128);
	rxw_pcall_consumed(&call()->p, 1, &b.out);
	ck_assert_int_eq(call()->p.rx.pinned, 128);
	rxw_pcall_consumed(&call()->p, 100, &b.out); /* only the read part counts */
	ck_assert_int_eq(call()->p.rx.pinned, 0);
	ck_assert_uint_eq(call()->p.rx.consumed, 4);
	rxw_buf_unref(p[0].buf);
	rxw_buf_unref(p[1].buf);
	bench_free(&b);
}
END_TEST

static void limit_of(unsigned which)
{
	setup();
	if (which == 0)
		b.params.call_memory = 1000;
	else if (which == 1)
		rxw_budget_init(&c->p.rx.memory, 1000);
	else
		rxw_budget_init(&c->p.peer->memory, 1000);
	for (uint32_t seq = 1; seq <= 7; seq++)
		burst(seq, 1, 100);
	ck_assert_uint_eq(call()->p.rx.next, 8);
	bench_get_data(&b, c, 1, 8, 0, 100);
	ck_assert_uint_eq(call()->p.rx.next, 8);
	ck_assert_uint_eq(b.stats.drops[RXW_DROP_MEMORY], 1);
	/* Refused, and accepted once there is room. */
	ck_assert_uint_eq(bench_expect(&b, RXW_ACK)->ack.reason, RXW_ACK_NOSPACE);
	bench_read(call());
	bench_get_data(&b, c, 1, 8, 0, 100);
	ck_assert_uint_eq(call()->p.rx.next, 9);
	bench_free(&b);
}

/* A reply that is not acknowledged keeps no table of the request. */
START_TEST(tables_are_released)
{
	setup();
	for (uint32_t seq = 1; seq < 14; seq += 2)
		burst(seq, 1, 40);
	ck_assert_ptr_nonnull(call()->p.rx.ents.buf);
	rxw_recvq_discard(&call()->p);
	ck_assert(!rxw_recvq_release(&call()->p, 6));
	ck_assert(rxw_recvq_release(&call()->p, 1));
	ck_assert_ptr_null(call()->p.rx.ents.buf);
	ck_assert_int_eq(call()->p.rx.pinned, 0);
	bench_free(&b);
}
END_TEST

/*
 * What is not released yet is reported missing, counts as memory, and is released in steps: what was in
 * order, and what was behind gaps.
 */
START_TEST(a_stopped_queue_is_released_in_steps)
{
	struct rxw_rxpiece piece[2];
	uint8_t acks[255];
	struct rxw_recvq *q;
	unsigned n;

	setup();
	for (uint32_t seq = 1; seq <= 6; seq++)
		burst(seq, 1, 40);
	burst(8, 1, 40);
	burst(11, 3, 40);
	q = &call()->p.rx;
	ck_assert_uint_eq(rxw_pcall_take(&call()->p, piece, 2), 2); /* the reader has these */
	ck_assert(rxw_recvq_release(&call()->p, 1));		    /* it has not stopped */
	rxw_recvq_clear(&call()->p);
	ck_assert(!rxw_recvq_has_later(q));
	ck_assert_uint_eq(rxw_pcall_readable(&call()->p, NULL), 0);
	ck_assert_uint_eq(rxw_recvq_table(q, 7, 7, acks, 255), 7);
	ck_assert_mem_eq(acks, "\0\0\0\0\0\0\0", 7);
	for (n = 0; !rxw_recvq_release(&call()->p, 3); n++) {
		ck_assert_int_gt(q->pinned, 0);
		rxw_recvq_clear(&call()->p); /* again, which changes nothing */
	}
	ck_assert_uint_eq(n, 2);
	ck_assert_int_eq(q->pinned, 0);
	rxw_pcall_consumed(&call()->p, 2, &b.out);
	rxw_buf_unref(piece[0].buf);
	rxw_buf_unref(piece[1].buf);
	bench_free(&b);
}
END_TEST

START_TEST(limits)
{
	for (unsigned which = 0; which < 3; which++)
		limit_of(which);
}
END_TEST

/* Packets behind a hole give way to those that fill it. */
START_TEST(holes_give_way)
{
	uint8_t acks[255];

	setup();
	b.params.call_memory = 1000;
	burst(1, 1, 100);
	for (uint32_t seq = 4; seq <= 9; seq++)
		burst(seq, 1, 100);
	ck_assert_int_eq(call()->p.rx.pinned, 7 * 128);
	burst(2, 1, 100);
	ck_assert_uint_eq(call()->p.rx.next, 3);
	burst(3, 1, 100);
	ck_assert_uint_eq(call()->p.rx.next, 8); /* 8 and 9 were dropped ... */
	ck_assert_uint_eq(rxw_recvq_table(&call()->p.rx, 1, 8, acks, 255), 9);
	ck_assert_mem_eq(acks, "\1\1\1\1\1\1\1\0\0", 9); /* ... and are reported as missing */
	burst(8, 2, 10);
	ck_assert_int_le(call()->p.rx.pinned, 1000);
	bench_read(call());
	burst(8, 2, 100);
	ck_assert_uint_eq(call()->p.rx.next, 10);
	bench_free(&b);
}
END_TEST

START_TEST(ack_table)
{
	uint8_t acks[255];

	setup();
	burst(1, 2, 10);
	burst(5, 2, 10);
	burst(9, 1, 10);
	ck_assert_uint_eq(rxw_recvq_table(&call()->p.rx, 1, 3, acks, 255), 9);
	ck_assert_mem_eq(acks, "\1\1\0\0\1\1\0\0\1", 9);
	ck_assert_uint_eq(rxw_recvq_table(&call()->p.rx, 1, 3, acks, 5), 5);
	ck_assert_uint_eq(rxw_recvq_table(&call()->p.rx, 1, 2, acks, 255), 1);
	bench_free(&b);
}
END_TEST

START_TEST(end_of_stream)
{
	bool ended = true;

	setup();
	burst(2, 1, 10);
	bench_get_data(&b, c, 1, 3, RXW_LAST_PACKET, 0);
	ck_assert_uint_eq(rxw_pcall_readable(&call()->p, &ended), 0);
	ck_assert(!ended);
	burst(1, 1, 10);
	ck_assert_uint_eq(rxw_pcall_readable(&call()->p, &ended), 3);
	ck_assert(ended);
	ck_assert_uint_eq(bench_read(call()), 3);
	ck_assert_uint_eq(rxw_pcall_readable(&call()->p, &ended), 0);
	ck_assert(ended);
	bench_free(&b);
}
END_TEST

/*
 * A call may begin with the window of the one before, without an ACK of its own. The time until such packets
 * arrive is no round trip.
 */
START_TEST(window_of_the_call_before)
{
	struct rxw_pcall *p;

	setup();
	c->p.rx.wide_heard = true;
	burst(1, 4, 100);
	ck_assert_uint_eq(bench_read(call()), 4);
	p = &call()->p;
	ck_assert_uint_gt(c->p.rx.window_told, 0); /* by the ACKs of these packets */
	c->p.rx.window_told = RXW_MAX_ACKS;
	p->rx.window = RXW_MAX_ACKS;
	p->rx.tuning.at = 0;
	p->rx.edge = 1 + RXW_FIRST_FLIGHT;
	rxw_recvq_advertised(p, 1000, b.out.now);
	p->rx.highest = RXW_MAX_ACKS;
	rxw_recvq_measure(p, b.out.now + 2 * RXW_MS);
	ck_assert_uint_eq(p->rx.tuning.least, 0);
	p->rx.highest = 1 + RXW_MAX_ACKS;
	rxw_recvq_measure(p, b.out.now + 50 * RXW_MS);
	ck_assert_uint_eq(p->rx.tuning.least, 50 * RXW_MS);
	bench_free(&b);
}
END_TEST

/* For at most a 64th of the round trip, half a millisecond, and 45 packets. */
START_TEST(packets_may_wait)
{
	struct rxw_recvq q = {0};

	ck_assert_uint_eq(rxw_recvq_pause(&q), 0);
	q.tuning.least = 100 * RXW_MS;
	ck_assert_uint_eq(rxw_recvq_pause(&q), 0); /* the path is short by then, or not measured */
	q.tuning.flight = 400;
	ck_assert_uint_eq(rxw_recvq_pause(&q), RXW_MS / 2);
	q.tuning.least = 6400000;
	ck_assert_uint_eq(rxw_recvq_pause(&q), 100000);
	q.tuning.flight = 6400; /* a packet in a microsecond */
	ck_assert_uint_eq(rxw_recvq_pause(&q), 45000);
	q.tuning.flight = UINT32_MAX;
	ck_assert_uint_eq(rxw_recvq_pause(&q), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("recvq");
	TCase *tcase = tcase_create("recvq");

	suite_add_tcase(suite, tcase);
	tcase_set_timeout(tcase, 0);
	tcase_add_test(tcase, random_order);
	tcase_add_test(tcase, shuffled);
	tcase_add_test(tcase, small_ones_are_copied);
	tcase_add_test(tcase, charges_last_until_consumed);
	tcase_add_test(tcase, tables_are_released);
	tcase_add_test(tcase, a_stopped_queue_is_released_in_steps);
	tcase_add_test(tcase, limits);
	tcase_add_test(tcase, holes_give_way);
	tcase_add_test(tcase, ack_table);
	tcase_add_test(tcase, wide_tables);
	tcase_add_test(tcase, end_of_stream);
	tcase_add_test(tcase, window_of_the_call_before);
	tcase_add_test(tcase, packets_may_wait);
	return bench_main(suite);
}
