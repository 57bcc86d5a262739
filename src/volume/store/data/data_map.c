/* SPDX-License-Identifier: BSD-2-Clause */
/* Maps of blocks: their records, and the effect of a write on a content. */
#include <assert.h>
#include <errno.h>
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

/* -- contents -- */

void store_content_free(struct store_content *content)
{
	for (uint32_t i = 0; i < content->count; i++)
		store_slot_unref(content->slot[i]);
	free(content->slot);
	memset(content, 0, sizeof(*content));
}

int store_content_copy(const struct store_content *from, struct store_content *to)
{
	memset(to, 0, sizeof(*to));
	if (!from->count)
		return 0;
	to->slot = malloc(from->count * sizeof(struct store_slot *));
	if (!to->slot)
		return -ENOMEM;
	for (; to->count < from->count; to->count++)
		to->slot[to->count] = store_slot_ref(from->slot[to->count]);
	return 0;
}

const struct store_block *store_content_block(const struct store_content *content, uint64_t index)
{
	uint64_t at = index / STORE_SLOT_BLOCKS, block = index % STORE_SLOT_BLOCKS;
	const struct store_slot *slot = at < content->count ? content->slot[at] : NULL;

	return store_slot_object(slot, (uint32_t)block) ? &slot->block[block] : NULL;
}

bool store_content_damaged(const struct store_content *content, uint64_t index)
{
	uint64_t at = index / STORE_SLOT_BLOCKS;

	return at < content->count && content->slot[at] && content->slot[at]->damaged;
}

bool store_content_has(const struct store_content *content, uint64_t object)
{
	for (uint32_t i = 0; i < content->count; i++)
		if (store_slot_has(content->slot[i], object))
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

/* -- the effect of a write -- */

/* A copy of a slot, with at least `count` blocks. */
static struct store_slot *copy_slot(const struct store_slot *from, uint32_t count)
{
	uint32_t old = from ? from->count : 0;
	struct store_slot *slot = store_slot_new(old > count ? old : count);

	if (slot && old)
		memcpy(slot->block, from->block, old * sizeof(slot->block[0]));
	return slot;
}

/* Takes the reference of the caller. */
static void replace_slot(struct store_content *content, uint32_t at, struct store_slot *slot)
{
	while (slot && slot->count && !slot->block[slot->count - 1].object && !slot->damaged)
		slot->count--;
	if (slot && !slot->count && !slot->damaged) {
		store_slot_unref(slot);
		slot = NULL;
	}
	store_slot_unref(content->slot[at]);
	content->slot[at] = slot;
}

static void drop_last_holes(struct store_content *content)
{
	while (content->count && !content->slot[content->count - 1])
		content->count--;
	if (content->count)
		return;
	free(content->slot);
	content->slot = NULL;
}

static int cut_content(struct store_content *content, uint64_t kept)
{
	uint64_t at = kept / STORE_SLOT;
	uint32_t block = (uint32_t)(kept % STORE_SLOT / STORE_BLOCK);
	uint32_t filled = (uint32_t)(kept % STORE_BLOCK);
	struct store_slot *slot;

	while (content->count && content->count - 1 > at)
		store_slot_unref(content->slot[--content->count]);
	if (content->count <= at || !content->slot[at] ||
	    (!content->slot[at]->damaged && content->slot[at]->count <= block))
		return 0;
	if (content->slot[at]->damaged) {
		if (!(kept % STORE_SLOT))
			replace_slot(content, (uint32_t)at, NULL);
		return 0;
	}
	if (content->slot[at]->count == block + 1 &&
	    content->slot[at]->block[block].filled <= filled)
		return 0;
	slot = copy_slot(content->slot[at], 0);
	if (!slot)
		return -ENOMEM;
	slot->count = filled ? block + 1 : block;
	if (filled && slot->block[block].filled > filled)
		slot->block[block].filled = filled;
	replace_slot(content, (uint32_t)at, slot);
	return 0;
}

static int reserve_slots(struct store_content *content, uint64_t count)
{
	struct store_slot **more;

	if (count <= content->count)
		return 0;
	if (count > UINT32_MAX / STORE_SLOT_BLOCKS)
		return -EFBIG;
	more = realloc(content->slot, count * sizeof(struct store_slot *));
	if (!more)
		return -ENOMEM;
	content->slot = more;
	while (content->count < count)
		content->slot[content->count++] = NULL;
	return 0;
}

/* The blocks of the patch that lie in one slot. */
static int patch_slot(struct store_content *content, uint32_t at, uint32_t first,
		      const struct store_block *block, uint32_t count)
{
	const struct store_slot *old = content->slot[at];
	struct store_slot *slot;

	if (old && old->damaged && (first || count < STORE_SLOT_BLOCKS))
		return -EIO;
	slot = copy_slot(old && !old->damaged ? old : NULL, first + count);
	if (!slot)
		return -ENOMEM;
	memcpy(&slot->block[first], block, count * sizeof(*block));
	replace_slot(content, at, slot);
	return 0;
}

int store_content_apply(struct store_content *content, uint64_t kept,
			const struct store_patch *patch)
{
	uint64_t end = patch->first + patch->count;
	int result = cut_content(content, kept);

	if (!result && patch->count)
		result = reserve_slots(content, (end + STORE_SLOT_BLOCKS - 1) / STORE_SLOT_BLOCKS);
	for (uint32_t done = 0, part; done < patch->count && !result; done += part) {
		uint64_t at = patch->first + done;
		uint32_t first = (uint32_t)(at % STORE_SLOT_BLOCKS);

		part = STORE_SLOT_BLOCKS - first;
		if (part > patch->count - done)
			part = patch->count - done;
		result = patch_slot(content, (uint32_t)(at / STORE_SLOT_BLOCKS), first,
				    &patch->block[done], part);
	}
	drop_last_holes(content);
	return result;
}
