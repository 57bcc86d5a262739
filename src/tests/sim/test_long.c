/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Long paths with wide windows (rx-wide-windows): goodput of one bulk reply as a share of the line,
 * over many seeds. The paths are the profiles of the link emulator (tests/link/profiles), and their
 * queues, losses and jitter are its own code. RXW_SIM_LONG_SEEDS (1) sets the number of seeds; some
 * paths have more. A failure names the seed to replay. With several seeds, a table follows: the 5th
 * percentile and others of each path.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"
#include "tests/link/profile.h"

#define SEEDS	1u
#define ENDLESS ((uint64_t)1 << 44)
#define MSEC	1000000u
#define HEADERS 28u /* of IP and UDP */
#define STEPS	8u

/* The default window, with the memory that an engine has for it by default. */
#define DEFAULT	    32768u
#define PEER_MEMORY (64u << 20)

struct path {
	const char *name;
	const char *profile, *setting, *value; /* one more setting, or NULL */
	double seconds, from;		       /* goodput is measured from there to the end */
	double least;			       /* share of the line at the 5th percentile */
	unsigned window;		       /* packets */
	const struct rxw_cc_ops *cc;
	unsigned seeds; /* so many instead of one, as they are quick; 0 = one */
};

static const struct path paths[] = {
	{"gigabit-50", "gigabit-50", NULL, NULL, 8, 2, 0.95, DEFAULT, &rxw_cc_rate, 0},
	{"gigabit-100", "gigabit-100", NULL, NULL, 10, 3, 0.95, DEFAULT, &rxw_cc_rate, 0},
	{"gigabit-200", "gigabit-200", NULL, NULL, 14, 5, 0.92, DEFAULT, &rxw_cc_rate, 0},
	{"gigabit-100-loss", "gigabit-100-loss", NULL, NULL, 12, 3, 0.90, DEFAULT, &rxw_cc_rate, 0},
	{"gigabit-100-bursts", "gigabit-100-bursts", NULL, NULL, 12, 3, 0.90, DEFAULT, &rxw_cc_rate,
	 0},
	{"reorder-40", "reorder-40", NULL, NULL, 20, 2, 0.92, 16384, &rxw_cc_rate, 2},
	{"mobile-100", "mobile-100", NULL, NULL, 15, 2, 0.88, 8192, &rxw_cc_rate, 0},
	{"quarter-bdp", "quarter-bdp", NULL, NULL, 12, 4, 0.85, DEFAULT, &rxw_cc_rate, 0},
	{"codel", "codel", NULL, NULL, 12, 4, 0.85, DEFAULT, &rxw_cc_rate, 0},
	{"marking", "marking", NULL, NULL, 12, 4, 0.85, DEFAULT, &rxw_cc_rate, 0},
	{"mtu-9000", "mtu-9000", NULL, NULL, 10, 3, 0.93, DEFAULT, &rxw_cc_rate, 0},
	{"black-hole", "black-hole", NULL, NULL, 15, 8, 0.60, 8192, &rxw_cc_rate, 0},
	{"slower", "slower", NULL, NULL, 20, 13, 0.60, 8192, &rxw_cc_rate, 0},
	{"10-gigabit-50", "gigabit-50", "rate", "10Gbit", 3, 1.5, 0.95, 65535, &rxw_cc_rate, 0},
};

/* Of each path: shares in ascending order. */
static double *shares[sizeof(paths) / sizeof(paths[0])];

static struct sim sim;
static bool tracing;

static void set_window(struct rxw_params *p, const struct path *f)
{
	p->window = (uint16_t)f->window;
	p->wide_memory = f->window == DEFAULT ? PEER_MEMORY : (uint64_t)f->window * 4096;
	p->conn_memory = 4 * p->wide_memory;
	p->peer_memory = f->window == DEFAULT ? PEER_MEMORY : p->conn_memory;
	p->cc = f->cc == &rxw_cc_rate ? &rxw_cc_reno : f->cc;
	p->cc_wide = f->cc;
	p->ecn = true;
}

static _Noreturn void fail(const char *why)
{
	printf("FAILED: %s\n", why);
	exit(1);
}

/* The largest datagram that a direction carries. */
static uint32_t datagram(const struct link_profile *p, unsigned way)
{
	uint64_t mtu = p->way[way].mtu != 0 && p->way[way].mtu < p->device_mtu ? p->way[way].mtu
									       : p->device_mtu;

	return (uint32_t)mtu - HEADERS;
}

/* The profile after its first `steps` changes. */
static void load(struct link_profile *p, const struct path *f, unsigned steps)
{
	char why[300];

	link_profile_init(p);
	if (!link_profile_load(p, RXW_TEST_SRCDIR "/link/profiles", f->profile, why, sizeof(why)) ||
	    (f->setting != NULL && !link_profile_set(p, f->setting, f->value, why, sizeof(why))))
		fail(why);
	link_profile_finish(p);
	for (unsigned i = 0; i < steps; i++) {
		struct link_change c = p->change[i];

		if (!link_profile_set(p, c.name, c.value, why, sizeof(why)))
			fail(why);
		link_profile_finish(p);
	}
	/* The simulator has no ICMP, no NAT, and no copies in the emulator's way. */
	if (p->nat_count != 0 || p->way[0].way.duplicate > 0 || p->way[1].way.duplicate > 0)
		fail("this profile cannot be simulated");
}

