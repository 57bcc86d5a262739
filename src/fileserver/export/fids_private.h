/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the store: nodes.c (the tables), journal.c (the file) and store.c (the interface). */
#ifndef FILESERVER_STORE_PRIVATE_H
#define FILESERVER_STORE_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "common/htable.h"
#include "fileserver/export/fids.h"

/* Members that only directories have. */
struct dir {
	struct name *children;
	uint64_t image_length, image_hash, refused, retry_ns;
	uint32_t links;
	uint32_t mark; /* number of the last listing */
};

/* A vnode. */
struct node {
	void *by_vnode, *by_inode; /* chains */
	struct name *names;	   /* NULL: the root, or being created */
	struct dir *dir;	   /* NULL: no directory */
	uint64_t version, inode, seen;
	uint32_t vnode, unique, birth;
	uint8_t kind;
	bool clean;
};

/* A name of a vnode in a directory. */
struct name {
	void *chain;		    /* by parent and text */
	struct name *same;	    /* next name of the node */
	struct name *next, **place; /* in the directory */
	struct node *node, *parent;
	uint32_t mark; /* number of the last listing that had it */
	char text[];
};

/*
 * `lock` covers the tables and `pending`. The thread that writes to the file holds `writing`, never
 * `lock`. If `writing` is contended, the changes are left to its holder.
 */
struct fsd_store {
	pthread_rwlock_t lock;
	struct htable nodes, inodes, names;
	uint32_t next_vnode[2]; /* of files, of directories */
	uint32_t next_unique;
	bool has_meta;
	struct fsd_meta meta;

	char *path;
	pthread_mutex_t writing;
	int fd;
	uint64_t nonce, offset; /* of the file: its random number, and its length */
	uint8_t *pending;	/* entries without their check sums */
	_Atomic size_t pending_length;
	size_t pending_room;
	_Atomic bool lost; /* no entries are written until the whole file is written again */
	bool said;	   /* this has been logged */
	_Atomic uint64_t retry_ns; /* when to try that */
};

#define FSD_DEPTH_MAX 2048 /* directories above an object */

/* nodes.c; the caller holds the lock for writing, or is the only user. */
int fsd_nodes_init(struct fsd_store *store);
struct node *fsd_node_find(struct fsd_store *store, uint32_t vnode);
/* The first of the nodes whose hash is that of the inode; the others follow by by_inode. */
struct node *fsd_node_by_inode(struct fsd_store *store, uint64_t inode);
/* Create or replace the node of a vnode; NULL without memory. */
struct node *fsd_node_put(struct fsd_store *store, const struct fsd_record *record);
int fsd_name_add(struct fsd_store *store, struct node *parent, const char *text, struct node *node);
struct name *fsd_name_find(struct fsd_store *store, const struct node *parent, const char *text);
/* Remove a name; the node stays. */
void fsd_name_unhook(struct fsd_store *store, struct name *name);
/* Remove a node without names, and all below it that has no others. */
void fsd_node_drop(struct fsd_store *store, struct node *node, fsd_gone_fn gone, void *arg);
void fsd_node_record(const struct node *node, struct fsd_record *record);
void fsd_store_forget_all(struct fsd_store *store);
/* Whether `node` is the directory `above`, or below it. */
bool fsd_node_below(const struct node *node, const struct node *above);

/* journal.c. Entries are added under the lock, and written by fsd_journal_flush() without it. */
int fsd_journal_open(struct fsd_store *store);
void fsd_journal_close(struct fsd_store *store);
void fsd_journal_node(struct fsd_store *store, const struct node *node);
void fsd_journal_name(struct fsd_store *store, const struct name *name);
void fsd_journal_unname(struct fsd_store *store, const struct name *name);
void fsd_journal_flush(struct fsd_store *store);
/* Write the whole file; the caller holds `writing`. */
int fsd_journal_rewrite(struct fsd_store *store);

#endif
