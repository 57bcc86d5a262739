/* SPDX-License-Identifier: BSD-2-Clause */
/* fcrypt in portable C, several chains in parallel (rx-protocol 7.3.8). */
#include "rxkad/fcrypt.h"

#include <stdbool.h>
#include <string.h>

#include "rxkad/fcrypt_tables.h"

/* Each entry is its byte in position, rotated right by 5, so that a round is four XORs. */
#define ROTATE(v)   (((uint32_t)(v) >> 5) | ((uint32_t)(v) << 27))
#define PLACE_S0(v) ROTATE((uint32_t)(v) << 8),
#define PLACE_S1(v) ROTATE((uint32_t)(v)),
#define PLACE_S2(v) ROTATE((uint32_t)(v) << 16),
#define PLACE_S3(v) ROTATE((uint32_t)(v) << 24),

static const uint32_t s0[256] __attribute__((aligned(64))) = {RXW_FCRYPT_S0(PLACE_S0)};
static const uint32_t s1[256] __attribute__((aligned(64))) = {RXW_FCRYPT_S1(PLACE_S1)};
static const uint32_t s2[256] __attribute__((aligned(64))) = {RXW_FCRYPT_S2(PLACE_S2)};
static const uint32_t s3[256] __attribute__((aligned(64))) = {RXW_FCRYPT_S3(PLACE_S3)};

/* Parallel chains: two words each, in 16 registers; more would spill. Only worthwhile unrolled. */
#define LANES 4
#ifdef __clang__
#	define UNROLL _Pragma("unroll")
#	define ROLLED _Pragma("unroll 2")
#else
#	define UNROLL _Pragma("GCC unroll 16")
#	define ROLLED _Pragma("GCC unroll 2")
#endif

static inline uint64_t load_block(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	v = __builtin_bswap64(v);
#endif
	return v;
}

static inline void store_block(uint8_t *p, uint64_t v)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	v = __builtin_bswap64(v);
#endif
	memcpy(p, &v, sizeof(v));
}

void rxw_fcrypt_key(struct rxw_fcrypt *f, const uint8_t key[8])
{
	uint64_t k = 0;

	for (unsigned i = 0; i < 8; i++)
		k = k << 7 | key[i] >> 1;
	for (unsigned i = 0; i < RXW_FCRYPT_ROUNDS; i++) {
		f->k[i] = (uint32_t)k;
		k = (k >> 11 | k << 45) & 0xffffffffffffffull;
	}
}

static inline uint32_t mix_word(uint32_t x)
{
	/* Keep lanes in scalar registers: vectors would have to be split for the lookups. */
	__asm__("" : "+r"(x));
	return s3[x & 0xff] ^ s2[x >> 8 & 0xff] ^ s1[x >> 16 & 0xff] ^ s0[x >> 24];
}

/* `lanes` is a constant in every use, so that everything unrolls and the lanes interleave. */
static inline __attribute__((always_inline)) void encrypt_lanes(const struct rxw_fcrypt *f,
								uint64_t *v, unsigned lanes)
{
	uint32_t left[LANES], right[LANES];

	UNROLL
	for (unsigned l = 0; l < lanes; l++) {
		left[l] = (uint32_t)(v[l] >> 32);
		right[l] = (uint32_t)v[l];
	}
	ROLLED
	for (unsigned i = 0; i < RXW_FCRYPT_ROUNDS; i += 2) {
		UNROLL
		for (unsigned l = 0; l < lanes; l++)
			left[l] ^= mix_word(f->k[i] ^ right[l]);
		UNROLL
		for (unsigned l = 0; l < lanes; l++)
			right[l] ^= mix_word(f->k[i + 1] ^ left[l]);
	}
	UNROLL
	for (unsigned l = 0; l < lanes; l++)
		v[l] = (uint64_t)left[l] << 32 | right[l];
}

static inline __attribute__((always_inline)) void decrypt_lanes(const struct rxw_fcrypt *f,
								uint64_t *v, unsigned lanes)
{
	uint32_t left[LANES], right[LANES];

	UNROLL
	for (unsigned l = 0; l < lanes; l++) {
		left[l] = (uint32_t)(v[l] >> 32);
		right[l] = (uint32_t)v[l];
	}
	ROLLED
	for (unsigned i = RXW_FCRYPT_ROUNDS; i > 0; i -= 2) {
		UNROLL
		for (unsigned l = 0; l < lanes; l++)
			right[l] ^= mix_word(f->k[i - 1] ^ left[l]);
		UNROLL
		for (unsigned l = 0; l < lanes; l++)
			left[l] ^= mix_word(f->k[i - 2] ^ right[l]);
	}
	UNROLL
	for (unsigned l = 0; l < lanes; l++)
		v[l] = (uint64_t)left[l] << 32 | right[l];
}

static inline __attribute__((always_inline)) void
blocks_by(const struct rxw_fcrypt *f, const uint8_t *in, uint8_t *out, unsigned lanes, bool back)
{
	uint64_t v[LANES];

	UNROLL
	for (unsigned l = 0; l < lanes; l++)
		v[l] = load_block(in + RXW_FCRYPT_BLOCK * l);
	if (back)
		decrypt_lanes(f, v, lanes);
	else
		encrypt_lanes(f, v, lanes);
	UNROLL
	for (unsigned l = 0; l < lanes; l++)
		store_block(out + RXW_FCRYPT_BLOCK * l, v[l]);
}

