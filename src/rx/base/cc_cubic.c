/* SPDX-License-Identifier: BSD-2-Clause */
/* CUBIC: the window is a cubic function of the time since the last loss (RFC 9438, in packets). */

#include "base/cc.h"

#include "base/rtt.h"

/*
 * Fixed-point numbers: times in 1/1024 s, so that the third power has 30 fractional bits; windows
 * with 20 fractional bits while they grow ("fine"), 10 where they are only stored ("coarse").
 * Within the limits below each product fits into 64 bits.
 */
#define FINE	   20u
#define COARSE	   10u
#define WINDOW_MAX (1u << 20) /* packets */
#define TIME_MAX   (1 << 20)  /* at 1,024 s from the plateau the window exceeds every bound */
#define STAGE_MAX  4000000000000ull /* ns */

/* C = 0.4 packets/s^3; a loss leaves beta = 0.7; alpha = 3 (1 - beta) / (1 + beta) = 9/17. */
#define C_NUM	  2u
#define C_DEN	  5u
#define BETA_NUM  7u
#define BETA_DEN  10u
/* Of marked packets, in congestion avoidance (RFC 8511). */
#define ECN_NUM	  17u
#define ECN_DEN	  20u
#define ALPHA_NUM 9u
#define ALPHA_DEN 17u

/* State that a reaction changes and undo restores. */
struct plan {
	uint64_t began;	  /* start of this stage of congestion avoidance, ns; 0 = at the next ACK */
	uint64_t reno;	  /* W_est, fine; NewReno's window of the same mean, valid with `began` */
	uint32_t plateau; /* W_max, coarse; 0 = the window at the start of the stage */
	uint32_t k;	  /* from `began` to the plateau, 1/1024 s; valid with `began` */
};

/*
 * HyStart++ (RFC 9406): slow start becomes conservative when the shortest round trip of a round has
 * grown by an eighth, and ends after CSS_ROUNDS rounds of that, unless the delay falls again.
 */
#define DELAY_LEAST  (4 * RXW_MS)
#define DELAY_MOST   (16 * RXW_MS)
#define SAMPLES	     8u
#define CSS_DIVISOR  4u
#define CSS_ROUNDS   5u
struct hystart {
	uint64_t least, last;	/* ns, of this round and of the one before; 0 = none */
	uint64_t baseline;	/* conservative: `least` when that began; 0 = it is not */
	uint32_t samples, part; /* in this round; packets acknowledged that did not count yet */
	uint32_t rounds;	/* conservative ones that have ended */
	bool over;		/* only the first slow start ends by the delay */
};

struct cubic {
	struct plan plan, kept;
	uint32_t prior, kept_prior; /* cwnd_prior, coarse */
	uint64_t seen;		    /* latest ACK */
	struct hystart start;
};

_Static_assert(sizeof(struct cubic) <= sizeof(((struct rxw_cc *)0)->state), "state of CUBIC");

static struct cubic *of(struct rxw_cc *cc)
{
	return (struct cubic *)cc->state;
}

/* The window including the fraction in `acc`, fine. */
static uint64_t window_of(const struct rxw_cc *cc)
{
	uint32_t packets = cc->cwnd < WINDOW_MAX ? cc->cwnd : WINDOW_MAX;

	return ((uint64_t)packets << FINE) + cc->acc;
}

static void set_window(struct rxw_cc *cc, uint64_t window)
{
	cc->cwnd = (uint32_t)(window >> FINE);
	cc->acc = (uint32_t)(window & ((1u << FINE) - 1));
}

/* Integer part of the cube root. */
static uint32_t third_root(uint64_t x)
{
	uint32_t root = 0;

	for (int bit = 20; bit >= 0; bit--) {
		uint64_t next = root | 1u << bit;

		if (next * next * next <= x)
			root = (uint32_t)next;
	}
	return root;
}

/* W_cubic at a time (1/1024 s) of the stage, fine: C (t - K)^3 + W_max. */
static uint64_t cubic_at(const struct plan *plan, uint64_t time)
{
	int64_t d = (int64_t)time - plan->k;
	uint64_t plateau = (uint64_t)plan->plateau << (FINE - COARSE), away;

	if (d > TIME_MAX)
		d = TIME_MAX;
	if (d < -TIME_MAX)
		d = -TIME_MAX;
	away = (uint64_t)(d < 0 ? -d : d);
	away = away * away * away * C_NUM / C_DEN >> (3 * 10 - FINE);
	if (d < 0)
		return plateau > away ? plateau - away : 0;
	return plateau + away;
}

