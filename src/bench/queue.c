/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Small calls through queues and through callbacks, for counting instructions:
 *   queue serve inline|queue             prints its port and runs until its input ends
 *   queue call callback|queue PORT CALLS CONCURRENT
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rxwire/rxwire.h>

#define SERVICE 500
#define ROOM	256

static void check(int result, const char *what)
{
	if (result >= 0)
		return;
	fprintf(stderr, "queue: %s: %s\n", what, rxw_strerror(result));
	exit(1);
}

/* ---- server ---- */

static int32_t echo(rxw_call *call, void *context)
{
	char data[64];
	ssize_t n = rxw_call_read(call, data, sizeof(data));

	(void)context;
	if (n < 0 || rxw_call_write(call, data, (size_t)n) != n)
		return 1;
	return 0;
}

static bool stopping; /* of the serving thread */

static void serve_event(const struct rxw_queue_event *event)
{
	stopping |= event->events & RXW_EVENT_POST;
	if (event->events & RXW_EVENT_CALL)
		rxw_call_end(event->call, echo(event->call, NULL), NULL);
}

static void *serve_queue(void *arg)
{
	while (!stopping)
		rxw_queue_run(arg, serve_event, ROOM, -1);
	return NULL;
}

static int serve(bool queued)
{
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rxw_endpoint_options options = {.size = sizeof(options),
					       .address = (struct sockaddr *)&any,
					       .address_len = sizeof(any),
					       .server = 1};
	struct rxw_service_options service = {.size = sizeof(service), .id = SERVICE};
	struct sockaddr_storage at;
	socklen_t length = sizeof(at);
	rxw_endpoint *endpoint;
	rxw_engine *engine;
	rxw_queue *queue;
	pthread_t t;
	char byte;

	check(rxw_engine_create(NULL, &engine), "engine");
	check(rxw_endpoint_create(engine, &options, &endpoint), "endpoint");
	check(rxw_queue_create(engine, NULL, &queue), "queue");
	if (queued) {
		service.queue = queue;
	} else {
		service.handler = echo;
		service.flags = RXW_SERVICE_INLINE;
	}
	check(rxw_service_add(endpoint, &service, NULL), "service");
	check(rxw_endpoint_address(endpoint, &at, &length), "address");
	printf("%u\n", ntohs(((struct sockaddr_in *)&at)->sin_port));
	fflush(stdout);
	pthread_create(&t, NULL, serve_queue, queue);
	while (read(0, &byte, 1) > 0)
		;
	rxw_queue_post(queue, NULL);
	pthread_join(t, NULL);
	check(rxw_endpoint_stop(endpoint, 1000), "stop");
	check(rxw_endpoint_destroy(endpoint), "destroy");
	check(rxw_queue_destroy(queue), "destroy");
	return rxw_engine_destroy(engine) != 0;
}

/* ---- client ---- */

static rxw_queue *clients; /* NULL: callbacks */
static _Atomic(long) to_begin;
static _Atomic(long) to_end;
static sem_t done;

static void on_event(rxw_call *call, unsigned events, void *arg);

static void begin(rxw_connection *c)
{
	struct rxw_call_options options = {
		.size = sizeof(options), .flags = RXW_CALL_NONBLOCK, .arg = c};
	rxw_call *call;

	if (clients) {
		options.queue = clients;
		options.events = RXW_EVENT_DONE;
	} else {
		options.callback = on_event;
	}
	check(rxw_call_begin(c, &options, &call), "begin");
	check((int)rxw_call_write(call, "0123456789abcdef", 16), "write");
	check(rxw_call_send_end(call), "end of the request");
}

static void finish(rxw_call *call, rxw_connection *c)
{
	char data[64];

	if (rxw_call_read(call, data, sizeof(data)) != 16 || rxw_call_end(call, 0, NULL))
		exit(1);
	if (atomic_fetch_sub(&to_end, 1) == 1)
		sem_post(&done);
	if (atomic_fetch_sub(&to_begin, 1) > 0)
		begin(c);
}

static void on_event(rxw_call *call, unsigned events, void *arg)
{
	if (events & RXW_EVENT_DONE)
		finish(call, arg);
}

static void finish_event(const struct rxw_queue_event *event)
{
	finish(event->call, event->arg);
}

/*
 * The first calls begin here; each one that ends begins another on its connection. The release of the
 * connections tells the server that their replies arrived.
 */
static void load(rxw_endpoint *endpoint, unsigned port, long concurrent)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				 .sin_port = htons((uint16_t)port)};
	long many = (concurrent + 3) / 4;
	rxw_connection **c = calloc((size_t)many, sizeof(*c));

	if (!c)
		exit(1);
	for (long i = 0; i < concurrent; i++) {
		if (i % 4 == 0)
			check(rxw_connection_create(endpoint, (struct sockaddr *)&to, sizeof(to),
						    SERVICE, NULL, &c[i / 4]),
			      "connection");
		begin(c[i / 4]);
	}
	while (clients && atomic_load(&to_end))
		rxw_queue_run(clients, finish_event, ROOM, -1);
	sem_wait(&done);
	for (long i = 0; i < many; i++)
		rxw_connection_release(c[i]);
	free(c);
}

int main(int argc, char **argv)
{
	rxw_endpoint *endpoint;
	rxw_engine *engine;
	long concurrent;

	if (argc == 3 && !strcmp(argv[1], "serve"))
		return serve(!strcmp(argv[2], "queue"));
	if (argc != 6 || strcmp(argv[1], "call")) {
		fprintf(stderr, "usage: queue serve inline|queue\n"
				"       queue call callback|queue PORT CALLS CONCURRENT\n");
		return 2;
	}
	concurrent = atol(argv[5]);
	if (concurrent < 1 || concurrent > atol(argv[4])) {
		fprintf(stderr, "queue: at least one call, and no more at a time than in all\n");
		return 2;
	}
	sem_init(&done, 0, 0);
	to_end = atol(argv[4]);
	to_begin = to_end - concurrent;
	check(rxw_engine_create(NULL, &engine), "engine");
	check(rxw_endpoint_create(engine, NULL, &endpoint), "endpoint");
	if (!strcmp(argv[2], "queue"))
		check(rxw_queue_create(engine, NULL, &clients), "queue");
	load(endpoint, (unsigned)atoi(argv[3]), concurrent);
	check(rxw_endpoint_destroy(endpoint), "destroy");
	check(rxw_queue_destroy(clients), "destroy");
	return rxw_engine_destroy(engine) != 0;
}
