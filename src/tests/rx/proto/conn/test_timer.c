/* SPDX-License-Identifier: BSD-2-Clause */
/* Timers of a call: retransmission, probes, keepalive, dead, idle, hard (4.4, 6). */
#include <errno.h>
#include <string.h>

#include "tests/rx/proto/bench.h"

static struct bench b;
static struct bench_conn *c;
static struct bench_call *call;

static void client(unsigned packets, bool last)
{
	bench_init(&b, true);
	c = bench_conn(&b, BENCH_EPOCH, BENCH_CID, 7000);
	call = bench_begin(&b, c);
	if (packets > 0)
		bench_write(call, packets, 100, last);
	b.next = b.count;
}

static void server(void)
{
	bench_init(&b, false);
	c = bench_conn(&b, BENCH_EPOCH, BENCH_CID, 7001);
	rxw_peer_set_validated(c->p.peer, b.out.now);
	bench_get_data(&b, c, 1, 1, 0, 10);
	call = (struct bench_call *)bench_channel(c, 0);
	bench_read(call);
	b.next = b.count;
}

/* Packets of one type sent since the last call. */
static unsigned count(unsigned type)
{
	unsigned n = 0;

	for (; b.next < b.count; b.next++)
		n += b.sent[b.next].h.type == type;
	return n;
}

START_TEST(retransmission_timeout)
{
	uint64_t start, gap = 0, last;

	client(4, false);
	start = last = b.out.now;
	/*
	 * RTT unknown: 1 s plus the peer's delay, then doubled each time. One packet, the lowest.
	 */
	for (unsigned i = 0; i < 3; i++) {
		struct bench_packet *k;

		while ((k = bench_next(&b)) == NULL || k->h.type != RXW_DATA)
			bench_pass(&b, 10 * RXW_MS);
		ck_assert_uint_eq(k->h.seq, 1);
		ck_assert_uint_eq(k->h.serial > 4, 1);
		ck_assert(k->h.flags & RXW_REQUEST_ACK);
		if (i == 0)
			ck_assert_uint_le(k->at - start, 1120 * RXW_MS);
		ck_assert_uint_ge(k->at - last, i == 0 ? 1100 * RXW_MS : gap * 19 / 10);
		gap = k->at - last;
		last = k->at;
	}
	ck_assert_uint_eq(call->p.tx.cc.cwnd, 1);
	ck_assert_uint_eq(b.stats.rto_events, 3);
	ck_assert_uint_eq(call->p.tx.flight, 4); /* the others do not count as lost yet */
	/* Any progress resets the backoff. */
	bench_get_ack(&b, c, 1, 2, 0, RXW_ACK_DELAY, "", 32);
	ck_assert_uint_eq(call->p.tx.backoff, 0);
	bench_free(&b);
}
END_TEST

START_TEST(spurious_timeout)
{
	client(4, false);
	call->p.tx.cc.ssthresh = 100;
	bench_pass(&b, 1200 * RXW_MS);
	ck_assert_uint_eq(call->p.tx.cc.cwnd, 1);
	/* The ACK names an original: late, not lost. */
	bench_get_ack(&b, c, 1, 3, 2, RXW_ACK_REQUESTED, "", 32);
	ck_assert_uint_ge(call->p.tx.cc.cwnd, 4);
	ck_assert_uint_eq(b.stats.spurious_losses, 1);
	bench_free(&b);
}
END_TEST

START_TEST(true_timeout)
{
	uint32_t serial;

	client(4, false);
	bench_pass(&b, 1200 * RXW_MS);
	serial = bench_expect(&b, RXW_DATA)->h.serial;
	b.out.now += 10 * RXW_MS;
	/* Only the retransmission arrived: the rest is lost as well, and is sent by slow start. */
	bench_get_ack(&b, c, 1, 2, serial, RXW_ACK_REQUESTED, "", 32);
	bench_pass(&b, 20 * RXW_MS);
	ck_assert_uint_eq(b.stats.spurious_losses, 0);
	ck_assert_uint_eq(bench_expect(&b, RXW_DATA)->h.seq, 2);
	bench_free(&b);
}
END_TEST

