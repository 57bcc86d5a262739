/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Round-trip times: smoothed estimate, variance and retransmission timeout. Loss detection by time (RACK) and by an
 * adaptive packet threshold; proportional rate reduction.
 */
#include <string.h>

#include "base/rtt.h"

#define RTO_INITIAL RXW_SEC
#define RTO_MIN     (200 * RXW_MS)
#define RTO_MAX     (20 * RXW_SEC)
#define SAMPLE_MAX  (60 * RXW_SEC)
/* The round trip that corresponds to an RTO of 1 s, for timers before the first sample. */
#define RTT_INITIAL (333 * RXW_MS)

static uint64_t max64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

void rxw_rtt_init(struct rxw_rtt *r)
{
	memset(r, 0, sizeof(*r));
}

void rxw_rtt_seed(struct rxw_rtt *r, uint64_t srtt, uint64_t rttvar)
{
	rxw_rtt_init(r);
	if (!srtt)
		return;
	r->srtt = srtt < SAMPLE_MAX ? srtt : SAMPLE_MAX;
	r->rttvar = rttvar < SAMPLE_MAX ? rttvar : SAMPLE_MAX;
	r->latest = r->srtt;
	r->valid = true;
}

bool rxw_rtt_plausible(struct rxw_rtt *r, uint64_t sample, uint64_t now)
{
	if (r->min < RXW_LONG_RTT || sample >= r->min / 2) {
		r->short_at = 0;
		return true;
	}
	if (r->short_at == 0)
		r->short_at = now;
	return now - r->short_at >= r->min;
}

void rxw_rtt_sample(struct rxw_rtt *r, uint64_t sample)
{
	uint64_t off;

	/* The clock jumped; as a sample this would slow calls down for minutes. */
	if (sample > SAMPLE_MAX)
		return;
	if (!sample)
		sample = 1;
	r->latest = sample;
	if (!r->min || sample < r->min)
		r->min = sample;
	if (!r->valid) {
		r->srtt = sample;
		r->rttvar = sample / 2;
		r->valid = true;
		return;
	}
	off = r->srtt > sample ? r->srtt - sample : sample - r->srtt;
	r->rttvar = (3 * r->rttvar + off) / 4;
	r->srtt = max64((7 * r->srtt + sample) / 8, 1);
}

uint64_t rxw_rtt_rto(const struct rxw_rtt *r, uint64_t peer_ack_delay, unsigned backoff)
{
	uint64_t rto = RTO_INITIAL;

	if (r->valid)
		rto = max64(r->srtt + 4 * r->rttvar, RTO_MIN);
	if (peer_ack_delay > RTO_MAX)
		return RTO_MAX;
	rto += peer_ack_delay;
	while (backoff-- && rto < RTO_MAX)
		rto *= 2;
	return rto < RTO_MAX ? rto : RTO_MAX;
}

uint64_t rxw_rtt_loss_delay(const struct rxw_rtt *r)
{
	uint64_t rtt = r->valid ? max64(r->srtt, r->latest) : RTT_INITIAL;

	return max64(rtt + rtt / 8, RXW_MS);
}

uint64_t rxw_rtt_probe_delay(const struct rxw_rtt *r, uint64_t peer_ack_delay)
{
	uint64_t rtt = r->valid ? r->srtt : RTT_INITIAL;

	return max64(2 * rtt, 10 * RXW_MS) + peer_ack_delay;
}

#define THRESHOLD_MIN 3u
#define THRESHOLD_MAX 255u
#define LATENESS_MIN  1u
#define LATENESS_MAX  128u
/* Upper limit of the reordering delay: a tail loss probe would be sent then, too. */
#define PATIENCE_RTTS 3u
#define PATIENCE_ANY  (10 * RXW_MS)
#define DECAY_ROUNDS  16u
/*
 * No loss can belong to a recovery that ended this long ago; forget it before orders wrap around.
 */
#define ORDER_FORGET (1u << 30)

/* The distance of `a` behind `b`; <= 0 if it is not later. Orders wrap around. */
static int32_t behind(uint32_t a, uint32_t b)
{
	return (int32_t)(b - a);
}

void rxw_recovery_init(struct rxw_recovery *r)
{
	memset(r, 0, sizeof(*r));
	r->threshold = THRESHOLD_MIN;
	r->lateness = LATENESS_MIN;
}

/* Age at which a transmission that a later one has overtaken counts as lost. */
static uint64_t loss_patience(uint32_t lateness, const struct rxw_rtt *rtt)
{
	uint64_t least = rxw_rtt_loss_delay(rtt); /* 9/8 of a round trip */
	uint64_t delay = least * (8 + lateness) / 9, most = least * 8 * PATIENCE_RTTS / 9;

	if (most < PATIENCE_ANY)
		most = PATIENCE_ANY;
	return delay < most ? delay : most;
}

static uint64_t decay_period(uint64_t srtt)
{
	return DECAY_ROUNDS * (srtt ? srtt : RXW_MS);
}

void rxw_recovery_acked(struct rxw_recovery *r, uint32_t order, uint64_t sent_at)
{
	if (r->highest_order && behind(r->highest_order, order) <= 0)
		return;
	/* Twice in ascending order: assume that the network does not reorder. */
	if (r->highest_order)
		r->ordered = true;
	r->highest_order = order;
	r->highest_sent_at = sent_at;
	if (r->recovery_end && behind(r->recovery_end, order) > (int32_t)ORDER_FORGET)
		r->recovery_end = 0;
}

