/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The moves that level partitions. Each step takes the single move that lowers the sum of the squares of all deviations from the mean
 * most, so that few large volumes move instead of many small ones, until every partition is within the tolerance.
 */
#include "rxvol/plan.h"

#include <assert.h>
#include <math.h>

#define LEAST_GAIN 1e-5 /* a move that helps less is not worth it */
#define SHOWN	   1e-3 /* moves that all together change no partition by more are left out */
#define FILL_MAX   0.95 /* no move fills a partition further */

double plan_fill(const struct plan_partition *partition)
{
	return partition->size_kib ? (double)partition->used_kib / (double)partition->size_kib : 1;
}

/* What all partitions should have. */
struct means {
	double fill, use;
};

static struct means find_means(const struct plan_partition *partitions, unsigned count)
{
	double size = 0, used = 0, use = 0;

	for (unsigned i = 0; i < count; i++) {
		size += (double)partitions[i].size_kib;
		used += (double)partitions[i].used_kib;
		use += (double)partitions[i].use;
	}
	return (struct means){size > 0 ? used / size : 0, use / count};
}

/* How far a partition is from the means, squared. The weights: a tenth of the disk counts as a third of the mean use. */
static double square_deviation(const struct plan_partition *partition, const struct means *means,
			       const struct plan_aims *aims)
{
	double fill = plan_fill(partition) - means->fill, use = 0;

	if (aims->use && means->use > 0)
		use = 0.3 * ((double)partition->use / means->use - 1);
	return fill * fill + use * use;
}

static bool is_level(const struct plan_partition *partitions, unsigned count,
		     const struct means *means, const struct plan_aims *aims)
{
	for (unsigned i = 0; i < count; i++) {
		if (fabs(plan_fill(&partitions[i]) - means->fill) > aims->tolerance)
			return false;
		if (aims->use && means->use > 0 &&
		    fabs((double)partitions[i].use / means->use - 1) > 4 * aims->tolerance)
			return false;
	}
	return true;
}

static void shift_volume(struct plan_partition *from, struct plan_partition *to,
			 const struct plan_volume *volume)
{
	assert(from != to);
	from->used_kib -= volume->size_kib < from->used_kib ? volume->size_kib : from->used_kib;
	from->use -= volume->use < from->use ? volume->use : from->use;
	to->used_kib += volume->size_kib;
	to->use += volume->use;
}

/* How much a move would lower the sum. */
static double gain_of_move(const struct plan_partition *from, const struct plan_partition *to,
			   const struct plan_volume *volume, const struct means *means,
			   const struct plan_aims *aims)
{
	struct plan_partition less = *from, more = *to;

	shift_volume(&less, &more, volume);
	if (plan_fill(&more) > FILL_MAX)
		return 0;
	return square_deviation(from, means, aims) + square_deviation(to, means, aims) -
	       square_deviation(&less, means, aims) - square_deviation(&more, means, aims);
}

/* The best move of all. Its volume; `count`: none helps. */
static size_t find_best_move(const struct plan_partition *partitions, unsigned partition_count,
			     const struct plan_volume *volumes, size_t count,
			     const struct means *means, const struct plan_aims *aims, unsigned *to)
{
	double best = LEAST_GAIN;
	size_t found = count;

	for (size_t i = 0; i < count; i++) {
		if (volumes[i].fixed || volumes[i].moves_to != volumes[i].at)
			continue;
		for (unsigned p = 0; p < partition_count; p++) {
			double gain = p == volumes[i].at ? 0
							 : gain_of_move(&partitions[volumes[i].at],
									&partitions[p], &volumes[i],
									means, aims);

			if (gain <= best)
				continue;
			best = gain;
			found = i;
			*to = p;
		}
	}
	return found;
}

/* At most so much all moves change the fill of a partition. */
static double most_change(const struct plan_partition *partitions,
			  const struct plan_volume *volumes, size_t count)
{
	double sum = 0;

	for (size_t i = 0; i < count; i++) {
		uint64_t from = partitions[volumes[i].at].size_kib,
			 to = partitions[volumes[i].moves_to].size_kib;

		if (volumes[i].moves_to != volumes[i].at)
			sum += (double)volumes[i].size_kib /
			       (double)(from && from < to ? from : to);
	}
	return sum;
}

static void take_moves_back(struct plan_partition *partitions, struct plan_volume *volumes,
			    size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (volumes[i].moves_to != volumes[i].at)
			shift_volume(&partitions[volumes[i].moves_to], &partitions[volumes[i].at],
				     &volumes[i]);
		volumes[i].moves_to = volumes[i].at;
	}
}

size_t plan_moves(struct plan_partition *partitions, unsigned partition_count,
		  struct plan_volume *volumes, size_t volume_count, const struct plan_aims *aims)
{
	struct means means = find_means(partitions, partition_count);
	size_t moves = 0;

	for (size_t i = 0; i < volume_count; i++) {
		assert(volumes[i].at < partition_count);
		volumes[i].moves_to = volumes[i].at;
	}
	while (moves < aims->most && !is_level(partitions, partition_count, &means, aims)) {
		unsigned to = 0;
		size_t at = find_best_move(partitions, partition_count, volumes, volume_count,
					   &means, aims, &to);

		if (at == volume_count)
			break;
		shift_volume(&partitions[volumes[at].at], &partitions[to], &volumes[at]);
		volumes[at].moves_to = to;
		moves++;
	}
	if (moves && !aims->use && most_change(partitions, volumes, volume_count) < SHOWN) {
		take_moves_back(partitions, volumes, volume_count);
		moves = 0;
	}
	return moves;
}
