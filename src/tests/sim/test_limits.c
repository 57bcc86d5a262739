/* SPDX-License-Identifier: BSD-2-Clause */
/* Statistical limits: goodput under loss and reordering, fairness, no starvation. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim.h"
#include "tests/asserts.h"
#include "tests/main.h"

#define SEEDS 3

static struct sim sim;

/* Virtual duration of one run in seconds. Ends the test if the run failed. */
static double run(const struct sim_setup *setup, uint64_t seed)
{
	double seconds;

	sim_run(&sim, setup, seed);
	seconds = (double)(sim.finished_at - RXW_SEC) / 1e9;
	if (sim.failure[0] == '\0' && sim.calls_done < sim.call_count)
		sim_fail(&sim, "calls are missing");
	ck_assert_msg(sim.failure[0] == '\0', "seed %llu: %s", (unsigned long long)seed,
		      sim.failure);
	return seconds;
}

struct way {
	const char *name;
	double rate;
	uint64_t delay, queue;
};
static const struct way lan = {"125 MB/s, 0.2 ms", 125e6, 100 * 1000, 1000000};
static const struct way wan = {"10 MB/s, 20 ms", 10e6, 10 * RXW_MS, 200000};

static void bulk(struct sim_setup *s, const struct way *way, uint64_t bytes)
{
	sim_default(s);
	s->down.delay = s->up.delay = way->delay;
	s->down.jitter = way->delay / 2;
	s->down.rate = (uint64_t)way->rate;
	s->down.queue = way->queue;
	s->reply = bytes;
}

/* The minimum share of the capacity for a bulk reply with each of the seeds. */
static void expect_goodput(const struct way *way, double loss, double reorder, uint64_t bytes,
			   double share)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct sim_setup s;
		double got;

		bulk(&s, way, bytes);
		s.down.loss = loss;
		s.down.reorder = reorder;
		got = (double)bytes / run(&s, seed) / way->rate;
		sim_free(&sim);
		printf("%s, loss %.3f, reorder %.2f, seed %llu: %.1f %% (at least %.1f)\n",
		       way->name, loss, reorder, (unsigned long long)seed, 100 * got, 100 * share);
		ck_assert_msg(got >= share, "%.4f of the capacity, less than %.4f", got, share);
	}
}

START_TEST(goodput_clean)
{
	expect_goodput(&lan, 0, 0, 10000000, 0.85);
	expect_goodput(&wan, 0, 0, 10000000, 0.65);
}
END_TEST

START_TEST(goodput_loss)
{
	expect_goodput(&lan, 0.001, 0, 10000000, 0.75);
	expect_goodput(&lan, 0.01, 0, 10000000, 0.30);
	/* Long enough for some timeouts: in a short run the chance of one would decide. */
	expect_goodput(&lan, 0.05, 0, 20000000, 0.10);
	/* Half of NewReno's goodput: 1.22 * packet / (round trip * sqrt(loss)). */
	expect_goodput(&wan, 0.001, 0, 5000000, 0.5 * 1.22 * 1416 / (0.02 * sqrt(0.001)) / 10e6);
	expect_goodput(&wan, 0.01, 0, 2000000, 0.5 * 1.22 * 1416 / (0.02 * sqrt(0.01)) / 10e6);
	expect_goodput(&wan, 0.05, 0, 1000000, 0.5 * 1.22 * 1416 / (0.02 * sqrt(0.05)) / 10e6);
}
END_TEST

START_TEST(goodput_reordering)
{
	expect_goodput(&lan, 0, 0.01, 10000000, 0.80);
	expect_goodput(&lan, 0, 0.1, 10000000, 0.80);
	expect_goodput(&wan, 0, 0.01, 10000000, 0.60);
	expect_goodput(&wan, 0, 0.1, 10000000, 0.60);
}
END_TEST

/* Without loss and reordering nothing is sent twice, and one ACK covers many packets. */
START_TEST(economy)
{
	struct sim_setup s;

	sim_default(&s);
	s.reply = 50000000;
	run(&s, 1);
	ck_assert_uint_eq(sim.server.stats.retransmitted, 0);
	ck_assert_uint_eq(sim.server.stats.loss_events, 0);
	ck_assert_uint_lt(sim.client.stats.packets_sent[RXW_ACK] * 20,
			  sim.server.stats.packets_sent[RXW_DATA]);
	sim_free(&sim);
}
END_TEST

/* Jain's index of the durations of `n` equal calls. */
static double fairness(unsigned n, double *slowest)
{
	double sum = 0, squares = 0, most = 0;

	for (unsigned i = 0; i < n; i++) {
		sum += sim.call_seconds[i];
		squares += sim.call_seconds[i] * sim.call_seconds[i];
		most = sim.call_seconds[i] > most ? sim.call_seconds[i] : most;
	}
	*slowest = most / (sum / n);
	return sum * sum / (n * squares);
}

