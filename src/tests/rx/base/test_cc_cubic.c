/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests of base/cc_cubic.c: the window over time against the equations of RFC 9438, its mean under
 * loss, reactions and undo, arithmetic at its limits.
 */

#include "testing.h"

#include <math.h>

#include "base/cc.h"
#include "base/rtt.h"

#define C    0.4
#define BETA 0.7
#define MAX  100000u

static const double alpha = 3 * (1 - BETA) / (1 + BETA);

static double seconds(uint64_t ns)
{
	return (double)ns / 1e9;
}

/* RFC 9438, figure 1: W_cubic(t) after a stage began with `start` below the plateau. */
static double w_cubic(double t, double plateau, double start)
{
	double k = start < plateau ? cbrt((plateau - start) / C) : 0;

	return C * pow(t - k, 3) + (start < plateau ? plateau : start);
}

/* One round trip: a window acknowledged in `acks` portions spread over it. */
static void round_trip(struct rxw_cc *cc, uint64_t *now, uint64_t rtt, unsigned acks)
{
	uint32_t window = cc->cwnd, done = 0;

	for (unsigned i = 1; i <= acks; i++) {
		uint32_t to = (uint32_t)((uint64_t)window * i / acks);

		rxw_cc_acked(cc, to - done, true, rtt, *now + rtt * i / acks);
		done = to;
	}
	*now += rtt;
}

/* In congestion avoidance after the loss of one of `window` packets. */
static void after_loss(struct rxw_cc *cc, uint32_t window, uint64_t now)
{
	rxw_cc_init(cc, &rxw_cc_cubic, window, window, MAX);
	rxw_cc_lost(cc, window, now);
	ck_assert_uint_eq(cc->cwnd, window * 7 / 10);
	ck_assert_uint_eq(cc->ssthresh, window * 7 / 10);
}

/*
 * Concave up to the plateau, convex after it: between W_cubic(t), below which the window stays for
 * at most a round trip, and W_cubic(t + RTT), its target.
 */
START_TEST(curve)
{
	/* Where W_est is below. */
	static const struct {
		uint32_t window;
		uint64_t rtt;
	} cases[] = { { 100, 200 * RXW_MS },  { 255, 100 * RXW_MS },  { 255, 200 * RXW_MS },
		      { 1000, 50 * RXW_MS },  { 1000, 200 * RXW_MS }, { 20000, 20 * RXW_MS },
		      { 20000, 200 * RXW_MS } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t window = cases[i].window, start;
		uint64_t rtt = cases[i].rtt, now = 7 * RXW_SEC, began;
		double k, t, low, high, before = 0;
		struct rxw_cc cc;

		after_loss(&cc, window, now);
		start = cc.cwnd;
		began = now + rtt / 16; /* the first ACK */
		k = cbrt(((double)window - start) / C);
		while ((t = seconds(now - began)) < 2 * k || now == 7 * RXW_SEC) {
			round_trip(&cc, &now, rtt, 16);
			t = seconds(now - began);
			low = w_cubic(t - seconds(rtt) / 8, window, start);
			high = w_cubic(t + seconds(rtt), window, start);
			ck_assert_msg(cc.cwnd + 1.5 > low && cc.cwnd < high + 1.5,
				      "window %u, RTT %.3f, t %.3f: %u is not in %.1f to %.1f",
				      window, seconds(rtt), t, cc.cwnd, low, high);
			/* The plateau is reached after K. */
			if (before < k && t >= k)
				ck_assert_msg(fabs((double)cc.cwnd - window) < 2 + 0.001 * window,
					      "%u at K, not %u", cc.cwnd, window);
			before = t;
		}
		ck_assert_uint_gt(cc.cwnd, window);
	}
}
END_TEST

/*
 * On short paths W_cubic is below NewReno's window. W_est then determines the window: alpha per
 * round trip up to the old window, one packet after it.
 */
