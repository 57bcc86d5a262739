/* SPDX-License-Identifier: BSD-2-Clause */
/* Timers of a call: retransmission, probes, ACKs, keepalive, limits (rx-protocol 4.4, 6). */
#include "base/hash.h"
#include "proto/internal.h"

#define ACK_DELAY_PEER	(100 * RXW_MS) /* what peers may wait before they acknowledge */
#define ACK_DELAY_REPLY (400 * RXW_MS) /* a request may be acknowledged by its reply only */
#define STUCK		(60 * RXW_SEC)
#define BROKEN		(60 * RXW_SEC) /* none of 4 packets or more verified: wrong keys (7.1) */
#define BROKEN_LEAST	4
#define UNPROVEN_LIFE	(15 * RXW_SEC)
#define REACH_LIFE	(10 * RXW_SEC)
#define UNSOLICITED	2
#define PROOF_LOOK	RXW_MS

static uint64_t peer_delay(const struct rxw_pcall *p)
{
	const struct rxw_sendq *q = &p->tx;

	return p->client && q->all_queued && q->nxt == q->end ? ACK_DELAY_REPLY : ACK_DELAY_PEER;
}

/* When the oldest of what is out is waited for no longer; *probe: a tail loss probe comes first. */
static uint64_t rto_at(const struct rxw_pcall *p, bool *probe)
{
	const struct rxw_sendq *q = &p->tx;
	uint64_t delay = peer_delay(p), rto = q->base_at + rxw_rtt_rto(&p->rtt, delay, q->backoff);
	uint64_t pto, after;

	*probe = false;
	if (q->flight > 0 && !q->probed && q->backoff == 0 && p->rtt.valid) {
		/*
		 * An ACK of what went before puts it off only as far as that of the tail may be
		 * behind it: not far if the tail asked for one.
		 */
		pto = q->tail_at + rxw_rtt_probe_delay(&p->rtt, q->requested_last ? 0 : delay);
		after = q->base_at + (q->requested_last ? p->rtt.srtt / 8 : p->rtt.srtt);
		if (pto < after)
			pto = after;
		if (pto < rto) {
			*probe = true;
			rto = pto;
		}
	}
	return rto;
}

/*
 * A tenth more or less, so that many calls do not ping in step; the same for the same call and
 * time.
 */
static uint64_t ping_interval(const struct rxw_pcall *p)
{
	uint64_t interval = p->timer.dead / 6,
		 state = p->conn->cid ^ (uint64_t)p->number << 32 ^ p->timer.last_sent;

	if (state == 0)
		state = 1;
	return interval - interval / 10 + rxw_prng(&state) % (interval / 5 + 1);
}

static uint64_t fudge(const struct rxw_pcall *p)
{
	return p->rtt.valid ? p->rtt.srtt + 8 * p->rtt.rttvar : 0;
}

static uint64_t dead_at(const struct rxw_pcall *p)
{
	uint64_t dead = p->timer.dead, at;

	if (p->client && p->timer.first_sent == 0)
		return RXW_NEVER;
	if (p->state == RXW_CS_PRECALL && dead > UNPROVEN_LIFE &&
	    !rxw_peer_proven(p->conn->peer, p->timer.last_heard))
		dead = UNPROVEN_LIFE;
	at = p->timer.last_heard + dead + fudge(p);
	if (p->timer.unreachable != 0 && p->timer.last_heard <= p->timer.unreachable)
		at = rxw_min64(at, p->timer.unreachable + 2 * rxw_rtt_rto(&p->rtt, 0, 0) + RXW_SEC);
	return at;
}

/* Does the application wait for the peer? Its own pauses do not count as idleness. */
static bool waits_for_peer(const struct rxw_pcall *p)
{
	bool ended;
	uint32_t readable = rxw_pcall_readable(p, &ended);

	if (p->state != RXW_CS_ACTIVE)
		return false;
	if (p->tx.end > p->tx.una)
		return true;
	return readable == 0 && !ended && p->rx.consumed == p->rx.taken;
}

static uint64_t transmit_deadline(const struct rxw_pcall *p, uint64_t now)
{
	const struct rxw_sendq *q = &p->tx;
	uint64_t at = RXW_NEVER;
	bool probe;

	if (!rxw_pcall_may_transmit(p) || q->una == q->end)
		return at;
	if (q->busy_since != 0 && now < q->busy_at)
		return rxw_min64(q->busy_at, q->busy_since + p->timer.dead);
	if (q->proof_asked != 0 && !rxw_peer_proven(p->conn->peer, now))
		return p->timer.reach;
	if (q->flight > 0 || q->lost > 0)
		at = rto_at(p, &probe);
	at = rxw_min64(at, rxw_min64(q->loss_at, q->retry_at));
	if (q->hold_at != RXW_NEVER)
		at = rxw_min64(at, q->hold_at > q->pace_at ? q->hold_at : q->pace_at);
	else if (q->nxt < q->end && q->nxt < q->edge && q->pace_at > now &&
		 rxw_pcall_cwnd_room(p) > 0)
		at = rxw_min64(at, q->pace_at);
	if (q->stuck_since != 0)
		at = rxw_min64(at, q->stuck_since + STUCK);
	return at;
}

