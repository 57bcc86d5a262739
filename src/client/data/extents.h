/* SPDX-License-Identifier: BSD-2-Clause */
/* Sets of bytes of a block: sorted ranges that do not touch. The caller locks. */
#ifndef CLIENT_DATA_EXTENTS_H
#define CLIENT_DATA_EXTENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct extent {
	uint32_t start, end;
};

/* All zero: empty. Most sets have one range, which needs no memory of its own. */
struct extents {
	struct extent first; /* the only range, if `more` is NULL */
	struct extent *more;
	uint32_t count, room;
};

static inline const struct extent *extents_all(const struct extents *set)
{
	return set->more ? set->more : &set->first;
}

/* Adds a range that is not empty. False: no memory, and nothing has changed. *grown: the bytes that were not in the set. */
bool extents_add(struct extents *set, uint32_t start, uint32_t end, uint32_t *grown);
/*
 * Takes a range out. *shrunk: the bytes of it that were in the set. False: no memory, and nothing has changed; never if the range has no bytes of
 * the set on one side.
 */
bool extents_cut(struct extents *set, uint32_t start, uint32_t end, uint32_t *shrunk);
/* Room for `count` ranges. */
bool extents_reserve(struct extents *set, uint32_t count);
/* There is room. */
void extents_copy(struct extents *set, const struct extents *from);
void extents_clear(struct extents *set);
bool extents_cover(const struct extents *set, uint32_t start, uint32_t end);
/* The first range that ends after `from`; NULL if there is none. */
const struct extent *extents_after(const struct extents *set, uint32_t from);
/* The first byte from `from` on that is not in the set, and in *end the start of the next range, at most `limit`. `limit` if there is none. */
uint32_t extents_gap(const struct extents *set, uint32_t from, uint32_t limit, uint32_t *end);

#endif
