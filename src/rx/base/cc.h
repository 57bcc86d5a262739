/* SPDX-License-Identifier: BSD-2-Clause */
/* Congestion controllers behind one interface, in units of packets (rx-protocol 4.4 items 4, 5). */
#ifndef RXW_BASE_CC_H
#define RXW_BASE_CC_H

#include <stdbool.h>
#include <stdint.h>

struct rxw_cc;

/* A measurement of the path, from one ACK. Times in ns. */
struct rxw_cc_sample {
	uint64_t now;
	uint64_t rate;	      /* of delivery, packets per second, 10 fractional bits; 0 = none */
	uint64_t rtt;	      /* 0 = none */
	uint64_t longest; /* since the earliest packet newly acknowledged was sent; 0 = unknown */
	uint64_t fair;	      /* mean rate of the flows that share the path; 0 = no other */
	uint32_t newly, lost; /* packets newly acknowledged, newly declared lost */
	uint32_t flight;      /* packets in flight now */
	uint32_t flight_then; /* when the newest of those acknowledged was sent */
	bool limited;	      /* then there was not enough data for the window */
	bool round;	      /* a round trip has ended */
	bool congested;	      /* packets were marked (ECN); at most once in a round trip */
};

/* A flow's measurements of the path: rate as above, of all flows; shortest round trip, ns. */
struct rxw_cc_path {
	uint64_t rate, rtt;
};

/*
 * Careful resume: a flow uses what an earlier one has measured. It sends its initial window first.
 * If the round trip is like the earlier one, it sends half of what the path carried, spread over a
 * round trip, and goes on from there unless packets are lost.
 */
enum rxw_cc_resume {
	RXW_CC_NORMAL,	 /* nothing is known, or the flow has its own measurements */
	RXW_CC_EXPECTING, /* the first round trip is to confirm `known` */
	RXW_CC_UNPROVEN, /* packets of the larger window are not all acknowledged yet */
	RXW_CC_RETREATED /* some were lost: what was known is to be forgotten */
};

struct rxw_cc_ops {
	const char *name;
	void (*init)(struct rxw_cc *cc); /* may be NULL */
	/*
	 * `acked` packets were newly acknowledged; `limited`: the window had been full before. This
	 * and lost() may be NULL if sample() is not.
	 */
	void (*acked)(struct rxw_cc *cc, uint32_t acked, bool limited);
	/*
	 * Loss detected; recovery calls this at most once per round trip. `flight`: packets in
	 * flight before it.
	 */
	void (*lost)(struct rxw_cc *cc, uint32_t flight);
	void (*timeout)(struct rxw_cc *cc, uint32_t flight);
	/* Packets were marked (RFC 8511), as lost(). May be NULL if sample() is not. */
	void (*marked)(struct rxw_cc *cc, uint32_t flight);
	/* Undo a reaction, beside the window and the threshold. May be NULL. */
	void (*undo)(struct rxw_cc *cc);
	/* After the functions above. May be NULL: the controller has no model of the path. */
	void (*sample)(struct rxw_cc *cc, const struct rxw_cc_sample *s);
	/* Nothing was sent for a while, so that time must not count. May be NULL. */
	void (*idle)(struct rxw_cc *cc);
	/* The measurements of the path; false: none yet. NULL: a window per round trip. */
	bool (*learnt)(const struct rxw_cc *cc, struct rxw_cc_path *path);
	/* `from` packets are as large as `to` packets are from now on. May be NULL. */
	void (*resize)(struct rxw_cc *cc, uint32_t from, uint32_t to);
	/* See rxw_cc_interval(). NULL: no pacing. */
	uint64_t (*interval)(const struct rxw_cc *cc, uint32_t window, uint64_t srtt);
	/* See rxw_cc_phase(). NULL: that of a window with a threshold. */
	const char *(*phase)(const struct rxw_cc *cc);
};

