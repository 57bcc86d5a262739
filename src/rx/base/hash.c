/* SPDX-License-Identifier: BSD-2-Clause */
/* Keyed hash for tables that unvalidated peers can fill, a keyed permutation, random numbers. */

#include "base/hash.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#ifdef HAVE_SYS_RANDOM_H
#include <sys/random.h>
#endif

#define SHUFFLE_ROUNDS 8 /* 4 suffice for large blocks; the halves of this one are small */

/* The last word, which is incomplete. */
static uint64_t load_rest(const uint8_t *p, size_t size)
{
	uint64_t v = 0;

	for (size_t i = 0; i < size; i++)
		v |= (uint64_t)p[i] << (8 * i);
	return v;
}

static uint64_t rotate(uint64_t x, int by)
{
	return x << by | x >> (64 - by);
}

static void sip_rounds(uint64_t v[4], int rounds)
{
	while (rounds-- > 0) {
		v[0] += v[1];
		v[1] = rotate(v[1], 13) ^ v[0];
		v[0] = rotate(v[0], 32);
		v[2] += v[3];
		v[3] = rotate(v[3], 16) ^ v[2];
		v[0] += v[3];
		v[3] = rotate(v[3], 21) ^ v[0];
		v[2] += v[1];
		v[1] = rotate(v[1], 17) ^ v[2];
		v[2] = rotate(v[2], 32);
	}
}

uint64_t rxw_siphash(const void *data, size_t size, const uint64_t key[2])
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
		sip_rounds(v, 2);
		v[0] ^= word;
	}
	last |= load_rest(p, size);
	v[3] ^= last;
	sip_rounds(v, 2);
	v[0] ^= last;
	v[2] ^= 0xff;
	sip_rounds(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* A Feistel network of two halves: a permutation whatever its round function is. */
uint32_t rxw_shuffle30(uint32_t value, const uint64_t key[2])
{
	uint32_t left = value >> 15 & 0x7fff, right = value & 0x7fff;

	for (uint32_t round = 0; round < SHUFFLE_ROUNDS; round++) {
		uint8_t in[3] = {(uint8_t)round, (uint8_t)(right >> 8), (uint8_t)right};
		uint32_t mixed = left ^ ((uint32_t)rxw_siphash(in, sizeof(in), key) & 0x7fff);

		left = right;
		right = mixed;
	}
	return left << 15 | right;
}

int rxw_random(void *out, size_t size)
{
	uint8_t *p = (uint8_t *)out;
	FILE *f;
	size_t n;

#ifdef HAVE_GETRANDOM
	while (size) {
		ssize_t got = getrandom(p, size, 0);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		p += got;
		size -= (size_t)got;
	}
	if (!size)
		return 0;
#endif
	f = fopen("/dev/urandom", "rbe");
	if (!f)
		return -1;
	n = fread(p, 1, size, f);
	fclose(f);
	return n == size ? 0 : -1;
}

/* splitmix64: every state is valid, and the period is 2^64. */
uint64_t rxw_prng(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15ull;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}
