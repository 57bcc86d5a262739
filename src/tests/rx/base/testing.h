/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the unit tests of the layer base: a main function from a list of tests, and
 * reproducible seeds.
 */
#ifndef RXW_TESTS_BASE_TESTING_H
#define RXW_TESTS_BASE_TESTING_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "tests/asserts.h"
#include "tests/main.h"

/* A seed for this run, printed; RXW_TEST_SEED of the environment repeats one. */
static inline uint64_t test_seed(void)
{
	const char *given = getenv("RXW_TEST_SEED");
	uint64_t seed = 1;

	if (given)
		seed = strtoull(given, NULL, 0);
	else
		ck_assert_int_eq(rxw_random(&seed, sizeof(seed)), 0);
	printf("RXW_TEST_SEED=%llu repeats this run\n", (unsigned long long)seed);
	fflush(stdout);
	return seed;
}

static inline uint64_t test_below(uint64_t *state, uint64_t limit)
{
	return rxw_prng(state) % limit;
}

static inline void test_fill(uint64_t *state, void *memory, size_t size)
{
	uint8_t *p = (uint8_t *)memory;

	for (size_t i = 0; i < size; i++)
		p[i] = (uint8_t)rxw_prng(state);
}

#endif
