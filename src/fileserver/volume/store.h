/* SPDX-License-Identifier: BSD-2-Clause */
/* The volume store: which FID stands for which object, kept across restarts. */
#ifndef FILESERVER_STORE_H
#define FILESERVER_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "fileserver/volume/volume.h"

#define FSD_NAME_MAX 255

/*
 * Everything is in memory, some 190 bytes and the name for each object; the file is a journal of
 * the changes that is read when the store is opened, and never again. So neither damage of the file
 * nor a full disk stops a server that runs. Nothing has to be on the disk before it is used:
 * uniquifiers start at random in each process and data versions follow the clock, so what is lost,
 * or comes back with an old copy of the file, never gives a FID and version twice.
 */

/* Of the whole volume. */
struct fsd_meta {
	uint32_t volume;   /* volume id */
	uint32_t creation; /* seconds; changes when another tree takes the name */
	uint64_t root_inode;
	char root[4096]; /* canonical path of the export */
};

/* A name in a listing of a directory. */
struct fsd_name {
	char *name;
	enum fsd_kind kind;
	uint64_t inode;		/* as the listing says */
	bool known;		/* has its FID, and needs no look */
	uint32_t vnode, unique; /* its FID */
	/* What it stands for, if it was looked at; else seen = 0. */
	uint64_t now_inode, now_seen;
	uint32_t now_birth;
};

/* Told, under the store's lock, of an object that has lost a name, or its last one. */
typedef void (*fsd_gone_fn)(void *arg, uint32_t vnode, uint32_t unique);

/*
 * All functions return 0 or -errno: -ENOENT where nothing is found, -ENOMEM. Any thread. A change is
 * written to the file before the function returns, but may be lost if the machine fails. If it
 * cannot be written the log says so once, and everything is written again later.
 */

/* -ENOENT: the store is new. */
int fsd_store_meta(struct fsd_store *store, struct fsd_meta *meta);
/* Forget every object but the root, which gets `root`; on the disk when it returns. */
int fsd_store_start(struct fsd_store *store, const struct fsd_meta *meta,
		    const struct fsd_record *root);

/*
 * A FID: what is known, and its path by its nth name from 0. `path` has `size` bytes, or is NULL.
 * -ENOENT: no such FID, or not so many names; -ENAMETOOLONG.
 */
int fsd_store_find(struct fsd_store *store, uint32_t vnode, uint32_t unique, unsigned nth,
		   struct fsd_record *record, char *path, size_t size);
/* The FID of a name. */
int fsd_store_child(struct fsd_store *store, uint32_t parent, uint32_t parent_unique,
		    const char *name, uint32_t *vnode, uint32_t *unique);
/* Replace what is known of the vnode of `old`. -EAGAIN: it is not as `old` says any more. */
int fsd_store_update(struct fsd_store *store, const struct fsd_record *old,
		     const struct fsd_record *new);
/*
 * A name does not stand for this vnode any more; its directory must be listed anew. What has no name
 * left is gone, with all below it.
 */
void fsd_store_unname(struct fsd_store *store, uint32_t parent, uint32_t parent_unique,
		      const char *name, uint32_t vnode, fsd_gone_fn gone, void *arg);

/*
 * A listing of a directory, no name twice. Fill in the FIDs of names that stand for what they stood
 * for, as far as the listing tells, and set `known`.
 */
int fsd_store_match(struct fsd_store *store, uint32_t parent, uint32_t parent_unique,
		    struct fsd_name *names, size_t count);
/*
 * Then, when the others have been looked at: give FIDs to them (an object that has one under another
 * name keeps it), and drop names that are not listed any more. One at a time for each directory.
 * New objects get `version`.
 */
int fsd_store_assign(struct fsd_store *store, uint32_t parent, uint32_t parent_unique,
		     struct fsd_name *names, size_t count, uint64_t version, fsd_gone_fn gone,
		     void *arg);

#endif
