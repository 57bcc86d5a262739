/* SPDX-License-Identifier: BSD-2-Clause */
/* The queues of clients to be called: one for active clients, one for idle ones. */
#include "fileserver/callbacks/private.h"

void fsd_host_queue(struct fsd_clients *clients, struct fsd_host *host)
{
	struct work_list *list = host->quiet ? &clients->quiet_work : &clients->work;

	if (host->queued || host->busy)
		return;
	host->queued = true;
	host->next_work = NULL;
	*list->last = host;
	list->last = &host->next_work;
}

struct fsd_host *fsd_host_dequeue(struct work_list *list)
{
	struct fsd_host *host = list->first;

	if (!host)
		return NULL;
	list->first = host->next_work;
	if (!list->first)
		list->last = &list->first;
	host->queued = false;
	return host;
}
