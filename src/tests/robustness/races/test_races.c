/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random use of the API by several threads while packets arrive: calls begun, written, read,
 * polled, aborted, cancelled and ended by different threads, callbacks that end calls, and
 * endpoints that are stopped and destroyed meanwhile. For the thread and address sanitizers; the
 * test itself checks bytes, and that everything ends and nothing is left.
 *
 * Rounds follow each other until RXW_RACES_SECONDS have passed (default 2) or RXW_RACES_ROUNDS are
 * done (default 1000000). Each has a seed, RXW_TEST_SEED the first; a failed round prints its seed.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rxwire/rxwire.h>

#include "tests/support/constants.h"

#include "base/hash.h"

#define SLOTS	    8 /* calls at a time */
#define CALLERS	    3
#define SERVERS	    2
#define CLIENTS	    2
#define CONNECTIONS 4
#define ASK	    16 /* bytes: op, bytes of the reply, code, seed */
/* With the op in its low bits. Requests of the forged-packet thread lack it. */
#define OURS	    0x0ac75500u
#define ROUND_LIMIT 120 /* seconds without the end of a call after which the test hangs */

enum op {
	OP_REPLY,
	OP_ABORT,
	OP_SLEEP,
	OP_NESTED,
	OP_LATE, /* a part of the reply, then an abort */
	OP_COUNT
};

/* A call that other threads may abort. The thread that takes it out of here ends it. */
struct slot {
	pthread_mutex_t lock; /* recursive: a callback may run inside a call made under it */
	rxw_call *call;	      /* lock; NULL = none */
	bool sent;	      /* lock: from here on its callback may end it */
	bool missed;	      /* lock: it was called before that */
	struct round *round;
	rxw_queue *queue; /* of the engine of its call */
	uint32_t seed;
	_Atomic(bool) busy; /* claimed by a caller until the call has ended */
	_Atomic(uint64_t) got;
};

struct round {
	uint64_t seed;
	rxw_engine *engine[2];
	rxw_queue *queue[2]; /* of the engines, for calls of all threads */
	rxw_endpoint *server[SERVERS], *client[CLIENTS];
	struct sockaddr_storage address[SERVERS];
	rxw_connection *connection[CONNECTIONS];
	struct slot slot[SLOTS];
	_Atomic(unsigned) good;
	_Atomic(bool) quiet; /* callers are done: no more noise */
	pthread_mutex_t lock;
	pthread_cond_t moved;	/* with lock: one of the next three changed */
	unsigned begun, ended;	/* lock */
	unsigned callbacks;	/* lock; calls that callbacks have yet to end */
	unsigned calls;		/* total number of calls to begin */
	unsigned stop_at;	/* the servers stop after this many */
};

struct thread {
	struct round *round;
	uint64_t prng;
	pthread_t id;
};

static _Atomic(uint64_t) current_seed;

static void fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
static void fail(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	fprintf(stderr, "races: seed %llu: ", (unsigned long long)atomic_load(&current_seed));
	vfprintf(stderr, format, ap);
	fputc('\n', stderr);
	va_end(ap);
	abort();
}

static unsigned draw(uint64_t *prng, unsigned below)
{
	return (unsigned)((rxw_prng(prng) >> 33) % below);
}

static void nap(unsigned us)
{
	struct timespec t = {.tv_nsec = (long)us * 1000};

	nanosleep(&t, NULL);
}

static void put32(uint8_t *p, uint32_t v)
{
	memcpy(p, &v, sizeof(v));
}

static uint32_t get32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static uint8_t pattern(uint32_t seed, uint64_t at)
{
	return (uint8_t)(seed + at + (at >> 7) * 3);
}

