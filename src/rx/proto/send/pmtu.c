/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The path MTU of a call (rx-protocol 5.5): one call of a peer searches for it, the others follow. A
 * check tells a black hole from a broken path.
 */
#include "proto/state.h"

#define SEARCH_AFTER 64u  /* packets: short calls do not search for a larger MTU */
#define MANY	     8u
#define PATIENCE     (2 * RXW_MS) /* of the check, at least, for packets that are overtaken */
#define TRIES	     3u  /* PINGs of one size */
#define MOST_TRIES   16u
#define IN_VAIN	     4u  /* retransmissions in fragments, until packets are cut anew, */
#define UNANSWERED   2u  /* so many of these do not count for a PING without an answer */
#define HOPELESS     8u  /* or until the call ends if they cannot be */

static void store_mtu(struct rxw_pcall *p)
{
	atomic_store_explicit(&p->conn->peer->mtu, p->tx.mtu.confirmed, memory_order_relaxed);
}

/* May this call send probes? Takes over a search that another call did not end. */
static bool may_search(struct rxw_pcall *p, uint64_t now)
{
	struct rxw_peer *peer = p->conn->peer;
	struct rxw_sendq *q = &p->tx;

	if (q->searching)
		return true;
	if (now < atomic_load_explicit(&peer->mtu_at, memory_order_relaxed))
		return false;
	/* Probes are large: an address that is not validated gets none. */
	if (!rxw_peer_trusted(peer, p->conn->client, now))
		return false;
	rxw_mtu_resume(&q->mtu, atomic_load_explicit(&peer->mtu_search, memory_order_relaxed));
	return true;
}

/* The state of the search has changed: other calls wait, or it is over. */
static void note_search(struct rxw_pcall *p, uint64_t now)
{
	struct rxw_peer *peer = p->conn->peer;
	struct rxw_sendq *q = &p->tx;
	struct rxw_mtu *m = &q->mtu;

	if (!q->searching)
		return;
	q->searching = !m->done;
	atomic_store_explicit(&peer->mtu_at,
			      m->done ? m->next_at : now + 2 * rxw_rtt_rto(&q->rtt, 0, 0),
			      memory_order_relaxed);
	atomic_store_explicit(&peer->mtu_search, m->done ? 0 : rxw_mtu_pack(m),
			      memory_order_relaxed);
}

/* Another call of the peer found a larger size, or a black hole. */
static void follow_mtu(struct rxw_pcall *p, uint64_t now)
{
	uint32_t size = atomic_load_explicit(&p->conn->peer->mtu, memory_order_relaxed);

	if (p->tx.mtu.enabled && size != 0 && size != p->tx.mtu.confirmed)
		rxw_mtu_follow(&p->tx.mtu, size, now);
}

/* Our own system refused the probe in flight: no need to send it again. */
static void take_refusal(struct rxw_pcall *p, uint64_t now)
{
	struct rxw_sendq *q = &p->tx;
	uint32_t size;

	if (q->mtu.probing == 0)
		return;
	size = atomic_load_explicit(&p->conn->peer->mtu_refused, memory_order_relaxed);
	if (size == 0 || size > q->mtu.probing)
		return;
	atomic_store_explicit(&p->conn->peer->mtu_refused, 0, memory_order_relaxed);
	rxw_mtu_refused(&q->mtu, now);
	q->mtu_at = RXW_NEVER;
	note_search(p, now);
}

void rxw_send_search(struct rxw_pcall *p, struct rxw_out *out)
{
	struct rxw_peer *peer = p->conn->peer;
	struct rxw_sendq *q = &p->tx;
	uint32_t size, most = p->conn->peer_max_mtu;

	follow_mtu(p, out->now);
	take_refusal(p, out->now);
	if (q->nxt <= SEARCH_AFTER || !q->rtt.valid || rxw_send_reply_sent(p) ||
	    !may_search(p, out->now))
		return;
	q->mtu.limit = most != 0 ? most : RXW_MTU_DEFAULT;
	size = rxw_mtu_probe(&q->mtu, out->now, q->rtt.srtt);
	if (size == 0) {
		note_search(p, out->now);
		return;
	}
	atomic_store_explicit(&peer->mtu_refused, 0, memory_order_relaxed);
	if (!rxw_ack_ping(p, size, out)) {
		rxw_mtu_unsent(&q->mtu);
		return;
	}
	q->searching = true;
	q->mtu_at = out->now + rxw_rtt_rto(&q->rtt, 0, 0);
	note_search(p, out->now);
}

