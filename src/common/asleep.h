/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether other threads of this program sleep. Needs _GNU_SOURCE. */
#ifndef COMMON_ASLEEP_H
#define COMMON_ASLEEP_H

#include <assert.h>
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

#define LOOKS_MOST 8 /* a caller looks at so many threads at a time, whatever their number */

/*
 * How many of `busy` threads run or wait for a CPU, as `looked` of them tell. To be called without a lock.
 * Where threads wait for a disk, a lock or another program, fewer run than there are CPUs, and more are of use.
 * Many sleep for a moment only, so one answer alone does not show that.
 */
static inline unsigned estimate_running(const pid_t *tid, unsigned looked, unsigned busy)
{
	unsigned awake = 0;

	assert(looked > 0 && looked <= LOOKS_MOST);
	for (unsigned i = 0; i < looked; i++)
		awake += !thread_sleeps(tid[i]);
	return awake * busy / looked;
}

#endif
