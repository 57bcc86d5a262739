/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads that sleep for packets: how many there are, for whoever leaves the receive role. */
#include "engine/internal.h"

void rxw_sleeper_add(struct rxw_call *call, struct rxw_shard *s)
{
	if (call->asleep)
		return;
	call->asleep = s;
	atomic_fetch_add(&s->asleep, 1);
}

void rxw_sleeper_remove(struct rxw_call *call)
{
	if (!call->asleep)
		return;
	atomic_fetch_sub(&call->asleep->asleep, 1);
	call->asleep = NULL;
}
