/* SPDX-License-Identifier: BSD-2-Clause */
/* The file service: obsolete calls, which are refused. */
#include <errno.h>

#include "fileserver/service/fs.h"
#include "fileserver/service/fs_handlers.h"

/* File servers have not looked up volumes by name for decades. */
int32_t fs_volume_info(void *context, rxw_call *rx, const char *name, VolumeInfo *info)
{
	(void)context, (void)rx, (void)name, (void)info;
	return AFS_VNOVOL;
}

int32_t fs_nvolume_info(void *context, rxw_call *rx, const char *name, AFSVolumeInfo *info)
{
	(void)context, (void)rx, (void)name, (void)info;
	return AFS_VNOVOL;
}

int32_t fs_lookup(void *context, rxw_call *rx, const AFSFid *dir, const char *name, AFSFid *fid,
		  AFSFetchStatus *st, AFSFetchStatus *dir_st, AFSCallBack *cb, AFSVolSync *sync)
{
	(void)context, (void)rx, (void)dir, (void)name, (void)fid;
	(void)st, (void)dir_st, (void)cb, (void)sync;
	return -EINVAL;
}

int32_t fs_dfs_symlink(void *context, rxw_call *rx, const AFSFid *dir, const char *name,
		       const char *text, const AFSStoreStatus *ss, AFSFid *fid, AFSFetchStatus *st,
		       AFSFetchStatus *dir_st, AFSCallBack *cb, AFSVolSync *sync)
{
	(void)context, (void)rx, (void)dir, (void)name, (void)text, (void)ss;
	(void)fid, (void)st, (void)dir_st, (void)cb, (void)sync;
	return -EINVAL;
}

int32_t fs_command(void *context, rxw_call *rx, const AFSFid *fid, const FsCmdInputs *in,
		   FsCmdOutputs *out)
{
	(void)context, (void)rx, (void)fid, (void)in, (void)out;
	return -EINVAL;
}

/* Memberships are looked up at each call, so there is nothing to flush. */
int32_t fs_flush_cps(void *context, rxw_call *rx, const ViceIds *ids, const IPAddrs *addrs,
		     int32_t spare1, int32_t *spare2, int32_t *spare3)
{
	const struct fs_call *call = context;

	(void)rx, (void)ids, (void)addrs, (void)spare1;
	*spare2 = *spare3 = 0;
	return call->self.administrator ? 0 : -EPERM;
}

/* Callbacks go only to the address that the client calls from. */
int32_t fs_callback_address(void *context, rxw_call *rx, int32_t addr)
{
	(void)context, (void)rx, (void)addr;
	return -EPERM;
}
