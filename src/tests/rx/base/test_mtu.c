/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of base/path_probe.c: the search on paths of every size, black holes, reports of the network. */

#include "testing.h"

#include "base/path_probe.h"
#include "base/rtt.h"

#define RTT RXW_MS

/* A path that carries `size`: runs the search to its end; returns the number of probes. */
static unsigned search(struct rxw_mtu *m, uint32_t path, uint64_t *now)
{
	unsigned probes = 0;

	for (int i = 0; i < 1000; i++) {
		uint32_t size = rxw_mtu_probe(m, *now, RTT);

		*now += RTT;
		if (!size)
			continue;
		probes++;
		ck_assert_uint_gt(size, m->confirmed);
		ck_assert_uint_le(size, m->ceiling);
		ck_assert_uint_eq(rxw_mtu_probe(m, *now, RTT), 0); /* one at a time */
		if (size <= path)
			rxw_mtu_confirmed(m, size, *now);
		else
			rxw_mtu_lost(m, *now);
		ck_assert_uint_le(m->confirmed, path > m->base ? path : m->base);
	}
	return probes;
}

START_TEST(finds_every_size)
{
	for (uint32_t path = 1200; path <= 9100; path += 13) {
		struct rxw_mtu m;
		uint64_t now = 0;
		unsigned probes;

		rxw_mtu_init(&m, 1444, 8972, true);
		probes = search(&m, path, &now);
		ck_assert(m.done);
		if (path >= 8972)
			ck_assert_uint_eq(m.confirmed, 8972);
		else if (path >= 1444)
			ck_assert_uint_gt(m.confirmed + 17, path);
		else
			ck_assert_uint_eq(m.confirmed, 1444);
		ck_assert_uint_le(probes, path >= 8972 ? 1 : 3 * 11);
	}
}
END_TEST

/* 65535 bytes on loopback: the first probe is the answer. */
START_TEST(tries_the_ceiling_first)
{
	struct rxw_mtu m;

	rxw_mtu_init(&m, 1444, 65507, true);
	ck_assert_uint_eq(rxw_mtu_probe(&m, 5, RTT), 65507);
	rxw_mtu_confirmed(&m, 65507, 6);
	ck_assert_uint_eq(m.confirmed, 65507);
	ck_assert_uint_eq(rxw_mtu_probe(&m, 10000 * RXW_SEC, RTT), 0);
}
END_TEST

START_TEST(three_tries)
{
	struct rxw_mtu m;
	uint64_t now = 1;

	rxw_mtu_init(&m, 1444, 1472, true);
	for (int i = 0; i < 3; i++) {
		ck_assert_uint_eq(rxw_mtu_probe(&m, now, RTT), 1472);
		ck_assert_uint_eq(rxw_mtu_probe(&m, now + RTT, RTT), 0);
		rxw_mtu_lost(&m, now);
		/* one per round trip */
		ck_assert_uint_eq(rxw_mtu_probe(&m, now + RTT - 1, RTT), 0);
		now += RTT;
	}
	ck_assert_uint_lt(rxw_mtu_probe(&m, now, RTT), 1472);
	/* No probe in flight: no effect. */
	rxw_mtu_init(&m, 1444, 1472, true);
	for (int i = 0; i < 10; i++)
		rxw_mtu_lost(&m, now);
	ck_assert_uint_eq(rxw_mtu_probe(&m, now, RTT), 1472);
}
END_TEST

START_TEST(searches_again_later)
{
	struct rxw_mtu m;
	uint64_t now = 0;

	rxw_mtu_init(&m, 1444, 8972, true);
	search(&m, 1500, &now);
	ck_assert_uint_le(m.confirmed, 1500);
	ck_assert_uint_eq(rxw_mtu_probe(&m, now, RTT), 0);
	now += 600 * RXW_SEC;
	search(&m, 9000, &now);
	ck_assert_uint_eq(m.confirmed, 8972);
}
END_TEST

START_TEST(disabled)
{
	struct rxw_mtu m;

	rxw_mtu_init(&m, 1444, 8972, false);
	ck_assert_uint_eq(rxw_mtu_probe(&m, 10000 * RXW_SEC, RTT), 0);
	rxw_mtu_confirmed(&m, 8972, 0);
	ck_assert_uint_eq(m.confirmed, 1444);
	rxw_mtu_init(&m, 1444, 1000,
		     true); /* an interface smaller than the base: no search below it */
	ck_assert_uint_eq(rxw_mtu_probe(&m, 1, RTT), 0);
	ck_assert_uint_eq(m.confirmed, 1444);
}
END_TEST

