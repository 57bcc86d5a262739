/* SPDX-License-Identifier: BSD-2-Clause */
/* Table of connections: by role, epoch, connection id and address (rx-protocol 2.3), by address. */
#include <string.h>

#include "base/hash.h"
#include "proto/connection.h"

#define FIRST_SIZE 64u
#define MOVE_SLOTS 2u /* with each insertion: all have moved before the table is full again */
/*
 * Connections of one cid (from different addresses): a stranger must not be able to make a chain
 * long.
 */
#define SAME_CID 32u

static struct rxw_pconn **array(unsigned size)
{
	return rxw_mem_get(NULL, size * sizeof(struct rxw_pconn *));
}

static void drop_array(struct rxw_pconn **slot, unsigned size)
{
	rxw_mem_give(NULL, slot, size * sizeof(*slot));
}

int rxw_conntable_init(struct rxw_conntable *t, const uint64_t key[2])
{
	memset(t, 0, sizeof(*t));
	t->slot = array(FIRST_SIZE);
	t->peer_slot = array(FIRST_SIZE);
	t->size = FIRST_SIZE;
	t->key[0] = key[0];
	t->key[1] = key[1];
	if (t->slot != NULL && t->peer_slot != NULL)
		return 0;
	rxw_conntable_fini(t);
	return -RXW_ENOMEM;
}

void rxw_conntable_fini(struct rxw_conntable *t)
{
	drop_array(t->slot, t->size);
	drop_array(t->peer_slot, t->size);
	drop_array(t->old_slot, t->old_size);
	drop_array(t->old_peer_slot, t->old_size);
	memset(t, 0, sizeof(*t));
}

/* The chain of this hash, wherever it is now. */
static struct rxw_pconn **head(const struct rxw_conntable *t, uint64_t hash,
			       struct rxw_pconn **slot, struct rxw_pconn **old_slot)
{
	if (t->old_size != 0 && (hash & (t->old_size - 1)) >= t->moved)
		return &old_slot[hash & (t->old_size - 1)];
	return &slot[hash & (t->size - 1)];
}

/* The cid alone: so that has_cid() finds it, too. It is drawn by the client, hence the key. */
static struct rxw_pconn **by_cid(const struct rxw_conntable *t, uint32_t cid)
{
	return head(t, rxw_hash_words(cid & ~3u, 0, t->key), t->slot, t->old_slot);
}

static struct rxw_pconn **by_peer(const struct rxw_conntable *t, const struct rxw_addr *peer)
{
	return head(t, rxw_addr_hash(peer, t->key, true), t->peer_slot, t->old_peer_slot);
}

/* The next old slot goes to where its connections are looked for from now on. */
static void move_slot(struct rxw_conntable *t)
{
	unsigned i = t->moved++;
	struct rxw_pconn *c, *next;

	for (c = t->old_slot[i]; c != NULL; c = next) {
		struct rxw_pconn **to = by_cid(t, c->cid);

		next = c->hash_next;
		c->hash_next = *to;
		*to = c;
	}
	t->old_slot[i] = NULL;
	for (c = t->old_peer_slot[i]; c != NULL; c = next) {
		struct rxw_pconn **to = by_peer(t, &c->path.peer);

		next = c->peer_chain;
		c->peer_chain = *to;
		*to = c;
	}
	t->old_peer_slot[i] = NULL;
	if (t->moved < t->old_size)
		return;
	drop_array(t->old_slot, t->old_size);
	drop_array(t->old_peer_slot, t->old_size);
	t->old_slot = t->old_peer_slot = NULL;
	t->old_size = 0;
}

static void grow(struct rxw_conntable *t)
{
	struct rxw_pconn **slot = array(2 * t->size), **peer_slot = array(2 * t->size);

	if (slot == NULL || peer_slot == NULL) {
		/* longer chains, no more */
		drop_array(slot, 2 * t->size);
		drop_array(peer_slot, 2 * t->size);
		return;
	}
	t->old_slot = t->slot;
	t->old_peer_slot = t->peer_slot;
	t->old_size = t->size;
	t->moved = 0;
	t->slot = slot;
	t->peer_slot = peer_slot;
	t->size *= 2;
}

