/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of places.c: shares of clients, slow calls that lose their places, and calls that wait for one. */
#include <arpa/inet.h>
#include <string.h>

#include "common/clock.h"
#include "fileserver/service/places.h"
#include "tests/main.h"

#define PERIOD (FSD_PLACE_PERIOD * (uint64_t)NS_PER_MS)

static struct fsd_places all;
static struct fsd_place place[4 * 96];
static unsigned starts; /* of calls that waited */

static void setup(unsigned max)
{
	starts = 0;
	ck_assert(fsd_places_init(&all, max));
}

static void teardown(void)
{
	while (all.count)
		fsd_place_leave(&all, all.place[0]);
	fsd_places_fini(&all);
}

static struct sockaddr_storage address(const char *text, unsigned port)
{
	struct sockaddr_storage peer = {0};
	struct sockaddr_in *v4 = (struct sockaddr_in *)&peer;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&peer;

	if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
		peer.ss_family = AF_INET;
		v4->sin_port = htons((uint16_t)port);
	} else {
		ck_assert_int_eq(inet_pton(AF_INET6, text, &v6->sin6_addr), 1);
		peer.ss_family = AF_INET6;
		v6->sin6_port = htons((uint16_t)port);
	}
	return peer;
}

static enum fsd_entry enter(unsigned i, const char *text, unsigned port, uint64_t now)
{
	struct sockaddr_storage peer = address(text, port);

	return fsd_place_enter(&all, &place[i], NULL, &peer, now);
}

/* It waits for data from then on. */
static void begin(unsigned i, const char *text, unsigned port, uint64_t now)
{
	ck_assert_int_eq(enter(i, text, port, now), FSD_ENTRY_FREE);
	fsd_place_wait(&place[i], now);
}

/* Some data comes, and it waits for more. */
static void feed(unsigned i, uint64_t bytes, uint64_t now)
{
	fsd_place_got(&place[i], bytes, now);
	fsd_place_wait(&place[i], now);
}

/* How many places a client gets that asks for all. */
static unsigned fill(unsigned from, const char *text, unsigned port)
{
	unsigned got = 0;

	while (enter(from + got, text, port, 1) == FSD_ENTRY_FREE)
		got++;
	return got;
}

START_TEST(shares)
{
	setup(96);
	ck_assert_uint_eq(fill(0, "10.0.0.1", 7001), 48);
	ck_assert_uint_eq(fill(48, "10.0.0.2", 7001), 24);
	ck_assert_uint_eq(fill(72, "10.0.0.3", 7001), 12);
	/* The first ones leave, and find that their share has become less. */
	for (unsigned i = 0; i < 48; i++)
		fsd_place_leave(&all, &place[i]);
	ck_assert_uint_eq(fill(0, "10.0.0.1", 7001), 30);
	teardown();
}
END_TEST

/* The ports of an address have one share, and so has an IPv6 network; but not the programs on this machine. */
START_TEST(addresses)
{
	static const struct {
		const char *first, *second;
		unsigned more;
	} cases[] = {
		{"10.0.0.1", "10.0.0.1", 0},	      {"10.0.0.1", "::ffff:10.0.0.1", 0},
		{"10.0.0.1", "10.0.0.2", 4},	      {"::ffff:10.0.0.1", "::ffff:10.0.0.2", 4},
		{"2001:db8::1", "2001:db8::2", 0},    {"2001:db8::1", "2001:db8:0:1::1", 4},
		{"127.0.0.1", "127.0.0.1", 4},	      {"::1", "::1", 4},
		{"::ffff:127.0.0.1", "127.0.0.1", 4},
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		setup(16);
		ck_assert_uint_eq(fill(0, cases[i].first, 1), 8);
		ck_assert_msg(fill(8, cases[i].second, 2) == cases[i].more, "%s, %s",
			      cases[i].first, cases[i].second);
		teardown();
	}
}
END_TEST

