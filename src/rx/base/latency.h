/* SPDX-License-Identifier: BSD-2-Clause */
/* A histogram of call durations with buckets at powers of two. */
#ifndef RXW_BASE_LATENCY_H
#define RXW_BASE_LATENCY_H

#include <stdatomic.h>
#include <stdint.h>

#include "common/histogram.h"

/*
 * The first bucket counts durations below 2^14 ns (16 us), each further one up to twice that, the
 * last one all longer ones.
 */
#define RXW_LATENCY_SHIFT 14u
#define RXW_LATENCY_SLOTS 24u

/* Updated by any thread; relaxed. */
struct rxw_latencies {
	_Atomic(uint64_t) slot[RXW_LATENCY_SLOTS], sum; /* sum in ns */
};

/* A copy of it. */
struct rxw_latency {
	uint64_t slot[RXW_LATENCY_SLOTS], sum;
};

/* Upper bound of a bucket in ns. */
static inline uint64_t rxw_latency_bound(unsigned slot)
{
	return 1ull << (RXW_LATENCY_SHIFT + slot);
}

static inline void rxw_latency_add(struct rxw_latencies *l, uint64_t ns)
{
	unsigned bits = histogram_slot(ns, 0),
		 slot = bits > RXW_LATENCY_SHIFT ? bits - RXW_LATENCY_SHIFT : 0;

	if (slot >= RXW_LATENCY_SLOTS)
		slot = RXW_LATENCY_SLOTS - 1;
	atomic_fetch_add_explicit(&l->slot[slot], 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&l->sum, ns, memory_order_relaxed);
}

static inline void rxw_latency_fold(struct rxw_latency *into, const struct rxw_latencies *from)
{
	for (unsigned i = 0; i < RXW_LATENCY_SLOTS; i++)
		into->slot[i] += atomic_load_explicit(&from->slot[i], memory_order_relaxed);
	into->sum += atomic_load_explicit(&from->sum, memory_order_relaxed);
}

#endif
