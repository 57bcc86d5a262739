/* SPDX-License-Identifier: BSD-2-Clause */
/* The send queue: runs pushed by the writer, until they are acknowledged. */
#include <string.h>

#include "base/assert.h"
#include "proto/state.h"

#define FIRST_CWND	4u
#define FIRST_CWND_GOOD 10u
#define GOOD_RTT	(100 * RXW_MS)
#define RECENT		(60 * RXW_SEC)
#define MTU_MOST	9000u  /* bytes of an IP packet, up to which a search goes */
#define ENTRIES_MOST	16384u /* runs in the queue; writers of a few bytes each wait then */
#define READY_MOST	4096u  /* packets: 50 ms at 1 Gbit/s */
#define SPARE_PART	8      /* granted memory that is not needed, as a part of it, is kept */
#define CUT_LEAST	4u     /* sealed packets that are cut at once, if fewer may leave */
#define REST_AFTER	(10 * RXW_SEC) /* without a packet to send, none is kept */

void rxw_sendq_widen(struct rxw_pcall *p, uint64_t now)
{
	const struct rxw_params *params = p->conn->params;
	struct rxw_sendq *q = &p->tx;
	struct rxw_cc *cc = &q->cc;
	bool open = cc->ssthresh >= cc->max;
	uint64_t least = atomic_load_explicit(&p->conn->peer->least_rtt, memory_order_relaxed);
	uint64_t rtt = q->rtt.min;
	uint32_t most = p->conn->peer_max_mtu;
	struct rxw_cc_path known;

	if (rtt == 0 || (least != 0 && least < rtt))
		rtt = least;
	if (rtt < RXW_LONG_RTT || cc->max >= params->window)
		return;
	if (params->cc_wide != NULL && cc->ops != params->cc_wide) {
		rxw_cc_init(cc, params->cc_wide, cc->cwnd, open ? 0 : cc->ssthresh, params->window);
	} else {
		cc->max = params->window;
		if (open)
			cc->ssthresh = cc->max;
	}
	if (q->nxt > 1)
		return;
	/* RFC 6928 begins with 10 packets on any path. */
	cc->cwnd = rxw_max32(cc->cwnd, FIRST_CWND_GOOD);
	if (rxw_peer_recall(p->conn->peer, &known, now)) {
		/* It is in packets of the default size. */
		known.rate = known.rate * RXW_MTU_DEFAULT /
			     rxw_min32(q->mtu.confirmed, most != 0 ? most : RXW_MTU_DEFAULT);
		rxw_cc_resume(cc, &known);
	}
}

/* The size of datagrams: that of the peer's last calls. */
static void seed_mtu(struct rxw_pcall *p, uint64_t now)
{
	const struct rxw_params *params = p->conn->params;
	const struct rxw_peer *peer = p->conn->peer;
	struct rxw_mtu *m = &p->tx.mtu;
	uint32_t mtu = atomic_load_explicit(&peer->mtu, memory_order_relaxed);
	bool search = params->mtu_ceiling > params->mtu && !(params->mtu_auto && peer->local);
	uint32_t headers = rxw_peer_overhead(peer);

	rxw_mtu_init(m, params->mtu,
		     search ? rxw_min32(params->mtu_ceiling, MTU_MOST - headers) : params->mtu,
		     search);
	m->headers = headers;
	p->tx.searching = false;
	if (mtu > params->mtu)
		rxw_mtu_confirmed(m, mtu, now);
	else if (mtu != 0 && mtu < params->mtu)
		m->confirmed = m->low = mtu;
}

void rxw_sendq_moved(struct rxw_pcall *p, bool same_host, uint64_t now)
{
	struct rxw_sendq *q = &p->tx;

	rxw_sendq_lose_from(q, q->una);
	q->doubt = 0;
	q->paced = true;
	q->backoff = 0;
	q->base_at = now;
	q->probe = false;
	q->loss_at = RXW_NEVER;
	rxw_ecn_again(&q->ecn);
	if (same_host)
		return;
	rxw_rtt_init(&q->rtt);
	rxw_cc_init(&q->cc, q->cc.ops, FIRST_CWND, 0, q->cc.max);
	q->carried = 0;
	seed_mtu(p, now);
	q->mtu_at = q->check.at = RXW_NEVER;
	q->units = (struct rxw_mtu_units){0};
}

