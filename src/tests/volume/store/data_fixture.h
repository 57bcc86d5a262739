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

static struct store_run *begin(const struct store_content *content, uint64_t offset)
{
	struct store_run *run;

	ck_assert_int_eq(store_run_begin(data, &owner, content, offset, next_number, NULL, &run),
			 0);
	return run;
}

static void put(struct store_run *run, const void *bytes, size_t length)
{
	struct iovec iov = {(void *)(uintptr_t)bytes, length};

	ck_assert_int_eq(store_run_write(run, &iov, 1), 0);
}

#endif
