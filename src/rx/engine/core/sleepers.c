/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that sleep for packets, and callers that wait for a channel. A thread that leaves the
 * receive role reads the count of the former.
 */
#include "engine/objects.h"

void rxw_sleeper_add(struct rxw_call *call, struct rxw_shard *s)
{
	assert(rxw_is_locked(&call->conn->lock));
	if (call->sleep.counted_in)
		return;
	call->sleep.counted_in = s;
	atomic_fetch_add(&s->role.sleepers, 1);
}

void rxw_sleeper_remove(struct rxw_call *call)
{
	if (!call->sleep.counted_in)
		return;
	rxw_count_down(&call->sleep.counted_in->role.sleepers);
	call->sleep.counted_in = NULL;
}

bool rxw_channel_wake(struct rxw_connection *c)
{
	assert(rxw_is_locked(&c->lock));
	if (!c->channel_waiters || c->channel_woken)
		return false;
	c->channel_woken = true;
	return true;
}
