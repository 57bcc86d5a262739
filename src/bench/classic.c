/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The interface of classic Rx compared with the library's own: the same transfers and the same small
 * calls through both, in turns, between two ports of this process.
 *   classic [ROUNDS]     prints the medians of both, and of their ratios
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include <rx/rx.h>
#include <rxwire/rxwire.h>

#include "common/clock.h"

#define SERVICE	   600
#define BUFFER	   (256 << 10)
#define THREADS	   16
#define ROUNDS_MAX 99
#define BULK	   (1u << 30) /* bytes of a transfer */
#define CALLS	   2000	      /* of each thread */

static void check(int result, const char *what)
{
	if (result >= 0)
		return;
	fprintf(stderr, "classic: %s: %s\n", what, rxw_strerror(result));
	exit(1);
}

/* -- The library's own interface ------------------------------------------------------------------ */

static rxw_engine *engine;
static rxw_endpoint *own_server, *own_client;
static struct sockaddr_storage own_address;
static socklen_t own_length = sizeof(own_address);

/* Bytes that the client wants, in host order. */
static rxw_code own_serve(rxw_call *call, void *context)
{
	static const char data[BUFFER];
	uint32_t left;

	(void)context;
	if (rxw_call_read(call, &left, sizeof(left)) != sizeof(left))
		return 1;
	while (left) {
		size_t part = left < BUFFER ? left : BUFFER;

		if (rxw_call_write(call, data, part) != (ssize_t)part)
			return 2;
		left -= (uint32_t)part;
	}
	return 0;
}

static void *own_connect(void)
{
	rxw_connection *c;

	check(rxw_connection_create(own_client, (struct sockaddr *)&own_address, own_length,
				    SERVICE, NULL, &c),
	      "connect");
	return c;
}

static void own_fetch(void *connection, uint32_t bytes, char *buffer)
{
	rxw_call *call;

	check(rxw_call_begin(connection, NULL, &call), "begin");
	if (rxw_call_write(call, &bytes, sizeof(bytes)) != sizeof(bytes))
		check(-RXW_ECALL, "write");
	for (ssize_t n; bytes; bytes -= (uint32_t)n) {
		n = rxw_call_read(call, buffer, bytes < BUFFER ? bytes : BUFFER);
		if (n <= 0)
			check(-RXW_ECALL, "read");
	}
	if (rxw_call_end(call, 0, NULL))
		check(-RXW_ECALL, "end");
}

static void own_release(void *connection)
{
	rxw_connection_release(connection);
}

static void own_open(void)
{
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rxw_endpoint_options options = {.size = sizeof(options),
					       .address = (struct sockaddr *)&any,
					       .address_len = sizeof(any),
					       .server = 1};
	struct rxw_service_options service = {.size = sizeof(service),
					      .id = SERVICE,
					      .handler = own_serve,
					      .workers_max = THREADS};

	check(rxw_engine_create(NULL, &engine), "engine");
	check(rxw_endpoint_create(engine, &options, &own_server), "server");
	check(rxw_service_add(own_server, &service, NULL), "service");
	check(rxw_endpoint_address(own_server, &own_address, &own_length), "address");
	check(rxw_endpoint_create(engine, NULL, &own_client), "client");
}

/* -- The interface of classic Rx ------------------------------------------------------------------ */

static u_short classic_port;

static afs_int32 classic_serve(struct rx_call *call)
{
	static char data[BUFFER];
	afs_int32 left;

	if (rx_Read32(call, &left) != sizeof(left))
		return 1;
	while (left) {
		int part = left < BUFFER ? left : BUFFER;

		if (rx_Write(call, data, part) != part)
			return 2;
		left -= part;
	}
	return 0;
}

static void *classic_connect(void)
{
	return rx_NewConnection(htonl(INADDR_LOOPBACK), classic_port, SERVICE, NULL, 0);
}