START_TEST(black_hole)
{
	struct rxw_mtu m;
	uint64_t now = 0;

	rxw_mtu_init(&m, 1444, 8972, true);
	search(&m, 9000, &now);
	ck_assert(!rxw_mtu_timeout(&m, 1200, true)); /* small packets prove nothing */
	ck_assert(!rxw_mtu_timeout(&m, 8972, true));
	rxw_mtu_progress(&m);
	ck_assert(!rxw_mtu_timeout(&m, 8972, true)); /* not in sequence */
	ck_assert(rxw_mtu_timeout(&m, 8972, true));
	ck_assert_uint_eq(m.confirmed, 1200);
	ck_assert(!rxw_mtu_timeout(&m, 548, true));
	ck_assert(!rxw_mtu_timeout(&m, 548, true));
	ck_assert_uint_eq(m.confirmed, 1200);
	/* The path is narrower now; the search finds the new size from below. */
	search(&m, 1300, &now);
	ck_assert_uint_ge(m.confirmed, 1284);
	ck_assert_uint_le(m.confirmed, 1300);
}
END_TEST

/* A path may carry even less: two more timeouts lead to the least size, and no further. */
START_TEST(narrow_black_hole)
{
	struct rxw_mtu m;
	uint64_t now = 0;

	rxw_mtu_init(&m, 1444, 1444, false);
	for (unsigned i = 0; i < 4; i++)
		ck_assert_int_eq(rxw_mtu_timeout(&m, 1444, true), i % 2);
	ck_assert_uint_eq(m.confirmed, 548);
	for (unsigned i = 0; i < 4; i++)
		ck_assert(!rxw_mtu_timeout(&m, 1444, true));
	ck_assert_uint_eq(m.confirmed, 548);
	search(&m, 972, &now);
	ck_assert_uint_gt(m.confirmed, 972 - 17);
	ck_assert_uint_le(m.confirmed, 972);
	/* There is less time if the peer was never heard. */
	rxw_mtu_init(&m, 1444, 1444, false);
	ck_assert(!rxw_mtu_timeout(&m, 1444, false));
	ck_assert(rxw_mtu_timeout(&m, 1444, false));
	ck_assert_uint_eq(m.confirmed, 1200);
	ck_assert(rxw_mtu_timeout(&m, 1444, false));
	ck_assert_uint_eq(m.confirmed, 548);
	rxw_mtu_init(&m, 1444, 1444, false);
	ck_assert(!rxw_mtu_timeout(&m, 1000, false));
	ck_assert(rxw_mtu_timeout(&m, 1000, false));
	ck_assert_uint_eq(m.confirmed, 548);
}
END_TEST

/*
 * Without a search for more, a black hole still returns to the configured size once the path
 * carries it again.
 */
START_TEST(black_hole_when_disabled)
{
	struct rxw_mtu m;
	uint64_t now = 0;

	rxw_mtu_init(&m, 1444, 8972, false);
	rxw_mtu_timeout(&m, 1444, true);
	ck_assert(rxw_mtu_timeout(&m, 1444, true));
	ck_assert_uint_eq(m.confirmed, 1200);
	search(&m, 9000, &now);
	ck_assert_uint_gt(m.confirmed, 1444 - 17);
	ck_assert_uint_le(m.confirmed, 1444);
}
END_TEST

/*
 * The full size of a path that shrank briefly is found within a second or two, not after ten
 * minutes.
 */
START_TEST(search_again_after_shrinking)
{
	struct rxw_mtu m;
	uint64_t now = 0, began;
	unsigned searches = 0;

	rxw_mtu_init(&m, 1444, 1444, false);
	rxw_mtu_timeout(&m, 1444, true);
	ck_assert(rxw_mtu_timeout(&m, 1444, true));
	search(&m, 1250, &now);
	ck_assert_uint_le(m.confirmed, 1250);
	now += RXW_SEC;
	search(&m, 9000, &now);
	ck_assert_uint_gt(m.confirmed, 1444 - 17);

	/* A path that stays small costs ever fewer probes: finally one search in ten minutes. */
	rxw_mtu_init(&m, 1444, 1444, false);
	rxw_mtu_timeout(&m, 1444, true);
	ck_assert(rxw_mtu_timeout(&m, 1444, true));
	for (began = now; now < began + 3600 * RXW_SEC; now += RXW_SEC)
		searches += search(&m, 1250, &now) > 0;
	ck_assert_uint_ge(searches, 10);
	ck_assert_uint_le(searches, 20);
}
END_TEST

