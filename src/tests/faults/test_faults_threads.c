/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads that cannot be made, and a clock that jumps. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>

#include "scenario.h"

#define HOUR 3600000000000ull

START_TEST(one_thread)
{
	scenario_sweep(SHIM_THREAD, EAGAIN, 1, 1, 1);
}
END_TEST

START_TEST(no_thread_from_one_on)
{
	scenario_sweep(SHIM_THREAD, EAGAIN, UINT64_MAX, 1, 1);
}
END_TEST

/* Timers of an hour are over at once: calls may end, and what is begun afterwards is served. */
START_TEST(clock_jumps)
{
	struct shim_plan plan = {.kind = SHIM_CLOCK, .many = 1, .jump = HOUR};
	unsigned step = scenario_step(67);

	do {
		plan.at += step;
		scenario_run(&plan);
	} while (shim_refused());
}
END_TEST

int main(void)
{
	Suite *s = suite_create("faults: threads and clock");
	TCase *tc = tcase_create("threads and clock");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(tc, 280);
	tcase_add_test(tc, one_thread);
	tcase_add_test(tc, no_thread_from_one_on);
	tcase_add_test(tc, clock_jumps);
	suite_add_tcase(s, tc);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
