/* SPDX-License-Identifier: BSD-2-Clause */
/* ACKs received: scoreboard, round trips, windows (rx-protocol 3.2, 3.5, 3.8). */
#include <string.h>

#include "base/assert.h"
#include "proto/state.h"

#define TELL_AFTER	16u	/* packets: the window of short calls does not grow */
#define ASK_APART	RXW_SEC /* between two PINGs triggered by ACKs of data */
#define OVERTAKEN_FOR	RXW_SEC /* ACKs that arrive out of order are not older than that */

/* An ACK, and what it changes. */
struct ack_result {
	const struct rxw_ack *ack;
	uint64_t now;
	uint32_t newly; /* packets newly acknowledged */
	uint32_t old;	/* of those, packets of the size before the path MTU changed */
	uint32_t credit; /* all of them, as packets of the size now */
	bool newer;	/* no later ACK overtook it */
	bool named;	/* ack.serial names a transmission of ours, or a PING */
	bool original;	/* and it was sent again since, or is a PING */
	bool proof;	/* it is one that only the owner of the address can know */
	uint32_t named_seq, named_order;
	uint64_t named_at;
	bool before_rto; /* a transmission from before the timeout was acknowledged */
	bool spurious;	 /* a packet that was declared lost was only late, */
	uint32_t distance; /* by at most so many transmissions; */
	uint32_t needless; /* so many packets of the latest loss event were */
	uint32_t highest; /* order acknowledged before this ACK */
	uint64_t waited;  /* ns: how long the ACK was in our socket's queue; 0 = unknown */
	uint64_t rtt;	  /* sample taken, ns; 0 = none */
	uint64_t
		oldest; /* for a model: when the earliest packet was sent, of those sent once; 0 = none */
	struct rxw_txseg newest; /* transmission acknowledged, for a model; count 0: none */
	bool round;		 /* a round trip has ended */
	bool congested;		 /* marks were reported that call for a reaction */
};

static void find_named(const struct rxw_sendq *q, struct ack_result *r)
{
	uint32_t serial = r->ack->serial, i;
	const struct rxw_txseg *s = serial != 0 ? rxw_sent_find_serial(&q->sent, serial) : NULL;

	if (s == NULL)
		return;
	i = serial - s->serial;
	if (s->first + i < q->una)
		return;
	r->named = true;
	r->named_seq = s->first + i;
	r->named_order = s->order + i;
	r->named_at = s->sent_at;
	r->original = rxw_sent_order(&q->sent, r->named_seq) != r->named_order;
}

/*
 * A round trip, and how much of it the answer waited in our own socket (0: unknown): timers have to
 * allow for that, but it says nothing of the path. False: it is not to be believed.
 */
static bool note_round_trip(struct rxw_pcall *p, uint64_t rtt, uint64_t waited, uint64_t now)
{
	struct rxw_peer *peer = p->conn->peer;

	if (!rxw_rtt_plausible(&p->tx.rtt, rtt, now))
		return false;
	rxw_rtt_sample(&p->tx.rtt, rtt);
	rxw_peer_learn_rtt(peer, rtt, waited, now);
	rxw_peer_learn_srtt(peer, &p->tx.rtt, now);
	return true;
}

/* It describes more than 255 packets, the last of which is previousPacket. */
static bool is_wide(const struct rxw_ack *ack)
{
	return ack->count > RXW_MAX_ACKS || ack->tail > 0 || ack->part > 0;
}

static void take_sample(struct rxw_pcall *p, struct ack_result *r)
{
	const struct rxw_ack *ack = r->ack;
	uint32_t highest = ack->first - 1;

	if (!r->named || r->original || (int32_t)(ack->serial - p->tx.sampled_serial) <= 0)
		return;
	if (ack->reason == RXW_ACK_IDLE || ack->reason == RXW_ACK_DELAY) {
		/* The ACK may have been delayed, unless it is about the newest packet. */
		if (is_wide(ack))
			highest = ack->previous;
		for (uint32_t i = is_wide(ack) ? 0 : ack->count; i > 0; i--)
			if (rxw_ack_has(ack, i - 1)) {
				highest = ack->first + i - 1;
				break;
			}
		if (r->named_seq != highest)
			return;
	}
	p->tx.sampled_serial = ack->serial;
	if (note_round_trip(p, r->now - r->named_at, r->waited, r->now))
		r->rtt = r->now - r->named_at;
}

