/* SPDX-License-Identifier: BSD-2-Clause */
/* ACKs sent: when, their contents, window updates (rx-protocol 3.6, 3.7). */
#include <string.h>

#include "tests/rx/proto/bench.h"

static struct bench b;
static struct bench_conn *c;

static void setup(void)
{
	bench_init(&b, false);
	c = bench_conn(&b, BENCH_EPOCH, BENCH_CID, 7001);
	rxw_peer_set_validated(c->p.peer, b.out.now);
}

static void teardown(void)
{
	bench_free(&b);
}

static struct bench_call *call(void)
{
	return (struct bench_call *)bench_channel(c, 0);
}

/* `count` packets as one burst in one batch. */
static void burst(uint32_t seq, unsigned count, bool dry)
{
	uint8_t bytes[64 * 128];
	uint32_t length = 0;

	for (unsigned i = 0; i < count; i++)
		length += bench_data(&b, bytes + length, 1, seq + i, 0, 100);
	bench_feed(&b, c, bytes, length, 128);
	bench_end(&b, c, dry);
}

static struct bench_packet *expect_ack(unsigned reason, uint32_t first, unsigned count,
				       uint32_t serial)
{
	struct bench_packet *k = bench_expect(&b, RXW_ACK);

	ck_assert_msg(k->ack.reason == reason, "reason %s", rxw_ack_reason_name(k->ack.reason));
	ck_assert_uint_eq(k->ack.first, first);
	ck_assert_uint_eq(k->ack.count, count);
	ck_assert_uint_eq(k->ack.serial, serial);
	ck_assert_uint_eq(k->h.flags,
			  RXW_SLOW_START_OK | (reason == RXW_ACK_PING ? RXW_REQUEST_ACK : 0) |
				  (c->p.client ? RXW_CLIENT_INITIATED : 0));
	ck_assert_uint_eq(k->h.seq, 0);
	ck_assert_uint_eq(k->h.spare, 0);
	ck_assert_uint_eq(k->ack.trailer_words, 4);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_uint_eq(k->bytes[28 + 18 + count + i], 0);
	return k;
}

/* Skips the 128 packets for which every second one is acknowledged. */
static void past_the_beginning(void)
{
	for (uint32_t seq = 1; seq < 161; seq += 16) {
		burst(seq, 16, true);
		bench_read(call());
		bench_pass(&b, RXW_MS);
	}
	b.next = b.count;
}

/* With wide windows, ACKs differ in the flag and one octet from those of today. */
START_TEST(offer)
{
	struct bench_packet *k;

	setup();
	b.params.window = 1000;
	bench_get_data(&b, c, 1, 1, RXW_REQUEST_ACK, 10);
	k = bench_expect(&b, RXW_ACK);
	ck_assert_uint_eq(k->h.flags, RXW_SLOW_START_OK | RXW_EXTENDED_ACK);
	ck_assert_uint_eq(k->ack.count, 1);
	ck_assert_uint_eq(k->bytes[28 + 18 + 1], 0);
	ck_assert_uint_eq(k->bytes[28 + 18 + 1 + 1], 4);
	ck_assert_uint_eq(k->bytes[28 + 18 + 1 + 2], 0);
	ck_assert_uint_eq(k->length, 28 + 18 + 1 + 3 + 16);
	ck_assert_uint_eq(k->ack.rwind, 16);
	teardown();
}
END_TEST

/* A whole request in one batch: the reply acknowledges it, or an ACK that waits for the reply. */
START_TEST(whole_request)
{
	uint8_t bytes[3 * 128];

	for (unsigned replies = 0; replies < 2; replies++) {
		uint32_t length = 0;

		setup();
		for (uint32_t seq = 1; seq <= 3; seq++)
			length += bench_data(&b, bytes + length, 1, seq,
					     seq == 3 ? RXW_LAST_PACKET : 0, 100);
		bench_input(&b, c, bytes, length, 128);
		bench_nothing(&b);
		bench_read(call());
		if (replies) {
			bench_write(call(), 1, 10, true);
			bench_expect(&b, RXW_DATA);
		}
		bench_pass(&b, 100 * RXW_MS);
		if (!replies)
			expect_ack(RXW_ACK_DELAY, 4, 0, 0);
		bench_nothing(&b);
		teardown();
	}
}
END_TEST

