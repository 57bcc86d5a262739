/* SPDX-License-Identifier: BSD-2-Clause */
/* Running callbacks: on the thread that found them due, or on a verifying thread. */
#include "engine/send/dispatch.h"
#include "engine/lock.h"
#include "engine/objects.h"

#define QUANTUM 180u /* packets that a callback may write if other jobs wait for its thread */

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

void rxw_callback_run(struct rxw_call *call)
{
	run_pending_callback(call, false);
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
