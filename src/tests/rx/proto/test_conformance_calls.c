/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections, channels, call numbers: rx-protocol 1.8, 2.3 to 2.10 (doc/conformance.md). */
#include <string.h>

#include "bench.h"

static struct bench b;
static struct bench_conn *c;
static uint8_t packet[2048];

static void server_up(void)
{
	bench_init(&b, false);
	c = bench_conn(&b, BENCH_EPOCH, BENCH_CID, 7001);
}

static void client_up(void)
{
	bench_init(&b, true);
	c = bench_conn(&b, BENCH_EPOCH, BENCH_CID, 7000);
}

static void down(void)
{
	bench_free(&b);
}

static struct rxw_pcall *on_channel(unsigned i)
{
	return bench_channel(c, i);
}

static void input(uint32_t size)
{
	bench_input(&b, c, packet, size, size);
}

static uint64_t drops(enum rxw_drop cause)
{
	return atomic_load(&b.stats.drops[cause]);
}

/* An ACK that requests an answer, rewritten as another type. */
static void input_as(unsigned type, uint32_t call)
{
	uint32_t size = bench_ack(&b, packet, call, 1, 0, RXW_ACK_PING, RXW_REQUEST_ACK, "1", 32);

	packet[20] = (uint8_t)type;
	if (type == RXW_DATA)
		packet[21] = RXW_CLIENT_INITIATED | RXW_REQUEST_ACK;
	input(size);
}

/* A complete request of one packet, and the handler's complete reply. */
static struct bench_call *serve(uint32_t number, unsigned packets)
{
	struct bench_call *call;

	bench_get_data(&b, c, number, 1, RXW_LAST_PACKET, 100);
	call = (struct bench_call *)on_channel(0);
	ck_assert_uint_eq(call->p.number, number);
	ck_assert_int_eq(call->p.state, RXW_CS_ACTIVE);
	bench_read(call);
	bench_write(call, packets, 80, true);
	rxw_pcall_finish(&call->p, &b.out);
	bench_settle(&b);
	return call;
}

static void skip(void)
{
	b.next = b.count;
}

/* Every packet has the next serial and its end's flags, and no unknown flags. */
static void check_headers(unsigned least)
{
	ck_assert_uint_ge(b.count, least);
	for (unsigned i = 0; i < b.count; i++) {
		const struct rxw_header *h = &b.sent[i].h;
		bool found = false;

		ck_assert_uint_eq(h->flags & RXW_CLIENT_INITIATED,
				  b.client ? RXW_CLIENT_INITIATED : 0);
		ck_assert_uint_eq(h->flags & 0xd0, 0);
		ck_assert_uint_eq(h->flags & RXW_SLOW_START_OK,
				  h->type == RXW_ACK ? RXW_SLOW_START_OK : 0);
		ck_assert_uint_eq(h->spare, 0);
		ck_assert_uint_eq(h->service, BENCH_SERVICE);
		ck_assert_uint_eq(h->epoch, BENCH_EPOCH);
		ck_assert(h->type == RXW_DATA ? h->seq >= 1 : h->seq == 0);
		for (unsigned k = 0; k < b.count && !found; k++)
			found = b.sent[k].h.serial == i + 1;
		ck_assert_msg(found, "no packet has serial %u of %u", i + 1, b.count);
	}
	skip();
}

START_TEST(headers_of_a_server)
{
	struct bench_call *call = serve(1, 3);

	rxw_peer_set_validated(c->p.peer, b.out.now);
	ck_assert_uint_eq(b.sent[b.count - 1].h.flags, RXW_LAST_PACKET);
	bench_pass(&b, 3 * RXW_SEC); /* retransmissions have new serials */
	ck_assert_uint_ge(call->p.count.retransmitted, 1);
	bench_data(&b, packet, 1, 1, 0, 100); /* another channel continues the count */
	rxw_put32(packet + 4, BENCH_CID | 2);
	input(RXW_HEADER_SIZE + 100);
	bench_pass(&b, 60 * RXW_MS);
	ck_assert_uint_eq(b.sent[b.count - 1].h.cid, BENCH_CID | 2);
	check_headers(5);
}
END_TEST

