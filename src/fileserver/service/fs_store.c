/* SPDX-License-Identifier: BSD-2-Clause */
/* The file service: data that clients send. */
#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <rxwire/call.h>
#include <rxwire/error.h>
#include <rxwire/rpc.h>

#include "common/clock.h"
#include "fileserver/base/base.h"
#include "fileserver/service/fs.h"
#include "fileserver/service/fs_handlers.h"

#define SLICES	  256		    /* of packets that are lent at a time */
#define LENT_MOST ((size_t)1 << 20) /* bytes of them */
#define TURN	  ((uint64_t)1 << 20) /* bytes that a thread takes of a store while others wait */

/* The arguments of StoreData, StoreData64 and StoreRange. */
struct store_request {
	AFSFid fid;
	uint64_t offset, length, file_length;
	void (*reply)(struct fs_call *call, int result);
	struct fsd_session *session; /* of a range; else NULL */
};

/*
 * A store whose data is received, without a thread that waits for it. One thread at a time uses it: that
 * of the handler, and from then on those of the task. While it waits for a place, no thread does.
 */
struct storing {
	struct fs_call *call;
	struct fsd_task *task;
	struct store_request request;
	uint64_t left; /* bytes that have not come */
	int result;
	bool has_place, has_writer;
	struct fsd_place place;
};

/*
 * Bytes straight from the packets; the store gathers them into large writes. The library bounds the time without
 * progress. n, 0: the stream has ended, or -EAGAIN, FSD_LOST.
 */
static ssize_t lend_packets(struct storing *storing, struct iovec *iov, unsigned *count)
{
	size_t want = storing->left < LENT_MOST ? (size_t)storing->left : LENT_MOST;
	ssize_t n = rxw_call_readv(storing->call->rx, want, iov, count);

	if (n == -RXW_EAGAIN) {
		fsd_place_wait(&storing->place, monotonic_ns());
		return -EAGAIN;
	}
	fsd_place_got(&storing->place, n > 0 ? (uint64_t)n : 0, monotonic_ns());
	return n < 0 ? FSD_LOST : n;
}

/*
 * Give what has come to the store. Ended: storing->result is 0; FSD_LOST; -EAGAIN: fewer data came than
 * announced, which a range may; or a result of the store.
 *
 * Linux 6.12 repeats a store that was refused as busy or restarting without its data. It gives up at
 * other errors, and the data is lost; at EAGAIN it makes a new call, with the data.
 */
static enum fsd_task_state receive_data(struct storing *storing)
{
	const struct fs_change *change = &storing->call->change;
	uint64_t end = storing->left > TURN ? storing->left - TURN : 0;

	assert(storing->has_place && storing->has_writer);
	while (storing->left > end) {
		struct iovec iov[SLICES];
		unsigned count = SLICES;
		ssize_t n = lend_packets(storing, iov, &count);

		if (n == -EAGAIN)
			return FSD_TASK_WAITS;
		if (n == 0 && storing->request.session)
			return FSD_TASK_ENDED;
		storing->result =
			n > 0	 ? change->place.store->ops->write(change->writer, iov, (int)count)
			: n == 0 ? -EAGAIN
				 : FSD_LOST;
		if (storing->result)
			return FSD_TASK_ENDED;
		assert((uint64_t)n <= storing->left);
		storing->left -= (uint64_t)n;
	}
	return storing->left ? FSD_TASK_GOES_ON : FSD_TASK_ENDED;
}

/* The bytes of a range count from now on, but change nothing yet. */
static int end_range(struct fs_call *call, struct fsd_session *session, int rc)
{
	struct fs_change *change = &call->change;

	if (!rc)
		rc = change->place.store->ops->ranges->end_range(change->writer, &change->length);
	fsd_session_judge(&call->service->sessions, session, rc);
	fsd_session_leave(&call->service->sessions, session, rc ? 0 : change->length);
	return rc;
}

