/* SPDX-License-Identifier: BSD-2-Clause */
/* The timer wheel of a shard: one lazy entry per call, moved earlier only through the inbox. */
#include "engine/internal.h"
#include "engine/lock.h"

#define TICK RXW_MS

/*
 * A call has its entry in the wheel of the shard whose table has its connection: that never
 * changes, unlike the home. `deadline` is what a call wants, `armed` where the wheel has it. The
 * poster stores deadline and then reads armed; the holder stores armed and then reads deadline: one
 * of the two sees the other, so that no deadline is missed.
 */

static void inbox_push(struct rxw_shard *s, struct rxw_call *call)
{
	struct rxw_call *head = atomic_load(&s->inbox);

	do
		atomic_store_explicit(&call->inbox_next, head, memory_order_relaxed);
	while (!atomic_compare_exchange_weak(&s->inbox, &head, call));
}

void rxw_timer_update(struct rxw_call *call)
{
	uint64_t at = rxw_pcall_deadline(&call->p), conn_at;
	struct rxw_shard *s;

	if (call->pace_at && call->pace_at < at)
		at = call->pace_at;
	if (call->callback_due)
		at = 0;
	conn_at = rxw_pconn_deadline(&call->conn->p);
	if (conn_at < at)
		at = conn_at;
	atomic_store(&call->deadline, at);
	if (at >= atomic_load(&call->armed) || atomic_exchange(&call->posted, true))
		return;
	s = &call->conn->ep->shard[call->conn->table];
	rxw_call_ref(call);
	inbox_push(s, call);
	if (atomic_load(&s->in_wait) && at < atomic_load(&s->wait_until))
		rxw_io_wake(s->sock);
}

/* The entry's reference comes from the caller. */
static void link_at(struct rxw_shard *s, struct rxw_call *call, uint64_t at)
{
	struct rxw_wheel *w = &s->wheel;
	uint64_t tick = at / TICK + 1;
	struct rxw_call **slot;

	if (tick <= w->tick)
		tick = w->tick + 1;
	if (tick >= w->tick + RXW_WHEEL_SLOTS)
		tick = w->tick + RXW_WHEEL_SLOTS - 1; /* looked at again then */
	slot = &w->slot[tick % RXW_WHEEL_SLOTS];
	call->wheel_next = *slot;
	call->wheel_prev = slot;
	if (*slot)
		(*slot)->wheel_prev = &call->wheel_next;
	*slot = call;
	w->count++;
	atomic_store(&call->armed, tick * TICK);
}

static void unlink_entry(struct rxw_shard *s, struct rxw_call *call)
{
	*call->wheel_prev = call->wheel_next;
	if (call->wheel_next)
		call->wheel_next->wheel_prev = call->wheel_prev;
	call->wheel_next = NULL;
	call->wheel_prev = NULL;
	s->wheel.count--;
}

/* Not linked: put it where its deadline says, or let it go. */
static void place(struct rxw_shard *s, struct rxw_call *call)
{
	uint64_t at = atomic_load(&call->deadline), again;

	for (;;) {
		if (at == UINT64_MAX) {
			atomic_store(&call->armed, UINT64_MAX);
			at = atomic_load(&call->deadline);
			if (at == UINT64_MAX) {
				rxw_call_unref(call);
				return;
			}
		}
		link_at(s, call, at);
		again = atomic_load(&call->deadline);
		/* Moved earlier meanwhile, by somebody who still read the old place? */
		if (again >= at)
			return;
		unlink_entry(s, call);
		at = again;
	}
}

static void drain_inbox(struct rxw_shard *s)
{
	struct rxw_call *call = atomic_exchange(&s->inbox, NULL), *next;

	for (; call; call = next) {
		next = atomic_load_explicit(&call->inbox_next, memory_order_relaxed);
		atomic_store(&call->posted, false);
		if (call->wheel_prev) {
			unlink_entry(s, call);
			place(s, call);
			rxw_call_unref(call); /* the inbox's; the wheel keeps its own */
		} else {
			place(s, call);
		}
	}
}

