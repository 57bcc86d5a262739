/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections of strangers, whose address is not proven: few, not for long (rx-protocol 12.3). */
#include "engine/batch.h"
#include "engine/lock.h"

#define LIFE	   (15 * RXW_SEC) /* of a connection that says nothing */
#define LOOK_AGAIN RXW_SEC	  /* one with a call at work */
#define AT_ONCE	   64		  /* looked at under one lock */
#define IN_ALL	   256		  /* looked at before packets get their turn */
#define EVICT_LOOK 128		  /* looked at for one that makes room ... */
#define EVICT_FEW  16		  /* ... or until so many could */
#define EVICT_LISTS (RXW_UNPROVEN_SLOTS + 1)

enum rxw_admission rxw_unproven_admit(struct rxw_endpoint *ep, const struct rxw_path *path,
				      bool *pressed)
{
	bool here = rxw_from_here(path);
	enum rxw_admission r;

	rxw_strangers_lock(ep);
	r = rxw_strangers_add(ep->strangers, &path->peer, here);
	*pressed = rxw_strangers_pressed(ep->strangers) && !here;
	rxw_strangers_unlock(ep);
	return r;
}

void rxw_unproven_dismiss(struct rxw_endpoint *ep, const struct rxw_addr *peer)
{
	rxw_strangers_lock(ep);
	rxw_strangers_remove(ep->strangers, peer);
	rxw_strangers_unlock(ep);
}

/* Lock held: it counts among the strangers no longer. */
static void no_stranger(struct rxw_connection *c)
{
	c->stranger = false;
	rxw_unproven_dismiss(c->ep, &c->p.path.peer);
}

void rxw_stranger_look(struct rxw_connection *c, uint64_t now)
{
	if (c->stranger && rxw_peer_proven(c->p.peer, now))
		no_stranger(c);
}

/* Shard's lock held, and the reference given: it is looked at in the second that follows `at`. */
static void put(struct rxw_batch *b, struct rxw_connection *c, uint64_t at)
{
	struct rxw_connection **slot;
	uint64_t second = at / RXW_SEC + 1;

	if (second <= b->unproven_at)
		second = b->unproven_at + 1;
	slot = &b->unproven[second % RXW_UNPROVEN_SLOTS];
	c->unproven_next = *slot;
	*slot = c;
	b->strangers++;
}

/* Shard's lock held: the reference is the caller's from now on. */
static struct rxw_connection *take(struct rxw_batch *b, struct rxw_connection **at)
{
	struct rxw_connection *c = *at;

	*at = c->unproven_next;
	c->unproven_next = NULL;
	b->strangers--;
	return c;
}

void rxw_unproven_note(struct rxw_shard *s, struct rxw_connection *c, uint64_t now)
{
	rxw_count(&s->stats.strangers, 1);
	rxw_conn_ref(c);
	rxw_table_lock(s);
	put(s->batch, c, now + LIFE);
	rxw_table_unlock(s);
}

