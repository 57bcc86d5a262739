/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads for operations that wait for servers. A share is what waits for one server. It may use a part of the threads that its
 * cell has left, and a cell a part of those that all cells have left: so whatever is away, and however many servers and cells, threads
 * remain for others. What exceeds the bounds waits in a list of the share, without a thread. The last threads, the reserve, are
 * for cells that have answered.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "client/fs/operate.h"
#include "common/clock.h"
#include "common/held.h"

#define THREADS_MOST 1024
#define SERVER_MOST  64
#define RESERVE_PART 8 /* of the threads: one in this many */
#define CELL_PART    4 /* of those that are left, for one cell */
#define SERVER_PART  2 /* of those that its cell has left, for one server */
#define PROMPT_NS    NS_PER_S
#define IDLE_NS	     (10 * (uint64_t)NS_PER_S)

struct job {
	struct job *next;
	void (*run)(void *arg);
	void *arg;
	struct share *share;
	uint64_t started;
	bool reserved; /* it has a thread of the reserve */
};

struct queue {
	struct job *first, **last;
};

/* Never freed while the executor lives: whether a cell answers is known of idle ones, too. */
struct cell_load {
	void *link; /* of the table */
	uint32_t number;
	unsigned running, reserved; /* or ready */
	uint64_t answered;	    /* when an operation began that was over soon; 0 = none yet */
	bool prompt; /* the operations that end are over soon, at least some of them */
};

/* As long as it has jobs. */
struct share {
	void *link; /* of the table */
	struct share *next,
		**at; /* of the list of those with waiting jobs; NULL: it is not in it */
	struct cell_load *cell;
	uint32_t server;
	struct queue waiting;
	unsigned running; /* or ready */
};

struct fs_executor {
	pthread_mutex_t lock;
	pthread_cond_t some, ended;
	struct queue ready;
	struct htable shares, cells;
	struct share *first,
		**last; /* with waiting jobs, in the order in which they are looked at */
	unsigned most;	/* threads */
	unsigned threads, idle, running;
	unsigned pending; /* jobs in `ready`; they count as running */
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

/* -- cells and servers ------------------------------------------------------------------------- */

/* The numbers are given by this process, from 1 on, so nobody can choose them. */
static uint64_t hash_cell(const void *item, const uint64_t key[2])
{
	(void)key;
	return ((const struct cell_load *)item)->number;
}

static uint64_t mix_numbers(uint32_t cell, uint32_t server)
{
	return (uint64_t)cell * 2654435761u + server;
}

static uint64_t hash_share(const void *item, const uint64_t key[2])
{
	const struct share *share = item;

	(void)key;
	return mix_numbers(share->cell->number, share->server);
}

/* NULL: no memory. */
static struct cell_load *cell_of_number(struct fs_executor *e, uint32_t number)
{
	struct cell_load *cell = htable_first(&e->cells, number);

	while (cell && cell->number != number)
		cell = cell->link;
	if (cell)
		return cell;
	cell = calloc(1, sizeof *cell);
	if (cell) {
		cell->number = number;
		htable_add(&e->cells, cell);
	}
	return cell;
}

static struct share *share_of_server(struct fs_executor *e, uint32_t cell, uint32_t server)
{
	struct share *share = htable_first(&e->shares, mix_numbers(cell, server));

