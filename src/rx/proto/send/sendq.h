/* SPDX-License-Identifier: BSD-2-Clause */
/* The send queue, and the scoreboard: what became of the packets sent (rx-protocol 3.2, 4). */
#ifndef RXW_PROTO_SENDQ_H
#define RXW_PROTO_SENDQ_H

#include "base/path_probe.h"
#include "base/rtt.h"
#include "proto/peer/core.h"
#include "proto/peer/output.h"
#include "proto/send/sent.h"
#include "proto/peer/slab.h"

/* A run queued for sending. */
struct rxw_txent {
	struct rxw_buf *buf; /* one reference */
	uint8_t *data;
	uint32_t first;	 /* its first packet; behind ent_send too low if runs before were cut */
	uint32_t sealed; /* the number for which that was sealed: another one if some were repacked */
	uint16_t stride, last_size, count, next;
	bool last; /* ends the stream */
};

/*
 * Packets delivered, for samples of the rate. A sample compares two packets: the newest one acknowledged,
 * and the last one acknowledged before that was sent.
 */
struct rxw_delivery {
	uint64_t delivered_at; /* latest ACK with progress, or first transmission after idleness */
	uint64_t began_at;     /* when the newest packet acknowledged was sent */
	uint32_t began_order;  /* the number of that transmission */
	uint32_t delivered;    /* packets acknowledged, modulo 2^32 */
	uint32_t lost;	       /* packets declared lost, and not yet told to the controller */
	uint32_t limited_to;   /* packets up to this count were sent without enough data; 0 = none */
};

/*
 * The sending part of a call. Invariants: una <= nxt <= end; `sent` has the packets [una, nxt), and
 * flight + acked + lost == nxt - una; the entries cover [una.., end), and ent_send is the one with packet nxt.
 */
struct rxw_sendq {
	struct rxw_slab ents;
	struct rxw_sent sent;
	uint16_t ent_head, ent_tail, ent_send;
	uint16_t dead;		/* the first of the runs that are to be released */
	uint32_t una, nxt, end; /* lowest not acknowledged; next to be sent; next to be queued */
	uint32_t flight, acked, lost;
	uint32_t window, edge; /* the peer's rwind; firstPacket + rwind */
	uint32_t flush_to;     /* below this no threshold holds packets back */
	uint32_t high_limit;   /* the engine's limit below params->sendq_high, 0 = none */
	int64_t grant; /* bytes of memory for packets beyond that (proto/peer/wide.h) */
	uint32_t order; /* the last one used */
	uint32_t doubt;	     /* packets of the latest loss event that may have been only late; 0 = no undo */
	uint32_t doubt_from; /* order of the first of them */
	uint32_t sampled_serial;
	uint32_t ack_serial; /* newest serial number of an ACK, 0 = none; taken at ack_at */
	uint32_t round_order;	  /* its acknowledgement ends the current round trip */
	uint32_t peak, last_peak; /* largest flight in this round trip, in the last one */
	uint32_t carried; /* largest one that the path has carried since the last reaction to a loss */
	uint32_t frto_order;	  /* order when the RTO expired; 0 = no unconfirmed timeout */
	uint64_t base_at;	  /* latest progress or new transmission: the RTO starts here */
	uint64_t tail_at; /* latest transmission of any kind: the tail loss probe starts here */
	uint64_t requested_at; /* last REQUEST_ACK */
	uint64_t loss_at;      /* time alone declares a loss then; RXW_NEVER = none */
	uint64_t hold_at;      /* thresholds apply until then; RXW_NEVER = nothing is held */
	uint64_t pace_at;
	uint64_t retry_at;    /* our system refused a packet: try again; RXW_NEVER = none */
	uint64_t idle_since;  /* flight became 0 */
	uint64_t stuck_since; /* first retransmission of the lowest missing packet, 0 = none */
	uint64_t busy_at, busy_since; /* BUSY: silent until; first one, 0 = none */
	uint64_t nospace_at;
	uint64_t ack_at;
	uint8_t backoff, busy_count;
	uint8_t refusals; /* by our own system, of whole bursts in a row */
	uint8_t force;	     /* packets to send regardless of the congestion window */
	bool probe;	     /* a tail loss probe is to be sent */
	bool probed;	     /* one was sent, and nothing was acknowledged since */
	bool all_queued;     /* LAST_PACKET is queued */
	bool stopped;	     /* the peer's reply began early: nothing more is sent */
	bool heard;	     /* an ACK or reply DATA arrived for this call */
	bool above_high;     /* the writer was told to stop */
	bool requested_last; /* the newest packet in flight carried REQUEST_ACK */
	bool losses;	     /* the call has lost packets */
	bool losses_before;  /* the same before the latest loss, which may prove spurious */
	bool sender;	     /* counted in learnt.senders of the peer */
	uint64_t shared;     /* its rate, counted in learnt.rates of the peer; 0 = none */
	uint8_t resent_next;
	struct rxw_rtt rtt;
	struct rxw_cc cc;
	struct rxw_recovery recovery;
	struct rxw_mtu mtu;
	struct rxw_mtu_check check;
	struct rxw_mtu_units units;
	struct rxw_renumber renumber;
	bool due_at_pace; /* after the latest train more could have left, if not for its pace */
	bool paced;	/* lost packets are paced, as new ones are: all of a flight were lost */
	bool searching; /* of the calls of the peer, this one searches for its path MTU */
	struct rxw_delivery rate;
	struct rxw_ecn ecn;
	/* Of these numbers the latest ACK says nothing: packets there are not declared lost. */
	struct {
		uint32_t from, to;
	} untold[2];
	uint64_t proof_since; /* bytes wait for address validation since then, 0 = none */
	uint64_t mtu_at;      /* an MTU probe counts as lost then; RXW_NEVER = none is out */
	struct rxw_txent ent_own[3];
};

