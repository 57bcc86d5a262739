/* SPDX-License-Identifier: BSD-2-Clause */
/* The calls in progress of an endpoint, for observers. */
#ifndef API_FLOWS_H
#define API_FLOWS_H

#include <stdbool.h>
#include <stdint.h>

#include <rxwire/call.h>
#include <rxwire/endpoint.h>

#include "base/addr.h"

/* A call at one time. */
struct rxw_flow {
	struct rxw_call_statistics s;
	struct rxw_addr peer;
	uint64_t age; /* ns */
	uint32_t epoch, cid /* with the channel */, number;
	uint32_t receive_window; /* packets; advertised by this side */
	uint32_t queued;	 /* packets to send that are not acknowledged */
	uint16_t service;
	bool client;
	bool sending; /* its stream goes out from this side */
};

/* Mean bytes per second of both streams since the call began. */
uint64_t rxw_flow_rate(const struct rxw_flow *flow);

/* Connection's lock held: the statistics of a call. */
void rxw_flow_read(const struct rxw_call *call, struct rxw_call_statistics *s);

/*
 * Show every call in progress. Takes the locks of tables and connections, for some slots of a table
 * at a time; `see` is called with them and must be quick. A call may be missing, or be shown twice,
 * if connections are made meanwhile. Any thread.
 */
void rxw_flows_visit(rxw_endpoint *endpoint, void (*see)(void *arg, const struct rxw_flow *flow),
		     void *arg);

#endif
