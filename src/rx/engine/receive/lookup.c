/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds the connection of a run of packets, creates new ones, and removes idle ones (rx-protocol
 * 1.8, 12.3).
 */
#include <string.h>

#include "engine/receive/lifecycle.h"
#include "engine/lock.h"
#include "engine/objects.h"
#include "engine/receive/batch.h"
#include "proto/peer/event.h"

#define REAP_IDLE	  (600 * RXW_SEC)
#define UNVALIDATED_IDLE  (15 * RXW_SEC)
#define REAP_ROUND	  (5 * RXW_SEC) /* each connection is checked once in that time */
#define REAP_SLOTS	  256		 /* slots scanned under one lock */
#define REAP_MAX	  64
#define WATCH_EVERY	  RXW_SEC
#define FOREIGN_MANY	  100 /* packets a second of unknown connections ... */
#define FOREIGN_CHECKS	  3   /* ... in so many consecutive checks */
#define FOREIGN_LOG_EVERY (60 * RXW_SEC)

static struct rxw_connection *drop_run(struct rxw_shard *s, enum rxw_drop cause)
{
	rxw_drop(&s->stats, cause, 1);
	return NULL;
}

/* Sends a stateless ABORT, within the rate limit. */
static struct rxw_connection *refuse_run(struct rxw_shard *s, const struct rxw_rxrun *run,
					 int32_t code, enum rxw_drop cause, struct rxw_effects *a)
{
	struct rxw_endpoint *ep = s->ep;
	bool allowed;

	rxw_drop(&s->stats, cause, 1);
	if (a->out.ctl_count >= a->out.ctl_room)
		return NULL;
	rxw_unvalidated_lock(ep);
	allowed = rxw_rate_take(&ep->admit.abort_rate, a->out.now);
	rxw_unvalidated_unlock(ep);
	if (!allowed)
		return drop_run(s, RXW_DROP_RATE);
	struct rxw_ctl *ctl = &a->out.ctl[a->out.ctl_count++];

	ctl->path = *run->path;
	ctl->padding = 0;
	ctl->client = false;
	ctl->length = (uint16_t)rxw_stateless_abort_put(ctl->bytes, &run->head, code);
	rxw_count(&s->stats.stateless_aborts, 1);
	rxw_count(&s->stats.packets_sent[RXW_ABORT], 1);
	return NULL;
}

static struct rxw_security *find_security(struct rxw_service *service, uint8_t index)
{
	for (size_t i = 0; i < service->security_count; i++) {
		struct rxw_security *s = service->security[i];

		/* Without an exchange the level is known already: it is the lowest. */
		if (s->class.index == index && (s->class.challenge || !service->level_min))
			return s;
	}
	return NULL;
}

static struct rxw_connection *insert_new_connection(struct rxw_shard *t, struct rxw_connection *c)
{
	struct rxw_pconn *existing;

	assert(!c->in_table && !c->p.client && c->service);
	rxw_table_lock(t);
	/* Another shard may have created the same connection from the packet before this one. */
	existing = rxw_conntable_find(&t->table, false, c->p.epoch, c->p.cid, &c->p.path.peer, NULL);
	if (existing) {
		rxw_conn_ref(rxw_conn_of(existing));
	} else if (!rxw_conntable_insert(&t->table, &c->p)) {
		c->in_table = true;
		rxw_conn_ref(c);
	}
	rxw_table_unlock(t);
	if (existing) {
		rxw_conn_unref(c);
		return rxw_conn_of(existing);
	}
	if (!c->in_table) {
		rxw_conn_unref(c);
		return drop_run(t, RXW_DROP_LIMIT);
	}
	return c;
}

/* Settings of a service for its connections. */
static void apply_settings(struct rxw_connection *c, const struct rxw_service *service)
{
	unsigned idle = atomic_load_explicit(&service->idle_ms, memory_order_relaxed);
	unsigned dead = atomic_load_explicit(&service->dead_ms, memory_order_relaxed);

	if (idle)
		c->p.idle = idle == RXW_TIMEOUT_OFF ? 0 : idle * RXW_MS;
	if (dead)
		c->p.dead = dead * RXW_MS;
	c->p.validate_first = atomic_load_explicit(&service->reach, memory_order_relaxed);
}

