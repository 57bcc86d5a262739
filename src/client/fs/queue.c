/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queues of programs. An operation is tried at once without a wait, then run by the executor, and its end is an
 * event. Whoever comes first ends it: the thread that runs it, rxafs_cancel_operation(), or its deadline.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "client/fs/events.h"
#include "client/fs/operate.h"
#include "common/clock.h"
#include "common/held.h"

enum turn {
	WAITING, /* for a thread */
	RUNNING,
	OVER /* the caller's structure may be gone */
};

/* Counted: by the list until the event is taken out, and by the executor. */
struct fs_operation {
	struct fs_event end; /* to be queued */
	rxafs_queue *queue;
	struct rxafs_operation *op;
	struct fs_operation *next, **at; /* of the queue */
	struct cl_cancel *cancel;
	enum turn turn;
	unsigned references;
	uint64_t deadline;
};

/* -- events ------------------------------------------------------------------------------------ */

void fs_queue_event(rxafs_queue *queue, struct fs_event *event)
{
	uint64_t one = 1;

	assert(mutex_is_held(&queue->lock));
	if (!queue->first && write(queue->fd, &one, sizeof one) < 0)
		assert(errno == EAGAIN);
	event->next = NULL;
	*queue->last = event;
	queue->last = &event->next;
	pthread_cond_signal(&queue->some);
}

static struct fs_event *pop_event(rxafs_queue *queue)
{
	struct fs_event *event = queue->first;
	uint64_t count;

	if (!event)
		return NULL;
	queue->first = event->next;
	if (!queue->first) {
		queue->last = &queue->first;
		if (read(queue->fd, &count, sizeof count) < 0)
			assert(errno == EAGAIN);
	}
	return event;
}

void fs_drop_events(rxafs_queue *queue, const rxafs_watch *watch)
{
	struct fs_event *list = queue->first, *next;

	while (pop_event(queue))
		;
	for (; list; list = next) {
		next = list->next;
		if (list->event.watch == watch)
			free(list);
		else
			fs_queue_event(queue, list);
	}
}

int rxafs_post_event(rxafs_queue *queue, void *arg)
{
	struct fs_event *event = calloc(1, sizeof *event);

	if (!event)
		return -ENOMEM;
	event->event = (struct rxafs_event){.kind = RXAFS_EVENT_POST, .arg = arg};
	pthread_mutex_lock(&queue->lock);
	fs_queue_event(queue, event);
	pthread_mutex_unlock(&queue->lock);
	return 0;
}

/* -- operations -------------------------------------------------------------------------------- */

/* With the lock, which may be given up for good by the last reference. */
static void put_operation(struct fs_operation *o)
{
	if (--o->references)
		return;
	cl_cancel_free(o->cancel);
	free(o);
}

/* It has ended: the event tells. With the lock. */
static void end_operation(struct fs_operation *o, int64_t result)
{
	struct rxafs_operation *op = o->op;

	assert(mutex_is_held(&o->queue->lock) && o->turn != OVER);
	o->turn = OVER;
	op->result = result;
	/* What failed may have left anything there. */
	if (result < 0)
		op->found = NULL, op->opened = NULL, op->text = NULL;
	if (result < 0 && op->code == RXAFS_OP_OPEN_LISTING)
		op->listing = NULL;
	op->request.cancel = NULL;
	op->request.quick = op->request.moves = false;
	o->end.event = (struct rxafs_event){
		.kind = RXAFS_EVENT_OPERATION, .arg = op->arg, .operation = op};
	o->queue->running--;
	fs_queue_event(o->queue, &o->end);
	pthread_cond_broadcast(&o->queue->ended);
}

static void run_operation(void *arg);

/* To the threads that may wait for the servers that it needs. It may be over before this returns. */
static void hand_over(struct fs_operation *o)
{
	rxafs_queue *queue = o->queue;
	struct rxafs_operation *op = o->op;
	struct rxafs_awaited awaited = op->request.awaited;
	int result;

	if (!awaited.known && op->object)
		awaited = fs_awaited(op->object);
	else if (!awaited.known && op->file)
		awaited = fs_awaited(rxafs_file_object(op->file));
	op->request.awaited = awaited;
	pthread_mutex_lock(&queue->lock);
	o->references++;
	o->turn = WAITING;
	fs_hold_queue(queue);
	if (o->deadline)
		fs_wake_keeper(queue);
	pthread_mutex_unlock(&queue->lock);
	result = fs_execute(queue->client->executor, awaited.cell, awaited.server, run_operation, o);
	if (!result)
		return;
	pthread_mutex_lock(&queue->lock);
	if (o->turn != OVER)
		end_operation(o, result);
	put_operation(o);
	pthread_mutex_unlock(&queue->lock);
	fs_put_queue(queue);
}

