/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Transmission: the send queue of a socket, batches of packets, control packets. The structures are private to the
 * module.
 */
#ifndef RXW_ENGINE_TX_H
#define RXW_ENGINE_TX_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct rxw_call;
struct rxw_ctl;
struct rxw_effects;
struct rxw_shard;

/* Of a call; the connection's lock unless stated. */
struct rxw_call_tx {
	struct rxw_call *next; /* in the queue; its lock */
	_Atomic(bool) queued;  /* in the queue of some shard */
	_Atomic(bool) bulk;    /* it has sent more than TX_SHORT packets */
	bool claimed; /* a thread is between rxw_pcall_burst() and the end of the system call */
	bool again;   /* queued while claimed */
};

/* Of a shard. */
struct rxw_shard_tx {
	_Atomic(bool) busy; /* a thread holds the send role */
	_Atomic(bool) sends_bulk; /* and sends bulk: until it is done, others send short replies */
	pthread_mutex_t lock;
	struct rxw_txq {
		struct rxw_call *head, **tail; /* lock; one reference each */
	} brief, bulk;	   /* bulk: calls that have sent much, which the others overtake */
	_Atomic(bool) any; /* one of them is not empty */
	_Atomic(bool) left; /* the holder of the receive role must send next */
};

/* Initialize a zeroed shard's part; false: no memory. rxw_send_fini() in either case. */
bool rxw_send_init(struct rxw_shard *s);
void rxw_send_fini(struct rxw_shard *s);
/* No thread sends any more: drop the queued calls. */
void rxw_send_forget(struct rxw_shard *s);

/* Work that neither a packet nor a timer announces to the receiver. */
enum rxw_pending {
	RXW_PENDING_SEND = 1,	  /* it must send next */
	RXW_PENDING_DISPATCH = 2, /* callbacks, or queues to release */
	RXW_PENDING_DEFERRED = 4, /* merged ACKs or wake-ups */
	RXW_PENDING_CTL = 8,	  /* control packets that rxw_effects_hold() kept */
	RXW_PENDING_ANY = 15
};
/* Is some of it pending? */
bool rxw_pending(const struct rxw_shard *s, unsigned what);
/* The receiver must, or need not, send next: a receiver that must does not wait. Returns whether it had to. */
bool rxw_tx_leave(struct rxw_shard *s, bool left);
/*
 * A receiver sends one batch at a time, and looks at the socket in between. When it leaves the role, nobody may
 * receive for a while, so it sends the rest. False: there is too much, and the listener has to go on.
 */
bool rxw_tx_run_rest(struct rxw_shard *s);

/*
 * Queue a call for transmission at its home shard; any lock may be held. Returns the shard for
 * which rxw_tx_run() must follow, or NULL if the call was queued already.
 */
struct rxw_shard *rxw_tx_queue(struct rxw_call *call);
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

/*
 * Send role; no lock held. Sends one batch of the queue, in one system call if possible, and records its effects.
 * Returns another shard for which rxw_tx_run() must follow, or NULL. `brief`: without the role, calls that are not
 * bulk.
 */
struct rxw_shard *rxw_tx_batch(struct rxw_shard *s, struct rxw_effects *a, bool brief);
/* Send control packets at once. No lock held. */
void rxw_ctl_send(struct rxw_shard *s, struct rxw_ctl *ctl, unsigned count);

#endif
