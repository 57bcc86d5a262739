/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Workers that are blocked on their clients: they are parked, which lets others replace them, and
 * calls that make no progress are found.
 */
#include "common/asleep.h"
#include "engine/objects.h"
#include "engine/sched/inner.h"

/*
 * Blocked workers are found by sampling. A worker that was blocked in two consecutive samples is
 * parked; one that was not blocked in two consecutive samples counts again. The cost for a worker
 * is two stores around each sleep.
 */
#define SAMPLE_INTERVAL (10 * RXW_MS)
#define LONG_RUN	(100 * RXW_MS)
/*
 * A call's rate is measured over at least YOUNG; over at least ESTABLISHED if its client was served
 * before, since anybody's packets may be lost; and over at most MEMORY.
 */
#define YOUNG	    (RXW_SEC / 2)
#define ESTABLISHED (5 * RXW_SEC)
#define MEMORY	    (10 * RXW_SEC)
/* packets per second: a slower call keeps a worker from others */
#define RATE_MIN 8

static _Thread_local struct rxw_worker *me __attribute__((tls_model("initial-exec")));

void rxw_worker_begin(struct rxw_workers *w, struct rxw_worker *worker)
{
	assert(!me && !worker->call);
	worker->next = w->list;
	worker->prev = &w->list;
	if (w->list)
		w->list->prev = &worker->next;
	w->list = worker;
	me = worker;
}

void rxw_worker_end(struct rxw_worker *worker)
{
	assert(!worker->call && *worker->prev == worker);
	*worker->prev = worker->next;
	if (worker->next)
		worker->next->prev = worker->prev;
	me = NULL;
}

void rxw_worker_forget(void)
{
	me = NULL;
}

void rxw_worker_begin_call(struct rxw_workers *w, struct rxw_worker *worker, struct rxw_call *call)
{
	worker->call = call;
	worker->order = w->executed++;
	worker->since = 0;
	atomic_store_explicit(&worker->moved, 0, memory_order_relaxed);
	worker->waited = worker->ending = false;
}

void rxw_worker_end_call(struct rxw_workers *w, struct rxw_worker *worker)
{
	assert(worker->call && w->parked >= worker->parked);
	worker->call = NULL;
	if (worker->parked)
		w->parked--;
	worker->parked = false;
}

uint32_t rxw_worker_progress(const struct rxw_call *call)
{
	return rxw_pcall_progress(&call->p);
}

bool rxw_worker_blocked(const struct rxw_call *call, enum rxw_blocked_on what)
{
	struct rxw_workers *w;

	/* The handler may use other threads, and may make calls of its own. */
	if (!me || me->call != call)
		return false;
	w = call->conn->ep->workers;
	atomic_store_explicit(&me->moved, rxw_worker_progress(call), memory_order_relaxed);
	/*
	 * Either the sampler sees `blocked`, or this thread sees that the sampler has cleared
	 * any_blocked (sample_all()).
	 */
	atomic_store(&me->blocked, what);
	if (!atomic_load(&w->any_blocked))
		atomic_store(&w->any_blocked, true);
	return true;
}

void rxw_worker_unblocked(void)
{
	assert(me && atomic_load_explicit(&me->blocked, memory_order_relaxed) != RXW_BLOCKED_NOT);
	atomic_store_explicit(&me->blocked, RXW_BLOCKED_NOT, memory_order_relaxed);
}

/*
 * Workers' lock held. Packets in a thousand seconds, divided by the number of the peer's workers.
 */
static uint64_t call_rate(uint32_t packets, uint64_t time, unsigned share)
{
	return (uint64_t)packets * 1000000 / (time / RXW_MS + 1) / (share ? share : 1);
}

static bool too_slow(uint64_t call_rate)
{
	return call_rate < RATE_MIN * 1000;
}

/*
 * Workers' lock held. Park or unpark a worker. *over is incremented if it should be parked but too
 * many are.
 */
