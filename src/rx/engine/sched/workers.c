/* SPDX-License-Identifier: BSD-2-Clause */
/* Workers: threads that run handlers, and the queue of calls that wait for one. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine/objects.h"
#include "engine/sched/inner.h"
#include "proto/peer/event.h"

/*
 * At most one in RESERVED_PART workers is reserved for peers that have none. With fewer than
 * FEW_WORKERS workers one is reserved, with fewer than four none.
 */
#define RESERVED_PART 8
#define FEW_WORKERS   8
#define SHARE_OF_FREE 8 /* a peer's reservations, in multiples of the free ones */

/*
 * Under sustained overload a longer queue only adds delay. The queue is then limited to STANDING
 * calls for each worker, or to the number that workers take in LEAST_WAIT if that is more, since
 * the listener may be busy with a batch for that long. Overload counts as sustained once each
 * worker has taken ROUNDS calls.
 */
#define STANDING   2
#define LEAST_WAIT (2 * RXW_MS)
#define ROUNDS	   4

/* Workers' lock held: threads that run handlers, or are about to. */
static unsigned count_running(const struct rxw_workers *w)
{
	return w->threads - w->idle + w->listeners;
}

/* Workers' lock held: workers and listeners that have a call and are not parked. */
static unsigned busy_workers(const struct rxw_workers *w)
{
	return count_running(w) - w->parked;
}

/* Workers' lock held: how many more may have a call. */
static unsigned free_workers(const struct rxw_workers *w)
{
	unsigned busy = busy_workers(w);

	return w->max > busy ? w->max - busy : 0;
}

/*
 * Workers' lock held. May the call run as one of `busy`? Some workers are reserved for peers that
 * have none.
 */
static bool may_run(const struct rxw_workers *w, const struct rxw_call *call, unsigned busy)
{
	const struct rxw_service *s = call->conn->service;
	unsigned unavailable = call->conn->p.account->workers ? w->reserved_peers : 0;

	if (s->held || (s->workers_max && s->workers >= s->workers_max))
		return false;
	return !unavailable || busy + unavailable <= w->max;
}

/*
 * Workers' lock held. A standing queue may run empty for a moment while the listener is busy; only
 * queue_bound() ends that state.
 */
static void waiting_dec(struct rxw_workers *w)
{
	if (!--w->waiting && !w->standing)
		w->since = 0;
}

/* Workers' lock held: append to the queue. */
static void append_call(struct rxw_workers *w, struct rxw_call *call)
{
	assert(!call->sched.link && !call->sched.withdrawn);
	call->sched.next = NULL;
	call->sched.link = w->tail;
	*w->tail = call;
	w->tail = &call->sched.next;
}

/* Workers' lock held: remove from the queue. */
static void unlink_waiting_call(struct rxw_workers *w, struct rxw_call *call)
{
	assert(w->waiting && call->sched.link && *call->sched.link == call);
	*call->sched.link = call->sched.next;
	if (call->sched.next)
		call->sched.next->sched.link = call->sched.link;
	else
		w->tail = call->sched.link;
	call->sched.link = NULL;
	if (call->sched.left)
		atomic_fetch_sub_explicit(&w->left, 1, memory_order_relaxed);
	call->sched.left = false;
}

/* Workers' lock held: this thread, which counts as busy, takes a call from the queue. */
static struct rxw_call *take_call(struct rxw_workers *w, struct rxw_call *call)
{
	struct rxw_peer *peer = call->conn->p.account;

	assert(rxw_is_locked(&w->lock));
	unlink_waiting_call(w, call);
	w->taken++;
	waiting_dec(w);
	if (atomic_exchange(&peer->fresh, false))
		w->fresh--;
	rxw_workers_release_call(call);
	call->conn->service->workers++;
	peer->workers++;
	return call;
}

/* Workers' lock held: listeners are no threads of w->max, but their handlers count. */
static bool too_many(const struct rxw_workers *w)
{
	return w->listeners && busy_workers(w) > w->max;
}

/* Workers' lock held: dequeue the first call that may run now and is not left to a listener. */
static struct rxw_call *dequeue_call(struct rxw_workers *w)
{
	if (!rxw_workers_due(w) || too_many(w))
		return NULL;
	for (struct rxw_call *call = w->head; call; call = call->sched.next)
		if (!call->sched.left && may_run(w, call, busy_workers(w)))
			return take_call(w, call);
	return NULL;
}

