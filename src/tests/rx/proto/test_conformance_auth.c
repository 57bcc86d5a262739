/* SPDX-License-Identifier: BSD-2-Clause */
/* CHALLENGE and RESPONSE: rx-protocol 6.1, 7.1 (doc/conformance.md). */
#include <string.h>

#include "bench.h"
#include "tests/support/challenger.h"

static struct bench b;
static struct bench_conn *c;
static uint8_t packet[2048];

static void up(bool client)
{
	bench_init(&b, client);
	b.security = challenger_class();
	c = bench_conn(&b, BENCH_EPOCH, BENCH_CID, client ? 7000 : 7001);
}

static void server_up(void)
{
	up(false);
}

static void client_up(void)
{
	up(true);
}

static void down(void)
{
	bench_free(&b);
}

/* DATA with a valid or an invalid seal. */
static void data(uint32_t seq, unsigned flags, bool good)
{
	uint32_t size = bench_data(&b, packet, 1, seq, flags, 104);

	rxw_put16(packet + 24, CHALLENGER_SPARE);
	memcpy(packet + size - 4, good ? "seal" : "leak", 4);
	bench_input(&b, c, packet, size, size);
}

static void response(bool good)
{
	uint32_t size = bench_header(&b, packet, RXW_RESPONSE, 0, 0);

	memcpy(packet + size, challenger_nonce(c->p.auth.sec), CHALLENGER_NONCE);
	packet[size + CHALLENGER_NONCE - 1] ^= !good;
	size += CHALLENGER_NONCE;
	bench_input(&b, c, packet, size, size);
}

static struct rxw_pcall *call(void)
{
	return bench_channel(c, 0);
}

static void check_challenge(const struct bench_packet *k)
{
	ck_assert_uint_eq(k->h.type, RXW_CHALLENGE);
	ck_assert_uint_eq(k->h.call, 0);
	ck_assert_uint_eq(k->h.seq, 0);
	ck_assert_uint_eq(k->h.cid, BENCH_CID); /* channel bits 0 */
	ck_assert_uint_eq(k->h.security, CHALLENGER_INDEX);
	ck_assert_uint_eq(k->h.spare, 0);
	ck_assert_uint_le(k->length, 48);
	ck_assert_uint_eq(k->length, RXW_HEADER_SIZE + CHALLENGER_NONCE);
	ck_assert_mem_eq(k->bytes + RXW_HEADER_SIZE, challenger_nonce(c->p.auth.sec),
			 CHALLENGER_NONCE);
}

START_TEST(asked_when_a_call_waits)
{
	struct bench_packet *k;

	/* Behind a hole, too: the call number may be damaged, and the RESPONSE has the real one. */
	data(2, RXW_LAST_PACKET, true);
	do
		k = bench_next(&b);
	while (k != NULL && k->h.type == RXW_ACK);
	ck_assert_ptr_nonnull(k);
	check_challenge(k);
	data(1, 0, true);
	while ((k = bench_next(&b)) != NULL)
		ck_assert_uint_ne(k->h.type, RXW_CHALLENGE);
	ck_assert_int_eq(call()->state, RXW_CS_PRECALL);
	response(true);
	ck_assert_int_eq(call()->state, RXW_CS_ACTIVE);
	ck_assert(rxw_peer_validated(c->p.peer, b.out.now));
	ck_assert_uint_eq(bench_read((struct bench_call *)call()), 2);
	response(true); /* again: unsolicited */
	ck_assert_uint_eq(atomic_load(&b.stats.drops[RXW_DROP_STATE]), 1);
	ck_assert_int_eq(c->p.error, 0);
}
END_TEST

/*
 * Sent by timer after 500 and 1250 ms, on DATA of the waiting call at most every 500 ms. After 30 s
 * the call ends.
 */
