/* SPDX-License-Identifier: BSD-2-Clause */
/* Ends of promises: breaks, resets of servers, promises that are given back. */
#include "client/cache/steps.h"

#include <assert.h>

#define DISTRUST_NS 120000000000ull

/* Volumes that are not known have one number together: a break of one may come before its first reply. */
static void break_volume(struct cl_cache *cache, struct cache_volume *volume)
{
	atomic_fetch_add(&cache->volume_breaks, 1);
	atomic_store(volume ? &volume->broken_at : &cache->unknown_broken_at, next_event(cache));
}

struct cl_object *cl_cache_break(struct cl_cache *cache, const struct rxafs_fid *fid, bool *whole)
{
	struct cache_volume *volume = cache_volume(cache, fid->cell, fid->volume, false);
	uint64_t hash = cache_hash_fid(cache, fid);
	struct cache_shard *shard = cache_shard(cache, hash);
	struct cl_object *object;

	*whole = fid->vnode == 0 || (volume && atomic_load(&volume->readonly));
	if (*whole || !volume) {
		break_volume(cache, volume);
		if (*whole)
			return NULL;
	}
	pthread_mutex_lock(&shard->lock);
	shard->counts.breaks++;
	object = cache_seek(shard, hash, fid);
	if (object) {
		cache_refer(shard, object);
		object->broken_at = next_event(cache);
		object->until = object->note = 0;
	} else {
		cache_trace(cache, hash)->broken_at = next_event(cache);
	}
	pthread_mutex_unlock(&shard->lock);
	return object;
}

void cl_cache_reset(struct cl_cache *cache, uint32_t server)
{
	atomic_store(&cache->resets[server % CACHE_SERVERS], next_event(cache));
}

void cl_cache_doubt(struct cl_cache *cache)
{
	atomic_store(&cache->doubted_at, next_event(cache));
}

/* -- promises that are given back ---------------------------------------------------------- */

/* Take the next one if it is of the server, or of any if there is none yet. */
static bool next_given(struct cl_cache *cache, bool any, uint32_t *server, struct rxafs_fid *fid)
{
	struct cache_given *given = &cache->given[cache->given_first];
	bool found;

	pthread_mutex_lock(&cache->given_lock);
	given = &cache->given[cache->given_first];
	found = cache->given_count > 0 && (any || given->server == *server);
	if (found) {
		*fid = given->fid;
		*server = given->server;
		cache->given_first = (cache->given_first + 1) % CACHE_GIVEN_UP;
		cache->given_count--;
	}
	pthread_mutex_unlock(&cache->given_lock);
	return found;
}

/* False if the object is in the cache again: its promise must stay. From now on no promise for its FID counts. */
static bool begin_giving_up(struct cl_cache *cache, const struct rxafs_fid *fid)
{
	uint64_t hash = cache_hash_fid(cache, fid);
	struct cache_shard *shard = cache_shard(cache, hash);
	bool away;

	pthread_mutex_lock(&shard->lock);
	away = cache_seek(shard, hash, fid) == NULL;
	if (away)
		cache_trace(cache, hash)->giving_up++;
	pthread_mutex_unlock(&shard->lock);
	return away;
}

size_t cl_cache_give_up(struct cl_cache *cache, uint32_t *server, struct rxafs_fid *fids,
			size_t room)
{
	size_t count = 0;

	while (count < room && next_given(cache, count == 0, server, &fids[count]))
		if (begin_giving_up(cache, &fids[count]))
			count++;
	return count;
}

void cl_cache_gave_up(struct cl_cache *cache, const struct rxafs_fid *fids, size_t count, bool done,
		      uint64_t now)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t hash = cache_hash_fid(cache, &fids[i]);
		struct cache_shard *shard = cache_shard(cache, hash);
		struct cache_trace *trace = cache_trace(cache, hash);

		pthread_mutex_lock(&shard->lock);
		assert(trace->giving_up > 0);
		trace->giving_up--;
		trace->broken_at = next_event(cache);
		if (!done)
			trace->distrust_until = now + DISTRUST_NS;
		pthread_mutex_unlock(&shard->lock);
	}
}
