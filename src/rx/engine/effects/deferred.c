/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections with work that is deferred until the socket is drained: a merged ACK, a reader's
 * wake-up.
 */
#include "engine/objects.h"

/* Connection's lock held: does it have deferred work? */
static bool has_deferred_work(const struct rxw_connection *c)
{
	for (unsigned i = 0; i < 4; i++)
		if (c->p.channel[i] && rxw_call_of(c->p.channel[i])->effects.quiet)
			return true;
	return rxw_pconn_owes(&c->p);
}

void rxw_defer_until_drained(struct rxw_shard *s, struct rxw_connection *c, uint64_t now)
{
	if (c->deferred || s->deferred.count == RXW_DEFERRED_MAX || !has_deferred_work(c))
		return;
	if (!s->deferred.count)
		s->deferred.since = now;
	c->deferred = true;
	rxw_conn_ref(c);
	s->deferred.conn[s->deferred.count++] = c;
}
