/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random sequences of the public functions of a call, at both ends, compared with a model: what each
 * function must return, and which bytes the peer must get. Each call has a seed.
 * RXW_TEST_SEQUENCES=N: calls of each thread and test; RXW_TEST_SEED=N: the first seed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness.h"

#define WORKERS	  140 /* services: handlers on workers, */
#define QUEUED	  141 /* and a queue */
#define THREADS	  4
#define STEPS	  48
#define MOST	  (256u << 10) /* bytes of a stream, */
#define MOST_WAIT (24u << 10)  /* and of a handler that waits: its client may wait, too */
#define HEAD	  8u	       /* the first bytes of a request: the index of the call */
#define CODE	  77

/* One end of a call, and what the model knows of it. The thread that drives it. */
struct side {
	rxw_call *call;
	const char *op; /* the latest one */
	struct pair *pair;
	rxw_queue *queue; /* client: of its thread */
	uint64_t random;
	bool client, nonblock, deferred;
	unsigned step;
	size_t written, got, most; /* bytes that were accepted; that were read */
	size_t reserved;	   /* not committed */
	struct iovec lent[8];	   /* valid until the next read */
	unsigned lent_count;
	bool ended, eof, failed; /* the stream ended; the peer's stream has; the call failed */
	bool vague;		 /* a write failed: it is unknown how much of it was accepted */
	bool spoilt;		 /* it aborted the call, or did not wait for the end */
	rxw_code result;
	_Atomic(unsigned) callbacks;
};

struct pair {
	unsigned seed;
	struct side client, server;
	bool begun; /* a handler or the queue got the call */
};

static struct h_bed bed;
static rxw_queue *queue;
static int file[2], bad_file; /* the streams of clients and servers; one that cannot be read */
static struct pair *pairs;
static unsigned pair_count;
static _Atomic(unsigned) next_pair;
static _Atomic(bool) over;
static bool disturbed; /* connections are aborted meanwhile */
static rxw_connection *connection[THREADS];

#define MUST(s, condition, ...)                                                          \
	ck_assert_msg(condition, "seed %u, %s, step %u, %s: %s; %s", (s)->pair->seed,    \
		      (s)->client ? "client" : "server", (s)->step, (s)->op, #condition, \
		      text(__VA_ARGS__))

__attribute__((format(printf, 1, 2))) static const char *text(const char *format, ...)
{
	static _Thread_local char line[200];
	va_list ap;

	va_start(ap, format);
	vsnprintf(line, sizeof(line), format, ap);
	va_end(ap);
	return line;
}

static unsigned draw(struct side *s, unsigned below)
{
	s->random = s->random * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(s->random >> 33) % below;
}

/* Small and large lengths, and 0. */
static size_t draw_length(struct side *s)
{
	static const unsigned most[] = {1, 20, 300, 3000, 20000, 90000};

	return draw(s, most[draw(s, 6)] + 1);
}

static size_t room_of(const struct side *s)
{
	return s->most - s->written;
}

static uint32_t own_pattern(const struct side *s)
{
	return s->client ? 1 : 2;
}

/* ---- results that the model allows ---- */

/* Nothing may be written: the stream has ended, or slices are reserved. */
static bool is_locked(const struct side *s)
{
	return s->ended || s->reserved;
}

/* A negative result of a function that the model permits. */
static void expect_error(struct side *s, ssize_t r, bool writes)
{
	unsigned events = rxw_call_events(s->call);

	if (r == -RXW_EAGAIN) {
		MUST(s, s->nonblock, "-RXW_EAGAIN");
		return;
	}
	MUST(s, r == -RXW_ECALL, "result %zd", r);
	s->failed = rxw_call_error(s->call, NULL) != 0;
	/* Otherwise the server needs no more of the request. */
	MUST(s, s->failed || (s->client && writes && (events & (RXW_EVENT_READ | RXW_EVENT_DONE))),
	     "events %x", events);
	s->vague |= writes;
}

