/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of --exclude, --include and --bwlimit: what rsync(1) says of its patterns. */
#include "tests/tools/testing.h"
#include "afscp/filter.h"
#include "afscp/pace.h"

START_TEST(patterns)
{
	static const struct {
		const char *pattern, *path;
		bool directory, excluded;
	} known[] = {
		{"*.o", "a.o", false, true},
		{"*.o", "dir/below/a.o", false, true},
		{"*.o", "a.oo", false, false},
		{"foo", "bar/foo", false, true},
		{"foo", "foo/bar", false, false},
		{"/foo", "foo", false, true},
		{"/foo", "bar/foo", false, false},
		{"foo/", "foo", false, false},
		{"foo/", "foo", true, true},
		{"foo/bar", "x/foo/bar", false, true},
		{"/foo/bar", "x/foo/bar", false, false},
		{"/foo/*", "foo/bar", false, true},
		{"/foo/*", "foo/bar/baz", false, false},
		{"/foo/**", "foo/bar/baz", false, true},
		{"/foo/**", "foo", true, false},
		{"foo/***", "foo", true, true},
		{"foo/***", "x/foo/a/b", false, true},
		{"foo/***", "foo", false, false},
		{"**/tmp", "a/b/tmp", false, true},
		{"a?c", "abc", false, true},
		{"a?c", "a/c", false, false},
		{"/a?c", "a/c", false, false},
		{"[a-c]x", "bx", false, true},
		{"[!a-c]x", "bx", false, false},
		{"[^a-c]x", "dx", false, true},
		{"[]x]", "]", false, true},
		{"[", "[", false, true},
		{"a\\*", "a*", false, true},
		{"a\\*", "ab", false, false},
		{"*", ".hidden", false, true},
		{"a*b*c", "aXbYbZc", false, true},
		{"a*b*c", "aXbYbZ", false, false},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct filters filters = {0};

		ck_assert_int_eq(filter_append(&filters, known[i].pattern, true), 0);
		ck_assert_msg(filter_excludes(&filters, known[i].path, known[i].directory) ==
				      known[i].excluded,
			      "%s, %s", known[i].pattern, known[i].path);
		filter_free(&filters);
	}
}
END_TEST

START_TEST(first_one_counts)
{
	struct filters filters = {0};

	ck_assert(!filter_excludes(&filters, "a", false));
	ck_assert_int_eq(filter_append(&filters, "*.c", false), 0);
	ck_assert_int_eq(filter_append(&filters, "*/", false), 0);
	ck_assert_int_eq(filter_append(&filters, "*", true), 0);
	ck_assert(!filter_excludes(&filters, "dir/a.c", false));
	ck_assert(!filter_excludes(&filters, "dir", true));
	ck_assert(filter_excludes(&filters, "dir/a.h", false));
	ck_assert_int_eq(filter_append(&filters, "", true), -1);
	ck_assert_int_eq(filter_append(&filters, "/", true), -1);
	filter_free(&filters);
}
END_TEST

START_TEST(rates)
{
	static const struct {
		const char *text;
		uint64_t rate;
	} known[] = {
		{"100", 102400},   {"0", 0},	  {"1.5m", 1572864},  {"2M", 2097152},
		{"1MiB", 1048576}, {"512B", 512}, {"1g", 1073741824}, {".5K", 512},
	};
	static const char *const wrong[] = {"",	     "fast",	"-1", "1x", "1kk",
					    "1e400", "0.0001B", " 1", "nan"};
	uint64_t rate;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		ck_assert_msg(pace_parse(known[i].text, &rate), "%s", known[i].text);
		ck_assert_msg(rate == known[i].rate, "%s", known[i].text);
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		ck_assert_msg(!pace_parse(wrong[i], &rate), "%s", wrong[i]);
}
END_TEST

TEST_MAIN("filter", patterns, first_one_counts, rates)