static uint64_t in_time_units(uint64_t ns)
{
	return (ns < STAGE_MAX ? ns : STAGE_MAX) * 1024 / 1000000000;
}

static void begin_stage(struct rxw_cc *cc, uint64_t now)
{
	struct plan *plan = &of(cc)->plan;
	uint32_t start = (uint32_t)(window_of(cc) >> (FINE - COARSE));

	plan->began = now ? now : 1;
	plan->reno = window_of(cc);
	if (start >= plan->plateau) {
		plan->plateau = start;
		plan->k = 0;
	} else {
		plan->k = third_root(((uint64_t)(plan->plateau - start) << (3 * 10 - COARSE)) *
				     C_DEN / C_NUM);
	}
}

static void avoidance(struct rxw_cc *cc, uint32_t acked, uint64_t srtt, uint64_t now)
{
	struct cubic *c = of(cc);
	struct plan *plan = &c->plan;
	uint64_t window = window_of(cc), most = window + ((uint64_t)acked << FINE), time, target,
		 step;
	bool caught_up;

	if (!plan->began)
		begin_stage(cc, now);
	caught_up = plan->reno >> (FINE - COARSE) >= c->prior;
	step = ((uint64_t)acked << FINE) / cc->cwnd;
	plan->reno += caught_up ? step : step * ALPHA_NUM / ALPHA_DEN;
	if (plan->reno > (uint64_t)WINDOW_MAX << FINE)
		plan->reno = (uint64_t)WINDOW_MAX << FINE;
	time = now > plan->began ? now - plan->began : 0;
	time = time < STAGE_MAX ? time : STAGE_MAX;
	if (cubic_at(plan, in_time_units(time)) < plan->reno) {
		if (window < plan->reno)
			window = plan->reno;
	} else {
		target =
			cubic_at(plan, in_time_units(time + (srtt < STAGE_MAX ? srtt : STAGE_MAX)));
		if (target > window + window / 2)
			target = window + window / 2;
		if (target > window) {
			step = (target - window) * acked / cc->cwnd;
			window += step < target - window ? step : target - window;
		}
	}
	/*
	 * The window may lag behind W_cubic after a long gap between ACKs, and W_est may pass both:
	 * the step to W_est is then not faster than slow start.
	 */
	if (window > most)
		window = most;
	if (window > (uint64_t)WINDOW_MAX << FINE)
		window = (uint64_t)WINDOW_MAX << FINE;
	if (window >> FINE >= cc->max)
		window = (uint64_t)cc->max << FINE;
	set_window(cc, window);
}

static void cubic_rtt(struct rxw_cc *cc, uint64_t rtt, bool round)
{
	struct hystart *h = &of(cc)->start;
	uint64_t more = h->last / 8;

	if (h->over || cc->cwnd >= cc->ssthresh)
		return;
	if (rtt != 0) {
		h->least = h->least == 0 || rtt < h->least ? rtt : h->least;
		h->samples++;
	}
	more = more < DELAY_LEAST ? DELAY_LEAST : more < DELAY_MOST ? more : DELAY_MOST;
	if (h->samples >= SAMPLES) {
		if (h->baseline == 0 && h->last != 0 && h->least >= h->last + more) {
			h->baseline = h->least;
			h->rounds = 0;
		} else if (h->baseline != 0 && h->least < h->baseline) {
			h->baseline = 0;
		}
	}
	if (!round)
		return;
	if (h->baseline != 0 && ++h->rounds >= CSS_ROUNDS) {
		cc->ssthresh = cc->cwnd;
		h->over = true;
	}
	h->last = h->least != 0 ? h->least : h->last;
	h->least = 0;
	h->samples = 0;
}

/* Packets by which slow start grows for `acked` ones. */
static uint32_t conservative(struct hystart *h, uint32_t acked)
{
	uint32_t counted;

	if (h->baseline == 0 || h->over)
		return acked;
	h->part += acked % (1u << 16);
	counted = h->part / CSS_DIVISOR;
	h->part %= CSS_DIVISOR;
	return counted;
}

