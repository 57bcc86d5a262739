/* SPDX-License-Identifier: BSD-2-Clause */
/* Packet traces: recording datagrams and events in a ring, copying it, and the public functions. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rxwire/trace.h>

#include "base/assert.h"
#include "base/path_probe.h"
#include "common/cancel.h"
#include "common/clock.h"
#include "common/held.h"
#include "common/sized.h"
#include "engine/objects.h"
#include "engine/observe/records.h"
#include "engine/observe/trace.h"

#define MEMORY	   ((size_t)4 << 20)
#define MEMORY_MIN ((size_t)64 << 10)
#define MEMORY_MAX ((size_t)1 << 30)
#define SNAP	   352u
#define SNAP_MIN   28u
#define SNAP_MAX   65535u

/*
 * A ring holds several records of the largest size; a smaller part of each datagram may be
 * recorded.
 */
#define RECORDS_MIN 4

/*
 * `lock` is a leaf: it may be taken with any other lock held. Positions count bytes from the start
 * of the trace; the ring stores them modulo its size. It holds whole records in [first, next).
 */
struct rxw_trace {
	struct rxw_tracer tracer; /* first */
	struct rxw_endpoint *ep;
	struct rxw_addr bound; /* of the endpoint; fixed */
	pthread_mutex_t lock;
	uint8_t *ring; /* NULL: no trace was started yet */
	size_t size;   /* multiple of the page size */
	unsigned snap;
	uint64_t first, next;
	uint64_t last; /* time of the latest record */
	uint64_t packets, events, overwritten, deaths;
	void (*failed)(void *arg); /* rxw_trace_options; NULL: not called */
	void *arg;

	/* serializes start and stop; taken before `lock`, with no other lock held */
	pthread_mutex_t control;
	bool on; /* control */
};

static void copy_into_ring(struct rxw_trace *t, const void *data, size_t size)
{
	size_t at = t->next % t->size, n = t->size - at < size ? t->size - at : size;

	assert(t->next + size - t->first <= t->size);
	memcpy(t->ring + at, data, n);
	memcpy(t->ring, (const uint8_t *)data + n, size - n);
	t->next += size;
}

static void copy_from_ring(const struct rxw_trace *t, uint64_t from, void *data, size_t size)
{
	size_t at = from % t->size, n = t->size - at < size ? t->size - at : size;

	assert(from >= t->first && from + size <= t->next);
	memcpy(data, t->ring + at, n);
	memcpy((uint8_t *)data + n, t->ring, size - n);
}

static uint32_t pad_size(size_t size)
{
	return (uint32_t)((size + RXW_RECORD_ALIGN - 1) & ~(size_t)(RXW_RECORD_ALIGN - 1));
}

/* Trace's lock held: begin a record with a body of `body` bytes; overwrites the oldest ones. */
static void begin_record(struct rxw_trace *t, struct rxw_record *r, size_t body)
{
	r->size = pad_size(sizeof(*r) + body);
	assert(mutex_is_held(&t->lock));
	assert(r->size <= t->size && t->next % RXW_RECORD_ALIGN == 0);
	while (t->next + r->size - t->first > t->size) {
		struct rxw_record oldest;

		copy_from_ring(t, t->first, &oldest, sizeof(oldest));
		t->overwritten += oldest.kind == RXW_RECORD_PACKET;
		t->first += oldest.size;
	}
	copy_into_ring(t, r, sizeof(*r));
}

/* Trace's lock held: end the record by padding it. */
static void end_record(struct rxw_trace *t)
{
	static const uint8_t zeros[RXW_RECORD_ALIGN];

	copy_into_ring(t, zeros, (size_t)(-t->next % RXW_RECORD_ALIGN));
}

/*
 * Trace's lock held: the time of a record. The clock is read under the lock, so that times do not
 * decrease.
 */
static uint64_t read_record_time(struct rxw_trace *t)
{
	uint64_t now = rxw_now();

	/* Clocks of processors may differ. */
	if (now > t->last)
		t->last = now;
	return t->last;
}

/*
 * Trace's lock held: record the addresses and the bytes [from, from + kept) of the scattered
 * datagram.
 */
