/* SPDX-License-Identifier: BSD-2-Clause */
/* The file service: status, volumes, returned promises, locks, time. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "afs/fetchstatus.h"
#include "common/clock.h"
#include "fileserver/service/fs.h"

#define ROOTAFS_KIB 4

static void count_status(struct fs_call *call, unsigned n)
{
	fsd_count(&call->service->counters.statuses, n);
}

int32_t fs_fetch_status(void *context, rxw_call *rx, const AFSFid *fid, AFSFetchStatus *st,
			AFSCallBack *cb, AFSVolSync *sync)
{
	struct fs_call *call = context;
	struct fsd_object object;
	int rc = fs_status(call, fid, false, &object, cb);

	(void)rx;
	if (rc)
		return rc;
	count_status(call, 1);
	*st = object.status;
	fs_sync(call, sync);
	return 0;
}

/* Status without a promise, if the caller may see the object; *authenticated as in fs_rights(). */
static int get(struct fs_call *call, const AFSFid *fid, struct fsd_object *object,
	       uint32_t *authenticated)
{
	int rc;

	if (fs_rootafs(call, fid, object, NULL, NULL, NULL, &rc)) {
		if (authenticated && !rc)
			*authenticated = object->status.CallerAccess;
		return rc;
	}
	rc = fsd_volume_get(call->service->volume, fid, call->caller.host, object);
	if (!rc)
		fs_rights(call, object, authenticated);
	return rc ? rc : fs_may(call, object->path);
}

/*
 * The export has no ACLs. The reply lists the rights of all users and those of all users with a
 * token; users named by --allow are not listed.
 */
int32_t fs_fetch_acl(void *context, rxw_call *rx, const AFSFid *fid, AFSOpaque *acl,
		     AFSFetchStatus *st, AFSVolSync *sync)
{
	struct fs_call *call = context;
	struct fsd_object object;
	uint32_t authenticated;
	int rc = get(call, fid, &object, &authenticated);
	int n;

	(void)rx;
	if (rc)
		return rc;
	if (object.status.AnonymousAccess == authenticated)
		n = asprintf(&acl->val, "1\n0\nsystem:anyuser\t%u\n", (unsigned)authenticated);
	else
		n = asprintf(&acl->val, "2\n0\nsystem:authuser\t%u\nsystem:anyuser\t%u\n",
			     (unsigned)authenticated, (unsigned)object.status.AnonymousAccess);
	if (n < 0) {
		acl->val = NULL;
		return AFS_VBUSY;
	}
	acl->len = (uint32_t)n + 1; /* including its NUL */
	*st = object.status;
	fs_sync(call, sync);
	return 0;
}

/* `in_line`: a failure is reported in the entry of its object; else the call fails. */
static int bulk_status(struct fs_call *call, bool in_line, const AFSCBFids *fids, AFSBulkStats *sts,
		       AFSCBs *cbs)
{
	struct fsd_object object;

	if (fids->len == 0)
		return -EINVAL;
	sts->val = calloc(fids->len, sizeof(*sts->val));
	cbs->val = calloc(fids->len, sizeof(*cbs->val));
	if (!sts->val || !cbs->val)
		return AFS_VBUSY;
	sts->len = cbs->len = fids->len;
	for (uint32_t i = 0; i < fids->len; i++) {
		int rc = fs_status(call, &fids->val[i], true, &object, &cbs->val[i]);

		if (rc && !in_line)
			return rc;
		if (rc) {
			afs_status_refuse(&sts->val[i], fs_code(call, rc));
			memset(&cbs->val[i], 0, sizeof(cbs->val[i]));
		} else {
			sts->val[i] = object.status;
		}
	}
	count_status(call, fids->len);
	return 0;
}

int32_t fs_bulk_status(void *context, rxw_call *rx, const AFSCBFids *fids, AFSBulkStats *sts,
		       AFSCBs *cbs, AFSVolSync *sync)
{
	int rc = bulk_status(context, false, fids, sts, cbs);

	(void)rx;
	fs_sync(context, sync);
	return rc;
}

