/* SPDX-License-Identifier: BSD-2-Clause */
/* The public functions of traces: starting, stopping, reading. */
#include <assert.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/cancel.h"
#include "common/sized.h"
#include "engine/core/fork.h"
#include "engine/observe/ring.h"

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

static struct rxw_trace *find_trace(rxw_endpoint *ep)
{
	return ep ? atomic_load_explicit(&ep->trace, memory_order_acquire) : NULL;
}

static struct rxw_trace *create_trace(struct rxw_endpoint *ep)
{
	struct rxw_trace *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	pthread_mutex_init(&t->lock, NULL);
	pthread_mutex_init(&t->control, NULL);
	t->tracer.note = rxw_trace_note;
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
		atomic_store_explicit(&ep->trace, t, memory_order_release);
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
	ring = rxw_trace_map(size);
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
	rxw_trace_unmap(old, old_size);
	rxw_budget_give(budget, (int64_t)old_size);
	return 0;
}

__attribute__((cold))
int rxw_trace_start(rxw_endpoint *endpoint, const struct rxw_trace_options *options)
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

int rxw_trace_stop(rxw_endpoint *endpoint)
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
	copy = rxw_trace_copy(t, &snapshot, &room);
	if (!copy)
		return -RXW_ENOMEM;
	rc = rxw_snapshot_show(&snapshot, see, arg);
	rxw_trace_unmap(copy, room);
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

void rxw_trace_free(struct rxw_endpoint *ep)
{
	struct rxw_trace *t = find_trace(ep);

	if (!t)
		return;
	stop_tracing(t);
	rxw_trace_unmap(t->ring, t->size);
	rxw_budget_give(&ep->engine->memory, (int64_t)t->size);
	pthread_mutex_destroy(&t->control);
	pthread_mutex_destroy(&t->lock);
	free(t);
}
