/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counted buffers: where received trains live and where packets to send are built; memory budgets.
 */

#include "base/buf.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ASAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define WITH_ASAN 1
#endif
#ifdef WITH_ASAN
#include <sanitizer/asan_interface.h>
#define POISON(p, n)   ASAN_POISON_MEMORY_REGION(p, n)
#define UNPOISON(p, n) ASAN_UNPOISON_MEMORY_REGION(p, n)
#else
#define POISON(p, n)   ((void)(p), (void)(n))
#define UNPOISON(p, n) ((void)(p), (void)(n))
#endif

#define ALIGN	   64u	 /* of data; the head is padded to it */
#define SMALL_MOST 2048u /* larger ones are not kept when idle */
#define SMALL_KEEP 4096u /* bytes of idle small buffers for each full one that may be kept */

/*
 * `lock` covers all that is not atomic. It is held for a few instructions only, never across the
 * allocator, so a spinning lock does. Invariant: leased >= live + free_count * RXW_BUF_SIZE +
 * small_idle, but for buffers that are being made or freed.
 */
struct rxw_pool {
	struct rxw_budget *budget;
	int64_t lease;
	unsigned keep;
	_Atomic(uint32_t) refs; /* the owner, and each buffer that is out */
	atomic_flag lock;
	bool closed;
	unsigned free_count;
	struct rxw_buf *free;
	struct rxw_buf *small[SMALL_MOST / ALIGN + 1]; /* idle ones by capacity / ALIGN */
	int64_t small_idle;			       /* what they cost; part of `used` */
	int64_t leased; /* taken from the budget */
	int64_t used;   /* charged by buffers, those on the free list included */
	_Atomic(int64_t) live;
	_Atomic(uint64_t) contended; /* acquisitions of lock that found it taken; relaxed */
};

/*
 * -- Budgets ------------------------------------------------------------------------------------
 */

void rxw_budget_init(struct rxw_budget *b, int64_t limit)
{
	atomic_init(&b->used, 0);
	atomic_init(&b->peak, 0);
	b->limit = limit;
}

bool rxw_budget_take(struct rxw_budget *b, int64_t bytes)
{
	int64_t used = atomic_load_explicit(&b->used, memory_order_relaxed);
	int64_t peak;

	do {
		if (bytes > b->limit - used)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(
		&b->used, &used, used + bytes, memory_order_relaxed, memory_order_relaxed));
	used += bytes;
	peak = atomic_load_explicit(&b->peak, memory_order_relaxed);
	while (used > peak &&
	       !atomic_compare_exchange_weak_explicit(&b->peak, &peak, used, memory_order_relaxed,
						      memory_order_relaxed))
		;
	return true;
}

void rxw_budget_give(struct rxw_budget *b, int64_t bytes)
{
	atomic_fetch_sub_explicit(&b->used, bytes, memory_order_relaxed);
}

/*
 * -- Memory of objects --------------------------------------------------------------------------
 */

void *rxw_mem_get(struct rxw_budget *budget, size_t size)
{
	void *p;

	if (!size || size > PTRDIFF_MAX)
		return NULL;
	if (budget && !rxw_budget_take(budget, (int64_t)size))
		return NULL;
	p = calloc(1, size);
	if (!p && budget)
		rxw_budget_give(budget, (int64_t)size);
	return p;
}

void rxw_mem_give(struct rxw_budget *budget, void *p, size_t size)
{
	if (!p)
		return;
	free(p);
	if (budget)
		rxw_budget_give(budget, (int64_t)size);
}

/*
 * -- Pools --------------------------------------------------------------------------------------
 */

static void pool_lock(struct rxw_pool *pool)
{
	unsigned spins = 0;

	if (!atomic_flag_test_and_set_explicit(&pool->lock, memory_order_acquire))
		return;
	atomic_fetch_add_explicit(&pool->contended, 1, memory_order_relaxed);
	while (atomic_flag_test_and_set_explicit(&pool->lock, memory_order_acquire))
		if (++spins % 64 == 0)
			sched_yield(); /* its holder was preempted */
}

static void pool_unlock(struct rxw_pool *pool)
{
	atomic_flag_clear_explicit(&pool->lock, memory_order_release);
}

