/* SPDX-License-Identifier: BSD-2-Clause */
/* Transmission: thresholds, pacing, bursts of new and of lost packets
 * (rx-protocol 4.1, 4.4, 6.7). */
#include <errno.h>

#include "base/assert.h"
#include "proto/state.h"

#define BURST_PACKETS 45u
#define BURST_BYTES   65507u
#define SMALL_CWND    2u
#define FEW	      10u /* packets of calls that do not count as sharing the path */
#define FIRST_BURST   8u  /* packets of a small stream; a larger request begins with so many */
#define REFUSED_WAIT  RXW_MS /* doubled with each refusal in a row, up to REFUSED_MOST times that */
#define REFUSED_MOST  64u
#define REFUSALS      16u
#define ASKS_AFTER    (60 * RXW_SEC) /* a probe, for so long */
#define LONG_PATH     (5 * RXW_MS) /* its losses are noticed by ACKs much sooner than by replies */

uint32_t rxw_send_cwnd_room(const struct rxw_pcall *p)
{
	const struct rxw_cc *cc = &p->tx.cc;

	/*
	 * Recovery limits by the rate of deliveries. After a timeout the window is below ssthresh,
	 * and slow start limits.
	 */
	uint32_t flight = rxw_send_flight(&p->tx);

	if (p->tx.renumber.single)
		return 0;
	if (rxw_recovery_active(&p->tx.recovery) && cc->cwnd >= cc->ssthresh)
		return rxw_recovery_prr(&p->tx.recovery, flight, cc->ssthresh);
	return cc->cwnd > flight ? cc->cwnd - flight : 0;
}

/* Packets of new data that both windows allow. */
static uint32_t new_room(const struct rxw_pcall *p)
{
	const struct rxw_sendq *q = &p->tx;

	if (q->nxt >= q->end || q->nxt >= q->edge)
		return 0;
	return rxw_min32(rxw_send_cwnd_room(p), rxw_min32(q->edge - q->nxt, q->end - q->nxt));
}

/*
 * The least number of new packets worth sending: half of what may be in flight. On a path with
 * losses the window is the bottleneck and waiting costs throughput: the packets acknowledged in
 * a millisecond are enough.
 */
static uint32_t least_burst(const struct rxw_pcall *p)
{
	uint32_t whole = rxw_min32(p->tx.cc.cwnd, p->tx.window);
	uint32_t soon;

	if (!p->tx.losses || !p->tx.rtt.valid || p->tx.rtt.srtt < RXW_MS)
		return whole / 2;
	soon = (uint32_t)(whole * RXW_MS / p->tx.rtt.srtt);
	return rxw_min32(whole / 2, rxw_max32(soon, whole > RXW_CC_PACED_ABOVE ? RXW_CC_BURST : 2));
}

/* Send `room` packets now? Fewer than the threshold only if waiting would not bring more. */
static bool threshold_met(const struct rxw_pcall *p, uint32_t room, uint64_t now)
{
	const struct rxw_sendq *q = &p->tx;

	if (room == 0)
		return false;
	/* A small request leaves in one burst, when it has ended. */
	if (q->flight == 0 && q->lost == 0 && (!p->client || q->nxt > 1 || room >= FIRST_BURST))
		return true;
	return room >= least_burst(p) || q->nxt < q->flush_to || now >= q->hold_at ||
	       (q->all_queued && q->nxt + room == q->end);
}

/* The first lost packet that the peer's window covers; q->nxt: none. Most calls lose nothing. */
static inline uint32_t first_lost(const struct rxw_sendq *q)
{
	uint32_t seq = q->lost == 0 ? q->nxt : rxw_bitmap_next(&q->sent.lost, q->una, q->nxt, true);

	return seq < q->edge ? seq : q->nxt;
}

static bool packet_is_busy(const struct rxw_sendq *q, uint32_t seq)
{
	const struct rxw_txseg *s = rxw_sent_find(&q->sent, rxw_sent_order(&q->sent, seq));

	assert(s != NULL);
	return s->busy;
}

