/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of wide windows. A peer may have three times of what all peers of the engine leave: three
 * quarters of the budget if it is the only one, and less with each further peer, so that the first
 * one cannot keep everything from later ones. It never has more than three quarters of the memory
 * that its received data may take, less what its other windows permit it to send. Beyond these
 * limits, calls that have less than an equal share get up to an eighth more, and others shrink.
 */
#include "base/assert.h"
#include "base/wire.h"
#include "proto/peer/wide.h"

#define LEFT_TIMES 3 /* what is left, for one peer */
#define OVER	   8 /* a limit is exceeded by this part of it, at most */
/* Of a stream without a wide window: what is advertised, and as much that waits for its reader. */
#define STREAM (2 * RXW_MAX_ACKS * RXW_MTU_DEFAULT)

void rxw_wide_init(struct rxw_wide *w, struct rxw_budget *all, uint64_t memory)
{
	w->all = all;
	w->most = (int64_t)(memory / 4 * 3);
}

static int64_t lesser_of(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t limit_of_peer(const struct rxw_wide *w)
{
	uint32_t streams = atomic_load_explicit(&w->streams, memory_order_relaxed);
	int64_t limit = w->most - (int64_t)streams * STREAM;

	if (w->all != NULL)
		limit = lesser_of(limit, LEFT_TIMES * (w->all->limit -
						       atomic_load_explicit(&w->all->used,
									    memory_order_relaxed)));
	return limit > 0 ? limit : 0;
}

static int64_t share_of_call(const struct rxw_wide *w, int64_t have, int64_t limit)
{
	uint32_t calls = atomic_load_explicit(&w->calls, memory_order_relaxed) + (have == 0);

	return limit / (calls > 0 ? calls : 1);
}

static void return_bytes(struct rxw_wide *w, int64_t bytes)
{
	atomic_fetch_sub_explicit(&w->used, bytes, memory_order_relaxed);
	if (w->all != NULL)
		rxw_budget_give(w->all, bytes);
}

/* How much more a call may have, of `more`, while the peer has `used`. */
static int64_t permitted_more(const struct rxw_wide *w, int64_t have, int64_t more, int64_t used)
{
	int64_t limit = limit_of_peer(w), room = limit - used,
		share = share_of_call(w, have, limit);

	if (have + room < share)
		room = lesser_of(share - have, room + limit / OVER);
	return lesser_of(more, room);
}

int64_t rxw_wide_grant(struct rxw_wide *w, int64_t have, int64_t want)
{
	int64_t used = atomic_load_explicit(&w->used, memory_order_relaxed), more;

	assert(have >= 0);
	assert(want >= 0);
	if (want > have) {
		do {
			more = permitted_more(w, have, want - have, used);
			if (more <= 0)
				return have;
		} while (!atomic_compare_exchange_weak_explicit(
			&w->used, &used, used + more, memory_order_relaxed, memory_order_relaxed));
		if (w->all != NULL && !rxw_budget_take(w->all, more)) {
			atomic_fetch_sub_explicit(&w->used, more, memory_order_relaxed);
			return have;
		}
		if (have == 0)
			atomic_fetch_add_explicit(&w->calls, 1, memory_order_relaxed);
		return have + more;
	}
	if (want == have)
		return have;
	return_bytes(w, have - want);
	if (want == 0)
		atomic_fetch_sub_explicit(&w->calls, 1, memory_order_relaxed);
	return want;
}

int64_t rxw_wide_excess(const struct rxw_wide *w, int64_t have)
{
	int64_t limit = limit_of_peer(w), share = share_of_call(w, have, limit);

	if (have <= share || atomic_load_explicit(&w->used, memory_order_relaxed) <= limit)
		return INT64_MAX;
	return share;
}

void rxw_wide_stream(struct rxw_wide *w, bool begins)
{
	if (begins)
		atomic_fetch_add_explicit(&w->streams, 1, memory_order_relaxed);
	else
		atomic_fetch_sub_explicit(&w->streams, 1, memory_order_relaxed);
}
