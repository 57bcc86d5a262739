/* SPDX-License-Identifier: BSD-2-Clause */
/* The main function of a unit test program, from a list of tests. */
#ifndef RXW_TESTS_MAIN_H
#define RXW_TESTS_MAIN_H

#include <stdlib.h>

#include "tests/asserts.h"

/* Limits each test to `seconds`, times $CK_TIMEOUT_MULTIPLIER; 0: $CK_DEFAULT_TIMEOUT. */
static inline int test_main(const char *name, double seconds, const TTest *const *tests,
			    size_t count)
{
	Suite *suite = suite_create(name);
	TCase *tcase = tcase_create(name);
	SRunner *runner;
	int failed;

	if (seconds > 0)
		tcase_set_timeout(tcase, seconds);
	for (size_t i = 0; i < count; i++)
		tcase_add_test(tcase, tests[i]);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#define TEST_MAIN(name, ...) TEST_MAIN_WITHIN(0, name, __VA_ARGS__)

#define TEST_MAIN_WITHIN(seconds, name, ...)                                              \
	int main(void)                                                                    \
	{                                                                                 \
		const TTest *const tests[] = { __VA_ARGS__ };                             \
											  \
		return test_main(name, seconds, tests, sizeof(tests) / sizeof(tests[0])); \
	}

#endif
