/* SPDX-License-Identifier: BSD-2-Clause */
/* Reference-counted buffers for received messages and packets to send; memory budgets; slots. */
#ifndef RXW_BASE_BUF_H
#define RXW_BASE_BUF_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One buffer holds the largest message that the kernel accepts. */
#define RXW_BUF_SIZE 65536u
#define RXW_BUF_LARGEST (8u << 20) /* of rxw_buf_get_array() */

/* A limit in bytes. Charged atomically; `peak` is the highest use seen. Any thread. */
struct rxw_budget {
	_Atomic(int64_t) used;
	_Atomic(int64_t) peak;
	int64_t limit;
};
void rxw_budget_init(struct rxw_budget *b, int64_t limit);
bool rxw_budget_take(struct rxw_budget *b, int64_t bytes); /* false: nothing charged */
void rxw_budget_give(struct rxw_budget *b, int64_t bytes);

/*
 * Zeroed memory for objects of the layers above, charged to `budget` (NULL: not charged); size > 0.
 * NULL if the budget or memory is exhausted. Free it with the same budget and size. Any thread.
 */
void *rxw_mem_get(struct rxw_budget *budget, size_t size);
void rxw_mem_give(struct rxw_budget *budget, void *p, size_t size); /* NULL is allowed */

struct rxw_pool;
struct rxw_stripe;

/*
 * A buffer belongs to a pool and returns to it when its last reference is dropped, by any thread.
 * The bytes are not locked: the thread that fills a buffer is its only user until it is shared.
 * Shared bytes are read-only, except that the holder of a call's transmission writes packet
 * headers.
 */
struct rxw_buf {
	_Atomic(uint32_t) refs;
	uint32_t cap; /* usable bytes at data */
	struct rxw_pool *pool;
	struct rxw_stripe *home; /* stripe of the pool that it was taken from */
	struct rxw_buf *next; /* free list of the pool, or for the holder's use */
	uint8_t *data;        /* 64-byte aligned */
};

/*
 * A pool keeps at most `keep` free buffers of RXW_BUF_SIZE, last in first out. It leases memory
 * from `budget` in steps of `lease` bytes (0: as needed), or only the bytes needed if the budget
 * has no full step left. It also keeps idle small buffers up to 2 KiB, 4 KiB of them for each of
 * `keep`; they are freed first when memory is needed. A full buffer costs RXW_BUF_SIZE, a small one
 * its capacity and 64 bytes. The pool exists until the last of its buffers has returned; its budget
 * must outlive it.
 */
struct rxw_pool *rxw_pool_create(struct rxw_budget *budget, size_t lease, unsigned keep);
/*
 * The same with several stripes (rounded up to a power of two), each with its own lock, free lists,
 * leases and `keep`; each thread uses one of them. If the budget is used up, idle buffers of the
 * other stripes are freed.
 */
#define RXW_POOL_STRIPES 16u /* at most */
/*
 * From now on this thread takes buffers from part `number` of `parts` equal ones of the stripes: threads that work
 * for the same shard share a part, so that buffers and locks stay with the caches of its processors.
 */
void rxw_pool_use_part(unsigned number, unsigned parts);
struct rxw_pool *rxw_pool_create_spread(struct rxw_budget *budget, size_t lease, unsigned keep,
					unsigned stripes);
/* Frees the idle buffers now, the others when they return. NULL is allowed. */
void rxw_pool_destroy(struct rxw_pool *pool);
/* Frees all idle buffers; the remaining ones are in use. Any thread. */
void rxw_pool_trim(struct rxw_pool *pool);
/*
 * To be called once in a while: a part of the pages that idle buffers have not needed since the last time goes
 * back to the system. False: all has. Any thread.
 */
bool rxw_pool_settle(struct rxw_pool *pool);
bool rxw_pool_settled(struct rxw_pool *pool);
/* Bytes of live buffers (not on the free list). Any thread; exact when no other uses the pool. */
size_t rxw_pool_live(const struct rxw_pool *pool);
/*
 * The same, but approximate and cheap on many CPUs: the error is at most a sixteenth of the budget,
 * and at most a mebibyte per stripe.
 */
size_t rxw_pool_about(const struct rxw_pool *pool);
/* Contended acquisitions of the pool's locks. */
uint64_t rxw_pool_contended(const struct rxw_pool *pool);

/*
 * A buffer of RXW_BUF_SIZE with one reference; NULL if the budget or memory is exhausted. Any
 * thread.
 */
struct rxw_buf *rxw_buf_get(struct rxw_pool *pool);
/*
 * A buffer of exactly `size` bytes (rounded up to 64), 1..RXW_BUF_SIZE, charged to the same budget.
 */
struct rxw_buf *rxw_buf_get_small(struct rxw_pool *pool, size_t size);
/* The same for 1..RXW_BUF_LARGEST bytes. Sizes above 2 KiB are not kept for reuse. */
struct rxw_buf *rxw_buf_get_array(struct rxw_pool *pool, size_t size);
void rxw_buf_ref(struct rxw_buf *b);
void rxw_buf_unref(struct rxw_buf *b); /* NULL is allowed */

/*
 * --- slots: memory for large buffers ---
 *
 * The allocator would spread them over its arenas, among small objects: with a thousand streams, half of its memory was
 * free and could not be used. Slots are taken from mappings of their own, the most recently used first, by all threads.
 * A thread takes those first that its part has returned: they are in the caches of its processors.
 */
#define RXW_SLOT_PARTS 16u

struct rxw_slot;
struct rxw_slot_map;

/* Any thread, but for the first and the last function. `lock` covers the lists. It is held for a few instructions. */
struct rxw_slots {
	size_t size; /* of a slot, a multiple of 64 bytes; constant */
	atomic_flag lock;
	struct rxw_slot
		*idle[RXW_SLOT_PARTS]; /* with their pages, by the part that returned them */
	struct rxw_slot *bare;	       /* idle, without */
	size_t idle_count, used;       /* slots */
	size_t high;		       /* the most in use since the latest rxw_slots_settle() */
	struct rxw_slot_map *maps;
};

void rxw_slots_init(struct rxw_slots *slots, size_t size);
/* A slot, aligned to 64 bytes, with any contents; NULL: no memory. `part`: below RXW_SLOT_PARTS. */
void *rxw_slot_get(struct rxw_slots *slots, unsigned part);
void rxw_slot_put(struct rxw_slots *slots, unsigned part, void *slot);
/*
 * Idle slots lose their pages, unless so many were in use since the last time; not more than a few megabytes in
 * a call. The address space remains. False: there are no more.
 */
bool rxw_slots_settle(struct rxw_slots *slots);
/* So few idle slots have pages that none will lose them. */
bool rxw_slots_settled(struct rxw_slots *slots);
/* The system gets the pages of all idle slots back. */
void rxw_slots_trim(struct rxw_slots *slots);
/* No slot is in use: unmaps all. */
void rxw_slots_fini(struct rxw_slots *slots);

#endif
