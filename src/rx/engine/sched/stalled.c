/* SPDX-License-Identifier: BSD-2-Clause */
/* Workers that wait for their clients: others take their places; calls that move nothing are found. */
#include "engine/objects.h"
#include "engine/lock.h"

/*
 * Samples: one that waited at two looks in a row is parked, and counts again when it was seen at
 * work twice. So a worker pays nothing for this, but two stores where it sleeps.
 */
#define LOOK_EVERY (10 * RXW_MS)
/*
 * A call is judged by at least so much of its life, that of a client which was served before by
 * more, since packets of anybody may be lost; and by no more than MEMORY.
 */
#define YOUNG	 (RXW_SEC / 2)
#define PATIENCE (5 * RXW_SEC)
#define MEMORY	 (10 * RXW_SEC)
/* Who moves that many packets a second is slow; who moves less keeps a worker from others. */
#define LEAST_MOVED 8

static _Thread_local struct rxw_worker *me __attribute__((tls_model("initial-exec")));

void rxw_worker_begin(struct rxw_workers *w, struct rxw_worker *worker)
{
	worker->next = w->list;
	worker->prev = &w->list;
	if (w->list)
		w->list->prev = &worker->next;
	w->list = worker;
	me = worker;
}

void rxw_worker_end(struct rxw_worker *worker)
{
	*worker->prev = worker->next;
	if (worker->next)
		worker->next->prev = worker->prev;
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
	worker->call = NULL;
	if (worker->parked)
		w->parked--;
	worker->parked = false;
}

uint32_t rxw_worker_moved(const struct rxw_call *call)
{
	return rxw_pcall_progress(&call->p);
}

bool rxw_worker_blocked(const struct rxw_call *call, enum rxw_blocked_on what)
{
	struct rxw_workers *w;

	/* A handler may have threads of its own, and call others. */
	if (!me || me->call != call)
		return false;
	w = &call->conn->ep->workers;
	atomic_store_explicit(&me->moved, rxw_worker_moved(call), memory_order_relaxed);
	/* Either the look finds that it waits, or this thread that the look has begun (judge_all()). */
	atomic_store(&me->blocked, what);
	if (!atomic_load(&w->some_wait))
		atomic_store(&w->some_wait, true);
	return true;
}

void rxw_worker_unblocked(void)
{
	atomic_store_explicit(&me->blocked, RXW_BLOCKED_NOT, memory_order_relaxed);
}

/* Lock held. Packets in a thousand seconds, for each worker that its peer has. */
static uint64_t pace(uint32_t packets, uint64_t time, unsigned share)
{
	return (uint64_t)packets * 1000000 / (time / RXW_MS + 1) / (share ? share : 1);
}

static bool too_slow(uint64_t pace)
{
	return pace < LEAST_MOVED * 1000;
}

/* Lock held. Has it waited, so that it does not count? *over: it has, but too many do. */
static void judge(struct rxw_workers *w, struct rxw_worker *k, uint64_t now, unsigned *over)
{
	bool waits = atomic_load(&k->blocked) != RXW_BLOCKED_NOT;

	if (!k->since || now > k->since + MEMORY) {
		k->since = now;
		k->stock = atomic_load_explicit(&k->moved, memory_order_relaxed);
	}
	if (waits && k->waited && !k->parked) {
		if (w->parked < w->waiters) {
			k->parked = true;
			w->parked++;
		} else if (!k->ending) {
			++*over;
		}
	} else if (!waits && !k->waited && k->parked) {
		k->parked = false;
		w->parked--;
	}
	k->waited = waits;
}

/* Lock held: long enough to judge it? */
static bool ripe(const struct rxw_worker *k, uint64_t now)
{
	return k->since && now >= k->since + (k->call->conn->p.peer->served ? PATIENCE : YOUNG);
}

/* Lock held: of those that move too little that which has its worker for longest. */
static struct rxw_worker *eldest(struct rxw_workers *w, uint64_t now)
{
	struct rxw_worker *found = NULL;

	for (struct rxw_worker *k = w->list; k; k = k->next) {
		uint32_t packets = atomic_load_explicit(&k->moved, memory_order_relaxed) - k->stock;

		/* One that waits for memory is not to blame. */
		if (!k->call || k->ending || !ripe(k, now) ||
		    atomic_load_explicit(&k->blocked, memory_order_relaxed) != RXW_BLOCKED_ON_PEER)
			continue;
		if ((!found || k->order < found->order) &&
		    too_slow(pace(packets, now - k->since, k->call->conn->p.peer->workers)))
			found = k;
	}
	return found;
}

/* Lock held. At most so many that move too little, one reference each. */
static unsigned choose(struct rxw_workers *w, struct rxw_slow_call *v, unsigned most, uint64_t now)
{
	unsigned n = 0;

	for (; n < most; n++) {
		struct rxw_worker *k = eldest(w, now);

		if (!k)
			break;
		k->ending = true;
		v[n] = (struct rxw_slow_call){.call = k->call,
					      .since = k->since,
					      .stock = k->stock,
					      .share = k->call->conn->p.peer->workers};
		rxw_call_ref(k->call);
	}
	return n;
}

/* Lock held: those that turned out not to be slow may be looked at again. */
static void spare(struct rxw_workers *w, const struct rxw_slow_call *v, unsigned n)
{
	for (struct rxw_worker *k = w->list; k; k = k->next)
		for (unsigned i = 0; i < n; i++)
			if (k->call == v[i].call && !v[i].ended) {
				k->ending = false;
				atomic_store_explicit(&k->moved, v[i].moved, memory_order_relaxed);
			}
}

/*
 * Lock held: judges them all. They are on their threads' stacks, each a few cache misses away:
 * where none waits or did at the last look they are left alone.
 */
static unsigned judge_all(struct rxw_workers *w, uint64_t now)
{
	unsigned over = 0;
	bool some = false;

	if (!atomic_load(&w->some_wait))
		return 0;
	atomic_store(&w->some_wait, false);
	for (struct rxw_worker *k = w->list; k; k = k->next) {
		if (!k->call)
			continue;
		judge(w, k, now, &over);
		some |= k->waited || k->parked;
	}
	if (some)
		atomic_store(&w->some_wait, true);
	return over;
}

unsigned rxw_workers_slow(struct rxw_endpoint *ep, uint64_t now, struct rxw_slow_call *v,
			  unsigned most)
{
	struct rxw_workers *w = &ep->workers;
	unsigned over, n, threads = 0;

	rxw_workers_lock(ep);
	if (now < atomic_load(&w->look_at) || w->stop) {
		rxw_workers_unlock(ep);
		return 0;
	}
	atomic_store(&w->look_at, now + LOOK_EVERY);
	over = judge_all(w, now);
	n = over < w->waiting ? over : w->waiting;
	n = choose(w, v, n < most ? n : most, now);
	if (w->waiting) {
		threads = rxw_workers_more(ep);
	} else if (!w->parked) {
		atomic_store(&w->look_at, UINT64_MAX);
		if (w->threads > w->max)
			pthread_cond_broadcast(&w->work); /* those beyond it go */
	}
	rxw_workers_unlock(ep);
	rxw_workers_make(ep, threads);
	return n;
}

bool rxw_workers_too_slow(const struct rxw_slow_call *v, uint64_t now)
{
	return too_slow(pace(v->moved - v->stock, now - v->since, v->share));
}

void rxw_workers_spare(struct rxw_endpoint *ep, const struct rxw_slow_call *v, unsigned n)
{
	rxw_workers_lock(ep);
	spare(&ep->workers, v, n);
	rxw_workers_unlock(ep);
}
