/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls on objects that are known by their number: status, access lists, locks; and on whole
 * volumes.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/net/tries.h"

int cl_net_fetch_status(struct cl_volume *volume, const struct cl_caller *caller, const AFSFid *fid,
			AFSFetchStatus *status, struct cl_stamp *stamp,
			struct rxafs_failure *failure)
{
	struct cl_tries t;

	cl_tries_start(&t, volume, caller, "FetchStatus", fid, CL_READS, stamp, failure);
	while (cl_tries_next(&t)) {
		rxw_code code = StartRXAFS_FetchStatus(t.sent.call, fid)
					?: EndRXAFS_FetchStatus(t.sent.call, status,
								&t.stamp->callback, &t.stamp->sync);

		if (code == 0 && !afs_status_usable(status))
			cl_tries_reject(&t, "the status is malformed");
		cl_tries_judge(&t, code, RXAFS_FN_FetchStatus);
	}
	return cl_tries_result(&t);
}

/* Take over the statuses and promises of a bulk call, if there is one for each object. */
static bool take_statuses(uint32_t count, const AFSBulkStats *stats, const AFSCBs *cbs,
			  AFSFetchStatus *statuses, AFSCallBack *callbacks)
{
	if (stats->len != count)
		return false;
	memcpy(statuses, stats->val, count * sizeof(*statuses));
	/* A server may send fewer promises: there are none for the others. */
	memset(callbacks, 0, count * sizeof(*callbacks));
	if (cbs->len)
		memcpy(callbacks, cbs->val,
		       (cbs->len < count ? cbs->len : count) * sizeof(*callbacks));
	return true;
}

/* At a server without InlineBulkStatus: one call for each object. */
static int fetch_each_status(struct cl_volume *volume, const struct cl_caller *caller,
			     const AFSFid *fids, uint32_t count, AFSFetchStatus *statuses,
			     AFSCallBack *callbacks, struct cl_stamp *stamp,
			     struct rxafs_failure *failure)
{
	struct cl_stamp first = {0};

	for (uint32_t i = 0; i < count; i++) {
		int rc =
			cl_net_fetch_status(volume, caller, &fids[i], &statuses[i], stamp, failure);

		if (rc == -EINTR || rc == -ETIMEDOUT)
			return rc;
		callbacks[i] = stamp->callback;
		if (rc < 0) {
			afs_status_refuse(&statuses[i], rxw_code_from_errno(-rc));
			callbacks[i] = (AFSCallBack){0};
		} else if (!first.sent) {
			first = *stamp;
		}
	}
	/* Promises count from the first request, which is the safe side. */
	*stamp = first;
	memset(&stamp->callback, 0, sizeof(stamp->callback));
	return 0;
}

int cl_net_fetch_statuses(struct cl_volume *volume, const struct cl_caller *caller,
			  const AFSFid *fids, uint32_t count, AFSFetchStatus *statuses,
			  AFSCallBack *callbacks, struct cl_stamp *stamp,
			  struct rxafs_failure *failure)
{
	const AFSCBFids list = {.len = count, .val = (AFSFid *)fids};
	bool each = false;
	struct cl_tries t;
	int rc;

	assert(count > 0 && count <= AFSCBMAX);
	cl_tries_start(&t, volume, caller, "InlineBulkStatus", fids, CL_READS, stamp, failure);
	t.alternative = CL_MISSING_INLINE_BULK;
	while (cl_tries_next(&t)) {
		AFSBulkStats stats = {0};
		AFSCBs cbs = {0};
		rxw_code code = 0;

		each = cl_tries_lacks(&t, CL_MISSING_INLINE_BULK);
		if (each) {
			cl_tries_stop(&t, 0);
			code = RXW_USER_ABORT;
		} else {
			code = StartRXAFS_InlineBulkStatus(t.sent.call, &list)
				       ?: EndRXAFS_InlineBulkStatus(t.sent.call, &stats, &cbs,
								    &t.stamp->sync);
		}
		if (code == 0 && !take_statuses(count, &stats, &cbs, statuses, callbacks))
			cl_tries_reject(
				&t,
				"its answer is malformed: there is not one status for each object");
		cl_server_promised(t.sent.server, fids, cbs.val, cbs.len < count ? cbs.len : count);
		xdrfree_AFSBulkStats(&stats);
		xdrfree_AFSCBs(&cbs);
		cl_tries_judge(&t, code, RXAFS_FN_InlineBulkStatus);
	}
	rc = cl_tries_result(&t);
	return each ? fetch_each_status(volume, caller, fids, count, statuses, callbacks,
					stamp ? stamp : &t.own, failure)
		    : rc;
}

