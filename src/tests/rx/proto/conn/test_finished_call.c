/* SPDX-License-Identifier: BSD-2-Clause */
/* A channel's answers for a finished call whose storage was released. */
#include <string.h>

#include "tests/rx/proto/bench.h"

static struct bench b;
static struct bench_conn *c;
static uint8_t packet[2048];

static void input(uint32_t size)
{
	bench_input(&b, c, packet, size, size);
}

static void server_up(void)
{
	bench_init(&b, false);
	b.auto_attach = true;
	c = bench_conn(&b, BENCH_EPOCH, BENCH_CID, 7001);
	rxw_peer_set_validated(c->p.peer, b.out.now);
}

/* A request of `packets` packets and a reply of one. The reply is acknowledged. */
static void serve(uint32_t number, unsigned packets)
{
	struct bench_call *call;

	for (unsigned i = 1; i <= packets; i++)
		bench_get_data(&b, c, number, i, i == packets ? RXW_LAST_PACKET : 0, 100);
	call = (struct bench_call *)c->p.channel[0];
	ck_assert_ptr_nonnull(call);
	bench_read(call);
	call->p.local_status = 0x21;
	bench_write(call, 1, 50, true);
	rxw_pcall_finish(&call->p, &b.out);
	bench_settle(&b);
	bench_send(call);
	ck_assert_int_eq(call->p.state, RXW_CS_HOLD);
	rxw_pcall_retire(&call->p);
	ck_assert_ptr_eq(c->p.channel[0], call); /* not before it has finished */
	bench_get_ack(&b, c, number, 2, 0, RXW_ACK_DELAY, "", 32);
	ck_assert_int_eq(call->p.state, RXW_CS_DALLY);
	rxw_pcall_retire(&call->p);
	ck_assert_ptr_null(c->p.channel[0]);
	ck_assert_uint_eq(b.live_calls, 0);
	ck_assert_int_eq(c->p.finished[0].state, RXW_CS_DALLY);
	b.next = b.count;
}

static void expect_ack(unsigned reason, uint32_t number, uint32_t first, uint32_t serial)
{
	const struct bench_packet *p = bench_expect(&b, RXW_ACK);

	ck_assert_uint_eq(p->ack.reason, reason);
	ck_assert_uint_eq(p->h.call, number);
	ck_assert_uint_eq(p->h.cid, BENCH_CID);
	ck_assert_uint_eq(p->ack.first, first);
	ck_assert_uint_eq(p->ack.previous, first - 1);
	ck_assert_uint_eq(p->ack.count, 0);
	ck_assert_uint_eq(p->ack.serial, serial);
	ck_assert_uint_ge(p->ack.rwind, 1);
	ck_assert_uint_eq(p->ack.trailer_words, 4);
	ck_assert_uint_eq(p->ack.jumbo_max, 1);
	ck_assert_uint_eq(p->h.user_status, 0x21);
}

START_TEST(a_request_that_comes_again)
{
	server_up();
	serve(1, 3);
	/* Several packets of one batch draw one answer, for the last of them. */
	for (uint32_t i = 1; i <= 3; i++) {
		uint32_t size = bench_data(&b, packet, 1, i, i == 3 ? RXW_LAST_PACKET : 0, 100);

		bench_feed(&b, c, packet, size, size);
	}
	bench_nothing(&b);
	ck_assert(rxw_pconn_owes(&c->p));
	bench_end(&b, c, true);
	bench_settle(&b);
	expect_ack(RXW_ACK_DUPLICATE, 1, 4, b.serial);
	bench_nothing(&b);
	ck_assert(!rxw_pconn_owes(&c->p));
	ck_assert_uint_eq(b.stats.duplicates, 3);
	ck_assert_uint_eq(b.live_calls, 0);
	ck_assert(rxw_pconn_idle(&c->p));
	bench_free(&b);
}
END_TEST

START_TEST(no_room_for_the_answer)
{
	uint32_t size;

	server_up();
	serve(1, 1);
	size = bench_data(&b, packet, 1, 1, RXW_LAST_PACKET, 100);
	bench_feed(&b, c, packet, size, size);
	b.out.ctl_room = 0;
	bench_end(&b, c, true);
	b.out.ctl_room = sizeof(b.ctl) / sizeof(b.ctl[0]);
	bench_nothing(&b);
	ck_assert(rxw_pconn_owes(&c->p));
	bench_end(&b, c, true);
	bench_settle(&b);
	expect_ack(RXW_ACK_DUPLICATE, 1, 2, b.serial);
	bench_free(&b);
}
END_TEST

