/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of the open loop: send times of an open loop. */
#include <math.h>

#include "tests/tools/testing.h"

#include "rxperf/perf.h"

#define MANY 100000

START_TEST(even)
{
	struct perf_arrivals a;

	perf_arrivals_init(&a, PERF_ARRIVALS_EVEN, 3, 1000);
	ck_assert_uint_eq(a.next_ns, 1000);
	perf_arrivals_pass(&a);
	ck_assert_uint_eq(a.next_ns, 1000 + 333333333);
	/* Errors do not accumulate: after full seconds the time is exact. */
	for (unsigned i = 1; i < 3 * 1000; i++)
		perf_arrivals_pass(&a);
	ck_assert_uint_eq(a.count, 3000);
	ck_assert_uint_eq(a.next_ns, 1000 + 1000000000000);
	/* More calls than clock ticks: several at one time, none earlier than the last. */
	perf_arrivals_init(&a, PERF_ARRIVALS_EVEN, 4e9, 0);
	for (unsigned i = 0; i < 8; i++) {
		ck_assert_uint_eq(a.next_ns, i / 4);
		perf_arrivals_pass(&a);
	}
}
END_TEST

START_TEST(poisson)
{
	struct perf_arrivals a, b;
	double mean = 0, square = 0;
	uint64_t last = 5, above = 0;

	perf_arrivals_init(&a, PERF_ARRIVALS_POISSON, 1e6, 5);
	b = a;
	for (unsigned i = 0; i < MANY; i++) {
		double gap;

		ck_assert_uint_ge(a.next_ns, last);
		gap = (double)(a.next_ns - last);
		mean += gap / MANY;
		square += gap * gap / MANY;
		above += gap > 1000;
		last = a.next_ns;
		perf_arrivals_pass(&a);
	}
	/* Exponential gaps: the deviation equals the mean, and 1/e of them exceed it. */
	ck_assert_double_lt(fabs(mean - 1000), 20);
	ck_assert_double_lt(fabs(sqrt(square - mean * mean) - 1000), 30);
	ck_assert_double_lt(fabs((double)above / MANY - exp(-1)), 0.01);
	/* The same load again. */
	for (unsigned i = 0; i < MANY; i++)
		perf_arrivals_pass(&b);
	ck_assert_uint_eq(a.next_ns, b.next_ns);
	perf_arrivals_init(&b, PERF_ARRIVALS_POISSON, 1e6, 5);
	for (unsigned i = 0; i < MANY; i++)
		perf_arrivals_pass(&b);
	ck_assert_uint_eq(a.next_ns, b.next_ns);
}
END_TEST

TEST_MAIN("arrivals", even, poisson)
