/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reference-counted buffers for received messages and packets to send; memory budgets. Large buffers are slots of
 * mappings of their own.
 */
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "base/assert.h"
#include "base/buf.h"

/* With AddressSanitizer, a use of memory that is idle is an error. */
#if defined(__has_feature)
#	if __has_feature(address_sanitizer)
#		define WITH_ASAN 1
#	endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#	define WITH_ASAN 1
#endif
#ifdef WITH_ASAN
#	include <sanitizer/asan_interface.h>
#	define POISON(p, n)   ASAN_POISON_MEMORY_REGION(p, n)
#	define UNPOISON(p, n) ASAN_UNPOISON_MEMORY_REGION(p, n)
#else
#	define POISON(p, n)   ((void)(p), (void)(n))
#	define UNPOISON(p, n) ((void)(p), (void)(n))
#endif

#define RARELY	    __attribute__((cold, noinline))
#define ALIGN	    64u	 /* of slots and of data; the head of a buffer is padded to it */
#define SLAB_MOST   16u	 /* slots that are mapped at a time */
#define IDLE_LEAST  64u	 /* that keep their pages: 4 MiB */
#define SETTLE_MOST 128u /* that lose them in one call: 8 MiB */

/* An idle slot. */
struct rxw_slot {
	struct rxw_slot *next;
};

/* At the beginning of a mapping; the slots follow. */
struct rxw_slot_map {
	struct rxw_slot_map *next;
	char pad[ALIGN - sizeof(void *)];
};

static void lock_slots(struct rxw_slots *slots)
{
	unsigned spins = 0;

	while (atomic_flag_test_and_set_explicit(&slots->lock, memory_order_acquire))
		if (++spins % 64 == 0)
			sched_yield(); /* the holder was probably preempted */
}

static void unlock_slots(struct rxw_slots *slots)
{
	atomic_flag_clear_explicit(&slots->lock, memory_order_release);
}

static size_t slab_bytes(const struct rxw_slots *slots)
{
	return sizeof(struct rxw_slot_map) + SLAB_MOST * slots->size;
}

void rxw_slots_init(struct rxw_slots *slots, size_t size)
{
	assert(size % ALIGN == 0);
	*slots = (struct rxw_slots){.size = size, .lock = ATOMIC_FLAG_INIT};
}

static struct rxw_slot *pop_slot(struct rxw_slot **list)
{
	struct rxw_slot *slot = *list;

	if (slot)
		*list = slot->next;
	return slot;
}

static void push_slot(struct rxw_slot **list, struct rxw_slot *slot)
{
	slot->next = *list;
	*list = slot;
}

static void count_used(struct rxw_slots *slots)
{
	slots->used++;
	if (slots->high < slots->used)
		slots->high = slots->used;
}

/* The first slot of a new mapping; the others are bare. Several threads may map some at the same time. */
static RARELY struct rxw_slot *map_slab(struct rxw_slots *slots)
{
	size_t bytes = slab_bytes(slots);
	struct rxw_slot_map *slab =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rxw_slot *first, *last;

	if (slab == MAP_FAILED)
		return NULL;
	madvise(slab, bytes, MADV_NOHUGEPAGE);
	first = last = (struct rxw_slot *)(void *)(slab + 1);
	for (unsigned i = 1; i < SLAB_MOST; i++)
		last = last->next = (struct rxw_slot *)(void *)((char *)last + slots->size);
	lock_slots(slots);
	slab->next = slots->maps;
	slots->maps = slab;
	last->next = slots->bare;
	slots->bare = first->next;
	count_used(slots);
	unlock_slots(slots);
	return first;
}

/* With the lock held: an idle slot, of another part if need be, since that has pages. */
static __attribute__((noinline)) struct rxw_slot *pop_idle(struct rxw_slots *slots, unsigned part)
{
	struct rxw_slot *slot = NULL;

	assert(part < RXW_SLOT_PARTS);
	for (unsigned i = 0; i < RXW_SLOT_PARTS && slots->idle_count && !slot; i++)
		slot = pop_slot(&slots->idle[(part + i) % RXW_SLOT_PARTS]);
	assert((slot != NULL) == (slots->idle_count > 0));
	if (slot)
		slots->idle_count--;
	return slot;
}

