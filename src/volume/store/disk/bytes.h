/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers in records: little-endian, without padding. */
#ifndef STORE_BYTES_H
#define STORE_BYTES_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

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
