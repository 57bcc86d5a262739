/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests of base/rtt.c: loss by time and by count, adaptation to reordering, recovery and PRR.
 */

#include "testing.h"

#include "base/rtt.h"

#define RTT   (80 * RXW_MS)
#define DELAY (90 * RXW_MS) /* 9/8 of it */

static struct rxw_rtt rtt_of(uint64_t rtt)
{
	struct rxw_rtt r;

	rxw_rtt_init(&r);
	rxw_rtt_sample(&r, rtt);
	return r;
}

START_TEST(nothing_acked_nothing_lost)
{
	struct rxw_rtt rtt = rtt_of(RTT);
	struct rxw_recovery r;
	uint64_t at = 0;

	rxw_recovery_init(&r);
	ck_assert(!rxw_recovery_is_lost(&r, &rtt, 1, 0, 1000 * RXW_SEC, &at));
	ck_assert_uint_eq(at, 0);
	rxw_recovery_acked(&r, 5, 0);
	ck_assert(!rxw_recovery_is_lost(&r, &rtt, 5, 0, 1000 * RXW_SEC, &at));
	ck_assert(!rxw_recovery_is_lost(&r, &rtt, 6, 0, 1000 * RXW_SEC, &at));
	ck_assert_uint_eq(at, 0);
}
END_TEST

START_TEST(by_time)
{
	struct rxw_rtt rtt = rtt_of(RTT);
	struct rxw_recovery r;
	uint64_t at = 0;

	rxw_recovery_init(&r);
	rxw_recovery_acked(&r, 2, 1000);
	ck_assert(!rxw_recovery_is_lost(&r, &rtt, 1, 1000, 1000 + DELAY - 1, &at));
	ck_assert_uint_eq(at, 1000 + DELAY);
	ck_assert(rxw_recovery_is_lost(&r, &rtt, 1, 1000, 1000 + DELAY, &at));
	ck_assert(rxw_recovery_is_lost(&r, &rtt, 1, 1000, 1000 + DELAY, NULL));
	ck_assert(!rxw_recovery_is_lost(&r, &rtt, 1, 1000, 1000 + DELAY - 1, NULL));
	/* The earliest of several stays. */
	at = 500;
	ck_assert(!rxw_recovery_is_lost(&r, &rtt, 1, 1000, 2000, &at));
	ck_assert_uint_eq(at, 500);
	at = UINT64_MAX;
	ck_assert(!rxw_recovery_is_lost(&r, &rtt, 1, 1000, 2000, &at));
	ck_assert_uint_eq(at, 1000 + DELAY);
}
END_TEST

START_TEST(by_count)
{
	struct rxw_rtt rtt = rtt_of(RTT);
	struct rxw_recovery r;

	rxw_recovery_init(&r);
	rxw_recovery_acked(&r, 2, 0);
	rxw_recovery_acked(&r, 3, 0);
	ck_assert(!rxw_recovery_is_lost(&r, &rtt, 1, 0, 1, NULL)); /* 2 later packets */
	rxw_recovery_acked(&r, 4, 0);
	ck_assert(rxw_recovery_is_lost(&r, &rtt, 1, 0, 1, NULL)); /* 3 later packets */
	rxw_recovery_acked(&r, 3, 0); /* an older one does not revoke it */
	ck_assert(rxw_recovery_is_lost(&r, &rtt, 1, 0, 1, NULL));
}
END_TEST

/* One ACK for a late packet is no evidence about order: only time decides. */
START_TEST(no_evidence_of_order)
{
	struct rxw_rtt rtt = rtt_of(RTT);
	struct rxw_recovery r;

	rxw_recovery_init(&r);
	rxw_recovery_acked(&r, 100, 0);
	ck_assert(!rxw_recovery_is_lost(&r, &rtt, 1, 0, DELAY - 1, NULL));
	ck_assert(rxw_recovery_is_lost(&r, &rtt, 1, 0, DELAY, NULL));
	rxw_recovery_acked(&r, 90, 0);
	ck_assert(!rxw_recovery_is_lost(&r, &rtt, 1, 0, DELAY - 1, NULL));
	rxw_recovery_acked(&r, 101, 0);
	ck_assert(rxw_recovery_is_lost(&r, &rtt, 1, 0, DELAY - 1, NULL));
}
END_TEST

