/* SPDX-License-Identifier: BSD-2-Clause */
/* Admission: a limit on unvalidated peers, the PING for a second call, expiry of idle ones. */
#include <stdio.h>
#include <unistd.h>

#include "arrival.h"
#include "engine/receive/lifecycle.h"
#include "engine/lock.h"
#include "engine/receive/batch.h"
#include "tests/main.h"

static struct h_bed bed;
static uint8_t head[H_ASK_SIZE], packet[2048];

/* --- a client on a plain socket: it sends and receives, but does not acknowledge --- */

struct spoof {
	int fd;
	unsigned pings; /* PINGs received */
	uint32_t ping;	    /* serial of the latest PING */
	unsigned types[14];
};

static void look(struct spoof *s)
{
	ssize_t n = recv(s->fd, packet, sizeof(packet), 0);

	ck_assert_int_ge(n, RXW_HEADER_SIZE);
	s->types[packet[20] % 14]++;
	if (packet[20] == RXW_ACK && packet[RXW_HEADER_SIZE + 16] == RXW_ACK_PING) {
		s->pings++;
		s->ping = rxw_get32(packet + 16);
	}
}

static bool all_came(void *arg)
{
	uint64_t *least = arg;
	struct counters s = counters_of(bed.server);

	return counters_sum(&s, "packets.received.") >= *least;
}

/* An ACK of `call` with the serial `own`, in answer to the packet `serial`. */
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

/* --- packets from other hosts --- */

static struct rxw_connection *from(const char *host, uint32_t cid)
{
	return arrival_from(&bed, host, ARRIVAL_LOCAL, cid);
}

/* The verdict of the connection on a packet like `raw` that arrives now. */
static bool watched(struct rxw_connection *c, const struct h_raw *raw, struct rxw_rxrun *run)
{
	bool asks;

	*run = (struct rxw_rxrun){.data = packet, .count = 1, .path = &c->p.path};
	run->size = run->stride = run->last_size = (uint16_t)h_raw_encode(packet, raw);
	ck_assert(rxw_header_get(packet, run->size, &run->head));
	if (raw->type == RXW_ACK)
		ck_assert(rxw_ack_get(packet + RXW_HEADER_SIZE, run->size - RXW_HEADER_SIZE, 0,
				      &run->ack));
	rxw_conn_lock(c);
	asks = rxw_unvalidated_needs_cookie(c, run, rxw_now());
	rxw_unvalidated_recheck(c, rxw_now());
	rxw_conn_unlock(c);
	return asks;
}

/* The serial of the cookie PING that is sent, or 0. */
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
 * A client that makes small calls only is asked to validate its address once, with its second call,
 * within the amplification limit left by the first. Addresses of this host are exempt.
 */
