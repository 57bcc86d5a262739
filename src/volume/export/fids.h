/* SPDX-License-Identifier: BSD-2-Clause */
/* The FIDs of the objects of a tree: fids.c has the tables, journal.c the file in which they are kept. */
#ifndef EXPORT_FIDS_H
#define EXPORT_FIDS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "common/htable.h"
#include "volume/export/export.h"

/*
 * Everything is in memory: about 190 bytes and the name for each object. The file is a journal of
 * changes, which is read only when it is opened. A damaged file or a full disk therefore
 * does not stop a running server. Nothing has to be on the disk before it is used: uniquifiers start
 * at random in each process and data versions follow the clock, so that a FID and version are never
 * used twice, even if the file is lost or replaced by an old copy.
 */

/* The record of one vnode. */
struct export_record {
	uint32_t vnode, unique;
	uint32_t parent, parent_unique; /* a directory that has a name of it; the root: itself */
	enum store_kind kind;
	uint64_t version;      /* data version */
	uint64_t inode;	       /* 0: not known */
	uint32_t birth;	       /* export_stat_birth(); 0: not known */
	uint64_t seen;	       /* export_stat_stamp() when `version` was given; 0: never seen */
	uint64_t image_length; /* directory: bytes of its image; 0 = to be listed again */
	uint64_t image_hash;   /* directory: hash of its image; 0 = never listed */
	uint32_t links;	       /* directory: 2 + subdirectories */
	bool clean; /* file: all pages written through mappings are on the disk; not kept, as the next two */
	uint64_t refused;  /* directory: export_stat_stamp() when it was too large; else 0 */
	uint64_t retry_ns; /* directory: when it may be listed again if it has changed since then */
};

/* The record of the whole volume. */
struct fids_meta {
	uint32_t volume;   /* volume id */
	uint32_t creation; /* seconds; changes when another tree is served under the name */
	uint64_t root_inode;
	char root[4096]; /* canonical path of the export */
};

/* A name in a listing of a directory. */
struct fids_name {
	char *name;
	enum store_kind kind;
	uint64_t inode;		/* from the listing */
	bool known;		/* has its FID; its status is not needed */
	uint32_t vnode, unique; /* its FID */
	/* Status of the object, if it was read; else now_seen = 0. */
	uint64_t now_inode, now_seen;
	uint32_t now_birth;
};

/* Called under the lock of the tables for an object that has lost a name. */
typedef void (*fids_gone_fn)(void *arg, uint32_t vnode, uint32_t unique);

/*
 * All functions return 0 or -errno: -ENOENT, -ENOMEM. Any thread. A change is written to the file
 * before the function returns, but may be lost if the machine crashes. If it cannot be written,
 * that is logged once, and the whole file is written later.
 */

/* -ENOENT: the file is new. */
int fids_get_meta(struct fids *fids, struct fids_meta *meta);
/* Forget every object but the root, which becomes `root`. It is on the disk on return. */
int fids_start_anew(struct fids *fids, const struct fids_meta *meta,
		    const struct export_record *root);

/*
 * Find a FID: its record, and its path by its nth name, counted from 0. `path` has `size` bytes, or
 * is NULL. -ENOENT: no such FID, or fewer names; -ENAMETOOLONG.
 */
int fids_find(struct fids *fids, uint32_t vnode, uint32_t unique, unsigned nth,
	      struct export_record *record, char *path, size_t size);
/* The FID of a name. */
int fids_find_child(struct fids *fids, uint32_t parent, uint32_t parent_unique, const char *name,
		    uint32_t *vnode, uint32_t *unique);
/* Replace the record `old`. -EAGAIN: it has changed since `old` was read. */
int fids_update(struct fids *fids, const struct export_record *old,
		const struct export_record *new);
/*
 * The name does not refer to this vnode any more; its directory must be listed again. An object
 * without a name is removed, with everything below it.
 */
void fids_unname(struct fids *fids, uint32_t parent, uint32_t parent_unique, const char *name,
		 uint32_t vnode, fids_gone_fn gone, void *arg);

/*
 * First step for a listing of a directory without duplicates: fill in the FIDs of names that,
 * according to the listing, refer to the same objects as before, and set `known`.
 */
int fids_match(struct fids *fids, uint32_t parent, uint32_t parent_unique, struct fids_name *names,
	       size_t count);
/*
 * Second step, when the status of the other names has been read: give them FIDs (an object that has
 * a FID under another name keeps it), and drop names that are not listed any more. Only one thread
 * at a time for each directory. New objects get `version`.
 */
int fids_assign(struct fids *fids, uint32_t parent, uint32_t parent_unique, struct fids_name *names,
		size_t count, uint64_t version, fids_gone_fn gone, void *arg);

/* -- the tables -- */

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
struct fids {
	struct export_log log;
	pthread_rwlock_t lock;
	struct htable nodes, inodes, names;
	uint32_t next_vnode[2]; /* of files, of directories */
	uint32_t next_unique;
	bool has_meta;
	struct fids_meta meta;

	char *path; /* of the file */
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

#define EXPORT_DEPTH_MAX 2048 /* directories above an object */

/* -- between fids.c and journal.c. The caller holds the lock for writing, or is the only user. -- */

struct node *fids_find_node(struct fids *fids, uint32_t vnode);
/* Create or replace the node of a vnode; NULL without memory. */
struct node *fids_put_node(struct fids *fids, const struct export_record *record);
/* Remove a node without names, and all below it that has no others. */
void fids_drop_node(struct fids *fids, struct node *node, fids_gone_fn gone, void *arg);
int fids_add_name(struct fids *fids, struct node *parent, const char *text, struct node *node);
struct name *fids_find_name(struct fids *fids, const struct node *parent, const char *text);
/* Remove a name; the node stays. */
void fids_unhook_name(struct fids *fids, struct name *name);
/* Whether `node` is the directory `above`, or below it. */
bool fids_is_below(const struct node *node, const struct node *above);

int journal_open(struct fids *fids);
void journal_close(struct fids *fids);
/* Add an entry. */
void journal_node(struct fids *fids, const struct node *node);
void journal_name(struct fids *fids, const struct name *name);
void journal_unname(struct fids *fids, const struct name *name);
/* Write the entries; without the lock. */
void journal_flush(struct fids *fids);
/* Write the whole file; the caller holds `writing`, and not the lock. */
int journal_rewrite(struct fids *fids);

/* -- the log -- */

#define EXPORT_WARNING 4
#define EXPORT_INFO    6

/* One line, without a newline. Any thread. */
void export_log_line(const struct export_log *log, int level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
