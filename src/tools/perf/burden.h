/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients that a server must bear: some vanish in the middle of a call, some read slowly. */
#ifndef PERF_BURDEN_H
#define PERF_BURDEN_H

#include "tools/perf/perf.h"

struct perf_burden;

/* What became of them. */
struct perf_burden_figures {
	uint64_t dead_clients, dead_calls; /* calls begun and left */
	uint64_t slow_clients, slow_bytes; /* bytes that they read */
};

/*
 * `dead` clients that are gone in the middle of a call for as long as this runs, `slow` ones that
 * read. All have sent what they send when this returns; a thread goes on with them. The engine and
 * the address must outlive the burden. 0, or -1 after a message.
 */
int perf_burden_start(rxw_engine *engine, const struct tools_address *server, uint64_t dead,
		      uint64_t slow, struct perf_burden **burden);
/* Any time, any thread. */
struct perf_burden_figures perf_burden_figures(const struct perf_burden *burden);
/* End all; NULL is allowed. */
void perf_burden_stop(struct perf_burden *burden);

#endif
