/* SPDX-License-Identifier: BSD-2-Clause */
/* Every pair of windows from 1 to 255 runs to completion, without a timeout or a dropped packet. */
#include <getopt.h>
#ifdef __GLIBC__
#	include <malloc.h>
#endif
#include <stdio.h>
#include <stdlib.h>

#include "sim.h"

#define PACKET 64u

static unsigned long long worst_ns;
static unsigned worst_pair[2];

/* A few packets more than the window, in one direction. The next pair uses the other. */
static bool pair(unsigned client, unsigned server, bool trace)
{
	static struct sim sim;
	struct sim_setup setup;
	unsigned packets = (client < server ? client : server) + 5;
	uint64_t seed = client * 256 + server, took;

	sim_default(&setup);
	setup.trace = trace;
	setup.client.window = (uint16_t)client;
	setup.server.window = (uint16_t)server;
	setup.client.initial_window = (uint16_t)(client < 16 ? client : 16);
	setup.server.initial_window = (uint16_t)(server < 16 ? server : 16);
	setup.client.mtu = setup.client.mtu_ceiling = setup.server.mtu = setup.server.mtu_ceiling =
		PACKET;
	setup.request = setup.reply = 1;
	*((client + server) % 2 ? &setup.request : &setup.reply) =
		packets * (PACKET - RXW_HEADER_SIZE);
	setup.batch = 1 + (client * 7 + server) % 64;
	setup.max_run = 1 + (client + server * 5) % 45;
	setup.gro = (client + server / 2) % 3 != 0;
	setup.limit = 30 * RXW_SEC;
	if (sim_run(&sim, &setup, seed)) {
		const struct rxw_pstats *c = &sim.client.stats, *s = &sim.server.stats;

		if (c->rto_events + s->rto_events > 0)
			sim_fail(&sim, "a retransmission timeout");
		if (c->drops[RXW_DROP_WINDOW] + s->drops[RXW_DROP_WINDOW] > 0)
			sim_fail(&sim, "a packet beyond the window");
	}
	took = sim.finished_at - RXW_SEC;
	sim_free(&sim);
	if (took > worst_ns) {
		worst_ns = took;
		worst_pair[0] = client;
		worst_pair[1] = server;
	}
	if (sim.failure[0] != '\0')
		printf("FAILED windows %u, %u: %s (replay it: test_windows --pair %u,%u)\n",
		       client, server, sim.failure, client, server);
	return sim.failure[0] == '\0';
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"pair", required_argument, NULL, 'p'},
		{"trace", no_argument, NULL, 't'},
		{NULL, 0, NULL, 0},
	};
	const char *environment = getenv("RXW_SIM_WINDOW_STEP");
	unsigned step = environment != NULL ? (unsigned)atoi(environment) : 1, failed = 0, runs = 0;
	unsigned client = 0, server = 0;
	bool trace = false;
	int o;

	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1)
		switch (o) {
		case 'p':
			if (sscanf(optarg, "%u,%u", &client, &server) != 2)
				return 2;
			break;
		case 't':
			trace = true;
			break;
		default:
			return 2;
		}
#ifdef __GLIBC__
	/* Thousands of short runs: memory is not returned to the system after each. */
	mallopt(M_TRIM_THRESHOLD, 256 << 20);
	mallopt(M_TOP_PAD, 16 << 20);
#endif
	if (client != 0)
		return pair(client, server, trace) ? 0 : 1;
	if (step == 0)
		step = 1;
	/* A step above one takes every n-th pair. All windows are still covered. */
	for (unsigned i = 0; i < 255u * 255u; i += step, runs++)
		failed += !pair(1 + i / 255, 1 + i % 255, false);
	printf("%u pairs of windows, %u failed; the slowest took %.3f ms (%u, %u)\n", runs, failed,
	       (double)worst_ns / 1e6, worst_pair[0], worst_pair[1]);
	return failed == 0 ? 0 : 1;
}
