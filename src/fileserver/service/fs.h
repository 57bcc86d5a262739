/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the file service: a call in progress, and the handlers of the procedures. */
#ifndef FILESERVER_FS_PRIVATE_H
#define FILESERVER_FS_PRIVATE_H

#include "afs/numbers.h"
#include "afs/rxafs.h"
#include "fileserver/service/private.h"

/*
 * A call, on the stack of fsd_fs_serve(); the `context` of its handler. A handler returns 0 or a
 * result as in volume.h, which fsd_fs_serve() translates for the client.
 */
struct fs_call {
	struct fsd_service *service;
	struct fsd_caller caller;
	struct fsd_who who; /* anonymous if callers are not identified */
	/*
	 * The object of the promise that this call gave. The promise is dropped if the call fails,
	 * even after its handler has returned. Volume 0: none.
	 */
	AFSFid promised;
	bool rootafs; /* the last object that was looked up belongs to root.afs */
	struct fsd_running_call running;
};

/* Whether the caller may see a path of the export: 0, or -EACCES. */
int fs_may(const struct fs_call *call, const char *path);
/*
 * Set the rights in the status of an object that fsd_volume_get() has filled: those of the caller,
 * and those of anonymous callers, under --require and --allow. Clients use the latter for processes
 * without a token. *authenticated: the rights of every caller with a token; may be NULL.
 */
void fs_rights(const struct fs_call *call, struct fsd_object *object, uint32_t *authenticated);

/* The date of the volume of the last object, which every reply has. */
void fs_sync(const struct fs_call *call, AFSVolSync *sync);

/*
 * Give a promise on an object and read its status, in the order that misses no change: watch,
 * promise, status. *cb is zero if there is no promise.
 */
int fs_status(struct fs_call *call, const AFSFid *fid, bool bulk, struct fsd_object *object,
	      AFSCallBack *cb);
/*
 * Only the promise, for callers that read the status themselves afterwards. Drop it with
 * fs_unpromise() if that fails.
 */
int fs_promise(struct fs_call *call, const AFSFid *fid, bool bulk, struct fsd_object *object,
	       AFSCallBack *cb);
void fs_unpromise(struct fs_call *call, const AFSFid *fid);
/*
 * Whether an object belongs to root.afs; then *rc is 0 or a result, and object->status is filled.
 * May be NULL: bytes and size (the image, or the text of a mount point), cb (the promise).
 */
bool fs_rootafs(struct fs_call *call, const AFSFid *fid, struct fsd_object *object,
		const uint8_t **bytes, size_t *size, AFSCallBack *cb, int *rc);
/* The code that is sent for a result. */
int32_t fs_code(const struct fs_call *call, int result);

/* -- handlers: members of struct RXAFS_handlers, by file -- */

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

/* fs_refuse.c: procedures that write, then obsolete ones. */
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
