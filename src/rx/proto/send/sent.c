/* SPDX-License-Identifier: BSD-2-Clause */
/* The transmissions of a call and the state of each packet sent. */
#include <string.h>

#include "base/assert.h"
#include "proto/send/sent.h"

#define FORGET_AT_ONCE 16u
#define FIRST_LOG      4u /* transmissions */
#define LARGE	       4096u
#define LOG_MOST       (RXW_BUF_LARGEST / (uint32_t)sizeof(struct rxw_txseg))

_Static_assert(LOG_MOST >= 2 * RXW_BITMAP_MOST,
	       "one transmission for each packet, and as many old ones");

/* Orders wrap around. */
static bool is_before(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

static size_t memory_for_packets(uint32_t room)
{
	return 4 * RXW_BITMAP_MEMORY(room) * sizeof(uint64_t) +
	       (room + RXW_BITMAP_WORDS(room) + RXW_BITMAP_TOPS(room)) * sizeof(uint32_t);
}

static void lay_out_packets(struct rxw_sent *b, uint64_t *bits, uint32_t *orders, uint32_t room)
{
	struct rxw_bitmap *const maps[] = {&b->flight, &b->lost, &b->once, &b->doubted};

	b->room = room;
	for (unsigned i = 0; i < 4; i++)
		rxw_bitmap_init(maps[i], bits + i * RXW_BITMAP_MEMORY(room), room);
	b->order = orders;
	b->low = orders + room;
	b->low_top = b->low + RXW_BITMAP_WORDS(room);
}

/* Nothing was sent: sets that are empty, and no memory. */
static const uint32_t no_orders[RXW_SENT_LEAST + 2];
static const struct rxw_resent none_resent[RXW_RESENT_KEPT];
static const struct rxw_sent nothing_sent = {
	.room = RXW_SENT_LEAST,
	.order = (uint32_t *)no_orders,
	.low = (uint32_t *)no_orders + RXW_SENT_LEAST,
	.low_top = (uint32_t *)no_orders + RXW_SENT_LEAST + 1,
	.flight = RXW_BITMAP_EMPTY,
	.lost = RXW_BITMAP_EMPTY,
	.once = RXW_BITMAP_EMPTY,
	.doubted = RXW_BITMAP_EMPTY,
	.resent = (struct rxw_resent *)none_resent,
};

void rxw_sent_init(struct rxw_sent *b)
{
	*b = nothing_sent;
}

bool rxw_sent_begin(struct rxw_sent *b, struct rxw_pool *pool)
{
	size_t bits = 4 * RXW_BITMAP_MEMORY(RXW_SENT_LEAST) * sizeof(uint64_t);
	size_t size = memory_for_packets(RXW_SENT_LEAST), log = FIRST_LOG * sizeof(*b->log);
	uint8_t *memory;

	_Static_assert(RXW_SENT_LEAST == RXW_BITMAP_LEAST, "the room of an empty set");
	if (b->first != NULL)
		return true;
	if (pool == NULL)
		return false;
	b->first = rxw_buf_get_array(pool, size + log + RXW_RESENT_KEPT * sizeof(*b->resent));
	if (b->first == NULL)
		return false;
	memory = b->first->data;
	lay_out_packets(b, (uint64_t *)memory, (uint32_t *)(memory + bits), RXW_SENT_LEAST);
	b->log = (struct rxw_txseg *)(memory + size);
	b->log_room = FIRST_LOG;
	b->resent = (struct rxw_resent *)(memory + size + log);
	memset(b->resent, 0, RXW_RESENT_KEPT * sizeof(*b->resent));
	return true;
}

void rxw_sent_fini(struct rxw_sent *b)
{
	if (b->first == NULL)
		return;
	rxw_buf_unref(b->buf);
	rxw_buf_unref(b->log_buf);
	rxw_buf_unref(b->first);
	rxw_sent_init(b);
}

static struct rxw_txseg *log_at(const struct rxw_sent *b, uint32_t i)
{
	return &b->log[(b->log_head + i) & (b->log_room - 1)];
}

static void copy_set(struct rxw_bitmap *to, const struct rxw_bitmap *from, uint32_t una,
		     uint32_t nxt)
{
	uint32_t end;

	for (uint32_t at = una; (at = rxw_bitmap_next(from, at, nxt, true)) < nxt; at = end) {
		end = rxw_bitmap_next(from, at, nxt, false);
		rxw_bitmap_set(to, at, end);
	}
}

static void note_low(struct rxw_sent *b, uint32_t w, uint32_t order)
{
	if (b->flight.any[w / 64] == 0 || is_before(order, b->low_top[w / 64]))
		b->low_top[w / 64] = order;
	if (b->flight.words[w] == 0 || is_before(order, b->low[w]))
		b->low[w] = order;
}

/* Set the orders of packets that are in flight now: by words, since note_low() looks at those before. */
static void place_in_flight(struct rxw_sent *b, uint32_t first, uint32_t count, uint32_t order)
{
	uint32_t end = first + count;

	while (first != end) {
		uint32_t n = 64 - first % 64;

		n = n < end - first ? n : end - first;
		note_low(b, first % b->room / 64, order);
		rxw_bitmap_set(&b->flight, first, first + n);
		for (; n > 0; n--)
			b->order[first++ % b->room] = order++;
	}
}

static bool resize_packets(struct rxw_sent *b, struct rxw_pool *pool, uint32_t una, uint32_t nxt,
			   uint32_t room)
{
	struct rxw_sent old = *b;
	struct rxw_buf *buf;

	buf = rxw_buf_get_array(pool, memory_for_packets(room));
	if (buf == NULL)
		return false;
	b->buf = buf;
	lay_out_packets(b, (uint64_t *)buf->data,
			(uint32_t *)(buf->data + 4 * RXW_BITMAP_MEMORY(room) * sizeof(uint64_t)),
			room);
	copy_set(&b->lost, &old.lost, una, nxt);
	copy_set(&b->once, &old.once, una, nxt);
	copy_set(&b->doubted, &old.doubted, una, nxt);
	for (uint32_t seq = una; seq != nxt; seq++) {
		b->order[seq % room] = old.order[seq % old.room];
		if (rxw_bitmap_has(&old.flight, seq))
			place_in_flight(b, seq, 1, b->order[seq % room]);
	}
	rxw_buf_unref(old.buf);
	return true;
}

static bool grow_packets(struct rxw_sent *b, struct rxw_pool *pool, uint32_t una, uint32_t nxt)
{
	return b->room < RXW_BITMAP_MOST && pool != NULL &&
	       resize_packets(b, pool, una, nxt, b->room < 1024 ? b->room * 4 : b->room * 2);
}

/* Is it the latest transmission of any packet? */
static bool is_used(const struct rxw_sent *b, const struct rxw_txseg *s, uint32_t una)
{
	uint32_t i = s->first < una ? una - s->first : 0;

	for (; i < s->count; i++)
		if (rxw_sent_order(b, s->first + i) == s->order + i)
			return true;
	return s->busy;
}

/* Forget transmissions that no packet needs. */
static void compact_log(struct rxw_sent *b, uint32_t una)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < b->log_count; i++)
		if (is_used(b, log_at(b, i), una))
			*log_at(b, n++) = *log_at(b, i);
	b->log_count = n;
}

