/* SPDX-License-Identifier: BSD-2-Clause */
/* The file service: its procedures, and the steps before and after each call. */
#include <errno.h>
#include <stdlib.h>

#include "fileserver/service/fs.h"
#include "fileserver/service/fs_handlers.h"

/* -- obsolete calls, which are refused -- */

/* File servers have not looked up volumes by name for decades. */
static int32_t fs_volume_info(void *context, rxw_call *rx, const char *name, VolumeInfo *info)
{
	(void)context, (void)rx, (void)name, (void)info;
	return AFS_VNOVOL;
}

static int32_t fs_nvolume_info(void *context, rxw_call *rx, const char *name, AFSVolumeInfo *info)
{
	(void)context, (void)rx, (void)name, (void)info;
	return AFS_VNOVOL;
}

static int32_t fs_lookup(void *context, rxw_call *rx, const AFSFid *dir, const char *name,
			 AFSFid *fid, AFSFetchStatus *st, AFSFetchStatus *dir_st, AFSCallBack *cb,
			 AFSVolSync *sync)
{
	(void)context, (void)rx, (void)dir, (void)name, (void)fid;
	(void)st, (void)dir_st, (void)cb, (void)sync;
	return -EINVAL;
}

static int32_t fs_dfs_symlink(void *context, rxw_call *rx, const AFSFid *dir, const char *name,
			      const char *text, const AFSStoreStatus *ss, AFSFid *fid,
			      AFSFetchStatus *st, AFSFetchStatus *dir_st, AFSCallBack *cb,
			      AFSVolSync *sync)
{
	(void)context, (void)rx, (void)dir, (void)name, (void)text, (void)ss;
	(void)fid, (void)st, (void)dir_st, (void)cb, (void)sync;
	return -EINVAL;
}

static int32_t fs_command(void *context, rxw_call *rx, const AFSFid *fid, const FsCmdInputs *in,
			  FsCmdOutputs *out)
{
	(void)context, (void)rx, (void)fid, (void)in, (void)out;
	return -EINVAL;
}

/* Memberships are looked up at each call, so there is nothing to flush. */
static int32_t fs_flush_cps(void *context, rxw_call *rx, const ViceIds *ids, const IPAddrs *addrs,
			    int32_t spare1, int32_t *spare2, int32_t *spare3)
{
	const struct fs_call *call = context;

	(void)rx, (void)ids, (void)addrs, (void)spare1;
	*spare2 = *spare3 = 0;
	return call->self.administrator ? 0 : -EPERM;
}

/* Callbacks go only to the address that the client calls from. */
static int32_t fs_callback_address(void *context, rxw_call *rx, int32_t addr)
{
	(void)context, (void)rx, (void)addr;
	return -EPERM;
}

/* -- the procedures -- */

/*
 * GetRootVolume and CheckToken are missing: the few clients that make these calls fall back when they
 * are refused as unknown.
 */
static const struct RXAFS_handlers handlers = {
	.FetchData = fs_fetch_data,
	.FetchACL = fs_fetch_acl,
	.FetchStatus = fs_fetch_status,
	.StoreData = fs_store_data,
	.OldStoreACL = fs_store_acl,
	.StoreStatus = fs_store_status,
	.RemoveFile = fs_remove_file,
	.CreateFile = fs_create_file,
	.Rename = fs_rename,
	.Symlink = fs_symlink,
	.Link = fs_link,
	.MakeDir = fs_make_dir,
	.RemoveDir = fs_remove_dir,
	.OldSetLock = fs_old_set_lock,
	.OldExtendLock = fs_old_extend_lock,
	.OldReleaseLock = fs_old_release_lock,
	.GetStatistics = fs_statistics,
	.GiveUpCallBacks = fs_give_up,
	.GetVolumeInfo = fs_volume_info,
	.GetVolumeStatus = fs_volume_status,
	.SetVolumeStatus = fs_set_volume_status,
	.GetTime = fs_get_time,
	.NGetVolumeInfo = fs_nvolume_info,
	.BulkStatus = fs_bulk_status,
	.SetLock = fs_set_lock,
	.ExtendLock = fs_extend_lock,
	.ReleaseLock = fs_release_lock,
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

/* This runs before anything is decoded. */
static int32_t enter_fs_call(void *context, rxw_call *rx, int32_t opcode, int function)
{
	return fs_enter(context, rx, opcode, function);
}

int32_t fsd_fs_serve(rxw_call *rx, void *service)
{
	struct fs_call *call = calloc(1, sizeof(*call));
	struct RXAFS_service rxafs = {.base = {.context = call, .enter = enter_fs_call},
				      .handlers = &handlers};
	bool left = false;
	int32_t code;

	if (!call)
		return AFS_VBUSY;
	call->service = service;
	call->rx = rx;
	call->left = &left;
	code = RXAFS_ExecuteRequest(rx, &rxafs);
	if (left)
		return 0;
	code = fs_code(call, code);
	if (code)
		fsd_promise_undo(call->service->clients, &call->caller, &call->promised);
	fs_audit(call, code);
	fs_leave(call);
	fs_count(call, code);
	free(call);
	return code;
}
