/* SPDX-License-Identifier: BSD-2-Clause */
/* A histogram of latencies: log-linear slots. */
#include <string.h>

#include "tools/common/histogram.h"

#define BITS TOOLS_HISTOGRAM_BITS

static unsigned slot_of(uint64_t value)
{
	unsigned exponent;

	if (value < 1u << BITS)
		return (unsigned)value;
	exponent = 63u - (unsigned)__builtin_clzll(value); /* >= BITS */
	/* The BITS bits behind the leading one tell the step within the power of two. */
	return ((exponent - BITS + 1) << BITS) +
	       (unsigned)((value >> (exponent - BITS)) & ((1u << BITS) - 1));
}

/* The largest value of a slot. */
static uint64_t slot_top(unsigned slot)
{
	unsigned exponent, step;

	if (slot < 1u << BITS)
		return slot;
	exponent = (slot >> BITS) + BITS - 1;
	step = slot & ((1u << BITS) - 1);
	return (((uint64_t)1 << BITS) + step) * ((uint64_t)1 << (exponent - BITS)) +
	       (((uint64_t)1 << (exponent - BITS)) - 1);
}

void tools_histogram_init(struct tools_histogram *h)
{
	memset(h, 0, sizeof(*h));
	h->min = UINT64_MAX;
}

void tools_histogram_add(struct tools_histogram *h, uint64_t value)
{
	h->slots[slot_of(value)]++;
	h->count++;
	h->sum += (double)value;
	if (value > h->max)
		h->max = value;
	if (value < h->min)
		h->min = value;
}

void tools_histogram_merge(struct tools_histogram *into, const struct tools_histogram *from)
{
	for (unsigned i = 0; i < TOOLS_HISTOGRAM_SLOTS; i++)
		into->slots[i] += from->slots[i];
	into->count += from->count;
	into->sum += from->sum;
	if (from->max > into->max)
		into->max = from->max;
	if (from->min < into->min)
		into->min = from->min;
}

uint64_t tools_histogram_quantile(const struct tools_histogram *h, double q)
{
	uint64_t rank, seen = 0;

	if (h->count == 0)
		return 0;
	rank = (uint64_t)(q * (double)h->count);
	if ((double)rank < q * (double)h->count)
		rank++;
	if (rank < 1)
		rank = 1;
	if (rank > h->count)
		rank = h->count;
	for (unsigned i = 0; i < TOOLS_HISTOGRAM_SLOTS; i++) {
		seen += h->slots[i];
		if (seen >= rank) {
			uint64_t top = slot_top(i);
			return top < h->max ? top : h->max;
		}
	}
	return h->max;
}

double tools_histogram_mean(const struct tools_histogram *h)
{
	return h->count ? h->sum / (double)h->count : 0;
}