START_TEST(threshold_rises)
{
	struct rxw_recovery r;

	rxw_recovery_init(&r);
	rxw_recovery_reordered(&r, 2, 0, RTT); /* not caused by the count */
	ck_assert_uint_eq(r.threshold, 3);
	rxw_recovery_reordered(&r, 3, 0, RTT);
	ck_assert_uint_eq(r.threshold, 6);
	rxw_recovery_reordered(&r, 3, 0, RTT);
	ck_assert_uint_eq(r.threshold, 6);
	rxw_recovery_reordered(&r, 40, 0, RTT);
	ck_assert_uint_eq(r.threshold, 41);
	rxw_recovery_reordered(&r, 41, 0, RTT);
	ck_assert_uint_eq(r.threshold, 82);
	rxw_recovery_reordered(&r, 200, 0, RTT);
	rxw_recovery_reordered(&r, 250, 0, RTT);
	ck_assert_uint_eq(r.threshold, 255);
	rxw_recovery_reordered(&r, UINT32_MAX, 0, RTT);
	ck_assert_uint_eq(r.threshold, 255);
}
END_TEST

START_TEST(threshold_decays)
{
	struct rxw_recovery r;

	rxw_recovery_init(&r);
	rxw_recovery_decay(&r, 1000 * RXW_SEC, RTT);
	ck_assert_uint_eq(r.threshold, 3);
	rxw_recovery_reordered(&r, 99, 0, RTT);
	ck_assert_uint_eq(r.threshold, 100);
	rxw_recovery_decay(&r, 16 * RTT - 1, RTT);
	ck_assert_uint_eq(r.threshold, 100);
	rxw_recovery_decay(&r, 16 * RTT, RTT);
	ck_assert_uint_eq(r.threshold, 50);
	rxw_recovery_decay(&r, 31 * RTT, RTT);
	ck_assert_uint_eq(r.threshold, 50);
	rxw_recovery_decay(&r, 32 * RTT, RTT);
	ck_assert_uint_eq(r.threshold, 25);
	rxw_recovery_decay(&r, 80 * RTT, RTT); /* three periods without an ACK */
	ck_assert_uint_eq(r.threshold, 3);
	rxw_recovery_reordered(&r, 99, 0, 0);
	rxw_recovery_decay(&r, UINT64_MAX, 0);
	ck_assert_uint_eq(r.threshold, 3);
}
END_TEST

/* A spurious loss by time raises the delay, up to a limit; later it decays. */
START_TEST(delay_after_spurious_loss)
{
	static const uint64_t want[] = { 90, 100, 120, 160, 240, 240, 240, 240 }; /* ms */
	struct rxw_rtt rtt = rtt_of(RTT), quick = rtt_of(RXW_MS);
	struct rxw_recovery r;

	rxw_recovery_init(&r);
	rxw_recovery_acked(&r, 3, 0);
	rxw_recovery_reordered(&r, 0, 0, RTT); /* how it was detected is unknown */
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		ck_assert(!rxw_recovery_is_lost(&r, &rtt, 1, 0, want[i] * RXW_MS - 1, NULL));
		ck_assert(rxw_recovery_is_lost(&r, &rtt, 1, 0, want[i] * RXW_MS, NULL));
		rxw_recovery_reordered(&r, 2, 0, RTT);
		ck_assert_uint_eq(r.threshold, 3);
	}
	/* Short paths: up to 10 ms. */
	ck_assert(!rxw_recovery_is_lost(&r, &quick, 1, 0, 10 * RXW_MS - 1, NULL));
	ck_assert(rxw_recovery_is_lost(&r, &quick, 1, 0, 10 * RXW_MS, NULL));
	rxw_recovery_decay(&r, 16 * RTT, RTT);
	rxw_recovery_decay(&r, 32 * RTT, RTT);
	rxw_recovery_decay(&r, 64 * RTT, RTT); /* two of them */
	ck_assert(!rxw_recovery_is_lost(&r, &rtt, 1, 0, 160 * RXW_MS - 1, NULL));
	ck_assert(rxw_recovery_is_lost(&r, &rtt, 1, 0, 160 * RXW_MS, NULL));
	rxw_recovery_decay(&r, 1000 * RTT, RTT);
	ck_assert(rxw_recovery_is_lost(&r, &rtt, 1, 0, 90 * RXW_MS, NULL));
}
END_TEST

