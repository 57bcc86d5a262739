/* SPDX-License-Identifier: BSD-2-Clause */
/* Packet traces of endpoints, written as pcapng. See rxw_trace(3). */
#ifndef RXWIRE_TRACE_H
#define RXWIRE_TRACE_H

#include <rxwire/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zero the structure, set `size`, then fill in the other members. */
struct rxw_trace_options {
	size_t size;   /* sizeof(struct rxw_trace_options) */
	size_t memory; /* bytes of the ring buffer, 64 KiB to 1 GiB; 0 = 4 MiB */
	unsigned snap; /* bytes kept of each datagram, 28 to 65535, at most memory / 4; 0 = 352 */
	/*
	 * Directory for traces of calls that failed because of a silent peer, a timeout, a
	 * protocol error or a lost NAT mapping; NULL = none. It must belong to this user or root,
	 * and must not be writable by anyone else.
	 */
	const char *dead_dir;
	unsigned dead_files;	/* maximum number, 1 to 1000; the oldest is replaced; 0 = 16 */
	unsigned dead_pause_ms; /* minimum time between two files; 0 = 10,000 */
};

/*
 * Start to record the datagrams that the endpoint sends and receives, and events of calls and
 * packets. New records replace the oldest. `options` may be NULL. An active trace ends, and its
 * records are discarded. The ring buffer counts as memory of the engine. Errors: -RXW_EINVAL,
 * -RXW_ENOMEM (or the memory limit of the engine), -RXW_ESYS (errno; EPERM: others may write to
 * the directory). Any thread.
 */
int rxw_trace_start(rxw_endpoint *endpoint, const struct rxw_trace_options *options);

/*
 * End the trace. The records remain, and can be written, until the next start or until the
 * endpoint is destroyed. -RXW_ESTATE if no trace is active. Any thread.
 */
int rxw_trace_stop(rxw_endpoint *endpoint);

/*
 * Write the records as one section of a pcapng file; the trace continues. A file may have several
 * sections, for several endpoints. Temporarily needs as much memory again as the records. Errors:
 * -RXW_ESTATE (no trace was started), -RXW_ENOMEM, -RXW_ESYS (errno; part of the section may have
 * been written). Any thread.
 */
RXW_MUST_USE int rxw_trace_write(rxw_endpoint *endpoint, int fd);

/*
 * The same to a file with mode 0600, which appears when it is complete and replaces an existing
 * one. After a failure no file remains.
 */
RXW_MUST_USE int rxw_trace_save(rxw_endpoint *endpoint, const char *path);

/* Counters since the endpoint was created. */
struct rxw_trace_counts {
	size_t size;		     /* set by the caller */
	int on;			     /* nonzero: a trace is active */
	uint64_t packets, events;    /* recorded */
	uint64_t overwritten;	     /* packets replaced by newer ones */
	uint64_t deaths;	     /* calls that failed during a trace */
	uint64_t dead_files, failed; /* files written for them; files that could not be written */
};
/* 0 or -RXW_EINVAL. Any thread. */
int rxw_trace_count(rxw_endpoint *endpoint, struct rxw_trace_counts *counts);

#ifdef __cplusplus
}
#endif
#endif
