/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads for calls that nobody's thread waits in. */
#include "client/data/jobs.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>

#include "common/clock.h"
#include "common/held.h"
#include "common/sigmask.h"

#define LANE_MOST 16
#define CELL_PART 4		     /* of the threads that are left, for one cell */
#define LANE_PART 2		     /* of those that its cell has left, for one lane */
#define FULL_LANES 256		      /* that a search remembers */
#define IDLE_NS	  (10ull * NS_PER_S) /* a thread without work ends after it */

/*
 * The index of a lane that has running jobs, or else of a free place. *of_cell: how many of all lanes of the cell are running. There is
 * a place, since there are as many as threads.
 */
static unsigned find_lane(const struct jobs *jobs, uint64_t lane, unsigned *of_cell)
{
	unsigned place = jobs->lanes_used, found = jobs->lanes_used;

	*of_cell = 0;
	for (unsigned i = 0; i < jobs->lanes_used; i++) {
		if (!jobs->lanes[i].running) {
			place = i;
			continue;
		}
		if (jobs->lanes[i].lane >> 32 == lane >> 32)
			*of_cell += jobs->lanes[i].running;
		if (jobs->lanes[i].lane == lane)
			found = i;
	}
	return found < jobs->lanes_used ? found : place;
}

/*
 * Whether the job may have a thread. A cell has a part of the threads that are left, and a lane a part of those that its cell has
 * left: however many are dead, others get a thread. *lane: its index.
 */
static bool lane_has_room(const struct jobs *jobs, const struct job *job, unsigned *lane)
{
	unsigned left = jobs->threads_most - jobs->running, most = left / CELL_PART;
	unsigned of_cell, running;

	if (!left)
		return false;
	*lane = find_lane(jobs, job->lane, &of_cell);
	running = *lane < jobs->lanes_used ? jobs->lanes[*lane].running : 0;
	if (running >= (job->most ? job->most : LANE_MOST))
		return false;
	return !of_cell || (of_cell < most && running <= (most - of_cell) / LANE_PART);
}

/* A lane that has no room, for jobs with that `most`. */
struct full_lane {
	uint64_t lane;
	unsigned most;
	bool full;
};

/*
 * Where the first job is that may have a thread. NULL: there is none. Thousands of jobs may wait for servers that are away, so the room of
 * a lane is not looked for at each of its jobs.
 */
static struct job **find_job(struct jobs *jobs, unsigned *lane)
{
	struct full_lane seen[FULL_LANES] = {{0}};

	assert(mutex_is_held(&jobs->lock));
	for (struct job **at = &jobs->first; *at; at = &(*at)->next) {
		const struct job *job = *at;
		struct full_lane *same = &seen[(job->lane ^ job->lane >> 32 << 4) % FULL_LANES];

		if (same->full && same->lane == job->lane && same->most == job->most)
			continue;
		if (lane_has_room(jobs, job, lane))
			return at;
		*same = (struct full_lane){.lane = job->lane, .most = job->most, .full = true};
	}
	return NULL;
}

static struct job *take_job(struct jobs *jobs, unsigned *lane)
{
	struct job **at = find_job(jobs, lane), *job;

	if (!at)
		return NULL;
	job = *at;
	*at = job->next;
	jobs->waiting--;
	if (!*at)
		jobs->last = at;
	assert(*lane < JOBS_LANES);
	if (*lane == jobs->lanes_used)
		jobs->lanes[jobs->lanes_used++].running = 0;
	jobs->lanes[*lane].lane = job->lane;
	jobs->lanes[*lane].running++;
	jobs->running++;
	return job;
}

static void leave_lane(struct jobs *jobs, unsigned lane)
{
	assert(jobs->running && jobs->lanes[lane].running);
	jobs->running--;
	jobs->lanes[lane].running--;
	while (jobs->lanes_used && !jobs->lanes[jobs->lanes_used - 1].running)
		jobs->lanes_used--;
}

static int add_job_thread(struct jobs *jobs);

/* A job that has ended may make room for several. */
static void call_for_next_job(struct jobs *jobs)
{
	unsigned lane;

	if (!jobs->first || !find_job(jobs, &lane))
		return;
	if (!jobs->idle && jobs->threads < jobs->threads_most)
		add_job_thread(jobs);
	pthread_cond_signal(&jobs->wake);
}

static void *work_on_jobs(void *arg)
{
	struct jobs *jobs = arg;
	unsigned lane;

	pthread_mutex_lock(&jobs->lock);
	while (1) {
		struct job *job = take_job(jobs, &lane);

		if (job) {
			call_for_next_job(jobs);
			pthread_mutex_unlock(&jobs->lock);
			job->run(job);
			pthread_mutex_lock(&jobs->lock);
			leave_lane(jobs, lane);
			continue;
		}
		if (jobs->stop && !jobs->first)
			break;
		jobs->idle++;
		if (monotonic_wait(&jobs->wake, &jobs->lock, monotonic_ns() + IDLE_NS) ==
			    ETIMEDOUT &&
		    jobs->threads > 1 && !jobs->first) {
			jobs->idle--;
			break;
		}
		jobs->idle--;
	}
	jobs->threads--;
	if (jobs->stop)
		pthread_cond_broadcast(&jobs->wake);
	pthread_cond_broadcast(&jobs->quiet);
	pthread_mutex_unlock(&jobs->lock);
	return NULL;
}

/* 0 or an error number. */
static int add_job_thread(struct jobs *jobs)
{
	pthread_t thread;
	int error = create_thread_without_signals(&thread, work_on_jobs, jobs);

	if (error)
		return error;
	pthread_detach(thread);
	jobs->threads++;
	return 0;
}

int jobs_start(struct jobs *jobs, unsigned threads_most)
{
	int error;

	assert(threads_most > 0 && threads_most <= JOBS_LANES);
	*jobs = (struct jobs){.threads_most = threads_most};
	jobs->last = &jobs->first;
	pthread_mutex_init(&jobs->lock, NULL);
	monotonic_cond_init(&jobs->wake);
	monotonic_cond_init(&jobs->quiet);
	pthread_mutex_lock(&jobs->lock);
	error = add_job_thread(jobs);
	pthread_mutex_unlock(&jobs->lock);
	return -error;
}

void jobs_stop(struct jobs *jobs)
{
	pthread_mutex_lock(&jobs->lock);
	jobs->stop = true;
	pthread_cond_broadcast(&jobs->wake);
	while (jobs->threads)
		pthread_cond_wait(&jobs->quiet, &jobs->lock);
	assert(!jobs->first);
	pthread_mutex_unlock(&jobs->lock);
	pthread_cond_destroy(&jobs->wake);
	pthread_cond_destroy(&jobs->quiet);
	pthread_mutex_destroy(&jobs->lock);
}

void jobs_add(struct jobs *jobs, struct job *job)
{
	unsigned lane;

	pthread_mutex_lock(&jobs->lock);
	assert(!jobs->stop);
	job->next = NULL;
	*jobs->last = job;
	jobs->last = &job->next;
	jobs->waiting++;
	if (lane_has_room(jobs, job, &lane)) {
		if (jobs->idle < jobs->waiting && jobs->threads < jobs->threads_most)
			add_job_thread(jobs);
		pthread_cond_signal(&jobs->wake);
	}
	pthread_mutex_unlock(&jobs->lock);
}
