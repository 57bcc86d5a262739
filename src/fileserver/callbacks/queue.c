/* SPDX-License-Identifier: BSD-2-Clause */
/* The queues of clients to be called: those that calls wait for, active ones, idle ones. */
#include "fileserver/callbacks/private.h"

void fsd_host_queue(struct fsd_clients *clients, struct fsd_host *host)
{
	struct work_list *list = host->first_waiter || host->awaited ? &clients->urgent_work
				 : host->quiet			? &clients->quiet_work
								: &clients->work;

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

/* Remove it from a list if it is there. */
static bool take_out(struct work_list *list, struct fsd_host *host)
{
	struct fsd_host **at = &list->first, *next;

	while (*at && *at != host)
		at = &(*at)->next_work;
	if (!*at)
		return false;
	next = host->next_work;
	*at = next;
	if (!next)
		list->last = at;
	host->queued = false;
	return true;
}

void fsd_host_hurry(struct fsd_clients *clients, struct fsd_host *host)
{
	if (host->queued &&
	    (take_out(&clients->quiet_work, host) || take_out(&clients->work, host)))
		fsd_host_queue(clients, host);
}
