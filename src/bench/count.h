/* SPDX-License-Identifier: BSD-2-Clause */
/* Clocks and counted instructions of the benchmark's own processes. */
#ifndef RXW_BENCH_COUNT_H
#define RXW_BENCH_COUNT_H

#include <stdint.h>
#include <sys/types.h>

double count_now(void);            /* seconds, monotonic */
double count_cpu(clockid_t clock); /* seconds of the process that the clock is of */
/* Seconds of several processes. 0, or -1 with the reason in errno: one of them has ended. */
int count_cpu_of(const pid_t *pids, unsigned count, double *sum);

/*
 * A counter of the instructions that process `pid` (0: this one) and the threads it makes from now
 * on execute, those of the kernel left out. -1 where the machine or its settings do not permit it.
 */
int count_open(pid_t pid);
/* 0 for a counter that is not there. */
uint64_t count_read(int counter);

/* The one in the middle; sorts. */
double count_median(double *values, unsigned count);

#endif
