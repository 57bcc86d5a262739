/* SPDX-License-Identifier: BSD-2-Clause */
/* To whom a run of packets belongs: finding connections, making new ones, refusing strangers
 * (rx-protocol 1.8, 12.3). */
#include <stdlib.h>
#include <string.h>

#include "engine/batch.h"
#include "engine/lock.h"

#define REAP_IDLE     (600 * RXW_SEC)
#define REAP_UNPROVEN (15 * RXW_SEC)
#define REAP_ROUND    (15 * RXW_SEC) /* each connection is looked at once in that time */
#define REAP_LOOK     256	     /* slots looked at under one lock */
#define REAP_AT_ONCE  64
#define STRANGERS_AT_ONCE 512
#define WATCH_EVERY   RXW_SEC
#define FOREIGN_MANY 100 /* packets a second that fit nothing: somebody is guessing */
#define FOREIGN_TELL (60 * RXW_SEC)
#define EVICT_LOOK    16 /* strangers looked at for one that makes room */

static struct rxw_connection *drop(struct rxw_shard *s, enum rxw_drop cause)
{
	rxw_count(&s->stats.drops[cause], 1);
	return NULL;
}

/* An ABORT without state, within the rate limit. Only DATA draws it. */
static struct rxw_connection *refuse(struct rxw_shard *s, const struct rxw_rxrun *run, int32_t code,
				     enum rxw_drop cause, struct rxw_actions *a)
{
	struct rxw_endpoint *ep = s->ep;
	bool allowed;

	rxw_count(&s->stats.drops[cause], 1);
	if (a->out.ctl_count >= a->out.ctl_room)
		return NULL;
	rxw_strangers_lock(ep);
	allowed = rxw_rate_take(&ep->abort_rate, a->out.now);
	rxw_strangers_unlock(ep);
	if (!allowed)
		return drop(s, RXW_DROP_RATE);
	struct rxw_ctl *ctl = &a->out.ctl[a->out.ctl_count++];

	ctl->path = *run->path;
	ctl->padding = 0;
	ctl->client = false;
	ctl->length = (uint16_t)rxw_stateless_abort_put(ctl->bytes, &run->head, code);
	rxw_count(&s->stats.stateless_aborts, 1);
	rxw_count(&s->stats.packets_sent[RXW_ABORT], 1);
	return NULL;
}

static struct rxw_service *find_service(struct rxw_endpoint *ep, uint16_t id)
{
	unsigned n = atomic_load_explicit(&ep->service_count, memory_order_acquire);

	for (unsigned i = 0; i < n; i++)
		if (ep->service[i].id == id)
			return &ep->service[i];
	return NULL;
}

static struct rxw_security *find_security(struct rxw_service *service, uint8_t index)
{
	for (size_t i = 0; i < service->security_count; i++)
		if (service->security[i]->ops->index == index)
			return service->security[i];
	return NULL;
}

static struct rxw_connection *insert(struct rxw_shard *t, struct rxw_connection *c)
{
	struct rxw_pconn *there;

	rxw_table_lock(t);
	/* Another shard may have made the same connection from the packet before this one. */
	there = rxw_conntable_find(&t->table, false, c->p.epoch, c->p.cid, &c->p.path.peer, NULL);
	if (there) {
		rxw_conn_ref(rxw_conn_of(there));
	} else if (!rxw_conntable_insert(&t->table, &c->p)) {
		c->in_table = true;
		rxw_conn_ref(c);
	}
	rxw_table_unlock(t);
	if (there) {
		rxw_conn_unref(c);
		return rxw_conn_of(there);
	}
	if (!c->in_table) {
		rxw_conn_unref(c);
		return drop(t, RXW_DROP_LIMIT);
	}
	return c;
}

static enum rxw_admission admit(struct rxw_endpoint *ep, const struct rxw_path *path, bool *pressed)
{
	bool here = rxw_from_here(path);
	enum rxw_admission r;

	rxw_strangers_lock(ep);
	r = rxw_strangers_add(ep->strangers, &path->peer, here);
	*pressed = rxw_strangers_pressed(ep->strangers) && !here;
	rxw_strangers_unlock(ep);
	return r;
}

/* One stranger of this address less. */
static void dismiss(struct rxw_endpoint *ep, const struct rxw_addr *peer)
{
	rxw_strangers_lock(ep);
	rxw_strangers_remove(ep->strangers, peer);
	rxw_strangers_unlock(ep);
}

/* Lock held: it counts among the strangers no longer. */
static void no_stranger(struct rxw_connection *c)
{
	c->stranger = false;
	dismiss(c->ep, &c->p.path.peer);
}

void rxw_stranger_look(struct rxw_connection *c, uint64_t now)
{
	if (c->stranger && rxw_peer_proven(c->p.peer, now))
		no_stranger(c);
}

