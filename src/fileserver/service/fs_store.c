/* SPDX-License-Identifier: BSD-2-Clause */
/* The file service: data that clients send. */
#include <errno.h>
#include <string.h>
#include <rxwire/call.h>

#include "common/clock.h"
#include "fileserver/base/base.h"
#include "fileserver/service/fs.h"
#include "fileserver/service/fs_handlers.h"

#define SLICES	  256		    /* of packets that are lent at a time */
#define LENT_MOST ((size_t)1 << 20) /* bytes of them */

/* A store in progress. */
struct storing {
	struct fs_call *call;
	rxw_call *rx;
	struct fs_place place;
	uint64_t offset, length, file_length;
};

/*
 * Give the data to the store straight from the packets; the store gathers them into large writes. The
 * library bounds the time without progress. 0, FSD_LOST, -EIO: fewer data came than announced; or a
 * result of the store.
 */
static int receive(struct storing *storing, struct store_writer *writer)
{
	const struct store_ops *ops = storing->place.store->ops;

	for (uint64_t left = storing->length; left;) {
		struct iovec iov[SLICES];
		unsigned count = SLICES;
		size_t want = left < LENT_MOST ? (size_t)left : LENT_MOST;
		ssize_t n = rxw_call_readv(storing->rx, want, iov, &count);
		int rc;

		if (n < 0)
			return FSD_LOST;
		if (n == 0)
			return -EIO;
		rc = ops->write(writer, iov, (int)count);
		if (rc)
			return rc;
		left -= (uint64_t)n;
	}
	return 0;
}

static int store_with(struct storing *storing, const struct store_set *set,
		      struct store_status *status, struct store_changes *changes)
{
	struct store *store = storing->place.store;
	struct store_writer *writer = NULL;
	int rc = store->ops->write_begin(store, &storing->call->self, &storing->place.fid, set,
					 storing->offset, storing->length, storing->file_length,
					 &writer);

	if (rc)
		return rc;
	rc = receive(storing, writer);
	if (!rc)
		return store->ops->write_commit(writer, status, changes);
	store->ops->write_abort(writer);
	fsd_count(&storing->call->service->counters.store_aborts, 1);
	return rc;
}

/* If not too many calls receive data already: each occupies a thread, and memory of the store. */
static int store_bounded(struct storing *storing, const struct store_set *set,
			 struct store_status *status, struct store_changes *changes)
{
	struct fsd_service *service = storing->call->service;
	int rc = AFS_VBUSY;

	if (atomic_fetch_add(&service->storing, 1) < FSD_STORES_MAX)
		rc = store_with(storing, set, status, changes);
	atomic_fetch_sub(&service->storing, 1);
	return rc;
}

static int store_data(struct storing *storing, const AFSFid *fid, const AFSStoreStatus *ss,
		      AFSFetchStatus *st, AFSVolSync *sync)
{
	struct fs_call *call = storing->call;
	struct fsd_counters *counters = &call->service->counters;
	const struct store_set set = fs_set(ss);
	uint64_t begin = monotonic_ns();
	struct store_changes changes = {0};
	struct store_status status;
	int rc = fs_find_to_write(call, fid, &storing->place);

	fs_note(call, fid, NULL);
	if (rc)
		return rc;
	if (storing->offset > INT64_MAX || storing->length > INT64_MAX ||
	    storing->file_length > INT64_MAX || storing->offset + storing->length > INT64_MAX)
		return -EFBIG;
	rc = store_bounded(storing, &set, &status, &changes);
	fsd_count(&counters->stores, 1);
	fsd_count(&counters->store_ns, monotonic_ns() - begin);
	rc = fs_finish(call, rc, &changes);
	if (rc)
		return rc;
	fsd_count(&counters->stored_bytes, storing->length);
	fs_fill(call, &status, st);
	fs_sync(call, sync);
	return 0;
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

	return store_data(&storing, fid, ss, st, sync);
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

	return store_data(&storing, fid, ss, st, sync);
}
