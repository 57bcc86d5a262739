/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counts the allocations of the code that it is linked with (--wrap of malloc, calloc, realloc and
 * free; see local.mk), and lets one of them fail. For one thread.
 */
#ifndef RXW_TESTS_XG_HEAP_H
#define RXW_TESTS_XG_HEAP_H

#include <stddef.h>

/* Allocations that nobody has freed yet. */
size_t heap_live(void);
/* Count from here. */
void heap_mark(void);
/* Allocations asked for since the mark. */
size_t heap_made(void);
/* Most bytes that were allocated at a time since the mark, without those from before it. */
size_t heap_peak(void);
/* Let the allocation number `n` from now fail, once; 0 = none. */
void heap_fail(size_t n);

#endif