static void record_datagram(struct rxw_trace *t, const struct rxw_path *path, unsigned flags,
			    unsigned ecn, uint64_t at, const struct iovec *iov, size_t from,
			    uint32_t length)
{
	uint32_t kept = length < t->snap ? length : t->snap;
	struct rxw_record_packet p = {.length = length, .kept = kept};
	struct rxw_record r = {
		.kind = RXW_RECORD_PACKET, .at = at, .port = rxw_addr_port(&path->peer)};
	bool six = path->peer.u.sa.sa_family == AF_INET6;

	if (six)
		memcpy(p.peer, &path->peer.u.in6.sin6_addr, 16);
	else
		memcpy(p.peer, &path->peer.u.in.sin_addr, 4);
	if (path->local.len && six)
		memcpy(p.local, &path->local.u.in6.sin6_addr, 16);
	else if (path->local.len)
		memcpy(p.local, &path->local.u.in.sin_addr, 4);
	r.flags = (uint8_t)(flags | ecn << RXW_RECORD_ECN_SHIFT | (six ? RXW_RECORD_IPV6 : 0) |
			    (path->local.len ? RXW_RECORD_LOCAL : 0));
	begin_record(t, &r, sizeof(p) + kept);
	copy_into_ring(t, &p, sizeof(p));
	for (; kept; iov++) {
		size_t n = iov->iov_len;

		if (from >= n) {
			from -= n;
			continue;
		}
		n -= from;
		if (n > kept)
			n = kept;
		copy_into_ring(t, (const uint8_t *)iov->iov_base + from, n);
		kept -= (uint32_t)n;
		from = 0;
	}
	end_record(t);
	t->packets++;
}

void rxw_trace_received(struct rxw_tracer *tracer, const struct rxw_io_rx *rx, unsigned count)
{
	struct rxw_trace *t = (struct rxw_trace *)tracer;
	uint64_t at;

	pthread_mutex_lock(&t->lock);
	at = read_record_time(t);
	for (unsigned i = 0; i < count; i++) {
		const struct iovec iov = {.iov_base = rx[i].buf->data, .iov_len = rx[i].length};
		uint32_t step = rx[i].segment ? rx[i].segment : rx[i].length, from = 0;

		/* The length of truncated datagrams is unknown. */
		if (!rx[i].path.peer.len || rx[i].truncated)
			continue;
		do {
			uint32_t left = rx[i].length - from;

			record_datagram(t, &rx[i].path, 0, rx[i].ecn, at, &iov, from,
					left < step ? left : step);
			from += step;
		} while (from < rx[i].length);
	}
	pthread_mutex_unlock(&t->lock);
}

/* Trace's lock held: record each datagram of the messages, as the kernel will split them. */
static void record_sent(struct rxw_trace *t, const struct rxw_io_tx *tx, unsigned count)
{
	uint64_t at = read_record_time(t);

	for (unsigned i = 0; i < count; i++) {
		uint32_t step = tx[i].segment ? tx[i].segment : tx[i].length, from = 0;

		do {
			uint32_t left = tx[i].length - from;

			record_datagram(t, tx[i].path, RXW_RECORD_SENT,
					tx[i].ect ? RXW_ECN_ECT0 : RXW_ECN_NOT, at, tx[i].iov, from,
					left < step ? left : step);
			from += step;
		} while (from < tx[i].length);
	}
}

/*
 * Trace's lock held: mark refused datagrams in the records of the messages, which start at `at`.
 * Records that were overwritten meanwhile are skipped.
 */
static void mark_refused(struct rxw_trace *t, uint64_t at, const struct rxw_io_tx *tx,
			 unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		uint32_t step = tx[i].segment ? tx[i].segment : tx[i].length, from = 0, n = 0;

		do {
			struct rxw_record r;

			if (at < t->first || at >= t->next)
				return;
			copy_from_ring(t, at, &r, sizeof(r));
			if (tx[i].error && n >= tx[i].sent_segments)
				t->ring[(at + offsetof(struct rxw_record, flags)) % t->size] |=
					RXW_RECORD_REFUSED;
			at += r.size;
			from += step;
			n++;
		} while (from < tx[i].length);
	}
}

