/* SPDX-License-Identifier: BSD-2-Clause */
/* The controller with a model of the path: start, cruise, losses, hostile samples. */

#include "testing.h"

#include "base/cc.h"
#include "base/hash.h"
#include "base/rtt.h"

#define RATE_ONE 1024u /* one packet per second */

/* A path: packets per second, round trip (ns), packets that queue, share of packets lost (1/1000). */
struct path {
	uint64_t rate, rtt;
	uint32_t queue, loss;
	uint64_t now, fair;
	uint32_t burst; /* packets that the next round trip loses, at its beginning */
};

/* One round trip, in `parts` ACKs: the flight is what window and pace allow. Returns packets moved. */
static uint64_t round_trip(struct rxw_cc *cc, struct path *p, unsigned parts)
{
	uint64_t interval = rxw_cc_interval(cc, cc->cwnd, p->rtt), bdp = p->rate * p->rtt / RXW_SEC;
	uint64_t paced = interval ? p->rtt / interval : cc->cwnd, moved = 0;
	uint32_t flight = (uint32_t)(paced < cc->cwnd ? paced : cc->cwnd);
	uint64_t queued = flight > bdp ? flight - bdp : 0;
	uint64_t over = queued > p->queue ? queued - p->queue : 0, rtt;

	queued -= over;
	rtt = p->rtt + queued * RXW_SEC / p->rate;
	flight -= (uint32_t)over;
	for (unsigned i = 0; i < parts; i++) {
		uint32_t newly = flight * (i + 1) / parts - flight * i / parts, lost = newly * p->loss / 1000;
		struct rxw_cc_sample s;

		p->now += rtt / parts;
		s = (struct rxw_cc_sample){
			.now = p->now,
			.rate = (uint64_t)flight * RATE_ONE * RXW_SEC / rtt,
			.rtt = rtt,
			.fair = p->fair,
			.newly = newly - lost,
			.lost = lost + (i == 0 ? (uint32_t)over + p->burst : 0),
			.flight = flight,
			.flight_then = flight,
			.round = i + 1 == parts,
		};
		rxw_cc_sample(cc, &s);
		moved += s.newly;
	}
	p->burst = 0;
	return moved;
}

/* The share of what the path can carry, in `rounds` round trips. */
static double share(struct rxw_cc *cc, struct path *p, unsigned rounds)
{
	uint64_t began = p->now, moved = 0;

	for (unsigned i = 0; i < rounds; i++)
		moved += round_trip(cc, p, 16);
	return (double)moved / ((double)p->rate * (double)(p->now - began) / 1e9);
}

static void begin(struct rxw_cc *cc, struct path *p, uint32_t loss)
{
	*p = (struct path){.rate = 80000, .rtt = 100 * RXW_MS, .queue = 8000, .loss = loss,
			   .now = RXW_SEC};
	rxw_cc_init(cc, &rxw_cc_rate, 4, 0, 65535);
}

/* After an outage the model has a rate of a packet in 8 s: the next ones wait for a round trip at most. */
START_TEST(pace_after_outage)
{
	struct rxw_cc_sample s = {.now = 9 * RXW_SEC, .rate = RATE_ONE / 8, .rtt = 150 * RXW_MS,
				  .newly = 1, .flight = 1, .flight_then = 1, .round = true};
	struct rxw_cc cc;

	rxw_cc_init(&cc, &rxw_cc_rate, 4, 0, 65535);
	rxw_cc_sample(&cc, &s);
	ck_assert_uint_le(rxw_cc_interval(&cc, 64, 150 * RXW_MS), 150 * RXW_MS);
}
END_TEST

START_TEST(fills_the_path)
{
	struct rxw_cc cc;
	struct path p;

	begin(&cc, &p, 0);
	ck_assert_str_eq(rxw_cc_phase(&cc), "startup");
	share(&cc, &p, 15);
	ck_assert_str_ne(rxw_cc_phase(&cc), "startup");
	ck_assert_double_ge(share(&cc, &p, 100), 0.95);
	/* No more than the path and its queue hold. */
	ck_assert_uint_le(cc.cwnd, 2 * 8000 + 2048);
}
END_TEST

