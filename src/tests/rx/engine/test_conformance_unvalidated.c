/* SPDX-License-Identifier: BSD-2-Clause */
/* What an address that proved nothing can cause: rx-protocol 6.7, 12.3 (doc/conformance.md). */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/conn/conn.h"
#include "engine/dispatch/dispatch.h"
#include "engine/rx/batch.h"
#include "engine/lock.h"
#include "proto/event/event.h"
#include "tests/main.h"
#include "tests/rx/api/harness.h"
#include "tests/rx/api/streams.h"

static struct h_bed bed;
static uint8_t head[H_ASK_SIZE], packet[2048];

/* --- three times what was sent, by the bytes that come back --- */

/* A client that sends, reads what comes, and never says that it did. */
struct spoof {
	int fd;
	uint64_t in;	    /* bytes that it sent, with their IP and UDP headers */
	uint64_t out;	    /* the same of what came back */
	unsigned questions; /* PINGs that came back */
	uint32_t ping;	    /* serial of the latest */
	unsigned types[14];
};

static void look(struct spoof *s, bool wait)
{
	ssize_t n;

	while ((n = recv(s->fd, packet, sizeof(packet), wait ? 0 : MSG_DONTWAIT)) > 0) {
		ck_assert_int_ge(n, RXW_HEADER_SIZE);
		wait = false;
		s->types[packet[20] % 14]++;
		if (packet[20] == RXW_ACK && packet[RXW_HEADER_SIZE + 16] == RXW_ACK_PING) {
			s->questions++;
			s->ping = rxw_get32(packet + 16);
		}
		s->out += (uint64_t)n + 28;
		ck_assert_msg(s->out <= 3 * s->in, "%llu bytes for %llu",
			      (unsigned long long)s->out, (unsigned long long)s->in);
	}
}

static void say(struct spoof *s, const struct h_raw *raw)
{
	s->in += RXW_HEADER_SIZE + raw->size + 28;
	h_raw_send(s->fd, raw);
}

static bool all_came(void *arg)
{
	uint64_t *least = arg;
	struct rxw_stats s = h_stats(bed.server);
	uint64_t sum = s.drops[RXW_DROP_SERVICE]; /* those found no connection to count them */

	for (unsigned i = 0; i < 14; i++)
		sum += s.packets_received[i];
	return sum >= *least;
}

/*
 * Answers to an ACK: like answer() of a client that lives, with the serial that the server is to
 * hear.
 */
static struct h_raw ack_of(const struct h_raw *call, unsigned reason, uint32_t serial, uint32_t own,
			   uint8_t *body)
{
	struct rxw_ack ack = {.first = 1,
			      .serial = serial,
			      .reason = (uint8_t)reason,
			      .acks = body,
			      .max_mtu = 1444,
			      .if_mtu = 1444,
			      .rwind = 32,
			      .jumbo_max = 1};
	struct h_raw raw = *call;

	raw.type = RXW_ACK;
	raw.flags = RXW_CLIENT_INITIATED | RXW_SLOW_START_OK;
	raw.seq = 0;
	raw.serial = own;
	raw.size = rxw_ack_put(body, &ack);
	raw.body = body;
	return raw;
}

