/* SPDX-License-Identifier: BSD-2-Clause */
/* Group commit. */
#include "volume/store/txn/txn.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "common/clock.h"

#define BATCH_MAX    256	     /* operations in a transaction */
#define BATCHES_MAX  8		     /* that one thread commits before it returns */
#define GATHER_SHARE 8		     /* wait for others at most this part of the time of a commit */
#define GATHER_SLEEP (NS_PER_MS / 5) /* a shorter wait is not worth a switch of threads */

/* Operations in the order of their arrival. */
struct queue {
	struct txn_op *first, **last;
	unsigned count;
};

struct txn {
	struct txn_options options;
	struct work work; /* belongs to the leader */

	pthread_mutex_t lock; /* covers `queue`, `wanted`, `led`, `started`, `stop` */
	struct queue queue;
	unsigned wanted; /* operations for which the leader waits; 0: it does not wait */
	sem_t came;	 /* they are there */
	bool led;
	bool started, stop; /* the committer: leads when a submitted operation comes first */
	pthread_t committer;
	sem_t due; /* the committer is to lead, or to stop */

	pthread_mutex_t gate_lock; /* covers `busy`, `pausing` */
	pthread_cond_t gate;
	bool busy; /* a commit runs, or commits are kept away */
	unsigned pausing;

	/* The members that follow belong to the leader. */
	uint64_t commit_ns; /* duration of a commit, smoothed */
	unsigned expected;  /* operations that came in the last round */
	uint64_t failures;  /* of flushes, before the operations checked their bytes */

	uint64_t paused; /* since when; belongs to the thread that keeps commits away */

	_Atomic uint64_t operations, commits, referring;
	_Atomic uint64_t most_ns, most_cpu_ns, most_paused_ns; /* of a commit, since txn_costs() */
	_Atomic uint32_t most_rows;
	_Atomic unsigned waiting; /* in the queue */
};

int txn_create(const struct txn_options *options, struct txn **out)
{
	struct txn *txn = calloc(1, sizeof(*txn));

	if (!txn)
		return -ENOMEM;
	txn->options = *options;
	if (work_init(&txn->work, &options->base)) {
		free(txn);
		return -ENOMEM;
	}
	txn->queue.last = &txn->queue.first;
	sem_init(&txn->due, 0, 0);
	sem_init(&txn->came, 0, 0);
	pthread_mutex_init(&txn->lock, NULL);
	pthread_mutex_init(&txn->gate_lock, NULL);
	pthread_cond_init(&txn->gate, NULL);
	*out = txn;
	return 0;
}

void txn_destroy(struct txn *txn)
{
	if (!txn)
		return;
	if (txn->started) {
		txn->stop = true;
		sem_post(&txn->due);
		pthread_join(txn->committer, NULL);
	}
	assert(!txn->queue.first && !txn->pausing);
	sem_destroy(&txn->due);
	sem_destroy(&txn->came);
	work_fini(&txn->work);
	pthread_mutex_destroy(&txn->lock);
	pthread_mutex_destroy(&txn->gate_lock);
	pthread_cond_destroy(&txn->gate);
	free(txn);
}

/* -- the gate between commits and pauses; pauses go first -- */

static void enter_gate(struct txn *txn, bool pause)
{
	pthread_mutex_lock(&txn->gate_lock);
	txn->pausing += pause;
	while (txn->busy || (!pause && txn->pausing))
		pthread_cond_wait(&txn->gate, &txn->gate_lock);
	txn->busy = true;
	txn->pausing -= pause;
	pthread_mutex_unlock(&txn->gate_lock);
}

static void leave_gate(struct txn *txn)
{
	pthread_mutex_lock(&txn->gate_lock);
	assert(txn->busy);
	txn->busy = false;
	pthread_cond_broadcast(&txn->gate);
	pthread_mutex_unlock(&txn->gate_lock);
}

void txn_pause(struct txn *txn)
{
	enter_gate(txn, true);
	txn->paused = monotonic_ns();
}

