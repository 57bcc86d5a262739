/* SPDX-License-Identifier: BSD-2-Clause */
/* What is sent when: thresholds, pacing, trains of new and lost packets (4.1, 4.4, 6.7). */
#include <errno.h>

#include "proto/internal.h"

#define TRAIN_PACKETS 45u
#define TRAIN_BYTES   65507u
#define SMALL_CWND    2u
#define REFUSED_WAIT  RXW_MS

uint32_t rxw_pcall_datagram_size(const struct rxw_pcall *p)
{
	uint32_t size = p->mtu.confirmed;
	uint32_t peer = atomic_load_explicit(&p->conn->peer->peer_max_mtu, memory_order_relaxed);

	if (peer == 0)
		peer = RXW_MTU_DEFAULT;
	return rxw_min32(size, peer);
}

uint32_t rxw_pcall_cwnd_room(const struct rxw_pcall *p)
{
	const struct rxw_cc *cc = &p->cc;

	/*
	 * In recovery the rate of deliveries decides; after a timeout the window is below ssthresh,
	 * and slow start does.
	 */
	if (rxw_recovery_active(&p->recovery) && cc->cwnd >= cc->ssthresh)
		return rxw_recovery_prr(&p->recovery, p->tx.flight, cc->ssthresh);
	return cc->cwnd > p->tx.flight ? cc->cwnd - p->tx.flight : 0;
}

/* Packets of new data that both windows let go. */
static uint32_t new_room(const struct rxw_pcall *p)
{
	const struct rxw_sendq *q = &p->tx;

	if (q->nxt >= q->end || q->nxt >= q->edge)
		return 0;
	return rxw_min32(rxw_pcall_cwnd_room(p), rxw_min32(q->edge - q->nxt, q->end - q->nxt));
}

/*
 * How many packets are worth sending: half of what can be on its way. Where a path has losses the
 * window is what limits it, and waiting costs: what a millisecond brings is enough.
 */
static uint32_t enough(const struct rxw_pcall *p)
{
	uint32_t whole = rxw_min32(p->cc.cwnd, p->tx.window);
	uint32_t soon;

	if (!p->tx.losses || !p->rtt.valid || p->rtt.srtt < RXW_MS)
		return whole / 2;
	soon = (uint32_t)(whole * RXW_MS / p->rtt.srtt);
	return rxw_min32(whole / 2, rxw_max32(soon, whole > RXW_CC_PACED_ABOVE ? RXW_CC_BURST : 2));
}

/* Is it worth sending `room` packets now? Fewer only where nothing would come to make it more. */
static bool worth(const struct rxw_pcall *p, uint32_t room, uint64_t now)
{
	const struct rxw_sendq *q = &p->tx;

	if (room == 0)
		return false;
	return room >= enough(p) || (q->flight == 0 && q->lost == 0) || q->nxt < q->urged ||
	       now >= q->hold_at || (q->all_queued && q->nxt + room == q->end);
}

static uint16_t first_lost(const struct rxw_sendq *q)
{
	if (q->lost == 0)
		return RXW_NO_NODE;
	for (uint16_t i = q->seg_head; i != RXW_NO_NODE; i = rxw_sendq_seg(q, i)->next) {
		const struct rxw_txseg *s = rxw_sendq_seg(q, i);

		if (s->first >= q->edge)
			break;
		if (s->state == RXW_TX_LOST)
			return i;
	}
	return RXW_NO_NODE;
}

/* Nothing goes to an address that is not proven before a PING was answered. */
static bool waits_for_proof(const struct rxw_pcall *p, uint64_t now)
{
	return p->tx.proof_asked != 0 && !rxw_peer_proven(p->conn->peer, now);
}

static bool silent(const struct rxw_pcall *p, uint64_t now)
{
	const struct rxw_sendq *q = &p->tx;

	return !rxw_pcall_may_transmit(p) || (q->busy_since != 0 && now < q->busy_at) ||
	       (q->retry_at != RXW_NEVER && now < q->retry_at) || waits_for_proof(p, now);
}

