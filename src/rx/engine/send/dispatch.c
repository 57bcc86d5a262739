/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Carries out recorded effects without any lock: control packets, handlers, transmissions, wake-ups and callbacks, in
 * that order.
 */
#include <unistd.h>

#include "common/cancel.h"
#include "engine/lock.h"
#include "engine/objects.h"

#define CALLBACK_SLICE RXW_MS /* ns: then the listener looks for packets */
#define QUANTUM	       180u /* packets that a callback may write if other jobs wait for its thread */
#define DEFERRED_MAX \
	RXW_MS		 /* longest deferral until the socket is drained, by the times of batches */
#define RELEASE_STEP 128 /* runs of a queue: more than a batch brings */

static void call_back(struct rxw_call *call, rxw_call_fn fn, unsigned events, void *arg)
{
	struct rxw_called called = {call->conn->ep->engine, "callback", call->conn->p.service};

	rxw_callback_enter();
	pthread_cleanup_push(rxw_log_exit, &called);
	fn(call, events, arg);
	pthread_cleanup_pop(0);
	rxw_callback_leave();
}

/*
 * Runs the callback until no events are pending. With `quantum` it runs once: events that came
 * meanwhile are reported by a further job.
 */
static void run_pending_callback(struct rxw_call *call, bool quantum)
{
	struct rxw_connection *c = call->conn;
	bool handed_over = false;

	rxw_conn_lock(c);
	if (call->events.queue) {
		struct rxw_queue *q = call->events.queue;
		bool signal = call->events.pending && !call->ended && rxw_queue_put(call);

		rxw_conn_unlock(c);
		if (signal)
			rxw_queue_signal(q);
		return;
	}
	call->events.queued = false;
	while (call->events.pending && !call->events.busy && !call->ended) {
		rxw_call_fn fn = call->events.callback;
		void *arg = call->events.arg;
		unsigned events = rxw_events_now(call);

		call->events.pending = false;
		if (!fn || !events)
			continue;
		call->events.busy = true;
		call->events.thread = pthread_self();
		call->events.quantum_end = quantum ? rxw_pcall_next_seq(&call->p) + QUANTUM : 0;
		rxw_conn_unlock(c);
		call_back(call, fn, events, arg);
		rxw_conn_lock(c);
		assert(call->events.busy && pthread_equal(call->events.thread, pthread_self()));
		call->events.pending |= rxw_callback_quantum_used(call);
		call->events.quantum_end = 0;
		call->events.busy = false;
		/* The end of the call, or a change of its callback, may wait for this. */
		pthread_cond_broadcast(&call->sleep.cond);
		if (call->ended || !call->events.pending)
			break;
		handed_over = quantum || rxw_callback_seals_bulk(call);
		if (handed_over) {
			call->events.queued = true;
			break;
		}
	}
	rxw_conn_unlock(c);
	if (handed_over)
		rxw_callback_hand_over(call);
}

void rxw_callback_run_quantum(struct rxw_call *call)
{
	struct rxw_shard *s = rxw_home(call->conn);

	assert(!rxw_receiving());
	rxw_set_library_thread(s->ep);
	/* Send everything at once: each burst by itself would wake the peer. */
	rxw_tx_hold(s);
	run_pending_callback(call, true);
	rxw_tx_hold(NULL);
	rxw_tx_run(s);
	rxw_set_library_thread(NULL);
}

void rxw_callback_hand_over(struct rxw_call *call)
{
	if (rxw_verify_callback(call))
		return;
	rxw_conn_lock(call->conn);
	rxw_timer_post_callback(call);
	rxw_conn_unlock(call->conn);
}

void rxw_dispatch_held(struct rxw_shard *s)
{
	if (s->effects.ctl_held)
		rxw_ctl_send(s, s->effects.ctl, s->effects.ctl_held);
	s->effects.ctl_held = 0;
}

/* No lock held. Refills the empty record from its spill list. */
static void refill_record(struct rxw_effects *a)
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

