/* SPDX-License-Identifier: BSD-2-Clause */
/* Work in the background, with two threads: one flushes, one merges extents. */
#ifndef STORE_MAINT_H
#define STORE_MAINT_H

#include "volume/store/txn/core.h"

/* -- flushes, names of objects, checkpoints, pruning -- */

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

/*
 * Remove rows that only removed clones showed, or those of removed volumes: one small transaction. *more: there is more to do.
 * `group`: of this group only; 0: what comes first.
 */
int prune_step(struct core *core, uint32_t group, bool *more);
/*
 * A vnode may have a row for each clone that waits to be pruned, and an operation looks at all of them. So the caller who makes
 * a clone prunes until fewer than PRUNE_MOST of the group wait.
 */
#define PRUNE_MOST 16
int prune_until_few(struct core *core, uint32_t group);

/*
 * -- bytes of objects that a flush lost: the database has a record of them, so that they are an error also after a restart. It
 * is written before the mark moves over the commits that refer to them --
 */

/* When the store is opened: take over the records. 0 or a result of the database. */
int lost_load(struct core *core, struct db *db);
/* Record what was lost since, before there is a thread that commits. The same. */
int lost_record_first(struct core *core, struct db *db);
/* -EIO: bytes of a file's newest version are lost. */
int lost_check(struct core *core, const struct store_fid *fid);

/*
 * -- merging the extents of files, with a thread of its own, because the thread that flushes must not wait for reading. A file
 * that was written or read and has many extents is noted. When it is left alone, or when its list is long, neighbouring extents
 * are copied to one, a bounded number of bytes at a time, each time in an ordinary transaction. Notes are not stored: the next
 * writer or reader notes the file again --
 */

/* `idle_ms`: as store_options.merge_ms; `least`: extents of a file that is noted. 0 or -ENOMEM. */
int merge_create(struct core *core, unsigned idle_ms, uint32_t least, struct merger **merger);
int merge_start(struct merger *merger); /* 0 or -errno */
/* Ends at once: a step that is being copied is given up. NULL is allowed. */
void merge_stop(struct merger *merger);
void merge_destroy(struct merger *merger); /* NULL is allowed */

/* Any thread; never waits long. `written`: the list is a new one; else the file was read. */
void merge_note(struct merger *merger, const struct store_fid *fid,
		const struct store_content *content, uint64_t length, bool written);
/* Everything that is noted, in this thread. 0 or the first result that is not. */
int merge_all(struct merger *merger);

struct merge_counts {
	uint64_t waiting; /* files, now */
	uint64_t extents; /* by which lists became shorter */
	uint64_t bytes;	  /* that were copied */
};
void merge_counts(struct merger *merger, struct merge_counts *counts);

#endif
