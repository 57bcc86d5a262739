/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target: a client and a server with active calls, and a network controlled by the input: each
 * packet is delivered, lost, duplicated, delayed, coalesced, changed, or forged after an earlier
 * one. For all input: output is well formed, calls end once the network is reliable again, and all
 * resources are released. If no packet was changed or forged, each byte arrives.
 */

#include "fuzz.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/rtt.h"
#include "base/wire.h"
#include "world.h"

const char fuzz_name[] = "live";
const size_t fuzz_max = 600;
const unsigned fuzz_cost = 200;

#define CALLS	     6
#define SERVER_PORT  7000
#define CLIENT_PORT  7001
#define QUIET_AT_END (2000 * RXW_SEC) /* every call ends within that time */
#define IN_NETWORK   3000u

struct call {
	rxw_call *call; /* NULL: none */
	uint32_t to_send, sent, to_read, got;
	uint8_t seed;
	bool callback, closed;
};

struct play {
	struct world w;
	rxw_endpoint *client, *server;
	rxw_connection *connection[2];
	struct rxw_addr client_addr, server_addr;
	struct call call[CALLS];
	bool honest;   /* so far no packet was changed, forged or truncated */
	bool in_order; /* no long delays so far */
	uint64_t waited; /* total delay by the input, ns */
	uint8_t seen[1500]; /* the packet delivered last */
	uint32_t seen_size;
	bool seen_from_client;
	const uint8_t *at, *end;
	unsigned begun, good;
};

static struct play play;

static uint8_t byte(struct play *p)
{
	return p->at < p->end ? *p->at++ : 0;
}

/*
 * -- Both ends ------------------------------------------------------------------------------------
 */

/* Request: length of the reply, its own length, seed, code; then bytes of the pattern. */
#define ASK 12u

/*
 * Bytes of a request or a reply are taken from a table and compared as a whole. Byte by byte they
 * would dominate coverage and run time.
 */
#define PATTERN_PERIOD 65536u
#define PATTERN_MOST   8192u /* bytes taken from it at a time */

static const uint8_t *pattern(uint8_t seed, uint32_t at)
{
	static uint8_t table[PATTERN_PERIOD + PATTERN_MOST];

	if (!table[1])
		for (uint32_t i = 0; i < sizeof(table); i++)
			table[i] = (uint8_t)(i * 7 + (i >> 8));
	return table + (seed * 523u + at) % PATTERN_PERIOD;
}

/* Most calls have a few packets, one in forty has more than a hundred. */
static uint32_t size_of(uint8_t n, uint32_t small, uint32_t large)
{
	return n * (n <= 200 ? small : n < 250 ? small * 5 : large);
}

/* Handlers of a short service take the received part. The rest of the request is dropped. */
static int32_t serve(rxw_call *call, void *context)
{
	uint8_t data[ASK];
	uint32_t size, n = 0;
	ssize_t got;

	(void)context;
	got = rxw_call_read(call, data, ASK);
	if (got < (ssize_t)ASK)
		return got < 0 ? 11 : 12;
	size = rxw_get32(data) % (1u << 18);
	if (rxw_get32(data + 8) & 0xff00)
		return (int32_t)(rxw_get32(data + 8) >> 8 & 0xff);
	uint8_t seed = data[11];

	for (; n < size;) {
		uint32_t part = size - n < PATTERN_MOST ? size - n : PATTERN_MOST;

		got = rxw_call_write(call, pattern(seed, n), part);
		if (got < 0)
			return 13;
		n += (uint32_t)got;
	}
	return 0;
}

static void finish(struct play *p, struct call *c, int32_t code)
{
	rxw_call *call = c->call;
	int32_t result;

	c->call = NULL;
	result = rxw_call_end(call, code, NULL);
	if (!result)
		p->good++;
	if (!code && p->honest && p->in_order) {
		FUZZ_CHECK(result == 0);
		FUZZ_CHECK(c->got == c->to_read);
	}
}

