/* SPDX-License-Identifier: BSD-2-Clause */
/* Changes that not all clients know of yet, and the calls that wait for their end. */
#include <assert.h>

#include "common/clock.h"
#include "fileserver/base/base.h"
#include "fileserver/callbacks/clients.h"

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
	assert(change->count <= FSD_CHANGED_MAX);
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
	bool awaited = false;

	if (!change->count)
		return;
	pthread_mutex_lock(&clients->lock);
	while (change->count) {
		struct fsd_changing *object = &change->object[--change->count];

		htable_remove(&clients->changing, object);
		awaited |= object->awaited;
	}
	atomic_store(&clients->open_changes, clients->changing.count);
	/* Hundreds of calls may wait for one change: others must not wake them. */
	if (awaited)
		pthread_cond_broadcast(&clients->opened);
	pthread_mutex_unlock(&clients->lock);
}

/* An open change up to this number, or NULL. */
static struct fsd_changing *find_change(const struct fsd_clients *clients, const AFSFid *fid,
					uint64_t upto)
{
	struct fsd_changing *object =
		htable_first(&clients->changing, fsd_hash_fid(fid, clients->changing.key));

	while (object && (object->number > upto || !fsd_same_fid(&object->fid, fid)))
		object = object->chain;
	return object;
}

static struct fsd_changing *find_changing(const struct fsd_clients *clients, const AFSFid *fids,
					  size_t count, uint64_t upto)
{
	struct fsd_changing *object = NULL;

	for (size_t i = 0; i < count && !object; i++)
		object = find_change(clients, &fids[i], upto);
	return object;
}

bool fsd_change_open(struct fsd_clients *clients, const AFSFid *fids, size_t count)
{
	bool open;

	if (!atomic_load(&clients->open_changes))
		return false;
	pthread_mutex_lock(&clients->lock);
	open = find_changing(clients, fids, count, clients->changes) != NULL;
	pthread_mutex_unlock(&clients->lock);
	return open;
}

bool fsd_change_settled(struct fsd_clients *clients, const AFSFid *fids, size_t count,
			unsigned wait_ms, uint64_t *until)
{
	struct fsd_changing *open;
	uint64_t upto;

	/* A change is announced before it becomes visible, so one that the caller has seen is listed. */
	if (!atomic_load(&clients->open_changes))
		return true;
	pthread_mutex_lock(&clients->lock);
	upto = clients->changes;
	open = find_changing(clients, fids, count, upto);
	if (open) {
		if (clients->settling >= SETTLING_MAX && wait_ms > WAITING_MS)
			wait_ms = WAITING_MS;
		if (!*until)
			*until = monotonic_ns() + (uint64_t)wait_ms * NS_PER_MS;
		clients->settling++;
		while (open && monotonic_ns() < *until) {
			open->awaited = true;
			monotonic_wait(&clients->opened, &clients->lock, *until);
			open = find_changing(clients, fids, count, upto);
		}
		assert(clients->settling > 0);
		clients->settling--;
	}
	pthread_mutex_unlock(&clients->lock);
	return !open;
}
