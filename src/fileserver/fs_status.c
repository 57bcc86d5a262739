/* SPDX-License-Identifier: BSD-2-Clause */
/* The file service: status, volumes, promises given up, locks, time. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <rxwire/error.h>

#include "fileserver/fs_private.h"

#define STATUS_REPLY (AFS_STATUS_BYTES + AFS_CALLBACK_BYTES + AFS_VOLSYNC_BYTES)
#define BULK_ENTRY   (AFS_STATUS_BYTES + AFS_CALLBACK_BYTES)
#define BULK_REPLY   (8 + AFS_BULK_MAX * BULK_ENTRY + AFS_VOLSYNC_BYTES)

static void count_status(struct fs_call *call, unsigned n)
{
	atomic_fetch_add_explicit(&call->service->counters.statuses, n, memory_order_relaxed);
}

int fs_fetch_status(struct fs_call *call)
{
	uint8_t reply[STATUS_REPLY];
	struct afs_callback cb;
	struct fsd_object object;
	struct afs_fid fid;
	struct rxw_xdr x;
	int rc;

	if (!afs_fid_get(&call->in, &fid))
		return FS_UNDECODABLE;
	rc = fs_status(call, &fid, false, &object, &cb);
	if (rc)
		return rc;
	count_status(call, 1);
	rxw_xdr_writer(&x, reply, sizeof(reply));
	afs_status_put(&x, &object.status);
	afs_callback_put(&x, &cb);
	fs_put_sync(call, &x);
	return fs_reply(call, &x);
}

/* The one ACL there is, put in words: everybody may read and look up. */
int fs_fetch_acl(struct fs_call *call)
{
	uint8_t reply[4 + 64 + AFS_STATUS_BYTES + AFS_VOLSYNC_BYTES];
	struct fsd_object object;
	struct afs_fid fid;
	struct rxw_xdr x;
	char text[64];
	int rc, n;

	if (!afs_fid_get(&call->in, &fid))
		return FS_UNDECODABLE;
	rc = fsd_volume_get(call->service->volume, &fid, call->caller.host, &object);
	if (rc)
		return rc;
	n = snprintf(text, sizeof(text), "1\n0\nsystem:anyuser\t%u\n",
		     (unsigned)object.status.anonymous_access);
	rxw_xdr_writer(&x, reply, sizeof(reply));
	rxw_xdr_put_bytes(&x, text, (size_t)n + 1, UINT32_MAX);
	afs_status_put(&x, &object.status);
	fs_put_sync(call, &x);
	return fs_reply(call, &x);
}

/* InlineBulkStatus puts the failure of one into its entry, BulkStatus fails as a whole. */
int fs_bulk_status(struct fs_call *call)
{
	bool in_line = call->opcode == AFS_FS_INLINE_BULK_STATUS;
	uint8_t reply[BULK_REPLY];
	struct afs_fid fids[AFS_BULK_MAX];
	struct afs_callback cbs[AFS_BULK_MAX];
	struct fsd_object object;
	struct rxw_xdr x;
	uint32_t count;

	if (!afs_fids_get(&call->in, fids, &count))
		return FS_UNDECODABLE;
	if (count == 0)
		return -EINVAL;
	rxw_xdr_writer(&x, reply, sizeof(reply));
	rxw_xdr_put_u32(&x, count);
	for (uint32_t i = 0; i < count; i++) {
		int rc = fs_status(call, &fids[i], true, &object, &cbs[i]);

		if (rc && !in_line)
			return rc;
		if (rc) {
			afs_status_failed(&object.status, fs_code(call, rc));
			memset(&cbs[i], 0, sizeof(cbs[i]));
		}
		afs_status_put(&x, &object.status);
	}
	count_status(call, count);
	afs_callbacks_put(&x, cbs, count);
	fs_put_sync(call, &x);
	return fs_reply(call, &x);
}

