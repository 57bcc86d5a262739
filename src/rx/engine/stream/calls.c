/* SPDX-License-Identifier: BSD-2-Clause */
/* The public functions of calls, and those for stubs: beginning, ending, events, and attributes. */
#include <stdlib.h>

#include <rxwire/afs.h>

#include "base/assert.h"
#include "common/cancel.h"
#include "common/sized.h"
#include "engine/receive/lifecycle.h"
#include "engine/objects.h"
#include "engine/lock.h"
#include "engine/stream/observer.h"
#include "proto/peer/event.h"

#define ALL_EVENTS     (RXW_EVENT_READ | RXW_EVENT_WRITE | RXW_EVENT_DONE)
#define CHECK_INTERVAL (100 * RXW_MS) /* a channel that got BUSY becomes free by time alone */

/* Connection's lock held: a channel that is not free now will be. */
static bool may_come_free(const struct rxw_connection *c)
{
	return !c->p.error && !rxw_pconn_used_up(&c->p);
}

/*
 * Connection's lock held. Waits for a channel until `end` (UINT64_MAX: no limit), unless
 * `nonblock`. *code: the code of an abort meanwhile.
 */
static int wait_channel(struct rxw_connection *c, bool nonblock, uint64_t end, uint64_t *now,
			int32_t *code)
{
	unsigned aborts = c->aborts;

	for (; may_come_free(c) && !rxw_pconn_has_free_channel(&c->p, *now); *now = rxw_now()) {
		if (nonblock)
			return -RXW_EAGAIN;
		if (rxw_must_not_wait())
			return -RXW_EDEADLK;
		if (atomic_load(&c->ep->life.stopping))
			return -RXW_ESTOPPED;
		if (*now >= end)
			return -RXW_ETIMEDOUT;
		if (rxw_tx_collecting()) {
			rxw_conn_unlock(c);
			rxw_tx_collect_end();
			rxw_conn_lock(c);
			continue;
		}
		c->channel_waiters++;
		rxw_cond_wait_until(&c->channel_free, &c->lock,
				    end < *now + CHECK_INTERVAL ? end : *now + CHECK_INTERVAL);
		c->channel_waiters--;
		c->channel_woken = false;
		if (c->aborts != aborts) {
			*code = c->abort_code;
			return -RXW_ECALL;
		}
	}
	*code = c->p.error;
	return 0;
}

/*
 * Connection's lock held. One waiting caller is awake at a time. It wakes the next one if a channel
 * is left when it has taken one or has given up, or if no channel will be free any more.
 */
static void wake_next(struct rxw_connection *c, uint64_t now)
{
	if ((!may_come_free(c) || rxw_pconn_has_free_channel(&c->p, now)) && rxw_channel_wake(c))
		pthread_cond_signal(&c->channel_free);
}

/*
 * The time at which a call that begins now ends by its own deadline or the connection's;
 * UINT64_MAX: never.
 */
static uint64_t deadline_of(const struct rxw_connection *c, const struct rxw_call_options *options,
			    uint64_t now)
{
	uint64_t hard = c->p.hard;

	if (options && options->deadline_ms && (!hard || options->deadline_ms * RXW_MS < hard))
		hard = options->deadline_ms * RXW_MS;
	return hard ? now + hard : UINT64_MAX;
}

/* Connection's lock held: a channel is free, or the connection is in error. */
static int begin_until(struct rxw_connection *c, struct rxw_call *made, uint64_t end, uint64_t now)
{
	uint64_t hard = c->p.hard;
	int r;

	c->p.hard = end == UINT64_MAX ? 0 : end > now ? end - now : 1;
	rxw_call_ref(made); /* the channel's reference */
	r = rxw_pconn_begin(&c->p, &made->p, now);
	c->p.hard = hard;
	if (r) {
		rxw_call_unref(made);
		return r;
	}
	c->held++;
	rxw_count(&rxw_home(c)->stats.calls_started, 1);
	rxw_event_begin(&made->p, &rxw_home(c)->stats);
	rxw_timer_update(made);
	return 0;
}

