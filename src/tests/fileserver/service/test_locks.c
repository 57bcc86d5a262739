/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of locks.c: readers, writers, a removed volume, expiry, a full table. */
#include <errno.h>

#include "fileserver/service/locks.h"
#include "tests/main.h"
#include "tests/tools/testing.h"

static const struct store_fid a = {1, 2, 3}, b = {1, 4, 5}, other = {2, 2, 3};

static const struct fsd_share_key one = {{1}}, two = {{2}};

START_TEST(readers_and_writers)
{
	struct fsd_locks *locks = fsd_locks_create(10);

	ck_assert_ptr_nonnull(locks);
	ck_assert_int_eq(fsd_lock_count(locks, &a, 100), 0);
	ck_assert_int_eq(fsd_lock_set(locks, &a, &one, false, 100), 0);
	ck_assert_int_eq(fsd_lock_set(locks, &a, &one, false, 100), 0);
	ck_assert_int_eq(fsd_lock_count(locks, &a, 100), 2);
	ck_assert_int_eq(fsd_lock_set(locks, &a, &one, true, 100), -EAGAIN);
	ck_assert_int_eq(fsd_lock_set(locks, &other, &one, true, 100), 0);
	ck_assert_int_eq(fsd_lock_count(locks, &other, 100), -1);
	ck_assert(!fsd_lock_release(locks, &a, 100));
	ck_assert(fsd_lock_release(locks, &a, 100));
	ck_assert(!fsd_lock_release(locks, &a, 100)); /* nothing is locked */
	ck_assert_int_eq(fsd_lock_set(locks, &a, &one, true, 100), 0);
	ck_assert_int_eq(fsd_lock_set(locks, &a, &one, true, 100), -EAGAIN);
	ck_assert_int_eq(fsd_lock_set(locks, &a, &one, false, 100), -EAGAIN);
	ck_assert(fsd_lock_release(locks, &a, 100));
	fsd_lock_forget(locks, &other);
	ck_assert_uint_eq(fsd_locks_held(locks), 0);
	fsd_locks_destroy(locks);
}
END_TEST

START_TEST(removed_volume)
{
	struct fsd_locks *locks = fsd_locks_create(10);

	ck_assert_int_eq(fsd_lock_set(locks, &a, &one, false, 100), 0);
	ck_assert_int_eq(fsd_lock_set(locks, &b, &one, true, 100), 0);
	ck_assert_int_eq(fsd_lock_set(locks, &other, &one, true, 100), 0);
	fsd_lock_forget_volume(locks, 1);
	ck_assert_int_eq(fsd_lock_count(locks, &a, 100), 0);
	ck_assert_int_eq(fsd_lock_count(locks, &b, 100), 0);
	ck_assert_int_eq(fsd_lock_count(locks, &other, 100), -1);
	ck_assert_uint_eq(fsd_locks_held(locks), 1);
	fsd_locks_destroy(locks);
}
END_TEST

START_TEST(expiry)
{
	struct fsd_locks *locks = fsd_locks_create(10);

	ck_assert_int_eq(fsd_lock_extend(locks, &a, 100), -EINVAL);
	ck_assert_int_eq(fsd_lock_set(locks, &a, &one, true, 100), 0);
	ck_assert_int_eq(fsd_lock_count(locks, &a, 399), -1);
	ck_assert_int_eq(fsd_lock_extend(locks, &a, 399), 0);
	ck_assert_int_eq(fsd_lock_count(locks, &a, 698), -1);
	ck_assert_int_eq(fsd_lock_count(locks, &a, 699), 0);
	/* it may be extended as long as nobody else has set one */
	ck_assert_int_eq(fsd_lock_extend(locks, &a, 1000), 0);
	ck_assert_int_eq(fsd_lock_count(locks, &a, 1001), -1);
	ck_assert_int_eq(fsd_lock_set(locks, &a, &one, false, 1300), 0);
	ck_assert_int_eq(fsd_lock_count(locks, &a, 1300), 1);
	fsd_locks_destroy(locks);
}
END_TEST

START_TEST(full_table)
{
	struct fsd_locks *locks = fsd_locks_create(2);
	const struct store_fid third = {1, 6, 7};

	ck_assert_int_eq(fsd_lock_set(locks, &a, &one, false, 100), 0);
	ck_assert_int_eq(fsd_lock_set(locks, &b, &two, false, 200), 0);
	ck_assert_int_eq(fsd_lock_set(locks, &third, &one, false, 300), -ENOLCK);
	ck_assert_int_eq(fsd_lock_set(locks, &a, &one, false, 300), 0);
	/* one that has ended makes room */
	ck_assert_int_eq(fsd_lock_set(locks, &third, &two, true, 500), 0);
	ck_assert_int_eq(fsd_lock_count(locks, &a, 500), 2);
	ck_assert_int_eq(fsd_lock_extend(locks, &b, 500), -EINVAL);
	fsd_locks_destroy(locks);
}
END_TEST

/* A lock that has ended is taken again by another caller: it counts for that one. */
START_TEST(share_of_ended_lock)
{
	struct fsd_locks *locks = fsd_locks_create(4);
	struct fsd_share_key first, second;
	const struct store_fid file[3] = {{1, 2, 1}, {1, 4, 1}, {1, 6, 1}};

	fsd_share_of_user(1, &first);
	fsd_share_of_user(2, &second);
	ck_assert_int_eq(fsd_lock_set(locks, &file[0], &first, true, 100), 0);
	ck_assert_int_eq(fsd_lock_set(locks, &file[1], &first, true, 100), 0);
	ck_assert_int_eq(fsd_lock_set(locks, &file[0], &second, true, 500), 0);
	ck_assert_int_eq(fsd_lock_set(locks, &file[1], &second, true, 500), 0);
	ck_assert_int_eq(fsd_lock_set(locks, &file[2], &first, true, 500), 0);
	fsd_locks_destroy(locks);
}
END_TEST

/* One caller takes half of what is free; each of the others still gets some. */
START_TEST(shares_of_callers)
{
	struct fsd_locks *locks = fsd_locks_create(64);
	struct fsd_share_key user = {0};
	unsigned got[3] = {0};

	for (uint32_t caller = 0; caller < 3; caller++) {
		fsd_share_of_user((int32_t)caller, &user);
		for (uint32_t i = 0; i < 100; i++) {
			const struct store_fid file = {1 + caller, 2 * i + 2, 1};

			got[caller] += !fsd_lock_set(locks, &file, &user, true, 100);
		}
	}
	ck_assert_uint_eq(got[0], 32);
	ck_assert_uint_eq(got[1], 16);
	ck_assert_uint_eq(got[2], 8);
	/* What one gives back, another one may have. */
	ck_assert(fsd_lock_release(locks, &(struct store_fid){1, 2, 1}, 100));
	ck_assert_int_eq(fsd_lock_set(locks, &(struct store_fid){3, 2000, 1}, &user, true, 100), 0);
	/* Those that have ended count for nobody. */
	ck_assert_int_eq(fsd_lock_set(locks, &(struct store_fid){3, 2002, 1}, &user, true, 400), 0);
	ck_assert_uint_eq(fsd_locks_held(locks), 1);
	fsd_locks_destroy(locks);
}
END_TEST

TEST_MAIN("locks", readers_and_writers, removed_volume, expiry, full_table, share_of_ended_lock,
	  shares_of_callers)