static void classic_fetch(void *connection, uint32_t bytes, char *buffer)
{
	struct rx_call *call = rx_NewCall(connection);
	afs_int32 word = (afs_int32)bytes;

	if (rx_Write32(call, &word) != sizeof(word))
		check(-RXW_ECALL, "rx_Write32");
	for (int n; bytes; bytes -= (uint32_t)n) {
		n = rx_Read(call, buffer, bytes < BUFFER ? (int)bytes : BUFFER);
		if (n <= 0)
			check(-RXW_ECALL, "rx_Read");
	}
	if (rx_EndCall(call, 0))
		check(-RXW_ECALL, "rx_EndCall");
}

static void classic_release(void *connection)
{
	rx_DestroyConnection(connection);
}

/* The service listens on a port of its own; calls leave from that of rx_Init(). */
static void classic_open(void)
{
	static struct rx_securityClass *classes[1];
	struct rx_service *service = NULL;

	classes[0] = rxnull_NewServerSecurityObject();
	if (rx_InitHost(htonl(INADDR_LOOPBACK), 0))
		check(-RXW_EADDRINUSE, "rx_InitHost");
	for (int port = 30000 + getpid() % 10000; !service && port < 60000; port++) {
		classic_port = htons((u_short)port);
		service = rx_NewServiceHost(htonl(INADDR_LOOPBACK), classic_port, SERVICE, "bench",
					    classes, 1, classic_serve);
	}
	if (!service)
		check(-RXW_EADDRINUSE, "rx_NewServiceHost");
	rx_SetMaxProcs(service, THREADS);
	rx_StartServer(0);
}

/* -- Both ----------------------------------------------------------------------------------------- */

static const struct way {
	void *(*connect)(void);
	void (*fetch)(void *connection, uint32_t bytes, char *buffer);
	void (*release)(void *connection);
} ways[2] = {{own_connect, own_fetch, own_release},
	     {classic_connect, classic_fetch, classic_release}};

static double seconds(uint64_t from)
{
	return (double)(monotonic_ns() - from) / NS_PER_S;
}

/* MB/s */
static double bulk(const struct way *way)
{
	static char buffer[BUFFER];
	void *connection = way->connect();
	uint64_t from = monotonic_ns();
	double took;

	way->fetch(connection, BULK, buffer);
	took = seconds(from);
	way->release(connection);
	return BULK / took / 1e6;
}

static void *caller(void *arg)
{
	const struct way *way = arg;
	char buffer[64];
	void *connection = way->connect();

	for (int i = 0; i < CALLS; i++)
		way->fetch(connection, 32, buffer);
	way->release(connection);
	return NULL;
}

/* calls/s */
static double calls(const struct way *way)
{
	pthread_t thread[THREADS];
	uint64_t from = monotonic_ns();

	for (int i = 0; i < THREADS; i++)
		check(-pthread_create(&thread[i], NULL, caller, (void *)(uintptr_t)way), "thread");
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	return THREADS * CALLS / seconds(from);
}

static int by_size(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double median(double *v, int n)
{
	qsort(v, (size_t)n, sizeof(*v), by_size);
	return v[n / 2];
}

static void compare(const char *what, double (*measure)(const struct way *), int rounds)
{
	double own[ROUNDS_MAX], classic[ROUNDS_MAX], ratio[ROUNDS_MAX];

	for (int i = 0; i < rounds; i++) {
		own[i] = measure(&ways[0]);
		classic[i] = measure(&ways[1]);
		ratio[i] = classic[i] / own[i];
	}
	printf("%s: own %.0f, classic %.0f, ratio %.2f\n", what, median(own, rounds),
	       median(classic, rounds), median(ratio, rounds));
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 5;

	if (rounds < 1 || rounds > ROUNDS_MAX) {
		fprintf(stderr, "usage: classic [ROUNDS]      (1 to %d)\n", ROUNDS_MAX);
		return 2;
	}
	own_open();
	classic_open();
	compare("bulk, MB/s", bulk, rounds);
	compare("small calls/s, 16 threads", calls, rounds);
	fflush(stdout);
	_exit(0);
}
