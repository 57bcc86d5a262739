/* SPDX-License-Identifier: BSD-2-Clause */
/* Workers: the threads that run handlers of calls that block or stream, and how a call gets one. */
#include <stdio.h>

#include "engine/internal.h"
#include "engine/lock.h"

/* Workers that a service which is not short may not use. */
static bool may_take(const struct rxw_workers *w, const struct rxw_call *call)
{
	const struct rxw_service *s = call->conn->service;

	if (s->workers_max && s->workers >= s->workers_max)
		return false;
	if (!(s->flags & RXW_SERVICE_SHORT) && w->reserved &&
	    w->threads - w->idle + w->reserved > w->max)
		return false;
	return true;
}

/* Lock held. The first waiting call that may run now, taken from the queue. */
static struct rxw_call *take(struct rxw_workers *w)
{
	for (struct rxw_call **at = &w->head; *at; at = &(*at)->work_next) {
		struct rxw_call *call = *at;

		if (!may_take(w, call))
			continue;
		*at = call->work_next;
		if (!*at)
			w->tail = at;
		w->waiting--;
		rxw_workers_leave(call);
		call->conn->service->workers++;
		return call;
	}
	return NULL;
}

static void *work_loop(void *arg)
{
	struct rxw_endpoint *ep = arg;
	struct rxw_workers *w = &ep->workers;

	rxw_set_library_thread(ep);
	rxw_workers_lock(ep);
	for (;;) {
		struct rxw_call *call = NULL;

		w->idle--; /* busy while it looks: may_take() counts this thread */
		call = take(w);
		w->idle++;
		if (!call) {
			if (w->stop)
				break;
			pthread_cond_wait(&w->work, &w->lock);
			continue;
		}
		w->idle--;
		w->executed++;
		rxw_workers_unlock(ep);
		struct rxw_service *service = call->conn->service;

		rxw_serve(call, false);
		rxw_call_unref(call);
		rxw_workers_lock(ep);
		service->workers--;
		w->idle++;
	}
	w->threads--;
	w->idle--;
	pthread_cond_broadcast(&w->gone);
	rxw_workers_unlock(ep);
	return NULL;
}

/* Lock held; the thread counts as idle from now on. */
static int add_thread(struct rxw_endpoint *ep)
{
	struct rxw_workers *w = &ep->workers;
	pthread_t t;
	char name[16];
	int r;

	snprintf(name, sizeof(name), "rxw-work%u", w->threads % 1000);
	w->threads++;
	w->idle++;
	r = rxw_thread_create(&t, &ep->config, w->threads, name, work_loop, ep);
	if (r) {
		w->threads--;
		w->idle--;
		return r;
	}
	pthread_detach(t);
	return 0;
}

int rxw_workers_start(struct rxw_endpoint *ep)
{
	struct rxw_workers *w = &ep->workers;

	pthread_mutex_init(&w->lock, NULL);
	if (rxw_cond_init(&w->work) || rxw_cond_init(&w->gone))
		return -RXW_ENOMEM;
	w->tail = &w->head;
	w->min = ep->config.workers_min;
	w->max = ep->config.workers_max;
	w->reserved = ep->config.reserved_short < w->max ? ep->config.reserved_short : w->max - 1;
	return 0;
}

void rxw_workers_stop(struct rxw_endpoint *ep)
{
	struct rxw_workers *w = &ep->workers;

	rxw_workers_lock(ep);
	w->stop = true;
	pthread_cond_broadcast(&w->work);
	while (w->threads)
		pthread_cond_wait(&w->gone, &w->lock);
	while (w->head) {
		struct rxw_call *call = w->head;

		w->head = call->work_next;
		w->waiting--;
		rxw_call_unref(call);
	}
	w->tail = &w->head;
	rxw_workers_unlock(ep);
}

/*
 * Calls of one batch are all made before the first is queued, so the bound is kept when they are
 * made.
 */
bool rxw_workers_place(struct rxw_call *call)
{
	struct rxw_endpoint *ep = call->conn->ep;
	struct rxw_workers *w = &ep->workers;
	bool placed;

	rxw_workers_lock(ep);
	placed = atomic_load(&w->places) <
		 (uint64_t)ep->config.queue + w->max - (w->threads - w->idle);
	if (placed)
		atomic_fetch_add(&w->places, 1);
	rxw_workers_unlock(ep);
	atomic_store(&call->placed, placed);
	return placed;
}

void rxw_workers_leave(struct rxw_call *call)
{
	if (atomic_exchange(&call->placed, false))
		atomic_fetch_sub(&call->conn->ep->workers.places, 1);
}

/* Lock held: the call that was queued last. */
static void take_back(struct rxw_workers *w, struct rxw_call *call)
{
	struct rxw_call **at = &w->head;

	while (*at != call)
		at = &(*at)->work_next;
	*at = NULL;
	w->tail = at;
	w->waiting--;
}

/* Lock released: there was no thread for a call; `workers` run. */
static void no_thread(struct rxw_endpoint *ep, struct rxw_call *call, unsigned workers)
{
	rxw_log(ep->engine, RXW_LOG_WARNING, "no thread for a call: %u workers run; %s", workers,
		workers ? "calls wait for them" : "it is refused");
	if (workers)
		return;
	rxw_stream_finish(call, RXW_RESTARTING);
	rxw_call_unref(call);
}

void rxw_workers_add(struct rxw_call *call)
{
	struct rxw_endpoint *ep = call->conn->ep;
	struct rxw_workers *w = &ep->workers;
	bool wake, failed;
	unsigned threads;

	rxw_call_ref(call);
	rxw_workers_lock(ep);
	call->work_next = NULL;
	*w->tail = call;
	w->tail = &call->work_next;
	w->waiting++;
	if (w->idle < w->waiting)
		w->waited++;
	failed = w->idle < w->waiting && w->threads < w->max && !w->stop && add_thread(ep);
	threads = w->threads;
	/* Where no worker is, none may ever come to take it. */
	if (failed && !threads)
		take_back(w, call);
	wake = w->idle > 0;
	rxw_workers_unlock(ep);
	if (wake)
		pthread_cond_signal(&w->work);
	if (failed)
		no_thread(ep, call, threads);
}

void rxw_serve(struct rxw_call *call, bool on_receiver)
{
	struct rxw_connection *c = call->conn;
	struct rxw_shard *s = rxw_home(c);
	struct rxw_actions a;
	bool stopping = atomic_load(&c->ep->stopping);
	int32_t code;

	rxw_actions_init(&a, s, false);
	rxw_conn_lock(c);
	if (stopping && call->p.state == RXW_CS_PRECALL)
		rxw_pcall_fail(&call->p, RXW_RESTARTING, RXW_ORIGIN_LOCAL, true, &a.out);
	else if (!call->p.error) {
		rxw_call_live(call);
		rxw_pcall_attach(&call->p, &a.out);
	}
	code = call->p.error;
	rxw_actions_collect(&a, false);
	rxw_conn_unlock(c);
	rxw_actions_run(&a);
	if (!code) {
		rxw_count(on_receiver ? &s->handlers_short : &s->handlers_worker, 1);
		code = c->service->handler(call, c->service->context);
	}
	rxw_stream_finish(call, code);
}