START_TEST(bears_losses)
{
	struct rxw_cc cc;
	struct path p;

	begin(&cc, &p, 10);
	share(&cc, &p, 20);
	ck_assert_double_ge(share(&cc, &p, 200), 0.90);
}
END_TEST

/* The path falls to a quarter: so does the rate, within seconds. */
START_TEST(follows_the_path)
{
	struct rxw_cc cc;
	struct path p;
	uint64_t interval;

	begin(&cc, &p, 0);
	share(&cc, &p, 60);
	p.rate = 20000;
	share(&cc, &p, 150);
	interval = rxw_cc_interval(&cc, cc.cwnd, p.rtt);
	ck_assert_uint_ge(interval, RXW_SEC / 20000 / 2);
	ck_assert_uint_le(cc.cwnd, 3 * 2000 + 2048);
}
END_TEST

START_TEST(timeout)
{
	struct rxw_cc cc;
	struct path p;

	begin(&cc, &p, 0);
	share(&cc, &p, 30);
	rxw_cc_timeout(&cc, 1000);
	ck_assert_uint_eq(cc.cwnd, 1);
	/* The model is still good: the window returns. */
	share(&cc, &p, 30);
	ck_assert_uint_ge(cc.cwnd, 6000);
}
END_TEST

/* In slow start the round trip grows by half, for a while or for good: the share of the line later. */
static double longer(bool for_good)
{
	struct rxw_cc cc;
	struct path p;

	begin(&cc, &p, 0);
	share(&cc, &p, 4);
	p.rtt = 150 * RXW_MS;
	share(&cc, &p, 2);
	if (!for_good)
		p.rtt = 100 * RXW_MS;
	share(&cc, &p, 25);
	return share(&cc, &p, 10);
}

/* As on a busy machine, where ACKs are late. The path is empty, and the next probe shows it. */
START_TEST(early_end)
{
	ck_assert_double_ge(longer(false), 0.9);
}
END_TEST

/* As on a path with jitter: no later round trip is as short as the first ones. */
START_TEST(longer_from_the_start)
{
	ck_assert_double_ge(longer(true), 0.8);
}
END_TEST

/* A burst of losses on an empty path is no congestion, however few packets are in flight: slow start goes on. */
START_TEST(burst_in_slow_start)
{
	for (unsigned at = 2; at < 8; at++) {
		struct rxw_cc cc;
		struct path p;

		begin(&cc, &p, 0);
		share(&cc, &p, at);
		p.burst = 8;
		share(&cc, &p, 1);
		ck_assert_str_eq(rxw_cc_phase(&cc), "startup");
		share(&cc, &p, 12);
		ck_assert_double_ge(share(&cc, &p, 10), 0.9);
	}
}
END_TEST

/* Bursts in two round trips are congestion. */
START_TEST(two_bursts)
{
	struct rxw_cc cc;
	struct path p;

	begin(&cc, &p, 0);
	share(&cc, &p, 3);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_str_eq(rxw_cc_phase(&cc), "startup");
		p.burst = 20;
		share(&cc, &p, 1);
	}
	ck_assert_str_ne(rxw_cc_phase(&cc), "startup");
}
END_TEST

/* Nothing queues, so that round trips never show congestion: losses end slow start within two of them. */
START_TEST(no_queue)
{
	struct rxw_cc cc;
	struct path p;
	unsigned rounds = 0;

	begin(&cc, &p, 0);
	p.queue = 40;
	while (cc.cwnd < 8400 && rounds++ < 20)
		share(&cc, &p, 1);
	ck_assert_uint_lt(rounds, 20);
	share(&cc, &p, 2);
	ck_assert_str_ne(rxw_cc_phase(&cc), "startup");
	ck_assert_double_ge(share(&cc, &p, 100), 0.8);
}
END_TEST