static void ping_answered(struct rxw_pcall *p, struct ack_result *r)
{
	struct rxw_ping ping;

	if (r->named || !rxw_ack_take_ping(p, r->ack->serial, &ping))
		return;
	r->named = r->original = true; /* but no DATA */
	r->proof = ping.secret;
	note_round_trip(p, r->now - ping.sent_at, r->waited, r->now);
	rxw_send_probe_answered(p, &ping, r->now);
}

/*
 * Packets that were declared lost had arrived; `order` is that of the transmission that arrived, of the last of them.
 */
static void note_needless(struct rxw_pcall *p, const struct rxw_txpart *part, uint32_t order,
		     struct ack_result *r)
{
	struct rxw_sendq *q = &p->tx;

	if (q->recovery.highest_order > order)
		r->distance = rxw_max32(r->distance, q->recovery.highest_order - order);
	/* Lost for another reason: the window was reduced, or the peer has moved. */
	if (!part->doubted)
		return;
	r->spurious = true;
	r->needless += rxw_send_needless(q, part, order - (part->count - 1));
}

/* A part is acknowledged that was not lost, or was sent again. */
static void take_delivered(struct rxw_pcall *p, const struct rxw_txpart *part, struct ack_result *r)
{
	struct rxw_sendq *q = &p->tx;
	const struct rxw_txseg *s = part->seg;
	uint32_t order = part->order + part->count - 1;
	bool first_time = s->prev_order == 0, early;

	/* Too soon after the retransmission, or it names the original: that one had arrived. */
	early = !first_time && ((q->rtt.min != 0 && r->now - s->sent_at < q->rtt.min / 2) ||
				(r->original && r->named_seq >= part->first &&
				 r->named_seq < part->first + part->count));
	if (early) {
		order = s->prev_order + (part->first - s->first) + part->count - 1;
		note_needless(p, part, order, r);
	} else {
		if (first_time && (int32_t)(r->highest - part->order) > 0)
			rxw_recovery_late(&q->recovery, &q->rtt, r->highest - part->order,
					  s->sent_at, r->now);
		rxw_recovery_acked(&q->recovery, order, s->sent_at);
	}
	if (q->frto_order != 0 && order <= q->frto_order)
		r->before_rto = true;
}

/* The newest transmission that this ACK acknowledges, for a model of the path. */
static void note_newest(const struct rxw_txpart *part, struct ack_result *r)
{
	uint32_t order = part->order + part->count - 1;

	if (part->never_left ||
	    (r->newest.count != 0 &&
	     (int32_t)(order - r->newest.order) < (int32_t)r->newest.count))
		return;
	r->newest = *part->seg;
	r->newest.count = part->first - part->seg->first + part->count;
}

/* A part is acknowledged. */
static void take_acked_part(struct rxw_pcall *p, const struct rxw_txpart *part,
			    struct ack_result *r)
{
	struct rxw_sendq *q = &p->tx;
	const struct rxw_txseg *s = part->seg;
	uint32_t n = part->count, order = part->order + n - 1;

	/* The peer had dropped it, and has found it again: nothing new arrived. */
	if (part->state == RXW_TX_LOST && part->once)
		return;
	r->newly += n;
	if (s->marked != RXW_ECN_UNMARKED && !part->once)
		rxw_ecn_acked(&q->ecn, n, s->marked == RXW_ECN_MARKED);
	if (part->first < q->units.from)
		r->old += n;
	if (s->prev_order == 0 && part->state == RXW_TX_FLIGHT &&
	    (r->oldest == 0 || s->sent_at < r->oldest))
		r->oldest = s->sent_at;
	if (q->cc.ops->sample != NULL)
		note_newest(part, r);
	if (part->state == RXW_TX_FLIGHT) {
		take_delivered(p, part, r);
	} else if (!part->never_left) {
		note_needless(p, part, order, r);
		if (q->frto_order != 0 && order <= q->frto_order)
			r->before_rto = true;
	}
}