/* The same, but its end asks, or it comes in two batches. */
START_TEST(request_that_asks)
{
	uint8_t bytes[3 * 128];
	uint32_t length = 0;

	setup();
	for (uint32_t seq = 1; seq <= 3; seq++)
		length += bench_data(&b, bytes + length, 1, seq,
				     seq == 3 ? RXW_LAST_PACKET | RXW_REQUEST_ACK : 0, 100);
	bench_input(&b, c, bytes, length, 128);
	bench_expect(&b, RXW_ACK);
	teardown();
	setup();
	burst(1, 2, true);
	bench_expect(&b, RXW_ACK);
	bench_nothing(&b);
	bench_get_data(&b, c, 1, 3, RXW_LAST_PACKET, 100);
	bench_nothing(&b);
	teardown();
}
END_TEST

START_TEST(single_packet_waits)
{
	setup();
	bench_get_data(&b, c, 1, 1, 0, 10);
	bench_nothing(&b);
	bench_pass(&b, 49 * RXW_MS);
	bench_nothing(&b);
	bench_pass(&b, 2 * RXW_MS);
	ck_assert_uint_eq(expect_ack(RXW_ACK_DELAY, 1, 1, 0)->ack.rwind, 16);
	bench_nothing(&b);
	teardown();
}
END_TEST

START_TEST(every_second_at_first)
{
	setup();
	burst(1, 5, true);
	expect_ack(RXW_ACK_IDLE, 1, 2, 2);
	expect_ack(RXW_ACK_IDLE, 1, 4, 4);
	bench_nothing(&b);
	bench_get_data(&b, c, 1, 6, RXW_REQUEST_ACK, 10);
	ck_assert_uint_eq(expect_ack(RXW_ACK_REQUESTED, 1, 6, 6)->ack.previous, 6);
	bench_nothing(&b);
	teardown();
}
END_TEST

/* `count` packets of a reply as one burst in one batch; the last one ends it. */
static void reply(uint32_t seq, unsigned count, bool ends)
{
	uint8_t bytes[64 * 128];
	uint32_t length = 0;

	for (unsigned i = 0; i < count; i++)
		length += bench_data(&b, bytes + length, 1, seq + i,
				     ends && i + 1 == count ? RXW_LAST_PACKET : 0, 100);
	bench_feed(&b, c, bytes, length, 128);
	bench_end(&b, c, true);
}

static void ask(void)
{
	bench_init(&b, true);
	c = bench_conn(&b, BENCH_EPOCH, BENCH_CID, 7000);
	bench_write(bench_begin(&b, c), 1, 100, true);
	b.next = b.count;
}

/* The next call would acknowledge a reply that came at once, as one of a single packet. */
START_TEST(whole_reply_waits)
{
	ask();
	reply(1, 4, true);
	bench_nothing(&b);
	bench_pass(&b, 49 * RXW_MS);
	bench_nothing(&b);
	bench_pass(&b, 2 * RXW_MS);
	expect_ack(RXW_ACK_DELAY, 1, 4, 0);
	teardown();
	ask();
	reply(1, 4, true);
	bench_read(call());
	rxw_pcall_finish(&call()->p, &b.out);
	bench_settle(&b);
	bench_nothing(&b);
	bench_pass(&b, 3 * RXW_MS);
	expect_ack(RXW_ACK_DELAY, 5, 0, 0);
	bench_pass(&b, 100 * RXW_MS);
	bench_nothing(&b);
	teardown();
}
END_TEST

