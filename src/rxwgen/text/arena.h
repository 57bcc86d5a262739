/* SPDX-License-Identifier: BSD-2-Clause */
/* An arena: memory with a limit that is freed all at once. The front end uses no other memory. */
#ifndef RXWGEN_ARENA_H
#define RXWGEN_ARENA_H

#include <setjmp.h>
#include <stddef.h>

struct arena;

/* NULL if memory is exhausted. The arena takes at most `limit` bytes from the system. */
struct arena *arena_new(size_t limit);
void arena_free(struct arena *arena);

/* Target of the jump when memory or the limit is exhausted; set it before the first allocation. */
void arena_on_empty(struct arena *arena, jmp_buf *to);

/* Zeroed memory, aligned for anything; never NULL. */
void *arena_alloc(struct arena *arena, size_t size);
char *arena_copy(struct arena *arena, const char *text, size_t length);
char *arena_printf(struct arena *arena, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Make room for an element after `count` elements of `size` bytes each. Returns `old`, or a copy
 * with twice its capacity. *room is the capacity; start with NULL and 0.
 */
void *arena_grow(struct arena *arena, void *old, size_t count, size_t *room, size_t size);

#endif
