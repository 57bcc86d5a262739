/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the file service: the handlers of the procedures. */
#ifndef FS_HANDLERS_H
#define FS_HANDLERS_H

#include "afs/rxafs.h"

/* -- handlers: members of struct RXAFS_handlers, by file -- */

/* fs_fetch.c */
int32_t fs_fetch_data(void *context, rxw_call *rx, const AFSFid *fid, int32_t pos, int32_t length,
		      AFSFetchStatus *st, AFSCallBack *cb, AFSVolSync *sync);
int32_t fs_fetch_data64(void *context, rxw_call *rx, const AFSFid *fid, int64_t pos, int64_t length,
			AFSFetchStatus *st, AFSCallBack *cb, AFSVolSync *sync);

/* fs_status.c */
int32_t fs_fetch_status(void *context, rxw_call *rx, const AFSFid *fid, AFSFetchStatus *st,
			AFSCallBack *cb, AFSVolSync *sync);
int32_t fs_bulk_status(void *context, rxw_call *rx, const AFSCBFids *fids, AFSBulkStats *sts,
		       AFSCBs *cbs, AFSVolSync *sync);
int32_t fs_inline_bulk_status(void *context, rxw_call *rx, const AFSCBFids *fids, AFSBulkStats *sts,
			      AFSCBs *cbs, AFSVolSync *sync);
int32_t fs_volume_status(void *context, rxw_call *rx, int32_t volume, AFSFetchVolumeStatus *vst,
			 char **name, char **offline_msg, char **motd);
int32_t fs_give_up(void *context, rxw_call *rx, const AFSCBFids *fids, const AFSCBs *cbs);
int32_t fs_give_up_all(void *context, rxw_call *rx);
int32_t fs_get_time(void *context, rxw_call *rx, uint32_t *seconds, uint32_t *useconds);
int32_t fs_capabilities(void *context, rxw_call *rx, Capabilities *caps);

/* fs_locks.c */
int32_t fs_set_lock(void *context, rxw_call *rx, const AFSFid *fid, ViceLockType type,
		    AFSVolSync *sync);
int32_t fs_extend_lock(void *context, rxw_call *rx, const AFSFid *fid, AFSVolSync *sync);
int32_t fs_release_lock(void *context, rxw_call *rx, const AFSFid *fid, AFSVolSync *sync);
int32_t fs_old_set_lock(void *context, rxw_call *rx, const AFSFid *fid, ViceLockType type,
			const AFSVolSync *sync);
int32_t fs_old_extend_lock(void *context, rxw_call *rx, const AFSFid *fid, const AFSVolSync *sync);
int32_t fs_old_release_lock(void *context, rxw_call *rx, const AFSFid *fid, const AFSVolSync *sync);

/* fs_acl.c */
int32_t fs_fetch_acl(void *context, rxw_call *rx, const AFSFid *fid, AFSOpaque *acl,
		     AFSFetchStatus *st, AFSVolSync *sync);
int32_t fs_store_acl(void *context, rxw_call *rx, const AFSFid *dir, const AFSOpaque *acl,
		     AFSFetchStatus *st, AFSVolSync *sync);

/* fs_stats.c */
int32_t fs_statistics(void *context, rxw_call *rx, ViceStatistics *stats);
int32_t fs_statistics64(void *context, rxw_call *rx, int32_t version, ViceStatistics64 *stats);
int32_t fs_xstats_version(void *context, rxw_call *rx, int32_t *version);
int32_t fs_xstats(void *context, rxw_call *rx, int32_t client_version, int32_t collection,
		  int32_t *server_version, int32_t *time, AFS_CollData *data);

/* fs_store.c */
int32_t fs_store_data(void *context, rxw_call *rx, const AFSFid *fid, const AFSStoreStatus *ss,
		      uint32_t pos, uint32_t length, uint32_t file_length, AFSFetchStatus *st,
		      AFSVolSync *sync);
int32_t fs_store_data64(void *context, rxw_call *rx, const AFSFid *fid, const AFSStoreStatus *ss,
			uint64_t pos, uint64_t length, uint64_t file_length, AFSFetchStatus *st,
			AFSVolSync *sync);
int32_t fs_store_range(void *context, rxw_call *rx, const StoreSession *id, uint64_t pos,
		       uint64_t length, uint64_t *taken);

/* fs_session.c */
int32_t fs_begin_store(void *context, rxw_call *rx, const AFSFid *fid, const AFSStoreStatus *ss,
		       uint64_t length, StoreSession *session);
int32_t fs_end_store(void *context, rxw_call *rx, const StoreSession *id, int32_t commit,
		     uint64_t bytes, AFSFetchStatus *st, AFSVolSync *sync);

/* fs_change.c */
int32_t fs_store_status(void *context, rxw_call *rx, const AFSFid *fid, const AFSStoreStatus *ss,
			AFSFetchStatus *st, AFSVolSync *sync);
int32_t fs_remove_file(void *context, rxw_call *rx, const AFSFid *dir, const char *name,
		       AFSFetchStatus *dir_st, AFSVolSync *sync);
int32_t fs_remove_dir(void *context, rxw_call *rx, const AFSFid *dir, const char *name,
		      AFSFetchStatus *dir_st, AFSVolSync *sync);
int32_t fs_create_file(void *context, rxw_call *rx, const AFSFid *dir, const char *name,
		       const AFSStoreStatus *ss, AFSFid *fid, AFSFetchStatus *st,
		       AFSFetchStatus *dir_st, AFSCallBack *cb, AFSVolSync *sync);
int32_t fs_make_dir(void *context, rxw_call *rx, const AFSFid *dir, const char *name,
		    const AFSStoreStatus *ss, AFSFid *fid, AFSFetchStatus *st,
		    AFSFetchStatus *dir_st, AFSCallBack *cb, AFSVolSync *sync);
int32_t fs_rename(void *context, rxw_call *rx, const AFSFid *old_dir, const char *old_name,
		  const AFSFid *new_dir, const char *new_name, AFSFetchStatus *old_dir_st,
		  AFSFetchStatus *new_dir_st, AFSVolSync *sync);
int32_t fs_symlink(void *context, rxw_call *rx, const AFSFid *dir, const char *name,
		   const char *text, const AFSStoreStatus *ss, AFSFid *fid, AFSFetchStatus *st,
		   AFSFetchStatus *dir_st, AFSVolSync *sync);
int32_t fs_link(void *context, rxw_call *rx, const AFSFid *dir, const char *name,
		const AFSFid *existing, AFSFetchStatus *st, AFSFetchStatus *dir_st,
		AFSVolSync *sync);
int32_t fs_set_volume_status(void *context, rxw_call *rx, int32_t volume,
			     const AFSStoreVolumeStatus *vst, const char *name,
			     const char *offline_msg, const char *motd);

/* The members of a status that a call sets, for the store. */
static inline struct store_set fs_set(const AFSStoreStatus *ss)
{
	return (struct store_set){.mask = ss->Mask,
				  .mtime = ss->ClientModTime,
				  .owner = (int32_t)ss->Owner,
				  .group = ss->Group,
				  .mode = ss->UnixModeBits};
}

#endif
