/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets that were sent are too large for the path (rx-protocol 5.5). A packet number means certain bytes
 * of the stream, so the packets are cut into smaller ones, with new numbers, only if the peer has none of
 * them: a PING of the new size asks for that after all of them were sent. If one of them arrives later
 * nevertheless, the call ends: the peer would take it for the new packet of its number.
 */
#include "proto/state.h"

#define TRIES	   3u /* PINGs of one size */
#define IN_VAIN	   5u /* transmissions of a packet in fragments */
#define MOST_TRIES 16u

/* Is a packet too large that the peer has not acknowledged, and behind all that it has? */
static bool has_large_tail(const struct rxw_pcall *p)
{
	const struct rxw_sendq *q = &p->tx;
	const struct rxw_security_class *k = &p->conn->auth.security->class;
	uint32_t size = rxw_pcall_datagram_size(p), from = rxw_sendq_highest_acked(q) + 1;

	if (from >= q->nxt || (k->seal != NULL && k->unseal == NULL))
		return false;
	for (uint16_t i = q->ent_head; i != RXW_NO_NODE; i = rxw_sendq_ent(q, i)->next) {
		const struct rxw_txent *e = rxw_sendq_ent(q, i);

		if (e->first >= q->nxt)
			return false;
		if (e->first + e->count > from && (e->count > 1 ? e->stride : e->last_size) > size)
			return true;
	}
	return false;
}

static void ask(struct rxw_pcall *p, struct rxw_out *out)
{
	struct rxw_renumber *r = &p->tx.renumber;

	r->ping = rxw_send_ask(p, rxw_pcall_datagram_size(p), out);
	r->at = out->now + rxw_rtt_rto(&p->tx.rtt, 0, r->tries);
	r->tries += r->tries < MOST_TRIES;
}

void rxw_send_renumber(struct rxw_pcall *p, struct rxw_out *out)
{
	struct rxw_sendq *q = &p->tx;
	struct rxw_renumber *r = &q->renumber;

	if (!has_large_tail(p))
		return;
	r->tries = 0;
	if (q->heard || !p->client) {
		r->state = RXW_RENUMBER_ASKING;
		ask(p, out);
	} else {
		/* A server that has heard nothing of the call answers no PING. */
		r->state = RXW_RENUMBER_READY;
	}
}

void rxw_send_renumber_answered(struct rxw_pcall *p, uint32_t serial)
{
	struct rxw_renumber *r = &p->tx.renumber;

	if (r->state == RXW_RENUMBER_ASKING && serial == r->ping)
		r->state = RXW_RENUMBER_READY;
}

void rxw_send_renumber_progress(struct rxw_pcall *p, uint64_t now)
{
	struct rxw_sendq *q = &p->tx;
	struct rxw_renumber *r = &q->renumber;

	/* Packets arrive after all: others may follow. */
	if (r->state != RXW_RENUMBER_NONE && !has_large_tail(p)) {
		r->state = RXW_RENUMBER_NONE;
	} else if (r->state != RXW_RENUMBER_NONE) {
		r->state = RXW_RENUMBER_ASKING;
		r->ping = 0;
		r->tries = 0;
		r->at = now + rxw_rtt_rto(&q->rtt, 0, 0);
	}
	if (r->to != 0 && (q->una >= r->to || (q->nxt >= r->to && q->flight + q->lost == 0))) {
		r->to = 0;
		q->edge = q->una + q->window;
	}
}

void rxw_send_renumber_timer(struct rxw_pcall *p, struct rxw_out *out)
{
	struct rxw_renumber *r = &p->tx.renumber;

	if (r->state != RXW_RENUMBER_ASKING || out->now < r->at)
		return;
	if (!has_large_tail(p)) {
		r->state = RXW_RENUMBER_NONE;
		return;
	}
	/* The peer answers no PING of this size, either. */
	if (r->tries >= TRIES && rxw_send_shrink(p, out))
		r->tries = 0;
	ask(p, out);
}

enum rxw_burst_result rxw_send_renumber_now(struct rxw_pcall *p)
{
	struct rxw_sendq *q = &p->tx;
	struct rxw_renumber *r = &q->renumber;
	uint32_t from = rxw_sendq_highest_acked(q) + 1, to = q->nxt;

	if (r->state != RXW_RENUMBER_READY)
		return RXW_BURST_READY;
	if (from >= to) {
		r->state = RXW_RENUMBER_NONE;
		return RXW_BURST_READY;
	}
	if (rxw_sent_is_busy(&q->sent, from))
		return RXW_BURST_BUSY;
	if (!rxw_sendq_unsend(p, from))
		return RXW_BURST_FAILED;
	r->state = RXW_RENUMBER_NONE;
	r->from = from;
	r->to = rxw_max32(r->to, to);
	r->serial = p->conn->serial;
	q->edge = rxw_send_edge(q, q->edge);
	q->stuck_since = 0;
	q->probe = q->probed = false;
	q->requested_last = false;
	return RXW_BURST_READY;
}

/* The highest packet that an ACK acknowledges. */
static uint32_t highest_of(const struct rxw_ack *ack)
{
	if (ack->count > RXW_MAX_ACKS || ack->tail > 0 || ack->part > 0)
		return ack->previous;
	for (uint32_t i = ack->count; i > 0; i--)
		if (rxw_ack_has(ack, i - 1))
			return ack->first + i - 1;
	return ack->first - 1;
}

/* Does the serial name the first transmission of a packet that has a number anew? */
static bool names_first(const struct rxw_sendq *q, uint32_t serial)
{
	const struct rxw_txseg *s = rxw_sent_find_serial(&q->sent, serial);
	uint32_t seq;

	if (s == NULL || s->prev_order != 0)
		return false;
	seq = s->first + (serial - s->serial);
	return seq >= q->una && seq >= q->renumber.from && seq < q->renumber.to &&
	       rxw_sent_order(&q->sent, seq) == s->order + (serial - s->serial) &&
	       rxw_sent_state(&q->sent, seq) != RXW_TX_ACKED;
}

bool rxw_send_mixed(const struct rxw_pcall *p, const struct rxw_ack *ack)
{
	const struct rxw_sendq *q = &p->tx;
	const struct rxw_renumber *r = &q->renumber;

	if (r->to == 0)
		return false;
	return highest_of(ack) >= q->nxt ||
	       (ack->reason == RXW_ACK_DUPLICATE && names_first(q, ack->serial));
}

uint32_t rxw_send_edge(const struct rxw_sendq *q, uint32_t edge)
{
	return q->renumber.to != 0 ? rxw_min32(edge, q->renumber.to) : edge;
}

bool rxw_send_in_vain(struct rxw_pcall *p, const struct rxw_txent *e, uint32_t seq)
{
	struct rxw_renumber *r = &p->tx.renumber;

	if (seq != p->tx.una || e->stride <= rxw_pcall_datagram_size(p))
		return false;
	if (seq != r->head)
		r->in_vain = 0;
	r->head = seq;
	return ++r->in_vain > IN_VAIN;
}

bool rxw_send_too_large(const struct rxw_pcall *p)
{
	return p->tx.renumber.in_vain > IN_VAIN;
}
