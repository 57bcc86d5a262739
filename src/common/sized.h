/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Structures that may grow: the first member, `size_t size`, is the size that the caller was
 * compiled with. One rule for all: members that a shorter structure lacks have their defaults, and
 * a longer structure is accepted if the bytes that this library does not know are zero. New members
 * go to the end, and never into padding.
 */
#ifndef COMMON_SIZED_H
#define COMMON_SIZED_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define SIZED_MAX 16384u /* a larger size was never set */

static inline size_t sized_get(const void *structure)
{
	size_t size;

	memcpy(&size, structure, sizeof(size));
	return size;
}

/*
 * Copies the members of `given` over `full`, which has the defaults and `full_size` bytes. False:
 * `size` is not set, or members that are unknown here are set.
 */
static inline bool sized_read(void *full, size_t full_size, const void *given)
{
	size_t size = sized_get(given);

	if (size < sizeof(size) || size > SIZED_MAX)
		return false;
	for (size_t i = full_size; i < size; i++)
		if (((const unsigned char *)given)[i])
			return false;
	memcpy(full, given, size < full_size ? size : full_size);
	memcpy(full, &full_size, sizeof(full_size));
	return true;
}

/* May sized_write() fill in this structure? NULL may not be. */
static inline bool sized_valid(const void *structure)
{
	return structure && sized_get(structure) >= sizeof(size_t) &&
	       sized_get(structure) <= SIZED_MAX;
}

/* Copies `full` to a structure of the caller. Members that are unknown here become zero. */
static inline void sized_write(void *to, const void *full, size_t full_size)
{
	size_t size = sized_get(to);

	memset(to, 0, size);
	memcpy(to, full, size < full_size ? size : full_size);
	memcpy(to, &size, sizeof(size));
}

#endif