static bool is_blocked(const struct rxw_pcall *p, uint64_t now)
{
	const struct rxw_sendq *q = &p->tx;

	return !rxw_pcall_may_send(p) || q->renumber.state == RXW_RENUMBER_ASKING ||
	       (q->busy_since != 0 && now < q->busy_at) ||
	       (q->retry_at != RXW_NEVER && now < q->retry_at) ||
	       rxw_peer_awaited(p->conn->peer, p->tx.proof_since, now);
}

bool rxw_pcall_sendable(const struct rxw_pcall *p, uint64_t now)
{
	const struct rxw_sendq *q = &p->tx;
	uint32_t lost;

	if (is_blocked(p, now))
		return false;
	if (q->probe || q->renumber.state == RXW_RENUMBER_READY)
		return true;
	lost = first_lost(q);
	if (lost < q->nxt && !packet_is_busy(q, lost) &&
	    (q->force > 0 || rxw_send_cwnd_room(p) > 0) && now >= rxw_send_lost_at(q))
		return true;
	return now >= q->pace_at && threshold_met(p, new_room(p), now);
}

void rxw_send_schedule(struct rxw_pcall *p, struct rxw_out *out)
{
	struct rxw_sendq *q = &p->tx;
	uint32_t room = new_room(p);

	if (room == 0) {
		q->hold_at = RXW_NEVER;
	} else if (out->now >= q->hold_at) {
		/* Held back long enough: it leaves with the next burst. */
		q->hold_at = RXW_NEVER;
		q->flush_to = rxw_max32(q->flush_to, q->nxt + room);
	}
	if (q->retry_at <= out->now)
		q->retry_at = RXW_NEVER;
	if (rxw_pcall_sendable(p, out->now))
		rxw_pcall_post_event(p, out, RXW_OUT_SEND);
	else if (q->hold_at == RXW_NEVER && room > 0)
		q->hold_at = out->now + RXW_MS;
}

bool rxw_send_pushed(struct rxw_pcall *p, struct rxw_out *out)
{
	struct rxw_sendq *q = &p->tx;

	if (rxw_pcall_sendable(p, out->now)) {
		rxw_pcall_post_event(p, out, RXW_OUT_SEND);
		return false;
	}
	if (q->hold_at != RXW_NEVER || q->nxt >= q->end)
		return false;
	q->hold_at = out->now + RXW_MS;
	return true;
}

void rxw_pcall_flush(struct rxw_pcall *p, struct rxw_out *out)
{
	p->tx.flush_to = p->tx.end;
	if (rxw_pcall_sendable(p, out->now))
		rxw_pcall_post_event(p, out, RXW_OUT_SEND);
}

void rxw_pcall_flush_window(struct rxw_pcall *p, struct rxw_out *out)
{
	p->tx.flush_to = rxw_max32(p->tx.flush_to, p->tx.nxt + new_room(p));
	if (rxw_pcall_sendable(p, out->now))
		rxw_pcall_post_event(p, out, RXW_OUT_SEND);
}

/* Headers of packets [first, first + n) of an entry. */
static void write_headers(struct rxw_pcall *p, const struct rxw_txent *e, uint32_t first,
			  uint32_t n, uint32_t serial, bool request, bool request_all, bool resent)
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
		/* The end of a reply requests no ACK at first: a soft ACK does not end a reply. */
		if ((request_all || (request && i + 1 == n)) && (resent || c->client || !last))
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

static void count_sent(struct rxw_pcall *p, const struct rxw_burst *burst, struct rxw_out *out)
{
	struct rxw_pconn *c = p->conn;
	uint32_t n = burst->count;

	p->time.last_sent = c->last_sent = out->now;
	if (p->time.first_sent == 0) {
		p->time.first_sent = out->now;
		if (p->client)
			p->time.last_heard = out->now;
	}
	p->count.packets_sent += n;
	if (!burst->retransmission)
		p->count.bytes_sent += burst->length - n * (RXW_HEADER_SIZE + c->auth.room.head +
							    c->auth.room.tail);
	c->count.packets_sent += n;
	c->count.bytes_sent += burst->length;
	atomic_fetch_add_explicit(&c->peer->bytes_sent, burst->length, memory_order_relaxed);
	atomic_fetch_add_explicit(&c->peer->packets_sent, n, memory_order_relaxed);
	rxw_tally(out->stats, &out->stats->packets_sent[RXW_DATA], n);
	RXW_PROBE(packet_out, c->cid | p->channel, p->number, RXW_DATA, burst->first_seq, n,
		  burst->length);
	RXW_PROBE(burst_sent, p, burst->first_seq, n, burst->length, (int)burst->retransmission);
	rxw_sendq_probe(p, &p->tx);
	if (!burst->retransmission)
		return;
	RXW_PROBE(retransmit, p, burst->first_seq, n, &rxw_pconn_path(c)->peer.u.sa);
	rxw_event(p, out->stats,
		  (struct rxw_trace_event){.kind = RXW_TRACE_RETRANSMIT,
					   .now = out->now,
					   .a = burst->first_seq,
					   .b = n});
	p->count.retransmitted += n;
	atomic_fetch_add_explicit(&c->peer->packets_resent, n, memory_order_relaxed);
	rxw_tally(out->stats, &out->stats->retransmitted, n);
}

