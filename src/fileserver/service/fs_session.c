/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file service: stores over several paths (BeginStore, StoreRange, EndStore). The ranges of a session go to a writer that nothing
 * shows before EndStore makes one version of it. So a range that comes late lands in a session that has ended, and counts for nothing.
 */
#include <errno.h>

#include "common/clock.h"
#include "fileserver/service/fs.h"
#include "fileserver/service/fs_handlers.h"

static int add_session(struct fs_call *call, struct fsd_session *like, StoreSession *id)
{
	struct fsd_service *service = call->service;
	int rc;

	like->user = call->self.id;
	rc = fsd_session_add(&service->sessions, like, id);
	if (!rc)
		fsd_waiting_for_session(service);
	return rc;
}

int32_t fs_begin_store(void *context, rxw_call *rx, const AFSFid *fid, const AFSStoreStatus *ss,
		       uint64_t length, StoreSession *session)
{
	const struct store_changes changes = {0};
	struct fs_call *call = context;
	const struct store_set set = fs_set(ss);
	struct fsd_session like = {.fid = *fid, .length = length};
	struct fs_place place;
	int rc = fs_find_to_write(call, fid, &place);

	(void)rx;
	fs_note(call, fid, NULL);
	if (!rc && !place.store->ops->ranges)
		rc = -EROFS;
	if (!rc)
		rc = place.store->ops->ranges->begin(place.store, &call->self, &place.fid, &set,
						     length, &like.writer);
	if (!rc) {
		like.ops = place.store->ops;
		rc = add_session(call, &like, session);
	}
	return rc ? fs_finish(call, rc, &changes) : 0;
}

/* The version appears, or nothing. Later calls get the same answer. */
static int commit_session(struct fs_call *call, struct fsd_session *session, uint64_t bytes)
{
	struct fsd_sessions *all = &call->service->sessions;
	struct store_changes changes = {0};
	struct store_status status;
	struct fs_place place;
	int made, rc = fs_find_to_write(call, &session->fid, &place);

	if (fsd_session_is_refused(rc)) {
		fsd_session_drop(all, session, rc);
		return fs_finish(call, rc, &changes);
	}
	/* The volume may be served again soon. */
	if (rc) {
		fsd_session_set(all, session, FSD_SESSION_OPEN, 0);
		return fs_finish(call, rc, &changes);
	}
	made = session->ops->ranges->commit(fsd_session_take_writer(session), &call->self, bytes,
					    &status, &changes);
	if (!made) {
		fs_fill(call, &status, &session->st);
		fs_sync(call, &session->sync);
	}
	rc = fs_finish(call, made, &changes);
	fsd_session_set(all, session, FSD_SESSION_ENDED, made);
	return rc;
}

static void count_session_end(struct fs_call *call, bool commit, uint64_t begin)
{
	struct fsd_counters *counters = &call->service->counters;

	fsd_count(commit ? &counters->stores : &counters->store_aborts, 1);
	fsd_count(&counters->store_ns, monotonic_ns() - begin);
}

int32_t fs_end_store(void *context, rxw_call *rx, const StoreSession *id, int32_t commit,
		     uint64_t bytes, AFSFetchStatus *st, AFSVolSync *sync)
{
	struct fs_call *call = context;
	struct fsd_sessions *all = &call->service->sessions;
	struct fsd_session *session = fsd_session_find(all, id, call->self.id);
	uint64_t begin_ns = monotonic_ns();
	int rc = 0;

	(void)rx;
	if (!session)
		return -EBADF;
	fs_note(call, &session->fid, NULL);
	if (fsd_session_begin_end(all, session, &rc)) {
		if (commit)
			rc = commit_session(call, session, bytes);
		else
			fsd_session_drop(all, session, -ECANCELED);
		count_session_end(call, commit, begin_ns);
	} else if (!commit && rc != AFS_VBUSY) {
		rc = 0; /* there is nothing to drop */
	}
	if (!rc) {
		*st = session->st;
		*sync = session->sync;
	}
	fsd_session_leave(all, session, 0);
	return rc;
}