START_TEST(three_times)
{
	struct spoof s = {.ping = 0};
	struct h_raw raw = h_raw_request(head, H_SOURCE, 0x8000), tiny;
	uint8_t body[RXW_ACK_MAX_SIZE];
	uint64_t count = 0;
	unsigned data;

	h_open(&bed, NULL);
	s.fd = h_raw_socket(&bed);
	h_encode_ask(head, &(struct h_ask){.op = H_SOURCE, .bytes = 100000});
	say(&s, &raw);
	while (s.questions == 0) /* it is asked for a proof instead of being sent the reply */
		look(&s, true);
	/*
	 * The smallest packets that draw something: duplicates, holes, the next call, questions,
	 * what is for nobody.
	 */
	for (uint32_t i = 0; i < 300; i++) {
		tiny = raw;
		tiny.size = 0;
		tiny.serial = 2 + i;
		switch (i % 6) {
		case 0:
			break;
		case 1:
			tiny.seq = 3 + i % 7;
			tiny.flags = RXW_CLIENT_INITIATED | RXW_REQUEST_ACK;
			tiny.cid |= 1;
			break;
		case 2:
			tiny.cid |= 2;
			tiny.call = i;
			break;
		case 3:
			tiny.service = 4711;
			tiny.cid = 0x9000 + 4 * i;
			break;
		case 4:
			tiny = ack_of(&raw, RXW_ACK_PING, 0, 1000 + i, body);
			tiny.flags |= RXW_REQUEST_ACK;
			break;
		default:
			tiny.type = RXW_ABORT;
			tiny.cid |= 3;
			break;
		}
		say(&s, &tiny);
		count++;
		if (i % 10 == 9) {
			h_wait_for(all_came, &count, "what was sent");
			look(&s, false);
		}
	}
	ck_assert_uint_eq(s.types[RXW_DATA], 0);
	ck_assert_uint_ge(s.types[RXW_ABORT], 1);
	/* The proof: its serial comes back, and the reply goes out. */
	data = s.types[RXW_DATA];
	tiny = ack_of(&raw, RXW_ACK_PING_RESPONSE, s.ping, 5000, body);
	say(&s, &tiny);
	s.in += 1000000; /* from here on nothing is counted */
	while (s.types[RXW_DATA] < data + 4)
		look(&s, true);
	close(s.fd);
	h_close(&bed);
}
END_TEST

/* A small call to a new address costs no question. */
START_TEST(small_calls_are_answered_at_once)
{
	struct h_raw raw = h_raw_request(head, H_PING, 0x8100);

	h_open(&bed, NULL);
	struct spoof s = {.fd = h_raw_socket(&bed)};

	say(&s, &raw);
	/* Where the handler's thread is late, an ACK of the request comes first. */
	do {
		ck_assert_int_ge(recv(s.fd, packet, sizeof(packet), 0), RXW_HEADER_SIZE);
		ck_assert(packet[20] != RXW_ACK || packet[RXW_HEADER_SIZE + 16] != RXW_ACK_PING);
	} while (packet[20] != RXW_DATA);
	close(s.fd);
	h_close(&bed);
}
END_TEST

/* --- the strict reach check --- */

START_TEST(validate_first)
{
	struct rxw_service_options o = {.size = sizeof(o),
					.id = 103,
					.name = "reach",
					.handler = h_serve,
					.context = &bed,
					.flags = RXW_SERVICE_REACH};
	struct h_raw raw = h_raw_request(head, H_PING, 0x8200), ack;
	uint8_t body[RXW_ACK_MAX_SIZE];
	rxw_service *service;
	uint64_t count = 3;

	h_open(&bed, NULL);
	struct spoof s = {.fd = h_raw_socket(&bed)};

	ck_assert_int_eq(rxw_service_add(bed.server, &o, &service), 0);
	raw.service = 103;
	say(&s, &raw);
	while (s.questions == 0)
		look(&s, true);
	say(&s, &raw); /* a duplicate is no proof */
	ack = ack_of(&raw, RXW_ACK_PING_RESPONSE, s.ping + 100, 2,
		     body); /* nor is a serial that was guessed wrong */
	say(&s, &ack);
	h_wait_for(all_came, &count, "three packets");
	ck_assert_uint_eq(h_stats(bed.server).calls_started, 0);
	look(&s, false);
	ck_assert_uint_eq(s.types[RXW_DATA], 0);
	ack = ack_of(&raw, RXW_ACK_PING_RESPONSE, s.ping, 3, body);
	say(&s, &ack);
	while (s.types[RXW_DATA] == 0)
		look(&s, true);
	ck_assert_uint_eq(h_stats(bed.server).calls_started, 1);
	/* The address is known for a while: its next call is served at once. */
	raw.cid += 4;
	say(&s, &raw);
	while (s.types[RXW_DATA] < 2)
		look(&s, true);
	close(s.fd);
	h_close(&bed);
}
END_TEST

/* Clients of ours answer such questions by themselves. */
START_TEST(strict_reach_for_our_clients)
{
	struct rxw_service_options o = {.size = sizeof(o),
					.id = 103,
					.name = "reach",
					.handler = h_serve,
					.context = &bed,
					.flags = RXW_SERVICE_REACH};
	rxw_connection *connection;

	h_open(&bed, NULL);
	h_offer(&bed, o);
	connection = h_connect(&bed, 103);
	h_good_call(&bed, connection, &(struct h_ask){.op = H_BOTH, .bytes = 100000});
	rxw_connection_release(connection);
	h_close(&bed);
}
END_TEST

