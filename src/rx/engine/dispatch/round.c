/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rounds of callers. A batch of replies wakes several callers that make their next calls at once. If
 * they are more than the processors, they run one after another, and each would send one datagram
 * and wake the server for it. So each leaves its request in the send queue, and the last one sends
 * all of them. A caller that is not waited for, or comes too late, sends at once.
 */
#include "engine/dispatch/dispatch.h"
#include "engine/objects.h"

#define ROUND_TIME  (200 * RXW_MS / 1000) /* ns: how long a request may be left to other callers */
#define ROUND_GUARD (2 * ROUND_TIME)	  /* ns: after that the first caller sends for all */
/* Batches without a round after one in which others did not come; doubled each time in a row. */
#define PAUSE_MIN   4u
#define PAUSE_MAX   1024u

void rxw_round_begin(struct rxw_shard *s, unsigned callers, uint64_t now)
{
	struct rxw_round *r = &s->tx.round;
	unsigned pause = atomic_load_explicit(&r->pause, memory_order_relaxed);

	if (callers <= s->ep->engine->cpus)
		return;
	if (pause) {
		atomic_store_explicit(&r->pause, pause - 1, memory_order_relaxed);
		return;
	}
	if (rxw_round_open(s) && now < atomic_load_explicit(&r->until, memory_order_relaxed))
		atomic_fetch_add(&r->awaited, (int)callers);
	else
		atomic_store(&r->awaited, (int)callers);
	atomic_store_explicit(&r->until, now + ROUND_TIME, memory_order_relaxed);
}

bool rxw_round_open(const struct rxw_shard *s)
{
	return atomic_load_explicit(&s->tx.round.awaited, memory_order_relaxed) > 0;
}

/*
 * The request is queued already. A sender raises `sent` before it looks at the queue, so it finds the
 * requests of all threads that read the old value. The guard of a round is awake or asleep in
 * rxw_wait() until `sent` is raised.
 */
bool rxw_round_leave(struct rxw_shard *s, uint64_t now, struct rxw_left *left)
{
	struct rxw_round *r = &s->tx.round;
	unsigned sent = atomic_load(&r->sent); /* before this thread ceases to be awaited */

	if (now >= atomic_load_explicit(&r->until, memory_order_relaxed)) {
		atomic_store(&r->awaited, 0);
		atomic_fetch_add(&r->sent, 1);
		return false;
	}
	if (atomic_fetch_sub(&r->awaited, 1) <= 1) {
		atomic_store_explicit(&r->penalty, 0, memory_order_relaxed);
		atomic_fetch_add(&r->sent, 1);
		return false;
	}
	if (atomic_exchange(&r->guarded, sent + 1) != sent + 1)
		*left = (struct rxw_left){.guard = true, .round = sent, .until = now + ROUND_GUARD};
	rxw_count(&r->left, 1);
	return true;
}

void rxw_round_guard(struct rxw_shard *s, const struct rxw_left *left)
{
	struct rxw_round *r = &s->tx.round;
	unsigned penalty = 2 * atomic_load_explicit(&r->penalty, memory_order_relaxed);

	if (atomic_load(&r->sent) != left->round)
		return;
	atomic_store(&r->awaited, 0);
	atomic_fetch_add(&r->sent, 1);
	if (atomic_load(&s->tx.any)) {
		penalty = penalty < PAUSE_MIN ? PAUSE_MIN : penalty > PAUSE_MAX ? PAUSE_MAX : penalty;
		atomic_store_explicit(&r->penalty, penalty, memory_order_relaxed);
		atomic_store_explicit(&r->pause, penalty, memory_order_relaxed);
		rxw_count(&r->missed, 1);
	}
	rxw_tx_run(s);
}
