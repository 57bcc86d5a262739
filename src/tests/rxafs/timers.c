/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * LD_PRELOAD: each program that is started has a timer of 5 ms, whose signal it handles: TIMERS_SIGNAL, or SIGALRM. Each that ends by
 * exit() adds a line to the file TIMERS_COUNT: how many signals it had.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t count;

static void note(int number)
{
	(void)number;
	count++;
}

__attribute__((constructor)) static void start_timer(void)
{
	/* Pipes and sockets go on by themselves. A result EINTR of the file system is seen in any case. */
	struct sigaction action = {.sa_handler = note, .sa_flags = SA_RESTART};
	const char *number = getenv("TIMERS_SIGNAL");
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL,
				 .sigev_signo = number ? atoi(number) : SIGALRM};
	struct itimerspec interval = {{0, 5000000}, {0, 5000000}};
	timer_t timer;

	sigaction(event.sigev_signo, &action, NULL);
	/* execve() deletes such a timer with its pending signals, unlike one of setitimer(). */
	if (!timer_create(CLOCK_MONOTONIC, &event, &timer))
		timer_settime(timer, 0, &interval, NULL);
}

__attribute__((destructor)) static void tell(void)
{
	const char *path = getenv("TIMERS_COUNT");
	char line[32];
	int fd = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1, n;

	if (fd < 0)
		return;
	n = snprintf(line, sizeof(line), "%d\n", (int)count);
	if (write(fd, line, (size_t)n) != n)
		perror(path);
	close(fd);
}
