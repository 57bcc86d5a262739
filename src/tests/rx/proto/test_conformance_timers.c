/* SPDX-License-Identifier: BSD-2-Clause */
/* Timers: rx-protocol 4.4, 6.1 to 6.3, 6.7, 12.3 (doc/conformance.md). */
#include <errno.h>
#include <string.h>

#include "bench.h"

static struct bench b;
static struct bench_conn *c;
static struct bench_call *call;
static uint8_t packet[2048];

static void client_up(void)
{
	bench_init(&b, true);
	c = bench_conn(&b, BENCH_EPOCH, BENCH_CID, 7000);
}

static void server_up(void)
{
	bench_init(&b, false);
	c = bench_conn(&b, BENCH_EPOCH, BENCH_CID, 7001);
}

static void down(void)
{
	bench_free(&b);
}

static void begin(unsigned packets, bool last)
{
	call = bench_begin(&b, c);
	bench_write(call, packets, 40, last);
	rxw_pcall_flush(&call->p, &b.out);
	bench_settle(&b);
}

static void skip(void)
{
	b.next = b.count;
}

static bool is_ping(const struct bench_packet *k)
{
	return k->h.type == RXW_ACK && k->ack.reason == RXW_ACK_PING;
}

/* --- retransmission --- */

/* Before any sample: 1 s plus the allowed reply delay, doubled each time. */
START_TEST(retransmission_backs_off)
{
	uint64_t previous, gap = 1400 * RXW_MS, now;
	struct bench_packet *k;
	unsigned n = 0;

	begin(1, true);
	previous = bench_expect(&b, RXW_DATA)->at;
	bench_pass(&b, 11 * RXW_SEC);
	while ((k = bench_next(&b)) != NULL) {
		if (k->h.type != RXW_DATA)
			continue;
		now = k->at - previous;
		ck_assert_uint_ge(now, gap - 50 * RXW_MS);
		ck_assert_uint_le(now, gap + 450 * RXW_MS);
		gap *= 2;
		previous = k->at;
		n++;
	}
	ck_assert_uint_ge(n, 2);
	ck_assert_uint_le(n, 3);
	ck_assert_uint_eq(call->p.tx.cc.cwnd, 1);
}
END_TEST

/* With the shortest dead time the request is sent three times before the server counts as dead. */
START_TEST(sent_again_before_the_server_is_dead)
{
	struct bench_packet *k;
	unsigned sent = 0;

	c->p.dead = RXW_SEC;
	begin(1, true);
	bench_pass(&b, 2 * RXW_SEC);
	while ((k = bench_next(&b)) != NULL)
		sent += k->h.type == RXW_DATA;
	ck_assert_uint_eq(sent, 3);
	ck_assert_int_eq(call->p.error, RXW_CALL_DEAD);
}
END_TEST

/* Even with a short round trip not before 200 ms, except for one probe. */
START_TEST(never_sooner_than_200_ms)
{
	uint64_t sent, probe = 0;
	struct bench_packet *k;

	begin(2, false);
	k = &b.sent[1];
	bench_pass(&b, RXW_MS / 10);
	bench_get_ack(&b, c, 1, 3, k->h.serial, RXW_ACK_REQUESTED, "", 32);
	ck_assert(call->p.tx.rtt.valid);
	skip();
	bench_write(call, 3, 40, false);
	rxw_pcall_flush(&call->p, &b.out);
	bench_settle(&b);
	sent = b.sent[b.next].at;
	skip();
	bench_pass(&b, 199 * RXW_MS);
	while ((k = bench_next(&b)) != NULL) {
		ck_assert_uint_eq(probe, 0); /* at most one */
		probe = k->at;
		ck_assert_uint_ge(probe - sent, 10 * RXW_MS);
		ck_assert_uint_eq(k->h.flags & RXW_REQUEST_ACK, RXW_REQUEST_ACK);
	}
	bench_pass(&b, RXW_SEC);
	k = bench_expect(&b, RXW_DATA);
	ck_assert_uint_eq(k->h.seq, 3); /* the lowest */
	ck_assert_uint_ge(k->at - sent, 200 * RXW_MS);
	ck_assert_uint_ge(atomic_load(&b.stats.rto_events), 1);
}
END_TEST

