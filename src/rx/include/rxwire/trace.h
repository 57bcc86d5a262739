/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packet traces of endpoints: recording, and reading what was recorded. <rxwire/observe.h> writes
 * traces as pcapng files. See rxw_trace(3).
 */
#ifndef RXWIRE_TRACE_H
#define RXWIRE_TRACE_H

#include <sys/socket.h>

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
	 * Called when a call has failed because of a silent peer, a timeout, a protocol error or a
	 * lost NAT mapping; NULL = not told. Any thread of the library calls it, with locks held: it
	 * may do what a signal handler may do, such as sem_post(). Never after rxw_trace_stop() has
	 * returned.
	 */
	void (*failed)(void *arg);
	void *arg;
};

/*
 * Start to record the datagrams that the endpoint sends and receives, and events of calls and
 * packets. New records replace the oldest. `options` may be NULL. An active trace ends, and its
 * records are discarded. The ring buffer counts as memory of the engine. Errors: -RXW_EINVAL,
 * -RXW_ENOMEM (or the memory limit of the engine). Any thread.
 */
int rxw_trace_start(rxw_endpoint *endpoint, const struct rxw_trace_options *options);

/*
 * End the trace. The records remain, and can be read, until the next start or until the endpoint
 * is destroyed. -RXW_ESTATE if no trace is active. Any thread.
 */
int rxw_trace_stop(rxw_endpoint *endpoint);

enum rxw_trace_record_kind {
	RXW_TRACE_RECEIVED = 0, /* a datagram that was received */
	RXW_TRACE_SENT,		/* a datagram that was sent */
	RXW_TRACE_REFUSED,	/* a datagram that the kernel refused to send */
	RXW_TRACE_EVENT
};

/* A record. Memory of the library. New members may follow. */
struct rxw_trace_record {
	enum rxw_trace_record_kind kind;
	uint64_t time_ns; /* since 1970; never decreases from one record to the next */
	/*
	 * A datagram: its addresses (struct sockaddr_in or sockaddr_in6; the endpoint's own is 0.0.0.0
	 * or :: if it is not known), the ECN bits of its IP header, its length, and the bytes that
	 * were kept, which remain until rxw_trace_read() returns.
	 */
	const struct sockaddr *source, *target;
	unsigned ecn;
	size_t length, kept;
	const void *data;
	/* An event: a description, and whether it announces the datagram that is sent next. */
	const char *text;
	int announces;
};

/*
 * Show a copy of the records, the oldest first, to `see`; the trace continues. A result of `see`
 * that is not 0 ends this, and is returned. It may call functions of the library. Temporarily needs
 * as much memory again as the records. Errors: -RXW_EINVAL, -RXW_ESTATE (no trace was started),
 * -RXW_ENOMEM. Any thread.
 */
int rxw_trace_read(rxw_endpoint *endpoint,
		   int (*see)(void *arg, const struct rxw_trace_record *record), void *arg);

/* Counters since the endpoint was created. */
struct rxw_trace_counts {
	size_t size;		  /* set by the caller */
	int on;			  /* nonzero: a trace is active */
	unsigned snap;		  /* bytes kept of each datagram by the latest trace */
	uint64_t packets, events; /* recorded */
	uint64_t overwritten;	  /* packets replaced by newer ones */
	uint64_t deaths;	  /* calls that failed during a trace */
};
/* 0 or -RXW_EINVAL. Any thread. */
int rxw_trace_count(rxw_endpoint *endpoint, struct rxw_trace_counts *counts);

#ifdef __cplusplus
}
#endif
#endif
