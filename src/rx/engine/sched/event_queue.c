/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queues: calls with events. A call has one entry, so memory is bounded by the calls. What is
 * reported is determined when the entry is taken out.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/assert.h"
#include "common/cancel.h"
#include "common/sized.h"
#include "engine/objects.h"
#include "engine/sched/inner.h"

#define AT_ONCE	 32	       /* entries taken with one acquisition of the lock */
#define ABSENT	 RXW_MS	       /* a thread that is absent for so long leaves packets unread */
#define ABSENCES 3	       /* so many in a row are no coincidence */
#define STAY_OUT (20 * RXW_MS) /* the queue then leaves receiving to the listener for a while */

static struct rxw_call *call_of_entry(struct rxw_queue_entry *entry)
{
	return (struct rxw_call *)(void *)((char *)entry - offsetof(struct rxw_call, events.entry));
}

/* Queue's lock held. */
static void unlink_queue_entry(struct rxw_queue *q, struct rxw_queue_entry *entry)
{
	assert(rxw_is_locked(&q->lock) && q->count && *entry->link == entry);
	*entry->link = entry->next;
	if (entry->next)
		entry->next->link = entry->link;
	else
		q->last = entry->link;
	entry->link = NULL;
	q->count--;
}

/* Queue's lock held: has a thread to be woken or interrupted? */
static bool needs_waiting_thread(const struct rxw_queue *q)
{
	return q->receiving ? !atomic_load_explicit(&q->interrupted, memory_order_relaxed)
			    : q->waiting > q->woken;
}

/*
 * Queue's lock held: this thread receives for the queue and takes the entries itself. Or another one
 * does, which has left the role to this thread while it verifies: it takes them afterwards.
 */
static bool receives_here(const struct rxw_queue *q)
{
	return q->receiving && q->receiving == rxw_receiving();
}

/* Queue's lock held. True: rxw_queue_signal() is due. */
static bool append_queue_entry(struct rxw_queue *q, struct rxw_queue_entry *entry)
{
	bool signal;

	assert(!entry->link && !*q->last);
	entry->next = NULL;
	entry->link = q->last;
	*q->last = entry;
	q->last = &entry->next;
	q->count++;
	signal = !q->owed && !receives_here(q) &&
		 ((q->fd >= 0 && !q->fd_set) || needs_waiting_thread(q));
	q->owed |= signal;
	return signal;
}

bool rxw_queue_append(struct rxw_queue *q, struct rxw_queue_entry *entry)
{
	bool signal;

	pthread_mutex_lock(&q->lock);
	signal = append_queue_entry(q, entry);
	pthread_mutex_unlock(&q->lock);
	return signal;
}

bool rxw_queue_put(struct rxw_call *call)
{
	struct rxw_queue_entry *entry = &call->events.entry;
	struct rxw_queue *q = call->events.queue;
	bool signal = false;

	pthread_mutex_lock(&q->lock);
	call->events.queued = true;
	entry->ticket++;
	if (!entry->link)
		signal = append_queue_entry(q, entry);
	pthread_mutex_unlock(&q->lock);
	return signal;
}

/* Queue's lock held: the descriptor is readable exactly while there are entries. */
static void update_fd(struct rxw_queue *q)
{
	uint64_t count = 1;
	NOT_CANCELLED;

	if (q->fd < 0 || q->fd_set == (q->first != NULL))
		return;
	/* Neither can block, and the counter is 0 or 1. */
	if (q->first ? write(q->fd, &count, sizeof(count)) == sizeof(count)
		     : read(q->fd, &count, sizeof(count)) == sizeof(count))
		q->fd_set = !q->fd_set;
}

/* Queue's lock held. True: fewer threads sleep than were counted as sleepers. */
static bool uncount_sleepers(struct rxw_queue *q)
{
	struct rxw_endpoint *ep = atomic_load_explicit(&q->source, memory_order_relaxed);
	unsigned asleep = q->waiting > q->woken ? q->waiting - q->woken : 0;

	if (q->counted <= asleep)
		return false;
	atomic_fetch_sub(&ep->shard->role.sleepers, q->counted - asleep);
	q->counted = asleep;
	return true;
}

/*
 * Queue's lock held: the receiving thread stops waiting. wait_interruptibly() in receive/receive.c is the
 * other side.
 */
