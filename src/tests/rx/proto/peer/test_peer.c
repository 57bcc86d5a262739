/* SPDX-License-Identifier: BSD-2-Clause */
/* Peers: lookup, expiry, address validation, the amplification limit, rates. */
#include <arpa/inet.h>
#include <string.h>

#include "tests/rx/proto/bench.h"

static const uint64_t key[2] = {5, 6};

static void address(struct rxw_addr *a, uint32_t host, unsigned port)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};

	in.sin_addr.s_addr = htonl(host);
	rxw_addr_set(a, (struct sockaddr *)&in, sizeof(in));
}

START_TEST(table)
{
	struct rxw_peer_table *t = rxw_peer_table_create(key, 1000, NULL);
	struct rxw_addr a;
	struct rxw_peer *p[500];

	for (unsigned i = 0; i < 500; i++) {
		address(&a, 0x0a000000 + i / 2, 7000 + i % 2);
		p[i] = rxw_peer_get(t, &a, 0);
	}
	ck_assert_uint_eq(rxw_peer_count(t), 500);
	for (unsigned i = 0; i < 500; i++) {
		address(&a, 0x0a000000 + i / 2, 7000 + i % 2);
		ck_assert_ptr_eq(rxw_peer_get(t, &a, 0), p[i]);
		rxw_peer_unref(p[i], 10 * RXW_SEC);
		ck_assert_ptr_nonnull(rxw_peer_at(t, i));
	}
	ck_assert_ptr_null(rxw_peer_at(t, 500));
	/* Successive scans visit every peer once, without rescanning slots. */
	for (unsigned few = 0; few < 2; few++) {
		struct rxw_listing l = {0};
		struct rxw_peer *seen[500];
		unsigned all = 1000000, asked = 0;

		for (unsigned i = 0; i < 500; asked++) {
			unsigned steps = few ? 3 : all, given = steps;

			seen[i] = rxw_peer_nth(t, &l, i, &steps);
			all -= given - steps;
			if (!seen[i]) {
				ck_assert_uint_eq(steps, 0);
				continue;
			}
			for (unsigned k = 0; k < i; k++)
				ck_assert_ptr_ne(seen[k], seen[i]);
			i++;
		}
		ck_assert_uint_ge(asked, few ? 510 : 500);
		ck_assert_uint_ge(all, 1000000 - 5000);
		all = 3;
		ck_assert_ptr_null(rxw_peer_nth(t, &l, 500, &all));
		ck_assert_uint_gt(all, 0);
	}
	/* Referenced ones stay; others for 300 s. */
	for (unsigned i = 0; i < 400; i++)
		rxw_peer_unref(p[i], 10 * RXW_SEC);
	rxw_peer_reap(t, 309 * RXW_SEC);
	ck_assert_uint_eq(rxw_peer_count(t), 500);
	/* A large table is scanned in parts. */
	rxw_peer_reap(t, 311 * RXW_SEC);
	ck_assert_uint_lt(rxw_peer_count(t), 500);
	ck_assert_uint_gt(rxw_peer_count(t), 100);
	for (unsigned i = 1; i < 64; i++)
		rxw_peer_reap(t, 311 * RXW_SEC);
	ck_assert_uint_eq(rxw_peer_count(t), 100);
	rxw_peer_table_destroy(t);
}
END_TEST

/* What is measured from one of our addresses is not known of the path from another one. */
START_TEST(paths)
{
	struct rxw_peer_table *t = rxw_peer_table_create(key, 1000, NULL);
	struct rxw_addr a, here, there;
	struct rxw_peer *any, *p;

	address(&a, 0x0a000001, 7000);
	address(&here, 0x0a000002, 0);
	address(&there, 0x0a000003, 0);
	any = rxw_peer_get(t, &a, 0);
	p = rxw_peer_get_from(t, &a, &here, 0);
	ck_assert_ptr_ne(p, any);
	ck_assert_ptr_ne(rxw_peer_get_from(t, &a, &there, 0), p);
	ck_assert_ptr_eq(rxw_peer_get_from(t, &a, &here, 0), p);
	ck_assert_ptr_eq(rxw_peer_get_from(t, &a, NULL, 0), any);
	ck_assert_ptr_eq(rxw_peer_find(t, &a), any);
	ck_assert_uint_eq(rxw_peer_count(t), 3);
	rxw_peer_table_destroy(t);
}
END_TEST

