/* SPDX-License-Identifier: BSD-2-Clause */
/* When calls of an open loop are due: a sequence of moments that nothing but the rate decides. */
#ifndef PERF_ARRIVALS_H
#define PERF_ARRIVALS_H

#include <stdint.h>

enum perf_arrivals_kind { PERF_ARRIVALS_EVEN, PERF_ARRIVALS_POISSON };

/*
 * Two of the same start and rate run through the same moments, so one can be ahead of the other
 * instead of filling a queue. One user at a time.
 */
struct perf_arrivals {
	enum perf_arrivals_kind kind;
	double rate;       /* moments a second in the mean, > 0 */
	uint64_t start_ns;
	uint64_t count;    /* moments passed */
	double at_ns;      /* next_ns - start_ns, exact */
	uint64_t state;    /* of the pseudo-random numbers */
	uint64_t next_ns;  /* the moment that comes next, on the clock of start_ns */
};

/* `rate` calls per second, > 0. The first one is due at start_ns (even) or some time later. */
void perf_arrivals_init(struct perf_arrivals *a, enum perf_arrivals_kind kind, double rate,
			uint64_t start_ns);
/* Pass to the next moment; it is never before the one that it follows. */
void perf_arrivals_pass(struct perf_arrivals *a);

#endif
