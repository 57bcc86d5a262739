/* SPDX-License-Identifier: BSD-2-Clause */
/* Table of connections by role, epoch, connection id and address (rx-protocol 2.3). */
#include "base/hash.h"
#include "proto/connection.h"

#define FIRST_SIZE 64u
/*
 * Connections of one cid (from different addresses): a stranger must not be able to make a chain
 * long.
 */
#define SAME_CID 32u

int rxw_conntable_init(struct rxw_conntable *t, const uint64_t key[2])
{
	t->slot = rxw_mem_get(NULL, FIRST_SIZE * sizeof(struct rxw_pconn *));
	if (t->slot == NULL)
		return -RXW_ENOMEM;
	t->size = FIRST_SIZE;
	t->count = 0;
	t->key[0] = key[0];
	t->key[1] = key[1];
	return 0;
}

void rxw_conntable_fini(struct rxw_conntable *t)
{
	rxw_mem_give(NULL, t->slot, t->size * sizeof(*t->slot));
	t->slot = NULL;
	t->size = t->count = 0;
}

/* The cid alone: so that has_cid() finds it, too. It is drawn by the client, hence the key. */
static struct rxw_pconn **head(struct rxw_pconn **slot, unsigned size, const uint64_t key[2],
			       uint32_t cid)
{
	return &slot[rxw_hash_words(cid & ~3u, 0, key) & (size - 1)];
}

static void grow(struct rxw_conntable *t)
{
	unsigned size = t->size * 2;
	struct rxw_pconn **slot = rxw_mem_get(NULL, size * sizeof(struct rxw_pconn *));

	if (slot == NULL)
		return; /* longer chains, no more */
	for (unsigned i = 0; i < t->size; i++)
		for (struct rxw_pconn *c = t->slot[i], *next; c != NULL; c = next) {
			struct rxw_pconn **to = head(slot, size, t->key, c->cid);

			next = c->hash_next;
			c->hash_next = *to;
			*to = c;
		}
	rxw_mem_give(NULL, t->slot, t->size * sizeof(*t->slot));
	t->slot = slot;
	t->size = size;
}

int rxw_conntable_insert(struct rxw_conntable *t, struct rxw_pconn *c)
{
	struct rxw_pconn **to;
	unsigned same = 0;

	if (t->count >= t->size)
		grow(t);
	to = head(t->slot, t->size, t->key, c->cid);
	for (struct rxw_pconn *other = *to; other != NULL; other = other->hash_next)
		if (other->cid == c->cid && ++same >= SAME_CID)
			return -RXW_ELIMIT;
	c->hash_next = *to;
	*to = c;
	t->count++;
	return 0;
}

void rxw_conntable_remove(struct rxw_conntable *t, struct rxw_pconn *c)
{
	for (struct rxw_pconn **at = head(t->slot, t->size, t->key, c->cid); *at != NULL;
	     at = &(*at)->hash_next)
		if (*at == c) {
			*at = c->hash_next;
			c->hash_next = NULL;
			t->count--;
			return;
		}
}

struct rxw_pconn *rxw_conntable_find(const struct rxw_conntable *t, bool client, uint32_t epoch,
				     uint32_t cid, const struct rxw_addr *from,
				     struct rxw_pconn **other)
{
	if (other != NULL)
		*other = NULL;
	cid &= ~3u;
	for (struct rxw_pconn *c = *head(t->slot, t->size, t->key, cid); c != NULL;
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
	for (struct rxw_pconn *c = *head(t->slot, t->size, t->key, cid); c != NULL;
	     c = c->hash_next)
		if (c->cid == cid)
			return true;
	return false;
}
