/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of base/buf.c: budgets, leases, order of reuse, small buffers, threads. */

#include "testing.h"

#include <pthread.h>

#include "base/buf.h"

#define FULL ((int64_t)RXW_BUF_SIZE)

START_TEST(budget_limits)
{
	struct rxw_budget b;

	rxw_budget_init(&b, 100);
	ck_assert(rxw_budget_take(&b, 60));
	ck_assert(!rxw_budget_take(&b, 41));
	ck_assert_int_eq(b.used, 60);
	ck_assert(rxw_budget_take(&b, 40));
	ck_assert(!rxw_budget_take(&b, 1));
	ck_assert(rxw_budget_take(&b, 0));
	rxw_budget_give(&b, 100);
	ck_assert_int_eq(b.used, 0);
	ck_assert_int_eq(b.peak, 100);
	ck_assert(!rxw_budget_take(&b, INT64_MAX));
	ck_assert_int_eq(b.used, 0);
}
END_TEST

START_TEST(objects)
{
	struct rxw_budget b;
	uint8_t *p;

	rxw_budget_init(&b, 1000);
	p = rxw_mem_get(&b, 600);
	ck_assert_ptr_nonnull(p);
	for (int i = 0; i < 600; i++)
		ck_assert_uint_eq(p[i], 0);
	ck_assert_ptr_null(rxw_mem_get(&b, 401));
	ck_assert_ptr_null(rxw_mem_get(&b, 0));
	ck_assert_ptr_null(rxw_mem_get(NULL, SIZE_MAX));
	ck_assert_int_eq(b.used, 600);
	rxw_mem_give(&b, p, 600);
	rxw_mem_give(&b, NULL, 600);
	ck_assert_int_eq(b.used, 0);
	p = rxw_mem_get(NULL, 5000);
	ck_assert_ptr_nonnull(p);
	rxw_mem_give(NULL, p, 5000);
}
END_TEST

START_TEST(leases)
{
	struct rxw_budget b;
	struct rxw_buf *bufs[40];
	struct rxw_pool *pool;

	rxw_budget_init(&b, 40 * FULL);
	pool = rxw_pool_create(&b, 16 * RXW_BUF_SIZE, 0);
	for (int i = 0; i < 40; i++) {
		bufs[i] = rxw_buf_get(pool);
		ck_assert_ptr_nonnull(bufs[i]);
		ck_assert_uint_eq(bufs[i]->cap, RXW_BUF_SIZE);
		ck_assert_uint_eq((uintptr_t)bufs[i]->data % 64, 0);
		memset(bufs[i]->data, i, RXW_BUF_SIZE);
		ck_assert_uint_eq(rxw_pool_live(pool), (size_t)(i + 1) * RXW_BUF_SIZE);
		/* Full steps while they last, then the exact remainder, to the last byte. */
		ck_assert_int_eq(b.used, i < 16 ? 16 * FULL : i < 32 ? 32 * FULL : (i + 1) * FULL);
	}
	ck_assert_ptr_null(rxw_buf_get(pool));
	ck_assert_ptr_null(rxw_buf_get_small(pool, 1));
	ck_assert_int_eq(b.used, 40 * FULL);
	for (int i = 0; i < 40; i++)
		rxw_buf_unref(bufs[i]);
	ck_assert_uint_eq(rxw_pool_live(pool), 0);
	ck_assert_int_le(b.used, 2 * 16 * FULL); /* at most the spare lease stays */
	rxw_pool_destroy(pool);
	ck_assert_int_eq(b.used, 0);
	ck_assert_int_eq(b.peak, 40 * FULL);
}
END_TEST

START_TEST(last_in_first_out)
{
	struct rxw_budget b;
	struct rxw_buf *x, *y, *z;
	struct rxw_pool *pool;

	rxw_budget_init(&b, 100 * FULL);
	pool = rxw_pool_create(&b, 0, 2);
	x = rxw_buf_get(pool);
	y = rxw_buf_get(pool);
	z = rxw_buf_get(pool);
	ck_assert_int_eq(b.used, 3 * FULL);
	rxw_buf_unref(x);
	rxw_buf_unref(y);
	ck_assert_int_eq(b.used, 3 * FULL);
	rxw_buf_unref(z); /* a third is not kept */
	ck_assert_int_eq(b.used, 2 * FULL);
	ck_assert_ptr_eq(rxw_buf_get(pool), y);
	ck_assert_ptr_eq(rxw_buf_get(pool), x);
	ck_assert_uint_eq(x->refs, 1);
	ck_assert_ptr_null(x->next);
	rxw_buf_unref(x);
	rxw_buf_unref(y);
	rxw_buf_unref(NULL);
	rxw_pool_destroy(pool);
	rxw_pool_destroy(NULL);
	ck_assert_int_eq(b.used, 0);
}
END_TEST

