/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside a volume: version.c, access.c, image.c and volume.c. */
#ifndef FILESERVER_VOLUME_PRIVATE_H
#define FILESERVER_VOLUME_PRIVATE_H

#include <pthread.h>

#include "common/htable.h"
#include "fileserver/export/fids.h"

#define IMAGE_CACHE_BYTES ((size_t)16 << 20)
#define ACCESS_SLOTS	  1024

/* A cached image. Immutable but for the links and counts, which the cache's lock covers. */
struct image_entry {
	struct fsd_image image; /* first member */
	void *chain;		/* by vnode */
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

struct fsd_volume {
	struct fsd_layer *layer;
	struct fsd_store *store;
	char name[65];
	uint32_t id, creation;
	bool all_files;
	fsd_change_fn on_change;
	void *arg;
	struct image_cache images;
	pthread_mutex_t access_lock; /* covers access[] */
	struct access_slot access[ACCESS_SLOTS];
	pthread_mutex_t scans_lock; /* covers scans */
	pthread_cond_t scans_ended;
	struct image_scan *scans;
};

/* access.c */
int fsd_access_path(struct fsd_volume *volume, const struct fsd_object *object);
uint32_t fsd_access_rights(const struct fsd_volume *volume, const struct fsd_stat *st);

/*
 * image.c: list the directory, give FIDs to new names, update record and cache. If another thread
 * is listing it, wait for that thread. *image is borrowed; `image` may be NULL. -EAGAIN: the record
 * has changed meanwhile.
 */
int fsd_image_scan(struct fsd_volume *volume, struct fsd_object *object, const void *actor,
		   struct fsd_image **image);
/* The cached image of the directory at this version, borrowed; or NULL. */
struct fsd_image *fsd_image_find(struct fsd_volume *volume, const struct fsd_record *record);
int fsd_image_cache_start(struct image_cache *cache); /* 0 or -ENOMEM */
void fsd_image_cache_stop(struct image_cache *cache);

/* version.c */

/* Kernels stamp files with a clock that may tick only every 10 ms. */
#define FSD_TICK_NS 20000000ll
void fsd_volume_changed(struct fsd_volume *volume, uint32_t vnode, uint32_t unique,
			const void *actor);
int fsd_volume_error(int layer_error);
/* FIDs of changed objects, to be reported when no lock is held. */
struct fsd_gone {
	uint32_t *fids; /* pairs of vnode and uniquifier */
	size_t count, room;
};
void fsd_gone_add(void *arg, uint32_t vnode, uint32_t unique); /* an fsd_gone_fn */
/* Report all of them and free the list. */
void fsd_gone_report(struct fsd_volume *volume, struct fsd_gone *gone);
/* Whether the status found at the path of a record belongs to the object of the record. */
bool fsd_volume_is_of(const struct fsd_record *record, const struct fsd_stat *st);
/* The data version that follows `version`; 0 for a new object. */
uint64_t fsd_volume_next_version(uint64_t version);
/*
 * Wait until the time stamps of *st cannot hide a later change; refreshes *st from the path. 0 or
 * -errno.
 */
int fsd_volume_settle(struct fsd_volume *volume, const char *path, struct fsd_stat *st);

#endif