static bool told(void *arg)
{
	struct spoof *s = arg;
	struct h_raw raw = h_raw_request(head, H_PING, 0x8400);

	raw.type = RXW_ACK;
	for (int i = 0; i < 200; i++)
		say(s, &raw);
	return h_warnings(&bed) > 0;
}

/* Packets that fit nothing, more than a few: somebody should know. */
START_TEST(guessing_is_told)
{
	struct spoof s = {.in = 0};
	unsigned before;

	h_open(&bed, &(struct h_options){.server = "listeners=1"});
	s.fd = h_raw_socket(&bed);
	before = h_warnings(&bed); /* about the sizes of buffers, maybe */
	while (h_warnings(&bed) == before)
		h_wait_for(told, &s, "a warning");
	ck_assert_uint_eq(h_warnings(&bed), before + 1);
	close(s.fd);
	h_close(&bed);
}
END_TEST

/* A second later, and so many more packets were dropped for this cause: what was logged in all. */
static unsigned a_second_later(uint64_t *now, enum rxw_drop cause, unsigned packets)
{
	struct rxw_shard *s = &bed.server->shard[0];

	rxw_drop(&s->stats, cause, packets);
	*now += RXW_SEC + RXW_MS;
	rxw_shard_reap(s, *now);
	return h_warnings(&bed);
}

/* What honest peers send as well is no guessing, however much it is, nor is a burst of anything. */
START_TEST(late_packets_are_no_guesses)
{
	static const enum rxw_drop honest[] = {RXW_DROP_CALL_NUMBER, RXW_DROP_SERVICE,
					       RXW_DROP_BAD_ACK, RXW_DROP_SECURITY_INDEX};
	unsigned before;
	uint64_t now;

	h_open(&bed, &(struct h_options){.server = "listeners=1"});
	atomic_store(&bed.server->quit, true);
	rxw_shard_stop(&bed.server->shard[0]);
	now = rxw_now() + RXW_SEC;
	before = a_second_later(&now, RXW_DROP_RATE, 0);
	for (unsigned i = 0; i < 10; i++)
		for (unsigned k = 0; k < 4; k++)
			ck_assert_uint_eq(a_second_later(&now, honest[k], 10000), before);
	/* The clients of a server that was started again, until they know. */
	ck_assert_uint_eq(a_second_later(&now, RXW_DROP_NO_CONNECTION, 10000), before);
	ck_assert_uint_eq(a_second_later(&now, RXW_DROP_NO_CONNECTION, 10000), before);
	ck_assert_uint_eq(a_second_later(&now, RXW_DROP_NO_CONNECTION, 50), before);
	ck_assert_uint_eq(a_second_later(&now, RXW_DROP_NO_CONNECTION, 200), before);
	ck_assert_uint_eq(a_second_later(&now, RXW_DROP_ADDRESS, 200), before);
	ck_assert_uint_eq(a_second_later(&now, RXW_DROP_NO_CONNECTION, 200), before + 1);
	ck_assert_uint_eq(a_second_later(&now, RXW_DROP_NO_CONNECTION, 200), before + 1);
	h_close(&bed);
}
END_TEST

/* --- how many: packets from elsewhere, put to rxw_find_connection() by hand --- */

static struct rxw_connection *from_to(const char *host, const char *local, uint32_t cid)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons(7001)};
	struct rxw_shard *s = &bed.server->shard[0];
	struct h_raw raw = h_raw_request(head, H_PING, cid);
	struct rxw_path path = {.ifindex = 0};
	struct rxw_connection *c;
	struct rxw_effects a;
	struct rxw_rxrun run = {.data = packet, .count = 1, .path = &path};

	inet_pton(AF_INET, host, &sa.sin_addr);
	ck_assert(rxw_addr_set(&path.peer, (struct sockaddr *)&sa, sizeof(sa)));
	inet_pton(AF_INET, local, &sa.sin_addr);
	sa.sin_port = 0;
	ck_assert(rxw_addr_set(&path.local, (struct sockaddr *)&sa, sizeof(sa)));
	run.size = run.stride = run.last_size = (uint16_t)h_raw_encode(packet, &raw);
	ck_assert(rxw_header_get(packet, run.size, &run.head));
	rxw_effects_init(&a, s, false);
	c = rxw_find_connection(s, &run, &a);
	ck_assert_uint_eq(a.out.ctl_count, 0);
	return c;
}