struct rxw_pool *rxw_pool_create(struct rxw_budget *budget, size_t lease, unsigned keep)
{
	struct rxw_pool *pool = (struct rxw_pool *)calloc(1, sizeof(*pool));

	if (!pool)
		return NULL;
	pool->budget = budget;
	pool->lease = (int64_t)lease;
	pool->keep = keep;
	atomic_init(&pool->refs, 1);
	atomic_flag_clear(&pool->lock);
	atomic_init(&pool->live, 0);
	atomic_init(&pool->contended, 0);
	return pool;
}

/*
 * With the lock held: room for `bytes`, a lease at a time, or just what is needed where a lease is
 * no more to be had.
 */
static bool charge(struct rxw_pool *pool, int64_t bytes)
{
	int64_t need = pool->used + bytes - pool->leased;

	if (need > 0) {
		int64_t step = need;

		if (pool->lease > 0)
			step = (need + pool->lease - 1) / pool->lease * pool->lease;
		if (!rxw_budget_take(pool->budget, step)) {
			step = need;
			if (!rxw_budget_take(pool->budget, step))
				return false;
		}
		pool->leased += step;
	}
	pool->used += bytes;
	return true;
}

/*
 * With the lock held. One lease more than is needed stays, so that a pool at an edge does not
 * swing.
 */
static void discharge(struct rxw_pool *pool, int64_t bytes)
{
	int64_t spare;

	pool->used -= bytes;
	spare = pool->leased - pool->used;
	if (pool->closed) {
		rxw_budget_give(pool->budget, spare);
		pool->leased -= spare;
	} else if (spare >= 2 * pool->lease) {
		int64_t back = pool->lease > 0 ? (spare / pool->lease - 1) * pool->lease : spare;

		rxw_budget_give(pool->budget, back);
		pool->leased -= back;
	}
}

/*
 * What a buffer costs: a full one its bytes, a small one its head too, since that is no longer
 * small change.
 */
static int64_t cost(uint32_t cap)
{
	return cap == RXW_BUF_SIZE ? (int64_t)cap : (int64_t)cap + ALIGN;
}

static void buf_release(struct rxw_buf *b)
{
	UNPOISON(b->data, b->cap);
	free(b);
}

static void pool_unref(struct rxw_pool *pool)
{
	if (atomic_fetch_sub_explicit(&pool->refs, 1, memory_order_acq_rel) == 1)
		free(pool);
}

/* With the lock held: all idle small buffers, linked; they are charged no longer. */
static struct rxw_buf *shed_small(struct rxw_pool *pool)
{
	struct rxw_buf *list = NULL, *b;

	if (!pool->small_idle)
		return NULL;
	for (unsigned i = 0; i <= SMALL_MOST / ALIGN; i++)
		while ((b = pool->small[i])) {
			pool->small[i] = b->next;
			b->next = list;
			list = b;
		}
	discharge(pool, pool->small_idle);
	pool->small_idle = 0;
	return list;
}

static void release_all(struct rxw_buf *list)
{
	struct rxw_buf *b;

	while ((b = list)) {
		list = b->next;
		buf_release(b);
	}
}

void rxw_pool_destroy(struct rxw_pool *pool)
{
	struct rxw_buf *list, *small;

	if (!pool)
		return;
	pool_lock(pool);
	pool->closed = true;
	list = pool->free;
	pool->free = NULL;
	discharge(pool, (int64_t)pool->free_count * RXW_BUF_SIZE);
	pool->free_count = 0;
	small = shed_small(pool);
	pool_unlock(pool);
	release_all(list);
	release_all(small);
	pool_unref(pool);
}

size_t rxw_pool_live(const struct rxw_pool *pool)
{
	return (size_t)atomic_load_explicit(&pool->live, memory_order_relaxed);
}

uint64_t rxw_pool_contended(const struct rxw_pool *pool)
{
	return atomic_load_explicit(&pool->contended, memory_order_relaxed);
}

/*
 * -- Buffers ------------------------------------------------------------------------------------
 */

static struct rxw_buf *out_of_pool(struct rxw_pool *pool, struct rxw_buf *b)
{
	b->next = NULL;
	atomic_store_explicit(&b->refs, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&pool->refs, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&pool->live, cost(b->cap), memory_order_relaxed);
	return b;
}

/* Charged already; the charge goes back on failure. */
static struct rxw_buf *buf_make(struct rxw_pool *pool, uint32_t cap)
{
	struct rxw_buf *b = NULL;
	void *memory;