static rxw_endpoint *endpoint(struct round *r, unsigned i, bool server, uint64_t *prng)
{
	struct sockaddr_in any = {.sin_family = AF_INET};
	struct rxw_constants constants = rxw_constants;
	struct rxw_config config;
	struct rxw_endpoint_options o = {.size = sizeof(o),
					 .address = (struct sockaddr *)&any,
					 .address_len = sizeof(any),
					 .config = &config,
					 .server = server,
					 .paused = server};
	rxw_endpoint *ep;
	int rc;

	any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	rxw_config_init(&config, sizeof(config));
	config.dead_ms = 1000;
	config.listeners = 1 + draw(prng, 2);
	config.window = draw(prng, 3) ? 255 : 8;
	config.workers_max = 1 + draw(prng, 6);
	config.queue = draw(prng, 3) ? 64 : 1;
	config.gso = draw(prng, 3) ? RXW_AUTO : RXW_OFF;
	constants.sendq_packets = draw(prng, 3) ? 256 : 8;
	constants.call_memory = 256u << 10;
	constants.steer = draw(prng, 4) ? 0 : 2;
	rc = rxw_endpoint_create_with(r->engine[i % 2], &o, &constants, &ep);
	if (rc)
		fail("no endpoint: %s", rxw_strerror(rc));
	return ep;
}

/*
 * -- Servers --------------------------------------------------------------------------------------
 */

static int32_t reply(rxw_call *call, uint32_t size, uint32_t seed)
{
	uint8_t data[4096];

	for (uint32_t at = 0; at < size;) {
		uint32_t n = size - at < sizeof(data) ? size - at : (uint32_t)sizeof(data);

		for (uint32_t i = 0; i < n; i++)
			data[i] = pattern(seed, at + i);
		if (rxw_call_write(call, data, n) != (ssize_t)n)
			return 7;
		at += n;
	}
	return 0;
}

/* A call to the other server, from within a handler. */
static void nested(struct round *r, uint32_t seed)
{
	struct rxw_call_options o = {.size = sizeof(o), .flags = RXW_CALL_TRY, .deadline_ms = 500};
	uint8_t ask[ASK] = {0}, data[64];
	rxw_call *call;

	if (rxw_call_begin(r->connection[seed % CONNECTIONS], &o, &call))
		return;
	put32(ask, OURS | OP_REPLY);
	put32(ask + 4, 40);
	put32(ask + 12, seed);
	if (rxw_call_write(call, ask, sizeof(ask)) != (ssize_t)sizeof(ask) ||
	    rxw_call_read(call, data, 40) < 0)
		seed |= 1; /* it has failed: end it with a code */
	rxw_call_end(call, seed & 1 ? 21 : 0, NULL);
}

static int32_t serve(rxw_call *call, void *context)
{
	struct round *r = context;
	struct rxw_call_statistics stats = {.size = sizeof(stats)};
	uint8_t ask[ASK], data[2048];
	ssize_t n = rxw_call_read(call, ask, sizeof(ask));
	uint32_t seed;

	if (n != (ssize_t)sizeof(ask) || (get32(ask) & 0xffffff00u) != OURS)
		return 8;
	seed = get32(ask + 12);
	for (uint64_t at = 0; (n = rxw_call_read_some(call, data, sizeof(data))) > 0;
	     at += (uint64_t)n)
		for (ssize_t i = 0; i < n; i++)
			if (data[i] != pattern(seed, at + (uint64_t)i))
				fail("byte %llu of a request is wrong",
				     (unsigned long long)at + (unsigned long long)i);
	if (n < 0)
		return 9;
	rxw_call_stats(call, &stats);
	switch (get32(ask) & 0xff) {
	case OP_ABORT:
		return (int32_t)get32(ask + 8);
	case OP_SLEEP:
		nap(get32(ask + 8) % 3000);
		break;
	case OP_NESTED:
		nested(r, seed);
		break;
	case OP_LATE:
		reply(call, get32(ask + 4) / 2, seed);
		return (int32_t)get32(ask + 8);
	default:
		break;
	}
	return reply(call, get32(ask + 4), seed);
}

