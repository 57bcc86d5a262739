/* SPDX-License-Identifier: BSD-2-Clause */
/* ACKs received: validation, windows, RTT, losses, undo (3.2, 3.5, 3.8, 4.4). */
#include <string.h>

#include "tests/rx/proto/bench.h"

static struct bench b;
static struct bench_conn *c;
static struct bench_call *call;

/* A request of `packets`, all sent. */
static void setup(unsigned packets)
{
	bench_init(&b, true);
	c = bench_conn(&b, BENCH_EPOCH, BENCH_CID, 7000);
	call = bench_begin(&b, c);
	call->p.tx.cc.cwnd = 100;
	call->p.tx.window = 255;
	call->p.tx.edge = 256;
	if (packets > 0)
		bench_write(call, packets, 100, false);
	rxw_pcall_flush(&call->p, &b.out);
	bench_settle(&b);
	ck_assert_uint_eq(call->p.tx.nxt, packets + 1);
	b.next = b.count;
	b.out.now += 10 * RXW_MS;
}

static void ack(uint32_t first, uint32_t serial, unsigned reason, const char *acks)
{
	bench_get_ack(&b, c, 1, first, serial, reason, acks, 255);
}

START_TEST(malformed)
{
	uint8_t packet[400];
	uint32_t size;

	setup(4);
	size = bench_ack(&b, packet, 1, 3, 2, RXW_ACK_IDLE, 0, "11", 255);
	bench_input(&b, c, packet, 28 + 17, 28 + 17); /* shorter than the fixed part */
	bench_input(&b, c, packet, 28 + 19, 28 + 19); /* two entries announced, one present */
	rxw_put32(packet + 28 + 4, 0);		      /* firstPacket 0 */
	bench_input(&b, c, packet, size, size);
	ck_assert_uint_eq(b.stats.drops[RXW_DROP_BAD_ACK], 3);
	ck_assert_uint_eq(call->p.tx.una, 1);
	ck_assert_int_eq(call->p.error, 0);
	ck_assert(!call->p.tx.heard);
	bench_free(&b);
}
END_TEST

START_TEST(never_sent)
{
	setup(4);
	ack(6, 0, RXW_ACK_DELAY, "");
	ck_assert_int_eq(call->p.error, RXW_PROTOCOL_ERROR);
	ck_assert_int_eq(bench_expect(&b, RXW_ABORT)->code, RXW_PROTOCOL_ERROR);
	bench_free(&b);
	/* Entries beyond the sent packets are ignored. */
	setup(4);
	ack(5, 0, RXW_ACK_DELAY, "11111");
	ck_assert_int_eq(call->p.error, 0);
	ck_assert_uint_eq(call->p.tx.una, 5);
	bench_free(&b);
}
END_TEST

/* More than 255 packets only while the peer's ACKs are extended ones (rx-wide-windows, rules 2, 3). */
START_TEST(licence)
{
	uint8_t packet[RXW_ACK_MAX_SIZE];
	uint32_t size;

	setup(4);
	b.params.window = 5000;
	ack(2, 0, RXW_ACK_DELAY, "");
	size = bench_ack(&b, packet, 1, 2, 0, RXW_ACK_DELAY, 0, "", 3000);
	bench_input(&b, c, packet, size, size);
	ck_assert_uint_eq(call->p.tx.window, 255);
	size = bench_ack(&b, packet, 1, 2, 0, RXW_ACK_DELAY, RXW_EXTENDED_ACK, "", 3000);
	bench_input(&b, c, packet, size, size); /* the octet is 0 */
	ck_assert_uint_eq(call->p.tx.window, 255);
	size = bench_ack(&b, packet, 1, 2, 0, RXW_ACK_DELAY, RXW_EXTENDED_ACK, "", 3000);
	packet[28 + 18 + 1] = 4;
	bench_input(&b, c, packet, size, size);
	ck_assert_uint_eq(call->p.tx.window, 3000);
	ck_assert_uint_eq(call->p.tx.edge, 3002);
	size = bench_ack(&b, packet, 1, 2, 0, RXW_ACK_DELAY, RXW_EXTENDED_ACK, "", 9000);
	packet[28 + 18 + 1] = 4;
	bench_input(&b, c, packet, size, size);
	ck_assert_uint_eq(call->p.tx.window, 5000); /* our own limit */
	ack(2, 0, RXW_ACK_DELAY, "");
	ck_assert_uint_eq(call->p.tx.window, 255);
	bench_free(&b);
}
END_TEST

/* Tables that describe packets never sent are ignored; the hard acknowledgement counts. */
START_TEST(wide_never_sent)
{
	uint8_t packet[RXW_ACK_MAX_SIZE];
	uint32_t size;

	setup(8);
	size = bench_ack(&b, packet, 1, 3, 0, RXW_ACK_DELAY, RXW_EXTENDED_ACK, "", 255);
	packet[28 + 18 + 1] = 4;
	rxw_put32(packet + 28 + 8, 3 + 5000); /* previousPacket: all of them, without a gap */
	bench_input(&b, c, packet, size, size);
	ck_assert_uint_eq(call->p.tx.una, 3);
	ck_assert_uint_eq(call->p.tx.acked, 0);
	ck_assert_uint_eq(call->p.tx.flight, 6);
	ck_assert_int_eq(call->p.error, 0);
	bench_free(&b);
}
END_TEST

