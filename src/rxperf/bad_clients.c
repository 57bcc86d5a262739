/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clients that burden a server. A slow client is a call of the library that reads a little at each
 * tick. A dead client cannot be one, because the library would send an ABORT. It is one packet,
 * sent from a socket that then neither sends nor refuses anything.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "program/message.h"
#include "program/report.h"
#include "rxperf/client.h"

#define SLOW_BYTES     1024 /* read at each tick */
#define TICK_NS	       100000000u
#define AGAIN_NS       15000000000u /* a server drops a dead client after 12 s by default */
#define MOST_ENDPOINTS 64	    /* of slow clients; more of them share */
#define TRANSFER       (1u << 20)   /* bytes that each call requests or announces */
/* rx-protocol 1.1, 1.3, 1.4 */
#define HEADER		 28
#define TYPE_DATA	 1
#define CLIENT_INITIATED 0x01
#define LAST_PACKET	 0x04

struct dead {
	int fd; /* -1: none */
	uint64_t again_ns;
};

struct slow {
	rxw_connection *connection;
	rxw_call *call; /* NULL: not begun */
};

struct perf_bad_clients {
	const struct tools_address *server;
	struct dead *dead;
	struct slow *slow;
	rxw_endpoint **endpoints; /* of the slow ones */
	size_t dead_count, slow_count, endpoint_count;
	uint8_t send[PERF_REQUEST_MAX], recv[PERF_REQUEST_MAX]; /* requests */
	size_t send_len, recv_len;
	_Atomic uint64_t dead_calls, slow_bytes;
	pthread_t thread;
	bool has_thread;
	atomic_bool quit;
};

static void encode_requests(struct perf_bad_clients *b)
{
	const rxperf_sizes sizes = {RXPERF_IO_MAX, RXPERF_IO_MAX};
	rxperf_command c = {.what = RXPERF_SEND, .u.send = {sizes, TRANSFER}};

	b->send_len = perf_encode(&c, b->send);
	c = (rxperf_command){.what = RXPERF_RECV, .u.recv = {sizes, TRANSFER}};
	b->recv_len = perf_encode(&c, b->recv);
}

/*
 * The first packet of a call from a new client: a complete request, whose reply is never
 * acknowledged, or the start of a request. Returns its length.
 */
static size_t build_first_packet(const struct perf_bad_clients *b, bool whole, uint8_t *packet)
{
	const uint8_t *request = whole ? b->recv : b->send;
	size_t length = whole ? b->recv_len : b->send_len;
	uint32_t id[2] = {0, 0};

	if (getrandom(id, sizeof(id), 0) < 0)
		id[0] = (uint32_t)monotonic_ns();
	memset(packet, 0, HEADER);
	rxw_xdr_store32(packet, (id[0] & 0x3fffffff) | 0x80000000);
	rxw_xdr_store32(packet + 4, id[1] & ~3u);
	rxw_xdr_store32(packet + 8, 1);	 /* call */
	rxw_xdr_store32(packet + 12, 1); /* packet */
	rxw_xdr_store32(packet + 16, 1); /* serial */
	packet[20] = TYPE_DATA;
	packet[21] = whole ? CLIENT_INITIATED | LAST_PACKET : CLIENT_INITIATED;
	packet[27] = PERF_SERVICE;
	memcpy(packet + HEADER, request, length);
	return HEADER + length;
}

