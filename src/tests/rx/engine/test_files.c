/* SPDX-License-Identifier: BSD-2-Clause */
/* The threads that wait for files: peers take turns, and none keeps all threads. */
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <rxwire/config.h>
#include <rxwire/engine.h>

#include "engine/sched/files.h"
#include "proto/peer/peer.h"
#include "tests/main.h"

#define OF_A_PEER 4
#define THREADS	  8

/* A job that waits until the test lets it go on. */
struct task {
	struct rxw_file_job job; /* first */
	sem_t may_end, may_return;
	unsigned turns; /* it posts itself so many times again */
	bool lingers;	/* it goes on after it has left, as an application's function may */
	char peer;
};

static rxw_engine *engine;
static sem_t begun, ended;
static struct rxw_peer peers[4]; /* a, b, c, d */
static char order[64];		 /* peers of the jobs that have begun */
static _Atomic(unsigned) runs;

static void run(struct rxw_file_job *job)
{
	struct task *task = (struct task *)job;

	order[atomic_fetch_add(&runs, 1)] = task->peer;
	sem_post(&begun);
	while (sem_wait(&task->may_end))
		;
	if (task->turns--) {
		rxw_files_post(job);
		return;
	}
	rxw_files_leave(job, &peers[task->peer - 'a']);
	sem_post(&ended);
	while (task->lingers && sem_wait(&task->may_return))
		;
}

static void await(sem_t *sem, unsigned count)
{
	while (count)
		count -= sem_wait(sem) == 0;
}

static void enter(struct task *task, char peer)
{
	*task = (struct task){.job.run = run, .peer = peer};
	sem_init(&task->may_end, 0, 0);
	sem_init(&task->may_return, 0, 0);
	ck_assert_int_eq(rxw_files_enter(engine, &task->job, &peers[peer - 'a']), 0);
}

static void post(struct task *task, char peer)
{
	enter(task, peer);
	rxw_files_post(&task->job);
}

static void set_up(void)
{
	ck_assert_int_eq(rxw_engine_create(NULL, &engine), 0);
	sem_init(&begun, 0, 0);
	sem_init(&ended, 0, 0);
	atomic_store(&runs, 0);
}

static void let_go(struct task *task, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		sem_post(&task[i].may_end);
}

/* The files of one peer keep half of the threads; others get the rest at once. */
START_TEST(a_peer_keeps_half_of_the_threads)
{
	struct task many[12], other[3], third[2];

	set_up();
	for (unsigned i = 0; i < 12; i++)
		post(&many[i], 'a');
	await(&begun, OF_A_PEER);
	for (unsigned i = 0; i < 3; i++)
		post(&other[i], 'b');
	await(&begun, 3);
	post(&third[0], 'c');
	await(&begun, 1);
	ck_assert_uint_eq(atomic_load(&runs), THREADS);
	for (unsigned i = 0; i < OF_A_PEER; i++)
		ck_assert_int_eq(order[i], 'a');

	/* All threads have a job. The next one is that of the peer that has not had a turn for longest. */
	post(&third[1], 'd');
	sem_post(&other[0].may_end);
	await(&begun, 1);
	ck_assert_int_eq(order[THREADS], 'd');
	let_go(other + 1, 2);
	let_go(third, 2);
	let_go(many, 12);
	await(&ended, 17);
	ck_assert_int_eq(rxw_engine_destroy(engine), 0);
}
END_TEST

/* A job that goes on for many turns lets others run between them. */
START_TEST(peers_take_turns)
{
	struct task long_job[THREADS], short_job;

	set_up();
	for (unsigned i = 0; i < THREADS; i++)
		post(&long_job[i], i < OF_A_PEER ? 'a' : 'b');
	await(&begun, THREADS);
	for (unsigned i = 0; i < THREADS; i++)
		long_job[i].turns = 1;
	post(&short_job, 'c');
	sem_post(&long_job[0].may_end);
	await(&begun, 1);
	ck_assert_int_eq(order[THREADS], 'c');
	sem_post(&short_job.may_end);
	let_go(long_job, THREADS);
	let_go(long_job + 1, THREADS - 1);
	await(&ended, THREADS + 1);
	ck_assert_int_eq(rxw_engine_destroy(engine), 0);
}
END_TEST