/* The server waits for ACKs of a longer reply. */
START_TEST(parts_of_a_reply_are_acknowledged)
{
	ask();
	reply(1, 3, false);
	expect_ack(RXW_ACK_IDLE, 1, 2, 2);
	bench_nothing(&b);
	reply(4, 3, true);
	expect_ack(RXW_ACK_IDLE, 1, 4, 4);
	expect_ack(RXW_ACK_IDLE, 1, 6, 6);
	bench_nothing(&b);
	teardown();
}
END_TEST

START_TEST(merged_later)
{
	setup();
	past_the_beginning();
	burst(161, 20, true);
	expect_ack(RXW_ACK_IDLE, 181, 0, 180);
	bench_nothing(&b);
	/* Socket not drained: an ACK is owed, but for at most a millisecond. */
	burst(181, 10, false);
	bench_nothing(&b);
	ck_assert(rxw_pconn_owes(&c->p));
	bench_pass(&b, 2 * RXW_MS);
	expect_ack(RXW_ACK_IDLE, 191, 0, 190);
	/* Half a window is acknowledged at once, drained or not. */
	ck_assert_uint_eq(call()->p.rx.window, 128);
	burst(191, 64, false);
	expect_ack(RXW_ACK_IDLE, 255, 0, 254);
	ck_assert(!rxw_pconn_owes(&c->p));
	teardown();
}
END_TEST

START_TEST(peer_that_needs_no_beginning)
{
	setup();
	atomic_store(&c->p.peer->merged_acks_ok, 1);
	burst(1, 10, true);
	expect_ack(RXW_ACK_IDLE, 1, 10, 10);
	bench_nothing(&b);
	teardown();
}
END_TEST

START_TEST(doubling_is_noticed)
{
	uint32_t seq = 161;

	setup();
	past_the_beginning();
	ck_assert_uint_eq(atomic_load(&c->p.peer->merged_acks_ok), 0);
	for (unsigned n = 8; n <= 32; n *= 2) {
		burst(seq, n, true);
		seq += n;
		bench_read(call());
	}
	ck_assert_uint_eq(atomic_load(&c->p.peer->merged_acks_ok), 1);
	teardown();
}
END_TEST

START_TEST(holes)
{
	struct bench_packet *k;

	setup();
	past_the_beginning();
	bench_read(call());
	/* One per packet behind a hole, at most four in a batch, the rest merged. */
	burst(163, 10, true);
	for (unsigned i = 0; i < 4; i++)
		k = expect_ack(RXW_ACK_OUT_OF_SEQUENCE, 161, 12, 161 + i);
	k = expect_ack(RXW_ACK_OUT_OF_SEQUENCE, 161, 12, 170);
	ck_assert_uint_eq(k->ack.acks[0], 0);
	ck_assert_uint_eq(k->ack.acks[1], 0);
	ck_assert_uint_eq(k->ack.acks[2], 1);
	ck_assert_uint_eq(k->ack.acks[11], 1);
	ck_assert_uint_eq(k->ack.previous, 172);
	bench_nothing(&b);
	/* Part of the hole, then the rest: an ACK at once for each. */
	bench_get_data(&b, c, 1, 161, 0, 10);
	expect_ack(RXW_ACK_IDLE, 162, 11, 171);
	bench_get_data(&b, c, 1, 162, 0, 10);
	expect_ack(RXW_ACK_IDLE, 173, 0, 172);
	/* And after a loss again for every second packet. */
	burst(173, 4, true);
	expect_ack(RXW_ACK_IDLE, 175, 0, 174);
	expect_ack(RXW_ACK_IDLE, 177, 0, 176);
	bench_nothing(&b);
	teardown();
}
END_TEST

