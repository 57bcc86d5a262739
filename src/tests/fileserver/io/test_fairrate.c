/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rate of an address while the server is saturated, on a virtual clock: a server with a queue of flows, addresses
 * with one flow or hundreds, fast ones and slow ones. A run is the same each time.
 */
#include "fileserver/io/fairrate.h"
#include "tests/main.h"

#include <stdlib.h>
#include <string.h>

#define US	  ((uint64_t)1000)
#define MS	  (1000 * US)
#define SLOT	  (50 * US) /* of the wheel of flows whose clients take what was sent */
#define SLOTS	  16384u
#define FLOWS	  2048
#define ADDRESSES 2048
#define PART	  ((uint64_t)64 << 10)
#define RATE	  1000 /* of the server, bytes in a us */
#define SECONDS	  3u

struct address {
	struct fair_account account;
	uint64_t bytes;
	struct flow *first, **last; /* wait for their turn */
};

struct flow {
	struct address *address;
	unsigned slowness; /* us that its client takes for a KiB; 0: none */
	bool admitted;
	uint64_t waited_since;
	struct flow *next;
};

static struct world {
	struct fair_rate rate;
	bool on;
	uint64_t now, idle_at, longest_wait;
	unsigned flows, addresses;
	struct flow flow[FLOWS], *head, **tail, *wheel[SLOTS];
	struct address address[ADDRESSES];
	unsigned next; /* address that is looked at next */
} world;

static void begin_world(void)
{
	memset(&world, 0, sizeof(world));
	world.tail = &world.head;
}

/* Addresses with `flows` each. Returns the first one. */
static struct address *add_addresses(unsigned count, unsigned flows, unsigned slowness)
{
	struct address *first = &world.address[world.addresses];

	while (count--) {
		struct address *address = &world.address[world.addresses++];

		address->last = &address->first;
		for (unsigned i = 0; i < flows; i++) {
			struct flow *flow = &world.flow[world.flows++];

			flow->address = address;
			flow->slowness = slowness;
			*world.tail = flow;
			world.tail = &flow->next;
		}
	}
	return first;
}

static void queue_flow(struct flow *flow)
{
	flow->next = NULL;
	*world.tail = flow;
	world.tail = &flow->next;
}

static void admit_flow(struct address *address)
{
	struct flow *flow = address->first;

	address->first = flow->next;
	if (!address->first)
		address->last = &address->first;
	if (world.now - flow->waited_since > world.longest_wait)
		world.longest_wait = world.now - flow->waited_since;
	flow->admitted = true;
	queue_flow(flow);
}

static bool any_waits(void)
{
	for (unsigned i = 0; i < world.addresses; i++)
		if (world.address[i].first)
			return true;
	return false;
}

/* Each ms. */
static void look_at_server(void)
{
	bool idle = !world.head;

	if (idle)
		world.idle_at = world.now;
	if (!world.on && world.now - world.idle_at >= 10 * MS) {
		world.on = true;
		fair_rate_begin(&world.rate, world.now);
	}
	if (!world.on)
		return;
	world.on = fair_rate_look(&world.rate, idle, any_waits(), world.now);
	for (unsigned i = 0; i < world.addresses; i++) {
		struct address *address = &world.address[world.next++ % world.addresses];

		while (address->first &&
		       (!world.on || fair_rate_permits(&world.rate, &address->account))) {
			fair_rate_charge(&world.rate, &address->account, PART);
			admit_flow(address);
		}
	}
}

/* The first one of the queue: it sends, or has to wait. */
static void serve_flow(void)
{
	struct flow *flow = world.head;
	struct address *address = flow->address;
	uint64_t bytes = flow->slowness ? PART / 2 : PART, back;

	world.head = flow->next;
	if (!world.head)
		world.tail = &world.head;
	flow->next = NULL;
	if (world.on && !flow->admitted && !fair_rate_permits(&world.rate, &address->account)) {
		flow->waited_since = world.now;
		*address->last = flow;
		address->last = &flow->next;
		return;
	}
	if (world.on && !flow->admitted)
		fair_rate_charge(&world.rate, &address->account, bytes);
	if (world.on)
		fair_rate_count(&world.rate, &address->account, bytes);
	flow->admitted = false;
	world.now += bytes * US / RATE;
	address->bytes += bytes;
	back = world.now + 100 * US + bytes / 1024 * flow->slowness * US;
	ck_assert_uint_lt(back - world.now, (SLOTS - 8) * SLOT);
	flow->next = world.wheel[back / SLOT % SLOTS];
	world.wheel[back / SLOT % SLOTS] = flow;
}

