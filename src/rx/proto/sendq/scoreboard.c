/* SPDX-License-Identifier: BSD-2-Clause */
/* The scoreboard: what became of the packets that were sent. */
#include "proto/state.h"

static uint32_t *tally(struct rxw_sendq *q, unsigned state)
{
	return state == RXW_TX_FLIGHT ? &q->flight : state == RXW_TX_ACKED ? &q->acked : &q->lost;
}

/* Bursts and first_lost() may still name it: they look at `token` and `lost_at`. */
static void drop_segment(struct rxw_sendq *q, uint16_t i)
{
	rxw_sendq_seg(q, i)->token = 0;
	if (q->lost_at == i)
		q->lost_at = RXW_NO_NODE;
	rxw_slab_put(&q->segs, i);
}

/* Packets of a segment leave the flight, or are in it again. */
static void weigh(struct rxw_sendq *q, const struct rxw_txseg *s, unsigned state, uint32_t n,
		  bool more)
{
	if (state == RXW_TX_FLIGHT && s->first < q->units.from)
		q->units.old += more ? n : -n;
}

void rxw_sendq_set(struct rxw_sendq *q, struct rxw_txseg *s, enum rxw_txstate state)
{
	weigh(q, s, s->state, s->count, false);
	weigh(q, s, state, s->count, true);
	if (state == RXW_TX_LOST && q->lost_at != RXW_NO_NODE &&
	    s->first < rxw_sendq_seg(q, q->lost_at)->first)
		q->lost_at = RXW_NO_NODE;
	*tally(q, s->state) -= s->count;
	*tally(q, state) += s->count;
	s->state = (uint8_t)state;
}

uint16_t rxw_sendq_split(struct rxw_pcall *p, uint32_t seq)
{
	return rxw_sendq_split_at(p, p->tx.seg_head, seq);
}

uint16_t rxw_sendq_split_at(struct rxw_pcall *p, uint16_t i, uint32_t seq)
{
	struct rxw_sendq *q = &p->tx;
	uint16_t fresh;
	struct rxw_txseg *a, *b;
	uint32_t k;

	for (; i != RXW_NO_NODE; i = a->next) {
		a = rxw_sendq_seg(q, i);
		if (seq == a->first)
			return i;
		if (seq - a->first < a->count)
			break;
	}
	if (i == RXW_NO_NODE)
		return RXW_NO_NODE;
	fresh = rxw_slab_get(&q->segs, p->conn->ops->pool(p->conn));
	if (fresh == RXW_NO_NODE)
		return RXW_NO_NODE;
	a = rxw_sendq_seg(q, i);
	b = rxw_sendq_seg(q, fresh);
	*b = *a;
	k = seq - a->first;
	b->first += k;
	b->count -= k;
	b->order += k;
	b->serial += k;
	if (b->prev_serial != 0) {
		b->prev_order += k;
		b->prev_serial += k;
	}
	a->count = k;
	a->next = fresh;
	if (q->seg_tail == i)
		q->seg_tail = fresh;
	return fresh;
}

void rxw_sendq_stamp(struct rxw_sendq *q, struct rxw_txseg *s, uint64_t now)
{
	if (q->flight == 0) {
		q->rate.began_at = q->rate.delivered_at = now;
		q->rate.began_order = q->order;
		q->check.progress_at = now;
		q->check.asked = false;
	}
	s->sent_at = now;
	s->delivered_at = q->rate.delivered_at;
	s->began_at = q->rate.began_at;
	s->began_order = q->rate.began_order;
	s->delivered = q->rate.delivered;
	s->flight = q->flight + s->count;
	s->limited = q->rate.limited_to != 0;
}

bool rxw_sendq_add(struct rxw_pcall *p, uint32_t count, uint32_t serial, bool marked, uint64_t now)
{
	struct rxw_sendq *q = &p->tx;
	uint16_t i = rxw_slab_get(&q->segs, p->conn->ops->pool(p->conn));
	struct rxw_txseg *s;

	if (i == RXW_NO_NODE)
		return false;
	s = rxw_sendq_seg(q, i);
	*s = (struct rxw_txseg){
		.first = q->nxt,
		.count = count,
		.order = q->order + 1,
		.serial = serial,
		.token = q->token,
		.next = RXW_NO_NODE,
		.state = RXW_TX_FLIGHT,
		.marked = marked ? RXW_ECN_MARKED : RXW_ECN_UNMARKED,
	};
	rxw_sendq_stamp(q, s, now);
	if (q->seg_tail == RXW_NO_NODE)
		q->seg_head = i;
	else
		rxw_sendq_seg(q, q->seg_tail)->next = i;
	q->seg_tail = i;
	q->order += count;
	q->nxt += count;
	q->flight += count;
	if (q->ent_send != RXW_NO_NODE &&
	    rxw_sendq_ent(q, q->ent_send)->first + rxw_sendq_ent(q, q->ent_send)->count <= q->nxt)
		q->ent_send = rxw_sendq_ent(q, q->ent_send)->next;
	return true;
}

