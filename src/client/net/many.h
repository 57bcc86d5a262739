/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls for several files of one volume, in flight together at one site. A result of -EAGAIN: the call was not made, or needs another try,
 * which is up to the caller.
 */
#ifndef CLIENT_NET_MANY_H
#define CLIENT_NET_MANY_H

#include "client/net/calls.h"

#define CL_MANY 32u /* the most that one function takes */

/* One of several files that are fetched whole. */
struct cl_fetch {
	AFSFid fid;
	uint64_t length; /* asked for */
	cl_take_fn *take;
	void (*ended)(void *arg,
		      struct cl_fetch *fetch); /* the results are there; others are in flight */
	void *arg;
	/* results */
	int result;
	uint64_t fetched;
	AFSFetchStatus status;
	struct cl_stamp stamp;
};
void cl_net_fetch_many(struct cl_volume *volume, const struct cl_caller *caller,
		       struct cl_fetch *fetches, unsigned count);

/* One of several files that are stored whole. */
struct cl_store {
	AFSFid fid;
	AFSStoreStatus how;
	const void *bytes;
	size_t length; /* of the file afterwards */
	/* results */
	int result;
	AFSFetchStatus status;
	struct cl_stamp stamp;
	struct rxafs_failure failure;
};
void cl_net_store_many(struct cl_volume *volume, const struct cl_caller *caller,
		       struct cl_store *stores, unsigned count);

/* One of several files that are made in a directory. With -EAGAIN nothing was done. */
struct cl_creation {
	const char *name;
	AFSStoreStatus how;
	/* results */
	int result;
	struct cl_made made;
	struct cl_stamp stamp;
	struct rxafs_failure failure;
};
void cl_net_create_many(struct cl_volume *volume, const struct cl_caller *caller, const AFSFid *dir,
			struct cl_creation *files, unsigned count);

#endif
