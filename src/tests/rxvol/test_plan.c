/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of rxvol/plan.c: the moves that level partitions. */

#include "tests/tools/testing.h"

#include <math.h>
#include <stdlib.h>

#include "rxvol/plan.h"

#define GIB	 (1024 * 1024)
#define MANY	 2000
#define TOGETHER 5

static const struct plan_aims usual = {.tolerance = 0.05, .most = 100};

static size_t count_moves(const struct plan_volume *volumes, size_t count)
{
	size_t moves = 0;

	for (size_t i = 0; i < count; i++)
		moves += volumes[i].moves_to != volumes[i].at;
	return moves;
}

START_TEST(level_already)
{
	struct plan_partition partitions[] = {{100 * GIB, 50 * GIB, 0}, {200 * GIB, 104 * GIB, 0}};
	struct plan_volume volumes[] = {{40 * GIB, 0, 0, false, 9}, {90 * GIB, 0, 1, false, 9}};

	ck_assert_uint_eq(plan_moves(partitions, 2, volumes, 2, &usual), 0);
	ck_assert_uint_eq(volumes[0].moves_to, 0);
	ck_assert_uint_eq(volumes[1].moves_to, 1);
}
END_TEST

/* One volume of 20 GiB is enough; not the largest, and not two of 10. */
START_TEST(fewest_moves)
{
	struct plan_partition partitions[] = {{100 * GIB, 70 * GIB, 0}, {100 * GIB, 30 * GIB, 0}};
	struct plan_volume volumes[] = {{10 * GIB, 0, 0, false, 0},
					{10 * GIB, 0, 0, false, 0},
					{20 * GIB, 0, 0, false, 0},
					{30 * GIB, 0, 0, false, 0}};

	ck_assert_uint_eq(plan_moves(partitions, 2, volumes, 4, &usual), 1);
	ck_assert_uint_eq(volumes[2].moves_to, 1);
	ck_assert_uint_eq(partitions[0].used_kib, 50 * GIB);
	ck_assert_uint_eq(partitions[1].used_kib, 50 * GIB);
}
END_TEST

START_TEST(fixed_volumes_stay)
{
	struct plan_partition partitions[] = {{100 * GIB, 80 * GIB, 0}, {100 * GIB, 0, 0}};
	struct plan_volume volumes[] = {{40 * GIB, 0, 0, true, 0}, {35 * GIB, 0, 0, false, 0}};

	ck_assert_uint_eq(plan_moves(partitions, 2, volumes, 2, &usual), 1);
	ck_assert_uint_eq(volumes[0].moves_to, 0);
	ck_assert_uint_eq(volumes[1].moves_to, 1);
}
END_TEST

/* A volume that is too large to help stays. */
START_TEST(no_move_helps)
{
	struct plan_partition partitions[] = {{100 * GIB, 60 * GIB, 0}, {100 * GIB, 0, 0}};
	struct plan_volume volume = {60 * GIB, 0, 0, false, 0};

	ck_assert_uint_eq(plan_moves(partitions, 2, &volume, 1, &usual), 0);
}
END_TEST

START_TEST(most_moves)
{
	const struct plan_aims aims = {.tolerance = 0.01, .most = 3};
	struct plan_partition partitions[] = {{100 * GIB, 50 * GIB, 0}, {100 * GIB, 0, 0}};
	struct plan_volume volumes[50];

	for (int i = 0; i < 50; i++)
		volumes[i] = (struct plan_volume){GIB, 0, 0, false, 0};
	ck_assert_uint_eq(plan_moves(partitions, 2, volumes, 50, &aims), 3);
	ck_assert_uint_eq(count_moves(volumes, 50), 3);
}
END_TEST

