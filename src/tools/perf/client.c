/* SPDX-License-Identifier: BSD-2-Clause */
/* rxperf client: options, the run, the report. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/message.h"
#include "tools/common/report.h"
#include "tools/common/signals.h"
#include "tools/perf/perf.h"

struct settings {
	int command; /* index in COMMANDS, -1 = not given */
	const char *host;
	const char *list;
	uint64_t port, bytes, request, reply, read_size, write_size;
	uint64_t slots, per_connection, calls, duration_ms, interval_ms;
	int form;
	bool verify, json;
};

#define COMMANDS "send|recv|rpc|file"
static const char *const command_names[] = { "send", "recv", "rpc", "file" };
static const rxperf_what command_codes[] = {RXPERF_SEND, RXPERF_RECV, RXPERF_RPC, RXPERF_FILE};

#define AT(field) .offset = offsetof(struct settings, field)
static const struct tools_option options[] = {
	{.name = "command",
	 .letter = 'c',
	 .kind = TOOLS_CHOICE,
	 AT(command),
	 .argument = COMMANDS,
	 .help = "what each call does: move data to or from the server, small call, list"},
	{.name = "server",
	 .letter = 's',
	 .kind = TOOLS_STRING,
	 AT(host),
	 .argument = "HOST",
	 .help = "name or address of the server"},
	{.name = "port",
	 .letter = 'p',
	 .kind = TOOLS_UINT,
	 AT(port),
	 .argument = "PORT",
	 .help = "UDP port of the server (7009)",
	 .min = 1,
	 .max = 65535},
	{.name = "bytes",
	 .letter = 'b',
	 .kind = TOOLS_SIZE,
	 AT(bytes),
	 .argument = "BYTES",
	 .help = "data of each call, with -c send and recv (1M)",
	 .max = PERF_MAX_BYTES},
	{.name = "request",
	 .letter = 'S',
	 .kind = TOOLS_SIZE,
	 AT(request),
	 .argument = "BYTES",
	 .help = "data of each request, with -c rpc (100)",
	 .max = PERF_MAX_BYTES},
	{.name = "reply",
	 .letter = 'R',
	 .kind = TOOLS_SIZE,
	 AT(reply),
	 .argument = "BYTES",
	 .help = "data of each reply, with -c rpc (100)",
	 .max = PERF_MAX_BYTES},
	{.name = "file",
	 .letter = 'f',
	 .kind = TOOLS_STRING,
	 AT(list),
	 .argument = "LIST",
	 .help = "with -c file: sizes with commas; 0 turns from sending to receiving"},
	{.name = "in-flight",
	 .letter = 't',
	 .kind = TOOLS_UINT,
	 AT(slots),
	 .argument = "CALLS",
	 .help = "calls in flight at a time (1)",
	 .min = 1,
	 .max = 10000},
	{.name = "per-connection",
	 .letter = 'C',
	 .kind = TOOLS_UINT,
	 AT(per_connection),
	 .argument = "CALLS",
	 .help = "of those, calls that share a connection (1)",
	 .min = 1,
	 .max = 4},
	{.name = "times",
	 .letter = 'T',
	 .kind = TOOLS_UINT,
	 AT(calls),
	 .argument = "CALLS",
	 .help = "calls in all, for each of -t (1)",
	 .min = 1},
	{.name = "duration",
	 .letter = 'D',
	 .kind = TOOLS_DURATION,
	 AT(duration_ms),
	 .argument = "SECONDS",
	 .help = "run for so long instead",
	 .min = 1,
	 .max = 31536000000},
	{.name = "read-size",
	 .letter = 'r',
	 .kind = TOOLS_SIZE,
	 AT(read_size),
	 .argument = "BYTES",
	 .help = "bytes of each read of the transport, at both ends (512K)",
	 .min = 1,
	 .max = RXPERF_IO_MAX},
	{.name = "write-size",
	 .letter = 'w',
	 .kind = TOOLS_SIZE,
	 AT(write_size),
	 .argument = "BYTES",
	 .help = "the same for each write (512K)",
	 .min = 1,
	 .max = RXPERF_IO_MAX},
	{.name = "window",
	 .letter = 'W',
	 .kind = TOOLS_TUNABLE,
	 .argument = "PACKETS",
	 .help = "the same as --window of the transport, below 256"},
	{.name = "form",
	 .kind = TOOLS_CHOICE,
	 AT(form),
	 .argument = "auto|blocking|async",
	 .help = "blocking calls on threads, or callbacks; auto: blocking for one call alone"},
	{.name = "interval",
	 .kind = TOOLS_DURATION,
	 AT(interval_ms),
	 .argument = "SECONDS",
	 .help = "report on the way",
	 .min = 10,
	 .max = 31536000000},
	{.name = "verify",
	 .kind = TOOLS_FLAG,
	 AT(verify),
	 .help = "check the data received; the server must be one of rxwire"},
	{.name = "json", .kind = TOOLS_FLAG, AT(json), .help = "report as one JSON object"},
};

