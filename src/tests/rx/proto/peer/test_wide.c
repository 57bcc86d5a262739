/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory of wide windows: parts of peers and calls, and what happens when it is short. */
#include "tests/rx/proto/bench.h"

#define MIB ((int64_t)1 << 20)

static struct rxw_budget all;

static void setup(void)
{
	rxw_budget_init(&all, 64 * MIB);
}

static int64_t used(const struct rxw_wide *w)
{
	return atomic_load(&w->used);
}

/* The peers together have as much as the budget has lent. */
static void check_sum(const struct rxw_wide *w, unsigned peers)
{
	int64_t sum = 0;

	for (unsigned i = 0; i < peers; i++)
		sum += used(&w[i]);
	ck_assert_int_eq(sum, atomic_load(&all.used));
	ck_assert_int_le(sum, all.limit);
}

/* One call after another grows by steps until it gets no more. Returns what it has. */
static int64_t grow(struct rxw_wide *w, int64_t have, int64_t most)
{
	for (int64_t more = MIB / 4; have < most;) {
		int64_t now = rxw_wide_grant(w, have, have + more);

		ck_assert_int_ge(now, have);
		ck_assert_int_le(now, have + more);
		if (now == have)
			break;
		have = now;
	}
	return have;
}

START_TEST(one_peer)
{
	struct rxw_wide w = {0};
	int64_t have;

	rxw_wide_init(&w, &all, 1024 * MIB);
	ck_assert_int_eq(rxw_wide_grant(&w, 0, 10 * MIB), 10 * MIB);
	/* Three quarters, to a step. */
	have = grow(&w, 10 * MIB, INT64_MAX / 2);
	ck_assert_int_le(have, 48 * MIB);
	ck_assert_int_gt(have, 47 * MIB);
	check_sum(&w, 1);
	ck_assert_int_eq(rxw_wide_grant(&w, have, MIB), MIB);
	check_sum(&w, 1);
	ck_assert_uint_eq(atomic_load(&w.calls), 1);
	ck_assert_int_eq(rxw_wide_grant(&w, MIB, 0), 0);
	ck_assert_uint_eq(atomic_load(&w.calls), 0);
	check_sum(&w, 1);
}
END_TEST

/* Its own limit, of which streams without a wide window take a part. */
START_TEST(memory_of_the_peer)
{
	struct rxw_wide w = {0};
	int64_t have;

	rxw_wide_init(&w, NULL, 16 * MIB);
	for (unsigned i = 0; i < 10; i++)
		rxw_wide_stream(&w, true);
	have = grow(&w, 0, INT64_MAX / 2);
	ck_assert_int_gt(have, 4 * MIB);
	ck_assert_int_lt(have, 5 * MIB);
	ck_assert_int_eq(rxw_wide_excess(&w, have), INT64_MAX);
	for (unsigned i = 0; i < 10; i++)
		rxw_wide_stream(&w, true);
	/* More than the peer may have. A single call is to give up all of it. */
	ck_assert_int_eq(rxw_wide_excess(&w, have), 0);
	for (unsigned i = 0; i < 20; i++)
		rxw_wide_stream(&w, false);
	ck_assert_int_eq(rxw_wide_excess(&w, have), INT64_MAX);
	ck_assert_int_gt(grow(&w, have, INT64_MAX / 2), 11 * MIB);
}
END_TEST

/* A call that comes late gets a part up to its share, and the first one has to shrink. */
START_TEST(calls_share)
{
	struct rxw_wide w = {0};
	int64_t first, second, share;

	rxw_wide_init(&w, &all, 64 * MIB);
	first = grow(&w, 0, INT64_MAX / 2);
	second = grow(&w, 0, INT64_MAX / 2);
	ck_assert_int_gt(second, MIB);
	ck_assert_int_le(first + second, 54 * MIB);
	ck_assert_int_eq(rxw_wide_excess(&w, second), INT64_MAX);
	for (unsigned i = 0; i < 100; i++) {
		share = rxw_wide_excess(&w, first);
		if (share != INT64_MAX)
			first = rxw_wide_grant(&w, first, first / 2 > share ? first / 2 : share);
		second = grow(&w, second, second + MIB);
		check_sum(&w, 1);
	}
	ck_assert_int_ge(4 * first, 3 * second);
	ck_assert_int_ge(4 * second, 3 * first);
	ck_assert_int_gt(first + second, 40 * MIB);
	ck_assert_int_le(first + second, 54 * MIB);
}
END_TEST

/* No peer gives anything back: each further one gets three quarters of what is left. */
START_TEST(many_peers)
{
	struct rxw_wide w[20] = {0};
	int64_t have, last = 4 * 48 * MIB;

	for (unsigned i = 0; i < 20; i++) {
		rxw_wide_init(&w[i], &all, 64 * MIB);
		have = grow(&w[i], 0, INT64_MAX / 2);
		ck_assert_int_le(have, last / 4 + MIB / 4);
		if (i < 5)
			ck_assert_int_gt(have, 47 * MIB >> 2 * i);
		last = have;
		check_sum(w, i + 1);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("wide");
	TCase *tcase = tcase_create("wide");

	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, setup, NULL);
	tcase_add_test(tcase, one_peer);
	tcase_add_test(tcase, memory_of_the_peer);
	tcase_add_test(tcase, calls_share);
	tcase_add_test(tcase, many_peers);
	return bench_main(suite);
}