/* While a place is free, a slow store keeps its own. */
START_TEST(slow_while_free)
{
	setup(4);
	begin(0, "10.0.0.1", 1, 1);
	begin(1, "10.0.0.1", 1, 1);
	begin(2, "10.0.0.2", 1, 1);
	ck_assert_int_eq(enter(3, "10.0.0.3", 1, 10 * PERIOD), FSD_ENTRY_FREE);
	fsd_place_leave(&all, &place[3]);
	/* A client that has its share does not end those of others, nor its own. */
	ck_assert_int_eq(enter(3, "10.0.0.1", 1, 10 * PERIOD), FSD_ENTRY_REFUSED);
	ck_assert_uint_eq(all.count, 3);
	teardown();
}
END_TEST

/* The slowest one loses its place, once it has been waited for. */
START_TEST(slowest)
{
	const uint64_t second = NS_PER_S;
	uint64_t now;

	setup(4);
	begin(0, "10.0.0.1", 1, second);
	begin(1, "10.0.0.1", 1, second);
	begin(2, "10.0.0.2", 1, second);
	begin(3, "10.0.0.3", 1, second);
	ck_assert_int_eq(enter(4, "10.0.0.4", 1, second + PERIOD - 1), FSD_ENTRY_REFUSED);
	/* Bytes a second: enough; 1,000; 3; 1,000. */
	for (now = 2 * second; now <= 20 * second; now += second) {
		feed(0, 2 * FSD_PLACE_RATE, now);
		feed(1, 1000, now);
		feed(2, 3, now);
		feed(3, 1000, now);
	}
	now -= second / 2;
	ck_assert_int_eq(enter(4, "10.0.0.4", 1, now), FSD_ENTRY_TAKEN);
	ck_assert(place[2].lost && !place[2].pin);
	ck_assert(!fsd_place_settle(&all, &place[2]));
	fsd_place_leave(&all, &place[2]);
	ck_assert_uint_eq(all.count, 4);
	/* A client takes no place of those who have no more than it has. */
	ck_assert_int_eq(enter(5, "10.0.0.4", 1, now), FSD_ENTRY_TAKEN);
	ck_assert(place[1].lost);
	fsd_place_leave(&all, &place[1]);
	ck_assert_int_eq(enter(6, "10.0.0.4", 1, now), FSD_ENTRY_REFUSED);
	ck_assert_int_eq(enter(6, "10.0.0.5", 1, now), FSD_ENTRY_TAKEN);
	ck_assert(place[3].lost);
	fsd_place_leave(&all, &place[3]);
	/* Nobody else is slow, or has waited for long. */
	ck_assert_int_eq(enter(7, "10.0.0.6", 1, now), FSD_ENTRY_REFUSED);
	ck_assert(fsd_place_settle(&all, &place[0]));
	ck_assert_int_eq(enter(7, "10.0.0.6", 1, 100 * second), FSD_ENTRY_REFUSED);
	teardown();
}
END_TEST

/* Time that the server does not wait for data is not held against a client, nor is much data a credit for long. */
START_TEST(waits)
{
	setup(1);
	begin(0, "10.0.0.1", 1, 1);
	fsd_place_got(&place[0], 1, 2);
	ck_assert_int_eq(enter(1, "10.0.0.2", 1, 9 * PERIOD), FSD_ENTRY_REFUSED);
	fsd_place_wait(&place[0], 9 * PERIOD);
	ck_assert_int_eq(enter(1, "10.0.0.2", 1, 10 * PERIOD - 2), FSD_ENTRY_REFUSED);
	feed(0, UINT32_MAX, 10 * PERIOD - 1);
	feed(0, 1, 10 * PERIOD + PERIOD / 2);
	ck_assert_int_eq(enter(1, "10.0.0.2", 1, 11 * PERIOD - 2), FSD_ENTRY_REFUSED);
	feed(0, 1, 11 * PERIOD);
	ck_assert_int_eq(enter(1, "10.0.0.2", 1, 11 * PERIOD + PERIOD / 2), FSD_ENTRY_TAKEN);
	ck_assert(place[0].lost);
	/* Nothing for a period, however much came before. */
	fsd_place_leave(&all, &place[0]);
	fsd_place_wait(&place[1], 14 * PERIOD);
	feed(1, UINT32_MAX, 15 * PERIOD);
	ck_assert_int_eq(enter(2, "10.0.0.3", 1, 16 * PERIOD - 1), FSD_ENTRY_REFUSED);
	ck_assert_int_eq(enter(2, "10.0.0.3", 1, 16 * PERIOD), FSD_ENTRY_TAKEN);
	fsd_place_leave(&all, &place[1]);
	teardown();
}
END_TEST

