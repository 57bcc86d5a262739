/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The I/O layer, the clock and other system functions for fuzz targets of whole endpoints. Linked
 * with --wrap for the library's system calls.
 */
#include "world.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/hash.h"
#include "engine/objects.h"
#include "fuzz.h"

#define SOCKETS	   8
#define REPORTS	   8
#define POLLS_MOST 100000u

struct rxw_io_sock {
	struct rxw_addr addr;
	struct packet *first, **last;
	struct rxw_io_error report[REPORTS];
	unsigned reports;
	struct rxw_io_stats stats;
};

static struct world *world;
static struct rxw_io_sock *sockets[SOCKETS];
static uint64_t clock_ns, prng;

/*
 * -- The system -----------------------------------------------------------------------------------
 */

int __real_clock_gettime(clockid_t id, struct timespec *t);
int __wrap_clock_gettime(clockid_t id, struct timespec *t);
int __real_nanosleep(const struct timespec *t, struct timespec *left);
int __wrap_nanosleep(const struct timespec *t, struct timespec *left);
int __real_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*run)(void *), void *arg);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*run)(void *), void *arg);
int __real_rxw_random(void *out, size_t size);
int __wrap_rxw_random(void *out, size_t size);

int __wrap_clock_gettime(clockid_t id, struct timespec *t)
{
	if (!world)
		return __real_clock_gettime(id, t);
	t->tv_sec = (time_t)(clock_ns / RXW_SEC);
	t->tv_nsec = (long)(clock_ns % RXW_SEC);
	return 0;
}

int __wrap_nanosleep(const struct timespec *t, struct timespec *left)
{
	if (!world)
		return __real_nanosleep(t, left);
	clock_ns += (uint64_t)t->tv_sec * RXW_SEC + (uint64_t)t->tv_nsec;
	return 0;
}

/* Creation of threads is refused: a run has one, so that it can be repeated. */
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*run)(void *), void *arg)
{
	return world ? EAGAIN : __real_pthread_create(t, a, run, arg);
}

int __wrap_rxw_random(void *out, size_t size)
{
	uint8_t *bytes = out;

	if (!world)
		return __real_rxw_random(out, size);
	for (size_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)(rxw_prng(&prng) >> 32);
	return 0;
}

uint64_t world_now(void)
{
	return clock_ns;
}

void world_pass(uint64_t ns)
{
	clock_ns += ns;
}

/*
 * -- The I/O layer --------------------------------------------------------------------------------
 */

int rxw_io_open(struct rxw_io_group *g, const struct rxw_io_options *options)
{
	struct rxw_io_sock *s = calloc(1, sizeof(*s));
	unsigned i = 0;

	if (!s)
		exit(99);
	memset(g, 0, sizeof(*g));
	s->addr = options->bind;
	s->last = &s->first;
	while (i < SOCKETS && sockets[i])
		i++;
	FUZZ_CHECK(i < SOCKETS);
	sockets[i] = s;
	g->count = 1;
	g->sock[0] = s;
	g->bound = s->addr;
	g->backend = "none";
	return 0;
}

static void drop_packets(struct packet *p)
{
	while (p) {
		struct packet *next = p->next;

		free(p);
		p = next;
	}
}

void rxw_io_read_ecn(struct rxw_io_group *g)
{
	(void)g;
}

void rxw_io_close(struct rxw_io_group *g)
{
	for (unsigned k = 0; k < g->count; k++) {
		for (unsigned i = 0; i < SOCKETS; i++)
			if (sockets[i] == g->sock[k])
				sockets[i] = NULL;
		drop_packets(g->sock[k]->first);
		free(g->sock[k]);
	}
	memset(g, 0, sizeof(*g));
}

int rxw_io_recv(struct rxw_io_sock *s, struct rxw_io_rx *rx, unsigned count, uint32_t timeout_us)
{
	unsigned n = 0;

	(void)timeout_us;
	for (; n < count && s->first; n++) {
		struct packet *p = s->first;

		s->first = p->next;
		if (!s->first)
			s->last = &s->first;
		FUZZ_CHECK(rx[n].buf && rx[n].buf->cap >= p->length);
		memcpy(rx[n].buf->data, p->bytes, p->length);
		rx[n].length = p->length;
		rx[n].segment = p->segment;
		rx[n].ecn = n & 3;
		rx[n].truncated = false;
		memset(&rx[n].path, 0, sizeof(rx[n].path));
		rx[n].path.peer = p->from;
		rx[n].path.local = s->addr;
		rx[n].path.local.u.in.sin_port = 0;
		free(p);
	}
	return (int)n;
}

