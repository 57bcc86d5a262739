/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests of NewReno in base/cc.c: doubling, one packet per round trip, halving; the sawtooth's mean under
 * random loss.
 */

#include "testing.h"

#include <math.h>

#include "base/cc.h"
#include "base/rtt.h"

#define RTT (10 * RXW_MS)

/* A round trip in which the whole window is acknowledged, in portions. */
static void round_trip(struct rxw_cc *cc, uint64_t *state)
{
	uint32_t left = cc->cwnd;

	while (left) {
		uint32_t n = 1 + (uint32_t)test_below(state, left < 8 ? left : 8);

		rxw_cc_acked(cc, n, true);
		left -= n;
	}
}

START_TEST(slow_start_doubles)
{
	uint64_t state = test_seed();
	struct rxw_cc cc;

	rxw_cc_init(&cc, &rxw_cc_reno, 4, 0, 255);
	for (uint32_t want = 8; want <= 128; want *= 2) {
		round_trip(&cc, &state);
		ck_assert_uint_eq(cc.cwnd, want);
	}
	round_trip(&cc, &state);
	ck_assert_uint_eq(cc.cwnd, 255);
	round_trip(&cc, &state);
	ck_assert_uint_eq(cc.cwnd, 255);
}
END_TEST

START_TEST(avoidance_adds_one)
{
	uint64_t state = test_seed();
	struct rxw_cc cc;

	rxw_cc_init(&cc, &rxw_cc_reno, 20, 20, 255);
	for (uint32_t want = 21; want < 255; want++) {
		round_trip(&cc, &state);
		/* The portions may not end with the round: a packet's fraction more or less. */
		ck_assert_uint_ge(cc.cwnd + 1, want);
		ck_assert_uint_le(cc.cwnd, want + 1);
	}
}
END_TEST

/* One ACK that crosses the threshold: slow start up to it, the rest counts as avoidance. */
START_TEST(crossing)
{
	struct rxw_cc cc;

	rxw_cc_init(&cc, &rxw_cc_reno, 10, 16, 255);
	rxw_cc_acked(&cc, 6 + 15, true);
	ck_assert_uint_eq(cc.cwnd, 16);
	rxw_cc_acked(&cc, 1, true);
	ck_assert_uint_eq(cc.cwnd, 17);
}
END_TEST

START_TEST(unfilled_window_does_not_grow)
{
	struct rxw_cc cc;

	rxw_cc_init(&cc, &rxw_cc_reno, 10, 0, 255);
	for (int i = 0; i < 100; i++)
		rxw_cc_acked(&cc, 10, false);
	ck_assert_uint_eq(cc.cwnd, 10);
	rxw_cc_acked(&cc, 0, true);
	ck_assert_uint_eq(cc.cwnd, 10);
}
END_TEST

/* The flight is halved, not the window, because an unused window says nothing about the path. */
START_TEST(halves_the_flight)
{
	static const struct {
		uint32_t flight, want;
	} cases[] = { { 0, 2 }, { 1, 2 }, { 3, 2 },    { 4, 2 },
		      { 5, 2 }, { 6, 3 }, { 100, 50 }, { 255, 127 } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rxw_cc cc;

		rxw_cc_init(&cc, &rxw_cc_reno, 200, 0, 255);
		rxw_cc_lost(&cc, cases[i].flight);
		ck_assert_uint_eq(cc.cwnd, cases[i].want);
		ck_assert_uint_eq(cc.ssthresh, cases[i].want);
		rxw_cc_init(&cc, &rxw_cc_reno, 200, 0, 255);
		rxw_cc_timeout(&cc, cases[i].flight);
		ck_assert_uint_eq(cc.cwnd, 1);
		ck_assert_uint_eq(cc.ssthresh, cases[i].want);
	}
}
END_TEST

/*
 * Rounds of cwnd packets, each lost with probability p, one reaction per round: the mean window
 * follows the law of NewReno, sqrt(3/2p), within a quarter.
 */
START_TEST(sawtooth)
{
	static const double losses[] = { 0.0005, 0.001, 0.003, 0.01 };
	uint64_t state = test_seed();

	for (size_t k = 0; k < sizeof(losses) / sizeof(losses[0]); k++) {
		double p = losses[k], want = sqrt(1.5 / p), sum = 0;
		uint64_t limit = (uint64_t)(p * 18446744073709551615.0);
		struct rxw_cc cc;
		const int rounds = 40000;

		rxw_cc_init(&cc, &rxw_cc_reno, 4, 0, 100000);
		for (int i = 0; i < rounds; i++) {
			uint32_t window = cc.cwnd, lost = 0;

			for (uint32_t n = 0; n < window; n++)
				lost += rxw_prng(&state) < limit;
			if (lost)
				rxw_cc_lost(&cc, window);
			else
				rxw_cc_acked(&cc, window, true);
			sum += window;
		}
		ck_assert_msg(sum / rounds > want * 0.75 && sum / rounds < want * 1.25,
			      "loss %g: mean window %.1f, expected near %.1f", p, sum / rounds,
			      want);
	}
}
END_TEST

/*
 * Losses of one flight, detected one by one, are one event and halve once; those of the next flight
 * are another.
 */
START_TEST(once_per_round_trip)
{
	struct rxw_recovery r;
	struct rxw_cc cc;
	unsigned events = 0;

	rxw_recovery_init(&r);
	rxw_cc_init(&cc, &rxw_cc_reno, 128, 0, 255);
	for (uint32_t lost = 1; lost <= 128; lost += 5) {
		if (rxw_recovery_enter(&r, lost, 128 + lost, 128)) {
			rxw_cc_lost(&cc, 128);
			events++;
		}
	}
	ck_assert_uint_eq(events, 1);
	ck_assert_uint_eq(cc.cwnd, 64);
	ck_assert(rxw_recovery_enter(&r, 130, 300, 64)); /* sent after the reaction */
	ck_assert(!rxw_recovery_enter(&r, 300, 310, 64));
	ck_assert(rxw_recovery_enter(&r, 301, 310, 64));
}
END_TEST

TEST_MAIN("cc_reno", slow_start_doubles, avoidance_adds_one, crossing,
	  unfilled_window_does_not_grow, halves_the_flight, sawtooth, once_per_round_trip)
