/* SPDX-License-Identifier: BSD-2-Clause */
/* Maps of blocks: their records, and the effect of a write on a content. */
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "volume/store/data/data_map.h"

/* -- slots -- */

struct store_slot *store_slot_new(uint32_t count)
{
	struct store_slot *slot;

	assert(count <= STORE_SLOT_BLOCKS);
	slot = calloc(1, sizeof(*slot) + count * sizeof(slot->block[0]));
	if (!slot)
		return NULL;
	atomic_init(&slot->refs, 1);
	slot->count = count;
	return slot;
}

struct store_slot *store_slot_ref(struct store_slot *slot)
{
	if (slot)
		atomic_fetch_add_explicit(&slot->refs, 1, memory_order_relaxed);
	return slot;
}

void store_slot_unref(struct store_slot *slot)
{
	if (slot && atomic_fetch_sub_explicit(&slot->refs, 1, memory_order_acq_rel) == 1)
		free(slot);
}

struct store_slot *store_slot_copy(const struct store_slot *from, uint32_t count)
{
	uint32_t old = from ? from->count : 0;
	struct store_slot *slot = store_slot_new(old > count ? old : count);

	if (slot && old)
		memcpy(slot->block, from->block, old * sizeof(slot->block[0]));
	return slot;
}

uint64_t store_slot_object(const struct store_slot *slot, uint32_t block)
{
	return slot && block < slot->count ? slot->block[block].object : 0;
}

bool store_slot_has(const struct store_slot *slot, uint64_t object)
{
	for (uint32_t i = 0; slot && i < slot->count; i++)
		if (slot->block[i].object == object)
			return true;
	return false;
}

bool store_slot_is_first(const struct store_slot *slot, uint32_t block)
{
	uint64_t object = store_slot_object(slot, block);

	if (!object || (block && slot->block[block - 1].object == object))
		return false;
	for (uint32_t i = 0; i < block; i++)
		if (slot->block[i].object == object)
			return false;
	return true;
}

/* -- records: runs of blocks of one object, then the checksums -- */

#define RUN_HOLE  0
#define RUN_FULL  1
#define RUN_SHORT 2 /* one block, with its lengths */

static bool is_block_full(const struct store_block *block)
{
	return block->filled == STORE_BLOCK && block->summed == STORE_BLOCK;
}

/* How many blocks from `at` on are alike. */
static uint32_t measure_block_run(const struct store_slot *slot, uint32_t at)
{
	const struct store_block *first = &slot->block[at];
	uint32_t end = at + 1;

	if (first->object && !is_block_full(first))
		return 1;
	while (end < slot->count && slot->block[end].object == first->object &&
	       (!first->object || is_block_full(&slot->block[end])))
		end++;
	return end - at;
}

size_t store_slot_encode(const struct store_slot *slot, uint8_t *record)
{
	uint8_t *to = record;

	assert(!slot->damaged && slot->count <= STORE_SLOT_BLOCKS);
	put_little(&to, slot->count, 2);
	for (uint32_t i = 0, run; i < slot->count; i += run) {
		const struct store_block *block = &slot->block[i];
		unsigned kind = !block->object	       ? RUN_HOLE
				: is_block_full(block) ? RUN_FULL
						       : RUN_SHORT;

		run = measure_block_run(slot, i);
		put_little(&to, kind, 1);
		if (kind == RUN_SHORT) {
			put_little(&to, block->filled, 4);
			put_little(&to, block->summed, 4);
		} else {
			put_little(&to, run, 2);
		}
		if (kind != RUN_HOLE)
			put_little(&to, block->object, 8);
	}
	for (uint32_t i = 0; i < slot->count; i++)
		if (slot->block[i].object)
			put_little(&to, slot->block[i].crc, 4);
	assert((size_t)(to - record) <= STORE_SLOT_MAX);
	return (size_t)(to - record);
}

