/* SPDX-License-Identifier: BSD-2-Clause */
/* The file server while memory, threads, files and the network fail, and clocks jump. */
#include <errno.h>

#include "scenario.h"

#define HOUR 3600000000000ll

START_TEST(clean)
{
	scenario_clean(&scenario_files, SHIM_KINDS - 1);
}
END_TEST

START_TEST(memory)
{
	scenario_sweep(&scenario_files, SHIM_MEMORY, ENOMEM, 1, 1, scenario_step(71));
	scenario_sweep(&scenario_files, SHIM_MEMORY, ENOMEM, UINT64_MAX, 2, scenario_step(307));
}
END_TEST

START_TEST(threads)
{
	scenario_sweep(&scenario_files, SHIM_THREAD, EAGAIN, 1, 1, scenario_step(3));
	scenario_sweep(&scenario_files, SHIM_THREAD, EAGAIN, UINT64_MAX, 2, scenario_step(7));
}
END_TEST

/* Each kind with each error in a long run, with one of them in a short run. */
static void each(const enum shim_kind *kinds, unsigned count, const int *errors, unsigned error,
		 unsigned step)
{
	for (unsigned i = 0; i < count; i++)
		if (scenario_chosen(i + error, 4))
			scenario_sweep(&scenario_files, kinds[i], errors[error], 1, 1 + error,
				       scenario_step(step));
}

START_TEST(files)
{
	static const enum shim_kind kinds[] = {SHIM_OPEN, SHIM_STAT, SHIM_FILE, SHIM_NOTIFY};
	static const int errors[] = {EPERM, EAGAIN, EIO, EMFILE};

	each(kinds, 4, errors, (unsigned)_i, 23);
	if (scenario_chosen((unsigned)_i, 4))
		scenario_sweep(&scenario_files, SHIM_STAT, errors[_i], UINT64_MAX, 7,
			       scenario_step(61));
}
END_TEST

START_TEST(network)
{
	static const enum shim_kind few[] = {SHIM_SOCKET, SHIM_BIND, SHIM_NAME, SHIM_EVENT,
					     SHIM_RANDOM, SHIM_GET,  SHIM_SET,	SHIM_READ};
	static const enum shim_kind many[] = {SHIM_SEND, SHIM_RECV, SHIM_POLL, SHIM_WRITE};
	static const int errors[] = {EAGAIN, ENOBUFS, EPERM, ECONNREFUSED};

	each(few, 8, errors, (unsigned)_i, 23);
	each(many, 4, errors, (unsigned)_i, 211);
}
END_TEST

START_TEST(clocks)
{
	scenario_sweep_clock(&scenario_files, SHIM_CLOCK, HOUR, 100, scenario_step(2003));
	scenario_sweep_clock(&scenario_files, SHIM_DATE, HOUR, 1, scenario_step(11));
	scenario_sweep_clock(&scenario_files, SHIM_DATE, -HOUR, 5, scenario_step(11));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("faults: fileserver");
	TCase *tc = tcase_create("fileserver");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(tc, 280);
	tcase_add_test(tc, clean);
	tcase_add_test(tc, memory);
	tcase_add_test(tc, threads);
	tcase_add_loop_test(tc, files, 0, 4);
	tcase_add_loop_test(tc, network, 0, 4);
	tcase_add_test(tc, clocks);
	suite_add_tcase(s, tc);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
