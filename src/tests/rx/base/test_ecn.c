/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of ECN in base/path_probe.c: counts, each end of the validation, reports that lie. */

#include "testing.h"

#include "base/path_probe.h"
#include "base/hash.h"

/* A sender and what a receiver has counted of its packets. */
struct pair {
	struct rxw_ecn e;
	struct rxw_ecn_counts counts;
	uint32_t order;
};

static struct pair begun(enum rxw_ecn_state known)
{
	struct pair p = {0};

	rxw_ecn_begin(&p.e, known);
	return p;
}

/* Sends packets, marked if the state wants it. Returns how many were. */
static uint32_t send_packets(struct pair *p, uint32_t n)
{
	uint32_t marked = 0;

	while (n > 0) {
		uint32_t k = rxw_ecn_most(&p->e, n);

		ck_assert_uint_gt(k, 0);
		if (rxw_ecn_marks(&p->e)) {
			rxw_ecn_sent(&p->e, p->order + 1, k);
			marked += k;
		}
		p->order += k;
		n -= k;
	}
	return marked;
}

static uint32_t report(struct pair *p, uint32_t ce, uint32_t ect0)
{
	rxw_ecn_count(&p->counts, RXW_ECN_CE, ce);
	rxw_ecn_count(&p->counts, RXW_ECN_ECT0, ect0);
	return rxw_ecn_report(&p->e, p->counts);
}

static void acked(struct pair *p, uint32_t n)
{
	rxw_ecn_acked(&p->e, n, true);
}

static struct pair capable(void)
{
	struct pair p = begun(RXW_ECN_OFF);

	ck_assert_uint_eq(send_packets(&p, 100), RXW_ECN_TEST);
	acked(&p, RXW_ECN_TEST);
	ck_assert_uint_eq(report(&p, 0, RXW_ECN_TEST), 0);
	ck_assert_uint_eq(p.e.state, RXW_ECN_CAPABLE);
	return p;
}

START_TEST(bits_are_counted)
{
	struct rxw_ecn_counts c = {65530, 65535};

	rxw_ecn_count(&c, RXW_ECN_NOT, 9);
	rxw_ecn_count(&c, RXW_ECN_ECT1, 9);
	ck_assert(c.ce == 65530 && c.ect0 == 65535);
	rxw_ecn_count(&c, RXW_ECN_CE, 10);
	rxw_ecn_count(&c, RXW_ECN_ECT0, 1);
	ck_assert(c.ce == 4 && c.ect0 == 0);
}
END_TEST

START_TEST(off_without_reports)
{
	struct pair p = {0};

	ck_assert_uint_eq(send_packets(&p, 1000), 0);
	rxw_ecn_again(&p.e);
	rxw_ecn_lost(&p.e, 1, 100);
	ck_assert_uint_eq(rxw_ecn_report(&p.e, (struct rxw_ecn_counts){5, 5}), 0);
	ck_assert_uint_eq(p.e.state, RXW_ECN_OFF);
	ck_assert(!rxw_ecn_failed(&p.e));
}
END_TEST

START_TEST(a_test_comes_first)
{
	struct pair p = begun(RXW_ECN_OFF);

	ck_assert_uint_eq(p.e.state, RXW_ECN_TESTING);
	ck_assert_uint_eq(send_packets(&p, 4), 4);
	ck_assert_uint_eq(p.e.state, RXW_ECN_TESTING);
	ck_assert_uint_eq(rxw_ecn_most(&p.e, 45), RXW_ECN_TEST - 4);
	ck_assert_uint_eq(send_packets(&p, 45), RXW_ECN_TEST - 4);
	ck_assert_uint_eq(p.e.state, RXW_ECN_UNKNOWN);
	ck_assert(!rxw_ecn_marks(&p.e));
	/* A report without a mark says nothing as long as no marked packet is acknowledged. */
	ck_assert_uint_eq(report(&p, 0, 0), 0);
	ck_assert_uint_eq(p.e.state, RXW_ECN_UNKNOWN);
	acked(&p, 1);
	report(&p, 0, 1);
	ck_assert_uint_eq(p.e.state, RXW_ECN_CAPABLE);
	ck_assert_uint_eq(send_packets(&p, 45), 45);
	ck_assert_uint_eq(p.e.sent, 45 + RXW_ECN_TEST);
}
END_TEST

