/* SPDX-License-Identifier: BSD-2-Clause */
/* What follows from the protocol's work: control packets, transmissions, wake-ups, handlers,
 * callbacks, in that order. */
#include <unistd.h>

#include "engine/internal.h"
#include "engine/lock.h"

#define WATCHED	    256u	     /* so many after a slow handler are watched closely */
#define HANDED_OVER (100 * RXW_MS)   /* a slow service is the workers' for so long */

void rxw_actions_init(struct rxw_actions *a, struct rxw_shard *s, bool receiver)
{
	a->shard = s;
	a->receiver = receiver;
	a->count = 0;
	a->spill = NULL;
	a->item = receiver ? s->actions : a->few;
	a->room = receiver ? RXW_ACTIONS_ROOM : RXW_ACTIONS_FEW;
	a->out.now = rxw_now_kept();
	a->out.stats = receiver ? &s->own : &s->stats;
	a->out.ctl = receiver ? s->ctl : a->ctl;
	a->out.ctl_room = receiver ? RXW_CTL_ROOM : sizeof(a->ctl) / sizeof(a->ctl[0]);
	a->out.ctl_count = receiver ? s->ctl_held : 0;
	a->out.touched = NULL;
	a->out.auth = NULL;
	if (receiver)
		s->ctl_held = 0;
}

void rxw_actions_hold(struct rxw_actions *a)
{
	a->shard->ctl_held = a->out.ctl_count;
	a->out.ctl_count = 0;
}

void rxw_actions_held(struct rxw_shard *s)
{
	if (s->ctl_held)
		rxw_ctl_send(s, s->ctl, s->ctl_held);
	s->ctl_held = 0;
}

bool rxw_actions_full(const struct rxw_actions *a)
{
	return a->count + 4 > a->room || a->out.ctl_count * 2 > a->out.ctl_room;
}

/*
 * Who sends a window that opened. A writer inside write() looks again under the lock before it
 * leaves, so it is left to it; anything looser than that would hang. A writer that sleeps costs a
 * wake-up: with `auto` the receiver does its work while it has nothing better to do.
 */
static unsigned who_sends(struct rxw_actions *a, struct rxw_call *call, bool dry)
{
	enum rxw_switch defer = a->shard->ep->config.defer;

	if (!a->receiver || defer == RXW_OFF)
		return RXW_TODO_SEND;
	switch (call->writer) {
	case RXW_WRITER_INSIDE:
		return 0;
	case RXW_WRITER_WAITING:
		if (defer != RXW_ON && dry)
			return RXW_TODO_SEND;
		call->send_wanted = true;
		return RXW_TODO_WAKE;
	default:
		return RXW_TODO_SEND;
	}
}

static unsigned todo_of(struct rxw_actions *a, struct rxw_call *call, unsigned events, bool dry)
{
	unsigned todo = 0;

	if ((events & RXW_OUT_READ) || ((events & RXW_OUT_QUIET) && dry))
		todo |= RXW_TODO_WAKE;
	/*
	 * Other events say nothing about what waits for a dry socket: it stays so until its reader
	 * was woken.
	 */
	if (todo & RXW_TODO_WAKE)
		call->quiet = false;
	else if (events & RXW_OUT_QUIET)
		call->quiet = true;
	if (events & RXW_OUT_WRITE)
		todo |= RXW_TODO_WAKE;
	if (events & RXW_OUT_SEND)
		todo |= who_sends(a, call, dry);
	if ((events & RXW_OUT_ATTACH) && !call->attached && !call->p.client) {
		call->attached = true;
		todo |= RXW_TODO_ATTACH;
	}
	if ((events & RXW_OUT_DONE) && !call->p.client)
		rxw_workers_withdraw(call);
	if (events & RXW_OUT_DONE)
		todo |= RXW_TODO_WAKE | (call->p.client ? RXW_TODO_CHANNEL : 0);
	/* Another shard's holder may be who has it: of a timer, or where steering missed. */
	if ((todo & RXW_TODO_WAKE) && call->receiving && call->receiving != rxw_receiving())
		todo |= RXW_TODO_KICK;
	if ((todo & RXW_TODO_WAKE) && !call->sleepers)
		todo &= ~(unsigned)RXW_TODO_WAKE;
	if (todo & RXW_TODO_WAKE) {
		rxw_told(call);
		todo |= call->comes_back ? RXW_TODO_CALLER : 0;
	}
	if (events & (RXW_OUT_READ | RXW_OUT_QUIET | RXW_OUT_WRITE | RXW_OUT_DONE)) {
		if (rxw_callback_note(call)) {
			if (rxw_callback_seals(call))
				todo |= RXW_TODO_AWAY;
			else if (rxw_may_call_back())
				todo |= RXW_TODO_CALLBACK;
			else
				rxw_timer_call_back(call);
		}
		if (rxw_fd_note(call))
			todo |= RXW_TODO_FD;
	}
	return todo;
}

