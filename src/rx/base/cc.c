/* SPDX-License-Identifier: BSD-2-Clause */
/* Congestion control (rx-protocol 4.4 items 4, 5): the common part of the controllers, and NewReno. */

#include "base/assert.h"
#include "base/cc.h"

#include <string.h>

#include "base/rtt.h"

#define SHORT_RTT  1000000u /* ns; below it pacing would cost more than bursts do */
#define RTT_MOST   100000000u /* us; products with a rate fit into 64 bits */
#define IDLE_MIN 4u /* idleness does not shrink the window below the initial one */
/* A window that an earlier call has proven leaves in this part of a round trip. */
#define WARM_PART  8u

static void keep_for_undo(struct rxw_cc *cc)
{
	cc->undo_cwnd = cc->cwnd;
	cc->undo_ssthresh = cc->ssthresh;
}

static void bound_window(struct rxw_cc *cc)
{
	assert(cc->max > 0);
	if (cc->cwnd > cc->max)
		cc->cwnd = cc->max;
	if (cc->cwnd < 1)
		cc->cwnd = 1;
}

void rxw_cc_init(struct rxw_cc *cc, const struct rxw_cc_ops *ops, uint32_t initial,
		 uint32_t ssthresh, uint32_t max)
{
	assert(ops->timeout && (ops->sample || (ops->acked && ops->lost && ops->marked)));
	memset(cc, 0, sizeof(*cc));
	cc->ops = ops;
	cc->max = max ? max : 1;
	cc->cwnd = initial;
	cc->ssthresh = ssthresh ? ssthresh : cc->max;
	bound_window(cc);
	if (ops->init)
		ops->init(cc);
}

void rxw_cc_warm(struct rxw_cc *cc, uint32_t window)
{
	if (window <= cc->cwnd)
		return;
	cc->cwnd = window;
	bound_window(cc);
	cc->warm = cc->cwnd;
}

void rxw_cc_resume(struct rxw_cc *cc, const struct rxw_cc_path *known)
{
	cc->known = *known;
	cc->alone = false;
	cc->resume = RXW_CC_EXPECTING;
}

void rxw_cc_confirm(struct rxw_cc *cc, uint64_t rtt, uint32_t flows)
{
	uint64_t us = cc->known.rtt / 1000, jump;

	if (cc->resume != RXW_CC_EXPECTING)
		return;
	cc->resume = RXW_CC_NORMAL;
	/* It is another path, or a crowded one. */
	if (rtt < cc->known.rtt / 2 || rtt / 2 > cc->known.rtt)
		return;
	jump = (cc->known.rate >> RXW_CC_RATE_SHIFT) * (us < RTT_MOST ? us : RTT_MOST) / 1000000;
	jump = jump / 2 / (flows && !cc->alone ? flows : 1);
	if (jump > cc->max)
		jump = cc->max;
	if (jump <= cc->cwnd)
		return;
	cc->cwnd = cc->jump = (uint32_t)jump;
	cc->proven = 0;
	cc->resume = RXW_CC_UNPROVEN;
}

void rxw_cc_prove(struct rxw_cc *cc, uint32_t acked)
{
	if (cc->resume != RXW_CC_UNPROVEN)
		return;
	assert(cc->jump > 0);
	cc->proven += acked;
	if (cc->proven >= cc->jump)
		cc->resume = RXW_CC_NORMAL;
}

/* The larger window was too large: half of what the path has proven is left. */
static void retreat_from_jump(struct rxw_cc *cc)
{
	if (cc->resume != RXW_CC_UNPROVEN)
		return;
	cc->resume = RXW_CC_RETREATED;
	if (cc->ops->sample)
		return;
	cc->ssthresh = cc->proven / 2 > IDLE_MIN ? cc->proven / 2 : IDLE_MIN;
	if (cc->cwnd > cc->ssthresh)
		cc->cwnd = cc->ssthresh;
}

