/* SPDX-License-Identifier: BSD-2-Clause */
/* fcrypt of 64 blocks in parallel, on CPUs that look up bytes in tables of 128 (AVX-512 VBMI). */
#include "rxkad/fcrypt.h"

#ifdef RXW_FCRYPT_VBMI

#	include <cpuid.h>
#	include <immintrin.h>
#	include <string.h>

#	include "rxkad/fcrypt_tables.h"

#	define WIDE	 64u
#	define VBMI	 __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi")))
#	define VBMI_FN	 VBMI static inline __attribute__((always_inline))
#	define TEXTS_OF 8u /* texts per register, and blocks of a text per load */

/*
 * With fewer chains the portable kernel is as fast: a pass takes the same time for 1 block as for
 * 64.
 */
#	define LEAST 12u

/* A byte rotated right by 5; its upper five bits belong to the next byte, see below. */
#	define TURNED(v) (uint8_t)((v) >> 5 | (v) << 3),

static const uint8_t boxes[4][256] __attribute__((aligned(64))) = {
	{RXW_FCRYPT_S0(TURNED)},
	{RXW_FCRYPT_S1(TURNED)},
	{RXW_FCRYPT_S2(TURNED)},
	{RXW_FCRYPT_S3(TURNED)},
};

/* Move byte 8 i + j to position 8 j + i; its own inverse. */
#	define ROW(j) j, 8 + j, 16 + j, 24 + j, 32 + j, 40 + j, 48 + j, 56 + j
static const uint8_t crosswise[64] __attribute__((aligned(64))) = {ROW(0), ROW(1), ROW(2), ROW(3),
								   ROW(4), ROW(5), ROW(6), ROW(7)};

/* Each byte of each round key four times, the form in which instructions load it. */
struct spread {
	uint32_t k[RXW_FCRYPT_ROUNDS][4];
};

static void spread_key(struct spread *s, const struct rxw_fcrypt *f)
{
	for (unsigned i = 0; i < RXW_FCRYPT_ROUNDS; i++)
		for (unsigned j = 0; j < 4; j++)
			s->k[i][j] = (f->k[i] >> (24 - 8 * j) & 0xff) * 0x01010101u;
}

VBMI_FN __m512i look_up(const uint8_t box[256], __m512i index)
{
	__m512i low = _mm512_permutex2var_epi8(_mm512_load_si512(box), index,
					       _mm512_load_si512(box + 64));
	__m512i high = _mm512_permutex2var_epi8(_mm512_load_si512(box + 128), index,
						_mm512_load_si512(box + 192));

	return _mm512_mask_blend_epi8(_mm512_movepi8_mask(index), low, high);
}

/*
 * to[0..3] ^= F(key ^ from[0..3]), where register j has byte j of all blocks. A byte of a word that
 * is rotated right by 5 bits has three bits of the same byte and five of the previous one.
 */
VBMI_FN void half_round(__m512i *to, const __m512i *from, const uint32_t key[4])
{
	const __m512i same = _mm512_set1_epi8(7);
	__m512i w0 = look_up(boxes[3], _mm512_xor_si512(from[3], _mm512_set1_epi32((int)key[3])));
	__m512i w1 = look_up(boxes[2], _mm512_xor_si512(from[2], _mm512_set1_epi32((int)key[2])));
	__m512i w2 = look_up(boxes[0], _mm512_xor_si512(from[0], _mm512_set1_epi32((int)key[0])));
	__m512i w3 = look_up(boxes[1], _mm512_xor_si512(from[1], _mm512_set1_epi32((int)key[1])));

	/* 0xca: the first where a bit of `same` is set, else the second. */
	to[0] = _mm512_xor_si512(to[0], _mm512_ternarylogic_epi32(same, w0, w3, 0xca));
	to[1] = _mm512_xor_si512(to[1], _mm512_ternarylogic_epi32(same, w1, w0, 0xca));
	to[2] = _mm512_xor_si512(to[2], _mm512_ternarylogic_epi32(same, w2, w1, 0xca));
	to[3] = _mm512_xor_si512(to[3], _mm512_ternarylogic_epi32(same, w3, w2, 0xca));
}

VBMI_FN void forward(const struct spread *s, __m512i b[8])
{
	for (unsigned i = 0; i < RXW_FCRYPT_ROUNDS; i += 2) {
		half_round(b, b + 4, s->k[i]);
		half_round(b + 4, b, s->k[i + 1]);
	}
}

