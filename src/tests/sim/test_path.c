/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What calls have learnt of a path, and how they share it: a later call begins where an earlier one
 * ended; equal calls get equal shares, whatever their round trips, and no more than an idealised
 * CUBIC flow. RXW_SIM_PATH_SEEDS (1) sets the number of seeds. A failure names the seed to replay.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#define ENDLESS	 ((uint64_t)1 << 44)
#define MSEC	 1000000u
#define MBIT	 125000u /* bytes per second */
#define WINDOW	 32768u
#define MB_100	 100000000u

static struct sim sim;
static bool tracing;

/* A path, and wide windows at both ends. */
static void path(struct sim_setup *s, const struct rxw_cc_ops *cc, unsigned mbit, double rtt_ms,
		 double queue)
{
	sim_path(s, mbit, rtt_ms, queue);
	s->trace = tracing;
	sim_wide(s, WINDOW, cc);
}

/* --- later calls --- */

/* 100 MB over 1 Gbit/s and 100 ms: seconds of the first call, and of the slowest later one. */
static bool later_calls(const struct rxw_cc_ops *cc, double first, double later, uint64_t seed)
{
	struct sim_setup s;
	double slowest = 0;
	bool good;

	path(&s, cc, 1000, 100, 1);
	s.calls = 3;
	s.reply = MB_100;
	sim_run(&sim, &s, seed);
	for (unsigned i = 1; i < sim.call_count; i++)
		slowest = sim.call_seconds[i] > slowest ? sim.call_seconds[i] : slowest;
	good = sim_expect(&sim, "first call, seconds", seed, sim.call_seconds[0], 0.8, first);
	good &= sim_expect(&sim, "later call, seconds", seed, slowest, 0.8, later);
	sim_free(&sim);
	return good;
}

/*
 * Replies of 93 packets, over 1 Gbit/s and 50 ms: the first call needs six round trips. Later ones begin with
 * the window of the one before, and need little more than one if the client's window has room for the reply.
 */
static bool small_calls(uint32_t window, double later, uint64_t seed)
{
	struct sim_setup s;
	double slowest = 0;
	bool good;

	path(&s, window > 255 ? &rxw_cc_rate : NULL, 1000, 50, 1);
	s.client.window = window;
	s.server.window = window > 255 ? window : 255;
	s.calls = 6;
	s.reply = 128 << 10;
	sim_run(&sim, &s, seed);
	for (unsigned i = 1; i < sim.call_count; i++)
		slowest = sim.call_seconds[i] > slowest ? sim.call_seconds[i] : slowest;
	good = sim_expect(&sim, "first small call, seconds", seed, sim.call_seconds[0], 0.1, 0.35);
	good &= sim_expect(&sim, "later small call, seconds", seed, slowest, 0.05, later);
	sim_free(&sim);
	return good;
}

/*
 * Requests of one packet, of which one in 33 is lost, over 50 ms. The first loss is noticed when no reply comes. Later
 * requests ask for an ACK, so that their losses are noticed within a few round trips.
 */
static bool lost_requests(uint64_t seed)
{
	struct sim_setup s;
	unsigned slow = 0;
	bool good;

	path(&s, &rxw_cc_rate, 100, 50, 1);
	s.up.loss = 0.03;
	s.calls = 250;
	s.request = s.reply = 200;
	sim_run(&sim, &s, seed);
	for (unsigned i = 0; i < sim.call_count; i++)
		slow += sim.call_seconds[i] > 0.4;
	good = sim_expect(&sim, "calls of 250 that took 0.4 s, with lost requests", seed, slow, 0,
			  3);
	sim_free(&sim);
	return good;
}

/*
 * Two calls of 1 GB in succession. A later one begins with a large window, which must not make the receiver
 * take the path for short, and its window for too large.
 */
static bool long_calls(uint64_t seed)
{
	struct sim_setup s;
	double slowest = 0;
	bool good;

	path(&s, &rxw_cc_rate, 1000, 100, 1);
	s.calls = 2;
	s.reply = 1000000000;
	sim_run(&sim, &s, seed);
	for (unsigned i = 0; i < sim.call_count; i++)
		slowest = sim.call_seconds[i] > slowest ? sim.call_seconds[i] : slowest;
	good = sim_expect(&sim, "slower of two long calls, seconds", seed, slowest, 8, 9.3);
	sim_free(&sim);
	return good;
}

