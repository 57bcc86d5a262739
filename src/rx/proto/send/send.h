/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sending: transmission, ACKs received, losses, retransmission timers (rx-protocol 3.2, 4, 6.7).
 * The module changes a call's `tx` and `proof`, and returns to the call module what else follows.
 */
#ifndef RXW_PROTO_SEND_H
#define RXW_PROTO_SEND_H

#include "proto/send/pmtu.h"
#include "proto/send/sendq.h"

/*
 * The address validation of a call: PINGs to an address that is not validated, until one is
 * answered. Invariant: `at` is meaningful only while the call or its queued bytes (tx.proof_since)
 * wait for that.
 */
struct rxw_proof {
	uint64_t at;   /* next PING, or next check; RXW_NEVER = none */
	uint8_t pings; /* sent unsolicited, less those that the peer's own PINGs allow */
};

/* --- transmission --- */

/*
 * Size of the datagrams to build now, header included: within our, the path's and the peer's
 * limits.
 */
uint32_t rxw_pcall_datagram_size(const struct rxw_pcall *p);
/* Would rxw_pcall_burst() yield something by the thresholds? */
bool rxw_pcall_sendable(const struct rxw_pcall *p, uint64_t now);
/* Send what is queued up to here regardless of thresholds: flush, end of the stream. */
void rxw_pcall_flush(struct rxw_pcall *p, struct rxw_out *out);
/*
 * The same for what the windows allow now: the writer waits for space. What they allow later is
 * subject to the thresholds again; else each small ACK would trigger a small burst, and that a
 * small ACK.
 */
void rxw_pcall_flush_window(struct rxw_pcall *p, struct rxw_out *out);
/* Packets that the congestion window allows beyond those in flight. */
uint32_t rxw_send_cwnd_room(const struct rxw_pcall *p);
/* A run was queued: post RXW_OUT_SEND, or hold it back. True: the deadline has changed. */
bool rxw_send_pushed(struct rxw_pcall *p, struct rxw_out *out);
/* Post RXW_OUT_SEND if something can be sent now, else set the time at which it can. */
void rxw_send_schedule(struct rxw_pcall *p, struct rxw_out *out);
/* The part of rxw_pcall_burst() and rxw_pcall_burst_done() that changes the queue (proto/conn/call.h). */
enum rxw_burst_result rxw_send_burst(struct rxw_pcall *p, unsigned max_packets,
				     struct rxw_burst *burst, uint64_t *not_before,
				     struct rxw_out *out);
void rxw_send_burst_done(struct rxw_pcall *p, const struct rxw_burst *burst, unsigned sent,
			 int error, uint64_t now);

/* --- what observers see of a sender --- */

/* ns between two packets in the mean; 0: not paced. */
uint64_t rxw_send_interval(const struct rxw_pcall *p);
/*
 * Are lost packets paced, as new ones are? Where a model of the path has a small window, they would be most of what
 * overflows its queue.
 */
static inline bool rxw_send_paces_lost(const struct rxw_sendq *q)
{
	return q->paced || (q->cc.ops->sample != NULL && q->cc.cwnd <= RXW_MAX_ACKS);
}
/* They may leave from then on: of a model, by a millisecond early, since a few need not wait for a train of new ones. */
static inline uint64_t rxw_send_lost_at(const struct rxw_sendq *q)
{
	uint64_t early = q->paced ? 0 : RXW_MS;

	return rxw_send_paces_lost(q) && q->pace_at > early ? q->pace_at - early : 0;
}
/* Is the path short (rxw_peer_is_near()), without losses? Pacing would not help then. */
bool rxw_send_short_path(const struct rxw_pcall *p);
/* "timeout", "recovery", or that of rxw_cc_phase(). Static. */
const char *rxw_send_phase(const struct rxw_pcall *p);

/* --- address validation: see proof.c --- */

void rxw_proof_init(struct rxw_pcall *p);
/*
 * Ask the address for a proof: with a PING now if it may be sent one, else as soon as it may.
 * *since is set to the time, never 0. False: the output record is full, nothing was done.
 */
bool rxw_proof_ask(struct rxw_pcall *p, uint64_t *since, struct rxw_out *out);
/*
 * Ask again; `backoff` as for a retransmission. Sets the next time, `latest` at most. True: a PING
 * was sent.
 */
bool rxw_proof_ask_again(struct rxw_pcall *p, uint64_t since, unsigned backoff, uint64_t latest,
			 struct rxw_out *out);