START_TEST(stale)
{
	uint8_t old[400];
	uint32_t size;

	setup(8);
	size = bench_ack(&b, old, 1, 3, 2, RXW_ACK_DELAY, 0, "0001", 3);
	ack(5, 0, RXW_ACK_DELAY, "");
	bench_input(&b, c, old, size, size); /* lower firstPacket: nothing */
	ck_assert_uint_eq(call->p.tx.una, 5);
	ck_assert_uint_eq(call->p.tx.acked, 0);
	ck_assert_uint_eq(call->p.tx.window, 255);
	/*
	 * Equal firstPacket, lower serial: adds entries, retracts none, and its window is ignored.
	 */
	size = bench_ack(&b, old, 1, 5, 2, RXW_ACK_DELAY, 0, "0010", 3);
	ack(5, 0, RXW_ACK_DELAY, "0100");
	ck_assert_uint_eq(call->p.tx.acked, 1);
	bench_input(&b, c, old, size, size);
	ck_assert_uint_eq(call->p.tx.acked, 2);
	ck_assert_uint_eq(call->p.tx.window, 255);
	bench_free(&b);
}
END_TEST

/*
 * A server that refuses a call late has acknowledged packets of it, and reports them as missing
 * again. BUSY then applies, and the first packet is retransmitted after a delay.
 */
START_TEST(withdrawn_and_busy)
{
	struct bench_packet *k;
	uint8_t packet[64];
	uint32_t size;

	setup(3);
	ack(1, 3, RXW_ACK_IDLE, "111");
	ck_assert(call->p.tx.heard);
	b.auto_send = false;
	ack(1, 0, RXW_ACK_DELAY, "000");
	ck_assert(!call->p.tx.heard);
	ck_assert_uint_eq(call->p.tx.acked, 0);
	size = bench_header(&b, packet, RXW_BUSY, 1, 0);
	b.auto_send = true;
	bench_input(&b, c, packet, size, size);
	ck_assert_uint_gt(call->p.tx.busy_since, 0);
	b.next = b.count;
	bench_pass(&b, 5 * RXW_SEC);
	k = bench_expect(&b, RXW_DATA);
	ck_assert_uint_eq(k->h.seq, 1);
	/* It is accepted now. */
	ack(1, k->h.serial, RXW_ACK_IDLE, "111");
	ck_assert(call->p.tx.heard);
	bench_free(&b);
}
END_TEST

START_TEST(withdrawn)
{
	uint32_t cwnd;

	setup(8);
	ack(1, 4, RXW_ACK_IDLE, "11111111");
	ck_assert_uint_eq(call->p.tx.acked, 8);
	ck_assert_uint_eq(call->p.tx.flight, 0);
	cwnd = call->p.tx.cc.cwnd;
	b.auto_send = false;
	ack(1, 0, RXW_ACK_DELAY, "11101111");
	ck_assert_uint_eq(call->p.tx.acked, 7);
	ck_assert_uint_eq(call->p.tx.lost, 1);
	ck_assert_uint_eq(call->p.tx.cc.cwnd, cwnd);
	ck_assert_uint_eq(bench_send(call), 1);
	ck_assert_uint_eq(bench_expect(&b, RXW_DATA)->h.seq, 4);
	bench_free(&b);
}
END_TEST

/*
 * An ACK was damaged on its way: a serial number far ahead, packet 1 received. It does not disable
 * the ACKs that follow for ever: a second later they count again.
 */
START_TEST(damaged_serial)
{
	uint8_t packet[400];
	uint32_t size;

	setup(8);
	size = bench_ack(&b, packet, 1, 1, 4, RXW_ACK_REQUESTED, 0, "10010000", 3);
	rxw_put32(packet + 16, 100000);
	bench_input(&b, c, packet, size, size);
	ck_assert_uint_eq(call->p.tx.window, 3);
	ack(1, 5, RXW_ACK_REQUESTED, "00011000");
	ck_assert_uint_eq(call->p.tx.acked, 3); /* may have been overtaken */
	ck_assert_uint_eq(call->p.tx.window, 3);
	b.auto_send = false;
	b.out.now += RXW_SEC;
	ack(1, 6, RXW_ACK_REQUESTED, "00011100");
	ck_assert_uint_eq(call->p.tx.acked, 3);
	ck_assert_uint_eq(call->p.tx.window, 255);
	ack(1, 7, RXW_ACK_REQUESTED, "00010100");
	ck_assert_uint_eq(call->p.tx.acked, 2); /* in order again */
	bench_free(&b);
}
END_TEST

START_TEST(round_trips)
{
	setup(8);
	ack(3, 2, RXW_ACK_REQUESTED, "");
	ck_assert_uint_eq(call->p.tx.rtt.srtt, 10 * RXW_MS);
	b.out.now += 5 * RXW_MS;
	ack(3, 2, RXW_ACK_REQUESTED, "");  /* the same serial again */
	ack(5, 0, RXW_ACK_DELAY, "");	   /* none */
	ack(5, 77, RXW_ACK_REQUESTED, ""); /* not ours */
	ack(5, 5, RXW_ACK_IDLE, "11");	   /* packet 6 is newer than the one named */
	ck_assert_uint_eq(call->p.tx.rtt.srtt, 10 * RXW_MS);
	ack(5, 7, RXW_ACK_IDLE, "111");
	ck_assert_uint_eq(call->p.tx.rtt.latest, 15 * RXW_MS);
	ck_assert_uint_eq(atomic_load(&c->p.peer->srtt), call->p.tx.rtt.srtt);
	bench_free(&b);
}
END_TEST

/* Another packet is sent, and its ACK is due. */
static void again(void)
{
	bench_write(call, 1, 100, false);
	rxw_pcall_flush(&call->p, &b.out);
	bench_settle(&b);
	b.next = b.count;
	b.out.now += 10 * RXW_MS;
}

