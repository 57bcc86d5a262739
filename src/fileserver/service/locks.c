/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of advisory locks on files. */
#include "fileserver/service/locks.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/hash.h"
#include "common/held.h"
#include "common/htable.h"

struct lock {
	struct store_fid fid;
	int32_t count; /* -1: write lock */
	uint64_t ends;
	struct fsd_share *owner; /* who set the first lock */
	void *chain;
};

struct fsd_locks {
	pthread_mutex_t lock;	  /* covers the table */
	struct htable table;	  /* clients choose what they lock */
	struct fsd_shares shares; /* the same lock covers them */
	size_t max;
	_Atomic size_t count; /* that of the table, for those who do not hold the lock */
	uint64_t swept;	      /* when ended locks were removed because the table was full */
};

static uint64_t hash_fid(const struct store_fid *fid, const uint64_t key[2])
{
	return rxw_hash_words((uint64_t)fid->volume << 32 | fid->vnode, fid->unique, key);
}

static uint64_t hash_lock(const void *item, const uint64_t key[2])
{
	return hash_fid(&((const struct lock *)item)->fid, key);
}

struct fsd_locks *fsd_locks_create(size_t max)
{
	struct fsd_locks *locks = calloc(1, sizeof(*locks));
	uint64_t key[2];

	if (!locks)
		return NULL;
	locks->max = max;
	if (rxw_random(key, sizeof(key)) ||
	    !htable_init(&locks->table, offsetof(struct lock, chain), hash_lock, key, 0)) {
		free(locks);
		return NULL;
	}
	if (!fsd_shares_init(&locks->shares, sizeof(struct fsd_share), key)) {
		htable_fini(&locks->table, NULL);
		free(locks);
		return NULL;
	}
	pthread_mutex_init(&locks->lock, NULL);
	return locks;
}

void fsd_locks_destroy(struct fsd_locks *locks)
{
	if (!locks)
		return;
	htable_fini(&locks->table, free);
	fsd_shares_fini(&locks->shares);
	pthread_mutex_destroy(&locks->lock);
	free(locks);
}

static struct lock *find_lock(const struct fsd_locks *locks, const struct store_fid *fid)
{
	struct lock *l = htable_first(&locks->table, hash_fid(fid, locks->table.key));

	while (l && (l->fid.volume != fid->volume || l->fid.vnode != fid->vnode ||
		     l->fid.unique != fid->unique))
		l = l->chain;
	return l;
}

static void drop_lock(struct fsd_locks *locks, struct lock *l)
{
	assert(mutex_is_held(&locks->lock) && l->count);
	htable_remove(&locks->table, l);
	fsd_share_give(&locks->shares, l->owner);
	atomic_store(&locks->count, locks->table.count);
	free(l);
}

/* Remove locks that have ended; at most once a second, because all are looked at. */
static void drop_ended_locks(struct fsd_locks *locks, uint64_t now)
{
	if (locks->swept == now)
		return;
	locks->swept = now;
	for (size_t i = 0; i < locks->table.size; i++)
		for (struct lock *l = *htable_chain(&locks->table, i), *next; l; l = next) {
			next = l->chain;
			if (l->ends <= now)
				drop_lock(locks, l);
		}
}

static struct lock *add_lock(struct fsd_locks *locks, const struct store_fid *fid,
			     const struct fsd_share_key *who, uint64_t now)
{
	struct fsd_share *owner = fsd_share_take(&locks->shares, who, locks->max);
	struct lock *l;

	if (!owner) {
		drop_ended_locks(locks, now);
		owner = fsd_share_take(&locks->shares, who, locks->max);
	}
	l = owner ? calloc(1, sizeof(*l)) : NULL;
	if (!l) {
		if (owner)
			fsd_share_give(&locks->shares, owner);
		return NULL;
	}
	assert(!find_lock(locks, fid));
	l->fid = *fid;
	l->owner = owner;
	htable_add(&locks->table, l);
	atomic_store(&locks->count, locks->table.count);
	return l;
}

int fsd_lock_set(struct fsd_locks *locks, const struct store_fid *fid,
		 const struct fsd_share_key *who, bool write, uint64_t now)
{
	struct lock *l;
	int rc = 0;

	pthread_mutex_lock(&locks->lock);
	l = find_lock(locks, fid);
	/* The next one is its caller's. */
	if (l && l->ends <= now) {
		drop_lock(locks, l);
		l = NULL;
	}
	if (l && l->count && (write || l->count < 0 || l->count == INT32_MAX))
		rc = -EAGAIN;
	else if (!l && !(l = add_lock(locks, fid, who, now)))
		rc = -ENOLCK;
	if (!rc) {
		l->count = write ? -1 : l->count + 1;
		l->ends = now + FSD_LOCK_S;
	}
	pthread_mutex_unlock(&locks->lock);
	return rc;
}

int fsd_lock_extend(struct fsd_locks *locks, const struct store_fid *fid, uint64_t now)
{
	struct lock *l;

	pthread_mutex_lock(&locks->lock);
	l = find_lock(locks, fid);
	if (l)
		l->ends = now + FSD_LOCK_S;
	pthread_mutex_unlock(&locks->lock);
	return l ? 0 : -EINVAL;
}

bool fsd_lock_release(struct fsd_locks *locks, const struct store_fid *fid, uint64_t now)
{
	bool last = false;
	struct lock *l;

	pthread_mutex_lock(&locks->lock);
	l = find_lock(locks, fid);
	if (l && (l->ends <= now || l->count <= 1)) {
		drop_lock(locks, l);
		last = true;
	} else if (l) {
		assert(l->count > 1);
		l->count--;
	}
	pthread_mutex_unlock(&locks->lock);
	return last;
}

void fsd_lock_forget(struct fsd_locks *locks, const struct store_fid *fid)
{
	struct lock *l;

	if (!atomic_load(&locks->count))
		return;
	pthread_mutex_lock(&locks->lock);
	l = find_lock(locks, fid);
	if (l)
		drop_lock(locks, l);
	pthread_mutex_unlock(&locks->lock);
}

void fsd_lock_forget_volume(struct fsd_locks *locks, uint32_t volume)
{
	if (!atomic_load(&locks->count))
		return;
	pthread_mutex_lock(&locks->lock);
	for (size_t i = 0; i < locks->table.size; i++)
		for (struct lock *l = *htable_chain(&locks->table, i), *next; l; l = next) {
			next = l->chain;
			if (l->fid.volume == volume)
				drop_lock(locks, l);
		}
	pthread_mutex_unlock(&locks->lock);
}

int32_t fsd_lock_count(struct fsd_locks *locks, const struct store_fid *fid, uint64_t now)
{
	const struct lock *l;
	int32_t count;

	if (!atomic_load_explicit(&locks->count, memory_order_relaxed))
		return 0;
	pthread_mutex_lock(&locks->lock);
	l = find_lock(locks, fid);
	count = l && l->ends > now ? l->count : 0;
	pthread_mutex_unlock(&locks->lock);
	return count;
}

size_t fsd_locks_held(struct fsd_locks *locks)
{
	return atomic_load(&locks->count);
}
