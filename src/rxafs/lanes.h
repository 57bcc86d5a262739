/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work in queues, one for each server, with a bound of what runs at a time for one server, one cell, and all. A cell gets a part of
 * what the others have left, and the last threads are for cells whose work was over soon before: so no number of cells that keep
 * their work occupies all. The user has a lock.
 */
#ifndef RXAFS_LANES_H
#define RXAFS_LANES_H

#include <rxafs/daemon.h>

/* At a time. */
#define LANE_SERVER_MOST 4u
#define LANE_CELL_MOST	 8u
#define LANE_CELL_PART	 8u /* of what is left: one in this many */
#define LANE_RESERVE	 4u /* of all: one in this many */

struct lane;
struct cell_work;

/* The first member of a piece of work. */
struct lane_item {
	struct lane_item *next;
	struct lane *lane;
	uint64_t started; /* monotonic_ns() */
};

struct lanes {
	struct lane
		*first; /* with work that waits or runs, in the order in which they are looked at */
	struct cell_work
		*cells; /* also idle ones: whether their work is over soon is known of them */
	unsigned most;	/* at a time; set it first */
	unsigned running;
};

/* False: no memory. */
bool lanes_add(struct lanes *lanes, const struct rxafs_awaited *server, struct lane_item *item);
/* NULL: nothing may run now. `unbounded`: without regard to the bounds. */
struct lane_item *lanes_take(struct lanes *lanes, bool unbounded);
/* Whether lanes_take() would give something. */
bool lanes_ready(const struct lanes *lanes);
/* What was taken has ended: item->lane and ->started. */
void lanes_done(struct lanes *lanes, struct lane *lane, uint64_t started);
/* Nothing is in the queues any more. */
void lanes_free(struct lanes *lanes);

#endif
