/* SPDX-License-Identifier: BSD-2-Clause */
/* Counting allocations by the linker's --wrap. */
#include "heap.h"

#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void __real_free(void *p);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void __wrap_free(void *p);

/*
 * Volatile: with -flto the compiler assumes that malloc and free change no variables of the
 * program, and would keep these in registers.
 */
static volatile size_t live, made, fails;
/* Bytes as rounded by malloc. Negative if memory from before the mark is freed after it. */
static volatile ptrdiff_t bytes, peak;

static bool refuse(void)
{
	made++;
	return fails && !--fails;
}

static void *taken(void *p)
{
	if (p) {
		live++;
		bytes += (ptrdiff_t)malloc_usable_size(p);
		if (bytes > peak)
			peak = bytes;
	}
	return p;
}

static void given(void *p)
{
	live--;
	bytes -= (ptrdiff_t)malloc_usable_size(p);
}

void *__wrap_malloc(size_t size)
{
	return refuse() ? NULL : taken(__real_malloc(size));
}

void *__wrap_calloc(size_t n, size_t size)
{
	return refuse() ? NULL : taken(__real_calloc(n, size));
}

void *__wrap_realloc(void *p, size_t size)
{
	size_t old = p ? malloc_usable_size(p) : 0;
	void *q;

	if (refuse())
		return NULL;
	q = __real_realloc(p, size);
	if (!q)
		return NULL;
	if (p) {
		live--;
		bytes -= (ptrdiff_t)old;
	}
	return taken(q);
}

void __wrap_free(void *p)
{
	if (p)
		given(p);
	__real_free(p);
}

size_t heap_live(void)
{
	return live;
}

void heap_mark(void)
{
	made = 0;
	bytes = peak = 0;
}

size_t heap_made(void)
{
	return made;
}

size_t heap_peak(void)
{
	return (size_t)peak;
}

void heap_fail(size_t n)
{
	fails = n;
}
