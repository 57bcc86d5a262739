/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Locks. Among the processes here this is all of POSIX and flock; the server has one lock of the whole file for all
 * of them while one has a lock of flock, or of all bytes (K-103).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "client/fs/operate.h"
#include "common/clock.h"

#define LOOK_NS (100 * NS_PER_MS)

struct held {
	struct held *next;
	struct rxafs_lock lock;
};

struct fs_locks {
	struct held *list;
	pthread_cond_t changed; /* with the lock of the vnode */
};

void fs_free_locks(struct fs_locks *locks)
{
	while (locks->list) {
		struct held *h = locks->list;

		locks->list = h->next;
		free(h);
	}
	pthread_cond_destroy(&locks->changed);
	free(locks);
}

static struct fs_locks *get_locks(struct fs_vnode *v)
{
	if (!v->locks) {
		v->locks = calloc(1, sizeof *v->locks);
		if (v->locks)
			monotonic_cond_init(&v->locks->changed);
	}
	return v->locks;
}

static bool overlaps(const struct rxafs_lock *a, const struct rxafs_lock *b)
{
	return a->start <= b->end && b->start <= a->end;
}

static const struct rxafs_lock *find_conflict(const struct fs_locks *locks,
					      const struct rxafs_lock *l)
{
	for (const struct held *h = locks->list; h; h = h->next)
		if (h->lock.whole == l->whole && h->lock.owner != l->owner &&
		    overlaps(&h->lock, l) && (h->lock.type == F_WRLCK || l->type == F_WRLCK))
			return &h->lock;
	return NULL;
}

static struct held *add_held(struct fs_locks *locks, struct held *h, const struct rxafs_lock *lock)
{
	h->lock = *lock;
	h->next = locks->list;
	locks->list = h;
	return h;
}

/*
 * Take a range out of what the owner has, and put the new lock in. Two pieces of memory are at hand: a range that
 * is cut in the middle becomes two.
 */
static void replace_range(struct fs_locks *locks, const struct rxafs_lock *l, struct held **spare)
{
	for (struct held **at = &locks->list; *at;) {
		struct held *h = *at;

		if (h->lock.owner != l->owner || h->lock.whole != l->whole ||
		    !overlaps(&h->lock, l)) {
			at = &h->next;
			continue;
		}
		if (h->lock.start < l->start && h->lock.end > l->end && *spare) {
			struct rxafs_lock tail = h->lock;
			struct held *more = *spare;

			*spare = more->next;
			tail.start = l->end + 1;
			h->lock.end = l->start - 1;
			more->lock = tail;
			more->next = h->next;
			h->next = more;
			at = &more->next;
		} else if (h->lock.start < l->start) {
			h->lock.end = l->start - 1;
			at = &h->next;
		} else if (h->lock.end > l->end) {
			h->lock.start = l->end + 1;
			at = &h->next;
		} else {
			*at = h->next;
			free(h);
		}
	}
	if (l->type != F_UNLCK && *spare) {
		struct held *h = *spare;

		*spare = h->next;
		add_held(locks, h, l);
	}
}

static struct held *get_spare(void)
{
	struct held *a = calloc(1, sizeof *a), *b = calloc(1, sizeof *b);

	if (!a || !b) {
		free(a);
		free(b);
		return NULL;
	}
	a->next = b;
	return a;
}

static void free_spare(struct held *spare)
{
	while (spare) {
		struct held *next = spare->next;

		free(spare);
		spare = next;
	}
}

static int wait_for_lock(struct fs_vnode *v, struct rxafs_request *request)
{
	monotonic_wait(&v->locks->changed, &v->lock, monotonic_ns() + LOOK_NS);
	if (request->cancel && cl_cancel_raised(request->cancel))
		return -EINTR;
	return request->deadline && cl_net_now() > request->deadline ? -ETIMEDOUT : 0;
}

int rxafs_set_lock(rxafs_file *file, struct rxafs_request *request, const struct rxafs_lock *lock,
		   bool wait)
{
	struct fs_vnode *v = file->vnode;
	struct held *spare = get_spare();
	int result = 0;

	if (!spare)
		return -ENOMEM;
	pthread_mutex_lock(&v->lock);
	if (!get_locks(v)) {
		result = -ENOMEM;
		goto out;
	}
	while (lock->type != F_UNLCK && find_conflict(v->locks, lock)) {
		result = !wait		  ? -EAGAIN
			 : request->quick ? RXAFS_WOULD_WAIT
					  : wait_for_lock(v, request);
		if (result)
			goto out;
	}
	replace_range(v->locks, lock, &spare);
	pthread_cond_broadcast(&v->locks->changed);
out:
	pthread_mutex_unlock(&v->lock);
	free_spare(spare);
	return result;
}

int rxafs_test_lock(rxafs_file *file, struct rxafs_request *request, struct rxafs_lock *lock)
{
	struct fs_vnode *v = file->vnode;
	const struct rxafs_lock *other;

	(void)request;
	pthread_mutex_lock(&v->lock);
	other = v->locks ? find_conflict(v->locks, lock) : NULL;
	if (other)
		*lock = *other;
	else
		lock->type = F_UNLCK;
	pthread_mutex_unlock(&v->lock);
	return 0;
}

void rxafs_drop_locks(rxafs_file *file, uint64_t owner, bool whole)
{
	struct rxafs_lock all = {
		.owner = owner, .end = UINT64_MAX, .type = F_UNLCK, .whole = whole};
	struct fs_vnode *v = file->vnode;
	struct held *none = NULL;

	pthread_mutex_lock(&v->lock);
	if (v->locks) {
		replace_range(v->locks, &all, &none);
		pthread_cond_broadcast(&v->locks->changed);
	}
	pthread_mutex_unlock(&v->lock);
}
