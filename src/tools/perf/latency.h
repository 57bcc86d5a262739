/* SPDX-License-Identifier: BSD-2-Clause */
/* Latencies of one load, taken down by many threads without waiting for each other. */
#ifndef PERF_LATENCY_H
#define PERF_LATENCY_H

#include <pthread.h>
#include <stdint.h>

#include "tools/common/histogram.h"

/*
 * Each thread has a histogram of its own in every set that it adds to. A set must outlive the
 * threads that add to it, or at least their additions.
 */
struct perf_latencies {
	uint64_t id;              /* of this set, never used again: threads remember it */
	pthread_mutex_t lock;     /* for the list */
	struct perf_latency *all; /* histograms */
};

void perf_latencies_init(struct perf_latencies *set);
/* Any thread. Without memory for its histogram a thread's values are not counted. */
void perf_latencies_add(struct perf_latencies *set, uint64_t nanoseconds);
/* Add all to `into`; no thread adds meanwhile. */
void perf_latencies_merge(const struct perf_latencies *set, struct tools_histogram *into);
void perf_latencies_free(struct perf_latencies *set);

#endif
