/* SPDX-License-Identifier: BSD-2-Clause */
/* Sending: windows, thresholds, pacing, flags, bursts, refusals (4). */
#include <errno.h>
#include <string.h>

#include "tests/rx/proto/bench.h"

static struct bench b;
static struct bench_conn *c;
static struct bench_call *call;
static struct rxw_burst burst;
static uint64_t not_before;

static void setup(void)
{
	bench_init(&b, true);
	b.auto_send = false;
	c = bench_conn(&b, BENCH_EPOCH, BENCH_CID, 7000);
	call = bench_begin(&b, c);
}

static enum rxw_burst_result next(unsigned most)
{
	return rxw_pcall_burst(&call->p, most, &burst, &not_before, &b.out);
}

static void done(unsigned sent, int error)
{
	rxw_pcall_burst_done(&call->p, &burst, sent, error, &b.out);
}

START_TEST(first_flight)
{
	struct bench_packet *k;

	setup();
	bench_write(call, 45, 1000, false);
	ck_assert(call->events & RXW_OUT_SEND);
	ck_assert_uint_eq(bench_send(call), 4);
	for (unsigned i = 1; i <= 4; i++) {
		k = bench_expect(&b, RXW_DATA);
		ck_assert_uint_eq(k->h.seq, i);
		ck_assert_uint_eq(k->h.serial, i);
		ck_assert_uint_eq(k->h.epoch, BENCH_EPOCH);
		ck_assert_uint_eq(k->h.cid, BENCH_CID);
		ck_assert_uint_eq(k->h.call, 1);
		ck_assert_uint_eq(k->h.service, BENCH_SERVICE);
		ck_assert_uint_eq(k->h.spare, 0);
		/* More is queued. The last packet fills the window, so it requests an ACK. */
		ck_assert_uint_eq(k->h.flags, RXW_CLIENT_INITIATED |
						      (i < 4 ? RXW_MORE_PACKETS : RXW_REQUEST_ACK));
		for (unsigned m = 0; m < 1000; m++)
			ck_assert_uint_eq(k->bytes[28 + m], (uint8_t)(i + m));
	}
	bench_free(&b);
}
END_TEST

START_TEST(never_beyond_the_windows)
{
	uint32_t edge = 17;

	setup();
	for (unsigned i = 0; i < 10; i++)
		bench_write(call, 45, 100, false);
	call->p.tx.cc.cwnd = 255;
	bench_send(call);
	ck_assert_uint_eq(b.sent[b.count - 1].h.seq, 16);
	/* Down to one, up to ten: the latest ACK applies. */
	bench_get_ack(&b, c, 1, 17, 16, RXW_ACK_REQUESTED, "", 0);
	edge = 18;
	bench_send(call);
	ck_assert_uint_eq(call->p.tx.nxt, edge);
	bench_get_ack(&b, c, 1, 18, 17, RXW_ACK_REQUESTED, "", 0xffffffff);
	bench_send(call);
	ck_assert_uint_eq(call->p.tx.nxt, 18 + 255);
	for (unsigned i = 0; i < b.count; i++)
		ck_assert_uint_lt(b.sent[i].h.seq, 18 + 255);
	bench_free(&b);
}
END_TEST

START_TEST(bursts_keep_to_runs)
{
	setup();
	call->p.tx.cc.cwnd = 100;
	call->p.tx.window = 100;
	call->p.tx.edge = 101;
	bench_write(call, 3, 100, false);
	bench_write(call, 45, 1416, false);
	bench_write(call, 45, 1416, true);
	ck_assert_int_eq(next(64), RXW_BURST_READY);
	ck_assert_uint_eq(burst.count, 3);
	ck_assert_uint_eq(burst.segment, 128);
	ck_assert_uint_eq(burst.length, 3 * 128);
	done(3, 0);
	ck_assert_int_eq(next(64), RXW_BURST_READY);
	ck_assert_uint_eq(burst.count, 45);
	ck_assert_uint_le(burst.length, 65507);
	done(45, 0);
	ck_assert_int_eq(next(10), RXW_BURST_READY); /* as many as the caller accepts */
	ck_assert_uint_eq(burst.count, 10);
	ck_assert(!burst.retransmission && !burst.fragment);
	done(10, 0);
	bench_free(&b);
}
END_TEST

START_TEST(thresholds)
{
	setup();
	call->p.tx.cc.cwnd = call->p.tx.cc.ssthresh = 40;
	call->p.tx.window = 255;
	call->p.tx.edge = 256;
	for (unsigned i = 0; i < 4; i++)
		bench_write(call, 40, 100, false);
	ck_assert_uint_eq(bench_send(call), 40);
	/* Nine are acknowledged: less than half a window, so nothing is sent. With twenty it is. */
	bench_get_ack(&b, c, 1, 10, 9, RXW_ACK_IDLE, "", 255);
	ck_assert_int_eq(next(64), RXW_BURST_NONE);
	ck_assert(!rxw_pcall_sendable(&call->p, b.out.now));
	call->events = 0;
	bench_get_ack(&b, c, 1, 22, 21, RXW_ACK_IDLE, "", 255);
	ck_assert_uint_eq(call->events & RXW_OUT_SEND, RXW_OUT_SEND);
	ck_assert_uint_ge(bench_send(call), 20);
	/* When flushed: any amount. */
	bench_get_ack(&b, c, 1, 24, 23, RXW_ACK_IDLE, "", 255);
	ck_assert_int_eq(next(64), RXW_BURST_NONE);
	rxw_pcall_flush(&call->p, &b.out);
	bench_settle(&b);
	ck_assert_int_eq(next(64), RXW_BURST_READY);
	done(burst.count, 0);
	bench_free(&b);
}
END_TEST

