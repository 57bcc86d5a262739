/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads for jobs that may wait. */
#include "fileserver/base/base.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/cpus.h"

#define LATE_NS NS_PER_MS /* a job has waited for long: its threads wait for the disk */

struct fsd_pool {
	unsigned most, few;   /* constant; `few` threads suffice while none of them waits */
	pthread_mutex_t lock; /* covers the rest */
	pthread_cond_t work;  /* a job was queued, or `stop` */
	struct fsd_job *first, **last;
	unsigned queued, idle, threads;
	bool stop;
	pthread_t thread[]; /* `threads` of them */
};

/* With the lock held. NULL: the thread ends. */
static struct fsd_job *await_job(struct fsd_pool *pool)
{
	struct fsd_job *job;

	pool->idle++;
	while (!pool->first && !pool->stop)
		pthread_cond_wait(&pool->work, &pool->lock);
	pool->idle--;
	job = pool->first;
	if (!job)
		return NULL;
	pool->first = job->next;
	if (!pool->first)
		pool->last = &pool->first;
	pool->queued--;
	return job;
}

static void *run_jobs(void *arg)
{
	struct fsd_pool *pool = arg;
	struct fsd_job *job;

	pthread_mutex_lock(&pool->lock);
	while ((job = await_job(pool)) != NULL) {
		pthread_mutex_unlock(&pool->lock);
		job->run(job);
		pthread_mutex_lock(&pool->lock);
	}
	pthread_mutex_unlock(&pool->lock);
	return NULL;
}

/* With the lock held, before a job is queued: whether one more thread would help. */
static bool wants_thread(const struct fsd_pool *pool, uint64_t now)
{
	if (pool->idle > pool->queued || pool->threads == pool->most)
		return false;
	return pool->threads < pool->few || (pool->first && now - pool->first->since > LATE_NS);
}

/* With the lock held. False: there is none at all. */
static bool add_thread(struct fsd_pool *pool)
{
	if (!pthread_create(&pool->thread[pool->threads], NULL, run_jobs, pool))
		pool->threads++;
	return pool->threads > 0;
}

struct fsd_pool *fsd_pool_create(unsigned most)
{
	struct fsd_pool *pool = calloc(1, sizeof(*pool) + most * sizeof(pthread_t));

	assert(most > 0);
	if (!pool)
		return NULL;
	pool->most = most;
	pool->few = 2 * cpus_allowed();
	pool->last = &pool->first;
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->work, NULL);
	return pool;
}

void fsd_pool_destroy(struct fsd_pool *pool)
{
	if (!pool)
		return;
	pthread_mutex_lock(&pool->lock);
	pool->stop = true;
	pthread_cond_broadcast(&pool->work);
	pthread_mutex_unlock(&pool->lock);
	while (pool->threads)
		pthread_join(pool->thread[--pool->threads], NULL);
	pthread_cond_destroy(&pool->work);
	pthread_mutex_destroy(&pool->lock);
	free(pool);
}

bool fsd_pool_ready(struct fsd_pool *pool)
{
	bool ready;

	pthread_mutex_lock(&pool->lock);
	ready = pool->threads || add_thread(pool);
	pthread_mutex_unlock(&pool->lock);
	return ready;
}

void fsd_pool_post(struct fsd_pool *pool, struct fsd_job *job)
{
	uint64_t now = monotonic_ns();

	pthread_mutex_lock(&pool->lock);
	assert(pool->threads > 0);
	if (wants_thread(pool, now))
		add_thread(pool);
	job->since = now;
	job->next = NULL;
	*pool->last = job;
	pool->last = &job->next;
	pool->queued++;
	pthread_cond_signal(&pool->work);
	pthread_mutex_unlock(&pool->lock);
}