bool rxw_recovery_is_lost(const struct rxw_recovery *r, const struct rxw_rtt *rtt, uint32_t order,
			  uint64_t sent_at, uint64_t now, uint64_t *at)
{
	int32_t distance;
	uint64_t due;

	if (!r->highest_order)
		return false;
	distance = behind(order, r->highest_order);
	if (distance <= 0)
		return false;
	if (r->ordered && (uint32_t)distance >= r->threshold)
		return true;
	due = sent_at + loss_patience(r->lateness, rtt);
	if (now >= due)
		return true;
	if (at && (!*at || due < *at))
		*at = due;
	return false;
}

void rxw_recovery_reordered(struct rxw_recovery *r, uint32_t distance, uint64_t now, uint64_t srtt)
{
	uint32_t twice = r->threshold * 2;

	r->threshold_decay_at = now + decay_period(srtt);
	if (distance < r->threshold) {
		/* Detected by time, not by count. */
		if (distance && r->lateness < LATENESS_MAX)
			r->lateness *= 2;
		return;
	}
	if (distance >= THRESHOLD_MAX)
		distance = THRESHOLD_MAX - 1;
	r->threshold = twice > distance + 1 ? twice : distance + 1;
	if (r->threshold > THRESHOLD_MAX)
		r->threshold = THRESHOLD_MAX;
}

void rxw_recovery_late(struct rxw_recovery *r, const struct rxw_rtt *rtt, uint32_t distance,
		       uint64_t sent_at, uint64_t now)
{
	bool count = r->threshold > THRESHOLD_MIN && distance >= r->threshold / 2;
	bool time = r->lateness > LATENESS_MIN && now > sent_at &&
		    now - sent_at >= loss_patience(r->lateness / 2, rtt);

	if (count || time)
		r->threshold_decay_at = now + decay_period(rtt->srtt);
}

void rxw_recovery_decay(struct rxw_recovery *r, uint64_t now, uint64_t srtt)
{
	uint64_t period = decay_period(srtt);

	if ((r->threshold <= THRESHOLD_MIN && r->lateness <= LATENESS_MIN) ||
	    now < r->threshold_decay_at)
		return;
	for (uint64_t n = (now - r->threshold_decay_at) / period + 1;
	     n && (r->threshold > THRESHOLD_MIN || r->lateness > LATENESS_MIN); n--) {
		r->threshold = r->threshold / 2 > THRESHOLD_MIN ? r->threshold / 2 : THRESHOLD_MIN;
		r->lateness = r->lateness / 2 > LATENESS_MIN ? r->lateness / 2 : LATENESS_MIN;
	}
	r->threshold_decay_at = now + period;
}

uint32_t rxw_recovery_learned(const struct rxw_recovery *r)
{
	if (r->threshold == THRESHOLD_MIN && r->lateness == LATENESS_MIN)
		return 0;
	return r->lateness << 16 | r->threshold;
}

void rxw_recovery_seed(struct rxw_recovery *r, uint32_t learned, uint64_t now, uint64_t srtt)
{
	uint32_t threshold = learned & 0xffff, lateness = learned >> 16;

	if (!learned)
		return;
	if (threshold > r->threshold)
		r->threshold = threshold < THRESHOLD_MAX ? threshold : THRESHOLD_MAX;
	if (lateness > r->lateness)
		r->lateness = lateness < LATENESS_MAX ? lateness : LATENESS_MAX;
	r->threshold_decay_at = now + decay_period(srtt);
}

bool rxw_recovery_enter(struct rxw_recovery *r, uint32_t lost_order, uint32_t order_now,
			uint32_t flight)
{
	if (r->recovery_end && behind(r->recovery_end, lost_order) <= 0)
		return false;
	r->recovery_end = order_now;
	r->prr_delivered = 0;
	r->prr_out = 0;
	r->prr_flight = flight;
	return true;
}

bool rxw_recovery_active(const struct rxw_recovery *r)
{
	return r->recovery_end && behind(r->recovery_end, r->highest_order) <= 0;
}

void rxw_recovery_delivered(struct rxw_recovery *r, uint32_t packets)
{
	r->prr_delivered += packets;
}

void rxw_recovery_sent(struct rxw_recovery *r, uint32_t packets)
{
	r->prr_out += packets;
}

uint32_t rxw_recovery_prr(const struct rxw_recovery *r, uint32_t flight, uint32_t ssthresh)
{
	uint64_t allowed;

	if (flight > ssthresh) {
		/* For each packet delivered, send ssthresh / (flight at the loss) packets. */
		uint64_t of = r->prr_flight ? r->prr_flight : 1;

		allowed = ((uint64_t)r->prr_delivered * ssthresh + of - 1) / of;
		allowed = allowed > r->prr_out ? allowed - r->prr_out : 0;
	} else {
		/* Below the target: grow towards it by one packet more than was delivered. */
		allowed = r->prr_delivered > r->prr_out ? r->prr_delivered - r->prr_out : 0;
		allowed++;
		if (allowed > ssthresh - flight)
			allowed = ssthresh - flight;
	}
	/* The first retransmission is sent regardless of the flight. */
	if (!allowed && !r->prr_out)
		allowed = 1;
	return allowed < UINT32_MAX ? (uint32_t)allowed : UINT32_MAX;
}