static void expect_written(struct side *s, ssize_t r, size_t length)
{
	if (is_locked(s)) {
		MUST(s, r == -RXW_ESTATE, "result %zd of %zu", r, length);
	} else if (r < 0) {
		expect_error(s, r, true);
	} else {
		MUST(s, (size_t)r == length || (s->nonblock && r > 0 && (size_t)r < length),
		     "result %zd of %zu", r, length);
		s->written += (size_t)r;
	}
}

static void check_lent(struct side *s)
{
	size_t at = s->got;

	for (unsigned i = 0; i < s->lent_count; i++)
		at -= s->lent[i].iov_len;
	for (unsigned i = 0; i < s->lent_count; i++) {
		MUST(s,
		     h_pattern_is(s->lent[i].iov_base, at, s->lent[i].iov_len, 3 - own_pattern(s)),
		     "slice %u at %zu", i, at);
		at += s->lent[i].iov_len;
	}
}

/* Before a read: its result is known if false. The read of a client ends its request. */
static bool may_read(struct side *s)
{
	check_lent(s);
	if (s->client && s->reserved && !s->ended)
		return false;
	s->lent_count = 0;
	s->ended |= s->client;
	return true;
}

static void expect_read(struct side *s, ssize_t r, size_t length, bool all)
{
	if (r < 0) {
		expect_error(s, r, false);
		return;
	}
	MUST(s, (size_t)r <= length, "result %zd of %zu", r, length);
	MUST(s, !s->eof || !r, "%zd bytes after the end", r);
	s->got += (size_t)r;
	if (length && (!r || (all && !s->nonblock && (size_t)r < length)))
		s->eof = true;
}

/* ---- the functions of a call ---- */

static void do_write(struct side *s)
{
	size_t length = draw_length(s);
	uint8_t *data;

	if (length > room_of(s))
		length = room_of(s);
	data = malloc(length + 1);
	h_pattern(data, s->written, length, own_pattern(s));
	expect_written(s, rxw_call_write(s->call, data, length), length);
	free(data);
}

static void do_sendfile(struct side *s)
{
	size_t length = draw_length(s), most = room_of(s) < length ? room_of(s) : length;
	bool bad = draw(s, 4) == 0;
	ssize_t r;

	/* The file ends with the longest stream. */
	if (s->most < MOST)
		length = most;
	r = rxw_call_sendfile(s->call, bad ? bad_file : file[!s->client], (off_t)s->written,
			      length);
	if (!bad || is_locked(s) || !length || r == -RXW_EAGAIN || r == -RXW_ECALL)
		expect_written(s, r, most);
	else
		MUST(s, r == -RXW_ESYS && errno == EBADF, "result %zd", r);
	MUST(s, rxw_call_sendfile(s->call, -1, 0, 1) == -RXW_EINVAL, "no file");
}

static void do_reserve(struct side *s)
{
	size_t length = draw_length(s), sum = 0;
	struct iovec iov[8];
	unsigned count = 1 + draw(s, 8), room = count;
	ssize_t r;

	if (length > room_of(s))
		length = room_of(s);
	r = rxw_call_reserve(s->call, length, iov, &count);
	if (!length) {
		MUST(s, r == -RXW_EINVAL, "result %zd", r);
	} else if (is_locked(s)) {
		MUST(s, r == -RXW_ESTATE, "result %zd", r);
	} else if (r < 0) {
		expect_error(s, r, true);
	} else {
		MUST(s, r > 0 && (size_t)r <= length && count && count <= room, "%zd, %u", r,
		     count);
		for (unsigned i = 0; i < count; i++) {
			h_pattern(iov[i].iov_base, s->written + sum, iov[i].iov_len,
				  own_pattern(s));
			sum += iov[i].iov_len;
		}
		MUST(s, sum == (size_t)r, "%zu of %zd", sum, r);
		s->reserved = sum;
	}
}