START_TEST(reno_friendly)
{
	uint64_t now = RXW_SEC;
	double want;
	struct rxw_cc cc;

	after_loss(&cc, 100, now);
	want = 70;
	for (unsigned i = 0; i < 150; i++) {
		round_trip(&cc, &now, RXW_MS, 10);
		want += want >= 100 ? 1 : alpha;
		ck_assert_msg(fabs(cc.cwnd - want) < 3, "round %u: %u, not %.1f", i, cc.cwnd, want);
	}
	ck_assert_uint_gt(cc.cwnd, 180);
}
END_TEST

/* The plateau moves below the window of a loss that came below the last plateau. */
START_TEST(fast_convergence)
{
	uint64_t now = RXW_SEC, rtt = 100 * RXW_MS, began;
	double k, plateau;
	uint32_t start;
	struct rxw_cc cc;

	after_loss(&cc, 1000, now);
	for (unsigned i = 0; i < 5; i++)
		round_trip(&cc, &now, rtt, 16);
	ck_assert_uint_lt(cc.cwnd, 1000);
	plateau = cc.cwnd * (1 + BETA) / 2;
	rxw_cc_lost(&cc, cc.cwnd, now);
	start = cc.cwnd;
	k = cbrt((plateau - start) / C);
	began = now + rtt / 16;
	while (seconds(now - began) < k || now < began)
		round_trip(&cc, &now, rtt, 16);
	ck_assert_msg(fabs(cc.cwnd - plateau) < 3, "%u, not %.1f", cc.cwnd, plateau);
}
END_TEST

/* Slow start to 0.7 of the flight; the curve then has no plateau to approach: K is 0. */
START_TEST(after_timeout)
{
	uint64_t now = RXW_SEC, rtt = 100 * RXW_MS, began;
	double high;
	struct rxw_cc cc;

	rxw_cc_init(&cc, &rxw_cc_cubic, 1000, 1000, MAX);
	rxw_cc_timeout(&cc, 1000, now);
	ck_assert_uint_eq(cc.cwnd, 1);
	ck_assert_uint_eq(cc.ssthresh, 700);
	for (uint32_t want = 2; want <= 512; want *= 2) {
		round_trip(&cc, &now, rtt, 1);
		ck_assert_uint_eq(cc.cwnd, want);
	}
	round_trip(&cc, &now, rtt, 1);
	ck_assert_uint_ge(cc.cwnd, 700);
	began = now;
	for (unsigned i = 0; i < 60; i++) {
		round_trip(&cc, &now, rtt, 16);
		high = w_cubic(seconds(now - began + rtt), 0, 700);
		ck_assert_msg(cc.cwnd + 2 > w_cubic(seconds(now - began - rtt), 0, 700) &&
				      cc.cwnd < high + 1 + alpha * (i + 2),
			      "%u in round %u", cc.cwnd, i);
	}
	ck_assert_uint_gt(cc.cwnd, 750);
}
END_TEST

/* A spurious loss has no effect: the window equals that of a twin that never reacted. */
START_TEST(undo)
{
	for (unsigned kind = 0; kind < 3; kind++) {
		uint64_t now = RXW_SEC, rtt = 50 * RXW_MS;
		struct rxw_cc cc, twin;

		after_loss(&cc, 500, now);
		for (unsigned i = 0; i < 40; i++)
			round_trip(&cc, &now, rtt, 8);
		twin = cc;
		if (kind == 0)
			rxw_cc_lost(&cc, cc.cwnd, now);
		for (unsigned i = 0; i < kind; i++)
			rxw_cc_timeout(&cc, cc.cwnd, now);
		ck_assert_uint_lt(cc.cwnd, twin.cwnd);
		rxw_cc_undo(&cc);
		ck_assert_uint_eq(cc.cwnd, twin.cwnd);
		ck_assert_uint_eq(cc.ssthresh, twin.ssthresh);
		for (unsigned i = 0; i < 200; i++) {
			uint64_t at = now;

			round_trip(&twin, &at, rtt, 8);
			round_trip(&cc, &now, rtt, 8);
			ck_assert_uint_le(cc.cwnd, twin.cwnd + 1);
			ck_assert_uint_ge(cc.cwnd + 1, twin.cwnd);
		}
	}
}
END_TEST

