/* SPDX-License-Identifier: BSD-2-Clause */
/* NewReno: slow start, then one packet per round trip; halved on loss (RFC 5681, in packets). */

#include "base/cc.h"

#include <assert.h>

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
