/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The path MTU in the middle of calls (rx-protocol 5.5): how soon a larger one is found, how soon a
 * call gets out of a black hole, and what old peers and losses make of it. RXW_SIM_MTU_SEEDS (1)
 * sets the number of seeds. A failure names the seed to replay.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#define ENDLESS ((uint64_t)1 << 44)
#define MSEC	1000000u
#define WINDOW	16384u
#define JUMBO	8972u /* payload of packets of 9,000 bytes */
#define USUAL	1444u
#define TUNNEL	1252u /* payload of packets of 1,280 bytes */
#define NONE	UINT64_MAX
#define START	RXW_SEC /* of a run */

static struct sim sim;
static bool tracing;

/* Packets of the server that the tap has seen. */
static struct {
	uint64_t large_at, change, new_at; /* times; NONE = not yet */
	uint64_t rto, rtt;		   /* when the path changed */
	uint32_t most, least_probe, probes;
	uint32_t into_hole; /* DATA too large for the path, a round trip and an RTO after it changed */
	uint32_t max_mtu; /* in ACKs of the client: an old peer's; 0 = leave them alone */
} seen;

static uint32_t server_mtu(const struct sim *world)
{
	const struct sim_conn *c = world->server.conns;

	return c != NULL ? atomic_load(&c->p.peer->mtu) : 0;
}

static const struct rxw_pcall *server_call(const struct sim *world)
{
	const struct sim_conn *c = world->server.conns;

	return c != NULL ? c->p.channel[0] : NULL;
}

static bool tap(struct sim *world, const struct sim_node *from, const uint8_t *bytes,
		uint32_t length)
{
	const struct rxw_pcall *p = server_call(world);

	if (from->client) {
		/* The trailer of an ACK, as an old peer writes it. */
		if (bytes[20] == RXW_ACK && seen.max_mtu != 0)
			rxw_put32((uint8_t *)(uintptr_t)bytes + length - 16, seen.max_mtu);
		return false;
	}
	if (bytes[20] == RXW_ACK && length > RXW_HEADER_SIZE + 1000) {
		seen.probes++;
		if (length < seen.least_probe)
			seen.least_probe = length;
	}
	if (bytes[20] == RXW_DATA && length > seen.most) {
		seen.most = length;
		seen.large_at = world->now;
	}
	if (bytes[20] == RXW_DATA && length > world->setup.down.mtu &&
	    world->now > seen.change + seen.rtt + seen.rto)
		seen.into_hole++;
	if (p == NULL)
		return false;
	if (world->now < seen.change) {
		seen.rto = rxw_rtt_rto(&p->tx.rtt, 100 * RXW_MS, 0);
		seen.rtt = p->tx.rtt.srtt;
	}
	if (world->now >= seen.change && seen.new_at == NONE && p->tx.mtu.confirmed <= TUNNEL)
		seen.new_at = world->now;
	return false;
}

static void path(struct sim_setup *s, unsigned mbit, double rtt_ms)
{
	struct rxw_params *end[2] = {&s->client, &s->server};

	memset(&seen, 0, sizeof(seen));
	seen.large_at = seen.change = seen.new_at = NONE;
	seen.least_probe = UINT32_MAX;
	sim_path(s, mbit, rtt_ms, 1);
	s->up.mtu = s->down.mtu = JUMBO;
	s->reply = ENDLESS;
	s->stop_at = 6 * RXW_SEC;
	s->tap = tap;
	s->trace = tracing;
	for (unsigned i = 0; i < 2; i++) {
		end[i]->mtu_ceiling = JUMBO;
		end[i]->mtu_auto = true;
	}
	sim_wide(s, WINDOW, &rxw_cc_rate);
}

/* 1 or 0: with "&" all are asked, not only those up to the first failure. */
static unsigned expect(const char *name, const char *what, uint64_t seed, double got, double least,
		       double most)
{
	bool good = sim.failure[0] == '\0' && got >= least && got <= most;

	printf("%s: %s, seed %llu: %s %.3f (%.2f to %.2f) %s\n", good ? "ok" : "FAILED", name,
	       (unsigned long long)seed, what, got, least, most, sim.failure);
	fflush(stdout);
	return good;
}