static void do_commit(struct side *s)
{
	size_t length = draw(s, 4) ? s->reserved : draw(s, (unsigned)s->reserved + 1);
	int r;

	MUST(s, rxw_call_commit(s->call, s->reserved + 1) == -RXW_EINVAL, "too much");
	r = rxw_call_commit(s->call, length);
	s->reserved = 0;
	if (r)
		expect_error(s, r, true);
	else
		s->written += length;
	MUST(s, r != -RXW_EAGAIN, "committed bytes are accepted");
}

static void do_flush(struct side *s)
{
	int r = rxw_call_flush(s->call);

	if (s->reserved)
		MUST(s, r == -RXW_ESTATE, "result %d", r);
	else if (r && !(s->ended && r == -RXW_EAGAIN))
		expect_error(s, r, true);
}

static void do_send_end(struct side *s)
{
	int r = rxw_call_send_end(s->call);

	if (!s->client || s->reserved) {
		MUST(s, r == -RXW_ESTATE, "result %d", r);
		return;
	}
	s->ended = true;
	if (r)
		expect_error(s, r, true);
}

static void read_bytes(struct side *s, bool all)
{
	ssize_t (*read_fn)(rxw_call *, void *, size_t) = all ? rxw_call_read : rxw_call_read_some;
	size_t length = draw_length(s), at = s->got;
	uint8_t *data = malloc(length + 1);
	bool may = may_read(s);
	ssize_t r = read_fn(s->call, data, length);

	if (may)
		expect_read(s, r, length, all);
	else
		MUST(s, r == -RXW_ESTATE, "result %zd", r);
	if (r > 0)
		MUST(s, h_pattern_is(data, at, (size_t)r, 3 - own_pattern(s)), "%zd at %zu", r, at);
	free(data);
}

static void do_read(struct side *s)
{
	read_bytes(s, true);
}

static void do_read_some(struct side *s)
{
	read_bytes(s, false);
}

static void do_readv(struct side *s)
{
	unsigned count = 1 + draw(s, 8), room = count;
	size_t length = 1 + draw_length(s), sum = 0;
	bool may = may_read(s);
	ssize_t r = rxw_call_readv(s->call, length, s->lent, &count);

	if (!may) {
		MUST(s, r == -RXW_ESTATE, "result %zd", r);
		return;
	}
	expect_read(s, r, length, false);
	MUST(s, r > 0 ? count && count <= room : !count, "%zd in %u", r, count);
	for (unsigned i = 0; i < count; i++)
		sum += s->lent[i].iov_len;
	MUST(s, r <= 0 || sum == (size_t)r, "%zu of %zd", sum, r);
	s->lent_count = count;
	check_lent(s);
}

static void do_events(struct side *s)
{
	unsigned events = rxw_call_events(s->call),
		 all = RXW_EVENT_READ | RXW_EVENT_WRITE | RXW_EVENT_DONE;

	MUST(s, !(events & ~all), "%x", events);
	MUST(s, !s->failed || events == all, "%x", events);
	MUST(s, rxw_call_set_events(s->call, 0) == -RXW_EINVAL, "none");
	MUST(s, rxw_call_set_events(s->call, all + 1) == -RXW_EINVAL, "unknown");
	MUST(s, rxw_call_set_events(s->call, 1 + draw(s, all)) == 0, "some");
}

static void count_event(rxw_call *call, unsigned events, void *arg)
{
	struct side *s = arg;

	ck_assert_ptr_eq(call, s->call);
	ck_assert_uint_ne(events, 0);
	atomic_fetch_add(&s->callbacks, 1);
}

static void do_callback(struct side *s)
{
	int r = rxw_call_set_callback(s->call, draw(s, 2) ? count_event : NULL, s);

	MUST(s, r == (s->client || s->deferred ? 0 : -RXW_ESTATE), "result %d", r);
}

