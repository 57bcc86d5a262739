/* SPDX-License-Identifier: BSD-2-Clause */
/* Workers: the threads that run handlers, the queue of calls that wait for one, and who may use them. */
#ifndef RXW_ENGINE_SCHED_H
#define RXW_ENGINE_SCHED_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct rxw_call;
struct rxw_connection;
struct rxw_endpoint;

/* For what the thread of a handler waits. */
enum rxw_blocked_on {
	RXW_BLOCKED_NOT,
	RXW_BLOCKED_ON_PEER,
	RXW_BLOCKED_ON_MEMORY
};

/* One worker, on its thread's stack. The workers' lock, but for the atomics (relaxed). */
struct rxw_worker {
	struct rxw_worker *next, **prev;
	struct rxw_call *call; /* that it serves, NULL: none; the thread has the reference */
	uint64_t order;	       /* of its call among all that were served */
	bool waited;	       /* at the latest sample */
	bool parked;	       /* it waits for its client: another worker may take its place */
	bool ending;	       /* its call is being ended */
	uint64_t since;	       /* ns; by then it had moved `stock` packets; 0: not sampled yet */
	uint32_t stock;
	_Atomic(uint32_t) moved;   /* packets of its call, when it last began to wait */
	_Atomic(unsigned) blocked; /* enum rxw_blocked_on; stalled.c explains the order */
};

/* Of an endpoint. `lock` covers all fields but the atomics. */
struct rxw_workers {
	pthread_mutex_t lock;
	pthread_cond_t work; /* a call waits, or stop */
	pthread_cond_t gone; /* a thread ended */
	/* The latest thread that ended: the next one joins it, and rxw_workers_stop() joins the last. */
	pthread_t latest;
	bool joinable;
	/* calls that wait, linked by sched.next; one reference each */
	struct rxw_call *head, **tail;
	unsigned waiting, waited; /* now; ever */
	_Atomic(unsigned) places; /* calls that were made and that no worker took yet */
	unsigned threads, idle, min, max, reserved;
	_Atomic(unsigned) made; /* threads, ever */
	unsigned kept;		/* for peers whose calls have no worker */
	/*
	 * Idle threads that sleep; of these, how many were signalled and did not take the lock yet (they
	 * count as busy), at most signalled_max; and how many more signals were deferred until one of those
	 * has a call. signalled + deferred_signals <= asleep, unless others woke.
	 */
	unsigned asleep, signalled, signalled_max, deferred_signals;
	struct rxw_worker *list;
	unsigned parked, waiters;  /* workers that are parked, and how many may be */
	_Atomic(uint64_t) look_at; /* ns: next sample of blocked workers; UINT64_MAX: none */
	_Atomic(bool) some_wait;   /* a worker is blocked, or was at the latest sample */
	unsigned fresh; /* peers with calls that wait and none that has a worker */
	uint64_t since; /* ns: since then calls wait without a break, or it was sampled; 0: none waits */
	uint64_t taken; /* calls, since then */
	bool standing;	/* the queue stands: fewer calls may wait */
	uint64_t briefly; /* calls that are taken in LEAST_WAIT (workers.c), while it stands */
	bool stop;
	uint64_t executed;
};

/* Of a call. */
struct rxw_call_sched {
	/* workers' lock: `link` is what points to it in their queue, NULL: it is in none */
	struct rxw_call *next, **link;
	bool withdrawn;		/* workers' lock: no worker may take it */
	_Atomic(bool) reserved; /* counted in workers.places */
};

/* A call that keeps a worker from others and moves nothing; one reference. */
struct rxw_slow_call {
	struct rxw_call *call;
	uint64_t since;
	uint32_t stock;
	unsigned share; /* workers of its peer */
	bool ended;
	uint32_t moved;
};

/* No lock held unless stated. */

/* 0 or -RXW_ENOMEM. */
int rxw_workers_start(struct rxw_endpoint *ep);
/*
 * No more handlers start. Waits until `end` (ns; UINT64_MAX: without limit) for those that run, and
 * returns how many still do. May be repeated.
 */
unsigned rxw_workers_stop(struct rxw_endpoint *ep, uint64_t end);
/* Reserve a place for a new call among those that wait. False: there is none. */
bool rxw_workers_reserve(struct rxw_connection *c);
/* Give back the place; that of a call, if it has one. */
void rxw_workers_release(struct rxw_connection *c);
void rxw_workers_release_call(struct rxw_call *call);
/* More than half of the workers are busy or soon will be. */
bool rxw_workers_scarce(struct rxw_endpoint *ep);
/* How long a call waits for a worker (ns), if the queue stands; else 0. */
uint64_t rxw_workers_wait(struct rxw_endpoint *ep);
/* Queue a call for a worker; takes a reference of its own. False: the endpoint stops; refuse the call. */
bool rxw_workers_add(struct rxw_call *call);
/* Connection's lock held: the call is over; it leaves the queue and gives back its place. */
void rxw_workers_withdraw(struct rxw_call *call);
/* Workers' lock held: more workers may be used than before. Returns how many threads to start ... */
unsigned rxw_workers_more(struct rxw_endpoint *ep);
/* ... once it is released. */
void rxw_workers_make(struct rxw_endpoint *ep, unsigned threads);

/* Workers' lock held: this thread becomes a worker; begins and ends a call; ceases to be one. */
void rxw_worker_begin(struct rxw_workers *w, struct rxw_worker *worker);
void rxw_worker_begin_call(struct rxw_workers *w, struct rxw_worker *worker, struct rxw_call *call);
void rxw_worker_end_call(struct rxw_workers *w, struct rxw_worker *worker);
void rxw_worker_end(struct rxw_worker *worker);
/*
 * Connection's lock held: this thread is about to wait in a function of the call. True: it is the worker
 * that serves the call, and has to say when it goes on.
 */
bool rxw_worker_blocked(const struct rxw_call *call, enum rxw_blocked_on what);
void rxw_worker_unblocked(void);

/*
 * Once workers.look_at has come: parks workers that wait, and finds calls to be ended, `most` at most.
 * Returns how many.
 */
unsigned rxw_workers_slow(struct rxw_endpoint *ep, uint64_t now, struct rxw_slow_call *v,
			  unsigned most);
/* Connection's lock held: packets that the call has moved, in both directions. */
uint32_t rxw_worker_moved(const struct rxw_call *call);
bool rxw_workers_too_slow(const struct rxw_slow_call *v, uint64_t now);
/* Calls that turned out not to be slow may be found again. */
void rxw_workers_spare(struct rxw_endpoint *ep, const struct rxw_slow_call *v, unsigned n);

#endif
