/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events of a call, as a callback or a queue reports them, and which thread may run the callback.
 */
#include "engine/objects.h"
#include "engine/lock.h"

#define BULK 45u /* packets, one full burst: a call that has sent more has sealed bulk data */

unsigned rxw_events_now(const struct rxw_call *call)
{
	unsigned events = 0;
	bool ended;
	uint32_t ready;

	if (call->p.error)
		return RXW_EVENT_READ | RXW_EVENT_WRITE | RXW_EVENT_DONE;
	ready = rxw_pcall_readable(&call->p, &ended);
	if (ready || ended || (call->w.end_pending && !call->events.starved))
		events |= RXW_EVENT_READ;
	if (call->w.state != RXW_WRITER_GONE && !call->events.starved &&
	    rxw_pcall_writable(&call->p) && !rxw_callback_quantum_used(call))
		events |= RXW_EVENT_WRITE;
	if (call->p.client && ended)
		events |= RXW_EVENT_DONE;
	return events;
}

bool rxw_callback_note(struct rxw_call *call)
{
	if ((!call->events.callback && !call->events.queue) || call->ended)
		return false;
	if (call->events.queue && !(rxw_events_now(call) & call->events.mask))
		return false;
	call->events.pending = true;
	if (call->events.queued || call->events.busy)
		return false;
	call->events.queued = true;
	return true;
}

/* Nesting depth of the callbacks that this thread runs. */
static _Thread_local unsigned depth;

void rxw_callback_enter(void)
{
	depth++;
}

void rxw_callback_leave(void)
{
	assert(depth);
	depth--;
}

void rxw_callback_forget(void)
{
	depth = 0;
}

/*
 * An application's thread that, for example, aborts a call may hold a lock that the callback takes.
 * The same holds for a callback that ends another call. Both leave the callback to the holder of
 * the receive role.
 */
bool rxw_may_call_back(void)
{
	return !depth && (rxw_receiving() || rxw_on_library_thread(NULL));
}

bool rxw_must_not_wait(void)
{
	return depth || rxw_receiving();
}

/*
 * Calls that only read, and small calls, are not handed over: waking a thread costs more than they
 * do. A call that has finished its bulk data is often followed by one like it.
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
 * A writer that seals no faster than the network sends never runs out of room. Other calls, and
 * packets to verify, would wait for it without end.
 */
bool rxw_callback_quantum_used(const struct rxw_call *call)
{
	return call->events.quantum_end &&
	       rxw_pcall_next_seq(&call->p) >= call->events.quantum_end &&
	       pthread_equal(call->events.thread, pthread_self());
}
