/* SPDX-License-Identifier: BSD-2-Clause */
/* Send queue: runs queued, and the scoreboard of what happened to the packets that were sent. */
#include <string.h>

#include "proto/internal.h"

static inline struct rxw_txent *ent(const struct rxw_sendq *q, uint16_t index)
{
	return rxw_slab_at(&q->ents, index);
}

struct rxw_txseg *rxw_sendq_seg(const struct rxw_sendq *q, uint16_t index)
{
	return rxw_slab_at(&q->segs, index);
}

void rxw_sendq_init(struct rxw_sendq *q, uint32_t window, uint64_t now)
{
	rxw_slab_init(&q->ents, q->ent_own, sizeof(q->ent_own[0]),
		      sizeof(q->ent_own) / sizeof(q->ent_own[0]));
	rxw_slab_init(&q->segs, q->seg_own, sizeof(q->seg_own[0]),
		      sizeof(q->seg_own) / sizeof(q->seg_own[0]));
	q->ent_head = q->ent_tail = q->ent_send = q->seg_head = q->seg_tail = RXW_NO_NODE;
	q->una = q->nxt = q->end = q->urged = 1;
	q->window = window;
	q->edge = 1 + window;
	q->base_at = q->idle_since = now;
	q->loss_at = q->hold_at = q->retry_at = RXW_NEVER;
}

static void drop_ent(struct rxw_sendq *q, uint16_t index)
{
	rxw_buf_unref(ent(q, index)->buf);
	rxw_slab_put(&q->ents, index);
}

/* Everything is let go: the call is over. */
void rxw_sendq_clear(struct rxw_pcall *p)
{
	struct rxw_sendq *q = &p->tx;

	for (uint16_t i = q->ent_head, next; i != RXW_NO_NODE; i = next) {
		next = ent(q, i)->next;
		drop_ent(q, i);
	}
	for (uint16_t i = q->seg_head, next; i != RXW_NO_NODE; i = next) {
		next = rxw_sendq_seg(q, i)->next;
		rxw_slab_put(&q->segs, i);
	}
	q->ent_head = q->ent_tail = q->ent_send = q->seg_head = q->seg_tail = RXW_NO_NODE;
	q->una = q->end = q->nxt;
	q->flight = q->acked = q->lost = 0;
	q->force = 0;
	q->probe = false;
	q->loss_at = q->hold_at = q->retry_at = RXW_NEVER;
	q->stuck_since = q->busy_since = q->proof_asked = 0;
}

struct rxw_txent *rxw_sendq_entry(const struct rxw_sendq *q, uint32_t seq)
{
	for (uint16_t i = q->ent_head; i != RXW_NO_NODE; i = ent(q, i)->next) {
		struct rxw_txent *e = ent(q, i);

		if (seq >= e->first && seq - e->first < e->count)
			return e;
	}
	return NULL;
}

static uint32_t *tally(struct rxw_sendq *q, unsigned state)
{
	return state == RXW_TX_FLIGHT ? &q->flight : state == RXW_TX_ACKED ? &q->acked : &q->lost;
}

void rxw_sendq_set(struct rxw_sendq *q, struct rxw_txseg *s, enum rxw_txstate state)
{
	*tally(q, s->state) -= s->count;
	*tally(q, state) += s->count;
	s->state = (uint8_t)state;
}

uint16_t rxw_sendq_split(struct rxw_pcall *p, uint32_t seq)
{
	struct rxw_sendq *q = &p->tx;
	uint16_t i, fresh;
	struct rxw_txseg *a, *b;
	uint32_t k;

	for (i = q->seg_head; i != RXW_NO_NODE; i = a->next) {
		a = rxw_sendq_seg(q, i);
		if (seq == a->first)
			return i;
		if (seq - a->first < a->count)
			break;
	}
	if (i == RXW_NO_NODE)
		return RXW_NO_NODE;
	fresh = rxw_slab_get(&q->segs, rxw_pcall_pool(p));
	if (fresh == RXW_NO_NODE)
		return RXW_NO_NODE;
	a = rxw_sendq_seg(q, i);
	b = rxw_sendq_seg(q, fresh);
	*b = *a;
	k = seq - a->first;
	b->first += k;
	b->count -= k;
	b->order += k;
	b->serial += k;
	if (b->prev_serial != 0) {
		b->prev_order += k;
		b->prev_serial += k;
	}
	a->count = k;
	a->next = fresh;
	if (q->seg_tail == i)
		q->seg_tail = fresh;
	return fresh;
}