static void interrupt_receiver(struct rxw_queue *q)
{
	if (atomic_exchange(&q->interrupted, true))
		return;
	if (atomic_load(&q->receiving->role.in_wait))
		rxw_io_wake(q->receiving->sock);
}

/*
 * Queue's lock held: one more thread is needed. It wakes the next one if entries are left. Returns
 * the shard whose role it is going to take, or NULL.
 */
static struct rxw_shard *wake_thread(struct rxw_queue *q)
{
	assert(rxw_is_locked(&q->lock));
	if (q->count <= q->claimed)
		return NULL;
	if (q->receiving) {
		interrupt_receiver(q);
		return NULL;
	}
	if (q->waiting <= q->woken)
		return NULL;
	q->woken++;
	pthread_cond_signal(&q->cond);
	if (!uncount_sleepers(q))
		return NULL;
	q->away_at = rxw_clock_cached();
	return atomic_load_explicit(&q->source, memory_order_relaxed)->shard;
}

struct rxw_shard *rxw_queue_signal(struct rxw_queue *q)
{
	struct rxw_shard *s;

	pthread_mutex_lock(&q->lock);
	q->owed = false;
	update_fd(q);
	s = wake_thread(q);
	pthread_mutex_unlock(&q->lock);
	return s;
}

/*
 * A thread can wait for packets of one socket only. At a server other calls would wait for what it
 * does with an event.
 */
static void note_source(struct rxw_queue *q, struct rxw_endpoint *ep)
{
	struct rxw_endpoint *source = atomic_load_explicit(&q->source, memory_order_relaxed);

	if (source == ep || atomic_load_explicit(&q->elsewhere, memory_order_relaxed))
		return;
	pthread_mutex_lock(&q->lock);
	source = atomic_load_explicit(&q->source, memory_order_relaxed);
	if (ep->server || ep->shard_count != 1 || ep->engine != q->engine ||
	    (source && source != ep))
		atomic_store(&q->elsewhere, true);
	else if (!atomic_load(&ep->life.quit))
		atomic_store(&q->source, ep);
	pthread_mutex_unlock(&q->lock);
}

void rxw_queue_join(struct rxw_call *call, struct rxw_queue *q, void *arg)
{
	note_source(q, call->conn->ep);
	call->events.queue = q;
	call->events.arg = arg;
	call->events.entry.kind = RXW_ENTRY_CALL;
	atomic_fetch_add_explicit(&q->users, 1, memory_order_relaxed);
}

void rxw_queue_leave(struct rxw_call *call)
{
	struct rxw_queue *q = call->events.queue;

	if (!q)
		return;
	if (call->events.queued) {
		pthread_mutex_lock(&q->lock);
		call->events.entry.ticket++;
		if (call->events.entry.link)
			unlink_queue_entry(q, &call->events.entry);
		update_fd(q);
		pthread_mutex_unlock(&q->lock);
	}
	call->events.queued = call->events.pending = false;
	call->events.queue = NULL;
	atomic_fetch_sub_explicit(&q->users, 1, memory_order_release);
}

/* The call failed, or the endpoint stops, before the application has seen it. */
static void discard_call(struct rxw_call *call)
{
	rxw_call_refuse(call, 0);
	rxw_conn_lock(call->conn);
	rxw_queue_leave(call);
	rxw_conn_unlock(call->conn);
	rxw_deferral_end(call);
}

/*
 * Ends what unlink_queued_call() began. False: nothing is to be reported. An entry that was queued
 * again, or left the queue, since it was taken out has another ticket and stands for nothing.
 */
static bool report_call(struct rxw_queue *q, struct rxw_call *call, unsigned ticket,
			struct rxw_queue_event *event)
{
	struct rxw_call_events *e = &call->events;
	struct rxw_endpoint *ep = call->conn->ep;
	bool report = false, unwanted = false;

	rxw_conn_lock(call->conn);
	if (e->queue == q && !call->ended && e->entry.ticket == ticket) {
		e->queued = false;
		event->events = e->pending ? rxw_events_now(call) & e->mask : 0;
		e->pending = false;
		if (e->fresh) {
			e->fresh = false;
			unwanted = call->p.error || atomic_load(&ep->life.stopping) ||
				   atomic_load(&call->conn->service->removed);
			event->events |= rxw_events_now(call) | RXW_EVENT_CALL;
		}
		report = event->events && !unwanted;
		if (report && (event->events & RXW_EVENT_CALL))
			atomic_fetch_add(&ep->usage.deferred, 1);
		event->call = call;
		event->arg = e->arg;
	}
	rxw_conn_unlock(call->conn);
	if (unwanted)
		discard_call(call);
	rxw_call_unref(call);
	rxw_count_down(&ep->usage.calls_taken);
	return report;
}

