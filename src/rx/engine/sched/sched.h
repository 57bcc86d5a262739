/* SPDX-License-Identifier: BSD-2-Clause */
/* Workers: the threads that run handlers, the queue of calls for them, and the shares of peers. */
#ifndef RXW_ENGINE_SCHED_H
#define RXW_ENGINE_SCHED_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rxwire/types.h>

struct rxw_call;
struct rxw_connection;
struct rxw_endpoint;
struct rxw_service;
struct rxw_workers;

/* What a handler's thread is blocked on. */
enum rxw_blocked_on {
	RXW_BLOCKED_NOT,
	RXW_BLOCKED_ON_PEER,
	RXW_BLOCKED_ON_MEMORY
};

/* Of a call; private to the module, as the next. */
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

/* No lock held unless stated. This one: 0 or -RXW_ENOMEM; rxw_workers_free() in either case. */
int rxw_workers_create(struct rxw_endpoint *ep);
/* All threads have ended. NULL is allowed. */
void rxw_workers_free(struct rxw_workers *w);

/* What a report shows. */
struct rxw_workers_count {
	unsigned threads, idle, parked;
	unsigned waiting, waited; /* calls that wait now; calls that ever had to */
	uint64_t executed;	  /* calls that began, ever */
};
void rxw_workers_count(struct rxw_endpoint *ep, struct rxw_workers_count *n);
/* ns: next sample of blocked workers, by rxw_workers_slow(); UINT64_MAX: none. */
uint64_t rxw_workers_sample_at(const struct rxw_endpoint *ep);
/* A service was quick once: listeners want deputies. */
bool rxw_workers_any_quick(const struct rxw_endpoint *ep);
/* Calls that were left to listeners. */
unsigned rxw_workers_left(const struct rxw_endpoint *ep);
/*
 * At most `workers` threads and `queue` waiting calls from now on. Surplus threads end once they
 * are idle. Returns how many threads to start with rxw_workers_make(), without a lock.
 */
unsigned rxw_workers_limit(struct rxw_endpoint *ep, unsigned workers, unsigned queue);
void rxw_workers_make(struct rxw_endpoint *ep, unsigned threads);
/*
 * No more handlers start. Waits until `end` (ns; UINT64_MAX: no limit) for running ones. Returns
 * how many still run. May be called again.
 */
unsigned rxw_workers_stop(struct rxw_endpoint *ep, uint64_t end);
/* Reserve room for a new call in the queue. False: there is none. */
bool rxw_workers_reserve(struct rxw_connection *c);
/* Release a reservation. */
void rxw_workers_release(struct rxw_connection *c);
/* The reservation is that of a call from now on; has it one? */
void rxw_workers_assign(struct rxw_call *call);
bool rxw_workers_reserved(const struct rxw_call *call);
/* Release that of a call. False: it had none. */
bool rxw_workers_release_call(struct rxw_call *call);
/* More than half of the workers are busy or soon will be. */
bool rxw_workers_scarce(struct rxw_endpoint *ep);
/* Workers take the calls of a held service from now on. False: it was not held. */
bool rxw_workers_release_service(struct rxw_service *service);
/* The service occupies at most so many workers; 0: no limit of its own. */
void rxw_workers_limit_service(struct rxw_service *service, unsigned most);
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
/* The count is that of a call from now on. */
void rxw_deferral_assign(struct rxw_call *call);
/* The application holds the server's call. */
bool rxw_call_is_deferred(const rxw_call *call);
/* More than half of the service's deferred calls exist. */
bool rxw_deferral_scarce(const struct rxw_connection *c);
/* A call that was counted is deferred, with one more reference; it was ended. */
void rxw_deferral_begin(struct rxw_call *call);
void rxw_deferral_end(struct rxw_call *call);
/* The call is freed. */
void rxw_deferral_release_call(struct rxw_call *call);
/* In the child of a fork(): this thread is no worker. */
void rxw_worker_forget(void);
/*
 * Connection's lock held: this thread is about to block in a function of the call. True: it is the
 * worker that serves the call, and must call rxw_worker_unblocked() afterwards.
 */
bool rxw_worker_blocked(const struct rxw_call *call, enum rxw_blocked_on what);
void rxw_worker_unblocked(void);

/*
 * To be called when rxw_workers_sample_at() has passed: parks blocked workers and finds slow calls, at
 * most `most`. Returns how many.
 */
unsigned rxw_workers_slow(struct rxw_endpoint *ep, uint64_t now, struct rxw_slow_call *v,
			  unsigned most);
/* Connection's lock held: packets that the call has moved, in both directions. */
uint32_t rxw_worker_progress(const struct rxw_call *call);
bool rxw_workers_too_slow(const struct rxw_slow_call *v, uint64_t now);
/* Calls that turned out not to be slow may be chosen again. */
void rxw_workers_spare(struct rxw_endpoint *ep, const struct rxw_slow_call *v, unsigned n);

/* --- run times of handlers: which services are quick; no lock is needed --- */

/* A handler that runs on a thread whose next packets wait for it. */
struct rxw_run {
	uint64_t began; /* ns */
	unsigned watched;
	long preemptions;
};
void rxw_run_begin(struct rxw_run *run, struct rxw_service *service, uint64_t now);
/* True: it was slow. */
bool rxw_run_end(const struct rxw_run *run, struct rxw_service *service, uint64_t now);
/* Such threads should not run handlers of the service now. */
bool rxw_run_was_slow(const struct rxw_service *service, uint64_t now);
/* A handler took so long (ns), on any thread but an inline one. True: the service is quick. */
bool rxw_run_note(struct rxw_service *service, uint64_t took);
/* Its handlers return so soon that it does not pay to wake a worker. */
bool rxw_is_quick(const struct rxw_service *service, uint64_t now);
/* How long (ns) a listener serves calls before it receives again, and workers serve the rest. */
uint64_t rxw_run_stay(const struct rxw_endpoint *ep);

#endif