bool rxw_sendq_add(struct rxw_pcall *p, uint32_t count, uint32_t serial, uint32_t token,
		   uint64_t now)
{
	struct rxw_sendq *q = &p->tx;
	uint16_t i = rxw_slab_get(&q->segs, rxw_pcall_pool(p));
	struct rxw_txseg *s;

	if (i == RXW_NO_NODE)
		return false;
	s = rxw_sendq_seg(q, i);
	*s = (struct rxw_txseg){
		.sent_at = now,
		.first = q->nxt,
		.count = count,
		.order = q->order + 1,
		.serial = serial,
		.token = token,
		.next = RXW_NO_NODE,
		.state = RXW_TX_FLIGHT,
	};
	if (q->seg_tail == RXW_NO_NODE)
		q->seg_head = i;
	else
		rxw_sendq_seg(q, q->seg_tail)->next = i;
	q->seg_tail = i;
	q->order += count;
	q->nxt += count;
	q->flight += count;
	if (q->ent_send != RXW_NO_NODE &&
	    ent(q, q->ent_send)->first + ent(q, q->ent_send)->count <= q->nxt)
		q->ent_send = ent(q, q->ent_send)->next;
	return true;
}

void rxw_sendq_free_below(struct rxw_pcall *p, uint32_t first)
{
	struct rxw_sendq *q = &p->tx;

	while (q->seg_head != RXW_NO_NODE) {
		uint16_t i = q->seg_head;
		struct rxw_txseg *s = rxw_sendq_seg(q, i);
		uint32_t n;

		if (s->first >= first)
			break;
		n = rxw_min32(s->count, first - s->first);
		*tally(q, s->state) -= n;
		if (n < s->count) {
			s->first += n;
			s->count -= n;
			s->order += n;
			s->serial += n;
			if (s->prev_serial != 0) {
				s->prev_order += n;
				s->prev_serial += n;
			}
			break;
		}
		q->seg_head = s->next;
		if (q->seg_head == RXW_NO_NODE)
			q->seg_tail = RXW_NO_NODE;
		rxw_slab_put(&q->segs, i);
	}
	while (q->ent_head != RXW_NO_NODE) {
		uint16_t i = q->ent_head;
		struct rxw_txent *e = ent(q, i);

		if (e->first + e->count > first)
			break;
		q->ent_head = e->next;
		if (q->ent_head == RXW_NO_NODE)
			q->ent_tail = RXW_NO_NODE;
		drop_ent(q, i);
	}
	if (first > q->una)
		q->una = first;
}

static bool append_ent(struct rxw_pcall *p, const struct rxw_txrun *run)
{
	struct rxw_sendq *q = &p->tx;
	uint16_t i = rxw_slab_get(&q->ents, rxw_pcall_pool(p));

	if (i == RXW_NO_NODE)
		return false;
	*ent(q, i) = (struct rxw_txent){
		.buf = run->buf,
		.data = run->data,
		.first = q->end,
		.stride = run->stride,
		.last_size = run->last_size,
		.count = run->count,
		.next = RXW_NO_NODE,
		.last = run->last,
	};
	if (q->ent_tail == RXW_NO_NODE)
		q->ent_head = i;
	else
		ent(q, q->ent_tail)->next = i;
	q->ent_tail = i;
	if (q->ent_send == RXW_NO_NODE)
		q->ent_send = i;
	q->end += run->count;
	return true;
}

