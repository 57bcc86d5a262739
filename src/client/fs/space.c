/* SPDX-License-Identifier: BSD-2-Clause */
/* Extended attributes, which are those of Linux's own client, and the space of volumes. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/fs/operate.h"
#include "common/clock.h"
#include "common/held.h"

static int ask_acl(struct fs_vnode *v, struct rxafs_request *request, char **value)
{
	struct fs_call call;
	AFSFid fid = fs_afs_fid(&v->fid);
	AFSFetchStatus answer;
	int result;

	if (request->quick)
		return RXAFS_WOULD_WAIT;
	*value = malloc(AFSOPAQUEMAX + 1);
	if (!*value)
		return -ENOMEM;
	fs_begin_call(&call, v->client, request);
	result = cl_net_fetch_acl(v->volume, &call.caller, &fid, *value, &answer, &call.stamp,
				  &request->failure);
	if (result) {
		free(*value);
		*value = NULL;
		return result;
	}
	cl_cache_apply(v->object, fs_reply(&call, NULL), &answer, NULL);
	return 0;
}

int rxafs_getxattr(rxafs_object *object, struct rxafs_request *request, const char *name,
		   char **value, size_t *length)
{
	struct fs_vnode *v;
	int result;

	*value = NULL;
	if (object->what == FS_ROOT || object->what == FS_ALIAS)
		return -ENODATA;
	result = fs_enter(object, request, &v);
	if (result)
		return result;
	if (!strcmp(name, "afs.cell"))
		*value = strdup(cl_cell_name(cl_volume_cell(v->volume)));
	else if (!strcmp(name, "afs.volume"))
		*value = strdup(cl_volume_name(v->volume));
	else if (!strcmp(name, "afs.fid")) {
		if (asprintf(value, "%x:%x:%x", v->fid.volume, v->fid.vnode, v->fid.unique) < 0)
			*value = NULL;
	} else if (!strcmp(name, "afs.acl"))
		result = ask_acl(v, request, value);
	else
		return -ENODATA;
	if (!result && !*value)
		result = -ENOMEM;
	if (!result)
		*length = strlen(*value);
	return result;
}

static int tell_acl(struct fs_vnode *v, struct rxafs_request *request, const char *text)
{
	AFSFid fid = fs_afs_fid(&v->fid);
	AFSFetchStatus answer;
	struct fs_call call;
	int result;

	cl_change_begin_quiet(v->object);
	fs_begin_call(&call, v->client, request);
	result = cl_net_store_acl(v->volume, &call.caller, &fid, text, &answer, &call.stamp,
				  &request->failure);
	fs_end_quiet_change(v, request, &call, result, &answer, true);
	fs_tell(v, RXAFS_CHANGED_STATUS | RXAFS_CHANGED_NAMES, NULL);
	return result;
}

int rxafs_setxattr(rxafs_object *object, struct rxafs_request *request, const char *name,
		   const char *value, size_t length)
{
	char text[AFSOPAQUEMAX + 1];
	struct fs_vnode *v;
	int result;

	if (strcmp(name, "afs.acl"))
		return -EOPNOTSUPP;
	if (length > AFSOPAQUEMAX - 1 || memchr(value, 0, length))
		return -EINVAL;
	if (!fs_is_directory(object))
		return -ENOTDIR;
	memcpy(text, value, length);
	text[length] = '\0';
	result = fs_enter_to_change(object, request, &v);
	return result ? result : tell_acl(v, request, text);
}

/* -- space --------------------------------------------------------------------------------- */

static uint64_t not_negative(int64_t x)
{
	return x > 0 ? (uint64_t)x : 0;
}

/* What is known of a volume is kept for this time (K-120). */
#define SPACE_LIFE_NS (5 * (uint64_t)NS_PER_S)

/* The space of a volume as it was last seen. Under the lock of the client's tables. */
struct fs_seen_space {
	void *link;
	uint32_t cell, volume;
	uint64_t at; /* cl_net_now() */
	struct rxafs_space space;
};

