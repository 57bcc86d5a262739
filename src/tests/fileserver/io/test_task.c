/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of task.c and pool.c: visits, turns, threads. */
#include <check.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cpus.h"
#include "fileserver/base/base.h"
#include "fileserver/io/io.h"
#include "tests/main.h"

static const struct fsd_share_key me = {{1}}, you = {{2}};

static struct fsd_pool *make_pool(unsigned most)
{
	return fsd_pool_create(most, 2 * cpus_allowed(), sizeof(struct fsd_pool_caller));
}

/* -- visits -- */

#define VISITORS 4
#define VISITS	 20000

static struct {
	_Atomic unsigned added, running;
	unsigned taken; /* by the running thread */
	struct fsd_task *task;
	pthread_mutex_t lock;
	bool last; /* lock: no visit comes any more */
} adding = {.lock = PTHREAD_MUTEX_INITIALIZER};

static enum fsd_task_state take_added(void *arg)
{
	bool last;

	(void)arg;
	ck_assert_uint_eq(atomic_fetch_add(&adding.running, 1), 0);
	pthread_mutex_lock(&adding.lock);
	last = adding.last;
	pthread_mutex_unlock(&adding.lock);
	adding.taken = atomic_load(&adding.added);
	atomic_fetch_sub(&adding.running, 1);
	return last ? FSD_TASK_ENDED : adding.taken % 3 ? FSD_TASK_WAITS : FSD_TASK_GOES_ON;
}

static void *visit_often(void *arg)
{
	for (unsigned i = 0; i < VISITS; i++) {
		atomic_fetch_add(&adding.added, 1);
		fsd_task_visit(adding.task);
	}
	return arg;
}

/* A task sees all that was there when it was visited last, and runs on one thread at a time. */
START_TEST(visits)
{
	struct fsd_pool *pool = make_pool(8);
	pthread_t visitors[VISITORS];

	adding.task = fsd_task_create(pool, &me, take_added, NULL);
	ck_assert_ptr_nonnull(adding.task);
	for (unsigned i = 0; i < VISITORS; i++)
		ck_assert_int_eq(pthread_create(&visitors[i], NULL, visit_often, NULL), 0);
	fsd_task_begin(adding.task);
	for (unsigned i = 0; i < VISITORS; i++)
		pthread_join(visitors[i], NULL);
	pthread_mutex_lock(&adding.lock);
	adding.last = true;
	fsd_task_visit(adding.task);
	pthread_mutex_unlock(&adding.lock);
	fsd_pool_destroy(pool);
	ck_assert(adding.last);
	ck_assert_uint_eq(adding.taken, VISITORS * VISITS);
}
END_TEST

/* -- turns -- */

static struct {
	unsigned left[2];
	char order[16]; /* of one thread */
	unsigned count;
	sem_t begin, ended;
} turns;

static enum fsd_task_state take_turn(void *arg)
{
	unsigned *left = arg;

	turns.order[turns.count++] = left == &turns.left[0] ? 'a' : 'b';
	if (--*left)
		return FSD_TASK_GOES_ON;
	sem_post(&turns.ended);
	return FSD_TASK_ENDED;
}

static void wait_for_post(struct fsd_job *job)
{
	(void)job;
	sem_wait(&turns.begin);
}

/* Tasks that have much to do take turns. */
START_TEST(in_turns)
{
	struct fsd_pool *pool = make_pool(1);
	struct fsd_pool_caller *caller = fsd_pool_enter(pool, &me);
	struct fsd_job block = {.run = wait_for_post, .caller = caller};
	struct fsd_task *a, *b;

	sem_init(&turns.begin, 0, 0);
	sem_init(&turns.ended, 0, 0);
	ck_assert_ptr_nonnull(caller);
	fsd_pool_post(pool, &block); /* the only thread */
	turns.left[0] = turns.left[1] = 4;
	a = fsd_task_create(pool, &me, take_turn, &turns.left[0]);
	b = fsd_task_create(pool, &me, take_turn, &turns.left[1]);
	fsd_task_begin(a);
	fsd_task_begin(b);
	sem_post(&turns.begin);
	sem_wait(&turns.ended);
	sem_wait(&turns.ended);
	fsd_pool_leave(pool, caller);
	fsd_pool_destroy(pool);
	ck_assert_str_eq(turns.order, "abababab");
	sem_destroy(&turns.begin);
	sem_destroy(&turns.ended);
}
END_TEST

#define CROWD 6

static char callers_order[CROWD + 2]; /* of one thread */

static sem_t started;

static void tell_and_wait(struct fsd_job *job)
{
	sem_post(&started);
	wait_for_post(job);
}

static void note_a(struct fsd_job *job)
{
	(void)job;
	callers_order[strlen(callers_order)] = 'a';
}

static void note_b(struct fsd_job *job)
{
	(void)job;
	callers_order[strlen(callers_order)] = 'b';
}

/* A caller with one job waits for one of each other caller, not for all that these have queued. */
START_TEST(callers_in_turns)
{
	struct fsd_pool *pool = make_pool(1);
	struct fsd_pool_caller *a = fsd_pool_enter(pool, &me), *b = fsd_pool_enter(pool, &you);
	struct fsd_job block = {.run = tell_and_wait, .caller = a}, many[CROWD],
		       one = {.run = note_b, .caller = b};

	sem_init(&turns.begin, 0, 0);
	sem_init(&started, 0, 0);
	fsd_pool_post(pool, &block);
	sem_wait(&started);
	for (unsigned i = 0; i < CROWD; i++) {
		many[i] = (struct fsd_job){.run = note_a, .caller = a};
		fsd_pool_post(pool, &many[i]);
	}
	fsd_pool_post(pool, &one);
	sem_post(&turns.begin);
	fsd_pool_destroy(pool); /* after all jobs */
	ck_assert_str_eq(callers_order, "abaaaaa");
	sem_destroy(&turns.begin);
	sem_destroy(&started);
}
END_TEST

