/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The objects of the engine. Each is composed of one structure per module; the module's header says
 * which lock covers what.
 *
 * Lock order: endpoint->lock, shard->lock, connection->lock, workers->lock, then leaves (tx.lock,
 * peers.lock, admit.lock, role.lock). Never two of a kind. None is held across a system call
 * that may block, while a handler or callback is woken, or while packets are sealed or verified.
 * lock.h takes them and counts contended acquisitions.
 */
#ifndef RXW_ENGINE_OBJECTS_H
#define RXW_ENGINE_OBJECTS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rxwire/rxwire.h>

#include "base/hash.h"
#include "engine/core/alive.h"
#include "engine/core/config.h"
#include "engine/core/engine.h"
#include "engine/core/events.h"
#include "engine/core/refs.h"
#include "engine/observe/observe.h"
#include "engine/receive/admit.h"
#include "engine/objects.h"
#include "engine/send/effects.h"
#include "engine/sched/jobs.h"
#include "engine/sched/queue.h"
#include "engine/receive/rx.h"
#include "engine/sched/sched.h"
#include "engine/stream/stream.h"
#include "engine/core/timer.h"
#include "engine/send/tx.h"
#include "io/io.h"
#include "proto/conn/conn.h"

#define RXW_STOP_GRACE (RXW_SEC / 4) /* for aborted calls and their handlers */

struct rxw_endpoint {
	struct rxw_engine *engine;	   /* fixed */
	const struct rxw_upcalls *upcalls; /* fixed */
	bool server;			   /* fixed */
	pthread_mutex_t lock; /* adding services, settings, start, creating the trace */
	struct rxw_ep_life life;
	struct rxw_ep_settings settings;
	struct rxw_ep_threads threads;
	struct rxw_ep_services services;
	struct rxw_ep_usage usage;
	struct rxw_ep_peers peers;
	struct rxw_ep_observe observe;
	struct rxw_workers *workers;   /* fixed */
	struct rxw_verifier *verifier; /* fixed */
	struct rxw_ep_admit admit;
	struct rxw_ep_debug debug;
	struct rxw_io_group io; /* fixed until destroy */
	unsigned shard_count;
	struct rxw_shard *shard; /* array; fixed */
	/* acquisitions that had to wait, of the endpoint's locks; relaxed */
	_Atomic(uint64_t) contended[RXW_LOCK_COUNT];
};

/* A socket and its connections. `lock` covers the table. */
struct rxw_shard {
	struct rxw_endpoint *ep;
	unsigned index;
	struct rxw_io_sock *sock;
	/*
	 * Either thread may be the listener; the other one is its deputy then (rx.h). The first one
	 * starts the second, which is tried once.
	 */
	pthread_t first, second;
	bool first_started, second_started, second_tried;
	struct rxw_listener *listener; /* a shared one, instead of these threads; NULL: none */
	unsigned seat;		       /* its place there */

	pthread_mutex_t lock;
	struct rxw_conntable table;
	_Atomic(uint32_t) calls_live; /* calls in progress of the table's connections */

	struct rxw_role role;
	struct rxw_shard_rx rx;
	struct rxw_shard_effects effects;
	struct rxw_shard_jobs jobs;
	struct rxw_shard_admit admit;
	struct rxw_shard_diag diag;
	struct rxw_wheel wheel;
	struct rxw_shard_tx tx;

	/* counters, relaxed */
	struct rxw_pstats stats; /* stored by any thread */
	struct rxw_pstats own;	 /* stored by the holder of the receive role only */
	_Atomic(uint64_t) wakeups, wrong_shard;
	_Atomic(uint64_t) windows_by_writer, windows_by_receiver;
	_Atomic(uint64_t) handlers_inline, handlers_worker;
	_Atomic(uint64_t) contended[RXW_LOCK_COUNT]; /* of its locks and its connections' */
};

/*
 * A connection. `lock` covers p and its calls' protocol state. `refs` are held by the table, calls,
 * batches, timers and, at a client, by the application. Without any the connection takes no part in
 * the protocol any more. `handles` keep the memory: one for all of `refs`, and one for each
 * reference of the application to a server's connection.
 */