/* Recorded before they are sent, since the reply may arrive before the system call returns. */
unsigned rxw_trace_sending(struct rxw_tracer *tracer, struct rxw_io_sock *sock,
			   struct rxw_io_tx *tx, unsigned count, bool nowait)
{
	struct rxw_trace *t = (struct rxw_trace *)tracer;
	unsigned good;
	uint64_t from;

	pthread_mutex_lock(&t->lock);
	from = t->next;
	record_sent(t, tx, count);
	pthread_mutex_unlock(&t->lock);
	good = rxw_io_send(sock, tx, count, nowait);
	if (good == count)
		return good;
	pthread_mutex_lock(&t->lock);
	mark_refused(t, from, tx, count);
	pthread_mutex_unlock(&t->lock);
	return good;
}

/* Did the call die, rather than being ended by one side? */
static bool ends_dead_call(const struct rxw_trace_event *seen)
{
	if (seen->kind != RXW_TRACE_CALL_END || seen->c != RXW_ORIGIN_LOCAL)
		return false;
	switch ((int32_t)seen->a) {
	case RXW_CALL_DEAD:
	case RXW_CALL_TIMEOUT:
	case RXW_PROTOCOL_ERROR:
	case RXW_CALL_MSGSIZE:
	case RXW_NETWORK_RESET:
		return true;
	default:
		return false;
	}
}

/* The tracer function: records an event. A connection's or a table's lock may be held. */
static void note_event(struct rxw_tracer *tracer, const struct rxw_trace_event *seen)
{
	struct rxw_trace *t = (struct rxw_trace *)tracer;
	struct rxw_record r = {.kind = RXW_RECORD_EVENT};
	bool dead = ends_dead_call(seen);

	pthread_mutex_lock(&t->lock);
	r.at = read_record_time(t);
	begin_record(t, &r, sizeof(*seen));
	copy_into_ring(t, seen, sizeof(*seen));
	end_record(t);
	t->events++;
	t->deaths += dead;
	if (dead && t->failed)
		t->failed(t->arg);
	pthread_mutex_unlock(&t->lock);
}

/* Anonymous memory that core dumps do not contain. */
static void *map_memory(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
#ifdef MADV_DONTDUMP
	(void)madvise(p, size, MADV_DONTDUMP);
#endif
	return p;
}

static void unmap_memory(void *memory, size_t size)
{
	if (memory)
		munmap(memory, size);
}

#define PIECE \
	((size_t)1 << 20) /* copied at a time: meanwhile sending and receiving threads wait ... */
#define PAUSE 50	  /* us; ... and continue during this pause */
#define TRIES 4

/* The state of copying the ring. */
struct copying {
	uint8_t *to;
	size_t room;
	uint64_t first, end, at; /* [at, end) is copied; records before `first` were overwritten */
};

/*
 * Trace's lock held: copy the next older piece to its final place. The newest piece is copied first
 * and the oldest last: new records overwrite the oldest, which are then merely missing. False: all
 * is copied.
 */
static bool copy_older_piece(struct rxw_trace *t, struct copying *c)
{
	uint64_t from;

	c->first = t->first;
	if (c->at <= c->first)
		return false;
	from = c->at - c->first > PIECE ? c->at - PIECE : c->first;
	copy_from_ring(t, from, c->to + c->room - (c->end - from), c->at - from);
	c->at = from;
	return true;
}

/* Trace's lock held; released between pieces. False: all of it was overwritten meanwhile. */
static bool copy_ring(struct rxw_trace *t, struct copying *c)
{
	c->end = c->at = t->next;
	while (copy_older_piece(t, c)) {
		pthread_mutex_unlock(&t->lock);
		rxw_sleep_us(PAUSE);
		pthread_mutex_lock(&t->lock);
	}
	return c->first < c->end || t->first == t->next;
}

