/* SPDX-License-Identifier: BSD-2-Clause */
/* Peers: the table, wasted work, rate limits. */
#include <limits.h>

#include "base/assert.h"
#include "base/buf.h"
#include "proto/peer/validation.h"

/* The table has the memory of the library. */
#define HTABLE_ALLOC(size)   rxw_mem_get(NULL, size)
#define HTABLE_FREE(p, size) rxw_mem_give(NULL, p, size)
#include "common/htable.h"

#define WASTE_CALL	16u  /* packets charged for each abandoned call */
#define WASTE_MOST	512u /* packets: a little more than one call may queue */
#define WASTE_RATE	64u  /* packets a second by which the account drains */
#define PEER_LIFE	(300 * RXW_SEC)
#define REAP_ROUND	64u  /* calls that look at all entries ... */
#define REAP_LEAST	256u /* ... of a table larger than that */
/* Addresses are cheap to forge: above this number, idle unvalidated entries are freed ... */
#define UNVALIDATED_KEPT 1024u
#define KEPT		 65536u /* ... and above this one all idle entries */
#define SWEEP		 2u	/* slots swept per new entry */
struct rxw_peer_table {
	struct rxw_validated_marks marks;
	struct htable peers;
	unsigned reap_slot; /* looked at next */
	uint64_t peer_memory;
	struct rxw_budget *wide;
};

static uint64_t hash_peer(const void *peer, const uint64_t key[2])
{
	return rxw_addr_hash(&((const struct rxw_peer *)peer)->addr, key, true);
}

static void drop_peer(void *peer)
{
	rxw_mem_give(NULL, peer, sizeof(struct rxw_peer));
}

struct rxw_peer_table *rxw_peer_table_create(const uint64_t key[2], uint64_t peer_memory,
					     struct rxw_budget *wide)
{
	struct rxw_peer_table *t = rxw_mem_get(NULL, sizeof(*t));

	if (t == NULL)
		return NULL;
	if (!htable_init(&t->peers, offsetof(struct rxw_peer, hash_next), hash_peer, key, 0)) {
		rxw_mem_give(NULL, t, sizeof(*t));
		return NULL;
	}
	t->peer_memory = peer_memory;
	t->wide = wide;
	return t;
}

void rxw_peer_table_destroy(struct rxw_peer_table *t)
{
	if (t == NULL)
		return;
	htable_fini(&t->peers, drop_peer);
	rxw_mem_give(NULL, t, sizeof(*t));
}

/* Is the entry unused, and old enough to be freed? */
static bool is_expired_peer(const struct rxw_peer_table *t, const struct rxw_peer *p, uint64_t now)
{
	if (atomic_load_explicit(&p->refs, memory_order_acquire) != 0)
		return false;
	if (t->peers.count > KEPT ||
	    (t->peers.count > UNVALIDATED_KEPT &&
	     atomic_load_explicit(&p->validated_at, memory_order_relaxed) == 0))
		return true;
	return now >= atomic_load_explicit(&p->idle_since, memory_order_relaxed) + PEER_LIFE;
}

/* The next `slots` slots. */
static void sweep_slots(struct rxw_peer_table *t, unsigned slots, uint64_t now)
{
	for (; slots > 0; slots--)
		for (void **at = htable_chain(&t->peers, t->reap_slot++ & (t->peers.size - 1));
		     *at != NULL;) {
			struct rxw_peer *p = *at;

			if (!is_expired_peer(t, p, now)) {
				at = &p->hash_next;
				continue;
			}
			htable_unlink(&t->peers, at);
			drop_peer(p);
		}
}

static struct rxw_peer *find_peer(const struct rxw_peer_table *t, const struct rxw_addr *addr,
				  uint64_t source, uint64_t hash)
{
	struct rxw_peer *p = htable_first(&t->peers, hash);

	while (p != NULL && (p->source != source || !rxw_addr_equal(&p->addr, addr)))
		p = p->hash_next;
	return p;
}

struct rxw_peer *rxw_peer_find(const struct rxw_peer_table *t, const struct rxw_addr *addr)
{
	return find_peer(t, addr, 0, rxw_addr_hash(addr, t->peers.key, true));
}

bool rxw_peer_maybe_validated(const struct rxw_peer_table *t, const struct rxw_addr *addr,
			      uint64_t now)
{
	return rxw_marks_have(&t->marks, rxw_mark_of(rxw_addr_hash(addr, t->peers.key, true)), now);
}

struct rxw_peer *rxw_peer_get(struct rxw_peer_table *t, const struct rxw_addr *addr, uint64_t now)
{
	return rxw_peer_get_from(t, addr, NULL, now);
}

struct rxw_peer *rxw_peer_get_from(struct rxw_peer_table *t, const struct rxw_addr *addr,
				   const struct rxw_addr *local, uint64_t now)
{
	uint64_t hash = rxw_addr_hash(addr, t->peers.key, true);
	uint64_t source = local != NULL ? rxw_addr_hash(local, t->peers.key, false) | 1 : 0;
	struct rxw_peer *p = find_peer(t, addr, source, hash);

	if (p != NULL) {
		rxw_peer_ref(p);
		return p;
	}
	p = rxw_mem_get(NULL, sizeof(*p));
	if (p == NULL)
		return NULL;
	if (t->peers.count > UNVALIDATED_KEPT)
		sweep_slots(t, SWEEP, now);
	p->addr = *addr;
	p->source = source;
	p->local = rxw_addr_is_loopback(addr);
	atomic_init(&p->refs, 1);
	atomic_init(&p->idle_since, now);
	rxw_budget_init(&p->memory, (int64_t)t->peer_memory);
	rxw_wide_init(&p->wide, t->wide, t->peer_memory);
	p->marks = &t->marks;
	p->mark = rxw_mark_of(hash);
	htable_add_hashed(&t->peers, p, hash);
	return p;
}

