/* SPDX-License-Identifier: BSD-2-Clause */
/* The exported tree: a table of functions for access to it. */
#ifndef EXPORT_TREE_H
#define EXPORT_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "volume/interface.h"

/*
 * Functions return 0 or a count, or -errno. Paths are relative to the root of the tree, without a
 * leading slash, without "." and ".."; "" is the root. No function follows a symbolic link, leaves
 * the tree, or crosses into another file system: such a path gives -ELOOP, -EXDEV or -ENOENT. Any
 * thread, several at a time.
 */

#define EXPORT_OTHER	((enum store_kind)0) /* an object that is not served */

#define EXPORT_PATH_MAX 4096

struct export_stat {
	enum store_kind kind;
	uint64_t device; /* 0: that of the tree's root, whose number may change at each boot */
	uint64_t inode;
	uint64_t size; /* bytes */
	int64_t mtime_ns, ctime_ns;
	int64_t born_ns; /* time of creation; 0: unknown */
	uint32_t mode;	 /* 12 bits */
	uint32_t uid, gid;
	uint32_t links;
};

struct export_layer;
struct export_file {
	struct export_layer *layer;
};

/*
 * Called for each name except "." and "..". `kind` is EXPORT_OTHER for objects that are not served.
 * `inode` is that of the listing, which on some overlays differs from the one in export_stat. Nonzero
 * stops.
 */
typedef int (*export_list_fn)(void *arg, const char *name, size_t length, enum store_kind kind,
			      uint64_t inode);

struct export_layer_ops {
	/* A regular file or a directory, for reading; others -EINVAL. */
	int (*open)(struct export_layer *layer, const char *path, struct export_file **file);
	void (*close)(struct export_file *file);
	int (*stat_path)(struct export_layer *layer, const char *path, struct export_stat *st);
	int (*stat_file)(struct export_file *file, struct export_stat *st);
	/* Returns bytes read, fewer at the end of the file or with STORE_CACHED; 0 = end. */
	ssize_t (*preadv)(struct export_file *file, const struct iovec *iov, int count,
			  uint64_t offset, unsigned flags);
	/*
	 * Write pages that were changed through mappings of the file to the disk, so that the next
	 * write through a mapping changes its time stamps. Best effort. May be NULL.
	 */
	void (*write_back)(struct export_file *file);
	/* Hint that a range is wanted soon; may wait for the disk. */
	void (*advise)(struct export_file *file, uint64_t offset, uint64_t length);
	ssize_t (*readlink)(struct export_layer *layer, const char *path, char *text, size_t size);
	int (*list)(struct export_layer *layer, const char *path, export_list_fn fn, void *arg);
	int (*space)(struct export_layer *layer, struct store_space *space);
	/* Start an inotify watch of a directory: the watch number, or -errno. */
	int (*watch)(struct export_layer *layer, const char *path, int inotify_fd, uint32_t mask);
	void (*destroy)(struct export_layer *layer);
};

struct export_layer {
	const struct export_layer_ops *ops;
};

#define EXPORT_LAYER_WALK 0x1u /* do not use openat2(): walk the path name by name */

/* A layer over a directory of this machine. Returns 0 or -errno (-ENOTDIR: not a directory). */
int export_layer_posix(const char *root, unsigned flags, struct export_layer **layer);

/* -- hashes: fast, not for keys that an attacker chooses -- */

/* Bijective in `word` for any `h`: a change of one word always changes the result. */
static inline uint64_t mix_hash(uint64_t h, uint64_t word)
{
	h = (h ^ word) * 0x9e3779b97f4a7c15ull;
	return h ^ h >> 29;
}

static inline uint64_t hash_bytes(const void *data, size_t length, uint64_t seed)
{
	const uint8_t *at = data;
	uint64_t h = mix_hash(seed, length), word;

	for (; length >= 8; length -= 8, at += 8) {
		memcpy(&word, at, 8);
		h = mix_hash(h, word);
	}
	word = 0;
	memcpy(&word, at, length);
	h = mix_hash(h, word);
	return mix_hash(h, 0xd6e8feb86659fd93ull);
}

/* -- versions -- */

/*
 * Whether both are the same version of the same object. Devices are not compared, because their
 * numbers may change at each boot.
 */
static inline bool export_stat_same(const struct export_stat *a, const struct export_stat *b)
{
	return a->kind == b->kind && a->inode == b->inode && a->born_ns == b->born_ns &&
	       a->size == b->size && a->mtime_ns == b->mtime_ns && a->ctime_ns == b->ctime_ns;
}

/* A hash of everything that export_stat_same() compares; never 0. */
static inline uint64_t export_stat_stamp(const struct export_stat *st)
{
	uint64_t h = mix_hash(mix_hash(st->kind, st->inode), st->size);

	h = mix_hash(mix_hash(h, (uint64_t)st->born_ns), (uint64_t)st->mtime_ns);
	h = mix_hash(mix_hash(h, (uint64_t)st->ctime_ns), 0);
	return h ? h : 1;
}

/*
 * Distinguishes objects that had the same inode number one after the other, or that have it on
 * several devices, as in some overlays; 0: unknown.
 */
static inline uint32_t export_stat_birth(const struct export_stat *st)
{
	uint64_t what = st->born_ns ? (uint64_t)st->born_ns : st->device;
	uint32_t h = (uint32_t)(mix_hash(mix_hash(0, what), 0) >> 32);

	return what == 0 ? 0 : h ? h : 1;
}

#endif
