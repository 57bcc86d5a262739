/* SPDX-License-Identifier: BSD-2-Clause */
/* Tasks: work that goes on whenever there is a reason, on threads that may wait. */
#include <assert.h>
#include <stddef.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "fileserver/base/base.h"
#include "fileserver/io/io.h"

struct fsd_task {
	struct fsd_job job; /* queued, or run by the thread that raised the visits from 0 */
	struct fsd_pool *pool;
	enum fsd_task_state (*run)(void *arg);
	void *arg;
	_Atomic unsigned visits; /* since the running thread last began */
};

static void free_task(struct fsd_task *task)
{
	fsd_pool_leave(task->pool, task->job.caller);
	free(task);
}

static void run_task(struct fsd_task *task)
{
	unsigned seen = atomic_load(&task->visits), visits;

	assert(seen > 0);
	for (;;) {
		switch (task->run(task->arg)) {
		case FSD_TASK_ENDED:
			free_task(task);
			return;
		case FSD_TASK_GOES_ON:
			fsd_pool_post(task->pool, &task->job);
			return;
		case FSD_TASK_WAITS:
			visits = atomic_fetch_sub(&task->visits, seen);
			if (visits == seen)
				return;
			seen = visits - seen;
		}
	}
}

static void run_task_job(struct fsd_job *job)
{
	run_task((struct fsd_task *)(void *)job);
}

void fsd_task_visit(struct fsd_task *task)
{
	if (atomic_fetch_add(&task->visits, 1) == 0)
		fsd_pool_post(task->pool, &task->job);
}

void fsd_task_post(struct fsd_task *task)
{
	assert(atomic_load(&task->visits) > 0);
	fsd_pool_post(task->pool, &task->job);
}

void fsd_task_begin(struct fsd_task *task)
{
	struct fsd_pool *pool = task->pool;

	if (!fsd_pool_borrow(pool)) {
		fsd_task_post(task);
		return;
	}
	run_task(task);
	fsd_pool_return(pool);
}

struct fsd_task *fsd_task_create(struct fsd_pool *pool, const struct fsd_share_key *key,
				 enum fsd_task_state (*run)(void *arg), void *arg)
{
	struct fsd_task *task = calloc(1, sizeof(*task));
	struct fsd_pool_caller *caller = task ? fsd_pool_enter(pool, key) : NULL;

	if (!caller) {
		free(task);
		return NULL;
	}
	*task = (struct fsd_task){.job = {.caller = caller, .run = run_task_job},
				  .pool = pool,
				  .run = run,
				  .arg = arg,
				  .visits = 1};
	return task;
}

void fsd_task_destroy(struct fsd_task *task)
{
	if (task)
		free_task(task);
}