/* Whether this thread runs it now; otherwise it is over. */
static bool take_turn(struct fs_operation *o)
{
	rxafs_queue *queue = o->queue;
	bool mine;

	pthread_mutex_lock(&queue->lock);
	mine = o->turn == WAITING;
	if (mine)
		o->turn = RUNNING;
	pthread_mutex_unlock(&queue->lock);
	return mine;
}

/* On a thread of the executor. */
static void run_operation(void *arg)
{
	struct fs_operation *o = arg;
	rxafs_queue *queue = o->queue;
	struct rxafs_operation *op = o->op;
	bool again = false;
	int64_t result;

	if (take_turn(o)) {
		result = fs_do_operation(op);
		again = result == RXAFS_WOULD_WAIT && op->request.moves;
		if (again)
			hand_over(o);
	} else {
		again = true;
	}
	pthread_mutex_lock(&queue->lock);
	if (!again)
		end_operation(o, result);
	put_operation(o);
	pthread_mutex_unlock(&queue->lock);
	fs_put_queue(queue);
}

static struct fs_operation *make_operation(rxafs_queue *queue, struct rxafs_operation *op)
{
	struct fs_operation *o = calloc(1, sizeof *o);

	if (!o)
		return NULL;
	o->queue = queue;
	o->op = op;
	o->turn = RUNNING;
	o->references = 1;
	o->deadline = op->request.deadline;
	o->cancel = cl_cancel_create();
	if (!o->cancel) {
		free(o);
		return NULL;
	}
	return o;
}

int rxafs_submit(rxafs_queue *queue, struct rxafs_operation *op)
{
	struct fs_operation *o;
	int64_t result = RXAFS_WOULD_WAIT;

	if (!fs_operation_valid(op))
		return -EINVAL;
	o = make_operation(queue, op);
	if (!o)
		return -ENOMEM;
	pthread_mutex_lock(&queue->lock);
	o->next = queue->operations;
	o->at = &queue->operations;
	if (o->next)
		o->next->at = &o->next;
	queue->operations = o;
	queue->running++;
	pthread_mutex_unlock(&queue->lock);
	op->inside = o;
	op->request.cancel = o->cancel;
	op->request.awaited = (struct rxafs_awaited){0};
	op->request.moves = false;
	op->request.quick = fs_operation_repeats(op);
	if (op->request.quick)
		result = fs_do_operation(op);
	if (result == RXAFS_WOULD_WAIT) {
		op->request.moves = op->request.quick;
		op->request.quick = false;
		hand_over(o);
		return 0;
	}
	pthread_mutex_lock(&queue->lock);
	end_operation(o, result);
	pthread_mutex_unlock(&queue->lock);
	return 0;
}

/* With the lock. */
static void cancel_one(struct fs_operation *o, int result)
{
	if (o->turn == WAITING)
		end_operation(o, result);
	else if (o->turn == RUNNING)
		cl_cancel_raise(o->cancel);
}

void rxafs_cancel_operation(struct rxafs_operation *op)
{
	struct fs_operation *o = op->inside;

	pthread_mutex_lock(&o->queue->lock);
	cancel_one(o, -EINTR);
	pthread_mutex_unlock(&o->queue->lock);
}

/* -- the thread that looks at times ---------------------------------------------------------------- */

/* End those that wait for their turn in vain. The next time. */
static uint64_t end_late_operations(rxafs_queue *queue, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	for (struct fs_operation *o = queue->operations; o; o = o->next) {
		if (o->turn != WAITING || !o->deadline)
			continue;
		if (o->deadline <= now)
			end_operation(o, -ETIMEDOUT);
		else if (o->deadline < next)
			next = o->deadline;
	}
	return next;
}

static void *keep_times(void *arg)
{
	rxafs_queue *queue = arg;

	pthread_mutex_lock(&queue->lock);
	while (!queue->ending) {
		uint64_t now = cl_net_now(), next = end_late_operations(queue, now);
		uint64_t look = fs_begin_looks(queue, now);

		if (look < next)
			next = look;
		if (next == UINT64_MAX)
			pthread_cond_wait(&queue->work, &queue->lock);
		else
			monotonic_wait(&queue->work, &queue->lock, monotonic_ns() + (next - now));
	}
	pthread_mutex_unlock(&queue->lock);
	return NULL;
}

