/* SPDX-License-Identifier: BSD-2-Clause */
/* Timers: a wheel per shard, with at most one entry for each connection that began at the shard. */
#ifndef RXW_ENGINE_TIMER_H
#define RXW_ENGINE_TIMER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct rxw_call;
struct rxw_connection;
struct rxw_effects;
struct rxw_shard;

#define RXW_WHEEL_SLOTS 512 /* of 1 ms */

/* Of a shard. The holder of the receive role owns all but `inbox`, which any thread pushes to. */
struct rxw_wheel {
	struct rxw_connection *slot[RXW_WHEEL_SLOTS];
	uint64_t used[RXW_WHEEL_SLOTS / 64]; /* a bit for each slot that may have entries */
	uint64_t tick; /* ms: the latest that was handled */
	unsigned count;
	_Atomic(struct rxw_connection *) inbox; /* a stack; the holder takes it whole */
};

/*
 * Of a connection and its calls. Invariant: `deadline` is not later than what any of them wants,
 * and either the wheel has the connection no later than that or it is in the inbox. The poster
 * stores `deadline` and then reads `armed`; the holder stores `armed` and then reads `deadline`.
 */
struct rxw_conn_timer {
	_Atomic(uint64_t) deadline; /* ns; stored under the connection's lock */
	_Atomic(uint64_t) armed;    /* ns: its place in the wheel, UINT64_MAX: none; role holder */
	_Atomic(bool) posted;	    /* in the inbox */
	_Atomic(struct rxw_connection *) inbox_next;
	struct rxw_connection *wheel_next, **wheel_prev; /* role holder */
	/* calls whose callbacks run at the next expiry; one reference each; connection's lock */
	struct rxw_call *callbacks;
};

/* Of a call; the connection's lock. */
struct rxw_call_timer {
	uint64_t pace_at; /* ns: transmission goes on then; 0: it is not paced */
};

/*
 * Connection's lock held: the deadline of the call, or of the connection, may be earlier than
 * before.
 */
void rxw_timer_update(struct rxw_call *call);
void rxw_timer_of_conn(struct rxw_connection *c);
/* Connection's lock held: the call's callback runs at the next expiry, which is posted for now. */
void rxw_timer_post_callback(struct rxw_call *call);
/* Connection's lock held: compute the deadline anew; it may move to a later time. */
void rxw_timer_recompute(struct rxw_connection *c);

/* The functions below are for the holder of the receive role. */

/* Has a tick passed for which the wheel may have entries? */
bool rxw_timer_due(struct rxw_shard *s, uint64_t now);
/* Calls `fire` for each connection that is due at the time of the record. */
typedef void (*rxw_fire_fn)(struct rxw_connection *c, struct rxw_effects *a);
void rxw_timer_expire(struct rxw_shard *s, struct rxw_effects *a, rxw_fire_fn fire);
/*
 * When the wheel has to be looked at next (ns): its first entry within `ticks` ms, or the end of
 * that span; UINT64_MAX if the wheel is empty.
 */
uint64_t rxw_timer_next(struct rxw_shard *s, uint64_t now, unsigned ticks);
/* At shutdown: drops all entries and their references. */
void rxw_timer_forget_all(struct rxw_shard *s);

#endif
