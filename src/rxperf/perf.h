/* SPDX-License-Identifier: BSD-2-Clause */
/* rxperf: server and client, loads and their results. */
#ifndef PERF_PERF_H
#define PERF_PERF_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>
#include <rxwire/rxwire.h>

#include "program/address.h"
#include "program/histogram.h"
#include "program/options.h"
#include "program/auth.h"
#include "rxperf/wire.h"

enum perf_arrivals_kind {
	PERF_ARRIVALS_EVEN,
	PERF_ARRIVALS_POISSON
};

/*
 * Two sequences with the same start and rate are equal, so one can run ahead of the other, which
 * saves a queue. One thread at a time.
 */
struct perf_arrivals {
	enum perf_arrivals_kind kind;
	double rate; /* mean calls per second, > 0 */
	uint64_t start_ns;
	uint64_t count;	  /* calls passed */
	double at_ns;	  /* next_ns - start_ns, exact */
	uint64_t state;	  /* of the pseudo-random numbers */
	uint64_t next_ns; /* when the next call is due, on the clock of start_ns */
};

/* `rate`: calls per second, > 0. The first call is due at start_ns (even) or later (poisson). */
void perf_arrivals_init(struct perf_arrivals *a, enum perf_arrivals_kind kind, double rate,
			uint64_t start_ns);
/* Advance to the next call, which is never due before the previous one. */
void perf_arrivals_pass(struct perf_arrivals *a);

/* rxperf server: argv[0] is "server". Returns the exit status. */
int perf_server_main(int argc, char **argv);
/* rxperf client, likewise. */
int perf_client_main(int argc, char **argv);

enum perf_form {
	PERF_FORM_AUTO,
	PERF_FORM_BLOCKING,
	PERF_FORM_ASYNC
};

/* A load: the request, the connections, and how often. Filled by the client, then constant. */
struct perf_load {
	rxperf_command request;	 /* owned by the client */
	uint64_t slots;		 /* calls in flight, -t; open loop: at most 4 for each connection */
	uint64_t per_connection; /* -C, 1..4 */
	uint64_t calls_per_slot; /* -T; 0 with a duration */
	uint64_t duration_ms;	 /* -D, 0 = none */
	uint64_t interval_ms;	 /* between reports during the run; 0 = none */
	uint64_t timeout_ms;	 /* without progress of any call in flight */
	bool each_once;		 /* instead: one call on each connection */
	double rate;		 /* open loop: calls per second, with a duration; 0 = closed loop */
	enum perf_arrivals_kind arrivals;
	bool verify, json;
	enum perf_form form;
	/*
	 * At least ceil(slots / per_connection); the slots use all of them in turn. A connection
	 * may be replaced during the run, by one with another token: a slot reads the pointer and
	 * begins its call under its lock, and the old connection is released after
	 * perf_runner_passed().
	 */
	_Atomic(rxw_connection *) *connections;
	size_t connection_count;
	struct tools_renewal *renewal;
};

/* The result of a load. */
struct perf_result {
	uint64_t bytes, calls;
	struct tools_histogram *latency;    /* owned by the caller */
	json_t *intervals;		    /* array, or NULL */
	json_t *streams;		    /* array, or NULL: bytes of each slot */
	uint64_t stream_least, stream_most; /* bytes of a slot */
	double stream_mean;
	/* Open loop: calls due, the longest backlog, and the delay of the pacer. */
	uint64_t due, backlog_max, late_p50_ns, late_p99_ns;
	bool failed;	  /* a call failed: see `why` */
	bool interrupted; /* by a signal */
	char why[320];
};

struct perf_runner;

/* Create the state of a load, without starting it. NULL without memory. */
struct perf_runner *perf_runner_new(const struct perf_load *load);
/* Run to the end; only once. */
void perf_runner_run(struct perf_runner *runner, struct perf_result *result);
/* End the run early. Any thread that is not the library's, while the runner exists. */
void perf_runner_stop(struct perf_runner *runner);
/*
 * Wait until no slot is about to begin a call on a connection that has been replaced. NULL is
 * allowed.
 */
void perf_runner_passed(struct perf_runner *runner);
void perf_runner_free(struct perf_runner *runner);

/*
 * Ask the server for its statistics: a token for the present (0 if it does not know the service),
 * and the statistics since then (NULL likewise). Both wait for at most 2 seconds.
 */
uint32_t perf_figures_mark(rxw_endpoint *endpoint, const struct tools_address *server);
json_t *perf_figures_fetch(rxw_endpoint *endpoint, const struct tools_address *server,
			   uint32_t token);

#endif
