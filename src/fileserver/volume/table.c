/* SPDX-License-Identifier: BSD-2-Clause */
/* Linear hashing: bucket i of n is split into i and i + n/2 one after the other. */
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

/* The number of a hash's bucket among `buckets`. */
static size_t place(uint64_t hash, size_t buckets)
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

/* One bucket more: it takes its part of the one that it had been one with. */
static void split(struct fsd_table *table)
{
	size_t new = table->buckets;
	void **from, **to, *item;

	if (new % FSD_TABLE_SEGMENT == 0 && !add_segment(table))
		return;
	from = bucket_at(table, place(new, new));
	to = bucket_at(table, new);
	table->buckets++;
	while ((item = *from)) {
		if (place(table->hash(table, item), table->buckets) == new) {
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
	head = bucket_at(table, place(table->hash(table, item), table->buckets));
	*chain_of(table, item) = *head;
	*head = item;
	table->count++;
}

void fsd_table_remove(struct fsd_table *table, void *item)
{
	void **at = bucket_at(table, place(table->hash(table, item), table->buckets));

	while (*at != item)
		at = chain_of(table, *at);
	*at = *chain_of(table, item);
	table->count--;
}

void *fsd_table_first(const struct fsd_table *table, uint64_t hash)
{
	return *bucket_at(table, place(hash, table->buckets));
}

void *fsd_table_bucket(const struct fsd_table *table, size_t i)
{
	return *bucket_at(table, i);
}

void *fsd_table_next(const struct fsd_table *table, const void *item)
{
	return *chain_of(table, item);
}
