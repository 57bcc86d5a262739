/* SPDX-License-Identifier: BSD-2-Clause */
/* The file service: calls that change names, status and volumes. */
#include <errno.h>
#include <string.h>

#include "fileserver/base/base.h"
#include "fileserver/service/fs.h"
#include "fileserver/service/fs_handlers.h"

static AFSFid fid_of(const struct store_fid *fid)
{
	return (AFSFid){fid->volume, fid->vnode, fid->unique};
}

int32_t fs_store_status(void *context, rxw_call *rx, const AFSFid *fid, const AFSStoreStatus *ss,
			AFSFetchStatus *st, AFSVolSync *sync)
{
	struct fs_call *call = context;
	struct store_changes changes = {0};
	struct store_set set = fs_set(ss);
	struct store_status status;
	struct fs_place place;
	int rc = fs_find_to_write(call, fid, &place);

	(void)rx;
	fs_note(call, fid, NULL);
	if (!rc)
		rc = place.store->ops->set_status(place.store, &call->self, &place.fid, &set,
						  &status, &changes);
	rc = fs_finish(call, rc, &changes);
	if (rc)
		return rc;
	fs_fill(call, &status, st);
	fs_sync(call, sync);
	return 0;
}

/* -- new names -- */

/* A name to be made, and what the store says of it. */
struct making {
	struct fs_place place; /* of the directory */
	struct store_status status, dir_status;
};

static int make(struct fs_call *call, const AFSFid *dir, const char *name, enum store_kind kind,
		const char *text, const AFSStoreStatus *ss, struct making *making)
{
	struct store_changes changes = {0};
	struct store_set set = fs_set(ss);
	struct fs_place *place = &making->place;
	int rc = fs_find_to_write(call, dir, place);

	fs_note(call, dir, name);
	if (!rc)
		rc = place->store->ops->create(place->store, &call->self, &place->fid, name, kind,
					       text, &set, &making->status, &making->dir_status,
					       &changes);
	if (!rc && call->service->audit) {
		AFSFid made = fid_of(&making->status.fid);

		fs_note_other(call, &made, NULL);
	}
	return fs_finish(call, rc, &changes);
}

/*
 * The promise on a new object. Others may have changed it since it was made, so the status is read
 * again, after the promise was given. Without a right to that there is no promise.
 */
static void promise_new(struct fs_call *call, struct making *making, AFSCallBack *cb)
{
	struct fs_place place = making->place;
	struct store_status status;
	AFSFid promised;

	place.fid = making->status.fid;
	promised = fid_of(&place.fid);
	fs_promise(call, &place, false, cb);
	if (!cb->ExpirationTime)
		return;
	if (place.store->ops->status(place.store, &call->self, &place.fid, &status) ||
	    !fs_settled(call, &promised)) {
		fs_unpromise(call, &place);
		memset(cb, 0, sizeof(*cb));
		return;
	}
	making->status = status;
	call->promised = promised;
}

static int32_t make_object(void *context, const AFSFid *dir, const char *name, enum store_kind kind,
			   const AFSStoreStatus *ss, AFSFid *fid, AFSFetchStatus *st,
			   AFSFetchStatus *dir_st, AFSCallBack *cb, AFSVolSync *sync)
{
	struct fs_call *call = context;
	struct making making;
	int rc = make(call, dir, name, kind, NULL, ss, &making);

	if (rc)
		return rc;
	promise_new(call, &making, cb);
	*fid = fid_of(&making.status.fid);
	fs_fill(call, &making.status, st);
	fs_fill(call, &making.dir_status, dir_st);
	fs_sync(call, sync);
	return 0;
}

int32_t fs_create_file(void *context, rxw_call *rx, const AFSFid *dir, const char *name,
		       const AFSStoreStatus *ss, AFSFid *fid, AFSFetchStatus *st,
		       AFSFetchStatus *dir_st, AFSCallBack *cb, AFSVolSync *sync)
{
	(void)rx;
	return make_object(context, dir, name, STORE_FILE, ss, fid, st, dir_st, cb, sync);
}

int32_t fs_make_dir(void *context, rxw_call *rx, const AFSFid *dir, const char *name,
		    const AFSStoreStatus *ss, AFSFid *fid, AFSFetchStatus *st,
		    AFSFetchStatus *dir_st, AFSCallBack *cb, AFSVolSync *sync)
{
	(void)rx;
	return make_object(context, dir, name, STORE_DIR, ss, fid, st, dir_st, cb, sync);
}

/* The reply has no promise. */
int32_t fs_symlink(void *context, rxw_call *rx, const AFSFid *dir, const char *name,
		   const char *text, const AFSStoreStatus *ss, AFSFid *fid, AFSFetchStatus *st,
		   AFSFetchStatus *dir_st, AFSVolSync *sync)
{
	struct fs_call *call = context;
	struct making making;
	int rc = make(call, dir, name, STORE_SYMLINK, text, ss, &making);

	(void)rx;
	if (rc)
		return rc;
	*fid = fid_of(&making.status.fid);
	fs_fill(call, &making.status, st);
	fs_fill(call, &making.dir_status, dir_st);
	fs_sync(call, sync);
	return 0;
}

/* Before anything else about two objects. */
static bool same_volume(const AFSFid *a, const AFSFid *b)
{
	return a->Volume == b->Volume;
}