/* A lossy path with an RTT above a millisecond: the data that one of its ACKs allows is enough. */
START_TEST(thresholds_where_packets_are_lost)
{
	static const struct {
		uint32_t cwnd, acked;
		uint64_t rtt;
		bool losses, sends;
	} cases[] = {
		{12, 2, 10 * RXW_MS, true, true},   {12, 1, 10 * RXW_MS, true, false},
		{12, 2, 10 * RXW_MS, false, false}, {12, 2, RXW_MS / 2, true, false},
		{12, 6, RXW_MS / 2, true, true},    {40, 8, 100 * RXW_MS, true, true},
		{40, 7, 100 * RXW_MS, true, false}, {40, 19, 2 * RXW_MS, true, false},
		{40, 20, 2 * RXW_MS, true, true},
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		setup();
		call->p.tx.cc.cwnd = call->p.tx.cc.ssthresh = cases[i].cwnd;
		call->p.tx.window = 255;
		call->p.tx.edge = 256;
		bench_write(call, 45, 100, false);
		bench_write(call, 45, 100, false);
		ck_assert_uint_eq(bench_send(call), cases[i].cwnd);
		rxw_rtt_seed(&call->p.tx.rtt, cases[i].rtt, 0);
		call->p.tx.losses = cases[i].losses;
		call->p.tx.peak = 1; /* the window stays as it is */
		call->p.tx.last_peak = 1;
		bench_get_ack(&b, c, 1, 1 + cases[i].acked, 0, RXW_ACK_IDLE, "", 255);
		ck_assert_msg(rxw_pcall_sendable(&call->p, b.out.now) == cases[i].sends, "case %u",
			      i);
		bench_free(&b);
	}
}
END_TEST

/* A waiting writer sends what the window allows. After that a small ACK causes no small burst. */
START_TEST(urged_by_a_writer_that_waits)
{
	setup();
	call->p.tx.cc.cwnd = call->p.tx.cc.ssthresh = 40;
	call->p.tx.window = 255;
	call->p.tx.edge = 256;
	for (unsigned i = 0; i < 4; i++)
		bench_write(call, 40, 100, false);
	ck_assert_uint_eq(bench_send(call), 40);
	bench_get_ack(&b, c, 1, 4, 3, RXW_ACK_IDLE, "", 255);
	ck_assert_int_eq(next(64), RXW_BURST_NONE);
	call->events = 0;
	rxw_pcall_flush_window(&call->p, &b.out);
	bench_settle(&b);
	ck_assert(call->events & RXW_OUT_SEND);
	ck_assert_uint_eq(bench_send(call), 3);
	call->events = 0;
	bench_get_ack(&b, c, 1, 10, 9, RXW_ACK_IDLE, "", 255);
	ck_assert(!(call->events & RXW_OUT_SEND));
	ck_assert_int_eq(next(64), RXW_BURST_NONE);
	/* With nothing to send it leaves no request for later. */
	bench_get_ack(&b, c, 1, 25, 24, RXW_ACK_IDLE, "", 255);
	ck_assert_uint_ge(bench_send(call), 20);
	rxw_pcall_flush_window(&call->p, &b.out);
	bench_settle(&b);
	bench_get_ack(&b, c, 1, 27, 26, RXW_ACK_IDLE, "", 255);
	ck_assert_int_eq(next(64), RXW_BURST_NONE);
	bench_free(&b);
}
END_TEST

START_TEST(held_for_a_millisecond)
{
	setup();
	call->p.tx.cc.cwnd = call->p.tx.cc.ssthresh = 40;
	call->p.tx.window = 255;
	call->p.tx.edge = 256;
	/* Nothing is in flight, but the request may be a small one that soon ends; then more is. */
	for (unsigned i = 0; i < 2; i++) {
		call->events = 0;
		bench_write(call, 5, 100, false);
		ck_assert(!(call->events & RXW_OUT_SEND));
		ck_assert_int_eq(next(64), RXW_BURST_NONE);
		ck_assert_uint_le(rxw_pcall_deadline(&call->p), b.out.now + RXW_MS);
		bench_pass(&b, RXW_MS);
		ck_assert(call->events & RXW_OUT_SEND);
		ck_assert_uint_eq(bench_send(call), 5);
	}
	/* The end of the stream is sent without delay. */
	call->events = 0;
	bench_write(call, 1, 100, true);
	ck_assert(call->events & RXW_OUT_SEND);
	ck_assert_uint_eq(bench_send(call), 1);
	bench_free(&b);
}
END_TEST

START_TEST(end_of_a_reply_asks_for_nothing)
{
	struct bench_packet *k;

	bench_init(&b, false);
	c = bench_conn(&b, BENCH_EPOCH, BENCH_CID, 7001);
	rxw_peer_set_validated(c->p.peer, b.out.now);
	bench_get_data(&b, c, 1, 1, RXW_LAST_PACKET, 10);
	call = (struct bench_call *)bench_channel(c, 0);
	call->p.tx.cc.cwnd = 1; /* where every packet requests an ACK */
	bench_read(call);
	bench_write(call, 1, 10, true);
	k = bench_expect(&b, RXW_DATA);
	ck_assert_uint_eq(k->h.flags, RXW_LAST_PACKET);
	rxw_pcall_finish(&call->p, &b.out);
	bench_pass(&b, 1500 * RXW_MS);
	/* The second time it does. */
	k = bench_expect(&b, RXW_DATA);
	ck_assert_uint_eq(k->h.flags, RXW_LAST_PACKET | RXW_REQUEST_ACK);
	ck_assert_uint_eq(k->h.serial, 2);
	ck_assert_uint_eq(b.stats.retransmitted, 1);
	/* The stream has 10 bytes, which are counted once. */
	ck_assert_uint_eq(call->p.count.packets_sent, 2);
	ck_assert_uint_eq(call->p.count.bytes_sent, 10);
	bench_free(&b);
}
END_TEST

