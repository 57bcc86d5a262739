/* SPDX-License-Identifier: BSD-2-Clause */
/* Carrying out recorded effects, running callbacks, and the send role. No lock may be held. */
#ifndef RXW_ENGINE_DISPATCH_H
#define RXW_ENGINE_DISPATCH_H

#include "engine/send/effects.h"

/*
 * Carry out the record, in this order: control packets, handlers, transmissions, wake-ups, callbacks. A
 * receiver leaves the callbacks to rxw_dispatch_callbacks(). The record is empty afterwards and may be used
 * again.
 */
void rxw_dispatch(struct rxw_effects *a);
/*
 * Change a connection on a thread whose record is its own: initialize the record and take the lock; and later
 * collect the events, release the lock, and carry the record out.
 */
void rxw_change_begin(struct rxw_effects *a, struct rxw_connection *c);
void rxw_change_end(struct rxw_effects *a, struct rxw_connection *c);
/*
 * Receive role: run the callbacks that records have left, and send what they have written. A listener takes a
 * slice of a millisecond: packets that came meanwhile do not wait for the callbacks of all calls.
 */
void rxw_dispatch_callbacks(struct rxw_shard *s);
/* No thread receives any more: drop them. */
void rxw_dispatch_forget(struct rxw_shard *s);
/* Receive role: a step of releasing the queues of calls. */
void rxw_release_step(struct rxw_shard *s);
/* Receive role: send the control packets that rxw_effects_hold() kept. */
void rxw_dispatch_held(struct rxw_shard *s);

/* Send what is queued for the shard, unless another thread is sending it. */
void rxw_tx_run(struct rxw_shard *s);
/*
 * From now on rxw_tx_run() of this thread only notes the shard; and send for all that were noted.
 * The endpoints must exist until then.
 */
void rxw_tx_collect_begin(void);
void rxw_tx_collect_end(void);
/* In the child of a fork(): this thread collects and sends nothing, and is in no write(). */
void rxw_tx_forget(void);
/* This thread collects; it does not in a function that waits, which has to end that first. */
bool rxw_tx_collecting(void);
/* Postpone rxw_tx_run() of this thread on `s` (NULL: no longer). */
void rxw_tx_hold(struct rxw_shard *s);
/*
 * This thread is in write() of the call (NULL: of none). Returns the previous value. A writer that
 * sends for many others stops doing so before its own stream runs dry.
 */
struct rxw_call *rxw_tx_writing(struct rxw_call *call);

/* Run the callback on this thread. */
void rxw_callback_run(struct rxw_call *call);
/*
 * Leave the callback to a verifying thread, or to the next expiry of the timers if there is none.
 */
void rxw_callback_hand_over(struct rxw_call *call);
/*
 * On a verifying thread: run it once, for a quantum of packets. If it has to run again, other jobs
 * run first.
 */
void rxw_callback_run_quantum(struct rxw_call *call);

#endif