int cl_net_store_status(struct cl_volume *volume, const struct cl_caller *caller, const AFSFid *fid,
			const AFSStoreStatus *how, AFSFetchStatus *status, struct cl_stamp *stamp,
			struct rxafs_failure *failure)
{
	struct cl_tries t;

	cl_tries_start(&t, volume, caller, "StoreStatus", fid, 0, stamp, failure);
	while (cl_tries_next(&t)) {
		rxw_code code =
			StartRXAFS_StoreStatus(t.sent.call, fid, how)
				?: EndRXAFS_StoreStatus(t.sent.call, status, &t.stamp->sync);

		if (code == 0 && !afs_status_usable(status))
			cl_tries_reject(&t, "the status is malformed");
		cl_tries_judge(&t, code, RXAFS_FN_StoreStatus);
	}
	return cl_tries_result(&t);
}

/* ---- access lists ---- */

int cl_net_fetch_acl(struct cl_volume *volume, const struct cl_caller *caller, const AFSFid *fid,
		     char text[AFSOPAQUEMAX + 1], AFSFetchStatus *status, struct cl_stamp *stamp,
		     struct rxafs_failure *failure)
{
	struct cl_tries t;

	cl_tries_start(&t, volume, caller, "FetchACL", fid, CL_READS, stamp, failure);
	while (cl_tries_next(&t)) {
		AFSOpaque acl = {0};
		rxw_code code =
			StartRXAFS_FetchACL(t.sent.call, fid)
				?: EndRXAFS_FetchACL(t.sent.call, &acl, status, &t.stamp->sync);

		if (code == 0) {
			if (acl.len)
				memcpy(text, acl.val, acl.len);
			text[acl.len] = 0;
		}
		xdrfree_AFSOpaque(&acl);
		cl_tries_judge(&t, code, RXAFS_FN_FetchACL);
	}
	return cl_tries_result(&t);
}

int cl_net_store_acl(struct cl_volume *volume, const struct cl_caller *caller, const AFSFid *dir,
		     const char *text, AFSFetchStatus *status, struct cl_stamp *stamp,
		     struct rxafs_failure *failure)
{
	const AFSOpaque acl = {.len = (uint32_t)strlen(text) + 1, .val = (char *)text};
	struct cl_tries t;

	if (acl.len > AFSOPAQUEMAX)
		return cl_fail(failure, E2BIG, "StoreACL: the access list is too long");
	cl_tries_start(&t, volume, caller, "StoreACL", dir, 0, stamp, failure);
	t.alternative = CL_MISSING_STORE_ACL;
	while (cl_tries_next(&t)) {
		rxw_code code;

		if (cl_tries_lacks(&t, CL_MISSING_STORE_ACL)) {
			t.alternative = 0;
			code = StartRXAFS_OldStoreACL(t.sent.call, dir, &acl)
				       ?: EndRXAFS_OldStoreACL(t.sent.call, status, &t.stamp->sync);
		} else {
			code = StartRXAFS_StoreACL(t.sent.call, dir, &acl)
				       ?: EndRXAFS_StoreACL(t.sent.call, status, &t.stamp->sync);
		}
		cl_tries_judge(&t, code, RXAFS_FN_StoreACL);
	}
	return cl_tries_result(&t);
}

/* ---- locks ---- */