/* A request written in two parts. Returns how many of its packets ask for an ACK. */
static unsigned request_of(unsigned packets)
{
	unsigned asked = 0;

	call = bench_begin(&b, c);
	call->p.tx.cc.cwnd = 10;
	bench_write(call, 1, 100, false);
	ck_assert(!(call->events & RXW_OUT_SEND));
	bench_write(call, packets - 1, 100, true);
	ck_assert_uint_eq(bench_send(call), packets);
	for (; b.next < b.count; b.next++) {
		ck_assert_uint_eq(b.sent[b.next].h.type, RXW_DATA);
		asked += (b.sent[b.next].h.flags & RXW_REQUEST_ACK) != 0;
	}
	return asked;
}

/* The peer's reply: the call is over. */
static void replied(void)
{
	uint32_t number = call->p.number;

	bench_get_data(&b, c, number, 1, RXW_LAST_PACKET, 10);
	bench_read(call);
	rxw_pcall_finish(&call->p, &b.out);
	bench_settle(&b);
	b.next = b.count = 0;
}

/*
 * The reply to a small request acknowledges it. Over a short path without losses one call in a second
 * asks for an ACK, which measures the round trip.
 */
START_TEST(small_requests_do_not_ask)
{
	setup();
	b.next = b.count = 0;
	rxw_pcall_fail(&call->p, RXW_USER_ABORT, RXW_ORIGIN_LOCAL, false, &b.out);
	bench_settle(&b);
	b.next = b.count = 0;
	ck_assert_uint_ge(request_of(3), 1);
	b.out.now += 200 * RXW_MS / 1000;
	bench_get_ack(&b, c, call->p.number, 4, c->p.serial, RXW_ACK_REQUESTED, "", 32);
	replied();
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_uint_eq(request_of(3 + i), 0);
		replied();
	}
	/* A larger one does. */
	ck_assert_uint_ge(request_of(9), 1);
	replied();
	b.out.now += RXW_SEC;
	ck_assert_uint_ge(request_of(3), 1);
	bench_get_ack(&b, c, call->p.number, 4, c->p.serial, RXW_ACK_REQUESTED, "", 32);
	replied();
	/* The end of one is lost, and a probe heals that: later ones ask, for a minute. */
	ck_assert_uint_eq(request_of(3), 0);
	b.auto_send = true;
	bench_pass(&b, 500 * RXW_MS);
	ck_assert_uint_eq(bench_expect(&b, RXW_DATA)->h.seq, 3);
	b.auto_send = false;
	bench_get_ack(&b, c, call->p.number, 4, c->p.serial, RXW_ACK_REQUESTED, "", 32);
	replied();
	ck_assert_uint_ge(request_of(3), 1);
	replied();
	b.out.now += 60 * RXW_SEC;
	atomic_store(&c->p.peer->rtt_at, b.out.now);
	ck_assert_uint_eq(request_of(3), 0);
	replied();
	/* Packets were lost. */
	rxw_peer_learn_ssthresh(c->p.peer, 10, b.out.now);
	ck_assert_uint_ge(request_of(3), 1);
	bench_free(&b);
}
END_TEST

START_TEST(small_window_asks_always)
{
	setup();
	call->p.tx.cc.cwnd = 2;
	bench_write(call, 10, 10, false);
	ck_assert_uint_eq(bench_send(call), 2);
	ck_assert(b.sent[0].h.flags & RXW_REQUEST_ACK);
	ck_assert(b.sent[1].h.flags & RXW_REQUEST_ACK);
	bench_free(&b);
}
END_TEST

/* A round trip of 100 ms, and a congestion window of 100 packets. */
static void set_long_path(void)
{
	call->p.tx.cc.cwnd = call->p.tx.cc.ssthresh = 100;
	call->p.tx.window = 255;
	call->p.tx.edge = 256;
	rxw_rtt_seed(&call->p.tx.rtt, 100 * RXW_MS, RXW_MS);
}

START_TEST(pacing)
{
	unsigned n = 0;
	uint64_t began;

	setup();
	set_long_path();
	bench_write(call, 45, 100, false);
	bench_write(call, 45, 100, false);
	bench_write(call, 45, 100, false);
	began = b.out.now;
	/* 100 packets in 80 ms: 0.8 ms each, bursts of at most eight. */
	while (n < 100) {
		enum rxw_burst_result r = next(64);

		if (r == RXW_BURST_PACED) {
			ck_assert_uint_gt(not_before, b.out.now);
			b.out.now = not_before;
			continue;
		}
		ck_assert_int_eq(r, RXW_BURST_READY);
		ck_assert_uint_le(burst.count, 8);
		n += burst.count;
		done(burst.count, 0);
	}
	ck_assert_uint_ge(b.out.now - began, 70 * RXW_MS);
	ck_assert_uint_le(b.out.now - began, 85 * RXW_MS);
	bench_free(&b);
}
END_TEST

