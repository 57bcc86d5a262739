/* SPDX-License-Identifier: BSD-2-Clause */
/* Workers: the threads that run handlers of calls that block or stream, and how a call gets one. */
#include <stdio.h>

#include "engine/objects.h"
#include "engine/lock.h"
#include "proto/event/event.h"

/* At most that part of the workers is kept for peers that have none; one of a few, none of two. */
#define LEAST_PART    8
#define FEW	      8
#define SHARE_OF_FREE 8 /* a peer may have so many times the places that are left */

/*
 * Where calls wait all the time, more places bring nothing but a longer wait: so many for each
 * worker are left then, or what is taken in LEAST_WAIT where handlers take less, since the listener
 * may be away for that long. It is not all the time before each worker has had ROUNDS calls.
 */
#define STANDING   2
#define LEAST_WAIT (2 * RXW_MS)
#define ROUNDS	   4

/* Lock held: workers that have a call, but for those that are parked. */
static unsigned busy_of(const struct rxw_workers *w)
{
	return w->threads - w->idle - w->parked;
}

/* Lock held: those that may have one, besides. */
static unsigned free_of(const struct rxw_workers *w)
{
	unsigned busy = busy_of(w);

	return w->max > busy ? w->max - busy : 0;
}

/* Lock held. May it run, so that `busy` workers do? Some are kept for services, some for peers. */
static bool may_take(const struct rxw_workers *w, const struct rxw_call *call, unsigned busy)
{
	const struct rxw_service *s = call->conn->service;
	unsigned kept = call->conn->p.peer->workers ? w->kept : 0;

	if (s->workers_max && s->workers >= s->workers_max)
		return false;
	if (!(s->flags & RXW_SERVICE_SHORT))
		kept += w->reserved;
	return !kept || busy + kept <= w->max;
}

/*
 * Lock held. A queue that stands may run empty for a moment, while the listener is away: only a
 * look at it ends that (bound_of()).
 */
static void less_waiting(struct rxw_workers *w)
{
	if (!--w->waiting && !w->standing)
		w->since = 0;
}

/* Lock held: behind all others. */
static void put_last(struct rxw_workers *w, struct rxw_call *call)
{
	call->sched.next = NULL;
	call->sched.link = w->tail;
	*w->tail = call;
	w->tail = &call->sched.next;
}

/* Lock held: out of the queue. */
static void unlink_call(struct rxw_workers *w, struct rxw_call *call)
{
	*call->sched.link = call->sched.next;
	if (call->sched.next)
		call->sched.next->sched.link = call->sched.link;
	else
		w->tail = call->sched.link;
	call->sched.link = NULL;
}

/* Lock held: a call of the peer gets its worker. */
static void took(struct rxw_workers *w, struct rxw_peer *peer)
{
	w->taken++;
	less_waiting(w);
	if (atomic_exchange(&peer->fresh, false))
		w->fresh--;
}

/* Lock held. The first waiting call that may run now, taken from the queue. */
static struct rxw_call *take(struct rxw_workers *w)
{
	for (struct rxw_call *call = w->head; call; call = call->sched.next) {
		if (!may_take(w, call, busy_of(w)))
			continue;
		unlink_call(w, call);
		took(w, call->conn->p.peer);
		rxw_workers_release_call(call);
		call->conn->service->workers++;
		call->conn->p.peer->workers++;
		return call;
	}
	return NULL;
}

/*
 * Lock held: one that sleeps is to look for a call; false: none does that was not told already, or
 * enough are on their way. A burst would else wake the same few for each call that comes before
 * they have the lock, and each time they would look through the whole queue in vain; or it would
 * wake all at once, to wait for the lock and to find that the first of them took it all. What is
 * owed so, those pay that got a call.
 */
static bool tell_one(struct rxw_workers *w)
{
	if (w->signalled + w->deferred_signals >= w->asleep)
		return false;
	if (w->signalled >= w->signalled_max) {
		w->deferred_signals++;
		return false;
	}
	w->signalled++;
	return true;
}

/*
 * Lock held: one got a call. True: another one is told, since more wait than are on their way. Who
 * takes a call without being told pays for nobody: he may be the thread that was made for another.
 */
static bool tell_next(struct rxw_workers *w)
{
	if (!w->waiting)
		w->deferred_signals = 0;
	if (!w->deferred_signals || w->signalled >= w->signalled_max || w->signalled >= w->asleep || w->waiting <= w->signalled)
		return false;
	w->deferred_signals--;
	w->signalled++;
	return true;
}

/* Lock held. */
static void sleep_until_told(struct rxw_workers *w)
{
	w->asleep++;
	pthread_cond_wait(&w->work, &w->lock);
	w->asleep--;
	if (w->signalled)
		w->signalled--;
}