/* Packets queued by the writer: it stops above, and goes on below. */
static uint32_t high_water(const struct rxw_pcall *p)
{
	uint32_t limit = p->tx.high_limit, high = p->conn->params->sendq_high;

	return limit && limit < high ? limit : high;
}

static uint32_t low_water(const struct rxw_pcall *p)
{
	uint32_t high = high_water(p);

	return high < p->conn->params->sendq_high ? high * 2 / 3 + 1 : p->conn->params->sendq_low;
}

/* Whatever keeps a writer from going on, it is told when that is over. */
static void look_above(struct rxw_pcall *p)
{
	if (!rxw_pcall_writable(p))
		p->tx.above_high = true;
}

void rxw_pcall_limit_queue(struct rxw_pcall *p, uint32_t packets)
{
	p->tx.high_limit = packets;
	look_above(p);
}

int rxw_pcall_push(struct rxw_pcall *p, const struct rxw_txrun *run, struct rxw_out *out)
{
	struct rxw_sendq *q = &p->tx;
	int result = 0;

	if (p->error != 0 || p->state != RXW_CS_ACTIVE)
		result = -RXW_ECALL;
	else if (q->stopped)
		result = -RXW_ESTATE;
	else if (run->count == 0 || run->stride < RXW_HEADER_SIZE ||
		 run->last_size < RXW_HEADER_SIZE || run->last_size > run->stride || q->all_queued)
		result = -RXW_EINVAL;
	else if (q->end + run->count < q->end || q->end + run->count >= UINT32_MAX - RXW_MAX_ACKS) {
		rxw_pcall_fail(p, RXW_PROTOCOL_ERROR, RXW_ORIGIN_LOCAL, true, out);
		result = -RXW_ECALL;
	} else if (!append_ent(p, run))
		result = -RXW_ENOMEM;
	if (result != 0) {
		rxw_buf_unref(run->buf);
		return result;
	}
	q->all_queued = run->last;
	p->timer.last_moved = out->now;
	rxw_saw_sender(p);
	look_above(p);
	if (rxw_pcall_sendable(p, out->now)) {
		rxw_pcall_touch(p, out, RXW_OUT_SEND);
	} else if (q->hold_at == RXW_NEVER && q->nxt < q->end) {
		q->hold_at = out->now + RXW_MS;
		rxw_pcall_arm(p, out);
	}
	return 0;
}

uint32_t rxw_pcall_next_seq(const struct rxw_pcall *p)
{
	return p->tx.end;
}

void rxw_pcall_urge(struct rxw_pcall *p, struct rxw_out *out)
{
	p->tx.urged = p->tx.end;
	if (rxw_pcall_sendable(p, out->now))
		rxw_pcall_touch(p, out, RXW_OUT_SEND);
}

uint32_t rxw_pcall_ready(const struct rxw_pcall *p)
{
	return p->tx.end - p->tx.nxt;
}

uint32_t rxw_pcall_queued(const struct rxw_pcall *p)
{
	return p->tx.end - p->tx.una;
}

bool rxw_pcall_writable(const struct rxw_pcall *p)
{
	const struct rxw_sendq *q = &p->tx;
	uint32_t queued = q->end - q->una;

	if (p->error != 0 || q->stopped)
		return true; /* the writer is to learn it */
	if (q->ents.used >= RXW_BUF_SIZE / sizeof(struct rxw_txent) / 2)
		return false;
	return queued < (q->above_high ? low_water(p) : high_water(p));
}

bool rxw_pcall_send_complete(const struct rxw_pcall *p)
{
	return p->tx.all_queued && p->tx.una + p->tx.acked >= p->tx.end && p->tx.nxt == p->tx.end;
}

/*
 * --- smaller packets for a smaller path: only of what was never sent, and only where nothing is
 * sealed ---
 */

