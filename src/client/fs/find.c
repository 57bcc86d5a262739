/* SPDX-License-Identifier: BSD-2-Clause */
/* From names to objects. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "afs/dirformat.h"
#include "afs/fetchstatus.h"
#include "afs/address.h"
#include "afs/dir.h"
#include "client/fs/operate.h"

#define IMAGE_MOST ((size_t)AFS_DIR_PAGES_MAX * AFS_DIR_PAGE)
/* A directory that others change all the time is read for one use. */
#define LOADS_MOST 3

/* Contents that are fetched whole. */
struct image {
	uint8_t *bytes;
	size_t length, room, most;
	uint64_t base;
};

static int take_image(void *arg, uint64_t offset, struct iovec *iov, unsigned count)
{
	struct image *image = arg;

	for (unsigned i = 0; i < count; i++) {
		size_t end = (size_t)offset + iov[i].iov_len;

		if (end > image->most)
			return -EFBIG;
		if (end > image->room) {
			size_t room = 2 * end > image->most ? image->most : 2 * end;
			uint8_t *bytes = realloc(image->bytes, room);

			if (!bytes)
				return -ENOMEM;
			image->bytes = bytes;
			image->room = room;
		}
		memcpy(image->bytes + offset, iov[i].iov_base, iov[i].iov_len);
		offset += iov[i].iov_len;
		image->length = end;
	}
	return 0;
}

/* All of an object, with its status. image->bytes is to be freed, also after a failure. */
static int fetch_image(struct fs_vnode *v, struct fs_call *call, struct image *image,
		       AFSFetchStatus *answer)
{
	AFSFid fid = fs_afs_fid(&v->fid);
	uint64_t fetched;
	int result;

	fs_begin_call(call, v->client, call->request);
	result = cl_net_fetch_data(v->volume, &call->caller, &fid, 0, 0, image->most, take_image,
				   image, &fetched, answer, &call->stamp, &call->request->failure);
	if (result == -ESTALE)
		cl_object_gone(v->object);
	return result;
}

/* Each version of a directory is complained about once. */
static bool is_new_damage(struct fs_vnode *v, uint64_t version)
{
	bool fresh;

	pthread_mutex_lock(&v->lock);
	fresh = v->damaged != version + 1;
	v->damaged = version + 1;
	pthread_mutex_unlock(&v->lock);
	return fresh;
}

/* What the server has sent makes no sense. */
static int fail_malformed(struct fs_vnode *v, struct rxafs_request *request, uint32_t server,
			const char *what, const char *fault)
{
	struct rxafs_failure *failure = &request->failure;
	struct cl_server_info info;

	fs_fail(request, -EIO, "");
	failure->volume = v->fid.volume;
	if (cl_net_server_info(v->client->net, server, &info))
		afs_server_text(&info.address, "file server", failure->server,
				sizeof failure->server);
	snprintf(failure->text, sizeof failure->text, "%.63s%sthe %s is malformed: %s",
		 failure->server, failure->server[0] ? ": " : "", what, fault);
	return -EIO;
}

static int load_once(struct fs_vnode *v, struct rxafs_request *request, struct cl_names **once)
{
	struct image image = {.most = IMAGE_MOST};
	struct fs_call call = {.request = request};
	AFSFetchStatus answer;
	const char *fault = NULL;
	struct cl_status known;
	int result = fetch_image(v, &call, &image, &answer);

	if (!result) {
		cl_cache_apply(v->object, fs_reply(&call, &call.stamp.callback), &answer, &known);
		result = cl_dir_load(v->object, &call.reply, &answer, image.bytes, image.length,
				     once, &fault);
		/* Without a promise the names are those of this moment. */
		if (!result && !known.valid_until) {
			*once = cl_names_parse(image.bytes, image.length, v->client->key, &fault);
			result = *once ? 0 : -ENOMEM;
		}
	}
	if (result == -EIO && fault)
		fail_malformed(v, request, call.stamp.server, "directory", fault);
	if (result == -EIO && fault && is_new_damage(v, afs_status_version(&answer)))
		fs_log(v->client, LOG_ERR, "directory %u.%u.%u is damaged: %s", v->fid.volume,
		       v->fid.vnode, v->fid.unique, fault);
	free(image.bytes);
	return result;
}

bool fs_is_gone(struct fs_vnode *v)
{
	return cl_object_status(v->object, cl_net_now(), &(struct cl_status){0}) == -ENOENT;
}

