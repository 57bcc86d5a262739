/* SPDX-License-Identifier: BSD-2-Clause */
/* Many connections: memory per idle connection, and no leaks after they come and go. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/wire.h"
#include "engine/objects.h"
#include "tests/main.h"
#include "tests/rx/api/harness.h"
#include "tests/rx/api/streams.h"
#include "tests/support/asked.h"

#define GROUP	 10 /* connections of one client */
#define CALLS	 10 /* per connection */
#define IDLE_MAX 1024
#define STRANGERS 256 /* limit of connections on the server; twice as many for this host */
#define CLASS_MAX (8 << 10) /* of a security class, at both ends of a connection */
#define LEAK_MAX (192 << 10) /* independent of their number */
/*
 * Receivers allocate their buffers before the measurement. With so little memory they come from the allocator, which is
 * measured; mapped ones would be subtracted although nobody has asked the allocator for them.
 */
#define FEW_BUFFERS "batch=4 listeners=1 memory=24M"
#define BUFFERS_MAX (2 * (4 + 1) * RXW_BUF_SIZE) /* and one outside the budget */
/* Tables grow in steps, which few connections do not even out. */
#define SLACK	    (h_small() ? 16u << 10 : 0u)

static struct h_bed bed;

/* Bytes in buffers in use. Idle buffers are freed first. */
static size_t in_buffers(void)
{
	size_t bytes;

	rxw_pool_trim(bed.server_engine->pool);
	bytes = rxw_pool_live(bed.server_engine->pool);
	if (bed.client_engine) {
		rxw_pool_trim(bed.client_engine->pool);
		bytes += rxw_pool_live(bed.client_engine->pool);
	}
	return bytes;
}

/* Bytes that the library has asked for, without buffers, since receivers hold a varying number. */
static size_t allocated(void)
{
	size_t buffers, all;

	/* A receiver may take or return a buffer of 16 KiB or more meanwhile. */
	do {
		buffers = in_buffers();
		all = asked_bytes();
	} while (in_buffers() != buffers);
	ck_assert_uint_ge(all, buffers);
	return all - buffers;
}

static unsigned connections(void)
{
	return h_small() ? 500 : 3000;
}

struct ended {
	uint64_t calls;
};

static bool all_ended(void *arg)
{
	const struct ended *e = arg;

	/* They are counted before they are freed. */
	return counter_of(bed.server, "calls_ended") >= e->calls &&
	       atomic_load(&bed.server->usage.calls) == 0;
}

/* The final ACK of a call. It names the serial of the reply, which validates the address. */
static void acknowledge(int fd, const struct rxw_header *reply, uint32_t serial)
{
	uint8_t body[RXW_ACK_MAX_SIZE], none[1];
	struct rxw_ack ack = { .first = 2, .previous = 1, .serial = reply->serial,
			       .reason = RXW_ACK_DELAY, .acks = none, .max_mtu = 1444,
			       .if_mtu = 1444, .rwind = 32, .jumbo_max = 1 };
	struct h_raw raw = { .epoch = reply->epoch, .cid = reply->cid, .call = reply->call,
			     .serial = serial, .type = RXW_ACK, .service = reply->service,
			     .flags = RXW_CLIENT_INITIATED | RXW_SLOW_START_OK, .body = body };

	raw.size = rxw_ack_put(body, &ack);
	h_raw_send(fd, &raw);
}

/* GROUP connections from `cid` on make one call each. */
static void round_of_calls(int fd, uint32_t cid, unsigned channel, uint32_t number, uint32_t serial)
{
	uint8_t head[H_ASK_SIZE], packet[2048];
	bool answered[GROUP] = { false };

	for (unsigned i = 0; i < GROUP; i++) {
		struct h_raw raw = h_raw_request(head, H_PING, (cid + i * 4) | channel);

		raw.service = H_INLINE;
		raw.call = number;
		raw.serial = serial;
		h_raw_send(fd, &raw);
	}
	/* On a busy machine a retransmitted reply may arrive after its round. */
	for (unsigned left = GROUP; left;) {
		ssize_t n = h_raw_receive(fd, RXW_DATA, packet);
		struct rxw_header h;

		ck_assert_int_gt(n, 0);
		ck_assert(rxw_header_get(packet, (size_t)n, &h));
		acknowledge(fd, &h, serial + 1);
		ck_assert_uint_lt((h.cid - cid) / 4, GROUP);
		if ((h.cid & 3) != channel || h.call != number || answered[(h.cid - cid) / 4])
			continue;
		answered[(h.cid - cid) / 4] = true;
		left--;
	}
}

/* `count` connections, GROUP of them per client. */
static void populate(unsigned count, unsigned channels, uint32_t cid)
{
	for (unsigned at = 0; at < count; at += GROUP, cid += GROUP * 4) {
		int fd = h_raw_socket(&bed);

		for (unsigned k = 0; k < CALLS; k++)
			round_of_calls(fd, cid, k % channels, 1 + k / channels, 1 + 2 * k);
		close(fd);
	}
}

