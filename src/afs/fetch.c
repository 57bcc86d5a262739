/* SPDX-License-Identifier: BSD-2-Clause */
/* Data of files: FetchData64 as a state machine. */
#include <string.h>

#include "afs/fetch.h"
#include "afs/fetchstatus.h"

#define HEAD_BYTES  8
#define TAIL_BYTES  (84 + 12 + 24) /* status, promise, volume */
#define SURPLUS_MAX 4096	   /* extra bytes after the tail that are discarded */
#define SLICES	    64		   /* lent at a time and dropped */

void afs_fetch_init(struct afs_fetch *fetch, const AFSFid *fid, uint64_t offset, uint64_t length)
{
	memset(fetch, 0, sizeof(*fetch));
	fetch->fid = *fid;
	fetch->offset = offset;
	fetch->wanted = length;
	fetch->phase = AFS_FETCH_SENDING;
}

/* Translate a failed result; `end` is the reason if the reply ended here. */
static enum afs_fetch_result explain_stuck_fetch(struct afs_fetch *f, ssize_t result,
						 const char *end)
{
	if (result == -RXW_EAGAIN)
		return AFS_FETCH_AGAIN;
	if (result == 0)
		f->why = end;
	else if (result != -RXW_ECALL)
		f->why = rxw_strerror((int)result);
	return AFS_FETCH_ERROR;
}

/* Collect `size` bytes in the buffer. 1 if complete, else 0 and *result. */
static int collect_reply(struct afs_fetch *f, rxw_call *call, size_t size, const char *end,
			 enum afs_fetch_result *result)
{
	while (f->used < size) {
		ssize_t n = rxw_call_read_some(call, f->buffer + f->used, size - f->used);

		if (n <= 0) {
			*result = explain_stuck_fetch(f, n, end);
			return 0;
		}
		f->used += (size_t)n;
	}
	return 1;
}

static enum afs_fetch_result send_request(struct afs_fetch *f, rxw_call *call)
{
	/* The first write of a call: it is accepted as a whole, or there is no memory. */
	if (StartRXAFS_FetchData64(call, &f->fid, (int64_t)f->offset, (int64_t)f->wanted) != 0)
		return rxw_call_error(call, NULL) ? AFS_FETCH_ERROR : AFS_FETCH_AGAIN;
	f->phase = AFS_FETCH_ENDING;
	return AFS_FETCH_DONE;
}

bool afs_fetch_send(struct afs_fetch *f, rxw_call *call)
{
	if (send_request(f, call) != AFS_FETCH_DONE || rxw_call_send_end(call) != 0)
		return false;
	f->phase = AFS_FETCH_HEAD;
	return true;
}

static enum afs_fetch_result take_head(struct afs_fetch *f)
{
	struct rxw_xdr x;

	rxw_xdr_reader(&x, f->buffer, HEAD_BYTES);
	rxw_xdr_get_u64(&x, &f->length);
	if (f->length > f->wanted) {
		f->why = "the server announced more bytes than requested";
		return AFS_FETCH_ERROR;
	}
	f->used = 0;
	f->phase = f->length ? AFS_FETCH_DATA : AFS_FETCH_TAIL;
	return AFS_FETCH_DONE;
}

static enum afs_fetch_result take_tail(struct afs_fetch *f)
{
	struct rxw_xdr x;

	rxw_xdr_reader(&x, f->buffer, TAIL_BYTES);
	xdr_get_AFSFetchStatus(&x, &f->status);
	xdr_get_AFSCallBack(&x, &f->callback);
	xdr_get_AFSVolSync(&x, &f->sync);
	if (!rxw_xdr_ok(&x) || !afs_status_usable(&f->status)) {
		f->why = "the status after the data is malformed";
		return AFS_FETCH_ERROR;
	}
	f->phase = AFS_FETCH_REST;
	return AFS_FETCH_DONE;
}

enum afs_fetch_result afs_fetch_step(struct afs_fetch *f, rxw_call *call, struct iovec *iov,
				     unsigned *count)
{
	enum afs_fetch_result result;
	ssize_t n;

	if (f->phase == AFS_FETCH_SENDING && (result = send_request(f, call)) != AFS_FETCH_DONE)
		return result;
	if (f->phase == AFS_FETCH_ENDING) {
		int rc = rxw_call_send_end(call);

		if (rc < 0)
			return explain_stuck_fetch(f, rc, NULL);
		f->phase = AFS_FETCH_HEAD;
	}
	if (f->phase == AFS_FETCH_HEAD) {
		if (!collect_reply(f, call, HEAD_BYTES, "the reply ended before the data length",
				   &result))
			return result;
		result = take_head(f);
		if (result != AFS_FETCH_DONE)
			return result;
	}
	if (f->phase == AFS_FETCH_DATA && f->received < f->length) {
		uint64_t left = f->length - f->received;

		n = rxw_call_readv(call, left < SIZE_MAX / 2 ? (size_t)left : SIZE_MAX / 2, iov,
				   count);
		if (n <= 0)
			return explain_stuck_fetch(f, n,
						   "the data ended before the announced length");
		f->received += (uint64_t)n;
		return AFS_FETCH_LENT;
	}
	if (f->phase != AFS_FETCH_REST) {
		f->phase = AFS_FETCH_TAIL;
		if (!collect_reply(f, call, TAIL_BYTES, "the reply ended before the status",
				   &result))
			return result;
		result = take_tail(f);
		if (result != AFS_FETCH_DONE)
			return result;
	}
	while ((n = rxw_call_read_some(call, f->buffer, sizeof(f->buffer))) > 0) {
		f->surplus += (size_t)n;
		if (f->surplus > SURPLUS_MAX) {
			f->why = "its answer is too long";
			return AFS_FETCH_ERROR;
		}
	}
	return n == 0 ? AFS_FETCH_DONE : explain_stuck_fetch(f, n, NULL);
}

enum afs_fetch_result afs_fetch_drop(struct afs_fetch *f, rxw_call *call)
{
	enum afs_fetch_result result;

	do {
		struct iovec iov[SLICES];
		unsigned count = SLICES;

		result = afs_fetch_step(f, call, iov, &count);
	} while (result == AFS_FETCH_LENT);
	return result;
}