START_TEST(asked_again)
{
	uint64_t start = b.out.now;
	struct bench_packet *k;
	unsigned n = 0;

	data(1, RXW_LAST_PACKET, true);
	bench_pass(&b, 10 * RXW_SEC);
	while ((k = bench_next(&b)) != NULL) {
		static const unsigned at[] = {0, 500, 1250};

		if (k->h.type != RXW_CHALLENGE)
			continue;
		check_challenge(k);
		ck_assert_uint_lt(n, 3);
		ck_assert_uint_eq((k->at - start) / RXW_MS, at[n]);
		n++;
	}
	ck_assert_uint_eq(n, 3);
	/* The client retransmits: the CHALLENGE may have been lost. */
	for (unsigned i = 0; i < 4; i++) {
		bench_pass(&b, 250 * RXW_MS);
		data(1, RXW_LAST_PACKET, true);
	}
	n = 0;
	while ((k = bench_next(&b)) != NULL)
		n += k->h.type == RXW_CHALLENGE;
	ck_assert_uint_eq(n, 2);
	for (unsigned i = 0; i < 9; i++) {
		bench_get_ack(&b, c, 1, 1, 0, RXW_ACK_PING, "", 32); /* it is alive */
		bench_pass(&b, 2 * RXW_SEC);
		data(1, RXW_LAST_PACKET, true);
		b.count = b.next = 0;
	}
	ck_assert_int_eq(call()->error, 0);
	bench_pass(&b, 2 * RXW_SEC);
	ck_assert_int_eq(call()->error, RXW_CALL_DEAD);
}
END_TEST

START_TEST(unasked_responses)
{
	response(true);
	ck_assert_uint_eq(atomic_load(&b.stats.drops[RXW_DROP_STATE]), 1);
	ck_assert(!c->p.auth.authenticated);
	bench_nothing(&b);
	ck_assert_int_eq(c->p.error, 0);
}
END_TEST

/* The next packet other than an ACK. */
static struct bench_packet *no_ack(void)
{
	struct bench_packet *k;

	do
		k = bench_next(&b);
	while (k != NULL && k->h.type == RXW_ACK);
	ck_assert_ptr_nonnull(k);
	return k;
}

/* 7.1: the connection ends one second after an invalid RESPONSE, unless a valid one arrives. */
START_TEST(a_wrong_response)
{
	uint64_t at;
	struct bench_packet *k;

	data(1, RXW_LAST_PACKET, true);
	check_challenge(no_ack());
	response(false);
	at = b.out.now;
	ck_assert_int_eq(c->p.error, 0);
	ck_assert_uint_eq(atomic_load(&b.stats.drops[RXW_DROP_VERIFY]), 1);
	check_challenge(no_ack()); /* at once */
	bench_pass(&b, 999 * RXW_MS);
	/* By timer, twice: the address is not validated. */
	for (unsigned i = 1; i <= 2; i++) {
		k = no_ack();
		check_challenge(k);
		ck_assert_uint_eq(k->at, at + i * 250 * RXW_MS);
	}
	ck_assert_int_eq(call()->error, 0);
	bench_pass(&b, 2 * RXW_MS);
	ck_assert_int_eq(c->p.error, CHALLENGER_WRONG);
	ck_assert_int_eq(call()->error, CHALLENGER_WRONG);
	k = no_ack();
	ck_assert_uint_eq(k->h.type, RXW_ABORT);
	ck_assert_uint_eq(k->at, at + RXW_SEC);
	ck_assert_uint_eq(k->h.call, 0);
	ck_assert_int_eq(k->code, CHALLENGER_WRONG);
	bench_nothing(&b);
}
END_TEST

/* A damaged or forged RESPONSE does not keep the genuine one out. */
START_TEST(a_good_response_after_a_wrong_one)
{
	data(1, RXW_LAST_PACKET, true);
	response(false);
	bench_pass(&b, 900 * RXW_MS);
	response(true);
	ck_assert_int_eq(call()->state, RXW_CS_ACTIVE);
	bench_pass(&b, 200 * RXW_MS);
	ck_assert_int_eq(c->p.error, 0);
	ck_assert_uint_eq(bench_read((struct bench_call *)call()), 1);
}
END_TEST

/* If this process is stopped for longer than that, the client still gets another CHALLENGE, and may answer it. */
START_TEST(stopped_after_a_wrong_response)
{
	data(1, RXW_LAST_PACKET, true);
	response(false);
	b.next = b.count;
	b.out.now += 5 * RXW_SEC;
	bench_pass(&b, 100 * RXW_MS);
	check_challenge(no_ack());
	ck_assert_int_eq(c->p.error, 0);
	if (_i == 0) {
		response(true);
		ck_assert_int_eq(call()->state, RXW_CS_ACTIVE);
		bench_pass(&b, 2 * RXW_SEC);
		ck_assert_int_eq(c->p.error, 0);
	} else {
		bench_pass(&b, RXW_SEC);
		ck_assert_int_eq(c->p.error, CHALLENGER_WRONG);
	}
}
END_TEST

