/* SPDX-License-Identifier: BSD-2-Clause */
/* What the network reports about packets that did not arrive: hints for that peer's connections. */
#include "engine/dispatch/dispatch.h"
#include "engine/lock.h"
#include "engine/objects.h"
#include "engine/rx/batch.h"

#define REPORTS 16
#define TOLD	16 /* connections of the peer: the others find out by themselves */

/* Up to TOLD connections with this peer, a reference each. */
static unsigned of_peer(struct rxw_shard *s, const struct rxw_addr *peer,
			struct rxw_connection **hit)
{
	unsigned n = 0;

	rxw_table_lock(s);
	for (struct rxw_pconn *p = rxw_conntable_of_peer(&s->table, peer); p && n < TOLD;
	     p = p->links.peer_next) {
		hit[n] = rxw_conn_of(p);
		rxw_conn_ref(hit[n++]);
	}
	rxw_table_unlock(s);
	return n;
}

void rxw_shard_errors(struct rxw_shard *s)
{
	struct rxw_io_error error[REPORTS];
	unsigned n = rxw_io_errors(s->sock, error, REPORTS);

	for (unsigned i = 0; i < n; i++) {
		struct rxw_connection *hit[TOLD];
		unsigned hits = of_peer(s, &error[i].peer, hit);

		for (unsigned k = 0; k < hits; k++) {
			struct rxw_effects a;

			rxw_effects_init(&a, s, false);
			rxw_conn_lock(hit[k]);
			rxw_pconn_icmp(&hit[k]->p, error[i].error, error[i].mtu, &a.out);
			rxw_effects_collect(&a, true);
			rxw_conn_unlock(hit[k]);
			rxw_dispatch(&a);
			rxw_conn_unref(hit[k]);
		}
	}
}
