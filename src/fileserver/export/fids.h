/* SPDX-License-Identifier: BSD-2-Clause */
/* The volume store: the FIDs of objects, kept across restarts. */
#ifndef FILESERVER_STORE_H
#define FILESERVER_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "fileserver/export/object.h"

#define FSD_NAME_MAX 255

/*
 * Everything is in memory: about 190 bytes and the name for each object. The file is a journal of
 * changes, which is read only when the store is opened. A damaged file or a full disk therefore
 * does not stop a running server. Nothing has to be on the disk before it is used: uniquifiers
 * start at random in each process and data versions follow the clock, so that a FID and version are
 * never used twice, even if the file is lost or replaced by an old copy.
 */

/* The record of the whole volume. */
struct fsd_meta {
	uint32_t volume;   /* volume id */
	uint32_t creation; /* seconds; changes when another tree is served under the name */
	uint64_t root_inode;
	char root[4096]; /* canonical path of the export */
};

/* A name in a listing of a directory. */
struct fsd_name {
	char *name;
	enum fsd_kind kind;
	uint64_t inode;		/* from the listing */
	bool known;		/* has its FID; its status is not needed */
	uint32_t vnode, unique; /* its FID */
	/* Status of the object, if it was read; else now_seen = 0. */
	uint64_t now_inode, now_seen;
	uint32_t now_birth;
};

/* Called under the lock of the store for an object that has lost a name. */
typedef void (*fsd_gone_fn)(void *arg, uint32_t vnode, uint32_t unique);

/*
 * All functions return 0 or -errno: -ENOENT, -ENOMEM. Any thread. A change is written to the file
 * before the function returns, but may be lost if the machine crashes. If it cannot be written,
 * that is logged once, and the whole file is written later.
 */

/* -ENOENT: the store is new. */
int fsd_store_meta(struct fsd_store *store, struct fsd_meta *meta);
/* Forget every object but the root, which becomes `root`. It is on the disk on return. */
int fsd_store_start(struct fsd_store *store, const struct fsd_meta *meta,
		    const struct fsd_record *root);

/*
 * Find a FID: its record, and its path by its nth name, counted from 0. `path` has `size` bytes, or
 * is NULL. -ENOENT: no such FID, or fewer names; -ENAMETOOLONG.
 */
int fsd_store_find(struct fsd_store *store, uint32_t vnode, uint32_t unique, unsigned nth,
		   struct fsd_record *record, char *path, size_t size);
/* The FID of a name. */
int fsd_store_child(struct fsd_store *store, uint32_t parent, uint32_t parent_unique,
		    const char *name, uint32_t *vnode, uint32_t *unique);
/* Replace the record `old`. -EAGAIN: it has changed since `old` was read. */
int fsd_store_update(struct fsd_store *store, const struct fsd_record *old,
		     const struct fsd_record *new);
/*
 * The name does not refer to this vnode any more; its directory must be listed again. An object
 * without a name is removed, with everything below it.
 */
void fsd_store_unname(struct fsd_store *store, uint32_t parent, uint32_t parent_unique,
		      const char *name, uint32_t vnode, fsd_gone_fn gone, void *arg);

/*
 * First step for a listing of a directory without duplicates: fill in the FIDs of names that,
 * according to the listing, refer to the same objects as before, and set `known`.
 */
int fsd_store_match(struct fsd_store *store, uint32_t parent, uint32_t parent_unique,
		    struct fsd_name *names, size_t count);
/*
 * Second step, when the status of the other names has been read: give them FIDs (an object that has
 * a FID under another name keeps it), and drop names that are not listed any more. Only one thread
 * at a time for each directory. New objects get `version`.
 */
int fsd_store_assign(struct fsd_store *store, uint32_t parent, uint32_t parent_unique,
		     struct fsd_name *names, size_t count, uint64_t version, fsd_gone_fn gone,
		     void *arg);

#endif
