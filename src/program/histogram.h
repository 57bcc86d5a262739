/* SPDX-License-Identifier: BSD-2-Clause */
/* A histogram of latencies with a relative error below 1.6 percent, from 0 to 2^63 nanoseconds. */
#ifndef TOOLS_HISTOGRAM_H
#define TOOLS_HISTOGRAM_H

#include <stdint.h>

#include "common/histogram.h"

#define TOOLS_HISTOGRAM_BITS  6 /* 64 steps for each power of two */
#define TOOLS_HISTOGRAM_SLOTS HISTOGRAM_SLOTS(TOOLS_HISTOGRAM_BITS)

/* A histogram has no lock, so it has one writer. Threads have one each, merged at the end. */
struct tools_histogram {
	uint64_t count, max, min;
	double sum;
	uint64_t slots[TOOLS_HISTOGRAM_SLOTS];
};

void tools_histogram_init(struct tools_histogram *h);
void tools_histogram_add(struct tools_histogram *h, uint64_t value);
void tools_histogram_merge(struct tools_histogram *into, const struct tools_histogram *from);
/* The quantile `q` (0..1); 0 if there are no values. */
uint64_t tools_histogram_quantile(const struct tools_histogram *h, double q);
double tools_histogram_mean(const struct tools_histogram *h);

#endif