/* Sets both links as the emulator would, and plans their changes. `step` must last for the run. */
static void follow(struct sim_setup *s, const struct path *f, struct link_profile *step)
{
	load(&step[0], f, 0);
	if (step[0].change_count >= STEPS)
		fail("more changes than expected");
	s->up.options = &step[0].way[LINK_UP].way;
	s->down.options = &step[0].way[LINK_DOWN].way;
	s->up.mtu = datagram(&step[0], LINK_UP);
	s->down.mtu = datagram(&step[0], LINK_DOWN);
	for (unsigned i = 1; i <= step[0].change_count; i++) {
		double ms = (double)step[0].change[i - 1].at / MSEC;

		load(&step[i], f, i);
		for (unsigned k = 0; k < 2; k++) {
			unsigned of = k == LINK_UP ? SIM_UP : SIM_DOWN;

			sim_plan(s, ms, SIM_SET_OPTIONS, of, 0);
			s->changes[s->change_count - 1].options = &step[i].way[k].way;
			sim_plan(s, ms, SIM_SET_MTU, of, datagram(&step[i], k));
		}
	}
}

/* The share of the line, -1 = the run failed. */
static double run(const struct path *f, uint64_t seed)
{
	static struct link_profile step[STEPS];
	double rate, share = -1;
	const struct rxw_pstats *c = &sim.client.stats, *s = &sim.server.stats;
	const struct link_counters *n;
	struct sim_setup setup;

	sim_default(&setup);
	set_window(&setup.client, f);
	set_window(&setup.server, f);
	if (f->window == DEFAULT)
		setup.client_wide = setup.server_wide = PEER_MEMORY;
	follow(&setup, f, step);
	rate = (double)step[step[0].change_count].way[LINK_DOWN].way.rate / 8;
	/* Both ends search for the MTU, as far as their devices permit. */
	setup.client.mtu_auto = setup.server.mtu_auto = true;
	setup.client.mtu_ceiling = setup.server.mtu_ceiling =
		(uint32_t)step[0].device_mtu - HEADERS;
	setup.memory = (size_t)1 << 30;
	setup.reply = ENDLESS;
	setup.stop_at = (uint64_t)(f->seconds * 1e9);
	setup.trace = tracing;
	sim_plan(&setup, f->from * 1000, SIM_MARK, 0, 0);
	sim_run(&sim, &setup, seed);
	if (sim.failure[0] != '\0')
		printf("%s, seed %llu: %s\n", f->name, (unsigned long long)seed, sim.failure);
	else
		share = (double)(sim.call_bytes[0] - sim.call_marks[0]) / (f->seconds - f->from) /
			rate;
	n = link_way_counters(sim.setup.down.way);
	printf("  %s, seed %llu: share %.3f; %llu packets, again %llu, spurious %llu, lost %llu, "
	       "by the queue %llu, marked %llu, loss events %llu, timeouts %llu, ACKs %llu, dropped for "
	       "memory %llu, for the window %llu\n",
	       f->name, (unsigned long long)seed, share,
	       (unsigned long long)s->packets_sent[RXW_DATA], (unsigned long long)s->retransmitted,
	       (unsigned long long)s->spurious_losses, (unsigned long long)n->lost,
	       (unsigned long long)(n->overflowed + n->dropped), (unsigned long long)n->marked,
	       (unsigned long long)s->loss_events, (unsigned long long)s->rto_events,
	       (unsigned long long)c->packets_sent[RXW_ACK],
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

static bool check(const struct path *f, unsigned first, unsigned count)
{
	double *share = calloc(count, sizeof(*share));
	bool good;

	if (share == NULL)
		abort();
	for (unsigned i = 0; i < count; i++)
		share[i] = run(f, first + i);
	qsort(share, count, sizeof(*share), ascending);
	good = share[count / 20] >= f->least && share[0] >= 0;
	shares[f - paths] = share;
	printf("%s: %s: share of the line >= %.2f; %u seeds: %.3f %.3f %.3f\n",
	       good ? "ok" : "FAILED", f->name, f->least, count, share[0], share[count / 20],
	       share[count / 2]);
	return good;
}

static void table(unsigned count)
{
	if (count > 1)
		printf("\n| path | seeds | least | 5th percentile | median |\n"
		       "| --- | ---: | ---: | ---: | ---: |\n");
	for (unsigned i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		if (count > 1 && shares[i] != NULL)
			printf("| `%s` | %u | %.1f %% | %.1f %% | %.1f %% |\n", paths[i].name,
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
	for (unsigned i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		if (args.only == NULL || strcmp(args.only, paths[i].name) == 0)
			failed += !check(&paths[i], (unsigned)args.first,
					 args.count == 1 && args.seed == 0 && paths[i].seeds != 0
						 ? paths[i].seeds
						 : (unsigned)args.count);
	table((unsigned)args.count);
	return failed == 0 ? 0 : 1;
}
