/* SPDX-License-Identifier: BSD-2-Clause */
/* The volume store: which FID stands for which path, kept across restarts. */
#ifndef FILESERVER_STORE_H
#define FILESERVER_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "fileserver/layer.h"

#define FSD_NAME_MAX 255

/* What is remembered of one vnode. */
struct fsd_record {
	uint32_t vnode, unique;
	uint32_t parent, parent_unique; /* its directory; of the root: itself */
	enum fsd_kind kind;
	uint64_t version; /* data version, from 1 */
	struct fsd_stat
		seen; /* the object when `version` was given; links, mode, owners are not kept */
	uint64_t image_length;	     /* directory: bytes of its image, 0 = must be listed anew */
	uint64_t image_hash;	     /* directory: of its image, 0 = never listed */
	uint32_t links;		     /* directory: 2 + subdirectories */
	char name[FSD_NAME_MAX + 1]; /* in the parent; "" for the root */
};

/* Of the whole volume. */
struct fsd_meta {
	uint32_t volume;   /* volume id */
	uint32_t creation; /* seconds; changes when another tree takes the name */
	uint32_t next_file, next_dir, next_unique;
	uint64_t root_device, root_inode;
	char root[4096]; /* canonical path of the export */
};

struct fsd_store;
struct fsd_txn;

/*
 * All functions return 0 or -errno; -ENOENT where nothing is found. One open for each process and
 * file. A transaction belongs to the thread that began it, and a thread has at most one. Writers
 * wait for each other; readers never wait. A commit is on the disk when it returns, so that no FID
 * or version that a client saw is ever given out twice.
 */
int fsd_store_open(const char *path, struct fsd_store **store);
void fsd_store_close(struct fsd_store *store);

int fsd_store_begin(struct fsd_store *store, bool write, struct fsd_txn **txn);
int fsd_store_commit(struct fsd_txn *txn);
void fsd_store_abort(struct fsd_txn *txn);

int fsd_store_get(struct fsd_txn *txn, uint32_t vnode, struct fsd_record *record);
/* Store the record, and its name in its parent. */
int fsd_store_put(struct fsd_txn *txn, const struct fsd_record *record);
/* Remove a record and its name; of a directory also what is below it. */
int fsd_store_remove(struct fsd_txn *txn, const struct fsd_record *record);
/* The vnode of a name. */
int fsd_store_child(struct fsd_txn *txn, uint32_t parent, const char *name, uint32_t *vnode);
/*
 * Every child; nonzero from `fn` stops and is returned. The transaction must not be changed by
 * `fn`.
 */
int fsd_store_children(struct fsd_txn *txn, uint32_t parent,
		       int (*fn)(void *arg, const char *name, uint32_t vnode), void *arg);
/* Forget every record, keep the meta data. */
int fsd_store_clear(struct fsd_txn *txn);

int fsd_store_get_meta(struct fsd_txn *txn, struct fsd_meta *meta);
int fsd_store_put_meta(struct fsd_txn *txn, const struct fsd_meta *meta);

#endif
