/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of base/rtt.c: smoothing, timeouts and their bounds. */

#include "testing.h"

#include "base/rtt.h"

/* After a machine has slept, packets that came meanwhile seem to have come at once. */
START_TEST(too_short)
{
	uint64_t now = 100 * RXW_SEC;
	struct rxw_rtt r;

	rxw_rtt_init(&r);
	ck_assert(rxw_rtt_plausible(&r, 1000, now));
	rxw_rtt_sample(&r, 40 * RXW_MS);
	ck_assert(rxw_rtt_plausible(&r, 20 * RXW_MS, now));
	ck_assert(!rxw_rtt_plausible(&r, 10000, now));
	ck_assert(!rxw_rtt_plausible(&r, 10 * RXW_MS, now + 39 * RXW_MS));
	/* A true one came meanwhile. */
	ck_assert(rxw_rtt_plausible(&r, 41 * RXW_MS, now + 39 * RXW_MS));
	now += RXW_SEC;
	ck_assert(!rxw_rtt_plausible(&r, 10 * RXW_MS, now));
	/* The path has become shorter. */
	ck_assert(rxw_rtt_plausible(&r, 10 * RXW_MS, now + 40 * RXW_MS));
	/* Any share of a short round trip may be true. */
	rxw_rtt_sample(&r, 900000);
	ck_assert(rxw_rtt_plausible(&r, 1000, now));
}
END_TEST

START_TEST(before_first_sample)
{
	struct rxw_rtt r;

	rxw_rtt_init(&r);
	ck_assert(!r.valid);
	ck_assert_uint_eq(rxw_rtt_rto(&r, 0, 0), RXW_SEC);
	ck_assert_uint_eq(rxw_rtt_rto(&r, 100 * RXW_MS, 0), 1100 * RXW_MS);
	ck_assert_uint_eq(rxw_rtt_rto(&r, 0, 1), 2 * RXW_SEC);
	/*
	 * A loss or a probe must not be declared before the timeout's own estimate of a round trip.
	 */
	ck_assert_uint_gt(rxw_rtt_loss_delay(&r), 333 * RXW_MS);
	ck_assert_uint_eq(rxw_rtt_probe_delay(&r, 0), 666 * RXW_MS);
	ck_assert_uint_lt(rxw_rtt_probe_delay(&r, 0), rxw_rtt_rto(&r, 0, 0));
}
END_TEST

START_TEST(first_and_second)
{
	struct rxw_rtt r;

	rxw_rtt_init(&r);
	rxw_rtt_sample(&r, 800 * RXW_MS);
	ck_assert_uint_eq(r.srtt, 800 * RXW_MS);
	ck_assert_uint_eq(r.rttvar, 400 * RXW_MS);
	ck_assert_uint_eq(rxw_rtt_rto(&r, 0, 0), 2400 * RXW_MS);
	rxw_rtt_sample(&r, 1600 * RXW_MS);
	ck_assert_uint_eq(r.rttvar, 500 * RXW_MS); /* with the old srtt */
	ck_assert_uint_eq(r.srtt, 900 * RXW_MS);
	ck_assert_uint_eq(r.latest, 1600 * RXW_MS);
	ck_assert_uint_eq(r.min, 800 * RXW_MS);
	ck_assert_uint_eq(rxw_rtt_loss_delay(&r), 1800 * RXW_MS);
	ck_assert_uint_eq(rxw_rtt_probe_delay(&r, 7), 1800 * RXW_MS + 7);
}
END_TEST

START_TEST(floors)
{
	struct rxw_rtt r;

	rxw_rtt_init(&r);
	rxw_rtt_sample(&r, 50000);
	ck_assert_uint_eq(rxw_rtt_rto(&r, 0, 0), 200 * RXW_MS);
	ck_assert_uint_eq(rxw_rtt_rto(&r, 100 * RXW_MS, 0), 300 * RXW_MS);
	ck_assert_uint_eq(rxw_rtt_loss_delay(&r), RXW_MS);
	ck_assert_uint_eq(rxw_rtt_probe_delay(&r, 0), 10 * RXW_MS);
}
END_TEST

