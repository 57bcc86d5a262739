/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who a process is (K-121): the user of its session, else that of its file system user id, which a setuid program and a server
 * for others have changed.
 */
#include "rxafs/mount.h"
#include "rxafs/users/sessions.h"

rxafs_user *find_caller(struct mount *mount, const struct fuse_ctx *context)
{
	rxafs_user *user;

	/* It could be in a session, which must not have the tokens outside. */
	if (!sessions_find(mount->sessions, context->pid, &user))
		return NULL;
	if (!user && rxafs_get_user(mount->client, (uint32_t)context->uid + 1, &user))
		return NULL;
	return user;
}
