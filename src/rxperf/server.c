/* SPDX-License-Identifier: BSD-2-Clause */
/* rxperf server: options, endpoints, signals. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "program/auth.h"
#include "program/message.h"
#include "program/metrics.h"
#include "program/options.h"
#include "program/signals.h"
#include "program/trace.h"
#include "rxperf/serve.h"

struct settings {
	uint64_t port;
	struct tools_list listen;
	bool verify, json, inline_calls, rpc_stats, rpc_stats_open;
	struct tools_auth auth;
	const char *keytab;
	struct tools_metrics_options metrics;
	struct tools_trace_options trace;
};

#define SETTING(member) offsetof(struct settings, member)

static const struct tools_option options[] = {
	TOOLS_OPTION("port", 'p', TOOLS_UINT, port, "PORT", "UDP port; 0 = a free port (7009)",
		     .max = 65535),
	TOOLS_OPTION("listen", 0, TOOLS_LIST, listen, "ADDR",
		     "address to serve on; may be repeated (0.0.0.0)"),
	TOOLS_OPTION("verify", 0, TOOLS_FLAG, verify, NULL,
		     "check received data; the clients must be rxperf of rxwire"),
	TOOLS_OPTION("short", 0, TOOLS_FLAG, inline_calls, NULL,
		     "serve calls on the receiving thread; for small rpc calls only"),
	TOOLS_OPTION("rpc-stats", 0, TOOLS_FLAG, rpc_stats, NULL,
		     "offer call statistics (RXSTATS) to this host"),
	TOOLS_OPTION("rpc-stats-open", 0, TOOLS_FLAG, rpc_stats_open, NULL,
		     "offer call statistics to other hosts as well"),
	TOOLS_OPTION("class", 'x', TOOLS_CHOICE, auth.class, TOOLS_CLASSES,
		     "offer only this security class (null and all that have keys)"),
	TOOLS_OPTION("level", 0, TOOLS_CHOICE, auth.level, TOOLS_LEVELS,
		     "minimum protection with rxkad and rxgk (clear)"),
	TOOLS_OPTION("key-file", 0, TOOLS_STRING, auth.key_file, "FILE",
		     "service keys; generated for rxkad and rxgk if FILE does not exist"),
	TOOLS_OPTION("keytab", 0, TOOLS_STRING, keytab, "FILE",
		     "service keys: an existing keytab, KeyFileExt or KeyFile"),
	TOOLS_OPTION("cell", 0, TOOLS_STRING, auth.cell, "CELL",
		     "use the keys of afs/CELL in a keytab (any), and of afs-rxgk/_afs.CELL to "
		     "issue rxgk tokens"),
	TOOLS_METRICS_OPTIONS(SETTING, metrics),
	TOOLS_TRACE_OPTIONS_OF_SERVERS(SETTING, trace),
	TOOLS_OPTION_AT("window", 'W', TOOLS_TUNABLE, 0, "PACKETS",
			"same as --window of the library, 1 to 65535"),
	TOOLS_OPTION("json", 0, TOOLS_FLAG, json, NULL, "print statistics as JSON"),
};

static const struct tools_program program = {
	.name = "rxperf",
	.usage = "usage: rxperf server [-p PORT] [--listen ADDR] [option...]\n",
	.summary = "Serve the rxperf service. SIGUSR1 prints statistics; SIGHUP reloads the "
		   "keys;\nSIGUSR2 starts and ends a packet trace; SIGINT and SIGTERM print "
		   "statistics and exit.",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
};

static const int signals[] = {SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGHUP};
#define SIGNAL_COUNT (sizeof(signals) / sizeof(signals[0]))

/* guard: the classes to offer; NULL: only the null class. */
static int add_service(rxw_endpoint *endpoint, uint16_t id, const char *name,
		       rxw_handler_fn handler, void *context, unsigned flags,
		       const struct tools_guard *guard)
{
	struct rxw_service_options service = {.size = sizeof(service),
					      .id = id,
					      .name = name,
					      .handler = handler,
					      .context = context,
					      .flags = flags,
					      .security = guard ? guard->classes : NULL,
					      .security_count = guard ? guard->count : 0};
	rxw_service *added;

	return rxw_service_add(endpoint, &service, &added);
}

/* Offer all services, and let the endpoint serve. 0, or a negative result of the library. */
static int start_services(struct perf_server *server, rxw_endpoint *endpoint,
			  const struct settings *set)
{
	int rc;

	if ((rc = add_service(endpoint, PERF_SERVICE, "rxperf", perf_handle, server,
			      set->inline_calls ? RXW_SERVICE_INLINE : 0, &server->guard)) < 0 ||
	    (rc = add_service(endpoint, PERF_FIGURES_SERVICE, "rxperf-figures",
			      RXPERFFIG_ExecuteRequest, &server->figures, 0, NULL)) < 0 ||
	    (rc = tools_guard_offer(&server->guard, endpoint)) < 0)
		return rc;
	if (server->stats && ((rc = rxw_rpcstats_observe(server->stats, endpoint)) < 0 ||
			      (rc = rxw_rpcstats_serve(server->stats, endpoint)) < 0))
		return rc;
	return rxw_endpoint_start(endpoint);
}

