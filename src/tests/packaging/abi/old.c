/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that is compiled against the header in src/tests/packaging/abi/headers, whose
 * structures lack the last members, and runs with the library. It includes no other header of
 * rxwire.
 */
#include <rxwire/rxwire.h>

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SERVICE 4000
#define CANARY	0xc5

#define CHECK(condition)                                                                        \
	do {                                                                                    \
		if (!(condition)) {                                                             \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);         \
			exit(1);                                                                \
		}                                                                               \
	} while (0)

/* Space after a structure that the library must neither write nor read as members. */
#define FENCED(type)            \
	struct {                \
		type value;     \
		uint8_t fence[512]; \
	}

static void fence(void *object, size_t size, size_t whole)
{
	memset((uint8_t *)object + size, CANARY, whole - size);
}

static int intact(const void *object, size_t size, size_t whole)
{
	const uint8_t *bytes = object;

	for (size_t i = size; i < whole; i++)
		if (bytes[i] != CANARY)
			return 0;
	return 1;
}

static int32_t echo(rxw_call *call, void *context)
{
	uint8_t buffer[4096];
	ssize_t n = rxw_call_read(call, buffer, sizeof(buffer));

	++*(unsigned *)context;
	if (n < 0 || rxw_call_write(call, buffer, (size_t)n) != n)
		return rxw_call_error(call, NULL);
	return 0;
}

static void talk(rxw_endpoint *endpoint, const struct sockaddr_in *to)
{
	struct rxw_call_options options = {.size = sizeof(options), .deadline_ms = 60000};
	rxw_connection *connection;
	uint8_t out[3000], in[4096];
	rxw_call *call;

	memset(out, 'x', sizeof(out));
	CHECK(rxw_connection_create(endpoint, (const struct sockaddr *)to, sizeof(*to), SERVICE,
				    NULL, &connection) == 0);
	CHECK(rxw_call_begin(connection, &options, &call) == 0);
	CHECK(rxw_call_write(call, out, sizeof(out)) == (ssize_t)sizeof(out));
	CHECK(rxw_call_read(call, in, sizeof(in)) == (ssize_t)sizeof(out));
	CHECK(memcmp(in, out, sizeof(out)) == 0);
	CHECK(rxw_call_end(call, 0, NULL) == 0);
	rxw_connection_release(connection);
}

int main(void)
{
	FENCED(struct rxw_config) config;
	uint64_t started;
	FENCED(struct rxw_effective) effective;
	struct sockaddr_in address = {.sin_family = AF_INET}, bound;
	struct sockaddr_storage storage;
	socklen_t length = sizeof(storage);
	struct rxw_endpoint_options server = {.size = sizeof(server), .server = 1},
				    client = {.size = sizeof(client)};
	unsigned served = 0;
	struct rxw_service_options offer = {.size = sizeof(offer), .id = SERVICE, .name = "old",
					    .handler = echo, .context = &served};
	rxw_endpoint *serving, *calling;
	rxw_service *service;
	rxw_engine *engine;
	char message[256];

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	fence(&config, sizeof(config.value), sizeof(config));
	rxw_config_init(&config.value, sizeof(config.value));
	CHECK(config.value.size == sizeof(config.value));
	CHECK(intact(&config, sizeof(config.value), sizeof(config)));
	/* Members keep their offsets. */
	CHECK(rxw_config_set(&config.value, "window", "77", message, sizeof(message)) == 0);
	CHECK(config.value.window == 77);
	CHECK(rxw_config_set(&config.value, "listeners", "1", message, sizeof(message)) == 0);
	CHECK(config.value.listeners == 1);
	CHECK(rxw_config_set(&config.value, "workers-max", "99", message, sizeof(message)) == 0);
	CHECK(config.value.workers_max == 99);
	/* Newer settings cannot be set in a structure that has no space for them. */
	CHECK(rxw_config_set(&config.value, "debug-clients", "any", message, sizeof(message)) != 0);
	CHECK(intact(&config, sizeof(config.value), sizeof(config)));

	CHECK(rxw_engine_create(&config.value, &engine) == 0);
	server.address = client.address = (struct sockaddr *)&address;
	server.address_len = client.address_len = sizeof(address);
	CHECK(rxw_endpoint_create(engine, &server, &serving) == 0);
	CHECK(rxw_endpoint_create(engine, &client, &calling) == 0);
	CHECK(rxw_service_add(serving, &offer, &service) == 0);
	CHECK(rxw_endpoint_address(serving, &storage, &length) == 0);
	memcpy(&bound, &storage, sizeof(bound));
	for (int i = 0; i < 10; i++)
		talk(calling, &bound);
	CHECK(served == 10);

	CHECK(rxw_endpoint_counter(calling, "calls_started", &started) == 0);
	CHECK(started == 10);
	fence(&effective, sizeof(effective.value), sizeof(effective));
	effective.value.size = sizeof(effective.value);
	CHECK(rxw_endpoint_effective(serving, &effective.value) == 0);
	CHECK(intact(&effective, sizeof(effective.value), sizeof(effective)));
	CHECK(effective.value.window == 77);

	CHECK(rxw_endpoint_stop(serving, 5000) == 0);
	CHECK(rxw_endpoint_destroy(calling) == 0);
	CHECK(rxw_endpoint_destroy(serving) == 0);
	CHECK(rxw_engine_destroy(engine) == 0);
	printf("old structures: configuration of %zu bytes, effective of %zu\n",
	       sizeof(config.value), sizeof(effective.value));
	return 0;
}
