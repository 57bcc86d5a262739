/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of modes on the command line. */
#include "tests/tools/testing.h"
#include "afscp/run.h"

START_TEST(numbers)
{
	mode_t mode = 1;

	ck_assert_int_eq(mode_parse("755", 0, false, 022, &mode), 0);
	ck_assert_uint_eq(mode, 0755);
	ck_assert_int_eq(mode_parse("0", 0777, false, 022, &mode), 0);
	ck_assert_uint_eq(mode, 0);
	ck_assert_int_eq(mode_parse("07777", 0, false, 022, &mode), 0);
	ck_assert_uint_eq(mode, 07777);
	ck_assert_int_eq(mode_parse("10000", 0, false, 022, &mode), -1);
	ck_assert_int_eq(mode_parse("778", 0, false, 022, &mode), -1);
	ck_assert_int_eq(mode_parse("7x", 0, false, 022, &mode), -1);
	ck_assert_uint_eq(mode, 07777);
}
END_TEST

START_TEST(changes)
{
	static const struct {
		const char *text;
		mode_t old;
		bool directory;
		mode_t expected;
	} known[] = {
		{"u+x", 0644, false, 0744},   {"go-r", 0644, false, 0600},
		{"a=r", 0755, false, 0444},   {"u=rwx,go=rx", 0, false, 0755},
		{"+x", 0644, false, 0755},    {"+w", 0444, false, 0644},
		{"-w", 0666, false, 0466},    {"a+X", 0644, false, 0644},
		{"a+X", 0744, false, 0755},   {"a+X", 0644, true, 0755},
		{"o=", 0777, false, 0770},    {"u+rw-x", 0100, false, 0600},
		{"u+s", 0755, false, 04755},  {"g+s,o+t", 0755, false, 03755},
		{"u+x,", 0, false, 010000},   {"", 0644, false, 010000},
		{"u", 0644, false, 010000},   {"u+y", 0644, false, 010000},
		{"z+x", 0644, false, 010000}, {"u+x;o-r", 0644, false, 010000},
		{"+", 0644, false, 0644},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		mode_t mode = 010000;
		int rc = mode_parse(known[i].text, known[i].old, known[i].directory, 022, &mode);

		ck_assert_msg(mode == known[i].expected && rc == (mode == 010000 ? -1 : 0),
			      "%s of %o became %o (%d)", known[i].text, known[i].old, mode, rc);
	}
}
END_TEST

TEST_MAIN("mode", numbers, changes)
