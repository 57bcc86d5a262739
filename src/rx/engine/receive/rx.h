/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receiving: the receive role of a shard, batches of packets, and the timers that the receiver
 * runs.
 */
#ifndef RXW_ENGINE_RX_H
#define RXW_ENGINE_RX_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct rxw_batch;
struct rxw_verify_job;
struct rxw_effects;
struct rxw_connection;
struct rxw_endpoint;
struct rxw_engine;
struct rxw_io_rx;
struct rxw_shard;

/* Which thread has the receive role of a shard; change_role() (role.c) has the transitions. */
enum rxw_role_state {
	RXW_ROLE_LISTENER, /* the listener */
	RXW_ROLE_SERVING, /* the listener, which serves calls; its deputy takes it if that takes long */
	RXW_ROLE_CALLER, /* a caller or a thread at a queue; the listener waits for the role or verifies */
	RXW_ROLE_FREE,	 /* none: a caller may take it; the listener does after the grace period */
	RXW_ROLE_CLAIMED /* none: the listener takes it */
};

/*
 * The receive role of a shard: its holder receives. Normally that is one of the library's threads of
 * the shard: the listener. `lock` covers all fields but the atomics, and changes of `state`.
 *
 * Invariant: the role is not left free while a thread sleeps for packets. A thread stores
 * RXW_ROLE_FREE before it reads `sleepers`, and counts itself in `sleepers` before it reads `state`:
 * one of the two sees the other. An idle thread at a queue is not counted, so that callers go on
 * receiving beside it, and neither are callbacks: a role that a caller leaves is free until the
 * listener looks (role.c), and for the grace period at least.
 */
struct rxw_role {
	pthread_mutex_t lock;
	pthread_cond_t free; /* the listener waits here while a caller has the role */
	_Atomic(enum rxw_role_state) state;
	bool wanted; /* the listener should take over, since several callers wait */
	bool dozes;  /* the listener waits to be signalled by the caller that has the role */
	/* the role was reclaimed since the listener began its batch: it does not leave the role */
	_Atomic(bool) reclaimed;
	_Atomic(unsigned) sleepers; /* calls, and threads at queues, that sleep for packets */
	uint64_t left_at;	    /* ns */
	uint64_t grace;		    /* ns: how long a role that a caller left stays free */
	uint64_t idle; /* ns: how long a thread at a queue may have it without an event; fixed */
	_Atomic(unsigned) waiters;  /* callers that wait in blocking functions */
	_Atomic(unsigned) guests;   /* threads at queues that may use the role, asleep or not */
	_Atomic(bool) in_wait;	    /* the holder sleeps in rxw_io_wait() until wait_until */
	_Atomic(uint64_t) wait_until;
	/* a thread without the role paces a call: its next burst must not wait for a long sleep */
	_Atomic(bool) others_pace;
	bool woke_caller; /* holder: this batch woke a caller that may take the role */
	bool serves;	  /* holder: it is a listener with a deputy, and serves calls after the batch */
	pthread_cond_t deputy;	   /* the deputy waits here */
	_Atomic(bool) has_deputy;  /* it does */
	bool blocked;		   /* the listener, in a function of the library: the deputy acts at once */
	unsigned lends;		   /* how often the listener began to serve */
	bool watched; /* the deputy looks every DEPUTY_GRACE (role.c); otherwise it has to be signalled */
};

/* The wait of a receiver that others may need: it ends at a time, and once the flag is set. */
struct rxw_rx_limit {
	uint64_t until; /* ns */
	const _Atomic(bool) *interrupted;
};

