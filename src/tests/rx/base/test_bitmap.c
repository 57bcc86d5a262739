/* SPDX-License-Identifier: BSD-2-Clause */
/* Sets of numbers: random operations on windows that move, compared with one byte for each number. */
#include "base/bitmap.h"
#include "testing.h"

static uint64_t state;

static uint32_t draw(uint32_t below)
{
	return below > 0 ? (uint32_t)test_below(&state, below) : 0;
}

static uint8_t model[RXW_BITMAP_MOST];

static uint32_t next_of(uint32_t from, uint32_t to, bool set, uint32_t room)
{
	while (from != to && model[from % room] != set)
		from++;
	return from;
}

static uint32_t last_of(uint32_t from, uint32_t to, bool set, uint32_t room)
{
	while (to != from && model[(to - 1) % room] != set)
		to--;
	return to;
}

static void check(const struct rxw_bitmap *b, uint32_t from, uint32_t to)
{
	for (unsigned set = 0; set < 2; set++) {
		ck_assert_uint_eq(rxw_bitmap_next(b, from, to, set),
				  next_of(from, to, set, b->room));
		ck_assert_uint_eq(rxw_bitmap_last(b, from, to, set),
				  last_of(from, to, set, b->room));
	}
	for (unsigned i = 0; i < 64; i++)
		ck_assert_uint_eq(rxw_bitmap_word(b, from) >> i & 1, model[(from + i) % b->room]);
	if (from != to)
		ck_assert_uint_eq(rxw_bitmap_has(b, from), model[from % b->room]);
}

static void random_ranges_in(uint32_t room)
{
	uint32_t base = UINT32_MAX - draw(2 * room);
	uint64_t *memory = malloc(RXW_BITMAP_MEMORY(room) * sizeof(*memory));
	struct rxw_bitmap b;

	rxw_bitmap_init(&b, memory, room);
	memset(model, 0, sizeof(model));
	for (unsigned i = 0; i < 400; i++) {
		uint32_t from = draw(room), n = draw(draw(4) > 0 ? 100 : room);
		bool set = draw(16) >= i / 25 % 16; /* sparse at times, dense at others */

		n = n < room - from ? n : room - from;
		from += base;
		for (uint32_t k = 0; k < n; k++)
			model[(from + k) % room] = set;
		if (set)
			rxw_bitmap_set(&b, from, from + n);
		else
			rxw_bitmap_clear(&b, from, from + n);
		if (draw(4) == 0 && room > 64) {
			uint64_t bits = rxw_prng(&state);

			from = base + draw(room - 63);
			for (unsigned k = 0; k < 64; k++)
				if (bits >> k & 1)
					model[(from + k) % room] = set;
			if (set)
				rxw_bitmap_set_word(&b, from, bits);
			else
				rxw_bitmap_clear_word(&b, from, bits);
		}
		from = draw(room + 1);
		check(&b, base + from, base + from + draw(room - from + 1));
		if (draw(8) > 0)
			continue;
		check(&b, base, base + room);
		base += draw(room);
	}
	free(memory);
}

START_TEST(random_ranges)
{
	state = test_seed();
	for (uint32_t room = RXW_BITMAP_LEAST; room <= RXW_BITMAP_MOST; room *= 2)
		random_ranges_in(room);
}
END_TEST

/* A search in a set of one number, or without one, looks at few words however large the window is. */
START_TEST(far_away)
{
	uint64_t *memory = malloc(RXW_BITMAP_MEMORY(65536) * sizeof(*memory));
	struct rxw_bitmap b;

	rxw_bitmap_init(&b, memory, 65536);
	ck_assert_uint_eq(rxw_bitmap_next(&b, 7, 7 + 65536, true), 7 + 65536);
	ck_assert_uint_eq(rxw_bitmap_last(&b, 7, 7 + 65536, true), 7);
	rxw_bitmap_set(&b, 60000, 60001);
	ck_assert_uint_eq(rxw_bitmap_next(&b, 7, 7 + 65536, true), 60000);
	ck_assert_uint_eq(rxw_bitmap_last(&b, 7, 7 + 65536, true), 60001);
	rxw_bitmap_set(&b, 7, 7 + 65536);
	ck_assert_uint_eq(rxw_bitmap_next(&b, 7, 7 + 65536, false), 7 + 65536);
	rxw_bitmap_clear(&b, 65536 + 3, 65536 + 4);
	ck_assert_uint_eq(rxw_bitmap_next(&b, 7, 7 + 65536, false), 65536 + 3);
	ck_assert_uint_eq(rxw_bitmap_last(&b, 7, 7 + 65536, false), 65536 + 4);
	free(memory);
}
END_TEST

TEST_MAIN("bitmap", random_ranges, far_away)