START_TEST(pings)
{
	uint32_t size;

	server_up();
	serve(1, 2);
	size = bench_ack(&b, packet, 1, 2, 0, RXW_ACK_PING, RXW_REQUEST_ACK, "", 32);
	input(size);
	expect_ack(RXW_ACK_PING_RESPONSE, 1, 3, b.serial);
	input(size); /* a replay */
	bench_nothing(&b);
	size = bench_ack(&b, packet, 1, 2, 0, RXW_ACK_DELAY, RXW_REQUEST_ACK, "", 32);
	input(size);
	expect_ack(RXW_ACK_PING_RESPONSE, 1, 3, b.serial);
	/* A packet that requests no answer draws none. */
	bench_get_ack(&b, c, 1, 2, 0, RXW_ACK_DELAY, "", 32);
	size = bench_header(&b, packet, RXW_ACKALL, 1, 0);
	input(size);
	size = bench_header(&b, packet, RXW_ABORT, 1, 0);
	input(size); /* too short */
	memset(packet + size, 1, 4);
	input(size + 4);
	bench_nothing(&b);
	ck_assert_uint_eq(b.stats.drops[RXW_DROP_BAD_ABORT], 1);
	size = bench_ack(&b, packet, 1, 2, 0, RXW_ACK_PING, RXW_REQUEST_ACK, "", 32);
	input(RXW_HEADER_SIZE + 3);
	ck_assert_uint_eq(b.stats.drops[RXW_DROP_BAD_ACK], 1);
	bench_nothing(&b);
	bench_free(&b);
}
END_TEST

/* The ACK that ends a call draws a PING. Its answer arrives after the call has finished. */
START_TEST(proof_after_the_end)
{
	struct bench_call *call;
	struct bench_packet *k;
	uint32_t ping;

	bench_init(&b, false);
	c = bench_conn(&b, BENCH_EPOCH, BENCH_CID, 7001);
	bench_get_data(&b, c, 1, 1, RXW_LAST_PACKET, 100);
	call = (struct bench_call *)c->p.channel[0];
	bench_read(call);
	bench_write(call, 1, 50, true);
	rxw_pcall_finish(&call->p, &b.out);
	bench_settle(&b);
	bench_send(call);
	bench_get_ack(&b, c, 1, 2, bench_expect(&b, RXW_DATA)->h.serial, RXW_ACK_DELAY, "", 32);
	ck_assert_int_eq(call->p.state, RXW_CS_DALLY);
	k = bench_expect(&b, RXW_ACK);
	ck_assert_uint_eq(k->ack.reason, RXW_ACK_PING);
	ping = k->h.serial;
	rxw_pcall_retire(&call->p);
	ck_assert_ptr_null(c->p.channel[0]);
	for (uint32_t guess = 0; guess < 100; guess++)
		bench_get_ack(&b, c, 1, 2, guess, RXW_ACK_PING_RESPONSE, "", 32);
	ck_assert(!rxw_peer_validated(c->p.peer, b.out.now));
	bench_get_ack(&b, c, 1, 2, ping, RXW_ACK_PING_RESPONSE, "", 32);
	ck_assert(rxw_peer_validated(c->p.peer, b.out.now));
	bench_free(&b);
}
END_TEST

START_TEST(odd_packets)
{
	server_up();
	serve(1, 1);
	bench_get_data(&b, c, 1, 0, 0, 1);
	ck_assert_uint_eq(b.stats.drops[RXW_DROP_SEQ_ZERO], 1);
	bench_get_data(&b, c, 1, UINT32_MAX, 0, 1);
	ck_assert_uint_eq(b.stats.drops[RXW_DROP_WINDOW], 1);
	input(bench_header(&b, packet, 11, 1, 0));
	ck_assert_uint_eq(b.stats.drops[RXW_DROP_TYPE], 1);
	bench_nothing(&b);
	bench_free(&b);
}
END_TEST

