/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads past this program: the kernel takes the bytes of a file that is cached as a whole from the file of the cache (Linux 6.9, K-172). An
 * open file cannot be taken away from it again. So this is done only in read-only volumes, and a descriptor keeps the version and the
 * attributes that it was opened with. Once the file has another version, the kernel gets another node for it: see through.c.
 */
#ifndef RXAFS_THROUGH_H
#define RXAFS_THROUGH_H

#include "rxafs/task.h"

/* A flag of the kernel's protocol, and of an answer to open. */
#define THROUGH_INIT (UINT64_C(1) << 37)
#define THROUGH_OPEN (UINT32_C(1) << 7)

enum through_way {
	THROUGH_PAGES, /* by this program and the kernel's pages */
	THROUGH_FILE,  /* by the file of the cache: handle->through */
	THROUGH_DIRECT, /* by this program, beside others by the file */
	THROUGH_AGAIN  /* this node has another version: the kernel has to look up the name again */
};
/* How a file is opened by a user, as `node` of the kernel. What was decided is undone by through_end(). */
enum through_way through_begin(struct handle *handle, rxafs_object *object, fuse_ino_t node,
			       int flags, rxafs_user *user);
/* The kernel has closed it. */
void through_end(struct handle *handle, rxafs_object *object);
/* The number of its file, for the answer. */
uint32_t through_number(const struct through *through);
/* These attributes are about to be given for a node: those of its own version. */
void through_show(struct mount *mount, rxafs_object *object, fuse_ino_t node,
		  struct rxafs_attributes *attributes);
/* Before the kernel is given a node: that of the present version. */
void through_renew(struct mount *mount, rxafs_object *object);

#endif
