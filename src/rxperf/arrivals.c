/* SPDX-License-Identifier: BSD-2-Clause */
/* When calls of an open loop are due: evenly, or as a Poisson process. */
#include <math.h>

#include "rxperf/arrivals.h"

/* Fixed, so that two runs offer the same load. */
#define SEED 0x9e3779b97f4a7c15u

/* Uniform in (0, 1]. */
static double draw_uniform(struct perf_arrivals *a)
{
	uint64_t x = a->state;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	a->state = x;
	return (double)((x >> 11) + 1) * 0x1p-53;
}

static void set_next(struct perf_arrivals *a)
{
	if (a->kind == PERF_ARRIVALS_EVEN)
		a->at_ns = (double)a->count * 1e9 /
			   a->rate; /* computed from the count, so that errors do not add up */
	else
		a->at_ns -= log(draw_uniform(a)) * 1e9 / a->rate;
	a->next_ns = a->start_ns + (uint64_t)a->at_ns;
}

void perf_arrivals_init(struct perf_arrivals *a, enum perf_arrivals_kind kind, double rate,
			uint64_t start_ns)
{
	*a = (struct perf_arrivals){
		.kind = kind, .rate = rate, .start_ns = start_ns, .state = SEED};
	set_next(a);
}

void perf_arrivals_pass(struct perf_arrivals *a)
{
	a->count++;
	set_next(a);
}
