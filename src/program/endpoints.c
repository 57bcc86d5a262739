/* SPDX-License-Identifier: BSD-2-Clause */
/* Endpoints of programs: many on one engine, and the choice of an address that answers. */
#include <stdbool.h>
#include <sys/resource.h>

#include <rxwire/rxwire.h>

#include "common/cpus.h"
#include "program/endpoints.h"

/* Four buffers of 64 KiB that a socket waits with, a window, and some that wait to be read. */
#define EACH ((size_t)1 << 20)
#define FEW  4 /* endpoints for each CPU that have a thread of their own */

void tools_allow_endpoints(struct rxw_config *config, uint64_t endpoints)
{
	struct rxw_config defaults;
	struct rlimit l;

	rxw_config_init(&defaults, sizeof(defaults));
	if (config->memory == defaults.memory && endpoints > 1)
		config->memory += (endpoints - 1) * EACH;
	if (getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur < l.rlim_max) {
		l.rlim_cur = l.rlim_max;
		setrlimit(RLIMIT_NOFILE, &l);
	}
}

void tools_share_listeners(struct rxw_config *config, uint64_t endpoints)
{
	tools_allow_endpoints(config, endpoints);
	if (!config->listeners && endpoints > (uint64_t)FEW * cpus_allowed())
		config->listeners = RXW_LISTENERS_SHARED;
}

/* ---- one of several addresses of a server ---- */

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
