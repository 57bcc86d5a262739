/* SPDX-License-Identifier: BSD-2-Clause */
/* Trace events of calls: which call they are about. */
#include "proto/event/event.h"
#include "proto/state.h"

void rxw_seen_call(const struct rxw_pcall *p, struct rxw_tracer *tracer, struct rxw_seen *seen)
{
	seen->epoch = p->conn->epoch;
	seen->cid = p->conn->cid | p->channel;
	seen->call = p->number;
	tracer->note(tracer, seen);
}
