/* SPDX-License-Identifier: BSD-2-Clause */
/* Losses: packets declared lost, losses that were none, the congestion window (rx-protocol 4.4). */
#include "proto/state.h"

/* Transmissions are lost in the order of time: which are lost now. */
struct lost_now {
	const struct rxw_pcall *p;
	uint64_t now;
};

static bool is_lost(const struct lost_now *l, uint32_t order, uint64_t sent_at)
{
	return rxw_recovery_is_lost(&l->p->tx.recovery, &l->p->tx.rtt, order, sent_at, l->now,
				    NULL);
}

static bool first_is_lost(const struct rxw_txseg *s, void *arg)
{
	return is_lost(arg, s->order, s->sent_at);
}

static bool last_is_lost(const struct rxw_txseg *s, void *arg)
{
	return is_lost(arg, s->order + s->count - 1, s->sent_at);
}

/* Packets of a lower order are lost. */
static uint32_t lost_below(const struct rxw_pcall *p, uint64_t now)
{
	const struct rxw_sent *sent = &p->tx.sent;
	struct lost_now l = {p, now};
	const struct rxw_txseg *s = rxw_sent_split(sent, last_is_lost, &l);
	uint32_t low = 0, high;

	if (s == NULL)
		return p->tx.order + 1;
	if (!first_is_lost(s, &l))
		return s->order;
	for (high = s->count - 1; high - low > 1;) {
		uint32_t mid = low + (high - low) / 2;

		if (is_lost(&l, s->order + mid, s->sent_at))
			low = mid;
		else
			high = mid;
	}
	return s->order + high;
}

/* When the oldest packet in flight will be lost by time alone; RXW_NEVER: none has been overtaken. */
static uint64_t next_loss(struct rxw_pcall *p, uint64_t now)
{
	struct rxw_sendq *q = &p->tx;
	uint64_t at = 0;
	uint32_t order;

	if (!rxw_sent_oldest(&q->sent, &order) || (int32_t)(order - q->recovery.highest_order) >= 0)
		return RXW_NEVER;
	rxw_recovery_is_lost(&q->recovery, &q->rtt, order, rxw_sent_find(&q->sent, order)->sent_at,
			     now, &at);
	/* Lost already, and the latest ACK says nothing of it. */
	return at != 0 ? at : now + rxw_max64(q->rtt.srtt / 4, RXW_MS);
}

/*
 * The flight to which a reaction applies: that of a full window. Thresholds may hold packets back, and the
 * application may have sent little for a while, which says nothing against what the path carried before.
 */
static uint32_t whole_flight(const struct rxw_sendq *q, uint32_t flight)
{
	uint32_t most = rxw_max32(rxw_max32(q->peak, q->last_peak), q->carried);

	return rxw_max32(flight, rxw_min32(q->cc.cwnd, most));
}

/* A loss event. */
struct losses {
	uint32_t flight;  /* before it */
	uint32_t packets; /* declared lost now, */
	uint32_t order;	  /* from this order on */
	bool react;	  /* it is a new one */
};

static void declare_lost(struct rxw_pcall *p, const struct rxw_txpart *part, struct losses *l)
{
	struct rxw_sendq *q = &p->tx;

	rxw_sendq_set(q, part->first, part->count, RXW_TX_LOST, true);
	q->rate.lost += part->count;
	p->count.lost += part->count;
	if (part->seg->marked == RXW_ECN_MARKED && !part->once)
		rxw_ecn_lost(&q->ecn, part->order, part->count);
	if (l->packets == 0 || (int32_t)(part->order - l->order) < 0)
		l->order = part->order;
	l->packets += part->count;
	l->react |= rxw_recovery_enter(&q->recovery, part->order + part->count - 1, q->order,
				       l->flight);
}

static void lose_between(struct rxw_pcall *p, uint32_t from, uint32_t to, uint32_t below,
			 struct losses *l)
{
	struct rxw_sendq *q = &p->tx;

	while ((from = rxw_sent_before(&q->sent, from, to, below)) < to) {
		struct rxw_txpart part = rxw_sent_part(&q->sent, from, to);

		part.count = rxw_min32(part.count, below - part.order);
		declare_lost(p, &part, l);
		from += part.count;
	}
}

/* The reaction may be undone, if all of these packets were only late. */
static void note_doubt(struct rxw_sendq *q, const struct losses *l)
{
	if (l->react) {
		q->doubt = l->packets;
		q->doubt_from = l->order;
	} else if (q->doubt != 0) {
		q->doubt += l->packets;
		if ((int32_t)(l->order - q->doubt_from) < 0)
			q->doubt_from = l->order;
	}
}

void rxw_send_find_losses(struct rxw_pcall *p, uint32_t flight, struct rxw_out *out)
{
	struct rxw_sendq *q = &p->tx;
	struct losses l = {.flight = flight};
	uint32_t below = lost_below(p, out->now), from = q->una;

	/* Of these the latest ACK says nothing. */
	for (unsigned i = 0; i < 2; i++) {
		uint32_t to = rxw_min32(rxw_max32(q->untold[i].from, from), q->nxt);

		if (q->untold[i].to <= from || q->untold[i].from >= q->untold[i].to)
			continue;
		lose_between(p, from, to, below, &l);
		from = rxw_min32(q->untold[i].to, q->nxt);
	}
	lose_between(p, from, q->nxt, below, &l);
	q->loss_at = next_loss(p, out->now);
	if (l.packets > 0)
		note_doubt(q, &l);
	if (!l.react)
		return;
	rxw_tally(out->stats, &out->stats->loss_events, 1);
	p->count.loss_events++;
	rxw_send_note_loss(q);
	rxw_cc_lost(&q->cc, whole_flight(q, flight));
	q->carried = rxw_min32(q->carried, q->cc.cwnd);
	rxw_send_note_ssthresh(p, out->now);
}

