/* SPDX-License-Identifier: BSD-2-Clause */
/* The CPUs that the threads of this program may use. Needs _GNU_SOURCE. */
#ifndef COMMON_CPUS_H
#define COMMON_CPUS_H

#include <sched.h>
#include <unistd.h>

/* At least 1. */
static inline unsigned cpus_allowed(void)
{
	cpu_set_t set;
	long online;

	if (sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) > 0)
		return (unsigned)CPU_COUNT(&set);
	/* The machine has more CPUs than the set: then no affinity is worth looking at. */
	online = sysconf(_SC_NPROCESSORS_ONLN);
	return online > 0 ? (unsigned)online : 1;
}

#endif
