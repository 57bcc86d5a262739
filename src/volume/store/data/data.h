/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The contents of large files. A content is a list of extents; each lies in an object, a plain
 * file, at the same offset as in the content. Bytes that a version of a file refers to are never written
 * again: new bytes go to a new object, or behind the last byte ever written to one.
 */
#ifndef STORE_DATA_H
#define STORE_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "volume/store/disk/layer.h"

/*
 * Extents of one content: one for each 64 KiB of its length, within these limits. So the three
 * neighbours with the fewest bytes have at most about 192 KiB, up to a length of 4 GiB.
 */
#define STORE_EXTENTS_LEAST 256
#define STORE_EXTENTS_MOST  65536
static inline uint32_t store_extents_limit(uint64_t length)
{
	uint64_t limit = length >> 16;

	if (limit < STORE_EXTENTS_LEAST)
		return STORE_EXTENTS_LEAST;
	return limit < STORE_EXTENTS_MOST ? (uint32_t)limit : STORE_EXTENTS_MOST;
}

/* Ascending, without overlap; gaps are holes, which read as zeros. */
struct store_extent {
	uint64_t start, end; /* start < end */
	uint64_t object;
};

/* Owned by its user: store_content_free(). An empty one is all zeros. */
struct store_content {
	struct store_extent *extent;
	uint32_t count;
	/* Bytes may be added to this object from this offset on; 0, 0: to none. */
	uint64_t tail_object, tail;
};
void store_content_free(struct store_content *content);
int store_content_copy(const struct store_content *from, struct store_content *to);
/*
 * The content that results from writing `patch` over [start, end) of *content, which becomes
 * `length` bytes long. 0, -ENOMEM, or -E2BIG: more than `limit` extents.
 */
int store_content_apply(struct store_content *content, const struct store_content *patch,
			uint64_t start, uint64_t end, uint64_t length, uint32_t limit);
/* Whether a content has the extents of a window, which is not empty, and nothing between them. */
bool store_content_shows(const struct store_content *content, const struct store_content *window);
/* The one extent of `patch` in place of those in its range. Nothing is added to its object. */
int store_content_merge(struct store_content *content, const struct store_content *patch);
/* The first extent that ends behind an offset; content->count: there is none. */
uint32_t store_content_behind(const struct store_content *content, uint64_t offset);
/* Whether a content refers to an object. */
bool store_content_has(const struct store_content *content, uint64_t object);

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
 * Remove an object that no version refers to. 0 if it is missing. -EBUSY: try again later. A reader has it open; or
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

/*
 * Begin to write at `offset`. The bytes go to an object of `content` that ends at or before offset,
 * as close as possible, and that no other run has; else to a new object, whose number `number(arg)`
 * gives (0: error). `content` may be outdated: the length of the object tells where the bytes of
 * others end.
 */
int store_run_begin(struct store_data *data, const struct store_owner *owner,
		    const struct store_content *content, uint64_t offset,
		    uint64_t (*number)(void *arg), void *arg, struct store_run **run);
/* The number of the object that was made for the run; 0: it goes on in another one. */
uint64_t store_run_made(const struct store_run *run);
/* Gathered into writes of 256 KiB or more at aligned offsets, if the buffers allow it. */
int store_run_write(struct store_run *run, const struct iovec *iov, int count);
int store_run_put(struct store_run *run, const void *bytes, uint64_t length);
/*
 * All bytes are handed to the operating system. *patch: what was written, to be freed. The run
 * stays until store_run_end(), so that no other run writes to its object.
 */
int store_run_finish(struct store_run *run, struct store_content *patch);
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
 * Objects of a file that die while a reader has a pin on it are not removed. A reader takes it before it looks for
 * the version that it is to read, if a view of that does not open all objects. Then it limits the pin to the objects of
 * that version: however slow it is, it keeps nothing that came later, and nothing of other files.
 */
struct store_pin {
	struct store_owner owner;
	uint64_t since;
	uint64_t last; /* objects with greater numbers are not kept */
	struct store_pin *older, *newer;
};
void store_data_pin(struct store_data *data, const struct store_owner *owner,
		    struct store_pin *pin);
void store_data_pin_limit(struct store_data *data, const struct store_content *content,
			  struct store_pin *pin);
void store_data_unpin(struct store_data *data, struct store_pin *pin);
/* The time of a death, which is after all pins so far; and whether one of those still keeps the object. */
uint64_t store_data_time(struct store_data *data);
bool store_data_pinned(struct store_data *data, const struct store_owner *owner, uint64_t object,
		       uint64_t time);

struct store_view;
#define STORE_VIEW_OPEN 16 /* extents of a view that opens all of its objects at once */
/*
 * Open the objects of a content of `length` bytes, or each when it is read if there are many: then
 * they must be pinned. The content must stay until the view is closed. -ENOENT: an object is gone,
 * because the version is no longer the current one: look it up again.
 */
int store_view_open(struct store_data *data, const struct store_owner *owner,
		    const struct store_content *content, uint64_t length, struct store_view **view);
/* As store_ops.read. A file that is shorter than its extents say: -EIO. */
ssize_t store_view_read(struct store_view *view, const struct iovec *iov, int count,
			uint64_t offset, bool cached);
void store_view_ahead(struct store_view *view, uint64_t offset, uint64_t length);
void store_view_close(struct store_view *view);
/* Add the bytes of an extent to a run, at which it has arrived. 0 or -errno. */
int store_run_copy(struct store_view *view, const struct store_extent *extent,
		   struct store_run *run);

#endif