/* A busy machine leaves ACKs in its socket: timers allow for that, but the path is as short as before. */
START_TEST(waits_in_our_socket)
{
	setup(8);
	b.waited = 9 * RXW_MS;
	ack(3, 2, RXW_ACK_REQUESTED, "");
	ck_assert_uint_eq(call->p.tx.rtt.srtt, 10 * RXW_MS);
	ack(5, 4, RXW_ACK_REQUESTED, "");
	/* The clock may have been set while they waited: another packet has to show the same. */
	ck_assert_uint_eq(atomic_load(&c->p.peer->least_rtt), 10 * RXW_MS);
	again();
	ack(10, 9, RXW_ACK_REQUESTED, "");
	ck_assert_uint_eq(atomic_load(&c->p.peer->least_rtt), RXW_MS);
	again();
	b.waited = RXW_SEC; /* more than the round trip: the clock was set */
	ack(11, 10, RXW_ACK_REQUESTED, "");
	ck_assert_uint_eq(call->p.tx.rtt.srtt, 10 * RXW_MS);
	ck_assert_uint_eq(atomic_load(&c->p.peer->least_rtt), RXW_MS);
	bench_free(&b);
}
END_TEST

/* The numbers of a connection that has sent much are far from zero, or begin anew. */
START_TEST(round_trips_of_any_serials)
{
	static const uint32_t used[] = {0x7ffffff0, 0x7fffffff, 0x80000000, 0xfffffff0, 0xfffffffb};
	unsigned serial;

	setup(0);
	rxw_pcall_fail(&call->p, RXW_USER_ABORT, RXW_ORIGIN_LOCAL, false, &b.out);
	bench_settle(&b);
	c->p.serial = used[_i];
	call = bench_begin(&b, c);
	bench_write(call, 4, 100, true);
	ck_assert_uint_eq(call->p.tx.nxt, 5);
	b.out.now += 10 * RXW_MS;
	serial = used[_i] + 1;
	bench_get_ack(&b, c, 2, 2, serial, RXW_ACK_REQUESTED, "", 255);
	ck_assert_uint_eq(call->p.tx.rtt.latest, 10 * RXW_MS);
	b.out.now += RXW_MS;
	bench_get_ack(&b, c, 2, 5, serial + 3, RXW_ACK_REQUESTED, "", 255);
	ck_assert_uint_eq(call->p.tx.rtt.latest, 11 * RXW_MS);
	bench_free(&b);
}
END_TEST

START_TEST(trailers)
{
	uint8_t packet[400];
	uint32_t size;

	setup(8);
	size = bench_ack(&b, packet, 1, 2, 1, RXW_ACK_DELAY, 0, "", 100);
	rxw_put32(packet + size - 16, 0xffffffff);
	rxw_put32(packet + size - 4, 0xffffffff);
	bench_input(&b, c, packet, size, size);
	ck_assert_uint_eq(call->p.tx.window, 100);
	ck_assert_uint_eq(c->p.peer_window, 100);
	ck_assert_uint_le(c->p.peer_max_mtu, 65535);
	/* Three words: shrinks only. */
	size = bench_ack(&b, packet, 1, 3, 2, RXW_ACK_DELAY, 0, "", 200) - 4;
	bench_input(&b, c, packet, size, size);
	ck_assert_uint_eq(call->p.tx.window, 100);
	size = bench_ack(&b, packet, 1, 4, 3, RXW_ACK_DELAY, 0, "", 50) - 4;
	bench_input(&b, c, packet, size, size);
	ck_assert_uint_eq(call->p.tx.window, 50);
	/* None: the window moves with firstPacket. */
	size = bench_ack(&b, packet, 1, 5, 4, RXW_ACK_DELAY, 0, "", 50) - 16;
	bench_input(&b, c, packet, size, size);
	ck_assert_uint_eq(call->p.tx.edge, 55);
	bench_free(&b);
}
END_TEST

/* No class protects the sizes that an ACK allows: those of other connections with the same peer stay. */
START_TEST(sizes_of_one_connection)
{
	struct bench_conn *other;
	struct bench_call *second;
	uint8_t packet[400];
	uint32_t size;

	setup(8);
	other = bench_conn(&b, BENCH_EPOCH, BENCH_CID + 4, 7000);
	ck_assert_ptr_eq(other->p.peer, c->p.peer);
	second = bench_begin(&b, other);
	size = bench_ack(&b, packet, 1, 2, 1, RXW_ACK_DELAY, 0, "", 100);
	rxw_put32(packet + size - 16, 600);
	bench_input(&b, c, packet, size, size);
	ck_assert_uint_eq(rxw_pcall_datagram_size(&call->p), 600);
	ck_assert_uint_eq(rxw_pcall_datagram_size(&second->p), 1444);
	bench_free(&b);
}
END_TEST

/* The tracer of an endpoint: counts window events, and has the phase of the latest. */
static struct {
	struct rxw_tracer tracer; /* first */
	unsigned windows;
	const char *phase;
} noted;

static void note(struct rxw_tracer *tracer, const struct rxw_trace_event *seen)
{
	(void)tracer;
	if (seen->kind != RXW_TRACE_WINDOW)
		return;
	noted.windows++;
	noted.phase = seen->phase;
}

/* A phase that changes raises an event, also if the window stays; nothing else does. */
START_TEST(phases_are_traced)
{
	unsigned windows;
	uint32_t cwnd;

	memset(&noted, 0, sizeof(noted));
	noted.tracer.note = note;
	setup(40);
	atomic_store(&b.stats.tracer, &noted.tracer);
	ack(11, 10, RXW_ACK_REQUESTED, "");
	ck_assert_str_eq(noted.phase, "slow-start");
	ack(11, 14, RXW_ACK_OUT_OF_SEQUENCE, "0111");
	ck_assert_str_eq(noted.phase, "recovery");
	windows = noted.windows;
	ack(11, 15, RXW_ACK_OUT_OF_SEQUENCE, "01111");
	ck_assert_uint_eq(noted.windows, windows);
	/* Recovery ends without another window. */
	call->p.tx.recovery.recovery_end = 0;
	cwnd = call->p.tx.cc.cwnd;
	ack(11, 15, RXW_ACK_OUT_OF_SEQUENCE, "01111");
	ck_assert_uint_eq(call->p.tx.cc.cwnd, cwnd);
	ck_assert_uint_eq(noted.windows, windows + 1);
	ck_assert_str_eq(noted.phase, rxw_send_phase(&call->p));
	ck_assert_str_ne(noted.phase, "recovery");
	ack(11, 15, RXW_ACK_OUT_OF_SEQUENCE, "01111");
	ck_assert_uint_eq(noted.windows, windows + 1);
	bench_free(&b);
}
END_TEST

