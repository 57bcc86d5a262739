/* SPDX-License-Identifier: BSD-2-Clause */
/* Hash tables against a list of what is in them: growth, removal, walks, failing allocations. */
#include <stdbool.h>
#include <stdlib.h>

static size_t taken; /* bytes that the table holds */
static bool no_memory;

static void *take(size_t size);
static void give(void *p, size_t size);

#define HTABLE_ALLOC(size)     take(size)
#define HTABLE_FREE(p, size) give(p, size)
#include "common/htable.h"
#include "tests/main.h"

#define ITEMS 5000u

struct item {
	uint64_t number;
	void *chain; /* not at the start */
	bool in;
	unsigned seen;
};

static struct item items[ITEMS];

static void *take(size_t size)
{
	if (no_memory)
		return NULL;
	taken += size;
	return calloc(1, size);
}

static void give(void *p, size_t size)
{
	if (!p)
		return;
	taken -= size;
	free(p);
}

static uint64_t hash_number(uint64_t number, const uint64_t key[2])
{
	return (number ^ key[0]) * 0x9e3779b97f4a7c15u >> 20 ^ key[1];
}

static uint64_t hash_item(const void *item, const uint64_t key[2])
{
	return hash_number(((const struct item *)item)->number, key);
}

static void start(struct htable *t, htable_hash_fn *hash, size_t expected)
{
	static const uint64_t key[2] = {0x1234567, 89};

	no_memory = false;
	for (unsigned i = 0; i < ITEMS; i++)
		items[i] = (struct item){.number = i * 7};
	ck_assert(htable_init(t, offsetof(struct item, chain), hash, key, expected));
}

static void put(struct htable *t, struct item *item)
{
	htable_add(t, item);
	item->in = true;
}

static void drop(struct htable *t, struct item *item)
{
	htable_remove(t, item);
	item->in = false;
}

static struct item *find(const struct htable *t, uint64_t number)
{
	struct item *item = htable_first(t, hash_number(number, t->key));

	while (item && item->number != number)
		item = item->chain;
	return item;
}

/* Each item is found exactly if it is in, and a walk sees the same ones. */
static void check(const struct htable *t)
{
	size_t in = 0, walked = 0;

	for (unsigned i = 0; i < ITEMS; i++) {
		ck_assert_ptr_eq(find(t, items[i].number), items[i].in ? &items[i] : NULL);
		in += items[i].in;
		items[i].seen = 0;
	}
	ck_assert_uint_eq(t->count, in);
	for (size_t i = 0; i < t->size; i++)
		for (struct item *item = *htable_chain(t, i); item; item = item->chain) {
			ck_assert(item->in && !item->seen++);
			walked++;
		}
	ck_assert_uint_eq(walked, in);
}

START_TEST(grows)
{
	bool moving = false;
	struct htable t;

	start(&t, hash_item, 0);
	ck_assert_uint_eq(t.size, HTABLE_MIN);
	for (unsigned i = 0; i < ITEMS; i++) {
		put(&t, &items[i]);
		if (i % 97 == 0)
			check(&t);
		moving |= t.old_size != 0;
		ck_assert_uint_le(t.count, t.size + 1);
	}
	check(&t);
	ck_assert(moving);
	htable_fini(&t, NULL);
	ck_assert_uint_eq(taken, 0);
}
END_TEST

START_TEST(expected)
{
	struct htable t;
	size_t size;

	start(&t, hash_item, ITEMS);
	size = t.size;
	ck_assert_uint_ge(size, ITEMS);
	for (unsigned i = 0; i < ITEMS; i++)
		put(&t, &items[i]);
	ck_assert_uint_eq(t.size, size);
	check(&t);
	htable_fini(&t, NULL);
	ck_assert_uint_eq(taken, 0);
}
END_TEST