/* Connection's lock held: no channel is free. -RXW_EAGAIN, or the reason why no event will come. */
static int want_channel(struct rxw_connection *c, const struct rxw_call_options *options)
{
	int r;

	if (!c->channels)
		c->channels = calloc(1, sizeof(*c->channels));
	if (!c->channels)
		return -RXW_ENOMEM;
	r = rxw_channel_wait(&c->channels->waits, options->queue, options->arg, c, NULL);
	if (r)
		return r;
	atomic_store(&c->channel_wanted, true);
	return -RXW_EAGAIN;
}

/* `only_now`: without a free channel, -RXW_EAGAIN and no event. */
static int begin_call_on(struct rxw_connection *c, const struct rxw_call_options *given,
			 rxw_call **call, int32_t *code, bool only_now)
{
	struct rxw_call_options options = {.size = sizeof(options)};
	struct rxw_call *made;
	uint64_t now, end;
	bool nonblock;
	int r;

	*code = 0;
	if (!c || !call || (given && !sized_read(&options, sizeof(options), given)) ||
	    (options.flags & ~(RXW_CALL_NONBLOCK | RXW_CALL_TRY)) ||
	    (options.events & ~ALL_EVENTS) || (options.queue && options.callback) ||
	    (options.queue && !rxw_queue_of_engine(options.queue, c->ep->engine)))
		return -RXW_EINVAL;
	if (rxw_conn_inherited(c))
		return -RXW_ESTATE;
	*call = NULL;
	if (atomic_load(&c->ep->life.stopping))
		return -RXW_ESTOPPED;
	made = rxw_call_create(c, options.flags);
	if (!made)
		return -RXW_ENOMEM;
	made->events.callback = options.callback;
	made->events.arg = options.arg;
	if (options.events)
		made->events.mask = options.events;
	nonblock = only_now || (options.flags & (RXW_CALL_NONBLOCK | RXW_CALL_TRY));
	now = made->started;
	rxw_conn_lock(c);
	end = deadline_of(c, &options, now);
	r = c->released ? -RXW_ESTATE : wait_channel(c, nonblock, end, &now, code);
	if (!r)
		r = begin_until(c, made, end, now);
	if (!r && options.queue)
		rxw_queue_join(made, options.queue, options.arg);
	else if (r == -RXW_EAGAIN && options.queue && !only_now)
		r = want_channel(c, &options);
	wake_next(c, now);
	rxw_conn_unlock(c);
	if (r) {
		rxw_call_unref(made);
		return r;
	}
	*call = made;
	return 0;
}

int rxw_call_begin(rxw_connection *connection, const struct rxw_call_options *options,
		   rxw_call **call)
{
	int32_t code;

	return begin_call_on(connection, options, call, &code, false);
}

int rxw_call_begin_now(rxw_connection *connection, const struct rxw_call_options *options,
		       rxw_call **call)
{
	int32_t code;

	return begin_call_on(connection, options, call, &code, true);
}

int rxw_call_try_begin(rxw_connection *connection, const struct rxw_call_options *options,
		       rxw_call **call, int32_t *code)
{
	return begin_call_on(connection, options, call, code, false);
}

/*
 * The application may free its memory once rxw_call_end() has returned. No callback may run then,
 * except this thread's own.
 */
static bool runs_elsewhere(const struct rxw_call *call)
{
	return call->events.busy && !pthread_equal(call->events.thread, pthread_self());
}

static void wait_callback(struct rxw_call *call)
{
	NOT_CANCELLED;

	while (runs_elsewhere(call))
		pthread_cond_wait(&call->sleep.cond, &call->conn->lock);
}

