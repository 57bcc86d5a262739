/* SPDX-License-Identifier: BSD-2-Clause */
/* The number of files and bytes that get -r will copy, counted beside the copying. */
#ifndef COPY_GETCOUNT_H
#define COPY_GETCOUNT_H

#include "afscp/copy.h"

struct counting;

/*
 * Start a thread that counts the files and bytes of all sources, with a client of its own, and then
 * sets the totals of the run. It reports nothing; after a failure the totals stay unknown. NULL: it
 * could not be started.
 */
struct counting *count_start(struct run *run);
/* End it at once, complete or not. NULL is allowed. */
void count_end(struct counting *counting);

#endif