void rxw_shard_forget_strangers(struct rxw_shard *s)
{
	struct rxw_batch *b = s->batch;

	if (!b)
		return;
	while (b->unproven_due)
		rxw_conn_unref(take(b, &b->unproven_due));
	for (unsigned i = 0; i < RXW_UNPROVEN_SLOTS; i++)
		while (b->unproven[i])
			rxw_conn_unref(take(b, &b->unproven[i]));
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

/*
 * Shard's lock held: of the first few that may go, from a list on, in the order of their seconds.
 */
static struct rxw_connection **look_through(struct rxw_batch *b, unsigned from, uint64_t now)
{
	struct rxw_connection **victim = NULL;
	uint64_t oldest = UINT64_MAX, heard;
	unsigned looked = 0, found = 0;

	for (unsigned i = 0; i < EVICT_LISTS; i++) {
		unsigned list = (from + i) % EVICT_LISTS;
		struct rxw_connection **at =
			list ? &b->unproven[(b->unproven_at + list) % RXW_UNPROVEN_SLOTS]
			     : &b->unproven_due;

		for (; *at && looked < EVICT_LOOK && found < EVICT_FEW;
		     at = &(*at)->unproven_next, looked++) {
			rxw_conn_lock(*at);
			if (may_go(*at, now, &heard)) {
				found++;
				if (heard < oldest) {
					oldest = heard;
					victim = at;
				}
			}
			rxw_conn_unlock(*at);
		}
	}
	return victim;
}

/*
 * Those with calls at work are looked at again each second, so that they stand first: where they
 * are many, the search goes on behind them, at another place each time.
 */
static struct rxw_connection *find_victim(struct rxw_batch *b, uint64_t now)
{
	struct rxw_connection **victim = look_through(b, 0, now);

	if (!victim)
		victim = look_through(b, ++b->evict_from % EVICT_LISTS, now);
	return victim ? take(b, victim) : NULL;
}

bool rxw_unproven_evict(struct rxw_shard *s, uint64_t now)
{
	struct rxw_connection *victim;
	struct rxw_actions a;
	uint64_t heard;

	rxw_table_lock(s);
	victim = find_victim(s->batch, now);
	rxw_table_unlock(s);
	if (!victim)
		return false;
	rxw_actions_init(&a, s, false);
	rxw_conn_lock(victim);
	if (!may_go(victim, now, &heard)) {
		/* Another thread brought it a call, which must not run twice, or a proof. */
		rxw_conn_unlock(victim);
		rxw_table_lock(s);
		put(s->batch, victim, now);
		rxw_table_unlock(s);
		return false;
	}
	rxw_count(&s->stats.strangers_evicted, 1);
	no_stranger(victim);
	/* Another thread may have found it just before: its packet is lost, and comes again. */
	victim->p.forgotten = true;
	rxw_pconn_fail(&victim->p, RXW_CALL_DEAD, RXW_ORIGIN_LOCAL, false, &a.out);
	rxw_actions_collect(&a, false);
	rxw_conn_unlock(victim);
	rxw_actions_run(&a);
	rxw_conn_remove(victim);
	rxw_conn_unref(victim);
	return true;
}

/* 0: it is no stranger's any more, or its time is over (*gone); else when to look again. */
static uint64_t look_at(struct rxw_connection *c, uint64_t now, bool *gone)
{
	uint64_t again = 0;

	*gone = false;
	rxw_conn_lock(c);
	rxw_stranger_look(c, now);
	if (c->stranger) {
		again = rxw_pconn_idle(&c->p) ? rxw_last_said(c) + LIFE : now + LOOK_AGAIN;
		*gone = now > again;
	}
	rxw_conn_unlock(c);
	return *gone ? 0 : again;
}

/* Shard's lock held: the next slot whose second has come. False: there is none. */
static bool next_due(struct rxw_batch *b, uint64_t second)
{
	struct rxw_connection **slot;

	if (b->unproven_at + RXW_UNPROVEN_SLOTS < second)
		b->unproven_at = second - RXW_UNPROVEN_SLOTS; /* all of them */
	if (b->unproven_at >= second)
		return false;
	slot = &b->unproven[++b->unproven_at % RXW_UNPROVEN_SLOTS];
	b->unproven_due = *slot;
	*slot = NULL;
	return true;
}

/* Some of those that are due; *looked goes up by as many. False: there are no more. */
static bool reap_some(struct rxw_shard *s, uint64_t now, unsigned *looked)
{
	struct rxw_connection *left[AT_ONCE];
	struct rxw_batch *b = s->batch;
	unsigned n = 0;
	bool gone[AT_ONCE], more;

	rxw_table_lock(s);
	for (unsigned i = 0; b->unproven_due && i < AT_ONCE; i++, ++*looked) {
		struct rxw_connection *c = take(b, &b->unproven_due);
		uint64_t again = look_at(c, now, &gone[n]);

		if (again)
			put(b, c, again);
		else
			left[n++] = c;
	}
	more = b->unproven_due || next_due(b, now / RXW_SEC);
	rxw_table_unlock(s);
	for (unsigned k = 0; k < n; k++) {
		if (gone[k])
			rxw_conn_remove(left[k]);
		rxw_conn_unref(left[k]);
	}
	return more;
}

bool rxw_unproven_reap(struct rxw_shard *s, uint64_t now)
{
	unsigned looked = 0;

	while (reap_some(s, now, &looked))
		if (looked >= IN_ALL)
			return false;
	return true;
}