int fs_load_names(struct fs_vnode *v, struct rxafs_request *request, struct cl_names **once)
{
	int result;

	*once = NULL;
	if (request->quick)
		return RXAFS_WOULD_WAIT;
	result = fs_claim(v, request, CL_CLAIM_NAMES);
	if (result)
		return result;
	result = -ESTALE;
	for (unsigned i = 0; result == -ESTALE && i < LOADS_MOST; i++) {
		if (cl_dir_loaded(v->object, cl_net_now())) {
			result = 0;
			break;
		}
		cl_names_free(*once);
		*once = NULL;
		result = load_once(v, request, once);
		if (fs_is_gone(v))
			break;
	}
	fs_unclaim(v, CL_CLAIM_NAMES);
	return result == -ESTALE && *once ? 0 : result;
}

/* Whether some names are there, of whatever version. */
static bool has_names(struct fs_vnode *v)
{
	struct cl_entry entry;
	unsigned count;

	return cl_dir_next(v->object, 0, &entry, 1, &count) != -ESTALE;
}

/* Names that are fetched while nobody waits for them yet. */
struct names_ahead {
	struct fs_vnode *vnode;
	rxafs_user *user;
};

static void load_names_ahead(void *arg)
{
	struct names_ahead *ahead = arg;
	struct rxafs_request request = {.user = ahead->user};
	struct cl_names *once = NULL;

	if (!atomic_load(&ahead->vnode->client->ending))
		fs_load_names(ahead->vnode, &request, &once);
	cl_names_free(once);
	rxafs_put_user(ahead->user);
	fs_put_vnode(ahead->vnode);
	free(ahead);
}

/*
 * The status of a directory is asked for since somebody goes there: then its names are needed as well. Fetched at the same
 * time they cost no round trip of their own.
 */
static void fetch_names_ahead(struct fs_vnode *child, struct rxafs_request *request)
{
	struct names_ahead *ahead;

	if (!(child->fid.vnode & 1) || has_names(child))
		return;
	ahead = malloc(sizeof *ahead);
	if (!ahead)
		return;
	ahead->vnode = fs_get_vnode(child->client, child->volume, &child->fid);
	ahead->user = request->user;
	if (ahead->user)
		atomic_fetch_add(&ahead->user->references, 1);
	if (ahead->vnode && !fs_execute(child->client->executor, child->fid.cell,
					fs_server_of(child), load_names_ahead, ahead))
		return;
	if (ahead->vnode)
		fs_put_vnode(ahead->vnode);
	rxafs_put_user(ahead->user);
	free(ahead);
}

static int find_once(struct cl_names *names, const char *name, struct rxafs_fid *fid)
{
	return cl_names_find(names, name, strlen(name), &fid->vnode, &fid->unique) ? 0 : -ENOENT;
}

static uint64_t time_left(uint64_t until)
{
	uint64_t now = cl_net_now();

	return until > now ? until - now : 0;
}

static int find_by_calls(struct fs_vnode *v, struct rxafs_request *request, const char *name,
			 struct rxafs_fid *fid)
{
	struct cl_names *once = NULL;
	struct cl_status status;
	int result;

	/* Names are often still right when only their promise has ended. */
	if (has_names(v)) {
		result = fs_status(v, request, &status);
		if (result)
			return result;
		result = cl_dir_find(v->object, name, strlen(name), cl_net_now(), fid);
		if (result != -ESTALE)
			return result;
	}
	result = fs_load_names(v, request, &once);
	if (result)
		return result;
	*fid = v->fid;
	result = once ? find_once(once, name, fid)
		      : cl_dir_find(v->object, name, strlen(name), cl_net_now(), fid);
	if (once)
		cl_names_free(once);
	/* Changed again already. */
	return result == -ESTALE ? -EAGAIN : result;
}

int fs_find(struct fs_vnode *v, struct rxafs_request *request, const char *name,
	    struct rxafs_fid *fid, uint64_t *known_ns)
{
	struct cl_status status = {0};
	int result;

	if (strlen(name) > CL_NAME_MAX)
		return -ENAMETOOLONG;
	result = fs_need_rights(v, request, RXAFS_LIST);
	if (result)
		return result;
	result = cl_dir_find(v->object, name, strlen(name), cl_net_now(), fid);
	for (unsigned i = 0; i < LOADS_MOST && (result == -ESTALE || result == -EAGAIN); i++) {
		if (request->quick)
			return RXAFS_WOULD_WAIT;
		result = find_by_calls(v, request, name, fid);
		if (result == -ESTALE)
			return result;
	}
	if (known_ns)
		*known_ns = cl_object_status(v->object, cl_net_now(), &status)
				    ? 0
				    : time_left(status.valid_until);
	return result == -EAGAIN ? -ESTALE : result;
}

