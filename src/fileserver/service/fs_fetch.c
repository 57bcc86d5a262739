/* SPDX-License-Identifier: BSD-2-Clause */
/* The file service: data of files, directories and symbolic links. */
#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <rxwire/call.h>
#include <rxwire/engine.h>
#include <rxwire/error.h>
#include <rxwire/rpc.h>
#include <rxwire/xdr.h>

#include "common/clock.h"
#include "fileserver/base/base.h"
#include "fileserver/service/fs.h"
#include "fileserver/service/fs_handlers.h"

#define LENGTH_MAX  0x7fffffffull /* clients store the length of a reply in 31 bits */
#define SMALL	    20 /* packets, of a short path: as many as any call may queue while there is memory */
#define RESULTS	    256	 /* bytes that are sent besides the data, at most */
#define PIECES	    1024 /* of a file whose map takes little memory */

/* A fetch in progress; the source of its flow. */
struct fetch {
	struct fsd_source source;
	struct fs_call *call;
	AFSFid fid;
	bool wide; /* FetchData64: the length is sent as a 64-bit number */
	uint64_t offset, wanted, length, begin;
	AFSCallBack promise;
	struct fsd_stream stream; /* into `reply`, whose progress it notes */
	struct fsd_stream reply;
	bool waits; /* for room */
	bool has_slot;
	struct fsd_place slot;
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

/* -- the stream of a flow: a client that reads slowly may lose its place -- */

static struct fetch *fetch_of(struct fsd_stream *stream)
{
	return (struct fetch *)(void *)((char *)stream - offsetof(struct fetch, stream));
}

static ssize_t note_room(struct fetch *fetch, ssize_t n)
{
	bool waits = n == -EAGAIN;

	if (waits && !fetch->waits)
		fsd_place_wait(&fetch->slot, monotonic_ns());
	else if (!waits && fetch->waits)
		fsd_place_got(&fetch->slot, 0, monotonic_ns());
	fetch->waits = waits;
	return n;
}

static ssize_t write_noting(struct fsd_stream *stream, const void *data, size_t length)
{
	struct fetch *fetch = fetch_of(stream);
	ssize_t n = note_room(fetch, fetch->reply.ops->write(&fetch->reply, data, length));

	if (n > 0)
		fsd_place_got(&fetch->slot, (uint64_t)n, 0);
	if (n > 0 && (size_t)n < length)
		note_room(fetch, -EAGAIN);
	return n;
}

static ssize_t reserve_noting(struct fsd_stream *stream, size_t length, struct iovec *iov,
			      unsigned *count)
{
	struct fetch *fetch = fetch_of(stream);

	return note_room(fetch, fetch->reply.ops->reserve(&fetch->reply, length, iov, count));
}

static int commit_noting(struct fsd_stream *stream, size_t length)
{
	struct fetch *fetch = fetch_of(stream);

	fsd_place_got(&fetch->slot, length, 0);
	return fetch->reply.ops->commit(&fetch->reply, length);
}

static int watch_reply(struct fsd_stream *stream, void (*visit)(void *arg), void *arg)
{
	struct fetch *fetch = fetch_of(stream);

	return fetch->reply.ops->watch(&fetch->reply, visit, arg);
}

static int visit_again(struct fsd_stream *stream)
{
	struct fetch *fetch = fetch_of(stream);

	return fetch->reply.ops->again(&fetch->reply);
}

static const struct fsd_stream_ops noting_ops = {.write = write_noting,
						 .reserve = reserve_noting,
						 .commit = commit_noting,
						 .watch = watch_reply,
						 .again = visit_again};

/* -- fetches -- */

/* The number of bytes to send of an object of `size` bytes. */
static uint64_t clip_length(const struct fetch *fetch, uint64_t size)
{
	uint64_t length = fetch->offset < size ? size - fetch->offset : 0;

	if (length > fetch->wanted)
		length = fetch->wanted;
	return length < LENGTH_MAX ? length : LENGTH_MAX;
}

/* The length, as it is sent before the data. */
static struct fsd_head encode_length(const struct fetch *fetch, uint8_t bytes[FSD_HEAD])
{
	rxw_xdr_store64(bytes, fetch->length);
	return fetch->wide ? (struct fsd_head){bytes, 8} : (struct fsd_head){bytes + 4, 4};
}

/*
 * Sequential readers request a file in parts: have the next ones read ahead. On the thread of the
 * handler, since the request may wait for the disk.
 */
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

static void log_failed_fetch(const struct fetch *fetch, int rc)
{
	const AFSFid *fid = &fetch->fid;

	/* A refused call has no line of its own, or anyone could fill the log. */
	if (!rc || rc == AFS_VBUSY)
		return;
	fsd_count(&fetch->call->service->counters.fetch_aborts, 1);
	if (rc == FSD_LOST)
		return;
	if (!fetch->call->service->exported && fsd_failure_of(rc) != FSD_FAILURES)
		return; /* fs_code() logs it */
	fsd_log(RXW_LOG_INFO, "fetch of %u.%u.%u aborted: %s", (unsigned)fid->Volume,
		(unsigned)fid->Vnode, (unsigned)fid->Unique,
		rc == -EIO ? "the file changed while it was read, or could not be read"
		: rc < 0   ? strerror(-rc)
			   : rxw_code_text(rc));
}

/* Everything was written, or the call has failed. */
static int end_reading(struct fetch *fetch, uint64_t length, int rc)
{
	struct fsd_counters *counters = &fetch->call->service->counters;
	struct fsd_volume_counts *of_volume = fetch->call->service->volume_counts;
	uint32_t volume = fetch->place.fid.volume;
	int end;

	end = fetch->place.store->ops->read_end(fetch->reader);
	if (!rc)
		rc = end;
	if (!rc) {
		fsd_count(&counters->fetched_bytes, length);
		fsd_volume_count(of_volume, volume, FSD_VOLUME_FETCHED_BYTES, length);
	}
	fsd_volume_count(of_volume, volume, FSD_VOLUME_FETCHES, 1);
	log_failed_fetch(fetch, rc);
	fsd_count(&counters->fetches, 1);
	fsd_count(&counters->fetch_ns, monotonic_ns() - fetch->begin);
	return rc;
}

/* A client may take its time to read: a place. With `start`, the call may wait for one. */
static enum fsd_entry take_fetch_place(struct fetch *fetch,
				       void (*start)(struct fsd_place *place, bool got))
{
	struct fs_call *call = fetch->call;
	struct fsd_service *service = call->service;
	struct fsd_places *all = &service->sending;
	const struct sockaddr_storage *peer = &call->running.peer;
	enum fsd_entry entry =
		start ? fsd_wait_for_place(service, all, &fetch->slot, call->rx, peer, start)
		      : fsd_place_enter(all, &fetch->slot, call->rx, peer, monotonic_ns());

	fsd_count(&service->counters.fetches_given_up, entry == FSD_ENTRY_TAKEN);
	fsd_count(&service->counters.fetches_held, entry == FSD_ENTRY_WAITS);
	return entry;
}

/* A permit to keep a long map for the time of the fetch. */
static bool take_permit(const struct fetch *fetch)
{
	struct fs_call *call = fetch->call;

	return fetch->status.pieces <= PIECES ||
	       fsd_permit_take(&call->service->fragmented, call, &call->running.peer);
}

static void leave_place(struct fetch *fetch)
{
	struct fs_call *call = fetch->call;

	if (fetch->has_slot)
		fsd_place_leave(&call->service->sending, &fetch->slot);
	if (fetch->status.pieces > PIECES)
		fsd_permit_return(&call->service->fragmented, call);
}

static void answer_fetch(struct fs_call *call, int rc)
{
	struct fetch *fetch = call->fetch;
	int32_t (*reply)(rxw_call *rx, int32_t code, const AFSFetchStatus *st,
			 const AFSCallBack *cb, const AFSVolSync *sync) =
		fetch->wide ? RXAFS_FetchData64_reply : RXAFS_FetchData_reply;
	AFSFetchStatus st = {0};
	AFSVolSync sync = {0};
	int32_t code;

	rc = end_reading(fetch, fetch->length, rc);
	code = rc == FSD_LOST ? RXW_CALL_DEAD : fs_code(call, rc);
	if (!code) {
		fs_fill(call, &fetch->status, &st);
		fs_sync(call, &sync);
	}
	leave_place(fetch);
	fs_audit(call, code);
	code = reply(call->rx, code, &st, &fetch->promise, &sync);
	fs_end(call, code);
	free(fetch);
}

/* Readers read for others, too: only another thread may wait for room in the audit log. */
static void end_fetch(struct fsd_source *source, int rc)
{
	struct fs_call *call = ((struct fetch *)(void *)source)->call;

	call->fetch = (struct fetch *)(void *)source;
	if (!call->service->audit_reads) {
		answer_fetch(call, rc);
		return;
	}
	/* The call outlives the flow, which no callback may visit any more. */
	fs_set_callback(call, NULL, NULL);
	fs_answer_later(call, rc, answer_fetch);
}

/* `rc`: the call fails. */
static void start_sending(struct fetch *fetch, int rc)
{
	assert(fetch->call->deferred && (rc || (fetch->has_slot && fetch->reader)));
	if (!rc)
		rc = fsd_flow_start(fetch->call->service->readers, &fetch->source, fetch->offset,
				    fetch->length, &fetch->stream, end_fetch);
	if (rc)
		end_fetch(&fetch->source, rc);
}

static bool begin_sending(struct fetch *fetch)
{
	fetch->has_slot = take_fetch_place(fetch, NULL) != FSD_ENTRY_REFUSED;
	if (fetch->has_slot && fs_defer(fetch->call)) {
		start_sending(fetch, 0);
		return true;
	}
	leave_place(fetch);
	fetch->has_slot = false;
	return false;
}

/* -- fetches that wait for a place, meanwhile with nothing open -- */

/* The object as it is now: 0 or a result. */
static int open_for_fetch(struct fetch *fetch)
{
	const struct store_ops *ops = fetch->place.store->ops;
	int rc = ops->read_begin(fetch->place.store, &fetch->call->self, &fetch->place.fid,
				 &fetch->reader, &fetch->status);

	if (fs_settled(fetch->call, &fetch->fid) || rc)
		return rc;
	ops->read_end(fetch->reader);
	fetch->reader = NULL;
	return AFS_VBUSY;
}

/* The volume may have been released, moved or removed meanwhile. The thread belongs to the pool that ends changes. */
static int reopen_after_wait(struct fetch *fetch)
{
	struct fs_call *call = fetch->call;
	int rc;

	assert(fetch->has_slot && !fetch->reader);
	call->place.store = NULL;
	rc = fs_find(call, &fetch->fid, &fetch->place);
	if (rc)
		return rc;
	call->hasty = true;
	rc = open_for_fetch(fetch);
	call->hasty = false;
	return rc;
}

/* On a thread that may wait for the disk. The length of the reply is with the client already. */
static void send_after_wait(struct fsd_job *job)
{
	struct fs_call *call =
		(struct fs_call *)(void *)((char *)job - offsetof(struct fs_call, job));
	struct fetch *fetch = call->fetch;
	int rc = rxw_call_error(call->rx, NULL) ? FSD_LOST : AFS_VBUSY;

	fs_set_callback(call, NULL, NULL); /* withdraw_fetch() uses the fetch */
	if (fetch->has_slot)
		rc = reopen_after_wait(fetch);
	if (!rc &&
	    (clip_length(fetch, fetch->status.length) != fetch->length || !take_permit(fetch)))
		rc = AFS_VBUSY;
	start_sending(fetch, rc);
}

static void resume_fetch(struct fsd_place *place, bool got)
{
	struct fetch *fetch =
		(struct fetch *)(void *)((char *)place - offsetof(struct fetch, slot));

	fetch->has_slot = got;
	fs_run_later(fetch->call, send_after_wait);
}

/* A client that is gone keeps no share of those that wait. */
static void withdraw_fetch(rxw_call *rx, unsigned events, void *arg)
{
	struct fetch *fetch = arg;

	(void)rx;
	if (events & RXW_EVENT_DONE)
		fsd_place_withdraw(&fetch->call->service->sending, &fetch->slot);
}

static bool wait_for_place(struct fetch *fetch)
{
	enum fsd_entry entry;

	if (!fs_defer(fetch->call))
		return false;
	fetch->place.store->ops->read_end(fetch->reader);
	fetch->reader = NULL;
	fetch->call->fetch = fetch;
	fs_set_callback(fetch->call, withdraw_fetch, fetch);
	entry = take_fetch_place(fetch, resume_fetch);
	if (entry != FSD_ENTRY_WAITS)
		resume_fetch(&fetch->slot, entry != FSD_ENTRY_REFUSED);
	return true;
}

/* The handler returns; the call is answered when everything was written. */
static int send_without_thread(const struct fetch *fetch)
{
	struct fetch *copy = malloc(sizeof(*copy));

	if (!copy)
		return -ENOMEM;
	*copy = *fetch;
	copy->stream.ops = &noting_ops;
	fsd_share_of_address(&fetch->call->running.peer, &copy->stream.caller);
	if (take_permit(copy) && (begin_sending(copy) || wait_for_place(copy)))
		return RXW_RPC_DEFERRED;
	free(copy);
	return AFS_VBUSY;
}

/*
 * Whether the thread that sends the reply may have to wait for the client, which may take its time. Once half of the
 * memory is used (limit_sendq() of the library), all but the first packet waits for an acknowledgement.
 */
static bool may_wait_for_client(const struct fetch *fetch)
{
	const struct fsd_service *service = fetch->call->service;
	size_t size = rxw_call_packet_size(fetch->call->rx);
	uint64_t packets = size ? (fetch->length + RESULTS) / size + 1 : 1;

	return packets > SMALL ||
	       (packets > 1 && rxw_engine_memory(service->engine, NULL) > service->memory / 8 * 3);
}

static int send_fetched_data(struct fetch *fetch)
{
	uint8_t bytes[FSD_HEAD];
	const struct fsd_head head = encode_length(fetch, bytes);
	int rc;

	if (fetch->status.kind == STORE_FILE)
		look_ahead(fetch, fetch->length);
	if (!may_wait_for_client(fetch))
		rc = fsd_send_now(fetch->call->service->readers, &fetch->source, fetch->offset,
				  fetch->length, &head, &fetch->reply);
	else if (!(rc = fsd_stream_write(&fetch->reply, head.bytes, head.length)))
		rc = send_without_thread(fetch);
	return rc == RXW_RPC_DEFERRED ? rc : end_reading(fetch, fetch->length, rc);
}

static bool is_range_valid(const struct fetch *fetch)
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
	int rc = fs_find(call, &fetch->fid, &fetch->place);