static bool decode_block_run(struct bytes *from, struct store_slot *slot, uint32_t *at)
{
	unsigned kind = (unsigned)get_little(from, 1);
	struct store_block block = {.filled = STORE_BLOCK, .summed = STORE_BLOCK};
	uint64_t run = 1;

	if (kind == RUN_SHORT) {
		block.filled = (uint32_t)get_little(from, 4);
		block.summed = (uint32_t)get_little(from, 4);
	} else {
		run = get_little(from, 2);
	}
	block.object = kind != RUN_HOLE ? get_little(from, 8) : 0;
	if (from->bad || kind > RUN_SHORT || !run || run > slot->count - *at ||
	    block.summed > STORE_BLOCK || block.filled > block.summed ||
	    (kind != RUN_HOLE && (!block.object || !block.filled)))
		return false;
	if (kind == RUN_HOLE)
		block.filled = block.summed = 0;
	while (run--)
		slot->block[(*at)++] = block;
	return true;
}

static bool decode_slot_blocks(struct bytes *from, struct store_slot *slot)
{
	for (uint32_t at = 0; at < slot->count;)
		if (!decode_block_run(from, slot, &at))
			return false;
	for (uint32_t i = 0; i < slot->count; i++)
		if (slot->block[i].object)
			slot->block[i].crc = (uint32_t)get_little(from, 4);
	return !from->bad && !from->left;
}

int store_slot_decode(const uint8_t *record, size_t length, struct store_slot **slot)
{
	struct bytes from = {.at = record, .left = length};
	uint64_t count = get_little(&from, 2);

	if (from.bad || count > STORE_SLOT_BLOCKS)
		return -EBADMSG;
	*slot = store_slot_new((uint32_t)count);
	if (!*slot)
		return -ENOMEM;
	if (decode_slot_blocks(&from, *slot))
		return 0;
	store_slot_unref(*slot);
	*slot = NULL;
	return -EBADMSG;
}

/* -- trees of slots: nodes never change once another content shares them -- */

#define TREE_BITS   5
#define TREE_FAN    (1u << TREE_BITS)
#define TREE_LEVELS 5
#define FREED_NODES 64 /* at once */

union tree_child {
	struct store_tree *tree;
	struct store_slot *slot; /* of a node of level 0 */
};

struct store_tree {
	_Atomic unsigned refs;
	uint32_t level;
	uint32_t slots; /* below it; at least one */
	uint64_t bytes; /* of memory, with all below it */
	struct store_tree *next_dead;
	union tree_child child[TREE_FAN];
};

_Static_assert(STORE_SLOTS_MAX == 1u << (TREE_BITS * TREE_LEVELS), "a tree has room for all slots");

/* Nodes without a user. Each user frees some of them, so that nobody has to wait until a large tree is gone. */
static struct {
	pthread_mutex_t lock;
	struct store_tree *first;
} dead_nodes = {.lock = PTHREAD_MUTEX_INITIALIZER};
static _Atomic uint64_t made_nodes;

uint64_t store_content_nodes(void)
{
	return atomic_load(&made_nodes);
}

static unsigned get_child_index(uint32_t at, unsigned level)
{
	return at >> (TREE_BITS * level) & (TREE_FAN - 1);
}

/* The first slot behind the child of a node of this level that has a slot. */
static uint32_t skip_child(uint32_t at, unsigned level)
{
	return ((at >> (TREE_BITS * level)) + 1) << (TREE_BITS * level);
}

static size_t measure_slot(const struct store_slot *slot)
{
	return slot ? sizeof(*slot) + slot->count * sizeof(slot->block[0]) : 0;
}

static void bury_node(struct store_tree *tree)
{
	if (!tree || atomic_fetch_sub_explicit(&tree->refs, 1, memory_order_acq_rel) != 1)
		return;
	pthread_mutex_lock(&dead_nodes.lock);
	tree->next_dead = dead_nodes.first;
	dead_nodes.first = tree;
	pthread_mutex_unlock(&dead_nodes.lock);
}

