/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Links, machines and clocks that do not run evenly: packets that arrive in bunches, machines that stop or sleep
 * in the middle of a transfer, clocks that jump, a path that was a short one before. RXW_SIM_PAUSES_SEEDS (1)
 * sets the number of seeds. A failure names the seed to replay.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#define ENDLESS ((uint64_t)1 << 44)
#define MSEC	1000000u
#define WINDOW	32768u

static struct sim sim;
static bool tracing;

/* A path, and wide windows at both ends. */
static void path(struct sim_setup *s, const struct rxw_cc_ops *cc, unsigned mbit, double rtt_ms,
		 double queue)
{
	sim_path(s, mbit, rtt_ms, queue);
	s->trace = tracing;
	sim_wide(s, cc != NULL ? WINDOW : 255, cc);
}

static void endless(struct sim_setup *s, double from, double to)
{
	s->reply = ENDLESS;
	s->stop_at = (uint64_t)(to * 1e9);
	s->limit = 2 * s->stop_at;
	sim_plan(s, from * 1000, SIM_MARK, 0, 0);
}

static double share(const struct sim_setup *s)
{
	double seconds = (double)(s->stop_at - s->changes[0].at) / 1e9;

	return (double)(sim.call_bytes[0] - sim.call_marks[0]) / seconds / (double)s->down.rate;
}

/*
 * A link that holds packets back and lets them through together, as Wi-Fi and satellites do: 100 Mbit/s, 40 ms.
 * No packet counts as lost for that.
 */
static bool bunched(const char *what, unsigned ms, unsigned of, double queue, double least,
		    uint64_t seed)
{
	struct sim_setup s;
	bool good;

	path(&s, &rxw_cc_rate, 100, 40, queue);
	endless(&s, 5, 25);
	if (of & SIM_UP)
		s.up.bunch = ms * MSEC;
	if (of & SIM_DOWN)
		s.down.bunch = ms * MSEC;
	sim_run(&sim, &s, seed);
	good = sim_expect(&sim, what, seed, share(&s), least, 1);
	good &= sim_expect(&sim, "timeouts", seed, (double)sim.server.stats.rto_events, 0, 0);
	good &= sim_expect(&sim, "sent again without a loss", seed,
			   (double)sim.server.stats.retransmitted - (double)sim.setup.down.dropped,
			   -500, 3);
	sim_free(&sim);
	return good;
}

/*
 * A server is stopped, and a new request of several packets waits in its socket meanwhile: the call goes on afterwards.
 * No packet may have changed its number, since the old ones arrive first. Each call is a new connection's first one.
 */
static bool stopped_server(unsigned ms, double loss, double duplicate, uint64_t seed)
{
	struct sim_setup s;
	char name[80];
	bool good;

	path(&s, NULL, 100, 10, 1);
	s.connections = 4;
	s.calls = 3;
	s.request = 30000;
	s.reply = 1;
	s.up.loss = s.down.loss = loss;
	s.up.duplicate = s.down.duplicate = duplicate;
	s.limit = 100 * RXW_SEC;
	for (unsigned i = 0; i < 2; i++)
		sim_plan(&s, i * 2.0 * (double)ms + (i != 0 ? 17 : 0), SIM_PAUSE, SIM_DOWN, (int64_t)ms * MSEC);
	sim_run(&sim, &s, seed);
	snprintf(name, sizeof(name), "server stopped for %u ms, losses of %g %%%s: calls", ms, 100 * loss,
		 duplicate > 0 ? ", duplicates" : "");
	good = sim_expect(&sim, name, seed, sim.calls_done, 12, 12);
	sim_free(&sim);
	return good;
}

/*
 * The same with a request of one packet. It is cut meanwhile, since its server might as well not have received it, and
 * the server gets both. The request may not be mixed of the two.
 */
static bool stopped_at_one_packet(const char *class, unsigned ms, bool first, uint64_t seed)
{
	struct sim_class k;
	struct sim_setup s;
	char name[80];
	bool good;

	path(&s, NULL, 100, 10, 1);
	if (!sim_class_make(&k, class, 0, 0))
		return false;
	sim_class_use(&s, &k);
	s.connections = 4;
	s.calls = 3;
	s.request = 1300;
	s.reply = 1;
	s.limit = 100 * RXW_SEC;
	s.think = RXW_SEC;
	/* In the first call of each connection, or in the second. */
	sim_plan(&s, first ? 14 : 1000, SIM_PAUSE, SIM_DOWN, (int64_t)ms * MSEC);
	sim_run(&sim, &s, seed);
	snprintf(name, sizeof(name), "server stopped for %u ms, requests of one packet, %s: calls", ms, class);
	good = sim_expect(&sim, name, seed, sim.calls_done, 12, 12);
	sim_free(&sim);
	sim_class_free(&k);
	return good;
}

