/* SPDX-License-Identifier: BSD-2-Clause */
/* The file service: a call in progress; status, rights and promises of its objects. */
#include <errno.h>
#include <string.h>
#include <rxwire/error.h>
#include <rxwire/rpc.h>

#include "fileserver/base/base.h"
#include "fileserver/service/fs.h"

void fs_sync(const struct fs_call *call, AFSVolSync *sync)
{
	const struct fsd_service *service = call->service;

	sync->spare1 = call->rootafs	   ? fsd_rootafs_date(service->rootafs)
		       : service->released ? service->released
					   : fsd_volume_creation(service->volume);
}

int fs_may(const struct fs_call *call, const char *path)
{
	return fsd_guard_may(call->service->guard, &call->who, path) ? 0 : -EACCES;
}

/* Those of the rights that the caller has under --allow. */
static uint32_t rights_of(const struct fs_call *call, const struct fsd_who *who,
			  const struct fsd_object *object, uint32_t rights)
{
	enum fsd_sight sight = fsd_guard_may(call->service->guard, who, object->path);

	if (sight == FSD_SIGHT_NONE)
		return 0;
	/* These two rights of a directory apply to the files in it. */
	if (sight == FSD_SIGHT_WAY && object->record.kind == FSD_DIR)
		return rights & ~(uint32_t)(AFS_RIGHT_READ | AFS_RIGHT_LOCK);
	return rights;
}

void fs_rights(const struct fs_call *call, struct fsd_object *object, uint32_t *authenticated)
{
	const struct fsd_who anonymous = {.refused =
						  fsd_guard_protects(call->service->guard, FSD_FS)};
	const struct fsd_who somebody = {.authenticated = true};
	uint32_t rights = object->status.CallerAccess;

	object->status.CallerAccess = rights_of(call, &call->who, object, rights);
	object->status.AnonymousAccess = rights_of(call, &anonymous, object, rights);
	if (authenticated)
		*authenticated = rights_of(call, &somebody, object, rights);
}

/* root.afs never changes while the server runs, so its promises need no record. */
#define ROOTAFS_PROMISE_S 7200

bool fs_rootafs(struct fs_call *call, const AFSFid *fid, struct fsd_object *object,
		const uint8_t **bytes, size_t *size, AFSCallBack *cb, int *rc)
{
	const struct fsd_service *service = call->service;
	const AFSFetchStatus *status;
	const uint8_t *its_bytes;
	size_t its_size;

	call->rootafs = service->rootafs && fid->Volume == FSD_ROOTAFS_ID && fid->Vnode;
	if (!call->rootafs)
		return false;
	*rc = call->who.refused
		      ? -EACCES
		      : fsd_rootafs_get(service->rootafs, fid, &status, &its_bytes, &its_size);
	if (*rc)
		return true;
	object->fid = *fid;
	object->status = *status;
	if (fsd_guard_protects(service->guard, FSD_FS))
		object->status.AnonymousAccess = 0;
	if (bytes)
		*bytes = its_bytes;
	if (size)
		*size = its_size;
	if (cb && call->caller.host)
		*cb = (AFSCallBack){CALLBACK_VERSION, ROOTAFS_PROMISE_S, CB_SHARED};
	return true;
}

int fs_promise(struct fs_call *call, const AFSFid *fid, bool bulk, struct fsd_object *object,
	       AFSCallBack *cb)
{
	struct fsd_service *service = call->service;
	uint32_t seconds;
	int rc = fsd_volume_path(service->volume, fid, object->path, &object->record);

	memset(cb, 0, sizeof(*cb));
	if (!rc)
		rc = fs_may(call, object->path);
	if (rc)
		return rc;
	seconds = fsd_promise_give(service->clients, &call->caller, fid, bulk, fsd_now());
	if (seconds) {
		if (service->watch)
			fsd_watch_add(service->watch, &object->record, object->path);
		*cb = (AFSCallBack){CALLBACK_VERSION, seconds, CB_SHARED};
	}
	return 0;
}

void fs_unpromise(struct fs_call *call, const AFSFid *fid)
{
	fsd_promise_drop(call->service->clients, &call->caller, fid);
}

int fs_status(struct fs_call *call, const AFSFid *fid, bool bulk, struct fsd_object *object,
	      AFSCallBack *cb)
{
	int rc;

	memset(cb, 0, sizeof(*cb));
	if (call->who.refused)
		return -EACCES;
	if (fs_rootafs(call, fid, object, NULL, NULL, cb, &rc))
		return rc;
	rc = fs_promise(call, fid, bulk, object, cb);
	if (rc)
		return rc;
	rc = fsd_volume_get(call->service->volume, fid, call->caller.host, object);
	if (!rc)
		rc = fs_may(call, object->path); /* it may have moved since */
	if (rc)
		fs_unpromise(call, fid);
	else
		fs_rights(call, object, NULL);
	return rc;
}

int32_t fs_code(const struct fs_call *call, int result)
{
	if (result >= 0)
		return result;
	if (result == FSD_LOST)
		return RXW_USER_ABORT;
	if (result <= RXW_RPC_CC_MARSHAL)
		return result;

	int err = -result;

	if (call->caller.uae)
		return rxw_code_from_errno(err);
	/* These errno values have another meaning in AFS. */
	return (err >= 101 && err <= 112) || err == 120 ? EIO : err;
}
