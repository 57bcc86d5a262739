/* SPDX-License-Identifier: BSD-2-Clause */
/* Does what a record of effects says: control packets, handlers, callbacks, transmissions and wake-ups,
 * in that order, without any lock. */
#include <unistd.h>

#include "engine/dispatch/dispatch.h"
#include "engine/lock.h"
#include "engine/objects.h"

#define WATCHED	    256u	   /* so many after a slow handler are watched closely */
#define HANDED_OVER (100 * RXW_MS) /* a slow service is the workers' for so long */

void rxw_dispatch_held(struct rxw_shard *s)
{
	if (s->effects.ctl_held)
		rxw_ctl_send(s, s->effects.ctl, s->effects.ctl_held);
	s->effects.ctl_held = 0;
}

/* No lock held: the record is empty, and takes what had no room. */
static void unspill(struct rxw_effects *a)
{
	while (a->spill && a->count < a->room) {
		struct rxw_call *call = a->spill;
		unsigned todo;

		a->spill = call->effects.next;
		rxw_conn_lock(call->conn);
		todo = call->effects.todo;
		/* A caller that has stopped receiving meanwhile needs no interruption. */
		if (!call->sleep.receiving)
			todo &= ~(unsigned)RXW_DO_INTERRUPT;
		a->item[a->count++] =
			(struct rxw_effect){.call = call, .interrupt = call->sleep.receiving, .todo = todo};
		call->effects.todo = 0;
		rxw_conn_unlock(call->conn);
	}
}

/*
 * On the receiving thread, where the others of the batch and the socket wait for it. One that took
 * long for more than having lost its processor is not short: workers run those of its service for a
 * while. To tell the two apart costs a system call for each handler, so it is done for some after
 * one that took long.
 */
static void serve_here(struct rxw_effects *a, struct rxw_call *call)
{
	struct rxw_service *service = call->conn->service;
	uint64_t limit = call->conn->ep->config.short_limit_us * RXW_MS / 1000;
	unsigned watched = atomic_load_explicit(&service->watched, memory_order_relaxed);
	long preemptions = watched ? rxw_preemptions() : 0;
	uint64_t before = rxw_clock_cached(), after;

	call->conn->ep->upcalls->serve(call, true);
	after = rxw_now();
	rxw_clock_cache_set(after);
	if (watched)
		atomic_store_explicit(&service->watched, watched - 1, memory_order_relaxed);
	if (!limit || after - before < limit)
		return;
	/* What is ready waits for no other. */
	rxw_tx_hold(NULL);
	rxw_tx_run(a->shard);
	rxw_tx_hold(a->shard);
	if (watched && rxw_preemptions() == preemptions)
		atomic_store_explicit(&service->slow_until, after + HANDED_OVER,
				      memory_order_relaxed);
	atomic_store_explicit(&service->watched, WATCHED, memory_order_relaxed);
}

/* One that had to wait for a proof, and now finds no place: as if it had come only now. */
static bool refused(struct rxw_effects *a, struct rxw_call *call)
{
	struct rxw_connection *c = call->conn;
	struct rxw_effects b;
	bool done;

	if (atomic_load(&call->sched.reserved) || call->short_handler)
		return false;
	if (rxw_workers_reserve(c)) {
		atomic_store(&call->sched.reserved, true);
		return false;
	}
	rxw_effects_init(&b, a->shard, false);
	rxw_conn_lock(c);
	done = rxw_pcall_refuse(&call->p, &b.out);
	rxw_effects_collect(&b, false);
	rxw_conn_unlock(c);
	rxw_dispatch(&b);
	return done;
}

static void attach(struct rxw_effects *a, struct rxw_call *call)
{
	struct rxw_service *service = call->conn->service;

	/*
	 * Only a thread of the library may run handlers: a caller that receives hands over. Short
	 * calls have no place among those that wait for workers: the bound is for them as well.
	 */
	if (call->short_handler && service && a->receiver && rxw_on_library_thread(a->shard->ep)) {
		if (a->out.now >=
			    atomic_load_explicit(&service->slow_until, memory_order_relaxed) ||
		    !rxw_workers_reserve(call->conn)) {
			serve_here(a, call);
			return;
		}
		atomic_store(&call->sched.reserved, true);
	}
	if (!refused(a, call) && !rxw_workers_add(call))
		call->conn->ep->upcalls->refuse(call);
}

static void wake(struct rxw_effects *a, const struct rxw_effect *item)
{
	pthread_cond_broadcast(&item->call->sleep.cond);
	rxw_count(&a->shard->wakeups, 1);
	if (a->receiver && (item->todo & RXW_DO_WAKE_RECEIVER))
		a->shard->role.woke_caller = true;
}

static void run(struct rxw_effects *a)
{
	struct rxw_shard *s = a->shard;
	unsigned n = a->count;
	bool called_back = false;
	uint64_t before = 0;

	if (a->out.ctl_count) {
		rxw_ctl_send(s, a->out.ctl, a->out.ctl_count);
		a->out.ctl_count = 0;
	}
	rxw_verifier_grow(s->ep);
	if (!n)
		return;
	if (a->receiver) {
		rxw_tx_hold(s);
		before = rxw_clock_cache_set(a->out.now);
	}
	for (unsigned i = 0; i < n; i++) {
		if (a->item[i].todo & RXW_DO_SEND) {
			struct rxw_shard *q = rxw_tx_queue(a->item[i].call);

			if (q && q != s)
				rxw_tx_run(q);
		}
		if (a->item[i].todo & RXW_DO_HAND_OVER_CALLBACK)
			rxw_callback_hand_over(a->item[i].call);
		if (a->item[i].todo & RXW_DO_ATTACH)
			attach(a, a->item[i].call);
	}
	for (unsigned i = 0; i < n; i++) {
		struct rxw_call *call = a->item[i].call;

		if (a->item[i].todo & RXW_DO_CALLBACK) {
			called_back = true;
			if (a->receiver)
				rxw_clock_cache_set(rxw_now());
			rxw_callback_run(call);
		}
	}
	if (a->receiver) {
		rxw_tx_hold(NULL);
		if (called_back) /* handlers are timed (serve_here()), callbacks are not */
			rxw_clock_cache_set(0);
	} else {
		before = rxw_clock_cache_set(a->out.now);
		/* A handler or callback of the application may have worked for long meanwhile. */
		if (before)
			rxw_clock_cache_set(0);
	}
	rxw_tx_run(s);
	rxw_clock_cache_set(before);
	for (unsigned i = 0; i < n; i++) {
		struct rxw_call *call = a->item[i].call;

		if (a->item[i].todo & RXW_DO_WAKE)
			wake(a, &a->item[i]);
		if (a->item[i].todo & RXW_DO_INTERRUPT)
			rxw_io_wake(a->item[i].interrupt->sock);
		if (a->item[i].todo & RXW_DO_WAKE_CHANNEL)
			pthread_cond_broadcast(&call->conn->channel_free);
		if (a->item[i].todo & RXW_DO_SIGNAL_FD) {
			uint64_t one = 1;

			/*
			 * An eventfd takes 2^64 - 2 of these; a failure cannot be of use to anyone.
			 */
			if (write(call->events.fd, &one, sizeof(one)) < 0)
				rxw_count(&s->wakeups, 0);
		}
		rxw_call_unref(call);
	}
	a->count = 0;
}

void rxw_dispatch(struct rxw_effects *a)
{
	run(a);
	while (a->spill) {
		unspill(a);
		run(a);
	}
}