/* A client's calls go to the queue of its thread, which has no other calls. */
static void do_queue(struct side *s)
{
	struct rxw_queue_event v[4];
	int r, n;

	if (!s->client && s->queue)
		return;
	r = rxw_call_set_queue(s->call, draw(s, 3) ? s->queue : NULL, s);
	MUST(s, r == (s->client || s->deferred ? 0 : -RXW_ESTATE), "result %d", r);
	if (!s->queue)
		return;
	n = rxw_queue_next(s->queue, v, 4, 0);
	MUST(s, n >= 0 && n <= 1, "%d entries of one call", n);
	MUST(s, !n || (v[0].call == s->call && v[0].arg == s), "another call");
}

static void do_abort(struct side *s)
{
	if (draw(s, 8))
		return;
	rxw_call_abort(s->call, draw(s, 2) ? CODE : 0);
	s->spoilt = true;
	s->failed = rxw_call_error(s->call, NULL) != 0;
}

static void do_defer(struct side *s)
{
	int r;

	if (draw(s, 4))
		return;
	r = rxw_call_defer(s->call);
	if (s->client) {
		MUST(s, r == -RXW_EINVAL, "result %d", r);
	} else if (s->deferred) {
		MUST(s, r == -RXW_ESTATE, "result %d", r);
	} else {
		MUST(s, r == 0, "result %d", r);
		s->deferred = s->nonblock = true;
		s->most = MOST;
	}
}

static void do_look(struct side *s)
{
	struct rxw_call_statistics stats = {.size = sizeof(stats)};
	struct sockaddr_storage address;
	socklen_t length;

	MUST(s, rxw_call_stats(s->call, &stats) == 0, "stats");
	MUST(s, stats.bytes_received >= s->got, "%zu received, %zu read",
	     (size_t)stats.bytes_received, s->got);
	MUST(s, rxw_call_packet_size(s->call) > 0, "packet");
	MUST(s, rxw_call_peer(s->call, &address, &length) == 0 && length, "peer");
	MUST(s, rxw_call_local(s->call, &address, &length) == 0, "local");
	rxw_call_set_status(s->call, (uint8_t)s->step);
	(void)rxw_call_peer_status(s->call);
	MUST(s, s->deferred || s->client || rxw_call_end(s->call, 0, NULL) == -2, "in its handler");
	if (rxw_call_error(s->call, NULL))
		s->failed = true;
}

static void do_batch(struct side *s)
{
	if (draw(s, 2))
		rxw_batch_begin();
	else
		rxw_batch_end();
}

static const struct op {
	const char *name;
	void (*run)(struct side *s);
	unsigned weight;
} ops[] = {
	{"write", do_write, 5},	  {"sendfile", do_sendfile, 3},	    {"reserve", do_reserve, 6},
	{"commit", do_commit, 4}, {"flush", do_flush, 2},	    {"send_end", do_send_end, 1},
	{"read", do_read, 2},	  {"read_some", do_read_some, 2},   {"readv", do_readv, 3},
	{"events", do_events, 1}, {"set_callback", do_callback, 1}, {"set_queue", do_queue, 1},
	{"abort", do_abort, 1},	  {"defer", do_defer, 1},	    {"look", do_look, 2},
	{"batch", do_batch, 1},
};

static bool is_read(const struct op *op)
{
	return op->run == do_read || op->run == do_read_some || op->run == do_readv;
}

/*
 * Before its end a client reads seldom: that ends the request. The beginning of a reply ends the
 * request, too, whose rest never arrives: a server must not wait for it.
 */
static bool is_wise(struct side *s, const struct op *op)
{
	if (s->client)
		return s->ended || !(is_read(op) || op->run == do_send_end) || !draw(s, 4);
	return s->nonblock || s->eof || s->failed || !is_read(op) || !s->written;
}

