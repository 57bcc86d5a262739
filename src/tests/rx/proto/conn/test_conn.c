/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections: the checks of 1.8 with their causes, channels, errors (1.8, 2). */
#include <string.h>

#include "base/hash.h"
#include "tests/rx/proto/bench.h"
#include "tests/support/test_class.h"

static struct bench b;
static struct bench_conn *c;

static void server(void)
{
	bench_init(&b, false);
	c = bench_conn(&b, BENCH_EPOCH, BENCH_CID, 7001);
	rxw_peer_set_validated(c->p.peer, b.out.now);
}

static void client(void)
{
	bench_init(&b, true);
	c = bench_conn(&b, BENCH_EPOCH, BENCH_CID, 7000);
}

static struct bench_call *call(unsigned channel)
{
	return (struct bench_call *)bench_channel(c, channel);
}

/* A packet with one changed byte. It must be dropped for this cause, without an answer. */
static void expect_drop(unsigned type, uint32_t number, unsigned offset, uint8_t value,
			enum rxw_drop cause)
{
	uint8_t packet[64] = {0};
	uint64_t before = b.stats.drops[cause];

	bench_header(&b, packet, type, number, 0);
	rxw_put32(packet + 12, type == RXW_DATA);
	if (offset != 0)
		packet[offset] = value;
	bench_input(&b, c, packet, 60, 60);
	ck_assert_msg(b.stats.drops[cause] == before + 1, "%s %u/%u", rxw_packet_type_name(type),
		      offset, value);
	bench_nothing(&b);
}

START_TEST(server_checks)
{
	server();
	expect_drop(RXW_DATA, 1, 23, 9, RXW_DROP_SECURITY_INDEX);
	expect_drop(RXW_DATA, 1, 27, 9, RXW_DROP_SERVICE);
	expect_drop(RXW_DATA, 1, 27, 0, RXW_DROP_SERVICE);
	expect_drop(RXW_CHALLENGE, 0, 0, 0, RXW_DROP_DIRECTION);
	expect_drop(RXW_BUSY, 1, 0, 0, RXW_DROP_DIRECTION);
	expect_drop(RXW_RESPONSE, 0, 0, 0, RXW_DROP_STATE); /* never challenged */
	expect_drop(RXW_DATA, 0, 0, 0, RXW_DROP_CALL_NUMBER);
	expect_drop(RXW_ACK, 0, 0, 0, RXW_DROP_CALL_NUMBER);
	expect_drop(RXW_PARAMS, 0, 0, 0, RXW_DROP_TYPE);
	expect_drop(12, 0, 0, 0, RXW_DROP_TYPE);
	expect_drop(0, 0, 0, 0, RXW_DROP_TYPE);
	expect_drop(200, 0, 0, 0, RXW_DROP_TYPE);
	expect_drop(RXW_ACK, 1, 0, 0, RXW_DROP_CALL_NUMBER); /* no call */
	expect_drop(RXW_ABORT, 1, 0, 0, RXW_DROP_CALL_NUMBER);
	expect_drop(RXW_DATA, 1, 14, 200, RXW_DROP_WINDOW); /* seq far beyond the window */
	ck_assert_ptr_null(bench_channel(c, 0));
	bench_get_data(&b, c, 5, 1, 0, 10);
	ck_assert_ptr_nonnull(bench_channel(c, 0));
	expect_drop(RXW_DATA, 4, 0, 0, RXW_DROP_CALL_NUMBER);
	expect_drop(RXW_ACK, 6, 0, 0, RXW_DROP_CALL_NUMBER); /* higher, and not DATA */
	expect_drop(RXW_ABORT, 6, 0, 0, RXW_DROP_CALL_NUMBER);
	expect_drop(RXW_DATA, 6, 14, 200, RXW_DROP_WINDOW);
	expect_drop(9, 5, 0, 0, RXW_DROP_TYPE);
	expect_drop(14, 5, 0, 0, RXW_DROP_TYPE);
	ck_assert_int_eq(call(0)->p.error, 0);
	ck_assert_int_eq(call(0)->p.state, RXW_CS_ACTIVE);
	ck_assert_uint_eq(call(0)->p.number, 5);
	bench_free(&b);
}
END_TEST

