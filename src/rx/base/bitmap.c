/* SPDX-License-Identifier: BSD-2-Clause */
/* A set of numbers within a window that moves. */

#include "base/assert.h"
#include "base/bitmap.h"

#include <string.h>

const uint64_t rxw_bitmap_nothing[] = {0, 0, UINT64_MAX << 1};

void rxw_bitmap_init(struct rxw_bitmap *b, uint64_t *memory, uint32_t room)
{
	uint32_t words = RXW_BITMAP_WORDS(room), tops = RXW_BITMAP_TOPS(room);

	assert(room >= RXW_BITMAP_LEAST);
	assert(room <= RXW_BITMAP_MOST);
	assert((room & (room - 1)) == 0);
	b->room = room;
	b->words = memory;
	b->any = memory + words;
	b->full = b->any + tops;
	memset(memory, 0, RXW_BITMAP_MEMORY(room) * sizeof(*memory));
	if (words < 64)
		b->full[0] = UINT64_MAX << words;
}

/* Bits [from, to) of a word; to is at most 64. */
static uint64_t bits_between(uint32_t from, uint32_t to)
{
	assert((from < to) & (to <= 64));
	return (UINT64_MAX >> (64 - (to - from))) << from;
}

/* Set or clear bits of word w. */
static void change_bits(struct rxw_bitmap *b, uint32_t w, uint64_t bits, bool set)
{
	uint64_t top = 1ull << w % 64;

	assert(w < RXW_BITMAP_WORDS(b->room));
	b->words[w] = set ? b->words[w] | bits : b->words[w] & ~bits;
	b->any[w / 64] &= ~top;
	b->full[w / 64] &= ~top;
	if (b->words[w] != 0)
		b->any[w / 64] |= top;
	if (b->words[w] == UINT64_MAX)
		b->full[w / 64] |= top;
}

static void change_range(struct rxw_bitmap *b, uint32_t from, uint32_t to, bool set)
{
	uint32_t left = to - from;

	assert(left <= b->room);
	while (left > 0) {
		uint32_t n = 64 - from % 64;

		n = n < left ? n : left;
		change_bits(b, from % b->room / 64, bits_between(from % 64, from % 64 + n), set);
		from += n;
		left -= n;
	}
}

static void change_word(struct rxw_bitmap *b, uint32_t from, uint64_t bits, bool set)
{
	change_bits(b, from % b->room / 64, bits << from % 64, set);
	if (from % 64 != 0)
		change_bits(b, (from + 63) % b->room / 64, bits >> (64 - from % 64), set);
}

void rxw_bitmap_set(struct rxw_bitmap *b, uint32_t from, uint32_t to)
{
	change_range(b, from, to, true);
}

void rxw_bitmap_clear(struct rxw_bitmap *b, uint32_t from, uint32_t to)
{
	change_range(b, from, to, false);
}

void rxw_bitmap_set_word(struct rxw_bitmap *b, uint32_t from, uint64_t bits)
{
	change_word(b, from, bits, true);
}

void rxw_bitmap_clear_word(struct rxw_bitmap *b, uint32_t from, uint64_t bits)
{
	change_word(b, from, bits, false);
}

/* The bits of word w that a search looks for: those that are set, or those that are clear. */
static uint64_t in_word(const struct rxw_bitmap *b, uint32_t w, bool set)
{
	return set ? b->words[w] : ~b->words[w];
}

static uint64_t in_top(const struct rxw_bitmap *b, uint32_t w, bool set)
{
	return set ? b->any[w / 64] : ~b->full[w / 64];
}

static uint32_t words_of_top(const struct rxw_bitmap *b)
{
	uint32_t words = RXW_BITMAP_WORDS(b->room);

	return words < 64 ? words : 64;
}

uint32_t rxw_bitmap_next(const struct rxw_bitmap *b, uint32_t from, uint32_t to, bool set)
{
	uint32_t n = to - from, at = 0;

	assert(n <= b->room);
	while (at < n) {
		uint32_t bit = from + at, w = bit % b->room / 64;
		uint64_t found = in_word(b, w, set) >> bit % 64;

		if (found != 0) {
			at += (uint32_t)__builtin_ctzll(found);
			break;
		}
		at += 64 - bit % 64;
		w = (from + at) % b->room / 64;
		found = in_top(b, w, set) >> w % 64;
		at += 64 *
		      (found != 0 ? (uint32_t)__builtin_ctzll(found) : words_of_top(b) - w % 64);
	}
	return at < n ? from + at : to;
}

uint32_t rxw_bitmap_last(const struct rxw_bitmap *b, uint32_t from, uint32_t to, bool set)
{
	uint32_t n = to - from; /* those from from + n on are not wanted */

	assert(n <= b->room);
	while (n > 0 && n <= to - from) {
		uint32_t bit = from + n - 1, w = bit % b->room / 64;
		uint64_t found = in_word(b, w, set) << (63 - bit % 64);

		if (found != 0) {
			n -= (uint32_t)__builtin_clzll(found);
			break;
		}
		n -= bit % 64 + 1;
		w = (from + n - 1) % b->room / 64;
		found = in_top(b, w, set) << (63 - w % 64);
		n -= 64 * (found != 0 ? (uint32_t)__builtin_clzll(found) : w % 64 + 1);
	}
	return n <= to - from ? from + n : from;
}
