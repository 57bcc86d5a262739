/* SPDX-License-Identifier: BSD-2-Clause */
/* Extended attributes, which are those of Linux's own client, and the space of volumes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/fs/operate.h"

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

int rxafs_statfs(rxafs_object *object, struct rxafs_request *request, struct rxafs_space *space)
{
	struct cl_volume_status *answer;
	struct cl_caller caller = fs_caller(object->client, request);
	struct fs_vnode *v = fs_entered(object);
	const AFSFetchVolumeStatus *s;
	int64_t left;
	int result;

	*space = (struct rxafs_space){0};
	/* A file system is looked at, not entered. */
	if (!v)
		return 0;
	if (request->quick)
		return RXAFS_WOULD_WAIT;
	answer = malloc(sizeof *answer);
	if (!answer)
		return -ENOMEM;
	result = cl_net_fetch_volume_status(v->volume, &caller, answer, &request->failure);
	s = &answer->volume;
	if (!result) {
		left = (int64_t)s->MaxQuota - s->BlocksInUse;
		space->total = not_negative(s->MaxQuota ? s->MaxQuota : s->PartMaxBlocks);
		space->free = not_negative(s->PartBlocksAvail);
		if (s->MaxQuota && not_negative(left) < space->free)
			space->free = not_negative(left);
	}
	free(answer);
	return result;
}