START_TEST(client_checks)
{
	client();
	bench_begin(&b, c);
	bench_write(call(0), 1, 10, true);
	b.next = b.count;
	expect_drop(RXW_RESPONSE, 0, 0, 0, RXW_DROP_DIRECTION);
	expect_drop(RXW_CHALLENGE, 0, 0, 0, RXW_DROP_STATE); /* rxnull has none */
	expect_drop(RXW_DATA, 2, 0, 0, RXW_DROP_CALL_NUMBER);
	expect_drop(RXW_BUSY, 2, 0, 0, RXW_DROP_CALL_NUMBER);
	expect_drop(RXW_ABORT, 2, 0, 0, RXW_DROP_CALL_NUMBER);
	expect_drop(RXW_DATA, 1, 27, 9, RXW_DROP_SERVICE);
	expect_drop(RXW_DATA, 1, 23, 2, RXW_DROP_SECURITY_INDEX);
	ck_assert_int_eq(call(0)->p.error, 0);
	bench_free(&b);
}
END_TEST

/* Byte order of a known defect: serviceId in the spare word. And the kernel's securityIndex 0. */
START_TEST(stateless_aborts)
{
	uint8_t packet[32];

	client();
	bench_begin(&b, c);
	bench_write(call(0), 1, 10, true);
	bench_header(&b, packet, RXW_ABORT, 1, 0);
	rxw_put32(packet + 16, 0);
	rxw_put16(packet + 24, BENCH_SERVICE);
	rxw_put16(packet + 26, 0);
	rxw_put32(packet + 28, (uint32_t)RXW_INVALID_OPERATION);
	bench_input(&b, c, packet, 32, 32);
	ck_assert_int_eq(call(0)->p.error, RXW_INVALID_OPERATION);
	bench_free(&b);
	bench_init(&b, true);
	b.security = &rxw_security_test_class;
	c = bench_conn(&b, BENCH_EPOCH, BENCH_CID, 7000);
	bench_begin(&b, c);
	bench_header(&b, packet, RXW_ABORT, 1, 0);
	packet[23] = 0;
	rxw_put32(packet + 28, (uint32_t)RXW_INVALID_OPERATION);
	bench_input(&b, c, packet, 32, 32); /* with a serial: another sender */
	ck_assert_int_eq(call(0)->p.error, 0);
	rxw_put32(packet + 16, 0);
	bench_input(&b, c, packet, 32, 32);
	ck_assert_int_eq(call(0)->p.error, RXW_INVALID_OPERATION);
	bench_free(&b);
}
END_TEST

START_TEST(channels)
{
	struct bench_call *calls[4];

	client();
	for (unsigned i = 0; i < 4; i++) {
		calls[i] = bench_begin(&b, c);
		ck_assert_uint_eq(calls[i]->p.number, 1);
	}
	ck_assert_ptr_null(bench_begin(&b, c));
	ck_assert(!rxw_pconn_has_free_channel(&c->p, b.out.now));
	rxw_pcall_fail(&calls[2]->p, -6, RXW_ORIGIN_LOCAL, false, &b.out);
	bench_settle(&b);
	ck_assert(rxw_pconn_has_free_channel(&c->p, b.out.now));
	calls[2] = bench_begin(&b, c);
	ck_assert_uint_eq(calls[2]->p.channel, 2);
	ck_assert_uint_eq(calls[2]->p.number, 2);
	/*
	 * A channel that drew BUSY is used only if no other is free. Used channels are preferred.
	 */
	rxw_pcall_fail(&calls[2]->p, -6, RXW_ORIGIN_LOCAL, false, &b.out);
	rxw_pcall_fail(&calls[1]->p, -6, RXW_ORIGIN_LOCAL, false, &b.out);
	bench_settle(&b);
	c->p.busy_until[1] = b.out.now + RXW_SEC;
	ck_assert_uint_eq(bench_begin(&b, c)->p.channel, 2);
	ck_assert_uint_eq(bench_begin(&b, c)->p.channel, 1);
	rxw_pcall_fail(&call(0)->p, -6, RXW_ORIGIN_LOCAL, false, &b.out);
	bench_settle(&b);
	c->p.number[0] = 0x7ffffffe;
	ck_assert_ptr_null(bench_begin(&b, c));
	bench_free(&b);
}
END_TEST