START_TEST(earlier_calls_are_remembered)
{
	struct pair p = begun(RXW_ECN_CAPABLE);

	ck_assert_uint_eq(send_packets(&p, 45), 45);
	for (unsigned s = RXW_ECN_BLEACHED; s <= RXW_ECN_SILENT; s++) {
		p = begun((enum rxw_ecn_state)s);
		ck_assert(rxw_ecn_failed(&p.e) && p.e.state == s && p.e.noted == s);
		ck_assert_uint_eq(send_packets(&p, 45), 0);
	}
	/* A licence that is repeated changes nothing. */
	p = capable();
	rxw_ecn_begin(&p.e, RXW_ECN_OFF);
	ck_assert_uint_eq(p.e.state, RXW_ECN_CAPABLE);
}
END_TEST

START_TEST(bleached_packets)
{
	struct pair p = begun(RXW_ECN_OFF);

	send_packets(&p, 10);
	acked(&p, 1);
	report(&p, 0, 0);
	ck_assert_uint_eq(p.e.state, RXW_ECN_BLEACHED);
	/* One of many, in the middle. */
	p = capable();
	send_packets(&p, 50);
	acked(&p, 20);
	report(&p, 0, 20);
	ck_assert_uint_eq(p.e.state, RXW_ECN_CAPABLE);
	acked(&p, 30);
	report(&p, 5, 24);
	ck_assert_uint_eq(p.e.state, RXW_ECN_BLEACHED);
	ck_assert_uint_eq(send_packets(&p, 50), 0);
}
END_TEST

START_TEST(packets_sent_again_prove_nothing)
{
	struct pair p = capable();

	/* Neither that marks pass ... */
	send_packets(&p, 100);
	rxw_ecn_acked(&p.e, 40, false);
	report(&p, 0, 0);
	ck_assert_uint_eq(p.e.state, RXW_ECN_CAPABLE);
	acked(&p, 60);
	report(&p, 0, 60);
	ck_assert_uint_eq(p.e.state, RXW_ECN_CAPABLE);
	/* ... nor, if the original arrived, that they pass later. */
	send_packets(&p, 100);
	rxw_ecn_acked(&p.e, 100, false);
	report(&p, 0, 100);
	ck_assert_uint_eq(p.e.state, RXW_ECN_CAPABLE);
	send_packets(&p, 10);
	acked(&p, 10);
	report(&p, 0, 9);
	ck_assert_uint_eq(p.e.state, RXW_ECN_BLEACHED);
}
END_TEST

START_TEST(reports_ahead_of_the_table)
{
	struct pair p = capable();

	send_packets(&p, 1000);
	/* An ACK may say less of packets than of marks; one that is overtaken brings the rest. */
	acked(&p, 10);
	report(&p, 1, 700);
	ck_assert_uint_eq(p.e.state, RXW_ECN_CAPABLE);
	acked(&p, 690);
	report(&p, 0, 0);
	acked(&p, 1);
	report(&p, 0, 0);
	ck_assert_uint_eq(p.e.state, RXW_ECN_CAPABLE);
	acked(&p, 1);
	report(&p, 0, 0);
	ck_assert_uint_eq(p.e.state, RXW_ECN_BLEACHED);
}
END_TEST

START_TEST(more_marks_than_packets)
{
	struct pair p = begun(RXW_ECN_OFF);

	/* Before any packet was marked. */
	report(&p, 1, 0);
	ck_assert_uint_eq(p.e.state, RXW_ECN_MANGLED);
	p = capable();
	send_packets(&p, 20);
	acked(&p, 15);
	report(&p, 3, 17);
	ck_assert_uint_eq(p.e.state, RXW_ECN_CAPABLE);
	report(&p, 1, 0);
	ck_assert_uint_eq(p.e.state, RXW_ECN_MANGLED);
}
END_TEST