/* PINGs are answered, but one packet stays missing: the call ends after 60 s of retransmission. */
START_TEST(a_packet_that_never_arrives)
{
	uint64_t start = b.out.now;
	struct bench_packet *k;

	begin(2, true);
	while (call->p.error == 0 && b.out.now < start + 90 * RXW_SEC) {
		bench_pass(&b, 500 * RXW_MS);
		while ((k = bench_next(&b)) != NULL)
			if (is_ping(k))
				bench_get_ack(&b, c, 1, 1, k->h.serial, RXW_ACK_PING_RESPONSE, "01",
					      32);
		bench_get_ack(&b, c, 1, 1, 0, RXW_ACK_DELAY, "01", 32);
		b.count = b.next = 0;
	}
	ck_assert_int_eq(call->p.error, RXW_CALL_TIMEOUT);
	ck_assert_uint_ge(b.out.now - start, 59 * RXW_SEC);
	ck_assert_uint_le(b.out.now - start, 65 * RXW_SEC);
}
END_TEST

/* --- keepalive and the dead time --- */

/* The request was acknowledged and the reply does not come: the client pings every 2 s ±10 %. */
START_TEST(keepalive)
{
	uint64_t previous = 0;
	unsigned pings = 0;
	struct bench_packet *k;

	begin(1, true);
	bench_get_ack(&b, c, 1, 2, 1, RXW_ACK_DELAY, "", 32);
	skip();
	for (unsigned i = 0; i < 300; i++) {
		bench_pass(&b, 100 * RXW_MS);
		while ((k = bench_next(&b)) != NULL) {
			ck_assert(is_ping(k));
			ck_assert_uint_eq(k->h.flags & RXW_REQUEST_ACK, RXW_REQUEST_ACK);
			ck_assert_uint_eq(k->ack.serial, 0);
			if (previous != 0) {
				ck_assert_uint_ge(k->at - previous, 1750 * RXW_MS);
				ck_assert_uint_le(k->at - previous, 4400 * RXW_MS);
			}
			previous = k->at;
			pings++;
			bench_get_ack(&b, c, 1, 2, k->h.serial, RXW_ACK_PING_RESPONSE, "", 32);
		}
	}
	ck_assert_uint_ge(pings, 7);
	ck_assert_int_eq(call->p.error, 0); /* 30 s, and still alive */
	ck_assert_uint_eq(call->p.state, RXW_CS_ACTIVE);
	/* The peer is silent since it answered the latest PING. */
	bench_pass(&b, previous + 11 * RXW_SEC - b.out.now);
	ck_assert_int_eq(call->p.error, 0);
	bench_pass(&b, 4 * RXW_SEC);
	ck_assert_int_eq(call->p.error, RXW_CALL_DEAD);
	ck_assert_int_eq(call->p.error_origin, RXW_ORIGIN_LOCAL);
	while ((k = bench_next(&b)) != NULL)
		ck_assert(is_ping(k)); /* a dead peer gets no ABORT */
	bench_pass(&b, 30 * RXW_SEC);
	bench_nothing(&b);
}
END_TEST

/*
 * The reply began before the server has read all of the request. So its ACKs begin with packets of which the client keeps
 * nothing, and which are not to be sent again. They show all the same that it is alive.
 */
START_TEST(keepalive_after_an_early_reply)
{
	struct bench_packet *k;

	begin(3, false);
	bench_get_data(&b, c, 1, 1, 0, 100);
	ck_assert_uint_eq(rxw_pcall_queued(&call->p), 0);
	skip();
	for (unsigned i = 0; i < 300; i++) {
		bench_pass(&b, 100 * RXW_MS);
		while ((k = bench_next(&b)) != NULL)
			if (is_ping(k))
				bench_get_ack(&b, c, 1, 2, k->h.serial, RXW_ACK_PING_RESPONSE, "11", 32);
	}
	ck_assert_int_eq(call->p.error, 0);
	bench_pass(&b, 16 * RXW_SEC);
	ck_assert_int_eq(call->p.error, RXW_CALL_DEAD);
}
END_TEST

