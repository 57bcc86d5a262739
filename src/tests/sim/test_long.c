/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Long paths with wide windows (rx-wide-windows): goodput of one bulk reply as a share of the line,
 * over many seeds. RXW_SIM_LONG_SEEDS (1) sets their number; some paths have more. A failure names the
 * seed to replay.
 * With several seeds, a table follows: the 5th percentile and others of each path.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#define SEEDS	1u
#define ENDLESS ((uint64_t)1 << 44)
#define MSEC	1000000u

struct profile {
	const char *name;
	double mbit, rtt_ms;
	double queue;		   /* bandwidth-delay products */
	double loss;		   /* probability */
	double reorder, jitter_ms; /* probability; a reordered datagram is up to that late */
	double seconds, from;	   /* goodput is measured from there to the end */
	double least;		   /* share of the line at the 5th percentile */
	unsigned window;	   /* packets */
	const struct rxw_cc_ops *cc;
	double more_ms; /* the delay of each direction changes each second, by up to this */
	unsigned seeds; /* so many instead of one, as they are quick; 0 = one */
};

static const struct profile profiles[] = {
	{"gigabit-50", 1000, 50, 1, 0, 0, 0, 8, 2, 0.93, 16384, &rxw_cc_rate, 0, 0},
	{"gigabit-100", 1000, 100, 1, 0, 0, 0, 10, 3, 0.93, 32768, &rxw_cc_rate, 0, 0},
	{"gigabit-200", 1000, 200, 1, 0, 0, 0, 14, 5, 0.90, 65535, &rxw_cc_rate, 0, 0},
	{"gigabit-100-cubic", 1000, 100, 1, 0, 0, 0, 10, 3, 0.90, 32768, &rxw_cc_cubic, 0, 0},
	{"gigabit-100-loss", 1000, 100, 1, 0.001, 0, 0, 12, 3, 0.88, 32768, &rxw_cc_rate, 0, 0},
	{"reorder-40", 100, 40, 1, 0.01, 0.1, 5, 20, 2, 0.92, 16384, &rxw_cc_rate, 0, 2},
	{"quarter-queue", 1000, 100, 0.25, 0, 0, 0, 12, 4, 0.85, 32768, &rxw_cc_rate, 0, 0},
	{"mobile-100", 20, 100, 1, 0, 0, 0, 15, 2, 0.90, 8192, &rxw_cc_rate, 30, 60},
	{"10-gigabit-50", 10000, 50, 1, 0, 0, 0, 3, 1.5, 0.93, 65535, &rxw_cc_rate, 0, 0},
};

/* Of each profile: shares in ascending order. */
static double *shares[sizeof(profiles) / sizeof(profiles[0])];

static struct sim sim;
static bool tracing;

static void set_window(struct rxw_params *p, const struct profile *f)
{
	p->window = (uint16_t)f->window;
	p->wide_memory = (uint64_t)f->window * 4096;
	p->conn_memory = p->peer_memory = 4 * p->wide_memory;
	p->cc = f->cc == &rxw_cc_rate ? &rxw_cc_reno : f->cc;
	p->cc_wide = f->cc;
}

