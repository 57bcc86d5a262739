/* SPDX-License-Identifier: BSD-2-Clause */
/* ACKs received: scoreboard, round trips, losses, windows (rx-protocol 3.2, 3.5, 3.8, 4.4). */
#include <string.h>

#include "proto/internal.h"

#define MTU_PROBE_AFTER 64u /* packets: short calls do not search */
#define ASK_APART	RXW_SEC /* between two PINGs that ACKs of data draw */

/* What an ACK says, and what came of it. */
struct news {
	struct rxw_ack ack;
	uint64_t now;
	uint32_t newly; /* packets newly acknowledged */
	bool newer;	/* not overtaken by a later ACK */
	bool named;	/* ack.serial names a transmission of ours ... */
	bool original;	/* ... that was repeated since */
	bool proof;	/* the serial is one that only the address's owner can know */
	uint32_t named_seq, named_order;
	uint64_t named_at;
	bool before_rto; /* a transmission from before the timeout was acknowledged */
	bool spurious;	 /* something counted as lost was not */
	uint32_t distance;
	uint32_t highest; /* order acknowledged before this ACK came */
};

static void find_named(const struct rxw_sendq *q, struct news *n)
{
	uint32_t serial = n->ack.serial;

	if (serial == 0)
		return;
	for (uint16_t i = q->seg_head; i != RXW_NO_NODE; i = rxw_sendq_seg(q, i)->next) {
		const struct rxw_txseg *s = rxw_sendq_seg(q, i);

		if (serial - s->serial < s->count) {
			n->named = true;
			n->named_seq = s->first + (serial - s->serial);
			n->named_order = s->order + (serial - s->serial);
			n->named_at = s->sent_at;
			return;
		}
		if (s->prev_serial != 0 && serial - s->prev_serial < s->count) {
			n->named = n->original = true;
			n->named_seq = s->first + (serial - s->prev_serial);
			n->named_order = s->prev_order + (serial - s->prev_serial);
			return;
		}
	}
}

static void sample(struct rxw_pcall *p, uint64_t rtt, uint64_t now)
{
	struct rxw_peer *peer = p->conn->peer;

	rxw_rtt_sample(&p->rtt, rtt);
	atomic_store_explicit(&peer->srtt, p->rtt.srtt, memory_order_relaxed);
	atomic_store_explicit(&peer->rttvar, p->rtt.rttvar, memory_order_relaxed);
	atomic_store_explicit(&peer->rtt_at, now, memory_order_relaxed);
}

static void take_sample(struct rxw_pcall *p, const struct news *n)
{
	const struct rxw_ack *ack = &n->ack;
	uint32_t highest = ack->first - 1;

	if (!n->named || n->original || (int32_t)(ack->serial - p->tx.sampled_serial) <= 0)
		return;
	if (ack->reason == RXW_ACK_IDLE || ack->reason == RXW_ACK_DELAY) {
		/* It may have waited for the application unless it is about the newest packet. */
		for (unsigned i = ack->count; i > 0; i--)
			if (ack->acks[i - 1] & 1) {
				highest = ack->first + i - 1;
				break;
			}
		if (n->named_seq != highest)
			return;
	}
	p->tx.sampled_serial = ack->serial;
	sample(p, n->now - n->named_at, n->now);
}

static void ping_answered(struct rxw_pcall *p, struct news *n)
{
	for (unsigned i = 0; i < RXW_PINGS; i++) {
		struct rxw_ping *ping = &p->ack.ping[i];

		if (ping->serial == 0 || ping->serial != n->ack.serial)
			continue;
		ping->serial = 0;
		n->named = n->original = true; /* no DATA is meant */
		n->proof = ping->secret;
		sample(p, n->now - ping->sent_at, n->now);
		if (ping->size > 0) {
			rxw_mtu_confirmed(&p->mtu, ping->size, n->now);
			p->ack.probe_at = RXW_NEVER;
			atomic_store_explicit(&p->conn->peer->mtu, p->mtu.confirmed,
					      memory_order_relaxed);
		}
		return;
	}
}

