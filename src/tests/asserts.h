/* SPDX-License-Identifier: BSD-2-Clause */
/* libcheck with assertions that are cheap while they hold. */
#ifndef RXW_TESTS_ASSERTS_H
#define RXW_TESTS_ASSERTS_H

#include <check.h>

/*
 * libcheck writes the location of each assertion that holds to a pipe, so that it can name the last
 * one before a crash. For each entry that it reads it moves the rest of the pipe's contents.
 * 160,000 entries take four fifths of a test's time under a sanitizer, so each thread records only
 * its first ones.
 *
 * It does so under a lock. A child of fork() therefore asserts nothing if other threads of its parent
 * may: the lock stays held in the child for ever if one of them held it at the fork.
 */
#define ASSERTS_NOTED 256

static _Thread_local unsigned asserts_noted;

static inline void assert_held(const char *file, int line)
{
	if (asserts_noted < ASSERTS_NOTED) {
		asserts_noted++;
		_mark_point(file, line);
	}
}

/*
 * The thread records none of its assertions from now on. For tests that limit the size of files:
 * libcheck's record is a file, and a limit that cuts it makes libcheck fail.
 */
static inline void asserts_unrecorded(void)
{
	asserts_noted = ASSERTS_NOTED;
}

/* Older versions end the arguments with NULL. */
#if CHECK_MAJOR_VERSION > 0 || CHECK_MINOR_VERSION >= 15
#undef ck_assert_msg
#define ck_assert_msg(expr, ...)                                                                   \
	((expr) ? assert_held(__FILE__, __LINE__)                                                  \
		: _ck_assert_failed(__FILE__, __LINE__, "Assertion '" #expr "' failed",            \
				    ##__VA_ARGS__))
#endif

#endif
