/* SPDX-License-Identifier: BSD-2-Clause */
/* What the parts of the file service share: one call in progress, and the functions that serve. */
#ifndef FILESERVER_FS_PRIVATE_H
#define FILESERVER_FS_PRIVATE_H

#include "afs/numbers.h"
#include "afs/rxafs.h"
#include "fileserver/service/private.h"

/*
 * One call; lies on the stack of fsd_fs_serve() and is the `context` of its handler. A handler
 * returns 0 or a result as in volume.h, which fsd_fs_serve() translates for the client.
 */
struct fs_call {
	struct fsd_service *service;
	struct fsd_caller caller;
	struct fsd_who who; /* anonymous where nobody asks */
	/*
	 * Promised by this call; taken back if it fails, also when that is only seen behind the
	 * handler. Volume 0: nothing.
	 */
	AFSFid promised;
	bool rootafs; /* the object that was looked at last is of that volume */
	struct fsd_running_call running;
};

/* Whether the caller may see a path of the export: 0, or -EACCES. */
int fs_may(const struct fs_call *call, const char *path);
/*
 * Put into the status of an object, as fsd_volume_get() left it, what the caller and what an
 * anonymous one may do with it under --require and --allow. Clients serve cached data to processes
 * without a token by the latter. *authenticated, which may be NULL: what all may do who have one.
 */
void fs_rights(const struct fs_call *call, struct fsd_object *object, uint32_t *authenticated);

/* The date of the volume of the object that was looked at last, in every reply. */
void fs_sync(const struct fs_call *call, AFSVolSync *sync);

/*
 * Status of an object with a promise on it, in the order that loses no change: watch, promise,
 * look. *cb is zero if there is no promise.
 */
int fs_status(struct fs_call *call, const AFSFid *fid, bool bulk, struct fsd_object *object,
	      AFSCallBack *cb);
/*
 * Only the promise: for those who look by themselves afterwards. Drop it with fs_unpromise() if
 * that fails.
 */
int fs_promise(struct fs_call *call, const AFSFid *fid, bool bulk, struct fsd_object *object,
	       AFSCallBack *cb);
void fs_unpromise(struct fs_call *call, const AFSFid *fid);
/*
 * Whether an object belongs to root.afs; then *rc is 0 or a result, and object->status is filled.
 * These may be NULL: bytes and size, the image or the text of a mount point; cb, a promise.
 */
bool fs_rootafs(struct fs_call *call, const AFSFid *fid, struct fsd_object *object,
		const uint8_t **bytes, size_t *size, AFSCallBack *cb, int *rc);
/* The number that goes on the wire for a result. */
int32_t fs_code(const struct fs_call *call, int result);

/* -- handlers: members of struct RXAFS_handlers, in order of the files -- */

/* fs_fetch.c */
int32_t fs_fetch_data(void *context, rxw_call *rx, const AFSFid *fid, int32_t pos, int32_t length,
		      AFSFetchStatus *st, AFSCallBack *cb, AFSVolSync *sync);
int32_t fs_fetch_data64(void *context, rxw_call *rx, const AFSFid *fid, int64_t pos, int64_t length,
			AFSFetchStatus *st, AFSCallBack *cb, AFSVolSync *sync);

/* fs_status.c */
int32_t fs_fetch_status(void *context, rxw_call *rx, const AFSFid *fid, AFSFetchStatus *st,
			AFSCallBack *cb, AFSVolSync *sync);
int32_t fs_fetch_acl(void *context, rxw_call *rx, const AFSFid *fid, AFSOpaque *acl,
		     AFSFetchStatus *st, AFSVolSync *sync);
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
int32_t fs_set_lock(void *context, rxw_call *rx, const AFSFid *fid, ViceLockType type,
		    AFSVolSync *sync);
int32_t fs_keep_lock(void *context, rxw_call *rx, const AFSFid *fid, AFSVolSync *sync);

/* fs_stats.c */
int32_t fs_statistics(void *context, rxw_call *rx, ViceStatistics *stats);
int32_t fs_statistics64(void *context, rxw_call *rx, int32_t version, ViceStatistics64 *stats);
int32_t fs_xstats_version(void *context, rxw_call *rx, int32_t *version);
int32_t fs_xstats(void *context, rxw_call *rx, int32_t client_version, int32_t collection,
		  int32_t *server_version, int32_t *time, AFS_CollData *data);

/* fs_refuse.c: what writes, then what nobody needs any more. */
int32_t fs_store_data(void *context, rxw_call *rx, const AFSFid *fid, const AFSStoreStatus *ss,
		      uint32_t pos, uint32_t length, uint32_t file_length, AFSFetchStatus *st,
		      AFSVolSync *sync);
int32_t fs_store_data64(void *context, rxw_call *rx, const AFSFid *fid, const AFSStoreStatus *ss,
			uint64_t pos, uint64_t length, uint64_t file_length, AFSFetchStatus *st,
			AFSVolSync *sync);
int32_t fs_store_acl(void *context, rxw_call *rx, const AFSFid *dir, const AFSOpaque *acl,
		     AFSFetchStatus *st, AFSVolSync *sync);
int32_t fs_store_status(void *context, rxw_call *rx, const AFSFid *fid, const AFSStoreStatus *ss,
			AFSFetchStatus *st, AFSVolSync *sync);
int32_t fs_remove(void *context, rxw_call *rx, const AFSFid *dir, const char *name,
		  AFSFetchStatus *dir_st, AFSVolSync *sync);
int32_t fs_create(void *context, rxw_call *rx, const AFSFid *dir, const char *name,
		  const AFSStoreStatus *ss, AFSFid *fid, AFSFetchStatus *st, AFSFetchStatus *dir_st,
		  AFSCallBack *cb, AFSVolSync *sync);
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
int32_t fs_volume_info(void *context, rxw_call *rx, const char *name, VolumeInfo *info);
int32_t fs_nvolume_info(void *context, rxw_call *rx, const char *name, AFSVolumeInfo *info);
int32_t fs_lookup(void *context, rxw_call *rx, const AFSFid *dir, const char *name, AFSFid *fid,
		  AFSFetchStatus *st, AFSFetchStatus *dir_st, AFSCallBack *cb, AFSVolSync *sync);
int32_t fs_dfs_symlink(void *context, rxw_call *rx, const AFSFid *dir, const char *name,
		       const char *text, const AFSStoreStatus *ss, AFSFid *fid, AFSFetchStatus *st,
		       AFSFetchStatus *dir_st, AFSCallBack *cb, AFSVolSync *sync);
int32_t fs_flush_cps(void *context, rxw_call *rx, const ViceIds *ids, const IPAddrs *addrs,
		     int32_t spare1, int32_t *spare2, int32_t *spare3);
int32_t fs_command(void *context, rxw_call *rx, const AFSFid *fid, const FsCmdInputs *in,
		   FsCmdOutputs *out);
int32_t fs_callback_address(void *context, rxw_call *rx, int32_t addr);

#endif
