/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counted buffers: where received trains live and where packets to send are built; memory budgets.
 */
#ifndef RXW_BASE_BUF_H
#define RXW_BASE_BUF_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A train of the largest size the kernel accepts fits one buffer. */
#define RXW_BUF_SIZE 65536u

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
 * Zeroed memory for objects of the floors above, charged to `budget` (NULL: not charged); size > 0.
 * NULL when the budget is used up or memory is out. Give back with the same budget and size. Any
 * thread.
 */
void *rxw_mem_get(struct rxw_budget *budget, size_t size);
void rxw_mem_give(struct rxw_budget *budget, void *p, size_t size); /* NULL is allowed */

struct rxw_pool;
struct rxw_stripe;

/*
 * A buffer belongs to a pool and goes back to it when its last reference is dropped, by whichever
 * thread. The bytes are not protected: whoever fills a buffer is its only user until it is shared,
 * and shared bytes are not written but for packet headers by the holder of a call's transmission.
 */
struct rxw_buf {
	_Atomic(uint32_t) refs;
	uint32_t cap; /* usable bytes at data */
	struct rxw_pool *pool;
	struct rxw_stripe *home; /* of the pool: where it was taken */
	struct rxw_buf *next; /* free list of the pool, or for the holder's use */
	uint8_t *data;        /* 64-byte aligned */
};

/*
 * A pool keeps free buffers of RXW_BUF_SIZE, last in first out, at most `keep` of them; leases its
 * memory from `budget` in steps of `lease` bytes (0: as needed), and just what is needed where a
 * whole step is no more to be had. Idle small buffers up to 2 KiB are kept, too, 4 KiB of them for
 * each of `keep`; they go first when room is needed. A full buffer costs RXW_BUF_SIZE, a small one its capacity and
 * 64 bytes. A pool is counted too: it lives until the last of its buffers came back, and its budget
 * must live as long.
 */
struct rxw_pool *rxw_pool_create(struct rxw_budget *budget, size_t lease, unsigned keep);
/*
 * The same in so many parts (rounded up to a power of two), each with a lock, free lists, leases
 * and a `keep` of its own: threads take from theirs. When the budget is used up, what is idle in
 * the others makes room.
 */
#define RXW_POOL_STRIPES 16u /* at most */
struct rxw_pool *rxw_pool_create_spread(struct rxw_budget *budget, size_t lease, unsigned keep,
					unsigned stripes);
/* Frees what is idle now; the rest when the buffers come back. NULL is allowed. */
void rxw_pool_destroy(struct rxw_pool *pool);
/* Frees what is idle, all of it: what is left is in use. Any thread. */
void rxw_pool_trim(struct rxw_pool *pool);
/* Bytes of live buffers (not on the free list). Any thread; exact when no other uses the pool. */
size_t rxw_pool_live(const struct rxw_pool *pool);
/*
 * The same, cheap to read on many processors: a sixteenth of the budget less or more, and no more
 * than 256 KiB for each part.
 */
size_t rxw_pool_about(const struct rxw_pool *pool);
/* How often one of the pool's locks was found taken. */
uint64_t rxw_pool_contended(const struct rxw_pool *pool);

/*
 * A buffer of RXW_BUF_SIZE with one reference; NULL when the budget is used up or memory is out.
 * Any thread.
 */
struct rxw_buf *rxw_buf_get(struct rxw_pool *pool);
/*
 * A buffer of exactly `size` bytes (rounded up to 64), 1..RXW_BUF_SIZE, charged to the same budget.
 */
struct rxw_buf *rxw_buf_get_small(struct rxw_pool *pool, size_t size);
void rxw_buf_ref(struct rxw_buf *b);
void rxw_buf_unref(struct rxw_buf *b); /* NULL is allowed */

#endif
