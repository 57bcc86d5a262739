/* SPDX-License-Identifier: BSD-2-Clause */
/* The status of an object: until when it may be used, and how it is stored. */
#include "client/cache/steps.h"

#include "afs/fetchstatus.h"

uint64_t cache_valid_until(const struct cl_object *object, uint64_t now)
{
	struct cache_volume *volume = object->volume;

	if (!object->kind || object->gone ||
	    object->epoch != (uint32_t)atomic_load_explicit(&volume->epoch, memory_order_acquire))
		return 0;
	if (atomic_load_explicit(&volume->readonly, memory_order_relaxed))
		return cache_volume_valid_until(volume, object->note, now);
	if (object->until <= now ||
	    object->note < atomic_load_explicit(&volume->broken_at, memory_order_acquire) ||
	    object->note < cache_reset_of(volume->cache, object->server))
		return 0;
	return object->until;
}

void cache_show_status(const struct cl_object *object, uint64_t now, struct cl_status *status)
{
	*status = (struct cl_status){
		.size = object->size,
		.version = object->version,
		.clean_from = object->clean_from,
		.valid_until = cache_valid_until(object, now),
		.order = object->taken_at,
		.incarnation = object->sync,
		.links = object->links,
		.owner = object->owner,
		.group = object->group,
		.author = object->author,
		.modified = object->modified,
		.changed = object->changed,
		.parent_vnode = object->parent_vnode,
		.parent_unique = object->parent_unique,
		.anonymous = object->anonymous,
		.locks = object->locks,
		.mode = object->mode,
		.kind = object->kind,
	};
}

bool cache_same_status(const struct cl_object *object, const AFSFetchStatus *status)
{
	return object->kind == status->FileType && object->size == afs_status_length(status) &&
	       object->version == afs_status_version(status) &&
	       object->links == status->LinkCount && object->owner == status->Owner &&
	       object->group == status->Group && object->author == status->Author &&
	       object->modified == status->ClientModTime &&
	       object->changed == status->ServerModTime &&
	       object->parent_vnode == status->ParentVnode &&
	       object->parent_unique == status->ParentUnique &&
	       object->anonymous == status->AnonymousAccess &&
	       object->locks == (int32_t)status->lockCount &&
	       object->mode == (status->UnixModeBits & 07777);
}

void cache_store_status(struct cl_object *object, const struct cl_reply *reply,
			const AFSFetchStatus *status, uint32_t epoch)
{
	/* Promise and rights were for other contents. */
	if (object->epoch != epoch) {
		object->until = object->note = 0;
		object->rights_count = 0;
	}
	/* The access list has changed: the break that says so may still be under way. */
	if (object->anonymous != status->AnonymousAccess && object->rights_at < reply->note)
		object->rights_at = reply->note;
	object->kind = (uint8_t)status->FileType;
	object->gone = false;
	object->size = afs_status_length(status);
	object->version = afs_status_version(status);
	object->links = status->LinkCount;
	object->owner = status->Owner;
	object->group = status->Group;
	object->author = status->Author;
	object->modified = status->ClientModTime;
	object->changed = status->ServerModTime;
	object->parent_vnode = status->ParentVnode;
	object->parent_unique = status->ParentUnique;
	object->anonymous = status->AnonymousAccess;
	object->locks = (int32_t)status->lockCount;
	object->mode = status->UnixModeBits & 07777;
	object->epoch = epoch;
	object->sent = reply->sent;
	/* Versions come again in a release that follows a restore, but not with the same time. */
	object->sync = atomic_load(&object->volume->readonly)
			       ? status->ServerModTime
			       : (uint32_t)atomic_load(&object->volume->sync);
}
