/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The files below the store: those of the operating system, or those of a test that loses, tears
 * and reorders what was not flushed. Everything that the store does to a disk goes through here.
 */
#ifndef STORE_LAYER_H
#define STORE_LAYER_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

/*
 * Paths are relative to the directory of the store, without ".." and without symbolic links in them.
 * Functions return 0, a count, or -errno. Any thread; the calls for one file may be concurrent.
 */
struct store_layer;
struct store_file {
	struct store_layer *layer;
};

#define STORE_OPEN_WRITE     1u /* for reading and writing; else for reading only */
#define STORE_OPEN_CREATE    2u /* make it if it is missing */
#define STORE_OPEN_EXCLUSIVE 4u /* with CREATE: -EEXIST if it is there */

typedef int (*store_list_fn)(void *arg, const char *name, bool directory);

struct store_layer_ops {
	void (*destroy)(struct store_layer *layer);
	int (*open)(struct store_layer *layer, const char *path, unsigned flags,
		    struct store_file **file);
	void (*close)(struct store_file *file);
	/*
	 * Fewer bytes than wanted only at the end of the file; or, with `cached`, where the next
	 * ones are not in memory. -EAGAIN: not even the first one is.
	 */
	ssize_t (*preadv)(struct store_file *file, const struct iovec *iov, int count,
			  uint64_t offset, bool cached);
	/* All bytes, or an error. */
	ssize_t (*pwritev)(struct store_file *file, const struct iovec *iov, int count,
			   uint64_t offset);
	int (*truncate)(struct store_file *file, uint64_t length);
	/* Give the space of a range back: it reads as zeros. -EOPNOTSUPP is possible. */
	int (*punch)(struct store_file *file, uint64_t offset, uint64_t length);
	/* Take the space of a range; the length of the file stays. NULL is allowed. */
	int (*allocate)(struct store_file *file, uint64_t offset, uint64_t length);
	int (*size)(struct store_file *file, uint64_t *length);
	/* Data and length are on stable storage afterwards; not its name: see sync_dir. */
	int (*sync)(struct store_file *file);
	int (*will_need)(struct store_file *file, uint64_t offset, uint64_t length);
	int (*rename)(struct store_layer *layer, const char *from, const char *to);
	int (*unlink)(struct store_layer *layer, const char *path);
	int (*mkdir)(struct store_layer *layer, const char *path); /* -EEXIST if it is there */
	int (*rmdir)(struct store_layer *layer, const char *path);
	int (*list)(struct store_layer *layer, const char *path, store_list_fn fn, void *arg);
	/* The names in a directory are on stable storage afterwards. */
	int (*sync_dir)(struct store_layer *layer, const char *path);
	/* Flush all files and names of the disk, also those that a killed process left. */
	int (*sync_all)(struct store_layer *layer);
	/* Free and total bytes for this user. */
	int (*space)(struct store_layer *layer, uint64_t *available, uint64_t *total);
	/*
	 * A text that changes when the machine restarts, so that what was not flushed may be lost
	 * (the boot id of Linux). At most 63 bytes and a NUL.
	 */
	int (*boot)(struct store_layer *layer, char id[64]);
	/* Keep other servers out: -EBUSY if another process has it. Released when it is destroyed. */
	int (*lock)(struct store_layer *layer, const char *path);
};

struct store_layer {
	const struct store_layer_ops *ops;
};

/* The buffers of a call that are left: of the first one, `skip` bytes are done. */
struct store_cursor {
	const struct iovec *iov;
	int count;
	size_t skip;
};

static inline void store_cursor_skip(struct store_cursor *at, size_t bytes)
{
	bytes += at->skip;
	while (at->count && bytes >= at->iov->iov_len) {
		bytes -= at->iov->iov_len;
		at->iov++;
		at->count--;
	}
	assert(at->count || !bytes);
	at->skip = bytes;
}

/* Whether a file can be opened for reading. */
static inline bool store_layer_has(struct store_layer *layer, const char *path)
{
	struct store_file *file;

	if (layer->ops->open(layer, path, 0, &file))
		return false;
	layer->ops->close(file);
	return true;
}

/* The directory `path`, which must exist, is not a link, and is closed to other users. */
int store_layer_posix(const char *path, struct store_layer **layer);

#endif
