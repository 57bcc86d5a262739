/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Timers of the sender: retransmission, tail loss probes, pacing, BUSY (rx-protocol 2.9, 4.4, 6).
 */
#include "proto/state.h"

#define STUCK		(60 * RXW_SEC)
#define SILENCE		(5 * RXW_SEC)
#define BUSY_FIRST	(100 * RXW_MS)
#define BUSY_MOST	(5 * RXW_SEC)

/* Before the first sample, the packet is sent twice more before a silent peer counts as dead. */
static uint64_t rto_of(const struct rxw_pcall *p, uint64_t delay)
{
	const struct rxw_sendq *q = &p->tx;
	uint64_t rto = rxw_rtt_rto(&q->rtt, delay, q->backoff), part = p->timer.dead / 4;

	if (q->rtt.valid || part == 0 || part >= rto)
		return rto;
	return rxw_min64(rto, part << rxw_min32(q->backoff, 16));
}

/* When the RTO of the oldest packet expires; *probe: a tail loss probe is due before, then. */
static uint64_t rto_at(const struct rxw_pcall *p, bool *probe)
{
	const struct rxw_sendq *q = &p->tx;
	uint64_t delay = rxw_send_peer_delay(p), rto = q->base_at + rto_of(p, delay);
	uint64_t pto, after;

	*probe = false;
	if (q->flight > 0 && !q->probed && q->backoff == 0 && q->rtt.valid && !q->renumber.single) {
		/*
		 * An ACK of earlier packets postpones the probe only by as much as the ACK of the
		 * tail may come later: not much if the tail requested one.
		 */
		pto = q->tail_at + rxw_rtt_probe_delay(&q->rtt, q->requested_last ? 0 : delay);
		after = q->base_at + (q->requested_last ? q->rtt.srtt / 8 : q->rtt.srtt);
		if (pto < after)
			pto = after;
		if (pto < rto) {
			*probe = true;
			rto = pto;
		}
	}
	return rto;
}

uint64_t rxw_send_deadline(const struct rxw_pcall *p, uint64_t now)
{
	const struct rxw_sendq *q = &p->tx;
	uint64_t at = RXW_NEVER;
	bool probe;

	if (!rxw_pcall_may_send(p))
		return at;
	if (q->renumber.state == RXW_RENUMBER_ASKING)
		return q->renumber.at;
	if (q->busy_since != 0 && now < q->busy_at)
		return rxw_min64(q->busy_at, q->busy_since + p->timer.dead);
	if (rxw_peer_awaited(p->conn->peer, q->proof_since, now))
		return p->proof.at;
	if (q->flight > 0 || q->lost > 0)
		at = rto_at(p, &probe);
	at = rxw_min64(at, rxw_min64(q->loss_at, q->retry_at));
	if (q->hold_at != RXW_NEVER)
		at = rxw_min64(at, q->hold_at > q->pace_at ? q->hold_at : q->pace_at);
	else if (q->pace_at > now && rxw_send_cwnd_room(p) > 0 && q->nxt < q->end &&
		 q->nxt < q->edge)
		at = rxw_min64(at, q->pace_at);
	if (q->lost > 0 && rxw_send_lost_at(q) > now && rxw_send_cwnd_room(p) > 0)
		at = rxw_min64(at, rxw_send_lost_at(q));
	if (q->stuck_since != 0)
		at = rxw_min64(at, q->stuck_since + STUCK);
	return at;
}

bool rxw_send_gave_up(const struct rxw_pcall *p, uint64_t now)
{
	const struct rxw_sendq *q = &p->tx;

	return (q->busy_since != 0 && now >= q->busy_since + p->timer.dead) ||
	       (q->stuck_since != 0 && now >= q->stuck_since + STUCK);
}

void rxw_send_excuse(struct rxw_pcall *p, uint64_t now)
{
	struct rxw_sendq *q = &p->tx;

	if (q->stuck_since != 0)
		q->stuck_since = now;
	if (q->busy_since != 0)
		q->busy_since = now;
}

void rxw_send_unanswered(struct rxw_pcall *p, struct rxw_out *out)
{
	struct rxw_sendq *q = &p->tx;

	if (q->una == q->nxt || rxw_sent_state(&q->sent, q->una) != RXW_TX_ACKED)
		return;
	for (uint32_t seq = q->una; seq < q->nxt;) {
		struct rxw_txpart part = rxw_sent_part(&q->sent, seq, q->nxt);

		if (!part.seg->busy)
			rxw_sendq_set(q, seq, part.count, RXW_TX_LOST, false);
		seq += part.count;
	}
	q->force = 1;
	rxw_send_schedule(p, out);
}

/* The lowest missing packet is lost. False: none is missing. */
static bool mark_lowest(struct rxw_pcall *p)
{
	struct rxw_sendq *q = &p->tx;
	uint32_t seq = rxw_sent_missing(&q->sent, q->una, q->nxt);

	q->doubt = 0;
	if (seq == q->nxt)
		return false;
	if (rxw_sent_state(&q->sent, seq) == RXW_TX_LOST)
		return true;
	rxw_sendq_set(q, seq, 1, RXW_TX_LOST, true);
	q->doubt = 1;
	q->doubt_from = rxw_sent_order(&q->sent, seq);
	return true;
}

