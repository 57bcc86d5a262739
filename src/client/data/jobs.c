/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads for calls that nobody's thread waits in. */
#include "client/data/jobs.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>

#include "common/clock.h"
#include "common/held.h"
#include "common/sigmask.h"

#define IDLE_NS (10ull * NS_PER_S) /* a thread without work ends after it */

/* The index of a lane that has running jobs, or of a free place; JOBS_LANES if all are in use. */
static unsigned find_lane(const struct jobs *jobs, uint64_t lane)
{
	unsigned place = JOBS_LANES;

	for (unsigned i = 0; i < JOBS_LANES; i++) {
		if (jobs->lanes[i].running && jobs->lanes[i].lane == lane)
			return i;
		if (!jobs->lanes[i].running && place == JOBS_LANES)
			place = i;
	}
	return place;
}

/* The first job whose lane has not its share of the threads. NULL: none. */
static struct job *take_job(struct jobs *jobs, unsigned *lane)
{
	assert(mutex_is_held(&jobs->lock));
	for (struct job **at = &jobs->first, *job; (job = *at) != NULL; at = &job->next) {
		*lane = find_lane(jobs, job->lane);
		if (*lane == JOBS_LANES ||
		    jobs->lanes[*lane].running >= (job->most ? job->most : jobs->share))
			continue;
		*at = job->next;
		jobs->waiting--;
		if (!*at)
			jobs->last = at;
		jobs->lanes[*lane].lane = job->lane;
		jobs->lanes[*lane].running++;
		return job;
	}
	return NULL;
}

static void *work_on_jobs(void *arg)
{
	struct jobs *jobs = arg;
	unsigned lane;

	pthread_mutex_lock(&jobs->lock);
	while (1) {
		struct job *job = take_job(jobs, &lane);

		if (job) {
			pthread_mutex_unlock(&jobs->lock);
			job->run(job);
			pthread_mutex_lock(&jobs->lock);
			jobs->lanes[lane].running--;
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

	assert(threads_most > 0);
	*jobs = (struct jobs){.threads_most = threads_most,
			      .share = threads_most < 4 ? 1 : threads_most / 4};
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
	pthread_mutex_lock(&jobs->lock);
	assert(!jobs->stop);
	job->next = NULL;
	*jobs->last = job;
	jobs->last = &job->next;
	jobs->waiting++;
	if (jobs->idle < jobs->waiting && jobs->threads < jobs->threads_most)
		add_job_thread(jobs);
	pthread_cond_signal(&jobs->wake);
	pthread_mutex_unlock(&jobs->lock);
}
