/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections of strangers, whose address is not proven: few, not for long (rx-protocol 12.3). */
#include "engine/conn/conn.h"
#include "engine/dispatch/dispatch.h"
#include "engine/lock.h"
#include "engine/objects.h"

#define LIFE	   (15 * RXW_SEC) /* of a connection that says nothing */
#define LOOK_AGAIN RXW_SEC	  /* one with a call at work */
#define QUESTION   128		  /* bytes of one with its IP and UDP headers, at most */
#define AT_ONCE	   64		  /* looked at under one lock */
#define IN_ALL	   256		  /* looked at before packets get their turn */
#define EVICT_LOOK 64		  /* looked at for one that makes room; if none may, ... */
#define EVICT_REST RXW_MS	  /* ... none is looked for so long */
#define EVICT_RATE 500	/* a second, of all shards: others prove themselves without a place ... */
#define EVICT_MANY 1000 /* ... and so many at once where none went for a while */

enum rxw_admission rxw_unproven_admit(struct rxw_endpoint *ep, const struct rxw_path *path,
				      bool *pressed)
{
	bool here = rxw_path_is_local(path);
	enum rxw_admission r;

	rxw_strangers_lock(ep);
	r = rxw_unvalidated_add(ep->strangers, &path->peer, here);
	*pressed = rxw_unvalidated_crowded(ep->strangers) && !here;
	rxw_strangers_unlock(ep);
	return r;
}

void rxw_unproven_dismiss(struct rxw_endpoint *ep, const struct rxw_addr *peer)
{
	rxw_strangers_lock(ep);
	rxw_unvalidated_remove(ep->strangers, peer);
	rxw_strangers_unlock(ep);
}

/* Lock held: it counts among the strangers no longer. */
static void no_stranger(struct rxw_connection *c)
{
	c->admit.unvalidated = false;
	rxw_unproven_dismiss(c->ep, &c->p.path.peer);
}

void rxw_stranger_look(struct rxw_connection *c, uint64_t now)
{
	if (c->admit.unvalidated && rxw_peer_validated(c->p.peer, now)) {
		no_stranger(c);
		rxw_count_validated(c);
	}
}

bool rxw_stranger_watch(struct rxw_connection *c, const struct rxw_rxrun *run, uint64_t now)
{
	const struct rxw_header *h = &run->head;

	if (rxw_path_is_local(&c->p.path) || rxw_peer_validated(c->p.peer, now))
		return false;
	if (h->type == RXW_DATA)
		return h->call > 1 && h->call > c->p.number[h->cid & 3] &&
		       rxw_peer_allowance(c->p.peer, now) >= QUESTION;
	if (h->type == RXW_ACK && rxw_stranger_answered(c->ep, &c->p.path.peer, run, now)) {
		rxw_count(&rxw_home(c)->stats.strangers_proved, 1);
		rxw_peer_set_validated(c->p.peer, now);
	}
	return false;
}

void rxw_stranger_meet(struct rxw_shard *s, struct rxw_connection *c, const struct rxw_rxrun *run,
		       struct rxw_effects *a)
{
	unsigned before = a->out.ctl_count;

	rxw_stranger_ask(s, run, a);
	if (a->out.ctl_count > before)
		rxw_peer_may_send(c->p.peer, a->out.ctl[before].length, 1, a->out.now);
}

/* Shard's lock held, and the reference given: it is looked at in the second that follows `at`. */
static void put(struct rxw_shard_admit *b, struct rxw_connection *c, uint64_t at)
{
	struct rxw_unvalidated_list *slot;
	uint64_t second = at / RXW_SEC + 1;

	if (second <= b->second)
		second = b->second + 1;
	slot = &b->slot[second % RXW_UNVALIDATED_SLOTS];
	c->admit.next = NULL;
	if (slot->head)
		slot->tail->admit.next = c;
	else
		slot->head = c;
	slot->tail = c;
	b->count++;
}

/* Shard's lock held: the first of a list that has one; the reference is the caller's from now on. */
static struct rxw_connection *take(struct rxw_shard_admit *b, struct rxw_unvalidated_list *list)
{
	struct rxw_connection *c = list->head;

	list->head = c->admit.next;
	c->admit.next = NULL;
	b->count--;
	return c;
}

void rxw_unproven_note(struct rxw_shard *s, struct rxw_connection *c, uint64_t now)
{
	rxw_count(&s->stats.strangers, 1);
	rxw_conn_ref(c);
	rxw_table_lock(s);
	put(&s->admit, c, now + LIFE);
	rxw_table_unlock(s);
}

void rxw_shard_forget_strangers(struct rxw_shard *s)
{
	struct rxw_shard_admit *b = &s->admit;

	while (b->due.head)
		rxw_conn_unref(take(b, &b->due));
	for (unsigned i = 0; i < RXW_UNVALIDATED_SLOTS; i++)
		while (b->slot[i].head)
			rxw_conn_unref(take(b, &b->slot[i]));
}

