/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clients that burden an rxperf server: bad_clients PORT DEAD SLOW. A slow client is a call of the
 * library that reads a KiB at each tick. A dead client cannot be one, because the library would
 * send an ABORT. It is one packet, sent from a socket that then neither sends nor refuses anything;
 * it returns as a new client after 15 s. Prints a line once all have begun, and runs until it is killed.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "rxperf/perf.h"

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

struct bad_clients {
	struct sockaddr_in server;
	struct dead *dead;
	struct slow *slow;
	size_t dead_count, slow_count;
	uint8_t send[PERF_REQUEST_MAX], recv[PERF_REQUEST_MAX]; /* requests */
	size_t send_len, recv_len;
};

static void die(const char *what)
{
	fprintf(stderr, "bad_clients: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void encode_requests(struct bad_clients *b)
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
static size_t build_first_packet(const struct bad_clients *b, bool whole, uint8_t *packet)
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

static void send_and_vanish(struct bad_clients *b, size_t i, uint64_t now)
{
	uint8_t packet[HEADER + PERF_REQUEST_MAX];
	struct dead *d = &b->dead[i];
	size_t length = build_first_packet(b, i % 2 == 0, packet);

	if (d->fd >= 0)
		close(d->fd);
	d->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	d->again_ns = now + AGAIN_NS;
	if (d->fd < 0 || sendto(d->fd, packet, length, 0, (const struct sockaddr *)&b->server,
				sizeof(b->server)) < 0)
		die("a dead client");
}

static bool begin_slow_call(struct bad_clients *b, struct slow *s)
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

static void read_slowly(struct bad_clients *b, struct slow *s)
{
	uint8_t some[SLOW_BYTES];
	ssize_t n;

	if (!s->call && !begin_slow_call(b, s))
		return;
	n = rxw_call_read_some(s->call, some, sizeof(some));
	if (n <= 0 && n != -RXW_EAGAIN) {
		rxw_call_end(s->call, 0, NULL);
		s->call = NULL;
	}
}

static void step_bad_clients(struct bad_clients *b)
{
	uint64_t now = monotonic_ns();

	for (size_t i = 0; i < b->dead_count; i++)
		if (now >= b->dead[i].again_ns)
			send_and_vanish(b, i, now);
	for (size_t i = 0; i < b->slow_count; i++)
		read_slowly(b, &b->slow[i]);
}

/* Endpoints and connections of the slow clients. */
static void connect_slow(struct bad_clients *b)
{
	struct sockaddr_in any = {.sin_family = AF_INET};
	struct rxw_endpoint_options eo = {
		.size = sizeof(eo), .address = (struct sockaddr *)&any, .address_len = sizeof(any)};
	rxw_endpoint *endpoints[MOST_ENDPOINTS];
	rxw_engine *engine;

	if (rxw_engine_create(NULL, &engine) < 0)
		die("an engine");
	for (size_t i = 0; i < b->slow_count; i++) {
		if (i < MOST_ENDPOINTS && rxw_endpoint_create(engine, &eo, &endpoints[i]) < 0)
			die("an endpoint");
		if (rxw_connection_create(endpoints[i % MOST_ENDPOINTS],
					  (const struct sockaddr *)&b->server, sizeof(b->server),
					  PERF_SERVICE, NULL, &b->slow[i].connection) < 0)
			die("a connection");
	}
}

int main(int argc, char **argv)
{
	const struct timespec tick = {.tv_nsec = TICK_NS};
	struct bad_clients b = {
		.server = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}};

	if (argc != 4) {
		fprintf(stderr, "usage: bad_clients PORT DEAD SLOW\n");
		return 2;
	}
	b.server.sin_port = htons((uint16_t)atoi(argv[1]));
	b.dead_count = (size_t)atoi(argv[2]);
	b.slow_count = (size_t)atoi(argv[3]);
	/* One extra element: calloc() of zero elements may return NULL. */
	b.dead = calloc(b.dead_count + 1, sizeof(*b.dead));
	b.slow = calloc(b.slow_count + 1, sizeof(*b.slow));
	if (!b.dead || !b.slow)
		die("memory");
	for (size_t i = 0; i < b.dead_count; i++)
		b.dead[i].fd = -1;
	encode_requests(&b);
	connect_slow(&b);
	step_bad_clients(&b);
	printf("%zu dead and %zu slow clients have begun\n", b.dead_count, b.slow_count);
	fflush(stdout);
	for (;;) {
		nanosleep(&tick, NULL);
		step_bad_clients(&b);
	}
}