static const struct tools_program program = {
	.name = "rxperf",
	.usage = "usage: rxperf client -c send|recv|rpc|file -s HOST [-p PORT] [option...]\n",
	.summary = "Make calls to a server of the rxperf service and report how fast they were.",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
};

static const int signals[] = { SIGINT, SIGTERM };

/* Everything of one run; freed in the reverse order. */
struct client {
	const struct settings *set;
	const struct rxw_config *config;
	struct tools_address server;
	char server_text[TOOLS_ADDRESS_TEXT];
	struct perf_load load;
	rxw_engine *engine;
	rxw_endpoint *endpoint;
	struct perf_runner *runner;
	struct tools_signals *signals;
	uint32_t token; /* of the server's figures, 0 = it keeps none */
};

static void log_line(void *arg, enum rxw_log_level level, const char *line)
{
	(void)arg;
	if (level <= RXW_LOG_WARNING)
		tools_error("%s", line);
}

static int failed(const char *what, int rc)
{
	tools_error("%s: %s", what, rc == -RXW_ESYS ? strerror(errno) : rxw_strerror(rc));
	return -1;
}

/* What an option table cannot say. 0, or -1 after a message. */
static int check_settings(const struct settings *set, struct perf_load *load)
{
	char message[160];

	if (set->command < 0) {
		tools_error("say what to do with -c %s; see rxperf client --help", COMMANDS);
		return -1;
	}
	if (!set->host) {
		tools_error("name the server with -s HOST; see rxperf client --help");
		return -1;
	}
	if (set->calls && set->duration_ms) {
		tools_error("-T and -D exclude each other: a number of calls, or a time");
		return -1;
	}
	if ((command_codes[set->command] == RXPERF_FILE) != (set->list != NULL)) {
		tools_error(set->list ? "-f goes with -c file alone" :
					"-c file needs a list: -f 64K,0,1M, say");
		return -1;
	}
	load->request.what = command_codes[set->command];
	if (set->list &&
	    perf_parse_list(set->list, &load->request.u.file, message, sizeof(message)) < 0) {
		tools_error("option --file: %s", message);
		return -1;
	}
	return 0;
}

static void fill_load(const struct settings *set, struct perf_load *load)
{
	const rxperf_sizes sizes = {(uint32_t)set->read_size, (uint32_t)set->write_size};
	rxperf_command *r = &load->request;

	switch (r->what) {
	case RXPERF_SEND:
		r->u.send = (rxperf_transfer){sizes, (uint32_t)set->bytes};
		break;
	case RXPERF_RECV:
		r->u.recv = (rxperf_transfer){sizes, (uint32_t)set->bytes};
		break;
	case RXPERF_RPC:
		r->u.rpc = (rxperf_exchange){sizes, (uint32_t)set->request, (uint32_t)set->reply};
		break;
	default:
		r->u.file.sizes = sizes; /* the list is there */
	}
	load->slots = set->slots;
	load->per_connection = set->per_connection;
	load->duration_ms = set->duration_ms;
	load->calls_per_slot = set->duration_ms ? 0 : set->calls ? set->calls : 1;
	load->interval_ms = set->interval_ms;
	load->verify = set->verify;
	load->json = set->json;
	load->form = (enum perf_form)set->form;
}

static void on_signal(int number, void *arg)
{
	struct client *c = arg;

	(void)number;
	perf_runner_stop(c->runner);
}

static int connect_all(struct client *c)
{
	size_t count = (c->load.slots + c->load.per_connection - 1) / c->load.per_connection;

	c->load.connections = calloc(count, sizeof(*c->load.connections));
	if (!c->load.connections)
		return failed("connections", -RXW_ENOMEM);
	for (size_t i = 0; i < count; i++) {
		int rc = rxw_connection_create(c->endpoint, (struct sockaddr *)&c->server.sa,
					       c->server.len, PERF_SERVICE, NULL,
					       &c->load.connections[i]);
		if (rc < 0)
			return failed("cannot make a connection", rc);
		c->load.connection_count = i + 1;
	}
	return 0;
}