bool rxw_cc_learnt(const struct rxw_cc *cc, uint64_t rtt_min, uint64_t srtt,
		   struct rxw_cc_path *path)
{
	if (cc->ops->learnt)
		return cc->ops->learnt(cc, path);
	if (rtt_min == 0 || srtt == 0)
		return false;
	path->rtt = rtt_min;
	path->rate = ((uint64_t)cc->cwnd * RXW_SEC << RXW_CC_RATE_SHIFT) / srtt;
	return true;
}

void rxw_cc_acked(struct rxw_cc *cc, uint32_t acked, bool limited)
{
	if (!acked || !cc->ops->acked)
		return;
	cc->ops->acked(cc, acked, limited);
	bound_window(cc);
}

void rxw_cc_sample(struct rxw_cc *cc, const struct rxw_cc_sample *s)
{
	cc->ops->sample(cc, s);
	bound_window(cc);
}

void rxw_cc_lost(struct rxw_cc *cc, uint32_t flight)
{
	if (!cc->ops->lost)
		return;
	keep_for_undo(cc);
	cc->ops->lost(cc, flight);
	retreat_from_jump(cc);
	bound_window(cc);
}

void rxw_cc_marked(struct rxw_cc *cc, uint32_t flight)
{
	/* The undo of an earlier reaction would undo this one. */
	rxw_cc_forget_undo(cc);
	if (cc->ops->marked)
		cc->ops->marked(cc, flight);
	retreat_from_jump(cc);
	bound_window(cc);
}

void rxw_cc_timeout(struct rxw_cc *cc, uint32_t flight)
{
	/* Of several successive timeouts, only the first saw the original window. */
	if (cc->cwnd > 1 || !cc->undo_cwnd)
		keep_for_undo(cc);
	cc->ops->timeout(cc, flight);
	retreat_from_jump(cc);
	bound_window(cc);
}

void rxw_cc_undo(struct rxw_cc *cc)
{
	if (!cc->undo_cwnd && !cc->ops->sample)
		return;
	if (cc->cwnd < cc->undo_cwnd)
		cc->cwnd = cc->undo_cwnd;
	if (cc->ssthresh < cc->undo_ssthresh)
		cc->ssthresh = cc->undo_ssthresh;
	if (cc->ops->undo)
		cc->ops->undo(cc);
	cc->undo_cwnd = 0;
	cc->undo_ssthresh = 0;
	bound_window(cc);
}

void rxw_cc_forget_undo(struct rxw_cc *cc)
{
	cc->undo_cwnd = 0;
	cc->undo_ssthresh = 0;
}

static uint32_t resize_window(const struct rxw_cc *cc, uint32_t packets, uint32_t before,
			      uint32_t now)
{
	uint64_t size = (uint64_t)packets * before / now;

	if (packets >= cc->max || packets == 0) /* unlimited; none */
		return packets;
	return size > cc->max ? cc->max : size > 1 ? (uint32_t)size : 1;
}

void rxw_cc_resize(struct rxw_cc *cc, uint32_t before, uint32_t now)
{
	assert(before > 0);
	assert(now > 0);
	cc->cwnd = cc->cwnd >= cc->max ? (uint32_t)((uint64_t)cc->cwnd * before / now)
				       : resize_window(cc, cc->cwnd, before, now);
	cc->ssthresh = resize_window(cc, cc->ssthresh, before, now);
	cc->undo_cwnd = resize_window(cc, cc->undo_cwnd, before, now);
	cc->undo_ssthresh = resize_window(cc, cc->undo_ssthresh, before, now);
	cc->jump = resize_window(cc, cc->jump, before, now);
	cc->proven = (uint32_t)((uint64_t)cc->proven * before / now);
	cc->known.rate = cc->known.rate * before / now;
	if (cc->ops->resize)
		cc->ops->resize(cc, before, now);
	bound_window(cc);
}

void rxw_cc_idle(struct rxw_cc *cc, uint64_t idle, uint64_t rto)
{
	uint64_t periods = rto ? idle / rto : 0;
	uint32_t before = cc->cwnd;

	if (periods && cc->ops->idle)
		cc->ops->idle(cc);
	if (!periods || cc->cwnd <= IDLE_MIN || cc->ops->sample)
		return;
	while (periods-- && cc->cwnd > IDLE_MIN)
		cc->cwnd = cc->cwnd / 2 > IDLE_MIN ? cc->cwnd / 2 : IDLE_MIN;
	/* Slow start may quickly return to the window that the path carried before. */
	if (cc->ssthresh < before - before / 4)
		cc->ssthresh = before - before / 4;
	cc->acc = 0;
	rxw_cc_forget_undo(cc);
}

