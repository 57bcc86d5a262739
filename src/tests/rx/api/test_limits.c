/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Limits in bytes and numbers, each reached: excess data waits or is dropped, and calls continue.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/wire.h"
#include "harness.h"
#include "tests/main.h"

static struct h_bed bed;

/* ---- memory ---- */

#define EACH \
	100000 /* bytes of a request: they fit the sender's queue, so that writing does not block */

struct flood {
	unsigned connections, calls; /* calls of each connection */
	uint64_t limit;
	bool engine;                 /* the engine's limit applies, not that of queues */
};

static uint64_t used_by_queues(void)
{
	return counter_of(bed.server, "pinned_bytes");
}

/* Packets are dropped when memory is exhausted. The limit is never exceeded. */
static bool limit_is_reached(void *arg)
{
	const struct flood *f = arg;
	size_t peak;

	if (f->engine) {
		rxw_engine_memory(bed.server_engine, &peak);
		ck_assert_uint_le(peak, f->limit);
	} else {
		ck_assert_uint_le(used_by_queues(), f->limit);
	}
	return counter_of(bed.server, "drops.memory") > 0;
}

/* Requests pile up at handlers that do not read. Then all are read, with every byte correct. */
static void flood(const char *tunables, struct flood f)
{
	unsigned n = f.connections * f.calls;
	rxw_connection **connection = calloc(f.connections, sizeof(*connection));
	rxw_call **call = calloc(n, sizeof(*call));
	struct h_ask ask = { .op = H_WAIT, .bytes = EACH };
	enum rxw_origin origin;
	ssize_t n_read;
	int32_t code;
	uint8_t byte;

	h_open(&bed, &(struct h_options){ .server = tunables });
	for (unsigned i = 0; i < n; i++) {
		if (i % f.calls == 0)
			connection[i / f.calls] = h_connect(&bed, H_SERVICE);
		ask.seed = i;
		call[i] = h_begin(connection[i / f.calls], &ask);
		ck_assert_int_eq(h_put(&bed, call[i], &ask), 0);
		ck_assert_int_eq(rxw_call_send_end(call[i]), 0);
	}
	h_wait_for(limit_is_reached, &f, "the memory limit is reached");
	h_gate_open(&bed);
	for (unsigned i = 0; i < n; i++) {
		n_read = rxw_call_read(call[i], &byte, 1);
		code = rxw_call_end(call[i], 0, &origin);
		ck_assert_msg(!n_read && !code, "call %u: read %zd, code %d of %s", i, n_read, code,
			      origin == RXW_ORIGIN_PEER ? "the peer" : "ours");
		if (i % f.calls == f.calls - 1)
			rxw_connection_release(connection[i / f.calls]);
	}
	limit_is_reached(&f);
	h_good_call(&bed, connection[0] = h_connect(&bed, H_SERVICE),
		    &(struct h_ask){ .op = H_BOTH, .bytes = EACH });
	rxw_connection_release(connection[0]);
	h_close(&bed);
	free(call);
	free(connection);
}

START_TEST(memory_of_a_call)
{
	flood("call-memory=16384", (struct flood){ 1, 1, 16 << 10, false });
}
END_TEST

START_TEST(memory_of_a_connection)
{
	flood("call-memory=10240", (struct flood){ 1, 4, 40 << 10, false });
}
END_TEST

START_TEST(memory_of_a_peer)
{
	flood("peer-memory=80K", (struct flood){ 4, 2, 80 << 10, false });
}
END_TEST

START_TEST(memory_of_the_engine)
{
	flood("memory=4M listeners=1", (struct flood){ 60, 4, 4 << 20, true });
}
END_TEST

/* A sender's queue is limited too: the excess stays with the application. */
START_TEST(memory_of_a_sender)
{
	struct h_ask ask = { .op = H_WAIT, .bytes = 64 << 20 };
	struct rxw_call_options options = { .size = sizeof(options), .flags = RXW_CALL_NONBLOCK };
	rxw_connection *connection;
	static uint8_t data[65536];
	size_t peak, taken = 0;
	rxw_call *call;
	ssize_t n;

	h_open(&bed, &(struct h_options){ .client = "sendq-packets=128 memory=8M" });
	connection = h_connect(&bed, H_SERVICE);
	ck_assert_int_eq(rxw_call_begin(connection, &options, &call), 0);
	h_write_ask(call, &ask);
	while ((n = rxw_call_write(call, data, sizeof(data))) > 0)
		taken += (size_t)n;
	ck_assert_int_eq(n, -RXW_EAGAIN);
	ck_assert_uint_ge(taken, 100 * 1416);
	/* the queue, packets in flight, a partly filled buffer */
	ck_assert_uint_le(taken, 600 * 1416);
	rxw_engine_memory(bed.client_engine, &peak);
	ck_assert_uint_le(peak, 8 << 20);
	ck_assert_int_eq(rxw_call_end(call, 3, NULL), 3);
	rxw_connection_release(connection);
	h_close(&bed);
}
END_TEST

