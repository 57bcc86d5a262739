/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A fixed load within one process, for counting instructions: a number of listeners and
 * connections, of which some are active, or streams of a given window. Under callgrind only the
 * load itself is counted, without the setup. Prints one line of JSON with the socket traffic.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rxwire/rxwire.h>

#include "common/counters.h"

#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#else
#define CALLGRIND_START_INSTRUMENTATION
#define CALLGRIND_STOP_INSTRUMENTATION
#define CALLGRIND_ZERO_STATS
#endif

#define SERVICE	    1
#define BYTES	    100 /* of a small call, each way */
#define CHUNK	    65536
#define PROOF	    20000
#define MOST_SLOTS  1024
#define GIVE_UP_S   170

static struct {
	unsigned listeners, endpoints, connections, active, outstanding, window, calls;
	unsigned trace; /* 1: the endpoints are traced */
	unsigned long long stream; /* bytes; 0 = small calls */
} load = {.listeners = 1, .endpoints = 1, .connections = 1, .outstanding = 1, .calls = 1000,
	  .window = 255};

static struct {
	rxw_engine *server_engine, *client_engine;
	rxw_endpoint *server, **client;
	rxw_connection **connection;
} bed;

static void die(const char *what)
{
	fprintf(stderr, "scaling_load: %s\n", what);
	exit(1);
}

/* -- the server ------------------------------------------------------------------------------- */

/* The first 8 bytes hold the size of the reply. */
static int32_t serve(rxw_call *call, void *context)
{
	static const uint8_t zeros[CHUNK];
	uint8_t request[BYTES];
	uint64_t left;

	(void)context;
	if (rxw_call_read(call, request, sizeof(request)) != (ssize_t)sizeof(request))
		return RXW_RPC_DECODE;
	memcpy(&left, request, sizeof(left));
	while (left) {
		size_t n = left < CHUNK ? (size_t)left : CHUNK;

		if (rxw_call_write(call, zeros, n) != (ssize_t)n)
			return RXW_CALL_DEAD;
		left -= n;
	}
	return 0;
}

static void ask(uint8_t request[BYTES], uint64_t bytes)
{
	memset(request, 0, BYTES);
	memcpy(request, &bytes, sizeof(bytes));
}

/* -- small calls: a number outstanding, each followed by one of the next connection ------------ */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t done;
	unsigned first, count; /* connections of this load */
	unsigned left;	       /* slots that have not ended */
	_Atomic(unsigned) begun, failed;
	unsigned most;
	struct slot {
		unsigned at; /* the next connection: first, first + slots, … */
	} slot[MOST_SLOTS];
	unsigned slots;
} run = {.lock = PTHREAD_MUTEX_INITIALIZER, .done = PTHREAD_COND_INITIALIZER};

static void slot_ends(void)
{
	pthread_mutex_lock(&run.lock);
	if (!--run.left)
		pthread_cond_signal(&run.done);
	pthread_mutex_unlock(&run.lock);
}

static void next_call(struct slot *slot);

static void answered(rxw_call *call, unsigned events, void *arg)
{
	uint8_t reply[BYTES];

	if (!(events & RXW_EVENT_DONE))
		return;
	if (rxw_call_read(call, reply, sizeof(reply)) != (ssize_t)sizeof(reply))
		atomic_fetch_add(&run.failed, 1);
	if (rxw_call_end(call, 0, NULL))
		atomic_fetch_add(&run.failed, 1);
	next_call(arg);
}

static void next_call(struct slot *slot)
{
	struct rxw_call_options options = {.size = sizeof(options), .flags = RXW_CALL_NONBLOCK};
	uint8_t request[BYTES];
	rxw_call *call;

	if (atomic_fetch_add(&run.begun, 1) >= run.most) {
		slot_ends();
		return;
	}
	ask(request, BYTES);
	if (rxw_call_begin(bed.connection[run.first + slot->at], &options, &call))
		die("cannot begin a call");
	slot->at += run.slots;
	if (slot->at >= run.count)
		slot->at %= run.slots;
	if (rxw_call_write(call, request, BYTES) != BYTES || rxw_call_send_end(call))
		die("cannot write a request");
	/* The last access: the call may be answered and ended before this returns. */
	rxw_call_set_callback(call, answered, slot);
}

