/* SPDX-License-Identifier: BSD-2-Clause */
/* The path MTU of a call, black holes, packets that are cut anew (5.5). */
#include <string.h>

#include "tests/rx/proto/bench.h"

static struct bench b;
static struct bench_conn *c;
static struct bench_call *call;

static void ack(uint32_t first, uint32_t serial, unsigned reason, const char *acks)
{
	bench_get_ack(&b, c, 1, first, serial, reason, acks, 255);
}

/* An ACK of all, with this maxMTU. */
static void ack_with(uint32_t serial, unsigned reason, uint32_t max_mtu)
{
	uint8_t bytes[RXW_ACK_MAX_SIZE];
	uint32_t length = bench_ack(&b, bytes, 1, call->p.tx.nxt, serial, reason, 0, "", 255);

	rxw_put32(bytes + length - 16, max_mtu);
	bench_input(&b, c, bytes, length, length);
}

START_TEST(path_mtu_search)
{
	uint32_t size = 0;

	bench_init(&b, true);
	b.params.mtu_ceiling = 8972;
	c = bench_conn(&b, BENCH_EPOCH, BENCH_CID, 7000);
	call = bench_begin(&b, c);
	call->p.tx.cc.cwnd = 100;
	call->p.tx.edge = 256;
	call->p.tx.window = 255;
	for (unsigned i = 0; i < 10 && size == 0; i++) {
		bench_write(call, 20, 100, false);
		b.out.now += RXW_MS;
		/* A peer that takes no more than usual gets no probe. */
		ack_with(c->p.serial, RXW_ACK_REQUESTED, i < 5 ? 1444 : 16384);
		for (unsigned k = 0; k < b.count; k++)
			if (b.sent[k].padding > 0) {
				ck_assert_uint_ge(i, 5);
				size = b.sent[k].length + b.sent[k].padding;
				ck_assert_uint_eq(b.sent[k].ack.reason, RXW_ACK_PING);
				ck_assert(b.sent[k].h.flags & RXW_REQUEST_ACK);
				ack_with(b.sent[k].h.serial, RXW_ACK_PING_RESPONSE, 16384);
			}
		b.count = b.next = 0;
	}
	ck_assert_uint_eq(size, 8972);
	ck_assert_uint_eq(call->p.tx.mtu.confirmed, 8972);
	ck_assert_uint_eq(rxw_pcall_datagram_size(&call->p), 8972);
	ck_assert_uint_eq(atomic_load(&c->p.peer->mtu), 8972);
	bench_free(&b);
}
END_TEST

/* Automatically: never towards this host; more is announced once the peer offers wide windows. */
START_TEST(path_mtu_automatic)
{
	for (unsigned local = 0; local < 2; local++) {
		unsigned probes = 0;

		bench_init(&b, true);
		b.params.mtu_ceiling = 8972;
		b.params.mtu_auto = true;
		b.params.window = 8192;
		c = bench_conn(&b, BENCH_EPOCH, BENCH_CID, 7000);
		c->p.peer->local = local;
		call = bench_begin(&b, c);
		ck_assert_int_eq(call->p.tx.mtu.enabled, !local);
		call->p.tx.cc.cwnd = 100;
		for (unsigned i = 0; i < 8; i++) {
			bench_write(call, 20, 100, false);
			b.out.now += RXW_MS;
			ack_with(c->p.serial, RXW_ACK_REQUESTED, 16384);
			rxw_ack_heard_wide(&call->p, i >= 6);
			for (unsigned k = 0; k < b.count; k++)
				if (b.sent[k].h.type == RXW_ACK) {
					probes += b.sent[k].padding > 0;
					ck_assert_uint_eq(b.sent[k].ack.max_mtu,
							  i >= 7 && !local ? 8972 : 1444);
				}
			b.count = b.next = 0;
		}
		ck_assert_int_eq(probes > 0, !local);
		bench_free(&b);
	}
}
END_TEST

