/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads that cannot be created, and a clock that jumps. */
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

/* An hour's timers expire at once: calls may end, and later ones are served. */
START_TEST(clock_jumps)
{
	unsigned step = scenario_step(67);

	scenario_sweep_clock(&scenario_calls, SHIM_CLOCK, HOUR, step, step);
}
END_TEST

/*
 * The system guarantees that this clock never goes back, but some systems have set it back a
 * little. Waits are then longer by that time.
 */
START_TEST(clock_goes_back)
{
	unsigned step = scenario_step(97);

	scenario_sweep_clock(&scenario_calls, SHIM_CLOCK, -SECOND / 5, step, step);
}
END_TEST

TEST_MAIN_WITHIN(280, "faults: threads and clock", one_thread, no_thread_from_one_on,
	  clock_jumps, clock_goes_back)
