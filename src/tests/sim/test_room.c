/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receive window of a stream that needs less than before, or for which memory is short, becomes
 * smaller. The right edge does not move back, and nothing is dropped. A stream that pauses gives its memory
 * back. The calls of a peer, and all peers, hold no more than their parts of the memory for wide windows.
 */
#include <stdio.h>
#include <string.h>

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
	sim_wide(s, WINDOW, &rxw_cc_rate);
}

static unsigned nothing_lost(const char *what, uint64_t seed)
{
	const struct rxw_pstats *s = &sim.client.stats;

	printf("%s: window %u at most, %u before, %u after\n", what, seen.most, seen.before,
	       seen.after);
	return sim_expect(&sim, "  ACKs that take something back", seed, seen.back, 0, 0) &
	       sim_expect(&sim, "  packets dropped for memory or window", seed,
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
	       sim_expect(&sim, "  window after by before", seed, (double)seen.after / seen.before,
			  0, 0.25) &
	       sim_expect(&sim, "  share of the line when it is fast again", seed,
			  (double)(sim.call_bytes[0] - sim.call_marks[0]) / 3 / (double)LINE, 0.8,
			  1);
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
	       sim_expect(&sim, "  window", seed, seen.after, 255, 255) &
	       sim_expect(&sim, "  share of the line afterwards", seed,
			  (double)(sim.call_bytes[0] - sim.call_marks[0]) / 8 / (double)LINE, 0.8,
			  1);
	sim_free(&sim);
	return good;
}

/* --- the parts of calls and peers, with the sizes of an engine's defaults --- */

#define MEMORY	   (192u << 20)
#define WIDE	   (MEMORY / 3)
#define PEER	   (64u << 20)
#define CALLS	   8u
#define SEND_QUEUE 512u /* packets of a call that need no part of it */
#define PACKET	   1444u
#define STOPS	   (4 * RXW_SEC)

/* `calls` on one connection for four of them, or on `clients` addresses with a connection each. */
static void many_calls(struct sim_setup *s, unsigned calls, unsigned clients)
{
	struct rxw_params *end[2] = {&s->client, &s->server};

	path(s);
	s->tap = NULL;
	s->up.delay = s->down.delay = 50 * RXW_MS;
	s->down.rate = 1000 * MBIT;
	s->down.queue = s->down.rate / 10;
	s->channels = 4;
	s->connections = clients > 1 ? clients : calls / 4;
	s->apart = clients > 1;
	s->gro = true;
	s->memory = MEMORY;
	s->client_wide = s->server_wide = WIDE;
	for (unsigned i = 0; i < 2; i++) {
		end[i]->window = 32768;
		end[i]->wide_memory = end[i]->peer_memory = PEER;
	}
}

static double mib(int64_t bytes)
{
	return (double)bytes / (1 << 20);
}

/* All readers of a client stop for a while: what the sender may send then is kept. */
static bool readers_stop(uint64_t seed)
{
	double sum = 0, squares = 0;
	struct sim_setup s;
	bool good;

	many_calls(&s, CALLS, 1);
	s.stop_at = 20 * RXW_SEC;
	s.limit = 2 * s.stop_at;
	sim_plan(&s, 5000, SIM_STALL, SIM_UP, 2 * RXW_SEC);
	sim_plan(&s, 10000, SIM_MARK, 0, 0);
	sim_run(&sim, &s, seed);
	for (unsigned i = 0; i < CALLS; i++) {
		double bytes = (double)(sim.call_bytes[i] - sim.call_marks[i]);

		sum += bytes;
		squares += bytes * bytes;
	}
	good = sim_expect(&sim, "readers stop, packets dropped for memory", seed,
			  (double)sim.client.stats.drops[RXW_DROP_MEMORY], 0, 0) &
	       sim_expect(&sim, "  of that their client had queued, MiB", seed,
			  mib(sim.client.budget.peak), 20, mib(PEER) + 8) &
	       sim_expect(&sim, "  memory of wide windows, MiB", seed, mib(sim.client.wide.peak),
			  20, mib(WIDE) * 27 / 32) &
	       sim_expect(&sim, "  share of the line afterwards", seed,
			  sum / 10 / (double)s.down.rate, 0.9, 1) &
	       sim_expect(&sim, "  Jain's index", seed, sum * sum / CALLS / squares, 0.95, 1.01);
	sim_free(&sim);
	return good;
}

/* Bytes in the send queues of the server's calls. Its buffers take more memory, since writers do not fill them. */
static int64_t queued(void)
{
	int64_t bytes = 0;

	for (const struct sim_conn *c = sim.server.conns; c != NULL; c = c->next)
		for (unsigned i = 0; i < 4; i++)
			if (c->p.channel[i] != NULL)
				bytes += (int64_t)rxw_pcall_queued(c->p.channel[i]) * PACKET;
	return bytes;
}

/* Clients that have wide windows acknowledge nothing more: what the server holds for them. */
static bool acks_stop(unsigned calls, unsigned clients, double most, uint64_t seed)
{
	struct sim_setup s;
	double usual = mib((int64_t)calls * SEND_QUEUE * PACKET);
	bool good;

	many_calls(&s, calls, clients);
	s.client.window = RXW_WINDOW_MAX;
	s.client.wide_memory = s.client.conn_memory = s.client.peer_memory = (uint64_t)1 << 40;
	s.client_wide = 0;
	s.down.rate = 3000 * MBIT;
	s.down.queue = s.down.rate / 10;
	s.stop_at = STOPS + RXW_SEC;
	s.limit = 2 * s.stop_at;
	sim_plan(&s, (double)STOPS / 1e6, SIM_SET_HOLE, SIM_UP, 1);
	sim_run(&sim, &s, seed);
	printf("%u calls of %u clients acknowledge nothing more:\n", calls, clients);
	good = sim_expect(&sim, "  memory of wide windows, MiB", seed, mib(sim.server.wide.peak),
			  20, most) &
	       sim_expect(&sim, "  queued by the server, MiB", seed, mib(queued()), 20,
			  most + usual);
	sim_free(&sim);
	return good && sim.server.wide.used == 0;
}

/* The client's answers to PINGs are lost: its address might be forged. */
static bool lose_answers(struct sim *world, const struct sim_node *from, const uint8_t *bytes,
			 uint32_t length)
{
	struct rxw_ack ack;

	(void)world;
	return from->client && bytes[20] == RXW_ACK &&
	       rxw_ack_get(bytes + RXW_HEADER_SIZE, length - RXW_HEADER_SIZE, bytes[21], &ack) &&
	       ack.reason == RXW_ACK_PING_RESPONSE;
}

/* A client sends much, and nothing has proved its address before. It has to, for a wide window. */
static bool upload(bool proves, uint64_t seed)
{
	struct sim_setup s;
	double share;
	bool good;

	many_calls(&s, 4, 1);
	s.channels = 1;
	s.up.rate = LINE;
	s.up.queue = LINE / 10;
	s.request = s.reply;
	s.stop_at = 6 * RXW_SEC;
	s.tap = proves ? NULL : lose_answers;
	sim_run(&sim, &s, seed);
	share = (double)sim.bytes_moved / 6 / (double)LINE;
	good = sim_expect(&sim, proves ? "upload, share of the line" : "the same without a proof",
			  seed, share, proves ? 0.7 : 0, proves ? 1 : 0.1) &
	       sim_expect(&sim, "  memory of wide windows, MiB", seed, mib(sim.server.wide.peak),
			  proves ? 5 : 0, proves ? 48 : 0);
	sim_free(&sim);
	return good;
}

/* Memory of wide windows during a pause and after it. */
static struct {
	uint64_t from, to; /* of the pause, when it is looked at */
	int64_t during[2], after[2];
	uint32_t window;
} rest;

static bool rest_tap(struct sim *world, const struct sim_node *from, const uint8_t *bytes,
		     uint32_t length)
{
	int64_t *used = world->now < rest.to ? rest.during : rest.after;

	(void)from;
	(void)bytes;
	(void)length;
	if (world->now >= rest.from) {
		used[0] = world->client.wide.used;
		used[1] = world->server.wide.used;
	}
	if (world->now < rest.to && world->client.conns != NULL)
		rest.window = world->client.conns->p.channel[0]->rx.window;
	return false;
}

/*
 * The server writes nothing for 40 s. Both ends give the memory of their windows back, and have it again
 * as soon as it writes.
 */
static bool pause_of_writer(uint64_t seed)
{
	uint64_t pause = 40 * RXW_SEC;
	struct sim_setup s;
	bool good;

	many_calls(&s, 4, 1);
	s.channels = 1;
	s.stop_at = 50 * RXW_SEC;
	s.limit = 2 * s.stop_at;
	s.tap = rest_tap;
	memset(&rest, 0, sizeof(rest));
	rest.to = START + 5 * RXW_SEC + pause;
	rest.from = rest.to - 15 * RXW_SEC;
	rest.during[0] = rest.during[1] = -1;
	sim_plan(&s, 5000, SIM_SILENCE, SIM_DOWN, (int64_t)pause);
	sim_plan(&s, 47000, SIM_MARK, 0, 0);
	sim_run(&sim, &s, seed);
	good = sim_expect(&sim, "pause of the writer, memory of wide windows, client", seed,
			  (double)rest.during[0], 0, 0) &
	       sim_expect(&sim, "  server", seed, (double)rest.during[1], 0, 0) &
	       sim_expect(&sim, "  window", seed, rest.window, 255, 255) &
	       sim_expect(&sim, "  afterwards, client, MiB", seed, mib(rest.after[0]), 5,
			  mib(WIDE)) &
	       sim_expect(&sim, "  server, MiB", seed, mib(rest.after[1]), 1, mib(WIDE)) &
	       sim_expect(&sim, "  packets dropped for memory or window", seed,
			  (double)(sim.client.stats.drops[RXW_DROP_MEMORY] +
				   sim.client.stats.drops[RXW_DROP_WINDOW]),
			  0, 0) &
	       sim_expect(&sim, "  share of the line from 2 s after the pause on", seed,
			  (double)(sim.call_bytes[0] - sim.call_marks[0]) / 3 / (double)s.down.rate,
			  0.9, 1);
	sim_free(&sim);
	return good;
}

int main(void)
{
	unsigned failed = 0;

	for (uint64_t seed = 1; seed <= 2; seed++)
		failed += !slow_flow(seed) + !short_of_memory(seed) + !readers_stop(seed) +
			  !pause_of_writer(seed);
	/* A peer gets three quarters, and an eighth more when its calls share them. */
	failed += !acks_stop(4, 1, mib(WIDE) * 27 / 32, 1) +
		  !acks_stop(32, 1, mib(WIDE) * 27 / 32, 1) + !acks_stop(32, 8, mib(WIDE), 1);
	failed += !upload(true, 1) + !upload(false, 1);
	return failed == 0 ? 0 : 1;
}