static void step(struct side *s)
{
	unsigned sum = 0, at;
	const struct op *op = ops;

	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		sum += ops[i].weight;
	for (at = draw(s, sum); at >= op->weight; op++)
		at -= op->weight;
	if (!is_wise(s, op))
		op = &ops[0];
	s->op = op->name;
	s->step++;
	op->run(s);
}

/* ---- the server ---- */

/* The call of the request; NULL: the request was not that long, or failed. */
static struct side *accept_call(rxw_call *call, bool nonblock)
{
	uint8_t head[HEAD];
	uint32_t index;
	struct side *s;

	if (rxw_call_read(call, head, HEAD) != HEAD)
		return NULL;
	memcpy(&index, head, sizeof(index));
	ck_assert_uint_lt(index, pair_count);
	ck_assert(!pairs[index].begun);
	pairs[index].begun = true;
	s = &pairs[index].server;
	s->call = call;
	s->got = HEAD;
	s->nonblock = s->deferred = nonblock;
	s->most = nonblock ? MOST : MOST_WAIT;
	return s;
}

/* The code that the server ends the call with. */
static rxw_code leave(struct side *s)
{
	check_lent(s);
	if (draw(s, 4) && !s->failed)
		return 0;
	s->spoilt = true;
	return CODE;
}

static rxw_code handle(rxw_call *call, void *unused)
{
	struct side *s = accept_call(call, false);
	rxw_code code;

	(void)unused;
	if (!s)
		return CODE;
	for (unsigned n = draw(s, STEPS); s->step < n;)
		step(s);
	code = leave(s);
	if (s->deferred)
		rxw_call_end(call, code, NULL);
	return code;
}

/* Steps of the calls of the queue in turn, whatever events they have. */
static void *serve_queue(void *unused)
{
	struct side **active = calloc(pair_count, sizeof(struct side *)); /* clients may be ahead */
	unsigned count = 0;

	while (count || !atomic_load(&over)) {
		struct rxw_queue_event v[THREADS];
		int n = rxw_queue_next(queue, v, THREADS, count ? 1 : 20);

		for (int i = 0; i < n; i++) {
			struct side *s;

			if (!(v[i].events & RXW_EVENT_CALL))
				continue;
			s = accept_call(v[i].call, true);
			if (s) {
				s->queue = queue;
				active[count++] = s;
			} else {
				rxw_call_end(v[i].call, CODE, NULL);
			}
		}
		for (unsigned i = 0; i < count; i++) {
			struct side *s = active[i];

			if (s->step < STEPS) {
				step(s);
				continue;
			}
			rxw_call_end(s->call, leave(s), NULL);
			active[i--] = active[--count];
		}
	}
	free(active);
	return unused;
}

/* ---- the clients ---- */

static void check_options(struct side *s, rxw_connection *c)
{
	struct rxw_call_options wrong = {.size = sizeof(wrong), .flags = 1u << 9};
	rxw_call *call;

	s->op = "begin";
	MUST(s, rxw_call_begin(c, &wrong, &call) == -RXW_EINVAL, "flags");
	wrong.flags = 0;
	wrong.events = 1u << 9;
	MUST(s, rxw_call_begin(c, &wrong, &call) == -RXW_EINVAL, "events");
	wrong.events = 0;
	wrong.queue = s->queue;
	wrong.callback = count_event;
	MUST(s, rxw_call_begin(c, &wrong, &call) == -RXW_EINVAL, "queue and callback");
}