/* Sends what may leave now, and returns how many packets that were. */
static unsigned send_train(void)
{
	ck_assert_int_eq(next(64), RXW_BURST_READY);
	done(burst.count, 0);
	return burst.count;
}

/* This machine was busy when a train was due: the next one makes up for it, but no more than a burst. */
START_TEST(late_trains_are_longer)
{
	static const struct {
		unsigned late, train; /* in packets */
	} cases[] = {{0, 8}, {3, 11}, {20, 28}, {37, 45}, {90, 45}};
	const uint64_t interval = 800000;

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t due;

		setup();
		set_long_path();
		for (unsigned k = 0; k < 3; k++)
			bench_write(call, 45, 100, false);
		while (next(64) == RXW_BURST_READY)
			done(burst.count, 0);
		/* To the end of a buffer, which would cut the train short. */
		while (call->p.tx.nxt <= 45) {
			b.out.now = not_before;
			send_train();
			next(64);
		}
		due = not_before;
		b.out.now = due + cases[i].late * interval;
		ck_assert_uint_eq(send_train(), cases[i].train);
		/* The mean pace stays the same. */
		ck_assert_int_eq(next(64), RXW_BURST_PACED);
		ck_assert_uint_ge(not_before + RXW_MS, due + cases[i].train * interval);
		bench_free(&b);
	}
}
END_TEST

/* A train is late only if its packets were queued in time. */
START_TEST(idle_writers_have_short_trains)
{
	setup();
	set_long_path();
	bench_write(call, 8, 100, false);
	rxw_pcall_flush(&call->p, &b.out);
	ck_assert_uint_eq(send_train(), 8);
	b.out.now += RXW_SEC / 20;
	bench_write(call, 45, 100, false);
	rxw_pcall_flush(&call->p, &b.out);
	ck_assert_uint_eq(send_train(), 8);
	bench_free(&b);
}
END_TEST

/* Packets that a full window held back are not late. */
START_TEST(full_windows_are_not_late)
{
	setup();
	set_long_path();
	bench_write(call, 45, 100, false);
	ck_assert_uint_eq(send_train(), 8);
	call->p.tx.cc.cwnd = 8;
	b.out.now += RXW_SEC / 20;
	bench_get_ack(&b, c, 1, 9, 8, RXW_ACK_REQUESTED, "", 255);
	call->p.tx.cc.cwnd = 100;
	rxw_pcall_flush(&call->p, &b.out);
	ck_assert_uint_eq(send_train(), 8);
	bench_free(&b);
}
END_TEST

/* All of a flight is lost when the peer moves to another port: it is not sent again as one burst. */
START_TEST(paced_after_a_move)
{
	unsigned sent = 0;

	setup();
	b.auto_send = true;
	set_long_path();
	bench_write(call, 45, 100, false);
	bench_write(call, 45, 100, false);
	bench_pass(&b, 90 * RXW_MS);
	ck_assert_uint_eq(call->p.tx.flight, 90);
	b.auto_send = false;
	rxw_pcall_moved(&call->p, true, &b.out);
	bench_settle(&b);
	ck_assert_uint_eq(call->p.tx.lost, 90);
	while (next(64) == RXW_BURST_READY) {
		sent += burst.count;
		done(burst.count, 0);
	}
	ck_assert_uint_ge(sent, 1);
	ck_assert_uint_le(sent, 16);
	ck_assert_uint_gt(not_before, b.out.now);
	bench_free(&b);
}
END_TEST

/* With a model of the path, lost packets leave at its rate, as new ones do: a small path would lose them again. */
START_TEST(model_paces_lost_packets)
{
	unsigned sent = 0;

	setup();
	b.auto_send = true;
	set_long_path();
	rxw_cc_init(&call->p.tx.cc, &rxw_cc_rate, 100, 0, 1000);
	bench_write(call, 45, 100, false);
	bench_write(call, 45, 100, false);
	bench_pass(&b, 90 * RXW_MS);
	ck_assert_uint_eq(call->p.tx.flight, 90);
	b.auto_send = false;
	rxw_sendq_lose_from(&call->p.tx, call->p.tx.una);
	while (next(64) == RXW_BURST_READY) {
		sent += burst.count;
		done(burst.count, 0);
	}
	ck_assert_uint_ge(sent, 8);
	ck_assert_uint_le(sent, 24);
	ck_assert_uint_gt(not_before, b.out.now);
	ck_assert_uint_le(rxw_send_deadline(&call->p, b.out.now), not_before);
	bench_free(&b);
}
END_TEST

START_TEST(fast_paths_are_not_paced)
{
	setup();
	call->p.tx.cc.cwnd = call->p.tx.cc.ssthresh = 100;
	call->p.tx.window = 255;
	call->p.tx.edge = 256;
	rxw_rtt_seed(&call->p.tx.rtt, 900000, 1000);
	bench_write(call, 45, 100, false);
	bench_write(call, 45, 100, false);
	ck_assert_int_eq(next(64), RXW_BURST_READY);
	ck_assert_uint_eq(burst.count, 45);
	done(45, 0);
	ck_assert_int_eq(next(64), RXW_BURST_READY);
	ck_assert_uint_eq(burst.count, 45);
	done(45, 0);
	bench_free(&b);
}
END_TEST

