/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Trains and ACKs with wide windows: new packets leave in short trains, and an ACK answers many of them if
 * many are in flight.
 * RXW_SIM_PACE_SEEDS (1) sets the number of seeds. A failure names the seed to replay.
 */
#include <stdio.h>
#include <string.h>

#include "sim.h"

#define ENDLESS	 ((uint64_t)1 << 44)
#define WINDOW	 32768u
#define MANY	 2048u /* packets in flight, from which on ACKs are few */
#define FOR_EACH 64.0  /* packets of which one is acknowledged then */

static struct sim sim;
static bool tracing;

/* A reply without an end over a path with a queue of one BDP, for `seconds`. */
static void path(struct sim_setup *s, unsigned mbit, double rtt_ms, uint64_t seconds)
{
	sim_path(s, mbit, rtt_ms, 1);
	s->trace = tracing;
	s->reply = ENDLESS;
	s->stop_at = seconds * RXW_SEC;
	sim_wide(s, WINDOW, &rxw_cc_rate);
}

/* --- trains --- */

static struct {
	uint32_t highest; /* of the packets sent */
	uint64_t at;	  /* when the latest one left, */
	unsigned count;	  /* and how many at that time */
	uint64_t each_at;
	double each;  /* packets of a millisecond: the most of the last 5 ms, since rates change */
	double worst; /* of what may leave at once, the largest part that did */
} trains;

/*
 * Packets that leave at one time: those of a millisecond, or eight, and as many more as were due in the
 * millisecond before, if the sender is late (4.4 item 6). Packets that are sent again follow ACKs.
 */
static bool train_tap(struct sim *world, const struct sim_node *node, const uint8_t *bytes,
		      uint32_t length)
{
	const struct rxw_pcall *p;
	uint32_t seq = rxw_get32(bytes + 12);
	double each, most;

	(void)length;
	if (node->client || bytes[20] != RXW_DATA || seq <= trains.highest)
		return false;
	trains.highest = seq;
	p = node->conns->p.channel[0];
	trains.count = world->now == trains.at ? trains.count + 1 : 1;
	trains.at = world->now;
	if (!p->tx.rtt.valid || rxw_send_interval(p) == 0)
		return false;
	each = (double)RXW_MS / (double)rxw_send_interval(p);
	if (each >= trains.each || world->now > trains.each_at + 5 * RXW_MS) {
		trains.each = each;
		trains.each_at = world->now;
	}
	each = trains.each;
	most = (each > RXW_CC_BURST ? each : RXW_CC_BURST) + each + 1;
	if (trains.count / most > trains.worst)
		trains.worst = trains.count / most;
	return false;
}

static bool short_trains(unsigned mbit, double rtt_ms, uint64_t seed)
{
	struct sim_setup s;
	char what[64];
	bool good;

	path(&s, mbit, rtt_ms, 4);
	s.tap = train_tap;
	memset(&trains, 0, sizeof(trains));
	sim_run(&sim, &s, seed);
	snprintf(what, sizeof(what), "largest train, of what is permitted, %u Mbit/s", mbit);
	good = sim_expect(&sim, what, seed, trains.worst, 0.3, 1);
	good &= sim_expect(&sim, "share of the line", seed,
			   (double)sim.bytes_moved / 4 / (double)s.down.rate, 0.6, 1);
	sim_free(&sim);
	return good;
}

/* --- acknowledgements --- */

static struct {
	uint64_t from;
	uint32_t fresh;		/* packets that had arrived at the ACK before */
	uint64_t packets, acks; /* with many packets in flight: those that arrived, their ACKs */
} many;

static bool many_tap(struct sim *world, const struct sim_node *node, const uint8_t *bytes,
		     uint32_t length)
{
	uint32_t fresh;

	(void)length;
	if (!node->client || bytes[20] != RXW_ACK)
		return false;
	fresh = node->conns->p.channel[0]->rx.fresh;
	if (world->now >= many.from && world->server.conns->p.channel[0]->tx.flight > MANY) {
		many.packets += fresh - many.fresh;
		many.acks++;
	}
	many.fresh = fresh;
	return false;
}

/* Packets for an ACK, once slow start is over. */
static bool few_acks(unsigned mbit, double rtt_ms, double loss, uint64_t seed)
{
	struct sim_setup s;
	uint64_t from = 2 + (uint64_t)(rtt_ms / 40); /* 25 round trips, and two seconds */
	char what[96];
	bool good;

	path(&s, mbit, rtt_ms, from + 3);
	s.down.loss = loss;
	s.tap = many_tap;
	many.from = (1 + from) * RXW_SEC;
	many.packets = many.acks = 0;
	sim_run(&sim, &s, seed);
	snprintf(what, sizeof(what), "packets for an ACK, %u Mbit/s, %.0f ms, loss %.1f %%", mbit,
		 rtt_ms, loss * 100);
	good = sim_expect(&sim, what, seed, (double)many.packets / (double)many.acks,
			  FOR_EACH * 0.99, 200);
	good &= sim_expect(&sim, "of so many packets", seed, (double)many.packets, 10000, 1e9);
	sim_free(&sim);
	return good;
}

int main(int argc, char **argv)
{
	struct sim_args args;
	bool good = true;

	if (!sim_args_parse(&args, argc, argv, "sfct", "RXW_SIM_PACE_SEEDS", 1))
		return 2;
	tracing = args.trace;
	if (args.seed != 0) {
		args.first = args.seed;
		args.count = 1;
	}
	for (uint64_t seed = args.first; seed < args.first + args.count; seed++) {
		good &= short_trains(20, 100, seed);
		good &= short_trains(100, 40, seed);
		good &= short_trains(1000, 50, seed);
		good &= few_acks(1000, 100, 0, seed);
		good &= few_acks(1000, 100, 0.001, seed);
		good &= few_acks(1000, 50, 0.01, seed);
		good &= few_acks(400, 100, 0, seed);
		good &= few_acks(400, 100, 0.001, seed);
		good &= few_acks(200, 200, 0.001, seed);
		good &= few_acks(100, 350, 0, seed);
	}
	return good ? 0 : 1;
}
