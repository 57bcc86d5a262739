/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Congestion control by a model of the path: the largest rate at which packets were delivered, and
 * the shortest round trip. Their product is what the path holds. Packets are paced at the rate,
 * which is probed from time to time, and losses count only from two per cent on. The method is
 * known as BBR; this is a small form of its third version.
 */

#include "base/assert.h"
#include "base/cc.h"

#include <string.h>

#include "base/rtt.h"

#define GAIN(x)	    ((uint32_t)((x) * 256)) /* a factor, with 8 fractional bits */
#define RATE_SHIFT  RXW_CC_RATE_SHIFT	    /* fractional bits of packets per second */
#define RATE_MOST   (1ull << 36)
#define NO_LIMIT    UINT32_MAX
#define LEAST	    4u /* packets in flight at least */
#define FULL_ROUNDS 3u /* rounds without a quarter more: the pipe is full */
/* A round in which one packet of 50 is lost, and LOST_LEAST of them, shows congestion. */
#define LOSS_PART  50u
#define LOST_LEAST 6u
/* So few are enough outside of probes, where one packet of FEW_PART is lost. */
#define FEW_LOST 3u
#define FEW_PART 8u
/* The flight after losses outside of a probe, in the next probe, and after that. */
#define LOW_LOSS GAIN(0.9)
#define LOW_UP	 GAIN(1.75)
#define LOW_DOWN GAIN(1.25)
#define MANY_PART  5u  /* see many_lost() */
#define BURST_MOST 32u /* so few are a burst, whatever their part is */
/* The round trip has grown by an eighth, within these limits: slow start has filled the path. */
#define DELAY_LEAST (4 * RXW_MS)
#define DELAY_MOST  (16 * RXW_MS)
#define DELAY_MIN_SAMPLES 8u
/*
 * Early in slow start the flight triples in each round trip instead of doubling, up to this size,
 * as long as no round trip exceeds the shortest one by a sixteenth. k*k*ln(k)/(k-1) is the pacing
 * gain that multiplies the rate by k. Beyond this size it is bounded to little more than the path
 * has shown to hold: what overflows a queue of a quarter of that would be thousands of packets.
 */
#define QUICK_BELOW 8192u
#define QUICK_DELAY 16u
#define QUICK_PACE  GAIN(4.94)
#define QUICK_WINDOW GAIN(3.0)
#define LARGE_WINDOW GAIN(1.15)
/* Without a confirmation for so long, the shortest round trip is measured again, with a half-empty
 * path. */
#define RTT_VALID (5 * RXW_SEC)
#define RTT_PROBE (200 * RXW_MS)
/* The window is for a round trip of at most so many empty ones. */
#define QUEUE_MOST GAIN(16)
/* Cruising time before the rate is probed again, and what random bits add to it. */
#define CRUISE_TIME (2 * RXW_SEC)
#define CRUISE_MORE (1u << 30)
#define GROWN_MOST 3u /* probes in succession that found room: as in slow start */
/* At most, since the path may have become longer; DRAIN gives up half of the rate. */
#define DRAIN_ROUNDS  4u
#define DOWN_ROUNDS   16u
#define UNDO_ROUNDS   3u  /* losses may prove spurious for so long */
#define BUNCH_ROUNDS  8u
#define BUNCH_MOST    250000u /* us */
#define BUNCH_PART    3u      /* of the shortest round trip; shorter ones do not matter */
#define BUNCH_OFTEN   4u      /* one round of so many has one */
#define CRUISE_ROUNDS 63u /* the same in rounds, for coexistence with windows that grow by one */

enum phase {
	STARTUP, /* doubles the rate each round trip */
	DRAIN,	 /* empties the queue that this has filled */
	DOWN,	 /* below the rate, so that other flows see an empty queue */
	CRUISE,
	REFILL, /* one round at the rate, before the probe */
	UP,	/* above the rate */
	SHRINK	/* few packets in flight, to see the round trip of the empty path */
};

/* The growth of the flight in STARTUP. */
enum growth {
	TRIPLE, /* at first */
	DOUBLE, /* a round trip was longer */
	LARGE	/* none was up to QUICK_BELOW */
};

/* Pacing and window of each phase, by the model. */
/* Several steps of a sample call these: inlined, they would make it 1 KB larger. */
#define OUTLINE __attribute__((noinline))