/* All data has come, or the call has failed. It is answered here or after the commit. */
static void end_storing(struct storing *storing)
{
	struct fsd_session *session = storing->request.session;
	struct fs_call *call = storing->call;
	struct fs_change *change = &call->change;
	struct fsd_places *all = &call->service->storing;
	const struct store_ops *ops = change->place.store->ops;
	int rc = storing->result;
	bool has_writer;

	/* The call outlives the task, which no callback may visit any more. */
	fs_set_callback(call, NULL, NULL);
	if (storing->has_place && !fsd_place_settle(all, &storing->place))
		rc = AFS_VBUSY;
	if (storing->has_place)
		fsd_place_leave(all, &storing->place);
	has_writer = storing->has_writer;
	free(storing);
	if (rc) {
		if (has_writer) {
			ops->write_abort(change->writer);
			fsd_count(&call->service->counters.store_aborts, 1);
		}
	} else if (!session) {
		assert(has_writer);
		rc = ops->write_commit(change->writer, &change->status, &change->changes);
	}
	if (session)
		fs_answer_later(call, end_range(call, session, rc), call->reply);
	else if (rc != STORE_LATER)
		fs_end_change(call, rc);
}

static int repeat_commit(struct fs_call *call)
{
	struct fs_change *change = &call->change;

	return change->place.store->ops->write_commit(change->writer, &change->status,
						      &change->changes);
}

static int open_writer(struct storing *storing)
{
	const struct store_request *request = &storing->request;
	struct fs_call *call = storing->call;
	struct fs_change *change = &call->change;
	const struct store_ops *ops = change->place.store->ops;
	const struct store_caller *self = fs_self_later(call, request->reply, repeat_commit);
	int rc = request->session ? fsd_session_range(request->session, self, request->offset,
						      request->length, &change->writer)
				  : ops->write_begin(change->place.store, self, &change->place.fid,
						     &change->set, request->offset, request->length,
						     request->file_length, &change->writer);

	storing->has_writer = rc == 0;
	return rc;
}

/* From now on the client waits for a thread, which the disk may hold up, and the server does not wait. */
static void report_data(rxw_call *rx, unsigned events, void *arg)
{
	struct storing *storing = arg;

	(void)rx;
	if (events & RXW_EVENT_READ)
		fsd_place_got(&storing->place, 0, monotonic_ns());
	fsd_task_visit(storing->task);
}

/* The same while it waits for a place. A client that is gone keeps no share of those that wait. */
static void withdraw_store(rxw_call *rx, unsigned events, void *arg)
{
	struct storing *storing = arg;

	(void)rx;
	if (events & RXW_EVENT_DONE)
		fsd_place_withdraw(&storing->call->service->storing, &storing->place);
}

/* The volume may have been released, moved or removed meanwhile. */
static int open_writer_after_wait(struct storing *storing)
{
	struct fs_call *call = storing->call;
	int rc;

	if (!storing->has_place)
		return rxw_call_error(call->rx, NULL) ? FSD_LOST : AFS_VBUSY;
	fs_set_callback(call, report_data, storing);
	call->place.store = NULL;
	rc = fs_find_to_write(call, &storing->request.fid, &call->change.place);
	return rc ? rc : open_writer(storing);
}

static enum fsd_task_state run_storing(void *arg)
{
	struct storing *storing = arg;
	enum fsd_task_state state;

	if (!storing->has_writer)
		storing->result = open_writer_after_wait(storing);
	state = storing->result ? FSD_TASK_ENDED : receive_data(storing);
	if (state == FSD_TASK_ENDED)
		end_storing(storing);
	return state;
}