/* An RTT that grew on a short path counts only if it loses packets, too. */
START_TEST(long_waits_are_not_paced)
{
	setup();
	call->p.tx.cc.cwnd = call->p.tx.cc.ssthresh = 200;
	call->p.tx.window = 255;
	call->p.tx.edge = 256;
	bench_write(call, 1, 100, false);
	rxw_pcall_flush(&call->p, &b.out);
	ck_assert_uint_eq(bench_send(call), 1);
	b.out.now += 900000;
	bench_get_ack(&b, c, 1, 2, call->p.conn->serial, RXW_ACK_REQUESTED, "", 255);
	ck_assert_uint_eq(atomic_load(&c->p.peer->least_rtt), 900000);
	for (unsigned i = 0; i < 50; i++)
		rxw_rtt_sample(&call->p.tx.rtt, 100 * RXW_MS);
	ck_assert_uint_gt(call->p.tx.rtt.srtt, 90 * RXW_MS);
	for (unsigned i = 0; i < 4; i++)
		bench_write(call, 45, 100, false);
	ck_assert_int_eq(next(64), RXW_BURST_READY);
	ck_assert_uint_eq(burst.count, 45);
	done(45, 0);
	/* All calls to an address share what one of them learned. */
	rxw_rtt_seed(&call->p.tx.rtt, 100 * RXW_MS, RXW_MS);
	call->p.tx.rtt.min = 0;
	ck_assert_int_eq(next(64), RXW_BURST_READY);
	ck_assert_uint_eq(burst.count, 45);
	done(45, 0);
	call->p.tx.losses = true;
	ck_assert_int_eq(next(64), RXW_BURST_READY);
	ck_assert_uint_le(burst.count, 8);
	done(burst.count, 0);
	bench_free(&b);
}
END_TEST

/* The same bytes are never in two bursts at once. */
START_TEST(busy_while_a_burst_is_out)
{
	struct rxw_burst first;

	setup();
	bench_write(call, 20, 100, false);
	ck_assert_int_eq(next(64), RXW_BURST_READY);
	first = burst;
	ck_assert_uint_eq(burst.count, 4);
	bench_pass(&b, 1200 * RXW_MS); /* RTO */
	ck_assert_int_eq(next(64), RXW_BURST_BUSY);
	ck_assert(!rxw_pcall_sendable(&call->p, b.out.now));
	call->events = 0;
	rxw_pcall_burst_done(&call->p, &first, 4, 0, &b.out);
	bench_settle(&b);
	ck_assert(call->events & RXW_OUT_SEND);
	ck_assert_int_eq(next(64), RXW_BURST_READY);
	ck_assert(burst.retransmission);
	ck_assert_uint_eq(burst.count, 1);
	ck_assert_uint_eq(burst.first_seq, 1);
	done(1, 0);
	bench_free(&b);
}
END_TEST

START_TEST(bytes_outlive_their_acknowledgement)
{
	setup();
	bench_write(call, 4, 100, true);
	ck_assert_int_eq(next(64), RXW_BURST_READY);
	bench_get_data(&b, c, 1, 1, RXW_LAST_PACKET, 10); /* the reply: all is acknowledged */
	ck_assert_uint_eq(rxw_pcall_queued(&call->p), 0);
	ck_assert_uint_gt(rxw_pool_live(b.pool), 0);
	for (unsigned i = 0; i < 4; i++)
		ck_assert_uint_eq(burst.data[i * 128 + 28], i + 1);
	done(4, 0);
	bench_free(&b);
}
END_TEST

START_TEST(refused_by_the_system)
{
	setup();
	bench_write(call, 20, 100, false);
	ck_assert_int_eq(next(64), RXW_BURST_READY);
	done(1, EAGAIN);
	bench_settle(&b);
	ck_assert_uint_eq(call->p.tx.flight, 1);
	ck_assert_uint_eq(call->p.tx.lost, 3);
	ck_assert_int_eq(next(64), RXW_BURST_PACED);
	b.out.now = not_before;
	ck_assert_int_eq(next(64), RXW_BURST_READY);
	ck_assert_uint_eq(burst.first_seq, 2);
	ck_assert_uint_eq(burst.count, 3);
	ck_assert(!burst.retransmission); /* they were never sent */
	done(3, 0);
	ck_assert_uint_eq(b.stats.retransmitted, 0);
	ck_assert_uint_eq(b.stats.loss_events, 0);
	ck_assert_uint_eq(call->p.tx.cc.cwnd, 4);
	bench_free(&b);
}
END_TEST

/* A device that refuses every packet is not asked a thousand times a second, and the timeout expires. */
START_TEST(refused_for_ever)
{
	unsigned tries = 0;
	uint64_t end;

	setup();
	bench_write(call, 20, 100, false);
	end = b.out.now + 10 * RXW_SEC;
	while (b.out.now < end && tries < 10000 && call->p.error == 0) {
		if (next(64) == RXW_BURST_READY) {
			done(0, ENOBUFS);
			tries++;
		}
		bench_pass(&b, RXW_MS);
	}
	ck_assert_uint_lt(tries, 400);
	ck_assert_uint_gt(b.stats.rto_events, 1);
	bench_free(&b);
}
END_TEST

/*
 * The local system reports a smaller path MTU: sent packets are fragmented, the rest is cut anew.
 */
START_TEST(too_large)
{
	setup();
	bench_write(call, 10, 1416, false);
	ck_assert_int_eq(next(64), RXW_BURST_READY);
	done(0, EMSGSIZE);
	bench_settle(&b);
	ck_assert_uint_eq(rxw_pcall_datagram_size(&call->p), 1200);
	ck_assert_int_eq(next(64), RXW_BURST_READY);
	ck_assert(burst.fragment);
	done(burst.count, 0);
	bench_free(&b);
}
END_TEST

