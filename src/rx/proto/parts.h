/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of a call's state: send queue, receive queue, acknowledgements, timers. */
#ifndef RXW_PROTO_PARTS_H
#define RXW_PROTO_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

#define RXW_NO_NODE 0xffffu

/*
 * A growable array of equal nodes that are named by index, with a free list; the first few are
 * inside its owner, more come from the call's pool. Nodes move when it grows: hold indexes, not
 * pointers.
 */
struct rxw_slab {
	uint8_t *base;
	struct rxw_buf *buf; /* NULL: base is the owner's own array */
	uint16_t node, cap, free, used;
};

/* A run queued for sending. */
struct rxw_txent {
	struct rxw_buf *buf; /* one reference */
	uint8_t *data;
	uint32_t first; /* sequence number of its first packet */
	uint16_t stride, last_size, count, next;
	bool last; /* ends the stream */
};

enum rxw_txstate {
	RXW_TX_FLIGHT,
	RXW_TX_ACKED /* softly */,
	RXW_TX_LOST
};

/*
 * Consecutive packets of one fate: sent together (order and serial go up by one with the packet),
 * and all in flight, all softly acknowledged or all lost.
 */
struct rxw_txseg {
	uint64_t sent_at;
	uint32_t first, count;
	uint32_t order, serial;		  /* of the latest transmission */
	uint32_t prev_order, prev_serial; /* of the one before; 0 = none */
	uint32_t token;			  /* of the train that holds the bytes, 0 = none */
	uint16_t next;
	uint8_t state;
	/* LOST, but our own system refused it: no retransmission */
	bool never_left;
};

/*
 * Invariants: una <= nxt <= end; [una, nxt) is partitioned by the list of segments in order; flight
 * + acked + lost == nxt - una.
 */
struct rxw_sendq {
	struct rxw_slab ents, segs;
	uint16_t ent_head, ent_tail, ent_send; /* ent_send: the one with packet nxt */
	uint16_t seg_head, seg_tail;
	/* lowest not hard-acked; next for its first time; next to be queued */
	uint32_t una, nxt, end;
	uint32_t flight, acked, lost;
	uint32_t window, edge; /* peer's rwind; firstPacket + rwind */
	uint32_t urged;	       /* below this no threshold holds packets back */
	uint32_t high_limit;   /* set from above to less than params->sendq_high, 0 = none */
	uint32_t order, token; /* last given */
	uint32_t sampled_serial, ack_serial;
	uint32_t round_order;	      /* its acknowledgement ends the present round trip */
	uint32_t peak, last_peak;     /* largest flight in this round trip, in the last one */
	uint32_t frto_order;	      /* order when the RTO expired; 0 = none unconfirmed */
	/* latest progress or new transmission: the RTO counts from here */
	uint64_t base_at;
	uint64_t tail_at;      /* latest transmission of any kind: the probe counts from here */
	uint64_t requested_at; /* last REQUEST_ACK */
	uint64_t loss_at;      /* time alone declares a loss then; UINT64_MAX = none */
	/* thresholds hold no longer than this; UINT64_MAX = nothing held */
	uint64_t hold_at;
	uint64_t pace_at;
	uint64_t retry_at;   /* our system refused a packet: try again; UINT64_MAX = none */
	uint64_t idle_since; /* flight became 0 */
	/* first retransmission of the lowest packet that is not acknowledged, 0 = none */
	uint64_t stuck_since;
	uint64_t busy_at, busy_since; /* BUSY: silent until; first one, 0 = none */
	uint64_t nospace_at;
	uint64_t proof_asked; /* bytes wait for a proof of the address since then; 0 = none do */
	uint8_t backoff, busy_count;
	/* packets that go out without regard to the congestion window */
	uint8_t force;
	bool probe;	     /* a tail loss probe is to be sent */
	bool probed;	     /* one was, and nothing was acknowledged since */
	bool all_queued;     /* LAST_PACKET is queued */
	bool stopped;	     /* the peer's reply began early: nothing more is sent */
	bool heard;	     /* any ACK or reply DATA for this call */
	bool above_high;     /* the writer was told to stop */
	bool requested_last; /* newest packet in flight carried REQUEST_ACK */
	bool losses;	     /* any loss in this call */
	/*
	 * latest retransmissions of lost packets: a DUPLICATE that names one tells that the loss
	 * was none
	 */
	struct {
		uint32_t serial, count, distance;
	} resent[8];
	uint8_t resent_next;
	struct rxw_txent ent_own[3];
	struct rxw_txseg seg_own[3];
};

