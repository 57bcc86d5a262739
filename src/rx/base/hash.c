/* SPDX-License-Identifier: BSD-2-Clause */
/* Keyed hash for tables that unvalidated peers can fill, a keyed permutation, random numbers. */

#include "base/hash.h"

#include "common/cancel.h"

#include <errno.h>
#include <stdio.h>
#ifdef HAVE_SYS_RANDOM_H
#include <sys/random.h>
#endif

#include "common/siphash.h"

#define SHUFFLE_ROUNDS 8 /* 4 suffice for large blocks; the halves of this one are small */

uint64_t rxw_siphash(const void *data, size_t size, const uint64_t key[2])
{
	return siphash(data, size, key);
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
	NOT_CANCELLED;

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
