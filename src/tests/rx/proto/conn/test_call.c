/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The life of calls: states, finish, final ACK, failure, initial values from the peer (2.6, 2.7).
 */
#include <string.h>

#include "tests/rx/proto/bench.h"

static struct bench b;
static struct bench_conn *c;
static struct bench_call *call;

static void client(void)
{
	bench_init(&b, true);
	c = bench_conn(&b, BENCH_EPOCH, BENCH_CID, 7000);
	call = bench_begin(&b, c);
}

static void server(void)
{
	bench_init(&b, false);
	c = bench_conn(&b, BENCH_EPOCH, BENCH_CID, 7001);
	rxw_peer_set_validated(c->p.peer, b.out.now);
}

/* A complete call of one packet each way, read but not finished. */
static void talk(uint32_t number)
{
	bench_write(call, 1, 10, true);
	bench_expect(&b, RXW_DATA);
	bench_get_data(&b, c, number, 1, RXW_LAST_PACKET, 10);
	ck_assert_uint_eq(bench_read(call), 1);
}

START_TEST(final_ack_waits)
{
	struct bench_packet *k;

	client();
	talk(1);
	rxw_pcall_finish(&call->p, &b.out);
	bench_settle(&b);
	ck_assert_int_eq(call->p.state, RXW_CS_DALLY);
	ck_assert(!rxw_pcall_done(&call->p));
	bench_pass(&b, RXW_MS);
	bench_nothing(&b);
	bench_pass(&b, 2 * RXW_MS);
	k = bench_expect(&b, RXW_ACK);
	ck_assert_uint_eq(k->ack.reason, RXW_ACK_DELAY);
	ck_assert_uint_eq(k->ack.first, 2);
	ck_assert_uint_eq(k->ack.serial, 0);
	ck_assert_uint_eq(k->ack.count, 0);
	ck_assert(rxw_pcall_done(&call->p));
	ck_assert(call->events & RXW_OUT_DONE);
	bench_pass(&b, 100 * RXW_SEC);
	bench_nothing(&b);
	bench_free(&b);
}
END_TEST

/* The next call on the channel replaces the ACK: two packets per call. */
START_TEST(next_call_replaces_the_ack)
{
	client();
	for (uint32_t number = 1; number <= 5; number++) {
		talk(number);
		rxw_pcall_finish(&call->p, &b.out);
		bench_settle(&b);
		b.out.now += RXW_MS;
		call = bench_begin(&b, c);
		ck_assert_uint_eq(call->p.number, number + 1);
		ck_assert_uint_eq(call->p.channel, 0);
	}
	ck_assert_uint_eq(b.count, 5);
	bench_free(&b);
}
END_TEST

START_TEST(closing_sends_the_ack)
{
	client();
	talk(1);
	rxw_pcall_finish(&call->p, &b.out);
	rxw_pconn_close(&c->p, &b.out);
	bench_settle(&b);
	ck_assert_uint_eq(bench_expect(&b, RXW_ACK)->ack.first, 2);
	ck_assert(rxw_pconn_idle(&c->p));
	bench_free(&b);
}
END_TEST

START_TEST(late_packets_of_a_finished_call)
{
	uint8_t packet[400];
	uint32_t size;

	client();
	talk(1);
	rxw_pcall_finish(&call->p, &b.out);
	bench_pass(&b, 5 * RXW_MS);
	bench_expect(&b, RXW_ACK);
	/* The final ACK was lost. */
	bench_get_data(&b, c, 1, 1, RXW_LAST_PACKET, 10);
	struct bench_packet *k = bench_expect(&b, RXW_ACK);

	ck_assert_uint_eq(k->ack.reason, RXW_ACK_DUPLICATE);
	ck_assert_uint_eq(k->ack.first, 2);
	size = bench_ack(&b, packet, 1, 2, 0, RXW_ACK_PING, RXW_REQUEST_ACK, "", 32);
	bench_input(&b, c, packet, size, size);
	ck_assert_uint_eq(bench_expect(&b, RXW_ACK)->ack.reason, RXW_ACK_PING_RESPONSE);
	bench_free(&b);
}
END_TEST

START_TEST(finish_without_the_whole_reply)
{
	client();
	bench_write(call, 1, 10, true);
	bench_get_data(&b, c, 1, 1, 0, 10);
	b.next = b.count;
	rxw_pcall_finish(&call->p, &b.out);
	bench_settle(&b);
	ck_assert_int_eq(bench_expect(&b, RXW_ABORT)->code, RXW_USER_ABORT);
	ck_assert_int_eq(call->p.error, RXW_USER_ABORT);
	bench_free(&b);
}
END_TEST

