/* SPDX-License-Identifier: BSD-2-Clause */
/* The send queue: runs, segments that split, repacking for a smaller path, high and low water. */
#include <string.h>

#include "base/hash.h"
#include "tests/rx/proto/bench.h"

static struct bench b;
static struct bench_conn *c;
static struct bench_call *call;

static void setup(void)
{
	bench_init(&b, true);
	b.auto_send = false;
	c = bench_conn(&b, BENCH_EPOCH, BENCH_CID, 7000);
	call = bench_begin(&b, c);
}

static void teardown(void)
{
	bench_free(&b);
}

/* [una, nxt) is covered without gaps, and the counts are right. */
static void check(void)
{
	const struct rxw_sendq *q = &call->p.tx;
	uint32_t seq = q->una, n[3] = {0};

	while (seq < q->nxt) {
		struct rxw_txpart part = rxw_sent_part(&q->sent, seq, q->nxt);

		ck_assert_uint_eq(part.first, seq);
		ck_assert_uint_gt(part.count, 0);
		ck_assert_uint_eq(part.order - part.seg->order, seq - part.seg->first);
		seq += part.count;
		n[part.state] += part.count;
	}
	ck_assert_uint_eq(seq, q->nxt);
	ck_assert_uint_eq(n[RXW_TX_FLIGHT], q->flight);
	ck_assert_uint_eq(n[RXW_TX_ACKED], q->acked);
	ck_assert_uint_eq(n[RXW_TX_LOST], q->lost);
}

START_TEST(queue_and_numbers)
{
	setup();
	ck_assert_uint_eq(rxw_pcall_next_seq(&call->p), 1);
	bench_write(call, 3, 100, false);
	bench_write(call, 5, 100, true);
	ck_assert_uint_eq(rxw_pcall_next_seq(&call->p), 9);
	ck_assert_uint_eq(rxw_pcall_queued(&call->p), 8);
	/* After the end nothing more is accepted. */
	struct rxw_txrun run = {
		.buf = rxw_buf_get(b.pool), .stride = 100, .last_size = 100, .count = 1};

	run.data = run.buf->data;
	ck_assert_int_eq(rxw_pcall_push(&call->p, &run, &b.out), -RXW_EINVAL);
	ck_assert(!rxw_pcall_send_complete(&call->p));
	teardown();
}
END_TEST

START_TEST(segments)
{
	setup();
	bench_write(call, 40, 100, false);
	call->p.tx.cc.cwnd = 255;
	ck_assert_uint_eq(bench_send(call), 16); /* the known window */
	check();
	rxw_sendq_set(&call->p.tx, 5, 1, RXW_TX_LOST, true);
	rxw_sendq_set(&call->p.tx, 6, 1, RXW_TX_ACKED, false);
	check();
	ck_assert_uint_eq(rxw_sent_part(&call->p.tx.sent, 5, 17).count, 1);
	ck_assert_uint_eq(rxw_sent_part(&call->p.tx.sent, 7, 17).count, 10);
	rxw_sendq_free_below(&call->p, 8);
	check();
	ck_assert_uint_eq(call->p.tx.una, 8);
	ck_assert_uint_eq(rxw_sent_order(&call->p.tx.sent, 8), 8);
	/* The run stays until its last packet is acknowledged. */
	ck_assert_uint_eq(rxw_sendq_ent(&call->p.tx, call->p.tx.ent_head)->first, 1);
	rxw_sendq_clear(&call->p);
	ck_assert_uint_eq(rxw_pcall_queued(&call->p), 0);
	teardown();
}
END_TEST

/* A call that waits for its reply, or is over, keeps no table of what it has sent. */
START_TEST(tables_are_released)
{
	setup();
	call->p.tx.cc.cwnd = 255;
	call->p.tx.window = 255;
	call->p.tx.edge = 256;
	for (unsigned i = 0; i < 8; i++) {
		bench_write(call, 25, 100, false);
		bench_send(call);
	}
	ck_assert_uint_gt(call->p.tx.nxt, 1 + RXW_SENT_LEAST);
	ck_assert_ptr_nonnull(call->p.tx.sent.buf);
	ck_assert_ptr_nonnull(call->p.tx.sent.log_buf);
	rxw_sendq_clear(&call->p);
	ck_assert_ptr_null(call->p.tx.sent.buf);
	ck_assert_ptr_null(call->p.tx.sent.log_buf);
	teardown();
}
END_TEST

