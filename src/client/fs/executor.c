/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads for operations that wait for servers. Each server has a share of them: a dead one never has all, and what exceeds
 * the share waits in a list without a thread.
 */
#include <errno.h>
#include <stdlib.h>

#include "client/fs/operate.h"
#include "common/clock.h"

#define THREADS_MOST 512
#define SHARE	     64
#define IDLE_NS	     (10 * (uint64_t)NS_PER_S)
#define SHARES	     64 /* servers whose numbers differ by this count have one share together */

struct job {
	struct job *next;
	void (*run)(void *arg);
	void *arg;
	unsigned share;
};

struct queue {
	struct job *first, **last;
};

struct share {
	struct queue waiting;
	unsigned running; /* or ready */
};

struct fs_executor {
	pthread_mutex_t lock;
	pthread_cond_t some, ended;
	struct queue ready;
	struct share shares[SHARES];
	unsigned threads, idle, pending; /* pending: jobs in `ready` */
	bool ending;
};

static void queue_init(struct queue *q)
{
	q->first = NULL;
	q->last = &q->first;
}

static void queue_push(struct queue *q, struct job *job)
{
	job->next = NULL;
	*q->last = job;
	q->last = &job->next;
}

static struct job *queue_pop(struct queue *q)
{
	struct job *job = q->first;

	if (job) {
		q->first = job->next;
		if (!q->first)
			q->last = &q->first;
	}
	return job;
}

/* Wait for a job; NULL: the thread is no longer needed. With the lock. */
static struct job *wait_for_job(struct fs_executor *e)
{
	uint64_t until = monotonic_ns() + IDLE_NS;
	struct job *job;

	e->idle++;
	while (!(job = queue_pop(&e->ready)) && !e->ending)
		if (monotonic_wait(&e->some, &e->lock, until) == ETIMEDOUT && !e->ready.first)
			break;
	e->idle--;
	if (job)
		e->pending--;
	return job;
}

static void *execute_jobs(void *arg)
{
	struct fs_executor *e = arg;
	struct job *job;

	pthread_mutex_lock(&e->lock);
	while ((job = wait_for_job(e))) {
		struct share *share = &e->shares[job->share];
		struct job *next;

		pthread_mutex_unlock(&e->lock);
		job->run(job->arg);
		free(job);
		pthread_mutex_lock(&e->lock);
		next = queue_pop(&share->waiting);
		if (next) {
			queue_push(&e->ready, next);
			e->pending++;
		} else {
			share->running--;
		}
	}
	e->threads--;
	pthread_cond_broadcast(&e->ended);
	pthread_mutex_unlock(&e->lock);
	return NULL;
}

/* With the lock. Without any thread the job would never run. */
static int start_executor_thread(struct fs_executor *e)
{
	pthread_attr_t attr;
	pthread_t thread;
	int error;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, 256 * 1024);
	error = pthread_create(&thread, &attr, execute_jobs, e);
	pthread_attr_destroy(&attr);
	if (!error)
		e->threads++;
	return e->threads ? 0 : -error;
}

int fs_execute(struct fs_executor *e, uint32_t key, void (*run)(void *arg), void *arg)
{
	struct job *job = malloc(sizeof *job);
	struct share *share = &e->shares[key % SHARES];
	int result = 0;

	if (!job)
		return -ENOMEM;
	*job = (struct job){.run = run, .arg = arg, .share = key % SHARES};
	pthread_mutex_lock(&e->lock);
	if (share->running >= SHARE) {
		queue_push(&share->waiting, job);
		goto out;
	}
	if (e->idle <= e->pending && e->threads < THREADS_MOST)
		result = start_executor_thread(e);
	if (result) {
		free(job);
		goto out;
	}
	share->running++;
	queue_push(&e->ready, job);
	e->pending++;
	pthread_cond_signal(&e->some);
out:
	pthread_mutex_unlock(&e->lock);
	return result;
}

struct fs_executor *fs_executor_create(void)
{
	struct fs_executor *e = calloc(1, sizeof *e);

	if (!e)
		return NULL;
	pthread_mutex_init(&e->lock, NULL);
	monotonic_cond_init(&e->some);
	pthread_cond_init(&e->ended, NULL);
	queue_init(&e->ready);
	for (unsigned i = 0; i < SHARES; i++)
		queue_init(&e->shares[i].waiting);
	return e;
}

void fs_executor_free(struct fs_executor *e)
{
	if (!e)
		return;
	pthread_mutex_lock(&e->lock);
	e->ending = true;
	pthread_cond_broadcast(&e->some);
	while (e->threads)
		pthread_cond_wait(&e->ended, &e->lock);
	pthread_mutex_unlock(&e->lock);
	pthread_cond_destroy(&e->some);
	pthread_cond_destroy(&e->ended);
	pthread_mutex_destroy(&e->lock);
	free(e);
}