/* `n` packets of a segment from its `off`th on are acknowledged. */
static void acked(struct rxw_pcall *p, const struct rxw_txseg *s, uint32_t off, uint32_t n,
		  struct news *news)
{
	struct rxw_sendq *q = &p->tx;
	uint32_t order = s->order + off + n - 1;
	bool first_time = s->prev_serial == 0;
	bool early;

	news->newly += n;
	if (s->state == RXW_TX_LOST) {
		if (s->never_left)
			return;
		news->spurious = true;
		if (p->recovery.highest_order > order)
			news->distance =
				rxw_max32(news->distance, p->recovery.highest_order - order);
		if (q->frto_order != 0 && order <= q->frto_order)
			news->before_rto = true;
		return;
	}
	/* Sooner than a round trip after it was repeated, or by name: the original came through. */
	early = !first_time && ((p->rtt.min != 0 && news->now - s->sent_at < p->rtt.min / 2) ||
				(news->original && news->named_seq >= s->first + off &&
				 news->named_seq < s->first + off + n));
	if (early) {
		news->spurious = true;
		order = s->prev_order + off + n - 1;
		if (p->recovery.highest_order > order)
			news->distance =
				rxw_max32(news->distance, p->recovery.highest_order - order);
	} else {
		if (first_time && (int32_t)(news->highest - (s->order + off)) > 0)
			rxw_recovery_late(&p->recovery, &p->rtt, news->highest - (s->order + off),
					  s->sent_at, news->now);
		rxw_recovery_acked(&p->recovery, order, s->sent_at);
	}
	if (q->frto_order != 0 && order <= q->frto_order)
		news->before_rto = true;
}

static void hard_acks(struct rxw_pcall *p, struct news *n)
{
	struct rxw_sendq *q = &p->tx;
	uint32_t first = n->ack.first;

	for (uint16_t i = q->seg_head; i != RXW_NO_NODE; i = rxw_sendq_seg(q, i)->next) {
		const struct rxw_txseg *s = rxw_sendq_seg(q, i);

		if (s->first >= first)
			break;
		if (s->state != RXW_TX_ACKED)
			acked(p, s, 0, rxw_min32(s->count, first - s->first), n);
	}
	rxw_sendq_free_below(p, first);
}

/*
 * Packets [from, to) are received (or not): change the segments that say otherwise. *i: where to
 * begin.
 */
static void soft_range(struct rxw_pcall *p, uint16_t *i, uint32_t from, uint32_t to, bool received,
		       struct news *n)
{
	struct rxw_sendq *q = &p->tx;

	while (*i != RXW_NO_NODE) {
		struct rxw_txseg *s = rxw_sendq_seg(q, *i);
		uint32_t end = s->first + s->count;

		if (s->first >= to)
			return;
		if (end <= from ||
		    (received ? s->state == RXW_TX_ACKED : s->state != RXW_TX_ACKED || !n->newer)) {
			if (end > to)
				return;
			*i = s->next;
			continue;
		}
		if (s->first < from) {
			*i = rxw_sendq_split(p, from);
			if (*i == RXW_NO_NODE)
				return;
			continue;
		}
		if (end > to) {
			if (rxw_sendq_split(p, to) == RXW_NO_NODE)
				return;
			s = rxw_sendq_seg(q, *i);
		}
		if (received) {
			acked(p, s, 0, s->count, n);
			rxw_sendq_set(q, s, RXW_TX_ACKED);
		} else {
			/*
			 * The receiver let go of it again: send it, but it is no sign of
			 * congestion.
			 */
			rxw_sendq_set(q, s, RXW_TX_LOST);
		}
		*i = s->next;
	}
}

