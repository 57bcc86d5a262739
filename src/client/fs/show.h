/* SPDX-License-Identifier: BSD-2-Clause */
/* Attributes as programs see them. */
#ifndef CLIENT_FS_SHOW_H
#define CLIENT_FS_SHOW_H

#include "client/fs/fs.h"

void fs_show(rxafs_object *object, struct rxafs_request *request, const struct cl_status *status,
	     struct rxafs_attributes *attributes);
/* Attributes of an object, with a call if needed. */
int fs_show_now(rxafs_object *object, struct rxafs_request *request,
		struct rxafs_attributes *attributes);

/* Attributes of an answer, past the cache. */
void fs_show_status(rxafs_client *client, const struct rxafs_fid *fid, const AFSFetchStatus *answer,
		    struct rxafs_attributes *attributes);

/* The time that AFS can have, which is nearest to another one. */
int64_t fs_nearest_time(int64_t time);

/* -- stream.c: the mode and time that a store sets -- */

AFSStoreStatus fs_status_to_set(const struct rxafs_changes *set);

#endif