/* Any order of soft and hard acknowledgements leaves the partition intact. */
START_TEST(random_acks)
{
	uint64_t state = 7;

	for (unsigned round = 0; round < 200; round++) {
		setup();
		bench_write(call, 45, 100, false);
		bench_write(call, 45, 100, false);
		for (unsigned step = 0; step < 30; step++) {
			char acks[256] = "";
			uint32_t una = call->p.tx.una, out = call->p.tx.nxt - una, first = una;
			unsigned n = 0;

			if (out > 0) {
				first = una + (uint32_t)(rxw_prng(&state) % 3 == 0
								 ? rxw_prng(&state) % (out + 1)
								 : 0);
				n = (unsigned)(rxw_prng(&state) % (call->p.tx.nxt - first + 3));
			}
			for (unsigned i = 0; i < n; i++)
				acks[i] = rxw_prng(&state) % 3 ? '1' : '0';
			bench_get_ack(&b, c, 1, first,
				      (uint32_t)(rxw_prng(&state) % (c->p.serial + 1)),
				      RXW_ACK_OUT_OF_SEQUENCE, acks,
				      1 + (uint32_t)(rxw_prng(&state) % 255));
			check();
			bench_send(call);
			check();
			bench_pass(&b, rxw_prng(&state) % (50 * RXW_MS));
			b.count = b.next = 0;
			check();
		}
		teardown();
	}
}
END_TEST

START_TEST(water)
{
	setup();
	for (unsigned i = 0; i < 11; i++) {
		ck_assert(rxw_pcall_writable(&call->p));
		bench_write(call, 45, 100, false);
	}
	ck_assert(rxw_pcall_writable(&call->p)); /* 495 */
	bench_write(call, 45, 100, false);
	ck_assert(!rxw_pcall_writable(&call->p));
	call->p.tx.cc.cwnd = 255;
	call->events = 0;
	for (uint32_t first = 1; first < 285;) {
		bench_send(call);
		b.count = b.next = 0;
		first = call->p.tx.nxt < 284 ? call->p.tx.nxt : 284;
		ck_assert(!rxw_pcall_writable(&call->p));
		bench_get_ack(&b, c, 1, first, 0, RXW_ACK_DELAY, "", 255);
		if (first == 284)
			break;
	}
	ck_assert_uint_eq(rxw_pcall_queued(&call->p), 257);
	ck_assert(!(call->events & RXW_OUT_WRITE));
	bench_send(call);
	bench_get_ack(&b, c, 1, 286, 0, RXW_ACK_DELAY, "", 255);
	ck_assert(call->events & RXW_OUT_WRITE);
	ck_assert(rxw_pcall_writable(&call->p));
	teardown();
}
END_TEST

/* The mark falls after the writer was told, and before it looks: a writer that has to wait is told again. */
START_TEST(mark_falls)
{
	setup();
	bench_write(call, 40, 100, false);
	ck_assert(!call->p.tx.above_high);
	call->p.tx.high_limit = 10;
	ck_assert(rxw_pcall_writable(&call->p) || call->p.tx.above_high);
	rxw_pcall_limit_queue(&call->p, 10); /* the writer looks */
	ck_assert(!rxw_pcall_writable(&call->p));
	ck_assert(call->p.tx.above_high);
	teardown();
}
END_TEST

/* All memory, until it is given back. */
static struct rxw_buf *hoarded[16384];
static unsigned hoard;

static void take_all(void)
{
	static const size_t sizes[] = {RXW_BUF_SIZE, 8192, 1024, 64};

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		while ((hoarded[hoard] = rxw_buf_get_small(b.pool, sizes[i])) != NULL)
			ck_assert_uint_lt(++hoard, sizeof(hoarded) / sizeof(hoarded[0]));
}

static void give_back(void)
{
	while (hoard > 0)
		rxw_buf_unref(hoarded[--hoard]);
}