START_TEST(server_life)
{
	server();
	b.auto_attach = false;
	bench_get_data(&b, c, 1, 2, 0, 10);
	call = (struct bench_call *)bench_channel(c, 0);
	ck_assert_int_eq(call->p.state, RXW_CS_PRECALL);
	ck_assert(!(call->events & RXW_OUT_ATTACH)); /* behind a hole */
	bench_get_data(&b, c, 1, 1, 0, 10);
	ck_assert(call->events & RXW_OUT_ATTACH);
	call->events = 0;
	bench_get_data(&b, c, 1, 3, RXW_LAST_PACKET, 10);
	ck_assert(!(call->events & RXW_OUT_ATTACH)); /* once */
	rxw_pcall_attach(&call->p, &b.out);
	ck_assert_int_eq(call->p.state, RXW_CS_ACTIVE);
	ck_assert(!rxw_pconn_idle(&c->p));
	ck_assert_uint_eq(bench_read(call), 3);
	b.next = b.count;
	bench_write(call, 1, 10, true);
	bench_expect(&b, RXW_DATA);
	rxw_pcall_finish(&call->p, &b.out);
	bench_settle(&b);
	ck_assert_int_eq(call->p.state, RXW_CS_HOLD);
	ck_assert(!rxw_pcall_done(&call->p));
	bench_get_ack(&b, c, 1, 2, 1, RXW_ACK_DELAY, "", 32);
	ck_assert_int_eq(call->p.state, RXW_CS_DALLY);
	ck_assert(rxw_pconn_idle(&c->p));
	ck_assert_uint_eq(b.stats.calls_ended, 1);
	/* A duplicate of the request draws a DUPLICATE ACK beyond it, never a second execution. */
	call->events = 0;
	bench_get_data(&b, c, 1, 1, 0, 10);
	ck_assert_uint_eq(bench_expect(&b, RXW_ACK)->ack.first, 4);
	ck_assert(!(call->events & RXW_OUT_ATTACH));
	bench_free(&b);
}
END_TEST

START_TEST(reply_says_what_the_ack_would)
{
	server();
	bench_get_data(&b, c, 1, 1, RXW_LAST_PACKET, 10);
	call = (struct bench_call *)bench_channel(c, 0);
	bench_read(call);
	bench_write(call, 1, 10, true);
	rxw_pcall_finish(&call->p, &b.out);
	bench_settle(&b);
	bench_expect(&b, RXW_DATA);
	bench_pass(&b, 500 * RXW_MS);
	bench_nothing(&b);
	bench_free(&b);
}
END_TEST

START_TEST(failure)
{
	server();
	bench_get_data(&b, c, 1, 1, 0, 10);
	call = (struct bench_call *)bench_channel(c, 0);
	b.next = b.count;
	call->events = 0;
	rxw_pcall_fail(&call->p, 0, RXW_ORIGIN_LOCAL, true, &b.out);
	bench_settle(&b);
	ck_assert_int_eq(call->p.error, RXW_PROTOCOL_ERROR); /* never 0 */
	ck_assert_int_eq(bench_expect(&b, RXW_ABORT)->code, RXW_PROTOCOL_ERROR);
	ck_assert_uint_eq(call->events & (RXW_OUT_READ | RXW_OUT_WRITE | RXW_OUT_DONE),
			  RXW_OUT_READ | RXW_OUT_WRITE | RXW_OUT_DONE);
	/* The first error is kept. No data is sent or received any more. */
	rxw_pcall_fail(&call->p, -99, RXW_ORIGIN_LOCAL, true, &b.out);
	bench_settle(&b);
	ck_assert_int_eq(call->p.error, RXW_PROTOCOL_ERROR);
	bench_nothing(&b);
	ck_assert_uint_eq(rxw_pcall_readable(&call->p, NULL), 0);
	ck_assert_uint_eq(bench_read(call), 0);
	rxw_pcall_finish(&call->p, &b.out);
	bench_settle(&b);
	/* The next call finds the channel free: no BUSY. */
	b.out.now += RXW_SEC;
	bench_get_data(&b, c, 2, 1, 0, 10);
	ck_assert_uint_eq(bench_channel(c, 0)->number, 2);
	ck_assert_int_eq(bench_channel(c, 0)->error, 0);
	bench_free(&b);
}
END_TEST