void rxw_pcall_arm(struct rxw_pcall *p, struct rxw_out *out)
{
	struct rxw_calltimers *t = &p->timer;
	uint64_t at = t->ack;

	if (rxw_pcall_live(p)) {
		if (t->ping == RXW_NEVER && (!p->client || t->first_sent != 0) && out != NULL)
			/* The earliest; keepalive() knows how long it may be. */
			t->ping = out->now + t->dead / 6 / 10 * 9;
		at = rxw_min64(at, rxw_min64(t->ping, dead_at(p)));
		at = rxw_min64(at,
			       rxw_min64(transmit_deadline(p, out != NULL ? out->now : t->began),
					 p->ack.probe_at));
		if (t->reach_since != 0)
			at = rxw_min64(at, t->reach);
		if (t->hard != 0)
			at = rxw_min64(at, t->began + t->hard);
		if (t->idle != 0 && waits_for_peer(p))
			at = rxw_min64(at, t->last_moved + t->idle + fudge(p));
		if (p->rx.failed >= BROKEN_LEAST)
			at = rxw_min64(at, p->rx.failed_since + BROKEN);
	}
	if (at < t->deadline && out != NULL)
		rxw_pcall_touch(p, out, RXW_OUT_TIMER);
	t->deadline = at;
}

uint64_t rxw_pcall_deadline(const struct rxw_pcall *p)
{
	return p->timer.deadline;
}

/* The lowest packet that nobody has: lost as far as sending goes; true if it could be marked. */
static bool mark_lowest(struct rxw_pcall *p)
{
	struct rxw_sendq *q = &p->tx;

	for (uint16_t i = q->seg_head; i != RXW_NO_NODE; i = rxw_sendq_seg(q, i)->next) {
		struct rxw_txseg *s = rxw_sendq_seg(q, i);

		if (s->state == RXW_TX_ACKED)
			continue;
		if (s->state == RXW_TX_LOST)
			return true;
		if (s->count > 1) {
			if (rxw_sendq_split(p, s->first + 1) == RXW_NO_NODE)
				return false;
			s = rxw_sendq_seg(q, i);
		}
		rxw_sendq_set(q, s, RXW_TX_LOST);
		return true;
	}
	return false;
}

static void timeout(struct rxw_pcall *p, struct rxw_out *out)
{
	struct rxw_sendq *q = &p->tx;
	const struct rxw_txent *e =
		q->ent_head == RXW_NO_NODE ? NULL : rxw_slab_at(&q->ents, q->ent_head);

	rxw_tally(out->stats, &out->stats->rto_events, 1);
	rxw_saw_timeout(p, out);
	if (q->flight > 0) {
		uint32_t cwnd = p->cc.cwnd;

		/*
		 * Once for the packets that are out; again only if the retransmission is lost as
		 * well.
		 */
		rxw_cc_timeout(&p->cc, q->flight, out->now);
		rxw_saw_window(p, out, cwnd, q->window);
		atomic_store_explicit(&p->conn->peer->ssthresh, p->cc.ssthresh,
				      memory_order_relaxed);
		q->frto_order = q->order;
		q->losses = true;
	}
	p->recovery.recovery_end = 0;
	if (e != NULL && rxw_mtu_timeout(&p->mtu, e->stride))
		atomic_store_explicit(&p->conn->peer->mtu, p->mtu.confirmed, memory_order_relaxed);
	if (mark_lowest(p))
		q->force = 1;
	if (q->backoff < 16)
		q->backoff++;
	q->base_at = out->now;
	q->probe = false;
}

bool rxw_pcall_ask_proof(struct rxw_pcall *p, uint64_t *since, struct rxw_out *out)
{
	bool asked = rxw_ack_ping(p, 0, out);

	if (!asked && out->ctl_count >= out->ctl_room)
		return false;
	*since = out->now ? out->now : 1;
	p->timer.reach = out->now + (asked ? rxw_rtt_rto(&p->rtt, 0, 0) : PROOF_LOOK);
	rxw_pcall_arm(p, out);
	return true;
}

/*
 * The question again, with the patience of a retransmission. Where it may not be asked, other calls
 * of the address have used up what that may get: they ask, too, and nobody tells this one that they
 * were answered.
 */
static bool ask_again(struct rxw_pcall *p, uint64_t since, unsigned backoff, struct rxw_out *out)
{
	uint64_t now = out->now, wait = rxw_rtt_rto(&p->rtt, 0, backoff);
	bool asked = p->timer.unsolicited < UNSOLICITED && rxw_ack_ping(p, 0, out);

	if (asked)
		p->timer.unsolicited++;
	else if (now - since < wait)
		wait = now - since > PROOF_LOOK ? now - since : PROOF_LOOK;
	p->timer.reach = now + wait;
	return asked;
}