/* A channel whose numbers are used up is not free, and others take its place, as long as there are any. */
START_TEST(numbers_used_up)
{
	struct bench_call *call;

	bench_init(&b, true);
	c = bench_conn(&b, BENCH_EPOCH, BENCH_CID, 7000);
	c->p.number[0] = 0x7ffffffe;
	for (unsigned i = 1; i < 4; i++) {
		ck_assert(rxw_pconn_has_free_channel(&c->p, b.out.now));
		call = bench_begin(&b, c);
		ck_assert_uint_eq(call->p.channel, i);
		ck_assert_uint_eq(call->p.number, 1);
	}
	ck_assert(!rxw_pconn_has_free_channel(&c->p, b.out.now));
	ck_assert(!rxw_pconn_used_up(&c->p));
	rxw_pcall_fail(&call->p, -6, RXW_ORIGIN_LOCAL, false, &b.out);
	bench_settle(&b);
	ck_assert(rxw_pconn_has_free_channel(&c->p, b.out.now));
	for (unsigned i = 1; i < 4; i++)
		c->p.number[i] = 0x7ffffffe;
	ck_assert(!rxw_pconn_has_free_channel(&c->p, b.out.now));
	ck_assert(rxw_pconn_used_up(&c->p));
	bench_free(&b);
}
END_TEST

/*
 * A NAT gives the client another port again and again, as in months with one connection. It is followed, however often
 * that is, but not to many ports within a short time.
 */
START_TEST(moves_without_end)
{
	struct rxw_path path;
	unsigned followed = 0;

	server();
	bench_get_data(&b, c, 1, 1, 0, 10);
	path = *rxw_pconn_path(&c->p);
	/* As when a packet comes from an unknown address. */
	c->p.roam = rxw_mem_get(NULL, sizeof(*c->p.roam));
	ck_assert_ptr_nonnull(c->p.roam);
	memset(c->p.roam, 0, sizeof(*c->p.roam));
	atomic_init(&c->p.roam->path, &c->p.path);
	for (unsigned i = 0; i < 1000; i++) {
		struct rxw_peer *peer = c->p.peer;
		bool moved;

		path.peer.u.in.sin_port = htons((uint16_t)(20000 + i));
		b.out.now += i < 500 ? RXW_SEC : 0;
		rxw_peer_ref(peer);
		rxw_conntable_remove(&b.table, &c->p);
		moved = rxw_pconn_move(&c->p, peer, &path, &b.out);
		ck_assert_int_eq(rxw_conntable_insert(&b.table, &c->p), 0);
		rxw_peer_unref(peer, b.out.now);
		bench_settle(&b);
		if (i < 500)
			ck_assert(moved);
		ck_assert_int_eq(rxw_addr_equal(&rxw_pconn_path(&c->p)->peer, &path.peer), moved);
		followed += moved;
	}
	ck_assert_uint_le(followed, 500 + 64);
	bench_free(&b);
}
END_TEST

START_TEST(overtaken_active_call)
{
	struct bench_packet *k;

	server();
	bench_get_data(&b, c, 1, 1, 0, 10);
	call(0)->events = 0;
	b.next = b.count;
	bench_get_data(&b, c, 2, 1, RXW_LAST_PACKET, 10);
	k = bench_expect(&b, RXW_BUSY);
	ck_assert_uint_eq(k->length, 28);
	ck_assert_uint_eq(k->h.call, 2);
	ck_assert_int_eq(call(0)->p.error, RXW_CALL_DEAD);
	ck_assert(call(0)->events & RXW_OUT_DONE);
	ck_assert_uint_eq(call(0)->p.number, 1);
	bench_get_data(&b, c, 2, 1, RXW_LAST_PACKET, 10);
	ck_assert_uint_eq(call(0)->p.number, 2);
	ck_assert_int_eq(call(0)->p.state, RXW_CS_ACTIVE);
	bench_free(&b);
}
END_TEST

START_TEST(next_call_acknowledges)
{
	server();
	bench_get_data(&b, c, 1, 1, RXW_LAST_PACKET, 10);
	bench_read(call(0));
	bench_write(call(0), 3, 10, true);
	rxw_pcall_finish(&call(0)->p, &b.out);
	bench_settle(&b);
	ck_assert_int_eq(call(0)->p.state, RXW_CS_HOLD);
	b.next = b.count;
	bench_get_data(&b, c, 2, 1, RXW_LAST_PACKET, 10);
	ck_assert_uint_eq(b.stats.calls_ended, 1);
	ck_assert_uint_eq(call(0)->p.number, 2);
	bench_pass(&b, 40 * RXW_MS);
	bench_nothing(&b); /* no packet of the old reply */
	/* A jump counts as an ordinary increase. */
	bench_get_data(&b, c, 1, 1, RXW_LAST_PACKET, 10);
	ck_assert_uint_eq(b.stats.drops[RXW_DROP_CALL_NUMBER], 1);
	bench_free(&b);
}
END_TEST