START_TEST(hints)
{
	struct rxw_mtu m;
	uint64_t now = 0;

	rxw_mtu_init(&m, 1444, 8972, true);
	rxw_mtu_hint(&m, 4000);
	ck_assert_uint_eq(m.confirmed, 1444); /* a report proves nothing */
	ck_assert_uint_eq(rxw_mtu_probe(&m, now, RTT), 4000);
	rxw_mtu_hint(&m, 3000); /* the probe in flight is too large by now */
	now += RTT;
	ck_assert_uint_eq(rxw_mtu_probe(&m, now, RTT), 3000);
	rxw_mtu_confirmed(&m, 3000, now);
	ck_assert_uint_eq(m.confirmed, 3000);
	rxw_mtu_hint(&m, 5000); /* does not raise the bound */
	ck_assert_uint_eq(m.high, 3000);
	rxw_mtu_hint(&m, 2000);
	ck_assert_uint_eq(m.confirmed, 2000);
	rxw_mtu_hint(&m, 68); /* a forged report cannot go below the base */
	ck_assert_uint_eq(m.confirmed, 1444);
	rxw_mtu_hint(&m, 0);
	ck_assert_uint_eq(m.confirmed, 1444);
	search(&m, 9000, &now);
	now += 600 * RXW_SEC;
	search(&m, 9000, &now); /* it is detected again after a while */
	ck_assert_uint_eq(m.confirmed, 8972);
}
END_TEST

/* Common sizes come before the middle: most paths take a few probes. */
START_TEST(common_sizes)
{
	struct rxw_mtu m;
	uint64_t now = 0;

	rxw_mtu_init(&m, 1444, 8972, true);
	ck_assert_uint_le(search(&m, 1472, &now), 13);
	ck_assert_uint_eq(m.confirmed, 1472);
	rxw_mtu_init(&m, 1444, 8952, true);
	m.headers = 48;
	ck_assert_uint_le(search(&m, 1452, &now), 15);
	ck_assert_uint_ge(m.confirmed, 1444);
}
END_TEST

/* The peer's maximum limits the search, which goes on when that grows. */
START_TEST(limit_of_the_peer)
{
	struct rxw_mtu m;
	uint64_t now = 0;

	rxw_mtu_init(&m, 1444, 8972, true);
	m.limit = 1444;
	ck_assert_uint_eq(search(&m, 9000, &now), 0);
	m.limit = 5692;
	ck_assert_uint_eq(search(&m, 9000, &now), 1);
	ck_assert_uint_eq(m.confirmed, 5692);
	m.limit = 16384;
	search(&m, 9000, &now);
	ck_assert_uint_eq(m.confirmed, 8972);
}
END_TEST

/* A device that refuses the size settles the matter at once. */
START_TEST(refused)
{
	struct rxw_mtu m;
	uint64_t now = 1;

	rxw_mtu_init(&m, 1444, 8972, true);
	ck_assert_uint_eq(rxw_mtu_probe(&m, now, RTT), 8972);
	rxw_mtu_refused(&m, now);
	ck_assert_uint_eq(rxw_mtu_probe(&m, now, RTT), 1472);
	rxw_mtu_unsent(&m);
	now += RTT;
	ck_assert_uint_eq(rxw_mtu_probe(&m, now, RTT), 1472);
	ck_assert_uint_eq(m.tries, 0);
}
END_TEST

