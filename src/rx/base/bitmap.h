/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A set of numbers within a window that moves, such as sequence numbers. Two summaries let searches skip what
 * is empty or full, so that their cost does not depend on the size of the window.
 */
#ifndef RXW_BASE_BITMAP_H
#define RXW_BASE_BITMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Numbers that a set may cover: at least and at most. */
#define RXW_BITMAP_LEAST 64u
#define RXW_BITMAP_MOST	 65536u

/*
 * Number n is bit n % room. All numbers of an operation are within `room` consecutive ones, and numbers outside of
 * the owner's window must have been removed. Invariants: bit w of `any` is set if word w is not 0, bit w of
 * `full` if all its bits are set, or if there is no such word.
 */
struct rxw_bitmap {
	uint64_t *words, *any, *full; /* in memory of the owner */
	uint32_t room;		      /* a power of two */
};

#define RXW_BITMAP_WORDS(room) ((room) / 64u)
#define RXW_BITMAP_TOPS(room)  (((room) + 4095u) / 4096u)
/* Words of memory that the set needs. */
#define RXW_BITMAP_MEMORY(room) (RXW_BITMAP_WORDS(room) + 2u * RXW_BITMAP_TOPS(room))

/* An empty set in this memory. */
void rxw_bitmap_init(struct rxw_bitmap *b, uint64_t *memory, uint32_t room);
/* The value of an empty set without memory: nothing may be added. It covers RXW_BITMAP_LEAST numbers. */
extern const uint64_t rxw_bitmap_nothing[RXW_BITMAP_MEMORY(RXW_BITMAP_LEAST)];
#define RXW_BITMAP_EMPTY                                                            \
	{                                                                           \
		(uint64_t *)rxw_bitmap_nothing, (uint64_t *)rxw_bitmap_nothing + 1, \
			(uint64_t *)rxw_bitmap_nothing + 2, RXW_BITMAP_LEAST        \
	}
/* Add the numbers [from, to), or remove them. */
void rxw_bitmap_set(struct rxw_bitmap *b, uint32_t from, uint32_t to);
void rxw_bitmap_clear(struct rxw_bitmap *b, uint32_t from, uint32_t to);
/* The same for the numbers from `from` on that have a bit; the lowest bit is the first. */
void rxw_bitmap_set_word(struct rxw_bitmap *b, uint32_t from, uint64_t bits);
void rxw_bitmap_clear_word(struct rxw_bitmap *b, uint32_t from, uint64_t bits);
/* The first number of [from, to) that is in the set, or that is not; `to`: there is none. */
uint32_t rxw_bitmap_next(const struct rxw_bitmap *b, uint32_t from, uint32_t to, bool set);
/* The number after the last of [from, to) that is in the set, or that is not; `from`: there is none. */
uint32_t rxw_bitmap_last(const struct rxw_bitmap *b, uint32_t from, uint32_t to, bool set);

static inline bool rxw_bitmap_has(const struct rxw_bitmap *b, uint32_t n)
{
	return b->words[n % b->room / 64] >> n % 64 & 1;
}

/* The numbers from `from` on, as bits; the first is the lowest. */
static inline uint64_t rxw_bitmap_word(const struct rxw_bitmap *b, uint32_t from)
{
	uint64_t low = b->words[from % b->room / 64] >> from % 64;

	return from % 64 == 0 ? low
			      : low | b->words[(from + 63) % b->room / 64] << (64 - from % 64);
}

#endif
