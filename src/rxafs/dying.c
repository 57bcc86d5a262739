/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether the signal that interrupted a thread will end it. The kernel interrupts a request once, at the first
 * signal of any kind, and then waits for the answer: a SIGKILL that comes later is not told.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <signal.h>

#include "rxafs/task.h"

#define SIGNAL_BIT(number) (UINT64_C(1) << ((number)-1))

/* Signals whose default action writes a core; they stay pending for the process. */
#define CORE_SIGNALS                                                                            \
	(SIGNAL_BIT(SIGQUIT) | SIGNAL_BIT(SIGILL) | SIGNAL_BIT(SIGTRAP) | SIGNAL_BIT(SIGABRT) | \
	 SIGNAL_BIT(SIGFPE) | SIGNAL_BIT(SIGSEGV) | SIGNAL_BIT(SIGBUS) | SIGNAL_BIT(SIGSYS) |   \
	 SIGNAL_BIT(SIGXCPU) | SIGNAL_BIT(SIGXFSZ))

static uint64_t signal_set(const char *status, const char *name)
{
	const char *line = strstr(status, name);

	return line ? strtoull(line + strlen(name), NULL, 16) : 0;
}

bool thread_is_dying(pid_t thread)
{
	char path[64], status[8192];
	ssize_t length;
	uint64_t open_core;
	int fd;

	snprintf(path, sizeof path, "/proc/%d/status", (int)thread);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return true;
	length = read(fd, status, sizeof status - 1);
	close(fd);
	if (length <= 0)
		return true;
	status[length] = '\0';
	/* After the choice of a fatal signal each thread of the process gets SIGKILL. */
	if ((signal_set(status, "\nSigPnd:") | signal_set(status, "\nShdPnd:")) &
	    SIGNAL_BIT(SIGKILL))
		return true;
	open_core =
		(signal_set(status, "\nShdPnd:") | signal_set(status, "\nSigPnd:")) & CORE_SIGNALS;
	return open_core & ~signal_set(status, "\nSigCgt:") & ~signal_set(status, "\nSigBlk:") &
	       ~signal_set(status, "\nSigIgn:");
}
