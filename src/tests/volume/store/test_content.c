/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of volume/store/data/data_content.c: lists of extents against a model that has each byte. */
#include "tests/main.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "volume/store/data/data.h"
#include "volume/store/db/record.h"

#define BYTES 600 /* of the model */

static uint32_t seed = 3;

static uint32_t draw(uint32_t below)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % below;
}

/* Which object has each byte; 0: a hole. */
struct model {
	uint64_t object[BYTES], length;
};

static void expect_valid(const struct store_content *content)
{
	bool tail = content->tail_object == 0;

	ck_assert_uint_le(content->count, STORE_EXTENTS_LEAST);
	for (uint32_t i = 0; i < content->count; i++) {
		const struct store_extent *e = &content->extent[i];

		ck_assert_uint_lt(e->start, e->end);
		ck_assert_uint_ne(e->object, 0);
		tail |= e->object == content->tail_object;
		if (i) {
			ck_assert_uint_ge(e->start, e[-1].end);
			/* Neighbours of one object are one extent. */
			ck_assert(e->start > e[-1].end || e->object != e[-1].object);
		}
	}
	ck_assert_msg(tail, "the content may add to an object that it does not refer to");
}

static void expect_model(const struct store_content *content, const struct model *model)
{
	uint64_t at = 0;

	expect_valid(content);
	for (uint32_t i = 0; i < content->count; i++) {
		const struct store_extent *e = &content->extent[i];

		ck_assert_uint_le(e->end, model->length);
		for (; at < e->start; at++)
			ck_assert_uint_eq(model->object[at], 0);
		for (; at < e->end; at++)
			ck_assert_uint_eq(model->object[at], e->object);
	}
	for (; at < model->length; at++)
		ck_assert_uint_eq(model->object[at], 0);
}

/* Extents of a few objects in [start, end), with holes between them. */
static struct store_content make_patch(uint64_t start, uint64_t end, uint64_t *objects)
{
	struct store_content patch = {.extent = calloc(BYTES, sizeof(struct store_extent))};
	uint64_t at = start, object = draw(4) ? ++*objects : 1 + draw((uint32_t)*objects);

	while (at < end) {
		uint64_t to = at + 1 + draw((uint32_t)(end - at));

		if (draw(6))
			patch.extent[patch.count++] = (struct store_extent){at, to, object};
		at = to + draw(3);
		if (draw(5) == 0)
			object = ++*objects;
	}
	if (patch.count) {
		patch.tail_object = patch.extent[patch.count - 1].object;
		patch.tail = patch.extent[patch.count - 1].end;
	}
	return patch;
}

static void apply_to_model(struct model *model, const struct store_content *patch, uint64_t start,
			   uint64_t end, uint64_t length)
{
	for (uint64_t i = model->length; i < BYTES; i++)
		model->object[i] = 0;
	for (uint64_t i = start; i < end; i++)
		model->object[i] = 0;
	for (uint32_t e = 0; e < patch->count; e++)
		for (uint64_t i = patch->extent[e].start; i < patch->extent[e].end; i++)
			model->object[i] = patch->extent[e].object;
	for (uint64_t i = length; i < BYTES; i++)
		model->object[i] = 0;
	model->length = length;
}

START_TEST(against_model)
{
	struct store_content content = {0};
	static struct model model;
	uint64_t objects = 1;

	for (int i = 0; i < 30000; i++) {
		uint64_t start = draw(BYTES), end = start + draw(BYTES - (uint32_t)start + 1);
		uint64_t length = draw(3) ? BYTES : draw(BYTES + 1);

		if (draw(3))
			end = start + (end - start) / 20;
		struct store_content patch = make_patch(start, end, &objects);
		int rc = store_content_apply(&content, &patch, start, end, length,
					     STORE_EXTENTS_LEAST);

		if (rc == 0)
			apply_to_model(&model, &patch, start, end, length);
		else
			ck_assert_int_eq(rc, -E2BIG);
		expect_model(&content, &model);
		store_content_free(&patch);
	}
	store_content_free(&content);
	ck_assert_uint_eq(content.count, 0);
	ck_assert_ptr_null(content.extent);
}
END_TEST

