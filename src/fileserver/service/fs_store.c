/* SPDX-License-Identifier: BSD-2-Clause */
/* The file service: data that clients send. */
#include <errno.h>
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

/*
 * A store whose data is received, without a thread that waits for it. One thread at a time uses it: that
 * of the handler, and from then on those of the task.
 */
struct storing {
	struct fs_call *call;
	struct fsd_task *task;
	uint64_t left; /* bytes that have not come */
	int result;
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
 * announced; or a result of the store.
 *
 * Linux 6.12 repeats a store that was refused as busy or restarting without its data. It gives up at
 * other errors, and the data is lost; at EAGAIN it makes a new call, with the data.
 */
static enum fsd_task_state receive_data(struct storing *storing)
{
	const struct fs_change *change = &storing->call->change;
	uint64_t end = storing->left > TURN ? storing->left - TURN : 0;

	while (storing->left > end) {
		struct iovec iov[SLICES];
		unsigned count = SLICES;
		ssize_t n = lend_packets(storing, iov, &count);

		if (n == -EAGAIN)
			return FSD_TASK_WAITS;
		storing->result =
			n > 0	 ? change->place.store->ops->write(change->writer, iov, (int)count)
			: n == 0 ? -EAGAIN
				 : FSD_LOST;
		if (storing->result)
			return FSD_TASK_ENDED;
		storing->left -= (uint64_t)n;
	}
	return storing->left ? FSD_TASK_GOES_ON : FSD_TASK_ENDED;
}

/* All data has come, or the call has failed. It is answered here or after the commit. */
static void end_storing(struct storing *storing)
{
	struct fs_call *call = storing->call;
	struct fs_change *change = &call->change;
	struct fsd_places *all = &call->service->storing;
	const struct store_ops *ops = change->place.store->ops;
	int rc = storing->result;

	/* The call outlives the task, which no callback may visit any more. */
	fs_set_callback(call, NULL, NULL);
	if (!fsd_place_settle(all, &storing->place))
		rc = AFS_VBUSY;
	fsd_place_leave(all, &storing->place);
	free(storing);
	if (rc) {
		ops->write_abort(change->writer);
		fsd_count(&call->service->counters.store_aborts, 1);
	} else {
		rc = ops->write_commit(change->writer, &change->status, &change->changes);
	}
	if (rc != STORE_LATER)
		fs_end_change(call, rc);
}

static enum fsd_task_state run_storing(void *arg)
{
	struct storing *storing = arg;
	enum fsd_task_state state = receive_data(storing);

	if (state == FSD_TASK_ENDED)
		end_storing(storing);
	return state;
}

/* From now on the client waits: for a thread, which the disk may keep, and not the server. */
static void report_data(rxw_call *rx, unsigned events, void *arg)
{
	struct storing *storing = arg;

	(void)rx;
	if (events & RXW_EVENT_READ)
		fsd_place_got(&storing->place, 0, monotonic_ns());
	fsd_task_visit(storing->task);
}

static int take_place(struct storing *storing)
{
	struct fs_call *call = storing->call;
	enum fsd_entry entry = fsd_place_enter(&call->service->storing, &storing->place, call->rx,
					       &call->running.peer, monotonic_ns());

	if (entry == FSD_ENTRY_TAKEN)
		fsd_count(&call->service->counters.stores_given_up, 1);
	return entry == FSD_ENTRY_REFUSED ? AFS_VBUSY : 0;
}

static void count_store(struct fs_call *call, int result)
{
	struct fsd_counters *counters = &call->service->counters;

	fsd_count(&counters->stores, 1);
	fsd_count(&counters->store_ns, monotonic_ns() - call->change.begin);
	if (!result)
		fsd_count(&counters->stored_bytes, call->change.length);
}

static void fill(struct fs_call *call, AFSFetchStatus *st, AFSVolSync *sync)
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
		fill(call, &st, &sync);
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

static int commit_again(struct fs_call *call)
{
	struct fs_change *change = &call->change;

	return change->place.store->ops->write_commit(change->writer, &change->status,
						      &change->changes);
}

/* What a client asks for: StoreData and StoreData64. */
struct store_request {
	uint64_t offset, length, file_length;
	void (*reply)(struct fs_call *call, int result);
};

static bool is_in_range(const struct store_request *request)
{
	return request->offset <= INT64_MAX && request->length <= INT64_MAX &&
	       request->file_length <= INT64_MAX && request->offset + request->length <= INT64_MAX;
}

/* The call has a place and a writer, and is deferred; or the result. */
static int prepare_storing(struct storing *storing, const struct store_request *request)
{
	struct fs_call *call = storing->call;
	struct fs_change *change = &call->change;
	const struct store_ops *ops = change->place.store->ops;
	struct fsd_share_key caller;
	int rc = take_place(storing);

	if (rc)
		return rc;
	fsd_share_of_address(&call->running.peer, &caller);
	storing->task = fsd_task_create(call->service->storers, &caller, run_storing, storing);
	rc = storing->task
		     ? ops->write_begin(change->place.store,
					fs_self_later(call, request->reply, commit_again),
					&change->place.fid, &change->set, request->offset,
					request->length, request->file_length, &change->writer)
		     : -ENOMEM;
	if (!rc && !fs_defer(call)) {
		ops->write_abort(change->writer);
		rc = AFS_VBUSY;
	}
	if (!rc)
		return 0;
	fsd_task_destroy(storing->task);
	fsd_place_leave(&call->service->storing, &storing->place);
	return rc;
}

/* The handler returns. Unless many do so, it takes with it what has come. */
static int store_without_thread(struct fs_call *call, const struct store_request *request)
{
	struct storing *storing = calloc(1, sizeof(*storing));
	struct fsd_task *task;
	int rc;

	if (!storing)
		return -ENOMEM;
	storing->call = call;
	storing->left = request->length;
	rc = prepare_storing(storing, request);
	if (rc) {
		free(storing);
		return rc;
	}
	task = storing->task;
	fs_set_callback(call, report_data, storing);
	fsd_task_begin(task);
	return RXW_RPC_DEFERRED;
}

static int store_data(struct fs_call *call, const AFSFid *fid, const AFSStoreStatus *ss,
		      const struct store_request *request)
{
	struct fs_change *change = &call->change;
	int rc = fs_find_to_write(call, fid, &change->place);

	fs_note(call, fid, NULL);
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
static uint64_t widen(uint32_t value)
{
	return (uint64_t)(int64_t)(int32_t)value;
}

int32_t fs_store_data(void *context, rxw_call *rx, const AFSFid *fid, const AFSStoreStatus *ss,
		      uint32_t pos, uint32_t length, uint32_t file_length, AFSFetchStatus *st,
		      AFSVolSync *sync)
{
	const struct store_request request = {widen(pos), widen(length), widen(file_length),
					      reply_32};

	(void)rx;
	(void)st;
	(void)sync; /* the reply has both */
	return store_data(context, fid, ss, &request);
}

int32_t fs_store_data64(void *context, rxw_call *rx, const AFSFid *fid, const AFSStoreStatus *ss,
			uint64_t pos, uint64_t length, uint64_t file_length, AFSFetchStatus *st,
			AFSVolSync *sync)
{
	const struct store_request request = {pos, length, file_length, reply_64};

	(void)rx;
	(void)st;
	(void)sync;
	return store_data(context, fid, ss, &request);
}