START_TEST(counts_that_fall)
{
	for (unsigned which = 0; which < 2; which++) {
		struct pair p = capable();

		send_packets(&p, 20000);
		acked(&p, 10000);
		ck_assert_uint_eq(report(&p, 100, 9900), 100);
		acked(&p, 100);
		if (which == 0)
			p.counts.ce--;
		else
			p.counts.ect0 -= 5;
		report(&p, 0, 0);
		ck_assert_uint_eq(p.e.state, RXW_ECN_MANGLED);
	}
}
END_TEST

START_TEST(counts_wrap_around)
{
	struct pair p = capable();

	for (unsigned i = 0; i < 300; i++) {
		send_packets(&p, 3000);
		acked(&p, 3000);
		ck_assert_uint_eq(report(&p, 1000, 2000), 1000);
		ck_assert_uint_eq(p.e.state, RXW_ECN_CAPABLE);
	}
	ck_assert_uint_eq(p.e.ce, 300000);
	/* The largest window at once. */
	send_packets(&p, 65535);
	acked(&p, 65535);
	ck_assert_uint_eq(report(&p, 65535, 0), 65535);
	ck_assert_uint_eq(p.e.state, RXW_ECN_CAPABLE);
}
END_TEST

START_TEST(no_reports)
{
	struct pair p = capable();

	for (unsigned i = 0; i < 65535; i++) {
		send_packets(&p, 1);
		acked(&p, 1);
	}
	ck_assert_uint_eq(p.e.state, RXW_ECN_CAPABLE);
	send_packets(&p, 1);
	acked(&p, 1);
	ck_assert_uint_eq(p.e.state, RXW_ECN_SILENT);
}
END_TEST

START_TEST(marked_packets_are_lost)
{
	struct pair p = begun(RXW_ECN_OFF);

	send_packets(&p, 30);
	rxw_ecn_lost(&p.e, 1, 9);
	ck_assert_uint_eq(p.e.state, RXW_ECN_UNKNOWN);
	rxw_ecn_lost(&p.e, 10, 1);
	/* Once may be chance. */
	ck_assert_uint_eq(p.e.state, RXW_ECN_TESTING);
	ck_assert_uint_eq(send_packets(&p, 30), RXW_ECN_TEST);
	rxw_ecn_lost(&p.e, 31, 10);
	ck_assert_uint_eq(p.e.state, RXW_ECN_LOST);
}
END_TEST

START_TEST(losses_among_others)
{
	struct pair p = capable();

	for (unsigned i = 0; i < 100; i++) {
		send_packets(&p, 10);
		rxw_ecn_lost(&p.e, p.order - 9, 9);
		acked(&p, 1);
		report(&p, 0, 1);
		ck_assert_uint_eq(p.e.state, RXW_ECN_CAPABLE);
	}
	/* A whole window is lost: the path is tested, and what was sent before does not count. */
	send_packets(&p, 500);
	rxw_ecn_lost(&p.e, p.order - 499, 100);
	ck_assert_uint_eq(p.e.state, RXW_ECN_TESTING);
	rxw_ecn_lost(&p.e, p.order - 399, 100);
	send_packets(&p, 10);
	rxw_ecn_lost(&p.e, p.order - 309, 300);
	ck_assert_uint_eq(p.e.state, RXW_ECN_UNKNOWN);
	acked(&p, 10);
	report(&p, 0, 10);
	ck_assert_uint_eq(p.e.state, RXW_ECN_CAPABLE);
}
END_TEST

START_TEST(one_reaction_in_a_round_trip)
{
	struct pair p = capable();

	send_packets(&p, 100);
	ck_assert(rxw_ecn_react(&p.e, 20, p.order, false));
	for (uint32_t i = 21; i <= p.order; i++)
		ck_assert(!rxw_ecn_react(&p.e, i, p.order + i, false));
	ck_assert(rxw_ecn_react(&p.e, p.order + 1, p.order + 100, false));
	/* Orders wrap around. */
	p.e.cut_order = UINT32_MAX - 5;
	ck_assert(!rxw_ecn_react(&p.e, UINT32_MAX - 5, 7, false));
	ck_assert(rxw_ecn_react(&p.e, 2, 7, false));
	ck_assert(!rxw_ecn_react(&p.e, 7, 9, false));
}
END_TEST