/* On the receiving thread: takes the first packet and must not wait. */
static int32_t serve_short(rxw_call *call, void *context)
{
	uint8_t ask[ASK];

	(void)context;
	if (rxw_call_read(call, ask, sizeof(ask)) != (ssize_t)sizeof(ask))
		return 8;
	return reply(call, get32(ask + 4) % 20000, get32(ask + 12));
}

/*
 * -- Callers --------------------------------------------------------------------------------------
 */

/* Counts another call; false: there were enough. */
static bool one_more(struct round *r)
{
	bool more;

	pthread_mutex_lock(&r->lock);
	more = r->begun < r->calls;
	r->begun += more;
	pthread_cond_broadcast(&r->moved);
	pthread_mutex_unlock(&r->lock);
	return more;
}

/* No longer visible to threads that abort calls. */
static rxw_call *detach(struct slot *s)
{
	rxw_call *call;

	pthread_mutex_lock(&s->lock);
	call = s->call;
	s->call = NULL;
	pthread_mutex_unlock(&s->lock);
	return call;
}

/* Its call has ended; `by_callback`: it was counted as one that a callback ends. */
static void over(struct slot *s, int32_t code, bool by_callback)
{
	struct round *r = s->round;

	alarm(ROUND_LIMIT);
	if (!code)
		atomic_fetch_add(&r->good, 1);
	atomic_store(&s->busy, false);
	pthread_mutex_lock(&r->lock);
	r->ended++;
	r->callbacks -= by_callback;
	pthread_cond_broadcast(&r->moved);
	pthread_mutex_unlock(&r->lock);
}

static void check(struct slot *s, const uint8_t *data, ssize_t n)
{
	uint64_t at = atomic_load(&s->got);

	for (ssize_t i = 0; i < n; i++)
		if (data[i] != pattern(s->seed, at + (uint64_t)i))
			fail("byte %llu of a reply is wrong",
			     (unsigned long long)at + (unsigned long long)i);
	atomic_store(&s->got, at + (uint64_t)n);
}

/* Reads what has arrived; ends the call once the reply is complete. */
static void on_event(rxw_call *call, unsigned events, void *arg)
{
	struct slot *s = arg;
	uint8_t data[1024];
	ssize_t n;

	pthread_mutex_lock(&s->lock);
	if (!s->sent || s->call != call) {
		s->missed |= (events & RXW_EVENT_DONE) != 0;
		pthread_mutex_unlock(&s->lock);
		return;
	}
	pthread_mutex_unlock(&s->lock);
	while ((n = rxw_call_read_some(call, data, sizeof(data))) > 0)
		check(s, data, n);
	if (n == -RXW_EAGAIN)
		return;
	if (detach(s) != call)
		fail("another thread ended a call of a callback");
	over(s, rxw_call_end(call, 0, NULL), true);
}

static bool write_request(struct slot *s, rxw_call *call, uint64_t *prng)
{
	uint8_t ask[ASK], data[3000];
	unsigned left = draw(prng, 4) ? draw(prng, 400) : draw(prng, 60000), op = draw(prng, 12);

	put32(ask, OURS | (op < OP_COUNT ? op : OP_REPLY));
	put32(ask + 4, draw(prng, 4) ? draw(prng, 3000) : draw(prng, 100000));
	put32(ask + 8, 1 + draw(prng, 1000));
	put32(ask + 12, s->seed);
	if (rxw_call_write(call, ask, sizeof(ask)) != (ssize_t)sizeof(ask))
		return false;
	for (uint64_t at = 0; left;) {
		unsigned n = left < sizeof(data) ? left : (unsigned)sizeof(data);
		ssize_t done;

		for (unsigned i = 0; i < n; i++)
			data[i] = pattern(s->seed, at + i);
		done = rxw_call_write(call, data, n);
		if (done == -RXW_EAGAIN) {
			nap(300);
			continue;
		}
		if (done < 0)
			return false;
		at += (uint64_t)done;
		left -= (unsigned)done;
		if (!draw(prng, 8))
			rxw_call_flush(call);
	}
	return true;
}