static int open_client(struct client *c)
{
	struct rxw_endpoint_options eo = { .size = sizeof(eo) };
	struct tools_address any;
	char message[256];
	int rc;

	if (tools_resolve(c->set->host, (uint16_t)c->set->port, 0, &c->server, message,
			  sizeof(message)) < 0) {
		tools_error("-s: %s", message);
		return -1;
	}
	tools_address_text(&c->server.sa, c->server_text, sizeof(c->server_text));
	rc = rxw_engine_create(c->config, &c->engine);
	if (rc < 0)
		return failed("cannot start", rc);
	tools_address_any(&c->server.sa, &any);
	eo.address = (struct sockaddr *)&any.sa;
	eo.address_len = any.len;
	rc = rxw_endpoint_create(c->engine, &eo, &c->endpoint);
	if (rc < 0)
		return failed("cannot open a socket", rc);
	if (connect_all(c) < 0)
		return -1;
	c->runner = perf_runner_new(&c->load);
	if (!c->runner)
		return failed("cannot start", -RXW_ENOMEM);
	return 0;
}

static void close_client(struct client *c)
{
	tools_signals_stop(c->signals);
	for (size_t i = 0; i < c->load.connection_count; i++)
		rxw_connection_release(c->load.connections[i]);
	free(c->load.connections);
	if (c->endpoint)
		rxw_endpoint_destroy(c->endpoint);
	if (c->engine)
		rxw_engine_destroy(c->engine);
	/* Only now has the last callback returned. */
	perf_runner_free(c->runner);
}

/* Both ends together: the number that a comparison of transports needs. */
static void add_both_ends(json_t *report, const json_t *server)
{
	double bytes = json_number_value(json_object_get(report, "bytes")),
	       calls = json_number_value(json_object_get(report, "calls")), cpu = 0;
	static const char *const keys[] = { "cpu_user_s", "cpu_sys_s" };

	for (size_t i = 0; i < 2; i++)
		cpu += json_number_value(json_object_get(report, keys[i])) +
		       json_number_value(json_object_get(server, keys[i]));
	if (bytes > 0)
		json_object_set_new(report, "cpu_s_per_GB_both", json_real(cpu / (bytes / 1e9)));
	if (calls > 0)
		json_object_set_new(report, "cpu_us_per_call_both", json_real(cpu * 1e6 / calls));
}

static json_t *make_report(struct client *c, const struct perf_result *result,
			   const struct tools_usage *usage, const struct rxw_stats *stats,
			   json_t *server)
{
	json_t *o = json_object();

	if (!o)
		return NULL;
	json_object_set_new(o, "command", json_string(command_names[c->set->command]));
	json_object_set_new(o, "host", json_string(c->server_text));
	json_object_set_new(o, "in_flight", json_integer((json_int_t)c->load.slots));
	json_object_set_new(o, "per_connection", json_integer((json_int_t)c->load.per_connection));
	json_object_set_new(o, "verified", json_boolean(c->load.verify));
	json_object_set_new(o, "interrupted", json_boolean(result->interrupted));
	tools_report_fill(o, result->bytes, result->calls, usage, stats, result->latency);
	json_object_set_new(o, "version", json_string(rxw_version()));
	json_object_set_new(o, "config", tools_config_json(c->config));
	json_object_set_new(o, "effective", tools_effective_json(c->endpoint));
	json_object_set_new(o, "transport", tools_stats_json(stats));
	json_object_set_new(o, "machine", tools_facts_json());
	if (result->intervals)
		json_object_set(o, "intervals", result->intervals);
	if (server) {
		add_both_ends(o, server);
		json_object_set(o, "server", server);
	}
	return o;
}

