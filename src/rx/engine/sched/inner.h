/* SPDX-License-Identifier: BSD-2-Clause */
/* Private to the module: workers, verifying threads, completion queues. */
#ifndef RXW_ENGINE_INNER_H
#define RXW_ENGINE_INNER_H

#include "engine/lock.h"
#include "engine/sched/jobs.h"
#include "engine/sched/queue.h"
#include "engine/sched/sched.h"

/* One worker, on its thread's stack. The workers' lock, but for the atomics (relaxed). */
struct rxw_worker {
	struct rxw_worker *next, **prev;
	pid_t tid;	       /* fixed; 0: a listener */
	struct rxw_call *call; /* the call that it serves, or NULL; the thread's reference */
	uint64_t order;	       /* ordinal of its call among all calls served */
	bool waited;	       /* it was blocked at the latest sample */
	bool parked;	       /* it is blocked on its client: another worker may replace it */
	bool ending;	       /* its call is being ended */
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
	unsigned waiting, waited; /* calls that wait now; calls that ever had to */
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
	uint64_t taken;		 /* calls dequeued since then */
	bool standing;		 /* the queue never runs empty: its bound is reduced */
	uint64_t taken_per_wait; /* calls in LEAST_WAIT (workers.c), while the queue stands */
	bool stop;
	uint64_t executed;	/* calls that began, ever */
	uint64_t seen, seen_at; /* of these at the latest looks; the first that saw them (ns) */
};

static inline void rxw_workers_lock(struct rxw_endpoint *ep)
{
	rxw_mutex_lock(&ep->workers->lock, &ep->contended[RXW_LOCK_WORKERS]);
}

static inline void rxw_workers_unlock(struct rxw_endpoint *ep)
{
	pthread_mutex_unlock(&ep->workers->lock);
}

/* Workers' lock held: calls that wait for a worker, not for a listener. */
static inline unsigned rxw_workers_due(const struct rxw_workers *w)
{
	return w->waiting - atomic_load_explicit(&w->left, memory_order_relaxed);
}
/*
 * Workers' lock held: more workers became available, or are of use although there are enough for the
 * processors (`useful`: how many). Returns how many threads to start
 * with rxw_workers_make() once it is released.
 */
unsigned rxw_workers_more(struct rxw_endpoint *ep, unsigned useful);

/*
 * Workers' lock held: this thread becomes a worker; begins a call; ends it; is no longer a worker.
 */
void rxw_worker_begin(struct rxw_workers *w, struct rxw_worker *worker);
void rxw_worker_begin_call(struct rxw_workers *w, struct rxw_worker *worker, struct rxw_call *call);
void rxw_worker_end_call(struct rxw_workers *w, struct rxw_worker *worker);
void rxw_worker_end(struct rxw_worker *worker);

#define RXW_VERIFY_QUEUE   1024 /* queued jobs for runs and callbacks */
#define RXW_VERIFY_AUTH	   256	/* queued exchanges */
#define RXW_VERIFY_THREADS 32

/*
 * The verifying threads of an endpoint. `lock` covers all fields but `thread`, `short_of` and
 * `contended`. A thread is started when a job waits and none is idle. Jobs are queued with locks
 * held, so rxw_verifier_grow() starts it once they are released.
 */
struct rxw_verifier {
	pthread_mutex_t lock;
	pthread_cond_t work;
	struct rxw_verify_job *head, **tail;
	unsigned quanta, auths; /* queued */
	unsigned threads, idle, most;
	unsigned coming; /* threads that were started and have not taken a job yet */
	bool starting;	 /* one is being started, without the lock */
	bool stop;
	_Atomic(bool) short_of;	     /* a job waits for a thread that is not started yet */
	_Atomic(uint64_t) contended; /* acquisitions of the lock that had to wait; relaxed */
	pthread_t thread[RXW_VERIFY_THREADS];
};

/*
 * `lock` covers all fields but `users` and those of the engine's list. It may be taken under a
 * connection's lock. The other atomics are stored under it.
 *
 * A waiting thread may have the receive role of the client endpoint `source`. It then takes what it
 * queues itself, without a wake-up. Entries of other threads interrupt it.
 */
struct rxw_queue {
	struct rxw_engine *engine; /* fixed */
	struct rxw_alive alive;
	struct rxw_queue *next, **link; /* in engine->queues; engine->lock */
	pthread_mutex_t lock;
	pthread_cond_t cond; /* an entry came, or a signal that was owed was given */
	struct rxw_queue_entry *first, **last;
	/*
	 * Entries; and how many of them threads in rxw_queue_run() are about to take, so that no other
	 * thread is woken for these.
	 */
	unsigned count, claimed;
	/* threads in rxw_queue_next(), and how many of them were woken and do not run yet */
	unsigned waiting, woken;
	bool owed; /* a thread is about to call rxw_queue_signal() */
	int fd;	   /* eventfd, -1: none */
	bool fd_set;
	_Atomic(uint32_t) users; /* calls, services and callers that want a channel */

	/* a client endpoint with one shard whose calls use the queue, or NULL */
	_Atomic(struct rxw_endpoint *) source;
	_Atomic(bool) elsewhere; /* so do other endpoints: the listeners receive */
	/*
	 * A waiting thread has the role of this shard, or verifies what it received. It looks for
	 * entries before it sleeps or returns.
	 */
	struct rxw_shard *receiving;
	pthread_t receiver;	   /* valid while receiving */
	_Atomic(bool) interrupted; /* it is to look now */
	/* sleeping threads that are counted in role.sleepers of the source's shard */
	unsigned counted;
	/*
	 * ns: when a thread left the role, or was woken to take it; 0: none is away. Absences that
	 * were too long, in a row. Until stay_out (ns) the listener receives because of them.
	 */
	uint64_t away_at, stay_out;
	unsigned absences;
};

/* An entry of rxw_queue_post(). */
struct rxw_queue_post {
	struct rxw_queue_entry entry; /* first */
	void *arg;
};

#endif
