/* SPDX-License-Identifier: BSD-2-Clause */
/* Objects: their names, and those that are open: found by number, shared by runs and views, kept open for the next use. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/held.h"
#include "volume/store/data/data_private.h"

/* -- names: "files/new/OBJECT", then "files/GROUP/BLOCK/VNODE.UNIQUE.OBJECT" -- */

#define NEW	    "files/new"
#define BLOCK_SHIFT 10
#define MOVE_TRIES  16

void data_path_new(uint64_t number, char path[DATA_PATH])
{
	snprintf(path, DATA_PATH, NEW "/%" PRIx64, number);
}

void data_path_block(const struct store_owner *owner, char path[DATA_PATH])
{
	snprintf(path, DATA_PATH, "files/%" PRIx32 "/%" PRIx32, owner->group,
		 owner->vnode >> BLOCK_SHIFT);
}

static void format_group_path(const struct store_owner *owner, char path[DATA_PATH])
{
	snprintf(path, DATA_PATH, "files/%" PRIx32, owner->group);
}

void data_path_named(const struct store_owner *owner, uint64_t number, char path[DATA_PATH])
{
	snprintf(path, DATA_PATH, "files/%" PRIx32 "/%" PRIx32 "/%" PRIx32 ".%" PRIx32 ".%" PRIx64,
		 owner->group, owner->vnode >> BLOCK_SHIFT, owner->vnode, owner->unique, number);
}

/* A directory, whose own name is on stable storage afterwards if it was missing. 0 or -errno. */
static int make_data_directory(struct store_layer *layer, const char *path, const char *parent)
{
	int rc = layer->ops->mkdir(layer, path);

	if (rc == -EEXIST)
		return 0;
	return rc ? rc : layer->ops->sync_dir(layer, parent);
}

static int make_block_directory(struct store_layer *layer, const struct store_owner *owner)
{
	char group[DATA_PATH], block[DATA_PATH];
	int rc;

	format_group_path(owner, group);
	data_path_block(owner, block);
	rc = make_data_directory(layer, group, "files");
	return rc ? rc : make_data_directory(layer, block, group);
}

/* Move an object from "files/new" to its name. -ENOENT: it is at neither place. */
static int move_to_name(struct store_layer *layer, const struct store_owner *owner, uint64_t number)
{
	char from[DATA_PATH], to[DATA_PATH];

	data_path_new(number, from);
	data_path_named(owner, number, to);
	/* A directory may vanish again while it is empty. */
	for (int tries = 0; tries < MOVE_TRIES; tries++) {
		int rc = layer->ops->rename(layer, from, to);

		if (rc != -ENOENT)
			return rc;
		if (store_layer_has(layer, to))
			return 0;
		if (!store_layer_has(layer, from))
			return store_layer_has(layer, to) ? 0 : -ENOENT;
		rc = make_block_directory(layer, owner);
		if (rc && rc != -ENOENT)
			return rc;
	}
	return -ENOENT;
}

static int unlink_named_object(struct store_layer *layer, const struct store_owner *owner,
			       uint64_t number)
{
	char path[DATA_PATH];
	int rc;

	data_path_named(owner, number, path);
	rc = layer->ops->unlink(layer, path);
	if (rc)
		return rc;
	/* The last object of a directory takes it along: -ENOTEMPTY as a rule. */
	data_path_block(owner, path);
	if (layer->ops->rmdir(layer, path) == 0) {
		format_group_path(owner, path);
		layer->ops->rmdir(layer, path);
	}
	return 0;
}

/* Flush the directory of named objects, or the one above it if it is gone. 0 or -errno. */
static int flush_block_directory(struct store_layer *layer, const char *path)
{
	char above[DATA_PATH];
	int rc;

	snprintf(above, sizeof(above), "%.*s", DATA_PATH - 1, path);
	while ((rc = layer->ops->sync_dir(layer, above)) == -ENOENT && strchr(above, '/'))
		*strrchr(above, '/') = '\0';
	return rc;
}

