/* SPDX-License-Identifier: BSD-2-Clause */
/* Signals of threads that leave those of the process to others. */
#ifndef COMMON_SIGMASK_H
#define COMMON_SIGMASK_H

#include <pthread.h>
#include <signal.h>

/*
 * Block all signals of this thread and of those that it creates, except the ones that the thread
 * itself causes: if such a signal is blocked, the kernel ends the process although it has a handler.
 * SIGPROF samples threads that use the processor. *before: for pthread_sigmask(SIG_SETMASK).
 */
static inline void block_foreign_signals(sigset_t *before)
{
	static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGPROF};
	sigset_t set;

	sigfillset(&set);
	for (unsigned i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		sigdelset(&set, own[i]);
	pthread_sigmask(SIG_SETMASK, &set, before);
}

/* Creates a thread that leaves the signals of the process to others. 0 or an error number. */
static inline int create_thread_without_signals(pthread_t *thread, void *(*run)(void *arg),
						void *arg)
{
	sigset_t before;
	int error;

	block_foreign_signals(&before);
	error = pthread_create(thread, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error;
}

#endif