START_TEST(headers_of_a_client)
{
	struct bench_call *call = bench_begin(&b, c);

	bench_write(call, 3, 80, true);
	bench_pass(&b, 5 * RXW_SEC);
	ck_assert_uint_ge(call->p.count.retransmitted, 1);
	rxw_pcall_fail(&call->p, 7, RXW_ORIGIN_LOCAL, true, &b.out);
	bench_settle(&b);
	ck_assert_int_eq(b.sent[b.count - 1].code, 7);
	check_headers(5);
}
END_TEST

/* --- call numbers --- */

START_TEST(next_call_acknowledges_the_reply)
{
	serve(1, 2);
	skip();
	bench_get_data(&b, c, 2, 1, 0, 10);
	ck_assert_uint_eq(c->p.number[0], 2);
	bench_pass(&b, 8 * RXW_SEC);
	for (struct bench_packet *k; (k = bench_next(&b)) != NULL;)
		ck_assert_uint_eq(k->h.call, 2); /* no packet of the first is sent again */
	ck_assert_uint_eq(atomic_load(&b.stats.calls_ended), 1);
}
END_TEST

START_TEST(busy_while_the_old_call_works)
{
	struct bench_packet *k;

	bench_get_data(&b, c, 1, 1, RXW_LAST_PACKET, 10);
	ck_assert_int_eq(on_channel(0)->state, RXW_CS_ACTIVE);
	skip();
	bench_get_data(&b, c, 2, 1, RXW_LAST_PACKET, 10);
	k = bench_expect(&b, RXW_BUSY);
	ck_assert_uint_eq(k->length, RXW_HEADER_SIZE);
	ck_assert_uint_eq(k->h.call, 2);
	ck_assert_uint_eq(k->h.cid, BENCH_CID);
	bench_nothing(&b);
	ck_assert_int_eq(on_channel(0)->error, RXW_CALL_DEAD);
	ck_assert_uint_eq(on_channel(0)->number, 1);
	/* The end of the old call makes room: the retransmitted request is served. */
	bench_get_data(&b, c, 2, 1, RXW_LAST_PACKET, 10);
	ck_assert_uint_eq(on_channel(0)->number, 2);
	ck_assert_int_eq(on_channel(0)->state, RXW_CS_ACTIVE);
	ck_assert_uint_eq(atomic_load(&b.stats.calls_started), 2);
}
END_TEST

/*
 * Each abandoned call cost a handler and a reply. A client that repeats this draws BUSY, at a
 * limited rate, while its last call continues.
 */
START_TEST(the_old_call_is_not_thrown_away_for_ever)
{
	unsigned thrown = 0, busy = 0;
	struct bench_packet *k;
	uint32_t number = 1;

	rxw_peer_set_validated(c->p.peer, b.out.now);
	for (unsigned i = 0; i < 400; i++) {
		uint64_t aborted = b.stats.calls_aborted + b.stats.calls_timed_out;

		bench_get_data(&b, c, number, 1, RXW_LAST_PACKET, 10);
		thrown += b.stats.calls_aborted + b.stats.calls_timed_out > aborted;
		number += bench_channel(c, 0)->state == RXW_CS_ACTIVE;
		while ((k = bench_next(&b)) != NULL)
			busy += k->h.type == RXW_BUSY;
		b.count = b.next = 0;
		bench_pass(&b, RXW_MS);
	}
	ck_assert_uint_ge(thrown, 4);
	ck_assert_uint_le(thrown, 40);
	ck_assert_uint_le(busy, thrown + 8); /* one per 50 ms */
	ck_assert_int_eq(bench_channel(c, 0)->error, 0);
	/* Later it is treated like any other client. */
	b.on_events = NULL;
	bench_pass(&b, 11 * RXW_SEC);
	b.count = b.next = 0;
	bench_get_data(&b, c, number, 1, RXW_LAST_PACKET, 10);
	bench_get_data(&b, c, number, 1, RXW_LAST_PACKET, 10);
	ck_assert_uint_eq(bench_channel(c, 0)->number, number);
}
END_TEST