bool rxw_pcall_sendable(const struct rxw_pcall *p, uint64_t now)
{
	const struct rxw_sendq *q = &p->tx;
	uint16_t i;

	if (silent(p, now))
		return false;
	if (q->probe)
		return true;
	i = first_lost(q);
	if (i != RXW_NO_NODE && rxw_sendq_seg(q, i)->token == 0 &&
	    (q->force > 0 || rxw_pcall_cwnd_room(p) > 0))
		return true;
	return now >= q->pace_at && worth(p, new_room(p), now);
}

void rxw_pcall_offer(struct rxw_pcall *p, uint32_t events, struct rxw_out *out)
{
	struct rxw_sendq *q = &p->tx;

	uint32_t room = new_room(p);

	if (room == 0) {
		q->hold_at = RXW_NEVER;
	} else if (out->now >= q->hold_at) {
		/* Held back long enough: whoever sends next sends it. */
		q->hold_at = RXW_NEVER;
		q->urged = rxw_max32(q->urged, q->nxt + room);
	}
	if (q->retry_at <= out->now)
		q->retry_at = RXW_NEVER;
	if (rxw_pcall_sendable(p, out->now))
		rxw_pcall_touch(p, out, RXW_OUT_SEND | events);
	else if (q->hold_at == RXW_NEVER && room > 0)
		q->hold_at = out->now + RXW_MS;
}

void rxw_pcall_urge_room(struct rxw_pcall *p, struct rxw_out *out)
{
	p->tx.urged = rxw_max32(p->tx.urged, p->tx.nxt + new_room(p));
	if (rxw_pcall_sendable(p, out->now))
		rxw_pcall_touch(p, out, RXW_OUT_SEND);
}

/*
 * Is the path itself short? Round trips over it that are long all the same, without a loss, are so
 * for what waits at its end, to be verified say: no path is spared by bursts of a few packets then.
 */
static bool short_path(const struct rxw_pcall *p)
{
	struct rxw_peer *peer = p->conn->peer;
	uint64_t least = atomic_load_explicit(&peer->least_rtt, memory_order_relaxed);

	if (p->rtt.min != 0 && (least == 0 || p->rtt.min < least)) {
		least = p->rtt.min;
		atomic_store_explicit(&peer->least_rtt, least, memory_order_relaxed);
	}
	return least != 0 && least < RXW_MS && !p->tx.losses;
}

static uint64_t pacing_interval(const struct rxw_pcall *p)
{
	if (p->conn->params->unpaced || !p->rtt.valid || short_path(p))
		return 0;
	return rxw_cc_interval(&p->cc, rxw_max32(p->tx.window, 1), p->rtt.srtt);
}

/*
 * How many packets of an entry, from `first` on, the address may get; asks it for a proof when it
 * is none.
 */
static uint32_t proof_limit(struct rxw_pcall *p, const struct rxw_txent *e, uint32_t first,
			    uint32_t n, struct rxw_out *out)
{
	struct rxw_peer *peer = p->conn->peer;
	uint64_t allowance, each, bytes, wire;
	bool whole;

	if (p->conn->client || n == 0)
		return n;
	allowance = rxw_peer_allowance(peer, out->now);
	if (allowance == UINT64_MAX) {
		p->tx.proof_asked = 0; /* another connection of the address proved it, maybe */
		return n;
	}
	each = e->stride + rxw_peer_overhead(peer);
	whole = first + n == e->first + e->count;
	/* The last packet of an entry is what a small reply consists of: its true size counts. */
	bytes = whole ? (uint64_t)(n - 1) * e->stride + e->last_size : (uint64_t)n * e->stride;
	wire = bytes + (uint64_t)n * rxw_peer_overhead(peer);
	/* Unless this is the end of the reply, the question has to fit as well. */
	if (!(whole && e->last) || wire > allowance) {
		allowance -= rxw_min64(allowance, RXW_HEADER_SIZE + RXW_ACK_FRAME +
							  rxw_peer_overhead(peer));
		if (wire > allowance) {
			n = rxw_min32(n, (uint32_t)rxw_min64(allowance / each, UINT32_MAX));
			bytes = (uint64_t)n * e->stride;
		}
	}
	if (n > 0 && rxw_peer_may_send(peer, bytes, n, out->now))
		return n;
	if (p->tx.proof_asked == 0)
		rxw_pcall_ask_proof(p, &p->tx.proof_asked, out);
	return 0;
}

