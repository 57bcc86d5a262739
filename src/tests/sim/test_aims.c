/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Transport goals, checked by statistics over many seeds: goodput, spurious retransmissions,
 * fairness, probes, timeouts. RXW_SIM_SEEDS (300) sets their number: 1,000 or more run all, fewer
 * run two thirds, and sanitizers reduce it further. The expensive goals use a part of the seeds. A
 * failure names the seed to replay.
 */
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#define SEEDS	  300u
#define MSEC	  1e6
#define ENDLESS	  ((uint64_t)1 << 40)
#define PACKET	  1412u	 /* bytes for the goal with a window of 255 */
#define LINE_RATE 12.5e6 /* 100 Mbit/s */

#if defined(__has_feature)
#	if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#		define SLOW
#	endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#	define SLOW
#endif

static struct sim sim;
static bool tracing;

/* A bulk reply over a bottleneck; queue in bandwidth-delay products; for `seconds`. */
static void path(struct sim_setup *s, double rate, double rtt_ms, double queue, double seconds)
{
	sim_default(s);
	s->up.delay = s->down.delay = (uint64_t)(rtt_ms / 2 * MSEC);
	s->up.jitter = s->down.jitter = 0;
	s->down.rate = (uint64_t)rate;
	s->down.queue = (uint64_t)(rate * rtt_ms / 1000 * queue);
	s->reply = ENDLESS;
	s->stop_at = (uint64_t)(seconds * 1e9);
	s->trace = tracing;
}

/* A number from low to high, derived from the seed. */
static double from(uint64_t seed, unsigned which, double low, double high)
{
	uint64_t state = seed * 64 + which + 1;

	rxw_prng(&state);
	return low + (high - low) * (double)(rxw_prng(&state) >> 11) / 9007199254740992.0;
}

static bool run(const struct sim_setup *s, uint64_t seed)
{
	sim_run(&sim, s, seed);
	if (sim.failure[0] != '\0')
		printf("seed %llu: %s\n", (unsigned long long)seed, sim.failure);
	return sim.failure[0] == '\0';
}

static double seconds_of(const struct sim_setup *s)
{
	return (double)s->stop_at / 1e9;
}

/* --- goodput --- */

static double goodput(const struct sim_setup *s, uint64_t seed)
{
	double share = -1;

	if (run(s, seed))
		share = (double)sim.call_bytes[0] / seconds_of(s) / (double)s->down.rate;
	sim_free(&sim);
	return share;
}

static double clean_10ms(uint64_t seed)
{
	struct sim_setup s;

	path(&s, LINE_RATE, 10, from(seed, 0, 1, 2), 2);
	return goodput(&s, seed);
}

static double clean_20ms(uint64_t seed)
{
	struct sim_setup s;

	path(&s, LINE_RATE, 20, from(seed, 0, 1, 2), 3);
	return goodput(&s, seed);
}

/* Goodput of the reference flow instead, as a share of the line. */
static double reference(struct sim_setup *s, uint64_t seed)
{
	double share = -1;

	s->connections = 0;
	s->references = 1;
	if (run(s, seed))
		share = (double)sim_ref_bytes(&sim, 0) / seconds_of(s) / (double)s->down.rate;
	sim_free(&sim);
	return share;
}

/* Check of the reference itself: it fills a line without losses ... */
static double yardstick_clean(uint64_t seed)
{
	struct sim_setup s;

	path(&s, LINE_RATE, 10, from(seed, 0, 0.5, 2), 2);
	return reference(&s, seed);
}

/* ... and with losses its mean window is that of RFC 9438, 5.1, here sqrt(1.5 / p). */
static double yardstick_loss(uint64_t seed)
{
	struct sim_setup s;

	path(&s, LINE_RATE, 10, 1, 20);
	s.down.loss = 0.01;
	return reference(&s, seed) * LINE_RATE * 0.010 / 1416 / sqrt(1.5 / 0.01);
}