/* Begins the call and writes its index, which fits into the send queue. */
static bool begin(struct side *s, rxw_connection *c)
{
	uint32_t head[HEAD / 4] = {(uint32_t)(s->pair - pairs)};
	struct rxw_call_options options = {.size = sizeof(options), .arg = s};
	int r;

	check_options(s, c);
	s->nonblock = draw(s, 2);
	options.flags = s->nonblock ? RXW_CALL_NONBLOCK : 0;
	if (draw(s, 3) == 0)
		options.queue = s->queue;
	do
		r = rxw_call_begin(c, &options, &s->call);
	while (r == -RXW_EAGAIN &&
	       rxw_queue_next(s->queue, &(struct rxw_queue_event){.call = NULL}, 1, 1) >= 0);
	if (r == -RXW_ECALL && disturbed)
		return false;
	MUST(s, r == 0, "result %d", r);
	s->most = MOST;
	if (rxw_call_write(s->call, head, HEAD) == HEAD)
		s->written = HEAD;
	else
		MUST(s, disturbed, "the head");
	return s->written;
}

/* Reads to the end. */
static void finish_reading(struct side *s)
{
	rxw_batch_end();
	s->op = "finish";
	if (s->reserved)
		do_commit(s);
	while (!s->eof && !s->failed) {
		if (s->nonblock && !(rxw_call_events(s->call) & RXW_EVENT_READ))
			usleep(draw(s, 3) * 1000);
		do_readv(s);
	}
}

static void end(struct side *s)
{
	bool waits = draw(s, 4) != 0;
	rxw_code code = waits || draw(s, 2) ? 0 : CODE;

	if (waits)
		finish_reading(s);
	check_lent(s);
	s->op = "end";
	s->spoilt |= code || (s->nonblock && !s->eof);
	s->result = rxw_call_end(s->call, code, NULL);
	rxw_batch_end();
}

static void *run_calls(void *arg)
{
	rxw_connection *c = arg;
	rxw_queue *own;
	unsigned i;

	ck_assert_int_eq(rxw_queue_create(bed.client_engine, NULL, &own), 0);
	while ((i = atomic_fetch_add(&next_pair, 1)) < pair_count) {
		struct side *s = &pairs[i].client;

		s->queue = own;
		if (!begin(s, c)) {
			s->spoilt = true;
			if (s->call)
				rxw_call_end(s->call, CODE, NULL);
			continue;
		}
		for (unsigned n = draw(s, STEPS); s->step < n;)
			step(s);
		end(s);
	}
	ck_assert_int_eq(rxw_queue_destroy(own), 0);
	return NULL;
}

/* ---- both ends together ---- */

static void set_up_pairs(void)
{
	const char *calls = getenv("RXW_TEST_SEQUENCES"), *seed = getenv("RXW_TEST_SEED");
	unsigned each = calls ? (unsigned)atoi(calls) : h_small() ? 40 : 250;

	pair_count = THREADS * each;
	pairs = calloc(pair_count, sizeof(*pairs));
	ck_assert_ptr_nonnull(pairs);
	for (unsigned i = 0; i < pair_count; i++) {
		struct pair *p = &pairs[i];

		p->seed = (seed ? (unsigned)atoi(seed) : 1) + i;
		p->client.client = true;
		p->client.pair = p->server.pair = p;
		p->client.random = p->seed * 2 + 1;
		p->server.random = p->seed * 2;
		p->client.op = p->server.op = "none";
	}
	atomic_store(&next_pair, 0);
	atomic_store(&over, false);
}