static void expect_fair(unsigned connections, unsigned channels, const struct way *way,
			uint64_t bytes, double loss)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct sim_setup s;
		double index, slowest;

		bulk(&s, way, bytes);
		s.connections = connections;
		s.channels = channels;
		s.down.loss = loss;
		run(&s, seed);
		index = fairness(connections * channels, &slowest);
		sim_free(&sim);
		printf("%u flows, %s, loss %.3f, seed %llu: fairness %.3f, slowest %.2f\n",
		       connections * channels, way->name, loss, (unsigned long long)seed, index,
		       slowest);
		ck_assert_msg(index >= 0.9, "fairness %.3f", index);
		ck_assert_msg(slowest <= 3, "the slowest call took %.2f times the mean", slowest);
	}
}

START_TEST(fair)
{
	expect_fair(8, 1, &lan, 2000000, 0);
	expect_fair(2, 4, &wan, 1000000, 0);
	expect_fair(32, 1, &lan, 500000, 0.001);
}
END_TEST

/* The slowest of 32 equal, concurrent streams in 10 s, relative to the mean. */
static void expect_even(const struct way *way, unsigned window, unsigned channels, double loss,
			double bound)
{
	enum { STREAMS = 32 };
	const uint64_t time = 10 * RXW_SEC;

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		uint64_t least = UINT64_MAX, sum = 0;
		struct sim_setup s;
		double share;

		bulk(&s, way, 1u << 30);
		s.connections = STREAMS / channels;
		s.channels = channels;
		s.client.window = s.server.window = (uint16_t)window;
		s.down.loss = loss;
		s.stop_at = time;
		sim_run(&sim, &s, seed);
		ck_assert_msg(sim.failure[0] == '\0', "seed %llu: %s", (unsigned long long)seed,
			      sim.failure);
		ck_assert_uint_eq(sim.call_count, STREAMS);
		for (unsigned i = 0; i < STREAMS; i++) {
			least = sim.call_bytes[i] < least ? sim.call_bytes[i] : least;
			sum += sim.call_bytes[i];
		}
		sim_free(&sim);
		ck_assert_msg(sim.failure[0] == '\0', "%s", sim.failure);
		share = (double)least * STREAMS / (double)sum;
		printf("%u streams, window %u, %s, loss %.3f, seed %llu: slowest %.2f of the mean, "
		       "%.1f %% of the capacity\n",
		       STREAMS, window, way->name, loss, (unsigned long long)seed, share,
		       100.0 * (double)sum / ((double)time / 1e9) / way->rate);
		ck_assert_msg(share >= bound, "the slowest stream has %.2f of the mean", share);
	}
}

/* A queue for all windows; a queue for some of them, so that packets are dropped. */
static const struct way roomy = {"10 MB/s, 2 ms, roomy", 10e6, RXW_MS, 16000000};
static const struct way tight = {"10 MB/s, 2 ms, tight", 10e6, RXW_MS, 300000};

/*
 * Without losses only our scheduler divides the line, and the slowest has at least 0.9 of the mean.
 * With drops, chance decides which streams react.
 */
START_TEST(even)
{
	expect_even(&roomy, 32, 1, 0, 0.9);
	expect_even(&roomy, 255, 1, 0, 0.9);
	expect_even(&roomy, 255, 4, 0, 0.9);
	expect_even(&tight, 32, 4, 0, 0.6);
	expect_even(&tight, 255, 1, 0, 0.6);
	expect_even(&wan, 255, 1, 0.001, 0.5);
}
END_TEST

/* A bulk call must not delay a small one of the same connection. */
START_TEST(small_beside_bulk)
{
	struct sim_setup s;
	double worst = 0;

	bulk(&s, &wan, 3000000);
	s.channels = 4;
	s.calls = 3;
	s.vary = true;
	run(&s, 5);
	for (unsigned i = 0; i < sim.call_count; i++)
		worst = sim.call_seconds[i] > worst ? sim.call_seconds[i] : worst;
	sim_free(&sim);
	ck_assert_msg(worst < 10, "a call took %.1f s", worst);
}
END_TEST

/* Requests are as fast as replies. */
START_TEST(upload)
{
	struct sim_setup s;
	double got;

	bulk(&s, &lan, 10);
	s.up = s.down;
	s.request = 10000000;
	got = (double)s.request / run(&s, 1) / lan.rate;
	sim_free(&sim);
	ck_assert_msg(got >= 0.85, "%.2f of the capacity", got);
}
END_TEST

TEST_MAIN_WITHIN(0, "limits", goodput_clean, goodput_loss, goodput_reordering, economy,
	  fair, even, small_beside_bulk, upload)