START_TEST(no_room_for_calls)
{
	struct bench_packet *k;

	b.refuse_calls = true;
	bench_get_data(&b, c, 5, 1, RXW_LAST_PACKET, 10);
	k = bench_expect(&b, RXW_BUSY);
	ck_assert_uint_eq(k->h.call, 5);
	bench_nothing(&b);
	ck_assert_ptr_null(on_channel(0));
	b.refuse_calls = false;
	bench_get_data(&b, c, 5, 1, RXW_LAST_PACKET, 10);
	ck_assert_uint_eq(on_channel(0)->number, 5);
}
END_TEST

START_TEST(a_waiting_call_gives_way)
{
	struct bench_call *call;

	b.auto_attach = false;
	bench_get_data(&b, c, 1, 1, RXW_LAST_PACKET, 10);
	ck_assert_int_eq(on_channel(0)->state, RXW_CS_PRECALL);
	skip();
	bench_get_data(&b, c, 9, 1, RXW_LAST_PACKET, 10);
	call = (struct bench_call *)on_channel(0);
	ck_assert_uint_eq(call->p.number, 9);
	ck_assert_int_eq(call->p.state, RXW_CS_PRECALL);
	ck_assert_uint_ne(call->events & RXW_OUT_ATTACH, 0);
	ck_assert_uint_eq(b.live_calls, 1);
	bench_nothing(&b);
}
END_TEST

/* Only DATA within the window ends the current call. */
START_TEST(what_does_not_begin_a_call)
{
	static const uint8_t types[] = {RXW_ACK,    RXW_ACKALL, RXW_ABORT, RXW_BUSY, RXW_CHALLENGE,
					RXW_PARAMS, 10,		11,	   12,	     0,
					99};
	unsigned busy = 0;

	bench_get_data(&b, c, 3, 1, RXW_LAST_PACKET, 10);
	skip();
	for (unsigned i = 0; i < sizeof(types); i++) {
		input_as(types[i], 4);
		busy += types[i] == RXW_BUSY;
	}
	bench_get_data(&b, c, 4, 256, RXW_LAST_PACKET, 10);
	bench_get_data(&b, c, 4, 0, RXW_LAST_PACKET, 10);
	bench_get_data(&b, c, 2, 1, RXW_LAST_PACKET, 10); /* a lower number */
	bench_nothing(&b);
	ck_assert_int_eq(on_channel(0)->state, RXW_CS_ACTIVE);
	ck_assert_int_eq(on_channel(0)->error, 0);
	ck_assert_uint_eq(on_channel(0)->number, 3);
	ck_assert_uint_eq(drops(RXW_DROP_CALL_NUMBER), sizeof(types) - 2 * busy + 1);
	ck_assert_uint_eq(drops(RXW_DROP_DIRECTION), 2 * busy);
	ck_assert_uint_eq(drops(RXW_DROP_WINDOW), 1);
	ck_assert_uint_eq(drops(RXW_DROP_SEQ_ZERO), 1);
	/* The same for a channel without a previous call. */
	bench_ack(&b, packet, 1, 1, 0, RXW_ACK_PING, RXW_REQUEST_ACK, "1", 32);
	rxw_put32(packet + 4, BENCH_CID | 1);
	input(RXW_HEADER_SIZE + 38);
	bench_nothing(&b);
	ck_assert_ptr_null(on_channel(1));
}
END_TEST

/* --- the end of a call --- */

START_TEST(soft_acknowledgement_is_enough)
{
	struct bench_call *call = serve(1, 2);
	uint32_t serial = b.sent[b.count - 1].h.serial;

	ck_assert_int_eq(call->p.state, RXW_CS_HOLD);
	bench_get_ack(&b, c, 1, 1, serial, RXW_ACK_REQUESTED, "10", 32);
	ck_assert_int_eq(call->p.state, RXW_CS_HOLD);
	bench_get_ack(&b, c, 1, 1, serial, RXW_ACK_REQUESTED, "11", 32);
	ck_assert_int_eq(call->p.state, RXW_CS_DALLY);
	skip();
	bench_pass(&b, 30 * RXW_SEC);
	bench_nothing(&b); /* neither DATA nor PING */
}
END_TEST

START_TEST(ackall_ends_it)
{
	struct bench_call *call = serve(1, 2);

	input(bench_header(&b, packet, RXW_ACKALL, 1, 0));
	ck_assert_int_eq(call->p.state, RXW_CS_DALLY);
	skip();
	bench_pass(&b, 30 * RXW_SEC);
	bench_nothing(&b);
}
END_TEST

