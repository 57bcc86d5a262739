/* SPDX-License-Identifier: BSD-2-Clause */
/* StoreData64: data of a file from a descriptor or from memory. */
#ifndef AFS_CLIENT_STORE_H
#define AFS_CLIENT_STORE_H

#include "afs/client/client.h"

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