/* An unvalidated address gets at most three times what it sent. */
START_TEST(three_times)
{
	struct bench_packet *k;
	uint64_t bytes = 0;

	bench_init(&b, false);
	c = bench_conn(&b, BENCH_EPOCH, BENCH_CID, 7001);
	bench_get_data(&b, c, 1, 1, RXW_LAST_PACKET, 1000);
	call = (struct bench_call *)bench_channel(c, 0);
	bench_read(call);
	call->p.tx.cc.cwnd = 20;
	bench_write(call, 20, 1000, true);
	while ((k = bench_next(&b)) != NULL && k->h.type == RXW_DATA)
		bytes += k->length + 28;
	ck_assert_uint_eq(bytes, 2 * 1056); /* the PING counts, too */
	ck_assert_ptr_nonnull(k);
	ck_assert_uint_le(bytes + k->length + 28, 3 * 1056);
	ck_assert_uint_eq(k->ack.reason, RXW_ACK_PING);
	ck_assert(k->h.flags & RXW_REQUEST_ACK);
	bench_nothing(&b);
	/* The answer that names it validates the address, and the rest is sent. */
	bench_get_ack(&b, c, 1, 1, k->h.serial, RXW_ACK_PING_RESPONSE, "", 255);
	ck_assert(rxw_peer_validated(c->p.peer, b.out.now));
	ck_assert_uint_eq(b.sent[b.count - 1].h.type, RXW_DATA);
	ck_assert_uint_ge(call->p.tx.nxt, 18);
	bench_free(&b);
}
END_TEST

/* The reply to a request of 1,000 bytes, up to the limit. Returns the serial of the PING. */
static uint32_t ask_for_much(unsigned port)
{
	struct bench_packet *k;

	c = bench_conn(&b, BENCH_EPOCH, BENCH_CID, port);
	bench_get_data(&b, c, 1, 1, RXW_LAST_PACKET, 1000);
	call = (struct bench_call *)bench_channel(c, 0);
	bench_read(call);
	bench_write(call, 20, 1000, true);
	rxw_pcall_finish(&call->p, &b.out);
	for (uint32_t i = 1; i <= 2; i++)
		ck_assert_uint_eq(bench_expect(&b, RXW_DATA)->h.serial, i);
	k = bench_expect(&b, RXW_ACK);
	ck_assert_uint_eq(k->ack.reason, RXW_ACK_PING);
	bench_nothing(&b);
	return k->h.serial;
}

/* Serials count from 1 and are easy to guess. Only that of the PING is secret. */
START_TEST(guessed_serials)
{
	uint32_t first, second;

	bench_init(&b, false);
	b.params.secret[0] = 1;
	second = ask_for_much(7002);
	first = ask_for_much(7001);
	ck_assert_uint_ne(first, second); /* of the same ids and time, but another address */
	for (uint32_t serial = 1; serial <= 1000; serial++)
		bench_get_ack(&b, c, 1, 1, serial, RXW_ACK_PING_RESPONSE, "11", 32);
	for (unsigned reason = 1; reason <= 9; reason++)
		if (reason != RXW_ACK_PING)
			bench_get_ack(&b, c, 1, 2, 2, reason, "1", 32);
	bench_get_ack(&b, c, 1, 1, second, RXW_ACK_PING_RESPONSE, "", 32);
	ck_assert(!rxw_peer_validated(c->p.peer, b.out.now));
	ck_assert_uint_eq(call->p.tx.nxt, 3);
	/* Older than all serials of the connection, past and future, as receivers compare them. */
	ck_assert_int_lt((int32_t)(first - 1), 0);
	ck_assert_int_gt((int32_t)(1000000 - first), 0);
	bench_get_ack(&b, c, 1, 2, first, RXW_ACK_PING_RESPONSE, "1", 32);
	ck_assert(rxw_peer_validated(c->p.peer, b.out.now));
	/* It consumed no ordinary serial. */
	ck_assert_uint_eq(bench_expect(&b, RXW_DATA)->h.serial, 3);
	bench_free(&b);
}
END_TEST

/*
 * One more packet of a long reply, and its ACK. Returns the serial of a PING that this draws, or 0.
 */
static uint32_t go_on_for(uint64_t ns)
{
	struct bench_packet *k;
	uint32_t ping = 0;

	bench_pass(&b, ns);
	b.count = b.next = 0;
	bench_write(call, 1, 1000, false);
	bench_expect(&b, RXW_DATA);
	bench_nothing(&b);
	bench_get_ack(&b, c, 1, call->p.tx.nxt, c->p.serial, RXW_ACK_IDLE, "", 32);
	while ((k = bench_next(&b)) != NULL) {
		ck_assert_uint_eq(k->ack.reason, RXW_ACK_PING);
		ck_assert_uint_eq(ping, 0);
		ping = k->h.serial;
	}
	return ping;
}

