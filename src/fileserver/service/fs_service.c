/* SPDX-License-Identifier: BSD-2-Clause */
/* The file service: its procedures, and the steps before and after each call. */
#include <errno.h>
#include <rxwire/error.h>

#include "fileserver/base/base.h"
#include "fileserver/service/fs.h"

/*
 * OldSetLock, OldExtendLock, OldReleaseLock, GetRootVolume and CheckToken are missing: the few
 * clients that make these calls fall back when they are refused as unknown.
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

/* Calls that reveal nothing about files: every caller is served, as by OpenAFS. */
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

/* Before anything is decoded: identify the caller and check the protection of the call. */
static int32_t enter(void *context, rxw_call *rx, int32_t opcode, int function)
{
	struct fs_call *call = context;
	struct sockaddr_storage *peer = &call->running.peer;
	socklen_t length = sizeof(*peer);

	rxw_call_peer(rx, peer, &length);
	call->running.procedure = function >= 0 ? RXAFS_function_names[function] : "unknown";
	call->running.since = fsd_now();
	fsd_running_add(&call->service->running, &call->running);
	fsd_clients_enter(call->service->clients, peer, (uint32_t)opcode, call->running.since,
			  &call->caller);
	if (fsd_guard_asks(call->service->guard))
		fsd_guard_enter(call->service->guard, FSD_FS, rx, &call->who);
	/* InlineBulkStatus reports the refusal for each object. */
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
	fsd_running_remove(&call.service->running, &call.running);
	fsd_count(&counters->calls, 1);
	if (code)
		fsd_count(&counters->failed, 1);
	return code;
}