/* Late packets keep both from decaying; those within a smaller limit do not. */
START_TEST(no_decay_while_reordered)
{
	struct rxw_rtt rtt = rtt_of(RTT);
	struct rxw_recovery r;

	rxw_recovery_init(&r);
	rxw_recovery_late(&r, &rtt, 2, 0, RTT); /* nothing learned, nothing to keep */
	ck_assert_uint_eq(r.threshold_decay_at, 0);
	rxw_recovery_reordered(&r, 99, 0, RTT);
	for (uint64_t now = RTT; now < 100 * RTT; now += 10 * RTT) {
		rxw_recovery_late(&r, &rtt, 50, now, now);
		rxw_recovery_decay(&r, now + 9 * RTT, RTT);
		ck_assert_uint_eq(r.threshold, 100);
	}
	rxw_recovery_late(&r, &rtt, 49, 106 * RTT, 106 * RTT);
	rxw_recovery_decay(&r, 107 * RTT, RTT);
	ck_assert_uint_eq(r.threshold, 50);

	rxw_recovery_init(&r);
	for (int i = 0; i < 3; i++)
		rxw_recovery_reordered(&r, 1, 0, RTT);
	ck_assert_uint_eq(r.lateness, 8);
	rxw_recovery_late(&r, &rtt, 1, 10 * RTT - 120 * RXW_MS, 10 * RTT);
	rxw_recovery_decay(&r, 17 * RTT, RTT);
	ck_assert_uint_eq(r.lateness, 8);
	rxw_recovery_late(&r, &rtt, 1, 25 * RTT - 119 * RXW_MS, 25 * RTT);
	rxw_recovery_decay(&r, 26 * RTT, RTT);
	ck_assert_uint_eq(r.lateness, 4);
}
END_TEST

/* Other calls on the path begin with the learned values, and keep them for 16 RTTs as well. */
START_TEST(learned)
{
	struct rxw_recovery r, other;

	rxw_recovery_init(&r);
	ck_assert_uint_eq(rxw_recovery_learned(&r), 0);
	rxw_recovery_reordered(&r, 2, 0, RTT);
	rxw_recovery_reordered(&r, 30, 0, RTT);
	rxw_recovery_init(&other);
	rxw_recovery_seed(&other, rxw_recovery_learned(&r), RXW_SEC, RTT);
	ck_assert_uint_eq(other.threshold, 31);
	ck_assert_uint_eq(other.lateness, 2);
	rxw_recovery_decay(&other, RXW_SEC + 16 * RTT - 1, RTT);
	ck_assert_uint_eq(other.threshold, 31);
	rxw_recovery_decay(&other, RXW_SEC + 16 * RTT, RTT);
	ck_assert_uint_eq(other.threshold, 15);
	ck_assert_uint_eq(other.lateness, 1);
	rxw_recovery_init(&other);
	rxw_recovery_seed(&other, 0, RXW_SEC, RTT);
	ck_assert_uint_eq(other.threshold, 3);
	ck_assert_uint_eq(other.threshold_decay_at, 0);
	rxw_recovery_seed(&other, UINT32_MAX, RXW_SEC, RTT);
	ck_assert_uint_eq(other.threshold, 255);
	ck_assert_uint_eq(other.lateness, 128);
}
END_TEST