static void cubic_acked(struct rxw_cc *cc, uint32_t acked, bool limited, uint64_t srtt,
			uint64_t now)
{
	struct cubic *c = of(cc);
	uint64_t gap = c->seen && now > c->seen ? now - c->seen : 0;

	c->seen = now;
	if (!limited) {
		/*
		 * The window was not full, so there is no evidence for a larger one: do not count
		 * the time.
		 */
		if (c->plan.began)
			c->plan.began += gap;
		return;
	}
	if (cc->cwnd < cc->ssthresh) {
		cc->acc = 0;
		acked = conservative(&c->start, acked);
	}
	acked = rxw_cc_slow_start(cc, acked);
	if (acked && cc->cwnd < cc->max && cc->cwnd < WINDOW_MAX)
		avoidance(cc, acked < WINDOW_MAX ? acked : WINDOW_MAX, srtt, now);
}

/* Common part of all reactions: store the window, set the new threshold, num/den of the flight. */
static void reduce(struct rxw_cc *cc, uint32_t flight, uint32_t num, uint32_t den)
{
	struct cubic *c = of(cc);
	uint64_t left = (uint64_t)flight * num / den;

	c->prior = (uint32_t)(window_of(cc) >> (FINE - COARSE));
	c->plan.began = 0;
	c->start.over = true;
	cc->ssthresh = left > 2 ? (uint32_t)left : 2;
	cc->acc = 0;
}

/* Congestion: set the plateau. */
static void set_plateau(struct rxw_cc *cc)
{
	struct plan *plan = &of(cc)->plan;
	uint32_t window = (uint32_t)(window_of(cc) >> (FINE - COARSE));

	/*
	 * A loss below the last plateau means new competing flows: yield bandwidth (fast
	 * convergence).
	 */
	if (window < plan->plateau)
		plan->plateau = (uint32_t)((uint64_t)window * (BETA_DEN + BETA_NUM) /
					   (2 * BETA_DEN));
	else
		plan->plateau = window;
}

static void cubic_lost(struct rxw_cc *cc, uint32_t flight, uint64_t now)
{
	(void)now;
	set_plateau(cc);
	reduce(cc, flight, BETA_NUM, BETA_DEN);
	cc->cwnd = cc->ssthresh;
}

/* The overshoot of slow start is larger: it counts as a loss. */
static void cubic_marked(struct rxw_cc *cc, uint32_t flight)
{
	uint32_t cwnd = cc->cwnd;

	set_plateau(cc);
	if (cc->cwnd < cc->ssthresh)
		reduce(cc, flight, BETA_NUM, BETA_DEN);
	else
		reduce(cc, flight, ECN_NUM, ECN_DEN);
	cc->cwnd = cwnd < cc->ssthresh ? cwnd : cc->ssthresh;
}

static void cubic_timeout(struct rxw_cc *cc, uint32_t flight, uint64_t now)
{
	(void)now;
	of(cc)->plan.plateau = 0;
	reduce(cc, flight, BETA_NUM, BETA_DEN);
	cc->cwnd = 1;
}

static void cubic_keep(struct rxw_cc *cc)
{
	struct cubic *c = of(cc);

	c->kept = c->plan;
	c->kept_prior = c->prior;
}

static void cubic_undo(struct rxw_cc *cc)
{
	struct cubic *c = of(cc);

	c->plan = c->kept;
	c->prior = c->kept_prior;
	cc->acc = 0;
}

static void cubic_idle(struct rxw_cc *cc)
{
	of(cc)->plan.began = 0;
}

static void cubic_resize(struct rxw_cc *cc, uint32_t before, uint32_t now)
{
	struct cubic *c = of(cc);
	uint32_t *const windows[] = {&c->plan.plateau, &c->kept.plateau, &c->prior, &c->kept_prior};

	for (unsigned i = 0; i < sizeof(windows) / sizeof(windows[0]); i++)
		*windows[i] = (uint32_t)((uint64_t)*windows[i] * before / now);
	c->plan.began = c->kept.began = 0;
	cc->acc = 0;
}

const struct rxw_cc_ops rxw_cc_cubic = {
	.name = "cubic",
	.acked = cubic_acked,
	.rtt = cubic_rtt,
	.lost = cubic_lost,
	.marked = cubic_marked,
	.timeout = cubic_timeout,
	.keep = cubic_keep,
	.undo = cubic_undo,
	.idle = cubic_idle,
	.resize = cubic_resize,
	.interval = rxw_cc_spread,
};
