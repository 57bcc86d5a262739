/* SPDX-License-Identifier: BSD-2-Clause */
/* When calls of an open loop are due: a sequence of times that depends only on kind and rate. */
#ifndef PERF_ARRIVALS_H
#define PERF_ARRIVALS_H

#include <stdint.h>

enum perf_arrivals_kind {
	PERF_ARRIVALS_EVEN,
	PERF_ARRIVALS_POISSON
};

/*
 * Two sequences with the same start and rate are equal, so one can run ahead of the other, which
 * saves a queue. One thread at a time.
 */
struct perf_arrivals {
	enum perf_arrivals_kind kind;
	double rate; /* mean calls per second, > 0 */
	uint64_t start_ns;
	uint64_t count;	  /* calls passed */
	double at_ns;	  /* next_ns - start_ns, exact */
	uint64_t state;	  /* of the pseudo-random numbers */
	uint64_t next_ns; /* when the next call is due, on the clock of start_ns */
};

/* `rate`: calls per second, > 0. The first call is due at start_ns (even) or later (poisson). */
void perf_arrivals_init(struct perf_arrivals *a, enum perf_arrivals_kind kind, double rate,
			uint64_t start_ns);
/* Advance to the next call, which is never due before the previous one. */
void perf_arrivals_pass(struct perf_arrivals *a);

#endif