/* Goodput from the mark to the end, as a share of the line. */
static double share(double from_s, double to_s)
{
	return (double)(sim.call_bytes[0] - sim.call_marks[0]) / (to_s - from_s) /
	       (double)sim.setup.down.rate;
}

/* MTU 9,000: the first such packet leaves within 10 round trips, and nothing is lost for it. */
static unsigned found(uint64_t seed)
{
	static const double rtts[] = {2, 20, 50, 200};
	bool good = true;

	for (unsigned k = 0; k < 4; k++) {
		struct sim_setup s;
		double rtt = rtts[k];
		char name[64];

		path(&s, 1000, rtt);
		s.client.cc_wide = s.server.cc_wide = &rxw_cc_rate;
		s.stop_at = rtt > 100 ? 8 * RXW_SEC : 4 * RXW_SEC;
		sim_plan(&s, rtt > 100 ? 4000 : 2000, SIM_MARK, 0, 0);
		sim_run(&sim, &s, seed);
		snprintf(name, sizeof(name), "MTU 9,000, %g ms", rtt);
		good &= expect(name, "round trips", seed,
			       (double)(seen.large_at - START) / MSEC / rtt, 1, 10);
		good &= expect(name, "size", seed, seen.most, JUMBO, JUMBO);
		good &= expect(name, "share", seed, rtt > 100 ? share(4, 8) : share(2, 4), 0.9,
			       1.06);
		good &= expect(name, "lost by the queue", seed, (double)sim.setup.down.overflowed,
			       0, 4000);
		sim_free(&sim);
	}
	return good;
}

/* The usual MTU: the probes are lost, the call notices nothing, and they end. */
static unsigned usual(uint64_t seed)
{
	struct sim_setup s;
	bool good;

	path(&s, 200, 40);
	s.up.mtu = s.down.mtu = 1472;
	sim_plan(&s, 2000, SIM_MARK, 0, 0);
	sim_run(&sim, &s, seed);
	good = expect("MTU 1,500", "size", seed, seen.most, 1472, 1472) &
	       expect("MTU 1,500", "loss events", seed, (double)sim.server.stats.loss_events, 0,
		      1) &
	       expect("MTU 1,500", "timeouts", seed, (double)sim.server.stats.rto_events, 0, 0) &
	       expect("MTU 1,500", "probes", seed, seen.probes, 4, 20) &
	       expect("MTU 1,500", "share", seed, share(2, 6), 0.93, 1);
	sim_free(&sim);
	return good;
}

/* The client's direction carries less: that is not ours to find. */
static unsigned asymmetric(uint64_t seed)
{
	struct sim_setup s;
	bool good;

	path(&s, 200, 40);
	s.up.mtu = TUNNEL;
	sim_run(&sim, &s, seed);
	good = expect("asymmetric", "size", seed, seen.most, JUMBO, JUMBO) &
	       expect("asymmetric", "round trips", seed,
		      (double)(seen.large_at - START) / MSEC / 40, 1, 10);
	sim_free(&sim);
	return good;
}

/* An old peer's limits are kept, and one that accepts no more than usual gets no probe. */
static unsigned old_peers(uint64_t seed)
{
	struct sim_setup s;
	bool good;

	path(&s, 200, 40);
	s.client.window = 32;
	s.client.mtu_ceiling = USUAL;
	sim_run(&sim, &s, seed);
	good = expect("old peer", "size", seed, seen.most, USUAL, USUAL) &
	       expect("old peer", "probes", seed, seen.probes, 0, 0);
	sim_free(&sim);
	path(&s, 200, 40);
	s.client.window = 32;
	s.client.mtu_ceiling = USUAL;
	seen.max_mtu = 5692;
	sim_run(&sim, &s, seed);
	good &= expect("old peer with jumbograms", "size", seed, seen.most, 5692, 5692) &
		expect("old peer with jumbograms", "probes", seed, seen.probes, 1, 3);
	sim_free(&sim);
	return good;
}