/* Headers of packets [first, first + n) of an entry. */
static void write_headers(struct rxw_pcall *p, const struct rxw_txent *e, uint32_t first,
			  uint32_t n, uint32_t serial, bool request, bool request_all, bool again)
{
	const struct rxw_pconn *c = p->conn;
	uint8_t *d = e->data + (size_t)(first - e->first) * e->stride;

	for (uint32_t i = 0; i < n; i++, d += e->stride) {
		uint32_t seq = first + i;
		bool last = e->last && seq == e->first + e->count - 1;
		unsigned flags = c->client ? RXW_CLIENT_INITIATED : 0;

		if (last)
			flags |= RXW_LAST_PACKET;
		if (i + 1 < n)
			flags |= RXW_MORE_PACKETS;
		/*
		 * The first time the end of a reply asks for nothing: its soft acknowledgement
		 * would be no use to us.
		 */
		if ((request_all || (request && i + 1 == n)) && (again || c->client || !last))
			flags |= RXW_REQUEST_ACK;
		rxw_put32(d, c->epoch);
		rxw_put32(d + 4, c->cid | p->channel);
		rxw_put32(d + 8, p->number);
		rxw_put32(d + 12, seq);
		rxw_put32(d + 16, serial + i);
		d[20] = RXW_DATA;
		d[21] = (uint8_t)flags;
		d[22] = p->local_status;
		d[23] = c->security_index;
		rxw_put16(d + 26, c->service);
	}
}

/* Fill the train, count what leaves. */
static void depart(struct rxw_pcall *p, const struct rxw_txent *e, uint32_t first, uint32_t n,
		   bool again, bool fresh_timer, struct rxw_train *train, struct rxw_out *out)
{
	struct rxw_sendq *q = &p->tx;
	struct rxw_pconn *c = p->conn;
	uint32_t at = first - e->first;
	bool tail = at + n == e->count;

	*train = (struct rxw_train){
		.call = p,
		.buf = e->buf,
		.data = e->data + (size_t)at * e->stride,
		.segment = e->stride,
		.length = (n - 1) * e->stride + (tail ? e->last_size : e->stride),
		.count = (uint16_t)n,
		.first_seq = first,
		.retransmission = again,
		.token = q->token,
		.fragment = e->stride > rxw_pcall_datagram_size(p),
	};
	if (n == 1)
		train->segment = (uint16_t)train->length;
	rxw_buf_ref(e->buf);
	c->ops->hold(p);
	if (fresh_timer)
		q->base_at = out->now;
	q->tail_at = out->now;
	if (q->flight > q->peak)
		q->peak = q->flight;
	if (rxw_recovery_active(&p->recovery))
		rxw_recovery_sent(&p->recovery, n);
	p->timer.last_sent = c->last_sent = out->now;
	if (p->timer.first_sent == 0) {
		p->timer.first_sent = out->now;
		if (p->client)
			p->timer.last_heard = out->now;
	}
	p->packets_sent += n;
	p->bytes_sent += train->length - n * (RXW_HEADER_SIZE + c->room.head + c->room.tail);
	c->packets_sent += n;
	c->bytes_sent += train->length;
	atomic_fetch_add_explicit(&c->peer->bytes_sent, train->length, memory_order_relaxed);
	atomic_fetch_add_explicit(&c->peer->packets_sent, n, memory_order_relaxed);
	rxw_tally(out->stats, &out->stats->packets_sent[RXW_DATA], n);
	RXW_PROBE(packet_out, c->cid | p->channel, p->number, RXW_DATA, first, n, train->length);
	RXW_PROBE(train_sent, p, first, n, train->length, (int)again);
	rxw_saw_sender(p);
	if (again) {
		rxw_saw_retransmission(p, out, first, n);
		p->retransmitted += n;
		atomic_fetch_add_explicit(&c->peer->packets_resent, n, memory_order_relaxed);
		rxw_tally(out->stats, &out->stats->retransmitted, n);
	}
	if (!c->client && rxw_recvq_ended(&p->rx))
		rxw_ack_forget(p);
}

/* What was sealed long ago is sealed anew where the class wants that. False: the call is over. */
static bool renew(struct rxw_pcall *p, const struct rxw_txent *e, uint32_t first, uint32_t n,
		  struct rxw_out *out)
{
	uint32_t at = first - e->first;