/* Fill the burst, and record that its packets are sent. */
static void record_tx(struct rxw_pcall *p, const struct rxw_txent *e, uint32_t first, uint32_t n,
		      bool resent, bool restart_rto, struct rxw_burst *burst, struct rxw_out *out)
{
	struct rxw_sendq *q = &p->tx;
	uint32_t at = first - e->first;
	bool tail = at + n == e->count;

	assert(n > 0);
	assert(first >= e->first);
	assert(at + n <= e->count);
	*burst = (struct rxw_burst){
		.call = p,
		.buf = e->buf,
		.data = e->data + (size_t)at * e->stride,
		.segment = e->stride,
		.length = (n - 1) * e->stride + (tail ? e->last_size : e->stride),
		.count = (uint16_t)n,
		.first_seq = first,
		.retransmission = resent,
		.token = q->order - n + 1,
		.fragment = e->stride > rxw_pcall_datagram_size(p),
	};
	if (n == 1)
		burst->segment = (uint16_t)burst->length;
	rxw_buf_ref(e->buf);
	if (restart_rto)
		q->base_at = out->now;
	q->tail_at = out->now;
	if (rxw_send_flight(q) > q->peak)
		q->peak = rxw_send_flight(q);
	if (rxw_recovery_active(&q->recovery))
		rxw_recovery_sent(&q->recovery, n);
	count_sent(p, burst, out);
	/* Reply DATA acknowledges the whole request. */
	if (!p->client && rxw_recvq_ended(&p->rx))
		rxw_ack_clear(p);
}

/* Seal packets again whose key is no longer accepted. False: the call must fail. */
static bool reseal_packets(struct rxw_pcall *p, const struct rxw_txent *e, uint32_t first,
			   uint32_t n)
{
	uint32_t at = first - e->first;

	return p->conn->auth.security->class.renew == NULL ||
	       rxw_run_reseal(p->conn, p->channel, p->number, first,
			      e->data + (size_t)at * e->stride, e->stride, (uint16_t)n,
			      at + n == e->count ? e->last_size : e->stride) == 0;
}

/* See rxw_sendq.resent. */
static void remember_resent(struct rxw_sendq *q, const struct rxw_txpart *part, uint32_t serial)
{
	unsigned k = q->resent_next++ % 8;
	uint32_t highest = q->recovery.highest_order;

	q->sent.resent[k].serial = serial;
	q->sent.resent[k].count = part->count;
	q->sent.resent[k].was = part->seg->serial + (part->first - part->seg->first);
	q->sent.resent[k].order = part->order;
	q->sent.resent[k].distance = highest > part->order ? highest - part->order : 0;
	q->sent.resent[k].needless = 0;
}

/* How many packets of a run, from `first` on, may leave in a burst again. */
static uint32_t burst_of(struct rxw_pcall *p, const struct rxw_txent *e, uint32_t first, uint32_t n,
			 struct rxw_out *out)
{
	n = rxw_min32(n, e->first + e->count - first);
	n = rxw_min32(n, rxw_max32(BURST_BYTES / e->stride, 1));
	return rxw_proof_limit(p, e, first, rxw_min32(n, BURST_PACKETS), out);
}

