/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections of addresses that are proven: how many there may be, and which goes (12.3). */
#include "engine/conn/conn.h"
#include "engine/lock.h"
#include "engine/objects.h"

/*
 * An address that answers may have as many connections as it likes, each for ten minutes, and
 * only memory would end that. So they are counted, and where there are more than `connections_max`
 * the one that was silent longest goes, of a few that are looked at: a list of all by the time of
 * their last packet would cost each packet a lock. Nobody is told: the next packet makes it anew.
 */
#define SAMPLE	     32		   /* connections looked at for one that goes, */
#define CHAINS	     256	   /* in so many slots of a table */
#define LEAST_SILENT RXW_SEC	   /* copies of its last request are not under way any more */
#define AT_ONCE	     64		   /* go behind one batch */
#define REST	     (10 * RXW_MS) /* none may go: looked again after that */

uint64_t rxw_last_activity(const struct rxw_connection *c)
{
	return c->p.last_heard > c->p.last_sent ? c->p.last_heard : c->p.last_sent;
}

bool rxw_too_many_connections(const struct rxw_endpoint *ep)
{
	return ep->config.connections_max &&
	       atomic_load_explicit(&ep->validated, memory_order_relaxed) >
		       ep->config.connections_max;
}

/* Its lock held: when it said something last; UINT64_MAX: it must stay. */
static uint64_t silent_since(const struct rxw_connection *c)
{
	return c->admit.validated && rxw_pconn_idle(&c->p) ? rxw_last_activity(c) : UINT64_MAX;
}

/* Of a sample of a table's connections that which was silent longest, with a reference, or NULL. */
static struct rxw_connection *find_victim(struct rxw_shard *t, unsigned *at, uint64_t now)
{
	uint64_t longest = now > LEAST_SILENT ? now - LEAST_SILENT : 0;
	struct rxw_connection *victim = NULL;
	unsigned looked = 0;

	rxw_table_lock(t);
	for (unsigned i = 0; i < CHAINS && looked < SAMPLE; i++) {
		struct rxw_pconn *p =
			rxw_conntable_chain(&t->table, (*at)++ % rxw_conntable_chains(&t->table));

		for (; p; p = p->links.hash_next, looked++) {
			struct rxw_connection *c = rxw_conn_of(p);
			uint64_t since;

			rxw_conn_lock(c);
			since = silent_since(c);
			rxw_conn_unlock(c);
			if (since >= longest)
				continue;
			longest = since;
			victim = c;
		}
	}
	if (victim)
		rxw_conn_ref(victim);
	rxw_table_unlock(t);
	return victim;
}

/* False: it had something to say meanwhile. */
static bool evict(struct rxw_shard *s, struct rxw_connection *victim, uint64_t now)
{
	bool may;

	rxw_conn_lock(victim);
	may = silent_since(victim) < now;
	/* Another thread may have found it just before: its packet is lost, and comes again. */
	if (may)
		victim->p.evicted = true;
	rxw_conn_unlock(victim);
	if (!may)
		return false;
	rxw_conn_remove(victim);
	rxw_count(&s->stats.connections_evicted, 1);
	return true;
}

/* False: in no table there is one that may go. */
static bool evict_one(struct rxw_shard *s, uint64_t now)
{
	struct rxw_endpoint *ep = s->ep;
	struct rxw_shard_admit *b = &s->admit;

	for (unsigned i = 0; i < ep->shard_count; i++) {
		struct rxw_shard *t = &ep->shard[b->idle_table++ % ep->shard_count];
		struct rxw_connection *victim = find_victim(t, &b->idle_slot, now);
		bool gone;

		if (!victim)
			continue;
		gone = evict(s, victim, now - LEAST_SILENT);
		rxw_conn_unref(victim);
		if (gone)
			return true;
	}
	return false;
}

void rxw_evict_idle(struct rxw_shard *s, uint64_t now)
{
	struct rxw_shard_admit *b = &s->admit;

	if (now < b->idle_at)
		return;
	for (unsigned i = 0; i < AT_ONCE && rxw_too_many_connections(s->ep); i++)
		if (!evict_one(s, now)) {
			b->idle_at = now + REST;
			return;
		}
}

bool rxw_room_for_connection(struct rxw_shard *s, uint64_t now)
{
	if (rxw_too_many_connections(s->ep))
		rxw_evict_idle(s, now);
	return !rxw_too_many_connections(s->ep);
}
