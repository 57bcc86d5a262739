/* SPDX-License-Identifier: BSD-2-Clause */
/* The file service: its procedures, and what surrounds each call. */
#include <errno.h>
#include <string.h>
#include <rxwire/error.h>

#include "fileserver/callbacks/callbacks.h"
#include "fileserver/service/fs_private.h"

/*
 * Without OldSetLock, OldExtendLock, OldReleaseLock, GetRootVolume and CheckToken: clients fall
 * back, if they know these calls at all, when they are told that they are unknown.
 */
static const struct RXAFS_handlers handlers = {
	.FetchData = fs_fetch_data,
	.FetchACL = fs_fetch_acl,
	.FetchStatus = fs_fetch_status,
	.StoreData = fs_store_data,
	.OldStoreACL = fs_store_acl,
	.StoreStatus = fs_store_status,
	.RemoveFile = fs_remove,
	.CreateFile = fs_create,
	.Rename = fs_rename,
	.Symlink = fs_symlink,
	.Link = fs_link,
	.MakeDir = fs_create,
	.RemoveDir = fs_remove,
	.GetStatistics = fs_statistics,
	.GiveUpCallBacks = fs_give_up,
	.GetVolumeInfo = fs_volume_info,
	.GetVolumeStatus = fs_volume_status,
	.SetVolumeStatus = fs_set_volume_status,
	.GetTime = fs_get_time,
	.NGetVolumeInfo = fs_nvolume_info,
	.BulkStatus = fs_bulk_status,
	.SetLock = fs_set_lock,
	.ExtendLock = fs_keep_lock,
	.ReleaseLock = fs_keep_lock,
	.XStatsVersion = fs_xstats_version,
	.GetXStats = fs_xstats,
	.Lookup = fs_lookup,
	.FlushCPS = fs_flush_cps,
	.DFSSymlink = fs_dfs_symlink,
	.FsCmd = fs_command,
	.InlineBulkStatus = fs_inline_bulk_status,
	.FetchData64 = fs_fetch_data64,
	.StoreData64 = fs_store_data64,
	.GiveUpAllCallBacks = fs_give_up_all,
	.GetCapabilities = fs_capabilities,
	.CallBackRxConnAddr = fs_callback_address,
	.GetStatistics64 = fs_statistics64,
	.StoreACL = fs_store_acl,
};

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

/* Of the rights that the tree gives to everybody, those that somebody has under --allow. */
static uint32_t rights_of(const struct fs_call *call, const struct fsd_who *who,
			  const struct fsd_object *object, uint32_t rights)
{
	enum fsd_sight sight = fsd_guard_may(call->service->guard, who, object->path);

	if (sight == FSD_SIGHT_NONE)
		return 0;
	/* Of a directory these two say what may be done with the files in it. */
	if (sight == FSD_SIGHT_WAY && object->record.kind == FSD_DIR)
		return rights & ~(uint32_t)(AFS_RIGHT_READ | AFS_RIGHT_LOCK);
	return rights;
}

void fs_rights(const struct fs_call *call, struct fsd_object *object, uint32_t *authenticated)
{
	const struct fsd_who anonymous = {
		.refused = fsd_guard_protects(call->service->guard, FSD_FS)};
	const struct fsd_who somebody = {.authenticated = true};
	uint32_t rights = object->status.CallerAccess;

	object->status.CallerAccess = rights_of(call, &call->who, object, rights);
	object->status.AnonymousAccess = rights_of(call, &anonymous, object, rights);
	if (authenticated)
		*authenticated = rights_of(call, &somebody, object, rights);
}

/* It never changes while the server runs: a promise is given and needs no record. */
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
	*rc = call->who.refused ? -EACCES
				: fsd_rootafs_get(service->rootafs, fid, &status, &its_bytes,
						  &its_size);
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
	/* These raw numbers mean something else in AFS. */
	return (err >= 101 && err <= 112) || err == 120 ? EIO : err;
}

/* Calls that tell nothing of the files: whoever calls is served, as by OpenAFS. */
static bool is_for_all(int32_t opcode)
{
	switch (opcode) {
	case RXAFS_OP_GetTime:
	case RXAFS_OP_GetCapabilities:
	case RXAFS_OP_GetStatistics:
	case RXAFS_OP_GetStatistics64:
	case RXAFS_OP_XStatsVersion:
	case RXAFS_OP_GetXStats:
	case RXAFS_OP_GetVolumeStatus:
	case RXAFS_OP_GiveUpCallBacks:
	case RXAFS_OP_GiveUpAllCallBacks:
		return true;
	default:
		return false;
	}
}

/* Before anything is decoded: who calls, and is that enough? */
static int32_t enter(void *context, rxw_call *rx, int32_t opcode, int function)
{
	struct fs_call *call = context;
	struct sockaddr_storage peer = {0};
	socklen_t length = sizeof(peer);

	rxw_call_peer(rx, &peer, &length);
	fsd_clients_enter(call->service->clients, &peer, (uint32_t)opcode, fsd_now(),
			  &call->caller);
	if (fsd_guard_asks(call->service->guard))
		fsd_guard_enter(call->service->guard, FSD_FS, rx, &call->who);
	/* A bulk status says of each object that it is refused. */
	if (call->who.refused && function >= 0 && opcode != RXAFS_OP_InlineBulkStatus &&
	    !is_for_all(opcode))
		return call->who.weak ? call->who.weak : -EACCES;
	return 0;
}

int32_t fsd_fs_serve(rxw_call *rx, void *service)
{
	struct fs_call call = {.service = service};
	struct RXAFS_service rxafs = {.base = {.context = &call, .enter = enter},
				      .handlers = &handlers};
	struct fsd_counters *counters = &call.service->counters;
	int32_t code = fs_code(&call, RXAFS_ExecuteRequest(rx, &rxafs));

	if (code && call.promised.Volume)
		fs_unpromise(&call, &call.promised);
	fsd_clients_leave(call.service->clients, &call.caller);
	fsd_count(&counters->calls, 1);
	if (code)
		fsd_count(&counters->failed, 1);
	return code;
}
