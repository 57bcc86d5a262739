/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of the slots of base/buf.c: order of reuse, pages that go back, threads. */

#include "testing.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"

#define SIZE  (65536u + 64u)
#define MANY  400
#define LEAST 64 /* idle slots that keep their pages, with none in use */

static struct rxw_slots slots;
static uint8_t *taken[MANY];

static void take_all(void)
{
	rxw_slots_init(&slots, SIZE);
	for (unsigned i = 0; i < MANY; i++) {
		taken[i] = rxw_slot_get(&slots, 0);
		ck_assert_ptr_nonnull(taken[i]);
		ck_assert_uint_eq((uintptr_t)taken[i] % 64, 0);
		memset(taken[i], (int)i, SIZE);
	}
}

/* Pages of a slot in memory, but for the first and the last, which others may use. */
static unsigned resident_pages(uint8_t *slot)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t from = ((uintptr_t)slot / page + 1) * page, to = ((uintptr_t)slot + SIZE) / page * page;
	unsigned char in_core[32] = {0};
	unsigned n = 0;

	ck_assert_uint_le((to - from) / page, sizeof(in_core));
	ck_assert_int_eq(mincore((void *)from, to - from, in_core), 0);
	for (size_t i = 0; i < (to - from) / page; i++)
		n += in_core[i] & 1;
	return n;
}

START_TEST(slots_do_not_overlap)
{
	take_all();
	for (unsigned i = 0; i < MANY; i++)
		for (unsigned k = 0; k < SIZE; k += 4093)
			ck_assert_uint_eq(taken[i][k], (uint8_t)i);
	ck_assert_uint_eq(slots.used, MANY);
	/* The latest first. */
	rxw_slot_put(&slots, 0, taken[7]);
	rxw_slot_put(&slots, 0, taken[300]);
	ck_assert_ptr_eq(rxw_slot_get(&slots, 0), taken[300]);
	ck_assert_ptr_eq(rxw_slot_get(&slots, 0), taken[7]);
	rxw_slots_fini(&slots);
}
END_TEST

/* A part takes its own again, and those of others before any is without pages. */
START_TEST(parts_keep_their_own)
{
	take_all();
	rxw_slot_put(&slots, 3, taken[0]);
	rxw_slot_put(&slots, 15, taken[1]);
	rxw_slot_put(&slots, 3, taken[2]);
	ck_assert_ptr_eq(rxw_slot_get(&slots, 15), taken[1]);
	ck_assert_ptr_eq(rxw_slot_get(&slots, 3), taken[2]);
	ck_assert_ptr_eq(rxw_slot_get(&slots, 8), taken[0]);
	ck_assert_uint_eq(slots.idle_count, 0);
	ck_assert_uint_eq(slots.used, MANY);
	rxw_slots_fini(&slots);
}
END_TEST

/* As many as were in use since the last time keep their pages. After a peak, few do. */
START_TEST(pages_go_back)
{
	unsigned with_pages = 0, calls = 0;

	take_all();
	for (unsigned i = 0; i < MANY; i++)
		rxw_slot_put(&slots, i % RXW_SLOT_PARTS, taken[i]);
	ck_assert(rxw_slots_settle(&slots));
	ck_assert_uint_eq(slots.idle_count, MANY);
	ck_assert(!rxw_slots_settled(&slots));
	while (rxw_slots_settle(&slots))
		calls++;
	ck_assert_uint_ge(calls, 2); /* a part each time */
	ck_assert(rxw_slots_settled(&slots));
	ck_assert_uint_eq(slots.used, 0);
	ck_assert_uint_eq(slots.idle_count, LEAST);
	for (unsigned i = 0; i < MANY; i++)
		with_pages += resident_pages(taken[i]) > 0;
	ck_assert_uint_le(with_pages, LEAST);
	rxw_slots_trim(&slots);
	ck_assert_uint_eq(slots.idle_count, 0);
	for (unsigned i = 0; i < MANY; i++)
		ck_assert_uint_eq(resident_pages(taken[i]), 0);
	/* All of them can be used again, and no more is mapped. */
	for (unsigned i = 0; i < MANY; i++)
		memset(rxw_slot_get(&slots, 0), 1, SIZE);
	ck_assert_uint_eq(slots.used, MANY);
	rxw_slots_fini(&slots);
}
END_TEST

static void *take_and_return(void *unused)
{
	for (unsigned i = 0; i < 500; i++) {
		uint8_t *mine[40];

		for (unsigned k = 0; k < 40; k++) {
			mine[k] = rxw_slot_get(&slots, 0);
			ck_assert_ptr_nonnull(mine[k]);
			memset(mine[k], (int)k, 128);
			mine[k][SIZE - 1] = (uint8_t)k;
		}
		for (unsigned k = 0; k < 40; k++) {
			ck_assert_uint_eq(mine[k][64], k);
			ck_assert_uint_eq(mine[k][SIZE - 1], k);
			rxw_slot_put(&slots, 0, mine[k]);
		}
		if (i % 10 == 0)
			rxw_slots_settle(&slots);
		if (i % 100 == 0)
			rxw_slots_trim(&slots);
	}
	return unused;
}

START_TEST(several_threads)
{
	pthread_t thread[4];

	rxw_slots_init(&slots, SIZE);
	for (unsigned i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, take_and_return, NULL);
	for (unsigned i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	ck_assert_uint_eq(slots.used, 0);
	rxw_slots_fini(&slots);
}
END_TEST

TEST_MAIN("slots", slots_do_not_overlap, parts_keep_their_own, pages_go_back, several_threads)
