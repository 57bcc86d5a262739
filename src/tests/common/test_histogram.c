/* SPDX-License-Identifier: BSD-2-Clause */
/* Slots of histograms: they cover all values in order, and the top of a slot is in it. */
#include "common/histogram.h"
#include "tests/main.h"

#define BITS_MOST 8

START_TEST(contiguous)
{
	for (unsigned bits = 0; bits <= BITS_MOST; bits++) {
		uint64_t least = 0;

		for (unsigned slot = 0; slot < HISTOGRAM_SLOTS(bits); slot++) {
			uint64_t top = histogram_top(slot, bits);

			ck_assert_uint_ge(top, least);
			ck_assert_uint_eq(histogram_slot(least, bits), slot);
			ck_assert_uint_eq(histogram_slot(top, bits), slot);
			least = top + 1;
		}
		/* After the largest value of 64 bits. */
		ck_assert_uint_eq(least, 0);
	}
}
END_TEST

START_TEST(precise)
{
	for (unsigned bits = 0; bits <= BITS_MOST; bits++)
		for (unsigned shift = 0; shift < 64; shift++) {
			uint64_t value = 1ull << shift, top;

			top = histogram_top(histogram_slot(value, bits), bits);
			ck_assert_uint_le(top - value, value >> bits);
		}
}
END_TEST

START_TEST(powers_of_two)
{
	ck_assert_uint_eq(histogram_slot(0, 0), 0);
	ck_assert_uint_eq(histogram_slot(1, 0), 1);
	for (unsigned shift = 1; shift < 64; shift++) {
		ck_assert_uint_eq(histogram_slot((1ull << shift) - 1, 0), shift);
		ck_assert_uint_eq(histogram_slot(1ull << shift, 0), shift + 1);
		ck_assert_uint_eq(histogram_top(shift, 0), (1ull << shift) - 1);
	}
	ck_assert_uint_eq(histogram_slot(UINT64_MAX, 0), 64);
}
END_TEST

TEST_MAIN("histogram", contiguous, precise, powers_of_two)
