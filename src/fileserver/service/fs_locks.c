/* SPDX-License-Identifier: BSD-2-Clause */
/* The file service: advisory locks on files. */
#include <errno.h>

#include "fileserver/base/base.h"
#include "fileserver/service/fs.h"
#include "fileserver/service/fs_handlers.h"

enum {
	LOCK_READ = 0,
	LOCK_WRITE = 1
};

static bool may_lock(const struct fs_call *call, bool write, const struct store_acl *acl,
		     const struct store_status *status)
{
	uint32_t rights = store_acl_rights(acl, &call->self);

	if ((rights & STORE_WRITE) || ((rights & STORE_INSERT) && status->owner == call->self.id))
		return true;
	return !write && (rights & STORE_LOCK);
}

/* A user, or the address of those who are not known. */
static void find_lock_share(const struct fs_call *call, struct fsd_share_key *who)
{
	if (call->self.id == STORE_ANONYMOUS)
		fsd_share_of_address(&call->running.peer, who);
	else
		fsd_share_of_user(call->self.id, who);
}

/*
 * Nobody can write to a volume that is only read, so every read lock is granted there and none is
 * recorded.
 */
int32_t fs_set_lock(void *context, rxw_call *rx, const AFSFid *fid, ViceLockType type,
		    AFSVolSync *sync)
{
	struct fs_call *call = context;
	struct fsd_share_key who;
	struct store_status status;
	struct store_acl acl;
	struct fs_place place;
	int rc = type == LOCK_READ || type == LOCK_WRITE ? fs_find(call, fid, &place) : -EINVAL;

	(void)rx;
	fs_note(call, fid, NULL);
	if (!rc)
		rc = fs_peek(call, &place, &acl, &status);
	if (rc)
		return rc;
	if (place.type != STORE_RW && type == LOCK_WRITE)
		return -EROFS;
	fs_sync(call, sync);
	if (!place.store->ops->create || place.type != STORE_RW)
		return 0;
	if (!may_lock(call, type == LOCK_WRITE, &acl, &status))
		return -EACCES;
	find_lock_share(call, &who);
	rc = fsd_lock_set(call->service->locks, &place.fid, &who, type == LOCK_WRITE, fsd_now());
	if (!rc)
		fsd_count(&call->service->counters.locks, 1);
	return rc;
}

/* Any client that knows the object may extend or release its lock. */
static int find_locked(struct fs_call *call, const AFSFid *fid, struct fs_place *place,
		       AFSVolSync *sync)
{
	struct store_status status;
	struct store_acl acl;
	int rc = fs_find(call, fid, place);

	fs_note(call, fid, NULL);
	if (rc)
		return rc;
	fs_sync(call, sync);
	return fs_peek(call, place, &acl, &status);
}

int32_t fs_extend_lock(void *context, rxw_call *rx, const AFSFid *fid, AFSVolSync *sync)
{
	struct fs_call *call = context;
	struct fs_place place;
	int rc = find_locked(call, fid, &place, sync);

	(void)rx;
	if (rc || place.type != STORE_RW)
		return rc;
	return fsd_lock_extend(call->service->locks, &place.fid, fsd_now());
}

int32_t fs_release_lock(void *context, rxw_call *rx, const AFSFid *fid, AFSVolSync *sync)
{
	struct fs_call *call = context;
	struct fs_place place;
	int rc = find_locked(call, fid, &place, sync);

	(void)rx;
	if (rc || place.type != STORE_RW)
		return rc;
	/* Clients that wait for the lock try again when their promise is broken. Nobody waits. */
	if (fsd_lock_release(call->service->locks, &place.fid, fsd_now()))
		fsd_promise_break(call->service->clients, fid, call->caller.host);
	return 0;
}

/* -- the same calls before their replies had a date: 143, 144, 145 -- */

int32_t fs_old_set_lock(void *context, rxw_call *rx, const AFSFid *fid, ViceLockType type,
			const AFSVolSync *sync)
{
	AFSVolSync unused = {0};

	(void)sync;
	return fs_set_lock(context, rx, fid, type, &unused);
}

int32_t fs_old_extend_lock(void *context, rxw_call *rx, const AFSFid *fid, const AFSVolSync *sync)
{
	AFSVolSync unused = {0};

	(void)sync;
	return fs_extend_lock(context, rx, fid, &unused);
}

int32_t fs_old_release_lock(void *context, rxw_call *rx, const AFSFid *fid, const AFSVolSync *sync)
{
	AFSVolSync unused = {0};

	(void)sync;
	return fs_release_lock(context, rx, fid, &unused);
}