/* A pause: the flow begins with a few packets again, and half of its rate follows. */
START_TEST(pause)
{
	struct rxw_cc cc;
	struct path p;

	begin(&cc, &p, 0);
	share(&cc, &p, 40);
	rxw_cc_idle(&cc, 200 * RXW_MS, 300 * RXW_MS);
	ck_assert_uint_ge(cc.cwnd, 8000);
	rxw_cc_idle(&cc, RXW_SEC, 300 * RXW_MS);
	ck_assert_uint_eq(cc.cwnd, 10);
	p.now += RXW_SEC;
	rxw_cc_confirm(&cc, p.rtt, 8); /* that is what this flow had alone */
	ck_assert_uint_ge(cc.cwnd, 3500);
	ck_assert_uint_le(cc.cwnd, 4500);
	rxw_cc_prove(&cc, cc.cwnd);
	share(&cc, &p, 6);
	ck_assert_double_ge(share(&cc, &p, 20), 0.9);
}
END_TEST

/* The larger window of a later flow was too much: no more than half of what has arrived is left. */
START_TEST(retreat)
{
	static const struct rxw_cc_path known = {80000ull << RXW_CC_RATE_SHIFT, 100 * RXW_MS};
	struct rxw_cc_sample s = {.now = RXW_SEC, .rtt = 100 * RXW_MS, .newly = 10, .round = true};
	struct rxw_cc cc;

	rxw_cc_init(&cc, &rxw_cc_rate, 10, 0, 65535);
	rxw_cc_resume(&cc, &known);
	rxw_cc_sample(&cc, &s);
	rxw_cc_confirm(&cc, s.rtt, 1);
	ck_assert_uint_eq(cc.cwnd, 4000);
	for (unsigned i = 0; i < 10; i++) {
		s = (struct rxw_cc_sample){.now = s.now + 10 * RXW_MS, .rate = 8000 * RATE_ONE,
					   .rtt = 110 * RXW_MS, .newly = 40, .lost = 360,
					   .flight = 3000, .flight_then = 4000, .round = i == 9};
		rxw_cc_sample(&cc, &s);
		rxw_cc_prove(&cc, s.newly);
	}
	ck_assert_int_eq(cc.resume, RXW_CC_RETREATED);
	ck_assert_uint_le(cc.cwnd, 800 + 64 + 8000 / 250);
}
END_TEST

/* Two flows of one path with a tenth and nine tenths of it: soon they have the same rate. */
START_TEST(equal_shares)
{
	struct rxw_cc_path got[2];
	struct rxw_cc cc[2];
	struct path p[2];

	for (unsigned i = 0; i < 2; i++) {
		begin(&cc[i], &p[i], 0);
		p[i].rate = i ? 72000 : 8000;
		share(&cc[i], &p[i], 40);
		ck_assert(rxw_cc_learnt(&cc[i], 0, 0, &got[i]));
	}
	for (unsigned k = 0; k < 40; k++) {
		for (unsigned i = 0; i < 2; i++) {
			/* Each gets what it sends, as the sum does not exceed the path. */
			p[i].rate = RXW_SEC / rxw_cc_interval(&cc[i], cc[i].cwnd, p[i].rtt);
			p[i].fair = (got[0].rate + got[1].rate) / 2;
			round_trip(&cc[i], &p[i], 16);
		}
		for (unsigned i = 0; i < 2; i++)
			ck_assert(rxw_cc_learnt(&cc[i], 0, 0, &got[i]));
	}
	ck_assert_uint_le(got[1].rate, got[0].rate + got[0].rate / 4);
	ck_assert_uint_le(got[0].rate, got[1].rate + got[1].rate / 4);
}
END_TEST

