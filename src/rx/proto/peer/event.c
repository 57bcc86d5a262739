/* SPDX-License-Identifier: BSD-2-Clause */
/* Trace events of calls: which call they are about. */
#include "proto/peer/event.h"
#include "proto/state.h"

void rxw_event_send(const struct rxw_pcall *p, struct rxw_tracer *tracer,
		    struct rxw_trace_event *seen)
{
	seen->epoch = p->conn->epoch;
	seen->cid = p->conn->cid | p->channel;
	seen->call = p->number;
	tracer->note(tracer, seen);
}