/* Threads in which a transfer has left, but whose function has not returned, count for their peer. */
START_TEST(ends_count_for_their_peer)
{
	struct task many[OF_A_PEER], more[OF_A_PEER], other[OF_A_PEER];

	set_up();
	for (unsigned i = 0; i < OF_A_PEER; i++) {
		post(&many[i], 'a');
		many[i].lingers = true;
	}
	await(&begun, OF_A_PEER);
	let_go(many, OF_A_PEER);
	await(&ended, OF_A_PEER);
	for (unsigned i = 0; i < OF_A_PEER; i++)
		post(&more[i], 'a');
	for (unsigned i = 0; i < OF_A_PEER; i++)
		post(&other[i], 'b');
	await(&begun, OF_A_PEER);
	for (unsigned i = OF_A_PEER; i < THREADS; i++)
		ck_assert_int_eq(order[i], 'b');
	for (unsigned i = 0; i < OF_A_PEER; i++)
		sem_post(&many[i].may_return);
	await(&begun, OF_A_PEER);
	let_go(more, OF_A_PEER);
	let_go(other, OF_A_PEER);
	await(&ended, THREADS);
	ck_assert_int_eq(rxw_engine_destroy(engine), 0);
	ck_assert(!peers[0].files && !peers[1].files);
}
END_TEST

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*run_thread)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*run_thread)(void *), void *arg);

static _Atomic(struct task *) comes_then; /* a job is posted while a thread is started */

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*run_thread)(void *), void *arg)
{
	struct task *task = atomic_exchange(&comes_then, NULL);

	if (task)
		rxw_files_post(&task->job);
	return __real_pthread_create(thread, attr, run_thread, arg);
}

/* Listeners post jobs: they do not wait until the system has made a thread. */
START_TEST(starts_of_threads_delay_nobody)
{
	struct task first, second;

	set_up();
	enter(&first, 'a');
	enter(&second, 'b');
	atomic_store(&comes_then, &second);
	rxw_files_post(&first.job);
	await(&begun, 2);
	let_go(&first, 1);
	let_go(&second, 1);
	await(&ended, 2);
	ck_assert_int_eq(rxw_engine_destroy(engine), 0);
}
END_TEST

struct note {
	struct rxw_file_job job; /* first */
	unsigned cpus;
};

static void note_cpus(struct rxw_file_job *job)
{
	cpu_set_t set;

	ck_assert_int_eq(sched_getaffinity(0, sizeof(set), &set), 0);
	((struct note *)job)->cpus = (unsigned)CPU_COUNT(&set);
	rxw_files_leave(job, &peers[0]);
	sem_post(&ended);
}

/* With affinity = auto, a listener is on a CPU of its own. The threads that it starts are not. */
START_TEST(threads_use_all_cpus)
{
	struct note note = {.job.run = note_cpus};
	struct rxw_config config;
	cpu_set_t all, one;

	ck_assert_int_eq(sched_getaffinity(0, sizeof(all), &all), 0);
	CPU_ZERO(&one);
	for (unsigned i = 0; !CPU_COUNT(&one); i++)
		if (CPU_ISSET(i, &all))
			CPU_SET(i, &one);
	rxw_config_init(&config, sizeof(config));
	ck_assert_int_eq(rxw_config_set(&config, "affinity", "auto", NULL, 0), 0);
	ck_assert_int_eq(rxw_engine_create(&config, &engine), 0);
	sem_init(&ended, 0, 0);
	ck_assert_int_eq(sched_setaffinity(0, sizeof(one), &one), 0);
	ck_assert_int_eq(rxw_files_enter(engine, &note.job, &peers[0]), 0);
	rxw_files_post(&note.job);
	await(&ended, 1);
	ck_assert_uint_eq(note.cpus, CPU_COUNT(&all));
	ck_assert_int_eq(sched_setaffinity(0, sizeof(all), &all), 0);
	ck_assert_int_eq(rxw_engine_destroy(engine), 0);
}
END_TEST

TEST_MAIN("files", threads_use_all_cpus, starts_of_threads_delay_nobody, ends_count_for_their_peer,
	  a_peer_keeps_half_of_the_threads, peers_take_turns)