/* Of a shard; all fields belong to the holder of the receive role. */
struct rxw_shard_rx {
	const struct rxw_rx_limit *limit; /* NULL: none */
	struct rxw_io_rx *entry; /* config.batch of them */
	unsigned depth;		 /* buffers supplied to the next receive call, 4 to config.batch */
	/*
	 * A buffer outside the budget, which receives control packets when the memory is used up.
	 */
	struct rxw_buf *reserve;
	struct rxw_pool *reserve_pool;
	struct rxw_budget reserve_budget;
	struct rxw_batch *batch; /* scratch (batch.h) */
	uint64_t batch_at, gap;	 /* ns: time of the latest batch, and since the one before */
	unsigned quiet;		 /* receive calls in a row without a result */
	uint64_t reaped_at;	 /* ns */
	uint64_t listen_until;	 /* ns: waits can be interrupted until then */
	uint64_t spin_hits, spin_tries, spin_skip;
	uint64_t spin_ns;    /* that these tries took */
	uint32_t last_bytes; /* of the latest batch */
	bool bulk;	     /* the caller that receives is in the middle of a long stream, */
	unsigned pause_us;   /* whose packets may wait for so long: rxw_recvq_pause() */
	bool refusing;	     /* most packets of the latest batches were calls that were refused */
	bool refusing_more;  /* the same, and the socket has more */
};

/* Initialize a zeroed shard. 0 or -RXW_ENOMEM; rxw_shard_fini() in either case. */
int rxw_shard_init(struct rxw_shard *s, struct rxw_endpoint *ep, unsigned index);
/* Start its listener, which starts its deputy. 0, -RXW_ENOMEM or -RXW_ESYS. */
int rxw_shard_start(struct rxw_shard *s);
/* Join both, or leave the shared listener. */
void rxw_shard_stop(struct rxw_shard *s);
void rxw_shard_fini(struct rxw_shard *s);

/*
 * shared.c: a thread of the engine, at most one for each CPU, receives for the shard and for others until
 * it leaves. No caller takes the role meanwhile. 0, -RXW_ENOMEM or -RXW_ESYS. Not on a thread of the library.
 */
int rxw_listener_join(struct rxw_shard *s);
void rxw_listener_leave(struct rxw_shard *s);
/* In the child of a fork(): close what the shared listeners of the parent's engine use. */
void rxw_listeners_forget(struct rxw_engine *e);

/* Receive role: process one batch with its effects; waits for a while if there are no packets. */
void rxw_receive_batch(struct rxw_shard *s);

/*
 * Take the receive role for a waiting caller; on a server, for the waiting writer of the only call.
 * False: another thread has it, or should have it.
 */
bool rxw_role_try(struct rxw_shard *s);
/* Leave the role to the listener if other threads wait for packets; otherwise free. */
void rxw_role_leave(struct rxw_shard *s);
/* May a caller take the role? */
static inline bool rxw_role_is_free(const struct rxw_role *role)
{
	return atomic_load(&role->state) == RXW_ROLE_FREE;
}
/* Should the listener receive, since several callers wait? */
bool rxw_role_wanted(const struct rxw_shard *s);
/* No caller will take the role again: the listener takes it at once. */
void rxw_role_reclaim(struct rxw_shard *s);
/*
 * This thread is about to block in a function of the library. If it is a listener that serves a
 * call, its deputy receives at once.
 */
void rxw_role_blocks(void);
/* In the child of a fork(): this thread has lent nothing. */
void rxw_role_forget(void);
/* A caller begins, or ends, to wait on a call of this shard. */
void rxw_role_waiter_begin(struct rxw_shard *s);
void rxw_role_waiter_end(struct rxw_shard *s);

/* --- deliver.c: verifying received packets and delivering them to their calls --- */

/* Connection's lock held: wake the readers of calls that have runs to verify, or signal threads. */
void rxw_verify_wake(struct rxw_connection *c, struct rxw_effects *a);

/* No lock held in the functions below. */

/* Verify the runs of a list. This thread must not hold a receive role either. */
void rxw_verify_run(struct rxw_verify_job *jobs);
/*
 * Deliver verified runs to their connections, and free the list. `receiver`: this thread holds the
 * role of `s`; otherwise `drained` must be set.
 */
void rxw_verify_deliver(struct rxw_shard *s, struct rxw_verify_job *jobs, bool receiver,
			bool drained);
/* Both, without a role. */
void rxw_verify_and_deliver(struct rxw_connection *c, struct rxw_verify_job *jobs);
/* For struct rxw_upcalls: run a job and free it; free one that no thread can run. */
void rxw_verify_job_run(struct rxw_verify_job *job);
void rxw_verify_job_cancel(struct rxw_verify_job *job);

#endif
