/* SPDX-License-Identifier: BSD-2-Clause */
/* What reading, making and putting back whole volumes share. */
#ifndef STORE_WHOLE_H
#define STORE_WHOLE_H

#include "volume/store/transfer.h"
#include "volume/store/txn/core.h"
#include "volume/store/txn/lookup.h"

/* The administrator, to whom neither rights nor states apply. */
extern const struct store_caller whole_caller;

/* Vnodes that a view shows, in the order of their numbers. One thread. */
#define WHOLE_BATCH 1024
struct whole_scan {
	struct outline item[WHOLE_BATCH];
	unsigned at, count;
	uint32_t after; /* of the last call */
	bool directories, begun, ended; /* which ones; whether `item` has some; there are no more */
};
/* The next one above `after`, in ascending order: 0 or -ENOENT. It may be damaged. */
int whole_next(struct core *core, const struct view *view, struct whole_scan *scan,
	       bool directories, uint32_t after, struct outline *outline);

/*
 * Keep what a read-write volume shows from now on. *rec: its record, with the epoch that shows that. STORE_VBUSY: another one
 * has that. And end it: rec->epoch is the one that was kept.
 */
int whole_snapshot_take(struct core *core, uint32_t id, struct volrec *rec);
int whole_snapshot_end(struct core *core, const struct volrec *rec);

/* The contents of one version that cannot change meanwhile. */
int read_open_found(struct core *core, const struct found *found, struct store_reader **reader);

/*
 * Put all that changed after an epoch in a busy volume back to what it was then, and end that state. `snapshot`: nobody saw
 * what is dropped, so that data versions return as well, and the snapshot ends.
 */
int revert_volume(struct core *core, uint32_t id, uint32_t epoch, bool snapshot);
/* When the store is closed: the next start puts back what could not be. */
void restores_forget(struct core *core);
/* When the store is opened: a volume that an earlier process was putting back to a clone. 0 or a result. */
int revert_begun(struct core *core, const struct volrec *rec);

/*
 * When the store is opened: end what an earlier process has begun. A volume of which that fails is reported, and stays busy or
 * hidden. 0 or a result.
 */
int whole_recover(struct core *core);

#endif