void rxw_peer_ref(struct rxw_peer *p)
{
	atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
}

void rxw_peer_unref(struct rxw_peer *p, uint64_t now)
{
	uint32_t before;

	atomic_store_explicit(&p->idle_since, now, memory_order_relaxed);
	before = atomic_fetch_sub_explicit(&p->refs, 1, memory_order_release);
	assert(before > 0);
}

void rxw_peer_reap(struct rxw_peer_table *t, uint64_t now)
{
	unsigned size = (unsigned)t->peers.size, share = size / REAP_ROUND;

	if (share < REAP_LEAST)
		share = size < REAP_LEAST ? size : REAP_LEAST;
	sweep_slots(t, share, now);
	rxw_marks_clear(&t->marks, now);
}

unsigned rxw_peer_count(const struct rxw_peer_table *t)
{
	return (unsigned)t->peers.count;
}

bool rxw_peer_pinned(const struct rxw_peer_table *t, unsigned slots, unsigned *at, uint64_t *bytes)
{
	for (; slots > 0 && *at < t->peers.size; slots--, ++*at)
		for (const struct rxw_peer *p = *htable_chain(&t->peers, *at); p != NULL;
		     p = p->hash_next) {
			int64_t used = atomic_load_explicit(&p->memory.used, memory_order_relaxed);

			*bytes += used > 0 ? (uint64_t)used : 0;
		}
	return *at < t->peers.size;
}

void rxw_listing_begin(struct rxw_listing *l, unsigned index, unsigned size, unsigned state)
{
	if (l->size != size || l->state != state || index < l->before ||
	    (index == 0 && !l->unfinished))
		*l = (struct rxw_listing){.size = size, .state = state};
	l->unfinished = false;
}

struct rxw_peer *rxw_peer_nth(struct rxw_peer_table *t, struct rxw_listing *l, unsigned index,
			      unsigned *steps)
{
	if (index >= t->peers.count)
		return NULL;
	rxw_listing_begin(l, index, (unsigned)t->peers.size, 0);
	for (; l->slot < t->peers.size; l->slot++) {
		unsigned at = l->before;

		if (*steps == 0) {
			l->unfinished = true;
			return NULL;
		}
		--*steps;
		for (struct rxw_peer *p = *htable_chain(&t->peers, l->slot); p != NULL;
		     p = p->hash_next) {
			*steps -= *steps > 0;
			if (at++ == index)
				return p;
		}
		l->before = at;
	}
	/* The last step may have reached the end: do not ask again. */
	*steps += *steps == 0;
	return NULL;
}

struct rxw_peer *rxw_peer_at(struct rxw_peer_table *t, unsigned index)
{
	struct rxw_listing l = {0};
	unsigned steps = UINT_MAX;

	return rxw_peer_nth(t, &l, index, &steps);
}

static uint64_t wasted_packets(const struct rxw_peer *p, uint64_t now)
{
	uint64_t sum = atomic_load_explicit(&p->wasted, memory_order_relaxed);
	uint64_t at = atomic_load_explicit(&p->wasted_at, memory_order_relaxed);
	uint64_t passed = now > at ? (now - at) / RXW_MS : 0;

	return sum > passed * WASTE_RATE / 1000 ? sum - passed * WASTE_RATE / 1000 : 0;
}

void rxw_peer_waste(struct rxw_peer *p, uint32_t packets, uint64_t now)
{
	/*
	 * An estimate: concurrent updates may be lost. A debt takes at most ten seconds to drain.
	 */
	uint64_t sum = wasted_packets(p, now) + packets + WASTE_CALL;

	if (sum > WASTE_MOST + 10 * WASTE_RATE)
		sum = WASTE_MOST + 10 * WASTE_RATE;
	atomic_store_explicit(&p->wasted, sum, memory_order_relaxed);
	atomic_store_explicit(&p->wasted_at, now, memory_order_relaxed);
}

bool rxw_peer_wasteful(const struct rxw_peer *p, uint64_t now)
{
	return wasted_packets(p, now) > WASTE_MOST;
}

void rxw_rate_init(struct rxw_rate *r, unsigned per_second, uint64_t now)
{
	r->per_second = per_second;
	r->tokens_ns = RXW_SEC;
	r->at = now;
}

bool rxw_rate_take(struct rxw_rate *r, uint64_t now)
{
	uint64_t price;

	if (r->per_second == 0)
		return false;
	/* Tokens are time: one second buys the whole burst. */
	price = RXW_SEC / r->per_second;
	if (price == 0)
		price = 1;
	if (now > r->at) {
		uint64_t passed = now - r->at;

		r->tokens_ns = passed >= RXW_SEC - r->tokens_ns ? RXW_SEC : r->tokens_ns + passed;
		r->at = now;
	}
	if (r->tokens_ns < price)
		return false;
	r->tokens_ns -= price;
	return true;
}