START_TEST(references)
{
	struct rxw_budget b;
	struct rxw_buf *x;
	struct rxw_pool *pool;

	rxw_budget_init(&b, 100 * FULL);
	pool = rxw_pool_create(&b, 1 << 20, 4);
	x = rxw_buf_get(pool);
	rxw_buf_ref(x);
	rxw_buf_unref(x);
	ck_assert_uint_eq(rxw_pool_live(pool), RXW_BUF_SIZE);
	x->data[RXW_BUF_SIZE - 1] = 1;
	rxw_buf_unref(x);
	ck_assert_uint_eq(rxw_pool_live(pool), 0);
	rxw_pool_destroy(pool);
}
END_TEST

/* The pool outlives its destruction until the last buffer is returned. */
START_TEST(destroyed_first)
{
	struct rxw_budget b;
	struct rxw_buf *x, *y, *small;
	struct rxw_pool *pool;

	rxw_budget_init(&b, 100 * FULL);
	pool = rxw_pool_create(&b, 1 << 20, 4);
	x = rxw_buf_get(pool);
	y = rxw_buf_get(pool);
	small = rxw_buf_get_small(pool, 100);
	rxw_buf_unref(y);
	rxw_pool_destroy(pool);
	ck_assert_int_eq(b.used, FULL + 128 + 64);
	memset(x->data, 1, x->cap);
	rxw_buf_unref(x);
	ck_assert_int_eq(b.used, 128 + 64);
	memset(small->data, 1, small->cap);
	rxw_buf_unref(small);
	ck_assert_int_eq(b.used, 0);
}
END_TEST

START_TEST(small_buffers)
{
	static const struct {
		size_t size;
		uint32_t cap;
	} cases[] = {
		{ 1, 64 },      { 63, 64 },       { 64, 64 },       { 65, 128 },
		{ 1444, 1472 }, { 65472, 65472 }, { 65473, 65536 }, { 65536, 65536 },
	};
	struct rxw_budget b;
	struct rxw_pool *pool;

	rxw_budget_init(&b, 100 * FULL);
	pool = rxw_pool_create(&b, 0, 0);
	ck_assert_ptr_null(rxw_buf_get_small(pool, 0));
	ck_assert_ptr_null(rxw_buf_get_small(pool, RXW_BUF_SIZE + 1));
	ck_assert_ptr_null(rxw_buf_get_small(pool, SIZE_MAX));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rxw_buf *x = rxw_buf_get_small(pool, cases[i].size);

		ck_assert_ptr_nonnull(x);
		ck_assert_uint_eq(x->cap, cases[i].cap);
		ck_assert_uint_eq((uintptr_t)x->data % 64, 0);
		memset(x->data, 0xff, x->cap);
		ck_assert_int_eq(b.used,
				 (int64_t)cases[i].cap + (cases[i].cap == RXW_BUF_SIZE ? 0 : 64));
		rxw_buf_unref(x);
		ck_assert_int_eq(b.used, 0);
	}
	rxw_pool_destroy(pool);
}
END_TEST

/* When the budget is used up, idle buffers are freed for small ones. */
START_TEST(idle_buffers_freed_for_small)
{
	struct rxw_budget b;
	struct rxw_buf *x, *y, *s;
	struct rxw_pool *pool;

	rxw_budget_init(&b, 2 * FULL);
	pool = rxw_pool_create(&b, 0, 8);
	x = rxw_buf_get(pool);
	y = rxw_buf_get(pool);
	rxw_buf_unref(y);
	ck_assert_int_eq(b.used, 2 * FULL);
	s = rxw_buf_get_small(pool, 1000);
	ck_assert_ptr_nonnull(s);
	ck_assert_ptr_null(rxw_buf_get(pool));
	ck_assert_int_le(b.used, 2 * FULL);
	rxw_buf_unref(s);
	y = rxw_buf_get(pool);
	ck_assert_ptr_nonnull(y);
	rxw_buf_unref(x);
	rxw_buf_unref(y);
	rxw_pool_destroy(pool);
	ck_assert_int_eq(b.used, 0);
}
END_TEST

