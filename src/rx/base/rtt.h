/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Round-trip times (RFC 6298; rx-protocol 4.4 item 4). Loss detection by time (RACK) and by an adaptive packet
 * threshold; proportional rate reduction.
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

/*
 * State of one call. `order` numbers the transmissions of the call from 1 and may wrap around.
 * Serials are not used, since all calls of the connection share them.
 */
struct rxw_recovery {
	uint32_t highest_order;	  /* latest transmission acknowledged */
	uint64_t highest_sent_at; /* when it was sent */
	uint32_t threshold;	  /* N: starts at 3 */
	uint32_t lateness;	  /* reordering delay, in 1/8 round trip: starts at 1 */
	bool ordered;		  /* ACKs came twice in ascending order; before, only time counts */
	uint64_t threshold_decay_at;
	/* The latest loss event ends when a later order is acknowledged; 0 = no event yet. */
	uint32_t recovery_end;
	/* PRR, RFC 6937 */
	uint32_t prr_delivered, prr_out, prr_flight;
};

void rxw_recovery_init(struct rxw_recovery *r);
/* A transmission was acknowledged. */
void rxw_recovery_acked(struct rxw_recovery *r, uint32_t order, uint64_t sent_at);
/*
 * Is the transmission (order, sent_at) lost now? If it will be lost by time alone, *at is set to
 * that time if *at is 0 or later; otherwise *at is unchanged. `at` may be NULL.
 */
bool rxw_recovery_is_lost(const struct rxw_recovery *r, const struct rxw_rtt *rtt, uint32_t order,
			  uint64_t sent_at, uint64_t now, uint64_t *at);
/*
 * An ACK for an original after its retransmission: it was reordered by `distance` transmissions, 0
 * = unknown. If it was declared lost by count (distance >= N), N becomes max(2 N, distance + 1), at
 * most 255. Otherwise it was declared lost by time, and the reordering delay doubles. A
 * transmission always counts as lost after max(3 RTT, 10 ms).
 */
void rxw_recovery_reordered(struct rxw_recovery *r, uint32_t distance, uint64_t now, uint64_t srtt);
/*
 * An ACK for a transmission not yet declared lost, `distance` behind one acknowledged earlier. If
 * half of N or half of the reordering delay would not have tolerated it, they do not decay now.
 */
void rxw_recovery_late(struct rxw_recovery *r, const struct rxw_rtt *rtt, uint32_t distance,
		       uint64_t sent_at, uint64_t now);
/* Decay of both: half for every 16 RTT without an event; call on ACKs. */
void rxw_recovery_decay(struct rxw_recovery *r, uint64_t now, uint64_t srtt);
/* The learned reordering in one word, for other calls on the path; 0 = none. */
uint32_t rxw_recovery_learned(const struct rxw_recovery *r);
void rxw_recovery_seed(struct rxw_recovery *r, uint32_t learned, uint64_t now, uint64_t srtt);
/*
 * Enter recovery for a loss detected after `order_now` transmissions. True: a new loss event
 * (react); false: the same event.
 */
bool rxw_recovery_enter(struct rxw_recovery *r, uint32_t lost_order, uint32_t order_now,
			uint32_t flight);
bool rxw_recovery_active(const struct rxw_recovery *r);
/* Packets delivered by an ACK during recovery, packets sent during it. */
void rxw_recovery_delivered(struct rxw_recovery *r, uint32_t packets);
void rxw_recovery_sent(struct rxw_recovery *r, uint32_t packets);
/*
 * Packets that may be sent now; at least one for the first retransmission. `flight`: packets
 * outstanding and not lost.
 */
uint32_t rxw_recovery_prr(const struct rxw_recovery *r, uint32_t flight, uint32_t ssthresh);

#endif
