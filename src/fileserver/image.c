/* SPDX-License-Identifier: BSD-2-Clause */
/* Directories: listing them, giving FIDs to their names, and the cache of their images. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rxwire/error.h>

#include "afs/dir.h"
#include "afs/fetchstatus.h"
#include "fileserver/log.h"
#include "fileserver/volume_private.h"

#define SCAN_TRIES 5

/* -- the cache -- */

void fsd_image_cache_start(struct image_cache *cache)
{
	memset(cache, 0, sizeof(*cache));
	pthread_mutex_init(&cache->lock, NULL);
}

static struct image_entry **bucket_of(struct image_cache *cache, uint32_t vnode)
{
	return &cache->bucket[(vnode >> 1) % IMAGE_BUCKETS];
}

static void drop_ref(struct image_entry *entry)
{
	if (--entry->refs == 0) {
		free((void *)(uintptr_t)entry->image.bytes);
		free(entry);
	}
}

/* Take an entry out of the cache; its borrowers keep it alive. */
static void unlink_entry(struct image_cache *cache, struct image_entry *entry)
{
	struct image_entry **at = bucket_of(cache, entry->vnode);

	while (*at != entry)
		at = &(*at)->chain;
	*at = entry->chain;
	*(entry->newer ? &entry->newer->older : &cache->newest) = entry->older;
	*(entry->older ? &entry->older->newer : &cache->oldest) = entry->newer;
	cache->bytes -= entry->image.length;
	drop_ref(entry);
}

static void link_newest(struct image_cache *cache, struct image_entry *entry)
{
	entry->newer = NULL;
	entry->older = cache->newest;
	*(cache->newest ? &cache->newest->newer : &cache->oldest) = entry;
	cache->newest = entry;
}

void fsd_image_cache_stop(struct image_cache *cache)
{
	while (cache->oldest)
		unlink_entry(cache, cache->oldest);
	pthread_mutex_destroy(&cache->lock);
}

/* Takes over `bytes`. Returns a borrowed image or NULL (no memory; bytes are freed). */
static struct fsd_image *cache_add(struct image_cache *cache, const struct fsd_record *record,
				   uint8_t *bytes, size_t length)
{
	struct image_entry *entry = calloc(1, sizeof(*entry)), *old, **at;

	if (!entry) {
		free(bytes);
		return NULL;
	}
	entry->image.bytes = bytes;
	entry->image.length = length;
	entry->vnode = record->vnode;
	entry->unique = record->unique;
	entry->version = record->version;
	entry->refs = 2;
	pthread_mutex_lock(&cache->lock);
	at = bucket_of(cache, record->vnode);
	for (old = *at; old && old->vnode != record->vnode; old = old->chain)
		;
	if (old)
		unlink_entry(cache, old);
	entry->chain = *at;
	*at = entry;
	link_newest(cache, entry);
	cache->bytes += length;
	while (cache->bytes > IMAGE_CACHE_BYTES && cache->oldest != entry)
		unlink_entry(cache, cache->oldest);
	pthread_mutex_unlock(&cache->lock);
	return &entry->image;
}

static struct fsd_image *cache_find(struct image_cache *cache, const struct fsd_record *record)
{
	struct image_entry *entry;

	pthread_mutex_lock(&cache->lock);
	for (entry = *bucket_of(cache, record->vnode); entry; entry = entry->chain)
		if (entry->vnode == record->vnode)
			break;
	if (entry && (entry->unique != record->unique || entry->version != record->version ||
		      entry->image.length != record->image_length))
		entry = NULL;
	if (entry) {
		entry->refs++;
		*(entry->newer ? &entry->newer->older : &cache->newest) = entry->older;
		*(entry->older ? &entry->older->newer : &cache->oldest) = entry->newer;
		link_newest(cache, entry);
	}
	pthread_mutex_unlock(&cache->lock);
	return entry ? &entry->image : NULL;
}

void fsd_image_release(struct fsd_volume *volume, struct fsd_image *image)
{
	if (!image)
		return;
	pthread_mutex_lock(&volume->images.lock);
	drop_ref((struct image_entry *)image);
	pthread_mutex_unlock(&volume->images.lock);
}

/* -- the scan -- */

struct scan_name {
	char *name;
	enum fsd_kind kind;
	uint32_t vnode, unique;
};

struct scan {
	struct scan_name *names;
	size_t count, capacity;
	uint32_t subdirs;
	/* children whose names are gone */
	struct fsd_record *gone;
	size_t gone_count, gone_capacity;
	struct fsd_txn *txn;
};

static void scan_reset(struct scan *scan)
{
	for (size_t i = 0; i < scan->count; i++)
		free(scan->names[i].name);
	free(scan->names);
	free(scan->gone);
	memset(scan, 0, sizeof(*scan));
}

/* Make room for one more element; returns NULL without memory. */
static void *grow(void *items, size_t count, size_t *capacity, size_t size)
{
	if (count < *capacity)
		return items;
	size_t wanted = *capacity ? *capacity * 2 : 64;
	void *more = reallocarray(items, wanted, size);

	if (more)
		*capacity = wanted;
	return more;
}