/* Idle small buffers are reused, the most recent first, within a limit; they are freed first. */
START_TEST(idle_small_buffers_kept)
{
	struct rxw_budget b;
	struct rxw_buf *x, *y, *z;
	struct rxw_pool *pool;

	rxw_budget_init(&b, FULL);
	pool = rxw_pool_create(&b, 0, 1); /* 4 KiB of small buffers */
	x = rxw_buf_get_small(pool, 1444);
	y = rxw_buf_get_small(pool, 1409);
	z = rxw_buf_get_small(pool, 1472);
	ck_assert_int_eq(b.used, 3 * (1472 + 64));
	rxw_buf_unref(x);
	rxw_buf_unref(y);
	rxw_buf_unref(z); /* a third is not kept */
	ck_assert_int_eq(b.used, 2 * (1472 + 64));
	ck_assert_uint_eq(rxw_pool_live(pool), 0);
	ck_assert_ptr_eq(rxw_buf_get_small(pool, 1450), y);
	ck_assert_uint_eq(y->refs, 1);
	ck_assert_ptr_null(y->next);
	z = rxw_buf_get_small(pool, 100); /* another size is another list */
	ck_assert_uint_eq(z->cap, 128);
	rxw_buf_unref(z);
	rxw_buf_unref(y);
	ck_assert_int_eq(b.used, 2 * (1472 + 64) + 128 + 64);
	x = rxw_buf_get(pool); /* takes the whole budget */
	ck_assert_ptr_nonnull(x);
	ck_assert_int_eq(b.used, FULL);
	rxw_buf_unref(x);
	x = rxw_buf_get_small(pool, 3000); /* too large to be kept */
	rxw_buf_unref(x);
	ck_assert_int_eq(b.used, 0);
	rxw_pool_destroy(pool);
	ck_assert_int_eq(b.used, 0);
}
END_TEST

/* Any order of takes and returns: the budget always covers the live buffers, and ends at 0. */
START_TEST(random_use)
{
	uint64_t state = test_seed();
	struct rxw_budget b;
	struct rxw_buf *held[64] = { NULL };
	struct rxw_pool *pool;
	int64_t live = 0;

	rxw_budget_init(&b, 20 * FULL);
	pool = rxw_pool_create(&b, 4 * RXW_BUF_SIZE, 3);
	for (int i = 0; i < 20000; i++) {
		size_t k = test_below(&state, 64);

		if (held[k]) {
			live -= held[k]->cap;
			rxw_buf_unref(held[k]);
			held[k] = NULL;
		} else {
			held[k] = i & 1 ? rxw_buf_get(pool)
					: rxw_buf_get_small(pool,
							    1 + test_below(&state, RXW_BUF_SIZE));
			if (held[k])
				live += held[k]->cap;
			else
				ck_assert_int_gt(live, 10 * FULL);
		}
		ck_assert_int_ge(b.used, live);
		ck_assert_int_le(b.used, b.limit);
	}
	for (int k = 0; k < 64; k++)
		rxw_buf_unref(held[k]);
	rxw_pool_destroy(pool);
	ck_assert_int_eq(b.used, 0);
}
END_TEST

/* -- Several threads on one pool, with buffers handed over between them ------------------------ */

#define THREADS 4
#define ROUNDS  5000

static struct rxw_pool *shared_pool;
static _Atomic(struct rxw_buf *) mailbox[THREADS];

static void *exchange_buffers(void *arg)
{
	uintptr_t me = (uintptr_t)arg;
	uint64_t state = me + 1;

	for (int i = 0; i < ROUNDS; i++) {
		struct rxw_buf *mine =
			i % 3 ? rxw_buf_get(shared_pool) : rxw_buf_get_small(shared_pool, 1500);
		struct rxw_buf *got;

		if (mine) {
			memset(mine->data, (int)me, 100);
			rxw_buf_ref(mine);
			rxw_buf_unref(mine);
		}
		/* Another thread drops it. */
		got = atomic_exchange(&mailbox[test_below(&state, THREADS)], mine);
		rxw_buf_unref(got);
	}
	return NULL;
}