/* Returns what the server has sent in each us, in 1/1000 of what it can send. The first second does not count. */
static uint64_t run_world(void)
{
	uint64_t look = MS, slot = 0, bytes = 0, seconds = 0;

	while (world.now < SECONDS * 1000 * MS) {
		if (world.now >= 1000 * MS && !seconds) {
			seconds = SECONDS - 1;
			world.longest_wait = 0;
			for (unsigned i = 0; i < world.addresses; i++)
				world.address[i].bytes = 0;
		}
		for (; slot <= world.now / SLOT; slot++) {
			struct flow *flow = world.wheel[slot % SLOTS], *next;

			world.wheel[slot % SLOTS] = NULL;
			for (; flow; flow = next) {
				next = flow->next;
				queue_flow(flow);
			}
		}
		if (world.now >= look) {
			look_at_server();
			look += MS;
		}
		if (world.head)
			serve_flow();
		else
			world.now += SLOT;
	}
	for (unsigned i = 0; i < world.addresses; i++)
		bytes += world.address[i].bytes;
	return bytes * 1000 / (RATE * seconds * 1000 * 1000);
}

/* KB a second. */
static unsigned least_rate(const struct address *first, unsigned count)
{
	uint64_t least = UINT64_MAX;

	for (unsigned i = 0; i < count; i++)
		if (first[i].bytes < least)
			least = first[i].bytes;
	return (unsigned)(least / 1000 / (SECONDS - 1));
}

static unsigned rate_of(const struct address *address)
{
	return least_rate(address, 1);
}

#define SLOW 5000u /* us for a KiB: 200 KB a second */

/* 200 clients with slow links behind one address need less than the address may have: none of them ever waits. */
START_TEST(slow_clients_of_one_address)
{
	struct address *slow, *others;

	begin_world();
	slow = add_addresses(1, 200, SLOW);
	others = add_addresses(10, 1, 0);
	ck_assert_uint_ge(run_world(), 980);
	ck_assert_uint_ge(rate_of(slow), 38000);
	ck_assert_uint_ge(least_rate(others, 10), 90000);
	ck_assert_uint_le(world.longest_wait, 5 * MS);
}
END_TEST

/* One of the clients behind an address takes what it can: the slow ones beside it are as fast as alone. */
START_TEST(slow_clients_beside_a_fast_one)
{
	struct address *mixed, *others;

	begin_world();
	mixed = add_addresses(1, 200, SLOW);
	world.flow[0].slowness = 0;
	others = add_addresses(10, 1, 0);
	ck_assert_uint_ge(run_world(), 980);
	ck_assert_uint_ge(rate_of(mixed), 80000);
	ck_assert_uint_ge(least_rate(others, 10), 80000);
	ck_assert_uint_le(world.longest_wait, 50 * MS);
}
END_TEST

/* 256 flows of an address get what others get with one. */
START_TEST(greedy_address)
{
	static const unsigned counts[] = {10, 100, 1000};

	for (unsigned i = 0; i < 3; i++) {
		unsigned count = counts[i], fair = 1000000 / (count + 1);
		struct address *greedy, *others;

		begin_world();
		greedy = add_addresses(1, 256, 0);
		others = add_addresses(count, 1, 0);
		ck_assert_uint_ge(run_world(), 980);
		ck_assert_uint_ge(least_rate(others, count), fair * 9 / 10);
		/* Of 1,000, each sends once in 66 ms: the burst counts. */
		ck_assert_uint_le(rate_of(greedy), fair * (count < 1000 ? 2 : 5));
		ck_assert_uint_ge(rate_of(greedy), fair * 9 / 10);
	}
}
END_TEST

START_TEST(a_thousand_addresses)
{
	struct address *all;

	begin_world();
	all = add_addresses(1000, 1, 0);
	ck_assert_uint_ge(run_world(), 980);
	ck_assert_uint_ge(least_rate(all, 1000), 900);
}
END_TEST