/* During a long reply the client is asked again before its validation expires. */
START_TEST(proof_is_renewed)
{
	uint64_t proven;
	uint32_t ping;

	bench_init(&b, false);
	c = bench_conn(&b, BENCH_EPOCH, BENCH_CID, 7001);
	bench_get_data(&b, c, 1, 1, RXW_LAST_PACKET, 1000);
	call = (struct bench_call *)bench_channel(c, 0);
	bench_read(call);
	rxw_peer_set_validated(c->p.peer, b.out.now);
	for (unsigned i = 0; i < 3; i++) {
		proven = b.out.now;
		while (b.out.now < proven + 29 * RXW_SEC)
			ck_assert_uint_eq(go_on_for(RXW_SEC), 0);
		ping = go_on_for(RXW_SEC);
		ck_assert_uint_ne(ping, 0);
		/*
		 * An ACK of the data does not answer the PING, which is sent again once a second.
		 */
		ck_assert_uint_eq(go_on_for(RXW_SEC / 2), 0);
		ck_assert_uint_ne(go_on_for(RXW_SEC / 2), 0);
		ck_assert(!rxw_peer_validated(c->p.peer, proven + 60 * RXW_SEC));
		bench_get_ack(&b, c, 1, call->p.tx.nxt, ping, RXW_ACK_PING_RESPONSE, "", 32);
		ck_assert(rxw_peer_validated(c->p.peer, b.out.now + 59 * RXW_SEC));
	}
	bench_free(&b);
}
END_TEST

static unsigned data_of(uint32_t cid)
{
	unsigned n = 0;

	for (unsigned i = 0; i < b.count; i++)
		n += b.sent[i].h.type == RXW_DATA && b.sent[i].h.cid == cid;
	return n;
}

/*
 * Of two connections the first uses up the budget of their address, so that the second cannot even
 * send a PING. It continues soon after the first PING was answered.
 */
START_TEST(proof_of_another)
{
	struct bench_call *second;
	struct bench_conn *other;
	struct bench_packet *k;
	uint32_t ping = 0;

	bench_init(&b, false);
	c = bench_conn(&b, BENCH_EPOCH, BENCH_CID, 7001);
	other = bench_conn(&b, BENCH_EPOCH, BENCH_CID + 4, 7001);
	bench_get_data(&b, c, 1, 1, RXW_LAST_PACKET, 100);
	bench_get_data(&b, other, 1, 1, RXW_LAST_PACKET, 100);
	call = (struct bench_call *)bench_channel(c, 0);
	second = (struct bench_call *)bench_channel(other, 0);
	bench_read(call);
	bench_read(second);
	bench_write(call, 20, 780,
		    true); /* both requests paid for one of these and a PING */
	bench_write(second, 20, 780, true);
	while ((k = bench_next(&b)) != NULL) {
		ck_assert_uint_eq(k->h.cid, BENCH_CID);
		if (k->h.type == RXW_ACK)
			ping = k->h.serial;
	}
	ck_assert_uint_ne(ping, 0);
	ck_assert_uint_eq(data_of(BENCH_CID), 1);
	bench_pass(&b, 20 * RXW_MS);
	ck_assert_uint_eq(data_of(BENCH_CID + 4), 0);
	bench_get_ack(&b, c, 1, 1, ping, RXW_ACK_PING_RESPONSE, "", 32);
	ck_assert_uint_gt(data_of(BENCH_CID), 1);
	/* It checks again after twice the time waited so far. */
	bench_pass(&b, 20 * RXW_MS);
	ck_assert_uint_gt(data_of(BENCH_CID + 4), 0);
	bench_free(&b);
}
END_TEST

START_TEST(unanswered_proof)
{
	unsigned data = 0, pings = 0;

	bench_init(&b, false);
	c = bench_conn(&b, BENCH_EPOCH, BENCH_CID, 7001);
	bench_get_data(&b, c, 1, 1, RXW_LAST_PACKET, 100);
	call = (struct bench_call *)bench_channel(c, 0);
	bench_read(call);
	bench_write(call, 20, 1000, true);
	rxw_pcall_finish(&call->p, &b.out);
	bench_pass(&b, 30 * RXW_SEC);
	for (unsigned i = 0; i < b.count; i++) {
		data += b.sent[i].h.type == RXW_DATA;
		pings += b.sent[i].h.type == RXW_ACK && b.sent[i].ack.reason == RXW_ACK_PING;
	}
	ck_assert_uint_eq(data, 0);
	ck_assert_uint_ge(pings, 1);
	ck_assert_uint_le(pings, 3);
	ck_assert_int_eq(call->p.error, RXW_CALL_DEAD);
	bench_free(&b);
}
END_TEST

START_TEST(size_of_datagrams)
{
	setup();
	ck_assert_uint_eq(rxw_pcall_datagram_size(&call->p), 1444);
	call->p.tx.mtu.confirmed = 8000;
	ck_assert_uint_eq(rxw_pcall_datagram_size(&call->p), 1444); /* the peer announced none */
	c->p.peer_max_mtu = 5692;
	ck_assert_uint_eq(rxw_pcall_datagram_size(&call->p), 5692);
	call->p.tx.mtu.confirmed = 1200;
	ck_assert_uint_eq(rxw_pcall_datagram_size(&call->p), 1200);
	bench_free(&b);
}
END_TEST

/*
 * --- a class with changing keys: a packet's word is its key's, the first byte marks it sealed ---
 */

static struct {
	uint16_t key;
	unsigned packets, sealed; /* seen, and sealed again */
	bool fails;
} keys;

