/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists of extents: the effect of a write, a truncation or a hole on a content. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "volume/store/data/data.h"

void store_content_free(struct store_content *content)
{
	free(content->extent);
	memset(content, 0, sizeof(*content));
}

int store_content_copy(const struct store_content *from, struct store_content *to)
{
	size_t size = from->count * sizeof(*from->extent);
	struct store_extent *extent = size ? malloc(size) : NULL;

	if (size && !extent)
		return -ENOMEM;
	if (size)
		memcpy(extent, from->extent, size);
	*to = *from;
	to->extent = extent;
	return 0;
}

bool store_content_has(const struct store_content *content, uint64_t object)
{
	for (uint32_t i = 0; i < content->count; i++)
		if (content->extent[i].object == object)
			return true;
	return false;
}

bool store_content_shows(const struct store_content *content, const struct store_content *window)
{
	uint32_t at;

	if (!window->count)
		return false;
	at = store_content_behind(content, window->extent[0].start);
	return content->count - at >= window->count &&
	       !memcmp(&content->extent[at], window->extent,
		       window->count * sizeof(*window->extent));
}

/* Add the part of an extent that lies in [start, end). The array has room for it. */
static void add_extent_part(struct store_content *content, const struct store_extent *extent,
			    uint64_t start, uint64_t end)
{
	struct store_extent part = *extent;
	struct store_extent *last = content->count ? &content->extent[content->count - 1] : NULL;

	if (part.start < start)
		part.start = start;
	if (part.end > end)
		part.end = end;
	if (part.start >= part.end)
		return;
	assert(!last || last->end <= part.start);
	/* An extent has the same offset in its object as in the content: neighbours are one. */
	if (last && last->end == part.start && last->object == part.object)
		last->end = part.end;
	else
		content->extent[content->count++] = part;
}

uint32_t store_content_behind(const struct store_content *content, uint64_t offset)
{
	uint32_t low = 0, high = content->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (content->extent[middle].end > offset)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static void add_all_extents(struct store_content *content, const struct store_content *from,
			    uint64_t start, uint64_t end)
{
	for (uint32_t i = 0; i < from->count; i++)
		add_extent_part(content, &from->extent[i], start, end);
}

/*
 * The same for a list whose extents are merged already. The first and the last extent of the range may
 * be cut, or may continue the extent before them. The others are copied.
 */
static void add_extent_range(struct store_content *content, const struct store_content *from,
			     uint64_t start, uint64_t end)
{
	uint32_t first = store_content_behind(from, start);
	uint32_t last = store_content_behind(from, end);

	if (first == from->count)
		return;
	add_extent_part(content, &from->extent[first], start, end);
	if (last > first + 1) {
		memcpy(&content->extent[content->count], &from->extent[first + 1],
		       (last - first - 1) * sizeof(*content->extent));
		content->count += last - first - 1;
	}
	if (last > first && last < from->count)
		add_extent_part(content, &from->extent[last], start, end);
}

/*
 * Bytes may be added where the last writer ended. A content that refers to nothing in an object
 * does not keep it, and must not add to it.
 */
static void set_content_tail(struct store_content *result, const struct store_content *content,
			     const struct store_content *patch)
{
	const struct store_content *from = patch->tail_object ? patch : content;

	if (!from->tail_object || !store_content_has(result, from->tail_object))
		return;
	result->tail_object = from->tail_object;
	result->tail = from->tail;
	if (content->tail_object == result->tail_object && content->tail > result->tail)
		result->tail = content->tail;
}

int store_content_apply(struct store_content *content, const struct store_content *patch,
			uint64_t start, uint64_t end, uint64_t length, uint32_t limit)
{
	struct store_content result = {0};
	size_t room = (size_t)content->count + patch->count + 1;

	if (end > length)
		end = length;
	if (start > end)
		start = end;
	result.extent = malloc(room * sizeof(*result.extent));
	if (!result.extent)
		return -ENOMEM;
	add_extent_range(&result, content, 0, start);
	add_all_extents(&result, patch, start, end);
	add_extent_range(&result, content, end, length);
	assert(result.count <= room);
	if (result.count > limit) {
		free(result.extent);
		return -E2BIG;
	}
	set_content_tail(&result, content, patch);
	if (!result.count) {
		free(result.extent);
		result.extent = NULL;
	}
	free(content->extent);
	*content = result;
	return 0;
}

int store_content_merge(struct store_content *content, const struct store_content *patch)
{
	const struct store_content merged = {.extent = patch->extent, .count = 1};
	uint64_t length = content->count ? content->extent[content->count - 1].end : 0;

	assert(patch->count == 1);
	return store_content_apply(content, &merged, patch->extent->start, patch->extent->end,
				   length, UINT32_MAX);
}
