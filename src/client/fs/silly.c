/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files that are removed while they are open here: the server would free them. They get another name, which this client
 * hides, and are removed at the last close (K-097).
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/fs/leftover.h"
#include "client/fs/operate.h"

/* Under the lock of the client's tables, where all of them are listed. */
struct fs_hidden {
	struct fs_hidden *next;
	struct rxafs_fid directory, fid;
	rxafs_object *in; /* a reference */
	rxafs_user *user; /* who removed it; a reference or NULL */
	char name[24];
};

static bool open_unless_leaving(struct fs_vnode *v)
{
	bool stays;

	pthread_mutex_lock(&v->lock);
	stays = !v->leaving;
	v->opens += stays;
	pthread_mutex_unlock(&v->lock);
	return stays;
}

int fs_note_open(struct fs_vnode *v, struct rxafs_request *request)
{
	rxafs_client *client = v->client;
	int result = 0;

	if (open_unless_leaving(v))
		return 0;
	if (request->quick)
		return fs_would_wait(v, request);
	pthread_mutex_lock(&client->lock);
	while (!result && !open_unless_leaving(v))
		result = fs_await_others(client, request,
					 request->deadline ? request->deadline : UINT64_MAX);
	pthread_mutex_unlock(&client->lock);
	return result;
}

void fs_note_open_new(struct fs_vnode *v)
{
	pthread_mutex_lock(&v->lock);
	v->opens++;
	pthread_mutex_unlock(&v->lock);
}

bool fs_begin_leaving(struct fs_vnode *v)
{
	bool closed;

	pthread_mutex_lock(&v->lock);
	closed = v->opens == 0;
	v->leaving += closed;
	pthread_mutex_unlock(&v->lock);
	return closed;
}

void fs_end_leaving(struct fs_vnode *v)
{
	pthread_mutex_lock(&v->lock);
	assert(v->leaving);
	v->leaving--;
	pthread_mutex_unlock(&v->lock);
	pthread_mutex_lock(&v->client->lock);
	pthread_cond_broadcast(&v->client->asked);
	pthread_mutex_unlock(&v->client->lock);
}

bool fs_hides(rxafs_client *client, const struct rxafs_fid *directory, const char *name)
{
	struct fs_hidden *h;

	if (strncmp(name, FS_HIDDEN_PREFIX, sizeof FS_HIDDEN_PREFIX - 1))
		return false;
	pthread_mutex_lock(&client->lock);
	for (h = client->hidden; h; h = h->next)
		if (!strcmp(h->name, name) && rxafs_fid_same(&h->directory, directory))
			break;
	pthread_mutex_unlock(&client->lock);
	return h != NULL;
}

static void list_hidden(rxafs_client *client, struct fs_hidden *h)
{
	pthread_mutex_lock(&client->lock);
	h->next = client->hidden;
	client->hidden = h;
	pthread_mutex_unlock(&client->lock);
}

static void unlist_hidden(rxafs_client *client, struct fs_hidden *h)
{
	struct fs_hidden **at;

	pthread_mutex_lock(&client->lock);
	for (at = &client->hidden; *at != h;)
		at = &(*at)->next;
	*at = h->next;
	pthread_mutex_unlock(&client->lock);
}

static void free_hidden(struct fs_hidden *h)
{
	rxafs_release(h->in);
	rxafs_put_user(h->user);
	free(h);
}

int fs_hide(rxafs_object *directory, struct rxafs_request *request, const char *name,
	    struct fs_vnode *v)
{
	rxafs_client *client = directory->client;
	struct fs_hidden *h = calloc(1, sizeof *h);
	struct fs_vnode *in;
	int result;

	if (!h)
		return -ENOMEM;
	result = fs_enter(directory, request, &in);
	if (result) {
		free(h);
		return result;
	}
	h->directory = in->fid;
	h->fid = v->fid;
	h->in = rxafs_hold(directory);
	h->user = request->user;
	if (h->user)
		atomic_fetch_add(&h->user->references, 1);
	fs_name_hidden(h->name, v->fid.vnode, v->fid.unique);
	list_hidden(client, h);
	fs_list_hidden(client, '+', &h->directory, &h->fid);
	result = fs_rename(directory, request, name, directory, h->name, &v->fid);
	if (result && !request->failure.maybe_done)
		fs_list_hidden(client, '-', &h->directory, &h->fid);
	pthread_mutex_lock(&v->lock);
	if (!result && v->opens && !v->hidden) {
		v->hidden = h;
		h = NULL;
	}
	pthread_mutex_unlock(&v->lock);
	if (!h)
		return 0;
	/* It was closed meanwhile. */
	if (!result) {
		result = fs_remove_file(directory, request, h->name);
		if (!result)
			fs_list_hidden(client, '-', &h->directory, &h->fid);
	}
	unlist_hidden(client, h);
	free_hidden(h);
	return result;
}

/* On a thread of the executor: close does not wait for it. */
struct removal {
	struct fs_vnode *vnode; /* a reference */
	struct fs_hidden *hidden;
};

static void remove_hidden(void *arg)
{
	struct removal *r = arg;
	rxafs_client *client = r->vnode->client;
	struct rxafs_request request = {.user = r->hidden->user};

	if (!fs_remove_file(r->hidden->in, &request, r->hidden->name))
		fs_list_hidden(client, '-', &r->hidden->directory, &r->hidden->fid);
	unlist_hidden(client, r->hidden);
	free_hidden(r->hidden);
	fs_put_vnode(r->vnode);
	free(r);
}

void fs_note_close(struct fs_vnode *v)
{
	struct removal *r;
	struct fs_hidden *h = NULL;

	pthread_mutex_lock(&v->lock);
	assert(v->opens);
	if (!--v->opens) {
		h = v->hidden;
		v->hidden = NULL;
	}
	pthread_mutex_unlock(&v->lock);
	if (!h)
		return;
	r = malloc(sizeof *r);
	if (!r)
		return;
	r->vnode = v;
	r->hidden = h;
	cl_object_hold(v->object);
	if (fs_execute(v->client->executor, v->fid.cell, fs_server_of(v), remove_hidden, r))
		remove_hidden(r);
}