/* Makes all progress that is possible without waiting. */
static void work(struct play *p, struct call *c)
{
	uint8_t data[4096];
	ssize_t n = 0;

	while (c->call && c->sent < c->to_send && n >= 0) {
		uint32_t part = c->to_send - c->sent;

		part = part < PATTERN_MOST ? part : PATTERN_MOST;
		n = rxw_call_write(c->call, pattern(c->seed, c->sent), part);
		if (n > 0)
			c->sent += (uint32_t)n;
	}
	if (n != -RXW_ECALL && c->sent < c->to_send)
		return; /* reading would end the request */
	if (!c->closed) {
		c->closed = true;
		rxw_call_send_end(c->call);
		if (!c->call)
			return; /* its callback ended it */
	}
	do {
		n = rxw_call_read_some(c->call, data, sizeof(data));
		if (n > 0 && p->honest)
			FUZZ_CHECK(!memcmp(data, pattern(c->seed, c->got), (size_t)n));
		c->got += n > 0 ? (uint32_t)n : 0;
	} while (n > 0);
	if (n == 0 || n == -RXW_ECALL)
		finish(p, c, 0);
}

static void on_event(rxw_call *call, unsigned events, void *arg)
{
	struct call *c = arg;

	(void)events;
	if (c->call == call)
		work(&play, c);
}

static void poll_all(struct play *p)
{
	world_poll(p->server);
	world_poll(p->client);
	for (unsigned i = 0; i < CALLS; i++)
		if (p->call[i].call && !p->call[i].callback)
			work(p, &p->call[i]);
}

static void begin(struct play *p, uint8_t which, uint8_t request, uint8_t reply)
{
	struct rxw_call_options o = {.size = sizeof(o), .flags = RXW_CALL_NONBLOCK};
	struct call *c = &p->call[which % CALLS];
	uint8_t ask[ASK];

	if (c->call)
		return;
	*c = (struct call){.seed = request, .callback = which & 0x40};
	c->to_send = size_of(request, 20, 600);
	c->to_read = size_of(reply, 30, 700);
	if (c->callback) {
		o.callback = on_event;
		o.arg = c;
	}
	if (rxw_call_begin(p->connection[which & 0x80 ? 1 : 0], &o, &c->call))
		return;
	p->begun++;
	rxw_put32(ask, c->to_read);
	rxw_put32(ask + 4, c->to_send);
	rxw_put32(ask + 8, c->seed);
	if (rxw_call_write(c->call, ask, sizeof(ask)) != (ssize_t)sizeof(ask)) {
		finish(p, c, RXW_USER_ABORT);
		return;
	}
	work(p, c);
}

/*
 * -- The network ----------------------------------------------------------------------------------
 */

static void arrive(struct play *p, const struct packet *k)
{
	p->seen_size = k->length < sizeof(p->seen) ? k->length : (uint32_t)sizeof(p->seen);
	memcpy(p->seen, k->bytes, p->seen_size);
	p->seen_from_client = rxw_addr_equal(&k->from, &p->client_addr);
	world_deliver(&k->from, &k->to, k->bytes, k->length, 0);
}

/* Consecutive packets of one size and direction arrive as a burst. */
static void arrive_together(struct play *p, struct packet *k, unsigned count)
{
	static uint8_t burst[RXW_BUF_SIZE];
	uint32_t segment = k->length, at = 0;

	while (k) {
		struct packet *next = p->w.sent;

		memcpy(burst + at, k->bytes, k->length);
		at += k->length;
		if (!count-- || !next || next->length > segment || k->length < segment ||
		    at + segment > sizeof(burst) || !rxw_addr_equal(&next->to, &k->to))
			break;
		free(k);
		k = world_take(&p->w);
	}
	if (k)
		world_deliver(&k->from, &k->to, burst, at, segment);
	free(k);
}

/* Changes some bytes, truncates, or appends some bytes. */
static void change(struct play *p, struct packet *k)
{
	static uint8_t bytes[16384];
	uint32_t size = k->length < sizeof(bytes) - 64 ? k->length : (uint32_t)sizeof(bytes) - 64;
	unsigned n = byte(p) % 8;

	p->honest = false;
	memcpy(bytes, k->bytes, size);
	for (; n; n--) {
		uint32_t at = byte(p);

		/* Mostly the header and the bytes right after it. */
		at = at >= 128 ? (at - 128) * size / 128 : at % 64;
		if (at < size)
			bytes[at] ^= byte(p);
	}
	n = byte(p);
	if (n & 0x80)
		size = size * (n & 0x7f) / 128;
	else
		for (n &= 0x1f; n; n--)
			bytes[size++] = byte(p);
	world_deliver(&k->from, &k->to, bytes, size, 0);
}