/* Large packets do not arrive: their size is tried once more, and then smaller ones. */
START_TEST(falls)
{
	struct rxw_mtu m;
	uint64_t now = 0;

	rxw_mtu_init(&m, 1444, 8972, true);
	search(&m, 9000, &now);
	ck_assert(rxw_mtu_fall(&m));
	ck_assert_uint_eq(m.confirmed, 1200);
	ck_assert_uint_eq(rxw_mtu_probe(&m, now, RTT), 8972);
	rxw_mtu_lost(&m, now);
	now += RTT;
	ck_assert_uint_eq(rxw_mtu_probe(&m, now, RTT), 1472);
	rxw_mtu_confirmed(&m, 1472, now);
	ck_assert_uint_eq(m.confirmed, 1472);
	rxw_mtu_init(&m, 1444, 8972, true);
	/* A report below the base counts once packets have been lost. */
	rxw_mtu_hint(&m, 1252);
	ck_assert_uint_eq(m.told, 1252);
	ck_assert_uint_ge(m.confirmed, 1252);
	ck_assert(rxw_mtu_fall(&m));
	now += RTT;
	ck_assert_uint_eq(m.confirmed, 1200);
	ck_assert_uint_eq(rxw_mtu_probe(&m, now, RTT), 1252);
	rxw_mtu_confirmed(&m, 1252, now);
	ck_assert(rxw_mtu_fall(&m));
	ck_assert(rxw_mtu_fall(&m));
	ck_assert_uint_eq(m.confirmed, 548);
	ck_assert(!rxw_mtu_fall(&m));
}
END_TEST

/* A call goes on where another one stopped. */
START_TEST(resumed)
{
	struct rxw_mtu m, n;
	uint64_t now = 1;

	rxw_mtu_init(&m, 1444, 8972, true);
	rxw_mtu_init(&n, 1444, 8972, true);
	for (int i = 0; i < 4; i++) {
		rxw_mtu_probe(&m, now, RTT);
		rxw_mtu_lost(&m, now);
		now += RTT;
	}
	rxw_mtu_resume(&n, rxw_mtu_pack(&m));
	ck_assert_uint_eq(n.tries, 1);
	ck_assert_uint_eq(rxw_mtu_probe(&n, now, RTT), 1472);
	rxw_mtu_follow(&m, 1472, now);
	ck_assert_uint_eq(m.confirmed, 1472);
	rxw_mtu_follow(&m, 1200, now);
	ck_assert_uint_eq(m.confirmed, 1200);
	rxw_mtu_init(&n, 1444, 8972, true);
	rxw_mtu_resume(&n, 0); /* nothing is known */
	ck_assert_uint_eq(rxw_mtu_probe(&n, now, RTT), 8972);
}
END_TEST

/* Any sequence of events keeps the invariants of the structure. */
START_TEST(invariants)
{
	uint64_t state = test_seed();

	for (int run = 0; run < 300; run++) {
		struct rxw_mtu m;
		uint64_t now = 0;
		uint32_t ceiling = 1000 + (uint32_t)test_below(&state, 9000);

		rxw_mtu_init(&m, 1444, ceiling, run & 1);
		for (int i = 0; i < 500; i++) {
			uint32_t size = (uint32_t)test_below(&state, 12000);

			now += test_below(&state, 10) ? test_below(&state, 2 * RTT) : 700 * RXW_SEC;
			switch (test_below(&state, 11)) {
			case 7:
				rxw_mtu_fall(&m);
				break;
			case 8:
				rxw_mtu_refused(&m, now);
				break;
			case 9:
				m.limit = size;
				break;
			case 10:
				rxw_mtu_resume(&m,
					       (uint32_t)test_below(&state, 9000) << 8 | size % 3);
				break;
			case 0:
				rxw_mtu_confirmed(&m, m.probing && size & 1 ? m.probing : size,
						  now);
				break;
			case 1:
				rxw_mtu_lost(&m, now);
				break;
			case 2:
				rxw_mtu_timeout(&m, size, true);
				break;
			case 3:
				rxw_mtu_progress(&m);
				break;
			case 4:
				rxw_mtu_hint(&m, size);
				break;
			default:
				size = rxw_mtu_probe(&m, now, RTT);
				ck_assert(!size || (size > m.confirmed && size <= m.ceiling));
			}
			ck_assert_uint_le(m.base, m.confirmed);
			ck_assert_uint_le(m.confirmed, m.ceiling);
			ck_assert_uint_le(m.low, m.high);
			ck_assert_uint_le(m.high, m.ceiling);
		}
	}
}
END_TEST

TEST_MAIN("mtu", finds_every_size, tries_the_ceiling_first, three_tries, searches_again_later,
	  disabled, black_hole, narrow_black_hole, black_hole_when_disabled, search_again_after_shrinking, hints,
	  common_sizes, limit_of_the_peer, refused, falls, resumed, invariants)
