/* SPDX-License-Identifier: BSD-2-Clause */
/* The receive queue: runs in order, runs behind gaps, memory limits (3.4, 3.7, 4.4 item 9). */
#include <limits.h>
#include <string.h>

#include "base/assert.h"
#include "proto/state.h"

#define WINDOW_SECOND	    32u		   /* the window once the first packet was consumed */
#define WINDOW_SECOND_WIDE  RXW_MAX_ACKS   /* the same if the peer offers wide windows */
#define STARTING	    4096u	   /* smaller windows grow faster */
#define UNUSED_ROUNDS	    8u		   /* of a window that is not used up for so long, */
#define UNUSED_TIME	    (200 * RXW_MS) /* and at least this, a part is not needed */
#define SHRINK_APART	    (10 * RXW_MS)  /* and a round trip, while memory is short */
#define REST_AFTER	    (10 * RXW_SEC) /* without a packet, a wide window is given back */
#define UNVALIDATED_PACKETS RXW_FIRST_FLIGHT
#define CROWDED_PACKETS	    2u
#define SPARE_PART	    8 /* granted memory that is not needed, as a part of it, is kept */
#define PEER_PART	    8 /* a peer that has more queued than this part of its memory: copies */
#define PAUSE_PART	    64		 /* of a round trip, */
#define PAUSE_MOST	    (RXW_MS / 2) /* and at most so long, in which no more than */
#define PAUSE_PACKETS	    45u		 /* arrive: one full burst */

/* --- packets behind a gap: a peer decides in which order they arrive --- */

static void lay_out_later(struct rxw_later *l, uint64_t *bits, uint16_t *entry, uint32_t room)
{
	rxw_bitmap_init(&l->have, bits, room);
	l->entry = entry;
}

static void init_later(struct rxw_later *l)
{
	static const uint16_t no_entries[RXW_BITMAP_LEAST];

	l->buf = NULL;
	l->count = 0;
	l->have = (struct rxw_bitmap)RXW_BITMAP_EMPTY;
	l->entry = (uint16_t *)no_entries;
}

static void free_later(struct rxw_later *l)
{
	rxw_buf_unref(l->buf);
	init_later(l);
}

/* Space for packets below `end`. False: out of memory. */
static bool reserve_later(struct rxw_later *l, struct rxw_pool *pool, uint32_t next, uint32_t end)
{
	struct rxw_later old = *l;
	uint32_t room = old.have.room, stop = next + old.have.room, to;
	size_t bits;

	if (l->buf != NULL && end - next <= room)
		return true;
	while (room < end - next)
		room *= 2;
	/* Growth by at least four times, so that each packet bears a part of the cost. */
	if (l->buf != NULL)
		room = rxw_min32(rxw_max32(room, 4 * old.have.room), RXW_BITMAP_MOST);
	room = rxw_min32(room, RXW_BITMAP_MOST);
	if (room < end - next || pool == NULL)
		return false;
	bits = RXW_BITMAP_MEMORY(room) * sizeof(uint64_t);
	l->buf = rxw_buf_get_array(pool, bits + room * sizeof(*l->entry));
	if (l->buf == NULL) {
		l->buf = old.buf;
		return false;
	}
	lay_out_later(l, (uint64_t *)l->buf->data, (uint16_t *)(l->buf->data + bits), room);
	for (uint32_t at = next; (at = rxw_bitmap_next(&old.have, at, stop, true)) < stop;
	     at = to) {
		to = rxw_bitmap_next(&old.have, at, stop, false);
		rxw_bitmap_set(&l->have, at, to);
		for (uint32_t seq = at; seq < to; seq++)
			l->entry[seq % room] = old.entry[seq % old.have.room];
	}
	rxw_buf_unref(old.buf);
	return true;
}

/* Entry `index` has the packets [first, first + count). */
static void put_later(struct rxw_later *l, uint32_t first, uint32_t count, uint16_t index)
{
	rxw_bitmap_set(&l->have, first, first + count);
	l->entry[first % l->have.room] = l->entry[(first + count - 1) % l->have.room] = index;
	l->count++;
}

static void remove_later(struct rxw_later *l, uint32_t first, uint32_t count)
{
	rxw_bitmap_clear(&l->have, first, first + count);
	l->count--;
}

/* The entry that begins or ends with a packet. */
static uint16_t later_at(const struct rxw_later *l, uint32_t seq)
{
	return l->entry[seq % l->have.room];
}

/* --- the queue --- */

static inline struct rxw_rxent *entry_at(const struct rxw_recvq *q, uint16_t index)
{
	return rxw_slab_at(&q->ents, index);
}

