/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An echo server that answers after a delay, and a load generator, in an event loop: each has one
 * thread, and one descriptor for all of its calls.
 *   echo serve PORT DELAY_MS [LEAST]    answers none before LEAST calls are there together
 *   echo load PORT CONCURRENT CALLS
 */
#define _POSIX_C_SOURCE 200809L
#include <arpa/inet.h>
#include <rxwire/rxwire.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "loop.h"

#define SERVICE_ID 4002
#define TEXT_MAX   64
#define ROOM	   64
#define TICK_MS	   5

static rxw_queue *queue;

static void check(int result, const char *what)
{
	if (result < 0) {
		fprintf(stderr, "echo: cannot %s: %s\n", what, rxw_strerror(result));
		exit(1);
	}
}

static struct sockaddr_in address_of(const char *port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return a;
}

static long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- server ---- */

/* A call that waits for its answer. */
static struct held {
	struct held *next;
	rxw_call *call; /* NULL: it has failed meanwhile */
	long due;
	size_t size;
	char text[TEXT_MAX];
} * first, **last = &first;
static unsigned holding, most, least;
static long delay_ms;

static void request(rxw_call *call)
{
	struct held *h = malloc(sizeof(*h));
	ssize_t n = h ? rxw_call_read(call, h->text, sizeof(h->text)) : -1;

	if (n < 0) {
		free(h);
		rxw_call_end(call, RXW_USER_ABORT, NULL);
		return;
	}
	h->next = NULL;
	h->call = call;
	h->due = now_ms() + delay_ms;
	h->size = (size_t)n;
	*last = h;
	last = &h->next;
	rxw_call_set_events(call, RXW_EVENT_DONE);
	rxw_call_set_queue(call, queue, h);
	if (++holding > most)
		most = holding;
}

static void failed(struct held *h)
{
	rxw_call_end(h->call, 0, NULL);
	h->call = NULL;
	holding--;
}

static void serve_events(void *arg)
{
	struct rxw_queue_event v[ROOM];
	int n = rxw_queue_next(queue, v, ROOM, 0);

	(void)arg;
	for (int i = 0; i < n; i++) {
		if (v[i].events & RXW_EVENT_CALL)
			request(v[i].call);
		else if (v[i].events & RXW_EVENT_DONE)
			failed(v[i].arg);
	}
}

static void answer(void *arg)
{
	long now = now_ms();

	(void)arg;
	while (first && first->due <= now && most >= least) {
		struct held *h = first;

		first = h->next;
		if (!first)
			last = &first;
		if (h->call) {
			int32_t code = rxw_call_write(h->call, h->text, h->size) == (ssize_t)h->size
					       ? 0
					       : RXW_USER_ABORT;

			rxw_call_end(h->call, code, NULL);
			holding--;
		}
		free(h);
	}
}

static int serve(rxw_engine *engine, const char *port)
{
	struct sockaddr_in address = address_of(port);
	struct rxw_endpoint_options options = {.size = sizeof(options), .server = 1};
	struct rxw_service_options offer = {
		.size = sizeof(offer), .id = SERVICE_ID, .name = "echo", .queue = queue};
	rxw_endpoint *endpoint;
	int r;

	options.address = (struct sockaddr *)&address;
	options.address_len = sizeof(address);
	check(rxw_endpoint_create(engine, &options, &endpoint), "bind the port");
	check(rxw_service_add(endpoint, &offer, NULL), "add the service");
	r = loop_run(rxw_queue_fd(queue), serve_events, answer, TICK_MS, NULL);
	delay_ms = 0;
	least = 0;
	while (first) {
		first->due = 0;
		answer(NULL);
	}
	printf("%u calls at the same time\n", most);
	check(rxw_endpoint_stop(endpoint, 1000), "stop");
	check(rxw_endpoint_destroy(endpoint), "destroy the endpoint");
	return r;
}

/* ---- load ---- */

static rxw_connpool *pool;
static long to_begin, to_end, wrong;

static void begin(void)
{
	struct rxw_call_options options = {.size = sizeof(options),
					   .flags = RXW_CALL_NONBLOCK,
					   .queue = queue,
					   .events = RXW_EVENT_DONE};
	rxw_call *call;

	check(rxw_connpool_begin(pool, &options, &call), "begin a call");
	check((int)rxw_call_write(call, "hello", 5), "write a request");
	check(rxw_call_send_end(call), "end a request");
	to_begin--;
}

static void load_events(void *arg)
{
	struct rxw_queue_event v[ROOM];
	int n = rxw_queue_next(queue, v, ROOM, 0);

	(void)arg;
	for (int i = 0; i < n; i++) {
		char reply[TEXT_MAX];

		wrong += rxw_call_read(v[i].call, reply, sizeof(reply)) != 5 ||
			 memcmp(reply, "hello", 5);
		wrong += rxw_call_end(v[i].call, 0, NULL) != 0;
		to_end--;
		if (to_begin)
			begin();
	}
	if (!to_end)
		loop_stop();
}

static void idle(void *arg)
{
	(void)arg;
}

static int load(rxw_engine *engine, const char *port, long concurrent, long calls)
{
	struct sockaddr_in server = address_of(port);
	rxw_endpoint *endpoint;
	int r;

	check(rxw_endpoint_create(engine, NULL, &endpoint), "create the endpoint");
	check(rxw_connpool_create(endpoint, (struct sockaddr *)&server, sizeof(server), SERVICE_ID,
				  NULL, (unsigned)(concurrent + 3) / 4, &pool),
	      "create the pool");
	to_begin = to_end = calls;
	for (long i = 0; i < concurrent && to_begin; i++)
		begin();
	r = loop_run(rxw_queue_fd(queue), load_events, idle, 1000, NULL);
	printf("%ld calls, %ld wrong\n", calls - to_end, wrong);
	rxw_connpool_release(pool);
	if (!to_end)
		check(rxw_endpoint_destroy(endpoint), "destroy the endpoint");
	return r || wrong || to_end;
}

int main(int argc, char **argv)
{
	rxw_engine *engine;
	int r = 2;

	check(rxw_engine_create(NULL, &engine), "create the engine");
	check(rxw_queue_create(engine, NULL, &queue), "create the queue");
	if ((argc == 4 || argc == 5) && !strcmp(argv[1], "serve")) {
		delay_ms = atol(argv[3]);
		least = argc == 5 ? (unsigned)atol(argv[4]) : 0;
		r = serve(engine, argv[2]);
	} else if (argc == 5 && !strcmp(argv[1], "load")) {
		r = load(engine, argv[2], atol(argv[3]), atol(argv[4]));
	} else {
		fprintf(stderr, "usage: echo serve PORT DELAY_MS [LEAST]\n"
				"       echo load PORT CONCURRENT CALLS\n");
	}
	rxw_queue_destroy(queue);
	rxw_engine_destroy(engine);
	return r;
}