START_TEST(tail_loss_probe)
{
	struct bench_packet *k;

	client(0, false);
	rxw_rtt_seed(&call->p.tx.rtt, 20 * RXW_MS, RXW_MS);
	bench_write(call, 3, 100, false);
	b.next = b.count;
	ck_assert(b.sent[2].h.flags & RXW_REQUEST_ACK); /* so the peer answers without delay */
	bench_pass(&b, 39 * RXW_MS);
	bench_nothing(&b);
	bench_pass(&b, 2 * RXW_MS); /* 2 * srtt */
	k = bench_expect(&b, RXW_DATA);
	ck_assert_uint_eq(k->h.seq, 3);
	ck_assert(k->h.flags & RXW_REQUEST_ACK);
	ck_assert_uint_eq(b.stats.rto_events, 0);
	ck_assert_uint_eq(call->p.tx.cc.cwnd, 4);
	/* One probe, then the timeout. */
	while (b.next == b.count)
		bench_pass(&b, 10 * RXW_MS);
	ck_assert_uint_eq(bench_expect(&b, RXW_DATA)->h.seq, 1);
	ck_assert_uint_eq(b.stats.rto_events, 1);
	bench_free(&b);
}
END_TEST

/* ACKs of packets before the tail do not delay its probe by their own lateness. */
START_TEST(probe_counts_from_the_tail)
{
	client(0, false);
	rxw_rtt_seed(&call->p.tx.rtt, 20 * RXW_MS, RXW_MS);
	bench_write(call, 3, 100, false);
	b.next = b.count;
	bench_pass(&b, 30 * RXW_MS);
	bench_get_ack(&b, c, 1, 3, 0, RXW_ACK_DELAY, "", 32);
	bench_pass(&b, 9 * RXW_MS);
	bench_nothing(&b);
	bench_pass(&b, 2 * RXW_MS);
	ck_assert_uint_eq(bench_expect(&b, RXW_DATA)->h.seq, 3);
	bench_free(&b);
	/* An eighth of a round trip is left for its own ACK. */
	client(0, false);
	rxw_rtt_seed(&call->p.tx.rtt, 80 * RXW_MS, RXW_MS);
	bench_write(call, 3, 100, false);
	b.next = b.count;
	bench_pass(&b, 155 * RXW_MS);
	bench_get_ack(&b, c, 1, 3, 0, RXW_ACK_DELAY, "", 32);
	bench_pass(&b, 9 * RXW_MS);
	bench_nothing(&b);
	bench_pass(&b, 2 * RXW_MS);
	ck_assert_uint_eq(bench_expect(&b, RXW_DATA)->h.seq, 3);
	bench_free(&b);
}
END_TEST

/* A probe sends new data if there is any. */
START_TEST(probe_with_new_data)
{
	client(0, false);
	rxw_rtt_seed(&call->p.tx.rtt, 20 * RXW_MS, RXW_MS);
	bench_write(call, 10, 100, false);
	ck_assert_uint_eq(call->p.tx.nxt, 5);
	b.next = b.count;
	bench_pass(&b, 150 * RXW_MS);
	ck_assert_uint_eq(bench_expect(&b, RXW_DATA)->h.seq, 5);
	bench_free(&b);
}
END_TEST

/* A probe respects the peer's window like other packets. */
START_TEST(probe_within_the_window)
{
	client(0, false);
	rxw_rtt_seed(&call->p.tx.rtt, 20 * RXW_MS, RXW_MS);
	bench_write(call, 4, 100, false);
	bench_get_ack(&b, c, 1, 1, 0, RXW_ACK_DELAY, "", 2);
	b.next = b.count;
	bench_pass(&b, 150 * RXW_MS);
	ck_assert_uint_eq(bench_expect(&b, RXW_DATA)->h.seq, 2);
	bench_free(&b);
}
END_TEST

