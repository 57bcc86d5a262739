/* SPDX-License-Identifier: BSD-2-Clause */
/* What the kernel keeps of objects and names, and how it is told that this is no longer right. */
#ifndef RXAFS_KERNEL_H
#define RXAFS_KERNEL_H

#include "rxafs/mount.h"

/* Owner and group as the kernel gets them. */
void kernel_show_owner(const struct mount *mount, struct stat *stat);

/*
 * Before a look at names of a directory: the result goes to the functions below, so that no change is missed between the look
 * and the answer.
 */
uint64_t kernel_begin_look(struct mount *mount, rxafs_object *directory);
/* A look that began then, at one name. */
struct kernel_look {
	rxafs_object *directory;
	const char *name;
	uint64_t begun;
};
/* The entry of an object for the kernel, whose reference goes with it. */
void kernel_fill_entry(struct mount *mount, const struct kernel_look *look, rxafs_object *object,
		       const struct rxafs_attributes *attributes, struct fuse_entry_param *entry);
/* Seconds that the kernel may keep that there is no such name. */
double kernel_missing_time(struct mount *mount, const struct kernel_look *look,
			   const struct rxafs_attributes *attributes);
/* A name that the kernel itself has moved here, with what it keeps of it. */
void kernel_note_name(struct mount *mount, rxafs_object *directory, const char *name,
		      bool is_directory);
/* Seconds that the kernel may keep attributes. */
double kernel_attribute_time(struct mount *mount, const struct rxafs_attributes *attributes);
/* Whether the kernel's pages of an object are of these contents; from now on they are. */
bool kernel_keeps_pages(struct mount *mount, rxafs_object *object, uint64_t contents);

/* The minor number of the kernel's protocol is known. */
void kernel_begin(struct mount *mount, unsigned minor);
/* Threads that invalidate. */
int flusher_start(struct mount *mount);
/* The hooks do nothing from then on; they may be called until the client is closed. */
void flusher_stop(struct mount *mount);
void flusher_free(struct mount *mount);
/* Hooks of the client. */
void flusher_changed(void *arg, rxafs_object *object, unsigned what);
void flusher_settle(void *arg);

#endif