static struct rxw_slot *pop_any(struct rxw_slots *slots, unsigned part)
{
	struct rxw_slot *slot;

	lock_slots(slots);
	slot = pop_idle(slots, part);
	if (!slot)
		slot = pop_slot(&slots->bare);
	if (slot)
		count_used(slots);
	unlock_slots(slots);
	return slot;
}

void *rxw_slot_get(struct rxw_slots *slots, unsigned part)
{
	struct rxw_slot *slot = pop_any(slots, part);

	if (!slot)
		slot = map_slab(slots);
	if (!slot) /* another thread may have returned one meanwhile */
		slot = pop_any(slots, part);
	if (slot)
		UNPOISON(slot + 1, slots->size - sizeof(*slot));
	return slot;
}

void rxw_slot_put(struct rxw_slots *slots, unsigned part, void *memory)
{
	struct rxw_slot *slot = memory;

	POISON(slot + 1, slots->size - sizeof(*slot));
	lock_slots(slots);
	assert(part < RXW_SLOT_PARTS);
	assert(slots->used > 0);
	push_slot(&slots->idle[part], slot);
	slots->idle_count++;
	slots->used--;
	unlock_slots(slots);
}

/* The whole pages of a slot behind its link. */
static void drop_pages(const struct rxw_slots *slots, struct rxw_slot *slot)
{
	uintptr_t page = getauxval(AT_PAGESZ);
	uintptr_t from = ((uintptr_t)(slot + 1) + page - 1) & ~(page - 1);
	uintptr_t to = ((uintptr_t)slot + slots->size) & ~(page - 1);

	if (to > from)
		madvise((void *)from, to - from, MADV_DONTNEED);
}

/* One idle slot beyond `most` loses its pages, outside the lock. False: there is none. */
static RARELY bool strip_one(struct rxw_slots *slots, size_t most)
{
	struct rxw_slot *slot = NULL;

	lock_slots(slots);
	if (slots->idle_count > most)
		slot = pop_idle(slots, 0);
	unlock_slots(slots);
	if (!slot)
		return false;
	drop_pages(slots, slot);
	lock_slots(slots);
	push_slot(&slots->bare, slot);
	unlock_slots(slots);
	return true;
}

bool rxw_slots_settle(struct rxw_slots *slots)
{
	size_t most;

	lock_slots(slots);
	assert(slots->high >= slots->used);
	most = slots->high - slots->used + IDLE_LEAST;
	slots->high = slots->used;
	unlock_slots(slots);
	for (unsigned i = 0; i < SETTLE_MOST; i++)
		if (!strip_one(slots, most))
			break;
	return !rxw_slots_settled(slots);
}

bool rxw_slots_settled(struct rxw_slots *slots)
{
	bool settled;

	lock_slots(slots);
	settled = slots->idle_count <= IDLE_LEAST;
	unlock_slots(slots);
	return settled;
}

RARELY void rxw_slots_trim(struct rxw_slots *slots)
{
	while (strip_one(slots, 0))
		;
}

RARELY void rxw_slots_fini(struct rxw_slots *slots)
{
	struct rxw_slot_map *slab;

	while ((slab = slots->maps)) {
		slots->maps = slab->next;
		UNPOISON(slab, slab_bytes(slots));
		munmap(slab, slab_bytes(slots));
	}
	memset(slots->idle, 0, sizeof(slots->idle));
	slots->bare = NULL;
}

#define SMALL_MOST 2048u /* larger ones are not kept when idle */
#define SMALL_KEEP 4096u /* bytes of idle small buffers for each full one that may be kept */
#define MAPPED_LEAST (32 << 20) /* bytes of its budget: the full buffers of such a pool are slots */
#define FOLD_MOST    1048576	/* bytes of a stripe that may be missing from `about` */

