/* SPDX-License-Identifier: BSD-2-Clause */
/* How a sender handles valid and invalid ACKs: rx-protocol 3.2 to 3.8, 4.1 (doc/conformance.md). */
#include <string.h>

#include "bench.h"

static struct bench b;
static struct bench_conn *c;
static struct bench_call *call;
static uint8_t packet[20000];

/* A client call with `queued` packets of 40 bytes and the end, of which `sent` were sent. */
static void up(unsigned queued, unsigned sent)
{
	bench_init(&b, true);
	c = bench_conn(&b, BENCH_EPOCH, BENCH_CID, 7000);
	call = bench_begin(&b, c);
	call->p.tx.cc.cwnd = 64; /* the peer's window is the limit */
	bench_write(call, queued, 40, true);
	rxw_pcall_flush(&call->p, &b.out);
	bench_settle(&b);
	ck_assert_uint_eq(b.count, sent);
	b.next = b.count;
}

static void down(void)
{
	bench_free(&b);
}

static void input(uint32_t size)
{
	bench_input(&b, c, packet, size, size);
}

static void ack(uint32_t first, const char *acks, uint32_t rwind)
{
	bench_get_ack(&b, c, 1, first, 0, RXW_ACK_DELAY, acks, rwind);
}

static uint64_t bad_acks(void)
{
	return atomic_load(&b.stats.drops[RXW_DROP_BAD_ACK]);
}

/* Packets sent since the last call, all DATA. *highest: their highest sequence number. */
static unsigned left(uint32_t *highest)
{
	struct bench_packet *k;
	unsigned n = 0;

	*highest = 0;
	while ((k = bench_next(&b)) != NULL) {
		ck_assert_uint_eq(k->h.type, RXW_DATA);
		if (k->h.seq > *highest)
			*highest = k->h.seq;
		n++;
	}
	return n;
}

/* --- windows --- */

START_TEST(sixteen_before_the_first_ack)
{
	up(40, 16);
}
END_TEST

START_TEST(the_window_bounds)
{
	uint32_t highest;

	up(60, 16);
	ack(1, "11111111", 20); /* soft ACKs open nothing */
	ck_assert_uint_eq(left(&highest), 4);
	ck_assert_uint_eq(highest, 20);
	ack(9, "", 20);
	ck_assert_uint_eq(left(&highest), 8);
	ck_assert_uint_eq(highest, 28);
	ack(9, "", 0); /* reads as 1 */
	ck_assert_uint_eq(call->p.tx.window, 1);
	ack(29, "", 0xffffffff); /* no more than an ACK can list */
	left(&highest);
	ck_assert_uint_eq(call->p.tx.window, 255);
	ck_assert_uint_eq(highest, 60);
	ck_assert_uint_eq(c->p.peer_window, 255); /* for later calls */
}
END_TEST

START_TEST(trailers_by_their_length)
{
	uint32_t size, whole;

	up(60, 16);
	whole = bench_ack(&b, packet, 1, 3, 0, RXW_ACK_DELAY, 0, "", 9);
	input(whole - 16); /* none */
	ck_assert_uint_eq(call->p.tx.una, 3);
	ck_assert_uint_eq(call->p.tx.window, 16);
	size = bench_ack(&b, packet, 1, 4, 0, RXW_ACK_DELAY, 0, "", 9);
	rxw_put32(packet + size - 16, 1200);
	input(size - 8); /* two words: sizes */
	ck_assert_uint_eq(c->p.peer_max_mtu, 1200);
	ck_assert_uint_eq(call->p.tx.window, 16);
	size = bench_ack(&b, packet, 1, 5, 0, RXW_ACK_DELAY, 0, "", 200);
	input(size - 4); /* three: the window, which may only shrink */
	ck_assert_uint_eq(call->p.tx.window, 16);
	size = bench_ack(&b, packet, 1, 6, 0, RXW_ACK_DELAY, 0, "", 9);
	input(size - 4);
	ck_assert_uint_eq(call->p.tx.window, 9);
	size = bench_ack(&b, packet, 1, 7, 0, RXW_ACK_DELAY, 0, "", 200);
	rxw_put32(packet + size - 16, 0xffffffff);
	rxw_put32(packet + size - 12, 0);
	rxw_put32(packet + size - 4, 0xffffffff);
	input(size);
	ck_assert_uint_eq(call->p.tx.window, 200);
	ck_assert_uint_eq(c->p.peer_max_mtu, RXW_MTU_MAX);
	ck_assert_uint_le(rxw_pcall_datagram_size(&call->p), 1444); /* our path limits the size */
	size = bench_ack(&b, packet, 1, 8, 0, RXW_ACK_DELAY, 0, "", 200);
	rxw_put32(packet + size - 16, 1);
	input(size);
	ck_assert_uint_eq(rxw_pcall_datagram_size(&call->p), RXW_MTU_MIN);
}
END_TEST

