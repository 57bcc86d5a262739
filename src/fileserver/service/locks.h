/* SPDX-License-Identifier: BSD-2-Clause */
/* Advisory locks on files, which are lost when the server ends (afs-fileserver 3.7). */
#ifndef FILESERVER_SERVICE_LOCKS_H
#define FILESERVER_SERVICE_LOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fileserver/base/base.h"
#include "volume/interface.h"

#define FSD_LOCK_S 300 /* a lock ends unless it is extended; seconds */

/* Any thread. `now` is fsd_now(). */
struct fsd_locks;

/* At most `max` objects are locked at a time. NULL without memory. */
struct fsd_locks *fsd_locks_create(size_t max);
void fsd_locks_destroy(struct fsd_locks *locks); /* NULL is allowed */

/*
 * 0; -EAGAIN: another lock stands against it; -ENOLCK: too many objects are locked, or the caller, who counts as the owner of
 * the first lock of an object, has as many as are free.
 */
int fsd_lock_set(struct fsd_locks *locks, const struct store_fid *fid,
		 const struct fsd_share_key *who, bool write, uint64_t now);
/* 0; -EINVAL: there is no lock, not even one that has ended. */
int fsd_lock_extend(struct fsd_locks *locks, const struct store_fid *fid, uint64_t now);
/* One lock less. True: it was the last one. */
bool fsd_lock_release(struct fsd_locks *locks, const struct store_fid *fid, uint64_t now);
/* The object is gone. */
void fsd_lock_forget(struct fsd_locks *locks, const struct store_fid *fid);
/* All objects of a volume are gone. */
void fsd_lock_forget_volume(struct fsd_locks *locks, uint32_t volume);
/* lockCount of a status: -1 write lock, n > 0 read locks, 0 none. Cheap if there is no lock at all. */
int32_t fsd_lock_count(struct fsd_locks *locks, const struct store_fid *fid, uint64_t now);
/* Objects in the table. */
size_t fsd_locks_held(struct fsd_locks *locks);

#endif
