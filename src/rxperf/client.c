/* SPDX-License-Identifier: BSD-2-Clause */
/* rxperf client: a run, from the command line to the report. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "program/endpoints.h"
#include "program/message.h"
#include "program/signals.h"
#include "rxperf/client.h"

#define PRIMING 64 /* connections that are primed in parallel */

static const int signals[] = {SIGINT, SIGTERM};

static void stop_on_signal(int number, void *arg)
{
	struct perf_client *c = arg;

	(void)number;
	perf_runner_stop(c->runner);
}

static int open_perf_client(struct perf_client *c)
{
	uint16_t port = (uint16_t)c->set->port;
	struct tools_address list[TOOLS_ADDRESSES];
	char message[256], host[256];
	size_t count;

	if (tools_split_host(c->set->host, host, sizeof(host), &port, 1) < 0)
		return tools_fail(-1, "option --server: invalid value \"%s\"; use HOST[:PORT]",
				  c->set->host);
	count = tools_resolve_all(host, port, list, message, sizeof(message));
	if (count == 0)
		return tools_fail(-1, "-s: %s", message);
	c->server = list[tools_find_reachable(c->config, list, count, PERF_SERVICE)];
	tools_address_text(&c->server.sa, c->server_text, sizeof(c->server_text));
	if (perf_links_open(c) < 0)
		return -1;
	if (tools_trace_open(&c->set->trace, c->endpoints, c->endpoint_count, &c->trace, message,
			     sizeof(message)) < 0)
		return tools_fail(-1, "%s", message);
	c->runner = perf_runner_new(&c->load);
	c->mix_runner = c->mix.slots ? perf_runner_new(&c->mix) : NULL;
	if (!c->runner || (c->mix.slots && !c->mix_runner))
		return perf_failed("cannot start", -RXW_ENOMEM);
	return 0;
}

static void close_perf_client(struct perf_client *c)
{
	tools_signals_stop(c->signals);
	tools_trace_close(c->trace);
	perf_links_close(c);
	/* No callback can run any more. */
	perf_runner_free(c->runner);
	perf_runner_free(c->mix_runner);
	perf_runner_free(c->primer);
}

/*
 * Make one call on each connection, so that both sides have state for it. 0, or -1 after a message.
 */
static int prime_connections(struct perf_client *c)
{
	struct perf_load *load = &c->priming;
	struct perf_result result = {0};
	struct tools_histogram *latency = malloc(sizeof(*latency));

	*load = c->load;
	load->request = (rxperf_command){.what = RXPERF_RPC,
					 .u.rpc = {*perf_sizes(&c->load.request), 0, 0}};
	load->slots = load->connection_count < PRIMING ? load->connection_count : PRIMING;
	load->per_connection = 1;
	load->duration_ms = load->interval_ms = 0;
	load->rate = 0;
	load->each_once = true;
	load->form = PERF_FORM_ASYNC;
	c->primer = latency ? perf_runner_new(load) : NULL;
	if (!c->primer) {
		free(latency);
		return perf_failed("cannot start", -RXW_ENOMEM);
	}
	tools_histogram_init(latency);
	result.latency = latency;
	perf_runner_run(c->primer, &result);
	if (result.failed)
		tools_error("%s: %s", c->server_text, result.why);
	free(latency);
	return result.failed ? -1 : 0;
}

struct mix_thread {
	pthread_t thread;
	struct perf_runner *runner;
	struct perf_mix_result *mix;
};

static void *run_mix(void *arg)
{
	struct mix_thread *t = arg;
	uint64_t start = monotonic_ns();

	perf_runner_run(t->runner, &t->mix->result);
	t->mix->wall_ns = monotonic_ns() - start;
	return NULL;
}

/* Resources used by a run on this side. */
struct cost {
	struct tools_usage usage;
	struct counters stats;
};

static void read_cost(const struct perf_client *c, struct cost *cost)
{
	cost->stats = perf_links_stats(c);
	tools_usage_now(&cost->usage);
}

/*
 * Run both loads until the main one ends; `mix` may be NULL. *cost is what was used meanwhile.
 */
static int run_loads(struct perf_client *c, struct perf_result *result, struct perf_mix_result *mix,
		     struct cost *cost)
{
	struct mix_thread t = {.runner = c->mix_runner, .mix = mix};
	struct cost before;
	int rc = tools_renewal_start(&c->auth);

