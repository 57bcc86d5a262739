/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of directories: loading, look-ups, scans, and the memory for them. */
#include "client/cache/listing.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "afs/fetchstatus.h"
#include "client/cache/steps.h"
#include "common/held.h"

#define BATCH	64u
#define BATCHES 4u /* that are looked at for names to ask for, besides as many as are wanted */

/* -- loading ------------------------------------------------------------------------------- */

/* Make names those of a directory if it has still that version. Returns the former ones, or these. */
static struct cache_listing *install_names(struct cl_object *directory, uint64_t version,
					   struct cache_listing *listing, bool *installed)
{
	struct cache_shard *shard = cache_lock_object(directory);
	struct cache_listing *former = listing;

	*installed = directory->kind == RXAFS_DIRECTORY && directory->version == version &&
		     directory->epoch == (uint32_t)atomic_load(&directory->volume->epoch);
	if (*installed) {
		former = cache_take_listing(directory);
		listing->owner = directory;
		listing->version = version;
		directory->listing = listing;
		cache_link_listing(shard, listing);
		cache_count_names(directory);
	}
	pthread_mutex_unlock(&shard->lock);
	return former;
}

/* The names, which belong to the directory afterwards, or to *once. */
static int load_names(struct cl_object *directory, uint64_t version, struct cl_names *names,
		      struct cl_names **once)
{
	struct cache_listing *listing = calloc(1, sizeof(*listing)), *former;
	bool installed;

	if (!listing) {
		cl_names_free(names);
		return -ENOMEM;
	}
	listing->names = names;
	former = install_names(directory, version, listing, &installed);
	if (!installed && once) {
		*once = names;
		listing->names = NULL;
	}
	cache_free_listing(former);
	if (installed)
		cache_bound_names(directory->volume->cache, directory);
	return installed ? 0 : -ESTALE;
}

int cl_dir_load(struct cl_object *directory, const struct cl_reply *reply,
		const AFSFetchStatus *status, const uint8_t *image, size_t length,
		struct cl_names **once, const char **fault)
{
	struct cl_names *names;

	(void)reply;
	*fault = "an image of another length than the directory";
	if (status->FileType != RXAFS_DIRECTORY || afs_status_length(status) != length)
		return -EIO;
	names = cl_names_parse(image, length, directory->volume->cache->limits.key, fault);
	if (!names)
		return *fault ? -EIO : -ENOMEM;
	return load_names(directory, afs_status_version(status), names, once);
}

int cl_dir_load_new(struct cl_object *directory, const struct cl_object *parent)
{
	struct cl_names *names = cl_names_new(directory->vnode, directory->unique, parent->vnode,
					      parent->unique, directory->volume->cache->limits.key);

	return names ? load_names(directory, 0, names, NULL) : -ENOMEM;
}

/* -- look-ups ------------------------------------------------------------------------------ */

static bool is_loaded(const struct cl_object *directory, uint64_t now)
{
	return directory->listing && directory->listing->version == directory->version &&
	       cache_valid_until(directory, now) != 0;
}

bool cl_dir_loaded(struct cl_object *directory, uint64_t now)
{
	struct cache_shard *shard = cache_lock_object(directory);
	bool loaded = is_loaded(directory, now);

	pthread_mutex_unlock(&shard->lock);
	return loaded;
}

static int find_name(struct cl_object *directory, const char *name, size_t length, uint64_t now,
		     uint32_t *vnode, uint32_t *unique)
{
	struct cache_shard *shard = cache_lock_object(directory);
	int result = -ESTALE;

	if (is_loaded(directory, now)) {
		directory->listing->used = true;
		shard->counts.hits++;
		result = cl_names_find(directory->listing->names, name, length, vnode, unique)
				 ? 0
				 : -ENOENT;
	} else if (directory->kind && directory->kind != RXAFS_DIRECTORY) {
		result = -ENOTDIR;
	} else {
		shard->counts.misses++;
	}
	pthread_mutex_unlock(&shard->lock);
	return result;
}

/* A file that others moved has another directory now; its own promise was not broken for that. */
static void note_parent(struct cl_object *object, const struct cl_object *directory)
{
	if (object->kind != RXAFS_DIRECTORY && object->kind) {
		object->parent_vnode = directory->vnode;
		object->parent_unique = directory->unique;
	}
}

