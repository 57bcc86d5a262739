/* SPDX-License-Identifier: BSD-2-Clause */
/* Places for calls that list very many volumes. */
#include "fileserver/service/listings.h"

void fsd_listings_init(struct fsd_listings *listings)
{
	pthread_mutex_init(&listings->lock, NULL);
}

void fsd_listings_fini(struct fsd_listings *listings)
{
	pthread_mutex_destroy(&listings->lock);
}

bool fsd_listing_begin(struct fsd_listings *listings, const void *call,
		       const struct sockaddr_storage *peer)
{
	struct fsd_share_key key;
	unsigned count, mine = 0;
	bool may;

	fsd_share_of_address(peer, &key);
	pthread_mutex_lock(&listings->lock);
	count = atomic_load(&listings->count);
	for (unsigned i = 0; i < count; i++)
		mine += fsd_same_share(&listings->place[i].address, &key);
	may = mine < FSD_LISTINGS_MAX - count;
	if (may) {
		listings->place[count].call = call;
		listings->place[count].address = key;
		atomic_store(&listings->count, count + 1);
	}
	pthread_mutex_unlock(&listings->lock);
	return may;
}

void fsd_listing_end(struct fsd_listings *listings, const void *call)
{
	unsigned count, i = 0;

	/* The place of this call, if it has one, was counted by this thread. */
	if (!atomic_load(&listings->count))
		return;
	pthread_mutex_lock(&listings->lock);
	count = atomic_load(&listings->count);
	while (i < count && listings->place[i].call != call)
		i++;
	if (i < count) {
		listings->place[i] = listings->place[count - 1];
		atomic_store(&listings->count, count - 1);
	}
	pthread_mutex_unlock(&listings->lock);
}