int fs_wake_keeper(rxafs_queue *queue)
{
	assert(mutex_is_held(&queue->lock));
	if (!queue->kept)
		queue->kept = !pthread_create(&queue->keeper, NULL, keep_times, queue);
	pthread_cond_signal(&queue->work);
	return queue->kept ? 0 : -EAGAIN;
}

/* -- queues -------------------------------------------------------------------------------------- */

int rxafs_create_queue(rxafs_client *client, rxafs_queue **out)
{
	rxafs_queue *queue = calloc(1, sizeof *queue);

	if (!queue)
		return -ENOMEM;
	queue->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (queue->fd < 0) {
		free(queue);
		return -errno;
	}
	queue->client = client;
	queue->last = &queue->first;
	atomic_init(&queue->references, 1);
	pthread_mutex_init(&queue->lock, NULL);
	monotonic_cond_init(&queue->some);
	monotonic_cond_init(&queue->work);
	pthread_cond_init(&queue->ended, NULL);
	*out = queue;
	return 0;
}

void fs_hold_queue(rxafs_queue *queue)
{
	atomic_fetch_add(&queue->references, 1);
}

void fs_put_queue(rxafs_queue *queue)
{
	if (atomic_fetch_sub(&queue->references, 1) != 1)
		return;
	close(queue->fd);
	pthread_cond_destroy(&queue->ended);
	pthread_cond_destroy(&queue->work);
	pthread_cond_destroy(&queue->some);
	pthread_mutex_destroy(&queue->lock);
	free(queue);
}

/* The list has one reference less. With the lock. */
static void unlist_operation(struct fs_operation *o)
{
	*o->at = o->next;
	if (o->next)
		o->next->at = o->at;
	put_operation(o);
}

/* Copies what an event says, and frees it. With the lock. */
static void take_event(struct fs_event *event, struct rxafs_event *to)
{
	*to = event->event;
	if (to->kind == RXAFS_EVENT_OPERATION) {
		unlist_operation(to->operation->inside);
		to->operation->inside = NULL;
		return;
	}
	if (to->watch)
		fs_note_taken(to->watch);
	free(event);
}

void rxafs_free_queue(rxafs_queue *queue)
{
	struct rxafs_event dropped;
	struct fs_event *event;

	if (!queue)
		return;
	pthread_mutex_lock(&queue->lock);
	assert(!queue->watches);
	for (struct fs_operation *o = queue->operations; o; o = o->next)
		cancel_one(o, -EINTR);
	while (queue->running)
		pthread_cond_wait(&queue->ended, &queue->lock);
	while ((event = pop_event(queue))) {
		take_event(event, &dropped);
		if (dropped.operation)
			fs_drop_results(dropped.operation);
	}
	queue->ending = true;
	pthread_cond_signal(&queue->work);
	pthread_mutex_unlock(&queue->lock);
	if (queue->kept)
		pthread_join(queue->keeper, NULL);
	fs_put_queue(queue);
}

int rxafs_queue_fd(const rxafs_queue *queue)
{
	return queue->fd;
}

/* Until there is an event, or the time is over. With the lock. */
static void wait_for_event(rxafs_queue *queue, int timeout_ms)
{
	uint64_t until = monotonic_ns() + (uint64_t)(timeout_ms > 0 ? timeout_ms : 0) * NS_PER_MS;

	while (!queue->first && timeout_ms) {
		if (timeout_ms < 0)
			pthread_cond_wait(&queue->some, &queue->lock);
		else if (monotonic_wait(&queue->some, &queue->lock, until) == ETIMEDOUT)
			return;
	}
}

int rxafs_next_events(rxafs_queue *queue, struct rxafs_event *events, unsigned max, int timeout_ms)
{
	struct fs_event *event;
	unsigned count = 0;

	pthread_mutex_lock(&queue->lock);
	wait_for_event(queue, timeout_ms);
	while (count < max && (event = pop_event(queue)))
		take_event(event, &events[count++]);
	/* The signal of what is left may have been this thread's. */
	if (queue->first)
		pthread_cond_signal(&queue->some);
	pthread_mutex_unlock(&queue->lock);
	return (int)count;
}