static void apply(struct store_content *content, uint64_t start, uint64_t end, uint64_t object,
		  uint64_t length, int want)
{
	struct store_extent extent = {start, end, object};
	struct store_content patch = {&extent, 1, object, end};

	ck_assert_int_eq(store_content_apply(content, object ? &patch : &(struct store_content){0},
					     start, end, length, STORE_EXTENTS_LEAST),
			 want);
}

/* Offsets at which bytes may be added. */
START_TEST(tails)
{
	struct store_content content = {0};

	apply(&content, 0, 100, 1, 100, 0);
	ck_assert_uint_eq(content.tail_object, 1);
	ck_assert_uint_eq(content.tail, 100);
	apply(&content, 100, 150, 1, 150, 0);
	ck_assert_uint_eq(content.count, 1);
	ck_assert_uint_eq(content.tail, 150);
	/* Bytes that were cut off are not written again: an older version may refer to them. */
	apply(&content, 60, 60, 0, 60, 0);
	ck_assert_uint_eq(content.tail_object, 1);
	ck_assert_uint_eq(content.tail, 150);
	/* A patch that was made for an older version does not take the tail back. */
	struct store_extent extent = {0, 10, 1};
	struct store_content late = {&extent, 1, 1, 10};

	ck_assert_int_eq(store_content_apply(&content, &late, 0, 10, 60, 100), 0);
	ck_assert_uint_eq(content.tail, 150);
	/* Another object: the last one that was written. */
	apply(&content, 20, 30, 2, 60, 0);
	ck_assert_uint_eq(content.tail_object, 2);
	ck_assert_uint_eq(content.tail, 30);
	ck_assert_uint_eq(content.count, 3);
	ck_assert(store_content_has(&content, 1) && store_content_has(&content, 2));
	/* Nothing refers to it any more. */
	apply(&content, 15, 40, 0, 60, 0);
	ck_assert_uint_eq(content.tail_object, 0);
	ck_assert_uint_eq(content.tail, 0);
	ck_assert(!store_content_has(&content, 2));
	ck_assert_uint_eq(content.count, 2);
	/* Nothing at all is left. */
	apply(&content, 0, 0, 0, 0, 0);
	ck_assert_uint_eq(content.count, 0);
	apply(&content, 0, 0, 0, UINT64_MAX, 0);
	ck_assert_uint_eq(content.count, 0);
	store_content_free(&content);
}
END_TEST

START_TEST(too_many)
{
	struct store_content content = {0}, copy;

	for (uint64_t i = 0; i < STORE_EXTENTS_LEAST; i++)
		apply(&content, 10 * i, 10 * i + 5, i + 1, 1 << 20, 0);
	ck_assert_int_eq(store_content_copy(&content, &copy), 0);
	apply(&content, 100000, 100001, 999, 1 << 20, -E2BIG);
	apply(&content, 2, 3, 999, 1 << 20, -E2BIG);
	ck_assert_uint_eq(content.count, copy.count);
	ck_assert_mem_eq(content.extent, copy.extent, copy.count * sizeof(*copy.extent));
	ck_assert_uint_eq(content.tail_object, copy.tail_object);
	ck_assert_uint_eq(content.tail, copy.tail);
	/* Not if it replaces others. */
	apply(&content, 0, 25, 999, 1 << 20, 0);
	ck_assert_uint_eq(content.count, STORE_EXTENTS_LEAST - 2);
	store_content_free(&content);
	store_content_free(&copy);
	ck_assert_int_eq(store_content_copy(&content, &copy), 0);
	ck_assert_ptr_null(copy.extent);
}
END_TEST

/* -- parts -- */

#define ROWS 4096

/* What the rows of a list say. */
static uint8_t row[ROWS][STORE_PAGE];

static void expect_parts(const struct parts *parts, const struct store_content *content,
			 uint32_t full)
{
	struct parts got = {.count = parts->count, .extents = parts->extents};
	struct store_content list = {0};

	ck_assert_uint_eq(parts->extents, content->count);
	ck_assert_int_eq(parts_decode(row, &got, &list), 0);
	ck_assert_uint_eq(list.count, content->count);
	ck_assert_mem_eq(list.extent, content->extent, list.count * sizeof(*list.extent));
	for (uint32_t i = 0; i < parts->count; i++) {
		uint32_t count = row[i][8] + 256u * row[i][9];

		ck_assert_uint_le(count, full);
		ck_assert_uint_eq(got.part[i].start, parts->part[i].start);
		if (parts->part[i].start != PART_UNUSED)
			ck_assert_uint_eq(got.part[i].slot, parts->part[i].slot);
	}
	parts_free(&got);
	store_content_free(&list);
}

