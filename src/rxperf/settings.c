/* SPDX-License-Identifier: BSD-2-Clause */
/* The command line of rxperf client. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "program/message.h"
#include "program/options.h"
#include "rxperf/client.h"

#define MOST_IN_FLIGHT 10000

#define COMMANDS       "send|recv|rpc|file"
static const char *const command_names[] = {"send", "recv", "rpc", "file"};
static const rxperf_what command_codes[] = {RXPERF_SEND, RXPERF_RECV, RXPERF_RPC, RXPERF_FILE};

/* A positive number with optional decimals. */
static int set_rate(void *target, const char *value, char *allowed, size_t size)
{
	char *end;
	double v = strtod(value, &end);

	snprintf(allowed, size, "calls per second, above 0, at most 10000000");
	if (end == value || *end || !isdigit((unsigned char)value[0]) || !(v > 0) || v > 1e7)
		return -1;
	((struct perf_settings *)target)->rate = v;
	return 0;
}

#define SETTING(field) offsetof(struct perf_settings, field)
static const struct tools_option options[] = {
	TOOLS_OPTION("command", 'c', TOOLS_CHOICE, command, COMMANDS,
		     "kind of calls: data to or from the server, small calls, a list"),
	TOOLS_OPTION("server", 's', TOOLS_STRING, host, "HOST[:PORT]",
		     "name or address of the server, and its port in place of --port"),
	TOOLS_OPTION("port", 'p', TOOLS_UINT, port, "PORT", "UDP port of the server (7009)",
		     .min = 1, .max = 65535),
	TOOLS_OPTION("bytes", 'b', TOOLS_SIZE, bytes, "BYTES",
		     "-c send, recv: data of each call (1M)", .max = PERF_MAX_BYTES),
	TOOLS_OPTION("request", 'S', TOOLS_SIZE, request, "BYTES",
		     "-c rpc: data of each request (100)", .commands = "rpc",
		     .max = PERF_MAX_BYTES),
	TOOLS_OPTION("reply", 'R', TOOLS_SIZE, reply, "BYTES", "-c rpc: data of each reply (100)",
		     .commands = "rpc", .max = PERF_MAX_BYTES),
	TOOLS_OPTION("file", 'f', TOOLS_STRING, list, "LIST",
		     "-c file: sizes with commas; those after 0 are received"),
	TOOLS_OPTION("in-flight", 't', TOOLS_UINT, slots, "CALLS",
		     "calls in flight (1); with --rate the maximum (4 per connection)", .min = 1,
		     .max = 10000),
	TOOLS_OPTION("per-connection", 'C', TOOLS_UINT, per_connection, "CALLS",
		     "calls of -t that share a connection, 1 to 4 (1)", .min = 1, .max = 4),
	TOOLS_OPTION("times", 'T', TOOLS_UINT, calls, "CALLS",
		     "total number of calls for each of -t (1)", .min = 1),
	TOOLS_OPTION("duration", 'D', TOOLS_DURATION, duration_ms, "SECONDS",
		     "make calls for this time instead", .min = 1, .max = 31536000000),
	TOOLS_OPTION("endpoints", 0, TOOLS_UINT, endpoints, "N",
		     "client ports, each with its own thread (1)", .min = 1, .max = 4096),
	TOOLS_OPTION("connections", 0, TOOLS_UINT, connections, "N",
		     "total number of connections, used in rotation (as many as -t needs)",
		     .min = 1, .max = 1000000),
	TOOLS_OPTION_AT("rate", 0, TOOLS_CALL, 0, "CALLS/S",
			"open loop: calls to start per second, whether answered or not",
			.set = set_rate),
	TOOLS_OPTION("arrivals", 0, TOOLS_CHOICE, arrivals, "even|poisson",
		     "distribution of the starts of an open loop (even)"),
	TOOLS_OPTION("prime", 0, TOOLS_FLAG, prime, NULL,
		     "make one call on each connection before the measurement"),
	TOOLS_OPTION("mix", 0, TOOLS_CHOICE, mix, "none|send|recv",
		     "additional bulk calls of -b bytes, reported separately (none)"),
	TOOLS_OPTION("mix-streams", 0, TOOLS_UINT, mix_streams, "CALLS",
		     "bulk calls of --mix in flight (1)", .min = 1, .max = 10000),
	TOOLS_OPTION("read-size", 'r', TOOLS_SIZE, read_size, "BYTES",
		     "bytes of each read from the library, on both sides (512K)", .min = 1,
		     .max = RXPERF_IO_MAX),
	TOOLS_OPTION("write-size", 'w', TOOLS_SIZE, write_size, "BYTES",
		     "bytes of each write to the library, on both sides (512K)", .min = 1,
		     .max = RXPERF_IO_MAX),
	TOOLS_OPTION_AT("window", 'W', TOOLS_TUNABLE, 0, "PACKETS",
			"same as --window of the library, 1 to 65535"),
	TOOLS_OPTION("form", 0, TOOLS_CHOICE, form, "auto|blocking|async",
		     "blocking calls on threads, or callbacks; auto: blocking for one call"),
	TOOLS_OPTION("interval", 0, TOOLS_DURATION, interval_ms, "SECONDS",
		     "also report at this interval", .min = 10, .max = 31536000000),
	TOOLS_OPTION("timeout", 0, TOOLS_DURATION, timeout_ms, "SECONDS",
		     "give up if no call in flight makes progress for this time (60)", .min = 100,
		     .max = 86400000),
	TOOLS_OPTION("verify", 0, TOOLS_FLAG, verify, NULL,
		     "check received data; the server must be rxperf of rxwire"),
	TOOLS_OPTION("per-stream", 0, TOOLS_FLAG, per_stream, NULL,
		     "with --json: the bytes of each call slot of -t"),
	TOOLS_OPTION("class", 'x', TOOLS_CHOICE, auth.class, TOOLS_CLASSES,
		     "security class of the connections (null)"),
	TOOLS_OPTION("level", 0, TOOLS_CHOICE, auth.level, TOOLS_LEVELS,
		     "protection of calls with rxkad and rxgk (crypt)"),
	TOOLS_OPTION("key-file", 0, TOOLS_STRING, auth.key_file, "FILE",
		     "service keys of the server, to make a token"),
	TOOLS_OPTION("cell", 0, TOOLS_STRING, auth.cell, "CELL",
		     "use a Kerberos ticket for afs/CELL"),
	TOOLS_OPTION("keytab", 0, TOOLS_STRING, auth.keytab, "FILE",
		     "obtain the ticket with a key in FILE, not with those of kinit"),
	TOOLS_TRACE_OPTIONS(SETTING, trace),
	TOOLS_OPTION("json", 0, TOOLS_FLAG, json, NULL, "report as one JSON object"),
};