START_TEST(duplicates)
{
	setup();
	burst(1, 2, true);
	b.next = b.count;
	bench_get_data(&b, c, 1, 2, RXW_REQUEST_ACK, 10);
	expect_ack(RXW_ACK_DUPLICATE, 1, 2, 3);
	bench_nothing(&b);
	ck_assert_uint_eq(b.stats.duplicates, 1);
	/* Old and new packets in one run. */
	burst(1, 4, true);
	bench_expect(&b, RXW_ACK);
	expect_ack(RXW_ACK_DUPLICATE, 1, 4, 7);
	ck_assert_uint_eq(call()->p.rx.next, 5);
	teardown();
}
END_TEST

/* One ACK for several names the first. A sender that has given a number to other bytes learns which of them came first. */
START_TEST(several_duplicates)
{
	uint8_t bytes[128];

	setup();
	burst(1, 2, true);
	b.next = b.count;
	for (unsigned i = 0; i < 3; i++)
		bench_feed(&b, c, bytes, bench_data(&b, bytes, 1, 1, RXW_REQUEST_ACK, 50 - i), 128);
	bench_end(&b, c, true);
	expect_ack(RXW_ACK_DUPLICATE, 1, 2, 3);
	bench_nothing(&b);
	teardown();
}
END_TEST

/* As many answers as packets that brought new data, plus 16. Then one delayed ACK for all. */
START_TEST(packets_that_bring_nothing)
{
	setup();
	burst(1, 2, true);
	b.next = b.count;
	for (unsigned i = 0; i < 18; i++) {
		bench_get_data(&b, c, 1, 1 + i % 2, 0, 10);
		expect_ack(RXW_ACK_DUPLICATE, 1, 2, b.serial);
	}
	for (unsigned i = 0; i < 100; i++)
		bench_get_data(&b, c, 1, 1 + i % 2, 0, 10);
	bench_nothing(&b);
	bench_pass(&b, 20 * RXW_MS);
	expect_ack(RXW_ACK_DUPLICATE, 1, 2, b.serial);
	bench_nothing(&b);
	/* The rate drops as it continues. */
	for (unsigned ms = 0; ms < 3000; ms++) {
		bench_get_data(&b, c, 1, 1, 0, 10);
		bench_pass(&b, RXW_MS);
	}
	ck_assert_uint_le(b.count - b.next, 3000 / 20);
	ck_assert_uint_ge(b.count - b.next, 3000 / 200);
	b.next = b.count;
	/* New data is answered as usual, and so is a duplicate after a pause. */
	burst(3, 2, true);
	expect_ack(RXW_ACK_IDLE, 1, 4, b.serial);
	bench_pass(&b, 200 * RXW_MS);
	b.next = b.count;
	bench_get_data(&b, c, 1, 1, 0, 10);
	expect_ack(RXW_ACK_DUPLICATE, 1, 4, b.serial);
	teardown();
}
END_TEST

START_TEST(beyond_the_window)
{
	setup();
	b.params.window = 16;
	burst(1, 20, true);
	for (unsigned i = 0; i < 8; i++)
		expect_ack(RXW_ACK_IDLE, 1, 2 * i + 2, 2 * i + 2);
	expect_ack(RXW_ACK_EXCEEDS_WINDOW, 1, 16, 20);
	ck_assert_uint_eq(b.stats.drops[RXW_DROP_WINDOW], 4);
	ck_assert_uint_eq(rxw_pcall_readable(&call()->p, NULL), 16);
	teardown();
}
END_TEST

