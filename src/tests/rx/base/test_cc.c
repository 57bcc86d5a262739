/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of base/cc.c: properties of every controller: bounds, undo, idleness. */

#include "testing.h"

#include "base/cc.h"
#include "base/rtt.h"

START_TEST(initial_values)
{
	struct rxw_cc cc;

	rxw_cc_init(&cc, &rxw_cc_reno, 4, 0, 255);
	ck_assert_uint_eq(cc.cwnd, 4);
	ck_assert_uint_eq(cc.ssthresh, 255);
	rxw_cc_init(&cc, &rxw_cc_reno, 10, 7, 255);
	ck_assert_uint_eq(cc.cwnd, 10);
	ck_assert_uint_eq(cc.ssthresh, 7);
	rxw_cc_init(&cc, &rxw_cc_reno, 10, 0, 5);
	ck_assert_uint_eq(cc.cwnd, 5);
	rxw_cc_init(&cc, &rxw_cc_reno, 0, 0, 0);
	ck_assert_uint_eq(cc.cwnd, 1);
}
END_TEST

START_TEST(undo_of_loss)
{
	struct rxw_cc cc;

	rxw_cc_init(&cc, &rxw_cc_reno, 100, 200, 255);
	rxw_cc_undo(&cc); /* nothing to undo */
	ck_assert_uint_eq(cc.cwnd, 100);
	rxw_cc_lost(&cc, 100);
	ck_assert_uint_eq(cc.cwnd, 50);
	rxw_cc_acked(&cc, 50, true);
	ck_assert_uint_eq(cc.cwnd, 51);
	rxw_cc_undo(&cc);
	ck_assert_uint_eq(cc.cwnd, 100);
	ck_assert_uint_eq(cc.ssthresh, 200);
	cc.cwnd = 20;
	rxw_cc_undo(&cc); /* once only */
	ck_assert_uint_eq(cc.cwnd, 20);
}
END_TEST

/* Undo keeps growth after the reaction. */
START_TEST(undo_keeps_growth)
{
	struct rxw_cc cc;

	rxw_cc_init(&cc, &rxw_cc_reno, 8, 8, 255);
	rxw_cc_lost(&cc, 8);
	for (int i = 0; i < 40; i++)
		rxw_cc_acked(&cc, cc.cwnd, true);
	ck_assert_uint_gt(cc.cwnd, 40);
	rxw_cc_undo(&cc);
	ck_assert_uint_gt(cc.cwnd, 40);
}
END_TEST

/* Two timeouts in sequence, then a sign that nothing was lost: the window from before the first. */
START_TEST(undo_of_timeouts)
{
	struct rxw_cc cc;

	rxw_cc_init(&cc, &rxw_cc_reno, 64, 128, 255);
	rxw_cc_timeout(&cc, 64);
	ck_assert_uint_eq(cc.cwnd, 1);
	ck_assert_uint_eq(cc.ssthresh, 32);
	rxw_cc_timeout(&cc, 64);
	rxw_cc_timeout(&cc, 64);
	rxw_cc_undo(&cc);
	ck_assert_uint_eq(cc.cwnd, 64);
	ck_assert_uint_eq(cc.ssthresh, 128);
}
END_TEST

