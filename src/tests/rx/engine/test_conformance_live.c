/* SPDX-License-Identifier: BSD-2-Clause */
/* At a live endpoint: who is answered, from where, with what (doc/conformance.md). */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/objects.h"
#include "tests/rx/api/harness.h"
#include "tests/rx/api/streams.h"

static struct h_bed bed;
static uint8_t head[H_ASK_SIZE], packet[20000];

/* Something that the endpoint counts, and that comes to at least this. */
struct expected {
	rxw_endpoint *endpoint;
	uint64_t (*value)(const struct rxw_stats *s, int which);
	int which;
	uint64_t least;
};

static bool reached(void *arg)
{
	const struct expected *e = arg;
	struct rxw_stats s = h_stats(e->endpoint);

	return e->value(&s, e->which) >= e->least;
}

static uint64_t drops_of(const struct rxw_stats *s, int which)
{
	return s->drops[which];
}

static uint64_t received(const struct rxw_stats *s, int which)
{
	return s->packets_received[which];
}

static void wait_drops(enum rxw_drop cause, uint64_t least)
{
	struct expected e = {bed.server, drops_of, (int)cause, least};

	h_wait_for(reached, &e, rxw_drop_name(cause));
}

static ssize_t take(int fd, unsigned type)
{
	static uint8_t small[2048];
	ssize_t n = h_raw_receive(fd, type, small);

	ck_assert_int_ge(n, RXW_HEADER_SIZE);
	memcpy(packet, small, (size_t)n);
	return n;
}

static void pong(int fd, uint32_t cid, uint32_t call)
{
	ssize_t n = take(fd, RXW_DATA);

	ck_assert_int_eq(n, RXW_HEADER_SIZE + 4);
	ck_assert_uint_eq(rxw_get32(packet + 4), cid);
	ck_assert_uint_eq(rxw_get32(packet + 8), call);
	ck_assert(!memcmp(packet + RXW_HEADER_SIZE, "pong", 4));
}

/* An ACK by hand: reason, firstPacket, serial. */
static void answer(int fd, const struct h_raw *call, unsigned reason, uint32_t first,
		   uint32_t serial, uint32_t own)
{
	uint8_t body[RXW_ACK_MAX_SIZE];
	struct rxw_ack ack = {.first = first,
			      .previous = first - 1,
			      .serial = serial,
			      .reason = (uint8_t)reason,
			      .acks = body,
			      .max_mtu = 16384,
			      .if_mtu = 1444,
			      .rwind = 32,
			      .jumbo_max = 1};
	struct h_raw raw = *call;

	raw.type = RXW_ACK;
	raw.flags = RXW_CLIENT_INITIATED | RXW_SLOW_START_OK;
	raw.seq = 0;
	raw.serial = own;
	raw.body = body;
	raw.size = rxw_ack_put(body, &ack);
	h_raw_send(fd, &raw);
}

/* --- packets that find no connection --- */

START_TEST(only_data_draws_an_answer)
{
	struct h_raw raw = h_raw_request(head, H_PING, 0x7000);
	uint64_t sent = 0;
	ssize_t n;
	int fd;

	h_open(&bed, NULL);
	fd = h_raw_socket(&bed);
	raw.service = 4711;
	for (unsigned type = 0; type < 256; type++) {
		if (type == RXW_DATA || type == RXW_DEBUG || type == RXW_VERSION)
			continue;
		raw.type = (uint8_t)type;
		raw.call = type % 2;
		h_raw_send(fd, &raw);
		wait_drops(RXW_DROP_NO_CONNECTION, ++sent);
	}
	raw.type = RXW_DATA;
	raw.flags = 0; /* to a client half that is not there */
	h_raw_send(fd, &raw);
	wait_drops(RXW_DROP_NO_CONNECTION, ++sent);
	/* The first thing that comes back is the answer to this. */
	raw.flags = RXW_CLIENT_INITIATED | RXW_LAST_PACKET | RXW_REQUEST_ACK;
	raw.call = 9;
	raw.serial = 77;
	raw.security = 3;
	h_raw_send(fd, &raw);
	n = recv(fd, packet, sizeof(packet), 0);
	ck_assert_int_eq(n, 32);
	ck_assert_uint_eq(rxw_get32(packet), raw.epoch);
	ck_assert_uint_eq(rxw_get32(packet + 4), raw.cid);
	ck_assert_uint_eq(rxw_get32(packet + 8), 9);
	ck_assert_uint_eq(rxw_get32(packet + 12), 0);
	ck_assert_uint_eq(rxw_get32(packet + 16), 0);
	ck_assert_uint_eq(packet[20], RXW_ABORT);
	ck_assert_uint_eq(packet[21], 0);
	ck_assert_uint_eq(packet[22], 0);
	ck_assert_uint_eq(packet[23], 3);
	ck_assert_uint_eq(rxw_get16(packet + 24), 0);
	ck_assert_uint_eq(rxw_get16(packet + 26), 4711);
	ck_assert_int_eq((int32_t)rxw_get32(packet + 28), RXW_INVALID_OPERATION);
	ck_assert_uint_eq(h_stats(bed.server).stateless_aborts, 1);
	ck_assert_uint_eq(h_stats(bed.server).connections_server, 0);
	close(fd);
	h_close(&bed);
}
END_TEST