/* Compared with the reference flow on the same path with the same losses. */
static double beside_reference(uint64_t seed)
{
	struct sim_setup s;
	double ours;

	path(&s, LINE_RATE, 10, 1, 5);
	s.down.loss = 0.01;
	ours = goodput(&s, seed);
	return ours / reference(&s, seed);
}

/* The same with burst losses: Gilbert-Elliott, 1 % in all. */
static double beside_reference_bursts(uint64_t seed)
{
	struct sim_setup s;
	double ours;

	path(&s, LINE_RATE, 10, 1, 5);
	s.down.to_bad = 0.004;
	s.down.to_good = 0.2;
	s.down.bad_loss = 0.5;
	ours = goodput(&s, seed);
	return ours / reference(&s, seed);
}

/* Goodput from 2 s on, relative to 255 packets per round trip of 50 ms. */
static double window_255(uint64_t seed)
{
	struct sim_setup s;
	double share = -1;

	path(&s, 125e6, 50, 1, 6);
	sim_plan(&s, 2000, SIM_MARK, 0, 0);
	if (run(&s, seed))
		share = (double)(sim.call_bytes[0] - sim.call_marks[0]) / 4 / (255 * PACKET / 0.05);
	sim_free(&sim);
	return share;
}

/* --- pacing --- */

#define PACED 64u
static struct {
	uint64_t at[PACED]; /* the latest packets, a ring */
	uint64_t count, from;
	double rate, burst, worst;
} paced;

/* The share that was sent of the data that rate and bursts allow in a time. */
static bool paced_tap(struct sim *world, const struct sim_node *node, const uint8_t *bytes,
		      uint32_t length)
{
	struct rxw_header h;

	rxw_header_get(bytes, length, &h);
	if (node->client || h.type != RXW_DATA || world->now < paced.from)
		return false;
	paced.at[paced.count++ % PACED] = world->now;
	for (uint64_t k = 1; k <= PACED && k <= paced.count; k++) {
		double time = (double)(world->now - paced.at[(paced.count - k) % PACED]);
		double part = (double)k / (paced.rate * time + paced.burst);

		paced.worst = part > paced.worst ? part : paced.worst;
	}
	return false;
}

/*
 * A full window is spread over four fifths of a round trip. A burst is 8 packets or the data of 1
 * ms at the rate, and the same amount may be caught up (4.4).
 */
static double pacing(uint64_t seed)
{
	double rtt = from(seed, 0, 2, 100), each;
	unsigned window = 17 + (unsigned)from(seed, 1, 0, 239);
	struct sim_setup s;
	bool good;

	path(&s, 1e9, rtt, 4, 2.5);
	s.client.window = s.server.window = (uint16_t)window;
	s.tap = paced_tap;
	memset(&paced, 0, sizeof(paced));
	paced.from = 3 * RXW_SEC;
	/* The sender measures a slightly longer round trip. */
	paced.rate = window / (rtt * 0.8 * MSEC);
	each = paced.rate * MSEC;
	paced.burst = (each > 8 ? each : 8) + each + 1;
	good = run(&s, seed);
	sim_free(&sim);
	return good && paced.count > window ? paced.worst : 1e9;
}

/* --- reordering --- */

/* The share of packets that were retransmitted although none was lost. */
static double spurious(uint64_t seed)
{
	static const double late[] = {0.01, 0.1, 0.5, 1};
	struct sim_setup s;
	double share = -1;
	bool line = seed % 8 < 4;

	path(&s, line ? LINE_RATE : 125e6, 1, 5, line ? 2 : 0.4);
	s.up.reorder = s.down.reorder = late[seed % 4];
	s.up.jitter = s.down.jitter = 5 * RXW_MS;
	s.down.queue = 4 << 20;
	if (run(&s, seed))
		share = (double)sim.server.stats.retransmitted /
			(double)sim.server.stats.packets_sent[RXW_DATA];
	sim_free(&sim);
	return share;
}

/* --- fairness --- */

/*
 * Two flows begin within a second: the larger one's share from 4 s on. The time until an endpoint
 * handles its packets varies by that of one packet on the line. Without this jitter two flows
 * synchronise with a queue of whole packets, which does not happen on real paths.
 */
