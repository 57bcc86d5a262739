/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside an exported directory: the volume, its objects, images of directories, the threads. */
#ifndef EXPORT_OBJECT_H
#define EXPORT_OBJECT_H

#include "volume/export/fids.h"

#define IMAGE_CACHE_BYTES ((size_t)16 << 20)
#define ACCESS_SLOTS	  1024

/* An image of a directory, as clients fetch it. */
struct export_image {
	const uint8_t *bytes;
	size_t length;
};

/* A cached image. Immutable but for the links and counts, which the cache's lock covers. */
struct image_entry {
	struct export_image image; /* first member */
	void *chain;		   /* by vnode */
	struct image_entry *newer, *older;
	uint32_t vnode, unique;
	uint64_t version;
	unsigned refs; /* borrowers; the cache itself holds one more */
};

/* Images by directory, least recently used last. `lock` covers everything. */
struct image_cache {
	pthread_mutex_t lock;
	struct htable entries;
	struct image_entry *newest, *oldest;
	size_t bytes;
};

/* Whether "other" may search all directories down to this one; valid for a second. */
struct access_slot {
	uint32_t vnode, unique;
	bool allowed;
	uint64_t until_ns;
};

/* A directory that a thread is listing. */
struct image_scan {
	uint32_t vnode;
	struct image_scan *next;
};

struct export
{
	struct store base;
	struct export_layer *layer;
	struct fids *fids;
	char name[STORE_VOLNAME_MAX + 1];
	uint32_t id, creation;
	uint32_t released; /* `sync` of the volume; 0: its date of creation */
	bool all_files;
	struct export_log log;
	struct export_hooks hooks;
	struct export_usage *usage; /* NULL: not started */
	struct export_watch *watch; /* NULL: not started */
	struct image_cache images;
	pthread_mutex_t access_lock; /* covers access[] */
	struct access_slot access[ACCESS_SLOTS];
	pthread_mutex_t scans_lock; /* covers scans */
	pthread_cond_t scans_ended;
	struct image_scan *scans;
};

/* -- object.c -- */

/*
 * An object as a call sees it: all members belong to one version. About 9 KiB, so keep few of them
 * on a stack.
 */
struct export_object {
	struct store_fid fid;
	struct export_record record;
	struct export_stat st;
	struct store_status status;
	bool may_read; /* the caller may read its data */
	char path[EXPORT_PATH_MAX];
};

/*
 * Look up an object and update its record from the tree. -EINVAL: volume or vnode 0; 103: another
 * volume; 102: no such object; -EACCES: "other" may not search a directory above it; others from
 * the tree.
 */
int export_get_object(struct export *export, const struct store_fid *fid, const void *actor,
		      struct export_object *object);

/*
 * Open a file for reading, with data and status of one version: *file equals object->st. Waits (for
 * at most about 20 ms) if the file is so new that its time stamps could not show another change;
 * and, once for each version, until pages that were written through mappings are on the disk,
 * because further writes to them would change no time stamp. -EACCES: "other" may not read it.
 */
int export_open_file(struct export *export, const struct store_fid *fid, const void *actor,
		     struct export_object *object, struct export_file **file);

/* The object may have changed: check it, and report changes. */
void export_check_object(struct export *export, const struct store_fid *fid);
/*
 * The FID of a name in a directory, if it has one: 0, 102 or -errno. Does not access the tree.
 */
int export_find_child(struct export *export, const struct store_fid *directory, const char *name,
		      struct store_fid *fid);
/* Drop all cached permissions. */
void export_forget_access(struct export *export);
/*
 * The record and the path of an object. Does not access the tree. 0, 102, 103 or -errno.
 */
int export_find_path(struct export *export, const struct store_fid *fid, char path[EXPORT_PATH_MAX],
		     struct export_record *record);

/*
 * The image of the directory `object`, which export_get_object() has filled. Record and status are
 * updated to match it. The memory belongs to a cache: return it with export_release_image().
 */
int export_get_image(struct export *export, struct export_object *object, const void *actor,
		     struct export_image **image);
/* Kernels stamp files with a clock that may tick only every 10 ms. */
#define EXPORT_TICK_NS 20000000ll
void export_report_change(struct export *export, uint32_t vnode, uint32_t unique,
			  const void *actor);
/* FIDs of changed objects, to be reported when no lock is held. */
struct export_gone {
	uint32_t *fids; /* pairs of vnode and uniquifier */
	size_t count, room;
};
void export_add_gone(void *arg, uint32_t vnode, uint32_t unique); /* an fids_gone_fn */
/* Report all of them and free the list. */
void export_report_gone(struct export *export, struct export_gone *gone);
/* Whether the status found at the path of a record belongs to the object of the record. */
bool export_is_of(const struct export_record *record, const struct export_stat *st);
/* The data version that follows `version`; 0 for a new object. */
uint64_t export_next_version(uint64_t version);
/*
 * Wait until the time stamps of *st cannot hide a later change; refreshes *st from the path. 0 or
 * -errno.
 */
int export_settle(struct export *export, const char *path, struct export_stat *st);

/* -- image.c -- */

/*
 * List the directory, give FIDs to new names, update record and cache. If another thread
 * is listing it, wait for that thread. *image is borrowed; `image` may be NULL. -EAGAIN: the record
 * has changed meanwhile.
 */
int export_scan_image(struct export *export, struct export_object *object, const void *actor,
		      struct export_image **image);
/* The cached image of the directory at this version, borrowed; or NULL. */
struct export_image *export_find_image(struct export *export, const struct export_record *record);
int export_start_images(struct image_cache *cache); /* 0 or -ENOMEM */
void export_stop_images(struct image_cache *cache);

void export_release_image(struct export *export, struct export_image *image);

/* -- usage.c: number and size of the objects in the tree, counted in the background on demand -- */

/* Start the thread that counts; it waits for a request. The layer must outlive it. NULL: no memory. */
struct export_usage *export_usage_start(struct export_layer *layer);
/* Stops a count in progress. NULL is allowed. */
void export_usage_stop(struct export_usage *usage);
/* The results are those of export_count_used(), or zeros if usage is NULL. */
void export_usage_get(struct export_usage *usage, unsigned wait_ms, struct export_used *used);

/* -- watch.c: inotify where it works, and a slow sweep -- */

/* Start the thread, as in export_start(). NULL without memory or thread. */
struct export_watch *export_watch_start(struct export *export, unsigned max);
void export_watch_stop(struct export_watch *watch); /* NULL is allowed */
/* Watch the directory of this object, or itself: a promise is about to be given. Any thread. */
void export_watch_add(struct export_watch *watch, const struct export_record *record,
		      const char *path);
/* The number of directories that are watched. */
size_t export_watch_count(struct export_watch *watch);

#endif
