/* SPDX-License-Identifier: BSD-2-Clause */
/* The file service: status, volumes, returned promises, locks, time. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "afs/fetchstatus.h"
#include "common/clock.h"
#include "fileserver/service/fs.h"
#include "fileserver/service/fs_handlers.h"

static void count_status(struct fs_call *call, unsigned n)
{
	fsd_count(&call->service->counters.statuses, n);
}

int32_t fs_fetch_status(void *context, rxw_call *rx, const AFSFid *fid, AFSFetchStatus *st,
			AFSCallBack *cb, AFSVolSync *sync)
{
	struct fs_call *call = context;
	int rc = fs_status(call, fid, st, cb);

	(void)rx;
	fs_note(call, fid, NULL);
	if (rc)
		return rc;
	count_status(call, 1);
	fs_sync(call, sync);
	return 0;
}

/* Each object has a record of its own in the audit log. The call itself names no object then. */
static void audit_objects(struct fs_call *call, const AFSCBFids *fids, const int32_t *codes)
{
	if (!call->service->audit_reads)
		return;
	for (uint32_t i = 0; i < fids->len; i++) {
		fs_note(call, &fids->val[i], NULL);
		fs_audit(call, codes[i]);
	}
	fs_note(call, &(AFSFid){0}, NULL);
}

/* `in_line`: a failure is reported in the entry of its object; else the call fails. */
static int bulk_status(struct fs_call *call, bool in_line, const AFSCBFids *fids, AFSBulkStats *sts,
		       AFSCBs *cbs)
{
	int results[AFSCBMAX];
	int32_t codes[AFSCBMAX];

	if (fids->len == 0)
		return -EINVAL;
	sts->val = calloc(fids->len, sizeof(*sts->val));
	cbs->val = calloc(fids->len, sizeof(*cbs->val));
	if (!sts->val || !cbs->val)
		return AFS_VBUSY;
	sts->len = cbs->len = fids->len;
	fs_status_of_all(call, in_line, fids->val, fids->len, sts->val, cbs->val, results);
	for (uint32_t i = 0; i < fids->len; i++) {
		const AFSFid *fid = &fids->val[i];

		codes[i] =
			fs_code_of(call, &(struct store_fid){fid->Volume, fid->Vnode, fid->Unique},
				   results[i]);
	}
	audit_objects(call, fids, codes);
	for (uint32_t i = 0; i < fids->len; i++) {
		if (codes[i] && !in_line)
			return codes[i];
		if (codes[i]) {
			afs_status_refuse(&sts->val[i], codes[i]);
			memset(&cbs->val[i], 0, sizeof(cbs->val[i]));
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

int32_t fs_volume_status(void *context, rxw_call *rx, int32_t id, AFSFetchVolumeStatus *vst,
			 char **name, char **offline_msg, char **motd)
{
	struct fs_call *call = context;
	struct store *store = call->service->store;
	struct store_volume volume;
	struct store_space space;
	int rc = fs_volume(call, (uint32_t)id, &volume);

	(void)rx;
	/* This includes a volume that is off-line: the reason is for its users. */
	if (!rc)
		rc = store->ops->space(store, &space);
	if (rc)
		return rc;
	*vst = (AFSFetchVolumeStatus){
		.Vid = id,
		.ParentId = (int32_t)volume.rw,
		.Online = volume.online,
		.InService = volume.online,
		.Blessed = 1,
		.Type = volume.type == STORE_RW,
		.MinQuota = volume.minimum,
		.MaxQuota = fsd_clip(volume.quota_kib),
		.BlocksInUse = fsd_clip(volume.used_kib),
		.PartBlocksAvail = fsd_clip(space.available_kib),
		.PartMaxBlocks = fsd_clip(space.total_kib),
	};
	*name = strdup(volume.name);
	*offline_msg = strdup(volume.offline_message);
	*motd = strdup("");
	return *name && *offline_msg && *motd ? 0 : AFS_VBUSY;
}

int32_t fs_give_up(void *context, rxw_call *rx, const AFSCBFids *fids, const AFSCBs *cbs)
{
	struct fs_call *call = context;
	struct fs_place place;

	(void)rx;
	if (cbs->len > fids->len)
		return -EINVAL;
	for (uint32_t i = 0; i < fids->len; i++)
		if (fs_find(call, &fids->val[i], &place) == 0)
			fs_return_promise(call, &place);
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
