/* SPDX-License-Identifier: BSD-2-Clause */
/* DATA, BUSY and ABORT for a call: conflicts, late packets, implicit acknowledgement, backoff. */
#include <string.h>

#include "tests/rx/proto/bench.h"

static struct bench b;
static struct bench_conn *c;
static struct bench_call *call;

static void server(void)
{
	bench_init(&b, false);
	c = bench_conn(&b, BENCH_EPOCH, BENCH_CID, 7001);
	rxw_peer_set_validated(c->p.peer, b.out.now);
}

static void client(void)
{
	bench_init(&b, true);
	c = bench_conn(&b, BENCH_EPOCH, BENCH_CID, 7000);
	call = bench_begin(&b, c);
}

static void expect_protocol_error(void)
{
	ck_assert_int_eq(bench_channel(c, 0)->error, RXW_PROTOCOL_ERROR);
	ck_assert_int_eq(bench_expect(&b, RXW_ABORT)->code, RXW_PROTOCOL_ERROR);
	bench_free(&b);
}

START_TEST(beyond_last)
{
	server();
	bench_get_data(&b, c, 1, 2, RXW_LAST_PACKET, 1);
	b.next = b.count;
	bench_get_data(&b, c, 1, 3, 0, 1);
	expect_protocol_error();
}
END_TEST

START_TEST(another_last)
{
	server();
	bench_get_data(&b, c, 1, 3, RXW_LAST_PACKET, 1);
	b.next = b.count;
	bench_get_data(&b, c, 1, 2, RXW_LAST_PACKET, 1);
	expect_protocol_error();
}
END_TEST

START_TEST(last_below_what_came)
{
	server();
	bench_get_data(&b, c, 1, 3, 0, 1);
	b.next = b.count;
	bench_get_data(&b, c, 1, 2, RXW_LAST_PACKET, 1);
	expect_protocol_error();
}
END_TEST

START_TEST(last_and_more)
{
	server();
	bench_get_data(&b, c, 1, 1, RXW_LAST_PACKET | RXW_MORE_PACKETS, 1);
	ck_assert_uint_eq(bench_channel(c, 0)->rx.last, 1);
	ck_assert_int_eq(bench_channel(c, 0)->error, 0);
	bench_free(&b);
}
END_TEST

/*
 * Nor a second copy with an additional flag: the reader already has the first, and would never
 * learn that it was the last.
 */
START_TEST(repeated_with_last)
{
	server();
	bench_get_data(&b, c, 1, 1, 0, 1);
	bench_get_data(&b, c, 1, 1, RXW_LAST_PACKET, 1);
	ck_assert_uint_eq(bench_channel(c, 0)->rx.last, 0);
	/* The same for a packet that is queued behind a hole. */
	bench_get_data(&b, c, 1, 3, 0, 1);
	bench_get_data(&b, c, 1, 3, RXW_LAST_PACKET, 1);
	ck_assert_uint_eq(bench_channel(c, 0)->rx.last, 0);
	bench_get_data(&b, c, 1, 2, 0, 1);
	bench_get_data(&b, c, 1, 4, RXW_LAST_PACKET, 1);
	ck_assert_uint_eq(bench_channel(c, 0)->rx.last, 4);
	ck_assert_int_eq(bench_channel(c, 0)->error, 0);
	ck_assert_uint_eq(bench_channel(c, 0)->count.duplicates, 2);
	bench_free(&b);
}
END_TEST

START_TEST(sequence_zero_and_overflow)
{
	server();
	bench_get_data(&b, c, 1, 1, 0, 1);
	bench_get_data(&b, c, 1, 0, 0, 1);
	ck_assert_uint_eq(b.stats.drops[RXW_DROP_SEQ_ZERO], 1);
	bench_get_data(&b, c, 1, UINT32_MAX, 0, 1);
	bench_get_data(&b, c, 1, UINT32_MAX - 1, 0, 1);
	ck_assert_uint_ge(b.stats.drops[RXW_DROP_WINDOW], 2);
	ck_assert_int_eq(bench_channel(c, 0)->error, 0);
	ck_assert_uint_eq(bench_channel(c, 0)->rx.next, 2);
	bench_free(&b);
}
END_TEST

