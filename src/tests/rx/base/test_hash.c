/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of base/hash.c: SipHash against published values, the keyed order, random numbers. */

#include "testing.h"

/* Key 00..0f, input 00..n-1: values of the algorithm's authors for n = 0, 1, 7, 8, 15, 63. */
START_TEST(siphash_vectors)
{
	static const struct {
		size_t size;
		uint64_t hash;
	} cases[] = {
		{ 0, 0x726fdb47dd0e0e31ull },  { 1, 0x74f839c593dc67fdull },
		{ 7, 0xab0200f58b01d137ull },  { 8, 0x93f5f5799a932462ull },
		{ 15, 0xa129ca6149be45e5ull }, { 63, 0x958a324ceb064572ull },
	};
	const uint64_t key[2] = { 0x0706050403020100ull, 0x0f0e0d0c0b0a0908ull };
	uint8_t in[64];

	for (size_t i = 0; i < sizeof(in); i++)
		in[i] = (uint8_t)i;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		ck_assert_msg(rxw_siphash(in, cases[i].size, key) == cases[i].hash,
			      "size %zu: %llx", cases[i].size,
			      (unsigned long long)rxw_siphash(in, cases[i].size, key));
}
END_TEST

/*
 * Every bit of the input changes about half of the bits of the hash; sequential values spread over
 * a table.
 */
START_TEST(words_spread)
{
	uint64_t state = test_seed();
	unsigned slots[1024] = { 0 };
	const uint64_t key[2] = { rxw_prng(&state), rxw_prng(&state) };

	for (uint32_t cid = 0; cid < 10240; cid++)
		slots[rxw_hash_words(0x80000001u, cid << 2, key) % 1024]++;
	for (unsigned i = 0; i < 1024; i++)
		ck_assert_uint_lt(slots[i], 60); /* 10 expected */
	for (unsigned bit = 0; bit < 128; bit++) {
		unsigned changed = 0;

		for (int i = 0; i < 64; i++) {
			uint64_t a = rxw_prng(&state), b = rxw_prng(&state);
			uint64_t a2 = bit < 64 ? a ^ 1ull << bit : a,
				 b2 = bit < 64 ? b : b ^ 1ull << (bit - 64);
			uint64_t x = rxw_hash_words(a, b, key) ^ rxw_hash_words(a2, b2, key);

			changed += (unsigned)__builtin_popcountll(x);
		}
		ck_assert_uint_gt(changed, 0);
	}
}
END_TEST

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* In so many random draws some 32 would be repeated. */
START_TEST(random_numbers_do_not_repeat)
{
	enum { N = 1 << 18 };
	uint64_t state = test_seed();
	const uint64_t key[2] = { rxw_prng(&state), rxw_prng(&state) };
	const uint64_t other[2] = { key[0], key[1] ^ 1 };
	uint32_t *v = malloc(N * sizeof(*v));
	uint32_t first = (uint32_t)rxw_prng(&state) & 0x3fffffff;
	unsigned near = 0, same = 0, low = 0, large = 0, twins = 0;

	ck_assert_ptr_nonnull(v);
	for (uint32_t i = 0; i < N; i++) {
		v[i] = rxw_shuffle30((first + i) & 0x3fffffff, key);
		large += v[i] > 0x3fffffff;
		near += i > 0 && v[i] - v[i - 1] + 1024 < 2048; /* half of one by chance */
		low += v[i] < 1u << 29;
	}
	ck_assert_uint_eq(large, 0);
	ck_assert_uint_lt(near, 30);
	ck_assert_uint_gt(low, N / 2 - 10 * 256); /* ten standard deviations */
	ck_assert_uint_lt(low, N / 2 + 10 * 256);
	for (uint32_t i = 0; i < 1024; i++)
		same += v[i] == rxw_shuffle30((first + i) & 0x3fffffff, other);
	ck_assert_uint_lt(same, 3);
	qsort(v, N, sizeof(*v), by_value);
	for (uint32_t i = 1; i < N; i++)
		twins += v[i] == v[i - 1];
	ck_assert_uint_eq(twins, 0);
	free(v);
}
END_TEST

START_TEST(kernel_random)
{
	uint8_t a[4096], b[4096];
	unsigned ones = 0;

	memset(a, 0, sizeof(a));
	memset(b, 0, sizeof(b));
	ck_assert_int_eq(rxw_random(a, sizeof(a)), 0);
	ck_assert_int_eq(rxw_random(b, sizeof(b)), 0);
	ck_assert_int_ne(memcmp(a, b, sizeof(a)), 0);
	for (size_t i = 0; i < sizeof(a); i++)
		ones += (unsigned)__builtin_popcount(a[i]);
	ck_assert_uint_gt(ones, 4096 * 4 - 1000); /* ten standard deviations */
	ck_assert_uint_lt(ones, 4096 * 4 + 1000);
	a[0] = 7;
	ck_assert_int_eq(rxw_random(a, 0), 0);
	ck_assert_uint_eq(a[0], 7);
}
END_TEST

START_TEST(prng_repeats)
{
	uint64_t a = 42, b = 42, c = 43;
	unsigned same = 0, ones = 0;

	for (int i = 0; i < 10000; i++) {
		uint64_t x = rxw_prng(&a);

		ck_assert_uint_eq(x, rxw_prng(&b));
		same += x == rxw_prng(&c);
		ones += (unsigned)__builtin_popcountll(x);
	}
	ck_assert_uint_eq(same, 0);
	ck_assert_uint_gt(ones, 316000);
	ck_assert_uint_lt(ones, 324000);
}
END_TEST

TEST_MAIN("hash", siphash_vectors, words_spread, random_numbers_do_not_repeat, kernel_random,
	  prng_repeats)