/* A forged packet, based on the last one: type, flags, body, and similar numbers. */
static void forge(struct play *p)
{
	uint8_t bytes[RXW_HEADER_SIZE + 64], how = byte(p);
	struct rxw_header h;
	bool from_client = p->seen_from_client != !(how & 1);
	uint32_t size = byte(p) % 64;
	struct rxw_addr other = world_addr(0x0a000009, 7009);
	const struct rxw_addr *from = from_client ? &p->client_addr : &p->server_addr;

	if (!p->seen_size || !rxw_header_get(p->seen, p->seen_size, &h))
		return;
	p->honest = false;
	h.type = byte(p) % 14;
	h.flags = (uint8_t)((byte(p) & ~RXW_CLIENT_INITIATED) |
			    (from_client ? RXW_CLIENT_INITIATED : 0));
	if (how & 2)
		h.seq += (uint32_t)(byte(p) - 128);
	if (how & 4)
		h.call += (uint32_t)(byte(p) % 5) - 2;
	if (how & 8)
		h.serial += (uint32_t)(byte(p) - 100);
	if (how & 16)
		h.cid ^= byte(p) & 7;
	if (how & 32)
		h.security = byte(p) % 4;
	rxw_header_put(bytes, &h);
	for (uint32_t i = 0; i < size; i++)
		bytes[RXW_HEADER_SIZE + i] = byte(p);
	if (h.type == RXW_ACK && size >= 18 && !(how & 64)) {
		rxw_put32(bytes + RXW_HEADER_SIZE + 4, h.seq + bytes[RXW_HEADER_SIZE + 7] % 64 - 8);
		rxw_put32(bytes + RXW_HEADER_SIZE + 12, h.serial - bytes[RXW_HEADER_SIZE + 15] % 8);
		bytes[RXW_HEADER_SIZE + 16] %= 11;
	}
	world_deliver(how & 128 ? &other : from, from_client ? &p->server_addr : &p->client_addr,
		      bytes, RXW_HEADER_SIZE + size, 0);
}

static void pass_time(struct play *p, uint8_t how)
{
	static const uint64_t spans[] = {RXW_MS / 10,  RXW_MS,	       10 * RXW_MS, 60 * RXW_MS,
					 300 * RXW_MS, 1500 * RXW_MS, 7 * RXW_SEC,  100 * RXW_SEC};

	/* Many short delays add up: after such a silence a peer may be considered dead. */
	p->waited += spans[how % 8];
	if (p->waited >= 1500 * RXW_MS)
		p->in_order = false;
	world_pass(spans[how % 8]);
}

static void with_packet(struct play *p, uint8_t op)
{
	struct packet *k = world_take(&p->w);

	if (!k)
		return;
	switch (op % 8) {
	case 0: /* it is lost */
		p->in_order = false;
		break;
	case 1: /* it is duplicated */
		arrive(p, k);
		arrive(p, k);
		break;
	case 2: /* it is delayed */
		*p->w.sent_tail = k;
		p->w.sent_tail = &k->next;
		p->w.sent_count++;
		return;
	case 3:
	case 4:
		change(p, k);
		break;
	case 5:
		arrive_together(p, k, byte(p) % 40);
		return;
	default:
		arrive(p, k);
	}
	free(k);
}

