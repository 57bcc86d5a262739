/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of latencies: threads and sets do not mix their values. */
#include <pthread.h>

#include "tests/tools/testing.h"

#include "rxperf/runner.h"

#define SETS    9 /* more than a thread remembers */
#define THREADS 8
#define ROUNDS  1000

static struct perf_latencies sets[SETS];
static struct tools_histogram sum;

/* Value 1 + s goes to set s. */
static void *add(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < ROUNDS; i++)
		for (unsigned s = 0; s < SETS; s++)
			perf_latencies_add(&sets[s], 1 + s);
	return NULL;
}

START_TEST(threads_and_sets)
{
	pthread_t thread[THREADS];

	for (unsigned s = 0; s < SETS; s++)
		perf_latencies_init(&sets[s]);
	for (unsigned i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, add, NULL), 0);
	add(NULL);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	for (unsigned s = 0; s < SETS; s++) {
		tools_histogram_init(&sum);
		perf_latencies_merge(&sets[s], &sum);
		ck_assert_uint_eq(sum.count, (THREADS + 1) * ROUNDS);
		ck_assert_uint_eq(sum.min, 1 + s);
		ck_assert_uint_eq(sum.max, 1 + s);
		perf_latencies_free(&sets[s]);
	}
}
END_TEST

/* A set in the place of another one has none of its values, and does not write to its memory. */
START_TEST(used_again)
{
	for (unsigned i = 0; i < 2 * SETS; i++) {
		perf_latencies_init(&sets[0]);
		perf_latencies_add(&sets[0], i);
		tools_histogram_init(&sum);
		perf_latencies_merge(&sets[0], &sum);
		ck_assert_uint_eq(sum.count, 1);
		ck_assert_uint_eq(sum.max, i);
		perf_latencies_free(&sets[0]);
	}
}
END_TEST

TEST_MAIN("latency", threads_and_sets, used_again)