	while (share && (share->server != server || share->cell->number != cell))
		share = share->link;
	if (share)
		return share;
	share = calloc(1, sizeof *share);
	if (!share)
		return NULL;
	share->server = server;
	share->cell = cell_of_number(e, cell);
	if (!share->cell) {
		free(share);
		return NULL;
	}
	queue_init(&share->waiting);
	htable_add(&e->shares, share);
	return share;
}

static void drop_unused_share(struct fs_executor *e, struct share *share)
{
	if (share->running || share->waiting.first)
		return;
	assert(!share->at);
	htable_remove(&e->shares, share);
	free(share);
}

static void list_share(struct fs_executor *e, struct share *share)
{
	assert(!share->at);
	share->next = NULL;
	share->at = e->last;
	*e->last = share;
	e->last = &share->next;
}

static void unlist_share(struct fs_executor *e, struct share *share)
{
	*share->at = share->next;
	if (share->next)
		share->next->at = share->at;
	else
		e->last = share->at;
	share->at = NULL;
}

/* Whether one more job of the share may have a thread. *reserved: only one of the reserve. */
static bool share_has_room(const struct fs_executor *e, const struct share *share, bool *reserved)
{
	const struct cell_load *cell = share->cell;
	unsigned free_threads = e->most > e->running ? e->most - e->running : 0;
	unsigned reserve = e->most / RESERVE_PART, used, most;

	*reserved = free_threads <= reserve;
	if (!free_threads || share->running >= SERVER_MOST || (*reserved && !cell->prompt))
		return false;
	used = *reserved ? cell->reserved : cell->running;
	most = (*reserved ? free_threads : free_threads - reserve) / CELL_PART;
	if (!used)
		return true;
	return used < most && share->running <= (most - used) / SERVER_PART;
}

/* -- threads ------------------------------------------------------------------------------------ */

static void *execute_jobs(void *arg);

/* With the lock. */
static bool start_executor_thread(struct fs_executor *e)
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
	return !error;
}

/* With the lock. Where the system gives no more threads, those that there are get divided. */
static bool thread_is_there(struct fs_executor *e)
{
	if (e->idle > e->pending || start_executor_thread(e))
		return true;
	if (e->threads)
		e->most = e->threads;
	return false;
}

static void count_job(struct fs_executor *e, struct job *job, bool reserved)
{
	struct share *share = job->share;

	assert(mutex_is_held(&e->lock));
	job->reserved = reserved;
	share->running++;
	share->cell->running++;
	share->cell->reserved += reserved;
	e->running++;
}

static void start_job(struct fs_executor *e, struct job *job, bool reserved)
{
	count_job(e, job, reserved);
	queue_push(&e->ready, job);
	e->pending++;
	pthread_cond_signal(&e->some);
}

/* What waits and may have a thread now, one job of each share in turn. With the lock. */
static void start_waiting_jobs(struct fs_executor *e)
{
	struct share *next;
	bool reserved;

	for (struct share *share = e->first; share; share = next) {
		next = share->next;
		if (!share_has_room(e, share, &reserved))
			continue;
		if (!thread_is_there(e))
			return;
		start_job(e, queue_pop(&share->waiting), reserved);
		unlist_share(e, share);
		if (share->waiting.first)
			list_share(e, share);
		next = next ? next : share->at ? share : NULL;
	}
}

static void judge_cell(struct cell_load *cell, const struct job *job)
{
	if (monotonic_ns() - job->started < PROMPT_NS) {
		cell->answered = job->started;
		cell->prompt = true;
	} else if (cell->answered < job->started) {
		cell->prompt = false;
	}
}

/* With the lock. */
static void end_job(struct fs_executor *e, struct job *job)
{
	struct share *share = job->share;

	assert(share->running && share->cell->running && e->running);
	judge_cell(share->cell, job);
	share->running--;
	share->cell->running--;
	share->cell->reserved -= job->reserved;
	e->running--;
	drop_unused_share(e, share);
	free(job);
}

/* Wait for a job; NULL: the thread is no longer needed. With the lock. */
static struct job *wait_for_job(struct fs_executor *e)
{
	uint64_t until = monotonic_ns() + IDLE_NS;
	struct job *job;

	e->idle++;
	start_waiting_jobs(e);
	while (!(job = queue_pop(&e->ready)) && !e->ending)
		if (monotonic_wait(&e->some, &e->lock, until) == ETIMEDOUT && !e->ready.first &&
		    (!e->first || e->threads > 1))
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
		pthread_mutex_unlock(&e->lock);
		job->started = monotonic_ns();
		job->run(job->arg);
		pthread_mutex_lock(&e->lock);
		end_job(e, job);
	}
	e->threads--;
	/* The system may give threads again. */
	e->most = THREADS_MOST;
	pthread_cond_broadcast(&e->ended);
	pthread_mutex_unlock(&e->lock);
	return NULL;
}