static struct rxw_peer *peer_of(struct rxw_peer_table *t, uint32_t host, uint16_t port)
{
	struct rxw_addr a;

	address(&a, host, port);
	return rxw_peer_get(t, &a, RXW_SEC);
}

/* A million addresses that send once: memory stays bounded, and other peers are not lost. */
START_TEST(forged_addresses)
{
	struct rxw_peer_table *t = rxw_peer_table_create(key, 1000, NULL);
	struct rxw_peer *used[100], *proven[100], *p;
	unsigned most = 0;

	for (unsigned i = 0; i < 100; i++) {
		used[i] = peer_of(t, 0x0a000001, (uint16_t)(1000 + i));
		proven[i] = peer_of(t, 0x0a000002, (uint16_t)(1000 + i));
		rxw_peer_set_validated(proven[i], RXW_SEC);
		rxw_peer_unref(proven[i], RXW_SEC);
	}
	for (unsigned i = 0; i < 1000000; i++) {
		p = peer_of(t, 0xc0000000 + i % 10000, (uint16_t)(1 + i / 100));
		ck_assert_ptr_nonnull(p);
		rxw_peer_unref(p, RXW_SEC);
		if (rxw_peer_count(t) > most)
			most = rxw_peer_count(t);
	}
	ck_assert_uint_le(most, 4096);
	for (unsigned i = 0; i < 100; i++) {
		ck_assert_ptr_eq(peer_of(t, 0x0a000001, (uint16_t)(1000 + i)), used[i]);
		ck_assert_ptr_eq(peer_of(t, 0x0a000002, (uint16_t)(1000 + i)), proven[i]);
	}
	rxw_peer_table_destroy(t);
}
END_TEST

/* Validation costs a round trip, and the number of records is bounded, too. */
START_TEST(many_proven_addresses)
{
	struct rxw_peer_table *t = rxw_peer_table_create(key, 1000, NULL);
	unsigned most = 0;

	for (unsigned i = 0; i < 300000; i++) {
		struct rxw_peer *p = peer_of(t, 0xc0000000 + i, 7001);

		rxw_peer_set_validated(p, RXW_SEC);
		rxw_peer_unref(p, RXW_SEC);
		if (rxw_peer_count(t) > most)
			most = rxw_peer_count(t);
	}
	ck_assert_uint_ge(most, 65536);
	ck_assert_uint_le(most, 131072);
	rxw_peer_table_destroy(t);
}
END_TEST

static bool maybe(const struct rxw_peer_table *t, uint32_t host, uint64_t now)
{
	struct rxw_addr a;

	address(&a, host, 7001);
	return rxw_peer_maybe_validated(t, &a, now);
}

/*
 * A validation is recognised for its whole lifetime, with few false positives. Each part of the
 * filter is reused within ten minutes.
 */
