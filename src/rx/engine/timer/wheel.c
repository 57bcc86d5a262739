/* SPDX-License-Identifier: BSD-2-Clause */
/* The timer wheel of a shard: one lazy entry per connection, moved earlier only
 * through the inbox. */
#include "engine/lock.h"
#include "engine/objects.h"

#define TICK	   RXW_MS
#define STALE_LOOK 8 /* entries looked at again before a sleep */

/*
 * A connection has its entry in the wheel of the shard whose table has it: that never changes,
 * unlike the home. `deadline` is not later than what any of its calls wants, `armed` where the
 * wheel has it. The poster stores deadline and then reads armed; the holder stores armed and then
 * reads deadline: one of the two sees the other, so that no deadline is missed. Only the look that
 * the entry leads to moves `deadline` to a later time: calls that come and go in between store
 * nothing, and leave nothing behind in the wheel.
 */

static void inbox_push(struct rxw_shard *s, struct rxw_connection *c)
{
	struct rxw_connection *head = atomic_load(&s->wheel.inbox);

	do
		atomic_store_explicit(&c->timer.inbox_next, head, memory_order_relaxed);
	while (!atomic_compare_exchange_weak(&s->wheel.inbox, &head, c));
}

static uint64_t wanted_by(const struct rxw_call *call)
{
	uint64_t at = rxw_pcall_deadline(&call->p);

	return call->tx.pace_at && call->tx.pace_at < at ? call->tx.pace_at : at;
}

/* Lock held: a look at `at`, if none is due before. */
static void post(struct rxw_connection *c, uint64_t at)
{
	struct rxw_shard *s;

	if (at >= atomic_load_explicit(&c->timer.deadline, memory_order_relaxed))
		return;
	atomic_store(&c->timer.deadline, at);
	if (at >= atomic_load(&c->timer.armed) || atomic_exchange(&c->timer.posted, true))
		return;
	s = &c->ep->shard[c->table];
	rxw_conn_ref(c);
	inbox_push(s, c);
	if (atomic_load(&s->role.in_wait) && at < atomic_load(&s->role.wait_until))
		rxw_io_wake(s->sock);
}

void rxw_timer_update(struct rxw_call *call)
{
	struct rxw_connection *c = call->conn;
	uint64_t at = c->timer.callbacks ? 0 : wanted_by(call), conn_at = rxw_pconn_deadline(&c->p);

	post(c, conn_at < at ? conn_at : at);
}

void rxw_timer_of_conn(struct rxw_connection *c)
{
	post(c, rxw_pconn_deadline(&c->p));
}

void rxw_timer_post_callback(struct rxw_call *call)
{
	struct rxw_connection *c = call->conn;
	_Atomic(bool) *left = &c->ep->callbacks_left;

	if (call->events.due)
		return;
	/* A thread that verified, say: it cannot call back, and the listener may sleep. */
	if (!rxw_receiving() && !atomic_load_explicit(left, memory_order_relaxed))
		atomic_store_explicit(left, true, memory_order_relaxed);
	call->events.due = true;
	rxw_call_ref(call);
	call->events.due_next = c->timer.callbacks;
	c->timer.callbacks = call;
	rxw_timer_update(call);
}

/* Lock held. What the connection and its calls want, exactly. */
void rxw_timer_recompute(struct rxw_connection *c)
{
	uint64_t at = c->timer.callbacks ? 0 : rxw_pconn_deadline(&c->p);

	for (unsigned i = 0; i < 4; i++) {
		uint64_t call_at =
			c->p.channel[i] ? wanted_by(rxw_call_of(c->p.channel[i])) : UINT64_MAX;

		if (call_at < at)
			at = call_at;
	}
	atomic_store(&c->timer.deadline, at);
}

/*
 * Deadlines that are some way off are looked at together, in every second tick or every fourth: that
 * is one wake for all of them, where a thousand calls that wait for their acknowledgement would cost
 * one in each tick. At most an eighth of the time from now: 50 ms may be 54, 10 ms are 10.
 */
static uint64_t together(uint64_t tick, uint64_t distance)
{
	uint64_t by = distance >= 32 ? 4 : distance >= 16 ? 2 : 1;

	return (tick + by - 1) & ~(by - 1);
}

/* The entry's reference comes from the caller. */
static void link_at(struct rxw_shard *s, struct rxw_connection *c, uint64_t at)
{
	struct rxw_wheel *w = &s->wheel;
	uint64_t tick = at / TICK + 1;
	struct rxw_connection **slot;

	if (tick <= w->tick)
		tick = w->tick + 1;
	tick = together(tick, tick - w->tick);
	if (tick >= w->tick + RXW_WHEEL_SLOTS)
		tick = w->tick + RXW_WHEEL_SLOTS - 1; /* looked at again then */
	slot = &w->slot[tick % RXW_WHEEL_SLOTS];
	c->timer.wheel_next = *slot;
	c->timer.wheel_prev = slot;
	if (*slot)
		(*slot)->timer.wheel_prev = &c->timer.wheel_next;
	*slot = c;
	w->count++;
	atomic_store(&c->timer.armed, tick * TICK);
}

static void unlink_entry(struct rxw_shard *s, struct rxw_connection *c)
{
	*c->timer.wheel_prev = c->timer.wheel_next;
	if (c->timer.wheel_next)
		c->timer.wheel_next->timer.wheel_prev = c->timer.wheel_prev;
	c->timer.wheel_next = NULL;
	c->timer.wheel_prev = NULL;
	s->wheel.count--;
}