/* `calls` calls, round-robin on `count` connections. */
static void small_calls(unsigned first, unsigned count, unsigned calls)
{
	unsigned slots = load.outstanding < count ? load.outstanding : count;

	run.first = first;
	run.count = count;
	run.slots = run.left = slots;
	run.most = calls;
	atomic_store(&run.begun, 0);
	for (unsigned i = 0; i < slots; i++)
		run.slot[i].at = i;
	for (unsigned i = 0; i < slots; i++)
		next_call(&run.slot[i]);
	pthread_mutex_lock(&run.lock);
	while (run.left)
		pthread_cond_wait(&run.done, &run.lock);
	pthread_mutex_unlock(&run.lock);
}

/* -- streams ---------------------------------------------------------------------------------- */

static void fetch(rxw_connection *connection, uint64_t bytes)
{
	uint8_t request[BYTES], *data = malloc(CHUNK);
	uint64_t got = 0;
	rxw_call *call;
	ssize_t n;

	ask(request, bytes);
	if (!data || rxw_call_begin(connection, NULL, &call) ||
	    rxw_call_write(call, request, BYTES) != BYTES)
		die("cannot begin a stream");
	while ((n = rxw_call_read(call, data, CHUNK)) > 0)
		got += (uint64_t)n;
	if (rxw_call_end(call, 0, NULL) || got != bytes)
		atomic_fetch_add(&run.failed, 1);
	free(data);
}

static void *read_stream(void *arg)
{
	fetch(arg, load.stream);
	return NULL;
}

static void streams(unsigned count)
{
	pthread_t *thread = calloc(count, sizeof(*thread));

	for (unsigned i = 0; i < count; i++)
		if (!thread || pthread_create(&thread[i], NULL, read_stream, bed.connection[i]))
			die("cannot start a thread");
	for (unsigned i = 0; i < count; i++)
		pthread_join(thread[i], NULL);
	free(thread);
}

/* -- setup ------------------------------------------------------------------------------------ */

static void set_up(void)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rxw_endpoint_options options = {.size = sizeof(options), .server = 1, .paused = 1,
					       .address = (struct sockaddr *)&in,
					       .address_len = sizeof(in)};
	struct rxw_service_options service = {.size = sizeof(service),
					      .id = SERVICE,
					      .name = "scaling",
					      .handler = serve,
					      .flags = load.stream ? 0 : RXW_SERVICE_INLINE};
	struct sockaddr_storage address;
	socklen_t length = sizeof(address);
	struct rxw_config config;

	rxw_config_init(&config, sizeof(config));
	config.window = load.window;
	config.workers_max = 256;
	config.listeners = load.listeners;
	/* Under callgrind time passes a hundred times as fast, so the dead time is raised. */
	config.dead_ms = 60000;
	if (rxw_engine_create(&config, &bed.server_engine) ||
	    rxw_endpoint_create(bed.server_engine, &options, &bed.server) ||
	    rxw_service_add(bed.server, &service, NULL) || rxw_endpoint_start(bed.server) ||
	    rxw_endpoint_address(bed.server, &address, &length))
		die("cannot start the server");
	config.listeners = 1;
	bed.client = calloc(load.endpoints, sizeof(*bed.client));
	bed.connection = calloc(load.connections, sizeof(*bed.connection));
	if (!bed.client || !bed.connection || rxw_engine_create(&config, &bed.client_engine))
		die("cannot allocate memory");
	options.server = options.paused = 0;
	for (unsigned i = 0; i < load.endpoints; i++)
		if (rxw_endpoint_create(bed.client_engine, &options, &bed.client[i]))
			die("cannot create a client endpoint");
	for (unsigned i = 0; i < load.connections; i++)
		if (rxw_connection_create(bed.client[i % load.endpoints],
					  (struct sockaddr *)&address, length, SERVICE, NULL,
					  &bed.connection[i]))
			die("cannot create a connection");
}

static void tear_down(void)
{
	for (unsigned i = 0; i < load.connections; i++)
		rxw_connection_release(bed.connection[i]);
	for (unsigned i = 0; i < load.endpoints; i++)
		rxw_endpoint_destroy(bed.client[i]);
	rxw_endpoint_destroy(bed.server);
	rxw_engine_destroy(bed.client_engine);
	rxw_engine_destroy(bed.server_engine);
	free(bed.client);
	free(bed.connection);
}

struct figures {
	unsigned long long packets, data, acks, datagrams, syscalls, contended, calls, ns;
};

