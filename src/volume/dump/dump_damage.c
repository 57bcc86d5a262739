/* SPDX-License-Identifier: BSD-2-Clause */
/* The damaged objects of a volume, which a dump can leave out. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/grow.h"
#include "volume/dump/dump.h"

#define CHUNK ((size_t)256 << 10)

struct damage_search {
	struct store *store;
	struct store_snapshot *snapshot;
	const struct dump_output *output;
	struct dump_damage *damage;
	uint8_t *buffer;
	uint64_t bytes, objects; /* that were read */
};

static int compare_damaged(const void *a, const void *b)
{
	const struct dump_damaged *x = a, *y = b;

	return x->vnode < y->vnode ? -1 : x->vnode > y->vnode;
}

/* Of the first `count` items, which are sorted. */
static bool is_among_damaged(const struct dump_damage *damage, size_t count, uint32_t vnode)
{
	const struct dump_damaged key = {.vnode = vnode};

	assert(count <= damage->count);
	return count && bsearch(&key, damage->item, count, sizeof(key), compare_damaged);
}

bool dump_is_damaged(const struct dump_damage *damage, uint32_t vnode)
{
	return damage && is_among_damaged(damage, damage->count, vnode);
}

static int add_damaged(struct dump_damage *damage, uint32_t vnode, bool below)
{
	if (!grow_array(&damage->item, &damage->room, damage->count, sizeof(*damage->item)))
		return -ENOMEM;
	damage->item[damage->count++] = (struct dump_damaged){vnode, below};
	return 0;
}

static void sort_damaged(struct dump_damage *damage)
{
	if (damage->count)
		qsort(damage->item, damage->count, sizeof(*damage->item), compare_damaged);
}

static bool is_damage(int result)
{
	return result == -EIO || result == -EACCES || result == -EBADMSG;
}

/* Read the contents of the vnode that the snapshot gave last. */
static int read_all_contents(struct damage_search *search, uint64_t length)
{
	const struct dump_output *output = search->output;
	const struct store_ops *ops = search->store->ops;
	struct store_reader *reader;
	uint64_t at = 0;
	int result = length ? store_snapshot_open(search->snapshot, &reader) : 0;

	if (result || !length)
		return result;
	while (!result && at < length) {
		struct iovec iov = {search->buffer, CHUNK < length - at ? CHUNK : length - at};
		ssize_t n = ops->read(reader, &iov, 1, at, 0);

		result = n < 0 ? (int)n : n == 0 ? -EIO : 0;
		at += n > 0 ? (uint64_t)n : 0;
		search->bytes += n > 0 ? (uint64_t)n : 0;
		if (output->progress &&
		    output->progress(output->arg, search->bytes, search->objects))
			result = -EINTR;
	}
	ops->read_end(reader);
	return result;
}

/* Objects of one kind. What is in a damaged directory is left out with it. */
static int search_kind(struct damage_search *search, bool directories)
{
	struct dump_damage *damage = search->damage;
	struct store_vnode vnode = {0};
	size_t known = damage->count;
	int result;

	while ((result = store_snapshot_next(search->snapshot, directories, vnode.vnode, &vnode)) !=
	       -ENOENT) {
		bool below = !result && is_among_damaged(damage, known, vnode.parent);

		search->objects++;
		if (!result && !below)
			result = read_all_contents(search, vnode.length);
		if (result && !is_damage(result))
			return result;
		if (result || below)
			result = add_damaged(damage, vnode.vnode, below);
		if (result)
			return result;
	}
	sort_damaged(damage);
	return 0;
}

/* Directories in damaged ones, level by level. */
static int search_below(struct damage_search *search)
{
	struct dump_damage *damage = search->damage;
	int result = -ENOENT;

	for (size_t known = 0; known < damage->count && result == -ENOENT; sort_damaged(damage)) {
		struct store_vnode vnode = {0};

		known = damage->count;
		while (!(result = store_snapshot_next(search->snapshot, true, vnode.vnode,
						      &vnode)) ||
		       is_damage(result)) {
			if (result || is_among_damaged(damage, known, vnode.vnode) ||
			    !is_among_damaged(damage, known, vnode.parent))
				continue;
			if (add_damaged(damage, vnode.vnode, true))
				return -ENOMEM;
		}
	}
	return result == -ENOENT ? 0 : result;
}

int dump_find_damage(struct store *store, struct store_snapshot *snapshot,
		     const struct dump_output *output, struct dump_damage *damage)
{
	struct damage_search search = {.store = store,
				       .snapshot = snapshot,
				       .output = output,
				       .damage = damage,
				       .buffer = malloc(CHUNK)};
	int result = search.buffer ? 0 : -ENOMEM;

	*damage = (struct dump_damage){0};
	if (!result)
		result = search_kind(&search, true);
	if (!result)
		result = search_below(&search);
	if (!result)
		result = search_kind(&search, false);
	free(search.buffer);
	return result;
}

void dump_forget_damage(struct dump_damage *damage)
{
	free(damage->item);
	*damage = (struct dump_damage){0};
}
