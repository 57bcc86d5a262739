/* SPDX-License-Identifier: BSD-2-Clause */
/* Removing the rows that only removed clones showed, and those of removed volumes. */
#ifndef STORE_PRUNE_H
#define STORE_PRUNE_H

#include "volume/store/txn/core.h"

/* One small transaction. *more: there is more to do. */
int prune_step(struct core *core, bool *more);

#endif
