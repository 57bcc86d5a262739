/* SPDX-License-Identifier: BSD-2-Clause */
/* Keyed hash for tables that unvalidated peers can fill, a keyed permutation, random numbers. */
#ifndef RXW_BASE_HASH_H
#define RXW_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* SipHash-2-4. */
uint64_t rxw_siphash(const void *data, size_t size, const uint64_t key[2]);
/* One or two words, for table look-ups per packet: keyed, cheap, not cryptographic. */
static inline uint64_t rxw_hash_words(uint64_t a, uint64_t b, const uint64_t key[2])
{
	uint64_t x = (a ^ key[0]) * 0x9e3779b97f4a7c15ull;

	x ^= x >> 32;
	x = (x ^ b ^ key[1]) * 0xd6e8feb86659fd93ull;
	return x ^ x >> 32;
}

/*
 * A permutation of the numbers below 2^30 that depends on the key. Results do not repeat, and none
 * can be predicted from others without the key.
 */
uint32_t rxw_shuffle30(uint32_t value, const uint64_t key[2]);

/* Random bytes from the kernel. 0, or -1 if it has no generator. */
int rxw_random(void *out, size_t size);

/* Reproducible generator for jitter and simulation (xoshiro or splitmix; state must not be 0). */
uint64_t rxw_prng(uint64_t *state);

#endif