START_TEST(recovery_ends)
{
	struct rxw_recovery r;

	rxw_recovery_init(&r);
	ck_assert(!rxw_recovery_active(&r));
	rxw_recovery_acked(&r, 20, 0);
	ck_assert(rxw_recovery_enter(&r, 10, 50, 30));
	ck_assert(rxw_recovery_active(&r));
	rxw_recovery_acked(&r, 50, 0);
	ck_assert(rxw_recovery_active(&r));
	rxw_recovery_acked(&r, 51, 0); /* sent after the loss was detected */
	ck_assert(!rxw_recovery_active(&r));
	/* A loss of the old flight that is detected only now is no new event. */
	ck_assert(!rxw_recovery_enter(&r, 49, 60, 30));
	ck_assert(rxw_recovery_enter(&r, 52, 60, 30));
	ck_assert(rxw_recovery_active(&r));
}
END_TEST

/* Everything works across wrapping order numbers. */
START_TEST(orders_wrap)
{
	struct rxw_rtt rtt = rtt_of(RTT);
	struct rxw_recovery r;

	rxw_recovery_init(&r);
	rxw_recovery_acked(&r, 0xfffffffdu, 0);
	rxw_recovery_acked(&r, 2, 0);
	ck_assert_uint_eq(r.highest_order, 2);
	ck_assert(rxw_recovery_is_lost(&r, &rtt, 0xfffffffeu, 0, 1, NULL));
	ck_assert(!rxw_recovery_is_lost(&r, &rtt, 0xffffffffu + 1u, 0, 1, NULL));
	ck_assert(rxw_recovery_enter(&r, 0xfffffffeu, 10, 8));
	ck_assert(rxw_recovery_active(&r));
	rxw_recovery_acked(&r, 11, 0);
	ck_assert(!rxw_recovery_active(&r));
	/* An event half the number space ago does not hide a new one. */
	rxw_recovery_acked(&r, 0x50000000u, 0);
	rxw_recovery_acked(&r, 0xa0000000u, 0);
	ck_assert(rxw_recovery_enter(&r, 0x9fffffffu, 0xa0000001u, 8));
}
END_TEST

/*
 * A link that delays each packet by a random time and loses none, with reordering reported as a
 * sender would see it: the share of spurious losses must fall to almost nothing. A fixed count of 3
 * would call a third of the packets lost.
 */
START_TEST(reordering_link)
{
	enum {
		N = 20000,
		DEPTH = 20
	};
	static uint32_t arrival[N + DEPTH];
	uint64_t state = test_seed();
	struct rxw_rtt rtt = rtt_of(1000 * RXW_SEC); /* time never decides here */
	struct rxw_recovery r;
	unsigned early = 0, late = 0;
	uint32_t left = 0;
	static bool arrived[N + DEPTH], called[N + DEPTH];

	memset(arrived, 0, sizeof(arrived));
	memset(called, 0, sizeof(called));
	/* Shuffle within a window. */
	for (uint32_t i = 0; i < N; i++)
		arrival[i] = i + 1;
	for (uint32_t i = 0; i + DEPTH < N; i++) {
		uint32_t k = i + (uint32_t)test_below(&state, DEPTH), t = arrival[i];

		arrival[i] = arrival[k];
		arrival[k] = t;
	}
	rxw_recovery_init(&r);
	for (uint32_t i = 0; i < N; i++) {
		uint32_t order = arrival[i];

		arrived[order] = true;
		if (called[order])
			rxw_recovery_reordered(&r, r.highest_order - order, i, 100);
		rxw_recovery_acked(&r, order, 0);
		rxw_recovery_decay(&r, i, 100);
		while (left + 1 <= N && arrived[left + 1])
			left++;
		for (uint32_t o = left + 1; o <= r.highest_order; o++) {
			if (arrived[o] || called[o] ||
			    !rxw_recovery_is_lost(&r, &rtt, o, 0, 1, NULL))
				continue;
			called[o] = true;
			if (i < N / 10)
				early++;
			else
				late++;
		}
	}
	ck_assert_uint_gt(early, 0);
	ck_assert_msg(late < N / 50, "%u of %u called lost though none was (%u at first)", late, N,
		      early);
}
END_TEST

