/* SPDX-License-Identifier: BSD-2-Clause */
/* System services: the clock, condition variables, threads and log lines. */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "common/cancel.h"
#include "common/clock.h"
#include "common/held.h"
#include "common/sigmask.h"
#include "engine/objects.h"

#define COLD	  __attribute__((cold))
#define CPU_LIMIT 8192u /* numbers of CPUs in a list are smaller */

uint64_t rxw_now(void)
{
	return monotonic_ns();
}

/* The cached time of this thread; 0: none is cached. */
static _Thread_local uint64_t cached_time __attribute__((tls_model("initial-exec")));

uint64_t rxw_clock_cache_set(uint64_t now)
{
	uint64_t before = cached_time;

	cached_time = now;
	return before;
}

uint64_t rxw_clock_cached(void)
{
	return cached_time ? cached_time : rxw_now();
}

long rxw_preemptions(void)
{
#ifdef RUSAGE_THREAD
	struct rusage u;

	if (getrusage(RUSAGE_THREAD, &u) == 0)
		return u.ru_nivcsw;
#endif
	return 0;
}

/*
 * The default timer slack of a thread may exceed the sleep itself. An application's thread gets its
 * own value back; a library thread keeps the smaller one.
 */
void rxw_sleep_us(unsigned us)
{
	struct timespec t = {.tv_nsec = (long)us * 1000};
	NOT_CANCELLED;
#ifdef PR_SET_TIMERSLACK
	static _Thread_local bool exact __attribute__((tls_model("initial-exec")));
	int slack = exact ? 0 : prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);

	if (slack > 1)
		(void)prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
#endif
	clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
#ifdef PR_SET_TIMERSLACK
	if (rxw_on_library_thread(NULL))
		exact = true;
	else if (slack > 1)
		(void)prctl(PR_SET_TIMERSLACK, (unsigned long)slack, 0, 0, 0);
#endif
}

void rxw_mutex_init(pthread_mutex_t *m)
{
#ifdef __GLIBC__
	pthread_mutexattr_t attr;

	if (!pthread_mutexattr_init(&attr)) {
		pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP);
		pthread_mutex_init(m, &attr);
		pthread_mutexattr_destroy(&attr);
		return;
	}
#endif
	pthread_mutex_init(m, NULL);
}

bool rxw_is_locked(const pthread_mutex_t *m)
{
	return mutex_is_held((pthread_mutex_t *)(uintptr_t)m);
}

int rxw_cond_init(pthread_cond_t *c)
{
	return monotonic_cond_init(c) ? -RXW_ENOMEM : 0;
}

void rxw_cond_wait_until(pthread_cond_t *c, pthread_mutex_t *m, uint64_t at)
{
	NOT_CANCELLED;

	assert(rxw_is_locked(m));
	if (at == UINT64_MAX)
		pthread_cond_wait(c, m);
	else
		monotonic_wait(c, m, at);
}

/*
 * Thread-local marks: the endpoint that this library thread serves, and the shard whose receive
 * role it holds. No object has to be consulted.
 */
static _Thread_local const struct rxw_endpoint *library_thread
	__attribute__((tls_model("initial-exec")));
static _Thread_local struct rxw_shard *receiving __attribute__((tls_model("initial-exec")));

bool rxw_on_library_thread(const struct rxw_endpoint *ep)
{
	return ep ? library_thread == ep : library_thread != NULL;
}

void rxw_set_library_thread(const struct rxw_endpoint *ep)
{
	library_thread = ep;
}

struct rxw_shard *rxw_receiving(void)
{
	return receiving;
}

void rxw_set_receiving(struct rxw_shard *s)
{
	receiving = s;
}

/* Parses the number of a CPU and advances *text. */
COLD static bool parse_cpu_number(const char **text, unsigned *cpu)
{
	const char *t = *text;

	for (*cpu = 0; *t >= '0' && *t <= '9' && *cpu < CPU_LIMIT; t++)
		*cpu = *cpu * 10 + (unsigned)(*t - '0');
	if (t == *text || *cpu >= CPU_LIMIT)
		return false;
	*text = t;
	return true;
}

COLD int rxw_cpu_list(const char *list, int cpus[CPU_SETSIZE])
{
	unsigned low, high;
	int count = 0;

	do {
		if (!parse_cpu_number(&list, &low))
			return -1;
		high = low;
		if (*list == '-' && (list++, !parse_cpu_number(&list, &high) || high < low))
			return -1;
		for (; low <= high && low < CPU_SETSIZE && count < CPU_SETSIZE; low++)
			cpus[count++] = (int)low;
	} while (*list++ == ',');
	return list[-1] ? -1 : count;
}

/* The CPU of a thread by a list of them. False: the list names none. */
COLD static bool find_listed(const struct rxw_config *config, unsigned number, cpu_set_t *set)
{
	int cpus[CPU_SETSIZE];
	int count = rxw_cpu_list(config->affinity, cpus);

	CPU_ZERO(set);
	if (count > 0)
		CPU_SET((size_t)cpus[number % (unsigned)count], set);
	return count > 0;
}

/* Where a thread is placed. False: nowhere, it has the CPUs of the thread that creates it. */
COLD static bool find_thread_place(const struct rxw_endpoint *ep, unsigned ordinal, cpu_set_t *set)
{
	unsigned number = ordinal & ~RXW_OF_SHARD;

	if (!ep->threads.placed)
		return find_listed(&ep->settings.config, number, set);
	CPU_ZERO(set);
	/* The thread that creates this one may be on a CPU of its own. */
	if (ordinal == number)
		*set = ep->threads.allowed;
	else
		CPU_SET(ep->threads.cpu[number], set);
	return true;
}

