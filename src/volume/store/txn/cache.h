/* SPDX-License-Identifier: BSD-2-Clause */
/* The newest versions of vnodes, and those that clones show. */
#ifndef STORE_CACHE_H
#define STORE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "volume/store/db/record.h"

#define CACHE_HEAD UINT32_MAX /* the epoch of what a read-write volume shows */

struct cache_key {
	uint32_t group, epoch, vnode; /* epoch: of the clone, or CACHE_HEAD */
};

/* All functions: any thread. */
struct cache;

/* `bytes`: what is kept, about. NULL: no memory. */
struct cache *cache_create(size_t bytes);
void cache_destroy(struct cache *cache); /* NULL is allowed */
size_t cache_memory(struct cache *cache);
void cache_counts(struct cache *cache, uint64_t *hits, uint64_t *misses);

/* A reference for the caller, or NULL. */
struct version *cache_find(struct cache *cache, const struct cache_key *key);
/*
 * Before a version is read from the database: a ticket, which is to be given to cache_fill(). 0 or
 * -ENOMEM.
 */
int cache_reserve(struct cache *cache, const struct cache_key *key, uint64_t *ticket);
/*
 * The version read, a reference; NULL: nothing was found, or reading failed. True: it was not replaced meanwhile; if
 * others have read it as well, *version is theirs now, so that all share what is attached to it. False: it may be out of
 * date, look again.
 */
bool cache_fill(struct cache *cache, const struct cache_key *key, uint64_t ticket,
		struct version **version);
/* After a commit: the version is the newest one; NULL: the vnode is gone. */
void cache_publish(struct cache *cache, const struct cache_key *key, struct version *version);
/* Forget everything of a group, which is gone. */
void cache_drop(struct cache *cache, uint32_t group);
/* Something was attached to the version: charge it. */
void cache_charge(struct cache *cache, const struct cache_key *key, const struct version *version);

#endif