static struct rxw_connection *from(const char *host, uint32_t cid)
{
	return from_to(host, "203.0.113.99", cid);
}

/* What the connection is to make of a packet like `raw` that comes now. */
static bool watched(struct rxw_connection *c, const struct h_raw *raw, struct rxw_rxrun *run)
{
	bool asks;

	*run = (struct rxw_rxrun){.data = packet, .count = 1, .path = &c->p.path};
	run->size = run->stride = run->last_size = (uint16_t)h_raw_encode(packet, raw);
	ck_assert(rxw_header_get(packet, run->size, &run->head));
	rxw_conn_lock(c);
	asks = rxw_unvalidated_needs_cookie(c, run, rxw_now());
	rxw_unvalidated_recheck(c, rxw_now());
	rxw_conn_unlock(c);
	return asks;
}

/* The serial of a question that leaves, or 0. */
static uint32_t asked(struct rxw_connection *c, const struct rxw_rxrun *run)
{
	uint64_t before = rxw_peer_allowance(c->p.peer, rxw_now());
	struct rxw_effects a;

	rxw_effects_init(&a, &bed.server->shard[0], false);
	rxw_unvalidated_send_cookie(&bed.server->shard[0], c, run, &a);
	if (!a.out.ctl_count)
		return 0;
	ck_assert_uint_eq(a.out.ctl[0].bytes[20], RXW_ACK);
	ck_assert_uint_eq(a.out.ctl[0].bytes[RXW_HEADER_SIZE + 16], RXW_ACK_PING);
	ck_assert_uint_eq(rxw_peer_allowance(c->p.peer, rxw_now()),
			  before - a.out.ctl[0].length - 28);
	return rxw_get32(a.out.ctl[0].bytes + 16);
}

/*
 * Who makes small calls only is asked for a proof once, with its second call, by what its first
 * left of three bytes for one; nobody on this host is.
 */
START_TEST(a_second_call_is_met_with_a_question)
{
	struct h_raw raw = h_raw_request(head, H_PING, 0x100000), ack;
	uint8_t body[RXW_ACK_MAX_SIZE];
	struct rxw_connection *c, *here;
	struct rxw_rxrun run;
	uint32_t serial;

	h_open(&bed, &(struct h_options){.server = "listeners=1"});
	c = from("192.0.2.1", 0x100000);
	here = from_to("203.0.113.99", "203.0.113.99", 0x100000);
	rxw_peer_heard(here->p.peer, 300, 1);
	ck_assert(!watched(c, &raw, &run));
	raw.call = 2;
	ck_assert(!watched(here, &raw, &run));
	ck_assert(!watched(c, &raw, &run)); /* nothing came that would pay for it */
	rxw_peer_heard(c->p.peer, 100, 1);
	ck_assert(watched(c, &raw, &run));
	serial = asked(c, &run);
	ck_assert_uint_ge(serial, 0x80000000u); /* not one of the connection's */
	rxw_peer_heard(c->p.peer, 300, 1);
	ck_assert(watched(c, &raw, &run));
	ck_assert_uint_eq(asked(c, &run), 0); /* once in four seconds */
	ck_assert(c->admit.unvalidated);
	ack = ack_of(&raw, RXW_ACK_PING_RESPONSE, serial + 1, 3, body);
	ck_assert(!watched(c, &ack, &run));
	ack = ack_of(&raw, RXW_ACK_REQUESTED, serial, 3, body);
	ck_assert(!watched(c, &ack, &run));
	ck_assert(c->admit.unvalidated);
	ack = ack_of(&raw, RXW_ACK_PING_RESPONSE, serial, 3, body);
	ck_assert(!watched(c, &ack, &run));
	ck_assert(!c->admit.unvalidated);
	ck_assert(rxw_peer_validated(c->p.peer, rxw_now()));
	ck_assert_uint_eq(h_stats(bed.server).cookies_sent, 1);
	ck_assert_uint_eq(h_stats(bed.server).cookies_returned, 1);
	raw.call = 3;
	ck_assert(!watched(c, &raw, &run));
	rxw_conn_unref(c);
	rxw_conn_unref(here);
	h_close(&bed);
}
END_TEST

