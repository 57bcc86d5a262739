/* SPDX-License-Identifier: BSD-2-Clause */
/* Directories are listed, their names get FIDs, and their images are cached. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rxwire/error.h>

#include "afs/dir.h"
#include "common/clock.h"
#include "volume/export/object.h"

#define SCAN_TRIES 5
/* A directory that is too large is listed again after this multiple of the time that it took. */
#define REFUSED_PAUSE  20
#define REFUSED_MIN_NS 1000000000ull

/* -- the cache -- */

/* Vnodes are the server's own: clients do not choose them. */
static uint64_t hash_entry(const void *entry, const uint64_t key[2])
{
	(void)key;
	return ((const struct image_entry *)entry)->vnode >> 1;
}

int export_start_images(struct image_cache *cache)
{
	memset(cache, 0, sizeof(*cache));
	pthread_mutex_init(&cache->lock, NULL);
	return htable_init(&cache->entries, offsetof(struct image_entry, chain), hash_entry, NULL,
			   0)
		       ? 0
		       : -ENOMEM;
}

static struct image_entry *find_image_entry(const struct image_cache *cache, uint32_t vnode)
{
	struct image_entry *entry = htable_first(&cache->entries, vnode >> 1);

	while (entry && entry->vnode != vnode)
		entry = entry->chain;
	return entry;
}

static void drop_ref(struct image_entry *entry)
{
	assert(entry->refs > 0);
	if (--entry->refs == 0) {
		free((void *)(uintptr_t)entry->image.bytes);
		free(entry);
	}
}

/* Remove an entry from the cache; its borrowers keep it alive. */
static void unlink_image(struct image_cache *cache, struct image_entry *entry)
{
	htable_remove(&cache->entries, entry);
	*(entry->newer ? &entry->newer->older : &cache->newest) = entry->older;
	*(entry->older ? &entry->older->newer : &cache->oldest) = entry->newer;
	assert(cache->bytes >= entry->image.length);
	cache->bytes -= entry->image.length;
	drop_ref(entry);
}

static void link_newest_image(struct image_cache *cache, struct image_entry *entry)
{
	entry->newer = NULL;
	entry->older = cache->newest;
	*(cache->newest ? &cache->newest->newer : &cache->oldest) = entry;
	cache->newest = entry;
}

void export_stop_images(struct image_cache *cache)
{
	while (cache->oldest)
		unlink_image(cache, cache->oldest);
	assert(!cache->newest && !cache->bytes);
	htable_fini(&cache->entries, NULL);
	pthread_mutex_destroy(&cache->lock);
}

/*
 * Takes ownership of `bytes`. Returns a borrowed image, or NULL without memory; `bytes` are then
 * freed.
 */
static struct export_image *cache_add(struct image_cache *cache, const struct export_record *record,
				      uint8_t *bytes, size_t length)
{
	struct image_entry *entry = calloc(1, sizeof(*entry)), *old;

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
	old = find_image_entry(cache, record->vnode);
	if (old)
		unlink_image(cache, old);
	htable_add(&cache->entries, entry);
	link_newest_image(cache, entry);
	cache->bytes += length;
	while (cache->bytes > IMAGE_CACHE_BYTES && cache->oldest != entry)
		unlink_image(cache, cache->oldest);
	pthread_mutex_unlock(&cache->lock);
	return &entry->image;
}

struct export_image *export_find_image(struct export *export, const struct export_record *record)
{
	struct image_cache *cache = &export->images;
	struct image_entry *entry;

	pthread_mutex_lock(&cache->lock);
	entry = find_image_entry(cache, record->vnode);
	if (entry && (entry->unique != record->unique || entry->version != record->version ||
		      entry->image.length != record->image_length))
		entry = NULL;
	if (entry) {
		assert(entry->refs > 0);
		entry->refs++;
		*(entry->newer ? &entry->newer->older : &cache->newest) = entry->older;
		*(entry->older ? &entry->older->newer : &cache->oldest) = entry->newer;
		link_newest_image(cache, entry);
	}
	pthread_mutex_unlock(&cache->lock);
	return entry ? &entry->image : NULL;
}

void export_release_image(struct export *export, struct export_image *image)
{
	if (!image)
		return;
	pthread_mutex_lock(&export->images.lock);
	drop_ref((struct image_entry *)image);
	pthread_mutex_unlock(&export->images.lock);
}

/* -- the scan -- */

struct scan {
	struct fids_name *names;
	size_t count, capacity;
	uint32_t subdirs;
	struct export_stat before; /* of the directory, when it was listed */
	struct export_gone gone;
};

static void scan_reset(struct scan *scan)
{
	for (size_t i = 0; i < scan->count; i++)
		free(scan->names[i].name);
	free(scan->names);
	scan->names = NULL;
	scan->count = scan->capacity = 0;
	scan->subdirs = 0;
}

