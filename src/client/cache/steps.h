/* SPDX-License-Identifier: BSD-2-Clause */
/* Steps that the files of the cache share, from the lowest file to the highest. */
#ifndef CLIENT_CACHE_STEPS_H
#define CLIENT_CACHE_STEPS_H

#include "client/cache/parts.h"

/* volumes.c: under any lock but a volume's */
bool cache_volumes_init(struct cl_cache *cache);
void cache_volumes_fini(struct cl_cache *cache);
struct cache_volume *cache_volume(struct cl_cache *cache, uint32_t cell, uint32_t id, bool make);
/* Compare AFSVolSync in a reply. False: the reply is too old; *verdict says what to do. */
bool cache_volume_meet(struct cache_volume *volume, const struct cl_reply *reply, uint32_t *epoch,
		       enum cl_verdict *verdict);
/* Whether the promise of a reply was not broken since, for the volume and the server. */
bool cache_promise_counts(const struct cache_volume *volume, const struct cl_reply *reply);
/* The end of trust into a promise that counts. */
uint64_t cache_promise_end(const struct cl_reply *reply);
void cache_volume_promise(struct cache_volume *volume, const struct cl_reply *reply);
/* The end of the promise for a read-only volume under which a status with this note may be used; 0: none. */
uint64_t cache_volume_valid_until(struct cache_volume *volume, uint64_t note, uint64_t now);
uint64_t cache_reset_of(const struct cl_cache *cache, uint32_t server);

/* shards.c: no lock is held */
uint64_t cache_hash_fid(const struct cl_cache *cache, const struct rxafs_fid *fid);
struct cache_shard *cache_shard(struct cl_cache *cache, uint64_t hash);
struct cache_trace *cache_trace(struct cl_cache *cache, uint64_t hash);
struct cache_shard *cache_lock_object(struct cl_object *object);
bool cache_shard_init(struct cl_cache *cache, struct cache_shard *shard);
/* Under the shard's lock: an object, without a reference. */
struct cl_object *cache_seek(struct cache_shard *shard, uint64_t hash, const struct rxafs_fid *fid);
/* Under the shard's lock: one more reference. */
struct cl_object *cache_refer(struct cache_shard *shard, struct cl_object *object);
/* Under the shard's lock: the list of its objects, the newest one first. */
void cache_link(struct cache_shard *shard, struct cl_object *object);
void cache_unlink(struct cache_shard *shard, struct cl_object *object);

/* validity.c: under the shard's lock */
uint64_t cache_valid_until(const struct cl_object *object, uint64_t now);
void cache_show_status(const struct cl_object *object, uint64_t now, struct cl_status *status);
bool cache_same_status(const struct cl_object *object, const AFSFetchStatus *status);
void cache_store_status(struct cl_object *object, const struct cl_reply *reply,
			const AFSFetchStatus *status, uint32_t epoch);

/* contents.c: under the shard's lock. Names that were taken are freed by the caller, without it. */
struct cache_listing *cache_take_listing(struct cl_object *object);
void cache_free_listing(struct cache_listing *listing);
void cache_link_listing(struct cache_shard *shard, struct cache_listing *listing);
/* The memory of the object's names has changed. */
void cache_count_names(struct cl_object *object);
/* False: the names do not fit the edit; take them away. */
bool cache_edit_listing(struct cl_object *object, uint64_t version, const struct cl_edit *edit);
void cache_drop_pending(struct cl_object *object);
/* Other contents than those that are held, by a change of others. */
void cache_settle_foreign(struct cl_object *object);
/* Free names until they are within the limit, but those of one directory. No lock is held. */
void cache_bound_names(struct cl_cache *cache, const struct cl_object *keep);

/*
 * doubts.c: under the shard's lock. An own change got no answer. `edit`: that of the directory, if this directory alone decides whether
 * the change can still be carried out; or NULL.
 */
void cache_doubt_object(struct cl_object *object, const struct cl_edit *edit, uint64_t now);
/* Whether such a change may still come after a reply with this version, to a request that was sent at that time. */
bool cache_is_doubted(const struct cl_object *object, uint64_t version, uint64_t time);
uint64_t cache_doubted_until(const struct cl_object *object);
void cache_free_doubts(struct cl_object *object);

/* objects.c: a reference to an object of a known volume, made if it is not there. NULL: no memory. No lock is held. */
struct cl_object *cache_enter(struct cache_volume *volume, uint32_t vnode, uint32_t unique);

#endif
