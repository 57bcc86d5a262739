/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CRC-32C, with the instructions of x86 where they are. With AVX-512, 256 bytes are a polynomial in four registers, which are
 * multiplied by x to the power of 2,048 before the next 256 are added. With SSE4.2, three streams are computed at once, whose
 * results are joined by a multiplication.
 */
#include "volume/store/disk/crc.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>
#ifdef __x86_64__
#	include <immintrin.h>
#endif

#define POLYNOMIAL 0x82f63b78u /* bits reversed */
#define LONG	   1024	       /* bytes of each of three streams, while there are so many; */
#define SHORT	   128	       /* and of the rest */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint32_t table[256];
static enum store_crc_way best;

/* x to a power, modulo the polynomial, with the bits reversed as those of a state are. */
static uint32_t compute_power(uint64_t power)
{
	uint32_t value = 1u << 31;

	while (power--)
		value = value & 1 ? value >> 1 ^ POLYNOMIAL : value >> 1;
	return value;
}

static uint32_t compute_crc_by_table(uint32_t crc, const uint8_t *byte, size_t length)
{
	while (length--)
		crc = crc >> 8 ^ table[(crc ^ *byte++) & 255];
	return crc;
}

#ifdef __x86_64__

/* -- with SSE4.2 -- */

#	define SSE_CODE __attribute__((target("sse4.2,pclmul")))

/* x to the power of 8 * (bytes of one stream, and of two) - 33: moves a state over so many bytes. */
struct shift {
	uint64_t one, two;
};
static struct shift shift_long, shift_short;

SSE_CODE static uint64_t load_crc_word(const uint8_t *byte)
{
	uint64_t word;

	memcpy(&word, byte, sizeof(word));
	return word;
}

/* The product has 63 bits; the instruction reduces them, and multiplies by the 33 that `shift` lacks. */
SSE_CODE static uint64_t move_state(uint64_t state, uint64_t shift)
{
	__m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)state),
					       _mm_cvtsi64_si128((long long)shift), 0);

	return _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(product));
}

/* The checksums of three streams, each of `stream` bytes. */
SSE_CODE static inline uint64_t compute_three_streams(uint64_t a, const uint8_t *byte,
						      size_t stream, const struct shift *shift)
{
	uint64_t b = 0, c = 0;

	for (size_t i = 0; i < stream; i += 8) {
		a = _mm_crc32_u64(a, load_crc_word(byte + i));
		b = _mm_crc32_u64(b, load_crc_word(byte + stream + i));
		c = _mm_crc32_u64(c, load_crc_word(byte + 2 * stream + i));
	}
	return move_state(a, shift->two) ^ move_state(b, shift->one) ^ c;
}

SSE_CODE static uint32_t compute_crc_by_words(uint64_t state, const uint8_t *byte, size_t length)
{
	uint32_t crc;

	for (; length >= 8; byte += 8, length -= 8)
		state = _mm_crc32_u64(state, load_crc_word(byte));
	crc = (uint32_t)state;
	while (length--)
		crc = _mm_crc32_u8(crc, *byte++);
	return crc;
}

SSE_CODE static uint32_t compute_crc_in_streams(uint32_t crc, const uint8_t *byte, size_t length)
{
	uint64_t state = crc;

	for (; length >= 3 * LONG; byte += 3 * LONG, length -= 3 * LONG)
		state = compute_three_streams(state, byte, LONG, &shift_long);
	for (; length >= 3 * SHORT; byte += 3 * SHORT, length -= 3 * SHORT)
		state = compute_three_streams(state, byte, SHORT, &shift_short);
	return compute_crc_by_words(state, byte, length);
}

/* -- with AVX-512 -- */

#	define WIDE_CODE \
		__attribute__((target("sse4.2,pclmul,avx512f,avx512dq,avx512vl,vpclmulqdq")))

/*
 * Factors that move 128 bits over so many bytes: of the half that comes first, and of the other one. A product of numbers with
 * reversed bits is one bit too low, and a factor has 32 of 64 bits: together the 33 that the powers lack.
 */
struct factor {
	uint64_t first, second;
};
static struct factor over_256, over_128, over_64, over_lanes[4];

static struct factor compute_factor(uint64_t bytes)
{
	return (struct factor){compute_power(8 * bytes + 64 - 33), compute_power(8 * bytes - 33)};
}

WIDE_CODE static inline __m512i spread_factor(const struct factor *factor)
{
	return _mm512_broadcast_i64x2(_mm_loadu_si128((const void *)factor));
}

