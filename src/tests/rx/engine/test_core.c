/* SPDX-License-Identifier: BSD-2-Clause */
/* Connection identifiers, and the clock. */
#include <stdlib.h>
#include <time.h>

#include "engine/core/engine.h"
#include "engine/core/sys.h"
#include "tests/main.h"

static int by_name(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/*
 * A server keeps a connection long after the client released it. If a new connection reused its
 * identifier, the server would answer the first packets as those of an old call.
 */
START_TEST(no_name_comes_twice)
{
	enum { N = 200000 }; /* with random ids, 18 collisions would be expected */
	uint64_t *name = malloc(N * sizeof(*name));
	uint32_t epoch, cid, before;
	struct rxw_engine *e;

	ck_assert_ptr_nonnull(name);
	ck_assert_int_eq(rxw_engine_create(NULL, &e), 0);
	for (int i = 0; i < N; i++) {
		if (rxw_engine_name(e, &epoch, &cid) || !cid || cid & 3)
			ck_abort_msg("the %d-th name is %08x %08x", i, epoch, cid);
		name[i] = (uint64_t)epoch << 32 | cid;
	}
	qsort(name, N, sizeof(*name), by_name);
	for (int i = 1; i < N; i++)
		if (name[i] == name[i - 1])
			ck_abort_msg("%08x comes twice", (uint32_t)name[i]);
	/* An exhausted epoch is replaced (1.6). */
	before = epoch;
	e->named = RXW_NAMES_MAX - 1;
	ck_assert_int_eq(rxw_engine_name(e, &epoch, &cid), 0);
	ck_assert_uint_eq(epoch, before);
	ck_assert_int_eq(rxw_engine_name(e, &epoch, &cid), 0);
	ck_assert_uint_ne(epoch, before);
	ck_assert_uint_eq(epoch >> 30, 2);
	ck_assert_int_eq(rxw_engine_name(e, &before, &cid), 0);
	ck_assert_uint_eq(epoch, before);
	ck_assert_int_eq(rxw_engine_destroy(e), 0);
	free(name);
}
END_TEST

/* The monotonic clock: changes of the system time end no call. */
START_TEST(times_are_monotonic)
{
	struct timespec t;
	uint64_t before, now;

	clock_gettime(CLOCK_MONOTONIC, &t);
	before = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
	now = rxw_now();
	clock_gettime(CLOCK_MONOTONIC, &t);
	ck_assert_uint_ge(now, before);
	ck_assert_uint_le(now, (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec);
}
END_TEST

TEST_MAIN("core of the engine", no_name_comes_twice, times_are_monotonic)
