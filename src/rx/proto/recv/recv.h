/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receiving: the receive queue, and the acknowledgements of what it holds (rx-protocol 3.4 to 3.7).
 */
#ifndef RXW_PROTO_RECV_H
#define RXW_PROTO_RECV_H

#include "proto/core/core.h"
#include "proto/output/output.h"
#include "proto/slab/slab.h"

/*
 * Until the first ACK tells them, peers assume that our window has this size (4.1): the first
 * packets of a stream are accepted up to here, however small the window is.
 */
#define RXW_FIRST_FLIGHT 16u

/* Received packets: consecutive, in one buffer. */
struct rxw_rxent {
	struct rxw_buf *buf; /* one reference; NULL: taken by the reader */
	uint8_t *data;	     /* payload of the first packet */
	uint32_t first;
	uint32_t charge; /* bytes charged to the memory limits */
	uint16_t stride, length, last_length, count;
	uint16_t next;
	bool unverified; /* not authenticated yet: whole payloads, with their headers in front */
};

/*
 * The receive queue of a call. Invariants: consumed <= taken <= next; hard <= next; the entries of
 * `ready` cover [consumed.., next) without a gap (the first may be partly consumed); those of
 * `later` are above next, sorted, and do not overlap; `pinned` is the sum of all charges.
 */
struct rxw_recvq {
	struct rxw_slab ents;
	uint16_t ready_head, ready_tail, ready_take; /* ready_take: first entry not taken */
	uint16_t later_head;
	/* sequence numbers: next to be consumed, taken, received in order */
	uint32_t consumed, taken, next;
	uint32_t hard;	       /* firstPacket of our ACKs */
	uint32_t highest;      /* highest accepted, 0 = none */
	uint32_t shown;	       /* highest ever acknowledged, if more than `highest` */
	uint32_t last;	       /* seq of LAST_PACKET, 0 = unknown */
	uint32_t verified_to;  /* packets from here on are not verified yet; UINT32_MAX = all are */
	uint32_t window;       /* advertised now */
	uint32_t window_limit; /* the engine's limit below params->window, 0 = none */
	uint32_t grown_at;     /* `next` when the window last grew */
	uint32_t edge;	       /* highest right edge advertised */
	int64_t pinned;
	uint32_t failed;       /* packets that failed verification since the last good one */
	uint64_t failed_since; /* ns, when the first of them arrived */
	bool stopped;	       /* in error or finished: nothing is queued any more */
	struct rxw_rxent own[4];
};

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
	uint64_t due; /* delayed, owed or final ACK; RXW_NEVER = none */
};

/* What a connection shares between its calls. */
struct rxw_recvshare {
	struct rxw_budget memory; /* received bytes pinned by its calls */
	uint8_t pongs;		  /* PINGs answered since pong_at */
	uint64_t pong_at;
	uint32_t proof_serial; /* server: of the latest PING with a secret serial, 0 = none */
	uint64_t proof_asked;  /* ns, when it was sent */
};

/* --- receive queue --- */

void rxw_recvq_init(struct rxw_recvq *q, const struct rxw_params *params);
/* Release all entries and stop: nothing is delivered any more. */
void rxw_recvq_clear(struct rxw_pcall *p);
/* The application has finished with the stream: release what it did not read. */
void rxw_recvq_discard(struct rxw_pcall *p);
/* The whole stream has arrived. */
bool rxw_recvq_ended(const struct rxw_recvq *q);
/* Update firstPacket and the window to advertise. */
void rxw_recvq_advance(struct rxw_pcall *p);
/* Fill the ACK table: packets first..highest, at most `room`. Returns the number of entries. */
unsigned rxw_recvq_table(const struct rxw_recvq *q, uint32_t first, uint32_t upto, uint8_t *acks,
			 unsigned room);
/* First sequence number that is not accepted. */
uint32_t rxw_recvq_limit(const struct rxw_pcall *p, uint64_t now);
/* The next gap of [*at, end); sets *at to its beginning and returns its length, 0 = no gap. */
uint32_t rxw_recvq_missing(const struct rxw_recvq *q, uint32_t *at, uint32_t end);
/* Packets of a run: [first, first + count), after the first `skip` packets of the run. */
struct rxw_rxpart {
	uint32_t first, count, skip;
};
/* Queue packets that are next in order, or behind a gap. False: out of memory. */
bool rxw_recvq_append(struct rxw_pcall *p, const struct rxw_rxrun *run,
		      const struct rxw_rxpart *part);
bool rxw_recvq_later(struct rxw_pcall *p, const struct rxw_rxrun *run,
		     const struct rxw_rxpart *part);
/* Move the packets that are in order now from `later` to `ready`. Returns their number. */
uint32_t rxw_recvq_absorb(struct rxw_pcall *p);

/* What became of the packets of a run. */
struct rxw_queued {
	uint32_t fresh;	   /* packets that were new */
	uint32_t in_order; /* packets that can now be delivered */
	bool refused;	   /* out of memory for some */
};
/* Queue the new packets of a run, up to `end`. Acknowledgements become due or are written. */
void rxw_recv_queue(struct rxw_pcall *p, const struct rxw_rxrun *run, uint32_t end,
		    struct rxw_queued *queued, struct rxw_out *out);

/*
 * For rxw_pconn_take_unverified(): the next run that was queued before the connection was
 * authenticated.
 */
bool rxw_recvq_take_unverified(struct rxw_pcall *p, struct rxw_rxrun *run);

/*
 * In-order packets that can be taken now. *ended (may be NULL): the last of them ends the stream;
 * with a result of 0, nothing is left.
 */
uint32_t rxw_pcall_readable(const struct rxw_pcall *p, bool *ended);
/* Move up to `room` pieces to the reader. They count as unread until rxw_pcall_consumed(). */
unsigned rxw_pcall_take(struct rxw_pcall *p, struct rxw_rxpiece *pieces, unsigned room);
/*
 * The application has read `packets` more of those taken, in order. Returns their memory to the
 * budgets; a window update may become due.
 */
void rxw_pcall_consumed(struct rxw_pcall *p, uint32_t packets, struct rxw_out *out);

/* --- acknowledgements --- */

void rxw_ack_init(struct rxw_pcall *p);
/* The trailer of every ACK: our limits. `size`: datagram size confirmed for the path. */
void rxw_ack_trailer(const struct rxw_pconn *c, uint32_t size, struct rxw_ack *ack);
/* Write a PING, padded to `size`. False: no space, or the address may not be sent one. */
bool rxw_ack_ping(struct rxw_pcall *p, uint32_t size, struct rxw_out *out);
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
/*
 * `count` packets from `first` arrived in order, the first with `serial`; `filled`: they filled a
 * gap.
 */
void rxw_ack_in_order(struct rxw_pcall *p, uint32_t first, uint32_t count, uint32_t serial,
		      bool requested, bool filled, struct rxw_out *out);
void rxw_ack_out_of_sequence(struct rxw_pcall *p, uint32_t count, uint32_t serial,
			     struct rxw_out *out);
/* The batch is over: write what is owed, or let it wait. `drained`: the socket is drained. */
void rxw_ack_batch_end(struct rxw_pcall *p, bool drained, struct rxw_out *out);
void rxw_ack_timer(struct rxw_pcall *p, struct rxw_out *out);
/* The application has read: write a window update if one is worth sending (3.6). */
void rxw_ack_consumed(struct rxw_pcall *p, struct rxw_out *out);
/* Nothing is owed: reply DATA acknowledges the request, or the call is over. */
void rxw_ack_clear(struct rxw_pcall *p);

#endif