/*
 * A part of the pool with its own lock, to avoid contention between threads on many CPUs. `lock`
 * covers all fields that are not atomic. It is a spinlock, since it is held for a few instructions
 * only, never across the allocator. A thread never holds the locks of two stripes.
 *
 * A buffer returns to the stripe it came from. If that lock is taken, a small buffer returns to the
 * stripe of the thread that drops it, since many threads may drop buffers that one took. Its cost
 * may therefore be charged in one stripe and credited in another: used and leased may be negative,
 * and only their sums over all stripes are meaningful. Invariant: leased >= used.
 */
struct rxw_stripe {
	_Alignas(128) atomic_flag lock;
	bool closed;
	unsigned index; /* constant */
	unsigned free_count;
	struct rxw_buf *free;
	struct rxw_buf *small[SMALL_MOST / ALIGN + 1]; /* idle buffers by capacity / ALIGN */
	int64_t small_idle;			       /* their cost; part of `used` */
	int64_t leased; /* taken from the budget */
	int64_t used;   /* charged by buffers, including those on the free list */
	int64_t out;	/* buffers taken here less those dropped here */
	_Atomic(int64_t) unfolded;   /* bytes of live buffers that are not in `about` yet */
	_Atomic(uint64_t) contended; /* contended acquisitions of lock; relaxed */
};

/* Added until the pool is closed, so that no buffer drops the last reference before. */
#define OPEN ((int64_t)1 << 40)

struct rxw_pool {
	struct rxw_budget *budget;
	int64_t lease;
	unsigned keep; /* in each stripe */
	unsigned mask; /* number of stripes - 1; the number is a power of two */
	int64_t fold;
	bool mapped; /* full buffers are slots; constant */
	_Alignas(128) struct rxw_slots slots;
	_Alignas(128) _Atomic(int64_t) about; /* bytes of live buffers, without unfolded */
	_Alignas(128) _Atomic(int64_t) refs;  /* OPEN; buffers in use once all stripes are closed */
	struct rxw_stripe stripe[];
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
	assert(bytes >= 0);
	assert(atomic_load_explicit(&b->used, memory_order_relaxed) >= bytes);
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

/* The part of each pool that this thread uses; parts == 0: all of it. */
static _Thread_local struct {
	unsigned number, parts;
} part __attribute__((tls_model("initial-exec")));

void rxw_pool_use_part(unsigned number, unsigned parts)
{
	part.number = number;
	part.parts = parts;
}

/* The stripes of a part are assigned to threads round-robin, the same one in every pool. */
static struct rxw_stripe *my_stripe(struct rxw_pool *pool)
{
	static _Atomic(unsigned) threads;
	static _Thread_local unsigned number __attribute__((tls_model("initial-exec")));
	unsigned each = pool->mask + 1;

	if (!pool->mask)
		return pool->stripe;
	if (!number)
		number = 1 + atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed);
	if (part.parts > 1)
		each = each > part.parts ? each / part.parts : 1;
	return &pool->stripe[(part.number * each + number % each) & pool->mask];
}

static bool stripe_trylock(struct rxw_stripe *s)
{
	if (!atomic_flag_test_and_set_explicit(&s->lock, memory_order_acquire))
		return true;
	atomic_fetch_add_explicit(&s->contended, 1, memory_order_relaxed);
	return false;
}

static void stripe_lock(struct rxw_stripe *s)
{
	unsigned spins = 0;

	if (stripe_trylock(s))
		return;
	while (atomic_flag_test_and_set_explicit(&s->lock, memory_order_acquire))
		if (++spins % 64 == 0)
			sched_yield(); /* the holder was probably preempted */
}

static void stripe_unlock(struct rxw_stripe *s)
{
	atomic_flag_clear_explicit(&s->lock, memory_order_release);
}