START_TEST(abort_is_said_again)
{
	server();
	bench_get_data(&b, c, 1, 1, 0, 1);
	rxw_pcall_fail(bench_channel(c, 0), -77, RXW_ORIGIN_LOCAL, true, &b.out);
	bench_settle(&b);
	ck_assert_int_eq(bench_expect(&b, RXW_ABORT)->code, -77);
	/* At most one per 100 ms, each with a new serial. */
	bench_get_data(&b, c, 1, 2, 0, 1);
	bench_nothing(&b);
	ck_assert_uint_eq(b.stats.drops[RXW_DROP_RATE], 1);
	b.out.now += 100 * RXW_MS;
	bench_get_data(&b, c, 1, 2, 0, 1);
	ck_assert_uint_eq(bench_expect(&b, RXW_ABORT)->h.serial, 2);
	b.out.now += 100 * RXW_MS;
	/* A PING too. An ABORT, BUSY or plain ACK never does. */
	uint8_t packet[400];
	uint32_t size = bench_ack(&b, packet, 1, 1, 0, RXW_ACK_PING, RXW_REQUEST_ACK, "", 32);

	bench_input(&b, c, packet, size, size);
	bench_expect(&b, RXW_ABORT);
	b.out.now += 100 * RXW_MS;
	bench_get_ack(&b, c, 1, 1, 0, RXW_ACK_DELAY, "", 32);
	size = bench_header(&b, packet, RXW_ABORT, 1, 0);
	rxw_put32(packet + size, 5);
	bench_input(&b, c, packet, size + 4, size + 4);
	bench_nothing(&b);
	bench_free(&b);
}
END_TEST

static void get_abort(int32_t code, uint32_t size, uint32_t number)
{
	uint8_t packet[64] = {0};

	bench_header(&b, packet, RXW_ABORT, number, 0);
	rxw_put32(packet + 28, (uint32_t)code);
	bench_input(&b, c, packet, 28 + size, 28 + size);
}

START_TEST(aborts_received)
{
	client();
	bench_write(call, 1, 10, true);
	bench_expect(&b, RXW_DATA);
	get_abort(-9, 3, 1);
	ck_assert_uint_eq(b.stats.drops[RXW_DROP_BAD_ABORT], 1);
	ck_assert_int_eq(call->p.error, 0);
	get_abort(-9, 12, 1); /* longer: the first four bytes count */
	ck_assert_int_eq(call->p.error, -9);
	ck_assert_int_eq(call->p.error_origin, RXW_ORIGIN_PEER);
	ck_assert(call->events & RXW_OUT_DONE);
	ck_assert(call->events & RXW_OUT_READ);
	bench_nothing(&b);
	ck_assert(rxw_pcall_done(&call->p));
	ck_assert(rxw_pconn_has_free_channel(&c->p, b.out.now));
	bench_free(&b);
	client();
	get_abort(0, 4, 1);
	ck_assert_int_eq(call->p.error, RXW_PROTOCOL_ERROR);
	bench_free(&b);
}
END_TEST

START_TEST(reply_acknowledges_request)
{
	client();
	bench_write(call, 3, 10, true);
	b.next = b.count;
	bench_get_data(&b, c, 1, 1, 0, 10);
	ck_assert(rxw_pcall_send_complete(&call->p));
	ck_assert_uint_eq(call->p.tx.flight, 0);
	bench_pass(&b, 10 * RXW_MS);
	ck_assert_int_eq(call->p.error, 0);
	bench_free(&b);
}
END_TEST

/*
 * The reply arrives before the whole request was sent: sending stops, the reply is read, and writes
 * report it.
 */
START_TEST(early_reply)
{
	struct rxw_txrun run = {.stride = 100, .last_size = 100, .count = 1};

	client();
	bench_write(call, 30, 100, false);
	b.next = b.count;
	bench_get_data(&b, c, 1, 1, RXW_LAST_PACKET, 10);
	ck_assert(call->events & RXW_OUT_WRITE);
	ck_assert_uint_eq(rxw_pcall_queued(&call->p), 0);
	run.buf = rxw_buf_get(b.pool);
	run.data = run.buf->data;
	ck_assert_int_eq(rxw_pcall_push(&call->p, &run, &b.out), -RXW_ESTATE);
	ck_assert_uint_eq(bench_read(call), 1);
	rxw_pcall_finish(&call->p, &b.out);
	bench_settle(&b);
	ck_assert_int_eq(call->p.error, 0);
	ck_assert_int_eq(call->p.state, RXW_CS_DALLY);
	bench_free(&b);
}
END_TEST

START_TEST(busy_backs_off)
{
	uint8_t packet[64];
	uint64_t last, gap = 0;
	unsigned n = 0;

	client();
	bench_write(call, 2, 100, true);
	b.next = b.count;
	last = b.out.now;
	while (call->p.error == 0 && n < 50) {
		uint32_t size = bench_header(&b, packet, RXW_BUSY, 1, 0);

		bench_input(&b, c, packet, size, size);
		bench_input(&b, c, packet, size, size); /* one per packet: counts once */
		while (b.next == b.count && call->p.error == 0) {
			bench_pass(&b, 10 * RXW_MS);
			while (b.next < b.count && b.sent[b.next].h.type == RXW_ACK)
				b.next++; /* keepalive */
		}
		if (call->p.error != 0)
			break;
		ck_assert_uint_eq(bench_expect(&b, RXW_DATA)->h.seq, 1);
		ck_assert_uint_ge(b.out.now - last + 20 * RXW_MS,
				  rxw_min64(gap * 19 / 10, 5 * RXW_SEC));
		gap = b.out.now - last;
		ck_assert_uint_ge(gap, 100 * RXW_MS);
		ck_assert_uint_le(gap, 5 * RXW_SEC + 20 * RXW_MS);
		last = b.out.now;
		n++;
	}
	/* For at most the dead time. */
	ck_assert_int_eq(call->p.error, RXW_CALL_TIMEOUT);
	ck_assert_uint_ge(n, 6);
	ck_assert_uint_gt(c->p.busy_until[0], 0);
	bench_free(&b);
}
END_TEST