int rxw_io_wait(struct rxw_io_sock *s, uint64_t timeout_us)
{
	(void)timeout_us;
	return s->first || s->reports;
}

void rxw_io_wake(struct rxw_io_sock *s)
{
	(void)s;
}

/* The datagrams of a message enter the network one by one. */
static void send_message(struct rxw_io_sock *s, const struct rxw_io_tx *tx)
{
	uint32_t segment = tx->segment && tx->segment < tx->length ? tx->segment : tx->length;
	static uint8_t whole[1u << 17];
	uint32_t at = 0;

	FUZZ_CHECK(tx->length && tx->length <= sizeof(whole));
	for (unsigned i = 0; i < tx->iov_count; i++) {
		FUZZ_CHECK(tx->iov[i].iov_len <= tx->length - at);
		memcpy(whole + at, tx->iov[i].iov_base, tx->iov[i].iov_len);
		at += (uint32_t)tx->iov[i].iov_len;
	}
	FUZZ_CHECK(at == tx->length);
	for (at = 0; at < tx->length; at += segment) {
		uint32_t size = tx->length - at < segment ? tx->length - at : segment;
		struct packet *p = malloc(sizeof(*p) + size);

		if (!p)
			exit(99);
		*p = (struct packet){
			.from = s->addr, .to = tx->path->peer, .length = size, .segment = size};
		memcpy(p->bytes, whole + at, size);
		world_check_packet(p->bytes, size);
		if (world->look)
			world->look(world, p);
		world->sent_total++;
		world->sent_count++;
		*world->sent_tail = p;
		world->sent_tail = &p->next;
	}
}

unsigned rxw_io_send(struct rxw_io_sock *s, struct rxw_io_tx *tx, unsigned count, bool nowait)
{
	unsigned good = 0;

	(void)nowait;
	for (unsigned i = 0; i < count; i++) {
		tx[i].error = 0;
		tx[i].sent_segments = 0;
		if (world->refuse) {
			world->refuse--;
			tx[i].error = world->refuse_with;
			continue;
		}
		send_message(s, &tx[i]);
		good++;
	}
	return good;
}

bool rxw_io_errors_pending(const struct rxw_io_sock *s)
{
	return s->reports > 0;
}

unsigned rxw_io_errors(struct rxw_io_sock *s, struct rxw_io_error *errors, unsigned count)
{
	unsigned n = s->reports < count ? s->reports : count;

	memcpy(errors, s->report, n * sizeof(errors[0]));
	s->reports = 0;
	return n;
}

const struct rxw_io_stats *rxw_io_sock_stats(const struct rxw_io_sock *s)
{
	return &s->stats;
}

bool rxw_io_gso(const struct rxw_io_sock *s)
{
	(void)s;
	return true;
}

bool rxw_io_gro(const struct rxw_io_sock *s)
{
	(void)s;
	return true;
}

size_t rxw_io_rcvbuf(const struct rxw_io_sock *s)
{
	(void)s;
	return 8u << 20;
}

size_t rxw_io_sndbuf(const struct rxw_io_sock *s)
{
	(void)s;
	return 8u << 20;
}

unsigned rxw_io_max_segments(const struct rxw_io_sock *s)
{
	(void)s;
	return 45;
}

/*
 * -- The world ------------------------------------------------------------------------------------
 */

void world_begin(struct world *w, const struct rxw_config *config)
{
	memset(w, 0, sizeof(*w));
	w->sent_tail = &w->sent;
	w->constants = rxw_constants;
	w->constants.inline_us = 0; /* a simulated clock gives no durations of handlers */
	clock_ns = 1000 * RXW_SEC;
	prng = 1;
	world = w;
	FUZZ_CHECK(!rxw_engine_create(config, &w->engine));
}

void world_end(struct world *w)
{
	drop_packets(w->sent);
	FUZZ_CHECK(rxw_pool_live(w->engine->pool) == 0);
	FUZZ_CHECK(!rxw_engine_destroy(w->engine));
	world = NULL;
}

struct rxw_addr world_addr(uint32_t host, uint16_t port)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct rxw_addr a;

	in.sin_addr.s_addr = htonl(host);
	FUZZ_CHECK(rxw_addr_set(&a, (struct sockaddr *)&in, sizeof(in)));
	return a;
}