/* Connection's lock held: no callback runs any more, and no queue has the call. */
static void end_events(struct rxw_call *call)
{
	call->events.callback = NULL;
	call->events.pending = false;
	wait_callback(call);
	rxw_queue_leave(call);
}

static int32_t end_deferred(struct rxw_call *call, int32_t code, enum rxw_origin *origin)
{
	struct rxw_connection *c = call->conn;
	int32_t result;

	rxw_conn_lock(c);
	end_events(call);
	rxw_conn_unlock(c);
	rxw_stream_finish(call, code);
	rxw_conn_lock(c);
	result = call->p.error;
	if (origin && result)
		*origin = call->p.error_origin;
	rxw_conn_unlock(c);
	rxw_alive_end(&call->alive);
	atomic_fetch_sub(&c->ep->usage.deferred, 1);
	rxw_deferral_end(call);
	return result;
}

int32_t rxw_call_end(rxw_call *call, int32_t code, enum rxw_origin *origin)
{
	struct rxw_connection *c;
	struct rxw_effects a;
	int32_t result;
	bool waited_for, wanted, last;

	if (origin)
		*origin = RXW_ORIGIN_NONE;
	if (!call || (!call->p.client && !rxw_call_is_deferred(call)))
		return RXW_INVALID_OPERATION;
	rxw_check_alive(&call->alive, "the call was ended before");
	/*
	 * After fork() the memory stays: what refers to the call cannot be visited, since threads of
	 * the parent may have been changing it.
	 */
	if (rxw_call_inherited(call))
		return RXW_INVALID_OPERATION;
	assert(!atomic_load(&call->transfers) &&
	       "a file goes into or out of the call: wait for its end");
	if (!call->p.client)
		return end_deferred(call, code, origin);
	c = call->conn;
	if (!code && call->flags & RXW_CALL_NONBLOCK && !call->r.ended) {
		bool done;

		rxw_conn_lock(c);
		done = rxw_events_now(call) & RXW_EVENT_DONE;
		rxw_conn_unlock(c);
		if (!done)
			code = RXW_USER_ABORT;
	}
	/*
	 * A reply that began before the request was complete may still end with an error of the
	 * server.
	 */
	if (!code && rxw_stream_discard(call) == -RXW_EDEADLK)
		code = RXW_USER_ABORT;
	rxw_change_begin(&a, c);
	if (code)
		rxw_pcall_abort(&call->p, code, &a.out);
	rxw_pcall_finish(&call->p, &a.out);
	call->ended = true;
	c->held--;
	call->w.state = RXW_WRITER_GONE;
	call->events.pending = false;
	result = call->p.error;
	if (!result)
		rxw_latency_add(&rxw_home(c)->stats.latency[1], a.out.now - call->started);
	if (origin)
		*origin = result ? call->p.error_origin : RXW_ORIGIN_NONE;
	rxw_effects_collect(&a, false);
	rxw_timer_update(call);
	wait_callback(call);
	rxw_queue_leave(call);
	waited_for = rxw_channel_wake(c);
	wanted = atomic_load(&c->channel_wanted);
	last = c->released && !c->held;
	if (last)
		rxw_conn_ref(c);
	rxw_conn_unlock(c);
	rxw_dispatch(&a);
	if (waited_for)
		pthread_cond_signal(&c->channel_free);
	if (wanted)
		rxw_channel_announce(c);
	rxw_alive_end(&call->alive);
	rxw_call_unref(call);
	if (last) {
		rxw_conn_release_idle(c);
		rxw_conn_unref(c);
	}
	return result;
}

void rxw_call_abort(rxw_call *call, int32_t code)
{
	if (call && !rxw_call_inherited(call))
		rxw_call_fail(call, code ? code : RXW_USER_ABORT);
}

