/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Our side of the group rxkad: client and server of the rxperf service (send, recv and rpc) with
 * tickets printed under a key that both sides are given.
 *
 *   rxkad_ours server PORT KEY LEVEL
 *   rxkad_ours client HOST PORT KEY LEVEL send|recv|rpc BYTES CALLS
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <rxwire/afs.h>
#include <rxwire/rxwire.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SERVICE	     147
#define VERSION_WORD 3
#define COOKIE	     0x4711
#define PIECE	     65536
#define PERIOD	     65521

enum {
	SEND = 0,
	RECV = 1,
	RPC = 3
};

static uint8_t pattern[PERIOD + PIECE];
static uint8_t level;

static void die(const char *what, int result)
{
	fprintf(stderr, "rxkad_ours: %s: %s\n", what, rxw_strerror(result));
	exit(1);
}

/* As in rxperf and the programs on OpenAFS's library. */
static void make_pattern(void)
{
	uint32_t x = 0x9e3779b9;

	for (size_t i = 0; i < PERIOD; i++) {
		x ^= x << 13;
		x ^= x >> 17;
		x ^= x << 5;
		pattern[i] = (uint8_t)(x >> 24);
	}
	/* A piece may begin anywhere in the first period. */
	for (size_t i = 0; i < PIECE; i++)
		pattern[PERIOD + i] = pattern[i];
}

static int put_words(rxw_call *call, const uint32_t *words, size_t n)
{
	uint32_t out[8];

	for (size_t i = 0; i < n; i++)
		out[i] = htonl(words[i]);
	return rxw_call_write(call, out, 4 * n) == (ssize_t)(4 * n) ? 0 : -1;
}

static int get_words(rxw_call *call, uint32_t *words, size_t n)
{
	if (rxw_call_read(call, words, 4 * n) != (ssize_t)(4 * n))
		return -1;
	for (size_t i = 0; i < n; i++)
		words[i] = ntohl(words[i]);
	return 0;
}

static int put_data(rxw_call *call, uint64_t bytes)
{
	for (uint64_t pos = 0; pos < bytes;) {
		size_t n = bytes - pos < PIECE ? (size_t)(bytes - pos) : PIECE;

		if (rxw_call_write(call, pattern + pos % PERIOD, n) != (ssize_t)n)
			return -1;
		pos += n;
	}
	return 0;
}

/* -2: not the pattern. */
static int get_data(rxw_call *call, uint64_t bytes)
{
	uint8_t in[PIECE];

	for (uint64_t pos = 0; pos < bytes;) {
		size_t n = bytes - pos < PIECE ? (size_t)(bytes - pos) : PIECE;

		if (rxw_call_read(call, in, n) != (ssize_t)n)
			return -1;
		if (memcmp(in, pattern + pos % PERIOD, n))
			return -2;
		pos += n;
	}
	return 0;
}

/* Prints the caller of each call; the group's tests look for it. */
static int32_t serve(rxw_call *call, void *context)
{
	struct rxw_identity id = {.size = sizeof(id)};
	uint32_t head[6], cookie = COOKIE;
	uint64_t in = 0, out = 0;

	(void)context;
	if (rxw_call_identity(call, &id) || !id.name || !id.rxkad_name || id.level < level)
		return 4002;
	printf("call of %s, %s, level %u\n", id.name, id.rxkad_name, id.level);
	fflush(stdout);
	if (get_words(call, head, 5) || head[0] != VERSION_WORD)
		return 4003;
	if (head[1] == RPC && get_words(call, head + 5, 1))
		return 4003;
	in = head[1] == RECV ? 0 : head[4];
	out = head[1] == RECV ? head[4] : head[1] == RPC ? head[5] : 0;
	if (get_data(call, in) || put_data(call, out) || put_words(call, &cookie, 1))
		return 4004;
	return 0;
}

static int client_call(rxw_connection *connection, uint32_t command, uint32_t bytes)
{
	uint32_t head[6] = {VERSION_WORD, command, PIECE, PIECE, bytes, bytes}, cookie = 0;
	int32_t code;
	rxw_call *call;
	int result = rxw_call_begin(connection, NULL, &call);

	if (result)
		die("cannot begin a call", result);
	result = put_words(call, head, command == RPC ? 6 : 5);
	if (!result && command != RECV)
		result = put_data(call, bytes);
	if (!result)
		result = rxw_call_send_end(call);
	if (!result && command != SEND)
		result = get_data(call, bytes);
	if (!result && (get_words(call, &cookie, 1) || cookie != COOKIE))
		result = -3;
	code = rxw_call_end(call, 0, NULL);
	if (result || code)
		fprintf(stderr, "rxkad_ours: step %d, code %d\n", result, code);
	return result ? result : code;
}

