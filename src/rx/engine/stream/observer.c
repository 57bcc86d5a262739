/* SPDX-License-Identifier: BSD-2-Clause */
/* Internal functions for generated stubs: the observer, and why a call could not begin. */
#include "engine/core/fork.h"
#include "engine/objects.h"
#include "engine/lock.h"
#include "engine/stream/observer.h"

int rxw_endpoint_set_observer(rxw_endpoint *endpoint, const struct rxw_rpc_observer *observer)
{
	if (!endpoint || (observer && !observer->report))
		return -RXW_EINVAL;
	if (rxw_endpoint_inherited(endpoint))
		return -RXW_ESTATE;
	atomic_store_explicit(&endpoint->observer, observer, memory_order_release);
	return 0;
}

bool rxw_call_is_deferred(const rxw_call *call)
{
	return atomic_load(&call->deferral.deferred);
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
	observed->observer = atomic_load_explicit(&ep->observer, memory_order_acquire);
	if (!observed->observer)
		return false;
	observed->started_ns = call->started;
	observed->served_ns = call->served;
	observed->written = call->w.bytes;
	observed->taken = call->r.bytes;
	return true;
}