/* --- invalid ACKs --- */

START_TEST(malformed)
{
	uint32_t size;

	up(20, 16);
	for (uint32_t n = 0; n < 18; n++) {
		bench_ack(&b, packet, 1, 17, 0, RXW_ACK_PING, RXW_REQUEST_ACK, "", 32);
		input(RXW_HEADER_SIZE + n);
		ck_assert_uint_eq(bad_acks(), n + 1);
	}
	size = bench_ack(&b, packet, 1, 9, 0, RXW_ACK_DELAY, 0, "1111", 32);
	packet[RXW_HEADER_SIZE + 17] = 255; /* more entries than bytes */
	input(size);
	ck_assert_uint_eq(bad_acks(), 19);
	size = bench_ack(&b, packet, 1, 0, 0, RXW_ACK_DELAY, 0, "", 32);
	input(size);
	ck_assert_uint_eq(bad_acks(), 20);
	ck_assert_uint_eq(call->p.tx.una, 1);
	ck_assert_int_eq(call->p.error, 0);
	bench_nothing(&b);
}
END_TEST

START_TEST(for_what_was_never_sent)
{
	up(20, 16);
	ack(17, "", 2);
	ck_assert_int_eq(call->p.error, 0);
	down();
	up(20, 16);
	ack(18, "", 32);
	ck_assert_int_eq(call->p.error, RXW_PROTOCOL_ERROR);
	ck_assert_int_eq(call->p.error_origin, RXW_ORIGIN_LOCAL);
	ck_assert_int_eq(bench_expect(&b, RXW_ABORT)->code, RXW_PROTOCOL_ERROR);
}
END_TEST

START_TEST(entries_beyond_what_was_sent)
{
	char all[256];

	up(20, 16);
	memset(all, '1', 255);
	all[255] = '\0';
	ack(1, all, 16);
	ck_assert_int_eq(call->p.error, 0);
	ck_assert_uint_eq(call->p.tx.acked, 16);
	ck_assert_uint_eq(call->p.tx.nxt, 17);
}
END_TEST

/* Only bit 0 of an entry counts, and only known reasons. */
START_TEST(unknown_bits_and_reasons)
{
	uint32_t size;

	up(20, 16);
	size = bench_ack(&b, packet, 1, 1, 0, RXW_ACK_DELAY, 0, "0000", 16);
	packet[RXW_HEADER_SIZE + 18] = 0xff;
	packet[RXW_HEADER_SIZE + 19] = 0xfe;
	packet[RXW_HEADER_SIZE + 20] = 0x03;
	packet[RXW_HEADER_SIZE + 16] = 77;
	input(size);
	ck_assert_uint_eq(call->p.tx.acked, 2);
	size = bench_ack(&b, packet, 1, 5, 0, RXW_ACK_DELAY, 0, "", 16);
	packet[RXW_HEADER_SIZE + 16] = 0;
	memset(packet + RXW_HEADER_SIZE, 0xff, 4);	/* bufferSpace, maxSkew */
	memset(packet + RXW_HEADER_SIZE + 18, 0xff, 3); /* padding of old senders */
	input(size);
	ck_assert_uint_eq(call->p.tx.una, 5);
	ck_assert_int_eq(call->p.error, 0);
}
END_TEST