START_TEST(lost_by_count)
{
	uint32_t before;

	setup(40);
	ack(11, 10, RXW_ACK_REQUESTED, "");
	before = call->p.tx.cc.cwnd;
	ck_assert_str_eq(rxw_send_phase(&call->p), "slow-start");
	ack(11, 12, RXW_ACK_OUT_OF_SEQUENCE, "01");
	ack(11, 13, RXW_ACK_OUT_OF_SEQUENCE, "011");
	bench_nothing(&b);
	ack(11, 14, RXW_ACK_OUT_OF_SEQUENCE, "0111");
	struct bench_packet *k = bench_expect(&b, RXW_DATA);

	ck_assert_uint_eq(k->h.seq, 11);
	ck_assert_uint_eq(k->h.serial, 41);
	ck_assert(k->h.flags & RXW_REQUEST_ACK);
	ck_assert_uint_eq(b.stats.loss_events, 1);
	ck_assert_uint_eq(b.stats.retransmitted, 1);
	ck_assert_uint_lt(call->p.tx.cc.cwnd, before);
	ck_assert_uint_eq(call->p.tx.cc.cwnd, call->p.tx.cc.ssthresh);
	ck_assert_str_eq(rxw_send_phase(&call->p), "recovery");
	ck_assert_uint_eq(call->p.count.lost, 1);
	ck_assert_uint_eq(call->p.count.loss_events, 1);
	/* More losses of the same event: neither a second reduction nor a second retransmission. */
	before = call->p.tx.cc.cwnd;
	ack(11, 15, RXW_ACK_OUT_OF_SEQUENCE, "01111");
	ack(11, 16, RXW_ACK_OUT_OF_SEQUENCE, "011111");
	ck_assert_uint_eq(b.stats.loss_events, 1);
	ck_assert_uint_eq(b.stats.retransmitted, 1);
	ck_assert_uint_eq(call->p.tx.cc.cwnd, before);
	bench_free(&b);
}
END_TEST

START_TEST(lost_by_time)
{
	setup(4);
	ack(2, 1, RXW_ACK_REQUESTED, "");
	ack(2, 3, RXW_ACK_OUT_OF_SEQUENCE, "01");
	bench_nothing(&b);
	ck_assert_uint_ne(call->p.tx.loss_at, UINT64_MAX);
	bench_pass(&b, 2 * RXW_MS); /* 9/8 of 10 ms since it was sent */
	ck_assert_uint_eq(bench_expect(&b, RXW_DATA)->h.seq, 2);
	ck_assert_uint_eq(b.stats.loss_events, 1);
	bench_free(&b);
}
END_TEST

/*
 * The original is acknowledged after its retransmission: no loss, and a longer reordering delay
 * from now on.
 */
START_TEST(reordering_is_undone)
{
	uint32_t before;

	setup(40);
	ack(11, 10, RXW_ACK_REQUESTED, "");
	before = call->p.tx.cc.cwnd;
	ack(11, 12, RXW_ACK_OUT_OF_SEQUENCE, "01");
	ack(11, 18, RXW_ACK_OUT_OF_SEQUENCE, "01111111");
	ck_assert_uint_eq(bench_expect(&b, RXW_DATA)->h.seq, 11);
	ck_assert_uint_lt(call->p.tx.cc.cwnd, before);
	ck_assert(call->p.tx.losses);
	ack(19, 11, RXW_ACK_IDLE, "");
	ck_assert_uint_eq(b.stats.spurious_losses, 1);
	ck_assert(!call->p.tx.losses);
	ck_assert_uint_ge(call->p.tx.cc.cwnd, before);
	ck_assert_uint_eq(call->p.count.spurious, 1);
	ck_assert_uint_gt(call->p.tx.recovery.threshold, 3);
	bench_free(&b);
}
END_TEST

START_TEST(duplicate_names_a_retransmission)
{
	uint32_t before;

	setup(40);
	ack(11, 10, RXW_ACK_REQUESTED, "");
	before = call->p.tx.cc.cwnd;
	ack(11, 18, RXW_ACK_OUT_OF_SEQUENCE, "01111111");
	ack(11, 19, RXW_ACK_OUT_OF_SEQUENCE, "011111111");
	ck_assert_uint_eq(bench_expect(&b, RXW_DATA)->h.serial, 41);
	b.out.now += 10 * RXW_MS;
	ack(41, 0, RXW_ACK_DELAY, "");
	ck_assert_uint_lt(call->p.tx.cc.cwnd, before);
	ack(41, 41, RXW_ACK_DUPLICATE, "");
	ck_assert_uint_eq(b.stats.spurious_losses, 1);
	ck_assert_uint_ge(call->p.tx.cc.cwnd, before);
	bench_free(&b);
}
END_TEST