static void fire(struct rxw_call *call, struct rxw_actions *a)
{
	struct rxw_connection *c = call->conn;
	uint64_t now = a->out.now;

	if (rxw_actions_full(a))
		rxw_actions_run(a);
	rxw_conn_lock(c);
	if (call->pace_at && call->pace_at <= now) {
		call->pace_at = 0;
		rxw_call_ref(call);
		a->item[a->count++] = (struct rxw_action){.call = call, .todo = RXW_TODO_SEND};
	}
	if (call->callback_due) {
		call->callback_due = false;
		rxw_call_ref(call);
		a->item[a->count++] = (struct rxw_action){.call = call, .todo = RXW_TODO_CALLBACK};
	}
	if (rxw_pcall_deadline(&call->p) <= now)
		rxw_pcall_timer(&call->p, &a->out);
	if (rxw_pconn_deadline(&c->p) <= now)
		rxw_pconn_timer(&c->p, &a->out);
	rxw_actions_collect(a, true);
	/*
	 * One that floor 1 left in the past would make the wheel spin: the next look is one tick
	 * away.
	 */
	rxw_timer_update(call);
	rxw_conn_unlock(c);
}

/* A slot whose tick has come: what is due fires, what is not goes where it belongs. */
static void run_slot(struct rxw_shard *s, unsigned index, struct rxw_actions *a)
{
	struct rxw_call *call = s->wheel.slot[index], *due = NULL;

	/* Taken whole, so that entries that come back into this slot wait for its next turn. */
	s->wheel.slot[index] = NULL;
	while (call) {
		struct rxw_call *next = call->wheel_next;

		call->wheel_prev = NULL;
		call->wheel_next = due;
		s->wheel.count--;
		due = call;
		call = next;
	}
	while (due) {
		call = due;
		due = call->wheel_next;
		call->wheel_next = NULL;
		if (atomic_load(&call->deadline) <= a->out.now)
			fire(call, a);
		place(s, call);
	}
}

void rxw_timer_run(struct rxw_shard *s, uint64_t now)
{
	uint64_t tick = now / TICK, from = s->wheel.tick + 1;
	struct rxw_actions a;

	if (atomic_load_explicit(&s->inbox, memory_order_relaxed))
		drain_inbox(s);
	if (tick < from)
		return;
	if (!s->wheel.count) {
		s->wheel.tick = tick;
		return;
	}
	rxw_actions_init(&a, s, true);
	a.out.now = now;
	if (tick - from >= RXW_WHEEL_SLOTS)
		from = tick - RXW_WHEEL_SLOTS + 1;
	for (; from <= tick; from++) {
		s->wheel.tick = from;
		if (s->wheel.slot[from % RXW_WHEEL_SLOTS])
			run_slot(s, from % RXW_WHEEL_SLOTS, &a);
	}
	rxw_actions_run(&a);
}

uint64_t rxw_timer_next(struct rxw_shard *s, uint64_t now, unsigned ticks)
{
	uint64_t tick = s->wheel.tick + 1, end = tick + ticks;

	if (atomic_load(&s->inbox))
		return now;
	if (!s->wheel.count)
		return UINT64_MAX;
	for (; tick < end; tick++)
		if (s->wheel.slot[tick % RXW_WHEEL_SLOTS])
			return tick * TICK;
	return end * TICK;
}

void rxw_timer_forget_all(struct rxw_shard *s)
{
	drain_inbox(s);
	for (unsigned i = 0; i < RXW_WHEEL_SLOTS; i++) {
		while (s->wheel.slot[i]) {
			struct rxw_call *call = s->wheel.slot[i];

			unlink_entry(s, call);
			atomic_store(&call->armed, UINT64_MAX);
			rxw_call_unref(call);
		}
	}
}
