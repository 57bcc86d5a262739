/* SPDX-License-Identifier: BSD-2-Clause */
/* The two halves of rxperf. */
#ifndef PERF_PERF_H
#define PERF_PERF_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>
#include <rxwire/rxwire.h>

#include "tools/common/address.h"
#include "tools/common/histogram.h"
#include "tools/common/options.h"
#include "tools/common/renew.h"
#include "tools/perf/arrivals.h"
#include "tools/perf/wire.h"

/* rxperf server: argv[0] is "server". Returns the exit status. */
int perf_server_main(int argc, char **argv);
/* rxperf client, likewise. */
int perf_client_main(int argc, char **argv);

enum perf_form { PERF_FORM_AUTO, PERF_FORM_BLOCKING, PERF_FORM_ASYNC };

/* A load: what to do, with whom, how often. Filled by the client's main, then constant. */
struct perf_load {
	rxperf_command request;  /* freed by whoever filled it */
	uint64_t slots;          /* calls in flight, -t; open loop: at most 4 for each connection */
	uint64_t per_connection; /* -C, 1..4 */
	uint64_t calls_per_slot; /* -T; 0 with a duration */
	uint64_t duration_ms;    /* -D, 0 = none */
	uint64_t interval_ms;    /* 0 = no reports on the way */
	bool each_once;          /* instead: one call on each connection */
	double rate;             /* open loop: calls per second, with a duration; 0 = closed loop */
	enum perf_arrivals_kind arrivals;
	bool verify, json;
	enum perf_form form;
	/*
	 * At least ceil(slots / per_connection); slots go through all that there are. Each may be
	 * replaced while the load runs, with another token: a slot looks it up and begins its call
	 * under its lock, and who has replaced it gives it back behind perf_runner_passed().
	 */
	_Atomic(rxw_connection *) *connections;
	size_t connection_count;
	struct tools_renewal *renewal;
};

/* How it went. */
struct perf_result {
	uint64_t bytes, calls;
	struct tools_histogram *latency; /* owned by the caller */
	json_t *intervals;               /* array, or NULL */
	json_t *streams;                 /* array, or NULL: bytes of each slot */
	uint64_t stream_least, stream_most; /* bytes of a slot */
	double stream_mean;
	/* Open loop: calls due, most that waited for a slot; how late the pacer was. */
	uint64_t due, backlog_max, late_p50_ns, late_p99_ns;
	bool failed;                     /* a call failed: `why` says it all */
	bool interrupted;                /* by a signal */
	char why[320];
};

struct perf_runner;

/* Make the state of a load; nothing runs yet. NULL without memory. */
struct perf_runner *perf_runner_new(const struct perf_load *load);
/* Run to the end. Once. */
void perf_runner_run(struct perf_runner *runner, struct perf_result *result);
/* End a run early; from any thread but a library one, at any time while the runner exists. */
void perf_runner_stop(struct perf_runner *runner);
/*
 * Until no slot is about to begin a call on a connection that is not the load's any more. NULL is
 * allowed.
 */
void perf_runner_passed(struct perf_runner *runner);
void perf_runner_free(struct perf_runner *runner);

/*
 * Ask the server for its figures: a token for now (0 if it does not know the service), and what
 * happened since (NULL likewise). Both wait 2 seconds at most.
 */
uint32_t perf_figures_mark(rxw_endpoint *endpoint, const struct tools_address *server);
json_t *perf_figures_fetch(rxw_endpoint *endpoint, const struct tools_address *server,
			   uint32_t token);

/* One line for a call that ended with `code`. */
void perf_describe_code(char *text, size_t size, int32_t code, enum rxw_origin origin);

#endif
