/* SPDX-License-Identifier: BSD-2-Clause */
/* Asking a server of rxwire for its figures. */
#include <stdlib.h>
#include <string.h>

#include "tools/perf/perf.h"

#define PATIENCE_MS 2000

/*
 * One small call: two words there, at most `size` bytes back. Returns their number, or -1 for any
 * failure.
 */
static ssize_t ask(rxw_endpoint *endpoint, const struct tools_address *server, uint32_t operation,
		   uint32_t token, void *reply, size_t size)
{
	struct rxw_call_options co = { .size = sizeof(co), .deadline_ms = PATIENCE_MS };
	rxw_connection *connection;
	rxw_call *call;
	uint8_t words[8];
	struct rxw_xdr x;
	ssize_t got = -1;

	if (rxw_connection_create(endpoint, (const struct sockaddr *)&server->sa, server->len,
				  PERF_FIGURES_SERVICE, NULL, &connection) < 0)
		return -1;
	if (rxw_call_begin(connection, &co, &call) == 0) {
		rxw_xdr_writer(&x, words, sizeof(words));
		rxw_xdr_put_u32(&x, operation);
		rxw_xdr_put_u32(&x, token);
		if (rxw_call_write(call, words, sizeof(words)) == sizeof(words) &&
		    rxw_call_send_end(call) == 0)
			got = rxw_call_read(call, reply, size);
		if (rxw_call_end(call, 0, NULL) != 0)
			got = -1;
	}
	rxw_connection_release(connection);
	return got;
}

uint32_t perf_figures_mark(rxw_endpoint *endpoint, const struct tools_address *server)
{
	uint8_t word[4];
	struct rxw_xdr x;
	uint32_t token = 0;

	if (ask(endpoint, server, PERF_OP_MARK, 0, word, sizeof(word)) != sizeof(word))
		return 0;
	rxw_xdr_reader(&x, word, sizeof(word));
	rxw_xdr_get_u32(&x, &token);
	return token;
}

json_t *perf_figures_fetch(rxw_endpoint *endpoint, const struct tools_address *server,
			   uint32_t token)
{
	char *text = malloc(PERF_FIGURES_MAX);
	json_t *figures = NULL;
	ssize_t got;

	if (!text)
		return NULL;
	got = ask(endpoint, server, PERF_OP_FIGURES, token, text, PERF_FIGURES_MAX);
	if (got > 0)
		figures = json_loadb(text, (size_t)got, 0, NULL);
	free(text);
	if (!json_is_object(figures)) {
		json_decref(figures);
		return NULL;
	}
	return figures;
}
