/* SPDX-License-Identifier: BSD-2-Clause */
/* One direction of an emulated link, on a clock of the test's own. */
#include <stdlib.h>
#include <string.h>

#include "codel.h"
#include "tests/main.h"
#include "way.h"

#define MS	1000000ull
#define GIGABIT 1000000000ull
#define PACKET	1500u

static struct link_way *way;
static unsigned dropped, copied;
static struct link_packet out[200000];
static unsigned outs;

static void on_drop(void *arg, const struct link_packet *p)
{
	(void)arg;
	(void)p;
	dropped++;
}

static void on_copy(void *arg, const struct link_packet *p)
{
	(void)arg;
	(void)p;
	copied++;
}

static void open_way(const struct link_options *o, uint64_t seed)
{
	static const struct link_owner owner = {on_drop, on_copy, NULL};

	dropped = copied = outs = 0;
	way = link_way_new(o, seed, &owner);
	ck_assert(way != NULL);
}

static void enter(uint32_t number, uint32_t length, bool ect, uint64_t now)
{
	link_way_enter(way, &(struct link_packet){.part = number, .length = length, .ect = ect},
		       now);
}

/* Takes all that leaves by `now`; the times are in order. */
static void leave(uint64_t now)
{
	while (link_way_leave(way, &out[outs], now)) {
		ck_assert_msg(out[outs].at <= now, "left at %llu",
			      (unsigned long long)out[outs].at);
		ck_assert(outs == 0 || out[outs].at >= out[outs - 1].at);
		outs++;
	}
	ck_assert(link_way_next(way) > now);
}

/* `count` packets at a steady rate of one each `gap` ns. Returns the time of the last. */
static uint64_t stream(unsigned count, uint64_t gap, bool ect, uint64_t now)
{
	for (unsigned i = 0; i < count; i++, now += gap) {
		enter(i, PACKET, ect, now);
		leave(now);
	}
	return now;
}

START_TEST(test_rate_and_delay)
{
	struct link_options o = {.rate = GIGABIT, .delay = 50 * MS};

	open_way(&o, 1);
	for (unsigned i = 0; i < 100; i++)
		enter(i, PACKET, false, 7);
	ck_assert(link_way_next(way) == 7 + 12000 + 50 * MS);
	/* The caller may be late: the times are those of the line. */
	leave(GIGABIT);
	ck_assert(outs == 100);
	for (unsigned i = 0; i < 100; i++)
		ck_assert(out[i].part == i && out[i].at == 7 + (i + 1) * 12000ull + 50 * MS);
	/* An idle line starts at once. */
	enter(0, 125, false, 2 * GIGABIT);
	leave(3 * GIGABIT);
	ck_assert(out[100].at == 2 * GIGABIT + 1000 + 50 * MS);
	ck_assert(link_way_next(way) == UINT64_MAX);
	link_way_free(way);
	/* Divisions leave no rest behind: 3 bit/s, 8,000 bits. */
	o = (struct link_options){.rate = 3};
	open_way(&o, 1);
	for (unsigned i = 0; i < 1000; i++)
		enter(i, 1, false, 0);
	leave(UINT64_MAX - 1);
	ck_assert(out[999].at == 8000 * GIGABIT / 3);
	link_way_free(way);
}
END_TEST

START_TEST(test_polling_changes_nothing)
{
	struct link_options o = {.rate = 100000000,
				 .queue_packets = 50,
				 .delay = 20 * MS,
				 .loss = 0.05,
				 .burst = 4,
				 .reorder = 0.1,
				 .reorder_by = 5 * MS,
				 .duplicate = 0.02,
				 .jitter = 3 * MS,
				 .jitter_shape = LINK_WALK};
	static struct link_packet first[20000];
	unsigned count;

	/* Asked at each packet, and only once at the end. */
	open_way(&o, 42);
	leave(stream(10000, 115000, false, 0) + GIGABIT);
	memcpy(first, out, outs * sizeof(out[0]));
	count = outs;
	ck_assert(count > 9000 && dropped > 300 && copied > 100);
	link_way_free(way);
	open_way(&o, 42);
	for (unsigned i = 0; i < 10000; i++)
		enter(i, PACKET, false, i * 115000ull);
	leave(10000 * 115000ull + GIGABIT);
	ck_assert(outs == count);
	for (unsigned i = 0; i < count; i++)
		ck_assert(out[i].part == first[i].part && out[i].at == first[i].at);
	link_way_free(way);
	/* Another seed is another run. */
	open_way(&o, 43);
	leave(stream(10000, 115000, false, 0) + GIGABIT);
	ck_assert(outs != count || memcmp(first, out, count * sizeof(out[0])) != 0);
	link_way_free(way);
}
END_TEST