/* Remove an object wherever it is; 0 if it is missing. */
static int unlink_object(struct store_layer *layer, const struct store_owner *owner,
			 uint64_t number)
{
	char path[DATA_PATH];
	int rc = unlink_named_object(layer, owner, number);

	if (rc != -ENOENT)
		return rc;
	data_path_new(number, path);
	rc = layer->ops->unlink(layer, path);
	return rc == -ENOENT ? 0 : rc;
}

/* -- lists of names -- */

struct listing {
	struct store_layer *layer;
	int (*new)(void *arg, uint64_t object);
	int (*named)(void *arg, const struct store_owner *owner, uint64_t object);
	void *arg;
	char path[DATA_PATH];
	uint32_t group, block;
	int stopped; /* result of `named` */
};

/* A number in lower-case hexadecimal without leading zeros, up to `end`. */
static bool parse_hex_number(const char **text, char end, uint64_t max, uint64_t *value)
{
	size_t n = strspn(*text, "0123456789abcdef");

	if (n == 0 || n > 16 || (*text)[n] != end || (n > 1 && **text == '0'))
		return false;
	*value = strtoull(*text, NULL, 16);
	*text += n + (end != 0);
	return *value <= max;
}

static int list_new_entry(void *arg, const char *name, bool directory)
{
	const struct listing *listing = arg;
	uint64_t number;

	if (directory || !parse_hex_number(&name, 0, UINT64_MAX, &number))
		return 0;
	return listing->new (listing->arg, number);
}

static int list_named_entry(void *arg, const char *name, bool directory)
{
	struct listing *listing = arg;
	uint64_t vnode, unique, number;

	if (directory || !parse_hex_number(&name, '.', UINT32_MAX, &vnode) ||
	    !parse_hex_number(&name, '.', UINT32_MAX, &unique) ||
	    !parse_hex_number(&name, 0, UINT64_MAX, &number) ||
	    vnode >> BLOCK_SHIFT != listing->block)
		return 0;

	struct store_owner owner = {listing->group, (uint32_t)vnode, (uint32_t)unique};

	listing->stopped = listing->named(listing->arg, &owner, number);
	return listing->stopped;
}

/* A directory that vanishes meanwhile had nothing in it. */
static int list_inner_directory(struct listing *inner, store_list_fn fn)
{
	int rc = inner->layer->ops->list(inner->layer, inner->path, fn, inner);

	return rc == -ENOENT && !inner->stopped ? 0 : rc;
}

static int list_block_objects(void *arg, const char *name, bool directory)
{
	struct listing inner = *(const struct listing *)arg;
	uint64_t block;

	if (!directory || !parse_hex_number(&name, 0, UINT32_MAX >> BLOCK_SHIFT, &block))
		return 0;
	inner.block = (uint32_t)block;
	snprintf(inner.path, sizeof(inner.path), "files/%" PRIx32 "/%" PRIx32, inner.group,
		 inner.block);

	int rc = list_inner_directory(&inner, list_named_entry);

	((struct listing *)arg)->stopped = inner.stopped;
	return rc;
}

static int list_group_blocks(void *arg, const char *name, bool directory)
{
	struct listing inner = *(const struct listing *)arg;
	uint64_t group;

	if (!directory || !parse_hex_number(&name, 0, UINT32_MAX, &group))
		return 0;
	inner.group = (uint32_t)group;
	snprintf(inner.path, sizeof(inner.path), "files/%" PRIx32, inner.group);

	int rc = list_inner_directory(&inner, list_block_objects);

	((struct listing *)arg)->stopped = inner.stopped;
	return rc;
}

int store_data_list_new(struct store_data *data, int (*each)(void *arg, uint64_t object), void *arg)
{
	struct listing listing = {.layer = data->layer, .new = each, .arg = arg};

	return data->layer->ops->list(data->layer, NEW, list_new_entry, &listing);
}

