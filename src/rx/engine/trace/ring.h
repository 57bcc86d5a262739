/* SPDX-License-Identifier: BSD-2-Clause */
/* The ring of a trace; starting, stopping and writing traces. */
#ifndef RXW_ENGINE_TRACERING_H
#define RXW_ENGINE_TRACERING_H

#include <rxwire/trace.h>

#include "engine/trace/trace.h"
#include "engine/trace/pcapng.h"

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
	uint64_t packets, events, overwritten, deaths, dead_files, failed;

	/* serializes start and stop; taken before `lock`, with no other lock held */
	pthread_mutex_t control;
	bool on; /* control */

	/*
	 * dump.c: the thread that writes a file when a call died. Covered by `lock` unless fixed.
	 */
	pthread_t thread;
	pthread_cond_t died;
	uint64_t told; /* deaths before it started; fixed while it runs */
	bool threaded, quit;
	int dir; /* -1: none. Like the next two fields, fixed while the thread runs */
	unsigned files;
	uint64_t pause; /* ns */
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
/* rxw_trace_write() for an existing trace. */
int rxw_trace_put(struct rxw_trace *t, int fd);
/* Writes a file of that name in an open directory, completely or not at all. */
int rxw_trace_put_at(struct rxw_trace *t, int dir, const char *name);

/* dump.c */
int rxw_trace_dead_start(struct rxw_trace *t, const struct rxw_trace_options *options);
/* Traces of calls that died until now are written first. */
void rxw_trace_dead_stop(struct rxw_trace *t);
/* Did the call die, rather than being ended by one side? */
bool rxw_trace_dead(const struct rxw_trace_event *seen);

#endif
