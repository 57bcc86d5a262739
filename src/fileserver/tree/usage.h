/* SPDX-License-Identifier: BSD-2-Clause */
/* How many objects the export has and what they take: counted in the background when somebody asks. */
#ifndef FILESERVER_USAGE_H
#define FILESERVER_USAGE_H

#include <stdint.h>

#include "fileserver/tree/tree.h"

struct fsd_usage;

/* Objects, directories among them, and the KiB of their contents; each takes one at least. */
struct fsd_used {
	uint64_t objects, kib;
};

/* Start the thread that counts; it waits until it is asked. The layer must outlive it. NULL without memory. */
struct fsd_usage *fsd_usage_start(struct fsd_layer *layer);
/* Ends a count in progress. NULL is allowed. */
void fsd_usage_stop(struct fsd_usage *usage);

/*
 * What was counted last. A result that is older than 10 minutes is counted again, which takes as long as
 * to look at every file; wait for at most wait_ms until that has ended. Until the first count has ended
 * the sums so far are given. Any thread. usage may be NULL: zeros.
 */
void fsd_usage_get(struct fsd_usage *usage, unsigned wait_ms, struct fsd_used *used);

#endif
