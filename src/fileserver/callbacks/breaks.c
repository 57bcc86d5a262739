/* SPDX-License-Identifier: BSD-2-Clause */
/* A change waits until each client was told that its promises are broken, and calls wait for such changes. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/held.h"
#include "fileserver/callbacks/clients.h"

#define RETRY_S 2 /* pause before a client that did not answer is told again */

/* Remove the oldest waiter of a host. */
static void remove_oldest_waiter(struct fsd_host *host)
{
	struct waiter *waiter = host->first_waiter;

	assert(waiter->host == host);
	host->first_waiter = waiter->host_next;
	if (!host->first_waiter)
		host->newest_waiter = NULL;
	*waiter->ticket_link = waiter->ticket_next;
	if (waiter->ticket_next)
		waiter->ticket_next->ticket_link = waiter->ticket_link;
	if (!waiter->ticket->first)
		pthread_cond_signal(&waiter->ticket->told);
	free(waiter);
}

void fsd_host_told(struct fsd_host *host, uint64_t until)
{
	while (host->first_waiter && host->first_waiter->until <= until)
		remove_oldest_waiter(host);
}

static void add_ticket_waiter(struct ticket *ticket, struct fsd_host *host, struct waiter *waiter)
{
	*waiter = (struct waiter){.ticket = ticket,
				  .host = host,
				  .ticket_next = ticket->first,
				  .ticket_link = &ticket->first};
	if (ticket->first)
		ticket->first->ticket_link = &waiter->ticket_next;
	ticket->first = waiter;
	*(host->newest_waiter ? &host->newest_waiter->host_next : &host->first_waiter) = waiter;
	host->newest_waiter = waiter;
}

void fsd_break_wait(struct fsd_clients *clients, struct fsd_host *host, struct ticket *ticket)
{
	if (!ticket)
		return;
	if (!host->newest_waiter || host->newest_waiter->ticket != ticket) {
		struct waiter *waiter = malloc(sizeof(*waiter));

		if (waiter) {
			add_ticket_waiter(ticket, host, waiter);
		} else { /* it is told to forget everything, before it is served again */
			if (host->state == HOST_UP && clients->options.strict)
				fsd_host_reset(clients, host);
			clients->stats.given_up++;
			return;
		}
	}
	assert(host->newest_waiter->until <= host->owed_total);
	host->newest_waiter->until = host->owed_total;
	fsd_host_hurry(clients, host);
}

static void wake_callback_thread(struct fsd_clients *clients)
{
	if (clients->options.wake)
		clients->options.wake(clients->options.arg);
}

void fsd_promise_break(struct fsd_clients *clients, const AFSFid *fid, const void *except)
{
	const struct fsd_break what = {.fid = *fid};
	bool found;

	pthread_mutex_lock(&clients->lock);
	found = fsd_promise_take(clients, &what, except, NULL);
	pthread_mutex_unlock(&clients->lock);
	if (found)
		wake_callback_thread(clients);
}

/*
 * Those that have not answered are told everything before they are served again. Nobody waits for them
 * meanwhile. Returns their number.
 */
static unsigned give_up_hosts(struct fsd_clients *clients, struct ticket *ticket)
{
	unsigned count = 0;

	while (ticket->first) {
		struct fsd_host *host = ticket->first->host;

		if (host->state == HOST_UP)
			fsd_host_reset(clients, host);
		host->given_up = true;
		fsd_host_told(host, host->owed_total);
		assert(!host->first_waiter);
		count++;
	}
	clients->stats.given_up += count;
	return count;
}

/* Waits from `since` on, and releases the lock meanwhile. Returns the number of hosts that did not answer. */
static unsigned await_answers(struct fsd_clients *clients, struct ticket *ticket, uint64_t since,
			      unsigned wait_ms)
{
	uint64_t until = since + (uint64_t)wait_ms * NS_PER_MS;

	assert(mutex_is_held(&clients->lock));
	clients->stats.waits++;
	if (clients->waiting >= WAITING_MAX && wait_ms > WAITING_MS)
		until -= (uint64_t)(wait_ms - WAITING_MS) * NS_PER_MS;
	clients->waiting++;
	pthread_mutex_unlock(&clients->lock);
	wake_callback_thread(clients);
	pthread_mutex_lock(&clients->lock);
	while (ticket->first && monotonic_ns() < until)
		monotonic_wait(&ticket->told, &clients->lock, until);
	assert(clients->waiting > 0);
	clients->waiting--;
	return give_up_hosts(clients, ticket);
}

