/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters and trace events of the protocol core: what an observer of an endpoint can see. */
#ifndef RXW_PROTO_EVENT_H
#define RXW_PROTO_EVENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rxwire/error.h>

#include "base/measure.h"

struct rxw_pcall;

/* --- trace events --- */

enum rxw_trace_kind {
	RXW_TRACE_CALL_BEGIN,	/* a: service, b: client, c: security index */
	RXW_TRACE_CALL_HANDLER, /* server: a handler takes the call; a: ns since it began */
	RXW_TRACE_CALL_END,	/* a: code (uint32_t), b: ns since begin, c: origin, d: client */
	RXW_TRACE_RETRANSMIT,	/* a: first seq, b: packets */
	RXW_TRACE_TIMEOUT,	/* a: consecutive timeouts before this one */
	RXW_TRACE_SPURIOUS,	/* a packet counted as lost had arrived; a: packets late */
	RXW_TRACE_WINDOW,	/* a: cwnd, b: ssthresh, c: the peer's window, d: in flight */
	RXW_TRACE_ECN, /* a: enum rxw_ecn_state, b: packets marked, c: the sender reacts */
	RXW_TRACE_DROP		/* a: cause, b: packets; no connection, the rest is 0 */
};

struct rxw_trace_event {
	enum rxw_trace_kind kind;
	uint32_t epoch, cid /* with the channel */, call;
	uint64_t now; /* ns, monotonic; 0: unknown */
	uint64_t a, b, c, d;
	/* RXW_TRACE_WINDOW only: ns between packets, RTTs in ns, 0 = none or unknown; static names */
	uint64_t interval, srtt, least_rtt;
	const char *controller, *phase;
};

/*
 * The tracer of an endpoint; once set it exists as long as the endpoint. note() may be called with
 * any lock held: it takes only its own lock and does not block.
 */
struct rxw_tracer {
	void (*note)(struct rxw_tracer *tracer, const struct rxw_trace_event *seen);
};

/* --- counters --- */

/* Clients at another address (rx-protocol 2.3): what became of those that were asked for proof. */
enum rxw_move_outcome {
	RXW_MOVE_DONE,	  /* the connection follows */
	RXW_MOVE_REFUSED, /* proved, but the old address was not silent, or there was no room */
	RXW_MOVE_EXPIRED, /* no proof came */
	RXW_MOVE_OUTCOMES
};

/*
 * Counters of the protocol core, handed in with the output record. They are relaxed atomics because
 * any thread may read them, and they are added to once per run, never once per packet. Several
 * threads may share a set. With `alone`, the caller guarantees that its threads add one at a time,
 * each after the one before, and an addition needs no locked instruction: a refused call, with five
 * additions, costs 2 % less.
 */
struct rxw_pstats {
	bool alone; /* fixed */
	_Atomic(uint64_t) packets_sent[RXW_PACKET_TYPES], packets_received[RXW_PACKET_TYPES];
	_Atomic(uint64_t) retransmitted, duplicates;
	_Atomic(uint64_t) drops[RXW_DROP_COUNT];
	_Atomic(uint64_t) calls_started, calls_ended, calls_aborted, calls_timed_out, calls_refused;
	_Atomic(uint64_t) loss_events, spurious_losses, rto_events, probes;
	/* ECN: packets sent marked, received with CE; reactions to CE; validations that failed */
	_Atomic(uint64_t) marks_sent, marks_received, mark_events, ecn_failures;
	_Atomic(uint64_t) stateless_aborts, version_answers, debug_answers;
	_Atomic(uint64_t) unvalidated_connections, calls_given_up,
		connections_evicted;
	_Atomic(uint64_t) cookies_sent, cookies_returned;
	_Atomic(uint64_t) move_pings, moves[RXW_MOVE_OUTCOMES];
	struct rxw_latencies latency[2];     /* durations of calls served, of calls made */
	_Atomic(struct rxw_tracer *) tracer; /* NULL: the endpoint is not traced */
};

static inline void rxw_count(_Atomic(uint64_t) *c, uint64_t n)
{
	atomic_fetch_add_explicit(c, n, memory_order_relaxed);
}

/* Add to `c`, a counter of `s`. */
static inline void rxw_tally(const struct rxw_pstats *s, _Atomic(uint64_t) *c, uint64_t n)
{
	if (s->alone)
		atomic_store_explicit(c, atomic_load_explicit(c, memory_order_relaxed) + n,
				      memory_order_relaxed);
	else
		rxw_count(c, n);
}

/* The tracer of the endpoint of these counters; NULL: none, or switched off. */
static inline struct rxw_tracer *rxw_tracing(const struct rxw_pstats *stats)
{
	return atomic_load_explicit(&stats->tracer, memory_order_acquire);
}

/* Report an event of a call: set its connection and number, and hand it to the tracer. */
void rxw_event_send(const struct rxw_pcall *p, struct rxw_tracer *tracer,
		    struct rxw_trace_event *seen);

/* The same if the endpoint is traced. Without a tracer this costs one load and one branch. */
static inline void rxw_event(const struct rxw_pcall *p, const struct rxw_pstats *stats,
			     struct rxw_trace_event seen)
{
	struct rxw_tracer *t = rxw_tracing(stats);

	if (__builtin_expect(t != NULL, 0))
		rxw_event_send(p, t, &seen);
}

/* Count and report dropped packets. */
static inline void rxw_drop(struct rxw_pstats *stats, enum rxw_drop cause, uint64_t packets)
{
	struct rxw_tracer *t = rxw_tracing(stats);

	if (!packets)
		return;
	rxw_tally(stats, &stats->drops[cause], packets);
	RXW_PROBE(drop, (int)cause, packets);
	if (__builtin_expect(t != NULL, 0))
		t->note(t, &(struct rxw_trace_event){
				   .kind = RXW_TRACE_DROP, .a = cause, .b = packets});
}

#endif
