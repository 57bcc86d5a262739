/* SPDX-License-Identifier: BSD-2-Clause */
/* What the room above asks of calls and connections beyond their public face. */
#ifndef RXW_FACE_OBSERVER_H
#define RXW_FACE_OBSERVER_H

#include <rxwire/rpc.h>

struct rxw_observed {
	const struct rxw_rpc_observer *observer;
	uint64_t started_ns;           /* monotonic: begun, or its first packet came */
	uint64_t written, taken;       /* bytes of the streams, as the application moved them */
};

/*
 * False, and nothing else is done, if nobody observes the endpoint. For the thread that reads and
 * writes the call.
 */
bool rxw_call_observed(const rxw_call *call, struct rxw_observed *observed);

/* Why no call can begin on a connection any more; 0 if nothing is wrong with it. */
int32_t rxw_connection_error(rxw_connection *connection);

#endif
