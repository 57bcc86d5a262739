/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of common/message.c: one line, whatever it is about. */

#include "testing.h"

#include "tools/common/message.h"

START_TEST(one_line)
{
	struct test_capture c;
	char *text;

	tools_set_program("demo");
	test_capture(&c, STDERR_FILENO);
	errno = ENOENT;
	tools_error("cannot open \"%s\"", "a\nb\033[2Jc");
	ck_assert_int_eq(errno, ENOENT);
	text = test_captured(&c);
	ck_assert_str_eq(text, "demo: cannot open \"a?b?[2Jc\"\n");
	free(text);
}
END_TEST

START_TEST(long_line)
{
	struct test_capture c;
	char *text, big[5000];

	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = 0;
	test_capture(&c, STDERR_FILENO);
	tools_error("%s", big);
	text = test_captured(&c);
	test_one_line(text);
	free(text);
}
END_TEST

/* A message does not run into a progress line. */
START_TEST(progress)
{
	struct test_capture c;
	char *text;

	tools_set_program("demo");
	test_capture(&c, STDERR_FILENO);
	tools_progress("10%");
	tools_error("broken");
	tools_progress(NULL);
	text = test_captured(&c);
	ck_assert_str_eq(text, "\r10%\033[K\ndemo: broken\n");
	free(text);
}
END_TEST

START_TEST(full_disk)
{
	struct test_capture c;
	char *text;
	int status;

	tools_set_program("demo");
	if (!freopen("/dev/full", "w", stdout))
		return; /* no such device here: nothing to try */
	printf("something\n");
	test_capture(&c, STDERR_FILENO);
	status = tools_finish(0);
	text = test_captured(&c);
	ck_assert_int_eq(status, TOOLS_EXIT_FAILURE);
	test_one_line(text);
	free(text);
}
END_TEST

TEST_MAIN("message", one_line, long_line, progress, full_disk)