static int32_t run_handler(struct rxw_call *call)
{
	const struct rxw_service *service = call->conn->service;
	struct rxw_called called = {call->conn->ep->engine, "handler", service->id};
	int32_t code;

	pthread_cleanup_push(rxw_log_exit, &called);
	code = service->handler(call, service->context);
	pthread_cleanup_pop(0);
	return code;
}

/* Connection's lock held. False: the call has failed, perhaps now, since the endpoint or the service ends. */
static bool may_begin(struct rxw_call *call, struct rxw_out *out)
{
	const struct rxw_service *service = call->conn->service;
	int32_t code = 0;

	if (atomic_load(&call->conn->ep->life.stopping))
		code = RXW_RESTARTING;
	else if (service && atomic_load(&service->removed))
		code = RXW_INVALID_OPERATION;
	if (code && call->p.state == RXW_CS_PRECALL)
		rxw_pcall_fail(&call->p, code, RXW_ORIGIN_LOCAL, true, out);
	return !call->p.error;
}

int32_t rxw_serve_call(struct rxw_call *call, enum rxw_server by)
{
	struct rxw_connection *c = call->conn;
	struct rxw_shard *s = rxw_home(c);
	struct rxw_effects a;
	int32_t code;

	rxw_change_begin(&a, c);
	if (may_begin(call, &a.out)) {
		rxw_call_live(call);
		rxw_pcall_attach(&call->p, &a.out);
	}
	code = call->p.error;
	rxw_change_end(&a, c);
	if (!code) {
		rxw_count(by == RXW_BY_RECEIVER ? &s->handlers_inline : &s->handlers_worker, 1);
		call->r.brief = by != RXW_BY_WORKER;
		if (by == RXW_BY_LISTENER)
			rxw_clock_cache_set(0);
		code = run_handler(call);
		if (by != RXW_BY_WORKER)
			rxw_clock_cache_set(rxw_now());
		/* It may have been ended already; the caller of this function holds a reference. */
		if (rxw_call_is_deferred(call))
			return 0;
	}
	if (by == RXW_BY_LISTENER)
		rxw_tx_hold(s);
	c->ep->upcalls->finish(call, code);
	if (by == RXW_BY_LISTENER)
		rxw_tx_hold(NULL);
	return code;
}

/* Defers the call and queues it. True: the queue of its service has to be signalled. */
static bool deliver_to_queue(struct rxw_call *call)
{
	struct rxw_connection *c = call->conn;
	struct rxw_effects a;
	bool signal = false;

	assert(!call->p.client && c->service->queue);
	rxw_change_begin(&a, c);
	if (may_begin(call, &a.out)) {
		rxw_pcall_attach(&call->p, &a.out);
		rxw_call_relax(call);
		rxw_deferral_begin(call);
		atomic_store(&call->events.fresh, true);
		rxw_queue_join(call, c->service->queue, c->service->context);
		signal = rxw_queue_put(call);
	}
	rxw_change_end(&a, c);
	return signal;
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
	rxw_serve_call(call, RXW_BY_RECEIVER);
	after = rxw_clock_cached();
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

	if (rxw_workers_reserved(call) || call->is_inline)
		return false;
	if (rxw_workers_reserve(c)) {
		rxw_workers_assign(call);
		return false;
	}
	code = rxw_busy_code(c->service);
	if (code) {
		rxw_call_refuse(call, code);
		return true;
	}
	rxw_effects_init(&b, a->shard, false);
	rxw_conn_lock(c);
	done = rxw_pcall_refuse(&call->p, &b.out);
	rxw_change_end(&b, c);
	return done;
}

static void attach_handler(struct rxw_effects *a, struct rxw_call *call)
{
	struct rxw_service *service = call->conn->service;

	assert(!call->p.client);
	if (service && service->queue) {
		if (deliver_to_queue(call))
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
		rxw_workers_assign(call);
	}
	if (!refuse_without_room(a, call) &&
	    !rxw_workers_add(call, a->receiver && a->shard->role.serves))
		rxw_call_refuse(call, 0);
}