static inline __attribute__((always_inline)) void
crypt_blocks(const struct rxw_fcrypt *f, const uint8_t *in, uint8_t *out, size_t blocks, bool back)
{
	for (; blocks >= LANES; blocks -= LANES) {
		blocks_by(f, in, out, LANES, back);
		in += LANES * RXW_FCRYPT_BLOCK;
		out += LANES * RXW_FCRYPT_BLOCK;
	}
	for (; blocks > 0; blocks--) {
		blocks_by(f, in, out, 1, back);
		in += RXW_FCRYPT_BLOCK;
		out += RXW_FCRYPT_BLOCK;
	}
}

static void decrypt_blocks(const struct rxw_fcrypt *f, const uint8_t *in, uint8_t *out,
			   size_t blocks)
{
	crypt_blocks(f, in, out, blocks, true);
}

void rxw_fcrypt_encrypt(const struct rxw_fcrypt *f, uint8_t *data, size_t blocks)
{
	crypt_blocks(f, data, data, blocks, false);
}

void rxw_fcrypt_decrypt(const struct rxw_fcrypt *f, uint8_t *data, size_t blocks)
{
	decrypt_blocks(f, data, data, blocks);
}

/* Encrypt `blocks` blocks of each of `lanes` chains in parallel. */
static inline __attribute__((always_inline)) void
chains_by(const struct rxw_fcrypt *f, struct rxw_fcrypt_text **t, size_t blocks, unsigned lanes)
{
	uint64_t v[LANES], x[LANES];
	uint8_t *data[LANES];

	UNROLL
	for (unsigned l = 0; l < lanes; l++) {
		data[l] = t[l]->data;
		x[l] = t[l]->x;
	}
	for (size_t b = 0; b < blocks; b++) {
		UNROLL
		for (unsigned l = 0; l < lanes; l++) {
			uint64_t p = load_block(data[l] + RXW_FCRYPT_BLOCK * b);

			v[l] = p ^ x[l];
			x[l] = p;
		}
		encrypt_lanes(f, v, lanes);
		UNROLL
		for (unsigned l = 0; l < lanes; l++) {
			store_block(data[l] + RXW_FCRYPT_BLOCK * b, v[l]);
			x[l] ^= v[l];
		}
	}
	UNROLL
	for (unsigned l = 0; l < lanes; l++) {
		t[l]->data = data[l] + RXW_FCRYPT_BLOCK * blocks;
		t[l]->blocks -= blocks;
		t[l]->x = x[l];
	}
}

void rxw_fcrypt_pcbc_encrypt(const struct rxw_fcrypt *f, struct rxw_fcrypt_text *texts,
			     size_t count)
{
	struct rxw_fcrypt_text *active[LANES];
	unsigned lanes = 0;
	size_t next = 0;

	for (;;) {
		size_t least = SIZE_MAX;
		unsigned kept = 0;

		while (lanes < LANES && next < count) {
			if (texts[next].blocks > 0)
				active[lanes++] = &texts[next];
			next++;
		}
		if (lanes == 0)
			return;
		UNROLL
		for (unsigned l = 0; l < lanes; l++)
			least = active[l]->blocks < least ? active[l]->blocks : least;
		switch (lanes) {
		case 1:
			chains_by(f, active, least, 1);
			break;
		case 2:
			chains_by(f, active, least, 2);
			break;
		case 3:
			chains_by(f, active, least, 3);
			break;
		default:
			chains_by(f, active, least, LANES);
			break;
		}
		for (unsigned l = 0; l < lanes; l++)
			if (active[l]->blocks > 0)
				active[kept++] = active[l];
		lanes = kept;
	}
}

/* Blocks that are decrypted together, from one text or several. */
#define TOGETHER 64u

/*
 * Decryption is not sequential: blocks of all texts are collected and decrypted in parallel; only
 * the XORs of PCBC are sequential in each text.
 */
void rxw_fcrypt_pcbc_decrypt(const struct rxw_fcrypt *f, struct rxw_fcrypt_text *texts,
			     size_t count)
{
	uint8_t sealed[TOGETHER * RXW_FCRYPT_BLOCK] __attribute__((aligned(64)));
	uint8_t opened[TOGETHER * RXW_FCRYPT_BLOCK] __attribute__((aligned(64)));
	size_t first = 0;

	while (first < count) {
		size_t filled = 0, done = 0, last = first;

		while (last < count && filled < TOGETHER) {
			size_t n = texts[last].blocks;

			n = n < TOGETHER - filled ? n : TOGETHER - filled;
			memcpy(sealed + RXW_FCRYPT_BLOCK * filled, texts[last].data,
			       RXW_FCRYPT_BLOCK * n);
			filled += n;
			if (n == texts[last].blocks)
				last++;
		}
		decrypt_blocks(f, sealed, opened, filled);
		while (done < filled) {
			struct rxw_fcrypt_text *t = &texts[first];
			size_t n = t->blocks < filled - done ? t->blocks : filled - done;
			uint64_t x = t->x;

			for (size_t b = 0; b < n; b++) {
				uint64_t d = load_block(opened + RXW_FCRYPT_BLOCK * (done + b));

				store_block(t->data + RXW_FCRYPT_BLOCK * b, d ^ x);
				x ^= d ^ load_block(sealed + RXW_FCRYPT_BLOCK * (done + b));
			}
			t->data += RXW_FCRYPT_BLOCK * n;
			t->blocks -= n;
			t->x = x;
			done += n;
			if (t->blocks == 0)
				first++;
		}
		/* Skip texts without blocks. */
		first = first < last ? last : first;
	}
	explicit_bzero(opened, sizeof(opened));
}