/*
 * Lock held: a stranger's connection without a call at work; *heard: when it last said something.
 */
static bool may_go(const struct rxw_connection *c, uint64_t now, uint64_t *heard)
{
	for (unsigned i = 0; i < 4; i++) {
		const struct rxw_pcall *p = c->p.channel[i];

		if (p && p->state != RXW_CS_PRECALL && !rxw_pcall_done(p))
			return false;
	}
	*heard = c->p.last_heard;
	return c->stranger && !rxw_peer_proven(c->p.peer, now);
}

/* A stranger's connection was made: it is on the list until it is none any more. */
static void note_stranger(struct rxw_shard *s, struct rxw_connection *c)
{
	struct rxw_batch *b = s->batch;

	rxw_table_lock(s);
	if (b->strangers == b->stranger_room) {
		unsigned room = b->stranger_room ? 2 * b->stranger_room : 64;
		struct rxw_connection **list = realloc(b->stranger, room * sizeof(*list));

		if (list) {
			b->stranger = list;
			b->stranger_room = room;
		}
	}
	/* Without memory the walk over the table finds it. */
	if (b->strangers < b->stranger_room) {
		rxw_conn_ref(c);
		b->stranger[b->strangers++] = c;
	}
	rxw_table_unlock(s);
}

/* Shard's lock held: the reference is the caller's from now on. */
static struct rxw_connection *take_stranger(struct rxw_batch *b, unsigned at)
{
	struct rxw_connection *c = b->stranger[at];

	b->stranger[at] = b->stranger[--b->strangers];
	return c;
}

void rxw_shard_forget_strangers(struct rxw_shard *s)
{
	if (!s->batch)
		return;
	while (s->batch->strangers)
		rxw_conn_unref(take_stranger(s->batch, 0));
	free(s->batch->stranger);
	s->batch->stranger = NULL;
	s->batch->stranger_room = 0;
}

/*
 * The places of strangers are taken: of some the one that was silent longest goes. False: none of
 * those may.
 */
static bool evict_stranger(struct rxw_shard *s, uint64_t now)
{
	struct rxw_connection *victim = NULL;
	struct rxw_batch *b = s->batch;
	uint64_t oldest = UINT64_MAX, heard;
	struct rxw_actions a;
	unsigned at = 0;

	rxw_table_lock(s);
	for (unsigned n = 0; n < EVICT_LOOK && n < b->strangers; n++) {
		unsigned i = b->evict_at++ % b->strangers;
		struct rxw_connection *c = b->stranger[i];

		rxw_conn_lock(c);
		if (may_go(c, now, &heard) && heard < oldest) {
			oldest = heard;
			victim = c;
			at = i;
		}
		rxw_conn_unlock(c);
	}
	if (victim)
		take_stranger(b, at);
	rxw_table_unlock(s);
	if (!victim)
		return false;
	rxw_actions_init(&a, s, false);
	rxw_conn_lock(victim);
	if (victim->stranger)
		no_stranger(victim);
	rxw_pconn_fail(&victim->p, RXW_CALL_DEAD, RXW_ORIGIN_LOCAL, false, &a.out);
	rxw_actions_collect(&a, false);
	rxw_conn_unlock(victim);
	rxw_actions_run(&a);
	rxw_conn_remove(victim);
	rxw_conn_unref(victim);
	return true;
}

static struct rxw_connection *new_connection(struct rxw_shard *s, const struct rxw_rxrun *run,
					     struct rxw_actions *a)
{
	const struct rxw_header *h = &run->head;
	struct rxw_endpoint *ep = s->ep;
	struct rxw_security *security;
	struct rxw_service *service;
	struct rxw_connection *c;
	enum rxw_admission admission;
	struct rxw_path path = *run->path;
	bool pressed;
	int error;