	fetch->begin = monotonic_ns();
	memset(cb, 0, sizeof(*cb));
	fs_note(call, &fetch->fid, NULL);
	if (rc)
		return rc;
	/* Give the promise first, so that a change during the transfer breaks it. */
	fs_promise(call, &fetch->place, cb);
	rc = open_for_fetch(fetch);
	if (rc)
		return rc;
	if (!is_range_valid(fetch)) {
		end_reading(fetch, 0, -EFBIG);
		return -EFBIG;
	}
	fetch->promise = *cb;
	fetch->length = clip_length(fetch, fetch->status.length);
	rc = send_fetched_data(fetch);
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
			      .fid = *fid,
			      .offset = (uint64_t)(int64_t)pos,
			      .wanted = (uint64_t)(int64_t)length};

	fsd_stream_from_call(&fetch.reply, rx);
	return fetch_data(&fetch, st, cb, sync);
}

int32_t fs_fetch_data64(void *context, rxw_call *rx, const AFSFid *fid, int64_t pos, int64_t length,
			AFSFetchStatus *st, AFSCallBack *cb, AFSVolSync *sync)
{
	struct fetch fetch = {.source = {&source_ops},
			      .call = context,
			      .fid = *fid,
			      .wide = true,
			      .offset = (uint64_t)pos,
			      .wanted = (uint64_t)length};

	fsd_stream_from_call(&fetch.reply, rx);
	return fetch_data(&fetch, st, cb, sync);
}