static const struct tools_program program = {
	.name = "rxperf",
	.usage = "usage: rxperf client -c send|recv|rpc|file -s HOST [-p PORT] [option...]\n",
	.summary = "Make calls to an rxperf server and report their performance.",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
};

/* Whether an option is given that the others make pointless: a message and true then. */
static bool refuse_pointless_settings(const struct perf_settings *set)
{
	const struct {
		const char *option;
		bool used;
		const char *needs;
	} uses[] = {
		{"bytes", set->command < 2 || set->mix, "-c send, -c recv or --mix"},
		{"mix-streams", set->mix, "--mix"},
		{"arrivals", set->rate > 0, "--rate"},
		{"per-stream", set->json, "--json"},
	};

	for (size_t i = 0; i < sizeof(uses) / sizeof(uses[0]); i++)
		if (!uses[i].used && tools_place_given(uses[i].option))
			return tools_fail(true, "option --%s has an effect only with %s",
					  uses[i].option, uses[i].needs);
	return tools_options_suit(&program, command_names[set->command]) < 0;
}

/* Checks that the option table cannot express. 0, or -1 after a message. */
static int check_perf_settings(const struct perf_settings *set, struct perf_load *load)
{
	char message[160];

	if (set->command < 0)
		return tools_fail(-1,
				  "choose the kind of calls with -c %s; see rxperf client --help",
				  COMMANDS);
	if (!set->host)
		return tools_fail(-1, "name the server with -s HOST; see rxperf client --help");
	if (set->calls && set->duration_ms)
		return tools_fail(
			-1, "-T and -D are mutually exclusive; give a number of calls or a time");
	if (set->rate > 0 && (!set->duration_ms || set->form == PERF_FORM_BLOCKING))
		return tools_fail(-1, set->duration_ms
					      ? "--rate cannot be used with --form blocking"
					      : "--rate needs -D, the duration");
	if ((command_codes[set->command] == RXPERF_FILE) != (set->list != NULL))
		return tools_fail(-1, set->list ? "-f requires -c file"
						: "-c file needs a list, for example -f 64K,0,1M");
	if (refuse_pointless_settings(set))
		return -1;
	load->request.what = command_codes[set->command];
	if (set->list &&
	    perf_parse_list(set->list, &load->request.u.file, message, sizeof(message)) < 0)
		return tools_fail(-1, "option --file: %s", message);
	return 0;
}

