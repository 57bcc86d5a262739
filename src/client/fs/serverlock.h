/* SPDX-License-Identifier: BSD-2-Clause */
/* Locks of files at servers. */
#ifndef CLIENT_FS_SERVERLOCK_H
#define CLIENT_FS_SERVERLOCK_H

#include "client/fs/fs.h"

/* The lock of a file that a server has given. */
struct fs_server_lock {
	struct fs_server_lock *next;
	struct fs_vnode *vnode;
	rxafs_user *user; /* who got it, in the list; a reference or NULL */
	int type;	  /* F_UNLCK, F_RDLCK or F_WRLCK */
	uint64_t extended, due;
	bool renewing, lost;
};
/* The promise of the file was broken, perhaps since another client has released a lock. */
void fs_wake_locks(struct fs_vnode *vnode);
void fs_drop_locks_of(rxafs_file *file); /* those that were taken through it */
/* One change at a time for each file. -EAGAIN: another client has it. */
int fs_change_server_lock(struct fs_vnode *vnode, struct rxafs_request *request,
			  struct fs_server_lock *lock, int type);
struct fs_lock_keeper *fs_lock_keeper_create(void);
/* Gives locks back, in a second in all. No further ones are renewed. */
void fs_lock_keeper_end(struct fs_lock_keeper *keeper);
/* No operation is in progress. Calls that renew locks end, since all are cancelled. */
void fs_lock_keeper_free(struct fs_lock_keeper *keeper);
/* A server has forgotten its locks, perhaps. */
void fs_renew_locks(rxafs_client *client);

#endif
