/* SPDX-License-Identifier: BSD-2-Clause */
/* Which names users and groups may have. */
#include <stdio.h>
#include <string.h>

#include "protection/private.h"
#include "tests/main.h"

static const char longest[] = "a23456789012345678901234567890123456789012345678901234567890123";

static void check_name(const char *name, bool user, bool group)
{
	const char *why = NULL;

	ck_assert_msg(prot_name_valid(name, false, &why) == user, "user %s", name);
	ck_assert(user || why);
	ck_assert_msg(prot_name_valid(name, true, &why) == group, "group %s", name);
}

START_TEST(forms)
{
	char text[PROT_NAME_MAX + 2];

	check_name("a", true, true);
	check_name("alice", true, true);
	check_name("alice.admin", true, true);
	check_name("eve@other.example", true, true);
	check_name("a-b_c+d/e", true, true);
	check_name("J\xc3\xbcrgen", true, true);
	check_name("\xf0\x9f\x90\xa7", true, true);
	check_name("alice:friends", false, true);
	check_name("system:authuser@other.example", false, true);
	check_name("1a", true, true);
	ck_assert_uint_eq(strlen(longest), PROT_NAME_MAX);
	check_name(longest, true, true);
	snprintf(text, sizeof(text), "%sx", longest);
	check_name(text, false, false);
}
END_TEST

START_TEST(refused)
{
	static const char *const names[] = {
		"",
		"1",
		"007",
		"-1",
		"-name",
		"a b",
		"a\tb",
		"a\nb",
		"a\x7f",
		"a\x1b[0m",
		"a\xc2\x9b",
		"a\xc2\xa0",
		"a\xc3",
		"\xff",
		"\x80",
		"\xc0\xaf",
		"\xed\xa0\x80",
		"\xf4\x90\x80\x80",
		("a\xe2\x80\xae"
		 "b"),
		"@cell",
		"a@",
		"a@b@c",
		":b",
		"a:",
		"a:b:c",
		"a\xe3\x80\x80",
		"\xe0\x80\x80",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		check_name(names[i], false, false);
}
END_TEST

TEST_MAIN("protection names", forms, refused)
