/* SPDX-License-Identifier: BSD-2-Clause */
/* The engine that endpoints share, their life, and the services that they offer. */
#ifndef RXW_ENGINE_ENGINE_H
#define RXW_ENGINE_ENGINE_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rxwire/rxwire.h>

#include "base/buf.h"
#include "engine/core/alive.h"
#include "proto/peer/peer.h"

struct rxw_files;

struct rxw_engine {
	struct rxw_alive alive;
	struct rxw_pool *pool;	  /* receive buffers, send chunks, small buffers; fixed */
	struct rxw_config config; /* lock; the log function is fixed */
	_Atomic(unsigned) log_level; /* enum rxw_log_level; relaxed */
	struct rxw_budget memory;
	struct rxw_budget wide; /* a part of `memory`, for wide windows (proto/peer/wide.h) */
	pthread_mutex_t lock;  /* endpoints, queues, config */
	unsigned endpoints;
	struct rxw_queue *queues; /* lock, as the next */
	struct rxw_files *files;  /* NULL until a call has a file */
	pthread_mutex_t thread_lock; /* held while a shared listener starts */
	struct rxw_listener
		*listeners; /* thread_lock: that several endpoints share (receive/shared.c) */
	cpu_set_t allowed;		/* CPUs of its threads; fixed */
	unsigned generation;		/* of the process that created it (objects.h); fixed */
	uint64_t key[2]; /* keyed hashes */
	/*
	 * Identifiers of client connections (rx-protocol 1.6, 1.7): the epoch of new connections,
	 * the number of ids used in it, and the key of the permutation that orders them. Protected
	 * by lock.
	 */
	uint32_t epoch, named;
	uint64_t order[2];
	/*
	 * Callers that busy-poll for packets. At the limit (fixed), further callers sleep instead.
	 */
	_Atomic(unsigned) pollers;
	unsigned pollers_max;
	unsigned cpus; /* that its threads may use */
	/*
	 * Features that the kernel lacks are logged once for all endpoints: rxw_io_options.warned.
	 */
	_Atomic(unsigned) io_warned;
};

/* How far an endpoint is on its way from its creation to its end. */
struct rxw_ep_life {
	struct rxw_alive alive;
	bool paused;		   /* listeners not started yet; endpoint->lock */
	_Atomic(bool) stopping;	   /* no new calls are accepted */
	_Atomic(bool) leaving;	   /* packets of new calls are dropped unanswered */
	_Atomic(int32_t) refusing; /* code that new calls are refused with; 0: none; relaxed */
	_Atomic(bool) quit;	   /* the library's threads end */
	bool quiesced;		   /* rxw_endpoint_destroy() has ended the threads */
};

/* Addresses known to an endpoint. */
struct rxw_ep_peers {
	pthread_mutex_t lock;
	struct rxw_peer_table *table; /* lock, as the next */
	struct rxw_listing listed;
};

/* For threads that should leave the others some: half of the CPUs, at least one. */
static inline unsigned rxw_half_of_cpus(const struct rxw_engine *e)
{
	return e->cpus > 3 ? e->cpus / 2 : 1;
}

/* The largest number of ids used in one epoch (rx-protocol 1.6). */
#define RXW_NAMES_MAX (1u << 28)

/* Engine's lock held, or no other thread knows it: begin an epoch (receive/connection.c). 0 or -RXW_ESYS. */
int rxw_engine_draw_epoch(struct rxw_engine *e);
/*
 * Returns an epoch and an unpredictable id that no connection of this epoch had before: servers
 * remember connections after they end. 0 or -RXW_ESYS. No lock held.
 */
int rxw_engine_name(struct rxw_engine *e, uint32_t *epoch, uint32_t *cid);

/*
 * A service, in a place of its endpoint that may be used again. All fields but the counters, the
 * atomics and workers_max are fixed while it has references: one for the application, one for each
 * connection that is not settled.
 */
struct rxw_service {
	struct rxw_endpoint *ep;
	_Atomic(uint32_t) refs;
	_Atomic(bool) used;    /* the place is not free; set under the endpoint's lock */
	_Atomic(bool) removed; /* new calls are refused */
	uint16_t id;
	char name[32];
	rxw_handler_fn handler;
	void *context;
	unsigned flags;	      /* without RXW_SERVICE_REACH */
	unsigned workers_max; /* workers->lock */
	/* relaxed: those that rxw_service_set() changes for later connections and calls */
	_Atomic(unsigned) idle_ms, dead_ms; /* 0: those of the endpoint */
	_Atomic(bool) reach;
	_Atomic(unsigned) waiting_max; /* calls that may wait for a worker; 0: no limit of its own */
	_Atomic(int32_t) busy_code;    /* of calls that are refused; 0: BUSY */
	rxw_security **security;
	size_t security_count;
	uint8_t level_min;	 /* enum rxw_level */
	struct rxw_queue *queue; /* receives the calls; NULL: the handler serves them */
	unsigned deferred_max;
	_Atomic(unsigned) deferred; /* calls without a worker */
	_Atomic(unsigned) places;   /* calls that were created and not taken by a worker yet */
	unsigned workers;	    /* busy now; workers->lock */
	bool held;		    /* no worker takes its calls yet; workers->lock */
	/*
	 * Of handlers that receiving threads run or may run (quick.c). After a slow one: until
	 * slow_until (ns) workers run them. `watched` counts the calls whose preemptions are still to
	 * be checked. `run_time` is a mean of the latest ones (ns). Relaxed.
	 */
	_Atomic(uint64_t) slow_until;
	_Atomic(unsigned) watched;
	_Atomic(uint64_t) run_time;
};

#define RXW_MAX_SERVICES 64

/* Of an endpoint. Services in use are among the first `count`; endpoint->lock to add one. */
struct rxw_ep_services {
	_Atomic(unsigned) count;
	_Atomic(uint16_t) id[RXW_MAX_SERVICES]; /* 0: none; to search quickly */
	struct rxw_service place[RXW_MAX_SERVICES];
};

/* The code that calls of the service are refused with when it is busy; 0: BUSY. */
static inline int32_t rxw_busy_code(const struct rxw_service *s)
{
	return atomic_load_explicit(&s->busy_code, memory_order_relaxed);
}

/* The service with this id, with a reference, or NULL. No lock needed. */
struct rxw_service *rxw_service_find(struct rxw_endpoint *ep, uint16_t id);
void rxw_service_ref(struct rxw_service *s);
/* The last one frees what the service holds, and its place. No lock held. NULL is ignored. */
void rxw_service_unref(struct rxw_service *s);

#endif