static int collect_name(void *arg, const char *name, size_t length, enum fsd_kind kind)
{
	struct scan *scan = arg;
	void *more;

	/* Clients replace "@sys" at the end of a name, so such a name could never be reached. */
	if (kind == FSD_OTHER || length > FSD_NAME_MAX ||
	    (length >= 4 && !memcmp(name + length - 4, "@sys", 4)))
		return 0;
	/* Even names of one slot would not fit. */
	if (scan->count > (size_t)AFS_DIR_PAGES_MAX * 64)
		return -EFBIG;
	more = grow(scan->names, scan->count, &scan->capacity, sizeof(*scan->names));
	if (!more)
		return -ENOMEM;
	scan->names = more;

	struct scan_name *entry = &scan->names[scan->count];

	entry->name = strndup(name, length);
	if (!entry->name)
		return -ENOMEM;
	entry->kind = kind;
	scan->count++;
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct scan_name *)a)->name, ((const struct scan_name *)b)->name);
}

static int by_unique(const void *a, const void *b)
{
	uint32_t x = ((const struct scan_name *)a)->unique,
		 y = ((const struct scan_name *)b)->unique;

	return x < y ? -1 : x > y;
}

static int add_gone(struct scan *scan, const struct fsd_record *record)
{
	void *more = grow(scan->gone, scan->gone_count, &scan->gone_capacity, sizeof(*scan->gone));

	if (!more)
		return -ENOMEM;
	scan->gone = more;
	scan->gone[scan->gone_count++] = *record;
	return 0;
}

static int collect_gone(void *arg, const char *name, uint32_t vnode)
{
	struct scan *scan = arg;
	struct scan_name key = {.name = (char *)(uintptr_t)name};
	struct fsd_record record;
	int rc;

	if (scan->count && bsearch(&key, scan->names, scan->count, sizeof(key), by_name))
		return 0;
	rc = fsd_store_get(scan->txn, vnode, &record);
	return rc == -ENOENT ? 0 : rc ? rc : add_gone(scan, &record);
}

/* A name without a vnode gets one; what it looks like now is remembered with it. */
static int new_child(struct fsd_volume *volume, const struct fsd_object *dir, struct fsd_meta *meta,
		     struct scan *scan, struct scan_name *entry)
{
	struct fsd_record child = {.parent = dir->record.vnode,
				   .parent_unique = dir->record.unique,
				   .kind = entry->kind,
				   .version = 1};
	uint32_t *next = entry->kind == FSD_DIR ? &meta->next_dir : &meta->next_file;

	if (*next > 0xfffffffcu || meta->next_unique == UINT32_MAX)
		return -ENOSPC;
	if (entry->kind != FSD_DIR) {
		char path[FSD_PATH_MAX + FSD_NAME_MAX + 2];
		int n = snprintf(path, sizeof(path), "%s%s%s", dir->path, dir->path[0] ? "/" : "",
				 entry->name);

		if (n < FSD_PATH_MAX &&
		    volume->layer->ops->stat_path(volume->layer, path, &child.seen) == 0 &&
		    child.seen.kind != entry->kind)
			memset(&child.seen, 0, sizeof(child.seen));
	}
	child.vnode = *next;
	*next += 2;
	child.unique = meta->next_unique++;
	strcpy(child.name, entry->name);
	entry->vnode = child.vnode;
	entry->unique = child.unique;
	return fsd_store_put(scan->txn, &child);
}

static int give_fids(struct fsd_volume *volume, const struct fsd_object *dir, struct scan *scan)
{
	struct fsd_meta meta;
	bool changed = false;
	int rc = fsd_store_get_meta(scan->txn, &meta);

	if (!rc)
		rc = fsd_store_children(scan->txn, dir->record.vnode, collect_gone, scan);
	for (size_t i = 0; !rc && i < scan->count; i++) {
		struct scan_name *entry = &scan->names[i];
		struct fsd_record child;
		uint32_t vnode;

		scan->subdirs += entry->kind == FSD_DIR;
		rc = fsd_store_child(scan->txn, dir->record.vnode, entry->name, &vnode);
		if (!rc)
			rc = fsd_store_get(scan->txn, vnode, &child);
		if (!rc && child.kind == entry->kind) {
			entry->vnode = child.vnode;
			entry->unique = child.unique;
			continue;
		}
		if (!rc) { /* the name now stands for another kind of thing: another FID */
			rc = add_gone(scan, &child);
			if (!rc)
				rc = fsd_store_remove(scan->txn, &child);
		}
		if (!rc || rc == -ENOENT) {
			rc = new_child(volume, dir, &meta, scan, entry);
			changed = true;
		}
	}
	for (size_t i = 0; !rc && i < scan->gone_count; i++)
		rc = fsd_store_remove(scan->txn, &scan->gone[i]);
	return rc ? rc : changed ? fsd_store_put_meta(scan->txn, &meta) : 0;
}

static uint64_t hash_bytes(const uint8_t *bytes, size_t length)
{
	uint64_t h = 0xcbf29ce484222325ull;

	for (size_t i = 0; i < length; i++)
		h = (h ^ bytes[i]) * 0x100000001b3ull;
	return h ? h : 1; /* 0 = never listed */
}

