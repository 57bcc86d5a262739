/* SPDX-License-Identifier: BSD-2-Clause */
/* Long paths with wide windows, and figures that are compared with bounds. */
#include <stdio.h>

#include "sim.h"

#define BYTES_OF_MBIT 125000u /* a second */

void sim_path(struct sim_setup *s, unsigned mbit, double rtt_ms, double queue)
{
	sim_default(s);
	s->up.delay = s->down.delay = (uint64_t)(rtt_ms / 2 * 1e6);
	s->up.jitter = s->down.jitter = 0;
	s->down.rate = (uint64_t)mbit * BYTES_OF_MBIT;
	s->down.queue = (uint64_t)((double)s->down.rate * rtt_ms / 1000 * queue);
}

void sim_wide(struct sim_setup *s, uint16_t window, const struct rxw_cc_ops *cc)
{
	struct rxw_params *end[2] = {&s->client, &s->server};

	for (unsigned i = 0; i < 2; i++) {
		end[i]->window = window;
		end[i]->wide_memory = (uint64_t)window * 4096;
		end[i]->conn_memory = 4 * end[i]->wide_memory;
		end[i]->peer_memory = 16 * end[i]->wide_memory;
		end[i]->cc_wide = cc;
	}
}

unsigned sim_expect(const struct sim *sim, const char *what, uint64_t seed, double got,
		    double least, double most)
{
	bool good = sim->failure[0] == '\0' && got >= least && got <= most;

	printf("%s: %s, seed %llu: %.3f (%.2f to %.2f) %s\n", good ? "ok" : "FAILED", what,
	       (unsigned long long)seed, got, least, most, sim->failure);
	fflush(stdout);
	return good;
}