START_TEST(stale_ones)
{
	uint32_t size;

	up(40, 16);
	ack(9, "", 20);
	ck_assert_uint_eq(call->p.tx.edge, 29);
	bench_pass(&b, RXW_MS);
	/*
	 * A lower firstPacket changes nothing, whatever the rest says. It is no sign of life, but
	 * it is answered.
	 */
	b.next = b.count;
	call->p.time.last_heard = 1;
	size = bench_ack(&b, packet, 1, 8, 0, RXW_ACK_PING, RXW_REQUEST_ACK, "1111", 255);
	input(size);
	ck_assert_uint_eq(bench_expect(&b, RXW_ACK)->ack.reason, RXW_ACK_PING_RESPONSE);
	ck_assert_uint_eq(call->p.tx.una, 9);
	ck_assert_uint_eq(call->p.tx.edge, 29);
	ck_assert_uint_eq(call->p.tx.acked, 0);
	ck_assert_uint_eq(call->p.time.last_heard, 1);
	/*
	 * An equal but overtaken ACK may add entries, retracts nothing, and its trailer is stale.
	 */
	b.serial = 100;
	ack(9, "0110", 30);
	ck_assert_uint_eq(call->p.tx.edge, 39);
	ck_assert_uint_eq(call->p.tx.acked, 2);
	b.serial = 50;
	ack(9, "1000", 10);
	ck_assert_uint_eq(call->p.tx.acked, 3);
	ck_assert_uint_eq(call->p.tx.edge, 39);
	/* previousPacket is ignored. */
	size = bench_ack(&b, packet, 1, 12, 0, RXW_ACK_DELAY, 0, "", 30);
	rxw_put32(packet + RXW_HEADER_SIZE + 8, 1);
	input(size);
	ck_assert_uint_eq(call->p.tx.una, 12);
}
END_TEST

/* --- keeping and retransmitting --- */

START_TEST(a_soft_one_may_be_withdrawn)
{
	struct bench_packet *first = NULL, *k;
	uint32_t cwnd;

	up(4, 4);
	ack(1, "111", 32);
	ck_assert_uint_eq(call->p.tx.acked, 3);
	ck_assert_uint_eq(rxw_pcall_queued(&call->p), 4); /* all are kept */
	cwnd = call->p.tx.cc.cwnd;
	bench_pass(&b, RXW_MS);
	ack(1, "101", 32);
	for (unsigned i = 0; i < b.next; i++)
		if (b.sent[i].h.seq == 2)
			first = &b.sent[i];
	k = bench_expect(&b, RXW_DATA);
	ck_assert_uint_eq(k->h.seq, 2);
	ck_assert_uint_eq(call->p.tx.cc.cwnd, cwnd); /* no sign of congestion */
	ck_assert_uint_eq(atomic_load(&b.stats.loss_events), 0);
	/*
	 * A retransmission has the same sequence number, position, channel, spare word and bytes,
	 * but a new serial and REQUEST_ACK.
	 */
	ck_assert_ptr_nonnull(first);
	ck_assert_uint_eq(k->length, first->length);
	ck_assert_uint_gt(k->h.serial, first->h.serial);
	ck_assert_uint_eq(k->h.flags & RXW_REQUEST_ACK, RXW_REQUEST_ACK);
	ck_assert(!memcmp(k->bytes, first->bytes, 16));
	ck_assert(!memcmp(k->bytes + 22, first->bytes + 22, k->length - 22));
	ck_assert_uint_eq(k->h.flags & (RXW_CLIENT_INITIATED | RXW_LAST_PACKET),
			  RXW_CLIENT_INITIATED);
}
END_TEST