/* The path's MTU falls without a report; later it rises again. */
static unsigned black_hole(uint64_t seed, uint32_t before, double rtt_ms, bool wide)
{
	struct sim_setup s;
	char name[64];
	bool good;

	path(&s, 100, rtt_ms);
	if (!wide)
		s.client.window = 255;
	s.up.mtu = s.down.mtu = before;
	s.stop_at = 9 * RXW_SEC;
	seen.change = START + 3 * RXW_SEC;
	sim_plan(&s, 3000, SIM_SET_MTU, SIM_DOWN, TUNNEL);
	sim_plan(&s, 4000, SIM_MARK, 0, 0);
	sim_run(&sim, &s, seed);
	snprintf(name, sizeof(name), "black hole, %u, %g ms%s", before, rtt_ms,
		 wide ? "" : ", 255");
	good = expect(name, "RTOs without an ACK", seed,
		      (double)(seen.new_at - seen.change - seen.rtt) / (double)seen.rto, 0.1, 2) &
	       expect(name, "size", seed, server_mtu(&sim), TUNNEL, TUNNEL) &
	       expect(name, "timeouts", seed, (double)sim.server.stats.rto_events, 0, 1) &
	       expect(name, "share afterwards", seed, share(4, 9), wide ? 0.6 : 0.05, 1);
	sim_free(&sim);
	return good;
}

static unsigned raised(uint64_t seed)
{
	struct sim_setup s;
	bool good;

	path(&s, 100, 40);
	s.up.mtu = s.down.mtu = USUAL;
	s.stop_at = 14 * RXW_SEC;
	seen.change = START + 2 * RXW_SEC;
	sim_plan(&s, 2000, SIM_SET_MTU, SIM_DOWN, TUNNEL);
	sim_plan(&s, 5000, SIM_SET_MTU, SIM_DOWN, USUAL);
	sim_run(&sim, &s, seed);
	good = expect("raised again", "size", seed, server_mtu(&sim), USUAL - 16, USUAL);
	sim_free(&sim);
	return good;
}

/*
 * From large packets to usual ones: after that as many are in flight as the path holds, here somewhat more than the
 * usual low-water mark of the send queue.
 */
static unsigned smaller(uint64_t seed)
{
	struct sim_setup s;
	bool good;

	path(&s, 100, 40);
	s.stop_at = 20 * RXW_SEC;
	sim_plan(&s, 4000, SIM_SET_MTU, SIM_BOTH, 1472);
	sim_plan(&s, 8000, SIM_MARK, 0, 0);
	sim_run(&sim, &s, seed);
	good = expect("from 9,000 to 1,500", "size", seed, server_mtu(&sim), 1472 - 16, 1472) &
	       expect("from 9,000 to 1,500", "share afterwards", seed, share(8, 20), 0.85, 1);
	sim_free(&sim);
	return good;
}

/*
 * The path's MTU falls without a report, and packets that were sent cannot pass as fragments, either. They
 * are cut anew; a sender without ACKs does not go on meanwhile (RFC 8085, 3.1).
 */
static unsigned hidden(uint64_t seed, const char *class, uint32_t before, uint32_t mtu, double rtt_ms,
		       bool wide)
{
	struct sim_class k;
	struct sim_setup s;
	char name[80];
	bool good;

	path(&s, 100, rtt_ms);
	if (!sim_class_make(&k, class, 0, 0))
		return 0;
	sim_class_use(&s, &k);
	s.up.mtu = s.down.mtu = before;
	s.up.hidden = s.down.hidden = true;
	if (!wide)
		s.client.window = 255;
	s.stop_at = 9 * RXW_SEC;
	seen.change = START + 3 * RXW_SEC;
	sim_plan(&s, 3000, SIM_SET_MTU, SIM_DOWN, mtu);
	sim_plan(&s, 5000, SIM_MARK, 0, 0);
	sim_run(&sim, &s, seed);
	snprintf(name, sizeof(name), "hidden, %s, %u to %u, %g ms%s", class, before, mtu, rtt_ms,
		 wide ? "" : ", 255");
	good = expect(name, "size", seed, server_mtu(&sim), mtu - 15, mtu) &
	       expect(name, "packets into the hole", seed, seen.into_hole, 0, 30) &
	       expect(name, "share afterwards", seed, share(5, 9), wide ? 0.6 : 0.05, 1);
	sim_free(&sim);
	sim_class_free(&k);
	return good;
}

/*
 * Datagrams arrive twice, and late, before and after the path MTU falls. That ends no call, whether fragments pass or
 * not, and the bytes are right.
 */
