/* SPDX-License-Identifier: BSD-2-Clause */
/* Statuses and promises: which reply counts, and how long it may be used. */
#include "client/cache/steps.h"

#include <assert.h>
#include <stdlib.h>

#include "afs/fetchstatus.h"
#include "common/held.h"

uint64_t cl_cache_note(const struct cl_cache *cache)
{
	return atomic_load(&cache->sequence);
}

/* Whether the object is known to be gone, from the contents that the volume has now. */
static bool is_gone(const struct cl_object *object)
{
	return object->gone && object->epoch == (uint32_t)atomic_load(&object->volume->epoch);
}

int cl_object_status(struct cl_object *object, uint64_t now, struct cl_status *status)
{
	struct cache_shard *shard = cache_lock_object(object);
	int result = -ESTALE;

	cache_show_status(object, now, status);
	if (status->valid_until) {
		shard->counts.hits++;
		result = 0;
	} else if (is_gone(object)) {
		result = -ENOENT;
	} else {
		shard->counts.misses++;
	}
	pthread_mutex_unlock(&shard->lock);
	return result;
}

/* -- rights -------------------------------------------------------------------------------- */

static struct cache_right *right_at(struct cl_object *object, unsigned i)
{
	assert(i < CACHE_RIGHTS + object->rights_room);
	return i < CACHE_RIGHTS ? &object->rights[i] : &object->more_rights[i - CACHE_RIGHTS];
}

/* A place for the rights of one more identity: a free one, one more, or that of the oldest. */
static struct cache_right *new_right(struct cl_object *object)
{
	struct cache_right *oldest = &object->rights[0], *more;
	unsigned room = CACHE_RIGHTS + object->rights_room;

	if (object->rights_count < room)
		return right_at(object, object->rights_count++);
	if (room < CACHE_RIGHTS_MAX) {
		unsigned twice = object->rights_room ? 2u * object->rights_room : CACHE_RIGHTS;

		more = realloc(object->more_rights, twice * sizeof(*more));
		if (more) {
			object->more_rights = more;
			object->rights_room = (uint8_t)twice;
			return right_at(object, object->rights_count++);
		}
	}
	for (unsigned i = 1; i < room; i++)
		if (right_at(object, i)->note < oldest->note)
			oldest = right_at(object, i);
	return oldest;
}

static struct cache_right *find_right(struct cl_object *object, uint32_t identity)
{
	for (unsigned i = 0; i < object->rights_count; i++)
		if (right_at(object, i)->identity == identity)
			return right_at(object, i);
	return NULL;
}

/* Rights of old replies count as well while a promise that came with them does: a change of them would have broken it. */
static void store_rights(struct cl_object *object, const struct cl_reply *reply, uint32_t rights)
{
	struct cache_right *right = find_right(object, reply->identity);

	if (!reply->identity || reply->note < object->rights_at)
		return;
	if (right && right->note > reply->note)
		return;
	if (!right)
		right = new_right(object);
	*right = (struct cache_right){reply->identity, rights, reply->note};
}

int cl_object_rights(struct cl_object *directory, uint32_t identity, uint64_t now, uint32_t *rights)
{
	struct cache_shard *shard = cache_lock_object(directory);
	int result = -ESTALE;

	if (cache_valid_until(directory, now)) {
		struct cache_right *right = find_right(directory, identity);

		if (!identity) {
			*rights = directory->anonymous;
			result = 0;
		} else if (right && right->note >= directory->rights_at) {
			*rights = right->rights;
			result = 0;
		}
	}
	pthread_mutex_unlock(&shard->lock);
	return result;
}

/* -- replies ------------------------------------------------------------------------------- */

enum weight {
	REPLY_TAKE,
	REPLY_SAME,
	REPLY_OLD,
	REPLY_UNCLEAR /* which is newer cannot be told, and the known one is not trusted */
};

/*
 * Whether a status is newer than the known one (K-048, K-049). `counts`: a promise came with it and holds. Versions decide first, then
 * the server's time. If neither does, the known status stays where it may be the newer one: it came with a promise that holds and this one did
 * not, or an own change ended after this request was sent.
 */
static enum weight weigh_reply(const struct cl_object *object, const struct cl_reply *reply,
			       const AFSFetchStatus *status, uint32_t epoch, bool held, bool counts)
{
	uint64_t version = afs_status_version(status);
	bool later = reply->note >= object->taken_at; /* sent after the known one was taken */

	if (object->gone && !later)
		return REPLY_OLD;
	if (!object->kind || object->gone)
		return REPLY_TAKE;
	if (epoch != object->epoch)
		return (int32_t)(epoch - object->epoch) > 0 ? REPLY_TAKE : REPLY_OLD;
	if (version > object->version)
		return REPLY_TAKE;
	if (version < object->version)
		return later ? REPLY_TAKE : REPLY_OLD;
	if (cache_same_status(object, status))
		return REPLY_SAME;
	if (later || status->ServerModTime > object->changed)
		return REPLY_TAKE;
	if (status->ServerModTime < object->changed)
		return REPLY_OLD;
	if (reply->note >= object->changed_at && (counts || !held) && reply->sent >= object->sent)
		return REPLY_TAKE;
	return held ? REPLY_OLD : REPLY_UNCLEAR;
}

/*
 * Own changes in flight that may explain a version, beside those whose replies have come. Only of a directory, whose names have a version of
 * their own: if the change turns out to be another client's, blocks of a file would have passed for the new version already.
 */
static bool own_may_explain(const struct cl_object *object, uint64_t version)
{
	uint64_t own = object->raising;

	if (object->kind != RXAFS_DIRECTORY)
		return false;
	for (const struct cache_pending *p = object->pending; p; p = p->next)
		own++;
	return version > object->settled && version - object->settled <= own;
}