int fs_volume_status(struct fs_call *call)
{
	uint8_t reply[AFS_VOLUME_STATUS_MAX];
	struct afs_volume_status status;
	struct rxw_xdr x;
	uint32_t volume;
	int rc;

	if (!rxw_xdr_get_u32(&call->in, &volume))
		return FS_UNDECODABLE;
	if (volume == 0)
		return -EINVAL;
	if (volume != fsd_volume_id(call->service->volume))
		return AFS_VNOVOL;
	rc = fsd_volume_space(call->service->volume, &status);
	if (rc)
		return rc;
	rxw_xdr_writer(&x, reply, sizeof(reply));
	afs_volume_status_put(&x, &status);
	return fs_reply(call, &x);
}

/*
 * What a client would fall back to if we did not know the call; the location service knows the
 * name.
 */
int fs_root_volume(struct fs_call *call)
{
	uint8_t reply[16];
	struct rxw_xdr x;

	rxw_xdr_writer(&x, reply, sizeof(reply));
	rxw_xdr_put_string(&x, "root.afs", UINT32_MAX);
	return fs_reply(call, &x);
}

int fs_give_up(struct fs_call *call)
{
	struct afs_fid fids[AFS_BULK_MAX];
	struct afs_callback cbs[AFS_BULK_MAX];
	uint32_t count, cb_count;

	if (!afs_fids_get(&call->in, fids, &count) || !afs_callbacks_get(&call->in, cbs, &cb_count))
		return FS_UNDECODABLE;
	if (cb_count > count)
		return -EINVAL;
	for (uint32_t i = 0; i < count; i++)
		if (fids[i].volume == fsd_volume_id(call->service->volume))
			fs_unpromise(call, &fids[i]);
	return 0;
}

int fs_give_up_all(struct fs_call *call)
{
	fsd_promise_drop_all(call->service->clients, &call->caller);
	return 0;
}

int fs_get_time(struct fs_call *call)
{
	uint8_t reply[8];
	struct timespec ts;
	struct rxw_xdr x;

	clock_gettime(CLOCK_REALTIME, &ts);
	rxw_xdr_writer(&x, reply, sizeof(reply));
	rxw_xdr_put_u32(&x, (uint32_t)ts.tv_sec);
	rxw_xdr_put_u32(&x, (uint32_t)(ts.tv_nsec / 1000));
	return fs_reply(call, &x);
}

int fs_get_caps(struct fs_call *call)
{
	uint8_t reply[8];
	struct rxw_xdr x;

	rxw_xdr_writer(&x, reply, sizeof(reply));
	afs_caps_put(&x, AFS_SERVER_CAP_ERRORTRANS | AFS_SERVER_CAP_64BIT |
				 AFS_SERVER_CAP_WRITELOCKACL);
	return fs_reply(call, &x);
}

static int reply_sync(struct fs_call *call)
{
	uint8_t reply[AFS_VOLSYNC_BYTES];
	struct rxw_xdr x;

	rxw_xdr_writer(&x, reply, sizeof(reply));
	fs_put_sync(call, &x);
	return fs_reply(call, &x);
}

/* Nobody writes, so read locks are granted to all and remembered of none. */
int fs_set_lock(struct fs_call *call)
{
	struct fsd_object object;
	struct afs_fid fid;
	uint32_t type;
	int rc;

	afs_fid_get(&call->in, &fid);
	if (!rxw_xdr_get_u32(&call->in, &type))
		return FS_UNDECODABLE;
	rc = fsd_volume_get(call->service->volume, &fid, call->caller.host, &object);
	if (rc)
		return rc;
	if (type > 1)
		return -EINVAL;
	return type == 1 ? -EROFS : reply_sync(call);
}

int fs_keep_lock(struct fs_call *call)
{
	struct fsd_object object;
	struct afs_fid fid;
	int rc;

	if (!afs_fid_get(&call->in, &fid))
		return FS_UNDECODABLE;
	rc = fsd_volume_path(call->service->volume, &fid, object.path, &object.record);
	return rc ? rc : reply_sync(call);
}