static void add(struct figures *f, rxw_endpoint *endpoint, int sign)
{
	struct counters c;

	counters_read(&c, endpoint);
#define ADD(value) (unsigned long long)sign * (value)
	f->packets += ADD(counters_sum(&c, "packets.sent."));
	f->contended += ADD(counters_sum(&c, "lock_contended."));
	f->data += ADD(counters_get(&c, "packets.sent.data"));
	f->acks += ADD(counters_get(&c, "packets.sent.ack"));
	f->datagrams += ADD(counters_get(&c, "datagrams.sent"));
	f->syscalls += ADD(counters_sum(&c, "syscalls."));
#undef ADD
}

static void sum(struct figures *f, int sign)
{
	struct timespec t;

	add(f, bed.server, sign);
	for (unsigned i = 0; i < load.endpoints; i++)
		add(f, bed.client[i], sign);
	clock_gettime(CLOCK_MONOTONIC, &t);
	f->ns += (unsigned long long)sign *
		 ((unsigned long long)t.tv_sec * 1000000000ull + (unsigned long long)t.tv_nsec);
}

static void options(int argc, char **argv)
{
	static const struct {
		const char *name;
		unsigned *value;
	} known[] = {{"--listeners", &load.listeners}, {"--endpoints", &load.endpoints},
		     {"--connections", &load.connections}, {"--active", &load.active},
		     {"--outstanding", &load.outstanding}, {"--window", &load.window},
		     {"--calls", &load.calls}, {"--trace", &load.trace}};

	for (int i = 1; i + 1 < argc; i += 2) {
		bool found = !strcmp(argv[i], "--stream");

		if (found)
			load.stream = strtoull(argv[i + 1], NULL, 10);
		for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++)
			if (!strcmp(argv[i], known[k].name)) {
				*known[k].value = (unsigned)strtoul(argv[i + 1], NULL, 10);
				found = true;
			}
		if (!found)
			die("unknown option; --listeners --endpoints --connections --active "
			    "--outstanding --window --calls --trace --stream, each with a number");
	}
	if (!load.active || load.active > load.connections)
		load.active = load.connections;
	if (!load.endpoints || !load.connections || !load.outstanding ||
	    load.outstanding > MOST_SLOTS || load.endpoints > load.connections)
		die("need 1 <= endpoints <= connections and 1 <= outstanding <= 1024");
}

static void start_traces(void)
{
	if (rxw_trace_start(bed.server, NULL))
		die("cannot trace the server");
	for (unsigned i = 0; i < load.endpoints; i++)
		if (rxw_trace_start(bed.client[i], NULL))
			die("cannot trace a client");
}

int main(int argc, char **argv)
{
	struct figures f = {0};

	options(argc, argv);
	alarm(GIVE_UP_S);
	set_up();
	/*
	 * A few packets validate the address of each endpoint. Small calls alone do not, and a
	 * server keeps only a few thousand connections of unvalidated peers.
	 */
	for (unsigned i = 0; i < load.endpoints; i++)
		fetch(bed.connection[i], PROOF);
	if (!load.stream) {
		/* The server has state for every connection, and the active ones are warmed up. */
		unsigned outstanding = load.outstanding;

		load.outstanding = 64;
		small_calls(0, load.connections, load.connections);
		load.outstanding = outstanding;
		small_calls(0, load.active, load.calls < 1000 ? load.calls : 1000);
	}
	if (load.trace)
		start_traces();
	sum(&f, -1);
	CALLGRIND_START_INSTRUMENTATION;
	CALLGRIND_ZERO_STATS;
	if (load.stream)
		streams(load.active);
	else
		small_calls(0, load.active, load.calls);
	CALLGRIND_STOP_INSTRUMENTATION;
	sum(&f, 1);
	printf("{\"listeners\": %u, \"connections\": %u, \"active\": %u, \"outstanding\": %u, "
	       "\"window\": %u, \"calls\": %u, \"stream\": %llu, \"packets\": %llu, "
	       "\"data\": %llu, \"acks\": %llu, \"datagrams\": %llu, \"syscalls\": %llu, "
	       "\"lock_contended\": %llu, \"failed\": %u, \"seconds\": %.4f}\n",
	       load.listeners, load.connections, load.active, load.outstanding, load.window,
	       load.stream ? load.active : load.calls, load.stream, f.packets, f.data, f.acks,
	       f.datagrams, f.syscalls, f.contended, atomic_load(&run.failed), (double)f.ns / 1e9);
	tear_down();
	return atomic_load(&run.failed) != 0;
}