START_TEST(keepalive_and_death)
{
	unsigned pings;

	client(1, true);
	bench_get_ack(&b, c, 1, 2, 1, RXW_ACK_DELAY, "", 32);
	bench_pass(&b, 6 * RXW_SEC);
	pings = count(RXW_ACK);
	ck_assert_uint_ge(pings, 2); /* every two seconds ±10 % */
	ck_assert_uint_le(pings, 3);
	ck_assert_uint_eq(b.sent[b.count - 1].ack.reason, RXW_ACK_PING);
	/* Answers keep it alive. */
	for (unsigned i = 0; i < 20; i++) {
		bench_pass(&b, 2 * RXW_SEC);
		bench_get_ack(&b, c, 1, 2, 0, RXW_ACK_PING_RESPONSE, "", 32);
	}
	ck_assert_int_eq(call->p.error, 0);
	b.next = b.count;
	bench_pass(&b, 13 * RXW_SEC);
	ck_assert_int_eq(call->p.error, RXW_CALL_DEAD);
	ck_assert_int_eq(call->p.error_origin, RXW_ORIGIN_LOCAL);
	ck_assert_uint_eq(b.stats.calls_timed_out, 1);
	ck_assert_uint_eq(count(RXW_ABORT), 0);
	bench_free(&b);
}
END_TEST

/*
 * A client's keepalives for `seconds`, through a NAT that forgets a mapping after a silence of
 * `life`. The server answers a PING from a new port with a PING of its own. *least, *most: silences
 * before keepalives; returns how many came too late.
 */
static unsigned behind_nat(unsigned seconds, uint64_t life, uint64_t *least, uint64_t *most)
{
	uint64_t end = b.out.now + seconds * RXW_SEC, before = call->p.time.last_sent;
	unsigned broke = 0;

	*least = RXW_NEVER;
	*most = 0;
	while (b.out.now < end) {
		b.count = b.next = 0;
		bench_pass(&b, 20 * RXW_MS);
		ck_assert_int_eq(call->p.error, 0);
		if (b.count == 0)
			continue;
		ck_assert_uint_eq(b.sent[0].ack.reason, RXW_ACK_PING);
		*least = rxw_min64(*least, b.sent[0].at - before);
		*most = rxw_max64(*most, b.sent[0].at - before);
		if (b.sent[0].at - before > life) {
			broke++;
			bench_get_ack(&b, c, 1, 2, 0, RXW_ACK_PING, "", 32);
		} else {
			bench_get_ack(&b, c, 1, 2, 0, RXW_ACK_PING_RESPONSE, "", 32);
		}
		before = call->p.time.last_sent;
	}
	return broke;
}

START_TEST(keepalive_follows_the_mapping)
{
	uint64_t least, most;

	client(1, true);
	bench_get_ack(&b, c, 1, 2, 1, RXW_ACK_DELAY, "", 32);
	/* It lasts: from a sixth of the dead time to a third. */
	ck_assert_uint_eq(behind_nat(60, RXW_NEVER, &least, &most), 0);
	ck_assert_uint_ge(least, 1800 * RXW_MS);
	ck_assert_uint_le(least, 2250 * RXW_MS);
	ck_assert_uint_ge(most, 3600 * RXW_MS);
	ck_assert_uint_le(most, 4450 * RXW_MS);
	/* Then it is forgotten after three seconds: hardly ever again. */
	ck_assert_uint_ge(behind_nat(30, 3 * RXW_SEC, &least, &most), 1);
	ck_assert_uint_le(least, 2250 * RXW_MS);
	ck_assert_uint_le(behind_nat(120, 3 * RXW_SEC, &least, &most), 1);
	ck_assert_uint_le(most, 3300 * RXW_MS);
	/* A dead server is found as early as ever. */
	b.count = b.next = 0;
	bench_pass(&b, 13 * RXW_SEC);
	ck_assert_int_eq(call->p.error, RXW_CALL_DEAD);
	ck_assert_uint_ge(count(RXW_ACK), 3);
	bench_free(&b);
}
END_TEST

START_TEST(keepalive_of_a_server)
{
	uint64_t heard;

	server();
	call->p.timer.dead = 240 * RXW_SEC;
	heard = call->p.time.last_heard;
	/* A move in the middle of traffic tells nothing of the mapping's life. */
	rxw_pcall_remapped(&call->p, heard + RXW_SEC);
	ck_assert_uint_eq(call->p.timer.quiet, 0);
	rxw_pcall_remapped(&call->p, heard + 60 * RXW_SEC);
	ck_assert_uint_eq(call->p.timer.quiet, 30 * RXW_SEC);
	ck_assert_uint_le(call->p.timer.ping, heard + 90 * RXW_SEC);
	/* Ten seconds at least, however short it was. */
	rxw_pcall_remapped(&call->p, heard + 12 * RXW_SEC);
	ck_assert_uint_eq(call->p.timer.quiet, 10 * RXW_SEC);
	bench_free(&b);
}
END_TEST