START_TEST(ackall_in_the_middle)
{
	struct bench_call *call;

	bench_get_data(&b, c, 1, 1, RXW_LAST_PACKET, 100);
	call = (struct bench_call *)on_channel(0);
	bench_read(call);
	bench_write(call, 2, 80, false);
	input(bench_header(&b, packet, RXW_ACKALL, 1, 0));
	ck_assert_uint_eq(rxw_pcall_queued(&call->p), 0);
	ck_assert_int_eq(call->p.state, RXW_CS_ACTIVE);
	skip();
	bench_write(call, 1, 80, true);
	ck_assert_uint_eq(bench_expect(&b, RXW_DATA)->h.seq, 3);
}
END_TEST

START_TEST(duplicates_are_not_served_again)
{
	struct bench_call *call = serve(1, 1);
	struct bench_packet *k;

	for (int done = 0; done < 2; done++) {
		skip();
		bench_get_data(&b, c, 1, 1, RXW_LAST_PACKET, 100);
		k = bench_expect(&b, RXW_ACK);
		ck_assert_uint_eq(k->ack.reason, RXW_ACK_DUPLICATE);
		ck_assert_uint_eq(k->ack.first, 2);
		ck_assert_uint_eq(k->ack.serial, b.serial);
		bench_nothing(&b); /* the reply has a timer of its own */
		ck_assert_ptr_eq(on_channel(0), &call->p);
		if (!done)
			bench_get_ack(&b, c, 1, 2, 0, RXW_ACK_DELAY, "", 32);
	}
	ck_assert_int_eq(call->p.state, RXW_CS_DALLY);
	ck_assert_uint_eq(atomic_load(&b.stats.calls_started), 1);
}
END_TEST

START_TEST(finished_calls_answer_pings)
{
	struct bench_packet *k;
	uint32_t size;

	serve(1, 1);
	bench_get_ack(&b, c, 1, 2, 0, RXW_ACK_DELAY, "", 32);
	skip();
	size = bench_ack(&b, packet, 1, 2, 0, RXW_ACK_PING, RXW_REQUEST_ACK, "", 32);
	input(size);
	k = bench_expect(&b, RXW_ACK);
	ck_assert_uint_eq(k->ack.reason, RXW_ACK_PING_RESPONSE);
	ck_assert_uint_eq(k->ack.serial, b.serial);
	ck_assert_uint_eq(k->h.flags, RXW_SLOW_START_OK);
	bench_get_ack(&b, c, 1, 2, 0, RXW_ACK_DELAY, "", 32); /* others carry no news */
	bench_nothing(&b);
}
END_TEST

/* When the handler ends, at least one packet, the last, remains to be sent. */
START_TEST(an_empty_reply_is_one_packet)
{
	struct bench_call *call;
	struct bench_packet *k;

	bench_get_data(&b, c, 1, 1, RXW_LAST_PACKET, 100);
	call = (struct bench_call *)on_channel(0);
	bench_read(call);
	skip();
	bench_write(call, 1, 0, true);
	rxw_pcall_finish(&call->p, &b.out);
	k = bench_expect(&b, RXW_DATA);
	ck_assert_uint_eq(k->length, RXW_HEADER_SIZE);
	ck_assert_uint_eq(k->h.flags & RXW_LAST_PACKET, RXW_LAST_PACKET);
}
END_TEST

/* --- connection errors --- */

START_TEST(connection_abort)
{
	struct bench_packet *k;

	bench_get_data(&b, c, 1, 1, 0, 10);
	bench_data(&b, packet, 1, 1, 0, 10);
	rxw_put32(packet + 4, BENCH_CID | 3);
	input(RXW_HEADER_SIZE + 10);
	bench_header(&b, packet, RXW_ABORT, 0, 0);
	rxw_put32(packet + RXW_HEADER_SIZE, 4711);
	input(RXW_HEADER_SIZE + 4);
	ck_assert_int_eq(on_channel(0)->error, 4711);
	ck_assert_int_eq(on_channel(3)->error, 4711);
	skip();
	bench_get_data(&b, c, 1, 2, 0, 10);
	k = bench_expect(&b, RXW_ABORT);
	ck_assert_int_eq(k->code, 4711);
	ck_assert_uint_eq(k->h.call, 0);
	ck_assert_uint_eq(k->h.cid, BENCH_CID);
	ck_assert_uint_eq(k->length, RXW_HEADER_SIZE + 4);
	bench_get_data(&b, c, 2, 1, 0, 10);
	bench_nothing(&b); /* one per 100 ms */
	for (unsigned type = 0; type < 13; type++) {
		bench_pass(&b, 150 * RXW_MS);
		input_as(type, 2);
		if (type != RXW_DATA && type != RXW_ACK && type != RXW_ACKALL) {
			bench_nothing(&b);
			continue;
		}
		k = bench_expect(&b, RXW_ABORT);
		ck_assert_int_eq(k->code, 4711);
	}
	ck_assert_uint_eq(atomic_load(&b.stats.calls_started), 2);
}
END_TEST