	if (h->type != RXW_DATA)
		return drop(s, RXW_DROP_NO_CONNECTION);
	service = find_service(ep, h->service);
	if (!service)
		return refuse(s, run, RXW_INVALID_OPERATION, RXW_DROP_SERVICE, a);
	security = find_security(service, h->security);
	if (!security)
		return refuse(s, run, RXW_INVALID_OPERATION, RXW_DROP_SECURITY_INDEX, a);
	if (!h->call)
		return drop(s, RXW_DROP_CALL_NUMBER);
	if (!h->seq)
		return drop(s, RXW_DROP_SEQ_ZERO);
	if (h->seq > ep->params.window && h->seq > RXW_FIRST_FLIGHT)
		return drop(s, RXW_DROP_WINDOW);
	if (atomic_load(&ep->stopping))
		return refuse(s, run, RXW_RESTARTING, RXW_DROP_STATE, a);
	admission = admit(ep, &path, &pressed);
	if (admission == RXW_REFUSE && evict_stranger(s, a->out.now))
		admission = admit(ep, &path, &pressed);
	if (admission == RXW_REFUSE)
		return drop(s, RXW_DROP_LIMIT);
	c = rxw_conn_create(ep, &path, h->epoch, h->cid & ~3u, h->service, security, false,
			    s->index, &error);
	if (!c) {
		dismiss(ep, &path.peer);
		return drop(s, RXW_DROP_MEMORY);
	}
	c->stranger = !rxw_peer_proven(c->p.peer, a->out.now);
	if (c->stranger)
		note_stranger(s, c);
	else
		dismiss(ep, &path.peer);
	c->service = service;
	c->p.pressed = pressed;
	c->p.strict_reach = (service->flags & RXW_SERVICE_REACH) || admission == RXW_ADMIT_STRICT;
	if (service->idle_ms)
		c->p.idle = service->idle_ms * RXW_MS;
	return insert(&ep->shard[c->table], c);
}

/*
 * A known epoch and cid from another address: the call in progress must not run twice because a NAT
 * changed the port (2.3).
 */
static bool moved_address(struct rxw_pconn *other, const struct rxw_header *h)
{
	bool drop_it = false;

	if (!(h->epoch & 0x80000000u))
		return false;
	/* The port may have changed before: any of them may be the one whose call this is. */
	for (; other && !drop_it; other = other->hash_next) {
		struct rxw_connection *c = rxw_conn_of(other);

		if (other->cid != (h->cid & ~3u) || other->epoch != h->epoch || other->client)
			continue;
		rxw_conn_lock(c);
		drop_it = h->call <= other->number[h->cid & 3];
		rxw_conn_unlock(c);
	}
	return drop_it;
}

struct rxw_connection *rxw_find_connection(struct rxw_shard *s, const struct rxw_rxrun *run,
					   struct rxw_actions *a)
{
	const struct rxw_header *h = &run->head;
	bool server_half = h->flags & RXW_CLIENT_INITIATED;
	struct rxw_shard *t = &s->ep->shard[(h->cid >> 2) % s->ep->shard_count];
	struct rxw_pconn *other = NULL, *p;
	struct rxw_connection *c;
	bool moved = false;

	rxw_table_lock(t);
	p = rxw_conntable_find(&t->table, !server_half, h->epoch, h->cid & ~3u, &run->path->peer,
			       &other);
	if (p)
		rxw_conn_ref(rxw_conn_of(p));
	else if (server_half && other)
		moved = moved_address(other, h);
	rxw_table_unlock(t);
	if (moved)
		return drop(s, RXW_DROP_ADDRESS);
	if (!p)
		return server_half ? new_connection(s, run, a) : drop(s, RXW_DROP_NO_CONNECTION);
	c = rxw_conn_of(p);
	if (t != s)
		rxw_count(&s->wrong_shard, 1);
	if (atomic_load_explicit(&c->home, memory_order_relaxed) != s->index)
		atomic_store_explicit(&c->home, s->index, memory_order_relaxed);
	return c;
}

/* True: the connection has served its time. */
static bool served_its_time(struct rxw_connection *c, uint64_t now)
{
	bool gone = false;

	rxw_conn_lock(c);
	if (!c->p.client) {
		rxw_stranger_look(c, now);
		if (rxw_pconn_idle(&c->p)) {
			uint64_t last =
				c->p.last_heard > c->p.last_sent ? c->p.last_heard : c->p.last_sent;

			gone = now > last + (c->stranger ? REAP_UNPROVEN : REAP_IDLE);
		}
	}
	rxw_conn_unlock(c);
	return gone;
}

/*
 * All strangers that are known, some under one lock: those that proved their address leave the
 * list, those that were silent for long leave altogether. False: it took too long, the rest comes
 * after the next batch.
 */
static bool reap_strangers(struct rxw_shard *s, uint64_t now)
{
	struct rxw_connection *left[REAP_AT_ONCE];
	struct rxw_batch *b = s->batch;
	bool gone[REAP_AT_ONCE], more = true;
	unsigned sum = 0;

	for (unsigned i = 0; more && sum < STRANGERS_AT_ONCE;) {
		unsigned n = 0, end = i + REAP_LOOK;

		rxw_table_lock(s);
		while (i < end && i < b->strangers && n < REAP_AT_ONCE) {
			struct rxw_connection *c = b->stranger[i];
			bool stays;

			gone[n] = served_its_time(c, now);
			rxw_conn_lock(c);
			stays = c->stranger && !gone[n];
			rxw_conn_unlock(c);
			if (stays)
				i++;
			else
				left[n++] = take_stranger(b, i);
		}
		more = i < b->strangers;
		rxw_table_unlock(s);
		for (unsigned k = 0; k < n; k++) {
			if (gone[k])
				rxw_conn_remove(left[k]);
			rxw_conn_unref(left[k]);
		}
		sum += n;
	}
	return !more;
}