/* False: the connection or pool was released meanwhile. */
static bool report_channel(struct rxw_channel_wait *w, struct rxw_queue_event *event)
{
	bool report = true;

	if (w->conn) {
		rxw_conn_lock(w->conn);
		report = !w->conn->released;
		rxw_conn_unlock(w->conn);
	} else {
		pthread_mutex_lock(&w->group->lock);
		report = !w->group->released;
		pthread_mutex_unlock(&w->group->lock);
	}
	event->events = RXW_EVENT_CHANNEL;
	event->connection = w->conn;
	event->pool = (rxw_connpool *)w->group;
	event->arg = w->arg;
	rxw_channel_wait_free(w);
	return report;
}

static bool report_entry(struct rxw_queue *q, struct rxw_queue_entry *entry, unsigned ticket,
			 struct rxw_queue_event *event)
{
	struct rxw_queue_post *post;

	memset(event, 0, sizeof(*event));
	switch (entry->kind) {
	case RXW_ENTRY_CALL:
		return report_call(q, call_of_entry(entry), ticket, event);
	case RXW_ENTRY_CHANNEL:
		return report_channel((struct rxw_channel_wait *)entry, event);
	default:
		post = (struct rxw_queue_post *)entry;
		event->events = RXW_EVENT_POST;
		event->arg = post->arg;
		free(post);
		return true;
	}
}

/*
 * Queue's lock held. A call in the queue exists, since its end removes it. From now on the reference
 * keeps it, and the count its endpoint, until report_call().
 */
static void unlink_queued_call(struct rxw_queue *q, struct rxw_call *call)
{
	unlink_queue_entry(q, &call->events.entry);
	rxw_call_ref(call);
	atomic_fetch_add(&call->conn->ep->usage.calls_taken, 1);
}

/*
 * Queue's lock held: until report_entry(), an element of the application's array has the entry and its
 * ticket.
 */
static void unlink_into(struct rxw_queue *q, struct rxw_queue_entry *entry,
			struct rxw_queue_event *event)
{
	if (entry->kind == RXW_ENTRY_CALL)
		unlink_queued_call(q, call_of_entry(entry));
	else
		unlink_queue_entry(q, entry);
	event->arg = entry;
	event->reserved = entry->ticket;
}

/* Returns how many entries it took out; they are not reported yet. */
static unsigned unlink_some(struct rxw_queue *q, struct rxw_queue_event *events, unsigned max)
{
	unsigned n = 0;

	pthread_mutex_lock(&q->lock);
	while (q->first && n < max)
		unlink_into(q, q->first, &events[n++]);
	if (n) {
		update_fd(q);
		wake_thread(q);
	}
	pthread_mutex_unlock(&q->lock);
	return n;
}

/*
 * All entries of an array are taken out before the first one is reported: a call is not queued again
 * until it was reported, so it is in the array once.
 */
static unsigned unlink_array(struct rxw_queue *q, struct rxw_queue_event *events, unsigned max)
{
	unsigned n = 0, some;

	do {
		some = unlink_some(q, events + n, max - n < AT_ONCE ? max - n : AT_ONCE);
		n += some;
	} while (some == AT_ONCE && n < max);
	return n;
}

/*
 * Queue's lock held. A single absence may be due to other threads that need the processor. True: it was one
 * of several, and from now on the queue stays out.
 */
static bool note_absence(struct rxw_queue *q, uint64_t now)
{
	bool absent = q->away_at && now > q->away_at + ABSENT;

	q->away_at = 0;
	if (!absent) {
		q->absences = 0;
		return false;
	}
	if (++q->absences < ABSENCES)
		return false;
	q->absences--;
	q->stay_out = now + STAY_OUT;
	return true;
}

struct rxw_shard *rxw_queue_enter(struct rxw_queue *q, bool *late)
{
	struct rxw_shard *s = NULL;
	struct rxw_endpoint *ep;
	uint64_t now;