struct rxw_pool *rxw_pool_create_spread(struct rxw_budget *budget, size_t lease, unsigned keep,
					unsigned stripes)
{
	unsigned n = 1;
	struct rxw_pool *pool;
	void *memory;
	size_t size;

	while (n < stripes && n < RXW_POOL_STRIPES)
		n *= 2;
	size = sizeof(*pool) + n * sizeof(pool->stripe[0]);
	if (posix_memalign(&memory, _Alignof(struct rxw_pool), size))
		return NULL;
	memset(memory, 0, size);
	pool = (struct rxw_pool *)memory;
	pool->budget = budget;
	pool->lease = (int64_t)lease;
	pool->keep = keep;
	pool->mask = n - 1;
	if (n > 1) {
		pool->fold = budget->limit / 16 / n;
		if (pool->fold > FOLD_MOST)
			pool->fold = FOLD_MOST;
	}
	/* For a few buffers, a mapping would be too much. */
	pool->mapped = budget->limit >= MAPPED_LEAST;
	rxw_slots_init(&pool->slots, ALIGN + RXW_BUF_SIZE);
	atomic_init(&pool->refs, OPEN);
	atomic_init(&pool->about, 0);
	for (unsigned i = 0; i < n; i++) {
		pool->stripe[i].index = i;
		atomic_flag_clear(&pool->stripe[i].lock);
		atomic_init(&pool->stripe[i].unfolded, 0);
		atomic_init(&pool->stripe[i].contended, 0);
	}
	return pool;
}

struct rxw_pool *rxw_pool_create(struct rxw_budget *budget, size_t lease, unsigned keep)
{
	return rxw_pool_create_spread(budget, lease, keep, 1);
}

/*
 * With the lock held: charge `bytes`. Takes a full lease from the budget, or only the bytes needed
 * if it has no full lease left.
 */
static bool charge_stripe(struct rxw_pool *pool, struct rxw_stripe *s, int64_t bytes)
{
	int64_t need = s->used + bytes - s->leased;

	if (need > 0) {
		int64_t step = need;

		if (pool->lease > 0)
			step = (need + pool->lease - 1) / pool->lease * pool->lease;
		if (!rxw_budget_take(pool->budget, step)) {
			step = need;
			if (!rxw_budget_take(pool->budget, step))
				return false;
		}
		s->leased += step;
	}
	s->used += bytes;
	return true;
}

static void give_back(struct rxw_pool *pool, struct rxw_stripe *s, int64_t bytes)
{
	rxw_budget_give(pool->budget, bytes);
	s->leased -= bytes;
}

/*
 * With the lock held. Keeps one lease more than needed, to avoid returning and taking it
 * repeatedly.
 */
static void discharge_stripe(struct rxw_pool *pool, struct rxw_stripe *s, int64_t bytes)
{
	int64_t spare;

	s->used -= bytes;
	spare = s->leased - s->used;
	assert(bytes >= 0);
	assert(spare >= 0);
	if (s->closed)
		give_back(pool, s, spare);
	else if (spare >= 2 * pool->lease)
		give_back(pool, s,
			  pool->lease > 0 ? (spare / pool->lease - 1) * pool->lease : spare);
}

/* With the lock held: add to the bytes of live buffers (negative: subtract). */
static void count_live(struct rxw_pool *pool, struct rxw_stripe *s, int64_t bytes)
{
	int64_t unfolded = atomic_load_explicit(&s->unfolded, memory_order_relaxed) + bytes;

	if (unfolded > pool->fold || unfolded < -pool->fold) {
		atomic_fetch_add_explicit(&pool->about, unfolded, memory_order_relaxed);
		unfolded = 0;
	}
	atomic_store_explicit(&s->unfolded, unfolded, memory_order_relaxed);
}

/*
 * The cost of a buffer: its bytes, and for a small buffer its head also, which is significant
 * there.
 */
static int64_t cost_of_buffer(uint32_t cap)
{
	return cap == RXW_BUF_SIZE ? (int64_t)cap : (int64_t)cap + ALIGN;
}