	_Static_assert(sizeof(struct rxw_buf) <= ALIGN, "the head fits its padding");
	if (!posix_memalign(&memory, ALIGN, ALIGN + (size_t)cap)) {
		b = (struct rxw_buf *)memory;
		atomic_init(&b->refs, 0);
		b->cap = cap;
		b->pool = pool;
		b->data = (uint8_t *)memory + ALIGN;
		return out_of_pool(pool, b);
	}
	pool_lock(pool);
	discharge(pool, cost(cap));
	pool_unlock(pool);
	return NULL;
}

struct rxw_buf *rxw_buf_get(struct rxw_pool *pool)
{
	struct rxw_buf *b, *shed = NULL;
	bool charged = false;

	pool_lock(pool);
	b = pool->free;
	if (b) {
		pool->free = b->next;
		pool->free_count--;
	} else {
		charged = charge(pool, cost(RXW_BUF_SIZE));
		if (!charged && pool->small_idle) {
			shed = shed_small(pool);
			charged = charge(pool, cost(RXW_BUF_SIZE));
		}
	}
	pool_unlock(pool);
	release_all(shed);
	if (b) {
		UNPOISON(b->data, b->cap);
		return out_of_pool(pool, b);
	}
	return charged ? buf_make(pool, RXW_BUF_SIZE) : NULL;
}

/*
 * With the lock held, for a small buffer that found no room: idle buffers give theirs, since their
 * charge is the pool's already. True: `bytes` are charged now; *idle is to be released.
 */
static bool make_room(struct rxw_pool *pool, int64_t bytes, struct rxw_buf **idle)
{
	struct rxw_buf *b;

	*idle = shed_small(pool);
	if (charge(pool, bytes))
		return true;
	b = pool->free;
	if (!b)
		return false;
	pool->free = b->next;
	pool->free_count--;
	pool->used -= cost(RXW_BUF_SIZE);
	b->next = *idle;
	*idle = b;
	return charge(pool, bytes);
}

struct rxw_buf *rxw_buf_get_small(struct rxw_pool *pool, size_t size)
{
	struct rxw_buf *idle = NULL, *b = NULL;
	uint32_t cap;
	bool charged = true;

	if (!size || size > RXW_BUF_SIZE)
		return NULL;
	cap = (uint32_t)((size + ALIGN - 1) / ALIGN * ALIGN);
	if (cap == RXW_BUF_SIZE)
		return rxw_buf_get(pool);
	pool_lock(pool);
	if (cap <= SMALL_MOST && (b = pool->small[cap / ALIGN])) {
		pool->small[cap / ALIGN] = b->next;
		pool->small_idle -= cost(cap);
	} else {
		charged = charge(pool, cost(cap)) || make_room(pool, cost(cap), &idle);
	}
	pool_unlock(pool);
	release_all(idle);
	if (b) {
		UNPOISON(b->data, b->cap);
		return out_of_pool(pool, b);
	}
	return charged ? buf_make(pool, cap) : NULL;
}

void rxw_buf_ref(struct rxw_buf *b)
{
	atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
}

void rxw_buf_unref(struct rxw_buf *b)
{
	struct rxw_pool *pool;

	if (!b || atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) != 1)
		return;
	pool = b->pool;
	atomic_fetch_sub_explicit(&pool->live, cost(b->cap), memory_order_relaxed);
	pool_lock(pool);
	if (pool->closed) {
		discharge(pool, cost(b->cap));
	} else if (b->cap == RXW_BUF_SIZE && pool->free_count < pool->keep) {
		POISON(b->data, b->cap);
		b->next = pool->free;
		pool->free = b;
		pool->free_count++;
		b = NULL;
	} else if (b->cap <= SMALL_MOST &&
		   pool->small_idle + cost(b->cap) <= (int64_t)SMALL_KEEP * pool->keep) {
		POISON(b->data, b->cap);
		b->next = pool->small[b->cap / ALIGN];
		pool->small[b->cap / ALIGN] = b;
		pool->small_idle += cost(b->cap);
		b = NULL;
	} else {
		discharge(pool, cost(b->cap));
	}
	pool_unlock(pool);
	if (b)
		buf_release(b);
	pool_unref(pool);
}