void rxw_recvq_init(struct rxw_pcall *p, uint64_t now)
{
	struct rxw_recvq *q = &p->rx;
	const struct rxw_pconn *c = p->conn;

	rxw_slab_init(&q->ents, q->own, sizeof(q->own[0]), sizeof(q->own) / sizeof(q->own[0]));
	init_later(&q->later);
	q->ready_head = q->ready_tail = q->ready_take = q->unverified = q->dead = RXW_NO_NODE;
	q->consumed = q->taken = q->next = q->hard = 1;
	q->verified_to = UINT32_MAX;
	q->window = rxw_max32(rxw_min32(c->params->initial_window, c->params->window), 1);
	if (c->crowded && !rxw_peer_trusted(c->peer, c->client, now))
		q->window = rxw_min32(q->window, CROWDED_PACKETS);
	q->edge = 1 + q->window;
	q->grown_at = 1;
}

void rxw_recvq_fini(struct rxw_pcall *p)
{
	rxw_recvq_clear(p);
	rxw_recvq_release(p, UINT_MAX);
}

/* The end of the packets behind gaps. Those of a queue that has stopped are dropped, if not released yet. */
static __attribute__((noinline)) uint32_t later_end(const struct rxw_recvq *q)
{
	return q->stopped ? q->next : rxw_max32(q->next, q->highest + 1);
}

/*
 * The limit of a client whose address is not validated is lower. A wide window has to be advertised
 * before it counts, since memory is granted for it.
 */
uint32_t rxw_recvq_limit(const struct rxw_pcall *p, uint64_t now)
{
	const struct rxw_pconn *c = p->conn;
	uint32_t window = rxw_min32(c->params->window, RXW_MAX_ACKS), first = RXW_FIRST_FLIGHT;

	if (!rxw_peer_trusted(c->peer, c->client, now)) {
		first = c->crowded ? CROWDED_PACKETS : UNVALIDATED_PACKETS;
		window = rxw_min32(window, first);
	}
	return rxw_max32(rxw_max32(p->rx.edge, p->rx.hard + window), 1 + first);
}

static void uncharge_bytes(struct rxw_pcall *p, int64_t bytes)
{
	if (bytes == 0)
		return;
	assert(p->rx.pinned >= bytes);
	p->rx.pinned -= bytes;
	rxw_budget_give(&p->conn->rx.memory, bytes);
	rxw_budget_give(&p->conn->account->memory, bytes);
}

/* Received bytes that the call may pin. */
static uint64_t memory_limit_of(const struct rxw_pcall *p)
{
	const struct rxw_params *params = p->conn->params;
	bool wide = p->conn->rx.wide_heard;

	return wide ? rxw_max64(params->call_memory, params->wide_memory) : params->call_memory;
}

/* Bytes of a packet of the stream, as far as is known. */
static int64_t expected_packet_size(const struct rxw_pcall *p)
{
	return rxw_max32(p->conn->params->mtu, p->rx.largest);
}

/* Packets that the memory of the call permits to advertise. */
static uint32_t granted_packets(const struct rxw_pcall *p)
{
	return RXW_MAX_ACKS + (uint32_t)(p->rx.grant / expected_packet_size(p));
}

/* Get memory for a window of so many packets. Returns how many it may have. */
static uint32_t fund_window(struct rxw_pcall *p, uint32_t packets)
{
	struct rxw_recvq *q = &p->rx;
	int64_t want = 0;

	if (packets > RXW_MAX_ACKS)
		want = (packets - RXW_MAX_ACKS) * expected_packet_size(p);
	if (want > q->grant && !q->stopped)
		q->grant = rxw_wide_grant(&p->conn->account->wide, q->grant, want);
	return rxw_min32(packets, granted_packets(p));
}

/* Give back what neither the window needs nor what was advertised before. */
static void return_unneeded_grant(struct rxw_pcall *p)
{
	struct rxw_recvq *q = &p->rx;
	uint32_t end = rxw_recvq_ended(q) ? q->next : rxw_max32(q->edge, q->consumed + q->window);
	uint32_t packets = rxw_max32(end > q->consumed ? end - q->consumed : 0, RXW_MAX_ACKS);
	int64_t need = (packets - RXW_MAX_ACKS) * expected_packet_size(p);

	if (q->grant - need > q->grant / SPARE_PART)
		q->grant = rxw_wide_grant(&p->conn->account->wide, q->grant, need);
}

static void release_grant(struct rxw_pcall *p)
{
	if (p->rx.grant > 0)
		p->rx.grant = rxw_wide_grant(&p->conn->account->wide, p->rx.grant, 0);
	if (p->rx.stream)
		rxw_wide_stream(&p->conn->account->wide, false);
	p->rx.stream = false;
}

static bool charge_bytes(struct rxw_pcall *p, int64_t bytes)
{
	struct rxw_pconn *c = p->conn;

	if (p->rx.pinned + bytes > (int64_t)memory_limit_of(p))
		return false;
	if (!rxw_budget_take(&c->rx.memory, bytes))
		return false;
	if (!rxw_budget_take(&c->account->memory, bytes)) {
		rxw_budget_give(&c->rx.memory, bytes);
		return false;
	}
	p->rx.pinned += bytes;
	return true;
}