/* A call number of 0 where it is invalid, and unknown types: dropped, and nothing ends. */
START_TEST(nonsense_ends_nothing)
{
	static const uint8_t about_nothing[] = {RXW_DATA, RXW_ACK, RXW_ACKALL};
	static const uint8_t unknown[] = {0, 9, 10, 11, 12, 14, 200, 255};

	bench_get_data(&b, c, 1, 1, 0, 10);
	skip();
	for (unsigned i = 0; i < sizeof(about_nothing); i++) {
		input_as(about_nothing[i], 0);
		ck_assert_uint_eq(drops(RXW_DROP_CALL_NUMBER), i + 1);
	}
	for (unsigned i = 0; i < sizeof(unknown); i++)
		for (uint32_t call = 0; call < 2; call++) {
			uint32_t size = bench_header(&b, packet, unknown[i], call, 0);

			input(size);
			ck_assert_uint_eq(drops(RXW_DROP_TYPE), 2 * i + call + 1);
		}
	/* An ABORT without a code. */
	for (uint32_t call = 0; call < 2; call++) {
		bench_header(&b, packet, RXW_ABORT, call, 0);
		memset(packet + RXW_HEADER_SIZE, 1, 3);
		input(RXW_HEADER_SIZE + 3);
		ck_assert_uint_eq(drops(RXW_DROP_BAD_ABORT), call + 1);
	}
	ck_assert_int_eq(c->p.error, 0);
	ck_assert_int_eq(on_channel(0)->error, 0);
	bench_nothing(&b);
}
END_TEST

START_TEST(another_class_or_service)
{
	uint32_t size = bench_data(&b, packet, 1, 1, 0, 10);

	packet[23] = 2;
	input(size);
	ck_assert_uint_eq(drops(RXW_DROP_SECURITY_INDEX), 1);
	size = bench_data(&b, packet, 1, 1, 0, 10);
	rxw_put16(packet + 26, BENCH_SERVICE + 1);
	input(size);
	size = bench_data(&b, packet, 1, 1, 0, 10);
	rxw_put16(packet + 26, 0);
	input(size);
	ck_assert_uint_eq(drops(RXW_DROP_SERVICE), 2);
	ck_assert_ptr_null(on_channel(0));
	/* Ignored fields: the spare word, user status, undefined flags. */
	size = bench_data(&b, packet, 1, 1, RXW_LAST_PACKET | 0xd0, 10);
	rxw_put16(packet + 24, 0xbeef);
	packet[22] = 0x5a;
	input(size);
	ck_assert_int_eq(on_channel(0)->state, RXW_CS_ACTIVE);
	ck_assert_uint_eq(on_channel(0)->peer_status, 0x5a);
	bench_pass(&b, 100 * RXW_MS);
	ck_assert_uint_eq(bench_expect(&b, RXW_ACK)->h.spare, 0);
}
END_TEST

/* --- the client's side --- */

static void reply(uint32_t number, uint32_t seq, unsigned flags)
{
	bench_get_data(&b, c, number, seq, flags, 40);
}