WIDE_CODE static inline __m512i move_lanes(__m512i lanes, __m512i factor, __m512i next)
{
	__m512i first = _mm512_clmulepi64_epi128(lanes, factor, 0x00);
	__m512i second = _mm512_clmulepi64_epi128(lanes, factor, 0x11);

	return _mm512_ternarylogic_epi64(first, second, next, 0x96); /* all three added */
}

/* The state after the bytes of a register: its lanes are moved to the last one, which is reduced. */
WIDE_CODE static inline uint64_t reduce_lanes(__m512i lanes)
{
	__m512i last = _mm512_maskz_mov_epi64(0xc0, lanes), sum;
	__m128i joined;

	sum = move_lanes(lanes, _mm512_loadu_si512(over_lanes), last);
	joined = _mm_xor_si128(
		_mm_xor_si128(_mm512_castsi512_si128(sum), _mm512_extracti32x4_epi32(sum, 1)),
		_mm_xor_si128(_mm512_extracti32x4_epi32(sum, 2),
			      _mm512_extracti32x4_epi32(sum, 3)));
	return _mm_crc32_u64(_mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(joined)),
			     (uint64_t)_mm_extract_epi64(joined, 1));
}

WIDE_CODE static uint32_t compute_crc_in_lanes(uint32_t crc, const uint8_t *byte, size_t length)
{
	__m512i a, b, c, d, factor;

	if (length < 256)
		return compute_crc_by_words(crc, byte, length);
	a = _mm512_loadu_si512(byte);
	b = _mm512_loadu_si512(byte + 64);
	c = _mm512_loadu_si512(byte + 128);
	d = _mm512_loadu_si512(byte + 192);
	a = _mm512_xor_si512(a, _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)crc)));
	factor = spread_factor(&over_256);
	for (byte += 256, length -= 256; length >= 256; byte += 256, length -= 256) {
		a = move_lanes(a, factor, _mm512_loadu_si512(byte));
		b = move_lanes(b, factor, _mm512_loadu_si512(byte + 64));
		c = move_lanes(c, factor, _mm512_loadu_si512(byte + 128));
		d = move_lanes(d, factor, _mm512_loadu_si512(byte + 192));
	}
	factor = spread_factor(&over_128);
	a = move_lanes(a, factor, c);
	b = move_lanes(b, factor, d);
	factor = spread_factor(&over_64);
	a = move_lanes(a, factor, b);
	for (; length >= 64; byte += 64, length -= 64)
		a = move_lanes(a, factor, _mm512_loadu_si512(byte));
	return compute_crc_by_words(reduce_lanes(a), byte, length);
}

static void prepare_factors(void)
{
	shift_long = (struct shift){compute_power(8 * LONG - 33), compute_power(16 * LONG - 33)};
	shift_short = (struct shift){compute_power(8 * SHORT - 33), compute_power(16 * SHORT - 33)};
	over_256 = compute_factor(256);
	over_128 = compute_factor(128);
	over_64 = compute_factor(64);
	for (unsigned i = 0; i < 3; i++)
		over_lanes[i] = compute_factor(16 * (3 - i));
}

static enum store_crc_way choose_crc_way(void)
{
	if (!__builtin_cpu_supports("sse4.2") || !__builtin_cpu_supports("pclmul"))
		return STORE_CRC_TABLE;
	return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
			       __builtin_cpu_supports("avx512vl") &&
			       __builtin_cpu_supports("vpclmulqdq")
		       ? STORE_CRC_LANES
		       : STORE_CRC_STREAMS;
}

#endif

static void prepare_crc(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t crc = i;

		for (int bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ POLYNOMIAL : crc >> 1;
		table[i] = crc;
	}
#ifdef __x86_64__
	prepare_factors();
	best = choose_crc_way();
#endif
}

static uint32_t compute_crc(enum store_crc_way way, uint32_t crc, const uint8_t *byte,
			    size_t length)
{
	assert(way <= best);
#ifdef __x86_64__
	if (way == STORE_CRC_LANES)
		return compute_crc_in_lanes(crc, byte, length);
	if (way == STORE_CRC_STREAMS)
		return compute_crc_in_streams(crc, byte, length);
#endif
	return compute_crc_by_table(crc, byte, length);
}

uint32_t store_crc(uint32_t crc, const void *bytes, size_t length)
{
	pthread_once(&once, prepare_crc);
	return ~compute_crc(best, ~crc, bytes, length);
}

uint32_t store_crc_by(enum store_crc_way way, uint32_t crc, const void *bytes, size_t length)
{
	pthread_once(&once, prepare_crc);
	return ~compute_crc(way, ~crc, bytes, length);
}

enum store_crc_way store_crc_best(void)
{
	pthread_once(&once, prepare_crc);
	return best;
}