/* A call with a long-running handler answers PINGs automatically, and so stays alive. */
START_TEST(a_working_server_is_alive)
{
	struct bench_packet *k;
	uint32_t size;

	bench_get_data(&b, c, 1, 1, RXW_LAST_PACKET, 10);
	skip();
	for (unsigned i = 0; i < 30; i++) {
		bool answered = false;

		bench_pass(&b, 2 * RXW_SEC);
		size = bench_ack(&b, packet, 1, 1, 0, RXW_ACK_PING, RXW_REQUEST_ACK, "", 32);
		bench_input(&b, c, packet, size, size);
		while ((k = bench_next(&b)) != NULL)
			answered |= k->h.type == RXW_ACK && k->ack.reason == RXW_ACK_PING_RESPONSE;
		ck_assert(answered);
	}
	ck_assert_int_eq(bench_channel(c, 0)->error, 0);
	ck_assert_int_eq(bench_channel(c, 0)->state, RXW_CS_ACTIVE);
}
END_TEST

/*
 * An unvalidated peer gets an ACK and two unsolicited packets, and expires silently after 12 s. If its
 * packet is so small that only one may be sent, that is a PING.
 */
START_TEST(strangers_get_little)
{
	bool tiny = _i < 3;
	struct bench_packet *k;
	unsigned acks = 0, pings = 0;

	b.auto_attach = _i % 3 == 1;
	bench_get_data(&b, c, 1, 1, _i % 3 == 2 ? RXW_LAST_PACKET : 0, tiny ? 0 : 40);
	bench_pass(&b, 60 * RXW_SEC);
	while ((k = bench_next(&b)) != NULL) {
		ck_assert_uint_eq(k->h.type, RXW_ACK);
		if (is_ping(k))
			pings++;
		else
			acks++;
	}
	ck_assert_uint_eq(acks, tiny ? 0 : 1);
	ck_assert_uint_ge(pings, 1);
	ck_assert_uint_le(pings, tiny ? 1 : 2);
	ck_assert_int_eq(bench_channel(c, 0)->error, RXW_CALL_DEAD);
	ck_assert(rxw_pconn_idle(&c->p));
}
END_TEST

/* A validated address is pinged at the regular rate. */
START_TEST(a_silent_client_is_asked)
{
	unsigned pings = 0;
	struct bench_packet *k;

	rxw_peer_set_validated(c->p.peer, b.out.now);
	bench_get_data(&b, c, 1, 1, 0, 100);
	bench_pass(&b, 11500 * RXW_MS);
	while ((k = bench_next(&b)) != NULL)
		pings += is_ping(k);
	ck_assert_uint_ge(pings, 3);
	ck_assert_int_eq(bench_channel(c, 0)->error, 0);
	bench_pass(&b, 2 * RXW_SEC);
	ck_assert_int_eq(bench_channel(c, 0)->error, RXW_CALL_DEAD);
}
END_TEST

/* A process that was stopped for longer than the dead time has heard nothing: it asks, and waits again. */
START_TEST(a_stopped_process_is_not_silence)
{
	struct bench_packet *k;

	begin(1, true);
	bench_get_ack(&b, c, 1, 2, 1, RXW_ACK_DELAY, "", 32);
	call->p.timer.idle = 15 * RXW_SEC;
	skip();
	b.out.now += 20 * RXW_SEC;
	bench_pass(&b, RXW_SEC);
	ck_assert_int_eq(call->p.error, 0);
	k = bench_expect(&b, RXW_ACK);
	ck_assert(is_ping(k));
	if (_i == 0) {
		bench_get_ack(&b, c, 1, 2, k->h.serial, RXW_ACK_PING_RESPONSE, "", 32);
		bench_pass(&b, 10 * RXW_SEC);
		ck_assert_int_eq(call->p.error, 0);
	} else {
		bench_pass(&b, 13 * RXW_SEC);
		ck_assert_int_eq(call->p.error, RXW_CALL_DEAD);
	}
}
END_TEST

/* Answers to our own call prove the server's address, so that its calls to us need no PING. */
START_TEST(a_server_that_answers_is_proven)
{
	begin(1, true);
	ck_assert(!rxw_peer_validated(c->p.peer, b.out.now));
	bench_get_ack(&b, c, 2, 1, 1, RXW_ACK_DELAY, "1", 32); /* of another call */
	ck_assert(!rxw_peer_validated(c->p.peer, b.out.now));
	if (_i == 0)
		bench_get_ack(&b, c, 1, 1, 1, RXW_ACK_DELAY, "1", 32);
	else
		bench_get_data(&b, c, 1, 1, RXW_LAST_PACKET, 10);
	ck_assert(rxw_peer_validated(c->p.peer, b.out.now));
}
END_TEST

