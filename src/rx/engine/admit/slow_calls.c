/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls that keep a worker from others and move nothing are ended, once too many workers wait. */
#include "engine/dispatch/dispatch.h"
#include "engine/lock.h"
#include "engine/objects.h"

#define AT_ONCE 16 /* calls that are ended by one look */

/* What was known of it is from when it began to wait: it may have moved since. */
static void end_it(struct rxw_slow_call *v, uint64_t now)
{
	struct rxw_call *call = v->call;
	struct rxw_connection *c = call->conn;
	struct rxw_shard *s = rxw_home(c);
	struct rxw_effects a;

	rxw_effects_init(&a, s, false);
	rxw_conn_lock(c);
	v->moved = rxw_worker_moved(call);
	v->ended = rxw_workers_too_slow(v, now);
	if (v->ended && !call->p.error && !call->ended) {
		rxw_count(&s->stats.calls_given_up, 1);
		rxw_pcall_fail(&call->p, RXW_CALL_TIMEOUT, RXW_ORIGIN_LOCAL, true, &a.out);
		rxw_effects_collect(&a, false);
		rxw_timer_update(call);
	}
	rxw_conn_unlock(c);
	rxw_dispatch(&a);
}

void rxw_end_slow_calls(struct rxw_endpoint *ep, uint64_t now)
{
	struct rxw_slow_call v[AT_ONCE];
	unsigned n = rxw_workers_slow(ep, now, v, AT_ONCE);
	bool spared = false;

	for (unsigned i = 0; i < n; i++) {
		end_it(&v[i], now);
		spared |= !v[i].ended;
	}
	if (spared)
		rxw_workers_spare(ep, v, n);
	for (unsigned i = 0; i < n; i++)
		rxw_call_unref(v[i].call);
}
