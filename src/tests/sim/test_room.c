/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receive window of a stream that needs less than before, or for which memory is short, becomes
 * smaller. The right edge never moves back, and nothing is dropped.
 */
#include <stdio.h>

#include "sim.h"

#define MBIT	125000u /* bytes per second */
#define LINE	(400 * MBIT)
#define WINDOW	16384u
#define START	RXW_SEC
#define MEASURE (3 * RXW_SEC)

static struct sim sim;

static struct {
	uint32_t edge, most, before, after;
	uint64_t short_from, short_to; /* memory is short then */
	unsigned back;		       /* ACKs that took something back */
	uint64_t last_from;	       /* the window is noted from there on */
} seen;

static bool tap(struct sim *world, const struct sim_node *from, const uint8_t *bytes,
		uint32_t length)
{
	const struct sim_conn *c = world->client.conns;
	struct rxw_ack ack;
	uint32_t window;

	world->client.memory_short = world->now >= seen.short_from && world->now < seen.short_to;
	if (!from->client || bytes[20] != RXW_ACK || c == NULL || c->p.channel[0] == NULL ||
	    !rxw_ack_get(bytes + RXW_HEADER_SIZE, length - RXW_HEADER_SIZE, bytes[21], &ack))
		return false;
	seen.back += ack.first + ack.rwind < seen.edge;
	seen.edge = ack.first + ack.rwind > seen.edge ? ack.first + ack.rwind : seen.edge;
	window = c->p.channel[0]->rx.window;
	seen.most = window > seen.most ? window : seen.most;
	if (world->now < START + MEASURE)
		seen.before = window;
	if (world->now < seen.last_from)
		seen.after = window;
	return false;
}

static void path(struct sim_setup *s)
{
	struct rxw_params *end[2] = {&s->client, &s->server};

	seen.edge = seen.most = seen.before = seen.after = seen.back = 0;
	seen.short_from = seen.short_to = UINT64_MAX;
	seen.last_from = UINT64_MAX;
	sim_default(s);
	s->up.delay = s->down.delay = 25 * RXW_MS;
	s->up.jitter = s->down.jitter = 0;
	s->down.rate = LINE;
	s->down.queue = s->down.rate / 20;
	s->reply = (uint64_t)1 << 44;
	s->stop_at = 16 * RXW_SEC;
	s->tap = tap;
	for (unsigned i = 0; i < 2; i++) {
		end[i]->window = WINDOW;
		end[i]->wide_memory = (uint64_t)WINDOW * 4096;
		end[i]->conn_memory = 4 * end[i]->wide_memory;
		end[i]->peer_memory = 16 * end[i]->wide_memory;
		end[i]->cc_wide = &rxw_cc_rate;
	}
}

static bool expect(const char *what, uint64_t seed, double got, double least, double most)
{
	bool good = sim.failure[0] == '\0' && got >= least && got <= most;

	printf("%s: %s, seed %llu: %.2f (%.2f to %.2f) %s\n", good ? "ok" : "FAILED", what,
	       (unsigned long long)seed, got, least, most, sim.failure);
	return good;
}

static bool nothing_lost(const char *what, uint64_t seed)
{
	const struct rxw_pstats *s = &sim.client.stats;

	printf("%s: window %u at most, %u before, %u after\n", what, seen.most, seen.before,
	       seen.after);
	return expect("  ACKs that take something back", seed, seen.back, 0, 0) &
	       expect("  packets dropped for memory or window", seed,
		      (double)(s->drops[RXW_DROP_MEMORY] + s->drops[RXW_DROP_WINDOW]), 0, 0);
}

/* The path carries a fiftieth from the third second to the eighth. */
static bool slow_flow(uint64_t seed)
{
	struct sim_setup s;
	bool good;

	path(&s);
	seen.last_from = START + 8 * RXW_SEC;
	sim_plan(&s, 3000, SIM_SET_RATE, SIM_DOWN, 20 * MBIT);
	sim_plan(&s, 8000, SIM_SET_RATE, SIM_DOWN, LINE);
	sim_plan(&s, 13000, SIM_MARK, 0, 0);
	sim_run(&sim, &s, seed);
	good = nothing_lost("slow flow", seed) &
	       expect("  window after by before", seed, (double)seen.after / seen.before, 0, 0.25) &
	       expect("  share of the line when it is fast again", seed,
		      (double)(sim.call_bytes[0] - sim.call_marks[0]) / 3 / (double)LINE, 0.8, 1);
	sim_free(&sim);
	return good;
}

/* Memory is short for two seconds. */
static bool short_of_memory(uint64_t seed)
{
	struct sim_setup s;
	bool good;

	path(&s);
	seen.short_from = START + 4 * RXW_SEC;
	seen.short_to = seen.last_from = START + 6 * RXW_SEC;
	sim_plan(&s, 8000, SIM_MARK, 0, 0);
	sim_run(&sim, &s, seed);
	good = nothing_lost("short of memory", seed) &
	       expect("  window", seed, seen.after, 255, 255) &
	       expect("  share of the line afterwards", seed,
		      (double)(sim.call_bytes[0] - sim.call_marks[0]) / 8 / (double)LINE, 0.8, 1);
	sim_free(&sim);
	return good;
}

int main(void)
{
	unsigned failed = 0;

	for (uint64_t seed = 1; seed <= 2; seed++)
		failed += !slow_flow(seed) + !short_of_memory(seed);
	return failed == 0 ? 0 : 1;
}
