/* SPDX-License-Identifier: BSD-2-Clause */
/* Signals, received by a thread instead of a handler. */
#ifndef TOOLS_SIGNALS_H
#define TOOLS_SIGNALS_H

#include <signal.h>
#include <stddef.h>

struct tools_signals;

/* Called on the signal thread for each signal, one at a time. */
typedef void (*tools_signal_fn)(int number, void *arg);

/*
 * Block signals[0..count) in the calling thread, and so in all threads that it starts later; call
 * this before any other thread exists, including those of the library. SIGPIPE is ignored. Then
 * start a thread that waits for the signals and calls `fn`. Returns 0, or -1 with errno.
 */
int tools_signals_start(const int *signals, size_t count, tools_signal_fn fn, void *arg,
			struct tools_signals **out);

/* Stop and join the thread; not from `fn`. The signals stay blocked. NULL is allowed. */
void tools_signals_stop(struct tools_signals *signals);

/*
 * Block signals in the same way, without a thread, for programs that wait for them in
 * tools_signals_wait().
 */
int tools_signals_block(const int *signals, size_t count);
/* Wait for a signal; returns its number, and its sender in `info` unless that is NULL. */
int tools_signals_wait(const int *signals, size_t count, siginfo_t *info);
/* Wait for at most so many seconds. 0: no signal came. */
int tools_signals_wait_for(const int *signals, size_t count, siginfo_t *info, unsigned seconds);

#endif
