/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory for keys: zeroed, aligned, wiped, in no core dump; many threads. */

#include "tests/rx/base/testing.h"

#include "keys/secret.h"

#include <pthread.h>
#include <stdbool.h>

static bool all(const uint8_t *p, size_t size, uint8_t value)
{
	for (size_t i = 0; i < size; i++) {
		if (p[i] != value)
			return false;
	}
	return true;
}

/* Whether the mapping that holds the address has the flag, as the kernel says; -1: it does not say. */
static int has_flag(const void *address, const char *flag)
{
	FILE *smaps = fopen("/proc/self/smaps", "r");
	unsigned long at = (unsigned long)address, from, to;
	bool inside = false;
	int result = -1;
	char line[512];

	if (!smaps)
		return -1;
	while (fgets(line, sizeof(line), smaps)) {
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			inside = from <= at && at < to;
		else if (inside && strncmp(line, "VmFlags:", 8) == 0)
			result = strstr(line, flag) != NULL;
	}
	fclose(smaps);
	return result;
}

START_TEST(zeroed_and_aligned)
{
	static const size_t sizes[] = { 0, 1, 63, 64, 65, 128, 1000, 4095, 4096, 4097, 65536, 1 << 20 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint8_t *p = rxw_secret_pool_alloc(sizes[i]);

		ck_assert_ptr_nonnull(p);
		ck_assert_uint_eq((uintptr_t)p % 64, 0);
		ck_assert(all(p, sizes[i], 0));
		memset(p, 0xa5, sizes[i]);
		ck_assert_int_ne(has_flag(p, " dd"), 0);
		rxw_secret_pool_free(p);
	}
	ck_assert_ptr_null(rxw_secret_pool_alloc(SIZE_MAX));
	ck_assert_ptr_null(rxw_secret_alloc(SIZE_MAX));
	rxw_secret_free(NULL);
}
END_TEST

/* A piece that another keeps in its slab can be looked at after it was freed. */
START_TEST(wiped)
{
	uint8_t *keep = rxw_secret_pool_alloc(200), *p = rxw_secret_pool_alloc(200);

	memset(p, 0x5a, 200);
	rxw_secret_pool_free(p);
	/* The link of the list of free pieces lies in front. */
	ck_assert(all(p + sizeof(void *), 256 - sizeof(void *), 0));
	rxw_secret_pool_free(keep);
}
END_TEST

/* More pieces than a slab has, all different, freed in another order; the next ones are zero again. */
START_TEST(many)
{
	enum { COUNT = 3000 };
	static uint8_t *pieces[COUNT];

	for (int round = 0; round < 3; round++) {
		for (size_t i = 0; i < COUNT; i++) {
			pieces[i] = rxw_secret_pool_alloc(100);
			ck_assert_ptr_nonnull(pieces[i]);
			ck_assert(all(pieces[i], 100, 0));
			memset(pieces[i], (int)(i % 251) + 1, 128);
		}
		for (size_t i = 0; i < COUNT; i++) {
			size_t n = (i * 7) % COUNT;

			ck_assert(all(pieces[n], 128, (uint8_t)(n % 251 + 1)));
			rxw_secret_pool_free(pieces[n]);
		}
	}
}
END_TEST

static void *churn(void *context)
{
	uint64_t state = *(uint64_t *)context;
	uint8_t *held[32] = { NULL };
	size_t sizes[32] = { 0 };

	for (int i = 0; i < 20000; i++) {
		size_t n = test_below(&state, 32);

		if (!all(held[n], sizes[n], (uint8_t)(n + sizes[n])))
			return "another thread's bytes";
		if (held[n])
			rxw_secret_pool_free(held[n]);
		sizes[n] = 1 + test_below(&state, 600);
		held[n] = rxw_secret_pool_alloc(sizes[n]);
		if (!held[n])
			return "no memory";
		memset(held[n], (int)(uint8_t)(n + sizes[n]), sizes[n]);
	}
	for (size_t n = 0; n < 32; n++) {
		if (held[n])
			rxw_secret_pool_free(held[n]);
	}
	return NULL;
}

START_TEST(threads)
{
	uint64_t seeds[4], seed = test_seed();
	pthread_t thread[4];
	void *wrong;

	for (int i = 0; i < 4; i++) {
		seeds[i] = seed + (uint64_t)i;
		ck_assert_int_eq(pthread_create(&thread[i], NULL, churn, &seeds[i]), 0);
	}
	for (int i = 0; i < 4; i++) {
		pthread_join(thread[i], &wrong);
		ck_assert_msg(!wrong, "%s", (char *)wrong);
	}
}
END_TEST

/* The two that everybody calls, under whatever watches them. */
START_TEST(plain)
{
	uint8_t *p = rxw_secret_alloc(33);

	ck_assert_ptr_nonnull(p);
	ck_assert_uint_eq((uintptr_t)p % 64, 0);
	ck_assert(all(p, 33, 0));
	memset(p, 1, 33);
	rxw_secret_free(p);
}
END_TEST

TEST_MAIN("secret", zeroed_and_aligned, wiped, many, threads, plain)
