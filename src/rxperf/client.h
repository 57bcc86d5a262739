/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside rxperf client: the command line and the state of a run. */
#ifndef PERF_CLIENT_H
#define PERF_CLIENT_H

#include "program/auth.h"
#include "program/report.h"
#include "program/trace.h"
#include "rxperf/perf.h"

/* The command line. */
struct perf_settings {
	int command; /* -1 = not given; see perf_command_name() */
	const char *host;
	const char *list;
	uint64_t port, bytes, request, reply, read_size, write_size;
	uint64_t slots, per_connection, calls, duration_ms, interval_ms,
		timeout_ms;		 /* slots 0 = not given */
	uint64_t endpoints, connections; /* connections 0 = not given */
	double rate;			 /* 0 = closed loop */
	int arrivals;
	int mix; /* 0 none, 1 send, 2 recv */
	uint64_t mix_streams;
	int form;
	bool verify, json, prime, per_stream;
	struct tools_auth auth;
	struct tools_trace_options trace;
};

/* The state of a run; freed in reverse order. */
struct perf_client {
	const struct perf_settings *set;
	const struct rxw_config *config;
	struct tools_address server;
	char server_text[TOOLS_ADDRESS_TEXT];
	rxw_engine *engine;
	rxw_endpoint **endpoints;
	size_t endpoint_count;
	struct tools_renewal auth;  /* of the connections of both loads */
	struct perf_load load, mix; /* mix.slots 0: none */
	struct perf_load priming;   /* of --prime */
	struct perf_runner *runner, *mix_runner, *primer;
	struct tools_signals *signals;
	struct tools_trace *trace; /* NULL: none */
	uint32_t token;		   /* of the server's statistics; 0 = it has none */
};

/* The result of the bulk streams that run beside the load. */
struct perf_mix_result {
	struct perf_result result;
	uint64_t wall_ns;
};

/* "send", "recv", "rpc", "file". */
const char *perf_command_name(int command);
/*
 * Set defaults and parse the command line. Like tools_options_parse(), without further arguments.
 */
enum tools_parsed perf_settings_parse(struct perf_settings *set, struct rxw_config *config,
				      int argc, char **argv);
/* Fill both loads, without their connections. 0, or -1 after a message. */
int perf_settings_apply(const struct perf_settings *set, struct perf_load *load,
			struct perf_load *mix);

/*
 * Create the engine, the endpoints and the connections of both loads. The connections are replaced
 * when there is a new token. 0, or -1 after a message.
 */
int perf_links_open(struct perf_client *c);
/* Undo perf_links_open(), even if it failed. */
void perf_links_close(struct perf_client *c);
/* The counters of all endpoints together. */
struct counters perf_links_stats(const struct perf_client *c);
/* Print a failed result of the library; returns -1. */
int perf_failed(const char *what, int rc);

/* The report of a run as JSON; `mix` and `server` may be NULL. NULL without memory. */
json_t *perf_report_make(struct perf_client *c, const struct perf_result *result,
			 const struct perf_mix_result *mix, const struct tools_usage *usage,
			 const struct counters *stats, json_t *server);
/* Print it as text. */
void perf_report_print(struct perf_client *c, json_t *report);

#endif
