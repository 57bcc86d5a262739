/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Effects of protocol processing, recorded under a connection's lock; dispatch.c carries them out
 * once the lock is released.
 */
#include "engine/objects.h"
#include "engine/lock.h"

void rxw_effects_init(struct rxw_effects *a, struct rxw_shard *s, bool receiver)
{
	assert(!receiver || rxw_receiving() == s);
	a->shard = s;
	a->receiver = receiver;
	a->count = 0;
	a->spill = NULL;
	a->signal = NULL;
	a->item = receiver ? s->effects.item : a->few;
	a->room = receiver ? RXW_EFFECTS_ROOM : RXW_EFFECTS_FEW;
	a->out.now = rxw_clock_cached();
	a->out.stats = receiver ? &s->own : &s->stats;
	a->out.ctl = receiver ? s->effects.ctl : a->ctl;
	a->out.ctl_room = receiver ? RXW_CTL_ROOM : sizeof(a->ctl) / sizeof(a->ctl[0]);
	a->out.ctl_count = receiver ? s->effects.ctl_held : 0;
	a->out.posted = NULL;
	a->out.auth = NULL;
	if (receiver)
		s->effects.ctl_held = 0;
}

void rxw_effects_hold(struct rxw_effects *a)
{
	assert(a->receiver && !a->shard->effects.ctl_held);
	a->shard->effects.ctl_held = a->out.ctl_count;
	a->out.ctl_count = 0;
}

unsigned rxw_effects_room(const struct rxw_effects *a)
{
	return a->room - a->count;
}

bool rxw_effects_full(const struct rxw_effects *a)
{
	return a->count + 4 > a->room || a->out.ctl_count * 2 > a->out.ctl_room;
}

void rxw_effects_signal(struct rxw_effects *a, struct rxw_queue *q)
{
	if (a->signal && a->signal != q && rxw_queue_signal(a->signal) == a->shard && a->receiver)
		a->shard->role.woke_caller = true;
	a->signal = q;
}

/* Connection's lock held: events came for the callback or the queue of the call. */
static unsigned note_call_events(struct rxw_effects *a, struct rxw_call *call)
{
	unsigned todo = 0;

	if (rxw_callback_note(call)) {
		if (call->events.queue) {
			if (rxw_queue_put(call))
				rxw_effects_signal(a, call->events.queue);
		} else if (rxw_callback_seals_bulk(call)) {
			todo |= RXW_DO_HAND_OVER_CALLBACK;
		} else if (rxw_may_call_back()) {
			todo |= RXW_DO_CALLBACK;
		} else {
			rxw_timer_post_callback(call);
		}
	}
	return todo;
}

static unsigned effects_of_events(struct rxw_effects *a, struct rxw_call *call, unsigned events,
				  bool drained)
{
	unsigned todo = 0;

	if ((events & RXW_OUT_READ) || ((events & RXW_OUT_READ_LATER) && drained))
		todo |= RXW_DO_WAKE;
	/* A deferred wake-up remains deferred on other events, until the reader is woken. */
	if (todo & RXW_DO_WAKE)
		call->effects.quiet = false;
	else if (events & RXW_OUT_READ_LATER)
		call->effects.quiet = true;
	if (events & RXW_OUT_WRITE)
		todo |= RXW_DO_WAKE;
	if ((events & RXW_OUT_RELEASE) && !call->effects.releasing) {
		call->effects.releasing = true;
		todo |= RXW_DO_RELEASE;
	}
	if (events & RXW_OUT_SEND)
		todo |= RXW_DO_SEND;
	if ((events & RXW_OUT_ATTACH) && !call->attached && !call->p.client) {
		call->attached = true;
		todo |= RXW_DO_ATTACH;
	}
	if ((events & RXW_OUT_DONE) && !call->p.client)
		rxw_workers_withdraw(call);
	if (events & RXW_OUT_DONE)
		todo |= RXW_DO_WAKE;
	if ((events & RXW_OUT_DONE) && call->p.client)
		todo |= RXW_DO_ANNOUNCE | (rxw_channel_wake(call->conn) ? RXW_DO_WAKE_CHANNEL : 0);
	/*
	 * The call may be waiting in another shard's receive call: it ran a timer, or steering
	 * missed.
	 */
	if ((todo & RXW_DO_WAKE) && call->sleep.receiving &&
	    call->sleep.receiving != rxw_receiving())
		todo |= RXW_DO_INTERRUPT;
	if ((todo & RXW_DO_WAKE) && !call->sleep.threads)
		todo &= ~(unsigned)RXW_DO_WAKE;
	if (todo & RXW_DO_WAKE) {
		rxw_sleeper_remove(call);
		todo |= call->sleep.may_receive ? RXW_DO_WAKE_RECEIVER : 0;
	}
	if (events & (RXW_OUT_READ | RXW_OUT_READ_LATER | RXW_OUT_WRITE | RXW_OUT_DONE))
		todo |= note_call_events(a, call);
	return todo;
}