static void hard_acks(struct rxw_pcall *p, struct ack_result *r)
{
	struct rxw_sendq *q = &p->tx;
	uint32_t first = r->ack->first, seq = q->una;

	assert(q->una <= first);
	assert(first <= q->nxt);
	while ((seq = rxw_sent_missing(&q->sent, seq, first)) < first) {
		struct rxw_txpart part = rxw_sent_part(&q->sent, seq, first);

		take_acked_part(p, &part, r);
		seq += part.count;
	}
	rxw_sendq_free_below(p, first);
}

/*
 * Packets from `from` on, below `to`, that the peer had dropped, and has again. 64 at a time, since it says so in a few
 * bytes. False: the first is none of them.
 */
static bool take_regained(struct rxw_sendq *q, uint32_t from, uint32_t to)
{
	uint64_t again = rxw_bitmap_word(&q->sent.lost, from) & rxw_bitmap_word(&q->sent.once, from);

	if (to - from < 64)
		again &= (1ull << (to - from)) - 1;
	if ((again & 1) == 0)
		return false;
	rxw_sendq_regained(q, from, again);
	return true;
}

/* Packets [from, to) are received. */
static void take_received(struct rxw_pcall *p, uint32_t from, uint32_t to, struct ack_result *r)
{
	struct rxw_sendq *q = &p->tx;

	while ((from = rxw_sent_missing(&q->sent, from, to)) < to) {
		struct rxw_txpart part;

		if (take_regained(q, from, to))
			continue;
		part = rxw_sent_part(&q->sent, from, to);
		take_acked_part(p, &part, r);
		rxw_sendq_set(q, part.first, part.count, RXW_TX_ACKED, false);
		from += part.count;
	}
}

/*
 * `n` packets from `first` on were received, where a bit is set, or not. Packets that are acknowledged for the first time
 * are looked at one by one. Others that were received and are not any more were dropped by the receiver: no sign of
 * congestion.
 */
static void soft_word(struct rxw_pcall *p, uint32_t first, uint32_t n, uint64_t bits,
		      struct ack_result *r)
{
	struct rxw_sendq *q = &p->tx;
	uint64_t lost = rxw_bitmap_word(&q->sent.lost, first);
	uint64_t missing = rxw_bitmap_word(&q->sent.flight, first) | lost;
	uint64_t all = n < 64 ? (1ull << n) - 1 : UINT64_MAX;
	uint64_t fresh = bits & missing & all, gone = r->newer ? ~bits & ~missing & all : 0;
	uint64_t again = fresh & lost;

	if (again != 0)
		again &= rxw_bitmap_word(&q->sent.once, first);
	if (again != 0)
		rxw_sendq_regained(q, first, again);
	if (gone != 0)
		rxw_sendq_dropped(q, first, gone);
	fresh &= ~again;
	while (fresh != 0) {
		unsigned i = (unsigned)__builtin_ctzll(fresh);
		uint64_t run = fresh >> i;
		unsigned k = ~run != 0 ? (unsigned)__builtin_ctzll(~run) : 64;

		take_received(p, first + i, first + i + k, r);
		fresh &= ~((k < 64 ? (1ull << k) - 1 : UINT64_MAX) << i);
	}
}

static void soft_bits(struct rxw_pcall *p, uint32_t first, uint32_t count, const uint64_t *bits,
		      struct ack_result *r)
{
	for (uint32_t i = 0; i < count; i += 64)
		soft_word(p, first + i, rxw_min32(count - i, 64), bits[i / 64], r);
}

/* The tables of an extended ACK that describe `count` packets, from `begin` on. */
static void soft_tables(struct rxw_pcall *p, uint32_t begin, uint32_t count, struct ack_result *r)
{
	uint64_t bits[RXW_ACK_WORDS];
	uint32_t sent = p->tx.nxt - r->ack->first;

	if (begin >= sent)
		return;
	rxw_ack_gather(r->ack, begin, count, bits);
	soft_bits(p, r->ack->first + begin, rxw_min32(count, sent - begin), bits, r);
}

/* One byte for each packet. */
static void soft_bytes(struct rxw_pcall *p, uint32_t count, struct ack_result *r)
{
	uint64_t bits[(RXW_MAX_ACKS + 63) / 64];
	uint8_t table[RXW_ACK_TABLE] = {0};
	struct rxw_ack whole = {.acks = table};

	memcpy(table, r->ack->acks, count);
	rxw_ack_gather(&whole, 0, count, bits);
	soft_bits(p, r->ack->first, count, bits, r);
}

