/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Contents of test files: the byte at an offset is a function of the offset and a seed. For the
 * guest's programs.
 */
#ifndef INTEROP_KERNEL_PATTERN_H
#define INTEROP_KERNEL_PATTERN_H

#include <stddef.h>
#include <stdint.h>

#define PATTERN_PART 65536 /* bytes that the programs write or compare at a time */

/* Seed 0 is zeros. */
static inline char pattern_byte(long long offset, unsigned seed)
{
	uint64_t v = ((uint64_t)offset >> 3) * 0x9e3779b97f4a7c15u + seed * 0xd1342543de82ef95u;

	v ^= v >> 29;
	return seed ? (char)(v >> (8 * ((unsigned)offset & 7))) : 0;
}

static inline void pattern_fill(char *bytes, long long offset, size_t n, unsigned seed)
{
	for (size_t i = 0; i < n; i++)
		bytes[i] = pattern_byte(offset + (long long)i, seed);
}

/* The index of the first byte that is not of the pattern, or n. */
static inline size_t pattern_differs(const char *bytes, long long offset, size_t n, unsigned seed)
{
	for (size_t i = 0; i < n; i++)
		if (bytes[i] != pattern_byte(offset + (long long)i, seed))
			return i;
	return n;
}

#endif