/* In DOWN, with a full queue: six round trips in which a tenth is lost, and 56,000 packets a second arrive. */
static uint64_t rate_after_losses(bool alone)
{
	struct rxw_cc_sample s = {.rate = 78000 * RATE_ONE,
				  .rtt = 180 * RXW_MS,
				  .newly = 630,
				  .lost = 70,
				  .flight = 20000,
				  .flight_then = 20000};
	unsigned rounds = 0;
	struct rxw_cc cc;
	struct path p;

	begin(&cc, &p, 0);
	while (strcmp(rxw_cc_phase(&cc), "down") != 0 && rounds++ < 40)
		share(&cc, &p, 1);
	ck_assert_uint_lt(rounds, 40);
	s.fair = alone ? 0 : 80000 * RATE_ONE;
	s.now = p.now;
	for (unsigned i = 1; i <= 6 * 16; i++) {
		s.now += s.rtt / 16;
		s.round = i % 16 == 0;
		rxw_cc_sample(&cc, &s);
	}
	ck_assert_str_eq(rxw_cc_phase(&cc), "down");
	s = (struct rxw_cc_sample){.now = s.now};
	rxw_cc_sample(&cc, &s); /* paced by its own rate, not by the mean */
	return RXW_SEC / rxw_cc_interval(&cc, cc.cwnd, p.rtt);
}

/* Calls with the same peer: the sum of their rates is more than the path carries, so each falls to what arrives. */
START_TEST(lost_together)
{
	ck_assert_uint_le(rate_after_losses(false), 60000);
}
END_TEST

/* The losses of a flow without others do not tell that the path carries less. */
START_TEST(lost_alone)
{
	ck_assert_uint_ge(rate_after_losses(true), 70000);
}
END_TEST

static uint64_t any(uint64_t *state)
{
	return rxw_prng(state) >> test_below(state, 64);
}

/* Any samples in any order: the window stays between 1 and its maximum. */
START_TEST(extremes)
{
	uint64_t state = test_seed();

	for (int i = 0; i < 2000; i++) {
		uint32_t max = (uint32_t)any(&state);
		uint64_t now = any(&state);
		struct rxw_cc cc;

		rxw_cc_init(&cc, &rxw_cc_rate, (uint32_t)any(&state), (uint32_t)any(&state), max);
		for (int k = 0; k < 200; k++) {
			struct rxw_cc_sample s;

			now += any(&state) >> 8;
			s = (struct rxw_cc_sample){
				.now = now,
				.rate = any(&state),
				.rtt = any(&state),
				.fair = rxw_prng(&state) & 1 ? any(&state) : 0,
				.newly = (uint32_t)any(&state),
				.lost = (uint32_t)any(&state),
				.flight = (uint32_t)any(&state),
				.flight_then = (uint32_t)any(&state),
				.limited = rxw_prng(&state) & 1,
				.round = rxw_prng(&state) & 1,
			};
			switch (test_below(&state, 16)) {
			case 0:
				rxw_cc_timeout(&cc, s.flight);
				break;
			case 1:
				rxw_cc_undo(&cc);
				break;
			case 2:
				rxw_cc_idle(&cc, any(&state), any(&state));
				break;
			case 3:
				rxw_cc_resume(&cc, &(struct rxw_cc_path){any(&state), any(&state)});
				break;
			case 4:
				rxw_cc_confirm(&cc, any(&state), (uint32_t)any(&state));
				break;
			case 5:
				rxw_cc_prove(&cc, (uint32_t)any(&state));
				break;
			default:
				rxw_cc_sample(&cc, &s);
			}
			rxw_cc_interval(&cc, cc.cwnd, any(&state));
			ck_assert_uint_ge(cc.cwnd, 1);
			ck_assert_uint_le(cc.cwnd, max ? max : 1);
		}
	}
}
END_TEST

TEST_MAIN("cc_rate", fills_the_path, pace_after_outage, bears_losses, follows_the_path, timeout, early_end,
	  longer_from_the_start, burst_in_slow_start, two_bursts, no_queue, pause, retreat,
	  equal_shares, lost_together, lost_alone, extremes)
