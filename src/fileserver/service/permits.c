/* SPDX-License-Identifier: BSD-2-Clause */
/* Permits for calls that hold much memory. */
#include <assert.h>

#include "fileserver/service/permits.h"

void fsd_permits_init(struct fsd_permits *permits, unsigned max)
{
	assert(max <= FSD_PERMITS_MAX);
	permits->max = max;
	pthread_mutex_init(&permits->lock, NULL);
}

void fsd_permits_fini(struct fsd_permits *permits)
{
	pthread_mutex_destroy(&permits->lock);
}

bool fsd_permit_take(struct fsd_permits *permits, const void *call,
		       const struct sockaddr_storage *peer)
{
	struct fsd_share_key key;
	unsigned count, mine = 0;
	bool may;

	fsd_share_of_address(peer, &key);
	pthread_mutex_lock(&permits->lock);
	count = atomic_load(&permits->count);
	assert(count <= permits->max);
	for (unsigned i = 0; i < count; i++)
		mine += fsd_same_share(&permits->holder[i].address, &key);
	may = mine < permits->max - count;
	if (may) {
		permits->holder[count].call = call;
		permits->holder[count].address = key;
		atomic_store(&permits->count, count + 1);
	}
	pthread_mutex_unlock(&permits->lock);
	return may;
}

void fsd_permit_return(struct fsd_permits *permits, const void *call)
{
	unsigned count, i = 0;

	/* The permit of this call, if it has one, was counted before this thread got the call. */
	if (!atomic_load(&permits->count))
		return;
	pthread_mutex_lock(&permits->lock);
	count = atomic_load(&permits->count);
	while (i < count && permits->holder[i].call != call)
		i++;
	if (i < count) {
		permits->holder[i] = permits->holder[count - 1];
		atomic_store(&permits->count, count - 1);
	}
	pthread_mutex_unlock(&permits->lock);
}