static bool free_dead_node(void)
{
	struct store_tree *tree;

	pthread_mutex_lock(&dead_nodes.lock);
	tree = dead_nodes.first;
	if (tree)
		dead_nodes.first = tree->next_dead;
	pthread_mutex_unlock(&dead_nodes.lock);
	for (unsigned i = 0; tree && i < TREE_FAN; i++)
		if (tree->level)
			bury_node(tree->child[i].tree);
		else
			store_slot_unref(tree->child[i].slot);
	free(tree);
	return tree != NULL;
}

static void release_tree(struct store_tree *tree)
{
	if (!tree)
		return;
	bury_node(tree);
	for (unsigned i = 0; i < FREED_NODES && free_dead_node(); i++)
		;
}

static struct store_tree *make_node(unsigned level)
{
	struct store_tree *tree = calloc(1, sizeof(*tree));

	if (!tree)
		return NULL;
	atomic_init(&tree->refs, 1);
	tree->level = level;
	tree->bytes = sizeof(*tree);
	atomic_fetch_add_explicit(&made_nodes, 1, memory_order_relaxed);
	return tree;
}

/* Turn a node into one that belongs to this content alone. *tree NULL: a new one. 0 or -ENOMEM. */
static int own_node(struct store_tree **tree, unsigned level)
{
	struct store_tree *from = *tree, *own;

	if (from && atomic_load_explicit(&from->refs, memory_order_acquire) == 1)
		return 0;
	own = make_node(level);
	if (!own)
		return -ENOMEM;
	for (unsigned i = 0; from && i < TREE_FAN; i++) {
		own->child[i] = from->child[i];
		if (!level)
			store_slot_ref(own->child[i].slot);
		else if (own->child[i].tree)
			atomic_fetch_add_explicit(&own->child[i].tree->refs, 1,
						  memory_order_relaxed);
	}
	if (from) {
		own->slots = from->slots;
		own->bytes = from->bytes;
		release_tree(from);
	}
	*tree = own;
	return 0;
}

/* The nodes above a slot, path[0] the one that has it. 0 or -ENOMEM: then only some are new. */
static int own_path(struct store_content *content, uint32_t at,
		    struct store_tree **path[TREE_LEVELS])
{
	struct store_tree **node = &content->rest;

	for (unsigned level = TREE_LEVELS; level--;) {
		bool fresh = !*node;

		path[level] = node;
		if (own_node(node, level))
			return -ENOMEM;
		for (unsigned above = level + 1; fresh && above < TREE_LEVELS; above++)
			(*path[above])->bytes += sizeof(struct store_tree);
		if (level)
			node = &(*node)->child[get_child_index(at, level)].tree;
	}
	return 0;
}

/* Nodes of a path that have nothing below them go. */
static void drop_empty_nodes(struct store_tree **path[TREE_LEVELS], unsigned from)
{
	for (unsigned level = from; level < TREE_LEVELS && !(*path[level])->slots; level++) {
		for (unsigned above = level + 1; above < TREE_LEVELS; above++)
			(*path[above])->bytes -= sizeof(struct store_tree);
		free(*path[level]);
		*path[level] = NULL;
	}
}

/* own_path() has failed. */
static void drop_unfinished_path(struct store_tree **path[TREE_LEVELS])
{
	unsigned level = 0;

	while (level < TREE_LEVELS && (!path[level] || !*path[level]))
		level++;
	drop_empty_nodes(path, level);
}

static struct store_slot *get_tree_slot(const struct store_tree *tree, uint32_t at)
{
	for (unsigned level = TREE_LEVELS - 1; tree && level; level--)
		tree = tree->child[get_child_index(at, level)].tree;
	return tree ? tree->child[get_child_index(at, 0)].slot : NULL;
}

