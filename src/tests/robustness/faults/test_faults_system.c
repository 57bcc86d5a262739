/* SPDX-License-Identifier: BSD-2-Clause */
/* System calls that fail, each in turn: while an endpoint is set up, and while calls run. */
#include <errno.h>
#include <stdlib.h>

#include "scenario.h"
#include "tests/asserts.h"

static const int errors[] = {EAGAIN, ENOBUFS, EPERM, ECONNREFUSED};
#define ERRORS ((int)(sizeof(errors) / sizeof(errors[0])))

static void sweep(enum shim_kind kind, int error, uint64_t many, unsigned first, unsigned step)
{
	scenario_sweep(&scenario_calls, kind, error, many, first, step);
}

/* Socket, address, name, event, random bytes: few, so each is tried. */
START_TEST(set_up)
{
	static const enum shim_kind kinds[] = {SHIM_SOCKET, SHIM_BIND,	 SHIM_NAME,
					       SHIM_EVENT,  SHIM_RANDOM, SHIM_GET};

	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		sweep(kinds[i], errors[_i], 1, 1, 1);
	sweep(SHIM_SET, errors[_i], 1, 1 + (unsigned)_i, scenario_step(4));
}
END_TEST

START_TEST(no_option_at_all)
{
	static const enum shim_kind kinds[] = {SHIM_SET, SHIM_GET};

	for (unsigned i = 0; i < 2; i++)
		scenario_run(&scenario_calls, &(struct shim_plan){.kind = kinds[i],
								  .at = 1,
								  .many = UINT64_MAX,
								  .error = errors[_i]});
}
END_TEST

START_TEST(one_send)
{
	sweep(SHIM_SEND, errors[_i], 1, 1 + (unsigned)_i, scenario_step(13));
}
END_TEST

START_TEST(sends_in_sequence)
{
	sweep(SHIM_SEND, errors[_i], 30, 1 + (unsigned)_i, scenario_step(41));
}
END_TEST

START_TEST(one_receive)
{
	sweep(SHIM_RECV, errors[_i], 1, 1 + (unsigned)_i, scenario_step(251));
}
END_TEST

START_TEST(receives_in_sequence)
{
	sweep(SHIM_RECV, errors[_i], 100, 1 + (unsigned)_i, scenario_step(401));
}
END_TEST

START_TEST(waits)
{
	sweep(SHIM_POLL, errors[_i], 1, 1 + (unsigned)_i, scenario_step(11));
	sweep(SHIM_POLL, errors[_i], UINT64_MAX, 1 + (unsigned)_i, scenario_step(29));
	sweep(SHIM_READ, errors[_i], 1, 1, 1);
	sweep(SHIM_WRITE, errors[_i], 1, 1, scenario_step(3));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("faults: system calls");
	TCase *tc = tcase_create("system calls");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(tc, 280);
	tcase_add_loop_test(tc, set_up, 0, ERRORS);
	tcase_add_loop_test(tc, no_option_at_all, 0, ERRORS);
	tcase_add_loop_test(tc, one_send, 0, ERRORS);
	tcase_add_loop_test(tc, sends_in_sequence, 0, ERRORS);
	tcase_add_loop_test(tc, one_receive, 0, ERRORS);
	tcase_add_loop_test(tc, receives_in_sequence, 0, ERRORS);
	tcase_add_loop_test(tc, waits, 0, ERRORS);
	suite_add_tcase(s, tc);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