/* The window does not grow in periods in which it was not filled, or nothing was sent. */
START_TEST(pauses)
{
	uint64_t now = RXW_SEC, rtt = 50 * RXW_MS;
	struct rxw_cc cc, twin;
	uint32_t window;

	after_loss(&cc, 500, now);
	for (unsigned i = 0; i < 40; i++)
		round_trip(&cc, &now, rtt, 8);
	twin = cc;
	for (unsigned i = 0; i < 1000; i++)
		rxw_cc_acked(&cc, 1, false, rtt, now + i * rtt);
	ck_assert_uint_eq(cc.cwnd, twin.cwnd);
	for (uint64_t at = now + 999 * rtt; twin.cwnd < 600;) {
		round_trip(&twin, &now, rtt, 8);
		round_trip(&cc, &at, rtt, 8);
		ck_assert_uint_eq(cc.cwnd, twin.cwnd);
	}
	rxw_cc_idle(&cc, 201 * RXW_MS, 200 * RXW_MS);
	ck_assert_uint_eq(cc.cwnd, 300);
	cc.ssthresh = 300; /* no slow start: the curve begins anew */
	now += 3600 * RXW_SEC;
	window = cc.cwnd;
	round_trip(&cc, &now, rtt, 8);
	ck_assert_uint_le(cc.cwnd, window + 30);
}
END_TEST

/* One of 1/p packets is lost: the mean windows of RFC 9438, 5.1 and 5.2, within a tenth. */
START_TEST(mean_window)
{
	static const struct {
		double loss, rtt;
	} cases[] = { { 1e-2, 0.01 }, { 1e-3, 0.01 }, { 1e-4, 0.1 }, { 1e-5, 0.1 }, { 1e-4, 0.3 } };

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		double p = cases[i].loss, rtt = cases[i].rtt, sum = 0, got, want;
		double aimd = sqrt(alpha * (1 + BETA) / (2 * (1 - BETA) * p));
		double cubic = pow(C * (3 + BETA) / (4 * (1 - BETA)), 0.25) * pow(rtt / p, 0.75);
		uint64_t now = RXW_SEC, sent = 0, every = (uint64_t)(1 / p), next = every;
		unsigned rounds = 0;
		struct rxw_cc cc;

		want = fmax(aimd, cubic);
		rxw_cc_init(&cc, &rxw_cc_cubic, (uint32_t)want, (uint32_t)want, MAX);
		for (unsigned losses = 0; losses < 60;) {
			sent += cc.cwnd;
			if (losses >= 20) {
				sum += cc.cwnd;
				rounds++;
			}
			if (sent >= next) {
				rxw_cc_lost(&cc, cc.cwnd, now);
				now += (uint64_t)(rtt * 1e9);
				next = sent + every;
				losses++;
			} else {
				round_trip(&cc, &now, (uint64_t)(rtt * 1e9), 4);
			}
		}
		got = sum / rounds;
		printf("loss %g, RTT %g: mean window %.1f, RFC 9438 says %.1f\n", p, rtt, got,
		       want);
		/* Small windows are rounded to packets; the formulas have no round trips. */
		ck_assert_msg(got > 0.85 * want && got < 1.2 * want,
			      "loss %g, RTT %g: mean window %.1f, expected %.1f", p, rtt, got,
			      want);
	}
}
END_TEST

static uint64_t any(uint64_t *state)
{
	return rxw_prng(state) >> test_below(state, 64);
}

static void any_order(uint64_t state)
{
	for (int i = 0; i < 2000; i++) {
		uint32_t max = (uint32_t)any(&state);
		uint64_t now = any(&state);
		struct rxw_cc cc;

		rxw_cc_init(&cc, &rxw_cc_cubic, (uint32_t)any(&state), (uint32_t)any(&state), max);
		for (int k = 0; k < 100; k++) {
			uint32_t n = (uint32_t)any(&state), before = cc.cwnd;

			now += any(&state) >> 8;
			switch (test_below(&state, 8)) {
			case 0:
				rxw_cc_lost(&cc, n, now);
				break;
			case 1:
				rxw_cc_timeout(&cc, n, now);
				break;
			case 2:
				rxw_cc_undo(&cc);
				break;
			case 3:
				rxw_cc_idle(&cc, any(&state), any(&state));
				break;
			default:
				rxw_cc_acked(&cc, n, n & 1, any(&state), now);
				ck_assert_uint_ge(cc.cwnd, before);
				/* Nothing grows faster than slow start. */
				ck_assert_uint_le((uint64_t)cc.cwnd, (uint64_t)before + n + 1);
			}
			ck_assert_uint_ge(cc.cwnd, 1);
			ck_assert_uint_le(cc.cwnd, max ? max : 1);
		}
	}
}