START_TEST(test_queue_limits)
{
	struct link_options o = {.rate = GIGABIT, .queue_packets = 10};

	/* One is being sent, ten wait. */
	open_way(&o, 1);
	for (unsigned i = 0; i < 20; i++)
		enter(i, PACKET, false, 0);
	leave(GIGABIT);
	ck_assert(outs == 11 && dropped == 9);
	ck_assert(link_way_counters(way)->overflowed == 9);
	ck_assert(link_way_counters(way)->queue_most == 15000);
	link_way_free(way);
	o = (struct link_options){.rate = GIGABIT, .queue_bytes = 4000};
	open_way(&o, 1);
	for (unsigned i = 0; i < 20; i++)
		enter(i, i < 10 ? PACKET : 500, false, 0);
	leave(GIGABIT);
	/* Two long ones fit, and behind them two short ones. */
	ck_assert(outs == 5 && out[3].length == 500);
	link_way_free(way);
	/* A packet that is longer than the queue. */
	o.queue_bytes = 100;
	open_way(&o, 1);
	enter(0, PACKET, false, 0);
	enter(1, PACKET, false, 0);
	enter(2, PACKET, false, 0);
	leave(GIGABIT);
	ck_assert(outs == 2);
	link_way_free(way);
}
END_TEST

START_TEST(test_random_loss)
{
	struct link_options o = {.loss = 0.01};
	unsigned runs = 0;

	open_way(&o, 5);
	leave(stream(100000, 1000, false, 0));
	ck_assert_uint_eq(outs + dropped, 100000);
	/* The standard deviation is 31. */
	ck_assert_msg(dropped > 875 && dropped < 1125, "%u lost", dropped);
	for (unsigned i = 1; i < outs; i++)
		runs += out[i].part != out[i - 1].part + 1;
	/* Mostly alone. */
	ck_assert_msg(runs > dropped * 96 / 100, "%u runs of %u", runs, dropped);
	ck_assert(link_way_counters(way)->lost == dropped);
	link_way_free(way);
}
END_TEST

/* Lost packets, and the runs in which they were lost. */
static void count_runs(unsigned *lost, unsigned *runs)
{
	*lost = *runs = 0;
	for (unsigned i = 1; i < outs; i++) {
		unsigned gap = out[i].part - out[i - 1].part - 1;

		*lost += gap;
		*runs += gap != 0;
	}
}

START_TEST(test_bursts_of_loss)
{
	struct link_options o = {.loss = 0.02, .burst = 10};
	unsigned lost, runs;

	open_way(&o, 9);
	leave(stream(200000, 1000, false, 0));
	count_runs(&lost, &runs);
	ck_assert_msg(lost > 3400 && lost < 4600, "%u lost", lost);
	ck_assert_msg(lost > runs * 8.5 && lost < runs * 11.5, "%u in %u runs", lost, runs);
	link_way_free(way);
	/* A burst that no packet ends: the next packet comes too late for it. */
	o = (struct link_options){.loss = 0.5, .burst = 1000, .burst_limit = 10 * MS};
	open_way(&o, 9);
	leave(stream(100000, 11 * MS, false, 0));
	count_runs(&lost, &runs);
	ck_assert(runs > 50 && lost == runs);
	link_way_free(way);
}
END_TEST

START_TEST(test_gilbert_elliott)
{
	/* A fifth of the time in the bad state. */
	struct link_options o = {
		.loss = 0.001, .bad_enter = 0.01, .bad_leave = 0.04, .bad_loss = 0.3};

	open_way(&o, 3);
	leave(stream(200000, 1000, false, 0));
	ck_assert_msg(dropped > 200000 * 0.055 && dropped < 200000 * 0.067, "%u lost", dropped);
	link_way_free(way);
}
END_TEST

