/* SPDX-License-Identifier: BSD-2-Clause */
/* Linear hashing: the buckets are split one after the other, bucket i of n into i and i + n/2. */
#include "fileserver/volume/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void **chain_of(const struct fsd_table *table, const void *item)
{
	return (void **)(void *)((char *)(uintptr_t)item + table->chain);
}

static void **bucket_at(const struct fsd_table *table, size_t i)
{
	return &table->segments[i / FSD_TABLE_SEGMENT][i % FSD_TABLE_SEGMENT];
}

/* The bucket of a hash among `buckets`. */
static size_t bucket_of(uint64_t hash, size_t buckets)
{
	size_t mask = ((size_t)1 << (63 - __builtin_clzll(buckets))) - 1; /* of the last doubling */
	size_t i = (size_t)hash & (mask * 2 + 1);

	return i < buckets ? i : (size_t)hash & mask;
}

static bool add_segment(struct fsd_table *table)
{
	size_t n = table->buckets / FSD_TABLE_SEGMENT;

	if (n == table->segment_room) {
		size_t room = n ? n * 2 : 4;
		void ***more = reallocarray(table->segments, room, sizeof(*more));

		if (!more)
			return false;
		table->segments = more;
		table->segment_room = room;
	}
	table->segments[n] = calloc(FSD_TABLE_SEGMENT, sizeof(void *));
	return table->segments[n] != NULL;
}

int fsd_table_init(struct fsd_table *table, size_t chain,
		   uint64_t (*hash)(const struct fsd_table *table, const void *item), uint64_t key)
{
	memset(table, 0, sizeof(*table));
	table->chain = chain;
	table->hash = hash;
	table->key = key;
	if (!add_segment(table)) {
		free(table->segments);
		table->segments = NULL;
		return -ENOMEM;
	}
	table->buckets = FSD_TABLE_SEGMENT;
	return 0;
}

void fsd_table_free(struct fsd_table *table)
{
	for (size_t i = 0; i < table->buckets; i += FSD_TABLE_SEGMENT)
		free(table->segments[i / FSD_TABLE_SEGMENT]);
	free(table->segments);
	memset(table, 0, sizeof(*table));
}

/* Add a bucket, which takes its items from the one that it is split off. */
static void split(struct fsd_table *table)
{
	size_t new = table->buckets;
	void **from, **to, *item;

	if (new % FSD_TABLE_SEGMENT == 0 && !add_segment(table))
		return;
	from = bucket_at(table, bucket_of(new, new));
	to = bucket_at(table, new);
	table->buckets++;
	while ((item = *from)) {
		if (bucket_of(table->hash(table, item), table->buckets) == new) {
			*from = *chain_of(table, item);
			*chain_of(table, item) = *to;
			*to = item;
		} else {
			from = chain_of(table, item);
		}
	}
}

void fsd_table_add(struct fsd_table *table, void *item)
{
	void **head;

	if (table->count >= table->buckets)
		split(table);
	head = bucket_at(table, bucket_of(table->hash(table, item), table->buckets));
	*chain_of(table, item) = *head;
	*head = item;
	table->count++;
}

void fsd_table_remove(struct fsd_table *table, void *item)
{
	void **at = bucket_at(table, bucket_of(table->hash(table, item), table->buckets));

	while (*at != item)
		at = chain_of(table, *at);
	*at = *chain_of(table, item);
	table->count--;
}

void *fsd_table_first(const struct fsd_table *table, uint64_t hash)
{
	return *bucket_at(table, bucket_of(hash, table->buckets));
}

void *fsd_table_bucket(const struct fsd_table *table, size_t i)
{
	return *bucket_at(table, i);
}

void *fsd_table_next(const struct fsd_table *table, const void *item)
{
	return *chain_of(table, item);
}