static __attribute__((noinline)) void drop_entry(struct rxw_pcall *p, uint16_t index)
{
	struct rxw_rxent *e = entry_at(&p->rx, index);

	rxw_buf_unref(e->buf);
	uncharge_bytes(p, e->charge);
	rxw_slab_put(&p->rx.ents, index);
}

/* Take out the first of the entries behind gaps. */
static __attribute__((noinline)) uint16_t take_first_later(struct rxw_recvq *q)
{
	uint32_t first = rxw_bitmap_next(&q->later.have, q->next, q->highest + 1, true);
	uint16_t i = later_at(&q->later, first);

	assert(first <= q->highest);
	assert(entry_at(q, i)->first == first);
	remove_later(&q->later, first, entry_at(q, i)->count);
	return i;
}

void rxw_recvq_clear(struct rxw_pcall *p)
{
	struct rxw_recvq *q = &p->rx;

	release_grant(p);
	if (q->stopped)
		return;
	q->stopped = true;
	q->dead = q->unverified;
	if (q->ready_head != RXW_NO_NODE) {
		entry_at(q, q->ready_tail)->next = q->dead;
		q->dead = q->ready_head;
	}
	q->ready_head = q->ready_tail = q->ready_take = q->unverified = RXW_NO_NODE;
}

bool rxw_recvq_release(struct rxw_pcall *p, unsigned most)
{
	struct rxw_recvq *q = &p->rx;

	if (!q->stopped)
		return true;
	for (; q->ents.used > 0; most--) {
		uint16_t i = q->dead;

		if (most == 0)
			return false;
		if (i != RXW_NO_NODE)
			q->dead = entry_at(q, i)->next;
		else
			i = take_first_later(q);
		drop_entry(p, i);
	}
	free_later(&q->later);
	rxw_slab_fini(&q->ents);
	return true;
}

void rxw_recvq_discard(struct rxw_pcall *p)
{
	struct rxw_recvq *q = &p->rx;

	rxw_recvq_clear(p);
	q->consumed = q->taken = q->hard = q->next;
	q->verified_to = UINT32_MAX;
}

bool rxw_recvq_ended(const struct rxw_recvq *q)
{
	return q->last != 0 && q->next > q->last;
}

/* The window after the first packet. With wide windows, what earlier streams of the peer needed. */
static uint32_t second_window(struct rxw_pcall *p, uint32_t limit, uint64_t now)
{
	const struct rxw_pconn *c = p->conn;
	uint32_t learnt;

	if (!p->conn->rx.wide_heard)
		return rxw_min32(WINDOW_SECOND, limit);
	if (limit < RXW_MAX_ACKS)
		return limit;
	if (!p->rx.stream)
		rxw_wide_stream(&c->account->wide, true);
	p->rx.stream = true;
	learnt = rxw_peer_trusted(c->peer, c->client, now) ? rxw_peer_recall_window(c->peer, now)
							   : 0;
	return rxw_max32(WINDOW_SECOND_WIDE, fund_window(p, rxw_min32(learnt, c->params->window)));
}

static void grow_window(struct rxw_pcall *p, uint64_t now)
{
	struct rxw_recvq *q = &p->rx;
	const struct rxw_params *params = p->conn->params;
	uint32_t limit = params->window, unread = q->next - q->consumed;

	if (q->window_limit != 0)
		limit = rxw_min32(limit, rxw_max32(q->window_limit, 1));
	/* Wide windows grow by measurement. */
	limit = rxw_min32(limit, RXW_MAX_ACKS);
	if (q->window >= limit || q->consumed <= 1 || q->stopped)
		return;
	if (q->window < rxw_min32(WINDOW_SECOND, limit) || p->conn->rx.wide_heard) {
		q->window = second_window(p, limit, now);
		q->grown_at = q->next;
		return;
	}
	/* At most once per window of packets, and so at most once per round trip. */
	if (q->next - q->grown_at < q->window ||
	    unread > rxw_max32(params->unread_packets, q->window / 2) ||
	    q->pinned > (int64_t)memory_limit_of(p) / 2)
		return;
	q->window = rxw_min32(q->window * 2, limit);
	q->grown_at = q->next;
}

void rxw_recvq_advertised(struct rxw_pcall *p, uint32_t edge, uint64_t now)
{
	struct rxw_recvq *q = &p->rx;

	if (edge <= q->edge)
		return;
	if (q->tuning.at == 0 && q->window >= RXW_MAX_ACKS && p->conn->rx.wide_heard) {
		q->tuning.at = now ? now : 1;
		/* Packets behind this need the ACK. At first the peer uses the window of an earlier call. */
		q->tuning.edge = rxw_max32(q->edge, 1 + p->conn->rx.window_told);
		q->tuning.fresh = q->fresh;
	}
	q->edge = edge;
}

