/* SPDX-License-Identifier: BSD-2-Clause */
/* Asking an rxperf server for its statistics. */
#include <stdlib.h>
#include <string.h>

#include "rxperf/perf.h"

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
