/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of acl.c: the text of ACLs, names, limits, hostile texts. */
#include "fileserver/guard/guard.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/main.h"
#include "tests/tools/testing.h"

static bool id_of(void *arg, const char *name, int32_t *id)
{
	(void)arg;
	if (strcmp(name, "alice") == 0)
		*id = 7;
	else if (strcmp(name, "alice:friends") == 0)
		*id = -300;
	else if (strcmp(name, "anonymous") == 0)
		*id = STORE_ANONYMOUS;
	else
		return false;
	return true;
}

static bool name_of(void *arg, int32_t id, char name[FSD_PERSON_MAX + 1])
{
	(void)arg;
	if (id == 7)
		strcpy(name, "alice");
	else if (id == -300)
		strcpy(name, "alice:friends");
	else
		return false;
	return true;
}

static const struct fsd_names names = {.id_of = id_of, .name_of = name_of};

/* The text with its NUL. */
static int parse(const char *text, struct store_acl *acl)
{
	return fsd_acl_parse(text, strlen(text) + 1, &names, acl);
}

START_TEST(text_as_recorded)
{
	const char *text = "2\n0\nsystem:administrators\t127\nsystem:anyuser\t127\n";
	char out[FSD_ACL_TEXT_MAX];
	struct store_acl acl;

	ck_assert_int_eq(parse(text, &acl), 0);
	ck_assert_uint_eq(acl.positive, 2);
	ck_assert_uint_eq(acl.negative, 0);
	ck_assert(acl.entry[0].id == -204 && acl.entry[0].rights == 127);
	ck_assert(acl.entry[1].id == -101 && acl.entry[1].rights == 127);
	ck_assert_int_eq(fsd_acl_print(&acl, NULL, out), 50);
	ck_assert_str_eq(out, text);
	ck_assert_int_eq(parse("0\n0\n", &acl), 0);
	ck_assert_int_eq(fsd_acl_print(&acl, NULL, out), 5);
	ck_assert_str_eq(out, "0\n0\n");
}
END_TEST

START_TEST(names_and_numbers)
{
	char out[FSD_ACL_TEXT_MAX];
	struct store_acl acl;

	ck_assert_int_eq(
		parse("3\n2\nalice\t9\n12345\t1\nalice:friends\t8\n7 2\nsystem:authuser\t-1\n",
		      &acl),
		0);
	ck_assert_uint_eq(acl.positive, 3);
	ck_assert_uint_eq(acl.negative, 2);
	fsd_acl_print(&acl, &names, out);
	ck_assert_str_eq(out, "3\n2\nalice:friends\t8\nalice\t9\n12345\t1\n"
			      "system:authuser\t-1\nalice\t2\n");
	/* one id twice */
	ck_assert_int_eq(parse("2\n0\nalice\t1\n7\t8\n", &acl), 0);
	ck_assert_uint_eq(acl.positive, 1);
	ck_assert_uint_eq(acl.entry[0].rights, 9);
	/* what comes after the counted lines is ignored */
	ck_assert_int_eq(parse("1\n0\nalice\t1\nnonsense", &acl), 0);
	ck_assert_int_eq(parse("1\n0\nalice\t1", &acl), 0);
}
END_TEST

START_TEST(bad_texts)
{
	static const char *const bad[] = {
		"",
		"\n",
		"1",
		"1\n",
		"1\n0",
		"1\n0\n",
		"-1\n0\n",
		"0\n-1\n",
		"2\n0\nalice\t1\n",
		"21\n0\n",
		"99999999999999999999\n0\n",
		"1\n0\nnobody\t1\n",
		"1\n0\nanonymous\t1\n",
		"1\n0\n32766\t1\n",
		"1\n0\n0\t1\n",
		"1\n0\n4294967295\t1\n",
		"1\n0\nalice\n",
		"1\n0\nalice\t\n",
		"1\n0\nalice\tx\n",
		"1\n0\nalice\t1x\n",
		"1\n0\n\t1\n",
		"1\n0\nalice\t99999999999\n",
		"1\n0\nalice\t-2147483649\n",
		"1 0\nalice\t1\n",
		"1\n0\n0123456789012345678901234567890123456789012345678901234567890123\t1\n",
	};
	struct store_acl acl;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(parse(bad[i], &acl) == -EINVAL, "%s", bad[i]);
	ck_assert_int_eq(fsd_acl_parse("", 0, &names, &acl), -EINVAL);
	/* no NUL at the end */
	ck_assert_int_eq(fsd_acl_parse("0\n0\n", 4, &names, &acl), -EINVAL);
	/* a NUL within */
	ck_assert_int_eq(fsd_acl_parse("1\n0\nalice\0\t1\n", 14, &names, &acl), -EINVAL);
}
END_TEST