static uint64_t hash_seen(const void *item, const uint64_t key[2])
{
	const struct fs_seen_space *seen = item;

	(void)key;
	return (uint64_t)seen->cell << 32 | seen->volume;
}

static struct fs_seen_space *find_seen(rxafs_client *client, const struct rxafs_fid *fid)
{
	const struct fs_seen_space wanted = {.cell = fid->cell, .volume = fid->volume};
	struct fs_seen_space *seen =
		client->spaces.chains ? htable_first(&client->spaces, hash_seen(&wanted, NULL))
				      : NULL;

	assert(mutex_is_held(&client->lock));
	while (seen && (seen->cell != fid->cell || seen->volume != fid->volume))
		seen = seen->link;
	return seen;
}

/* False: it was never seen, or longer ago than `most_ns`. */
static bool recall_space(struct fs_vnode *v, uint64_t most_ns, struct rxafs_space *space)
{
	struct fs_seen_space *seen;
	bool known;

	pthread_mutex_lock(&v->client->lock);
	seen = find_seen(v->client, &v->fid);
	known = seen && cl_net_now() - seen->at <= most_ns;
	if (known)
		*space = seen->space;
	pthread_mutex_unlock(&v->client->lock);
	return known;
}

/* Without memory it is asked for again. */
static void remember_space(struct fs_vnode *v, const struct rxafs_space *space)
{
	rxafs_client *client = v->client;
	struct fs_seen_space *seen;

	pthread_mutex_lock(&client->lock);
	seen = find_seen(client, &v->fid);
	if (!seen &&
	    (client->spaces.chains ||
	     htable_init(&client->spaces, offsetof(struct fs_seen_space, link), hash_seen, NULL,
			 0)) &&
	    (seen = calloc(1, sizeof *seen))) {
		seen->cell = v->fid.cell;
		seen->volume = v->fid.volume;
		htable_add(&client->spaces, seen);
	}
	if (seen) {
		seen->at = cl_net_now();
		seen->space = *space;
	}
	pthread_mutex_unlock(&client->lock);
}

static int ask_space(struct fs_vnode *v, struct rxafs_request *request, struct rxafs_space *space)
{
	struct cl_caller caller = fs_caller(v->client, request);
	struct cl_volume_status *answer = malloc(sizeof *answer);
	const AFSFetchVolumeStatus *s = &answer->volume;
	int64_t left;
	int result;

	if (!answer)
		return -ENOMEM;
	result = cl_net_fetch_volume_status(v->volume, &caller, answer, &request->failure);
	if (!result) {
		left = (int64_t)s->MaxQuota - s->BlocksInUse;
		space->total = not_negative(s->MaxQuota ? s->MaxQuota : s->PartMaxBlocks);
		space->free = not_negative(s->PartBlocksAvail);
		if (s->MaxQuota && not_negative(left) < space->free)
			space->free = not_negative(left);
		remember_space(v, space);
	}
	free(answer);
	return result;
}

/*
 * While the server is away, what was seen last is shown: programs that list file systems need no more. A volume of which nothing was
 * seen is an error, since zeros would say that it is full.
 */
int rxafs_statfs(rxafs_object *object, struct rxafs_request *request, struct rxafs_space *space)
{
	struct fs_vnode *v;
	int result;

	*space = (struct rxafs_space){0};
	if (object->what == FS_ROOT || object->what == FS_ALIAS)
		return 0;
	result = fs_enter(object, request, &v);
	if (result)
		return result;
	if (recall_space(v, SPACE_LIFE_NS, space))
		return 0;
	if (request->quick)
		return fs_would_wait(v, request);
	result = ask_space(v, request, space);
	if (result == -ETIMEDOUT && recall_space(v, UINT64_MAX, space))
		return 0;
	return result;
}
