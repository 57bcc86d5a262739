/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of log.c: formats of a line, and messages to the service manager. */
#include "program/manager.h"
#include "tests/fileserver/fixture.h"

#include <sys/socket.h>
#include <sys/un.h>

#include "fileserver/base/base.h"

static char *logged(bool journal, enum rxw_log_level level, const char *text)
{
	struct test_capture c;
	struct stat st;
	char name[64];

	test_capture(&c, 2);
	fstat(2, &st);
	snprintf(name, sizeof(name), "%llu:%llu", (unsigned long long)st.st_dev + !journal,
		 (unsigned long long)st.st_ino);
	setenv("JOURNAL_STREAM", name, 1);
	fsd_log_start();
	fsd_log(level, "%s", text);
	return test_captured(&c);
}

START_TEST(lines)
{
	char *text = logged(false, RXW_LOG_WARNING, "one two");

	ck_assert_str_eq(text, "rxfsd: one two\n");
	free(text);
	text = logged(true, RXW_LOG_WARNING, "one two");
	ck_assert_str_eq(text, "<4>one two\n");
	free(text);
	/* names of files cannot create lines of their own */
	text = logged(true, RXW_LOG_INFO, "a\nb\x1b[31m");
	ck_assert_str_eq(text, "<6>a?b?[31m\n");
	free(text);
	text = logged(true, RXW_LOG_DEBUG, "too much");
	ck_assert_str_eq(text, "");
	free(text);

	char *huge = malloc(5000);

	memset(huge, 'x', 4999);
	huge[4999] = 0;
	text = logged(false, RXW_LOG_ERROR, huge);
	test_one_line(text);
	ck_assert_uint_lt(strlen(text), 1100);
	free(text);
	free(huge);
}
END_TEST

/* Clients cannot fill the log, and the next line says how many are missing. */
START_TEST(lines_in_a_minute)
{
	const uint64_t minute = 60ull * 1000000000;
	struct fsd_log_limit limit = {0};
	unsigned left_out = 7;

	for (uint64_t i = 0; i < 3; i++) {
		ck_assert(fsd_log_permits(&limit, 5 * minute + i, 3, &left_out));
		ck_assert_uint_eq(left_out, 0);
	}
	for (uint64_t i = 0; i < 20; i++)
		ck_assert(!fsd_log_permits(&limit, 6 * minute - 1, 3, &left_out));
	ck_assert(fsd_log_permits(&limit, 6 * minute, 3, &left_out));
	ck_assert_uint_eq(left_out, 20);
	ck_assert(fsd_log_permits(&limit, 6 * minute, 3, &left_out));
	ck_assert_uint_eq(left_out, 0);
}
END_TEST

START_TEST(held_lines)
{
	struct test_capture c;
	char *text;

	test_capture(&c, 2);
	fsd_log_hold();
	fsd_log(RXW_LOG_WARNING, "forgotten");
	fsd_log_release(false);
	fsd_log_hold();
	for (int i = 0; i < 1000; i++)
		fsd_log(RXW_LOG_WARNING, "%d", i);
	fsd_log_release(true);
	fsd_log(RXW_LOG_WARNING, "now");
	text = test_captured(&c);
	ck_assert_ptr_null(strstr(text, "forgotten"));
	ck_assert_ptr_nonnull(strstr(text, ": 0\n"));
	ck_assert_ptr_nonnull(strstr(text, ": 100\n"));
	ck_assert_ptr_nonnull(strstr(text, ": now\n"));
	ck_assert_uint_lt(strlen(text), 4200);
	free(text);
}
END_TEST

START_TEST(manager_notified)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	char *folder = test_folder(), got[64] = "";
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

	unsetenv("NOTIFY_SOCKET");
	ck_assert_int_eq(tools_tell_manager("READY=1"), 0);
	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/n", folder);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	setenv("NOTIFY_SOCKET", sa.sun_path, 1);
	ck_assert_int_eq(tools_tell_manager("READY=1"), 1);
	ck_assert_int_eq(recv(fd, got, sizeof(got), MSG_DONTWAIT), 7);
	ck_assert_str_eq(got, "READY=1");
	close(fd);
	ck_assert_int_eq(tools_tell_manager("STOPPING=1"), -1);
	tree_remove(folder);
}
END_TEST

START_TEST(abstract_name)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	char name[64], got[64] = "";
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	int n = snprintf(name, sizeof(name), "@rxfsd-test-%d", (int)getpid());

	memcpy(sa.sun_path, name, (size_t)n);
	sa.sun_path[0] = 0;
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&sa,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)n)),
			 0);
	setenv("NOTIFY_SOCKET", name, 1);
	ck_assert_int_eq(tools_tell_manager("READY=1"), 1);
	ck_assert_int_eq(recv(fd, got, sizeof(got), MSG_DONTWAIT), 7);
	close(fd);
}
END_TEST

TEST_MAIN("log", lines, lines_in_a_minute, held_lines, manager_notified, abstract_name)
