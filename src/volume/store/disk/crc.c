/* SPDX-License-Identifier: BSD-2-Clause */
/* CRC-32C, with the instruction of x86 where there is one. */
#include "volume/store/disk/crc.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#define POLYNOMIAL 0x82f63b78u /* bits reversed */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint32_t table[256];
static bool fast;

static void prepare_crc_table(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t crc = i;

		for (int bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ POLYNOMIAL : crc >> 1;
		table[i] = crc;
	}
#ifdef __x86_64__
	fast = __builtin_cpu_supports("sse4.2");
#endif
}

#ifdef __x86_64__
__attribute__((target("sse4.2"))) static uint32_t
compute_crc_fast(uint32_t crc, const uint8_t *byte, size_t length)
{
	uint64_t state = crc, word;

	for (; length >= sizeof(word); byte += sizeof(word), length -= sizeof(word)) {
		memcpy(&word, byte, sizeof(word));
		state = __builtin_ia32_crc32di(state, word);
	}
	crc = (uint32_t)state;
	while (length--)
		crc = __builtin_ia32_crc32qi(crc, *byte++);
	return crc;
}
#endif

uint32_t store_crc(uint32_t crc, const void *bytes, size_t length)
{
	const uint8_t *byte = bytes;

	pthread_once(&once, prepare_crc_table);
	crc = ~crc;
#ifdef __x86_64__
	if (fast)
		return ~compute_crc_fast(crc, byte, length);
#endif
	while (length--)
		crc = crc >> 8 ^ table[(crc ^ *byte++) & 255];
	return ~crc;
}
