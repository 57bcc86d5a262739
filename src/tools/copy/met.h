/* SPDX-License-Identifier: BSD-2-Clause */
/* The directories of a volume that were entered, so that none is entered twice. */
#ifndef COPY_MET_H
#define COPY_MET_H

#include <stddef.h>
#include <stdint.h>

#include "afs/rxafs.h"

/* All zeros at first; one thread. */
struct met {
	uint64_t *list; /* by vnode and uniquifier: open addressing, 0 = free */
	size_t room, count;
};

/* 0: the directory is new. 1: it was entered before. -1: no memory. */
int meet(struct met *met, const AFSFid *fid);
void met_free(struct met *met);

#endif
