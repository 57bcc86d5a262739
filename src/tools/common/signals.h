/* SPDX-License-Identifier: BSD-2-Clause */
/* Signals are taken by one thread, in ordinary code. */
#ifndef TOOLS_SIGNALS_H
#define TOOLS_SIGNALS_H

#include <signal.h>
#include <stddef.h>

struct tools_signals;

/* Called on the signal thread for each signal, one at a time. */
typedef void (*tools_signal_fn)(int number, void *arg);

/*
 * Block signals[0..count) in the calling thread, and so in all threads it starts later: call before
 * any other thread exists, the library's included. SIGPIPE is ignored as well. Then start a thread
 * that waits for them and calls `fn`. Returns 0 or -1 with errno.
 */
int tools_signals_start(const int *signals, size_t count, tools_signal_fn fn, void *arg,
			struct tools_signals **out);

/* Stop and join the thread; not from `fn`. The signals stay blocked. NULL is allowed. */
void tools_signals_stop(struct tools_signals *signals);

/*
 * Block the same signals without a thread, and wait for one of them: for programs that only wait.
 */
int tools_signals_block(const int *signals, size_t count);
/* The number of the signal that came; `info` (or NULL) is who sent it. */
int tools_signals_wait(const int *signals, size_t count, siginfo_t *info);

#endif
