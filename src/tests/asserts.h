/* SPDX-License-Identifier: BSD-2-Clause */
/* libcheck, with assertions that cost next to nothing while they hold. */
#ifndef RXW_TESTS_ASSERTS_H
#define RXW_TESTS_ASSERTS_H

#include <check.h>

/*
 * libcheck writes the place of each assertion that holds into a pipe, to say which was the last before
 * a test crashed, and then moves all that it has read for each line of it: 160,000 of them were
 * four fifths of a test's time under a sanitizer. A thread's first ones are enough.
 */
#define ASSERTS_NOTED 256

static inline void assert_held(const char *file, int line)
{
	static _Thread_local unsigned noted;

	if (noted < ASSERTS_NOTED) {
		noted++;
		_mark_point(file, line);
	}
}

/* Older ones end the arguments with NULL. */
#if CHECK_MAJOR_VERSION > 0 || CHECK_MINOR_VERSION >= 15
#undef ck_assert_msg
#define ck_assert_msg(expr, ...)                                                                   \
	((expr) ? assert_held(__FILE__, __LINE__)                                                  \
		: _ck_assert_failed(__FILE__, __LINE__, "Assertion '" #expr "' failed",            \
				    ##__VA_ARGS__))
#endif

#endif
