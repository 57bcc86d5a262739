/* SPDX-License-Identifier: BSD-2-Clause */
/* Access rules, and the defaults of a server without them. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fileserver/guard/guard.h"
#include "fileserver/base/base.h"
#include "tests/asserts.h"

static char message[FSD_MESSAGE_MAX];

static struct fsd_guard *open_with(const char *const *allow, size_t count)
{
	const struct fsd_guard_options options = {
		.allow = allow, .allow_count = count, .listen = "127.0.0.1"};
	struct fsd_guard *guard;

	ck_assert_msg(fsd_guard_open(&options, &guard, message) == 0, "%s", message);
	return guard;
}

START_TEST(patterns)
{
	enum {
		NONE = FSD_SIGHT_NONE,
		WAY = FSD_SIGHT_WAY,
		ALL = FSD_SIGHT_ALL
	};
	static const char *const allow[] = {"anonymous /pub  doc/*.txt", "a@R /home/a/ x/y/z",
					    "  any-authenticated\tteam"};
	static const struct {
		const char *path;
		int anonymous, a, b;
	} cases[] = {
		/* The path to it, the named object, the objects below. */
		{"", WAY, WAY, WAY},
		{"pub", ALL, ALL, ALL},
		{"pub/x/y", ALL, ALL, ALL},
		{"publish", NONE, NONE, NONE},
		{"doc", WAY, WAY, WAY},
		{"doc/a.txt", ALL, ALL, ALL},
		{"doc/a.txt/b", ALL, ALL, ALL},
		{"doc/a.c", NONE, NONE, NONE},
		{"home", NONE, WAY, NONE},
		{"home/a", NONE, ALL, NONE},
		{"home/a/b", NONE, ALL, NONE},
		{"home/b", NONE, NONE, NONE},
		{"x", NONE, WAY, NONE},
		{"x/y", NONE, WAY, NONE},
		{"x/z", NONE, NONE, NONE},
		{"x/y/z/q", NONE, ALL, NONE},
		{"team", NONE, ALL, ALL},
		{"team/plan", NONE, ALL, ALL},
		{"other", NONE, NONE, NONE},
	};
	const struct fsd_who nobody = {0}, a = {.authenticated = true, .name = "a@R"},
			     b = {.authenticated = true, .name = "b@R"},
			     admin = {.administrator = true};
	struct fsd_guard *guard = open_with(allow, 3);

	ck_assert(fsd_guard_asks(guard));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ck_assert_msg((int)fsd_guard_may(guard, &nobody, cases[i].path) ==
				      cases[i].anonymous,
			      "anonymous %s", cases[i].path);
		ck_assert_msg((int)fsd_guard_may(guard, &a, cases[i].path) == cases[i].a, "a %s",
			      cases[i].path);
		ck_assert_msg((int)fsd_guard_may(guard, &b, cases[i].path) == cases[i].b, "b %s",
			      cases[i].path);
		ck_assert(fsd_guard_may(guard, &admin, cases[i].path));
	}
	fsd_guard_close(guard);
}
END_TEST

/*
 * No file has a name of 300 bytes. A pattern with such a name matches nothing, rather than
 * everything.
 */
START_TEST(long_names)
{
	char rule[400] = "anonymous /", path[310];
	const char *allow[] = {rule};
	const struct fsd_who nobody = {0};
	struct fsd_guard *guard;

	memset(rule + 11, '*', 300);
	memset(path, 'x', 300);
	path[300] = '\0';
	guard = open_with(allow, 1);
	ck_assert(!fsd_guard_may(guard, &nobody, "x"));
	ck_assert(!fsd_guard_may(guard, &nobody, path));
	fsd_guard_close(guard);
	strcpy(rule, "anonymous /*");
	guard = open_with(allow, 1);
	ck_assert(fsd_guard_may(guard, &nobody, "x"));
	ck_assert(!fsd_guard_may(guard, &nobody, path));
	fsd_guard_close(guard);
}
END_TEST

START_TEST(without_rules)
{
	const struct fsd_who nobody = {0};
	struct fsd_guard *guard = open_with(NULL, 0);
	rxw_security *const *classes;
	size_t count;

	ck_assert(!fsd_guard_asks(guard));
	ck_assert(!fsd_guard_asks(NULL));
	ck_assert(fsd_guard_may(guard, &nobody, "any/thing"));
	for (int i = 0; i < FSD_SERVICES; i++) {
		classes = fsd_guard_classes(guard, (enum fsd_service_kind)i, &count);
		/*
		 * Classes that need a ticket are offered too, so that their clients learn that the
		 * server has no keys.
		 */
		ck_assert_uint_eq(count, 3);
		ck_assert_ptr_eq(classes[0], rxw_security_null());
	}
	fsd_guard_close(guard);
	fsd_guard_close(NULL);
}
END_TEST

/* Access from other machines requires a setting. */
START_TEST(beyond_loopback)
{
	static const char *const none[] = {"none"}, *const auth[] = {"vl:auth"},
				 *const strange[] = {"fs:much"},
				 *const unknown_service[] = {"db:none"},
				 *const anonymous[] = {"anonymous /"},
				 *const alice[] = {"alice@R /"};
	struct fsd_guard_options o = {.listen = "0.0.0.0"};
	struct fsd_guard *guard;

	ck_assert_int_lt(fsd_guard_open(&o, &guard, message), 0);
	ck_assert_ptr_null(guard);
	o.require = none;
	o.require_count = 1;
	ck_assert_int_eq(fsd_guard_open(&o, &guard, message), 0);
	fsd_guard_close(guard);
	o.require = auth;
	ck_assert_int_lt(fsd_guard_open(&o, &guard, message), 0);
	o.require = strange;
	ck_assert_int_lt(fsd_guard_open(&o, &guard, message), 0);
	o.require = unknown_service;
	ck_assert_int_lt(fsd_guard_open(&o, &guard, message), 0);
	o.require_count = 0;
	o.allow = anonymous;
	o.allow_count = 1;
	ck_assert_int_eq(fsd_guard_open(&o, &guard, message), 0);
	fsd_guard_close(guard);
	o.allow = alice;
	ck_assert_int_lt(fsd_guard_open(&o, &guard, message), 0);
	o.listen = "::1";
	ck_assert_int_eq(fsd_guard_open(&o, &guard, message), 0);
	fsd_guard_close(guard);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("guard");
	TCase *tcase = tcase_create("guard");
	SRunner *runner;
	int failed;

	fsd_log_start();
	tcase_add_test(tcase, patterns);
	tcase_add_test(tcase, long_names);
	tcase_add_test(tcase, without_rules);
	tcase_add_test(tcase, beyond_loopback);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