static void print_text(struct client *c, json_t *report, json_t *server)
{
	char title[160];
	const json_t *e = json_object_get(report, "effective");

	snprintf(title, sizeof(title), "%s %s", command_names[c->set->command], c->server_text);
	tools_report_print(title, report);
	printf("  in effect window %d, mtu %d, io %s, gso %s, gro %s, listeners %d\n",
	       (int)json_integer_value(json_object_get(e, "window")),
	       (int)json_integer_value(json_object_get(e, "mtu")),
	       json_string_value(json_object_get(e, "io")),
	       json_is_true(json_object_get(e, "gso")) ? "on" : "off",
	       json_is_true(json_object_get(e, "gro")) ? "on" : "off",
	       (int)json_integer_value(json_object_get(e, "listeners")));
	if (!server)
		return;
	tools_report_print("server", server);
	if (c->load.request.what == RXPERF_RPC)
		printf("both ends: %.2f CPU microseconds per call\n",
		       json_number_value(json_object_get(report, "cpu_us_per_call_both")));
	else if (json_number_value(json_object_get(report, "bytes")) >= 1e6)
		printf("both ends: %.3f CPU seconds per GB\n",
		       json_number_value(json_object_get(report, "cpu_s_per_GB_both")));
}

/* The measured part, and the report. Returns the exit status. */
static int measure(struct client *c)
{
	struct perf_result result = { 0 };
	struct rxw_stats stats[2] = { { .size = sizeof(stats[0]) }, { .size = sizeof(stats[0]) } };
	struct tools_usage usage[2];
	struct tools_histogram *latency = malloc(sizeof(*latency));
	json_t *server = NULL, *report;
	int status = 0;

	if (!latency)
		return failed("cannot start", -RXW_ENOMEM), TOOLS_EXIT_FAILURE;
	tools_histogram_init(latency);
	result.latency = latency;
	if (c->load.json && c->load.interval_ms)
		result.intervals = json_array();
	c->token = perf_figures_mark(c->endpoint, &c->server);
	rxw_endpoint_stats(c->endpoint, &stats[0]);
	tools_usage_now(&usage[0]);
	perf_runner_run(c->runner, &result);
	tools_usage_now(&usage[1]);
	rxw_endpoint_stats(c->endpoint, &stats[1]);
	if (c->token)
		server = perf_figures_fetch(c->endpoint, &c->server, c->token);
	usage[1] = tools_usage_between(&usage[0], &usage[1]);
	stats[1] = tools_stats_between(&stats[0], &stats[1]);
	if (result.failed) {
		tools_error("%s: %s", c->server_text, result.why);
		status = TOOLS_EXIT_FAILURE;
	} else {
		report = make_report(c, &result, &usage[1], &stats[1], server);
		if (c->load.json) {
			if (tools_json_print(report) < 0)
				status = TOOLS_EXIT_FAILURE;
		} else if (report) {
			print_text(c, report, server);
			json_decref(report);
		}
	}
	json_decref(server);
	json_decref(result.intervals);
	free(latency);
	return status;
}

static int run(const struct settings *set, const struct rxw_config *config, struct client *c)
{
	int status = TOOLS_EXIT_FAILURE;

	c->set = set;
	c->config = config;
	perf_pattern_init();
	/* Before the engine, so that its threads inherit the mask. */
	tools_signals_block(signals, sizeof(signals) / sizeof(signals[0]));
	if (open_client(c) == 0) {
		if (tools_signals_start(signals, sizeof(signals) / sizeof(signals[0]), on_signal, c,
					&c->signals) < 0)
			tools_error("signals: %s", strerror(errno));
		else
			status = measure(c);
	}
	close_client(c);
	return status;
}

int perf_client_main(int argc, char **argv)
{
	struct settings set = {.command = -1,
			       .port = PERF_PORT,
			       .bytes = 1 << 20,
			       .request = 100,
			       .reply = 100,
			       .slots = 1,
			       .per_connection = 1,
			       .read_size = RXPERF_IO_MAX,
			       .write_size = RXPERF_IO_MAX};
	struct rxw_config config;
	struct client c = { 0 };
	enum tools_parsed parsed;
	int first, status = TOOLS_EXIT_USAGE;

	rxw_config_init(&config, sizeof(config));
	config.log = log_line;
	parsed = tools_options_parse(&program, &set, &config, argc, argv, &first);
	if (parsed == TOOLS_DONE)
		return 0;
	if (parsed == TOOLS_RUN && first < argc) {
		tools_error("\"%s\" is not expected; see rxperf client --help", argv[first]);
	} else if (parsed == TOOLS_RUN && check_settings(&set, &c.load) == 0) {
		fill_load(&set, &c.load);
		status = run(&set, &config, &c);
	}
	xdrfree_rxperf_command(&c.load.request);
	return status;
}