/* One thread does everything and blocks. */
static int32_t blocking(struct slot *s, rxw_call *call, uint64_t *prng)
{
	unsigned cancel = draw(prng, 6);
	uint8_t data[2048];
	ssize_t n = 0;

	if (cancel == 0)
		return rxw_call_end(detach(s), 31, NULL);
	if (write_request(s, call, prng)) {
		if (cancel == 1)
			return rxw_call_end(detach(s), 32, NULL);
		while ((n = draw(prng, 2) ? rxw_call_read(call, data, 1 + draw(prng, 2000))
					  : rxw_call_read_some(call, data, sizeof(data))) > 0) {
			check(s, data, n);
			if (cancel == 2)
				break;
		}
	}
	return rxw_call_end(detach(s), cancel == 2 ? 33 : 0, NULL);
}

/* With a queue that threads share: an entry may wake another one. */
static int32_t polling(struct slot *s, rxw_call *call, uint64_t *prng)
{
	struct rxw_queue_event event;
	uint8_t data[2048];
	ssize_t n = 0;

	if (write_request(s, call, prng) && !rxw_call_send_end(call)) {
		for (;;) {
			n = rxw_call_read_some(call, data, sizeof(data));
			if (n > 0)
				check(s, data, n);
			else if (n != -RXW_EAGAIN)
				break;
			else if (!rxw_call_events(call))
				rxw_queue_next(s->queue, &event, 1, 20);
		}
	}
	return rxw_call_end(detach(s), 0, NULL);
}

/*
 * The callback ends the call. This thread uses the call for the last time when it sets the callback
 * or, if it was set at the beginning, when it sends the end. An abort may run that callback at any
 * time, also before the end is sent, so hold the slot's lock, which the callback takes, meanwhile.
 */
static void with_callback(struct slot *s, rxw_call *call, uint64_t *prng, bool later)
{
	bool good = write_request(s, call, prng), missed;

	pthread_mutex_lock(&s->lock);
	missed = s->missed;
	s->sent = good && !missed;
	if (s->sent)
		rxw_call_send_end(call);
	pthread_mutex_unlock(&s->lock);
	if (!good || missed)
		over(s, rxw_call_end(detach(s), good ? 0 : 34, NULL), true);
	else if (later)
		rxw_call_set_callback(call, on_event, s);
}

/* Returns a free slot with a new call, or NULL. */
static struct slot *begin(struct round *r, uint64_t *prng, unsigned kind, rxw_call **call)
{
	struct rxw_call_options o = {.size = sizeof(o)};
	struct slot *s = &r->slot[draw(prng, SLOTS)];
	unsigned to = draw(prng, CONNECTIONS);

	if (atomic_exchange(&s->busy, true))
		return NULL;
	s->queue = r->queue[(to % CLIENTS + 1) % 2];
	s->seed = draw(prng, 1000000);
	atomic_store(&s->got, 0);
	o.deadline_ms = draw(prng, 10) ? 0 : 1 + draw(prng, 100);
	o.flags = kind == 0 ? (draw(prng, 2) ? RXW_CALL_TRY : 0) : RXW_CALL_NONBLOCK;
	if (kind == 1)
		o.queue = s->queue;
	if (kind == 3) {
		o.callback = on_event;
		o.arg = s;
	}
	pthread_mutex_lock(&s->lock);
	s->sent = s->missed = false;
	pthread_mutex_unlock(&s->lock);
	if (rxw_call_begin(r->connection[to], &o, call)) {
		atomic_store(&s->busy, false);
		return NULL;
	}
	pthread_mutex_lock(&r->lock);
	r->callbacks += kind > 1;
	pthread_mutex_unlock(&r->lock);
	pthread_mutex_lock(&s->lock);
	s->call = *call;
	pthread_mutex_unlock(&s->lock);
	return s;
}