/* Whoever is alone gets the whole server, and nearly so beside others that need little. */
START_TEST(one_address_alone)
{
	begin_world();
	add_addresses(1, 256, 0);
	ck_assert_uint_ge(run_world(), 980);
	ck_assert_uint_eq(world.longest_wait, 0);
	begin_world();
	add_addresses(1, 256, 0);
	add_addresses(3, 1, SLOW);
	ck_assert_uint_ge(run_world(), 920);
}
END_TEST

/* Addresses that need less than the mean get it, those that need more share the rest. */
START_TEST(different_needs)
{
	struct address *fast, *middle, *slow;

	begin_world();
	fast = add_addresses(5, 1, 0);
	middle = add_addresses(5, 1, 50); /* 20 MB a second */
	slow = add_addresses(100, 1, SLOW);
	ck_assert_uint_ge(run_world(), 920);
	ck_assert_uint_ge(least_rate(fast, 5), 150000);
	ck_assert_uint_ge(least_rate(middle, 5), 16000);
	ck_assert_uint_ge(least_rate(slow, 100), 180);
}
END_TEST

static void send_bytes(struct fair_rate *rate, struct fair_account *account, uint64_t bytes)
{
	fair_rate_charge(rate, account, bytes);
	fair_rate_count(rate, account, bytes);
}

/*
 * The threads are busy with something else, and one of two addresses needs little: the other one does not get less and less
 * because it has to wait.
 */
START_TEST(busy_with_other_things)
{
	struct fair_rate rate = {0};
	struct fair_account fast = {0}, slow = {0};
	uint64_t now = MS, sent = 0;

	fair_rate_begin(&rate, now);
	for (unsigned i = 0; i < 20000; i++) {
		uint64_t permitted = fair_rate_permits(&rate, &fast), want = 100 * 1024;

		if (i % 100 == 0)
			send_bytes(&rate, &slow, 1024);
		if (permitted) {
			send_bytes(&rate, &fast, want);
			sent += i >= 10000 ? want : 0;
		}
		ck_assert(fair_rate_look(&rate, false, !permitted, now += MS));
	}
	ck_assert_uint_ge(sent, 10000 * 100 * 1024ull / 2);
}
END_TEST

/* It ends when the server has time left, and a later one knows nothing of it. */
START_TEST(saturation_ends)
{
	struct fair_rate rate = {0};
	struct fair_account a = {0}, b = {0};
	uint64_t now = MS;
	unsigned looks = 0;

	fair_rate_begin(&rate, now);
	ck_assert_uint_eq(fair_rate_permits(&rate, &a), UINT64_MAX); /* the mean is not known */
	send_bytes(&rate, &a, 8 * PART);
	send_bytes(&rate, &b, PART);
	for (unsigned i = 0; i < 20; i++)
		ck_assert(fair_rate_look(&rate, false, false, now += MS));
	ck_assert_uint_gt(rate.mean, 0);
	fair_rate_charge(&rate, &a, 64 * PART);
	ck_assert_uint_eq(fair_rate_permits(&rate, &a), 0);
	ck_assert_uint_gt(fair_rate_permits(&rate, &b), 0);
	while (fair_rate_look(&rate, true, false, now += MS))
		ck_assert_uint_lt(++looks, 100);
	ck_assert_uint_gt(looks, 10);
	fair_rate_begin(&rate, now);
	rate.mean = 1;
	rate.senders_before = 2;
	ck_assert_uint_gt(fair_rate_permits(&rate, &a), 0);
}
END_TEST

/* A look that comes late, or at once, moves the clock by no more than it should. */
START_TEST(looks_at_any_time)
{
	struct fair_rate rate = {0};
	uint64_t before;

	fair_rate_begin(&rate, MS);
	rate.mean = 1000;
	before = rate.clock;
	fair_rate_look(&rate, false, true, MS);
	ck_assert_uint_eq(rate.clock, before);
	fair_rate_look(&rate, false, true, MS + 10000 * MS);
	ck_assert_uint_le(rate.clock - before, 20 * 1250);
	for (unsigned i = 0; i < 1000; i++)
		fair_rate_look(&rate, true, true, rate.now + MS);
	ck_assert_uint_le(rate.times, 256u << 14);
}
END_TEST

TEST_MAIN_WITHIN(300, "rates", slow_clients_of_one_address, slow_clients_beside_a_fast_one,
		 greedy_address, a_thousand_addresses, one_address_alone, different_needs,
		 busy_with_other_things, saturation_ends, looks_at_any_time)