	if (p->conn->security->class.renew == NULL ||
	    rxw_run_renew(p->conn, p->channel, p->number, first,
			  e->data + (size_t)at * e->stride, e->stride, (uint16_t)n,
			  at + n == e->count ? e->last_size : e->stride) == 0)
		return true;
	rxw_pcall_fail(p, RXW_USER_ABORT, RXW_ORIGIN_LOCAL, true, out);
	return false;
}

/* Packets from `seq` on in segment `index` go out again. */
static enum rxw_train_result again(struct rxw_pcall *p, uint16_t index, uint32_t n,
				   struct rxw_train *train, struct rxw_out *out)
{
	struct rxw_sendq *q = &p->tx;
	struct rxw_txseg *s = rxw_sendq_seg(q, index);
	struct rxw_txent *e = rxw_sendq_entry(q, s->first);
	uint32_t serial = p->conn->serial + 1;
	bool left_before;

	if (s->token != 0)
		return RXW_TRAIN_BUSY;
	if (e == NULL)
		return RXW_TRAIN_NONE;
	n = rxw_min32(n, e->first + e->count - s->first);
	n = rxw_min32(n, rxw_max32(TRAIN_BYTES / e->stride, 1));
	n = rxw_min32(rxw_min32(n, s->count), TRAIN_PACKETS);
	n = proof_limit(p, e, s->first, n, out);
	if (n == 0)
		return RXW_TRAIN_NONE;
	if (n < s->count) {
		if (rxw_sendq_split(p, s->first + n) == RXW_NO_NODE)
			return RXW_TRAIN_NONE;
		s = rxw_sendq_seg(q, index);
	}
	if (!renew(p, e, s->first, n, out))
		return RXW_TRAIN_NONE;
	left_before = !s->never_left;
	if (left_before && s->state == RXW_TX_LOST) {
		unsigned k = q->resent_next++ % 8;

		q->resent[k].serial = serial;
		q->resent[k].count = n;
		q->resent[k].distance = p->recovery.highest_order > s->order
						? p->recovery.highest_order - s->order
						: 0;
	}
	if (left_before) {
		s->prev_order = s->order;
		s->prev_serial = s->serial;
		if (q->stuck_since == 0)
			q->stuck_since = out->now ? out->now : 1;
	}
	s->order = q->order + 1;
	s->serial = serial;
	s->sent_at = out->now;
	s->never_left = false;
	if (++q->token == 0)
		q->token = 1;
	s->token = q->token;
	rxw_sendq_set(q, s, RXW_TX_FLIGHT);
	q->order += n;
	p->conn->serial += n;
	q->requested_at = out->now;
	q->requested_last = true;
	q->force = q->force > n ? (uint8_t)(q->force - n) : 0;
	write_headers(p, e, s->first, n, serial, true, false, left_before);
	depart(p, e, s->first, n, left_before, q->flight == n, train, out);
	return RXW_TRAIN_READY;
}

/* Ask for an ACK with the last packet of a train of new data? */
static bool wants_ack(struct rxw_pcall *p, uint32_t n, uint64_t now)
{
	struct rxw_sendq *q = &p->tx;
	uint32_t windows = rxw_min32(rxw_pcall_cwnd_room(p), q->edge - q->nxt);
	bool ends = q->all_queued && q->nxt + n == q->end;

	if (q->probe)
		return true;
	if (ends)
		/*
		 * A request of several packets may be long in the making of its reply: one sample a
		 * second.
		 */
		return p->conn->client && q->end > 2 && now >= q->requested_at + RXW_SEC;
	if (n >= windows)
		return true;
	/* The trains that fill the windows follow at once: the last of them asks. */
	if (q->end - q->nxt >= windows && pacing_interval(p) == 0)
		return false;
	return now >= q->requested_at + p->rtt.srtt;
}

static enum rxw_train_result fresh(struct rxw_pcall *p, uint32_t room, uint32_t most,
				   struct rxw_train *train, struct rxw_out *out)
{
	struct rxw_sendq *q = &p->tx;
	struct rxw_txent *e =
		q->ent_send == RXW_NO_NODE ? NULL : rxw_slab_at(&q->ents, q->ent_send);
	uint64_t interval = pacing_interval(p);
	uint32_t first = q->nxt, serial = p->conn->serial + 1,
		 n = rxw_min32(rxw_min32(room, most), TRAIN_PACKETS);
	bool request, all;