/* Behind one address, a client with many slow stores gives way to another one, also while places are free. */
START_TEST(translated)
{
	setup(8);
	for (unsigned i = 0; i < 4; i++)
		begin(i, "10.0.0.1", 1, 1);
	ck_assert_int_eq(enter(4, "10.0.0.1", 2, PERIOD), FSD_ENTRY_REFUSED);
	ck_assert_int_eq(enter(4, "10.0.0.1", 1, PERIOD + 1), FSD_ENTRY_REFUSED);
	ck_assert_int_eq(enter(4, "10.0.0.1", 2, PERIOD + 1), FSD_ENTRY_TAKEN);
	ck_assert(place[0].lost);
	fsd_place_leave(&all, &place[0]);
	ck_assert_int_eq(enter(0, "10.0.0.2", 1, PERIOD + 1), FSD_ENTRY_FREE);
	ck_assert_uint_eq(all.count, 5);
	teardown();
}
END_TEST

/* -- calls that wait for a place -- */

static struct {
	struct fsd_place *place;
	bool got;
} started[16];

static void note_start(struct fsd_place *of, bool got)
{
	ck_assert_uint_lt(starts, 16);
	started[starts].place = of;
	started[starts++].got = got;
}

static enum fsd_entry await(unsigned i, const char *text, uint64_t now)
{
	struct sockaddr_storage peer = address(text, 1);

	return fsd_place_await(&all, &place[i], NULL, &peer, now, note_start);
}

/* How many got the place of a slow call. */
static unsigned look(uint64_t now)
{
	unsigned taken;
	bool left = fsd_places_look(&all, now, &taken);

	ck_assert(left == (all.first != NULL));
	return taken;
}

/* This one was started, and no other. */
static void expect_started(unsigned i, bool got)
{
	ck_assert_uint_eq(starts, 1);
	ck_assert_ptr_eq(started[0].place, &place[i]);
	ck_assert(started[0].got == got);
	starts = 0;
}

/* A fetch that waits is served before the calls that come later, also those of a client that has just left a place. */
START_TEST(in_turn)
{
	setup(2);
	ck_assert_int_eq(await(0, "10.0.0.1", 1), FSD_ENTRY_FREE);
	ck_assert_int_eq(await(1, "10.0.0.2", 1), FSD_ENTRY_FREE);
	ck_assert_int_eq(await(2, "10.0.0.3", 1), FSD_ENTRY_WAITS);
	ck_assert_int_eq(await(3, "10.0.0.4", 1), FSD_ENTRY_WAITS);
	fsd_place_leave(&all, &place[0]);
	expect_started(2, true);
	ck_assert_int_eq(await(0, "10.0.0.1", 1), FSD_ENTRY_WAITS);
	fsd_place_leave(&all, &place[1]);
	expect_started(3, true);
	fsd_place_leave(&all, &place[2]);
	expect_started(0, true);
	ck_assert_uint_eq(all.waiters.count, 0);
	teardown();
}
END_TEST

/* A client with many calls has half of the places. The others wait, and delay no other client. */
START_TEST(many_of_one_wait)
{
	setup(8);
	for (unsigned i = 0; i < 40; i++)
		ck_assert_int_eq(await(i, "10.0.0.1", 1), i < 4 ? FSD_ENTRY_FREE : FSD_ENTRY_WAITS);
	for (unsigned i = 40; i < 44; i++)
		ck_assert_int_eq(await(i, i % 2 ? "10.0.0.2" : "10.0.0.3", 1),
				 i < 43 ? FSD_ENTRY_FREE : FSD_ENTRY_WAITS);
	ck_assert_int_eq(await(44, "10.0.0.4", 1), FSD_ENTRY_FREE);
	ck_assert_int_eq(await(45, "10.0.0.5", 1), FSD_ENTRY_WAITS);
	fsd_place_leave(&all, &place[40]);
	expect_started(45, true);
	/* Its own place goes to others, too, while it has more than they have. */
	fsd_place_leave(&all, &place[0]);
	ck_assert_uint_eq(fsd_share_count(&all.addresses, &place[1].keys.address), 3);
	starts = 0;
	fsd_place_leave(&all, &place[1]);
	fsd_place_leave(&all, &place[2]);
	fsd_place_leave(&all, &place[3]);
	ck_assert_uint_le(fsd_share_count(&all.addresses, &place[4].keys.address), 4);
	ck_assert_uint_ge(starts, 1);
	starts = 0;
	while (all.count) {
		starts = 0;
		fsd_place_leave(&all, all.place[0]);
	}
	ck_assert_uint_eq(all.waiters.count, 0);
	teardown();
}
END_TEST