START_TEST(caps)
{
	struct rxw_connection *c;
	struct rxw_stats s;
	uint32_t cid = 0x100000;

	h_open(&bed,
	       &(struct h_options){.server = "unvalidated-per-host=8 unvalidated-total=100 listeners=1"});
	/* One address: beyond its share the strict check holds; nothing is refused for it. */
	for (unsigned i = 0; i < 20; i++, cid += 4) {
		c = from("192.0.2.1", cid);
		ck_assert_ptr_nonnull(c);
		ck_assert_int_eq(c->p.validate_first, i >= 8);
		ck_assert(!c->p.crowded);
		rxw_conn_unref(c);
	}
	/* Addresses of this host are excepted. */
	for (unsigned i = 0; i < 20; i++, cid += 4) {
		c = i % 2 ? from("127.0.0.9", cid) : from_to("203.0.113.99", "203.0.113.99", cid);
		ck_assert(!c->p.validate_first);
		ck_assert(!c->p.crowded);
		rxw_conn_unref(c);
	}
	/* Over a quarter: two packets each. Over a half: the strict check for everyone. */
	for (unsigned i = 40; i < 100; i++, cid += 4) {
		char host[20];

		snprintf(host, sizeof(host), "198.51.100.%u", i);
		c = from(host, cid);
		ck_assert_ptr_nonnull(c);
		ck_assert(c->p.crowded);
		ck_assert_int_eq(c->p.validate_first, i >= 50);
		rxw_conn_unref(c);
	}
	s = h_stats(bed.server);
	ck_assert_uint_le(s.connections_server, 100);
	ck_assert_uint_eq(s.drops[RXW_DROP_LIMIT], 0);
	/*
	 * Full: a new one takes the place of one that was silent for long; the number stays what it
	 * is.
	 */
	for (unsigned i = 0; i < 150; i++, cid += 4) {
		c = from("203.0.113.5", cid);
		ck_assert_ptr_nonnull(c);
		ck_assert(c->p.validate_first);
		rxw_conn_unref(c);
		ck_assert_uint_eq(h_stats(bed.server).connections_server, 100);
	}
	ck_assert_uint_eq(h_stats(bed.server).drops[RXW_DROP_LIMIT], 0);
	h_close(&bed);
}
END_TEST

static bool rests(void *arg)
{
	const unsigned *calls = arg;
	struct rxw_stats s = h_stats(bed.server);

	return !s.calls_active && s.calls_started >= *calls;
}

static uint64_t forgotten_at(uint64_t now)
{
	rxw_shard_reap(&bed.server->shard[0], now);
	return h_stats(bed.server).connections_server;
}

/*
 * A connection without calls is remembered for 600 s, so that nothing runs twice; that of a
 * stranger for 15 s.
 */
START_TEST(connections_are_forgotten)
{
	struct h_raw one = h_raw_request(head, H_PING, 0x8500),
		     two = h_raw_request(head, H_PING, 0x8600), ack;
	struct spoof a = {.in = 0}, s = {.in = 0};
	uint8_t body[RXW_ACK_MAX_SIZE];
	uint64_t now, came = 3;
	unsigned calls = 2;

	h_open(&bed, &(struct h_options){.server = "listeners=1"});
	a.fd = h_raw_socket(&bed);
	s.fd = h_raw_socket(&bed);
	say(&a, &one);
	while (!a.types[RXW_DATA])
		look(&a, true);
	ack = ack_of(&one, RXW_ACK_DELAY, rxw_get32(packet + 16), 2, body);
	rxw_put32(body + 4, 2); /* firstPacket: all of it came */
	say(&a, &ack);
	/* Anybody could have guessed that serial; not so the one of the PING that it draws. */
	while (!a.questions)
		look(&a, true);
	ack = ack_of(&one, RXW_ACK_PING_RESPONSE, a.ping, 3, body);
	say(&a, &ack);
	h_wait_for(all_came, &came, "the proof");
	say(&s, &two);
	while (!s.types[RXW_DATA])
		look(&s, true);
	two.type = RXW_ABORT;
	two.body = "\0\0\0\7";
	two.size = 4;
	two.serial = 2;
	say(&s, &two);
	h_wait_for(rests, &calls, "two calls that are over");
	/* Nobody else looks at them: the clock is ours. */
	atomic_store(&bed.server->quit, true);
	rxw_shard_stop(&bed.server->shard[0]);
	now = rxw_now();
	ck_assert_uint_eq(forgotten_at(now), 2);
	ck_assert_uint_eq(forgotten_at(now + 14 * RXW_SEC), 2);
	ck_assert_uint_eq(forgotten_at(now + 16 * RXW_SEC), 1);
	ck_assert_uint_eq(forgotten_at(now + 590 * RXW_SEC), 1);
	ck_assert_uint_eq(forgotten_at(now + 601 * RXW_SEC), 0);
	close(a.fd);
	close(s.fd);
	h_close(&bed);
}
END_TEST