/* Neighbours of one transmission and one fate become one segment again. */
static void join(struct rxw_sendq *q)
{
	uint16_t i = q->seg_head;

	while (i != RXW_NO_NODE) {
		struct rxw_txseg *s = rxw_sendq_seg(q, i);
		uint16_t next = s->next;
		const struct rxw_txseg *t;

		if (next == RXW_NO_NODE)
			return;
		t = rxw_sendq_seg(q, next);
		if (t->state != s->state || t->order != s->order + s->count ||
		    t->serial != s->serial + s->count || t->sent_at != s->sent_at ||
		    t->token != s->token || t->never_left != s->never_left ||
		    (t->prev_serial != 0) != (s->prev_serial != 0) ||
		    (t->prev_serial != 0 && (t->prev_serial != s->prev_serial + s->count ||
					     t->prev_order != s->prev_order + s->count))) {
			i = next;
			continue;
		}
		s->count += t->count;
		s->next = t->next;
		if (q->seg_tail == next)
			q->seg_tail = i;
		rxw_slab_put(&q->segs, next);
	}
}

static void soft_acks(struct rxw_pcall *p, struct news *n)
{
	struct rxw_sendq *q = &p->tx;
	uint16_t i = q->seg_head;
	uint32_t count = rxw_min32(n->ack.count, q->nxt - n->ack.first), from, to;

	for (from = 0; from < count; from = to) {
		bool received = n->ack.acks[from] & 1;

		for (to = from + 1; to < count && (n->ack.acks[to] & 1) == received; to++)
			;
		soft_range(p, &i, n->ack.first + from, n->ack.first + to, received, n);
	}
	if (count > 0)
		join(q);
}

static void trailer(struct rxw_pcall *p, const struct rxw_ack *ack)
{
	struct rxw_sendq *q = &p->tx;

	if (ack->trailer_words >= 2)
		atomic_store_explicit(&p->conn->peer->peer_max_mtu, ack->max_mtu,
				      memory_order_relaxed);
	if (ack->trailer_words >= 3) {
		/* Our own limit is on what is in flight, by the congestion window; see there. */
		uint32_t window = rxw_max32(rxw_min32(ack->rwind, RXW_MAX_ACKS), 1);

		if (ack->trailer_words >= 4 || window < q->window)
			q->window = window;
		p->conn->peer_window = q->window;
	}
	q->edge = ack->first + q->window;
}

/* The segment's packets that are lost now: how many from its first on. */
static uint32_t lost_of(const struct rxw_pcall *p, const struct rxw_txseg *s, uint64_t now,
			uint64_t *at)
{
	uint32_t low = 0, high = s->count;

	/* Later orders are not lost before earlier ones of the same time. */
	if (!rxw_recovery_is_lost(&p->recovery, &p->rtt, s->order, s->sent_at, now, at))
		return 0;
	while (high - low > 1) {
		uint32_t mid = low + (high - low) / 2;

		if (rxw_recovery_is_lost(&p->recovery, &p->rtt, s->order + mid, s->sent_at, now,
					 at))
			low = mid;
		else
			high = mid;
	}
	return high;
}

void rxw_pcall_find_losses(struct rxw_pcall *p, uint32_t flight, struct rxw_out *out)
{
	struct rxw_sendq *q = &p->tx;
	uint64_t at = 0;
	bool react = false;

	for (uint16_t i = q->seg_head; i != RXW_NO_NODE; i = rxw_sendq_seg(q, i)->next) {
		struct rxw_txseg *s = rxw_sendq_seg(q, i);
		uint32_t lost;

		if (s->state != RXW_TX_FLIGHT || s->order >= p->recovery.highest_order)
			continue;
		lost = lost_of(p, s, out->now, &at);
		if (lost == 0)
			continue;
		if (lost < s->count) {
			if (rxw_sendq_split(p, s->first + lost) == RXW_NO_NODE)
				continue;
			s = rxw_sendq_seg(q, i);
		}
		rxw_sendq_set(q, s, RXW_TX_LOST);
		if (rxw_recovery_enter(&p->recovery, s->order + s->count - 1, q->order, flight))
			react = true;
	}
	q->loss_at = at != 0 ? at : RXW_NEVER;
	if (react) {
		rxw_tally(out->stats, &out->stats->loss_events, 1);
		q->losses = true;
		/* What was out when the window was full: thresholds may hold the rest back now. */
		flight = rxw_max32(flight,
				   rxw_min32(p->cc.cwnd, rxw_max32(q->peak, q->last_peak)));
		rxw_cc_lost(&p->cc, flight, out->now);
		atomic_store_explicit(&p->conn->peer->ssthresh, p->cc.ssthresh,
				      memory_order_relaxed);
	}
}