START_TEST(window_grows_and_never_shrinks)
{
	uint32_t edge = 17, seq = 1;
	struct bench_packet *k;

	setup();
	for (unsigned round = 0; round < 40; round++) {
		burst(seq, 16, true);
		seq += 16;
		bench_read(call());
		bench_pass(&b, 60 * RXW_MS);
		while ((k = bench_next(&b)) != NULL) {
			ck_assert_uint_ge(k->ack.first + k->ack.rwind, edge);
			ck_assert_uint_le(k->ack.rwind, 255);
			edge = k->ack.first + k->ack.rwind;
		}
	}
	ck_assert_uint_eq(call()->p.rx.window, 255);
	/* A reader that stops: the window's edge stays once many packets are unread. */
	for (unsigned round = 0; round < 60; round++) {
		uint32_t before = edge;

		if (seq + 16 > edge)
			break;
		burst(seq, 16, true);
		seq += 16;
		while ((k = bench_next(&b)) != NULL) {
			ck_assert_uint_ge(k->ack.first + k->ack.rwind, before);
			edge = before = k->ack.first + k->ack.rwind;
		}
	}
	ck_assert_uint_le(edge, call()->p.rx.consumed + 256 + 255);
	ck_assert_uint_ge(seq + 16, edge);
	/* It reads again: the window opens at once. */
	bench_read(call());
	k = expect_ack(RXW_ACK_DELAY, call()->p.rx.next, 0, 0);
	ck_assert_uint_gt(k->ack.first + k->ack.rwind, edge);
	teardown();
}
END_TEST

START_TEST(updates_by_consumption)
{
	setup();
	b.params.unread_packets = 0;
	burst(1, 16, true);
	b.next = b.count;
	/* Seven packets cause an ACK only after 50 ms, eight at once. */
	struct rxw_rxpiece piece[16];
	unsigned n = rxw_pcall_take(&call()->p, piece, 16);

	for (unsigned i = 0; i < n; i++)
		rxw_buf_unref(piece[i].buf);
	rxw_pcall_consumed(&call()->p, 1, &b.out);
	rxw_pcall_read_pause(&call()->p, &b.out);
	bench_settle(&b);
	/* The window was closed, and opens. */
	ck_assert_uint_eq(expect_ack(RXW_ACK_DELAY, 2, 15, 0)->ack.rwind, 32);
	rxw_pcall_consumed(&call()->p, 7, &b.out);
	rxw_pcall_read_pause(&call()->p, &b.out);
	bench_settle(&b);
	bench_nothing(&b);
	bench_pass(&b, 51 * RXW_MS);
	expect_ack(RXW_ACK_DELAY, 9, 8, 0);
	rxw_pcall_consumed(&call()->p, 8, &b.out);
	rxw_pcall_read_pause(&call()->p, &b.out);
	bench_settle(&b);
	expect_ack(RXW_ACK_DELAY, 17, 0, 0);
	teardown();
}
END_TEST

/* Packets that are owed an ACK cause no window update, however soon they are consumed. */
START_TEST(what_is_owed_is_no_update)
{
	setup();
	past_the_beginning();
	burst(161, 20, false);
	bench_read(call());
	bench_nothing(&b);
	burst(181, 20, false);
	bench_read(call());
	bench_nothing(&b);
	/* The socket is drained: one ACK for all, and none is delayed. */
	bench_end(&b, c, true);
	expect_ack(RXW_ACK_IDLE, 201, 0, 200);
	bench_pass(&b, 60 * RXW_MS);
	bench_nothing(&b);
	teardown();
}
END_TEST

START_TEST(pings_are_answered_once)
{
	uint8_t packet[2048];
	uint32_t size;

	setup();
	bench_get_data(&b, c, 1, 1, 0, 10);
	size = bench_ack(&b, packet, 1, 1, 0, RXW_ACK_PING, RXW_REQUEST_ACK, "", 32);
	memset(packet + size, 0, 1000); /* padded: a probe; the answer is not */
	bench_input(&b, c, packet, size + 1000, size + 1000);
	ck_assert_uint_eq(expect_ack(RXW_ACK_PING_RESPONSE, 1, 1, b.serial)->length, 66);
	bench_input(&b, c, packet, size, size);
	bench_nothing(&b);				     /* the same again */
	bench_get_ack(&b, c, 1, 1, 0, RXW_ACK_PING, "", 32); /* without the flag */
	expect_ack(RXW_ACK_PING_RESPONSE, 1, 1, b.serial);
	size = bench_ack(&b, packet, 1, 1, 0, RXW_ACK_DELAY, RXW_REQUEST_ACK, "", 32);
	bench_input(&b, c, packet, size, size);
	expect_ack(RXW_ACK_PING_RESPONSE, 1, 1, b.serial);
	bench_get_ack(&b, c, 1, 1, 0, RXW_ACK_DELAY, "", 32);
	bench_nothing(&b);
	teardown();
}
END_TEST