static rxw_keys *keys_of(const char *hex)
{
	uint8_t key[32];
	rxw_keys *keys;
	int result;

	for (unsigned i = 0; i < sizeof(key); i++) {
		unsigned v = 0;

		sscanf(hex + 2 * i, "%2x", &v);
		key[i] = (uint8_t)v;
	}
	if ((result = rxw_keys_create(&keys)) ||
	    (result = rxw_keys_add(keys, RXW_KEY_KRB5, 1, 18, key, sizeof(key))))
		die("keys", result);
	return keys;
}

static int run_server(rxw_engine *engine, int port, rxw_keys *keys)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	struct rxw_endpoint_options options = {.size = sizeof(options),
					       .server = 1,
					       .address = (struct sockaddr *)&address,
					       .address_len = sizeof(address)};
	struct rxw_rxkad_server_options kad = {
		.size = sizeof(kad), .keys = keys, .level_min = level};
	rxw_security *security;
	struct rxw_service_options offer = {.size = sizeof(offer),
					    .id = SERVICE,
					    .name = "rxkad",
					    .handler = serve,
					    .security = &security,
					    .security_count = 1};
	rxw_endpoint *endpoint = NULL;
	rxw_service *service;
	sigset_t stop;
	int result, got;

	sigemptyset(&stop);
	sigaddset(&stop, SIGTERM);
	sigaddset(&stop, SIGINT);
	if ((result = rxw_rxkad_server(&kad, &security)) ||
	    (result = rxw_endpoint_create(engine, &options, &endpoint)) ||
	    (result = rxw_service_add(endpoint, &offer, &service)))
		die("cannot start the server", result);
	rxw_security_unref(security);
	printf("ready %d\n", port);
	fflush(stdout);
	sigwait(&stop, &got);
	rxw_endpoint_stop(endpoint, 1000);
	return rxw_endpoint_destroy(endpoint);
}

static int run_client(rxw_engine *engine, char **argv, rxw_keys *keys)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_port = htons((uint16_t)atoi(argv[3]))};
	struct rxw_rxkad_print_options print = {
		.size = sizeof(print), .name = "tester/x@INTEROP.TEST", .lifetime_s = 3600};
	struct rxw_endpoint_options options = {.size = sizeof(options)};
	struct rxw_rxkad_token token = {.size = sizeof(token)};
	uint32_t command = !strcmp(argv[6], "send") ? SEND : !strcmp(argv[6], "recv") ? RECV : RPC;
	uint32_t bytes = (uint32_t)strtoul(argv[7], NULL, 10);
	rxw_connection *connection;
	rxw_security *security = NULL;
	rxw_endpoint *endpoint = NULL;
	struct timespec a, b;
	int result, calls = atoi(argv[8]);

	inet_pton(AF_INET, argv[2], &address.sin_addr);
	if ((result = rxw_rxkad_print_token(keys, &print, &token)) ||
	    (result = rxw_rxkad_client(&token, level, &security)) ||
	    (result = rxw_endpoint_create(engine, &options, &endpoint)) ||
	    (result = rxw_connection_create(endpoint, (struct sockaddr *)&address, sizeof(address),
					    SERVICE, security, &connection)))
		die("cannot start the client", result);
	rxw_rxkad_token_free(&token);
	rxw_security_unref(security);
	clock_gettime(CLOCK_MONOTONIC, &a);
	for (int i = 0; i < calls && !result; i++)
		result = client_call(connection, command, bytes);
	clock_gettime(CLOCK_MONOTONIC, &b);
	if (!result)
		printf("calls %d bytes %" PRIu64 " seconds %.3f\n", calls, (uint64_t)calls * bytes,
		       (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9);
	rxw_connection_release(connection);
	rxw_endpoint_destroy(endpoint);
	return result;
}

int main(int argc, char **argv)
{
	bool server = argc == 5 && !strcmp(argv[1], "server");
	rxw_engine *engine;
	rxw_keys *keys;
	sigset_t stop;
	int result;

	if (!server && !(argc == 9 && !strcmp(argv[1], "client"))) {
		fprintf(stderr,
			"usage: rxkad_ours server PORT KEY LEVEL\n"
			"       rxkad_ours client HOST PORT KEY LEVEL send|recv|rpc BYTES CALLS\n");
		return 2;
	}
	sigemptyset(&stop);
	sigaddset(&stop, SIGTERM);
	sigaddset(&stop, SIGINT);
	sigprocmask(SIG_BLOCK, &stop, NULL);
	make_pattern();
	keys = keys_of(argv[server ? 3 : 4]);
	level = (uint8_t)atoi(argv[server ? 4 : 5]);
	result = rxw_engine_create(NULL, &engine);
	if (result)
		die("no engine", result);
	result = server ? run_server(engine, atoi(argv[2]), keys) : run_client(engine, argv, keys);
	rxw_keys_unref(keys);
	rxw_engine_destroy(engine);
	return result ? 1 : 0;
}