int store_data_list(struct store_data *data,
		    int (*each)(void *arg, const struct store_owner *owner, uint64_t object),
		    void *arg)
{
	struct listing listing = {.layer = data->layer, .named = each, .arg = arg};

	return data->layer->ops->list(data->layer, "files", list_group_blocks, &listing);
}

/* -- open objects -- */

static uint64_t hash_object_number(uint64_t number)
{
	number *= 0x9e3779b97f4a7c15ull;
	return number ^ number >> 32;
}

static uint64_t hash_data_object(const void *item, const uint64_t key[2])
{
	(void)key;
	return hash_object_number(((const struct data_object *)item)->number);
}

/* -- the table and the list of idle objects -- */

static struct data_object *find_known_object(struct store_data *data, uint64_t number)
{
	struct data_object *object = htable_first(&data->objects, hash_object_number(number));

	assert(mutex_is_held(&data->lock));
	while (object && object->number != number)
		object = object->link;
	return object;
}

/* Wait until no other thread opens, renames or removes it. */
static struct data_object *find_steady_object(struct store_data *data, uint64_t number)
{
	struct data_object *object;

	while ((object = find_known_object(data, number)) != NULL && object->busy)
		pthread_cond_wait(&data->changed, &data->lock);
	return object;
}

static void unhash_object(struct store_data *data, struct data_object *object)
{
	assert(mutex_is_held(&data->lock));
	if (object->known)
		htable_remove(&data->objects, object);
	object->known = false;
}

static void leave_idle_list(struct store_data *data, struct data_object *object)
{
	assert(mutex_is_held(&data->lock) && data->idle > 0);
	*(object->newer ? &object->newer->older : &data->newest) = object->older;
	*(object->older ? &object->older->newer : &data->oldest) = object->newer;
	object->newer = object->older = NULL;
	data->idle--;
}

static void enter_idle_list(struct store_data *data, struct data_object *object)
{
	assert(mutex_is_held(&data->lock) && !object->refs);
	object->older = data->newest;
	*(data->newest ? &data->newest->newer : &data->oldest) = object;
	data->newest = object;
	data->idle++;
}

static bool has_lost_bytes(const struct data_object *object)
{
	return atomic_load(&object->failed) != 0;
}

/* Remove an object that is not idle. Returns its file. */
static struct store_file *destroy_data_object(struct store_data *data, struct data_object *object)
{
	struct store_file *file = object->file;

	assert(!object->refs && !object->newer && !object->older);
	object->file = NULL;
	/* That bytes were lost is remembered as long as the object exists. */
	if (object->known && has_lost_bytes(object))
		return file;
	unhash_object(data, object);
	free(object);
	return file;
}

static struct store_file *drop_oldest_idle(struct store_data *data)
{
	struct data_object *object = data->oldest;

	assert(object);
	leave_idle_list(data, object);
	return destroy_data_object(data, object);
}

void data_hold(struct store_data *data, struct data_object *object)
{
	assert(mutex_is_held(&data->lock));
	if (object->refs++ == 0 && object->file)
		leave_idle_list(data, object);
}

/* Only the list of dirty objects has it: a flush of the whole file system needs no file. */
static struct store_file *close_dirty_file(struct store_data *data, struct data_object *object)
{
	struct store_file *file = object->file;

	if (object->refs != 1 || !object->dirty || data->dirty_count <= data->files)
		return NULL;
	object->closed = true;
	object->file = NULL;
	return file;
}

struct store_file *data_put(struct store_data *data, struct data_object *object)
{
	assert(mutex_is_held(&data->lock) && object->refs > 0);
	if (--object->refs)
		return close_dirty_file(data, object);
	if (!object->known || !object->file || has_lost_bytes(object))
		return destroy_data_object(data, object);
	enter_idle_list(data, object);
	return data->idle > data->files ? drop_oldest_idle(data) : NULL;
}