START_TEST(refused_without_state)
{
	struct bench_call *call;

	/* As OpenAFS writes it: the service in the wrong field, 0 in its own. */
	call = bench_begin(&b, c);
	bench_write(call, 1, 10, true);
	bench_header(&b, packet, RXW_ABORT, 1, 0);
	rxw_put32(packet + 16, 0);
	rxw_put16(packet + 24, BENCH_SERVICE);
	rxw_put16(packet + 26, 0);
	rxw_put32(packet + RXW_HEADER_SIZE, (uint32_t)RXW_INVALID_OPERATION);
	input(RXW_HEADER_SIZE + 4);
	ck_assert_int_eq(call->p.error, RXW_INVALID_OPERATION);
	/* As Linux does: security index 0, whatever the connection's is. */
	c->p.security_index = 2;
	call = bench_begin(&b, c);
	bench_write(call, 1, 10, true);
	bench_header(&b, packet, RXW_ABORT, 2, 0);
	rxw_put32(packet + RXW_HEADER_SIZE, (uint32_t)RXW_INVALID_OPERATION);
	input(RXW_HEADER_SIZE + 4); /* with a serial it is not a stateless one */
	ck_assert_int_eq(call->p.error, 0);
	rxw_put32(packet + 16, 0);
	input(RXW_HEADER_SIZE + 4);
	ck_assert_int_eq(call->p.error, RXW_INVALID_OPERATION);
	c->p.security_index = 0;
	/* An ABORT never draws an ABORT. */
	skip();
	input(RXW_HEADER_SIZE + 4);
	bench_nothing(&b);
}
END_TEST

START_TEST(abort_codes)
{
	struct bench_call *call = bench_begin(&b, c);

	bench_write(call, 1, 10, true);
	bench_header(&b, packet, RXW_ABORT, 1, 0);
	rxw_put32(packet + RXW_HEADER_SIZE, 0);
	rxw_put32(packet + RXW_HEADER_SIZE + 4, 99); /* the rest is ignored */
	input(RXW_HEADER_SIZE + 8);
	ck_assert_int_eq(call->p.error, RXW_PROTOCOL_ERROR);
	ck_assert_int_eq(call->p.error_origin, RXW_ORIGIN_PEER);
	/* Ours are never 0 either. */
	call = bench_begin(&b, c);
	bench_write(call, 1, 10, true);
	skip();
	rxw_pcall_fail(&call->p, 0, RXW_ORIGIN_LOCAL, true, &b.out);
	bench_settle(&b);
	ck_assert_int_eq(bench_expect(&b, RXW_ABORT)->code, RXW_PROTOCOL_ERROR);
}
END_TEST

START_TEST(for_no_call_of_ours)
{
	struct bench_call *call = bench_begin(&b, c);
	uint32_t size;

	bench_write(call, 1, 10, true);
	skip();
	reply(2, 1, RXW_LAST_PACKET); /* a future number */
	bench_data(&b, packet, 1, 1, RXW_LAST_PACKET, 10);
	rxw_put32(packet + 4, BENCH_CID | 2);
	input(RXW_HEADER_SIZE + 10); /* a channel without a call */
	ck_assert_uint_eq(drops(RXW_DROP_CALL_NUMBER), 2);
	size = bench_ack(&b, packet, 2, 1, 0, RXW_ACK_PING, RXW_REQUEST_ACK, "", 32);
	input(size);
	bench_header(&b, packet, RXW_ABORT, 2, 0);
	rxw_put32(packet + RXW_HEADER_SIZE, 5);
	input(RXW_HEADER_SIZE + 4);
	ck_assert_uint_eq(drops(RXW_DROP_CALL_NUMBER), 4);
	input(bench_header(&b, packet, RXW_RESPONSE, 0, 0));
	ck_assert_uint_eq(drops(RXW_DROP_DIRECTION), 1);
	size = bench_data(&b, packet, 1, 1, RXW_LAST_PACKET, 10);
	rxw_put16(packet + 26, BENCH_SERVICE + 1); /* no upgrade was requested */
	input(size);
	ck_assert_uint_eq(drops(RXW_DROP_SERVICE), 1);
	bench_nothing(&b);
	ck_assert_int_eq(call->p.error, 0);
	ck_assert_uint_eq(rxw_pcall_readable(&call->p, NULL), 0);
}
END_TEST

