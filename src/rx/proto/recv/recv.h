/* SPDX-License-Identifier: BSD-2-Clause */
/* Received DATA, and its acknowledgements (rx-protocol 3.4 to 3.7). */
#ifndef RXW_PROTO_RECV_H
#define RXW_PROTO_RECV_H

#include "proto/recv/recvq.h"

#define RXW_PINGS 8u /* latest PINGs of a call that are remembered */

struct rxw_ping {
	uint32_t serial, size;
	uint64_t sent_at;
	bool secret; /* the serial cannot be guessed: the answer validates the address */
};

/*
 * The acknowledgements of a call. Invariants: `now` and `due` are only meaningful while reason !=
 * 0, except for the final ACK of a client call (`final`) and a window update, which only set `due`.
 */
struct rxw_ackstate {
	uint8_t reason;			/* owed: by rank of 3.6, 0 = none */
	bool now;			/* the owed one must not wait */
	bool in_batch;			/* packets arrived since the last end of a batch */
	bool final;			/* `due` is for the final ACK of a client call */
	uint8_t out_of_sequence;	/* such ACKs written in this batch */
	uint32_t serial;		/* for the owed one */
	uint32_t newest_serial;		/* of the newest in-order packet */
	uint32_t unacked;		/* in-order packets since the last ACK */
	uint32_t sent_first, sent_next; /* firstPacket and in-order edge of the last ACK */
	uint32_t quick;			/* packets left to be acknowledged in pairs */
	uint32_t merged;		/* packets that the last merged ACK answered */
	uint8_t doubled;		/* merged ACKs that were followed by a larger flight */
	uint8_t answers;		/* useless packets that may be answered at once */
	uint8_t in_vain;		/* answers to useless packets since the last useful one */
	uint64_t useless_at;		/* time of the last of those answers */
	uint32_t ping_answered;		/* serial */
	struct rxw_ping ping[RXW_PINGS];
	uint8_t ping_next;
	struct rxw_ecn_counts marks; /* of new packets */
	uint64_t due; /* delayed, owed or final ACK; RXW_NEVER = none */
};

/* State that the calls of a connection share. */
struct rxw_recvshare {
	struct rxw_budget memory; /* received bytes pinned by its calls */
	uint8_t pongs;		  /* PINGs answered since pong_at */
	/* Wide windows: the peer's latest ACK offers them; the peer has answered an ACK of ours. */
	bool wide_heard, wide_told;
	bool marks_heard; /* it reports marks */
	uint8_t window_told; /* largest window in an ACK, up to 255: a later call may begin with it */
	uint64_t pong_at;
	uint32_t proof_serial; /* server: of the latest PING with a secret serial, 0 = none */
	uint32_t wide_asked;   /* ms, modulo 2^32, when the latest PING was sent; 0 = never */
	uint64_t proof_asked;  /* ns, when the secret one was sent */
};

/* The fate of the packets of a run. */
struct rxw_queued {
	uint32_t fresh;	   /* packets that were new */
	uint32_t in_order; /* packets that can now be delivered */
	bool refused;	   /* out of memory for some */
};
/* Queue the new packets of a run, up to `end`. Acknowledgements become due or are written. */
void rxw_recv_queue(struct rxw_pcall *p, const struct rxw_rxrun *run, uint32_t end,
		    struct rxw_queued *queued, struct rxw_out *out);

/* --- acknowledgements --- */

void rxw_ack_init(struct rxw_pcall *p);
/* The trailer of every ACK: our limits. `size`: datagram size confirmed for the path. */
void rxw_ack_trailer(const struct rxw_pconn *c, uint32_t size, struct rxw_ack *ack);
/* The flags of every ACK. */
unsigned rxw_ack_flags(const struct rxw_pconn *c);
/* Write a PING, padded to `size`. False: no space, or the address may not be sent one. */
bool rxw_ack_ping(struct rxw_pcall *p, uint32_t size, struct rxw_out *out);
/* The peer's latest ACK offers wide windows, or does not. This host needs none. */
void rxw_ack_heard_wide(struct rxw_pcall *p, bool offered);
/* The ACKs of the connection report marks. */
bool rxw_ack_reports_marks(const struct rxw_pconn *c);
/* The peer's latest ACK reports marks. False: that is of no use here. */
bool rxw_ack_heard_marks(struct rxw_pcall *p);
/*
 * The peer offers wide windows, and we send much. It advertises one once it has heard that we know
 * them: send a PING, unless one was answered, or sent within `rto` ns.
 */
void rxw_ack_tell_wide(struct rxw_pcall *p, uint64_t rto, struct rxw_out *out);
/*
 * Server: write a PING to the address of `ctl->path`, which is not the connection's. Returns its
 * serial, which others cannot guess.
 */
uint32_t rxw_ack_put_probe(const struct rxw_pcall *p, struct rxw_ctl *ctl, uint64_t now);
/* The PING with this serial was answered: forget it. False: there is none. */
bool rxw_ack_take_ping(struct rxw_pcall *p, uint32_t serial, struct rxw_ping *ping);
/* May one more PING of the connection be answered? Counts it. */
bool rxw_ack_may_pong(struct rxw_pconn *c, struct rxw_out *out);
void rxw_ack_answer_ping(struct rxw_pcall *p, uint32_t serial, struct rxw_out *out);
/*
 * Server: the call is about to be refused. If its packets were acknowledged, report them missing
 * again: clients may ignore the BUSY that follows (2.9), and would otherwise not send them again.
 */
void rxw_ack_withdraw(struct rxw_pcall *p, struct rxw_out *out);
/* An ACK becomes owed; `now`: not later than the end of the batch. */
void rxw_ack_owe(struct rxw_pcall *p, unsigned reason, uint32_t serial, bool now);
/* The batch is over: write what is owed, or let it wait. `drained`: the socket is drained. */
void rxw_ack_batch_end(struct rxw_pcall *p, bool drained, struct rxw_out *out);
void rxw_ack_timer(struct rxw_pcall *p, struct rxw_out *out);
/* The application has read: write a window update if one is worth sending (3.6). */
void rxw_ack_consumed(struct rxw_pcall *p, struct rxw_out *out);
/* An ACK becomes owed, to be written at `by` at the latest. */
void rxw_ack_owe_by(struct rxw_pcall *p, unsigned reason, uint32_t serial, uint64_t by);
/* Set the time of the ACK; `final`: it is the final one of a client call. */
void rxw_ack_set_due(struct rxw_pcall *p, uint64_t at, bool final);
/* Nothing is owed: reply DATA acknowledges the request, or the call is over. */
void rxw_ack_clear(struct rxw_pcall *p);

#endif
