/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The work for acknowledgements: one bulk reply with a fixed number of packets in flight, of which a
 * share is missing at the receiver. usage: gaps WINDOW LOSS-IN-THOUSANDTHS MEGABYTES. gaps.sh counts
 * instructions of the protocol.
 */
#include <stdio.h>
#include <stdlib.h>

#include "sim.h"

static struct sim sim;

/* A window that nothing changes. */
static void fixed(struct rxw_cc *cc, uint32_t flight)
{
	(void)flight;
	cc->cwnd = cc->max;
}

static void begin(struct rxw_cc *cc)
{
	cc->ssthresh = 1;
	cc->cwnd = cc->max;
}

static void acked(struct rxw_cc *cc, uint32_t n, bool limited)
{
	(void)n;
	(void)limited;
	cc->cwnd = cc->max;
}

/* A controller with this function switches proportional rate reduction off. */
static void sample(struct rxw_cc *cc, const struct rxw_cc_sample *s)
{
	(void)s;
	cc->ssthresh = UINT32_MAX;
	cc->cwnd = cc->max;
}

static const struct rxw_cc_ops constant = {.name = "constant",
					   .init = begin,
					   .acked = acked,
					   .lost = fixed,
					   .timeout = fixed,
					   .sample = sample};

int main(int argc, char **argv)
{
	struct sim_setup s;
	struct rxw_params *end[2] = {&s.client, &s.server};
	unsigned window = argc > 1 ? (unsigned)atoi(argv[1]) : 255;

	sim_default(&s);
	for (unsigned i = 0; i < 2; i++) {
		end[i]->window = (uint16_t)window;
		end[i]->cc = end[i]->cc_wide = &constant;
		end[i]->wide_memory = window * 4096u;
		end[i]->conn_memory = 256u << 20;
		end[i]->peer_memory = 512u << 20;
	}
	/* The line carries a window in a round trip. */
	s.up.delay = s.down.delay = 10 * RXW_MS;
	s.down.rate = (uint64_t)window * 1472 * 50;
	s.down.queue = (uint64_t)window * 1472 * 2;
	s.down.loss = argc > 2 ? atoi(argv[2]) / 1000.0 : 0;
	s.reply = (argc > 3 ? strtoull(argv[3], NULL, 10) : 60) * 1000000;
	s.gro = true;
	if (!sim_run(&sim, &s, 1)) {
		printf("gaps: %s\n", sim.failure);
		return 1;
	}
	printf("%u packets, %s thousandths lost: %.2f s, %llu packets, %llu again, %llu ACKs, %llu timeouts\n",
	       window, argc > 2 ? argv[2] : "0", sim.call_seconds[0],
	       (unsigned long long)sim.server.stats.packets_sent[RXW_DATA],
	       (unsigned long long)sim.server.stats.retransmitted,
	       (unsigned long long)sim.client.stats.packets_sent[RXW_ACK],
	       (unsigned long long)sim.server.stats.rto_events);
	sim_free(&sim);
	return 0;
}
