/* SPDX-License-Identifier: BSD-2-Clause */
/* FetchData64 of one large file over several paths to its server (several-paths 3 and 8). */
#ifndef CLIENT_NET_PATHFETCH_H
#define CLIENT_NET_PATHFETCH_H

#include "client/net/calls.h"
#include "client/net/netpath.h"

/* Whether there are several paths to a server of the volume. */
bool cl_net_has_paths(struct cl_volume *volume);

/* Bytes of one version, in any order. */
struct cl_wide {
	AFSFid fid;
	uint64_t version;
	cl_take_fn *take; /* gets each byte once */
	void *arg;
	unsigned most; /* paths; 0: as many as there are */
	cl_see_paths_fn *see; /* NULL; its argument is: */
	void *see_arg;
	/* What is to be fetched; as a result, what is missing. In order, apart. */
	struct cl_hole missing[CL_HOLES];
	unsigned count;
	/* results */
	bool known; /* the status is that of the server's version; with -EAGAIN it is another one */
	AFSFetchStatus status;
	struct cl_path_report paths[CL_PATHS];
	unsigned path_count;
};
/*
 * Fetch what several paths to one server of the volume can bring. 0: what is missing, if anything is, is to be fetched by
 * cl_net_fetch_part(), which also finds the cause: there is one path only, a server has refused a call, or no path is left.
 */
int cl_net_fetch_wide(struct cl_volume *volume, const struct cl_caller *caller,
		      struct cl_wide *wide, struct cl_stamp *stamp, struct rxafs_failure *failure);

/*
 * Whether addresses or routes have changed since this was last asked with `seen` (0 at first), and there are several paths now. Never for
 * a read-only volume: what its servers have brought counts only with their status. Cheap if nothing has changed.
 */
bool cl_net_paths_joined(struct cl_volume *volume, uint64_t *seen);

#endif
