/* SPDX-License-Identifier: BSD-2-Clause */
/* Attributes that are set. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "client/fs/operate.h"
#include "client/fs/show.h"

static int store_status(struct fs_vnode *v, struct rxafs_request *request,
			const AFSStoreStatus *how)
{
	AFSFid fid = fs_afs_fid(&v->fid);
	AFSFetchStatus answer;
	struct fs_call call;
	int result;

	cl_change_begin_quiet(v->object);
	fs_begin_call(&call, v->client, request);
	result = cl_net_store_status(v->volume, &call.caller, &fid, how, &answer, &call.stamp,
				     &request->failure);
	fs_end_quiet_change(v, request, &call, result, &answer, false);
	return result;
}

/* As whoever has it open, or as one who opens it for this alone (K-074). */
static int set_size(rxafs_object *object, struct rxafs_request *request, uint64_t size)
{
	rxafs_file *file;
	int result = rxafs_open(object, request, O_WRONLY, &file);

	if (result)
		return result;
	result = rxafs_truncate(file, request, size);
	if (!result)
		result = rxafs_flush(file, request, false);
	rxafs_close(file);
	return result;
}

/* What the server has to be told. Owners that are as they should be need no call (K-100). */
static unsigned fill_changes(rxafs_client *client, const struct rxafs_changes *changes,
			     const struct cl_status *status, AFSStoreStatus *how)
{
	if (changes->set & RXAFS_SET_MODE && (changes->mode & 07777) != (status->mode & 07777)) {
		how->Mask |= AFS_SETMODE;
		how->UnixModeBits = changes->mode & 07777;
	}
	if (changes->set & RXAFS_SET_OWNER && changes->owner != status->owner &&
	    !client->ignore_owner) {
		how->Mask |= AFS_SETOWNER;
		how->Owner = changes->owner;
	}
	if (changes->set & RXAFS_SET_GROUP && changes->group != status->group &&
	    !client->ignore_owner) {
		how->Mask |= AFS_SETGROUP;
		how->Group = changes->group;
	}
	if (changes->set & RXAFS_SET_TIME) {
		how->Mask |= AFS_SETMODTIME;
		how->ClientModTime = (uint32_t)changes->time;
	}
	return how->Mask;
}

/* A time that the next store takes along. */
static bool set_time_later(struct fs_vnode *v, int64_t time)
{
	bool later;

	pthread_mutex_lock(&v->lock);
	later = v->data && cl_data_set_mtime(v->data, time);
	pthread_mutex_unlock(&v->lock);
	return later;
}

int rxafs_setattr(rxafs_object *object, struct rxafs_request *request,
		  const struct rxafs_changes *changes, struct rxafs_attributes *attributes)
{
	struct rxafs_changes left = *changes;
	AFSStoreStatus how = {0};
	struct cl_status status;
	struct fs_vnode *v;
	int result = fs_enter_to_change(object, request, &v);

	if (!result)
		result = fs_status(v, request, &status);
	if (!result && left.set & RXAFS_SET_SIZE)
		result = status.kind == RXAFS_FILE	  ? set_size(object, request, left.size)
			 : status.kind == RXAFS_DIRECTORY ? -EISDIR
							  : -EINVAL;
	if (result)
		return result;
	left.time = fs_nearest_time(left.time);
	if (left.set & RXAFS_SET_TIME && set_time_later(v, left.time))
		left.set &= ~(unsigned)RXAFS_SET_TIME;
	if (fill_changes(object->client, &left, &status, &how)) {
		result = store_status(v, request, &how);
		/* Only administrators may set the bits above. Copying programs set them on directories of everybody. */
		if (result == -EACCES && how.Mask & AFS_SETMODE && how.UnixModeBits & ~0777u) {
			how.UnixModeBits &= 0777;
			result = store_status(v, request, &how);
		}
		if (result)
			return result;
		fs_tell(v, RXAFS_CHANGED_STATUS, object);
	}
	return fs_show_now(object, request, attributes);
}