static void end_check(struct rxw_mtu_check *k)
{
	k->small = k->large = 0;
	k->at = RXW_NEVER;
}

/*
 * --- packets that were sent are too large for the path (rx-protocol 5.5) ---
 *
 * They leave again in fragments, one packet at a time until something arrives. If fragments do not arrive either, while
 * PINGs are answered again and again, packets are cut into smaller ones. A packet number means certain bytes of the
 * stream, so that needs proof that the peer has none of these packets, and that none is on its way: nothing is sent for
 * two RTOs, and the answer to a PING then shows what the peer has.
 */

static bool head_is_large(const struct rxw_pcall *p)
{
	const struct rxw_sendq *q = &p->tx;
	const struct rxw_txent *e;

	if (q->una == q->nxt)
		return false;
	e = rxw_sendq_ent(q, q->ent_head);
	return (q->una + 1 == e->first + e->count ? e->last_size : e->stride) >
	       rxw_pcall_datagram_size(p);
}

/* The peer has nothing that was sent from the lowest missing packet on, as far as it is known. */
static bool may_renumber(const struct rxw_pcall *p)
{
	const struct rxw_security_class *k = &p->conn->auth.security->class;

	return head_is_large(p) && p->tx.acked == 0 && (k->seal == NULL || k->unseal != NULL);
}

/* The request is one packet. */
static bool is_whole_request(const struct rxw_pcall *p)
{
	const struct rxw_sendq *q = &p->tx;

	return p->client && q->una == 1 && q->nxt == 2 && q->end == 2 && q->all_queued;
}

static void take_ping_answer(struct rxw_pcall *p, uint32_t serial, uint64_t now)
{
	struct rxw_sendq *q = &p->tx;
	struct rxw_renumber *r = &q->renumber;

	if (r->ping == 0 || serial != r->ping)
		return;
	r->ping = 0;
	if (r->state == RXW_RENUMBER_ASKING) {
		r->state = RXW_RENUMBER_READY;
		return;
	}
	if (!r->single || r->head != q->una || r->in_vain > HOPELESS)
		return;
	r->in_vain++;
	q->backoff = 0; /* the path is alive */
	if (r->in_vain >= IN_VAIN && may_renumber(p)) {
		r->state = RXW_RENUMBER_ASKING;
		r->tries = 0;
		r->at = now + 2 * rxw_rtt_rto(&q->rtt, 0, 0);
	}
}

/* Packets were acknowledged: they pass, or nothing is known of those that follow. */
static void fragments_arrive(struct rxw_renumber *r)
{
	r->state = RXW_RENUMBER_NONE;
	r->single = false;
	r->ping = 0;
}

void rxw_send_renumber(struct rxw_pcall *p)
{
	struct rxw_sendq *q = &p->tx;
	struct rxw_renumber *r = &q->renumber;

	r->single = head_is_large(p);
	r->ping = 0;
	r->in_vain = 0;
	r->head = q->una;
	/* The server answers no PING. It may have the request, and have been stopped: its ACK will tell. */
	if (r->single && !q->heard && is_whole_request(p) && may_renumber(p))
		r->state = RXW_RENUMBER_READY;
}

void rxw_send_in_vain(struct rxw_pcall *p, struct rxw_out *out)
{
	struct rxw_sendq *q = &p->tx;
	struct rxw_renumber *r = &q->renumber;

	r->single = head_is_large(p);
	if (!r->single || r->head != q->una)
		r->in_vain = 0;
	else if (r->ping != 0) /* where PINGs are lost, fragments may be lost as well */
		r->in_vain -= r->in_vain < UNANSWERED ? r->in_vain : UNANSWERED;
	r->ping = 0;
	r->head = q->una;
	/* A server that has heard nothing of the call answers no PING. */
	if (r->single && (q->heard || !p->client))
		r->ping = rxw_send_ask(p, rxw_pcall_datagram_size(p), out);
}

bool rxw_send_too_large(const struct rxw_pcall *p)
{
	return p->tx.renumber.in_vain >= HOPELESS;
}