START_TEST(changes)
{
	uint64_t state = 1;
	struct htable t;

	start(&t, hash_item, 0);
	for (unsigned round = 0; round < 200; round++) {
		/* Rounds that fill it and rounds that empty it. */
		for (unsigned i = 0; i < 200; i++) {
			state = state * 6364136223846793005u + 1442695040888963407u;
			struct item *item = &items[(state >> 33) % ITEMS];

			if (!item->in && (round / 20 % 2 == 0 || i % 8 == 0))
				put(&t, item);
			else if (item->in)
				drop(&t, item);
		}
		if (round % 5 == 0)
			check(&t);
	}
	htable_fini(&t, NULL);
	ck_assert_uint_eq(taken, 0);
}
END_TEST

static uint64_t hash_same(const void *item, const uint64_t key[2])
{
	(void)item;
	return key[0];
}

/* All in one chain: the first, the last, and one between them are unlinked during a walk. */
START_TEST(unlinks)
{
	struct htable t;
	unsigned at_index = 0;
	void **at;

	start(&t, hash_same, 0);
	for (unsigned i = 0; i < 10; i++)
		put(&t, &items[i]);
	for (at = htable_head(&t, t.key[0]); *at; at_index++) {
		struct item *item = *at;

		ck_assert_ptr_eq(item, &items[9 - at_index]);
		if (at_index != 0 && at_index != 4 && at_index != 9) {
			at = htable_link(&t, item);
			continue;
		}
		htable_unlink(&t, at);
		item->in = false;
	}
	ck_assert_uint_eq(at_index, 10);
	ck_assert_uint_eq(t.count, 7);
	for (struct item *item = htable_first(&t, t.key[0]); item; item = item->chain)
		item->seen++;
	for (unsigned i = 0; i < 10; i++)
		ck_assert_uint_eq(items[i].seen, items[i].in);
	htable_fini(&t, NULL);
}
END_TEST

/* The table doubles twice during a walk, which misses nothing. */
START_TEST(walk_and_grow)
{
	unsigned next = 0;
	struct htable t;

	start(&t, hash_item, 0);
	while (next < 500)
		put(&t, &items[next++]);
	for (size_t i = 0; i < t.size; i++) {
		for (struct item *item = *htable_chain(&t, i); item; item = item->chain)
			item->seen++;
		for (unsigned k = 0; k < 3 && next < 2000; k++)
			put(&t, &items[next++]);
	}
	ck_assert_uint_ge(t.size, 2048);
	for (unsigned i = 0; i < 500; i++)
		ck_assert_uint_ge(items[i].seen, 1);
	htable_fini(&t, NULL);
}
END_TEST

START_TEST(without_memory)
{
	struct htable t, none;

	start(&t, hash_item, 0);
	no_memory = true;
	ck_assert(!htable_init(&none, 0, hash_item, NULL, 0));
	htable_fini(&none, NULL);
	for (unsigned i = 0; i < ITEMS / 2; i++)
		put(&t, &items[i]);
	ck_assert_uint_eq(t.size, HTABLE_MIN);
	check(&t);
	no_memory = false;
	for (unsigned i = ITEMS / 2; i < ITEMS; i++)
		put(&t, &items[i]);
	ck_assert_uint_gt(t.size, HTABLE_MIN);
	check(&t);
	htable_fini(&t, NULL);
	ck_assert_uint_eq(taken, 0);
}
END_TEST

static void see(void *item)
{
	struct item *i = item;

	i->seen++;
	i->chain = NULL; /* as if it were freed */
}

/* While chains are being moved, too. */
START_TEST(drops_all)
{
	struct htable t;

	for (unsigned n = 1; n < 300; n += 3) {
		start(&t, hash_item, 0);
		for (unsigned i = 0; i < n; i++)
			put(&t, &items[i]);
		htable_fini(&t, see);
		for (unsigned i = 0; i < n; i++)
			ck_assert_uint_eq(items[i].seen, 1);
		ck_assert_uint_eq(taken, 0);
	}
}
END_TEST

TEST_MAIN("htable", grows, expected, changes, unlinks, walk_and_grow, without_memory, drops_all)