/* A queue of a quarter BDP: share of the packets of a call that slow start and the first probe lose. */
static bool short_queue(uint64_t seed)
{
	struct sim_setup s;
	bool good;

	path(&s, &rxw_cc_rate, 1000, 100, 0.25);
	s.reply = MB_100;
	sim_run(&sim, &s, seed);
	good = sim_expect(&sim, "queue of a quarter BDP, lost", seed,
			  (double)sim.setup.down.dropped /
				  (double)sim.server.stats.packets_sent[RXW_DATA],
			  0, 0.01);
	good &= sim_expect(&sim, "the same, seconds", seed, sim.call_seconds[0], 0.8, 1.8);
	sim_free(&sim);
	return good;
}

/* From the second call on, the path carries a twentieth. */
static bool narrow_tap(struct sim *world, const struct sim_node *node, const uint8_t *bytes,
		       uint32_t length)
{
	(void)length;
	if (node->client && bytes[20] == RXW_DATA && rxw_get32(bytes + 8) == 2)
		world->setup.down.rate = 50 * MBIT;
	return false;
}

/* Half of the former window is lost, and not much more; the call is done in due time. */
static bool changed_path(uint64_t seed)
{
	struct sim_setup s;
	double bdp = 1000 * MBIT * 0.1 / 1444;
	bool good;

	path(&s, &rxw_cc_rate, 1000, 100, 0.1);
	s.calls = 2;
	s.reply = MB_100;
	s.tap = narrow_tap;
	sim_run(&sim, &s, seed);
	good = sim_expect(&sim, "over a path that has changed, seconds", seed, sim.call_seconds[1],
			  14, 22);
	good &= sim_expect(&sim, "sent again, BDP of the former path", seed,
			   (double)sim.server.stats.retransmitted / bdp, 0, 3);
	sim_free(&sim);
	return good;
}

/* For two seconds no thread runs for long: slow start must not end at the rate of that time. */
static bool busy_ends(uint64_t seed)
{
	struct sim_setup s;
	bool good;

	path(&s, &rxw_cc_rate, 1000, 100, 1);
	s.reply = MB_100;
	for (unsigned i = 0; i < SIM_CHANGES - 1; i++)
		sim_plan(&s, 500 + 100 * i + (double)(seed % 50), SIM_PAUSE, SIM_BOTH, 90 * MSEC);
	sim_run(&sim, &s, seed);
	good = sim_expect(&sim, "a call that begins on busy machines, seconds", seed,
			  sim.call_seconds[0], 0.8, 6);
	sim_free(&sim);
	return good;
}

/* --- shares --- */

/* Goodput of each call between two marks, as a share of the line. */
static void shares(const struct sim_setup *setup, uint64_t seed, double *share)
{
	double seconds = (double)(setup->stop_at - setup->changes[0].at) / 1e9;

	sim_run(&sim, setup, seed);
	for (unsigned i = 0; i < sim.call_count; i++)
		share[i] = (double)(sim.call_bytes[i] - sim.call_marks[i]) / seconds /
			   (double)setup->down.rate;
}

static void endless(struct sim_setup *s, double from, double to)
{
	s->reply = ENDLESS;
	s->stop_at = (uint64_t)(to * 1e9);
	s->limit = 2 * s->stop_at;
	sim_plan(s, from * 1000, SIM_MARK, 0, 0);
}

/* Jain's index of eight calls: of one client, or of eight. */
static bool equal_calls(unsigned connections, bool apart, double queue, double least, uint64_t seed)
{
	double share[8], sum = 0, squares = 0;
	struct sim_setup s;
	bool good;

	path(&s, &rxw_cc_rate, 200, 100, queue);
	endless(&s, 5, 30);
	s.connections = connections;
	s.channels = 8 / connections;
	s.apart = apart;
	shares(&s, seed, share);
	for (unsigned i = 0; i < 8; i++) {
		sum += share[i];
		squares += share[i] * share[i];
	}
	good = sim_expect(
		&sim, apart ? "Jain's index of calls of eight clients" : "Jain's index of calls",
		seed, sum * sum / 8 / squares, least, 1.01);
	good &= sim_expect(&sim, "together, share of the line", seed, sum, 0.9, 1);
	sim_free(&sim);
	return good;
}