START_TEST(test_jitter_keeps_the_order)
{
	struct link_options o = {.delay = 50 * MS, .jitter = 20 * MS};
	uint64_t least, most, gap;

	for (unsigned shape = 0; shape < 2; shape++) {
		o.jitter_shape = shape;
		/* Packets that are closer than the jitter would push each other on. */
		gap = shape == LINK_UNIFORM ? 25 * MS : MS;
		open_way(&o, 4);
		leave(stream(50000, gap, false, 0) + GIGABIT);
		ck_assert(outs == 50000);
		least = UINT64_MAX, most = 0;
		for (unsigned i = 0; i < outs; i++) {
			uint64_t delay = out[i].at - i * gap;

			ck_assert(out[i].part == i);
			least = delay < least ? delay : least;
			most = delay > most ? delay : most;
			/* The walk changes by an eighth in 10 ms at most. */
			ck_assert(shape == LINK_UNIFORM || i == 0 ||
				  out[i].at - out[i - 1].at <= MS + 20 * MS / 8);
		}
		ck_assert(least >= 50 * MS && least < 53 * MS && most <= 70 * MS && most > 67 * MS);
		link_way_free(way);
	}
}
END_TEST

START_TEST(test_reordering_and_copies)
{
	struct link_options o = {
		.delay = MS, .reorder = 0.05, .reorder_by = 5 * MS, .duplicate = 0.01};
	unsigned late = 0, highest = 0, twice = 0;
	static unsigned char seen[20000];

	open_way(&o, 6);
	leave(stream(20000, 100000, false, 0) + GIGABIT);
	for (unsigned i = 0; i < outs; i++) {
		uint64_t delay = out[i].at - out[i].part * 100000ull;

		ck_assert(delay >= MS && delay <= 6 * MS + 1);
		late += out[i].part < highest;
		highest = out[i].part > highest ? out[i].part : highest;
		twice += seen[out[i].part]++;
	}
	ck_assert_msg(late > 800 && late < 1200, "%u late", late);
	ck_assert_msg(twice > 150 && twice < 250 && twice == copied, "%u twice", twice);
	ck_assert(outs == 20000 + copied);
	link_way_free(way);
}
END_TEST

/* Load at 1.02 times the rate for a while; ms that packets of the last second have waited. */
static double standing_queue(const struct link_options *o, bool ect)
{
	uint64_t end = 0, sum = 0;
	unsigned count = 0;

	open_way(o, 8);
	/* 100 Mbit/s: 120 us a packet. */
	end = stream(100000, 117600, ect, 0);
	for (unsigned i = 0; i < outs; i++) {
		if (out[i].at > end - GIGABIT) {
			sum += out[i].at - out[i].part * 117600ull;
			count++;
		}
	}
	ck_assert(count > 1000);
	return (double)sum / count / 1e6;
}

START_TEST(test_codel)
{
	struct link_options o = {
		.rate = 100000000, .queue_packets = 10000, .target = 5 * MS, .interval = 100 * MS};
	double full, codel;
	const struct link_counters *n;

	full = standing_queue(&o, false);
	ck_assert(full > 200);
	link_way_free(way);
	/* It finds the rate of drops that this load needs, although it does not react. */
	o.discipline = LINK_CODEL;
	codel = standing_queue(&o, false);
	n = link_way_counters(way);
	ck_assert_msg(codel < full / 4, "%g ms of %g", codel, full);
	ck_assert(n->dropped > 500 && n->marked == 0);
	link_way_free(way);
	/* Marks instead, for those who understand them. */
	o.ecn = 1;
	standing_queue(&o, true);
	n = link_way_counters(way);
	ck_assert(n->dropped == 0 && n->marked > 500);
	link_way_free(way);
	standing_queue(&o, false);
	n = link_way_counters(way);
	ck_assert(n->dropped > 500 && n->marked == 0);
	link_way_free(way);
}
END_TEST