static void send_and_vanish(struct perf_bad_clients *b, size_t i, uint64_t now)
{
	uint8_t packet[HEADER + PERF_REQUEST_MAX];
	struct dead *d = &b->dead[i];
	size_t length = build_first_packet(b, i % 2 == 0, packet);

	if (d->fd >= 0)
		close(d->fd);
	d->fd = socket(b->server->sa.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	d->again_ns = now + AGAIN_NS;
	if (d->fd >= 0 && sendto(d->fd, packet, length, 0, (const struct sockaddr *)&b->server->sa,
				 b->server->len) == (ssize_t)length)
		atomic_fetch_add(&b->dead_calls, 1);
}

static bool begin_slow_call(struct perf_bad_clients *b, struct slow *s)
{
	struct rxw_call_options co = {.size = sizeof(co), .flags = RXW_CALL_NONBLOCK};

	if (rxw_call_begin(s->connection, &co, &s->call) < 0) {
		s->call = NULL;
		return false;
	}
	if (rxw_call_write(s->call, b->recv, b->recv_len) == (ssize_t)b->recv_len &&
	    rxw_call_send_end(s->call) == 0)
		return true;
	rxw_call_end(s->call, RXW_USER_ABORT, NULL);
	s->call = NULL;
	return false;
}

static void read_slowly(struct perf_bad_clients *b, struct slow *s)
{
	uint8_t some[SLOW_BYTES];
	ssize_t n;

	if (!s->call && !begin_slow_call(b, s))
		return;
	n = rxw_call_read_some(s->call, some, sizeof(some));
	if (n > 0) {
		atomic_fetch_add(&b->slow_bytes, (uint64_t)n);
	} else if (n != -RXW_EAGAIN) {
		rxw_call_end(s->call, 0, NULL);
		s->call = NULL;
	}
}

static void step_bad_clients(struct perf_bad_clients *b)
{
	uint64_t now = monotonic_ns();

	for (size_t i = 0; i < b->dead_count; i++)
		if (now >= b->dead[i].again_ns)
			send_and_vanish(b, i, now);
	for (size_t i = 0; i < b->slow_count; i++)
		read_slowly(b, &b->slow[i]);
}

static void *run_bad_clients(void *arg)
{
	const struct timespec tick = {.tv_nsec = TICK_NS};
	struct perf_bad_clients *b = arg;

	while (!atomic_load(&b->quit)) {
		nanosleep(&tick, NULL);
		step_bad_clients(b);
	}
	return NULL;
}

/* Endpoints and connections of the slow clients. 0, or a negative result of the library. */
static int connect_slow(struct perf_bad_clients *b, rxw_engine *engine)
{
	struct rxw_endpoint_options eo = {.size = sizeof(eo)};
	size_t endpoints = b->slow_count < MOST_ENDPOINTS ? b->slow_count : MOST_ENDPOINTS;
	struct tools_address any;
	int rc;

	tools_address_any(&b->server->sa, &any);
	eo.address = (struct sockaddr *)&any.sa;
	eo.address_len = any.len;
	for (; b->endpoint_count < endpoints; b->endpoint_count++) {
		rc = rxw_endpoint_create(engine, &eo, &b->endpoints[b->endpoint_count]);
		if (rc < 0)
			return rc;
	}
	for (size_t i = 0; i < b->slow_count; i++) {
		rc = rxw_connection_create(b->endpoints[i % endpoints],
					   (const struct sockaddr *)&b->server->sa, b->server->len,
					   PERF_SERVICE, NULL, &b->slow[i].connection);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* NULL: no memory. */
static struct perf_bad_clients *new_bad_clients(const struct tools_address *server, uint64_t dead,
						uint64_t slow)
{
	struct perf_bad_clients *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->server = server;
	/* One extra element: calloc() of zero elements may return NULL. */
	b->dead = calloc(dead + 1, sizeof(*b->dead));
	b->slow = calloc(slow + 1, sizeof(*b->slow));
	b->endpoints = calloc(MOST_ENDPOINTS, sizeof(*b->endpoints));
	if (!b->dead || !b->slow || !b->endpoints) {
		perf_bad_clients_stop(b);
		return NULL;
	}
	b->dead_count = dead;
	b->slow_count = slow;
	for (size_t i = 0; i < dead; i++)
		b->dead[i].fd = -1;
	encode_requests(b);
	return b;
}

int perf_bad_clients_start(rxw_engine *engine, const struct tools_address *server, uint64_t dead,
			   uint64_t slow, struct perf_bad_clients **bad_clients)
{
	struct perf_bad_clients *b = new_bad_clients(server, dead, slow);
	int rc = b ? connect_slow(b, engine) : -RXW_ENOMEM;

	if (rc < 0)
		goto fail;
	step_bad_clients(b);
	rc = -RXW_ENOMEM;
	if (pthread_create(&b->thread, NULL, run_bad_clients, b))
		goto fail;
	b->has_thread = true;
	*bad_clients = b;
	return 0;
fail:
	tools_error("dead and slow clients: %s", tools_result_text(rc));
	perf_bad_clients_stop(b);
	return -1;
}

struct perf_bad_clients_stats perf_bad_clients_stats(const struct perf_bad_clients *b)
{
	return (struct perf_bad_clients_stats){.dead_clients = b->dead_count,
					       .dead_calls = atomic_load(&b->dead_calls),
					       .slow_clients = b->slow_count,
					       .slow_bytes = atomic_load(&b->slow_bytes)};
}

void perf_bad_clients_stop(struct perf_bad_clients *b)
{
	if (!b)
		return;
	atomic_store(&b->quit, true);
	if (b->has_thread)
		pthread_join(b->thread, NULL);
	for (size_t i = 0; i < b->slow_count; i++) {
		if (b->slow[i].call)
			rxw_call_end(b->slow[i].call, RXW_USER_ABORT, NULL);
		if (b->slow[i].connection)
			rxw_connection_release(b->slow[i].connection);
	}
	for (size_t i = 0; i < b->endpoint_count; i++)
		rxw_endpoint_destroy(b->endpoints[i]);
	for (size_t i = 0; i < b->dead_count; i++)
		if (b->dead[i].fd >= 0)
			close(b->dead[i].fd);
	free(b->endpoints);
	free(b->slow);
	free(b->dead);
	free(b);
}