static void run_exchange(unsigned stripes)
{
	struct rxw_budget b;
	pthread_t t[THREADS];

	rxw_budget_init(&b, 6 * FULL);
	shared_pool = rxw_pool_create_spread(&b, 2 * RXW_BUF_SIZE, 2, stripes);
	for (uintptr_t i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&t[i], NULL, exchange_buffers, (void *)i), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	for (int i = 0; i < THREADS; i++)
		rxw_buf_unref(atomic_exchange(&mailbox[i], NULL));
	ck_assert_uint_eq(rxw_pool_live(shared_pool), 0);
	ck_assert_int_le(b.peak, b.limit);
	rxw_pool_destroy(shared_pool);
	ck_assert_int_eq(b.used, 0);
}

START_TEST(threads)
{
	run_exchange(1);
}
END_TEST

START_TEST(threads_of_several_stripes)
{
	run_exchange(THREADS);
}
END_TEST

/* -- A pool with stripes: one thread's work, then another's ------------------------------------ */

struct thread_step {
	void (*run)(struct thread_step *e);
	struct rxw_pool *pool;
	struct rxw_buf *buf[4];
};

static void *thread_step_main(void *arg)
{
	struct thread_step *e = (struct thread_step *)arg;

	e->run(e);
	return NULL;
}

/* On its own thread, which has another stripe. */
static void send_on(struct thread_step *e, void (*run)(struct thread_step *e))
{
	pthread_t t;

	e->run = run;
	ck_assert_int_eq(pthread_create(&t, NULL, thread_step_main, e), 0);
	pthread_join(t, NULL);
}

static void take_four(struct thread_step *e)
{
	for (int i = 0; i < 4; i++)
		e->buf[i] = rxw_buf_get(e->pool);
}

static void take_small(struct thread_step *e)
{
	e->buf[0] = rxw_buf_get_small(e->pool, 1444);
}

static void drop_all(struct thread_step *e)
{
	for (int i = 0; i < 4; i++) {
		rxw_buf_unref(e->buf[i]);
		e->buf[i] = NULL;
	}
}

/* Idle budget of any stripe is available to others; live buffers stay charged. */
START_TEST(idle_budget_of_other_stripe)
{
	struct rxw_budget b;
	struct thread_step e = { .pool = NULL };
	struct rxw_buf *mine[4];

	rxw_budget_init(&b, 4 * FULL);
	e.pool = rxw_pool_create_spread(&b, 2 * RXW_BUF_SIZE, 8, RXW_POOL_STRIPES);
	rxw_buf_unref(rxw_buf_get_small(e.pool, 1)); /* to assign a stripe to this thread */
	send_on(&e, take_four);
	for (int i = 0; i < 4; i++)
		ck_assert_ptr_nonnull(e.buf[i]);
	ck_assert_ptr_null(rxw_buf_get(e.pool));
	ck_assert_uint_eq(rxw_pool_live(e.pool), 4 * RXW_BUF_SIZE);
	drop_all(&e);
	ck_assert_uint_eq(rxw_pool_live(e.pool), 0);
	ck_assert_int_eq(b.used, 4 * FULL);
	for (int i = 0; i < 4; i++) {
		mine[i] = rxw_buf_get(e.pool);
		ck_assert_ptr_nonnull(mine[i]);
	}
	ck_assert_ptr_null(rxw_buf_get_small(e.pool, 1));
	ck_assert_int_eq(b.used, 4 * FULL);
	for (int i = 0; i < 4; i++)
		rxw_buf_unref(mine[i]);
	rxw_pool_destroy(e.pool);
	ck_assert_int_eq(b.used, 0);
	ck_assert_int_eq(b.peak, 4 * FULL);
}
END_TEST

static void count_parts(struct thread_step *e)
{
	for (unsigned i = 0; i < 4; i++) {
		rxw_pool_use_part(i, 4);
		e->buf[i] = rxw_buf_get(e->pool);
	}
}

