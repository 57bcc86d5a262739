/* SPDX-License-Identifier: BSD-2-Clause */
/* Reference counts of the engine's objects, and the count of threads that sleep for packets. */
#ifndef RXW_ENGINE_REFS_H
#define RXW_ENGINE_REFS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/core/sys.h"

struct rxw_call;
struct rxw_connection;
struct rxw_pool;
struct rxw_shard;
struct rxw_verify_job;

/* The thread that runs a handler. */
enum rxw_server {
	RXW_BY_WORKER,
	RXW_BY_RECEIVER, /* it holds the receive role: the handler of an inline service */
	/* it has lent the role (rx.h); the caller of `serve` sends the end of the reply */
	RXW_BY_LISTENER
};

/*
 * Functions of higher modules that lower ones call. The endpoint has a pointer to the only table
 * (public/endpoint.c).
 */
struct rxw_upcalls {
	/* The last reference was dropped. */
	void (*free_call)(struct rxw_call *call);
	void (*free_connection)(struct rxw_connection *c); /* no lock held */
	/* Runs the handler. Returns its result, or the reason why it did not run. */
	int32_t (*serve)(struct rxw_call *call, enum rxw_server by);
	/* Server: the handler returned `code`, or none began. Ends the stream or aborts the call. */
	void (*finish)(struct rxw_call *call, int32_t code);
	/* Runs a job and frees it. */
	void (*verify)(struct rxw_verify_job *job);
	/* Frees a job that no thread can run. */
	void (*cancel)(struct rxw_verify_job *job);
};

/* Of an endpoint: existing objects, and how applications use them. */
struct rxw_ep_usage {
	_Atomic(uint32_t) connections, calls;
	_Atomic(uint32_t) live;		 /* calls in progress, of either side */
	_Atomic(uint32_t) deferred;	 /* server calls that the application holds */
	_Atomic(uint32_t) channel_waits; /* with a reference of one of its connections */
	/* out of queues and not reported yet, or with a transfer whose end is not reported yet */
	_Atomic(uint32_t) calls_taken;
	_Atomic(uint32_t) owned; /* references of the application to servers' connections */
	_Atomic(uint32_t) pools; /* not released */
	uint32_t room_packets;	 /* packets that fit into the sockets' receive buffers; fixed */
};

/* A count, which is never negative. */
void rxw_count_down(_Atomic(uint32_t) *count);
/* Another thread has the lock: count that, and wait for it. */
void rxw_mutex_wait(pthread_mutex_t *m, _Atomic(uint64_t) *contended);
void rxw_conn_wait_lock(struct rxw_connection *c);
/* The pool, of which this thread uses the shard's part from now on. */
struct rxw_pool *rxw_pool_for(const struct rxw_shard *s);

void rxw_conn_ref(struct rxw_connection *c);
void rxw_conn_unref(struct rxw_connection *c);
/* A reference for one who has a handle only. False: none is left. */
bool rxw_conn_try_ref(struct rxw_connection *c);
/* Of an object that has references; the same for an object that may have none. True: it has one now. */
void rxw_ref_add(_Atomic(uint32_t) *refs);
bool rxw_ref_take(_Atomic(uint32_t) *refs);
/* True: it was the last one. */
bool rxw_ref_drop(_Atomic(uint32_t) *refs);
void rxw_call_ref(struct rxw_call *call);
void rxw_call_unref(struct rxw_call *call);

/* The threads that wait in functions of a call. The connection's lock covers all fields. */
struct rxw_call_sleep {
	pthread_cond_t cond;
	unsigned threads;	      /* in cond */
	struct rxw_shard *counted_in; /* whose role.sleepers counts it; NULL: none */
	bool may_receive;	      /* the thread that sleeps may take the receive role */
	bool reading;		      /* a thread is in read(), asleep or receiving */
	struct rxw_shard *receiving;  /* the waiting thread holds this shard's receive role */
	/*
	 * When the writer of a server's call, or the reader of a client's, which may receive for itself,
	 * last went on (ns; 0: the listener receives); and until when it leaves receiving to the listener.
	 */
	uint64_t received_at, stay_out;
};

/*
 * Connection's lock held: a thread is about to sleep for packets of the call. While it is counted
 * the receive role is not left without an owner; the thread itself checks that after it was
 * counted.
 */
void rxw_sleeper_add(struct rxw_call *call, struct rxw_shard *s);
/* Connection's lock held: the call's threads were woken, or no longer sleep. */
void rxw_sleeper_remove(struct rxw_call *call);
/*
 * Connection's lock held: a channel may be free. True: signal c->channel_free, with or without the
 * lock. False: no caller waits, or one is awake already and will wake the next one.
 */
bool rxw_channel_wake(struct rxw_connection *c);

/*
 * Connection's lock held: the call becomes active, and may advertise its share of the sockets'
 * receive buffers; or it ceases to be.
 */
void rxw_call_live(struct rxw_call *call);
void rxw_call_unlive(struct rxw_call *call);
/*
 * Connection's lock held: a server's call without a thread may be idle for long. Until it is
 * written to, it takes no share of memory and of the sockets' buffers from others, unless it still
 * receives.
 */
void rxw_call_relax(struct rxw_call *call);
/*
 * No lock held. Ends a call that no handler began with `code`; 0: with RXW_RESTARTING, or RXW_INVALID_OPERATION if
 * its service is removed.
 */
void rxw_call_refuse(struct rxw_call *call, int32_t code);

#endif