START_TEST(finished_calls_are_quiet)
{
	begin(1, true);
	bench_get_data(&b, c, 1, 1, RXW_LAST_PACKET, 10);
	bench_read(call);
	rxw_pcall_finish(&call->p, &b.out);
	bench_settle(&b);
	bench_pass(&b, 3 * RXW_MS);
	skip();
	bench_pass(&b, 600 * RXW_SEC);
	bench_nothing(&b);
	ck_assert_int_eq(call->p.error, 0);
}
END_TEST

/* An ICMP report is a hint: it shortens the dead time, and a sign of life reverts that. */
START_TEST(unreachable_is_a_hint)
{
	begin(1, true);
	rxw_pconn_icmp(&c->p, ECONNREFUSED, 0, &b.out);
	bench_settle(&b);
	ck_assert_int_eq(call->p.error, 0);
	bench_pass(&b, RXW_SEC);
	ck_assert_int_eq(call->p.error, 0);
	if (_i == 1)
		bench_get_ack(&b, c, 1, 2, 1, RXW_ACK_DELAY, "", 32);
	bench_pass(&b, 5 * RXW_SEC);
	ck_assert_int_eq(call->p.error, _i == 1 ? 0 : RXW_CALL_DEAD);
}
END_TEST

/* --- idle and hard timeouts --- */

START_TEST(hard_time)
{
	struct bench_packet *k, *last = NULL;

	c->p.hard = 30 * RXW_SEC;
	begin(1, true);
	for (unsigned i = 0; i < 29; i++) {
		bench_pass(&b, RXW_SEC);
		bench_get_ack(&b, c, 1, 2, 0, RXW_ACK_DELAY, "", 32);
	}
	ck_assert_int_eq(call->p.error, 0);
	bench_pass(&b, 2 * RXW_SEC);
	ck_assert_int_eq(call->p.error, RXW_CALL_TIMEOUT);
	while ((k = bench_next(&b)) != NULL)
		last = k;
	ck_assert_ptr_nonnull(last);
	ck_assert_uint_eq(last->h.type, RXW_ABORT); /* the peer is alive, so it gets an ABORT */
	ck_assert_int_eq(last->code, RXW_CALL_TIMEOUT);
}
END_TEST

/* A client that pings but sends no data occupies a worker for at most 60 s. */
START_TEST(idle_time)
{
	uint64_t start = b.out.now;
	struct bench_packet *k;
	uint32_t size;
	bool told = false;

	bench_get_data(&b, c, 1, 1, 0, 10);
	call = (struct bench_call *)bench_channel(c, 0);
	bench_read(call);
	while (call->p.error == 0 && b.out.now < start + 100 * RXW_SEC) {
		bench_pass(&b, 2 * RXW_SEC);
		size = bench_ack(&b, packet, 1, 1, 0, RXW_ACK_PING, RXW_REQUEST_ACK, "", 32);
		bench_input(&b, c, packet, size, size);
		while ((k = bench_next(&b)) != NULL)
			told |= k->h.type == RXW_ABORT && k->code == RXW_CALL_TIMEOUT;
		b.count = b.next = 0;
	}
	ck_assert_int_eq(call->p.error, RXW_CALL_TIMEOUT);
	ck_assert_uint_ge(b.out.now - start, 60 * RXW_SEC);
	ck_assert_uint_le(b.out.now - start, 63 * RXW_SEC);
	ck_assert(told);
}
END_TEST

/* A slow server does not make the client idle. */
START_TEST(a_slow_handler_is_not_idle)
{
	uint32_t size;

	bench_get_data(&b, c, 1, 1, RXW_LAST_PACKET, 10);
	call = (struct bench_call *)bench_channel(c, 0);
	bench_read(call);
	for (unsigned i = 0; i < 60; i++) {
		bench_pass(&b, 2 * RXW_SEC);
		size = bench_ack(&b, packet, 1, 1, 0, RXW_ACK_PING, RXW_REQUEST_ACK, "", 32);
		bench_input(&b, c, packet, size, size);
		b.count = b.next = 0;
	}
	ck_assert_int_eq(call->p.error, 0);
}
END_TEST

/* --- delayed acknowledgement, with the timer's serial --- */