static void take_parts(struct thread_step *e)
{
	for (unsigned i = 4; i-- > 0;) {
		struct rxw_buf *before = e->buf[i];

		rxw_pool_use_part(i, 4);
		e->buf[i] = rxw_buf_get(e->pool);
		ck_assert_ptr_eq(e->buf[i], before);
	}
}

static void drop_but_keep(struct thread_step *e)
{
	for (int i = 0; i < 4; i++)
		rxw_buf_unref(e->buf[i]);
}

/* What a part has dropped is taken by the threads of that part only. */
START_TEST(buffers_stay_in_their_part)
{
	struct rxw_budget b;
	struct thread_step e = {.pool = NULL};

	rxw_budget_init(&b, 64 * FULL);
	e.pool = rxw_pool_create_spread(&b, 0, 8, 4);
	send_on(&e, count_parts);
	for (unsigned i = 0; i < 4; i++)
		for (unsigned k = 0; k < i; k++)
			ck_assert_ptr_ne(e.buf[i]->home, e.buf[k]->home);
	send_on(&e, drop_but_keep);
	send_on(&e, take_parts);
	/* More parts than stripes share them. */
	rxw_pool_use_part(5, 8);
	rxw_buf_unref(rxw_buf_get(e.pool));
	rxw_pool_use_part(0, 0);
	drop_all(&e);
	rxw_pool_destroy(e.pool);
	ck_assert_int_eq(b.used, 0);
}
END_TEST

/* A dropped buffer returns to its own stripe, if no other thread is using that. */
START_TEST(buffers_return_to_their_stripe)
{
	struct rxw_budget b;
	struct thread_step e = { .pool = NULL };
	struct rxw_buf *full, *small, *mine;

	rxw_budget_init(&b, 100 * FULL);
	e.pool = rxw_pool_create_spread(&b, 0, 8, RXW_POOL_STRIPES);
	mine = rxw_buf_get_small(e.pool, 1444);
	send_on(&e, take_small);
	small = e.buf[0];
	full = rxw_buf_get(e.pool);
	e.buf[0] = mine;
	e.buf[1] = full;
	send_on(&e, drop_all); /* our buffer, dropped there */
	rxw_buf_unref(small);   /* their buffer, dropped here */
	ck_assert_int_eq(b.used, FULL + 2 * (1472 + 64));
	ck_assert_ptr_eq(rxw_buf_get(e.pool), full);
	ck_assert_ptr_eq(rxw_buf_get_small(e.pool, 1444), mine);
	small = rxw_buf_get_small(e.pool, 1444); /* their buffer stayed theirs */
	ck_assert_int_eq(b.used, FULL + 3 * (1472 + 64));
	rxw_buf_unref(small);
	rxw_buf_unref(mine);
	rxw_buf_unref(full);
	rxw_pool_destroy(e.pool);
	ck_assert_int_eq(b.used, 0);
}
END_TEST

/* Buffers of several stripes outlive the destruction of their pool. */
START_TEST(destroyed_first_with_stripes)
{
	struct rxw_budget b;
	struct thread_step e = { .pool = NULL };
	struct rxw_buf *small, *full;

	rxw_budget_init(&b, 100 * FULL);
	e.pool = rxw_pool_create_spread(&b, 1 << 20, 4, 4);
	full = rxw_buf_get(e.pool);
	small = rxw_buf_get_small(e.pool, 100);
	send_on(&e, take_four);
	rxw_buf_unref(e.buf[3]);
	e.buf[3] = small;
	rxw_pool_destroy(e.pool);
	ck_assert_int_eq(b.used, 4 * FULL + 128 + 64);
	send_on(&e, drop_all);
	ck_assert_int_eq(b.used, FULL);
	memset(full->data, 1, full->cap);
	rxw_buf_unref(full);
	ck_assert_int_eq(b.used, 0);
}
END_TEST

TEST_MAIN("buf", budget_limits, objects, leases, last_in_first_out, references, destroyed_first,
	  small_buffers, idle_small_buffers_kept, idle_buffers_freed_for_small, random_use, threads,
	  threads_of_several_stripes, idle_budget_of_other_stripe, buffers_return_to_their_stripe,
	  buffers_stay_in_their_part, destroyed_first_with_stripes)