	if (e == NULL)
		return RXW_TRAIN_NONE;
	n = rxw_min32(n, e->first + e->count - first);
	n = rxw_min32(n, rxw_max32(TRAIN_BYTES / e->stride, 1));
	if (interval != 0)
		n = rxw_min32(n,
			      (uint32_t)rxw_min64(RXW_MS / interval, TRAIN_PACKETS) > RXW_CC_BURST
				      ? (uint32_t)(RXW_MS / interval)
				      : RXW_CC_BURST);
	n = proof_limit(p, e, first, n, out);
	if (n == 0 || !rxw_slab_reserve(&q->segs, rxw_pcall_pool(p), 1) ||
	    !renew(p, e, first, n, out))
		return RXW_TRAIN_NONE;
	all = p->cc.cwnd <= SMALL_CWND;
	request = all || wants_ack(p, n, out->now);
	if (++q->token == 0)
		q->token = 1;
	rxw_sendq_add(p, n, serial, q->token, out->now);
	p->conn->serial += n;
	write_headers(p, e, first, n, serial, request, all, false);
	q->requested_last = request && !(e->last && !p->conn->client && q->nxt == q->end);
	if (request)
		q->requested_at = out->now;
	if (interval != 0) {
		uint64_t credit = out->now > RXW_MS ? out->now - RXW_MS : 0;

		q->pace_at = (q->pace_at > credit ? q->pace_at : credit) + n * interval;
	}
	depart(p, e, first, n, false, true, train, out);
	return RXW_TRAIN_READY;
}

/*
 * The probe at the tail: new data if the window allows, else the highest packet that is not
 * acknowledged.
 */
static enum rxw_train_result probe(struct rxw_pcall *p, struct rxw_train *train,
				   struct rxw_out *out)
{
	struct rxw_sendq *q = &p->tx;
	enum rxw_train_result result;
	uint16_t i, highest = RXW_NO_NODE;
	uint32_t last;

	if (q->nxt < q->end && q->nxt < q->edge) {
		result = fresh(p, 1, 1, train, out);
	} else {
		for (i = q->seg_head; i != RXW_NO_NODE; i = rxw_sendq_seg(q, i)->next) {
			const struct rxw_txseg *s = rxw_sendq_seg(q, i);

			if (s->first >= q->edge)
				break;
			if (s->state == RXW_TX_FLIGHT)
				highest = i;
		}
		if (highest == RXW_NO_NODE) {
			q->probe = false;
			return RXW_TRAIN_NONE;
		}
		if (rxw_sendq_seg(q, highest)->token != 0)
			return RXW_TRAIN_BUSY;
		last = rxw_sendq_seg(q, highest)->first + rxw_sendq_seg(q, highest)->count;
		i = rxw_sendq_split(p, rxw_min32(last, q->edge) - 1);
		result = i == RXW_NO_NODE ? RXW_TRAIN_NONE : again(p, i, 1, train, out);
	}
	if (result == RXW_TRAIN_READY)
		q->probe = false;
	return result;
}

/* What was queued for a larger path than there is now. */
static bool fit(struct rxw_pcall *p, struct rxw_out *out)
{
	struct rxw_sendq *q = &p->tx;
	uint32_t size = rxw_pcall_datagram_size(p);
	struct rxw_txent *e;

	if (q->ent_send == RXW_NO_NODE)
		return true;
	e = rxw_slab_at(&q->ents, q->ent_send);
	/* What is sealed stays as it is, and leaves in fragments. */
	if (e->stride <= size || e->first < q->nxt || p->conn->security->class.seal != NULL)
		return true;
	if (rxw_sendq_repack(p, size) == 0)
		return true;
	rxw_pcall_fail(p, RXW_USER_ABORT, RXW_ORIGIN_LOCAL, true, out);
	return false;
}

enum rxw_train_result rxw_pcall_train(struct rxw_pcall *p, unsigned max_packets,
				      struct rxw_train *train, uint64_t *not_before,
				      struct rxw_out *out)
{
	struct rxw_sendq *q = &p->tx;
	enum rxw_train_result result = RXW_TRAIN_NONE;
	uint64_t now = out->now;
	uint32_t room;
	uint16_t lost;