/* Takes the reference of the caller. */
static int set_tree_slot(struct store_content *content, uint32_t at, struct store_slot *slot)
{
	struct store_slot *old = get_tree_slot(content->rest, at);
	struct store_tree **path[TREE_LEVELS] = {NULL};
	int result = 0;

	assert(at && at < STORE_SLOTS_MAX);
	if (slot == old) {
		store_slot_unref(slot);
		return 0;
	}
	result = own_path(content, at, path);
	if (result) {
		drop_unfinished_path(path);
		store_slot_unref(slot);
		return result;
	}
	for (unsigned level = 0; level < TREE_LEVELS; level++) {
		(*path[level])->slots += (uint32_t)(slot != NULL) - (uint32_t)(old != NULL);
		(*path[level])->bytes += measure_slot(slot) - measure_slot(old);
	}
	(*path[0])->child[get_child_index(at, 0)].slot = slot;
	store_slot_unref(old);
	drop_empty_nodes(path, 0);
	return 0;
}

static uint32_t count_child_slots(const struct store_tree *tree, unsigned i)
{
	union tree_child child = tree->child[i];

	if (!tree->level)
		return child.slot != NULL;
	return child.tree ? child.tree->slots : 0;
}

static void recount_node(struct store_tree *tree)
{
	tree->slots = 0;
	tree->bytes = sizeof(*tree);
	for (unsigned i = 0; i < TREE_FAN; i++) {
		union tree_child child = tree->child[i];

		tree->slots += count_child_slots(tree, i);
		if (!tree->level)
			tree->bytes += measure_slot(child.slot);
		else if (child.tree)
			tree->bytes += child.tree->bytes;
	}
}

/* Drop all slots of the tree behind one. 0 or -ENOMEM: then only some are gone. */
static int cut_tree(struct store_content *content, uint32_t at)
{
	struct store_tree **path[TREE_LEVELS] = {NULL};
	int result = own_path(content, at, path);

	for (unsigned level = 0; level < TREE_LEVELS && !result; level++) {
		struct store_tree *node = *path[level];

		for (unsigned i = get_child_index(at, level) + 1; i < TREE_FAN; i++) {
			if (level)
				release_tree(node->child[i].tree);
			else
				store_slot_unref(node->child[i].slot);
			node->child[i] = (union tree_child){NULL};
		}
		recount_node(node);
		if (!node->slots) {
			free(node);
			*path[level] = NULL;
		}
	}
	if (result)
		drop_unfinished_path(path);
	return result;
}

/* The last slot of a tree, which has one. */
static uint32_t find_last_slot(const struct store_tree *tree)
{
	uint32_t at = 0;

	for (unsigned level = TREE_LEVELS; level--;) {
		unsigned i = TREE_FAN - 1;

		while (level ? !tree->child[i].tree : !tree->child[i].slot) {
			assert(i);
			i--;
		}
		at = at << TREE_BITS | i;
		tree = level ? tree->child[i].tree : NULL;
	}
	return at;
}

static void count_slots(struct store_content *content)
{
	content->count = content->rest ? find_last_slot(content->rest) + 1 : content->first ? 1 : 0;
}

/* -- contents -- */

void store_content_free(struct store_content *content)
{
	store_slot_unref(content->first);
	release_tree(content->rest);
	memset(content, 0, sizeof(*content));
}

void store_content_copy(const struct store_content *from, struct store_content *to)
{
	*to = *from;
	store_slot_ref(to->first);
	if (to->rest)
		atomic_fetch_add_explicit(&to->rest->refs, 1, memory_order_relaxed);
}

struct store_slot *store_content_slot(const struct store_content *content, uint64_t at)
{
	if (!at)
		return content->first;
	return at < content->count ? get_tree_slot(content->rest, (uint32_t)at) : NULL;
}

int store_content_set(struct store_content *content, uint32_t at, struct store_slot *slot)
{
	int result = 0;

	if (at) {
		result = set_tree_slot(content, at, slot);
	} else {
		store_slot_unref(content->first);
		content->first = slot;
	}
	count_slots(content);
	return result;
}