/* Handlers, and replies that may still arrive, keep a connection from being evicted. */
START_TEST(use_of_a_connection)
{
	uint64_t begun, stuck;

	server();
	begun = b.out.now;
	bench_get_data(&b, c, 1, 2, 0, 10); /* the first packet is missing */
	ck_assert_uint_eq(rxw_pconn_unused_since(&c->p), begun);
	bench_pass(&b, 3 * RXW_SEC);
	ck_assert_uint_eq(rxw_pconn_unused_since(&c->p), begun);
	bench_get_data(&b, c, 1, 1, 0, 10);
	ck_assert_int_eq(call(0)->p.state, RXW_CS_ACTIVE);
	ck_assert_uint_eq(rxw_pconn_unused_since(&c->p), RXW_NEVER);
	bench_get_data(&b, c, 1, 3, RXW_LAST_PACKET, 10);
	bench_read(call(0));
	bench_write(call(0), 1, 10, true);
	rxw_pcall_finish(&call(0)->p, &b.out);
	bench_settle(&b);
	ck_assert_int_eq(call(0)->p.state, RXW_CS_HOLD);
	bench_send(call(0));
	ck_assert_uint_eq(rxw_pconn_unused_since(&c->p), RXW_NEVER);
	/* It was sent again, and may be acknowledged within the dead time. */
	while (call(0)->p.tx.stuck_since == 0) {
		bench_pass(&b, 100 * RXW_MS);
		bench_send(call(0));
	}
	stuck = call(0)->p.tx.stuck_since;
	ck_assert_uint_eq(rxw_pconn_unused_since(&c->p), stuck + call(0)->p.timer.dead);
	bench_free(&b);
}
END_TEST

START_TEST(refused_call)
{
	server();
	b.refuse_calls = true;
	bench_get_data(&b, c, 1, 1, RXW_LAST_PACKET, 10);
	ck_assert_uint_eq(bench_expect(&b, RXW_BUSY)->h.call, 1);
	ck_assert_ptr_null(bench_channel(c, 0));
	ck_assert_uint_eq(b.stats.calls_refused, 1);
	b.refuse_calls = false;
	bench_get_data(&b, c, 1, 1, RXW_LAST_PACKET, 10);
	ck_assert_ptr_nonnull(bench_channel(c, 0));
	bench_free(&b);
}
END_TEST

START_TEST(connection_error)
{
	uint8_t packet[64];

	server();
	bench_get_data(&b, c, 1, 1, 0, 10);
	b.next = b.count;
	rxw_pconn_fail(&c->p, -77, RXW_ORIGIN_LOCAL, true, &b.out);
	bench_settle(&b);
	struct bench_packet *k = bench_expect(&b, RXW_ABORT);

	ck_assert_int_eq(k->code, -77);
	ck_assert_uint_eq(k->h.call, 0);
	ck_assert_uint_eq(k->h.cid, BENCH_CID);
	ck_assert_int_eq(call(0)->p.error, -77);
	/*
	 * Every later packet draws it again, but at most ten times per second, and not for every
	 * type.
	 */
	bench_get_data(&b, c, 2, 1, 0, 10);
	bench_nothing(&b);
	b.out.now += 100 * RXW_MS;
	bench_get_data(&b, c, 2, 1, 0, 10);
	ck_assert_uint_eq(bench_expect(&b, RXW_ABORT)->h.call, 0);
	b.out.now += 100 * RXW_MS;
	static const unsigned silent[] = {RXW_ABORT, RXW_BUSY, RXW_CHALLENGE, RXW_RESPONSE,
					  RXW_PARAMS};

	for (unsigned i = 0; i < 5; i++) {
		uint32_t size = bench_header(&b, packet, silent[i], i < 2, 0);

		bench_input(&b, c, packet, size + 4, size + 4);
		bench_nothing(&b);
	}
	ck_assert_ptr_eq(bench_channel(c, 0), call(0));
	bench_free(&b);
	/* On receipt all calls end, and none begins. */
	client();
	bench_begin(&b, c);
	bench_begin(&b, c);
	bench_header(&b, packet, RXW_ABORT, 0, 0);
	rxw_put32(packet + 28, (uint32_t)-55);
	bench_input(&b, c, packet, 32, 32);
	ck_assert_int_eq(call(0)->p.error, -55);
	ck_assert_int_eq(call(1)->p.error, -55);
	ck_assert_int_eq(call(1)->p.error_origin, RXW_ORIGIN_PEER);
	ck_assert_ptr_null(bench_begin(&b, c));
	bench_free(&b);
}
END_TEST