/*
 * Entries in the order in which they got their FIDs: the same image for the same names, after a
 * restart too.
 */
static int build(const struct fsd_object *dir, struct scan *scan, uint8_t **bytes, size_t *length)
{
	const struct fsd_record *r = &dir->record;
	struct afs_dir image;
	int rc = afs_dir_begin(&image, r->vnode, r->unique, r->parent, r->parent_unique);

	if (scan->count)
		qsort(scan->names, scan->count, sizeof(*scan->names), by_unique);
	for (size_t i = 0; !rc && i < scan->count; i++)
		rc = afs_dir_add(&image, scan->names[i].name, strlen(scan->names[i].name),
				 scan->names[i].vnode, scan->names[i].unique);
	if (rc) {
		afs_dir_destroy(&image);
		return rc == -RXW_ELIMIT ? -EFBIG : rc == -RXW_ENOMEM ? -ENOMEM : -EINVAL;
	}
	*bytes = afs_dir_take(&image, length);
	return 0;
}

/* One attempt inside a write transaction. -EAGAIN: the directory was changed meanwhile. */
static int scan_once(struct fsd_volume *volume, struct fsd_object *dir, struct scan *scan,
		     uint8_t **bytes, size_t *length, bool *changed)
{
	const struct fsd_layer_ops *ops = volume->layer->ops;
	struct fsd_stat before, after;
	struct fsd_record *r = &dir->record;
	int rc = fsd_volume_settle(volume, dir->path, &before);

	if (!rc && before.kind != FSD_DIR)
		return -ENOTDIR;
	if (!rc)
		rc = ops->list(volume->layer, dir->path, collect_name, scan);
	if (!rc)
		rc = ops->stat_path(volume->layer, dir->path, &after);
	if (rc)
		return rc;
	if (!fsd_stat_same(&before, &after))
		return -EAGAIN;
	if (scan->count)
		qsort(scan->names, scan->count, sizeof(*scan->names), by_name);

	rc = fsd_store_begin(volume->store, true, &scan->txn);
	if (rc)
		return rc;
	/* Another thread may have scanned it, or found it gone, since we looked. */
	rc = fsd_store_get(scan->txn, dir->fid.Vnode, r);
	if (!rc && r->unique != dir->fid.Unique)
		rc = -ENOENT;
	if (!rc)
		rc = give_fids(volume, dir, scan);
	if (!rc)
		rc = build(dir, scan, bytes, length);
	if (rc) {
		fsd_store_abort(scan->txn);
		return rc;
	}

	uint64_t hash = hash_bytes(*bytes, *length);
	bool first = r->image_hash == 0;

	*changed = !first && hash != r->image_hash;
	if (*changed)
		r->version++;
	if (!first && !fsd_stat_same(&r->seen, &before))
		*changed = true; /* the status differs, if not the names */
	if (!first && !*changed && r->links == 2 + scan->subdirs && r->image_length == *length) {
		fsd_store_abort(scan->txn);
	} else {
		r->seen = before;
		r->image_hash = hash;
		r->image_length = *length;
		r->links = 2 + scan->subdirs;
		rc = fsd_store_put(scan->txn, r);
		if (rc)
			fsd_store_abort(scan->txn);
		else
			rc = fsd_store_commit(scan->txn);
	}
	if (rc) {
		free(*bytes);
		*bytes = NULL;
	}
	dir->st = before;
	return rc;
}

int fsd_image_scan(struct fsd_volume *volume, struct fsd_object *dir, const void *actor,
		   struct fsd_image **image)
{
	struct scan scan = {0};
	uint8_t *bytes = NULL;
	size_t length = 0;
	bool changed = false;
	int rc = -EAGAIN;

	for (int tries = 0; tries < SCAN_TRIES && rc == -EAGAIN; tries++) {
		scan_reset(&scan);
		rc = scan_once(volume, dir, &scan, &bytes, &length, &changed);
	}
	if (rc == -EFBIG)
		fsd_log(RXW_LOG_WARNING,
			"directory /%s has more names than a client can list; "
			"it is not served: split it",
			dir->path);
	if (!rc) {
		*image = cache_add(&volume->images, &dir->record, bytes, length);
		if (!*image)
			rc = -ENOMEM;
		if (changed)
			fsd_volume_changed(volume, dir->fid.Vnode, dir->fid.Unique, actor);
		for (size_t i = 0; i < scan.gone_count; i++)
			fsd_volume_changed(volume, scan.gone[i].vnode, scan.gone[i].unique, NULL);
	}
	scan_reset(&scan);
	return fsd_volume_error(rc);
}

int fsd_volume_image(struct fsd_volume *volume, struct fsd_object *object, const void *actor,
		     struct fsd_image **image)
{
	*image = cache_find(&volume->images, &object->record);
	if (*image)
		return 0;

	int rc = fsd_image_scan(volume, object, actor, image);

	afs_status_set_length(&object->status, object->record.image_length);
	afs_status_set_version(&object->status, object->record.version);
	object->status.LinkCount = object->record.links;
	return rc;
}