/* Copies the records to new memory of *room bytes. NULL: no memory. */
static uint8_t *copy_trace(struct rxw_trace *t, struct rxw_snapshot *snapshot, size_t *room)
{
	for (unsigned try = 0; try < TRIES; try++) {
		struct copying c = {.to = NULL};
		bool done;

		pthread_mutex_lock(&t->lock);
		c.room = t->size;
		pthread_mutex_unlock(&t->lock);
		c.to = map_memory(c.room);
		if (!c.to)
			return NULL;
		pthread_mutex_lock(&t->lock);
		/* Not if a trace with a larger ring was started meanwhile. */
		done = t->size <= c.room && copy_ring(t, &c);
		pthread_mutex_unlock(&t->lock);
		if (!done && try + 1 < TRIES) {
			unmap_memory(c.to, c.room);
			continue;
		}
		snapshot->size = done && c.first < c.end ? (size_t)(c.end - c.first) : 0;
		snapshot->records = c.to + c.room - snapshot->size;
		snapshot->bound = t->bound;
		snapshot->wall = wall_ns() - (int64_t)rxw_now();
		*room = c.room;
		return c.to;
	}
	return NULL;
}

static struct rxw_trace *find_trace(rxw_endpoint *ep)
{
	return ep ? atomic_load_explicit(&ep->observe.trace, memory_order_acquire) : NULL;
}

static struct rxw_trace *create_trace(struct rxw_endpoint *ep)
{
	struct rxw_trace *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	pthread_mutex_init(&t->lock, NULL);
	pthread_mutex_init(&t->control, NULL);
	t->tracer.note = note_event;
	t->ep = ep;
	t->bound = ep->io.bound;
	return t;
}

/* The endpoint's trace. It is created on first use and lives as long as the endpoint. */
static struct rxw_trace *make_trace(struct rxw_endpoint *ep)
{
	struct rxw_trace *t;

	pthread_mutex_lock(&ep->lock);
	t = find_trace(ep);
	if (!t) {
		t = create_trace(ep);
		atomic_store_explicit(&ep->observe.trace, t, memory_order_release);
	}
	pthread_mutex_unlock(&ep->lock);
	return t;
}

static void set_tracer(struct rxw_trace *t, struct rxw_tracer *tracer)
{
	for (unsigned i = 0; i < t->ep->shard_count; i++) {
		atomic_store_explicit(&t->ep->shard[i].stats.tracer, tracer, memory_order_release);
		atomic_store_explicit(&t->ep->shard[i].own.tracer, tracer, memory_order_release);
	}
}

/* `control` held. A thread that read the tracer before may still record an event. */
static void stop_tracing(struct rxw_trace *t)
{
	if (!t->on)
		return;
	set_tracer(t, NULL);
	t->on = false;
	pthread_mutex_lock(&t->lock);
	t->failed = NULL;
	pthread_mutex_unlock(&t->lock);
}

/* `control` held. */
static void begin_tracing(struct rxw_trace *t, const struct rxw_trace_options *options)
{
	assert(!t->on && t->ring);
	pthread_mutex_lock(&t->lock);
	t->failed = options->failed;
	t->arg = options->arg;
	pthread_mutex_unlock(&t->lock);
	t->on = true;
	set_tracer(t, &t->tracer);
}

/* `control` held: replace the ring by an empty one of that size. */
static int reset_ring(struct rxw_trace *t, size_t size, unsigned snap)
{
	struct rxw_budget *budget = &t->ep->engine->memory;
	uint8_t *ring, *old;
	size_t old_size;

	if (!rxw_budget_take(budget, (int64_t)size))
		return -RXW_ENOMEM;
	ring = map_memory(size);
	if (!ring) {
		rxw_budget_give(budget, (int64_t)size);
		return -RXW_ENOMEM;
	}
	pthread_mutex_lock(&t->lock);
	old = t->ring;
	old_size = t->size;
	t->ring = ring;
	t->size = size;
	t->snap = snap;
	t->first = t->next;
	pthread_mutex_unlock(&t->lock);
	unmap_memory(old, old_size);
	rxw_budget_give(budget, (int64_t)old_size);
	return 0;
}

