/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parts of the cache, for its own files; the functions that these share are in steps.h.
 *
 * Locks. A shard's lock covers its objects, with their statuses, rights, names and own changes, and its traces. A volume's lock covers the
 * change of its numbers, which are read without it. The lock of given_up is for that list. No function holds two locks of shards; a volume's or
 * the list's may be taken under a shard's. No lock is held while the caller's code runs.
 *
 * Order of events. `sequence` counts breaks, own changes and other events. A note is its value before a request was sent. A promise in the
 * reply is good if nothing broke it since: no event of the object, its volume or the server has a number above the note. Objects are told by
 * their own numbers, servers and volumes by theirs, so an event of a server costs no walk over its objects.
 */
#ifndef CLIENT_CACHE_PARTS_H
#define CLIENT_CACHE_PARTS_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "client/cache/changes.h"
#include "client/cache/listing.h"
#include "common/htable.h"

#define CACHE_SHARDS	 256u
#define CACHE_TRACES	 16u   /* of a shard */
#define CACHE_SERVERS	 1024u /* by number; two that share a place share their resets */
#define CACHE_SITES	 8u    /* promises for a read-only volume */
#define CACHE_GIVEN_UP	 1024u

#define CACHE_RIGHTS	 2u  /* identities that an object has room for */
#define CACHE_RIGHTS_MAX 64u /* the one that was told longest ago is forgotten */

/* Promise of a server for a whole read-only volume. */
struct cache_site {
	atomic_uint_fast64_t until, note;
	atomic_uint_fast64_t since; /* the note of the first promise of a row without a gap */
	atomic_uint_fast32_t server;
};

struct cache_volume {
	struct cache_volume *link;
	struct cl_cache *cache;
	uint32_t cell, id;
	atomic_bool readonly;
	atomic_uint_fast32_t sync;	   /* AFSVolSync; 0 = not known yet */
	atomic_uint_fast32_t epoch;	   /* counts replacements of the contents */
	atomic_uint_fast64_t broken_at;	   /* of the whole volume */
	atomic_uint_fast64_t replaced_at;  /* when the present sync was seen first */
	atomic_uint_fast64_t site_changes; /* odd while a site changes */
	struct cache_site sites[CACHE_SITES];
	pthread_mutex_t lock;
};

/* What is left of objects that are not in the table: of each, and of others whose FIDs have the same hash. */
struct cache_trace {
	uint64_t broken_at;
	uint64_t
		distrust_until; /* as of an object, or until a promise that could not be given back is over */
	uint32_t giving_up; /* promises that are being given back */
};

struct cache_doubt;

struct cache_right {
	uint32_t identity, rights;
	uint64_t note;
};

#define CACHE_NO_VERSION UINT64_MAX

/* The names of a directory. */
struct cache_listing {
	struct cl_object *owner;
	struct cache_listing *newer, *older; /* in the shard */
	struct cl_names *names;
	uint64_t version;
	size_t size; /* as it was counted */
	bool used;   /* since the last look for memory */
};

/* An own change whose turn has not come, since replies of earlier ones have not. */
struct cache_pending {
	struct cache_pending *next;
	uint64_t version;    /* after it */
	struct cl_edit edit; /* the names are in `text` */
	char text[];
};

/* What a look-up reads comes first, in as few cache lines as possible. */
struct cl_object {
	struct cl_object *link; /* of the table */
	struct cache_volume *volume;
	uint32_t vnode, unique;
	atomic_uint refs;
	atomic_uint claims;
	/*
	 * The promise. Of an object in a read-only volume only `note` counts, that of the last status: the volume has the
	 * promises.
	 */
	uint64_t until, note;
	uint32_t server;
	uint32_t epoch; /* of the volume when the status was taken */
	uint64_t version;
	struct cache_listing *listing;
	uint64_t size, clean_from;
	uint64_t taken_at; /* when a reply showed the status last */
	uint32_t sync;	   /* shown as incarnation */
	uint32_t links, owner, group, author, modified, changed;
	uint16_t mode;
	uint8_t kind;
	bool gone;
	uint32_t parent_vnode, parent_unique;
	uint32_t anonymous;
	int32_t locks;
	bool used;			   /* since the last look for one to evict */
	uint8_t rights_count, rights_room; /* of more_rights; those in rights come first */
	uint16_t in_flight, raising;	   /* own changes; those that may raise the version */
	_Atomic(void *) user;
	struct cl_object *newer, *older; /* all of the shard */
	uint64_t sent;			 /* the request for the status */
	uint64_t broken_at;
	uint64_t changed_at; /* end of the last own change */
	uint64_t rights_at;  /* rights with earlier notes are void */
	struct cache_doubt *doubts; /* own changes that may still be carried out */
	struct cache_right rights[CACHE_RIGHTS];
	struct cache_right *more_rights;
	/*
	 * While own changes are in flight, `settled` is the version up to which all changes are accounted for; those in `pending` are
	 * above settled + 1, by version.
	 */
	struct cache_pending *pending;
	uint64_t settled;
};

struct cache_shard {
	pthread_mutex_t lock;
	struct htable objects;
	struct cl_object *newest,
		*oldest; /* a used one becomes the newest when it is to be evicted */
	struct cache_listing *newest_names, *oldest_names;
	struct cl_cache_counts counts;
	struct cache_trace traces[CACHE_TRACES];
} __attribute__((aligned(64)));

struct cl_cache {
	struct cl_cache_limits limits;
	atomic_uint_fast64_t sequence;
	atomic_uint_fast64_t doubted_at;
	atomic_uint_fast64_t unknown_broken_at; /* of volumes that are not known */
	atomic_uint_fast64_t replaced, name_bytes, volume_breaks;
	atomic_uint_fast64_t resets[CACHE_SERVERS];
	pthread_mutex_t volumes_lock;
	struct htable volumes;
	pthread_mutex_t given_lock;
	struct cache_given {
		struct rxafs_fid fid;
		uint32_t server;
	} given[CACHE_GIVEN_UP];
	unsigned given_first, given_count;
	struct cache_shard shards[CACHE_SHARDS];
};

static inline uint64_t next_event(struct cl_cache *cache)
{
	return atomic_fetch_add(&cache->sequence, 1) + 1;
}

#endif
