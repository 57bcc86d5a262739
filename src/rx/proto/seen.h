/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What floor 1 tells those who look: static probes (base/probe.h) and, while an endpoint is traced,
 * its tracer. Where nobody looks a probe is a nop, and a tracer one load and one branch that is
 * never taken.
 */
#ifndef RXW_PROTO_SEEN_H
#define RXW_PROTO_SEEN_H

#include "base/probe.h"
#include "proto/call.h"
#include "proto/connection.h"
#include "proto/proto.h"

enum rxw_seen_kind {
	RXW_SEEN_CALL_BEGIN,   /* a: service, b: client, c: security index */
	RXW_SEEN_CALL_HANDLER, /* server: a handler takes it; a: ns since it began */
	RXW_SEEN_CALL_END,     /* a: code (uint32_t), b: ns since it began, c: origin, d: client */
	RXW_SEEN_RETRANSMIT,   /* a: first seq, b: packets */
	RXW_SEEN_TIMEOUT,      /* a: how often before in a row */
	RXW_SEEN_SPURIOUS,     /* something counted as lost had come; a: packets it was late by */
	RXW_SEEN_WINDOW,       /* a: cwnd, b: ssthresh, c: the peer's window, d: in flight */
	RXW_SEEN_DROP	       /* a: cause, b: packets; no connection, the rest is 0 */
};

struct rxw_seen {
	enum rxw_seen_kind kind;
	uint32_t epoch, cid /* with the channel */, call;
	uint64_t now; /* ns, monotonic; 0: not known where it was seen */
	uint64_t a, b, c, d;
};

/*
 * Lives as long as the endpoint once it was set. note() is called with locks of any kind held: it
 * takes none but its own and does not block.
 */
struct rxw_tracer {
	void (*note)(struct rxw_tracer *tracer, const struct rxw_seen *seen);
};

/* The tracer of these counters' endpoint; NULL: none, or off. */
static inline struct rxw_tracer *rxw_tracing(const struct rxw_pstats *stats)
{
	return atomic_load_explicit(&stats->tracer, memory_order_acquire);
}

static inline void rxw_seen(const struct rxw_pcall *p, const struct rxw_pstats *stats,
			    struct rxw_seen seen)
{
	struct rxw_tracer *t = rxw_tracing(stats);

	if (__builtin_expect(t == NULL, 1))
		return;
	seen.epoch = p->conn->epoch;
	seen.cid = p->conn->cid | p->channel;
	seen.call = p->number;
	t->note(t, &seen);
}

/* Packets dropped: counted, and told. */
static inline void rxw_drop(struct rxw_pstats *stats, enum rxw_drop cause, uint64_t packets)
{
	struct rxw_tracer *t = rxw_tracing(stats);

	if (!packets)
		return;
	rxw_tally(stats, &stats->drops[cause], packets);
	RXW_PROBE(drop, (int)cause, packets);
	if (__builtin_expect(t != NULL, 0))
		t->note(t, &(struct rxw_seen){.kind = RXW_SEEN_DROP, .a = cause, .b = packets});
}

static inline void rxw_saw_begin(const struct rxw_pcall *p, const struct rxw_pstats *stats)
{
	const struct rxw_pconn *c = p->conn;

	RXW_PROBE(call_begin, p, c->cid | p->channel, p->number, c->service, (int)p->client,
		  &c->path.peer.u.sa);
	rxw_seen(p, stats, (struct rxw_seen){.kind = RXW_SEEN_CALL_BEGIN,
					     .now = p->timer.began,
					     .a = c->service,
					     .b = p->client,
					     .c = c->security_index});
}

static inline void rxw_saw_handler(const struct rxw_pcall *p, const struct rxw_out *out)
{
	RXW_PROBE(call_handler, p, out->now - p->timer.began);
	rxw_seen(p, out->stats, (struct rxw_seen){.kind = RXW_SEEN_CALL_HANDLER,
						  .now = out->now,
						  .a = out->now - p->timer.began});
}

/* `out` NULL: its connection goes. */
static inline void rxw_saw_end(const struct rxw_pcall *p, const struct rxw_out *out)
{
	uint64_t took = out ? out->now - p->timer.began : 0;

	RXW_PROBE(call_end, p, p->error, (int)p->error_origin, took, p->packets_sent,
		  p->retransmitted);
	if (out)
		rxw_seen(p, out->stats, (struct rxw_seen){.kind = RXW_SEEN_CALL_END,
							  .now = out->now,
							  .a = (uint32_t)p->error,
							  .b = took,
							  .c = p->error_origin,
							  .d = p->client});
}

/* What the sender of a call has, and what holds it back; after whatever may have changed that. */
static inline void rxw_saw_sender(const struct rxw_pcall *p)
{
	RXW_PROBE(send_state, p, p->tx.end - p->tx.nxt, (int32_t)(p->tx.edge - p->tx.nxt),
		  p->tx.flight, p->tx.lost, (int)p->tx.all_queued);
}

/* The same of its receiver. */
static inline void rxw_saw_receiver(const struct rxw_pcall *p)
{
	RXW_PROBE(receive_state, p, p->rx.next - p->rx.consumed, p->rx.next, p->rx.last);
}

/* Packets [first, first + n) leave once more. */
static inline void rxw_saw_retransmission(const struct rxw_pcall *p, const struct rxw_out *out,
					  uint32_t first, uint32_t n)
{
	RXW_PROBE(retransmit, p, first, n, &p->conn->path.peer.u.sa);
	rxw_seen(p, out->stats, (struct rxw_seen){.kind = RXW_SEEN_RETRANSMIT,
						  .now = out->now,
						  .a = first,
						  .b = n});
}

static inline void rxw_saw_timeout(const struct rxw_pcall *p, const struct rxw_out *out)
{
	RXW_PROBE(timeout, p, (unsigned)p->tx.backoff, &p->conn->path.peer.u.sa);
	rxw_seen(p, out->stats,
		 (struct rxw_seen){.kind = RXW_SEEN_TIMEOUT, .now = out->now, .a = p->tx.backoff});
}

static inline void rxw_saw_spurious(const struct rxw_pcall *p, const struct rxw_out *out,
				    uint32_t distance)
{
	RXW_PROBE(spurious, p, distance, &p->conn->path.peer.u.sa);
	rxw_seen(p, out->stats,
		 (struct rxw_seen){.kind = RXW_SEEN_SPURIOUS, .now = out->now, .a = distance});
}

/* Congestion control or the peer has set another window than these? */
static inline void rxw_saw_window(const struct rxw_pcall *p, const struct rxw_out *out,
				  uint32_t cwnd, uint32_t window)
{
	if (p->cc.cwnd == cwnd && p->tx.window == window)
		return;
	RXW_PROBE(window_change, p, p->cc.cwnd, p->cc.ssthresh, p->tx.window, p->tx.flight,
		  p->rtt.srtt);
	rxw_seen(p, out->stats, (struct rxw_seen){.kind = RXW_SEEN_WINDOW,
						  .now = out->now,
						  .a = p->cc.cwnd,
						  .b = p->cc.ssthresh,
						  .c = p->tx.window,
						  .d = p->tx.flight});
}

#endif
