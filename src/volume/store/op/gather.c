/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ranges of a file that a client sends in any order, each by a run of its own. Nothing shows them until one transaction makes a
 * version of all of them. Their objects have no row before, so those of a process that is killed go when the store is opened.
 */
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "common/grow.h"
#include "common/held.h"
#include "volume/store/op/gather.h"

#define WASTE 4 /* a part of the length: so much of the disk may be wasted by ranges that overlap */

struct gather {
	struct core *core; /* constant, as the next two */
	struct store_owner owner;
	uint64_t length;
	_Atomic unsigned refs;
	pthread_mutex_t lock; /* covers the rest */
	struct store_content content;
	uint64_t bytes;	   /* that are there */
	uint64_t wasted;   /* bytes of the objects that came twice */
	uint64_t failures; /* of flushes, before the first range */
	uint64_t *objects; /* that were made for it */
	size_t count, room;
	bool closed, kept;
};

struct gather *gather_new(struct core *core, const struct store_owner *owner, uint64_t length)
{
	struct gather *gather = calloc(1, sizeof(*gather));

	if (!gather)
		return NULL;
	gather->core = core;
	gather->owner = *owner;
	gather->length = length;
	gather->failures = store_data_failures(core->data);
	atomic_init(&gather->refs, 1);
	pthread_mutex_init(&gather->lock, NULL);
	return gather;
}

struct gather *gather_ref(struct gather *gather)
{
	atomic_fetch_add(&gather->refs, 1);
	return gather;
}

void gather_unref(struct gather *gather)
{
	if (!gather || atomic_fetch_sub(&gather->refs, 1) != 1)
		return;
	for (size_t i = 0; i < gather->count && !gather->kept; i++)
		store_data_remove(gather->core->data, &gather->owner, gather->objects[i]);
	store_content_free(&gather->content);
	pthread_mutex_destroy(&gather->lock);
	free(gather->objects);
	free(gather);
}

void gather_lock(struct gather *gather)
{
	pthread_mutex_lock(&gather->lock);
}

void gather_unlock(struct gather *gather)
{
	pthread_mutex_unlock(&gather->lock);
}

int gather_check(struct gather *gather, uint64_t offset, uint64_t length)
{
	uint64_t end = offset + length;
	bool closed, full;

	if (!length || end < offset || end > gather->length || offset % STORE_BLOCK ||
	    (end % STORE_BLOCK && end != gather->length))
		return -EINVAL;
	gather_lock(gather);
	closed = gather->closed;
	full = gather->count >= GATHER_OBJECTS;
	gather_unlock(gather);
	return length > GATHER_RANGE || full ? -EFBIG : closed ? -ESTALE : 0;
}

void gather_base(struct gather *gather, struct store_content *content)
{
	gather_lock(gather);
	store_content_copy(&gather->content, content);
	gather_unlock(gather);
}

/* How many blocks from `at` on are alike: there already, or not. */
static uint32_t count_alike_blocks(const struct gather *gather, const struct store_patch *patch,
				   uint32_t at, bool *present)
{
	uint32_t end = at;

	*present = store_content_block(&gather->content, patch->first + at) != NULL;
	while (end < patch->count &&
	       (store_content_block(&gather->content, patch->first + end) != NULL) == *present)
		end++;
	return end - at;
}

/* Bytes of the file in `count` blocks. */
static uint64_t count_block_bytes(const struct gather *gather, uint64_t first, uint32_t count)
{
	uint64_t start = first * STORE_BLOCK, end = start + (uint64_t)count * STORE_BLOCK;

	return (end < gather->length ? end : gather->length) - start;
}

static int add_missing_blocks(struct gather *gather, const struct store_patch *patch)
{
	int result = 0;
	bool present;

	assert(mutex_is_held(&gather->lock));
	for (uint32_t i = 0, n; i < patch->count && !result; i += n) {
		struct store_patch part = {patch->first + i, patch->block + i, 0};
		uint64_t bytes;

		n = part.count = count_alike_blocks(gather, patch, i, &present);
		bytes = count_block_bytes(gather, part.first, n);
		if (present) {
			gather->wasted += bytes;
		} else {
			gather->bytes += bytes;
			result = store_content_apply(&gather->content, gather->length, &part);
		}
	}
	/* A part of the blocks may be there: the contents will never be whole. */
	if (result)
		gather->bytes = UINT64_MAX;
	return result;
}

/* Bytes of the patch that are there. */
static uint64_t count_present_bytes(const struct gather *gather, const struct store_patch *patch)
{
	uint64_t bytes = 0;
	bool present;

	for (uint32_t i = 0, n; i < patch->count; i += n) {
		n = count_alike_blocks(gather, patch, i, &present);
		bytes += present ? count_block_bytes(gather, patch->first + i, n) : 0;
	}
	return bytes;
}

/* Bytes that are there, up to the first block of the patch that is missing. */
static uint64_t count_leading_bytes(const struct gather *gather, const struct store_patch *patch)
{
	bool present;
	uint32_t n = count_alike_blocks(gather, patch, 0, &present);

	assert(n <= patch->count);
	return present ? count_block_bytes(gather, patch->first, n) : 0;
}

int gather_add(struct gather *gather, const struct store_run *run, struct store_patch *patch,
	       uint64_t bytes, uint64_t *taken, bool *used)
{
	uint64_t start = patch->first * STORE_BLOCK, present, made = store_run_made(run);
	bool wasteful;
	int result = 0;

	if (start + bytes < gather->length)
		bytes = bytes / STORE_BLOCK * STORE_BLOCK;
	patch->count = (uint32_t)((bytes + STORE_BLOCK - 1) / STORE_BLOCK);
	*used = false;
	gather_lock(gather);
	present = count_present_bytes(gather, patch);
	/* The objects keep what is not used. */
	wasteful = present < bytes && gather->wasted + present > gather->length / WASTE;
	*taken = gather->closed ? 0 : wasteful ? count_leading_bytes(gather, patch) : bytes;
	if (*taken > present) {
		if (made && !grow_array(&gather->objects, &gather->room, gather->count,
					sizeof(*gather->objects)))
			result = -ENOMEM;
		else
			result = add_missing_blocks(gather, patch);
		*used = result == 0;
		if (*used && made)
			gather->objects[gather->count++] = made;
	}
	gather_unlock(gather);
	return result;
}

int gather_close(struct gather *gather, uint64_t bytes)
{
	int result;

	gather_lock(gather);
	assert(!gather->closed);
	gather->closed = true;
	result = gather->bytes == bytes ? 0 : -EINVAL;
	gather_unlock(gather);
	/* The runs, which know what was lost, have ended. */
	if (!result && store_data_failures(gather->core->data) != gather->failures)
		result = -EIO;
	return result;
}

void gather_content(struct gather *gather, struct store_content *content)
{
	assert(gather->closed);
	store_content_copy(&gather->content, content);
}

void gather_note_objects(struct gather *gather, struct work *work)
{
	struct db_object object = {.owner = gather->owner};

	assert(gather->closed);
	for (size_t i = 0; i < gather->count; i++) {
		object.id = gather->objects[i];
		work_object_made(work, &object);
	}
}

void gather_keep(struct gather *gather)
{
	assert(gather->closed);
	gather->kept = true;
}