/* The source of full buffers; NULL: the allocator, as for all others. */
static struct rxw_slots *slots_of(struct rxw_pool *pool, uint32_t cap)
{
	return pool->mapped && cap == RXW_BUF_SIZE ? &pool->slots : NULL;
}

static void *get_memory(struct rxw_pool *pool, const struct rxw_stripe *s, uint32_t cap)
{
	struct rxw_slots *slots = slots_of(pool, cap);
	void *memory;

	_Static_assert(RXW_POOL_STRIPES <= RXW_SLOT_PARTS, "each stripe has a part of the slots");
	if (slots)
		return rxw_slot_get(slots, s->index);
	return posix_memalign(&memory, ALIGN, ALIGN + (size_t)cap) ? NULL : memory;
}

/* `slots`: slots_of() it, whose pool exists; else the pool may be gone. */
static void buf_release(struct rxw_slots *slots, struct rxw_buf *b)
{
	UNPOISON(b->data, b->cap);
	if (slots)
		rxw_slot_put(slots, b->home->index, b);
	else
		free(b);
}

static void pool_free(struct rxw_pool *pool)
{
	rxw_slots_fini(&pool->slots);
	free(pool);
}

/* A buffer returns to a closed stripe. */
static void pool_unref(struct rxw_pool *pool)
{
	if (atomic_fetch_sub_explicit(&pool->refs, 1, memory_order_acq_rel) == 1)
		pool_free(pool);
}

/* With the lock held: prepend all idle small buffers to `list` and uncharge them. */
static struct rxw_buf *shed_small(struct rxw_pool *pool, struct rxw_stripe *s,
				  struct rxw_buf *list)
{
	struct rxw_buf *b;

	if (!s->small_idle)
		return list;
	for (unsigned i = 0; i <= SMALL_MOST / ALIGN; i++)
		while ((b = s->small[i])) {
			s->small[i] = b->next;
			b->next = list;
			list = b;
		}
	assert(s->small_idle > 0);
	discharge_stripe(pool, s, s->small_idle);
	s->small_idle = 0;
	return list;
}

/* With the lock held: return a list of all idle buffers, uncharged. */
static struct rxw_buf *shed_all(struct rxw_pool *pool, struct rxw_stripe *s)
{
	struct rxw_buf *list = s->free;

	s->free = NULL;
	discharge_stripe(pool, s, (int64_t)s->free_count * RXW_BUF_SIZE);
	s->free_count = 0;
	return shed_small(pool, s, list);
}

static void release_all(struct rxw_pool *pool, struct rxw_buf *list)
{
	struct rxw_buf *b;

	while ((b = list)) {
		list = b->next;
		buf_release(slots_of(pool, b->cap), b);
	}
}

void rxw_pool_destroy(struct rxw_pool *pool)
{
	int64_t out = 0;

	if (!pool)
		return;
	for (unsigned i = 0; i <= pool->mask; i++) {
		struct rxw_stripe *s = &pool->stripe[i];
		struct rxw_buf *list;

		stripe_lock(s);
		s->closed = true;
		out += s->out;
		list = shed_all(pool, s);
		stripe_unlock(s);
		release_all(pool, list);
	}
	if (atomic_fetch_add_explicit(&pool->refs, out - OPEN, memory_order_acq_rel) + out == OPEN)
		pool_free(pool);
}

size_t rxw_pool_live(const struct rxw_pool *pool)
{
	int64_t live = atomic_load_explicit(&pool->about, memory_order_relaxed);

	for (unsigned i = 0; i <= pool->mask; i++)
		live += atomic_load_explicit(&pool->stripe[i].unfolded, memory_order_relaxed);
	return live > 0 ? (size_t)live : 0;
}

size_t rxw_pool_about(const struct rxw_pool *pool)
{
	int64_t about = atomic_load_explicit(&pool->about, memory_order_relaxed);

	return about > 0 ? (size_t)about : 0;
}

uint64_t rxw_pool_contended(const struct rxw_pool *pool)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i <= pool->mask; i++)
		sum += atomic_load_explicit(&pool->stripe[i].contended, memory_order_relaxed);
	return sum;
}

