/* SPDX-License-Identifier: BSD-2-Clause */
/* The file service: data of files, directories and symbolic links. */
#include <errno.h>
#include <string.h>
#include <rxwire/error.h>
#include <rxwire/xdr.h>

#include "common/clock.h"
#include "fileserver/base/base.h"
#include "fileserver/service/fs.h"
#include "fileserver/service/fs_handlers.h"

#define LENGTH_MAX  0x7fffffffull /* clients store the length of a reply in 31 bits */
#define SMALL_PIECE 16384

/* A fetch in progress; the source of fsd_send(). */
struct fetch {
	struct fsd_source source;
	struct fs_call *call;
	const AFSFid *fid;
	bool wide; /* FetchData64: the length is sent as a 64-bit number */
	uint64_t offset, wanted;
	struct fsd_stream stream;
	struct fs_place place;
	struct store_reader *reader;
	struct store_status status;
};

static ssize_t read_source(struct fsd_source *source, const struct iovec *iov, int count,
			   uint64_t offset, bool cached)
{
	const struct fetch *fetch = (struct fetch *)source;

	return fetch->place.store->ops->read(fetch->reader, iov, count, offset,
					     cached ? STORE_CACHED : 0);
}

static const struct fsd_source_ops source_ops = {.read = read_source};

/* The number of bytes to send of an object of `size` bytes. */
static uint64_t clip(const struct fetch *fetch, uint64_t size)
{
	uint64_t length = fetch->offset < size ? size - fetch->offset : 0;

	if (length > fetch->wanted)
		length = fetch->wanted;
	return length < LENGTH_MAX ? length : LENGTH_MAX;
}

static int send_length(struct fetch *fetch, uint64_t length)
{
	uint8_t head[8];

	rxw_xdr_store64(head, length);
	return fetch->wide ? fsd_stream_write(&fetch->stream, head, 8)
			   : fsd_stream_write(&fetch->stream, head + 4, 4);
}

/* Sequential readers request a file in parts: have the next ones read ahead. */
static void look_ahead(struct fetch *fetch, uint64_t length)
{
	const struct store_ops *ops = fetch->place.store->ops;
	const uint64_t ahead = 4ull << 20;
	uint64_t end = fetch->offset + length;

	/*
	 * Once per 2 MiB, and not after the first part, which may be the only one.
	 */
	if (length < 65536 || length > ahead || fetch->offset == 0 || end >= fetch->status.length ||
	    (fetch->offset >> 21) == (end >> 21) || !ops->read_ahead)
		return;
	ops->read_ahead(fetch->reader, end, ahead);
}

static void explain(const struct fetch *fetch, int rc)
{
	const AFSFid *fid = fetch->fid;

	if (!rc || rc == FSD_LOST)
		return;
	fsd_count(&fetch->call->service->counters.fetch_aborts, 1);
	if (!fetch->call->service->exported && fsd_failure_of(rc) != FSD_FAILURES)
		return; /* fs_code() logs it */
	fsd_log(RXW_LOG_INFO, "fetch of %u.%u.%u aborted: %s", (unsigned)fid->Volume,
		(unsigned)fid->Vnode, (unsigned)fid->Unique,
		rc == -EIO ? "the file changed while it was read, or could not be read"
		: rc < 0   ? strerror(-rc)
			   : rxw_code_text(rc));
}

/* Of directories and links, which are in memory. */
static int send_small(struct fetch *fetch, uint64_t length)
{
	uint8_t piece[SMALL_PIECE];
	uint64_t at = fetch->offset, end = at + length;
	int rc = 0;

	while (!rc && at < end) {
		struct iovec iov = {piece,
				    end - at < sizeof(piece) ? (size_t)(end - at) : sizeof(piece)};
		ssize_t n = fetch->place.store->ops->read(fetch->reader, &iov, 1, at, 0);

		if (n <= 0)
			return n ? (int)n : -EIO;
		rc = fsd_stream_write(&fetch->stream, piece, (size_t)n);
		at += (uint64_t)n;
	}
	return rc;
}

static int send_data(struct fetch *fetch)
{
	struct fsd_service *service = fetch->call->service;
	uint64_t length = clip(fetch, fetch->status.length);
	int rc = send_length(fetch, length), end;

	if (!rc && fetch->status.kind != STORE_FILE)
		rc = send_small(fetch, length);
	else if (!rc)
		rc = fsd_send(service->readers, &fetch->source, fetch->offset, length,
			      &fetch->stream);
	if (!rc && fetch->status.kind == STORE_FILE)
		look_ahead(fetch, length);
	end = fetch->place.store->ops->read_end(fetch->reader);
	if (!rc)
		rc = end;
	if (!rc)
		fsd_count(&service->counters.fetched_bytes, length);
	explain(fetch, rc);
	return rc;
}

static bool fits(const struct fetch *fetch)
{
	return fetch->offset <= INT64_MAX && fetch->wanted <= INT64_MAX &&
	       fetch->offset + fetch->wanted <= INT64_MAX;
}

/*
 * Length and data are sent from here, as they are read. If nothing failed, the stub sends the
 * results after them; else the call is aborted, and the client discards the data.
 */
static int fetch_data(struct fetch *fetch, AFSFetchStatus *st, AFSCallBack *cb, AFSVolSync *sync)
{
	struct fs_call *call = fetch->call;
	struct fsd_counters *counters = &call->service->counters;
	uint64_t begin = monotonic_ns();
	struct store *store;
	int rc = fs_find(call, fetch->fid, &fetch->place);

	memset(cb, 0, sizeof(*cb));
	fs_note(call, fetch->fid, NULL);
	if (rc)
		return rc;
	/* Give the promise first, so that a change during the transfer breaks it. */
	fs_promise(call, &fetch->place, cb);
	store = fetch->place.store;
	rc = store->ops->read_begin(store, &call->self, &fetch->place.fid, &fetch->reader,
				    &fetch->status);
	if (!fs_settled(call, fetch->fid) && !rc) {
		store->ops->read_end(fetch->reader);
		rc = AFS_VBUSY;
	}
	if (rc)
		return rc;
	if (fits(fetch)) {
		rc = send_data(fetch);
	} else {
		store->ops->read_end(fetch->reader);
		rc = -EFBIG;
	}
	fsd_count(&counters->fetches, 1);
	fsd_count(&counters->fetch_ns, monotonic_ns() - begin);
	if (rc)
		return rc;
	fs_fill(call, &fetch->status, st);
	fs_sync(call, sync);
	return 0;
}

int32_t fs_fetch_data(void *context, rxw_call *rx, const AFSFid *fid, int32_t pos, int32_t length,
		      AFSFetchStatus *st, AFSCallBack *cb, AFSVolSync *sync)
{
	/* Signed in the protocol; the sign is kept. */
	struct fetch fetch = {.source = {&source_ops},
			      .call = context,
			      .fid = fid,
			      .offset = (uint64_t)(int64_t)pos,
			      .wanted = (uint64_t)(int64_t)length};

	fsd_stream_from_call(&fetch.stream, rx);
	return fetch_data(&fetch, st, cb, sync);
}

int32_t fs_fetch_data64(void *context, rxw_call *rx, const AFSFid *fid, int64_t pos, int64_t length,
			AFSFetchStatus *st, AFSCallBack *cb, AFSVolSync *sync)
{
	struct fetch fetch = {.source = {&source_ops},
			      .call = context,
			      .fid = fid,
			      .wide = true,
			      .offset = (uint64_t)pos,
			      .wanted = (uint64_t)length};

	fsd_stream_from_call(&fetch.stream, rx);
	return fetch_data(&fetch, st, cb, sync);
}