static void end_busy_state(struct store_data *data, struct data_object *object)
{
	object->busy = false;
	pthread_cond_broadcast(&data->changed);
}

/* A new one, busy, with one reference. NULL: no memory. */
static struct data_object *make_busy_object(struct store_data *data,
					    const struct store_owner *owner, uint64_t number)
{
	struct data_object *object = calloc(1, sizeof(*object));

	assert(mutex_is_held(&data->lock));
	if (!object)
		return NULL;
	object->number = number;
	object->owner = *owner;
	object->refs = 1;
	object->busy = true;
	object->known = true;
	htable_add(&data->objects, object);
	return object;
}

/* -- without the lock -- */

static void close_layer_file(struct store_data *data, struct store_file *file)
{
	if (file)
		data->layer->ops->close(file);
}

static void release_object(struct store_data *data, struct data_object *object, unsigned readers)
{
	struct store_file *file;

	pthread_mutex_lock(&data->lock);
	assert(object->readers >= readers);
	object->readers -= readers;
	file = data_put(data, object);
	pthread_mutex_unlock(&data->lock);
	close_layer_file(data, file);
}

void data_release(struct store_data *data, struct data_object *object)
{
	release_object(data, object, 0);
}

void data_read_end(struct store_data *data, struct data_object *object)
{
	release_object(data, object, 1);
}

/* Close a file that is not in use. False: there is none. */
static bool close_oldest_idle(struct store_data *data)
{
	struct store_file *file = NULL;

	pthread_mutex_lock(&data->lock);
	if (data->oldest)
		file = drop_oldest_idle(data);
	pthread_mutex_unlock(&data->lock);
	close_layer_file(data, file);
	return file != NULL;
}

static int open_layer_file(struct store_data *data, const char *path, unsigned flags,
			   struct store_file **file)
{
	int rc;

	do
		rc = data->layer->ops->open(data->layer, path, flags, file);
	while ((rc == -EMFILE || rc == -ENFILE) && close_oldest_idle(data));
	return rc;
}

/* For writing if that is possible. */
static int open_existing_file(struct store_data *data, struct data_object *object, const char *path)
{
	int rc = open_layer_file(data, path, STORE_OPEN_WRITE, &object->file);

	object->sealed = rc == -EACCES || rc == -EPERM || rc == -EROFS;
	return object->sealed ? open_layer_file(data, path, 0, &object->file) : rc;
}

static int open_object_file(struct store_data *data, struct data_object *object)
{
	char named[DATA_PATH], new[DATA_PATH];
	int rc;

	data_path_named(&object->owner, object->number, named);
	data_path_new(object->number, new);
	rc = open_existing_file(data, object, named);
	object->settled = true;
	if (rc != -ENOENT)
		return rc;
	rc = open_existing_file(data, object, new);
	object->settled = rc != 0;
	/* It may have got its name between the two. */
	return rc == -ENOENT ? open_existing_file(data, object, named) : rc;
}

void data_renew_marks(struct store_data *data, struct data_object *object)
{
	assert(mutex_is_held(&data->lock));
	atomic_store(&object->opened, ++data->opened);
}

static int acquire_object(struct store_data *data, const struct store_owner *owner, uint64_t number,
			  unsigned readers, bool cached, struct data_object **object)
{
	struct data_object *found;
	int rc = 0;

	pthread_mutex_lock(&data->lock);
	found = find_steady_object(data, number);
	if (found && found->file) {
		data_hold(data, found);
		found->readers += readers;
		pthread_mutex_unlock(&data->lock);
		*object = found;
		return 0;
	}
	if (cached) {
		pthread_mutex_unlock(&data->lock);
		return -EAGAIN;
	}
	if (found) {
		found->refs++;
		found->busy = true;
		found->owner = *owner;
	} else {
		found = make_busy_object(data, owner, number);
	}
	pthread_mutex_unlock(&data->lock);
	if (!found)
		return -ENOMEM;
	rc = open_object_file(data, found);
	pthread_mutex_lock(&data->lock);
	end_busy_state(data, found);
	data_renew_marks(data, found);
	if (rc)
		data_put(data, found); /* has no file */
	else
		found->readers += readers;
	pthread_mutex_unlock(&data->lock);
	*object = found;
	return rc;
}

