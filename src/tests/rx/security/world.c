/* SPDX-License-Identifier: BSD-2-Clause */
/* Two endpoints and a relay. */
#include "world.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/constants.h"
#include "tests/support/counters.h"

#define SMALL 4096u
#define MOST  (1u << 20)

static uint8_t byte_at(size_t i)
{
	return (uint8_t)(i * 31 + i / 251 + 7);
}

/* The complete request, in memory of its own; < 0: an error. Most are small, and there are tens of thousands. */
static ssize_t read_request(rxw_call *call, uint8_t **data)
{
	uint8_t *whole;
	ssize_t n, more;

	*data = malloc(SMALL);
	if (!*data)
		return -1;
	n = rxw_call_read(call, *data, SMALL);
	if (n < (ssize_t)SMALL)
		return n;
	whole = realloc(*data, MOST);
	if (!whole)
		return -1;
	*data = whole;
	more = rxw_call_read(call, *data + SMALL, MOST - SMALL);
	return more < 0 ? more : n + more;
}

/* A reply shows that the request was complete. */
static int32_t echo(rxw_call *call, void *context)
{
	struct world *w = context;
	uint8_t *data;
	ssize_t n;

	atomic_fetch_add(&w->served, 1);
	n = read_request(call, &data);
	while (w->hold)
		poll(NULL, 0, 10);
	if (n > 0)
		n = rxw_call_write(call, data, (size_t)n);
	free(data);
	return n < 0 ? RXW_USER_ABORT : 0;
}

static void serve(struct world *w)
{
	struct rxw_endpoint_options o = {.size = sizeof(o),
					 .address = (struct sockaddr *)&w->address,
					 .address_len = sizeof(w->address),
					 .server = 1,
					 .paused = 1};
	struct rxw_service_options s = {.size = sizeof(s),
					.id = SERVICE,
					.name = "echo",
					.handler = echo,
					.context = w,
					.security = &w->server_class,
					.security_count = 1};
	struct test_constants constants;
	struct sockaddr_storage at;
	socklen_t length = sizeof(at);
	rxw_service *service;

	test_constants_init(&constants);
	constants.set.steer = w->steer;
	ck_assert_int_eq(rxw_endpoint_create_with(w->engine, &o, &constants.set, &w->server), 0);
	ck_assert_int_eq(rxw_service_add(w->server, &s, &service), 0);
	ck_assert_int_eq(rxw_endpoint_address(w->server, &at, &length), 0);
	memcpy(&w->address, &at, sizeof(w->address));
	ck_assert_int_eq(rxw_endpoint_start(w->server), 0);
}

static void note_line(void *arg, enum rxw_log_level level, const char *line)
{
	struct world *w = arg;

	if (level == RXW_LOG_INFO && strstr(line, " moved from 127.0.0.1:") &&
	    strstr(line, " to 127.0.0.1:"))
		w->moves_logged++;
}

void world_open(struct world *w, const struct kind *kind)
{
	world_open_with(w, kind, &(struct world_options){0});
}

void world_open_with(struct world *w, const struct kind *kind, const struct world_options *o)
{
	struct rxw_config config;

	memset(w, 0, sizeof(*w));
	w->kind = kind;
	w->steer = o->steer;
	kind->make(&w->server_class, &w->client_class);
	rxw_config_init(&config, sizeof(config));
	config.listeners = o->listeners ? o->listeners : 1;
	config.dead_ms = o->dead_ms ? o->dead_ms : 60000; /* a busy machine is not a dead peer */
	config.log = note_line;
	config.log_arg = w;
	ck_assert_int_eq(rxw_engine_create(&config, &w->engine), 0);
	w->address = (struct sockaddr_in){.sin_family = AF_INET,
					  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	serve(w);
	ck_assert_int_eq(rxw_endpoint_create(w->engine, NULL, &w->client), 0);
	relay_open(&w->relay, &w->address);
}

void world_close(struct world *w)
{
	relay_close(&w->relay);
	ck_assert_int_eq(rxw_endpoint_destroy(w->client), 0);
	ck_assert_int_eq(rxw_endpoint_destroy(w->server), 0);
	ck_assert_int_eq(rxw_engine_destroy(w->engine), 0);
	rxw_security_unref(w->client_class);
	rxw_security_unref(w->server_class);
}

void world_restart(struct world *w)
{
	ck_assert_int_eq(rxw_endpoint_destroy(w->server), 0);
	serve(w);
}

rxw_connection *world_connect(struct world *w)
{
	return world_connect_by(w, &w->relay);
}

rxw_connection *world_connect_by(struct world *w, const struct relay *relay)
{
	rxw_connection *connection;

	ck_assert_int_eq(rxw_connection_create(w->client, (const struct sockaddr *)&relay->address,
					       sizeof(relay->address), SERVICE, w->client_class,
					       &connection),
			 0);
	return connection;
}

int32_t world_call(rxw_connection *connection, size_t size, bool *same)
{
	uint8_t *out = malloc(size), *in = malloc(size + 1); /* one more than may come */
	rxw_call *call;
	int32_t code;
	ssize_t n;

	ck_assert(out && in);
	for (size_t i = 0; i < size; i++)
		out[i] = byte_at(i);
	ck_assert_int_eq(rxw_call_begin(connection, NULL, &call), 0);
	n = rxw_call_write(call, out, size);
	if (n >= 0)
		n = rxw_call_read(call, in, size + 1);
	code = rxw_call_end(call, 0, NULL);
	*same = n == (ssize_t)size && !memcmp(in, out, size);
	free(out);
	free(in);
	return code;
}

void world_good(struct world *w, rxw_connection *connection, size_t size)
{
	bool same;
	int32_t code = world_call(connection, size, &same);

	ck_assert_msg(!code, "%s: a call of %zu bytes ends with %d (%s)", w->kind->name, size, code,
		      rxw_code_text(code));
	ck_assert_msg(same, "%s: a call of %zu bytes has wrong ones", w->kind->name, size);
}

uint64_t world_refused(struct world *w, bool at_server)
{
	return counter_of(at_server ? w->server : w->client, "drops.verify");
}