START_TEST(next_call)
{
	server_up();
	serve(5, 1);
	/* An older call never runs, this one not again, a newer one does. */
	bench_get_data(&b, c, 4, 1, RXW_LAST_PACKET, 10);
	ck_assert_uint_eq(b.stats.drops[RXW_DROP_CALL_NUMBER], 1);
	bench_nothing(&b);
	bench_get_data(&b, c, 5, 1, RXW_LAST_PACKET, 10);
	expect_ack(RXW_ACK_DUPLICATE, 5, 2, b.serial);
	/* A call that cannot be accepted leaves the record of the last one unchanged. */
	b.refuse_calls = true;
	bench_get_data(&b, c, 6, 1, RXW_LAST_PACKET, 10);
	ck_assert_uint_eq(bench_expect(&b, RXW_BUSY)->h.call, 6);
	bench_get_data(&b, c, 5, 1, RXW_LAST_PACKET, 10);
	expect_ack(RXW_ACK_DUPLICATE, 5, 2, b.serial);
	ck_assert_uint_eq(b.live_calls, 0);
	b.refuse_calls = false;
	serve(6, 1);
	ck_assert_uint_eq(c->p.number[0], 6);
	bench_free(&b);
}
END_TEST

/* A new call that is refused with a code is over at once: its packets draw the ABORT again. */
START_TEST(refused_with_code)
{
	server_up();
	serve(5, 1);
	b.refuse_calls = true;
	b.refusal = 110;
	bench_get_data(&b, c, 6, 1, RXW_LAST_PACKET, 10);
	ck_assert_int_eq(bench_expect(&b, RXW_ABORT)->code, 110);
	ck_assert_ptr_null(c->p.channel[0]);
	ck_assert_uint_eq(c->p.number[0], 6);
	ck_assert_int_eq(c->p.error, 0);
	ck_assert_uint_eq(b.stats.calls_refused, 1);
	bench_get_data(&b, c, 6, 1, RXW_LAST_PACKET, 10);
	bench_nothing(&b);
	b.out.now += 100 * RXW_MS;
	bench_get_data(&b, c, 6, 1, RXW_LAST_PACKET, 10);
	ck_assert_uint_eq(bench_expect(&b, RXW_ABORT)->h.call, 6);
	/* Another call is not limited by that. */
	bench_get_data(&b, c, 7, 1, RXW_LAST_PACKET, 10);
	ck_assert_uint_eq(bench_expect(&b, RXW_ABORT)->h.call, 7);
	b.refuse_calls = false;
	b.refusal = 0;
	ck_assert_uint_eq(b.live_calls, 0);
	serve(8, 1);
	bench_free(&b);
}
END_TEST

START_TEST(aborted)
{
	struct bench_call *call;
	uint32_t size;

	server_up();
	bench_get_data(&b, c, 1, 1, 0, 1);
	call = (struct bench_call *)c->p.channel[0];
	rxw_pcall_fail(&call->p, -77, RXW_ORIGIN_LOCAL, true, &b.out);
	bench_settle(&b);
	ck_assert_int_eq(bench_expect(&b, RXW_ABORT)->code, -77);
	rxw_pcall_retire(&call->p);
	ck_assert_ptr_null(c->p.channel[0]);
	/* At most one per 100 ms, timed from the first. */
	bench_get_data(&b, c, 1, 2, 0, 1);
	bench_nothing(&b);
	ck_assert_uint_eq(b.stats.drops[RXW_DROP_RATE], 1);
	b.out.now += 100 * RXW_MS;
	bench_get_data(&b, c, 1, 2, 0, 1);
	ck_assert_int_eq(bench_expect(&b, RXW_ABORT)->code, -77);
	b.out.now += 100 * RXW_MS;
	size = bench_ack(&b, packet, 1, 1, 0, RXW_ACK_PING, RXW_REQUEST_ACK, "", 32);
	input(size);
	ck_assert_uint_eq(bench_expect(&b, RXW_ABORT)->h.call, 1);
	b.out.now += 100 * RXW_MS;
	bench_get_ack(&b, c, 1, 1, 0, RXW_ACK_DELAY, "", 32);
	bench_nothing(&b);
	bench_free(&b);
}
END_TEST

/*
 * Calls that end with a code again and again, of a client whose address is not validated, as nothing
 * but ABORTs goes to it: each has its ABORT at once.
 */
