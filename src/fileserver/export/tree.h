/* SPDX-License-Identifier: BSD-2-Clause */
/* The exported tree: a table of functions for access to it, and its usage. */
#ifndef FILESERVER_TREE_H
#define FILESERVER_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "fileserver/base/base.h"

/*
 * Functions return 0 or a count, or -errno. Paths are relative to the root of the tree, without a
 * leading slash, without "." and ".."; "" is the root. No function follows a symbolic link, leaves
 * the tree, or crosses into another file system: such a path gives -ELOOP, -EXDEV or -ENOENT. Any
 * thread, several at a time.
 */

enum fsd_kind {
	FSD_OTHER = 0,
	FSD_FILE,
	FSD_DIR,
	FSD_SYMLINK
};

#define FSD_PATH_MAX 4096

struct fsd_stat {
	enum fsd_kind kind;
	uint64_t device; /* 0: that of the tree's root, whose number may change at each boot */
	uint64_t inode;
	uint64_t size; /* bytes */
	int64_t mtime_ns, ctime_ns;
	int64_t born_ns; /* time of creation; 0: unknown */
	uint32_t mode;	 /* 12 bits */
	uint32_t uid, gid;
	uint32_t links;
};

struct fsd_space {
	uint64_t total_kib, used_kib, available_kib;
};

struct fsd_layer;
struct fsd_file {
	struct fsd_layer *layer;
};

#define FSD_READ_CACHED 0x1u /* read only what is in the page cache; -EAGAIN: nothing is */

/*
 * Called for each name except "." and "..". `kind` is FSD_OTHER for objects that are not served.
 * `inode` is that of the listing, which on some overlays differs from the one in fsd_stat. Nonzero
 * stops.
 */
typedef int (*fsd_list_fn)(void *arg, const char *name, size_t length, enum fsd_kind kind,
			   uint64_t inode);

struct fsd_layer_ops {
	/* A regular file or a directory, for reading; others -EINVAL. */
	int (*open)(struct fsd_layer *layer, const char *path, struct fsd_file **file);
	void (*close)(struct fsd_file *file);
	int (*stat_path)(struct fsd_layer *layer, const char *path, struct fsd_stat *st);
	int (*stat_file)(struct fsd_file *file, struct fsd_stat *st);
	/* Returns bytes read, fewer at the end of the file or with FSD_READ_CACHED; 0 = end. */
	ssize_t (*preadv)(struct fsd_file *file, const struct iovec *iov, int count,
			  uint64_t offset, unsigned flags);
	/*
	 * Write pages that were changed through mappings of the file to the disk, so that the next
	 * write through a mapping changes its time stamps. Best effort. May be NULL.
	 */
	void (*write_back)(struct fsd_file *file);
	/* Hint that a range is wanted soon; may wait for the disk. */
	void (*advise)(struct fsd_file *file, uint64_t offset, uint64_t length);
	ssize_t (*readlink)(struct fsd_layer *layer, const char *path, char *text, size_t size);
	int (*list)(struct fsd_layer *layer, const char *path, fsd_list_fn fn, void *arg);
	int (*space)(struct fsd_layer *layer, struct fsd_space *space);
	/* Start an inotify watch of a directory: the watch number, or -errno. */
	int (*watch)(struct fsd_layer *layer, const char *path, int inotify_fd, uint32_t mask);
	void (*destroy)(struct fsd_layer *layer);
};

struct fsd_layer {
	const struct fsd_layer_ops *ops;
};

#define FSD_LAYER_WALK 0x1u /* do not use openat2(): walk the path name by name */

/* A layer over a directory of this machine. Returns 0 or -errno (-ENOTDIR: not a directory). */
int fsd_layer_posix(const char *root, unsigned flags, struct fsd_layer **layer);

/*
 * Whether both are the same version of the same object. Devices are not compared, because their
 * numbers may change at each boot.
 */
static inline bool fsd_stat_same(const struct fsd_stat *a, const struct fsd_stat *b)
{
	return a->kind == b->kind && a->inode == b->inode && a->born_ns == b->born_ns &&
	       a->size == b->size && a->mtime_ns == b->mtime_ns && a->ctime_ns == b->ctime_ns;
}

/* A hash of everything that fsd_stat_same() compares; never 0. */
static inline uint64_t fsd_stat_stamp(const struct fsd_stat *st)
{
	uint64_t h = fsd_mix(fsd_mix(st->kind, st->inode), st->size);

	h = fsd_mix(fsd_mix(h, (uint64_t)st->born_ns), (uint64_t)st->mtime_ns);
	h = fsd_mix(fsd_mix(h, (uint64_t)st->ctime_ns), 0);
	return h ? h : 1;
}

/*
 * Distinguishes objects that had the same inode number one after the other, or that have it on
 * several devices, as in some overlays; 0: unknown.
 */
static inline uint32_t fsd_stat_birth(const struct fsd_stat *st)
{
	uint64_t what = st->born_ns ? (uint64_t)st->born_ns : st->device;
	uint32_t h = (uint32_t)(fsd_mix(fsd_mix(0, what), 0) >> 32);

	return what == 0 ? 0 : h ? h : 1;
}

/* -- usage: number and size of the objects in the tree, counted in the background on demand -- */

struct fsd_usage;

/* Number of objects, including directories, and KiB of their contents, at least one for each. */
struct fsd_used {
	uint64_t objects, kib;
};

/*
 * Start the thread that counts; it waits for a request. The layer must outlive it. NULL: no memory.
 */
struct fsd_usage *fsd_usage_start(struct fsd_layer *layer);
/* Stops a count in progress. NULL is allowed. */
void fsd_usage_stop(struct fsd_usage *usage);

/*
 * The latest result. If it is older than 10 minutes a new count begins, which looks at every file;
 * wait for it for at most wait_ms. During the first count the sums so far are returned. Any thread.
 * If usage is NULL: zeros.
 */
void fsd_usage_get(struct fsd_usage *usage, unsigned wait_ms, struct fsd_used *used);

#endif
