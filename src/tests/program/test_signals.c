/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests of common/signals.c: signals are handled on the thread, one at a time, and the thread stops
 * cleanly.
 */

#include "tests/tools/testing.h"

#include <pthread.h>
#include <signal.h>

#include "program/signals.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int seen[2];
static pthread_t handler_thread;

static void on_signal(int number, void *arg)
{
	ck_assert_ptr_eq(arg, seen);
	pthread_mutex_lock(&lock);
	seen[number == SIGUSR2]++;
	handler_thread = pthread_self();
	pthread_cond_signal(&changed);
	pthread_mutex_unlock(&lock);
}

START_TEST(handled)
{
	static const int signals[] = { SIGUSR1, SIGUSR2 };
	struct tools_signals *s = NULL;

	ck_assert_int_eq(tools_signals_start(signals, 2, on_signal, seen, &s), 0);
	for (int i = 1; i <= 3; i++) {
		ck_assert_int_eq(kill(getpid(), SIGUSR1), 0);
		ck_assert_int_eq(kill(getpid(), SIGUSR2), 0);
		pthread_mutex_lock(&lock);
		while (seen[0] < i || seen[1] < i)
			pthread_cond_wait(&changed, &lock);
		ck_assert(!pthread_equal(handler_thread, pthread_self()));
		pthread_mutex_unlock(&lock);
	}
	tools_signals_stop(s);
	/* Still blocked: otherwise this would end the process. */
	ck_assert_int_eq(kill(getpid(), SIGUSR1), 0);
	ck_assert_int_eq(tools_signals_wait(signals, 2, NULL), SIGUSR1);
	ck_assert_int_eq(tools_signals_wait_for(signals, 2, NULL, 0), 0);
	ck_assert_int_eq(kill(getpid(), SIGUSR2), 0);
	ck_assert_int_eq(tools_signals_wait_for(signals, 2, NULL, 60), SIGUSR2);
	tools_signals_stop(NULL);
}
END_TEST

/* As in a background job of a shell. */
START_TEST(ignored_before)
{
	static const int signals[] = { SIGUSR1, SIGUSR2 };
	struct tools_signals *s = NULL;

	signal(SIGUSR1, SIG_IGN);
	ck_assert_int_eq(tools_signals_start(signals, 2, on_signal, seen, &s), 0);
	for (int i = 1; i <= 300; i++) {
		ck_assert_int_eq(kill(getpid(), SIGUSR1), 0);
		pthread_mutex_lock(&lock);
		while (seen[0] < i)
			pthread_cond_wait(&changed, &lock);
		pthread_mutex_unlock(&lock);
	}
	tools_signals_stop(s);
}
END_TEST

START_TEST(broken_pipe)
{
	static const int signals[] = { SIGUSR1 };
	int pipes[2];

	ck_assert_int_eq(tools_signals_block(signals, 1), 0);
	ck_assert_int_eq(pipe(pipes), 0);
	close(pipes[0]);
	ck_assert_int_eq(write(pipes[1], "x", 1), -1);
	ck_assert_int_eq(errno, EPIPE);
	close(pipes[1]);
}
END_TEST

TEST_MAIN("signals", handled, ignored_before, broken_pipe)