/* Lock held: a stranger's connection without a call at work. */
static bool may_go(const struct rxw_connection *c, uint64_t now)
{
	for (unsigned i = 0; i < 4; i++) {
		const struct rxw_pcall *p = c->p.channel[i];

		if (p && p->state != RXW_CS_PRECALL && !rxw_pcall_done(p))
			return false;
	}
	return c->admit.unvalidated && !rxw_peer_validated(c->p.peer, now);
}

/* Shard's lock held: that which stands before all others, or NULL. */
static struct rxw_connection *take_first(struct rxw_shard_admit *b)
{
	if (b->due.head)
		return take(b, &b->due);
	for (unsigned i = 1; i <= RXW_UNVALIDATED_SLOTS; i++) {
		struct rxw_unvalidated_list *l = &b->slot[(b->second + i) % RXW_UNVALIDATED_SLOTS];

		if (l->head)
			return take(b, l);
	}
	return NULL;
}

/*
 * Shard's lock held. The lists are in the order in which their connections were made or last found
 * to live, so the first that may go is the one. Those with calls at work go to the end: a flood must
 * not look at them for each of its packets. Nor does each packet of a flood push one out: who is
 * admitted must have the time to answer a question, and a packet that is dropped costs little.
 */
static struct rxw_connection *find_victim(struct rxw_shard *s, uint64_t now)
{
	uint64_t gap = RXW_SEC / EVICT_RATE * s->ep->shard_count;
	struct rxw_shard_admit *b = &s->admit;
	uint64_t looked_at = b->second * RXW_SEC, last = (now > looked_at ? now : looked_at) + LIFE;

	if (now < b->evict_at)
		return NULL;
	for (unsigned looked = 0; looked < EVICT_LOOK; looked++) {
		struct rxw_connection *c = take_first(b);
		bool may;

		if (!c)
			break;
		rxw_conn_lock(c);
		may = may_go(c, now);
		rxw_conn_unlock(c);
		if (may) {
			if (b->evict_at + EVICT_MANY * gap < now)
				b->evict_at = now - EVICT_MANY * gap;
			b->evict_at += gap;
			return c;
		}
		put(b, c, last);
	}
	b->evict_at = now + EVICT_REST;
	return NULL;
}

bool rxw_unproven_evict(struct rxw_shard *s, uint64_t now)
{
	struct rxw_connection *victim;
	struct rxw_effects a;

	rxw_table_lock(s);
	victim = find_victim(s, now);
	rxw_table_unlock(s);
	if (!victim)
		return false;
	rxw_effects_init(&a, s, false);
	rxw_conn_lock(victim);
	if (!may_go(victim, now)) {
		/* Another thread brought it a call, which must not run twice, or a proof. */
		rxw_conn_unlock(victim);
		rxw_table_lock(s);
		put(&s->admit, victim, now);
		rxw_table_unlock(s);
		return false;
	}
	rxw_count(&s->stats.strangers_evicted, 1);
	no_stranger(victim);
	/* Another thread may have found it just before: its packet is lost, and comes again. */
	victim->p.evicted = true;
	rxw_pconn_fail(&victim->p, RXW_CALL_DEAD, RXW_ORIGIN_LOCAL, false, &a.out);
	rxw_effects_collect(&a, false);
	rxw_conn_unlock(victim);
	rxw_dispatch(&a);
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
	if (c->admit.unvalidated) {
		again = rxw_pconn_idle(&c->p) ? rxw_last_activity(c) + LIFE : now + LOOK_AGAIN;
		*gone = now > again;
	}
	rxw_conn_unlock(c);
	return *gone ? 0 : again;
}

/* Shard's lock held: the next slot whose second has come. False: there is none. */
static bool next_due(struct rxw_shard_admit *b, uint64_t second)
{
	struct rxw_unvalidated_list *slot;

	if (b->second + RXW_UNVALIDATED_SLOTS < second)
		b->second = second - RXW_UNVALIDATED_SLOTS; /* all of them */
	if (b->second >= second)
		return false;
	slot = &b->slot[++b->second % RXW_UNVALIDATED_SLOTS];
	b->due = *slot;
	slot->head = NULL;
	return true;
}

/* Some of those that are due; *looked goes up by as many. False: there are no more. */
static bool reap_some(struct rxw_shard *s, uint64_t now, unsigned *looked)
{
	struct rxw_connection *left[AT_ONCE];
	struct rxw_shard_admit *b = &s->admit;
	unsigned n = 0;
	bool gone[AT_ONCE], more;

	rxw_table_lock(s);
	for (unsigned i = 0; b->due.head && i < AT_ONCE; i++, ++*looked) {
		struct rxw_connection *c = take(b, &b->due);
		uint64_t again = look_at(c, now, &gone[n]);

		if (again)
			put(b, c, again);
		else
			left[n++] = c;
	}
	more = b->due.head || next_due(b, now / RXW_SEC);
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
