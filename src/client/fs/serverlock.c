/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Locks at servers. They end after 300 s, and a server that restarts has forgotten them: a thread extends them, and gets them
 * again. Those that are lost are told to writers (K-107).
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <syslog.h>

#include "client/fs/operate.h"
#include "client/fs/serverlock.h"
#include "common/clock.h"
#include "common/held.h"

#define EXTEND_NS (120 * (uint64_t)NS_PER_S)
#define RETRY_NS  (30 * (uint64_t)NS_PER_S)
/* At the end of the client: for one, and for all. */
#define FAREWELL_NS	(200 * (uint64_t)NS_PER_MS)
#define FAREWELL_ALL_NS (NS_PER_S)
#define LOST_NS	    (300 * (uint64_t)NS_PER_S)

struct fs_lock_keeper {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct fs_server_lock *list; /* each has a reference to its vnode */
	uint64_t reset_at;	     /* older locks may be forgotten */
	bool running, ending;
};

static int call_lock(struct fs_vnode *v, struct rxafs_request *request, enum cl_lock_call kind)
{
	AFSFid fid = fs_afs_fid(&v->fid);
	struct fs_call call;

	fs_begin_call(&call, v->client, request);
	return cl_net_lock(v->volume, &call.caller, &fid, kind, &call.stamp, &request->failure);
}

/* What is read under the lock is what the server has now. */
static int look_at_status(struct fs_vnode *v, struct rxafs_request *request)
{
	struct cl_status status;

	cl_object_doubt(v->object);
	return fs_status(v, request, &status);
}

/*
 * The server's locks have no owners, so the release of one that is perhaps not held could be that of another client's lock. What was asked
 * for is waited for, whoever is interrupted; a lock that stays unknown ends after 300 s.
 */
static int get_lock(struct fs_vnode *v, struct rxafs_request *request, int type)
{
	struct rxafs_request whole = *request;
	int result;

	whole.cancel = NULL;
	result = call_lock(v, &whole, type == F_WRLCK ? CL_LOCK_WRITE : CL_LOCK_READ);
	request->failure = whole.failure;
	if (result)
		return result;
	result = look_at_status(v, request);
	if (result) {
		struct rxafs_request again = {.user = request->user};

		call_lock(v, &again, CL_LOCK_RELEASE);
	}
	return result;
}

/* -- keeping them ------------------------------------------------------------------------------ */

/* Extends one, or gets it again. False: the server does not answer. */
static bool renew_lock(struct fs_server_lock *lock)
{
	struct rxafs_request request = {.user = lock->user, .deadline = cl_net_now() + RETRY_NS};
	int result = call_lock(lock->vnode, &request, CL_LOCK_EXTEND);

	if (result == -EINVAL)
		result = get_lock(lock->vnode, &request, lock->type);
	if (!result) {
		lock->extended = monotonic_ns();
		return true;
	}
	if (result != -ETIMEDOUT || monotonic_ns() > lock->extended + LOST_NS) {
		struct rxafs_fid fid = lock->vnode->fid;

		lock->lost = true;
		atomic_store(&lock->vnode->lock_lost, true);
		fs_log(lock->vnode->client, LOG_ERR, "the lock of file %u.%u.%u is lost: error %d",
		       fid.volume, fid.vnode, fid.unique, -result);
		return true;
	}
	return false;
}

/* The one whose turn it is, with a reference; *until: when there is one. With the lock. */
static struct fs_server_lock *choose_lock(struct fs_lock_keeper *k, uint64_t now, uint64_t *until)
{
	*until = now + EXTEND_NS;
	for (struct fs_server_lock *l = k->list; l; l = l->next) {
		if (l->lost)
			continue;
		if (l->due <= now || (l->extended < k->reset_at && l->due > now + RETRY_NS))
			return l;
		if (l->due < *until)
			*until = l->due;
	}
	return NULL;
}

static void *keep_locks(void *arg)
{
	struct fs_lock_keeper *k = arg;
	struct fs_server_lock *l;
	uint64_t until;

	pthread_mutex_lock(&k->lock);
	while (!k->ending) {
		l = choose_lock(k, monotonic_ns(), &until);
		if (!l) {
			monotonic_wait(&k->wake, &k->lock, until);
			continue;
		}
		/* It stays in the list until it is renewed: see fs_change_server_lock(). */
		l->renewing = true;
		pthread_mutex_unlock(&k->lock);
		bool renewed = renew_lock(l);
		pthread_mutex_lock(&k->lock);
		l->due = monotonic_ns() + (renewed ? EXTEND_NS : RETRY_NS);
		l->renewing = false;
		pthread_cond_broadcast(&k->wake);
	}
	pthread_mutex_unlock(&k->lock);
	return NULL;
}