/* A peer that ends its call does not have all of it released at once, in either direction. */
START_TEST(an_abort_releases_in_steps)
{
	unsigned runs;

	server();
	bench_get_data(&b, c, 1, 1, 0, 10);
	call = (struct bench_call *)bench_channel(c, 0);
	bench_read(call);
	for (uint32_t seq = 3; seq < 103; seq++)
		bench_get_data(&b, c, 1, seq, 0, 10);
	for (unsigned i = 0; i < 100; i++)
		bench_write(call, 1, 10, false);
	call->events = 0;
	rxw_pcall_fail(&call->p, RXW_USER_ABORT, RXW_ORIGIN_PEER, false, &b.out);
	bench_settle(&b);
	ck_assert(call->events & RXW_OUT_DONE);
	ck_assert(call->events & RXW_OUT_RELEASE);
	runs = call->p.rx.ents.used;
	ck_assert_uint_ge(runs, 50);
	ck_assert_uint_eq(call->p.tx.ents.used, runs);
	ck_assert(!rxw_pcall_release(&call->p, runs - 1));
	ck_assert_uint_eq(call->p.rx.ents.used + call->p.tx.ents.used, 2);
	ck_assert(rxw_pcall_release(&call->p, 1));
	ck_assert_int_eq(call->p.rx.pinned, 0);
	bench_free(&b);
}
END_TEST

START_TEST(an_error_of_a_call_never_sent)
{
	client();
	rxw_pcall_fail(&call->p, RXW_USER_ABORT, RXW_ORIGIN_LOCAL, true, &b.out);
	bench_settle(&b);
	bench_nothing(&b); /* the server has no record of it */
	bench_free(&b);
}
END_TEST

START_TEST(seeds_from_the_peer)
{
	client();
	ck_assert_uint_eq(call->p.tx.cc.cwnd, 4);
	ck_assert(!call->p.tx.rtt.valid);
	atomic_store(&c->p.peer->srtt, 20 * RXW_MS);
	atomic_store(&c->p.peer->rttvar, RXW_MS);
	atomic_store(&c->p.peer->rtt_at, b.out.now);
	atomic_store(&c->p.peer->mtu, 1200);
	call = bench_begin(&b, c);
	ck_assert_uint_eq(call->p.tx.cc.cwnd, 10);
	ck_assert_uint_eq(call->p.tx.rtt.srtt, 20 * RXW_MS);
	ck_assert_uint_eq(rxw_pcall_datagram_size(&call->p), 1200);
	/* With known losses, or after a long time: slow start. */
	rxw_peer_learn_ssthresh(c->p.peer, 20, b.out.now);
	rxw_peer_learn_reordering(c->p.peer, 2 << 16 | 8, b.out.now);
	call = bench_begin(&b, c);
	ck_assert_uint_eq(call->p.tx.cc.cwnd, 4);
	ck_assert_uint_eq(call->p.tx.cc.ssthresh, 20);
	ck_assert_uint_eq(call->p.tx.recovery.threshold, 8);
	/* Losses and reordering of another time say nothing of now. */
	b.out.now += 300 * RXW_SEC;
	atomic_store(&c->p.peer->rtt_at, b.out.now);
	call = bench_begin(&b, c);
	ck_assert_uint_eq(call->p.tx.cc.cwnd, 10);
	ck_assert_uint_eq(call->p.tx.cc.ssthresh, 255);
	ck_assert_uint_eq(call->p.tx.recovery.threshold, 3);
	bench_free(&b);
}
END_TEST

START_TEST(validate_first)
{
	struct bench_packet *k;

	bench_init(&b, false);
	c = bench_conn(&b, BENCH_EPOCH, BENCH_CID, 7001);
	c->p.validate_first = true;
	bench_get_data(&b, c, 1, 1, RXW_LAST_PACKET, 10);
	call = (struct bench_call *)bench_channel(c, 0);
	ck_assert_int_eq(call->p.state, RXW_CS_PRECALL);
	k = bench_expect(&b, RXW_ACK);
	ck_assert_uint_eq(k->ack.reason, RXW_ACK_PING);
	ck_assert_uint_eq(k->ack.count, 1); /* soft-acknowledges the request */
	bench_get_ack(&b, c, 1, 1, k->h.serial, RXW_ACK_PING_RESPONSE, "", 32);
	ck_assert_int_eq(call->p.state, RXW_CS_ACTIVE);
	ck_assert(rxw_peer_validated(c->p.peer, b.out.now));
	/* Known for a minute: the next call needs no check. */
	b.next = b.count;
	bench_read(call);
	bench_write(call, 1, 1, true);
	rxw_pcall_finish(&call->p, &b.out);
	bench_get_data(&b, c, 2, 1, RXW_LAST_PACKET, 10);
	ck_assert_int_eq(bench_channel(c, 0)->state, RXW_CS_ACTIVE);
	bench_free(&b);
}
END_TEST

/*
 * Two connections check the same address. A result for the first must not leave the second waiting.
 */