uint32_t rxw_send_needless(struct rxw_sendq *q, const struct rxw_txpart *part, uint32_t order)
{
	uint32_t n = 0;

	if (q->doubt == 0 || (int32_t)(order - q->doubt_from) < 0)
		return 0;
	if (part->state == RXW_TX_LOST)
		return part->count;
	/* Sent again: a DUPLICATE may have told, or may follow. */
	for (unsigned i = 0; i < 8; i++) {
		uint32_t serial = part->seg->serial + (part->first - part->seg->first);
		uint32_t k = serial - q->sent.resent[i].serial;

		if (k >= q->sent.resent[i].count)
			continue;
		for (uint32_t end = k + part->count; k < end; k++)
			n += rxw_send_needless_named(q, i, k);
		return n;
	}
	return part->count;
}

uint32_t rxw_send_needless_named(struct rxw_sendq *q, unsigned i, uint32_t k)
{
	uint64_t bit = 1ull << k;
	bool known = q->sent.resent[i].needless & bit;

	q->sent.resent[i].needless |= bit;
	return !known && q->doubt != 0 && (int32_t)(q->sent.resent[i].order - q->doubt_from) >= 0;
}

bool rxw_send_refuted(struct rxw_sendq *q, uint32_t packets)
{
	uint32_t before = q->doubt;

	q->doubt -= rxw_min32(packets, before);
	return before != 0 && q->doubt == 0;
}

void rxw_send_note_loss(struct rxw_sendq *q)
{
	q->losses_before = q->losses;
	q->losses = true;
}

void rxw_send_note_ssthresh(const struct rxw_pcall *p, uint64_t now)
{
	/* A model of the path has no threshold. */
	if (p->tx.cc.ops->sample == NULL)
		rxw_peer_learn_ssthresh(p->conn->peer, p->tx.cc.ssthresh, now);
}

void rxw_send_spurious(struct rxw_pcall *p, uint32_t distance, bool undo, struct rxw_out *out)
{
	rxw_recovery_reordered(&p->tx.recovery, distance, out->now, p->tx.rtt.srtt);
	if (undo) {
		rxw_cc_undo(&p->tx.cc);
		/* Nothing was lost: end the rate reduction. */
		p->tx.recovery.recovery_end = 0;
		p->tx.doubt = 0;
		p->tx.losses = p->tx.losses_before;
	}
	rxw_peer_learn_reordering(p->conn->peer, rxw_recovery_learned(&p->tx.recovery), out->now);
	rxw_tally(out->stats, &out->stats->spurious_losses, 1);
	p->count.spurious++;
	RXW_PROBE(spurious, p, distance, &rxw_pconn_path(p->conn)->peer.u.sa);
	rxw_event(p, out->stats,
		  (struct rxw_trace_event){
			  .kind = RXW_TRACE_SPURIOUS, .now = out->now, .a = distance});
}

void rxw_send_note_ecn(struct rxw_pcall *p, const struct rxw_out *out)
{
	enum rxw_ecn_state state = p->tx.ecn.state;

	if (state == p->tx.ecn.noted)
		return;
	p->tx.ecn.noted = state;
	rxw_event(p, out->stats,
		  (struct rxw_trace_event){
			  .kind = RXW_TRACE_ECN, .now = out->now, .a = state, .b = p->tx.ecn.ce});
	if (rxw_ecn_failed(&p->tx.ecn))
		rxw_tally(out->stats, &out->stats->ecn_failures, 1);
	else if (state != RXW_ECN_CAPABLE)
		return;
	rxw_peer_learn_ecn(p->conn->peer, p->conn->client, state, out->now);
}

const char *rxw_send_phase(const struct rxw_pcall *p)
{
	if (p->tx.backoff > 0)
		return "timeout";
	/* A model of the path knows no recovery. */
	if (p->tx.cc.ops->phase == NULL && rxw_recovery_active(&p->tx.recovery))
		return "recovery";
	return rxw_cc_phase(&p->tx.cc);
}

void rxw_send_window_event(struct rxw_pcall *p, const struct rxw_out *out, uint32_t cwnd,
			   uint32_t window)
{
	bool same = p->tx.cc.cwnd == cwnd && p->tx.window == window;
	struct rxw_tracer *tracer = rxw_tracing(out->stats);
	const struct rxw_sendq *q = &p->tx;
	const char *phase;

	if (!same) {
		RXW_PROBE(window_change, p, q->cc.cwnd, q->cc.ssthresh, q->window, q->flight,
			  q->rtt.srtt);
	}
	if (__builtin_expect(tracer == NULL, 1))
		return;
	phase = rxw_send_phase(p);
	if (same && phase == p->traced)
		return;
	p->traced = phase;
	rxw_event_send(p, tracer,
		       &(struct rxw_trace_event){.kind = RXW_TRACE_WINDOW,
						 .now = out->now,
						 .a = q->cc.cwnd,
						 .b = q->cc.ssthresh,
						 .c = q->window,
						 .d = q->flight,
						 .interval = rxw_send_interval(p),
						 .srtt = q->rtt.valid ? q->rtt.srtt : 0,
						 .least_rtt = q->rtt.min,
						 .controller = q->cc.ops->name,
						 .phase = phase});
}