/* The original is only late, and arrives after its retransmission. */
START_TEST(duplicate_names_an_original)
{
	uint32_t before;

	setup(40);
	ack(11, 10, RXW_ACK_REQUESTED, "");
	before = call->p.tx.cc.cwnd;
	ack(11, 18, RXW_ACK_OUT_OF_SEQUENCE, "01111111");
	ck_assert_uint_eq(bench_expect(&b, RXW_DATA)->h.serial, 41);
	b.out.now += 10 * RXW_MS;
	ack(41, 41, RXW_ACK_REQUESTED, "");
	ck_assert_uint_lt(call->p.tx.cc.cwnd, before);
	ack(41, 11, RXW_ACK_DUPLICATE, "");
	ck_assert_uint_ge(call->p.tx.cc.cwnd, before);
	/* It counts once. */
	ck_assert_uint_eq(call->p.tx.doubt, 0);
	bench_free(&b);
}
END_TEST

/* Twenty packets are declared lost. The reaction stands until each of them proves to have been late. */
START_TEST(one_late_packet_of_many)
{
	uint32_t before, after;
	char acks[41];

	setup(40);
	b.auto_send = false;
	before = call->p.tx.cc.cwnd;
	ack(1, 40, RXW_ACK_OUT_OF_SEQUENCE, "0000000000000000000011111111111111111111");
	bench_pass(&b, 30 * RXW_MS);
	ck_assert_uint_eq(call->p.tx.lost, 20);
	after = call->p.tx.cc.cwnd;
	ck_assert_uint_lt(after, before);
	acks[40] = 0;
	for (unsigned i = 20; i > 1; i--) {
		memset(acks, '0', 40);
		memset(acks + i - 1, '1', 40 - (i - 1));
		ack(1, i, RXW_ACK_OUT_OF_SEQUENCE, acks);
		ck_assert_uint_eq(call->p.tx.lost, i - 1);
		ck_assert_uint_eq(call->p.tx.cc.cwnd, after);
		ck_assert(rxw_recovery_active(&call->p.tx.recovery));
	}
	ack(41, 1, RXW_ACK_IDLE, "");
	ck_assert_uint_ge(call->p.tx.cc.cwnd, before);
	ck_assert(!rxw_recovery_active(&call->p.tx.recovery));
	bench_free(&b);
}
END_TEST

/* The retransmission after a timeout is acknowledged: the reaction was right, and is never undone. */
START_TEST(timeout_that_was_right)
{
	setup(1);
	call->p.tx.cc.cwnd = 40;
	for (unsigned i = 0; i < 50 && call->p.count.timeouts == 0; i++)
		bench_pass(&b, 100 * RXW_MS);
	ck_assert_uint_gt(call->p.count.timeouts, 0);
	ck_assert_uint_gt(call->p.tx.cc.undo_cwnd, 0);
	b.out.now += 20 * RXW_MS;
	ack(2, c->p.serial, RXW_ACK_REQUESTED, "");
	ck_assert_uint_eq(call->p.tx.cc.undo_cwnd, 0);
	ck_assert_uint_eq(call->p.tx.frto_order, 0);
	bench_free(&b);
}
END_TEST

/*
 * This machine, or the peer, stood still for as long as several timeouts take; the first transmission had
 * arrived. All of them are undone: nothing was lost.
 */
START_TEST(timeouts_that_were_wrong)
{
	setup(20);
	ack(11, 10, RXW_ACK_REQUESTED, "");
	for (unsigned i = 0; i < 100 && call->p.count.timeouts < 2; i++)
		bench_pass(&b, 100 * RXW_MS);
	ck_assert_uint_eq(call->p.count.timeouts, 2);
	ck_assert_uint_eq(call->p.tx.cc.cwnd, 1);
	ck_assert(call->p.tx.losses);
	ack(12, 11, RXW_ACK_REQUESTED, "");
	ck_assert_uint_ge(call->p.tx.cc.cwnd, 100);
	ck_assert(!call->p.tx.losses);
	bench_free(&b);
}
END_TEST

/* The receiver drops packets again, and then has them: no loss was detected, and none is undone. */
START_TEST(dropped_again_is_no_loss)
{
	uint32_t cwnd, newly = 0;

	setup(40);
	b.auto_send = false;
	call->p.tx.cc.cwnd = 40;
	ack(1, 40, RXW_ACK_OUT_OF_SEQUENCE, "0111111111111111111111111111111111111111");
	bench_pass(&b, 30 * RXW_MS);
	cwnd = call->p.tx.cc.cwnd;
	ck_assert_uint_lt(cwnd, 40);
	newly = call->p.tx.rate.delivered;
	for (unsigned i = 0; i < 20; i++) {
		ack(1, 39, RXW_ACK_OUT_OF_SEQUENCE, "0000000000000000000000000000000000000001");
		ck_assert_uint_eq(call->p.tx.lost, 39);
		ack(1, 40, RXW_ACK_OUT_OF_SEQUENCE, "0111111111111111111111111111111111111111");
		ck_assert_uint_eq(call->p.tx.lost, 1);
	}
	ck_assert_uint_eq(call->p.tx.cc.cwnd, cwnd);
	ck_assert_uint_eq(call->p.tx.rate.delivered, newly);
	ck_assert_uint_eq(b.stats.spurious_losses, 0);
	bench_free(&b);
}
END_TEST

