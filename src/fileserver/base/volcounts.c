/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters of each volume: a table of a fixed size, whose pages take memory once they are used. */
#include "fileserver/base/base.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>

#define SLOTS 65536 /* a power of two */
#define STEPS 64    /* slots that are looked at */

struct slot {
	_Atomic uint32_t id; /* of the volume; 0: unused */
	_Atomic uint64_t count[FSD_VOLUME_COUNTERS];
};

struct fsd_volume_counts {
	struct slot slot[SLOTS];
};

struct fsd_volume_counts *fsd_volume_counts_create(void)
{
	return calloc(1, sizeof(struct fsd_volume_counts));
}

void fsd_volume_counts_destroy(struct fsd_volume_counts *counts)
{
	free(counts);
}

/* The slot of a volume, with `make` a new one if it has none. NULL: it has none. */
static struct slot *find_volume_slot(struct fsd_volume_counts *counts, uint32_t id, bool make)
{
	uint32_t at = id * 2654435761u >> 16; /* ids of neighbours are spread */

	for (unsigned i = 0; i < STEPS; i++) {
		struct slot *slot = &counts->slot[(at + i) % SLOTS];
		uint32_t found = atomic_load_explicit(&slot->id, memory_order_relaxed);

		if (!found && !make)
			return NULL;
		if (found == id ||
		    (!found && atomic_compare_exchange_strong(&slot->id, &found, id)) ||
		    found == id)
			return slot;
	}
	return NULL;
}

void fsd_volume_count(struct fsd_volume_counts *counts, uint32_t id,
		      enum fsd_volume_counter counter, uint64_t n)
{
	struct slot *slot;

	assert(counter < FSD_VOLUME_COUNTERS);
	if (!counts || !id)
		return;
	slot = find_volume_slot(counts, id, true);
	if (slot)
		atomic_fetch_add_explicit(&slot->count[counter], n, memory_order_relaxed);
}

uint64_t fsd_volume_counted(const struct fsd_volume_counts *counts, uint32_t id,
			    enum fsd_volume_counter counter)
{
	struct slot *slot =
		id && counts
			? find_volume_slot((struct fsd_volume_counts *)(uintptr_t)counts, id, false)
			: NULL;

	return slot ? atomic_load_explicit(&slot->count[counter], memory_order_relaxed) : 0;
}
