/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counts the cache lines that the shards of a server share while it moves streams, each of them between one shard
 * and a client of its own. A listener plays the processor of its shard, and a worker that of the shard whose call it
 * serves. Clients play none, and neither does a look at slow workers: the clock decides how often that happens, and
 * not what the streams move. How many there were is printed.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rxwire/rxwire.h>

#include "common/counters.h"
#include "engine/objects.h"
#include "tests/lines/lines.h"

#define SERVICE	  1
#define CHUNK	  65536
#define WARM_UP	  (2u << 20) /* bytes of each stream before accesses count */
#define MOST	  64
#define GIVE_UP_S 170

static struct {
	unsigned listeners, clients, streams, mib, reverse, window, steer;
	unsigned most; /* transfers per MiB; 0: any number */
} load = {.listeners = 2, .clients = MOST, .streams = 4, .mib = 32};

static struct {
	rxw_engine *server_engine, *client_engine;
	rxw_endpoint *server, *client[MOST];
	rxw_connection *connection[MOST];
	pthread_barrier_t warm, done;
	_Atomic(unsigned) failed;
	uint64_t data, contended; /* packets; acquisitions of locks; while accesses count */
	_Atomic(uint64_t) looks;  /* at slow workers, since the start */
} bed;

static void die(const char *what)
{
	fprintf(stderr, "streams: %s\n", what);
	exit(1);
}

/* -- who plays which processor ----------------------------------------------------------------- */

struct begun {
	void *(*run)(void *);
	void *arg;
};

static void *run_listener(void *arg)
{
	struct begun begun = *(struct begun *)arg;

	free(arg);
	lines_play((int)((struct rxw_shard *)begun.arg)->index);
	return begun.run(begun.arg);
}

/* The machine that is played has a processor for each listener. */
int __wrap_sched_getaffinity(pid_t process, size_t size, cpu_set_t *set);

int __wrap_sched_getaffinity(pid_t process, size_t size, cpu_set_t *set)
{
	(void)process;
	CPU_ZERO_S(size, set);
	for (unsigned i = 0; i < load.listeners; i++)
		CPU_SET_S(i, size, set);
	return 0;
}

int __real_rxw_thread_create(pthread_t *t, const struct rxw_endpoint *ep, unsigned ordinal,
			     const char *name, void *(*run)(void *), void *arg);
int __wrap_rxw_thread_create(pthread_t *t, const struct rxw_endpoint *ep, unsigned ordinal,
			     const char *name, void *(*run)(void *), void *arg);

int __wrap_rxw_thread_create(pthread_t *t, const struct rxw_endpoint *ep, unsigned ordinal,
			     const char *name, void *(*run)(void *), void *arg)
{
	struct begun *begun;

	if (strncmp(name, "rxw-listen", 10) || !((struct rxw_shard *)arg)->ep->server)
		return __real_rxw_thread_create(t, ep, ordinal, name, run, arg);
	begun = malloc(sizeof(*begun));
	if (!begun)
		die("no memory");
	*begun = (struct begun){run, arg};
	return __real_rxw_thread_create(t, ep, ordinal, name, run_listener, begun);
}

unsigned __real_rxw_workers_slow(struct rxw_endpoint *ep, uint64_t now, struct rxw_slow_call *v,
				 unsigned most);
unsigned __wrap_rxw_workers_slow(struct rxw_endpoint *ep, uint64_t now, struct rxw_slow_call *v,
				 unsigned most);

unsigned __wrap_rxw_workers_slow(struct rxw_endpoint *ep, uint64_t now, struct rxw_slow_call *v,
				 unsigned most)
{
	int played = lines_play(-1);
	unsigned n = __real_rxw_workers_slow(ep, now, v, most);

	atomic_fetch_add(&bed.looks, 1);
	lines_play(played);
	return n;
}

/* -- streams ----------------------------------------------------------------------------------- */

static bool move_bytes(rxw_call *call, bool send, uint64_t bytes)
{
	static _Thread_local uint8_t data[CHUNK];

	while (bytes) {
		size_t n = bytes < CHUNK ? (size_t)bytes : CHUNK;
		ssize_t moved = send ? rxw_call_write(call, data, n) : rxw_call_read(call, data, n);

		if (moved != (ssize_t)n)
			return false;
		bytes -= n;
	}
	return true;
}

