/* SPDX-License-Identifier: BSD-2-Clause */
/* SipHash-2-4: a keyed hash for tables whose items strangers choose. */
#ifndef COMMON_SIPHASH_H
#define COMMON_SIPHASH_H

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The last word, which is incomplete. */
static inline uint64_t siphash_rest(const uint8_t *p, size_t size)
{
	uint64_t v = 0;

	for (size_t i = 0; i < size; i++)
		v |= (uint64_t)p[i] << (8 * i);
	return v;
}

static inline uint64_t siphash_rotate(uint64_t x, int by)
{
	return x << by | x >> (64 - by);
}

static inline void siphash_rounds(uint64_t v[4], int rounds)
{
	while (rounds-- > 0) {
		v[0] += v[1];
		v[1] = siphash_rotate(v[1], 13) ^ v[0];
		v[0] = siphash_rotate(v[0], 32);
		v[2] += v[3];
		v[3] = siphash_rotate(v[3], 16) ^ v[2];
		v[0] += v[3];
		v[3] = siphash_rotate(v[3], 21) ^ v[0];
		v[2] += v[1];
		v[1] = siphash_rotate(v[1], 17) ^ v[2];
		v[2] = siphash_rotate(v[2], 32);
	}
}

static inline uint64_t siphash(const void *data, size_t size, const uint64_t key[2])
{
	const uint8_t *p = (const uint8_t *)data;
	uint64_t v[4] = {
		key[0] ^ 0x736f6d6570736575ull,
		key[1] ^ 0x646f72616e646f6dull,
		key[0] ^ 0x6c7967656e657261ull,
		key[1] ^ 0x7465646279746573ull,
	};
	uint64_t last = (uint64_t)size << 56;

	for (; size >= 8; p += 8, size -= 8) {
		uint64_t word;

		memcpy(&word, p, 8);
		word = le64toh(word);
		v[3] ^= word;
		siphash_rounds(v, 2);
		v[0] ^= word;
	}
	last |= siphash_rest(p, size);
	v[3] ^= last;
	siphash_rounds(v, 2);
	v[0] ^= last;
	v[2] ^= 0xff;
	siphash_rounds(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

#endif
