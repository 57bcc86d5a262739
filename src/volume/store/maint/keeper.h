/* SPDX-License-Identifier: BSD-2-Clause */
/* The thread in the background: flushes, names of objects, checkpoints, pruning. */
#ifndef STORE_KEEPER_H
#define STORE_KEEPER_H

#include "volume/store/txn/core.h"

/* 0 or -errno. Begins the work that an earlier process left. */
int keeper_create(struct core *core, struct keeper **keeper);
/* Starts the thread. */
int keeper_start(struct keeper *keeper);
/* Everything is flushed, and the thread has ended. NULL is allowed. 0 or a result. */
int keeper_stop(struct keeper *keeper);
void keeper_destroy(struct keeper *keeper); /* NULL is allowed */

/* Everything that was committed before the call is on stable storage. Callers share flushes. */
int keeper_flush(struct keeper *keeper);
/* For struct txn_options. */
void keeper_committed(void *keeper, const struct object_list *made, const struct object_list *dead);
/*
 * Called by the thread that commits: waits while the write-ahead log is too long and is being moved
 * to the database.
 */
void keeper_admit(void *keeper);
/* Called by the thread that commits: move the log to the database, so that it starts again. */
void keeper_full(void *keeper);
/* There is something to prune. */
void keeper_wake(struct keeper *keeper);
void keeper_counts(struct keeper *keeper, uint64_t *flushes, uint64_t *pruning);

#endif
