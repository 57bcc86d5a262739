/* SPDX-License-Identifier: BSD-2-Clause */
/* Sets of bytes of a block. */
#include "client/data/extents.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static struct extent *items_of(struct extents *set)
{
	return set->more ? set->more : &set->first;
}

/* Index of the first range that ends at or after `at`. */
static uint32_t find_extent(const struct extents *set, uint32_t at)
{
	const struct extent *items = extents_all(set);
	uint32_t low = 0, high = set->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (items[middle].end < at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool extents_reserve(struct extents *set, uint32_t count)
{
	uint32_t room = set->room ? set->room : 4;
	struct extent *more;

	if (count <= (set->more ? set->room : 1))
		return true;
	while (room < count)
		room *= 2;
	more = realloc(set->more, room * sizeof(*more));
	if (!more)
		return false;
	if (!set->more)
		more[0] = set->first;
	set->more = more;
	set->room = room;
	return true;
}

void extents_copy(struct extents *set, const struct extents *from)
{
	bool room = extents_reserve(set, from->count);

	assert(room);
	(void)room;
	memcpy(items_of(set), extents_all(from), from->count * sizeof(struct extent));
	set->count = from->count;
}

/* Puts one range, or none, in the place of ranges [from, to). There is room. */
static void replace_extents(struct extents *set, uint32_t from, uint32_t to,
			    const struct extent *put)
{
	struct extent *items = items_of(set);
	uint32_t added = put ? 1 : 0;

	assert(from <= to && to <= set->count);
	memmove(items + from + added, items + to, (set->count - to) * sizeof(*items));
	if (put)
		items[from] = *put;
	set->count = set->count - (to - from) + added;
}

bool extents_add(struct extents *set, uint32_t start, uint32_t end, uint32_t *grown)
{
	struct extent joined = {start, end};
	uint32_t from = find_extent(set, start), to = from, had = 0;

	assert(start < end);
	if (!extents_reserve(set, set->count + 1))
		return false;
	for (const struct extent *items = extents_all(set);
	     to < set->count && items[to].start <= end; to++) {
		had += items[to].end - items[to].start;
		if (items[to].start < joined.start)
			joined.start = items[to].start;
		if (items[to].end > joined.end)
			joined.end = items[to].end;
	}
	replace_extents(set, from, to, &joined);
	*grown = joined.end - joined.start - had;
	return true;
}

bool extents_cut(struct extents *set, uint32_t start, uint32_t end, uint32_t *shrunk)
{
	struct extent *items = items_of(set);
	uint32_t i = find_extent(set, start);

	assert(start <= end);
	*shrunk = 0;
	while (i < set->count && items[i].start < end) {
		struct extent rest = {end, items[i].end};
		uint32_t low = items[i].start > start ? items[i].start : start;
		uint32_t high = items[i].end < end ? items[i].end : end;

		if (items[i].start < start && items[i].end > end) {
			if (!extents_reserve(set, set->count + 1))
				return false;
			items = items_of(set);
			*shrunk = end - start;
			items[i].end = start;
			replace_extents(set, i + 1, i + 1, &rest);
			break;
		}
		*shrunk += high > low ? high - low : 0;
		if (items[i].start < start)
			items[i++].end = low;
		else if (items[i].end > end)
			items[i++].start = end;
		else
			replace_extents(set, i, i + 1, NULL);
	}
	return true;
}

void extents_clear(struct extents *set)
{
	free(set->more);
	*set = (struct extents){0};
}

bool extents_cover(const struct extents *set, uint32_t start, uint32_t end)
{
	const struct extent *at = extents_after(set, start);

	return start >= end || (at && at->start <= start && at->end >= end);
}

const struct extent *extents_after(const struct extents *set, uint32_t from)
{
	uint32_t i = from == UINT32_MAX ? set->count : find_extent(set, from + 1);

	return i < set->count ? extents_all(set) + i : NULL;
}

uint32_t extents_gap(const struct extents *set, uint32_t from, uint32_t limit, uint32_t *end)
{
	const struct extent *at = extents_after(set, from);

	if (at && at->start <= from) {
		from = at->end;
		at = from < limit ? extents_after(set, from) : NULL;
	}
	if (from >= limit) {
		*end = limit;
		return limit;
	}
	*end = at && at->start < limit ? at->start : limit;
	return from;
}