	if (rc)
		goto fail;
	read_cost(c, &before);
	rc = mix ? pthread_create(&t.thread, NULL, run_mix, &t) : 0;
	if (rc)
		goto fail;
	perf_runner_run(c->runner, result);
	read_cost(c, cost);
	if (mix) {
		perf_runner_stop(c->mix_runner);
		pthread_join(t.thread, NULL);
	}
	/* The report reads the token. */
	tools_renewal_stop(&c->auth);
	cost->usage = tools_usage_between(&before.usage, &cost->usage);
	cost->stats = tools_stats_between(&before.stats, &cost->stats);
	return 0;
fail:
	return tools_fail(-1, "cannot start a thread: %s", strerror(rc));
}

/* Measure; *report stays NULL without memory. Returns 0, or -1 after a message. */
static int measure_loads(struct perf_client *c, struct perf_result *result,
			 struct perf_mix_result *mix, json_t **report)
{
	struct cost cost;
	json_t *server = NULL;

	if (c->set->prime && prime_connections(c) < 0)
		return -1;
	c->token = perf_figures_mark(c->endpoints[0], &c->server);
	if (run_loads(c, result, mix, &cost) < 0)
		return -1;
	if (c->token)
		server = perf_figures_fetch(c->endpoints[0], &c->server, c->token);
	if (result->failed || (mix && mix->result.failed)) {
		tools_error("%s: %s", c->server_text,
			    result->failed ? result->why : mix->result.why);
		json_decref(server);
		return -1;
	}
	*report = perf_report_make(c, result, mix, &cost.usage, &cost.stats, server);
	json_decref(server);
	return 0;
}

/* Measure and report. Returns the exit status. */
static int measure_and_report(struct perf_client *c)
{
	struct tools_histogram *latency = calloc(2, sizeof(*latency));
	struct perf_result result = {.latency = latency};
	struct perf_mix_result mix = {.result.latency = latency + 1};
	json_t *report = NULL;
	int status = TOOLS_EXIT_FAILURE;

	if (!latency) {
		perf_failed("cannot start", -RXW_ENOMEM);
		return status;
	}
	tools_histogram_init(&latency[0]);
	tools_histogram_init(&latency[1]);
	if (c->load.json && c->load.interval_ms)
		result.intervals = json_array();
	if (c->set->per_stream) {
		result.streams = json_array();
		mix.result.streams = json_array();
	}
	if (measure_loads(c, &result, c->mix_runner ? &mix : NULL, &report) == 0) {
		status = 0;
		if (!c->load.json && report)
			perf_report_print(c, report);
		else if (tools_json_print(json_incref(report)) < 0)
			status = TOOLS_EXIT_FAILURE;
	}
	json_decref(report);
	json_decref(result.intervals);
	json_decref(result.streams);
	json_decref(mix.result.streams);
	free(latency);
	return status;
}

static int run_perf_client(struct perf_client *c)
{
	int status = TOOLS_EXIT_FAILURE;

	perf_pattern_init();
	/* The threads of the engine inherit the mask. */
	tools_signals_block(signals, sizeof(signals) / sizeof(signals[0]));
	if (open_perf_client(c) == 0) {
		if (tools_signals_start(signals, sizeof(signals) / sizeof(signals[0]),
					stop_on_signal, c, &c->signals) < 0)
			tools_error("signals: %s", strerror(errno));
		else
			status = measure_and_report(c);
	}
	close_perf_client(c);
	return status;
}

int perf_client_main(int argc, char **argv)
{
	struct perf_settings set;
	struct rxw_config config;
	struct perf_client c = {.set = &set, .config = &config};
	enum tools_parsed parsed = perf_settings_parse(&set, &config, argc, argv);
	int status = TOOLS_EXIT_USAGE;

	if (parsed == TOOLS_DONE)
		return 0;
	if (parsed == TOOLS_RUN && perf_settings_apply(&set, &c.load, &c.mix) == 0) {
		tools_allow_endpoints(&config, set.endpoints);
		status = run_perf_client(&c);
	}
	xdrfree_rxperf_command(&c.load.request);
	return status;
}
