/* SPDX-License-Identifier: BSD-2-Clause */
/* Objects that a command copies at the same time, by the threads of --jobs. */
#ifndef COPY_COPYJOBS_H
#define COPY_COPYJOBS_H

#include "afscp/run.h"

struct copyjobs;

struct job_kind {
	enum copy_result (*work)(struct run *run, void *arg); /* frees `arg` */
	void (*drop)(void *arg);			      /* frees `arg` instead */
};

/*
 * Of `sources` of the command line. With --jobs 1, or for a single file, there are no threads: copyjobs_add() does the
 * job. 0, or -1 after a message.
 */
int copyjobs_open(struct run *run, size_t sources, struct copyjobs **jobs);
/*
 * Have a job done. Waits while two jobs of each thread wait. Failed jobs are counted in run->failed. COPY_STOP: a job has
 * returned that; jobs that have not begun are dropped.
 */
enum copy_result copyjobs_add(struct copyjobs *jobs, const struct job_kind *kind, void *arg);
/* Wait for all jobs. COPY_GOOD or COPY_STOP. */
enum copy_result copyjobs_wait(struct copyjobs *jobs);
/* Wait for them, and end the threads. NULL is allowed. */
void copyjobs_close(struct copyjobs *jobs);

#endif