/* Any times, windows and counts, in any order: the window stays between 1 and its maximum. */
START_TEST(extremes)
{
	any_order(test_seed());
}
END_TEST

/* With this seed W_est passes a window that lags behind W_cubic. */
START_TEST(late_estimate)
{
	any_order(4782167690589715417u);
}
END_TEST

/* A stage of a day and a window of the largest size: it grows, and stops at the bound. */
START_TEST(long_stage)
{
	uint64_t now = UINT64_MAX - 200000 * RXW_SEC;
	uint32_t before;
	struct rxw_cc cc;

	rxw_cc_init(&cc, &rxw_cc_cubic, 1u << 20, 1u << 20, UINT32_MAX);
	rxw_cc_lost(&cc, 1u << 20, now);
	before = cc.cwnd;
	ck_assert_uint_eq(before, (1u << 20) / 10 * 7 + 4);
	for (int i = 0; i < 86400; i++) {
		now += RXW_SEC;
		rxw_cc_acked(&cc, cc.cwnd, true, RXW_SEC, now);
		ck_assert_uint_ge(cc.cwnd, before);
		before = cc.cwnd;
	}
	ck_assert_uint_eq(cc.cwnd, 1u << 20);
}
END_TEST

/* A round of `acks` ACKs for the window; round trips of `rtt`, in slow start. */
static void slow_round(struct rxw_cc *cc, uint64_t rtt, unsigned acks, uint64_t *now)
{
	uint32_t window = cc->cwnd;

	for (unsigned i = 0; i < acks; i++) {
		*now += rtt / acks;
		rxw_cc_acked(cc, window / acks, true, rtt, *now);
		rxw_cc_rtt(cc, rtt, i + 1 == acks);
	}
}

/* RFC 9406: a growing delay makes slow start conservative, and ends it if it does not fall again. */
START_TEST(delay_ends_slow_start)
{
	uint64_t now = RXW_SEC;
	struct rxw_cc cc;
	uint32_t before;

	rxw_cc_init(&cc, &rxw_cc_cubic, 16, 0, 65535);
	for (unsigned i = 0; i < 4; i++)
		slow_round(&cc, 100 * RXW_MS, 16, &now);
	ck_assert_uint_eq(cc.cwnd, 256);
	/* Less than an eighth: no sign. */
	slow_round(&cc, 112 * RXW_MS, 16, &now);
	ck_assert_uint_eq(cc.cwnd, 512);
	slow_round(&cc, 130 * RXW_MS, 16, &now);
	before = cc.cwnd;
	ck_assert_uint_lt(before, 1024);
	slow_round(&cc, 130 * RXW_MS, 16, &now);
	ck_assert_uint_le(cc.cwnd, before + before / 4 + 1);
	/* A false alarm: it falls. */
	slow_round(&cc, 100 * RXW_MS, 16, &now);
	before = cc.cwnd;
	slow_round(&cc, 100 * RXW_MS, 16, &now);
	ck_assert_uint_ge(cc.cwnd, 2 * before - 16);
	for (unsigned i = 0; i < 6; i++)
		slow_round(&cc, 150 * RXW_MS, 16, &now);
	ck_assert_uint_ge(cc.cwnd, cc.ssthresh);
	ck_assert_uint_lt(cc.ssthresh, 65535);
}
END_TEST

TEST_MAIN("cc_cubic", curve, reno_friendly, fast_convergence, after_timeout, undo, pauses,
	  mean_window, extremes, late_estimate, long_stage, delay_ends_slow_start)