START_TEST(idleness)
{
	static const struct {
		uint32_t cwnd, ssthresh;
		uint64_t idle;
		uint32_t want, want_ssthresh;
	} cases[] = {
		{ 100, 30, 0, 100, 30 },           { 100, 30, 199 * RXW_MS, 100, 30 },
		{ 100, 30, 200 * RXW_MS, 50, 75 }, { 100, 90, 400 * RXW_MS, 25, 90 },
		{ 100, 30, 1000 * RXW_MS, 4, 75 }, { 100, 30, UINT64_MAX, 4, 75 },
		{ 4, 30, UINT64_MAX, 4, 30 },      { 2, 30, UINT64_MAX, 2, 30 },
		{ 5, 3, 200 * RXW_MS, 4, 4 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rxw_cc cc;

		rxw_cc_init(&cc, &rxw_cc_reno, cases[i].cwnd, cases[i].ssthresh, 255);
		rxw_cc_idle(&cc, cases[i].idle, 200 * RXW_MS);
		ck_assert_uint_eq(cc.cwnd, cases[i].want);
		ck_assert_uint_eq(cc.ssthresh, cases[i].want_ssthresh);
		rxw_cc_idle(&cc, 5, 0); /* no RTO: nothing */
		ck_assert_uint_eq(cc.cwnd, cases[i].want);
	}
}
END_TEST

/* Any sequence of events: 1 <= cwnd <= max, ssthresh >= 2. */
START_TEST(bounds)
{
	uint64_t state = test_seed();

	for (int run = 0; run < 200; run++) {
		struct rxw_cc cc;
		uint32_t max = 1 + (uint32_t)test_below(&state, 255);

		rxw_cc_init(&cc, &rxw_cc_reno, (uint32_t)test_below(&state, 12), 0, max);
		for (uint64_t now = 0; now < 500; now++) {
			uint32_t n = (uint32_t)test_below(&state, 300);

			switch (test_below(&state, 8)) {
			case 0:
				rxw_cc_lost(&cc, n);
				ck_assert_uint_ge(cc.ssthresh, 2);
				break;
			case 1:
				rxw_cc_timeout(&cc, n);
				ck_assert_uint_eq(cc.cwnd, 1);
				break;
			case 2:
				rxw_cc_undo(&cc);
				break;
			case 3:
				rxw_cc_idle(&cc, n, 1 + test_below(&state, 100));
				break;
			default:
				rxw_cc_acked(&cc, n, n & 1);
			}
			ck_assert_uint_ge(cc.cwnd, 1);
			ck_assert_uint_le(cc.cwnd, max);
		}
	}
}
END_TEST

/* A window over four fifths of a round trip; small ones, and those of short paths, at once. */
START_TEST(pacing)
{
	static const struct {
		uint32_t cwnd, window;
		uint64_t srtt, want;
	} cases[] = {
		{ 100, 255, 100 * RXW_MS, 800000 }, { 100, 50, 100 * RXW_MS, 1600000 },
		{ 17, 17, 17 * RXW_MS, 800000 },    { 16, 255, 17 * RXW_MS, 0 },
		{ 255, 16, 17 * RXW_MS, 0 },        { 255, 255, RXW_MS - 1, 0 },
		{ 255, 255, RXW_MS, 3137 },         { 255, 0, RXW_SEC, 0 },
		{ 255, 255, UINT64_MAX, UINT64_MAX / 5 * 4 / 255 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rxw_cc cc;

		rxw_cc_init(&cc, &rxw_cc_reno, cases[i].cwnd, 0, 255);
		ck_assert_uint_eq(rxw_cc_interval(&cc, cases[i].window, cases[i].srtt),
				  cases[i].want);
	}
}
END_TEST

/* A later flow: half of what the path carried, if its round trip is like the one before. */
/* The first flight of a call that begins with the window of another one leaves early in the round trip. */
START_TEST(window_of_another_call)
{
	const uint64_t rtt = 80 * RXW_MS;
	struct rxw_cc cc;

	rxw_cc_init(&cc, &rxw_cc_rate, 10, 0, 32768);
	rxw_cc_warm(&cc, 8); /* not less than it has */
	ck_assert_uint_eq(cc.cwnd, 10);
	ck_assert_uint_eq(cc.warm, 0);
	rxw_cc_warm(&cc, 100);
	ck_assert_uint_eq(cc.cwnd, 100);
	ck_assert_uint_eq(rxw_cc_interval(&cc, 1000, rtt), rtt / 800);
	ck_assert_uint_eq(rxw_cc_interval(&cc, 50, rtt), rtt / 400);
	ck_assert_uint_eq(rxw_cc_interval(&cc, 16, rtt), 0);
	/* It is never larger than the peer may grant. */
	rxw_cc_init(&cc, &rxw_cc_reno, 10, 0, 255);
	rxw_cc_warm(&cc, 4000);
	ck_assert_uint_eq(cc.cwnd, 255);
	cc.warm = 0;
	ck_assert_uint_gt(rxw_cc_interval(&cc, 255, rtt), rtt / 400);
}
END_TEST

START_TEST(resumes)
{
	static const struct rxw_cc_ops *const all[] = {&rxw_cc_reno, &rxw_cc_rate};
	static const struct {
		uint64_t rtt;
		uint32_t flows, max, want;
	} cases[] = {
		{100 * RXW_MS, 1, 65535, 4000},	 {100 * RXW_MS, 0, 65535, 4000},
		{50 * RXW_MS, 1, 65535, 4000},	 {201 * RXW_MS, 1, 65535, 10},
		{49 * RXW_MS, 1, 65535, 10},	 {100 * RXW_MS, 8, 65535, 500},
		{100 * RXW_MS, 1000, 65535, 10}, {100 * RXW_MS, 1, 255, 255},
	};
	static const struct rxw_cc_path known = {80000ull << RXW_CC_RATE_SHIFT, 100 * RXW_MS};

	for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
		struct rxw_cc cc;
		uint64_t interval;

		rxw_cc_init(&cc, all[i % 2], 10, 0, cases[i / 2].max);
		rxw_cc_confirm(&cc, 100 * RXW_MS, 1); /* nothing is known */
		ck_assert_uint_eq(cc.cwnd, 10);
		rxw_cc_resume(&cc, &known);
		ck_assert_uint_eq(cc.cwnd, 10);
		rxw_cc_confirm(&cc, cases[i / 2].rtt, cases[i / 2].flows);
		ck_assert_uint_eq(cc.cwnd, cases[i / 2].want);
		rxw_cc_confirm(&cc, 100 * RXW_MS, 1); /* once only */
		ck_assert_uint_eq(cc.cwnd, cases[i / 2].want);
		if (cc.cwnd <= 16)
			continue;
		/* Spread over a round trip, or most of one. */
		interval = rxw_cc_interval(&cc, 65535, 100 * RXW_MS);
		ck_assert_uint_ge(interval * cc.cwnd, 75 * RXW_MS);
		ck_assert_uint_le(interval * cc.cwnd, 101 * RXW_MS);
	}
}
END_TEST

/* Of the larger window, 1,000 packets arrive and others are lost: half of those are left. */
START_TEST(retreats)
{
	static const struct rxw_cc_path known = {80000ull << RXW_CC_RATE_SHIFT, 100 * RXW_MS};
	struct rxw_cc cc;

	rxw_cc_init(&cc, &rxw_cc_reno, 10, 0, 65535);
	rxw_cc_resume(&cc, &known);
	rxw_cc_confirm(&cc, 100 * RXW_MS, 1);
	rxw_cc_prove(&cc, 1000);
	ck_assert_int_eq(cc.resume, RXW_CC_UNPROVEN);
	rxw_cc_lost(&cc, 4000);
	ck_assert_int_eq(cc.resume, RXW_CC_RETREATED);
	ck_assert_uint_eq(cc.cwnd, 500);
	ck_assert_uint_eq(cc.ssthresh, 500);

	rxw_cc_init(&cc, &rxw_cc_reno, 10, 0, 65535);
	rxw_cc_resume(&cc, &known);
	rxw_cc_confirm(&cc, 100 * RXW_MS, 1);
	rxw_cc_prove(&cc, 4000);
	ck_assert_int_eq(cc.resume, RXW_CC_NORMAL);
	rxw_cc_lost(&cc, 4000);
	ck_assert_uint_eq(cc.cwnd, 2000);
}
END_TEST

/* RFC 8511: less is given up than for a loss, but not in slow start; it is not undone. */
START_TEST(marks)
{
	struct rxw_cc cc;

	rxw_cc_init(&cc, &rxw_cc_reno, 1000, 100, 4000);
	rxw_cc_marked(&cc, 1000);
	ck_assert_uint_eq(cc.cwnd, 800);
	ck_assert_uint_eq(cc.ssthresh, 800);
	rxw_cc_undo(&cc);
	ck_assert_uint_eq(cc.cwnd, 800);
	/* A loss before it is not undone, either. */
	rxw_cc_lost(&cc, cc.cwnd);
	rxw_cc_marked(&cc, cc.cwnd);
	rxw_cc_undo(&cc);
	ck_assert_uint_lt(cc.cwnd, 800);
	/* A flight below the window leaves less, above it no more than there was. */
	rxw_cc_init(&cc, &rxw_cc_reno, 1000, 4000, 4000);
	rxw_cc_marked(&cc, 1000);
	ck_assert_uint_eq(cc.cwnd, 500);
	rxw_cc_init(&cc, &rxw_cc_reno, 10, 5, 4000);
	rxw_cc_marked(&cc, 1000);
	ck_assert_uint_eq(cc.cwnd, 10);
	for (unsigned k = 0; k < 20; k++)
		rxw_cc_marked(&cc, cc.cwnd);
	ck_assert_uint_eq(cc.cwnd, 2);
}
END_TEST

TEST_MAIN("cc", initial_values, undo_of_loss, undo_keeps_growth, undo_of_timeouts, idleness, bounds,
	  pacing, window_of_another_call, resumes, retreats, marks)