static uint64_t server_data(void)
{
	struct rxw_pstats *stats;
	uint64_t sum = 0;

	for (unsigned i = 0; i < load.listeners; i++)
		for (unsigned own = 0; own < 2; own++) {
			stats = own ? &bed.server->shard[i].own : &bed.server->shard[i].stats;
			sum += atomic_load(load.reverse ? &stats->packets_received[RXW_DATA]
							: &stats->packets_sent[RXW_DATA]);
		}
	return sum;
}

static void meet(pthread_barrier_t *barrier, void (*then)(void))
{
	if (pthread_barrier_wait(barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
		then();
	pthread_barrier_wait(barrier);
}

static uint64_t server_contended(void)
{
	struct counters c;

	counters_read(&c, bed.server);
	return counters_sum(&c, "lock_contended.");
}

static void begin_count(void)
{
	bed.data = server_data();
	bed.contended = server_contended();
	lines_start();
}

static void end_count(void)
{
	lines_stop();
	bed.contended = server_contended() - bed.contended;
	bed.data = server_data() - bed.data;
}

static int32_t serve(rxw_call *call, void *context)
{
	uint64_t bytes = (uint64_t)load.mib << 20;
	bool good;

	(void)context;
	lines_play((int)rxw_home(call->conn)->index);
	good = move_bytes(call, !load.reverse, WARM_UP);
	meet(&bed.warm, begin_count);
	good = good && move_bytes(call, !load.reverse, bytes);
	meet(&bed.done, end_count);
	lines_play(-1);
	return good ? 0 : RXW_CALL_DEAD;
}

static void *run_client(void *arg)
{
	uint64_t bytes = WARM_UP + ((uint64_t)load.mib << 20);
	rxw_call *call;

	if (rxw_call_begin(arg, NULL, &call))
		die("cannot begin a call");
	if (!move_bytes(call, load.reverse, load.reverse ? bytes : 0) ||
	    (!load.reverse && rxw_call_send_end(call)) ||
	    !move_bytes(call, false, load.reverse ? 0 : bytes))
		atomic_fetch_add(&bed.failed, 1);
	if (rxw_call_end(call, 0, NULL))
		atomic_fetch_add(&bed.failed, 1);
	return NULL;
}

static void run_streams(void)
{
	pthread_t thread[MOST];

	for (unsigned i = 0; i < load.streams; i++)
		if (pthread_create(&thread[i], NULL, run_client, bed.connection[i]))
			die("cannot start a thread");
	for (unsigned i = 0; i < load.streams; i++)
		pthread_join(thread[i], NULL);
}

/* -- set-up ------------------------------------------------------------------------------------ */

#define NAME_MEMBER(prefix, object, member)                                    \
	do {                                                                   \
		snprintf(text, sizeof(text), "%s" #member, prefix);            \
		lines_name(text, &(object)->member, sizeof((object)->member)); \
	} while (0)

static void name_objects(void)
{
	struct rxw_endpoint *ep = bed.server;
	char prefix[32], text[64];

	lines_name("engine", ep->engine, sizeof(*ep->engine));
	lines_name("endpoint", ep, sizeof(*ep));
	lines_name("pool", ep->engine->pool, 16 * 1024);
	for (unsigned i = 0; i < load.listeners; i++) {
		struct rxw_shard *s = &ep->shard[i];

		snprintf(prefix, sizeof(prefix), "shard %u ", i);
		lines_name(prefix, s, sizeof(*s));
		NAME_MEMBER(prefix, s, table);
		NAME_MEMBER(prefix, s, role);
		NAME_MEMBER(prefix, s, rx);
		NAME_MEMBER(prefix, s, effects);
		NAME_MEMBER(prefix, s, wheel);
		NAME_MEMBER(prefix, s, tx);
		NAME_MEMBER(prefix, s, stats);
		NAME_MEMBER(prefix, s, own);
		snprintf(prefix, sizeof(prefix), "socket %u", i);
		lines_name(prefix, s->sock, 1024);
	}
}

static rxw_connection *connect_to(rxw_endpoint *client, unsigned shard,
				  const struct sockaddr_storage *address, socklen_t length)
{
	rxw_connection *connection;

	for (;;) {
		if (rxw_connection_create(client, (const struct sockaddr *)address, length, SERVICE,
					  NULL, &connection))
			die("cannot create a connection");
		if ((connection->p.cid >> 2) % load.listeners == shard)
			return connection;
		rxw_connection_release(connection);
	}
}

static void set_up(void)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rxw_endpoint_options options = {.size = sizeof(options),
					       .server = 1,
					       .paused = 1,
					       .address = (struct sockaddr *)&in,
					       .address_len = sizeof(in)};
	struct rxw_service_options service = {
		.size = sizeof(service), .id = SERVICE, .name = "streams", .handler = serve};
	struct rxw_constants constants = rxw_constants;
	struct sockaddr_storage address;
	socklen_t length = sizeof(address);
	struct rxw_config config;

	constants.steer = (int)load.steer;
	rxw_config_init(&config, sizeof(config));
	if (load.window)
		config.window = load.window;
	config.workers_max = MOST;
	config.listeners = load.listeners;
	config.dead_ms = 60000; /* accesses to memory take a hundred times as long */
	if (rxw_engine_create(&config, &bed.server_engine) ||
	    rxw_endpoint_create_with(bed.server_engine, &options, &constants, &bed.server) ||
	    rxw_service_add(bed.server, &service, NULL) || rxw_endpoint_start(bed.server) ||
	    rxw_endpoint_address(bed.server, &address, &length))
		die("cannot start the server");
	name_objects();
	config.listeners = 1;
	if (rxw_engine_create(&config, &bed.client_engine))
		die("no memory");
	options.server = options.paused = 0;
	for (unsigned i = 0; i < load.clients; i++)
		if (rxw_endpoint_create(bed.client_engine, &options, &bed.client[i]))
			die("cannot create a client");
	for (unsigned i = 0; i < load.streams; i++)
		bed.connection[i] = connect_to(bed.client[i % load.clients], i % load.listeners,
					       &address, length);
	pthread_barrier_init(&bed.warm, NULL, load.streams);
	pthread_barrier_init(&bed.done, NULL, load.streams);
}

static void tear_down(void)
{
	for (unsigned i = 0; i < load.streams; i++)
		rxw_connection_release(bed.connection[i]);
	for (unsigned i = 0; i < load.clients; i++)
		rxw_endpoint_destroy(bed.client[i]);
	rxw_endpoint_destroy(bed.server);
	rxw_engine_destroy(bed.client_engine);
	rxw_engine_destroy(bed.server_engine);
}

static void read_options(int argc, char **argv)
{
	static const struct {
		const char *name;
		unsigned *value;
	} known[] = {{"--listeners", &load.listeners}, {"--clients", &load.clients},
		     {"--streams", &load.streams},     {"--mib", &load.mib},
		     {"--reverse", &load.reverse},     {"--window", &load.window},
		     {"--steer", &load.steer},	       {"--most", &load.most}};

	for (int i = 1; i < argc; i += 2) {
		bool found = false;

		for (size_t k = 0; i + 1 < argc && k < sizeof(known) / sizeof(known[0]); k++)
			if (!strcmp(argv[i], known[k].name)) {
				*known[k].value = (unsigned)strtoul(argv[i + 1], NULL, 10);
				found = true;
			}
		if (!found)
			die("unknown option; --listeners --clients --streams --mib --reverse --window "
			    "--steer --most, each with a number");
	}
	if (!load.listeners || load.listeners > LINES_PROCESSORS || !load.streams ||
	    load.streams > MOST || !load.clients)
		die("need 1 to 8 listeners, 1 to 64 streams, and a client");
	if (load.clients > load.streams)
		load.clients = load.streams;
}

int main(int argc, char **argv)
{
	double moved;

	read_options(argc, argv);
	if (!lines_told()) {
		printf("SKIP: the compiler tells of no accesses to memory\n");
		return 77;
	}
	alarm(GIVE_UP_S);
	set_up();
	run_streams();
	moved = (double)load.mib * load.streams;
	printf("%u listeners, %u streams of %u MiB %s, %llu packets\n", load.listeners,
	       load.streams, load.mib, load.reverse ? "to the server" : "from the server",
	       (unsigned long long)bed.data);
	printf("%llu contended acquisitions of locks, %llu looks at slow workers\n",
	       (unsigned long long)bed.contended, (unsigned long long)atomic_load(&bed.looks));
	lines_print(stdout, moved, "MiB", (double)bed.data);
	tear_down();
	if (load.most && (double)lines_transfers() / moved > load.most)
		die("more transfers than --most allows");
	return atomic_load(&bed.failed) != 0;
}