static void shrink_window(struct rxw_recvq *q, uint32_t to)
{
	if (q->window > RXW_MAX_ACKS)
		q->window = rxw_min32(q->window, rxw_max32(to, RXW_MAX_ACKS));
}

static bool is_short(const struct rxw_pcall *p)
{
	const struct rxw_proto_ops *ops = p->conn->ops;

	return p->rx.pinned > (int64_t)(memory_limit_of(p) / 4 * 3) ||
	       (ops->memory_short != NULL && ops->memory_short(p->conn));
}

/* Packets that arrive in the shortest round trip, from what arrived since the measurement began. */
static uint64_t arrivals(const struct rxw_recvq *q, uint64_t time)
{
	return (uint64_t)(q->fresh - q->tuning.fresh) * q->tuning.least / time;
}

/*
 * Packets arrived, but after some round trips none of those that the ACK permitted: the stream uses
 * a part of its window. A 32nd or less halves it, and the measurement begins again. The rest
 * suffices for a sender that finds more room: in a smaller one it would believe that the path has
 * none.
 */
static void shrink_unused(struct rxw_recvq *q, uint64_t now)
{
	struct rxw_tuning *t = &q->tuning;
	uint64_t time = now - t->at;

	if (t->least == 0 || time < UNUSED_ROUNDS * t->least || time < UNUSED_TIME)
		return;
	t->flight = (uint32_t)rxw_min64(arrivals(q, time), UINT32_MAX);
	if ((uint64_t)t->flight * 16 < q->window / 2)
		shrink_window(q, q->window / 2);
	/* Packets beyond this edge need another ACK, so that the time is at least a round trip. */
	t->edge = q->edge;
	t->at = now;
	t->fresh = q->fresh;
}

/*
 * Nothing has arrived for a while, and everything was read: the memory of a wide window goes back, and
 * with it the right edge, which never moves back otherwise. A sender begins with few packets after such a
 * pause, and learns of the window from their ACK. The first of them brings it back: see resume_window().
 */
void rxw_recvq_rest(struct rxw_pcall *p, uint64_t now)
{
	struct rxw_recvq *q = &p->rx;

	if (q->grant == 0 || q->stopped || now < q->fresh_at + REST_AFTER || q->hard != q->next ||
	    q->consumed != q->next || rxw_recvq_has_later(q))
		return;
	q->rested = rxw_max32(q->rested, q->window);
	q->window = RXW_MAX_ACKS;
	q->edge = q->hard + q->window;
	q->tuning.at = 0;
	q->tuning.flight = 0;
	q->grant = rxw_wide_grant(&p->conn->account->wide, q->grant, 0);
}

/* Packets arrive again: the window of before the pause, as far as there is memory. */
static void resume_window(struct rxw_pcall *p, uint64_t now)
{
	struct rxw_recvq *q = &p->rx;
	uint32_t window = rxw_min32(q->rested, p->conn->params->window);

	q->rested = 0;
	if (p->conn->rx.wide_heard && !is_short(p) &&
	    rxw_peer_trusted(p->conn->peer, p->conn->client, now))
		q->window = rxw_max32(q->window, fund_window(p, window));
}

/* Packets became larger, or memory is short: of this call, of all calls of the peer, or of all. */
static void fit_memory(struct rxw_pcall *p, uint64_t now)
{
	struct rxw_recvq *q = &p->rx;
	int64_t share;

	if (q->window > granted_packets(p))
		shrink_window(q, fund_window(p, q->window));
	if (now < q->tuning.shrunk_at + q->tuning.least + SHRINK_APART)
		return;
	share = rxw_wide_excess(&p->conn->account->wide, q->grant);
	if (share == INT64_MAX && !is_short(p))
		return;
	if (share == INT64_MAX)
		share = 0;
	q->tuning.shrunk_at = now;
	shrink_window(q, rxw_max32(q->window / 2,
				   RXW_MAX_ACKS + (uint32_t)(share / expected_packet_size(p))));
}

/*
 * The time is the round trip if the window limits the sender, else it is longer: the shortest one
 * is kept. The window is four times what arrives within it. While a lost packet is sent again, two
 * more round trips of packets wait behind it, and slow start doubles the flight in the time after
 * which the sender learns of a larger window. At first it may triple it, and the measurement is old
 * by a round trip, so that small windows are 16 times what arrives. Senders that have not offered
 * wide windows get none, so that old ones see the same ACKs as ever. Memory for the window is
 * granted before it is advertised. The right edge never moves back: when the window becomes
 * smaller, it rests until the stream has reached it.
 */
