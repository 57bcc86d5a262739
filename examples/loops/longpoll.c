/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Long polls: clients wait for a message, each with a call, and one thread answers all of them.
 *   longpoll serve PORT
 *   longpoll wait PORT NUMBER      so many calls; ends when all are answered
 *   longpoll count PORT            how many calls wait
 *   longpoll publish PORT TEXT     answers them
 */
#define _POSIX_C_SOURCE 200809L
#include <arpa/inet.h>
#include <rxwire/rxwire.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SERVICE_ID 4001
#define TEXT_MAX   1000
#define ROOM	   64

enum operation {
	WAIT,
	COUNT,
	PUBLISH
};

static void check(int result, const char *what)
{
	if (result < 0) {
		fprintf(stderr, "longpoll: cannot %s: %s\n", what, rxw_strerror(result));
		exit(1);
	}
}

static struct sockaddr_in address_of(const char *port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return a;
}

/* ---- server ---- */

static rxw_queue *queue;

/* A call that waits. The queue returns it with each event of the call. */
static struct waiter {
	struct waiter *next, **link;
	rxw_call *call;
} * waiting;
static size_t count;

/* The call waits; false if memory is exhausted. */
static int add(rxw_call *call)
{
	struct waiter *w = malloc(sizeof(*w));

	if (!w)
		return 0;
	*w = (struct waiter){.next = waiting, .link = &waiting, .call = call};
	if (waiting)
		waiting->link = &w->next;
	waiting = w;
	count++;
	/* Only its failure is of interest until there is a message. */
	rxw_call_set_events(call, RXW_EVENT_DONE);
	rxw_call_set_queue(call, queue, w);
	return 1;
}

static rxw_call *take(struct waiter *w)
{
	rxw_call *call = w->call;

	*w->link = w->next;
	if (w->next)
		w->next->link = w->link;
	count--;
	free(w);
	return call;
}

static void reply(rxw_call *call, const void *data, size_t size)
{
	rxw_code code = rxw_call_write(call, data, size) == (ssize_t)size ? 0 : RXW_USER_ABORT;

	rxw_call_end(call, code, NULL);
}

static void publish(const void *text, size_t size)
{
	while (waiting)
		reply(take(waiting), text, size);
}

/* Requests of one packet are complete when the call is reported. */
static void request(rxw_call *call)
{
	uint8_t in[TEXT_MAX + 4], number[4];
	ssize_t n = rxw_call_read(call, in, sizeof(in));

	if (n < 4) {
		rxw_call_end(call, RXW_RPC_DECODE, NULL);
		return;
	}
	switch (rxw_xdr_load32(in)) {
	case WAIT:
		if (!add(call))
			rxw_call_end(call, RXW_USER_ABORT, NULL);
		break;
	case PUBLISH:
		publish(in + 4, (size_t)n - 4);
		/* fall through */
	case COUNT:
		rxw_xdr_store32(number, (uint32_t)count);
		reply(call, number, sizeof(number));
		break;
	default:
		rxw_call_end(call, RXW_RPC_OPCODE, NULL);
	}
}

static volatile sig_atomic_t stop;

static void on_signal(int number)
{
	(void)number;
	stop = 1;
}

static int serve(const char *port)
{
	struct sockaddr_in address = address_of(port);
	struct rxw_endpoint_options options = {.size = sizeof(options), .server = 1};
	struct rxw_service_options offer = {
		.size = sizeof(offer), .id = SERVICE_ID, .name = "longpoll"};
	struct rxw_queue_event event;
	rxw_endpoint *endpoint;
	rxw_engine *engine;

	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	options.address = (struct sockaddr *)&address;
	options.address_len = sizeof(address);
	check(rxw_engine_create(NULL, &engine), "create the engine");
	check(rxw_queue_create(engine, NULL, &queue), "create the queue");
	check(rxw_endpoint_create(engine, &options, &endpoint), "bind the port");
	offer.queue = queue;
	check(rxw_service_add(endpoint, &offer, NULL), "add the service");
	while (!stop) {
		/* One by one: a request may end calls whose events are queued behind it. */
		if (rxw_queue_next(queue, &event, 1, 200) != 1)
			continue;
		if (event.events & RXW_EVENT_CALL)
			request(event.call);
		else if (event.events & RXW_EVENT_DONE)
			rxw_call_end(take(event.arg), 0, NULL); /* the client has given up */
	}
	publish("", 0);
	check(rxw_endpoint_stop(endpoint, 1000), "stop");
	check(rxw_endpoint_destroy(endpoint), "destroy the endpoint");
	check(rxw_queue_destroy(queue), "destroy the queue");
	return rxw_engine_destroy(engine) < 0;
}

