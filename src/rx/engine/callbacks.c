/* SPDX-License-Identifier: BSD-2-Clause */
/* Events of a call as the asynchronous form reports them: callback and descriptor. */
#include <unistd.h>

#include "engine/internal.h"
#include "engine/lock.h"

/* Lock held. */
unsigned rxw_events_now(const struct rxw_call *call)
{
	unsigned events = 0;
	bool ended;
	uint32_t ready;

	if (call->p.error)
		return RXW_EVENT_READ | RXW_EVENT_WRITE | RXW_EVENT_DONE;
	ready = rxw_pcall_readable(&call->p, &ended);
	if (ready || ended)
		events |= RXW_EVENT_READ;
	if (call->writer != RXW_WRITER_GONE && rxw_pcall_writable(&call->p))
		events |= RXW_EVENT_WRITE;
	if (call->p.client && ended)
		events |= RXW_EVENT_DONE;
	return events;
}

bool rxw_callback_note(struct rxw_call *call)
{
	if (!call->callback || call->ended)
		return false;
	call->callback_pending = true;
	if (call->callback_queued || call->callback_busy)
		return false;
	call->callback_queued = true;
	return true;
}

/* Callbacks of this thread that run now. */
static _Thread_local unsigned depth;

/*
 * An application's thread that aborts a call, say, may hold the very lock that the callback takes;
 * so may a callback that ends another call. Both leave it to the holder of the receive role.
 */
bool rxw_may_call_back(void)
{
	return !depth && (rxw_receiving() || rxw_on_library_thread(NULL));
}

bool rxw_fd_note(struct rxw_call *call)
{
	if (call->fd < 0 || call->fd_set || !rxw_events_now(call))
		return false;
	call->fd_set = true;
	return true;
}

void rxw_callback_run(struct rxw_call *call)
{
	struct rxw_connection *c = call->conn;

	rxw_conn_lock(c);
	call->callback_queued = false;
	while (call->callback_pending && !call->callback_busy && !call->ended) {
		rxw_call_fn fn = call->callback;
		void *arg = call->arg;
		unsigned events = rxw_events_now(call);

		call->callback_pending = false;
		if (!fn || !events)
			continue;
		call->callback_busy = true;
		call->callback_thread = pthread_self();
		rxw_conn_unlock(c);
		depth++;
		fn(call, events, arg);
		depth--;
		rxw_conn_lock(c);
		call->callback_busy = false;
		if (call->ended)
			pthread_cond_broadcast(&call->cond);
	}
	rxw_conn_unlock(c);
}
