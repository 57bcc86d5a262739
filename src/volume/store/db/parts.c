/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists of extents as rows: which parts a change concerns, and what the rows contain. */
#include "volume/store/db/parts.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "volume/store/disk/bytes.h"

#define PARTS_SPARE 16 /* parts that may be there beyond what the list needs */

void parts_free(struct parts *parts)
{
	free(parts->part);
	memset(parts, 0, sizeof(*parts));
}

int parts_copy(const struct parts *from, struct parts *to)
{
	size_t size = from->part ? from->count * sizeof(*from->part) : 0;
	struct part *part = size ? malloc(size) : NULL;

	if (size && !part)
		return -ENOMEM;
	if (size)
		memcpy(part, from->part, size);
	*to = *from;
	to->part = part;
	return 0;
}

static uint64_t take_lesser(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t take_greater(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* -- dividing -- */

/* Extents with bytes in a range. *first: the index of the first one. */
static uint32_t count_extents_in(const struct store_content *content, uint64_t start, uint64_t end,
				 uint32_t *first)
{
	uint32_t last;

	*first = store_content_behind(content, start);
	last = end ? store_content_behind(content, end - 1) : 0;
	/* An extent that ends at or behind the end of the range may begin in it. */
	if (last < content->count && content->extent[last].start < end)
		last++;
	return last > *first ? last - *first : 0;
}

/* Whether two lists say the same about a range. */
static bool is_range_unchanged(const struct store_content *a, const struct store_content *b,
			       uint64_t start, uint64_t end)
{
	uint32_t at, other, count = count_extents_in(a, start, end, &at);

	if (count_extents_in(b, start, end, &other) != count)
		return false;
	for (; count; count--, at++, other++) {
		const struct store_extent *x = &a->extent[at], *y = &b->extent[other];

		if (x->object != y->object ||
		    take_greater(x->start, start) != take_greater(y->start, start) ||
		    take_lesser(x->end, end) != take_lesser(y->end, end))
			return false;
	}
	return true;
}

struct division {
	const struct store_content *content;
	uint32_t full, fill; /* extents that a part may have, and that a new one gets */
	struct part *part;
	uint32_t used;
	uint32_t *spare; /* slots without use */
	uint32_t spares, slots;
};

static void append_part(struct division *d, uint64_t start, uint32_t slot, bool changed)
{
	d->part[d->used++] = (struct part){.start = start, .slot = slot, .changed = changed};
}

/* A range that has changed: joined to the part before it, or one part, or several. */
static void append_changed_range(struct division *d, uint64_t start, uint64_t end, uint32_t slot)
{
	struct part *before = d->used ? &d->part[d->used - 1] : NULL;
	uint32_t first, count, pieces;

	if (before && count_extents_in(d->content, before->start, end, &first) <= d->fill) {
		before->changed = true;
		d->spare[d->spares++] = slot;
		return;
	}
	count = count_extents_in(d->content, start, end, &first);
	pieces = count > d->full ? (count + d->fill - 1) / d->fill : 1;
	append_part(d, start, slot, true);
	for (uint32_t i = 1; i < pieces; i++) {
		uint32_t at = first + (uint32_t)((uint64_t)count * i / pieces);

		append_part(d, d->content->extent[at].start,
			    d->spares ? d->spare[--d->spares] : d->slots++, true);
	}
}

static uint32_t count_used_parts(const struct parts *parts)
{
	uint32_t used = parts->count;

	while (used && parts->part[used - 1].start == PART_UNUSED)
		used--;
	return used;
}

/* So many slots are of no use that all parts are made anew. */
static bool has_many_unused_parts(const struct division *d, const struct parts *old, uint32_t used)
{
	return used > PARTS_SPARE + 3 * (d->content->count / d->fill) ||
	       old->count - used > used + PARTS_SPARE;
}

/* Ranges about which the list says something else than before are divided anew. */
static void divide_changed_ranges(struct division *d, const struct parts *old, uint32_t used,
				  const struct store_content *before)
{
	d->slots = old->count;
	for (uint32_t i = used; i < old->count; i++)
		d->spare[d->spares++] = old->part[i].slot;
	for (uint32_t i = 0; i < used; i++) {
		uint64_t start = old->part[i].start;
		uint64_t end = i + 1 < used ? old->part[i + 1].start : PART_UNUSED;

		if (is_range_unchanged(before, d->content, start, end))
			append_part(d, start, old->part[i].slot, false);
		else
			append_changed_range(d, start, end, old->part[i].slot);
	}
}

static bool was_unused_slot(const struct parts *old, uint32_t used, uint32_t slot)
{
	for (uint32_t i = used; i < old->count; i++)
		if (old->part[i].slot == slot)
			return true;
	return false;
}

int parts_divide(const struct parts *old, const struct store_content *before,
		 const struct store_content *now, uint32_t most, struct parts *parts)
{
	uint32_t used = count_used_parts(old);
	uint32_t full = (uint32_t)take_lesser(take_greater(most / 3, 2), PART_EXTENTS);
	struct division d = {.content = now, .full = full, .fill = 2 * full / 3};
	size_t room = 2 * (size_t)old->count + now->count / d.fill + 2;

	memset(parts, 0, sizeof(*parts));
	/* A list does not go back to the record as soon as it can. */
	if (now->count <= (old->count ? most / 2 : most))
		return 0;
	d.part = malloc(room * sizeof(*d.part));
	d.spare = malloc(room * sizeof(*d.spare));
	if (!d.part || !d.spare) {
		free(d.part);
		free(d.spare);
		return -ENOMEM;
	}
	if (!used || has_many_unused_parts(&d, old, used)) {
		used = 0;
		d.slots = 1;
		append_changed_range(&d, 0, PART_UNUSED, 0);
	} else {
		divide_changed_ranges(&d, old, used, before);
	}
	parts->count = d.used + d.spares;
	parts->extents = now->count;
	while (d.spares) {
		uint32_t slot = d.spare[--d.spares];

		append_part(&d, PART_UNUSED, slot, !used || !was_unused_slot(old, used, slot));
	}
	assert(parts->count <= room);
	parts->part = d.part;
	free(d.spare);
	return 0;
}

/* -- rows: the start, how many extents, and the extents -- */

void part_encode(const struct parts *parts, uint32_t at, const struct store_content *content,
		 uint8_t row[STORE_PAGE])
{
	const struct part *part = &parts->part[at];
	uint64_t end = at + 1 < parts->count ? part[1].start : PART_UNUSED;
	uint32_t first = 0, count = 0;
	uint8_t *to = row;

	assert(at < parts->count);
	memset(row, 0, STORE_PAGE);
	if (part->start != PART_UNUSED)
		count = count_extents_in(content, part->start, end, &first);
	assert(count <= PART_EXTENTS);
	put_little(&to, part->start, 8);
	put_little(&to, count, 2);
	for (uint32_t i = first; i < first + count; i++) {
		put_little(&to, take_greater(content->extent[i].start, part->start), 8);
		put_little(&to, take_lesser(content->extent[i].end, end), 8);
		put_little(&to, content->extent[i].object, 8);
	}
}

static int compare_part_starts(const void *a, const void *b)
{
	uint64_t x = ((const struct part *)a)->start, y = ((const struct part *)b)->start;

	return x < y ? -1 : x > y;
}

/* The parts in their order. *extents: of all of them. */
static int order_row_parts(uint8_t (*row)[STORE_PAGE], struct parts *parts, size_t *extents)
{
	*extents = 0;
	for (uint32_t i = 0; i < parts->count; i++) {
		struct bytes from = {.at = row[i], .left = STORE_PAGE};
		uint64_t start = get_little(&from, 8), count = get_little(&from, 2);

		if (count > PART_EXTENTS || (start == PART_UNUSED && count))
			return -EBADMSG;
		*extents += count;
		parts->part[i] = (struct part){.start = start, .slot = i};
	}
	qsort(parts->part, parts->count, sizeof(*parts->part), compare_part_starts);
	if (parts->part[0].start)
		return -EBADMSG;
	for (uint32_t i = 1; i < parts->count; i++)
		if (parts->part[i].start == parts->part[i - 1].start &&
		    parts->part[i].start != PART_UNUSED)
			return -EBADMSG;
	return 0;
}

/* Add the extents of a row, of the range up to `end`. Those that were cut are joined again. */
static int append_row_extents(const uint8_t row[STORE_PAGE], uint64_t end,
			      struct store_content *content)
{
	struct bytes from = {.at = row, .left = STORE_PAGE};
	uint64_t at = get_little(&from, 8), count = get_little(&from, 2);

	for (uint64_t i = 0; i < count; i++) {
		struct store_extent extent, *last;

		extent.start = get_little(&from, 8);
		extent.end = get_little(&from, 8);
		extent.object = get_little(&from, 8);
		if (extent.start < at || extent.end <= extent.start || extent.end > end ||
		    !extent.object)
			return -EBADMSG;
		at = extent.end;
		last = content->count ? &content->extent[content->count - 1] : NULL;
		if (last && last->end == extent.start && last->object == extent.object)
			last->end = extent.end;
		else
			content->extent[content->count++] = extent;
	}
	return 0;
}

int parts_decode(uint8_t (*row)[STORE_PAGE], struct parts *parts, struct store_content *content)
{
	size_t extents;
	int result;

	assert(parts->count > 0);
	parts->part = calloc(parts->count, sizeof(*parts->part));
	if (!parts->part)
		return -ENOMEM;
	result = order_row_parts(row, parts, &extents);
	if (result)
		return result;
	content->count = 0;
	content->extent = malloc((extents + 1) * sizeof(*content->extent));
	if (!content->extent)
		return -ENOMEM;
	for (uint32_t i = 0; i < parts->count && !result; i++)
		result = append_row_extents(
			row[parts->part[i].slot],
			i + 1 < parts->count ? parts->part[i + 1].start : PART_UNUSED, content);
	return !result && content->count != parts->extents ? -EBADMSG : result;
}
