/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counts the allocations of the code that it is linked with (--wrap of malloc, calloc, realloc and
 * free; see local.mk), and lets one of them fail. For one thread.
 */
#ifndef RXW_TESTS_XG_HEAP_H
#define RXW_TESTS_XG_HEAP_H

#include <stddef.h>

/* Allocations that are not freed. */
size_t heap_live(void);
/* Reset the counters. */
void heap_mark(void);
/* Allocations requested since the mark. */
size_t heap_made(void);
/* Peak of allocated bytes since the mark, without earlier allocations. */
size_t heap_peak(void);
/* Let the n-th allocation from now fail, once; 0 = none. */
void heap_fail(size_t n);

#endif