static void wake_waiting_threads(struct rxw_effects *a, const struct rxw_effect *item)
{
	pthread_cond_broadcast(&item->call->sleep.cond);
	rxw_count(&a->shard->wakeups, 1);
	if (a->receiver && (item->todo & RXW_DO_WAKE_RECEIVER))
		a->shard->role.woke_caller = true;
}

/* No lock held. False: queues of the call have more to release. */
static __attribute__((noinline)) bool release_some(struct rxw_call *call)
{
	bool done;

	rxw_conn_lock(call->conn);
	done = rxw_pcall_release(&call->p, RELEASE_STEP);
	call->effects.releasing = !done;
	rxw_conn_unlock(call->conn);
	return done;
}

void rxw_release_step(struct rxw_shard *s)
{
	struct rxw_call *call = s->effects.release, *next;

	if (!call)
		return;
	next = call->effects.release_next; /* once it is done, another list may have it */
	if (!release_some(call))
		return;
	s->effects.release = next;
	rxw_call_unref(call);
}

/* A receiver does a step after each batch: others wait for it, and a peer decides how many there are. */
static __attribute__((cold, noinline)) void release_queues(struct rxw_call *call)
{
	struct rxw_shard *s = rxw_receiving();

	if (!s) {
		while (!release_some(call))
			;
		return;
	}
	rxw_call_ref(call);
	call->effects.release_next = s->effects.release;
	s->effects.release = call;
}

/* The oldest of those that were left; with its reference. */
static struct rxw_call *take_callback(struct rxw_shard *s)
{
	unsigned at = s->effects.first_callback;

	if (!s->effects.callbacks)
		return NULL;
	s->effects.callbacks--;
	s->effects.first_callback = (at + 1) % RXW_CALLBACKS_ROOM;
	return s->effects.callback[at];
}

static void run_left_callback(struct rxw_call *call)
{
	run_pending_callback(call, false);
	rxw_call_unref(call);
	rxw_clock_cache_set(0); /* it may have run for long */
}

/* Takes over the reference. */
static void leave_callback(struct rxw_shard *s, struct rxw_call *call)
{
	unsigned at;

	if (s->effects.callbacks == RXW_CALLBACKS_ROOM)
		run_left_callback(take_callback(s));
	at = (s->effects.first_callback + s->effects.callbacks++) % RXW_CALLBACKS_ROOM;
	s->effects.callback[at] = call;
}

/* Handlers, and transmissions on other shards. */
static void begin_effect(struct rxw_effects *a, const struct rxw_effect *item)
{
	if (item->todo & RXW_DO_SEND) {
		struct rxw_shard *q = rxw_tx_queue(item->call);

		if (q && q != a->shard)
			rxw_tx_run(q);
	}
	if (item->todo & RXW_DO_HAND_OVER_CALLBACK)
		rxw_callback_hand_over(item->call);
	if (item->todo & RXW_DO_ATTACH)
		attach_handler(a, item->call);
}

static void end_effect(struct rxw_effects *a, const struct rxw_effect *item)
{
	struct rxw_call *call = item->call;

	if (item->todo & RXW_DO_WAKE)
		wake_waiting_threads(a, item);
	if (item->todo & RXW_DO_INTERRUPT)
		rxw_io_wake(item->interrupt->sock);
	if (item->todo & RXW_DO_WAKE_CHANNEL)
		pthread_cond_signal(&call->conn->channel_free);
	if ((item->todo & RXW_DO_ANNOUNCE) &&
	    atomic_load_explicit(&call->conn->channel_wanted, memory_order_relaxed))
		rxw_channel_announce(call->conn);
	if (item->todo & RXW_DO_RELEASE)
		release_queues(call);
	if (!(item->todo & RXW_DO_CALLBACK)) {
		rxw_call_unref(call);
	} else if (a->receiver) {
		leave_callback(a->shard, call);
	} else {
		rxw_clock_cache_set(0);
		run_left_callback(call);
	}
}