static void soft_acks(struct rxw_pcall *p, struct ack_result *r)
{
	struct rxw_sendq *q = &p->tx;
	const struct rxw_ack *ack = r->ack;
	uint32_t first = ack->first, count = rxw_min32(ack->count, q->nxt - first);
	uint32_t begin = ack->base * RXW_TABLE_PACKETS;

	memset(q->untold, 0, sizeof(q->untold));
	/* Packets that were never sent: the tables are not to be trusted. */
	if (is_wide(ack) && ack->previous >= q->nxt)
		return;
	if (count > RXW_MAX_ACKS)
		soft_tables(p, 0, count, r);
	else
		soft_bytes(p, count, r);
	if (ack->part > 0) {
		q->untold[0].from = first + count;
		q->untold[0].to = first + begin;
		q->untold[1].from = first + begin + ack->part;
		q->untold[1].to = ack->previous + 1;
		soft_tables(p, begin, ack->part, r);
	}
	if (ack->tail > 0)
		take_received(p, first + count, first + rxw_min32(count + ack->tail, q->nxt - first), r);
}

static void take_trailer(struct rxw_pcall *p, const struct rxw_ack *ack, uint64_t now)
{
	struct rxw_peer *peer = p->conn->peer;
	struct rxw_sendq *q = &p->tx;

	if (ack->trailer_words >= 2) {
		/* No class protects ACKs: this one must not change the size of other connections' packets. */
		p->conn->peer_max_mtu = ack->max_mtu;
		if (atomic_load_explicit(&peer->told_max_mtu, memory_order_relaxed) != ack->max_mtu)
			atomic_store_explicit(&peer->told_max_mtu, ack->max_mtu,
					      memory_order_relaxed);
	}
	if (ack->trailer_words >= 3) {
		uint32_t window = rxw_min32(ack->rwind, rxw_max32(p->conn->params->window,
								  RXW_MAX_ACKS));

		if (ack->trailer_words >= 4 || window < q->window)
			q->window = window;
		p->conn->peer_window = q->window;
	}
	q->edge = rxw_send_edge(q, ack->first + q->window);
	rxw_ack_heard_wide(p, ack->extended);
	if (p->conn->rx.wide_heard)
		rxw_sendq_widen(p, now);
	if (!p->conn->rx.wide_heard && q->ecn.state != RXW_ECN_OFF)
		memset(&q->ecn, 0, sizeof(q->ecn));
}

/* The marks that the peer has seen. A sixth word alone is no report: it needs a fifth one. */
static void take_marks(struct rxw_pcall *p, const struct rxw_ack *ack, struct ack_result *r)
{
	struct rxw_sendq *q = &p->tx;

	if (!ack->ecn || (ack->part > 0 && !p->conn->rx.marks_heard) || !rxw_ack_heard_marks(p))
		return;
	rxw_ecn_begin(&q->ecn, rxw_peer_recall_ecn(p->conn->peer, r->now));
	if (rxw_ecn_report(&q->ecn, ack->marks) == 0)
		return;
	r->congested = rxw_ecn_react(&q->ecn, q->recovery.highest_order, q->order,
				     q->rtt.latest > q->rtt.min + q->rtt.min / 64 + RXW_MS);
}

/* Congestion was marked. Recovery has reacted already to what was sent before it. */
static void react_to_marks(struct rxw_pcall *p, struct ack_result *r, uint32_t flight,
			   struct rxw_out *out)
{
	if (rxw_recovery_active(&p->tx.recovery)) {
		r->congested = false;
		return;
	}
	rxw_tally(out->stats, &out->stats->mark_events, 1);
	p->count.mark_events++;
	rxw_event(p, out->stats,
		  (struct rxw_trace_event){.kind = RXW_TRACE_ECN,
					   .now = out->now,
					   .a = p->tx.ecn.state,
					   .b = p->tx.ecn.ce,
					   .c = 1});
	rxw_cc_marked(&p->tx.cc, flight);
	rxw_send_note_ssthresh(p, out->now);
}

/*
 * A DUPLICATE that names a retransmission, or the transmission before, which was only late. It says nothing of the
 * others that were sent again with it.
 */
