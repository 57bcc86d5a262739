/* SPDX-License-Identifier: BSD-2-Clause */
/* Hash tables that grow by one bucket at a time, so that no insertion takes long; and hashes. */
#ifndef FILESERVER_TABLE_H
#define FILESERVER_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Bijective in `word` for any `h`: a change of one word always changes the result. */
static inline uint64_t fsd_mix(uint64_t h, uint64_t word)
{
	h = (h ^ word) * 0x9e3779b97f4a7c15ull;
	return h ^ h >> 29;
}

static inline uint64_t fsd_hash(const void *data, size_t length, uint64_t seed)
{
	const uint8_t *at = data;
	uint64_t h = fsd_mix(seed, length), word;

	for (; length >= 8; length -= 8, at += 8) {
		memcpy(&word, at, 8);
		h = fsd_mix(h, word);
	}
	word = 0;
	memcpy(&word, at, length);
	h = fsd_mix(h, word);
	return fsd_mix(h, 0xd6e8feb86659fd93ull);
}

/* The items are linked by a pointer at `chain` bytes from their start. */
struct fsd_table {
	void ***segments; /* each of FSD_TABLE_SEGMENT buckets */
	size_t buckets, count, segment_room;
	size_t chain;
	uint64_t (*hash)(const struct fsd_table *table, const void *item);
	uint64_t key; /* for `hash` */
};

#define FSD_TABLE_SEGMENT 1024

/* 0 or -ENOMEM. */
int fsd_table_init(struct fsd_table *table, size_t chain,
		   uint64_t (*hash)(const struct fsd_table *table, const void *item), uint64_t key);
/* The items stay. */
void fsd_table_free(struct fsd_table *table);
/* Never fails: without memory for another bucket the chains get longer. */
void fsd_table_add(struct fsd_table *table, void *item);
void fsd_table_remove(struct fsd_table *table, void *item);
/* The first item of the bucket of a hash, and of bucket number `i` < buckets. */
void *fsd_table_first(const struct fsd_table *table, uint64_t hash);
void *fsd_table_bucket(const struct fsd_table *table, size_t i);
void *fsd_table_next(const struct fsd_table *table, const void *item);

#endif
