/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Table of connections: by role, epoch, connection id and address (rx-protocol 2.3), by address.
 * It does not use common/htable.h because the marks of its chains save a cache miss for each packet
 * with an unknown id.
 */
#include <string.h>

#include "base/assert.h"
#include "base/hash.h"
#include "proto/conn/conn.h"

#define FIRST_SIZE 64u
#define MOVE_SLOTS 2u /* per insertion: all are moved before the table is full again */
/*
 * Most connections of one cid, from different addresses: forged packets must not make long chains.
 */
#define SAME_CID 32u

static struct rxw_pconn **slot_array(unsigned size)
{
	return rxw_mem_get(NULL, size * sizeof(struct rxw_pconn *));
}

static uint16_t *mark_array(unsigned size)
{
	return rxw_mem_get(NULL, size * sizeof(uint16_t));
}

static void drop_arrays(struct rxw_pconn **slot, uint16_t *mark, struct rxw_pconn **peer_slot,
			unsigned size)
{
	rxw_mem_give(NULL, slot, size * sizeof(*slot));
	rxw_mem_give(NULL, mark, size * sizeof(*mark));
	rxw_mem_give(NULL, peer_slot, size * sizeof(*peer_slot));
}

int rxw_conntable_init(struct rxw_conntable *t, const uint64_t key[2])
{
	memset(t, 0, sizeof(*t));
	t->slot = slot_array(FIRST_SIZE);
	t->mark = mark_array(FIRST_SIZE);
	t->peer_slot = slot_array(FIRST_SIZE);
	t->size = FIRST_SIZE;
	t->key[0] = key[0];
	t->key[1] = key[1];
	if (t->slot != NULL && t->mark != NULL && t->peer_slot != NULL)
		return 0;
	rxw_conntable_fini(t);
	return -RXW_ENOMEM;
}

void rxw_conntable_fini(struct rxw_conntable *t)
{
	drop_arrays(t->slot, t->mark, t->peer_slot, t->size);
	drop_arrays(t->old_slot, t->old_mark, t->old_peer_slot, t->old_size);
	memset(t, 0, sizeof(*t));
}

/* Is this hash still in the old arrays? */
static bool in_old(const struct rxw_conntable *t, uint64_t hash)
{
	return t->old_size != 0 && (hash & (t->old_size - 1)) >= t->moved;
}

/* The chain of a cid, and its marks. */
struct chain {
	struct rxw_pconn **slot;
	uint16_t *mark;
	uint16_t own; /* the mark of this cid */
};

/* From bits that do not choose the slot. */
static uint16_t mark_of_cid(uint64_t hash)
{
	return (uint16_t)(1u << (hash >> 60));
}

/* By the cid alone, for has_cid(). The hash is keyed because the client chooses the cid. */
static struct chain by_cid(const struct rxw_conntable *t, uint32_t cid)
{
	uint64_t hash = rxw_hash_words(cid & ~3u, 0, t->key), i;

	if (in_old(t, hash)) {
		i = hash & (t->old_size - 1);
		return (struct chain){&t->old_slot[i], &t->old_mark[i], mark_of_cid(hash)};
	}
	i = hash & (t->size - 1);
	return (struct chain){&t->slot[i], &t->mark[i], mark_of_cid(hash)};
}

/*
 * The first connection that may have this cid. A chain without its mark is not read: in a flood of
 * unknown ids that would be a cache miss for each.
 */
static struct rxw_pconn *first_of_cid(const struct rxw_conntable *t, uint32_t cid)
{
	struct chain to = by_cid(t, cid);

	return *to.mark & to.own ? *to.slot : NULL;
}

static void link_by_cid(struct rxw_conntable *t, struct rxw_pconn *c)
{
	struct chain to = by_cid(t, c->cid);

	c->links.hash_next = *to.slot;
	*to.slot = c;
	*to.mark |= to.own;
}

static struct rxw_pconn **by_peer(const struct rxw_conntable *t, const struct rxw_addr *peer)
{
	uint64_t hash = rxw_addr_hash(peer, t->key, true);

	return in_old(t, hash) ? &t->old_peer_slot[hash & (t->old_size - 1)]
			       : &t->peer_slot[hash & (t->size - 1)];
}

/* Move the connections of the next old slot to the new arrays. */
static void move_slot(struct rxw_conntable *t)
{
	unsigned i = t->moved++;
	struct rxw_pconn *c, *next;

	for (c = t->old_slot[i]; c != NULL; c = next) {
		next = c->links.hash_next;
		link_by_cid(t, c);
	}
	t->old_slot[i] = NULL;
	t->old_mark[i] = 0;
	for (c = t->old_peer_slot[i]; c != NULL; c = next) {
		struct rxw_pconn **to = by_peer(t, &rxw_pconn_path(c)->peer);

		next = c->links.peer_chain;
		c->links.peer_chain = *to;
		*to = c;
	}
	t->old_peer_slot[i] = NULL;
	if (t->moved < t->old_size)
		return;
	drop_arrays(t->old_slot, t->old_mark, t->old_peer_slot, t->old_size);
	t->old_slot = t->old_peer_slot = NULL;
	t->old_mark = NULL;
	t->old_size = 0;
}

