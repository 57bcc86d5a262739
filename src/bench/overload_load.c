/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * More calls than a server can serve. The server's handlers sleep. The client writes its own
 * packets (layer base only), so that it can offer calls at a fixed rate and does not retry after
 * BUSY. Each prints one line of JSON at the end.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <rxwire/rxwire.h>

#include "base/wire.h"
#include "common/counters.h"

#define SERVICE	     1
#define BYTES	     100 /* of a request; the reply has 4 */
#define MOST_CALLS   16384
#define MOST_SOCKETS 64
#define MOST_SAMPLES 2000000
#define LOST_NS	     5000000000ull
#define BURST_NS     500000000ull

static struct {
	unsigned port, sleep_us; /* of the server */
	/*
	 * Of the client: a burst of calls every half second, or a number per second, or a closed
	 * loop of `outstanding`.
	 */
	unsigned burst, rate, outstanding, seconds, peers, warm_ms;
	struct rxw_config config; /* of the server: --set NAME=VALUE */
} set = {.port = 7009, .sleep_us = 20000, .outstanding = 32,
	 .seconds = 5, .peers = 4, .warm_ms = 500};

static void die(const char *what)
{
	fprintf(stderr, "overload_load: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static double cpu_of(int who)
{
	struct rusage r;

	getrusage(who, &r);
	return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
	       (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6;
}

/* -- the server ------------------------------------------------------------------------------- */

static int32_t serve(rxw_call *call, void *context)
{
	struct timespec t = {set.sleep_us / 1000000, set.sleep_us % 1000000 * 1000};
	uint8_t request[BYTES];

	(void)context;
	if (rxw_call_read(call, request, sizeof(request)) != (ssize_t)sizeof(request))
		return RXW_RPC_DECODE;
	while (nanosleep(&t, &t) && errno == EINTR)
		;
	return rxw_call_write(call, "done", 4) == 4 ? 0 : RXW_CALL_DEAD;
}

static int serve_calls(void)
{
	struct rxw_endpoint_options options = {.size = sizeof(options), .server = 1};
	struct rxw_service_options service = {.size = sizeof(service), .id = SERVICE,
					      .name = "overload", .handler = serve};
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				      .sin_port = htons((uint16_t)set.port)};
	struct timespec step = {0, 10000000};
	struct counters s;
	rxw_endpoint *endpoint;
	rxw_engine *engine;
	uint64_t waiting = 0;
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	options.address = (struct sockaddr *)&address;
	options.address_len = sizeof(address);
	options.paused = 1;
	if (rxw_engine_create(&set.config, &engine) ||
	    rxw_endpoint_create(engine, &options, &endpoint) ||
	    rxw_service_add(endpoint, &service, NULL) || rxw_endpoint_start(endpoint))
		die("cannot start the server");
	puts("ready");
	fflush(stdout);
	while (sigtimedwait(&signals, NULL, &step) < 0) {
		counters_read(&s, endpoint);
		if (counters_get(&s, "calls_waiting") > waiting)
			waiting = counters_get(&s, "calls_waiting");
	}
	counters_read(&s, endpoint);
#define COUNT(name) (unsigned long long)counters_get(&s, name)
	/* This thread only reads counters. Its time is not part of the cost of calls. */
	printf("{\"served\": %llu, \"refused\": %llu, \"waiting_most\": %llu, \"threads\": %llu, "
	       "\"cpu_s\": %.6f, \"kernel_drops\": %llu, \"packets_received\": %llu, "
	       "\"syscalls\": %llu}\n",
	       COUNT("handlers.worker"), COUNT("calls_refused"), (unsigned long long)waiting,
	       COUNT("workers"), cpu_of(RUSAGE_SELF) - cpu_of(RUSAGE_THREAD),
	       COUNT("kernel_drops"), COUNT("packets.received.data"),
	       COUNT("syscalls.send") + COUNT("syscalls.receive"));
#undef COUNT
	fflush(stdout);
	_exit(0);
}

/* -- the client ------------------------------------------------------------------------------- */

/* A channel of a connection: at most one call at a time. */
static struct channel {
	uint32_t number, serial;
	uint64_t sent; /* 0: free */
} channel[MOST_CALLS];
static unsigned idle[MOST_CALLS], idle_count;

static struct {
	int fd[MOST_SOCKETS];
	uint32_t epoch, cid;
	uint64_t begun, counted_from;
	unsigned offered, refused, served, failed, lost, unoffered, outstanding;
	uint32_t *us; /* latency of served calls */
} run;

static uint32_t cid_of(unsigned c)
{
	/*
	 * Adjacent calls in time use many connections: the channels of one connection are far
	 * apart.
	 */
	return run.cid + ((c % (MOST_CALLS / 4)) << 2) + c / (MOST_CALLS / 4);
}

static void put_header(uint8_t *p, unsigned c, uint8_t type, uint8_t flags, uint32_t seq)
{
	struct rxw_header h = {.epoch = run.epoch, .cid = cid_of(c), .call = channel[c].number,
			       .seq = seq, .serial = ++channel[c].serial, .type = type,
			       .flags = (uint8_t)(RXW_CLIENT_INITIATED | flags),
			       .service = SERVICE};

	rxw_header_put(p, &h);
}

static int socket_of(unsigned c)
{
	return run.fd[c % (MOST_CALLS / 4) % set.peers];
}

static void offer(uint64_t now)
{
	uint8_t p[RXW_HEADER_SIZE + BYTES] = {0};
	unsigned c;

	if (now >= run.counted_from)
		run.offered++;
	if (!idle_count) {
		run.unoffered++;
		return;
	}
	c = idle[--idle_count];
	channel[c].number++;
	channel[c].sent = now;
	put_header(p, c, RXW_DATA, RXW_LAST_PACKET, 1);
	if (send(socket_of(c), p, sizeof(p), 0) < 0 && errno != EAGAIN && errno != ENOBUFS)
		die("cannot send a datagram");
	run.outstanding++;
}

static void over(unsigned c)
{
	channel[c].sent = 0;
	idle[idle_count++] = c;
	run.outstanding--;
}

/* The reply has arrived: lets the server release it. */
static void acknowledge(unsigned c, uint32_t serial)
{
	uint8_t p[RXW_HEADER_SIZE + 18] = {0};

	put_header(p, c, RXW_ACK, 0, 0);
	rxw_put32(p + RXW_HEADER_SIZE + 4, 2);
	rxw_put32(p + RXW_HEADER_SIZE + 8, 1);
	rxw_put32(p + RXW_HEADER_SIZE + 12, serial);
	p[RXW_HEADER_SIZE + 16] = RXW_ACK_IDLE;
	send(socket_of(c), p, sizeof(p), 0);
}

static void heard(const uint8_t *p, ssize_t size, uint64_t now)
{
	struct rxw_header h;
	bool counts;
	unsigned c;

	if (!rxw_header_get(p, (size_t)size, &h))
		return;
	c = (((h.cid & ~3u) - run.cid) >> 2) + (h.cid & 3) * (MOST_CALLS / 4);
	if (c >= MOST_CALLS || h.call != channel[c].number || h.epoch != run.epoch)
		return;
	if (h.type == RXW_DATA)
		acknowledge(c, h.serial);
	if (!channel[c].sent)
		return;
	counts = channel[c].sent >= run.counted_from;
	if (h.type == RXW_DATA) {
		if (counts && run.served < MOST_SAMPLES)
			run.us[run.served++] = (uint32_t)((now - channel[c].sent) / 1000);
	} else if (h.type == RXW_BUSY) {
		run.refused += counts;
	} else if (h.type == RXW_ABORT) {
		run.failed += counts;
	} else {
		return;
	}
	over(c);
}

/* Packets received as one burst have the same size, except the last. */
static size_t size_of_each(const struct msghdr *m, size_t all)
{
	const struct cmsghdr *h = CMSG_FIRSTHDR(m);
	int size;

	if (!h || h->cmsg_level != SOL_UDP || h->cmsg_type != UDP_GRO)
		return all;
	memcpy(&size, CMSG_DATA(h), sizeof(size));
	return size > 0 ? (size_t)size : all;
}

static void receive(void)
{
	static uint8_t p[65536];
	union {
		struct cmsghdr align;
		uint8_t bytes[CMSG_SPACE(sizeof(int))];
	} control;
	uint64_t now = now_ns();

	for (unsigned i = 0; i < set.peers; i++)
		for (;;) {
			struct iovec v = {p, sizeof(p)};
			struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = &control,
					   .msg_controllen = sizeof(control)};
			ssize_t n = recvmsg(run.fd[i], &m, 0);
			size_t each;

			if (n < 0)
				break;
			each = size_of_each(&m, (size_t)n);
			for (size_t at = 0, left = (size_t)n; left; at += each) {
				each = left < each ? left : each;
				heard(p + at, (ssize_t)each, now);
				left -= each;
			}
		}
}

static void open_sockets(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				      .sin_port = htons((uint16_t)set.port)};
	int size = 4 << 20, on = 1;

	for (unsigned i = 0; i < set.peers; i++) {
		run.fd[i] = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		if (run.fd[i] < 0 ||
		    connect(run.fd[i], (struct sockaddr *)&address, sizeof(address)))
			die("cannot open a socket");
		setsockopt(run.fd[i], SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
		/*
		 * As our clients do. Without it, on loopback, the kernel splits the server's bursts
		 * in the server's time. This work belongs to the client or its network.
		 */
		setsockopt(run.fd[i], SOL_UDP, UDP_GRO, &on, sizeof(on));
	}
}

/* Unanswered calls: their channels are abandoned. */
static void count_lost(void)
{
	for (unsigned c = 0; c < MOST_CALLS; c++)
		if (channel[c].sent)
			run.lost++;
}

static void work(void)
{
	struct pollfd fds[MOST_SOCKETS];
	bool loop = !set.rate && !set.burst;
	unsigned at_once = set.burst ? set.burst : 1;
	uint64_t end, next, gap = set.burst ? BURST_NS : set.rate ? 1000000000ull / set.rate : 0;

	for (unsigned i = 0; i < set.peers; i++)
		fds[i] = (struct pollfd){.fd = run.fd[i], .events = POLLIN};
	run.begun = next = now_ns();
	run.counted_from = run.begun + set.warm_ms * 1000000ull;
	end = run.counted_from + set.seconds * 1000000000ull;
	for (;;) {
		uint64_t now = now_ns();
		struct timespec wait = {0, 1000000};

		if (now >= end && (!run.outstanding || now >= end + LOST_NS))
			break;
		receive();
		if (now < end && loop)
			while (run.outstanding < set.outstanding && idle_count)
				offer(now);
		/* Delayed calls are offered in a burst, to keep the requested rate. */
		for (; now < end && !loop && next <= now; next += gap)
			for (unsigned i = 0; i < at_once; i++)
				offer(now);
		if (now < end && !loop && next > now && next - now < 1000000)
			wait.tv_nsec = (long)(next - now);
		ppoll(fds, set.peers, &wait, NULL);
	}
	count_lost();
}

static int by_size(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static double quantile_ms(double part)
{
	unsigned at = (unsigned)(part * run.served);

	return run.served ? run.us[at < run.served ? at : run.served - 1] / 1000.0 : 0;
}

static int offer_calls(void)
{
	run.us = malloc(MOST_SAMPLES * sizeof(*run.us));
	if (!run.us)
		die("cannot allocate memory");
	run.epoch = 0x80000000u | (uint32_t)getpid() << 8;
	run.cid = (uint32_t)(now_ns() >> 8) & 0x3fff0000u;
	for (unsigned c = 0; c < MOST_CALLS; c++)
		idle[idle_count++] = MOST_CALLS - 1 - c;
	open_sockets();
	work();
	qsort(run.us, run.served, sizeof(*run.us), by_size);
	printf("{\"offered\": %u, \"served\": %u, \"refused\": %u, \"failed\": %u, \"lost\": %u, "
	       "\"unoffered\": %u, \"seconds\": %u, \"p50_ms\": %.3f, \"p99_ms\": %.3f, "
	       "\"max_ms\": %.3f}\n",
	       run.offered, run.served, run.refused, run.failed, run.lost, run.unoffered,
	       set.seconds, quantile_ms(0.5), quantile_ms(0.99), quantile_ms(1));
	return 0;
}

static bool set_config(char *text)
{
	char message[256], *value = strchr(text, '=');

	if (!value)
		return false;
	*value++ = '\0';
	if (!rxw_config_set(&set.config, text, value, message, sizeof(message)))
		return true;
	fprintf(stderr, "overload_load: %s\n", message);
	return false;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		unsigned *value, most;
	} known[] = {{"--port", &set.port, 65535}, {"--sleep-us", &set.sleep_us, 10000000},
		     {"--rate", &set.rate, 1000000}, {"--burst", &set.burst, MOST_CALLS},
		     {"--outstanding", &set.outstanding, MOST_CALLS},
		     {"--seconds", &set.seconds, 3600}, {"--peers", &set.peers, MOST_SOCKETS},
		     {"--warm-ms", &set.warm_ms, 60000}};

	rxw_config_init(&set.config, sizeof(set.config));
	set.config.listeners = 1;
	for (int i = 2; i + 1 < argc; i += 2) {
		bool found = !strcmp(argv[i], "--set") && set_config(argv[i + 1]);

		for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++)
			if (!strcmp(argv[i], known[k].name)) {
				unsigned long n = strtoul(argv[i + 1], NULL, 10);

				found = n <= known[k].most;
				*known[k].value = (unsigned)n;
			}
		if (!found)
			argc = 0;
	}
	if (argc >= 2 && argc % 2 == 0 && set.peers && !strcmp(argv[1], "server"))
		return serve_calls();
	if (argc >= 2 && argc % 2 == 0 && set.peers && !strcmp(argv[1], "client"))
		return offer_calls();
	fprintf(stderr, "usage: overload_load server|client [--port N] [--sleep-us N]\n"
			"  [--set NAME=VALUE] [--burst N] [--rate N] [--outstanding N]\n"
			"  [--seconds N] [--peers N] [--warm-ms N]\n");
	return 2;
}
