/* SPDX-License-Identifier: BSD-2-Clause */
/* Clocks and instruction counts of the benchmark's own processes. */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "count.h"

static double seconds(const struct timespec *t)
{
	return (double)t->tv_sec + (double)t->tv_nsec * 1e-9;
}

double count_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return seconds(&t);
}

double count_cpu(clockid_t clock)
{
	struct timespec t = { 0 };

	clock_gettime(clock, &t);
	return seconds(&t);
}

int count_cpu_of(const pid_t *pids, unsigned count, double *sum)
{
	*sum = 0;
	for (unsigned i = 0; i < count; i++) {
		struct timespec t;
		clockid_t clock;
		int rc = clock_getcpuclockid(pids[i], &clock);

		if (rc) {
			errno = rc;
			return -1;
		}
		if (clock_gettime(clock, &t))
			return -1;
		*sum += seconds(&t);
	}
	return 0;
}

int count_open(pid_t pid)
{
	struct perf_event_attr a = { .type = PERF_TYPE_HARDWARE, .size = sizeof(a),
				     .config = PERF_COUNT_HW_INSTRUCTIONS, .inherit = 1,
				     .exclude_kernel = 1, .exclude_hv = 1 };

	return (int)syscall(SYS_perf_event_open, &a, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

uint64_t count_read(int counter)
{
	uint64_t value = 0;

	if (counter < 0 || read(counter, &value, sizeof(value)) != sizeof(value))
		return 0;
	return value;
}

static int by_size(const void *a, const void *b)
{
	const double *x = (const double *)a, *y = (const double *)b;

	return *x < *y ? -1 : *x > *y;
}

double count_median(double *values, unsigned count)
{
	qsort(values, count, sizeof(*values), by_size);
	return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}