/* --- calls --- */

START_TEST(busy_while_a_handler_works)
{
	struct h_raw raw = h_raw_request(head, H_WAIT, 0x7100);
	ssize_t n;
	int fd;

	h_open(&bed, NULL);
	fd = h_raw_socket(&bed);
	h_raw_send(fd, &raw);
	h_gate_arrived(&bed, 1);
	raw = h_raw_request(head, H_PING, 0x7100);
	raw.call = 2;
	h_raw_send(fd, &raw);
	n = take(fd, RXW_BUSY);
	ck_assert_int_eq(n, RXW_HEADER_SIZE);
	ck_assert_uint_eq(rxw_get32(packet + 8), 2);
	h_raw_send(fd, &raw); /* as a client does, later: the old call is over */
	pong(fd, 0x7100, 2);
	ck_assert_uint_eq(h_stats(bed.server).calls_started, 2);
	close(fd);
	h_close(&bed);
}
END_TEST

/* A request that waits for a worker is given up with its call number: no worker wakes for it. */
START_TEST(a_waiting_call_is_replaced)
{
	struct h_raw raw = h_raw_request(head, H_WAIT, 0x7200);
	struct expected e;
	int fd;

	h_open(&bed, NULL);
	e = (struct expected){bed.server, received, RXW_DATA, 3};
	fd = h_raw_socket(&bed);
	raw.service = H_SECOND; /* one worker */
	h_raw_send(fd, &raw);
	h_gate_arrived(&bed, 1);
	raw = h_raw_request(head, H_PING, 0x7300);
	raw.service = H_SECOND;
	h_raw_send(fd, &raw);
	raw.call = 5;
	h_raw_send(fd, &raw);
	h_wait_for(reached, &e, "three requests");
	h_gate_open(&bed);
	for (;;) {
		take(fd, RXW_DATA);
		if (rxw_get32(packet + 4) == 0x7300)
			break;
	}
	ck_assert_uint_eq(rxw_get32(packet + 8), 5);
	ck_assert_uint_eq(h_stats(bed.server).calls_started, 2);
	close(fd);
	h_close(&bed);
}
END_TEST

/* Both halves of a connection in one process, on one socket. */
START_TEST(talking_to_oneself)
{
	rxw_connection *connection;

	h_open(&bed, &(struct h_options){.no_client = true});
	ck_assert_int_eq(rxw_connection_create(bed.server, (struct sockaddr *)&bed.address,
					       bed.address_len, H_SERVICE, NULL, &connection),
			 0);
	for (int i = 0; i < 5; i++)
		h_good_call(&bed, connection, &(struct h_ask){.op = H_BOTH, .bytes = 200000});
	ck_assert_uint_eq(h_stats(bed.server).connections_server, 1);
	rxw_connection_release(connection);
	h_close(&bed);
}
END_TEST

/* --- addresses --- */

/*
 * The connection is bound to the port it came from; a new port is served from the next call on,
 * however often it changes.
 */
