/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packet traces: the hooks that record datagrams. Without a trace each batch costs one load and one
 * branch that is not taken.
 */
#ifndef RXW_ENGINE_TRACE_H
#define RXW_ENGINE_TRACE_H

#include "engine/objects.h"
#include "proto/peer/event.h"

void rxw_trace_received(struct rxw_tracer *tracer, const struct rxw_io_rx *rx, unsigned count);
unsigned rxw_trace_sending(struct rxw_tracer *tracer, struct rxw_io_sock *sock,
			   struct rxw_io_tx *tx, unsigned count, bool nowait);

static inline void rxw_shard_trace_received(const struct rxw_shard *s, unsigned count)
{
	struct rxw_tracer *t = rxw_tracing(&s->stats);

	if (__builtin_expect(t != NULL, 0))
		rxw_trace_received(t, s->rx.entry, count);
}

/* rxw_io_send() on the shard's socket. */
static inline unsigned rxw_shard_send(struct rxw_shard *s, struct rxw_io_tx *tx, unsigned count,
				      bool nowait)
{
	struct rxw_tracer *t = rxw_tracing(&s->stats);

	if (__builtin_expect(t != NULL, 0))
		return rxw_trace_sending(t, s->sock, tx, count, nowait);
	return rxw_io_send(s->sock, tx, count, nowait);
}

#endif
