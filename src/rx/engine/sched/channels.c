/* SPDX-License-Identifier: BSD-2-Clause */
/* Callers that got no channel, and queues that tell them when there is one. */
#include <stdlib.h>

#include "engine/objects.h"
#include "engine/sched/inner.h"

int rxw_channel_wait(struct rxw_channel_waits *list, struct rxw_queue *q, void *arg,
		     struct rxw_connection *conn, struct rxw_channel_group *group)
{
	struct rxw_channel_wait *w;

	for (w = list->first; w; w = w->next)
		if (w->queue == q && w->arg == arg)
			return 0;
	if (list->count >= RXW_CHANNEL_WAITS)
		return -RXW_ELIMIT;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -RXW_ENOMEM;
	w->entry.kind = RXW_ENTRY_CHANNEL;
	w->queue = q;
	w->arg = arg;
	w->conn = conn;
	w->group = group;
	if (conn) {
		rxw_conn_ref(conn);
		atomic_fetch_add(&conn->ep->usage.channel_waits, 1);
	}
	if (group)
		atomic_fetch_add(&group->refs, 1);
	atomic_fetch_add(&q->users, 1);
	w->next = list->first;
	list->first = w;
	list->count++;
	return 0;
}

static void unref_group(struct rxw_channel_group *g)
{
	uint32_t before = atomic_fetch_sub(&g->refs, 1);

	assert(before);
	if (before != 1)
		return;
	pthread_cond_destroy(&g->cond);
	pthread_mutex_destroy(&g->lock);
	free(g);
}

int rxw_channel_group_init(struct rxw_channel_group *g)
{
	if (rxw_cond_init(&g->cond))
		return -RXW_ENOMEM;
	rxw_mutex_init(&g->lock);
	atomic_init(&g->refs, 1);
	return 0;
}

void rxw_channel_group_release(struct rxw_channel_group *g)
{
	struct rxw_channel_waits left;

	pthread_mutex_lock(&g->lock);
	g->released = true;
	left = g->waits;
	g->waits = (struct rxw_channel_waits){.first = NULL};
	pthread_mutex_unlock(&g->lock);
	rxw_channel_forget(&left);
	unref_group(g);
}

void rxw_channel_wait_free(struct rxw_channel_wait *w)
{
	if (w->conn) {
		struct rxw_endpoint *ep = w->conn->ep;

		rxw_conn_unref(w->conn);
		rxw_count_down(&ep->usage.channel_waits); /* it may be freed now */
	}
	if (w->group)
		unref_group(w->group);
	rxw_count_down(&w->queue->users);
	free(w);
}

void rxw_channel_forget(struct rxw_channel_waits *list)
{
	struct rxw_channel_wait *w;

	while ((w = list->first)) {
		list->first = w->next;
		rxw_channel_wait_free(w);
	}
	list->count = 0;
}

/* The list's lock held: empties it. */
static struct rxw_channel_wait *take_all_waits(struct rxw_channel_waits *list)
{
	struct rxw_channel_wait *all = list->first;

	list->first = NULL;
	list->count = 0;
	return all;
}

/* Each that waits is told, since the first one may no longer want the channel. */
static void tell_waits(struct rxw_channel_wait *all)
{
	while (all) {
		struct rxw_channel_wait *w = all;
		struct rxw_queue *q = w->queue;

		all = w->next;
		/* From here on another thread may free it; `users` holds for the queue until then. */
		atomic_fetch_add(&q->users, 1);
		if (rxw_queue_append(q, &w->entry))
			rxw_queue_signal(q);
		rxw_count_down(&q->users);
	}
}

void rxw_channel_announce(struct rxw_connection *c)
{
	struct rxw_channel_wait *own = NULL, *others = NULL;
	struct rxw_channel_group *g = NULL;

	rxw_conn_lock(c);
	atomic_store(&c->channel_wanted, false);
	if (c->channels) {
		own = take_all_waits(&c->channels->waits);
		g = c->channels->group;
	}
	if (g) {
		pthread_mutex_lock(&g->lock);
		g->freed++;
		others = take_all_waits(&g->waits);
		pthread_cond_broadcast(&g->cond);
		pthread_mutex_unlock(&g->lock);
	}
	rxw_conn_unlock(c);
	tell_waits(own);
	tell_waits(others);
}
