/* SPDX-License-Identifier: BSD-2-Clause */
/* Failing allocations in the code generators, each in turn; and reproducible output. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rxwgen/xg.h"
#include "tests/asserts.h"
#include "tests/main.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
char *__real_strdup(const char *text);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
char *__wrap_strdup(const char *text);

static long used;      /* allocations so far */
static long left = -1; /* allocations before failure; -1: none fails */
static long needed;

static bool fails(void)
{
	used++;
	if (left > 0)
		left--;
	else if (!left)
		return true;
	return false;
}

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
	return fails() ? NULL : __real_realloc(old, size);
}

char *__wrap_strdup(const char *text)
{
	return fails() ? NULL : __real_strdup(text);
}

/*
 * Generate one output with `allocations` successful allocations. Stores their number in `needed`:
 * the test framework allocates memory, too, and changes `used`.
 */
static bool write_one(const struct xg_file *file, const struct xg_options *options,
		      long allocations, char **text, size_t *length)
{
	bool good;

	used = 0;
	left = allocations;
	good = xg_write(file, options, text, length);
	left = -1;
	needed = used;
	return good;
}

static void starve(const char *name, bool short_fields)
{
	const struct xg_options options = {.prefix = "",
					   .request_max = 4096,
					   .short_fields = short_fields,
					   .statistics = true};
	char path[512];

	snprintf(path, sizeof(path), "%s/rxwgen/golden/%s.xg", RXW_TEST_SRCDIR, name);
	for (int output = 0; output < XG_OUTPUTS; output++) {
		struct xg_file *file = xg_read(path, &options, (enum xg_output)output);
		char *whole, *text;
		size_t length, n;
		long all;

		ck_assert_ptr_nonnull(file);
		ck_assert(write_one(file, &options, -1, &whole, &length));
		all = needed;
		ck_assert_uint_eq(length, strlen(whole));
		for (long i = 0; i < all; i += 1 + all / 150) {
			ck_assert_msg(!write_one(file, &options, i, &text, &n),
				      "%s output %d succeeds with %ld of %ld allocations", name,
				      output, i, all);
			ck_assert_ptr_null(text);
			ck_assert_uint_eq(n, 0);
		}
		ck_assert(write_one(file, &options, all, &text, &n));
		ck_assert_uint_eq(n, length);
		ck_assert_mem_eq(text, whole, length);
		free(text);
		free(whole);
		xg_file_free(file);
	}
}

START_TEST(no_memory_for_types)
{
	starve("values", false);
}
END_TEST

START_TEST(no_memory_for_calls)
{
	starve("calls", true);
}
END_TEST

TEST_MAIN_WITHIN(120, "write", no_memory_for_types, no_memory_for_calls)