START_TEST(single_packet)
{
	struct bench_packet *k;
	uint64_t at = b.out.now;

	bench_get_data(&b, c, 1, 1, 0, 10);
	bench_nothing(&b);
	bench_pass(&b, 49 * RXW_MS);
	bench_nothing(&b);
	bench_pass(&b, 2 * RXW_MS);
	k = bench_expect(&b, RXW_ACK);
	ck_assert_uint_eq(k->at, at + 50 * RXW_MS);
	ck_assert_uint_eq(k->ack.reason, RXW_ACK_DELAY);
	ck_assert_uint_eq(k->ack.serial, 0);
}
END_TEST

/* The reply acknowledges a complete request if it is sent within 90 ms. */
START_TEST(whole_request)
{
	struct bench_packet *k;
	uint64_t at = b.out.now;

	bench_get_data(&b, c, 1, 1, RXW_LAST_PACKET, 10);
	bench_nothing(&b);
	bench_pass(&b, 89 * RXW_MS);
	bench_nothing(&b);
	bench_pass(&b, 2 * RXW_MS);
	k = bench_expect(&b, RXW_ACK);
	ck_assert_uint_eq(k->at, at + 90 * RXW_MS);
	ck_assert_uint_eq(k->ack.reason, RXW_ACK_DELAY);
	ck_assert_uint_eq(k->ack.serial, 0);
}
END_TEST

/* --- the reach check --- */

START_TEST(reach_check)
{
	struct bench_packet *k;

	c->p.validate_first = true;
	bench_get_data(&b, c, 1, 1, RXW_LAST_PACKET, 10);
	call = (struct bench_call *)bench_channel(c, 0);
	ck_assert_int_eq(call->p.state, RXW_CS_PRECALL);
	k = bench_expect(&b, RXW_ACK);
	ck_assert(is_ping(k));
	ck_assert_uint_eq(k->ack.count, 1); /* packet 1 is soft-acknowledged */
	ck_assert_uint_eq(k->ack.first, 1);
	bench_get_ack(&b, c, 1, 1, 0, RXW_ACK_PING_RESPONSE, "", 32); /* names no serial */
	ck_assert_int_eq(call->p.state, RXW_CS_PRECALL);
	bench_get_ack(&b, c, 1, 1, k->h.serial, RXW_ACK_PING_RESPONSE, "", 32);
	ck_assert_int_eq(call->p.state, RXW_CS_ACTIVE);
	ck_assert(rxw_peer_validated(c->p.peer, b.out.now));
	/* Valid for 60 s, for every connection of the address. */
	ck_assert(rxw_peer_validated(c->p.peer, b.out.now + 59 * RXW_SEC));
	ck_assert(!rxw_peer_validated(c->p.peer, b.out.now + 61 * RXW_SEC));
	rxw_put32(packet, 0);
	bench_data(&b, packet, 1, 1, RXW_LAST_PACKET, 10);
	rxw_put32(packet + 4, BENCH_CID | 1);
	bench_input(&b, c, packet, RXW_HEADER_SIZE + 10, RXW_HEADER_SIZE + 10);
	ck_assert_int_eq(bench_channel(c, 1)->state, RXW_CS_ACTIVE);
}
END_TEST

START_TEST(reach_check_unanswered)
{
	unsigned pings = 0;
	struct bench_packet *k;

	c->p.validate_first = true;
	bench_get_data(&b, c, 1, 1, RXW_LAST_PACKET, 10);
	bench_get_data(&b, c, 1, 1, RXW_LAST_PACKET, 10); /* a duplicate requests no second one */
	call = (struct bench_call *)bench_channel(c, 0);
	bench_pass(&b, 9 * RXW_SEC);
	ck_assert_int_eq(call->p.error, 0);
	bench_pass(&b, 1100 * RXW_MS);
	ck_assert_int_eq(call->p.error, RXW_CALL_DEAD);
	while ((k = bench_next(&b)) != NULL) {
		ck_assert_uint_eq(k->h.type, RXW_ACK);
		pings += is_ping(k);
	}
	ck_assert_uint_ge(pings, 2);
	ck_assert_uint_le(pings, 3); /* one for the packet, two unsolicited */
	ck_assert_uint_eq(call->events & RXW_OUT_ATTACH, 0);
}
END_TEST

/* --- the limit of three times the received bytes, for all packet types --- */

static uint64_t bytes_sent(void)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < b.count; i++)
		sum += b.sent[i].length + 28;
	return sum;
}