static double two_flows(uint64_t seed)
{
	struct sim_setup s;
	double share = 2;

	path(&s, 2.5e6, 20, from(seed, 0, 1, 2), 12);
	s.receive_wait = 600 * 1000;
	s.connections = 2;
	s.stagger = (uint64_t)(from(seed, 1, 0, 1000) * MSEC);
	sim_plan(&s, 4000, SIM_MARK, 0, 0);
	if (run(&s, seed)) {
		double a = (double)(sim.call_bytes[0] - sim.call_marks[0]);
		double b = (double)(sim.call_bytes[1] - sim.call_marks[1]);

		share = (a > b ? a : b) / (a + b);
	}
	sim_free(&sim);
	return share;
}

/* The slowest of 64, relative to the mean. */
static double flows_64(uint64_t seed)
{
	struct sim_setup s;
	double least = 1e18, sum = 0;

	path(&s, LINE_RATE, 20, from(seed, 0, 1, 2), 5);
	s.connections = 64;
	if (!run(&s, seed))
		sum = -1;
	for (unsigned i = 0; sum >= 0 && i < 64; i++) {
		double got = (double)sim.call_bytes[i];

		least = got < least ? got : least;
		sum += got;
	}
	sim_free(&sim);
	return sum < 0 ? -1 : least * 64 / sum;
}

/* --- tail loss --- */

static struct {
	bool client;		/* the sender of the tail */
	unsigned drop;		/* packets at the end of the second call, first transmission */
	uint32_t packets, last; /* of the call; highest sequence number seen */
	bool asked;		/* the newest of the tail carried REQUEST_ACK */
	bool known;		/* a round trip had been measured */
	uint64_t tail_at, probe_at, over_at;
} tail;

static bool tail_tap(struct sim *world, const struct sim_node *node, const uint8_t *bytes,
		     uint32_t length)
{
	struct rxw_header h;

	rxw_header_get(bytes, length, &h);
	/*
	 * A server that does not know the client's address refuses all packets of a new call but 16, until
	 * its application reads. Those packets are sent for the first time after that.
	 */
	if (node->client != tail.client && h.type == RXW_ACK && h.call == 2 &&
	    bytes[RXW_HEADER_SIZE + 16] == RXW_ACK_EXCEEDS_WINDOW)
		tail.last = tail.probe_at = tail.over_at = 0;
	if (node->client != tail.client || h.type != RXW_DATA || h.call != 2 ||
	    h.seq + tail.drop <= tail.packets)
		return false;
	if (h.seq > tail.last) {
		tail.last = h.seq;
		tail.tail_at = world->now;
		tail.asked = (h.flags & RXW_REQUEST_ACK) != 0;
		tail.known = node->conns->p.channel[h.cid & 3]->tx.rtt.valid;
		return true;
	}
	if (tail.probe_at == 0)
		tail.probe_at = world->now;
	tail.over_at = world->now;
	return false;
}

/* Two calls. The last packets of the second are lost once. False: the run failed. */
static bool lose_tail(uint64_t seed, double *rtt)
{
	struct sim_setup s;

	memset(&tail, 0, sizeof(tail));
	sim_default(&s);
	*rtt = from(seed, 0, 1, 100);
	s.up.delay = s.down.delay = (uint64_t)(*rtt / 2 * MSEC);
	s.up.jitter = s.down.jitter = 0;
	tail.client = seed % 2;
	tail.packets = 1 + (uint32_t)from(seed, 1, 0, 40);
	tail.drop = 1 + (unsigned)from(seed, 2, 0, 3);
	if (tail.drop > tail.packets)
		tail.drop = tail.packets;
	s.calls = 2;
	s.request = s.reply = 100;
	*(tail.client ? &s.request : &s.reply) = tail.packets * 1416u;
	s.tap = tail_tap;
	s.trace = tracing;
	return run(&s, seed);
}

/*
 * The time until the probe, less 10 ms and the delay of the peer's ACK, in round trips. If no RTT
 * is known yet it is the first timeout, after 1 s.
 */