START_TEST(second_call_gets_a_ping)
{
	struct h_raw raw = h_raw_request(head, H_PING, 0x100000), ack;
	uint8_t body[RXW_ACK_MAX_SIZE];
	struct rxw_connection *c, *here;
	struct rxw_rxrun run;
	uint32_t serial;

	h_open(&bed, &(struct h_options){.server = "listeners=1"});
	c = from("192.0.2.1", 0x100000);
	here = arrival_from(&bed, ARRIVAL_LOCAL, ARRIVAL_LOCAL, 0x100000);
	rxw_peer_heard(here->p.peer, 300, 1, rxw_now());
	ck_assert(!watched(c, &raw, &run));
	raw.call = 2;
	ck_assert(!watched(here, &raw, &run));
	ck_assert(!watched(c, &raw, &run)); /* no packet arrived to pay for it */
	rxw_peer_heard(c->p.peer, 100, 1, rxw_now());
	ck_assert(watched(c, &raw, &run));
	serial = asked(c, &run);
	ck_assert_uint_ge(serial, 0x80000000u); /* a cookie, not a serial of the connection */
	rxw_peer_heard(c->p.peer, 300, 1, rxw_now());
	ck_assert(watched(c, &raw, &run));
	ck_assert_uint_eq(asked(c, &run), 0); /* once per four seconds */
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
	ck_assert_uint_eq(counter_of(bed.server, "cookies_sent"), 1);
	ck_assert_uint_eq(counter_of(bed.server, "cookies_returned"), 1);
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
	struct counters s;
	uint32_t cid = 0x100000;

	h_open(&bed, &(struct h_options){.server = "unvalidated-max=100 listeners=1"});
	/* Above a quarter of the limit: two packets each. */
	for (unsigned i = 0; i < 80; i++, cid += 4) {
		c = from("192.0.2.1", cid);
		ck_assert_ptr_nonnull(c);
		ck_assert_int_eq(c->p.crowded, i >= 25);
		ck_assert(!c->p.validate_first);
		rxw_conn_unref(c);
	}
	/* Addresses of this host have twice the limit, and full queues. */
	for (unsigned i = 0; i < 120; i++, cid += 4) {
		c = i % 2 ? from("127.0.0.9", cid)
			  : arrival_from(&bed, ARRIVAL_LOCAL, ARRIVAL_LOCAL, cid);
		ck_assert_ptr_nonnull(c);
		ck_assert(!c->p.crowded);
		rxw_conn_unref(c);
	}
	s = counters_of(bed.server);
	ck_assert_uint_eq(counter_in(&s, "connections_server"), 200);
	ck_assert_uint_eq(counter_in(&s, "drops.limit"), 0);
	/* At the limit no state is made. */
	ck_assert_ptr_null(from("203.0.113.5", cid));
	ck_assert_ptr_null(from("127.0.0.9", cid));
	s = counters_of(bed.server);
	ck_assert_uint_eq(counter_in(&s, "connections_server"), 200);
	ck_assert_uint_eq(counter_in(&s, "drops.limit"), 2);
	h_close(&bed);
}
END_TEST

static bool rests(void *arg)
{
	const unsigned *calls = arg;
	struct counters s = counters_of(bed.server);

	return !counter_in(&s, "calls_active") && counter_in(&s, "calls_started") >= *calls;
}

static uint64_t forgotten_at(uint64_t now)
{
	rxw_shard_reap(&bed.server->shard[0], now);
	return counter_of(bed.server, "connections_server");
}

/* The first call of an address, which answers the PING. */
static void prove_address(struct spoof *a, const struct h_raw *call)
{
	uint8_t body[RXW_ACK_MAX_SIZE];
	uint64_t came = 3;
	struct h_raw ack;

	h_raw_send(a->fd, call);
	while (!a->types[RXW_DATA])
		look(a);
	ack = ack_of(call, RXW_ACK_DELAY, rxw_get32(packet + 16), 2, body);
	rxw_put32(body + 4, 2); /* firstPacket: everything was received */
	h_raw_send(a->fd, &ack);
	/* That serial is easy to guess. The serial of the PING sent in response is not. */
	while (!a->pings)
		look(a);
	ack = ack_of(call, RXW_ACK_PING_RESPONSE, a->ping, 3, body);
	h_raw_send(a->fd, &ack);
	h_wait_for(all_came, &came, "the proof");
}

/*
 * An idle connection is kept for 600 s, to prevent repeated execution. That of an unvalidated peer
 * is kept for 15 s.
 */
