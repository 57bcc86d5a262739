/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting in blocking functions and at queues: asleep until woken, or receiving itself if that saves the wake-up.
 */
#include <limits.h>

#include "common/cancel.h"
#include "engine/lock.h"
#include "engine/objects.h"

#define ABSENT	 RXW_MS	       /* a writer that was absent for so long leaves packets unread */
#define STAY_OUT (20 * RXW_MS) /* it then does not receive for itself for a while */
#define WORKING \
	(RXW_MS / 10) /* a reader of a long stream that was away for so long does other work */
#define BULK	 64	       /* packets: a reader that has received more waits for a long stream */

/* Marks a library thread of no endpoint, so that no handler of another call runs on it. */
static const char no_endpoint;

/*
 * Connection's lock held. May the writer of a server's call receive while it waits for room? Not if
 * it was absent since it last did, for example to read a file: its own ACKs would wait for it, too.
 */
static bool writer_may_receive(struct rxw_call *call, struct rxw_shard *s)
{
	uint64_t now;

	if (call->w.state != RXW_WRITER_WAITING || rxw_receiving() || rxw_role_wanted(s) ||
	    !rxw_on_library_thread(call->conn->ep))
		return false;
	now = rxw_now();
	if (call->sleep.received_at && now > call->sleep.received_at + ABSENT)
		call->sleep.stay_out = now + STAY_OUT;
	return now >= call->sleep.stay_out;
}

/*
 * Connection's lock held. Is a client's reader away between its reads for longer than it takes to receive a
 * window, for example to write a file? Then the listener receives, so that both work at the same time.
 */
static bool reader_works(struct rxw_call *call)
{
	uint64_t now;

	if (call->p.count.packets_received <= BULK)
		return false;
	now = rxw_now();
	if (call->sleep.received_at && now > call->sleep.received_at + WORKING)
		call->sleep.stay_out = now + STAY_OUT;
	call->sleep.received_at = 0;
	return now < call->sleep.stay_out;
}

/* Connection's lock held. Return the receive role to the listener after a writer used it. */
static void return_role(struct rxw_call *call, struct rxw_shard *s)
{
	call->sleep.received_at = 0;
	rxw_role_reclaim(s);
}

/*
 * Connection's lock held; released during the sleep. True: this thread took the free receive
 * role. A thread that may not take it asks for the listener.
 */
static bool sleep_or_take(struct rxw_call *call, struct rxw_shard *s, bool may_receive)
{
	bool role = false;

	rxw_sleeper_add(call, s);
	if (rxw_role_is_free(&s->role)) {
		role = may_receive && rxw_role_try(s);
		if (!role && rxw_role_is_free(&s->role))
			rxw_role_reclaim(s);
	}
	if (!role) {
		call->sleep.may_receive = may_receive;
		call->sleep.threads++;
		pthread_cond_wait(&call->sleep.cond, &call->conn->lock);
		call->sleep.threads--;
	}
	if (!call->sleep.threads)
		rxw_sleeper_remove(call);
	return role;
}

/*
 * Receive role: one batch. The packets that it left to this thread are verified without the role.
 * `self`: the mark of this thread. `as_listener`: it waits as a listener does; with `limit` (NULL:
 * none) so that others can end the wait. False: this thread has left the role.
 */
static bool receive_once(struct rxw_shard *s, const struct rxw_endpoint *self, bool as_listener,
			 const struct rxw_rx_limit *limit)
{
	struct rxw_verify_job *jobs;
	bool role = true;

	assert(!s->rx.limit);
	if (as_listener)
		rxw_set_library_thread((const struct rxw_endpoint *)(const void *)&no_endpoint);
	s->rx.limit = limit;
	rxw_receive_batch(s);
	s->rx.limit = NULL;
	s->rx.bulk = false;
	if (as_listener)
		rxw_set_library_thread(self);
	jobs = rxw_verify_take_own(s);
	if (jobs) {
		/* Other threads may take the role meanwhile. */
		rxw_role_leave(s);
		rxw_verify_run(jobs);
		role = rxw_role_try(s);
		rxw_verify_deliver(s, jobs, role, !role || as_listener);
	}
	if (role && rxw_role_wanted(s)) {
		rxw_role_leave(s);
		role = false;
	}
	return role;
}

