/* SPDX-License-Identifier: BSD-2-Clause */
/* StoreData64 as one blocking call, whose time limit counts from the last progress. */
#include <errno.h>
#include <string.h>

#include "afs/client/private.h"
#include "afs/client/store.h"
#include "common/clock.h"

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

	if (afs_watch_start(client) < 0) {
		afs_error_text(error, "%s: cannot start a thread", what);
		return -1;
	}
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
	afs_error_text(error, "%s: the status after the data is malformed", what);
	return -1;
}