/* Attempts are limited, which also bounds the cost of checking. */
START_TEST(many_wrong_responses)
{
	uint64_t at = b.out.now;
	struct bench_packet *k;
	unsigned n = 0;

	data(1, RXW_LAST_PACKET, true);
	for (unsigned i = 0; i < 8; i++) {
		ck_assert_int_eq(c->p.error, 0);
		response(false);
	}
	ck_assert_int_eq(c->p.error, CHALLENGER_WRONG);
	response(true);
	ck_assert(!c->p.auth.authenticated);
	while ((k = bench_next(&b)) != NULL) {
		ck_assert_uint_ne(k->h.type, RXW_ABORT);
		n += k->h.type == RXW_CHALLENGE;
	}
	ck_assert_uint_eq(n, 8);
	bench_pass(&b, 1001 * RXW_MS);
	k = no_ack();
	ck_assert_uint_eq(k->h.type, RXW_ABORT);
	ck_assert_uint_eq(k->at, at + RXW_SEC);
	ck_assert_int_eq(k->code, CHALLENGER_WRONG);
}
END_TEST

/* Packets queued unverified are verified then. Those that fail are requested again. */
START_TEST(checked_late)
{
	struct bench_packet *k;

	data(1, 0, true);
	data(2, 0, false);
	data(3, RXW_LAST_PACKET, true);
	b.next = b.count;
	response(true);
	ck_assert_uint_eq(rxw_pcall_readable(call(), NULL), 1);
	bench_pass(&b, 2 * RXW_MS);
	k = bench_expect(&b, RXW_ACK);
	while (b.next < b.count)
		k = bench_expect(&b, RXW_ACK);
	ck_assert_uint_le(k->ack.first, 2);
	ck_assert_uint_eq(k->ack.first + k->ack.count, 4);
	ck_assert_uint_eq(k->ack.acks[2 - k->ack.first] & 1, 0);
	ck_assert_uint_eq(k->ack.acks[3 - k->ack.first] & 1, 1);
	data(2, 0, true);
	ck_assert_uint_eq(rxw_pcall_readable(call(), NULL), 3);
	ck_assert_int_eq(c->p.error, 0);
}
END_TEST

/*
 * From then on such packets are dropped before queueing or acknowledgement. They neither keep a
 * call alive nor end one.
 */
START_TEST(forged_data)
{
	uint64_t heard;

	data(1, 0, true);
	response(true);
	ck_assert_int_eq(call()->state, RXW_CS_ACTIVE);
	bench_pass(&b, 100 * RXW_MS);
	b.next = b.count;
	heard = call()->time.last_heard;
	data(2, RXW_LAST_PACKET | RXW_REQUEST_ACK, false);
	data(200, RXW_LAST_PACKET, false);
	bench_nothing(&b);
	ck_assert_uint_eq(call()->rx.next, 2);
	ck_assert_uint_eq(call()->rx.last, 0);
	ck_assert_uint_eq(call()->time.last_heard, heard);
	ck_assert_int_eq(call()->error, 0);
	/* A forged request for the next call ends no active call. */
	{
		uint32_t size = bench_data(&b, packet, 2, 1, RXW_LAST_PACKET, 104);

		bench_input(&b, c, packet, size, size);
	}
	ck_assert_int_eq(call()->error, 0);
	ck_assert_uint_eq(call()->number, 1);
	bench_nothing(&b);
	data(2, RXW_LAST_PACKET, true);
	ck_assert_uint_eq(call()->rx.next, 3);
}
END_TEST

START_TEST(challenges_to_a_server)
{
	bench_header(&b, packet, RXW_CHALLENGE, 0, 0);
	rxw_put32(packet + RXW_HEADER_SIZE, 1);
	bench_input(&b, c, packet, RXW_HEADER_SIZE + 4, RXW_HEADER_SIZE + 4);
	ck_assert_uint_eq(atomic_load(&b.stats.drops[RXW_DROP_DIRECTION]), 1);
	bench_nothing(&b);
}
END_TEST