/*
 * Lock held; the reference goes over. Batches keep room for what one more connection usually causes;
 * a peer that begins and ends many calls in one of them may cause more, and none of it may get lost.
 */
static void add(struct rxw_actions *a, struct rxw_call *call, unsigned todo)
{
	if (a->count < a->room) {
		a->item[a->count++] = (struct rxw_action){
			.call = call, .kick = call->receiving, .todo = todo};
	} else if (call->spill_todo) {
		call->spill_todo |= todo; /* whoever has it does this, too */
		rxw_call_unref(call);	  /* never the last one */
	} else {
		call->spill_todo = todo;
		call->spill_next = a->spill;
		a->spill = call;
	}
}

/* No lock held: the record is empty, and takes what had no room. */
static void unspill(struct rxw_actions *a)
{
	while (a->spill && a->count < a->room) {
		struct rxw_call *call = a->spill;
		unsigned todo;

		a->spill = call->spill_next;
		rxw_conn_lock(call->conn);
		todo = call->spill_todo;
		/* A caller that has stopped receiving meanwhile needs no interruption. */
		if (!call->receiving)
			todo &= ~(unsigned)RXW_TODO_KICK;
		a->item[a->count++] = (struct rxw_action){
			.call = call, .kick = call->receiving, .todo = todo};
		call->spill_todo = 0;
		rxw_conn_unlock(call->conn);
	}
}

void rxw_actions_readable(struct rxw_actions *a, struct rxw_call *call)
{
	unsigned todo = todo_of(a, call, RXW_OUT_READ, true);

	if (!todo)
		return;
	rxw_call_ref(call);
	add(a, call, todo);
}

void rxw_actions_collect(struct rxw_actions *a, bool dry)
{
	struct rxw_pcall *p = a->out.touched, *next;

	if (a->out.auth) {
		rxw_verify_auth(rxw_conn_of(a->out.auth), &a->out);
		a->out.auth = NULL;
	}
	a->out.touched = NULL;
	for (; p; p = next) {
		struct rxw_call *call = rxw_call_of(p);
		unsigned events = p->out_events, todo;

		next = p->out_next;
		p->out_next = NULL;
		p->out_events = 0;
		p->out_linked = false;
		todo = todo_of(a, call, events, dry);
		rxw_timer_update(call);
		if (events & RXW_OUT_DONE)
			rxw_pcall_retire(p);
		if (todo)
			add(a, call, todo);
		else /* Never the last one of the connection: the lock's holder has one. */
			rxw_call_unref(call);
	}
}

/*
 * On the receiving thread, where the others of the batch and the socket wait for it. One that took
 * long for more than having lost its processor is not short: workers run those of its service for a
 * while. To tell the two apart costs a system call for each handler, so it is done for some after
 * one that took long.
 */