START_TEST(test_codel_law)
{
	struct codel c = {0};
	uint64_t at[4] = {0};
	unsigned hits = 0;

	/* Always 10 ms in the queue: first after one interval, then at intervals that shrink by roots. */
	for (uint64_t t = 0; t < 400 * MS && hits < 4; t += MS / 10)
		if (codel_hits(&c, 5 * MS, 100 * MS, t, 10 * MS, 100000))
			at[hits++] = t;
	ck_assert_uint_eq(at[0] / MS, 100);
	ck_assert_uint_eq(at[1] / MS, 200);
	ck_assert_uint_eq(at[2] / MS, 270);
	ck_assert_uint_eq(at[3] / MS, 328);
	/* Below the target it stops, as with one packet left. */
	ck_assert(!codel_hits(&c, 5 * MS, 100 * MS, 400 * MS, 4 * MS, 100000));
	ck_assert(!codel_hits(&c, 5 * MS, 100 * MS, 401 * MS, 10 * MS, 100000));
	ck_assert(!c.dropping);
	ck_assert(!codel_hits(&c, 5 * MS, 100 * MS, 600 * MS, 10 * MS, 1500));
	ck_assert(c.first_above == 0);
}
END_TEST

START_TEST(test_step_marking)
{
	struct link_options o = {.rate = GIGABIT, .discipline = LINK_STEP, .step = 60000};

	open_way(&o, 1);
	for (unsigned i = 0; i < 10; i++)
		enter(i, PACKET, true, 0);
	for (unsigned i = 10; i < 20; i++)
		enter(i, PACKET, false, 0);
	leave(GIGABIT);
	/* Packet i waits for i times 12 us. */
	for (unsigned i = 0; i < 20; i++)
		ck_assert(out[i].ce == (i > 5 && i < 10));
	ck_assert(link_way_counters(way)->marked == 4 && dropped == 0);
	link_way_free(way);
}
END_TEST

START_TEST(test_changes)
{
	struct link_options o = {.rate = GIGABIT, .delay = 10 * MS};

	open_way(&o, 1);
	for (unsigned i = 0; i < 10; i++)
		enter(i, PACKET, false, 0);
	/* A tenth of the rate for those that have not been sent: four have, one is being sent. */
	o.rate = GIGABIT / 10;
	link_way_change(way, &o, 48000);
	leave(GIGABIT);
	ck_assert(out[4].at == 10 * MS + 60000);
	ck_assert(out[5].at == 10 * MS + 60000 + 120000);
	ck_assert(out[9].at == 10 * MS + 60000 + 5 * 120000);
	/* A shorter way: later packets overtake. */
	enter(10, PACKET, false, 2 * GIGABIT);
	o.delay = MS;
	link_way_change(way, &o, 2 * GIGABIT + MS);
	enter(11, PACKET, false, 2 * GIGABIT + MS);
	leave(3 * GIGABIT);
	ck_assert(out[10].part == 11 && out[11].part == 10);
	/* A hole. */
	o.hole = 1;
	link_way_change(way, &o, 3 * GIGABIT);
	enter(12, PACKET, false, 3 * GIGABIT);
	leave(4 * GIGABIT);
	ck_assert(outs == 12 && dropped == 1);
	o.hole = 0;
	link_way_change(way, &o, 4 * GIGABIT);
	enter(13, PACKET, false, 4 * GIGABIT);
	leave(5 * GIGABIT);
	ck_assert(outs == 13);
	link_way_free(way);
}
END_TEST

START_TEST(test_what_is_left_is_dropped)
{
	struct link_options o = {.rate = 1000000,
				 .delay = GIGABIT,
				 .reorder = 0.5,
				 .reorder_by = GIGABIT,
				 .duplicate = 0.5};

	open_way(&o, 2);
	stream(100, MS, false, 0);
	link_way_free(way);
	ck_assert_uint_eq(dropped, 100 + copied - outs);
}
END_TEST

START_TEST(test_corruption)
{
	struct link_options o = {.corrupt = 0.1};
	unsigned spoilt = 0;

	open_way(&o, 2);
	leave(stream(1000, MS, false, 0));
	for (unsigned i = 0; i < outs; i++)
		spoilt += out[i].spoil != 0;
	ck_assert(outs == 1000 && spoilt > 60 && spoilt < 140);
	ck_assert(link_way_counters(way)->corrupted == spoilt);
	link_way_free(way);
}
END_TEST

TEST_MAIN("link_way", test_rate_and_delay, test_polling_changes_nothing, test_queue_limits,
	  test_random_loss, test_bursts_of_loss, test_gilbert_elliott, test_jitter_keeps_the_order,
	  test_reordering_and_copies, test_codel, test_codel_law, test_step_marking, test_changes,
	  test_what_is_left_is_dropped, test_corruption)
