/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Effects of protocol processing on connections: wake-ups, transmissions, handlers, callbacks. They are recorded with a
 * connection's lock held (effects.c), and carried out once no lock is held (dispatch.c).
 */
#ifndef RXW_ENGINE_EFFECTS_H
#define RXW_ENGINE_EFFECTS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/core/refs.h"
#include "proto/conn/conn.h"

struct rxw_call;
struct rxw_connection;
struct rxw_queue;
struct rxw_shard;

#define RXW_CTL_ROOM	 256 /* control packets of one receive batch */
#define RXW_EFFECTS_ROOM 512
#define RXW_EFFECTS_FEW	 8
#define RXW_CALLBACKS_ROOM 256
#define RXW_DEFERRED_MAX 128

enum rxw_do {
	RXW_DO_WAKE = 1,		 /* wake threads that sleep in the call's condition */
	RXW_DO_SEND = 2,		 /* queue the call for transmission */
	RXW_DO_ATTACH = 4,		 /* run the handler of a server's call */
	RXW_DO_CALLBACK = 8,		 /* run the callback on this thread: see rxw_dispatch() */
	RXW_DO_WAKE_CHANNEL = 16,	 /* a channel is free: wake a caller that waits for one */
	RXW_DO_INTERRUPT = 64,		 /* the caller holds a receive role: interrupt its wait */
	RXW_DO_WAKE_RECEIVER = 128,	 /* with WAKE: the woken thread may take the receive role */
	RXW_DO_HAND_OVER_CALLBACK = 256, /* run the callback on a verifying thread */
	RXW_DO_ANNOUNCE = 512,		 /* a channel is free: tell queues and pools that want one */
	RXW_DO_RELEASE = 1024,		 /* release queues of the call, in steps */
};

struct rxw_effect {
	struct rxw_call *call;	     /* one reference */
	struct rxw_shard *interrupt; /* with INTERRUPT: the shard whose role its caller holds */
	unsigned todo;		     /* enum rxw_do */
};

/* A record; it belongs to one thread. The fields after the first two are private to the module. */
struct rxw_effects {
	struct rxw_out out;
	struct rxw_shard *shard; /* whose socket and counters are used */
	struct rxw_effect *item;
	unsigned count, room;
	struct rxw_call *spill;	  /* calls whose effects did not fit; one reference each */
	struct rxw_queue *signal; /* NULL, or a queue that has to be signalled */
	bool receiver;		  /* this thread holds the shard's receive role */
	struct rxw_effect few[RXW_EFFECTS_FEW];
	struct rxw_ctl ctl[6];
};

/*
 * Of a call; the connection's lock, except `next`, which belongs to the record that has the call.
 */
struct rxw_call_effects {
	struct rxw_call *next; /* of a record's spill list */
	unsigned todo;	       /* effects that did not fit */
	bool quiet; /* something to read; the reader is woken when the socket is drained */
	bool releasing;		       /* a thread releases its queues */
	struct rxw_call *release_next; /* of a shard's list; its receive role */
};

/*
 * Connections with merged ACKs or wake-ups that are deferred until the socket is drained, for at
 * most a millisecond. One reference each. Receive role.
 */
struct rxw_deferred {
	struct rxw_connection *conn[RXW_DEFERRED_MAX];
	unsigned count;
	uint64_t since; /* ns: time of the batch that deferred the first of them */
};

/* The large arrays that the receiver's record uses. Receive role. Private to the module. */
struct rxw_shard_effects {
	struct rxw_ctl *ctl;	 /* RXW_CTL_ROOM */
	unsigned ctl_held;	 /* held packets at the start of ctl, for the next record */
	struct rxw_effect *item; /* RXW_EFFECTS_ROOM */
	/* calls whose callbacks the receiver runs next; a ring; one reference each */
	struct rxw_call *callback[RXW_CALLBACKS_ROOM];
	unsigned first_callback, callbacks;
	struct rxw_deferred deferred;
	/* Calls whose queues are released, a step after each batch; one reference each. */
	struct rxw_call *release;
};

/* The receiver's record uses the shard's arrays and takes over the control packets held in them. */
void rxw_effects_init(struct rxw_effects *a, struct rxw_shard *s, bool receiver);
/* Hold the receiver's control packets for its next record, or until rxw_dispatch_held(). */
void rxw_effects_hold(struct rxw_effects *a);
/* The effects of one more connection might not fit: dispatch first. */
bool rxw_effects_full(const struct rxw_effects *a);
/* How many more effects fit. */
unsigned rxw_effects_room(const struct rxw_effects *a);

/* Connection's lock held in the functions below. */

/*
 * Collect the connection's events; the last step before the lock is released. `drained`: the socket
 * has no more packets.
 */
void rxw_effects_collect(struct rxw_effects *a, bool drained);
/* One more effect of the call; takes over the reference. */
void rxw_effects_add(struct rxw_effects *a, struct rxw_call *call, unsigned todo);
/* Wake the reader of a call that was left asleep while more packets were coming. */
void rxw_effects_readable(struct rxw_effects *a, struct rxw_call *call);
/* The queue has to be signalled; the record signals one queue once. NULL: signal it now. */
void rxw_effects_signal(struct rxw_effects *a, struct rxw_queue *q);
/* With the receive role: add the connection if it has deferred work. `now`: time of the batch. */
void rxw_defer_until_drained(struct rxw_shard *s, struct rxw_connection *c, uint64_t now);

/* --- dispatch.c; no lock is held --- */

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
/*
 * Receive role. The list of deferred work is full; some of it is older than a millisecond by the times of batches; do
 * all of it.
 */
bool rxw_deferred_full(const struct rxw_shard *s);
bool rxw_deferred_overdue(const struct rxw_shard *s, uint64_t now);
void rxw_deferred_complete(struct rxw_shard *s, struct rxw_effects *a);
/* No thread receives any more: release all queues, drop callbacks and deferred work. */
void rxw_dispatch_forget(struct rxw_shard *s);
/* Receive role: a step of releasing the queues of calls. */
void rxw_release_step(struct rxw_shard *s);
/* Receive role: send the control packets that rxw_effects_hold() kept. */
void rxw_dispatch_held(struct rxw_shard *s);

/*
 * Leave the callback to a verifying thread, or to the next expiry of the timers if there is none.
 */
void rxw_callback_hand_over(struct rxw_call *call);
/*
 * On a verifying thread: run it once, for a quantum of packets. If it has to run again, other jobs
 * run first.
 */
void rxw_callback_run_quantum(struct rxw_call *call);
/*
 * For struct rxw_upcalls: runs the handler. Returns its result, or the reason why it did not run. Except on a worker, the
 * cached time is that of the handler's begin before, and of its end afterwards.
 */
int32_t rxw_serve_call(struct rxw_call *call, enum rxw_server by);

#endif