static bool resize_log(struct rxw_sent *b, struct rxw_pool *pool, uint32_t room)
{
	struct rxw_txseg *log;
	struct rxw_buf *buf;

	buf = rxw_buf_get_array(pool, room * sizeof(*log));
	if (buf == NULL)
		return false;
	log = (struct rxw_txseg *)buf->data;
	for (uint32_t i = 0; i < b->log_count; i++)
		log[i] = *log_at(b, i);
	rxw_buf_unref(b->log_buf);
	b->log_buf = buf;
	b->log = log;
	b->log_room = room;
	b->log_head = 0;
	return true;
}

static bool grow_log(struct rxw_sent *b, struct rxw_pool *pool)
{
	uint32_t room = b->log_room < 1024 ? b->log_room * 4 : b->log_room * 2;

	return room <= LOG_MOST && pool != NULL && resize_log(b, pool, room);
}

/* The room for so many, if that is much less than there is. */
static __attribute__((noinline)) uint32_t smaller_room(uint32_t room, uint32_t used)
{
	while (room >= LARGE && used < room / 8)
		room /= 4;
	return room;
}

/*
 * A peer may take its time for the packets that are left. Their data are charged, this memory is not: so it must not
 * be much more than that.
 */
static __attribute__((cold)) void shrink_memory(struct rxw_sent *b, struct rxw_pool *pool,
						uint32_t una, uint32_t nxt, uint32_t used)
{
	compact_log(b, una);
	if (smaller_room(b->log_room, b->log_count) < b->log_room)
		resize_log(b, pool, smaller_room(b->log_room, b->log_count));
	resize_packets(b, pool, una, nxt, smaller_room(b->room, used));
}