START_TEST(aborted_always)
{
	bench_init(&b, false);
	b.auto_attach = true;
	c = bench_conn(&b, BENCH_EPOCH, BENCH_CID, 7001);
	ck_assert(!rxw_peer_validated(c->p.peer, b.out.now));
	for (uint32_t number = 1; number <= 10000; number++) {
		struct bench_call *call;
		const struct bench_packet *sent;
		int32_t code = 1700000000 + (int32_t)number;

		bench_get_data(&b, c, number, 1, RXW_LAST_PACKET, 32);
		call = (struct bench_call *)c->p.channel[0];
		ck_assert_ptr_nonnull(call);
		rxw_pcall_fail(&call->p, code, RXW_ORIGIN_LOCAL, true, &b.out);
		bench_settle(&b);
		sent = bench_expect(&b, RXW_ABORT);
		ck_assert_int_eq(sent->code, code);
		ck_assert_uint_eq(sent->h.call, number);
		rxw_pcall_retire(&call->p);
		b.next = b.count = 0;
	}
	ck_assert_uint_eq(b.stats.drops[RXW_DROP_RATE], 0);
	ck_assert_int_eq(c->p.error, 0);
	ck_assert(!rxw_peer_wasteful(c->p.peer, b.out.now));
	bench_free(&b);
}
END_TEST

START_TEST(abort_that_could_not_leave)
{
	struct bench_call *call;

	server_up();
	bench_get_data(&b, c, 1, 1, 0, 1);
	call = (struct bench_call *)c->p.channel[0];
	b.out.ctl_room = 0;
	rxw_pcall_fail(&call->p, -77, RXW_ORIGIN_LOCAL, true, &b.out);
	b.out.ctl_room = sizeof(b.ctl) / sizeof(b.ctl[0]);
	bench_settle(&b);
	bench_nothing(&b);
	rxw_pcall_retire(&call->p);
	/* The next packet draws it, once. */
	bench_get_ack(&b, c, 1, 1, 0, RXW_ACK_DELAY, "", 32);
	ck_assert_int_eq(bench_expect(&b, RXW_ABORT)->code, -77);
	b.out.now += 100 * RXW_MS;
	bench_get_ack(&b, c, 1, 1, 0, RXW_ACK_DELAY, "", 32);
	bench_nothing(&b);
	bench_free(&b);
}
END_TEST

START_TEST(client_end)
{
	struct bench_call *call;

	bench_init(&b, true);
	c = bench_conn(&b, BENCH_EPOCH, BENCH_CID, 7000);
	call = bench_begin(&b, c);
	bench_write(call, 1, 50, true);
	bench_send(call);
	bench_get_data(&b, c, 1, 1, RXW_LAST_PACKET, 20);
	bench_read(call);
	rxw_pcall_finish(&call->p, &b.out);
	bench_settle(&b);
	rxw_pcall_retire(&call->p);
	ck_assert_ptr_eq(c->p.channel[0], call); /* the final ACK is owed */
	bench_pass(&b, 5 * RXW_MS);
	rxw_pcall_retire(&call->p);
	ck_assert_ptr_null(c->p.channel[0]);
	b.next = b.count;
	/* The final ACK was lost: the reply is sent again. */
	bench_get_data(&b, c, 1, 1, RXW_LAST_PACKET, 20);
	ck_assert_uint_eq(bench_expect(&b, RXW_ACK)->ack.first, 2);
	input(bench_header(&b, packet, RXW_BUSY, 1, 0));
	bench_nothing(&b);
	ck_assert_uint_gt(c->p.busy_until[0], b.out.now);
	b.out.now += 10 * RXW_SEC;
	call = bench_begin(&b, c);
	ck_assert_uint_eq(call->p.channel, 0);
	ck_assert_uint_eq(call->p.number, 2);
	ck_assert_int_eq(c->p.finished[0].state, RXW_CS_NOTINIT);
	bench_free(&b);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ended");
	TCase *tcase = tcase_create("core");

	tcase_add_test(tcase, a_request_that_comes_again);
	tcase_add_test(tcase, no_room_for_the_answer);
	tcase_add_test(tcase, pings);
	tcase_add_test(tcase, proof_after_the_end);
	tcase_add_test(tcase, odd_packets);
	tcase_add_test(tcase, next_call);
	tcase_add_test(tcase, refused_with_code);
	tcase_add_test(tcase, aborted_always);
	tcase_add_test(tcase, aborted);
	tcase_add_test(tcase, abort_that_could_not_leave);
	tcase_add_test(tcase, client_end);
	suite_add_tcase(suite, tcase);
	return bench_main(suite);
}
