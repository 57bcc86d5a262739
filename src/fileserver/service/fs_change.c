/* SPDX-License-Identifier: BSD-2-Clause */
/* The file service: calls that change names, status and volumes. */
#include <errno.h>
#include <string.h>
#include <rxwire/rpc.h>

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
	if (rc)
		goto out;
	rc = place.store->ops->set_status(place.store, &call->self, &place.fid, &set, &status,
					  &changes);
out:
	rc = fs_finish(call, rc, &changes);
	if (rc)
		return rc;
	fs_fill(call, &status, st);
	fs_sync(call, sync);
	return 0;
}

/* -- new names -- */

/* A name, and the directory that it is or will be in. The copies outlive the handler. */
static int begin_change(struct fs_call *call, const AFSFid *dir, const char *name)
{
	struct fs_change *change = &call->change;
	size_t length = strnlen(name, sizeof(change->name) - 1);
	int rc = fs_find_to_write(call, dir, &change->place);

	fs_note(call, dir, name);
	memcpy(change->name, name, length);
	return rc;
}

/* begin_change() has found the place. */
static int make_in_place(struct fs_call *call, const struct store_caller *self, const char *text)
{
	struct fs_change *change = &call->change;
	struct store *store = change->place.store;

	return store->ops->create(store, self, &change->place.fid, change->name, change->kind, text,
				  &change->set, &change->status, &change->dir_status,
				  &change->changes);
}

static int make_again(struct fs_call *call)
{
	return make_in_place(call, &call->self, NULL);
}

static int make_new_object(struct fs_call *call, const struct store_caller *self, const AFSFid *dir,
			   const char *name, enum store_kind kind, const char *text,
			   const AFSStoreStatus *ss)
{
	struct fs_change *change = &call->change;
	int rc = begin_change(call, dir, name);

	if (rc)
		return rc;
	change->kind = kind;
	change->set = fs_set(ss);
	return make_in_place(call, self, text);
}

static void note_made(struct fs_call *call)
{
	AFSFid made = fid_of(&call->change.status.fid);

	if (call->service->audit)
		fs_note_other(call, &made, NULL);
}

/*
 * The promise on a new object. Others may have changed it since it was made, so the status is read
 * again, after the promise was given. Without a right to that there is no promise.
 */
static void promise_new(struct fs_call *call, AFSCallBack *cb)
{
	struct fs_change *change = &call->change;
	struct fs_place place = change->place;
	struct store_status status;
	AFSFid made;

	place.fid = change->status.fid;
	made = fid_of(&place.fid);
	fs_promise(call, &place, cb);
	if (!cb->ExpirationTime)
		return;
	if (place.store->ops->status(place.store, &call->self, &place.fid, &status) ||
	    !fs_settled(call, &made)) {
		fs_unpromise(call);
		memset(cb, 0, sizeof(*cb));
		return;
	}
	change->status = status;
}

/* The results of CreateFile and MakeDir. */
struct made {
	AFSFid *fid;
	AFSFetchStatus *st, *dir_st;
	AFSCallBack *cb;
	AFSVolSync *sync;
};

static void fill_made(struct fs_call *call, const struct made *made)
{
	promise_new(call, made->cb);
	*made->fid = fid_of(&call->change.status.fid);
	fs_fill(call, &call->change.status, made->st);
	fs_fill(call, &call->change.dir_status, made->dir_st);
	fs_sync(call, made->sync);
}

/* The handler has returned. The audit record is written before the call and its names are freed. */
static void reply_made(struct fs_call *call, int result,
		       int32_t (*reply)(rxw_call *rx, int32_t code, const AFSFid *fid,
					const AFSFetchStatus *st, const AFSFetchStatus *dir_st,
					const AFSCallBack *cb, const AFSVolSync *sync))
{
	int32_t code = fs_code(call, result);
	AFSFid fid = {0};
	AFSFetchStatus st = {0}, dir_st = {0};
	AFSCallBack cb = {0};
	AFSVolSync sync = {0};

	if (!result) {
		note_made(call);
		fill_made(call, &(struct made){&fid, &st, &dir_st, &cb, &sync});
	}
	fs_audit(call, code);
	fs_end(call, reply(call->rx, code, &fid, &st, &dir_st, &cb, &sync));
}

static void reply_file(struct fs_call *call, int result)
{
	reply_made(call, result, RXAFS_CreateFile_reply);
}

static void reply_dir(struct fs_call *call, int result)
{
	reply_made(call, result, RXAFS_MakeDir_reply);
}

static int32_t make_object(struct fs_call *call, const AFSFid *dir, const char *name,
			   enum store_kind kind, const AFSStoreStatus *ss, const struct made *made)
{
	const struct store_caller *self =
		fs_self_later(call, kind == STORE_DIR ? reply_dir : reply_file, make_again);
	int rc = make_new_object(call, self, dir, name, kind, NULL, ss);

	if (rc == STORE_LATER)
		return RXW_RPC_DEFERRED;
	if (!rc)
		note_made(call);
	rc = fs_finish(call, rc, &call->change.changes);
	if (!rc)
		fill_made(call, made);
	return rc;
}

int32_t fs_create_file(void *context, rxw_call *rx, const AFSFid *dir, const char *name,
		       const AFSStoreStatus *ss, AFSFid *fid, AFSFetchStatus *st,
		       AFSFetchStatus *dir_st, AFSCallBack *cb, AFSVolSync *sync)
{
	(void)rx;
	return make_object(context, dir, name, STORE_FILE, ss,
			   &(struct made){fid, st, dir_st, cb, sync});
}

