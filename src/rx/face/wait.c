/* SPDX-License-Identifier: BSD-2-Clause */
/* How a blocking function waits: asleep until woken, or receiving itself where that saves the
 * wake-up. */
#include "engine/internal.h"
#include "engine/lock.h"

void rxw_wait(struct rxw_call *call, bool (*ready)(const struct rxw_call *call))
{
	struct rxw_connection *c = call->conn;
	struct rxw_shard *s = rxw_home(c);
	bool may_receive = !c->ep->server && !rxw_receiving() && !rxw_on_library_thread(NULL);
	bool role = false;

	if (ready(call))
		return;
	if (may_receive)
		rxw_sync_begin(s);
	while (!ready(call)) {
		if (!role && may_receive)
			role = rxw_role_try(s);
		if (!role) {
			call->sleepers++;
			pthread_cond_wait(&call->cond, &c->lock);
			call->sleepers--;
			continue;
		}
		call->receiving = true;
		rxw_conn_unlock(c);
		rxw_shard_poll(s);
		if (atomic_load(&s->sync_waiters) > 1) {
			rxw_role_leave(s);
			role = false;
		}
		rxw_conn_lock(c);
		call->receiving = false;
	}
	if (may_receive)
		rxw_sync_end(s);
	if (role) {
		rxw_conn_unlock(c);
		rxw_role_leave(s);
		rxw_conn_lock(c);
	}
}