	*late = false;
	pthread_mutex_lock(&q->lock);
	ep = atomic_load_explicit(&q->source, memory_order_relaxed);
	if (ep && !atomic_load_explicit(&q->elsewhere, memory_order_relaxed)) {
		now = rxw_now();
		*late = note_absence(q, now);
		if (*late || now >= q->stay_out)
			s = ep->shard;
	}
	if (s)
		atomic_fetch_add(&s->role.guests, 1);
	pthread_mutex_unlock(&q->lock);
	return s;
}

void rxw_queue_exit(struct rxw_queue *q, struct rxw_shard *s, bool role)
{
	pthread_mutex_lock(&q->lock);
	if (role)
		q->away_at = rxw_now();
	rxw_count_down(&s->role.guests);
	pthread_mutex_unlock(&q->lock);
}

void rxw_queue_sleep(struct rxw_queue *q, struct rxw_shard *s, uint64_t end)
{
	bool sleeps;

	pthread_mutex_lock(&q->lock);
	sleeps = !q->first && !(s && atomic_load(&s->ep->life.quit));
	q->waiting += sleeps;
	if (s && sleeps) {
		q->counted++;
		atomic_fetch_add(&s->role.sleepers, 1);
		/* The role was left before its owner could see the sleeper. */
		if (rxw_role_is_free(&s->role)) {
			q->waiting--;
			sleeps = false;
			uncount_sleepers(q);
		}
	}
	if (sleeps) {
		rxw_cond_wait_until(&q->cond, &q->lock, end);
		q->waiting--;
		if (q->woken)
			q->woken--;
		uncount_sleepers(q);
	}
	pthread_mutex_unlock(&q->lock);
}

bool rxw_queue_receives(struct rxw_queue *q, struct rxw_shard *s)
{
	bool receives;

	pthread_mutex_lock(&q->lock);
	receives = !q->first && !atomic_load(&s->ep->life.quit);
	q->receiving = receives ? s : NULL;
	q->receiver = pthread_self();
	atomic_store_explicit(&q->interrupted, false, memory_order_relaxed);
	pthread_mutex_unlock(&q->lock);
	return receives;
}

void rxw_queue_received(struct rxw_queue *q)
{
	pthread_mutex_lock(&q->lock);
	if (q->receiving && pthread_equal(q->receiver, pthread_self()))
		q->receiving = NULL;
	pthread_mutex_unlock(&q->lock);
}

/* Queue's lock held. */
static void forget_source(struct rxw_queue *q, struct rxw_endpoint *ep)
{
	/* The endpoint may have been the other one; those that are left are noted again. */
	atomic_store(&q->elsewhere, false);
	if (atomic_load_explicit(&q->source, memory_order_relaxed) != ep)
		return;
	atomic_fetch_sub(&ep->shard->role.sleepers, q->counted);
	q->counted = 0;
	atomic_store(&q->source, NULL);
	if (q->receiving)
		interrupt_receiver(q);
	pthread_cond_broadcast(&q->cond);
}

void rxw_queue_forget(struct rxw_endpoint *ep)
{
	struct rxw_engine *e = ep->engine;

	pthread_mutex_lock(&e->lock);
	for (struct rxw_queue *q = e->queues; q; q = q->next) {
		pthread_mutex_lock(&q->lock);
		forget_source(q, ep);
		pthread_mutex_unlock(&q->lock);
	}
	pthread_mutex_unlock(&e->lock);
	while (atomic_load(&ep->shard->role.guests))
		rxw_sleep_us(100);
}

/* Moves the announcements for connections of the endpoint from the queue to a list. */
static __attribute__((cold)) void
unlink_channels(struct rxw_queue *q, const struct rxw_endpoint *ep, struct rxw_queue_entry **list)
{
	struct rxw_queue_entry *entry, *next;

	pthread_mutex_lock(&q->lock);
	for (entry = q->first; entry; entry = next) {
		const struct rxw_channel_wait *w = (const struct rxw_channel_wait *)entry;

		next = entry->next;
		if (entry->kind != RXW_ENTRY_CHANNEL || !w->conn || w->conn->ep != ep)
			continue;
		unlink_queue_entry(q, entry);
		entry->next = *list;
		*list = entry;
	}
	update_fd(q);
	pthread_mutex_unlock(&q->lock);
}

