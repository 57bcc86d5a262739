/* SPDX-License-Identifier: BSD-2-Clause */
/* Own changes: their replies in the order of data versions, and what they leave of the contents that are held. */
#include "client/cache/steps.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "afs/fetchstatus.h"
#include "common/held.h"

static void start_change(struct cl_object *object, bool raises)
{
	struct cache_shard *shard;

	cl_object_hold(object);
	shard = cache_lock_object(object);
	if (!object->in_flight)
		object->settled = object->version;
	object->in_flight++;
	object->raising += raises;
	pthread_mutex_unlock(&shard->lock);
}

void cl_change_begin(struct cl_object *object)
{
	start_change(object, true);
}

void cl_change_begin_quiet(struct cl_object *object)
{
	start_change(object, false);
}

void cl_object_moved(struct cl_object *object, uint32_t vnode, uint32_t unique)
{
	struct cl_edit edit = {.added = "..", .added_length = 2, .vnode = vnode, .unique = unique};
	struct cache_shard *shard = cache_lock_object(object);
	struct cache_listing *dropped = NULL;

	object->parent_vnode = vnode;
	object->parent_unique = unique;
	/* The server raises the version of a moved directory, and breaks the promise. */
	if (object->listing && !cache_edit_listing(object, object->listing->version, &edit))
		dropped = cache_take_listing(object);
	pthread_mutex_unlock(&shard->lock);
	cache_free_listing(dropped);
}

/* -- order --------------------------------------------------------------------------------- */

/* Copy a name behind the structure. */
static char *copy_name(const char **name, char *at, size_t length)
{
	if (!*name)
		return at;
	memcpy(at, *name, length);
	*name = at;
	return at + length;
}

/* False: no memory. */
static bool add_pending(struct cl_object *object, uint64_t version, const struct cl_edit *edit)
{
	static const struct cl_edit nothing;
	struct cache_pending *pending, **at = &object->pending;
	char *text;

	if (!edit)
		edit = &nothing;
	pending = malloc(sizeof(*pending) + edit->removed_length + edit->added_length);
	if (!pending)
		return false;
	pending->version = version;
	pending->edit = *edit;
	text = copy_name(&pending->edit.removed, pending->text, edit->removed_length);
	copy_name(&pending->edit.added, text, edit->added_length);
	while (*at && (*at)->version < version)
		at = &(*at)->next;
	pending->next = *at;
	*at = pending;
	return true;
}

/* The names after an own change. They are dropped if they are not those of the version before. */
static void edit_names(struct cl_object *object, uint64_t version, const struct cl_edit *edit,
		       struct cache_listing **dropped)
{
	if (!object->listing || object->listing->version >= version)
		return;
	if (object->listing->version + 1 == version && cache_edit_listing(object, version, edit))
		return;
	assert(!*dropped);
	*dropped = cache_take_listing(object);
}

/* Account for the change that led to `version`, and for those that waited for it. */
static void settle_own(struct cl_object *object, uint64_t version, const struct cl_edit *edit,
		       struct cache_listing **dropped)
{
	assert(version == object->settled + 1);
	object->settled = version;
	edit_names(object, version, edit, dropped);
	while (object->pending && object->pending->version <= object->settled + 1) {
		struct cache_pending *next = object->pending;

		object->pending = next->next;
		if (next->version == object->settled + 1) {
			object->settled = next->version;
			edit_names(object, next->version, &next->edit, dropped);
		}
		free(next);
	}
}

/* How many replies wait for earlier ones. */
static unsigned count_pending(const struct cl_object *object)
{
	unsigned count = 0;

	for (const struct cache_pending *p = object->pending; p; p = p->next)
		count++;
	return count;
}

/*
 * Find the place of a reply among the own changes. False: others have changed the contents, too. `others`: own changes whose replies have
 * not come.
 */
static bool order_reply(struct cache_shard *shard, struct cl_object *object,
			const struct cl_effect *effect, unsigned others, bool held,
			struct cache_listing **dropped)
{
	uint64_t version = afs_status_version(effect->status);
	uint64_t known = object->settled + count_pending(object);

	if (version <= object->settled)
		return true;
	if (!effect->raised) /* it shows the version of a change whose reply has not come: see own_may_explain() */
		return object->kind == RXAFS_DIRECTORY &&
		       (version <= known || (held && version <= known + others));
	if (version == object->settled + 1) {
		settle_own(object, version, effect->edit, dropped);
		return true;
	}
	if (version > known + 1 + others || !add_pending(object, version, effect->edit))
		return false;
	shard->counts.reordered++;
	return true;
}

/* -- replies ------------------------------------------------------------------------------- */