static void sample_worker(struct rxw_workers *w, struct rxw_worker *k, uint64_t now, unsigned *over)
{
	bool blocked = atomic_load(&k->blocked) != RXW_BLOCKED_NOT;

	if (!k->since || now > k->since + MEMORY) {
		k->since = now;
		k->moved_before = atomic_load_explicit(&k->moved, memory_order_relaxed);
	}
	if (blocked && k->waited && !k->parked) {
		if (w->parked < w->waiters) {
			k->parked = true;
			w->parked++;
		} else if (!k->ending) {
			++*over;
		}
	} else if (!blocked && !k->waited && k->parked) {
		k->parked = false;
		w->parked--;
	}
	k->waited = blocked;
}

/* Workers' lock held: was the call observed for long enough? */
static bool is_measurable(const struct rxw_worker *k, uint64_t now)
{
	return k->since && now >= k->since + (k->call->conn->p.account->served ? ESTABLISHED : YOUNG);
}

/*
 * Workers' lock held: of the calls that are too slow, the one that has had its worker for longest.
 */
static struct rxw_worker *find_oldest_slow(struct rxw_workers *w, uint64_t now)
{
	struct rxw_worker *found = NULL;

	for (struct rxw_worker *k = w->list; k; k = k->next) {
		uint32_t packets =
			atomic_load_explicit(&k->moved, memory_order_relaxed) - k->moved_before;

		/* A worker that waits for memory is not the client's fault. */
		if (!k->call || k->ending || !is_measurable(k, now) ||
		    atomic_load_explicit(&k->blocked, memory_order_relaxed) != RXW_BLOCKED_ON_PEER)
			continue;
		if ((!found || k->order < found->order) &&
		    too_slow(call_rate(packets, now - k->since, k->call->conn->p.account->workers)))
			found = k;
	}
	return found;
}

/* Workers' lock held: choose up to `most` slow calls, one reference each. */
static __attribute__((cold)) unsigned choose_slow(struct rxw_workers *w, struct rxw_slow_call *v,
						  unsigned most, uint64_t now)
{
	unsigned n = 0;

	for (; n < most; n++) {
		struct rxw_worker *k = find_oldest_slow(w, now);

		if (!k)
			break;
		k->ending = true;
		v[n] = (struct rxw_slow_call){.call = k->call,
					      .since = k->since,
					      .moved_before = k->moved_before,
					      .share = k->call->conn->p.account->workers};
		rxw_call_ref(k->call);
	}
	return n;
}

/*
 * Workers' lock held: sample all workers. Their records are on their threads' stacks, and each
 * costs cache misses, so nothing is done if no worker is blocked or was at the previous sample.
 */
static unsigned sample_all(struct rxw_workers *w, uint64_t now)
{
	unsigned over = 0;
	bool any = false;

	if (!atomic_load(&w->any_blocked))
		return 0;
	atomic_store(&w->any_blocked, false);
	for (struct rxw_worker *k = w->list; k; k = k->next) {
		if (!k->call)
			continue;
		sample_worker(w, k, now, &over);
		any |= k->waited || k->parked;
	}
	if (any)
		atomic_store(&w->any_blocked, true);
	return over;
}

/* Workers' lock held: threads that have a call and are not parked. */
static unsigned list_busy(const struct rxw_workers *w, pid_t tid[LOOKS_MOST])
{
	unsigned n = 0;

	for (const struct rxw_worker *k = w->list; k && n < LOOKS_MOST; k = k->next)
		if (k->call && k->tid && !k->parked)
			tid[n++] = k->tid;
	return n;
}

/*
 * Workers' lock held, after a look: how many more threads are of use. They are if fewer workers than there are
 * processors run or wait for one, twice in a row, since many sleep for a moment only. If all sleep, their number is
 * doubled. If some run, the others may wait for a lock of theirs: there is time. If enough run, but for so long that
 * no call begins, one more lets shorter calls overtake them.
 */
