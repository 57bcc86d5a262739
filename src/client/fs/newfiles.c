/* SPDX-License-Identifier: BSD-2-Clause */
/* New small files of a directory, some at a time: those of one step are in flight together. */
#include <errno.h>
#include <stdlib.h>

#include <rxafs/stream.h>

#include "client/fs/operate.h"
#include "client/fs/show.h"
#include "client/net/many.h"

/* Files that are made, and then stored. */
struct group {
	rxafs_object *directory;
	struct rxafs_request *request;
	struct rxafs_new_file *files;
	unsigned count;		  /* that get a call */
	unsigned at[CL_MANY];	  /* which they are */
	struct fs_change changes[CL_MANY];
	struct cl_creation made[CL_MANY];
	struct cl_store stores[CL_MANY];
};

/* A file that gets its contents later has the time 0 until then. The server lets its owner write. */
static AFSStoreStatus status_at_first(const struct rxafs_new_file *file)
{
	struct rxafs_changes set = {
		.set = RXAFS_SET_MODE | RXAFS_SET_TIME,
		.mode = file->set.set & RXAFS_SET_MODE ? file->set.mode : 0644};

	if (file->length)
		set.mode |= 0200;
	else
		set.time = file->set.set & RXAFS_SET_TIME ? file->set.time : time(NULL);
	return fs_status_to_set(&set);
}

/* The names that can be made, each as a change of the directory. */
static void begin_creations(struct group *g, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		struct rxafs_new_file *file = &g->files[i];

		file->made = false;
		file->result = fs_check_name(file->name);
		if (!file->result)
			file->result = fs_begin_change(&g->changes[g->count], g->directory, NULL,
						       g->request);
		if (file->result)
			continue;
		g->made[g->count] =
			(struct cl_creation){.name = file->name, .how = status_at_first(file)};
		g->at[g->count++] = i;
	}
}

/* The cache learns what became of a name. */
static void learn_creation(struct group *g, unsigned i)
{
	struct rxafs_new_file *file = &g->files[g->at[i]];
	struct cl_creation *made = &g->made[i];
	struct fs_change *c = &g->changes[i];

	file->result = made->result;
	file->made = !made->result;
	c->call.stamp = made->stamp;
	c->edit = fs_edit(NULL, file->name, &made->made.fid);
	c->status = made->made.dir_status;
	if (made->result)
		g->request->failure = made->failure;
	fs_end_change(c, made->result);
	if (made->result == -EEXIST)
		cl_object_doubt(c->directory->object);
}

static void show_new_file(struct group *g, const AFSFid *made, const AFSFetchStatus *status,
			  struct rxafs_new_file *file)
{
	struct fs_vnode *v = g->changes[0].directory;
	struct rxafs_fid fid = {v->fid.cell, made->Volume, made->Vnode, made->Unique};

	fs_show_status(v->client, &fid, status, &file->attributes);
}

static void make_all(struct group *g)
{
	struct fs_vnode *v = g->changes[0].directory;
	AFSFid fid = fs_afs_fid(&v->fid);

	cl_net_create_many(v->volume, &g->changes[0].call.caller, &fid, g->made, g->count);
	for (unsigned i = 0; i < g->count; i++) {
		struct rxafs_new_file *file = &g->files[g->at[i]];

		learn_creation(g, i);
		if (file->made)
			show_new_file(g, &g->made[i].made.fid, &g->made[i].made.status, file);
	}
}

/* Files that were made and are not empty. Returns their number, and which they are. */
static unsigned list_stores(struct group *g, unsigned at[CL_MANY])
{
	unsigned count = 0;

	for (unsigned i = 0; i < g->count; i++) {
		const struct rxafs_new_file *file = &g->files[g->at[i]];

		if (!file->made || !file->length)
			continue;
		g->stores[count] = (struct cl_store){.fid = g->made[i].made.fid,
						     .how = fs_status_to_set(&file->set),
						     .bytes = file->bytes,
						     .length = file->length};
		at[count++] = g->at[i];
	}
	return count;
}

/*
 * Another operation may have found the name meanwhile, and know the file without contents. An object that is made after this gets its status
 * from the server.
 */
static void tell_cache(struct fs_vnode *directory, struct fs_call *call, const struct cl_store *store)
{
	struct rxafs_fid fid = {directory->fid.cell, store->fid.Volume, store->fid.Vnode,
				store->fid.Unique};
	struct cl_object *object = cl_cache_find(directory->client->cache, &fid);
	struct fs_vnode *v = object ? cl_object_user(object) : NULL;
	struct cl_status known;

	if (v && !store->result) {
		call->stamp = store->stamp;
		cl_cache_apply(object, fs_reply(call, NULL), &store->status, &known);
		fs_learned(v, &known);
	} else if (object) {
		cl_object_doubt(object);
	}
	cl_object_put(object);
}

static void store_all(struct group *g)
{
	struct fs_vnode *v = g->changes[0].directory;
	unsigned at[CL_MANY], count = list_stores(g, at);
	struct fs_call call;

	if (!count)
		return;
	fs_begin_call(&call, v->client, g->request);
	cl_net_store_many(v->volume, &call.caller, g->stores, count);
	for (unsigned i = 0; i < count; i++) {
		const struct cl_store *store = &g->stores[i];
		struct rxafs_new_file *file = &g->files[at[i]];

		file->result = store->result;
		tell_cache(v, &call, store);
		if (store->result)
			g->request->failure = store->failure;
		else
			show_new_file(g, &store->fid, &store->status, file);
	}
}

int rxafs_store_small(rxafs_object *directory, struct rxafs_request *request,
		      struct rxafs_new_file *files, unsigned count)
{
	struct fs_vnode *v;
	struct group *g;
	int result = fs_enter_to_change(directory, request, &v);

	if (result || !count || count > RXAFS_SMALL_MOST)
		return result ? result : count ? -EINVAL : 0;
	g = malloc(sizeof(*g));
	if (!g)
		return -ENOMEM;
	g->directory = directory;
	g->request = request;
	g->files = files;
	g->count = 0;
	begin_creations(g, count);
	if (g->count) {
		make_all(g);
		store_all(g);
	}
	free(g);
	return 0;
}