/* The call may wait for a place if `start` is set. */
static enum fsd_entry take_store_place(struct storing *storing,
				       void (*start)(struct fsd_place *place, bool got))
{
	struct fs_call *call = storing->call;
	struct fsd_service *service = call->service;
	struct fsd_places *all = &service->storing;
	const struct sockaddr_storage *peer = &call->running.peer;
	enum fsd_entry entry =
		start ? fsd_wait_for_place(service, all, &storing->place, call->rx, peer, start)
		      : fsd_place_enter(all, &storing->place, call->rx, peer, monotonic_ns());

	fsd_count(&service->counters.stores_given_up, entry == FSD_ENTRY_TAKEN);
	fsd_count(&service->counters.stores_held, entry == FSD_ENTRY_WAITS);
	return entry;
}

static void count_store(struct fs_call *call, int result)
{
	struct fsd_counters *counters = &call->service->counters;

	/* One in ranges is counted at its end. */
	fsd_count(&counters->stores, call->running.opcode != RXAFS_OP_StoreRange);
	fsd_count(&counters->store_ns, monotonic_ns() - call->change.begin);
	if (result)
		return;
	fsd_count(&counters->stored_bytes, call->change.length);
	fsd_volume_count(call->service->volume_counts, call->change.place.fid.volume,
			 FSD_VOLUME_STORED_BYTES, call->change.length);
}

static void fill_stored_reply(struct fs_call *call, AFSFetchStatus *st, AFSVolSync *sync)
{
	fs_fill(call, &call->change.status, st);
	fs_sync(call, sync);
}

/* The handler has returned. */
static void reply_stored(struct fs_call *call, int result,
			 int32_t (*reply)(rxw_call *rx, int32_t code, const AFSFetchStatus *st,
					  const AFSVolSync *sync))
{
	int32_t code = fs_code(call, result);
	AFSFetchStatus st = {0};
	AFSVolSync sync = {0};

	count_store(call, result);
	if (!result)
		fill_stored_reply(call, &st, &sync);
	fs_audit(call, code);
	fs_end(call, reply(call->rx, code, &st, &sync));
}

static void reply_32(struct fs_call *call, int result)
{
	reply_stored(call, result, RXAFS_StoreData_reply);
}

static void reply_64(struct fs_call *call, int result)
{
	reply_stored(call, result, RXAFS_StoreData64_reply);
}

static void reply_range(struct fs_call *call, int result)
{
	int32_t code = fs_code(call, result);

	count_store(call, result);
	fs_audit(call, code);
	fs_end(call, RXAFS_StoreRange_reply(call->rx, code, call->change.length));
}

static bool is_in_range(const struct store_request *request)
{
	return request->offset <= INT64_MAX && request->length <= INT64_MAX &&
	       request->file_length <= INT64_MAX && request->offset + request->length <= INT64_MAX;
}

/* -- beginnings: the handler returns after them, and the call is deferred; or they return its result -- */

static void free_storing(struct storing *storing)
{
	fsd_task_destroy(storing->task);
	free(storing);
}

/* It has a place. Unless many do so, the handler takes with it what has come. */
static int begin_storing(struct storing *storing)
{
	struct fs_call *call = storing->call;
	struct fsd_task *task = storing->task;
	int rc = open_writer(storing);

	if (!rc && !fs_defer(call)) {
		call->change.place.store->ops->write_abort(call->change.writer);
		rc = AFS_VBUSY;
	}
	if (rc) {
		fsd_place_leave(&call->service->storing, &storing->place);
		free_storing(storing);
		return rc;
	}
	storing->has_place = true;
	fs_set_callback(call, report_data, storing);
	fsd_task_begin(task);
	return RXW_RPC_DEFERRED;
}

static void resume_storing(struct fsd_place *place, bool got)
{
	struct storing *storing =
		(struct storing *)(void *)((char *)place - offsetof(struct storing, place));

	assert(!storing->has_place && !storing->has_writer);
	storing->has_place = got;
	fsd_task_post(storing->task);
}

