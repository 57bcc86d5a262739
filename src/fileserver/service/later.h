/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls of the file service that are answered after their handlers have returned: fs_later.c. */
#ifndef FILESERVER_SERVICE_LATER_H
#define FILESERVER_SERVICE_LATER_H

#include <pthread.h>
#include <stdbool.h>

#define FSD_FINISHERS_MAX 96 /* threads for those that have to wait */

struct fsd_pool;
struct fsd_pool_caller;

struct fsd_later {
	/*
	 * Threads that may wait, for calls that have not told all clients of their changes, and those that may wait
	 * for changes of others. The former are urgent, because the latter wait for them. So all are of one caller.
	 */
	struct fsd_pool *pool;
	pthread_mutex_t lock;	     /* covers the rest */
	pthread_cond_t gone;	     /* `calls` is 0 */
	struct fsd_pool_caller *all; /* constant once it is set, by the first call */
	unsigned calls; /* that others answer, and threads that are about to send answers */
	bool settled;	/* no further calls */
};
/* False: no memory. fsd_later_end() is allowed then. */
bool fsd_later_init(struct fsd_later *later);
/* Wait until all are answered. No new ones come. */
void fsd_later_settle(struct fsd_later *later);
void fsd_later_end(struct fsd_later *later);

#endif