static void many(unsigned count, uint32_t cid)
{
	for (unsigned i = 0; i < count; i++)
		rxw_conn_unref(from("192.0.2.1", cid + 4 * i));
}

/* Of one address that proves itself: no stranger any more, remembered for longer. */
static void prove(uint32_t cid)
{
	struct rxw_connection *c = from("192.0.2.1", cid);

	rxw_peer_set_validated(c->p.peer, rxw_now());
	rxw_conn_unref(c);
}

/*
 * Many strangers are forgotten as soon as one; of the others each look takes a share, not the whole
 * table, and who looks seldom forgets as many as who looks often.
 */
START_TEST(many_are_forgotten)
{
	uint64_t now, left, before;
	unsigned looks = 0;

	h_open(&bed, &(struct h_options){.server = "listeners=1 unvalidated-total=100000 "
						   "unvalidated-per-host=100000"});
	atomic_store(&bed.server->quit, true);
	rxw_shard_stop(&bed.server->shard[0]);
	now = rxw_now();
	many(2000, 0x100000);
	for (unsigned ms = 0; ms < 14500; ms += 100)
		ck_assert_uint_eq(forgotten_at(now + ms * RXW_MS), 2000);
	/*
	 * A look a second is enough; no look takes long, and what it leaves is wanted after the
	 * next batch.
	 */
	now = rxw_now() + 16 * RXW_SEC;
	for (left = 2000; left; looks++) {
		before = left;
		left = forgotten_at(now);
		ck_assert_uint_le(before - left, 320);
		ck_assert_uint_ge(before - left, left ? 256 : 0);
	}
	ck_assert_uint_le(looks, 8);
	now = rxw_now();
	many(2000, 0x200000);
	prove(0x200000);
	ck_assert_uint_eq(forgotten_at(rxw_now() + 30 * RXW_SEC), 2000);
	for (unsigned ms = 0; ms < 599000; ms += 1000)
		ck_assert_uint_eq(forgotten_at(now + ms * RXW_MS), 2000);
	now = rxw_now() + 600 * RXW_SEC + RXW_MS;
	for (left = 2000, looks = 0; looks <= 150; looks++) {
		before = left;
		left = forgotten_at(now + looks * 100 * RXW_MS);
		ck_assert_uint_le(before - left, 128);
	}
	ck_assert_uint_eq(left, 0);
	many(2000, 0x300000);
	prove(0x300000);
	ck_assert_uint_eq(forgotten_at(rxw_now() + 30 * RXW_SEC), 2000);
	now = rxw_now() + 700 * RXW_SEC;
	for (left = 2000, looks = 0; left; looks++) {
		before = left;
		left = forgotten_at(now + looks * RXW_MS);
		ck_assert_uint_ge(before - left, left ? 64 : 0);
		ck_assert_uint_le(looks, 2000 / 64);
	}
	h_close(&bed);
}
END_TEST

/*
 * Strangers whose calls are at work keep their places, and yet a newcomer finds the one that may
 * go.
 */
