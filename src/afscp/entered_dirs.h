/* SPDX-License-Identifier: BSD-2-Clause */
/* The directories of a volume that a walk has entered, so that it enters none twice. */
#ifndef COPY_ENTERED_DIRS_H
#define COPY_ENTERED_DIRS_H

#include <stddef.h>
#include <stdint.h>

#include "afs/rxafs.h"

/* All zeros at first; one thread. */
struct entered_dirs {
	uint64_t *list; /* by vnode and uniquifier: open addressing, 0 = free */
	size_t room, count;
};

/* 0: the directory is new. 1: it was entered before. -1: no memory. */
int entered_dirs_add(struct entered_dirs *dirs, const AFSFid *fid);
void entered_dirs_free(struct entered_dirs *dirs);

#endif
