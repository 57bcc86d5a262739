/* SPDX-License-Identifier: BSD-2-Clause */
/* Data of files: FetchData64 as a state machine, and StoreData64. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "afs/client/data.h"
#include "afs/client/private.h"
#include "common/clock.h"

/* ---- FetchData64 ---- */

#define HEAD_BYTES  8
#define TAIL_BYTES  (84 + 12 + 24) /* status, promise, volume */
#define SURPLUS_MAX 4096	   /* extra bytes after the tail that are discarded */
#define SLICES	    256		   /* slices lent at a time, written with one system call */
#define PROGRESS    1024	   /* bytes within the time limit that count as progress */

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
static int collect_bytes(struct afs_fetch *f, rxw_call *call, size_t size, const char *end,
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
		if (!collect_bytes(f, call, HEAD_BYTES, "the reply ended before the data length",
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
		if (!collect_bytes(f, call, TAIL_BYTES, "the reply ended before the status",
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

/* One step of a blocking call, which may wait for *left ns more without progress. */
static enum afs_fetch_result timed_step(struct afs_client *client, struct afs_fetch *f,
					rxw_call *call, struct iovec *iov, unsigned *count,
					uint64_t *left)
{
	uint64_t began = monotonic_ns(), before = f->received, spent;
	enum afs_fetch_result result;

	atomic_store(&client->due, began + *left);
	result = afs_fetch_step(f, call, iov, count);
	atomic_store(&client->due, UINT64_MAX);
	spent = monotonic_ns() - began;
	if (f->received - before >= PROGRESS)
		*left = (uint64_t)client->limit_ms * 1000000;
	else
		*left -= spent < *left ? spent : *left;
	return result;
}

int afs_client_read(struct afs_client *client, struct afs_fetch *f, const char *what,
		    int (*take)(void *arg, struct iovec *iov, unsigned count, uint64_t offset),
		    void *arg, struct afs_error *error)
{
	uint64_t left = (uint64_t)client->limit_ms * 1000000;
	enum afs_fetch_result result;
	rxw_call *call;
	int taken = 0;

	if (f->call) {
		call = f->call;
		f->call = NULL;
		afs_adopt_call(client, call, 0);
	} else if (afs_watch_start(client) < 0) {
		return afs_error_text(error, "%s: cannot start a thread", what);
	} else if (afs_begin(client, client->fs, what, 0, &call, error) < 0) {
		return -1;
	}
	do {
		struct iovec iov[SLICES];
		unsigned count = SLICES;
		uint64_t at = f->offset + f->received;

		result = timed_step(client, f, call, iov, &count, &left);
		if (result == AFS_FETCH_LENT)
			taken = take(arg, iov, count, at);
	} while (result == AFS_FETCH_LENT && taken == 0);
	if (afs_conclude(client, call, what, result == AFS_FETCH_DONE ? 0 : RXW_USER_ABORT, f->why,
			 error) == 0) {
		afs_client_fetched(client, f);
		return 0;
	}
	return taken ? 1 : -1;
}

#define CALLS 4 /* of a connection */

void afs_client_read_ahead(struct afs_client *client, struct afs_fetch *f)
{
	const struct rxw_call_options co = {.size = sizeof(co), .flags = RXW_CALL_TRY};

	assert(!f->call && f->phase == AFS_FETCH_SENDING);
	if (!client->fs || afs_watch_start(client) < 0 ||
	    (!client->ahead &&
	     rxw_connpool_create(client->endpoint, (const struct sockaddr *)&client->fs_address,
				 client->fs_len, AFS_SERVICE_FS, client->security,
				 AFS_AHEAD / CALLS, &client->ahead) < 0) ||
	    rxw_connpool_begin(client->ahead, &co, &f->call) < 0)
		return;
	if (afs_fetch_send(f, f->call))
		return;
	afs_client_drop_read(f);
	f->phase = AFS_FETCH_SENDING;
}

void afs_client_drop_read(struct afs_fetch *f)
{
	if (f->call)
		rxw_call_end(f->call, RXW_USER_ABORT, NULL);
	f->call = NULL;
}

/* ---- StoreData64 ---- */

#define PIECE 262144u /* bytes that the server has to take within the time limit */

/* Give the call the time limit again. */
static void extend_time_limit(struct afs_client *client)
{
	atomic_store(&client->due, monotonic_ns() + (uint64_t)client->limit_ms * 1000000);
}

/* 0: all is sent. 1: the file ended early or cannot be read; errno. -1: the call has failed. */
static int send_data(struct afs_client *client, rxw_call *call, struct afs_store *s)
{
	uint64_t done = 0;

	while (done < s->length) {
		size_t size = s->length - done < PIECE ? (size_t)(s->length - done) : PIECE;
		ssize_t n;

		extend_time_limit(client);
		n = s->data ? rxw_call_write(call, s->data + done, size)
			    : rxw_call_sendfile(call, s->fd, (off_t)(s->offset + done), size);
		if (n == -RXW_ESYS)
			return 1;
		if (n < 0)
			return -1;
		if ((size_t)n < size) {
			errno = 0;
			return 1;
		}
		done += size;
		if (s->sent)
			s->sent(s->arg, done);
	}
	return 0;
}

int afs_client_store(struct afs_client *client, struct afs_store *s, const char *what,
		     struct afs_error *error)
{
	int32_t code;
	AFSVolSync sync;
	rxw_call *call;
	int rc = 0, saved = 0;

	if (afs_watch_start(client) < 0)
		return afs_error_text(error, "%s: cannot start a thread", what);
	if (afs_begin(client, client->fs, what, 0, &call, error) < 0)
		return -1;
	extend_time_limit(client);
	code = StartRXAFS_StoreData64(call, &s->fid, &s->how, s->offset, s->length,
				      s->offset + s->length);
	if (code == 0) {
		rc = send_data(client, call, s);
		saved = errno;
	}
	if (rc != 0)
		code = RXW_USER_ABORT;
	/* The server may wait for other clients and for its disk before it answers. */
	extend_time_limit(client);
	if (code == 0)
		code = EndRXAFS_StoreData64(call, &s->status, &sync);
	if (rc > 0) {
		afs_conclude(client, call, what, RXW_USER_ABORT, NULL, error);
		rc = error->interrupted ? -1 : 1;
	} else {
		rc = afs_end(client, call, what, code, error);
	}
	atomic_store(&client->due, UINT64_MAX);
	errno = saved;
	if (rc != 0)
		return rc;
	if (afs_status_usable(&s->status))
		return 0;
	return afs_error_text(error, "%s: the status after the data is malformed", what);
}
