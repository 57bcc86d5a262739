/* SPDX-License-Identifier: BSD-2-Clause */
/* Keyed hash for tables that strangers can fill, a keyed order, and random numbers. */
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
 * The place of value, below 2^30, in an order of these 2^30 numbers that only the key tells: none
 * comes twice, and who has seen some cannot guess another.
 */
uint32_t rxw_shuffle30(uint32_t value, const uint64_t key[2]);

/* Bytes of the kernel's generator. 0, or -1 if there is none. */
int rxw_random(void *out, size_t size);

/* Reproducible generator for jitter and simulation (xoshiro or splitmix; state must not be 0). */
uint64_t rxw_prng(uint64_t *state);

#endif
