/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Merging the extents of files in the background, with a thread of its own, because the thread
 * that flushes must not wait for reading. A file that was written or read and has many extents is
 * noted. When it is left alone, or when its list is long, neighbouring extents are copied to one, a
 * bounded number of bytes at a time, each time in an ordinary transaction. Notes are not
 * stored: the next writer or reader notes the file again.
 */
#ifndef STORE_MERGE_H
#define STORE_MERGE_H

#include "volume/store/txn/core.h"

struct merger;

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