START_TEST(beyond_the_window_is_no_loss)
{
	uint32_t highest, cwnd;

	up(20, 16);
	cwnd = call->p.tx.cc.cwnd;
	bench_get_ack(&b, c, 1, 5, 16, RXW_ACK_EXCEEDS_WINDOW, "", 4);
	ck_assert_uint_eq(call->p.tx.cc.cwnd, cwnd);
	ck_assert_uint_eq(atomic_load(&b.stats.loss_events), 0);
	ck_assert_uint_eq(left(&highest), 0);
	ck_assert_uint_eq(call->p.tx.flight, 4);
	/* They are retransmitted when the window covers them. */
	ack(9, "", 16);
	ck_assert_uint_ge(left(&highest), 8);
	ck_assert_uint_le(highest, 20);
	ck_assert_uint_ge(call->p.count.retransmitted, 8);
	ck_assert_uint_eq(atomic_load(&b.stats.loss_events), 0);
}
END_TEST

START_TEST(no_space_halves_once)
{
	uint32_t cwnd;

	up(20, 16);
	cwnd = call->p.tx.cc.cwnd;
	bench_get_ack(&b, c, 1, 5, 16, RXW_ACK_NOSPACE, "", 16);
	ck_assert_uint_lt(call->p.tx.cc.cwnd, cwnd);
	cwnd = call->p.tx.cc.cwnd;
	ck_assert_uint_ge(cwnd, 2);
	ck_assert_int_eq(call->p.error, 0);
}
END_TEST

/* --- requests and answers --- */

START_TEST(every_question_is_answered_once)
{
	static const uint8_t reasons[] = {RXW_ACK_PING, RXW_ACK_DELAY, RXW_ACK_REQUESTED,
					  RXW_ACK_PING_RESPONSE, 88};
	struct bench_packet *k;
	uint32_t size;

	up(4, 4);
	for (unsigned i = 0; i < sizeof(reasons); i++) {
		size = bench_ack(&b, packet, 1, 1, 0, reasons[i], RXW_REQUEST_ACK, "", 32);
		packet[RXW_HEADER_SIZE + 16] = reasons[i];
		input(size);
		k = bench_expect(&b, RXW_ACK);
		ck_assert_uint_eq(k->ack.reason, RXW_ACK_PING_RESPONSE);
		ck_assert_uint_eq(k->ack.serial, b.serial);
		ck_assert_uint_eq(k->h.flags & RXW_REQUEST_ACK, 0);
		bench_nothing(&b);
		input(size); /* the same datagram again */
		bench_nothing(&b);
	}
	/* A PING without REQUEST_ACK; an ACK without it is not answered. */
	size = bench_ack(&b, packet, 1, 1, 0, RXW_ACK_PING, 0, "", 32);
	input(size);
	ck_assert_uint_eq(bench_expect(&b, RXW_ACK)->ack.serial, b.serial);
	ack(1, "", 32);
	bench_nothing(&b);
}
END_TEST

START_TEST(padded_ones)
{
	struct bench_packet *k;
	uint32_t size;

	up(4, 4);
	memset(packet, 0, sizeof(packet));
	size = bench_ack(&b, packet, 1, 3, 0, RXW_ACK_PING, RXW_REQUEST_ACK, "", 32);
	input(16384 - 100);
	k = bench_expect(&b, RXW_ACK);
	ck_assert_uint_eq(k->ack.reason, RXW_ACK_PING_RESPONSE);
	ck_assert_uint_eq(k->length, size);
	ck_assert_uint_eq(k->padding, 0);
	ck_assert_uint_eq(call->p.tx.una, 3);
	ck_assert_uint_eq(call->p.tx.window, 32);
}
END_TEST

