/* SPDX-License-Identifier: BSD-2-Clause */
/* Congestion controllers behind one table, in units of packets (rx-protocol 4.4 items 4, 5). */
#ifndef RXW_BASE_CC_H
#define RXW_BASE_CC_H

#include <stdbool.h>
#include <stdint.h>

struct rxw_cc;

struct rxw_cc_ops {
	const char *name;
	void (*init)(struct rxw_cc *cc); /* may be NULL */
	/*
	 * `acked` packets newly acknowledged; `limited`: the flight had filled the window before.
	 */
	void (*acked)(struct rxw_cc *cc, uint32_t acked, bool limited, uint64_t srtt, uint64_t now);
	/*
	 * Loss seen; called at most once per round trip by recovery. `flight` in packets before the
	 * loss.
	 */
	void (*lost)(struct rxw_cc *cc, uint32_t flight, uint64_t now);
	void (*timeout)(struct rxw_cc *cc, uint32_t flight, uint64_t now);
	/* Remember the state before a reaction; the reaction is taken back. Both may be NULL. */
	void (*keep)(struct rxw_cc *cc);
	void (*undo)(struct rxw_cc *cc);
	/* Nothing was sent for a while: time that is over says nothing. May be NULL. */
	void (*idle)(struct rxw_cc *cc);
	/* See rxw_cc_interval(). NULL: its packets are not paced. */
	uint64_t (*interval)(const struct rxw_cc *cc, uint32_t window, uint64_t srtt);
};

struct rxw_cc {
	const struct rxw_cc_ops *ops;
	uint32_t cwnd, ssthresh, max;      /* packets; cwnd >= 1 */
	uint32_t acc;                      /* fraction of a packet in avoidance, of the controller */
	uint32_t undo_cwnd, undo_ssthresh; /* before the last reaction, 0 = none to take back */
	uint64_t state[8];                 /* of the controller (CUBIC) */
};

extern const struct rxw_cc_ops rxw_cc_reno;
/* RFC 9438 in integers; windows grow to 2^20 packets. */
extern const struct rxw_cc_ops rxw_cc_cubic;

/*
 * `max`: largest window the peer may ever grant; `initial` 4, or 10 for a known quiet peer;
 * ssthresh 0 = `max`.
 */
void rxw_cc_init(struct rxw_cc *cc, const struct rxw_cc_ops *ops, uint32_t initial,
		 uint32_t ssthresh, uint32_t max);
/* Not for packets acknowledged in recovery: there proportional rate reduction decides. */
void rxw_cc_acked(struct rxw_cc *cc, uint32_t acked, bool limited, uint64_t srtt, uint64_t now);
void rxw_cc_lost(struct rxw_cc *cc, uint32_t flight, uint64_t now);
void rxw_cc_timeout(struct rxw_cc *cc, uint32_t flight, uint64_t now);
/* Take the last reaction back: the loss was none. Of several timeouts in a row, all of them. */
void rxw_cc_undo(struct rxw_cc *cc);
/* After `idle` ns without sending: halve per RTO, not below 4. */
void rxw_cc_idle(struct rxw_cc *cc, uint64_t idle, uint64_t rto);
/*
 * Pacing: ns from packet to packet where the peer's window is `window`; 0 = as they come. A burst
 * may hold RXW_CC_BURST packets or what that rate brings in a millisecond (4.4 item 6).
 */
uint64_t rxw_cc_interval(const struct rxw_cc *cc, uint32_t window, uint64_t srtt);
#define RXW_CC_BURST	   8u
#define RXW_CC_PACED_ABOVE 16u /* packets; smaller windows leave as they are */
/* For controllers: the smaller of both windows over four fifths of a round trip of 1 ms and more. */
uint64_t rxw_cc_spread(const struct rxw_cc *cc, uint32_t window, uint64_t srtt);
/* For controllers: slow start up to ssthresh; of `acked` packets those that are behind it. */
uint32_t rxw_cc_slow_start(struct rxw_cc *cc, uint32_t acked);

#endif