/* The same with an ACK that has them in its tail, and others that were not acknowledged before. */
START_TEST(dropped_and_in_the_tail)
{
	uint8_t packet[RXW_ACK_MAX_SIZE];
	uint32_t size;

	setup(40);
	b.auto_send = false;
	call->p.tx.cc.cwnd = 300;
	call->p.tx.window = call->p.tx.edge = 1000;
	for (unsigned i = 0; i < 8; i++)
		bench_write(call, 40, 100, false);
	rxw_pcall_flush(&call->p, &b.out);
	b.count = b.next = 0;
	bench_send(call);
	ck_assert_uint_gt(call->p.tx.nxt, 1 + RXW_MAX_ACKS);
	ack(1, 40, RXW_ACK_DELAY, "0111111111111111111111111111111111111110");
	ack(1, 40, RXW_ACK_DELAY, "0111111111000000000000000000000000000010");
	ck_assert_uint_eq(call->p.tx.acked, 10);
	size = bench_ack(&b, packet, 1, 1, 0, RXW_ACK_DELAY, RXW_EXTENDED_ACK, "0", 1000);
	packet[28 + 18 + 1 + 1] = 4;
	rxw_put32(packet + 28 + 8, call->p.tx.nxt - 2); /* previousPacket */
	bench_input(&b, c, packet, size, size);
	ck_assert_uint_eq(call->p.tx.acked, call->p.tx.nxt - 3);
	ck_assert_uint_eq(call->p.tx.flight + call->p.tx.lost, 2);
	ck_assert_uint_eq(rxw_sent_missing(&call->p.tx.sent, 2, call->p.tx.nxt), call->p.tx.nxt - 1);
	bench_free(&b);
}
END_TEST

/* Packet 1 is missing; the others of a burst that was lost were sent again and have arrived. */
static void hole_outlives_a_round_trip(void)
{
	setup(20);
	ack(1, 20, RXW_ACK_OUT_OF_SEQUENCE, "00000000001111111111");
	bench_pass(&b, 30 * RXW_MS);
	bench_send(call);
	b.out.now += 50 * RXW_MS;
	ack(1, c->p.serial, RXW_ACK_OUT_OF_SEQUENCE, "01111111111111111111");
}

/* What was sent later has serial numbers of its own. */
START_TEST(sample_behind_a_hole)
{
	uint32_t serial;

	hole_outlives_a_round_trip();
	b.out.now += 30 * RXW_MS;
	bench_write(call, 5, 100, false);
	rxw_pcall_flush(&call->p, &b.out);
	bench_settle(&b);
	serial = rxw_sent_part(&call->p.tx.sent, 21, 26).seg->serial;
	b.out.now += 50 * RXW_MS;
	ack(1, serial, RXW_ACK_OUT_OF_SEQUENCE, "0111111111111111111111111");
	ck_assert_uint_eq(call->p.tx.rtt.latest, 50 * RXW_MS);
	bench_free(&b);
}
END_TEST

START_TEST(ping_behind_a_hole)
{
	const struct rxw_ping *ping;
	uint32_t serial;

	hole_outlives_a_round_trip();
	b.out.now += 10 * RXW_MS;
	rxw_ack_ping(&call->p, 0, &b.out);
	bench_settle(&b);
	ping = &call->p.ack.ping[(call->p.ack.ping_next + RXW_PINGS - 1) % RXW_PINGS];
	serial = ping->serial;
	ck_assert_uint_ne(serial, 0);
	b.out.now += 50 * RXW_MS;
	ack(1, serial, RXW_ACK_PING_RESPONSE, "01111111111111111111");
	ck_assert_uint_eq(ping->serial, 0);
	ck_assert_uint_eq(call->p.tx.rtt.latest, 50 * RXW_MS);
	bench_free(&b);
}
END_TEST

START_TEST(exceeded_window)
{
	uint32_t before;

	setup(20);
	before = call->p.tx.cc.cwnd;
	bench_get_ack(&b, c, 1, 11, 20, RXW_ACK_EXCEEDS_WINDOW, "", 5);
	ck_assert_uint_eq(call->p.tx.lost, 5); /* 16 to 20 */
	ck_assert_uint_eq(b.stats.loss_events, 0);
	ck_assert_uint_ge(call->p.tx.cc.cwnd, before);
	bench_nothing(&b);
	bench_get_ack(&b, c, 1, 16, 15, RXW_ACK_REQUESTED, "", 5);
	for (unsigned i = 16; i <= 20; i++)
		ck_assert_uint_eq(bench_expect(&b, RXW_DATA)->h.seq, i);
	bench_free(&b);
}
END_TEST

START_TEST(no_space)
{
	uint32_t before;

	setup(20);
	before = call->p.tx.cc.cwnd;
	ack(11, 20, RXW_ACK_NOSPACE, "");
	ck_assert_uint_lt(call->p.tx.cc.cwnd, before);
	before = call->p.tx.cc.cwnd;
	ack(11, 20, RXW_ACK_NOSPACE, "");
	ck_assert_uint_eq(call->p.tx.cc.cwnd, before); /* once per round trip */
	bench_free(&b);
}
END_TEST

START_TEST(nat_reset)
{
	setup(20);
	bench_get_ack(&b, c, 1, 1, 20, RXW_ACK_EXCEEDS_WINDOW, "", 16);
	ck_assert_int_eq(call->p.error, 0); /* nothing was hard-acknowledged yet */
	ack(5, 4, RXW_ACK_REQUESTED, "");
	bench_get_ack(&b, c, 1, 1, 20, RXW_ACK_EXCEEDS_WINDOW, "", 16);
	ck_assert_int_eq(call->p.error, 0); /* it was only late, and others overtook it */
	b.out.now += RXW_SEC;
	bench_get_ack(&b, c, 1, 1, 20, RXW_ACK_EXCEEDS_WINDOW, "", 16);
	ck_assert_int_eq(call->p.error, RXW_NETWORK_RESET);
	ck_assert_int_eq(call->p.error_origin, RXW_ORIGIN_LOCAL);
	bench_free(&b);
}
END_TEST

START_TEST(slow_start_doubles)
{
	unsigned flight = 4;

	bench_init(&b, true);
	b.auto_send = false;
	c = bench_conn(&b, BENCH_EPOCH, BENCH_CID, 7000);
	call = bench_begin(&b, c);
	for (unsigned i = 0; i < 11; i++)
		bench_write(call, 45, 100, false);
	for (unsigned round = 0; round < 5; round++) {
		ck_assert_uint_eq(bench_send(call), flight);
		b.out.now += RXW_MS / 2;
		ack(call->p.tx.nxt, c->p.serial, RXW_ACK_IDLE, "");
		flight *= 2;
	}
	bench_free(&b);
}
END_TEST