__attribute__((cold)) void rxw_queue_drop_channels(struct rxw_endpoint *ep)
{
	struct rxw_engine *e = ep->engine;
	struct rxw_queue_entry *list = NULL;

	while (atomic_load(&ep->usage.channel_waits)) {
		pthread_mutex_lock(&e->lock);
		for (struct rxw_queue *q = e->queues; q; q = q->next)
			unlink_channels(q, ep, &list);
		pthread_mutex_unlock(&e->lock);
		if (!list)
			rxw_sleep_us(100); /* another thread queues or reports one */
		while (list) {
			struct rxw_channel_wait *w = (struct rxw_channel_wait *)list;

			list = list->next;
			rxw_channel_wait_free(w);
		}
	}
	/* Other threads report calls that have ended meanwhile. */
	while (atomic_load(&ep->usage.calls_taken))
		rxw_sleep_us(100);
}

unsigned rxw_queue_take(struct rxw_queue *q, struct rxw_queue_event *events, unsigned max)
{
	unsigned done = 0, n;

	do {
		n = unlink_array(q, events, max);
		for (unsigned i = 0; i < n; i++)
			done += report_entry(q, events[i].arg, events[i].reserved, &events[done]);
	} while (n && !done);
	return done;
}

unsigned rxw_queue_claim(struct rxw_queue *q, unsigned max)
{
	unsigned n;

	pthread_mutex_lock(&q->lock);
	n = q->count > q->claimed ? q->count - q->claimed : 0;
	n = n < max ? n : max;
	q->claimed += n;
	pthread_mutex_unlock(&q->lock);
	return n;
}

/* Queue's lock held: one of the claimed entries, unless other threads took them all. */
static bool unlink_claimed(struct rxw_queue *q, struct rxw_queue_event *event, unsigned *claim)
{
	unsigned used = q->first ? 1 : *claim;

	assert(q->claimed >= used);
	q->claimed -= used;
	*claim -= used;
	if (!q->first)
		return false;
	unlink_into(q, q->first, event);
	update_fd(q);
	wake_thread(q);
	return true;
}

bool rxw_queue_take_claimed(struct rxw_queue *q, struct rxw_queue_event *event, unsigned *claim)
{
	while (*claim) {
		bool taken;

		pthread_mutex_lock(&q->lock);
		taken = unlink_claimed(q, event, claim);
		pthread_mutex_unlock(&q->lock);
		if (taken && report_entry(q, event->arg, event->reserved, event))
			return true;
	}
	return false;
}

/*
 * Queue's lock held: the first call of the service that was never taken out; NULL: the first entry
 * that belongs to no call.
 */
static struct rxw_queue_entry *find_queue_entry(struct rxw_queue *q,
						const struct rxw_service *service)
{
	for (struct rxw_queue_entry *entry = q->first; entry; entry = entry->next) {
		const struct rxw_call *call =
			entry->kind == RXW_ENTRY_CALL ? call_of_entry(entry) : NULL;

		if (!service && !call)
			return entry;
		if (service && call && call->conn->service == service &&
		    atomic_load(&call->events.fresh))
			return entry;
	}
	return NULL;
}

void rxw_queue_refuse(struct rxw_queue *q, const struct rxw_service *service)
{
	struct rxw_queue_entry *entry;

	do {
		struct rxw_queue_event event;

		pthread_mutex_lock(&q->lock);
		entry = find_queue_entry(q, service);
		if (entry) {
			unlink_into(q, entry, &event);
			update_fd(q);
		}
		pthread_mutex_unlock(&q->lock);
		if (entry)
			report_entry(q, entry, event.reserved, &event);
	} while (entry);
}

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

bool rxw_queue_of_engine(const struct rxw_queue *q, const struct rxw_engine *e)
{
	return q->engine == e;
}

void rxw_queue_use(struct rxw_queue *q)
{
	atomic_fetch_add(&q->users, 1);
}

void rxw_queue_unuse(struct rxw_queue *q)
{
	rxw_count_down(&q->users);
}

const _Atomic(bool) *rxw_queue_interrupted(const struct rxw_queue *q)
{
	return &q->interrupted;
}

bool rxw_queue_inherited(const struct rxw_queue *q)
{
	return rxw_engine_inherited(q->engine);
}