static void *caller(void *arg)
{
	struct thread *t = arg;
	struct round *r = t->round;

	while (one_more(r)) {
		unsigned kind = draw(&t->prng, 4);
		rxw_call *call;
		struct slot *s = begin(r, &t->prng, kind, &call);

		if (!s)
			nap(100 + draw(&t->prng, 400));
		else if (kind == 0)
			over(s, blocking(s, call, &t->prng), false);
		else if (kind == 1)
			over(s, polling(s, call, &t->prng), false);
		else
			with_callback(s, call, &t->prng, kind == 2);
	}
	return NULL;
}

/* Aborts other threads' calls, reads statistics. */
static void *meddler(void *arg)
{
	struct rxw_call_statistics call_stats = {.size = sizeof(call_stats)};
	uint64_t counters[8];
	struct thread *t = arg;
	struct round *r = t->round;

	while (!atomic_load(&r->quiet)) {
		struct slot *s = &r->slot[draw(&t->prng, SLOTS)];
		unsigned what = draw(&t->prng, 8);

		pthread_mutex_lock(&s->lock);
		if (s->call && what == 0)
			rxw_call_abort(s->call, (int32_t)draw(&t->prng, 100));
		else if (s->call && what == 1)
			rxw_call_stats(s->call, &call_stats);
		else if (s->call && what == 2)
			rxw_call_error(s->call, NULL);
		pthread_mutex_unlock(&s->lock);
		if (what == 4)
			rxw_endpoint_counters(r->client[draw(&t->prng, CLIENTS)], counters, 8);
		if (what == 5)
			rxw_connection_set_timeouts(r->connection[draw(&t->prng, CONNECTIONS)],
						    1000 + draw(&t->prng, 500), 0, 0);
		nap(50 + draw(&t->prng, 500));
	}
	return NULL;
}

/* Sends forged packets. */
static void *send_forged(void *arg)
{
	struct thread *t = arg;
	struct round *r = t->round;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	uint8_t packet[200];

	while (fd >= 0 && !atomic_load(&r->quiet)) {
		size_t size = 20 + draw(&t->prng, sizeof(packet) - 20);

		for (size_t i = 0; i < size; i++)
			packet[i] = (uint8_t)draw(&t->prng, 256);
		packet[0] |= 0x80;
		if (draw(&t->prng, 2))
			memcpy(packet + 4, "\0\0\1\0\0\0\0\1\0\0\0\1\0\0\0\1", 16);
		packet[20] = (uint8_t)(draw(&t->prng, 3) ? 1 : draw(&t->prng, 14));
		packet[21] = (uint8_t)(draw(&t->prng, 4) ? 5 : draw(&t->prng, 256));
		packet[23] = 0;
		packet[26] = 0;
		packet[27] = (uint8_t)(1 + draw(&t->prng, 3));
		(void)sendto(fd, packet, size, 0,
			     (struct sockaddr *)&r->address[draw(&t->prng, SERVERS)],
			     sizeof(struct sockaddr_in));
		nap(20 + draw(&t->prng, 200));
	}
	if (fd >= 0)
		close(fd);
	return NULL;
}

/* Clients that are created, call and are destroyed while packets for them are in flight. */
static void *short_lived_clients(void *arg)
{
	struct thread *t = arg;
	struct round *r = t->round;

	while (!atomic_load(&r->quiet)) {
		rxw_endpoint *ep = endpoint(r, draw(&t->prng, 2), false, &t->prng);
		unsigned at = draw(&t->prng, SERVERS), calls = draw(&t->prng, 4);
		rxw_connection *c;
		int rc;

		if (rxw_connection_create(ep, (struct sockaddr *)&r->address[at],
					  sizeof(struct sockaddr_in), 1, NULL, &c))
			fail("no connection");
		while (calls--) {
			struct rxw_call_options o = {.size = sizeof(o),
						     .flags = RXW_CALL_NONBLOCK};
			uint8_t ask[ASK] = {0};
			rxw_call *call;

			if (rxw_call_begin(c, &o, &call))
				break;
			put32(ask, OURS | OP_REPLY);
			put32(ask + 4, draw(&t->prng, 50000));
			if (rxw_call_write(call, ask, sizeof(ask)) > 0)
				rxw_call_send_end(call);
			nap(draw(&t->prng, 1500));
			rxw_call_end(call, draw(&t->prng, 2) ? 41 : 0, NULL);
		}
		rxw_connection_release(c);
		rc = rxw_endpoint_destroy(ep);
		if (rc)
			fail("cannot destroy a short-lived client: %s", rxw_strerror(rc));
		nap(draw(&t->prng, 2000));
	}
	return NULL;
}

