/* SPDX-License-Identifier: BSD-2-Clause */
/* Clocks in nanoseconds, and waiting until a time of the monotonic one. */
#ifndef COMMON_CLOCK_H
#define COMMON_CLOCK_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

#define NS_PER_S  1000000000
#define NS_PER_MS 1000000

static inline int64_t read_clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

/* Nanoseconds since an unspecified time before the program's start. */
static inline uint64_t monotonic_ns(void)
{
	return (uint64_t)read_clock_ns(CLOCK_MONOTONIC);
}

/* Nanoseconds since 1970. */
static inline int64_t wall_ns(void)
{
	return read_clock_ns(CLOCK_REALTIME);
}

/* For monotonic_wait(). 0 or an error number. */
static inline int monotonic_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;
	int error = pthread_condattr_init(&attr);

	if (error)
		return error;
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	error = pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
	return error;
}

/* Wait until a time of monotonic_ns(). The result is that of pthread_cond_timedwait(). */
static inline int monotonic_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t until)
{
	struct timespec t = {.tv_sec = (time_t)(until / NS_PER_S),
			     .tv_nsec = (long)(until % NS_PER_S)};

	return pthread_cond_timedwait(cond, mutex, &t);
}

#endif
