/* SPDX-License-Identifier: BSD-2-Clause */
/* Data of files: FetchData64 as a state machine. */
#ifndef AFS_FETCH_H
#define AFS_FETCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include <rxwire/call.h>

#include "afs/rxafs.h"

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

/* All steps until the call ends or has to wait. The data are dropped. */
enum afs_fetch_result afs_fetch_drop(struct afs_fetch *fetch, rxw_call *call);

#endif