bool rxw_recvq_measure(struct rxw_pcall *p, uint64_t now)
{
	const struct rxw_params *params = p->conn->params;
	struct rxw_recvq *q = &p->rx;
	struct rxw_tuning *t = &q->tuning;
	uint64_t time, arrived;

	q->fresh_at = now;
	if (q->rested != 0)
		resume_window(p, now);
	if (t->at == 0)
		return true;
	if (q->highest < t->edge) {
		shrink_unused(q, now);
		return true;
	}
	time = now > t->at ? now - t->at : 1;
	t->at = 0;
	if (t->least == 0 || time < t->least)
		t->least = time;
	if (t->least < RXW_LONG_RTT || (q->window_limit != 0 && q->window_limit < RXW_MAX_ACKS))
		return true;
	arrived = arrivals(q, time);
	t->flight = (uint32_t)rxw_min64(arrived, UINT32_MAX);
	arrived *= q->window < STARTING ? 16 : 4;
	if (arrived <= q->window || is_short(p) || q->pinned > (int64_t)memory_limit_of(p) / 2 ||
	    q->next - q->consumed > rxw_max32(params->unread_packets, q->window / 2))
		return true;
	if (!rxw_peer_trusted(p->conn->peer, p->conn->client, now))
		return false;
	q->window =
		rxw_max32(q->window, fund_window(p, (uint32_t)rxw_min64(arrived, params->window)));
	rxw_peer_learn_window(p->conn->peer, p->conn->client, q->window, now);
	return true;
}

uint64_t rxw_recvq_pause(const struct rxw_recvq *q)
{
	const struct rxw_tuning *t = &q->tuning;
	uint64_t pause = rxw_min64(t->least / PAUSE_PART, PAUSE_MOST);

	if (t->flight == 0)
		return 0;
	assert(t->least > 0);
	return rxw_min64(pause, t->least / t->flight * PAUSE_PACKETS);
}

uint32_t rxw_recvq_edge(const struct rxw_recvq *q)
{
	uint32_t from = q->window > RXW_MAX_ACKS ? q->consumed : q->hard;

	return rxw_max32(q->edge, from + q->window);
}

void rxw_recvq_advance(struct rxw_pcall *p, uint64_t now)
{
	struct rxw_recvq *q = &p->rx;
	const struct rxw_params *params = p->conn->params;
	uint32_t hard = q->consumed, to = rxw_min32(q->next, q->verified_to);

	grow_window(p, now);
	if (q->window > RXW_MAX_ACKS)
		fit_memory(p, now);
	if (q->grant > 0)
		return_unneeded_grant(p);
	/*
	 * Once the application reads, packets are acknowledged for good on receipt, since packets
	 * that are in order are never dropped. Not before, and only up to a limit: a slow reader
	 * must stop its sender.
	 */
	if (q->consumed > 1 && q->pinned <= (int64_t)memory_limit_of(p) / 2)
		hard += q->window > RXW_MAX_ACKS ? q->window / 2 : params->unread_packets;
	hard = rxw_min32(hard, to);
	if (hard > q->hard)
		q->hard = hard;
	assert(q->consumed >= 1);
	assert(q->hard <= q->next);
	assert(q->consumed <= q->taken);
	assert(q->taken <= q->next);
}

unsigned rxw_recvq_table(const struct rxw_recvq *q, uint32_t first, uint32_t upto, uint8_t *acks,
			 unsigned room)
{
	uint32_t n = rxw_min32(upto - first, room), shown;

	assert(first <= upto);
	assert(upto <= q->next);
	memset(acks, 1, n);
	if (upto != q->next)
		return n;
	/*
	 * Packets that were dropped again must be reported missing, or the sender never resends
	 * them.
	 */
	shown = rxw_max32(q->highest, q->shown);
	if (shown < first || shown - first < n)
		return n;
	shown = rxw_min32(shown - first + 1, room);
	for (; n < shown; n++)
		acks[n] = first + n < later_end(q) && rxw_bitmap_has(&q->later.have, first + n);
	return n;
}

/* Which of 64 packets were received, as bits. */
static uint64_t received_bits(const struct rxw_recvq *q, uint32_t seq)
{
	uint32_t end = later_end(q), n = q->next > seq ? rxw_min32(q->next - seq, 64) : 0;
	uint64_t bits = n > 0 ? UINT64_MAX >> (64 - n) : 0;

	if (n < 64 && seq + n < end)
		bits |= rxw_bitmap_word(&q->later.have, seq + n) << n;
	if (seq >= end)
		return 0;
	return end - seq < 64 ? bits & ((1ull << (end - seq)) - 1) : bits;
}

/* Tables that describe `count` packets from `first` on. */
static void write_ack_tables(const struct rxw_recvq *q, uint8_t *acks, uint32_t first,
			     uint32_t count)
{
	uint64_t bits[(1 + RXW_ACK_TABLES) * RXW_TABLE_PACKETS / 64];

	for (uint32_t i = 0; i < count; i += 64)
		bits[i / 64] = received_bits(q, first + i);
	if (count % 64 != 0)
		bits[count / 64] &= (1ull << count % 64) - 1;
	rxw_ack_spread(acks, bits, count);
}