/*
 * A batch leaves room for the usual effects of
 * one more connection. A peer that begins and ends many calls in one batch may cause more, and none
 * may be lost: the rest goes to the spill list.
 */
void rxw_effects_add(struct rxw_effects *a, struct rxw_call *call, unsigned todo)
{
	if (a->count < a->room) {
		a->item[a->count++] = (struct rxw_effect){
			.call = call, .interrupt = call->sleep.receiving, .todo = todo};
	} else if (call->effects.todo) {
		/* The call's record carries this out as well. Never the last reference. */
		call->effects.todo |= todo;
		rxw_call_unref(call);
	} else {
		call->effects.todo = todo;
		call->effects.next = a->spill;
		a->spill = call;
	}
}

void rxw_effects_readable(struct rxw_effects *a, struct rxw_call *call)
{
	unsigned todo = effects_of_events(a, call, RXW_OUT_READ, true);

	if (!todo)
		return;
	rxw_call_ref(call);
	rxw_effects_add(a, call, todo);
}

void rxw_effects_collect(struct rxw_effects *a, bool drained)
{
	struct rxw_pcall *p = a->out.posted, *next;

	if (a->out.auth) {
		rxw_verify_auth(rxw_conn_of(a->out.auth), &a->out);
		a->out.auth = NULL;
	}
	a->out.posted = NULL;
	for (; p; p = next) {
		struct rxw_call *call = rxw_call_of(p);
		unsigned events = p->out.events, todo;

		assert(rxw_is_locked(&call->conn->lock));
		next = p->out.next;
		p->out.next = NULL;
		p->out.events = 0;
		p->out.linked = false;
		todo = effects_of_events(a, call, events, drained);
		rxw_timer_update(call);
		if (events & RXW_OUT_DONE)
			rxw_pcall_retire(p);
		if (todo)
			rxw_effects_add(a, call, todo);
		else /* Not the connection's last reference: the holder of the lock has one. */
			rxw_call_unref(call);
	}
}

/* Connection's lock held: does it have deferred work? */
static bool has_deferred_work(const struct rxw_connection *c)
{
	for (unsigned i = 0; i < 4; i++)
		if (c->p.channel[i] && rxw_call_of(c->p.channel[i])->effects.quiet)
			return true;
	return rxw_pconn_owes(&c->p);
}

void rxw_defer_until_drained(struct rxw_shard *s, struct rxw_connection *c, uint64_t now)
{
	if (c->deferred || s->effects.deferred.count == RXW_DEFERRED_MAX || !has_deferred_work(c))
		return;
	if (!s->effects.deferred.count)
		s->effects.deferred.since = now;
	c->deferred = true;
	rxw_conn_ref(c);
	s->effects.deferred.conn[s->effects.deferred.count++] = c;
}
