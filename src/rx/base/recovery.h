/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loss detection by time (RACK) and by an adaptive packet threshold; proportional rate reduction.
 */
#ifndef RXW_BASE_RECOVERY_H
#define RXW_BASE_RECOVERY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rtt.h"

/*
 * State of one call. `order` numbers the transmissions of the call from 1 and may wrap around.
 * Serials are not used, since all calls of the connection share them.
 */
struct rxw_recovery {
	uint32_t highest_order;   /* latest transmission acknowledged */
	uint64_t highest_sent_at; /* when it was sent */
	uint32_t threshold;       /* N: starts at 3 */
	uint32_t lateness;        /* reordering delay, in 1/8 round trip: starts at 1 */
	bool ordered; /* ACKs came twice in ascending order; before, only time counts */
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
