/* SPDX-License-Identifier: BSD-2-Clause */
/* CoDel (RFC 8289). */
#include <math.h>

#include "codel.h"

#define LARGEST 1500u /* a queue of one packet is no queue (section 4.2) */

/* Whether the sojourn time has been above the target for a whole interval. */
static bool stays_above(struct codel *c, uint64_t target, uint64_t interval, uint64_t now,
			uint64_t sojourn, uint64_t left)
{
	if (sojourn < target || left <= LARGEST) {
		c->first_above = 0;
		return false;
	}
	if (c->first_above == 0) {
		c->first_above = now + interval;
		return false;
	}
	return now >= c->first_above;
}

static uint64_t control_law(uint64_t from, uint64_t interval, uint32_t count)
{
	return from + (uint64_t)((double)interval / sqrt(count));
}

bool codel_hits(struct codel *c, uint64_t target, uint64_t interval, uint64_t now, uint64_t sojourn,
		uint64_t left)
{
	bool above = stays_above(c, target, interval, now, sojourn, left);
	uint32_t recent = c->count - c->last_count;

	if (c->dropping) {
		if (!above)
			c->dropping = false;
		if (!above || now < c->drop_next)
			return false;
		c->drop_next = control_law(c->drop_next, interval, ++c->count);
		return true;
	}
	if (!above)
		return false;
	c->dropping = true;
	/* Soon after the last dropping state, its rate of drops is a good start. */
	c->count = recent > 1 && now < c->drop_next + 16 * interval ? recent : 1;
	c->last_count = c->count;
	c->drop_next = control_law(now, interval, c->count);
	return true;
}