/*
 * Each answer may draw more PINGs. A flood of them gets a few answers only, and occasional ones get
 * one each.
 */
START_TEST(pings_in_a_row)
{
	uint8_t packet[RXW_ACK_MAX_SIZE];
	unsigned answers = 0;
	struct bench_packet *k;
	uint32_t size;

	setup();
	bench_get_data(&b, c, 1, 1, 0, 100);
	for (unsigned i = 0; i < 1000; i++) {
		size = bench_ack(&b, packet, 1, 1, 0, RXW_ACK_PING, RXW_REQUEST_ACK, "", 32);
		bench_input(&b, c, packet, size, size);
		bench_pass(&b, RXW_MS);
		while ((k = bench_next(&b)) != NULL)
			answers += k->h.type == RXW_ACK && k->ack.reason == RXW_ACK_PING_RESPONSE;
		b.count = b.next = 0;
	}
	ck_assert_uint_ge(answers, 100);
	ck_assert_uint_le(answers, 200);
	for (unsigned i = 0; i < 100; i++) {
		bench_pass(&b, 20 * RXW_MS);
		b.count = b.next = 0;
		size = bench_ack(&b, packet, 1, 1, 0, RXW_ACK_PING, RXW_REQUEST_ACK, "", 32);
		bench_input(&b, c, packet, size, size);
		ck_assert_uint_eq(bench_expect(&b, RXW_ACK)->ack.reason, RXW_ACK_PING_RESPONSE);
	}
	teardown();
}
END_TEST

#define FLOOD	30u	/* PINGs per packet of a reply */
#define REPLY	1000u	/* packets, one per millisecond */
#define PERIODS (1000 / 100) /* of 100 ms */

/*
 * A client whose server sends PINGs about all of its calls, including a finished one, beside a
 * reply. The limit applies to the connection, not to the call. Each packet of the reply is received
 * and acknowledged.
 */
START_TEST(pings_at_a_client)
{
	uint32_t acknowledged = 1, size;
	struct bench_call *over = NULL;
	uint8_t packet[RXW_ACK_MAX_SIZE];
	struct bench_packet *k;
	unsigned answers = 0;

	bench_init(&b, true);
	b.params.unread_packets = 0;
	c = bench_conn(&b, BENCH_EPOCH, BENCH_CID, 7000);
	for (unsigned i = 0; i < 4; i++) {
		over = bench_begin(&b, c);
		bench_write(over, 1, 100, true);
	}
	size = bench_data(&b, packet, 1, 1, RXW_LAST_PACKET, 4);
	rxw_put32(packet + 4, BENCH_CID | 3);
	bench_input(&b, c, packet, size, size);
	bench_read(over);
	rxw_pcall_finish(&over->p, &b.out);
	bench_settle(&b);
	bench_pass(&b, 100 * RXW_MS);
	ck_assert_int_eq(over->p.state, RXW_CS_DALLY);
	bench_get_data(&b, c, 1, 1, 0, 100);
	bench_read(call());
	b.count = b.next = 0;
	for (uint32_t seq = 2; seq <= REPLY; seq++) {
		bench_get_data(&b, c, 1, seq, seq == REPLY ? RXW_LAST_PACKET : 0, 100);
		for (unsigned i = 0; i < FLOOD; i++) {
			size = bench_ack(&b, packet, 1, 2, 0, RXW_ACK_PING, RXW_REQUEST_ACK, "",
					 32);
			rxw_put32(packet + 4, BENCH_CID | i % 4);
			bench_input(&b, c, packet, size, size);
		}
		ck_assert_uint_eq(bench_read(call()), 1);
		bench_pass(&b, RXW_MS);
		while ((k = bench_next(&b)) != NULL) {
			if (k->h.type != RXW_ACK)
				continue;
			answers += k->ack.reason == RXW_ACK_PING_RESPONSE;
			if (k->h.cid == BENCH_CID)
				acknowledged = rxw_max32(acknowledged, k->ack.first + k->ack.count);
		}
		b.count = b.next = 0;
	}
	bench_pass(&b, 100 * RXW_MS);
	while ((k = bench_next(&b)) != NULL)
		if (k->h.type == RXW_ACK && k->h.cid == BENCH_CID)
			acknowledged = rxw_max32(acknowledged, k->ack.first + k->ack.count);
	ck_assert_uint_eq(acknowledged, REPLY + 1);
	ck_assert_uint_ge(answers, 16 * PERIODS);
	ck_assert_uint_le(answers, 16 * (PERIODS + 1));
	bench_free(&b);
}
END_TEST

