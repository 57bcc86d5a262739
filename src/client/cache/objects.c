/* SPDX-License-Identifier: BSD-2-Clause */
/* Objects of the cache: table, references, eviction. */
#include "client/cache/steps.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "common/held.h"

#define OBJECTS_DEFAULT	   100000
#define NAME_BYTES_DEFAULT (64u << 20)
#define LOOKS		   32u /* at objects, to find one that may be evicted */

/* -- the cache ----------------------------------------------------------------------------- */

struct cl_cache *cl_cache_create(const struct cl_cache_limits *limits)
{
	struct cl_cache *cache = aligned_alloc(64, sizeof(*cache));
	bool made;

	if (!cache)
		return NULL;
	memset(cache, 0, sizeof(*cache));
	cache->limits = *limits;
	if (!cache->limits.objects)
		cache->limits.objects = OBJECTS_DEFAULT;
	if (!cache->limits.name_bytes)
		cache->limits.name_bytes = NAME_BYTES_DEFAULT;
	/* Without a generator the keys stay as they are. */
	if (!limits->key[0] && !limits->key[1])
		(void)rxw_random(cache->limits.key, sizeof(cache->limits.key));
	atomic_store(&cache->sequence, 1);
	pthread_mutex_init(&cache->given_lock, NULL);
	made = cache_volumes_init(cache);
	for (unsigned i = 0; i < CACHE_SHARDS; i++)
		made &= cache_shard_init(cache, &cache->shards[i]);
	if (made)
		return cache;
	cl_cache_destroy(cache);
	return NULL;
}

/* Free what only the object has. It is in no list any more. */
static void free_object(struct cl_object *object)
{
	void (*drop)(void *user) = object->volume->cache->limits.drop;

	assert(atomic_load(&object->refs) == 0 && !object->in_flight);
	if (drop && atomic_load(&object->user))
		drop(atomic_load(&object->user));
	cache_free_listing(object->listing);
	cache_free_doubts(object);
	free(object->more_rights);
	free(object);
}

static void drop_object(void *item)
{
	free_object(item);
}

void cl_cache_destroy(struct cl_cache *cache)
{
	for (unsigned i = 0; i < CACHE_SHARDS; i++) {
		htable_fini(&cache->shards[i].objects, drop_object);
		pthread_mutex_destroy(&cache->shards[i].lock);
	}
	cache_volumes_fini(cache);
	pthread_mutex_destroy(&cache->given_lock);
	free(cache);
}

/* -- eviction ------------------------------------------------------------------------------ */

static void remember_given_up(struct cl_cache *cache, const struct cl_object *object)
{
	pthread_mutex_lock(&cache->given_lock);
	if (cache->given_count < CACHE_GIVEN_UP) {
		unsigned at = (cache->given_first + cache->given_count++) % CACHE_GIVEN_UP;

		cache->given[at].fid = cl_object_fid(object);
		cache->given[at].server = object->server;
	}
	pthread_mutex_unlock(&cache->given_lock);
}

/* What an object knew of breaks and own changes outlives it: replies that are older, and late changes, may still come. */
static void leave_trace(struct cl_cache *cache, const struct cl_object *object)
{
	struct rxafs_fid fid = cl_object_fid(object);
	struct cache_trace *trace = cache_trace(cache, cache_hash_fid(cache, &fid));

	if (trace->broken_at < object->broken_at)
		trace->broken_at = object->broken_at;
	if (trace->broken_at < object->changed_at)
		trace->broken_at = object->changed_at;
	if (trace->distrust_until < cache_doubted_until(object))
		trace->distrust_until = cache_doubted_until(object);
}

/* The oldest object that was not used since the last look, and is not referenced. NULL: none of the next ones. */
static struct cl_object *choose_victim(struct cache_shard *shard)
{
	for (unsigned i = 0; i < LOOKS && shard->oldest; i++) {
		struct cl_object *object = shard->oldest;

		cache_unlink(shard, object);
		if (!object->used && !atomic_load(&object->refs))
			return object;
		object->used = false;
		cache_link(shard, object);
	}
	return NULL;
}

/* Objects that must go are chained by `link`; the caller frees them without the lock. */
static struct cl_object *evict_objects(struct cl_cache *cache, struct cache_shard *shard)
{
	size_t limit = cache->limits.objects / CACHE_SHARDS + 1;
	struct cl_object *evicted = NULL, *object;

	while (shard->objects.count > limit && (object = choose_victim(shard))) {
		htable_remove(&shard->objects, object);
		leave_trace(cache, object);
		if (object->until && !atomic_load(&object->volume->readonly))
			remember_given_up(cache, object);
		object->link = evicted;
		evicted = object;
		shard->counts.evicted++;
	}
	for (object = evicted; object; object = object->link)
		object->listing = cache_take_listing(object);
	return evicted;
}

static void free_evicted(struct cl_object *object)
{
	for (struct cl_object *next; object; object = next) {
		next = object->link;
		free_object(object);
	}
}

/* -- references ---------------------------------------------------------------------------- */

struct cl_object *cl_object_hold(struct cl_object *object)
{
	unsigned before = atomic_fetch_add(&object->refs, 1);

	assert(before > 0);
	(void)before;
	return object;
}

void cl_object_put(struct cl_object *object)
{
	unsigned before;

	if (!object)
		return;
	/* Another thread may evict it at once. */
	before = atomic_fetch_sub(&object->refs, 1);
	assert(before > 0);
	(void)before;
}