/* Placement of shards: one processor of its own for each, spread over the nodes of memory. */
#define NODES_MOST 256u /* those with higher numbers count as node 0 */

/* The node of each processor. */
static COLD void read_nodes(const char *sys, uint8_t node[CPU_SETSIZE])
{
	int cpus[CPU_SETSIZE];
	char text[1024];

	memset(node, 0, CPU_SETSIZE);
	for (unsigned n = 1; n < NODES_MOST; n++) {
		ssize_t length;
		int fd;

		snprintf(text, sizeof(text), "%s/devices/system/node/node%u/cpulist", sys, n);
		fd = open(text, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		length = read(fd, text, sizeof(text) - 1);
		close(fd);
		text[length > 0 ? length : 0] = '\0';
		text[strcspn(text, "\n")] = '\0';
		for (int count = rxw_cpu_list(text, cpus); count > 0; count--)
			node[cpus[count - 1]] = (uint8_t)n;
	}
}

COLD void rxw_place(const char *sys, const cpu_set_t *allowed, unsigned count, uint16_t *cpu)
{
	uint8_t node[CPU_SETSIZE], used[CPU_SETSIZE] = {0}, used_in[NODES_MOST] = {0};

	assert(CPU_COUNT(allowed) > 0);
	read_nodes(sys, node);
	for (unsigned i = 0; i < count; i++) {
		unsigned least = UINT32_MAX;

		for (unsigned c = 0; c < CPU_SETSIZE; c++) {
			unsigned uses = (unsigned)used[c] << 8 | used_in[node[c]];

			if (CPU_ISSET(c, allowed) && uses < least) {
				least = uses;
				cpu[i] = (uint16_t)c;
			}
		}
		used[cpu[i]]++;
		used_in[node[cpu[i]]]++;
	}
}

COLD bool rxw_place_has_queues(const char *sys, unsigned count)
{
	char pattern[256];
	glob_t found = {0};
	bool any;

	/* Only cards have a device. */
	snprintf(pattern, sizeof(pattern), "%s/class/net/*/device/net/*/queues/rx-%u", sys,
		 count - 1);
	any = glob(pattern, GLOB_NOSORT, NULL, &found) == 0;
	globfree(&found);
	return any;
}

struct start {
	void *(*run)(void *);
	void *arg;
	bool placed;
	cpu_set_t cpus;
	char name[16];
};

static void *begin_thread(void *arg)
{
	struct start *start = arg;
	void *result;

	pthread_setname_np(pthread_self(), start->name);
	/* Nobody cancels it. Otherwise each function of the library would change the state twice. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	/* A CPU that this machine lacks is no error: the thread runs anywhere. */
	if (start->placed)
		pthread_setaffinity_np(pthread_self(), sizeof(start->cpus), &start->cpus);
	/*
	 * Freed last, also by a handler's pthread_exit(): malloc() assigns an arena to a thread at its
	 * first call. When threads called free() before they had work, a server with 100 senders had
	 * 240 MB resident instead of 160.
	 */
	pthread_cleanup_push(free, start);
	result = start->run(start->arg);
	pthread_cleanup_pop(1);
	return result;
}

/*
 * Only the new thread sets its name and CPU: it may have ended, and been joined, before
 * pthread_create() returns. Takes over `start`, which may be NULL.
 */
static int start_library_thread(pthread_t *t, struct start *start, const char *name,
				void *(*run)(void *), void *arg)
{
	sigset_t before;
	int r;

	if (start == NULL)
		return -RXW_ENOMEM;
	start->run = run;
	start->arg = arg;
	snprintf(start->name, sizeof(start->name), "%s", name);
	block_foreign_signals(&before);
	r = pthread_create(t, NULL, begin_thread, start);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r) {
		free(start);
		errno = r;
		return -RXW_ESYS;
	}
	return 0;
}

int rxw_thread_create(pthread_t *t, const struct rxw_endpoint *ep, unsigned ordinal,
		      const char *name, void *(*run)(void *), void *arg)
{
	struct start *start = malloc(sizeof(*start));

	if (start != NULL)
		start->placed = find_thread_place(ep, ordinal, &start->cpus);
	return start_library_thread(t, start, name, run, arg);
}

int rxw_engine_thread_create(pthread_t *t, const struct rxw_engine *e,
			     const struct rxw_config *config, unsigned ordinal, const char *name,
			     void *(*run)(void *), void *arg)
{
	struct start *start = malloc(sizeof(*start));

	if (start != NULL) {
		start->placed = find_listed(config, ordinal, &start->cpus);
		/* The thread that creates this one may be on a CPU of its own. */
		if (!start->placed && !strcmp(config->affinity, "auto")) {
			start->cpus = e->allowed;
			start->placed = true;
		}
	}
	return start_library_thread(t, start, name, run, arg);
}

void rxw_log(const struct rxw_engine *e, enum rxw_log_level level, const char *format, ...)
{
	char line[512];
	va_list ap;
	NOT_CANCELLED;

	if (!e->config.log ||
	    level > atomic_load_explicit(&e->log_level, memory_order_relaxed))
		return;
	va_start(ap, format);
	vsnprintf(line, sizeof(line), format, ap);
	va_end(ap);
	e->config.log(e->config.log_arg, level, line);
}

void rxw_log_exit(void *arg)
{
	const struct rxw_called *called = arg;

	rxw_log(called->engine, RXW_LOG_ERROR,
		"a %s of service %u ended its thread by pthread_exit() or pthread_cancel(): let it "
		"return, since the endpoint may now wait for it for ever",
		called->what, called->service);
}
