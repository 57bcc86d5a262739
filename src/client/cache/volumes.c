/* SPDX-License-Identifier: BSD-2-Clause */
/* Volumes of the cache: replaced contents, and promises for whole volumes. */
#include "client/cache/steps.h"

#include <assert.h>
#include <stdlib.h>

#include "base/hash.h"
#include "common/held.h"

#define NS_OF_SECOND 1000000000ull

static uint64_t volume_chain_hash(const void *item, const uint64_t key[2])
{
	const struct cache_volume *volume = item;

	return rxw_hash_words(volume->cell, volume->id, key);
}

bool cache_volumes_init(struct cl_cache *cache)
{
	pthread_mutex_init(&cache->volumes_lock, NULL);
	return htable_init(&cache->volumes, offsetof(struct cache_volume, link), volume_chain_hash,
			   cache->limits.key, 0);
}

static void free_volume(void *item)
{
	struct cache_volume *volume = item;

	pthread_mutex_destroy(&volume->lock);
	free(volume);
}

void cache_volumes_fini(struct cl_cache *cache)
{
	htable_fini(&cache->volumes, free_volume);
	pthread_mutex_destroy(&cache->volumes_lock);
}

static struct cache_volume *make_volume(struct cl_cache *cache, uint32_t cell, uint32_t id)
{
	struct cache_volume *volume = calloc(1, sizeof(*volume));

	assert(mutex_is_held(&cache->volumes_lock));
	if (!volume)
		return NULL;
	volume->cache = cache;
	volume->cell = cell;
	volume->id = id;
	pthread_mutex_init(&volume->lock, NULL);
	/* A break may have come before the first reply. */
	atomic_store(&volume->broken_at, atomic_load(&cache->unknown_broken_at));
	htable_add(&cache->volumes, volume);
	return volume;
}

struct cache_volume *cache_volume(struct cl_cache *cache, uint32_t cell, uint32_t id, bool make)
{
	struct cache_volume *volume;

	pthread_mutex_lock(&cache->volumes_lock);
	volume = htable_first(&cache->volumes, rxw_hash_words(cell, id, cache->limits.key));
	while (volume && (volume->cell != cell || volume->id != id))
		volume = volume->link;
	if (!volume && make)
		volume = make_volume(cache, cell, id);
	pthread_mutex_unlock(&cache->volumes_lock);
	return volume;
}

int cl_cache_set_readonly(struct cl_cache *cache, uint32_t cell, uint32_t volume, bool readonly)
{
	struct cache_volume *found = cache_volume(cache, cell, volume, true);

	if (!found)
		return -ENOMEM;
	/* Promises of the other kind do not serve. */
	if (atomic_exchange(&found->readonly, readonly) != readonly)
		atomic_store(&found->broken_at, next_event(cache));
	return 0;
}

/* -- replaced contents --------------------------------------------------------------------- */

static void note_replacement(struct cache_volume *volume, uint32_t sync)
{
	assert(mutex_is_held(&volume->lock));
	if (atomic_load(&volume->sync)) {
		atomic_fetch_add(&volume->epoch, 1);
		atomic_fetch_add(&volume->cache->replaced, 1);
	}
	atomic_store(&volume->sync, sync);
	atomic_store(&volume->replaced_at, next_event(volume->cache));
}

bool cache_volume_meet(struct cache_volume *volume, const struct cl_reply *reply, uint32_t *epoch,
		       enum cl_verdict *verdict)
{
	bool readonly = atomic_load(&volume->readonly), current = true;

	*verdict = CL_KEEP;
	pthread_mutex_lock(&volume->lock);
	if (reply->sync && reply->sync != atomic_load(&volume->sync)) {
		uint32_t sync = (uint32_t)atomic_load(&volume->sync);

		/* The answer was of an older release; or the request was sent before the replacement was seen. */
		if (readonly && reply->sync < sync)
			*verdict = CL_OTHER_SITE;
		if (!readonly && reply->note < atomic_load(&volume->replaced_at))
			*verdict = CL_ASK_AGAIN;
		current = *verdict == CL_KEEP;
		if (current)
			note_replacement(volume, reply->sync);
	}
	*epoch = (uint32_t)atomic_load(&volume->epoch);
	pthread_mutex_unlock(&volume->lock);
	return current;
}