static void take_duplicate(struct rxw_pcall *p, struct ack_result *r)
{
	struct rxw_sendq *q = &p->tx;

	for (unsigned i = 0; i < 8; i++) {
		uint32_t k = r->ack->serial - q->sent.resent[i].serial;

		if (k >= q->sent.resent[i].count)
			k = r->ack->serial - q->sent.resent[i].was;
		if (k >= q->sent.resent[i].count)
			continue;
		r->spurious = true;
		r->distance = rxw_max32(r->distance, q->sent.resent[i].distance);
		r->needless += rxw_send_needless_named(q, i, k);
	}
}

/* The window does not cover packets that were sent: they must be sent again once it does. */
static void beyond_window(struct rxw_pcall *p)
{
	struct rxw_sendq *q = &p->tx;

	if (q->edge < q->nxt)
		rxw_sendq_lose_from(q, q->edge);
}

/* The rate at which packets were delivered between two that were sent; 0 = unknown. */
static uint64_t delivery_rate(const struct rxw_pcall *p, const struct ack_result *r)
{
	const struct rxw_sendq *q = &p->tx;
	const struct rxw_txseg *s = &r->newest;
	uint64_t sending = s->sent_at - s->began_at, acking = r->now - s->delivered_at;
	uint64_t time = sending > acking ? sending : acking;

	/* Shorter than a round trip: the packet was sent twice, and this is the ACK of the first. */
	if (s->count == 0 || time == 0 || time < q->rtt.min || s->delivered_at == 0)
		return 0;
	return (uint64_t)rxw_send_delivered(q, s) * (RXW_SEC << 10) / time;
}

/* Tell a controller that has a model of the path. */
static void tell_model(struct rxw_pcall *p, struct ack_result *r)
{
	struct rxw_sendq *q = &p->tx;
	struct rxw_cc_sample s;

	q->rate.delivered += r->credit;
	if (q->rate.limited_to != 0 && (int32_t)(q->rate.delivered - q->rate.limited_to) > 0)
		q->rate.limited_to = 0;
	s = (struct rxw_cc_sample){
		.now = r->now,
		.rate = delivery_rate(p, r),
		.rtt = r->rtt,
		.longest = r->oldest != 0 ? r->now - r->oldest : 0,
		.fair = rxw_send_rate_from(p, rxw_peer_fair(p->conn->account)),
		.newly = r->credit,
		.lost = q->rate.lost,
		.flight = rxw_send_flight(q),
		.flight_then = r->newest.flight,
		.limited = r->newest.limited,
		.round = r->round,
		.congested = r->congested,
	};
	q->rate.lost = 0;
	q->rate.delivered_at = r->now;
	if (r->newest.count != 0) {
		q->rate.began_at = r->newest.sent_at;
		q->rate.began_order = r->newest.order + r->newest.count - 1;
	}
	rxw_cc_sample(&q->cc, &s);
}

/* The peer learns from this call, and the call from earlier ones. */
static void learn_from_ack(struct rxw_pcall *p, const struct ack_result *r)
{
	struct rxw_sendq *q = &p->tx;
	struct rxw_peer *peer = p->conn->peer;
	struct rxw_cc_path path;

	if (r->rtt != 0 && q->cc.resume == RXW_CC_EXPECTING)
		rxw_cc_confirm(&q->cc, r->rtt,
			       atomic_load_explicit(&p->conn->account->learnt.senders,
						    memory_order_relaxed));
	else
		rxw_cc_prove(&q->cc, r->credit);
	if (q->cc.resume == RXW_CC_RETREATED) {
		q->cc.resume = RXW_CC_NORMAL;
		rxw_peer_forget(peer);
	} else if (r->round && q->sender && q->cc.resume == RXW_CC_NORMAL &&
		   rxw_cc_learnt(&q->cc, q->rtt.min, q->rtt.srtt, &path)) {
		path.rate = rxw_send_rate_to(p, path.rate);
		rxw_sendq_share(p, r->newest.limited ? 0 : path.rate);
		rxw_peer_learn(peer, p->conn->client, &path, r->now);
	}
	if (q->flight == 0 && q->lost == 0 && q->nxt == q->end) {
		rxw_sendq_count_sender(p, false);
		rxw_sendq_share(p, 0);
	}
}

/*
 * The window with which the peer's next call may begin: what this one has proven without a loss, in which slow
 * start would double it.
 */