/* Many packets that fit no connection or call: told, once in a while (12.3). */
static void watch_foreign(struct rxw_shard *s, uint64_t now)
{
	static const enum rxw_drop causes[] = { RXW_DROP_NO_CONNECTION, RXW_DROP_SECURITY_INDEX,
						RXW_DROP_SERVICE,	RXW_DROP_ADDRESS,
						RXW_DROP_CALL_NUMBER,	RXW_DROP_BAD_ACK,
						RXW_DROP_VERIFY };
	struct rxw_batch *b = s->batch;
	uint64_t sum = 0, passed = now - b->foreign_at;

	for (unsigned i = 0; i < sizeof(causes) / sizeof(causes[0]); i++)
		sum += atomic_load_explicit(&s->stats.drops[causes[i]], memory_order_relaxed);
	if (b->foreign_at && sum - b->foreign > FOREIGN_MANY * (passed / RXW_MS) / 1000 &&
	    (!b->foreign_told || now > b->foreign_told + FOREIGN_TELL)) {
		b->foreign_told = now;
		rxw_log(s->ep->engine, RXW_LOG_WARNING,
			"%llu packets in %llu ms fit no connection or call: does somebody guess?",
			(unsigned long long)(sum - b->foreign),
			(unsigned long long)(passed / RXW_MS));
	}
	b->foreign = sum;
	b->foreign_at = now;
}

/*
 * The next `slots` slots, or fewer if many in them are through: *looked says how many were done.
 * Returns how many were forgotten.
 */
static unsigned reap_slots(struct rxw_shard *s, unsigned slots, uint64_t now, unsigned *looked)
{
	struct rxw_connection *victim[REAP_AT_ONCE];
	unsigned n = 0, i;

	rxw_table_lock(s);
	for (i = 0; i < slots && n < REAP_AT_ONCE; i++) {
		unsigned at = s->batch->reap_slot % rxw_conntable_chains(&s->table);
		struct rxw_pconn *p = rxw_conntable_chain(&s->table, at);

		for (; p && n < REAP_AT_ONCE; p = p->hash_next)
			if (served_its_time(rxw_conn_of(p), now)) {
				victim[n] = rxw_conn_of(p);
				rxw_conn_ref(victim[n++]);
			}
		if (p)
			break; /* the rest of this slot comes next time */
		s->batch->reap_slot++;
	}
	rxw_table_unlock(s);
	for (unsigned k = 0; k < n; k++) {
		rxw_conn_remove(victim[k]);
		rxw_conn_unref(victim[k]);
	}
	*looked = i;
	return n;
}

void rxw_shard_reap(struct rxw_shard *s, uint64_t now)
{
	struct rxw_batch *b = s->batch;
	uint64_t passed = now > b->reap_at ? now - b->reap_at : 0, next;
	unsigned size, share, looked, gone = 0;

	rxw_table_lock(s);
	size = rxw_conntable_chains(&s->table);
	rxw_table_unlock(s);
	if (passed > REAP_ROUND)
		passed = REAP_ROUND;
	share = (unsigned)((uint64_t)size * (passed / RXW_MS) / (REAP_ROUND / RXW_MS));
	if (share < REAP_LOOK)
		share = size < REAP_LOOK ? size : REAP_LOOK;
	b->reap_at = now;
	for (; share && gone < REAP_AT_ONCE; share -= looked)
		gone += reap_slots(s, share < REAP_LOOK ? share : REAP_LOOK, now, &looked);
	/* The share of one look, or what is left over right after the next batch. */
	next = REAP_ROUND / ((size + REAP_LOOK - 1) / REAP_LOOK);
	if (next > WATCH_EVERY)
		next = WATCH_EVERY;
	if (gone >= REAP_AT_ONCE) {
		b->reap_at -= passed * share / size;
		next = 0;
		rxw_io_wake(s->sock); /* nor may it sleep for long then */
	}
	s->reaped_at = now + next - WATCH_EVERY; /* wanted again a second after that */
	if (now < b->watched_at + WATCH_EVERY)
		return;
	if (!reap_strangers(s, now)) {
		s->reaped_at = now - WATCH_EVERY;
		rxw_io_wake(s->sock);
		return;
	}
	b->watched_at = now;
	watch_foreign(s, now);
	if (!s->index) {
		rxw_peers_lock(s->ep);
		rxw_peer_reap(s->ep->peers, now);
		rxw_peers_unlock(s->ep);
	}
}
