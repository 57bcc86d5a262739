/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Permits for calls that hold much memory until their clients have read the replies, for which clients may take
 * their time.
 */
#ifndef FILESERVER_SERVICE_PERMITS_H
#define FILESERVER_SERVICE_PERMITS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "fileserver/base/base.h"

#define FSD_PERMITS_MAX	   256u
#define FSD_LISTS_MAX	   16u	/* for long lists of volumes */
#define FSD_LIST_FEW	   512u /* volumes: a list of these needs no permit */
#define FSD_FRAGMENTED_MAX 256u /* for fetches that hold up to 3 MiB each */

struct fsd_permits {
	unsigned max;	      /* constant; at most FSD_PERMITS_MAX */
	pthread_mutex_t lock; /* covers `holder` and changes of `count` */
	_Atomic unsigned count;
	struct {
		const void *call;
		struct fsd_share_key address;
	} holder[FSD_PERMITS_MAX];
};

void fsd_permits_init(struct fsd_permits *permits, unsigned max);
void fsd_permits_fini(struct fsd_permits *permits);
/* For a call that has none. False: its address has as many as are free. Any thread. */
bool fsd_permit_take(struct fsd_permits *permits, const void *call,
		     const struct sockaddr_storage *peer);
/* The reply of a call has left. Most calls have no permit. Any thread. */
void fsd_permit_return(struct fsd_permits *permits, const void *call);

#endif