START_TEST(three_times_in_all)
{
	uint64_t in = 0;

	/* A reply that uses up the limit, then an ABORT, then PINGs. */
	bench_get_data(&b, c, 1, 1, RXW_LAST_PACKET, 4);
	in += 28 + 28 + 4;
	call = (struct bench_call *)bench_channel(c, 0);
	bench_read(call);
	bench_write(call, 1, 3 * 60 - 56, true);
	rxw_pcall_flush(&call->p, &b.out);
	bench_settle(&b);
	ck_assert_uint_eq(bytes_sent(), 3 * in);
	rxw_pcall_fail(&call->p, 4711, RXW_ORIGIN_LOCAL, true, &b.out);
	bench_settle(&b);
	ck_assert_uint_eq(bytes_sent(), 3 * in);
	skip();
	/* The client's ACK of the reply draws the delayed ABORT. */
	bench_get_ack(&b, c, 1, 2, 1, RXW_ACK_DELAY, "", 32);
	in += 28 + 65;
	ck_assert_int_eq(bench_expect(&b, RXW_ABORT)->code, 4711);
	bench_nothing(&b);
	ck_assert_uint_le(bytes_sent(), 3 * in);
	/* A flood of minimal packets draws BUSY, ABORT, DUPLICATE and others. */
	for (unsigned i = 0; i < 100; i++) {
		b.refuse_calls = i % 3 == 1;
		bench_get_data(&b, c, 2 + i / 3, 1 + (i % 5) * 3,
			       i % 2 ? RXW_LAST_PACKET | RXW_REQUEST_ACK : 0, 0);
		in += 56;
		ck_assert_uint_le(bytes_sent(), 3 * in);
	}
	bench_pass(&b, 60 * RXW_SEC);
	ck_assert_uint_le(bytes_sent(), 3 * in);
}
END_TEST

/* A reply before the end of the request uses up the budget for the request's ACK. */
START_TEST(acknowledgements_count)
{
	bench_get_data(&b, c, 1, 1, 0, 4);
	call = (struct bench_call *)bench_channel(c, 0);
	bench_read(call);
	bench_write(call, 1, 3 * 60 - 56, true);
	rxw_pcall_flush(&call->p, &b.out);
	bench_settle(&b);
	bench_expect(&b, RXW_DATA);
	bench_pass(&b, 100 * RXW_MS);
	bench_nothing(&b);
	ck_assert_uint_eq(bytes_sent(), 3 * 60);
	bench_get_data(&b, c, 1, 2, 0, 4); /* which adds to the budget */
	bench_pass(&b, 100 * RXW_MS);
	ck_assert_uint_eq(bench_expect(&b, RXW_ACK)->ack.previous, 2);
}
END_TEST

/*
 * A handler that takes longer than the delay of the request's ACK replies with more than the limit:
 * what acknowledged the request has asked for the proof, since nothing else could any more.
 */
START_TEST(a_late_reply_needs_no_keepalive)
{
	struct bench_packet *k;
	uint32_t ping;

	bench_get_data(&b, c, 1, 1, RXW_LAST_PACKET, 4);
	call = (struct bench_call *)bench_channel(c, 0);
	bench_read(call);
	bench_pass(&b, 100 * RXW_MS);
	k = bench_expect(&b, RXW_ACK);
	ck_assert(is_ping(k));
	ck_assert_uint_eq(k->ack.first, 2); /* the whole request */
	ping = k->h.serial;
	bench_pass(&b, RXW_SEC);
	bench_write(call, 1, 3 * 60, true);
	rxw_pcall_flush(&call->p, &b.out);
	bench_settle(&b);
	bench_nothing(&b);
	ck_assert_uint_le(bytes_sent(), 3 * 60);
	bench_get_ack(&b, c, 1, 1, ping, RXW_ACK_PING_RESPONSE, "", 32);
	bench_expect(&b, RXW_DATA);
	bench_nothing(&b);
	ck_assert(rxw_peer_validated(c->p.peer, b.out.now));
}
END_TEST

/*
 * A handler that reads its request only after the ACK of it: the window update would leave no room for
 * a PING, and so is one.
 */