/* The share of the line, -1 = the run failed. */
static double run(const struct profile *f, uint64_t seed)
{
	double rate = f->mbit * 1e6 / 8, share = -1;
	const struct rxw_pstats *c = &sim.client.stats, *s = &sim.server.stats;
	struct sim_setup setup;
	uint64_t draw = seed * 0x9e3779b97f4a7c15u + 1;

	sim_default(&setup);
	set_window(&setup.client, f);
	set_window(&setup.server, f);
	setup.up.delay = setup.down.delay = (uint64_t)(f->rtt_ms / 2 * MSEC);
	setup.up.jitter = setup.down.jitter = (uint64_t)(f->jitter_ms * MSEC);
	setup.down.reorder = f->reorder;
	setup.down.loss = f->loss;
	setup.down.rate = (uint64_t)rate;
	setup.down.queue = (uint64_t)(rate * f->rtt_ms / 1000 * f->queue);
	setup.memory = (size_t)1 << 30;
	setup.reply = ENDLESS;
	setup.stop_at = (uint64_t)(f->seconds * 1e9);
	setup.trace = tracing;
	sim_plan(&setup, f->from * 1000, SIM_MARK, 0, 0);
	for (unsigned i = 1; f->more_ms > 0 && i < SIM_CHANGES; i++)
		sim_plan(&setup, i * 1000, SIM_SET_DELAY, i % 2 ? SIM_DOWN : SIM_UP,
			 (int64_t)((f->rtt_ms / 2 +
				    f->more_ms * (double)(rxw_prng(&draw) >> 54) / 1024) *
				   MSEC));
	sim_run(&sim, &setup, seed);
	if (sim.failure[0] != '\0')
		printf("%s, seed %llu: %s\n", f->name, (unsigned long long)seed, sim.failure);
	else
		share = (double)(sim.call_bytes[0] - sim.call_marks[0]) / (f->seconds - f->from) /
			rate;
	printf("  %s, seed %llu: share %.3f; %llu packets, again %llu, spurious %llu, lost by the "
	       "path %llu (queue %llu), loss events %llu, timeouts %llu, ACKs %llu, dropped for "
	       "memory %llu, for the window %llu\n",
	       f->name, (unsigned long long)seed, share,
	       (unsigned long long)s->packets_sent[RXW_DATA], (unsigned long long)s->retransmitted,
	       (unsigned long long)s->spurious_losses, (unsigned long long)sim.setup.down.dropped,
	       (unsigned long long)sim.setup.down.overflowed, (unsigned long long)s->loss_events,
	       (unsigned long long)s->rto_events, (unsigned long long)c->packets_sent[RXW_ACK],
	       (unsigned long long)c->drops[RXW_DROP_MEMORY],
	       (unsigned long long)c->drops[RXW_DROP_WINDOW]);
	fflush(stdout);
	sim_free(&sim);
	return share;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static bool check(const struct profile *f, unsigned first, unsigned count)
{
	double *share = calloc(count, sizeof(*share));
	bool good;

	if (share == NULL)
		abort();
	for (unsigned i = 0; i < count; i++)
		share[i] = run(f, first + i);
	qsort(share, count, sizeof(*share), ascending);
	good = share[count / 20] >= f->least && share[0] >= 0;
	shares[f - profiles] = share;
	printf("%s: %s, %g Mbit/s, %g ms: share of the line >= %.2f; %u seeds: %.3f %.3f %.3f\n",
	       good ? "ok" : "FAILED", f->name, f->mbit, f->rtt_ms, f->least, count, share[0],
	       share[count / 20], share[count / 2]);
	return good;
}

static void table(unsigned count)
{
	if (count > 1)
		printf("\n| path | seeds | least | 5th percentile | median |\n"
		       "| --- | ---: | ---: | ---: | ---: |\n");
	for (unsigned i = 0; i < sizeof(profiles) / sizeof(profiles[0]); i++) {
		if (count > 1 && shares[i] != NULL)
			printf("| `%s` | %u | %.1f %% | %.1f %% | %.1f %% |\n", profiles[i].name,
			       count, 100 * shares[i][0], 100 * shares[i][count / 20],
			       100 * shares[i][count / 2]);
		free(shares[i]);
	}
}

int main(int argc, char **argv)
{
	struct sim_args args;
	unsigned failed = 0;

	if (!sim_args_parse(&args, argc, argv, "sfcto", "RXW_SIM_LONG_SEEDS", SEEDS))
		return 2;
	tracing = args.trace;
	if (args.seed != 0) {
		args.first = args.seed;
		args.count = 1;
	}
	if (args.count == 0)
		args.count = 1;
	for (unsigned i = 0; i < sizeof(profiles) / sizeof(profiles[0]); i++)
		if (args.only == NULL || strcmp(args.only, profiles[i].name) == 0)
			failed += !check(&profiles[i], (unsigned)args.first,
					 args.count == 1 && args.seed == 0 && profiles[i].seeds != 0
						 ? profiles[i].seeds
						 : (unsigned)args.count);
	table((unsigned)args.count);
	return failed == 0 ? 0 : 1;
}
