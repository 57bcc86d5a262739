/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file service: stores over several paths (BeginStore, StoreRange, EndStore). The ranges of a session go to a writer that nothing
 * shows before EndStore makes one version of it. So a range that comes late lands in a session that has ended, and counts for nothing.
 */
#include <errno.h>

#include "fileserver/service/fs.h"
#include "fileserver/service/fs_handlers.h"

/* Callers without a name share by their addresses. */
static void find_session_caller(const struct fs_call *call, struct fsd_share_key *key)
{
	if (call->self.id == STORE_ANONYMOUS)
		fsd_share_of_address(&call->running.peer, key);
	else
		fsd_share_of_user(call->self.id, key);
}

static int add_session(struct fs_call *call, const AFSFid *fid, const struct fs_place *place,
		       struct store_writer *writer, StoreSession *id)
{
	struct fsd_service *service = call->service;
	const struct fsd_session like = {
		.user = call->self.id, .fid = *fid, .ops = place->store->ops, .writer = writer};
	struct fsd_share_key caller;
	int rc;

	find_session_caller(call, &caller);
	rc = fsd_session_add(&service->sessions, &caller, &like, id);
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
	struct store_writer *writer;
	struct fs_place place;
	int rc = fs_find_to_write(call, fid, &place);

	(void)rx;
	fs_note(call, fid, NULL);
	if (!rc && !place.store->ops->ranges)
		rc = -EROFS;
	if (!rc)
		rc = place.store->ops->ranges->begin(place.store, &call->self, &place.fid, &set,
						     length, &writer);
	if (!rc)
		rc = add_session(call, fid, &place, writer, session);
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

static int drop_session(struct fs_call *call, struct fsd_session *session)
{
	session->ops->write_abort(fsd_session_take_writer(session));
	fsd_session_set(&call->service->sessions, session, FSD_SESSION_ENDED, -ECANCELED);
	return 0;
}

int32_t fs_end_store(void *context, rxw_call *rx, const StoreSession *id, int32_t commit,
		     uint64_t bytes, AFSFetchStatus *st, AFSVolSync *sync)
{
	struct fs_call *call = context;
	struct fsd_sessions *all = &call->service->sessions;
	struct fsd_session *session = fsd_session_find(all, id, call->self.id);
	int rc = 0;

	(void)rx;
	if (!session)
		return -EBADF;
	fs_note(call, &session->fid, NULL);
	if (fsd_session_begin_end(all, session, &rc))
		rc = commit ? commit_session(call, session, bytes) : drop_session(call, session);
	if (!rc) {
		*st = session->st;
		*sync = session->sync;
	}
	fsd_session_leave(all, session);
	return rc;
}