static bool stopped_servers(uint64_t seed)
{
	static const unsigned ms[] = {1000, 3000, 3500, 5000, 8000};
	static const char *const class[] = {"null", "rxkad-auth", "rxgk-crypt"};
	bool good = true;

	for (unsigned i = 0; i < 30; i++)
		good &= stopped_at_one_packet(class[i % 3], ms[i / 6], i / 3 % 2, seed);
	for (unsigned i = 0; i < sizeof(ms) / sizeof(ms[0]); i++) {
		good &= stopped_server(ms[i], 0, 0, seed);
		good &= stopped_server(ms[i], 0.1, 0, seed);
		good &= stopped_server(ms[i], 0.1, 0.3, seed);
	}
	return good;
}

static bool bunches(uint64_t seed)
{
	bool good = bunched("ACKs in bunches of 200 ms", 200, SIM_UP, 1, 0.8, seed);

	good &= bunched("the same, queue of 3 BDP", 200, SIM_UP, 3, 0.5, seed);
	good &= bunched("ACKs in bunches of 50 ms, queue of a quarter BDP", 50, SIM_UP, 0.25, 0.6,
			seed);
	good &= bunched("all in bunches of 20 ms", 20, SIM_BOTH, 1, 0.9, seed);
	return good;
}

/* In mid-transfer machines stop, and their clock with them or not, or the clock jumps. */
static bool stopped(const char *what, unsigned of, double seconds, double step, double loss,
		    double least, uint64_t seed)
{
	double end = 6 + seconds;
	struct sim_setup s;
	bool good;

	path(&s, &rxw_cc_rate, 100, 40, 1);
	endless(&s, end + 2, end + 12);
	s.up.loss = s.down.loss = loss;
	if (seconds > 0)
		sim_plan(&s, 5000, SIM_PAUSE, of, (int64_t)(seconds * 1e9));
	if (step != 0)
		sim_plan(&s, 5000 + seconds * 1000, SIM_CLOCK_STEP, of, (int64_t)(step * 1e9));
	sim_run(&sim, &s, seed);
	good = sim_expect(&sim, what, seed, share(&s), least, 1);
	sim_free(&sim);
	return good;
}

/* An upload with losses, in which a packet that is missing for a minute ends the call. */
static bool jump_while_missing(uint64_t seed)
{
	struct sim_setup s;
	bool good;

	path(&s, &rxw_cc_rate, 100, 40, 1);
	endless(&s, 1, 12);
	s.request = ENDLESS;
	s.up.rate = s.down.rate;
	s.up.queue = s.down.queue;
	s.up.loss = 0.01;
	for (unsigned i = 0; i < 8; i++)
		sim_plan(&s, 3000 + 400 * i, SIM_CLOCK_STEP, SIM_UP, 300 * (int64_t)RXW_SEC);
	sim_run(&sim, &s, seed);
	good = sim_expect(&sim, "clock jumps while packets are missing: calls failed", seed,
			  sim.calls_failed, 0, 0);
	sim_free(&sim);
	return good;
}

static bool stops(uint64_t seed)
{
	bool good = stopped("clock jumps by 300 s", SIM_DOWN, 0, 300, 0, 0.9, seed);

	good &= stopped("clock goes back 3 s", SIM_DOWN, 0, -3, 0, 0.85, seed);
	good &= stopped("both stop for 300 s", SIM_BOTH, 300, 0, 0.01, 0.85, seed);
	good &= stopped("the server sleeps for 5 s", SIM_DOWN, 5, -5, 0, 0.7, seed);
	good &= stopped("the client sleeps for 5 s", SIM_UP, 5, -5, 0, 0.85, seed);
	good &= jump_while_missing(seed);
	return good;
}

/*
 * A machine moves from a short path to a long one, and its peer keeps its address: 1 Gbit/s, 0.2 and 50 ms. After
 * some minutes the calls are as fast as over a path that always was long.
 */
static bool longer_path(uint64_t seed)
{
	struct sim_setup s;
	bool good;

	path(&s, &rxw_cc_rate, 1000, 0.2, 100);
	s.down.queue = s.down.rate / 20;
	s.calls = 90;
	s.reply = 20000000;
	s.think = 4 * RXW_SEC;
	sim_plan(&s, 5000, SIM_SET_DELAY, SIM_BOTH, 25 * MSEC);
	sim_run(&sim, &s, seed);
	good = sim_expect(&sim, "path that became longer, first calls, seconds", seed,
			  sim.call_seconds[10], 0.2, 4);
	good &= sim_expect(&sim, "last call, seconds", seed, sim.call_seconds[s.calls - 1], 0.2, 1);
	sim_free(&sim);
	return good;
}

int main(int argc, char **argv)
{
	struct sim_args args;
	bool good = true;

	if (!sim_args_parse(&args, argc, argv, "sfct", "RXW_SIM_PAUSES_SEEDS", 1))
		return 2;
	tracing = args.trace;
	if (args.seed != 0) {
		args.first = args.seed;
		args.count = 1;
	}
	for (uint64_t seed = args.first; seed < args.first + args.count; seed++) {
		good &= bunches(seed);
		good &= stops(seed);
		good &= stopped_servers(seed);
		good &= longer_path(seed);
	}
	return good ? 0 : 1;
}
