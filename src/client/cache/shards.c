/* SPDX-License-Identifier: BSD-2-Clause */
/* Shards of the cache: where an object is, and the list of those without references. */
#include "client/cache/steps.h"

#include <assert.h>

#include "base/hash.h"
#include "common/held.h"

/* The low bits of a hash choose the shard and the trace. */
#define CHAIN_SHIFT 12

struct rxafs_fid cl_object_fid(const struct cl_object *object)
{
	return (struct rxafs_fid){object->volume->cell, object->volume->id, object->vnode,
				  object->unique};
}

uint64_t cache_hash_fid(const struct cl_cache *cache, const struct rxafs_fid *fid)
{
	uint64_t hash = rxw_hash_words((uint64_t)fid->cell << 32 | fid->volume,
				       (uint64_t)fid->vnode << 32 | fid->unique, cache->limits.key);

	/* Vnodes and uniques rise together: without this, low bits of the result would not differ enough. */
	hash *= 0xff51afd7ed558ccdull;
	return hash ^ hash >> 29;
}

static uint64_t chain_hash(const void *item, const uint64_t key[2])
{
	const struct cl_object *object = item;
	struct rxafs_fid fid = cl_object_fid(object);

	(void)key;
	return cache_hash_fid(object->volume->cache, &fid) >> CHAIN_SHIFT;
}

struct cache_shard *cache_shard(struct cl_cache *cache, uint64_t hash)
{
	return &cache->shards[hash % CACHE_SHARDS];
}

struct cache_trace *cache_trace(struct cl_cache *cache, uint64_t hash)
{
	return &cache_shard(cache, hash)->traces[hash / CACHE_SHARDS % CACHE_TRACES];
}

struct cache_shard *cache_lock_object(struct cl_object *object)
{
	struct rxafs_fid fid = cl_object_fid(object);
	struct cl_cache *cache = object->volume->cache;
	struct cache_shard *shard = cache_shard(cache, cache_hash_fid(cache, &fid));

	pthread_mutex_lock(&shard->lock);
	return shard;
}

bool cache_shard_init(struct cl_cache *cache, struct cache_shard *shard)
{
	pthread_mutexattr_t attributes;

	/* Held for less time than a wait in the kernel takes. */
	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ADAPTIVE_NP);
	pthread_mutex_init(&shard->lock, &attributes);
	pthread_mutexattr_destroy(&attributes);
	return htable_init(&shard->objects, offsetof(struct cl_object, link), chain_hash,
			   cache->limits.key, 0);
}

/* -- objects of a shard -------------------------------------------------------------------- */

struct cl_object *cache_seek(struct cache_shard *shard, uint64_t hash, const struct rxafs_fid *fid)
{
	struct cl_object *object = htable_first(&shard->objects, hash >> CHAIN_SHIFT);

	assert(mutex_is_held(&shard->lock));
	for (; object; object = object->link)
		if (object->vnode == fid->vnode && object->unique == fid->unique &&
		    object->volume->id == fid->volume && object->volume->cell == fid->cell)
			break;
	return object;
}

void cache_unlink(struct cache_shard *shard, struct cl_object *object)
{
	assert(mutex_is_held(&shard->lock));
	*(object->newer ? &object->newer->older : &shard->newest) = object->older;
	*(object->older ? &object->older->newer : &shard->oldest) = object->newer;
	object->newer = object->older = NULL;
}

void cache_link(struct cache_shard *shard, struct cl_object *object)
{
	assert(mutex_is_held(&shard->lock) && !object->newer && !object->older);
	object->older = shard->newest;
	*(shard->newest ? &shard->newest->newer : &shard->oldest) = object;
	shard->newest = object;
}

struct cl_object *cache_refer(struct cache_shard *shard, struct cl_object *object)
{
	assert(mutex_is_held(&shard->lock));
	atomic_fetch_add(&object->refs, 1);
	object->used = true;
	return object;
}
