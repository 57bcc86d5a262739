/* SPDX-License-Identifier: BSD-2-Clause */
/* The scoreboard: what became of the packets that were sent. */
#include <assert.h>

#include "proto/state.h"

static uint32_t *tally(struct rxw_sendq *q, unsigned state)
{
	return state == RXW_TX_FLIGHT ? &q->flight : state == RXW_TX_ACKED ? &q->acked : &q->lost;
}

/* Packets leave a state, or enter it. In flight, those of an earlier size count separately. */
static void count_packets(struct rxw_sendq *q, uint32_t first, uint32_t n, unsigned state,
			  bool more)
{
	uint32_t old = first < q->units.from ? rxw_min32(n, q->units.from - first) : 0;

	*tally(q, state) += more ? n : -n;
	if (state == RXW_TX_FLIGHT)
		q->units.old += more ? old : -old;
}

/* Each packet that was sent and is not acknowledged for good has one state. Few branches: an ACK changes thousands. */
static __attribute__((noinline)) void assert_counts(const struct rxw_sendq *q)
{
	uint32_t sent = q->nxt - q->una;

	assert((q->una <= q->nxt) & (q->nxt <= q->end));
	assert((q->flight <= sent) & (q->acked <= sent) & (q->lost <= sent) &
	       (q->flight + q->acked + q->lost == sent) & (q->units.old <= q->flight));
}

void rxw_sendq_set(struct rxw_sendq *q, uint32_t first, uint32_t n, enum rxw_txstate state,
		   bool doubted)
{
	assert((state != RXW_TX_FLIGHT) & (n > 0));
	assert((first >= q->una) & (first + n <= q->nxt));
	count_packets(q, first, n, rxw_sent_state(&q->sent, first), false);
	count_packets(q, first, n, state, true);
	if (state == RXW_TX_LOST)
		rxw_sent_lost(&q->sent, first, n, doubted);
	else
		rxw_sent_acked(&q->sent, first, n);
	assert_counts(q);
}

void rxw_sendq_dropped(struct rxw_sendq *q, uint32_t first, uint64_t bits)
{
	uint32_t n = (uint32_t)__builtin_popcountll(bits);

	rxw_bitmap_set_word(&q->sent.lost, first, bits);
	q->acked -= n;
	q->lost += n;
	assert_counts(q);
}

void rxw_sendq_regained(struct rxw_sendq *q, uint32_t first, uint64_t bits)
{
	uint32_t n = (uint32_t)__builtin_popcountll(bits);

	rxw_bitmap_clear_word(&q->sent.lost, first, bits);
	rxw_bitmap_clear_word(&q->sent.doubted, first, bits);
	q->lost -= n;
	q->acked += n;
	assert_counts(q);
}

/* Note what a sample of the rate needs of a transmission that leaves now. */
static void stamp_transmission(struct rxw_sendq *q, struct rxw_txseg *s, uint64_t now)
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
	s->busy = true;
}

struct rxw_txseg *rxw_sendq_add(struct rxw_sendq *q, uint32_t n, uint32_t serial, bool marked,
				uint64_t now)
{
	struct rxw_txseg *s = rxw_sent_add(&q->sent, q->nxt, n, q->order + 1, serial);
	const struct rxw_txent *e = rxw_sendq_ent(q, q->ent_send);

	assert(q->ent_send != RXW_NO_NODE);
	assert(q->nxt - e->first < e->count);
	stamp_transmission(q, s, now);
	s->marked = marked ? RXW_ECN_MARKED : RXW_ECN_UNMARKED;
	s->ent = q->ent_send;
	count_packets(q, q->nxt, n, RXW_TX_FLIGHT, true);
	q->order += n;
	q->nxt += n;
	if (e->first + e->count <= q->nxt) {
		q->ent_send = e->next;
		if (e->next != RXW_NO_NODE)
			rxw_sendq_ent(q, e->next)->first = q->nxt;
	}
	assert_counts(q);
	return s;
}

struct rxw_txseg *rxw_sendq_add_again(struct rxw_sendq *q, const struct rxw_txpart *part,
				      uint32_t serial, uint64_t now)
{
	struct rxw_txseg old = *part->seg, *s;

	s = rxw_sent_add(&q->sent, part->first, part->count, q->order + 1, serial);
	stamp_transmission(q, s, now);
	count_packets(q, part->first, part->count, part->state, false);
	s->marked = old.marked != RXW_ECN_UNMARKED ? RXW_ECN_RESENT : RXW_ECN_UNMARKED;
	s->ent = old.ent;
	s->prev_order = part->order;
	/* What did not leave is not sent again. */
	if (part->never_left) {
		s->marked = old.marked;
		s->prev_order =
			old.prev_order != 0 ? old.prev_order + (part->first - old.first) : 0;
	}
	count_packets(q, part->first, part->count, RXW_TX_FLIGHT, true);
	q->order += part->count;
	assert_counts(q);
	return s;
}

void rxw_sendq_free_sent(struct rxw_sendq *q, uint32_t first)
{
	uint32_t end;

	for (uint32_t seq = q->una; seq < first; seq = end) {
		end = rxw_sent_same(&q->sent, seq, first);
		count_packets(q, seq, end - seq, rxw_sent_state(&q->sent, seq), false);
	}
	if (first > q->una)
		rxw_sent_forget(&q->sent, q->una, first);
}

void rxw_sendq_forget_from(struct rxw_sendq *q, uint32_t seq)
{
	for (uint32_t at = seq; at < q->nxt;) {
		struct rxw_txpart part = rxw_sent_part(&q->sent, at, q->nxt);

		count_packets(q, part.first, part.count, part.state, false);
		if (part.state == RXW_TX_FLIGHT && part.seg->marked == RXW_ECN_MARKED)
			rxw_ecn_lost(&q->ecn, part.order, part.count);
		at += part.count;
	}
	rxw_sent_forget_from(&q->sent, seq, q->nxt);
}

void rxw_sendq_lose_from(struct rxw_sendq *q, uint32_t seq)
{
	uint32_t end;

	seq = rxw_max32(seq, q->una);
	for (; (seq = rxw_bitmap_next(&q->sent.flight, seq, q->nxt, true)) < q->nxt; seq = end) {
		end = rxw_sent_same(&q->sent, seq, q->nxt);
		rxw_sendq_set(q, seq, end - seq, RXW_TX_LOST, false);
	}
}
