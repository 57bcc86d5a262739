/* SPDX-License-Identifier: BSD-2-Clause */
/* Signals, received by a thread instead of a handler. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "program/signals.h"

struct tools_signals {
	pthread_t thread;
	sigset_t set; /* the signals of the caller, and the one that stops the thread */
	atomic_bool stop;
	tools_signal_fn fn;
	void *arg;
};

/* Sent only to our own thread, to end its wait. */
static int stop_signal(void)
{
	return SIGRTMAX - 1;
}

static void fill_signal_set(sigset_t *set, const int *signals, size_t count)
{
	sigemptyset(set);
	for (size_t i = 0; i < count; i++)
		sigaddset(set, signals[i]);
}

int tools_signals_block(const int *signals, size_t count)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	sigset_t set;
	int rc;

	fill_signal_set(&set, signals, count);
	rc = pthread_sigmask(SIG_BLOCK, &set, NULL);
	if (rc != 0) {
		errno = rc;
		return -1;
	}
	return sigaction(SIGPIPE, &ignore, NULL);
}

int tools_signals_wait(const int *signals, size_t count, siginfo_t *info)
{
	sigset_t set;
	int number;

	fill_signal_set(&set, signals, count);
	do
		number = sigwaitinfo(&set, info);
	while (number < 0);
	return number;
}

int tools_signals_wait_for(const int *signals, size_t count, siginfo_t *info, unsigned seconds)
{
	const struct timespec limit = {.tv_sec = seconds};
	sigset_t set;
	int number;

	fill_signal_set(&set, signals, count);
	do
		number = sigtimedwait(&set, info, &limit);
	while (number < 0 && errno != EAGAIN);
	return number < 0 ? 0 : number;
}

static void *deliver_signals(void *arg)
{
	struct tools_signals *s = arg;

	for (;;) {
		int number;

		if (sigwait(&s->set, &number) != 0)
			continue;
		if (atomic_load(&s->stop))
			return NULL;
		if (number != stop_signal())
			s->fn(number, s->arg);
	}
}

int tools_signals_start(const int *signals, size_t count, tools_signal_fn fn, void *arg,
			struct tools_signals **out)
{
	struct tools_signals *s;
	int rc;

	if (tools_signals_block(signals, count) < 0)
		return -1;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -1;
	s->fn = fn;
	s->arg = arg;
	fill_signal_set(&s->set, signals, count);
	sigaddset(&s->set, stop_signal());
	rc = pthread_sigmask(SIG_BLOCK, &s->set, NULL);
	if (rc)
		goto fail;
	rc = pthread_create(&s->thread, NULL, deliver_signals, s);
	if (rc)
		goto fail;
	*out = s;
	return 0;
fail:
	free(s);
	errno = rc;
	return -1;
}

void tools_signals_stop(struct tools_signals *signals)
{
	if (!signals)
		return;
	atomic_store(&signals->stop, true);
	pthread_kill(signals->thread, stop_signal());
	pthread_join(signals->thread, NULL);
	free(signals);
}