struct fs_lock_keeper *fs_lock_keeper_create(void)
{
	struct fs_lock_keeper *k = calloc(1, sizeof *k);

	if (!k)
		return NULL;
	pthread_mutex_init(&k->lock, NULL);
	monotonic_cond_init(&k->wake);
	return k;
}

/* One that the server has, and nobody renews. With the lock. */
static struct fs_server_lock *choose_held_lock(struct fs_lock_keeper *k)
{
	struct fs_server_lock *l = k->list;

	assert(mutex_is_held(&k->lock));
	while (l && (l->lost || l->renewing))
		l = l->next;
	return l;
}

void fs_lock_keeper_end(struct fs_lock_keeper *k)
{
	uint64_t end = cl_net_now() + FAREWELL_ALL_NS;
	struct fs_server_lock *l;

	pthread_mutex_lock(&k->lock);
	k->ending = true;
	pthread_cond_broadcast(&k->wake);
	while (cl_net_now() < end && (l = choose_held_lock(k))) {
		struct rxafs_request request = {.user = l->user,
						.deadline = cl_net_now() + FAREWELL_NS};

		/* It stays in the list, as in keep_locks(). */
		l->renewing = true;
		pthread_mutex_unlock(&k->lock);
		call_lock(l->vnode, &request, CL_LOCK_RELEASE);
		pthread_mutex_lock(&k->lock);
		l->lost = true;
		l->renewing = false;
		pthread_cond_broadcast(&k->wake);
	}
	pthread_mutex_unlock(&k->lock);
}

void fs_lock_keeper_free(struct fs_lock_keeper *k)
{
	if (!k)
		return;
	assert(!k->running || k->ending);
	if (k->running)
		pthread_join(k->thread, NULL);
	while (k->list) {
		struct fs_server_lock *l = k->list;

		k->list = l->next;
		rxafs_put_user(l->user);
		fs_put_vnode(l->vnode);
	}
	pthread_cond_destroy(&k->wake);
	pthread_mutex_destroy(&k->lock);
	free(k);
}

void fs_renew_locks(rxafs_client *client)
{
	struct fs_lock_keeper *k = client->keeper;

	/* At the end of the client there is none. */
	if (!k)
		return;
	pthread_mutex_lock(&k->lock);
	k->reset_at = monotonic_ns();
	pthread_cond_broadcast(&k->wake);
	pthread_mutex_unlock(&k->lock);
}

static void list_lock(struct fs_lock_keeper *k, struct fs_vnode *v, rxafs_user *user,
		      struct fs_server_lock *lock)
{
	pthread_mutex_lock(&k->lock);
	lock->vnode = v;
	lock->user = user;
	if (user)
		atomic_fetch_add(&user->references, 1);
	lock->extended = monotonic_ns();
	lock->due = lock->extended + EXTEND_NS;
	lock->lost = false;
	atomic_store(&v->lock_lost, false);
	lock->next = k->list;
	k->list = lock;
	cl_object_hold(v->object);
	if (!k->running && !k->ending)
		k->running = !pthread_create(&k->thread, NULL, keep_locks, k);
	pthread_cond_broadcast(&k->wake);
	pthread_mutex_unlock(&k->lock);
}

static void unlist_lock(struct fs_lock_keeper *k, struct fs_server_lock *lock)
{
	struct fs_server_lock **at = &k->list;

	pthread_mutex_lock(&k->lock);
	while (lock->renewing)
		pthread_cond_wait(&k->wake, &k->lock);
	while (*at != lock)
		at = &(*at)->next;
	*at = lock->next;
	pthread_mutex_unlock(&k->lock);
	fs_put_vnode(lock->vnode);
}

int fs_change_server_lock(struct fs_vnode *v, struct rxafs_request *request,
			  struct fs_server_lock *lock, int type)
{
	struct fs_lock_keeper *k = v->client->keeper;
	int result = 0;

	assert(type != lock->type);
	if (lock->type != F_UNLCK) {
		/* The server has no change of a lock: it is released and got again (K-105). */
		struct rxafs_request owner = *request;

		unlist_lock(k, lock);
		lock->type = F_UNLCK;
		owner.user = lock->user;
		if (!lock->lost)
			result = call_lock(v, &owner, CL_LOCK_RELEASE);
		request->failure = owner.failure;
		rxafs_put_user(lock->user);
		lock->user = NULL;
		lock->lost = false;
		atomic_store(&v->lock_lost, false);
	}
	if (type == F_UNLCK)
		return result;
	result = get_lock(v, request, type);
	if (result)
		return result;
	lock->type = type;
	list_lock(k, v, request->user, lock);
	return 0;
}
