/* SPDX-License-Identifier: BSD-2-Clause */
/* The threads of --jobs. */
#include <stdlib.h>

#include "program/message.h"
#include "afscp/copyjobs.h"
#include "afscp/tasks.h"

#define WAITING 2 /* jobs for each thread; they may have files open */

struct copyjobs {
	struct run *run;
	struct tasks *tasks; /* NULL: there are no threads */
	atomic_bool stopped; /* a job has returned COPY_STOP */
};

struct job {
	struct copyjobs *jobs;
	const struct job_kind *kind;
	void *arg;
};

int copyjobs_open(struct run *run, size_t sources, struct copyjobs **out)
{
	unsigned threads = (unsigned)run->set.jobs;
	struct copyjobs *jobs = calloc(1, sizeof(*jobs));

	if (!jobs) {
		tools_error("no memory");
		return -1;
	}
	jobs->run = run;
	if (threads > 1 && (run->set.recursive || sources > 1))
		jobs->tasks = tasks_open(threads, WAITING * threads);
	*out = jobs;
	return 0;
}

static enum copy_result do_or_drop(struct copyjobs *jobs, const struct job_kind *kind, void *arg)
{
	enum copy_result rc = COPY_STOP;

	if (atomic_load(&jobs->stopped)) {
		kind->drop(arg);
		return rc;
	}
	rc = kind->work(jobs->run, arg);
	if (rc != COPY_GOOD)
		atomic_fetch_add(&jobs->run->failed, 1);
	if (rc == COPY_STOP)
		atomic_store(&jobs->stopped, true);
	return rc;
}

static void do_copy_job(void *arg)
{
	struct job *job = arg;

	do_or_drop(job->jobs, job->kind, job->arg);
	free(job);
}

enum copy_result copyjobs_add(struct copyjobs *jobs, const struct job_kind *kind, void *arg)
{
	struct job *job = jobs->tasks && !atomic_load(&jobs->stopped) ? malloc(sizeof(*job)) : NULL;

	if (!job)
		return do_or_drop(jobs, kind, arg) == COPY_STOP ? COPY_STOP : COPY_GOOD;
	*job = (struct job){jobs, kind, arg};
	tasks_add(jobs->tasks, do_copy_job, job);
	return atomic_load(&jobs->stopped) ? COPY_STOP : COPY_GOOD;
}

enum copy_result copyjobs_wait(struct copyjobs *jobs)
{
	tasks_wait(jobs->tasks);
	return atomic_load(&jobs->stopped) ? COPY_STOP : COPY_GOOD;
}

void copyjobs_close(struct copyjobs *jobs)
{
	if (!jobs)
		return;
	tasks_close(jobs->tasks);
	free(jobs);
}