static void idle_server(unsigned channels)
{
	unsigned n = connections();
	unsigned warm = n / 10; /* the receivers have allocated their buffers */
	struct ended e = { .calls = (uint64_t)warm * CALLS };
	size_t before, after;

	h_open(&bed, &(struct h_options){ .no_client = true, .both = FEW_BUFFERS });
	populate(warm, channels, 0x1000);
	h_wait_for(all_ended, &e, "the first calls to end");
	before = allocated();
	populate(n, channels, 0x100000);
	e.calls += (uint64_t)n * CALLS;
	h_wait_for(all_ended, &e, "all calls to end");
	after = allocated();
	ck_assert_uint_eq(counter_of(bed.server, "connections_server"), n + warm);
	/* A port may be reused. */
	ck_assert_uint_ge(counter_of(bed.server, "peers"), n / GROUP / 2);
	ck_assert_msg(after <= before + (size_t)n * IDLE_MAX + SLACK, "%zu bytes for each connection",
		      (after - before) / n);
	printf("idle after %d calls on %u channels: %zu bytes of the server for a connection\n",
	       CALLS, channels, after > before ? (after - before) / n : 0);
	h_close(&bed);
}

START_TEST(idle_with_one_channel)
{
	idle_server(1);
}
END_TEST

START_TEST(idle_with_four_channels)
{
	idle_server(4);
}
END_TEST

static void connect_all(rxw_connection **c, unsigned from, unsigned to)
{
	const struct h_ask ask = { .op = H_PING };
	struct ended e = { .calls = 4 * (uint64_t)to };

	for (unsigned i = from; i < to; i++) {
		c[i] = h_connect(&bed, H_INLINE);
		for (unsigned k = 0; k < 4; k++)
			h_good_call(&bed, c[i], &ask);
	}
	h_wait_for(all_ended, &e, "all calls to end");
}

START_TEST(idle_at_both_ends)
{
	unsigned n = connections() / 5, warm = n / 10;
	size_t most = 2 * IDLE_MAX + (getenv("RXW_TEST_CLASS") ? CLASS_MAX : 0);
	rxw_connection **c = calloc(n + warm, sizeof(c[0]));
	size_t before, after;

	ck_assert_ptr_nonnull(c);
	h_open(&bed, &(struct h_options){ .both = FEW_BUFFERS });
	connect_all(c, 0, warm); /* the receivers have allocated their buffers */
	before = allocated();
	connect_all(c, warm, n + warm);
	after = allocated();
	ck_assert_uint_eq(counter_of(bed.server, "connections_server"), n + warm);
	ck_assert_msg(after <= before + (size_t)n * most + SLACK, "%zu bytes for both ends",
		      (after - before) / n);
	printf("idle: %zu bytes for both ends of a connection\n",
	       after > before ? (after - before) / n : 0);
	for (unsigned i = 0; i < n + warm; i++)
		rxw_connection_release(c[i]);
	free(c);
	h_close(&bed);
}
END_TEST

/* Number of connections. RXW_TEST_CONNECTIONS=1000000 takes about a minute. */
static unsigned passing(void)
{
	const char *text = getenv("RXW_TEST_CONNECTIONS");
	unsigned n = text ? (unsigned)strtoul(text, NULL, 10) : 0;

	return n >= 1000 ? n : h_small() ? 2000 : 20000;
}

/*
 * Each makes a call and is released. The server limits unvalidated connections, may ask later peers
 * to validate their address, and keeps validated connections up to a limit.
 */
static void pass(unsigned count)
{
	const struct h_ask ask = { .op = H_PING };

	for (unsigned i = 0; i < count; i++) {
		rxw_connection *c = h_connect(&bed, H_INLINE);

		h_good_call(&bed, c, &ask);
		rxw_connection_release(c);
	}
}

static uint32_t bound, kept_max; /* connections of validated addresses; all connections */

/* Released connections are freed when their timer wheel slot expires. */
static bool settled(void *arg)
{
	(void)arg;
	return !atomic_load(&bed.client->usage.connections) &&
	       atomic_load(&bed.server->usage.connections) <= kept_max &&
	       atomic_load(&bed.server->admit.validated) <= bound;
}

START_TEST(come_and_go)
{
	unsigned n = passing(), first = n / 2;
	ssize_t before, after, more;
	struct counters s;
	char server[128];

	bound = n / 3;
	kept_max = bound + 2 * STRANGERS;
	snprintf(server, sizeof(server), "unvalidated-max=%u connections-max=%u", STRANGERS, bound);
	h_open(&bed, &(struct h_options){ .both = FEW_BUFFERS, .server = server });
	pass(first);
	h_wait_for(settled, NULL, "connections to go");
	more = -(ssize_t)atomic_load(&bed.server->usage.connections);
	before = (ssize_t)allocated();
	pass(n - first);
	h_wait_for(settled, NULL, "connections to go");
	more += atomic_load(&bed.server->usage.connections);
	after = (ssize_t)allocated();
	s = counters_of(bed.server);
	ck_assert_uint_ge(counter_in(&s, "calls_started"), n);
	/* Maximum held by the receivers. */
	ck_assert_uint_le(in_buffers(), BUFFERS_MAX);
	/* Some unvalidated connections may have expired meanwhile. */
	more *= more > 0 ? IDLE_MAX : IDLE_MAX / 2;
	ck_assert_msg(after - before <= more + LEAK_MAX, "%u connections left %zd bytes, not %zd",
		      n - first, after - before, more);
	printf("%u connections came and went (%llu asked, %llu evicted): %+zd bytes since the %u-th\n",
	       n, (unsigned long long)counter_in(&s, "cookies_sent"),
	       (unsigned long long)counter_in(&s, "connections_evicted"),
	       after - before, first);
	h_close(&bed);
}
END_TEST

TEST_MAIN_WITHIN(300, "many", idle_with_one_channel, idle_with_four_channels,
	  idle_at_both_ends, come_and_go)
