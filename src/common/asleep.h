/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether another thread of this program sleeps. Needs _GNU_SOURCE. */
#ifndef COMMON_ASLEEP_H
#define COMMON_ASLEEP_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

/*
 * Neither running nor waiting for a CPU: about 7 microseconds. A thread that has ended sleeps. Without /proc
 * all threads do.
 */
static inline bool thread_sleeps(pid_t tid)
{
	char path[48], stat[64], *name_end;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return true;
	n = read(fd, stat, sizeof(stat) - 1);
	close(fd);
	stat[n > 0 ? n : 0] = 0;
	name_end = strrchr(stat, ')');
	return !name_end || strncmp(name_end, ") R", 3) != 0;
}

#endif
