/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Server calls without a thread: how many a service and a peer may have. Clients cause them, so
 * both are bounded.
 */
#include "engine/objects.h"

#define SHARE_OF_FREE 8 /* a peer's deferred calls, in multiples of what others may still have */

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
	if (atomic_exchange(&call->deferral.counted, false))
		rxw_deferral_release(call->conn);
}