/* Lock held: its handler is through. */
static void let_go(struct rxw_workers *w, struct rxw_worker *worker, const struct rxw_call *call,
		   bool well)
{
	struct rxw_service *service = call->conn->service;
	struct rxw_peer *peer = call->conn->p.peer;

	rxw_worker_end_call(w, worker);
	service->workers--;
	peer->workers--;
	peer->served |= well;
	w->idle++;
	/*
	 * This thread looks for another call and takes the first that may run. Where more than the
	 * thread itself was in short supply, a second one may run now.
	 */
	if (w->waiting && (service->workers_max || !peer->workers) && tell_one(w))
		pthread_cond_signal(&w->work);
}

/* Lock held: it took the place of one that waited, and nobody does any more. */
static bool beyond(const struct rxw_workers *w)
{
	return w->threads > w->max && !w->parked && !w->waiting;
}

static void *work_loop(void *arg)
{
	struct rxw_endpoint *ep = arg;
	struct rxw_workers *w = &ep->workers;
	struct rxw_call *done = NULL; /* the reference goes when the lock does */
	struct rxw_worker self = {.call = NULL};
	bool well, tell, joins;
	pthread_t before;

	rxw_set_library_thread(ep);
	rxw_workers_lock(ep);
	rxw_worker_begin(w, &self);
	for (;;) {
		struct rxw_call *call = NULL;

		w->idle--; /* busy while it looks: may_take() counts this thread */
		call = take(w);
		w->idle++;
		if (!call && done) {
			rxw_workers_unlock(ep);
			rxw_call_unref(done);
			done = NULL;
			rxw_workers_lock(ep);
			continue;
		}
		if (!call) {
			if (w->stop || beyond(w))
				break;
			w->deferred_signals = 0; /* nothing may run */
			sleep_until_told(w);
			continue;
		}
		w->idle--;
		rxw_worker_begin_call(w, &self, call);
		tell = tell_next(w);
		rxw_workers_unlock(ep);
		if (tell)
			pthread_cond_signal(&w->work);
		if (done)
			rxw_call_unref(done);
		well = !ep->upcalls->serve(call, false);
		done = call;
		rxw_workers_lock(ep);
		let_go(w, &self, call, well);
	}
	rxw_worker_end(&self);
	w->threads--;
	w->idle--;
	joins = w->joinable;
	before = w->latest;
	w->joinable = true;
	w->latest = pthread_self();
	pthread_cond_broadcast(&w->gone);
	rxw_workers_unlock(ep);
	if (joins)
		pthread_join(before, NULL);
	return NULL;
}

/* Lock held: all that wait, linked by work_next; a reference each goes over. */
static struct rxw_call *take_all(struct rxw_workers *w)
{
	struct rxw_call *all = w->head;

	for (struct rxw_call *call = all; call; call = call->sched.next)
		call->sched.link = NULL;
	w->head = NULL;
	w->tail = &w->head;
	w->waiting = 0;
	return all;
}

static void refuse_all(struct rxw_call *all)
{
	while (all) {
		struct rxw_call *call = all;

		all = call->sched.next;
		call->conn->ep->upcalls->refuse(call);
		rxw_call_unref(call);
	}
}

/* Lock held: a thread that make_thread() makes without it. It counts as idle from now on. */
static void reserve_thread(struct rxw_workers *w)
{
	w->threads++;
	w->idle++;
}

/* Where no worker is and none can be made, none may ever come to take what waits. */
static int make_thread(struct rxw_endpoint *ep)
{
	struct rxw_workers *w = &ep->workers;
	struct rxw_call *left = NULL;
	unsigned ordinal, threads;
	pthread_t t;
	char name[16];
	int r;

	ordinal = atomic_fetch_add_explicit(&w->made, 1, memory_order_relaxed);
	snprintf(name, sizeof(name), "rxw-work%u", ordinal % 1000);
	r = rxw_thread_create(&t, &ep->config, ordinal + 1, name, work_loop, ep);
	if (!r)
		return 0;
	rxw_workers_lock(ep);
	w->idle--;
	threads = --w->threads;
	if (!threads)
		left = take_all(w);
	pthread_cond_broadcast(&w->gone);
	rxw_workers_unlock(ep);
	rxw_log(ep->engine, RXW_LOG_WARNING, "no thread for a call: %u workers run; %s", threads,
		threads ? "calls wait for them" : "it is refused");
	refuse_all(left);
	return r;
}

