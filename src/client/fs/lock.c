/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Locks. Among the processes here this is all of POSIX and flock; the server has one lock of the whole file for all
 * of them while one has a lock of flock, or of all bytes (K-103).
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "client/fs/operate.h"
#include "client/fs/serverlock.h"
#include "common/clock.h"
#include "common/held.h"

#define LOOK_NS (100 * NS_PER_MS)
/* Between two tries to get a lock that another client has; its release is told, mostly. */
#define POLL_NS (5 * (uint64_t)NS_PER_S)

struct held {
	struct held *next;
	const rxafs_file *file; /* by which it was taken; only compared */
	struct rxafs_lock lock;
};

struct fs_locks {
	struct held *list;
	pthread_cond_t changed; /* with the lock of the vnode */
	struct fs_server_lock server;
	uint64_t told; /* breaks of promises for the file */
	bool busy;     /* the server's lock is being changed, or what it protects is being stored */
};

static void free_lock_list(struct fs_locks *locks)
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
		if (!v->locks)
			return NULL;
		v->free_locks = free_lock_list;
		v->locks->server.type = F_UNLCK;
		monotonic_cond_init(&v->locks->changed);
	}
	return v->locks;
}

static bool ranges_overlap(const struct rxafs_lock *a, const struct rxafs_lock *b)
{
	return a->start <= b->end && b->start <= a->end;
}

static const struct rxafs_lock *find_conflict(const struct fs_locks *locks,
					      const struct rxafs_lock *l)
{
	for (const struct held *h = locks->list; h; h = h->next)
		if (h->lock.whole == l->whole && h->lock.owner != l->owner &&
		    ranges_overlap(&h->lock, l) && (h->lock.type == F_WRLCK || l->type == F_WRLCK))
			return &h->lock;
	return NULL;
}

static void add_held(struct fs_locks *locks, struct held *h, const rxafs_file *file,
		     const struct rxafs_lock *lock)
{
	h->lock = *lock;
	h->file = file;
	h->next = locks->list;
	locks->list = h;
}

/*
 * Take a range out of what the owner has, and put the new lock in. Two pieces of memory are at hand: a range that
 * is cut in the middle becomes two.
 */
