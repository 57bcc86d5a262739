/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clients whose address or port changes in the middle of a call, because a NAT forgot its mapping
 * or a host has another network (rx-protocol 2.3). The connection stays where it is until the new
 * address has answered a PING with a serial that only its owner can know, and the old one is
 * silent. Until then, a few words of the connection are all that others can change.
 */
#include "engine/conn/conn.h"
#include "engine/lock.h"
#include "engine/objects.h"
#include "engine/rx/batch.h"
#include "proto/event/event.h"

/* Locks of table and connection held. */
static bool move(struct rxw_shard *t, struct rxw_connection *c, struct rxw_peer *peer,
		 const struct rxw_rxrun *run, struct rxw_effects *a)
{
	const struct rxw_header *h = &run->head;
	bool moved;

	if (!c->in_table || !rxw_pconn_proves(&c->p, run) ||
	    rxw_conntable_find(&t->table, false, h->epoch, h->cid & ~3u, &run->path->peer, NULL))
		return false;
	rxw_conntable_remove(&t->table, &c->p);
	moved = rxw_pconn_move(&c->p, peer, run->path, &a->out);
	/* There is room, since one of the same cid has just been removed. */
	c->in_table = !rxw_conntable_insert(&t->table, &c->p);
	if (moved)
		rxw_peer_set_validated(peer, a->out.now);
	rxw_unvalidated_recheck(c, a->out.now);
	return moved;
}

bool rxw_conn_follow(struct rxw_shard *s, struct rxw_connection *c, const struct rxw_rxrun *run,
		     struct rxw_effects *a)
{
	struct rxw_shard *t = &s->ep->shard[c->table];
	struct rxw_peer *peer = NULL;
	bool proved, moved = false;

	if (rxw_effects_full(a))
		return false;
	rxw_conn_lock(c);
	proved = rxw_pconn_proves(&c->p, run);
	if (!proved)
		rxw_pconn_ask(&c->p, run, &a->out);
	rxw_conn_unlock(c);
	if (!proved)
		return false;
	rxw_peers_lock(s->ep);
	peer = rxw_peer_get(s->ep->peers, &run->path->peer, a->out.now);
	rxw_peers_unlock(s->ep);
	if (!peer)
		return false;
	rxw_table_lock(t);
	rxw_conn_lock(c);
	moved = move(t, c, peer, run, a);
	rxw_effects_collect(a, false);
	rxw_conn_unlock(c);
	rxw_table_unlock(t);
	rxw_peer_unref(peer, a->out.now);
	return moved;
}
