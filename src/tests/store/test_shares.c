/* SPDX-License-Identifier: BSD-2-Clause */
/* One caller cannot take from others: the work of an operation in the commit is bounded, and space is shared. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "store/db.h"
#include "tests/main.h"
#include "tests/store/spy.h"
#include "tests/store/store_fixture.h"

/* -- directories are read before the transaction, once -- */

#define NAMES	 600 /* more than 16 pages */
#define TOGETHER 8

static void fill_directory(const struct store_fid *dir)
{
	char name[16];

	for (int i = 0; i < NAMES; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		make(dir, name, STORE_FILE);
	}
}

static uint64_t directories_read(void)
{
	store_stats(store, &stats);
	return stats.directories;
}

static struct store_fid cold;
static pthread_barrier_t start;

static void *read_cold(void *arg)
{
	struct store_status seen;
	struct store_reader *reader;

	(void)arg;
	pthread_barrier_wait(&start);
	ck_assert_int_eq(store->ops->read_begin(store, &admin, &cold, &reader, &seen), 0);
	ck_assert_int_eq(store->ops->read_end(reader), 0);
	return NULL;
}

START_TEST(cold_directories)
{
	pthread_t thread[TOGETHER];
	struct store_fid other;

	fixture_open(STORE_LAZY);
	cold = make(&root, "d", STORE_DIR);
	other = make(&root, "e", STORE_DIR);
	fill_directory(&cold);
	/* The thread of the caller reads it; the transaction only finds what is in memory. */
	fixture_reopen();
	make(&cold, "one more", STORE_FILE);
	ck_assert_uint_eq(directories_read(), 1);
	make(&cold, "another", STORE_FILE);
	ck_assert_uint_eq(directories_read(), 1);
	/* Both directories of a rename. */
	fixture_reopen();
	ck_assert_int_eq(try_rename(&admin, &cold, "n1", &other, "n1"), 0);
	ck_assert_uint_eq(directories_read(), 2);
	fixture_reopen();
	ck_assert_int_eq(try_remove(&admin, &cold, "n2", STORE_FILE), 0);
	ck_assert_int_eq(try_remove(&admin, &cold, "n2", STORE_FILE), -ENOENT);
	ck_assert_uint_eq(directories_read(), 1);
	/* Readers at the same time share the work. */
	fixture_reopen();
	pthread_barrier_init(&start, NULL, TOGETHER);
	for (int i = 0; i < TOGETHER; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, read_cold, NULL), 0);
	for (int i = 0; i < TOGETHER; i++)
		pthread_join(thread[i], NULL);
	pthread_barrier_destroy(&start);
	ck_assert_uint_eq(directories_read(), 1);
}
END_TEST

/* What an operation has read is there for its transaction, although the cache has no room for it. */
START_TEST(no_room_in_cache)
{
	struct store_fid dir;

	fixture_memory(16);
	fixture_open(STORE_LAZY);
	dir = make(&root, "d", STORE_DIR);
	fill_directory(&dir);
	fixture_reopen();
	for (int i = 0; i < 5; i++)
		ck_assert_int_eq(try_remove(&admin, &dir, "n7", STORE_FILE), i ? -ENOENT : 0);
	ck_assert_uint_ge(directories_read(), 1);
}
END_TEST

/* -- a submitted operation -- */

static struct store_later later;
static pthread_mutex_t later_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t later_ended = PTHREAD_COND_INITIALIZER;
static bool has_ended;

static bool leave(struct store_later *of)
{
	(void)of;
	return true;
}

static void done(struct store_later *list)
{
	(void)list;
	pthread_mutex_lock(&later_lock);
	has_ended = true;
	pthread_cond_signal(&later_ended);
	pthread_mutex_unlock(&later_lock);
}

START_TEST(cold_and_submitted)
{
	struct store_caller caller = admin;
	struct store_fid dir;

	fixture_open(STORE_LAZY);
	dir = make(&root, "d", STORE_DIR);
	fixture_reopen();
	later = (struct store_later){.leave = leave, .done = done};
	caller.later = &later;
	ck_assert_int_eq(store->ops->create(store, &caller, &dir, "f", STORE_FILE, NULL, &nothing,
					    &status, &dir_status, &changes),
			 STORE_LATER);
	pthread_mutex_lock(&later_lock);
	while (!has_ended)
		pthread_cond_wait(&later_ended, &later_lock);
	pthread_mutex_unlock(&later_lock);
	/* The thread of the commit has read nothing, and changed nothing. */
	ck_assert_int_eq(later.result, STORE_AGAIN);
	ck_assert_uint_eq(directories_read(), 0);
	make(&dir, "f", STORE_FILE);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {cold_directories, no_room_in_cache, cold_and_submitted};
	Suite *suite = suite_create("shares");
	TCase *tcase = tcase_create("shares");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 240);
	tcase_add_checked_fixture(tcase, fixture_start, fixture_end);
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		tcase_add_test(tcase, tests[i]);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
