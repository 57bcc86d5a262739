/* SPDX-License-Identifier: BSD-2-Clause */
/* What an object holds beside its status: names, within a bound of memory, and own changes that wait for their turn. */
#include "client/cache/steps.h"

#include <assert.h>
#include <stdlib.h>

#include "common/held.h"

void cache_link_listing(struct cache_shard *shard, struct cache_listing *listing)
{
	assert(mutex_is_held(&shard->lock));
	listing->newer = NULL;
	listing->older = shard->newest_names;
	*(shard->newest_names ? &shard->newest_names->newer : &shard->oldest_names) = listing;
	shard->newest_names = listing;
}

static void unlink_listing(struct cache_shard *shard, struct cache_listing *listing)
{
	assert(mutex_is_held(&shard->lock));
	*(listing->newer ? &listing->newer->older : &shard->newest_names) = listing->older;
	*(listing->older ? &listing->older->newer : &shard->oldest_names) = listing->newer;
	listing->newer = listing->older = NULL;
}

static struct cache_shard *shard_of(const struct cl_object *object)
{
	struct rxafs_fid fid = cl_object_fid(object);

	return cache_shard(object->volume->cache, cache_hash_fid(object->volume->cache, &fid));
}

struct cache_listing *cache_take_listing(struct cl_object *object)
{
	struct cache_listing *listing = object->listing;

	if (!listing)
		return NULL;
	unlink_listing(shard_of(object), listing);
	atomic_fetch_sub(&object->volume->cache->name_bytes, listing->size);
	object->listing = NULL;
	return listing;
}

void cache_free_listing(struct cache_listing *listing)
{
	if (!listing)
		return;
	cl_names_free(listing->names);
	free(listing);
}

/* The names that were used longest ago: those which were used since the last look get one more round. */
static struct cache_listing *take_oldest(struct cache_shard *shard, const struct cl_object *keep)
{
	struct cache_listing *listing = shard->oldest_names, *newer;

	for (; listing; listing = newer) {
		newer = listing->newer;
		if (!listing->used && listing->owner != keep)
			return cache_take_listing(listing->owner);
		listing->used = false;
	}
	listing = shard->oldest_names;
	if (listing && listing->owner == keep)
		listing = listing->newer;
	return listing ? cache_take_listing(listing->owner) : NULL;
}

/* Free names until they are within the limit, shard after shard. */
void cache_bound_names(struct cl_cache *cache, const struct cl_object *keep)
{
	unsigned first = (unsigned)(shard_of(keep) - cache->shards);

	for (unsigned i = 0; i < CACHE_SHARDS; i++) {
		struct cache_shard *shard = &cache->shards[(first + i) % CACHE_SHARDS];
		struct cache_listing *oldest;

		do {
			if (atomic_load(&cache->name_bytes) <= cache->limits.name_bytes)
				return;
			pthread_mutex_lock(&shard->lock);
			oldest = take_oldest(shard, keep);
			pthread_mutex_unlock(&shard->lock);
			cache_free_listing(oldest);
		} while (oldest);
	}
}

void cache_count_names(struct cl_object *object)
{
	struct cache_listing *listing = object->listing;
	size_t size = sizeof(*listing) + cl_names_size(listing->names);

	atomic_fetch_add(&object->volume->cache->name_bytes, size - listing->size);
	listing->size = size;
}

bool cache_edit_listing(struct cl_object *object, uint64_t version, const struct cl_edit *edit)
{
	struct cache_listing *listing = object->listing;
	bool done = true;

	if (edit && edit->removed)
		done = cl_names_remove(listing->names, edit->removed, edit->removed_length);
	if (edit && edit->added)
		done &= cl_names_add(listing->names, edit->added, edit->added_length, edit->vnode,
				     edit->unique);
	cache_count_names(object);
	listing->version = version;
	return done;
}

/* -- own changes --------------------------------------------------------------------------- */

void cache_drop_pending(struct cl_object *object)
{
	struct cache_pending *next;

	for (; object->pending; object->pending = next) {
		next = object->pending->next;
		free(object->pending);
	}
}

void cache_settle_foreign(struct cl_object *object)
{
	object->clean_from = object->version;
	object->taken_at = next_event(object->volume->cache);
	object->settled = object->version;
	cache_drop_pending(object);
}
