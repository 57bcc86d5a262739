/* SPDX-License-Identifier: BSD-2-Clause */
/* The file service: data that clients send. */
#include <errno.h>
#include <string.h>
#include <rxwire/call.h>
#include <rxwire/rpc.h>

#include "common/clock.h"
#include "fileserver/base/base.h"
#include "fileserver/service/fs.h"
#include "fileserver/service/fs_handlers.h"

#define SLICES	  256		    /* of packets that are lent at a time */
#define LENT_MOST ((size_t)1 << 20) /* bytes of them */

/* A store whose data is received. */
struct storing {
	struct fs_call *call;
	rxw_call *rx;
	uint64_t offset, length, file_length;
	struct fsd_place place;
};

/*
 * Give the data to the store straight from the packets; the store gathers them into large writes. The
 * library bounds the time without progress. 0, FSD_LOST, -EAGAIN: fewer data came than announced; or a
 * result of the store.
 *
 * Linux 6.12 repeats a store that was refused as busy or restarting without its data. It gives up at
 * other errors, and the data is lost; at EAGAIN it makes a new call, with the data.
 */
static int receive(struct storing *storing, struct store_writer *writer)
{
	const struct store_ops *ops = storing->call->change.place.store->ops;

	for (uint64_t left = storing->length; left;) {
		struct iovec iov[SLICES];
		unsigned count = SLICES;
		size_t want = left < LENT_MOST ? (size_t)left : LENT_MOST;
		ssize_t n;
		int rc;

		fsd_place_wait(&storing->place, monotonic_ns());
		n = rxw_call_readv(storing->rx, want, iov, &count);
		fsd_place_got(&storing->place, n > 0 ? (uint64_t)n : 0, monotonic_ns());
		if (n < 0)
			return FSD_LOST;
		if (n == 0)
			return -EAGAIN;
		rc = ops->write(writer, iov, (int)count);
		if (rc)
			return rc;
		left -= (uint64_t)n;
	}
	return 0;
}

static int store_with(struct storing *storing, const struct store_caller *self)
{
	struct fs_change *change = &storing->call->change;
	struct store *store = change->place.store;
	int rc = store->ops->write_begin(store, self, &change->place.fid, &change->set,
					 storing->offset, storing->length, storing->file_length,
					 &change->writer);

	if (rc)
		return rc;
	rc = receive(storing, change->writer);
	if (!fsd_place_settle(&storing->call->service->storing, &storing->place))
		rc = AFS_VBUSY;
	if (!rc)
		return store->ops->write_commit(change->writer, &change->status, &change->changes);
	store->ops->write_abort(change->writer);
	fsd_count(&storing->call->service->counters.store_aborts, 1);
	return rc;
}

static int store_bounded(struct storing *storing, const struct store_caller *self)
{
	struct fs_call *call = storing->call;
	struct fsd_places *all = &call->service->storing;
	enum fsd_entry entry = fsd_place_enter(all, &storing->place, storing->rx,
						 &call->running.peer, monotonic_ns());
	int rc;

	if (entry == FSD_ENTRY_REFUSED)
		return AFS_VBUSY;
	if (entry == FSD_ENTRY_TAKEN)
		fsd_count(&call->service->counters.stores_given_up, 1);
	rc = store_with(storing, self);
	fsd_place_leave(all, &storing->place);
	return rc;
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

static int store_data(struct storing *storing, const AFSFid *fid, const AFSStoreStatus *ss,
		      void (*reply)(struct fs_call *call, int result), AFSFetchStatus *st,
		      AFSVolSync *sync)
{
	struct fs_call *call = storing->call;
	struct fs_change *change = &call->change;
	const struct store_caller *self = fs_self_later(call, reply, commit_again);
	int rc = fs_find_to_write(call, fid, &change->place);

	fs_note(call, fid, NULL);
	if (rc)
		return rc;
	change->set = fs_set(ss);
	change->length = storing->length;
	change->begin = monotonic_ns();
	if (storing->offset > INT64_MAX || storing->length > INT64_MAX ||
	    storing->file_length > INT64_MAX || storing->offset + storing->length > INT64_MAX)
		return -EFBIG;
	rc = store_bounded(storing, self);
	if (rc == STORE_LATER)
		return RXW_RPC_DEFERRED;
	count_store(call, rc);
	rc = fs_finish(call, rc, &change->changes);
	if (!rc)
		fill(call, st, sync);
	return rc;
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
	struct storing storing = {.call = context,
				  .rx = rx,
				  .offset = widen(pos),
				  .length = widen(length),
				  .file_length = widen(file_length)};

	return store_data(&storing, fid, ss, reply_32, st, sync);
}

int32_t fs_store_data64(void *context, rxw_call *rx, const AFSFid *fid, const AFSStoreStatus *ss,
			uint64_t pos, uint64_t length, uint64_t file_length, AFSFetchStatus *st,
			AFSVolSync *sync)
{
	struct storing storing = {.call = context,
				  .rx = rx,
				  .offset = pos,
				  .length = length,
				  .file_length = file_length};

	return store_data(&storing, fid, ss, reply_64, st, sync);
}
