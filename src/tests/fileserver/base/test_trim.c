/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of trim.c: when memory is returned to the system. */
#include "fileserver/base/base.h"
#include "tests/main.h"

#define MIB ((size_t)1 << 20)

START_TEST(after_a_peak)
{
	struct fsd_trim trim = {0};

	ck_assert(!fsd_trim(&trim, 10 * MIB, 10 * MIB));
	ck_assert(!fsd_trim(&trim, 150 * MIB, 150 * MIB));
	ck_assert(!fsd_trim(&trim, 100 * MIB, 150 * MIB));
	ck_assert(fsd_trim(&trim, 86 * MIB, 150 * MIB));
	/* Once, until much is freed again. */
	ck_assert(!fsd_trim(&trim, 86 * MIB, 150 * MIB));
	ck_assert(!fsd_trim(&trim, 23 * MIB, 150 * MIB));
	ck_assert(fsd_trim(&trim, 10 * MIB, 150 * MIB));
	ck_assert(!fsd_trim(&trim, 1 * MIB, 150 * MIB));
}
END_TEST

/* One that begins and ends between two looks. */
START_TEST(after_a_short_peak)
{
	struct fsd_trim trim = {0};

	ck_assert(!fsd_trim(&trim, 10 * MIB, 10 * MIB));
	ck_assert(fsd_trim(&trim, 10 * MIB, 90 * MIB));
	ck_assert(!fsd_trim(&trim, 10 * MIB, 90 * MIB));
}
END_TEST

TEST_MAIN("freed memory", after_a_peak, after_a_short_peak)
