/* SPDX-License-Identifier: BSD-2-Clause */
/* Observation of an endpoint by its application: a trace, calls of stubs, and statistics of calls. */
#ifndef RXW_ENGINE_OBSERVE_H
#define RXW_ENGINE_OBSERVE_H

#include <rxwire/rpc.h>
#include <rxwire/stats.h>

struct rxw_trace;

/* Of an endpoint. */
struct rxw_ep_observe {
	_Atomic(struct rxw_trace *)
		trace; /* NULL until the first one was started; stored under endpoint->lock */
	_Atomic(const struct rxw_rpc_observer *) observer; /* NULL: none */
};

/* The endpoint is destroyed; no other thread uses the trace. */
void rxw_trace_free(struct rxw_endpoint *ep);
/* Connection's lock held: fill in the statistics of a call, except `size`. */
void rxw_flow_read(const struct rxw_call *call, struct rxw_call_statistics *s);

#endif