void rxw_wait(struct rxw_call *call, bool (*ready)(const struct rxw_call *call))
{
	struct rxw_connection *c = call->conn;
	struct rxw_shard *s = rxw_home(c);
	bool may_receive = !c->ep->server && !rxw_receiving() && !rxw_on_library_thread(NULL);
	bool role = false, server = c->ep->server, worker;
	NOT_CANCELLED; /* it may run callbacks of other calls */

	assert(rxw_is_locked(&c->lock));
	if (rxw_tx_collecting()) {
		rxw_conn_unlock(c);
		rxw_tx_collect_end();
		rxw_conn_lock(c);
	}
	if (ready(call))
		return;
	rxw_role_blocks();
	if (may_receive && reader_works(call))
		may_receive = false;
	if (server) {
		may_receive = writer_may_receive(call, s);
		if (!may_receive && call->sleep.received_at)
			return_role(call, s);
	}
	worker = server && rxw_worker_blocked(call, RXW_BLOCKED_ON_PEER);
	if (may_receive)
		rxw_role_waiter_begin(s);
	while (!ready(call)) {
		if (!role && may_receive)
			role = rxw_role_try(s);
		if (!role)
			role = sleep_or_take(call, s, may_receive);
		if (!role)
			continue;
		call->sleep.receiving = s;
		s->rx.bulk = call->p.count.packets_received > BULK;
		s->rx.pause_us = (unsigned)(rxw_recvq_pause(&call->p.rx) / 1000);
		rxw_conn_unlock(c);
		role = receive_once(s, c->ep, server, NULL);
		rxw_conn_lock(c);
		call->sleep.receiving = NULL;
	}
	if (worker)
		rxw_worker_unblocked();
	if (may_receive)
		rxw_role_waiter_end(s);
	if (role) {
		rxw_conn_unlock(c);
		rxw_role_leave(s);
		rxw_conn_lock(c);
	}
	/*
	 * The listener that woke it may have parked since, so the role has to be returned then,
	 * too.
	 */
	if (may_receive && (server || call->p.count.packets_received > BULK))
		call->sleep.received_at = rxw_now();
}

/*
 * Receive role, which is left: receive until the queue has an entry, another thread is to receive,
 * or it is too late. True: the role may be free.
 */
static bool receive_for_queue(struct rxw_queue *q, struct rxw_shard *s, uint64_t until)
{
	const struct rxw_rx_limit limit = {.until = until, .interrupted = rxw_queue_interrupted(q)};
	bool role = true, late = false;

	while (role && !late && rxw_queue_receives(q, s)) {
		role = receive_once(s, NULL, true, &limit);
		late = rxw_now() >= until;
	}
	rxw_queue_received(q);
	if (!role)
		return false;
	rxw_role_leave(s);
	if (late)
		rxw_role_reclaim(s);
	return !late;
}

static void stop_receiving(struct rxw_queue *q, struct rxw_shard *s, bool left)
{
	rxw_role_waiter_end(s);
	rxw_queue_exit(q, s, left);
}

/*
 * The shard whose role this thread may take, of which it is a guest now; or NULL. A thread that has been late
 * too often leaves the role to the listener at once: it sleeps uncounted from now on.
 */
static struct rxw_shard *become_guest(struct rxw_queue *q)
{
	bool late;
	struct rxw_shard *s = rxw_queue_enter(q, &late);

	if (!late)
		return s;
	rxw_role_reclaim(s);
	rxw_queue_exit(q, s, false);
	return NULL;
}

