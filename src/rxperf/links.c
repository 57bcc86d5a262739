/* SPDX-License-Identifier: BSD-2-Clause */
/* rxperf client: engine, endpoints and connections of the loads, and the statistics of the server. */
#include <stdlib.h>
#include <string.h>

#include "program/message.h"
#include "rxperf/client.h"
#include "rxperf/perf.h"

int perf_failed(const char *what, int rc)
{
	return tools_fail(-1, "%s: %s", what, tools_result_text(rc));
}

static int open_endpoints(struct perf_client *c)
{
	struct rxw_endpoint_options eo = {.size = sizeof(eo)};
	struct tools_address any;

	tools_address_any(&c->server.sa, &any);
	eo.address = (struct sockaddr *)&any.sa;
	eo.address_len = any.len;
	c->endpoints = calloc(c->set->endpoints, sizeof(*c->endpoints));
	if (!c->endpoints)
		return perf_failed("endpoints", -RXW_ENOMEM);
	while (c->endpoint_count < c->set->endpoints) {
		int rc = rxw_endpoint_create(c->engine, &eo, &c->endpoints[c->endpoint_count]);

		if (rc < 0)
			return perf_failed("cannot open a socket", rc);
		c->endpoint_count++;
	}
	return 0;
}

/*
 * Create connection number i of a load. Connections are distributed over the endpoints, from the
 * first on, or backwards from the last.
 */
static int connect_one(const struct perf_client *c, size_t i, bool backwards,
		       rxw_security *security, rxw_connection **connection)
{
	size_t at = i % c->endpoint_count;

	return rxw_connection_create(c->endpoints[backwards ? c->endpoint_count - 1 - at : at],
				     (const struct sockaddr *)&c->server.sa, c->server.len,
				     PERF_SERVICE, security, connection);
}

/* load->connection_count is always the number of existing connections. */
static int connect_load(struct perf_client *c, struct perf_load *load, bool backwards)
{
	size_t count = load->connection_count;

	load->connection_count = 0;
	load->renewal = &c->auth;
	if (count == 0)
		return 0;
	load->connections = calloc(count, sizeof(*load->connections));
	if (!load->connections)
		return perf_failed("connections", -RXW_ENOMEM);
	for (size_t i = 0; i < count; i++) {
		rxw_connection *one;
		int rc = connect_one(c, i, backwards, tools_renewal_security(&c->auth), &one);

		if (rc < 0)
			return perf_failed("cannot create a connection", rc);
		atomic_store(&load->connections[i], one);
		load->connection_count = i + 1;
	}
	return 0;
}

/* Replace all connections by ones with a new token. False: nothing is changed. */
static bool replace_connections(struct perf_client *c, struct perf_load *load,
				struct perf_runner *runner, bool backwards, rxw_security *security)
{
	size_t count = load->connection_count, made = 0;
	rxw_connection **fresh = calloc(count + 1, sizeof(*fresh));
	bool good = fresh;

	while (good && made < count) {
		good = connect_one(c, made, backwards, security, &fresh[made]) == 0;
		made += good;
	}
	/* After this, `fresh` holds the old connections. */
	for (size_t i = 0; good && i < count; i++)
		fresh[i] = atomic_exchange(&load->connections[i], fresh[i]);
	if (good)
		perf_runner_passed(runner);
	for (size_t i = 0; i < made; i++)
		rxw_connection_release(fresh[i]);
	free(fresh);
	return good;
}

static bool reconnect_with_token(void *arg, rxw_token *token)
{
	struct perf_client *c = arg;
	rxw_security *security = rxw_token_security(token);

	return replace_connections(c, &c->load, c->runner, false, security) &&
	       replace_connections(c, &c->mix, c->mix_runner, true, security);
}

int perf_links_open(struct perf_client *c)
{
	char message[TOOLS_AUTH_MESSAGE];
	int rc;

	if (tools_renewal_open(&c->auth, &c->set->auth, &c->server, reconnect_with_token, c,
			       message, sizeof(message)) < 0)
		return tools_fail(-1, "%s", message);
	rc = rxw_engine_create(c->config, &c->engine);
	if (rc < 0)
		return perf_failed("cannot start", rc);
	if (open_endpoints(c) < 0 || connect_load(c, &c->load, false) < 0)
		return -1;
	return connect_load(c, &c->mix, true);
}

static void release_connections(struct perf_load *load)
{
	for (size_t i = 0; load->connections && i < load->connection_count; i++)
		rxw_connection_release(atomic_load(&load->connections[i]));
	free(load->connections);
}

void perf_links_close(struct perf_client *c)
{
	tools_renewal_stop(&c->auth);
	release_connections(&c->load);
	release_connections(&c->mix);
	for (size_t i = 0; i < c->endpoint_count; i++)
		rxw_endpoint_destroy(c->endpoints[i]);
	free(c->endpoints);
	if (c->engine)
		rxw_engine_destroy(c->engine);
	tools_renewal_close(&c->auth);
}

struct counters perf_links_stats(const struct perf_client *c)
{
	struct counters all = {{0}};

	for (size_t i = 0; i < c->endpoint_count; i++) {
		struct counters one;

		if (counters_read(&one, c->endpoints[i]) == 0)
			tools_stats_add(&all, &one);
	}
	return all;
}

/* ---- statistics of the server ---- */

#define PATIENCE_MS 2000

/* Begin a call to the service, on a connection of its own. 0, or -1. */
static int begin_figures_call(rxw_endpoint *endpoint, const struct tools_address *server,
			      rxw_connection **connection, rxw_call **call)
{
	struct rxw_call_options co = {.size = sizeof(co), .deadline_ms = PATIENCE_MS};

	if (rxw_connection_create(endpoint, (const struct sockaddr *)&server->sa, server->len,
				  PERF_FIGURES_SERVICE, NULL, connection) < 0)
		return -1;
	if (rxw_call_begin(*connection, &co, call) == 0)
		return 0;
	rxw_connection_release(*connection);
	return -1;
}

static int32_t end_figures_call(rxw_connection *connection, rxw_call *call, int32_t code)
{
	code = rxw_call_end(call, code, NULL);
	rxw_connection_release(connection);
	return code;
}

uint32_t perf_figures_mark(rxw_endpoint *endpoint, const struct tools_address *server)
{
	rxw_connection *connection;
	rxw_call *call;
	uint32_t token = 0;
	int32_t code;

	if (begin_figures_call(endpoint, server, &connection, &call) < 0)
		return 0;
	code = StartRXPERFFIG_Mark(call, 0);
	if (code == 0)
		code = EndRXPERFFIG_Mark(call, &token);
	return end_figures_call(connection, call, code) == 0 ? token : 0;
}

json_t *perf_figures_fetch(rxw_endpoint *endpoint, const struct tools_address *server,
			   uint32_t token)
{
	char *text = malloc(PERF_FIGURES_MAX);
	json_t *figures = NULL;
	rxw_connection *connection;
	rxw_call *call;
	ssize_t got = -1;
	int32_t code;

	if (!text)
		return NULL;
	if (begin_figures_call(endpoint, server, &connection, &call) == 0) {
		code = StartRXPERFFIG_Report(call, token);
		if (code == 0)
			got = rxw_call_read(call, text, PERF_FIGURES_MAX);
		if (end_figures_call(connection, call, code) != 0)
			got = -1;
	}
	if (got > 0)
		figures = json_loadb(text, (size_t)got, 0, NULL);
	free(text);
	if (!json_is_object(figures)) {
		json_decref(figures);
		return NULL;
	}
	return figures;
}
