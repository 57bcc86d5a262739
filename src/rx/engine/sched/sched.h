/* SPDX-License-Identifier: BSD-2-Clause */
/* Workers: the threads that run handlers, the queue of calls for them, and the shares of peers. */
#ifndef RXW_ENGINE_SCHED_H
#define RXW_ENGINE_SCHED_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct rxw_call;
struct rxw_connection;
struct rxw_endpoint;

/* What a handler's thread is blocked on. */
enum rxw_blocked_on {
	RXW_BLOCKED_NOT,
	RXW_BLOCKED_ON_PEER,
	RXW_BLOCKED_ON_MEMORY
};

/* One worker, on its thread's stack. The workers' lock, but for the atomics (relaxed). */
struct rxw_worker {
	struct rxw_worker *next, **prev;
	pid_t tid; /* fixed; 0: a listener */
	struct rxw_call *call; /* the call that it serves, or NULL; the thread's reference */
	uint64_t order; /* ordinal of its call among all calls served */
	bool waited;	/* it was blocked at the latest sample */
	bool parked;	/* it is blocked on its client: another worker may replace it */
	bool ending;	/* its call is being ended */
	/* ns: start of the measurement, when the call had moved `moved_before` packets; 0: none */
	uint64_t since;
	uint32_t moved_before;
	_Atomic(uint32_t) moved;   /* packets that its call had moved when it last blocked */
	_Atomic(unsigned) blocked; /* enum rxw_blocked_on; stalled.c explains the order */
};

/*
 * Of an endpoint. `lock` covers all fields but the atomics; `left` and `sample_at` are stored under it.
 */
struct rxw_workers {
	pthread_mutex_t lock;
	pthread_cond_t work; /* a call waits, or stop */
	pthread_cond_t gone; /* a thread ended */
	/* the latest thread that ended: the next one joins it, rxw_workers_stop() the last */
	pthread_t latest;
	bool joinable;
	/* calls that wait, linked by sched.next; one reference each */
	struct rxw_call *head, **tail;
	unsigned waiting, waited;	/* calls that wait now; calls that ever had to */
	/* of those, left to a listener: no worker was signalled for them */
	_Atomic(unsigned) left;
	unsigned listeners;		/* listeners that serve calls now */
	_Atomic(bool) any_quick;	/* a service was quick once: listeners want deputies */
	_Atomic(unsigned) reservations; /* calls that were created and not taken by a worker yet */
	unsigned threads, idle, max;
	unsigned few;	/* fixed: threads that suffice while they run: as many as processors */
	unsigned queue; /* calls that may wait */
	_Atomic(unsigned) made;	 /* threads, ever */
	unsigned reserved_peers; /* workers reserved for peers that have none */
	/* Idle threads that sleep, and how many of these were signalled and have not taken the lock yet. */
	unsigned asleep, signalled;
	struct rxw_worker *list;
	unsigned parked, waiters;    /* workers that are parked, and how many may be */
	_Atomic(uint64_t) sample_at; /* ns: next sample of blocked workers; UINT64_MAX: none */
	uint64_t park_at;	     /* ns: none is parked before */
	uint64_t look_interval;	     /* ns: from one look at the threads to the next */
	bool few_run;		     /* the latest look found fewer than `few` that do not sleep */
	_Atomic(bool) any_blocked;   /* a worker is blocked, or was at the latest sample */
	unsigned fresh;		     /* peers that have waiting calls but no worker */
	/* ns: since when the queue was not empty, or the last sample of it; 0: it is empty */
	uint64_t since;
	uint64_t taken; /* calls dequeued since then */
	bool standing;	/* the queue never runs empty: its bound is reduced */
	uint64_t taken_per_wait; /* calls in LEAST_WAIT (workers.c), while the queue stands */
	bool stop;
	uint64_t executed;	/* calls that began, ever */
	uint64_t seen, seen_at; /* of these at the latest looks; the first that saw them (ns) */
};

/* Of a call. */
struct rxw_call_sched {
	/*
	 * workers' lock: `link` points to the pointer to this call in the queue; NULL: not queued
	 */
	struct rxw_call *next, **link;
	bool withdrawn;		/* workers' lock: no worker may take it */
	bool left;		/* workers' lock: counted in workers.left */
	_Atomic(bool) reserved; /* counted in workers.reservations */
};

/* Of a server's call that outlives its handler, or has none. */
struct rxw_call_deferral {
	_Atomic(bool) deferred; /* the application holds a reference */
	_Atomic(bool) counted;	/* in the `deferred` of its service and peer */
};

/* A call that occupies a worker without progress; one reference. */
struct rxw_slow_call {
	struct rxw_call *call;
	uint64_t since;
	uint32_t moved_before;
	unsigned share; /* workers of its peer */
	bool ended;
	uint32_t moved;
};

