/* SPDX-License-Identifier: BSD-2-Clause */
/* A limit on how long the process may take to stop. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "fileserver/base/base.h"

struct fsd_limit {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint64_t end; /* monotonic_ns() */
	bool over;    /* lock */
	void (*explain)(void *arg);
	void *arg;
	pthread_t thread;
};

static void *wait_for_end(void *arg)
{
	struct fsd_limit *limit = arg;
	bool over;
	int rc = 0;

	pthread_mutex_lock(&limit->lock);
	while (!limit->over && rc != ETIMEDOUT)
		rc = monotonic_wait(&limit->changed, &limit->lock, limit->end);
	over = limit->over;
	pthread_mutex_unlock(&limit->lock);
	if (over)
		return NULL;
	limit->explain(limit->arg);
	_exit(EXIT_FAILURE);
}

struct fsd_limit *fsd_limit_start(uint64_t ms, void (*explain)(void *arg), void *arg)
{
	struct fsd_limit *limit = calloc(1, sizeof(*limit));

	if (!limit)
		return NULL;
	limit->explain = explain;
	limit->arg = arg;
	limit->end = monotonic_ns() + ms * NS_PER_MS;
	monotonic_cond_init(&limit->changed);
	pthread_mutex_init(&limit->lock, NULL);
	if (pthread_create(&limit->thread, NULL, wait_for_end, limit) == 0)
		return limit;
	pthread_cond_destroy(&limit->changed);
	pthread_mutex_destroy(&limit->lock);
	free(limit);
	return NULL;
}

void fsd_limit_end(struct fsd_limit *limit)
{
	if (!limit)
		return;
	pthread_mutex_lock(&limit->lock);
	limit->over = true;
	pthread_cond_signal(&limit->changed);
	pthread_mutex_unlock(&limit->lock);
	pthread_join(limit->thread, NULL);
	pthread_cond_destroy(&limit->changed);
	pthread_mutex_destroy(&limit->lock);
	free(limit);
}