START_TEST(a_port_that_changes)
{
	struct h_raw raw = h_raw_request(head, H_PING, 0x7400);
	int fd[3];

	h_open(&bed, NULL);
	for (int i = 0; i < 3; i++)
		fd[i] = h_raw_socket(&bed);
	h_raw_send(fd[0], &raw);
	pong(fd[0], 0x7400, 1);
	for (uint32_t i = 1; i < 3; i++) {
		raw.call = i;
		h_raw_send(fd[i], &raw); /* known from another port: it is not run twice */
		wait_drops(RXW_DROP_ADDRESS, i);
		raw.call = i + 1;
		h_raw_send(fd[i], &raw);
		pong(fd[i], 0x7400, i + 1);
	}
	ck_assert_uint_eq(h_stats(bed.server).calls_started, 3);
	for (int i = 0; i < 3; i++)
		close(fd[i]);
	h_close(&bed);
}
END_TEST

/*
 * With an epoch of the old form the address is a part of the name: another port is another client.
 */
START_TEST(epochs_of_the_old_form)
{
	struct h_raw raw = h_raw_request(head, H_PING, 0x7500);
	int one, two;

	h_open(&bed, NULL);
	one = h_raw_socket(&bed);
	two = h_raw_socket(&bed);
	raw.epoch = 0x12345678;
	h_raw_send(one, &raw);
	pong(one, 0x7500, 1);
	h_raw_send(two, &raw);
	pong(two, 0x7500, 1);
	ck_assert_uint_eq(h_stats(bed.server).connections_server, 2);
	close(one);
	close(two);
	h_close(&bed);
}
END_TEST

static int open_socket(const char *host, uint16_t port, struct sockaddr_in *at)
{
	struct timeval patience = {.tv_sec = 10};
	socklen_t length = sizeof(*at);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	*at = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
	inet_pton(AF_INET, host, &at->sin_addr);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)at, length), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)at, &length), 0);
	ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
	return fd;
}

/* An endpoint on all addresses, and a service that is the harness's. */
static rxw_endpoint *on_any_address(struct sockaddr_in *to)
{
	struct sockaddr_in any = {.sin_family = AF_INET};
	struct rxw_endpoint_options o = {.size = sizeof(o),
					 .address = (struct sockaddr *)&any,
					 .address_len = sizeof(any),
					 .server = 1,
					 .version_text = "any"};
	struct rxw_service_options s = {.size = sizeof(s),
					.id = H_SERVICE,
					.name = "any",
					.handler = h_serve,
					.context = &bed};
	struct sockaddr_storage bound;
	socklen_t length = sizeof(bound);
	rxw_endpoint *endpoint;
	rxw_service *service;

	ck_assert_int_eq(rxw_endpoint_create(bed.server_engine, &o, &endpoint), 0);
	ck_assert_int_eq(rxw_service_add(endpoint, &s, &service), 0);
	ck_assert_int_eq(rxw_endpoint_address(endpoint, &bound, &length), 0);
	*to = *(struct sockaddr_in *)&bound;
	return endpoint;
}

static void ask(int fd, const struct sockaddr_in *to, const struct h_raw *raw)
{
	uint8_t bytes[2048];
	size_t size = h_raw_encode(bytes, raw);

	ck_assert_int_eq(sendto(fd, bytes, size, 0, (const struct sockaddr *)to, sizeof(*to)),
			 (ssize_t)size);
}

/* The next packet that is not an ACK comes from where the question went. */
static void answered(int fd, const struct sockaddr_in *to, unsigned type)
{
	struct sockaddr_in from;
	socklen_t length;

	do {
		length = sizeof(from);
		ck_assert_int_ge(
			recvfrom(fd, packet, sizeof(packet), 0, (struct sockaddr *)&from, &length),
			RXW_HEADER_SIZE);
		ck_assert_uint_eq(from.sin_addr.s_addr, to->sin_addr.s_addr);
		ck_assert_uint_eq(from.sin_port, to->sin_port);
	} while (packet[20] != type && packet[20] == RXW_ACK);
	ck_assert_uint_eq(packet[20], type);
}

