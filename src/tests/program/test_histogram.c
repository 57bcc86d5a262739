/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of common/histogram.c: quantiles against sorted values, ends of the range, merging. */

#include "tests/tools/testing.h"

#include "program/histogram.h"

static struct tools_histogram h, g; /* 30 KB each: not for the stack */

static uint64_t next(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state ^ *state >> 29;
}

START_TEST(empty)
{
	tools_histogram_init(&h);
	ck_assert_uint_eq(tools_histogram_quantile(&h, 0.5), 0);
	ck_assert(tools_histogram_mean(&h) == 0);
}
END_TEST

START_TEST(ends)
{
	tools_histogram_init(&h);
	tools_histogram_add(&h, 0);
	tools_histogram_add(&h, UINT64_MAX);
	ck_assert_uint_eq(tools_histogram_quantile(&h, 0), 0);
	ck_assert_uint_eq(tools_histogram_quantile(&h, 0.5), 0);
	ck_assert(tools_histogram_quantile(&h, 1) == UINT64_MAX);
	ck_assert_uint_eq(h.min, 0);
	ck_assert(h.max == UINT64_MAX);
}
END_TEST

/* Every power of two and its neighbours is returned within 1/64, never too small. */
START_TEST(resolution)
{
	for (unsigned bit = 0; bit < 64; bit++)
		for (int off = -1; off <= 1; off++) {
			uint64_t v = ((uint64_t)1 << bit) + (uint64_t)(int64_t)off, q;

			tools_histogram_init(&h);
			tools_histogram_add(&h, v);
			tools_histogram_add(&h, UINT64_MAX);
			q = tools_histogram_quantile(&h, 0.5);
			ck_assert_msg(q >= v && q - v <= v / 64, "%llu gave %llu",
				      (unsigned long long)v, (unsigned long long)q);
		}
}
END_TEST

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

START_TEST(quantiles)
{
	static uint64_t values[20000];
	static const double shares[] = { 0.001, 0.1, 0.5, 0.9, 0.99, 0.999, 1 };
	size_t n = sizeof(values) / sizeof(values[0]);
	uint64_t state = 12345;

	tools_histogram_init(&h);
	for (size_t i = 0; i < n; i++) {
		/* Spread over many powers of two, as latencies are. */
		values[i] = next(&state) >> (20 + next(&state) % 40);
		tools_histogram_add(&h, values[i]);
	}
	qsort(values, n, sizeof(values[0]), by_value);
	for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
		size_t rank = (size_t)(shares[i] * (double)n + 0.9999);
		uint64_t want = values[rank - 1], got = tools_histogram_quantile(&h, shares[i]);

		ck_assert_msg(got >= want && got - want <= want / 64 + 1, "%g: %llu, not %llu",
			      shares[i], (unsigned long long)got, (unsigned long long)want);
	}
	ck_assert_uint_eq(h.max, values[n - 1]);
	ck_assert_uint_eq(h.min, values[0]);
}
END_TEST

START_TEST(merge)
{
	tools_histogram_init(&h);
	tools_histogram_init(&g);
	for (uint64_t i = 1; i <= 100; i++)
		tools_histogram_add(i % 2 ? &h : &g, i);
	tools_histogram_merge(&h, &g);
	ck_assert_uint_eq(h.count, 100);
	ck_assert_uint_eq(h.min, 1);
	ck_assert_uint_eq(h.max, 100);
	ck_assert(tools_histogram_mean(&h) == 50.5);
	ck_assert_uint_eq(tools_histogram_quantile(&h, 0.5), 50);
	/* Merging nothing changes nothing. */
	tools_histogram_init(&g);
	tools_histogram_merge(&h, &g);
	ck_assert_uint_eq(h.min, 1);
	ck_assert_uint_eq(h.count, 100);
}
END_TEST

TEST_MAIN("histogram", empty, ends, resolution, quantiles, merge)