static void carry_out_effects(struct rxw_effects *a)
{
	struct rxw_shard *s = a->shard;
	unsigned n = a->count;
	uint64_t before;

	if (a->out.ctl_count) {
		rxw_ctl_send(s, a->out.ctl, a->out.ctl_count);
		a->out.ctl_count = 0;
	}
	rxw_verifier_grow(s->ep);
	if (!n)
		return;
	assert(n <= a->room);
	before = rxw_clock_cache_set(a->out.now);
	if (a->receiver)
		rxw_tx_hold(s);
	for (unsigned i = 0; i < n; i++)
		begin_effect(a, &a->item[i]);
	if (a->receiver)
		rxw_tx_hold(NULL);
	else if (before) /* in a handler or callback, which may have run for long since then */
		rxw_clock_cache_set(0);
	/* Ready packets leave first: the peer processes them while callbacks write the next ones. */
	rxw_tx_run(s);
	rxw_clock_cache_set(before);
	for (unsigned i = 0; i < n; i++)
		end_effect(a, &a->item[i]);
	a->count = 0;
}

void rxw_dispatch_callbacks(struct rxw_shard *s)
{
	bool listens = rxw_on_library_thread(NULL);
	struct rxw_call *call = take_callback(s);
	uint64_t now, end;
	NOT_CANCELLED;

	if (!call)
		return;
	assert(rxw_receiving() == s);
	now = rxw_now();
	end = listens ? now + CALLBACK_SLICE : UINT64_MAX;
	rxw_tx_hold(s);
	for (; call; call = now < end ? take_callback(s) : NULL) {
		rxw_clock_cache_set(now);
		run_left_callback(call);
		now = rxw_now();
	}
	rxw_tx_hold(NULL);
	rxw_tx_run(s);
}

bool rxw_deferred_full(const struct rxw_shard *s)
{
	return s->effects.deferred.count == RXW_DEFERRED_MAX;
}

bool rxw_deferred_overdue(const struct rxw_shard *s, uint64_t now)
{
	return s->effects.deferred.count && now - s->effects.deferred.since >= DEFERRED_MAX;
}

/*
 * The socket is drained, or work has been deferred for DEFERRED_MAX: do the deferred ACKs and
 * wake-ups.
 */
void rxw_deferred_complete(struct rxw_shard *s, struct rxw_effects *a)
{
	for (unsigned i = 0; i < s->effects.deferred.count; i++) {
		struct rxw_connection *c = s->effects.deferred.conn[i];

		if (rxw_effects_full(a))
			rxw_dispatch(a);
		rxw_conn_lock(c);
		assert(c->deferred);
		c->deferred = false;
		rxw_pconn_batch_end(&c->p, true, &a->out);
		for (unsigned k = 0; k < 4; k++) {
			struct rxw_call *call = rxw_call_of(c->p.channel[k]);

			if (!call || !call->effects.quiet)
				continue;
			call->effects.quiet = false;
			rxw_effects_readable(a, call);
		}
		rxw_effects_collect(a, true);
		rxw_conn_unlock(c);
		rxw_conn_unref(c);
	}
	s->effects.deferred.count = 0;
}

void rxw_dispatch_forget(struct rxw_shard *s)
{
	struct rxw_call *call;

	while (s->effects.release)
		rxw_release_step(s);
	while ((call = take_callback(s)) != NULL)
		rxw_call_unref(call);
	while (s->effects.deferred.count)
		rxw_conn_unref(s->effects.deferred.conn[--s->effects.deferred.count]);
}

void rxw_change_begin(struct rxw_effects *a, struct rxw_connection *c)
{
	rxw_effects_init(a, rxw_home(c), false);
	rxw_conn_lock(c);
}

void rxw_change_end(struct rxw_effects *a, struct rxw_connection *c)
{
	rxw_effects_collect(a, false);
	rxw_conn_unlock(c);
	rxw_dispatch(a);
}

void rxw_dispatch(struct rxw_effects *a)
{
	NOT_CANCELLED;

	carry_out_effects(a);
	while (a->spill) {
		refill_record(a);
		carry_out_effects(a);
	}
	rxw_effects_signal(a, NULL);
}
