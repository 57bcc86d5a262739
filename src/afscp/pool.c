/* SPDX-License-Identifier: BSD-2-Clause */
/* A queue of jobs, and the threads that take them. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/held.h"
#include "program/message.h"
#include "afscp/pool.h"

#define WAITING 2 /* jobs that may wait for each thread */

struct job {
	pool_work work;
	void (*drop)(void *arg);
	void *arg;
	char volume[VL_MAXNAMELEN];
};

struct pool {
	struct copy *copy; /* of the thread that adds jobs */
	size_t threads, running;
	pthread_t *thread; /* `running` of them */
	struct copy *copies;

	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t more;  /* a job, or the end */
	pthread_cond_t less;  /* room, or nothing left to do */
	struct job *queue;    /* a ring */
	size_t room, first, count, busy;
	bool ending, stopped;
};

/* Do a job with the client of this thread. */
static enum copy_result do_job(struct pool *p, struct copy *copy, struct job *job)
{
	const struct copy_source source = {.volume = job->volume, .path = ""};
	enum copy_result rc;

	if (copy_locate(copy, &source) < 0) {
		job->drop(job->arg);
		rc = COPY_STOP;
	} else {
		rc = job->work(copy, job->arg);
	}
	if (rc != COPY_GOOD)
		atomic_fetch_add(&p->copy->run->failed, 1);
	return rc;
}

/* Take the next job. False: the end. */
static bool take_job(struct pool *p, struct job *job)
{
	assert(mutex_is_held(&p->lock));
	while (p->count == 0 && !p->ending)
		pthread_cond_wait(&p->more, &p->lock);
	if (p->count == 0)
		return false;
	*job = p->queue[p->first];
	p->first = (p->first + 1) % p->room;
	p->count--;
	p->busy++;
	pthread_cond_broadcast(&p->less);
	return true;
}

struct start {
	struct pool *pool;
	struct copy *copy;
};

static void *do_jobs(void *arg)
{
	struct start start = *(struct start *)arg;
	struct pool *p = start.pool;
	struct job job;

	free(arg);
	pthread_mutex_lock(&p->lock);
	while (take_job(p, &job)) {
		bool stopped = p->stopped;
		enum copy_result rc = COPY_STOP;

		pthread_mutex_unlock(&p->lock);
		if (stopped)
			job.drop(job.arg);
		else
			rc = do_job(p, start.copy, &job);
		pthread_mutex_lock(&p->lock);
		p->stopped |= rc == COPY_STOP;
		p->busy--;
		pthread_cond_broadcast(&p->less);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

static int start_pool_thread(struct pool *p)
{
	struct start *start = malloc(sizeof(*start));
	struct copy *copy = &p->copies[p->running];
	int rc = ENOMEM;

	if (copy_open(p->copy->run, copy) < 0) {
		free(start);
		return -1;
	}
	if (start) {
		*start = (struct start){.pool = p, .copy = copy};
		rc = pthread_create(&p->thread[p->running], NULL, do_jobs, start);
	}
	if (rc) {
		tools_error("cannot start a thread: %s; use a lower --jobs", strerror(rc));
		free(start);
		copy_close(copy);
		return -1;
	}
	p->running++;
	return 0;
}

int pool_open(struct copy *copy, size_t sources, struct pool **pool)
{
	bool many = copy->set->jobs > 1 && (sources > 1 || copy->set->recursive);
	struct pool *p = calloc(1, sizeof(*p));

	if (p) {
		p->copy = copy;
		p->threads = many ? (size_t)copy->set->jobs : 0;
		p->room = WAITING * p->threads;
		pthread_mutex_init(&p->lock, NULL);
		pthread_cond_init(&p->more, NULL);
		pthread_cond_init(&p->less, NULL);
		p->thread = calloc(p->threads + 1, sizeof(*p->thread));
		p->copies = calloc(p->threads + 1, sizeof(*p->copies));
		p->queue = calloc(p->room + 1, sizeof(*p->queue));
	}
	if (!p || !p->thread || !p->copies || !p->queue) {
		tools_error("no memory");
		pool_close(p);
		return -1;
	}
	while (p->running < p->threads)
		if (start_pool_thread(p) < 0) {
			pool_close(p);
			return -1;
		}
	*pool = p;
	return 0;
}

enum copy_result pool_add(struct pool *p, pool_work work, void (*drop)(void *arg), void *arg)
{
	struct job job = {.work = work, .drop = drop, .arg = arg};
	enum copy_result rc = COPY_GOOD;

	memcpy(job.volume, p->copy->volume.name, sizeof(job.volume));
	if (p->threads == 0) {
		rc = work(p->copy, arg);
		if (rc != COPY_GOOD)
			atomic_fetch_add(&p->copy->run->failed, 1);
		return rc == COPY_STOP ? COPY_STOP : COPY_GOOD;
	}
	pthread_mutex_lock(&p->lock);
	while (p->count == p->room && !p->stopped)
		pthread_cond_wait(&p->less, &p->lock);
	if (p->stopped) {
		rc = COPY_STOP;
	} else {
		assert(p->count < p->room);
		p->queue[(p->first + p->count++) % p->room] = job;
		pthread_cond_signal(&p->more);
	}
	pthread_mutex_unlock(&p->lock);
	if (rc == COPY_STOP)
		drop(arg);
	return rc;
}

enum copy_result pool_wait(struct pool *p)
{
	enum copy_result rc;

	pthread_mutex_lock(&p->lock);
	while (p->count || p->busy)
		pthread_cond_wait(&p->less, &p->lock);
	rc = p->stopped ? COPY_STOP : COPY_GOOD;
	pthread_mutex_unlock(&p->lock);
	return rc;
}

void pool_close(struct pool *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->ending = true;
	pthread_cond_broadcast(&p->more);
	pthread_mutex_unlock(&p->lock);
	for (size_t i = 0; i < p->running; i++)
		pthread_join(p->thread[i], NULL);
	/* All at once, since a server may not answer. */
	if (p->running && !copy_interrupted(p->copy))
		run_give_up(p->copy->run, GIVE_UP_MS);
	for (size_t i = 0; i < p->running; i++)
		copy_close(&p->copies[i]);
	pthread_cond_destroy(&p->less);
	pthread_cond_destroy(&p->more);
	pthread_mutex_destroy(&p->lock);
	free(p->queue);
	free(p->copies);
	free(p->thread);
	free(p);
}
