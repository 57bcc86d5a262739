/* SPDX-License-Identifier: BSD-2-Clause */
/* Blocks of files in memory, their buffers, and the budget of memory. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "client/data/filesteps.h"
#include "common/grow.h"
#include "common/held.h"

#define AREA_BYTES    (2u * 1024 * 1024) /* of buffers, allocated at a time */
#define AREA_LEAST    (64u * 1024)	 /* smaller blocks are allocated one by one */

#define RECYCLE_LOOKS 64u /* at the oldest blocks: several reads have lent theirs */

static void recycle_block(struct cl_data *data, struct cl_data_file *mine);

/* -- buffers -------------------------------------------------------------------------------- */

/*
 * Buffers of whole blocks come from areas and stay for the next blocks: the first touch of new memory costs more than the copy of its
 * bytes. An area is a large page, if the kernel has one: the kernel then finds the pages of a buffer faster.
 */
struct area {
	struct area *next;
	unsigned char *bytes;
	struct buffer buffers[];
};

static bool has_areas(const struct cl_data *data)
{
	return block_size(data) >= AREA_LEAST && block_size(data) < AREA_BYTES;
}

/* More spare buffers. With the lock of the instance. */
static void add_area(struct cl_data *data)
{
	size_t count = AREA_BYTES / block_size(data);
	struct area *area = calloc(1, sizeof(*area) + count * sizeof(struct buffer));

	if (!area)
		return;
	area->bytes = aligned_alloc(AREA_BYTES, AREA_BYTES);
	if (!area->bytes) {
		free(area);
		return;
	}
	madvise(area->bytes, AREA_BYTES, MADV_HUGEPAGE);
	area->next = data->areas;
	data->areas = area;
	for (size_t i = 0; i < count; i++) {
		area->buffers[i] = (struct buffer){.data = data,
						   .size = block_size(data),
						   .bytes = area->bytes + i * block_size(data),
						   .next = data->spare};
		data->spare = &area->buffers[i];
	}
}

static struct buffer *take_spare(struct cl_data *data)
{
	struct buffer *buffer;

	pthread_mutex_lock(&data->lock);
	if (!data->spare)
		add_area(data);
	buffer = data->spare;
	if (buffer)
		data->spare = buffer->next;
	pthread_mutex_unlock(&data->lock);
	return buffer;
}

void buffers_free_areas(struct cl_data *data)
{
	for (struct area *area = data->areas, *next; area; area = next) {
		next = area->next;
		free(area->bytes);
		free(area);
	}
	data->areas = NULL;
}

static struct buffer *allocate_buffer(struct cl_data *data, uint32_t size)
{
	struct buffer *buffer = calloc(1, sizeof(*buffer));

	if (!buffer)
		return NULL;
	buffer->bytes = aligned_alloc(BLOCK_MIN, size);
	if (!buffer->bytes) {
		free(buffer);
		return NULL;
	}
	buffer->data = data;
	buffer->size = size;
	return buffer;
}

struct buffer *buffer_make(struct cl_data *data, uint32_t need)
{
	uint32_t size = BLOCK_MIN;
	struct buffer *buffer;

	while (size < need)
		size *= 2;
	assert(size <= block_size(data));
	buffer = size == block_size(data) && has_areas(data) ? take_spare(data)
							     : allocate_buffer(data, size);
	if (!buffer)
		return NULL;
	buffer->lent_end = 0;
	atomic_init(&buffer->references, 1);
	atomic_fetch_add(&data->memory, size);
	return buffer;
}

void buffer_put(struct buffer *buffer)
{
	struct cl_data *data = buffer->data;

	if (atomic_fetch_sub_explicit(&buffer->references, 1, memory_order_acq_rel) > 1)
		return;
	atomic_fetch_sub(&data->memory, buffer->size);
	if (buffer->size == block_size(data) && has_areas(data)) {
		pthread_mutex_lock(&data->lock);
		buffer->next = data->spare;
		data->spare = buffer;
		pthread_mutex_unlock(&data->lock);
		return;
	}
	free(buffer->bytes);
	free(buffer);
}

struct buffer *block_lend(struct block *block, uint32_t end)
{
	struct buffer *buffer = block->buffer;

