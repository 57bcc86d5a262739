/* SPDX-License-Identifier: BSD-2-Clause */
/* Who a process is. */
#include "rxafs/mount.h"

rxafs_user *find_caller(struct mount *mount, const struct fuse_ctx *context)
{
	rxafs_user *user;

	if (rxafs_get_user(mount->client, (uint32_t)context->uid + 1, &user))
		return NULL;
	return user;
}