int32_t fs_make_dir(void *context, rxw_call *rx, const AFSFid *dir, const char *name,
		    const AFSStoreStatus *ss, AFSFid *fid, AFSFetchStatus *st,
		    AFSFetchStatus *dir_st, AFSCallBack *cb, AFSVolSync *sync)
{
	(void)rx;
	return make_object(context, dir, name, STORE_DIR, ss,
			   &(struct made){fid, st, dir_st, cb, sync});
}

/* The reply has no promise. */
int32_t fs_symlink(void *context, rxw_call *rx, const AFSFid *dir, const char *name,
		   const char *text, const AFSStoreStatus *ss, AFSFid *fid, AFSFetchStatus *st,
		   AFSFetchStatus *dir_st, AFSVolSync *sync)
{
	struct fs_call *call = context;
	int rc = make_new_object(call, &call->self, dir, name, STORE_SYMLINK, text, ss);

	(void)rx;
	if (!rc)
		note_made(call);
	rc = fs_finish(call, rc, &call->change.changes);
	if (rc)
		return rc;
	*fid = fid_of(&call->change.status.fid);
	fs_fill(call, &call->change.status, st);
	fs_fill(call, &call->change.dir_status, dir_st);
	fs_sync(call, sync);
	return 0;
}

/* This is checked before anything else about two objects. */
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
	if (rc)
		goto out;
	if (existing->Volume == 0 || existing->Vnode == 0)
		rc = -EINVAL;
	if (rc)
		goto out;
	rc = place.store->ops->link(place.store, &call->self, &place.fid, name, &object, &status,
				    &dir_status, &changes);
out:
	rc = fs_finish(call, rc, &changes);
	if (rc)
		return rc;
	fs_fill(call, &status, st);
	fs_fill(call, &dir_status, dir_st);
	fs_sync(call, sync);
	return 0;
}

/* -- old names -- */

static void reply_removed(struct fs_call *call, int result,
			  int32_t (*reply)(rxw_call *rx, int32_t code, const AFSFetchStatus *dir_st,
					   const AFSVolSync *sync))
{
	int32_t code = fs_code(call, result);
	AFSFetchStatus dir_st = {0};
	AFSVolSync sync = {0};

	if (!result) {
		fs_fill(call, &call->change.dir_status, &dir_st);
		fs_sync(call, &sync);
	}
	fs_audit(call, code);
	fs_end(call, reply(call->rx, code, &dir_st, &sync));
}

static void reply_file_removed(struct fs_call *call, int result)
{
	reply_removed(call, result, RXAFS_RemoveFile_reply);
}

static void reply_dir_removed(struct fs_call *call, int result)
{
	reply_removed(call, result, RXAFS_RemoveDir_reply);
}

static int remove_in_place(struct fs_call *call, const struct store_caller *self)
{
	struct fs_change *change = &call->change;
	struct store *store = change->place.store;

	return store->ops->remove(store, self, &change->place.fid, change->name, change->kind,
				  &change->dir_status, &change->changes);
}

static int remove_again(struct fs_call *call)
{
	return remove_in_place(call, &call->self);
}

static int32_t remove_name(struct fs_call *call, const AFSFid *dir, const char *name,
			   enum store_kind kind, AFSFetchStatus *dir_st, AFSVolSync *sync)
{
	struct fs_change *change = &call->change;
	const struct store_caller *self = fs_self_later(
		call, kind == STORE_DIR ? reply_dir_removed : reply_file_removed, remove_again);
	int rc = begin_change(call, dir, name);

	change->kind = kind;
	if (!rc)
		rc = remove_in_place(call, self);
	if (rc == STORE_LATER)
		return RXW_RPC_DEFERRED;
	rc = fs_finish(call, rc, &change->changes);
	if (rc)
		return rc;
	fs_fill(call, &change->dir_status, dir_st);
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

/* A rename between volumes: the store decides which error comes first, without a look at either. */
static int rename_across(struct fs_call *call, const AFSFid *old_dir, const char *old_name,
			 const struct store_fid *to, const char *new_name)
{
	const struct store_fid from = {old_dir->Volume, old_dir->Vnode, old_dir->Unique};
	struct store *store = call->service->store;
	struct store_status old_status, new_status;
	struct store_changes changes = {0};

	if (!store->ops->rename)
		return -EXDEV;
	return store->ops->rename(store, &call->self, &from, old_name, to, new_name, &old_status,
				  &new_status, &changes);
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
	int rc = same_volume(old_dir, new_dir)
			 ? fs_find_to_write(call, old_dir, &place)
			 : rename_across(call, old_dir, old_name, &to, new_name);

	(void)rx;
	fs_note(call, old_dir, old_name);
	fs_note_other(call, new_dir, new_name);
	fs_touch(call, new_dir);
	if (rc)
		goto out;
	if (new_dir->Volume == 0 || new_dir->Vnode == 0)
		rc = -EINVAL;
	if (rc)
		goto out;
	rc = place.store->ops->rename(place.store, &call->self, &place.fid, old_name, &to, new_name,
				      &old_status, &new_status, &changes);
out:
	rc = fs_finish(call, rc, &changes);
	if (rc)
		return rc;
	fs_fill(call, &old_status, old_dir_st);
	fs_fill(call, &new_status, new_dir_st);
	fs_sync(call, sync);
	return 0;
}

/* -- volumes -- */

#define SET_MIN_QUOTA 1
#define SET_MAX_QUOTA 2
/* Bits of volume_set() */
#define VOLUME_QUOTA   1u
#define VOLUME_MESSAGE 2u
#define VOLUME_MINIMUM 4u

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
	if (vst->Mask & SET_MIN_QUOTA) {
		mask |= VOLUME_MINIMUM;
		set.minimum = vst->MinQuota;
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