/* Send up to `n` packets from `seq` on again. */
static enum rxw_burst_result retransmit_packets(struct rxw_pcall *p, uint32_t seq, uint32_t n,
						struct rxw_burst *burst, struct rxw_out *out)
{
	struct rxw_sendq *q = &p->tx;
	struct rxw_txpart part = rxw_sent_part(&q->sent, seq, seq + rxw_min32(n, q->nxt - seq));
	const struct rxw_txent *e = rxw_sendq_ent(q, part.seg->ent);
	uint32_t serial = p->conn->serial + 1;
	bool resent = !part.never_left;

	if (part.seg->busy)
		return RXW_BURST_BUSY;
	part.count = n = burst_of(p, e, seq, part.count, out);
	if (n == 0 || !rxw_sent_reserve(&q->sent, p->conn->ops->pool(p->conn), q->una, q->nxt, 0))
		return RXW_BURST_NONE;
	if (!reseal_packets(p, e, seq, n))
		return RXW_BURST_FAILED;
	/* The log may have moved. */
	part.seg = rxw_sent_find(&q->sent, part.order);
	assert(part.seg != NULL);
	if (resent && part.doubted)
		remember_resent(q, &part, serial);
	if (resent && q->stuck_since == 0)
		q->stuck_since = out->now ? out->now : 1;
	rxw_sendq_add_again(q, &part, serial, out->now);
	p->conn->serial += n;
	q->requested_at = out->now;
	q->requested_last = true;
	q->force = q->force > n ? (uint8_t)(q->force - n) : 0;
	write_headers(p, e, seq, n, serial, true, false, resent);
	/* A device that drops what is too large for it refuses it for ever: the RTO must expire. */
	record_tx(p, e, seq, n, resent, q->flight == n && q->refusals == 0, burst, out);
	return RXW_BURST_READY;
}

static bool probed_lately(const struct rxw_pcall *p, uint64_t now)
{
	uint64_t at = atomic_load_explicit(&p->conn->peer->probed_at, memory_order_relaxed);

	return at != 0 && now < at + ASKS_AFTER;
}

/*
 * A short path without losses, and an ACK within the last second. A lost end is noticed late without
 * an ACK that was requested, and healed by a probe, which no congestion control sees.
 */
static bool path_is_known(const struct rxw_pcall *p, uint64_t now)
{
	const struct rxw_peer *peer = p->conn->peer;
	uint64_t at = atomic_load_explicit(&peer->rtt_at, memory_order_relaxed);

	return rxw_send_short_path(p) && now < at + RXW_SEC && !probed_lately(p, now) &&
	       rxw_peer_recall_ssthresh(peer, now) == 0;
}

/*
 * The reply acknowledges the request, but may take long, and is no sample of the round trip. So the end of a request of
 * several packets asks once a second, and a single packet asks if there is no sample yet, except in the first call of a
 * channel. All ask where a long path loses packets.
 */
static bool end_wants_ack(const struct rxw_pcall *p, uint64_t now)
{
	const struct rxw_sendq *q = &p->tx;

	if (q->end > 2 ? now >= q->requested_at + RXW_SEC : !q->rtt.valid && p->number > 1)
		return true;
	return q->rtt.srtt >= LONG_PATH && probed_lately(p, now);
}

/* Ask for an ACK with the last packet of a burst of new data? */
static bool wants_ack(struct rxw_pcall *p, uint32_t n, uint64_t now)
{
	struct rxw_sendq *q = &p->tx;
	uint32_t windows = rxw_min32(rxw_send_cwnd_room(p), q->edge - q->nxt);
	bool ends = q->all_queued && q->nxt + n == q->end;

	if (q->probe)
		return true;
	/* A small stream is sent now, all of it: the other stream acknowledges it, or an ACK that waits. */
	if (q->all_queued && q->end <= 1 + FIRST_BURST && q->end - q->nxt <= windows &&
	    path_is_known(p, now))
		return false;
	if (ends)
		return p->conn->client && end_wants_ack(p, now);
	if (n >= windows)
		return true;
	/* More bursts follow at once until the windows are full: the last of them asks. */
	if (q->end - q->nxt >= windows && rxw_send_interval(p) == 0)
		return false;
	return now >= q->requested_at + p->tx.rtt.srtt;
}

