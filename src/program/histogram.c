/* SPDX-License-Identifier: BSD-2-Clause */
/* A histogram of latencies: log-linear slots. */
#include <string.h>

#include "program/histogram.h"

void tools_histogram_init(struct tools_histogram *h)
{
	memset(h, 0, sizeof(*h));
	h->min = UINT64_MAX;
}

void tools_histogram_add(struct tools_histogram *h, uint64_t value)
{
	h->slots[histogram_slot(value, TOOLS_HISTOGRAM_BITS)]++;
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
			uint64_t top = histogram_top(i, TOOLS_HISTOGRAM_BITS);
			return top < h->max ? top : h->max;
		}
	}
	return h->max;
}

double tools_histogram_mean(const struct tools_histogram *h)
{
	return h->count ? h->sum / (double)h->count : 0;
}