/* Our own layout: fixed bytes and padding zero, four words, REQUEST_ACK on PINGs only. */
START_TEST(our_own)
{
	struct bench_packet *k;

	up(1, 1);
	bench_get_data(&b, c, 1, 2, 0, 10);
	k = bench_expect(&b, RXW_ACK);
	ck_assert_uint_eq(k->ack.reason, RXW_ACK_OUT_OF_SEQUENCE);
	ck_assert_uint_eq(k->length, 65 + 2);
	ck_assert_uint_eq(rxw_get32(k->bytes + 28), 0);
	ck_assert_uint_eq(k->ack.first, 1);
	ck_assert_uint_eq(k->ack.previous, 2);
	ck_assert_uint_eq(k->ack.serial, b.serial);
	ck_assert_uint_eq(k->bytes[28 + 17], 2);
	ck_assert_uint_eq(k->bytes[28 + 18], 0);
	ck_assert_uint_eq(k->bytes[28 + 19], 1);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_uint_eq(k->bytes[28 + 20 + i], 0);
	ck_assert_uint_eq(k->ack.trailer_words, 4);
	ck_assert_uint_eq(rxw_get32(k->bytes + 28 + 23), 1444);
	ck_assert_uint_eq(rxw_get32(k->bytes + 28 + 27), 1444);
	ck_assert_uint_eq(rxw_get32(k->bytes + 28 + 31), 16);
	ck_assert_uint_eq(rxw_get32(k->bytes + 28 + 35), 1);
	bench_pass(&b, 3 * RXW_SEC);
	while ((k = bench_next(&b)) != NULL)
		if (k->h.type == RXW_ACK)
			ck_assert_uint_eq(k->ack.reason == RXW_ACK_PING,
					  (k->h.flags & RXW_REQUEST_ACK) != 0);
}
END_TEST

/* --- round trips --- */

START_TEST(samples_by_serial)
{
	uint32_t serial;

	up(6, 6);
	serial = b.sent[3].h.serial;
	bench_pass(&b, 30 * RXW_MS);
	bench_get_ack(&b, c, 1, 1, 4711, RXW_ACK_REQUESTED, "1", 32); /* names no serial of ours */
	bench_get_ack(&b, c, 1, 1, 0, RXW_ACK_DELAY, "11", 32);
	ck_assert(!call->p.tx.rtt.valid);
	bench_get_ack(&b, c, 1, 1, serial - 1, RXW_ACK_IDLE, "1111",
		      32); /* not for the newest packet: it may have been delayed */
	ck_assert(!call->p.tx.rtt.valid);
	bench_get_ack(&b, c, 1, 1, serial, RXW_ACK_IDLE, "1111", 32);
	ck_assert(call->p.tx.rtt.valid);
	ck_assert_uint_ge(call->p.tx.rtt.srtt, 30 * RXW_MS);
	ck_assert_uint_le(call->p.tx.rtt.srtt, 31 * RXW_MS);
	/* One sample per packet. */
	bench_pass(&b, 50 * RXW_MS);
	bench_get_ack(&b, c, 1, 1, serial, RXW_ACK_REQUESTED, "1111", 32);
	ck_assert_uint_le(call->p.tx.rtt.srtt, 31 * RXW_MS);
}
END_TEST

/* The serial identifies the transmission, so a retransmission gives a valid sample. */
START_TEST(samples_of_repeated_packets)
{
	struct bench_packet *k;

	up(1, 1);
	bench_pass(&b, 1500 * RXW_MS);
	k = bench_expect(&b, RXW_DATA);
	bench_pass(&b, k->at + 20 * RXW_MS - b.out.now);
	bench_get_ack(&b, c, 1, 2, k->h.serial, RXW_ACK_REQUESTED, "", 32);
	ck_assert(call->p.tx.rtt.valid);
	ck_assert_uint_eq(call->p.tx.rtt.srtt, 20 * RXW_MS);
}
END_TEST