int32_t rxw_call_error(const rxw_call *call, enum rxw_origin *origin)
{
	int32_t code;

	if (!call || rxw_call_inherited(call))
		return RXW_INVALID_OPERATION;
	rxw_conn_lock(call->conn);
	code = call->p.error;
	if (origin)
		*origin = code ? call->p.error_origin : RXW_ORIGIN_NONE;
	rxw_conn_unlock(call->conn);
	return code;
}

int rxw_call_set_events(rxw_call *call, unsigned events)
{
	struct rxw_queue *q = NULL;
	NOT_CANCELLED;

	if (!call || !events || (events & ~ALL_EVENTS))
		return -RXW_EINVAL;
	if (rxw_call_inherited(call))
		return -RXW_ESTATE;
	rxw_call_ref(call); /* once the queue has it, another thread may end the call */
	rxw_conn_lock(call->conn);
	call->events.mask = events;
	if (call->events.queue && rxw_callback_note(call) && rxw_queue_put(call))
		q = call->events.queue;
	rxw_conn_unlock(call->conn);
	if (q)
		rxw_queue_signal(q);
	rxw_call_unref(call);
	return 0;
}

unsigned rxw_call_events(rxw_call *call)
{
	unsigned events;

	if (!call || rxw_call_inherited(call))
		return 0;
	rxw_conn_lock(call->conn);
	events = rxw_events_now(call);
	if (call->r.at < call->r.count)
		events |= RXW_EVENT_READ;
	rxw_conn_unlock(call->conn);
	return events;
}

/*
 * Takes the connection's lock, and ends the reports to a callback or queue. 0 or a negative result;
 * then the lock is not held.
 */
static int lock_and_silence(struct rxw_call *call)
{
	if (!call)
		return -RXW_EINVAL;
	if (rxw_call_inherited(call))
		return -RXW_ESTATE;
	if (!call->p.client && !rxw_call_is_deferred(call))
		return -RXW_ESTATE;
	rxw_call_ref(call); /* the callback that this thread waits for may end the call */
	rxw_conn_lock(call->conn);
	if (runs_elsewhere(call) && rxw_must_not_wait()) {
		rxw_conn_unlock(call->conn);
		rxw_call_unref(call);
		return -RXW_EDEADLK;
	}
	call->events.callback = NULL; /* no further callback starts after the running one */
	wait_callback(call);
	rxw_queue_leave(call);
	return 0;
}

int rxw_call_set_queue(rxw_call *call, rxw_queue *queue, void *arg)
{
	bool signal = false;
	int r;

	if (call && queue && !rxw_queue_of_engine(queue, call->conn->ep->engine))
		return -RXW_EINVAL;
	r = lock_and_silence(call);
	if (r)
		return r;
	if (queue && !call->ended) {
		rxw_queue_join(call, queue, arg);
		signal = rxw_callback_note(call) && rxw_queue_put(call);
	}
	rxw_conn_unlock(call->conn);
	if (signal)
		rxw_queue_signal(queue);
	rxw_call_unref(call);
	return 0;
}

int rxw_call_defer(rxw_call *call)
{
	if (!call || call->p.client)
		return -RXW_EINVAL;
	if (rxw_call_inherited(call) || rxw_call_is_deferred(call))
		return -RXW_ESTATE;
	if (!rxw_deferral_reserve(call->conn))
		return -RXW_ELIMIT;
	rxw_deferral_assign(call);
	rxw_stream_defer(call);
	atomic_fetch_add(&call->conn->ep->usage.deferred, 1);
	rxw_deferral_begin(call);
	return 0;
}

int rxw_call_set_callback(rxw_call *call, rxw_call_fn callback, void *arg)
{
	_Atomic(bool) *left;
	bool hand_over = false;
	int r = lock_and_silence(call);

	if (r)
		return r;
	left = &call->conn->ep->threads.callbacks_left;
	call->events.callback = callback;
	call->events.arg = arg;
	if (!rxw_may_call_back() && !atomic_load_explicit(left, memory_order_relaxed))
		atomic_store_explicit(left, true, memory_order_relaxed);
	if (callback && rxw_events_now(call) && rxw_callback_note(call)) {
		hand_over = rxw_callback_seals_bulk(call);
		if (!hand_over)
			rxw_timer_post_callback(call);
	}
	rxw_conn_unlock(call->conn);
	if (hand_over)
		rxw_callback_hand_over(call);
	rxw_call_unref(call);
	return 0;
}