/* One more PING to the address, if it may be sent unsolicited. */
bool rxw_proof_ping(struct rxw_pcall *p, struct rxw_out *out);
/* The peer sent a PING: it may be sent one more. */
void rxw_proof_pinged(struct rxw_pcall *p);
/* The address is validated: send what waited for that. */
void rxw_send_validated(struct rxw_pcall *p, struct rxw_out *out);
/*
 * How many packets of an entry, [first, first + n), the address may be sent; asks for a proof if 0.
 */
uint32_t rxw_proof_limit(struct rxw_pcall *p, const struct rxw_txent *e, uint32_t first, uint32_t n,
			 struct rxw_out *out);

/*
 * Has the server sent the whole reply? The client may then begin its next call at any moment. OpenAFS
 * 1.8 lets it do so while it answers a PING, and then applies the acknowledgement in that PING to the
 * new call, which fails. So no PING is sent from here on, unless an ACK is overdue, or all is
 * acknowledged (6.7).
 */
bool rxw_send_reply_sent(const struct rxw_pcall *p);

/* --- packets and timers --- */

enum rxw_ack_check rxw_send_check_ack(const struct rxw_pcall *p, const struct rxw_ack *ack,
				      uint64_t now);
/* News in an ACK. */
enum rxw_acked {
	RXW_ACKED_NEW = 1,  /* packets that were not acknowledged before */
	RXW_ACKED_PROOF = 2 /* it names a PING with a secret serial: the address is valid */
};
/* An ACK is about to change the windows. */
void rxw_send_before_ack(struct rxw_pcall *p);
/* `waited`: ns that it was in our socket's queue; 0 = unknown. */
unsigned rxw_send_ack(struct rxw_pcall *p, const struct rxw_ack *ack, uint32_t serial,
		      uint64_t waited, struct rxw_out *out);
/* Reply DATA arrived: the server took the call. */
void rxw_send_heard(struct rxw_pcall *p);
/* ACKALL: everything sent is acknowledged. */
void rxw_send_ack_all(struct rxw_pcall *p, uint64_t now);
/* BUSY: everything is lost; send the first packet again after a delay. False: ignored. */
bool rxw_send_busy(struct rxw_pcall *p, uint64_t now);
/*
 * Trace event and probe, if congestion control or the peer has set another window than these; the
 * event also if the phase is another one than in the latest event.
 */
void rxw_send_window_event(struct rxw_pcall *p, const struct rxw_out *out, uint32_t cwnd,
			   uint32_t window);
/* If the state of ECN has changed: keep a verdict for later calls, and count a failure. */
void rxw_send_note_ecn(struct rxw_pcall *p, const struct rxw_out *out);
/* The call has lost packets, or seems to have. */
void rxw_send_note_loss(struct rxw_sendq *q);
/* Keep the threshold of slow start for later calls of the peer. */
void rxw_send_note_ssthresh(const struct rxw_pcall *p, uint64_t now);
/*
 * Packets that were declared lost had only been late: how many of the latest loss event, of a part whose original
 * transmission began with `order`, or of packet k that was sent again in burst i of q->resent.
 */
uint32_t rxw_send_needless(struct rxw_sendq *q, const struct rxw_txpart *part, uint32_t order);
uint32_t rxw_send_needless_named(struct rxw_sendq *q, unsigned i, uint32_t k);
/* So many more of them are known: true if nothing of the loss event is left. */
bool rxw_send_refuted(struct rxw_sendq *q, uint32_t packets);
/* Packets counted as lost had arrived, `distance` packets late; `undo`: and so had all of them. */
void rxw_send_spurious(struct rxw_pcall *p, uint32_t distance, bool undo, struct rxw_out *out);
/* Declare losses; `flight`: packets in flight before the ACK or timer that found them. */
void rxw_send_find_losses(struct rxw_pcall *p, uint32_t flight, struct rxw_out *out);
uint64_t rxw_send_peer_delay(const struct rxw_pcall *p); /* ns that the peer may delay an ACK */
/* With packets not acknowledged: when the timer is to run; RXW_NEVER = no need. */
uint64_t rxw_send_deadline(const struct rxw_pcall *p, uint64_t now);
void rxw_send_timer(struct rxw_pcall *p, struct rxw_out *out);
/*
 * The peer leaves a PING without an answer. If our first packet has a soft ACK only, the peer may have dropped what it
 * has soft-acked, or the call (RFC 2018, section 8): all packets in flight or soft-acked are sent again.
 */
void rxw_send_unanswered(struct rxw_pcall *p, struct rxw_out *out);
/* The peer was BUSY, or the lowest packet missing, for too long: the call times out. */
bool rxw_send_gave_up(const struct rxw_pcall *p, uint64_t now);
/* This process was stopped until now (> 0): that time begins again. */
void rxw_send_excuse(struct rxw_pcall *p, uint64_t now);

#endif
