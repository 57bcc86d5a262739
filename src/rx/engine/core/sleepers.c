/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that sleep for packets, and callers that wait for a channel. A thread that leaves the
 * receive role reads the count of the former.
 */
#include "engine/objects.h"

void rxw_sleeper_add(struct rxw_call *call, struct rxw_shard *s)
{
	if (call->sleep.counted_in)
		return;
	call->sleep.counted_in = s;
	atomic_fetch_add(&s->role.sleepers, 1);
}

void rxw_sleeper_remove(struct rxw_call *call)
{
	if (!call->sleep.counted_in)
		return;
	atomic_fetch_sub(&call->sleep.counted_in->role.sleepers, 1);
	call->sleep.counted_in = NULL;
}

bool rxw_channel_wake(struct rxw_connection *c)
{
	if (!c->channel_waiters || c->channel_woken)
		return false;
	c->channel_woken = true;
	return true;
}