static bool find_tree_slot(const struct store_tree *tree, uint32_t *at)
{
	unsigned level = TREE_LEVELS - 1;

	while (*at < STORE_SLOTS_MAX) {
		const union tree_child *child = &tree->child[get_child_index(*at, level)];

		if (level ? !child->tree : !child->slot) {
			uint32_t next = skip_child(*at, level);

			/* Not the last one of the node? */
			if (level == TREE_LEVELS - 1 || get_child_index(next, level)) {
				*at = next;
				continue;
			}
			*at = next;
			return false;
		}
		if (!level)
			return true;
		tree = child->tree;
		level--;
	}
	return false;
}

bool store_content_next(const struct store_content *content, uint32_t *at)
{
	if (!*at && content->first)
		return true;
	while (content->rest && *at < content->count)
		if (find_tree_slot(content->rest, at))
			return true;
	return false;
}

/* One way down: to a difference, or over what is the same. */
static bool compare_trees(const struct store_tree *a, const struct store_tree *b, uint32_t *at)
{
	for (unsigned level = TREE_LEVELS - 1;; level--) {
		unsigned i = get_child_index(*at, level);
		const void *of_a = !a ? NULL : level ? (void *)a->child[i].tree : a->child[i].slot;
		const void *of_b = !b ? NULL : level ? (void *)b->child[i].tree : b->child[i].slot;

		if (of_a == of_b) {
			*at = skip_child(*at, level);
			return false;
		}
		if (!level)
			return true;
		a = of_a;
		b = of_b;
	}
}

bool store_content_differ(const struct store_content *a, const struct store_content *b,
			  uint32_t *at)
{
	if (!*at)
		++*at;
	while (a->rest != b->rest && *at < STORE_SLOTS_MAX)
		if (compare_trees(a->rest, b->rest, at))
			return true;
	return false;
}

uint32_t store_content_rows(const struct store_content *content)
{
	return content->rest ? content->rest->slots : 0;
}

uint32_t store_content_from_end(const struct store_content *content, uint32_t rows)
{
	const struct store_tree *tree = content->rest;
	uint32_t at = 0;

	if (!rows || rows > store_content_rows(content))
		return 0;
	for (unsigned level = TREE_LEVELS; level--;) {
		unsigned i = TREE_FAN;
		uint32_t slots = 0;

		do {
			assert(i && rows >= slots);
			rows -= slots;
			i--;
			slots = count_child_slots(tree, i);
		} while (rows > slots);
		at = at << TREE_BITS | i;
		tree = level ? tree->child[i].tree : NULL;
	}
	return at;
}

size_t store_content_memory(const struct store_content *content)
{
	return measure_slot(content->first) + (content->rest ? content->rest->bytes : 0);
}

const struct store_block *store_content_block(const struct store_content *content, uint64_t index)
{
	uint64_t block = index % STORE_SLOT_BLOCKS;
	const struct store_slot *slot = store_content_slot(content, index / STORE_SLOT_BLOCKS);

	return store_slot_object(slot, (uint32_t)block) ? &slot->block[block] : NULL;
}

bool store_content_damaged(const struct store_content *content, uint64_t index)
{
	const struct store_slot *slot = store_content_slot(content, index / STORE_SLOT_BLOCKS);

	return slot && slot->damaged;
}

bool store_content_has(const struct store_content *content, uint64_t object)
{
	for (uint32_t at = 0; store_content_next(content, &at); at++)
		if (store_slot_has(store_content_slot(content, at), object))
			return true;
	return false;
}

bool store_content_shows(const struct store_content *content, uint64_t object, uint64_t first,
			 uint32_t count)
{
	for (uint64_t i = first; i < first + count; i++) {
		const struct store_block *block = store_content_block(content, i);

		if (block && block->object == object)
			return true;
	}
	return false;
}

#define SHOWN_ROWS 64 /* slots that are searched */