static void ask_before(struct rxw_pcall *p, struct rxw_out *out)
{
	struct rxw_sendq *q = &p->tx;
	struct rxw_renumber *r = &q->renumber;

	if (r->state != RXW_RENUMBER_ASKING || out->now < r->at)
		return;
	if (!may_renumber(p)) {
		r->state = RXW_RENUMBER_NONE;
		return;
	}
	/* The peer answers no PING of this size, either. */
	if (r->tries >= TRIES && rxw_send_shrink(p, out))
		r->tries = 0;
	r->ping = rxw_send_ask(p, rxw_pcall_datagram_size(p), out);
	r->at = out->now + rxw_rtt_rto(&q->rtt, 0, r->tries);
	r->tries += r->tries < MOST_TRIES;
}

enum rxw_burst_result rxw_send_renumber_now(struct rxw_pcall *p)
{
	struct rxw_sendq *q = &p->tx;
	struct rxw_renumber *r = &q->renumber;
	bool whole = is_whole_request(p) && !q->heard;
	uint32_t to = q->nxt;

	if (rxw_send_too_large(p))
		return RXW_BURST_FAILED;
	if (r->state != RXW_RENUMBER_READY)
		return RXW_BURST_READY;
	if (!may_renumber(p)) {
		r->state = RXW_RENUMBER_NONE;
		return RXW_BURST_READY;
	}
	if (rxw_sent_is_busy(&q->sent, q->una))
		return RXW_BURST_BUSY;
	rxw_sendq_unsend(p, q->una);
	r->state = RXW_RENUMBER_NONE;
	r->single = false;
	r->in_vain = 0;
	r->whole = whole;
	r->from = q->una;
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

/*
 * Was the ACK written when the packet arrived that it names? Others may be written later, when a reader goes on. Time
 * is no proof: round trips vary, and become shorter with another path.
 */
static bool is_prompt(const struct rxw_ack *ack)
{
	return ack->serial != 0 && ack->reason != RXW_ACK_PING_RESPONSE &&
	       ack->reason != RXW_ACK_DELAY && ack->reason != RXW_ACK_IDLE;
}

/*
 * The server has the whole request, or its new first packet. Old packets arrive before that one, and are named before.
 */
static enum rxw_ack_check check_whole(struct rxw_pcall *p, const struct rxw_ack *ack, bool old)
{
	struct rxw_sendq *q = &p->tx;

	if (q->una == q->nxt || !is_prompt(ack))
		return RXW_ACK_OLD; /* another one will tell */
	if (old)
		return RXW_ACK_WHOLE;
	q->renumber.whole = false;
	q->renumber.to = 0;
	return RXW_ACK_GOOD;
}

enum rxw_ack_check rxw_send_check_renumbered(struct rxw_pcall *p, const struct rxw_ack *ack)
{
	const struct rxw_sendq *q = &p->tx;
	const struct rxw_renumber *r = &q->renumber;
	uint32_t highest;
	bool old;