static unsigned useful_threads(struct rxw_workers *w, unsigned running, uint64_t now)
{
	bool few = running < w->few, before = w->few_run;

	w->few_run = few;
	if (w->executed != w->seen) {
		w->seen = w->executed;
		w->seen_at = now;
	}
	w->look_interval = running ? 2 * w->look_interval : RXW_MS;
	if (w->look_interval > SAMPLE_INTERVAL)
		w->look_interval = SAMPLE_INTERVAL;
	if (w->idle || w->stop || (few ? !before : now < w->seen_at + LONG_RUN))
		return 0;
	w->look_interval = SAMPLE_INTERVAL;
	return !few ? 1 : running ? w->few - running : w->threads;
}

/* Workers' lock held, and released meanwhile. Calls wait: the threads to start. */
static __attribute__((cold)) unsigned look_at_workers(struct rxw_endpoint *ep, uint64_t now)
{
	struct rxw_workers *w = ep->workers;
	unsigned looked, busy, running, useful;
	pid_t tid[LOOKS_MOST];

	/* If a thread is idle, no call may run, or it is about to take one. */
	looked = w->idle || w->threads >= w->max + w->parked ? 0 : list_busy(w, tid);
	if (!looked)
		return rxw_workers_more(ep, 0);
	/* Listeners may be among those that are parked. */
	busy = w->threads > w->parked ? w->threads - w->parked : 1;
	rxw_workers_unlock(ep);
	running = estimate_running(tid, looked, busy);
	rxw_workers_lock(ep);
	if (w->stop) {
		atomic_store(&w->sample_at, UINT64_MAX);
		return 0;
	}
	useful = useful_threads(w, running, now);
	atomic_store(&w->sample_at, now + w->look_interval);
	return rxw_workers_more(ep, useful);
}

__attribute__((cold)) unsigned rxw_workers_slow(struct rxw_endpoint *ep, uint64_t now,
						struct rxw_slow_call *v, unsigned most)
{
	struct rxw_workers *w = ep->workers;
	unsigned over = 0, due, n, threads = 0;

	rxw_workers_lock(ep);
	if (w->stop)
		atomic_store(&w->sample_at, UINT64_MAX); /* or receivers would not sleep */
	if (now < atomic_load(&w->sample_at)) {
		rxw_workers_unlock(ep);
		return 0;
	}
	atomic_store(&w->sample_at, now + SAMPLE_INTERVAL);
	if (now >= w->park_at) {
		w->park_at = now + SAMPLE_INTERVAL;
		over = sample_all(w, now);
	}
	due = rxw_workers_due(w);
	n = over < due ? over : due;
	n = choose_slow(w, v, n < most ? n : most, now);
	if (due) {
		threads = look_at_workers(ep, now);
	} else if (!w->parked) {
		atomic_store(&w->sample_at, UINT64_MAX);
		if (w->threads > w->max)
			pthread_cond_broadcast(&w->work); /* surplus threads end */
	}
	rxw_workers_unlock(ep);
	rxw_workers_make(ep, threads);
	return n;
}

bool rxw_workers_too_slow(const struct rxw_slow_call *v, uint64_t now)
{
	return too_slow(call_rate(v->moved - v->moved_before, now - v->since, v->share));
}

__attribute__((cold)) void rxw_workers_spare(struct rxw_endpoint *ep, const struct rxw_slow_call *v,
					     unsigned n)
{
	rxw_workers_lock(ep);
	for (struct rxw_worker *k = ep->workers->list; k; k = k->next)
		for (unsigned i = 0; i < n; i++)
			if (k->call == v[i].call && !v[i].ended) {
				k->ending = false;
				atomic_store_explicit(&k->moved, v[i].moved, memory_order_relaxed);
			}
	rxw_workers_unlock(ep);
}