/* -- promises ------------------------------------------------------------------------------ */

uint64_t cache_reset_of(const struct cl_cache *cache, uint32_t server)
{
	uint64_t reset =
		atomic_load_explicit(&cache->resets[server % CACHE_SERVERS], memory_order_acquire);
	uint64_t doubted = atomic_load_explicit(&cache->doubted_at, memory_order_acquire);

	return reset > doubted ? reset : doubted;
}

bool cache_promise_counts(const struct cache_volume *volume, const struct cl_reply *reply)
{
	return reply->lifetime * NS_OF_SECOND > CL_PROMISE_MARGIN_NS &&
	       reply->note >= atomic_load(&volume->broken_at) &&
	       reply->note >= cache_reset_of(volume->cache, reply->server);
}

uint64_t cache_promise_end(const struct cl_reply *reply)
{
	assert(reply->lifetime * NS_OF_SECOND > CL_PROMISE_MARGIN_NS);
	return reply->sent + reply->lifetime * NS_OF_SECOND - CL_PROMISE_MARGIN_NS;
}

/* The site of a server, else the one whose promise ends first. */
static struct cache_site *choose_site(struct cache_volume *volume, uint32_t server)
{
	struct cache_site *best = &volume->sites[0];

	for (unsigned i = 0; i < CACHE_SITES; i++) {
		struct cache_site *site = &volume->sites[i];

		if (atomic_load(&site->until) && atomic_load(&site->server) == server)
			return site;
		if (atomic_load(&site->until) < atomic_load(&best->until))
			best = site;
	}
	return best;
}

static bool site_holds(const struct cache_volume *volume, const struct cache_site *site,
		       uint64_t now)
{
	uint64_t note = atomic_load_explicit(&site->note, memory_order_relaxed);
	uint32_t server = (uint32_t)atomic_load_explicit(&site->server, memory_order_relaxed);

	return atomic_load_explicit(&site->until, memory_order_relaxed) > now &&
	       note >= atomic_load_explicit(&volume->broken_at, memory_order_acquire) &&
	       note >= cache_reset_of(volume->cache, server);
}

void cache_volume_promise(struct cache_volume *volume, const struct cl_reply *reply)
{
	uint64_t until = cache_promise_end(reply);
	struct cache_site *site;
	bool held;

	pthread_mutex_lock(&volume->lock);
	site = choose_site(volume, reply->server);
	held = atomic_load(&site->server) == reply->server && site_holds(volume, site, reply->sent);
	if (!held || until > atomic_load(&site->until)) {
		atomic_fetch_add(&volume->site_changes, 1);
		if (!held)
			atomic_store(&site->since, reply->note);
		atomic_store(&site->server, reply->server);
		atomic_store(&site->note, reply->note);
		atomic_store(&site->until, until);
		atomic_fetch_add(&volume->site_changes, 1);
	}
	pthread_mutex_unlock(&volume->lock);
}

/* Promises by which a status may be used. Without AFSVolSync it must be younger than the last gap between promises. */
static uint64_t find_site_until(const struct cache_volume *volume, uint64_t note, uint64_t now)
{
	bool dated = atomic_load_explicit(&volume->sync, memory_order_relaxed) != 0;
	uint64_t best = 0;

	for (unsigned i = 0; i < CACHE_SITES; i++) {
		const struct cache_site *site = &volume->sites[i];
		uint64_t until = atomic_load_explicit(&site->until, memory_order_relaxed);

		if (until > best && site_holds(volume, site, now) &&
		    (dated || note >= atomic_load_explicit(&site->since, memory_order_relaxed)))
			best = until;
	}
	return best;
}

uint64_t cache_volume_valid_until(struct cache_volume *volume, uint64_t note, uint64_t now)
{
	uint64_t before, until;

	if (!note || note < atomic_load_explicit(&volume->broken_at, memory_order_acquire))
		return 0;
	do {
		before = atomic_load_explicit(&volume->site_changes, memory_order_acquire);
		until = find_site_until(volume, note, now);
		atomic_thread_fence(memory_order_acquire);
	} while (before % 2 ||
		 before != atomic_load_explicit(&volume->site_changes, memory_order_relaxed));
	return until;
}