struct rxw_cc {
	const struct rxw_cc_ops *ops;
	uint32_t cwnd, ssthresh, max;      /* packets; cwnd >= 1 */
	uint32_t acc;                      /* fraction of a packet, for the controller */
	uint32_t warm; /* the window that an earlier call has proven; 0 = none, or an ACK came */
	uint32_t undo_cwnd, undo_ssthresh; /* before the last reaction; 0 = none to undo */
	enum rxw_cc_resume resume;
	uint32_t jump, proven; /* RXW_CC_UNPROVEN: the larger window; packets acknowledged since */
	struct rxw_cc_path known;
	bool alone; /* `known` is what this flow had, not all flows together */
	uint64_t state[21]; /* for the controller */
};

extern const struct rxw_cc_ops rxw_cc_reno;
/* By a model of the path, of the kind of BBR; tolerates losses of 2 %. */
extern const struct rxw_cc_ops rxw_cc_rate;

/*
 * `max`: largest window that the peer may ever grant; `initial`: 4, or 10 for a known peer without
 * recent losses; ssthresh 0 = `max`.
 */
void rxw_cc_init(struct rxw_cc *cc, const struct rxw_cc_ops *ops, uint32_t initial,
		 uint32_t ssthresh, uint32_t max);
/*
 * Begin with the window of a call that has just ended. Its packets leave early in the round trip, as
 * those of a TCP connection that was idle for a moment.
 */
void rxw_cc_warm(struct rxw_cc *cc, uint32_t window);
/* An earlier flow has measured the path. */
void rxw_cc_resume(struct rxw_cc *cc, const struct rxw_cc_path *known);
/* The first round trip was measured; `flows` share the path, this one included. */
void rxw_cc_confirm(struct rxw_cc *cc, uint64_t rtt, uint32_t flows);
/* `acked` packets are acknowledged: those of the larger window may be proven now. */
void rxw_cc_prove(struct rxw_cc *cc, uint32_t acked);
/* The flow's measurements. False: none. */
bool rxw_cc_learnt(const struct rxw_cc *cc, uint64_t rtt_min, uint64_t srtt,
		   struct rxw_cc_path *path);
/* Not for packets acknowledged in recovery, where proportional rate reduction applies. */
void rxw_cc_acked(struct rxw_cc *cc, uint32_t acked, bool limited);
/* Only of a controller with sample(). */
void rxw_cc_sample(struct rxw_cc *cc, const struct rxw_cc_sample *s);
void rxw_cc_lost(struct rxw_cc *cc, uint32_t flight);
/* Packets were marked with CE; at most once per round trip. Not undone. */
void rxw_cc_marked(struct rxw_cc *cc, uint32_t flight);
void rxw_cc_timeout(struct rxw_cc *cc, uint32_t flight);
/*
 * Undo the last reaction because the loss was spurious. Undoes all of several successive timeouts.
 */
void rxw_cc_undo(struct rxw_cc *cc);
/* The last reaction was right, and is not to be undone. */
void rxw_cc_forget_undo(struct rxw_cc *cc);
/* Packets had `before` bytes, and have `now` bytes: the same window in bytes. */
void rxw_cc_resize(struct rxw_cc *cc, uint32_t before, uint32_t now);
/*
 * After `idle` ns without sending: halve per RTO, not below 4. With a model of the path: begin
 * again after one RTO, as a flow that knows what it has measured.
 */
void rxw_cc_idle(struct rxw_cc *cc, uint64_t idle, uint64_t rto);
/*
 * Pacing: ns between packets if the peer's window is `window`; 0 = no pacing. A burst may hold
 * RXW_CC_BURST packets, or those of one millisecond at that rate (4.4 item 6).
 */
uint64_t rxw_cc_interval(const struct rxw_cc *cc, uint32_t window, uint64_t srtt);
#define RXW_CC_BURST	   8u
#define RXW_CC_PACED_ABOVE 16u /* packets; smaller windows are not paced */
#define RXW_CC_RESTART	   10u /* packets: the window after a pause, with a model */
#define RXW_CC_RATE_SHIFT  10  /* fractional bits of rates */
/* For observers: "slow-start", "avoidance" or a phase of the controller's own. Static. */
const char *rxw_cc_phase(const struct rxw_cc *cc);

#endif