static void spurious(struct rxw_pcall *p, uint32_t distance, struct rxw_out *out)
{
	rxw_recovery_reordered(&p->recovery, distance, out->now, p->rtt.srtt);
	rxw_cc_undo(&p->cc);
	/* Nothing was lost: no rate reduction goes on. */
	p->recovery.recovery_end = 0;
	atomic_store_explicit(&p->conn->peer->reordering, rxw_recovery_learned(&p->recovery),
			      memory_order_relaxed);
	rxw_tally(out->stats, &out->stats->spurious_losses, 1);
	rxw_saw_spurious(p, out, distance);
}

/* A DUPLICATE that names a retransmission: the original had come. */
static void duplicate(struct rxw_pcall *p, struct news *n)
{
	struct rxw_sendq *q = &p->tx;

	for (unsigned i = 0; i < 8; i++)
		if (q->resent[i].count != 0 &&
		    n->ack.serial - q->resent[i].serial < q->resent[i].count) {
			n->spurious = true;
			n->distance = rxw_max32(n->distance, q->resent[i].distance);
			q->resent[i].count = 0;
		}
}

/* The window does not cover what was sent: it has to go again once it does. */
static void beyond_window(struct rxw_pcall *p)
{
	struct rxw_sendq *q = &p->tx;
	uint16_t i = q->edge < q->nxt ? rxw_sendq_split(p, q->edge) : RXW_NO_NODE;

	for (; i != RXW_NO_NODE; i = rxw_sendq_seg(q, i)->next)
		if (rxw_sendq_seg(q, i)->state == RXW_TX_FLIGHT)
			rxw_sendq_set(q, rxw_sendq_seg(q, i), RXW_TX_LOST);
}

static void congestion(struct rxw_pcall *p, const struct news *n, uint32_t flight,
		       struct rxw_out *out)
{
	struct rxw_sendq *q = &p->tx;
	bool slow = p->cc.cwnd < p->cc.ssthresh;
	uint32_t peak = rxw_max32(q->peak, q->last_peak);
	/*
	 * Was the window filled? It grows while the ACKs of one flight come, and that flight is
	 * half of the next one in slow start.
	 */
	bool limited = slow ? peak >= p->cc.cwnd / 2 : peak + 1 >= p->cc.cwnd;
	bool undo = n->spurious;

	if (n->newly > 0) {
		if (rxw_recovery_active(&p->recovery) && !slow)
			rxw_recovery_delivered(&p->recovery, n->newly);
		else
			rxw_cc_acked(&p->cc, n->newly, limited, p->rtt.srtt, n->now);
		if (q->frto_order != 0) {
			undo |= n->before_rto;
			q->frto_order = 0;
		}
		if ((int32_t)(p->recovery.highest_order - q->round_order) >= 0) {
			q->last_peak = q->peak;
			q->peak = q->flight;
			q->round_order = q->order + 1;
		}
	}
	if (undo)
		spurious(p, n->distance, out);
	rxw_recovery_decay(&p->recovery, n->now, p->rtt.srtt);
	if (n->ack.reason == RXW_ACK_NOSPACE && n->now >= q->nospace_at + p->rtt.srtt) {
		q->nospace_at = n->now;
		rxw_cc_lost(&p->cc, flight, n->now);
	}
	if (q->flight > 0 && p->recovery.highest_order != 0)
		rxw_pcall_find_losses(p, flight, out);
	else
		q->loss_at = RXW_NEVER;
}