/* Packets for a finished call are answered or ignored, and do no harm. */
START_TEST(for_a_call_that_is_over)
{
	static const uint8_t types[] = {RXW_ACK, RXW_BUSY, RXW_ABORT, RXW_ACKALL, RXW_PARAMS};
	struct bench_call *call = bench_begin(&b, c);
	struct bench_packet *k;

	bench_write(call, 1, 10, true);
	reply(1, 1, RXW_LAST_PACKET);
	bench_read(call);
	rxw_pcall_finish(&call->p, &b.out);
	bench_settle(&b);
	skip();
	bench_pass(&b, 3 * RXW_MS);
	k = bench_expect(&b, RXW_ACK); /* the next call had 2 ms to acknowledge it */
	ck_assert_uint_eq(k->ack.reason, RXW_ACK_DELAY);
	ck_assert_uint_eq(k->ack.serial, 0);
	ck_assert_uint_eq(k->ack.first, 2);
	for (unsigned i = 0; i < sizeof(types); i++) {
		uint32_t size = bench_ack(&b, packet, 1, 2, 0, RXW_ACK_DELAY, 0, "", 32);

		packet[20] = types[i];
		input(size);
	}
	bench_nothing(&b);
	ck_assert_int_eq(call->p.state, RXW_CS_DALLY);
	ck_assert_int_eq(call->p.error, 0);
	reply(1, 1, RXW_LAST_PACKET);
	k = bench_expect(&b, RXW_ACK);
	ck_assert_uint_eq(k->ack.reason, RXW_ACK_DUPLICATE);
	ck_assert_uint_eq(k->ack.first, 2);
	bench_ack(&b, packet, 1, 2, 0, RXW_ACK_PING, RXW_REQUEST_ACK, "", 32);
	input(RXW_HEADER_SIZE + 37);
	ck_assert_uint_eq(bench_expect(&b, RXW_ACK)->ack.reason, RXW_ACK_PING_RESPONSE);
	bench_nothing(&b);
}
END_TEST

START_TEST(the_next_call_says_it)
{
	struct bench_call *call = bench_begin(&b, c);
	struct bench_packet *k;

	bench_write(call, 1, 10, true);
	reply(1, 1, RXW_LAST_PACKET);
	bench_read(call);
	rxw_pcall_finish(&call->p, &b.out);
	bench_settle(&b);
	call = bench_begin(&b, c);
	ck_assert_uint_eq(call->p.channel, 0); /* the server already has its structures */
	ck_assert_uint_eq(call->p.number, 2);
	skip();
	bench_write(call, 1, 10, true);
	ck_assert_uint_eq(bench_expect(&b, RXW_DATA)->h.call, 2);
	bench_pass(&b, 100 * RXW_MS);
	while ((k = bench_next(&b)) != NULL)
		ck_assert_uint_ne(k->h.call, 1);
}
END_TEST

START_TEST(closing_says_it_at_once)
{
	struct bench_call *call = bench_begin(&b, c);

	bench_write(call, 1, 10, true);
	reply(1, 1, RXW_LAST_PACKET);
	bench_read(call);
	rxw_pcall_finish(&call->p, &b.out);
	bench_settle(&b);
	skip();
	rxw_pconn_close(&c->p, &b.out);
	bench_settle(&b);
	ck_assert_uint_eq(bench_expect(&b, RXW_ACK)->ack.first, 2);
	bench_pass(&b, RXW_SEC);
	bench_nothing(&b);
}
END_TEST

/*
 * A reply that the application did not read to its end is refused. A call that sent nothing ends
 * silently.
 */
START_TEST(giving_up)
{
	struct bench_call *call = bench_begin(&b, c);

	bench_write(call, 1, 10, true);
	reply(1, 1, 0);
	skip();
	rxw_pcall_finish(&call->p, &b.out);
	bench_settle(&b);
	ck_assert_int_eq(bench_expect(&b, RXW_ABORT)->code, RXW_USER_ABORT);
	call = bench_begin(&b, c);
	rxw_pcall_fail(&call->p, 5, RXW_ORIGIN_LOCAL, true, &b.out);
	bench_settle(&b);
	bench_pass(&b, 30 * RXW_SEC);
	bench_nothing(&b);
}
END_TEST