/* -- links and mount points --------------------------------------------------------------- */

static char *kept_text(struct fs_vnode *v, uint64_t version)
{
	char *text = NULL;

	pthread_mutex_lock(&v->lock);
	if (v->text && v->text_version == version)
		text = strdup(v->text);
	pthread_mutex_unlock(&v->lock);
	return text;
}

static void keep_text(struct fs_vnode *v, const char *text, uint64_t version)
{
	char *copy = strdup(text);

	pthread_mutex_lock(&v->lock);
	free(v->text);
	v->text = copy;
	v->text_version = version;
	pthread_mutex_unlock(&v->lock);
}

static int fetch_text(struct fs_vnode *v, struct rxafs_request *request, char **text)
{
	struct image image = {.most = AFSPATHMAX};
	struct fs_call call = {.request = request};
	AFSFetchStatus answer;
	int result = fetch_image(v, &call, &image, &answer);

	*text = NULL;
	if (!result) {
		cl_cache_apply(v->object, fs_reply(&call, &call.stamp.callback), &answer, NULL);
		if (image.length && memchr(image.bytes, 0, image.length))
			result = fail_malformed(v, request, call.stamp.server, "link",
					      "its text has a zero byte");
		else
			*text = strndup(image.bytes ? (char *)image.bytes : "", image.length);
		if (!result && !*text)
			result = -ENOMEM;
	}
	if (!result)
		keep_text(v, *text, afs_status_version(&answer));
	free(image.bytes);
	return result;
}

int fs_link_text(struct fs_vnode *v, struct rxafs_request *request, const struct cl_status *status,
		 char **text)
{
	*text = kept_text(v, status->version);
	if (*text)
		return 0;
	return request->quick ? RXAFS_WOULD_WAIT : fetch_text(v, request, text);
}

/* Mode exactly 0644 and a text of the form of mount points (K-015). */
int fs_is_mount_point(struct fs_vnode *v, struct rxafs_request *request,
		      const struct cl_status *status, char **text)
{
	int result;

	*text = NULL;
	if (status->kind != RXAFS_SYMLINK || status->mode != 0644)
		return 0;
	result = fs_link_text(v, request, status, text);
	if (result)
		return result;
	if (fs_mount_text_valid(*text))
		return 1;
	free(*text);
	*text = NULL;
	return 0;
}

/*
 * The status of a child, and with it of up to 49 neighbours that have none, by one call. When they cannot be asked together
 * the child is asked alone, which tells its error.
 */
static int child_status(struct fs_vnode *directory, const char *name, struct fs_vnode *child,
			struct rxafs_request *request, struct cl_status *status)
{
	struct rxafs_fid fids[AFSCBMAX];
	unsigned count;
	int result = cl_object_status(child->object, cl_net_now(), status);

	if (result == -ENOENT)
		return -ESTALE;
	if (result != -ESTALE)
		return result;
	if (request->quick)
		return RXAFS_WOULD_WAIT;
	fetch_names_ahead(child, request);
	result = fs_claim(child, request, CL_CLAIM_STATUS);
	if (result)
		return result;
	result = cl_object_status(child->object, cl_net_now(), status);
	if (result == -ESTALE && cl_object_claim(directory->object, CL_CLAIM_PREFETCH)) {
		count = cl_dir_neighbours(directory->object, name, strlen(name), cl_net_now(), fids,
					  AFSCBMAX);
		if (count)
			result = fs_ask_statuses(directory, request, fids, count);
		cl_object_unclaim(directory->object, CL_CLAIM_PREFETCH);
		result = cl_object_status(child->object, cl_net_now(), status);
	}
	fs_unclaim(child, CL_CLAIM_STATUS);
	return result == -ESTALE   ? fs_status(child, request, status)
	       : result == -ENOENT ? -ESTALE
				   : result;
}

int fs_object_of(rxafs_object *directory, struct rxafs_request *request, const char *name,
		 const struct rxafs_fid *fid, rxafs_object **object, struct cl_status *status)
{
	struct fs_vnode *parent, *child;
	char *text = NULL;
	int result = fs_enter(directory, request, &parent);

	if (result)
		return result;
	child = fs_get_vnode(directory->client, parent->volume, fid);
	if (!child)
		return -ENOMEM;
	result = child_status(parent, name, child, request, status);
	if (!result)
		result = fs_is_mount_point(child, request, status, &text);
	if (result >= 0) {
		*object = fs_get_object(directory, child, status->kind, text);
		result = *object ? 0 : -ENOMEM;
	}
	free(text);
	fs_put_vnode(child);
	return result;
}
