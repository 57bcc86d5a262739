/* SPDX-License-Identifier: BSD-2-Clause */
/* The cache of versions: shards, each with a list from the last used to the longest unused. */
#include "volume/store/txn/cache.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "common/held.h"
#include "common/htable.h"

#define SHARDS	   16u
#define ENTRY_COST (sizeof(struct entry) + 32) /* with the overhead of allocations */

struct entry {
	void *chain;
	struct entry *newer, *older;
	struct cache_key key;
	unsigned fillers;	 /* threads that read it from the database: it stays */
	uint64_t generation;	 /* of publications during a read */
	struct version *version; /* NULL: it is being read */
	size_t bytes;
};

/* `lock` covers everything. */
struct shard {
	_Alignas(64) pthread_mutex_t lock;
	struct htable entries;
	struct entry list; /* newer: the longest unused; older: the last used */
	size_t bytes, limit;
	uint64_t hits, misses;
};

struct cache {
	struct shard shard[SHARDS];
};

static uint64_t hash_cache_key(const struct cache_key *key)
{
	uint64_t hash = (uint64_t)key->group << 32 | key->vnode;

	hash = (hash ^ (uint64_t)key->epoch * 0x9e3779b97f4a7c15u) * 0xff51afd7ed558ccdu;
	hash = (hash ^ hash >> 32) * 0xc4ceb9fe1a85ec53u;
	return hash ^ hash >> 29;
}

static uint64_t hash_cache_entry(const void *item, const uint64_t key[2])
{
	(void)key;
	return hash_cache_key(&((const struct entry *)item)->key);
}

struct cache *cache_create(size_t bytes)
{
	struct cache *cache = aligned_alloc(64, sizeof(*cache));

	if (!cache)
		return NULL;
	for (unsigned i = 0; i < SHARDS; i++) {
		struct shard *shard = &cache->shard[i];

		*shard = (struct shard){.limit = bytes / SHARDS};
		pthread_mutex_init(&shard->lock, NULL);
		shard->list.newer = shard->list.older = &shard->list;
		if (!htable_init(&shard->entries, offsetof(struct entry, chain), hash_cache_entry,
				 NULL, 0)) {
			while (i--)
				htable_fini(&cache->shard[i].entries, NULL);
			free(cache);
			return NULL;
		}
	}
	return cache;
}

static void free_cache_entry(void *item)
{
	struct entry *entry = item;

	version_unref(entry->version);
	free(entry);
}

void cache_destroy(struct cache *cache)
{
	if (!cache)
		return;
	for (unsigned i = 0; i < SHARDS; i++) {
		htable_fini(&cache->shard[i].entries, free_cache_entry);
		pthread_mutex_destroy(&cache->shard[i].lock);
	}
	free(cache);
}

size_t cache_memory(struct cache *cache)
{
	size_t bytes = 0;

	for (unsigned i = 0; i < SHARDS; i++) {
		pthread_mutex_lock(&cache->shard[i].lock);
		bytes += cache->shard[i].bytes;
		pthread_mutex_unlock(&cache->shard[i].lock);
	}
	return bytes;
}

void cache_counts(struct cache *cache, uint64_t *hits, uint64_t *misses)
{
	*hits = *misses = 0;
	for (unsigned i = 0; i < SHARDS; i++) {
		pthread_mutex_lock(&cache->shard[i].lock);
		*hits += cache->shard[i].hits;
		*misses += cache->shard[i].misses;
		pthread_mutex_unlock(&cache->shard[i].lock);
	}
}

/* -- one shard -- */

static void unlink_cache_entry(struct entry *entry)
{
	entry->newer->older = entry->older;
	entry->older->newer = entry->newer;
}

static void link_as_newest(struct shard *shard, struct entry *entry)
{
	entry->newer = &shard->list;
	entry->older = shard->list.older;
	entry->older->newer = entry;
	shard->list.older = entry;
}

static struct entry *find_cache_entry(struct shard *shard, const struct cache_key *key,
				      uint64_t hash)
{
	struct entry *entry = htable_first(&shard->entries, hash);

	assert(mutex_is_held(&shard->lock));
	while (entry && (entry->key.vnode != key->vnode || entry->key.group != key->group ||
			 entry->key.epoch != key->epoch))
		entry = entry->chain;
	return entry;
}

static struct entry *add_cache_entry(struct shard *shard, const struct cache_key *key,
				     uint64_t hash)
{
	struct entry *entry = calloc(1, sizeof(*entry));

	assert(mutex_is_held(&shard->lock));
	if (!entry)
		return NULL;
	entry->key = *key;
	entry->bytes = ENTRY_COST;
	shard->bytes += entry->bytes;
	htable_add_hashed(&shard->entries, entry, hash);
	link_as_newest(shard, entry);
	return entry;
}

static void remove_cache_entry(struct shard *shard, struct entry *entry)
{
	assert(!entry->fillers && shard->bytes >= entry->bytes);
	assert(mutex_is_held(&shard->lock));
	unlink_cache_entry(entry);
	htable_remove(&shard->entries, entry);
	shard->bytes -= entry->bytes;
	free_cache_entry(entry);
}

static void recount_entry_bytes(struct shard *shard, struct entry *entry)
{
	assert(mutex_is_held(&shard->lock) && shard->bytes >= entry->bytes);
	shard->bytes -= entry->bytes;
	entry->bytes = ENTRY_COST + (entry->version ? version_memory(entry->version) : 0);
	shard->bytes += entry->bytes;
}

/* Back below the limit; `keep` and entries that are being read stay. */
static void evict_oldest_entries(struct shard *shard, const struct entry *keep)
{
	struct entry *entry = shard->list.newer, *newer;

	assert(mutex_is_held(&shard->lock));
	for (; entry != &shard->list && shard->bytes > shard->limit; entry = newer) {
		newer = entry->newer;
		if (entry != keep && !entry->fillers)
			remove_cache_entry(shard, entry);
	}
}