static void end_raise(struct cl_object *object, const struct cl_effect *effect)
{
	if (effect->raised && object->raising)
		object->raising--;
	if (object->raising >= object->in_flight)
		object->raising = object->in_flight - 1;
}

static void mark_changed(struct cl_object *object, const struct cl_effect *effect)
{
	object->changed_at = next_event(object->volume->cache);
	if (effect->acl)
		object->rights_at = object->changed_at;
}

/* Ask again: what the change did is not known exactly. */
static void doubt_change(struct cl_object *object)
{
	object->broken_at = object->changed_at;
	object->until = object->note = 0;
}

/*
 * Take the status in the reply to an own change. The promise stays, since the server breaks those of others only. If a status of the same
 * version was taken while this change was in flight, and neither is the newer one, the next use asks.
 */
static void take_own_status(struct cl_object *object, const struct cl_reply *reply,
			    const AFSFetchStatus *status, uint32_t epoch)
{
	uint64_t version = afs_status_version(status);
	bool same = object->kind && object->version == version;

	if (object->kind && version < object->version)
		return;
	if (same && !cache_same_status(object, status) && reply->note < object->taken_at) {
		if (status->ServerModTime < object->changed)
			return;
		if (status->ServerModTime == object->changed)
			doubt_change(object);
	}
	if (!object->kind)
		object->clean_from = version;
	cache_store_status(object, reply, status, epoch);
	object->taken_at = object->changed_at;
}

static void change_is_foreign(struct cache_shard *shard, struct cl_object *object,
			      struct cache_listing **dropped)
{
	shard->counts.conflicts++;
	cache_settle_foreign(object);
	if (!*dropped && object->listing && object->listing->version != object->version)
		*dropped = cache_take_listing(object);
}

/* The reply of a change that was carried out, with a status of this object. */
static enum cl_verdict take_own_reply(struct cache_shard *shard, struct cl_object *object,
				      const struct cl_effect *effect, uint32_t epoch,
				      struct cache_listing **dropped)
{
	bool held = cache_valid_until(object, effect->reply->sent) != 0;
	bool known = object->kind != 0 && object->epoch == epoch, ours = true;

	mark_changed(object, effect);
	end_raise(object, effect);
	if (known) {
		ours = order_reply(shard, object, effect, object->raising, held, dropped);
	} else {
		object->kind = 0;
		cache_drop_pending(object);
		*dropped = cache_take_listing(object);
	}
	take_own_status(object, effect->reply, effect->status, epoch);
	if (!known)
		object->settled = object->version;
	/* What a change without an answer had led to is undone: it may come again. */
	if (cache_is_doubted(object, object->version, effect->reply->sent))
		doubt_change(object);
	if (ours)
		return known ? CL_KEEP : CL_DROP_CLEAN;
	change_is_foreign(shard, object, dropped);
	doubt_change(object);
	return CL_DROP_CLEAN;
}

/* After the last change in flight nothing is left that could explain a gap. */
static enum cl_verdict finish_changes(struct cache_shard *shard, struct cl_object *object,
				      struct cache_listing **dropped)
{
	assert(mutex_is_held(&shard->lock) && object->in_flight > object->raising);
	if (--object->in_flight > 0 || (!object->pending && object->version == object->settled))
		return CL_KEEP;
	change_is_foreign(shard, object, dropped);
	return CL_DROP_CLEAN;
}

static void doubt_unknown(struct cl_object *object, const struct cl_effect *effect)
{
	if (effect->outcome == CL_UNKNOWN)
		cache_doubt_object(object, effect->edit, effect->now);
	mark_changed(object, effect);
	doubt_change(object);
}

enum cl_verdict cl_change_end(struct cl_object *object, const struct cl_effect *effect,
			      struct cl_status *known)
{
	struct cache_listing *dropped = NULL;
	enum cl_verdict verdict = CL_KEEP, last;
	struct cache_shard *shard;
	uint32_t epoch = 0;
	bool usable = effect->outcome == CL_DONE && effect->status &&
		      afs_status_usable(effect->status) &&
		      cache_volume_meet(object->volume, effect->reply, &epoch, &verdict);

	shard = cache_lock_object(object);
	if (usable)
		verdict = take_own_reply(shard, object, effect, epoch, &dropped);
	else if (effect->outcome != CL_NOT_DONE)
		doubt_unknown(object, effect);
	if (!usable) {
		verdict = CL_KEEP; /* the next status says more */
		end_raise(object, effect);
	}
	last = finish_changes(shard, object, &dropped);
	if (known)
		cache_show_status(object, effect->reply ? effect->reply->sent : effect->now, known);
	pthread_mutex_unlock(&shard->lock);
	cache_free_listing(dropped);
	cl_object_put(object);
	return last > verdict ? last : verdict;
}