/* Four packets have arrived, and as many as this are on their way. Packets leave when the test says so. */
static void begin_after_four(unsigned packets)
{
	bench_init(&b, true);
	b.auto_send = false;
	b.params.mtu_ceiling = 8972;
	c = bench_conn(&b, BENCH_EPOCH, BENCH_CID, 7000);
	call = bench_begin(&b, c);
	bench_write(call, 4, 1416, false);
	bench_send(call);
	b.out.now += 10 * RXW_MS;
	ack(5, c->p.serial, RXW_ACK_REQUESTED, "");
	bench_write(call, packets, 1416, false);
	bench_send(call);
	b.count = b.next = 0;
}

/*
 * Silence: two PINGs ask whether large packets still arrive. If only the small one is answered, they
 * do not, and nothing is blamed on congestion.
 */
START_TEST(black_hole)
{
	uint32_t serial = 0, cwnd;
	unsigned n = 0;

	begin_after_four(20);
	cwnd = call->p.tx.cc.cwnd;
	for (unsigned ms = 0; ms < 300 && b.count < 2; ms += 5)
		bench_pass(&b, 5 * RXW_MS);
	for (unsigned k = 0; k < b.count; k++)
		if (b.sent[k].h.type == RXW_ACK && b.sent[k].ack.reason == RXW_ACK_PING) {
			ck_assert_int_eq(b.sent[k].padding > 0, n % 2 == 0);
			serial = b.sent[k].h.serial;
			n++;
		}
	ck_assert_uint_ge(n, 2);
	ck_assert_uint_eq(n % 2, 0);
	ack(5, serial, RXW_ACK_PING_RESPONSE, "");
	ck_assert_uint_eq(call->p.tx.mtu.confirmed, 1444); /* packets may overtake each other */
	bench_pass(&b, 30 * RXW_MS);
	ck_assert_uint_eq(call->p.tx.mtu.confirmed, 1200);
	ck_assert_uint_eq(atomic_load(&c->p.peer->mtu), 1200);
	ck_assert_uint_ge(call->p.tx.cc.cwnd, cwnd);
	ck_assert_int_eq(call->p.error, 0);
	bench_free(&b);
}
END_TEST

/*
 * The search has ended, and is to begin again ten minutes later. Timeouts without an answer make packets smaller: once some
 * arrive, the call searches at once.
 */
START_TEST(search_after_timeouts)
{
	unsigned probes = 0;

	bench_init(&b, true);
	b.params.mtu_ceiling = b.params.mtu; /* no search for more than the usual size */
	c = bench_conn(&b, BENCH_EPOCH, BENCH_CID, 7000);
	call = bench_begin(&b, c);
	call->p.tx.cc.cwnd = 100;
	call->p.tx.edge = 256;
	call->p.tx.window = 255;
	bench_write(call, 40, 1416, false);
	bench_write(call, 40, 1416, false);
	b.out.now += 10 * RXW_MS;
	ack(call->p.tx.nxt, c->p.serial, RXW_ACK_REQUESTED, "");
	atomic_store(&c->p.peer->mtu_at, b.out.now + 600 * RXW_SEC);
	bench_write(call, 4, 1416, false);
	for (unsigned ms = 0; ms < 5000 && call->p.tx.mtu.confirmed == 1444; ms += 10)
		bench_pass(&b, 10 * RXW_MS);
	ck_assert_uint_eq(call->p.tx.mtu.confirmed, 1200);
	b.count = b.next = 0;
	ack(call->p.tx.nxt, c->p.serial, RXW_ACK_REQUESTED, "");
	for (unsigned k = 0; k < b.count; k++)
		probes += b.sent[k].h.type == RXW_ACK && b.sent[k].padding > 0;
	ck_assert_uint_eq(probes, 1);
	bench_free(&b);
}
END_TEST