START_TEST(a_window_update_needs_no_keepalive)
{
	struct bench_packet *k;
	uint32_t ping;

	bench_get_data(&b, c, 1, 1, 0, 8);
	bench_pass(&b, 60 * RXW_MS);
	k = bench_expect(&b, RXW_ACK);
	ck_assert_uint_eq(k->ack.reason, RXW_ACK_DELAY);
	call = (struct bench_call *)bench_channel(c, 0);
	ck_assert_uint_eq(bench_read(call), 1);
	bench_pass(&b, 60 * RXW_MS);
	k = bench_expect(&b, RXW_ACK);
	ck_assert(is_ping(k));
	ck_assert_uint_eq(k->ack.first, 2);
	ck_assert_uint_gt(k->ack.rwind, 16);
	ping = k->h.serial;
	ck_assert_uint_le(bytes_sent(), 3 * 64);
	bench_get_ack(&b, c, 1, 1, ping, RXW_ACK_PING_RESPONSE, "", 32);
	ck_assert(rxw_peer_validated(c->p.peer, b.out.now));
	bench_pass(&b, 60 * RXW_MS);
	bench_nothing(&b);
}
END_TEST

/* Bytes spent on BUSY are not available for a reply. */
START_TEST(refusals_count)
{
	for (unsigned over = 0; over < 2; over++) {
		b.refuse_calls = true;
		bench_get_data(&b, c, 1 + over * 2, 1, RXW_LAST_PACKET, 4);
		bench_expect(&b, RXW_BUSY);
		b.refuse_calls = false;
		bench_get_data(&b, c, 2 + over * 2, 1, RXW_LAST_PACKET, 4);
		call = (struct bench_call *)bench_channel(c, 0);
		bench_read(call);
		skip();
		bench_write(call, 1, 2 * 3 * 60 - 56 - 56 + over, true);
		rxw_pcall_flush(&call->p, &b.out);
		bench_settle(&b);
		if (over == 0)
			bench_expect(&b, RXW_DATA);
		else
			ck_assert(is_ping(bench_expect(&b, RXW_ACK)));
		bench_nothing(&b);
		skip();
	}
}
END_TEST

/* Members of a jumbogram are charged with their size on the wire. */
START_TEST(jumbograms_count_as_sent)
{
	static uint8_t jumbo[28 + 3 * 1416];
	uint32_t size = 28 + 1412 + 4 + 1412 + 4 + 100;

	bench_data(&b, jumbo, 1, 1, RXW_JUMBO_PACKET, 0);
	jumbo[28 + 1412] = RXW_JUMBO_PACKET;
	jumbo[28 + 1412 + 4 + 1412] = RXW_LAST_PACKET;
	bench_feed(&b, c, jumbo, size, size);
	ck_assert_uint_eq(bench_channel(c, 0)->rx.next, 4);
	ck_assert_uint_le(atomic_load(&c->p.peer->unvalidated_in), size + 28);
	bench_end(&b, c, true);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("conformance: times");
	TCase *server = tcase_create("server"), *client = tcase_create("client");

	tcase_add_checked_fixture(server, server_up, down);
	tcase_add_test(server, a_working_server_is_alive);
	tcase_add_test(server, a_silent_client_is_asked);
	tcase_add_test(server, idle_time);
	tcase_add_test(server, a_slow_handler_is_not_idle);
	tcase_add_test(server, single_packet);
	tcase_add_test(server, whole_request);
	tcase_add_test(server, reach_check);
	tcase_add_test(server, reach_check_unanswered);
	tcase_add_test(server, three_times_in_all);
	tcase_add_test(server, acknowledgements_count);
	tcase_add_test(server, a_late_reply_needs_no_keepalive);
	tcase_add_test(server, a_window_update_needs_no_keepalive);
	tcase_add_test(server, refusals_count);
	tcase_add_test(server, jumbograms_count_as_sent);
	tcase_add_loop_test(server, strangers_get_little, 0, 6);
	suite_add_tcase(suite, server);
	tcase_add_checked_fixture(client, client_up, down);
	tcase_add_test(client, retransmission_backs_off);
	tcase_add_test(client, sent_again_before_the_server_is_dead);
	tcase_add_test(client, never_sooner_than_200_ms);
	tcase_add_test(client, a_packet_that_never_arrives);
	tcase_add_test(client, keepalive);
	tcase_add_test(client, keepalive_after_an_early_reply);
	tcase_add_loop_test(client, a_stopped_process_is_not_silence, 0, 2);
	tcase_add_loop_test(client, a_server_that_answers_is_proven, 0, 2);
	tcase_add_test(client, finished_calls_are_quiet);
	tcase_add_test(client, hard_time);
	tcase_add_loop_test(client, unreachable_is_a_hint, 0, 2);
	suite_add_tcase(suite, client);
	return bench_main(suite);
}