/* A connection to `service`, in the table. */
static struct rxw_connection *make_connection(struct rxw_shard *s, const struct rxw_rxrun *run,
					      struct rxw_service *service,
					      struct rxw_security *security, struct rxw_effects *a)
{
	const struct rxw_header *h = &run->head;
	struct rxw_endpoint *ep = s->ep;
	struct rxw_connection *c;
	struct rxw_path path = *run->path;
	bool crowded, counted;
	int error;

	/* If there is no room, validated addresses are admitted without being counted. */
	counted = rxw_unvalidated_admit(ep, &path, &crowded);
	if (!counted && !rxw_address_validated(ep, &path.peer, a->out.now)) {
		rxw_cookie_send(s, run, a);
		return drop_run(s, RXW_DROP_LIMIT);
	}
	c = rxw_conn_create(ep, &path, h->epoch, h->cid & ~3u, h->service, security, false,
			    s->index, &error);
	if (!c) {
		if (counted)
			rxw_unvalidated_dismiss(ep);
		return drop_run(s, RXW_DROP_MEMORY);
	}
	c->admit.unvalidated = counted;
	rxw_unvalidated_recheck(c, a->out.now);
	if (c->admit.unvalidated)
		rxw_count(&s->stats.unvalidated_connections, 1);
	else
		rxw_count_validated(c);
	rxw_service_ref(service);
	c->service = service;
	c->p.crowded = crowded;
	c->p.auth.level_min = service->level_min;
	apply_settings(c, service);
	return insert_new_connection(&ep->shard[c->table], c);
}

/* A packet of no connection, for `service`. */
static struct rxw_connection *new_of_service(struct rxw_shard *s, const struct rxw_rxrun *run,
					     struct rxw_service *service, struct rxw_effects *a)
{
	const struct rxw_header *h = &run->head;
	struct rxw_endpoint *ep = s->ep;
	struct rxw_security *security = find_security(service, h->security);
	int32_t code = rxw_refusing(ep);

	if (!security)
		return refuse_run(s, run, RXW_INVALID_OPERATION, RXW_DROP_SECURITY_INDEX, a);
	if (!h->call)
		return drop_run(s, RXW_DROP_CALL_NUMBER);
	if (!h->seq)
		return drop_run(s, RXW_DROP_SEQ_ZERO);
	if (h->seq > rxw_min32(rxw_window_of(ep), RXW_MAX_ACKS) && h->seq > RXW_FIRST_FLIGHT)
		return drop_run(s, RXW_DROP_WINDOW);
	if (atomic_load(&ep->life.leaving))
		return drop_run(s, RXW_DROP_STATE);
	if (atomic_load(&ep->life.stopping))
		return refuse_run(s, run, RXW_RESTARTING, RXW_DROP_STATE, a);
	if (code)
		return refuse_run(s, run, code, RXW_DROP_STATE, a);
	if (!rxw_room_for_connection(s, a->out.now))
		return drop_run(s, RXW_DROP_LIMIT);
	return make_connection(s, run, service, security, a);
}

static struct rxw_connection *new_connection(struct rxw_shard *s, const struct rxw_rxrun *run,
					     struct rxw_effects *a)
{
	struct rxw_service *service;
	struct rxw_connection *c;

	if (run->head.type == RXW_ACK && rxw_cookie_accept(s, run, a->out.now))
		return NULL;
	if (run->head.type != RXW_DATA)
		return drop_run(s, RXW_DROP_NO_CONNECTION);
	service = rxw_service_find(s->ep, run->head.service);
	if (!service)
		return refuse_run(s, run, RXW_INVALID_OPERATION, RXW_DROP_SERVICE, a);
	c = new_of_service(s, run, service, a);
	rxw_service_unref(service);
	return c;
}

/*
 * A known epoch and cid from another address: a call in progress must not run twice because a NAT
 * changed the port (rx-protocol 2.3). Returns the connection of the call, with a reference.
 */
static struct rxw_connection *of_other_address(struct rxw_pconn *other, const struct rxw_header *h)
{
	bool known;