static double tail_probe(uint64_t seed)
{
	double rtt, delay, took;
	bool good = lose_tail(seed, &rtt);

	sim_free(&sim);
	if (!good || tail.probe_at == 0)
		return 1e9;
	delay = tail.asked && tail.known ? 0 : tail.client ? 400 : 100;
	if (!tail.known)
		delay += 1000;
	took = (double)(tail.probe_at - tail.tail_at) / MSEC;
	return (took - 10 - delay) / rtt;
}

/* From the probe until the last packet of the tail is retransmitted, in round trips. */
static double tail_recovery(uint64_t seed)
{
	double rtt;
	bool good = lose_tail(seed, &rtt);

	sim_free(&sim);
	if (!good || tail.probe_at == 0)
		return 1e9;
	return (double)(tail.over_at - tail.probe_at) / MSEC / rtt;
}

/* --- timeouts --- */

static struct {
	uint64_t rto_events;
	unsigned bursts;
	bool in_burst;
	unsigned since; /* DATA since the last timeout in a burst */
	unsigned most;
} rto;

/* A burst of timeouts: timeouts without an acknowledgement between them. */
static bool rto_tap(struct sim *world, const struct sim_node *node, const uint8_t *bytes,
		    uint32_t length)
{
	const struct rxw_pcall *p;
	uint64_t events = world->server.stats.rto_events;
	struct rxw_header h;

	rxw_header_get(bytes, length, &h);
	if (node->client || h.type != RXW_DATA)
		return false;
	p = node->conns->p.channel[h.cid & 3];
	if (events != rto.rto_events) {
		rto.rto_events = events;
		rto.bursts += p->tx.backoff == 1;
		rto.since = 0;
		rto.in_burst = true;
	}
	if (p->tx.backoff == 0)
		rto.in_burst = false;
	if (rto.in_burst && ++rto.since > rto.most)
		rto.most = rto.since;
	return false;
}

static void holes(struct sim_setup *s, uint64_t seed, unsigned count)
{
	path(s, LINE_RATE, from(seed, 0, 2, 60), 1, 3 * count + 2);
	s->down.rate /= 4;
	memset(&rto, 0, sizeof(rto));
	s->tap = rto_tap;
	for (unsigned i = 0; i < count; i++) {
		double at = 1000 + 3000 * i + from(seed, 2 + 3 * i, 0, 500);
		unsigned of = 1 + (unsigned)from(seed, 3 + 3 * i, 0, 3);

		sim_plan(s, at, SIM_SET_HOLE, of, 1);
		sim_plan(s, at + from(seed, 4 + 3 * i, 10, 1500), SIM_SET_HOLE, of, 0);
	}
}

/* Bursts of timeouts per outage. A timeout sends one packet before anything is acknowledged. */
static double rto_bursts(uint64_t seed)
{
	struct sim_setup s;
	bool good;

	holes(&s, seed, 3);
	good = run(&s, seed);
	sim_free(&sim);
	if (rto.most > 1)
		printf("seed %llu: a timeout sent %u packets\n", (unsigned long long)seed,
		       rto.most);
	return good && rto.most <= 1 ? rto.bursts / 3.0 : 1e9;
}

/* --- all goals --- */

struct aim {
	const char *name, *what;
	double (*measure)(uint64_t seed);
	double bound;
	bool at_most;	/* otherwise at least */
	double except;	/* the share of seeds that may miss it */
	unsigned costs; /* uses this part of the seeds */
};