/* A peer that was never heard may also be stopped for a moment: that is no reason for the least size. */
static bool may_shrink(const struct rxw_pcall *p, uint64_t now)
{
	const struct rxw_sendq *q = &p->tx;

	return q->heard || rxw_sendq_ent(q, q->ent_head)->stride > RXW_MTU_FALLBACK ||
	       now >= p->time.first_sent + rxw_min64(p->timer.dead / 4, SILENCE);
}

static void expire_rto(struct rxw_pcall *p, struct rxw_out *out)
{
	struct rxw_sendq *q = &p->tx;
	uint32_t cwnd = q->cc.cwnd;

	rxw_tally(out->stats, &out->stats->rto_events, 1);
	p->count.timeouts++;
	RXW_PROBE(timeout, p, (unsigned)q->backoff, &rxw_pconn_path(p->conn)->peer.u.sa);
	rxw_event(p, out->stats,
		  (struct rxw_trace_event){
			  .kind = RXW_TRACE_TIMEOUT, .now = out->now, .a = q->backoff});
	if (q->flight > 0) {
		/*
		 * Once for the packets in flight; again only if the retransmission is lost as well.
		 */
		rxw_cc_timeout(&q->cc, q->flight);
		rxw_send_note_ssthresh(p, out->now);
		/* All timeouts in a row are undone together, or none. */
		if (q->frto_order == 0)
			rxw_send_note_loss(q);
		q->frto_order = q->order;
	}
	q->recovery.recovery_end = 0;
	if (!rxw_send_check_path(p, out) && q->ent_head != RXW_NO_NODE && may_shrink(p, out->now) &&
	    rxw_mtu_timeout(&q->mtu, rxw_sendq_ent(q, q->ent_head)->stride, q->heard)) {
		/* Other calls follow to the least size if the peer is heard now: it may also be down. */
		q->renumber.unproven = !q->heard && q->mtu.confirmed < RXW_MTU_FALLBACK;
		if (!q->renumber.unproven)
			rxw_send_fallen(p, out->now);
		/* The packets were too large: no congestion was seen. */
		rxw_cc_undo(&q->cc);
		q->frto_order = 0;
		rxw_send_renumber(p);
	}
	rxw_send_in_vain(p, out);
	if (mark_lowest(p))
		q->force = 1;
	if (q->backoff < 16)
		q->backoff++;
	q->base_at = out->now;
	q->probe = false;
	rxw_send_window_event(p, out, cwnd, q->window);
}

/* Bytes wait for the address to be validated: true while they do. */
static bool proof_pending(struct rxw_pcall *p, struct rxw_out *out)
{
	struct rxw_sendq *q = &p->tx;

	if (!rxw_peer_awaited(p->conn->peer, q->proof_since, out->now)) {
		q->proof_since = 0;
		return false;
	}
	if (out->now >= p->proof.at)
		q->backoff +=
			rxw_proof_ask_again(p, q->proof_since, q->backoff + 1u, RXW_NEVER, out);
	return true;
}

void rxw_send_validated(struct rxw_pcall *p, struct rxw_out *out)
{
	p->proof.pings = 0;
	if (p->tx.proof_since == 0)
		return;
	p->tx.proof_since = 0;
	rxw_send_schedule(p, out);
}

void rxw_send_timer(struct rxw_pcall *p, struct rxw_out *out)
{
	struct rxw_sendq *q = &p->tx;
	uint64_t now = out->now;
	bool probe;

	rxw_send_path_timer(p, out);
	if (q->renumber.state == RXW_RENUMBER_ASKING)
		return;
	if (!rxw_pcall_may_send(p) || q->una == q->end || proof_pending(p, out) ||
	    (q->busy_since != 0 && now < q->busy_at))
		return;
	if (q->busy_since != 0 && q->busy_at != 0) {
		/* The delay is over: send the first packet, once. */
		q->busy_at = 0;
		q->base_at = now;
		q->force = q->lost > 0;
	}
	if (now >= q->loss_at) {
		rxw_send_find_losses(p, q->flight, out);
		rxw_send_note_ecn(p, out);
	}
	if ((q->flight > 0 || q->lost > 0) && now >= rto_at(p, &probe)) {
		if (probe) {
			q->probe = q->probed = true;
			q->base_at = now;
			if (!q->requested_last)
				atomic_store_explicit(&p->conn->peer->probed_at, now,
						      memory_order_relaxed);
			rxw_tally(out->stats, &out->stats->probes, 1);
			rxw_send_check_path(p, out);
		} else {
			expire_rto(p, out);
		}
	}
	rxw_send_schedule(p, out);
}

bool rxw_send_busy(struct rxw_pcall *p, uint64_t now)
{
	struct rxw_sendq *q = &p->tx;
	uint64_t wait = BUSY_FIRST << (q->busy_count < 6 ? q->busy_count : 6);

	if (q->heard || (q->busy_since != 0 && now < q->busy_at))
		return false;
	if (q->busy_since == 0)
		q->busy_since = now ? now : 1;
	q->busy_count++;
	q->busy_at = now + rxw_min64(wait, BUSY_MOST);
	rxw_sendq_lose_from(q, q->una);
	q->doubt = 0;
	q->cc.cwnd = 1;
	q->probe = false;
	q->loss_at = RXW_NEVER;
	return true;
}
