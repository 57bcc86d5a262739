/* SPDX-License-Identifier: BSD-2-Clause */
/* The queues of clients to be called: those that calls wait for, active ones, idle ones. */
#include <assert.h>

#include "common/held.h"
#include "fileserver/callbacks/clients.h"

/* -- the queue of a share in a list, and those queues in turn -- */

static void append_share_queue(struct work_list *list, struct share_queue *queue)
{
	queue->next = NULL;
	queue->previous = list->last;
	*(list->last ? &list->last->next : &list->first) = queue;
	list->last = queue;
}

static void detach_share_queue(struct work_list *list, struct share_queue *queue)
{
	assert(list->first && list->last);
	*(queue->previous ? &queue->previous->next : &list->first) = queue->next;
	*(queue->next ? &queue->next->previous : &list->last) = queue->previous;
}

static void put_host(struct work_list *list, struct share_queue *queue, struct fsd_host *host)
{
	host->next_work = NULL;
	host->previous_work = queue->last;
	*(queue->last ? &queue->last->next_work : &queue->first) = host;
	queue->last = host;
	list->count++;
	if (!queue->count++)
		append_share_queue(list, queue);
}

static void take_out(struct fsd_clients *clients, struct fsd_host *host)
{
	struct work_list *list = &clients->list[host->list];
	struct share_queue *queue = &host->share->queue[host->list];

	assert(host->queued && !host->busy);
	assert(list->count > 0 && queue->count > 0);
	*(host->previous_work ? &host->previous_work->next_work : &queue->first) = host->next_work;
	*(host->next_work ? &host->next_work->previous_work : &queue->last) = host->previous_work;
	host->queued = false;
	list->count--;
	if (!--queue->count)
		detach_share_queue(list, queue);
}

/* -- the interface -- */

void fsd_host_queue(struct fsd_clients *clients, struct fsd_host *host)
{
	assert(mutex_is_held(&clients->lock));
	if (host->queued || host->busy)
		return;
	host->list = host->first_waiter || host->awaited ? WORK_URGENT
		     : host->quiet			 ? WORK_QUIET
							 : WORK_ACTIVE;
	host->queued = true;
	put_host(&clients->list[host->list], &host->share->queue[host->list], host);
}

/* Addresses that have to wait have calls in flight, so there are few. */
struct fsd_host *fsd_host_dequeue(struct fsd_clients *clients, enum work_lists number,
				  unsigned most)
{
	struct work_list *list = &clients->list[number];
	struct share_queue *queue = list->first;
	struct fsd_host *host;

	while (queue && queue->of->busy && queue->of->busy >= most)
		queue = queue->next;
	if (!queue)
		return NULL;
	host = queue->first;
	take_out(clients, host);
	if (queue->count && list->last != queue) {
		detach_share_queue(list, queue);
		append_share_queue(list, queue);
	}
	return host;
}

void fsd_host_hurry(struct fsd_clients *clients, struct fsd_host *host)
{
	if (!host->queued || host->list == WORK_URGENT)
		return;
	take_out(clients, host);
	fsd_host_queue(clients, host);
}
