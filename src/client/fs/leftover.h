/* SPDX-License-Identifier: BSD-2-Clause */
/* Hidden files of an earlier client with the same cache folder. */
#ifndef CLIENT_FS_LEFTOVER_H
#define CLIENT_FS_LEFTOVER_H

#include "client/fs/fs.h"

#define FS_HIDDEN_PREFIX ".__afs"

/* The name of a file while it is hidden. */
void fs_name_hidden(char name[24], uint32_t vnode, uint32_t unique);
/* '+': the file gets that name now; '-': it is gone. */
void fs_list_hidden(rxafs_client *client, char sign, const struct rxafs_fid *directory,
		    const struct rxafs_fid *fid);

/* Read the list of the earlier client. */
int fs_open_leftovers(rxafs_client *client, const char *folder);
void fs_close_leftovers(rxafs_client *client);
/* In the background: remove what a user (NULL: anybody) may remove. */
void fs_remove_leftovers(rxafs_client *client, rxafs_user *user);

#endif