START_TEST(nothing_before_the_first_packet)
{
	client(0, false);
	bench_pass(&b, 100 * RXW_SEC);
	bench_nothing(&b);
	ck_assert_int_eq(call->p.error, 0);
	bench_write(call, 1, 10, true);
	ck_assert_int_eq(call->p.error, 0);
	bench_pass(&b, 11 * RXW_SEC);
	ck_assert_int_eq(call->p.error, 0);
	bench_pass(&b, 2 * RXW_SEC);
	ck_assert_int_eq(call->p.error, RXW_CALL_DEAD);
	bench_free(&b);
}
END_TEST

static void answer_pings(uint64_t ns)
{
	uint64_t end = b.out.now + ns;

	while (b.out.now < end && call->p.error == 0) {
		b.count = b.next = 0;
		rxw_peer_set_validated(c->p.peer, b.out.now);
		bench_pass(&b, RXW_SEC);
		if (call->p.error != 0)
			break;
		bench_get_ack(&b, c, 1, call->p.tx.una, 0, RXW_ACK_PING_RESPONSE, "", 32);
	}
}

START_TEST(idle_server)
{
	server();
	answer_pings(55 * RXW_SEC);
	ck_assert_int_eq(call->p.error, 0);
	answer_pings(10 * RXW_SEC);
	ck_assert_int_eq(call->p.error, RXW_CALL_TIMEOUT);
	ck_assert_int_eq(b.sent[b.count - 1].h.type, RXW_ABORT);
	ck_assert_int_eq(b.sent[b.count - 1].code, RXW_CALL_TIMEOUT);
	bench_free(&b);
	/* A handler that works on a complete request is not idle. */
	server();
	bench_get_data(&b, c, 1, 2, RXW_LAST_PACKET, 10);
	bench_read(call);
	answer_pings(300 * RXW_SEC);
	ck_assert_int_eq(call->p.error, 0);
	bench_free(&b);
}
END_TEST

START_TEST(idle_client)
{
	bench_init(&b, true);
	b.params.client_idle = 20 * RXW_SEC;
	c = bench_conn(&b, BENCH_EPOCH, BENCH_CID, 7000);
	call = bench_begin(&b, c);
	bench_write(call, 1, 10, true);
	bench_get_ack(&b, c, 1, 2, 1, RXW_ACK_DELAY, "", 32);
	answer_pings(18 * RXW_SEC);
	ck_assert_int_eq(call->p.error, 0);
	answer_pings(4 * RXW_SEC);
	ck_assert_int_eq(call->p.error, RXW_CALL_TIMEOUT);
	bench_free(&b);
}
END_TEST

START_TEST(hard)
{
	bench_init(&b, true);
	b.params.hard = 30 * RXW_SEC;
	c = bench_conn(&b, BENCH_EPOCH, BENCH_CID, 7000);
	call = bench_begin(&b, c);
	bench_write(call, 1, 10, true);
	bench_get_ack(&b, c, 1, 2, 1, RXW_ACK_DELAY, "", 32);
	answer_pings(28 * RXW_SEC);
	ck_assert_int_eq(call->p.error, 0);
	answer_pings(3 * RXW_SEC);
	ck_assert_int_eq(call->p.error, RXW_CALL_TIMEOUT);
	bench_free(&b);
}
END_TEST

/* The peer is alive, but one packet never gets through. */
START_TEST(no_progress)
{
	uint64_t start;

	client(4, false);
	start = b.out.now;
	answer_pings(200 * RXW_SEC);
	ck_assert_int_eq(call->p.error, RXW_CALL_TIMEOUT);
	ck_assert_uint_ge(b.out.now - start, 60 * RXW_SEC);
	ck_assert_uint_le(b.out.now - start, 65 * RXW_SEC);
	bench_free(&b);
}
END_TEST