static uint32_t window_for_next(const struct rxw_sendq *q)
{
	if (q->losses)
		return 0;
	if (q->cc.max <= RXW_MAX_ACKS)
		return q->cc.cwnd;
	return rxw_min32(rxw_min32(2 * rxw_max32(q->peak, q->last_peak), q->cc.cwnd), RXW_MAX_ACKS);
}

static void update_congestion(struct rxw_pcall *p, struct ack_result *r, uint32_t flight,
			      struct rxw_out *out)
{
	struct rxw_sendq *q = &p->tx;
	bool slow = p->tx.cc.cwnd < p->tx.cc.ssthresh;
	uint32_t peak = rxw_max32(q->peak, q->last_peak);
	/*
	 * Was the window filled? In slow start it grows while the ACKs of one flight arrive, and
	 * that flight is half of the next one.
	 */
	bool limited = slow ? peak >= p->tx.cc.cwnd / 2 : peak + 1 >= p->tx.cc.cwnd;
	bool undo = false;

	r->credit = rxw_send_credit(q, r->newly, r->old);
	if (r->newly > 0) {
		if (rxw_recovery_active(&p->tx.recovery) && !slow)
			rxw_recovery_delivered(&p->tx.recovery, r->credit);
		else
			rxw_cc_acked(&p->tx.cc, r->credit, limited);
		if (q->frto_order != 0) {
			undo = r->before_rto;
			if (!undo)
				rxw_cc_forget_undo(&q->cc);
			q->frto_order = 0;
		}
		if ((int32_t)(p->tx.recovery.highest_order - q->round_order) >= 0) {
			q->last_peak = q->peak;
			q->carried = rxw_max32(q->carried, q->peak);
			q->peak = rxw_send_flight(q);
			q->round_order = q->order + 1;
			r->round = true;
		}
	}
	if (undo || r->spurious)
		rxw_send_spurious(p, r->distance, rxw_send_refuted(q, r->needless) || undo, out);
	rxw_recovery_decay(&p->tx.recovery, r->now, p->tx.rtt.srtt);
	if (r->ack->reason == RXW_ACK_NOSPACE && r->now >= q->nospace_at + p->tx.rtt.srtt) {
		q->nospace_at = r->now;
		rxw_cc_lost(&p->tx.cc, flight);
	}
	if (q->flight > 0 && p->tx.recovery.highest_order != 0)
		rxw_send_find_losses(p, flight, out);
	else
		q->loss_at = RXW_NEVER;
	if (r->congested)
		react_to_marks(p, r, flight, out);
	if (r->newly > 0 && q->cc.ops->sample != NULL)
		tell_model(p, r);
	if (r->newly > 0 && q->cc.max > RXW_MAX_ACKS)
		learn_from_ack(p, r);
	if (r->newly > 0 && q->rtt.min >= RXW_LONG_RTT)
		rxw_peer_learn_cwnd(p->conn->peer, p->conn->client, window_for_next(q), r->now);
	if (r->newly > 0)
		q->cc.warm = 0;
}

static uint32_t lowest_missing(const struct rxw_sendq *q)
{
	return rxw_sent_missing(&q->sent, q->una, q->nxt);
}

/*
 * The server took the call, and the sender may move on. If it has nothing of the call, it refused it after
 * acknowledging it, and BUSY counts again.
 */
static void note_server_heard(struct rxw_sendq *q, const struct ack_result *r)
{
	if (r->newer || !q->heard)
		q->heard = q->una > 1 || q->acked > 0;
	q->busy_since = 0;
	q->busy_count = 0;
}

/*
 * The peer acknowledges data, so it can validate its address: for the first time, or again before
 * the last validation expires, so that no reply has to wait for it. A client that has acknowledged
 * the whole reply is asked, too, if its ACK names a packet: that of OpenAFS names none.
 */
static void ask_for_proof(struct rxw_pcall *p, uint64_t now, struct rxw_out *out)
{
	const struct rxw_pconn *c = p->conn;

	if (rxw_send_reply_sent(p) && p->tx.una < p->tx.nxt)
		return;
	if (rxw_peer_proof_due(c->peer, now) &&
	    (c->rx.proof_serial == 0 || now >= c->rx.proof_asked + ASK_APART))
		rxw_ack_ping(p, 0, out);
}