static unsigned doubled(uint64_t seed, const char *class, bool fragments, double loss)
{
	struct sim_class k;
	struct sim_setup s;
	char name[80];
	bool good;

	path(&s, 100, 40);
	if (!sim_class_make(&k, class, 0, 0))
		return 0;
	sim_class_use(&s, &k);
	s.up.mtu = s.down.mtu = 1472;
	s.up.hidden = s.down.hidden = !fragments;
	s.up.duplicate = s.down.duplicate = 0.2;
	s.up.reorder = s.down.reorder = fragments ? 0.1 : 0;
	s.up.loss = s.down.loss = loss;
	s.stop_at = 12 * RXW_SEC;
	sim_plan(&s, 3000, SIM_SET_MTU, SIM_DOWN, 1272);
	sim_plan(&s, 8000, SIM_MARK, 0, 0);
	sim_run(&sim, &s, seed);
	snprintf(name, sizeof(name), "doubled, %s, %s, losses of %g %%", class,
		 fragments ? "fragments pass" : "hidden", 100 * loss);
	good = expect(name, "share afterwards", seed, share(8, 12), 0.05, 1);
	sim_free(&sim);
	sim_class_free(&k);
	return good;
}

/*
 * The path was never larger than that: requests and replies begin too large. On a short one the threads of the hosts
 * decide how long a round trip takes.
 */
static unsigned narrow(uint64_t seed, const char *class, uint32_t mtu, double rtt_ms)
{
	struct sim_class k;
	struct sim_setup s;
	char name[64];
	bool good;

	path(&s, 100, rtt_ms);
	if (!sim_class_make(&k, class, 0, 0))
		return 0;
	sim_class_use(&s, &k);
	s.receive_wait = RXW_MS / 4;
	s.down.queue = 1000000;
	s.up.mtu = s.down.mtu = mtu;
	s.up.hidden = s.down.hidden = true;
	s.calls = 2;
	s.request = s.reply = 3000000;
	s.stop_at = 0;
	s.limit = 60 * RXW_SEC;
	sim_run(&sim, &s, seed);
	snprintf(name, sizeof(name), "narrow, %s, %u, %g ms", class, mtu, rtt_ms);
	good = expect(name, "seconds", seed, sim.call_seconds[0], 0, 20) &
	       expect(name, "size", seed, server_mtu(&sim), 548, mtu);
	sim_free(&sim);
	sim_class_free(&k);
	return good;
}

/*
 * A packet was lost before the path MTU fell, and the peer has later ones: it can be neither cut anew nor
 * delivered. The call ends soon, so that it is tried again with smaller packets.
 */
static unsigned hopeless(uint64_t seed)
{
	struct sim_setup s;
	double seconds;
	bool good;

	path(&s, 100, 40);
	s.up.mtu = s.down.mtu = 1472;
	s.up.hidden = s.down.hidden = true;
	s.down.loss = 0.02;
	s.stop_at = 12 * RXW_SEC;
	sim_plan(&s, 2000, SIM_SET_MTU, SIM_DOWN, 972);
	sim_run(&sim, &s, seed);
	seconds = (double)(sim.finished_at - START) / 1e9;
	good = strstr(sim.failure, "ended with -8") != NULL && seconds > 2 && seconds < 8;
	printf("%s: hopeless, seed %llu: %s after %.3f s (2 to 8)\n", good ? "ok" : "FAILED",
	       (unsigned long long)seed, sim.failure, seconds);
	sim_free(&sim);
	return good;
}

static bool all_hidden(uint64_t seed)
{
	static const char *const class[] = {"null",	   "rxkad-clear", "rxkad-auth", "rxkad-crypt",
					    "rxgk-clear", "rxgk-auth",	 "rxgk-crypt"};
	static const uint32_t mtu[] = {1372, TUNNEL, 972, 548};
	bool good = hidden(seed, "null", USUAL, TUNNEL, 40, false) &
		    hidden(seed, "null", JUMBO, 1472, 40, true) &
		    hopeless(seed) &
		    hidden(seed, "null", 1472, 548, 40, true);

	for (unsigned i = 0; i < sizeof(class) / sizeof(class[0]); i++)
		good &= hidden(seed, class[i], 1472, 972, 40, true) &
			narrow(seed, class[i], 972, 20);
	good &= doubled(seed, "null", true, 0) & doubled(seed, "null", true, 0.02) &
		doubled(seed, "null", false, 0) & doubled(seed, "rxgk-crypt", false, 0);
	for (unsigned i = 0; i < sizeof(mtu) / sizeof(mtu[0]); i++)
		good &= narrow(seed, "null", mtu[i], 20) & narrow(seed, "null", mtu[i], 0.1);
	return good;
}

