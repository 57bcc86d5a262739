/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of mixed loads: their description, and that drawing follows it. */
#include "tests/tools/testing.h"
#include "afscp/mix.h"

START_TEST(shares)
{
	static const char *const bad[] = {
		"",	   "read",	     "read=",	"read=x",
		"=5",	   "jump=5",	     "read=5,", ",read=5",
		"read=0",  "read=5,,stat=1", "read=-1", "rea=5",
		"reads=5", "read=1000001",   "read=1 ", "read=11111111111111111111111",
	};
	struct mix_spec spec;

	ck_assert_int_eq(mix_parse_shares("read=70,write=20,stat=5,create=3,remove=2", &spec), 0);
	ck_assert_uint_eq(spec.share[MIX_READ], 70);
	ck_assert_uint_eq(spec.share[MIX_REMOVE], 2);
	ck_assert_int_eq(mix_parse_shares("stat=1", &spec), 0);
	ck_assert_uint_eq(spec.share[MIX_READ], 0);
	ck_assert_uint_eq(spec.share[MIX_STAT], 1);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(mix_parse_shares(bad[i], &spec) == -1, "\"%s\" was accepted", bad[i]);
}
END_TEST

START_TEST(sizes)
{
	static const char *const bad[] = {"",
					  "-",
					  "4K-",
					  "-4K",
					  "8K-4K",
					  "1G",
					  "x",
					  "1-2-3",
					  "0-257M",
					  "4K-1M ",
					  "111111111111111111111111111-2"};
	struct mix_spec spec;

	ck_assert_int_eq(mix_parse_size("4K", &spec), 0);
	ck_assert_uint_eq(spec.least, 4096);
	ck_assert_uint_eq(spec.most, 4096);
	ck_assert_int_eq(mix_parse_size("0-256M", &spec), 0);
	ck_assert_uint_eq(spec.least, 0);
	ck_assert_uint_eq(spec.most, MIX_SIZE_MAX);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(mix_parse_size(bad[i], &spec) == -1, "\"%s\" was accepted", bad[i]);
}
END_TEST

START_TEST(draws)
{
	struct mix_spec spec = {.least = 10, .most = 12};
	unsigned count[MIX_OPS] = {0}, length[3] = {0};
	uint64_t state = 1;

	ck_assert_int_eq(mix_parse_shares("read=700000,write=250000,remove=50000", &spec), 0);
	for (int i = 0; i < 100000; i++) {
		uint64_t size = mix_size(&spec, mix_random(&state));

		count[mix_choose(&spec, mix_random(&state))]++;
		ck_assert(size >= 10 && size <= 12);
		length[size - 10]++;
	}
	/* Six standard deviations or more. */
	ck_assert_uint_eq(count[MIX_STAT] + count[MIX_CREATE], 0);
	ck_assert(count[MIX_READ] > 69000 && count[MIX_READ] < 71000);
	ck_assert(count[MIX_WRITE] > 24000 && count[MIX_WRITE] < 26000);
	ck_assert(count[MIX_REMOVE] > 4500 && count[MIX_REMOVE] < 5500);
	for (int i = 0; i < 3; i++)
		ck_assert(length[i] > 32300 && length[i] < 34300);
	/* The ends of the range. */
	ck_assert_int_eq(mix_choose(&spec, 0), MIX_READ);
	ck_assert_int_eq(mix_choose(&spec, UINT64_MAX), MIX_REMOVE);
	ck_assert_uint_eq(mix_size(&spec, 0), 10);
	ck_assert_uint_eq(mix_size(&spec, UINT64_MAX), 12);
}
END_TEST

TEST_MAIN("mixspec", shares, sizes, draws)