int data_acquire(struct store_data *data, const struct store_owner *owner, uint64_t number,
		 struct data_object **object)
{
	return acquire_object(data, owner, number, 0, false, object);
}

int data_read(struct store_data *data, const struct store_owner *owner, uint64_t number,
	      bool cached, struct data_object **object)
{
	return acquire_object(data, owner, number, 1, cached, object);
}

int data_create(struct store_data *data, const struct store_owner *owner, uint64_t number,
		struct data_object **object)
{
	struct data_object *made, *old;
	struct store_file *stale = NULL;
	char path[DATA_PATH];
	int rc;

	pthread_mutex_lock(&data->lock);
	old = find_steady_object(data, number);
	if (old) {
		/* The number was in use before. */
		data_hold(data, old);
		unhash_object(data, old);
		stale = data_put(data, old);
	}
	made = make_busy_object(data, owner, number);
	pthread_mutex_unlock(&data->lock);
	close_layer_file(data, stale);
	if (!made)
		return -ENOMEM;

	data_path_new(number, path);
	rc = open_layer_file(data, path,
			     STORE_OPEN_WRITE | STORE_OPEN_CREATE | STORE_OPEN_EXCLUSIVE,
			     &made->file);
	pthread_mutex_lock(&data->lock);
	end_busy_state(data, made);
	made->name_dirty = true;
	made->writing = true;
	data_renew_marks(data, made);
	if (rc)
		data_put(data, made);
	pthread_mutex_unlock(&data->lock);
	*object = made;
	return rc;
}

void data_dirty(struct store_data *data, struct data_object *object, uint64_t end)
{
	pthread_mutex_lock(&data->lock);
	if (end > object->end)
		object->end = end;
	object->unflushed = true;
	if (!object->dirty && !object->removed) {
		object->dirty = true;
		data_hold(data, object);
		object->next_dirty = data->dirty;
		data->dirty = object;
		data->dirty_count++;
	}
	pthread_mutex_unlock(&data->lock);
}

int data_lost(const struct data_object *object, uint64_t end)
{
	int failed = atomic_load(&object->failed);

	return failed && end > atomic_load(&object->safe) ? failed : 0;
}

/* -- marks of verified blocks -- */

#define MARKS_TOGETHER 8 /* places of a block: a line of the processor's cache */

static uint64_t mix_bits(uint64_t value)
{
	value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9ull;
	value = (value ^ value >> 27) * 0x94d049bb133111ebull;
	return value ^ value >> 31;
}

/* Not 0, and other ones after a while. */
static uint64_t make_block_mark(const struct store_data *data, const struct data_object *object,
				uint64_t number, uint32_t crc)
{
	uint64_t now = (uint64_t)read_clock_ns(CLOCK_MONOTONIC_COARSE) + data->ahead;
	uint64_t mark = mix_bits(atomic_load(&object->opened) + 0x9e3779b97f4a7c15ull * number);

	return mix_bits(mark + (now / DATA_VERIFIED_NS << 32) + crc) | 1;
}

/* The same for all marks of a block. */
static _Atomic uint64_t *find_block_marks(struct store_data *data, const struct data_object *object,
					  uint64_t number)
{
	uint64_t hash = mix_bits(mix_bits(atomic_load(&object->opened)) + number);

	return &data->verified[hash % (DATA_VERIFIED / MARKS_TOGETHER) * MARKS_TOGETHER];
}