/* Without any thread the job might never run: those that count may be on threads of callers. With the lock. */
static int start_or_queue(struct fs_executor *e, struct job *job)
{
	struct share *share = job->share;
	bool reserved;

	if (!share->waiting.first && share_has_room(e, share, &reserved) && thread_is_there(e)) {
		start_job(e, job, reserved);
		return 0;
	}
	if (!e->threads && !start_executor_thread(e))
		return -ENOMEM;
	queue_push(&share->waiting, job);
	if (!share->at)
		list_share(e, share);
	return 0;
}

int fs_execute(struct fs_executor *e, uint32_t cell, uint32_t server, void (*run)(void *arg),
	       void *arg)
{
	struct job *job = malloc(sizeof *job);
	int result = -ENOMEM;

	if (!job)
		return -ENOMEM;
	pthread_mutex_lock(&e->lock);
	*job = (struct job){.run = run, .arg = arg, .share = share_of_server(e, cell, server)};
	if (job->share)
		result = start_or_queue(e, job);
	if (job->share && result)
		drop_unused_share(e, job->share);
	pthread_mutex_unlock(&e->lock);
	if (result)
		free(job);
	return result;
}

/* With the lock, which is released meanwhile. */
static void run_job_here(struct fs_executor *e, struct job *job, bool reserved)
{
	count_job(e, job, reserved);
	pthread_mutex_unlock(&e->lock);
	job->started = monotonic_ns();
	job->run(job->arg);
	pthread_mutex_lock(&e->lock);
	end_job(e, job);
	start_waiting_jobs(e);
	if (e->ending)
		pthread_cond_broadcast(&e->ended);
}

int fs_execute_here(struct fs_executor *e, uint32_t cell, uint32_t server, void (*run)(void *arg),
		    void *arg)
{
	struct job *job = malloc(sizeof *job);
	bool reserved, done = false;

	if (!job)
		return -ENOMEM;
	pthread_mutex_lock(&e->lock);
	*job = (struct job){.run = run, .arg = arg, .share = share_of_server(e, cell, server)};
	if (job->share && !job->share->waiting.first && job->share->cell->prompt && !e->ending &&
	    share_has_room(e, job->share, &reserved)) {
		run_job_here(e, job, reserved);
		done = true;
	} else if (job->share) {
		drop_unused_share(e, job->share);
	}
	pthread_mutex_unlock(&e->lock);
	if (!done)
		free(job);
	return done ? 0 : -EAGAIN;
}

struct fs_executor *fs_executor_create(void)
{
	struct fs_executor *e = calloc(1, sizeof *e);

	if (!e)
		return NULL;
	if (!htable_init(&e->shares, offsetof(struct share, link), hash_share, NULL, 0) ||
	    !htable_init(&e->cells, offsetof(struct cell_load, link), hash_cell, NULL, 0)) {
		htable_fini(&e->shares, NULL);
		free(e);
		return NULL;
	}
	pthread_mutex_init(&e->lock, NULL);
	monotonic_cond_init(&e->some);
	pthread_cond_init(&e->ended, NULL);
	queue_init(&e->ready);
	e->last = &e->first;
	e->most = THREADS_MOST;
	return e;
}

void fs_executor_free(struct fs_executor *e)
{
	if (!e)
		return;
	pthread_mutex_lock(&e->lock);
	e->ending = true;
	pthread_cond_broadcast(&e->some);
	while (e->threads || e->running)
		pthread_cond_wait(&e->ended, &e->lock);
	assert(!e->first && !e->shares.count);
	pthread_mutex_unlock(&e->lock);
	htable_fini(&e->shares, NULL);
	htable_fini(&e->cells, free);
	pthread_cond_destroy(&e->some);
	pthread_cond_destroy(&e->ended);
	pthread_mutex_destroy(&e->lock);
	free(e);
}