/* Workers' lock held: the first call, if a listener may serve it now. */
static struct rxw_call *dequeue_quick(struct rxw_workers *w, uint64_t now)
{
	if (!w->head || too_many(w) || !rxw_is_quick(w->head->conn->service, now) ||
	    !may_run(w, w->head, busy_workers(w)))
		return NULL;
	return take_call(w, w->head);
}

/* Workers' lock held: a sleeping worker should look for a call. False: all of them were signalled already. */
static bool signal_worker(struct rxw_workers *w)
{
	if (w->signalled >= w->asleep)
		return false;
	w->signalled++;
	return true;
}

/* Workers' lock held. */
static void sleep_until_signalled(struct rxw_workers *w)
{
	w->asleep++;
	pthread_cond_wait(&w->work, &w->lock);
	w->asleep--;
	if (w->signalled)
		w->signalled--;
}

/*
 * Workers' lock held: the call's handler has returned. This thread takes the next call that may
 * run, or hands it over.
 */
static void end_call(struct rxw_workers *w, struct rxw_worker *worker, const struct rxw_call *call,
		     bool succeeded)
{
	struct rxw_service *service = call->conn->service;
	struct rxw_peer *peer = call->conn->p.account;

	assert(service->workers && peer->workers);
	rxw_worker_end_call(w, worker);
	service->workers--;
	peer->workers--;
	peer->served |= succeeded;
	/* If the service or the peer was short of workers, a second call may run now as well. */
	if (rxw_workers_due(w) && (service->workers_max || !peer->workers) && signal_worker(w))
		pthread_cond_signal(&w->work);
}

/* Workers' lock held: this thread replaced a parked worker and is no longer needed. */
static bool is_surplus(const struct rxw_workers *w)
{
	return w->threads > w->max && !w->parked && !rxw_workers_due(w);
}

/* Workers' lock held, and released: the thread ends. If calls waited for it, another one begins. */
static __attribute__((cold)) void end_thread(struct rxw_endpoint *ep, struct rxw_worker *self)
{
	struct rxw_workers *w = ep->workers;
	pthread_t before = w->latest;
	bool joins = w->joinable;
	unsigned more;

	assert(rxw_is_locked(&w->lock) && w->idle);
	rxw_worker_end(self);
	w->threads--;
	w->idle--;
	w->joinable = true;
	w->latest = pthread_self();
	more = w->stop ? 0 : rxw_workers_more(ep, 0);
	pthread_cond_broadcast(&w->gone);
	rxw_workers_unlock(ep);
	rxw_workers_make(ep, more);
	if (joins)
		pthread_join(before, NULL);
}

/* What the handler of a call would leave undone if it ended its thread. */
struct served {
	struct rxw_endpoint *ep;
	struct rxw_worker *worker;
	struct rxw_call *call; /* one reference */
};

static void abandon_call(void *arg)
{
	struct served *s = arg;

	if (!rxw_call_is_deferred(s->call))
		rxw_call_refuse(s->call, RXW_USER_ABORT);
	/* With one lock: a thread that counted as idle in between would be relied on by the next call. */
	rxw_workers_lock(s->ep);
	s->ep->workers->idle++;
	end_call(s->ep->workers, s->worker, s->call, false);
	end_thread(s->ep, s->worker);
	rxw_call_unref(s->call); /* the endpoint joins this thread */
}

/* Runs the handler, and notes how long it took. Returns whether the call succeeded. */
static bool serve_taken_call(struct rxw_endpoint *ep, struct rxw_worker *worker,
			     struct rxw_call *call)
{
	struct served served = {.ep = ep, .worker = worker, .call = call};
	struct rxw_workers *w = ep->workers;
	uint64_t before = rxw_now();
	bool succeeded;

	pthread_cleanup_push(abandon_call, &served);
	succeeded = !ep->upcalls->serve(call, RXW_BY_WORKER);
	pthread_cleanup_pop(0);
	if (rxw_run_note(call->conn->service, rxw_now() - before) &&
	    !atomic_load_explicit(&w->any_quick, memory_order_relaxed))
		atomic_store_explicit(&w->any_quick, true, memory_order_relaxed);
	return succeeded;
}