VBMI_FN void backward(const struct spread *s, __m512i b[8])
{
	for (unsigned i = RXW_FCRYPT_ROUNDS; i > 0; i -= 2) {
		half_round(b + 4, b, s->k[i - 1]);
		half_round(b, b + 4, s->k[i - 2]);
	}
}

/* Word j of register i to word i of register j: its own inverse. */
VBMI_FN void cross_words(__m512i r[8])
{
	__m512i t[8], u[8];

	for (unsigned i = 0; i < 8; i += 2) {
		t[i] = _mm512_unpacklo_epi64(r[i], r[i + 1]);
		t[i + 1] = _mm512_unpackhi_epi64(r[i], r[i + 1]);
	}
	for (unsigned i = 0; i < 8; i += 4)
		for (unsigned j = 0; j < 2; j++) {
			/* Pairs 0 and 2, pairs 1 and 3 of both. */
			u[i + j] = _mm512_shuffle_i64x2(t[i + j], t[i + 2 + j], 0x88);
			u[i + 2 + j] = _mm512_shuffle_i64x2(t[i + j], t[i + 2 + j], 0xdd);
		}
	for (unsigned j = 0; j < 4; j++) {
		/* u[j] and u[4 + j] have the words j, j + 4 (as pairs) of four registers each. */
		r[j] = _mm512_shuffle_i64x2(u[j], u[4 + j], 0x88);
		r[4 + j] = _mm512_shuffle_i64x2(u[j], u[4 + j], 0xdd);
	}
}

/* Eight blocks in each register <-> byte j of all in register j; the order of blocks is kept. */
VBMI_FN void to_planes(__m512i r[8])
{
	const __m512i order = _mm512_load_si512(crosswise);

	for (unsigned i = 0; i < 8; i++)
		r[i] = _mm512_permutexvar_epi8(order, r[i]);
	cross_words(r);
}

VBMI_FN void from_planes(__m512i r[8])
{
	const __m512i order = _mm512_load_si512(crosswise);

	cross_words(r);
	for (unsigned i = 0; i < 8; i++)
		r[i] = _mm512_permutexvar_epi8(order, r[i]);
}

VBMI static void wide_blocks(const struct spread *s, const uint8_t *in, uint8_t *out, bool back)
{
	__m512i r[8];

	for (unsigned i = 0; i < 8; i++)
		r[i] = _mm512_loadu_si512(in + 64 * i);
	to_planes(r);
	if (back)
		backward(s, r);
	else
		forward(s, r);
	from_planes(r);
	for (unsigned i = 0; i < 8; i++)
		_mm512_storeu_si512(out + 64 * i, r[i]);
}

static void blocks_by(const struct rxw_fcrypt *f, const uint8_t *in, uint8_t *out, size_t blocks,
		      bool back)
{
	struct spread s;
	uint8_t rest[WIDE * RXW_FCRYPT_BLOCK] __attribute__((aligned(64)));

	if (blocks < LEAST) {
		if (back)
			rxw_fcrypt_portable.decrypt(f, in, out, blocks);
		else
			rxw_fcrypt_portable.encrypt(f, in, out, blocks);
		return;
	}
	spread_key(&s, f);
	for (; blocks >= WIDE; blocks -= WIDE) {
		wide_blocks(&s, in, out, back);
		in += WIDE * RXW_FCRYPT_BLOCK;
		out += WIDE * RXW_FCRYPT_BLOCK;
	}
	if (blocks > 0) {
		memset(rest, 0, sizeof(rest));
		memcpy(rest, in, RXW_FCRYPT_BLOCK * blocks);
		wide_blocks(&s, rest, rest, back);
		memcpy(out, rest, RXW_FCRYPT_BLOCK * blocks);
		explicit_bzero(rest, sizeof(rest));
	}
	explicit_bzero(&s, sizeof(s));
}

static void vbmi_encrypt(const struct rxw_fcrypt *f, const uint8_t *in, uint8_t *out, size_t blocks)
{
	blocks_by(f, in, out, blocks, false);
}

static void vbmi_decrypt(const struct rxw_fcrypt *f, const uint8_t *in, uint8_t *out, size_t blocks)
{
	blocks_by(f, in, out, blocks, true);
}

/* Which of the next eight blocks a text has. */
static inline __mmask8 blocks_left(const struct rxw_fcrypt_text *t, size_t count, size_t i)
{
	if (i >= count || t[i].blocks == 0)
		return 0;
	return t[i].blocks >= TEXTS_OF ? 0xff : (__mmask8)((1u << t[i].blocks) - 1);
}

/*
 * Encrypt eight more blocks of up to 64 texts. `x` are the bit planes of the chaining values; those
 * of texts that end here are undefined afterwards.
 */
