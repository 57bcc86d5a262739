/* SPDX-License-Identifier: BSD-2-Clause */
/* A server with rxgk and a client on loopback. */
#include "live.h"

#include <arpa/inet.h>
#include <netinet/in.h>

static int32_t echo(rxw_call *call, void *context)
{
	struct rxw_identity id = {.size = sizeof(id)};
	size_t size = 0, room = 8 << 20;
	uint8_t *data = malloc(room);
	char who[LIVE_WHO] = {0};
	int32_t code = 0;
	ssize_t n;

	(void)context;
	if (!data)
		return RXW_USER_ABORT;
	n = rxw_call_read(call, data, room);
	size = n > 0 ? (size_t)n : 0;
	if (rxw_call_identity(call, &id))
		snprintf(who, sizeof(who), "unknown");
	else
		snprintf(who, sizeof(who), "%u %u %s", id.level, id.local, id.name ? id.name : "-");
	if (n < 0 || rxw_call_write(call, who, sizeof(who)) != (ssize_t)sizeof(who) ||
	    rxw_call_write(call, data, size) != (ssize_t)size)
		code = RXW_USER_ABORT;
	free(data);
	return code;
}

static rxw_endpoint *endpoint(struct live *l, const struct sockaddr *address, socklen_t length,
			      bool start)
{
	struct rxw_endpoint_options o = {.size = sizeof(o), .address = address,
					 .address_len = length, .paused = !start};
	rxw_endpoint *e;

	ck_assert_int_eq(rxw_endpoint_create(l->engine, &o, &e), 0);
	return e;
}

void live_begin(struct live *l, rxw_security *const *classes, size_t count,
		int (*more)(void *context, rxw_endpoint *server), void *context)
{
	struct sockaddr_in loopback = {.sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rxw_service_options so = {.size = sizeof(so),
					 .id = LIVE_SERVICE,
					 .name = "echo",
					 .handler = echo,
					 .security = classes,
					 .security_count = count};
	rxw_service *service;

	memset(l, 0, sizeof(*l));
	ck_assert_int_eq(rxw_engine_create(NULL, &l->engine), 0);
	l->server = endpoint(l, (struct sockaddr *)&loopback, sizeof(loopback), false);
	ck_assert_int_eq(rxw_service_add(l->server, &so, &service), 0);
	if (more)
		ck_assert_int_eq(more(context, l->server), 0);
	ck_assert_int_eq(rxw_endpoint_start(l->server), 0);
	l->address_len = sizeof(l->address);
	ck_assert_int_eq(rxw_endpoint_address(l->server, &l->address, &l->address_len), 0);
	l->client = endpoint(l, (struct sockaddr *)&loopback, sizeof(loopback), true);
}

void live_end(struct live *l)
{
	ck_assert_int_eq(rxw_endpoint_destroy(l->client), 0);
	ck_assert_int_eq(rxw_endpoint_destroy(l->server), 0);
	rxw_engine_destroy(l->engine);
}

rxw_connection *live_connect(struct live *l, uint16_t service, rxw_security *security)
{
	rxw_connection *c;

	ck_assert_int_eq(rxw_connection_create(l->client, (struct sockaddr *)&l->address,
					       l->address_len, service, security, &c), 0);
	return c;
}

static uint8_t pattern(size_t i)
{
	return (uint8_t)(i * 7 + (i >> 8) * 13);
}

int32_t live_call(rxw_connection *connection, size_t length, char who[LIVE_WHO])
{
	uint8_t *data = malloc(length + 1);
	rxw_call *call;
	ssize_t n = -1;
	int32_t code;
	bool same = true;

	ck_assert_ptr_nonnull(data);
	for (size_t i = 0; i < length; i++)
		data[i] = pattern(i);
	code = rxw_rpc_begin(connection, NULL, &call);
	if (code) {
		free(data);
		return code;
	}
	if (rxw_call_write(call, data, length) == (ssize_t)length &&
	    rxw_call_read(call, who, LIVE_WHO) == LIVE_WHO)
		n = rxw_call_read(call, data, length + 1);
	code = rxw_call_end(call, 0, NULL);
	if (!code) {
		for (size_t i = 0; i < length; i++)
			same = same && data[i] == pattern(i);
		ck_assert_int_eq(n, (ssize_t)length);
		ck_assert(same);
	}
	free(data);
	return code;
}