START_TEST(limits)
{
	char text[FSD_ACL_TEXT_MAX + 200], out[FSD_ACL_TEXT_MAX];
	struct store_acl acl;
	int n = sprintf(text, "10\n10\n");

	for (int i = 1; i <= 20; i++)
		n += sprintf(text + n, "%d\t%d\n", 1000000000 + i, -1000000000);
	ck_assert_int_eq(parse(text, &acl), 0);
	ck_assert_uint_eq(acl.positive + acl.negative, 20);
	ck_assert_int_gt(fsd_acl_print(&acl, &names, out), 0);
	ck_assert_int_eq(parse("11\n10\n", &acl), -EINVAL);
	/* longer than a client may send */
	memset(text, 'x', sizeof(text));
	memcpy(text, "0\n0\n", 4);
	text[FSD_ACL_TEXT_MAX - 1] = text[FSD_ACL_TEXT_MAX] = 0;
	ck_assert_int_eq(fsd_acl_parse(text, FSD_ACL_TEXT_MAX, &names, &acl), 0);
	ck_assert_int_eq(fsd_acl_parse(text, FSD_ACL_TEXT_MAX + 1, &names, &acl), -EINVAL);
}
END_TEST

static bool long_name(void *arg, int32_t id, char name[FSD_PERSON_MAX + 1])
{
	(void)arg, (void)id;
	memset(name, 'n', FSD_PERSON_MAX);
	name[FSD_PERSON_MAX] = 0;
	return true;
}

START_TEST(text_too_long)
{
	const struct fsd_names many = {.name_of = long_name};
	struct store_acl acl = {0};
	char out[FSD_ACL_TEXT_MAX];

	for (int i = 0; i < 14; i++)
		ck_assert_int_eq(store_acl_add(&acl, false, 100 + i, 127), 0);
	ck_assert_int_eq(fsd_acl_print(&acl, &many, out), 6 + 14 * (63 + 5));
	for (int i = 14; i < 20; i++)
		ck_assert_int_eq(store_acl_add(&acl, false, 100 + i, 127), 0);
	ck_assert_int_eq(fsd_acl_print(&acl, &many, out), -E2BIG);
}
END_TEST

START_TEST(anonymous_writes)
{
	struct store_acl acl;

	ck_assert_int_eq(parse("1\n0\nsystem:anyuser\t9\n", &acl), 0);
	ck_assert(!fsd_acl_lets_anyone_write(&acl));
	for (unsigned right = 1; right <= 64; right *= 2) {
		char text[64];

		sprintf(text, "1\n0\nsystem:anyuser\t%u\n", right);
		ck_assert_int_eq(parse(text, &acl), 0);
		ck_assert(fsd_acl_lets_anyone_write(&acl) == (right != 1 && right != 8));
	}
	ck_assert_int_eq(parse("1\n1\nsystem:anyuser\t127\nsystem:anyuser\t118\n", &acl), 0);
	ck_assert(!fsd_acl_lets_anyone_write(&acl));
	ck_assert_int_eq(parse("2\n0\nsystem:authuser\t127\nalice\t127\n", &acl), 0);
	ck_assert(!fsd_acl_lets_anyone_write(&acl));
}
END_TEST

TEST_MAIN("acl", text_as_recorded, names_and_numbers, bad_texts, limits, text_too_long,
	  anonymous_writes)