START_TEST(marks_of_the_proven)
{
	struct rxw_peer_table *t = rxw_peer_table_create(key, 1000, NULL);
	unsigned unseen = 0, mistaken = 0, asked = 0;

	for (uint64_t s = 1; s < 600; s++) {
		uint64_t now = s * RXW_SEC + 999 * RXW_MS;

		rxw_peer_reap(t, now);
		for (unsigned i = 0; i < 10; i++) {
			struct rxw_peer *p = peer_of(t, 0x0a000000 + (uint32_t)s * 10 + i, 7001);

			rxw_peer_set_validated(p, now);
			rxw_peer_unref(p, now);
		}
		for (uint64_t ago = 0; ago < 60 && ago < s; ago++)
			for (unsigned i = 0; i < 10; i++)
				unseen += !maybe(t, 0x0a000000 + (uint32_t)(s - ago) * 10 + i, now);
		for (unsigned i = 0; i < 10; i++, asked += 2) {
			mistaken += maybe(t, 0x14000000 + (uint32_t)s * 10 + i, now);
			/* Validated once, but more than two minutes ago. */
			mistaken +=
				s > 120 && maybe(t, 0x0a000000 + (uint32_t)(s - 121) * 10 + i, now);
		}
	}
	ck_assert_uint_eq(unseen, 0);
	/* At most 1,200 of 65,536 slots are marked. */
	ck_assert_uint_lt(mistaken, asked / 20);
	rxw_peer_table_destroy(t);
}
END_TEST

START_TEST(local)
{
	struct rxw_peer_table *t = rxw_peer_table_create(key, 1000, NULL);
	struct rxw_addr a;

	address(&a, 0x7f000001, 1);
	ck_assert(rxw_peer_get(t, &a, 0)->local);
	address(&a, 0x0a000001, 1);
	ck_assert(!rxw_peer_get(t, &a, 0)->local);
	rxw_peer_table_destroy(t);
}
END_TEST

/* What paths carry: kept for five minutes, and only for addresses that are known to be right. */
START_TEST(learnt)
{
	struct rxw_peer_table *t = rxw_peer_table_create(key, 1000, NULL);
	struct rxw_cc_path path = {5000ull << RXW_CC_RATE_SHIFT, 20 * RXW_MS}, got;
	uint64_t now = RXW_SEC;
	struct rxw_addr a;
	struct rxw_peer *p;

	address(&a, 0x0a000001, 7000);
	p = rxw_peer_get(t, &a, now);
	rxw_peer_learn(p, false, &path, now);
	rxw_peer_learn_window(p, false, 4000, now);
	ck_assert(!rxw_peer_recall(p, &got, now));
	ck_assert_uint_eq(rxw_peer_recall_window(p, now), 0);
	rxw_peer_set_validated(p, now);
	rxw_peer_learn(p, false, &path, now);
	rxw_peer_learn_window(p, false, 65535, now);
	ck_assert(rxw_peer_recall(p, &got, now + 299 * RXW_SEC));
	ck_assert_uint_eq(got.rate, path.rate);
	ck_assert_uint_eq(got.rtt, path.rtt);
	ck_assert_uint_eq(rxw_peer_recall_window(p, now + 299 * RXW_SEC), 65535);
	ck_assert(!rxw_peer_recall(p, &got, now + 301 * RXW_SEC));
	ck_assert_uint_eq(rxw_peer_recall_window(p, now + 301 * RXW_SEC), 0);
	rxw_peer_forget(p);
	ck_assert(!rxw_peer_recall(p, &got, now));
	/* A client has chosen its server. */
	rxw_peer_learn(p, true, &path, now + 1000 * RXW_SEC);
	ck_assert(rxw_peer_recall(p, &got, now + 1000 * RXW_SEC));
	rxw_peer_unref(p, now);
	rxw_peer_table_destroy(t);
}
END_TEST

