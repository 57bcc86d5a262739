/* SPDX-License-Identifier: BSD-2-Clause */
/* Which volumes should move, so that partitions are about equally full: numbers only, no servers. */
#ifndef VOLUMES_PLAN_H
#define VOLUMES_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct plan_partition {
	uint64_t size_kib, used_kib; /* of the disk */
	uint64_t use;		     /* accesses of its volumes */
};

struct plan_volume {
	uint32_t size_kib, use;
	unsigned at;	   /* its partition */
	bool fixed;	   /* it stays */
	unsigned moves_to; /* the result; `at`: it stays */
};

struct plan_aims {
	double tolerance; /* of the fill, a share of the size; and of the use, a share of the mean */
	bool use;	  /* level that, too */
	size_t most;	  /* moves */
};

/* Fill in moves_to. The number of moves; the partitions are as they will be afterwards. */
size_t plan_moves(struct plan_partition *partitions, unsigned partition_count,
		  struct plan_volume *volumes, size_t volume_count, const struct plan_aims *aims);
/* Used ÷ size. */
double plan_fill(const struct plan_partition *partition);

#endif