bool rxw_sent_reserve(struct rxw_sent *b, struct rxw_pool *pool, uint32_t una, uint32_t nxt,
		      uint32_t count)
{
	if (!rxw_sent_begin(b, pool))
		return false;
	if (smaller_room(b->room, nxt + count - una) < b->room && pool != NULL)
		shrink_memory(b, pool, una, nxt, nxt + count - una);
	while (nxt + count - una > b->room)
		if (!grow_packets(b, pool, una, nxt))
			return false;
	if (b->log_count < b->log_room)
		return true;
	compact_log(b, una);
	/* Often enough with a quarter of it free, so that each transmission bears a part of the cost. */
	return b->log_count <= b->log_room / 4 * 3 || grow_log(b, pool) ||
	       b->log_count < b->log_room;
}

struct rxw_txseg *rxw_sent_add(struct rxw_sent *b, uint32_t first, uint32_t count, uint32_t order,
			       uint32_t serial)
{
	struct rxw_txseg *s = log_at(b, b->log_count);

	assert(b->log_count < b->log_room);
	assert(count > 0);
	assert(count <= b->room);
	b->log_count++;
	*s = (struct rxw_txseg){.first = first,
				.count = count,
				.order = order,
				.serial = serial,
				.left = (uint16_t)count};
	rxw_bitmap_clear(&b->lost, first, first + count);
	place_in_flight(b, first, count, order);
	return s;
}

void rxw_sent_acked(struct rxw_sent *b, uint32_t first, uint32_t count)
{
	rxw_bitmap_clear(&b->flight, first, first + count);
	rxw_bitmap_clear(&b->lost, first, first + count);
	rxw_bitmap_clear(&b->doubted, first, first + count);
	rxw_bitmap_set(&b->once, first, first + count);
}

void rxw_sent_lost(struct rxw_sent *b, uint32_t first, uint32_t count, bool doubted)
{
	rxw_bitmap_clear(&b->flight, first, first + count);
	rxw_bitmap_set(&b->lost, first, first + count);
	if (doubted)
		rxw_bitmap_set(&b->doubted, first, first + count);
	else
		rxw_bitmap_clear(&b->doubted, first, first + count);
}

void rxw_sent_forget(struct rxw_sent *b, uint32_t una, uint32_t first)
{
	assert(una <= first);
	assert(first - una <= b->room);
	rxw_bitmap_clear(&b->flight, una, first);
	rxw_bitmap_clear(&b->lost, una, first);
	rxw_bitmap_clear(&b->once, una, first);
	rxw_bitmap_clear(&b->doubted, una, first);
	/* Of those whose packets were all sent again there may be many. */
	for (uint32_t n = FORGET_AT_ONCE + (first - una);
	     n > 0 && b->log_count > 0 && !is_used(b, log_at(b, 0), first); n--) {
		b->log_head = (b->log_head + 1) & (b->log_room - 1);
		b->log_count--;
	}
}

