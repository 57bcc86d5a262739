/* SPDX-License-Identifier: BSD-2-Clause */
/* What the parts of the file service share: one call in progress. */
#ifndef FILESERVER_FS_PRIVATE_H
#define FILESERVER_FS_PRIVATE_H

#include "afs/opcodes.h"
#include "fileserver/service.h"

#define FS_REQUEST_MAX 8192 /* more than the longest request needs, but for bulk data */

struct fs_call {
	struct fsd_service *service;
	struct fsd_stream *stream;
	struct fsd_caller caller;
	uint32_t opcode;
	struct rxw_xdr in; /* the arguments */
};

/*
 * A handler decodes from call->in and writes the whole reply, or nothing but (fetches) a part of it
 * when it fails. Results as in volume.h.
 */
typedef int (*fs_handler)(struct fs_call *call);

#define FS_UNDECODABLE RXW_RPC_SS_UNMARSHAL

/* Write what a writer holds; -EIO if it overflowed. */
int fs_reply(struct fs_call *call, const struct rxw_xdr *x);
void fs_put_sync(struct fs_call *call, struct rxw_xdr *x);

/*
 * Status of an object with a promise on it, in the order that loses no change: watch, promise,
 * look. *cb is zero if there is no promise.
 */
int fs_status(struct fs_call *call, const struct afs_fid *fid, bool bulk, struct fsd_object *object,
	      struct afs_callback *cb);
/*
 * Only the promise: for those who look by themselves afterwards. Drop it with fs_unpromise() if
 * that fails.
 */
int fs_promise(struct fs_call *call, const struct afs_fid *fid, bool bulk,
	       struct fsd_object *object, struct afs_callback *cb);
void fs_unpromise(struct fs_call *call, const struct afs_fid *fid);
/* The number that goes on the wire for a result. */
int32_t fs_code(const struct fs_call *call, int result);

/* fs_fetch.c */
int fs_fetch_data(struct fs_call *call);
/* fs_status.c */
int fs_fetch_status(struct fs_call *call);
int fs_fetch_acl(struct fs_call *call);
int fs_bulk_status(struct fs_call *call);
int fs_volume_status(struct fs_call *call);
int fs_root_volume(struct fs_call *call);
int fs_give_up(struct fs_call *call);
int fs_give_up_all(struct fs_call *call);
int fs_get_time(struct fs_call *call);
int fs_get_caps(struct fs_call *call);
int fs_set_lock(struct fs_call *call);
int fs_keep_lock(struct fs_call *call);
/* fs_stats.c */
int fs_statistics(struct fs_call *call);
int fs_statistics64(struct fs_call *call);
int fs_xstats_version(struct fs_call *call);
int fs_xstats(struct fs_call *call);
/* fs_refuse.c */
int fs_refuse_write(struct fs_call *call);
int fs_refuse_volume(struct fs_call *call);
int fs_refuse_invalid(struct fs_call *call);
int fs_refuse_permission(struct fs_call *call);

#endif
