/* SPDX-License-Identifier: BSD-2-Clause */
/* The file service: its procedures, and the steps before and after each call. */
#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "fileserver/service/fs.h"
#include "fileserver/service/fs_handlers.h"

#define ROUNDS 4 /* the user, its machine, and answers that came too late */

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

/* All memberships are looked up again, not only those of these users and machines. */
static int32_t fs_flush_cps(void *context, rxw_call *rx, const ViceIds *ids, const IPAddrs *addrs,
			    int32_t spare1, int32_t *spare2, int32_t *spare3)
{
	const struct fs_call *call = context;
	struct fsd_people *people = call->service->people;

	(void)rx, (void)ids, (void)addrs, (void)spare1;
	*spare2 = *spare3 = 0;
	if (!call->self.administrator)
		return -EPERM;
	if (people)
		people->ops->forget(people);
	return 0;
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
	.BeginStore = fs_begin_store,
	.StoreRange = fs_store_range,
	.EndStore = fs_end_store,
};

/* This runs before anything is decoded. */
static int32_t enter_fs_call(void *context, rxw_call *rx, int32_t opcode, int function)
{
	return fs_enter(context, rx, opcode, function);
}

/* The code of the call, if nobody else answers it: *left. */
static int32_t serve_identified(struct fs_call *call, bool *left)
{
	struct RXAFS_service rxafs = {.base = {.context = call, .enter = enter_fs_call},
				      .handlers = &handlers};
	int32_t code;

	*left = false;
	call->left = left;
	code = RXAFS_ExecuteRequest(call->rx, &rxafs);
	if (*left)
		return 0;
	code = fs_code(call, code);
	if (code)
		fsd_promise_undo(call->service->clients, &call->caller, &call->promised);
	fs_audit(call, code);
	return code;
}

/* On a thread that may wait. */
static void serve_after_answer(struct fsd_job *job)
{
	struct fs_call *call =
		(struct fs_call *)(void *)((char *)job - offsetof(struct fs_call, job));
	bool left;
	int32_t code;

	call->asker.final = ++call->rounds >= ROUNDS;
	fsd_asker_begin(&call->asker);
	call->nameless = fs_identify(call, &call->asker);
	if (call->nameless == -EAGAIN) {
		fsd_asker_end(&call->asker);
		return;
	}
	code = serve_identified(call, &left);
	if (left)
		return;
	/* Nothing waits for a part of the request that is still missing. The client sends all of it again. */
	if (code == RXW_RPC_SS_UNMARSHAL || code == RXW_RPC_DECODE)
		code = AFS_VBUSY;
	rxw_call_end(call->rx, code, NULL);
	fs_end(call, code);
}

/* Any thread, which must not wait. */
static void resume_call(struct fsd_asker *asker)
{
	fs_run_asked((struct fs_call *)(void *)((char *)asker - offsetof(struct fs_call, asker)),
		     serve_after_answer);
}

/* Somebody has to be asked who the caller is. False: too many calls wait. */
static bool ask_for_caller(struct fs_call *call)
{
	bool left;

	call->left = &left;
	if (!fs_defer(call))
		return false;
	call->asker.ready = resume_call;
	resume_call(&call->asker);
	return true;
}

int32_t fsd_fs_serve(rxw_call *rx, void *service)
{
	struct fs_call *call = calloc(1, sizeof(*call));
	bool left;
	int32_t code;

	if (!call)
		return AFS_VBUSY;
	call->service = service;
	call->rx = rx;
	call->nameless = fs_identify(call, NULL);
	if (call->nameless == -EAGAIN) {
		if (ask_for_caller(call))
			return 0;
		call->nameless = AFS_VBUSY;
	}
	code = serve_identified(call, &left);
	if (left)
		return 0;
	fs_leave(call);
	fs_count(call, code);
	free(call);
	return code;
}