START_TEST(nothing_but_ce)
{
	struct pair p = begun(RXW_ECN_OFF);
	unsigned rounds = 0;

	while (!rxw_ecn_failed(&p.e)) {
		uint32_t sent = send_packets(&p, 20);

		ck_assert_uint_eq(sent, RXW_ECN_TEST);
		acked(&p, sent);
		ck_assert_uint_eq(report(&p, sent, 0), sent);
		ck_assert(rxw_ecn_react(&p.e, p.order, p.order, false));
		ck_assert_uint_le(++rounds, 3);
	}
	ck_assert_uint_eq(p.e.state, RXW_ECN_MANGLED);
	ck_assert_uint_eq(rounds, 3);
	/* A path that kept ECT(0) may be full for some round trips. */
	p = capable();
	for (rounds = 0; !rxw_ecn_failed(&p.e); rounds++) {
		send_packets(&p, 20);
		acked(&p, 20);
		report(&p, 20, 0);
		ck_assert(rxw_ecn_react(&p.e, p.order, p.order, false));
		ck_assert_uint_le(rounds, 20);
	}
	ck_assert_uint_eq(rounds, 11); /* the first one still saw the test's ECT(0) */
	/* A queue is the cause, however long it stays. */
	p = capable();
	for (unsigned i = 0; i < 300; i++) {
		send_packets(&p, 20);
		acked(&p, 20);
		report(&p, 20, 0);
		ck_assert(rxw_ecn_react(&p.e, p.order, p.order, true));
	}
	ck_assert_uint_eq(p.e.state, RXW_ECN_CAPABLE);
	p = capable();
	for (unsigned i = 0; i < 100; i++) {
		send_packets(&p, 20);
		acked(&p, 20);
		report(&p, 20 - (i % 9 == 0), i % 9 == 0);
		ck_assert(rxw_ecn_react(&p.e, p.order, p.order, false));
	}
	ck_assert_uint_eq(p.e.state, RXW_ECN_CAPABLE);
}
END_TEST

/* A receiver that sends any counts: the state stays sane, and no more CE is seen than was sent. */
START_TEST(reports_that_lie)
{
	uint64_t random = 1;

	for (unsigned k = 0; k < 2000; k++) {
		struct pair p = begun(k % 3 ? RXW_ECN_OFF : RXW_ECN_CAPABLE);
		uint32_t open = 0;

		for (unsigned i = 0; i < 50; i++) {
			uint32_t n = (uint32_t)(rxw_prng(&random) % 200) + 1;

			open += send_packets(&p, n);
			n = open ? (uint32_t)(rxw_prng(&random) % (open + 1)) : 0;
			if (n > 0)
				rxw_ecn_acked(&p.e, n, rxw_prng(&random) % 8);
			open -= n;
			p.counts.ce += (uint16_t)(rxw_prng(&random) % (k % 5 ? 20 : 65536));
			p.counts.ect0 += (uint16_t)(k % 2 ? n : rxw_prng(&random) % 200);
			rxw_ecn_report(&p.e, p.counts);
			if (rxw_prng(&random) % 4 == 0)
				rxw_ecn_react(&p.e, p.order, p.order, false);
			if (rxw_prng(&random) % 16 == 0)
				rxw_ecn_lost(&p.e, p.order, n % 12);
			ck_assert_uint_le(p.e.state, RXW_ECN_SILENT);
			ck_assert_uint_le(p.e.ce, p.e.sent);
			ck_assert_str_ne(rxw_ecn_name((enum rxw_ecn_state)p.e.state), "");
		}
	}
}
END_TEST

TEST_MAIN("ecn", bits_are_counted, off_without_reports, a_test_comes_first,
	  earlier_calls_are_remembered, bleached_packets, packets_sent_again_prove_nothing,
	  reports_ahead_of_the_table, more_marks_than_packets, counts_that_fall, counts_wrap_around,
	  no_reports, marked_packets_are_lost, losses_among_others, one_reaction_in_a_round_trip,
	  nothing_but_ce, reports_that_lie)