/* Packets were acknowledged; `lowest`: lowest missing packet before, if one is stuck. */
static void note_progress(struct rxw_pcall *p, const struct ack_result *r, uint32_t lowest,
			  struct rxw_out *out)
{
	struct rxw_sendq *q = &p->tx;

	q->backoff = 0;
	q->probed = false;
	q->base_at = r->now;
	rxw_mtu_progress(&q->mtu);
	if (q->stuck_since != 0 && lowest_missing(q) != lowest)
		q->stuck_since = 0;
	if (q->flight == 0 && q->lost == 0)
		q->idle_since = r->now;
	rxw_send_check_progress(p, r->now);
	rxw_send_search(p, out);
}

/*
 * Has no later ACK overtaken this one? Serial numbers tell, for a while: if one was damaged on its
 * way, none of the following exceeds it, and they would have no effect on windows and missing
 * packets.
 */
static bool is_newer(struct rxw_sendq *q, const struct rxw_ack *ack, uint32_t serial, uint64_t now)
{
	if (ack->first <= q->una && q->ack_serial != 0 && (int32_t)(serial - q->ack_serial) <= 0 &&
	    now < q->ack_at + OVERTAKEN_FOR)
		return false;
	q->ack_serial = serial;
	q->ack_at = now;
	return true;
}

enum rxw_ack_check rxw_send_check_ack(const struct rxw_pcall *p, const struct rxw_ack *ack,
				      uint64_t now)
{
	const struct rxw_sendq *q = &p->tx;

	if (ack->first > q->nxt)
		return RXW_ACK_INVALID;
	if (ack->first >= q->una)
		return RXW_ACK_GOOD;
	/* A NAT gave us another port, and the server does not know us. Or the ACK is one of its first, and late. */
	if (p->client && ack->reason == RXW_ACK_EXCEEDS_WINDOW && ack->first == 1 &&
	    ack->previous == 0 && now >= q->ack_at + OVERTAKEN_FOR)
		return RXW_ACK_RESET;
	return RXW_ACK_OLD;
}

unsigned rxw_send_ack(struct rxw_pcall *p, const struct rxw_ack *ack, uint32_t serial,
		      uint64_t waited, struct rxw_out *out)
{
	struct rxw_sendq *q = &p->tx;
	struct ack_result r = {.ack = ack, .now = out->now, .waited = waited};
	uint32_t flight = q->flight, cwnd = q->cc.cwnd, window = q->window, lowest;

	rxw_send_before_ack(p);
	r.newer = is_newer(q, ack, serial, out->now);
	find_named(q, &r);
	take_sample(p, &r);
	ping_answered(p, &r);
	lowest = q->stuck_since != 0 ? lowest_missing(q) : 0;
	r.highest = q->recovery.highest_order;
	hard_acks(p, &r);
	soft_acks(p, &r);
	if (r.newer) {
		take_trailer(p, ack, r.now);
		take_marks(p, ack, &r);
	}
	if (ack->reason == RXW_ACK_EXCEEDS_WINDOW && r.newer)
		beyond_window(p);
	if (ack->reason == RXW_ACK_DUPLICATE)
		take_duplicate(p, &r);
	update_congestion(p, &r, flight, out);
	rxw_send_note_ecn(p, out);
	rxw_send_window_event(p, out, cwnd, window);
	rxw_sendq_probe(p, q);
	note_server_heard(q, &r);
	if (r.named && !r.proof && !p->client)
		ask_for_proof(p, r.now, out);
	if (r.newly > 0)
		note_progress(p, &r, lowest, out);
	if (q->nxt > TELL_AFTER)
		rxw_ack_tell_wide(p, rxw_rtt_rto(&q->rtt, 0, 0), out);
	return (r.newly > 0 ? RXW_ACKED_NEW : 0) | (r.proof ? RXW_ACKED_PROOF : 0);
}

void rxw_send_heard(struct rxw_pcall *p)
{
	p->tx.heard = true;
	p->tx.busy_since = 0;
}

void rxw_send_ack_all(struct rxw_pcall *p, uint64_t now)
{
	p->tx.heard = true;
	rxw_sendq_free_below(p, p->tx.nxt);
	p->tx.backoff = 0;
	p->tx.base_at = now;
}