/* The disks are equally full, but one server has all the accesses. */
START_TEST(accesses)
{
	const struct plan_aims aims = {.tolerance = 0.05, .use = true, .most = 100};
	struct plan_partition partitions[] = {{100 * GIB, 50 * GIB, 1000},
					      {100 * GIB, 50 * GIB, 0}};
	struct plan_volume volumes[] = {{GIB, 500, 0, false, 0}, {GIB, 500, 0, false, 0}};

	ck_assert_uint_eq(plan_moves(partitions, 2, volumes, 2, &usual), 0);
	ck_assert_uint_eq(plan_moves(partitions, 2, volumes, 2, &aims), 1);
	ck_assert_uint_eq(partitions[1].use, 500);
}
END_TEST

/* A small partition is less full, but what could move changes nothing that is shown. */
START_TEST(nothing_worth)
{
	struct plan_partition partitions[] = {{252 * (uint64_t)GIB, 217 * (uint64_t)GIB, 0},
					      {252 * (uint64_t)GIB, 217 * (uint64_t)GIB, 0},
					      {40 * 1024, 19 * 1024, 0}};
	struct plan_volume volumes[5];

	for (unsigned i = 0; i < 5; i++)
		volumes[i] = (struct plan_volume){2, 0, i % 2, false, 9};
	ck_assert_uint_eq(plan_moves(partitions, 3, volumes, 5, &usual), 0);
	ck_assert_uint_eq(count_moves(volumes, 5), 0);
	ck_assert_uint_eq(partitions[2].used_kib, 19 * 1024);
	ck_assert_uint_eq(partitions[0].used_kib, 217 * (uint64_t)GIB);
}
END_TEST

/* Whatever there is: nothing is lost, fixed ones stay, no disk is over-filled, and the worst is not worse than before. */
static void level_anything(unsigned seed)
{
	struct plan_partition partitions[TOGETHER] = {0};
	static struct plan_volume volumes[MANY];
	double mean = 0, before = 0, after = 0;
	uint64_t used = 0, now = 0;
	size_t moves;

	srand(seed);
	for (unsigned p = 0; p < TOGETHER; p++)
		partitions[p].size_kib = (uint64_t)(50 + rand() % 100) * GIB;
	for (size_t i = 0; i < MANY; i++) {
		unsigned p = (unsigned)rand() % (1 + (unsigned)rand() % TOGETHER);

		volumes[i] =
			(struct plan_volume){(uint32_t)(rand() % (rand() % 50 ? 1 << 14 : 1 << 23)),
					     0, p, rand() % 4 == 0, 0};
		if (partitions[p].used_kib + volumes[i].size_kib > partitions[p].size_kib)
			volumes[i].size_kib = 0;
		partitions[p].used_kib += volumes[i].size_kib;
	}
	for (unsigned p = 0; p < TOGETHER; p++) {
		used += partitions[p].used_kib;
		mean += (double)partitions[p].size_kib;
	}
	mean = (double)used / mean;
	for (unsigned p = 0; p < TOGETHER; p++)
		before += pow(plan_fill(&partitions[p]) - mean, 2);
	moves = plan_moves(partitions, TOGETHER, volumes, MANY, &usual);
	ck_assert_uint_eq(moves, count_moves(volumes, MANY));
	for (unsigned p = 0; p < TOGETHER; p++) {
		ck_assert(partitions[p].used_kib <= partitions[p].size_kib);
		now += partitions[p].used_kib;
		after += pow(plan_fill(&partitions[p]) - mean, 2);
	}
	ck_assert_uint_eq(now, used);
	ck_assert(after <= before);
	for (size_t i = 0; i < MANY; i++)
		ck_assert(!volumes[i].fixed || volumes[i].moves_to == volumes[i].at);
}

START_TEST(anything)
{
	for (unsigned seed = 1; seed <= 10; seed++)
		level_anything(seed);
}
END_TEST

TEST_MAIN("plan", level_already, fewest_moves, fixed_volumes_stay, no_move_helps, most_moves,
	  accesses, nothing_worth, anything)