START_TEST(answers_leave_from_the_address_asked)
{
	static const char *const hosts[] = {"127.0.0.2", "127.0.0.1", "127.1.2.3"};
	struct sockaddr_in to, own;
	rxw_endpoint *endpoint;
	int fd;

	h_open(&bed, &(struct h_options){.server = "listeners=2"});
	endpoint = on_any_address(&to);
	fd = open_socket("127.0.0.1", 0, &own);
	for (uint32_t i = 0; i < 3; i++) {
		struct h_raw raw = h_raw_request(head, H_PING, 0x7600 + 4 * i);

		inet_pton(AF_INET, hosts[i], &to.sin_addr);
		ask(fd, &to, &raw); /* by a handler's thread */
		answered(fd, &to, RXW_DATA);
		ask(fd, &to, &raw); /* DUPLICATE */
		answered(fd, &to, RXW_ACK);
		raw.type = RXW_VERSION;
		ask(fd, &to, &raw);
		answered(fd, &to, RXW_VERSION);
		raw = h_raw_request(head, H_PING, 0x7600 + 4 * i);
		raw.service = 9;
		raw.cid += 0x10000;
		ask(fd, &to, &raw);
		answered(fd, &to, RXW_ABORT);
		raw = h_raw_request(head, H_ABORT, 0x7700 + 4 * i);
		h_encode_ask(head, &(struct h_ask){.op = H_ABORT, .code = 99});
		ask(fd, &to, &raw);
		answered(fd, &to, RXW_ABORT);
		ck_assert_int_eq((int32_t)rxw_get32(packet + 28), 99);
	}
	close(fd);
	ck_assert_int_eq(rxw_endpoint_destroy(endpoint), 0);
	h_close(&bed);
}
END_TEST

/*
 * A server with several addresses may answer from another one, of the same port; another port is
 * another server.
 */
START_TEST(a_server_of_several_addresses)
{
	struct sockaddr_in one, two, three, from;
	socklen_t length = sizeof(from);
	int fd = open_socket("127.0.0.1", 0, &one),
	    other = open_socket("127.0.0.3", ntohs(one.sin_port), &two);
	int wrong = open_socket("127.0.0.1", 0, &three);
	struct rxw_header h;
	struct expected e;
	rxw_connection *connection;
	rxw_call *call;
	char text[4];

	h_open(&bed, NULL);
	e = (struct expected){bed.client, drops_of, RXW_DROP_NO_CONNECTION, 1};
	ck_assert_int_eq(rxw_connection_create(bed.client, (struct sockaddr *)&one, sizeof(one),
					       H_SERVICE, NULL, &connection),
			 0);
	call = h_begin(connection, &(struct h_ask){.op = H_PING});
	ck_assert_int_eq(rxw_call_send_end(call), 0);
	ck_assert_int_ge(recvfrom(fd, packet, sizeof(packet), 0, (struct sockaddr *)&from, &length),
			 RXW_HEADER_SIZE);
	ck_assert(rxw_header_get(packet, RXW_HEADER_SIZE, &h));
	h.flags = RXW_LAST_PACKET;
	h.serial = 1;
	h.seq = 1;
	rxw_header_put(packet, &h);
	memcpy(packet + RXW_HEADER_SIZE, "evil", 4);
	ck_assert_int_eq(sendto(wrong, packet, 32, 0, (struct sockaddr *)&from, length), 32);
	h_wait_for(reached, &e, "an answer from a port that was not asked");
	memcpy(packet + RXW_HEADER_SIZE, "good", 4);
	ck_assert_int_eq(sendto(other, packet, 32, 0, (struct sockaddr *)&from, length), 32);
	ck_assert_int_eq(rxw_call_read(call, text, 4), 4);
	ck_assert(!memcmp(text, "good", 4));
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	rxw_connection_release(connection);
	/* What the client says goes to the address it chose. */
	do
		ck_assert_int_ge(recv(fd, packet, sizeof(packet), 0), RXW_HEADER_SIZE);
	while (packet[20] != RXW_ACK);
	ck_assert_int_lt(recv(other, packet, sizeof(packet), MSG_DONTWAIT), 0);
	close(fd);
	close(other);
	close(wrong);
	h_close(&bed);
}
END_TEST