static void *work_loop(void *arg)
{
	struct rxw_endpoint *ep = arg;
	struct rxw_workers *w = ep->workers;
	struct rxw_call *done = NULL; /* its reference is dropped without the lock */
	struct rxw_worker self = {.tid = gettid()};
	bool succeeded;

	rxw_set_library_thread(ep);
	rxw_workers_lock(ep);
	rxw_worker_begin(w, &self);
	for (;;) {
		struct rxw_call *call = NULL;

		w->idle--; /* busy while it searches: may_run() counts this thread */
		call = dequeue_call(w);
		w->idle++;
		if (!call && done) {
			rxw_workers_unlock(ep);
			rxw_call_unref(done);
			done = NULL;
			rxw_workers_lock(ep);
			continue;
		}
		if (!call) {
			if (w->stop || is_surplus(w))
				break;
			sleep_until_signalled(w);
			continue;
		}
		w->idle--;
		rxw_worker_begin_call(w, &self, call);
		rxw_workers_unlock(ep);
		if (done)
			rxw_call_unref(done);
		succeeded = serve_taken_call(ep, &self, call);
		done = call;
		rxw_workers_lock(ep);
		w->idle++;
		end_call(w, &self, call, succeeded);
	}
	end_thread(ep, &self);
	return NULL;
}

/*
 * Workers' lock held: empty the queue. Returns the calls, linked by sched.next, with one reference
 * each.
 */
static __attribute__((cold)) struct rxw_call *dequeue_all(struct rxw_workers *w)
{
	struct rxw_call *all = w->head;

	for (struct rxw_call *call = all; call; call = call->sched.next) {
		call->sched.link = NULL;
		call->sched.left = false;
	}
	atomic_store_explicit(&w->left, 0, memory_order_relaxed);
	w->head = NULL;
	w->tail = &w->head;
	w->waiting = 0;
	return all;
}

static __attribute__((cold)) void refuse_all(struct rxw_call *all)
{
	while (all) {
		struct rxw_call *call = all;

		all = call->sched.next;
		rxw_call_refuse(call, 0);
		rxw_call_unref(call);
	}
}

/*
 * If there is no worker and none can be created, the waiting calls are refused: none would ever
 * serve them.
 */
static __attribute__((cold)) int start_worker(struct rxw_endpoint *ep)
{
	struct rxw_workers *w = ep->workers;
	struct rxw_call *left = NULL;
	unsigned ordinal, threads;
	pthread_t t;
	char name[16];
	int r;

	ordinal = atomic_fetch_add_explicit(&w->made, 1, memory_order_relaxed);
	snprintf(name, sizeof(name), "rxw-work%u", ordinal % 1000);
	r = rxw_thread_create(&t, ep, (ordinal + 1) & ~RXW_OF_SHARD, name, work_loop, ep);
	if (!r)
		return 0;
	rxw_workers_lock(ep);
	w->idle--;
	threads = --w->threads;
	if (!threads)
		left = dequeue_all(w);
	else if (atomic_load(&w->sample_at) == UINT64_MAX && !w->stop)
		atomic_store(&w->sample_at, rxw_now() + RXW_MS);
	pthread_cond_broadcast(&w->gone);
	rxw_workers_unlock(ep);
	rxw_log(ep->engine, RXW_LOG_WARNING, "cannot start a worker thread (%u are running): %s",
		threads, threads ? "calls wait for the others" : "the waiting calls are refused");
	refuse_all(left);
	return r;
}

__attribute__((cold)) unsigned rxw_workers_limit(struct rxw_endpoint *ep, unsigned workers,
						 unsigned queue)
{
	struct rxw_workers *w = ep->workers;
	unsigned threads;

	rxw_workers_lock(ep);
	w->queue = queue;
	w->max = workers;
	w->reserved_peers =
		w->max < FEW_WORKERS ? w->max / (FEW_WORKERS / 2) : w->max / RESERVED_PART;
	if (w->reserved_peers > ep->settings.constants.reserved_peers)
		w->reserved_peers = ep->settings.constants.reserved_peers;
	threads = rxw_workers_more(ep, 0);
	rxw_workers_unlock(ep);
	return threads;
}

__attribute__((cold)) int rxw_workers_create(struct rxw_endpoint *ep)
{
	struct rxw_workers *w = calloc(1, sizeof(*w));

	if (!w)
		return -RXW_ENOMEM;
	if (rxw_cond_init(&w->work) || rxw_cond_init(&w->gone)) {
		free(w);
		return -RXW_ENOMEM;
	}
	rxw_mutex_init(&w->lock);
	w->tail = &w->head;
	w->waiters = ep->settings.constants.waiters_max;
	w->few = ep->engine->cpus;
	atomic_init(&w->sample_at, UINT64_MAX);
	ep->workers = w;
	rxw_workers_limit(ep, ep->settings.config.workers_max, ep->settings.config.queue);
	return 0;
}

