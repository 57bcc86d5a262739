/* SPDX-License-Identifier: BSD-2-Clause */
/* Hash tables that grow by one bucket at a time, so that no insertion takes long. */
#ifndef FILESERVER_TABLE_H
#define FILESERVER_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