static void fill_request(const struct perf_settings *set, rxperf_command *r)
{
	const rxperf_sizes sizes = {(uint32_t)set->read_size, (uint32_t)set->write_size};

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
		r->u.file.sizes = sizes; /* the list is set */
	}
}

/* Numbers of calls and connections. 0, or -1 after a message. */
static int fill_counts(const struct perf_settings *set, struct perf_load *load)
{
	bool open = set->rate > 0;
	uint64_t slots = set->slots, connections = set->connections, need;

	if (!connections && open)
		connections = set->endpoints;
	if (!slots)
		slots = !open				   ? 1
			: 4 * connections < MOST_IN_FLIGHT ? 4 * connections
							   : MOST_IN_FLIGHT;
	/* An open loop distributes its slots over all connections, at most four each. */
	need = open ? (slots + 3) / 4 : (slots + set->per_connection - 1) / set->per_connection;
	if (!connections)
		connections = need;
	if (connections < need)
		return tools_fail(-1,
				  "--connections %llu is too small; %llu calls in flight need %llu",
				  (unsigned long long)connections, (unsigned long long)slots,
				  (unsigned long long)need);
	load->slots = slots;
	load->connection_count = connections;
	load->per_connection = set->per_connection;
	return 0;
}

static void fill_mix(const struct perf_settings *set, struct perf_load *mix)
{
	if (!set->mix)
		return;
	mix->request.what = set->mix == 1 ? RXPERF_SEND : RXPERF_RECV;
	fill_request(set, &mix->request);
	mix->slots = mix->connection_count = set->mix_streams;
	mix->per_connection = 1;
	mix->duration_ms = 31536000000; /* the main load ends it */
	mix->verify = set->verify;
	mix->timeout_ms = set->timeout_ms;
	mix->json = true; /* no reports during the run */
}

int perf_settings_apply(const struct perf_settings *set, struct perf_load *load,
			struct perf_load *mix)
{
	if (check_perf_settings(set, load) < 0 || fill_counts(set, load) < 0)
		return -1;
	fill_request(set, &load->request);
	load->duration_ms = set->duration_ms;
	load->calls_per_slot = set->duration_ms ? 0 : set->calls ? set->calls : 1;
	load->interval_ms = set->interval_ms;
	load->timeout_ms = set->timeout_ms;
	load->rate = set->rate;
	load->arrivals = (enum perf_arrivals_kind)set->arrivals;
	load->verify = set->verify;
	load->json = set->json;
	load->form = (enum perf_form)set->form;
	fill_mix(set, mix);
	return 0;
}

const char *perf_command_name(int command)
{
	return command_names[command];
}

/* Lines about traces go to stderr, since stdout is for the report. */
static void print_trace_line(const char *line)
{
	tools_error("%s", line);
}

enum tools_parsed perf_settings_parse(struct perf_settings *set, struct rxw_config *config,
				      int argc, char **argv)
{
	enum tools_parsed parsed;
	int first;

	*set = (struct perf_settings){.command = -1,
				      .port = PERF_PORT,
				      .bytes = 1 << 20,
				      .request = 100,
				      .reply = 100,
				      .per_connection = 1,
				      .endpoints = 1,
				      .mix_streams = 1,
				      .timeout_ms = 60000,
				      .read_size = RXPERF_IO_MAX,
				      .write_size = RXPERF_IO_MAX,
				      .auth = {.class = -1, .level = -1},
				      .trace = {.start = true, .say = print_trace_line}};
	tools_config_init(config);
	parsed = tools_options_parse(&program, set, config, argc, argv, &first);
	if (parsed == TOOLS_RUN && first < argc) {
		tools_error("unexpected argument \"%s\"; see rxperf client --help", argv[first]);
		parsed = TOOLS_USAGE;
	}
	return parsed;
}
