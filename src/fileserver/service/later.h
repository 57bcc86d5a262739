/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls of the file service that are answered after their handlers have returned: fs_later.c. */
#ifndef FILESERVER_SERVICE_LATER_H
#define FILESERVER_SERVICE_LATER_H

#include <pthread.h>
#include <stdbool.h>

#define FSD_FINISHERS_MAX 96 /* threads for those that have to wait */

struct fs_call;
struct fsd_calls {
	struct fs_call *first, **last;
};
struct fsd_later {
	pthread_mutex_t lock; /* covers the rest */
	pthread_cond_t work;  /* a call waits, or `stop` */
	pthread_cond_t gone;  /* `calls` is 0 */
	/*
	 * Calls for threads that may wait: those that have not told all clients of their changes, and
	 * those that may wait for changes of others. The former come first, because the latter wait
	 * for them.
	 */
	struct fsd_calls telling, told;
	unsigned waiting; /* in both lists */
	unsigned calls;	  /* that others answer, and threads that are about to send answers */
	pthread_t thread[FSD_FINISHERS_MAX]; /* `threads` of them; they end with `stop` only */
	unsigned threads, idle;
	bool settled, stop; /* no further calls; threads end */
};
void fsd_later_init(struct fsd_later *later);
/* Wait until all are answered. No new ones come. */
void fsd_later_settle(struct fsd_later *later);
void fsd_later_end(struct fsd_later *later);

#endif