/* Start with the properties of the path that the peer's last calls found. */
static void seed_from_peer(struct rxw_pcall *p, uint64_t now)
{
	const struct rxw_params *params = p->conn->params;
	struct rxw_peer *peer = p->conn->peer;
	struct rxw_sendq *q = &p->tx;
	uint64_t srtt = atomic_load_explicit(&peer->srtt, memory_order_relaxed);
	uint64_t at = atomic_load_explicit(&peer->rtt_at, memory_order_relaxed);
	uint32_t ssthresh = rxw_peer_recall_ssthresh(peer, now);
	uint32_t reordering = rxw_peer_recall_reordering(peer, now);
	bool good = srtt != 0 && srtt < GOOD_RTT && now < at + RECENT && ssthresh == 0;

	rxw_rtt_init(&q->rtt);
	rxw_rtt_seed(&q->rtt, srtt, atomic_load_explicit(&peer->rttvar, memory_order_relaxed));
	rxw_cc_init(&q->cc, params->cc, good ? FIRST_CWND_GOOD : FIRST_CWND, ssthresh,
		    rxw_min32(params->window, RXW_MAX_ACKS));
	seed_mtu(p, now);
	if (p->conn->rx.wide_heard)
		rxw_sendq_widen(p, now);
	/* Otherwise each of many small calls would begin slow start anew. */
	rxw_cc_warm(&q->cc, rxw_peer_recall_cwnd(peer, now));
	if (p->conn->rx.marks_heard)
		rxw_ecn_begin(&q->ecn, rxw_peer_recall_ecn(peer, now));
	rxw_recovery_init(&q->recovery);
	rxw_recovery_seed(&q->recovery, reordering, now, srtt);
}

void rxw_sendq_init(struct rxw_pcall *p, uint64_t now)
{
	struct rxw_sendq *q = &p->tx;

	seed_from_peer(p, now);
	rxw_slab_init(&q->ents, q->ent_own, sizeof(q->ent_own[0]),
		      sizeof(q->ent_own) / sizeof(q->ent_own[0]));
	rxw_sent_init(&q->sent);
	q->ent_head = q->ent_tail = q->ent_send = q->dead = RXW_NO_NODE;
	q->una = q->nxt = q->end = q->flush_to = 1;
	q->sampled_serial = p->conn->serial; /* all of this call are newer */
	/* A wide window counts once an ACK of this call has advertised it. */
	q->window = p->conn->peer_window != 0 ? rxw_min32(p->conn->peer_window, RXW_MAX_ACKS)
					      : RXW_FIRST_FLIGHT;
	q->edge = 1 + q->window;
	q->base_at = q->idle_since = now;
	q->loss_at = q->hold_at = q->retry_at = q->mtu_at = q->check.at = RXW_NEVER;
}

static __attribute__((noinline)) void drop_ent(struct rxw_sendq *q, uint16_t index)
{
	rxw_buf_unref(rxw_sendq_ent(q, index)->buf);
	rxw_slab_put(&q->ents, index);
}

void rxw_sendq_count_sender(struct rxw_pcall *p, bool sender)
{
	struct rxw_sendq *q = &p->tx;

	if (sender == q->sender)
		return;
	q->sender = sender;
	if (sender)
		atomic_fetch_add_explicit(&p->conn->account->learnt.senders, 1,
					  memory_order_relaxed);
	else
		atomic_fetch_sub_explicit(&p->conn->account->learnt.senders, 1,
					  memory_order_relaxed);
}

void rxw_sendq_share(struct rxw_pcall *p, uint64_t rate)
{
	if (p->tx.shared != rate)
		rxw_peer_share(p->conn->account, p->tx.shared, rate);
	p->tx.shared = rate;
}

void rxw_sendq_clear(struct rxw_pcall *p)
{
	struct rxw_sendq *q = &p->tx;

	rxw_sendq_count_sender(p, false);
	rxw_sendq_share(p, 0);
	if (q->ent_head != RXW_NO_NODE) {
		rxw_sendq_ent(q, q->ent_tail)->next = q->dead;
		q->dead = q->ent_head;
	}
	rxw_sent_fini(&q->sent);
	q->ent_head = q->ent_tail = q->ent_send = RXW_NO_NODE;
	q->una = q->end = q->nxt;
	q->renumber.state = RXW_RENUMBER_NONE;
	q->renumber.to = 0;
	if (q->grant > 0)
		q->grant = rxw_wide_grant(&p->conn->account->wide, q->grant, 0);
	q->flight = q->acked = q->lost = q->units.old = 0;
	q->force = 0;
	q->probe = false;
	q->loss_at = q->hold_at = q->retry_at = RXW_NEVER;
	q->stuck_since = q->busy_since = 0;
	q->proof_since = 0;
}

