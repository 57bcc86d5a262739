/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests of base/ascii.h, in the C locale and, if installed, in a Turkish one, where 'i' has no 'I'.
 */
#include <locale.h>
#include <stdio.h>
#include <strings.h>

#include "base/ascii.h"
#include "testing.h"

static void names_are_ascii(void)
{
	static const char *const same[][2] = {{"", ""},
					      {"mit.edu", "MIT.EDU"},
					      {"I-i", "i-I"},
					      {"a1_", "A1_"},
					      {"\xc4\xb0", "\xc4\xb0"}};
	static const char *const other[][2] = {{"", "a"},	 {"a", ""},  {"ab", "a"},
					       {"a", "ab"},	 {"@", "`"}, {"[", "{"},
					       {"\xc4\xb0", "i"}};

	for (unsigned i = 0; i < sizeof(same) / sizeof(same[0]); i++)
		ck_assert(rxw_ascii_same(same[i][0], same[i][1]));
	for (unsigned i = 0; i < sizeof(other) / sizeof(other[0]); i++)
		ck_assert(!rxw_ascii_same(other[i][0], other[i][1]));
	ck_assert(rxw_ascii_same_n("iab", "IAc", 2));
	ck_assert(!rxw_ascii_same_n("iab", "IAc", 3));
	ck_assert(rxw_ascii_same_n("a\0b", "A\0c", 3));
	for (int c = -128; c < 128; c++) {
		bool small = c >= 'a' && c <= 'z';

		ck_assert_int_eq(rxw_ascii_upper((char)c), small ? c - 32 : c);
		ck_assert_int_eq(rxw_ascii_is_digit((char)c), c >= '0' && c <= '9');
	}
}

START_TEST(in_any_locale)
{
	names_are_ascii();
	if (!setlocale(LC_ALL, "tr_TR.UTF-8")) {
		puts("left out: locale tr_TR.UTF-8 is not installed");
		return;
	}
	/* The premise: strcasecmp() takes them for different here. */
	ck_assert_int_ne(strcasecmp("mit", "MIT"), 0);
	names_are_ascii();
	setlocale(LC_ALL, "C");
}
END_TEST

TEST_MAIN("ascii", in_any_locale)
