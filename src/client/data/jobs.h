/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads for calls that nobody's thread waits in: fetches ahead, background stores, writes to the disk cache. */
#ifndef CLIENT_DATA_JOBS_H
#define CLIENT_DATA_JOBS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define JOBS_LANES 512 /* and threads at most */

/* Part of the structure that the job works on, which lives until run() ends it. */
struct job {
	void (*run)(struct job *job);
	uint64_t
		lane; /* jobs of one lane have a share of the threads: a volume whose server is dead does not occupy all; upper half: its cell */
	unsigned most; /* threads of the lane; 0: the usual share */
	struct job *next;
};

struct jobs {
	pthread_mutex_t lock; /* innermost: held by nobody who takes another lock */
	pthread_cond_t wake, quiet;
	struct job *first, **last; /* that wait */
	unsigned waiting, threads, idle, running, threads_most;
	bool stop;
	struct {
		uint64_t lane;
		unsigned running;
	} lanes[JOBS_LANES]; /* with running jobs, below lanes_used */
	unsigned lanes_used;
};

/* 0 or a negative errno value. */
int jobs_start(struct jobs *jobs, unsigned threads_most);
/* Waits until all jobs are done. No more may be added. */
void jobs_stop(struct jobs *jobs);
/* Never waits, never fails: if no more threads can be made, the present ones do it. The first one exists from jobs_start() on. */
void jobs_add(struct jobs *jobs, struct job *job);

#endif