static struct cl_object *enter_new(struct cache_shard *shard, struct cache_volume *volume,
				   uint32_t vnode, uint32_t unique)
{
	struct cl_object *object = calloc(1, sizeof(*object));

	if (!object)
		return NULL;
	object->volume = volume;
	object->vnode = vnode;
	object->unique = unique;
	atomic_store(&object->refs, 1);
	htable_add(&shard->objects, object);
	cache_link(shard, object);
	return object;
}

struct cl_object *cache_enter(struct cache_volume *volume, uint32_t vnode, uint32_t unique)
{
	struct rxafs_fid fid = {volume->cell, volume->id, vnode, unique};
	struct cl_cache *cache = volume->cache;
	uint64_t hash = cache_hash_fid(cache, &fid);
	struct cache_shard *shard = cache_shard(cache, hash);
	struct cl_object *object, *evicted = NULL;

	pthread_mutex_lock(&shard->lock);
	object = cache_seek(shard, hash, &fid);
	if (object) {
		cache_refer(shard, object);
	} else {
		object = enter_new(shard, volume, vnode, unique);
		evicted = evict_objects(cache, shard);
	}
	pthread_mutex_unlock(&shard->lock);
	free_evicted(evicted);
	return object;
}

struct cl_object *cl_cache_find(struct cl_cache *cache, const struct rxafs_fid *fid)
{
	uint64_t hash = cache_hash_fid(cache, fid);
	struct cache_shard *shard = cache_shard(cache, hash);
	struct cl_object *object;

	pthread_mutex_lock(&shard->lock);
	object = cache_seek(shard, hash, fid);
	if (object)
		cache_refer(shard, object);
	pthread_mutex_unlock(&shard->lock);
	return object;
}

struct cl_object *cl_cache_get(struct cl_cache *cache, const struct rxafs_fid *fid)
{
	struct cl_object *object = cl_cache_find(cache, fid);
	struct cache_volume *volume;

	if (object)
		return object;
	volume = cache_volume(cache, fid->cell, fid->volume, true);
	return volume ? cache_enter(volume, fid->vnode, fid->unique) : NULL;
}

/* -- what an object is --------------------------------------------------------------------- */

void *cl_object_user(const struct cl_object *object)
{
	return atomic_load_explicit(&object->user, memory_order_acquire);
}

void *cl_object_set_user(struct cl_object *object, void *user)
{
	void *present = NULL;

	return atomic_compare_exchange_strong(&object->user, &present, user) ? user : present;
}

bool cl_object_claim(struct cl_object *object, unsigned claims)
{
	unsigned before = atomic_load(&object->claims);

	do {
		if (before & claims)
			return false;
	} while (!atomic_compare_exchange_weak(&object->claims, &before, before | claims));
	return true;
}

void cl_object_unclaim(struct cl_object *object, unsigned claims)
{
	unsigned before = atomic_fetch_and(&object->claims, ~claims);

	assert((before & claims) == claims);
	(void)before;
}

/* -- walks --------------------------------------------------------------------------------- */

/* References to the wanted objects of one chain. False: there are more than `room`. */
static bool walk_chain(struct cache_shard *shard, size_t chain, const struct rxafs_fid *volume,
		       struct cl_object **objects, size_t room, size_t *count)
{
	struct cl_object *object = *htable_chain(&shard->objects, chain);
	size_t first = *count;

	for (; object; object = object->link) {
		if (volume &&
		    (object->volume->id != volume->volume || object->volume->cell != volume->cell))
			continue;
		if (*count == room)
			return first ==
			       0; /* a chain of more than a batch: rather less than no end */
		objects[(*count)++] = cache_refer(shard, object);
	}
	return true;
}

size_t cl_cache_walk(struct cl_cache *cache, uint64_t *cursor, const struct rxafs_fid *volume,
		     struct cl_object **objects, size_t room)
{
	size_t count = 0, whole = 0;

	for (uint64_t s = *cursor >> 32; s < CACHE_SHARDS && count < room; s++) {
		struct cache_shard *shard = &cache->shards[s];
		size_t chain = *cursor & UINT32_MAX;
		bool more = true;

		pthread_mutex_lock(&shard->lock);
		for (; chain < shard->objects.size; chain++) {
			more = walk_chain(shard, chain, volume, objects, room, &count);
			if (!more)
				break;
			whole = count;
		}
		pthread_mutex_unlock(&shard->lock);
		*cursor = more ? (s + 1) << 32 : s << 32 | chain;
		if (!more)
			break;
	}
	/* The chain that did not fit comes again. */
	while (count > whole)
		cl_object_put(objects[--count]);
	return count;
}

void cl_cache_count(struct cl_cache *cache, struct cl_cache_counts *counts)
{
	*counts = (struct cl_cache_counts){
		.replaced = atomic_load(&cache->replaced),
		.breaks = atomic_load(&cache->volume_breaks),
		.name_bytes = atomic_load(&cache->name_bytes),
	};
	for (unsigned i = 0; i < CACHE_SHARDS; i++) {
		struct cache_shard *shard = &cache->shards[i];

		pthread_mutex_lock(&shard->lock);
		counts->hits += shard->counts.hits;
		counts->misses += shard->counts.misses;
		counts->breaks += shard->counts.breaks;
		counts->broken_early += shard->counts.broken_early;
		counts->overtaken += shard->counts.overtaken;
		counts->reordered += shard->counts.reordered;
		counts->conflicts += shard->counts.conflicts;
		counts->evicted += shard->counts.evicted;
		counts->objects += shard->objects.count;
		pthread_mutex_unlock(&shard->lock);
	}
}