/* `now`: ns. Seeds RTT, window, reordering and MTU with what is known of the peer. */
void rxw_sendq_init(struct rxw_pcall *p, uint64_t now);
/* All in flight is lost: the client moved, to another host perhaps. */
void rxw_sendq_moved(struct rxw_pcall *p, bool same_host, uint64_t now);
/* The peer offers wide windows: over a long path the congestion window may exceed 255 packets. */
void rxw_sendq_widen(struct rxw_pcall *p, uint64_t now);
/* All: the call is over, or the peer has everything. rxw_sendq_release() releases the runs. */
void rxw_sendq_clear(struct rxw_pcall *p);
/* Release up to `most` runs of a queue that was cleared. False: others are left. */
bool rxw_sendq_release(struct rxw_pcall *p, unsigned most);
void rxw_sendq_stop(struct rxw_pcall *p);  /* the call failed: no PING is expected any more */
/* The peer has all that was sent: release it, and wake a writer that waits or may write no more. */
void rxw_sendq_all_acked(struct rxw_pcall *p, struct rxw_out *out);
/* Count the call as one that shares the path; its rate if the path limits it, else 0. */
void rxw_sendq_count_sender(struct rxw_pcall *p, bool sender);
void rxw_sendq_share(struct rxw_pcall *p, uint64_t rate);
/* Append a run; takes over its reference if true. False: out of memory. */
bool rxw_sendq_append(struct rxw_pcall *p, const struct rxw_txrun *run);
/*
 * Cut the next run into datagrams of `size`, if they are larger, and seal it for the numbers it has
 * now. Packets of a class that cannot unseal stay as they are. -RXW_ENOMEM: nothing may be sent now. Another error: the
 * call must fail.
 */
int rxw_sendq_fit(struct rxw_pcall *p, uint32_t size);
/* The same for the next packet alone, unless it is the whole stream and was not cut before. */
int rxw_sendq_fit_first(struct rxw_pcall *p, uint32_t size);
/* Packets from `from` on, none of them acknowledged and none in a burst, count as never sent. */
void rxw_sendq_unsend(struct rxw_pcall *p, uint32_t from);
void rxw_sendq_rest(struct rxw_pcall *p, uint64_t now); /* after a pause: gives memory back */
/* Get memory for a wide window. A writer that has to wait now is to be told when it may resume. */
void rxw_sendq_note_high(struct rxw_pcall *p);
/* Wake a writer that was told to wait, if it may resume. */
void rxw_sendq_tell_writer(struct rxw_pcall *p, struct rxw_out *out);
uint32_t rxw_pcall_queued(const struct rxw_pcall *p); /* packets not acknowledged */
uint32_t rxw_pcall_ready(const struct rxw_pcall *p);  /* of those, never sent */
/* False: the writer should wait, from the high-water mark until the low-water mark. */
bool rxw_pcall_writable(const struct rxw_pcall *p);
/* A high-water mark for this call below that of the endpoint, in packets. */
void rxw_pcall_limit_queue(struct rxw_pcall *p, uint32_t packets);
/* All that was pushed, LAST_PACKET included, is acknowledged. */
bool rxw_pcall_send_complete(const struct rxw_pcall *p);
/* Sequence number of the next packet pushed. */
uint32_t rxw_pcall_next_seq(const struct rxw_pcall *p);
/* --- scoreboard --- */
static inline struct rxw_txent *rxw_sendq_ent(const struct rxw_sendq *q, uint16_t index)
{
	return (struct rxw_txent *)rxw_slab_at(&q->ents, index);
}
/* Packets [first, first + count), which share a state, change it. Doubted: see struct rxw_sent. */
void rxw_sendq_set(struct rxw_sendq *q, uint32_t first, uint32_t count, enum rxw_txstate state,
		   bool doubted);
/*
 * The peer has dropped packets that it had acknowledged, or has them again, although they were not sent again. These
 * are the packets from `first` on that have a bit.
 */
void rxw_sendq_dropped(struct rxw_sendq *q, uint32_t first, uint64_t bits);
void rxw_sendq_regained(struct rxw_sendq *q, uint32_t first, uint64_t bits);
void rxw_sendq_lose_from(struct rxw_sendq *q, uint32_t seq); /* all in flight, from there on */
/* `count` packets from nxt on are sent for the first time; there is space for them in q->sent. */
struct rxw_txseg *rxw_sendq_add(struct rxw_sendq *q, uint32_t count, uint32_t serial, bool marked,
				uint64_t now);
/* A part that is lost or in flight is sent again. */
struct rxw_txseg *rxw_sendq_add_again(struct rxw_sendq *q, const struct rxw_txpart *part,
				      uint32_t serial, uint64_t now);
/* Packets below `first` are acknowledged: release them. */
void rxw_sendq_free_below(struct rxw_pcall *p, uint32_t first);
void rxw_sendq_free_sent(struct rxw_sendq *q, uint32_t first); /* what is known of them only */
/* Drop what is known of the packets from `seq` on, none of which is in a burst. */
void rxw_sendq_forget_from(struct rxw_sendq *q, uint32_t seq);

/* The probe send_state: the state of a sender, and what limits it. After every change of that. */
static inline void rxw_sendq_probe(const struct rxw_pcall *p, const struct rxw_sendq *q)
{
	RXW_PROBE(send_state, p, q->end - q->nxt, (int32_t)(q->edge - q->nxt), q->flight, q->lost,
		  (int)q->all_queued);
}

#endif
