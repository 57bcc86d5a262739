/* SPDX-License-Identifier: BSD-2-Clause */
/* One step of merging: which extents, the copy, and the transaction. */
#ifndef STORE_MERGESTEP_H
#define STORE_MERGESTEP_H

#include "volume/store/txn/core.h"

/* Other rows of a vnode: those of two clones, and some that wait to be pruned. */
#define MERGE_CLONES 4

/* A pass over the extents of a file. One thread at a time. */
struct merge_pass {
	struct core *core;
	struct store_fid fid;
	const _Atomic bool *stop;
	uint64_t at;	  /* the next offset to look at */
	uint32_t extents; /* of the last step: by which the list became shorter */
	uint64_t bytes;	  /* of the last step: copied */
	/* The lists of other rows of the vnode, as they were when the pass began. */
	bool begun;
	struct store_content other[MERGE_CLONES];
	unsigned others;
};

/* Extents from which merging does not wait until a file is left alone. */
static inline uint32_t merge_urgent(uint64_t length)
{
	return store_extents_limit(length) / 2;
}

/* 0; -ENODATA: the pass is at its end; or a result with which it ends. */
int merge_step(struct merge_pass *pass);
void merge_pass_end(struct merge_pass *pass);

#endif
