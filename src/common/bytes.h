/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers as bytes, at any address: big-endian words, and little-endian numbers of records without padding. */
#ifndef COMMON_BYTES_H
#define COMMON_BYTES_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* -- big-endian words -- */

static inline void put16(uint8_t *at, unsigned v)
{
	at[0] = (uint8_t)(v >> 8);
	at[1] = (uint8_t)v;
}

static inline void put32(uint8_t *at, uint32_t v)
{
	put16(at, v >> 16);
	put16(at + 2, v & 0xffff);
}

static inline unsigned get16(const uint8_t *at)
{
	return (unsigned)at[0] << 8 | at[1];
}

static inline uint32_t get32(const uint8_t *at)
{
	return (uint32_t)get16(at) << 16 | get16(at + 2);
}

static inline uint64_t get64(const uint8_t *at)
{
	return (uint64_t)get32(at) << 32 | get32(at + 4);
}

/* -- little-endian numbers of up to 8 bytes -- */

static inline void put_little(uint8_t **at, uint64_t value, unsigned bytes)
{
	assert(bytes <= 8);
	for (unsigned i = 0; i < bytes; i++, value >>= 8)
		*(*at)++ = (uint8_t)value;
}

/* The rest of a record. Reading beyond the end gives zeros and sets `bad`. */
struct bytes {
	const uint8_t *at;
	size_t left;
	bool bad;
};

static inline uint64_t get_little(struct bytes *from, unsigned bytes)
{
	uint64_t value = 0;

	assert(bytes <= 8);
	if (from->left < bytes) {
		from->bad = true;
		from->left = 0;
		return 0;
	}
	for (unsigned i = 0; i < bytes; i++)
		value |= (uint64_t)from->at[i] << 8 * i;
	from->at += bytes;
	from->left -= bytes;
	return value;
}

#endif