int rxw_workers_start(struct rxw_endpoint *ep)
{
	struct rxw_workers *w = &ep->workers;

	rxw_mutex_init(&w->lock);
	if (rxw_cond_init(&w->work) || rxw_cond_init(&w->gone))
		return -RXW_ENOMEM;
	w->tail = &w->head;
	w->min = ep->config.workers_min;
	w->max = ep->config.workers_max;
	w->waiters = ep->config.waiters_max;
	w->signalled_max = ep->engine->lookers_max / 2 + 1;
	atomic_init(&w->look_at, UINT64_MAX);
	w->reserved = ep->config.reserved_short < w->max ? ep->config.reserved_short : w->max - 1;
	w->kept = w->max < FEW ? w->max / (FEW / 2) : w->max / LEAST_PART;
	if (w->kept > ep->config.reserved_peers)
		w->kept = ep->config.reserved_peers;
	if (w->kept + w->reserved >= w->max)
		w->kept = 0;
	return 0;
}

unsigned rxw_workers_stop(struct rxw_endpoint *ep, uint64_t end)
{
	struct rxw_workers *w = &ep->workers;
	struct rxw_call *left;
	unsigned busy;
	bool joins;

	rxw_workers_lock(ep);
	w->stop = true;
	pthread_cond_broadcast(&w->work);
	/* Those that serve nothing go at once. */
	while (w->threads && (w->idle == w->threads || rxw_now() < end))
		rxw_cond_wait_until(&w->gone, &w->lock, w->idle == w->threads ? UINT64_MAX : end);
	busy = w->threads - w->idle;
	left = take_all(w);
	joins = !w->threads && w->joinable;
	if (joins)
		w->joinable = false;
	rxw_workers_unlock(ep);
	if (joins)
		pthread_join(w->latest, NULL);
	refuse_all(left);
	return busy;
}

/* Lock held: workers that any call may have. */
static unsigned usable(const struct rxw_workers *w)
{
	return w->max - w->kept - w->reserved;
}

/*
 * Lock held. How many calls may wait. A burst finds all places; so does each call, as long as the
 * queue runs empty from time to time.
 */
static uint64_t bound_of(struct rxw_endpoint *ep, uint64_t now)
{
	uint64_t queue = ep->config.queue, burst = ep->config.queue_burst_ms * RXW_MS, most;
	struct rxw_workers *w = &ep->workers;

	if (!burst)
		return queue;
	if (w->since && now >= w->since + burst &&
	    (w->standing || w->taken >= ROUNDS * usable(w))) {
		w->standing = w->waiting;
		w->briefly = w->taken * LEAST_WAIT / (now - w->since);
		w->since = now;
		w->taken = 0;
	}
	if (!w->standing)
		return queue;
	most = STANDING * usable(w);
	if (most < w->briefly)
		most = w->briefly;
	return most < queue ? most : queue;
}

/*
 * Lock held. Is there a place for one more call of this peer? The fewer are left, the fewer one
 * peer may have, so that who asks for much does not take the places of all others. One that has
 * nothing here finds one as long as there is any, or a worker that is kept for such.
 */
static bool has_place(struct rxw_endpoint *ep, const struct rxw_peer *peer, uint64_t now)
{
	struct rxw_workers *w = &ep->workers;
	uint64_t bound = bound_of(ep, now);
	uint64_t places = atomic_load(&w->places), mine = atomic_load(&peer->places);
	uint64_t ready = free_of(w);

	if (!mine && !peer->workers) {
		if (w->fresh < 2 * w->kept)
			bound = ep->config.queue;
		return places < bound + ready;
	}
	if (!w->kept)
		return places < bound + ready;
	ready = ready > w->kept ? ready - w->kept : 0;
	return places < bound + ready && mine < ready + SHARE_OF_FREE * (bound + ready - places);
}

/*
 * Calls of one batch are all made before the first is queued, so the bound is kept when they are
 * made. Where one of a peer found no place, those of its peer that came with it find none either:
 * a refusal is to cost little, and the lock is what it has in common with those that are served.
 */
bool rxw_workers_reserve(struct rxw_connection *c)
{
	static _Thread_local struct {
		const struct rxw_peer *peer; /* only compared */
		uint64_t at;
	} full __attribute__((tls_model("initial-exec")));
	struct rxw_endpoint *ep = c->ep;
	struct rxw_workers *w = &ep->workers;
	struct rxw_peer *peer = c->p.peer;
	uint64_t now = rxw_clock_cached();
	bool placed;

	if (full.peer == peer && full.at == now)
		return false;
	rxw_workers_lock(ep);
	placed = has_place(ep, peer, now);
	full.peer = placed ? NULL : peer;
	full.at = now;
	if (placed) {
		if (!atomic_load(&peer->places) && !peer->workers &&
		    !atomic_exchange(&peer->fresh, true))
			w->fresh++;
		atomic_fetch_add(&w->places, 1);
		atomic_fetch_add(&peer->places, 1);
	}
	rxw_workers_unlock(ep);
	return placed;
}