/* Stops the servers, during a round or at its end, and destroys them. */
static void *stopper(void *arg)
{
	struct thread *t = arg;
	struct round *r = t->round;

	pthread_mutex_lock(&r->lock);
	while (r->begun < r->stop_at)
		pthread_cond_wait(&r->moved, &r->lock);
	pthread_mutex_unlock(&r->lock);
	for (unsigned i = 0; i < SERVERS; i++) {
		int rc;

		if (draw(&t->prng, 2))
			(void)rxw_endpoint_stop(r->server[i], draw(&t->prng, 50));
		rc = rxw_endpoint_destroy(r->server[i]);
		if (rc)
			fail("cannot destroy a server: %s", rxw_strerror(rc));
		r->server[i] = NULL;
	}
	return NULL;
}

/*
 * -- A round --------------------------------------------------------------------------------------
 */

static void add_service(struct round *r, rxw_endpoint *ep, uint16_t id, unsigned flags)
{
	struct rxw_service_options o = {.size = sizeof(o),
					.id = id,
					.name = "races",
					.handler = flags & RXW_SERVICE_INLINE ? serve_short : serve,
					.context = r,
					.flags = flags};

	if (rxw_service_add(ep, &o, NULL))
		fail("no service");
}

static void set_up(struct round *r, uint64_t *prng)
{
	pthread_mutexattr_t attr;
	struct rxw_config config;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	for (unsigned i = 0; i < SLOTS; i++) {
		pthread_mutex_init(&r->slot[i].lock, &attr);
		r->slot[i].round = r;
	}
	pthread_mutexattr_destroy(&attr);
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->moved, NULL);
	rxw_config_init(&config, sizeof(config));
	config.memory = draw(prng, 3) ? 64u << 20 : 4u << 20;
	for (unsigned i = 0; i < 2; i++)
		if (rxw_engine_create(&config, &r->engine[i]) ||
		    rxw_queue_create(r->engine[i], NULL, &r->queue[i]))
			fail("no engine");
	for (unsigned i = 0; i < SERVERS; i++) {
		socklen_t len = sizeof(r->address[i]);

		r->server[i] = endpoint(r, i, true, prng);
		add_service(r, r->server[i], 1, 0);
		add_service(r, r->server[i], 2, RXW_SERVICE_INLINE);
		add_service(r, r->server[i], 3, RXW_SERVICE_REACH);
		if (rxw_endpoint_start(r->server[i]) ||
		    rxw_endpoint_address(r->server[i], &r->address[i], &len))
			fail("a server does not start");
	}
	for (unsigned i = 0; i < CLIENTS; i++)
		r->client[i] = endpoint(r, i + 1, false, prng);
	for (unsigned i = 0; i < CONNECTIONS; i++)
		if (rxw_connection_create(r->client[i % CLIENTS],
					  (struct sockaddr *)&r->address[i / 2 % SERVERS],
					  sizeof(struct sockaddr_in), (uint16_t)(1 + i % 3), NULL,
					  &r->connection[i]))
			fail("no connection");
	r->calls = 60 + draw(prng, 200);
	r->stop_at = draw(prng, 2) ? 1 + draw(prng, r->calls) : r->calls;
}