/* Bind one address and offer the services there. 0, or -1 after a message. */
static int listen_on(struct perf_server *server, rxw_engine *engine, const char *host,
		     const struct settings *set)
{
	struct rxw_endpoint_options eo = {
		.size = sizeof(eo), .server = 1, .paused = 1, .version_text = "rxwire rxperf"};
	struct tools_address address;
	char message[256], text[TOOLS_ADDRESS_TEXT];
	rxw_endpoint *endpoint;
	int rc;

	if (tools_resolve(host, (uint16_t)set->port, 1, &address, message, sizeof(message)) < 0)
		return tools_fail(-1, "--listen: %s", message);
	tools_address_text(&address.sa, text, sizeof(text));
	eo.address = (struct sockaddr *)&address.sa;
	eo.address_len = address.len;
	rc = rxw_endpoint_create(engine, &eo, &endpoint);
	if (rc == -RXW_EADDRINUSE || (rc == -RXW_ESYS && errno == EADDRINUSE))
		return tools_fail(-1,
				  "port %u of %s is in use by another program; stop it, or choose "
				  "another port with -p",
				  (unsigned)set->port, text);
	if (rc < 0)
		return tools_fail(-1, "cannot serve on %s: %s", text, tools_result_text(rc));
	server->endpoints[server->endpoint_count++] = endpoint;
	rc = start_services(server, endpoint, set);
	if (rc == 0)
		return 0;
	return tools_fail(-1, "cannot offer the service on %s: %s", text, rxw_strerror(rc));
}

static void print_figures(struct perf_server *server)
{
	json_t *report = perf_server_report(server, &server->start);

	if (server->json) {
		tools_json_print(report);
		return;
	}
	if (report)
		tools_report_print("served", report);
	fflush(stdout);
	json_decref(report);
}

static void print_ready(const struct perf_server *server)
{
	for (size_t i = 0; i < server->endpoint_count; i++) {
		struct sockaddr_storage sa;
		socklen_t len = sizeof(sa);
		char text[TOOLS_ADDRESS_TEXT];

		if (rxw_endpoint_address(server->endpoints[i], &sa, &len) == 0)
			printf("rxperf server ready on %s\n",
			       tools_address_text(&sa, text, sizeof(text)));
	}
	fflush(stdout);
}

/* Read the keys again. If that fails the old keys stay in use. */
static void reload_server_keys(struct perf_server *server)
{
	char message[TOOLS_AUTH_MESSAGE] = "";

	if (server->guard.keys &&
	    rxw_keys_reload(server->guard.keys, message, sizeof(message)) < 0) {
		tools_error("%s; the old keys remain in force", message);
		return;
	}
	if (message[0])
		tools_error("warning: %s", message);
	printf("rxperf server reloaded its keys\n");
	fflush(stdout);
}

static void print_server_line(const char *line)
{
	printf("rxperf server: %s\n", line);
	fflush(stdout);
}

/* Handle signals until one says stop. */
static void handle_signals(struct perf_server *server, struct tools_trace *trace)
{
	for (;;) {
		switch (tools_signals_wait(signals, SIGNAL_COUNT, NULL)) {
		case SIGHUP:
			reload_server_keys(server);
			break;
		case SIGUSR1:
			print_figures(server);
			break;
		case SIGUSR2:
			tools_trace_switch(trace);
			break;
		default:
			return;
		}
	}
}

/* Serve until a signal says stop. Returns the exit status. */
static int run_perf_endpoints(struct perf_server *server, rxw_engine *engine,
			      const struct settings *set)
{
	static const char *const any[] = {"0.0.0.0"};
	const char *const *hosts = set->listen.count ? set->listen.items : any;
	size_t count = set->listen.count ? set->listen.count : 1;
	struct tools_metrics *metrics;
	struct tools_trace *trace;
	char message[256];

	if (count > PERF_MAX_LISTEN)
		return tools_fail(TOOLS_EXIT_USAGE, "--listen: at most %d addresses",
				  PERF_MAX_LISTEN);
	for (size_t i = 0; i < count; i++)
		if (listen_on(server, engine, hosts[i], set) < 0)
			return TOOLS_EXIT_FAILURE;
	if (tools_metrics_start(&set->metrics, server->endpoints, server->endpoint_count, &metrics,
				message, sizeof(message)) < 0) {
		tools_place_message(message, sizeof(message));
		return tools_fail(TOOLS_EXIT_FAILURE, "%s", message);
	}
	if (tools_trace_open(&set->trace, server->endpoints, server->endpoint_count, &trace,
			     message, sizeof(message)) < 0) {
		tools_place_message(message, sizeof(message));
		tools_error("%s", message);
		tools_metrics_stop(metrics);
		return TOOLS_EXIT_FAILURE;
	}
	pthread_mutex_lock(&server->lock);
	perf_moment_now(server, &server->start);
	pthread_mutex_unlock(&server->lock);
	print_ready(server);
	handle_signals(server, trace);
	for (size_t i = 0; i < server->endpoint_count; i++)
		rxw_endpoint_stop(server->endpoints[i], 1000);
	tools_metrics_stop(metrics);
	tools_trace_close(trace);
	print_figures(server);
	return 0;
}

