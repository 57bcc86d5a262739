/* SPDX-License-Identifier: BSD-2-Clause */
/* Changes that not all clients know of yet, and the calls that wait for their end. */
#include "common/clock.h"
#include "fileserver/base/base.h"
#include "fileserver/callbacks/private.h"

static uint64_t hash_changing(const void *item, const uint64_t secret[2])
{
	return fsd_hash_fid(&((const struct fsd_changing *)item)->fid, secret);
}

bool fsd_changing_init(struct fsd_clients *clients, const uint64_t secret[2])
{
	return htable_init(&clients->changing, offsetof(struct fsd_changing, chain), hash_changing,
			   secret, 0);
}

void fsd_change_begin(struct fsd_clients *clients, struct fsd_change *change,
		      const struct fsd_break *breaks, size_t count)
{
	pthread_mutex_lock(&clients->lock);
	clients->changes++;
	for (size_t i = 0; i < count && change->count < FSD_CHANGED_MAX; i++) {
		struct fsd_changing *object = &change->object[change->count];

		if (!breaks[i].fid.Vnode)
			continue;
		*object = (struct fsd_changing){.fid = breaks[i].fid, .number = clients->changes};
		htable_add(&clients->changing, object);
		change->count++;
	}
	atomic_store(&clients->open_changes, clients->changing.count);
	pthread_mutex_unlock(&clients->lock);
}

void fsd_change_end(struct fsd_clients *clients, struct fsd_change *change)
{
	if (!change->count)
		return;
	pthread_mutex_lock(&clients->lock);
	while (change->count)
		htable_remove(&clients->changing, &change->object[--change->count]);
	atomic_store(&clients->open_changes, clients->changing.count);
	if (clients->settling)
		pthread_cond_broadcast(&clients->opened);
	pthread_mutex_unlock(&clients->lock);
}

/* Whether a change up to this number is open. */
static bool is_changing(const struct fsd_clients *clients, const AFSFid *fid, uint64_t upto)
{
	const struct fsd_changing *object =
		htable_first(&clients->changing, fsd_hash_fid(fid, clients->changing.key));

	while (object && (object->number > upto || !fsd_same_fid(&object->fid, fid)))
		object = object->chain;
	return object != NULL;
}

static bool any_changing(const struct fsd_clients *clients, const AFSFid *fids, size_t count,
			 uint64_t upto)
{
	size_t i = 0;

	while (i < count && !is_changing(clients, &fids[i], upto))
		i++;
	return i < count;
}

bool fsd_change_open(struct fsd_clients *clients, const AFSFid *fids, size_t count)
{
	bool open;

	if (!atomic_load(&clients->open_changes))
		return false;
	pthread_mutex_lock(&clients->lock);
	open = any_changing(clients, fids, count, clients->changes);
	pthread_mutex_unlock(&clients->lock);
	return open;
}

bool fsd_change_settled(struct fsd_clients *clients, const AFSFid *fids, size_t count,
			unsigned wait_ms, uint64_t *until)
{
	uint64_t upto;
	bool open;

	/* A change is announced before it becomes visible, so one that the caller has seen is listed. */
	if (!atomic_load(&clients->open_changes))
		return true;
	pthread_mutex_lock(&clients->lock);
	upto = clients->changes;
	open = any_changing(clients, fids, count, upto);
	if (open) {
		if (clients->settling >= SETTLING_MAX && wait_ms > WAITING_MS)
			wait_ms = WAITING_MS;
		if (!*until)
			*until = monotonic_ns() + (uint64_t)wait_ms * NS_PER_MS;
		clients->settling++;
		while (open && monotonic_ns() < *until) {
			monotonic_wait(&clients->opened, &clients->lock, *until);
			open = any_changing(clients, fids, count, upto);
		}
		clients->settling--;
	}
	pthread_mutex_unlock(&clients->lock);
	return !open;
}