void rxw_sendq_free_segs(struct rxw_sendq *q, uint32_t first)
{
	while (q->seg_head != RXW_NO_NODE) {
		uint16_t i = q->seg_head;
		struct rxw_txseg *s = rxw_sendq_seg(q, i);
		uint32_t n;

		if (s->first >= first)
			break;
		n = rxw_min32(s->count, first - s->first);
		*tally(q, s->state) -= n;
		weigh(q, s, s->state, n, false);
		if (n < s->count) {
			s->first += n;
			s->count -= n;
			s->order += n;
			s->serial += n;
			if (s->prev_serial != 0) {
				s->prev_order += n;
				s->prev_serial += n;
			}
			break;
		}
		q->seg_head = s->next;
		if (q->seg_head == RXW_NO_NODE)
			q->seg_tail = RXW_NO_NODE;
		drop_segment(q, i);
	}
}

bool rxw_sendq_forget_from(struct rxw_pcall *p, uint32_t seq)
{
	struct rxw_sendq *q = &p->tx;
	uint16_t i = rxw_sendq_split(p, seq), next, before = RXW_NO_NODE;

	if (i == RXW_NO_NODE)
		return false;
	for (next = q->seg_head; next != i; next = rxw_sendq_seg(q, next)->next)
		before = next;
	for (; i != RXW_NO_NODE; i = next) {
		struct rxw_txseg *s = rxw_sendq_seg(q, i);

		next = s->next;
		*tally(q, s->state) -= s->count;
		weigh(q, s, s->state, s->count, false);
		if (s->state == RXW_TX_FLIGHT && s->marked == RXW_ECN_MARKED)
			rxw_ecn_lost(&q->ecn, s->order, s->count);
		drop_segment(q, i);
	}
	q->seg_tail = before;
	if (before == RXW_NO_NODE)
		q->seg_head = RXW_NO_NODE;
	else
		rxw_sendq_seg(q, before)->next = RXW_NO_NODE;
	return true;
}

void rxw_sendq_lose_from(struct rxw_sendq *q, uint16_t i)
{
	for (; i != RXW_NO_NODE; i = rxw_sendq_seg(q, i)->next)
		if (rxw_sendq_seg(q, i)->state == RXW_TX_FLIGHT)
			rxw_sendq_set(q, rxw_sendq_seg(q, i), RXW_TX_LOST);
}

/*
 * The second segment continues the first: same state, and same transmission, which no longer matters
 * once the packets are acknowledged.
 */
static bool continues(const struct rxw_sendq *q, const struct rxw_txseg *s,
		      const struct rxw_txseg *t)
{
	if (s->first < q->units.from && t->first >= q->units.from)
		return false;
	if (s->state == RXW_TX_ACKED && t->state == RXW_TX_ACKED && s->token == 0 && t->token == 0)
		return true;
	if (t->state != s->state || t->order != s->order + s->count ||
	    t->serial != s->serial + s->count || t->sent_at != s->sent_at || t->token != s->token ||
	    t->never_left != s->never_left || t->marked != s->marked)
		return false;
	if ((t->prev_serial != 0) != (s->prev_serial != 0))
		return false;
	return t->prev_serial == 0 || (t->prev_serial == s->prev_serial + s->count &&
				       t->prev_order == s->prev_order + s->count);
}

void rxw_sendq_join(struct rxw_sendq *q)
{
	uint16_t i = q->seg_head;

	while (i != RXW_NO_NODE) {
		struct rxw_txseg *s = rxw_sendq_seg(q, i);
		uint16_t next = s->next;

		if (next == RXW_NO_NODE)
			return;
		if (!continues(q, s, rxw_sendq_seg(q, next))) {
			i = next;
			continue;
		}
		s->count += rxw_sendq_seg(q, next)->count;
		s->next = rxw_sendq_seg(q, next)->next;
		if (q->seg_tail == next)
			q->seg_tail = i;
		drop_segment(q, next);
	}
}
