/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads that copy files at the same time (--jobs), each with a client of its own. */
#ifndef COPY_POOL_H
#define COPY_POOL_H

#include "afscp/copy.h"

struct pool;

/* A job: handles one object, and frees `arg`. */
typedef enum copy_result (*pool_work)(struct copy *copy, void *arg);

/*
 * Of `sources` of the command line. With --jobs 1, or for a single file, there are no threads:
 * pool_add() does the job. 0, or -1 after a message.
 */
int pool_open(struct copy *copy, size_t sources, struct pool **pool);
/*
 * Have a job done in the volume that is current for `copy`, which is the thread of pool_open().
 * Waits while the queue is full. Failed jobs are counted in run->failed. COPY_STOP: a job has
 * returned that; then and at the end of the pool `drop` frees the arguments of jobs that are not
 * done.
 */
enum copy_result pool_add(struct pool *pool, pool_work work, void (*drop)(void *arg), void *arg);
/* Wait for all jobs. COPY_GOOD or COPY_STOP. */
enum copy_result pool_wait(struct pool *pool);
/* End the threads. NULL is allowed. */
void pool_close(struct pool *pool);

#endif
