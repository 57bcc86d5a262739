/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Round-trip time: smoothed estimate, variance and retransmission timeout (RFC 6298;
 * rx-protocol 4.4 item 4).
 */
#ifndef RXW_BASE_RTT_H
#define RXW_BASE_RTT_H

#include <stdbool.h>
#include <stdint.h>

#define RXW_MS  1000000ull
#define RXW_SEC 1000000000ull
/* 255 packets in flight fill a path with a shorter round trip. */
#define RXW_LONG_RTT RXW_MS

/* All times in nanoseconds. */
struct rxw_rtt {
	uint64_t srtt, rttvar, latest;
	uint64_t min; /* of the samples, 0 = none yet */
	uint64_t short_at; /* time of the first sample that is not plausible; 0 = none */
	bool valid;   /* srtt is set, by a sample or a seed */
};

void rxw_rtt_init(struct rxw_rtt *r);
/* Seed from a peer's cache (0 = none). */
void rxw_rtt_seed(struct rxw_rtt *r, uint64_t srtt, uint64_t rttvar);
/*
 * False: ignore the sample. After a machine has slept, packets that came meanwhile seem to have come at
 * once. So one of less than half of the shortest round trip counts only if others are as short after that
 * time. `now`: ns, > 0.
 */
bool rxw_rtt_plausible(struct rxw_rtt *r, uint64_t sample, uint64_t now);
/* Add a sample; 0 counts as 1 ns, more than 60 s is ignored. */
void rxw_rtt_sample(struct rxw_rtt *r, uint64_t sample);
/*
 * Base RTO without back-off: 1 s before the first sample, at least 200 ms, plus the peer's ack
 * delay, times 2^backoff, at most 20 s.
 */
uint64_t rxw_rtt_rto(const struct rxw_rtt *r, uint64_t peer_ack_delay, unsigned backoff);
/*
 * RACK time threshold: max(9/8 * max(srtt, latest), 1 ms); before the first sample as for 333 ms.
 */
uint64_t rxw_rtt_loss_delay(const struct rxw_rtt *r);
/*
 * Tail loss probe delay: max(2 * srtt, 10 ms) + peer_ack_delay; before the first sample as for 333
 * ms.
 */
uint64_t rxw_rtt_probe_delay(const struct rxw_rtt *r, uint64_t peer_ack_delay);

#endif