/* The window grows during the ACKs of a flight, although the flight is smaller then. */
START_TEST(slow_start_by_small_acks)
{
	bench_init(&b, true);
	b.auto_send = false;
	c = bench_conn(&b, BENCH_EPOCH, BENCH_CID, 7000);
	call = bench_begin(&b, c);
	for (unsigned i = 0; i < 11; i++)
		bench_write(call, 45, 100, false);
	for (unsigned flight = 4; flight <= 64; flight *= 2) {
		uint32_t serial = c->p.serial;

		ck_assert_uint_eq(bench_send(call), flight);
		b.out.now += RXW_MS / 2;
		for (unsigned i = 2; i <= flight; i += 2)
			ack(call->p.tx.una + 2, serial + i, RXW_ACK_IDLE, "");
		ck_assert_uint_eq(call->p.tx.cc.cwnd, 2 * flight);
	}
	/* A window half empty for two round trips does not grow. */
	call->p.tx.cc.cwnd = 200;
	call->p.tx.peak = call->p.tx.last_peak = 99;
	bench_send(call);
	call->p.tx.peak = 99;
	ack(call->p.tx.una + 2, 0, RXW_ACK_IDLE, "");
	ck_assert_uint_eq(call->p.tx.cc.cwnd, 200);
	bench_free(&b);
}
END_TEST

/* The next call begins with the window of this one for a second, but not once packets were lost. */
START_TEST(window_for_the_next_call)
{
	struct rxw_peer *peer;

	setup(40);
	peer = call->p.conn->peer;
	rxw_peer_set_validated(peer, b.out.now);
	ack(11, 10, RXW_ACK_REQUESTED, "");
	ck_assert_uint_gt(call->p.tx.cc.cwnd, 10);
	ck_assert_uint_eq(rxw_peer_recall_cwnd(peer, b.out.now), call->p.tx.cc.cwnd);
	ck_assert_uint_eq(rxw_peer_recall_cwnd(peer, b.out.now + RXW_SEC), 0);
	ack(11, 18, RXW_ACK_OUT_OF_SEQUENCE, "01111111");
	ck_assert(call->p.tx.losses);
	ck_assert_uint_eq(rxw_peer_recall_cwnd(peer, b.out.now), 0);
	bench_free(&b);
}
END_TEST

/* With a wide window, twice the largest flight, at most 255 packets. */
START_TEST(wide_window_for_the_next_call)
{
	struct rxw_peer *peer;

	setup(40);
	peer = call->p.conn->peer;
	rxw_peer_set_validated(peer, b.out.now);
	call->p.tx.cc.max = 32768;
	call->p.tx.cc.cwnd = 20000;
	call->p.tx.peak = 60;
	call->p.tx.last_peak = 0;
	ack(3, 2, RXW_ACK_IDLE, "");
	ck_assert_uint_eq(rxw_peer_recall_cwnd(peer, b.out.now), 120);
	call->p.tx.peak = call->p.tx.last_peak = 200;
	ack(5, 4, RXW_ACK_IDLE, "");
	ck_assert_uint_eq(rxw_peer_recall_cwnd(peer, b.out.now), 255);
	call->p.tx.peak = call->p.tx.last_peak = 8000;
	ack(7, 6, RXW_ACK_IDLE, "");
	ck_assert_uint_eq(rxw_peer_recall_cwnd(peer, b.out.now), 255);
	call->p.tx.losses = true;
	ack(9, 8, RXW_ACK_IDLE, "");
	ck_assert_uint_eq(rxw_peer_recall_cwnd(peer, b.out.now), 0);
	bench_free(&b);
}
END_TEST

/*
 * The halving starts from the packets in flight at a full window, not from those left by
 * thresholds.
 */
START_TEST(loss_of_a_full_window)
{
	setup(40);
	ack(11, 10, RXW_ACK_REQUESTED, "");
	ck_assert_uint_eq(call->p.tx.flight, 30);
	ack(11, 18, RXW_ACK_OUT_OF_SEQUENCE, "01111111");
	ck_assert_uint_eq(call->p.tx.cc.ssthresh, 20);
	bench_free(&b);
	/* But never more than the window. */
	setup(40);
	call->p.tx.cc.cwnd = 34;
	ack(11, 18, RXW_ACK_OUT_OF_SEQUENCE, "01111111");
	ck_assert_uint_le(call->p.tx.cc.ssthresh, 20);
	bench_free(&b);
}
END_TEST

/* `packets` more are sent. */
static void send_more(unsigned packets)
{
	bench_write(call, packets, 100, false);
	rxw_pcall_flush(&call->p, &b.out);
	bench_settle(&b);
	b.out.now += 10 * RXW_MS;
}

/* The application sent little for a while: the halving starts from what the path carried before that. */
START_TEST(loss_after_little_data)
{
	uint32_t una;

	setup(80);
	ack(81, 80, RXW_ACK_REQUESTED, "");
	for (unsigned left = 40; left >= 20; left /= 2) {
		for (unsigned i = 0; i < 5; i++) {
			send_more(10);
			ack(call->p.tx.nxt, c->p.serial, RXW_ACK_REQUESTED, "");
		}
		ck_assert_uint_le(call->p.tx.last_peak, 10);
		send_more(10);
		una = call->p.tx.una;
		ack(una, c->p.serial - 2, RXW_ACK_OUT_OF_SEQUENCE, "01111111");
		ck_assert_uint_eq(call->p.tx.cc.ssthresh, left);
		bench_send(call);
		ck_assert_uint_eq(call->p.count.retransmitted, left == 40 ? 1 : 2);
		b.out.now += 10 * RXW_MS;
		ack(call->p.tx.nxt, c->p.serial, RXW_ACK_REQUESTED, "");
	}
	bench_free(&b);
}
END_TEST