/* Not linked: put it where its deadline says, or let it go. */
static void place(struct rxw_shard *s, struct rxw_connection *c)
{
	uint64_t at = atomic_load(&c->timer.deadline), again;

	for (;;) {
		if (at == UINT64_MAX) {
			atomic_store(&c->timer.armed, UINT64_MAX);
			at = atomic_load(&c->timer.deadline);
			if (at == UINT64_MAX) {
				rxw_conn_unref(c);
				return;
			}
		}
		link_at(s, c, at);
		again = atomic_load(&c->timer.deadline);
		/* Moved earlier meanwhile, by somebody who still read the old place? */
		if (again >= at)
			return;
		unlink_entry(s, c);
		at = again;
	}
}

static void drain_inbox(struct rxw_shard *s)
{
	struct rxw_connection *c = atomic_exchange(&s->wheel.inbox, NULL), *next;

	for (; c; c = next) {
		next = atomic_load_explicit(&c->timer.inbox_next, memory_order_relaxed);
		atomic_store(&c->timer.posted, false);
		if (c->timer.wheel_prev) {
			unlink_entry(s, c);
			place(s, c);
			rxw_conn_unref(c); /* the inbox's; the wheel keeps its own */
		} else {
			place(s, c);
		}
	}
}

/* A slot whose tick has come: what is due fires, what is not goes where it belongs. */
static void run_slot(struct rxw_shard *s, unsigned index, struct rxw_effects *a, rxw_fire_fn fire)
{
	struct rxw_connection *c = s->wheel.slot[index], *due = NULL;

	/* Taken whole, so that entries that come back into this slot wait for its next turn. */
	s->wheel.slot[index] = NULL;
	while (c) {
		struct rxw_connection *next = c->timer.wheel_next;

		c->timer.wheel_prev = NULL;
		c->timer.wheel_next = due;
		s->wheel.count--;
		due = c;
		c = next;
	}
	while (due) {
		c = due;
		due = c->timer.wheel_next;
		c->timer.wheel_next = NULL;
		if (atomic_load(&c->timer.deadline) <= a->out.now)
			fire(c, a);
		place(s, c);
	}
}

bool rxw_timer_due(struct rxw_shard *s, uint64_t now)
{
	if (atomic_load_explicit(&s->wheel.inbox, memory_order_relaxed))
		drain_inbox(s);
	if (now / TICK <= s->wheel.tick)
		return false;
	if (!s->wheel.count)
		s->wheel.tick = now / TICK;
	return s->wheel.count;
}

void rxw_timer_expire(struct rxw_shard *s, struct rxw_effects *a, rxw_fire_fn fire)
{
	uint64_t tick = a->out.now / TICK, from = s->wheel.tick + 1;

	if (tick - from >= RXW_WHEEL_SLOTS)
		from = tick - RXW_WHEEL_SLOTS + 1;
	for (; from <= tick; from++) {
		s->wheel.tick = from;
		if (s->wheel.slot[from % RXW_WHEEL_SLOTS])
			run_slot(s, from % RXW_WHEEL_SLOTS, a, fire);
	}
}

/*
 * Entries of a slot that are there for what is over by now (a final ACK that the next call made
 * void, say) go where they belong; at most *left of them. Not one that somebody works with: to wait
 * for him, and to make him wait, costs more than waking at a tick that is over.
 */
static void refresh(struct rxw_shard *s, uint64_t tick, unsigned *left)
{
	struct rxw_connection *c = s->wheel.slot[tick % RXW_WHEEL_SLOTS], *next;

	for (; c && *left; c = next, --*left) {
		next = c->timer.wheel_next;
		if (!rxw_conn_trylock(c))
			continue;
		rxw_timer_recompute(c);
		rxw_conn_unlock(c);
		if (atomic_load(&c->timer.deadline) <= tick * TICK)
			continue;
		unlink_entry(s, c);
		place(s, c);
	}
}

uint64_t rxw_timer_next(struct rxw_shard *s, uint64_t now, unsigned ticks)
{
	uint64_t tick = s->wheel.tick + 1, end = tick + ticks;
	unsigned left = STALE_LOOK;

	if (atomic_load(&s->wheel.inbox))
		drain_inbox(s);
	if (atomic_load(&s->wheel.inbox))
		return now;
	if (!s->wheel.count)
		return UINT64_MAX;
	for (; tick < end; tick++)
		if (s->wheel.slot[tick % RXW_WHEEL_SLOTS]) {
			refresh(s, tick, &left);
			if (s->wheel.slot[tick % RXW_WHEEL_SLOTS])
				return tick * TICK;
		}
	return s->wheel.count ? end * TICK : UINT64_MAX;
}

void rxw_timer_forget_all(struct rxw_shard *s)
{
	drain_inbox(s);
	for (unsigned i = 0; i < RXW_WHEEL_SLOTS; i++) {
		while (s->wheel.slot[i]) {
			struct rxw_connection *c = s->wheel.slot[i];

			unlink_entry(s, c);
			atomic_store(&c->timer.armed, UINT64_MAX);
			for (struct rxw_call *call; (call = c->timer.callbacks);) {
				c->timer.callbacks = call->events.due_next;
				rxw_call_unref(call);
			}
			rxw_conn_unref(c);
		}
	}
}