/* Answer the PINGs that were sent since the last time, if the path carries them. */
static void answer_pings(uint32_t most)
{
	while (b.next < b.count) {
		const struct bench_packet *k = &b.sent[b.next++];

		for (unsigned i = 0; i < RXW_PINGS && k->h.type == RXW_ACK; i++)
			if (call->p.ack.ping[i].serial == k->h.serial && call->p.ack.ping[i].size <= most)
				ack(5, k->h.serial, RXW_ACK_PING_RESPONSE, "");
	}
}

/* Each packet is acknowledged softly, and for good later: the call goes on after those that were cut anew. */
static void arrive_softly_first(void)
{
	char all[RXW_MAX_ACKS + 1] = "";
	uint32_t una = call->p.tx.una, to = call->p.tx.renumber.to;

	for (unsigned turn = 0; turn < 100 && call->p.tx.nxt <= to; turn++) {
		bench_send(call);
		memset(all, '1', call->p.tx.nxt - una);
		all[call->p.tx.nxt - una] = '\0';
		ack(una, c->p.serial, RXW_ACK_REQUESTED, all);
		una = call->p.tx.nxt;
		ack(una, 0, RXW_ACK_DELAY, "");
	}
	ck_assert_uint_gt(call->p.tx.nxt, to);
	ck_assert_int_eq(call->p.error, 0);
}

/*
 * The path carries less from now on, and fragments do not arrive, either: packets that were sent are cut anew, once the
 * answer to a PING of the new size shows that the peer has none of them. Nothing follows them until they have arrived.
 * 0: all goes well, a datagram arrives twice, and round trips get shorter. 1: an old one arrives, and its ACK names it; 2: more
 * of the old ones had arrived than there are new ones so far. The call ends then, since the stream would have a gap.
 */
START_TEST(sent_packets_shrink)
{
	struct bench_packet *k;
	uint32_t small, next = 5, first = 0, before;

	begin_after_four(30);
	before = c->p.serial; /* of an old packet */
	for (unsigned ms = 0; ms < 300 && b.count < 2; ms += 5)
		bench_pass(&b, 5 * RXW_MS);
	/* They leave again in fragments, one at a time, and PINGs are answered all the time. */
	answer_pings(1200);
	for (unsigned ms = 0; ms < 5000 && call->p.tx.renumber.state != RXW_RENUMBER_ASKING; ms += 5) {
		bench_pass(&b, 5 * RXW_MS);
		bench_send(call);
		answer_pings(1200);
	}
	ck_assert_int_eq(call->p.tx.renumber.state, RXW_RENUMBER_ASKING);
	/* None is on its way any more, and the peer's answer comes first. */
	small = b.count;
	for (unsigned ms = 0; ms < 5000 && call->p.tx.renumber.state == RXW_RENUMBER_ASKING; ms += 5) {
		bench_pass(&b, 5 * RXW_MS);
		bench_send(call);
		for (; small < b.count; small++)
			ck_assert_uint_eq(b.sent[small].h.type, RXW_ACK);
		answer_pings(1200);
	}
	b.next = b.count;
	bench_send(call);
	while ((k = bench_next(&b)) != NULL) {
		ck_assert_uint_eq(k->h.type, RXW_DATA);
		ck_assert_uint_eq(k->h.seq, next++);
		ck_assert_uint_eq(k->length, 1200);
		first = first ? first : k->h.serial;
	}
	ck_assert_uint_eq(next, 6);
	if (_i == 2) {
		ack(next + 1, first, RXW_ACK_REQUESTED, "");
		ck_assert_int_eq(call->p.error, RXW_CALL_MSGSIZE);
		bench_free(&b);
		return;
	}
	call->p.tx.rtt.min = 10 * RXW_MS; /* the PINGs were answered at once */
	b.out.now += RXW_MS;
	ack(next, _i == 0 ? first : before, RXW_ACK_DUPLICATE, "");
	ck_assert_int_eq(call->p.error, _i == 0 ? 0 : RXW_CALL_MSGSIZE);
	if (_i == 0)
		arrive_softly_first();
	bench_free(&b);
}
END_TEST

/* The next DATA after some time, apart from packets of this size. */
static struct bench_packet *data_of_another_size(uint32_t size)
{
	struct bench_packet *k;