static void serve_here(struct rxw_actions *a, struct rxw_call *call)
{
	struct rxw_service *service = call->conn->service;
	uint64_t limit = call->conn->ep->config.short_limit_us * RXW_MS / 1000;
	unsigned watched = atomic_load_explicit(&service->watched, memory_order_relaxed);
	long preemptions = watched ? rxw_preemptions() : 0;
	uint64_t before = rxw_now_kept(), after;

	rxw_serve(call, true);
	after = rxw_now();
	rxw_now_keep(after);
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
static bool refused(struct rxw_actions *a, struct rxw_call *call)
{
	struct rxw_connection *c = call->conn;
	struct rxw_actions b;
	bool done;

	if (atomic_load(&call->placed) || call->short_handler)
		return false;
	if (rxw_workers_place(c)) {
		atomic_store(&call->placed, true);
		return false;
	}
	rxw_actions_init(&b, a->shard, false);
	rxw_conn_lock(c);
	done = rxw_pcall_refuse(&call->p, &b.out);
	rxw_actions_collect(&b, false);
	rxw_conn_unlock(c);
	rxw_actions_run(&b);
	return done;
}

static void attach(struct rxw_actions *a, struct rxw_call *call)
{
	struct rxw_service *service = call->conn->service;

	/*
	 * Only a thread of the library may run handlers: a caller that receives hands over. Short
	 * calls have no place among those that wait for workers: the bound is for them as well.
	 */
	if (call->short_handler && service && a->receiver && rxw_on_library_thread(a->shard->ep)) {
		if (a->out.now >= atomic_load_explicit(&service->slow_until, memory_order_relaxed) ||
		    !rxw_workers_place(call->conn)) {
			serve_here(a, call);
			return;
		}
		atomic_store(&call->placed, true);
	}
	if (!refused(a, call))
		rxw_workers_add(call);
}

static void wake(struct rxw_actions *a, const struct rxw_action *item)
{
	pthread_cond_broadcast(&item->call->cond);
	rxw_count(&a->shard->wakeups, 1);
	if (a->receiver && (item->todo & RXW_TODO_CALLER))
		a->shard->woke_caller = true;
}

static void run(struct rxw_actions *a)
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
		before = rxw_now_keep(a->out.now);
	}
	for (unsigned i = 0; i < n; i++) {
		if (a->item[i].todo & RXW_TODO_SEND) {
			struct rxw_shard *q = rxw_tx_queue(a->item[i].call);

			if (q && q != s)
				rxw_tx_run(q);
		}
		if (a->item[i].todo & RXW_TODO_AWAY)
			rxw_callback_away(a->item[i].call);
		if (a->item[i].todo & RXW_TODO_ATTACH)
			attach(a, a->item[i].call);
	}
	for (unsigned i = 0; i < n; i++) {
		struct rxw_call *call = a->item[i].call;

		if (a->item[i].todo & RXW_TODO_CALLBACK) {
			called_back = true;
			if (a->receiver)
				rxw_now_keep(rxw_now());
			rxw_callback_run(call);
		}
	}
	if (a->receiver) {
		rxw_tx_hold(NULL);
		if (called_back) /* handlers are timed (serve_here()), callbacks are not */
			rxw_now_keep(0);
	} else {
		before = rxw_now_keep(a->out.now);
		/* A handler or callback of the application may have worked for long meanwhile. */
		if (before)
			rxw_now_keep(0);
	}
	rxw_tx_run(s);
	rxw_now_keep(before);
	for (unsigned i = 0; i < n; i++) {
		struct rxw_call *call = a->item[i].call;

		if (a->item[i].todo & RXW_TODO_WAKE)
			wake(a, &a->item[i]);
		if (a->item[i].todo & RXW_TODO_KICK)
			rxw_io_wake(a->item[i].kick->sock);
		if (a->item[i].todo & RXW_TODO_CHANNEL)
			pthread_cond_broadcast(&call->conn->channel_free);
		if (a->item[i].todo & RXW_TODO_FD) {
			uint64_t one = 1;

			/*
			 * An eventfd takes 2^64 - 2 of these; a failure cannot be of use to anyone.
			 */
			if (write(call->fd, &one, sizeof(one)) < 0)
				rxw_count(&s->wakeups, 0);
		}
		rxw_call_unref(call);
	}
	a->count = 0;
}

void rxw_actions_run(struct rxw_actions *a)
{
	run(a);
	while (a->spill) {
		unspill(a);
		run(a);
	}
}