/*
 * -- Buffers ------------------------------------------------------------------------------------
 */

/* With the lock held: account for one buffer of that size taken from this stripe. */
static void goes_out(struct rxw_pool *pool, struct rxw_stripe *s, uint32_t cap)
{
	s->out++;
	count_live(pool, s, cost_of_buffer(cap));
	if (s->closed)
		atomic_fetch_add_explicit(&pool->refs, 1, memory_order_relaxed);
}

static struct rxw_buf *first_use(struct rxw_buf *b)
{
	b->next = NULL;
	atomic_store_explicit(&b->refs, 1, memory_order_relaxed);
	return b;
}

/* The buffer is charged and counted already; a failure undoes both. */
static struct rxw_buf *buf_make(struct rxw_pool *pool, struct rxw_stripe *s, uint32_t cap)
{
	void *memory = get_memory(pool, s, cap);
	struct rxw_buf *b = (struct rxw_buf *)memory;
	bool closed;

	_Static_assert(sizeof(struct rxw_buf) <= ALIGN, "the head fits its padding");
	if (b) {
		atomic_init(&b->refs, 0);
		b->cap = cap;
		b->pool = pool;
		b->home = s;
		b->data = (uint8_t *)memory + ALIGN;
		return first_use(b);
	}
	stripe_lock(s);
	discharge_stripe(pool, s, cost_of_buffer(cap));
	count_live(pool, s, -cost_of_buffer(cap));
	s->out--;
	closed = s->closed;
	stripe_unlock(s);
	if (closed)
		pool_unref(pool);
	return NULL;
}

static struct rxw_buf *reuse_buffer(struct rxw_buf *b, struct rxw_stripe *s)
{
	UNPOISON(b->data, b->cap);
	b->home = s;
	return first_use(b);
}

/*
 * With the lock held: charge a buffer, if necessary by giving up idle ones, which are charged
 * already. Those given up are prepended to *idle; the caller releases them.
 */
static bool make_room_in_stripe(struct rxw_pool *pool, struct rxw_stripe *s, int64_t bytes,
				struct rxw_buf **idle)
{
	struct rxw_buf *b;

	if (charge_stripe(pool, s, bytes))
		return true;
	*idle = shed_small(pool, s, *idle);
	if (charge_stripe(pool, s, bytes))
		return true;
	b = s->free;
	if (!b)
		return false;
	assert(s->free_count > 0);
	s->free = b->next;
	s->free_count--;
	s->used -= cost_of_buffer(RXW_BUF_SIZE);
	b->next = *idle;
	*idle = b;
	return charge_stripe(pool, s, bytes);
}

/* Return idle buffers and excess leases of all stripes to the budget. */
static void squeeze_stripes(struct rxw_pool *pool, const struct rxw_stripe *but)
{
	for (unsigned i = 0; i <= pool->mask; i++) {
		struct rxw_stripe *s = &pool->stripe[i];
		struct rxw_buf *list;

		if (s == but)
			continue;
		stripe_lock(s);
		list = shed_all(pool, s);
		give_back(pool, s, s->leased - s->used);
		stripe_unlock(s);
		release_all(pool, list);
	}
}

void rxw_pool_trim(struct rxw_pool *pool)
{
	squeeze_stripes(pool, NULL);
	rxw_slots_trim(&pool->slots);
}

bool rxw_pool_settle(struct rxw_pool *pool)
{
	return rxw_slots_settle(&pool->slots);
}

bool rxw_pool_settled(struct rxw_pool *pool)
{
	return rxw_slots_settled(&pool->slots);
}

/* The most recently used idle buffer of that size, or a new one. */
static struct rxw_buf *provide_buffer(struct rxw_pool *pool, uint32_t cap)
{
	struct rxw_stripe *s = my_stripe(pool);
	bool full = cap == RXW_BUF_SIZE, room = true;
	struct rxw_buf **list = full ? &s->free : cap <= SMALL_MOST ? &s->small[cap / ALIGN] : NULL;
	struct rxw_buf *idle = NULL, *b;

