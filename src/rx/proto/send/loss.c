/* SPDX-License-Identifier: BSD-2-Clause */
/* Losses: packets declared lost, losses that were none, the congestion window (rx-protocol 4.4). */
#include "proto/state.h"

/* How many packets of a segment, from its first on, are lost now. */
static uint32_t lost_of(const struct rxw_pcall *p, const struct rxw_txseg *s, uint64_t now,
			uint64_t *at)
{
	uint32_t low = 0, high = s->count;

	/* A packet is not lost before those sent before it at the same time. */
	if (!rxw_recovery_is_lost(&p->tx.recovery, &p->tx.rtt, s->order, s->sent_at, now, at))
		return 0;
	while (high - low > 1) {
		uint32_t mid = low + (high - low) / 2;

		if (rxw_recovery_is_lost(&p->tx.recovery, &p->tx.rtt, s->order + mid, s->sent_at,
					 now, at))
			low = mid;
		else
			high = mid;
	}
	return high;
}

static bool is_untold(const struct rxw_sendq *q, const struct rxw_txseg *s)
{
	for (unsigned i = 0; i < 2; i++)
		if (s->first < q->untold[i].to && s->first + s->count > q->untold[i].from)
			return true;
	return false;
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

void rxw_send_find_losses(struct rxw_pcall *p, uint32_t flight, struct rxw_out *out)
{
	struct rxw_sendq *q = &p->tx;
	uint64_t at = 0;
	bool react = false;

	for (uint16_t i = q->seg_head; i != RXW_NO_NODE; i = rxw_sendq_seg(q, i)->next) {
		struct rxw_txseg *s = rxw_sendq_seg(q, i);
		uint32_t lost;

		if (s->state != RXW_TX_FLIGHT || s->order >= p->tx.recovery.highest_order ||
		    is_untold(q, s))
			continue;
		lost = lost_of(p, s, out->now, &at);
		if (lost == 0)
			continue;
		if (lost < s->count) {
			if (rxw_sendq_split_at(p, i, s->first + lost) == RXW_NO_NODE)
				continue;
			s = rxw_sendq_seg(q, i);
		}
		rxw_sendq_set(q, s, RXW_TX_LOST);
		q->rate.lost += s->count;
		p->count.lost += s->count;
		if (s->marked == RXW_ECN_MARKED)
			rxw_ecn_lost(&q->ecn, s->order, s->count);
		if (rxw_recovery_enter(&p->tx.recovery, s->order + s->count - 1, q->order, flight))
			react = true;
	}
	q->loss_at = at != 0 ? at : RXW_NEVER;
	if (react) {
		rxw_tally(out->stats, &out->stats->loss_events, 1);
		p->count.loss_events++;
		q->losses = true;
		rxw_cc_lost(&p->tx.cc, whole_flight(q, flight), out->now);
		q->carried = rxw_min32(q->carried, q->cc.cwnd);
		rxw_send_note_ssthresh(p, out->now);
	}
}

void rxw_send_note_ssthresh(const struct rxw_pcall *p, uint64_t now)
{
	/* A model of the path has no threshold. */
	if (p->tx.cc.ops->sample == NULL)
		rxw_peer_learn_ssthresh(p->conn->peer, p->tx.cc.ssthresh, now);
}

void rxw_send_spurious(struct rxw_pcall *p, uint32_t distance, struct rxw_out *out)
{
	rxw_recovery_reordered(&p->tx.recovery, distance, out->now, p->tx.rtt.srtt);
	rxw_cc_undo(&p->tx.cc);
	/* Nothing was lost: end the rate reduction. */
	p->tx.recovery.recovery_end = 0;
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