static void replace_range(struct fs_locks *locks, const rxafs_file *file,
			  const struct rxafs_lock *l, struct held **spare)
{
	for (struct held **at = &locks->list; *at;) {
		struct held *h = *at;

		/* The number of an open file that was closed may be that of the next one before the end of its lock is told. */
		bool other = l->whole && l->type == F_UNLCK && h->file != file;

		if (h->lock.owner != l->owner || h->lock.whole != l->whole || other ||
		    !ranges_overlap(&h->lock, l)) {
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
			more->file = h->file;
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
		add_held(locks, h, file, l);
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

/* Until something has changed, or for `most_ns`. */
static int wait_for_lock(struct fs_vnode *v, struct rxafs_request *request, uint64_t most_ns)
{
	uint64_t end = monotonic_ns() + most_ns;
	uint64_t until = monotonic_ns() + (most_ns < LOOK_NS ? most_ns : LOOK_NS);

	do {
		if (monotonic_wait(&v->locks->changed, &v->lock, until) != ETIMEDOUT)
			break;
		if (request->cancel && cl_cancel_raised(request->cancel))
			return -EINTR;
		if (request->deadline && cl_net_now() > request->deadline)
			return -ETIMEDOUT;
		if (atomic_load(&v->client->ending))
			return -EINTR;
		until += LOOK_NS;
	} while (until < end);
	return request->cancel && cl_cancel_raised(request->cancel) ? -EINTR : 0;
}

/* Whether the server has to know of it: flock, and ranges of all bytes (K-104). */
static bool is_for_server(const rxafs_client *client, const struct rxafs_lock *l)
{
	return l->whole || client->strict_locks || (!l->start && l->end >= INT64_MAX - 1);
}

/* What the server has to hold for those that are held here. */
static int needed_at_server(const rxafs_client *client, const struct fs_locks *locks)
{
	int needed = F_UNLCK;

	for (const struct held *h = locks->list; h; h = h->next)
		if (is_for_server(client, &h->lock) && needed != F_WRLCK)
			needed = h->lock.type;
	return needed;
}

static bool is_less(int a, int b)
{
	return a != b && (a == F_UNLCK || b == F_WRLCK);
}

/* The server's lock is changed, by one at a time. With the lock of the vnode, which is released meanwhile. */
static int change_at_server(struct fs_vnode *v, struct rxafs_request *request, int type)
{
	struct fs_locks *locks = v->locks;
	int result;

	assert(!locks->busy);
	locks->busy = true;
	pthread_mutex_unlock(&v->lock);
	result = fs_change_server_lock(v, request, &locks->server, type);
	pthread_mutex_lock(&v->lock);
	locks->busy = false;
	pthread_cond_broadcast(&locks->changed);
	return result;
}

/*
 * Another client has it. With a promise for the file the release is told; without one the server is asked
 * again after a while. With the lock of the vnode, which is released meanwhile.
 */
static int wait_for_others(struct fs_vnode *v, struct rxafs_request *request)
{
	struct cl_status status;
	uint64_t seen;
	int result;

	seen = v->locks->told;
	pthread_mutex_unlock(&v->lock);
	result = fs_status(v, request, &status);
	pthread_mutex_lock(&v->lock);
	if (result || !status.locks || v->locks->told != seen)
		return result;
	return wait_for_lock(v, request, POLL_NS);
}

/* Until the server holds enough for a lock, and nobody here is in its way. With the lock of the vnode. */
static int acquire_lock(struct fs_vnode *v, struct rxafs_request *request,
			const struct rxafs_lock *lock, bool wait)
{
	bool read_only = cl_volume_type(v->volume) != AFS_VL_RW;
	int result = 0;

	while (!result) {
		bool conflict = find_conflict(v->locks, lock) != NULL;
		/* While it is being changed, nobody can tell what the server holds. */
		bool enough = !v->locks->busy && !is_less(v->locks->server.type, lock->type);

		if (!conflict && (read_only || !is_for_server(v->client, lock) || enough))
			return 0;
		if (conflict && !wait)
			return -EAGAIN;
		if (request->quick)
			return RXAFS_WOULD_WAIT;
		if (conflict || v->locks->busy) {
			result = wait_for_lock(v, request, POLL_NS);
			continue;
		}
		result = change_at_server(v, request, lock->type);
		if (result == -EAGAIN && wait)
			result = wait_for_others(v, request);
	}
	return result;
}

/* After an unlock: what was written is stored, then others may have it (K-076). With the lock of the vnode. */
static int release_at_server(rxafs_file *file, struct rxafs_request *request)
{
	struct fs_vnode *v = file->vnode;
	int stored = 0, result = 0, needed;

	while (!result && is_less(needed_at_server(v->client, v->locks), v->locks->server.type)) {
		if (v->locks->busy) {
			result = wait_for_lock(v, request, POLL_NS);
			continue;
		}
		v->locks->busy = true;
		pthread_mutex_unlock(&v->lock);
		stored = rxafs_flush(file, request, false);
		pthread_mutex_lock(&v->lock);
		v->locks->busy = false;
		needed = needed_at_server(v->client, v->locks);
		if (is_less(needed, v->locks->server.type))
			result = change_at_server(v, request, needed);
		else
			pthread_cond_broadcast(&v->locks->changed);
	}
	return result ? result : stored;
}

int rxafs_set_lock(rxafs_file *file, struct rxafs_request *request, const struct rxafs_lock *lock,
		   bool wait)
{
	struct fs_vnode *v = file->vnode;
	struct held *spare = get_spare();
	int result = 0;

	if (!spare)
		return -ENOMEM;
	file->locked |= lock->type != F_UNLCK;
	pthread_mutex_lock(&v->lock);
	if (!get_locks(v))
		result = -ENOMEM;
	else if (request->quick && lock->type != F_WRLCK && v->locks->server.type == F_WRLCK)
		result = RXAFS_WOULD_WAIT;
	else if (request->quick && lock->type == F_UNLCK && v->locks->server.type != F_UNLCK)
		result = RXAFS_WOULD_WAIT;
	else if (lock->type != F_UNLCK)
		result = acquire_lock(v, request, lock, wait);
	if (!result) {
		replace_range(v->locks, file, lock, &spare);
		pthread_cond_broadcast(&v->locks->changed);
		if (lock->type != F_WRLCK && !request->quick)
			result = release_at_server(file, request);
	}
	pthread_mutex_unlock(&v->lock);
	free_spare(spare);
	return result;
}

void fs_wake_locks(struct fs_vnode *v)
{
	pthread_mutex_lock(&v->lock);
	if (v->locks) {
		v->locks->told++;
		pthread_cond_broadcast(&v->locks->changed);
	}
	pthread_mutex_unlock(&v->lock);
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

/* On a thread of the executor: nobody waits for it. */
static void drop_at_server(void *arg)
{
	struct fs_vnode *v = arg;
	struct rxafs_request request = {0};

	pthread_mutex_lock(&v->lock);
	while (v->locks->busy)
		wait_for_lock(v, &request, POLL_NS);
	if (is_less(needed_at_server(v->client, v->locks), v->locks->server.type))
		change_at_server(v, &request, needed_at_server(v->client, v->locks));
	pthread_mutex_unlock(&v->lock);
	fs_put_vnode(v);
}

/* Some locks have gone: waiters look again, and the server keeps what is still needed. With the lock of the vnode, which is released. */
static void end_dropping(struct fs_vnode *v)
{
	bool tell;

	assert(mutex_is_held(&v->lock));
	pthread_cond_broadcast(&v->locks->changed);
	/* While another thread changes it at the server, that is not known yet. */
	tell = v->locks->busy ||
	       is_less(needed_at_server(v->client, v->locks), v->locks->server.type);
	pthread_mutex_unlock(&v->lock);
	if (!tell)
		return;
	cl_object_hold(v->object);
	if (fs_execute(v->client->executor, v->fid.cell, fs_server_of(v), drop_at_server, v))
		drop_at_server(v);
}

void rxafs_drop_locks(rxafs_file *file, uint64_t owner, bool whole)
{
	struct rxafs_lock all = {
		.owner = owner, .end = UINT64_MAX, .type = F_UNLCK, .whole = whole};
	struct fs_vnode *v = file->vnode;
	struct held *none = NULL;

	pthread_mutex_lock(&v->lock);
	if (!v->locks) {
		pthread_mutex_unlock(&v->lock);
		return;
	}
	replace_range(v->locks, file, &all, &none);
	end_dropping(v);
}

/* Owners that are open descriptions (F_OFD_SETLK) end with the file, and nobody names them then. */
void fs_drop_locks_of(rxafs_file *file)
{
	struct fs_vnode *v = file->vnode;

	pthread_mutex_lock(&v->lock);
	if (!v->locks) {
		pthread_mutex_unlock(&v->lock);
		return;
	}
	for (struct held **at = &v->locks->list; *at;) {
		struct held *h = *at;

		if (h->file != file) {
			at = &h->next;
			continue;
		}
		*at = h->next;
		free(h);
	}
	end_dropping(v);
}
