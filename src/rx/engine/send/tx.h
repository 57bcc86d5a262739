/* SPDX-License-Identifier: BSD-2-Clause */
/* Transmission: the send queue of a socket, batches of packets, control packets. */
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

/* What the writing thread does now. */
enum rxw_writer {
	RXW_WRITER_AWAKE,   /* neither of these */
	RXW_WRITER_WAITING, /* sleeps for room */
	RXW_WRITER_GONE	    /* the stream is complete */
};

/* Of a call; the connection's lock unless stated. */
struct rxw_call_tx {
	struct rxw_call *next; /* in the queue; its lock */
	_Atomic(bool) queued;  /* in the queue of some shard */
	_Atomic(bool) bulk;    /* it has sent more than TX_SHORT packets */
	bool claimed; /* a thread is between rxw_pcall_burst() and the end of the system call */
	bool again;   /* queued while claimed */
	enum rxw_writer writer;
	uint64_t pace_at; /* ns: transmission goes on then; 0: it is not paced */
	_Atomic(uint64_t) windows_by_writer, windows_by_receiver;
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
	_Atomic(bool) left;	       /* the holder of the receive role must send next */
	_Atomic(uint64_t) windows_by_writer, windows_by_receiver; /* relaxed */
};

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
