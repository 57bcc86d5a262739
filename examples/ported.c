/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A ported program of classic Rx: doc/porting.md shows the original of each part. A server adds up
 * the numbers of a stream, and a client sends them. Both run in one process, on a free port.
 */
#define _POSIX_C_SOURCE 200809L
#include <arpa/inet.h>
#include <rxwire/rxwire.h>
#include <stdio.h>
#include <stdlib.h>

#define SUM_SERVICE 4001
#define SUM_TOOMANY 4100 /* the application's code: too many numbers */
#define MOST	    100000

/* The server's procedure. */
static int32_t sum(rxw_call *call, void *context)
{
	uint64_t total = 0;
	uint8_t bytes[8];
	uint32_t count;
	ssize_t n;

	(void)context;
	n = rxw_call_read(call, bytes, 4);
	if (n != 4)
		return n < 0 ? rxw_call_error(call, NULL) : RXW_CALL_EOF;
	count = rxw_xdr_load32(bytes);
	if (count > MOST)
		return SUM_TOOMANY;
	for (uint32_t i = 0; i < count; i++) {
		n = rxw_call_read(call, bytes, 4);
		if (n != 4)
			return n < 0 ? rxw_call_error(call, NULL) : RXW_CALL_EOF;
		total += rxw_xdr_load32(bytes);
	}
	rxw_xdr_store64(bytes, total);
	return rxw_call_write(call, bytes, 8) < 0 ? rxw_call_error(call, NULL) : 0;
}

/* The client's call. Returns its code; *total is the sum. */
static int32_t ask(rxw_connection *connection, uint32_t count, uint64_t *total)
{
	rxw_call *call;
	uint8_t bytes[8] = { 0 };
	ssize_t n;
	int32_t code;

	if (rxw_call_begin(connection, NULL, &call) < 0)
		return RXW_CALL_DEAD;
	rxw_xdr_store32(bytes, count);
	n = rxw_call_write(call, bytes, 4);
	for (uint32_t i = 1; i <= count && n == 4; i++) {
		rxw_xdr_store32(bytes, i);
		n = rxw_call_write(call, bytes, 4);
	}
	if (n == 4)
		n = rxw_call_read(call, bytes, 8);
	code = rxw_call_end(call, 0, NULL);
	*total = rxw_xdr_load64(bytes);
	return code ? code : n == 8 ? 0 : RXW_CALL_EOF;
}

static void check(int result, const char *what)
{
	if (result < 0) {
		fprintf(stderr, "ported: cannot %s: %s\n", what, rxw_strerror(result));
		exit(1);
	}
}

int main(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	struct rxw_endpoint_options options = { .size = sizeof(options), .server = 1 };
	struct rxw_service_options offer = { .size = sizeof(offer), .id = SUM_SERVICE,
					     .name = "sum", .handler = sum };
	struct sockaddr_storage server;
	socklen_t length = sizeof(server);
	rxw_engine *engine;
	rxw_endpoint *endpoint;
	rxw_connection *connection;
	uint64_t total;
	int32_t code, refused;

	any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	options.address = (struct sockaddr *)&any;
	options.address_len = sizeof(any);
	options.paused = 1;
	check(rxw_engine_create(NULL, &engine), "create the engine");
	check(rxw_endpoint_create(engine, &options, &endpoint), "open a port");
	check(rxw_service_add(endpoint, &offer, NULL), "offer the service");
	check(rxw_endpoint_start(endpoint), "start");

	/* A server's endpoint can also make calls, here to itself. */
	check(rxw_endpoint_address(endpoint, &server, &length), "find the port");
	check(rxw_connection_create(endpoint, (struct sockaddr *)&server, length, SUM_SERVICE, NULL,
				    &connection), "make a connection");
	code = ask(connection, 10000, &total);
	printf("%s: %llu\n", code ? rxw_code_text(code) : "sum", (unsigned long long)total);
	refused = ask(connection, MOST + 1, &total);
	printf("one more than is allowed: %d\n", (int)refused);
	rxw_connection_release(connection);

	rxw_endpoint_stop(endpoint, 1000);
	check(rxw_endpoint_destroy(endpoint), "close the port");
	check(rxw_engine_destroy(engine), "destroy the engine");
	return code == 0 && refused == SUM_TOOMANY ? 0 : 1;
}
