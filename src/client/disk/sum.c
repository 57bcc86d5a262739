/* SPDX-License-Identifier: BSD-2-Clause */
/* Checksum of cached bytes. */
#include "client/disk/sum.h"

#include <string.h>

#define LANES 8u /* enough to hide the latency of multiplications */
#define ODD   0x9e3779b97f4a7c15ull

static uint64_t stir_lane(uint64_t lane, uint64_t word)
{
	lane = (lane ^ word) * ODD;
	return lane << 29 | lane >> 35;
}

uint64_t disk_sum(uint64_t seed, const void *bytes, size_t length)
{
	const unsigned char *at = bytes;
	uint64_t lanes[LANES], words[LANES], sum = seed ^ length;
	size_t left = length;

	for (unsigned i = 0; i < LANES; i++)
		lanes[i] = seed + (i + 1) * ODD;
	for (; left >= sizeof(words); left -= sizeof(words), at += sizeof(words)) {
		memcpy(words, at, sizeof(words));
		for (unsigned i = 0; i < LANES; i++)
			lanes[i] = stir_lane(lanes[i], words[i]);
	}
	memset(words, 0, sizeof(words));
	memcpy(words, at, left);
	for (unsigned i = 0; i < LANES; i++)
		sum = stir_lane(sum, stir_lane(lanes[i], words[i]));
	sum ^= sum >> 32;
	return sum * ODD;
}