/* Calls that share a path: their mean, while there are two; and the path's rate is that of all. */
START_TEST(shared)
{
	struct rxw_peer_table *t = rxw_peer_table_create(key, 1000, NULL);
	struct rxw_cc_path path = {2000ull << RXW_CC_RATE_SHIFT, 20 * RXW_MS}, got;
	const uint64_t one = 1ull << RXW_CC_RATE_SHIFT;
	struct rxw_addr a;
	struct rxw_peer *p;

	address(&a, 0x0a000001, 7000);
	p = rxw_peer_get(t, &a, RXW_SEC);
	ck_assert_uint_eq(rxw_peer_fair(p), 0);
	rxw_peer_share(p, 0, 1000 * one);
	ck_assert_uint_eq(rxw_peer_fair(p), 0);
	rxw_peer_share(p, 0, 3000 * one);
	ck_assert_uint_eq(rxw_peer_fair(p), 2000 * one);
	rxw_peer_learn(p, true, &path, RXW_SEC);
	ck_assert(rxw_peer_recall(p, &got, RXW_SEC));
	ck_assert_uint_eq(got.rate, 4000 * one);
	rxw_peer_share(p, 3000 * one, 1000 * one);
	ck_assert_uint_eq(rxw_peer_fair(p), 1000 * one);
	rxw_peer_share(p, 1000 * one, 0);
	rxw_peer_share(p, 1000 * one, 0);
	ck_assert_uint_eq(rxw_peer_fair(p), 0);
	rxw_peer_learn(p, true, &path, RXW_SEC);
	ck_assert(rxw_peer_recall(p, &got, RXW_SEC));
	ck_assert_uint_eq(got.rate, path.rate);
	rxw_peer_unref(p, RXW_SEC);
	rxw_peer_table_destroy(t);
}
END_TEST

static uint64_t least_of(struct rxw_peer *p, uint64_t rtt, uint64_t waited, uint64_t now)
{
	rxw_peer_learn_rtt(p, rtt, waited, now);
	return atomic_load(&p->least_rtt);
}

/*
 * The clock of time stamps is set while answers are in our socket: they seem to have been there for longer, by less
 * than the round trip or by more, or not at all. The path is as long as before.
 */
START_TEST(a_clock_that_is_set)
{
	struct rxw_peer_table *t = rxw_peer_table_create(key, 1000, NULL);
	const uint64_t rtt = 40 * RXW_MS, steps[] = {rtt - 1, rtt - RXW_MS / 2, rtt, 2 * rtt, RXW_SEC, 0};
	struct rxw_addr a;

	for (uint32_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		uint64_t now = RXW_SEC;
		struct rxw_peer *p;

		address(&a, 0x0a000001 + i, 7000);
		p = rxw_peer_get(t, &a, 0);
		/* The first answer of all, others of the same flight, and a later one that waited as usual. */
		for (unsigned k = 0; k < 5; k++)
			ck_assert_uint_eq(least_of(p, rtt, steps[i], now += rtt / 5), rtt);
		ck_assert_uint_ge(least_of(p, rtt, RXW_MS, now += rtt), rtt - RXW_MS);
		/* A time that two packets show is believed, if one was sent after the answer to the other. */
		ck_assert_uint_eq(least_of(p, rtt, RXW_MS, now += rtt), rtt - RXW_MS);
		/* Then the same again, to a path that is known. */
		ck_assert_uint_eq(least_of(p, rtt, steps[i], now += 2 * rtt), rtt - RXW_MS);
		for (unsigned k = 0; k < 4; k++)
			ck_assert_uint_eq(least_of(p, rtt, steps[i], now += rtt / 5), rtt - RXW_MS);
		ck_assert_uint_eq(least_of(p, rtt, RXW_MS, now += rtt), rtt - RXW_MS);
		/* A path that became shorter, on a busy machine. */
		now += 2 * rtt;
		least_of(p, rtt, rtt - RXW_MS, now);
		ck_assert_uint_eq(least_of(p, rtt, rtt - RXW_MS, now + rtt), RXW_MS);
		rxw_peer_unref(p, now);
	}
	rxw_peer_table_destroy(t);
}
END_TEST