bool rxw_sendq_release(struct rxw_pcall *p, unsigned most)
{
	struct rxw_sendq *q = &p->tx;

	for (uint16_t i; (i = q->dead) != RXW_NO_NODE; most--) {
		if (most == 0)
			return false;
		q->dead = rxw_sendq_ent(q, i)->next;
		drop_ent(q, i);
	}
	return true;
}

void rxw_sendq_stop(struct rxw_pcall *p)
{
	rxw_sendq_clear(p);
	p->tx.mtu_at = p->tx.check.at = RXW_NEVER;
}

void rxw_sendq_all_acked(struct rxw_pcall *p, struct rxw_out *out)
{
	struct rxw_sendq *q = &p->tx;

	if (!q->all_queued || q->nxt != q->end)
		q->stopped = p->client;
	q->idle_since = q->base_at = out->now;
	rxw_sendq_clear(p);
	if (q->above_high || q->stopped) {
		q->above_high = false;
		rxw_pcall_post_event(p, out, RXW_OUT_WRITE);
	}
}

bool rxw_sendq_append(struct rxw_pcall *p, const struct rxw_txrun *run)
{
	struct rxw_sendq *q = &p->tx;
	struct rxw_pool *pool = p->conn->ops->pool(p->conn);
	uint16_t i;

	assert(run->count > 0);
	assert(!q->all_queued);
	if (!rxw_sent_begin(&q->sent, pool))
		return false;
	i = rxw_slab_get(&q->ents, pool);
	if (i == RXW_NO_NODE)
		return false;
	*rxw_sendq_ent(q, i) = (struct rxw_txent){
		.buf = run->buf,
		.data = run->data,
		.first = q->end,
		.sealed = run->seq != 0 ? run->seq : q->end,
		.stride = run->stride,
		.last_size = run->last_size,
		.count = run->count,
		.next = RXW_NO_NODE,
		.last = run->last,
	};
	if (q->ent_tail == RXW_NO_NODE)
		q->ent_head = i;
	else
		rxw_sendq_ent(q, q->ent_tail)->next = i;
	q->ent_tail = i;
	if (q->ent_send == RXW_NO_NODE)
		q->ent_send = i;
	q->end += run->count;
	q->all_queued |= run->last;
	return true;
}

/* Packets ready to be sent with a wide window, beyond those that were sent. */
static uint32_t ready_packets(const struct rxw_sendq *q)
{
	return rxw_min32(rxw_min32(q->cc.cwnd, q->window) / 2, READY_MOST);
}

/*
 * The number of packets that the windows need. With a wide window, some are ready beyond what was sent, of
 * which most may be acknowledged softly.
 */
static uint32_t packets_needed(const struct rxw_pcall *p)
{
	const struct rxw_sendq *q = &p->tx;
	uint32_t usual = p->conn->params->sendq_high;

	if (q->window <= RXW_MAX_ACKS)
		return usual;
	return rxw_max32(usual, q->nxt - q->una + ready_packets(q));
}

/* Bytes of a packet: those of the queue may have been built before the path MTU became smaller. */
static uint32_t largest_packet(const struct rxw_pcall *p)
{
	return rxw_max32(p->conn->params->mtu, p->tx.mtu.confirmed);
}

/* Memory of packets beyond the usual number. */
static int64_t cost_of_packets(const struct rxw_pcall *p, uint32_t packets)
{
	uint32_t usual = p->conn->params->sendq_high;

	return packets > usual ? (int64_t)(packets - usual) * largest_packet(p) : 0;
}

/* Get memory for what the window needs. */
static void fund_queue(struct rxw_pcall *p)
{
	struct rxw_sendq *q = &p->tx;
	uint32_t limit = q->high_limit, packets = packets_needed(p);
	int64_t want;

	if (packets <= p->conn->params->sendq_high)
		return;
	want = cost_of_packets(p, limit && limit < packets ? limit : packets);
	if (want > q->grant && !q->stopped && rxw_pcall_live(p))
		q->grant = rxw_wide_grant(&p->conn->account->wide, q->grant, want);
}

/*
 * Packets were acknowledged: give memory back that the window does not need, or to which other
 * calls have a right, but not that of packets in the queue.
 */
