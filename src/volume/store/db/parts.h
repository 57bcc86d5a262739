/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A long list of extents as rows of bounded size, so that a small change writes few bytes. Each
 * part has the extents of a range of offsets, cut at both ends of the range. The parts of all
 * ranges are the list. A part has a row, named by its slot, in the table of the pages of
 * directories.
 */
#ifndef STORE_PARTS_H
#define STORE_PARTS_H

#include "volume/store/data/data.h"
#include "volume/store/dir/pages.h"

#define PARTS_INLINE 256  /* extents of a list that the record of its vnode may have */
#define PARTS_MAX    8192 /* slots of a list */
#define PART_EXTENTS 84	  /* of a part: a row has STORE_PAGE bytes */
#define PART_UNUSED  UINT64_MAX

struct part {
	uint64_t start; /* of its range, which ends where the next one starts; or PART_UNUSED */
	uint32_t slot;
	bool changed; /* its row is to be written */
};

/* Ascending, the first one at 0, the unused ones last. Each slot below `count` occurs once. */
struct parts {
	struct part *part;
	uint32_t count;	  /* 0: the list is in the record of the vnode */
	uint32_t extents; /* of the list, as the record says */
};

void parts_free(struct parts *parts);
int parts_copy(const struct parts *from, struct parts *to); /* 0 or -ENOMEM */

/*
 * Divide the list `now`, which is kept in the record if it has at most `most` extents. A part has
 * at most a third of `most`, and PART_EXTENTS. `old` divides `before`; old->count is 0 if there is
 * nothing to go on from. If *parts has fewer slots than `old`, all parts are changed, and the rows
 * of the old ones are of no use to this version. 0 or -ENOMEM.
 */
int parts_divide(const struct parts *old, const struct store_content *before,
		 const struct store_content *now, uint32_t most, struct parts *parts);

/* The row of parts->part[at]. */
void part_encode(const struct parts *parts, uint32_t at, const struct store_content *content,
		 uint8_t row[STORE_PAGE]);
/*
 * The list, from the rows of the slots 0 to parts->count - 1. parts->part and content->extent are
 * made; the caller frees them. -EBADMSG: damaged; -ENOMEM.
 */
int parts_decode(uint8_t (*row)[STORE_PAGE], struct parts *parts, struct store_content *content);

#endif
