/* SPDX-License-Identifier: BSD-2-Clause */
/* What GetXStats tells: the file server's statistics, as xstat_fs_test and afsmonitor show them. */
#ifndef FILESERVER_XSTATS_H
#define FILESERVER_XSTATS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "afs/rpcstats/rpcstats.h"
#include "afs/rxafs.h"

#define FSD_XSTATS_SIZES 9

/* Fetches, by size too. `least_…`: UINT64_MAX as long as there was none. */
struct fsd_transfers {
	uint64_t count, good;
	uint64_t bytes, least_bytes, most_bytes; /* from here on of the good ones */
	uint64_t ns, least_ns, most_ns;
	double square; /* of the times, in square seconds */
	uint32_t size[FSD_XSTATS_SIZES];
};

/* `calls` is set before the first call and then constant. */
struct fsd_xstats {
	struct afs_rpcstats *calls; /* not owned; NULL: no times of procedures */
	_Atomic uint32_t asked;	    /* how often collection 1 or 2 was asked for */
	pthread_mutex_t lock;	    /* covers the rest */
	struct fsd_transfers fetched;
};

void fsd_xstats_init(struct fsd_xstats *xstats);
void fsd_xstats_end(struct fsd_xstats *xstats);

/*
 * Count one call of the file server: an rxw_rpc_observer_fn whose argument is the struct
 * fsd_xstats. Passes it on to `calls`.
 */
void fsd_xstats_report(void *xstats, const struct rxw_rpc_report *report);

/*
 * One collection (afs-fileserver 3.9), in the words of a 64-bit OpenAFS server on Linux: 0 nothing; 1 figures of cache, packets and clients; 2 these
 * and the times of each procedure; 3 callbacks. Fills `data`, which the caller frees with
 * xdrfree_AFS_CollData(). 0, 1 if there is no such collection, or RXW_RPC_SS_MARSHAL without memory.
 */
struct fsd_service;
int32_t fsd_xstats(struct fsd_service *service, int32_t collection, AFS_CollData *data);

#endif