static enum cl_verdict take_status(struct cl_object *object, const struct cl_reply *reply,
				   const AFSFetchStatus *status, uint32_t epoch, bool held)
{
	uint32_t former_epoch = object->epoch, incarnation = object->sync;
	uint64_t version = object->version;
	uint8_t kind = object->kind;
	bool replaced, other;

	cache_store_status(object, reply, status, epoch);
	object->taken_at = next_event(object->volume->cache);
	if (!kind) {
		cache_settle_foreign(object);
		return CL_KEEP;
	}
	replaced = former_epoch != epoch && incarnation != object->sync;
	other = replaced || version != object->version;
	if (other && !replaced && held && own_may_explain(object, object->version))
		other = false;
	if (other)
		cache_settle_foreign(object);
	/* The same number may be that of other contents now. */
	if (replaced && object->listing)
		object->listing->version = CACHE_NO_VERSION;
	if (kind != object->kind)
		return CL_DROP_ALL;
	return other ? CL_DROP_CLEAN : CL_KEEP;
}

/* The promise in a reply whose status is the known one now. */
static void accept_promise(struct cl_object *object, const struct cl_reply *reply, bool held,
			   bool counts)
{
	if (atomic_load(&object->volume->readonly)) {
		if (reply->note > object->note && (counts || reply->sync))
			object->note = reply->note;
		if (counts)
			cache_volume_promise(object->volume, reply);
	} else if (counts && (!held || cache_promise_end(reply) > object->until)) {
		object->until = cache_promise_end(reply);
		object->note = reply->note;
		object->server = reply->server;
	}
}

static enum cl_verdict apply_reply(struct cache_shard *shard, struct cl_object *object,
				   const struct cl_reply *reply, const AFSFetchStatus *status,
				   uint32_t epoch)
{
	struct rxafs_fid fid = cl_object_fid(object);
	struct cl_cache *cache = object->volume->cache;
	struct cache_trace *trace = cache_trace(cache, cache_hash_fid(cache, &fid));
	bool held = cache_valid_until(object, reply->sent) != 0;
	bool counts = cache_promise_counts(object->volume, reply) &&
		      reply->note >= object->broken_at && reply->note >= trace->broken_at &&
		      !cache_is_doubted(object, afs_status_version(status), reply->sent) &&
		      reply->sent >= trace->distrust_until && !trace->giving_up;
	enum weight weight = weigh_reply(object, reply, status, epoch, held, counts);
	enum cl_verdict verdict = CL_KEEP;

	assert(mutex_is_held(&shard->lock));
	shard->counts.broken_early += reply->lifetime && !counts;
	shard->counts.overtaken += weight >= REPLY_OLD;
	if (weight == REPLY_TAKE)
		verdict = take_status(object, reply, status, epoch, held);
	if (weight == REPLY_SAME) /* it may have been another one in between */
		object->taken_at = next_event(cache);
	if (weight == REPLY_TAKE && held && !counts)
		object->until = object->note = 0; /* a break must be on its way */
	if (weight == REPLY_UNCLEAR)
		verdict = CL_ASK_AGAIN;
	if (weight < REPLY_OLD) {
		/* Changes of others may have passed unseen while there was no promise. */
		if (!held && object->in_flight && object->version != object->settled) {
			cache_settle_foreign(object);
			verdict = CL_DROP_CLEAN;
		}
		if (!held && object->rights_at < reply->note)
			object->rights_at = reply->note;
		accept_promise(object, reply, held, counts);
	}
	if (counts ||
	    (weight != REPLY_OLD && reply->sync && atomic_load(&object->volume->readonly)))
		store_rights(object, reply, status->CallerAccess);
	return verdict;
}

enum cl_verdict cl_cache_apply(struct cl_object *object, const struct cl_reply *reply,
			       const AFSFetchStatus *status, struct cl_status *known)
{
	struct cache_listing *dropped = NULL;
	enum cl_verdict verdict = CL_KEEP;
	struct cache_shard *shard;
	uint32_t epoch = 0;
	bool current = false;

	if (afs_status_usable(status))
		current = cache_volume_meet(object->volume, reply, &epoch, &verdict);
	shard = cache_lock_object(object);
	if (current) {
		verdict = apply_reply(shard, object, reply, status, epoch);
		/* Own changes in flight may bring the names to the version. */
		if (object->listing && object->listing->version != object->version &&
		    (!object->in_flight || object->settled == object->version))
			dropped = cache_take_listing(object);
	} else if (afs_status_usable(status)) {
		shard->counts.overtaken++;
	}
	if (known)
		cache_show_status(object, reply->sent, known);
	pthread_mutex_unlock(&shard->lock);
	cache_free_listing(dropped);
	return verdict;
}

/* -- doubts -------------------------------------------------------------------------------- */

static void end_promise(struct cl_object *object)
{
	object->broken_at = next_event(object->volume->cache);
	object->until = object->note = 0;
}

void cl_object_gone(struct cl_object *object)
{
	struct cache_shard *shard = cache_lock_object(object);
	struct cache_listing *dropped;

	end_promise(object);
	object->gone = true;
	object->taken_at = object->broken_at;
	object->epoch = (uint32_t)atomic_load(&object->volume->epoch);
	dropped = cache_take_listing(object);
	pthread_mutex_unlock(&shard->lock);
	cache_free_listing(dropped);
}

void cl_object_doubt(struct cl_object *object)
{
	struct cache_shard *shard = cache_lock_object(object);

	end_promise(object);
	pthread_mutex_unlock(&shard->lock);
}
