/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The timer wheel of a shard: one lazy entry per connection. Other threads post earlier deadlines
 * through the inbox.
 */
#include "engine/lock.h"
#include "engine/objects.h"

#define TICK	     RXW_MS
#define STALE_CHECKS 8 /* entries recomputed before a sleep */

/*
 * A connection's entry is in the wheel of the shard where its first packet arrived; unlike the home, that never
 * changes. Only expiry moves `deadline` to a later time: calls that begin and end in between store nothing and
 * leave no entry behind.
 */

static void inbox_push(struct rxw_shard *s, struct rxw_connection *c)
{
	struct rxw_connection *head = atomic_load(&s->wheel.inbox);

	do
		atomic_store_explicit(&c->timer.inbox_next, head, memory_order_relaxed);
	while (!atomic_compare_exchange_weak(&s->wheel.inbox, &head, c));
}

static uint64_t call_deadline(const struct rxw_call *call)
{
	uint64_t at = rxw_pcall_deadline(&call->p);

	return call->timer.pace_at && call->timer.pace_at < at ? call->timer.pace_at : at;
}

/*
 * Connection's lock held: make the deadline `at`, unless it is earlier already. A receiver that is
 * asleep beyond it is woken, also if the connection is in the inbox: an earlier post may have been
 * for a time after the end of that sleep.
 */
static void post_deadline(struct rxw_connection *c, uint64_t at)
{
	struct rxw_shard *s;

	if (at >= atomic_load_explicit(&c->timer.deadline, memory_order_relaxed))
		return;
	assert(rxw_is_locked(&c->lock));
	atomic_store(&c->timer.deadline, at);
	if (at >= atomic_load(&c->timer.armed))
		return;
	s = &c->ep->shard[c->wheel];
	if (!atomic_exchange(&c->timer.posted, true)) {
		rxw_conn_ref(c);
		inbox_push(s, c);
	}
	if (atomic_load(&s->role.in_wait) && at < atomic_load(&s->role.wait_until))
		rxw_io_wake(s->sock);
}

void rxw_timer_update(struct rxw_call *call)
{
	struct rxw_connection *c = call->conn;
	uint64_t at = c->timer.callbacks ? 0 : call_deadline(call),
		 conn_at = rxw_pconn_deadline(&c->p);

	if (call->timer.pace_at && !rxw_receiving())
		atomic_store_explicit(&c->ep->shard[c->wheel].role.others_pace, true,
				      memory_order_relaxed);
	post_deadline(c, conn_at < at ? conn_at : at);
}

void rxw_timer_of_conn(struct rxw_connection *c)
{
	post_deadline(c, rxw_pconn_deadline(&c->p));
}

void rxw_timer_post_callback(struct rxw_call *call)
{
	struct rxw_connection *c = call->conn;
	_Atomic(bool) *left = &c->ep->threads.callbacks_left;

	if (call->events.due)
		return;
	/*
	 * This thread, for example one that verifies, cannot run callbacks, and the listener may be
	 * asleep.
	 */
	if (!rxw_receiving() && !atomic_load_explicit(left, memory_order_relaxed))
		atomic_store_explicit(left, true, memory_order_relaxed);
	call->events.due = true;
	rxw_call_ref(call);
	call->events.due_next = c->timer.callbacks;
	c->timer.callbacks = call;
	rxw_timer_update(call);
}

/* Connection's lock held: the exact deadline of the connection and its calls. */
void rxw_timer_recompute(struct rxw_connection *c)
{
	uint64_t at = c->timer.callbacks ? 0 : rxw_pconn_deadline(&c->p);

	for (unsigned i = 0; i < 4; i++) {
		uint64_t call_at =
			c->p.channel[i] ? call_deadline(rxw_call_of(c->p.channel[i])) : UINT64_MAX;

		if (call_at < at)
			at = call_at;
	}
	atomic_store(&c->timer.deadline, at);
}

/*
 * Distant deadlines are rounded up to every second or fourth tick, so that one wake-up serves many
 * of them. Otherwise a thousand calls that wait for an acknowledgement would cost a wake-up in each
 * tick. A deadline moves by at most an eighth of its distance: 50 ms may become 54, 10 ms stays 10.
 */
static uint64_t round_up(uint64_t tick, uint64_t distance)
{
	uint64_t by = distance >= 32 ? 4 : distance >= 16 ? 2 : 1;

	return (tick + by - 1) & ~(by - 1);
}