START_TEST(three_times)
{
	struct rxw_peer_table *t = rxw_peer_table_create(key, 1000, NULL);
	struct rxw_addr a;
	struct rxw_peer *p;
	uint64_t now = 5 * RXW_SEC;

	address(&a, 0x0a000001, 1);
	p = rxw_peer_get(t, &a, now);
	ck_assert(!rxw_peer_may_send(p, 1, 1, now));
	rxw_peer_heard(p, 72, 1, now); /* 100 with headers */
	ck_assert_uint_eq(rxw_peer_allowance(p, now), 300);
	ck_assert(!rxw_peer_may_send(p, 273, 1, now)); /* 301 */
	ck_assert(rxw_peer_may_send(p, 172, 1, now));  /* 200 */
	ck_assert(!rxw_peer_may_send(p, 73, 1, now));
	ck_assert(rxw_peer_may_send(p, 72, 1, now));
	ck_assert_uint_eq(rxw_peer_allowance(p, now), 0);
	rxw_peer_set_validated(p, now);
	ck_assert(rxw_peer_may_send(p, 1000000, 700, now));
	ck_assert_uint_eq(rxw_peer_allowance(p, now + 59 * RXW_SEC), UINT64_MAX);
	/* The validation holds for 60 s. Then the limit applies again. */
	ck_assert(!rxw_peer_validated(p, now + 60 * RXW_SEC));
	ck_assert(!rxw_peer_may_send(p, 1, 1, now + 60 * RXW_SEC));
	rxw_peer_table_destroy(t);
}
END_TEST

START_TEST(rate)
{
	struct rxw_rate r;
	uint64_t now = 77 * RXW_SEC;
	unsigned n = 0;

	rxw_rate_init(&r, 50, now);
	while (rxw_rate_take(&r, now))
		n++;
	ck_assert_uint_eq(n, 50);
	ck_assert(!rxw_rate_take(&r, now + 19 * RXW_MS));
	ck_assert(rxw_rate_take(&r, now + 20 * RXW_MS));
	ck_assert(!rxw_rate_take(&r, now + 20 * RXW_MS));
	for (n = 0; rxw_rate_take(&r, now + 500 * RXW_SEC); n++)
		;
	ck_assert_uint_eq(n, 50);
	rxw_rate_init(&r, 0, now);
	ck_assert(!rxw_rate_take(&r, now));
}
END_TEST

/* The cost of a peer's useless calls is charged to it for a limited time. */
START_TEST(waste)
{
	struct rxw_peer_table *t = rxw_peer_table_create(key, 1000, NULL);
	uint64_t now = 5 * RXW_SEC;
	struct rxw_peer *p;
	struct rxw_addr a;

	address(&a, 0x0a000001, 7001);
	p = rxw_peer_get(t, &a, now);
	ck_assert(!rxw_peer_wasteful(p, now));
	rxw_peer_waste(p, 400, now); /* one abandoned call is always tolerated */
	ck_assert(!rxw_peer_wasteful(p, now));
	rxw_peer_waste(p, 400, now);
	ck_assert(rxw_peer_wasteful(p, now));
	ck_assert(!rxw_peer_wasteful(p, now + 10 * RXW_SEC));
	for (unsigned i = 0; i < 100000; i++)
		rxw_peer_waste(p, 400, now);
	ck_assert(rxw_peer_wasteful(p, now + 9 * RXW_SEC));
	ck_assert(!rxw_peer_wasteful(p, now + 11 * RXW_SEC));
	/* An occasional one is tolerated, however often. */
	now += 60 * RXW_SEC;
	for (unsigned i = 0; i < 100; i++, now += RXW_SEC) {
		rxw_peer_waste(p, 40, now);
		ck_assert(!rxw_peer_wasteful(p, now));
	}
	rxw_peer_unref(p, now);
	rxw_peer_table_destroy(t);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("peer");
	TCase *tcase = tcase_create("peer");

	suite_add_tcase(suite, tcase);
	tcase_set_timeout(tcase, 0);
	tcase_add_test(tcase, table);
	tcase_add_test(tcase, paths);
	tcase_add_test(tcase, forged_addresses);
	tcase_add_test(tcase, many_proven_addresses);
	tcase_add_test(tcase, marks_of_the_proven);
	tcase_add_test(tcase, local);
	tcase_add_test(tcase, learnt);
	tcase_add_test(tcase, shared);
	tcase_add_test(tcase, a_clock_that_is_set);
	tcase_add_test(tcase, three_times);
	tcase_add_test(tcase, rate);
	tcase_add_test(tcase, waste);
	return bench_main(suite);
}