	assert(mutex_is_held(&block->file->lock));
	assert(buffer && end <= buffer->size);
	if (atomic_load_explicit(&buffer->references, memory_order_acquire) == 1)
		buffer->lent_end = 0;
	if (buffer->lent_end < end)
		buffer->lent_end = end;
	atomic_fetch_add(&buffer->references, 1);
	return buffer;
}

/* A buffer with [0, end), in which bytes from `start` on may be changed. A new one has `likely` bytes, if that is more. */
static int own_buffer(struct block *block, uint32_t start, uint32_t end, uint32_t likely)
{
	struct buffer *old = block->buffer, *buffer;
	const struct extent *valid = extents_all(&block->valid);
	uint32_t valid_end = block->valid.count ? valid[block->valid.count - 1].end : 0;

	if (old && end <= old->size &&
	    (start >= old->lent_end ||
	     atomic_load_explicit(&old->references, memory_order_acquire) == 1))
		return 0;
	if (end < valid_end)
		end = valid_end;
	if (end < likely)
		end = likely;
	block->busy++; /* not to be evicted itself */
	budget_make_room(block->file->data, block->file, end);
	if (end > block_size(block->file->data) / 2)
		recycle_block(block->file->data, block->file);
	block->busy--;
	buffer = buffer_make(block->file->data, end);
	if (!buffer)
		return -ENOMEM;
	for (uint32_t i = 0; i < block->valid.count; i++)
		memcpy(buffer->bytes + valid[i].start, old->bytes + valid[i].start,
		       valid[i].end - valid[i].start);
	block->buffer = buffer;
	if (old)
		buffer_put(old);
	return 0;
}

/* -- blocks --------------------------------------------------------------------------------- */