/* Takes over the caller's reference for the entry. */
static void link_at(struct rxw_shard *s, struct rxw_connection *c, uint64_t at)
{
	struct rxw_wheel *w = &s->wheel;
	uint64_t tick = at / TICK + 1;
	struct rxw_connection **slot;

	if (tick <= w->tick)
		tick = w->tick + 1;
	tick = round_up(tick, tick - w->tick);
	if (tick >= w->tick + RXW_WHEEL_SLOTS)
		tick = w->tick + RXW_WHEEL_SLOTS -
		       1; /* the entry is placed again when that tick comes */
	slot = &w->slot[tick % RXW_WHEEL_SLOTS];
	c->timer.wheel_next = *slot;
	c->timer.wheel_prev = slot;
	if (*slot)
		(*slot)->timer.wheel_prev = &c->timer.wheel_next;
	*slot = c;
	w->used[tick % RXW_WHEEL_SLOTS / 64] |= UINT64_C(1) << tick % 64;
	w->count++;
	atomic_store(&c->timer.armed, tick * TICK);
}

static void unlink_timer(struct rxw_shard *s, struct rxw_connection *c)
{
	assert(s->wheel.count && *c->timer.wheel_prev == c);
	*c->timer.wheel_prev = c->timer.wheel_next;
	if (c->timer.wheel_next)
		c->timer.wheel_next->timer.wheel_prev = c->timer.wheel_prev;
	c->timer.wheel_next = NULL;
	c->timer.wheel_prev = NULL;
	s->wheel.count--;
}

/*
 * The entry is in no slot: link it according to its deadline, or drop its reference if there is
 * none.
 */
static void link_or_drop(struct rxw_shard *s, struct rxw_connection *c)
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
		/* Did another thread, which read the old `armed`, make it earlier meanwhile? */
		if (again >= at)
			return;
		unlink_timer(s, c);
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
			unlink_timer(s, c);
			link_or_drop(s, c);
			rxw_conn_unref(c); /* the inbox's reference; the wheel keeps its own */
		} else {
			link_or_drop(s, c);
		}
	}
}

/* A slot whose tick has come: fire the entries that are due, link the others again. */
static void run_slot(struct rxw_shard *s, unsigned index, struct rxw_effects *a, rxw_fire_fn fire)
{
	struct rxw_connection *c = s->wheel.slot[index], *due = NULL;

	/*
	 * Detach the whole list first: entries that come back to this slot wait for the wheel's
	 * next round.
	 */
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
		link_or_drop(s, c);
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
 * Relink entries of a slot whose deadline has become later, for example because the next call
 * replaced a final ACK; at most *left of them. Connections whose lock is taken are skipped:
 * contention would cost more than waking for a tick that has nothing due.
 */
static void relink_stale(struct rxw_shard *s, uint64_t tick, unsigned *left)
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
		unlink_timer(s, c);
		link_or_drop(s, c);
	}
}

/* The first tick of [tick, end) whose slot may have entries; at least `end`: none. */
static uint64_t next_used(const struct rxw_wheel *w, uint64_t tick, uint64_t end)
{
	while (tick < end) {
		uint64_t used = w->used[tick % RXW_WHEEL_SLOTS / 64] >> tick % 64;

		if (used)
			return tick + (unsigned)__builtin_ctzll(used);
		tick += 64 - tick % 64;
	}
	return tick;
}

uint64_t rxw_timer_next(struct rxw_shard *s, uint64_t now, unsigned ticks)
{
	uint64_t tick = s->wheel.tick + 1, end = tick + ticks;
	unsigned left = STALE_CHECKS;

	if (atomic_load(&s->wheel.inbox))
		drain_inbox(s);
	if (atomic_load(&s->wheel.inbox))
		return now;
	if (!s->wheel.count)
		return UINT64_MAX;
	while ((tick = next_used(&s->wheel, tick, end)) < end) {
		relink_stale(s, tick, &left);
		if (s->wheel.slot[tick % RXW_WHEEL_SLOTS])
			return tick * TICK;
		s->wheel.used[tick % RXW_WHEEL_SLOTS / 64] &= ~(UINT64_C(1) << tick % 64);
	}
	return s->wheel.count ? end * TICK : UINT64_MAX;
}

void rxw_timer_forget_all(struct rxw_shard *s)
{
	drain_inbox(s);
	for (unsigned i = 0; i < RXW_WHEEL_SLOTS; i++) {
		while (s->wheel.slot[i]) {
			struct rxw_connection *c = s->wheel.slot[i];

			unlink_timer(s, c);
			atomic_store(&c->timer.armed, UINT64_MAX);
			for (struct rxw_call *call; (call = c->timer.callbacks);) {
				c->timer.callbacks = call->events.due_next;
				rxw_call_unref(call);
			}
			rxw_conn_unref(c);
		}
	}
}