START_TEST(strict_reach_of_two)
{
	struct bench_conn *other;
	struct bench_packet *first, *second;

	bench_init(&b, false);
	c = bench_conn(&b, BENCH_EPOCH, BENCH_CID, 7001);
	other = bench_conn(&b, BENCH_EPOCH, BENCH_CID + 4, 7001);
	ck_assert_ptr_eq(c->p.peer, other->p.peer);
	c->p.validate_first = other->p.validate_first = true;
	bench_get_data(&b, c, 1, 1, RXW_LAST_PACKET, 10);
	bench_get_data(&b, other, 1, 1, RXW_LAST_PACKET, 10);
	first = bench_expect(&b, RXW_ACK);
	second = bench_expect(&b, RXW_ACK);
	bench_get_ack(&b, c, 1, 1, first->h.serial, RXW_ACK_PING_RESPONSE, "", 32);
	ck_assert_int_eq(bench_channel(c, 0)->state, RXW_CS_ACTIVE);
	bench_get_ack(&b, other, 1, 1, second->h.serial, RXW_ACK_PING_RESPONSE, "", 32);
	ck_assert_int_eq(bench_channel(other, 0)->state, RXW_CS_ACTIVE);
	bench_free(&b);
}
END_TEST

START_TEST(strict_reach_unanswered)
{
	unsigned pings = 0;

	bench_init(&b, false);
	c = bench_conn(&b, BENCH_EPOCH, BENCH_CID, 7001);
	c->p.validate_first = true;
	bench_get_data(&b, c, 1, 1, RXW_LAST_PACKET, 10);
	call = (struct bench_call *)bench_channel(c, 0);
	bench_pass(&b, 20 * RXW_SEC);
	for (unsigned i = 0; i < b.count; i++)
		pings += b.sent[i].h.type == RXW_ACK && b.sent[i].ack.reason == RXW_ACK_PING;
	ck_assert_uint_le(pings, 3); /* one in answer, two by timer */
	ck_assert_int_eq(call->p.state, RXW_CS_RESET);
	ck_assert(!(call->events & RXW_OUT_ATTACH));
	bench_free(&b);
}
END_TEST

/* The last packets that a stream may have: the widest window does not wrap around, and the next packet fails the call. */
START_TEST(end_of_the_numbers)
{
	struct rxw_txrun run = {.stride = 128, .last_size = 128, .count = 1};
	uint32_t from = UINT32_MAX - 4 * RXW_WINDOW_MAX - 20;
	uint8_t packet[RXW_ACK_MAX_SIZE];
	uint32_t size;

	client();
	b.params.window = RXW_WINDOW_MAX;
	call->p.tx.una = call->p.tx.nxt = call->p.tx.end = from;
	call->p.tx.edge = from + 16;
	call->p.tx.cc.cwnd = 100;
	bench_write(call, 19, 100, false);
	rxw_pcall_flush(&call->p, &b.out);
	bench_settle(&b);
	size = bench_ack(&b, packet, 1, call->p.tx.nxt, 0, RXW_ACK_DELAY, RXW_EXTENDED_ACK, "",
			 RXW_WINDOW_MAX);
	packet[28 + 18 + 1] = 4;
	bench_input(&b, c, packet, size, size);
	ck_assert_uint_gt(call->p.tx.edge, call->p.tx.nxt);
	rxw_pcall_flush(&call->p, &b.out);
	bench_settle(&b);
	ck_assert_uint_eq(call->p.tx.nxt, from + 19);
	run.buf = rxw_buf_get(b.pool);
	run.data = run.buf->data;
	ck_assert_int_eq(rxw_pcall_push(&call->p, &run, &b.out), -RXW_ECALL);
	ck_assert_int_eq(call->p.error, RXW_PROTOCOL_ERROR);
	bench_settle(&b);
	bench_free(&b);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("call");
	TCase *tcase = tcase_create("call");

	suite_add_tcase(suite, tcase);
	tcase_set_timeout(tcase, 0);
	tcase_add_test(tcase, final_ack_waits);
	tcase_add_test(tcase, next_call_replaces_the_ack);
	tcase_add_test(tcase, closing_sends_the_ack);
	tcase_add_test(tcase, late_packets_of_a_finished_call);
	tcase_add_test(tcase, finish_without_the_whole_reply);
	tcase_add_test(tcase, server_life);
	tcase_add_test(tcase, reply_says_what_the_ack_would);
	tcase_add_test(tcase, failure);
	tcase_add_test(tcase, an_abort_releases_in_steps);
	tcase_add_test(tcase, end_of_the_numbers);
	tcase_add_test(tcase, an_error_of_a_call_never_sent);
	tcase_add_test(tcase, seeds_from_the_peer);
	tcase_add_test(tcase, validate_first);
	tcase_add_test(tcase, strict_reach_of_two);
	tcase_add_test(tcase, strict_reach_unanswered);
	return bench_main(suite);
}