/* Rows that did not change are those of the version before. Returns how many were written. */
static uint32_t write_parts(const struct parts *parts, const struct store_content *content)
{
	uint32_t written = 0;

	ck_assert_uint_lt(parts->count, ROWS);
	for (uint32_t i = 0; i < parts->count; i++)
		if (parts->part[i].changed) {
			part_encode(parts, i, content, row[parts->part[i].slot]);
			written++;
		}
	return written;
}

/* Each change of a list rewrites some of its rows, and all rows together are the new list. */
static void change_parts(uint32_t most)
{
	struct store_content content = {0}, before;
	struct parts parts = {0}, next;
	uint32_t full = most / 3 < PART_EXTENTS ? most / 3 : PART_EXTENTS;
	uint64_t objects = 1, single = 0, written = 0;

	for (int i = 0; i < 5000; i++) {
		bool large = draw(200) == 0;
		uint64_t start = 10 * draw(50000), end = start + 1 + draw(large ? 200000 : 12);
		uint64_t length = draw(1000) ? 600000 : draw(500000);
		struct store_content patch = {0};
		struct store_extent extent = {start, end, draw(4) ? ++objects : objects};

		if (draw(10)) {
			patch.extent = &extent;
			patch.count = 1;
		}
		ck_assert_int_eq(store_content_copy(&content, &before), 0);
		ck_assert_int_eq(store_content_apply(&content, &patch, start, end, length,
						     UINT32_MAX),
				 0);
		ck_assert_int_eq(parts_divide(&parts, &before, &content, most, &next), 0);
		if (next.count) {
			uint32_t rows = write_parts(&next, &content);

			expect_parts(&next, &content, full);
			if (parts.count && !large && length == 600000) {
				single++;
				written += rows;
			}
			if (next.count < parts.count)
				ck_assert_uint_eq(rows, next.count);
		} else {
			ck_assert_uint_le(content.count, most);
		}
		parts_free(&parts);
		parts = next;
		store_content_free(&before);
	}
	/* A small change of a long list concerns few parts. */
	ck_assert_uint_gt(single, 1000);
	ck_assert_uint_lt(written, 3 * single);
	parts_free(&parts);
	store_content_free(&content);
}

START_TEST(parts_of_versions)
{
	static const uint32_t most[] = {6, 12, 60, 256};

	for (int i = 0; i < 4; i++)
		change_parts(most[i]);
}
END_TEST

/* Rows that cannot be are refused, whatever they contain. */
START_TEST(damaged_parts)
{
	struct store_content content = {0}, list = {0};
	struct parts parts, got;

	for (uint64_t i = 0; i < 300; i++)
		apply(&content, 10 * i, 10 * i + 5, i + 1, 1 << 20, i < 256 ? 0 : -E2BIG);
	ck_assert_int_eq(parts_divide(&(struct parts){0}, &list, &content, 60, &parts), 0);
	ck_assert_uint_gt(parts.count, 5);
	for (int i = 0; i < 20000; i++) {
		write_parts(&parts, &content);
		for (uint32_t k = draw(4); k--;)
			row[draw(parts.count)][draw(draw(2) ? 10 : 200)] ^=
				(uint8_t)(1 + draw(255));
		got = (struct parts){.count = parts.count, .extents = parts.extents};
		int rc = parts_decode(row, &got, &list);

		ck_assert(rc == 0 || rc == -EBADMSG);
		for (uint32_t k = 1; rc == 0 && k < list.count; k++)
			ck_assert_uint_ge(list.extent[k].start, list.extent[k - 1].end);
		parts_free(&got);
		store_content_free(&list);
	}
	parts_free(&parts);
	store_content_free(&content);
}
END_TEST

TEST_MAIN_WITHIN(60, "content", against_model, tails, too_many, parts_of_versions, damaged_parts)