START_TEST(prr_first_goes_out)
{
	struct rxw_recovery r;

	rxw_recovery_init(&r);
	rxw_recovery_enter(&r, 1, 100, 100);
	ck_assert_uint_eq(rxw_recovery_prr(&r, 99, 50), 1);
	rxw_recovery_sent(&r, 1);
	ck_assert_uint_eq(rxw_recovery_prr(&r, 99, 50), 0);
	rxw_recovery_delivered(&r, 2);
	ck_assert_uint_eq(rxw_recovery_prr(&r, 98, 50), 0);
	rxw_recovery_delivered(&r, 1);
	ck_assert_uint_eq(rxw_recovery_prr(&r, 97, 50), 1);
}
END_TEST

/*
 * One loss event with `lost` of `flight` packets gone. While packets are delivered one by one, the
 * number sent never exceeds the proportion, and the flight ends at ssthresh (or near it, if the
 * losses went below it).
 */
START_TEST(prr_bounds)
{
	for (uint32_t flight = 4; flight <= 255; flight += 7) {
		for (uint32_t lost = 1; lost < flight; lost += 1 + flight / 9) {
			uint32_t ssthresh = flight / 2 > 2 ? flight / 2 : 2;
			uint32_t pipe = flight - lost, sent = 0, delivered = 0;
			struct rxw_recovery r;

			rxw_recovery_init(&r);
			ck_assert(rxw_recovery_enter(&r, 1, flight, flight));
			for (uint32_t i = 0; i < flight - lost; i++) {
				uint32_t n;

				pipe--;
				delivered++;
				rxw_recovery_delivered(&r, 1);
				n = rxw_recovery_prr(&r, pipe, ssthresh);
				rxw_recovery_sent(&r, n);
				sent += n;
				pipe += n;
				ck_assert_uint_le(sent, delivered + i + 1);
				if (pipe > ssthresh)
					ck_assert_uint_le(sent, delivered * ssthresh / flight + 1);
			}
			ck_assert_uint_le(pipe, ssthresh > 1 ? ssthresh + 1 : 2);
			if (lost <= flight / 2)
				ck_assert_uint_ge(pipe + 2, ssthresh);
		}
	}
}
END_TEST

START_TEST(prr_extremes)
{
	struct rxw_recovery r;

	rxw_recovery_init(&r);
	ck_assert_uint_eq(rxw_recovery_prr(&r, 10, 0), 1); /* flight unknown: no division by zero */
	rxw_recovery_enter(&r, 1, 2, UINT32_MAX);
	rxw_recovery_delivered(&r, UINT32_MAX);
	ck_assert_uint_eq(rxw_recovery_prr(&r, UINT32_MAX, UINT32_MAX - 1), UINT32_MAX - 1);
	rxw_recovery_sent(&r, UINT32_MAX);
	ck_assert_uint_eq(rxw_recovery_prr(&r, 0, UINT32_MAX), 1);
	ck_assert_uint_eq(rxw_recovery_prr(&r, 5, 5), 0);
}
END_TEST

TEST_MAIN("recovery", nothing_acked_nothing_lost, by_time, by_count, no_evidence_of_order,
	  threshold_rises, threshold_decays, delay_after_spurious_loss, no_decay_while_reordered,
	  learned, recovery_ends, orders_wrap, reordering_link, prr_first_goes_out, prr_bounds,
	  prr_extremes)