	if (q->retry_at != RXW_NEVER && now < q->retry_at && rxw_pcall_may_transmit(p)) {
		*not_before = q->retry_at;
		return RXW_TRAIN_PACED;
	}
	/* All is on its way, as it is behind the train of a small call: nothing changed. */
	if (q->nxt == q->end && q->lost == 0 && !q->probe && q->retry_at == RXW_NEVER)
		return RXW_TRAIN_NONE;
	if (max_packets == 0 || silent(p, now) || !fit(p, out))
		return RXW_TRAIN_NONE;
	q->retry_at = RXW_NEVER;
	if (q->flight == 0 && q->lost == 0 && p->rtt.valid && now > q->idle_since) {
		rxw_cc_idle(&p->cc, now - q->idle_since, rxw_rtt_rto(&p->rtt, 0, 0));
		q->idle_since = now;
	}
	if (q->probe) {
		result = probe(p, train, out);
		goto out;
	}
	lost = first_lost(q);
	if (lost != RXW_NO_NODE) {
		room = rxw_pcall_cwnd_room(p);
		if (room < q->force)
			room = q->force;
		if (room > 0) {
			room = rxw_min32(room, q->edge - rxw_sendq_seg(q, lost)->first);
			result = again(p, lost, rxw_min32(room, max_packets), train, out);
			goto out;
		}
	}
	room = new_room(p);
	if (worth(p, room, now)) {
		if (now < q->pace_at) {
			*not_before = q->pace_at;
			result = RXW_TRAIN_PACED;
			goto out;
		}
		/* What was begun goes on: the trains of one opened window follow each other. */
		if (q->urged < q->nxt + room)
			q->urged = q->nxt + room;
		q->hold_at = RXW_NEVER;
		result = fresh(p, room, max_packets, train, out);
	}
out:
	if (result != RXW_TRAIN_READY && q->hold_at == RXW_NEVER && new_room(p) > 0)
		q->hold_at = now + RXW_MS;
	rxw_pcall_arm(p, out);
	return result;
}

void rxw_pcall_train_done(struct rxw_pcall *p, const struct rxw_train *train, unsigned sent,
			  int error, struct rxw_out *out)
{
	struct rxw_sendq *q = &p->tx;
	uint16_t i;

	if (error == EMSGSIZE && p->mtu.confirmed >= train->segment &&
	    train->segment > RXW_MTU_MIN) {
		/*
		 * Our own system knows the path: fall back to what is sure to pass, and let the
		 * search begin anew.
		 */
		p->mtu.confirmed = p->mtu.confirmed > 1200 ? 1200 : 548;
		p->mtu.base = p->mtu.low = p->mtu.confirmed;
		p->mtu.done = p->mtu.ceiling <= p->mtu.confirmed;
		atomic_store_explicit(&p->conn->peer->mtu, p->mtu.confirmed, memory_order_relaxed);
	}
	for (i = q->seg_head; i != RXW_NO_NODE; i = rxw_sendq_seg(q, i)->next) {
		struct rxw_txseg *s = rxw_sendq_seg(q, i);
		uint32_t gone = train->first_seq + sent;

		if (s->first >= train->first_seq + train->count)
			break;
		if (s->token != train->token)
			continue;
		s->token = 0;
		if (sent >= train->count || s->state != RXW_TX_FLIGHT ||
		    s->first + s->count <= gone)
			continue;
		if (s->first < gone) {
			i = rxw_sendq_split(p, gone);
			if (i == RXW_NO_NODE)
				break; /* no memory: found lost in time */
			s = rxw_sendq_seg(q, i);
			s->token = 0;
		}
		s->never_left = true;
		rxw_sendq_set(q, s, RXW_TX_LOST);
	}
	if (sent < train->count) {
		q->retry_at = error == EMSGSIZE ? RXW_NEVER : out->now + REFUSED_WAIT;
		/* It was let go once: the windows are not asked again. */
		if (q->force == 0)
			q->force = 1;
	}
	rxw_buf_unref(train->buf);
	if (rxw_pcall_live(p))
		rxw_pcall_offer(p, 0, out);
	rxw_pcall_arm(p, out);
	p->conn->ops->drop(p);
}
