/* SPDX-License-Identifier: BSD-2-Clause */
/* What the kernel keeps of objects and names, and how it is told that this is no longer right. */
#ifndef RXAFS_KERNEL_H
#define RXAFS_KERNEL_H

#include "rxafs/mount.h"

/*
 * A name is about to be given to the kernel, which may keep it: call this before the name is looked
 * up, so that no change is missed between the look and the answer.
 */
void kernel_note_name(struct mount *mount, rxafs_object *directory, const char *name);
/*
 * The entry of an object for the kernel, whose reference goes with it.
 */
void kernel_fill_entry(struct mount *mount, rxafs_object *object,
		       const struct rxafs_attributes *attributes, struct fuse_entry_param *entry);
/* Seconds that the kernel may keep attributes. */
double kernel_attribute_time(struct mount *mount, const struct rxafs_attributes *attributes);
/* How long it may keep that there is no such name. */
double kernel_missing_time(struct mount *mount, const struct rxafs_attributes *attributes);
/* Whether the kernel's pages of an object are of these contents; from now on they are. */
bool kernel_keeps_pages(struct mount *mount, rxafs_object *object, uint64_t contents);

/* Threads that invalidate. */
int flusher_start(struct mount *mount);
void flusher_stop(struct mount *mount);
/* Hooks of the client. */
void flusher_changed(void *arg, rxafs_object *object, unsigned what);
void flusher_settle(void *arg);

#endif
