/* SPDX-License-Identifier: BSD-2-Clause */
/* Services of the system for the engine: clock, condition variables, threads, log lines. */
#ifndef RXW_ENGINE_SYS_H
#define RXW_ENGINE_SYS_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rxwire/config.h>

struct rxw_engine;
struct rxw_endpoint;
struct rxw_shard;

/* Monotonic time in nanoseconds. */
uint64_t rxw_now(void);
/*
 * Steps of one thread that follow each other within microseconds share one reading of the clock.
 * rxw_clock_cached() returns the cached time, or reads the clock if none is cached.
 * rxw_clock_cache_set() sets it (0: none) and returns the previous value, to be restored.
 */
uint64_t rxw_clock_cache_set(uint64_t now);
uint64_t rxw_clock_cached(void);
/* How often the scheduler preempted this thread; 0 if unknown. */
long rxw_preemptions(void);
/* Sleep for `us` microseconds, without the default timer slack of 50 microseconds. */
void rxw_sleep_us(unsigned us);

/*
 * A lock that many threads take for a moment each: a waiter spins briefly, where the C library can.
 */
void rxw_mutex_init(pthread_mutex_t *m);
/* For assertions: some thread holds the lock. */
bool rxw_is_locked(const pthread_mutex_t *m);
/* A condition variable on the monotonic clock. 0 or -RXW_ENOMEM. */
int rxw_cond_init(pthread_cond_t *c);
/* With the lock: wait until `at` (ns; UINT64_MAX: without limit). */
void rxw_cond_wait_until(pthread_cond_t *c, pthread_mutex_t *m, uint64_t at);

#define RXW_MAX_SHARDS 64

/* Of an endpoint: where its threads run. */
struct rxw_ep_threads {
	bool placed; /* `affinity` is auto: the processors of the shards' threads; fixed, as the next */
	uint16_t cpu[RXW_MAX_SHARDS];
	cpu_set_t allowed; /* processors of the other threads */
	/*
	 * Set once a thread that cannot run callbacks has left one to a listener. From then on
	 * listeners sleep where they can be interrupted.
	 */
	_Atomic(bool) callbacks_left;
};

/*
 * The CPUs of a list such as "0-3,8", in its order: numbers and rising ranges. Returns how many of them have a place in
 * a set, or -1 for anything else, also "auto".
 */
int rxw_cpu_list(const char *list, int cpus[CPU_SETSIZE]);
/*
 * A processor for each of `count` shards, of those in `allowed`: each one once before any is used twice,
 * spread over the NUMA nodes, the lowest number first. `sys`: "/sys", or a copy.
 */
void rxw_place(const char *sys, const cpu_set_t *allowed, unsigned count, uint16_t *cpu);
/* A network card has `count` receive queues or more. */
bool rxw_place_has_queues(const char *sys, unsigned count);
/*
 * A library thread: signals are blocked, except those that it causes itself; it names itself, and
 * places itself by the configured affinity. With "auto", a thread of a shard has its CPU, with RXW_OF_SHARD + index as
 * `ordinal`, and the others may use all. It may have ended when this returns. 0, -RXW_ENOMEM, -RXW_ESYS.
 */
#define RXW_OF_SHARD (1u << 31)
int rxw_thread_create(pthread_t *t, const struct rxw_endpoint *ep, unsigned ordinal,
		      const char *name, void *(*run)(void *), void *arg);
/* The same for a thread of an engine, which is no shard's: with "auto" it may use all CPUs that the engine may. */
int rxw_engine_thread_create(pthread_t *t, const struct rxw_engine *e,
			     const struct rxw_config *config, unsigned ordinal, const char *name,
			     void *(*run)(void *), void *arg);
/*
 * For pthread_cleanup_push() around a function of the application that may not end its thread, since
 * others may wait for it for ever. Logs it. `arg`: a struct rxw_called.
 */
struct rxw_called {
	const struct rxw_engine *engine;
	const char *what; /* "handler" */
	unsigned service; /* its id */
};
void rxw_log_exit(void *arg);
void rxw_log(const struct rxw_engine *e, enum rxw_log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Does this thread run library code of the endpoint (NULL: of any)? */
bool rxw_on_library_thread(const struct rxw_endpoint *ep);
void rxw_set_library_thread(const struct rxw_endpoint *ep);
/* The shard whose receive role this thread holds, or NULL. */
struct rxw_shard *rxw_receiving(void);
void rxw_set_receiving(struct rxw_shard *s);

#endif