size_t block_index(const struct cl_data_file *file, uint64_t number)
{
	size_t low = 0, high = file->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (file->blocks[middle]->number < number)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct block *block_find(struct cl_data_file *file, uint64_t number)
{
	size_t i = block_index(file, number);

	assert(mutex_is_held(&file->lock));
	return i < file->count && file->blocks[i]->number == number ? file->blocks[i] : NULL;
}

struct block *block_get(struct cl_data_file *file, uint64_t number)
{
	size_t i = block_index(file, number);
	struct block *block = i < file->count ? file->blocks[i] : NULL;

	assert(mutex_is_held(&file->lock));
	if (block && block->number == number)
		return block;
	if (!grow_array(&file->blocks, &file->room, file->count, sizeof(struct block *)))
		return NULL;
	block = calloc(1, sizeof(*block));
	if (!block)
		return NULL;
	block->file = file;
	block->number = number;
	block->used = true;
	memmove(file->blocks + i + 1, file->blocks + i, (file->count - i) * sizeof(struct block *));
	file->blocks[i] = block;
	file->count++;
	pthread_mutex_lock(&file->data->lock);
	link_first(&file->data->blocks, &block->age);
	file->data->block_count++;
	pthread_mutex_unlock(&file->data->lock);
	return block;
}

/* It is in no list of the budget. The buffer, for the caller to put. */
static struct buffer *free_block(struct cl_data_file *file, struct block *block)
{
	struct buffer *buffer = block->buffer;
	size_t i = block_index(file, block->number);

	assert(i < file->count && file->blocks[i] == block);
	assert(!block->busy && !block->dirty.count);
	file->count--;
	memmove(file->blocks + i, file->blocks + i + 1, (file->count - i) * sizeof(struct block *));
	extents_clear(&block->valid);
	extents_clear(&block->dirty);
	extents_clear(&block->again);
	free(block);
	return buffer;
}

void block_remove(struct cl_data_file *file, struct block *block)
{
	struct buffer *buffer;

	assert(mutex_is_held(&file->lock));
	pthread_mutex_lock(&file->data->lock);
	unlink_item(&block->age);
	file->data->block_count--;
	pthread_mutex_unlock(&file->data->lock);
	buffer = free_block(file, block);
	if (buffer)
		buffer_put(buffer);
}

/* Counts changes of the file and of all files. */
static void count_dirty(struct cl_data_file *file, uint32_t more, uint32_t less)
{
	atomic_fetch_add(&file->dirty, (uint64_t)more - less);
	atomic_fetch_add(&file->data->dirty, (uint64_t)more - less);
}

/* The next bytes of several places. NULL: passed over. */
static void copy_next_bytes(struct places *from, unsigned char *to, size_t length)
{
	while (length) {
		size_t part = from->iov->iov_len - from->used;

		if (part > length)
			part = length;
		if (to) {
			memcpy(to, (const unsigned char *)from->iov->iov_base + from->used, part);
			to += part;
		}
		from->used += part;
		length -= part;
		if (from->used < from->iov->iov_len)
			return;
		from->iov++;
		from->used = 0;
	}
}

void places_skip(struct places *from, size_t length)
{
	copy_next_bytes(from, NULL, length);
}

/* Copies a change in. The buffer is ready. */
static int write_dirty(struct block *block, uint32_t start, struct places *from, uint32_t end)
{
	uint32_t grown, ignored;
	uint64_t base = block->number << block->file->data->block_shift;
	bool again =
		base + start < block->file->storing_to && base + end > block->file->storing_from;

	/* All memory before the first change. With the second line block_drop_clean() can always leave what is dirty. */
	if (!extents_reserve(&block->dirty, block->dirty.count + 1) ||
	    !extents_reserve(&block->valid, block->valid.count + block->dirty.count + 2) ||
	    (again && !extents_reserve(&block->again, block->again.count + 1)))
		return -ENOMEM;
	copy_next_bytes(from, block->buffer->bytes + start, end - start);
	if (again)
		extents_add(&block->again, start, end, &ignored);
	extents_add(&block->valid, start, end, &ignored);
	extents_add(&block->dirty, start, end, &grown);
	count_dirty(block->file, grown, 0);
	return 0;
}

/* Bytes that a block may have soon: what the server has of it, or four times what was written so far. */
static uint32_t likely_size(const struct block *block, bool dirty)
{
	const struct cl_data_file *file = block->file;
	uint64_t base = block->number << file->data->block_shift, likely = 0;
	uint32_t size = block_size(file->data);

	if (!dirty && file_known_end(file) > base)
		likely = file_known_end(file) - base;
	else if (dirty && block->buffer)
		likely = 4ull * block->buffer->size;
	return likely < size ? (uint32_t)likely : size;
}

int block_change(struct block *block, uint32_t start, const void *bytes, uint32_t length)
{
	const struct iovec iov = {(void *)(uintptr_t)bytes, length};
	struct places places = {&iov, 0};
	int error;

	assert(mutex_is_held(&block->file->lock));
	assert(length && start + length <= block_size(block->file->data));
	block->used = true;
	error = own_buffer(block, start, start + length, likely_size(block, true));
	return error ? error : write_dirty(block, start, &places, start + length);
}

int block_fill(struct block *block, uint32_t start, struct places *places, uint32_t length)
{
	uint32_t end = start + length, at = start, from = start, to, ignored;
	int error;

	assert(mutex_is_held(&block->file->lock));
	assert(length && end <= block_size(block->file->data));
	block->used = true;
	for (; (from = extents_gap(&block->valid, from, end, &to)) < end; from = at = to) {
		error = own_buffer(block, from, to, likely_size(block, false));
		if (!error && !extents_add(&block->valid, from, to, &ignored))
			error = -ENOMEM;
		if (error)
			return error;
		places_skip(places, from - at);
		copy_next_bytes(places, block->buffer->bytes + from, to - from);
	}
	places_skip(places, end - at);
	return 0;
}

void block_drop_clean(struct block *block, uint32_t start, uint32_t end)
{
	uint32_t ignored;
	const struct extent *dirty;

	assert(mutex_is_held(&block->file->lock));
	if (!extents_cut(&block->valid, start, end, &ignored)) {
		extents_copy(&block->valid, &block->dirty);
		return;
	}
	for (uint32_t at = start; at < end && (dirty = extents_after(&block->dirty, at)) != NULL;
	     at = dirty->end) {
		if (dirty->start >= end)
			break;
		if (!extents_add(&block->valid, dirty->start, dirty->end, &ignored)) {
			extents_copy(&block->valid, &block->dirty);
			return;
		}
	}
}

void block_set_stored(struct block *block, uint32_t start, uint32_t end)
{
	uint32_t from = start, to, shrunk;

	assert(mutex_is_held(&block->file->lock));
	/* Without memory the bytes stay dirty, and are stored once more. */
	for (; (from = extents_gap(&block->again, from, end, &to)) < end; from = to)
		if (extents_cut(&block->dirty, from, to, &shrunk))
			count_dirty(block->file, 0, shrunk);
}

void block_cut(struct block *block, uint32_t start)
{
	uint32_t shrunk;

	extents_cut(&block->again, start, UINT32_MAX, &shrunk);
	extents_cut(&block->valid, start, UINT32_MAX, &shrunk);
	extents_cut(&block->dirty, start, UINT32_MAX, &shrunk);
	count_dirty(block->file, 0, shrunk);
}

/* -- blocks of a file ----------------------------------------------------------------------- */

/* The end of the range of missing bytes that begins at `at` in a block; `at` if none does. */
static uint64_t end_of_gap(struct cl_data_file *file, uint64_t at, uint64_t end)
{
	uint64_t base = at & ~(uint64_t)(block_size(file->data) - 1);
	uint64_t block_end = base + block_size(file->data);
	struct block *block = block_find(file, at >> file->data->block_shift);
	uint32_t gap, gap_end, start = (uint32_t)(at - base);

	if (end > block_end)
		end = block_end;
	if (!block)
		return end;
	gap = extents_gap(&block->valid, start, (uint32_t)(end - base), &gap_end);
	return gap == start ? base + gap_end : at;
}

/* The first byte from `at` on in its block that is not valid. */
static uint64_t skip_valid(struct cl_data_file *file, uint64_t at, uint64_t end)
{
	uint64_t base = at & ~(uint64_t)(block_size(file->data) - 1);
	uint64_t block_end = base + block_size(file->data);
	struct block *block = block_find(file, at >> file->data->block_shift);
	uint32_t ignored;

	if (end > block_end)
		end = block_end;
	return block ? base + extents_gap(&block->valid, (uint32_t)(at - base),
					  (uint32_t)(end - base), &ignored)
		     : at;
}

bool file_find_missing(struct cl_data_file *file, uint64_t start, uint64_t end, uint64_t *from,
		       uint64_t *to)
{
	uint64_t known = file_known_end(file), next;

	if (end > known)
		end = known;
	while (start < end && (next = skip_valid(file, start, end)) > start)
		start = next;
	if (start >= end)
		return false;
	*from = start;
	for (*to = start; *to < end; *to = next) {
		next = end_of_gap(file, *to, end);
		if (next == *to)
			break;
	}
	return *to > *from;
}

bool file_covers(struct cl_data_file *file, uint64_t start, uint64_t end)
{
	uint64_t from, to;

	return !file_find_missing(file, start, end, &from, &to);
}

bool file_find_dirty(struct cl_data_file *file, uint64_t start, uint64_t *from, uint64_t *to)
{
	unsigned shift = file->data->block_shift;
	bool found = false;

	for (size_t i = block_index(file, start >> shift); i < file->count; i++) {
		struct block *block = file->blocks[i];
		uint64_t base = block->number << shift;
		const struct extent *dirty =
			extents_after(&block->dirty, start > base ? (uint32_t)(start - base) : 0);

		if (!dirty && !found)
			continue;
		if (found && (!dirty || dirty->start || *to != base))
			return true;
		if (!found) {
			*from = base + dirty->start;
			if (*from < start)
				*from = start;
		}
		found = true;
		*to = base + dirty->end;
		if (dirty->end < block_size(file->data))
			return true;
	}
	return found;
}

void file_end_fetches(struct cl_data_file *file, uint64_t start, uint64_t end)
{
	for (struct fetch *fetch = file->fetches; fetch; fetch = fetch->next)
		if (fetch->start < end && fetch->end > start)
			fetch->limit = fetch->start;
}

void file_drop_clean(struct cl_data_file *file, uint64_t keep, uint64_t keep_end)
{
	uint32_t size = block_size(file->data);

	assert(mutex_is_held(&file->lock));
	file_end_fetches(file, 0, UINT64_MAX);
	for (size_t i = file->count; i-- > 0;) {
		struct block *block = file->blocks[i];
		uint64_t base = block->number << file->data->block_shift, end = base + size;
		uint64_t low = keep > base ? keep - base : 0;
		uint64_t high = keep_end > base ? keep_end - base : 0;

		block->on_disk = false;
		if (keep >= keep_end || keep >= end || keep_end <= base) {
			block_drop_clean(block, 0, size);
		} else {
			block_drop_clean(block, 0, (uint32_t)low);
			if (high < size)
				block_drop_clean(block, (uint32_t)high, size);
		}
		if (!block->valid.count && !block->busy)
			block_remove(file, block);
	}
}

/* -- the budget ----------------------------------------------------------------------------- */

/* Frees a block, if nothing needs it. With the locks of the budget and of its file. The buffer, to be put; NULL: none. */
static struct buffer *evict_block(struct block *block)
{
	struct cl_data *data = block->file->data;

	if (block->busy || block->dirty.count ||
	    (block->buffer && atomic_load(&block->buffer->references) > 1))
		return NULL;
	if (block->used) {
		block->used = false;
		return NULL;
	}
	unlink_item(&block->age);
	data->block_count--;
	return free_block(block->file, block);
}

void block_consume(struct block *block)
{
	struct cl_data *data = block->file->data;

	assert(mutex_is_held(&block->file->lock));
	block->used = false;
	block->consumed = true;
	pthread_mutex_lock(&data->lock);
	unlink_item(&block->age);
	link_first(data->blocks.previous, &block->age);
	pthread_mutex_unlock(&data->lock);
}

/* Frees a block whose bytes the kernel has, rather than to touch new memory. The caller may hold the lock of `mine`. */
static void recycle_block(struct cl_data *data, struct cl_data_file *mine)
{
	struct buffer *victim = NULL;
	struct link *at;

	pthread_mutex_lock(&data->lock);
	at = data->blocks.previous;
	for (unsigned looks = data->spare ? 0 : RECYCLE_LOOKS;
	     looks && at != &data->blocks && !victim; looks--) {
		struct block *block =
			(struct block *)(void *)((char *)at - offsetof(struct block, age));
		struct cl_data_file *file = block->file;

		at = at->previous;
		if (file != mine && pthread_mutex_trylock(&file->lock))
			continue;
		if (block->consumed && !block->used)
			victim = evict_block(block);
		if (file != mine)
			pthread_mutex_unlock(&file->lock);
	}
	pthread_mutex_unlock(&data->lock);
	if (victim)
		buffer_put(victim);
}

/* The next buffer that is evicted; NULL: none can be. The hand has *looks left. */
static struct buffer *pick_old_buffer(struct cl_data *data, struct cl_data_file *mine,
				      size_t *looks)
{
	struct buffer *victim = NULL;

	pthread_mutex_lock(&data->lock);
	while (!victim && *looks > 0 && data->blocks.previous != &data->blocks) {
		struct link *oldest = data->blocks.previous;
		struct block *block =
			(struct block *)(void *)((char *)oldest - offsetof(struct block, age));
		struct cl_data_file *file = block->file;

		--*looks;
		unlink_item(oldest);
		link_first(&data->blocks, oldest);
		if (file != mine && pthread_mutex_trylock(&file->lock))
			continue;
		victim = evict_block(block);
		if (file != mine)
			pthread_mutex_unlock(&file->lock);
	}
	pthread_mutex_unlock(&data->lock);
	return victim;
}

void budget_make_room(struct cl_data *data, struct cl_data_file *mine, uint64_t more)
{
	size_t looks;

	if (atomic_load(&data->memory) + more <= data->options.memory_most)
		return;
	pthread_mutex_lock(&data->lock);
	looks = 2 * data->block_count;
	pthread_mutex_unlock(&data->lock);
	while (atomic_load(&data->memory) + more > data->options.memory_most) {
		struct buffer *buffer = pick_old_buffer(data, mine, &looks);

		if (!buffer)
			break;
		buffer_put(buffer);
	}
}
