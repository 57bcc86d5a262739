/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Slots of histograms: each power of two is cut into 2^bits equal steps, and values below 2^bits
 * are exact. With 0 bits, a slot is the number of significant bits of its values.
 */
#ifndef COMMON_HISTOGRAM_H
#define COMMON_HISTOGRAM_H

#include <stdint.h>

/* Slots for all values of 64 bits. */
#define HISTOGRAM_SLOTS(bits) ((64u - (bits) + 1u) << (bits))

static inline unsigned histogram_slot(uint64_t value, unsigned bits)
{
	unsigned exponent;

	if (value >> bits == 0)
		return (unsigned)value;
	exponent = 63u - (unsigned)__builtin_clzll(value); /* >= bits */
	/* The bits behind the leading one are the step within the power of two. */
	return ((exponent - bits + 1) << bits) +
	       (unsigned)((value >> (exponent - bits)) & ((1u << bits) - 1));
}

/* The largest value of a slot. */
static inline uint64_t histogram_top(unsigned slot, unsigned bits)
{
	unsigned shift;

	if (slot >> bits == 0)
		return slot;
	shift = (slot >> bits) - 1;
	return ((((uint64_t)1 << bits) + (slot & ((1u << bits) - 1)) + 1) << shift) - 1;
}

#endif