static const struct {
	uint32_t pace, window;
} gains[] = {
	[STARTUP] = {GAIN(2.77), GAIN(2.0)},	   [DRAIN] = {GAIN(0.5), GAIN(2.0)},
	[DOWN] = {GAIN(0.9), GAIN(2.0)},	   [CRUISE] = {GAIN(1.0), GAIN(2.0)},
	[REFILL] = {GAIN(1.0), GAIN(2.0)},	   [UP] = {GAIN(1.25), GAIN(2.25)},
	[SHRINK] = {GAIN(1.0), GAIN(0.5)},
};

struct rate {
	uint64_t best[2];    /* largest rate of this probing cycle and of the one before */
	uint64_t full_at;    /* startup: the rate that has to grow by a quarter */
	uint64_t least_rtt;  /* ns, 0 = none yet */
	uint64_t rtt_at;     /* when it was last confirmed */
	uint64_t phase_at;   /* begin of the phase; of SHRINK: when the flight was small, or 0 */
	uint64_t cruise;     /* ns, length of this cruise */
	uint64_t fair;	     /* pace at least so fast, to reach the mean of all flows; 0 = no need */
	uint64_t round_rate; /* largest of this round */
	uint64_t round_rtt, last_round_rtt; /* least of this round and of the last one */
	uint32_t high;	     /* flight above which losses began; NO_LIMIT = unknown */
	uint32_t low;	     /* the same outside of probes; see follow_model() */
	uint32_t before;     /* `high` before the last losses, while `undo` is not 0 */
	uint32_t saved;	     /* window before SHRINK, 0 = none */
	uint32_t samples;    /* of round trips in this round */
	uint32_t lost, delivered; /* in this round */
	uint32_t rounds;     /* ended in this phase; the first of them began before it */
	uint32_t step;	     /* UP: packets by which `high` grows with the next round */
	uint32_t probe_rtt;  /* us; UP: of the last round before it */
	uint32_t noise;	     /* state of a small random generator */
	uint8_t phase, flat; /* flat: startup rounds without growth */
	uint8_t early; /* no limit was met yet: 2 = probe the rate at once, 1 = it was probed */
	uint8_t undo;	     /* rounds in which these losses may prove spurious */
	uint8_t grown;	     /* probes in succession that found an empty path */
	uint8_t growth;	     /* enum growth */
	bool lossy;	     /* too many packets of the last round were lost */
	/* Bunches of ACKs in the latest rounds, and in those before. */
	struct {
		uint32_t time[2];	    /* us: the longest one */
		uint8_t rounds[2], hits[2]; /* hits: rounds with a long one */
		bool seen;		    /* one in this round */
	} bunch;
	uint32_t peak_rtt; /* us: of the first packet of a bunch, acknowledged at peak_at */
	uint64_t peak_at;
};

_Static_assert(sizeof(struct rate) <= sizeof(((struct rxw_cc *)0)->state), "state of the model");

static struct rate *of(struct rxw_cc *cc)
{
	return (struct rate *)cc->state;
}

static const struct rate *of_const(const struct rxw_cc *cc)
{
	return (const struct rate *)cc->state;
}