/* No lock held unless stated. This one: 0 or -RXW_ENOMEM. */
int rxw_workers_start(struct rxw_endpoint *ep);
/*
 * At most `workers` threads and `queue` waiting calls from now on. Surplus threads end once they
 * are idle. Returns how many threads to start with rxw_workers_make(), without a lock.
 */
unsigned rxw_workers_limit(struct rxw_endpoint *ep, unsigned workers, unsigned queue);
/*
 * No more handlers start. Waits until `end` (ns; UINT64_MAX: no limit) for running ones. Returns
 * how many still run. May be called again.
 */
unsigned rxw_workers_stop(struct rxw_endpoint *ep, uint64_t end);
/* Reserve room for a new call in the queue. False: there is none. */
bool rxw_workers_reserve(struct rxw_connection *c);
/* Release a reservation. */
void rxw_workers_release(struct rxw_connection *c);
/* Release that of a call. False: it had none. */
bool rxw_workers_release_call(struct rxw_call *call);
/* More than half of the workers are busy or soon will be. */
bool rxw_workers_scarce(struct rxw_endpoint *ep);
/* The queueing delay (ns) while the queue stands; otherwise 0. */
uint64_t rxw_workers_wait(struct rxw_endpoint *ep);
/*
 * Queue a call for a worker; takes a reference of its own. False: the endpoint stops; refuse the
 * call. With `serves` it is left to listeners if its service is quick: this thread then calls
 * rxw_workers_serve() or rxw_workers_hand_over().
 */
bool rxw_workers_add(struct rxw_call *call, bool serves);
/*
 * A listener that has lent its role serves calls of quick services for a short time, then hands the
 * others over. Returns the shards whose replies are still to be sent: bit n is shard n.
 */
uint64_t rxw_workers_serve(struct rxw_endpoint *ep);
/* Workers serve all calls that were left to listeners. */
void rxw_workers_hand_over(struct rxw_endpoint *ep);
/* Connection's lock held: the call ended. Remove it from the queue and release its reservation. */
void rxw_workers_withdraw(struct rxw_call *call);
/* Count a call as deferred, before it is. False: its service or its peer has too many. */
bool rxw_deferral_reserve(struct rxw_connection *c);
void rxw_deferral_release(struct rxw_connection *c);
/* More than half of the service's deferred calls exist. */
bool rxw_deferral_scarce(const struct rxw_connection *c);
/* A call that was counted is deferred, with one more reference; it was ended. */
void rxw_deferral_begin(struct rxw_call *call);
void rxw_deferral_end(struct rxw_call *call);
/* The call is freed. */
void rxw_deferral_release_call(struct rxw_call *call);
/* Workers' lock held: calls that wait for a worker, not for a listener. */
static inline unsigned rxw_workers_due(const struct rxw_workers *w)
{
	return w->waiting - atomic_load_explicit(&w->left, memory_order_relaxed);
}
/*
 * Workers' lock held: more workers became available, or are of use although there are enough for the
 * processors (`useful`: how many). Returns how many threads to start ...
 */
unsigned rxw_workers_more(struct rxw_endpoint *ep, unsigned useful);
/* ... once it is released. */
void rxw_workers_make(struct rxw_endpoint *ep, unsigned threads);

/*
 * Workers' lock held: this thread becomes a worker; begins a call; ends it; is no longer a worker.
 */
void rxw_worker_begin(struct rxw_workers *w, struct rxw_worker *worker);
void rxw_worker_begin_call(struct rxw_workers *w, struct rxw_worker *worker, struct rxw_call *call);
void rxw_worker_end_call(struct rxw_workers *w, struct rxw_worker *worker);
void rxw_worker_end(struct rxw_worker *worker);
/* In the child of a fork(): this thread is no worker. */
void rxw_worker_forget(void);
/*
 * Connection's lock held: this thread is about to block in a function of the call. True: it is the
 * worker that serves the call, and must call rxw_worker_unblocked() afterwards.
 */
bool rxw_worker_blocked(const struct rxw_call *call, enum rxw_blocked_on what);
void rxw_worker_unblocked(void);

/*
 * To be called when workers.sample_at has passed: parks blocked workers and finds slow calls, at
 * most `most`. Returns how many.
 */
unsigned rxw_workers_slow(struct rxw_endpoint *ep, uint64_t now, struct rxw_slow_call *v,
			  unsigned most);
/* Connection's lock held: packets that the call has moved, in both directions. */
uint32_t rxw_worker_progress(const struct rxw_call *call);
bool rxw_workers_too_slow(const struct rxw_slow_call *v, uint64_t now);
/* Calls that turned out not to be slow may be chosen again. */
void rxw_workers_spare(struct rxw_endpoint *ep, const struct rxw_slow_call *v, unsigned n);

#endif