struct rxw_connection {
	struct rxw_pconn p; /* first */
	struct rxw_endpoint *ep;
	struct rxw_alive alive;
	/* the shard at which its packets arrive and whose socket sends for it */
	_Atomic(unsigned) home;
	struct rxw_settings *settings; /* one reference, until `refs` are gone */
	pthread_mutex_t lock;
	_Atomic(uint32_t) refs, handles;
	_Atomic(uint32_t) calls; /* objects; none is made once p.error is set */
	unsigned owned;		 /* references of the application; lock */
	/* of the application: rxw_connection_set_data(); lock */
	void *data;
	void (*data_end)(void *data);
	/* server, one reference; fixed until the connection is settled: calls may read it */
	struct rxw_service *service;
	pthread_cond_t channel_free; /* client: callers wait for a channel */
	unsigned channel_waiters;    /* lock */
	unsigned aborts;	     /* count of rxw_connection_abort() ... */
	int32_t abort_code;	     /* ... and its latest code; lock */
	bool deferred;		     /* in a shard's deferred list; lock */
	bool released;		     /* client: the application released it; lock */
	bool channel_woken;	     /* client: a waiter was signalled and has not run since; lock */
	_Atomic(bool) channel_wanted; /* client: the next free channel is to be announced */
	bool in_table;		     /* lock of the table's shard */
	bool settled; /* it has no data any more, and gets none; lock */
	uint8_t table;		     /* shard whose table has it, by its id; fixed */
	uint8_t wheel;		     /* shard whose wheel has it: its first home; fixed */
	unsigned held;		     /* client: calls that the application has not ended; lock */
	struct rxw_conn_channels *channels; /* client; NULL until it is needed; lock */
	struct rxw_conn_admit admit;
	struct rxw_conn_timer timer;
	struct rxw_conn_jobs jobs;
};

struct rxw_call {
	struct rxw_pcall p;	     /* first; connection's lock */
	struct rxw_connection *conn; /* one reference; fixed */
	struct rxw_alive alive;	     /* the application has not ended it */
	/* held by the channel, the application or handler, queues, batches */
	_Atomic(uint32_t) refs;
	unsigned flags;	    /* RXW_CALL_...; fixed, once a server call was deferred */
	/* runs on the receiving thread and must not wait; fixed, unless it is deferred */
	bool is_inline;
	bool ended;	    /* the application or handler has ended it; connection's lock */
	bool attached;	    /* server: it has a handler or is queued for one; connection's lock */
	bool live;	    /* counted in endpoint->usage.live; connection's lock */
	uint64_t started, finished; /* ns */
	uint64_t served;	    /* ns: a stub began to serve it; 0: no observer; the handler's */
	_Atomic(bool) transfers;    /* it has a transfer (stream/transfer.c) */
	_Atomic(uint64_t) windows_by_writer, windows_by_receiver;
	struct rxw_call_sleep sleep;
	struct rxw_call_timer timer;
	struct rxw_call_sched sched;
	struct rxw_call_deferral deferral;
	struct rxw_call_jobs jobs;
	struct rxw_call_events events;
	struct rxw_call_effects effects;
	struct rxw_call_tx tx;
	struct rxw_call_reader r;
	struct rxw_call_writer w;
};

static inline struct rxw_connection *rxw_conn_of(struct rxw_pconn *p)
{
	return (struct rxw_connection *)p;
}

/* NULL for NULL. */
static inline struct rxw_call *rxw_call_of(struct rxw_pcall *p)
{
	return (struct rxw_call *)p;
}

static inline uint32_t rxw_window_of(const struct rxw_endpoint *ep)
{
	return atomic_load_explicit(&ep->settings.window, memory_order_relaxed);
}

static inline uint32_t rxw_mtu_of(const struct rxw_endpoint *ep)
{
	return atomic_load_explicit(&ep->settings.mtu, memory_order_relaxed);
}

static inline int32_t rxw_refusing(const struct rxw_endpoint *ep)
{
	return atomic_load_explicit(&ep->life.refusing, memory_order_relaxed);
}

static inline struct rxw_shard *rxw_home(const struct rxw_connection *c)
{
	return &c->ep->shard[atomic_load_explicit(&c->home, memory_order_relaxed)];
}

/*
 * Objects that a process has inherited by fork(). Their threads and connections are those of the parent, and their
 * locks may be held by threads that do not exist here. Public functions refuse such objects before they take a lock.
 */

/* How many times fork() was called on the way from the process of the first engine; relaxed. */
extern _Atomic(unsigned) rxw_forks;

static inline unsigned rxw_generation(void)
{
	return atomic_load_explicit(&rxw_forks, memory_order_relaxed);
}

/* A process that nobody forked compares nothing. */
static inline bool rxw_engine_inherited(const struct rxw_engine *e)
{
	unsigned generation = rxw_generation();

	return __builtin_expect(generation != 0, 0) && e->generation != generation;
}

static inline bool rxw_endpoint_inherited(const struct rxw_endpoint *ep)
{
	return rxw_engine_inherited(ep->engine);
}

static inline bool rxw_conn_inherited(const struct rxw_connection *c)
{
	return __builtin_expect(rxw_generation() != 0, 0) && rxw_endpoint_inherited(c->ep);
}

static inline bool rxw_call_inherited(const struct rxw_call *call)
{
	return __builtin_expect(rxw_generation() != 0, 0) && rxw_conn_inherited(call->conn);
}

#endif