/* An ICMP report shortens the dead time, but does not end a call by itself. */
START_TEST(icmp)
{
	client(1, true);
	bench_pass(&b, RXW_SEC / 2);
	rxw_pconn_icmp(&c->p, ECONNREFUSED, 0, &b.out);
	ck_assert_int_eq(call->p.error, 0);
	bench_pass(&b, 2 * RXW_SEC);
	ck_assert_int_eq(call->p.error, 0);
	bench_pass(&b, 3 * RXW_SEC);
	ck_assert_int_eq(call->p.error, RXW_CALL_DEAD);
	bench_free(&b);
	/* Any packet from the peer reverts it. */
	client(1, true);
	rxw_pconn_icmp(&c->p, ECONNREFUSED, 0, &b.out);
	b.out.now += RXW_SEC;
	bench_get_ack(&b, c, 1, 2, 1, RXW_ACK_DELAY, "", 32);
	bench_pass(&b, 10 * RXW_SEC);
	ck_assert_int_eq(call->p.error, 0);
	bench_free(&b);
}
END_TEST

START_TEST(silent_server_call)
{
	server();
	bench_pass(&b, 13 * RXW_SEC);
	ck_assert_int_eq(call->p.error, RXW_CALL_DEAD);
	ck_assert_uint_eq(count(RXW_ABORT), 0);
	ck_assert(call->events & RXW_OUT_DONE);
	bench_free(&b);
}
END_TEST

/* Two timeouts of packets above 1200 bytes: the path may drop them. */
START_TEST(black_hole)
{
	uint32_t cwnd;

	client(0, false);
	bench_write(call, 4, 1416, false);
	bench_write(call, 4, 1416, false);
	cwnd = call->p.tx.cc.cwnd;
	for (unsigned i = 0; i < 500 && rxw_pcall_datagram_size(&call->p) != 1200; i++)
		bench_pass(&b, 10 * RXW_MS);
	ck_assert_uint_eq(rxw_pcall_datagram_size(&call->p), 1200);
	/* That was no congestion. */
	ck_assert_uint_ge(call->p.tx.cc.cwnd, cwnd);
	bench_pass(&b, RXW_SEC);
	ck_assert_uint_eq(atomic_load(&c->p.peer->mtu), 1200);
	bench_free(&b);
}
END_TEST

START_TEST(deadline_is_never_late)
{
	client(4, false);
	for (unsigned i = 0; i < 50; i++) {
		uint64_t at = rxw_pcall_deadline(&call->p);

		if (call->p.error != 0)
			break;
		ck_assert_uint_ne(at, UINT64_MAX);
		ck_assert_uint_gt(at, b.out.now);
		b.out.now = at;
		rxw_pcall_timer(&call->p, &b.out);
		bench_settle(&b);
	}
	ck_assert_int_eq(call->p.error, RXW_CALL_DEAD);
	ck_assert_uint_eq(rxw_pcall_deadline(&call->p), UINT64_MAX);
	bench_free(&b);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("calltimer");
	TCase *tcase = tcase_create("calltimer");

	suite_add_tcase(suite, tcase);
	tcase_set_timeout(tcase, 0);
	tcase_add_test(tcase, retransmission_timeout);
	tcase_add_test(tcase, spurious_timeout);
	tcase_add_test(tcase, true_timeout);
	tcase_add_test(tcase, tail_loss_probe);
	tcase_add_test(tcase, probe_counts_from_the_tail);
	tcase_add_test(tcase, probe_with_new_data);
	tcase_add_test(tcase, probe_within_the_window);
	tcase_add_test(tcase, keepalive_and_death);
	tcase_add_test(tcase, keepalive_follows_the_mapping);
	tcase_add_test(tcase, keepalive_of_a_server);
	tcase_add_test(tcase, nothing_before_the_first_packet);
	tcase_add_test(tcase, idle_server);
	tcase_add_test(tcase, idle_client);
	tcase_add_test(tcase, hard);
	tcase_add_test(tcase, no_progress);
	tcase_add_test(tcase, icmp);
	tcase_add_test(tcase, silent_server_call);
	tcase_add_test(tcase, black_hole);
	tcase_add_test(tcase, deadline_is_never_late);
	return bench_main(suite);
}
