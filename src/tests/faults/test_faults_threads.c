/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads that cannot be made, and a clock that jumps. */
#include <errno.h>
#include <stdlib.h>

#include "scenario.h"
#include "tests/asserts.h"
#include "tests/main.h"

#define SECOND 1000000000ll
#define HOUR   (3600 * SECOND)

START_TEST(one_thread)
{
	scenario_sweep(&scenario_calls, SHIM_THREAD, EAGAIN, 1, 1, 1);
}
END_TEST

START_TEST(no_thread_from_one_on)
{
	scenario_sweep(&scenario_calls, SHIM_THREAD, EAGAIN, UINT64_MAX, 1, 1);
}
END_TEST

/* Timers of an hour are over at once: calls may end, and what is begun afterwards is served. */
START_TEST(clock_jumps)
{
	unsigned step = scenario_step(67);

	scenario_sweep_clock(&scenario_calls, SHIM_CLOCK, HOUR, step, step);
}
END_TEST

/*
 * No system promises less than that this clock never goes back; some have done it by a little. What
 * waits then waits longer by as much.
 */
START_TEST(clock_goes_back)
{
	unsigned step = scenario_step(97);

	scenario_sweep_clock(&scenario_calls, SHIM_CLOCK, -SECOND / 5, step, step);
}
END_TEST

TEST_MAIN_WITHIN(280, "faults: threads and clock", one_thread, no_thread_from_one_on,
	  clock_jumps, clock_goes_back)