static void step(struct play *p)
{
	static const int errors[] = {EAGAIN, ENOBUFS, EMSGSIZE, EPERM, ECONNREFUSED};
	uint8_t op = byte(p), how;

	switch (op % 16) {
	default:
		with_packet(p, op >> 4);
		break;
	case 6:
	case 7:
		for (unsigned n = 1 + (op >> 4) * 4; n && p->w.sent; n--)
			with_packet(p, 7);
		break;
	case 8:
		poll_all(p);
		break;
	case 9:
	case 10:
		how = byte(p);
		begin(p, how, byte(p), byte(p));
		break;
	case 11:
		pass_time(p, op >> 4);
		break;
	case 12:
		forge(p);
		break;
	case 13:
		how = op >> 4;
		if (p->call[how % CALLS].call && how < 3)
			finish(p, &p->call[how % CALLS], how + 1);
		else if (p->call[how % CALLS].call)
			rxw_call_abort(p->call[how % CALLS].call, how);
		p->in_order = false;
		break;
	case 14:
		p->honest = false;
		how = byte(p);
		world_report(how & 1 ? &p->client_addr : &p->server_addr,
			     how & 1 ? &p->server_addr : &p->client_addr,
			     how & 2 ? ECONNREFUSED : EMSGSIZE, how & 2 ? 0 : 500 + how * 8);
		break;
	case 15:
		p->in_order = false;
		p->w.refuse = 1 + byte(p) % 8;
		p->w.refuse_with = errors[op / 16 % 5];
	}
	if (op & 0x80 || p->w.sent_count > IN_NETWORK)
		poll_all(p);
}

/*
 * -- A run ----------------------------------------------------------------------------------------
 */

static void set_up(struct play *p, uint8_t how)
{
	struct rxw_service_options o = {
		.size = sizeof(o), .id = 52, .handler = serve, .flags = RXW_SERVICE_INLINE};
	struct rxw_config config;

	rxw_config_init(&config, sizeof(config));
	config.memory = 32u << 20;
	config.window = how & 1 ? 255 : 8;
	config.jumbo = how & 4 ? RXW_ON : RXW_OFF;
	config.path_mtu = how & 8 ? RXW_ON : RXW_OFF;
	/* A forged ACKALL ends a call at the server alone. The client's ends by its idle time. */
	config.idle_ms = how & 32 ? 3000 : 60000;
	if (how & 64)
		o.flags |= RXW_SERVICE_REACH;
	world_begin(&p->w, &config);
	p->w.constants.batch = how & 2 ? 16 : 1;
	p->honest = true;
	/* The idle time may end a waiting call, an oversized request always does. */
	p->in_order = !(how & 32);
	p->server_addr = world_addr(how & 128 ? 0x7f000001 : 0x0a000001, SERVER_PORT);
	p->client_addr = world_addr(how & 128 ? 0x7f000001 : 0x0a000002, CLIENT_PORT);
	p->server = world_endpoint(&p->w, how & 128 ? 0x7f000001 : 0x0a000001, SERVER_PORT, true);
	p->client = world_endpoint(&p->w, how & 128 ? 0x7f000001 : 0x0a000002, CLIENT_PORT, false);
	FUZZ_CHECK(!rxw_service_add(p->server, &o, NULL));
	for (unsigned i = 0; i < 2; i++)
		FUZZ_CHECK(!rxw_connection_create(p->client, &p->server_addr.u.sa,
						  p->server_addr.len, 52, NULL,
						  &p->connection[i]));
}

static bool calls_left(const struct play *p)
{
	for (unsigned i = 0; i < CALLS; i++)
		if (p->call[i].call)
			return true;
	return false;
}

/* The network is reliable again: all calls end. */
static void settle(struct play *p)
{
	uint64_t end = world_now() + QUIET_AT_END;
	unsigned idle = 0; /* consecutive checks that found an empty network */

	p->w.refuse = 0;
	while (calls_left(p)) {
		struct packet *k;

		for (unsigned n = 0; n < 64 && (k = world_take(&p->w)); n++) {
			arrive(p, k);
			free(k);
		}
		world_pass(p->w.sent ? RXW_MS / 10 : RXW_MS);
		poll_all(p);
		idle = p->w.sent ? 0 : idle + 1;
		if (idle)
			world_pass(idle < 20 ? 20 * RXW_MS : 500 * RXW_MS);
		FUZZ_CHECK(world_now() < end);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct play *p = &play;

	if (size < 2)
		return 0;
	memset(p, 0, sizeof(*p));
	p->at = data + 1;
	p->end = data + size;
	set_up(p, data[0]);
	for (unsigned n = 0; n < 300 && p->at < p->end; n++)
		step(p);
	settle(p);
	for (unsigned i = 0; i < 2; i++)
		rxw_connection_release(p->connection[i]);
	poll_all(p);
	world_destroy(&p->w, p->client);
	world_destroy(&p->w, p->server);
	world_end(&p->w);
	return 0;
}