static const struct aim aims[] = {
	{"yardstick", "the reference flow's share of 100 Mbit/s", yardstick_clean, 0.90, false, 0,
	 16},
	{"yardstick-loss", "its mean window at 1 % loss by RFC 9438", yardstick_loss, 0.90, false,
	 0, 16},
	{"clean", "share of 100 Mbit/s, round trip 10 ms", clean_10ms, 0.85, false, 0, 2},
	{"clean-20", "share of 100 Mbit/s, round trip 20 ms", clean_20ms, 0.85, false, 0, 4},
	{"loss", "of the reference flow, 1 % loss", beside_reference, 0.60, false, 0.05, 1},
	{"bursts", "of the reference flow, losses in bursts", beside_reference_bursts, 0.60, false,
	 0.05, 2},
	{"window", "of 255 packets in each 50 ms", window_255, 0.95, false, 0, 16},
	{"pacing", "of what rate and bursts allow", pacing, 1, true, 0, 2},
	{"reordering", "sent again, 5 ms late on a path of 1 ms", spurious, 0.01, true, 0.05, 4},
	{"two", "share of the larger of two", two_flows, 0.60, true, 0.05, 4},
	{"starvation", "share of the slowest of 64 of the mean", flows_64, 0.25, false, 0, 16},
	{"probe", "round trips until a lost tail is probed", tail_probe, 2.02, true, 0, 1},
	{"recovery", "round trips after it until all is repeated", tail_recovery, 1.02, true, 0, 1},
	{"rto", "bursts of timeouts for each hole", rto_bursts, 1, true, 0, 2},
};

struct result {
	double value;
	uint64_t seed;
};

static int worse_first(const void *a, const void *b)
{
	double x = ((const struct result *)a)->value, y = ((const struct result *)b)->value;

	return x < y ? -1 : x > y;
}

static bool check(const struct aim *a, unsigned first, unsigned count)
{
	unsigned n = (count + a->costs - 1) / a->costs, missed = 0;
	struct result *r = calloc(n, sizeof(*r));
	bool good;

	if (r == NULL)
		abort();
	for (unsigned i = 0; i < n; i++) {
		r[i] = (struct result){a->measure(first + i), first + i};
		missed += a->at_most ? !(r[i].value <= a->bound) : !(r[i].value >= a->bound);
	}
	qsort(r, n, sizeof(*r), worse_first);
	good = missed <= (unsigned)(a->except * n);
	printf("%s: %-42s %s %.3f; %u seeds: %.4f %.4f %.4f %.4f %.4f; %u missed%s\n",
	       good ? "ok" : "FAILED", a->what, a->at_most ? "<=" : ">=", a->bound, n, r[0].value,
	       r[n / 20].value, r[n / 2].value, r[n - 1 - n / 20].value, r[n - 1].value, missed,
	       good && missed > 0 ? " (may happen)" : "");
	if (!good)
		printf("  the worst is replayed by: test_aims --only %s --seed %llu --trace\n",
		       a->name, (unsigned long long)r[a->at_most ? n - 1 : 0].seed);
	fflush(stdout);
	free(r);
	return good;
}

static unsigned part_of(unsigned seeds)
{
	if (seeds >= 1000)
		return seeds;
#ifdef SLOW
	return seeds * 2 / 5;
#else
	return seeds * 2 / 3;
#endif
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"seed", required_argument, NULL, 's'},	 {"first", required_argument, NULL, 'f'},
		{"count", required_argument, NULL, 'c'}, {"only", required_argument, NULL, 'o'},
		{"trace", no_argument, NULL, 't'},	 {NULL, 0, NULL, 0},
	};
	const char *environment = getenv("RXW_SIM_SEEDS"), *only = NULL;
	unsigned first = 1, failed = 0;
	unsigned count = part_of(environment != NULL ? (unsigned)atoi(environment) : SEEDS);
	int o;

	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1)
		switch (o) {
		case 's':
			first = (unsigned)atoi(optarg);
			count = 1;
			break;
		case 'f':
			first = (unsigned)atoi(optarg);
			break;
		case 'c':
			count = (unsigned)atoi(optarg);
			break;
		case 'o':
			only = optarg;
			break;
		case 't':
			tracing = true;
			break;
		default:
			return 2;
		}
	if (count == 0)
		count = 1;
	printf("  values: least, 5 %%, median, 95 %%, most\n");
	for (unsigned i = 0; i < sizeof(aims) / sizeof(aims[0]); i++)
		if (only == NULL || strcmp(only, aims[i].name) == 0)
			failed += !check(&aims[i], first, count);
	return failed == 0 ? 0 : 1;
}
