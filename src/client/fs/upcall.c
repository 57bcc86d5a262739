/* SPDX-License-Identifier: BSD-2-Clause */
/* What servers say by themselves: the cache learns it first, then whoever keeps something of it (K-163). */
#include <syslog.h>

#include "client/fs/operate.h"
#include "client/fs/serverlock.h"

static void tell_of(struct cl_object *object)
{
	struct fs_vnode *v = cl_object_user(object);

	if (v) {
		fs_wake_locks(v);
		atomic_store(&v->forgotten, true);
		fs_tell(v, RXAFS_CHANGED_STATUS | RXAFS_CHANGED_DATA | RXAFS_CHANGED_NAMES, NULL);
	}
	cl_object_put(object);
}

/* Of a volume; NULL: of a cell. */
static void tell_of_all(rxafs_client *client, const struct rxafs_fid *volume, uint32_t cell)
{
	struct cl_object *objects[64];
	uint64_t cursor = 0;
	size_t count;

	while ((count = cl_cache_walk(client->cache, &cursor, volume, objects, 64)))
		for (size_t i = 0; i < count; i++)
			if (cl_object_fid(objects[i]).cell == cell)
				tell_of(objects[i]);
			else
				cl_object_put(objects[i]);
}

static void settle_kernel(rxafs_client *client)
{
	if (client->hooks.settle)
		client->hooks.settle(client->hooks.arg);
}

/* False: the client is at its end. Else the lock is held. */
static bool begin_upcall(rxafs_client *client)
{
	pthread_rwlock_rdlock(&client->upcalls);
	if (!client->deaf)
		return true;
	pthread_rwlock_unlock(&client->upcalls);
	return false;
}

static void promises_broken(void *arg, uint32_t server, const struct rxafs_fid *fids,
			    uint32_t count)
{
	rxafs_client *client = arg;

	(void)server;
	if (!begin_upcall(client))
		return;
	/* All of them in the cache before anything that takes time. */
	for (uint32_t i = 0; i < count; i++) {
		bool whole = false;
		struct cl_object *object = cl_cache_break(client->cache, &fids[i], &whole);

		if (object)
			tell_of(object);
		else if (whole)
			tell_of_all(client, &fids[i], fids[i].cell);
	}
	settle_kernel(client);
	pthread_rwlock_unlock(&client->upcalls);
}

static void promises_reset(void *arg, uint32_t server, uint32_t resets)
{
	rxafs_client *client = arg;
	struct cl_server_info told;

	(void)resets;
	if (!begin_upcall(client))
		return;
	cl_cache_reset(client->cache, server);
	fs_renew_locks(client);
	/* A server that is in several cells is one for each. */
	if (cl_net_server_info(client->net, server, &told))
		tell_of_all(client, NULL, told.cell);
	settle_kernel(client);
	pthread_rwlock_unlock(&client->upcalls);
}

/* Identities belong to users; the operation that asks holds its own. */
static bool renew_token(void *arg, struct cl_identity *identity, uint32_t cell)
{
	rxafs_client *client = arg;
	struct cl_cell *of = cl_cells_at(client->cells, cell);

	return client->hooks.renew && of &&
	       client->hooks.renew(client->hooks.arg, cl_identity_owner(identity),
				   cl_cell_name(of));
}

/* On a thread of the executor (K-051). */
static void give_promises_back(void *arg)
{
	rxafs_client *client = arg;
	struct rxafs_fid fids[AFSCBMAX];
	AFSFid given[AFSCBMAX];
	uint32_t server;
	size_t count;

	while ((count = cl_cache_give_up(client->cache, &server, fids, AFSCBMAX))) {
		bool done;

		for (size_t i = 0; i < count; i++)
			given[i] = fs_afs_fid(&fids[i]);
		done = cl_net_give_up(client->net, server, given, (uint32_t)count);
		cl_cache_gave_up(client->cache, fids, count, done, cl_net_now());
	}
	atomic_store(&client->giving_back, false);
}

static void look_for_evicted(void *arg)
{
	rxafs_client *client = arg;
	struct cl_cache_counts counts;

	if (!begin_upcall(client))
		return;
	cl_cache_count(client->cache, &counts);
	if (counts.evicted != atomic_load(&client->evicted) &&
	    !atomic_exchange(&client->giving_back, true)) {
		atomic_store(&client->evicted, counts.evicted);
		if (fs_execute(client->executor, 0, 0, give_promises_back, client))
			atomic_store(&client->giving_back, false);
	}
	pthread_rwlock_unlock(&client->upcalls);
}

static void note_line(void *arg, const char *text)
{
	fs_log(arg, LOG_NOTICE, "%s", text);
}

const struct cl_net_ops fs_net_ops = {
	.broken = promises_broken,
	.reset = promises_reset,
	.renew = renew_token,
	.idle = look_for_evicted,
	.note = note_line,
};
