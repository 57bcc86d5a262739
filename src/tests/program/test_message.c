/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of common/message.c: messages of one line, whatever they contain. */

#include "tests/tools/testing.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "program/message.h"

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

/* C1 controls are orders to terminals, too: as bytes and as UTF-8. Other characters stay. */
START_TEST(harmless)
{
	static const char *const texts[][2] = {
		{ "plain \x7f\x1b", "plain ??" },
		{ "a\x9b" "2J\x85", "a?2J?" },
		{ "a\xc2\x9b" "2J", "a??2J" },
		{ "gr\xc3\xbc\xc3\x9f e\xe2\x82\xac \xf0\x9f\x98\x80", NULL },
		{ "latin1 \xfc\xdf", NULL },
		{ "\xe2\x9b", "\xe2?" },
		{ "\xe0\x82\x9b", "\xe0??" },
		{ "\xc0\x9b\xf0\x80\x82\x9b", "\xc0?\xf0???" },
		{ "\xc2\xa0\xc2", NULL },
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		char text[64];

		snprintf(text, sizeof(text), "%s", texts[i][0]);
		ck_assert_str_eq(tools_harmless(text), texts[i][1] ? texts[i][1] : texts[i][0]);
	}
}
END_TEST

/* For the journal, a line has a priority and no program name. */
START_TEST(journal_line)
{
	struct test_capture c;
	struct stat st;
	char *text, stream[64];

	test_capture(&c, STDERR_FILENO);
	ck_assert_int_eq(fstat(STDERR_FILENO, &st), 0);
	snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)st.st_dev,
		 (unsigned long long)st.st_ino);
	setenv("JOURNAL_STREAM", stream, 1);
	tools_set_program("demo");
	tools_error("one");
	setenv("JOURNAL_STREAM", "1:1", 1);
	tools_set_program("demo");
	tools_error("two");
	text = test_captured(&c);
	ck_assert_str_eq(text, "<3>one\ndemo: two\n");
	free(text);
}
END_TEST

/* An opened file does not get the number of a closed standard descriptor. */
START_TEST(closed_standard_files)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		close(0);
		close(1);
		close(2);
		tools_set_program("demo");
		int fd = open("/dev/null", O_RDWR);

		_exit(fd > 2 && write(1, "x", 1) < 0 && write(2, "x", 1) == 1 ? 0 : 1);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}
END_TEST

START_TEST(long_line)
{
	struct test_capture c;
	char *text, big[5000];

	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = 0;
	test_capture(&c, STDERR_FILENO);
	tools_error("%s: why", big);
	text = test_captured(&c);
	test_one_line(text);
	ck_assert_msg(strstr(text, "x: why\n") != NULL, "%s", text);
	free(text);
}
END_TEST

/* A message does not collide with a progress line. */
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
		return; /* no such device here: nothing to test */
	printf("something\n");
	test_capture(&c, STDERR_FILENO);
	status = tools_finish(0);
	text = test_captured(&c);
	ck_assert_int_eq(status, TOOLS_EXIT_FAILURE);
	test_one_line(text);
	free(text);
}
END_TEST

TEST_MAIN("message", one_line, harmless, journal_line, closed_standard_files, long_line, progress, full_disk)