static void return_spare_grant(struct rxw_pcall *p)
{
	struct rxw_sendq *q = &p->tx;
	int64_t need = cost_of_packets(p, packets_needed(p)),
		queued = cost_of_packets(p, q->end - q->una), share;

	share = rxw_wide_excess(&p->conn->account->wide, q->grant);
	if (need > share)
		need = share;
	if (need < queued)
		need = queued;
	if (q->grant - need > q->grant / SPARE_PART)
		q->grant = rxw_wide_grant(&p->conn->account->wide, q->grant, need);
}

void rxw_sendq_rest(struct rxw_pcall *p, uint64_t now)
{
	struct rxw_sendq *q = &p->tx;

	if (q->grant > 0 && q->una == q->end && now >= q->idle_since + REST_AFTER)
		q->grant = rxw_wide_grant(&p->conn->account->wide, q->grant, 0);
}

void rxw_sendq_free_below(struct rxw_pcall *p, uint32_t first)
{
	struct rxw_sendq *q = &p->tx;

	assert(first <= q->nxt);
	rxw_sendq_free_sent(q, first);
	while (q->ent_head != RXW_NO_NODE) {
		uint16_t i = q->ent_head;
		struct rxw_txent *e = rxw_sendq_ent(q, i);

		if (e->first + e->count > first)
			break;
		assert(i != q->ent_send);
		q->ent_head = e->next;
		if (q->ent_head == RXW_NO_NODE)
			q->ent_tail = RXW_NO_NODE;
		if ((e->count > 1 ? e->stride : e->last_size) > RXW_MTU_LEAST &&
		    !atomic_load_explicit(&p->conn->peer->carries, memory_order_relaxed))
			atomic_store_explicit(&p->conn->peer->carries, true, memory_order_relaxed);
		drop_ent(q, i);
	}
	if (first > q->una)
		q->una = first;
	if (q->grant > 0)
		return_spare_grant(p);
}

/* The writer stops above this number of packets, and resumes below the low-water mark. */
static uint32_t high_water(const struct rxw_pcall *p)
{
	const struct rxw_sendq *q = &p->tx;
	uint32_t limit = q->high_limit, high = packets_needed(p),
		 usual = p->conn->params->sendq_high;

	if (high > usual)
		high = rxw_min32(high, usual + (uint32_t)(q->grant / largest_packet(p)));
	return limit && limit < high ? limit : high;
}

/* With a wide window, more than the usual low-water mark may be in flight. */
static uint32_t low_water(const struct rxw_pcall *p)
{
	uint32_t high = high_water(p), usual = p->conn->params->sendq_high;
	uint32_t low = p->conn->params->sendq_low, ready = ready_packets(&p->tx);

	if (high < usual)
		return high * 2 / 3 + 1;
	if (high > usual)
		return rxw_max32(high - rxw_min32(high, ready / 2), low);
	if (p->tx.window <= RXW_MAX_ACKS)
		return low;
	return rxw_max32(low, rxw_min32(2 * ready + ready / 2, usual / 4 * 3));
}

static bool writer_has_room(const struct rxw_pcall *p)
{
	const struct rxw_sendq *q = &p->tx;
	uint32_t queued = q->end - q->una;

	if (p->error != 0 || q->stopped)
		return true; /* the writer has to see the error */
	if (q->ents.used >= ENTRIES_MOST)
		return false;
	return queued < (q->above_high ? low_water(p) : high_water(p));
}

void rxw_sendq_tell_writer(struct rxw_pcall *p, struct rxw_out *out)
{
	if (!p->tx.above_high)
		return;
	fund_queue(p);
	if (!writer_has_room(p))
		return;
	p->tx.above_high = false;
	rxw_pcall_post_event(p, out, RXW_OUT_WRITE);
}

void rxw_sendq_note_high(struct rxw_pcall *p)
{
	fund_queue(p);
	if (!writer_has_room(p))
		p->tx.above_high = true;
}

void rxw_pcall_limit_queue(struct rxw_pcall *p, uint32_t packets)
{
	p->tx.high_limit = packets;
	rxw_sendq_note_high(p);
}

uint32_t rxw_pcall_next_seq(const struct rxw_pcall *p)
{
	return p->tx.end;
}

uint32_t rxw_pcall_ready(const struct rxw_pcall *p)
{
	return p->tx.end - p->tx.nxt;
}

uint32_t rxw_pcall_queued(const struct rxw_pcall *p)
{
	return p->tx.end - p->tx.una;
}

