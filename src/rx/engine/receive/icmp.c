/* SPDX-License-Identifier: BSD-2-Clause */
/* ICMP errors that the network returned: hints for the peer's connections. */
#include "engine/send/dispatch.h"
#include "engine/lock.h"
#include "engine/objects.h"
#include "engine/receive/batch.h"

#define ERRORS_MAX 16
/* Connections of a peer that are told, in each table; the others time out by themselves. */
#define CONNS_MAX 16

/* Up to CONNS_MAX connections of one table with this peer, one reference each. */
static unsigned conns_of_peer(struct rxw_shard *table, const struct rxw_addr *peer,
			      struct rxw_connection **hit)
{
	unsigned n = 0;

	rxw_table_lock(table);
	for (struct rxw_pconn *p = rxw_conntable_of_peer(&table->table, peer); p && n < CONNS_MAX;
	     p = p->links.peer_next) {
		hit[n] = rxw_conn_of(p);
		rxw_conn_ref(hit[n++]);
	}
	rxw_table_unlock(table);
	return n;
}

/* Tell the peer's connections of one table. */
static void tell_connections(struct rxw_shard *s, struct rxw_shard *table,
			     const struct rxw_io_error *error)
{
	struct rxw_connection *hit[CONNS_MAX];
	unsigned hits = conns_of_peer(table, &error->peer, hit);

	for (unsigned k = 0; k < hits; k++) {
		struct rxw_effects a;

		rxw_effects_init(&a, s, false);
		rxw_conn_lock(hit[k]);
		rxw_pconn_icmp(&hit[k]->p, error->error, error->mtu, &a.out);
		rxw_effects_collect(&a, true);
		rxw_conn_unlock(hit[k]);
		rxw_dispatch(&a);
		rxw_conn_unref(hit[k]);
	}
}

/* Of sockets that share a port, any may get the error, whichever sent the packet. */
void rxw_shard_errors(struct rxw_shard *s)
{
	struct rxw_io_error error[ERRORS_MAX];
	unsigned n = rxw_io_errors(s->sock, error, ERRORS_MAX);

	for (unsigned i = 0; i < n; i++)
		for (unsigned t = 0; t < s->ep->shard_count; t++)
			tell_connections(s, &s->ep->shard[t], &error[i]);
}