int32_t fs_inline_bulk_status(void *context, rxw_call *rx, const AFSCBFids *fids, AFSBulkStats *sts,
			      AFSCBs *cbs, AFSVolSync *sync)
{
	int rc = bulk_status(context, true, fids, sts, cbs);

	(void)rx;
	fs_sync(context, sync);
	return rc;
}

int32_t fs_volume_status(void *context, rxw_call *rx, int32_t volume, AFSFetchVolumeStatus *vst,
			 char **name, char **offline_msg, char **motd)
{
	const struct fsd_service *service = ((struct fs_call *)context)->service;
	bool rootafs = service->rootafs && volume == (int32_t)FSD_ROOTAFS_ID;
	struct fsd_used used;
	int rc;

	(void)rx;
	if (volume == 0)
		return -EINVAL;
	if (!rootafs && (uint32_t)volume != fsd_volume_id(service->volume))
		return AFS_VNOVOL;
	rc = fsd_volume_space(service->volume, vst);
	if (rc)
		return rc;
	fsd_usage_get(service->usage, 0, &used);
	vst->Vid = volume;
	vst->ParentId = (int32_t)FSD_RW_ID((uint32_t)volume);
	vst->BlocksInUse = rootafs		  ? ROOTAFS_KIB
			   : used.kib > INT32_MAX ? INT32_MAX
						  : (int32_t)used.kib;
	if (asprintf(name, "%s.readonly",
		     rootafs ? FSD_ROOTAFS_NAME : fsd_volume_name(service->volume)) < 0)
		*name = NULL;
	*offline_msg = strdup("");
	*motd = strdup("");
	return *name && *offline_msg && *motd ? 0 : AFS_VBUSY;
}

int32_t fs_give_up(void *context, rxw_call *rx, const AFSCBFids *fids, const AFSCBs *cbs)
{
	struct fs_call *call = context;

	(void)rx;
	if (cbs->len > fids->len)
		return -EINVAL;
	for (uint32_t i = 0; i < fids->len; i++)
		if (fids->val[i].Volume == fsd_volume_id(call->service->volume))
			fs_unpromise(call, &fids->val[i]);
	return 0;
}

int32_t fs_give_up_all(void *context, rxw_call *rx)
{
	struct fs_call *call = context;

	(void)rx;
	fsd_promise_drop_all(call->service->clients, &call->caller);
	return 0;
}

int32_t fs_get_time(void *context, rxw_call *rx, uint32_t *seconds, uint32_t *useconds)
{
	int64_t now = wall_ns();

	(void)context, (void)rx;
	*seconds = (uint32_t)(now / NS_PER_S);
	*useconds = (uint32_t)(now % NS_PER_S / 1000);
	return 0;
}

int32_t fs_capabilities(void *context, rxw_call *rx, Capabilities *caps)
{
	(void)context, (void)rx;
	caps->val = malloc(sizeof(*caps->val));
	if (!caps->val)
		return AFS_VBUSY;
	caps->val[0] = VICED_CAPABILITY_ERRORTRANS | VICED_CAPABILITY_64BITFILES |
		       VICED_CAPABILITY_WRITELOCKACL;
	caps->len = 1;
	return 0;
}

/* The volume is read-only, so every read lock is granted and none is recorded. */
int32_t fs_set_lock(void *context, rxw_call *rx, const AFSFid *fid, ViceLockType type,
		    AFSVolSync *sync)
{
	struct fs_call *call = context;
	struct fsd_object object;
	int rc = get(call, fid, &object, NULL);

	(void)rx;
	if (rc)
		return rc;
	fs_sync(call, sync);
	switch (type) {
	case 0:
		return 0;
	case 1:
		return -EROFS;
	default:
		return -EINVAL;
	}
}

int32_t fs_keep_lock(void *context, rxw_call *rx, const AFSFid *fid, AFSVolSync *sync)
{
	struct fs_call *call = context;
	struct fsd_object object;
	int rc;

	(void)rx;
	if (fs_rootafs(call, fid, &object, NULL, NULL, NULL, &rc)) {
		fs_sync(call, sync);
		return rc;
	}
	fs_sync(call, sync);
	rc = fsd_volume_path(call->service->volume, fid, object.path, &object.record);
	return rc ? rc : fs_may(call, object.path);
}
