/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long handlers run, and server calls without a thread: how many a service and a peer may have, since clients cause
 * them. Short ones run where the request was received, which saves the wake-up of a
 * worker. Further packets wait for them, so workers run the handlers of a slow service for a while.
 */
#include "engine/objects.h"

#define SHARE_OF_FREE 8 /* a peer's deferred calls, in multiples of what others may still have */
#define WATCHED	    256u	   /* calls after a slow handler whose preemptions are checked */
#define HANDED_OVER (100 * RXW_MS) /* how long workers run the handlers of a slow service */
#define QUICK_PART  25u /* of the limit of an inline handler: the mean run time in a quick service */
#define STAY_PART   5u	/* of the same limit: how long a listener serves calls */
#define PREEMPTED   2u	/* a preempted handler counts as so many times the mean of a quick service */
#define MEAN_OF	    32u /* weight of the latest run time in the mean: 1 / MEAN_OF */

/* The run time of an inline handler (ns); 0: no limit. */
static uint64_t inline_limit(const struct rxw_endpoint *ep)
{
	return ep->settings.constants.inline_us * RXW_MS / 1000;
}

/*
 * Checking for preemption costs a system call for each handler, so it is done only for some time
 * after a slow one.
 */
void rxw_run_begin(struct rxw_run *run, struct rxw_service *service, uint64_t now)
{
	run->watched = atomic_load_explicit(&service->watched, memory_order_relaxed);
	run->preemptions = run->watched ? rxw_preemptions() : 0;
	run->began = now;
}

bool rxw_run_end(const struct rxw_run *run, struct rxw_service *service, uint64_t now)
{
	uint64_t limit = inline_limit(service->ep);

	if (run->watched)
		atomic_store_explicit(&service->watched, run->watched - 1, memory_order_relaxed);
	if (!limit || now - run->began < limit)
		return false;
	if (run->watched && rxw_preemptions() == run->preemptions)
		atomic_store_explicit(&service->slow_until, now + HANDED_OVER,
				      memory_order_relaxed);
	atomic_store_explicit(&service->watched, WATCHED, memory_order_relaxed);
	return true;
}

bool rxw_run_was_slow(const struct rxw_service *service, uint64_t now)
{
	return now < atomic_load_explicit(&service->slow_until, memory_order_relaxed);
}

/* Was this thread preempted since the last call of this function on it? */
static bool was_preempted(void)
{
	static _Thread_local long seen __attribute__((tls_model("initial-exec")));
	long before = seen;

	seen = rxw_preemptions();
	return seen != before;
}

/*
 * A run time that is long enough ends the quickness of a service alone, however quick the others
 * were, and none weighs more. Threads may overwrite each other's results: the mean is then one of
 * fewer run times. Of a handler that was preempted, little more is counted than would make the service
 * slow if all were: on a busy machine, some of its handlers always are.
 */
bool rxw_run_note(struct rxw_service *service, uint64_t took)
{
	uint64_t mean = atomic_load_explicit(&service->run_time, memory_order_relaxed);
	uint64_t quick = inline_limit(service->ep) / QUICK_PART, most = (MEAN_OF + 1) * quick;

	if (mean > most)
		mean = most;
	if (took > PREEMPTED * quick && was_preempted())
		took = PREEMPTED * quick;
	mean += (took < most ? took : most) / MEAN_OF;
	mean -= mean / MEAN_OF;
	atomic_store_explicit(&service->run_time, mean, memory_order_relaxed);
	return mean < quick;
}

bool rxw_is_quick(const struct rxw_service *service, uint64_t now)
{
	return atomic_load_explicit(&service->run_time, memory_order_relaxed) <
		       inline_limit(service->ep) / QUICK_PART &&
	       !rxw_run_was_slow(service, now);
}

uint64_t rxw_run_stay(const struct rxw_endpoint *ep)
{
	return inline_limit(ep) / STAY_PART;
}

bool rxw_deferral_reserve(struct rxw_connection *c)
{
	uint64_t most = c->service->deferred_max;
	uint64_t all = atomic_fetch_add(&c->service->deferred, 1);
	uint64_t mine = atomic_fetch_add(&c->p.account->deferred, 1);

	if (all < most && mine < SHARE_OF_FREE * (most - all))
		return true;
	rxw_deferral_release(c);
	return false;
}

void rxw_deferral_release(struct rxw_connection *c)
{
	rxw_count_down(&c->service->deferred);
	rxw_count_down(&c->p.account->deferred);
}

void rxw_deferral_assign(struct rxw_call *call)
{
	atomic_store(&call->deferral.counted, true);
}

bool rxw_call_is_deferred(const rxw_call *call)
{
	return atomic_load(&call->deferral.deferred);
}

bool rxw_deferral_scarce(const struct rxw_connection *c)
{
	return atomic_load(&c->service->deferred) > c->service->deferred_max / 2;
}

void rxw_deferral_begin(struct rxw_call *call)
{
	assert(!atomic_load(&call->deferral.deferred));
	rxw_call_ref(call);
	atomic_store(&call->deferral.deferred, true);
}

void rxw_deferral_end(struct rxw_call *call)
{
	rxw_deferral_release_call(call);
	rxw_call_unref(call);
}

void rxw_deferral_release_call(struct rxw_call *call)
{
	if (atomic_load(&call->deferral.counted) && atomic_exchange(&call->deferral.counted, false))
		rxw_deferral_release(call->conn);
}