/* --- identifiers --- */

static int by_name(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/*
 * A server remembers a connection long after its client gave it back: what came first on another of
 * its name would be a packet of an old call, and be answered so for ever.
 */
START_TEST(no_name_comes_twice)
{
	enum { N = 200000 }; /* of so many by chance 18 would be twins */
	uint64_t *name = malloc(N * sizeof(*name));
	uint32_t epoch, cid, before;
	struct rxw_engine *e;

	ck_assert_ptr_nonnull(name);
	ck_assert_int_eq(rxw_engine_create(NULL, &e), 0);
	for (int i = 0; i < N; i++) {
		if (rxw_engine_name(e, &epoch, &cid) || !cid || cid & 3)
			ck_abort_msg("the %d-th name is %08x %08x", i, epoch, cid);
		name[i] = (uint64_t)epoch << 32 | cid;
	}
	qsort(name, N, sizeof(*name), by_name);
	for (int i = 1; i < N; i++)
		if (name[i] == name[i - 1])
			ck_abort_msg("%08x comes twice", (uint32_t)name[i]);
	/* A worn epoch is laid aside (1.6). */
	before = epoch;
	e->named = RXW_NAMES_MAX - 1;
	ck_assert_int_eq(rxw_engine_name(e, &epoch, &cid), 0);
	ck_assert_uint_eq(epoch, before);
	ck_assert_int_eq(rxw_engine_name(e, &epoch, &cid), 0);
	ck_assert_uint_ne(epoch, before);
	ck_assert_uint_eq(epoch >> 30, 2);
	ck_assert_int_eq(rxw_engine_name(e, &before, &cid), 0);
	ck_assert_uint_eq(epoch, before);
	ck_assert_int_eq(rxw_engine_destroy(e), 0);
	free(name);
}
END_TEST

/* Epochs and connection ids as a server sees them: random, bit 31 set, channel bits 0. */
START_TEST(names_are_random)
{
	struct sockaddr_in at;
	uint32_t cid[20], epoch[2] = {0, 0}, mean = 0;
	int fd = open_socket("127.0.0.1", 0, &at);

	for (int k = 0; k < 2; k++) {
		h_open(&bed, NULL);
		for (int i = 0; i < 20; i++) {
			rxw_connection *connection;
			rxw_call *call;

			ck_assert_int_eq(rxw_connection_create(bed.client, (struct sockaddr *)&at,
							       sizeof(at), H_SERVICE, NULL,
							       &connection),
					 0);
			call = h_begin(connection, &(struct h_ask){.op = H_PING});
			ck_assert_int_eq(rxw_call_flush(call), 0);
			ck_assert_int_ge(recv(fd, packet, sizeof(packet), 0), RXW_HEADER_SIZE);
			cid[i] = rxw_get32(packet + 4);
			ck_assert_uint_eq(cid[i] & 3, 0);
			ck_assert(i == 0 || rxw_get32(packet) == epoch[k]);
			epoch[k] = rxw_get32(packet);
			ck_assert_uint_eq(rxw_get32(packet + 8), 1);  /* call */
			ck_assert_uint_eq(rxw_get32(packet + 12), 1); /* seq */
			ck_assert_uint_eq(rxw_get32(packet + 16), 1); /* serial */
			ck_assert_uint_eq(packet[22], 0);	      /* no upgrade is asked for */
			ck_assert_int_eq(rxw_call_end(call, 3, NULL), 3);
			do
				ck_assert_int_ge(recv(fd, packet, sizeof(packet), 0),
						 RXW_HEADER_SIZE);
			while (packet[20] != RXW_ABORT);
			rxw_connection_release(connection);
		}
		ck_assert_uint_ne(epoch[k] & 0x80000000u, 0);
		for (int i = 1; i < 20; i++) {
			ck_assert_uint_ne(cid[i], cid[i - 1]);
			mean += cid[i] - cid[i - 1] < 1u << 20; /* a counter would be near */
		}
		ck_assert_uint_le(mean, 2);
		h_close(&bed);
	}
	ck_assert_uint_ne(epoch[0], epoch[1]);
	close(fd);
}
END_TEST

/* The clock that nobody sets: steps of the time of day end no call. */
START_TEST(times_are_monotonic)
{
	struct timespec t;
	uint64_t before, now;

	clock_gettime(CLOCK_MONOTONIC, &t);
	before = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
	now = rxw_now();
	clock_gettime(CLOCK_MONOTONIC, &t);
	ck_assert_uint_ge(now, before);
	ck_assert_uint_le(now, (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec);
}
END_TEST

/* --- windows and probes --- */

/* A window that is smaller than what peers begin with: nothing of theirs is dropped. */
START_TEST(small_windows_lose_nothing)
{
	char tunables[32];
	rxw_connection *connection;

	snprintf(tunables, sizeof(tunables), "window=%d", _i);
	h_open(&bed, &(struct h_options){.both = tunables});
	for (int i = 0; i < 3; i++) {
		connection = h_connect(&bed, H_SERVICE);
		for (int k = 0; k < 3; k++)
			h_good_call(&bed, connection,
				    &(struct h_ask){.op = H_BOTH, .bytes = 60000});
		rxw_connection_release(connection);
	}
	ck_assert_uint_eq(h_stats(bed.server).drops[RXW_DROP_WINDOW], 0);
	ck_assert_uint_eq(h_stats(bed.client).drops[RXW_DROP_WINDOW], 0);
	h_close(&bed);
}
END_TEST

/* Probes of the path's size are zero behind the ACK; the padding of others is not given back. */
START_TEST(probes_hold_nothing)
{
	struct h_raw raw = h_raw_request(head, H_SOURCE, 0x7800);
	uint32_t own = 2, next = 1;
	struct rxw_ack ack;
	size_t largest = 0;
	int fd;

	h_open(&bed, &(struct h_options){.server = "path-mtu=on listeners=1"});
	fd = h_raw_socket(&bed);
	h_encode_ask(head, &(struct h_ask){.op = H_SOURCE, .bytes = 1 << 30});
	h_raw_send(fd, &raw);
	while (largest < 4000) {
		ssize_t n = recv(fd, packet, sizeof(packet), 0);

		ck_assert_int_ge(n, RXW_HEADER_SIZE);
		if (packet[20] == RXW_DATA) {
			if (rxw_get32(packet + 12) == next)
				next++;
			answer(fd, &raw, RXW_ACK_REQUESTED, next, rxw_get32(packet + 16), own++);
		} else if (packet[20] == RXW_ACK && (packet[21] & RXW_REQUEST_ACK)) {
			ck_assert(rxw_ack_get(packet + RXW_HEADER_SIZE, (size_t)n - RXW_HEADER_SIZE,
					      &ack));
			for (size_t i = RXW_HEADER_SIZE + 37 + ack.count; i < (size_t)n; i++)
				ck_assert_uint_eq(packet[i], 0);
			if ((size_t)n > largest)
				largest = (size_t)n;
			answer(fd, &raw, RXW_ACK_PING_RESPONSE, next, rxw_get32(packet + 16),
			       own++);
		}
	}
	raw.type = RXW_ABORT;
	raw.serial = own;
	raw.body = "\0\0\0\7";
	raw.size = 4;
	h_raw_send(fd, &raw);
	close(fd);
	h_close(&bed);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("conformance: live");
	TCase *tc = tcase_create("live");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, only_data_draws_an_answer);
	tcase_add_test(tc, busy_while_a_handler_works);
	tcase_add_test(tc, a_waiting_call_is_replaced);
	tcase_add_test(tc, talking_to_oneself);
	tcase_add_test(tc, a_port_that_changes);
	tcase_add_test(tc, epochs_of_the_old_form);
	tcase_add_test(tc, answers_leave_from_the_address_asked);
	tcase_add_test(tc, a_server_of_several_addresses);
	tcase_add_test(tc, names_are_random);
	tcase_add_test(tc, no_name_comes_twice);
	tcase_add_test(tc, times_are_monotonic);
	tcase_add_loop_test(tc, small_windows_lose_nothing, 1, 6);
	tcase_add_test(tc, probes_hold_nothing);
	suite_add_tcase(s, tc);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