START_TEST(softly_complete)
{
	bench_init(&b, false);
	c = bench_conn(&b, BENCH_EPOCH, BENCH_CID, 7001);
	rxw_peer_set_validated(c->p.peer, b.out.now);
	bench_get_data(&b, c, 1, 1, RXW_LAST_PACKET, 10);
	call = (struct bench_call *)bench_channel(c, 0);
	bench_read(call);
	bench_write(call, 3, 10, true);
	rxw_pcall_finish(&call->p, &b.out);
	bench_settle(&b);
	ck_assert_int_eq(call->p.state, RXW_CS_HOLD);
	ack(1, 3, RXW_ACK_IDLE, "110");
	ck_assert_int_eq(call->p.state, RXW_CS_HOLD);
	call->events = 0;
	ack(1, 3, RXW_ACK_IDLE, "111");
	ck_assert_int_eq(call->p.state, RXW_CS_DALLY);
	ck_assert(call->events & RXW_OUT_DONE);
	ck_assert(rxw_pcall_done(&call->p));
	ck_assert_uint_eq(rxw_pcall_queued(&call->p), 0);
	b.next = b.count;
	bench_pass(&b, 100 * RXW_SEC);
	bench_nothing(&b);
	bench_free(&b);
}
END_TEST

/*
 * A client that has the whole reply may begin its next call, to which OpenAFS would apply the
 * acknowledgement in a PING. So neither the proof of an address nor a larger MTU is asked for then.
 */
START_TEST(no_ping_after_the_reply)
{
	bool whole = _i & 1, validated = _i & 2;
	uint8_t bytes[RXW_ACK_MAX_SIZE];
	unsigned pings = 0;
	uint32_t length;

	bench_init(&b, false);
	b.params.mtu_ceiling = 8972;
	c = bench_conn(&b, BENCH_EPOCH, BENCH_CID, 7001);
	bench_get_data(&b, c, 1, 1, RXW_LAST_PACKET, 1000);
	call = (struct bench_call *)bench_channel(c, 0);
	bench_read(call);
	call->p.tx.cc.cwnd = 100;
	call->p.tx.edge = 256;
	call->p.tx.window = 255;
	if (validated) {
		rxw_peer_set_validated(c->p.peer, b.out.now);
		bench_write(call, 100, 100, whole);
	} else {
		bench_write(call, 2, 100, whole);
	}
	if (whole)
		rxw_pcall_finish(&call->p, &b.out);
	ck_assert_uint_eq(call->p.tx.nxt, validated ? 101 : 3);
	b.count = b.next = 0;
	b.out.now += RXW_MS;
	length = bench_ack(&b, bytes, 1, call->p.tx.nxt - 1, c->p.serial, RXW_ACK_REQUESTED, 0, "",
			   255);
	rxw_put32(bytes + length - 16, 16384);
	bench_input(&b, c, bytes, length, length);
	for (unsigned i = 0; i < b.count; i++)
		pings += b.sent[i].h.type == RXW_ACK && b.sent[i].ack.reason == RXW_ACK_PING;
	ck_assert_uint_eq(pings, !whole);
	bench_free(&b);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ackinput");
	TCase *tcase = tcase_create("ackinput");

	suite_add_tcase(suite, tcase);
	tcase_set_timeout(tcase, 0);
	tcase_add_test(tcase, malformed);
	tcase_add_test(tcase, never_sent);
	tcase_add_test(tcase, stale);
	tcase_add_test(tcase, licence);
	tcase_add_test(tcase, wide_never_sent);
	tcase_add_test(tcase, withdrawn);
	tcase_add_test(tcase, damaged_serial);
	tcase_add_test(tcase, withdrawn_and_busy);
	tcase_add_test(tcase, round_trips);
	tcase_add_test(tcase, waits_in_our_socket);
	tcase_add_loop_test(tcase, round_trips_of_any_serials, 0, 5);
	tcase_add_test(tcase, trailers);
	tcase_add_test(tcase, sizes_of_one_connection);
	tcase_add_test(tcase, lost_by_count);
	tcase_add_test(tcase, phases_are_traced);
	tcase_add_test(tcase, lost_by_time);
	tcase_add_test(tcase, reordering_is_undone);
	tcase_add_test(tcase, duplicate_names_a_retransmission);
	tcase_add_test(tcase, duplicate_names_an_original);
	tcase_add_test(tcase, one_late_packet_of_many);
	tcase_add_test(tcase, timeout_that_was_right);
	tcase_add_test(tcase, timeouts_that_were_wrong);
	tcase_add_test(tcase, dropped_again_is_no_loss);
	tcase_add_test(tcase, dropped_and_in_the_tail);
	tcase_add_test(tcase, sample_behind_a_hole);
	tcase_add_test(tcase, ping_behind_a_hole);
	tcase_add_test(tcase, exceeded_window);
	tcase_add_test(tcase, no_space);
	tcase_add_test(tcase, nat_reset);
	tcase_add_test(tcase, slow_start_doubles);
	tcase_add_test(tcase, slow_start_by_small_acks);
	tcase_add_test(tcase, window_for_the_next_call);
	tcase_add_test(tcase, wide_window_for_the_next_call);
	tcase_add_test(tcase, loss_of_a_full_window);
	tcase_add_test(tcase, loss_after_little_data);
	tcase_add_test(tcase, softly_complete);
	tcase_add_loop_test(tcase, no_ping_after_the_reply, 0, 4);
	return bench_main(suite);
}