static void grow_table(struct rxw_conntable *t)
{
	struct rxw_pconn **slot = slot_array(2 * t->size), **peer_slot = slot_array(2 * t->size);
	uint16_t *mark = mark_array(2 * t->size);

	assert((t->size & (t->size - 1)) == 0);
	if (slot == NULL || mark == NULL || peer_slot == NULL) {
		/* the chains get longer, that is all */
		drop_arrays(slot, mark, peer_slot, 2 * t->size);
		return;
	}
	t->old_slot = t->slot;
	t->old_mark = t->mark;
	t->old_peer_slot = t->peer_slot;
	t->old_size = t->size;
	t->moved = 0;
	t->slot = slot;
	t->mark = mark;
	t->peer_slot = peer_slot;
	t->size *= 2;
}

static void join_peer(struct rxw_conntable *t, struct rxw_pconn *c)
{
	struct rxw_pconn **at = by_peer(t, &rxw_pconn_path(c)->peer), *first = *at;

	while (first != NULL && !rxw_addr_equal(&rxw_pconn_path(first)->peer, &rxw_pconn_path(c)->peer))
		first = first->links.peer_chain;
	c->links.peer_prev = first;
	if (first == NULL) {
		c->links.peer_next = NULL;
		c->links.peer_chain = *at;
		*at = c;
		return;
	}
	c->links.peer_next = first->links.peer_next;
	if (c->links.peer_next != NULL)
		c->links.peer_next->links.peer_prev = c;
	first->links.peer_next = c;
}

static void leave_peer(struct rxw_conntable *t, struct rxw_pconn *c)
{
	struct rxw_pconn **at;

	if (c->links.peer_next != NULL)
		c->links.peer_next->links.peer_prev = c->links.peer_prev;
	if (c->links.peer_prev != NULL) {
		c->links.peer_prev->links.peer_next = c->links.peer_next;
	} else {
		/* It was the first: the next one of the address replaces it in the chain. */
		for (at = by_peer(t, &rxw_pconn_path(c)->peer); *at != c; at = &(*at)->links.peer_chain)
			;
		*at = c->links.peer_chain;
		if (c->links.peer_next != NULL) {
			c->links.peer_next->links.peer_chain = c->links.peer_chain;
			*at = c->links.peer_next;
		}
	}
	c->links.peer_next = c->links.peer_prev = c->links.peer_chain = NULL;
}

int rxw_conntable_insert(struct rxw_conntable *t, struct rxw_pconn *c)
{
	unsigned same = 0;

	for (unsigned i = 0; i < MOVE_SLOTS && t->old_size != 0; i++)
		move_slot(t);
	if (t->count >= t->size && t->old_size == 0)
		grow_table(t);
	for (struct rxw_pconn *other = first_of_cid(t, c->cid); other != NULL;
	     other = other->links.hash_next)
		if (other->cid == c->cid && ++same >= SAME_CID)
			return -RXW_ELIMIT;
	link_by_cid(t, c);
	join_peer(t, c);
	t->count++;
	t->clients += c->client;
	return 0;
}

void rxw_conntable_remove(struct rxw_conntable *t, struct rxw_pconn *c)
{
	struct chain of = by_cid(t, c->cid);
	struct rxw_pconn **at = of.slot;

	while (*at != NULL && *at != c)
		at = &(*at)->links.hash_next;
	if (*at == NULL)
		return;
	*at = c->links.hash_next;
	c->links.hash_next = NULL;
	*of.mark = 0;
	for (struct rxw_pconn *p = *of.slot; p != NULL; p = p->links.hash_next)
		*of.mark |= mark_of_cid(rxw_hash_words(p->cid & ~3u, 0, t->key));
	leave_peer(t, c);
	assert(t->count > 0);
	t->count--;
	t->clients -= c->client;
}

struct rxw_pconn *rxw_conntable_of_peer(const struct rxw_conntable *t, const struct rxw_addr *peer)
{
	struct rxw_pconn *c = *by_peer(t, peer);

	while (c != NULL && !rxw_addr_equal(&rxw_pconn_path(c)->peer, peer))
		c = c->links.peer_chain;
	return c;
}

struct rxw_pconn *rxw_conntable_find(const struct rxw_conntable *t, bool client, uint32_t epoch,
				     uint32_t cid, const struct rxw_addr *from,
				     struct rxw_pconn **other)
{
	if (other != NULL)
		*other = NULL;
	cid &= ~3u;
	for (struct rxw_pconn *c = first_of_cid(t, cid); c != NULL; c = c->links.hash_next) {
		if (c->cid != cid || c->epoch != epoch || c->client != client)
			continue;
		if (client ? rxw_addr_port(&rxw_pconn_path(c)->peer) == rxw_addr_port(from)
			   : rxw_addr_equal(&rxw_pconn_path(c)->peer, from))
			return c;
		if (other != NULL && *other == NULL)
			*other = c;
	}
	return NULL;
}

bool rxw_conntable_has_cid(const struct rxw_conntable *t, uint32_t cid)
{
	cid &= ~3u;
	for (struct rxw_pconn *c = first_of_cid(t, cid); c != NULL; c = c->links.hash_next)
		if (c->cid == cid)
			return true;
	return false;
}