static void note_urgent_a(struct fsd_job *job)
{
	(void)job;
	callers_order[strlen(callers_order)] = 'A';
}

static void note_urgent_b(struct fsd_job *job)
{
	(void)job;
	callers_order[strlen(callers_order)] = 'B';
}

/* Urgent jobs are before the others of their caller, which keeps its place if it has one, and gets the first one else. */
START_TEST(urgent_jobs)
{
	struct fsd_pool *pool = make_pool(1);
	struct fsd_pool_caller *a = fsd_pool_enter(pool, &me), *b = fsd_pool_enter(pool, &you);
	struct fsd_job block = {.run = tell_and_wait, .caller = a},
		       jobs[] = {{.run = note_a, .caller = a},
				 {.run = note_a, .caller = a},
				 {.run = note_urgent_a, .caller = a, .urgent = true},
				 {.run = note_urgent_a, .caller = a, .urgent = true},
				 {.run = note_urgent_b, .caller = b, .urgent = true},
				 {.run = note_b, .caller = b}};

	memset(callers_order, 0, sizeof(callers_order));
	sem_init(&turns.begin, 0, 0);
	sem_init(&started, 0, 0);
	fsd_pool_post(pool, &block);
	sem_wait(&started);
	for (unsigned i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++)
		fsd_pool_post(pool, &jobs[i]);
	sem_post(&turns.begin);
	fsd_pool_destroy(pool); /* after all jobs */
	ck_assert_str_eq(callers_order, "BAbAaa");
	sem_destroy(&turns.begin);
	sem_destroy(&started);
}
END_TEST

/* -- threads -- */

#define JOBS 64

static struct {
	_Atomic unsigned running;
	sem_t go;
} blocked;

static void block(struct fsd_job *job)
{
	(void)job;
	atomic_fetch_add(&blocked.running, 1);
	sem_wait(&blocked.go);
}

/* Threads are added while jobs wait for longer than these take, up to the limit. */
START_TEST(threads_on_demand)
{
	unsigned most = 2 * cpus_allowed() + 3, queued = 0;
	struct fsd_pool *pool = make_pool(most);
	struct fsd_pool_caller *caller = fsd_pool_enter(pool, &me);
	struct fsd_job *jobs = calloc(JOBS * most, sizeof(*jobs));

	ck_assert_ptr_nonnull(jobs);
	ck_assert_ptr_nonnull(caller);
	sem_init(&blocked.go, 0, 0);
	while (atomic_load(&blocked.running) < most) {
		if (queued < JOBS * most) {
			jobs[queued] = (struct fsd_job){.run = block, .caller = caller};
			fsd_pool_post(pool, &jobs[queued++]);
		}
		usleep(2000);
	}
	for (unsigned i = 0; i < queued; i++)
		sem_post(&blocked.go);
	fsd_pool_destroy(pool);
	ck_assert_uint_eq(atomic_load(&blocked.running), queued);
	sem_destroy(&blocked.go);
	free(jobs);
}
END_TEST

/* No job stays behind those that wait while there may be more threads, also if nothing else is queued. */
START_TEST(threads_for_all_jobs)
{
	unsigned most = 2 * cpus_allowed() + 3;
	struct fsd_pool *pool = make_pool(most);
	struct fsd_pool_caller *caller = fsd_pool_enter(pool, &me);
	struct fsd_job *jobs = calloc(most, sizeof(*jobs));

	ck_assert_ptr_nonnull(jobs);
	ck_assert_ptr_nonnull(caller);
	sem_init(&blocked.go, 0, 0);
	for (unsigned i = 0; i < most; i++) {
		jobs[i] = (struct fsd_job){.run = block, .caller = caller};
		fsd_pool_post(pool, &jobs[i]);
	}
	while (atomic_load(&blocked.running) < most)
		usleep(1000);
	for (unsigned i = 0; i < most; i++)
		sem_post(&blocked.go);
	fsd_pool_destroy(pool);
	sem_destroy(&blocked.go);
	free(jobs);
}
END_TEST

static _Atomic bool computes;

static void compute(struct fsd_job *job)
{
	(void)job;
	atomic_fetch_add(&blocked.running, 1);
	while (atomic_load(&computes))
		;
}

/* However long the jobs wait: threads that wait for a CPU gain nothing from others. */
START_TEST(threads_that_run_suffice)
{
	struct fsd_pool *pool = fsd_pool_create(16, 2, sizeof(struct fsd_pool_caller));
	struct fsd_pool_caller *caller = fsd_pool_enter(pool, &me);
	struct fsd_job jobs[20];

	ck_assert_ptr_nonnull(caller);
	atomic_store(&blocked.running, 0);
	atomic_store(&computes, true);
	for (unsigned i = 0; i < 20; i++) {
		jobs[i] = (struct fsd_job){.run = compute, .caller = caller};
		fsd_pool_post(pool, &jobs[i]);
	}
	while (atomic_load(&blocked.running) < 2)
		usleep(1000);
	usleep(50000); /* another one would begin after 2 ms */
	ck_assert_uint_eq(atomic_load(&blocked.running), 2);
	ck_assert_uint_le(fsd_pool_threads(pool, NULL), 3); /* one sees that they run */
	atomic_store(&computes, false);
	fsd_pool_destroy(pool);
	ck_assert_uint_eq(atomic_load(&blocked.running), 20);
}
END_TEST

TEST_MAIN("tasks", visits, in_turns, callers_in_turns, urgent_jobs, threads_on_demand,
	  threads_for_all_jobs, threads_that_run_suffice)