/* The end of the last gap of [first, end), counted from `first`: nothing behind it needs to be described. 0: no gap. */
static uint32_t last_gap(const struct rxw_recvq *q, uint32_t first, uint32_t end)
{
	uint32_t stop = rxw_min32(later_end(q), end), last;

	if (stop < end)
		return end - first;
	last = rxw_bitmap_last(&q->later.have, q->next, stop, false);
	return last > q->next ? last - first : 0;
}

/*
 * The tables do not suffice. The newest packets are described in two of three ACKs, for they are not
 * known yet. The others describe the rest in turn, since some ACKs are lost.
 */
static void describe_part(struct rxw_recvq *q, struct rxw_ack *ack, uint8_t *acks, uint32_t all,
			  unsigned tables)
{
	uint32_t number = (all + RXW_TABLE_PACKETS - 1) / RXW_TABLE_PACKETS;
	uint32_t newest = number - (tables - 1), turn = q->parts / 3;
	uint32_t begin = q->parts % 3 ? newest : 1 + turn * (tables - 1) % newest;

	assert(tables > 1);
	assert(begin >= 1);
	assert(begin <= newest);
	q->parts++;
	ack->base = (uint8_t)begin;
	ack->tables = (uint8_t)(tables - 1);
	ack->count = RXW_TABLE_PACKETS;
	write_ack_tables(q, acks, ack->first, RXW_TABLE_PACKETS);
	begin *= RXW_TABLE_PACKETS;
	ack->part = rxw_min32(all - begin, (tables - 1) * RXW_TABLE_PACKETS);
	write_ack_tables(q, acks + RXW_ACK_TABLE, ack->first + begin, ack->part);
}

bool rxw_recvq_wide(struct rxw_recvq *q, struct rxw_ack *ack, uint8_t *acks, unsigned tables)
{
	uint32_t end = rxw_max32(rxw_max32(q->highest, q->shown) + 1, q->next);
	uint32_t first = ack->first, described;

	if (end - first <= RXW_MAX_ACKS)
		return false;
	/* More was never permitted. */
	end = rxw_min32(end, first + RXW_WINDOW_MAX);
	ack->previous = end - 1;
	ack->acks = acks;
	ack->more = acks + RXW_ACK_TABLE;
	memset(acks, 0, tables * (size_t)RXW_ACK_TABLE);
	described = last_gap(q, first, end);
	if (described > tables * RXW_TABLE_PACKETS) {
		describe_part(q, ack, acks, end - first, tables);
		return true;
	}
	if (described >= RXW_MAX_ACKS) {
		ack->tables = (uint8_t)((described - 1) / RXW_TABLE_PACKETS);
		described = rxw_min32(end - first, (1u + ack->tables) * RXW_TABLE_PACKETS);
	}
	ack->count = described;
	ack->tail = end - first - described;
	write_ack_tables(q, acks, first, described);
	return true;
}

/* Drop the highest run behind a gap, to make space for packets in order. */
static bool drop_out_of_order(struct rxw_pcall *p)
{
	struct rxw_recvq *q = &p->rx;
	uint32_t end;
	uint16_t i;

	if (q->later.count == 0)
		return false;
	end = rxw_bitmap_last(&q->later.have, q->next, later_end(q), true);
	i = later_at(&q->later, end - 1);
	remove_later(&q->later, entry_at(q, i)->first, entry_at(q, i)->count);
	drop_entry(p, i);
	return true;
}

/*
 * When memory is short, a call that waits for a handler must not take what calls with a handler
 * need: all of them would stall.
 */
static bool memory_reserved(const struct rxw_pcall *p)
{
	const struct rxw_proto_ops *ops = p->conn->ops;

	return p->state == RXW_CS_PRECALL && p->rx.next > 2 && ops->memory_short != NULL &&
	       ops->memory_short(p->conn);
}

/*
 * A buffer may pin more memory than its packets have. A small part of the peer's memory may be used
 * in that way, else it would not suffice for the windows that were advertised.
 */
static bool must_be_copied(const struct rxw_pcall *p, size_t cap, size_t bytes)
{
	const struct rxw_budget *memory = &p->conn->account->memory;

	if (cap > 4 * bytes)
		return true;
	return p->conn->rx.wide_heard && cap > bytes + bytes / 8 &&
	       atomic_load_explicit(&memory->used, memory_order_relaxed) >
		       memory->limit / PEER_PART;
}

