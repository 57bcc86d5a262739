/* SPDX-License-Identifier: BSD-2-Clause */
/* Decoders of generated stubs without memory: each allocation in turn, and all from one on. */
#include <errno.h>

#include "scenario.h"
#include "tests/main.h"

START_TEST(clean)
{
	scenario_run(&scenario_stubs, &(struct shim_plan){.kind = SHIM_MEMORY});
	ck_assert_uint_eq(shim_refused(), 0);
	ck_assert_uint_gt(shim_seen(SHIM_MEMORY), 100);
}
END_TEST

START_TEST(one)
{
	scenario_sweep(&scenario_stubs, SHIM_MEMORY, ENOMEM, 1, 1, scenario_step(7));
}
END_TEST

START_TEST(several_in_sequence)
{
	scenario_sweep(&scenario_stubs, SHIM_MEMORY, ENOMEM, 10, 2, scenario_step(47));
}
END_TEST

START_TEST(all_from_one_on)
{
	scenario_sweep(&scenario_stubs, SHIM_MEMORY, ENOMEM, UINT64_MAX, 3, scenario_step(61));
}
END_TEST

TEST_MAIN_WITHIN(280, "faults: stubs", clean, one, several_in_sequence, all_from_one_on)