/*
 * The high-water mark falls with the windows, also between the event and the writer's look at the queue. A writer that
 * waits without `above_high` would not be told again.
 */
bool rxw_pcall_writable(const struct rxw_pcall *p)
{
	return !p->tx.above_high || writer_has_room(p);
}

bool rxw_pcall_send_complete(const struct rxw_pcall *p)
{
	return p->tx.all_queued && p->tx.una + p->tx.acked >= p->tx.end && p->tx.nxt == p->tx.end;
}

/* --- smaller packets for a smaller path MTU: runs of which nothing was sent --- */

/* A new entry with these contents behind entry `i`. */
static uint16_t insert_ent(struct rxw_pcall *p, uint16_t i, const struct rxw_txent *ent)
{
	struct rxw_sendq *q = &p->tx;
	uint16_t fresh = rxw_slab_get(&q->ents, p->conn->ops->pool(p->conn));

	if (fresh == RXW_NO_NODE)
		return fresh;
	*rxw_sendq_ent(q, fresh) = *ent;
	rxw_sendq_ent(q, fresh)->next = rxw_sendq_ent(q, i)->next;
	rxw_sendq_ent(q, i)->next = fresh;
	if (q->ent_tail == i)
		q->ent_tail = fresh;
	return fresh;
}

/* Entry `i` is to end before packet `seq` of it, where another one begins. */
static bool split_ent(struct rxw_pcall *p, uint16_t i, uint32_t seq)
{
	struct rxw_sendq *q = &p->tx;
	struct rxw_txent *e = rxw_sendq_ent(q, i), rest = *e;
	uint32_t k = seq - e->first;

	rest.first += k;
	rest.sealed += k;
	rest.data += (size_t)k * e->stride;
	rest.count -= (uint16_t)k;
	if (insert_ent(p, i, &rest) == RXW_NO_NODE)
		return false;
	rxw_buf_ref(rest.buf);
	e = rxw_sendq_ent(q, i);
	e->count = (uint16_t)k;
	e->last_size = e->stride;
	e->last = false;
	return true;
}

/* Where the bytes of an old run are read. */
struct old_bytes {
	const struct rxw_txent *run;
	const struct rxw_security_room *room;
	const uint16_t *length; /* of the data of each packet */
	uint32_t packet, off;
};

static uint32_t old_length(const struct old_bytes *o, uint32_t packet)
{
	const struct rxw_txent *e = o->run;

	if (o->length != NULL)
		return o->length[packet];
	return (packet + 1u == e->count ? e->last_size : e->stride) - (uint32_t)RXW_HEADER_SIZE;
}

static void copy_bytes(struct old_bytes *o, uint8_t *to, uint32_t bytes)
{
	while (bytes > 0) {
		uint32_t n = rxw_min32(bytes, old_length(o, o->packet) - o->off);

		memcpy(to,
		       o->run->data + (size_t)o->packet * o->run->stride + RXW_HEADER_SIZE +
			       o->room->head + o->off,
		       n);
		to += n;
		bytes -= n;
		o->off += n;
		if (o->off == old_length(o, o->packet)) {
			o->packet++;
			o->off = 0;
		}
	}
}

/* Entry `i` is replaced by one in `buf`, with `capacity` bytes in each packet. */
static int repack_entry(struct rxw_pcall *p, uint16_t i, struct old_bytes *o, uint32_t capacity,
			struct rxw_buf *buf)
{
	struct rxw_sendq *q = &p->tx;
	struct rxw_txent *e = rxw_sendq_ent(q, i);
	struct rxw_buf *old = e->buf;
	uint32_t left = 0, stride = RXW_HEADER_SIZE + rxw_sealed_size(o->room, capacity), count,
		 last;

	for (uint32_t k = 0; k < e->count; k++)
		left += old_length(o, k);
	count = rxw_max32((left + capacity - 1) / capacity, 1);
	last = left - (count - 1) * capacity;
	for (uint32_t k = 0; k < count; k++) {
		uint8_t *d = buf->data + (size_t)k * stride;

		memset(d, 0, RXW_HEADER_SIZE);
		copy_bytes(o, d + RXW_HEADER_SIZE + o->room->head,
			   k + 1 == count ? last : capacity);
	}
	q->end += count - e->count;
	e->buf = buf;
	e->data = buf->data;
	e->sealed = e->first;
	e->stride = (uint16_t)stride;
	e->last_size = (uint16_t)(RXW_HEADER_SIZE + rxw_sealed_size(o->room, last));
	e->count = (uint16_t)count;
	rxw_buf_unref(old);
	/* There are more packets now than the writer queued. */
	rxw_sendq_note_high(p);
	return rxw_run_seal(p->conn, p->channel, p->number, e->first, e->data, e->stride, e->count,
			    capacity, last);
}