static int collect_name(void *arg, const char *name, size_t length, enum store_kind kind,
			uint64_t inode)
{
	struct scan *scan = arg;
	struct fids_name *entry;

	/* Clients replace "@sys" at the end of a name, so they could never request such a name. */
	if (kind == EXPORT_OTHER || length > STORE_NAME_MAX ||
	    (length >= 4 && !memcmp(name + length - 4, "@sys", 4)))
		return 0;
	/* Even if each name takes only one slot, they do not fit. */
	if (scan->count > (size_t)AFS_DIR_PAGES_MAX * 64)
		return -EFBIG;
	if (scan->count == scan->capacity) {
		size_t capacity = scan->capacity ? scan->capacity * 2 : 64;
		struct fids_name *more = reallocarray(scan->names, capacity, sizeof(*scan->names));

		if (!more)
			return -ENOMEM;
		scan->names = more;
		scan->capacity = capacity;
	}
	entry = &scan->names[scan->count];
	*entry = (struct fids_name){.name = strndup(name, length), .kind = kind, .inode = inode};
	if (!entry->name)
		return -ENOMEM;
	scan->count++;
	scan->subdirs += kind == STORE_DIR;
	return 0;
}

static int compare_scanned_names(const void *a, const void *b)
{
	return strcmp(((const struct fids_name *)a)->name, ((const struct fids_name *)b)->name);
}

/* A reproducible order: by vnode, and names of one object by their bytes. */
static int by_vnode(const void *a, const void *b)
{
	uint32_t x = ((const struct fids_name *)a)->vnode, y = ((const struct fids_name *)b)->vnode;

	return x < y ? -1 : x > y ? 1 : compare_scanned_names(a, b);
}

/* A listing may have a name twice if the directory changes meanwhile. */
static bool has_twins(struct scan *scan)
{
	if (scan->count)
		qsort(scan->names, scan->count, sizeof(*scan->names), compare_scanned_names);
	for (size_t i = 1; i < scan->count; i++)
		if (!strcmp(scan->names[i - 1].name, scan->names[i].name))
			return true;
	return false;
}

/* Read the status of a name that is new or may refer to another object than before. */
static int look_at_listed(struct export *export, const struct export_object *dir,
			  struct fids_name *entry)
{
	char path[EXPORT_PATH_MAX];
	struct export_stat st;
	int rc, n = snprintf(path, sizeof(path), "%s%s%s", dir->path, dir->path[0] ? "/" : "",
			     entry->name);

	if (n >= EXPORT_PATH_MAX)
		return 0; /* it is listed but cannot be opened */
	rc = export->layer->ops->stat_path(export->layer, path, &st);
	if (rc == -ENOENT || (!rc && st.kind != entry->kind))
		return -EAGAIN;
	if (!rc) {
		entry->now_inode = st.inode;
		entry->now_birth = export_stat_birth(&st);
		entry->now_seen = export_stat_stamp(&st);
	}
	return rc == -ENOMEM || rc == -EMFILE || rc == -ENFILE ? rc : 0;
}

/* Does everything that needs the disk. -EAGAIN: the directory changed meanwhile. */
static int list_unchanged_directory(struct export *export, const struct export_object *dir,
				    struct scan *scan)
{
	const struct export_layer_ops *ops = export->layer->ops;
	struct export_stat after;
	int rc = export_settle(export, dir->path, &scan->before);

	if (rc)
		return rc;
	if (!export_is_of(&dir->record, &scan->before))
		return -ENOENT;
	rc = ops->list(export->layer, dir->path, collect_name, scan);
	if (rc)
		return rc;
	if (has_twins(scan))
		return -EAGAIN;
	rc = fids_match(export->fids, dir->fid.vnode, dir->fid.unique, scan->names, scan->count);
	for (size_t i = 0; !rc && i < scan->count; i++)
		if (!scan->names[i].known)
			rc = look_at_listed(export, dir, &scan->names[i]);
	if (rc)
		return rc;
	rc = ops->stat_path(export->layer, dir->path, &after);
	if (rc)
		return rc;
	return export_stat_same(&scan->before, &after) ? 0 : -EAGAIN;
}

