/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Measurements: durations of calls, static probes, and the names of causes of drops, locks and packet types.
 */
#ifndef RXW_BASE_MEASURE_H
#define RXW_BASE_MEASURE_H

#include <stdatomic.h>
#include <stdint.h>

#include "common/histogram.h"

/* --- names that counters have --- */

/* Causes of dropped datagrams and packets. The order is that of rxw_stats(3). */
enum rxw_drop {
	RXW_DROP_SHORT,		 /* fewer than 28 bytes */
	RXW_DROP_TRUNCATED,	 /* larger than the receive limit, or truncated by the kernel */
	RXW_DROP_TYPE,		 /* unknown or reserved packet type */
	RXW_DROP_NO_CONNECTION,	 /* no connection, and the packet cannot create one */
	RXW_DROP_SECURITY_INDEX, /* not the security class of the connection */
	RXW_DROP_SERVICE,	 /* not the service of the connection */
	RXW_DROP_ADDRESS,	 /* known connection, other address */
	RXW_DROP_CALL_NUMBER,	 /* old, 0 or too far ahead */
	RXW_DROP_SEQ_ZERO,	 /* DATA with sequence number 0 */
	RXW_DROP_WINDOW,	 /* beyond the receive window */
	RXW_DROP_DUPLICATE,	 /* DATA received before */
	RXW_DROP_BAD_ACK,	 /* malformed, or for data that was never sent */
	RXW_DROP_BAD_ABORT,	 /* malformed */
	RXW_DROP_JUMBO,		 /* the end of a jumbogram is missing */
	RXW_DROP_DIRECTION,	 /* only the other side may send this, such as BUSY to a server */
	RXW_DROP_VERIFY,	 /* the security class could not verify the packet */
	RXW_DROP_MEMORY,	 /* a memory limit */
	RXW_DROP_LIMIT,		 /* the limit on connections of unvalidated addresses */
	RXW_DROP_RATE,		 /* a rate limit suppressed the answer */
	RXW_DROP_ACCESS,	 /* the sender of a DEBUG request is not permitted */
	RXW_DROP_STATE,		 /* the connection has failed, or the endpoint is stopping */
	RXW_DROP_COUNT
};
extern const char *const rxw_drop_names[RXW_DROP_COUNT];

/* Locks whose contended acquisitions are counted. */
enum rxw_lock {
	RXW_LOCK_TABLE,	       /* of a shard: table of connections */
	RXW_LOCK_CONNECTION,   /* of a connection and its calls */
	RXW_LOCK_WORKERS,      /* of an endpoint: calls waiting for a worker */
	RXW_LOCK_SEND_QUEUE,   /* of a shard: calls ready to send */
	RXW_LOCK_RECEIVE_ROLE, /* of a shard: the right to receive */
	RXW_LOCK_PEERS,	       /* of an endpoint: peers */
	RXW_LOCK_UNVALIDATED,  /* of an endpoint: cookies, rate limits */
	RXW_LOCK_VERIFIER,     /* of an endpoint: verification on separate threads */
	RXW_LOCK_BUFFERS,      /* of the engine: free buffers */
	RXW_LOCK_SOCKET,       /* of a socket: batches that the kernel refused */
	RXW_LOCK_COUNT
};
extern const char *const rxw_lock_names[RXW_LOCK_COUNT];

/* Packets are counted by these types; "other" has all that Rx does not define. */
#define RXW_PACKET_TYPES 14 /* numbers of types in the counters of the protocol core */
#define RXW_PACKET_NAMES 10
extern const char *const rxw_packet_names[RXW_PACKET_NAMES];
extern const unsigned char rxw_packet_class[RXW_PACKET_TYPES]; /* index of a type's name */

/* --- a histogram of durations with buckets at powers of two --- */

/*
 * The first bucket counts durations below 2^14 ns (16 us), each further one up to twice that, the
 * last one all longer ones.
 */
#define RXW_LATENCY_SHIFT 14u
#define RXW_LATENCY_SLOTS 24u

/* Updated by any thread; relaxed. */
struct rxw_latencies {
	_Atomic(uint64_t) slot[RXW_LATENCY_SLOTS], sum; /* sum in ns */
};

/* A copy of it. */
struct rxw_latency {
	uint64_t slot[RXW_LATENCY_SLOTS], sum;
};

/* Upper bound of a bucket in ns. */
static inline uint64_t rxw_latency_bound(unsigned slot)
{
	return 1ull << (RXW_LATENCY_SHIFT + slot);
}

static inline void rxw_latency_add(struct rxw_latencies *l, uint64_t ns)
{
	unsigned bits = histogram_slot(ns, 0),
		 slot = bits > RXW_LATENCY_SHIFT ? bits - RXW_LATENCY_SHIFT : 0;

	if (slot >= RXW_LATENCY_SLOTS)
		slot = RXW_LATENCY_SLOTS - 1;
	atomic_fetch_add_explicit(&l->slot[slot], 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&l->sum, ns, memory_order_relaxed);
}

static inline void rxw_latency_fold(struct rxw_latency *into, const struct rxw_latencies *from)
{
	for (unsigned i = 0; i < RXW_LATENCY_SLOTS; i++)
		into->slot[i] += atomic_load_explicit(&from->slot[i], memory_order_relaxed);
	into->sum += atomic_load_explicit(&from->sum, memory_order_relaxed);
}

/*
 * --- static probes of the provider "rxwire" for bpftrace, perf, gdb and SystemTap ---
 *
 * Each is a nop and an ELF note with its address and the locations of its arguments. rxwire-probes(7) lists them; the
 * name of a probe and the number, order and meaning of its arguments do not change. At most six arguments, since
 * bpftrace has only arg0 to arg5 on x86-64.
 */
#if RXW_HAVE_SDT
#	define SDT_USE_VARIADIC 1
#	include <sys/sdt.h>
#	define RXW_PROBE(name, ...) STAP_PROBEV(rxwire, name, __VA_ARGS__)
#else
/* For the type check only; never executed. */
static inline void rxw_no_probe(int none, ...)
{
	(void)none;
}
#	define RXW_PROBE(name, ...)                          \
		do {                                          \
			if (0)                                \
				rxw_no_probe(0, __VA_ARGS__); \
		} while (0)
#endif

#endif
