/* SPDX-License-Identifier: BSD-2-Clause */
/* The send role: whoever holds it sends what is queued on a socket, in batches. */
#include "engine/dispatch/dispatch.h"
#include "engine/lock.h"
#include "engine/objects.h"

#define TX_STAY 8 /* batches that a thread sends for others before it looks around */

static _Thread_local struct rxw_shard *held_back __attribute__((tls_model("initial-exec")));

/* The call in whose write() this thread is. */
static _Thread_local struct rxw_call *writing __attribute__((tls_model("initial-exec")));

struct rxw_call *rxw_tx_writing(struct rxw_call *call)
{
	struct rxw_call *before = writing;

	writing = call;
	return before;
}

void rxw_tx_hold(struct rxw_shard *s)
{
	held_back = s;
}

/*
 * Of the threads that have bulk of many calls to send only ep->senders do so at a time: more of
 * them fill the peers' receive buffers faster than these are read, with what has left every cache
 * by then.
 */
static bool take_place(struct rxw_endpoint *ep)
{
	unsigned n = atomic_load(&ep->tx_senders);

	do {
		if (n >= ep->senders)
			return false;
	} while (!atomic_compare_exchange_weak(&ep->tx_senders, &n, n + 1));
	return true;
}

/* Is there something to send on `s` that nobody sends, and that this thread may? */
static bool waits(const struct rxw_shard *s)
{
	return s != held_back && atomic_load(&s->tx.any) && !atomic_load(&s->tx.busy);
}

/*
 * A batch of `s`. Flag and place are no locks: whoever finds them taken leaves its call in the
 * queue and goes on. The holder looks at the queue again after it gave the flag back, and at those
 * of all shards after it gave a place back (*placed), so that nothing stays behind. False: somebody
 * else will look.
 */
static bool send_some(struct rxw_shard *s, bool *placed)
{
	struct rxw_endpoint *ep = s->ep;
	struct rxw_shard *other = NULL;
	bool flag, place = ep->senders < ep->shard_count &&
			   atomic_load_explicit(&s->tx.bulk, memory_order_relaxed);

	if (place && !take_place(ep))
		return false;
	flag = !atomic_exchange(&s->tx.busy, true);
	if (flag) {
		struct rxw_effects a;

		rxw_effects_init(&a, s, false);
		other = rxw_tx_batch(s, &a);
		rxw_dispatch(&a);
		rxw_clock_cache_set(0); /* the next one is later */
		atomic_store(&s->tx.busy, false);
	}
	if (place)
		atomic_fetch_sub(&ep->tx_senders, 1);
	*placed |= place;
	if (other)
		rxw_tx_run(other);
	return flag || place;
}

/*
 * Who sends for many must not neglect what it is for: the holder of the receive role its own
 * socket, a writer its own stream, of which half a window should be ready, and anybody else, who
 * ends a call say, whatever comes next. Others may queue for as long as it sends.
 */
static bool wanted_elsewhere(const struct rxw_shard *sent, unsigned batches)
{
	struct rxw_shard *receiving = rxw_receiving();
	bool long_enough = batches >= TX_STAY, dry;

	if (!long_enough && !atomic_load_explicit(&sent->tx.bulk, memory_order_relaxed))
		return false;
	if (receiving)
		return receiving != sent;
	if (!writing)
		return long_enough;
	rxw_conn_lock(writing->conn);
	dry = rxw_pcall_ready(&writing->p) < writing->conn->ep->params.window / 2;
	rxw_conn_unlock(writing->conn);
	return dry;
}

/* What is left goes on with whoever sends next, the listeners at the latest. */
static void leave_rest(struct rxw_endpoint *ep)
{
	for (unsigned i = 0; i < ep->shard_count; i++) {
		struct rxw_shard *s = &ep->shard[i];

		if (!waits(s))
			continue;
		atomic_store(&s->tx.left, true);
		if (atomic_load(&s->role.in_wait))
			rxw_io_wake(s->sock);
	}
}

void rxw_tx_run(struct rxw_shard *s)
{
	struct rxw_endpoint *ep = s->ep;
	bool again, placed = false;
	unsigned batches = 0;

	do {
		unsigned n = placed ? ep->shard_count : 1;

		again = false;
		for (unsigned i = 0; i < n; i++) {
			struct rxw_shard *t = &ep->shard[(s->index + i) % ep->shard_count];

			if (!waits(t))
				continue;
			again |= send_some(t, &placed);
			if (wanted_elsewhere(t, ++batches)) {
				leave_rest(ep);
				return;
			}
		}
	} while (again);
}
