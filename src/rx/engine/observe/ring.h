/* SPDX-License-Identifier: BSD-2-Clause */
/* The ring of a trace. */
#ifndef RXW_ENGINE_TRACERING_H
#define RXW_ENGINE_TRACERING_H

#include <rxwire/trace.h>

#include "engine/observe/records.h"
#include "engine/observe/trace.h"

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

/* The tracer function of a trace: records an event. */
void rxw_trace_note(struct rxw_tracer *tracer, const struct rxw_trace_event *seen);
/*
 * Copies the records to new memory of *room bytes, to be freed with rxw_trace_unmap(). NULL: no
 * memory.
 */
uint8_t *rxw_trace_copy(struct rxw_trace *t, struct rxw_snapshot *snapshot, size_t *room);
/* Anonymous memory that core dumps do not contain. */
void *rxw_trace_map(size_t size);
void rxw_trace_unmap(void *memory, size_t size);

#endif