void rxw_sent_forget_from(struct rxw_sent *b, uint32_t from, uint32_t nxt)
{
	rxw_bitmap_clear(&b->flight, from, nxt);
	rxw_bitmap_clear(&b->lost, from, nxt);
	rxw_bitmap_clear(&b->once, from, nxt);
	rxw_bitmap_clear(&b->doubted, from, nxt);
	for (uint32_t i = 0; i < b->log_count; i++) {
		struct rxw_txseg *s = log_at(b, i);

		if (s->first + s->count <= from)
			continue;
		s->count = s->first < from ? from - s->first : 0;
		s->left = s->left < s->count ? s->left : (uint16_t)s->count;
	}
}

bool rxw_sent_is_busy(const struct rxw_sent *b, uint32_t from)
{
	for (uint32_t i = 0; i < b->log_count; i++)
		if (log_at(b, i)->busy && log_at(b, i)->first + log_at(b, i)->count > from)
			return true;
	return false;
}

struct rxw_txseg *rxw_sent_split(const struct rxw_sent *b,
				 bool (*pred)(const struct rxw_txseg *s, void *arg), void *arg)
{
	uint32_t low = 0, high = b->log_count;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (pred(log_at(b, mid), arg))
			low = mid + 1;
		else
			high = mid;
	}
	return low < b->log_count ? log_at(b, low) : NULL;
}

struct rxw_txseg *rxw_sent_find(const struct rxw_sent *b, uint32_t order)
{
	uint32_t low = 0, high = b->log_count, base;

	if (high == 0)
		return NULL;
	base = log_at(b, 0)->order;
	/* Most packets are acknowledged in order. */
	if (order - base < log_at(b, 0)->count)
		return log_at(b, 0);
	while (high - low > 1) {
		uint32_t mid = low + (high - low) / 2;

		if (log_at(b, mid)->order - base <= order - base)
			low = mid;
		else
			high = mid;
	}
	return order - log_at(b, low)->order < log_at(b, low)->count ? log_at(b, low) : NULL;
}

struct rxw_txseg *rxw_sent_find_serial(const struct rxw_sent *b, uint32_t serial)
{
	uint32_t low = 0, high = b->log_count, base;

	if (high == 0)
		return NULL;
	base = log_at(b, 0)->serial;
	while (high - low > 1) {
		uint32_t mid = low + (high - low) / 2;

		if (log_at(b, mid)->serial - base <= serial - base)
			low = mid;
		else
			high = mid;
	}
	return serial - log_at(b, low)->serial < log_at(b, low)->count ? log_at(b, low) : NULL;
}

enum rxw_txstate rxw_sent_state(const struct rxw_sent *b, uint32_t seq)
{
	if (rxw_bitmap_has(&b->flight, seq))
		return RXW_TX_FLIGHT;
	return rxw_bitmap_has(&b->lost, seq) ? RXW_TX_LOST : RXW_TX_ACKED;
}

uint32_t rxw_sent_missing(const struct rxw_sent *b, uint32_t from, uint32_t to)
{
	return rxw_bitmap_next(&b->lost, from, rxw_bitmap_next(&b->flight, from, to, true), true);
}

uint32_t rxw_sent_same(const struct rxw_sent *b, uint32_t seq, uint32_t to)
{
	switch (rxw_sent_state(b, seq)) {
	case RXW_TX_FLIGHT:
		return rxw_bitmap_next(&b->flight, seq, to, false);
	case RXW_TX_LOST:
		return rxw_bitmap_next(&b->lost, seq, to, false);
	default:
		return rxw_sent_missing(b, seq, to);
	}
}

struct rxw_txpart rxw_sent_part(const struct rxw_sent *b, uint32_t seq, uint32_t to)
{
	struct rxw_txpart part = {.first = seq,
				  .order = rxw_sent_order(b, seq),
				  .state = rxw_sent_state(b, seq),
				  .once = rxw_bitmap_has(&b->once, seq),
				  .doubted = rxw_bitmap_has(&b->doubted, seq)};
	struct rxw_txseg *s = rxw_sent_find(b, part.order);
	uint32_t left, end;