bool store_content_may_show(const struct store_content *content, uint64_t object, uint64_t first,
			    uint32_t count)
{
	if (count)
		return store_content_shows(content, object, first, count);
	return store_content_rows(content) > SHOWN_ROWS || store_content_has(content, object);
}

uint64_t store_content_next_block(const struct store_content *content, uint64_t index)
{
	uint32_t at = (uint32_t)(++index / STORE_SLOT_BLOCKS);

	if (store_content_slot(content, index / STORE_SLOT_BLOCKS))
		return index;
	return store_content_next(content, &at) ? (uint64_t)at * STORE_SLOT_BLOCKS
						: UINT64_MAX / STORE_BLOCK;
}

/* -- the effect of a write -- */

#define BLOCKS_MAX                                                                          \
	((STORE_SLOT_BLOCKS > UINT32_MAX / STORE_SLOTS_MAX ? UINT32_MAX / STORE_SLOT_BLOCKS \
							   : STORE_SLOTS_MAX) *             \
	 (uint64_t)STORE_SLOT_BLOCKS)

/* Takes the reference of the caller. */
static int replace_slot(struct store_content *content, uint32_t at, struct store_slot *slot)
{
	while (slot && slot->count && !slot->block[slot->count - 1].object && !slot->damaged)
		slot->count--;
	if (slot && !slot->count && !slot->damaged) {
		store_slot_unref(slot);
		slot = NULL;
	}
	return store_content_set(content, at, slot);
}

/* The slot in which a content ends. */
static int cut_slot(struct store_content *content, uint32_t at, uint64_t kept)
{
	const struct store_slot *old = store_content_slot(content, at);
	uint32_t block = (uint32_t)(kept % STORE_SLOT / STORE_BLOCK);
	uint32_t filled = (uint32_t)(kept % STORE_BLOCK);
	struct store_slot *slot;

	if (old && old->damaged)
		return kept % STORE_SLOT ? 0 : replace_slot(content, at, NULL);
	if (!old || old->count <= block ||
	    (old->count == block + 1 && old->block[block].filled <= filled))
		return 0;
	slot = store_slot_copy(old, 0);
	if (!slot)
		return -ENOMEM;
	slot->count = filled ? block + 1 : block;
	if (filled && slot->block[block].filled > filled)
		slot->block[block].filled = filled;
	return replace_slot(content, at, slot);
}

static int cut_content(struct store_content *content, uint64_t kept)
{
	uint64_t at = kept / STORE_SLOT;
	int result = 0;

	if (at >= content->count)
		return 0;
	if (content->count > at + 1)
		result = cut_tree(content, (uint32_t)at);
	count_slots(content);
	return result ? result : cut_slot(content, (uint32_t)at, kept);
}

/* The blocks of the patch that lie in one slot. */
static int patch_slot(struct store_content *content, uint32_t at, uint32_t first,
		      const struct store_block *block, uint32_t count)
{
	const struct store_slot *old = store_content_slot(content, at);
	struct store_slot *slot;

	if (old && old->damaged && (first || count < STORE_SLOT_BLOCKS))
		return -EIO;
	slot = store_slot_copy(old && !old->damaged ? old : NULL, first + count);
	if (!slot)
		return -ENOMEM;
	memcpy(&slot->block[first], block, count * sizeof(*block));
	return replace_slot(content, at, slot);
}

int store_content_apply(struct store_content *content, uint64_t kept,
			const struct store_patch *patch)
{
	uint64_t end = patch->first + patch->count;
	int result = end > BLOCKS_MAX ? -EFBIG : cut_content(content, kept);

	for (uint32_t done = 0, part; done < patch->count && !result; done += part) {
		uint64_t at = patch->first + done;
		uint32_t first = (uint32_t)(at % STORE_SLOT_BLOCKS);

		part = STORE_SLOT_BLOCKS - first;
		if (part > patch->count - done)
			part = patch->count - done;
		result = patch_slot(content, (uint32_t)(at / STORE_SLOT_BLOCKS), first,
				    &patch->block[done], part);
	}
	return result;
}
