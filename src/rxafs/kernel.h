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
/*
 * Around a look at attributes that go to the kernel. False: the object was changed meanwhile, look again. A notification would make the
 * kernel ignore the answer, and go on with the size of before.
 */
uint64_t kernel_begin_attributes(struct mount *mount, rxafs_object *object);
bool kernel_end_attributes(struct mount *mount, rxafs_object *object, uint64_t changes);
/* Seconds that the kernel may keep attributes. */
double kernel_attribute_time(struct mount *mount, const struct rxafs_attributes *attributes);
/* The minor number of the kernel's protocol is known. */
void kernel_begin(struct mount *mount, unsigned minor);
/* -- pages.c ------------------------------------------------------------------------------- */

struct known;

/* A read through the kernel's pages, from before the look at the object. */
struct pages_look {
	uint64_t changes, contents;
};
struct pages_look pages_begin_read(struct mount *mount, rxafs_object *object, uint64_t contents);
/* A read that waits for a server. */
struct kernel_read {
	struct kernel_read *next, **at;
	struct known *of, *known; /* known NULL: it is not listed (any more) */
	uint64_t offset, size;
};
void pages_await_read(struct mount *mount, rxafs_object *object, uint64_t offset, uint64_t size,
		      struct kernel_read *read);
/*
 * Before the answer, with the struct of a read that waited, or NULL. False: the object has changed, so the bytes must not be given to the
 * kernel; read again. `last`: they are given in any case, and the pages are invalidated.
 */
bool pages_end_read(struct mount *mount, rxafs_object *object, const struct pages_look *look,
		    struct kernel_read *read, bool last);
/* It is answered without bytes. */
void pages_give_up_read(struct kernel_read *read);
/* The kernel has put bytes into its pages itself. Before the answer. */
void pages_note_write(struct mount *mount, rxafs_object *object, uint64_t contents);
/* The lists of objects with pages. 0 or -ENOMEM. */
int pages_start(struct mount *mount);
/* After the objects have gone. */
void pages_free(struct mount *mount);
/* Invalidate pages of objects whose promise has ended: nobody will tell of changes. */
void pages_sweep(struct mount *mount);
/* Whether all of the kernel's pages of an object are of these contents. */
bool pages_are_of(struct mount *mount, rxafs_object *object, uint64_t contents);

/* -- requests that wait ------------------------------------------------------------------- */

/* A request about an object, during which the kernel may hold locks that invalidations need, waits for a server; or no longer. */
void kernel_note_waiting(struct mount *mount, rxafs_object *object, bool waits);

/* -- flusher.c ----------------------------------------------------------------------------- */

/* The attributes that the kernel has are no longer used, if they have changed. Waits for nothing. */
void flusher_refresh(struct mount *mount, rxafs_object *object);
/* Wait until the kernel knows the changes of an object that were told. Not while the kernel holds a lock for the caller. */
void flusher_await(struct mount *mount, rxafs_object *object);
/* Threads that invalidate. */
int flusher_start(struct mount *mount);
/* The hooks do nothing from then on; they may be called until the client is closed. */
void flusher_stop(struct mount *mount);
void flusher_free(struct mount *mount);
/* Hooks of the client. */
void flusher_changed(void *arg, rxafs_object *object, unsigned what);
void flusher_settle(void *arg);

#endif