/* Received packets: consecutive, in one buffer. */
struct rxw_rxent {
	struct rxw_buf *buf; /* one reference; NULL: taken by the reader */
	uint8_t *data;	     /* payload of the first */
	uint32_t first;
	uint32_t charge; /* bytes charged to the memory limits */
	uint16_t stride, length, last_length, count;
	uint16_t next;
	/* the connection was not authenticated: data are whole payloads, headers before them */
	bool unverified;
};

/*
 * Invariants: consumed <= taken <= next; hard <= next; ents in `ready` cover [consumed.., next)
 * without gap (the first may be partly consumed); those in `later` lie above next, sorted, without
 * overlap.
 */
struct rxw_recvq {
	struct rxw_slab ents;
	uint16_t ready_head, ready_tail, ready_take; /* ready_take: first not taken */
	uint16_t later_head;
	/* sequence numbers: next to be consumed, taken, received in order */
	uint32_t consumed, taken, next;
	uint32_t hard;	  /* firstPacket of our ACKs */
	uint32_t highest; /* highest accepted, 0 = none */
	uint32_t shown;	  /* highest that was ever said to be there, if more than that */
	uint32_t last;	  /* seq of LAST_PACKET, 0 = unknown */
	/* packets from here on are not verified yet; UINT32_MAX = all are */
	uint32_t verified_to;
	uint32_t window;       /* advertised now */
	uint32_t window_limit; /* set from above to less than params->window, 0 = none */
	uint32_t grown_at;     /* `next` when the window last grew */
	uint32_t edge;	       /* highest right edge advertised */
	int64_t pinned;
	uint32_t failed;       /* packets that did not verify since the last one that did */
	uint64_t failed_since; /* ns; the first of them came then */
	bool stopped; /* error or finished: nothing is queued any more */
	struct rxw_rxent own[4];
};

#define RXW_PINGS 8u /* of a call: the latest are remembered */

struct rxw_ping {
	uint32_t serial, size;
	uint64_t sent_at;
	bool secret; /* nobody else can guess the serial: the answer validates the address */
};

struct rxw_ackstate {
	uint8_t reason;			/* owed: by rank of 3.6, 0 = none */
	bool now;			/* the owed one may not wait */
	bool in_batch;			/* packets came since the last batch end */
	uint8_t out_of_sequence;	/* such ACKs written in this batch */
	uint32_t serial;		/* for the owed one */
	uint32_t newest_serial;		/* of the newest in-order packet */
	uint32_t unacked;		/* in-order packets since the last ACK */
	uint32_t sent_first, sent_next; /* firstPacket and in-order edge of the last ACK */
	uint32_t quick;			/* packets still to be acknowledged every second */
	uint32_t merged;		/* packets that the last merged ACK answered */
	uint8_t doubled;		/* merged ACKs that were followed by a larger flight */
	uint8_t answers;		/* to packets that brought nothing: so many at once */
	uint8_t in_vain;		/* answers since anything came that brought something */
	uint64_t useless_at;		/* the last of those */
	uint32_t ping_answered;		/* serial */
	struct rxw_ping ping[RXW_PINGS];
	uint8_t ping_next;
	uint64_t probe_at; /* MTU probe without answer until: lost; UINT64_MAX = none */
};

/* Times; UINT64_MAX = not set. */
struct rxw_calltimers {
	uint64_t deadline; /* earliest of all; what rxw_pcall_deadline() says */
	uint64_t ack;	   /* delayed, owed or final ACK */
	uint64_t ping;	   /* keepalive looked at */
	uint64_t reach;	   /* the question for a proof of the address: next PING, or look */
	uint64_t began, first_sent, last_sent, last_heard, last_moved, aborted;
	uint64_t dead, idle, hard; /* limits, ns; 0 = none */
	uint64_t unreachable;	   /* an ICMP report came then, 0 = none */
	uint64_t reach_since;	   /* strict reach check: began, 0 = none */
	bool final_ack;		   /* `ack` is the final one of a client call */
	bool attach_told;	   /* RXW_OUT_ATTACH was given */
	bool done_told;
	bool abort_owed;     /* an ABORT could not leave when it was due */
	uint8_t unsolicited; /* PINGs to an unproven address */
};

#endif