bool data_is_verified(struct store_data *data, const struct data_object *object, uint64_t number,
		      uint32_t crc)
{
	const _Atomic uint64_t *place = find_block_marks(data, object, number);
	uint64_t mark = make_block_mark(data, object, number, crc);
	bool found = false;

	for (unsigned i = 0; i < MARKS_TOGETHER; i++)
		found |= atomic_load_explicit(&place[i], memory_order_relaxed) == mark;
	return found;
}

/* In an empty place, or in that of another block. */
void data_note_verified(struct store_data *data, const struct data_object *object, uint64_t number,
			uint32_t crc)
{
	_Atomic uint64_t *place = find_block_marks(data, object, number);
	uint64_t mark = make_block_mark(data, object, number, crc);
	unsigned at = mark / 2 % MARKS_TOGETHER;

	for (unsigned i = 0; i < MARKS_TOGETHER; i++)
		if (!atomic_load_explicit(&place[i], memory_order_relaxed))
			at = i;
	atomic_store_explicit(&place[at], mark, memory_order_relaxed);
}

/* Also the marks of other blocks in the same places. */
static void forget_verified_blocks(struct store_data *data, const struct data_object *object,
				   uint64_t first, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		_Atomic uint64_t *place = find_block_marks(data, object, first + i);

		for (unsigned k = 0; k < MARKS_TOGETHER; k++)
			atomic_store_explicit(&place[k], 0, memory_order_relaxed);
	}
}

/* -- lost bytes -- */

void data_fail(struct store_data *data, struct data_object *object, int error)
{
	assert(mutex_is_held(&data->lock) && error < 0);
	atomic_store(&object->failed, error);
	atomic_store(&data->any_lost, true);
	data->unrecorded = true;
}

bool store_data_any_lost(struct store_data *data)
{
	return atomic_load(&data->any_lost);
}

static bool is_slot_lost(struct store_data *data, const struct store_slot *slot, uint64_t start)
{
	bool is = false;

	pthread_mutex_lock(&data->lock);
	for (uint32_t i = 0; i < slot->count && !is; i++) {
		const struct store_block *block = &slot->block[i];
		const struct data_object *object =
			block->object ? find_known_object(data, block->object) : NULL;

		is = object && data_lost(object, start + (uint64_t)i * STORE_BLOCK + block->filled);
	}
	pthread_mutex_unlock(&data->lock);
	return is;
}

bool store_data_is_lost(struct store_data *data, const struct store_content *content)
{
	for (uint32_t at = 0; store_content_next(content, &at); at++)
		if (is_slot_lost(data, store_content_slot(content, at), (uint64_t)at * STORE_SLOT))
			return true;
	return false;
}

static bool needs_lost_record(const struct data_object *object)
{
	return has_lost_bytes(object) && !object->removed &&
	       (!object->recorded || object->recorded_safe > atomic_load(&object->safe));
}

bool store_data_lost_next(struct store_data *data, struct store_lost *out)
{
	bool found = false;

	pthread_mutex_lock(&data->lock);
	for (size_t i = 0; data->unrecorded && !found && i < data->objects.size; i++)
		for (struct data_object *object = *htable_chain(&data->objects, i);
		     object && !found; object = object->link) {
			found = needs_lost_record(object);
			if (found)
				*out = (struct store_lost){object->owner, object->number,
							   atomic_load(&object->safe)};
		}
	data->unrecorded = found;
	pthread_mutex_unlock(&data->lock);
	return found;
}

void store_data_lost_recorded(struct store_data *data, const struct store_lost *what)
{
	struct data_object *object;

	pthread_mutex_lock(&data->lock);
	object = find_known_object(data, what->object);
	if (object) {
		object->recorded = true;
		object->recorded_safe = what->safe;
	}
	pthread_mutex_unlock(&data->lock);
}