/*
 * Calls of one client together, where the path and its queue hold 34 packets each: the room beside what the path holds
 * must not fill the queue, nor what is sent again.
 */
static bool small_path(unsigned calls, uint64_t seed)
{
	double share[4], sum = 0, squares = 0;
	struct sim_setup s;
	bool good;

	path(&s, &rxw_cc_rate, 20, 20, 1);
	endless(&s, 0.001, 4);
	s.channels = calls;
	shares(&s, seed, share);
	for (unsigned i = 0; i < calls; i++) {
		sum += share[i];
		squares += share[i] * share[i];
	}
	good = sim_expect(&sim, "calls of a small path, dropped", seed,
			  (double)sim.setup.down.dropped / (double)sim.setup.down.sent, 0, 0.1);
	good &= sim_expect(&sim, "the same, Jain's index", seed, sum * sum / calls / squares, 0.9,
			   1.01);
	good &= sim_expect(&sim, "together, share of the line", seed, sum, 0.9, 1);
	sim_free(&sim);
	return good;
}

/* Round trips of 10 and 100 ms over one line: the smaller share. */
static bool unequal_paths(double queue, double least, uint64_t seed)
{
	double share[8], smaller;
	struct sim_setup s;
	bool good;

	path(&s, &rxw_cc_rate, 200, 10, 10 * queue);
	endless(&s, 10, 60);
	s.connections = 2;
	s.apart = true;
	s.further[1] = 45 * MSEC;
	shares(&s, seed, share);
	smaller = share[0] < share[1] ? share[0] : share[1];
	good = sim_expect(&sim, "round trips of 10 and 100 ms, smaller share", seed,
			  smaller / (share[0] + share[1]), least, 0.5);
	sim_free(&sim);
	return good;
}

static bool beside_cubic(double rtt_ms, double least, double most, uint64_t seed)
{
	struct sim_setup s;
	double share[8], theirs;
	bool good;

	path(&s, &rxw_cc_rate, 300, rtt_ms, 1);
	endless(&s, 0.001, 60);
	s.references = 1;
	shares(&s, seed, share);
	theirs = (double)sim_ref_bytes(&sim, 0) / 60 / (double)s.down.rate;
	good = sim_expect(&sim, "beside CUBIC, share", seed, share[0] / (share[0] + theirs), least,
			  most);
	sim_free(&sim);
	return good;
}

int main(int argc, char **argv)
{
	struct sim_args args;
	bool good = true;

	if (!sim_args_parse(&args, argc, argv, "sfct", "RXW_SIM_PATH_SEEDS", 1))
		return 2;
	tracing = args.trace;
	if (args.seed != 0) {
		args.first = args.seed;
		args.count = 1;
	}
	for (uint64_t seed = args.first; seed < args.first + args.count; seed++) {
		good &= later_calls(&rxw_cc_rate, 1.75, 1.2, seed);
		good &= small_calls(128, 0.13, seed);
		good &= lost_requests(seed);
		good &= long_calls(seed);
		good &= small_calls(WINDOW, 0.075, seed);
		good &= short_queue(seed);
		good &= changed_path(seed);
		good &= busy_ends(seed);
		good &= equal_calls(8, false, 1, 0.95, seed);
		good &= equal_calls(2, false, 1, 0.95, seed);
		good &= equal_calls(8, false, 0.25, 0.95, seed);
		for (unsigned i = 0; i < 3; i++)
			good &= equal_calls(8, true, 1, 0.9, seed + 5 * i);
		good &= small_path(2, seed);
		good &= small_path(4, seed);
		good &= unequal_paths(1, 0.25, seed);
		good &= unequal_paths(0.25, 0.25, seed);
		good &= beside_cubic(50, 0.3, 0.65, seed);
		good &= beside_cubic(100, 0.3, 0.65, seed);
	}
	return good ? 0 : 1;
}
