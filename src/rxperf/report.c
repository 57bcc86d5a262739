/* SPDX-License-Identifier: BSD-2-Clause */
/* The report of rxperf client, as JSON and as text. */
#include <stdio.h>

#include "rxperf/client.h"

#define PUT(object, key, value)	  json_object_set_new(object, key, value)
#define COUNT(object, key, value) PUT(object, key, json_integer((json_int_t)(value)))

static json_t *list_percentiles(const struct tools_histogram *h)
{
	static const double wanted[] = {50, 75, 90, 95, 99, 99.5, 99.9, 99.95, 99.99, 100};
	json_t *all = json_array();

	for (size_t i = 0; h->count && i < sizeof(wanted) / sizeof(wanted[0]); i++)
		json_array_append_new(
			all, json_pack("[f, f]", wanted[i],
				       (double)tools_histogram_quantile(h, wanted[i] / 100) / 1e3));
	return all;
}

/* Latencies, and how evenly the slots were served. */
static void add_load(json_t *o, const struct perf_result *result)
{
	double mean = result->stream_mean;

	PUT(o, "percentiles", list_percentiles(result->latency));
	COUNT(o, "stream_bytes_min", result->stream_least);
	PUT(o, "stream_bytes_mean", json_real(mean));
	COUNT(o, "stream_bytes_max", result->stream_most);
	PUT(o, "fairness", mean > 0 ? json_real((double)result->stream_least / mean) : json_null());
	if (result->streams)
		json_object_set(o, "stream_bytes", result->streams);
}

static void add_open_loop(json_t *o, const struct perf_load *load, const struct perf_result *result)
{
	PUT(o, "rate", json_real(load->rate));
	PUT(o, "arrivals", json_string(load->arrivals == PERF_ARRIVALS_EVEN ? "even" : "poisson"));
	COUNT(o, "calls_due", result->due);
	COUNT(o, "calls_unfinished", result->due - result->calls);
	COUNT(o, "backlog_max", result->backlog_max);
	PUT(o, "pacer_late_p50_us", json_real((double)result->late_p50_ns / 1e3));
	PUT(o, "pacer_late_p99_us", json_real((double)result->late_p99_ns / 1e3));
}

static json_t *mix_json(const struct perf_client *c, const struct perf_mix_result *mix)
{
	const struct tools_histogram *h = mix->result.latency;
	double seconds = (double)mix->wall_ns / 1e9;
	json_t *o = json_object();

	PUT(o, "command", json_string(perf_command_name(c->set->mix - 1)));
	COUNT(o, "streams", c->mix.slots);
	COUNT(o, "bytes", mix->result.bytes);
	PUT(o, "seconds", json_real(seconds));
	PUT(o, "MBps", json_real(seconds > 0 ? (double)mix->result.bytes / 1e6 / seconds : 0));
	COUNT(o, "calls", mix->result.calls);
	PUT(o, "calls_per_s", json_real(seconds > 0 ? (double)mix->result.calls / seconds : 0));
	PUT(o, "p50_us", json_real((double)tools_histogram_quantile(h, 0.5) / 1e3));
	PUT(o, "p99_us", json_real((double)tools_histogram_quantile(h, 0.99) / 1e3));
	PUT(o, "max_us", json_real((double)h->max / 1e3));
	add_load(o, &mix->result);
	return o;
}

static void add_token_class(json_t *o, const struct perf_client *c)
{
	struct rxw_token_details info = {.size = sizeof(info)};

	if (!c->auth.token || rxw_token_info(c->auth.token, &info) < 0)
		info.index = info.level = 0;
	PUT(o, "class", json_string(tools_class_name(info.index)));
	PUT(o, "level", json_string(tools_level_name(info.level)));
	COUNT(o, "renewals", atomic_load(&c->auth.count));
}

/* CPU time of both ends together, for comparing transports. */
static void add_both_ends(json_t *report, const json_t *server)
{
	double bytes = tools_number_of(report, "bytes"), calls = tools_number_of(report, "calls"),
	       cpu = 0;
	static const char *const keys[] = {"cpu_user_s", "cpu_sys_s"};

	for (size_t i = 0; i < 2; i++)
		cpu += tools_number_of(report, keys[i]) + tools_number_of(server, keys[i]);
	if (bytes > 0)
		PUT(report, "cpu_s_per_GB_both", json_real(cpu / (bytes / 1e9)));
	if (calls > 0)
		PUT(report, "cpu_us_per_call_both", json_real(cpu * 1e6 / calls));
}

