/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Limits the connections of validated addresses, and chooses which ones to evict (rx-protocol 12.3). Ends
 * calls that occupy a worker without progress, once too many workers are blocked.
 */
#include "engine/receive/lifecycle.h"
#include "engine/lock.h"
#include "engine/objects.h"

/*
 * A validated address may have any number of connections, each for ten minutes, so only memory
 * would bound them. They are therefore counted. Above `connections_max`, the one that was silent
 * longest in a small sample is evicted: a list of all connections ordered by activity would cost
 * each packet a lock. The peer is not told. Its next packet creates the connection again.
 *
 * A call that cannot begin, because its first packet or a RESPONSE is missing, does not keep its
 * connection: each packet of a client could begin one. Neither does one whose handler has returned and
 * whose reply was in vain for the dead time. Such calls count as well.
 */
#define SAMPLE_SIZE 32		  /* connections examined to evict one ... */
#define CHAINS	    256		  /* ... in at most so many slots of the tables */
#define SILENT_MIN  RXW_SEC	  /* copies of its latest request are no longer in the network */
#define EVICT_MAX   64		  /* evicted after one batch */
#define RETRY_AFTER (10 * RXW_MS) /* after a search that found none, */
#define RETRY_LATER (100 * RXW_MS) /* and after enough of them to look at all connections */
#define CALL_WEIGHT 4		  /* connections that take the memory of a call */

uint64_t rxw_last_activity(const struct rxw_connection *c)
{
	return c->p.last_heard > c->p.last_sent ? c->p.last_heard : c->p.last_sent;
}

static bool too_many_connections(const struct rxw_endpoint *ep)
{
	unsigned most = atomic_load_explicit(&ep->settings.connections_max, memory_order_relaxed);

	return most && atomic_load_explicit(&ep->admit.validated, memory_order_relaxed) > most;
}

bool rxw_must_evict(const struct rxw_endpoint *ep)
{
	unsigned most = atomic_load_explicit(&ep->settings.connections_max, memory_order_relaxed);

	return too_many_connections(ep) ||
	       (most &&
		atomic_load_explicit(&ep->usage.calls, memory_order_relaxed) > most / CALL_WEIGHT);
}

/* Connection's lock held: since when it is of no use; RXW_NEVER: it must stay. */
static uint64_t unused_since(const struct rxw_connection *c)
{
	/* If only calls are too many, it must have one. */
	if (!c->admit.validated || (!too_many_connections(c->ep) && rxw_pconn_idle(&c->p)))
		return RXW_NEVER;
	return rxw_pconn_unused_since(&c->p);
}

/*
 * The connection of a sample that was silent longest, with a reference, or NULL. *left: slots that the search may
 * still look at; a connection costs as much as several.
 */
static struct rxw_connection *find_victim(struct rxw_shard *t, int *left, unsigned *at, uint64_t now)
{
	uint64_t longest = now > SILENT_MIN ? now - SILENT_MIN : 0;
	struct rxw_connection *victim = NULL;
	unsigned n;

	rxw_table_lock(t);
	n = rxw_conntable_chains(&t->table);
	for (; n && *left > 0; n--, --*left) {
		struct rxw_pconn *p =
			rxw_conntable_chain(&t->table, (*at)++ % rxw_conntable_chains(&t->table));

		for (; p; p = p->links.hash_next) {
			struct rxw_connection *c = rxw_conn_of(p);
			uint64_t since;

			*left -= CHAINS / SAMPLE_SIZE;
			rxw_conn_lock(c);
			since = unused_since(c);
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

/* False: it became active meanwhile. */
static bool evict_connection(struct rxw_shard *s, struct rxw_connection *victim, uint64_t now)
{
	struct rxw_effects a;
	bool idle;

	rxw_change_begin(&a, victim);
	idle = unused_since(victim) < now;
	/*
	 * Another thread may have looked it up just before: its packet is dropped, and the peer
	 * retransmits it.
	 */
	if (idle) {
		victim->p.evicted = true;
		rxw_pconn_fail(&victim->p, RXW_CALL_DEAD, RXW_ORIGIN_LOCAL, false, &a.out);
	}
	rxw_change_end(&a, victim);
	if (!idle)
		return false;
	rxw_conn_remove(victim);
	rxw_count(&s->stats.connections_evicted, 1);
	return true;
}

/* False: a search found no connection that may be evicted. */
static bool evict_one(struct rxw_shard *s, uint64_t now)
{
	struct rxw_endpoint *ep = s->ep;
	struct rxw_shard_admit *b = &s->admit;
	int left = CHAINS;

	for (unsigned i = 0; i < ep->shard_count && left > 0; i++) {
		struct rxw_shard *t = &ep->shard[b->idle_table++ % ep->shard_count];
		struct rxw_connection *victim = find_victim(t, &left, &b->idle_slot, now);
		bool gone;

		if (!victim)
			continue;
		gone = evict_connection(s, victim, now - SILENT_MIN);
		rxw_conn_unref(victim);
		if (gone)
			return true;
	}
	return false;
}

__attribute__((cold))
void rxw_evict_idle(struct rxw_shard *s, uint64_t now)
{
	struct rxw_shard_admit *b = &s->admit;

	if (now < b->idle_at)
		return;
	for (unsigned i = 0; i < EVICT_MAX && rxw_must_evict(s->ep); i++) {
		if (!evict_one(s, now)) {
			b->idle_at = now + (++b->in_vain * SAMPLE_SIZE <
							    atomic_load(&s->ep->usage.connections)
						    ? RETRY_AFTER
						    : RETRY_LATER);
			return;
		}
		b->in_vain = 0;
	}
}

bool rxw_room_for_connection(struct rxw_shard *s, uint64_t now)
{
	if (rxw_must_evict(s->ep))
		rxw_evict_idle(s, now);
	return !too_many_connections(s->ep);
}

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
