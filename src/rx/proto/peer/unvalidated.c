/* SPDX-License-Identifier: BSD-2-Clause */
/* Limits on connections of unvalidated addresses (rx-protocol 12.3). */
#include "proto/peer/peer.h"

struct host {
	struct host *next;
	struct rxw_addr addr;
	unsigned count;
};

struct rxw_unvalidated {
	struct host **slot;
	unsigned size, per_host, cap, total;
	uint64_t key[2];
};

struct rxw_unvalidated *rxw_unvalidated_create(const uint64_t key[2], unsigned per_host,
					       unsigned total)
{
	struct rxw_unvalidated *s = rxw_mem_get(NULL, sizeof(*s));

	if (s == NULL)
		return NULL;
	for (s->size = 64; s->size < total && s->size < 1u << 16; s->size *= 2)
		;
	s->slot = rxw_mem_get(NULL, s->size * sizeof(*s->slot));
	if (s->slot == NULL) {
		rxw_mem_give(NULL, s, sizeof(*s));
		return NULL;
	}
	s->per_host = per_host;
	s->cap = total;
	s->key[0] = key[0];
	s->key[1] = key[1];
	return s;
}

void rxw_unvalidated_destroy(struct rxw_unvalidated *s)
{
	if (s == NULL)
		return;
	for (unsigned i = 0; i < s->size; i++)
		for (struct host *h = s->slot[i], *next; h != NULL; h = next) {
			next = h->next;
			rxw_mem_give(NULL, h, sizeof(*h));
		}
	rxw_mem_give(NULL, s->slot, s->size * sizeof(*s->slot));
	rxw_mem_give(NULL, s, sizeof(*s));
}

static struct host **find(struct rxw_unvalidated *s, const struct rxw_addr *addr)
{
	struct host **at = &s->slot[rxw_addr_hash(addr, s->key, false) & (s->size - 1)];

	while (*at != NULL && !rxw_addr_same_host(&(*at)->addr, addr))
		at = &(*at)->next;
	return at;
}

enum rxw_admission rxw_unvalidated_add(struct rxw_unvalidated *s, const struct rxw_addr *addr,
				       bool local)
{
	struct host **at, *h;

	/*
	 * Programs of this host may still connect when others have filled the table, up to a limit.
	 */
	if (s->total >= (local ? 2 * s->cap : s->cap))
		return RXW_REFUSE;
	at = find(s, addr);
	h = *at;
	if (h == NULL) {
		h = rxw_mem_get(NULL, sizeof(*h));
		if (h == NULL)
			return RXW_REFUSE;
		h->addr = *addr;
		*at = h;
	}
	h->count++;
	s->total++;
	if (!local && (h->count > s->per_host || s->total > s->cap / 2))
		return RXW_ADMIT_STRICT;
	return RXW_ADMIT;
}

void rxw_unvalidated_remove(struct rxw_unvalidated *s, const struct rxw_addr *addr)
{
	struct host **at = find(s, addr), *h = *at;

	if (h == NULL)
		return;
	s->total--;
	if (--h->count == 0) {
		*at = h->next;
		rxw_mem_give(NULL, h, sizeof(*h));
	}
}

unsigned rxw_unvalidated_total(const struct rxw_unvalidated *s)
{
	return s->total;
}

bool rxw_unvalidated_crowded(const struct rxw_unvalidated *s)
{
	return s->total > s->cap / 4;
}
