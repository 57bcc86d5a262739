/* SPDX-License-Identifier: BSD-2-Clause */
/* What the loads of rxperf client run on: engine, endpoints, connections. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/message.h"
#include "tools/perf/client.h"

int perf_failed(const char *what, int rc)
{
	tools_error("%s: %s", what, rc == -RXW_ESYS ? strerror(errno) : rxw_strerror(rc));
	return -1;
}

static int open_endpoints(struct perf_client *c)
{
	struct rxw_endpoint_options eo = { .size = sizeof(eo) };
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
 * The connections of a load, dealt to the endpoints from the first on, or from the last on
 * backwards. load->connection_count is what is there at any time.
 */
static int connect_load(struct perf_client *c, struct perf_load *load, bool backwards)
{
	size_t count = load->connection_count;

	load->connection_count = 0;
	if (count == 0)
		return 0;
	load->connections = calloc(count, sizeof(*load->connections));
	if (!load->connections)
		return perf_failed("connections", -RXW_ENOMEM);
	for (size_t i = 0; i < count; i++) {
		size_t at = i % c->endpoint_count;
		int rc = rxw_connection_create(
			c->endpoints[backwards ? c->endpoint_count - 1 - at : at],
			(struct sockaddr *)&c->server.sa, c->server.len, PERF_SERVICE,
			c->auth ? rxw_token_security(c->auth) : NULL,
			&load->connections[i]);

		if (rc < 0)
			return perf_failed("cannot make a connection", rc);
		load->connection_count = i + 1;
	}
	return 0;
}

int perf_links_open(struct perf_client *c)
{
	char message[TOOLS_AUTH_MESSAGE];
	int rc;

	if (tools_auth_token(&c->set->auth, &c->server, &c->auth, message, sizeof(message)) < 0) {
		tools_error("%s", message);
		return -1;
	}
	rc = rxw_engine_create(c->config, &c->engine);
	if (rc < 0)
		return perf_failed("cannot start", rc);
	if (open_endpoints(c) < 0 || connect_load(c, &c->load, false) < 0 ||
	    connect_load(c, &c->mix, true) < 0)
		return -1;
	return 0;
}

static void disconnect(struct perf_load *load)
{
	for (size_t i = 0; load->connections && i < load->connection_count; i++)
		rxw_connection_release(load->connections[i]);
	free(load->connections);
}

void perf_links_close(struct perf_client *c)
{
	disconnect(&c->load);
	disconnect(&c->mix);
	for (size_t i = 0; i < c->endpoint_count; i++)
		rxw_endpoint_destroy(c->endpoints[i]);
	free(c->endpoints);
	if (c->engine)
		rxw_engine_destroy(c->engine);
	rxw_token_unref(c->auth);
}

struct rxw_stats perf_links_stats(const struct perf_client *c)
{
	struct rxw_stats all = { .size = sizeof(all) };

	for (size_t i = 0; i < c->endpoint_count; i++) {
		struct rxw_stats one = { .size = sizeof(one) };

		if (rxw_endpoint_stats(c->endpoints[i], &one) == 0)
			tools_stats_add(&all, &one);
	}
	return all;
}
