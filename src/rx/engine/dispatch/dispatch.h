/* SPDX-License-Identifier: BSD-2-Clause */
/* Carrying out recorded effects, running callbacks, and the send role. No lock may be held. */
#ifndef RXW_ENGINE_DISPATCH_H
#define RXW_ENGINE_DISPATCH_H

#include "engine/effects/effects.h"

/*
 * Carry out the record, in this order: control packets, handlers, callbacks, transmissions,
 * wake-ups. The record is empty afterwards and may be used again.
 */
void rxw_dispatch(struct rxw_effects *a);
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
/* A request that was left to other callers. The first thread that leaves one is the round's guard. */
struct rxw_left {
	bool guard;
	unsigned round;
	uint64_t until; /* ns: when the guard has to call rxw_round_guard() at the latest */
};

/*
 * As rxw_tx_collect_end(), for a thread that is about to wait on `s`. If it noted nothing but `s`,
 * it may leave the sending to other callers that the latest batch woke; the guard may only sleep
 * until `left->until`, and calls rxw_round_guard() when it wakes.
 */
void rxw_tx_collect_leave(struct rxw_shard *s, struct rxw_left *left);
/* Receive role: a batch is about to wake so many callers. `now`: ns. */
void rxw_round_begin(struct rxw_shard *s, unsigned callers, uint64_t now);
/* Do callers come that this thread may leave a request to? */
bool rxw_round_open(const struct rxw_shard *s);
/* This thread has queued a request. False: it has to send. */
bool rxw_round_leave(struct rxw_shard *s, uint64_t now, struct rxw_left *left);
/* The guard sends what was left to callers that did not come. */
void rxw_round_guard(struct rxw_shard *s, const struct rxw_left *left);
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