static void join_peer(struct rxw_conntable *t, struct rxw_pconn *c)
{
	struct rxw_pconn **at = by_peer(t, &c->path.peer), *first = *at;

	while (first != NULL && !rxw_addr_equal(&first->path.peer, &c->path.peer))
		first = first->peer_chain;
	c->peer_prev = first;
	if (first == NULL) {
		c->peer_next = NULL;
		c->peer_chain = *at;
		*at = c;
		return;
	}
	c->peer_next = first->peer_next;
	if (c->peer_next != NULL)
		c->peer_next->peer_prev = c;
	first->peer_next = c;
}

static void leave_peer(struct rxw_conntable *t, struct rxw_pconn *c)
{
	struct rxw_pconn **at;

	if (c->peer_next != NULL)
		c->peer_next->peer_prev = c->peer_prev;
	if (c->peer_prev != NULL) {
		c->peer_prev->peer_next = c->peer_next;
	} else {
		/* The first: the next one of the address takes its place in the chain. */
		for (at = by_peer(t, &c->path.peer); *at != c; at = &(*at)->peer_chain)
			;
		*at = c->peer_chain;
		if (c->peer_next != NULL) {
			c->peer_next->peer_chain = c->peer_chain;
			*at = c->peer_next;
		}
	}
	c->peer_next = c->peer_prev = c->peer_chain = NULL;
}

int rxw_conntable_insert(struct rxw_conntable *t, struct rxw_pconn *c)
{
	struct rxw_pconn **to;
	unsigned same = 0;

	for (unsigned i = 0; i < MOVE_SLOTS && t->old_size != 0; i++)
		move_slot(t);
	if (t->count >= t->size && t->old_size == 0)
		grow(t);
	to = by_cid(t, c->cid);
	for (struct rxw_pconn *other = *to; other != NULL; other = other->hash_next)
		if (other->cid == c->cid && ++same >= SAME_CID)
			return -RXW_ELIMIT;
	c->hash_next = *to;
	*to = c;
	join_peer(t, c);
	t->count++;
	t->clients += c->client;
	return 0;
}

void rxw_conntable_remove(struct rxw_conntable *t, struct rxw_pconn *c)
{
	for (struct rxw_pconn **at = by_cid(t, c->cid); *at != NULL; at = &(*at)->hash_next)
		if (*at == c) {
			*at = c->hash_next;
			c->hash_next = NULL;
			leave_peer(t, c);
			t->count--;
			t->clients -= c->client;
			return;
		}
}

struct rxw_pconn *rxw_conntable_of_peer(const struct rxw_conntable *t, const struct rxw_addr *peer)
{
	struct rxw_pconn *c = *by_peer(t, peer);

	while (c != NULL && !rxw_addr_equal(&c->path.peer, peer))
		c = c->peer_chain;
	return c;
}

struct rxw_pconn *rxw_conntable_find(const struct rxw_conntable *t, bool client, uint32_t epoch,
				     uint32_t cid, const struct rxw_addr *from,
				     struct rxw_pconn **other)
{
	if (other != NULL)
		*other = NULL;
	cid &= ~3u;
	for (struct rxw_pconn *c = *by_cid(t, cid); c != NULL;
	     c = c->hash_next) {
		if (c->cid != cid || c->epoch != epoch || c->client != client)
			continue;
		if (client ? rxw_addr_port(&c->path.peer) == rxw_addr_port(from)
			   : rxw_addr_equal(&c->path.peer, from))
			return c;
		if (other != NULL && *other == NULL)
			*other = c;
	}
	return NULL;
}

bool rxw_conntable_has_cid(const struct rxw_conntable *t, uint32_t cid)
{
	cid &= ~3u;
	for (struct rxw_pconn *c = *by_cid(t, cid); c != NULL;
	     c = c->hash_next)
		if (c->cid == cid)
			return true;
	return false;
}
