/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Round-trip time: smoothed estimate, variance and retransmission timeout (RFC 6298;
 * rx-protocol 4.4 item 4).
 */

#include "base/rtt.h"

#include <string.h>

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