static void tear_down(struct round *r)
{
	for (unsigned i = 0; i < CONNECTIONS; i++)
		rxw_connection_release(r->connection[i]);
	for (unsigned i = 0; i < CLIENTS; i++) {
		int rc = rxw_endpoint_destroy(r->client[i]);

		if (rc)
			fail("cannot destroy a client: %s", rxw_strerror(rc));
	}
	for (unsigned i = 0; i < 2; i++) {
		int rc = rxw_queue_destroy(r->queue[i]);

		rc = rc ? rc : rxw_engine_destroy(r->engine[i]);
		if (rc)
			fail("cannot destroy an engine: %s", rxw_strerror(rc));
	}
	for (unsigned i = 0; i < SLOTS; i++) {
		if (r->slot[i].call || atomic_load(&r->slot[i].busy))
			fail("a call is left");
		pthread_mutex_destroy(&r->slot[i].lock);
	}
	pthread_cond_destroy(&r->moved);
	pthread_mutex_destroy(&r->lock);
}

static void start(struct thread *t, struct round *r, uint64_t *prng, void *(*run)(void *))
{
	t->round = r;
	t->prng = rxw_prng(prng);
	if (pthread_create(&t->id, NULL, run, t))
		fail("no thread");
}

static void run_round(uint64_t seed, unsigned *calls, unsigned *good)
{
	struct round *r = calloc(1, sizeof(*r));
	uint64_t prng = seed * 0x9e3779b97f4a7c15ull + 1;
	struct thread t[CALLERS + 4];

	if (!r)
		exit(99);
	atomic_store(&current_seed, seed);
	alarm(ROUND_LIMIT);
	r->seed = seed;
	set_up(r, &prng);
	for (unsigned i = 0; i < CALLERS; i++)
		start(&t[i], r, &prng, caller);
	start(&t[CALLERS], r, &prng, meddler);
	start(&t[CALLERS + 1], r, &prng, send_forged);
	start(&t[CALLERS + 2], r, &prng, short_lived_clients);
	start(&t[CALLERS + 3], r, &prng, stopper);
	for (unsigned i = 0; i < CALLERS; i++)
		pthread_join(t[i].id, NULL);
	/* The remaining calls are ended by their callbacks. */
	pthread_mutex_lock(&r->lock);
	while (r->callbacks)
		pthread_cond_wait(&r->moved, &r->lock);
	pthread_mutex_unlock(&r->lock);
	pthread_join(t[CALLERS + 3].id, NULL);
	atomic_store(&r->quiet, true);
	for (unsigned i = CALLERS; i < CALLERS + 3; i++)
		pthread_join(t[i].id, NULL);
	tear_down(r);
	*calls += r->ended;
	*good += atomic_load(&r->good);
	free(r);
}

static void on_alarm(int signal)
{
	(void)signal;
	fail("the round does not end");
}

int main(void)
{
	const char *text = getenv("RXW_TEST_SEED");
	uint64_t seed = text ? strtoull(text, NULL, 0) : 1;
	long seconds = (text = getenv("RXW_RACES_SECONDS")) ? atol(text) : 2;
	long rounds = (text = getenv("RXW_RACES_ROUNDS")) ? atol(text) : 1000000, n = 0;
	unsigned calls = 0, good = 0;
	struct timespec begin_at, t;

	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGALRM, on_alarm);
	clock_gettime(CLOCK_MONOTONIC, &begin_at);
	do {
		run_round(seed + (uint64_t)n++, &calls, &good);
		clock_gettime(CLOCK_MONOTONIC, &t);
		/* On a busy machine a round takes so long that all of its calls time out. */
	} while (n < rounds && (t.tv_sec - begin_at.tv_sec < seconds || (!good && n < 20)));
	printf("seeds %llu to %llu: %u calls, %u of them successful\n", (unsigned long long)seed,
	       (unsigned long long)seed + (unsigned long long)n - 1, calls, good);
	if (!good) {
		fprintf(stderr, "no call succeeded\n");
		return 1;
	}
	return 0;
}
