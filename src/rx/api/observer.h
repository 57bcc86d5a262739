/* SPDX-License-Identifier: BSD-2-Clause */
/* What procedure calls need of calls and connections beyond the public headers. */
#ifndef RXW_FACE_OBSERVER_H
#define RXW_FACE_OBSERVER_H

#include <rxwire/rpc.h>

struct rxw_observed {
	const struct rxw_rpc_observer *observer;
	uint64_t started_ns;	 /* monotonic: begun, or its first packet came */
	uint64_t written, taken; /* bytes of the streams, as the application moved them */
};

/*
 * False, and nothing else is done, if nobody observes the endpoint. For the thread that reads and
 * writes the call.
 */
bool rxw_call_observed(const rxw_call *call, struct rxw_observed *observed);

/*
 * As rxw_call_begin(). Of -RXW_ECALL *code says why: what the connection failed with, or the code
 * of rxw_connection_abort().
 */
int rxw_call_try_begin(rxw_connection *connection, const struct rxw_call_options *options,
		       rxw_call **call, int32_t *code);

/* This thread is in a callback or a short handler, and must wait for nothing. */
bool rxw_must_not_wait(void);

#endif