static int renew(void *conn, struct rxw_security_packet *packets, size_t count)
{
	(void)conn;
	for (size_t i = 0; i < count; i++, keys.packets++) {
		ck_assert_uint_eq(packets[i].call, 1);
		ck_assert_uint_eq(packets[i].channel, 0);
		ck_assert_uint_eq(packets[i].length, 1000);
		ck_assert_uint_eq(packets[i].data[1], (uint8_t)(packets[i].seq + 1));
		if (packets[i].spare == keys.key)
			continue;
		packets[i].spare = keys.key;
		packets[i].data[0] = (uint8_t)keys.key;
		keys.sealed++;
	}
	return keys.fails ? -1 : 0;
}

static struct rxw_security changing = {
	.class = {.size = sizeof(struct rxw_security_class), .name = "changing", .renew = renew}};

static void setup_keys(void)
{
	memset(&keys, 0, sizeof(keys));
	bench_init(&b, true);
	b.auto_send = false;
	b.security = &changing;
	c = bench_conn(&b, BENCH_EPOCH, BENCH_CID, 7000);
	call = bench_begin(&b, c);
}

/* Each packet, new or retransmitted, is passed to the class when it is sent, and only then. */
START_TEST(keys_change_in_the_queue)
{
	struct bench_packet *k;

	setup_keys();
	bench_write(call, 45, 1000, false);
	ck_assert_uint_eq(keys.packets, 0);
	keys.key = 0x102;
	ck_assert_uint_eq(bench_send(call), 4);
	ck_assert_uint_eq(keys.packets, 4);
	ck_assert_uint_eq(keys.sealed, 4);
	for (unsigned i = 1; i <= 4; i++) {
		k = bench_expect(&b, RXW_DATA);
		ck_assert_uint_eq(k->h.spare, 0x102);
		ck_assert_uint_eq(k->bytes[28], 0x02);
		ck_assert_uint_eq(k->bytes[29], (uint8_t)(i + 1));
	}
	/* The first is lost: it is sent under the current key. */
	keys.key = 0x103;
	keys.packets = keys.sealed = 0;
	bench_get_ack(&b, c, 1, 1, 4, RXW_ACK_OUT_OF_SEQUENCE, "nyyy", 4);
	bench_pass(&b, RXW_SEC);
	ck_assert_uint_eq(bench_send(call), 1);
	ck_assert_uint_eq(keys.packets, 1);
	ck_assert_uint_eq(keys.sealed, 1);
	k = bench_expect(&b, RXW_DATA);
	ck_assert_uint_eq(k->h.seq, 1);
	ck_assert_uint_eq(k->h.spare, 0x103);
	ck_assert_uint_eq(k->bytes[28], 0x03);
	bench_free(&b);
}
END_TEST

/*
 * A packet that the class cannot reseal is not sent, and ends its call, whether new or sent before.
 */
START_TEST(keys_that_fail)
{
	for (unsigned sent = 0; sent < 2; sent++) {
		setup_keys();
		bench_write(call, 4, 1000, true);
		if (sent) {
			ck_assert_uint_eq(bench_send(call), 4);
			for (unsigned i = 0; i < 4; i++)
				bench_expect(&b, RXW_DATA);
			bench_get_ack(&b, c, 1, 1, 4, RXW_ACK_OUT_OF_SEQUENCE, "nyyy", 4);
			bench_pass(&b, RXW_SEC);
		}
		keys.fails = true;
		ck_assert_int_eq(next(45), RXW_BURST_NONE);
		bench_settle(&b);
		ck_assert_int_eq(call->p.error, RXW_USER_ABORT);
		if (sent)
			bench_expect(&b, RXW_ABORT);
		bench_nothing(&b);
		bench_free(&b);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("transmit");
	TCase *tcase = tcase_create("transmit");

	suite_add_tcase(suite, tcase);
	tcase_set_timeout(tcase, 0);
	tcase_add_test(tcase, first_flight);
	tcase_add_test(tcase, never_beyond_the_windows);
	tcase_add_test(tcase, bursts_keep_to_runs);
	tcase_add_test(tcase, thresholds);
	tcase_add_test(tcase, thresholds_where_packets_are_lost);
	tcase_add_test(tcase, urged_by_a_writer_that_waits);
	tcase_add_test(tcase, held_for_a_millisecond);
	tcase_add_test(tcase, end_of_a_reply_asks_for_nothing);
	tcase_add_test(tcase, small_requests_do_not_ask);
	tcase_add_test(tcase, small_window_asks_always);
	tcase_add_test(tcase, pacing);
	tcase_add_test(tcase, late_trains_are_longer);
	tcase_add_test(tcase, idle_writers_have_short_trains);
	tcase_add_test(tcase, full_windows_are_not_late);
	tcase_add_test(tcase, paced_after_a_move);
	tcase_add_test(tcase, model_paces_lost_packets);
	tcase_add_test(tcase, fast_paths_are_not_paced);
	tcase_add_test(tcase, long_waits_are_not_paced);
	tcase_add_test(tcase, busy_while_a_burst_is_out);
	tcase_add_test(tcase, bytes_outlive_their_acknowledgement);
	tcase_add_test(tcase, refused_by_the_system);
	tcase_add_test(tcase, refused_for_ever);
	tcase_add_test(tcase, too_large);
	tcase_add_test(tcase, three_times);
	tcase_add_test(tcase, guessed_serials);
	tcase_add_test(tcase, proof_is_renewed);
	tcase_add_test(tcase, proof_of_another);
	tcase_add_test(tcase, unanswered_proof);
	tcase_add_test(tcase, size_of_datagrams);
	tcase_add_test(tcase, keys_change_in_the_queue);
	tcase_add_test(tcase, keys_that_fail);
	return bench_main(suite);
}
