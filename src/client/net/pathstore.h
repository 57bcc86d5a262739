/* SPDX-License-Identifier: BSD-2-Clause */
/* The contents of one large file to a server that takes them in ranges, over several paths (several-paths 4). */
#ifndef CLIENT_NET_PATHSTORE_H
#define CLIENT_NET_PATHSTORE_H

#include "client/net/pathfetch.h"

/* The whole contents of a file. */
struct cl_wide_store {
	AFSFid fid;
	AFSStoreStatus how;
	uint64_t length;  /* of the file */
	cl_give_fn *give; /* gives bytes of any range, again after a failure */
	void *arg;
	unsigned most; /* paths; 0: as many as there are */
	cl_see_paths_fn *see; /* NULL; its argument is: */
	void *see_arg;
	/* The bytes that are sent: in order, apart, in units of CL_STORE_UNIT, but for the end of the file. Others become zeros. */
	struct cl_hole data[CL_HOLES];
	unsigned count;
	/* The session, from one call to the next: whether its version may have been made was not answered. */
	StoreSession session;
	bool unanswered;
	/* results */
	AFSFetchStatus status;
	struct cl_path_report paths[CL_PATHS];
	unsigned path_count;
};
#define CL_STORE_UNIT 65536u

/*
 * Store them as one version. -EOPNOTSUPP: nothing was stored, and nothing will be later; to be stored over one path, which also tells
 * why: the server does not have these calls, there is one path only, it has refused one, or no path is left. After another failure call
 * it again with the same structure.
 */
int cl_net_store_wide(struct cl_volume *volume, const struct cl_caller *caller,
		      struct cl_wide_store *store, struct cl_stamp *stamp,
		      struct rxafs_failure *failure);

#endif