	assert(cap <= RXW_BUF_LARGEST);
	stripe_lock(s);
	b = list ? *list : NULL;
	if (b) {
		*list = b->next;
		assert(full ? s->free_count > 0 : s->small_idle >= cost_of_buffer(cap));
		if (full)
			s->free_count--;
		else
			s->small_idle -= cost_of_buffer(cap);
	} else {
		room = make_room_in_stripe(pool, s, cost_of_buffer(cap), &idle);
		if (!room && pool->mask) {
			stripe_unlock(s);
			squeeze_stripes(pool, s);
			stripe_lock(s);
			room = make_room_in_stripe(pool, s, cost_of_buffer(cap), &idle);
		}
	}
	if (room)
		goes_out(pool, s, cap);
	stripe_unlock(s);
	release_all(pool, idle);
	if (b)
		return reuse_buffer(b, s);
	return room ? buf_make(pool, s, cap) : NULL;
}

struct rxw_buf *rxw_buf_get(struct rxw_pool *pool)
{
	return provide_buffer(pool, RXW_BUF_SIZE);
}

struct rxw_buf *rxw_buf_get_array(struct rxw_pool *pool, size_t size)
{
	if (!size || size > RXW_BUF_LARGEST)
		return NULL;
	return provide_buffer(pool, (uint32_t)((size + ALIGN - 1) / ALIGN * ALIGN));
}

struct rxw_buf *rxw_buf_get_small(struct rxw_pool *pool, size_t size)
{
	return size > RXW_BUF_SIZE ? NULL : rxw_buf_get_array(pool, size);
}

void rxw_buf_ref(struct rxw_buf *b)
{
	assert(atomic_load_explicit(&b->refs, memory_order_relaxed) > 0);
	atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
}

void rxw_buf_unref(struct rxw_buf *b)
{
	struct rxw_stripe *s;
	struct rxw_pool *pool;
	struct rxw_slots *slots;
	bool closed, holds;

	if (!b)
		return;
	assert(atomic_load_explicit(&b->refs, memory_order_relaxed) > 0);
	/* Nobody else has one to copy, so the last reference needs no atomic subtraction. */
	if (atomic_load_explicit(&b->refs, memory_order_acquire) != 1 &&
	    atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) != 1)
		return;
	pool = b->pool;
	s = b->home;
	if (b->cap > SMALL_MOST) {
		stripe_lock(s);
	} else if (!stripe_trylock(s)) {
		s = my_stripe(pool);
		stripe_lock(s);
	}
	s->out--;
	count_live(pool, s, -cost_of_buffer(b->cap));
	closed = s->closed;
	if (closed) {
		discharge_stripe(pool, s, cost_of_buffer(b->cap));
	} else if (b->cap == RXW_BUF_SIZE && s->free_count < pool->keep) {
		POISON(b->data, b->cap);
		b->next = s->free;
		s->free = b;
		s->free_count++;
		b = NULL;
	} else if (b->cap <= SMALL_MOST &&
		   s->small_idle + cost_of_buffer(b->cap) <= (int64_t)SMALL_KEEP * pool->keep) {
		POISON(b->data, b->cap);
		b->next = s->small[b->cap / ALIGN];
		s->small[b->cap / ALIGN] = b;
		s->small_idle += cost_of_buffer(b->cap);
		b = NULL;
	} else {
		discharge_stripe(pool, s, cost_of_buffer(b->cap));
	}
	/* Its slot is returned without the lock: the pool may be destroyed meanwhile. */
	slots = b ? slots_of(pool, b->cap) : NULL;
	holds = closed || slots;
	if (holds && !closed)
		atomic_fetch_add_explicit(&pool->refs, 1, memory_order_relaxed);
	stripe_unlock(s);
	if (b)
		buf_release(slots, b);
	if (holds)
		pool_unref(pool);
}
