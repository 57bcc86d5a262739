/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What floor 1 tells those who look: static probes (base/probe.h) and, while an endpoint is traced, its tracer. Where nobody
 * looks a probe is a nop, and a tracer one load and one branch that is never taken.
 */
#ifndef RXW_PROTO_SEEN_H
#define RXW_PROTO_SEEN_H

#include "proto/call.h"
#include "proto/connection.h"
#include "proto/proto.h"

enum rxw_seen_kind {
	RXW_SEEN_CALL_BEGIN, /* a: service */
	RXW_SEEN_CALL_END,   /* a: error, b: ns since it began, c: origin of the error */
	RXW_SEEN_RETRANSMIT, /* a: first seq, b: packets */
	RXW_SEEN_WINDOW,     /* a: congestion window, b: ssthresh, c: the peer's window, d: in flight */
	RXW_SEEN_DROP	     /* a: cause, b: packets; no connection */
};

struct rxw_seen {
	enum rxw_seen_kind kind;
	uint32_t epoch, cid /* and channel */, call;
	uint64_t a, b, c, d;
};

/*
 * Lives as long as the endpoint once it is set. note() is called with locks of any kind held: it takes none but its own and
 * does not block.
 */
struct rxw_tracer {
	_Atomic(bool) on;
	void (*note)(struct rxw_tracer *tracer, const struct rxw_seen *seen);
};

/* The tracer of these counters' endpoint if it is on, else NULL. */
static inline struct rxw_tracer *rxw_tracing(const struct rxw_pstats *stats)
{
	struct rxw_tracer *t = atomic_load_explicit(&stats->tracer, memory_order_acquire);

	if (__builtin_expect(t == NULL, 1) || !atomic_load_explicit(&t->on, memory_order_relaxed))
		return NULL;
	return t;
}

static inline void rxw_seen(const struct rxw_pcall *p, const struct rxw_pstats *stats, enum rxw_seen_kind kind,
			    uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	struct rxw_tracer *t = rxw_tracing(stats);

	if (__builtin_expect(t != NULL, 0))
		t->note(t, &(struct rxw_seen){.kind = kind,
					      .epoch = p->conn->epoch,
					      .cid = p->conn->cid | p->channel,
					      .call = p->number,
					      .a = a, .b = b, .c = c, .d = d});
}

/* Packets dropped: counted, and told. */
static inline void rxw_drop(struct rxw_pstats *stats, enum rxw_drop cause, uint64_t count)
{
	struct rxw_tracer *t = rxw_tracing(stats);

	rxw_count(&stats->drops[cause], count);
	RXW_PROBE(drop, (int)cause, count);
	if (__builtin_expect(t != NULL, 0) && count)
		t->note(t, &(struct rxw_seen){.kind = RXW_SEEN_DROP, .a = cause, .b = count});
}

static inline void rxw_saw_begin(const struct rxw_pcall *p, const struct rxw_pstats *stats)
{
	RXW_PROBE(call__begin, p->conn->epoch, p->conn->cid | p->channel, p->number, p->conn->service, p->client);
	rxw_seen(p, stats, RXW_SEEN_CALL_BEGIN, p->conn->service, p->client, 0, 0);
}

static inline void rxw_saw_end(const struct rxw_pcall *p, const struct rxw_out *out)
{
	RXW_PROBE(call__end, p->conn->epoch, p->conn->cid | p->channel, p->number, p->error, p->client,
		  out->now - p->timer.began, p->retransmitted);
	rxw_seen(p, out->stats, RXW_SEEN_CALL_END, (uint32_t)p->error, out->now - p->timer.began, p->error_origin,
		 p->client);
}

/* Congestion control or the peer has set another window than these. */
static inline void rxw_saw_window(const struct rxw_pcall *p, const struct rxw_out *out, uint32_t cwnd, uint32_t window)
{
	if (p->cc.cwnd == cwnd && p->tx.window == window)
		return;
	RXW_PROBE(window__change, p->conn->epoch, p->conn->cid | p->channel, p->number, p->cc.cwnd, p->cc.ssthresh,
		  p->tx.window, p->tx.flight, p->rtt.srtt);
	rxw_seen(p, out->stats, RXW_SEEN_WINDOW, p->cc.cwnd, p->cc.ssthresh, p->tx.window, p->tx.flight);
}

#endif