int data_set_lost(struct store_data *data, const struct store_lost *what, bool recorded)
{
	struct data_object *object;

	pthread_mutex_lock(&data->lock);
	object = find_steady_object(data, what->object);
	if (object)
		data_hold(data, object);
	else
		object = make_busy_object(data, &what->owner, what->object);
	if (object) {
		atomic_store(&object->safe, what->safe);
		data_fail(data, object, -EIO);
		object->recorded = recorded;
		object->recorded_safe = what->safe;
		end_busy_state(data, object);
		data_put(data, object); /* it stays, without a file */
	}
	pthread_mutex_unlock(&data->lock);
	return object ? 0 : -ENOMEM;
}

int store_data_set_lost(struct store_data *data, const struct store_lost *what)
{
	return data_set_lost(data, what, true);
}

/* -- the interface -- */

int store_data_settle(struct store_data *data, const struct store_owner *owner, uint64_t number)
{
	struct data_object *object;
	struct store_file *file = NULL;
	int rc;

	pthread_mutex_lock(&data->lock);
	object = find_steady_object(data, number);
	if (object && object->settled) {
		pthread_mutex_unlock(&data->lock);
		return 0;
	}
	if (object) {
		data_hold(data, object);
		object->busy = true;
	} else {
		object = make_busy_object(data, owner, number);
	}
	pthread_mutex_unlock(&data->lock);
	if (!object)
		return -ENOMEM;
	rc = move_to_name(data->layer, owner, number);
	pthread_mutex_lock(&data->lock);
	object->settled = rc == 0;
	end_busy_state(data, object);
	file = data_put(data, object);
	pthread_mutex_unlock(&data->lock);
	close_layer_file(data, file);
	return rc;
}

/* A name in "files/new" is found again when the store is opened. */
static void note_removed_directory(struct store_data *data, const struct store_owner *owner)
{
	char path[DATA_PATH];

	assert(mutex_is_held(&data->lock));
	if (!owner->group || data->removed_count > DATA_REMOVED)
		return;
	data_path_block(owner, path);
	for (unsigned i = 0; i < data->removed_count; i++)
		if (strcmp(data->removed[i], path) == 0)
			return;
	if (data->removed_count < DATA_REMOVED)
		memcpy(data->removed[data->removed_count], path, sizeof(path));
	data->removed_count++;
}

int store_data_sync_removed(struct store_data *data)
{
	char path[DATA_REMOVED][DATA_PATH];
	unsigned count;
	int result = 0;

	pthread_mutex_lock(&data->lock);
	count = data->removed_count;
	memcpy(path, data->removed, sizeof(path));
	data->removed_count = 0;
	pthread_mutex_unlock(&data->lock);
	if (count > DATA_REMOVED)
		return data->layer->ops->sync_all(data->layer);
	for (unsigned i = 0; i < count && !result; i++)
		result = flush_block_directory(data->layer, path[i]);
	return result;
}

int store_data_remove(struct store_data *data, const struct store_owner *owner, uint64_t number)
{
	struct data_object *object;
	struct store_file *file;
	int rc;

	pthread_mutex_lock(&data->lock);
	object = find_steady_object(data, number);
	if (object && (object->writing || object->readers)) {
		pthread_mutex_unlock(&data->lock);
		return -EBUSY;
	}
	if (object) {
		data_hold(data, object);
		object->busy = true;
	} else {
		object = make_busy_object(data, owner, number);
	}
	pthread_mutex_unlock(&data->lock);
	if (!object)
		return -ENOMEM;
	rc = unlink_object(data->layer, owner, number);
	pthread_mutex_lock(&data->lock);
	if (rc == 0) {
		object->removed = true;
		note_removed_directory(data, owner);
		unhash_object(data, object);
	}
	end_busy_state(data, object);
	file = data_put(data, object);
	pthread_mutex_unlock(&data->lock);
	close_layer_file(data, file);
	return rc;
}

int store_data_remove_new(struct store_data *data, uint64_t number)
{
	/* No object with a name has this owner: volumes have numbers greater than 0. */
	return store_data_remove(data, &(struct store_owner){0}, number);
}

