/* SPDX-License-Identifier: BSD-2-Clause */
/* CRC-32C, with the instructions of x86 where they are: three streams at once, whose results are joined by a multiplication. */
#include "volume/store/disk/crc.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#ifdef __x86_64__
#	include <immintrin.h>
#endif

#define POLYNOMIAL 0x82f63b78u /* bits reversed */
#define STREAM	   1024	       /* bytes of each of three streams */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint32_t table[256];
static bool fast;
/* x to the power of 8 * (STREAM or 2 * STREAM) - 33: moves a state over so many bytes. */
static uint64_t shift_one, shift_two;

/* x to a power, modulo the polynomial, with the bits reversed as those of a state are. */
static uint32_t compute_power(uint64_t power)
{
	uint32_t value = 1u << 31;

	while (power--)
		value = value & 1 ? value >> 1 ^ POLYNOMIAL : value >> 1;
	return value;
}

static void prepare_crc_table(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t crc = i;

		for (int bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ POLYNOMIAL : crc >> 1;
		table[i] = crc;
	}
	shift_one = compute_power(8 * STREAM - 33);
	shift_two = compute_power(16 * STREAM - 33);
#ifdef __x86_64__
	fast = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
#endif
}

#ifdef __x86_64__
__attribute__((target("sse4.2,pclmul"))) static uint64_t load_crc_word(const uint8_t *byte)
{
	uint64_t word;

	memcpy(&word, byte, sizeof(word));
	return word;
}

/* The product has 63 bits; the instruction reduces them, and multiplies by the 33 that `shift` lacks. */
__attribute__((target("sse4.2,pclmul"))) static uint64_t move_state(uint64_t state, uint64_t shift)
{
	__m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)state),
					       _mm_cvtsi64_si128((long long)shift), 0);

	return _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(product));
}

__attribute__((target("sse4.2,pclmul"))) static uint32_t
compute_crc_fast(uint32_t crc, const uint8_t *byte, size_t length)
{
	uint64_t a = crc;

	for (; length >= 3 * STREAM; byte += 3 * STREAM, length -= 3 * STREAM) {
		uint64_t b = 0, c = 0;

		for (size_t i = 0; i < STREAM; i += 8) {
			a = _mm_crc32_u64(a, load_crc_word(byte + i));
			b = _mm_crc32_u64(b, load_crc_word(byte + STREAM + i));
			c = _mm_crc32_u64(c, load_crc_word(byte + 2 * STREAM + i));
		}
		a = move_state(a, shift_two) ^ move_state(b, shift_one) ^ c;
	}
	for (; length >= 8; byte += 8, length -= 8)
		a = _mm_crc32_u64(a, load_crc_word(byte));
	crc = (uint32_t)a;
	while (length--)
		crc = _mm_crc32_u8(crc, *byte++);
	return crc;
}
#endif

static uint32_t compute_crc_by_table(uint32_t crc, const uint8_t *byte, size_t length)
{
	while (length--)
		crc = crc >> 8 ^ table[(crc ^ *byte++) & 255];
	return crc;
}

uint32_t store_crc(uint32_t crc, const void *bytes, size_t length)
{
	pthread_once(&once, prepare_crc_table);
#ifdef __x86_64__
	if (fast)
		return ~compute_crc_fast(~crc, bytes, length);
#endif
	return ~compute_crc_by_table(~crc, bytes, length);
}

uint32_t store_crc_plain(uint32_t crc, const void *bytes, size_t length)
{
	pthread_once(&once, prepare_crc_table);
	return ~compute_crc_by_table(~crc, bytes, length);
}
