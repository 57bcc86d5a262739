/* SPDX-License-Identifier: BSD-2-Clause */
/* What is behind a mount point. Part of fs.h. */
#ifndef CLIENT_FS_TARGET_H
#define CLIENT_FS_TARGET_H

#include "client/fs/fs.h"

/* The volume behind a mount point. Former ones stay as long as the object: somebody may be using them. */
struct fs_target {
	struct fs_target *former;
	struct fs_vnode *vnode;	  /* its root; a reference */
	struct cl_volume *volume; /* a reference */
	atomic_uint standing;	  /* of the volume, when it was looked up */
};

/* Without a wait; NULL: not entered yet. */
static inline struct fs_vnode *fs_entered(const rxafs_object *object)
{
	const struct fs_target *target;

	if (object->what == FS_PLAIN)
		return object->vnode;
	target = atomic_load(&object->target);
	return target ? target->vnode : NULL;
}

/*
 * Make a target, with its references, that of a mount point, unless `present` is no longer what that was. True: it is now.
 */
bool fs_set_target(rxafs_object *object, struct fs_target *present, struct fs_target *target);
void fs_free_target(struct fs_target *target);

#endif
