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
	ck_assert(!content->count || store_content_slot(content, content->count - 1));
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
		store_content_copy(&content, &copy);
		change(&content);
		expect_model(&content);
		store_content_free(&copy);
		for (uint32_t k = 0; store_content_next(&content, &k); k++)
			expect_record(store_content_slot(&content, k));
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
	store_content_copy(&content, &copy);
	block.object = 8;
	ck_assert_int_eq(store_content_apply(&copy, UINT64_MAX,
					     &(struct store_patch){STORE_SLOT_BLOCKS, &block, 1}),
			 0);
	ck_assert(store_content_slot(&content, 0) == store_content_slot(&copy, 0) &&
		  store_content_slot(&content, 2) == store_content_slot(&copy, 2));
	ck_assert(store_content_slot(&content, 1) != store_content_slot(&copy, 1));
	ck_assert_uint_eq(store_content_slot(&content, 1)->block[0].object, 7);
	ck_assert(store_content_has(&copy, 8) && !store_content_has(&content, 8));
	ck_assert(store_content_shows(&copy, 8, STORE_SLOT_BLOCKS, 1));
	ck_assert(!store_content_shows(&copy, 8, 0, STORE_SLOT_BLOCKS));
	store_content_free(&copy);
	store_content_free(&content);
}
END_TEST

/* -- slots anywhere in a long content, against a list -- */

#define PLACES 300

static uint32_t draw_place(void)
{
	switch (draw(4)) {
	case 0:
		return draw(70);
	case 1:
		return STORE_SLOTS_MAX - 1 - draw(40);
	case 2:
		return draw(40) * 1024;
	default:
		return draw(STORE_SLOTS_MAX);
	}
}

/* The slots that a content has, in order. */
struct places {
	uint32_t at[2 * PLACES];
	struct store_slot *slot[2 * PLACES];
	uint32_t count;
};

static void set_place(struct places *places, uint32_t at, struct store_slot *slot)
{
	uint32_t i = 0, gone;

	while (i < places->count && places->at[i] < at)
		i++;
	gone = i < places->count && places->at[i] == at;
	memmove(&places->at[i + !!slot], &places->at[i + gone],
		(places->count - i - gone) * sizeof(places->at[0]));
	memmove(&places->slot[i + !!slot], &places->slot[i + gone],
		(places->count - i - gone) * sizeof(places->slot[0]));
	places->count += (uint32_t) !!slot - gone;
	if (slot) {
		places->at[i] = at;
		places->slot[i] = slot;
	}
}

static void expect_places(const struct store_content *content, const struct places *places)
{
	uint32_t at = 0, i = 0;

	for (; store_content_next(content, &at); at++, i++) {
		ck_assert_uint_lt(i, places->count);
		ck_assert_uint_eq(at, places->at[i]);
		ck_assert_ptr_eq(store_content_slot(content, at), places->slot[i]);
	}
	ck_assert_uint_eq(i, places->count);
	ck_assert_uint_eq(content->count, i ? places->at[i - 1] + 1 : 0);
	ck_assert_uint_eq(store_content_rows(content), i - (i && !places->at[0]));
}

/* The differences of two contents, the first slot left out. */
static void expect_differences(const struct store_content *a, const struct store_content *b)
{
	uint32_t found = 0, expected = 0, at;

	for (at = 1; store_content_differ(a, b, &at); at++, found++)
		ck_assert_ptr_ne(store_content_slot(a, at), store_content_slot(b, at));
	for (at = 1; store_content_next(a, &at); at++)
		expected += store_content_slot(a, at) != store_content_slot(b, at);
	for (at = 1; store_content_next(b, &at); at++)
		expected += !store_content_slot(a, at);
	ck_assert_uint_eq(found, expected);
}

START_TEST(sparse_slots)
{
	static struct places places;
	struct store_content content = {0}, older;
	struct store_patch none = {0};

	for (int round = 0; round < 4000; round++) {
		uint32_t at =
			places.count && draw(3) == 0 ? places.at[draw(places.count)] : draw_place();
		struct store_slot *slot =
			places.count < PLACES && draw(3) ? store_slot_new(1) : NULL;

		store_content_copy(&content, &older);
		if (slot)
			slot->block[0] = (struct store_block){1, 1, 1, 1};
		if (draw(50) == 0) {
			store_slot_unref(slot);
			ck_assert_int_eq(
				store_content_apply(&content, (uint64_t)at * STORE_SLOT, &none), 0);
			while (places.count && places.at[places.count - 1] >= at)
				places.count--;
		} else {
			ck_assert_int_eq(store_content_set(&content, at, slot), 0);
			set_place(&places, at, slot);
		}
		expect_places(&content, &places);
		expect_differences(&older, &content);
		expect_differences(&content, &older);
		store_content_free(&older);
	}
	store_content_free(&content);
}
END_TEST

/* A change of one slot of many makes a few nodes, and shares all others. */
START_TEST(cheap_changes)
{
	struct store_block block = {7, 100, 100, 5};
	struct store_patch patch = {0, &block, 1};
	struct store_content content = {0}, copy;
	uint64_t nodes;
	size_t before;

	for (patch.first = 0; patch.first < 8192ull * STORE_SLOT_BLOCKS;
	     patch.first += STORE_SLOT_BLOCKS)
		ck_assert_int_eq(store_content_apply(&content, UINT64_MAX, &patch), 0);
	ck_assert_uint_eq(store_content_rows(&content), 8191);
	before = store_content_memory(&content);
	store_content_copy(&content, &copy);
	patch.first = 5000ull * STORE_SLOT_BLOCKS;
	block.object = 8;
	nodes = store_content_nodes();
	ck_assert_int_eq(store_content_apply(&copy, UINT64_MAX, &patch), 0);
	ck_assert_uint_le(store_content_nodes() - nodes, 5);
	ck_assert_uint_eq(store_content_memory(&copy), before);
	nodes = store_content_nodes();
	ck_assert_int_eq(store_content_apply(&copy, 4000ull * STORE_SLOT, &(struct store_patch){0}),
			 0);
	ck_assert_uint_le(store_content_nodes() - nodes, 5);
	ck_assert_uint_eq(copy.count, 4000);
	ck_assert_uint_eq(content.count, 8192);
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
	ck_assert_int_eq(store_content_set(&content, 1, store_slot_new(0)), 0);
	store_content_slot(&content, 1)->damaged = true;
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
		size_t length = draw(i % 2 ? 2000 : 69000), offset = draw(1000);
		size_t part = draw((uint32_t)length + 1);
		uint32_t begun = draw(1u << 24), plain;

		plain = store_crc_by(STORE_CRC_TABLE, begun, bytes + offset, length);
		for (enum store_crc_way way = 0; way <= store_crc_best(); way++)
			ck_assert_uint_eq(store_crc_by(way, begun, bytes + offset, length), plain);
		ck_assert_uint_eq(store_crc(store_crc(begun, bytes + offset, part),
					    bytes + offset + part, length - part),
				  plain);
	}
}
END_TEST

TEST_MAIN_WITHIN(60, "map", against_model, shared_slots, sparse_slots, cheap_changes, damaged_slot,
		 checksum)