static uint64_t larger_of(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t smaller_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t best_rate(const struct rate *m)
{
	return larger_of(m->best[0], m->best[1]);
}

/* Packets that the path holds, times a gain. */
OUTLINE static uint32_t estimate_held(const struct rate *m, uint32_t gain)
{
	uint64_t rtt = smaller_of(m->least_rtt, 100 * RXW_SEC) / 1000; /* us */

	/* 2^36 * 10^8 needs 63 bits. */
	return (uint32_t)smaller_of((best_rate(m) * rtt / 1000000 >> RATE_SHIFT) * gain / 256,
				    UINT32_MAX);
}

/*
 * Receivers merge ACKs of up to a millisecond or 64 packets, and senders send trains as long. Where the path holds
 * few packets, as losses outside of a probe have shown, 64 beside them overflow its queue.
 */
static uint32_t estimate_slack(const struct rate *m)
{
	uint32_t merged =
		(uint32_t)smaller_of(64, larger_of(RXW_CC_BURST, estimate_held(m, GAIN(0.5))));

	return (m->low == NO_LIMIT ? 64 : merged) +
	       (uint32_t)smaller_of((best_rate(m) >> RATE_SHIFT) / 250, 1u << 20);
}

/*
 * A link that collects ACKs (aggregation in Wi-Fi, satellites) delivers them in bunches. Within a bunch, the round
 * trips of successive packets fall faster than time passes, down to that of an empty path. Packets that were sent
 * while the ACKs were held count as in flight, although the path holds them no more. The window needs room for
 * them, or the rate stays at a small part of what the path carries.
 */
static void watch_bunches(struct rate *m, const struct rxw_cc_sample *s)
{
	uint64_t rtt = s->rtt / 1000, longest = smaller_of(s->longest / 1000, UINT32_MAX);
	uint64_t since = (s->now - m->peak_at) / 1000, fell;

	if (longest != 0 && longest + 2 * since > m->peak_rtt) {
		m->peak_rtt = (uint32_t)longest;
		m->peak_at = s->now;
		since = 0;
	}
	if (rtt != 0 && rtt + 2 * since < m->peak_rtt &&
	    s->rtt <= m->least_rtt +
			      larger_of(m->least_rtt / 4, (m->peak_rtt * 1000ull - s->rtt) / 8)) {
		fell = smaller_of(m->peak_rtt - rtt, BUNCH_MOST);
		m->bunch.time[0] = (uint32_t)larger_of(m->bunch.time[0], fell);
		m->bunch.seen |= fell * 1000 > m->least_rtt / BUNCH_PART;
	}
	if (!s->round)
		return;
	m->bunch.rounds[0]++;
	m->bunch.hits[0] += m->bunch.seen;
	m->bunch.seen = false;
	if (m->bunch.rounds[0] < BUNCH_ROUNDS)
		return;
	m->bunch.time[1] = m->bunch.time[0];
	m->bunch.rounds[1] = m->bunch.rounds[0];
	m->bunch.hits[1] = m->bunch.hits[0];
	m->bunch.time[0] = m->bunch.rounds[0] = m->bunch.hits[0] = 0;
}

/*
 * For so long ACKs are collected, ns; round trips vary by as much. 0: not for long enough to matter, or in few
 * rounds, as when a queue becomes empty that others have filled.
 */
OUTLINE static uint64_t estimate_bunch_time(const struct rate *m)
{
	uint64_t time = larger_of(m->bunch.time[0], m->bunch.time[1]) * 1000ull;
	unsigned hits = m->bunch.hits[0] + m->bunch.hits[1] + m->bunch.seen;

	if (time <= m->least_rtt / BUNCH_PART ||
	    hits * BUNCH_OFTEN <= m->bunch.rounds[0] + m->bunch.rounds[1])
		return 0;
	return time;
}

/* Packets that are sent meanwhile. */
static uint32_t estimate_bunch(const struct rate *m)
{
	return (uint32_t)(best_rate(m) * (estimate_bunch_time(m) / 1000) / 1000000 >> RATE_SHIFT);
}

/* A flight of what the path holds, times a gain, and of a bunch. */
static uint32_t estimate_flight(const struct rate *m, uint32_t gain)
{
	return (uint32_t)larger_of(estimate_held(m, gain) + estimate_bunch(m), LEAST);
}

/*
 * Losses outside of a probe limit the flight to what the path holds. A limit that stayed would leave a flow at the
 * rate of that time, while others grow. So it follows the model: a probe may exceed it, and the rate which that has
 * found is the measure of the next limit. Without any, a flow with a deep queue would keep it full.
 */
static void follow_model(struct rate *m)
{
	if (m->phase == STARTUP || m->low == NO_LIMIT)
		m->low = NO_LIMIT;
	else if (m->phase == REFILL || m->phase == UP)
		m->low = (uint32_t)larger_of(m->low, estimate_flight(m, LOW_UP));
	else if (m->phase == DOWN)
		m->low = (uint32_t)smaller_of(m->low, estimate_flight(m, LOW_DOWN));
}

OUTLINE static void enter_phase(struct rate *m, enum phase phase, uint64_t now)
{
	assert(phase <= SHRINK);
	m->phase = (uint8_t)phase;
	m->phase_at = now;
	m->rounds = 0;
	follow_model(m);
}

static void begin_down(struct rate *m, uint64_t now)
{
	m->noise = m->noise * 1664525u + 1013904223u + (uint32_t)now;
	m->cruise = CRUISE_TIME + m->noise % CRUISE_MORE;
	/* Rates of the cycle before the last one are forgotten. */
	if (m->best[0] != 0)
		m->best[1] = m->best[0];
	m->best[0] = 0;
	enter_phase(m, DOWN, now);
}

static void rate_init(struct rxw_cc *cc)
{
	struct rate *m = of(cc);

	m->high = m->low = NO_LIMIT;
	/* Neither slow start nor proportional rate reduction of the other controllers applies. */
	cc->ssthresh = UINT32_MAX;
}

/* Too many packets of this round so far, or of `flight` packets if these are more. */
static bool too_many_lost(const struct rate *m, uint32_t flight)
{
	uint64_t whole = larger_of((uint64_t)m->lost + m->delivered, flight);
	bool probing = m->phase != DOWN && m->phase != CRUISE;

	if (!probing && m->lost >= FEW_LOST && (uint64_t)m->lost * FEW_PART > whole)
		return true;
	return m->lost >= LOST_LEAST && (uint64_t)m->lost * LOSS_PART > whole;
}

/* A round trip from this length on shows a queue, if `rtt` is that of the empty path. */
static uint64_t queue_from(const struct rate *m, uint64_t rtt)
{
	return rtt + larger_of(larger_of(rtt / 64, RXW_MS), estimate_bunch_time(m) / 8);
}

/* One packet of five or more of this round was lost: the path carries less than before. */
static bool many_lost(const struct rate *m)
{
	return (uint64_t)m->lost * MANY_PART > (uint64_t)m->lost + m->delivered;
}

/*
 * Too many packets of this round were lost, because of congestion. A burst of losses without a queue is not
 * congestion, unless the round before had one, too, or little arrives at all.
 */
static bool is_congested(const struct rate *m, const struct rxw_cc_sample *s, uint32_t flight)
{
	uint64_t rtt = larger_of(s->rtt, larger_of(m->round_rtt, m->last_round_rtt));

	return too_many_lost(m, flight) && (m->lossy || rtt > queue_from(m, m->least_rtt) ||
					    (m->lost > BURST_MOST && many_lost(m)));
}

/* Losses began at this flight. */
OUTLINE static void limit_flight(struct rate *m, uint32_t high)
{
	assert(m->undo <= UNDO_ROUNDS);
	if (m->undo == 0)
		m->before = m->high;
	m->undo = UNDO_ROUNDS;
	m->high = (uint32_t)larger_of(high, LEAST);
}

/* The flight outside of probes. */
OUTLINE static uint32_t flight_below_limit(const struct rate *m)
{
	uint32_t more = (uint32_t)smaller_of(estimate_bunch(m), m->high);

	return m->high == NO_LIMIT ? NO_LIMIT : more + (m->high - more) / 20 * 17;
}

/* After each bunch the flight is small: then the phases that empty a queue last for a round at least. */
static bool is_over(const struct rate *m)
{
	return estimate_bunch(m) == 0 || m->rounds >= 2;
}

static void take_rtt(struct rate *m, const struct rxw_cc_sample *s)
{
	if (s->rtt == 0)
		return;
	if (m->least_rtt == 0 || s->rtt < m->least_rtt) {
		m->least_rtt = s->rtt;
		m->rtt_at = s->now;
	} else if (s->rtt <= m->least_rtt + m->least_rtt / 32) {
		m->rtt_at = s->now;
	}
	if (m->round_rtt == 0 || s->rtt < m->round_rtt)
		m->round_rtt = s->rtt;
	m->samples++;
}

/* The queue grows, before anything is lost (as RFC 9406 does it). */
static bool delay_grew(const struct rate *m)
{
	uint64_t more = larger_of(DELAY_LEAST, smaller_of(DELAY_MOST, m->last_round_rtt / 8));

	more = larger_of(more, estimate_bunch_time(m));
	return m->samples >= DELAY_MIN_SAMPLES && m->last_round_rtt != 0 &&
	       m->round_rtt >= m->last_round_rtt + more;
}

static void run_startup(struct rxw_cc *cc, const struct rxw_cc_sample *s)
{
	struct rate *m = of(cc);
	/* A burst of losses at the beginning of a round is a small part of the flight. */
	bool lossy = is_congested(m, s, s->flight_then);

	/* The rate of the larger window is not known yet. */
	if (cc->resume == RXW_CC_UNPROVEN && !lossy)
		return;
	if (s->round && !s->limited) {
		if (best_rate(m) >= m->full_at + m->full_at / 4) {
			m->full_at = best_rate(m);
			m->flat = 0;
		} else {
			m->flat++;
		}
	}
	if (m->growth == TRIPLE && s->rtt > m->least_rtt + m->least_rtt / QUICK_DELAY)
		m->growth = DOUBLE;
	if (m->growth == TRIPLE && cc->cwnd > QUICK_BELOW)
		m->growth = LARGE;
	if (lossy) {
		limit_flight(m, (uint32_t)larger_of(estimate_held(m, GAIN(1.0)) + estimate_bunch(m),
						    s->flight_then / 20 * 17));
		if (cc->resume == RXW_CC_UNPROVEN) {
			cc->resume = RXW_CC_RETREATED;
			m->high = (uint32_t)larger_of(cc->proven / 2, LEAST);
		}
	}
	if (m->flat < FULL_ROUNDS && !delay_grew(m) && !lossy &&
	    (s->fair == 0 || best_rate(m) < s->fair))
		return;
	enter_phase(m, DRAIN, s->now);
	m->early = 2;
	m->full_at = 0;
}

/* The rate grew with the last probe. Calls with the same peer yield to it, which proves nothing. */
static bool rate_grew(const struct rate *m, const struct rxw_cc_sample *s)
{
	return m->full_at != 0 && s->fair == 0 && best_rate(m) >= m->full_at + m->full_at / 8;
}

/*
 * The rate grew with the last probe, and no queue did. The effect of a probe is seen a round trip
 * later. After the start, before losses have shown a limit, the round trip may have been longer
 * already: then jitter has ended slow start.
 */
static bool path_is_empty(const struct rate *m, const struct rxw_cc_sample *s)
{
	bool seen = m->phase == UP || m->rounds == 0;
	uint64_t rtt = m->least_rtt;

	if (m->early != 0 && m->high == NO_LIMIT)
		rtt = larger_of(rtt, m->probe_rtt * 1000ull);
	return s->round && seen && rate_grew(m, s) && m->round_rtt != 0 &&
	       m->round_rtt <= queue_from(m, rtt);
}

/*
 * The round trip is longer than jitter makes it: other flows keep a queue, and a rate may have grown because one of
 * them sent less for a while.
 */
static bool others_queue(const struct rate *m)
{
	return m->last_round_rtt > m->least_rtt + larger_of(m->least_rtt / 2, DELAY_LEAST);
}

/*
 * The path has more room: probe again. If that was so three times, or in the first probe, slow
 * start ended too early, as when a busy processor delays ACKs, or the path has changed.
 */
static void probe_again(struct rate *m, uint64_t now)
{
	if (m->early != 0 || ++m->grown >= GROWN_MOST) {
		enter_phase(m, STARTUP, now);
		m->flat = 0;
		m->growth = TRIPLE;
		m->high = NO_LIMIT;
	} else {
		enter_phase(m, UP, now);
	}
	m->full_at = best_rate(m);
}

/* The flight at which losses begin was found. */
static void note_limit(struct rate *m, const struct rxw_cc_sample *s)
{
	assert(m->phase == UP);
	limit_flight(m, (uint32_t)larger_of(s->flight_then,
					    estimate_held(m, GAIN(0.7)) + estimate_bunch(m)));
	m->lost = m->delivered = 0;
	begin_down(m, s->now);
}

static void run_probing(struct rate *m, const struct rxw_cc_sample *s)
{
	uint32_t bdp = estimate_held(m, GAIN(1.0));

	if (path_is_empty(m, s)) {
		probe_again(m, s->now);
		return;
	}
	switch (m->phase) {
	case DOWN:
		if (m->rounds > DOWN_ROUNDS ||
		    (s->flight <= smaller_of(bdp, flight_below_limit(m)) && is_over(m))) {
			/* No limit is known yet, and the last probe did not reach it. */
			if (m->high == NO_LIMIT && rate_grew(m, s) && !others_queue(m))
				m->early = 2;
			enter_phase(m, CRUISE, s->now);
		}
		break;
	case CRUISE:
		if (m->early == 1 && m->rounds > 0)
			m->early = 0;
		if (m->early != 2 && s->now - m->phase_at < m->cruise &&
		    m->rounds < smaller_of(bdp, CRUISE_ROUNDS))
			break;
		m->early -= m->early != 0;
		enter_phase(m, REFILL, s->now);
		break;
	case REFILL:
		if (m->rounds >= 2) {
			enter_phase(m, UP, s->now);
			m->step = 1;
			m->grown = 0;
			m->full_at = best_rate(m);
			m->probe_rtt = (uint32_t)smaller_of(m->last_round_rtt / 1000, UINT32_MAX);
		}
		break;
	case UP:
		if (s->round && m->high != NO_LIMIT && s->flight + estimate_slack(m) >= m->high) {
			m->high += m->step;
			m->step = m->step < 1u << 16 ? m->step * 2 : m->step;
		}
		if (is_congested(m, s, 0))
			note_limit(m, s);
		else if (s->flight >= estimate_held(m, GAIN(1.25)) + estimate_bunch(m) &&
			 (m->rounds >= 2 || (m->early != 0 && m->growth == LARGE &&
					     s->now >= m->phase_at + m->least_rtt)))
			begin_down(m, s->now);
		else if (m->rounds >= 4 && s->limited)
			begin_down(m, s->now);
		break;
	default:
		break;
	}
}

/*
 * Measure the round trip of the empty path. Other flows often do so at the same time, and rates after it say
 * nothing of the probe before it.
 */
static void run_shrinking(struct rxw_cc *cc, const struct rxw_cc_sample *s)
{
	struct rate *m = of(cc);

	if (m->phase != SHRINK) {
		m->saved = (uint32_t)larger_of(m->saved, cc->cwnd);
		enter_phase(m, SHRINK, 0);
		m->full_at = 0;
		m->least_rtt = s->rtt != 0 ? s->rtt : m->least_rtt;
		return;
	}
	if (m->phase_at == 0) {
		if (s->flight <= larger_of(estimate_held(m, gains[SHRINK].window), LEAST)) {
			m->phase_at = s->now;
			m->rounds = 0;
		}
		return;
	}
	if (m->rounds < 1 || s->now < m->phase_at + RTT_PROBE)
		return;
	m->rtt_at = s->now;
	cc->cwnd = (uint32_t)larger_of(cc->cwnd, m->saved);
	m->saved = 0;
	begin_down(m, s->now);
}

/*
 * Flows of one path get equal rates: what a flow has above the mean decays by a quarter in each
 * round trip, and one that is below paces at the mean, but not more than a quarter faster.
 */
static void share_path(struct rate *m, const struct rxw_cc_sample *s)
{
	uint64_t rate = best_rate(m);

	m->fair = 0;
	if (s->fair == 0 || m->least_rtt == 0 || m->phase == STARTUP)
		return;
	if (rate > s->fair + s->fair / 16) {
		if (s->round)
			m->best[0] = m->best[1] = rate - (rate - s->fair) / 4;
	} else if (rate < s->fair - s->fair / 16) {
		m->fair = smaller_of(s->fair, rate + rate / 4);
	}
}

/*
 * Others keep a queue, so that a round trip is long: a window by the empty path's round trip would
 * leave a flow with a short path only a small share.
 */
static uint64_t behind_queue(const struct rate *m)
{
	uint64_t times = m->last_round_rtt * 256 / larger_of(m->least_rtt, 1);

	return (uint64_t)estimate_held(m, GAIN(1.25)) * smaller_of(times, QUEUE_MOST) / 256;
}

/* The flight by losses. A call below the mean of those with the same peer probes no limit of its own. */
static uint32_t limit_of_phase(const struct rate *m)
{
	uint32_t limit = m->phase == UP ? m->high : flight_below_limit(m);

	return (uint32_t)smaller_of(m->fair == 0 ? limit : NO_LIMIT, m->low);
}

static void set_model_window(struct rxw_cc *cc, const struct rxw_cc_sample *s)
{
	struct rate *m = of(cc);
	bool quick = m->phase == STARTUP && m->growth == TRIPLE;
	bool large = m->phase == STARTUP && m->growth == LARGE;
	uint32_t target = estimate_held(m, quick   ? QUICK_WINDOW
					   : large ? LARGE_WINDOW
						   : gains[m->phase].window);

	if (m->phase == CRUISE || m->phase == REFILL || m->phase == UP)
		target = (uint32_t)larger_of(target, behind_queue(m));
	if (m->phase != SHRINK)
		target += (uint32_t)larger_of(estimate_slack(m), estimate_bunch(m));
	if (m->phase != STARTUP && m->phase != SHRINK)
		target = (uint32_t)smaller_of(target,
					      (uint64_t)estimate_slack(m) + limit_of_phase(m));
	target = (uint32_t)larger_of(target, LEAST);
	if (m->phase != STARTUP) {
		if (cc->cwnd < target)
			cc->cwnd = (uint32_t)smaller_of((uint64_t)cc->cwnd + s->newly, target);
		else
			cc->cwnd = target;
	} else if (cc->cwnd < target || best_rate(m) == 0) {
		cc->cwnd = (uint32_t)smaller_of(
			(uint64_t)cc->cwnd + s->newly * (quick ? 2ull : 1ull), UINT32_MAX);
	}
}

/* The mean rate of delivery in this round. Single samples vary with the queue. */
static uint64_t delivered_rate(const struct rate *m)
{
	uint64_t rtt = larger_of(m->round_rtt, m->least_rtt) / 1000; /* us */

	/* 2^32 * 2^10 * 10^6 needs 62 bits. */
	return ((uint64_t)m->delivered << RATE_SHIFT) * 1000000 / larger_of(rtt, 1);
}

/*
 * Losses at a rate that the path carried before. With many of them, it carries less now: the model
 * does not wait until that rate is forgotten. In DOWN, the probes of other flows may have caused them, and those of the
 * probe before are seen in its first rounds: there they do not limit the flight. But calls with the same peer begin
 * together, their rates of slow start add up to more than the path carries, and all stay in DOWN while the queue is full.
 */
static void lower_rate(struct rate *m, const struct rxw_cc_sample *s)
{
	uint64_t rate = best_rate(m), least = rate * 7 / 10;

	if (many_lost(m))
		m->best[0] = m->best[1] = smaller_of(rate, larger_of(m->round_rate, least));
	else if (m->phase == DOWN && s->fair != 0 && !s->limited)
		m->best[0] = m->best[1] = smaller_of(rate, larger_of(delivered_rate(m), least));
	m->low = (uint32_t)smaller_of(m->low, estimate_flight(m, LOW_LOSS));
}

/*
 * A queue has stayed too long (ECN). It drains, and nothing was lost, so the flight is not bounded to
 * less than the path holds, and rates stay. In startup that is not known yet: a burst may have filled
 * the queue.
 */
static void drain_after_marks(struct rxw_cc *cc, const struct rxw_cc_sample *s)
{
	struct rate *m = of(cc);

	if (best_rate(m) == 0 || m->phase == SHRINK || m->phase == DRAIN)
		return;
	m->grown = 0;
	if (m->phase == STARTUP) {
		if (cc->resume == RXW_CC_UNPROVEN)
			cc->resume = RXW_CC_RETREATED;
		enter_phase(m, DRAIN, s->now);
		m->early = 2;
		m->full_at = 0;
	} else {
		m->high = (uint32_t)larger_of(
			larger_of(s->flight_then, estimate_held(m, GAIN(1.2)) + estimate_bunch(m)),
			LEAST);
		enter_phase(m, DOWN, s->now);
	}
}

static void rate_sample(struct rxw_cc *cc, const struct rxw_cc_sample *s)
{
	struct rate *m = of(cc);

	m->lost += s->lost;
	m->delivered += s->newly;
	take_rtt(m, s);
	watch_bunches(m, s);
	m->round_rate = larger_of(m->round_rate, s->rate);
	/* A rate that the application limited is only a lower bound. */
	if (s->rate > 0 && (!s->limited || s->rate > best_rate(m)))
		m->best[0] = larger_of(m->best[0], smaller_of(s->rate, RATE_MOST));
	if (m->phase == STARTUP) {
		run_startup(cc, s);
	} else if (m->phase == DRAIN) {
		if (m->rounds > DRAIN_ROUNDS ||
		    (s->flight <= estimate_held(m, GAIN(1.0)) && is_over(m)))
			begin_down(m, s->now);
	} else {
		run_probing(m, s);
	}
	if (s->congested)
		drain_after_marks(cc, s);
	if (m->least_rtt != 0 && m->phase != STARTUP &&
	    (m->phase == SHRINK || s->now >= m->rtt_at + RTT_VALID))
		run_shrinking(cc, s);
	if (s->round) {
		if ((m->phase == CRUISE || (m->phase == DOWN && m->rounds >= 2)) &&
		    is_congested(m, s, 0))
			lower_rate(m, s);
		m->lossy = too_many_lost(m, 0);
		m->last_round_rtt = m->round_rtt != 0 ? m->round_rtt : m->last_round_rtt;
		m->round_rtt = 0;
		m->samples = m->lost = m->delivered = 0;
		m->round_rate = 0;
		m->undo -= m->undo != 0;
		m->rounds++;
	}
	share_path(m, s);
	set_model_window(cc, s);
	assert(cc->cwnd > 0);
}

static void rate_timeout(struct rxw_cc *cc, uint32_t flight)
{
	(void)flight;
	cc->cwnd = 1;
}

/* Packets that counted as lost were only late. */
static void rate_undo(struct rxw_cc *cc)
{
	struct rate *m = of(cc);

	m->lost = 0;
	if (m->undo != 0)
		m->high = (uint32_t)larger_of(m->high, m->before);
	m->undo = 0;
	m->low = NO_LIMIT;
}

static void rate_resize(struct rxw_cc *cc, uint32_t before, uint32_t now)
{
	struct rate *m = of(cc);
	uint64_t *const rates[] = {&m->best[0], &m->best[1], &m->full_at, &m->fair, &m->round_rate};

	for (unsigned i = 0; i < sizeof(rates) / sizeof(rates[0]); i++)
		*rates[i] = *rates[i] * before / now;
	if (m->high != NO_LIMIT)
		m->high = (uint32_t)larger_of((uint64_t)m->high * before / now, LEAST);
	if (m->low != NO_LIMIT)
		m->low = (uint32_t)larger_of((uint64_t)m->low * before / now, LEAST);
	if (m->before != NO_LIMIT)
		m->before = (uint32_t)((uint64_t)m->before * before / now);
	m->saved = (uint32_t)((uint64_t)m->saved * before / now);
	m->lost = m->delivered = 0;
}

static bool rate_learnt(const struct rxw_cc *cc, struct rxw_cc_path *path)
{
	const struct rate *m = of_const(cc);

	path->rate = best_rate(m);
	path->rtt = m->least_rtt;
	return path->rate != 0 && path->rtt != 0 && m->phase != STARTUP;
}

/*
 * The measurements before the pause may not hold any more. The flow begins again, as one that
 * knows it from an earlier flow.
 */
static void rate_idle(struct rxw_cc *cc)
{
	struct rxw_cc_path path;
	uint32_t noise = of(cc)->noise;

	if (cc->cwnd > RXW_CC_RESTART)
		cc->cwnd = RXW_CC_RESTART;
	if (!rate_learnt(cc, &path))
		return;
	memset(cc->state, 0, sizeof(cc->state));
	rate_init(cc);
	of(cc)->noise = noise;
	rxw_cc_resume(cc, &path);
	cc->alone = true;
}

static uint64_t rate_interval(const struct rxw_cc *cc, uint32_t window, uint64_t srtt)
{
	const struct rate *m = of_const(cc);
	bool quick = m->phase == STARTUP && m->growth == TRIPLE;
	uint64_t rate = best_rate(m), pace;

	if (rate == 0 && cc->resume != RXW_CC_UNPROVEN) /* before the first sample */
		return window > RXW_CC_PACED_ABOVE && srtt >= RXW_MS ? srtt / 2 / window : 0;
	pace = rate * (quick ? QUICK_PACE : gains[m->phase].pace) / 256;
	if (m->phase >= DOWN)
		pace = larger_of(pace, m->fair);
	assert(cc->resume != RXW_CC_UNPROVEN || cc->known.rtt > 0);
	if (cc->resume == RXW_CC_UNPROVEN)
		pace = larger_of(pace,
				 ((uint64_t)cc->jump * RXW_SEC << RATE_SHIFT) / cc->known.rtt);
	/* After an outage the rate may be a packet in seconds. What was lost must not wait for that. */
	return smaller_of((RXW_SEC << RATE_SHIFT) / larger_of(pace, 1), larger_of(srtt, 1));
}

static const char *rate_phase(const struct rxw_cc *cc)
{
	static const char *const names[] = {
		[STARTUP] = "startup", [DRAIN] = "drain", [DOWN] = "down",     [CRUISE] = "cruise",
		[REFILL] = "refill",   [UP] = "up",	  [SHRINK] = "shrink",
	};

	return names[of_const(cc)->phase];
}

const struct rxw_cc_ops rxw_cc_rate = {
	.name = "rate",
	.init = rate_init,
	.timeout = rate_timeout,
	.undo = rate_undo,
	.sample = rate_sample,
	.learnt = rate_learnt,
	.idle = rate_idle,
	.resize = rate_resize,
	.interval = rate_interval,
	.phase = rate_phase,
};