/*
 * A thread that has had no event for a while goes on waiting like one that may not receive: the
 * listener sleeps longer, and blocking callers need not take turns with this thread. Its next event
 * may then wait until the listener looks for a role that one of them left (rx.h).
 */
unsigned rxw_wait_queue(struct rxw_queue *q, struct rxw_queue_event *events, unsigned max,
			uint64_t end)
{
	unsigned n = rxw_queue_take(q, events, max);
	struct rxw_shard *s = NULL;
	uint64_t until = end;
	bool left = false;
	NOT_CANCELLED;

	if (n || !end)
		return n;
	rxw_role_blocks();
	if (!rxw_on_library_thread(NULL))
		s = become_guest(q);
	if (s) {
		rxw_role_waiter_begin(s);
		until = rxw_now() + s->role.idle;
		until = until < end ? until : end;
	}
	do {
		left = s && rxw_role_try(s) && receive_for_queue(q, s, until);
		if (!left)
			rxw_queue_sleep(q, s, until);
		n = rxw_queue_take(q, events, max);
		if (!n && s && (atomic_load(&s->ep->life.quit) || rxw_now() >= until)) {
			stop_receiving(q, s, false);
			s = NULL;
			until = end;
		}
	} while (!n && (end == UINT64_MAX || rxw_now() < end));
	if (s)
		stop_receiving(q, s, left);
	return n;
}

int rxw_queue_next(rxw_queue *queue, struct rxw_queue_event *events, unsigned max, int timeout_ms)
{
	uint64_t end = 0;

	if (!queue || !events || !max || timeout_ms < -1)
		return -RXW_EINVAL;
	if (rxw_queue_inherited(queue))
		return -RXW_ESTATE;
	if (timeout_ms && rxw_must_not_wait())
		return -RXW_EDEADLK;
	if (timeout_ms) {
		rxw_tx_collect_end();
		end = timeout_ms < 0 ? UINT64_MAX : rxw_now() + (unsigned)timeout_ms * RXW_MS;
	}
	return (int)rxw_wait_queue(queue, events, max > INT_MAX ? INT_MAX : max, end);
}

/*
 * Takes entries one by one: fn() may end any call, also one whose entry is queued behind. Those that
 * are queued when it begins, not later ones: the caller may have other work.
 */
static unsigned run_claimed(struct rxw_queue *q, struct rxw_queue_event *event, rxw_queue_fn fn,
			    unsigned max)
{
	unsigned claim = rxw_queue_claim(q, max - 1), done = 0;

	rxw_callback_enter();
	do {
		rxw_clock_cache_set(rxw_now()); /* fn() may have run for long */
		fn(event);
		done++;
	} while (rxw_queue_take_claimed(q, event, &claim));
	rxw_clock_cache_set(0);
	rxw_callback_leave();
	return done;
}

int rxw_queue_run(rxw_queue *queue, rxw_queue_fn fn, unsigned max, int timeout_ms)
{
	struct rxw_queue_event event;
	int n;
	NOT_CANCELLED; /* packets that fn() caused are sent at the end */

	if (!fn || !max || !queue)
		return -RXW_EINVAL;
	if (rxw_queue_inherited(queue))
		return -RXW_ESTATE;
	if (rxw_must_not_wait())
		return -RXW_EDEADLK;
	rxw_tx_collect_end();
	n = rxw_queue_next(queue, &event, 1, timeout_ms);
	if (n <= 0)
		return n;
	rxw_tx_collect_begin();
	n = (int)run_claimed(queue, &event, fn, max > INT_MAX ? INT_MAX : max);
	rxw_tx_collect_end();
	return n;
}

/* Callbacks, and functions of rxw_queue_run(), are in a batch of their caller. */
static bool may_batch(void)
{
	return !rxw_must_not_wait() && !rxw_on_library_thread(NULL);
}

void rxw_batch_begin(void)
{
	if (may_batch())
		rxw_tx_collect_begin();
}

void rxw_batch_end(void)
{
	if (may_batch())
		rxw_tx_collect_end();
}
