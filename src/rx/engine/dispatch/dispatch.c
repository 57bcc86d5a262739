/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Carries out recorded effects without any lock: control packets, handlers, callbacks,
 * transmissions and wake-ups, in that order.
 */
#include <unistd.h>

#include "common/cancel.h"
#include "engine/dispatch/dispatch.h"
#include "engine/lock.h"
#include "engine/objects.h"
#include "engine/sched/quick.h"

void rxw_dispatch_held(struct rxw_shard *s)
{
	if (s->effects.ctl_held)
		rxw_ctl_send(s, s->effects.ctl, s->effects.ctl_held);
	s->effects.ctl_held = 0;
}

/* No lock held. Refills the empty record from its spill list. */
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
		a->item[a->count++] = (struct rxw_effect){
			.call = call, .interrupt = call->sleep.receiving, .todo = todo};
		call->effects.todo = 0;
		rxw_conn_unlock(call->conn);
	}
}

/*
 * Runs a short handler on the receiving thread, where the rest of the batch and the socket wait for
 * it.
 */
static void serve_inline(struct rxw_effects *a, struct rxw_call *call)
{
	struct rxw_service *service = call->conn->service;
	struct rxw_run run;
	uint64_t after;

	rxw_run_begin(&run, service, rxw_clock_cached());
	call->conn->ep->upcalls->serve(call, RXW_BY_RECEIVER);
	after = rxw_now();
	rxw_clock_cache_set(after);
	if (!rxw_run_end(&run, service, after))
		return;
	/* Send what is ready without waiting for further handlers. */
	rxw_tx_hold(NULL);
	rxw_tx_run(a->shard);
	rxw_tx_hold(a->shard);
}

/*
 * A call that waited until its peer's address was validated has no reservation yet. True: there is
 * no room for it now, and it was refused.
 */
static bool refuse_without_room(struct rxw_effects *a, struct rxw_call *call)
{
	struct rxw_connection *c = call->conn;
	struct rxw_effects b;
	int32_t code;
	bool done;

	if (atomic_load(&call->sched.reserved) || call->is_inline)
		return false;
	if (rxw_workers_reserve(c)) {
		atomic_store(&call->sched.reserved, true);
		return false;
	}
	code = rxw_busy_code(c->service);
	if (code) {
		c->ep->upcalls->refuse(call, code);
		return true;
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

	if (service && service->queue) {
		if (call->conn->ep->upcalls->deliver(call))
			rxw_effects_signal(a, service->queue);
		return;
	}
	/*
	 * Only library threads may run handlers: a caller that receives hands the call over. Short
	 * calls have no reservation, and need one if workers run them: the bound applies to them as
	 * well.
	 */
	if (call->is_inline && service && a->receiver && rxw_on_library_thread(a->shard->ep)) {
		if (!rxw_run_was_slow(service, a->out.now) || !rxw_workers_reserve(call->conn)) {
			serve_inline(a, call);
			return;
		}
		atomic_store(&call->sched.reserved, true);
	}
	if (!refuse_without_room(a, call) &&
	    !rxw_workers_add(call, a->receiver && a->shard->role.serves))
		call->conn->ep->upcalls->refuse(call, 0);
}

static void wake(struct rxw_effects *a, const struct rxw_effect *item)
{
	pthread_cond_broadcast(&item->call->sleep.cond);
	rxw_count(&a->shard->wakeups, 1);
	if (a->receiver && (item->todo & RXW_DO_WAKE_RECEIVER))
		a->shard->role.woke_caller = true;
}

static void announce_channel(struct rxw_connection *c)
{
	if (atomic_load_explicit(&c->channel_wanted, memory_order_relaxed))
		rxw_channel_announce(c);
}

static void run(struct rxw_effects *a)
{
	struct rxw_shard *s = a->shard;
	unsigned n = a->count;
	bool called_back = false, first = false;
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
			first |= (a->item[i].todo & RXW_DO_CALLBACK) != 0;
		}
		if (a->item[i].todo & RXW_DO_HAND_OVER_CALLBACK)
			rxw_callback_hand_over(a->item[i].call);
		if (a->item[i].todo & RXW_DO_ATTACH)
			attach(a, a->item[i].call);
	}
	/* Ready packets leave first: the peer processes them while callbacks write the next ones. */
	if (a->receiver && first) {
		rxw_tx_hold(NULL);
		rxw_tx_run(s);
		rxw_tx_hold(s);
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
		if (called_back) /* handlers are timed (serve_inline()), callbacks are not */
			rxw_clock_cache_set(0);
	} else {
		before = rxw_clock_cache_set(a->out.now);
		/* A handler or callback may have run for long meanwhile. */
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
			pthread_cond_signal(&call->conn->channel_free);
		if (a->item[i].todo & RXW_DO_ANNOUNCE)
			announce_channel(call->conn);
		if (a->item[i].todo & RXW_DO_SIGNAL_FD) {
			uint64_t one = 1;

			/*
			 * Fails only if the counter would exceed 2^64 - 2, and then it is readable
			 * anyway.
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
	NOT_CANCELLED;

	run(a);
	while (a->spill) {
		unspill(a);
		run(a);
	}
	rxw_effects_signal(a, NULL);
}
