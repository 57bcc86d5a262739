/* SPDX-License-Identifier: BSD-2-Clause */
/* The file service: calls that are refused, because they write or are obsolete. */
#include <errno.h>

#include "fileserver/service/fs.h"

/* -EROFS, before names and rights are checked; but the volume must be one of ours. */
static int refuse_write(struct fs_call *call, const AFSFid *fid)
{
	if (fid->Volume == 0 || fid->Vnode == 0)
		return -EINVAL;
	if (fid->Volume != fsd_volume_id(call->service->volume) &&
	    !(call->service->rootafs && fid->Volume == FSD_ROOTAFS_ID))
		return AFS_VNOVOL;
	fsd_count(&call->service->counters.refused_writes, 1);
	return -EROFS;
}

/* The data of the request are not read. */
int32_t fs_store_data(void *context, rxw_call *rx, const AFSFid *fid, const AFSStoreStatus *ss,
		      uint32_t pos, uint32_t length, uint32_t file_length, AFSFetchStatus *st,
		      AFSVolSync *sync)
{
	(void)rx, (void)ss, (void)pos, (void)length, (void)file_length, (void)st, (void)sync;
	return refuse_write(context, fid);
}

int32_t fs_store_data64(void *context, rxw_call *rx, const AFSFid *fid, const AFSStoreStatus *ss,
			uint64_t pos, uint64_t length, uint64_t file_length, AFSFetchStatus *st,
			AFSVolSync *sync)
{
	(void)rx, (void)ss, (void)pos, (void)length, (void)file_length, (void)st, (void)sync;
	return refuse_write(context, fid);
}

int32_t fs_store_acl(void *context, rxw_call *rx, const AFSFid *dir, const AFSOpaque *acl,
		     AFSFetchStatus *st, AFSVolSync *sync)
{
	(void)rx, (void)acl, (void)st, (void)sync;
	return refuse_write(context, dir);
}

int32_t fs_store_status(void *context, rxw_call *rx, const AFSFid *fid, const AFSStoreStatus *ss,
			AFSFetchStatus *st, AFSVolSync *sync)
{
	(void)rx, (void)ss, (void)st, (void)sync;
	return refuse_write(context, fid);
}

int32_t fs_remove(void *context, rxw_call *rx, const AFSFid *dir, const char *name,
		  AFSFetchStatus *dir_st, AFSVolSync *sync)
{
	(void)rx, (void)name, (void)dir_st, (void)sync;
	return refuse_write(context, dir);
}

int32_t fs_create(void *context, rxw_call *rx, const AFSFid *dir, const char *name,
		  const AFSStoreStatus *ss, AFSFid *fid, AFSFetchStatus *st, AFSFetchStatus *dir_st,
		  AFSCallBack *cb, AFSVolSync *sync)
{
	(void)rx, (void)name, (void)ss, (void)fid, (void)st, (void)dir_st, (void)cb, (void)sync;
	return refuse_write(context, dir);
}

int32_t fs_rename(void *context, rxw_call *rx, const AFSFid *old_dir, const char *old_name,
		  const AFSFid *new_dir, const char *new_name, AFSFetchStatus *old_dir_st,
		  AFSFetchStatus *new_dir_st, AFSVolSync *sync)
{
	(void)rx, (void)old_name, (void)new_dir, (void)new_name;
	(void)old_dir_st, (void)new_dir_st, (void)sync;
	return refuse_write(context, old_dir);
}

int32_t fs_symlink(void *context, rxw_call *rx, const AFSFid *dir, const char *name,
		   const char *text, const AFSStoreStatus *ss, AFSFid *fid, AFSFetchStatus *st,
		   AFSFetchStatus *dir_st, AFSVolSync *sync)
{
	(void)rx, (void)name, (void)text, (void)ss, (void)fid, (void)st, (void)dir_st, (void)sync;
	return refuse_write(context, dir);
}

int32_t fs_link(void *context, rxw_call *rx, const AFSFid *dir, const char *name,
		const AFSFid *existing, AFSFetchStatus *st, AFSFetchStatus *dir_st,
		AFSVolSync *sync)
{
	(void)rx, (void)name, (void)existing, (void)st, (void)dir_st, (void)sync;
	return refuse_write(context, dir);
}

int32_t fs_set_volume_status(void *context, rxw_call *rx, int32_t volume,
			     const AFSStoreVolumeStatus *vst, const char *name,
			     const char *offline_msg, const char *motd)
{
	AFSFid root = {(uint32_t)volume, AFS_ROOT_VNODE, AFS_ROOT_UNIQUE};

	(void)rx, (void)vst, (void)name, (void)offline_msg, (void)motd;
	return refuse_write(context, &root);
}

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

/* Only for administrators, which the file service does not know. */
int32_t fs_flush_cps(void *context, rxw_call *rx, const ViceIds *ids, const IPAddrs *addrs,
		     int32_t spare1, int32_t *spare2, int32_t *spare3)
{
	(void)context, (void)rx, (void)ids, (void)addrs, (void)spare1, (void)spare2, (void)spare3;
	return -EPERM;
}

/* Callbacks go only to the address that the client calls from. */
int32_t fs_callback_address(void *context, rxw_call *rx, int32_t addr)
{
	(void)context, (void)rx, (void)addr;
	return -EPERM;
}
