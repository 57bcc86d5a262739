/* SPDX-License-Identifier: BSD-2-Clause */
/* Arrays that become longer as items are added. */
#ifndef COMMON_GROW_H
#define COMMON_GROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define GROW_FIRST 16 /* items */

/*
 * Room for one more item. `array`: the address of the pointer to the array, which has `count` items of `size` bytes, and
 * *room; NULL with *room 0 at first. False: no memory, and nothing has changed.
 */
static inline bool grow_array(void *array, size_t *room, size_t count, size_t size)
{
	size_t more = *room ? 2 * *room : GROW_FIRST;
	void *items;

	if (count < *room)
		return true;
	memcpy(&items, array, sizeof(items));
	items = realloc(items, more * size);
	if (!items)
		return false;
	memcpy(array, &items, sizeof(items));
	*room = more;
	return true;
}

#endif
