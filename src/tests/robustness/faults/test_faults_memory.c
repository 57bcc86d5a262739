/* SPDX-License-Identifier: BSD-2-Clause */
/* Out of memory: each allocation in turn, several in sequence, all from one on. */
#include <errno.h>
#include <stdlib.h>

#include "scenario.h"
#include "tests/asserts.h"

/* Without faults everything succeeds and nothing is left: the reference for the other tests. */
START_TEST(clean)
{
	/*
	 * The shim is linked as intended: it sees the library's requests. This scenario uses no
	 * files.
	 */
	scenario_clean(&scenario_calls, SHIM_CLOCK);
}
END_TEST

/* Each allocation during set-up; of the rest a sample. */
START_TEST(one)
{
	scenario_sweep(&scenario_calls, SHIM_MEMORY, ENOMEM, 1, 1 + (unsigned)_i,
		       scenario_step(5));
}
END_TEST

START_TEST(several_in_sequence)
{
	scenario_sweep(&scenario_calls, SHIM_MEMORY, ENOMEM, 20, 1, scenario_step(23));
}
END_TEST

START_TEST(all_from_one_on)
{
	scenario_sweep(&scenario_calls, SHIM_MEMORY, ENOMEM, UINT64_MAX, 1, scenario_step(31));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("faults: memory");
	TCase *tc = tcase_create("memory");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(tc, 280);
	tcase_add_test(tc, clean);
	tcase_add_loop_test(tc, one, 0, 1);
	tcase_add_test(tc, several_in_sequence);
	tcase_add_test(tc, all_from_one_on);
	suite_add_tcase(s, tc);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