/* --- the client --- */

static void get_challenge(uint32_t size)
{
	bench_header(&b, packet, RXW_CHALLENGE, 0, 0);
	memset(packet + RXW_HEADER_SIZE, 77, size);
	bench_input(&b, c, packet, RXW_HEADER_SIZE + size, RXW_HEADER_SIZE + size);
}

START_TEST(answered_with_a_call_only)
{
	const struct challenger_asked *asked;
	struct bench_call *mine;
	struct bench_packet *k;

	get_challenge(CHALLENGER_NONCE);
	bench_nothing(&b);
	ck_assert_uint_eq(atomic_load(&b.stats.drops[RXW_DROP_STATE]), 1);
	mine = bench_begin(&b, c);
	bench_write(mine, 1, 40, true);
	b.next = b.count;
	get_challenge(CHALLENGER_NONCE);
	k = bench_expect(&b, RXW_RESPONSE);
	ck_assert_uint_eq(k->h.call, 0);
	ck_assert_uint_eq(k->h.cid, BENCH_CID);
	ck_assert_uint_eq(k->h.flags, RXW_CLIENT_INITIATED);
	ck_assert_mem_eq(k->bytes + RXW_HEADER_SIZE, packet + RXW_HEADER_SIZE, CHALLENGER_NONCE);
	asked = challenger_asked(c->p.auth.sec);
	ck_assert_uint_eq(asked->epoch, BENCH_EPOCH);
	ck_assert_uint_eq(asked->calls[0], 1);
	ck_assert_uint_ge(asked->room, 12000);
	/* A damaged packet ends nothing. */
	get_challenge(CHALLENGER_NONCE - 1);
	bench_nothing(&b);
	ck_assert_int_eq(c->p.error, 0);
	ck_assert_uint_eq(atomic_load(&b.stats.drops[RXW_DROP_VERIFY]), 1);
}
END_TEST

START_TEST(eight_a_second)
{
	unsigned n = 0;
	struct bench_packet *k;

	bench_write(bench_begin(&b, c), 1, 40, true);
	for (unsigned i = 0; i < 20; i++)
		get_challenge(CHALLENGER_NONCE);
	while ((k = bench_next(&b)) != NULL)
		n += k->h.type == RXW_RESPONSE;
	ck_assert_uint_eq(n, 8);
	bench_pass(&b, RXW_SEC + RXW_MS);
	b.next = b.count;
	get_challenge(CHALLENGER_NONCE);
	bench_expect(&b, RXW_RESPONSE);
}
END_TEST

START_TEST(none_without_a_class)
{
	down();
	bench_init(&b, true);
	c = bench_conn(&b, BENCH_EPOCH, BENCH_CID, 7000);
	bench_write(bench_begin(&b, c), 1, 40, true);
	b.next = b.count;
	get_challenge(CHALLENGER_NONCE);
	bench_nothing(&b);
	ck_assert_uint_eq(atomic_load(&b.stats.drops[RXW_DROP_STATE]), 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("conformance: challenges");
	TCase *server = tcase_create("server"), *client = tcase_create("client");

	tcase_add_checked_fixture(server, server_up, down);
	tcase_add_test(server, asked_when_a_call_waits);
	tcase_add_test(server, asked_again);
	tcase_add_test(server, unasked_responses);
	tcase_add_test(server, a_wrong_response);
	tcase_add_test(server, a_good_response_after_a_wrong_one);
	tcase_add_loop_test(server, stopped_after_a_wrong_response, 0, 2);
	tcase_add_test(server, many_wrong_responses);
	tcase_add_test(server, checked_late);
	tcase_add_test(server, forged_data);
	tcase_add_test(server, challenges_to_a_server);
	suite_add_tcase(suite, server);
	tcase_add_checked_fixture(client, client_up, down);
	tcase_add_test(client, answered_with_a_call_only);
	tcase_add_test(client, eight_a_second);
	tcase_add_test(client, none_without_a_class);
	suite_add_tcase(suite, client);
	return bench_main(suite);
}