/* Meanwhile it has no thread and no writer, and of the data only what the library receives before it is read. */
static int wait_to_store(struct storing *storing)
{
	struct fs_call *call = storing->call;
	enum fsd_entry entry;

	fs_self_later(call, storing->request.reply, repeat_commit);
	if (!fs_defer(call)) {
		free_storing(storing);
		return AFS_VBUSY;
	}
	fs_set_callback(call, withdraw_store, storing);
	entry = take_store_place(storing, resume_storing);
	if (entry != FSD_ENTRY_WAITS)
		resume_storing(&storing->place, entry != FSD_ENTRY_REFUSED);
	return RXW_RPC_DEFERRED;
}

static int store_without_thread(struct fs_call *call, const struct store_request *request)
{
	struct storing *storing = calloc(1, sizeof(*storing));
	struct fsd_share_key caller;

	if (!storing)
		return -ENOMEM;
	storing->call = call;
	storing->request = *request;
	storing->left = request->length;
	fsd_share_of_address(&call->running.peer, &caller);
	storing->task = fsd_task_create(call->service->storers, &caller, run_storing, storing);
	if (!storing->task) {
		free(storing);
		return -ENOMEM;
	}
	return take_store_place(storing, NULL) != FSD_ENTRY_REFUSED ? begin_storing(storing)
								    : wait_to_store(storing);
}

static int store_data(struct fs_call *call, const AFSStoreStatus *ss,
		      const struct store_request *request)
{
	struct fs_change *change = &call->change;
	int rc = fs_find_to_write(call, &request->fid, &change->place);

	fs_note(call, &request->fid, NULL);
	if (rc)
		return rc;
	change->set = fs_set(ss);
	change->length = request->length;
	change->begin = monotonic_ns();
	if (!is_in_range(request))
		return -EFBIG;
	rc = store_without_thread(call, request);
	if (rc == RXW_RPC_DEFERRED)
		return rc;
	count_store(call, rc);
	return fs_finish(call, rc, &change->changes);
}

/* Signed in the protocol. */
static uint64_t widen_signed(uint32_t value)
{
	return (uint64_t)(int64_t)(int32_t)value;
}

int32_t fs_store_data(void *context, rxw_call *rx, const AFSFid *fid, const AFSStoreStatus *ss,
		      uint32_t pos, uint32_t length, uint32_t file_length, AFSFetchStatus *st,
		      AFSVolSync *sync)
{
	const struct store_request request = {
		*fid, widen_signed(pos), widen_signed(length), widen_signed(file_length), reply_32,
		NULL};

	(void)rx;
	(void)st;
	(void)sync; /* the reply has both */
	return store_data(context, ss, &request);
}

int32_t fs_store_data64(void *context, rxw_call *rx, const AFSFid *fid, const AFSStoreStatus *ss,
			uint64_t pos, uint64_t length, uint64_t file_length, AFSFetchStatus *st,
			AFSVolSync *sync)
{
	const struct store_request request = {*fid, pos, length, file_length, reply_64, NULL};

	(void)rx;
	(void)st;
	(void)sync;
	return store_data(context, ss, &request);
}

/* Without bytes it tells whether there is such a session here. */
int32_t fs_store_range(void *context, rxw_call *rx, const StoreSession *id, uint64_t pos,
		       uint64_t length, uint64_t *taken)
{
	static const AFSStoreStatus nothing;
	struct fs_call *call = context;
	struct fsd_sessions *all = &call->service->sessions;
	struct store_request request = {.offset = pos, .length = length, .reply = reply_range};
	int rc = 0;

	(void)rx;
	*taken = 0;
	request.session = fsd_session_find(all, id, call->self.id);
	if (!request.session)
		return -EBADF;
	request.fid = request.session->fid;
	if (length)
		rc = store_data(call, &nothing, &request);
	if (rc != RXW_RPC_DEFERRED) {
		fsd_session_judge(all, request.session, rc);
		fsd_session_leave(all, request.session, 0);
	}
	return rc;
}
