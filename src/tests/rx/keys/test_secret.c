/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory for keys: zeroed, aligned and wiped; mappings are excluded from core dumps. */

#include "tests/rx/base/testing.h"

#include "keys/keys.h"

#include <stdbool.h>

static bool all(const uint8_t *p, size_t size, uint8_t value)
{
	for (size_t i = 0; i < size; i++) {
		if (p[i] != value)
			return false;
	}
	return true;
}

/*
 * Whether the mapping that contains the address has the flag, according to the kernel; -1: unknown.
 */
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
	static const size_t sizes[] = {0,    1,	   63,	 64,   65,    128,
				       1000, 4095, 4096, 4097, 65536, 1 << 20};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint8_t *p = rxw_secret_alloc(sizes[i]);

		ck_assert_ptr_nonnull(p);
		ck_assert_uint_eq((uintptr_t)p % 64, 0);
		ck_assert(all(p, sizes[i], 0));
		memset(p, 0xa5, sizes[i]);
		rxw_secret_free(p);
	}
	ck_assert_ptr_null(rxw_secret_alloc(SIZE_MAX));
	rxw_secret_free(NULL);
}
END_TEST

/* Records the last wipe: this replaces the C library's function. */
static const void *wiped_at;
static size_t wiped_size;

void explicit_bzero(void *memory, size_t size)
{
	volatile uint8_t *p = memory;

	for (size_t i = 0; i < size; i++)
		p[i] = 0;
	wiped_at = memory;
	wiped_size = size;
}

/* Its name under FORTIFY. */
void __explicit_bzero_chk(void *memory, size_t size, size_t room);
void __explicit_bzero_chk(void *memory, size_t size, size_t room)
{
	(void)room;
	explicit_bzero(memory, size);
}

START_TEST(wiped)
{
	const void *p = rxw_secret_alloc(200);

	rxw_secret_free((void *)(uintptr_t)p);
	ck_assert_ptr_eq(wiped_at, p);
	ck_assert_uint_ge(wiped_size, 200);
	p = rxw_secret_map(5000);
	rxw_secret_unmap((void *)(uintptr_t)p, 5000);
	ck_assert_ptr_eq(wiped_at, p);
	ck_assert_uint_eq(wiped_size, 5000);
}
END_TEST

START_TEST(mapped)
{
	static const size_t sizes[] = { 1, 4095, 4096, 4097, 1 << 20 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint8_t *p = rxw_secret_map(sizes[i]);

		ck_assert_ptr_nonnull(p);
		ck_assert(all(p, sizes[i], 0));
		memset(p, 0xa5, sizes[i]);
		ck_assert_int_ne(has_flag(p, " dd"), 0);
		rxw_secret_unmap(p, sizes[i]);
	}
	ck_assert_ptr_null(rxw_secret_map(0));
	ck_assert_ptr_null(rxw_secret_map(SIZE_MAX));
	rxw_secret_unmap(NULL, 1);
}
END_TEST

TEST_MAIN("secret", zeroed_and_aligned, wiped, mapped)