	if (!(h->epoch & 0x80000000u))
		return NULL;
	/*
	 * The port may have changed several times: the call may belong to any of these connections.
	 */
	for (; other; other = other->links.hash_next) {
		struct rxw_connection *c = rxw_conn_of(other);

		if (other->cid != (h->cid & ~3u) || other->epoch != h->epoch || other->client)
			continue;
		rxw_conn_lock(c);
		known = h->call <= other->number[h->cid & 3];
		rxw_conn_unlock(c);
		if (!known)
			continue;
		rxw_conn_ref(c);
		return c;
	}
	return NULL;
}

/*
 * A later packet of a call that is new to the client's connection at another address. If the client
 * has moved, earlier packets of the call may still wait at another listener: a connection made now
 * would serve the call a second time.
 */
static bool too_early(const struct rxw_header *h)
{
	return (h->epoch & 0x80000000u) && h->type == RXW_DATA && h->seq > 1;
}

struct rxw_connection *rxw_find_connection(struct rxw_shard *s, const struct rxw_rxrun *run,
					   struct rxw_effects *a)
{
	const struct rxw_header *h = &run->head;
	bool server_half = h->flags & RXW_CLIENT_INITIATED;
	struct rxw_shard *t = &s->ep->shard[(h->cid >> 2) % s->ep->shard_count];
	struct rxw_pconn *other = NULL, *p;
	struct rxw_connection *c, *moved = NULL;
	int32_t code = 0;

	rxw_table_lock(t);
	p = rxw_conntable_find(&t->table, !server_half, h->epoch, h->cid & ~3u, &run->path->peer,
			       &other);
	if (p)
		rxw_conn_ref(rxw_conn_of(p));
	else if (server_half && other)
		moved = of_other_address(other, h);
	rxw_table_unlock(t);
	if (moved && rxw_conn_follow(s, moved, run, &code, a))
		return moved;
	if (moved) {
		rxw_conn_unref(moved);
		return code ? refuse_run(s, run, code, RXW_DROP_ADDRESS, a)
			    : drop_run(s, RXW_DROP_ADDRESS);
	}
	if (!p && other && server_half && too_early(h))
		return drop_run(s, RXW_DROP_ADDRESS);
	if (!p)
		return server_half ? new_connection(s, run, a)
				   : drop_run(s, RXW_DROP_NO_CONNECTION);
	c = rxw_conn_of(p);
	if (t != s)
		rxw_count(&s->wrong_shard, 1);
	if (atomic_load_explicit(&c->home, memory_order_relaxed) != s->index)
		atomic_store_explicit(&c->home, s->index, memory_order_relaxed);
	return c;
}

enum fate {
	STAYS,
	SETTLES, /* it has failed, and its calls have gone */
	GOES
};

/* May the connection be removed? Those of unvalidated addresses expire earlier (rx-protocol 12.3). */
static enum fate fate_of(struct rxw_connection *c, uint64_t now)
{
	enum fate fate = STAYS;
	uint64_t most;

	rxw_conn_lock(c);
	rxw_unvalidated_recheck(c, now);
	most = c->admit.unvalidated ? UNVALIDATED_IDLE : REAP_IDLE;
	if (!c->p.client && rxw_pconn_idle(&c->p) && now > rxw_last_activity(c) + most)
		fate = GOES;
	else if (!c->p.client && c->p.error && !c->settled && !atomic_load(&c->calls))
		fate = SETTLES;
	rxw_conn_unlock(c);
	return fate;
}

/*
 * Logs, at most once in a while, that many packets of unknown or forged connections arrived for
 * some seconds (rx-protocol 12.3). Packets that are late for their call, damaged, or for a service
 * that is not offered do not count: their ids are right, so nobody guessed them. Neither do the
 * packets of peers that continue for a moment because they do not know yet that a connection ended.
 */
