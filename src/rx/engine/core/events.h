/* SPDX-License-Identifier: BSD-2-Clause */
/* Events of a call, as a callback or a queue reports them. */
#ifndef RXW_ENGINE_EVENTS_H
#define RXW_ENGINE_EVENTS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rxwire/queue.h>

struct rxw_call;

/*
 * Something that a queue reports. The queue's lock covers the links. `ticket` is changed under it and,
 * of a call, under the connection's lock too, and read under either.
 */
enum rxw_entry_kind {
	RXW_ENTRY_CALL, /* of a struct rxw_call_events */
	RXW_ENTRY_CHANNEL,
	RXW_ENTRY_POST
};
struct rxw_queue_entry {
	struct rxw_queue_entry *next, **link; /* link NULL: not queued */
	enum rxw_entry_kind kind;
	unsigned ticket; /* of the latest time that a call was queued, or left the queue */
};

/*
 * The asynchronous form of a call: either a callback or a queue receives its events. The
 * connection's lock covers all fields but the links of `entry`, and the stores to `fresh`.
 */
struct rxw_call_events {
	rxw_call_fn callback;
	struct rxw_queue *queue;
	void *arg;
	struct rxw_queue_entry entry;
	_Atomic(bool) fresh; /* the queue has not reported this call of a client yet */
	bool queued;	     /* a thread will run the callback, or take the call out of the queue */
	bool busy;	     /* it runs, on `thread` */
	bool pending;	     /* events came since it last ran */
	bool due;	     /* in the connection's timer.callbacks */
	struct rxw_call *due_next;
	pthread_t thread;     /* valid while busy */
	uint32_t quantum_end; /* the packet up to which that thread may write; 0: no bound */
	unsigned mask;	      /* events that a queue reports */
	/* a write found no memory: room is reported at the next expiry of the timers */
	bool starved;
};

/* Connection's lock held in all functions that have no other comment. */

/* RXW_EVENT_... that hold now. */
unsigned rxw_events_now(const struct rxw_call *call);
/* Events came. True: the caller has to see to it that the callback runs, or to queue the call. */
bool rxw_callback_note(struct rxw_call *call);
/*
 * A callback that was noted is for the threads that verify: the call has sealed bulk, and the
 * callback may write more or begin the next call.
 */
bool rxw_callback_seals_bulk(const struct rxw_call *call);
/* This thread runs the call's callback and has written all packets of its quantum. */
bool rxw_callback_quantum_used(const struct rxw_call *call);

/*
 * No lock needed. May this thread run callbacks? Otherwise rxw_timer_post_callback() leaves it to
 * one that may.
 */
bool rxw_may_call_back(void);
/*
 * No lock needed. This thread runs a callback or an inline handler, so that others wait for it: a
 * function that would wait returns -RXW_EDEADLK.
 */
bool rxw_must_not_wait(void);
/* No lock needed. This thread begins to run a callback; and has run it. */
void rxw_callback_enter(void);
void rxw_callback_leave(void);
/* In the child of a fork(): this thread runs no callback. */
void rxw_callback_forget(void);

#endif