	assert(seq < to);
	assert(s != NULL);
	assert(seq - s->first == part.order - s->order);
	left = s->first + s->left;
	end = s->first + s->count;
	part.seg = s;
	part.never_left = seq >= left;
	if (seq < left && left < end)
		end = left;
	if (to < end)
		end = to;
	end = rxw_sent_same(b, seq, end);
	end = rxw_bitmap_next(&b->once, seq, end, !part.once);
	end = rxw_bitmap_next(&b->doubted, seq, end, !part.doubted);
	part.count = 1;
	while (seq + part.count < end &&
	       rxw_sent_order(b, seq + part.count) == part.order + part.count)
		part.count++;
	return part;
}

/* The lowest order of packets of word w. */
static uint32_t lowest_of(const struct rxw_sent *b, uint32_t w)
{
	uint64_t bits = b->flight.words[w];
	uint32_t least;

	assert(bits != 0);
	least = b->order[w * 64 + (uint32_t)__builtin_ctzll(bits)];
	for (; bits != 0; bits &= bits - 1) {
		uint32_t order = b->order[w * 64 + (uint32_t)__builtin_ctzll(bits)];

		least = is_before(order, least) ? order : least;
	}
	return least;
}

/* The word of a top with the lowest limit. */
static uint32_t lowest_word(const struct rxw_sent *b, uint32_t top)
{
	uint64_t bits = b->flight.any[top];
	uint32_t least;

	assert(bits != 0);
	least = top * 64 + (uint32_t)__builtin_ctzll(bits);
	for (; bits != 0; bits &= bits - 1) {
		uint32_t w = top * 64 + (uint32_t)__builtin_ctzll(bits);

		least = is_before(b->low[w], b->low[least]) ? w : least;
	}
	return least;
}

/* Of the packets [from, to), which are in word w. */
static bool word_before(struct rxw_sent *b, uint32_t w, uint32_t from, uint32_t to, uint32_t bound,
			uint32_t *found)
{
	uint64_t all = b->flight.words[w], bits;

	if (all == 0 || !is_before(b->low[w], bound))
		return false;
	bits = all >> from % 64 << from % 64;
	if (to % 64 != 0)
		bits &= (1ull << to % 64) - 1;
	for (uint64_t left = bits; left != 0; left &= left - 1) {
		uint32_t bit = (uint32_t)__builtin_ctzll(left);

		if (is_before(b->order[w * 64 + bit], bound)) {
			*found = from + (bit - from % 64);
			return true;
		}
	}
	if (bits == all)
		b->low[w] = lowest_of(b, w);
	return false;
}

uint32_t rxw_sent_before(struct rxw_sent *b, uint32_t from, uint32_t to, uint32_t bound)
{
	uint32_t n = to - from, at = 0, end, found;

	while (at < n) {
		uint32_t w = (from + at) % b->room / 64, top = w / 64;
		uint32_t span = b->room < 4096 ? b->room : 4096;

		end = at + span - (from + at) % span;
		end = end < n ? end : n;
		if (b->flight.any[top] != 0 && is_before(b->low_top[top], bound)) {
			for (uint32_t next; at < end; at = next) {
				next = at + 64 - (from + at) % 64;
				next = next < end ? next : end;
				w = (from + at) % b->room / 64;
				if (word_before(b, w, from + at, from + next, bound, &found))
					return found;
			}
			b->low_top[top] = b->low[lowest_word(b, top)];
		}
		at = end;
	}
	return to;
}

bool rxw_sent_oldest(struct rxw_sent *b, uint32_t *order)
{
	uint32_t tops = RXW_BITMAP_TOPS(b->room), best, w;

	for (;;) {
		best = tops;
		for (uint32_t t = 0; t < tops; t++)
			if (b->flight.any[t] != 0 &&
			    (best == tops || is_before(b->low_top[t], b->low_top[best])))
				best = t;
		if (best == tops)
			return false;
		w = lowest_word(b, best);
		*order = lowest_of(b, w);
		/* Other limits may be too low, but none is lower than this one. */
		if (*order == b->low[w] && b->low[w] == b->low_top[best])
			return true;
		b->low[w] = *order;
		b->low_top[best] = b->low[lowest_word(b, best)];
	}
}
