/* SPDX-License-Identifier: BSD-2-Clause */
/* A service in one file: it reads a text, and returns its length and the text in capitals. */
#define _POSIX_C_SOURCE 200809L
#include <arpa/inet.h>
#include <ctype.h>
#include <rxwire/rxwire.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define SERVICE_ID 4000 /* service id at the port; client and server must agree */
#define OP_SHOUT   1    /* operation code, the first word of a request */
#define TEXT_MAX   1000

/* Runs on a thread of the library, once per call. Returns 0 or an abort code. */
static int32_t shout(rxw_call *call, void *context)
{
	uint8_t in[TEXT_MAX + 12], out[TEXT_MAX + 12];
	char text[TEXT_MAX + 1];
	struct rxw_xdr x;
	uint32_t op, length = 0;
	ssize_t n = rxw_call_read(call, in, sizeof(in)); /* until the request ends */

	(void)context;
	if (n < 0)
		return rxw_call_error(call, NULL);
	rxw_xdr_reader(&x, in, (size_t)n);
	if (!rxw_xdr_get_u32(&x, &op) || !rxw_xdr_copy_string(&x, TEXT_MAX, text))
		return RXW_RPC_DECODE;
	if (op != OP_SHOUT)
		return RXW_RPC_OPCODE;
	for (; text[length]; length++)
		text[length] = (char)toupper((unsigned char)text[length]);
	rxw_xdr_writer(&x, out, sizeof(out));
	rxw_xdr_put_u32(&x, length);
	rxw_xdr_put_string(&x, text, UINT32_MAX);
	return rxw_call_write(call, out, rxw_xdr_used(&x)) < 0 ? rxw_call_error(call, NULL) : 0;
}

static void check(int result, const char *what)
{
	if (result < 0) {
		fprintf(stderr, "shout-server: cannot %s: %s\n", what, rxw_strerror(result));
		exit(1);
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	struct rxw_endpoint_options options = { .size = sizeof(options), .server = 1 };
	struct rxw_service_options offer = { .size = sizeof(offer), .id = SERVICE_ID,
					     .name = "shout", .handler = shout,
					     .flags = RXW_SERVICE_INLINE };
	rxw_engine *engine;
	rxw_endpoint *endpoint;
	rxw_service *service;
	sigset_t stop;
	int signal_number;

	/* The library's threads block signals. With them blocked here too, sigwait() gets them. */
	sigemptyset(&stop);
	sigaddset(&stop, SIGINT);
	sigaddset(&stop, SIGTERM);
	sigprocmask(SIG_BLOCK, &stop, NULL);
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	address.sin_port = htons((uint16_t)(argc > 1 ? atoi(argv[1]) : 4000));
	options.address = (struct sockaddr *)&address;
	options.address_len = sizeof(address);
	check(rxw_engine_create(NULL, &engine), "create the engine");
	check(rxw_endpoint_create(engine, &options, &endpoint), "open the port");
	check(rxw_service_add(endpoint, &offer, &service), "offer the service");
	printf("serving on 127.0.0.1 port %u; stop with Ctrl-C\n", ntohs(address.sin_port));
	fflush(stdout);
	sigwait(&stop, &signal_number);
	rxw_endpoint_stop(endpoint, 5000); /* calls in progress get five seconds */
	check(rxw_endpoint_destroy(endpoint), "close the port");
	check(rxw_engine_destroy(engine), "destroy the engine");
	return 0;
}