json_t *perf_report_make(struct perf_client *c, const struct perf_result *result,
			 const struct perf_mix_result *mix, const struct tools_usage *usage,
			 const struct counters *stats, json_t *server)
{
	json_t *o = json_object();

	if (!o)
		return NULL;
	PUT(o, "command", json_string(perf_command_name(c->set->command)));
	add_token_class(o, c);
	PUT(o, "host", json_string(c->server_text));
	COUNT(o, "in_flight", c->load.slots);
	COUNT(o, "per_connection", c->load.per_connection);
	COUNT(o, "endpoints", c->endpoint_count);
	COUNT(o, "connections", c->load.connection_count);
	PUT(o, "verified", json_boolean(c->load.verify));
	PUT(o, "interrupted", json_boolean(result->interrupted));
	tools_report_fill(o, result->bytes, result->calls, usage, stats, result->latency);
	add_load(o, result);
	if (c->load.rate > 0)
		add_open_loop(o, &c->load, result);
	PUT(o, "version", json_string(rxw_version()));
	PUT(o, "config", tools_config_json(c->config));
	PUT(o, "effective", tools_effective_json(c->endpoints[0]));
	PUT(o, "transport", tools_stats_json(stats));
	PUT(o, "machine", tools_facts_json());
	if (result->intervals)
		json_object_set(o, "intervals", result->intervals);
	if (mix)
		PUT(o, "mix", mix_json(c, mix));
	if (server) {
		add_both_ends(o, server);
		json_object_set(o, "server", server);
	}
	return o;
}

static void print_loads(const struct perf_client *c, const json_t *report)
{
	const json_t *mix = json_object_get(report, "mix");

	if (tools_count_of(report, "renewals"))
		printf("  tokens    %llu after the first\n", tools_count_of(report, "renewals"));
	if (c->load.rate > 0)
		printf("  open loop %llu calls scheduled, %llu not answered; backlog at most "
		       "%llu; pacer late p50 %.1f us, p99 %.1f us\n",
		       tools_count_of(report, "calls_due"),
		       tools_count_of(report, "calls_unfinished"),
		       tools_count_of(report, "backlog_max"),
		       tools_number_of(report, "pacer_late_p50_us"),
		       tools_number_of(report, "pacer_late_p99_us"));
	if (c->load.slots > 1 && tools_number_of(report, "bytes") > 0)
		printf("  streams   minimum %.2f of the mean\n",
		       tools_number_of(report, "fairness"));
	if (mix)
		printf("  mix       %s, %llu streams: %.1f MB/s, %llu calls; minimum %.2f of "
		       "the mean\n",
		       perf_command_name(c->set->mix - 1), tools_count_of(mix, "streams"),
		       tools_number_of(mix, "MBps"), tools_count_of(mix, "calls"),
		       tools_number_of(mix, "fairness"));
}

void perf_report_print(struct perf_client *c, json_t *report)
{
	char title[160];
	const json_t *e = json_object_get(report, "effective");
	json_t *server = json_object_get(report, "server");

	snprintf(title, sizeof(title), "%s %s", perf_command_name(c->set->command), c->server_text);
	tools_report_print(title, report);
	print_loads(c, report);
	printf("  in effect window %d, mtu %d, io %s, gso %s, gro %s, listeners %d\n",
	       (int)tools_count_of(e, "window"), (int)tools_count_of(e, "mtu"),
	       json_string_value(json_object_get(e, "io")),
	       json_is_true(json_object_get(e, "gso")) ? "on" : "off",
	       json_is_true(json_object_get(e, "gro")) ? "on" : "off",
	       (int)tools_count_of(e, "listeners"));
	if (!server)
		return;
	tools_report_print("server", server);
	if (c->load.request.what == RXPERF_RPC)
		printf("both ends: %.2f CPU microseconds per call\n",
		       tools_number_of(report, "cpu_us_per_call_both"));
	else if (tools_number_of(report, "bytes") >= 1e6)
		printf("both ends: %.3f CPU seconds per GB\n",
		       tools_number_of(report, "cpu_s_per_GB_both"));
}