__attribute__((cold)) int rxw_trace_start(rxw_endpoint *endpoint,
					  const struct rxw_trace_options *options)
{
	struct rxw_trace_options o = {.size = sizeof(o)};
	size_t page = (size_t)sysconf(_SC_PAGESIZE), memory;
	struct rxw_trace *t;
	unsigned snap;
	int rc;
	NOT_CANCELLED;

	if (!endpoint || (options && !sized_read(&o, sizeof(o), options)))
		return -RXW_EINVAL;
	if (rxw_endpoint_inherited(endpoint))
		return -RXW_ESTATE;
	memory = o.memory ? o.memory : MEMORY;
	snap = o.snap ? o.snap : SNAP;
	if (memory < MEMORY_MIN || memory > MEMORY_MAX || snap < SNAP_MIN || snap > SNAP_MAX)
		return -RXW_EINVAL;
	memory = (memory + page - 1) / page * page;
	if (snap > memory / RECORDS_MIN)
		snap = (unsigned)(memory / RECORDS_MIN);
	t = make_trace(endpoint);
	if (!t)
		return -RXW_ENOMEM;
	pthread_mutex_lock(&t->control);
	stop_tracing(t);
	rc = reset_ring(t, memory, snap);
	if (!rc)
		begin_tracing(t, &o);
	pthread_mutex_unlock(&t->control);
	return rc;
}

__attribute__((cold)) int rxw_trace_stop(rxw_endpoint *endpoint)
{
	struct rxw_trace *t = find_trace(endpoint);
	int rc = -RXW_ESTATE;
	NOT_CANCELLED;

	if (!endpoint)
		return -RXW_EINVAL;
	if (rxw_endpoint_inherited(endpoint))
		return -RXW_ESTATE;
	if (!t)
		return rc;
	pthread_mutex_lock(&t->control);
	if (t->on) {
		stop_tracing(t);
		rc = 0;
	}
	pthread_mutex_unlock(&t->control);
	return rc;
}

__attribute__((cold)) int
rxw_trace_read(rxw_endpoint *endpoint, int (*see)(void *arg, const struct rxw_trace_record *record),
	       void *arg)
{
	struct rxw_trace *t = find_trace(endpoint);
	struct rxw_snapshot snapshot;
	uint8_t *copy;
	size_t room;
	bool started;
	int rc;
	NOT_CANCELLED;

	if (!endpoint || !see)
		return -RXW_EINVAL;
	if (rxw_endpoint_inherited(endpoint) || !t)
		return -RXW_ESTATE;
	pthread_mutex_lock(&t->lock);
	started = t->ring != NULL;
	pthread_mutex_unlock(&t->lock);
	if (!started)
		return -RXW_ESTATE;
	copy = copy_trace(t, &snapshot, &room);
	if (!copy)
		return -RXW_ENOMEM;
	rc = rxw_snapshot_show(&snapshot, see, arg);
	unmap_memory(copy, room);
	return rc;
}

int rxw_trace_count(rxw_endpoint *endpoint, struct rxw_trace_counts *counts)
{
	struct rxw_trace *t = find_trace(endpoint);
	struct rxw_trace_counts all = {.size = sizeof(all)};

	if (!endpoint || !sized_valid(counts))
		return -RXW_EINVAL;
	if (rxw_endpoint_inherited(endpoint))
		return -RXW_ESTATE;
	if (t) {
		pthread_mutex_lock(&t->control);
		all.on = t->on;
		pthread_mutex_lock(&t->lock);
		all.snap = t->snap;
		all.packets = t->packets;
		all.events = t->events;
		all.overwritten = t->overwritten;
		all.deaths = t->deaths;
		pthread_mutex_unlock(&t->lock);
		pthread_mutex_unlock(&t->control);
	}
	sized_write(counts, &all, sizeof(all));
	return 0;
}

__attribute__((cold)) void rxw_trace_free(struct rxw_endpoint *ep)
{
	struct rxw_trace *t = find_trace(ep);

	if (!t)
		return;
	stop_tracing(t);
	unmap_memory(t->ring, t->size);
	rxw_budget_give(&ep->engine->memory, (int64_t)t->size);
	pthread_mutex_destroy(&t->control);
	pthread_mutex_destroy(&t->lock);
	free(t);
}
