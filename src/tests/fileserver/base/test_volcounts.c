/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters of volumes: many of them, more than there is room for, and many threads. */
#include <pthread.h>

#include "fileserver/base/base.h"
#include "tests/main.h"

#define FIRST 536870912u

static uint64_t fetches(const struct fsd_volume_counts *counts, uint32_t id)
{
	return fsd_volume_counted(counts, id, FSD_VOLUME_FETCHES);
}

START_TEST(many_volumes)
{
	struct fsd_volume_counts *counts = fsd_volume_counts_create();
	unsigned missing = 0;

	ck_assert_ptr_nonnull(counts);
	/* As a store gives ids: three for a volume. */
	for (uint32_t i = 0; i < 20000; i++)
		fsd_volume_count(counts, FIRST + 3 * i, FSD_VOLUME_FETCHES, i);
	fsd_volume_count(counts, FIRST, FSD_VOLUME_CHANGES, 7);
	for (uint32_t i = 0; i < 20000; i++) {
		ck_assert_uint_eq(fetches(counts, FIRST + 3 * i), i);
		ck_assert_uint_eq(fetches(counts, FIRST + 3 * i + 1), 0);
	}
	ck_assert_uint_eq(fsd_volume_counted(counts, FIRST, FSD_VOLUME_CHANGES), 7);
	/* Without a place there is no count, and no harm. */
	for (uint32_t i = 0; i < 100000; i++)
		fsd_volume_count(counts, 1 + i, FSD_VOLUME_FETCHES, 1);
	for (uint32_t i = 0; i < 100000; i++)
		missing += !fetches(counts, 1 + i);
	ck_assert_uint_gt(missing, 0);
	for (uint32_t i = 0; i < 20000; i++)
		ck_assert_uint_eq(fetches(counts, FIRST + 3 * i), i);
	fsd_volume_counts_destroy(counts);
}
END_TEST

START_TEST(no_table)
{
	fsd_volume_count(NULL, FIRST, FSD_VOLUME_FETCHES, 1);
	ck_assert_uint_eq(fetches(NULL, FIRST), 0);
	fsd_volume_counts_destroy(NULL);
}
END_TEST

#define THREADS 4
#define ROUNDS	20000
#define VOLUMES 100

static void *count_much(void *arg)
{
	for (uint32_t i = 0; i < ROUNDS; i++)
		fsd_volume_count(arg, FIRST + i % VOLUMES, FSD_VOLUME_FETCHES, 1);
	return NULL;
}

START_TEST(threads)
{
	struct fsd_volume_counts *counts = fsd_volume_counts_create();
	pthread_t thread[THREADS];

	for (unsigned i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, count_much, counts), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	for (uint32_t i = 0; i < VOLUMES; i++)
		ck_assert_uint_eq(fetches(counts, FIRST + i), THREADS * ROUNDS / VOLUMES);
	fsd_volume_counts_destroy(counts);
}
END_TEST

TEST_MAIN("counters of volumes", many_volumes, no_table, threads)
