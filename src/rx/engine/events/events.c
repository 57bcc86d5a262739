/* SPDX-License-Identifier: BSD-2-Clause */
/* Events of a call that a callback or a descriptor reports, and which thread may run the callback. */
#include "engine/objects.h"
#include "engine/lock.h"

#define BULK 45u /* packets, a full train: more than that was sealed */

/* Lock held. */
unsigned rxw_events_now(const struct rxw_call *call)
{
	unsigned events = 0;
	bool ended;
	uint32_t ready;

	if (call->p.error)
		return RXW_EVENT_READ | RXW_EVENT_WRITE | RXW_EVENT_DONE;
	ready = rxw_pcall_readable(&call->p, &ended);
	if (ready || ended || (call->w.end_owed && !call->events.starved))
		events |= RXW_EVENT_READ;
	if (call->tx.writer != RXW_WRITER_GONE && !call->events.starved && rxw_pcall_writable(&call->p) &&
	    !rxw_callback_quantum_used(call))
		events |= RXW_EVENT_WRITE;
	if (call->p.client && ended)
		events |= RXW_EVENT_DONE;
	return events;
}

bool rxw_callback_note(struct rxw_call *call)
{
	if (!call->events.callback || call->ended)
		return false;
	call->events.pending = true;
	if (call->events.queued || call->events.busy)
		return false;
	call->events.queued = true;
	return true;
}

/* Callbacks of this thread that run now. */
static _Thread_local unsigned depth;

void rxw_callback_enter(void)
{
	depth++;
}

void rxw_callback_leave(void)
{
	depth--;
}

/*
 * An application's thread that aborts a call, say, may hold the very lock that the callback takes;
 * so may a callback that ends another call. Both leave it to the holder of the receive role.
 */
bool rxw_may_call_back(void)
{
	return !depth && (rxw_receiving() || rxw_on_library_thread(NULL));
}

bool rxw_must_not_wait(void)
{
	return depth || rxw_receiving();
}

bool rxw_fd_note(struct rxw_call *call)
{
	if (call->events.fd < 0 || call->events.fd_set || !(rxw_events_now(call) & call->events.fd_mask))
		return false;
	call->events.fd_set = true;
	return true;
}

/*
 * Not what only reads, and not small calls: to wake a thread for them costs more than they do.
 * A call that is through with its bulk is often followed by one like it.
 */
bool rxw_callback_seals_bulk(const struct rxw_call *call)
{
	const struct rxw_connection *c = call->conn;

	if (!(c->p.auth.security->class.flags & RXW_CLASS_SLOW) || c->p.auth.room.quick ||
	    rxw_pcall_next_seq(&call->p) <= BULK)
		return false;
	return rxw_events_now(call) & (RXW_EVENT_WRITE | RXW_EVENT_DONE);
}

/*
 * Who seals no faster than the wire takes it finds room for ever: other calls, and what is to be
 * verified, would wait for that.
 */
bool rxw_callback_quantum_used(const struct rxw_call *call)
{
	return call->events.quantum_end && rxw_pcall_next_seq(&call->p) >= call->events.quantum_end &&
	       pthread_equal(call->events.thread, pthread_self());
}
