/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients that burden a server: some vanish during a call, some read slowly. */
#ifndef PERF_BAD_CLIENTS_H
#define PERF_BAD_CLIENTS_H

#include "rxperf/perf.h"

struct perf_bad_clients;

/* Counters since the start. */
struct perf_bad_clients_stats {
	uint64_t dead_clients, dead_calls; /* calls begun and abandoned */
	uint64_t slow_clients, slow_bytes; /* bytes read */
};

/*
 * Start `dead` clients, which begin a call and vanish, and `slow` clients, which read slowly. Their
 * first packets have been sent when this returns; a thread keeps them going. The engine and the
 * address must outlive the bad clients. 0, or -1 after a message.
 */
int perf_bad_clients_start(rxw_engine *engine, const struct tools_address *server, uint64_t dead,
			   uint64_t slow, struct perf_bad_clients **bad_clients);
/* Any thread. */
struct perf_bad_clients_stats perf_bad_clients_stats(const struct perf_bad_clients *bad_clients);
/* Stop all of them. NULL is allowed. */
void perf_bad_clients_stop(struct perf_bad_clients *bad_clients);

#endif
