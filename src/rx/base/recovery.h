/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When a transmission counts as lost: by time (RACK) and by an adaptive count; proportional rate
 * reduction.
 */
#ifndef RXW_BASE_RECOVERY_H
#define RXW_BASE_RECOVERY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rtt.h"

/*
 * State of one call. Transmissions are named by their order of sending within the call (`order`,
 * from 1; compared so that it may wrap around), not by serials, since serials are shared with other
 * calls of the connection.
 */
struct rxw_recovery {
	uint32_t highest_order;   /* latest transmission acknowledged */
	uint64_t highest_sent_at; /* its time */
	uint32_t threshold;       /* N: starts at 3 */
	uint32_t lateness;        /* time beyond a round trip, in eighths of it: starts at 1 */
	bool ordered; /* acknowledged twice in ascending order; before, time alone decides */
	uint64_t threshold_decay_at;
	/* The latest loss event lasts until a later order is acknowledged; 0 = no event yet. */
	uint32_t recovery_end;
	/* PRR, RFC 6937 */
	uint32_t prr_delivered, prr_out, prr_flight;
};

void rxw_recovery_init(struct rxw_recovery *r);
/* A transmission was acknowledged. */
void rxw_recovery_acked(struct rxw_recovery *r, uint32_t order, uint64_t sent_at);
/*
 * Is the transmission (order, sent_at) lost now? If not but time alone would make it so later, *at
 * becomes that time (the earlier of *at and it; 0 = none yet), else *at is left. `at` may be NULL.
 */
bool rxw_recovery_is_lost(const struct rxw_recovery *r, const struct rxw_rtt *rtt, uint32_t order,
			  uint64_t sent_at, uint64_t now, uint64_t *at);
/*
 * An ACK for an original after its retransmission: it was reordered by `distance` transmissions, 0
 * = not known. If N called it lost (distance >= N), N becomes 2 N or distance + 1, whichever is
 * more, at most 255. Else time did, and the patience beyond a round trip doubles; a transmission
 * is lost after 3 RTT or 10 ms, whichever is more, in any case.
 */
void rxw_recovery_reordered(struct rxw_recovery *r, uint32_t distance, uint64_t now, uint64_t srtt);
/*
 * An ACK for a transmission that was not yet called lost, `distance` behind one acknowledged by an
 * earlier ACK: where N or the patience would be too little for it if halved, they do not decay now.
 */
void rxw_recovery_late(struct rxw_recovery *r, const struct rxw_rtt *rtt, uint32_t distance,
		       uint64_t sent_at, uint64_t now);
/* Decay of both: half for every 16 RTT without an event; call on ACKs. */
void rxw_recovery_decay(struct rxw_recovery *r, uint64_t now, uint64_t srtt);
/* What was learned of reordering, in one word for other calls on the path; 0 = nothing. */
uint32_t rxw_recovery_learned(const struct rxw_recovery *r);
void rxw_recovery_seed(struct rxw_recovery *r, uint32_t learned, uint64_t now, uint64_t srtt);
/*
 * Enter recovery for a loss found when `order_now` transmissions were made: true if this is a new
 * event (react), false within the same one.
 */
bool rxw_recovery_enter(struct rxw_recovery *r, uint32_t lost_order, uint32_t order_now,
			uint32_t flight);
bool rxw_recovery_active(const struct rxw_recovery *r);
/* Packets delivered by an ACK during recovery, packets sent during it. */
void rxw_recovery_delivered(struct rxw_recovery *r, uint32_t packets);
void rxw_recovery_sent(struct rxw_recovery *r, uint32_t packets);
/*
 * Packets that may be sent now; at least one for the first retransmission. `flight`: what is
 * outstanding and not lost.
 */
uint32_t rxw_recovery_prr(const struct rxw_recovery *r, uint32_t flight, uint32_t ssthresh);

#endif
