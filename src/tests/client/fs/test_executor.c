/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads for operations that wait: whatever is away, what waits for others gets one. */
#include "tests/tools/testing.h"

#include <errno.h>
#include <sched.h>

#include "client/fs/operate.h"

#define AT_ONE_SERVER 64u
#define MANY	      70u /* more than one server may have */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Of the counts; of `silent`. Hundreds of threads wait for the latter, and must not wake up for each of the others. */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_cond_t answers = PTHREAD_COND_INITIALIZER;
static struct fs_executor *executor;
static unsigned begun, ended, answered, given;
static bool silent; /* servers */
static pthread_t caller;
static bool called;

static void setup(void)
{
	executor = fs_executor_create();
	ck_assert_ptr_nonnull(executor);
	begun = ended = answered = given = 0;
	silent = true;
}

static void teardown(void)
{
	pthread_mutex_lock(&lock);
	silent = false;
	pthread_cond_broadcast(&answers);
	pthread_mutex_unlock(&lock);
	fs_executor_free(executor);
	if (called)
		pthread_join(caller, NULL);
	called = false;
	/* Nothing was lost. */
	ck_assert_uint_eq(ended, given);
}

static void wait_for_silent_server(void *arg)
{
	unsigned *count = arg;

	pthread_mutex_lock(&lock);
	begun++;
	if (count)
		++*count;
	pthread_cond_broadcast(&changed);
	while (silent)
		pthread_cond_wait(&answers, &lock);
	ended++;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static void get_answer(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&lock);
	answered++;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

/* `count` operations for a server that is silent. */
static void ask_silent(uint32_t cell, uint32_t server, unsigned count, unsigned *counter)
{
	for (unsigned i = 0; i < count; i++)
		ck_assert_int_eq(
			fs_execute(executor, cell, server, wait_for_silent_server, counter), 0);
	given += count;
}

/* An operation whose server answers; it must end. */
static void ask_living(uint32_t cell, uint32_t server)
{
	unsigned before = answered;

	ck_assert_int_eq(fs_execute(executor, cell, server, get_answer, NULL), 0);
	pthread_mutex_lock(&lock);
	while (answered == before)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

static void wait_until(const unsigned *count, unsigned expected)
{
	pthread_mutex_lock(&lock);
	while (*count < expected)
		pthread_cond_wait(&changed, &lock);
	ck_assert_uint_eq(*count, expected);
	pthread_mutex_unlock(&lock);
}

START_TEST(one_server_has_few)
{
	static unsigned there, same_remainder; /* jobs outlive the test */

	ask_silent(1, 1, MANY, &there);
	wait_until(&there, AT_ONE_SERVER);
	/* Another server of the cell, its location servers, and other cells. */
	ask_living(1, 2);
	ask_living(1, 0);
	ask_living(2, 1);
	ask_living(0, 0);
	/* Keys are not cut. */
	ask_silent(1, 65, 1, &same_remainder);
	ask_silent(65, 1, 1, &same_remainder);
	wait_until(&same_remainder, 2);
	ck_assert_uint_eq(there, AT_ONE_SERVER);
}
END_TEST

START_TEST(a_location_server_is_silent)
{
	ask_silent(2, 0, MANY, NULL);
	ask_silent(0, 0, MANY, NULL); /* names for which DNS is asked */
	ask_living(1, 0);
	ask_living(3, 0);
}
END_TEST

START_TEST(nine_cells_are_silent)
{
	for (uint32_t i = 0; i < 9; i++)
		ask_silent(10 + i, 10 + i, AT_ONE_SERVER, NULL);
	ask_living(1, 1);
	ask_living(2, 0);
	ask_living(10, 0);
}
END_TEST

START_TEST(a_cell_names_many_servers)
{
	for (uint32_t i = 1; i < 500; i++)
		ask_silent(5, i, MANY, NULL);
	ask_living(1, 1);
	ask_living(2, 0);
}
END_TEST

START_TEST(very_many_cells_are_silent)
{
	ask_living(1, 1);
	for (uint32_t i = 0; i < 2000; i++)
		ask_silent(10 + i, 1, 10, NULL);
	ask_living(1, 1);
	/* Although one server of it is silent now. */
	ask_silent(1, 2, MANY, NULL);
	ask_living(1, 1);
	ask_living(1, 0);
}
END_TEST

START_TEST(what_waits_follows)
{
	static unsigned first;

	ask_silent(1, 1, 500, &first);
	wait_until(&first, AT_ONE_SERVER);
	pthread_mutex_lock(&lock);
	silent = false;
	pthread_cond_broadcast(&answers);
	pthread_mutex_unlock(&lock);
	wait_until(&ended, 500);
}
END_TEST

static pthread_t ran_on;

static void note_thread(void *arg)
{
	(void)arg;
	ran_on = pthread_self();
}

/* Until the executor has noted that the cell answers. */
static void run_here_at_last(uint32_t cell, uint32_t server)
{
	int result;

	while ((result = fs_execute_here(executor, cell, server, note_thread, NULL)) == -EAGAIN)
		sched_yield();
	ck_assert_int_eq(result, 0);
	ck_assert(pthread_equal(ran_on, pthread_self()));
}

START_TEST(the_caller_does_it)
{
	static unsigned there;

	ck_assert_int_eq(fs_execute_here(executor, 1, 1, note_thread, NULL), -EAGAIN);
	ask_living(1, 1);
	run_here_at_last(1, 1);
	ask_silent(1, 1, MANY, &there);
	wait_until(&there, AT_ONE_SERVER);
	ck_assert_int_eq(fs_execute_here(executor, 1, 1, note_thread, NULL), -EAGAIN);
	run_here_at_last(1, 2);
}
END_TEST

static void *wait_here(void *arg)
{
	ck_assert_int_eq(fs_execute_here(executor, 1, 1, wait_for_silent_server, arg), 0);
	return NULL;
}

/* It counts as one of the threads for its server, and those that it kept out follow. The end waits for it. */
START_TEST(a_caller_waits)
{
	static unsigned here, there;

	ask_living(1, 1);
	run_here_at_last(1, 1);
	given++;
	ck_assert_int_eq(pthread_create(&caller, NULL, wait_here, &here), 0);
	called = true;
	wait_until(&here, 1);
	ask_silent(1, 1, MANY, &there);
	wait_until(&there, AT_ONE_SERVER - 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("executor");
	TCase *tcase = tcase_create("executor");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 60);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, one_server_has_few);
	tcase_add_test(tcase, a_location_server_is_silent);
	tcase_add_test(tcase, nine_cells_are_silent);
	tcase_add_test(tcase, a_cell_names_many_servers);
	tcase_add_test(tcase, very_many_cells_are_silent);
	tcase_add_test(tcase, what_waits_follows);
	tcase_add_test(tcase, the_caller_does_it);
	tcase_add_test(tcase, a_caller_waits);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