bool rxw_workers_scarce(struct rxw_endpoint *ep)
{
	struct rxw_workers *w = &ep->workers;
	unsigned taken;

	rxw_workers_lock(ep);
	taken = w->threads - w->idle + atomic_load(&w->places);
	rxw_workers_unlock(ep);
	return taken > (w->max + 1) / 2;
}

uint64_t rxw_workers_wait(struct rxw_endpoint *ep)
{
	struct rxw_workers *w = &ep->workers;
	uint64_t wait = 0;

	rxw_workers_lock(ep);
	if (w->standing)
		wait = w->waiting * LEAST_WAIT / (w->briefly ? w->briefly : 1);
	rxw_workers_unlock(ep);
	return wait;
}

void rxw_workers_release(struct rxw_connection *c)
{
	struct rxw_endpoint *ep = c->ep;
	struct rxw_peer *peer = c->p.peer;

	atomic_fetch_sub(&ep->workers.places, 1);
	if (atomic_fetch_sub(&peer->places, 1) != 1 || !atomic_load(&peer->fresh))
		return;
	/* Its only call went before a worker took it. */
	rxw_workers_lock(ep);
	if (!atomic_load(&peer->places) && atomic_exchange(&peer->fresh, false))
		ep->workers.fresh--;
	rxw_workers_unlock(ep);
}

/* Its place is given back; false: it had none. */
static bool gave_place(struct rxw_call *call)
{
	if (!atomic_exchange(&call->sched.reserved, false))
		return false;
	rxw_workers_release(call->conn);
	return true;
}

void rxw_workers_release_call(struct rxw_call *call)
{
	gave_place(call);
}

void rxw_workers_withdraw(struct rxw_call *call)
{
	struct rxw_endpoint *ep = call->conn->ep;
	struct rxw_workers *w = &ep->workers;
	bool queued = false;

	if (!gave_place(call))
		return; /* a worker took it, or it never was to have one */
	rxw_workers_lock(ep);
	if (call->sched.link) {
		unlink_call(w, call);
		less_waiting(w);
		queued = true;
	}
	call->sched.withdrawn = true;
	rxw_workers_unlock(ep);
	if (queued)
		rxw_call_unref(call);
}

bool rxw_workers_add(struct rxw_call *call)
{
	struct rxw_endpoint *ep = call->conn->ep;
	struct rxw_workers *w = &ep->workers;
	bool runs, wake, make;

	RXW_PROBE(call_queued, &call->p);
	rxw_workers_lock(ep);
	if (w->stop) {
		/* Its request was on the way when the endpoint stopped: no worker comes any more. */
		rxw_workers_unlock(ep);
		return false;
	}
	if (call->sched.withdrawn) {
		rxw_workers_unlock(ep);
		return true;
	}
	rxw_call_ref(call);
	put_last(w, call);
	if (!w->waiting++ && !w->standing) {
		w->since = rxw_clock_cached();
		w->taken = 0;
	}
	if (w->idle < w->waiting)
		w->waited++;
	/* If not now, then a worker that is through with another call takes it. */
	runs = may_take(w, call, busy_of(w) + w->signalled + 1);
	make = runs && w->idle < w->waiting && w->threads < w->max + w->parked;
	if (make)
		reserve_thread(w);
	if (w->idle < w->waiting && w->waiters && atomic_load(&w->look_at) == UINT64_MAX)
		atomic_store(&w->look_at, rxw_clock_cached());
	wake = runs && tell_one(w);
	rxw_workers_unlock(ep);
	if (wake)
		pthread_cond_signal(&w->work);
	if (make)
		make_thread(ep);
	return true;
}

/*
 * Lock held. Places of parked workers may be had by calls that wait: by threads that are idle, and
 * by new ones. A thread that cannot be made is no loss: those that there are go on. Idle ones that
 * are kept for peers without any are left alone while there is none: they would look through the
 * whole queue in vain, up to all its places, at each look.
 */
unsigned rxw_workers_more(struct rxw_endpoint *ep)
{
	struct rxw_workers *w = &ep->workers;
	unsigned threads = 0;

	if (w->idle && (w->fresh || busy_of(w) + 1 + w->kept <= w->max))
		pthread_cond_broadcast(&w->work);
	for (; w->idle < w->waiting && w->idle < free_of(w) && w->threads < w->max + w->parked;
	     threads++)
		reserve_thread(w);
	return threads;
}

void rxw_workers_make(struct rxw_endpoint *ep, unsigned threads)
{
	while (threads--)
		make_thread(ep);
}