/*
 * Packets to be cut now. They are sealed again, and a peer decides how often it allows another size and how few packets
 * may leave.
 */
static uint32_t cut_now(const struct rxw_sendq *q)
{
	uint32_t window = q->edge > q->nxt ? q->edge - q->nxt : 0;
	uint32_t room = q->cc.cwnd > q->flight ? q->cc.cwnd - q->flight : 0;

	return rxw_max32(rxw_min32(window, room), CUT_LEAST);
}

__attribute__((cold)) int rxw_sendq_fit(struct rxw_pcall *p, uint32_t size)
{
	struct rxw_sendq *q = &p->tx;
	const struct rxw_security_class *k = &p->conn->auth.security->class;
	uint16_t i = q->ent_send, length[RXW_BUF_SIZE / RXW_HEADER_SIZE];
	struct old_bytes o = {.room = &p->conn->auth.room};
	uint32_t capacity, packets;
	struct rxw_buf *buf;
	struct rxw_txent *e;
	int result = 0;

	if (i == RXW_NO_NODE)
		return 0;
	e = rxw_sendq_ent(q, i);
	if (e->stride <= size && (k->seal == NULL || e->sealed == e->first))
		return 0;
	if (k->seal != NULL && k->unseal == NULL)
		return e->sealed == e->first ? 0 : -RXW_ESTATE;
	if (e->first < q->nxt) {
		if (!split_ent(p, i, q->nxt))
			return -RXW_ENOMEM;
		i = q->ent_send = rxw_sendq_ent(q, i)->next;
		e = rxw_sendq_ent(q, i);
	}
	if (k->seal != NULL && e->count > cut_now(q)) {
		if (!split_ent(p, i, e->first + cut_now(q)))
			return -RXW_ENOMEM;
		e = rxw_sendq_ent(q, i);
	}
	capacity = rxw_sealed_capacity(o.room, size - RXW_HEADER_SIZE);
	packets = e->count * (e->stride - (uint32_t)RXW_HEADER_SIZE) / capacity + 1;
	/* Before packets are unsealed, which is done in place. */
	buf = rxw_buf_get_array(p->conn->ops->pool(p->conn), (size_t)packets * size);
	if (buf == NULL)
		return -RXW_ENOMEM;
	o.run = e;
	if (k->seal != NULL) {
		o.length = length;
		result = rxw_run_unseal(p->conn, p->channel, p->number, e->sealed, e->data,
					e->stride, e->count, e->last_size, length);
	}
	if (result == 0)
		return repack_entry(p, i, &o, capacity, buf);
	rxw_buf_unref(buf);
	return result;
}

int rxw_sendq_fit_first(struct rxw_pcall *p, uint32_t size)
{
	struct rxw_sendq *q = &p->tx;
	const struct rxw_security_class *k = &p->conn->auth.security->class;
	const struct rxw_txent *e;

	if (q->ent_send == RXW_NO_NODE || (k->seal != NULL && k->unseal == NULL))
		return 0;
	e = rxw_sendq_ent(q, q->ent_send);
	if (e->first != q->nxt ||
	    (e->count == 1 && ((e->last && !q->renumber.whole) || e->last_size <= size)))
		return 0;
	if (e->count > 1 && !split_ent(p, q->ent_send, q->nxt + 1))
		return -RXW_ENOMEM;
	return rxw_sendq_fit(p, size);
}

void rxw_sendq_unsend(struct rxw_pcall *p, uint32_t from)
{
	struct rxw_sendq *q = &p->tx;
	uint16_t i;

	if (from >= q->nxt)
		return;
	assert(from >= q->una);
	rxw_sendq_forget_from(q, from);
	q->nxt = from;
	for (i = q->ent_head; i != RXW_NO_NODE; i = rxw_sendq_ent(q, i)->next)
		if (from - rxw_sendq_ent(q, i)->first < rxw_sendq_ent(q, i)->count)
			break;
	assert(i != RXW_NO_NODE);
	q->ent_send = i;
}

/* --- the scoreboard: what became of the packets that were sent --- */

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
	/* A packet that did not leave is not a retransmission. */
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