/*
 * Unsent data is cut anew for a smaller path. The bytes and the sent packets stay the same. 1: memory is short meanwhile.
 * What was sent is sent again, and the rest waits.
 */
START_TEST(repack)
{
	static uint8_t want[200000], got[200000];
	uint32_t n = 0, m = 0, seq = 1;
	struct bench_packet *k;

	setup();
	bench_write(call, 4, 1416, false);
	bench_write(call, 9, 1416, false);
	bench_write(call, 3, 500, true);
	for (unsigned i = 1; i <= 16; i++)
		for (unsigned j = 0; j < (i <= 13 ? 1416u : 500u); j++)
			want[n++] = (uint8_t)(i + j);
	ck_assert_uint_eq(bench_send(call), 4);
	call->p.tx.mtu.confirmed = 1200;
	ck_assert_uint_eq(rxw_pcall_datagram_size(&call->p), 1200);
	call->p.tx.cc.cwnd = 255;
	if (_i == 1) {
		take_all();
		rxw_sendq_lose_from(&call->p.tx, 4);
		ck_assert_uint_eq(bench_send(call), 1);
		ck_assert_uint_eq(b.sent[4].h.seq, 4);
		bench_pass(&b, RXW_MS);
		ck_assert_uint_eq(bench_send(call), 0);
		ck_assert_uint_le(rxw_pcall_deadline(&call->p), b.out.now + RXW_MS);
		give_back();
		b.count = 4;
	}
	bench_get_ack(&b, c, 1, 5, 4, RXW_ACK_REQUESTED, "", 255);
	ck_assert_int_eq(call->p.error, 0);
	bench_send(call);
	while ((k = bench_next(&b)) != NULL) {
		ck_assert_uint_eq(k->h.seq, seq++);
		ck_assert_uint_le(k->length, k->h.seq <= 4 ? 1444 : 1200);
		memcpy(got + m, k->bytes + 28, k->length - 28);
		m += k->length - 28;
	}
	ck_assert_uint_eq(m, n);
	ck_assert_mem_eq(got, want, n);
	ck_assert(b.sent[b.count - 1].h.flags & RXW_LAST_PACKET);
	ck_assert_uint_eq(call->p.tx.end, seq);
	teardown();
}
END_TEST

static unsigned unsealed;

static int seal(void *conn, struct rxw_security_packet *packets, size_t count)
{
	(void)conn;
	for (size_t i = 0; i < count; i++)
		for (uint32_t k = 0; k < packets[i].length; k++)
			packets[i].data[k] ^= (uint8_t)packets[i].seq;
	return 0;
}

static int unseal(void *conn, struct rxw_security_packet *packets, size_t count)
{
	unsealed += (unsigned)count;
	return seal(conn, packets, count);
}

/*
 * The peer allows another size with each ACK, and one packet: what does not leave yet stays sealed. The bytes and their
 * order are right nevertheless.
 */
START_TEST(sealed_packets_are_cut_late)
{
	static struct rxw_security class;
	uint32_t bytes = 0, seq = 1, mtu = 1444;
	struct bench_packet *k;

	bench_init(&b, true);
	b.auto_send = false;
	class = rxw_security_null_class;
	class.class.seal = seal;
	class.class.unseal = unseal;
	b.security = &class;
	c = bench_conn(&b, BENCH_EPOCH, BENCH_CID, 7000);
	call = bench_begin(&b, c);
	for (uint32_t i = 1; i <= 80; i += 40) {
		struct rxw_txrun run = {.stride = 1444, .last_size = 1444, .count = 40};

		run.buf = rxw_buf_get(b.pool);
		run.data = run.buf->data;
		for (uint32_t n = 0; n < 40 * 1444; n++)
			run.data[n] = n % 1444 < 28 ? 0
						    : (uint8_t)(((i - 1 + n / 1444) * 1416 +
								 n % 1444 - 28) % 251) ^
							      (uint8_t)(i + n / 1444);
		ck_assert_int_eq(rxw_pcall_push(&call->p, &run, &b.out), 0);
	}
	call->p.tx.edge = 2;
	unsealed = 0;
	while (bytes < 80 * 1416) {
		uint8_t packet[400];
		uint32_t size;

		rxw_pcall_flush(&call->p, &b.out);
		take_all();
		bench_send(call); /* perhaps what was cut before */
		give_back();
		ck_assert_int_eq(call->p.error, 0);
		bench_send(call);
		while ((k = bench_next(&b)) != NULL) {
			if (k->h.type != RXW_DATA)
				continue;
			ck_assert_uint_eq(k->h.seq, seq++);
			ck_assert_uint_le(k->length, mtu);
			for (uint32_t n = 28; n < k->length; n++, bytes++)
				ck_assert_uint_eq(k->bytes[n] ^ (uint8_t)k->h.seq, bytes % 251);
		}
		b.count = b.next = 0;
		bench_pass(&b, RXW_MS);
		b.count = b.next = 0;
		mtu = mtu > 808 ? mtu - 8 : 1444;
		size = bench_ack(&b, packet, 1, seq, c->p.serial, RXW_ACK_DELAY, 0, "", 1);
		rxw_put32(packet + 28 + 18 + 3, mtu);
		rxw_put32(packet + 28 + 18 + 7, mtu);
		bench_input(&b, c, packet, size, size);
	}
	ck_assert_uint_gt(unsealed, 0);
	ck_assert_uint_lt(unsealed, 8 * seq);
	teardown();
}
END_TEST