static struct shard *lock_shard(struct cache *cache, uint64_t hash)
{
	struct shard *shard = &cache->shard[(hash >> 40) % SHARDS];

	pthread_mutex_lock(&shard->lock);
	return shard;
}

/* -- the interface -- */

struct version *cache_find(struct cache *cache, const struct cache_key *key)
{
	uint64_t hash = hash_cache_key(key);
	struct shard *shard = lock_shard(cache, hash);
	struct entry *entry = find_cache_entry(shard, key, hash);
	struct version *version = NULL;

	if (entry && entry->version) {
		version = version_ref(entry->version);
		if (shard->list.older != entry) {
			unlink_cache_entry(entry);
			link_as_newest(shard, entry);
		}
		shard->hits++;
	} else {
		shard->misses++;
	}
	pthread_mutex_unlock(&shard->lock);
	return version;
}

int cache_reserve(struct cache *cache, const struct cache_key *key, uint64_t *ticket)
{
	uint64_t hash = hash_cache_key(key);
	struct shard *shard = lock_shard(cache, hash);
	struct entry *entry = find_cache_entry(shard, key, hash);

	if (!entry)
		entry = add_cache_entry(shard, key, hash);
	if (entry) {
		entry->fillers++;
		*ticket = entry->generation;
	}
	pthread_mutex_unlock(&shard->lock);
	return entry ? 0 : -ENOMEM;
}

bool cache_fill(struct cache *cache, const struct cache_key *key, uint64_t ticket,
		struct version **version)
{
	uint64_t hash = hash_cache_key(key);
	struct shard *shard = lock_shard(cache, hash);
	struct entry *entry = find_cache_entry(shard, key, hash);
	bool current = entry->generation == ticket;

	entry->fillers--;
	if (current && *version && !entry->version) {
		entry->version = version_ref(*version);
		recount_entry_bytes(shard, entry);
	} else if (current && *version) {
		version_unref(*version);
		*version = version_ref(entry->version);
	}
	if (!entry->version && !entry->fillers)
		remove_cache_entry(shard, entry);
	evict_oldest_entries(shard, entry);
	pthread_mutex_unlock(&shard->lock);
	return current;
}

void cache_publish(struct cache *cache, const struct cache_key *key, struct version *version)
{
	uint64_t hash = hash_cache_key(key);
	struct shard *shard = lock_shard(cache, hash);
	struct entry *entry = find_cache_entry(shard, key, hash);

	if (!entry && version)
		entry = add_cache_entry(shard, key, hash);
	if (entry) {
		version_unref(entry->version);
		entry->version = version ? version_ref(version) : NULL;
		entry->generation++;
		recount_entry_bytes(shard, entry);
		if (!entry->version && !entry->fillers) {
			remove_cache_entry(shard, entry);
		} else {
			unlink_cache_entry(entry);
			link_as_newest(shard, entry);
		}
		evict_oldest_entries(shard, entry);
	}
	pthread_mutex_unlock(&shard->lock);
}

void cache_charge(struct cache *cache, const struct cache_key *key, const struct version *version)
{
	uint64_t hash = hash_cache_key(key);
	struct shard *shard = lock_shard(cache, hash);
	struct entry *entry = find_cache_entry(shard, key, hash);

	if (entry && entry->version == version) {
		recount_entry_bytes(shard, entry);
		evict_oldest_entries(shard, entry);
	}
	pthread_mutex_unlock(&shard->lock);
}

#define DROP_STEP 1024 /* entries that are looked at with the lock held */

/* Readers are filling the entry: the version that they will bring is outdated. */
static void empty_cache_entry(struct shard *shard, struct entry *entry)
{
	assert(entry->fillers > 0);
	version_unref(entry->version);
	entry->version = NULL;
	entry->generation++;
	recount_entry_bytes(shard, entry);
}

/* Go on behind `at`, a place in the list. True: it has arrived at `end`. */
static bool drop_some_entries(struct shard *shard, struct entry *at, struct entry *end,
			      uint32_t group)
{
	struct entry *entry = at->newer, *newer;

	assert(mutex_is_held(&shard->lock));
	for (unsigned i = 0; entry != end && i < DROP_STEP; i++, entry = newer) {
		newer = entry->newer;
		if (entry->key.group != group)
			continue;
		if (entry->fillers)
			empty_cache_entry(shard, entry);
		else
			remove_cache_entry(shard, entry);
	}
	unlink_cache_entry(at);
	if (entry == end) {
		unlink_cache_entry(end);
		return true;
	}
	at->newer = entry;
	at->older = entry->older;
	at->older->newer = entry->older = at;
	return false;
}

/*
 * The shard may have very many entries. Two marks in its list tell where the next step begins and where it ends: entries that
 * are used meanwhile move behind the second one, but those of the group are not used any more.
 */
static void drop_group_entries(struct shard *shard, uint32_t group)
{
	struct entry at = {.fillers = 1}, end = {.fillers = 1};
	bool done;

	pthread_mutex_lock(&shard->lock);
	at.older = &shard->list;
	at.newer = shard->list.newer;
	at.newer->older = shard->list.newer = &at;
	link_as_newest(shard, &end);
	pthread_mutex_unlock(&shard->lock);
	do {
		pthread_mutex_lock(&shard->lock);
		done = drop_some_entries(shard, &at, &end, group);
		pthread_mutex_unlock(&shard->lock);
	} while (!done);
}

void cache_drop(struct cache *cache, uint32_t group)
{
	for (unsigned i = 0; i < SHARDS; i++)
		drop_group_entries(&cache->shard[i], group);
}
