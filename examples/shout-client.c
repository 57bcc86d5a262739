/* SPDX-License-Identifier: BSD-2-Clause */
/* A client in one file: sends a text to shout-server and prints the reply. */
#define _POSIX_C_SOURCE 200809L
#include <netdb.h>
#include <rxwire/rxwire.h>
#include <stdio.h>
#include <stdlib.h>

#define SERVICE_ID 4000
#define OP_SHOUT   1
#define TEXT_MAX   1000

static void check(ssize_t result, const char *what)
{
	if (result < 0) {
		fprintf(stderr, "shout-client: cannot %s: %s\n", what, rxw_strerror((int)result));
		exit(1);
	}
}

int main(int argc, char **argv)
{
	struct addrinfo hints = { .ai_socktype = SOCK_DGRAM }, *to;
	struct sockaddr_storage any = { 0 };
	struct rxw_endpoint_options options = { .size = sizeof(options) };
	uint8_t request[TEXT_MAX + 12], reply[TEXT_MAX + 12];
	char text[TEXT_MAX + 1];
	rxw_engine *engine;
	rxw_endpoint *endpoint;
	rxw_connection *connection;
	rxw_call *call;
	struct rxw_xdr x;
	uint32_t length = 0;
	ssize_t n;
	int32_t code;

	if (argc != 4 || getaddrinfo(argv[1], argv[2], &hints, &to)) {
		fprintf(stderr, "usage: shout-client HOST PORT TEXT\n");
		return 2;
	}
	any.ss_family = (sa_family_t)to->ai_family; /* any address and port of the same family */
	options.address = (struct sockaddr *)&any;
	options.address_len = to->ai_addrlen;
	rxw_xdr_writer(&x, request, sizeof(request));
	rxw_xdr_put_u32(&x, OP_SHOUT);
	if (!rxw_xdr_put_string(&x, argv[3], UINT32_MAX)) {
		fprintf(stderr, "shout-client: the text is longer than %d bytes\n", TEXT_MAX);
		return 1;
	}
	check(rxw_engine_create(NULL, &engine), "create the engine");
	check(rxw_endpoint_create(engine, &options, &endpoint), "open a port");
	check(rxw_connection_create(endpoint, to->ai_addr, to->ai_addrlen, SERVICE_ID, NULL,
				    &connection), "make a connection");
	freeaddrinfo(to);

	/* After a failed write or read, rxw_call_end() returns the code that says why. */
	check(rxw_call_begin(connection, NULL, &call), "begin a call");
	n = rxw_call_write(call, request, rxw_xdr_used(&x));
	if (n >= 0)
		n = rxw_call_read(call, reply, sizeof(reply)); /* until the reply ends */
	code = rxw_call_end(call, 0, NULL);
	rxw_connection_release(connection);
	check(rxw_endpoint_destroy(endpoint), "close the port");
	check(rxw_engine_destroy(engine), "destroy the engine");

	if (code) {
		fprintf(stderr, "shout-client: %s port %s: %s (%d)\n", argv[1], argv[2],
			rxw_code_text(code), (int)code);
		return 1;
	}
	rxw_xdr_reader(&x, reply, (size_t)n);
	if (!rxw_xdr_get_u32(&x, &length) || !rxw_xdr_copy_string(&x, TEXT_MAX, text)) {
		fprintf(stderr, "shout-client: cannot decode the reply of %s\n", argv[1]);
		return 1;
	}
	printf("%u bytes: %s\n", (unsigned)length, text);
	return 0;
}
