/* SPDX-License-Identifier: BSD-2-Clause */
/* The state of the machine during a benchmark: latency between two cores, cost of a wake-up. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define SPINS 100000u
#define WAKES 2000u

/*
 * Ping-pong between two threads: through a shared word, then through two descriptors with a wait.
 */
struct game {
	int cpu[2];
	int fd[2];
	_Alignas(64) _Atomic(uint32_t) turn;
	_Atomic(int) ready;
};

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((unsigned)cpu, &set);
	(void)pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double cpu_time(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Waits for the other thread. With a single core it must yield. */
static void spin_until(struct game *g, uint32_t turn)
{
	while (atomic_load_explicit(&g->turn, memory_order_acquire) != turn)
		if (g->cpu[0] == g->cpu[1])
			sched_yield();
}

static void take(int fd)
{
	uint64_t one;

	if (read(fd, &one, sizeof(one)) != sizeof(one))
		abort();
}

static void give(int fd)
{
	uint64_t one = 1;

	if (write(fd, &one, sizeof(one)) != sizeof(one))
		abort();
}

static void *other(void *arg)
{
	struct game *g = arg;

	pin(g->cpu[1]);
	atomic_store(&g->ready, 1);
	for (uint32_t i = 0; i < SPINS; i++) {
		spin_until(g, 2 * i + 1);
		atomic_store_explicit(&g->turn, 2 * i + 2, memory_order_release);
	}
	for (uint32_t i = 0; i < WAKES; i++) {
		take(g->fd[1]);
		give(g->fd[0]);
	}
	return NULL;
}

int main(void)
{
	struct game g = { .cpu = { -1, -1 } };
	double start, cpu, spin, wake;
	pthread_t thread;
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) < 0) {
		fprintf(stderr, "ping: cannot get the CPUs of this process: %s\n", strerror(errno));
		return 1;
	}
	for (int i = 0, n = 0; i < CPU_SETSIZE && n < 2; i++)
		if (CPU_ISSET((unsigned)i, &set))
			g.cpu[n++] = i;
	if (g.cpu[1] < 0)
		g.cpu[1] = g.cpu[0];
	g.fd[0] = eventfd(0, EFD_CLOEXEC);
	g.fd[1] = eventfd(0, EFD_CLOEXEC);
	if (g.fd[0] < 0 || g.fd[1] < 0 || pthread_create(&thread, NULL, other, &g)) {
		fprintf(stderr, "ping: cannot create a descriptor or thread: %s\n", strerror(errno));
		return 1;
	}
	pin(g.cpu[0]);
	while (!atomic_load(&g.ready))
		sched_yield();
	start = now();
	for (uint32_t i = 0; i < SPINS; i++) {
		atomic_store_explicit(&g.turn, 2 * i + 1, memory_order_release);
		spin_until(&g, 2 * i + 2);
	}
	spin = (now() - start) / SPINS;
	start = now();
	cpu = cpu_time();
	for (uint32_t i = 0; i < WAKES; i++) {
		give(g.fd[1]);
		take(g.fd[0]);
	}
	wake = (now() - start) / WAKES;
	cpu = (cpu_time() - cpu) / WAKES;
	pthread_join(thread, NULL);
	/* A round trip consists of two transfers and two wake-ups. */
	printf("{\"program\":\"ping\",\"cpus\":[%d,%d],\"core_to_core_ns\":%.0f,\"wake_us\":%.2f,"
	       "\"wake_cpu_us\":%.2f}\n",
	       g.cpu[0], g.cpu[1], spin / 2 * 1e9, wake / 2 * 1e6, cpu / 2 * 1e6);
	return 0;
}