/* Losses of data, and outages, are not taken for a black hole. */
static unsigned losses(uint64_t seed)
{
	struct sim_setup s;
	bool good;

	path(&s, 100, 40);
	s.down.loss = s.up.loss = 0.03;
	s.stop_at = 10 * RXW_SEC;
	sim_run(&sim, &s, seed);
	good = expect("losses of 3 %", "size", seed, server_mtu(&sim), JUMBO, JUMBO);
	sim_free(&sim);
	path(&s, 100, 40);
	s.stop_at = 10 * RXW_SEC;
	sim_plan(&s, 4000, SIM_SET_HOLE, SIM_BOTH, 1);
	sim_plan(&s, 5200, SIM_SET_HOLE, SIM_BOTH, 0);
	sim_plan(&s, 6500, SIM_MARK, 0, 0);
	sim_run(&sim, &s, seed);
	good &= expect("outage", "size", seed, server_mtu(&sim), JUMBO, JUMBO) &
		expect("outage", "share afterwards", seed, share(6.5, 10), 0.8, 1.1);
	sim_free(&sim);
	return good;
}

/* Calls of one peer: one searches, later ones begin with what it found. */
static unsigned later_calls(uint64_t seed)
{
	struct sim_setup s;
	bool good;

	path(&s, 200, 20);
	s.connections = 4;
	s.calls = 30;
	s.reply = 2000000;
	s.stop_at = 0;
	s.limit = 100 * RXW_SEC;
	s.up.mtu = s.down.mtu = 1472;
	sim_run(&sim, &s, seed);
	good = expect("120 calls", "probes", seed, seen.probes, 4, 40) &
	       expect("120 calls", "size", seed, seen.most, 1472, 1472);
	sim_free(&sim);
	return good;
}

/* Slow start goes on while the size changes: the time of a call to 1,472 bytes, and of one that stays at 1,444. */
static unsigned slow_start(uint64_t seed)
{
	double seconds[2] = {0, 0};
	bool good = true;

	for (unsigned search = 0; search < 2; search++) {
		struct sim_setup s;

		path(&s, 1000, 100);
		s.client.mtu_ceiling = s.server.mtu_ceiling = search ? 1472 : USUAL;
		s.reply = 20000000;
		s.stop_at = 0;
		sim_run(&sim, &s, seed);
		good &= expect("slow start", "size", seed, seen.most, search ? 1472 : USUAL,
			       search ? 1472 : USUAL);
		seconds[search] = sim.call_seconds[0];
		sim_free(&sim);
	}
	return good & expect("slow start", "seconds that a change of size costs", seed,
			     seconds[1] - seconds[0], -0.1, 0.02);
}

static bool all(uint64_t seed)
{
	return found(seed) & usual(seed) & asymmetric(seed) & old_peers(seed) &
	       black_hole(seed, USUAL, 40, true) & black_hole(seed, JUMBO, 40, true) &
	       black_hole(seed, USUAL, 200, true) & black_hole(seed, USUAL, 40, false) &
	       raised(seed) & smaller(seed) & losses(seed) & later_calls(seed) & slow_start(seed) &
	       all_hidden(seed);
}

int main(int argc, char **argv)
{
	struct sim_args args;
	unsigned failed = 0;

	if (!sim_args_parse(&args, argc, argv, "sfct", "RXW_SIM_MTU_SEEDS", 1))
		return 2;
	tracing = args.trace;
	if (args.seed != 0) {
		args.first = args.seed;
		args.count = 1;
	}
	for (uint64_t i = 0; i < (args.count ? args.count : 1); i++)
		failed += !all(args.first + i);
	return failed == 0 ? 0 : 1;
}