/* Load keys and create the classes. 0, or -1 after a message. */
static int open_perf_guard(struct perf_server *server, const struct settings *set)
{
	struct tools_auth auth = set->auth;
	char message[TOOLS_AUTH_MESSAGE] = "";

	if (auth.key_file && set->keytab)
		return tools_fail(-1, "--key-file and --keytab are mutually exclusive");
	if (auth.key_file && tools_make_keys(auth.key_file, message, sizeof(message)) < 0)
		return tools_fail(-1, "--key-file: %s", message);
	if (set->keytab)
		auth.key_file = set->keytab;
	if (auth.class > TOOLS_NULL && !auth.key_file)
		return tools_fail(
			-1, "-x needs service keys: use --keytab, or --key-file to generate them");
	if (tools_guard_open(&server->guard, &auth, auth.class <= TOOLS_NULL, message,
			     sizeof(message)) < 0)
		return tools_fail(-1, "%s", message);
	if (message[0])
		tools_error("warning: %s", message);
	return 0;
}

static int run_perf_server(struct perf_server *server, const struct rxw_config *config,
			   const struct settings *set)
{
	const struct rxw_rpcstats_options counted = {.size = sizeof(counted),
						     .process = true,
						     .peers = true,
						     .open = set->rpc_stats_open};
	rxw_engine *engine;
	int status = TOOLS_EXIT_FAILURE, rc = rxw_engine_create(config, &engine);

	if (rc < 0)
		return tools_fail(status, "cannot start: %s", tools_result_text(rc));
	if (set->rpc_stats || set->rpc_stats_open) {
		rc = rxw_rpcstats_create(&counted, &server->stats);
		if (rc < 0) {
			tools_error("cannot start: %s", tools_result_text(rc));
			goto out;
		}
	}
	status = run_perf_endpoints(server, engine, set);
	for (size_t i = 0; i < server->endpoint_count; i++)
		rxw_endpoint_stop(server->endpoints[i], 0); /* if it has not stopped */
	for (size_t i = 0; i < server->endpoint_count; i++)
		while (rxw_endpoint_destroy(server->endpoints[i]) == -RXW_ESTATE)
			usleep(1000); /* calls without a thread end one after another */
out:
	rxw_engine_destroy(engine);
	rxw_rpcstats_destroy(server->stats);
	return status;
}

int perf_server_main(int argc, char **argv)
{
	struct settings set = {.port = PERF_PORT,
			       .auth = {.class = -1, .level = -1},
			       .trace.say = print_server_line};
	struct rxw_config config;
	struct perf_server *server;
	enum tools_parsed parsed;
	int first, status;

	tools_config_init(&config);
	/*
	 * Calls of the file command occupy a worker, however large; a load of 200 must not wait for
	 * 64 workers.
	 */
	config.workers_max = 256;
	parsed = tools_options_parse(&program, &set, &config, argc, argv, &first);
	if (parsed == TOOLS_RUN && first < argc) {
		tools_error("unexpected argument \"%s\"; see rxperf server --help", argv[first]);
		parsed = TOOLS_USAGE;
	} else if (parsed == TOOLS_RUN && set.trace.start && !set.trace.dir) {
		tools_error("--trace-start without a place: give --trace-dir DIR");
		parsed = TOOLS_USAGE;
	}
	if (parsed != TOOLS_RUN) {
		tools_list_free(&set.listen);
		return parsed == TOOLS_DONE ? 0 : TOOLS_EXIT_USAGE;
	}
	tools_signals_block(signals, SIGNAL_COUNT);
	perf_pattern_init();
	server = calloc(1, sizeof(*server));
	if (!server)
		return tools_fail(TOOLS_EXIT_FAILURE, "no memory");
	perf_server_init(server);
	server->verify = set.verify;
	server->json = set.json;
	server->config = &config;
	pthread_mutex_init(&server->lock, NULL);
	status = open_perf_guard(server, &set) < 0 ? TOOLS_EXIT_FAILURE
						   : run_perf_server(server, &config, &set);
	tools_guard_close(&server->guard);
	pthread_mutex_destroy(&server->lock);
	free(server);
	tools_list_free(&set.listen);
	return status;
}
