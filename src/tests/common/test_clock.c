/* SPDX-License-Identifier: BSD-2-Clause */
/* Clocks: their units, and the clock of condition variables. */
#include <errno.h>

#include "common/clock.h"
#include "tests/main.h"

START_TEST(units)
{
	struct timespec before, after;
	uint64_t monotonic;
	int64_t wall;

	clock_gettime(CLOCK_MONOTONIC, &before);
	monotonic = monotonic_ns();
	clock_gettime(CLOCK_MONOTONIC, &after);
	ck_assert_uint_ge(monotonic,
			  (uint64_t)before.tv_sec * 1000000000u + (uint64_t)before.tv_nsec);
	ck_assert_uint_le(monotonic,
			  (uint64_t)after.tv_sec * 1000000000u + (uint64_t)after.tv_nsec);
	/* The wall clock may be set meanwhile: compare it with an hour to spare. */
	wall = (int64_t)time(NULL);
	ck_assert_int_lt(llabs(wall_ns() / 1000000000 - wall), 3600);
}
END_TEST

/* A time that has passed ends the wait, and not before. */
START_TEST(waits)
{
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t cond;
	uint64_t until = monotonic_ns() + 2 * NS_PER_MS;
	int result = 0;

	ck_assert_int_eq(monotonic_cond_init(&cond), 0);
	pthread_mutex_lock(&mutex);
	while (result == 0)
		result = monotonic_wait(&cond, &mutex, until);
	ck_assert_int_eq(result, ETIMEDOUT);
	ck_assert_uint_ge(monotonic_ns(), until);
	ck_assert_int_eq(monotonic_wait(&cond, &mutex, 0), ETIMEDOUT);
	pthread_mutex_unlock(&mutex);
	pthread_cond_destroy(&cond);
}
END_TEST

TEST_MAIN("clock", units, waits)
