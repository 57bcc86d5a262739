/* SPDX-License-Identifier: BSD-2-Clause */
/* The public functions of completion queues. */
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/sized.h"
#include "engine/dispatch/dispatch.h"
#include "engine/objects.h"

#define RUN_MAX 64 /* entries whose packets are sent together */

int rxw_queue_create(rxw_engine *engine, const struct rxw_queue_options *options, rxw_queue **queue)
{
	struct rxw_queue_options known;
	struct rxw_queue *q;

	if (!engine || !queue || (options && !sized_read(&known, sizeof(known), options)))
		return -RXW_EINVAL;
	*queue = NULL;
	q = calloc(1, sizeof(*q));
	if (!q)
		return -RXW_ENOMEM;
	if (rxw_cond_init(&q->cond)) {
		free(q);
		return -RXW_ENOMEM;
	}
	rxw_mutex_init(&q->lock);
	q->engine = engine;
	q->last = &q->first;
	q->fd = -1;
	atomic_fetch_add(&engine->queues, 1);
	*queue = q;
	return 0;
}

int rxw_queue_destroy(rxw_queue *queue)
{
	struct rxw_queue *q = queue;
	bool waited_on, owed;

	if (!q)
		return 0;
	rxw_queue_drop(q);
	if (atomic_load(&q->users))
		return -RXW_ESTATE;
	/* A thread that has queued the last entry may be about to signal it. */
	do {
		pthread_mutex_lock(&q->lock);
		waited_on = q->waiting > 0;
		owed = q->owed;
		pthread_mutex_unlock(&q->lock);
		if (waited_on)
			return -RXW_ESTATE;
		if (owed)
			sched_yield();
	} while (owed);
	if (q->fd >= 0)
		close(q->fd);
	pthread_cond_destroy(&q->cond);
	pthread_mutex_destroy(&q->lock);
	atomic_fetch_sub(&q->engine->queues, 1);
	free(q);
	return 0;
}

int rxw_queue_fd(rxw_queue *queue)
{
	int fd;

	if (!queue)
		return -RXW_EINVAL;
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
	if (timeout_ms && rxw_must_not_wait())
		return -RXW_EDEADLK;
	if (timeout_ms) {
		rxw_tx_collect_end();
		end = timeout_ms < 0 ? UINT64_MAX : rxw_now() + (unsigned)timeout_ms * RXW_MS;
	}
	return (int)rxw_queue_take(queue, events, max > INT_MAX ? INT_MAX : max, end);
}

int rxw_queue_run(rxw_queue *queue, rxw_queue_fn fn, unsigned max, int timeout_ms)
{
	struct rxw_queue_event v[RUN_MAX];
	int n;

	if (!fn)
		return -RXW_EINVAL;
	if (rxw_must_not_wait())
		return -RXW_EDEADLK;
	rxw_tx_collect_end();
	n = rxw_queue_next(queue, v, max < RUN_MAX ? max : RUN_MAX, timeout_ms);
	if (n <= 0)
		return n;
	rxw_callback_enter();
	rxw_tx_collect_begin();
	for (int i = 0; i < n; i++)
		fn(&v[i]);
	rxw_callback_leave();
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
	post = calloc(1, sizeof(*post));
	if (!post)
		return -RXW_ENOMEM;
	post->entry.kind = RXW_ENTRY_POST;
	post->arg = arg;
	if (rxw_queue_append(queue, &post->entry))
		rxw_queue_signal(queue);
	return 0;
}
