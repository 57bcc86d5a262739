/* SPDX-License-Identifier: BSD-2-Clause */
/* Ends calls that occupy a worker without progress, once too many workers are blocked. */
#include "engine/send/dispatch.h"
#include "engine/lock.h"
#include "engine/objects.h"

#define END_MAX 16 /* calls ended by one sample */

/* The sample dates from when the worker blocked: the call may have made progress since. */
static void end_if_slow(struct rxw_slow_call *v, uint64_t now)
{
	struct rxw_call *call = v->call;
	struct rxw_connection *c = call->conn;
	struct rxw_effects a;

	rxw_change_begin(&a, c);
	v->moved = rxw_worker_progress(call);
	v->ended = rxw_workers_too_slow(v, now);
	if (v->ended && !call->p.error && !call->ended) {
		rxw_count(&rxw_home(c)->stats.calls_given_up, 1);
		rxw_pcall_fail(&call->p, RXW_CALL_TIMEOUT, RXW_ORIGIN_LOCAL, true, &a.out);
		rxw_timer_update(call);
	}
	rxw_change_end(&a, c);
}

void rxw_end_slow_calls(struct rxw_endpoint *ep, uint64_t now)
{
	struct rxw_slow_call v[END_MAX];
	unsigned n = rxw_workers_slow(ep, now, v, END_MAX);
	bool spared = false;

	for (unsigned i = 0; i < n; i++) {
		end_if_slow(&v[i], now);
		spared |= !v[i].ended;
	}
	if (spared)
		rxw_workers_spare(ep, v, n);
	for (unsigned i = 0; i < n; i++)
		rxw_call_unref(v[i].call);
}