static uint32_t lowest_missing(const struct rxw_sendq *q)
{
	for (uint16_t i = q->seg_head; i != RXW_NO_NODE; i = rxw_sendq_seg(q, i)->next)
		if (rxw_sendq_seg(q, i)->state != RXW_TX_ACKED)
			return rxw_sendq_seg(q, i)->first;
	return q->nxt;
}

/* Of the call, nothing: it was refused after it had been acknowledged, and BUSY counts again. */
static bool taken_back(const struct rxw_ack *ack)
{
	if (ack->first != 1)
		return false;
	for (unsigned i = 0; i < ack->count; i++)
		if (ack->acks[i] & 1)
			return false;
	return true;
}

/*
 * The peer acknowledges data, so it may prove its address: for the first time, or again before the
 * last proof is over, so that no reply waits for it.
 */
static void ask_for_proof(struct rxw_pcall *p, uint64_t now, struct rxw_out *out)
{
	const struct rxw_pconn *c = p->conn;

	if (!rxw_peer_freshly_proven(c->peer, now) &&
	    (c->proof_serial == 0 || now >= c->proof_asked + ASK_APART))
		rxw_ack_ping(p, 0, out);
}

/* The peer's life is certain, maybe its address is proven, the server did take the call. */
static void signs(struct rxw_pcall *p, const struct news *n, struct rxw_out *out)
{
	p->timer.last_heard = p->conn->last_heard = n->now;
	if (n->newer || !p->tx.heard)
		p->tx.heard = !taken_back(&n->ack);
	p->tx.busy_since = 0;
	p->tx.busy_count = 0;
	if (p->conn->client || !n->named)
		return;
	if (!n->proof) {
		ask_for_proof(p, n->now, out);
		return;
	}
	/* Another connection may have proved the address; what waits here learns that from the answer. */
	if (p->tx.proof_asked != 0 || p->timer.reach_since != 0 ||
	    !rxw_peer_proven(p->conn->peer, n->now))
		rxw_pconn_proved(p->conn, out);
	else
		rxw_peer_prove(p->conn->peer, n->now);
}

static void after(struct rxw_pcall *p, const struct news *n, uint32_t lowest, struct rxw_out *out)
{
	struct rxw_sendq *q = &p->tx;

	if (n->newly > 0) {
		q->backoff = 0;
		q->probed = false;
		q->base_at = n->now;
		p->timer.last_moved = n->now;
		rxw_mtu_progress(&p->mtu);
		if (q->stuck_since != 0 && lowest_missing(q) != lowest)
			q->stuck_since = 0;
		if (q->flight == 0 && q->lost == 0)
			q->idle_since = n->now;
		if (q->nxt > MTU_PROBE_AFTER && p->rtt.valid) {
			uint32_t size = rxw_mtu_probe(&p->mtu, n->now, p->rtt.srtt);

			if (size != 0 && rxw_ack_ping(p, size, out))
				p->ack.probe_at = n->now + rxw_rtt_rto(&p->rtt, 0, 0);
		}
	}
	/* A server may still let go of a request that it acknowledged softly; a reply is done by that. */
	if (rxw_pcall_send_complete(p) && (!p->client || q->una == q->end)) {
		rxw_pcall_all_acked(p, out);
		return;
	}
	if (q->above_high && rxw_pcall_writable(p)) {
		q->above_high = false;
		rxw_pcall_touch(p, out, RXW_OUT_WRITE);
	}
	rxw_pcall_offer(p, n->newer ? RXW_OUT_WINDOW : 0, out);
}