/* An entry for packets of a run. */
static uint16_t make_entry(struct rxw_pcall *p, const struct rxw_rxrun *run,
			   const struct rxw_rxpart *part, bool in_order)
{
	struct rxw_recvq *q = &p->rx;
	struct rxw_pool *pool = p->conn->ops->pool(p->conn);
	bool keep = !run->verified && !p->conn->auth.authenticated;
	unsigned front = keep ? RXW_HEADER_SIZE : 0; /* bytes before the data that stay with it */
	bool tail = part->skip + part->count == run->count;
	struct rxw_rxent e = {
		.first = part->first,
		.count = (uint16_t)part->count,
		.stride = run->stride,
		.length = rxw_run_data(run, false),
		.last_length = rxw_run_data(run, tail),
		.data = run->data + (size_t)part->skip * run->stride + RXW_HEADER_SIZE +
			(run->verified ? run->sec_head : 0),
		.next = RXW_NO_NODE,
		.unverified = keep,
	};
	struct rxw_buf *small = NULL;
	size_t bytes;
	uint32_t cap = run->buf->cap;
	uint16_t index;

	if (memory_reserved(p))
		return RXW_NO_NODE;
	bytes = front + (size_t)(part->count - 1) * run->stride + e.last_length;
	if (must_be_copied(p, cap, bytes)) {
		cap = (uint32_t)(bytes + 63) / 64 * 64;
		if (cap == 0)
			cap = 64;
	}
	while (!charge_bytes(p, cap))
		if (!in_order || !drop_out_of_order(p))
			return RXW_NO_NODE;
	index = rxw_slab_get(&q->ents, pool);
	if (index == RXW_NO_NODE) {
		uncharge_bytes(p, cap);
		return RXW_NO_NODE;
	}
	if (cap != run->buf->cap) {
		small = rxw_buf_get_small(pool, cap);
		if (small == NULL) {
			rxw_slab_put(&q->ents, index);
			uncharge_bytes(p, cap);
			return RXW_NO_NODE;
		}
		memcpy(small->data, e.data - front, bytes);
		e.buf = small;
		e.data = small->data + front;
	} else {
		rxw_buf_ref(run->buf);
		e.buf = run->buf;
	}
	e.charge = cap;
	q->largest = rxw_max32(q->largest, run->count > 1 ? run->stride : run->last_size);
	*entry_at(q, index) = e;
	if (e.unverified)
		q->verified_to = rxw_min32(q->verified_to, e.first);
	return index;
}

static void append_entry(struct rxw_recvq *q, uint16_t index)
{
	struct rxw_rxent *e = entry_at(q, index);

	assert(e->first == q->next);
	assert(e->count > 0);
	e->next = RXW_NO_NODE;
	if (q->ready_tail == RXW_NO_NODE)
		q->ready_head = index;
	else
		entry_at(q, q->ready_tail)->next = index;
	q->ready_tail = index;
	if (q->ready_take == RXW_NO_NODE)
		q->ready_take = index;
	q->next = e->first + e->count;
	q->highest = rxw_max32(q->highest, q->next - 1);
}

bool rxw_recvq_append(struct rxw_pcall *p, const struct rxw_rxrun *run,
		      const struct rxw_rxpart *part)
{
	uint16_t index = make_entry(p, run, part, true);

	if (index == RXW_NO_NODE)
		return false;
	append_entry(&p->rx, index);
	return true;
}

bool rxw_recvq_later(struct rxw_pcall *p, const struct rxw_rxrun *run,
		     const struct rxw_rxpart *part)
{
	struct rxw_recvq *q = &p->rx;
	uint32_t end = part->first + part->count;
	uint16_t index;

	if (!reserve_later(&q->later, p->conn->ops->pool(p->conn), q->next, end))
		return false;
	index = make_entry(p, run, part, false);
	if (index == RXW_NO_NODE)
		return false;
	put_later(&q->later, part->first, part->count, index);
	q->highest = rxw_max32(q->highest, end - 1);
	return true;
}

uint32_t rxw_recvq_absorb(struct rxw_pcall *p)
{
	struct rxw_recvq *q = &p->rx;
	uint32_t before = q->next;

	while (q->later.count > 0 && rxw_bitmap_has(&q->later.have, q->next))
		append_entry(q, take_first_later(q));
	return q->next - before;
}

uint32_t rxw_recvq_missing(const struct rxw_recvq *q, uint32_t *from, uint32_t end)
{
	uint32_t seq = rxw_max32(*from, q->next), stop = rxw_min32(end, later_end(q)), to = end;

	if (seq < stop) {
		seq = rxw_bitmap_next(&q->later.have, seq, stop, false);
		if (seq < stop)
			to = rxw_bitmap_next(&q->later.have, seq, stop, true);
		if (to == stop)
			to = end;
	}
	*from = seq;
	return seq < end ? to - seq : 0;
}

/*
 * Everything queued is unverified, and none of it was taken. Move it to a list of its own, to be taken out.
 */