START_TEST(backoff)
{
	struct rxw_rtt r;
	uint64_t want = 300 * RXW_MS;

	rxw_rtt_init(&r);
	rxw_rtt_sample(&r, 1000);
	for (unsigned n = 0; n < 40; n++) {
		ck_assert_uint_eq(rxw_rtt_rto(&r, 100 * RXW_MS, n), want);
		want = want * 2 < 20 * RXW_SEC ? want * 2 : 20 * RXW_SEC;
	}
	ck_assert_uint_eq(rxw_rtt_rto(&r, 0, 4000000000u), 20 * RXW_SEC);
	ck_assert_uint_eq(rxw_rtt_rto(&r, UINT64_MAX, 3), 20 * RXW_SEC);
}
END_TEST

START_TEST(seeds)
{
	struct rxw_rtt r;

	rxw_rtt_seed(&r, 0, 5);
	ck_assert(!r.valid);
	rxw_rtt_seed(&r, 80 * RXW_MS, 10 * RXW_MS);
	ck_assert(r.valid);
	ck_assert_uint_eq(r.min, 0);
	ck_assert_uint_eq(rxw_rtt_rto(&r, 0, 0), 200 * RXW_MS);
	ck_assert_uint_eq(rxw_rtt_loss_delay(&r), 90 * RXW_MS);
	rxw_rtt_sample(&r, 160 * RXW_MS); /* smoothed into the seed */
	ck_assert_uint_eq(r.srtt, 90 * RXW_MS);
	ck_assert_uint_eq(r.min, 160 * RXW_MS);
	rxw_rtt_seed(&r, UINT64_MAX, UINT64_MAX);
	ck_assert_uint_eq(rxw_rtt_rto(&r, 0, 0), 20 * RXW_SEC);
	ck_assert_uint_ge(rxw_rtt_probe_delay(&r, 0), r.srtt);
}
END_TEST

START_TEST(absurd_samples)
{
	struct rxw_rtt r;

	rxw_rtt_init(&r);
	rxw_rtt_sample(&r, UINT64_MAX);
	ck_assert(!r.valid);
	rxw_rtt_sample(&r, 60 * RXW_SEC);
	ck_assert_uint_eq(r.srtt, 60 * RXW_SEC);
	rxw_rtt_sample(&r, 60 * RXW_SEC + 1); /* the clock jumped */
	rxw_rtt_sample(&r, UINT64_MAX);
	ck_assert_uint_eq(r.srtt, 60 * RXW_SEC);
	ck_assert_uint_eq(r.latest, 60 * RXW_SEC);
	ck_assert_uint_eq(r.rttvar, 30 * RXW_SEC);
	rxw_rtt_sample(&r, 0);
	ck_assert_uint_eq(r.latest, 1);
	for (int i = 0; i < 1000; i++)
		rxw_rtt_sample(&r, 0);
	ck_assert_uint_ge(r.srtt, 1); /* 0 would mean "none" in a peer's cache */
	ck_assert_uint_eq(rxw_rtt_rto(&r, 0, 0), 200 * RXW_MS);
}
END_TEST

/* Noisy samples: the estimate converges to the mean, and nearly none exceeds the timeout's base. */
START_TEST(statistics)
{
	uint64_t state = test_seed();
	struct rxw_rtt r;
	unsigned beyond = 0;
	double sum = 0;

	rxw_rtt_init(&r);
	for (int i = 0; i < 100000; i++) {
		uint64_t sample = 300 * RXW_MS + test_below(&state, 100 * RXW_MS);

		if (i > 100) {
			beyond += sample > r.srtt + 4 * r.rttvar;
			sum += (double)r.srtt;
		}
		rxw_rtt_sample(&r, sample);
	}
	ck_assert_double_gt(sum / 99899, 348e6);
	ck_assert_double_lt(sum / 99899, 352e6);
	ck_assert_uint_lt(beyond, 1000);
}
END_TEST

TEST_MAIN("rtt", before_first_sample, first_and_second, floors, backoff, seeds, absurd_samples,
	  too_short, statistics)