/* Copy `bytes` of payload from packet `*i`, offset `*off` of the old run on. */
static void copy_payload(const struct rxw_txent *old, uint32_t *i, uint32_t *off, uint8_t *to,
			 uint32_t bytes)
{
	while (bytes > 0) {
		uint32_t size =
			(*i + 1u == old->count ? old->last_size : old->stride) - RXW_HEADER_SIZE;
		uint32_t n = rxw_min32(bytes, size - *off);

		memcpy(to, old->data + (size_t)*i * old->stride + RXW_HEADER_SIZE + *off, n);
		to += n;
		bytes -= n;
		*off += n;
		if (*off == size) {
			++*i;
			*off = 0;
		}
	}
}

/* The run as new runs of datagrams of `size` at the end of the queue. */
static int repack_run(struct rxw_pcall *p, const struct rxw_txent *old, uint32_t size)
{
	struct rxw_pool *pool = rxw_pcall_pool(p);
	uint32_t payload = size - RXW_HEADER_SIZE, i = 0, off = 0;
	uint32_t left = (old->count - 1u) * (old->stride - RXW_HEADER_SIZE) + old->last_size -
			RXW_HEADER_SIZE;
	uint32_t most = RXW_BUF_SIZE / size;

	do {
		struct rxw_txrun run = {.stride = (uint16_t)size};
		uint32_t take;

		run.count = (uint16_t)rxw_min32((left + payload - 1) / payload, most);
		if (run.count == 0)
			run.count = 1;
		take = rxw_min32(left, run.count * payload);
		run.last_size = (uint16_t)(take - (run.count - 1u) * payload + RXW_HEADER_SIZE);
		run.buf = rxw_buf_get_small(pool, (size_t)(run.count - 1u) * size + run.last_size);
		if (run.buf == NULL)
			return -RXW_ENOMEM;
		run.data = run.buf->data;
		for (uint32_t k = 0; k < run.count; k++) {
			uint32_t n = rxw_min32(left, payload);

			memset(run.data + (size_t)k * size, 0, RXW_HEADER_SIZE);
			copy_payload(old, &i, &off, run.data + (size_t)k * size + RXW_HEADER_SIZE,
				     n);
			left -= n;
		}
		run.last = old->last && left == 0;
		if (!append_ent(p, &run)) {
			rxw_buf_unref(run.buf);
			return -RXW_ENOMEM;
		}
	} while (left > 0);
	return 0;
}

int rxw_sendq_repack(struct rxw_pcall *p, uint32_t size)
{
	struct rxw_sendq *q = &p->tx;
	uint16_t i = q->ent_head, last = RXW_NO_NODE, list;
	int result = 0;

	/* Runs of which nothing was sent; a run half sent keeps its packets. */
	while (i != RXW_NO_NODE && ent(q, i)->first < q->nxt) {
		last = i;
		i = ent(q, i)->next;
	}
	list = i;
	if (list == RXW_NO_NODE)
		return 0;
	q->end = ent(q, list)->first;
	q->ent_tail = last;
	if (q->ent_send == list)
		q->ent_send = RXW_NO_NODE;
	if (last == RXW_NO_NODE)
		q->ent_head = RXW_NO_NODE;
	else
		ent(q, last)->next = RXW_NO_NODE;
	while (list != RXW_NO_NODE && result == 0) {
		struct rxw_txent old = *ent(q, list);

		if (old.stride > size) {
			result = repack_run(p, &old, size);
		} else {
			struct rxw_txrun run = {.buf = old.buf,
						.data = old.data,
						.stride = old.stride,
						.last_size = old.last_size,
						.count = old.count,
						.last = old.last};

			rxw_buf_ref(old.buf);
			if (!append_ent(p, &run)) {
				rxw_buf_unref(old.buf);
				result = -RXW_ENOMEM;
			}
		}
		if (result == 0) {
			drop_ent(q, list);
			list = old.next;
		}
	}
	/* Without memory the stream has a hole now: the caller ends the call. */
	while (list != RXW_NO_NODE) {
		uint16_t next = ent(q, list)->next;

		drop_ent(q, list);
		list = next;
	}
	/* These are more packets than the writer queued, who may have been told to go on with fewer. */
	look_above(p);
	return result;
}