int32_t fs_link(void *context, rxw_call *rx, const AFSFid *dir, const char *name,
		const AFSFid *existing, AFSFetchStatus *st, AFSFetchStatus *dir_st,
		AFSVolSync *sync)
{
	struct fs_call *call = context;
	const struct store_fid object = {existing->Volume, existing->Vnode, existing->Unique};
	struct store_status status, dir_status;
	struct store_changes changes = {0};
	struct fs_place place;
	int rc = same_volume(dir, existing) ? fs_find_to_write(call, dir, &place) : -EXDEV;

	(void)rx;
	fs_note(call, dir, name);
	fs_note_other(call, existing, NULL);
	fs_touch(call, existing);
	if (!rc && (existing->Volume == 0 || existing->Vnode == 0))
		rc = -EINVAL;
	if (!rc)
		rc = place.store->ops->link(place.store, &call->self, &place.fid, name, &object,
					    &status, &dir_status, &changes);
	rc = fs_finish(call, rc, &changes);
	if (rc)
		return rc;
	fs_fill(call, &status, st);
	fs_fill(call, &dir_status, dir_st);
	fs_sync(call, sync);
	return 0;
}

/* -- old names -- */

static int32_t remove_name(void *context, const AFSFid *dir, const char *name, enum store_kind kind,
			   AFSFetchStatus *dir_st, AFSVolSync *sync)
{
	struct fs_call *call = context;
	struct store_changes changes = {0};
	struct store_status status;
	struct fs_place place;
	int rc = fs_find_to_write(call, dir, &place);

	fs_note(call, dir, name);
	if (!rc)
		rc = place.store->ops->remove(place.store, &call->self, &place.fid, name, kind,
					      &status, &changes);
	rc = fs_finish(call, rc, &changes);
	if (rc)
		return rc;
	fs_fill(call, &status, dir_st);
	fs_sync(call, sync);
	return 0;
}

int32_t fs_remove_file(void *context, rxw_call *rx, const AFSFid *dir, const char *name,
		       AFSFetchStatus *dir_st, AFSVolSync *sync)
{
	(void)rx;
	return remove_name(context, dir, name, STORE_FILE, dir_st, sync);
}

int32_t fs_remove_dir(void *context, rxw_call *rx, const AFSFid *dir, const char *name,
		      AFSFetchStatus *dir_st, AFSVolSync *sync)
{
	(void)rx;
	return remove_name(context, dir, name, STORE_DIR, dir_st, sync);
}

int32_t fs_rename(void *context, rxw_call *rx, const AFSFid *old_dir, const char *old_name,
		  const AFSFid *new_dir, const char *new_name, AFSFetchStatus *old_dir_st,
		  AFSFetchStatus *new_dir_st, AFSVolSync *sync)
{
	struct fs_call *call = context;
	const struct store_fid to = {new_dir->Volume, new_dir->Vnode, new_dir->Unique};
	struct store_status old_status, new_status;
	struct store_changes changes = {0};
	struct fs_place place;
	int rc = same_volume(old_dir, new_dir) ? fs_find_to_write(call, old_dir, &place) : -EXDEV;

	(void)rx;
	fs_note(call, old_dir, old_name);
	fs_note_other(call, new_dir, new_name);
	fs_touch(call, new_dir);
	if (!rc && (new_dir->Volume == 0 || new_dir->Vnode == 0))
		rc = -EINVAL;
	if (!rc)
		rc = place.store->ops->rename(place.store, &call->self, &place.fid, old_name, &to,
					      new_name, &old_status, &new_status, &changes);
	rc = fs_finish(call, rc, &changes);
	if (rc)
		return rc;
	fs_fill(call, &old_status, old_dir_st);
	fs_fill(call, &new_status, new_dir_st);
	fs_sync(call, sync);
	return 0;
}

/* -- volumes -- */

#define SET_MAX_QUOTA 2 /* bit 1, MinQuota, is for partitions of another kind */
/* Bits of volume_set() */
#define VOLUME_QUOTA   1u
#define VOLUME_MESSAGE 2u

int32_t fs_set_volume_status(void *context, rxw_call *rx, int32_t volume,
			     const AFSStoreVolumeStatus *vst, const char *name,
			     const char *offline_msg, const char *motd)
{
	struct fs_call *call = context;
	const AFSFid root = {(uint32_t)volume, AFS_ROOT_VNODE, AFS_ROOT_UNIQUE};
	struct store_volume set = {0};
	struct fs_place place;
	unsigned mask = 0;
	int rc = fs_find_to_write(call, &root, &place);

	(void)rx, (void)name, (void)motd;
	fs_note(call, &root, NULL);
	if (rc)
		return rc;
	if (place.type != STORE_RW)
		return -EROFS;
	if (!call->self.administrator)
		return -EACCES;
	if ((vst->Mask & SET_MAX_QUOTA) && vst->MaxQuota < 0)
		return -EINVAL;
	if (strlen(offline_msg) >= sizeof(set.offline_message))
		return -EINVAL;
	if (vst->Mask & SET_MAX_QUOTA) {
		mask |= VOLUME_QUOTA;
		set.quota_kib = (uint64_t)vst->MaxQuota;
	}
	if (*offline_msg) {
		mask |= VOLUME_MESSAGE;
		strcpy(set.offline_message, offline_msg);
	}
	if (!mask)
		return 0;
	rc = place.store->ops->volume_set(place.store, &call->self, place.fid.volume, mask, &set);
	if (!rc)
		fsd_count(&call->service->counters.changes, 1);
	return rc;
}