int cl_dir_find(struct cl_object *directory, const char *name, size_t length, uint64_t now,
		struct rxafs_fid *fid)
{
	int result = find_name(directory, name, length, now, &fid->vnode, &fid->unique);
	struct cl_object *object;

	fid->cell = directory->volume->cell;
	fid->volume = directory->volume->id;
	if (!result && fid->vnode % 2 == 0) {
		uint64_t hash = cache_hash_fid(directory->volume->cache, fid);
		struct cache_shard *shard = cache_shard(directory->volume->cache, hash);

		pthread_mutex_lock(&shard->lock);
		object = cache_seek(shard, hash, fid);
		if (object)
			note_parent(object, directory);
		pthread_mutex_unlock(&shard->lock);
	}
	return result;
}

/* -- scans --------------------------------------------------------------------------------- */

int cl_dir_next(struct cl_object *directory, uint64_t offset, struct cl_entry *entries,
		unsigned room, unsigned *count)
{
	struct cache_shard *shard = cache_lock_object(directory);
	struct cache_listing *listing = directory->listing;

	for (*count = 0; listing && *count < room; offset = entries[(*count)++].next)
		if (!cl_names_next(listing->names, offset, &entries[*count]))
			break;
	if (listing)
		listing->used = true;
	pthread_mutex_unlock(&shard->lock);
	return listing ? 0 : -ESTALE;
}

/* FIDs of entries from an offset on, up to BATCH. */
static unsigned next_fids(struct cl_object *directory, uint64_t *offset,
			  struct rxafs_fid fids[BATCH])
{
	struct cache_shard *shard = cache_lock_object(directory);
	struct cl_entry entry;
	unsigned count = 0;

	while (directory->listing && count < BATCH &&
	       cl_names_next(directory->listing->names, *offset, &entry)) {
		*offset = entry.next;
		if (strcmp(entry.name, ".") == 0 || strcmp(entry.name, "..") == 0)
			continue;
		fids[count++] = (struct rxafs_fid){directory->volume->cell, directory->volume->id,
						   entry.vnode, entry.unique};
	}
	pthread_mutex_unlock(&shard->lock);
	return count;
}

static bool is_usable(struct cl_cache *cache, const struct rxafs_fid *fid, uint64_t now)
{
	uint64_t hash = cache_hash_fid(cache, fid);
	struct cache_shard *shard = cache_shard(cache, hash);
	struct cl_object *object;
	bool usable;

	pthread_mutex_lock(&shard->lock);
	object = cache_seek(shard, hash, fid);
	usable = object && cache_valid_until(object, now);
	pthread_mutex_unlock(&shard->lock);
	return usable;
}

/* Those that have no usable status, of the next ones: a large directory of which all is known must not be walked for each name. */
static unsigned gather_unasked(struct cl_object *directory, uint64_t offset, uint64_t now,
			       struct rxafs_fid *fids, unsigned room)
{
	struct rxafs_fid batch[BATCH];
	unsigned found = 0, count;

	for (unsigned i = 0; i < BATCHES + room / BATCH && found < room; i++) {
		count = next_fids(directory, &offset, batch);
		for (unsigned j = 0; j < count && found < room; j++)
			if (!is_usable(directory->volume->cache, &batch[j], now))
				fids[found++] = batch[j];
		if (count < BATCH)
			break;
	}
	return found;
}

unsigned cl_dir_neighbours(struct cl_object *directory, const char *name, size_t length,
			   uint64_t now, struct rxafs_fid *fids, unsigned room)
{
	struct cache_shard *shard = cache_lock_object(directory);
	struct cl_entry entry = {0};
	uint64_t place = 0;

	if (directory->listing)
		place = cl_names_place(directory->listing->names, name, length);
	if (place)
		cl_names_next(directory->listing->names, place, &entry);
	pthread_mutex_unlock(&shard->lock);
	if (!place || !room)
		return 0;
	fids[0] = (struct rxafs_fid){directory->volume->cell, directory->volume->id, entry.vnode,
				     entry.unique};
	return 1 + gather_unasked(directory, entry.next, now, fids + 1, room - 1);
}
