/* SPDX-License-Identifier: BSD-2-Clause */
/* The ring of a trace, and what begins, ends and writes it. */
#ifndef RXW_ENGINE_TRACERING_H
#define RXW_ENGINE_TRACERING_H

#include <rxwire/trace.h>

#include "engine/trace/trace.h"
#include "engine/trace/pcapng.h"

/*
 * `lock` is a leaf below all others: it is taken with any of them held. Positions count bytes from
 * the beginning, and lie in the ring modulo its size: what is kept is [first, next), whole records.
 */
struct rxw_trace {
	struct rxw_tracer tracer; /* first */
	struct rxw_endpoint *ep;
	struct rxw_addr bound; /* of the endpoint; fixed */
	pthread_mutex_t lock;
	uint8_t *ring; /* NULL: none was begun yet */
	size_t size;   /* multiple of the page size */
	unsigned snap;
	uint64_t first, next;
	uint64_t last; /* time of the latest record */
	uint64_t packets, events, overwritten, deaths, dead_files, failed;

	/* of one start or stop after the other: taken before lock, with nothing else held */
	pthread_mutex_t control;
	bool on; /* control */

	/*
	 * tracedead.c: the thread that writes a file when a call died; by lock, but for what is
	 * fixed
	 */
	pthread_t thread;
	pthread_cond_t died;
	uint64_t told; /* deaths that were before it began; fixed while it runs */
	bool threaded, quit;
	int dir; /* -1: none; fixed while the thread runs, as is what follows */
	unsigned files;
	uint64_t pause; /* ns */
};

/* The tracer of a new trace. */
void rxw_trace_note(struct rxw_tracer *tracer, const struct rxw_trace_event *seen);
/*
 * Copy what is kept to memory of its own, whose size is *room; rxw_trace_unmap(). NULL: no memory.
 */
uint8_t *rxw_trace_copy(struct rxw_trace *t, struct rxw_snapshot *snapshot, size_t *room);
/* Anonymous memory that core dumps leave out. */
void *rxw_trace_map(size_t size);
void rxw_trace_unmap(void *memory, size_t size);
/* rxw_trace_write() for one that exists. */
int rxw_trace_put(struct rxw_trace *t, int fd);
/* A file of that name in an open directory: complete, or not there. */
int rxw_trace_put_at(struct rxw_trace *t, int dir, const char *name);

/* tracedead.c */
int rxw_trace_dead_start(struct rxw_trace *t, const struct rxw_trace_options *options);
/* What calls that died until now leave is written first. */
void rxw_trace_dead_stop(struct rxw_trace *t);
/* Did the call die, rather than being ended by somebody? */
bool rxw_trace_dead(const struct rxw_trace_event *seen);

#endif