static void transmit_timer(struct rxw_pcall *p, struct rxw_out *out)
{
	struct rxw_sendq *q = &p->tx;
	uint64_t now = out->now;
	bool probe;

	if (!rxw_pcall_may_transmit(p) || q->una == q->end)
		return;
	if (q->proof_asked != 0) {
		if (!rxw_peer_proven(p->conn->peer, now)) {
			if (now < p->timer.reach)
				return;
			q->backoff += ask_again(p, q->proof_asked, q->backoff + 1u, out);
			return;
		}
		q->proof_asked = 0;
	}
	if (q->busy_since != 0 && now < q->busy_at)
		return;
	if (q->busy_since != 0 && q->busy_at != 0) {
		/* The wait is over: the first packet, once. */
		q->busy_at = 0;
		q->base_at = now;
		q->force = q->lost > 0;
	}
	if (now >= q->loss_at)
		rxw_pcall_find_losses(p, q->flight, out);
	if ((q->flight > 0 || q->lost > 0) && now >= rto_at(p, &probe)) {
		if (probe) {
			q->probe = q->probed = true;
			q->base_at = now;
			rxw_tally(out->stats, &out->stats->probes, 1);
		} else {
			timeout(p, out);
		}
	}
	rxw_pcall_offer(p, 0, out);
}

static void keepalive(struct rxw_pcall *p, struct rxw_out *out)
{
	struct rxw_calltimers *t = &p->timer;
	uint64_t interval = ping_interval(p);

	if (out->now < t->last_sent + interval) {
		t->ping = t->last_sent + interval;
		return;
	}
	t->ping = out->now + interval;
	if (!p->client && !rxw_peer_proven(p->conn->peer, out->now)) {
		if (t->unsolicited < UNSOLICITED && rxw_ack_ping(p, 0, out))
			t->unsolicited++;
		return;
	}
	rxw_ack_ping(p, 0, out);
}

static void reach_timer(struct rxw_pcall *p, struct rxw_out *out)
{
	struct rxw_calltimers *t = &p->timer;

	if (rxw_peer_proven(p->conn->peer, out->now)) {
		t->reach_since = 0;
		rxw_pcall_try_attach(p, out);
	} else if (out->now >= t->reach_since + REACH_LIFE) {
		rxw_pcall_fail(p, RXW_CALL_DEAD, RXW_ORIGIN_LOCAL, false, out);
	} else {
		ask_again(p, t->reach_since, t->unsolicited, out);
		t->reach = rxw_min64(t->reach, t->reach_since + REACH_LIFE);
	}
}

/* Limits of the whole call: true if it ended. */
static bool limits(struct rxw_pcall *p, struct rxw_out *out)
{
	struct rxw_calltimers *t = &p->timer;
	const struct rxw_sendq *q = &p->tx;
	uint64_t now = out->now;

	if (now >= dead_at(p)) {
		rxw_pcall_fail(p, RXW_CALL_DEAD, RXW_ORIGIN_LOCAL, false, out);
		return true;
	}
	if (p->rx.failed >= BROKEN_LEAST && now >= p->rx.failed_since + BROKEN) {
		int32_t code = p->conn->security->class.broken;

		rxw_pcall_fail(p, code ? code : RXW_CALL_DEAD, RXW_ORIGIN_LOCAL, false, out);
		return true;
	}
	if ((t->hard != 0 && now >= t->began + t->hard) ||
	    (t->idle != 0 && waits_for_peer(p) && now >= t->last_moved + t->idle + fudge(p)) ||
	    (q->busy_since != 0 && now >= q->busy_since + t->dead) ||
	    (q->stuck_since != 0 && now >= q->stuck_since + STUCK)) {
		rxw_pcall_fail(p, RXW_CALL_TIMEOUT, RXW_ORIGIN_LOCAL, true, out);
		return true;
	}
	return false;
}

void rxw_pcall_timer(struct rxw_pcall *p, struct rxw_out *out)
{
	struct rxw_calltimers *t = &p->timer;

	/* Whoever calls took the deadline off its wheel. */
	t->deadline = RXW_NEVER;
	if (rxw_pcall_live(p) && limits(p, out))
		return;
	if (out->now >= t->ack) {
		rxw_ack_timer(p, out);
		if (p->state == RXW_CS_DALLY)
			rxw_pcall_done_event(p, out);
	}
	if (rxw_pcall_live(p)) {
		if (out->now >= p->ack.probe_at) {
			rxw_mtu_lost(&p->mtu, out->now);
			p->ack.probe_at = RXW_NEVER;
		}
		transmit_timer(p, out);
		if (t->reach_since != 0 && out->now >= t->reach)
			reach_timer(p, out);
		if (rxw_pcall_live(p) && out->now >= t->ping)
			keepalive(p, out);
	}
	rxw_pcall_arm(p, out);
	/* What waits for somebody to send is no reason to come back at once. */
	if (t->deadline <= out->now)
		t->deadline = out->now + RXW_MS;
}
