/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hundreds of seeded runs under loss, reordering, duplication and delay, each in a constant
 * environment and in one with outages, flaps, pauses and clock steps. Any of them can be replayed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim.h"

static void report(uint64_t seed, const struct sim_setup *setup, const struct sim *sim)
{
	printf("seed %llu: %u calls, %llu bytes, %.3f s, %llu events\n", (unsigned long long)seed,
	       sim->calls_done, (unsigned long long)sim->bytes_moved,
	       (double)(sim->finished_at - RXW_SEC) / 1e9, (unsigned long long)sim->events_handled);
	for (unsigned i = 0; i < 2; i++) {
		const struct sim_link *link = i ? &setup->down : &setup->up;
		const struct sim_node *node = i ? &sim->server : &sim->client;

		printf("  %s: window %u, loss %.3f, reordering %.2f, %.3f ms; again %llu, "
		       "losses %llu, spurious %llu, timeouts %llu\n",
		       i ? "server" : "client", node->params.window, link->loss, link->reorder,
		       (double)link->delay / 1e6, (unsigned long long)node->stats.retransmitted,
		       (unsigned long long)node->stats.loss_events,
		       (unsigned long long)node->stats.spurious_losses,
		       (unsigned long long)node->stats.rto_events);
	}
}

static unsigned changed; /* runs still active when the environment changed */

static bool one(uint64_t seed, bool changes, bool trace, bool verbose)
{
	static struct sim sim;
	struct sim_setup setup;
	bool good;

	sim_random(&setup, seed);
	if (changes)
		sim_random_changes(&setup, seed);
	setup.trace = trace;
	sim_run(&sim, &setup, seed);
	sim_free(&sim);
	good = sim.failure[0] == '\0';
	for (unsigned i = 0; i < setup.change_count; i++)
		if (sim.finished_at > RXW_SEC + setup.changes[i].at) {
			changed++;
			break;
		}
	if (verbose)
		report(seed, &setup, &sim);
	if (!good)
		printf("FAILED seed %llu: %s (replay it: test_seeds --seed %llu%s)\n",
		       (unsigned long long)seed, sim.failure, (unsigned long long)seed,
		       changes ? " --changes" : "");
	return good;
}

/* In both environments: the number of failures. */
static unsigned both(uint64_t seed, bool verbose)
{
	return !one(seed, false, false, verbose) + !one(seed, true, false, verbose);
}

int main(int argc, char **argv)
{
	/* These failed once. */
	static const uint64_t failed_once[] = {10594, 13652, 13664, 15432, 18654, 20159, 21978, 23942, 45976};
	struct sim_args args;
	unsigned failed = 0;

	if (!sim_args_parse(&args, argc, argv, "sfctvw", "RXW_SIM_SEEDS", 300))
		return 2;
	if (args.seed != 0)
		return one(args.seed, args.changes, args.trace, true) ? 0 : 1;
	for (unsigned k = 0; k < sizeof(failed_once) / sizeof(failed_once[0]); k++)
		failed += both(failed_once[k], args.verbose);
	for (uint64_t i = args.first; i < args.first + args.count; i++)
		failed += both(i, args.verbose);
	printf("seeds %llu to %llu: %u failed; the world changed during %u\n",
	       (unsigned long long)args.first, (unsigned long long)(args.first + args.count - 1),
	       failed, changed);
	return failed == 0 ? 0 : 1;
}