/* Packets of a train: those of a millisecond, or a few. */
static uint32_t train_length(uint64_t interval)
{
	if (interval == 0)
		return BURST_PACKETS;
	return rxw_max32((uint32_t)rxw_min64(RXW_MS / interval, BURST_PACKETS), RXW_CC_BURST);
}

void rxw_send_before_ack(struct rxw_pcall *p)
{
	/* The window was full: until now nothing was due. */
	if (new_room(p) == 0)
		p->tx.due_at_pace = false;
}

/*
 * Packets that were due since pace_at but that no thread had time to send: a busy machine is no
 * reason to send slower than the path allows. They lengthen the train.
 */
static uint32_t count_overdue(const struct rxw_sendq *q, uint64_t interval, uint64_t now)
{
	if (interval == 0 || !q->due_at_pace || now <= q->pace_at)
		return 0;
	return (uint32_t)rxw_min64((now - q->pace_at) / interval,
				   BURST_PACKETS - train_length(interval));
}

/* A train of `n` packets of `room` is sent: when may the next one follow? */
static void pace_train(struct rxw_sendq *q, uint64_t interval, uint32_t n, uint32_t room,
		       uint64_t now)
{
	uint64_t late = count_overdue(q, interval, now) * interval;
	uint64_t back = late > RXW_MS ? late : RXW_MS, credit = now > back ? now - back : 0;

	if (interval != 0)
		q->pace_at = (q->pace_at > credit ? q->pace_at : credit) + n * interval;
	q->due_at_pace = interval != 0 && n < room;
}

static enum rxw_burst_result send_new(struct rxw_pcall *p, uint32_t room, uint32_t most,
				      struct rxw_burst *burst, struct rxw_out *out)
{
	struct rxw_sendq *q = &p->tx;
	struct rxw_txent *e =
		q->ent_send == RXW_NO_NODE ? NULL : rxw_slab_at(&q->ents, q->ent_send);
	uint64_t interval = rxw_send_interval(p);
	uint32_t first = q->nxt, serial = p->conn->serial + 1,
		 n = rxw_min32(rxw_min32(room, most), BURST_PACKETS);
	bool request, all, marked = rxw_ecn_marks(&q->ecn);

	if (e == NULL)
		return RXW_BURST_NONE;
	n = rxw_min32(n, e->first + e->count - first);
	n = rxw_min32(n, rxw_max32(BURST_BYTES / e->stride, 1));
	n = rxw_min32(n, train_length(interval) + count_overdue(q, interval, out->now));
	n = rxw_ecn_most(&q->ecn, rxw_proof_limit(p, e, first, n, out));
	if (n == 0 || !rxw_sent_reserve(&q->sent, p->conn->ops->pool(p->conn), q->una, q->nxt, n))
		return RXW_BURST_NONE;
	if (!reseal_packets(p, e, first, n))
		return RXW_BURST_FAILED;
	if (!q->sender && q->end - q->una > FEW && q->cc.max > RXW_MAX_ACKS)
		rxw_sendq_count_sender(p, true);
	all = p->tx.cc.cwnd <= SMALL_CWND || q->renumber.to != 0;
	request = all || wants_ack(p, n, out->now);
	rxw_sendq_add(q, n, serial, marked, out->now);
	if (marked)
		rxw_ecn_sent(&q->ecn, q->order - n + 1, n);
	p->conn->serial += n;
	write_headers(p, e, first, n, serial, request, all, false);
	q->requested_last = request && !(e->last && !p->conn->client && q->nxt == q->end);
	if (request)
		q->requested_at = out->now;
	pace_train(q, interval, n, room, out->now);
	record_tx(p, e, first, n, false, true, burst, out);
	burst->ect = marked;
	if (marked)
		rxw_tally(out->stats, &out->stats->marks_sent, n);
	return RXW_BURST_READY;
}

/* Lost packets from `seq` on, up to `room`: a train of them if they are paced. */
static enum rxw_burst_result send_lost(struct rxw_pcall *p, uint32_t seq, uint32_t room,
				       uint32_t most, struct rxw_burst *burst, struct rxw_out *out)
{
	struct rxw_sendq *q = &p->tx;
	uint64_t interval = rxw_send_paces_lost(q) ? rxw_send_interval(p) : 0;
	uint32_t train = train_length(interval) + count_overdue(q, interval, out->now);
	enum rxw_burst_result result = retransmit_packets(
		p, seq, rxw_min32(rxw_min32(room, train), most), burst, out);

	if (result == RXW_BURST_READY && interval != 0)
		pace_train(q, interval, burst->count, room, out->now);
	return result;
}