/* It gets the place of a call that has become slow; or it has waited for long enough. */
START_TEST(end_of_waiting)
{
	const uint64_t limit = FSD_WAIT_MS * (uint64_t)NS_PER_MS;

	setup(1);
	begin(0, "10.0.0.1", 1, 1);
	ck_assert_int_eq(await(1, "10.0.0.2", 1), FSD_ENTRY_WAITS);
	ck_assert_int_eq(await(2, "10.0.0.3", 1), FSD_ENTRY_WAITS);
	ck_assert_uint_eq(look(PERIOD), 0);
	ck_assert_uint_eq(starts, 0);
	ck_assert_uint_eq(look(1 + PERIOD), 1);
	expect_started(1, true);
	ck_assert(place[0].lost);
	fsd_place_leave(&all, &place[0]);
	ck_assert_uint_eq(look(limit), 0);
	ck_assert_uint_eq(starts, 0);
	ck_assert_uint_eq(look(1 + limit), 0);
	expect_started(2, false);
	teardown();
}
END_TEST

/* A call whose client is gone waits no more, and its share is free. One that has a place keeps it. */
START_TEST(withdrawn)
{
	setup(2);
	ck_assert_int_eq(await(0, "10.0.0.1", 1), FSD_ENTRY_FREE);
	ck_assert_int_eq(await(1, "10.0.0.2", 1), FSD_ENTRY_FREE);
	for (unsigned i = 2; i < 6; i++)
		ck_assert_int_eq(await(i, "10.0.0.3", 1), FSD_ENTRY_WAITS);
	fsd_place_withdraw(&all, &place[3]);
	expect_started(3, false);
	fsd_place_withdraw(&all, &place[5]);
	expect_started(5, false);
	ck_assert_uint_eq(fsd_share_count(&all.waiters, &place[2].keys.address), 2);
	fsd_place_leave(&all, &place[0]);
	expect_started(2, true);
	fsd_place_withdraw(&all, &place[2]);
	ck_assert_uint_eq(starts, 0);
	fsd_place_leave(&all, &place[2]);
	expect_started(4, true);
	ck_assert_uint_eq(all.waiters.count, 0);
	ck_assert(!all.first && all.last == &all.first);
	/* The client may be gone before the call waits. */
	memset(&place[6], 0, sizeof(place[6]));
	fsd_place_withdraw(&all, &place[6]);
	ck_assert_int_eq(await(6, "10.0.0.4", 1), FSD_ENTRY_REFUSED);
	ck_assert_uint_eq(starts, 0);
	teardown();
}
END_TEST

/* -- many places -- */

int __real_pthread_mutex_lock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock);

static unsigned locked;

int __wrap_pthread_mutex_lock(pthread_mutex_t *lock)
{
	locked++;
	return __real_pthread_mutex_lock(lock);
}

static struct fsd_place many[FSD_FLOWS_MAX + 1];

static enum fsd_entry enter_many(unsigned i, unsigned address_number, uint64_t now)
{
	struct sockaddr_storage peer = address("10.0.0.0", 1);
	struct sockaddr_in *v4 = (struct sockaddr_in *)&peer;

	v4->sin_addr.s_addr |= htonl(address_number);
	return fsd_place_enter(&all, &many[i], NULL, &peer, now);
}