/* ---- clients ---- */

static void write_request(rxw_call *call, enum operation operation, const char *text)
{
	uint8_t out[TEXT_MAX + 4];
	size_t length = strlen(text);

	rxw_xdr_store32(out, (uint32_t)operation);
	memcpy(out + 4, text, length);
	check((int)rxw_call_write(call, out, length + 4), "write the request");
	check(rxw_call_send_end(call), "end the request");
}

/* COUNT or PUBLISH */
static int ask(rxw_connpool *pool, enum operation operation, const char *text)
{
	uint8_t number[4];
	rxw_call *call;
	rxw_code code;

	check(rxw_connpool_begin(pool, NULL, &call), "begin the call");
	write_request(call, operation, text);
	if (rxw_call_read(call, number, 4) != 4)
		number[0] = 0;
	code = rxw_call_end(call, 0, NULL);
	if (!code)
		printf("%u\n", (unsigned)rxw_xdr_load32(number));
	return code != 0;
}

static int wait_for_all(rxw_engine *engine, rxw_connpool *pool, long number)
{
	struct rxw_call_options options = {
		.size = sizeof(options), .flags = RXW_CALL_NONBLOCK, .events = RXW_EVENT_DONE};
	struct rxw_queue_event v[ROOM];
	long failed = 0;

	check(rxw_queue_create(engine, NULL, &options.queue), "create the queue");
	for (long i = 0; i < number; i++) {
		rxw_call *call;

		check(rxw_connpool_begin(pool, &options, &call), "begin a call");
		write_request(call, WAIT, "");
	}
	while (number) {
		int n = rxw_queue_next(options.queue, v, ROOM, -1);

		for (int i = 0; i < n; i++, number--)
			failed += rxw_call_end(v[i].call, 0, NULL) != 0;
	}
	printf("%ld calls failed\n", failed);
	check(rxw_queue_destroy(options.queue), "destroy the queue");
	return failed != 0;
}

int main(int argc, char **argv)
{
	struct sockaddr_in server;
	rxw_endpoint *endpoint;
	rxw_engine *engine;
	rxw_connpool *pool;
	long number = 4;
	int r = 2;

	if (argc == 3 && !strcmp(argv[1], "serve"))
		return serve(argv[2]);
	if (argc < 3 || (argc > 3 && strlen(argv[3]) > TEXT_MAX)) {
		fprintf(stderr, "usage: longpoll serve|count PORT; wait PORT NUMBER; "
				"publish PORT TEXT\n");
		return 2;
	}
	if (argc == 4 && !strcmp(argv[1], "wait"))
		number = atol(argv[3]);
	server = address_of(argv[2]);
	check(rxw_engine_create(NULL, &engine), "create the engine");
	check(rxw_endpoint_create(engine, NULL, &endpoint), "create the endpoint");
	check(rxw_connpool_create(endpoint, (struct sockaddr *)&server, sizeof(server), SERVICE_ID,
				  NULL, (unsigned)(number + 3) / 4, &pool),
	      "create the pool");
	if (argc == 4 && !strcmp(argv[1], "wait"))
		r = wait_for_all(engine, pool, number);
	else if (argc == 3 && !strcmp(argv[1], "count"))
		r = ask(pool, COUNT, "");
	else if (argc == 4 && !strcmp(argv[1], "publish"))
		r = ask(pool, PUBLISH, argv[3]);
	rxw_connpool_release(pool);
	rxw_endpoint_destroy(endpoint);
	rxw_engine_destroy(engine);
	return r;
}