static void take_broken_promises(struct fsd_clients *clients, const struct fsd_break *breaks,
				 size_t count, const void *except, struct ticket *ticket)
{
	assert(mutex_is_held(&clients->lock));
	for (size_t i = 0; i < count; i++) {
		if (breaks[i].fid.Vnode)
			fsd_promise_take(clients, &breaks[i], except, ticket);
		else
			fsd_promise_take_volume(clients, &breaks[i], except, ticket);
	}
}

unsigned fsd_promise_break_all(struct fsd_clients *clients, const struct fsd_break *breaks,
			       size_t count, const void *except, unsigned wait_ms)
{
	struct ticket ticket = {0};
	unsigned given_up = 0;

	monotonic_cond_init(&ticket.told);
	pthread_mutex_lock(&clients->lock);
	take_broken_promises(clients, breaks, count, except, &ticket);
	if (ticket.first)
		given_up = await_answers(clients, &ticket, monotonic_ns(), wait_ms);
	pthread_mutex_unlock(&clients->lock);
	assert(!ticket.first);
	if (given_up)
		wake_callback_thread(clients);
	pthread_cond_destroy(&ticket.told);
	return given_up;
}

struct fsd_breaking {
	struct ticket ticket;
	uint64_t since;
};

struct fsd_breaking *fsd_promise_break_begin(struct fsd_clients *clients,
					     const struct fsd_break *breaks, size_t count,
					     const void *except)
{
	struct fsd_breaking *breaking = calloc(1, sizeof(*breaking));
	bool waits;

	if (!breaking) { /* holders are told to forget everything */
		fsd_promise_break_all(clients, breaks, count, except, 0);
		return NULL;
	}
	monotonic_cond_init(&breaking->ticket.told);
	pthread_mutex_lock(&clients->lock);
	take_broken_promises(clients, breaks, count, except, &breaking->ticket);
	waits = breaking->ticket.first != NULL;
	breaking->since = monotonic_ns();
	pthread_mutex_unlock(&clients->lock);
	if (waits) {
		wake_callback_thread(clients);
		return breaking;
	}
	pthread_cond_destroy(&breaking->ticket.told);
	free(breaking);
	return NULL;
}

unsigned fsd_promise_break_end(struct fsd_clients *clients, struct fsd_breaking *breaking,
			       unsigned wait_ms)
{
	unsigned given_up = 0;

	pthread_mutex_lock(&clients->lock);
	if (breaking->ticket.first)
		given_up = await_answers(clients, &breaking->ticket, breaking->since, wait_ms);
	pthread_mutex_unlock(&clients->lock);
	assert(!breaking->ticket.first);
	if (given_up)
		wake_callback_thread(clients);
	pthread_cond_destroy(&breaking->ticket.told);
	free(breaking);
	return given_up;
}

/* -- clients that must be told before they are served -- */

/* Tell it, unless that is being done or failed just now. True: work was queued. */
static bool tell_host(struct fsd_clients *clients, struct fsd_host *host, uint64_t now)
{
	if (host->state == HOST_ASKED) {
		fsd_host_hurry(clients, host);
		return false;
	}
	if (now < host->retry_after)
		return false;
	fsd_host_reset(clients, host);
	return true;
}

/* Waits for the answer of the host, and releases the lock meanwhile. */
static void hold_until_told(struct fsd_clients *clients, struct fsd_host *host, uint64_t now,
			    unsigned wait_ms)
{
	uint64_t until = monotonic_ns() + (uint64_t)wait_ms * NS_PER_MS;
	bool queued;

	assert(mutex_is_held(&clients->lock));
	clients->stats.held++;
	clients->waiting++;
	host->awaited++;
	queued = tell_host(clients, host, now);
	if (queued) {
		pthread_mutex_unlock(&clients->lock);
		wake_callback_thread(clients);
		pthread_mutex_lock(&clients->lock);
	}
	while (fsd_host_may_cache(host, now) && host->state == HOST_ASKED && monotonic_ns() < until)
		monotonic_wait(&clients->settled, &clients->lock, until);
	assert(host->awaited > 0 && clients->waiting > 0);
	host->awaited--;
	clients->waiting--;
}

bool fsd_clients_ready(struct fsd_clients *clients, const struct fsd_caller *caller, uint64_t now,
		       unsigned wait_ms)
{
	struct fsd_host *host = caller->host;
	bool ready;

	if (!caller->untold)
		return true;
	pthread_mutex_lock(&clients->lock);
	/* Few calls of one client may wait, and not so many that none could wait for a change. */
	if (fsd_host_may_cache(host, now) && host->awaited < 2 && clients->waiting < WAITING_MAX / 2)
		hold_until_told(clients, host, now, wait_ms);
	ready = !fsd_host_may_cache(host, now);
	if (!ready)
		clients->stats.turned_away++;
	pthread_mutex_unlock(&clients->lock);
	return ready;
}

