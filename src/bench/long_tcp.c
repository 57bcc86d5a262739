/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bulk transfers by the kernel's TCP, with a congestion control by name: what src/bench/long compares with.
 * The server sends as many bytes as it is asked for, and says at the end what it sent again.
 */
#include <errno.h>
#include <inttypes.h>
#include <linux/tcp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CHUNK (256u << 10)
#define FLOWS 64u

/* A client's request. Both ends run on one machine, so it has the byte order of that. */
struct request {
	char congestion[16];
	uint64_t bytes; /* 0: until the client closes the connection */
};

static _Noreturn void fail(const char *what)
{
	fprintf(stderr, "long_tcp: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double seconds_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int open_socket(const char *host, const char *port, bool listening)
{
	struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
				 .ai_socktype = SOCK_STREAM};
	struct addrinfo *a;
	int fd, error = getaddrinfo(host, port, &hints, &a);

	if (error != 0) {
		fprintf(stderr, "long_tcp: %s: %s\n", host, gai_strerror(error));
		exit(1);
	}
	fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || (listening ? bind(fd, a->ai_addr, a->ai_addrlen) < 0 || listen(fd, FLOWS) < 0
				 : connect(fd, a->ai_addr, a->ai_addrlen) < 0))
		fail(host);
	freeaddrinfo(a);
	return fd;
}

/* --- server --- */

static atomic_uint_least64_t retransmitted, segments;

static bool send_bytes(int fd, const uint8_t *bytes, uint64_t count)
{
	while (count != 0) {
		ssize_t n = send(fd, bytes, count < CHUNK ? count : CHUNK, MSG_NOSIGNAL);

		if (n <= 0)
			return false;
		count -= (uint64_t)n;
	}
	return true;
}

static void *serve(void *arg)
{
	int fd = (int)(intptr_t)arg;
	uint8_t *bytes = calloc(1, CHUNK);
	struct tcp_info info;
	socklen_t size = sizeof(info);
	struct request r;

	if (bytes == NULL)
		fail("memory");
	while (recv(fd, &r, sizeof(r), MSG_WAITALL) == sizeof(r)) {
		r.congestion[sizeof(r.congestion) - 1] = 0;
		if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, r.congestion,
			       strlen(r.congestion)) < 0)
			fail(r.congestion);
		if (!send_bytes(fd, bytes, r.bytes != 0 ? r.bytes : UINT64_MAX))
			break;
	}
	memset(&info, 0, sizeof(info));
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0) {
		atomic_fetch_add(&retransmitted, info.tcpi_total_retrans);
		atomic_fetch_add(&segments, info.tcpi_data_segs_out);
	}
	close(fd);
	free(bytes);
	return NULL;
}

static void *accept_all(void *arg)
{
	int listening = (int)(intptr_t)arg;

	for (;;) {
		int fd = accept(listening, NULL, NULL);
		pthread_t thread;

		if (fd < 0 || pthread_create(&thread, NULL, serve, (void *)(intptr_t)fd) != 0)
			fail("accept");
		pthread_detach(thread);
	}
	return NULL;
}

static int server(const char *host, const char *port)
{
	pthread_t thread;
	sigset_t ends;
	int sig, fd = open_socket(host, port, true);

	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &ends, NULL);
	if (pthread_create(&thread, NULL, accept_all, (void *)(intptr_t)fd) != 0)
		fail("thread");
	puts("ready");
	fflush(stdout);
	sigwait(&ends, &sig);
	printf("{\"retransmitted\": %" PRIu64 ", \"segments\": %" PRIu64 "}\n",
	       atomic_load(&retransmitted), atomic_load(&segments));
	fflush(stdout);
	_exit(0);
}

/* --- client --- */

/* By the thread of the flow alone until it is joined. */
struct flow {
	int fd;
	uint64_t bytes;
	double until;
	pthread_t thread;
};

static void ask(int fd, const char *congestion, uint64_t bytes)
{
	struct request r = {.bytes = bytes};

	if (strlen(congestion) >= sizeof(r.congestion)) {
		errno = EINVAL;
		fail(congestion);
	}
	memcpy(r.congestion, congestion, strlen(congestion));
	if (send(fd, &r, sizeof(r), MSG_NOSIGNAL) != sizeof(r))
		fail("send");
}

/* Receives until all bytes or the end of the time have come. Returns the bytes. */
static uint64_t receive(int fd, uint64_t most, double until)
{
	static _Thread_local uint8_t bytes[CHUNK];
	uint64_t got = 0;

	while (got < most && (until == 0 || seconds_now() < until)) {
		ssize_t n = recv(fd, bytes, most - got < CHUNK ? most - got : CHUNK, 0);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (n <= 0)
			fail("receive");
		got += (uint64_t)n;
	}
	return got;
}

static void *run_flow(void *arg)
{
	struct flow *f = arg;

	f->bytes = receive(f->fd, UINT64_MAX, f->until);
	return NULL;
}

/* Flows side by side for some time: their bytes, as they arrived. */
static int run_flows(char **words, const char *congestion)
{
	static struct flow flow[FLOWS];
	unsigned count = (unsigned)atoi(words[0]);
	double began, took, seconds = atof(words[1]);
	struct timeval patience = {0, 50000};

	if (count == 0 || count > FLOWS || !(seconds > 0)) {
		fprintf(stderr, "long_tcp: 1 to %u flows, and some seconds\n", FLOWS);
		return 2;
	}
	for (unsigned i = 0; i < count; i++) {
		flow[i].fd = open_socket(words[-3], words[-2], false);
		setsockopt(flow[i].fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	}
	began = seconds_now();
	for (unsigned i = 0; i < count; i++) {
		ask(flow[i].fd, congestion, 0);
		flow[i].until = began + seconds;
		if (pthread_create(&flow[i].thread, NULL, run_flow, &flow[i]) != 0)
			fail("thread");
	}
	for (unsigned i = 0; i < count; i++)
		pthread_join(flow[i].thread, NULL);
	took = seconds_now() - began;
	printf("{\"seconds\": %.6f, \"flow_bytes\": [", took);
	for (unsigned i = 0; i < count; i++)
		printf("%s%" PRIu64, i == 0 ? "" : ", ", flow[i].bytes);
	printf("]}\n");
	return 0;
}

/* One after the other over one connection: the time of each, the first with the connection's start. */
static int run_calls(char **words, const char *congestion)
{
	uint64_t bytes = strtoull(words[0], NULL, 10);
	unsigned count = (unsigned)atoi(words[1]);
	double began = seconds_now(), end;
	int fd = open_socket(words[-3], words[-2], false);

	printf("{\"call_seconds\": [");
	for (unsigned i = 0; i < count; i++) {
		ask(fd, congestion, bytes);
		receive(fd, bytes, 0);
		end = seconds_now();
		printf("%s%.6f", i == 0 ? "" : ", ", end - began);
		began = end;
	}
	printf("]}\n");
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "server") == 0)
		return server(argv[2], argv[3]);
	if (argc == 7 && strcmp(argv[1], "flows") == 0)
		return run_flows(argv + 5, argv[4]);
	if (argc == 7 && strcmp(argv[1], "calls") == 0)
		return run_calls(argv + 5, argv[4]);
	fprintf(stderr, "usage: long_tcp server ADDRESS PORT\n"
			"       long_tcp flows ADDRESS PORT CONGESTION FLOWS SECONDS\n"
			"       long_tcp calls ADDRESS PORT CONGESTION BYTES CALLS\n");
	return 2;
}
