/* SPDX-License-Identifier: BSD-2-Clause */
/* A server that greets callers who have the key by name, and a client. */
#define _POSIX_C_SOURCE 200809L
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rxwire/rxwire.h>

#include "psk.h"

#define SERVICE_ID 4001

static void check(ssize_t result, const char *what)
{
	if (result < 0) {
		fprintf(stderr, "hello: cannot %s: %s\n", what, rxw_strerror((int)result));
		exit(1);
	}
}

/* Reads 32 bytes, as `head -c 32 /dev/urandom > FILE` writes them. */
static rxw_security *load_key(const char *path)
{
	uint8_t key[PSK_KEY];
	FILE *file = fopen(path, "rb");
	rxw_security *security;

	if (!file || fread(key, 1, sizeof(key), file) != sizeof(key)) {
		fprintf(stderr, "hello: %s: cannot read a key of %d bytes\n", path, PSK_KEY);
		exit(1);
	}
	fclose(file);
	check(psk_create(key, "keyholder", &security), "set up the class");
	memset(key, 0, sizeof(key));
	return security;
}

static int32_t greet(rxw_call *call, void *context)
{
	struct rxw_identity who = {.size = sizeof(who)};
	char text[200];
	int n;

	(void)context;
	if (rxw_call_identity(call, &who) || !who.name)
		return RXW_USER_ABORT; /* cannot happen: the service has no other class */
	n = snprintf(text, sizeof(text), "hello, %s", who.name);
	return rxw_call_write(call, text, (size_t)n) < 0 ? rxw_call_error(call, NULL) : 0;
}

static void serve(rxw_endpoint *endpoint, rxw_security *security)
{
	/* The only class: a caller without the key cannot fall back to a weaker one. */
	struct rxw_service_options offer = {.size = sizeof(offer),
					    .id = SERVICE_ID,
					    .name = "hello",
					    .handler = greet,
					    .security = &security,
					    .security_count = 1};
	rxw_service *service;
	sigset_t stop;
	int number;

	sigemptyset(&stop);
	sigaddset(&stop, SIGINT);
	sigaddset(&stop, SIGTERM);
	sigprocmask(SIG_BLOCK, &stop, NULL);
	check(rxw_service_add(endpoint, &offer, &service), "offer the service");
	puts("serving");
	fflush(stdout);
	sigwait(&stop, &number);
	rxw_endpoint_stop(endpoint, 1000);
}

static int ask(rxw_endpoint *endpoint, rxw_security *security, const struct sockaddr_in *server)
{
	rxw_connection *connection;
	rxw_call *call;
	char text[200];
	int32_t code;
	ssize_t n;

	check(rxw_connection_create(endpoint, (const struct sockaddr *)server, sizeof(*server),
				    SERVICE_ID, security, &connection),
	      "make a connection");
	check(rxw_call_begin(connection, NULL, &call), "begin a call");
	n = rxw_call_read(call, text, sizeof(text));
	code = rxw_call_end(call, 0, NULL);
	rxw_connection_release(connection);
	if (code)
		fprintf(stderr, "hello: refused: %s (%d)\n",
			code == PSK_WRONG_KEY ? "not the server's key" : rxw_code_text(code),
			(int)code);
	else
		printf("%.*s\n", (int)n, text);
	return code != 0;
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rxw_endpoint_options options = {.size = sizeof(options),
					       .address = (struct sockaddr *)&address,
					       .address_len = sizeof(address)};
	struct sockaddr_in server = address;
	rxw_engine *engine;
	rxw_endpoint *endpoint;
	rxw_security *security;
	int status = 0;

	if (argc != 4 || (strcmp(argv[1], "serve") && strcmp(argv[1], "ask"))) {
		fprintf(stderr, "usage: hello serve|ask PORT KEYFILE\n");
		return 2;
	}
	options.server = !strcmp(argv[1], "serve");
	server.sin_port = htons((uint16_t)atoi(argv[2]));
	if (options.server)
		address.sin_port = server.sin_port;
	security = load_key(argv[3]);
	check(rxw_engine_create(NULL, &engine), "create the engine");
	check(rxw_endpoint_create(engine, &options, &endpoint), "open the port");
	if (options.server)
		serve(endpoint, security);
	else
		status = ask(endpoint, security, &server);
	check(rxw_endpoint_destroy(endpoint), "close the port");
	check(rxw_engine_destroy(engine), "destroy the engine");
	rxw_security_unref(security);
	return status;
}