/* The tail loss probe: new data if the window allows, else the highest packet in flight. */
static enum rxw_burst_result send_probe(struct rxw_pcall *p, struct rxw_burst *burst,
					struct rxw_out *out)
{
	struct rxw_sendq *q = &p->tx;
	enum rxw_burst_result result;
	uint32_t end;

	if (q->nxt < q->end && q->nxt < q->edge) {
		result = send_new(p, 1, 1, burst, out);
	} else {
		end = rxw_max32(q->una, rxw_min32(q->nxt, q->edge));
		end = rxw_bitmap_last(&q->sent.flight, q->una, end, true);
		if (end == q->una) {
			q->probe = false;
			return RXW_BURST_NONE;
		}
		result = retransmit_packets(p, end - 1, 1, burst, out);
	}
	if (result == RXW_BURST_READY)
		q->probe = false;
	return result;
}

/* Packets of another size are next: windows count those from now on. */
static void note_size(struct rxw_pcall *p)
{
	struct rxw_sendq *q = &p->tx;
	const struct rxw_txent *e;

	if (q->ent_send == RXW_NO_NODE)
		return;
	e = rxw_sendq_ent(q, q->ent_send);
	if (e->stride == q->units.size || e->first != q->nxt || !q->mtu.enabled ||
	    e->stride != rxw_pcall_datagram_size(p))
		return;
	rxw_send_resize(q, e->stride);
}

/* The writer or the peer's window limits the flight: rates measured now say little of the path. */
static void note_limited(struct rxw_pcall *p)
{
	struct rxw_sendq *q = &p->tx;
	uint32_t to = q->rate.delivered + q->flight;

	if (q->lost == 0 && rxw_send_cwnd_room(p) > 0)
		q->rate.limited_to = to != 0 ? to : 1;
}

/*
 * A request of several packets to a peer that larger ones may not reach, or of one that did not. The server then hears
 * of the call, and answers the PINGs by which the path MTU is found.
 */
static bool begins_small(const struct rxw_pcall *p)
{
	const struct rxw_peer *peer = p->conn->peer;

	if (!p->client || p->tx.nxt > 1)
		return false;
	return p->tx.renumber.whole || (p->tx.mtu.enabled && !peer->local &&
		!atomic_load_explicit(&peer->carries, memory_order_relaxed));
}

enum rxw_burst_result rxw_send_burst(struct rxw_pcall *p, unsigned max_packets,
				     struct rxw_burst *burst, uint64_t *not_before,
				     struct rxw_out *out)
{
	struct rxw_sendq *q = &p->tx;
	enum rxw_burst_result result = RXW_BURST_NONE;
	uint64_t now = out->now;
	uint32_t room, lost;
	int fit;

