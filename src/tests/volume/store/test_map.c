/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of maps of blocks: their records, cuts and patches, against a model; and of the checksum. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/main.h"
#include "volume/store/data/data.h"
#include "volume/store/disk/crc.h"

#define BLOCKS (3 * STORE_SLOT_BLOCKS)

static uint32_t seed = 3;

static uint32_t draw(uint32_t below)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % below;
}

/* -- contents against a model -- */

static struct store_block model[BLOCKS];

static struct store_block draw_block(void)
{
	struct store_block block = {.object = 1 + draw(5),
				    .filled = STORE_BLOCK,
				    .summed = STORE_BLOCK,
				    .crc = draw(99)};

	if (draw(10) == 0)
		block.filled = block.summed = 1 + draw(STORE_BLOCK);
	return block;
}

static void cut_model(uint64_t kept)
{
	for (uint64_t i = 0; i < BLOCKS; i++) {
		uint64_t start = i * STORE_BLOCK;

		if (kept <= start)
			model[i] = (struct store_block){0};
		else if (model[i].filled > kept - start)
			model[i].filled = (uint32_t)(kept - start);
	}
}

static void change(struct store_content *content)
{
	static struct store_block block[BLOCKS];
	uint64_t kept = draw(3) ? UINT64_MAX : (uint64_t)draw(BLOCKS * 64) * (STORE_BLOCK / 64);
	struct store_patch patch = {.first = draw(BLOCKS), .block = block};

	if (draw(4))
		patch.count = 1 + draw(draw(4) ? 5 : BLOCKS);
	if (patch.count > BLOCKS - patch.first)
		patch.count = (uint32_t)(BLOCKS - patch.first);
	for (uint32_t i = 0; i < patch.count; i++)
		block[i] = draw_block();
	cut_model(kept);
	memcpy(&model[patch.first], block, patch.count * sizeof(block[0]));
	ck_assert_int_eq(store_content_apply(content, kept, &patch), 0);
}

/* Not their padding. */
static void expect_same_block(const struct store_block *a, const struct store_block *b)
{
	ck_assert_uint_eq(a->object, b->object);
	ck_assert_uint_eq(a->filled, b->filled);
	ck_assert_uint_eq(a->summed, b->summed);
	ck_assert_uint_eq(a->crc, b->crc);
}

static void expect_model(const struct store_content *content)
{
	for (uint64_t i = 0; i < BLOCKS; i++) {
		const struct store_block *block = store_content_block(content, i);

		ck_assert_int_eq(block != NULL, model[i].object != 0);
		if (block)
			expect_same_block(block, &model[i]);
	}
	ck_assert(!content->count || content->slot[content->count - 1]);
	ck_assert_ptr_null(store_content_block(content, 1ull << 40));
}

/* Its record, and back. */
static void expect_record(const struct store_slot *slot)
{
	static uint8_t record[STORE_SLOT_MAX];
	size_t length = store_slot_encode(slot, record);
	struct store_slot *back;

	ck_assert_int_eq(store_slot_decode(record, length, &back), 0);
	ck_assert_uint_eq(back->count, slot->count);
	for (uint32_t i = 0; i < slot->count; i++)
		expect_same_block(&back->block[i], &slot->block[i]);
	store_slot_unref(back);
	/* A part of it is damaged. */
	if (length > 2)
		ck_assert_int_eq(store_slot_decode(record, draw((uint32_t)length - 2) + 2, &back),
				 -EBADMSG);
}

START_TEST(against_model)
{
	struct store_content content = {0}, copy;

	for (int i = 0; i < 4000; i++) {
		ck_assert_int_eq(store_content_copy(&content, &copy), 0);
		change(&content);
		expect_model(&content);
		store_content_free(&copy);
		for (uint32_t k = 0; k < content.count; k++)
			if (content.slot[k])
				expect_record(content.slot[k]);
	}
	store_content_free(&content);
}
END_TEST

/* A slot that does not change is shared. */
START_TEST(shared_slots)
{
	struct store_block block = {7, 100, 100, 5};
	struct store_content content = {0}, copy;

	for (uint64_t i = 0; i < 3; i++)
		ck_assert_int_eq(store_content_apply(
					 &content, UINT64_MAX,
					 &(struct store_patch){i * STORE_SLOT_BLOCKS, &block, 1}),
				 0);
	ck_assert_int_eq(store_content_copy(&content, &copy), 0);
	block.object = 8;
	ck_assert_int_eq(store_content_apply(&copy, UINT64_MAX,
					     &(struct store_patch){STORE_SLOT_BLOCKS, &block, 1}),
			 0);
	ck_assert(content.slot[0] == copy.slot[0] && content.slot[2] == copy.slot[2]);
	ck_assert(content.slot[1] != copy.slot[1]);
	ck_assert_uint_eq(content.slot[1]->block[0].object, 7);
	ck_assert(store_content_has(&copy, 8) && !store_content_has(&content, 8));
	ck_assert(store_content_shows(&copy, 8, STORE_SLOT_BLOCKS, 1));
	ck_assert(!store_content_shows(&copy, 8, 0, STORE_SLOT_BLOCKS));
	store_content_free(&copy);
	store_content_free(&content);
}
END_TEST

/* Of a damaged slot nothing can be kept, but it can be replaced. */
START_TEST(damaged_slot)
{
	static struct store_block block[STORE_SLOT_BLOCKS];
	struct store_content content = {0};
	struct store_patch one = {STORE_SLOT_BLOCKS + 1, block, 1};
	struct store_patch all = {STORE_SLOT_BLOCKS, block, STORE_SLOT_BLOCKS};

	for (uint32_t i = 0; i < STORE_SLOT_BLOCKS; i++)
		block[i] = draw_block();
	ck_assert_int_eq(store_content_apply(&content, UINT64_MAX, &all), 0);
	store_slot_unref(content.slot[1]);
	content.slot[1] = store_slot_new(0);
	content.slot[1]->damaged = true;
	ck_assert(store_content_damaged(&content, STORE_SLOT_BLOCKS));
	ck_assert(!store_content_damaged(&content, 0));
	ck_assert_int_eq(store_content_apply(&content, UINT64_MAX, &one), -EIO);
	ck_assert_int_eq(store_content_apply(&content, UINT64_MAX, &all), 0);
	ck_assert(!store_content_damaged(&content, STORE_SLOT_BLOCKS));
	store_content_free(&content);
}
END_TEST

/* -- the checksum -- */

START_TEST(checksum)
{
	static uint8_t bytes[70000];

	ck_assert_uint_eq(store_crc(0, "123456789", 9), 0xe3069283u);
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)draw(256);
	for (int i = 0; i < 1000; i++) {
		size_t length = draw(69000), offset = draw(1000), part = draw((uint32_t)length + 1);
		uint32_t begun = draw(1u << 24),
			 plain = store_crc_plain(begun, bytes + offset, length);

		ck_assert_uint_eq(store_crc(begun, bytes + offset, length), plain);
		ck_assert_uint_eq(store_crc(store_crc(begun, bytes + offset, part),
					    bytes + offset + part, length - part),
				  plain);
	}
}
END_TEST

TEST_MAIN_WITHIN(60, "map", against_model, shared_slots, damaged_slot, checksum)
