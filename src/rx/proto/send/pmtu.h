/* SPDX-License-Identifier: BSD-2-Clause */
/* Sending: the path MTU, and packets that are too large for it (rx-protocol 5.5); see pmtu.c. */
#ifndef RXW_PROTO_SEND_PMTU_H
#define RXW_PROTO_SEND_PMTU_H

#include "proto/send/sendq.h"

enum rxw_burst_result {
	RXW_BURST_READY, /* *burst is filled */
	RXW_BURST_NONE,	 /* nothing may be sent now: window, nothing queued, thresholds */
	RXW_BURST_PACED, /* not before *not_before */
	RXW_BURST_BUSY,	 /* the bytes are in a burst: wait for rxw_pcall_burst_done() */
	/* of rxw_send_burst() only: */
	RXW_BURST_IDLE,	 /* nothing to send, and nothing changed */
	RXW_BURST_FAILED /* the call must fail */
};

/* Packets were acknowledged: send a probe for a larger MTU, if one is due. */
void rxw_send_search(struct rxw_pcall *p, struct rxw_out *out);
/* A PING was answered, which may be a probe, or one of a check. */
void rxw_send_probe_answered(struct rxw_pcall *p, const struct rxw_ping *ping, uint64_t now);
/*
 * The path may have become a black hole: do large packets still arrive? Progress ends the check if
 * it proves that they do. False: no PINGs could be sent, or there is no search.
 */
bool rxw_send_check_path(struct rxw_pcall *p, struct rxw_out *out);
void rxw_send_check_progress(struct rxw_pcall *p, uint64_t now);
/* Of a check, in calls whose `mtu` is enabled; RXW_NEVER = none. */
uint64_t rxw_send_check_deadline(const struct rxw_pcall *p);
void rxw_send_path_timer(struct rxw_pcall *p, struct rxw_out *out);
/* Packets of `size` are sent from now on: convert windows and rates to that. */
void rxw_send_resize(struct rxw_sendq *q, uint32_t size);
/* Packets in flight, and `newly` acknowledged ones, `old` of them smaller, as packets of that size. */
uint32_t rxw_send_mixed_flight(const struct rxw_sendq *q);
static inline uint32_t rxw_send_flight(const struct rxw_sendq *q)
{
	return q->units.old == 0 ? q->flight : rxw_send_mixed_flight(q);
}
uint32_t rxw_send_credit(struct rxw_sendq *q, uint32_t newly, uint32_t old);
/* Packets of that size that were delivered since this one was sent; 0 = unknown. */
uint32_t rxw_send_delivered(const struct rxw_sendq *q, const struct rxw_txseg *s);
/* The peer's rates are those of packets of the default size. */
uint64_t rxw_send_rate_to(const struct rxw_pcall *p, uint64_t rate);
uint64_t rxw_send_rate_from(const struct rxw_pcall *p, uint64_t rate);

/* The size has become smaller: other calls follow, and this one searches for a larger one, whoever searched before. */
void rxw_send_fallen(struct rxw_pcall *p, uint64_t now);
/* The path carries less than that: a smaller size for packets. False: it is the least already. */
bool rxw_send_shrink(struct rxw_pcall *p, struct rxw_out *out);
/* Write a PING. Returns its serial, 0 = not written. */
uint32_t rxw_send_ask(struct rxw_pcall *p, uint32_t size, struct rxw_out *out);

/* --- packets that were sent before the path MTU fell --- */

/* The size has become smaller: packets that were sent leave one at a time, or are cut anew. */
void rxw_send_renumber(struct rxw_pcall *p);
/* A timeout: ask for the peer's state if the lowest missing packet is too large. */
void rxw_send_in_vain(struct rxw_pcall *p, struct rxw_out *out);
/* Before a burst, do so if it is due: READY; BUSY: a burst uses the bytes; FAILED: no hope. */
enum rxw_burst_result rxw_send_renumber_now(struct rxw_pcall *p);
enum rxw_ack_check {
	RXW_ACK_GOOD,
	RXW_ACK_OLD,	 /* to be ignored */
	RXW_ACK_INVALID, /* acknowledges what was never sent */
	RXW_ACK_RESET,	 /* the server does not know the call any more */
	RXW_ACK_WHOLE,	 /* the server has the request, which was cut anew */
	RXW_ACK_MIXED	 /* the peer has a packet that was cut anew: the call must fail */
};
/* Does an ACK show that a packet with an old number arrived after all? */
enum rxw_ack_check rxw_send_check_renumbered(struct rxw_pcall *p, const struct rxw_ack *ack);
/*
 * The end of the window in which packets may be sent; the peer allows those below `edge`. To be called after
 * each hard acknowledgement.
 */
uint32_t rxw_send_edge(struct rxw_sendq *q, uint32_t edge);
/* It does not arrive, and can be neither cut nor left out: the call must fail. */
bool rxw_send_too_large(const struct rxw_pcall *p);

#endif