START_TEST(no_room_stays_owed)
{
	setup();
	b.out.ctl_room = 0;
	burst(1, 4, true);
	bench_nothing(&b);
	ck_assert(rxw_pconn_owes(&c->p));
	b.out.ctl_room = 64;
	bench_pass(&b, 2 * RXW_MS);
	expect_ack(RXW_ACK_IDLE, 1, 4, 4);
	bench_nothing(&b);
	teardown();
}
END_TEST

/* In a small record the first phase of a stream leaves entries for urgent packets. */
START_TEST(small_record)
{
	setup();
	b.out.ctl_room = 6;
	burst(1, 40, true);
	expect_ack(RXW_ACK_IDLE, 1, 2, 2);
	expect_ack(RXW_ACK_IDLE, 1, 4, 4);
	expect_ack(RXW_ACK_IDLE, 1, 40, 40);
	bench_nothing(&b);
	teardown();
}
END_TEST

START_TEST(one_ack_for_a_jumbogram)
{
	uint8_t bytes[4000];
	uint32_t size;

	setup();
	past_the_beginning();
	size = bench_data(&b, bytes, 1, 161, RXW_JUMBO_PACKET, RXW_JUMBO_PAYLOAD);
	memset(bytes + size, 0, 4 + 50);
	b.serial++;
	bench_input(&b, c, bytes, size + 54, size + 54);
	expect_ack(RXW_ACK_IDLE, 163, 0, 162);
	bench_nothing(&b);
	teardown();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ack");
	TCase *tcase = tcase_create("ack");

	suite_add_tcase(suite, tcase);
	tcase_set_timeout(tcase, 0);
	tcase_add_test(tcase, offer);
	tcase_add_test(tcase, whole_request);
	tcase_add_test(tcase, request_that_asks);
	tcase_add_test(tcase, single_packet_waits);
	tcase_add_test(tcase, every_second_at_first);
	tcase_add_test(tcase, whole_reply_waits);
	tcase_add_test(tcase, parts_of_a_reply_are_acknowledged);
	tcase_add_test(tcase, merged_later);
	tcase_add_test(tcase, peer_that_needs_no_beginning);
	tcase_add_test(tcase, doubling_is_noticed);
	tcase_add_test(tcase, holes);
	tcase_add_test(tcase, duplicates);
	tcase_add_test(tcase, several_duplicates);
	tcase_add_test(tcase, packets_that_bring_nothing);
	tcase_add_test(tcase, beyond_the_window);
	tcase_add_test(tcase, window_grows_and_never_shrinks);
	tcase_add_test(tcase, updates_by_consumption);
	tcase_add_test(tcase, what_is_owed_is_no_update);
	tcase_add_test(tcase, pings_are_answered_once);
	tcase_add_test(tcase, pings_in_a_row);
	tcase_add_test(tcase, pings_at_a_client);
	tcase_add_test(tcase, no_room_stays_owed);
	tcase_add_test(tcase, small_record);
	tcase_add_test(tcase, one_ack_for_a_jumbogram);
	return bench_main(suite);
}
