/* SPDX-License-Identifier: BSD-2-Clause */
/* Limits on connections of unvalidated addresses (rx-protocol 12.3). */
#include "proto/peer/peer.h"
#include "proto/peer/table.h"

#define EXPECTED 65536u /* hosts for which there is room at the start */

struct host {
	void *next;
	struct rxw_addr addr;
	unsigned count;
};

struct rxw_unvalidated {
	struct htable hosts; /* by address, without the port */
	unsigned per_host, cap, total;
};

static uint64_t hash_host(const void *host, const uint64_t key[2])
{
	return rxw_addr_hash(&((const struct host *)host)->addr, key, false);
}

static void drop_host(void *host)
{
	rxw_mem_give(NULL, host, sizeof(struct host));
}

struct rxw_unvalidated *rxw_unvalidated_create(const uint64_t key[2], unsigned per_host,
					       unsigned total)
{
	struct rxw_unvalidated *s = rxw_mem_get(NULL, sizeof(*s));

	if (s == NULL)
		return NULL;
	if (!htable_init(&s->hosts, offsetof(struct host, next), hash_host, key,
			 total < EXPECTED ? total : EXPECTED)) {
		rxw_mem_give(NULL, s, sizeof(*s));
		return NULL;
	}
	s->per_host = per_host;
	s->cap = total;
	return s;
}

void rxw_unvalidated_destroy(struct rxw_unvalidated *s)
{
	if (s == NULL)
		return;
	htable_fini(&s->hosts, drop_host);
	rxw_mem_give(NULL, s, sizeof(*s));
}

/* The link to the host, or to NULL. */
static void **find(const struct rxw_unvalidated *s, const struct rxw_addr *addr, uint64_t hash)
{
	void **at = htable_head(&s->hosts, hash);

	while (*at != NULL && !rxw_addr_same_host(&((struct host *)*at)->addr, addr))
		at = htable_link(&s->hosts, *at);
	return at;
}

enum rxw_admission rxw_unvalidated_add(struct rxw_unvalidated *s, const struct rxw_addr *addr,
				       bool local)
{
	uint64_t hash;
	struct host *h;

	/*
	 * Programs of this host may still connect when others have filled the table, up to a limit.
	 */
	if (s->total >= (local ? 2 * s->cap : s->cap))
		return RXW_REFUSE;
	hash = rxw_addr_hash(addr, s->hosts.key, false);
	h = *find(s, addr, hash);
	if (h == NULL) {
		h = rxw_mem_get(NULL, sizeof(*h));
		if (h == NULL)
			return RXW_REFUSE;
		h->addr = *addr;
		htable_add_hashed(&s->hosts, h, hash);
	}
	h->count++;
	s->total++;
	if (!local && (h->count > s->per_host || s->total > s->cap / 2))
		return RXW_ADMIT_STRICT;
	return RXW_ADMIT;
}

void rxw_unvalidated_remove(struct rxw_unvalidated *s, const struct rxw_addr *addr)
{
	void **at = find(s, addr, rxw_addr_hash(addr, s->hosts.key, false));
	struct host *h = *at;

	if (h == NULL)
		return;
	s->total--;
	if (--h->count == 0) {
		htable_unlink(&s->hosts, at);
		drop_host(h);
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
