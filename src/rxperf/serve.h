/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside rxperf server: counters, and the two services. */
#ifndef PERF_SERVE_H
#define PERF_SERVE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <pthread.h>

#include <rxwire/rpcstats.h>

#include "program/auth.h"
#include "program/report.h"
#include "rxperf/perf.h"

#define PERF_MAX_LISTEN 16
#define PERF_MARKS	64 /* snapshots kept for clients; the oldest is dropped first */
#define PERF_CHAINS	1024

struct perf_client;

/* A snapshot of all counters. */
struct perf_moment {
	uint32_t token;
	uint64_t bytes_in, bytes_out, calls, failed;
	struct tools_usage usage;
	struct counters stats;
};

struct perf_server {
	struct RXPERF_service service; /* the context of both is the server */
	struct RXPERFFIG_service figures;
	bool verify;
	bool json;
	rxw_rpcstats *stats; /* of procedure calls; NULL: none */
	const struct rxw_config *config;
	struct tools_guard guard; /* keys and classes of the rxperf service */
	rxw_endpoint *endpoints[PERF_MAX_LISTEN];
	size_t endpoint_count;
	uint64_t secret[2]; /* for the chains of clients */

	/* Updated once per call. */
	_Atomic uint64_t bytes_in, bytes_out, calls, failed, mismatches;

	pthread_mutex_t lock; /* covers the members below */
	struct perf_moment start;
	struct perf_moment marks[PERF_MARKS];
	uint32_t last_token;
	struct perf_client *clients[PERF_CHAINS]; /* have calls without a thread */
};

/* Initialise both services. */
void perf_server_init(struct perf_server *server);
/*
 * The handler of the rxperf service; its context is the struct perf_server. The handler of the
 * statistics is RXPERFFIG_ExecuteRequest() with server->figures.
 */
int32_t perf_handle(rxw_call *call, void *context);

/* Take a snapshot. */
void perf_moment_now(struct perf_server *server, struct perf_moment *moment);
/* Report since a snapshot; a new reference, NULL without memory. */
json_t *perf_server_report(struct perf_server *server, const struct perf_moment *since);

#endif
