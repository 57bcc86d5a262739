/* SPDX-License-Identifier: BSD-2-Clause */
/* An arena: memory with a limit that is freed all at once. */
#include "rxwgen/text/source.h"

#include <assert.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 65536
#define ALIGN _Alignof(max_align_t)

struct block {
	struct block *next;
	_Alignas(max_align_t) char bytes[];
};

/* `at` and `end` are in blocks->bytes. Memory from `at` on is zero. */
struct arena {
	struct block *blocks;
	char *at, *end;
	size_t left; /* bytes that may still be taken from the system */
	jmp_buf *empty;
};

struct arena *arena_new(size_t limit)
{
	struct arena *arena = calloc(1, sizeof(*arena));

	if (arena)
		arena->left = limit;
	return arena;
}

void arena_free(struct arena *arena)
{
	struct block *block, *next;

	if (!arena)
		return;
	for (block = arena->blocks; block; block = next) {
		next = block->next;
		free(block);
	}
	free(arena);
}

void arena_on_empty(struct arena *arena, jmp_buf *to)
{
	arena->empty = to;
}

static void *allocate_block(struct arena *arena, size_t size)
{
	struct block *block;

	assert(arena->empty);
	if (size > arena->left || !(block = calloc(1, sizeof(*block) + size)))
		longjmp(*arena->empty, 1);
	arena->left -= size;
	/* A large object gets a block of its own, after the current one. */
	if (size > BLOCK && arena->blocks) {
		block->next = arena->blocks->next;
		arena->blocks->next = block;
		return block->bytes;
	}
	block->next = arena->blocks;
	arena->blocks = block;
	arena->at = block->bytes;
	arena->end = block->bytes + size;
	return NULL;
}

void *arena_alloc(struct arena *arena, size_t size)
{
	void *p;

	assert(arena->at <= arena->end);
	if (size > SIZE_MAX / 2)
		longjmp(*arena->empty, 1);
	size = (size + ALIGN - 1) / ALIGN * ALIGN;
	if (size > (size_t)(arena->end - arena->at)) {
		p = allocate_block(arena, size > BLOCK ? size : BLOCK);
		if (p)
			return p;
	}
	p = arena->at;
	arena->at += size;
	return p;
}

char *arena_copy(struct arena *arena, const char *text, size_t length)
{
	char *p = arena_alloc(arena, length + 1);

	if (length)
		memcpy(p, text, length);
	return p;
}

char *arena_printf(struct arena *arena, const char *format, ...)
{
	va_list args;
	char *p;
	int n;

	va_start(args, format);
	n = vsnprintf(NULL, 0, format, args);
	va_end(args);
	p = arena_alloc(arena, (size_t)(n < 0 ? 0 : n) + 1);
	va_start(args, format);
	vsnprintf(p, (size_t)(n < 0 ? 0 : n) + 1, format, args);
	va_end(args);
	return p;
}

void *arena_grow(struct arena *arena, void *old, size_t count, size_t *room, size_t size)
{
	void *p;

	assert(count <= *room);
	if (count < *room)
		return old;
	*room = *room ? *room * 2 : 8;
	p = arena_alloc(arena, *room * size);
	if (count)
		memcpy(p, old, count * size);
	return p;
}