/*
 * The queue was cut anew and now holds more packets than a writer may add to. The writer waits, and
 * is notified like any other.
 */
START_TEST(repack_above_high_water)
{
	setup();
	for (unsigned i = 0; i < 9; i++)
		bench_write(call, 40, 1416, false);
	ck_assert_uint_eq(bench_send(call), 4);
	ck_assert(rxw_pcall_writable(&call->p));
	call->p.tx.mtu.confirmed = 548;
	call->p.tx.cc.cwnd = 255;
	bench_get_ack(&b, c, 1, 5, 4, RXW_ACK_REQUESTED, "", 255);
	bench_send(call);
	ck_assert_uint_gt(rxw_pcall_queued(&call->p), 512);
	ck_assert(!rxw_pcall_writable(&call->p));
	call->events = 0;
	for (unsigned i = 0; i < 100; i++) {
		b.count = b.next = 0; /* sent packets do not matter */
		bench_get_ack(&b, c, 1, call->p.tx.nxt, call->p.tx.nxt - 1, RXW_ACK_REQUESTED, "",
			      255);
		if (rxw_pcall_queued(&call->p) < 256)
			break;
		ck_assert(!(call->events & RXW_OUT_WRITE));
		bench_send(call);
	}
	ck_assert(rxw_pcall_writable(&call->p));
	ck_assert(call->events & RXW_OUT_WRITE);
	teardown();
}
END_TEST

/* Out of nodes and buffers: the writer gets an error, nothing leaks. */
START_TEST(out_of_memory)
{
	struct rxw_txrun run = {.stride = 100, .last_size = 100, .count = 1};
	int result = 0;
	unsigned n = 0;

	setup();
	while (result == 0) {
		run.buf = rxw_buf_get_small(b.pool, 100);
		ck_assert_ptr_nonnull(run.buf);
		run.data = run.buf->data;
		result = rxw_pcall_push(&call->p, &run, &b.out);
		n++;
	}
	bench_settle(&b);
	ck_assert_int_eq(result, -RXW_ENOMEM);
	ck_assert_uint_gt(n, 1000);
	ck_assert(!rxw_pcall_writable(&call->p));
	teardown();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sendq");
	TCase *tcase = tcase_create("sendq");

	suite_add_tcase(suite, tcase);
	tcase_set_timeout(tcase, 0);
	tcase_add_test(tcase, queue_and_numbers);
	tcase_add_test(tcase, segments);
	tcase_add_test(tcase, tables_are_released);
	tcase_add_test(tcase, random_acks);
	tcase_add_test(tcase, water);
	tcase_add_test(tcase, mark_falls);
	tcase_add_loop_test(tcase, repack, 0, 2);
	tcase_add_test(tcase, sealed_packets_are_cut_late);
	tcase_add_test(tcase, repack_above_high_water);
	tcase_add_test(tcase, out_of_memory);
	return bench_main(suite);
}
