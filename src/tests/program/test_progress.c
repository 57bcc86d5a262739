/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of program/report.c: the progress line. */

#include "tests/tools/testing.h"

#include "program/report.h"

START_TEST(line)
{
	char t[256], long_name[500];

	progress_line(t, sizeof(t), "vol:/a", 1 << 20, 4 << 20, 1e6);
	ck_assert_ptr_nonnull(strstr(t, "vol:/a"));
	ck_assert_ptr_nonnull(strstr(t, "25%"));
	ck_assert_ptr_nonnull(strstr(t, "1.0 MiB"));
	ck_assert_ptr_nonnull(strstr(t, "1.0 MB/s"));
	ck_assert_ptr_nonnull(strstr(t, "0:03 left"));
	progress_line(t, sizeof(t), "a", 0, (uint64_t)8000 * 1000000, 1e6);
	ck_assert_ptr_nonnull(strstr(t, "2:13:20 left"));
	/* Unknown total, no rate yet, complete, more than complete. */
	progress_line(t, sizeof(t), "a", 5, 0, 0);
	ck_assert_ptr_null(strstr(t, "%"));
	progress_line(t, sizeof(t), "a", 5, 10, 0);
	ck_assert_ptr_null(strstr(t, "left"));
	progress_line(t, sizeof(t), "a", 10, 10, 1);
	ck_assert_ptr_nonnull(strstr(t, "100%"));
	ck_assert_ptr_null(strstr(t, "left"));
	progress_line(t, sizeof(t), "a", 11, 10, 1);
	ck_assert_ptr_nonnull(strstr(t, "100%"));
	/* A rate near zero does not predict centuries. */
	progress_line(t, sizeof(t), "a", 1, UINT64_MAX, 0.001);
	ck_assert_ptr_null(strstr(t, "left"));
	/* Long names keep their end. */
	memset(long_name, 'x', sizeof(long_name));
	strcpy(long_name + sizeof(long_name) - 5, "end.");
	progress_line(t, sizeof(t), long_name, 1, 2, 1);
	ck_assert_ptr_nonnull(strstr(t, "end."));
	ck_assert_uint_lt(strlen(t), 120);
}
END_TEST

START_TEST(count)
{
	char t[64];

	ck_assert_str_eq(progress_count(t, sizeof(t), 0, 0), "0 files  ");
	ck_assert_str_eq(progress_count(t, sizeof(t), 3, 7), "3 of 7 files  ");
	/* Files that came after they were counted. */
	ck_assert_str_eq(progress_count(t, sizeof(t), 9, 7), "9 of 9 files  ");
	ck_assert_uint_lt(strlen(progress_count(t, sizeof(t), UINT64_MAX, UINT64_MAX)), 60);
}
END_TEST

/* Off: nothing is written. */
START_TEST(quiet)
{
	struct test_capture c;
	struct progress p;
	char *text;

	test_capture(&c, STDERR_FILENO);
	progress_start(&p, false, false);
	progress_update(&p, "a", 1, 2, 0, 0);
	progress_end(&p, "a", 2, true, 1);
	text = test_captured(&c);
	ck_assert_str_eq(text, "");
	free(text);
}
END_TEST

TEST_MAIN("progress", line, count, quiet)