static void watch_foreign(struct rxw_shard *s, uint64_t now)
{
	static const enum rxw_drop causes[] = {RXW_DROP_NO_CONNECTION, RXW_DROP_ADDRESS,
					       RXW_DROP_VERIFY};
	struct rxw_batch *b = s->rx.batch;
	uint64_t sum = 0, passed = now - b->foreign_at;
	bool many;

	for (unsigned i = 0; i < sizeof(causes) / sizeof(causes[0]); i++)
		sum += atomic_load_explicit(&s->stats.drops[causes[i]], memory_order_relaxed) +
		       atomic_load_explicit(&s->own.drops[causes[i]], memory_order_relaxed);
	many = b->foreign_at && sum - b->foreign > FOREIGN_MANY * (passed / RXW_MS) / 1000;
	b->foreign_looks = many ? b->foreign_looks + 1 : 0;
	if (b->foreign_looks >= FOREIGN_CHECKS &&
	    (!b->foreign_logged || now > b->foreign_logged + FOREIGN_LOG_EVERY)) {
		b->foreign_logged = now;
		rxw_log(s->ep->engine, RXW_LOG_WARNING,
			"%llu packets in %llu ms, and as many before, belong to no connection of "
			"this port or are forged. They were dropped. Either they are an attempt to "
			"guess connection ids, or peers do not know yet that this program was "
			"restarted.",
			(unsigned long long)(sum - b->foreign),
			(unsigned long long)(passed / RXW_MS));
	}
	b->foreign = sum;
	b->foreign_at = now;
}

/*
 * Scans the next `slots` slots, or fewer if many connections in them expired; *scanned: how many.
 * Returns the number of connections removed or settled.
 */
static unsigned reap_slots(struct rxw_shard *s, unsigned slots, uint64_t now, unsigned *scanned)
{
	struct rxw_connection *found[REAP_MAX];
	enum fate fate[REAP_MAX];
	unsigned n = 0, i;

	rxw_table_lock(s);
	for (i = 0; i < slots && n < REAP_MAX; i++) {
		unsigned at = s->rx.batch->reap_slot % rxw_conntable_chains(&s->table);
		struct rxw_pconn *p = rxw_conntable_chain(&s->table, at);

		for (; p && n < REAP_MAX; p = p->links.hash_next) {
			fate[n] = fate_of(rxw_conn_of(p), now);
			if (fate[n] == STAYS)
				continue;
			found[n] = rxw_conn_of(p);
			rxw_conn_ref(found[n++]);
		}
		if (p)
			break; /* the rest of this slot is scanned next time */
		s->rx.batch->reap_slot++;
	}
	rxw_table_unlock(s);
	for (unsigned k = 0; k < n; k++) {
		if (fate[k] == GOES)
			rxw_conn_remove(found[k]);
		else
			rxw_conn_settle(found[k]);
		rxw_conn_unref(found[k]);
	}
	*scanned = i;
	return n;
}

void rxw_shard_reap(struct rxw_shard *s, uint64_t now)
{
	struct rxw_batch *b = s->rx.batch;
	uint64_t passed = now > b->reap_at ? now - b->reap_at : 0, next;
	unsigned size, share, scanned, gone = 0;

	rxw_table_lock(s);
	size = rxw_conntable_chains(&s->table);
	rxw_table_unlock(s);
	if (passed > REAP_ROUND)
		passed = REAP_ROUND;
	share = (unsigned)((uint64_t)size * (passed / RXW_MS) / (REAP_ROUND / RXW_MS));
	if (share < REAP_SLOTS)
		share = size < REAP_SLOTS ? size : REAP_SLOTS;
	b->reap_at = now;
	for (; share && gone < REAP_MAX; share -= scanned)
		gone += reap_slots(s, share < REAP_SLOTS ? share : REAP_SLOTS, now, &scanned);
	/* Scan the next share later, or the rest of this one right after the next batch. */
	next = REAP_ROUND / ((size + REAP_SLOTS - 1) / REAP_SLOTS);
	if (next > WATCH_EVERY)
		next = WATCH_EVERY;
	if (gone >= REAP_MAX) {
		b->reap_at -= passed * share / size;
		next = 0;
		rxw_io_wake(s->sock); /* and do not sleep long before that */
	}
	s->rx.reaped_at =
		now + next - WATCH_EVERY; /* the receiver calls again a second after that */
	if (now < b->watched_at + WATCH_EVERY)
		return;
	b->watched_at = now;
	watch_foreign(s, now);
	if (!s->index) {
		rxw_peers_lock(s->ep);
		rxw_peer_reap(s->ep->peers.table, now);
		rxw_peers_unlock(s->ep);
	}
}