	for (unsigned ms = 0; ms < 11000; ms += 10) {
		bench_pass(&b, 10 * RXW_MS);
		while ((k = bench_next(&b)) != NULL)
			if (k->h.type == RXW_DATA && k->length != size)
				return k;
	}
	ck_abort_msg("nothing was sent");
}

/*
 * A request of one packet has no answer, and is cut anew: first a small packet alone, since the server may have the old
 * one, and may only have been stopped. 0 and 1: it has the new one, and gets the rest; 2: it has the old one, as its ACK
 * shows, and gets no more.
 */
START_TEST(whole_request_shrinks)
{
	struct bench_packet *k, *first;
	uint32_t old, whole = RXW_HEADER_SIZE + 1400;

	bench_init(&b, true);
	c = bench_conn(&b, BENCH_EPOCH, BENCH_CID, 7000);
	c->p.peer->local = false;
	call = bench_begin(&b, c);
	bench_write(call, 1, 1400, true);
	rxw_pcall_flush(&call->p, &b.out);
	bench_settle(&b);
	old = bench_expect(&b, RXW_DATA)->h.serial;
	first = data_of_another_size(whole);
	ck_assert_uint_eq(first->length, RXW_MTU_LEAST);
	ck_assert_uint_eq(first->h.flags & RXW_LAST_PACKET, 0);
	ck_assert_uint_ne(first->h.flags & RXW_REQUEST_ACK, 0);
	if (_i == 1)
		first = data_of_another_size(whole);
	ck_assert_uint_eq(first->h.seq, 1);
	bench_nothing(&b);
	/* A PING says not which one it has. */
	bench_get_ack(&b, c, 1, 1, 0, RXW_ACK_PING, "1", 16);
	ck_assert_int_eq(bench_expect(&b, RXW_ACK)->ack.reason, RXW_ACK_PING_RESPONSE);
	bench_nothing(&b);
	bench_get_ack(&b, c, 1, 1, _i == 2 ? old : first->h.serial,
		      _i == 0 ? RXW_ACK_REQUESTED : RXW_ACK_DUPLICATE, "1", 16);
	ck_assert_int_eq(call->p.error, 0);
	if (_i < 2) {
		ck_assert_uint_eq(bench_expect(&b, RXW_DATA)->h.seq, 2);
		k = bench_expect(&b, RXW_DATA);
		ck_assert_uint_eq(k->h.seq, 3);
		ck_assert_uint_ne(k->h.flags & RXW_LAST_PACKET, 0);
	} else {
		ck_assert_uint_eq(rxw_pcall_queued(&call->p), 0);
		bench_nothing(&b);
		/* It waits for a handler for long, and acknowledges nothing for good. But it answers PINGs. */
		for (unsigned s = 0; s < 200; s++) {
			bench_pass(&b, RXW_SEC);
			while ((k = bench_next(&b)) != NULL) {
				ck_assert_int_eq(k->ack.reason, RXW_ACK_PING);
				bench_get_ack(&b, c, 1, 1, k->h.serial, RXW_ACK_PING_RESPONSE, "1", 16);
			}
		}
		ck_assert_int_eq(call->p.error, 0);
		bench_get_data(&b, c, 1, 1, RXW_LAST_PACKET, 100);
		ck_assert_int_eq(bench_read(call), 1);
	}
	bench_free(&b);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("pmtu");
	TCase *tcase = tcase_create("pmtu");

	suite_add_tcase(suite, tcase);
	tcase_set_timeout(tcase, 0);
	tcase_add_test(tcase, path_mtu_search);
	tcase_add_test(tcase, path_mtu_automatic);
	tcase_add_test(tcase, black_hole);
	tcase_add_test(tcase, search_after_timeouts);
	tcase_add_loop_test(tcase, sent_packets_shrink, 0, 3);
	tcase_add_loop_test(tcase, whole_request_shrinks, 0, 3);
	return bench_main(suite);
}
