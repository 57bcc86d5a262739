/* SPDX-License-Identifier: BSD-2-Clause */
/* Packet traces of endpoints: a ring in memory, switched on at run time, written as pcapng. */
#ifndef RXWIRE_TRACE_H
#define RXWIRE_TRACE_H

#include <rxwire/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zero, set `size`, then fill. */
struct rxw_trace_options {
	size_t size;   /* sizeof(struct rxw_trace_options) */
	size_t memory; /* bytes of the ring, 64 KiB to 1 GiB; 0 = 4 MiB */
	unsigned snap; /* bytes kept of each datagram, 28 to 65535, at most memory / 4; 0 = 352 */
	/*
	 * NULL, or a directory of this user or root that nobody else may write to: a file appears
	 * there when a call died (dead peer, time-out, protocol error, lost NAT mapping).
	 */
	const char *dead_dir;
	unsigned dead_files;	/* at most so many, 1 to 1000, the oldest is replaced; 0 = 16 */
	unsigned dead_pause_ms; /* from one to the next at least; 0 = 10,000 */
};

/*
 * Begin to keep what the endpoint receives and sends, and what becomes of it: calls that begin and
 * end, retransmissions, windows, drops. The newest push out the oldest. `options` may be NULL. If a
 * trace is on, it ends, and what it kept is forgotten. The ring counts as memory of the engine.
 * Errors: -RXW_EINVAL, -RXW_ENOMEM (the engine's memory included), -RXW_ESYS (errno; EPERM: others
 * may write to the directory). Any thread.
 */
int rxw_trace_start(rxw_endpoint *endpoint, const struct rxw_trace_options *options);

/*
 * End it. What was kept stays, to be written, until the next start or the endpoint's end.
 * -RXW_ESTATE if none is on. Any thread.
 */
int rxw_trace_stop(rxw_endpoint *endpoint);

/*
 * Write what is kept now as one section of a pcapng file; the trace goes on. A file may have
 * several sections: those of several endpoints can follow each other in one. For that time as much
 * memory again as is kept. Errors: -RXW_ESTATE (none was ever begun), -RXW_ENOMEM, -RXW_ESYS
 * (errno; part of the section may have been written). Any thread.
 */
int rxw_trace_write(rxw_endpoint *endpoint, int fd);

/*
 * The same into a file of that name, mode 0600, which appears when it is complete, in the place of
 * one that was there. Nothing is left behind by a failure.
 */
int rxw_trace_save(rxw_endpoint *endpoint, const char *path);

/* Since the endpoint was created. */
struct rxw_trace_counts {
	size_t size;		     /* set by the caller */
	int on;			     /* nonzero: a trace is on */
	uint64_t packets, events;    /* that were kept */
	uint64_t overwritten;	     /* packets that newer ones pushed out */
	uint64_t deaths;	     /* of calls, while a trace was on */
	uint64_t dead_files, failed; /* files that were written for them, that could not be */
};
int rxw_trace_count(rxw_endpoint *endpoint, struct rxw_trace_counts *counts);

#ifdef __cplusplus
}
#endif
#endif