/* One of each address. Only one waits for its client, or all do. */
static void fill_many(unsigned slow)
{
	setup(FSD_FLOWS_MAX);
	for (unsigned i = 0; i < FSD_FLOWS_MAX; i++) {
		ck_assert_int_eq(enter_many(i, i, 1), FSD_ENTRY_FREE);
		if (slow == FSD_FLOWS_MAX || i == slow)
			fsd_place_wait(&many[i], 1);
	}
}

/* A call that finds no place does not look at all of them with the lock. */
START_TEST(looks_at_few)
{
	fill_many(FSD_FLOWS_MAX);
	locked = 0;
	ck_assert_int_eq(enter_many(FSD_FLOWS_MAX, FSD_FLOWS_MAX, 1 + PERIOD), FSD_ENTRY_TAKEN);
	ck_assert_uint_le(locked, 64 + 2);
	for (unsigned i = 0; i < FSD_FLOWS_MAX; i++)
		if (many[i].lost)
			fsd_place_leave(&all, &many[i]);
	teardown();
}
END_TEST

/* But as often as it is repeated, it looks at other ones. */
START_TEST(looks_at_all)
{
	const unsigned slow = FSD_FLOWS_MAX - 5;
	unsigned tries = 1;

	fill_many(slow);
	while (enter_many(FSD_FLOWS_MAX, FSD_FLOWS_MAX, 1 + PERIOD) == FSD_ENTRY_REFUSED)
		ck_assert_uint_le(++tries, FSD_FLOWS_MAX / 64);
	ck_assert(many[slow].lost);
	fsd_place_leave(&all, &many[slow]);
	teardown();
}
END_TEST

/* A fetch that waits needs memory: one client gets at most half of it. */
START_TEST(few_wait)
{
	static struct fsd_place waiting[FSD_WAITERS_MAX];
	struct sockaddr_storage peer = address("10.0.0.1", 1);
	unsigned count = 0;

	setup(1);
	ck_assert_int_eq(enter_many(0, 0, 1), FSD_ENTRY_FREE);
	while (fsd_place_await(&all, &waiting[count], NULL, &peer, 1, note_start) ==
	       FSD_ENTRY_WAITS)
		count++;
	ck_assert_uint_eq(count, FSD_WAITERS_MAX / 2);
	peer = address("10.0.0.2", 1);
	ck_assert_int_eq(fsd_place_await(&all, &waiting[count], NULL, &peer, 1, note_start),
			 FSD_ENTRY_WAITS);
	fsd_place_leave(&all, &many[0]);
	ck_assert_uint_eq(starts, 1);
	ck_assert_ptr_eq(started[0].place, &waiting[0]);
	while (all.count) {
		starts = 0;
		fsd_place_leave(&all, all.place[0]);
	}
	ck_assert_uint_eq(all.waiters.count, 0);
	teardown();
}
END_TEST

/* A look finds the free place for a call that waits behind very many which may not have one. */
START_TEST(behind_many)
{
	unsigned mine = 0;

	setup(4);
	while (enter_many(mine, 1, 1) == FSD_ENTRY_FREE)
		mine++;
	ck_assert_uint_eq(mine, 2);
	ck_assert_int_eq(await(0, "10.0.0.2", 1), FSD_ENTRY_FREE);
	ck_assert_int_eq(await(1, "10.0.0.3", 1), FSD_ENTRY_FREE);
	for (unsigned i = 2; i < 202; i++)
		ck_assert_int_eq(await(i, "10.0.0.1", 1), FSD_ENTRY_WAITS);
	ck_assert_int_eq(await(202, "10.0.0.4", 1), FSD_ENTRY_WAITS);
	fsd_place_leave(&all, &place[0]);
	ck_assert_uint_eq(starts, 0);
	ck_assert_uint_eq(look(1), 0);
	expect_started(202, true);
	for (unsigned i = 2; i < 202; i++) {
		fsd_place_withdraw(&all, &place[i]);
		expect_started(i, false);
	}
	teardown();
}
END_TEST

TEST_MAIN("places of calls", shares, addresses, slow_while_free, slowest, waits, translated,
	  in_turn, many_of_one_wait, end_of_waiting, withdrawn, behind_many, looks_at_few,
	  looks_at_all, few_wait)