rxw_endpoint *world_endpoint(struct world *w, uint32_t host, uint16_t port, bool server)
{
	struct rxw_addr a = world_addr(host, port);
	struct rxw_endpoint_options o = {.size = sizeof(o),
					 .address = &a.u.sa,
					 .address_len = a.len,
					 .server = server,
					 .paused = 1};
	rxw_endpoint *ep;

	FUZZ_CHECK(!rxw_endpoint_create_with(w->engine, &o, &w->constants, &ep));
	return ep;
}

void world_destroy(struct world *w, rxw_endpoint *ep)
{
	(void)w;
	world_poll(ep);
	FUZZ_CHECK(!rxw_endpoint_destroy(ep));
}

void world_poll(rxw_endpoint *ep)
{
	struct rxw_shard *s = &ep->shard[0];
	unsigned n = 0;

	rxw_set_library_thread(ep);
	rxw_set_receiving(s);
	do {
		rxw_receive_batch(s);
		FUZZ_CHECK(++n < POLLS_MOST);
	} while (s->sock->first || s->sock->reports || s->effects.deferred.count ||
		 atomic_load(&s->wheel.inbox));
	rxw_set_receiving(NULL);
	rxw_set_library_thread(NULL);
}

bool world_validated(rxw_endpoint *ep, const struct rxw_addr *a)
{
	bool yes = false;

	for (unsigned i = 0; i < rxw_peer_count(ep->peers.table); i++) {
		struct rxw_peer *p = rxw_peer_at(ep->peers.table, i);

		if (p && rxw_addr_equal(&p->addr, a))
			yes = atomic_load(&p->validated_at) != 0;
	}
	return yes;
}

static struct rxw_io_sock *socket_of(const struct rxw_addr *to)
{
	for (unsigned i = 0; i < SOCKETS; i++)
		if (sockets[i] && rxw_addr_equal(&sockets[i]->addr, to))
			return sockets[i];
	return NULL;
}

bool world_deliver(const struct rxw_addr *from, const struct rxw_addr *to, const uint8_t *bytes,
		   uint32_t length, uint32_t segment)
{
	struct rxw_io_sock *s = socket_of(to);
	struct packet *p;

	if (!s || !length || length > RXW_BUF_SIZE)
		return false;
	p = malloc(sizeof(*p) + length);
	if (!p)
		exit(99);
	*p = (struct packet){.from = *from,
			     .to = *to,
			     .length = length,
			     .segment = segment && segment < length ? segment : length};
	memcpy(p->bytes, bytes, length);
	*s->last = p;
	s->last = &p->next;
	return true;
}

struct packet *world_take(struct world *w)
{
	struct packet *p = w->sent;

	if (!p)
		return NULL;
	w->sent = p->next;
	if (!w->sent)
		w->sent_tail = &w->sent;
	w->constants = rxw_constants;
	w->constants.inline_us = 0; /* a simulated clock gives no durations of handlers */
	w->sent_count--;
	p->next = NULL;
	return p;
}

void world_report(const struct rxw_addr *to, const struct rxw_addr *about, int error, uint32_t mtu)
{
	struct rxw_io_sock *s = socket_of(to);

	if (s && s->reports < REPORTS)
		s->report[s->reports++] =
			(struct rxw_io_error){.peer = *about, .error = error, .mtu = mtu};
}

void world_check_packet(const uint8_t *bytes, size_t length)
{
	const uint8_t *body = bytes + RXW_HEADER_SIZE;
	struct rxw_header h;
	struct rxw_ack ack;
	int32_t code;

	FUZZ_CHECK(rxw_header_get(bytes, length, &h));
	length -= RXW_HEADER_SIZE;
	switch (h.type) {
	case RXW_DATA:
		FUZZ_CHECK(h.seq && h.call && h.serial);
		break;
	case RXW_ACK:
		FUZZ_CHECK(rxw_ack_get(body, length, 0, &ack) && ack.trailer_words == 4);
		FUZZ_CHECK(ack.reason != RXW_ACK_PING || (h.flags & RXW_REQUEST_ACK));
		break;
	case RXW_ABORT:
		FUZZ_CHECK(length == 4 && rxw_abort_get(body, 4, &code) && code);
		break;
	case RXW_BUSY:
		FUZZ_CHECK(!(h.flags & RXW_CLIENT_INITIATED));
		break;
	case RXW_DEBUG:
	case RXW_VERSION:
		FUZZ_CHECK(!(h.flags & RXW_CLIENT_INITIATED) && length);
		break;
	default:
		FUZZ_CHECK(!"a type that we send");
	}
}
