/* SPDX-License-Identifier: BSD-2-Clause */
/* What the protocol's work on a connection has to be followed by, noted under its lock; dispatch/
 * does it once the lock is released. */
#include "engine/objects.h"
#include "engine/lock.h"

void rxw_effects_init(struct rxw_effects *a, struct rxw_shard *s, bool receiver)
{
	a->shard = s;
	a->receiver = receiver;
	a->count = 0;
	a->spill = NULL;
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
	a->shard->effects.ctl_held = a->out.ctl_count;
	a->out.ctl_count = 0;
}

bool rxw_effects_full(const struct rxw_effects *a)
{
	return a->count + 4 > a->room || a->out.ctl_count * 2 > a->out.ctl_room;
}

/*
 * Who sends a window that opened. A writer inside write() looks again under the lock before it
 * leaves, so it is left to it; anything looser than that would hang. A writer that sleeps costs a
 * wake-up: with `auto` the receiver does its work while it has nothing better to do.
 */
static unsigned who_sends(struct rxw_effects *a, struct rxw_call *call, bool dry)
{
	enum rxw_switch defer = a->shard->ep->config.defer;

	if (!a->receiver || defer == RXW_OFF)
		return RXW_DO_SEND;
	switch (call->tx.writer) {
	case RXW_WRITER_INSIDE:
		return 0;
	case RXW_WRITER_WAITING:
		if (defer != RXW_ON && dry)
			return RXW_DO_SEND;
		call->tx.send_wanted = true;
		return RXW_DO_WAKE;
	default:
		return RXW_DO_SEND;
	}
}

static unsigned todo_of(struct rxw_effects *a, struct rxw_call *call, unsigned events, bool dry)
{
	unsigned todo = 0;

	if ((events & RXW_OUT_READ) || ((events & RXW_OUT_READ_LATER) && dry))
		todo |= RXW_DO_WAKE;
	/*
	 * Other events say nothing about what waits for a dry socket: it stays so until its reader
	 * was woken.
	 */
	if (todo & RXW_DO_WAKE)
		call->effects.quiet = false;
	else if (events & RXW_OUT_READ_LATER)
		call->effects.quiet = true;
	if (events & RXW_OUT_WRITE)
		todo |= RXW_DO_WAKE;
	if (events & RXW_OUT_SEND)
		todo |= who_sends(a, call, dry);
	if ((events & RXW_OUT_ATTACH) && !call->attached && !call->p.client) {
		call->attached = true;
		todo |= RXW_DO_ATTACH;
	}
	if ((events & RXW_OUT_DONE) && !call->p.client)
		rxw_workers_withdraw(call);
	if (events & RXW_OUT_DONE)
		todo |= RXW_DO_WAKE | (call->p.client ? RXW_DO_WAKE_CHANNEL : 0);
	/* Another shard's holder may be who has it: of a timer, or where steering missed. */
	if ((todo & RXW_DO_WAKE) && call->sleep.receiving &&
	    call->sleep.receiving != rxw_receiving())
		todo |= RXW_DO_INTERRUPT;
	if ((todo & RXW_DO_WAKE) && !call->sleep.threads)
		todo &= ~(unsigned)RXW_DO_WAKE;
	if (todo & RXW_DO_WAKE) {
		rxw_sleeper_remove(call);
		todo |= call->sleep.may_receive ? RXW_DO_WAKE_RECEIVER : 0;
	}
	if (events & (RXW_OUT_READ | RXW_OUT_READ_LATER | RXW_OUT_WRITE | RXW_OUT_DONE)) {
		if (rxw_callback_note(call)) {
			if (rxw_callback_seals_bulk(call))
				todo |= RXW_DO_HAND_OVER_CALLBACK;
			else if (rxw_may_call_back())
				todo |= RXW_DO_CALLBACK;
			else
				rxw_timer_post_callback(call);
		}
		if (rxw_fd_note(call))
			todo |= RXW_DO_SIGNAL_FD;
	}
	return todo;
}

/*
 * Lock held; the reference goes over. Batches keep room for what one more connection usually causes;
 * a peer that begins and ends many calls in one of them may cause more, and none of it may get lost.
 */
void rxw_effects_add(struct rxw_effects *a, struct rxw_call *call, unsigned todo)
{
	if (a->count < a->room) {
		a->item[a->count++] = (struct rxw_effect){
			.call = call, .interrupt = call->sleep.receiving, .todo = todo};
	} else if (call->effects.todo) {
		call->effects.todo |= todo; /* whoever has it does this, too */
		rxw_call_unref(call);	    /* never the last one */
	} else {
		call->effects.todo = todo;
		call->effects.next = a->spill;
		a->spill = call;
	}
}

void rxw_effects_readable(struct rxw_effects *a, struct rxw_call *call)
{
	unsigned todo = todo_of(a, call, RXW_OUT_READ, true);

	if (!todo)
		return;
	rxw_call_ref(call);
	rxw_effects_add(a, call, todo);
}

void rxw_effects_collect(struct rxw_effects *a, bool dry)
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

		next = p->out.next;
		p->out.next = NULL;
		p->out.events = 0;
		p->out.linked = false;
		todo = todo_of(a, call, events, dry);
		rxw_timer_update(call);
		if (events & RXW_OUT_DONE)
			rxw_pcall_retire(p);
		if (todo)
			rxw_effects_add(a, call, todo);
		else /* Never the last one of the connection: the lock's holder has one. */
			rxw_call_unref(call);
	}
}
