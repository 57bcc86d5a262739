/* SPDX-License-Identifier: BSD-2-Clause */
/* Hundreds of seeded runs of the protocol under loss, reordering, duplication and delay; one seed can be replayed. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim.h"

static bool one(uint64_t seed, bool trace, bool verbose)
{
	static struct sim sim;
	struct sim_setup setup;
	bool good;

	sim_random(&setup, seed);
	setup.trace = trace;
	sim_run(&sim, &setup, seed);
	sim_free(&sim);
	good = sim.failure[0] == '\0';
	if (verbose)
		printf("seed %llu: %u calls, %llu bytes, %.3f s, %llu events, loss %.3f/%.3f reorder %.2f/%.2f windows %u/%u delay %.1f/%.1f ms; "
		       "retransmitted %llu/%llu losses %llu/%llu spurious %llu/%llu rto %llu/%llu\n",
		       (unsigned long long)seed, sim.calls_done, (unsigned long long)sim.bytes_moved,
		       (double)(sim.finished_at - RXW_SEC) / 1e9, (unsigned long long)sim.events_handled, setup.up.loss,
		       setup.down.loss, setup.up.reorder, setup.down.reorder, setup.client.window, setup.server.window,
		       (double)setup.up.delay / 1e6, (double)setup.down.delay / 1e6,
		       (unsigned long long)sim.client.stats.retransmitted, (unsigned long long)sim.server.stats.retransmitted,
		       (unsigned long long)sim.client.stats.loss_events, (unsigned long long)sim.server.stats.loss_events,
		       (unsigned long long)sim.client.stats.spurious_losses,
		       (unsigned long long)sim.server.stats.spurious_losses,
		       (unsigned long long)sim.client.stats.rto_events, (unsigned long long)sim.server.stats.rto_events);
	if (!good)
		printf("FAILED seed %llu: %s (replay it: test_seeds --seed %llu)\n", (unsigned long long)seed, sim.failure,
		       (unsigned long long)seed);
	return good;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "seed", required_argument, NULL, 's' }, { "first", required_argument, NULL, 'f' },
		{ "count", required_argument, NULL, 'c' }, { "trace", no_argument, NULL, 't' },
		{ "verbose", no_argument, NULL, 'v' }, { NULL, 0, NULL, 0 },
	};
	const char *environment = getenv("RXW_SIM_SEEDS");
	unsigned long long first = 1, count = environment != NULL ? strtoull(environment, NULL, 10) : 300, seed = 0;
	bool trace = false, verbose = false;
	unsigned failed = 0;
	int o;

	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1)
		switch (o) {
		case 's': seed = strtoull(optarg, NULL, 10); break;
		case 'f': first = strtoull(optarg, NULL, 10); break;
		case 'c': count = strtoull(optarg, NULL, 10); break;
		case 't': trace = true; break;
		case 'v': verbose = true; break;
		default: return 2;
		}
	if (seed != 0)
		return one(seed, trace, true) ? 0 : 1;
	for (unsigned long long i = first; i < first + count; i++)
		failed += !one(i, false, verbose);
	printf("seeds %llu to %llu: %u failed\n", first, first + count - 1, failed);
	return failed == 0 ? 0 : 1;
}