/* A NAT changed our port: to the server we are a new client. */
START_TEST(network_reset)
{
	uint32_t size;

	up(40, 16);
	size = bench_ack(&b, packet, 1, 1, 20, RXW_ACK_EXCEEDS_WINDOW, 0, "", 16);
	input(size); /* nothing was acknowledged before, so it is an ordinary ACK */
	ck_assert_int_eq(call->p.error, 0);
	ack(9, "", 32);
	size = bench_ack(&b, packet, 1, 1, 20, RXW_ACK_OUT_OF_SEQUENCE, 0, "", 16);
	input(size);
	ck_assert_int_eq(call->p.error, 0);
	b.next = b.count;
	b.out.now += RXW_SEC; /* later ACKs may overtake one from the start of the call */
	size = bench_ack(&b, packet, 1, 1, 20, RXW_ACK_EXCEEDS_WINDOW, 0, "", 16);
	input(size);
	ck_assert_int_eq(call->p.error, RXW_NETWORK_RESET);
	bench_nothing(&b);
}
END_TEST

/* --- a receiver whose window is smaller than the senders' initial one --- */

START_TEST(first_flight_is_taken_whole)
{
	struct bench_packet *k;

	bench_init(&b, false);
	b.params.window = 3;
	b.params.initial_window = 3;
	c = bench_conn(&b, BENCH_EPOCH, BENCH_CID, 7001);
	b.auto_attach = _i == 0;
	for (uint32_t seq = 16; seq > 0; seq--)
		bench_get_data(&b, c, 1, seq, 0, 10);
	call = (struct bench_call *)bench_channel(c, 0);
	ck_assert_uint_eq(atomic_load(&b.stats.drops[RXW_DROP_WINDOW]), 0);
	ck_assert_uint_eq(call->p.rx.next, 17);
	/* It announces 3 from the first ACK on, and enforces it. */
	k = &b.sent[0];
	ck_assert_uint_eq(k->h.type, RXW_ACK);
	ck_assert_uint_eq(k->ack.rwind, 3);
	bench_get_data(&b, c, 1, 17 + 3, 0, 10);
	ck_assert_uint_eq(atomic_load(&b.stats.drops[RXW_DROP_WINDOW]), 1);
	if (b.auto_attach)
		ck_assert_uint_eq(bench_read(call), 16);
}
END_TEST

START_TEST(few_packets_under_pressure)
{
	bench_init(&b, false);
	c = bench_conn(&b, BENCH_EPOCH, BENCH_CID, 7001);
	c->p.crowded = true;
	bench_get_data(&b, c, 1, 3, 0, 10);
	ck_assert_uint_eq(atomic_load(&b.stats.drops[RXW_DROP_WINDOW]), 1);
	bench_get_data(&b, c, 1, 2, 0, 10);
	bench_get_data(&b, c, 1, 1, 0, 10);
	ck_assert_uint_eq(bench_channel(c, 0)->rx.next, 3);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("conformance: acks");
	TCase *acks = tcase_create("acks");

	tcase_add_checked_fixture(acks, NULL, down);
	tcase_add_test(acks, sixteen_before_the_first_ack);
	tcase_add_test(acks, the_window_bounds);
	tcase_add_test(acks, trailers_by_their_length);
	tcase_add_test(acks, malformed);
	tcase_add_test(acks, for_what_was_never_sent);
	tcase_add_test(acks, entries_beyond_what_was_sent);
	tcase_add_test(acks, unknown_bits_and_reasons);
	tcase_add_test(acks, stale_ones);
	tcase_add_test(acks, a_soft_one_may_be_withdrawn);
	tcase_add_test(acks, beyond_the_window_is_no_loss);
	tcase_add_test(acks, no_space_halves_once);
	tcase_add_test(acks, every_question_is_answered_once);
	tcase_add_test(acks, padded_ones);
	tcase_add_test(acks, our_own);
	tcase_add_test(acks, samples_by_serial);
	tcase_add_test(acks, samples_of_repeated_packets);
	tcase_add_test(acks, network_reset);
	tcase_add_test(acks, few_packets_under_pressure);
	tcase_add_loop_test(acks, first_flight_is_taken_whole, 0, 2);
	suite_add_tcase(suite, acks);
	return bench_main(suite);
}
