/* SPDX-License-Identifier: BSD-2-Clause */
/* The send role: its holder sends what is queued on a socket, in batches. */
#include "engine/send/dispatch.h"
#include "engine/lock.h"
#include "engine/objects.h"

#define TX_STAY 8 /* batches that a thread sends before it returns to its own work */

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

/* Does `s` have queued calls, no sender, and may this thread send? */
static bool needs_sender(const struct rxw_shard *s)
{
	return s != held_back && atomic_load(&s->tx.any) && !atomic_load(&s->tx.busy);
}

static bool may_send(const struct rxw_shard *s)
{
	return needs_sender(s) || (s != held_back && atomic_load(&s->tx.any) &&
				   atomic_load_explicit(&s->tx.sends_bulk, memory_order_relaxed));
}

/*
 * Sends a batch of `s`. The flag `busy` is no lock: a thread that finds it set leaves its call in
 * the queue. The holder checks the queue again after clearing the flag, so that nothing is left
 * behind. Returns false if the flag was set. The peers of a holder that sends bulk are woken meanwhile, and may have its
 * processor for milliseconds: short replies do not wait for that.
 */
static bool send_batch(struct rxw_shard *s)
{
	bool brief = atomic_exchange(&s->tx.busy, true);
	struct rxw_shard *other;
	struct rxw_effects a;

	if (brief && !atomic_load_explicit(&s->tx.sends_bulk, memory_order_relaxed))
		return false;
	rxw_effects_init(&a, s, false);
	other = rxw_tx_batch(s, &a, brief);
	rxw_dispatch(&a);
	rxw_clock_cache_set(0); /* the cached time is stale for the next batch */
	if (!brief) {
		atomic_store_explicit(&s->tx.sends_bulk, false, memory_order_relaxed);
		atomic_store(&s->tx.busy, false);
	}
	if (other)
		rxw_tx_run(other);
	/* The holder may be gone, and some of these calls may have more to send. */
	return !brief || needs_sender(s);
}

/*
 * A thread that sends for many calls must not neglect its own work: a listener its socket, at which
 * it looks after each batch; a writer its stream, of which half a window should be ready; any other
 * thread whatever it does next. Others may queue calls for as long as it sends.
 */
static bool should_stop(const struct rxw_shard *sent, unsigned batches)
{
	struct rxw_shard *receiving = rxw_receiving();
	bool low;

	if (receiving == sent)
		return rxw_on_library_thread(NULL);
	if (batches < TX_STAY)
		return false;
	if (receiving)
		return true;
	if (!writing)
		return true;
	rxw_conn_lock(writing->conn);
	low = rxw_pcall_ready(&writing->p) < rxw_pcall_most(&writing->p) / 2;
	rxw_conn_unlock(writing->conn);
	return low;
}

/* The rest is sent by the next sender, at the latest by the listener. */
static void leave_rest(struct rxw_shard *s)
{
	if (!needs_sender(s))
		return;
	atomic_store(&s->tx.left, true);
	if (atomic_load(&s->role.in_wait))
		rxw_io_wake(s->sock);
}

#define COLLECT_MAX 8

static _Thread_local struct {
	bool on;
	unsigned count;
	struct rxw_shard *shard[COLLECT_MAX];
} collected __attribute__((tls_model("initial-exec")));

/* False: the thread does not collect, or has no room. */
static bool collect_shard(struct rxw_shard *s)
{
	if (!collected.on)
		return false;
	for (unsigned i = 0; i < collected.count; i++)
		if (collected.shard[i] == s)
			return true;
	if (collected.count == COLLECT_MAX)
		return false;
	collected.shard[collected.count++] = s;
	return true;
}

void rxw_tx_collect_begin(void)
{
	collected.on = true;
}

bool rxw_tx_collecting(void)
{
	return collected.on;
}

void rxw_tx_collect_end(void)
{
	collected.on = false;
	for (unsigned i = 0; i < collected.count; i++)
		rxw_tx_run(collected.shard[i]);
	collected.count = 0;
}

void rxw_tx_forget(void)
{
	collected.on = false;
	collected.count = 0;
	held_back = NULL;
	writing = NULL;
}

void rxw_tx_run(struct rxw_shard *s)
{
	unsigned batches = 0;

	if (collect_shard(s))
		return;
	while (may_send(s) && send_batch(s)) {
		if (should_stop(s, ++batches)) {
			leave_rest(s);
			return;
		}
	}
}