void rxw_workers_free(struct rxw_workers *w)
{
	if (!w)
		return;
	assert(!w->threads && !w->head);
	pthread_cond_destroy(&w->work);
	pthread_cond_destroy(&w->gone);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

void rxw_workers_count(struct rxw_endpoint *ep, struct rxw_workers_count *n)
{
	const struct rxw_workers *w = ep->workers;

	rxw_workers_lock(ep);
	*n = (struct rxw_workers_count){.threads = w->threads,
					.idle = w->idle,
					.parked = w->parked,
					.waiting = w->waiting,
					.waited = w->waited,
					.executed = w->executed};
	rxw_workers_unlock(ep);
}

uint64_t rxw_workers_sample_at(const struct rxw_endpoint *ep)
{
	return atomic_load(&ep->workers->sample_at);
}

bool rxw_workers_any_quick(const struct rxw_endpoint *ep)
{
	return atomic_load_explicit(&ep->workers->any_quick, memory_order_relaxed);
}

unsigned rxw_workers_left(const struct rxw_endpoint *ep)
{
	return atomic_load_explicit(&ep->workers->left, memory_order_relaxed);
}

__attribute__((cold)) unsigned rxw_workers_stop(struct rxw_endpoint *ep, uint64_t end)
{
	struct rxw_workers *w = ep->workers;
	struct rxw_call *left;
	unsigned busy;
	bool joins;

	rxw_workers_lock(ep);
	w->stop = true;
	pthread_cond_broadcast(&w->work);
	/* Idle workers end at once. */
	while ((w->threads || w->listeners) && (!count_running(w) || rxw_now() < end))
		rxw_cond_wait_until(&w->gone, &w->lock, count_running(w) ? end : UINT64_MAX);
	busy = count_running(w);
	left = dequeue_all(w);
	joins = !w->threads && w->joinable;
	if (joins)
		w->joinable = false;
	rxw_workers_unlock(ep);
	if (joins)
		pthread_join(w->latest, NULL);
	refuse_all(left);
	return busy;
}

/* Workers' lock held: workers that any call may use. */
static unsigned unreserved_workers(const struct rxw_workers *w)
{
	return w->max - w->reserved_peers;
}

/*
 * Workers' lock held. The length that the queue may have. Short bursts may use all of it, and any
 * call may as long as the queue runs empty from time to time.
 */
static uint64_t queue_bound(struct rxw_endpoint *ep, uint64_t now)
{
	uint64_t queue = ep->workers->queue, burst = ep->settings.constants.queue_burst_ms * RXW_MS,
		 most;
	struct rxw_workers *w = ep->workers;

	if (!burst)
		return queue;
	if (w->since && now >= w->since + burst &&
	    (w->standing || w->taken >= ROUNDS * unreserved_workers(w))) {
		w->standing = w->waiting;
		w->taken_per_wait = w->taken * LEAST_WAIT / (now - w->since);
		w->since = now;
		w->taken = 0;
	}
	if (!w->standing)
		return queue;
	most = STANDING * unreserved_workers(w);
	if (most < w->taken_per_wait)
		most = w->taken_per_wait;
	return most < queue ? most : queue;
}

/*
 * Workers' lock held: how many calls may have places, of which `ready` get workers. Those whose threads are not started
 * yet wait, too, in places of the queue as far as it has them.
 */
static uint64_t places_of(const struct rxw_workers *w, uint64_t bound, uint64_t ready)
{
	uint64_t now = w->idle < ready ? w->idle : ready, later = ready - now;

	return now + (bound > later ? bound : later);
}

/*
 * Workers' lock held. Is there room for one more call of this peer? The less room is left, the
 * smaller a peer's share of it, so that a demanding peer does not crowd out the others. A peer
 * without any call here may use any room that is left, or a worker that is reserved for such peers.
 */
static bool has_room_for_peer(struct rxw_endpoint *ep, const struct rxw_peer *peer, uint64_t now)
{
	struct rxw_workers *w = ep->workers;
	uint64_t bound = queue_bound(ep, now);
	uint64_t places = atomic_load(&w->reservations), mine = atomic_load(&peer->places);
	uint64_t ready = free_workers(w), most;

	if (!mine && !peer->workers) {
		if (w->fresh < 2 * w->reserved_peers)
			bound = w->queue;
		return places < places_of(w, bound, ready);
	}
	ready = ready > w->reserved_peers ? ready - w->reserved_peers : 0;
	most = places_of(w, bound, ready);
	return places < most &&
	       (!w->reserved_peers || mine < ready + SHARE_OF_FREE * (most - places));
}

/*
 * Workers' lock held. Would no more calls of the service wait, with one more of this peer, than it
 * lets wait? Calls that a free worker will take do not wait.
 */
static bool may_wait_for_service(const struct rxw_workers *w, const struct rxw_service *s,
				 const struct rxw_peer *peer)
{
	unsigned most = atomic_load_explicit(&s->waiting_max, memory_order_relaxed);
	unsigned mine = atomic_load(&s->places) + 1, all = atomic_load(&w->reservations) + 1;
	unsigned ready = free_workers(w), reserved = peer->workers ? w->reserved_peers : 0, own = 0;

	if (!most || mine <= most)
		return true;
	ready = ready > reserved ? ready - reserved : 0;
	if (s->held)
		own = mine;
	else if (s->workers_max && s->workers + mine > s->workers_max)
		own = s->workers + mine - s->workers_max;
	return own <= most && all <= (uint64_t)most + ready;
}

/*
 * The calls of a batch are all created before the first one is queued, so the bound applies when
 * they are created. Once a call of a peer was refused, further calls of the same peer in the same
 * batch are refused without the lock: refusals must be cheap and must not contend with the calls
 * that are served. So are those of the service that has no room for more.
 */
bool rxw_workers_reserve(struct rxw_connection *c)
{
	static _Thread_local struct {
		const struct rxw_peer *peer;	   /* only compared ... */
		const struct rxw_service *service; /* ... and this; NULL: of any */
		uint64_t at;
	} full __attribute__((tls_model("initial-exec")));
	struct rxw_endpoint *ep = c->ep;
	struct rxw_workers *w = ep->workers;
	struct rxw_peer *peer = c->p.account;
	uint64_t now = rxw_clock_cached();
	bool room, reserved;

	if (full.peer == peer && full.at == now && (!full.service || full.service == c->service))
		return false;
	rxw_workers_lock(ep);
	room = has_room_for_peer(ep, peer, now);
	reserved = room && may_wait_for_service(w, c->service, peer);
	full.peer = reserved ? NULL : peer;
	full.service = room ? c->service : NULL;
	full.at = now;
	if (reserved) {
		if (!atomic_load(&peer->places) && !peer->workers &&
		    !atomic_exchange(&peer->fresh, true))
			w->fresh++;
		atomic_fetch_add(&w->reservations, 1);
		atomic_fetch_add(&peer->places, 1);
		atomic_fetch_add(&c->service->places, 1);
	}
	rxw_workers_unlock(ep);
	return reserved;
}

bool rxw_workers_scarce(struct rxw_endpoint *ep)
{
	struct rxw_workers *w = ep->workers;
	unsigned taken;

	rxw_workers_lock(ep);
	taken = count_running(w) + atomic_load(&w->reservations);
	rxw_workers_unlock(ep);
	return taken > (w->max + 1) / 2;
}

uint64_t rxw_workers_wait(struct rxw_endpoint *ep)
{
	struct rxw_workers *w = ep->workers;
	uint64_t wait = 0;

	rxw_workers_lock(ep);
	if (w->standing)
		wait = w->waiting * LEAST_WAIT / (w->taken_per_wait ? w->taken_per_wait : 1);
	rxw_workers_unlock(ep);
	return wait;
}

void rxw_workers_release(struct rxw_connection *c)
{
	struct rxw_endpoint *ep = c->ep;
	struct rxw_peer *peer = c->p.account;

	rxw_count_down(&ep->workers->reservations);
	rxw_count_down(&c->service->places);
	if (atomic_fetch_sub(&peer->places, 1) != 1 || !atomic_load(&peer->fresh))
		return;
	/* The peer's only call ended before a worker took it. */
	rxw_workers_lock(ep);
	if (!atomic_load(&peer->places) && atomic_exchange(&peer->fresh, false))
		ep->workers->fresh--;
	rxw_workers_unlock(ep);
}

void rxw_workers_assign(struct rxw_call *call)
{
	atomic_store(&call->sched.reserved, true);
}

bool rxw_workers_reserved(const struct rxw_call *call)
{
	return atomic_load(&call->sched.reserved);
}

bool rxw_workers_release_call(struct rxw_call *call)
{
	if (!atomic_load(&call->sched.reserved) || !atomic_exchange(&call->sched.reserved, false))
		return false;
	rxw_workers_release(call->conn);
	return true;
}

void rxw_workers_withdraw(struct rxw_call *call)
{
	struct rxw_endpoint *ep = call->conn->ep;
	struct rxw_workers *w = ep->workers;
	bool queued;

	if (!rxw_workers_release_call(call))
		return; /* a worker took it, or it needs none */
	rxw_workers_lock(ep);
	queued = call->sched.link;
	if (queued) {
		unlink_waiting_call(w, call);
		waiting_dec(w);
	}
	call->sched.withdrawn = true;
	rxw_workers_unlock(ep);
	if (queued)
		rxw_call_unref(call);
}

/*
 * Workers' lock held, before the call is queued: will a listener get to it? They serve quick
 * services from the head of the queue.
 */
static bool may_leave(const struct rxw_workers *w, const struct rxw_call *call)
{
	uint64_t now = rxw_clock_cached();

	return rxw_is_quick(call->conn->service, now) &&
	       (!w->head || rxw_is_quick(w->head->conn->service, now));
}

/* Workers' lock held: how many threads there may be even if all of them run. Parked ones do not. */
static unsigned few_threads(const struct rxw_workers *w)
{
	return (w->few < w->max ? w->few : w->max) + w->parked;
}

/*
 * Workers' lock held: count the threads to start for calls that wait for a worker, up to `most` in all.
 * start_worker() creates them without the lock. They count as idle.
 */
static unsigned reserve_threads(struct rxw_workers *w, unsigned most)
{
	unsigned before = w->threads;

	for (; w->idle < rxw_workers_due(w) && w->idle < free_workers(w) && w->threads < most;
	     w->idle++)
		w->threads++;
	return w->threads - before;
}

/* Workers' lock held: calls wait. Are the threads blocked? False: this is being watched, or nothing follows from it. */
static bool arm_sampler(struct rxw_workers *w)
{
	if (w->stop || w->idle >= rxw_workers_due(w) || (!w->waiters && w->threads >= w->max) ||
	    atomic_load(&w->sample_at) != UINT64_MAX)
		return false;
	w->look_interval = RXW_MS;
	w->few_run = false;
	atomic_store(&w->sample_at, rxw_clock_cached() + RXW_MS);
	return true;
}

bool rxw_workers_add(struct rxw_call *call, bool serves)
{
	struct rxw_endpoint *ep = call->conn->ep;
	struct rxw_workers *w = ep->workers;
	struct rxw_shard *home = rxw_home(call->conn);
	bool may_run_now, wake, armed;
	unsigned threads;

	RXW_PROBE(call_queued, &call->p);
	rxw_workers_lock(ep);
	if (w->stop) {
		/* The endpoint stops, so no worker will take the call. */
		rxw_workers_unlock(ep);
		return false;
	}
	if (call->sched.withdrawn) {
		rxw_workers_unlock(ep);
		return true;
	}
	rxw_call_ref(call);
	call->sched.left = serves && may_leave(w, call);
	append_call(w, call);
	if (!w->waiting++ && !w->standing) {
		w->since = rxw_clock_cached();
		w->taken = 0;
	}
	if (call->sched.left) {
		atomic_fetch_add_explicit(&w->left, 1, memory_order_relaxed);
		rxw_workers_unlock(ep);
		return true;
	}
	if (w->idle < rxw_workers_due(w))
		w->waited++;
	/* If it may not run now, a worker takes it after another call. */
	may_run_now = may_run(w, call, busy_workers(w) + w->signalled + 1);
	threads = may_run_now ? reserve_threads(w, few_threads(w)) : 0;
	armed = arm_sampler(w);
	wake = may_run_now && signal_worker(w);
	rxw_workers_unlock(ep);
	if (wake)
		pthread_cond_signal(&w->work);
	if (armed && atomic_load(&home->role.in_wait))
		rxw_io_wake(home->sock);
	rxw_workers_make(ep, threads);
	return true;
}

/*
 * Workers' lock held. Parked workers are replaced by idle threads and by new ones. If a new thread
 * cannot be created, the present ones continue. Idle workers that are reserved for peers without
 * any are not woken unless such a peer waits: each would search the whole queue for nothing.
 */
__attribute__((cold)) unsigned rxw_workers_more(struct rxw_endpoint *ep, unsigned useful)
{
	struct rxw_workers *w = ep->workers;
	unsigned few = few_threads(w), more = w->threads + useful, most = w->max + w->parked;

	assert(rxw_is_locked(&w->lock) && w->idle <= w->threads && w->signalled <= w->asleep);
	assert(w->parked <= count_running(w));
	if (w->idle && (w->fresh || busy_workers(w) + 1 + w->reserved_peers <= w->max))
		pthread_cond_broadcast(&w->work);
	arm_sampler(w);
	return reserve_threads(w, more < few ? few : more > most ? most : more);
}

bool rxw_workers_release_service(struct rxw_service *service)
{
	struct rxw_endpoint *ep = service->ep;
	unsigned threads = 0;
	bool held;

	rxw_workers_lock(ep);
	held = service->held;
	service->held = false;
	if (held)
		threads = rxw_workers_more(ep, 0);
	rxw_workers_unlock(ep);
	rxw_workers_make(ep, threads);
	return held;
}

void rxw_workers_limit_service(struct rxw_service *service, unsigned most)
{
	unsigned threads;

	rxw_workers_lock(service->ep);
	service->workers_max = most;
	threads = rxw_workers_more(service->ep, 0);
	rxw_workers_unlock(service->ep);
	rxw_workers_make(service->ep, threads);
}

void rxw_workers_make(struct rxw_endpoint *ep, unsigned threads)
{
	while (threads--)
		start_worker(ep);
}

/*
 * Workers' lock held, and released. Workers take the calls that were left to listeners, and one for
 * which there may have been no worker while a listener was busy.
 */
static void hand_over_calls(struct rxw_endpoint *ep)
{
	struct rxw_workers *w = ep->workers;
	unsigned left = atomic_load_explicit(&w->left, memory_order_relaxed);
	unsigned more = left + (rxw_workers_due(w) ? 1 : 0), signals = 0, threads = 0;

	for (struct rxw_call *call = w->head; call && left; call = call->sched.next) {
		left -= call->sched.left;
		call->sched.left = false;
	}
	assert(!left);
	atomic_store_explicit(&w->left, 0, memory_order_relaxed);
	if (!w->stop) {
		threads = reserve_threads(w, few_threads(w));
		arm_sampler(w);
	}
	for (; more && signal_worker(w); more--)
		signals++;
	rxw_workers_unlock(ep);
	while (signals--)
		pthread_cond_signal(&w->work);
	rxw_workers_make(ep, threads);
}

void rxw_workers_hand_over(struct rxw_endpoint *ep)
{
	if (!atomic_load_explicit(&ep->workers->left, memory_order_relaxed))
		return;
	rxw_workers_lock(ep);
	hand_over_calls(ep);
}

uint64_t rxw_workers_serve(struct rxw_endpoint *ep)
{
	struct rxw_workers *w = ep->workers;
	struct rxw_call *call, *done = NULL; /* its reference is dropped without the lock */
	struct rxw_worker self = {.call = NULL};
	uint64_t now = rxw_now(), end = now + rxw_run_stay(ep), shards = 0;
	bool succeeded;

	rxw_workers_lock(ep);
	rxw_worker_begin(w, &self);
	w->listeners++; /* busy while it searches: may_run() counts this thread */
	while (now < end && (call = dequeue_quick(w, now))) {
		struct rxw_service *service = call->conn->service;
		struct rxw_run run;

		rxw_worker_begin_call(w, &self, call);
		rxw_workers_unlock(ep);
		if (done)
			rxw_call_unref(done);
		shards |= UINT64_C(1) << rxw_home(call->conn)->index;
		rxw_run_begin(&run, service, now);
		rxw_clock_cache_set(now);
		succeeded = !ep->upcalls->serve(call, RXW_BY_LISTENER);
		now = rxw_clock_cached();
		rxw_run_note(service, now - run.began);
		rxw_run_end(&run, service, now);
		done = call;
		rxw_workers_lock(ep);
		end_call(w, &self, call, succeeded);
	}
	rxw_clock_cache_set(0);
	w->listeners--;
	rxw_worker_end(&self);
	if (w->stop)
		pthread_cond_broadcast(&w->gone);
	hand_over_calls(ep);
	if (done)
		rxw_call_unref(done);
	return shards;
}
