/* SPDX-License-Identifier: BSD-2-Clause */
/* Data of files: FetchData64 as a state machine, and StoreData64. */
#ifndef AFS_CLIENT_DATA_H
#define AFS_CLIENT_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include <rxwire/call.h>

#include "afs/rxafs.h"

struct afs_client;
struct afs_error;

/* Maximal length of one FetchData64: OpenAFS's servers and clients use 31 bits. */
#define AFS_FETCH_MAX 0x7ffff000u

/*
 * FetchData64 as a state machine, for blocking and non-blocking calls. Initialise with
 * afs_fetch_init(), then call afs_fetch_step() until it returns AFS_FETCH_DONE or AFS_FETCH_ERROR;
 * then end the call (with RXW_USER_ABORT after an error).
 */
struct afs_fetch {
	AFSFid fid;
	uint64_t offset, wanted; /* the request */
	uint64_t length;	 /* announced by the server; valid after the head */
	uint64_t received;	 /* bytes of data so far */
	AFSFetchStatus status;	 /* valid when done */
	AFSCallBack callback;
	AFSVolSync sync;

	uint8_t buffer[160]; /* head, then tail */
	size_t used, surplus;
	enum {
		AFS_FETCH_SENDING,
		AFS_FETCH_ENDING,
		AFS_FETCH_HEAD,
		AFS_FETCH_DATA,
		AFS_FETCH_TAIL,
		AFS_FETCH_REST /* the end of the reply; some extra bytes are ignored */
	} phase;
	const char *why; /* of AFS_FETCH_ERROR: static text; NULL = see the code of the call */
	rxw_call *call;	 /* of afs_client_read_ahead(), or NULL */
};
enum afs_fetch_result {
	AFS_FETCH_AGAIN,
	AFS_FETCH_LENT,
	AFS_FETCH_DONE,
	AFS_FETCH_ERROR
};

void afs_fetch_init(struct afs_fetch *fetch, const AFSFid *fid, uint64_t offset, uint64_t length);
/* Send the request, without a wait for the reply: a part of the first step. False: the call has failed. */
bool afs_fetch_send(struct afs_fetch *fetch, rxw_call *call);
/*
 * Continue. AFS_FETCH_LENT: iov[0..*count) has the next bytes of data, valid until the next step;
 * `received` includes them. AFS_FETCH_AGAIN: wait for the next event of the non-blocking call.
 * *count is the length of iov.
 */
enum afs_fetch_result afs_fetch_step(struct afs_fetch *fetch, rxw_call *call, struct iovec *iov,
				     unsigned *count);

#define AFS_AHEAD 16 /* fetches that a client can have begun ahead */

/*
 * Send the request of a fetch that afs_client_read() will complete, so that many replies arrive
 * while others are handled. If that is not possible now, nothing has begun, and afs_client_read()
 * begins the fetch itself. Between rxw_batch_begin() and rxw_batch_end() requests leave together.
 */
void afs_client_read_ahead(struct afs_client *client, struct afs_fetch *fetch);
/* End a fetch that was begun ahead and is not needed. Does nothing for another one. */
void afs_client_drop_read(struct afs_fetch *fetch);

/* One StoreData64: `length` bytes at `offset` of the file, which then ends there. */
struct afs_store {
	AFSFid fid;
	AFSStoreStatus how; /* status to set: time, mode */
	uint64_t offset, length;
	/*
	 * Where the bytes come from: `data`, or if it is NULL the descriptor `fd`, at the same
	 * offset.
	 */
	const uint8_t *data;
	int fd;
	/* Called on progress with the bytes that were sent so far; NULL: not */
	void (*sent)(void *arg, uint64_t bytes);
	void *arg;

	AFSFetchStatus status; /* the result */
};

/*
 * All steps of a StoreData64 in one blocking call. Returns 0; -1 and *error; or 1 if the file of
 * the descriptor is shorter (errno 0) or cannot be read (errno): the server then has a part of the
 * data. A server that takes nothing within the client's time limit makes no progress. Bytes are read
 * directly into the send queue.
 */
int afs_client_store(struct afs_client *client, struct afs_store *store, const char *what,
		     struct afs_error *error);

#endif
