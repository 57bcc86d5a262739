/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Intrusive hash tables: each item contains its link, a `void *`. An array of chains doubles when
 * there are more items than chains. Further additions move the old chains, two each, so that none
 * takes long.
 *
 * The caller locks: changes need exclusive access, look-ups and walks shared access. If untrusted
 * peers choose the items, the key must be random and secret, or they could fill one chain.
 */
#ifndef COMMON_HTABLE_H
#define COMMON_HTABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed memory. A file may define both before the include. */
#ifndef HTABLE_ALLOC
#	include <stdlib.h>
#	define HTABLE_ALLOC(size)     calloc(1, size)
#	define HTABLE_FREE(p, size) ((void)(size), free(p))
#endif

#define HTABLE_MIN 64u /* chains */
#define HTABLE_MOVED 2u	 /* chains per addition: all are moved before the array is full again */

typedef uint64_t htable_hash_fn(const void *item, const uint64_t key[2]);

struct htable {
	void **chains, **old_chains;
	size_t size, old_size; /* powers of two; old_size is 0 unless chains are being moved */
	size_t moved;	       /* old chains below this index are empty */
	size_t count;	       /* of items */
	size_t link;	       /* offset of the link in an item */
	htable_hash_fn *hash;
	uint64_t key[2];
};

static inline void **htable_array(size_t size)
{
	return (void **)HTABLE_ALLOC(size * sizeof(void *));
}

/*
 * `link` is the offset of the link, `expected` a number of items for which the table need not grow.
 * `key` may be NULL. False: no memory.
 */
static inline bool htable_init(struct htable *t, size_t link, htable_hash_fn *hash,
			       const uint64_t *key, size_t expected)
{
	size_t size = HTABLE_MIN;

	while (size < expected)
		size *= 2;
	*t = (struct htable){.size = size, .link = link, .hash = hash};
	if (key) {
		t->key[0] = key[0];
		t->key[1] = key[1];
	}
	t->chains = htable_array(size);
	return t->chains != NULL;
}

/* The link of an item. */
static inline void **htable_link(const struct htable *t, void *item)
{
	return (void **)(void *)((char *)item + t->link);
}

/* The head of the chain of a hash. */
static inline void **htable_head(const struct htable *t, uint64_t hash)
{
	size_t old = (size_t)hash & (t->old_size - 1);

	return t->old_size && old >= t->moved ? &t->old_chains[old]
					      : &t->chains[(size_t)hash & (t->size - 1)];
}

/* The first item that may have this hash. Others follow it by their links. */
static inline void *htable_first(const struct htable *t, uint64_t hash)
{
	return *htable_head(t, hash);
}

/*
 * For walks in the order of `i` < t->size: the head of chain i. The table may change between two
 * chains. A walk misses no item that stays in the table, but may see it twice.
 */
static inline void **htable_chain(const struct htable *t, size_t i)
{
	return i >= t->moved && i < t->old_size ? &t->old_chains[i] : &t->chains[i];
}

static inline void htable_push(struct htable *t, void *item, uint64_t hash)
{
	void **head = htable_head(t, hash);

	*htable_link(t, item) = *head;
	*head = item;
}

/* Move the next old chain to the array. */
static inline void htable_move(struct htable *t)
{
	void *item = t->old_chains[t->moved], *next;

	t->old_chains[t->moved++] = NULL;
	for (; item; item = next) {
		next = *htable_link(t, item);
		htable_push(t, item, t->hash(item, t->key));
	}
	if (t->moved < t->old_size)
		return;
	HTABLE_FREE(t->old_chains, t->old_size * sizeof(void *));
	t->old_chains = NULL;
	t->old_size = t->moved = 0;
}

/* On failure the table stays as it is. */
static inline void htable_grow(struct htable *t)
{
	void **twice = htable_array(2 * t->size);

	if (!twice)
		return;
	t->old_chains = t->chains;
	t->old_size = t->size;
	t->chains = twice;
	t->size *= 2;
}

/* htable_add() for a caller that has the hash of the item already. */
static inline void htable_add_hashed(struct htable *t, void *item, uint64_t hash)
{
	for (unsigned i = 0; i < HTABLE_MOVED && t->old_size; i++)
		htable_move(t);
	if (t->count >= t->size && !t->old_size)
		htable_grow(t);
	htable_push(t, item, hash);
	t->count++;
}

/* Never fails. The item must not be in the table. It becomes the first of its chain. */
static inline void htable_add(struct htable *t, void *item)
{
	htable_add_hashed(t, item, t->hash(item, t->key));
}

/* Remove the item that a head or a link points to; then that points to the next one. */
static inline void htable_unlink(struct htable *t, void **at)
{
	*at = *htable_link(t, *at);
	t->count--;
}

/* Remove an item, which must be in the table. */
static inline void htable_remove(struct htable *t, void *item)
{
	void **at = htable_head(t, t->hash(item, t->key));

	while (*at != item)
		at = htable_link(t, *at);
	htable_unlink(t, at);
}

/* Give each item to drop(), which may free it, and free the arrays. NULL: the items stay. */
static inline void htable_fini(struct htable *t, void (*drop)(void *item))
{
	for (size_t i = 0; drop && t->chains && i < t->size; i++)
		for (void *item = *htable_chain(t, i), *next; item; item = next) {
			next = *htable_link(t, item);
			drop(item);
		}
	HTABLE_FREE(t->chains, t->size * sizeof(void *));
	HTABLE_FREE(t->old_chains, t->old_size * sizeof(void *));
	*t = (struct htable){0};
}

#endif