/* An ACK that says what cannot be: true if the call is over, or the ACK is to be ignored. */
static bool impossible(struct rxw_pcall *p, const struct rxw_ack *ack, struct rxw_out *out)
{
	struct rxw_sendq *q = &p->tx;

	if (ack->first > q->nxt) {
		rxw_drop(out->stats, RXW_DROP_BAD_ACK, 1);
		/*
		 * Damaged or forged: no class protects an ACK. Who asked for protection does not lose
		 * a call by that; a peer that means it keeps nothing alive by it, and the call dies.
		 */
		if (p->conn->security->class.verify == NULL)
			rxw_pcall_fail(p, RXW_PROTOCOL_ERROR, RXW_ORIGIN_LOCAL, true, out);
		return true;
	}
	if (p->client && ack->reason == RXW_ACK_EXCEEDS_WINDOW && ack->first == 1 &&
	    ack->previous == 0 && q->una > 1) {
		/* The server knows nothing of us: a NAT between gave us another port. */
		rxw_pcall_fail(p, RXW_NETWORK_RESET, RXW_ORIGIN_LOCAL, false, out);
		return true;
	}
	return ack->first < q->una;
}

void rxw_pcall_input_ack(struct rxw_pcall *p, const struct rxw_rxrun *run, struct rxw_out *out)
{
	struct rxw_sendq *q = &p->tx;
	struct news n = {.now = out->now};
	uint32_t flight = q->flight, cwnd = p->cc.cwnd, window = q->window, lowest;

	if (!rxw_ack_get(run->data + RXW_HEADER_SIZE, run->last_size - RXW_HEADER_SIZE, &n.ack)) {
		rxw_drop(out->stats, RXW_DROP_BAD_ACK, 1);
		return;
	}
	RXW_PROBE(ack_received, p, n.ack.first, n.ack.count, n.ack.reason, n.ack.rwind,
		  n.ack.serial);
	p->acks_received++;
	p->peer_status = run->head.user_status;
	if ((run->head.flags & RXW_REQUEST_ACK) || n.ack.reason == RXW_ACK_PING) {
		if (p->error != 0) {
			rxw_pcall_write_abort(p, out);
			return;
		}
		if (p->state != RXW_CS_RESET)
			rxw_ack_answer_ping(p, run->head.serial, out);
		/* It asks for something, so it is there: our own questions may be asked once more. */
		if (p->timer.unsolicited > 0)
			p->timer.unsolicited--;
		if (p->conn->challenges > 1)
			p->conn->challenges--;
	} else if (p->timer.abort_owed) {
		rxw_pcall_write_abort(p, out);
	}
	if (!rxw_pcall_live(p) || impossible(p, &n.ack, out))
		return;
	n.newer = n.ack.first > q->una || q->ack_serial == 0 ||
		  (int32_t)(run->head.serial - q->ack_serial) > 0;
	if (n.newer)
		q->ack_serial = run->head.serial;
	find_named(q, &n);
	take_sample(p, &n);
	ping_answered(p, &n);
	lowest = q->stuck_since != 0 ? lowest_missing(q) : 0;
	n.highest = p->recovery.highest_order;
	hard_acks(p, &n);
	soft_acks(p, &n);
	if (n.newer)
		trailer(p, &n.ack);
	if (n.ack.reason == RXW_ACK_EXCEEDS_WINDOW && n.newer)
		beyond_window(p);
	if (n.ack.reason == RXW_ACK_DUPLICATE)
		duplicate(p, &n);
	congestion(p, &n, flight, out);
	rxw_saw_window(p, out, cwnd, window);
	rxw_saw_sender(p);
	signs(p, &n, out);
	after(p, &n, lowest, out);
	rxw_pcall_arm(p, out);
}

void rxw_pcall_all_acked(struct rxw_pcall *p, struct rxw_out *out)
{
	struct rxw_sendq *q = &p->tx;

	if (!q->all_queued || q->nxt != q->end)
		q->stopped = p->client;
	q->idle_since = q->base_at = out->now;
	rxw_sendq_clear(p);
	if (q->above_high || q->stopped) {
		q->above_high = false;
		rxw_pcall_touch(p, out, RXW_OUT_WRITE);
	}
	if (!p->client && p->state == RXW_CS_HOLD)
		rxw_pcall_reply_acked(p, out);
	rxw_pcall_arm(p, out);
}