/* ---- unvalidated peers ---- */

/* Each drop is soon counted, either as a refusal or as over the limit. */
static bool refusals_are_counted(void *arg)
{
	struct counters s = counters_of(bed.server);

	(void)arg;
	return counter_in(&s, "drops.rate") + counter_in(&s, "stateless_aborts") ==
	       counter_in(&s, "drops.service");
}

/* Refusals are limited; requests to known services are not affected. */
START_TEST(abort_rate)
{
	uint8_t head[H_ASK_SIZE], packet[2048];
	struct h_raw raw = h_raw_request(head, H_PING, 0x4000);
	rxw_connection *connection;
	unsigned aborts = 0;
	uint64_t began, dropped;
	struct counters s;
	int fd;

	h_open(&bed, &(struct h_options){ .server = "abort-rate=5" });
	fd = h_raw_socket(&bed);
	raw.service = 4711;
	began = h_now_ms();
	do {
		h_raw_send(fd, &raw);
		raw.cid += 4;
		s = counters_of(bed.server);
		dropped = counter_in(&s, "drops.rate");
	} while (counter_in(&s, "drops.service") < 100);
	connection = h_connect(&bed, H_SERVICE);
	h_good_call(&bed, connection, &(struct h_ask){ .op = H_PING });
	rxw_connection_release(connection);
	/* The refusals allowed in a second are sent at once. */
	for (; aborts < 5; aborts++)
		ck_assert_int_gt(h_raw_receive(fd, RXW_ABORT, packet), 0);
	while (recv(fd, packet, sizeof(packet), MSG_DONTWAIT) > 0)
		aborts += packet[20] == RXW_ABORT;
	h_wait_for(refusals_are_counted, NULL, "all refusals are counted");
	s = counters_of(bed.server);
	ck_assert_uint_le(aborts, counter_in(&s, "stateless_aborts"));
	ck_assert_uint_le(counter_in(&s, "stateless_aborts"), 6 + (h_now_ms() - began) / 200);
	ck_assert_uint_ge(dropped, 1);
	close(fd);
	h_close(&bed);
}
END_TEST

/* First packets of new connections: their state is limited, with twice the limit for this host. */
START_TEST(flood_of_connections)
{
	uint8_t head[H_ASK_SIZE];
	struct h_raw raw = h_raw_request(head, H_PING, 0x10000);
	struct counters s;
	int fd;

	h_open(&bed, &(struct h_options){ .server = "unvalidated-max=100 listeners=1" });
	fd = h_raw_socket(&bed);
	raw.flags = RXW_CLIENT_INITIATED; /* never complete, so they stay */
	do {
		h_raw_send(fd, &raw);
		raw.cid += 4;
		s = counters_of(bed.server);
		ck_assert_uint_le(counter_in(&s, "connections_server"), 200);
	} while (counter_in(&s, "drops.limit") < 50 &&
		 counter_in(&s, "packets.received.data") < 20000);
	ck_assert_uint_ge(counter_in(&s, "drops.limit"), 50);
	close(fd);
	h_close(&bed);
}
END_TEST

static bool held_back(void *arg)
{
	(void)arg;
	return counter_of(bed.server, "drops.rate") > 0;
}

/* An unvalidated address gets at most three times the bytes it sent, PINGs included. */
START_TEST(three_times_until_validated)
{
	uint8_t head[H_ASK_SIZE], packet[2048];
	struct h_raw raw = h_raw_request(head, H_SOURCE, 0x5000);
	size_t asked = 0, bytes = 0;
	ssize_t n;
	int fd;

	h_open(&bed, NULL);
	fd = h_raw_socket(&bed);
	head[13] = 1; /* 64 KiB and more */
	h_raw_send(fd, &raw);
	h_wait_for(held_back, NULL, "a PING exceeded the limit");
	while ((n = recv(fd, packet, sizeof(packet), MSG_DONTWAIT)) > 0) {
		ck_assert_int_ge(n, RXW_HEADER_SIZE + 2);
		bytes += (size_t)n + 28;
		asked += packet[20] == RXW_ACK && (packet[21] & RXW_REQUEST_ACK);
	}
	ck_assert_uint_ge(asked, 1);
	ck_assert_uint_le(bytes, 3 * (RXW_HEADER_SIZE + H_ASK_SIZE + 28));
	ck_assert_uint_eq(counter_of(bed.server, "packets.sent.data"), 0);
	close(fd);
	h_close(&bed);
}
END_TEST

TEST_MAIN_WITHIN(60, "limits", memory_of_a_call, memory_of_a_connection, memory_of_a_peer,
	  memory_of_the_engine, memory_of_a_sender, abort_rate, flood_of_connections,
	  three_times_until_validated)