	if (r->to == 0)
		return RXW_ACK_GOOD;
	highest = highest_of(ack);
	old = is_prompt(ack) && (int32_t)(ack->serial - r->serial) <= 0;
	if (r->whole && highest == r->from)
		return check_whole(p, ack, old);
	return highest >= q->nxt || (highest >= r->from && old) ? RXW_ACK_MIXED : RXW_ACK_GOOD;
}

uint32_t rxw_send_edge(struct rxw_sendq *q, uint32_t edge)
{
	if (q->una >= q->renumber.to)
		q->renumber.to = 0;
	return q->renumber.to != 0 ? rxw_min32(edge, q->renumber.to) : edge;
}

void rxw_send_probe_answered(struct rxw_pcall *p, const struct rxw_ping *ping, uint64_t now)
{
	struct rxw_sendq *q = &p->tx;
	struct rxw_mtu_check *k = &q->check;

	if (ping->size > 0) {
		rxw_mtu_confirmed(&q->mtu, ping->size, now);
		if (q->mtu.probing == 0)
			q->mtu_at = RXW_NEVER;
		store_mtu(p);
		note_search(p, now);
	}
	take_ping_answer(p, ping->serial, now);
	if (ping->serial == k->large) {
		end_check(k);
	} else if (ping->serial == k->small) {
		k->small = 0;
		k->at = now + rxw_max64(q->rtt.srtt / 16 + 2 * q->rtt.rttvar, PATIENCE);
	}
}

/* --- black holes --- */

uint32_t rxw_send_ask(struct rxw_pcall *p, uint32_t size, struct rxw_out *out)
{
	if (!rxw_ack_ping(p, size, out))
		return 0;
	return p->ack.ping[(p->ack.ping_next + RXW_PINGS - 1) % RXW_PINGS].serial;
}

bool rxw_send_check_path(struct rxw_pcall *p, struct rxw_out *out)
{
	struct rxw_sendq *q = &p->tx;
	struct rxw_mtu_check *k = &q->check;
	const struct rxw_txent *e;
	uint32_t size;

	/* A server that has heard nothing of the call answers no PING. */
	if (!q->mtu.enabled || (p->client && !q->heard) || q->ent_head == RXW_NO_NODE || !rxw_pcall_may_send(p))
		return false;
	e = rxw_sendq_ent(q, q->ent_head);
	/* Do packets arrive that are as large as this one may be? */
	size = rxw_min32(q->mtu.confirmed, e->count > 1 ? e->stride : e->last_size);
	if (size <= RXW_MTU_LEAST)
		return true;
	/* The latest two may still be on their way. */
	if (k->at != RXW_NEVER ||
	    (k->small != 0 && out->now < k->asked_at + rxw_rtt_rto(&q->rtt, 0, 0)))
		return true;
	k->asked = true;
	k->asked_at = out->now;
	k->order = q->order;
	k->large = rxw_send_ask(p, size, out);
	k->small = k->large != 0 ? rxw_send_ask(p, 0, out) : 0;
	return k->small != 0;
}

void rxw_send_fallen(struct rxw_pcall *p, uint64_t now)
{
	store_mtu(p);
	p->tx.searching = true;
	p->tx.mtu_at = RXW_NEVER;
	note_search(p, now);
}

void rxw_send_check_progress(struct rxw_pcall *p, uint64_t now)
{
	struct rxw_mtu_check *k = &p->tx.check;

	k->progress_at = now;
	k->asked = false;
	fragments_arrive(&p->tx.renumber);
	if (p->tx.renumber.unproven) {
		p->tx.renumber.unproven = false;
		rxw_send_fallen(p, now);
	}
	/* A packet that was sent after the two has arrived. */
	if ((k->small != 0 || k->at != RXW_NEVER) &&
	    (int32_t)(p->tx.recovery.highest_order - k->order) > 0)
		end_check(k);
}

/* Packets leave, but no ACK comes: a check is due earlier than the RTO after the last of them. */
static uint64_t silence_ends(const struct rxw_pcall *p)
{
	const struct rxw_sendq *q = &p->tx;

	if (!q->mtu.enabled || q->flight == 0 || q->check.asked || !q->rtt.valid ||
	    !rxw_pcall_may_send(p))
		return RXW_NEVER;
	/* Of many packets, some are acknowledged at once. */
	return q->check.progress_at +
	       rxw_rtt_rto(&q->rtt, q->flight > MANY ? 0 : rxw_send_peer_delay(p), 0);
}

bool rxw_send_shrink(struct rxw_pcall *p, struct rxw_out *out)
{
	struct rxw_sendq *q = &p->tx;

	if (!rxw_mtu_fall(&q->mtu))
		return false;
	rxw_send_fallen(p, out->now);
	return true;
}

/*
 * The packets in flight were too large, and say nothing of congestion. They leave again in fragments.
 */
static void fall_back(struct rxw_pcall *p, struct rxw_out *out)
{
	struct rxw_sendq *q = &p->tx;
	uint32_t cwnd = q->cc.cwnd;

	if (!rxw_send_shrink(p, out))
		return;
	if (q->frto_order != 0)
		rxw_cc_undo(&q->cc);
	q->frto_order = 0;
	q->recovery.recovery_end = 0;
	rxw_sendq_lose_from(q, q->una);
	q->doubt = 0;
	q->paced = true;
	q->backoff = 0;
	q->probe = q->probed = false;
	q->loss_at = RXW_NEVER;
	q->base_at = out->now;
	q->force = 1;
	rxw_send_renumber(p);
	rxw_send_window_event(p, out, cwnd, q->window);
}

uint64_t rxw_send_check_deadline(const struct rxw_pcall *p)
{
	return rxw_min64(p->tx.check.at, silence_ends(p));
}

void rxw_send_path_timer(struct rxw_pcall *p, struct rxw_out *out)
{
	struct rxw_sendq *q = &p->tx;

	ask_before(p, out);
	if (out->now >= q->mtu_at) {
		rxw_mtu_lost(&q->mtu, out->now);
		q->mtu_at = RXW_NEVER;
		note_search(p, out->now);
	}
	if (out->now >= q->check.at) {
		end_check(&q->check);
		fall_back(p, out);
	} else if (out->now >= silence_ends(p)) {
		q->check.asked = true;
		rxw_send_check_path(p, out);
	}
}