START_TEST(channels)
{
	struct bench_call *call[4];

	for (unsigned i = 0; i < 4; i++) {
		ck_assert(rxw_pconn_has_free_channel(&c->p, b.out.now));
		call[i] = bench_begin(&b, c);
		ck_assert_uint_eq(call[i]->p.number, 1);
		for (unsigned k = 0; k < i; k++)
			ck_assert_uint_ne(call[k]->p.channel, call[i]->p.channel);
	}
	ck_assert(!rxw_pconn_has_free_channel(&c->p, b.out.now));
	ck_assert_ptr_null(bench_begin(&b, c));
	for (unsigned i = 0; i < 2; i++) {
		rxw_pcall_fail(&call[i]->p, 1, RXW_ORIGIN_LOCAL, false, &b.out);
		bench_settle(&b);
	}
	/* A channel that drew BUSY is used only if no other is free. */
	c->p.busy_until[0] = b.out.now + RXW_SEC;
	ck_assert_uint_eq(bench_begin(&b, c)->p.channel, 1);
	ck_assert_uint_eq(bench_begin(&b, c)->p.channel, 0);
}
END_TEST

START_TEST(numbers_end)
{
	c->p.number[0] = c->p.number[1] = c->p.number[2] = c->p.number[3] = 0x7ffffffd;
	ck_assert_uint_eq(bench_begin(&b, c)->p.number, 0x7ffffffe);
	c->p.number[1] = c->p.number[2] = c->p.number[3] = 0x7ffffffe;
	ck_assert_ptr_null(bench_begin(&b, c)); /* the connection is used up */
}
END_TEST

/* A stream has at most 2^32 - 1 packets. A longer one ends the call. */
START_TEST(sequence_numbers_end)
{
	struct bench_call *call = bench_begin(&b, c);
	struct rxw_txrun run = {.stride = 32, .last_size = 32, .count = 300};

	bench_write(call, 1, 10, false);
	rxw_pcall_flush(&call->p, &b.out);
	bench_settle(&b);
	bench_get_ack(&b, c, 1, 2, 0, RXW_ACK_DELAY, "", 32);
	skip();
	call->p.tx.una = call->p.tx.nxt = call->p.tx.end = 0xfffffe00;
	run.buf = rxw_buf_get(b.pool);
	run.data = run.buf->data;
	ck_assert_int_eq(rxw_pcall_push(&call->p, &run, &b.out), -RXW_ECALL);
	bench_settle(&b);
	ck_assert_int_eq(call->p.error, RXW_PROTOCOL_ERROR);
	ck_assert_int_eq(bench_expect(&b, RXW_ABORT)->code, RXW_PROTOCOL_ERROR);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("conformance: calls");
	TCase *server = tcase_create("server"), *client = tcase_create("client");

	tcase_add_checked_fixture(server, server_up, down);
	tcase_add_test(server, headers_of_a_server);
	tcase_add_test(server, next_call_acknowledges_the_reply);
	tcase_add_test(server, busy_while_the_old_call_works);
	tcase_add_test(server, the_old_call_is_not_thrown_away_for_ever);
	tcase_add_test(server, no_room_for_calls);
	tcase_add_test(server, a_waiting_call_gives_way);
	tcase_add_test(server, what_does_not_begin_a_call);
	tcase_add_test(server, soft_acknowledgement_is_enough);
	tcase_add_test(server, ackall_ends_it);
	tcase_add_test(server, ackall_in_the_middle);
	tcase_add_test(server, duplicates_are_not_served_again);
	tcase_add_test(server, finished_calls_answer_pings);
	tcase_add_test(server, an_empty_reply_is_one_packet);
	tcase_add_test(server, connection_abort);
	tcase_add_test(server, nonsense_ends_nothing);
	tcase_add_test(server, another_class_or_service);
	suite_add_tcase(suite, server);
	tcase_add_checked_fixture(client, client_up, down);
	tcase_add_test(client, headers_of_a_client);
	tcase_add_test(client, refused_without_state);
	tcase_add_test(client, abort_codes);
	tcase_add_test(client, for_no_call_of_ours);
	tcase_add_test(client, for_a_call_that_is_over);
	tcase_add_test(client, the_next_call_says_it);
	tcase_add_test(client, closing_says_it_at_once);
	tcase_add_test(client, giving_up);
	tcase_add_test(client, channels);
	tcase_add_test(client, numbers_end);
	tcase_add_test(client, sequence_numbers_end);
	suite_add_tcase(suite, client);
	return bench_main(suite);
}
