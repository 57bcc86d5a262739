/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Modification times belong to the commit, not to the call: in the order of data versions they never go back, however long
 * calls take.
 */
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "volume/store/txn/core.h"
#include "volume/store/txn/txn.h"
#include "tests/main.h"
#include "tests/volume/store/store_fixture.h"

#define LENGTH 20000 /* of a file that is no small one */

/* The clock of the store, in place of the C library's. */
static _Atomic uint32_t now = 1000000000;

time_t time(time_t *at)
{
	time_t seconds = now;

	if (at)
		*at = seconds;
	return seconds;
}

static const uint8_t bytes[LENGTH];

static void expect_times(uint32_t server, uint32_t client)
{
	ck_assert_uint_eq(status.server_mtime, server);
	ck_assert_uint_eq(status.client_mtime, client);
}

static struct store_writer *begin(const struct store_fid *file, size_t length)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = length};
	struct store_writer *writer;

	ck_assert_int_eq(try_begin(&admin, file, 0, length, length, &writer), 0);
	ck_assert_int_eq(store->ops->write(writer, &iov, 1), 0);
	return writer;
}

static void commit(struct store_writer *writer, uint64_t version)
{
	ck_assert_int_eq(store->ops->write_commit(writer, &status, &changes), 0);
	ck_assert_uint_eq(status.version, version);
	ck_assert_uint_eq(status.server_mtime, now);
	ck_assert_uint_eq(status.client_mtime, now);
}

/* The writer that commits last began first. */
static void overtaken(size_t length)
{
	const struct store_set theirs = {.mask = STORE_SET_MTIME, .mtime = 17};
	struct store_fid file = make(&root, length == LENGTH ? "large" : "small", STORE_FILE);
	struct store_writer *first = begin(&file, length), *second;
	uint64_t version;

	ck_assert_int_eq(store->ops->status(store, &admin, &file, &status), 0);
	version = status.version;
	now += 10;
	second = begin(&file, length);
	now += 10;
	commit(second, version + 1);
	now += 10;
	commit(first, version + 2);
	/* The time of the client is its own affair. */
	ck_assert_int_eq(
		store->ops->write_begin(store, &admin, &file, &theirs, 0, 0, length, &first), 0);
	now += 10;
	ck_assert_int_eq(store->ops->write_commit(first, &status, &changes), 0);
	ck_assert_uint_eq(status.server_mtime, now);
	ck_assert_uint_eq(status.client_mtime, 17);
}

START_TEST(writers)
{
	fixture_open(STORE_LAZY);
	overtaken(100);
	overtaken(LENGTH);
}
END_TEST

/* Keeps the thread that commits busy, as a slow disk does. */
struct slow {
	struct txn_op txn;
	struct store_later later;
	sem_t begun, go;
};

static int apply_slow(struct txn_op *op, struct work *work)
{
	struct slow *slow = (struct slow *)op;

	(void)work;
	sem_post(&slow->begun);
	while (sem_wait(&slow->go))
		;
	return 0;
}

static void end_slow(struct txn_op *op)
{
	op->later->result = op->result;
}

static bool leave(struct store_later *later)
{
	(void)later;
	return true;
}

static sem_t ended;

static void done(struct store_later *list)
{
	for (struct store_later *next; list; list = next) {
		next = list->next;
		sem_post(&ended);
	}
}

/* A call that waits for the commit of others has the time of its own. */
START_TEST(waiting_calls)
{
	struct slow slow = {
		.txn = {.apply = apply_slow, .end = end_slow, .alone = true, .later = &slow.later},
		.later = {.leave = leave, .done = done}};
	struct store_later later = {.leave = leave, .done = done};
	struct store_caller caller = admin;

	fixture_open(STORE_LAZY);
	sem_init(&ended, 0, 0);
	sem_init(&slow.begun, 0, 0);
	sem_init(&slow.go, 0, 0);
	ck_assert(txn_may_submit(core_of(store)->txn));
	txn_submit(core_of(store)->txn, &slow.txn);
	while (sem_wait(&slow.begun))
		;
	caller.later = &later;
	ck_assert_int_eq(store->ops->create(store, &caller, &root, "f", STORE_FILE, NULL, &nothing,
					    &status, &dir_status, &changes),
			 STORE_LATER);
	now += 10;
	sem_post(&slow.go);
	for (int i = 0; i < 2; i++)
		while (sem_wait(&ended))
			;
	ck_assert_int_eq(later.result, 0);
	ck_assert_uint_eq(status.server_mtime, now);
	ck_assert_uint_eq(dir_status.server_mtime, now);
	sem_destroy(&slow.begun);
	sem_destroy(&slow.go);
	sem_destroy(&ended);
}
END_TEST

/* It was an hour fast, and a release may have got the time of it. What changes later must not look older than that. */
START_TEST(a_clock_that_goes_back)
{
	const struct store_set mode = {.mask = STORE_SET_MODE, .mode = 0600};
	struct store_fid file;
	uint32_t fast;

	fixture_open(STORE_LAZY);
	file = make(&root, "file", STORE_FILE);
	now += 3600;
	fast = now;
	commit(begin(&file, 100), 1);
	now -= 3590;
	ck_assert_int_eq(store->ops->write_commit(begin(&file, 100), &status, &changes), 0);
	expect_times(fast, now);
	ck_assert_int_eq(store->ops->set_status(store, &admin, &file, &mode, &status, &changes), 0);
	ck_assert_uint_eq(status.server_mtime, fast);
	ck_assert_int_eq(store->ops->create(store, &admin, &root, "new", STORE_FILE, NULL, &nothing,
					    &status, &dir_status, &changes),
			 0);
	expect_times(fast, now);
	ck_assert_uint_eq(dir_status.server_mtime, fast);
	ck_assert_uint_eq(dir_status.client_mtime, now);
	now += 7200;
	commit(begin(&file, 100), 3);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("times");
	TCase *tcase = tcase_create("times");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 60);
	tcase_add_checked_fixture(tcase, fixture_start, fixture_end);
	tcase_add_test(tcase, writers);
	tcase_add_test(tcase, waiting_calls);
	tcase_add_test(tcase, a_clock_that_goes_back);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
