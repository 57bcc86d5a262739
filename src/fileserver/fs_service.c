/* SPDX-License-Identifier: BSD-2-Clause */
/* The file service: its procedures, and what surrounds each call. */
#include <errno.h>
#include <string.h>
#include <rxwire/error.h>

#include "fileserver/callbacks.h"
#include "fileserver/fs_private.h"

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
	sync->spare1 = fsd_volume_creation(call->service->volume);
}

int fs_may(const struct fs_call *call, const char *path)
{
	const struct fsd_guard *guard = call->service->guard;

	return !guard || fsd_guard_may(guard, &call->who, path) ? 0 : -EACCES;
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
	int rc = fs_promise(call, fid, bulk, object, cb);

	if (rc)
		return rc;
	rc = fsd_volume_get(call->service->volume, fid, call->caller.host, object);
	if (rc)
		fs_unpromise(call, fid);
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

/* Before anything is decoded: who calls? */
static int32_t enter(void *context, rxw_call *rx, int32_t opcode, int function)
{
	struct fs_call *call = context;
	struct sockaddr_storage peer = {0};
	socklen_t length = sizeof(peer);

	(void)function;
	rxw_call_peer(rx, &peer, &length);
	fsd_clients_enter(call->service->clients, &peer, (uint32_t)opcode, fsd_now(),
			  &call->caller);
	if (fsd_guard_asks(call->service->guard))
		fsd_guard_enter(call->service->guard, rx, &call->who);
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
