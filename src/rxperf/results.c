/* SPDX-License-Identifier: BSD-2-Clause */
/* Results of all slots of a run: latencies, the first failure, the end. */
#include <assert.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "rxperf/runner.h"

/* ---- latencies, recorded by many threads without contention ---- */

#define REMEMBERED 4 /* sets whose histograms a thread caches */

struct perf_latency {
	struct perf_latency *next;
	pthread_t owner;
	struct tools_histogram h;
};

void perf_latencies_init(struct perf_latencies *set)
{
	static _Atomic uint64_t last;

	set->id = atomic_fetch_add(&last, 1) + 1;
	set->all = NULL;
	pthread_mutex_init(&set->lock, NULL);
}

/* The calling thread's histogram of the set; NULL without memory. */
static struct perf_latency *histogram_of_thread(struct perf_latencies *set)
{
	struct perf_latency *l;

	pthread_mutex_lock(&set->lock);
	for (l = set->all; l && !pthread_equal(l->owner, pthread_self()); l = l->next)
		;
	if (!l && (l = malloc(sizeof(*l)))) {
		tools_histogram_init(&l->h);
		l->owner = pthread_self();
		l->next = set->all;
		set->all = l;
	}
	pthread_mutex_unlock(&set->lock);
	return l;
}

void perf_latencies_add(struct perf_latencies *set, uint64_t nanoseconds)
{
	static _Thread_local struct {
		uint64_t id;
		struct perf_latency *latency;
	} remembered[REMEMBERED];
	unsigned i = set->id % REMEMBERED;

	if (remembered[i].id != set->id) {
		remembered[i].latency = histogram_of_thread(set);
		remembered[i].id = set->id;
	}
	if (remembered[i].latency)
		tools_histogram_add(&remembered[i].latency->h, nanoseconds);
}

void perf_latencies_merge(const struct perf_latencies *set, struct tools_histogram *into)
{
	for (const struct perf_latency *l = set->all; l; l = l->next)
		tools_histogram_merge(into, &l->h);
}

void perf_latencies_free(struct perf_latencies *set)
{
	while (set->all) {
		struct perf_latency *next = set->all->next;

		free(set->all);
		set->all = next;
	}
	pthread_mutex_destroy(&set->lock);
}

/* ---- failure and end ---- */

void perf_runner_fail(struct perf_runner *r, const char *format, ...)
{
	va_list args;

	pthread_mutex_lock(&r->lock);
	if (!r->failed && !atomic_load(&r->aborting)) {
		r->failed = true;
		va_start(args, format);
		vsnprintf(r->why, sizeof(r->why), format, args);
		va_end(args);
	}
	pthread_cond_signal(&r->wake);
	pthread_mutex_unlock(&r->lock);
	atomic_store(&r->stopping, true);
}

void perf_slots_done(struct perf_runner *r, size_t count)
{
	pthread_mutex_lock(&r->lock);
	assert(r->active >= count);
	r->active -= count;
	if (r->active == 0)
		pthread_cond_signal(&r->wake);
	pthread_mutex_unlock(&r->lock);
}