START_TEST(ackall)
{
	uint8_t packet[64];
	uint32_t size;

	server();
	bench_get_data(&b, c, 1, 1, RXW_LAST_PACKET, 10);
	bench_read(call(0));
	bench_write(call(0), 45, 10, false);
	ck_assert_uint_eq(call(0)->p.tx.nxt, 5);
	b.next = b.count;
	/* Only what was sent: the rest of the stream is still to come. */
	size = bench_header(&b, packet, RXW_ACKALL, 1, 0);
	bench_input(&b, c, packet, size, size);
	ck_assert_uint_eq(call(0)->p.tx.una, 5);
	ck_assert_uint_eq(call(0)->p.tx.end, 46);
	ck_assert_uint_gt(call(0)->p.tx.nxt, 5);
	bench_free(&b);
}
END_TEST

START_TEST(serials)
{
	server();
	/* One row for all channels and types. */
	bench_get_data(&b, c, 1, 2, 0, 10);
	bench_get_data(&b, c, 1, 1, RXW_REQUEST_ACK, 10);
	bench_get_data(&b, c, 1, 1, 0, 10);
	rxw_pcall_fail(&call(0)->p, -9, RXW_ORIGIN_LOCAL, true, &b.out);
	bench_settle(&b);
	ck_assert_uint_ge(b.count, 4);
	for (unsigned i = 0; i < b.count; i++)
		ck_assert_uint_eq(b.sent[i].h.serial, i + 1);
	for (unsigned i = 0; i < b.count; i++)
		ck_assert(!(b.sent[i].h.flags & RXW_CLIENT_INITIATED));
	bench_free(&b);
}
END_TEST

/* Random input: no crash, no leak, no unbounded growth. */
START_TEST(random_packets)
{
	static const uint8_t types[] = {1, 1, 1, 1, 2, 2, 2, 3, 4, 5, 6, 7, 9, 12};
	uint64_t state = 17;

	for (unsigned round = 0; round < 300; round++) {
		if (round % 2)
			server();
		else
			client();
		for (unsigned i = 0; i < 3 && b.client; i++)
			bench_write(bench_begin(&b, c), 20, 100, rxw_prng(&state) % 2);
		for (unsigned i = 0; i < 200; i++) {
			uint8_t packet[2000];
			uint32_t size = 28 + (uint32_t)(rxw_prng(&state) % 400);

			for (uint32_t k = 0; k < size; k += 8)
				memcpy(packet + k, &(uint64_t){rxw_prng(&state)}, 8);
			bench_header(&b, packet, types[rxw_prng(&state) % sizeof(types)],
				     (uint32_t)(rxw_prng(&state) % 3), 0);
			packet[7] |= rxw_prng(&state) % 4;
			rxw_put32(packet + 12, (uint32_t)(rxw_prng(&state) % 40));
			packet[21] = (uint8_t)((rxw_prng(&state) & 0x2e) | (packet[21] & 1));
			if (packet[20] == RXW_ACK) {
				rxw_put32(packet + 28 + 4, (uint32_t)(rxw_prng(&state) % 12));
				rxw_put32(packet + 28 + 12, (uint32_t)(rxw_prng(&state) % 60));
				packet[28 + 16] = (uint8_t)(rxw_prng(&state) % 11);
				packet[28 + 17] = (uint8_t)(rxw_prng(&state) % 20);
			}
			bench_input(&b, c, packet, size, size);
			for (unsigned k = 0; k < 4; k++)
				if (call(k) != NULL && call(k)->p.state == RXW_CS_ACTIVE &&
				    rxw_prng(&state) % 3 == 0)
					bench_read(call(k));
			bench_pass(&b, rxw_prng(&state) % (20 * RXW_MS));
			b.count = b.next = 0;
		}
		bench_free(&b);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("connection");
	TCase *tcase = tcase_create("connection");

	suite_add_tcase(suite, tcase);
	tcase_set_timeout(tcase, 0);
	tcase_add_test(tcase, server_checks);
	tcase_add_test(tcase, client_checks);
	tcase_add_test(tcase, stateless_aborts);
	tcase_add_test(tcase, channels);
	tcase_add_test(tcase, numbers_used_up);
	tcase_add_test(tcase, moves_without_end);
	tcase_add_test(tcase, overtaken_active_call);
	tcase_add_test(tcase, next_call_acknowledges);
	tcase_add_test(tcase, use_of_a_connection);
	tcase_add_test(tcase, refused_call);
	tcase_add_test(tcase, connection_error);
	tcase_add_test(tcase, ackall);
	tcase_add_test(tcase, serials);
	tcase_add_test(tcase, random_packets);
	return bench_main(suite);
}