int rxw_call_stats(rxw_call *call, struct rxw_call_statistics *stats)
{
	struct rxw_call_statistics s = {.size = sizeof(s)};

	if (!call || !sized_valid(stats))
		return -RXW_EINVAL;
	if (rxw_call_inherited(call))
		return -RXW_ESTATE;
	rxw_conn_lock(call->conn);
	rxw_flow_read(call, &s);
	rxw_conn_unlock(call->conn);
	sized_write(stats, &s, sizeof(s));
	return 0;
}

int rxw_call_peer(const rxw_call *call, struct sockaddr_storage *address, socklen_t *address_len)
{
	return call ? rxw_conn_address(call->conn, false, address, address_len) : -RXW_EINVAL;
}

int rxw_call_local(const rxw_call *call, struct sockaddr_storage *address, socklen_t *address_len)
{
	return call ? rxw_conn_address(call->conn, true, address, address_len) : -RXW_EINVAL;
}

uint16_t rxw_call_service_id(const rxw_call *call)
{
	return call ? call->conn->p.service : 0;
}

void rxw_call_set_status(rxw_call *call, uint8_t status)
{
	if (!call || rxw_call_inherited(call))
		return;
	rxw_conn_lock(call->conn);
	call->p.local_status = status;
	rxw_conn_unlock(call->conn);
}

uint8_t rxw_call_peer_status(const rxw_call *call)
{
	uint8_t status;

	if (!call || rxw_call_inherited(call))
		return 0;
	rxw_conn_lock(call->conn);
	status = call->p.peer_status;
	rxw_conn_unlock(call->conn);
	return status;
}

size_t rxw_call_packet_size(const rxw_call *call)
{
	struct rxw_pconn *c;
	uint32_t size;

	if (!call || rxw_call_inherited(call))
		return 0;
	c = &call->conn->p;
	rxw_conn_lock(call->conn);
	size = rxw_pcall_datagram_size(&call->p);
	size = rxw_sealed_capacity(&c->auth.room, size - RXW_HEADER_SIZE);
	rxw_conn_unlock(call->conn);
	return size;
}

bool rxw_connection_is_inherited(const rxw_connection *connection)
{
	return rxw_conn_inherited(connection);
}

__attribute__((cold)) uint64_t rxw_connection_hard_timeout(rxw_connection *connection)
{
	uint64_t hard;

	rxw_conn_lock(connection);
	hard = connection->p.hard;
	rxw_conn_unlock(connection);
	return hard;
}

void rxw_call_note_served(rxw_call *call, uint64_t now)
{
	call->served = now;
}

void rxw_call_unlimit(rxw_call *call)
{
	call->w.unlimited = rxw_call_is_deferred(call);
}

ssize_t rxw_call_write_part(rxw_call *call, const void *data, size_t length, bool more)
{
	if (call && (more || !call->p.client))
		return rxw_stream_write_more(call, data, length);
	return rxw_call_write(call, data, length);
}

bool rxw_call_observed(const rxw_call *call, struct rxw_observed *observed)
{
	struct rxw_endpoint *ep = call->conn->ep;

	if (rxw_endpoint_inherited(ep))
		return false;
	observed->observer = atomic_load_explicit(&ep->observe.observer, memory_order_acquire);
	if (!observed->observer)
		return false;
	observed->started_ns = call->started;
	observed->served_ns = call->served;
	observed->written = call->w.bytes;
	observed->taken = call->r.bytes;
	return true;
}