/* Of the first flight of a call that begins with a window of an earlier one. */
static uint64_t warm_interval(const struct rxw_cc *cc, uint32_t window, uint64_t srtt)
{
	uint32_t packets = window < cc->warm ? window : cc->warm;

	if (packets <= RXW_CC_PACED_ABOVE || srtt < SHORT_RTT)
		return 0;
	return srtt / WARM_PART / packets;
}

uint64_t rxw_cc_interval(const struct rxw_cc *cc, uint32_t window, uint64_t srtt)
{
	if (cc->warm && cc->ops->interval)
		return warm_interval(cc, window, srtt);
	return cc->ops->interval ? cc->ops->interval(cc, window, srtt) : 0;
}

const char *rxw_cc_phase(const struct rxw_cc *cc)
{
	if (cc->ops->phase)
		return cc->ops->phase(cc);
	return cc->cwnd < cc->ssthresh ? "slow-start" : "avoidance";
}

/* For controllers: the smaller window over four fifths of a round trip of 1 ms or more. */
static uint64_t rxw_cc_spread(const struct rxw_cc *cc, uint32_t window, uint64_t srtt)
{
	if (window > cc->cwnd)
		window = cc->cwnd;
	if (window <= RXW_CC_PACED_ABOVE || srtt < SHORT_RTT)
		return 0;
	return (srtt < UINT64_MAX / 4 ? srtt * 4 / 5 : srtt / 5 * 4) / window;
}

/*
 * For controllers: slow start up to ssthresh. Returns those of the `acked` packets that exceed it.
 */
static uint32_t rxw_cc_slow_start(struct rxw_cc *cc, uint32_t acked)
{
	uint32_t room, step;

	if (cc->cwnd >= cc->ssthresh)
		return acked;
	room = cc->ssthresh - cc->cwnd;
	step = acked < room ? acked : room;
	cc->cwnd += step;
	return acked - step;
}

/* --- NewReno: slow start, then one packet per round trip; halved on loss (RFC 5681, in packets) --- */

static void reno_acked(struct rxw_cc *cc, uint32_t acked, bool limited)
{
	/* The window was not full, so there is no evidence for a larger one. */
	if (!limited)
		return;
	acked = rxw_cc_slow_start(cc, acked);
	assert(cc->cwnd > 0);
	if (cc->cwnd >= cc->max)
		return;
	for (cc->acc += acked; cc->acc >= cc->cwnd && cc->cwnd < cc->max;) {
		cc->acc -= cc->cwnd;
		cc->cwnd++;
	}
}

static void reno_halve(struct rxw_cc *cc, uint32_t flight)
{
	cc->ssthresh = flight / 2 > 2 ? flight / 2 : 2;
	cc->acc = 0;
}

static void reno_lost(struct rxw_cc *cc, uint32_t flight)
{
	reno_halve(cc, flight);
	cc->cwnd = cc->ssthresh;
}

/* Eight tenths are left in congestion avoidance (RFC 8511); the overshoot of slow start is larger. */
static void reno_marked(struct rxw_cc *cc, uint32_t flight)
{
	uint32_t left = cc->cwnd < cc->ssthresh ? flight / 2 : flight / 5 * 4 + flight % 5 * 4 / 5;

	cc->ssthresh = left > 2 ? left : 2;
	cc->cwnd = cc->cwnd < cc->ssthresh ? cc->cwnd : cc->ssthresh;
	cc->acc = 0;
}

static void reno_timeout(struct rxw_cc *cc, uint32_t flight)
{
	reno_halve(cc, flight);
	cc->cwnd = 1;
}

const struct rxw_cc_ops rxw_cc_reno = {
	.name = "reno",
	.acked = reno_acked,
	.lost = reno_lost,
	.timeout = reno_timeout,
	.marked = reno_marked,
	.interval = rxw_cc_spread,
};