START_TEST(busy_after_a_sign_of_life)
{
	uint8_t packet[64];
	uint32_t size;

	client();
	bench_write(call, 2, 100, true);
	bench_get_ack(&b, c, 1, 1, 0, RXW_ACK_DELAY, "10", 32);
	size = bench_header(&b, packet, RXW_BUSY, 1, 0);
	bench_input(&b, c, packet, size, size);
	ck_assert_uint_eq(call->p.tx.busy_since, 0);
	ck_assert_uint_eq(call->p.tx.lost, 0);
	bench_free(&b);
}
END_TEST

START_TEST(user_status)
{
	uint8_t packet[200];
	uint32_t size;

	server();
	size = bench_data(&b, packet, 1, 1, RXW_LAST_PACKET, 10);
	packet[22] = 0x5c;
	bench_input(&b, c, packet, size, size);
	call = (struct bench_call *)bench_channel(c, 0);
	ck_assert_uint_eq(call->p.peer_status, 0x5c);
	call->p.local_status = 0x33;
	bench_read(call);
	bench_write(call, 1, 10, true);
	ck_assert_uint_eq(bench_expect(&b, RXW_DATA)->h.user_status, 0x33);
	bench_free(&b);
}
END_TEST

/*
 * Memory is short: a call that waits for its handler may take two packets, one with a handler
 * continues.
 */
START_TEST(pressed)
{
	server();
	b.auto_attach = false;
	b.memory_short = true;
	for (uint32_t seq = 1; seq <= 4; seq++)
		bench_get_data(&b, c, 1, seq, 0, 10);
	call = (struct bench_call *)bench_channel(c, 0);
	ck_assert_uint_eq(call->p.rx.next, 3);
	ck_assert_uint_eq(b.stats.drops[RXW_DROP_MEMORY], 2);
	rxw_pcall_attach(&call->p, &b.out);
	for (uint32_t seq = 3; seq <= 10; seq++)
		bench_get_data(&b, c, 1, seq, 0, 10);
	ck_assert_uint_eq(call->p.rx.next, 11);
	bench_free(&b);
}
END_TEST

/* Reader and writer are notified at thresholds. */
START_TEST(wake_ups)
{
	uint8_t bytes[64 * 128];
	uint32_t length = 0;

	server();
	bench_get_data(&b, c, 1, 1, 0, 10);
	call = (struct bench_call *)bench_channel(c, 0);
	bench_read(call);
	call->events = 0;
	for (unsigned i = 0; i < 40; i++)
		length += bench_data(&b, bytes + length, 1, 2 + i, 0, 100);
	bench_input(&b, c, bytes, length, 128);
	ck_assert_uint_eq(call->events & (RXW_OUT_READ | RXW_OUT_READ_LATER), RXW_OUT_READ_LATER);
	call->events = 0;
	for (unsigned i = length = 0; i < 30; i++)
		length += bench_data(&b, bytes + length, 1, 42 + i, 0, 100);
	bench_input(&b, c, bytes, length, 128);
	ck_assert(call->events & RXW_OUT_READ);
	bench_read(call);
	call->events = 0;
	bench_get_data(&b, c, 1, 72, RXW_LAST_PACKET, 10);
	ck_assert(call->events & RXW_OUT_READ);
	bench_free(&b);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("callinput");
	TCase *tcase = tcase_create("callinput");

	suite_add_tcase(suite, tcase);
	tcase_set_timeout(tcase, 0);
	tcase_add_test(tcase, beyond_last);
	tcase_add_test(tcase, another_last);
	tcase_add_test(tcase, last_below_what_came);
	tcase_add_test(tcase, last_and_more);
	tcase_add_test(tcase, repeated_with_last);
	tcase_add_test(tcase, sequence_zero_and_overflow);
	tcase_add_test(tcase, abort_is_said_again);
	tcase_add_test(tcase, aborts_received);
	tcase_add_test(tcase, reply_acknowledges_request);
	tcase_add_test(tcase, early_reply);
	tcase_add_test(tcase, busy_backs_off);
	tcase_add_test(tcase, busy_after_a_sign_of_life);
	tcase_add_test(tcase, user_status);
	tcase_add_test(tcase, pressed);
	tcase_add_test(tcase, wake_ups);
	return bench_main(suite);
}
