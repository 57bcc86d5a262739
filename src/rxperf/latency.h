/* SPDX-License-Identifier: BSD-2-Clause */
/* Latencies of a load, recorded by many threads without contention. */
#ifndef PERF_LATENCY_H
#define PERF_LATENCY_H

#include <pthread.h>
#include <stdint.h>

#include "program/histogram.h"

/*
 * Each thread has its own histogram in every set that it adds to. A set must outlive all additions.
 */
struct perf_latencies {
	uint64_t id;		  /* unique id, which threads cache */
	pthread_mutex_t lock;	  /* covers the list */
	struct perf_latency *all; /* histograms */
};

void perf_latencies_init(struct perf_latencies *set);
/* Any thread. Values of a thread without memory for its histogram are lost. */
void perf_latencies_add(struct perf_latencies *set, uint64_t nanoseconds);
/* Add all values to `into`. No thread may add meanwhile. */
void perf_latencies_merge(const struct perf_latencies *set, struct tools_histogram *into);
void perf_latencies_free(struct perf_latencies *set);

#endif