static int pattern_file(uint32_t seed)
{
	uint8_t *data = malloc(MOST);
	int fd = memfd_create("stream", MFD_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	h_pattern(data, 0, MOST, seed);
	ck_assert_int_eq(write(fd, data, MOST), MOST);
	free(data);
	return fd;
}

static void set_up(void)
{
	for (unsigned i = 0; i < 2; i++)
		file[i] = pattern_file(i + 1);
	bad_file = open("/dev/null", O_WRONLY | O_CLOEXEC);
	ck_assert_int_ge(bad_file, 0);
}

static void tear_down(void)
{
	close(file[0]);
	close(file[1]);
	close(bad_file);
}

/* What one end read of what the other one wrote. */
static void compare(struct side *reader, const struct side *writer)
{
	reader->op = "compare";
	if (writer->vague)
		return;
	if (reader->eof)
		MUST(reader, reader->got == writer->written, "%zu of %zu bytes", reader->got,
		     writer->written);
	else
		MUST(reader, reader->got <= writer->written, "%zu of %zu bytes", reader->got,
		     writer->written);
}

static void check_pairs(void)
{
	for (unsigned i = 0; i < pair_count; i++) {
		struct side *c = &pairs[i].client, *s = &pairs[i].server;

		compare(s, c);
		compare(c, s);
		c->op = "result";
		if (pairs[i].begun && !c->spoilt && !s->spoilt && !disturbed)
			MUST(c, c->result == 0, "code %d", (int)c->result);
	}
}

static void *disturb(void *unused)
{
	for (unsigned i = 0; !atomic_load(&over); i++) {
		ck_assert_int_eq(rxw_connection_abort(connection[i % THREADS], CODE), 0);
		usleep(2000);
	}
	return unused;
}

static void run(const struct h_options *options, uint16_t service, bool aborts)
{
	struct rxw_service_options workers = {
		.size = sizeof(workers), .id = WORKERS, .handler = handle};
	struct rxw_service_options queued = {.size = sizeof(queued), .id = QUEUED};
	pthread_t client[THREADS], server, aborter;

	disturbed = aborts;
	set_up_pairs();
	h_open(&bed, options);
	ck_assert_int_eq(rxw_queue_create(bed.server_engine, NULL, &queue), 0);
	queued.queue = queue;
	h_offer(&bed, workers);
	h_offer(&bed, queued);
	for (unsigned i = 0; i < THREADS; i++)
		connection[i] = h_connect(&bed, service);
	pthread_create(&server, NULL, serve_queue, NULL);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_create(&client[i], NULL, run_calls, connection[i]);
	if (aborts)
		pthread_create(&aborter, NULL, disturb, NULL);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(client[i], NULL);
	atomic_store(&over, true);
	pthread_join(server, NULL);
	if (aborts)
		pthread_join(aborter, NULL);
	for (unsigned i = 0; i < THREADS; i++)
		rxw_connection_release(connection[i]);
	ck_assert_int_eq(rxw_endpoint_destroy(bed.client), 0);
	ck_assert_int_eq(rxw_endpoint_destroy(bed.server), 0);
	bed.client = bed.server = NULL;
	ck_assert_int_eq(rxw_queue_destroy(queue), 0);
	h_close(&bed);
	check_pairs();
	free(pairs);
}

START_TEST(handlers)
{
	run(NULL, WORKERS, false);
}
END_TEST

START_TEST(handlers_small_windows)
{
	run(&(struct h_options){.both = "window=16 sendq-packets=8"}, WORKERS, false);
}
END_TEST

START_TEST(handlers_sealed)
{
	run(&(struct h_options){.secure = true}, WORKERS, false);
}
END_TEST

START_TEST(handlers_aborted)
{
	run(NULL, WORKERS, true);
}
END_TEST

START_TEST(a_queue)
{
	run(NULL, QUEUED, false);
}
END_TEST

START_TEST(a_queue_aborted)
{
	run(NULL, QUEUED, true);
}
END_TEST

int main(void)
{
	const TTest *const each[] = {handlers,	      handlers_small_windows,
				     handlers_sealed, handlers_aborted,
				     a_queue,	      a_queue_aborted};
	Suite *suite = suite_create("sequences");
	TCase *tcase = tcase_create("sequences");
	SRunner *runner;
	int left;

	tcase_set_timeout(tcase, getenv("RXW_TEST_SEQUENCES") ? 3600 : 120);
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	for (size_t i = 0; i < sizeof(each) / sizeof(each[0]); i++)
		tcase_add_test(tcase, each[i]);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	left = srunner_ntests_failed(runner);
	srunner_free(runner);
	return left ? EXIT_FAILURE : EXIT_SUCCESS;
}