	if (q->retry_at != RXW_NEVER && now < q->retry_at && rxw_pcall_may_send(p)) {
		*not_before = q->retry_at;
		return RXW_BURST_PACED;
	}
	/* Everything is in flight, as after the only burst of a small call. */
	if (q->nxt == q->end && q->lost == 0 && !q->probe && q->retry_at == RXW_NEVER &&
	    q->renumber.state != RXW_RENUMBER_READY)
		return RXW_BURST_IDLE;
	if (max_packets == 0 || is_blocked(p, now))
		return RXW_BURST_IDLE;
	result = rxw_send_renumber_now(p);
	if (result != RXW_BURST_READY)
		return result;
	fit = begins_small(p) ? rxw_sendq_fit_first(p, RXW_MTU_LEAST) : 0;
	if (fit == 0)
		fit = rxw_sendq_fit(p, rxw_pcall_datagram_size(p));
	if (fit != 0 && fit != -RXW_ENOMEM)
		return RXW_BURST_FAILED;
	result = RXW_BURST_NONE;
	note_size(p);
	q->retry_at = RXW_NEVER;
	if (q->flight == 0 && q->lost == 0 && p->tx.rtt.valid && now > q->idle_since) {
		rxw_cc_idle(&p->tx.cc, now - q->idle_since, rxw_rtt_rto(&p->tx.rtt, 0, 0));
		q->idle_since = now;
	}
	if (q->probe && fit == 0) {
		result = send_probe(p, burst, out);
		goto done;
	}
	lost = first_lost(q);
	q->paced = q->paced && lost < q->nxt;
	if (lost < q->nxt) {
		room = rxw_min32(rxw_max32(rxw_send_cwnd_room(p), q->force), q->edge - lost);
		if (room > 0 && now < rxw_send_lost_at(q)) {
			*not_before = rxw_send_lost_at(q);
			result = RXW_BURST_PACED;
			goto done;
		}
		if (room > 0) {
			result = send_lost(p, lost, room, max_packets, burst, out);
			goto done;
		}
	}
	/* There is no memory for the next packet. It is tried again, like packets that are held back. */
	room = fit == 0 ? new_room(p) : 0;
	if (threshold_met(p, room, now)) {
		if (now < q->pace_at) {
			*not_before = q->pace_at;
			result = RXW_BURST_PACED;
			goto done;
		}
		/* No thresholds for the rest: the bursts of one opened window follow each other. */
		if (q->flush_to < q->nxt + room)
			q->flush_to = q->nxt + room;
		q->hold_at = RXW_NEVER;
		result = send_new(p, room, max_packets, burst, out);
	}
done:
	/* A wide window may open by more than the writer has queued. */
	if (result == RXW_BURST_READY && q->window > RXW_MAX_ACKS)
		rxw_sendq_tell_writer(p, out);
	if (q->nxt == q->end || q->nxt >= q->edge)
		note_limited(p);
	if (result != RXW_BURST_READY && q->hold_at == RXW_NEVER && new_room(p) > 0)
		q->hold_at = now + RXW_MS;
	return result;
}

/* Our own system knows the path MTU: fall back to a safe size, and let the search begin again. */
static void mtu_refused(struct rxw_pcall *p)
{
	struct rxw_mtu *m = &p->tx.mtu;

	m->confirmed = m->confirmed > 1200 ? 1200 : 548;
	m->base = m->low = m->confirmed;
	m->done = m->ceiling <= m->confirmed;
	atomic_store_explicit(&p->conn->peer->mtu, m->confirmed, memory_order_relaxed);
}

/* Packets of a transmission, after the first `sent`, were refused by our own system. */
static void take_back_refused(struct rxw_sendq *q, struct rxw_txseg *s, uint32_t sent)
{
	s->left = (uint16_t)sent;
	for (uint32_t i = sent; i < s->count; i++) {
		uint32_t seq = s->first + i;

		if (seq >= q->una && rxw_sent_order(&q->sent, seq) == s->order + i &&
		    rxw_sent_state(&q->sent, seq) == RXW_TX_FLIGHT)
			rxw_sendq_set(q, seq, 1, RXW_TX_LOST, false);
	}
}

void rxw_send_burst_done(struct rxw_pcall *p, const struct rxw_burst *burst, unsigned sent,
			 int error, uint64_t now)
{
	struct rxw_sendq *q = &p->tx;
	struct rxw_txseg *s = rxw_sent_find(&q->sent, burst->token);

	if (error == EMSGSIZE && q->mtu.confirmed >= burst->segment && burst->segment > RXW_MTU_MIN)
		mtu_refused(p);
	/* The call may be over. */
	if (s != NULL) {
		s->busy = false;
		if (sent < burst->count)
			take_back_refused(q, s, sent);
	}
	if (sent > 0 || error == EAGAIN)
		q->refusals = 0; /* the socket's buffer is full of packets of others, too */
	if (sent < burst->count) {
		uint32_t wait = rxw_min32(1u << q->refusals, REFUSED_MOST);

		q->retry_at = error == EMSGSIZE ? RXW_NEVER : now + wait * REFUSED_WAIT;
		q->refusals += sent == 0 && error != EAGAIN && q->refusals < REFUSALS;
		/* The windows allowed these packets already. */
		if (q->force == 0)
			q->force = 1;
	}
	rxw_buf_unref(burst->buf);
}