static void note_pause(struct txn *txn, uint64_t begun)
{
	uint64_t ns = monotonic_ns() - begun;

	if (ns > txn->most_paused_ns)
		txn->most_paused_ns = ns;
}

void txn_resume(struct txn *txn)
{
	note_pause(txn, txn->paused);
	leave_gate(txn);
}

/* -- the queue -- */

static void push_op(struct queue *queue, struct txn_op *op)
{
	op->next = NULL;
	*queue->last = op;
	queue->last = &op->next;
	queue->count++;
}

/* Move operations to the end of a batch. Returns how many. */
static unsigned take_batch(struct txn *txn, struct queue *batch)
{
	unsigned taken = 0;

	pthread_mutex_lock(&txn->lock);
	while (txn->queue.first && batch->count < BATCH_MAX) {
		struct txn_op *op = txn->queue.first;

		if (batch->first && (op->alone || batch->first->alone))
			break;
		txn->queue.first = op->next;
		if (!txn->queue.first)
			txn->queue.last = &txn->queue.first;
		txn->queue.count--;
		push_op(batch, op);
		taken++;
	}
	assert(batch->count <= BATCH_MAX);
	txn->waiting = txn->queue.count;
	pthread_mutex_unlock(&txn->lock);
	return taken;
}

/* -- a batch -- */

/* `last`: the end of a list, or the operation itself. */
static void announce_committed(struct txn_op *op, const struct txn_op *last)
{
	for (;; op = op->next) {
		if (!op->result && op->announce)
			op->announce(op);
		if (op == last || !op->next)
			return;
	}
}

static void begin_batch(struct txn *txn)
{
	assert(!txn->work.loaded);
	if (txn->options.strict)
		txn->failures = txn->options.failures(txn->options.flush_arg);
	work_begin(&txn->work);
}

/*
 * A flush for others may have failed after the operations checked their bytes. It has taken the objects off the
 * list, so that the one here finds nothing to do.
 */
static int flush_referred_objects(struct txn *txn)
{
	int result = txn->options.flush_objects(txn->options.flush_arg);

	if (!result && txn->options.failures(txn->options.flush_arg) != txn->failures)
		result = -EIO;
	return result;
}

static int finish_batch(struct txn *txn, struct txn_op *first, const struct txn_op *last)
{
	struct work *work = &txn->work;
	int result = work->broken ? -ENOMEM : work_write(work);
	bool written = work->begun;

	if (!result && work->broken)
		result = -ENOMEM;
	/* The log may reach the disk as soon as it is written. */
	if (!result && txn->options.strict && work->refers)
		result = flush_referred_objects(txn);
	txn->referring += work->refers;
	if (!result)
		result = work_commit(work);
	if (!result) {
		announce_committed(first, last);
		work_publish(work);
		txn->options.committed(txn->options.arg, &work->made, &work->dead);
		txn->commits += written;
	}
	work_reset(work);
	return result;
}

/* Operations of a batch that failed as a whole: one by one, so that only the bad ones fail. */
static void run_single_op(struct txn *txn, struct txn_op *op)
{
	int result;

	begin_batch(txn);
	op->result = op->apply(op, &txn->work);
	result = finish_batch(txn, op, op);
	if (!op->result)
		op->result = result;
}

static void apply_batch_ops(struct txn *txn, struct txn_op *op)
{
	for (; op; op = op->next)
		op->result = op->apply(op, &txn->work);
}

/* Wait until so many operations are in the queue, but not longer than until then. */
static void wait_for_late_ops(struct txn *txn, unsigned wanted, uint64_t until)
{
	struct timespec limit = {(time_t)(until / NS_PER_S), (long)(until % NS_PER_S)};
	bool wait;

	assert(wanted > 0);
	pthread_mutex_lock(&txn->lock);
	wait = txn->queue.count < wanted;
	txn->wanted = wait ? wanted : 0;
	pthread_mutex_unlock(&txn->lock);
	if (!wait)
		return;
	while (sem_clockwait(&txn->came, CLOCK_MONOTONIC, &limit) && errno == EINTR)
		;
	pthread_mutex_lock(&txn->lock);
	txn->wanted = 0;
	pthread_mutex_unlock(&txn->lock);
	/* They came after the limit. */
	while (!sem_trywait(&txn->came))
		;
}

