/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the file service: a call in progress, and the handlers of the procedures. */
#ifndef FILESERVER_FS_PRIVATE_H
#define FILESERVER_FS_PRIVATE_H

#include "afs/numbers.h"
#include "afs/rxafs.h"
#include "fileserver/export/export.h"
#include "fileserver/service/private.h"

#define FS_IDS 32 /* ids of a caller that need no memory of their own */

/* The volume of an object. */
struct fs_place {
	struct store *store; /* NULL: none was found yet */
	struct store_fid fid;
	uint32_t sync;
	enum store_type type;
	bool constant; /* root.afs: never changes */
	bool whole;    /* only changes as a whole: there is one promise for the volume */
};

/* The objects of a call, for the audit log. */
struct fs_noted {
	AFSFid fid, to; /* volume 0: none */
	bool has_name, has_to_name;
	char name[FSD_AUDIT_NAME], to_name[FSD_AUDIT_NAME];
};

/*
 * A call, on the stack of fsd_fs_serve(); the `context` of its handler. A handler returns 0 or a
 * result as in store.h, a code of the RPC layer (-455 ...), or FSD_LOST; fsd_fs_serve() translates
 * it for the client.
 */
struct fs_call {
	struct fsd_service *service;
	struct fsd_caller caller;
	struct fsd_viewer viewer;	/* who: anonymous if callers are not identified */
	struct store_caller self;	/* who: the viewer */
	int32_t ids[FS_IDS], *more_ids; /* of `self`; more_ids: to be freed */
	struct fs_place place;		/* of the last object that was looked up */
	/*
	 * The object of the promise that this call gave. The promise is dropped if the call fails,
	 * even after its handler has returned. Volume 0: none.
	 */
	AFSFid promised;
	struct fsd_change change; /* what the call has changed, until all clients know of it */
	AFSFid touched[3];	  /* objects that a call which changes something looks at */
	unsigned touched_count;
	uint64_t patience;	  /* when it stops to wait for changes of others; 0: it did not wait */
	struct fs_noted noted;
	struct fsd_running_call running;
};

/* -- fs_call.c: volumes, status, promises -- */

/*
 * Find the volume of an object: 0; -EINVAL: volume or vnode 0; 103 and others. fs_find_to_write():
 * -EROFS if nothing in the store can be written.
 */
int fs_find(struct fs_call *call, const AFSFid *fid, struct fs_place *place);
int fs_find_to_write(struct fs_call *call, const AFSFid *fid, struct fs_place *place);
/* All that is known of a volume. 0 or a result. */
int fs_volume(struct fs_call *call, uint32_t id, struct store_volume *volume);

/* The date of the volume of the last object, which every reply has. */
void fs_sync(const struct fs_call *call, AFSVolSync *sync);
/* A status as it is sent. */
void fs_fill(const struct fs_call *call, const struct store_status *status, AFSFetchStatus *st);

/*
 * Give a promise on an object before it is read, so that no change is missed. *cb is zero if there
 * is none. fs_unpromise(): the object could not be read.
 */
void fs_promise(struct fs_call *call, const struct fs_place *place, bool bulk, AFSCallBack *cb);
void fs_unpromise(struct fs_call *call, const struct fs_place *place);
/* The client returns a promise. */
void fs_return_promise(struct fs_call *call, const struct fs_place *place);
/* Promise and status of an object. */
int fs_status(struct fs_call *call, const AFSFid *fid, bool bulk, AFSFetchStatus *st,
	      AFSCallBack *cb);
/* Status and ACL without a promise, as if the caller were an administrator. */
int fs_peek(struct fs_call *call, const struct fs_place *place, struct store_acl *acl,
	    struct store_status *status);

/*
 * An operation has ended. If it succeeded: count it, break the promises on what it changed, and wait for
 * the clients that held them. In any case wait as fs_settled() for the objects that it looked at.
 * Returns `result`, or VBUSY in place of a failure that other clients might not understand yet.
 */
int fs_finish(struct fs_call *call, int result, const struct store_changes *changes);
/* As struct store_caller wants it; the argument is the call. */
void fs_announce(void *call, const struct store_changes *changes);
/* An object that an operation will look at, besides that of fs_find_to_write(). */
void fs_touch(struct fs_call *call, const AFSFid *fid);
/*
 * What was seen of an object may be sent: wait until its changes are known to all clients that hold
 * promises on it. False: they did not answer in time.
 */
bool fs_settled(struct fs_call *call, const AFSFid *fid);

/* The members of a status that a call sets, for the store. */
static inline struct store_set fs_set(const AFSStoreStatus *ss)
{
	return (struct store_set){.mask = ss->Mask,
				  .mtime = ss->ClientModTime,
				  .owner = (int32_t)ss->Owner,
				  .group = ss->Group,
				  .mode = ss->UnixModeBits};
}

/* The code that is sent for a result. */
int32_t fs_code(const struct fs_call *call, int result);

/* -- fs_caller.c -- */

/* Identify the caller, and check that it may call at all: 0 or a result. Then fs_leave(). */
int fs_enter(struct fs_call *call, rxw_call *rx, int32_t opcode, int function);
void fs_leave(struct fs_call *call);
/* For the audit log: an object and a name in it, which may be NULL; another one. */
void fs_note(struct fs_call *call, const AFSFid *fid, const char *name);
void fs_note_other(struct fs_call *call, const AFSFid *fid, const char *name);
/* Add the call to the audit log if it would change something, or was refused. */
void fs_audit(struct fs_call *call, int32_t code);

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

/* fs_obsolete.c */
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