static int build_image(const struct export_record *r, struct scan *scan, uint8_t **bytes,
		       size_t *length)
{
	struct afs_dir image;
	int rc = afs_dir_begin(&image, r->vnode, r->unique, r->parent, r->parent_unique);

	if (scan->count)
		qsort(scan->names, scan->count, sizeof(*scan->names), by_vnode);
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

/* Store the listing in the record. *changed: promises on the directory must be broken. */
static int record_listing(struct export *export, struct export_object *dir, const struct scan *scan,
			  const uint8_t *bytes, size_t length, bool *changed)
{
	struct export_record *r = &dir->record, new = *r;
	bool first = r->image_hash == 0;
	int rc;

	new.image_hash = hash_bytes(bytes, length, 0);
	new.image_hash += new.image_hash == 0; /* 0 = never listed */
	new.image_length = length;
	new.links = 2 + scan->subdirs;
	new.inode = scan->before.inode;
	new.birth = export_stat_birth(&scan->before);
	new.seen = export_stat_stamp(&scan->before);
	new.refused = new.retry_ns = 0;
	if (!first && new.image_hash != r->image_hash)
		new.version = export_next_version(r->version);
	/* The status may differ even if the names do not. */
	*changed = !first && (new.version != r->version || new.seen != r->seen);
	rc = fids_update(export->fids, r, &new);
	if (!rc)
		*r = new;
	dir->st = scan->before;
	return rc;
}

/* One attempt. -EAGAIN: the directory or its record changed meanwhile. */
static int scan_once(struct export *export, struct export_object *dir, struct scan *scan,
		     uint8_t **bytes, size_t *length, bool *changed)
{
	int rc = list_unchanged_directory(export, dir, scan);

	if (rc)
		return rc;
	rc = fids_assign(export->fids, dir->fid.vnode, dir->fid.unique, scan->names, scan->count,
			 export_next_version(0), export_add_gone, &scan->gone);
	if (rc)
		return rc;
	rc = fids_find(export->fids, dir->fid.vnode, dir->fid.unique, 0, &dir->record, NULL, 0);
	if (rc)
		return rc;
	rc = build_image(&dir->record, scan, bytes, length);
	if (rc)
		return rc;
	rc = record_listing(export, dir, scan, *bytes, *length, changed);
	if (rc) {
		free(*bytes);
		*bytes = NULL;
	}
	return rc;
}

/*
 * Too many names. The directory is not listed again until it changes, and then only after a pause,
 * so that listing it takes only a small part of a CPU.
 */
static void refuse_directory(struct export *export, struct export_object *dir,
			     const struct scan *scan, uint64_t begin_ns, const void *actor)
{
	struct export_record *r = &dir->record, new = *r;
	uint64_t now = monotonic_ns(), pause = (now - begin_ns) * REFUSED_PAUSE;

	new.refused = export_stat_stamp(&scan->before);
	new.retry_ns = now + (pause > REFUSED_MIN_NS ? pause : REFUSED_MIN_NS);
	if (fids_update(export->fids, r, &new))
		return;
	if (!r->refused) {
		export_log_line(&export->log, EXPORT_WARNING,
				"directory /%s has more names than a client can list; "
				"it is not served: split it",
				dir->path);
		export_report_change(export, r->vnode, r->unique, actor);
	}
	*r = new;
}

/* Wait until no other thread lists this directory. False: another one did, and has finished. */
static bool enter_scan(struct export *export, struct image_scan *mine)
{
	struct image_scan *other;
	bool waited = false;

	pthread_mutex_lock(&export->scans_lock);
	for (;;) {
		for (other = export->scans; other && other->vnode != mine->vnode;)
			other = other->next;
		if (!other)
			break;
		waited = true;
		pthread_cond_wait(&export->scans_ended, &export->scans_lock);
	}
	if (!waited) {
		mine->next = export->scans;
		export->scans = mine;
	}
	pthread_mutex_unlock(&export->scans_lock);
	return !waited;
}

static void leave_scan(struct export *export, struct image_scan *mine)
{
	struct image_scan **at = &export->scans;

	pthread_mutex_lock(&export->scans_lock);
	while (*at != mine)
		at = &(*at)->next;
	*at = mine->next;
	pthread_cond_broadcast(&export->scans_ended);
	pthread_mutex_unlock(&export->scans_lock);
}

static int scan_alone(struct export *export, struct export_object *dir, const void *actor,
		      struct export_image **image)
{
	uint64_t begin = monotonic_ns();
	struct scan scan = {0};
	uint8_t *bytes = NULL;
	size_t length = 0;
	bool changed = false;
	int rc = -EAGAIN;

	for (int tries = 0; tries < SCAN_TRIES && rc == -EAGAIN; tries++) {
		scan_reset(&scan);
		rc = scan_once(export, dir, &scan, &bytes, &length, &changed);
	}
	if (rc == -EFBIG)
		refuse_directory(export, dir, &scan, begin, actor);
	if (!rc) {
		struct export_image *made = cache_add(&export->images, &dir->record, bytes, length);

		if (!made)
			rc = -ENOMEM;
		else if (image)
			*image = made;
		else
			export_release_image(export, made);
		if (changed)
			export_report_change(export, dir->fid.vnode, dir->fid.unique, actor);
	}
	scan_reset(&scan);
	export_report_gone(export, &scan.gone);
	return rc == -EAGAIN ? STORE_VBUSY : rc;
}

int export_scan_image(struct export *export, struct export_object *dir, const void *actor,
		      struct export_image **image)
{
	struct image_scan mine = {.vnode = dir->fid.vnode};
	int rc;

	if (!enter_scan(export, &mine))
		return -EAGAIN; /* the other thread has updated the record */
	rc = scan_alone(export, dir, actor, image);
	leave_scan(export, &mine);
	return rc;
}
