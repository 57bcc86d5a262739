/* SPDX-License-Identifier: BSD-2-Clause */
/* The objects of a store: plain files with the contents of large files; runs that write to them, and views that read a version. */
#ifndef STORE_DATA_H
#define STORE_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "volume/store/data/data_map.h"
#include "volume/store/disk/layer.h"

/*
 * All objects of a store. An object is named by its number, and by its group, vnode and unique for
 * the eyes of people: "files/GROUP/BLOCK/VNODE.UNIQUE.OBJECT", in hexadecimal; BLOCK is vnode >> 10.
 * It is made in "files/new" and gets that name after the commit that refers to it.
 */
struct store_data;
struct store_owner {
	uint32_t group, vnode, unique;
};

/*
 * `files`: open files that are kept for the next use, and as many that wait to be flushed. Others wait
 * closed, until there are STORE_WAITING times as many: then writers wait for a flush. 0 or -errno.
 */
#define STORE_WAITING 64
int store_data_open(struct store_layer *layer, unsigned files, struct store_data **data);
void store_data_close(struct store_data *data);

/*
 * Flush the objects of runs that finished since the last call, and the names of new ones: they are
 * on stable storage afterwards. Concurrent calls share the work. The first error; all objects are
 * flushed nevertheless. Bytes that could not be flushed are lost for good: reading them is -EIO.
 */
int store_data_sync(struct store_data *data);
/*
 * How many flushes have failed. If the number has not changed since store_run_check(), and
 * store_data_sync() succeeds, the bytes and the name of the run are on stable storage.
 */
uint64_t store_data_failures(struct store_data *data);

/* Give an object of "files/new" its name. Without effect if it has it. */
int store_data_settle(struct store_data *data, const struct store_owner *owner, uint64_t object);
/*
 * Remove an object that no version refers to. 0 if it is missing. -EBUSY: try again later. A view shows it; or
 * a run has it, and a commit may come to refer to it.
 */
int store_data_remove(struct store_data *data, const struct store_owner *owner, uint64_t object);
/* The names of all objects that were removed are gone for good, also if the machine stops. 0 or -errno. */
int store_data_sync_removed(struct store_data *data);
/* The length of an object: 0, -ENOENT if it is missing, or another error. */
int store_data_stat(struct store_data *data, const struct store_owner *owner, uint64_t object,
		    uint64_t *length);
/* Call `each` for every object in "files/new", and for every one with a name. */
int store_data_list_new(struct store_data *data, int (*each)(void *arg, uint64_t object), void *arg);
int store_data_list(struct store_data *data,
		    int (*each)(void *arg, const struct store_owner *owner, uint64_t object),
		    void *arg);
int store_data_remove_new(struct store_data *data, uint64_t object);

/* -- writing -- */

/* A run of bytes that a writer adds. One thread at a time. */
struct store_run;

/* The version of a file that a run replaces; `kept` bytes of it stay. */
struct store_base {
	const struct store_content *content;
	const void *bytes; /* in its place: a small file, which has the number `small`; else NULL */
	uint64_t small;
	uint64_t kept;
};

/*
 * Begin to write at `offset`. Bytes in front of it that belong to the same block are copied. All go to an object of the
 * base that ends at or before them, as close as possible, and that no other run has; else to a new object, whose number
 * `number(arg)` gives (0: error). The base may be outdated: the length of the object tells where the bytes of others end.
 * -ENOENT: an object is gone, because the base is outdated. -EBADMSG: the bytes to be copied are damaged.
 */
int store_run_begin(struct store_data *data, const struct store_owner *owner,
		    const struct store_base *base, uint64_t offset, uint64_t (*number)(void *arg),
		    void *arg, struct store_run **run);