/*
 * While a commit is slow, those that the last one woke are about to come back: without them, they
 * would wait for a whole commit more. Half of them are waited for, then half of the rest, so that most are applied when the last
 * one comes. Meanwhile the processor is theirs.
 */
static void gather_late_ops(struct txn *txn, struct queue *batch)
{
	uint64_t window = txn->commit_ns / GATHER_SHARE, until = monotonic_ns() + window;
	unsigned expected = txn->expected < BATCH_MAX ? txn->expected : BATCH_MAX;

	while (batch->count < expected && monotonic_ns() < until) {
		struct txn_op **from = batch->last;

		if (window >= GATHER_SLEEP)
			wait_for_late_ops(txn, (expected - batch->count + 1) / 2, until);
		else if (!txn->waiting)
			sched_yield();
		if (!txn->waiting)
			continue;
		if (!take_batch(txn, batch))
			break;
		apply_batch_ops(txn, *from);
	}
}

/* Whether a batch failed as a whole for want of space. An operation that changes rows directly is alone in its batch. */
static bool is_disk_full(const struct queue *batch, int result)
{
	return result == STORE_VDISKFULL ||
	       (batch->count == 1 && batch->first->result == STORE_VDISKFULL);
}

/* -- what a commit costs -- */

static uint64_t read_cpu_time(const struct txn *txn)
{
	struct timespec now = {0};

	if (txn->options.timed)
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static void begin_costs(struct txn *txn, struct store_commit_costs *costs)
{
	*costs = (struct store_commit_costs){.ns = monotonic_ns(),
					     .cpu_ns = read_cpu_time(txn),
					     .rows = db_rows(txn->options.base.db)};
}

static void note_costs(struct txn *txn, const struct store_commit_costs *begun)
{
	uint64_t ns = monotonic_ns() - begun->ns, cpu_ns = read_cpu_time(txn) - begun->cpu_ns;
	uint32_t rows = db_rows(txn->options.base.db) - begun->rows;

	/* One thread at a time; txn_costs() may come between, and then one commit counts twice at most. */
	if (ns > txn->most_ns)
		txn->most_ns = ns;
	if (cpu_ns > txn->most_cpu_ns)
		txn->most_cpu_ns = cpu_ns;
	if (rows > txn->most_rows)
		txn->most_rows = rows;
}

void txn_costs(struct txn *txn, struct store_commit_costs *costs)
{
	costs->ns = atomic_exchange(&txn->most_ns, 0);
	costs->paused_ns = atomic_exchange(&txn->most_paused_ns, 0);
	costs->cpu_ns = atomic_exchange(&txn->most_cpu_ns, 0);
	costs->rows = atomic_exchange(&txn->most_rows, 0);
}

static void run_whole_batch(struct txn *txn, struct queue *batch)
{
	struct store_commit_costs begun;
	uint64_t start;
	bool full;
	int result;

	start = monotonic_ns();
	txn->options.admit(txn->options.arg);
	note_pause(txn, start);
	enter_gate(txn, false);
	begin_costs(txn, &begun);
	begin_batch(txn);
	apply_batch_ops(txn, batch->first);
	if (txn->options.strict && !batch->first->alone)
		gather_late_ops(txn, batch);
	start = monotonic_ns();
	result = finish_batch(txn, batch->first, NULL);
	full = result && is_disk_full(batch, result);
	if (!result)
		txn->commit_ns += (monotonic_ns() - start) / 8 - txn->commit_ns / 8;
	else if (batch->count == 1 && !full)
		batch->first->result = batch->first->result ? batch->first->result : result;
	else
		for (struct txn_op *op = batch->first; op; op = op->next) {
			if (full)
				txn->options.full(txn->options.arg);
			run_single_op(txn, op);
		}
	txn->operations += batch->count;
	note_costs(txn, &begun);
	leave_gate(txn);
}

/* Report those that ended together; a list for each `done`. */
static void report_ended_ops(struct store_later *first)
{
	while (first) {
		struct store_later *list = first, *last = first;

		while (last->next && last->next->done == list->done)
			last = last->next;
		first = last->next;
		last->next = NULL;
		list->done(list);
	}
}

/* `own` stays, because its thread is the caller. */
static void end_batch_ops(struct txn_op *op, const struct txn_op *own)
{
	struct store_later *list = NULL, **last = &list;
	struct txn_op *next;

	for (; op; op = next) {
		next = op->next;
		if (op->later) {
			*last = op->later;
			last = &op->later->next;
			op->end(op);
			continue;
		}
		op->done = true;
		if (op != own)
			sem_post(&op->wake);
	}
	*last = NULL;
	report_ended_ops(list);
}

/* The thread that leads next. */
static void wake_next_leader(struct txn *txn, struct txn_op *first)
{
	sem_post(first->later ? &txn->due : &first->wake);
}

static void lead_batches(struct txn *txn, struct txn_op *own)
{
	struct txn_op *next = NULL;

	for (unsigned i = 0; i < BATCHES_MAX; i++) {
		struct queue batch = {.last = &batch.first};

		if (!take_batch(txn, &batch))
			break;
		run_whole_batch(txn, &batch);
		txn->expected = batch.count + txn->waiting;
		end_batch_ops(batch.first, own);
	}
	pthread_mutex_lock(&txn->lock);
	assert(txn->led);
	next = txn->queue.first;
	if (!next)
		txn->led = false;
	pthread_mutex_unlock(&txn->lock);
	if (next)
		wake_next_leader(txn, next);
}

/* Whether no thread leads: the caller is to see to it. */
static bool enqueue_op(struct txn *txn, struct txn_op *op)
{
	bool leads;

	pthread_mutex_lock(&txn->lock);
	push_op(&txn->queue, op);
	txn->waiting = txn->queue.count;
	if (txn->wanted && txn->queue.count >= txn->wanted) {
		txn->wanted = 0;
		sem_post(&txn->came);
	}
	leads = !txn->led;
	txn->led = true;
	pthread_mutex_unlock(&txn->lock);
	return leads;
}

static void *run_committer(void *arg)
{
	struct txn *txn = arg;

	pthread_setname_np(pthread_self(), "store-commit");
	for (;;) {
		while (sem_wait(&txn->due) && errno == EINTR)
			;
		if (txn->stop)
			return NULL;
		lead_batches(txn, NULL);
	}
}

bool txn_may_submit(struct txn *txn)
{
	bool started;

	pthread_mutex_lock(&txn->lock);
	if (!txn->started)
		txn->started = !pthread_create(&txn->committer, NULL, run_committer, txn);
	started = txn->started;
	pthread_mutex_unlock(&txn->lock);
	return started;
}

void txn_submit(struct txn *txn, struct txn_op *op)
{
	assert(op->later && op->end);
	if (enqueue_op(txn, op))
		sem_post(&txn->due);
}

int txn_run(struct txn *txn, struct txn_op *op)
{
	bool leads;

	op->done = false;
	op->later = NULL;
	sem_init(&op->wake, 0, 0);
	leads = enqueue_op(txn, op);
	/* Woken when done, or to lead the next batches. */
	if (!leads)
		while (sem_wait(&op->wake) && errno == EINTR)
			;
	if (!op->done)
		lead_batches(txn, op);
	sem_destroy(&op->wake);
	return op->result;
}

uint64_t txn_referring(struct txn *txn)
{
	return txn->referring;
}

void txn_counts(struct txn *txn, uint64_t *operations, uint64_t *commits)
{
	*operations = txn->operations;
	*commits = txn->commits;
}