VBMI static void wide_chain(const struct spread *s, struct rxw_fcrypt_text *t, size_t count,
			    __m512i x[8])
{
	__m512i step[TEXTS_OF][8]; /* [block][group of eight texts] */
	size_t groups = (count + TEXTS_OF - 1) / TEXTS_OF;

	for (size_t g = 0; g < 8; g++) {
		__m512i r[TEXTS_OF];

		for (unsigned i = 0; i < TEXTS_OF; i++)
			r[i] = g < groups
				       ? _mm512_maskz_loadu_epi64(
						 blocks_left(t, count, TEXTS_OF * g + i),
						 TEXTS_OF * g + i < count ? t[TEXTS_OF * g + i].data
									  : (uint8_t *)s)
				       : _mm512_setzero_si512();
		if (g < groups)
			cross_words(r);
		for (unsigned b = 0; b < TEXTS_OF; b++)
			step[b][g] = r[b];
	}
	for (unsigned b = 0; b < TEXTS_OF; b++) {
		__m512i p[8], c[8];

		memcpy(p, step[b], sizeof(p));
		to_planes(p);
		for (unsigned j = 0; j < 8; j++)
			c[j] = _mm512_xor_si512(p[j], x[j]);
		forward(s, c);
		for (unsigned j = 0; j < 8; j++)
			x[j] = _mm512_xor_si512(p[j], c[j]);
		from_planes(c);
		memcpy(step[b], c, sizeof(c));
	}
	for (size_t g = 0; g < groups; g++) {
		__m512i r[TEXTS_OF];

		for (unsigned b = 0; b < TEXTS_OF; b++)
			r[b] = step[b][g];
		cross_words(r);
		for (unsigned i = 0; i < TEXTS_OF && TEXTS_OF * g + i < count; i++) {
			struct rxw_fcrypt_text *text = &t[TEXTS_OF * g + i];
			size_t n = text->blocks < TEXTS_OF ? text->blocks : TEXTS_OF;

			_mm512_mask_storeu_epi64(text->data, blocks_left(text, 1, 0), r[i]);
			text->data += RXW_FCRYPT_BLOCK * n;
			text->blocks -= n;
		}
	}
}

static size_t unfinished(const struct rxw_fcrypt_text *t, size_t count)
{
	size_t n = 0;

	for (size_t i = 0; i < count; i++)
		n += t[i].blocks > 0;
	return n;
}

VBMI static void vbmi_chain(const struct rxw_fcrypt *f, struct rxw_fcrypt_text *texts, size_t count)
{
	struct spread s;

	if (count >= LEAST)
		spread_key(&s, f);
	while (count > 0) {
		size_t n = count < WIDE ? count : WIDE;

		if (unfinished(texts, n) >= LEAST) {
			uint64_t start[WIDE] __attribute__((aligned(64))) = {0};
			__m512i x[8];

			for (size_t i = 0; i < n; i++)
				start[i] = __builtin_bswap64(texts[i].x);
			memcpy(x, start, sizeof(x));
			to_planes(x);
			do
				wide_chain(&s, texts, n, x);
			while (unfinished(texts, n) >= LEAST);
			from_planes(x);
			memcpy(start, x, sizeof(x));
			for (size_t i = 0; i < n; i++)
				texts[i].x = __builtin_bswap64(start[i]);
		}
		rxw_fcrypt_portable.chain(f, texts, n);
		texts += n;
		count -= n;
	}
	explicit_bzero(&s, sizeof(s));
}

/* The registers that the system saves: SSE, AVX and the three parts of AVX-512. */
#	define SAVED 0xe6u

/* By cpuid, since the compiler's own functions add 3 KB of names of other features. */
static bool vbmi_usable(void)
{
	const unsigned wanted = bit_AVX512F | bit_AVX512BW | bit_AVX512VL;
	unsigned a, b, c, d, saved, high;

	if (!__get_cpuid(1, &a, &b, &c, &d) || (c & bit_OSXSAVE) == 0)
		return false;
	__asm__("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
	return (saved & SAVED) == SAVED && __get_cpuid_count(7, 0, &a, &b, &c, &d) &&
	       (b & wanted) == wanted && (c & bit_AVX512VBMI) != 0;
}

const struct rxw_fcrypt_kernel rxw_fcrypt_vbmi = {
	.name = "avx512vbmi",
	.usable = vbmi_usable,
	.encrypt = vbmi_encrypt,
	.decrypt = vbmi_decrypt,
	.chain = vbmi_chain,
};

#endif