int store_data_stat(struct store_data *data, const struct store_owner *owner, uint64_t number,
		    uint64_t *length)
{
	struct data_object *object;
	int rc = data_acquire(data, owner, number, &object);

	if (rc)
		return rc;
	rc = data->layer->ops->size(object->file, length);
	data_release(data, object);
	return rc;
}

int store_data_read(struct store_data *data, const struct store_owner *owner, uint64_t number,
		    void *bytes, size_t length, uint64_t offset)
{
	const struct iovec iov = {bytes, length};
	struct data_object *object;
	int rc = data_acquire(data, owner, number, &object);
	ssize_t n;

	if (rc)
		return rc;
	n = data->layer->ops->preadv(object->file, &iov, 1, offset, false);
	data_release(data, object);
	return n < 0 ? (int)n : (size_t)n < length ? -EIO : 0;
}

/*
 * False: a run has the object. It may go on in a block that is dead by now, and its bytes are read again if it has to move to
 * another object.
 */
static bool begin_punch(struct store_data *data, struct data_object *object, bool *sealed)
{
	bool ours;

	pthread_mutex_lock(&data->lock);
	ours = !object->writing;
	*sealed = object->sealed;
	if (ours)
		object->writing = true;
	pthread_mutex_unlock(&data->lock);
	return ours;
}

static void end_punch(struct store_data *data, struct data_object *object)
{
	pthread_mutex_lock(&data->lock);
	assert(object->writing);
	object->writing = false;
	pthread_mutex_unlock(&data->lock);
}

int store_data_punch(struct store_data *data, const struct store_owner *owner, uint64_t number,
		     uint64_t first, uint32_t count)
{
	struct data_object *object;
	bool sealed;
	int rc = data_acquire(data, owner, number, &object);

	if (rc)
		return rc == -ENOENT ? 0 : rc;
	if (!begin_punch(data, object, &sealed)) {
		data_release(data, object);
		return -EBUSY;
	}
	if (!sealed)
		rc = data->layer->ops->punch(object->file, first * STORE_BLOCK,
					     (uint64_t)count * STORE_BLOCK);
	forget_verified_blocks(data, object, first, count);
	end_punch(data, object);
	data_release(data, object);
	return rc == -EOPNOTSUPP ? 0 : rc;
}

int store_data_open(struct store_layer *layer, unsigned files, struct store_data **out)
{
	struct store_data *data;
	int rc = make_data_directory(layer, "files", ".");

	if (rc == 0)
		rc = make_data_directory(layer, "files/new", "files");
	if (rc && rc != -EROFS)
		return rc;
	data = calloc(1, sizeof(*data));
	if (!data)
		return -ENOMEM;
	data->layer = layer;
	data->files = files ? files : 1;
	if (!htable_init(&data->objects, offsetof(struct data_object, link), hash_data_object, NULL,
			 data->files)) {
		free(data);
		return -ENOMEM;
	}
	pthread_mutex_init(&data->lock, NULL);
	pthread_cond_init(&data->changed, NULL);
	*out = data;
	return 0;
}

static void free_leftover_object(struct store_data *data, struct data_object *object)
{
	assert(object->refs == object->dirty);
	close_layer_file(data, object->file);
	free(object);
}

void store_data_close(struct store_data *data)
{
	if (!data)
		return;
	/* Runs and views have ended: what is left are idle, dirty and failed objects. */
	for (struct data_object *object = data->dirty, *next; object; object = next) {
		next = object->next_dirty;
		if (!object->known)
			free_leftover_object(data, object);
	}
	for (size_t i = 0; i < data->objects.size; i++)
		for (struct data_object *object = *htable_chain(&data->objects, i), *next; object;
		     object = next) {
			next = object->link;
			free_leftover_object(data, object);
		}
	htable_fini(&data->objects, NULL);
	while (data->buffers)
		free(data->buffer[--data->buffers]);
	pthread_mutex_destroy(&data->lock);
	pthread_cond_destroy(&data->changed);
	free(data);
}