START_TEST(connections_are_forgotten)
{
	struct h_raw one = h_raw_request(head, H_PING, 0x8500),
		     two = h_raw_request(head, H_PING, 0x8600);
	struct spoof a = {.ping = 0}, s = {.ping = 0};
	uint64_t now;
	unsigned calls = 2;

	h_open(&bed, &(struct h_options){.server = "listeners=1"});
	a.fd = h_raw_socket(&bed);
	s.fd = h_raw_socket(&bed);
	prove_address(&a, &one);
	h_raw_send(s.fd, &two);
	while (!s.types[RXW_DATA])
		look(&s);
	two.type = RXW_ABORT;
	two.body = "\0\0\0\7";
	two.size = 4;
	two.serial = 2;
	h_raw_send(s.fd, &two);
	h_wait_for(rests, &calls, "two calls that are over");
	/* Only this test runs the eviction, with its own clock. */
	atomic_store(&bed.server->life.quit, true);
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

/* The connection of an address that validates itself is kept longer. */
static void prove(uint32_t cid)
{
	struct rxw_connection *c = from("192.0.2.1", cid);

	rxw_peer_set_validated(c->p.peer, rxw_now());
	rxw_conn_unref(c);
}

/*
 * Many unvalidated connections expire as fast as one. Each scan covers a share of the table, and
 * infrequent scans evict as many connections as frequent ones.
 */
START_TEST(many_are_forgotten)
{
	uint64_t now, left, before;
	unsigned looks = 0;

	h_open(&bed, &(struct h_options){.server = "listeners=1 unvalidated-max=100000"});
	atomic_store(&bed.server->life.quit, true);
	rxw_shard_stop(&bed.server->shard[0]);
	now = rxw_now();
	many(2000, 0x100000);
	for (unsigned ms = 0; ms < 14500; ms += 100)
		ck_assert_uint_eq(forgotten_at(now + ms * RXW_MS), 2000);
	/* Each scan is as short as for other connections. The remainder is due after the next batch. */
	now = rxw_now() + 16 * RXW_SEC;
	for (left = 2000; left; looks++) {
		before = left;
		left = forgotten_at(now);
		ck_assert_uint_le(before - left, 64);
		ck_assert_uint_ge(before - left, left ? 64 : 0);
	}
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
 * At the limit a connection whose call is still running keeps its place. The places of silent ones
 * are free after 15 s.
 */
START_TEST(room_beside_those_at_work)
{
	struct h_raw one = h_raw_request(head, H_WAIT, 0x8500);
	struct spoof s = {.ping = 0};
	uint32_t cid = 0x100000;

	h_open(&bed, &(struct h_options){.server = "listeners=1 unvalidated-max=15"});
	s.fd = h_raw_socket(&bed);
	for (unsigned i = 0; i < 20; i++, one.cid += 4)
		h_raw_send(s.fd, &one);
	h_gate_arrived(&bed, 20);
	atomic_store(&bed.server->life.quit, true);
	rxw_shard_stop(&bed.server->shard[0]);
	for (unsigned i = 0; i < 10; i++, cid += 4)
		rxw_conn_unref(from("127.0.0.9", cid));
	ck_assert_ptr_null(from("127.0.0.9", cid));
	ck_assert_uint_eq(forgotten_at(rxw_now() + 16 * RXW_SEC), 20);
	ck_assert_uint_eq(counter_of(bed.server, "calls_active"), 20);
	for (unsigned i = 0; i < 10; i++, cid += 4)
		rxw_conn_unref(from("127.0.0.9", cid));
	ck_assert_uint_eq(counter_of(bed.server, "connections_server"), 30);
	close(s.fd);
	h_close(&bed);
}
END_TEST

#define PLACES 16u

static bool places_taken(void *arg)
{
	(void)arg;
	return counter_of(bed.server, "connections_server") > PLACES &&
	       counter_of(bed.server, "drops.limit") > 0;
}

/* Calls whose first packet never comes do not keep others from connections, and end themselves. */
START_TEST(half_open_calls_give_way)
{
	struct h_raw one = h_raw_request(head, H_PING, 0x8500);
	struct rxw_shard *s;
	struct spoof a = {.ping = 0};
	uint64_t now;

	h_open(&bed, &(struct h_options){.server = "listeners=1 connections-max=16"});
	s = &bed.server->shard[0];
	a.fd = h_raw_socket(&bed);
	prove_address(&a, &one);
	one.seq = 2;
	for (unsigned i = 0; i < 2 * PLACES; i++) {
		one.cid += 4;
		h_raw_send(a.fd, &one);
	}
	h_wait_for(places_taken, NULL, "the limit");
	atomic_store(&bed.server->life.quit, true);
	rxw_shard_stop(s);
	now = rxw_now();
	ck_assert(rxw_must_evict(bed.server));
	ck_assert(rxw_room_for_connection(s, now + 2 * RXW_SEC));
	ck_assert(!rxw_must_evict(bed.server));
	ck_assert_uint_le(atomic_load(&bed.server->usage.calls), PLACES / 4);
	/* Without that reason they stay. */
	rxw_evict_idle(s, now + 9 * RXW_SEC);
	ck_assert_uint_eq(atomic_load(&bed.server->usage.calls), PLACES / 4);
	close(a.fd);
	h_close(&bed);
}
END_TEST

TEST_MAIN_WITHIN(60, "admission", second_call_gets_a_ping, caps,
		 connections_are_forgotten, many_are_forgotten, room_beside_those_at_work,
		 half_open_calls_give_way)
