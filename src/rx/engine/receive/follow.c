/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clients whose address or port changes in the middle of a call, because a NAT forgot its mapping
 * or a host has another network (rx-protocol 2.3). The connection stays where it is until the new
 * address has answered a PING with a serial that only its owner can know, and the old one is
 * silent. Until then, a few words of the connection are all that others can change.
 */
#include <stdio.h>

#include "engine/receive/lifecycle.h"
#include "engine/lock.h"
#include "engine/objects.h"
#include "engine/receive/batch.h"
#include "proto/peer/event.h"

static bool move_connection(struct rxw_shard *t, struct rxw_connection *c, struct rxw_peer *peer,
			    const struct rxw_rxrun *run, struct rxw_effects *a)
{
	const struct rxw_header *h = &run->head;
	bool moved;

	assert(rxw_is_locked(&t->lock) && rxw_is_locked(&c->lock));
	if (!c->in_table || !rxw_pconn_proves(&c->p, run) ||
	    rxw_conntable_find(&t->table, false, h->epoch, h->cid & ~3u, &run->path->peer, NULL))
		return false;
	rxw_conntable_remove(&t->table, &c->p);
	moved = rxw_pconn_move(&c->p, peer, run->path, &a->out);
	/* There is room, since one of the same cid has just been removed. */
	c->in_table = !rxw_conntable_insert(&t->table, &c->p);
	rxw_unvalidated_recheck(c, a->out.now);
	return moved;
}

/*
 * One line for each move, some in a second at most; the next line counts those without one. No lock
 * held.
 */
__attribute__((cold)) static void log_move(struct rxw_endpoint *ep, const struct rxw_connection *c,
					   const struct rxw_path *from, const struct rxw_path *to,
					   uint64_t now)
{
	char old[64], new[64], more[64] = "";
	unsigned left_out = 0;
	bool allowed;

	rxw_unvalidated_lock(ep);
	allowed = rxw_rate_take(&ep->admit.log_rate, now);
	if (allowed) {
		left_out = ep->admit.moves_unlogged;
		ep->admit.moves_unlogged = 0;
	} else {
		ep->admit.moves_unlogged++;
	}
	rxw_unvalidated_unlock(ep);
	if (!allowed)
		return;
	if (left_out)
		snprintf(more, sizeof(more), " (%u other moves were not logged)", left_out);
	rxw_log(ep->engine, RXW_LOG_INFO,
		"the client of connection %08x/%08x of service %u moved from %s to %s%s",
		c->p.epoch, c->p.cid, c->p.service, rxw_addr_text(&from->peer, old, sizeof(old)),
		rxw_addr_text(&to->peer, new, sizeof(new)), more);
}

bool rxw_conn_follow(struct rxw_shard *s, struct rxw_connection *c, const struct rxw_rxrun *run,
		     int32_t *code, struct rxw_effects *a)
{
	struct rxw_shard *t = &s->ep->shard[c->table];
	const struct rxw_path *from;
	struct rxw_peer *peer = NULL;
	bool proved, moved = false;

	*code = 0;
	if (rxw_effects_full(a))
		return false;
	rxw_conn_lock(c);
	proved = rxw_pconn_proves(&c->p, run);
	if (!proved)
		*code = rxw_pconn_ask(&c->p, run, &a->out);
	rxw_conn_unlock(c);
	if (!proved)
		return false;
	rxw_peers_lock(s->ep);
	peer = rxw_peer_get(s->ep->peers.table, &run->path->peer, a->out.now);
	rxw_peers_unlock(s->ep);
	if (!peer) {
		rxw_count(&s->stats.moves[RXW_MOVE_REFUSED], 1);
		return false;
	}
	rxw_table_lock(t);
	rxw_conn_lock(c);
	from = rxw_pconn_path(&c->p);
	moved = move_connection(t, c, peer, run, a);
	rxw_effects_collect(a, false);
	rxw_conn_unlock(c);
	rxw_table_unlock(t);
	rxw_peer_unref(peer, a->out.now);
	rxw_count(&s->stats.moves[moved ? RXW_MOVE_DONE : RXW_MOVE_REFUSED], 1);
	if (moved)
		log_move(s->ep, c, from, run->path, a->out.now);
	return moved;
}
