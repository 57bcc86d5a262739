/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Places for calls that list very many volumes. Each holds its list, of some MiB, until the client has read the reply, and
 * clients may take their time.
 */
#ifndef FILESERVER_SERVICE_LISTINGS_H
#define FILESERVER_SERVICE_LISTINGS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "fileserver/base/base.h"

#define FSD_LISTINGS_MAX 16u
#define FSD_LISTED_FEW	 512u /* entries that need no place */

struct fsd_listings {
	pthread_mutex_t lock; /* covers `place` and changes of `count` */
	_Atomic unsigned count;
	struct {
		const void *call;
		struct fsd_share_key address;
	} place[FSD_LISTINGS_MAX];
};

void fsd_listings_init(struct fsd_listings *listings);
void fsd_listings_fini(struct fsd_listings *listings);
/* A place for the call, which has none. False: its address has as many as are free. Any thread. */
bool fsd_listing_begin(struct fsd_listings *listings, const void *call,
		       const struct sockaddr_storage *peer);
/* The reply of a call has left. Most calls have no place. Any thread. */
void fsd_listing_end(struct fsd_listings *listings, const void *call);

#endif
