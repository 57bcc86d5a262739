/* SPDX-License-Identifier: BSD-2-Clause */
/* Expiry of the timers of a connection and its calls. */
#include "engine/send/dispatch.h"
#include "engine/lock.h"
#include "engine/objects.h"
#include "engine/receive/batch.h"

#define FIRE_ROOM 16 /* effects that one connection can cause; 4 of them by the protocol core */

/* Takes over the caller's reference. */
static void add_effect(struct rxw_effects *a, struct rxw_call *call, unsigned todo)
{
	assert(a->count < a->room);
	a->item[a->count++] = (struct rxw_effect){.call = call, .todo = todo};
}

/* Connection's lock held. A writer that found no memory is told to try again. */
static unsigned callback_effects(struct rxw_call *call)
{
	if (!call->events.starved)
		return RXW_DO_CALLBACK;
	call->events.starved = false;
	if (!call->events.queued)
		rxw_callback_note(call);
	return RXW_DO_CALLBACK;
}

static void fire_timers(struct rxw_connection *c, struct rxw_effects *a)
{
	uint64_t now = a->out.now;
	struct rxw_call *call;

	if (rxw_effects_full(a) || a->room - a->count < FIRE_ROOM)
		rxw_dispatch(a);
	rxw_conn_lock(c);
	for (unsigned i = 0; i < 4; i++) {
		call = rxw_call_of(c->p.channel[i]);
		if (call && call->tx.pace_at && call->tx.pace_at <= now) {
			call->tx.pace_at = 0;
			rxw_call_ref(call);
			add_effect(a, call, RXW_DO_SEND);
		}
		if (call && rxw_pcall_deadline(&call->p) <= now)
			rxw_pcall_timer(&call->p, &a->out);
	}
	if (rxw_pconn_deadline(&c->p) <= now)
		rxw_pconn_timer(&c->p, &a->out);
	while ((call = c->timer.callbacks) && a->room - a->count > 4) {
		c->timer.callbacks = call->events.due_next;
		call->events.due = false;
		add_effect(a, call, callback_effects(call));
	}
	rxw_effects_collect(a, true);
	/* Deadlines in the past do not make the wheel spin: the next check is one tick away. */
	rxw_timer_recompute(c);
	rxw_conn_unlock(c);
}

void rxw_timer_run(struct rxw_shard *s, uint64_t now)
{
	struct rxw_effects a;

	if (!rxw_timer_due(s, now))
		return;
	rxw_effects_init(&a, s, true);
	a.out.now = now;
	rxw_timer_expire(s, &a, fire_timers);
	rxw_dispatch(&a);
}