static rxw_code call_lock_stub(rxw_call *call, const AFSFid *fid, enum cl_lock_call kind,
			       AFSVolSync *sync)
{
	switch (kind) {
	case CL_LOCK_EXTEND:
		return StartRXAFS_ExtendLock(call, fid) ?: EndRXAFS_ExtendLock(call, sync);
	case CL_LOCK_RELEASE:
		return StartRXAFS_ReleaseLock(call, fid) ?: EndRXAFS_ReleaseLock(call, sync);
	case CL_LOCK_READ:
	case CL_LOCK_WRITE:
	default:
		return StartRXAFS_SetLock(call, fid, kind == CL_LOCK_WRITE)
			       ?: EndRXAFS_SetLock(call, sync);
	}
}

int cl_net_lock(struct cl_volume *volume, const struct cl_caller *caller, const AFSFid *fid,
		enum cl_lock_call kind, struct cl_stamp *stamp, struct rxafs_failure *failure)
{
	static const char *const names[] = {"SetLock", "SetLock", "ExtendLock", "ReleaseLock"};
	static const unsigned functions[] = {RXAFS_FN_SetLock, RXAFS_FN_SetLock,
					     RXAFS_FN_ExtendLock, RXAFS_FN_ReleaseLock};
	struct cl_tries t;

	/*
	 * A lock that was released or extended twice is as after once, or refused; one that was set
	 * twice is not.
	 */
	cl_tries_start(&t, volume, caller, names[kind], fid, CL_ONCE, stamp, failure);
	while (cl_tries_next(&t))
		cl_tries_judge(&t, call_lock_stub(t.sent.call, fid, kind, &t.stamp->sync),
			       functions[kind]);
	return cl_tries_result(&t);
}

/* ---- volumes ---- */

/* Copies a string of a reply and frees it. */
static void take_string(char *to, size_t size, char *from)
{
	size_t length = from ? strnlen(from, size - 1) : 0;

	if (length)
		memcpy(to, from, length);
	to[length] = 0;
	free(from);
}

int cl_net_fetch_volume_status(struct cl_volume *volume, const struct cl_caller *caller,
			       struct cl_volume_status *status, struct rxafs_failure *failure)
{
	struct cl_tries t;

	cl_tries_start(&t, volume, caller, "GetVolumeStatus", NULL, CL_READS | CL_NOW, NULL,
		       failure);
	while (cl_tries_next(&t)) {
		char *name = NULL, *offline = NULL, *motd = NULL;
		rxw_code code = StartRXAFS_GetVolumeStatus(t.sent.call, (int32_t)t.fid.Volume)
					?: EndRXAFS_GetVolumeStatus(t.sent.call, &status->volume,
								    &name, &offline, &motd);

		take_string(status->name, sizeof(status->name), name);
		take_string(status->offline, sizeof(status->offline), offline);
		take_string(status->motd, sizeof(status->motd), motd);
		cl_tries_judge(&t, code, RXAFS_FN_GetVolumeStatus);
	}
	return cl_tries_result(&t);
}

int cl_net_set_volume_status(struct cl_volume *volume, const struct cl_caller *caller,
			     int32_t max_quota, const char *offline, const char *motd,
			     struct rxafs_failure *failure)
{
	const AFSStoreVolumeStatus how = {.Mask = max_quota < 0 ? 0 : 2, .MaxQuota = max_quota};
	struct cl_tries t;

	cl_tries_start(&t, volume, caller, "SetVolumeStatus", NULL, 0, NULL, failure);
	while (cl_tries_next(&t)) {
		/* Empty texts change nothing. */
		rxw_code code =
			StartRXAFS_SetVolumeStatus(t.sent.call, (int32_t)t.fid.Volume, &how, "",
						   offline ? offline : "", motd ? motd : "")
				?: EndRXAFS_SetVolumeStatus(t.sent.call);

		cl_tries_judge(&t, code, RXAFS_FN_SetVolumeStatus);
	}
	return cl_tries_result(&t);
}
