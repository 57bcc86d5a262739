/* SPDX-License-Identifier: BSD-2-Clause */
/* The public functions of completion queues. */
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/cancel.h"
#include "common/sized.h"
#include "engine/send/dispatch.h"
#include "engine/core/fork.h"
#include "engine/objects.h"
#include "engine/stream/stream.h"

/* Engine's lock held in both. */
static void add_to_engine(struct rxw_queue *q)
{
	q->next = q->engine->queues;
	q->link = &q->engine->queues;
	if (q->next)
		q->next->link = &q->next;
	q->engine->queues = q;
}

static void remove_from_engine(struct rxw_queue *q)
{
	*q->link = q->next;
	if (q->next)
		q->next->link = q->link;
}

int rxw_queue_create(rxw_engine *engine, const struct rxw_queue_options *options, rxw_queue **queue)
{
	struct rxw_queue_options known;
	struct rxw_queue *q;

	if (!engine || !queue || (options && !sized_read(&known, sizeof(known), options)))
		return -RXW_EINVAL;
	if (rxw_engine_inherited(engine))
		return -RXW_ESTATE;
	*queue = NULL;
	q = calloc(1, sizeof(*q));
	if (!q)
		return -RXW_ENOMEM;
	if (rxw_cond_init(&q->cond)) {
		free(q);
		return -RXW_ENOMEM;
	}
	rxw_mutex_init(&q->lock);
	rxw_alive_begin(&q->alive);
	q->engine = engine;
	q->last = &q->first;
	q->fd = -1;
	pthread_mutex_lock(&engine->lock);
	add_to_engine(q);
	pthread_mutex_unlock(&engine->lock);
	*queue = q;
	return 0;
}

int rxw_queue_destroy(rxw_queue *queue)
{
	struct rxw_queue *q = queue;
	bool waited_on, owed;
	uint32_t users;
	NOT_CANCELLED;

	if (!q)
		return 0;
	rxw_check_alive(&q->alive, "the queue was destroyed before");
	if (rxw_engine_inherited(q->engine)) {
		if (q->fd >= 0)
			close(q->fd);
		q->fd = -1;
		return 0;
	}
	rxw_queue_refuse(q, NULL);
	users = atomic_load(&q->users);
	if (users) {
		rxw_log(q->engine, RXW_LOG_INFO,
			"a queue is still in use by %u calls, services and waits for a channel",
			users);
		return -RXW_ESTATE;
	}
	/* A thread that has queued the last entry may be about to signal it. */
	do {
		pthread_mutex_lock(&q->lock);
		waited_on = q->waiting || q->receiving;
		owed = q->owed;
		pthread_mutex_unlock(&q->lock);
		if (waited_on) {
			rxw_log(q->engine, RXW_LOG_INFO,
				"a queue is still in use by a thread that waits at it");
			return -RXW_ESTATE;
		}
		if (owed)
			sched_yield();
	} while (owed);
	pthread_mutex_lock(&q->engine->lock);
	remove_from_engine(q);
	pthread_mutex_unlock(&q->engine->lock);
	if (q->fd >= 0)
		close(q->fd);
	pthread_cond_destroy(&q->cond);
	pthread_mutex_destroy(&q->lock);
	rxw_alive_end(&q->alive);
	free(q);
	return 0;
}

int rxw_queue_fd(rxw_queue *queue)
{
	int fd;

	if (!queue)
		return -RXW_EINVAL;
	if (rxw_engine_inherited(queue->engine))
		return -RXW_ESTATE;
	pthread_mutex_lock(&queue->lock);
	if (queue->fd < 0) {
		queue->fd = eventfd(queue->first ? 1 : 0, EFD_CLOEXEC | EFD_NONBLOCK);
		queue->fd_set = queue->fd >= 0 && queue->first;
	}
	fd = queue->fd;
	pthread_mutex_unlock(&queue->lock);
	return fd < 0 ? -RXW_ESYS : fd;
}

int rxw_queue_next(rxw_queue *queue, struct rxw_queue_event *events, unsigned max, int timeout_ms)
{
	uint64_t end = 0;

	if (!queue || !events || !max || timeout_ms < -1)
		return -RXW_EINVAL;
	if (rxw_engine_inherited(queue->engine))
		return -RXW_ESTATE;
	if (timeout_ms && rxw_must_not_wait())
		return -RXW_EDEADLK;
	if (timeout_ms) {
		rxw_tx_collect_end();
		end = timeout_ms < 0 ? UINT64_MAX : rxw_now() + (unsigned)timeout_ms * RXW_MS;
	}
	return (int)rxw_wait_queue(queue, events, max > INT_MAX ? INT_MAX : max, end);
}

/*
 * Takes entries one by one: fn() may end any call, also one whose entry is queued behind. Those that
 * are queued when it begins, not later ones: the caller may have other work.
 */
static unsigned run_claimed(struct rxw_queue *q, struct rxw_queue_event *event, rxw_queue_fn fn,
			    unsigned max)
{
	unsigned claim = rxw_queue_claim(q, max - 1), done = 0;

	rxw_callback_enter();
	do {
		rxw_clock_cache_set(rxw_now()); /* fn() may have run for long */
		fn(event);
		done++;
	} while (rxw_queue_take_claimed(q, event, &claim));
	rxw_clock_cache_set(0);
	rxw_callback_leave();
	return done;
}

int rxw_queue_run(rxw_queue *queue, rxw_queue_fn fn, unsigned max, int timeout_ms)
{
	struct rxw_queue_event event;
	int n;
	NOT_CANCELLED; /* packets that fn() caused are sent at the end */

	if (!fn || !max || !queue)
		return -RXW_EINVAL;
	if (rxw_engine_inherited(queue->engine))
		return -RXW_ESTATE;
	if (rxw_must_not_wait())
		return -RXW_EDEADLK;
	rxw_tx_collect_end();
	n = rxw_queue_next(queue, &event, 1, timeout_ms);
	if (n <= 0)
		return n;
	rxw_tx_collect_begin();
	n = (int)run_claimed(queue, &event, fn, max > INT_MAX ? INT_MAX : max);
	rxw_tx_collect_end();
	return n;
}

/* Callbacks, and functions of rxw_queue_run(), are in a batch of their caller. */
static bool may_batch(void)
{
	return !rxw_must_not_wait() && !rxw_on_library_thread(NULL);
}

void rxw_batch_begin(void)
{
	if (may_batch())
		rxw_tx_collect_begin();
}

void rxw_batch_end(void)
{
	if (may_batch())
		rxw_tx_collect_end();
}

int rxw_queue_post(rxw_queue *queue, void *arg)
{
	struct rxw_queue_post *post;

	if (!queue)
		return -RXW_EINVAL;
	if (rxw_engine_inherited(queue->engine))
		return -RXW_ESTATE;
	post = calloc(1, sizeof(*post));
	if (!post)
		return -RXW_ENOMEM;
	post->entry.kind = RXW_ENTRY_POST;
	post->arg = arg;
	if (rxw_queue_append(queue, &post->entry))
		rxw_queue_signal(queue);
	return 0;
}