/* The number of the object that was made for the run; 0: it goes on in another one. */
uint64_t store_run_made(const struct store_run *run);
/* Gathered into writes of 256 KiB or more at aligned offsets, if the buffers allow it. */
int store_run_write(struct store_run *run, const struct iovec *iov, int count);
int store_run_put(struct store_run *run, const void *bytes, uint64_t length);
/*
 * Take space on the disk for the bytes up to `end`, if that is worth a call: to write there costs less then. False: it is not
 * taken.
 */
bool store_run_allocate(struct store_run *run, uint64_t end);
/*
 * All bytes are handed to the operating system, after those of the base that follow in the same block. *patch: the blocks,
 * which belong to the run. The run stays until store_run_end(), so that no other run writes to its object. The same
 * results as of store_run_begin().
 */
int store_run_finish(struct store_run *run, const struct store_base *base,
		     struct store_patch *patch);
/* Whether what a finished run has copied, or goes on from, is the same in a newer base. */
bool store_run_fits(const struct store_run *run, const struct store_base *base);
/* The object of the run; and how many bytes it has copied. */
uint64_t store_run_object(const struct store_run *run);
uint64_t store_run_copied(const struct store_run *run);
/*
 * Add the bytes that a finished run was given to another run, which begins at the same offset. 0 or -errno; -EBADMSG: they are
 * not what was written.
 */
int store_run_copy(struct store_run *from, struct store_run *to);
/*
 * After store_run_finish(): flush the run's bytes in this thread, so that the next
 * store_data_sync(), for which others may wait, has less to do. 0, or the error: they are lost. It
 * is reported by store_data_sync() too if bytes of earlier runs were not flushed yet.
 */
int store_run_sync(struct store_run *run);
/*
 * For a commit, before it refers to the run: 0, or the error of a flush that lost bytes of it. A
 * flush that fails is reported once, so that a commit that is tried again has to ask here.
 */
int store_run_check(const struct store_run *run);
/*
 * `kept`: a commit refers to it; else a new object is removed, and bytes that were added to an old
 * one are cut off. Flushes if more objects wait for that than may be open: hold no lock that a
 * flush needs. NULL is allowed.
 */
void store_run_end(struct store_run *run, bool kept);

/* -- reading -- */

/*
 * One version of a content, of `length` bytes. Objects are opened when they are read. As long as the view exists, no object
 * that it needs is removed, and no block of it is given back, if it is opened while the version is the current one.
 */
struct store_view;
/*
 * The content must stay until the view is closed. -ENOENT: an object is gone, because the version is no longer the current
 * one: look it up again.
 */
int store_view_open(struct store_data *data, const struct store_owner *owner,
		    const struct store_content *content, uint64_t length, struct store_view **view);
/* As store_ops.read. -EBADMSG: the first bytes are damaged. Any thread. */
ssize_t store_view_read(struct store_view *view, const struct iovec *iov, int count,
			uint64_t offset, bool cached);
void store_view_ahead(struct store_view *view, uint64_t offset, uint64_t length);
/*
 * Read and verify up to `size` bytes from *offset on, which becomes the offset behind them, also if they were verified
 * before. 0; or -EBADMSG, -EIO, ...: the block at *offset, which is where it has stopped.
 */
int store_view_verify(struct store_view *view, uint64_t *offset, void *buffer, size_t size);
void store_view_close(struct store_view *view);
/* Whether a view shows an object; in some of `count` blocks from `first` on. */
bool store_data_shown(struct store_data *data, const struct store_owner *owner, uint64_t object,
		      uint64_t first, uint32_t count);
/* Bytes of an object as they are; -EIO: there are fewer. */
int store_data_read(struct store_data *data, const struct store_owner *owner, uint64_t object,
		    void *bytes, size_t length, uint64_t offset);
/* Give the space of blocks back that no version refers to. 0 or -errno. -EBUSY: a run has the object; try again later. */
int store_data_punch(struct store_data *data, const struct store_owner *owner, uint64_t object,
		     uint64_t first, uint32_t count);

#endif
