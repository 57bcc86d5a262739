/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of access lists: their text, hostile texts, and rights as letters. */
#include <stdio.h>
#include <string.h>

#include "afs/acl.h"
#include "tests/asserts.h"
#include "tests/main.h"

static struct afs_acl acl;
static char text[1024];

START_TEST(parse)
{
	static const char example[] =
		"2\n1\nsystem:administrators\t127\nsystem:anyuser\t9\nalice\t-1\n";

	ck_assert_int_eq(afs_acl_parse(example, &acl), 0);
	ck_assert_uint_eq(acl.count, 3);
	ck_assert_str_eq(acl.entry[0].name, "system:administrators");
	ck_assert_uint_eq(acl.entry[0].rights, 127);
	ck_assert(!acl.entry[1].negative && acl.entry[2].negative);
	ck_assert_uint_eq(acl.entry[2].rights, 0xffffffffu);
	ck_assert_int_eq(afs_acl_text(&acl, text, sizeof(text)), 0);
	ck_assert_str_eq(text, example);
	ck_assert_int_eq(afs_acl_parse("0\n0\n", &acl), 0);
	ck_assert_uint_eq(acl.count, 0);
	/* Text behind the last counted line is ignored. */
	ck_assert_int_eq(afs_acl_parse("1\n0\na\t1\nb\t2\n", &acl), 0);
	ck_assert_uint_eq(acl.count, 1);
}
END_TEST

START_TEST(hostile)
{
	static const char *const bad[] = {
		"",
		"1",
		"1\n",
		"1\n0",
		"1\n0\n",
		"-1\n0\n",
		"0\n-1\n",
		"1\n-1\na\t1\n",
		"21\n0\n",
		"11\n10\n",
		"20\n1\n",
		"2\n0\na\t1\n",
		"1\n0\na 1\n",
		"1\n0\na\t\n",
		"1\n0\n\t1\n",
		"1\n0\na\tx\n",
		"1\n0\na\t1",
		"1\n0\na\n\t1\n",
		"+1\n0\na\t1\n",
		" 1\n0\na\t1\n",
		"1\n0\na\t4294967296\n",
		"1\n0\na\t99999999999999999999\n",
		"999999999999999999999\n0\n",
	};
	char name[300];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(afs_acl_parse(bad[i], &acl) == -1, "%zu: accepted", i);
	/* A name that is too long. */
	for (size_t length = AFS_ACL_NAME - 1; length <= AFS_ACL_NAME; length++) {
		snprintf(name, sizeof(name), "1\n0\n%0*d\t1\n", (int)length, 7);
		ck_assert_int_eq(afs_acl_parse(name, &acl), length < AFS_ACL_NAME ? 0 : -1);
	}
}
END_TEST

START_TEST(changes)
{
	char name[AFS_ACL_NAME + 8];

	ck_assert_int_eq(afs_acl_parse("1\n1\na\t1\na\t2\n", &acl), 0);
	ck_assert_int_eq(afs_acl_set(&acl, "a", false, 7), 0);
	ck_assert_int_eq(afs_acl_set(&acl, "b", true, 8), 0);
	ck_assert_int_eq(afs_acl_set(&acl, "c", false, 16), 0);
	ck_assert_int_eq(afs_acl_text(&acl, text, sizeof(text)), 0);
	ck_assert_str_eq(text, "2\n2\na\t7\nc\t16\na\t2\nb\t8\n");
	ck_assert_int_eq(afs_acl_set(&acl, "a", true, 0), 0);
	ck_assert_int_eq(afs_acl_set(&acl, "nobody", false, 0), 0);
	ck_assert_int_eq(afs_acl_text(&acl, text, sizeof(text)), 0);
	ck_assert_str_eq(text, "2\n1\na\t7\nc\t16\nb\t8\n");
	ck_assert_int_eq(afs_acl_set(&acl, "", false, 1), -1);
	ck_assert_int_eq(afs_acl_set(&acl, "a b", false, 1), -1);
	ck_assert_int_eq(afs_acl_set(&acl, "a\tb", false, 1), -1);
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	ck_assert_int_eq(afs_acl_set(&acl, name, false, 1), -1);
	/* The list is full, but what it has can be changed. */
	for (unsigned i = acl.count; i < AFS_ACL_ENTRIES; i++) {
		snprintf(name, sizeof(name), "user%u", i);
		ck_assert_int_eq(afs_acl_set(&acl, name, false, 1), 0);
	}
	ck_assert_int_eq(afs_acl_set(&acl, "one-more", false, 1), -1);
	ck_assert_int_eq(afs_acl_set(&acl, "user7", false, 2), 0);
	/* Too little room for the text. */
	ck_assert_int_eq(afs_acl_text(&acl, text, sizeof(text)), 0);
	for (size_t size = 1; size <= strlen(text); size++) {
		char *part = malloc(size);

		ck_assert_int_eq(afs_acl_text(&acl, part, size), -1);
		free(part);
	}
}
END_TEST

START_TEST(rights)
{
	static const struct {
		const char *text;
		uint32_t rights;
		const char *canonical;
	} known[] = {
		{"read", 9, "rl"},
		{"write", 63, "rlidwk"},
		{"all", 127, "rlidwka"},
		{"none", 0, "none"},
		{"r", 1, "r"},
		{"akwdilr", 127, "rlidwka"},
		{"rr", 1, "r"},
		{"A", 0x01000000u, "A"},
		{"HlA", 0x81000008u, "lAH"},
		{"rlidwkaABCDEFGH", 0xff00007fu, "rlidwkaABCDEFGH"},
	};
	char letters[AFS_ACL_RIGHTS];
	uint32_t value;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		ck_assert_int_eq(afs_rights_parse(known[i].text, &value), 0);
		ck_assert_uint_eq(value, known[i].rights);
		ck_assert_str_eq(afs_rights_text(value, letters), known[i].canonical);
	}
	value = 77;
	ck_assert_int_eq(afs_rights_parse("", &value), -1);
	ck_assert_int_eq(afs_rights_parse("rx", &value), -1);
	ck_assert_int_eq(afs_rights_parse("READ", &value), -1);
	ck_assert_int_eq(afs_rights_parse("I", &value), -1);
	ck_assert_uint_eq(value, 77);
}
END_TEST

TEST_MAIN("acl", parse, hostile, changes, rights)
