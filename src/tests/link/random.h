/* SPDX-License-Identifier: BSD-2-Clause */
/* Reproducible random numbers (splitmix64). */
#ifndef RXW_TESTS_LINK_RANDOM_H
#define RXW_TESTS_LINK_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

static inline uint64_t link_draw(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* From 0 to below 1. */
static inline double link_share(uint64_t *state)
{
	return (double)(link_draw(state) >> 11) * 0x1p-53;
}

static inline bool link_chance(uint64_t *state, double probability)
{
	return probability > 0 && link_share(state) < probability;
}

#endif
