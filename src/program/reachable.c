/* SPDX-License-Identifier: BSD-2-Clause */
/* Choosing one of several addresses of a server. */
#include <stdbool.h>

#include <rxwire/rxwire.h>

#include "program/reachable.h"

#define FIRST_MS  500
#define SECOND_MS 3000

/* An opcode that no interface has. Any answer, also a refusal, is one. */
static const uint8_t no_opcode[4] = {0x7f, 0xff, 0xff, 0xff};

static bool is_call_answered(rxw_connection *connection, unsigned ms)
{
	struct rxw_call_options co = {.size = sizeof(co), .deadline_ms = ms};
	enum rxw_origin origin = RXW_ORIGIN_NONE;
	uint8_t ignored[64];
	rxw_call *call;
	int32_t code;

	if (rxw_call_begin(connection, &co, &call) < 0)
		return false;
	if (rxw_call_write(call, no_opcode, sizeof(no_opcode)) > 0 &&
	    rxw_call_send_end(call) == 0 &&
	    rxw_call_read_some(call, ignored, sizeof(ignored)) > 0) {
		rxw_call_end(call, RXW_USER_ABORT, NULL);
		return true;
	}
	code = rxw_call_end(call, 0, &origin);
	return code == 0 || origin == RXW_ORIGIN_PEER;
}

static bool is_address_served(rxw_engine *engine, const struct tools_address *address,
			      uint16_t service, unsigned ms)
{
	struct tools_address any;
	struct rxw_endpoint_options eo = {.size = sizeof(eo)};
	rxw_connection *connection;
	rxw_endpoint *endpoint;
	bool good = false;

	tools_address_any(&address->sa, &any);
	eo.address = (struct sockaddr *)&any.sa;
	eo.address_len = any.len;
	if (rxw_endpoint_create(engine, &eo, &endpoint) < 0)
		return false;
	if (rxw_connection_create(endpoint, (const struct sockaddr *)&address->sa, address->len,
				  service, NULL, &connection) == 0) {
		good = is_call_answered(connection, ms);
		rxw_connection_release(connection);
	}
	rxw_endpoint_destroy(endpoint);
	return good;
}

size_t tools_find_reachable(const struct rxw_config *config, const struct tools_address *list,
			    size_t count, uint16_t service)
{
	rxw_engine *engine;
	size_t found = count;

	if (count < 2 || rxw_engine_create(config, &engine) < 0)
		return 0;
	for (size_t i = 0; i < 2 * count && found == count; i++)
		if (is_address_served(engine, &list[i % count], service,
				      i < count ? FIRST_MS : SECOND_MS))
			found = i % count;
	rxw_engine_destroy(engine);
	return found < count ? found : 0;
}