START_TEST(room_beside_those_at_work)
{
	struct h_raw one = h_raw_request(head, H_WAIT, 0x8500);
	struct spoof s = {.in = 0};
	struct rxw_connection *c;
	uint32_t cid = 0x100000;
	uint64_t now;

	h_open(&bed, &(struct h_options){.server = "listeners=1 unvalidated-total=15"});
	s.fd = h_raw_socket(&bed);
	for (unsigned i = 0; i < 20; i++, one.cid += 4)
		say(&s, &one);
	/* Not before: a call that still waits for its worker may go. */
	h_gate_arrived(&bed, 20);
	atomic_store(&bed.server->quit, true);
	rxw_shard_stop(&bed.server->shard[0]);
	now = rxw_now() + 16 * RXW_SEC;
	/* Of this host twice as many may come. They said something just before they are looked at. */
	for (unsigned i = 0; i < 10; i++, cid += 4) {
		c = from("127.0.0.9", cid);
		ck_assert_ptr_nonnull(c);
		c->p.last_heard = now - RXW_SEC;
		rxw_conn_unref(c);
	}
	ck_assert_uint_eq(forgotten_at(now), 30);
	for (unsigned i = 0; i < 40; i++, cid += 4) {
		c = from("127.0.0.9", cid);
		ck_assert_ptr_nonnull(c);
		rxw_conn_unref(c);
	}
	ck_assert_uint_eq(h_stats(bed.server).connections_server, 30);
	ck_assert_uint_eq(h_stats(bed.server).calls_active, 20);
	close(s.fd);
	h_close(&bed);
}
END_TEST

/* Found, and taken out of the table before the packet is handled: no call is made any more. */
START_TEST(a_packet_for_one_that_is_gone)
{
	struct h_raw raw = h_raw_request(head, H_PING, 0x4480);
	struct rxw_path path = {.ifindex = 0};
	struct rxw_rxrun run = {.data = packet, .count = 1, .path = &path};
	struct rxw_connection *c;
	struct rxw_effects a;

	h_open(&bed, &(struct h_options){.server = "listeners=1"});
	c = from("192.0.2.1", raw.cid);
	ck_assert_ptr_nonnull(c);
	rxw_conn_remove(c);
	run.size = run.stride = run.last_size = (uint16_t)h_raw_encode(packet, &raw);
	ck_assert(rxw_header_get(packet, run.size, &run.head));
	rxw_effects_init(&a, &bed.server->shard[0], false);
	rxw_conn_lock(c);
	ck_assert_int_eq(rxw_pconn_input(&c->p, &run, &a.out), RXW_INPUT_DONE);
	ck_assert_ptr_null(c->p.channel[0]);
	ck_assert_uint_eq(a.out.ctl_count, 0);
	rxw_effects_collect(&a, false);
	rxw_conn_unlock(c);
	rxw_dispatch(&a);
	ck_assert_uint_eq(h_stats(bed.server).drops[RXW_DROP_STATE], 1);
	rxw_conn_unref(c);
	ck_assert_uint_eq(h_stats(bed.server).connections_server, 0);
	h_close(&bed);
}
END_TEST

/*
 * Ids that an attacker knows do not make chains long: so many connections of one id, and no more.
 */
START_TEST(one_id_from_many_addresses)
{
	unsigned made = 0;

	h_open(&bed, &(struct h_options){.server = "listeners=1"});
	for (unsigned i = 1; i < 100; i++) {
		struct rxw_connection *c;
		char host[20];

		snprintf(host, sizeof(host), "192.0.2.%u", i);
		c = from(host, 0x4440);
		if (c) {
			made++;
			rxw_conn_unref(c);
		}
	}
	ck_assert_uint_eq(made, 32);
	ck_assert_uint_eq(h_stats(bed.server).connections_server, 32);
	ck_assert_uint_eq(h_stats(bed.server).drops[RXW_DROP_LIMIT], 99 - 32);
	h_close(&bed);
}
END_TEST

TEST_MAIN_WITHIN(60, "conformance: strangers", three_times, small_calls_are_answered_at_once,
		 a_second_call_is_met_with_a_question, validate_first, strict_reach_for_our_clients,
		 guessing_is_told, late_packets_are_no_guesses, caps, connections_are_forgotten,
		 many_are_forgotten, room_beside_those_at_work, a_packet_for_one_that_is_gone,
		 one_id_from_many_addresses)