static void begin_taking(struct rxw_pcall *p)
{
	struct rxw_recvq *q = &p->rx;
	uint16_t i, *link = &q->unverified;

	assert(*link == RXW_NO_NODE);
	assert(q->ready_take == q->ready_head);
	if (q->ready_head != RXW_NO_NODE) {
		*link = q->ready_head;
		link = &entry_at(q, q->ready_tail)->next;
	}
	while (q->later.count > 0) {
		i = take_first_later(q);
		*link = i;
		link = &entry_at(q, i)->next;
	}
	*link = RXW_NO_NODE;
	q->ready_head = q->ready_tail = q->ready_take = RXW_NO_NODE;
	q->next = q->taken;
	q->last = 0;
	/* Packets that fail verification must be reported missing. */
	q->shown = rxw_max32(q->shown, q->highest);
	q->highest = q->taken - 1;
	p->ack.sent_next = rxw_min32(p->ack.sent_next, q->next);
}

bool rxw_recvq_take_unverified(struct rxw_pcall *p, struct rxw_rxrun *run)
{
	struct rxw_recvq *q = &p->rx;
	uint16_t index;
	struct rxw_rxent *e;

	if (q->verified_to == UINT32_MAX || q->stopped)
		return false;
	if (q->verified_to != 0)
		begin_taking(p);
	q->verified_to = 0;
	index = q->unverified;
	if (index == RXW_NO_NODE) {
		q->verified_to = UINT32_MAX;
		return false;
	}
	e = entry_at(q, index);
	assert(e->unverified);
	assert(e->buf != NULL);
	q->unverified = e->next;
	*run = (struct rxw_rxrun){
		.buf = e->buf,
		.data = e->data - RXW_HEADER_SIZE,
		.stride = e->stride,
		.last_size = (uint16_t)(e->last_length + RXW_HEADER_SIZE),
		.count = e->count,
		.size = (uint32_t)(e->count - 1) * e->stride + e->last_length + RXW_HEADER_SIZE,
		.kept = true,
	};
	rxw_header_get(run->data, run->last_size, &run->head);
	p->count.packets_received -= e->count;
	p->count.bytes_received -= (uint64_t)(e->count - 1) * e->length + e->last_length;
	uncharge_bytes(p, e->charge);
	rxw_slab_put(&q->ents, index);
	return true;
}

/* --- reading --- */

uint32_t rxw_pcall_readable(const struct rxw_pcall *p, bool *ended)
{
	const struct rxw_recvq *q = &p->rx;
	uint32_t to = rxw_min32(q->next, q->verified_to);

	if (ended != NULL)
		*ended = q->last != 0 && to > q->last;
	return q->stopped || to < q->taken ? 0 : to - q->taken;
}

unsigned rxw_pcall_take(struct rxw_pcall *p, struct rxw_rxpiece *pieces, unsigned room)
{
	struct rxw_recvq *q = &p->rx;
	unsigned n = 0;

	while (n < room && q->ready_take != RXW_NO_NODE) {
		struct rxw_rxent *e = entry_at(q, q->ready_take);

		if (e->unverified)
			break;
		pieces[n++] = (struct rxw_rxpiece){
			.buf = e->buf,
			.data = e->data,
			.first_seq = e->first,
			.stride = e->stride,
			.length = e->length,
			.last_length = e->last_length,
			.count = e->count,
		};
		e->buf = NULL;
		q->taken = e->first + e->count;
		q->ready_take = e->next;
	}
	return n;
}

void rxw_pcall_consumed(struct rxw_pcall *p, uint32_t packets, struct rxw_out *out)
{
	struct rxw_recvq *q = &p->rx;

	p->time.last_moved = out->now;
	if (packets > q->taken - q->consumed)
		packets = q->taken - q->consumed;
	q->consumed += packets;
	RXW_PROBE(receive_state, p, q->next - q->consumed, q->next, q->last);
	while (q->ready_head != RXW_NO_NODE && q->ready_head != q->ready_take) {
		uint16_t index = q->ready_head;
		struct rxw_rxent *e = entry_at(q, index);

		if (e->first + e->count > q->consumed)
			break;
		q->ready_head = e->next;
		if (q->ready_head == RXW_NO_NODE)
			q->ready_tail = RXW_NO_NODE;
		drop_entry(p, index);
	}
	if (!q->stopped)
		rxw_recvq_advance(p, out->now);
}

void rxw_recvq_set_last(struct rxw_recvq *q, uint32_t seq)
{
	q->last = seq;
}

void rxw_recvq_note_failed(struct rxw_recvq *q, uint32_t packets, uint64_t now)
{
	if (q->failed == 0)
		q->failed_since = now;
	q->failed += packets;
}

void rxw_recvq_note_good(struct rxw_recvq *q)
{
	q->failed = 0;
}

int64_t rxw_pcall_pinned(const struct rxw_pcall *p)
{
	return p->rx.pinned;
}

void rxw_pcall_limit_window(struct rxw_pcall *p, uint32_t packets)
{
	p->rx.window_limit = packets;
}
