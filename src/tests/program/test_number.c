/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of common/number.c: accepted and refused forms of numbers. */

#include "tests/tools/testing.h"

#include "program/number.h"

START_TEST(whole)
{
	uint64_t v = 7;

	ck_assert_int_eq(tools_parse_uint("0", &v), 0);
	ck_assert_uint_eq(v, 0);
	ck_assert_int_eq(tools_parse_uint("18446744073709551615", &v), 0);
	ck_assert(v == UINT64_MAX);
	v = 7;
	ck_assert_int_eq(tools_parse_uint("18446744073709551616", &v), -1);
	ck_assert_int_eq(tools_parse_uint("", &v), -1);
	ck_assert_int_eq(tools_parse_uint("-1", &v), -1);
	ck_assert_int_eq(tools_parse_uint("+1", &v), -1);
	ck_assert_int_eq(tools_parse_uint(" 1", &v), -1);
	ck_assert_int_eq(tools_parse_uint("1 ", &v), -1);
	ck_assert_int_eq(tools_parse_uint("0x10", &v), -1);
	ck_assert_uint_eq(v, 7);
}
END_TEST

START_TEST(size)
{
	static const struct {
		const char *text;
		uint64_t value;
	} good[] = { { "0", 0 }, { "1000", 1000 }, { "1K", 1024 }, { "64k", 65536 },
		     { "1M", 1 << 20 }, { "2G", 2ull << 30 }, { "3T", 3ull << 40 },
		     { "16777215T", 16777215ull << 40 } };
	static const char *const bad[] = { "", "K", "1KB", "1Ki", "1.5K", "1P", "-1K", "1 K",
					   "16777216T", "99999999999999999999" };
	uint64_t v;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		v = 1;
		ck_assert_int_eq(tools_parse_size(good[i].text, &v), 0);
		ck_assert_msg(v == good[i].value, "%s", good[i].text);
	}
	v = 7;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(tools_parse_size(bad[i], &v) == -1, "%s", bad[i]);
	ck_assert_uint_eq(v, 7);
}
END_TEST

START_TEST(duration)
{
	static const struct {
		const char *text;
		uint64_t ms;
	} good[] = {{"0", 0},	       {"1", 1000},	 {"1.5", 1500},
		    {"0.25s", 250},    {"250ms", 250},	 {"2m", 120000},
		    {"1.5h", 5400000}, {"0.0000019", 0}, {"0.001999999", 1}};
	static const char *const bad[] = { "", "s", "1.", ".5", "1d", "1 s", "-1", "1.5.5", "1e3",
					   "18446744073709551615h" };
	uint64_t v;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		v = 99;
		ck_assert_int_eq(tools_parse_duration(good[i].text, &v), 0);
		ck_assert_msg(v == good[i].ms, "%s: %llu", good[i].text, (unsigned long long)v);
	}
	v = 7;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(tools_parse_duration(bad[i], &v) == -1, "%s", bad[i]);
	ck_assert_uint_eq(v, 7);
}
END_TEST

START_TEST(formats)
{
	char t[32];
	uint64_t v;

	ck_assert_str_eq(tools_format_size(t, sizeof(t), 0), "0 bytes");
	ck_assert_str_eq(tools_format_size(t, sizeof(t), 1023), "1023 bytes");
	ck_assert_str_eq(tools_format_size(t, sizeof(t), 1536), "1.5 KiB");
	ck_assert_str_eq(tools_format_size(t, sizeof(t), 1ull << 30), "1.0 GiB");
	ck_assert_str_eq(tools_format_size(t, sizeof(t), UINT64_MAX), "16.0 EiB");
	ck_assert_str_eq(tools_format_time(t, sizeof(t), 1500), "1.5 us");
	ck_assert_str_eq(tools_format_time(t, sizeof(t), 2500000), "2.5 ms");
	ck_assert_str_eq(tools_format_time(t, sizeof(t), 3000000000), "3 s");
	/* The output can be read back. */
	for (uint64_t n = 1; n < (uint64_t)1 << 60; n = n * 5 + 3) {
		ck_assert_int_eq(tools_parse_size(tools_format_exact(t, sizeof(t), n << 2), &v), 0);
		ck_assert(v == n << 2);
	}
	ck_assert_str_eq(tools_format_exact(t, sizeof(t), 524288), "512K");
}
END_TEST

TEST_MAIN("number", whole, size, duration, formats)