void fsd_host_failed(struct fsd_host *host, enum fsd_work_kind kind, uint64_t now)
{
	/* After a break the client is told at its next call. If that fails, it is not told again at once. */
	host->retry_after = kind == FSD_WORK_BREAK || kind == FSD_WORK_PROBE ? 0 : now + RETRY_S;
}

/* -- changes that not all clients know of yet, and the calls that wait for their end -- */

static uint64_t hash_changing(const void *item, const uint64_t secret[2])
{
	return fsd_hash_fid(&((const struct fsd_changing *)item)->fid, secret);
}

bool fsd_changing_init(struct fsd_clients *clients, const uint64_t secret[2])
{
	return htable_init(&clients->changing, offsetof(struct fsd_changing, chain), hash_changing,
			   secret, 0);
}

void fsd_change_begin(struct fsd_clients *clients, struct fsd_change *change,
		      const struct fsd_break *breaks, size_t count)
{
	assert(change->count <= FSD_CHANGED_MAX);
	pthread_mutex_lock(&clients->lock);
	clients->changes++;
	for (size_t i = 0; i < count && change->count < FSD_CHANGED_MAX; i++) {
		struct fsd_changing *object = &change->object[change->count];

		if (!breaks[i].fid.Vnode)
			continue;
		*object = (struct fsd_changing){.fid = breaks[i].fid, .number = clients->changes};
		htable_add(&clients->changing, object);
		change->count++;
	}
	atomic_store(&clients->open_changes, clients->changing.count);
	pthread_mutex_unlock(&clients->lock);
}

void fsd_change_end(struct fsd_clients *clients, struct fsd_change *change)
{
	bool awaited = false;

	if (!change->count)
		return;
	pthread_mutex_lock(&clients->lock);
	while (change->count) {
		struct fsd_changing *object = &change->object[--change->count];

		htable_remove(&clients->changing, object);
		awaited |= object->awaited;
	}
	atomic_store(&clients->open_changes, clients->changing.count);
	/* Hundreds of calls may wait for one change: others must not wake them. */
	if (awaited)
		pthread_cond_broadcast(&clients->opened);
	pthread_mutex_unlock(&clients->lock);
}

/* An open change up to this number, or NULL. */
static struct fsd_changing *find_change(const struct fsd_clients *clients, const AFSFid *fid,
					uint64_t upto)
{
	struct fsd_changing *object =
		htable_first(&clients->changing, fsd_hash_fid(fid, clients->changing.key));

	while (object && (object->number > upto || !fsd_same_fid(&object->fid, fid)))
		object = object->chain;
	return object;
}

static struct fsd_changing *find_changing(const struct fsd_clients *clients, const AFSFid *fids,
					  size_t count, uint64_t upto)
{
	struct fsd_changing *object = NULL;

	for (size_t i = 0; i < count && !object; i++)
		object = find_change(clients, &fids[i], upto);
	return object;
}

bool fsd_change_open(struct fsd_clients *clients, const AFSFid *fids, size_t count)
{
	bool open;

	if (!atomic_load(&clients->open_changes))
		return false;
	pthread_mutex_lock(&clients->lock);
	open = find_changing(clients, fids, count, clients->changes) != NULL;
	pthread_mutex_unlock(&clients->lock);
	return open;
}

bool fsd_change_settled(struct fsd_clients *clients, const AFSFid *fids, size_t count,
			unsigned wait_ms, uint64_t *until)
{
	struct fsd_changing *open;
	uint64_t upto;

	/* A change is announced before it becomes visible, so one that the caller has seen is listed. */
	if (!atomic_load(&clients->open_changes))
		return true;
	pthread_mutex_lock(&clients->lock);
	upto = clients->changes;
	open = find_changing(clients, fids, count, upto);
	if (open) {
		if (clients->settling >= SETTLING_MAX && wait_ms > WAITING_MS)
			wait_ms = WAITING_MS;
		if (!*until)
			*until = monotonic_ns() + (uint64_t)wait_ms * NS_PER_MS;
		clients->settling++;
		while (open && monotonic_ns() < *until) {
			open->awaited = true;
			monotonic_wait(&clients->opened, &clients->lock, *until);
			open = find_changing(clients, fids, count, upto);
		}
		assert(clients->settling > 0);
		clients->settling--;
	}
	pthread_mutex_unlock(&clients->lock);
	return !open;
}
