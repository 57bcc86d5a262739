/* SPDX-License-Identifier: BSD-2-Clause */
/* The bed of the tests of store/data_*.c: a data layer that records what it does, and one file. */
#ifndef TESTS_STORE_DATA_FIXTURE_H
#define TESTS_STORE_DATA_FIXTURE_H

#include "tests/tools/testing.h"

#include <stdatomic.h>

#include "tests/volume/store/spy.h"
#include "volume/store/data/data_private.h"

static const struct store_owner owner = {0x20000001, 0x1234, 0xab};
static struct spy *spy;
static struct store_data *data;
static atomic_uint_least64_t numbers;

static void setup(unsigned files)
{
	spy = spy_new();
	atomic_store(&numbers, 0);
	ck_assert_int_eq(store_data_open(&spy->layer, files, &data), 0);
	spy_reset(spy);
}

static void teardown(void)
{
	store_data_close(data);
	spy_free(spy);
}

static uint64_t next_number(void *arg)
{
	(void)arg;
	return atomic_fetch_add(&numbers, 1) + 1;
}

/* The offset behind the last byte of a content. */
static uint64_t end_of(const struct store_content *content)
{
	const struct store_slot *last =
		content->count ? store_content_slot(content, content->count - 1) : NULL;

	return last ? (uint64_t)(content->count - 1) * STORE_SLOT +
			       (uint64_t)(last->count - 1) * STORE_BLOCK +
			       last->block[last->count - 1].filled
		    : 0;
}

static struct store_base base_of(const struct store_content *content)
{
	return (struct store_base){.content = content, .kept = end_of(content)};
}

static struct store_run *begin(const struct store_content *content, uint64_t offset)
{
	const struct store_base base = base_of(content);
	struct store_run *run;

	ck_assert_int_eq(store_run_begin(data, &owner, &base, offset, next_number, NULL, &run), 0);
	return run;
}

static int finish(struct store_run *run, const struct store_content *content,
		  struct store_patch *patch)
{
	const struct store_base base = base_of(content);

	return store_run_finish(run, &base, patch);
}

/*
 * Apply what a run wrote to a content, as a commit does. A run that does not fit is given up, and another one goes on in its
 * place, which is returned.
 */
static struct store_run *apply(struct store_run *run, uint64_t offset,
			       struct store_content *content)
{
	const struct store_base base = base_of(content);
	struct store_patch patch;

	ck_assert_int_eq(finish(run, content, &patch), 0);
	while (patch.count && !store_run_fits(run, &base)) {
		struct store_run *next = begin(content, offset);

		ck_assert_int_eq(store_run_copy(run, next), 0);
		store_run_end(run, false);
		run = next;
		ck_assert_int_eq(finish(run, content, &patch), 0);
	}
	ck_assert_int_eq(store_content_apply(content, UINT64_MAX, &patch), 0);
	return run;
}

static void put(struct store_run *run, const void *bytes, size_t length)
{
	struct iovec iov = {(void *)(uintptr_t)bytes, length};

	ck_assert_int_eq(store_run_write(run, &iov, 1), 0);
}

#endif
